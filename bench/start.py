"""Wall time of `run` when nothing changed: a new process against a warm one. Usage: python bench/start.py

The project is a small merge sync that was delivered once; the second run has nothing to do and starts no JVM.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from _product import ROOT, install, workspace

RUNS = 5


def main() -> None:
    project = install("start") / "project"
    (project / "models/sync").mkdir(parents=True)
    (project / "lib").mkdir()
    (project / "rows.csv").write_text("id,n\n" + "".join(f"{i},{i}\n" for i in range(1000)))
    (project / "models/sync/out.sql").write_text(
        "-- @kind: merge\n-- @unique_key: id\n-- @sink: nothing\nSELECT id, n FROM read_csv('rows.csv')\n"
    )
    (project / "lib/nothing.star").write_text(
        'API = {"push": {"batch_mode": "atomic", "batch_size": 1000}}\n\ndef push(rows):\n    return None\n'
    )
    time.sleep(2.1)  # a file modified under 2 s ago counts as changed

    bench = workspace(project)

    from ondatra_web.runs import execution

    execution.run_here(bench, [], {})

    def timed(action: object) -> float:
        began = time.perf_counter()
        action()  # type: ignore[operator]
        return time.perf_counter() - began

    cold = [
        timed(
            lambda: subprocess.run(
                [sys.executable, "manage.py", "run", "--workspace", "bench", "--json"],
                cwd=ROOT,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        for _ in range(RUNS)
    ]
    warm = [timed(lambda: execution.run_here(bench, [], {})) for _ in range(RUNS)]
    print(
        f"start: ratio {median(cold) / median(warm):.2f} (ours {median(warm) * 1000:.0f} ms warm, other "
        f"{median(cold) * 1000:.0f} ms new process)"
    )


if __name__ == "__main__":
    main()
