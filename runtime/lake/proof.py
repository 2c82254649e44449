"""Whether the private parts of `internals` and `transactions` that make builds quicker work with the Spark and the
Delta that are loaded.

Seen on a table of three rows, when a build first wants to know, and remembered for the very same Spark, Delta, Java and
code: beside the jars, where set-up proves them, else in the data folder. Whatever fails, then or later, is said once in
the log, and all builds of the Spark application go the plain way from there on: slower, with the same result.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime import config
from runtime.columns import H1, H2, ROWID
from runtime.errors import OndatraError, said_by_spark
from runtime.lake import effort, internals, jvm, losses, transactions, vectors
from runtime.lake.hashes import with_hashes
from runtime.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("ondatra.lake")
#: Versions of Spark and of Delta with which all tests pass both ways.
PROVEN = (("4.2.0", "4.4.0"),)
#: Filters work within compiled code, as in a build of a large table; all else is done sooner without.
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
BEFORE = "SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS t(id, n)"
#: Of rows that are read, because those that stand in a query are made without a task: (1, 'a'), (2, 'B'), (4, 'd').
AFTER = ("if(id = 3, 4, id) AS id", "CASE id WHEN 2 THEN 'B' WHEN 3 THEN 'd' ELSE n END AS n")
#: What the hashes of all rows with the columns a and b go on from.
BEGUN, BEGUN_HASH = (1, '["a", "b"]'), -3603358947772378557
WANTED: dict[str, list[tuple[Any, ...]]] = {
    "passed the filter": [(2, "B"), (4, "d")],
    "the table": [(1, "a", 1), (2, "B", 2), (4, "d", 4)],
    "its change feed": [
        ("delete", 3, "c", 3),
        ("insert", 4, "d", 4),
        ("update_postimage", 2, "B", 2),
        ("update_preimage", 2, "b", 2),
    ],
}
NAME = "proven"
#: By application.
_works: dict[str, bool] = {}
_guard = threading.Lock()


class Differs(Exception):
    """What came of the private parts is not what should have come."""


def works(spark: SparkSession, beside: LakeTable) -> bool:
    """Whether builds may use the private parts. The proof's own table lies beside this one for as long as it takes."""
    if config.from_env().plain_build:
        return False
    application = spark.sparkContext.applicationId
    with _guard:
        if application not in _works:
            _works[application] = _is_known(spark) or _is_proven(spark, beside)
        return _works[application]


def known_in() -> tuple[Path, ...]:
    """The files that may say for what the proof was made."""
    told = config.from_env()
    return told.jars_dir / jvm.FOLDER / NAME, told.data_dir / "spark" / NAME


def _is_known(spark: SparkSession) -> bool:
    said = _proven_for(spark)
    return any(file.is_file() and file.read_text() == said for file in known_in())


def _proven_for(spark: SparkSession) -> str:
    jvm: Any = spark._jvm
    files = (internals.__file__, transactions.__file__, vectors.__file__, __file__)
    code = hashlib.sha256(b"".join(Path(file).read_bytes() for file in files))
    return " ".join([*internals.versions(spark), jvm.System.getProperty("java.version"), code.hexdigest()])


def _remember(spark: SparkSession) -> None:
    for file in known_in():
        with suppress(OSError):  # then the next process proves it again
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = file.with_suffix(f".{os.getpid()}")
            fresh.write_text(_proven_for(spark))
            fresh.replace(file)
            return


def hashes(spark: SparkSession) -> bool:
    """The same of chained hashes alone: they are tried without a table, in no time."""
    try:
        return reads(spark) and internals.begun_hash(spark, BEGUN) == BEGUN_HASH
    except Exception as error:
        give_up(spark, error)
        return False


def reads(spark: SparkSession) -> bool:
    """The same of files that stand in a checksum, and of tables that are created with their rows: what is done so needs
    no proof but that all tests pass so."""
    if config.from_env().plain_build or not _works.get(spark.sparkContext.applicationId, True):
        return False
    return internals.versions(spark) in PROVEN


def give_up(spark: SparkSession, error: BaseException) -> None:
    """The private parts failed in a build: no further one uses them."""
    application = spark.sparkContext.applicationId
    with _guard:
        told, _works[application] = _works.get(application, True), False
    if told:
        causes = re.findall(r"^Caused by: (.+)$", str(error), re.M)
        _say("; ".join([f"failed: {type(error).__name__}: {said_by_spark(error)}", *causes[-1:]]))


def is_to_blame(error: BaseException) -> bool:
    """Whether an error may come from the private parts: neither what the data are at fault for, nor what a person
    ended, nor a machine that was lost, nor what this program says itself."""
    from pyspark.errors import PySparkException

    if isinstance(error, OndatraError) or "SPARK_JOB_CANCELLED" in str(error) or losses.is_loss(error):
        return False
    of_data = isinstance(error, PySparkException) and (error.getSqlState() or "").startswith("22")
    return isinstance(error, Exception) and not of_data and "[USER_RAISED_EXCEPTION]" not in str(error)


