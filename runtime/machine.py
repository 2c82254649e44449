"""What this machine has for a process: cores and memory, as the limits of its container (cgroups v1 and v2) leave
them."""

from __future__ import annotations

import math
import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

MIB = 1024**2
#: The heap of Spark's JVM is this share of the memory, between these bounds; the rest is for DuckDB, Python's workers
#: and the other processes of the install. Above 31 GiB Java's pointers take twice the room.
SHARE, LEAST_HEAP, MOST_HEAP = 4, 1800 * MIB, 31 * 1024 * MIB
#: A route is asked for to this address of the documentation's, to which nothing is sent.
ANYWHERE = "192.0.2.1"


def cores(root: Path = Path("/")) -> int:
    """Cores that this process may use at once: of its affinity, and of its container's quota (begun ones count)."""
    most = len(os.sched_getaffinity(0))
    for folder in _groups(root, "cpu"):
        with suppress(OSError, ValueError, ZeroDivisionError):
            most = min(most, max(1, math.ceil(_quota(folder))))
    return most


def memory(root: Path = Path("/")) -> int:
    """Bytes of memory that this process may use: the machine's, or its container's limit."""
    told = (root / "proc/meminfo").read_text()
    most = int(re.findall(r"MemTotal:\s+(\d+) kB", told)[0]) * 1024
    for folder in _groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # there is no such file, or it says "max"
                most = min(most, int((folder / name).read_text()))
    return most


def heap(memory: int) -> int:
    """MiB of heap for a machine with so many bytes."""
    return min(max(memory // SHARE, min(LEAST_HEAP, memory // 2)), MOST_HEAP) // MIB


def _quota(folder: Path) -> float:
    """Cores that a group may use; ValueError where it says none."""
    if (folder / "cpu.max").exists():
        quota, period = (folder / "cpu.max").read_text().split()
        return int(quota) / int(period)
    quota = (folder / "cpu.cfs_quota_us").read_text()
    if int(quota) < 0:
        raise ValueError("no quota")
    return int(quota) / int((folder / "cpu.cfs_period_us").read_text())


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's group and of those around it. In a container the mount begins at its own group,
    whatever path the file says."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            top = root / "sys/fs/cgroup" / (controller if controllers else "")
            inner = top / path.strip("/")
            yield from (f for f in (inner, *inner.parents) if f == top or top in f.parents)


def address_towards(url: str) -> str:
    """This machine's address on the way to the host that a URL names, or on the way out. Nothing is sent."""
    host = urlsplit(re.sub(r"^k8s://(?=https?://)", "", url).split(",")[0]).hostname or ANYWHERE
    for there in (host, ANYWHERE):
        with suppress(OSError):
            family, kind, protocol, _, address = socket.getaddrinfo(there, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
    return "127.0.0.1"
