"""What the install stands on: Spark with its Java, the store, the disk, the versions of what it is made of."""

from __future__ import annotations

import platform
import re
import shutil
import socket
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from ondatra_web.environment.findings import BAD, OK, WARNING, Finding
from runtime.errors import ConfigError
from runtime.lake import java, packages
from runtime.store.base import Store

#: Free space (bytes) below which a build of a large table may not end, and below which it is time to look.
LITTLE, FEW = 1 << 30, 5 << 30
#: What the versions of are shown, by the names that people use.
PARTS = {"Django": "django", "Spark": "pyspark", "Delta": "delta-spark", "DuckDB": "duckdb", "Arrow": "pyarrow"}
#: Spark and Delta whose private parts quicken builds (docs/lake.md); builds with others are slower, not wrong.
KNOWN = {"pyspark": "4.2.0", "delta-spark": "4.4.0"}
STANDALONE = re.compile(r"spark://(.+)")


def waits() -> str:
    """Why runs wait, or will fail, for want of Spark's jars; empty where nothing is known to be wrong with them."""
    return packages.why_missing(settings.ONDATRA.jars_dir, settings.ONDATRA.spark_jars)


def spark() -> Finding:
    """Whether a pipeline worker can start its engine: Java, the jars, and a master that takes connections."""
    told = settings.ONDATRA
    try:
        number = java.find()
    except ConfigError as error:
        return Finding("Spark", BAD, f"Java {java.NEEDED} was not found", java.WAY_OUT, str(error))
    if not packages.usable(told.jars_dir, told.spark_jars):
        todo = waits() or (
            "the first run fetches them, which needs the network once; offline, name their folder by ONDATRA_JARS_DIR"
        )
        return Finding("Spark", WARNING, "its jars are not there yet", todo, str(told.jars_dir))

    if master := STANDALONE.fullmatch(told.spark_master):
        address = urlsplit(f"//{master[1].split(',')[0]}")
        try:
            socket.create_connection((address.hostname or "", address.port or 7077), timeout=1).close()
        except OSError as error:
            todo = "start the master, or name another one by SPARK_MASTER"
            return Finding("Spark", BAD, "its master takes no connection", todo, f"{told.spark_master}: {error}")
    said = f"Spark {version('pyspark')} on Java {number}; its jars are there"
    return Finding("Spark", OK, said, detail=told.spark_master)


def store(opened: Store) -> Finding:
    """Raises StoreError that says which of the four failed."""
    opened.check()
    return Finding("Store", OK, "a small file was written, listed, read and deleted", detail=opened.url)


def disk() -> Finding:
    """Where the install keeps its own files, and a lake or store that lies on this machine with them."""
    folder = next(p for p in (settings.ONDATRA.data_dir, *settings.ONDATRA.data_dir.parents) if p.exists())
    usage = shutil.disk_usage(folder)
    said = f"{_size(usage.free)} of {_size(usage.total)} are free in the data folder"
    if usage.free >= FEW:
        return Finding("Disk", OK, said, detail=str(folder))
    todo = "make room: a shorter retention removes records, exports and staged chunks; or move the data folder"
    return Finding("Disk", BAD if usage.free < LITTLE else WARNING, said, todo, str(folder))


def versions() -> Finding:
    there = {name: _version(package) for name, package in PARTS.items()}
    said = ", ".join([f"Ondatra {_own()}", f"Python {platform.python_version()}", *map(" ".join, there.items())])
    if others := [name for name, package in PARTS.items() if there[name] != KNOWN.get(package, there[name])]:
        todo = f"install the versions of requirements.lock: builds with another {' and '.join(others)} are slower"
        return Finding("Versions", WARNING, said, todo)
    return Finding("Versions", OK, said)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _own() -> str:
    """A clone was never installed: its pyproject.toml says it."""
    try:
        return version("ondatra")
    except PackageNotFoundError:
        text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
        found = re.search(r'^version = "(.+)"', text, re.M)
        return found[1] if found else "unknown"


def _size(number: int) -> str:
    return f"{number / (1 << 30):,.1f} GiB"
