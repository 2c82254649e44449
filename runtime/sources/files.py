"""Files as DataFrames with DuckDB's semantics, and what tells that they changed.

CSV and JSON are read by DuckDB itself into Parquet, in parallel and in pieces, so that types, NULLs, quoting and errors
are exactly its own; Spark reads Parquet directly where the columns need no conversion.
"""

from __future__ import annotations

import atexit
import glob
import hashlib
import json
import os
import re
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.config import from_env
from runtime.errors import BuildError
from runtime.sql.files import call
from runtime.sql.gate import brief, one_line
from runtime.sql.model import FileRead
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


def files_of(read: FileRead) -> list[Path]:
    """The files that the patterns match now, sorted."""
    found = {Path(match) for pattern in read.paths for match in glob.glob(pattern, recursive=True)}
    return sorted(p for p in found if p.is_file())


def fingerprint(read: FileRead) -> str | None:
    """The files with their sizes and times; None if there are none, or one was written less than two seconds ago."""
    now = time.time_ns()
    out = []
    roots = files_of(read) if read.format != "delta" else sorted(Path(read.paths[0]).glob("_delta_log/*"))
    for path in roots:
        info = path.stat()
        if now - info.st_mtime_ns < SETTLED_NS:
            return None
        out.append([str(path), info.st_size, info.st_mtime_ns])
    return json.dumps(out, separators=(",", ":")) if out else None


def open_file(spark: SparkSession, read: FileRead) -> DataFrame:
    """The rows of a file read, its columns in DuckDB's order, each of the type `read.columns` says. BuildError if
    DuckDB cannot read it."""
    if read.format == "delta":
        frame = spark.read.format("delta").load(read.paths[0])
    elif _direct(read):
        frame = spark.read.parquet(*map(str, files_of(read)))
    else:
        frame = spark.read.parquet(str(staged(read)))
    return frame.selectExpr(
        *(f"CAST({name_quoted(c.name)} AS {c.spark_type}) AS {name_quoted(c.name)}" for c in read.columns)
    )


def _direct(read: FileRead) -> bool:
    """Whether Spark reads these Parquet files as DuckDB does: same plain columns in every file, no options."""
    if read.format != "parquet" or read.options or not all(_PLAIN.match(c.duckdb_type) for c in read.columns):
        return False
    import pyarrow.parquet as pq

    names = [c.name for c in read.columns]
    schemas = [pq.read_schema(path) for path in files_of(read)]
    return (
        bool(schemas)
        and all(s.names == names and s.equals(schemas[0]) for s in schemas)
        and not any("ns" in str(t) for t in schemas[0].types)
    )


def staged(read: FileRead) -> Path:
    """A folder of Parquet with the rows as DuckDB reads them; made once for one state of the files."""
    state = [[str(p), p.stat().st_size, p.stat().st_mtime_ns] for p in files_of(read)]
    name = hashlib.sha256(json.dumps([read.view, state]).encode()).hexdigest()[:24]
    with _guard:
        folder = _scratch() / name
        guard = _staging.setdefault(name, threading.Lock())
    with guard:  # models that are built side by side may read the same file
        if not (folder / "_SUCCESS").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _copy(read, folder)
            (folder / "_SUCCESS").touch()
    return folder


def _copy(read: FileRead, folder: Path) -> None:
    import duckdb

    columns = ", ".join(
        f'CAST("{_doubled(c.name)}" AS {parquet_type(parse(c.duckdb_type))}) AS "{_doubled(c.name)}"'
        for c in read.columns
    )
    con = duckdb.connect(
        ":memory:",
        config={
            "threads": 2,
            "memory_limit": "1GB",
            "temp_directory": str(folder.parent / f"{folder.name}.tmp"),
            "autoinstall_known_extensions": "false",
        },
    )
    try:
        con.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        source = call(read.function, read.paths, dict(read.options))
        con.execute(
            f"COPY (SELECT {columns} FROM {source}) TO '{str(folder).replace(chr(39), chr(39) * 2)}' "
            "(FORMAT parquet, COMPRESSION zstd, PER_THREAD_OUTPUT true, OVERWRITE_OR_IGNORE true)"
        )
    except duckdb.Error as error:
        shutil.rmtree(folder, ignore_errors=True)
        said = f"{read.function}({', '.join(map(repr, shown(read)))}): {one_line(brief(str(error)))}"
        raise BuildError(said.replace(read.root.rstrip("/") + "/", "") if read.root else said) from None
    finally:
        con.close()


def shown(read: FileRead) -> list[str]:
    """The paths as a person knows them: relative to the project folder where they lie in it."""
    return [os.path.relpath(p, read.root) if read.root and Path(p).is_relative_to(read.root) else p for p in read.paths]


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
