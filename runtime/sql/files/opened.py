"""Files that are opened once, and read by DuckDB and Spark through what was opened: a path that changes its meaning
between the check and the reading changes nothing.

Each file is opened from the root down without following a link, and looked at as it lies open. The readers get a folder
of links to the open files (`/proc/PID/fd/N`), so that nobody looks for a path or expands a pattern a second time.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import duckdb

from runtime.sql.asking.confined import confined
from runtime.sql.model import problem

from .places import Look, Match, Place

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
#: Where a process shows its open files to others of the same user.
_SHOWN = Path("/proc/self/fd")


class Opened:
    """The files of one read. `paths`: the links, below `folder` under their own paths or these `names`; they and the
    files stay until `close`."""

    def __init__(
        self, matches: Sequence[Match], place: Place, line: int = 1, names: Sequence[str] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ondatra-files-"))
        self.matches = list(matches)
        self._files: list[int] = []
        try:
            enough, look = _room(len(self.matches)), Look(place)
            self._targets = [self._target(m, look, line, enough) for m in self.matches]
            names = names if names is not None else [str(m.path.relative_to("/")) for m in matches]
            self.paths = [self._link(self.folder / n, t) for n, t in zip(names, self._targets, strict=True)]
        except BaseException:
            self.close()
            raise

    def numbered(self) -> list[Path]:
        """The same files under names in which no reader sees a pattern or a hidden file."""
        return [self._link(self.folder / "numbered" / f"{n:06}", t) for n, t in enumerate(self._targets)]

    def patterns(self) -> tuple[str, ...]:
        """The paths for DuckDB, which takes a path for a pattern."""
        return tuple(map(as_pattern, self.paths))

    def said(self, message: str, project: str) -> str:
        """A reader's message with the paths that a person knows."""
        return said(message, str(self.folder), project)

    @contextmanager
    def duckdb(self, threads: int = 1, spill: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that opens these files, what it writes below `spill`, and nothing else."""
        paths = {*map(str, self.paths), *self.patterns()}
        with confined(paths, threads=threads, spill=str(spill or "")) as con:
            yield con

    def close(self) -> None:
        for file in self._files:
            with suppress(OSError):
                os.close(file)
        self._files.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _target(self, match: Match, look: Look, line: int, enough: bool) -> str:
        file = open_checked(match, look, line)
        if not enough or not _SHOWN.exists():  # more than may be open: the path as it was a moment ago
            os.close(file)
            return str(match.real)
        self._files.append(file)
        return f"/proc/{os.getpid()}/fd/{file}"

    def _link(self, link: Path, target: str) -> Path:
        link.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(link):
            link.symlink_to(target)
        return link


def as_pattern(path: Path) -> str:
    """A path for DuckDB, which takes it for a pattern."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


def said(message: str, folder: str, project: str) -> str:
    """A reader's message about files below a folder of links, with the paths that a person knows."""
    for known in (f"{folder}/{project.strip('/')}/", folder):
        message = message.replace(known, "")
    return re.sub(r"\[([*?\[])\]", r"\1", message)


def open_checked(match: Match, look: Look, line: int = 1) -> int:
    """The file, open for reading. SqlProblems if it is not what was checked any more."""
    real = look.place.checked(match.path, line, look).real
    folder = os.open("/", _FLAGS | os.O_DIRECTORY)
    try:
        for part in real.parts[1:-1]:
            below = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        file = os.open(real.name, _FLAGS, dir_fd=folder)
    except OSError as error:
        raise problem(line, f"{match.path} cannot be read: {error.strerror}") from None
    finally:
        os.close(folder)
    info = os.fstat(file)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
        os.close(file)
        raise problem(line, f"{match.path} is no file with one name: copy it")
    return file


def _room(files: int) -> bool:
    """Whether so many files may be open beside what else the process has open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * files + 1024  # as many are opened once more by DuckDB
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 2 * files + 256
