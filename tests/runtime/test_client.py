"""How the client waits: asleep, and awake for destinations that answer sooner than a processor wakes."""

from __future__ import annotations

import threading
import time

import pytest
from web_server import Reply, Seen, WebServer, slowly

from runtime.push.http import client
from runtime.push.http.client import PooledTransport


def ask(pool: PooledTransport, server: WebServer) -> None:
    assert pool.send("GET", f"{server.url}/a", {}, None, 5).body == b"{}"


def test_answers_of_a_near_destination_are_waited_for_awake(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "NEAR", 0.1)
    monkeypatch.setattr(client, "NEAR_AFTER", 5)
    pool, awake = PooledTransport(), []
    perform = client._Handle._perform_awake
    monkeypatch.setattr(
        client._Handle, "_perform_awake", lambda self, until: awake.append(asked) or perform(self, until)
    )
    for asked in range(13):
        if asked in (7, 10):
            server.reply = slowly(0.2 if asked == 7 else 0)
        ask(pool, server)
    # one more quick one than slow ones keeps it awake where five quick ones began it
    assert awake == [5, 6, 7, 8, 9, 11, 12]


def test_who_is_not_alone_waits_asleep(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "NEAR_AFTER", 0)
    pool, awake, out = PooledTransport(), [], threading.Event()
    perform = client._Handle._perform_awake
    monkeypatch.setattr(
        client._Handle, "_perform_awake", lambda self, until: awake.append(asked) or perform(self, until)
    )

    def reply(seen: Seen) -> Reply:
        if seen.path == "/slow":
            out.wait(10)
        return 200, {}, b"{}"

    server.reply = reply
    asked = "slow"
    slow = threading.Thread(target=lambda: pool.send("GET", f"{server.url}/slow", {}, None, 20))
    slow.start()
    while not server.seen:
        time.sleep(0.01)
    asked = "beside it"
    ask(pool, server)
    out.set()
    slow.join()
    asked = "alone"
    ask(pool, server)
    assert awake == ["slow", "alone"]


def test_a_destination_that_turns_slow_is_waited_for_asleep(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "NEAR_AFTER", 0)
    pool = PooledTransport()
    ask(pool, server)
    server.reply = slowly(1.0)
    before, cpu = time.monotonic(), time.thread_time()
    ask(pool, server)
    assert time.monotonic() - before >= 1.0 and time.thread_time() - cpu < 0.1
