"""Where files may be read: which paths a pattern stands for, and what is never among them.

A path is looked at twice: when the SQL is checked, and when the rows are read (see opened.py), each time whole: links
are followed to their end, and what lies there decides.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from runtime.config import from_env
from runtime.sql.model import SqlProblems, problem

#: Below the data folder, what is anybody's: the demo's public data.
PUBLIC = "demo"
#: Names that hold settings and secrets of a folder, wherever it lies.
PRIVATE = re.compile(r"\.env(\..*)?|\.git|\.netrc|\.pgpass", re.I)
_GLOB = re.compile(r"[*?\[]")
_OUTSIDE = "lies outside the project folder; SQL reads files below it and below the paths of allow_paths only"
_ANOTHER = "is a second name of a file (a hard link), which may lie outside the project folder: copy it"


@dataclass(frozen=True)
class Match:
    """A file: as the pattern found it, and where it lies once every link is followed."""

    path: Path
    real: Path


@dataclass(frozen=True)
class Place:
    """Where files may be read. `hidden`: more files and folders that never are, such as the env files of workspaces."""

    project: Path
    allowed: tuple[Path, ...]
    hidden: tuple[Path, ...] = field(default=())

    def absolute(self, path: str, line: int) -> str:
        """The absolute path or pattern; SqlProblems if it, or a file that it stands for now, may not be read."""
        if re.match(r"[a-z][a-z0-9+.-]*:/", path, re.I):
            raise _refused(
                line,
                path,
                "only files below the project folder are read by path; name an object store as a connection "
                "in ondatra.toml",
                ": ",
            )
        full = Path(path) if Path(path).is_absolute() else self.project / path
        if ".." in Path(path).parts or "\0" in path or not Look(self).inside(_real(_fixed(full))):
            raise _refused(line, path, _OUTSIDE)
        if any(PRIVATE.fullmatch(part) for part in Path(path).parts):
            raise _refused(line, path, "is never read by SQL: such files hold settings and secrets")
        self.matches((str(full),), line)
        return str(full)

    def matches(self, patterns: tuple[str, ...], line: int = 1) -> list[Match]:
        """The files of absolute patterns, sorted. SqlProblems for one that may not be read. A pattern finds no hidden
        files and nothing of the install."""
        look = Look(self)
        found: dict[Path, Match] = {}
        for pattern in patterns:
            for path in _found(Path(pattern), look):
                if path not in found:
                    found[path] = self.checked(path, line, look)
        return [found[path] for path in sorted(found)]

    def checked(self, path: Path, line: int = 1, look: Look | None = None) -> Match:
        """The file of one path; SqlProblems if it may not be read."""
        look = look or Look(self)
        real, shown = look.real(path), _shown(path, self.project)
        if look.own(real):
            why = "belongs to this install (its keys, database, lake or records), which SQL never reads"
            raise _refused(line, shown, why)
        if not look.inside(real):
            raise _refused(line, shown, "leads outside the project folder", ": ")
        try:
            info = real.lstat()
        except OSError as error:
            raise _refused(line, shown, f"cannot be read: {error.strerror}", ": ") from None
        if not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode):
            raise _refused(line, shown, "is no file")
        if stat.S_ISREG(info.st_mode) and (info.st_nlink > 1 or (info.st_dev, info.st_ino) in look.places.ids):
            raise _refused(line, shown, _ANOTHER)
        return Match(path, real)

    def left_out(self, pattern: str) -> bool:
        """Whether a pattern passes over the install's own folder, which lies where it looks."""
        fixed = _real(_fixed(Path(pattern)))
        return bool(_GLOB.search(pattern)) and any(p != fixed and p.is_relative_to(fixed) for p in own_places().paths)


