"""The tables of an install, made by its migrations once in a session, which takes 2.5 s of a processor: whatever
process comes later copies the file."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import Any


class Tables:
    """A file of SQLite with tables as a fresh install has them, in a folder of all processes of the session."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "tables.sqlite3"
        self._turn = (folder / "tables.lock").open("w")

    def taken(self, place: Path) -> bool:
        """Whether they are made by now; then they lie at `place`. Until `given` it is no other process' turn."""
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        if found := self.file.is_file():
            shutil.copyfile(self.file, place)
        return found

    def given(self, connection: Any) -> None:
        """Whoever makes them leaves a copy: what is in the database before any test."""
        if connection.vendor == "sqlite" and not self.file.exists():
            with connection.cursor() as cursor:
                cursor.execute("VACUUM INTO %s", [str(self.file)])
        fcntl.flock(self._turn, fcntl.LOCK_UN)


def of_the_session(own: Path) -> Tables:
    """`own` is where this process' temporary folders lie."""
    return Tables(own.parent if own.name.startswith("popen-") else own)
