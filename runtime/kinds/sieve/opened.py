"""A table's newest version by Delta's own parts: what a scan of it finds and what is committed afterwards are of one
transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.kinds.build import Job
from runtime.lake.table import ROWID, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE, PLACE = "__file", "__place"


@dataclass(frozen=True)
class Opened:
    """`files` are Delta's, all of that version."""

    log: Any
    transaction: Any
    files: Any

    def rows(self, job: Job) -> DataFrame:
        """The table with the place of each row. Of files that are known: asked for by the table's name, Delta makes
        them out several times for each scan."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        jvm: Any = job.spark._jvm
        frame = DataFrame(
            self.log.createDataFrame(self.transaction.snapshot(), self.files, False, jvm.scala.Option.empty()),
            job.spark,
        )
        return frame.select(
            *map(quoted, job.columns),
            ROWID,
            F.expr(f"_metadata.file_path AS {FILE}"),
            F.expr(f"_metadata.row_index AS {PLACE}"),
        )


def opened(job: Job) -> Opened:
    """Raises RuntimeError where the newest version is not the one that the build compares with."""
    jvm: Any = job.spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(job.spark._jsparkSession, job.table.path)
    transaction = log.startTransaction()
    if transaction.snapshot().version() != job.version:
        raise RuntimeError(
            f"{job.table.path} is at version {transaction.snapshot().version()}, not {job.version}: another process "
            f"wrote it"
        )
    return Opened(log, transaction, _files(transaction))


def _files(transaction: Any) -> Any:
    """Few files stand in the checksum of their version; Delta's state of more is a query."""
    told = transaction.snapshot().checksumOpt()
    known = told.get().allFiles() if told.isDefined() else told
    if not known.isDefined():
        return transaction.filterFiles()
    transaction.readWholeTable()
    return known.get()
