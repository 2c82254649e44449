"""What goes in and out of a translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.errors import OndatraError
from runtime.model import Column

if TYPE_CHECKING:
    from .files.places import Place


@dataclass(frozen=True)
class TableRef:
    """A table that the SQL reads: lower case, `schema.table` (or `connection.schema.table`), with its line in the SQL
    text."""

    name: str
    line: int


@dataclass(frozen=True)
class FileRead:
    """One file function of the SQL. `options` are DuckDB's; `columns` what DuckDB found or was told."""

    view: str
    format: str  # csv, parquet, json, delta
    paths: tuple[str, ...]  # absolute, globs unexpanded
    options: tuple[tuple[str, Any], ...]
    columns: tuple[Column, ...]
    function: str = ""
    place: Place | None = field(default=None, compare=False)  # where it may read, looked at again when it does


@dataclass(frozen=True)
class Call:
    """Expressions that DuckDB computes within Spark's tasks: a function of this name, over a batch of rows."""

    name: str
    inputs: tuple[tuple[str, str], ...]  # the names that the expressions use, with DuckDB's types
    expressions: tuple[tuple[str, str, str], ...]  # DuckDB's text, its type, and the type in which it travels
    returns: str  # Spark's type of the answer, a struct of f0, f1, …
    places: tuple[tuple[int, str], ...] = field(default=(), compare=False)  # line of the SQL, and what stands there


@dataclass(frozen=True)
class Translated:
    spark_sql: str
    columns: tuple[Column, ...] | None
    files: tuple[FileRead, ...]
    tables: tuple[str, ...]
    volatile: bool
    ordered: bool
    calls: tuple[Call, ...] = ()
    #: The same for texts of any spelling, where this one holds for the usual ones and ends with `spellings.is_met` at
    #: others.
    exact: Translated | None = None


class SqlProblems(OndatraError):
    """Everything that is wrong with one SQL text; lines count from 1 within that text."""

    def __init__(self, problems: Sequence[tuple[int, str]]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(f"line {line}: {message}" for line, message in self.problems))


def problem(line: int, message: str) -> SqlProblems:
    """The one thing that is wrong."""
    return SqlProblems([(line, message)])


class Refused(Exception):
    """A construct that is not translated. `where` is an offset in the text, or None when only the statement is
    known."""

    def __init__(self, construct: str, where: int | None = None, hint: bool = True) -> None:
        self.construct, self.where, self.hint = construct, where, hint
        super().__init__(construct)
