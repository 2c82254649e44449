"""One SQL model: one file of `models/`, read into one frozen Model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["table", "append", "merge", "tracked", "scd2", "partition"]
KINDS: tuple[Kind, ...] = ("table", "append", "merge", "tracked", "scd2", "partition")
Dialect = Literal["duckdb", "spark"]


@dataclass(frozen=True)
class Column:
    """A column of a model's result. `duckdb_type` as DESCRIBE prints it (DECIMAL(10,2), INTEGER[], JSON…)."""

    name: str
    duckdb_type: str
    spark_type: str

    @property
    def is_json(self) -> bool:
        """JSON is text in the lake; only this says that it is not to be quoted again."""
        return self.duckdb_type == "JSON"


@dataclass(frozen=True)
class Sink:
    """`@sink: function('a', 'b')`."""

    function: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mask:
    column: str
    how: Literal["hash", "redact", "last4"] = "redact"


@dataclass(frozen=True)
class MaxDeletes:
    """`@max_deletes`: a plain number of records, or a percentage of the rows delivered before."""

    number: int
    percent: bool = False


@dataclass(frozen=True)
class Model:
    """A parsed model file; what its directives leave out has the contract's default."""

    name: str  # "sync.contacts", lower case
    file: str  # "models/sync/contacts.sql", relative to the project folder
    path: Path
    sql: str  # the SELECT, without header and trailing ;
    sql_line: int  # the file's line on which `sql` begins
    kind: Kind = "table"
    key: tuple[str, ...] = ()  # unique, group or partition columns, as the SELECT spells them
    sink: Sink | None = None
    identifier: str | None = None
    on_missing: Literal["ignore", "delete"] = "ignore"
    max_deletes: MaxDeletes | None = None
    renamed_from: str | None = None
    masks: tuple[Mask, ...] = ()
    schedule: str | None = None
    retention: int = 14
    description: str = ""
    tags: tuple[str, ...] = ()
    dialect: Dialect = "duckdb"
    lines: dict[str, int] = field(default_factory=dict, compare=False)  # directive -> its line

    def line(self, directive: str) -> int:
        """The line to point at when that directive is wrong or missing."""
        return self.lines.get(directive, self.lines.get("kind", 1))
