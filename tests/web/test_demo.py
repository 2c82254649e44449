"""The demo: its data, its destination, its push functions, and all of it together."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ondatra_web.demo import data
from ondatra_web.demo import destination as demo_destination
from runtime.custody import secrets
from runtime.project.check import check_project
from runtime.push.call import CallContext, PushCall
from runtime.push.http.rate_limits import MemoryLimiter
from runtime.push.load import load_push

ROOT = Path(__file__).resolve().parents[2]
AIRBUS = {
    "tailnum": "N1",
    "year": 1999,
    "manufacturer": "AIRBUS",
    "model": "A320-214",
    "engines": 2,
    "seats": 182,
    "flights": 3,
    "miles": 900,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The demo's models and push functions in a folder of their own."""
    for name in ("models", "lib"):
        shutil.copytree(ROOT / name, tmp_path / "project" / name)
    return tmp_path / "project"


class Destination:
    def __init__(self, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text


@pytest.fixture
def destination(monkeypatch: pytest.MonkeyPatch) -> Iterator[Destination]:
    server = demo_destination.serve("127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made = Destination(server.server_address[1])
    monkeypatch.setenv("DEMO_URL", made.url)
    yield made
    server.shutdown()
    server.server_close()
    thread.join(5)


# data


def test_load_reveals_the_first_days_once_and_next_one_more(project: Path) -> None:
    days = [data.FIRST + timedelta(days=i) for i in range(data.FIRST_DAYS)]
    assert data.load(project) == days
    assert data.reveal_next(project) == date(2013, 1, 8)
    seen = {p: p.stat().st_mtime_ns for p in data.folder(project).rglob("*.csv")}
    assert data.load(project) == [*days, date(2013, 1, 8)]
    assert {p: p.stat().st_mtime_ns for p in data.folder(project).rglob("*.csv")} == seen


def test_a_day_has_its_departures_and_no_others(project: Path) -> None:
    data.reveal_next(project)
    header, *lines = (data.folder(project) / "flights/2013-01-01.csv").read_text().splitlines()
    assert header.split(",") == data.COLUMNS
    assert len(lines) == 842 and {line.split(",")[:3] == ["2013", "1", "1"] for line in lines} == {True}


def test_after_the_years_last_day_there_is_no_next(project: Path) -> None:
    flights = data.folder(project) / "flights"
    flights.mkdir(parents=True)
    (flights / "2013-12-31.csv").write_text("")
    assert data.reveal_next(project) is None


def test_the_demos_models_and_push_functions_have_no_problem(project: Path) -> None:
    data.load(project)
    checked, problems = check_project(project, secrets=secrets.from_environment({}))
    assert problems == [] and checked is not None and checked.warnings == ()
    assert {n: m.kind for n, m in checked.models.items() if m.sink} == {
        "sync.aircraft": "merge",
        "sync.airline_days": "tracked",
        "sync.routes": "table",
    }


# destination


@pytest.mark.parametrize(
    "change, answer",
    [
        ({}, (201, {"id": "N1"})),
        ({"tailnum": None}, (422, {"error": 'field "tailnum" is required'})),
        ({"year": None}, (422, {"error": 'field "year" is required'})),
        ({"manufacturer": "KILDALL GARY"}, (409, {"error": 'manufacturer "KILDALL GARY" is unknown'})),
        ({"seats": 450}, (422, {"error": "seats: 450 is more than 400"})),
    ],
)
def test_the_destination_takes_an_aircraft_or_says_what_is_wrong(
    destination: Destination, change: dict[str, Any], answer: Any
) -> None:
    assert destination.ask("POST", "/aircraft", {**AIRBUS, **change}) == answer


def test_one_request_in_many_is_told_to_come_back() -> None:
    held = demo_destination.Held()
    statuses = Counter(held.answer("POST", "/aircraft", AIRBUS)[0] for _ in range(2 * demo_destination.BUSY_EVERY))
    assert statuses == {201: 2 * demo_destination.BUSY_EVERY - 2, 429: 2}


def test_the_destination_keeps_a_contact_until_it_is_deleted(destination: Destination) -> None:
    ada = {"name": "Ada", "email": "ada@example.com"}
    told = [("PUT", ada), ("GET", None), ("PUT", {"email": "ada"}), ("DELETE", None), ("GET", None)]
    assert [destination.ask(method, "/contacts/1", body) for method, body in told] == [
        (200, ada),
        (200, ada),
        (422, {"error": 'email "ada" is no address'}),
        (200, ada),
        (404, {"error": "there is no contact 1"}),
    ]


def test_an_unknown_address_and_broken_json_are_answered(destination: Destination) -> None:
    assert destination.ask("GET", "/nothing") == (404, {"error": "there is no GET /nothing"})
    connection = http.client.HTTPConnection("127.0.0.1", destination.port, timeout=10)
    connection.request("POST", "/aircraft", "{")
    assert connection.getresponse().status == 400
    connection.close()


def test_the_page_shows_what_is_held_and_escapes_it(destination: Destination) -> None:
    assert "Nothing yet: run a sync." in destination.ask("GET", "/")[1]
    destination.ask("POST", "/aircraft", {**AIRBUS, "model": "<b>"})
    status, page = destination.ask("GET", "/")
    assert status == 200 and "N1" in page and "&lt;b&gt;" in page and "<b>1</b>" in page


# push functions


def push(
    project: Path, name: str, rows: list[tuple[str, dict[str, Any]]], kind: str = "merge", batch_number: int = 1
) -> list[tuple[str, str | None]]:
    """The outcomes of one call with these (change type, row)."""
    own = secrets.from_environment()
    given = [{**row, "__ondatra_rowid": i, "__ondatra_change_type": change} for i, (change, row) in enumerate(rows)]
    result = load_push(project, name, secrets=own).push(
        PushCall(given, kind=kind, batch_number=batch_number), CallContext(own, MemoryLimiter())
    )
    return [(o.kind, o.message) for o in result.outcomes]


def test_an_aircraft_is_posted_then_patched_and_a_wrong_one_is_rejected_with_the_reason(
    project: Path, destination: Destination
) -> None:
    flown = {**AIRBUS, "flights": 4}
    assert push(project, "assets", [("insert", AIRBUS), ("insert", {**AIRBUS, "tailnum": "N2", "year": None})]) == [
        ("ok", None),
        ("reject", '422: field "year" is required'),
    ]
    assert push(project, "assets", [("update_preimage", AIRBUS), ("update_postimage", flown)]) == [
        ("ok", None),
        ("ok", None),
    ]
    page = destination.ask("GET", "/")[1]
    assert "<td>N1</td>" in page and "<td>4</td>" in page and "N2" not in page


def test_a_report_travels_whole_and_goes_when_its_lines_go(project: Path, destination: Destination) -> None:
    lines = [{"report": "UA 2013-01-01", "origin": o, "flights": 3} for o in ("EWR", "JFK")]
    both = [("insert", line) for line in lines]
    assert push(project, "day_reports", both, "tracked") == [("ok", None)] * 2
    assert "<span>Day reports</span><b>1</b>" in destination.ask("GET", "/")[1]
    assert push(project, "day_reports", [("delete", line) for line in lines], "tracked") == [("ok", None)] * 2
    assert "<span>Day reports</span><b>0</b>" in destination.ask("GET", "/")[1]


def test_the_sheet_is_replaced_whole(project: Path, destination: Destination) -> None:
    old, new = {"origin": "EWR", "dest": "ATL", "flights": 1}, {"origin": "EWR", "dest": "ATL", "flights": 2}
    assert push(project, "sheet", [("insert", old)], "table") == [("ok", None)]
    assert push(project, "sheet", [("delete", old), ("insert", new)], "table") == [("ok", None)] * 2
    assert "<span>Sheet rows</span><b>1</b>" in destination.ask("GET", "/")[1]
