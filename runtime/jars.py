"""Resolves the Delta jars once: `python -m runtime.jars FOLDER`. What Spark ships itself is left out."""
from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
EXCLUDED = ("org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime")
#: Delta's own; everything else that Ivy brings is in Spark's jars folder already.
OWN = ("io.delta_", "io.unitycatalog_")


def resolve(folder: Path) -> list[Path]:
    """The jars in `folder`; needs the network. A file `complete` says that all of them are there."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as cache:
        session = (SparkSession.builder.master("local[1]").config("spark.jars.packages", DELTA).config("spark.jars.excludes", ",".join(EXCLUDED))
                   .config("spark.jars.ivy", cache).config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
                   .config("spark.driver.host", "127.0.0.1").getOrCreate())
        session.stop()
        folder.mkdir(parents=True, exist_ok=True)
        found = [Path(shutil.copy(p, folder)) for p in sorted(Path(cache, "jars").glob("*.jar")) if p.name.startswith(OWN)]
    if not any(p.name.startswith("io.delta_delta-spark") for p in found):
        raise SystemExit(f"the jar of {DELTA} could not be resolved: is the network reachable?")
    (folder / "complete").write_text(DELTA)
    return found


if __name__ == "__main__":
    print("\n".join(p.name for p in resolve(Path(sys.argv[1]))))