class Look:
    """One look at what lies there: each folder is resolved and judged once."""

    def __init__(self, place: Place) -> None:
        self.place, self.places = place, own_places()
        self.roots = [_real(root) for root in (place.project, *place.allowed)]
        self._folders: dict[Path, Path] = {}
        self._own: dict[Path, bool] = {}

    def real(self, path: Path) -> Path:
        """Where a path leads."""
        if path.parent not in self._folders:
            self._folders[path.parent] = _real(path.parent)
        found = self._folders[path.parent] / path.name
        return _real(found) if found.is_symlink() else found

    def inside(self, real: Path) -> bool:
        return any(real.is_relative_to(root) for root in self.roots)

    def own(self, real: Path) -> bool:
        """Whether a resolved path is, or lies in, what no SQL reads."""
        if real in self.places.paths or real in self.place.hidden or PRIVATE.fullmatch(real.name):
            return True
        return self.own_folder(real.parent)

    def own_folder(self, real: Path) -> bool:
        if real not in self._own:
            if real in self.places.paths or _identity(real) in self.places.ids:
                found = True
            elif real.parent == self.places.data and real.name == PUBLIC:
                found = False
            else:
                named = real in self.place.hidden or bool(PRIVATE.fullmatch(real.name))
                found = named or real != real.parent and self.own_folder(real.parent)
            self._own[real] = found
        return self._own[real]

    def may_enter(self, folder: Path) -> bool:
        """Whether a pattern looks for files in a folder. The data folder is entered for what is public in it."""
        real = self.real(folder)
        return self.inside(real) and (real == self.places.data or not self.own_folder(real))


@dataclass(frozen=True)
class OwnPlaces:
    """What an install keeps on this machine: by path and, for other names of the same, by device and number."""

    data: Path
    paths: frozenset[Path]
    ids: frozenset[tuple[int, int]]


def own_places() -> OwnPlaces:
    config = from_env()
    urls = (config.lake_url, config.staging_url, config.tracking_url)
    return _own_places(config.data_dir, urls, os.environ.get("DATABASE_URL", ""))


@lru_cache(8)
def _own_places(data: Path, urls: tuple[str, ...], database: str) -> OwnPlaces:
    paths = {_real(data)} | {_real(Path(unquote(urlsplit(u).path))) for u in urls if u.startswith("file:")}
    if database.startswith("sqlite"):
        file = _real(Path(unquote(urlsplit(database).path).replace("//", "/", 1)))
        paths |= {file, *(file.with_name(file.name + end) for end in ("-wal", "-shm", "-journal"))}
    ids = {found for path in paths if (found := _identity(path))}
    return OwnPlaces(_real(data), frozenset(paths), frozenset(ids))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _fixed(pattern: Path) -> Path:
    """What stands before the first `*`, `?` or `[`."""
    out: list[str] = []
    for part in pattern.parts:
        if _GLOB.search(part):
            break
        out.append(part)
    return Path(*out)


def _found(pattern: Path, look: Look) -> Iterator[Path]:
    """The paths of a pattern, looked for once and by nobody else. `*`, `?` and `[…]` stand for no `/` and no dot at the
    beginning, `**` for folders at any depth, through no links."""
    fixed = _fixed(pattern)
    rest = pattern.parts[len(fixed.parts) :]
    if not rest:
        if os.path.lexists(fixed):
            yield fixed
    elif look.may_enter(fixed):
        yield from _below(fixed, rest, look)


def _below(folder: Path, parts: tuple[str, ...], look: Look) -> Iterator[Path]:
    part, *rest = parts
    more = tuple(rest)
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:
        return
    if part == "**":
        yield from _below(folder, more or ("*",), look)
        for entry in entries:
            plain = entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            if plain and look.may_enter(folder / entry.name):
                yield from _below(folder / entry.name, parts, look)
        return
    fits = re.compile(translate(part)).match if _GLOB.search(part) else part.__eq__
    for entry in entries:
        if not fits(entry.name) or entry.name.startswith(".") and not part.startswith("."):
            continue
        path = folder / entry.name
        if not more:
            if not entry.is_dir() and not (look.own(look.real(path)) and not entry.is_symlink()):
                yield path
        elif entry.is_dir() and look.may_enter(path):
            yield from _below(path, more, look)


def _shown(path: Path, project: Path) -> str:
    return os.path.relpath(path, project) if path.is_relative_to(project) else str(path)


def _refused(line: int, path: str, why: str, between: str = " ") -> SqlProblems:
    return problem(line, f"{path}{between}{why}")


def state(place: Place, paths: tuple[str, ...]) -> tuple[Any, ...]:
    """What tells that files changed since they were described."""
    out = []
    for match in place.matches(paths):
        info = match.real.stat()
        out.append((str(match.path), info.st_size, info.st_mtime_ns))
    return tuple(out)