def _say(why: str) -> None:
    log.warning("tables are built the plain way, which is slower: the quick parts of Spark and Delta %s", why)


def _is_proven(spark: SparkSession, beside: LakeTable) -> bool:
    loaded = internals.versions(spark)
    if loaded not in PROVEN:
        said = " or ".join("Spark {} with Delta {}".format(*pair) for pair in PROVEN)
        _say(f"are known for {said}, and Spark {loaded[0]} with Delta {loaded[1] or '(unknown)'} is loaded")
        return False
    table = LakeTable(f"{beside.url.rpartition('/')[0]}/_ondatra-proof-{uuid.uuid4().hex}")
    try:
        with effort.fit(spark, 0):
            prove(spark, table)
    except Exception as error:
        if not is_to_blame(error):  # a person ended the run
            raise
        _say(f"do not work: {type(error).__name__}: {said_by_spark(error)}")
        return False
    finally:
        _removed(spark, table)
    _remember(spark)
    return True


def _removed(spark: SparkSession, table: LakeTable) -> None:
    try:
        table.remove(spark)
    except Exception as error:
        log.warning("%s was made to try parts of Spark and Delta and cannot be removed: %s", table.url, error)


def prove(spark: SparkSession, table: LakeTable) -> None:
    """Makes a table with three rows, finds by a filter what changed, and commits it in place. Raises Differs, or
    whatever the private parts raise."""
    columns = [("id", "INT"), ("n", "STRING"), (H1, "BIGINT"), (H2, "BIGINT")]
    table.begun(spark, columns, _hashed(spark.sql(BEFORE)).coalesce(1))()

    _commit(spark, table, _sieved(spark, table))
    _see("the table", table.read(spark).select("id", "n", ROWID), WANTED["the table"])
    feed = table.feed(spark, 1, 1).select("_change_type", "id", "n", ROWID)
    _see("its change feed", feed, WANTED["its change feed"])
    highest = transactions.opened(spark, table.path).highest(ROWID)
    if highest != 4:
        raise Differs(f"the highest row id is 4, and Delta noted {highest}")


def _sieved(spark: SparkSession, table: LakeTable) -> DataFrame:
    """The changed and the new row."""
    from pyspark.sql import functions as F

    before = effort.change(spark, COMPILED)
    made = table.read(spark).agg(internals.filter_of(spark, F.col(H1), 300, 2_400).alias("made")).localCheckpoint()
    source, passed = internals.counted(
        spark, _hashed(table.read(spark).selectExpr(*AFTER), chained=True), F.col("id").cast("bigint")
    )
    new = source.filter(~internals.may_contain(spark, made.scalar(), F.col(H1))).localCheckpoint()
    _see("passed the filter", new.select("id", "n"), WANTED["passed the filter"])
    if passed() != (3, 7):
        raise Differs(f"of three rows with the sum 7, {passed()} were counted in passing")
    effort.change(spark, before)
    return new


def _hashed(rows: DataFrame, *, chained: bool = False) -> DataFrame:
    return with_hashes(rows, ["id", "n"], chained=chained)


def _commit(spark: SparkSession, table: LakeTable, new: DataFrame) -> None:
    """What a build commits of such changes."""
    from pyspark.sql import functions as F

    columns = ["id", "n", H1, H2, ROWID]
    opened = transactions.opened(spark, table.path)
    old = opened.rows(columns).filter("id > 1").localCheckpoint()
    kept = new.withColumn(ROWID, F.col("id").cast("bigint"))
    change = F.expr("CASE id WHEN 2 THEN 'update_postimage' ELSE 'insert' END")
    gone = F.expr("CASE id WHEN 2 THEN 'update_preimage' ELSE 'delete' END")
    told = kept.select(*columns, change.alias("_change_type"))
    rows = kept.select(*columns, F.lit(None).cast("string").alias("_change_type"))
    rows = rows.unionByName(told).unionByName(old.select(*columns, gone.alias("_change_type")))
    opened.without(old)  # the way of many rows
    few = vectors.without(opened, old)
    if few is None:
        raise Differs("no deletion vectors of few rows came")
    opened.commit(few, opened.written(rows.coalesce(1), ROWID))


def _see(what: str, rows: DataFrame, wanted: list[tuple[Any, ...]]) -> None:
    found = sorted(tuple(row) for row in rows.collect())
    if found != wanted:
        raise Differs(f"{what}: {found} came, not {wanted}")


def main() -> None:
    """For the jars of ONDATRA_JARS_DIR, beside ONDATRA_DATA_DIR, where the engine is one of this machine."""
    from runtime.lake import spark

    told = config.from_env()
    if told.spark_is_here:
        spark.expect(lambda: True)
        works(spark.isolated(told), LakeTable(f"{told.data_dir.as_uri()}/table"))


if __name__ == "__main__":
    main()
