"""What DuckDB is asked for the rows of a read, and what its refusal means, wherever it is asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from runtime.errors import BuildError
from runtime.sql.asking.confined import text
from runtime.sql.asking.said import brief, one_line
from runtime.sql.asking.tree import quoted
from runtime.sql.asking.types import Type, parse
from runtime.sql.files.opened import as_pattern, said
from runtime.sql.files.places import Place
from runtime.sql.files.table_functions import call, literal
from runtime.sql.model import FileRead, SqlProblems

#: The column in which DuckDB tells the file of a row where the SQL did not ask for it.
FILE = "__ondatra_file"
#: Options that are about several files.
OF_ALL = {"filename", "files_to_sniff", "hive_partitioning", "union_by_name"}
_PARQUET = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "UUID": "VARCHAR",
    "JSON": "VARCHAR",
    "ENUM": "VARCHAR",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "NULL": "VARCHAR",
}


def place_of(read: FileRead) -> Place:
    """Where the read may look for its files; a FileRead of a translation always says it."""
    if read.place is None:
        raise BuildError(f"{read.function}({', '.join(read.paths)}): where it may read is not known")
    return read.place


def rows(read: FileRead, folder: str, paths: Sequence[Path], part: Sequence[Path] = ()) -> str:
    """The SELECT of the rows, each column in a type that Parquet holds: of all files, or of `part` of them, read as
    they are among all. `folder` stands before the files' own paths."""
    options, named = dict(read.options), file_column(read)
    if part and not named:
        options["filename"] = FILE
    source = call(read.function, tuple(map(as_pattern, paths)), options)
    columns = ", ".join(
        f"CAST({_value(c.name, named, folder)} AS {parquet_type(parse(c.duckdb_type))}) AS {quoted(c.name)}"
        for c in read.columns
    )
    # DuckDB leaves files out by this before it reads them, and after it has looked at them for the columns
    wanted = f" WHERE {quoted(named or FILE)} IN ({', '.join(text(str(p)) for p in part)})" if part else ""
    return f"SELECT {columns} FROM {source}{wanted}"


def file_column(read: FileRead) -> str:
    """The column that tells the file of a row, if the SQL asked for one."""
    wanted = dict(read.options).get("filename")
    if isinstance(wanted, str) and wanted.lower() not in ("true", "false"):
        return wanted
    return "filename" if wanted and str(wanted).lower() != "false" else ""


def is_strict(read: FileRead) -> bool:
    """Whether DuckDB refuses a file whose columns are not those of the others. It does so by itself with CSV, and not
    where the columns are told or one of these options is set; so it would not where we ask for the file of a row."""
    options = dict(read.options)
    return (
        read.format == "csv"
        and "columns" not in options
        and not file_column(read)
        and not any(str(options.get(name)).lower() == "true" for name in ("union_by_name", "hive_partitioning"))
    )


def columns_alone(read: FileRead, path: Path) -> str:
    """The question for the columns of one CSV file, as DuckDB finds them in it alone: a list of name and type."""
    options = [f"{name} = {literal(value)}" for name, value in read.options if name not in OF_ALL]
    return f"SELECT Columns FROM sniff_csv({', '.join([literal(as_pattern(path)), *options])})"


def own_columns(read: FileRead, path: Path) -> list[dict[str, str]]:
    """The columns of a read, without those that are folders of the path, as a file alone has to have them."""
    folders = {part.split("=")[0] for part in path.parts if "=" in part}
    return [{"name": c.name, "type": c.duckdb_type} for c in read.columns if c.name not in folders]


def _value(column: str, named: str, folder: str) -> str:
    """A column as DuckDB reads it; the file's name without the folder of links."""
    if named and column.lower() == named.lower():
        return f"substr({quoted(column)}, {len(folder) + 1})"
    return quoted(column)


def refused(read: FileRead, message: str, folder: str) -> BuildError:
    """DuckDB's words about a file, as a person knows the read and its paths."""
    told = said(one_line(brief(message)), folder, str(place_of(read).project))
    return BuildError(f"{_shown(read)}: {told}")


def not_read(read: FileRead, error: Exception) -> BuildError:
    """The same of files that may not be read."""
    told = error.problems[0][1] if isinstance(error, SqlProblems) else str(error)
    return BuildError(f"{_shown(read)}: {told}")


def _shown(read: FileRead) -> str:
    """The read with its paths as a person knows them: relative to the project folder where they lie in it."""
    project = place_of(read).project
    paths = [os.path.relpath(p, project) if Path(p).is_relative_to(project) else p for p in read.paths]
    return f"{read.function}({', '.join(map(repr, paths))})"


def parquet_type(t: Type) -> str:
    """The DuckDB type that Parquet and Spark hold without loss."""
    if t.name == "LIST":
        return parquet_type(t.element) + "[]"
    if t.name == "MAP":
        return f"MAP({parquet_type(t.args[0])}, {parquet_type(t.args[1])})"
    if t.name == "STRUCT":
        fields = (f"{quoted(n)} {parquet_type(a)}" for n, a in zip(t.fields, t.args, strict=True))
        return f"STRUCT({', '.join(fields)})"
    return _PARQUET.get(t.name, str(t))
