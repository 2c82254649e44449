"""The process's one Spark session with Delta. Started at the first need; kept, because a start costs seconds."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.config import Config, from_env
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_guard = threading.Lock()
#: Spark 4.2 needs Java 17 or newer.
NEEDED_JAVA = 17
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",  # DuckDB's TIMESTAMP has no time zone
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.merge.materializeSource": "none",  # change sets are computed once before they are merged
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.rangeExchange.sampleSizePerPartition": "2000",
    # a build takes about forty classes: with the hundred that Spark keeps, each model's are compiled anew in each run,
    # and run cold
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.scheduler.mode": "FAIR",
    # the filter of a table's hashes is one large result, which need not go through the block manager
    "spark.task.maxDirectResultSize": "96m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def session(config: Config | None = None) -> SparkSession:
    """The session of this process. Raises ConfigError where Java or the Delta jars are missing."""
    with _guard:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        with suppress(PySparkRuntimeError):  # none was started yet, by whatever thread
            return SparkSession.active()
        config = config or from_env()
        jars = sorted(str(p) for p in config.jars_dir.glob("*.jar"))
        if not jars:
            raise ConfigError(f"the Delta jars are not in {config.jars_dir}: run bin/up once, or set ONDATRA_JARS_DIR")
        if config.spark_needs_s3 and not any("hadoop-aws" in jar for jar in jars):
            raise ConfigError(
                f"a lake or staging on S3 needs jars that are not in {config.jars_dir}: run bin/up once with these "
                f"settings, "
                f"or python -m runtime.lake.jars s3 {config.jars_dir}"
            )
        _check_java()
        builder = SparkSession.builder.appName("ondatra").master(config.spark_master)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        if config.spark_master.startswith("local"):
            builder = builder.config("spark.broadcast.compress", "false")  # nothing travels
        scratch = config.data_dir / "spark"
        scratch.mkdir(parents=True, exist_ok=True)
        logging = Path(__file__).with_name("log4j2.properties")
        builder = (
            builder.config("spark.jars", ",".join(jars))
            .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .config("spark.local.dir", str(scratch))
            .config("spark.driver.memory", os.environ.get("SPARK_DRIVER_MEMORY", "1800m"))
            .config("spark.driver.extraJavaOptions", f"-Dlog4j.configurationFile={logging} -Djava.io.tmpdir={scratch}")
        )
        return builder.getOrCreate()


def isolated(config: Config | None = None) -> SparkSession:
    """A session of its own temporary views over the same engine; it reaches the lake where that lies on S3."""
    config = config or from_env()
    fresh = session(config).newSession()
    for name, value in s3_settings(config).items():
        fresh.conf.set(name, value)
    return fresh


def activate(spark: SparkSession) -> None:
    """Makes it the session of this thread: Delta's parts ask the active one for their settings, the run's id among
    them."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def settle(spark: SparkSession, pool: str) -> None:
    """Makes it the session of this thread, and gives the thread its share of the cores."""
    activate(spark)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def name_jobs(spark: SparkSession, group: str | None) -> None:
    """The Spark jobs of this thread belong to the group, so that a cancel ends them."""
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", group)  # type: ignore[arg-type]  # None takes it away
    spark.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "true" if group else None)  # type: ignore[arg-type]


def s3_settings(config: Config, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What Hadoop's s3a has to know of the install's own S3; empty where neither lake nor staging lies there."""
    if not config.spark_needs_s3:
        return {}
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"
    return s3a(
        "fs.s3a.",
        config.s3_endpoint,
        region,
        *(env.get(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")),
    )


def s3a(
    prefix: str, endpoint: str | None, region: str, key: str | None, secret: str | None, token: str | None
) -> dict[str, str]:
    """Settings under `fs.s3a.` or, for one bucket alone, `fs.s3a.bucket.NAME.`.

    A key pair is handed on, for executors elsewhere have other environments; without one, the SDK's own chain decides
    (role of the machine, web identity, profile).
    """
    found = {"endpoint.region": region}
    if endpoint:
        found |= {
            "endpoint": endpoint,
            "path.style.access": "true",
            "connection.ssl.enabled": str(not endpoint.startswith("http:")).lower(),
        }
    if key and secret:
        found |= {
            "access.key": key,
            "secret.key": secret,
            **({"session.token": token} if token else {}),
            "aws.credentials.provider": "org.apache.hadoop.fs.s3a."
            + ("TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"),
        }
    else:
        found["aws.credentials.provider"] = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    return {prefix + name: value for name, value in found.items()}


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    way_out = f"install Java {NEEDED_JAVA} (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    if not java:
        raise ConfigError(f"Java was not found: {way_out}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    number = said.split('"')[1].split(".")[0] if '"' in said else "?"
    if not number.isdigit() or int(number) < NEEDED_JAVA:
        raise ConfigError(f"{java} is Java {number}: {way_out}")
