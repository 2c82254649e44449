"""Files as DataFrames with DuckDB's semantics, and what tells that they changed.

CSV and JSON are read by DuckDB itself into Parquet, in parallel and in pieces, so that types, NULLs, quoting and errors
are exactly its own; Spark reads Parquet directly where the columns need no conversion.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from runtime.config import from_env
from runtime.errors import BuildError
from runtime.sources import brought
from runtime.sql import delta
from runtime.sql.files import call
from runtime.sql.model import FileRead, SqlProblems
from runtime.sql.opened import Opened
from runtime.sql.places import Match, Place
from runtime.sql.said import brief, one_line
from runtime.sql.types import Type, name_quoted, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A file younger than this may still be written; it counts as changed.
SETTLED_NS = 2_000_000_000
_PLAIN = re.compile(
    r"(BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|FLOAT|DOUBLE|VARCHAR|DATE|TIMESTAMP|TIMESTAMP WITH TIME "
    r"ZONE|BLOB|DECIMAL\(\d+,\d+\))\Z"
)
_guard = threading.Lock()
_staging: dict[str, threading.Lock] = {}  # by the name of the folder that is being made
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


def files_of(read: FileRead) -> list[Match]:
    """The files that the patterns stand for now, sorted. BuildError for one that may not be read."""
    try:
        return [m for m in place_of(read).matches(read.paths) if m.real.is_file()]
    except SqlProblems as error:
        raise _not_read(read, error) from None


def fingerprint(read: FileRead) -> str | None:
    """The files with their sizes and times; None if there are none, or one was written less than two seconds ago."""
    now = time.time_ns()
    out = []
    delta = read.format == "delta"
    for path in sorted(Path(read.paths[0]).glob("_delta_log/*")) if delta else [m.path for m in files_of(read)]:
        info = path.stat()
        if now - info.st_mtime_ns < SETTLED_NS:
            return None
        out.append([str(path), info.st_size, info.st_mtime_ns])
    return json.dumps(out, separators=(",", ":")) if out else None


def open_file(spark: SparkSession, read: FileRead) -> DataFrame:
    """The rows of a file read, its columns in DuckDB's order, each of the type `read.columns` says. BuildError if
    DuckDB cannot read it, or it may not be read. Spark reads what was opened here, as long as the session lives."""
    if read.format == "delta":
        frame = spark.read.format("delta").load(str(_delta(spark, read)))
    elif (opened := _direct(read)) is not None:
        weakref.finalize(spark, opened.close)
        frame = spark.read.parquet(*_seen(spark, read.view, opened))
    else:
        folder = staged(read)
        frame = spark.read.parquet(
            *([str(folder)] if _here(spark) else brought.bring(read.view, folder.name, _parts(folder)))
        )
    return frame.selectExpr(
        *(f"CAST({name_quoted(c.name)} AS {c.spark_type}) AS {name_quoted(c.name)}" for c in read.columns)
    )


def _here(spark: SparkSession) -> bool:
    """Whether Spark's tasks run on this machine, where they see what this process has opened."""
    return str(spark.sparkContext.master).startswith("local")


def _seen(spark: SparkSession, view: str, opened: Opened) -> list[str]:
    """The opened files where Spark's tasks see them: on this machine the links; elsewhere the same paths, if the lake
    is a folder that all machines have, else copies in the staging area."""
    if _here(spark):
        return [str(path) for path in opened.numbered()]
    if from_env().lake_url.startswith("file:"):
        return [_escaped(match) for match in opened.matches]
    state = [[str(m.path), (info := m.real.stat()).st_size, info.st_mtime_ns] for m in opened.matches]
    name = hashlib.sha256(json.dumps(state).encode()).hexdigest()[:24]
    return brought.bring(view, name, {f"{n}.parquet": Path(path) for n, path in enumerate(opened.numbered())})


def _parts(folder: Path) -> dict[str, Path]:
    """What DuckDB wrote, by names that Spark reads."""
    return {f"{n}.parquet": path for n, path in enumerate(sorted(folder.rglob("*.parquet")))}


def _escaped(match: Match) -> str:
    """The path for Spark, which takes it for a pattern."""
    return re.sub(r"[*?\[\]{}\\]", r"\\\g<0>", str(match.real))


def _delta(spark: SparkSession, read: FileRead) -> Path:
    try:
        opened, folder = delta.opened(place_of(read), Path(read.paths[0]))
    except (SqlProblems, ValueError, OSError) as error:
        raise _not_read(read, error) from None
    weakref.finalize(spark, opened.close)
    return folder if _here(spark) else Path(read.paths[0]).resolve()


