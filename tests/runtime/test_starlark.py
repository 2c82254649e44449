"""Starlark: built-ins, helpers, limits, and errors that say where."""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from push_bench import KEY, ROWS, Bench, outcomes, returning, row, run, seconds
from web_server import slowly, web_server

from runtime.errors import Cancelled
from runtime.push import starlark
from runtime.push.call import PushCall


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def said(bench: Bench, text: str, **more: object) -> str:
    (message,) = {o.message for o in bench.push(text, **more).outcomes}  # type: ignore[arg-type]
    return message or ""


def test_the_built_ins_give_what_they_say(bench: Bench) -> None:
    bench.secrets = {"NAME": "value"}
    assert bench.see(
        'show(env.get("NAME")); show(env.get("NOPE")); show(env.get("NOPE", "else"))',
        'show(json.encode({"b": 1.0, "a": [None, True, "é"]})); show(json.decode("[1, 2.0]")); show(json.decode("{", '
        '"bad"))',
        'show(md5("a")); show(sha256("a")); show(hmac_sha256("k", "a"))',
        'show(base64_encode("é")); show(base64_decode("w6k=")); show(url_quote("a/b é"))',
    ) == [
        "value",
        None,
        "else",
        '{"b":1.0,"a":[null,true,"é"]}',
        [1, 2.0],
        "bad",
        hashlib.md5(b"a").hexdigest(),
        hashlib.sha256(b"a").hexdigest(),
        hmac.new(b"k", b"a", hashlib.sha256).hexdigest(),
        "w6k=",
        "é",
        "a%2Fb%20%C3%A9",
    ]


def test_time_is_utc_in_iso_8601_and_in_seconds(bench: Bench) -> None:
    now, unix = bench.see("show(time.now()); show(time.unix())")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", now) and abs(unix - time.time()) < 5


def test_uuids_differ_and_idempotency_keys_are_the_same_for_the_same_change(bench: Bench) -> None:
    first, second = (
        bench.see("show([uuid() for r in rows]); show([idempotency_key(r) for r in rows])") for _ in range(2)
    )
    assert len({*first[0], *second[0]}) == 6 and first[1] == second[1] and len(set(first[1])) == 3


def test_the_id_of_a_change_tells_two_equal_changes_of_a_row_apart(bench: Bench) -> None:
    def keys(change: str) -> list[str]:
        bench.lib(
            "def push(rows):\n    return {'k': [idempotency_key(r) for r in rows]}\ndef poll(job_ref):\n    return "
            "None\n",
            push={"batch_mode": "async"},
        )
        ref = bench.load().push(PushCall([ROWS[0]], change_ids=[change]), bench.context).job_ref
        assert ref
        return list(ref["k"])

    assert keys("7") == keys("7") != keys("8")


def test_values_pass_into_starlark_and_back_unchanged(bench: Bench) -> None:
    cells: dict[str, Any] = {
        "int": 9007199254740993,
        "huge": 10**37,
        "one": 1.0,
        "small": 1e-7,
        "none": None,
        "yes": True,
        "text": 'é "q" \u2028',
        "list": [1, [None]],
        "struct": {"z": 1, "a": {"b": 2.0}},
    }
    (got,) = bench.see("show(rows[0])", rows=[row(1, **cells)])
    assert repr(got) == repr(row(1, **cells))


def test_rows_of_plain_values_keep_the_order_of_their_columns(bench: Bench) -> None:
    (got,) = bench.see("show(rows[0])", rows=[row(1, zeta=1, alpha=0.1, mid=None)])
    assert list(got.items()) == list(row(1, zeta=1, alpha=0.1, mid=None).items())


def test_nan_and_infinities_become_none(bench: Bench) -> None:
    assert bench.see("show(rows[0]['a']); show(rows[0]['b'])", rows=[row(1, a=float("nan"), b=[float("inf")])]) == [
        None,
        [None],
    ]


