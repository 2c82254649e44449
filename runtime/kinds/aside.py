"""Work beside other work: while one waits for Spark's planner, for its only task or for a file, the tasks of the other
run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from runtime.lake.internals import activate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


@contextmanager
def aside(spark: SparkSession, work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Begins the work in a thread that has this one's session, pool and job group; what is yielded waits for it and
    returns what it returned, or raises what it raised. The block ends only after the work has, and with its error where
    the block has none."""
    from pyspark import InheritableThread

    done: Future[T] = Future()

    def run() -> None:
        try:
            activate(spark)
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    InheritableThread(target=run, name="aside", daemon=True).start()
    try:
        yield done.result
    except BaseException:
        done.exception()
        raise
    done.result()
