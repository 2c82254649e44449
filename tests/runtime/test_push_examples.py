"""The worked examples of docs/push-functions.md, run as they stand there."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from typing import Any

import pytest
from push_bench import DOCS, Bench, outcomes, row
from web_server import Reply, Seen, WebServer

from runtime.model import Column
from runtime.push.call import PushCall


def send(bench: Bench, push: Any, rows: list[dict[str, Any]], **call: Any) -> list[str]:
    result = push.push(PushCall(rows, **call), bench.context)
    return [o.kind + (f": {o.message}" if o.message else "") for o in result.outcomes]


def asked(server: WebServer) -> list[tuple[str, Any]]:
    return [(f"{s.method} {s.path}", json.loads(s.body) if s.body else None) for s in server.seen]


def test_the_docs_have_these_examples() -> None:
    assert re.findall(r"^# lib/(\w+)\.star$", DOCS.read_text(), re.MULTILINE) == [
        "objects",
        "batch",
        "invoices",
        "bulk",
        "sheet",
        "chat",
        "halves",
        "positions",
        "rounds",
        "ids",
        "cleared",
        "moments",
    ]


def test_example_one_object_a_row(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"OBJECTS_TOKEN": "t0ken-value"}
    server.reply = lambda seen: ({"POST": 201, "PATCH": 422, "DELETE": 404}[seen.method], {}, b"said")
    rows = [row(1), row(2, "update_preimage"), row(2, "update_postimage", n=1), row(3, "delete")]
    assert send(bench, bench.example("objects"), rows, args=("contacts",), key_columns=["id"]) == [
        "ok",
        "ok",
        "reject: 422 said",
        "ok",
    ]
    assert asked(server) == [
        ("POST /v2/contacts", {"id": 1}),
        ("PATCH /v2/contacts/2", {"id": 2, "n": 1}),
        ("DELETE /v2/contacts/3", None),
    ]
    assert server.seen[0].headers["idempotency-key"]


def test_example_batch(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"BATCH_KEY": "k3y-value"}
    server.answers((200, {}, {"errors": [{"id": 2, "message": "bad email"}]}))
    rows = [row(1), row(2, "update_preimage"), row(2, "update_postimage"), row(3, "delete")]
    assert send(bench, bench.example("batch"), rows) == ["ok", "ok", "reject: bad email", "ok"]
    assert asked(server) == [("POST /contacts/batch", {"upsert": [{"id": 1}, {"id": 2}], "delete": [3]})]


def test_example_group(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"BOOKS_USER": "us3r", "BOOKS_PASSWORD": "passw0rd"}
    server.reply = lambda seen: (503 if seen.method == "DELETE" else 200, {"Retry-After": "0"}, b"down")
    rows = [row(1, "delete", n=1, _content_hash="x"), row(2, "insert", n=2, _content_hash="y"), row(3, "delete", n=1)]
    for one, invoice in zip(rows, ("A", "A", "B"), strict=True):
        one["id"] = invoice
    assert send(bench, bench.example("invoices"), rows, kind="tracked", key_columns=["id"]) == [
        "ok",
        "ok",
        "error: 503 down",
    ]
    assert asked(server)[:2] == [("PUT /invoices/A", {"lines": [{"id": "A", "n": 2}]}), ("DELETE /invoices/B", None)]


def test_example_bulk_job(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"BULK_CLIENT": "cl1ent", "BULK_SECRET": "s3cret"}
    states = [{"state": "working"}, {"state": "done", "refused": {"2:insert": "bad"}}]

    def reply(seen: Seen) -> Reply:
        if seen.path == "/oauth/token":
            return 200, {}, {"access_token": "t0ken", "expires_in": 3600}
        return 200, {}, {"id": 41} if seen.method == "POST" else states.pop(0)

    server.reply = reply
    push = bench.example("bulk")
    rows = [row(1, email="a"), row(2, email="b")]
    reference = push.push(PushCall(rows), bench.context).job_ref
    assert (reference, push.poll(reference, rows, bench.context).outcomes) == ({"job": 41}, None)
    assert outcomes(push.poll(reference, rows, bench.context)) == [("ok", None, True), ("reject", "bad", True)]
    assert [json.loads(line)["ref"] for line in server.seen[1].body.splitlines()] == ["1:insert", "2:insert"]


def test_example_sheet(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"SHEET_TOKEN": "t0ken-value"}
    columns = [Column("id", "INTEGER", "int"), Column("n", "VARCHAR", "string")]
    call = {"kind": "table", "args": ("my sheet",), "columns": columns}
    assert send(bench, bench.example("sheet"), [row(1, "delete", n="x"), row(2, n="y")], **call) == ["ok", "ok"]
    assert asked(server) == [("PUT /v4/sheets/my%20sheet/values", {"values": [["id", "n"], [2, "y"]]})]
    server.answers((403, {}, b"no"))
    assert send(bench, bench.example("sheet"), [row(2, n="y")], **call) == ["error: the sheet was not written: 403 no"]


def test_example_chat(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"CHAT_WEBHOOK": f"{server.url}/hook/s3cr3t"}
    push = bench.example("chat")
    assert send(bench, push, [row(1, total=9.5, customer="Ada")], kind="append") == ["ok"]
    assert push.finalize(1, 0, bench.context).error == ""
    assert asked(server) == [
        ("POST /hook/s3cr3t", {"text": "Order 1 over 9.5 from Ada"}),
        ("POST /hook/s3cr3t", {"text": "1 orders posted"}),
    ]


def images(number: int, **cells: Any) -> list[dict[str, Any]]:
    """The old and the new image of a row."""
    return [row(number, "update_preimage", **cells), row(number, "update_postimage", **cells)]


def test_example_halves_rejects_the_row_that_is_too_large_alone(bench: Bench, server: WebServer) -> None:
    server.answers((413, {}, b"too large"))
    assert send(bench, bench.example("halves"), images(1)) == ["ok", "reject: too large for the API, even alone"]


def test_example_halves_has_several_rows_tried_again(bench: Bench, server: WebServer) -> None:
    server.answers((413, {}, b"too large"))
    assert send(bench, bench.example("halves"), [row(1), *images(2)]) == [
        "error: 413 too large",
        "ok",
        "error: 413 too large",
    ]


def test_example_positions_gives_each_row_the_result_in_its_place(bench: Bench, server: WebServer) -> None:
    results = [{"id": "x"}, {"error": "bad email"}, {"error": "busy", "temporary": True}]
    server.answers((200, {}, {"results": results}))
    assert send(bench, bench.example("positions"), [row(1), *images(2), row(3)]) == [
        "ok",
        "ok",
        "reject: bad email",
        "error: busy",
    ]


def test_example_positions_believes_no_answer_of_another_length(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, {"results": [{}]}))
    said = send(bench, bench.example("positions"), [row(1), row(2)])
    assert [text.partition(": lib")[0] for text in said] == [
        "error: 1 results for 2 rows: 200 " + '{"results": [{}]}'
    ] * 2


def test_example_rounds_sends_each_id_once_in_a_request_and_in_order(bench: Bench, server: WebServer) -> None:
    rows = [row(n, contact_id=who, score=n) for n, who in enumerate(["a", "b", "a", "a", "c"], 1)]
    server.reply = lambda seen: (200 if len(seen.json) > 1 else 503, {}, b"later")
    assert send(bench, bench.example("rounds"), rows, kind="append") == [
        "ok",
        "ok",
        "error: 503 later",
        "error: 503 later",
        "ok",
    ]
    assert [[(r["id"], r["score"]) for r in seen.json] for seen in server.seen] == [
        [("a", 1), ("b", 2), ("c", 5)],
        [("a", 3)],
        [("a", 4)],
    ]


def test_example_ids_finds_rows_by_what_stays_the_same(bench: Bench, server: WebServer) -> None:
    ids = ["0035g00000AbCdE", "0035g00000AbCde", "Ada@Example.com", "0035g00000XXXXX"]
    answers = [
        {"id": "ada@example.com", "error": "bounced"},
        {"id": "0035g00000AbCdEAAV", "error": None},
        {"id": "0035g00000AbCdeAAF", "error": "locked"},
    ]
    server.answers((200, {}, answers))
    assert send(bench, bench.example("ids"), [{**row(n), "id": id} for n, id in enumerate(ids, 1)]) == [
        "ok",
        "reject: locked",
        "reject: bounced",
        "error: the answer does not name this row",
    ]


def test_example_cleared_tells_null_from_an_empty_text(bench: Bench, server: WebServer) -> None:
    assert send(bench, bench.example("cleared"), images(1, phone=None, note="")) == ["ok", "ok"]
    assert asked(server) == [("PATCH /contacts/1", {"set": {"id": 1, "note": ""}, "clear": ["phone"]})]


@pytest.mark.parametrize(
    ("born", "seen_at"),
    [
        ("1970-01-01", "1970-01-01T00:00:00Z"),
        ("2024-02-29", "2026-01-15T08:09:10.250000"),
        ("1899-12-31", "1969-12-31T23:59:59.999000Z"),
        ("2000-03-01", "2100-02-28T23:59:59"),
    ],
)
def test_example_moments_counts_as_python_does(bench: Bench, server: WebServer, born: str, seen_at: str) -> None:
    assert send(bench, bench.example("moments"), [row(1, born=born, seen_at=seen_at)]) == ["ok"]
    day = datetime.combine(date.fromisoformat(born), datetime.min.time(), UTC)
    moment = datetime.fromisoformat(seen_at.rstrip("Z")).replace(tzinfo=UTC)
    (sent,) = server.seen[0].json
    assert (sent["born"], sent["seen_at"]) == tuple(round(m.timestamp() * 1000) for m in (day, moment))