def test_print_goes_to_the_log_without_secrets(bench: Bench) -> None:
    bench.secrets = {"K": "s3cr3t-value"}
    result = bench.push(
        f'{KEY}\ndef push(rows):\n    print("a", 1, None, {{"k": env.get("K")}})\n    return {{key(r): "ok" for r in '
        f"rows}}\n"
    )
    assert result.prints == ['a 1 null {"k":"***"}']


def test_a_variable_that_is_no_secret_is_shown(bench: Bench) -> None:
    bench.secrets = {"URL": "http://crm.example", "K": "s3cr3t-value"}
    text = f'{KEY}\ndef push(rows):\n    said = env.get("URL", secret=False) + env.get("NO", "!", secret=False)\n'
    text += '    print(said, env.get("K"))\n    return {key(r): "warn: " + said for r in rows}\n'
    result = bench.push(text)
    assert (result.prints, result.outcomes[0].message) == (["http://crm.example! ***"], "http://crm.example!")


def test_helpers_are_loaded_from_another_file_and_see_the_built_ins(bench: Bench) -> None:
    bench.lib("", name="unused")
    (bench.folder / "lib/names.star").write_text('def shout(s):\n    return sha256(s).upper() + env.get("X", "!")\n')
    bench.lib(
        'load("lib/names.star", "shout")\n'
        + KEY
        + 'def push(rows):\n    return {key(r): "warn: " + shout("a") for r in rows}\n'
    )
    result = bench.load().push(PushCall(list(ROWS)), bench.context)
    assert outcomes(result) == [("warn", hashlib.sha256(b"a").hexdigest().upper() + "!", True)] * 3


def test_a_changed_helper_is_compiled_again(bench: Bench) -> None:
    for text in ("one", "three"):
        (bench.folder / "lib/names.star").write_text(f'WORD = "{text}"\n')
        result = bench.push(
            f'load("lib/names.star", "WORD")\n{KEY}def push(rows):\n    return {{key(r): "warn: " + WORD for r in '
            f"rows}}\n"
        )
        assert result.outcomes[0].message == text


def test_files_that_load_each_other_are_a_problem(bench: Bench) -> None:
    (bench.folder / "lib/a.star").write_text('load("lib/crm.star", "key")\nx = 1\n')
    bench.lib('load("lib/a.star", "x")\n' + returning("None"))
    assert "circle: lib/crm.star -> lib/a.star -> lib/crm.star" in bench.messages()


def test_a_file_outside_lib_cannot_be_loaded(bench: Bench) -> None:
    (bench.folder / "other.star").write_text("x = 1\n")
    bench.lib('load("lib/../other.star", "x")\n' + returning("None"))
    assert "cannot be loaded" in bench.messages()


def test_an_own_name_that_looks_like_a_built_in_breaks_nothing(bench: Bench) -> None:
    text = "def _http(x):\n    return x\n\ndef _rows(x):\n    return x\n" + returning(
        '{key(r): "ok" for r in _rows(rows)}'
    )
    assert outcomes(bench.push(text)) == [("ok", None, True)] * 3


def test_fail_is_the_message_alone(bench: Bench) -> None:
    assert said(bench, returning('fail("no", "access")')) == "no access"


def test_an_error_names_file_line_and_function(bench: Bench) -> None:
    assert said(bench, "def helper(n):\n    x = [1]\n    return x[n]\n\ndef push(rows):\n    helper(5)\n") == (
        "Index `5` is out of bound (lib/crm.star line 4, in helper)"
    )


def test_an_error_in_a_built_in_names_the_line_that_called_it(bench: Bench) -> None:
    assert said(bench, 'def push(rows):\n    http.post("/x", json=1, body="2")\n') == (
        "ValueError: only one of json=, data= and body= can be given (lib/crm.star line 3, in push)"
    )


def test_an_error_that_one_row_causes_names_the_row(bench: Bench) -> None:
    rows = [row(1, email="a"), row(2, email=None), row(3, email="c")]
    assert said(bench, 'def push(rows):\n    sent = [r["email"] + "!" for r in rows]\n', rows=rows) == (
        "Operation `+` not supported for types `NoneType` and `string` (lib/crm.star line 3, in push, row 2:insert)"
    )


