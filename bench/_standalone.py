"""A standalone Spark of this machine, for benches: a master and two workers that have half of the cores each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from _product import answers, free_port

HOST, WORKERS = "127.0.0.1", 2


@contextmanager
def standalone(cores: int, memory: str = "3g") -> Iterator[dict[str, str]]:
    """What a process's environment says to work there, with executors of so much memory."""
    import pyspark

    home, port = str(Path(pyspark.__file__).parent), free_port()
    url, deploy = f"spark://{HOST}:{port}", "org.apache.spark.deploy"
    env = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m"}
    each = ["--host", HOST, "--cores", str(max(1, cores // WORKERS)), "--memory", memory, "--webui-port", "0"]
    with ExitStack() as stack:
        each += ["--work-dir", stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-spark-")), url]

        def begins(*command: str) -> None:
            process = subprocess.Popen(
                [f"{home}/bin/spark-class", *command], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.kill)

        begins(f"{deploy}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0")
        answers(port, "Spark's master")
        for _ in range(WORKERS):
            begins(f"{deploy}.worker.Worker", *each)
        yield {"SPARK_MASTER": url, "ONDATRA_SPARK_executor_memory": memory, "PYSPARK_PYTHON": sys.executable}


def all_there(spark: Any) -> None:
    """Waits for the executors of a session; of `local` there are none."""
    context = spark.sparkContext
    wanted = 1 if context.master.startswith("local") else 1 + WORKERS  # the driver is one of them
    while context._jsc.sc().getExecutorMemoryStatus().size() < wanted:
        time.sleep(0.1)
    spark.range(1).count()
