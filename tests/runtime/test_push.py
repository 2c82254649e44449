"""Calls of push(), poll() and finalize(): what goes in and what their answers mean."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from push_bench import KEY, ROWS, Bench, outcomes, returning, row, run
from web_server import WebServer

from runtime.custody.secrets import Secrets
from runtime.delivery import rehearsal
from runtime.errors import Cancelled, ProjectError
from runtime.model import Column
from runtime.push.call import PushCall

# sync


def test_each_row_has_its_own_status(bench: Bench) -> None:
    rows = [*ROWS, row(4), row(5)]
    text = returning(
        '{"1:insert": "ok", "2:insert": "warn: cut", "3:insert": "error: busy", "4:insert": "reject: é: '
        '\\"x\\"\\nline 2", "5:insert": "error:"}'
    )
    assert outcomes(bench.push(text, rows)) == [
        ("ok", None, True),
        ("warn", "cut", True),
        ("error", "busy", True),
        ("reject", 'é: "x"\nline 2', True),
        ("error", None, True),
    ]


@pytest.mark.parametrize("message", ["a\x7fb", "\x7f", '\0\t\r\n\\"', "é 😀 </script>", "x" * 60_000])
def test_a_message_arrives_as_it_was_said(bench: Bench, message: str) -> None:
    rows = [row(n, said=f"{n}{message}{n}") for n in (1, 2, 3)]
    assert outcomes(bench.push(returning('{key(r): "error: " + r["said"] for r in rows}'), rows)) == [
        ("error", r["said"], True) for r in rows
    ]


BROKEN = {
    "None": "push() must return a dict of statuses, not None",
    '["ok"]': "push() must return a dict of statuses, not ['ok']",
    '{"1:insert": "ok"}': "push() gave no status for 2 of 3 rows; the first is 2:insert",
    '{str(r["id"]): "ok" for r in rows}': "push() gave no status for 3 of 3 rows; the first is 1:insert",
    '{key(r): "done" for r in rows}': "push() gave 1:insert the status 'done'; allowed are ok, warn: m, error: m, "
    "reject: m",
    '{key(r): "OK" for r in rows}': "push() gave 1:insert the status 'OK'; allowed are ok, warn: m, error: m, "
    "reject: m",
    '{key(r): "ok: fine" for r in rows}': "push() gave 1:insert the status 'ok: fine'; allowed are ok, warn: m, "
    "error: m, reject: m",
    "{}": "push() gave no status for 3 of 3 rows; the first is 1:insert",
    "{key(r): 200 for r in rows}": "push() gave 1:insert the status 200; allowed are ok, warn: m, error: m, reject: m",
    'fail("no access")': "no access",
    "rows[99]": "Index `99` is out of bound (lib/crm.star line 7, in push)",
}


@pytest.mark.parametrize("expression", BROKEN)
def test_a_broken_answer_makes_every_row_an_error_of_which_nothing_is_known(bench: Bench, expression: str) -> None:
    assert outcomes(bench.push(returning(expression))) == [("error", BROKEN[expression], False)] * 3


def test_keys_of_no_row_are_a_warning(bench: Bench) -> None:
    result = bench.push(returning('{k: "ok" for k in [key(r) for r in rows] + ["999:insert", "x"]}'))
    assert (outcomes(result), result.warnings) == (
        [("ok", None, True)] * 3,
        ["push() gave 2 status(es) for rows that were not in its call; the first is '999:insert'"],
    )


def test_two_images_of_one_row_have_a_status_each(bench: Bench) -> None:
    rows = [row(1, "update_preimage"), row(1, "update_postimage")]
    result = bench.push(returning('{"1:update_preimage": "ok", "1:update_postimage": "error: busy"}'), rows)
    assert outcomes(result) == [("ok", None, True), ("error", "busy", True)]


def test_a_message_shows_no_secret(bench: Bench) -> None:
    bench.secrets = {"K": "s3cr3t-value"}
    assert outcomes(bench.push(returning('{key(r): "reject: bad " + env.get("K") for r in rows}')))[0] == (
        "reject",
        "bad ***",
        True,
    )
    assert outcomes(bench.push(returning('fail("bad " + env.get("K"))')))[0] == ("error", "bad ***", False)


@pytest.mark.parametrize("expression", ['{key(r): "reject: " + "ä" * 1000000 for r in rows}', 'fail("ä" * 1000000)'])
def test_a_message_over_64_kib_is_cut_and_says_so(bench: Bench, expression: str) -> None:
    kept = bench.push(returning(expression)).outcomes[0].message
    assert kept and len(kept.encode()) <= 64 * 1024
    assert re.search("ä{30000,}… .cut: 2,000,[0-9]{3} bytes in all.$", kept)


def test_of_a_secret_across_the_cut_nothing_is_left(bench: Bench) -> None:
    bench.secrets["K"] = "s3cr3t-" * 100
    text = '{key(r): "reject: " + "x" * (65536 - 256 - 300) + env.get("K") + "y" * 1000 for r in rows}'
    assert "s3cr3t" not in (bench.push(returning(text)).outcomes[0].message or "s3cr3t")


def test_a_message_of_64_kib_is_kept_whole(bench: Bench) -> None:
    assert bench.push(returning('{key(r): "reject: " + "x" * 65536 for r in rows}')).outcomes[0].message == "x" * 65536


def test_push_is_called_with_what_it_declares(bench: Bench) -> None:
    columns = [Column("id", "INTEGER", "int"), Column("email", "VARCHAR", "string")]
    names = "batch_number, kind, key_columns, columns, run_id, attempt, object"
    said = ", ".join(f'"{n}": {n}' for n in names.split(", "))
    bench.lib(
        f"def push({names}):\n    return {{{said}}}\ndef poll(job_ref):\n    return None\n",
        push={"batch_mode": "async", "args": ["object"]},
    )
    call = PushCall(
        list(ROWS),
        batch_number=3,
        kind="scd2",
        key_columns=("id",),
        columns=columns,
        run_id=9,
        attempt=2,
        args=("contacts",),
    )
    assert bench.load().push(call, bench.context).job_ref == {
        "batch_number": 3,
        "kind": "scd2",
        "key_columns": ["id"],
        "columns": [{"name": "id", "type": "INTEGER"}, {"name": "email", "type": "VARCHAR"}],
        "run_id": 9,
        "attempt": 2,
        "object": "contacts",
    }


def test_a_missing_secret_stops_the_load(bench: Bench) -> None:
    bench.lib(returning("None"), auth={"env": "NOPE"})
    with pytest.raises(ProjectError, match="lib/crm.star:1: auth needs the secret NOPE"):
        bench.load()


def test_a_call_tells_when_it_was_and_how_long_it_waited(bench: Bench) -> None:
    result = bench.push(returning('{key(r): "ok" if http.get("/a") else "" for r in rows}'))
    assert 0 < result.http_seconds <= (result.ended_at - result.started_at).total_seconds() + 0.01


# atomic


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("None", ("ok", None, True)),
        ('fail("refused")', ("error", "refused", True)),
        ("{}", ("error", "push() in atomic mode must return None, not {}", False)),
        ("True", ("error", "push() in atomic mode must return None, not True", False)),
        ("rows[9]", ("error", "Index `9` is out of bound (lib/crm.star line 7, in push)", False)),
    ],
)
def test_atomic_takes_all_or_nothing(bench: Bench, expression: str, expected: tuple[str, str | None, bool]) -> None:
    assert outcomes(bench.push(returning(expression), push={"batch_mode": "atomic"})) == [expected] * 3


# async

JOB = (
    KEY
    + """
