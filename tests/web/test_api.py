"""The HTTP API: Census's shapes, tokens of one organization with scopes, one form for errors."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from ondatra_web import tokens
from ondatra_web.api.tokens import TokenThrottle
from ondatra_web.models import AuditLog, Export, Membership, Run
from ondatra_web.tracking import exporting
from tests.web import filled

pytestmark = pytest.mark.django_db
ALL = ["read", "records", "operate"]


class Caller:
    """A client with a token."""

    def __init__(self, token: str) -> None:
        self.client, self.token = Client(), token

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        told = {"authorization": f"Bearer {self.token}", **headers}
        kwargs = {} if body is None else {"data": body, "content_type": "application/json"}
        return self.client.generic(method, f"/api/v1/{path}", headers=told, **_encoded(kwargs))

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers).json()

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, {} if body is None else body, **headers).json()


def _encoded(kwargs: dict[str, Any]) -> dict[str, Any]:

    return {**kwargs, "data": json.dumps(kwargs["data"])} if kwargs else {}


def caller(name: str, place: Any, scopes: list[str] | None = None, role: str = "admin") -> Caller:
    person = filled.person(name, place, role)
    return Caller(tokens.make(place.organization, person, "test", scopes or ALL)[1])


@pytest.fixture
def place(db: None) -> Any:
    return filled.workspace()


@pytest.fixture
def api(place: Any) -> Caller:
    return caller("ada", place)


@pytest.fixture
def run(place: Any, tmp_path: Path) -> Run:
    """A run of three records: one delivered, two refused for two reasons."""
    run = filled.a_run(
        filled.a_sync(place),
        "completed_with_rejects",
        **filled.closing(3, rejected=2),
        trigger="page",
        tracking="written",
    )
    big = "12345678901234567890123456789012345678"
    rows = [
        filled.record("N1", payload={"tailnum": "N1", "seats": 2}),
        filled.record("N2", "rejected", '422: field "year" is required', "reject", row=1),
        filled.record("N3", "rejected", "409: maker is unknown", "reject", row=2),
    ]
    rows[0]["record_payload"] = f'{{"tailnum":"N1","n":{big}}}'
    filled.put_records(run, tmp_path, rows)
    return run


def test_a_list_has_censuss_envelope_and_pagination(api: Caller, place: Any) -> None:
    for i in range(3):
        filled.a_sync(place, f"sync.s{i}")
    told = api.get("syncs?per_page=2&order=asc")
    assert (told["status"], [s["label"] for s in told["data"]]) == ("success", ["sync.s0", "sync.s1"])
    assert told["pagination"] == {
        "total_records": 3, "per_page": 2, "prev_page": None, "page": 1, "next_page": 2, "last_page": 2
    }  # fmt: skip


def test_a_run_has_censuss_fields_and_our_own_status(api: Caller, run: Run) -> None:
    told = api.get(f"sync_runs/{run.pk}")["data"]
    wanted = {
        "id": run.pk, "sync_id": run.sync_id, "status": "completed", "run_status": "completed_with_rejects",
        "canceled": False, "full_sync": False, "source_record_count": 3, "records_processed": 3, "records_updated": 1,
        "records_failed": 2, "error_code": None,
    }  # fmt: skip
    assert {k: told[k] for k in wanted} == wanted


@pytest.mark.parametrize(
    ("status", "words"), [("held", ("failed", False, "held")), ("cancelled", ("failed", True, "cancelled"))]
)
def test_what_a_person_stopped_is_failed_with_its_code(api: Caller, place: Any, status: str, words: Any) -> None:
    told = api.get(f"sync_runs/{filled.a_run(filled.a_sync(place), status).pk}")["data"]
    assert (told["status"], told["canceled"], told["error_code"]) == words


def test_a_trigger_makes_a_run_and_wakes_a_worker(
    api: Caller, place: Any, stub_broker: Any, django_capture_on_commit_callbacks: Any
) -> None:
    sync = filled.a_sync(place)
    with django_capture_on_commit_callbacks(execute=True):
        told = api.post(f"syncs/{sync.pk}/trigger", {"force_full_sync": True})
    run = Run.objects.get(pk=told["data"]["sync_run_id"])
    assert (run.trigger, run.full, stub_broker.queues["pipeline"].qsize()) == ("api", True, 1)


def test_the_same_idempotency_key_answers_with_the_same_run(api: Caller, place: Any) -> None:
    sync = filled.a_sync(place)
    first, second = (api.post(f"syncs/{sync.pk}/trigger", **{"idempotency-key": "k-1"}) for _ in range(2))
    assert (first, Run.objects.count()) == (second, 1)


def test_an_idempotency_key_with_another_body_is_a_conflict(api: Caller, place: Any) -> None:
    sync = filled.a_sync(place)
    api.post(f"syncs/{sync.pk}/trigger", {"dry_run": True}, **{"idempotency-key": "k-1"})
    told = api("POST", f"syncs/{sync.pk}/trigger", {}, **{"idempotency-key": "k-1"})
    assert (told.status_code, told.json()["code"]) == (409, "conflict")


def test_a_trigger_while_a_run_works_names_that_run(api: Caller, place: Any) -> None:
    sync = filled.a_sync(place)
    working = filled.a_run(sync, "working")
    told = api("POST", f"syncs/{sync.pk}/trigger", {})
    assert (told.status_code, told.json()) == (
        409,
        {
            "status": "error",
            "code": "conflict",
            "message": f"run {working.pk} of sync.aircraft is working: wait for its end or cancel it",
            "data": {"sync_run_id": working.pk},
        },
    )


def test_records_are_filtered_and_paged(api: Caller, run: Run) -> None:
    told = api.get(f"sync_runs/{run.pk}/records?status=rejected&per_page=1")
    assert [r["identifier"] for r in told["data"]] == ["N2"]
    cursor = told["pagination"]["next_cursor"]
    told = api.get(f"sync_runs/{run.pk}/records?status=rejected&per_page=1&cursor={cursor}")
    assert ([r["identifier"] for r in told["data"]], told["pagination"]["next_cursor"]) == (["N3"], None)


def test_a_payload_keeps_every_digit(api: Caller, run: Run) -> None:
    body = api("GET", f"sync_runs/{run.pk}/records?primary_identifier=N1").content
    assert b'"n":12345678901234567890123456789012345678' in body


def test_records_are_counted_by_the_same_filters(api: Caller, run: Run) -> None:
    assert api.get(f"sync_runs/{run.pk}/records_count?message=YEAR")["data"] == [{"record_count": 1}]


def test_message_groups_come_with_their_counts(api: Caller, run: Run) -> None:
    told = api.get(f"sync_runs/{run.pk}/message_groups")["data"]
    assert [(g["status"], g["rows"], g["is_new"]) for g in told] == [("rejected", 1, True)] * 2


def test_reading_payloads_is_written_to_the_audit_log(api: Caller, run: Run) -> None:
    api.get(f"sync_runs/{run.pk}/records?status=rejected")
    line = AuditLog.objects.get(action="read_records")
    assert (line.user.username, line.target, line.detail["rows"], line.detail["status"]) == (
        "ada", f"run {run.pk}", 2, "rejected",
    )  # fmt: skip


def test_a_link_to_a_record_file_works_without_the_token_and_not_with_another_signature(api: Caller, run: Run) -> None:
    link = api.get(f"sync_runs/{run.pk}/records_export")["data"]["urls"][0]
    path = link.removeprefix("http://testserver")
    with_it, without = Client().get(path), Client().get(path[:-2] + "xx")
    assert (b"".join(with_it.streaming_content)[:4], without.status_code) == (b"PAR1", 404)


def test_links_come_too_early_while_a_run_works(api: Caller, place: Any) -> None:
    run = filled.a_run(filled.a_sync(place), "working")
    assert api("GET", f"sync_runs/{run.pk}/records_export").status_code == 425


def test_records_that_the_retention_removed_are_gone(api: Caller, run: Run) -> None:

    Run.objects.filter(pk=run.pk).update(rows_expired_at=timezone.now())
    assert [
        api("GET", f"sync_runs/{run.pk}/{p}").status_code for p in ("records", "records_count", "records_export")
    ] == [410] * 3


def test_an_export_is_a_job_whose_file_is_fetched_when_it_is_done(api: Caller, run: Run) -> None:

    made = api("POST", f"sync_runs/{run.pk}/exports", {"format": "csv", "status": "rejected"})
    number = made.json()["data"]["id"]
    early = api("GET", f"exports/{number}/file").status_code
    exporting.work(number)
    told = api.get(f"exports/{number}")["data"]
    body = b"".join(api("GET", f"exports/{number}/file").streaming_content)
    assert (made.status_code, early, told["status"], told["rows"], body.count(b"\r\n")) == (202, 425, "done", 2, 3)


def test_a_history_follows_one_identifier(api: Caller, run: Run) -> None:
    told = api.get(f"records/N2/history?sync_id={run.sync_id}")["data"]
    assert [(h["sync_run_id"], h["status"]) for h in told] == [(run.pk, "rejected")]


def test_a_retry_preview_counts_and_starts_nothing(api: Caller, run: Run) -> None:
    told = api.post(f"sync_runs/{run.pk}/retry?preview=true&status=rejected")["data"]
    assert (told["preview"], told["sync_run_id"], Run.objects.count()) == (True, None, 1)


def test_a_run_that_did_not_change_is_not_sent_again(api: Caller, run: Run) -> None:
    tag = api("GET", f"sync_runs/{run.pk}")["ETag"]
    assert api("GET", f"sync_runs/{run.pk}", **{"if-none-match": tag}).status_code == 304


def test_pausing_stops_schedules_until_it_is_resumed(api: Caller, place: Any) -> None:
    sync = filled.a_sync(place)
    paused = [api.post(f"syncs/{sync.pk}/{word}")["data"]["paused"] for word in ("pause", "resume")]
    assert paused == [True, False]


def test_a_call_without_a_token_is_told_how(place: Any) -> None:
    told = Client().get("/api/v1/syncs")
    assert (told.status_code, told["WWW-Authenticate"], told.json()["status"]) == (
        401,
        'Bearer realm="ondatra"',
        "error",
    )


@pytest.mark.parametrize("what", ["unknown", "expired", "revoked", "inactive"])
def test_a_token_that_does_not_hold_is_refused(place: Any, what: str) -> None:

    person = filled.person("eve", place)
    row, text = tokens.make(place.organization, person, "t", ["read"], expires_at=timezone.now() + timedelta(days=1))
    if what == "expired":
        type(row).objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif what == "revoked":
        row.delete()
    elif what == "inactive":
        type(person).objects.filter(pk=person.pk).update(is_active=False)
    assert Caller("nonsense" if what == "unknown" else text)("GET", "syncs").status_code == 401


@pytest.mark.parametrize(
    ("scopes", "path", "method"),
    [
        (["read"], "sync_runs/{run}/records", "GET"),
        (["read", "operate"], "sync_runs/{run}/exports", "POST"),
        (["read", "records"], "syncs/{sync}/trigger", "POST"),
        (["records"], "syncs", "GET"),
    ],
)
def test_a_scope_that_is_missing_is_named(place: Any, run: Run, scopes: list[str], path: str, method: str) -> None:
    call = caller("sam", place, scopes)
    told = call(method, path.format(run=run.pk, sync=run.sync_id), None if method == "GET" else {})
    assert (told.status_code, "lacks the scope" in told.json()["message"]) == (403, True)


def test_a_viewer_with_the_scope_operate_still_starts_nothing(place: Any, run: Run) -> None:
    told = caller("vic", place, ALL, "viewer")("POST", f"syncs/{run.sync_id}/trigger", {})
    assert (told.status_code, Run.objects.count()) == (403, 1)


def test_a_token_sees_one_organization_though_its_person_belongs_to_two(place: Any, run: Run) -> None:

    other = filled.workspace("other")
    person = filled.person("ben", place)
    Membership.objects.create(user=person, organization=other.organization, role="admin")
    there = Caller(tokens.make(other.organization, person, "t", ALL)[1])
    codes = [
        there("GET", p).status_code
        for p in (f"sync_runs/{run.pk}", f"sync_runs/{run.pk}/records", f"syncs/{run.sync_id}")
    ]
    assert (codes, there.get("syncs")["data"]) == ([404, 404, 404], [])


def test_the_rate_limit_of_a_token_is_told_and_held(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    cache.clear()
    monkeypatch.setattr(TokenThrottle, "rate", "2/min", raising=False)
    call = caller("ron", place)
    told = [call("GET", "syncs") for _ in range(3)]
    assert [(t.status_code, t["RateLimit-Limit"], t["RateLimit-Remaining"]) for t in told] == [
        (200, "2", "1"), (200, "2", "0"), (429, "2", "0")
    ]  # fmt: skip
    assert int(told[2]["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("syncs?per_page=101", "per_page: Ensure this value is less than or equal to 100."),
        ("sync_runs/{run}/records?status=nope", 'status: "nope" is not a valid choice.'),
        ("sync_runs/{run}/records?group=9999", "group: run {run} has no message group 9999"),
        ("sync_runs/{run}/records?page=9999999", "page: pages behind row 100,000 are fetched with `cursor`"),
    ],
)
def test_a_wrong_argument_is_named(api: Caller, run: Run, path: str, said: str) -> None:
    told = api("GET", path.format(run=run.pk))
    assert (told.status_code, told.json()["message"]) == (400, said.format(run=run.pk))


def test_an_address_that_does_not_exist_says_where_the_list_is(api: Caller) -> None:
    told = api("GET", "nothing")
    assert (told.status_code, told.json()["message"]) == (
        404, "there is nothing at /api/v1/nothing; GET /api/v1/schema lists what there is",
    )  # fmt: skip


def test_a_token_is_made_by_a_command_and_its_text_is_kept_nowhere(
    place: Any, capsys: pytest.CaptureFixture[str]
) -> None:

    filled.person("tom", place)
    call_command("token", "airflow", "--user", "tom", "--scope", "read")
    text = capsys.readouterr().out.splitlines()[1]
    call_command("token", "--list")
    listed = capsys.readouterr().out
    assert (Caller(text)("GET", "syncs").status_code, text in listed, "airflow" in listed) == (200, False, True)


def test_health_names_the_database_and_the_living_processes(api: Caller) -> None:
    told = api.get("health")["data"]
    assert set(told) == {"database", "workers"}


def test_the_schema_is_openapi_3_1_and_names_every_route(api: Caller) -> None:
    schema = yaml.safe_load(Client().get("/api/v1/schema").content)
    known = get_resolver("ondatra_web.api.urls").url_patterns
    patterns = [str(p.pattern).removeprefix("(?s)^").removesuffix("$") for p in known]
    plain = {re.sub(r"<\w+:(\w+)>|\(\?P<(\w+)>[^)]*\)", lambda m: f"{{{m[1] or m[2]}}}", p) for p in patterns}
    wanted = {f"/api/{p}" for p in plain if p.startswith("v1/")} - {"/api/v1/schema"}
    assert (schema["openapi"][:3], wanted - set(schema["paths"])) == ("3.1", set())


def test_the_page_of_the_api_loads_nothing_from_elsewhere() -> None:
    page = Client().get("/api/docs").content.decode()

    assert re.findall(r'(?:src|href)="(?:https?:)?//[^"]+"', page) == []


def test_an_export_of_another_organization_is_not_there(api: Caller, run: Run) -> None:
    made = Export.objects.create(run=run, format="csv")
    stranger = caller("zoe", filled.workspace("other"))
    assert stranger("GET", f"exports/{made.pk}").status_code == 404
