"""One of Spark's tasks that reads files by DuckDB and writes their rows as Parquet.

It travels to the Python workers by value, so nothing of this project is imported here but what travels with it. It
fails by saying so: what Spark sees of an error is written into logs, and DuckDB's words show values.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from runtime.sql.asking.confined import confined, text

#: What a task's DuckDB may take.
MEMORY = "512MB"
#: How often a part is put into a bucket, and in how many seconds that is answered.
ATTEMPTS, ANSWERS_WITHIN = 3, 60
#: In the folder where the parts are written: one of them cannot be, so the others are not needed.
STOP = "_STOP"


def copy(told: Mapping[str, Any]) -> str:
    """Writes one part of a read; why it did not, if so. Told: `select` the rows; `paths` that DuckDB opens; `name` of
    the Parquet file and the `folder` that it comes into, or else the address for its `upload`; the `version` of DuckDB;
    of each of `files` path, size and time of change (ns), for a machine that may have others; and questions of which
    each has to be answered by the `columns`, if `alike`."""
    stop = Path(told["folder"], STOP) if told["folder"] else None
    if stop and stop.exists():
        return "another part was not written"
    with _own_folder(told["folder"]) as mine:
        why = _copy(told, mine) if mine else "a task can write nothing"
    if stop and why:
        with suppress(OSError):
            stop.touch()
    return why


@contextmanager
def _own_folder(there: str) -> Iterator[Path | None]:
    """A folder for a task alone, from which a file is moved there; none if none can be made."""
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    try:
        mine = tempfile.mkdtemp(prefix="_", dir=there or scratch or None)  # Spark passes over such a name
    except OSError:
        yield None
        return
    try:
        yield Path(mine)
    finally:
        shutil.rmtree(mine, ignore_errors=True)


def _copy(told: Mapping[str, Any], mine: Path) -> str:
    try:
        import duckdb
    except ImportError:
        return "a worker has no DuckDB"
    if duckdb.__version__ != told["version"]:
        return f"a worker has DuckDB {duckdb.__version__}"
    if not all(_same(*file) for file in told["files"]):
        return "a worker has other files, or none"
    try:
        with confined(told["paths"], memory=MEMORY, spill=str(mine)) as con:
            for question in told["alike"]:
                if con.execute(question).fetchall() != [(told["columns"],)]:
                    return "a file has other columns"
            con.execute(f"COPY ({told['select']}) TO {text(f'{mine}/rows')} (FORMAT parquet, COMPRESSION zstd)")
        _hand_over(told, mine / "rows")
    except (duckdb.Error, OSError) as error:
        return f"a task met {type(error).__name__}"
    return ""


def _hand_over(told: Mapping[str, Any], file: Path) -> None:
    """OSError where that fails."""
    from urllib.request import Request, urlopen

    if not told["upload"]:
        os.replace(file, Path(told["folder"], told["name"]))
        return
    headers = {"Content-Length": str(file.stat().st_size)}
    for more in reversed(range(ATTEMPTS)):
        try:
            with file.open("rb") as data:
                request = Request(told["upload"], data, headers, method="PUT")  # noqa: S310  # our own store's
                urlopen(request, timeout=ANSWERS_WITHIN).close()  # noqa: S310
            return
        except OSError:
            if not more:
                raise


def _same(path: str, size: int, changed: int) -> bool:
    """Whether this machine has the same file, not over a link, and lets it be read."""
    try:
        info = os.stat(path)
    except OSError:
        return False
    found = (os.path.realpath(path), info.st_size, info.st_mtime_ns)
    return found == (path, size, changed) and os.access(path, os.R_OK)