def test_the_row_is_found_by_its_answer_and_nothing_is_sent_twice(bench: Bench) -> None:
    with web_server() as server:
        server.reply = lambda seen: (200, {}, {} if seen.json == 2 else {"name": "x"})
        bench.base_url = server.url
        message = said(
            bench, 'def push(rows):\n    for r in rows:\n        name = http.post("/x", json=r["id"]).json["name"]\n'
        )
        assert message.endswith("(lib/crm.star line 4, in push, row 2:insert)") and len(server.seen) == 2


def test_an_endless_loop_ends_with_its_line(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starlark, "TIME_LIMIT", 0.5)
    text = "def spin():\n    for i in range(1000000000):\n        x = i\n\ndef push(rows):\n    spin()\n"
    assert re.fullmatch(r"the call computed longer than 0.5 s \(lib/crm.star line [34], in spin\)", said(bench, text))


def test_an_endless_loop_at_the_top_of_a_file_is_a_problem(bench: Bench) -> None:
    bench.lib("def spin():\n    for i in range(1000000000):\n        x = i\n\nspin()\n" + returning("None"))
    (problem,) = bench.check()
    assert problem.line in (3, 4) and problem.message == "the call computed longer than 2 s"


def test_a_call_that_takes_too_much_memory_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starlark, "MEMORY_LIMIT", 64 * 1024 * 1024)
    text = "def push(rows):\n    kept = []\n    for i in range(1000000000):\n        kept.append(str(i) * 20)\n"
    assert re.fullmatch(
        r"the call took more than 64 MiB of memory \(lib/crm.star line [45], in push\)", said(bench, text)
    )


def test_endless_recursion_ends(bench: Bench) -> None:
    assert "call stack overflow (lib/crm.star line 3, in deep)" in said(
        bench, "def deep(n):\n    return deep(n + 1)\n\ndef push(rows):\n    deep(1)\n"
    )


@pytest.mark.parametrize("body", ["sleep(60)", "for i in range(1000000000):\n        x = i"])
def test_a_cancel_ends_a_call_within_a_second_or_two(bench: Bench, body: str) -> None:
    stop = threading.Event()
    bench.cancelled = stop.is_set
    threading.Timer(0.3, stop.set).start()

    def push() -> None:
        with pytest.raises(Cancelled):
            bench.push(f"def push(rows):\n    {body}\n")

    assert seconds(push) < 2.5


def test_a_cancel_after_a_request_leaves_rows_whose_fate_is_unknown(bench: Bench) -> None:
    with web_server() as server:
        bench.base_url = server.url
        bench.cancelled = lambda: bool(server.seen)
        result = bench.push('def push(rows):\n    http.post("/x")\n    sleep(60)\n')
        assert (
            outcomes(result) == [("error", "the run was cancelled before push() had answered", False)] * 3
            and len(result.calls) == 1
        )


def test_one_function_serves_several_threads_at_once(bench: Bench) -> None:
    with web_server() as server:
        server.reply = slowly(0.3)
        bench.base_url = server.url
        bench.lib(returning('{key(r): "warn: " + str(http.post("/x", json=r["id"]).json) for r in rows}'))
        push, context, found = bench.load(), bench.context, {}

        def work(n: int) -> None:
            found[n] = push.push(PushCall([row(n)]), context).outcomes[0].message

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        assert seconds(lambda: run(threads)) < 1.5
        assert found == {n: str(n) for n in range(8)}


def test_there_is_no_way_to_files(bench: Bench) -> None:
    bench.lib(returning("open('x')"))
    assert [p.message.split(",")[0] for p in bench.check()] == ["Variable `open` not found"]


def test_built_ins_at_the_top_of_a_file_are_a_problem(bench: Bench) -> None:
    bench.lib('KEY = env.get("K")\n' + returning("None"))
    assert "inside push(), poll() and finalize() only" in bench.messages()