def _direct(read: FileRead) -> Opened | None:
    """The opened files if Spark reads them as DuckDB does: Parquet, same plain columns in every file, no options."""
    if read.format != "parquet" or read.options or not all(_PLAIN.match(c.duckdb_type) for c in read.columns):
        return None
    import pyarrow.parquet as pq

    opened = _opened(read, files_of(read))
    names = [c.name for c in read.columns]
    schemas = [pq.read_schema(path) for path in opened.paths]
    if (
        schemas
        and all(s.names == names and s.equals(schemas[0]) for s in schemas)
        and not any("ns" in str(t) for t in schemas[0].types)
    ):
        return opened
    opened.close()
    return None


def staged(read: FileRead) -> Path:
    """A folder of Parquet with the rows as DuckDB reads them; made once for one state of the files."""
    matches = files_of(read)
    infos = [(str(m.path), m.real.stat()) for m in matches]
    state = [[path, info.st_size, info.st_mtime_ns] for path, info in infos]
    name = hashlib.sha256(json.dumps([read.view, state]).encode()).hexdigest()[:24]
    with _guard:
        folder = _scratch() / name
        guard = _staging.setdefault(name, threading.Lock())
    with guard:  # models that are built side by side may read the same file
        if not (folder / "_SUCCESS").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            with _opened(read, matches) as opened:
                _copy(read, opened, folder)
            (folder / "_SUCCESS").touch()
    return folder


def _opened(read: FileRead, matches: list[Match]) -> Opened:
    try:
        return Opened(matches, place_of(read))
    except SqlProblems as error:
        raise _not_read(read, error) from None


def _not_read(read: FileRead, error: Exception) -> BuildError:
    said = error.problems[0][1] if isinstance(error, SqlProblems) else str(error)
    return BuildError(f"{read.function}({', '.join(map(repr, shown(read)))}): {said}")


def _copy(read: FileRead, opened: Opened, folder: Path) -> None:
    columns = ", ".join(
        f'CAST({_source(c.name, read, opened)} AS {parquet_type(parse(c.duckdb_type))}) AS "{_doubled(c.name)}"'
        for c in read.columns
    )
    try:
        with opened.duckdb(threads=2, spill=folder.parent) as con:
            source = call(read.function, opened.patterns(), dict(read.options))
            con.execute(
                f"COPY (SELECT {columns} FROM {source}) TO '{str(folder).replace(chr(39), chr(39) * 2)}' "
                "(FORMAT parquet, COMPRESSION zstd, PER_THREAD_OUTPUT true, OVERWRITE_OR_IGNORE true)"
            )
    except duckdb.Error as error:
        shutil.rmtree(folder, ignore_errors=True)
        told = opened.said(one_line(brief(str(error))), str(place_of(read).project))
        raise BuildError(f"{read.function}({', '.join(map(repr, shown(read)))}): {told}") from None


def _source(column: str, read: FileRead, opened: Opened) -> str:
    """A column as DuckDB reads it; the file's name without the folder of links."""
    wanted = dict(read.options).get("filename")
    named = wanted if isinstance(wanted, str) and wanted.lower() not in ("true", "false") else "filename"
    if wanted and column.lower() == named.lower():
        return f'substr("{_doubled(column)}", {len(str(opened.folder)) + 1})'
    return f'"{_doubled(column)}"'


def shown(read: FileRead) -> list[str]:
    """The paths as a person knows them: relative to the project folder where they lie in it."""
    project = place_of(read).project
    return [os.path.relpath(p, project) if Path(p).is_relative_to(project) else p for p in read.paths]


def parquet_type(t: Type) -> str:
    """The DuckDB type that Parquet and Spark hold without loss."""
    if t.name == "LIST":
        return parquet_type(t.element) + "[]"
    if t.name == "MAP":
        return f"MAP({parquet_type(t.args[0])}, {parquet_type(t.args[1])})"
    if t.name == "STRUCT":
        return (
            "STRUCT("
            + ", ".join(f'"{_doubled(n)}" {parquet_type(a)}' for n, a in zip(t.fields, t.args, strict=True))
            + ")"
        )
    return _PARQUET.get(t.name, str(t))


def _doubled(name: str) -> str:
    return name.replace('"', '""')


def _scratch() -> Path:
    """This process's own folder for staged files, removed at its end."""
    folder = from_env().data_dir / "tmp" / f"files-{os.getpid()}"
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
