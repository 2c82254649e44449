"""Where the story's rows arrive: an HTTP server on an address that every host reaches, slow or refusing where told."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PUSH = """API = {"base_url": "%s", "push": {"batch_size": %d, "max_concurrent": %d, "args": ["name"]}}

def push(rows, name):
    return http.post("/" + name, json = rows).json
"""


@dataclass
class Destination:
    """What came, by sync; `refuses` are ids that get a reject, `seconds` is how long a call takes."""

    url: str = ""
    calls: dict[str, list[list[dict[str, Any]]]] = field(default_factory=dict)
    refuses: set[int] = field(default_factory=set)
    seconds: dict[str, float] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    waiting: Counter[str] = field(default_factory=Counter)
    guard: threading.Condition = field(default_factory=threading.Condition)

    def rows(self, name: str) -> list[dict[str, Any]]:
        with self.guard:
            return [row for call in self.calls.get(name, []) for row in call]

    def changes(self, name: str) -> Counter[str]:
        """How many rows of each change came since the last question."""
        found = Counter(row["__ondatra_change_type"] for row in self.rows(name))
        with self.guard:
            self.calls.pop(name, None)
        return found

    def holds(self, name: str, after: int) -> None:
        """Answers so many more calls of that sync; those behind them wait."""
        with self.guard:
            self.left[name] = after

    def goes_on(self, name: str) -> None:
        with self.guard:
            self.left.pop(name)
            self.guard.notify_all()

    def take(self, name: str, rows: list[dict[str, Any]]) -> dict[str, str]:
        time.sleep(self.seconds.get(name, 0))
        with self.guard:
            self.waiting[name] += 1
            self.guard.wait_for(lambda: self.left.get(name, 1) > 0)
            self.waiting[name] -= 1
            if name in self.left:
                self.left[name] -= 1
            self.calls.setdefault(name, []).append(rows)
        return {
            f"{row['__ondatra_rowid']}:{row['__ondatra_change_type']}": "reject: 422: no such id"
            if row["id"] in self.refuses
            else "ok"
            for row in rows
        }


@contextmanager
def destination(host: str) -> Iterator[Destination]:
    kept = Destination()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(kept.take(self.path.strip("/"), rows)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Whoever asked is gone, as it was to be."""

    server = Server((host, 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept.url = f"http://{host}:{server.server_port}"
    try:
        yield kept
    finally:
        server.shutdown()
