"""PostgreSQL that is restarted in the middle of a delivery: no answer is lost, and the process that delivers is not
taken for dead."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from services import postgres_server

ROOT = Path(__file__).resolve().parents[2]
SETUP = """
import sys, time
import django
django.setup()
import numpy as np
from ondatra_web import workers
from ondatra_web.models import Answer, Chunk, Delivery, Organization, Run, Sync, Worker, Workspace
from ondatra_web.runs import claims, outbox
from runtime.delivery import answers
from runtime.staging import states
"""
DELIVERS = (
    SETUP
    + """
from django.core.management import call_command
call_command("migrate", verbosity=0)
workers.HEARTBEAT_SECONDS = 1
place = Workspace.objects.create(organization=Organization.objects.create(name="o"), slug="x",
                                 project_dir="/nowhere", mask_key="ab" * 32)
run = Run.objects.create(sync=Sync.objects.create(workspace=place, name="sync.x", kind="merge", function="f"),
                         status="working", staged=True)
chunk = Chunk.objects.create(sync=run.sync, url="file:///c", rows=9, records=9,
                             states=states.pack(np.full(9, states.UNTRIED, dtype=np.uint8)))
Delivery.objects.create(run=run, chunk=chunk, ordinal=0, rows=9, records=9)
claim, database, n = claims.take(run, 1, 1), outbox.DatabaseOutbox(), 0
print(workers.me().pk, flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    database.record(claim, [answers.Entry(n, 1, 0, 0, range(1), "k")], failed_in_row=0)
    database.cancelled(run.pk)
    n += 1
    time.sleep(0.02)
said = [e.call
        for blob in Answer.objects.order_by("pk").values_list("blob", flat=True) for e in answers.unpack(bytes(blob))]
assert sorted(set(said)) == list(range(n)), (n, said)
print("all", flush=True)
sys.stdin.readline()
"""
)
IS_DEAD = SETUP + "print(workers.is_dead(Worker.objects.get(pk=sys.argv[1])))"


@pytest.mark.server
def test_answers_survive_a_restart_of_the_database_and_the_worker_keeps_its_claim(tmp_path: Path) -> None:
    with postgres_server() as server:
        env = {
            **os.environ,
            "DATABASE_URL": server.url,
            "ONDATRA_DATA_DIR": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "ondatra_web.settings",
        }

        def is_dead() -> str:
            return subprocess.run(
                [sys.executable, "-c", IS_DEAD, pk], cwd=ROOT, env=env, capture_output=True, text=True, check=True
            ).stdout.strip()

        process = subprocess.Popen(
            [sys.executable, "-c", DELIVERS, "6"],
            cwd=ROOT,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout
        pk = process.stdout.readline().strip()
        time.sleep(0.5)
        server.stops()
        time.sleep(1.5)
        server.starts()
        assert process.stdout.readline() == "all\n"
        time.sleep(1)
        assert is_dead() == "False"
        process.kill()
        process.wait()
        assert is_dead() == "True"
