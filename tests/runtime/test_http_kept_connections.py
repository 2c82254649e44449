"""Connections that are kept: one that the destination closed meanwhile costs nothing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from push_bench import ROWS, Bench, outcomes, returning, row

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
SENDING = returning('{key(r): "ok" if http.post("/a", json=r["id"]).ok else "" for r in rows}')


@contextmanager
def destination(serve: Callable[[socket.socket, int], None]) -> Iterator[str]:
    """Serves each connection with its number, from 1, in a thread of its own."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        number = 0
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            number += 1
            threading.Thread(target=serve, args=(connection, number), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()


def requests(connection: socket.socket) -> Iterator[str]:
    """The first line and body of each request of one connection."""
    file = connection.makefile("rb")
    while head := file.readline():
        length = 0
        while (line := file.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        yield f"{head.split(b' HTTP')[0].decode()} {file.read(length).decode()}"


def test_a_connection_that_was_closed_while_idle_costs_nothing(bench: Bench) -> None:
    seen: list[str] = []
    closed = threading.Semaphore(0)

    def serve(connection: socket.socket, _: int) -> None:
        seen.append(next(requests(connection)))
        connection.sendall(ANSWER)
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
        closed.release()

    with destination(serve) as bench.base_url:
        bench.lib(SENDING, retry=0)
        push = bench.load()
        from runtime.push.call import PushCall

        found = []
        for n in range(4):
            found += outcomes(push.push(PushCall([row(n)]), bench.context))
            assert closed.acquire(timeout=20)
    assert (found, seen) == ([("ok", None, True)] * 4, [f"POST /a {n}" for n in range(4)])


def test_a_new_connection_that_breaks_is_a_transport_error_at_once(bench: Bench) -> None:
    seen: list[str] = []

    def serve(connection: socket.socket, _: int) -> None:
        seen.append(next(requests(connection)))
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    with destination(serve) as bench.base_url:
        result = bench.push(SENDING, [ROWS[0]])
    assert (len(seen), result.outcomes[0].kind, result.outcomes[0].known) == (1, "error", False)


@pytest.mark.parametrize("before, pause, times", [(b"HTTP/1.1 200 OK\r\n", 0.0, 1), (b"", 2.5, 1)])
def test_an_old_connection_that_somebody_had_read_from_is_a_transport_error(
    bench: Bench, before: bytes, pause: float, times: int
) -> None:
    """A part of an answer came, or the connection lived on for long."""
    seen: list[str] = []

    def serve(connection: socket.socket, number: int) -> None:
        for request in requests(connection):
            seen.append(request)
            if request.endswith("2"):
                time.sleep(pause)
                connection.sendall(before)
                connection.shutdown(socket.SHUT_RDWR)
                connection.close()
                return
            connection.sendall(ANSWER)

    with destination(serve) as bench.base_url:
        result = bench.push(SENDING)
    assert seen.count("POST /a 2") == times
    assert result.outcomes[0].kind == "error"
