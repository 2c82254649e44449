"""The audit log as an organization's admins read it."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ondatra_web import audit
from ondatra_web.models import AuditLog, Sync
from tests.web.filled import a_sync, person, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def sync(client: Client) -> Sync:
    made = a_sync(workspace())
    client.force_login(person("alice", made.workspace))
    return made


def line(sync: Sync, user: User | None, action: str, day: int = 1, **detail: Any) -> AuditLog:
    audit.write(sync.workspace.organization_id, user, action, sync.name, detail, sync=sync)
    made = AuditLog.objects.latest("pk")
    AuditLog.objects.filter(pk=made.pk).update(at=datetime(2026, 11, day, 12, tzinfo=UTC))
    return made


def exported(client: Client, query: str = "") -> list[dict[str, str]]:
    text = b"".join(client.get(f"/settings/audit/export/{query}").streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["pause_sync", "read_records", "start_run"]),
        ("?who=bob", ["read_records"]),
        (f"?who={audit.at_the_command_line()}", ["pause_sync"]),
        ("?action=start_run", ["start_run"]),
        ("?sync=sync.Aircraft&action=start_run", ["start_run"]),
        ("?sync=sync.none", []),
        ("?since=2026-11-02&until=2026-11-02", ["read_records"]),
        ("?since=nonsense&action=nonsense", ["pause_sync", "read_records", "start_run"]),
    ],
)
def test_lines_are_found_by_person_action_sync_and_time(
    client: Client, sync: Sync, query: str, found: list[str]
) -> None:
    line(sync, User.objects.get(username="alice"), "start_run", 1)
    line(sync, person("bob", sync.workspace, "viewer"), "read_records", 2, rows=3)
    line(sync, None, "pause_sync", 3)

    page = client.get(f"/settings/audit/{query}").content.decode()

    assert [row["action"] for row in exported(client, query)] == found
    for action in ("start_run", "read_records", "pause_sync"):
        assert (f"{audit.ACTIONS[action]}\n" in page) == (action in found)


def test_the_export_has_every_column_is_no_formula_and_leaves_a_line_itself(client: Client, sync: Sync) -> None:
    line(sync, None, "read_records", rows=3)
    AuditLog.objects.update(who="=cmd()")

    (row,) = exported(client)

    assert row == {
        "at": "2026-11-01T12:00:00+00:00",
        "who": "'=cmd()",
        "action": "read_records",
        "sync": "sync.aircraft",
        "target": "sync.aircraft",
        "detail": '{"rows": 3}',
    }
    assert AuditLog.objects.latest("pk").detail == {"rows": 1}


def test_a_page_goes_on_behind_a_line_with_a_constant_number_of_questions(client: Client, sync: Sync) -> None:
    for number in range(250):
        line(sync, None, "read_records", rows=number)

    with CaptureQueriesContext(connection) as asked:
        first = client.get("/settings/audit/").content.decode()
    older = first.split('">Older')[0].rsplit('href="', 1)[1]
    second = client.get(f"/settings/audit/{older}").content.decode()

    assert ("rows 249<" in first, "rows 150<" in first, "rows 149<" in first) == (True, True, False)
    assert ("rows 149<" in second, "rows 50<" in second) == (True, True)
    assert len(asked) < 10


def test_only_admins_read_it_and_only_their_organizations(client: Client, sync: Sync) -> None:
    line(sync, None, "read_records")
    other = a_sync(workspace("elsewhere"), "sync.theirs")
    line(other, None, "pause_sync")
    client.force_login(person("dora", other.workspace, "operator"))
    forbidden = client.get("/settings/audit/").status_code
    client.force_login(person("eve", other.workspace))

    assert (forbidden, [row["sync"] for row in exported(client)]) == (403, ["sync.theirs"])
