"""Settings of Spark: what a person gave, what the results need, and what else is usual here.

A person's win but where a model would answer otherwise, or a table of the lake would be another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: In the environment `ONDATRA_SPARK_executor_memoryOverhead` is `spark.executor.memoryOverhead`; two underscores are
#: one.
PREFIX = "ONDATRA_SPARK_"
DELTA = "io.delta.sql.DeltaSparkSessionExtension"

#: What Spark itself shows nobody.
HIDDEN = re.compile(r"secret|password|token|access[._]?key", re.I)

#: What the results rest on, some of it Spark's own usual value. Nobody can change it.
NEEDED = {
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",  # DuckDB's TIMESTAMP has no time zone
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # days before 1582 as they stand; files that an old Spark wrote say so themselves
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # Delta reads its change feed through rows of Java, whose older dates have no 10 October 1582
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.variable.substitute": "false",  # no text names a setting or a variable of the environment
    "spark.submit.deployMode": "client",  # the driver is the worker's process
}
#: Begin the names of settings that change what a SELECT answers.
OLD_ANSWERS = "spark.sql.legacy."

#: Java interprets methods of more than 8,000 bytes for ever, and Spark makes one of all expressions of a projection.
WHOLE = "-XX:-DontCompileHugeMethods"
USUAL = {
    "spark.executor.extraJavaOptions": WHOLE,
    "spark.sql.adaptive.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.merge.materializeSource": "none",  # change sets are computed once before they are merged
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.rangeExchange.sampleSizePerPartition": "2000",
    # a build takes about forty classes: with the hundred that Spark keeps, each model's are compiled anew in each run,
    # and run cold
    "spark.sql.codegen.cache.maxEntries": "2000",
    # steps and rows of WITH RECURSIVE over tables, which Spark ends at 100 and a million
    "spark.sql.cteRecursionLevelLimit": "10000",
    "spark.sql.cteRecursionRowLimit": "-1",
    # what goes to a Python worker at once, which gathers more (`duck_task.gathered`)
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
    "spark.scheduler.mode": "FAIR",
    # the filter of a table's hashes is one large result, which need not go through the block manager
    "spark.task.maxDirectResultSize": "96m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: Of the Spark of one machine alone, where nothing travels.
LOCAL = {
    "spark.broadcast.compress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
#: What a person gave of partitions behind a shuffle, for builds, which choose them by their size (`lake/effort.py`).
GIVEN_PARTITIONS = "spark.ondatra.givenPartitions"
PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class Refused:
    """A setting that stays ours: where it was given, its name and value, and what is expected."""

    place: str
    name: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"{self.name} is {self.value!r} in {self.place} and stays as it is: {self.expected}"


def of_file(environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """spark-defaults.conf of SPARK_CONF_DIR, or of SPARK_HOME: its path and its settings; none where there is none."""
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (home and f"{home}/conf") or ""
    path = Path(folder, "spark-defaults.conf")
    if not folder or not path.is_file():
        return "", {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = re.sub(r"\s*[=:\s]\s*", " ", line.strip(), count=1).partition(" ")
        if name.startswith("spark."):
            found[name] = value.strip()
    return str(path), found


def of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings by the names of their variables."""
    given = {v: text.strip() for v, text in environment.items() if v.startswith(PREFIX) and text.strip()}
    return {variable: given[variable] for variable in sorted(given)}


def name_of(variable: str) -> str:
    """`spark.executor.memory` of `ONDATRA_SPARK_executor_memory`."""
    parts = (part.replace("_", ".") for part in variable.removeprefix(PREFIX).split("__"))
    return "spark." + "_".join(parts)


def why_not(name: str, value: str) -> str:
    """What is expected instead; empty where the setting may be given."""
    if re.search(r"\.[A-Z][A-Z0-9]+(\.|$)", name):
        return "Spark's names are case-sensitive: write them as Spark does, with _ for each dot"
    if name in NEEDED and value != NEEDED[name]:
        return f"models need {NEEDED[name]}"
    if name.startswith(OLD_ANSWERS):
        return "models need Spark's answers of today"
    return ""


def given(environment: Mapping[str, str]) -> dict[str, str]:
    """What of both may be given; the environment's win over the file's."""
    told = {**of_file(environment)[1], **{name_of(v): text for v, text in of_environment(environment).items()}}
    return {name: value for name, value in told.items() if not why_not(name, value)}


def refused(environment: Mapping[str, str]) -> list[Refused]:
    """What of the file stays as it is here: it may be a whole platform's, so that nobody is kept from working."""
    path, told = of_file(environment)
    return [Refused(path, name, value, why) for name, value in told.items() if (why := why_not(name, value))]


def of_session(master: str, cores: int, given: Mapping[str, str], address: str) -> dict[str, str]:
    """What a session is begun with: what is usual on that master, then a person's, then what is needed.

    `address` is where executors elsewhere find the driver.
    """
    local = master.startswith("local")
    usual = LOCAL if local else {"spark.driver.host": address}
    usual = {**USUAL, **usual, PARTITIONS: str(2 * cores if local else 2 * max(cores, 16))}
    extensions = [DELTA, *(e for e in given.get("spark.sql.extensions", "").split(",") if e.strip() not in ("", DELTA))]

    found = {**usual, **given, **NEEDED, "spark.master": master, "spark.sql.extensions": ",".join(extensions)}
    if PARTITIONS in given:
        found[GIVEN_PARTITIONS] = given[PARTITIONS]
    if not local:
        found.setdefault("spark.driver.bindAddress", found["spark.driver.host"])
    return found
