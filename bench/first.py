"""The first sync of the demo in a fresh data folder, at an earlier commit and as it is now, by turns. Usage: python
bench/first.py [--commit 8e86f52] [--rounds 3]

Both sides run with this interpreter's packages and these jars, set up already: what is timed is `manage.py run --json`,
from its start until every record is delivered, with the JVM that it starts. Processor seconds are those of all its
processes. What set-up prepares for later starts (the archive of classes) lies beside the jars, made by it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _product import ROOT, answers, free_port

COMMIT = "8e86f52"
#: Orphans of our processes become our children (PR_SET_CHILD_SUBREAPER), so that what they took is counted, too.
SUBREAPER = 36


def main(commit: str, rounds: int) -> None:
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    folder = Path(tempfile.mkdtemp(prefix="bench-first-"))
    before = folder / "before"
    quiet("git", "worktree", "add", "--detach", str(before), commit)
    try:
        took: dict[Path, list[tuple[float, float]]] = {before: [], ROOT: []}
        for round_ in range(rounds):
            for tree in took:
                took[tree].append(first_sync(tree, folder / f"data{round_}-{tree.name}"))
                seconds, processor = took[tree][-1]
                name = "before" if tree == before else "now"
                print(f"round {round_}, {name}: {seconds:.1f} s, {processor:.1f} s of a processor", file=sys.stderr)
    finally:
        quiet("git", "worktree", "remove", "--force", str(before))
        shutil.rmtree(folder)

    for name, tree in (("before", before), ("now", ROOT)):
        print(
            f"{name}: {[round(wall, 1) for wall, _ in took[tree]]} s, {median(p for _, p in took[tree]):.1f} s of "
            f"a processor"
        )
    then, now = (median(wall for wall, _ in took[tree]) for tree in (before, ROOT))
    print(f"first: ratio {then / now:.2f} (before {then:.1f} s, now {now:.1f} s)")


def first_sync(tree: Path, data: Path) -> tuple[float, float]:
    """Seconds, and seconds of a processor, of the first run in that data folder."""
    port = free_port()
    environment = {
        **os.environ,
        "ONDATRA_DATA_DIR": str(data),
        "ONDATRA_JARS_DIR": os.environ.get("ONDATRA_JARS_DIR") or str(ROOT / ".venv" / "jars"),
        "DEMO_URL": f"http://127.0.0.1:{port}",
    }

    def manage(*args: str) -> list[str]:
        return [sys.executable, "manage.py", *args]

    for step in (("migrate", "--verbosity", "0"), ("first_user",), ("demo", "load")):
        quiet(*manage(*step), cwd=tree, env=environment)

    server = subprocess.Popen(manage("demo_destination", "--port", str(port)), cwd=tree, env=environment)
    try:
        answers(port, "the demo's destination")
        spent, began = _processor(), time.perf_counter()
        run = subprocess.run(
            manage("run", "--json"), cwd=tree, env=environment, capture_output=True, text=True, check=False
        )
        wall = time.perf_counter() - began
        _wait_for_orphans(server.pid)
        if not _completed(run.stdout):
            raise SystemExit(f"run ended with {run.returncode}: {run.stderr[-2000:] or run.stdout[-2000:]}")
        return wall, _processor() - spent
    finally:
        server.kill()
        server.wait()


def _completed(report: str) -> bool:
    """With rejects: the demo's destination refuses some."""
    try:
        return str(json.loads(report)["status"]).startswith("completed")
    except ValueError:
        return False


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait_for_orphans(*others: int) -> None:
    """Until nothing is left of our processes but these."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        left = {int(pid) for pid in children} - set(others)
        if not left:
            return
        for pid in left:
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)


def quiet(*command: str, **more: object) -> str:
    """What it prints; its errors only where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **{"cwd": ROOT, **more})  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return str(done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--commit", default=COMMIT)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    main(asked.commit, asked.rounds)
