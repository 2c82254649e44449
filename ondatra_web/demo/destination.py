"""The demo's outside API: aircraft, day reports, a sheet and contacts, kept in memory. It refuses what such an API
would refuse.

| request | does |
|---|---|
| POST /aircraft, PATCH /aircraft/TAILNUM | 422 for a missing year or impossible seats, 409: unknown maker |
| PUT, DELETE /reports/NAME | one report with its lines |
| POST /sheet {"clear": bool, "rows": […]} | rows of a sheet |
| PUT, GET, DELETE /contacts/ID | one contact; 422 for an email without @ |
| GET / | a page that shows what it holds |

Every few hundred requests it is busy once: 429 with Retry-After.
"""

from __future__ import annotations

import html
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import unquote, urlsplit

PAGE = Template(Path(__file__).with_name("destination.html").read_text(encoding="utf-8"))
#: One request in so many is told to come back after a second.
BUSY_EVERY = 701
KNOWN_MAKERS = {
    "BOEING",
    "AIRBUS",
    "AIRBUS INDUSTRIE",
    "BOMBARDIER INC",
    "EMBRAER",
    "MCDONNELL DOUGLAS",
    "MCDONNELL DOUGLAS AIRCRAFT CO",
    "MCDONNELL DOUGLAS CORPORATION",
    "CANADAIR",
    "CANADAIR LTD",
    "CESSNA",
    "PIPER",
    "BEECH",
    "GULFSTREAM AEROSPACE",
    "BELL",
    "SIKORSKY",
    "LEARJET INC",
    "CIRRUS DESIGN CORP",
    "DOUGLAS",
    "DEHAVILLAND",
}
MOST_SEATS = 400
Answer = tuple[int, Any]


class Held:
    """What the destination holds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.aircraft: dict[str, dict[str, Any]] = {}
        self.reports: dict[str, dict[str, Any]] = {}
        self.sheet: list[dict[str, Any]] = []
        self.contacts: dict[str, Any] = {}
        self.requests = self.refused = self.busy = 0

    def answer(self, method: str, path: str, body: Any) -> Answer:
        """The status and the JSON answer of one request."""
        with self.lock:
            self.requests += 1
            if self.requests % BUSY_EVERY == 0:
                self.busy += 1
                return 429, {"error": "busy; come back in a second"}
            status, said = self._route(method, [unquote(p) for p in path.strip("/").split("/")], body)
            self.refused += status >= 400
            return status, said

    def _route(self, method: str, parts: list[str], body: Any) -> Answer:
        if parts == ["aircraft"] and method == "POST":
            return self._save_aircraft(body, 201)
        if len(parts) == 2 and parts[0] == "aircraft" and method == "PATCH":
            return self._save_aircraft({**self.aircraft.get(parts[1], {}), **(body or {})}, 200)
        if len(parts) == 2 and parts[0] == "reports" and method == "PUT":
            self.reports[parts[1]] = body or {}
            return 200, {"report": parts[1]}
        if len(parts) == 2 and parts[0] == "reports" and method == "DELETE":
            self.reports.pop(parts[1], None)
            return 200, {}
        if parts == ["sheet"] and method == "POST":
            if (body or {}).get("clear"):
                self.sheet.clear()
            self.sheet += (body or {}).get("rows", [])
            return 200, {"rows": len(self.sheet)}
        if len(parts) == 2 and parts[0] == "contacts" and method in ("PUT", "GET", "DELETE"):
            return self._contact(method, parts[1], body)
        return 404, {"error": f"there is no {method} /{'/'.join(parts)}"}

    def _contact(self, method: str, name: str, body: Any) -> Answer:
        if method == "PUT":
            email = body.get("email") if isinstance(body, dict) else None
            if "@" not in str(email):
                return 422, {"error": f'email "{email}" is no address'}
            self.contacts[name] = body
        elif name not in self.contacts:
            return 404, {"error": f"there is no contact {name}"}
        return 200, self.contacts.pop(name) if method == "DELETE" else self.contacts[name]

    def _save_aircraft(self, body: Any, status: int) -> Answer:
        if not isinstance(body, dict) or not body.get("tailnum"):
            return 422, {"error": 'field "tailnum" is required'}
        if body.get("year") is None:
            return 422, {"error": 'field "year" is required'}
        if body.get("manufacturer") not in KNOWN_MAKERS:
            return 409, {"error": f'manufacturer "{body.get("manufacturer")}" is unknown'}
        if (body.get("seats") or 0) > MOST_SEATS:
            return 422, {"error": f"seats: {body['seats']} is more than {MOST_SEATS}"}
        self.aircraft[body["tailnum"]] = body
        return status, {"id": body["tailnum"]}


def serve(host: str, port: int) -> ThreadingHTTPServer:
    """The server, bound and ready for `serve_forever`."""
    held = Held()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet: thousands of requests a second would drown everything else."""

        def respond(self) -> None:
            path = urlsplit(self.path).path
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "GET" and path == "/":
                return self.send(200, "text/html; charset=utf-8", page(held).encode())
            try:
                body = json.loads(raw) if raw else None
            except ValueError:
                return self.send(400, "application/json", b'{"error": "the body is not JSON"}')
            status, said = held.answer(self.command, path, body)
            self.send(status, "application/json", json.dumps(said).encode())

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond

        def send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(data)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    return Server((host, port), Handler)


def page(held: Held) -> str:
    """What the destination holds, for a person."""
    with held.lock:
        newest = list(held.aircraft.values())[-12:][::-1]
        numbers = [
            ("Aircraft", len(held.aircraft)),
            ("Day reports", len(held.reports)),
            ("Sheet rows", len(held.sheet)),
            ("Contacts", len(held.contacts)),
            ("Requests", held.requests),
            ("Refused", held.refused),
            ("Told to wait", held.busy),
        ]
    boxes = "".join(f"<div><span>{name}</span><b>{number:,}</b></div>" for name, number in numbers)
    rows = (
        "".join(
            "<tr>"
            + "".join(
                f"<td>{html.escape(str(a.get(k, '')))}</td>"
                for k in ("tailnum", "manufacturer", "model", "year", "flights", "miles")
            )
            + "</tr>"
            for a in newest
        )
        or '<tr><td colspan="6">Nothing yet: run a sync.</td></tr>'
    )
    return PAGE.substitute(boxes=boxes, rows=rows)
