"""Deliveries of a chunk, from its file to states, counts and record files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from memory_outbox import MemoryOutbox, run_of, write_chunk
from push_bench import Bench
from web_server import Seen, WebServer

from runtime.delivery.deliver import deliver
from runtime.delivery.outbox import RecordCounts
from runtime.staging import states


@pytest.fixture
def outbox() -> MemoryOutbox:
    return MemoryOutbox()


def deliver_with(outbox: MemoryOutbox, bench: Bench, push: Any, claim: Any) -> None:
    with outbox.filing() as filing:
        deliver(claim, run_of(push, bench.context, bench.folder), outbox, filing)


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
