"""The process's one Spark session with Delta. Started at the first need; kept, because a start costs seconds."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime import machine, spark_settings
from runtime.config import Config, from_env
from runtime.lake import internals, java, jvm
from runtime.lake.jars import ready

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("ondatra.spark")
_guard = threading.Lock()
_is_little: Callable[[], bool] = bool


def expect(is_little: Callable[[], bool]) -> None:
    """Of a process that makes one run and ends: what tells whether there is little to do, asked when the JVM starts."""
    global _is_little
    _is_little = is_little


def session(config: Config | None = None) -> SparkSession:
    """The session of this process; the first one on a machine fetches the Delta jars. Raises ConfigError where Java is
    missing or the jars cannot be fetched."""
    with _guard:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        _forget_stopped()
        with suppress(PySparkRuntimeError):  # none was started yet, by whatever thread
            return SparkSession.active()
        config = config or from_env()
        java.find()
        jars = ready(config.jars_dir, config.spark_jars)
        settings = _settings(config)
        start = jvm.start(config.jars_dir, jars) if config.spark_is_here and not config.spark else None
        builder = SparkSession.builder.appName("ondatra").master(config.spark_master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        scratch = config.data_dir / "spark"
        scratch.mkdir(parents=True, exist_ok=True)
        if start is None:  # else they stand on its class path
            builder = builder.config(
                "spark.jars", ",".join(filter(None, [*map(str, jars), settings.get("spark.jars")]))
            )
        brief = jvm.BRIEF if config.spark_is_here and _is_little() else ()
        options = _options(
            scratch, " ".join([spark_settings.WHOLE, *brief, settings.get("spark.driver.extraJavaOptions", "")])
        )
        builder = (
            builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .config("spark.local.dir", settings.get("spark.local.dir", str(scratch)))
            .config("spark.driver.memory", config.driver_memory)
            .config("spark.driver.extraJavaOptions", options)
        )
        interrupt = signal.getsignal(signal.SIGINT)
        own = [f"-Xmx{config.driver_memory}", *shlex.split(options)]
        with _environment(config, settings["spark.driver.bindAddress"], start, own):
            made = builder.getOrCreate()
        if python := sys.executable if config.spark_is_here else settings.get("spark.pyspark.python"):
            made.sparkContext.pythonExec = python  # on this machine the workers have this process's packages
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)  # Spark puts one of its own there, which only ends its jobs
        return made


def is_there() -> bool:
    """Whether this process has an engine already."""
    made = getattr(sys.modules.get("pyspark"), "SparkContext", None)  # None while another thread imports it
    return made is not None and made._active_spark_context is not None


def _settings(config: Config) -> dict[str, str]:
    """What the session is begun with; what of spark-defaults.conf stays ours is said once."""
    for refused in config.spark_refused:
        log.warning("%s", refused)
    address = "" if config.spark_is_here else machine.address_towards(config.spark_master)
    return spark_settings.of_session(config.spark_master, machine.cores(), config.spark, address)


def _forget_stopped() -> None:
    """An engine that was stopped, by a signal to all processes of a group or by itself, is not met again."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None or _works(context):
        return
    with suppress(Exception):  # whatever of it still answers
        context.stop()
    gateway: Any = SparkContext._gateway
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _works(context: Any) -> bool:
    process = getattr(context._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return False
    try:
        return not context._jsc.sc().isStopped()
    except Exception:  # the connection to it is gone
        return False


#: What the JVM gets of the environment: neither the install's secrets nor those of its projects are there for a query.
_KEPT = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TERM|HOSTNAME|LD_LIBRARY_PATH|JAVA_\w+|JDK_\w+|SPARK_\w+|"
    r"HADOOP_\w+|YARN_\w+|KUBERNETES_\w+|KUBECONFIG|PYSPARK_\w+|_PYSPARK_\w+|PYTHON\w+|VIRTUAL_ENV|"
    r"(?:https?|no|all)_proxy|(?:HTTPS?|NO|ALL)_PROXY|SSL_CERT_\w+)\Z"
)


def _options(scratch: Path, more: str) -> str:
    """Of the JVM, besides its memory."""
    log4j = Path(__file__).with_name("log4j2.properties")
    return f"{shlex.quote(f'-Dlog4j.configurationFile={log4j}')} {shlex.quote(f'-Djava.io.tmpdir={scratch}')} {more}"


@contextmanager
def _environment(config: Config, bound: str, start: jvm.Start | None, own: Sequence[str]) -> Iterator[None]:
    """The JVM is started with a part of the environment, bound to that address, and without Spark's scripts where it is
    known how. pyspark hands on all of the environment, and asks nobody."""
    from pyspark import java_gateway

    popen = java_gateway.Popen

    def started(command: Any, **options: Any) -> Any:
        kept = {
            name: value
            for name, value in options.pop("env", os.environ).items()
            if _KEPT.match(name) or config.spark_needs_s3 and name.startswith("AWS_")
        }
        if bound:  # else Java looks for the machine's name, which need not be known to it
            kept.setdefault("SPARK_LOCAL_IP", bound)
        if config.spark_refused:  # else Spark reads that file once more, by itself
            none = config.data_dir / "spark" / "none.conf"
            none.write_text("")
            command = [command[0], "--properties-file", str(none), *command[1:]]
        if start is not None:
            kept |= start.environment
            command = start.command(command[1:], own)
        if sys.stderr.isatty():  # where a person reads, what goes wrong is told by the model that it concerns
            with (config.data_dir / "spark" / "jvm.log").open("ab") as log:
                return popen(command, env=kept, **{**options, "stdout": log, "stderr": log})
        return popen(command, env=kept, **options)

    java_gateway.Popen = started
    try:
        yield
    finally:
        java_gateway.Popen = popen


def isolated(config: Config | None = None) -> SparkSession:
    """A session of its own temporary views over the same engine; it reaches the lake where that lies on S3."""
    config = config or from_env()
    fresh = session(config).newSession()
    for name, value in s3_settings(config).items():
        fresh.conf.set(name, value)
    return fresh


def settle(spark: SparkSession, pool: str) -> None:
    """Makes it the session of this thread, and gives the thread its share of the cores."""
    internals.activate(spark)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)


def name_jobs(spark: SparkSession, group: str | None) -> None:
    """The Spark jobs of this thread belong to the group, so that a cancel ends them."""
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", group)  # type: ignore[arg-type]  # None takes it away
    spark.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "true" if group else None)  # type: ignore[arg-type]


def s3_settings(config: Config) -> dict[str, str]:
    """What Hadoop's s3a has to know of the install's own S3; empty where neither lake nor staging lies there."""
    if not config.spark_needs_s3:
        return {}
    who = from_env().s3  # as they are now: key pairs are changed while a process lives
    return s3a("fs.s3a.", config.s3_endpoint, who.region, who.key, who.secret, who.token)


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
