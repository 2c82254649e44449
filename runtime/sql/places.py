"""Where files may be read, and what tells that they changed."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .model import SqlProblems


@dataclass(frozen=True)
class Place:
    """Where files may be read."""

    project: Path
    allowed: tuple[Path, ...]

    def absolute(self, path: str, line: int) -> str:
        """The absolute path or pattern; refused outside the folders that may be read."""
        if re.match(r"[a-z][a-z0-9+.-]*://", path, re.I):
            raise SqlProblems(
                [
                    (
                        line,
                        f"{path}: only files below the project folder are read by path; name an object store as a "
                        f"connection in ondatra.toml",
                    )
                ]
            )
        full = Path(path) if Path(path).is_absolute() else self.project / path
        fixed = Path(*_before_glob(full.parts))
        roots = [self.project, *self.allowed]
        if ".." in Path(path).parts or not any(_below(fixed, r) for r in roots):
            raise SqlProblems(
                [
                    (
                        line,
                        f"{path} lies outside the project folder; SQL reads files below it and below the paths of "
                        f"allow_paths only",
                    )
                ]
            )
        for match in glob.iglob(str(full), recursive=True):
            if not any(_below(Path(match).resolve(), r) for r in roots):
                raise SqlProblems([(line, f"{path}: {Path(match).name} leads outside the project folder")])
        return str(full)


def _before_glob(parts: tuple[str, ...]) -> list[str]:
    out = []
    for part in parts:
        if re.search(r"[*?\[]", part):
            break
        out.append(part)
    return out


def _below(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def state(paths: tuple[str, ...]) -> tuple[Any, ...]:
    """What tells that files changed since they were described."""
    out = []
    for path in paths:
        for match in sorted(glob.glob(path, recursive=True)):
            info = Path(match).stat()
            out.append((match, info.st_size, info.st_mtime_ns))
    return tuple(out)
