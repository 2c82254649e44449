"""A read of many files, shared out among Spark's tasks: in each DuckDB reads some of them and writes Parquet.

Each task tells DuckDB of all the files and, by the column of their names, which of them it wants. So columns, types,
dialect and what else DuckDB finds out before it reads are those of the whole read, by the same code, and only the
reading is shared out. One thing that column changes: without it DuckDB refuses CSV files whose columns are not alike,
so that is looked at first. Where a task cannot do its part for any reason, the driver reads all files.
"""

from __future__ import annotations

import logging
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from runtime import machine
from runtime.lake import losses
from runtime.sources import read_task
from runtime.sources.reading import columns_alone, is_strict, own_columns, rows
from runtime.sql.asking import confined
from runtime.sql.files.opened import Opened, as_pattern
from runtime.sql.model import FileRead

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("ondatra.sources")
#: Bytes of files from which on tasks read them; with less the driver is done before they begin.
LARGE = 128_000_000
#: Bytes of a task at least, and bytes that a task reads while it would look at all files once: it looks at them first,
#: and shall read for four times as long.
A_TASK, WHILE_LOOKING = 64_000_000, 400_000_000
#: Threads of the driver's own DuckDB: with no more cores on this machine it is done sooner than tasks.
THREADS = 2
#: Tasks for each core at most: some files take longer than others.
FOR_A_CORE = 2
#: Bytes that a worker of Python takes with its DuckDB.
A_WORKER = 700_000_000
#: What a compressed file counts.
COMPRESSED = {".gz": 5, ".zst": 5}


@dataclass(frozen=True)
class Files:
    """The opened files of a read, and how tasks find them: by the links to them, or `elsewhere` by their own paths."""

    opened: Opened
    elsewhere: bool = False

    @property
    def folder(self) -> str:
        """What stands before the files' own paths in those that tasks read."""
        return "" if self.elsewhere else str(self.opened.folder)

    @property
    def paths(self) -> list[Path]:
        return [m.path for m in self.opened.matches] if self.elsewhere else self.opened.paths

    @property
    def states(self) -> list[tuple[str, int, int]]:
        """What tells that another machine has the same files; links lead to the very ones."""
        infos = [(str(m.path), m.real.stat()) for m in (self.opened.matches if self.elsewhere else [])]
        return [(path, info.st_size, info.st_mtime_ns) for path, info in infos]

    @property
    def bytes(self) -> list[int]:
        """What each of them counts."""
        return [m.real.stat().st_size * COMPRESSED.get(m.path.suffix.lower(), 1) for m in self.opened.matches]


def copied(
    spark: SparkSession, read: FileRead, files: Files, folder: Path | None, upload: Callable[[str], str] = lambda _: ""
) -> bool:
    """Whether Spark's tasks wrote the rows as Parquet: into this new folder, which is gone if not, or, without one, to
    the address that `upload` has for each part's name. They do not where that is no gain, or where one of them cannot:
    what DuckDB has against a file is heard when the driver reads it."""
    parts = _parts(spark, read, files)
    if len(parts) < 2:
        return False
    told = [_told(read, files, folder, upload, *part) for part in enumerate(parts)]
    written = False
    if folder:
        shutil.rmtree(folder, ignore_errors=True)  # what a cancelled read left
        folder.mkdir(parents=True)
    try:
        reasons = set(_run(spark, told)) - {""}
        written = not reasons
    except Exception as error:
        if losses.is_loss(error) or "cancelled" in str(error):  # it is done again, or not at all
            raise
        reasons = {f"a task ended with {type(error).__name__}"}
    finally:
        if folder and not written:
            shutil.rmtree(folder, ignore_errors=True)
    if reasons:
        log.info(
            "%s of %d files is read by the driver: %s", read.function, len(files.paths), "; ".join(sorted(reasons))
        )
    return written


def _parts(spark: SparkSession, read: FileRead, files: Files) -> list[range]:
    """The files of each task; one or none where tasks are no gain."""
    sizes, cores = files.bytes, spark.sparkContext.defaultParallelism
    if len(sizes) < 2 or sum(sizes) < LARGE or not (files.elsewhere or cores > THREADS):
        return []
    least = max(A_TASK, int(WHILE_LOOKING * _looking(read, files.opened)))
    most = FOR_A_CORE * cores
    if not files.elsewhere:  # beside the heap, all tasks at once may need what each may
        most = min(most, machine.memory() // 2 // A_WORKER)
    return shares(sizes, min(sum(sizes) // least, most))


def shares(sizes: Sequence[int], wanted: int) -> list[range]:
    """The files in their order, in so many parts of about the same bytes, or fewer."""
    total, before = max(sum(sizes), 1), 0
    begins: dict[int, int] = {}
    for n, size in enumerate(sizes):
        begins.setdefault((2 * before + size) * wanted // (2 * total), n)
        before += size
    bounds = [*begins.values(), len(sizes)]
    return [range(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]


def _looking(read: FileRead, opened: Opened) -> float:
    """Seconds in which DuckDB looks at the files for columns and types; endless if it refuses them."""
    began = time.perf_counter()
    try:
        with opened.duckdb() as con:
            con.execute(f"DESCRIBE {rows(read, str(opened.folder), opened.paths)}")
    except duckdb.Error:
        return sys.maxsize
    return time.perf_counter() - began


def _told(
    read: FileRead, files: Files, folder: Path | None, upload: Callable[[str], str], number: int, part: range
) -> dict[str, Any]:
    """What `read_task.copy` needs to know."""
    name, wanted = f"{number:05}.parquet", [files.paths[n] for n in part]
    return {
        "select": rows(read, files.folder, files.paths, wanted),
        "paths": sorted({*map(str, files.paths), *map(as_pattern, files.paths)}),
        "files": files.states,
        "alike": [columns_alone(read, path) for path in wanted] if is_strict(read) else [],
        "columns": own_columns(read, files.paths[0]),
        "folder": str(folder or ""),
        "name": name,
        "upload": "" if folder else upload(name),
        "version": duckdb.__version__,
    }


def _run(spark: SparkSession, told: list[dict[str, Any]]) -> list[str]:
    from pyspark import cloudpickle

    for module in (read_task, confined):  # a worker may not find this project
        cloudpickle.register_pickle_by_value(module)
    return spark.sparkContext.parallelize(told, len(told)).map(read_task.copy).collect()
