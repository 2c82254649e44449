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
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from runtime.config import from_env
from runtime.sources import brought, spread
from runtime.sources.reading import not_read, place_of, refused, rows
from runtime.sources.spread import THREADS, Files
from runtime.sql.asking.confined import text
from runtime.sql.asking.types import name_quoted
from runtime.sql.files import delta
from runtime.sql.files.opened import Opened
from runtime.sql.files.places import Match
from runtime.sql.model import FileRead, SqlProblems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

#: A file younger than this may still be written; it counts as changed.
SETTLED_NS = 2_000_000_000
_PLAIN = re.compile(
    r"(BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|FLOAT|DOUBLE|VARCHAR|DATE|TIMESTAMP|TIMESTAMP WITH TIME "
    r"ZONE|BLOB|DECIMAL\(\d+,\d+\))\Z"
)
_guard = threading.Lock()
_staging: dict[str, threading.Lock] = {}  # by the name of the folder that is being made


def files_of(read: FileRead) -> list[Match]:
    """The files that the patterns stand for now, sorted. BuildError for one that may not be read."""
    try:
        return [m for m in place_of(read).matches(read.paths) if m.real.is_file()]
    except SqlProblems as error:
        raise not_read(read, error) from None


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
        paths = [str(staged(read, spark))] if _here(spark) else _staged_elsewhere(spark, read)
        frame = _reader(spark, read).parquet(*paths)
    return frame.selectExpr(
        *(f"CAST({name_quoted(c.name)} AS {c.spark_type}) AS {name_quoted(c.name)}" for c in read.columns)
    )


def _reader(spark: SparkSession, read: FileRead) -> DataFrameReader:
    """Of what DuckDB wrote. Where Parquet has the very types it is told them, and needs no job to look."""
    if not all(_PLAIN.match(c.duckdb_type) for c in read.columns):
        return spark.read
    return spark.read.schema(", ".join(f"{name_quoted(c.name)} {c.spark_type}" for c in read.columns))


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


def _staged_elsewhere(spark: SparkSession, read: FileRead) -> list[str]:
    """The rows of a read where executors elsewhere find them: written by these where they have the files at the same
    paths, else by this process."""
    matches = files_of(read)
    with _opened(read, matches) as opened:
        make = partial(spread.copied, spark, read, Files(opened, elsewhere=True))
        if paths := brought.made(read.view, _state(read, matches), make):
            return paths
    folder = staged(read)
    return brought.bring(read.view, folder.name, _parts(folder))


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
        raise not_read(read, error) from None
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


def staged(read: FileRead, spark: SparkSession | None = None) -> Path:
    """A folder of Parquet with the rows as DuckDB reads them; made once for one state of the files: by the tasks of a
    Spark on this machine where they are many or large."""
    matches = files_of(read)
    name = _state(read, matches)
    with _guard:
        folder = _scratch() / name
        guard = _staging.setdefault(name, threading.Lock())
    with guard:  # models that are built side by side may read the same file
        if not (folder / "_SUCCESS").exists():
            with _opened(read, matches) as opened:
                if spark is None or not spread.copied(spark, read, Files(opened), folder):
                    _copy(read, opened, folder)
            (folder / "_SUCCESS").touch()
    return folder


def _state(read: FileRead, matches: Sequence[Match]) -> str:
    """A name for what is read of these files as they are."""
    infos = [(str(m.path), m.real.stat()) for m in matches]
    state = [[path, info.st_size, info.st_mtime_ns] for path, info in infos]
    return hashlib.sha256(json.dumps([read.view, state]).encode()).hexdigest()[:24]


def _opened(read: FileRead, matches: list[Match]) -> Opened:
    try:
        return Opened(matches, place_of(read))
    except SqlProblems as error:
        raise not_read(read, error) from None


def _copy(read: FileRead, opened: Opened, folder: Path) -> None:
    """Writes the rows by the DuckDB of this process."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with opened.duckdb(threads=THREADS, spill=folder.parent) as con:
            con.execute(
                f"COPY ({rows(read, str(opened.folder), opened.paths)}) TO {text(str(folder))} "
                "(FORMAT parquet, COMPRESSION zstd, PER_THREAD_OUTPUT true, OVERWRITE_OR_IGNORE true)"
            )
    except duckdb.Error as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise refused(read, str(error), str(opened.folder)) from None


def _scratch() -> Path:
    """This process's own folder for staged files, removed at its end."""
    folder = from_env().data_dir / "tmp" / f"files-{os.getpid()}"
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
