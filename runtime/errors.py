"""The errors that a caller may catch.

OndatraError
├── ProjectError        something in the project folder is wrong: a list of Problems (exit 2, nothing started)
├── ConfigError         a setting or an argument is wrong (exit 2, nothing started)
├── BuildError          a model could not be built; other models go on
├── HeldError           a run must be confirmed by a person before anything is written
├── HistoryGone         the change feed since the mark no longer exists
├── StoreError          the store of records cannot be written or read
├── LeaseLost           another process took the work over; the caller stops at once
└── Cancelled           a person stopped the run
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong in a project. `file` is relative to the project folder, `line` counts from 1."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def said_by_spark(error: BaseException | str) -> str:
    """Spark's own words in one line: without stack, plan, the job's number, and the excerpt and places of the SQL,
    which is the translation's."""
    text = re.split(
        r"\n+JVM stacktrace:|\n\s*at |\n+== |;\s*line \d+,? pos|\s*SQLSTATE: \w+;\s*\n",
        str(error) or type(error).__name__,
    )[0]
    for condition in [*re.finditer(r"\[[A-Z][A-Z0-9]*_[A-Z0-9_.]+\] ", text)][-1:]:
        text = text[condition.end() :]
    text = re.sub(
        r"\s*SQLSTATE: \w+;?|\s*\(line \d+, pos \d+\)|\s*If necessary set \S+ to \S+ to bypass this error\.", "", text
    )
    return " ".join(text.split())


class OndatraError(Exception):
    """The root of the tree above; its text is what a person reads."""


class ProjectError(OndatraError):
    """Raised when a project cannot be run as it stands."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type, tuple[list[Problem]]]:
        return type(self), (self.problems,)


class ConfigError(OndatraError):
    """Raised for a wrong setting, argument or environment before anything started."""


class BuildError(OndatraError):
    """Raised when a model's SQL fails on its data."""


class HeldError(OndatraError):
    """Raised when a run needs a person's word before it may write, with what it would do in records.

    `deleted` is more than `limit`, if that is why; `rows` are then the first that would go (an Arrow table with row id,
    key and change type), None where they could not be read; `gone` if the changes since the mark are.
    """

    def __init__(
        self,
        message: str,
        *,
        source: int = 0,
        unchanged: int = 0,
        invalid: int = 0,
        changed: int = 0,
        deleted: int = 0,
        limit: int | None = None,
        gone: bool = False,
        rows: Any = None,
    ) -> None:
        super().__init__(message)
        self.source, self.unchanged, self.invalid = source, unchanged, invalid
        self.changed, self.deleted, self.limit, self.gone = changed, deleted, limit, gone
        self.rows = rows


class HistoryGone(OndatraError):
    """Raised when change files since the mark were removed."""


class StoreError(OndatraError):
    """Raised when the store of records cannot be reached or refuses."""


class LeaseLost(OndatraError):
    """Raised when a write found that another process owns the work now."""


class Cancelled(OndatraError):
    """Raised inside a run that a person cancelled."""
