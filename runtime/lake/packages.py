"""What Spark needs beside what it ships, by coordinates, and whether a folder has it, or will."""

from __future__ import annotations

import fcntl
import re
from contextlib import suppress
from pathlib import Path

from runtime.config import from_env

DELTA = ("io.delta:delta-spark_4.2_2.13:4.4.0",)
#: PostgreSQL as a source; drivers of other databases are fetched by whoever needs them.
POSTGRESQL = ("org.postgresql:postgresql:42.7.8",)
AWS = "2.35.4"
#: A lake on S3. The SDK's bundle would be 686 MB; these parts are all that s3a needs.
S3 = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    *(
        f"software.amazon.awssdk:{part}:{AWS}"
        for part in ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    ),
)
PACKAGES = {"delta": DELTA + POSTGRESQL, "s3": DELTA + POSTGRESQL + S3}
#: What is put into the folder last: where it is, the others are.
LAST = {"delta": "delta-spark_", "s3": "hadoop-aws"}
#: Beside the jars: held by whoever fetches; what the last fetch said that failed.
LOCK, FAILED = "lock", "failed"
COMING = "Spark's jars are being downloaded. Runs wait for them, and begin by themselves once they are there."
#: Folders whose jars were there.
_seen: set[tuple[Path, str]] = set()


def packages_of(wanted: str) -> tuple[str, ...]:
    return PACKAGES.get(wanted) or (wanted,)


def present(folder: Path, wanted: str) -> bool:
    """Whether everything wanted was fetched into the folder before; `complete` names what was."""
    stamp = folder / "complete"
    known = stamp.read_text().split() if stamp.exists() else []
    return set(packages_of(wanted)) <= set(known) and any(folder.glob("*.jar"))


def usable(folder: Path, wanted: str) -> list[Path]:
    """The jars of a folder, whoever put them there; empty where what comes last is missing."""
    jars = sorted(folder.glob("*.jar"))
    return jars if any(artifact(p.name).startswith(LAST[wanted]) for p in jars) else []


def artifact(file_name: str) -> str:
    """org.slf4j_slf4j-api-2.0.13.jar -> slf4j-api. Ivy puts the group before the name; Spark's own jars have none."""
    name = re.sub(r"-\d[^/]*\.jar$", "", file_name)
    group, _, rest = name.partition("_")
    return rest if rest and ("." in group or group == rest) else name


def why_missing(folder: Path, wanted: str) -> str:
    """What whoever waits for the jars of the folder should know; empty where they are there, or nobody has tried to
    fetch them."""
    if (folder, wanted) not in _seen and usable(folder, wanted):
        _seen.add((folder, wanted))
    if (folder, wanted) in _seen:
        return ""
    if come(folder):
        return COMING
    with suppress(OSError):
        return could_not((folder / FAILED).read_text(encoding="utf-8"), wanted)
    return ""


def could_not(said: str, wanted: str) -> str:
    """The sentence for a fetch that failed with these last words."""
    last = (said.strip().splitlines() or ["nothing"])[-1]
    return f"the jars for Spark could not be fetched ({last}): {elsewhere(wanted)}"


def elsewhere(wanted: str) -> str:
    """The way out."""
    command = f"{from_env().python} -m runtime.lake.jars {wanted} FOLDER"
    return f"the next run tries again; offline, fetch them elsewhere ({command}) and set ONDATRA_JARS_DIR"


def come(folder: Path) -> bool:
    """Whether a process fetches jars into the folder now."""
    try:
        with (folder / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
