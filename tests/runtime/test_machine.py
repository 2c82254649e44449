"""Defaults follow what the machine, or the container, has."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from runtime import config, machine

GIB = 1024**3


def rooted(folder: Path, groups: str, **files: str) -> Path:
    """A root of 64 GB with these files of /sys/fs/cgroup; `__` stands for a slash."""
    for name, text in {"proc/meminfo": "MemTotal:       67108864 kB\n", "proc/self/cgroup": groups}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name, text in files.items():
        path = folder / "sys/fs/cgroup" / name.replace("__", "/").replace("-", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_without_limits_the_machine_counts(tmp_path: Path) -> None:
    root = rooted(tmp_path, "0::/\n", **{"memory-max": "max\n", "cpu-max": "max 100000\n"})

    assert (machine.cores(root), machine.memory(root)) == (len(os.sched_getaffinity(0)), 64 * GIB)


def test_a_limit_of_cgroups_v2_counts_also_of_a_group_further_up(tmp_path: Path) -> None:
    limits = {"a__memory-max": f"{4 * GIB}", "a__b__memory-max": "max", "a__cpu-max": "150000 100000", "a__b__x": ""}
    root = rooted(tmp_path, "0::/a/b\n", **limits)

    assert (machine.cores(root), machine.memory(root)) == (min(2, len(os.sched_getaffinity(0))), 4 * GIB)


def test_a_limit_of_cgroups_v1_counts_also_where_the_mount_begins_at_the_container(tmp_path: Path) -> None:
    limits = {
        "memory__memory-limit_in_bytes": f"{3 * GIB}",
        "cpu__cpu-cfs_quota_us": "50000",
        "cpu__cpu-cfs_period_us": "100000",
    }
    limits = {name.replace("cpu-cfs", "cpu.cfs"): text for name, text in limits.items()}
    root = rooted(tmp_path, "9:memory:/docker/12\n4:cpu,cpuacct:/docker/12\n", **limits)

    assert (machine.cores(root), machine.memory(root)) == (1, 3 * GIB)


@pytest.mark.parametrize(("gib", "mib"), [(2, 1024), (4, 1800), (16, 4096), (512, 31 * 1024)])
def test_the_heap_is_a_share_of_the_memory(gib: int, mib: int) -> None:
    assert machine.heap(gib * GIB) == mib


def test_the_usual_settings_are_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 16)
    monkeypatch.setattr(machine, "memory", lambda: 64 * GIB)
    large, tight = config.read({}), config.read({"SPARK_DRIVER_MEMORY": "2g"})

    assert (large.spark_master, large.driver_memory, large.builds) == ("local[16]", "16384m", 8)
    assert (tight.driver_memory, tight.builds, tight.heap_mib) == ("2g", 2, 2048)


def test_the_address_towards_a_master_is_the_one_that_it_sees() -> None:
    assert machine.address_towards("spark://127.0.0.1:7077") == "127.0.0.1"
    assert machine.address_towards("k8s://https://127.0.0.1:6443") == "127.0.0.1"
    assert socket.inet_aton(machine.address_towards("yarn"))
