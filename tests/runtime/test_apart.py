"""A push function in the process beside this one behaves as one in this process."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from push_bench import ROWS, Bench, outcomes, returning, row
from web_server import WebServer

from runtime.delivery import rehearsal
from runtime.errors import Cancelled
from runtime.push import apart
from runtime.push.call import CallContext, PushCall
from runtime.push.http.answers import Answer
from runtime.push.statuses import OK


def function(bench: Bench, text: str, **api: object) -> apart.ApartPush:
    bench.lib(text, **api)
    return apart.load(bench.folder, "crm", secrets=bench.context.secrets)


def test_outcomes_requests_prints_and_secrets_come_back(bench: Bench, server: WebServer) -> None:
    bench.secrets = {"K": "s3cr3t-value", "OWN": "another-value"}
    server.reply = lambda seen: (200, {}, {"id": seen.json})
    text = '{key(r): "warn: " + str(http.post("/a", json=r["id"], row=r).json["id"]) + env.get("OWN") for r in rows}'
    push = function(
        bench, returning(text) + '\ndef poll(job_ref):\n    print(env.get("NONE", "else"))\n', auth={"env": "K"}
    )
    result = push.push(PushCall([dict(r) for r in ROWS], batch_number=7), bench.context)
    assert outcomes(result) == [("warn", f"{n}***", True) for n in (1, 2, 3)]
    assert [(c.batch_number, c.status, c.request_body, c.rows) for c in result.calls] == [
        (7, 200, str(n), (f"{n}:insert",)) for n in (1, 2, 3)
    ]
    assert {c.request_headers["Authorization"] for c in result.calls} == {"***"}
    assert push.poll({}, [], bench.context).prints == ["else"]
    assert push.redactor.text("another-value") == "***"


def test_an_error_names_line_and_row(bench: Bench) -> None:
    push = function(bench, 'def push(rows):\n    return [r["email"] + "!" for r in rows]\n')
    result = push.push(PushCall([row(1, email="a"), row(2, email=None)]), bench.context)
    assert str(result.outcomes[0].message).endswith("(lib/crm.star line 3, in push, row 2:insert)")


def test_a_cancel_ends_a_call(bench: Bench) -> None:
    push, stop = function(bench, "def push(rows):\n    sleep(60)\n"), threading.Event()
    bench.cancelled = stop.is_set
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        push.push(PushCall(list(ROWS)), bench.context)
    assert time.monotonic() - began < 10


def test_calls_share_the_budget_of_the_worker(bench: Bench, server: WebServer) -> None:
    push = function(bench, returning('[http.get("/a")]'), rate_limit={"requests": 2, "per": "500ms"})
    threads = [threading.Thread(target=push.push, args=(PushCall([row(n)]), bench.context)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at = sorted(s.at for s in server.seen)
    assert len(at) == 6 and all(b - a > 0.45 for a, b in zip(at, at[2:], strict=False))


def test_a_transport_of_ones_own_is_asked_in_this_process(bench: Bench) -> None:
    asked: list[str] = []

    class Recording:
        def send(self, method: str, url: str, headers: object, body: object, timeout: float) -> Answer:
            asked.append(f"{method} {url}")
            return Answer(201, {}, b"{}")

    context: CallContext = replace(bench.context, transport=Recording())
    push = function(bench, returning('{key(r): "warn: " + str(http.get("/a").status_code) for r in rows}'))
    assert outcomes(push.push(PushCall([row(1)]), context)) == [("warn", "201", True)]
    assert asked == [f"GET {bench.base_url}/a"]


def test_a_rehearsal_takes_the_default_of_a_variable_that_is_not_set(bench: Bench) -> None:
    url = 'env.get("URL", "http://127.0.0.1:9") + "/a?k=" + env.get("K")'
    bench.lib(returning(f'{{key(r): "ok" if http.get({url}) else "" for r in rows}}'))
    found = rehearsal.rehearse(bench.folder, "crm", [row(1)], secrets=bench.context.secrets)
    assert "GET http://127.0.0.1:9/a?k=" in rehearsal.told(found)


def test_a_row_that_arrived_is_told_by_the_one_outcome_that_all_such_rows_share(bench: Bench) -> None:
    push = function(bench, returning('{key(r): "ok" for r in rows}'))
    assert [o is OK for o in push.push(PushCall(list(ROWS)), bench.context).outcomes] == [True, True, True]


@pytest.mark.parametrize(
    ("said", "kept"),
    [('"ok"', ["/2"]), ('"error: no" if r["id"] == 3 else "ok"', ["/1", "/2", "/3"])],
    ids=["rows arrived", "a row failed"],
)
def test_of_requests_that_nobody_keeps_none_comes_back(
    bench: Bench, server: WebServer, said: str, kept: list[str]
) -> None:
    server.reply = lambda seen: (404 if seen.path == "/2" else 200, {}, b"{}")
    text = f'{{key(r): {said} for r in rows if http.get("/" + str(r["id"]))}}'
    calls = function(bench, returning(text), api_calls="failures").push(PushCall(list(ROWS)), bench.context).calls
    assert [call.url.removeprefix(bench.base_url) for call in calls] == kept
