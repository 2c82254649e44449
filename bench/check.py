"""Wall time of `check_models` as a command. Usage: python bench/check.py [models, default 200]

Chains of ten models with CTEs, joins, aggregates and windows; the last of each chain is a sync. First without anything
known of them (the file of kept translations is removed before each run), then once more as they are.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
WANTED = 1.0


def project(folder: Path, models: int) -> None:
    for name in ("models/staging", "models/mart", "models/sync", "lib", "in"):
        (folder / name).mkdir(parents=True)
    (folder / "in/people.csv").write_text("id,name,email,paid,born\n1,Ada,a@x,1.5,2020-01-01\n")
    for k in range(5):
        (folder / f"lib/to{k}.star").write_text(
            'API = {"push": {"batch_mode": "atomic"}}\n\ndef push(rows):\n    return None\n'
        )
    (folder / "models/staging/people.sql").write_text(
        "SELECT id, name, email, paid, born FROM read_csv('in/people.csv')\n"
    )
    for i in range(models - 1):
        source = f"mart.m{i - 1}" if i % 10 else "staging.people"
        if i % 10 == 9:
            (folder / f"models/sync/s{i}.sql").write_text(
                f"-- @kind: merge\n-- @unique_key: id\n-- @sink: to{i % 5}\n-- @mask: email\n"
                f"SELECT id, name, email, coalesce(paid, {i}) AS paid, row_number() OVER (PARTITION BY name ORDER BY "
                f"id) AS nr\n"
                f"FROM {source}\nWHERE id > {i}\n"
            )
        else:
            (folder / f"models/mart/m{i}.sql").write_text(
                f"WITH a AS (SELECT id, upper(name) AS name, email, paid, born FROM {source} WHERE id > {i})\n"
                "SELECT a.id, a.name, a.email, sum(a.paid) AS paid, max(a.born) + INTERVAL 1 DAY AS born\n"
                "FROM a LEFT JOIN staging.people p ON p.id = a.id\nGROUP BY ALL\n"
            )


def _used() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _told(took: list[tuple[float, float]]) -> str:
    walls = [wall for wall, _ in took]
    return (
        f"{median(walls):.2f} s wall ({min(walls):.2f} to {max(walls):.2f}), {median(cpu for _, cpu in took):.2f} "
        f"s of processor"
    )


def main(models: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-check-"))
    environment = {
        **os.environ,
        "ONDATRA_DATA_DIR": str(folder / "data"),
        "JAVA_HOME": "/nowhere",
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an install keeps what Python compiled
    project(folder / "project", models)

    def manage(*words: str) -> tuple[float, float]:
        """Seconds of wall and of processor."""
        began, used = time.perf_counter(), _used()
        subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        return time.perf_counter() - began, _used() - used

    manage("migrate", "-v0")
    manage("workspace", "default", "--project", str(folder / "project"))
    start: list[tuple[float, float]] = []
    new: list[tuple[float, float]] = []
    again: list[tuple[float, float]] = []
    for _ in range(RUNS):
        start.append(manage("version"))
        (folder / "data/translations.sqlite3").unlink(missing_ok=True)
        new.append(manage("check_models"))
        again.append(manage("check_models"))
    print(
        f"{models} models: never seen {_told(new)}; again {_told(again)}; a command that only starts Django "
        f"{_told(start)}"
    )
    ours = median(wall for wall, _ in again)
    print(f"check: ratio {ours / WANTED:.2f} (ours {ours:.2f} s, other {WANTED:.2f} s wanted)")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
