"""Our own: a run that is cancelled ends within 5 s, whatever it waits for, and loses nothing."""
import threading
import time

import pytest
from pushing import PUSH, SYNC, contacts, run_id, sent

TWO = [(1, "a@x"), (2, "b@x")]
ANSWER = '    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "ok" for r in rows}\n'
POLLED = """
def push(rows):
    http.post("/push", json={"rows": rows})
    return {"job": 1}

def poll(job_ref):
    http.get("/job")
    return None
"""


def cancelled(case, reached):
    """Starts a run, cancels it a moment after `reached` is true; its result and the seconds that it took to end."""
    results = []
    thread = threading.Thread(target=lambda: results.append(case.run()))
    thread.start()
    end = time.monotonic() + 180                # the first one starts the engine, on a machine that may have other work
    while not reached() and time.monotonic() < end and thread.is_alive():
        time.sleep(0.05)
    time.sleep(0.3)
    assert thread.is_alive(), results
    run = case.command("runs", "--workspace", case.slug).stdout.splitlines()[1].split()[0]
    began = time.monotonic()
    assert case.command("cancel", run).exit == 0
    thread.join(60)
    took = time.monotonic() - began
    listed = case.command("runs", "--workspace", case.slug).stdout.splitlines()[1].split()
    assert (listed[0], listed[2], results[0].exit) == (run, "cancelled", 1)
    return results[0], took


@pytest.mark.parametrize("place, concurrent", [("sleep", 1), ("loop", 1), ("request", 1), ("request", 3), ("poll wait", 1), ("poll request", 1), ("finalize", 1)])
def test_a_cancel_ends_a_run_within_five_seconds(case, place, concurrent):
    gate = threading.Event()
    text, push = PUSH, {"batch_size": 1, "max_concurrent": concurrent}
    if place == "sleep":
        text = 'def push(rows):\n    http.post("/push", json={"rows": rows})\n    sleep(50)\n' + ANSWER
    elif place == "loop":
        text = 'def push(rows):\n    http.post("/push", json={"rows": rows})\n    for i in range(1000000000):\n        pass\n' + ANSWER
    elif place.startswith("poll"):
        text, push = POLLED, {"batch_mode": "async", "poll_interval": "40s" if place == "poll wait" else "100ms"}
    elif place == "finalize":
        text = PUSH + 'def finalize(succeeded, failed):\n    http.post("/done")\n'
    waits_at = {"request": "/push", "poll request": "/job", "finalize": "/done"}.get(place)
    if waits_at:
        case.dest.rule("GET" if place == "poll request" else "POST", f"^{waits_at}$", handler=lambda call: (gate.wait(25), (200, {}))[1])
    contacts(case, *TWO, text=text, push=push)
    try:
        result, took = cancelled(case, lambda: any(c.path == (waits_at or ("/job" if "poll" in place else "/push")) for c in case.dest.calls))
    finally:
        gate.set()
    assert took < 5, took
    done = result.counts(SYNC)
    assert done["planned"] == done["succeeded"] + done["retrying"] + done["not_tried"] == 2
    assert (done["succeeded"], done["retrying"]) == {"finalize": (2, 0), "poll wait": (0, 2), "poll request": (0, 2)}.get(place, (0, min(concurrent, 2)))
    case.dest.clear_rules()
    case.dest.clear()
    if place == "finalize" or concurrent > 1:
        contacts(case, *TWO)
        assert case.run().exit == 0
        assert sent(case) == ([] if place == "finalize" else [("insert", i, e) for i, e in TWO])


def test_a_cancel_ends_the_spark_jobs_of_each_sync_that_is_being_built(case):
    contacts(case, *TWO)
    case.run()
    endless = ("-- @kind: merge\n-- @unique_key: id\n-- @sink: crm\n-- @dialect: spark\n"
               "SELECT 1 AS id, CAST(max(hash(a.id, b.id)) AS STRING) AS email FROM range(10000000) a CROSS JOIN range(10000000) b\n")
    case.model("sync/contacts", endless)
    case.model("sync/others", endless)          # the same SQL: what one keeps is not the other's
    case.dest.clear()
    runs = lambda: [line.split() for line in case.command("runs", "--workspace", case.slug).stdout.splitlines()[1:]]    # noqa: E731
    results = []
    thread = threading.Thread(target=lambda: results.append(case.run()))
    thread.start()
    end = time.monotonic() + 180
    while [r[2] for r in runs()[:2]] != ["working"] * 2 and time.monotonic() < end and thread.is_alive():
        time.sleep(0.05)
    time.sleep(1)
    assert thread.is_alive(), results
    first, second = (r[0] for r in runs()[:2])
    assert case.command("cancel", first).exit == 0
    began = time.monotonic()
    while runs()[0][2] != "cancelled" and time.monotonic() < began + 60:
        time.sleep(0.05)
    assert time.monotonic() - began < 5 and runs()[1][2] == "working" and thread.is_alive()
    began = time.monotonic()
    assert case.command("cancel", second).exit == 0
    thread.join(60)
    assert time.monotonic() - began < 5
    assert [r[2] for r in runs()[:2]] == ["cancelled"] * 2 and results[0].exit == 1
