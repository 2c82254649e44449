"""DuckDB over named files: one kept connection a set of folders, locked before the first question, a cursor a
request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from runtime.config import from_env
from runtime.errors import StoreError
from runtime.tracking.schema import SCHEMA

Cursor = duckdb.DuckDBPyConnection
#: A page that takes longer is broken off; exports have no such limit.
PAGE_SECONDS = 20
#: What DuckDB raises for a file whose bytes or types are not what they should be.
DAMAGED = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException, duckdb.DataError)


def quoted(text: str) -> str:
    """A SQL literal."""
    return "'" + text.replace("'", "''") + "'"


@lru_cache(maxsize=32)
def _connection(folders: frozenset[Path], seconds: int) -> duckdb.DuckDBPyConnection:
    """Reads below these folders only. The order matters: once access is off and the settings are locked, nothing widens
    it."""
    made = duckdb.connect(
        ":memory:",
        config={
            "threads": min(os.cpu_count() or 2, 8),
            "memory_limit": from_env().duckdb_memory,
        },
    )
    made.execute("SET TimeZone = 'UTC'")
    made.execute("SET parquet_metadata_cache = true")
    if seconds:
        made.execute(f"SET max_execution_time = {seconds * 1000}")
    made.execute(f"SET allowed_directories = [{', '.join(quoted(f'{folder}/') for folder in sorted(folders))}]")
    made.execute("SET enable_external_access = false")
    made.execute("SET lock_configuration = true")
    return made


@contextmanager
def cursor(folders: Iterable[Path], *, seconds: int = PAGE_SECONDS) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor of the kept connection; 0 seconds for no limit. Raises StoreError for what DuckDB cannot read or
    finish."""
    one = _connection(frozenset(folders), seconds).cursor()
    try:
        yield one
    except duckdb.InterruptException:
        raise StoreError(f"the question took longer than {seconds} s: narrow it, or export the rows") from None
    except duckdb.Error as error:
        if isinstance(error, duckdb.FatalException | duckdb.InternalException):
            _connection.cache_clear()  # what DuckDB gave up answers nothing more
        raise StoreError(f"a record file cannot be read: {str(error).splitlines()[0]}") from None
    finally:
        one.close()


def unreadable(name: str, error: Exception) -> str:
    """What is wrong with one file, as a sentence."""
    return f"{name}.parquet cannot be read: {str(error).splitlines()[0][:300]}"


def tuples(one: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a SELECT with bound values; names that it does not use are left out."""
    return one.execute(sql, {k: v for k, v in values.items() if f"${k}" in sql}).fetchall()


class Columns(NamedTuple):
    """Of a record file."""

    names: frozenset[str]  # those that ours have
    exact: bool  # it has all of them, in our types


def columns_of(place: Path) -> Columns:
    """The columns of a parquet file. Raises StoreError for a file that is none, is cut off or is gone."""
    try:
        said = place.stat()
    except OSError:
        raise StoreError(f"the record file {place.name} is not there any more") from None
    return _columns(place, said.st_mtime_ns, said.st_size)


@lru_cache(maxsize=16_384)
def _columns(place: Path, changed: int, size: int) -> Columns:
    try:
        found = pq.read_schema(place)
        exact = len(found) == len(SCHEMA) and found.equals(SCHEMA)
        return Columns(frozenset(found.names) & frozenset(SCHEMA.names), exact)
    except (pa.ArrowException, OSError):
        raise StoreError(f"the record file {place.name} is no whole parquet file ({size} bytes)") from None
