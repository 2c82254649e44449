"""A TCP proxy before a real server: goes down, cuts requests in the middle, or swallows answers, when a test says
so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """`down` closes each connection at once; `cut` so many connections after `bytes` of a request; `deaf` swallows so
    many answers; requests wait while `through` is not set."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.down, self.cut, self.deaf, self.bytes, self.connections = False, 0, 0, 4_000, 0
        self.through = threading.Event()
        self.through.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                if self.down:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for source, sink, up in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(source, sink, up), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, up: bool) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(2_000):
                passed += len(data)
                if up:
                    self.through.wait()
                if self.down or (up and self.cut and passed > self.bytes):
                    self.cut -= not self.down
                    break
                if not up and self.deaf and b"100 Continue" not in data:
                    self.deaf -= 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def stop(self) -> None:
        """From now on nothing answers, connections that stand included."""
        self.down = True
        self.through.set()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.stop()
        self._listener.close()


@contextmanager
def before(target: str) -> Iterator[Proxy]:
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
