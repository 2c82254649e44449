"""Our own: the crash table of the design, each row proven by a real process that dies at that point."""
import subprocess
import sys
import threading
import time

import pytest
from pushing import PUSH, SYNC, contacts, counts, sent, source, table

from bench import chaos
from ondatra_web import jobs
from ondatra_web.models import Run, Workspace

THREE = [(1, "a@x"), (2, "b@x"), (3, "c@x")]
FINALIZE = PUSH + """
def finalize(succeeded, failed):
    http.post("/done", json=[succeeded, failed])
"""
#: point -> what the next run sends, and its counts
NOTHING_SENT = ([("insert", i, e) for i, e in THREE], counts(source=3, unchanged=3, carried=3, planned=3, succeeded=3))
ALL_ANSWERED = ([], counts(source=3, unchanged=3))
AFTER = {"after_commit": NOTHING_SENT, "before_mark": NOTHING_SENT, "after_mark": NOTHING_SENT, "after_answers": ALL_ANSWERED,
         "after_seal": ALL_ANSWERED, "after_files": ALL_ANSWERED, "before_finalize": ALL_ANSWERED}


@pytest.mark.slow
@pytest.mark.parametrize("point", AFTER)
def test_a_process_that_dies_at_any_point_loses_nothing_and_sends_no_answered_row_again(case, point, monkeypatch):
    monkeypatch.setattr(case.engine, "own_spark", point == "after_commit")      # there its Java machine dies with it
    contacts(case, *THREE, text=FINALIZE)
    process = case.spawn(env={"ONDATRA_FAULT": point})
    assert process.process.wait(timeout=240) == -9
    case.dest.clear()
    result = case.run()
    rows, expected = AFTER[point]
    assert (result.exit, sent(case), result.counts(SYNC)) == (0, rows, expected)
    assert [c.json for c in case.dest.calls if c.path == "/done"] == [[3, 0]]
    folder = case.run_folder(SYNC).parent
    import pyarrow.parquet as pq
    found = [row for p in sorted(folder.glob("*/*.parquet")) for row in pq.read_table(p, partitioning=None).to_pylist()]
    assert table(found, "identifier", "status") == [("1", "succeeded"), ("2", "succeeded"), ("3", "succeeded")]


@pytest.mark.slow
def test_after_a_crash_only_the_call_in_flight_may_have_arrived(case):
    rows = [(i, f"p{i}@x") for i in range(1, 7)]
    gate, calls = threading.Event(), iter(range(3))

    def slowly(call):
        if next(calls, None) is None:
            gate.wait(120)
        time.sleep(0.2)
        return 200, {}

    case.dest.rule("POST", "^/push$", handler=slowly)
    contacts(case, *rows, push={"batch_size": 1}, header="-- @on_missing: delete")
    process = case.spawn()
    case.dest.wait_for(4, timeout=180)
    time.sleep(0.6)
    process.kill()
    gate.set()
    case.dest.clear_rules()
    case.dest.clear()
    source(case, *rows[:3])                     # what nobody can know must be deleted, what was never tried need not
    result = case.run()
    assert (result.exit, sent(case)) == (0, [("delete", 4, "p4@x")])


def test_of_all_who_see_the_end_of_a_run_one_calls_finalize(case):
    contacts(case, *THREE, text=FINALIZE + '    print("told:", succeeded)\n')
    run = Run.objects.get(pk=chaos.stage(Workspace.objects.get(slug=case.slug)))
    seen, asked = [], []

    def others(call):
        """While finalize() waits for its answer, messages reach another thread of the worker and another worker."""
        if not asked:                           # who calls a second time is answered at once, or processes would start each other
            asked.append(call)
            jobs.push.fn(run.pk)
            seen.append(subprocess.run([sys.executable, chaos.__file__, "--worker", str(run.pk)], check=False).returncode)
        return 200, {}

    case.dest.rule("POST", "^/done$", handler=others)
    jobs.push.fn(run.pk)
    run.refresh_from_db()
    assert ([c.json for c in case.dest.calls if c.path == "/done"], seen) == ([[3, 0]], [0])
    assert (run.status, run.finalized, run.owner) == ("completed", True, None)
    assert list(run.runlog_set.values_list("text", flat=True)) == ["told: 3"]
    run.status = "working"                      # as if the process had died before it closed the run
    run.save()
    jobs.push.fn(run.pk)
    run.refresh_from_db()
    assert (run.status, len([c for c in case.dest.calls if c.path == "/done"])) == ("completed", 1)
