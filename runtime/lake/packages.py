"""What Spark needs beside what it ships, by coordinates, and whether a folder has it. Standard library only."""

from __future__ import annotations

import re
from pathlib import Path

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
