"""Calls in a row: the next one begins while the answer of the one before is written down, and not before that one has
ended well."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from memory_outbox import MemoryOutbox, run_of, write_chunk
from push_bench import Bench, row
from web_server import Seen, WebServer

from runtime.delivery import ahead
from runtime.delivery.answers import BEGUN, Entry
from runtime.delivery.deliver import deliver
from runtime.delivery.outbox import Claim, RecordCounts
from runtime.errors import LeaseLost
from runtime.push import apart, sandbox
from runtime.push.call import PushCall

PUSH = """
def push(rows):
    said = "ok" if http.post("/", json=[r["id"] for r in rows]).ok else "error: refused"
    return {str(r["__ondatra_rowid"]) + ":" + r["__ondatra_change_type"]: said for r in rows}
"""
#: Rows whose answers are committed by the thread that makes the calls.
FULL = 1_000


@pytest.fixture(autouse=True)
def every_call_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "QUICK", 60.0)


@pytest.fixture
def outbox() -> MemoryOutbox:
    return MemoryOutbox()


def loaded(bench: Bench, **options: object) -> apart.ApartPush:
    bench.lib(PUSH, push=options, retry=0, backoff=0.001)
    return apart.load(bench.folder, "crm", secrets=bench.context.secrets)


def sent(outbox: MemoryOutbox, bench: Bench, push: apart.ApartPush, folder: Path, rows: int) -> None:
    claim = write_chunk(folder / "staged", [("insert", {"id": n}) for n in range(1, rows + 1)])
    with outbox.filing() as filing:
        deliver(claim, run_of(push, bench.context, bench.folder), outbox, filing)


def test_a_call_begins_while_the_answer_before_it_is_written_down(
    bench: Bench, server: WebServer, tmp_path: Path
) -> None:
    third_is_there = threading.Event()
    begun_meanwhile: list[bool] = []

    class Slow(MemoryOutbox):
        def record(self, claim: Claim, entries: Sequence[Entry], *, failed_in_row: int | None) -> None:
            super().record(claim, entries, failed_in_row=failed_in_row)
            if any(e.call == 2 and e.codes[0] != BEGUN for e in entries):
                begun_meanwhile.append(third_is_there.wait(10))

    def reply(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        if seen.json[0] == 2 * FULL + 1:
            third_is_there.set()
        return 200, {}, b"{}"

    server.reply, outbox = reply, Slow()
    sent(outbox, bench, loaded(bench, batch_size=FULL), tmp_path, 3 * FULL)

    assert begun_meanwhile == [True]
    assert [closing.counts for closing in outbox.closed] == [RecordCounts(succeeded=3 * FULL)]


def test_what_is_tried_again_goes_before_the_next_call(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    refused = [[4, 5, 6]]
    server.reply = lambda seen: (503 if seen.json in refused and not refused.clear() else 200, {}, b"{}")
    sent(outbox, bench, loaded(bench, batch_size=3, attempts=2), tmp_path, 9)

    assert [seen.json for seen in server.seen] == [[1, 2, 3], [4, 5, 6], [4, 5], [6], [7, 8, 9]]
    assert [closing.counts for closing in outbox.closed] == [RecordCounts(succeeded=9)]


def test_no_call_begins_after_a_cancel(bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path) -> None:
    def reply(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        outbox.is_cancelled = seen.json == [2]
        return 200, {}, b"{}"

    server.reply = reply
    sent(outbox, bench, loaded(bench, batch_size=1), tmp_path, 4)

    assert [seen.json for seen in server.seen] == [[1], [2]]
    assert [closing.counts for closing in outbox.closed] == [RecordCounts(succeeded=2, not_tried=2)]


def test_no_call_begins_where_too_many_have_failed(
    bench: Bench, server: WebServer, outbox: MemoryOutbox, tmp_path: Path
) -> None:
    server.reply = lambda seen: (503 if seen.json > [1] else 200, {}, b"{}")
    sent(outbox, bench, loaded(bench, batch_size=1, attempts=1, max_failed_batches=2), tmp_path, 5)

    assert [seen.json for seen in server.seen] == [[1], [2], [3]]
    assert [closing.counts for closing in outbox.closed] == [RecordCounts(succeeded=1, retrying=2, not_tried=2)]


def test_a_call_that_is_out_has_ended_when_a_delivery_is_lost(bench: Bench, server: WebServer, tmp_path: Path) -> None:
    class Lost(MemoryOutbox):
        def record(self, claim: Claim, entries: Sequence[Entry], *, failed_in_row: int | None) -> None:
            if any(e.call == 2 and e.codes[0] != BEGUN for e in entries):
                raise LeaseLost("taken over")

    push = loaded(bench, batch_size=FULL)
    push.push(PushCall([row(0)]), bench.context)
    there = sandbox.sandbox().process.pid
    with pytest.raises(LeaseLost):
        sent(Lost(), bench, push, tmp_path, 4 * FULL)

    assert [seen.json[0] for seen in server.seen] == [0, 1, FULL + 1, 2 * FULL + 1]
    push.push(PushCall([row(9)]), bench.context)
    assert (server.seen[-1].json, sandbox.sandbox().process.pid) == ([9], there)
