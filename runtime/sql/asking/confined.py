"""A DuckDB that opens the files it is given, and nothing else.

It travels to Spark's Python workers by value too, so nothing of this project is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

#: What no DuckDB that meets a project's text ever loads.
NO_EXTENSIONS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


@contextmanager
def confined(
    paths: Iterable[str], *, threads: int = 1, memory: str = "1GB", spill: str = ""
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that opens these paths (links by their own names, patterns as they are given to a reader), what it
    writes below the folder `spill`, and nothing else."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": threads, **NO_EXTENSIONS}) as con:
        if spill:
            con.execute(f"SET allowed_directories = [{text(spill)}]")
        con.execute(f"SET temp_directory = {text(f'{spill}/spilled' if spill else '')}")
        con.execute(f"SET allowed_paths = [{', '.join(map(text, paths))}]")
        con.execute(f"SET memory_limit = '{memory}'; SET TimeZone = 'UTC'; SET python_enable_replacements = false")
        con.execute("SET preserve_insertion_order = false")
        con.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield con


def text(value: str) -> str:
    """A text as DuckDB's SQL writes it."""
    return "'" + value.replace("'", "''") + "'"
