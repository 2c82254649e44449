"""Where the tables of models lie, and who may write them.

One writer a table: who builds a model without a sink holds its lock, whichever process it is. A sync's own run is its
lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
from contextlib import suppress
from typing import IO, Any

from django.conf import settings
from django.db import connection, connections

from ondatra_web.models import ModelState


class TableLocks:
    """The locks of one walk: of files in an embedded install, of a session of its own in PostgreSQL. All end with the
    process."""

    def __init__(self, workspace_id: int) -> None:
        self.workspace_id = workspace_id
        self._files: dict[str, IO[bytes]] = {}
        self._session: Any = None
        self._held: set[str] = set()

    def take(self, model: str) -> bool:
        """Whether the table is ours to write now."""
        if model not in self._held and (
            self._ask("pg_try_advisory_lock", model) if connection.vendor == "postgresql" else self._lock(model)
        ):
            self._held.add(model)
        return model in self._held

    def free(self, model: str) -> None:
        if model not in self._held:
            return
        self._held.discard(model)
        if model in self._files:
            self._files.pop(model).close()
        else:
            self._ask("pg_advisory_unlock", model)

    def close(self) -> None:
        """Frees all."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._held.clear()
        if self._session is not None:
            with suppress(Exception):  # a session that broke off holds nothing
                with self._session.cursor() as cursor:
                    cursor.execute(
                        "SELECT pg_advisory_unlock_all()"
                    )  # now, and not when the server has seen the session end
                self._session.close()
            self._session = None

    def _name(self, model: str) -> str:
        return hashlib.sha256(f"{self.workspace_id} {model}".encode()).hexdigest()

    def _lock(self, model: str) -> bool:
        folder = settings.ONDATRA.locks_dir
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / f"table-{self._name(model)[:24]}.lock", "ab")  # noqa: SIM115  held open while the table is written; it stays, for others may wait
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._files[model] = file
        return True

    def _ask(self, function: str, model: str) -> bool:
        if self._session is None:
            self._session = connections["default"].copy()  # type: ignore[no-untyped-call]  # the lock must not end with a transaction or a lost connection
        with self._session.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [int(self._name(model)[:15], 16)])
            return bool(cursor.fetchone()[0])


def place_of(workspace_id: int, model: str) -> str:
    """The folder of the model's table below its workspace's. One that was renamed keeps its folder; a new model of that
    name gets another."""
    state = ModelState.objects.filter(workspace_id=workspace_id, name=model).only("place").first()
    if state is not None and state.place:
        return state.place
    usual = model.replace(".", "/")
    taken = set(
        ModelState.objects.filter(workspace_id=workspace_id, place__startswith=usual)
        .exclude(name=model)
        .values_list("place", flat=True)
    )
    others = (f"{usual}-{n}" for n in itertools.count(2))
    return usual if usual not in taken else next(place for place in others if place not in taken)
