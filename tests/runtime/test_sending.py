"""Deliveries of a chunk, from its file to states, counts and record files."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from memory_outbox import MemoryOutbox, run_of, write_chunk
from push_bench import Bench
from web_server import Seen, WebServer

from runtime.delivery.deliver import deliver
from runtime.delivery.outbox import Claim, OpenJob, RecordCounts
from runtime.delivery.run import Progress
from runtime.staging import states


@pytest.fixture
def outbox() -> MemoryOutbox:
    return MemoryOutbox()


def deliver_with(outbox: MemoryOutbox, bench: Bench, push: Any, claim: Claim) -> Progress:
    with outbox.filing() as filing:
        return deliver(claim, run_of(push, bench.context, bench.folder), outbox, filing)


def records(outbox: MemoryOutbox) -> list[dict[str, Any]]:
    """Of all files that were written."""
    paths = [file.path.removeprefix("file://") for closing in outbox.closed for file in closing.files]
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def refuse_large(seen: Seen) -> tuple[int, dict[str, str], bytes]:
    """No body over 400 bytes is taken."""
    return (413, {}, b"too large") if len(seen.body) > 400 else (200, {}, b"{}")


def test_halves_end_with_the_row_that_is_too_large_alone(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    server.reply = refuse_large
    changes = [("update", {"id": n, "note": "x" * (1_000 if n == 5 else 40)}) for n in range(1, 17)]
    deliver_with(outbox, bench, bench.example("halves", backoff=0.001), write_chunk(tmp_path / "staged", changes))

    (closing,) = outbox.closed
    assert closing.counts == RecordCounts(succeeded=15, rejected=1)
    assert closing.states.tolist() == 8 * [states.DONE] + 2 * [states.REJECTED] + 22 * [states.DONE]
    assert [(r["identifier"], r["status_message"]) for r in records(outbox) if r["status"] == "rejected"] == [
        ("5", "too large for the API, even alone")
    ]


def test_halves_never_part_the_images_of_a_row(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    server.reply = lambda _: (413, {}, b"too large")
    bench.lib(
        'def push(rows):\n    http.post("/", json=[r["id"] for r in rows])\n'
        '    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "error: 413" for r in rows}\n',
        backoff=0.001,
        push={"batch_size": 10, "attempts": 4},
    )
    changes = [("update", {"id": n}) for n in range(1, 6)]
    deliver_with(outbox, bench, bench.load(), write_chunk(tmp_path / "staged", changes))

    asked = [seen.json for seen in server.seen]
    assert asked[0] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [ids for ids in asked if any(ids.count(n) != 2 for n in ids)] == []
    assert {n for ids in asked if len(ids) == 2 for n in ids} == {1, 2, 3, 4, 5}


def test_a_delivery_leaves_states_counts_and_records(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    said = {1: "ok", 2: "warn: cut", 3: "reject: no", 4: "error: busy", 5: "ok"}
    bench.lib(
        f"SAID = {said!r}\n\ndef push(rows):\n"
        '    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: SAID[r["id"]] for r in rows}\n'
    )
    changes = [("insert", {"id": n}) for n in range(1, 5)] + [("delete", {"id": 5})]
    deliver_with(outbox, bench, bench.load(), write_chunk(tmp_path / "staged", changes))

    (closing,) = outbox.closed
    assert closing.counts == RecordCounts(succeeded=3, warned=1, rejected=1, retrying=1)
    assert closing.states.tolist() == [states.DONE, states.DONE, states.REJECTED, states.REFUSED, states.DONE]
    assert [(r["identifier"], r["operation"], r["status"], r["status_message"]) for r in records(outbox)] == [
        ("1", "upsert", "succeeded", None),
        ("2", "upsert", "succeeded", "cut"),
        ("3", "upsert", "rejected", "no"),
        ("4", "upsert", "rejected", "busy"),
        ("5", "delete", "succeeded", None),
    ]


JOB = """
def push(rows):
    return {"job": http.post("/jobs", json=[r["id"] for r in rows]).json["id"]}


def poll(job_ref, rows):
    state = http.get("/jobs/" + str(job_ref["job"])).json["state"]
    if state == "working":
        return None
    said = {1: "ok", 2: "reject: bad"}
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: said[r["id"]] for r in rows}
"""
TWO = [("insert", {"id": 1}), ("insert", {"id": 2})]


def jobs_of(server: WebServer, *states_of_it: str) -> None:
    """The destination's job 7 is in these states when it is asked."""
    left = list(states_of_it)
    server.reply = lambda seen: (200, {}, {"id": 7} if seen.method == "POST" else {"state": left.pop(0)})


def async_lib(bench: Bench, **options: Any) -> Any:
    bench.lib(JOB, push={"batch_mode": "async", "poll_interval": "10ms", **options})
    return bench.load()


