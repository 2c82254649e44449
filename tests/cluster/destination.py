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
    guard: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, name: str) -> list[dict[str, Any]]:
        with self.guard:
            return [row for call in self.calls.get(name, []) for row in call]

    def changes(self, name: str) -> Counter[str]:
        """How many rows of each change came since the last question."""
        found = Counter(row["__ondatra_change_type"] for row in self.rows(name))
        with self.guard:
            self.calls.pop(name, None)
        return found

    def take(self, name: str, rows: list[dict[str, Any]]) -> dict[str, str]:
        time.sleep(self.seconds.get(name, 0))
        with self.guard:
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

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept.url = f"http://{host}:{server.server_port}"
    try:
        yield kept
    finally:
        server.shutdown()
