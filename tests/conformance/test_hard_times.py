"""Our own: destinations that answer badly or not at all, rows that are given up, runs of so many records."""
import _thread
import json
import socket
import threading
import time

import pytest

from pushing import SYNC, contacts, counts, pushes, sent, statuses, table

THREE = [(1, "a@x"), (2, "b@x"), (3, "c@x")]
OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'
BIG = b'{"statuses": {}, "more": "' + b"x" * 10_000_000 + b'"}'
#: what the server says, and how the row ends
ANSWERS = {
    "garbage that is no HTTP": (b"\x16\x03\x01 what?\r\n\r\n", 1), "half a body": (OK.replace(b"Length: 2", b"Length: 200"), 1),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Ty", 1), "nothing": (b"", 1), "silence": (None, 1),
    "a body that is no JSON": (OK.replace(b"{}", b"\xff\xfe"), 0),
    "10 MB": (OK.replace(b"Length: 2", f"Length: {len(BIG)}".encode()).replace(b"{}", BIG), 0),
}


class Server:
    """Takes requests with one row, says to each what its email asks for; silence holds the line."""

    def __init__(self):
        self.answers, self.asked, self.over = {}, [], threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.over.is_set():
            line, _ = self.socket.accept()
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line):
        with line:
            said = b""
            while b"\r\n\r\n" not in said:
                said += line.recv(65536)
            head, _, body = said.partition(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            while len(body) < length:
                body += line.recv(65536)
            (row,) = json.loads(body)["rows"]
            self.asked.append(row["email"])
            says = self.answers.get(row["email"], OK)
            if says is None:
                self.over.wait(20)
            else:
                line.sendall(says)


def test_a_destination_that_answers_badly_or_not_at_all_loses_no_row(case):
    server = Server()
    server.answers = {name: said for name, (said, _) in ANSWERS.items()}
    contacts(case, *enumerate(ANSWERS, 1), base_url=server.url, timeout=1, push={"batch_size": 1})
    result, due = case.run(), [name for name, (_, due) in ANSWERS.items() if due]
    assert (result.exit, result.counts(SYNC)["retrying"], result.counts(SYNC)["succeeded"]) == (1, len(due), len(ANSWERS) - len(due))
    assert {r["record_payload"].split('"')[-2] for r in case.records(SYNC) if r["status"] == "rejected"} == set(due)
    server.answers, server.asked = {}, []
    result = case.run()
    assert (result.exit, server.asked, result.counts(SYNC)) == (0, due, counts(source=7, unchanged=7, carried=len(due), planned=len(due), succeeded=len(due)))
    server.over.set()


def test_a_row_is_given_up_after_so_many_runs(case):
    contacts(case, *THREE, push={"give_up_after": 2})
    statuses(case, {2: "error: busy"})
    first, second = case.run(), case.run()
    assert (first.counts(SYNC)["retrying"], second.counts(SYNC)) == (1, counts(source=3, unchanged=3, carried=1, planned=1, rejected=1))
    assert table(case.records(SYNC), "identifier", "status", "status_message") == [("2", "rejected", "gave up after 2 runs: busy")]
    case.dest.clear()
    assert (case.run().exit, case.dest.calls) == (0, [])


def test_a_limit_sends_so_many_records_and_the_rest_stays_due(case):
    contacts(case, *THREE, push={"batch_size": 1})
    result = case.command("run", "--workspace", case.slug, "--limit", 2, "--json")
    assert (result.counts(SYNC), len(pushes(case))) == (counts(source=3, changed=3, planned=3, succeeded=2, not_tried=1), 2)
    case.dest.clear()
    result = case.run()
    assert (result.exit, len(sent(case)), result.counts(SYNC)) == (0, 1, counts(source=3, unchanged=3, carried=1, planned=1, succeeded=1))
    assert case.command("runs", "sync.nothing", "--workspace", case.slug).exit == 2
    for command, state in (("pause", "paused"), ("resume", "schedule")):
        assert state in case.command(command, SYNC, "--workspace", case.slug).stdout


def test_halves_of_a_call_that_failed_wait_at_the_same_time(case, monkeypatch):
    monkeypatch.setattr("runtime.push.backoff.random.uniform", lambda *_: 1.0)
    contacts(case, *[(i, "bad@x" if i in (1, 8) else f"p{i}@x") for i in range(1, 9)], backoff=0.4, push={"batch_mode": "atomic", "attempts": 4}, text="""
def push(rows):
    if not http.post("/push", json={"rows": rows}).ok:
        fail("refused")
""")
    case.dest.rule("POST", "^/push$", handler=lambda call: (400 if "bad@x" in call.text else 200, {}))
    done = case.run().counts(SYNC)
    assert (done["succeeded"], done["retrying"]) == (6, 2)
    calls = case.dest.calls
    assert [len(c.json["rows"]) for c in calls] == [8, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1]
    assert calls[-1].at - calls[0].at < 5                       # 0.4 + 0.8 + 1.6; one after the other it would be 5.2


def test_what_was_answered_before_ctrl_c_is_recorded_and_not_sent_again(case):
    gate, calls = threading.Event(), iter(range(2))
    case.dest.rule("POST", "^/push$", handler=lambda call: (next(calls, None) is None and gate.wait(60), (200, {}))[1])
    contacts(case, *THREE, push={"batch_size": 1})
    threading.Thread(target=lambda: (case.dest.wait_for(3, timeout=180), time.sleep(0.3), _thread.interrupt_main())).start()
    with pytest.raises(KeyboardInterrupt):
        case.run()
    gate.set()
    case.dest.clear_rules()
    case.dest.clear()
    result = case.run()
    assert (result.exit, sent(case), result.counts(SYNC)) == (0, [("insert", 3, "c@x")], counts(source=3, unchanged=3, carried=1, planned=1, succeeded=1))
    assert table(case.records(SYNC), "identifier", "status") == [("3", "succeeded")]