def test_a_job_is_asked_until_it_has_ended(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    jobs_of(server, "working", "working", "done")
    deliver_with(outbox, bench, async_lib(bench), write_chunk(tmp_path / "staged", TWO))

    (closing,) = outbox.closed
    assert outbox.jobs == [{"job": 7}]
    assert closing.counts == RecordCounts(succeeded=1, rejected=1)
    assert closing.states.tolist() == [states.DONE, states.REJECTED]


def test_a_job_that_is_still_open_keeps_its_rows_blocked(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    jobs_of(server, *["working"] * 100)
    deliver_with(outbox, bench, async_lib(bench, poll_timeout="50ms"), write_chunk(tmp_path / "staged", TWO))

    (closing,) = outbox.closed
    assert closing.counts == RecordCounts(retrying=2)
    assert closing.states.tolist() == [states.BLOCKED, states.BLOCKED]
    assert records(outbox) == []


def open_job(claim: Claim, age: float) -> Claim:
    """The claim with a job of an earlier run over all its rows."""
    blocked = np.full(len(claim.states), states.BLOCKED, dtype=np.uint8)
    job = OpenJob(1, {"job": 7}, np.arange(len(claim.states)), batch_number=1, age=age)
    return replace(claim, states=blocked, jobs=(job,), first_call=2)


def test_a_job_of_an_earlier_run_is_asked_and_nothing_sent_again(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    jobs_of(server, "done")
    claim = open_job(write_chunk(tmp_path / "staged", TWO), age=60)
    deliver_with(outbox, bench, async_lib(bench), claim)

    assert [f"{seen.method} {seen.path}" for seen in server.seen] == ["GET /jobs/7"]
    assert outbox.closed[0].states.tolist() == [states.DONE, states.REJECTED]


def test_a_job_that_is_too_old_is_forgotten_and_its_rows_are_due_again(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    claim = open_job(write_chunk(tmp_path / "staged", TWO), age=8 * 86400)
    deliver_with(outbox, bench, async_lib(bench), claim)

    assert server.seen == []
    assert outbox.closed[0].states.tolist() == [states.UNKNOWN, states.UNKNOWN]
    assert records(outbox)[0]["status_message"] == (
        "the job was still open after 7 days (push.job_max_age) and is forgotten; its rows are due again"
    )


def test_a_call_that_does_not_end_after_a_cancel_leaves_its_rows_unknown(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    gate = threading.Event()

    def never(_: Seen) -> tuple[int, dict[str, str], bytes]:
        outbox.is_cancelled = True
        gate.wait(30)
        return 200, {}, b"{}"

    server.reply = never
    bench.lib('def push(rows):\n    http.post("/")\n    return {}\n', push={"batch_size": 1})
    progress = deliver_with(outbox, bench, bench.load(), write_chunk(tmp_path / "staged", TWO))
    gate.set()

    (closing,) = outbox.closed
    assert progress == Progress(cancelled=True)
    assert closing.states.tolist() == [states.UNKNOWN, states.UNTRIED]
    assert closing.counts == RecordCounts(retrying=1, not_tried=1)


def test_too_many_calls_that_fail_in_a_row_stop_the_delivery(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    bench.lib('def push(rows):\n    fail("down")\n', push={"batch_size": 1, "max_failed_batches": 1})
    progress = deliver_with(outbox, bench, bench.load(), write_chunk(tmp_path / "staged", TWO))

    assert progress.stopped == (
        "1 calls in a row failed (push.max_failed_batches); the rest was not tried and stays due"
    )
    assert outbox.closed[0].counts == RecordCounts(retrying=1, not_tried=1)


def test_calls_side_by_side_answer_every_row(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    bench.lib(
        'def push(rows):\n    http.post("/", json=[r["id"] for r in rows])\n'
        '    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "ok" for r in rows}\n',
        push={"batch_size": 3, "max_concurrent": 4},
    )
    claim = replace(write_chunk(tmp_path / "staged", [("update", {"id": n}) for n in range(50)]), slots=4)
    deliver_with(outbox, bench, bench.load(), claim)

    assert outbox.closed[0].counts == RecordCounts(succeeded=50)
    assert sorted(n for seen in server.seen for n in seen.json) == [n for n in range(50) for _ in range(2)]


def test_calls_one_after_another_send_every_row_once_and_in_order(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    bench.lib(
        'def push(rows):\n    http.post("/", json=[r["id"] for r in rows])\n'
        '    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: "ok" for r in rows}\n',
        push={"batch_size": 900},
    )
    many = [("insert", {"id": n}) for n in range(7_000)]
    deliver_with(outbox, bench, bench.load(), write_chunk(tmp_path / "staged", many))

    assert [n for seen in server.seen for n in seen.json] == list(range(7_000))