def push(rows):
    return {"job": http.post("/jobs").json["id"]}

def poll(job_ref, rows, key_columns):
    state = http.post("/state", json=[job_ref, len(rows), key_columns]).json
    if state == "failed":
        fail("disk full")
    if state == "working":
        return None
    return {key(r): "warn: " + str(state) for r in rows}
"""
)


def poll(bench: Bench, reference: dict[str, Any] | None = None, text: str = JOB, **api: Any) -> Any:
    bench.lib(text, push={"batch_mode": "async"}, **api)
    return bench.load().poll(reference or {"job": 7}, list(ROWS), bench.context, key_columns=["id"])


def test_push_starts_a_job_and_gives_its_reference(bench: Bench, server: WebServer) -> None:
    server.answers(
        (200, {}, {"id": {"big": 9007199254740993, "one": 1.0, "none": None, "list": [{"z": "é"}], "empty": ""}})
    )
    result = bench.push(JOB, push={"batch_mode": "async"})
    assert result.outcomes == [] and repr(result.job_ref) == repr(
        {"job": {"big": 9007199254740993, "one": 1.0, "none": None, "list": [{"z": "é"}], "empty": ""}}
    )


@pytest.mark.parametrize("value", ["None", '"7"', "[7]"])
def test_a_reference_that_is_no_dict_is_an_error(bench: Bench, value: str) -> None:
    result = bench.push(JOB.replace('{"job": http.post("/jobs").json["id"]}', value), push={"batch_mode": "async"})
    assert result.job_ref is None and {(o.kind, o.known) for o in result.outcomes} == {("error", False)}


def test_poll_goes_on_with_none_and_ends_with_statuses(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, "working"), (200, {}, 5))
    assert poll(bench).outcomes is None
    ended = poll(bench, {"big": 2**60, "l": [{"z": 1.0}]})
    assert (outcomes(ended), ended.error) == ([("warn", "5", True)] * 3, "")
    assert server.seen[1].json == [{"big": 2**60, "l": [{"z": 1.0}]}, 3, ["id"]]


def test_a_job_that_fails_makes_every_row_an_error(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, "failed"))
    result = poll(bench)
    assert (outcomes(result), result.error) == ([("error", "disk full", False)] * 3, "disk full")


def test_a_transport_error_in_poll_is_no_answer(bench: Bench) -> None:
    bench.base_url = "http://127.0.0.1:9"
    result = poll(bench)
    assert (result.outcomes, result.error) == (None, "") and "poll() got no answer" in result.warnings[0]


def test_statuses_of_poll_that_miss_a_row_fail_the_whole_job(bench: Bench, server: WebServer) -> None:
    server.answers((200, {}, 5))
    result = poll(bench, text=JOB.replace("for r in rows}", 'for r in rows if r["id"] != 2}'))
    assert outcomes(result) == [("error", "poll() gave no status for 1 of 3 rows; the first is 2:insert", False)] * 3


def test_a_cancel_inside_poll_raises_so_that_the_job_stays_open(bench: Bench, server: WebServer) -> None:
    server.answers((503, {"Retry-After": "60"}, b""))
    bench.cancelled = lambda: bool(server.seen)
    with pytest.raises(Cancelled):
        poll(bench, retry=3)


# finalize


@pytest.mark.parametrize("head", ["succeeded, failed", "failed, succeeded", "good, bad"])
def test_finalize_gets_both_numbers(bench: Bench, server: WebServer, head: str) -> None:
    order = "[good, bad]" if head == "good, bad" else "[succeeded, failed]"
    bench.lib(returning("None") + f'\ndef finalize({head}):\n    print("done")\n    http.post("/done", json={order})\n')
    push = bench.load()
    result = push.finalize(5, 2, bench.context)
    assert (push.has_finalize, result.error, result.prints, len(result.calls), server.seen[0].json) == (
        True,
        "",
        ["done"],
        1,
        [5, 2],
    )


def test_a_finalize_that_fails_says_why(bench: Bench) -> None:
    bench.lib(returning("None") + '\ndef finalize(succeeded, failed):\n    fail("no webhook")\n')
    assert bench.load().finalize(5, 2, bench.context).error == "no webhook"


def test_what_finalize_says_is_cut_too(bench: Bench) -> None:
    bench.lib(returning("None") + '\ndef finalize(succeeded, failed):\n    fail("x" * 3000000)\n')
    assert len(bench.load().finalize(1, 0, bench.context).error) <= 64 * 1024


def test_a_function_without_finalize_says_so(bench: Bench) -> None:
    bench.lib(returning("None"))
    assert bench.load().has_finalize is False


# the rehearsal of push_test


def test_a_rehearsal_sends_nothing_and_tells_requests_and_statuses(
    bench: Bench, server: WebServer, tmp_path: Path
) -> None:
    bench.lib(
        returning('{key(r): "ok" if http.post("/a", json=r["id"], row=r).ok else "reject: no" for r in rows}'),
        auth={"env": "TOKEN"},
        push={"batch_size": 1},
    )
    (tmp_path / "rows.json").write_text(
        '[{"id": 1}, {"id": 2, "__ondatra_rowid": 9, "__ondatra_change_type": "delete"}]'
    )
    found = rehearsal.rehearse(
        tmp_path,
        "crm",
        rehearsal.read_rows(tmp_path / "rows.json"),
        secrets=Secrets({}, "x"),
        answer=rehearsal.parse_answer(422, None),
    )
    assert server.seen == [] and found.failed
    assert rehearsal.told(found).splitlines() == [
        "call 1: 1 rows, 1 requests",
        f"  POST {server.url}/a  (rows 1:insert)",
        "    Content-Type: application/json",
        "    Authorization: ***",
        "    1",
        "    -> 422",
        "  1:insert reject: no",
        "call 2: 1 rows, 1 requests",
        f"  POST {server.url}/a  (rows 9:delete)",
        "    Content-Type: application/json",
        "    Authorization: ***",
        "    2",
        "    -> 422",
        "  9:delete reject: no",
    ]


@pytest.mark.parametrize(
    "name, text",
    [("r.json", '[{"id": 1, "t": "é"}]'), ("r.jsonl", '{"id": 1, "t": "é"}\n\n'), ("r.csv", "id,t\n1,é\n")],
)
def test_rows_are_read_from_each_format(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert rehearsal.read_rows(tmp_path / name) == [
        {"id": 1, "t": "é", "__ondatra_rowid": 1, "__ondatra_change_type": "insert"}
    ]


def test_many_calls_at_once_keep_their_rows_apart(bench: Bench, server: WebServer) -> None:
    server.reply = lambda seen: (200, {}, seen.json)
    bench.lib(returning('{key(r): "warn: " + str(http.post("/x", json=r["id"]).json) for r in rows}'))
    push, context, found = bench.load(), bench.context, {}

    def work(start: int) -> None:
        rows = [row(n) for n in range(start, start + 20)]
        found[start] = [o.message for o in push.push(PushCall(rows), context).outcomes]

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 160, 20)]
    run(threads)
    assert found == {start: [str(n) for n in range(start, start + 20)] for start in range(0, 160, 20)}
