"""`python -m runtime.lake.jars [--check | --beside] delta|s3|GROUP:NAME:VERSION FOLDER`: fetches the jars that Spark
lacks, once, through Spark's own Ivy, and makes the JVM's start quick (`runtime.lake.jvm`): before it ends, or beside
what follows."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from runtime.errors import ConfigError
from runtime.lake.packages import (
    FAILED,
    LAST,
    LOCK,
    PACKAGES,
    artifact,
    come,
    could_not,
    elsewhere,
    packages_of,
    present,
    usable,
)

log = logging.getLogger("ondatra.jars")

EXCLUDED = (
    "software.amazon.awssdk:bundle",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
)


def ready(folder: Path, wanted: str) -> list[Path]:
    """The jars of the folder, `delta` or `s3`; what is missing is fetched once, by one process, and that is said.

    Raises ConfigError with the way out.
    """

    if jars := usable(folder, wanted):
        return jars

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
        _fetch_apart(folder, wanted)
    except OSError as error:
        kept = f"the jars for Spark cannot be kept in {folder} ({error.strerror})"
        raise ConfigError(f"{kept}: {elsewhere(wanted)}") from None
    except subprocess.CalledProcessError as error:
        raise ConfigError(could_not(error.output or "", wanted)) from None
    return usable(folder, wanted)


def _fetch_apart(folder: Path, wanted: str) -> None:
    """In a process of its own: a JVM that has begun takes no more jars."""
    does = "waiting for another process, which fetches" if come(folder) else "fetching"
    log.info("%s the jars of %s for Spark into %s, once", does, {"delta": "Delta"}.get(wanted, "Delta and S3"), folder)
    subprocess.run(
        [sys.executable, "-m", "runtime.lake.jars", "--beside", wanted, str(folder)],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def fetch(folder: Path, wanted: str) -> list[str]:
    """Fetches, and keeps what Spark does not ship itself. Needs the network."""
    import pyspark

    packages = packages_of(wanted)
    with tempfile.TemporaryDirectory() as ivy:
        with suppress(Exception):  # of a JVM that ends where something was not found: then nothing is there
            _resolve(packages, ivy)
        shipped = {artifact(p.name) for p in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
        kept = [p for p in sorted((Path(ivy) / "jars").glob("*.jar")) if artifact(p.name) not in shipped]
        if not any(artifact(p.name) == packages[0].split(":")[1] for p in kept):
            raise SystemExit(f"{packages[0]} could not be fetched: is Maven Central reachable?")
        folder.mkdir(parents=True, exist_ok=True)
        for jar in sorted(kept, key=lambda p: artifact(p.name).startswith(tuple(LAST.values()))):
            shutil.copyfile(jar, folder / f"{jar.name}.part")
            (folder / f"{jar.name}.part").replace(folder / jar.name)
    stamp = folder / "complete"
    before = stamp.read_text().split() if stamp.exists() else []
    stamp.write_text("\n".join(dict.fromkeys([*before, *packages])) + "\n")
    return [p.name for p in kept]


def _resolve(packages: tuple[str, ...], ivy: str) -> None:
    """Puts them into that folder of Ivy's. Spark resolves packages before it starts; no engine has to."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    settings = {
        "spark.master": "local[1]",
        "spark.jars.ivy": ivy,
        "spark.jars.packages": ",".join(packages),
        "spark.jars.excludes": ",".join(EXCLUDED),
    }
    gateway: Any = launch_gateway(SparkConf(loadDefaults=False).setAll(list(settings.items())))
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def main(argv: list[str]) -> int:
    from runtime.lake import jvm

    wanted, folder = argv[-2], Path(argv[-1])
    if "--check" in argv:
        return 0 if present(folder, wanted) and (wanted not in PACKAGES or jvm.is_made(folder)) else 1
    with _alone(folder) as waited:
        if waited and present(folder, wanted):
            return 0
        if not present(folder, wanted):
            _fetch_or_tell(folder, wanted)
        if wanted in PACKAGES or jvm.is_made(folder):
            (jvm.make_beside if "--beside" in argv else jvm.make)(folder)
    return 0


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """One process at a time; whether another one had to be waited for."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waited = False
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waited = True
        yield waited


def _fetch_or_tell(folder: Path, wanted: str) -> None:
    """Leaves word of what went wrong, for the pages."""
    try:
        print("\n".join(fetch(folder, wanted)))
    except BaseException as error:
        (folder / FAILED).write_text(str(error) or type(error).__name__, encoding="utf-8")
        raise
    (folder / FAILED).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
