"""Roles of an organization and of one workspace, payloads as a right of their own, and the line that each read
leaves."""

from __future__ import annotations

import re
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from ondatra_web import actions, audit, tokens
from ondatra_web.access import ADMINISTER, OPERATE, PAYLOADS, SEE, workspaces_of
from ondatra_web.models import AuditLog, Membership, Organization, Role, Run, RunLog, Workspace, WorkspaceRole
from runtime.custody.masks import Masker
from runtime.model import Mask
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db
SECRET = "Ada Lovelace"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = a_run(a_sync(workspace()), **closing(2, rejected=1))
    of_ada = {"name": SECRET}
    refused = record("N2", "rejected", f"{SECRET} has no year", row=1, payload=of_ada)
    rows = [record("N1", payload=of_ada), refused]
    put_records(made, tmp_path / "store", rows)
    RunLog.objects.bulk_create([RunLog(run=made, level=level, text=level + SECRET) for level in ("print", "warning")])
    return made


def member(name: str, run: Run, role: str, of_the_workspace: str = "") -> User:
    user = person(name, run.sync.workspace, role)
    if of_the_workspace:
        WorkspaceRole.objects.create(
            membership=Membership.objects.get(user=user), workspace=run.sync.workspace, role=of_the_workspace
        )
    return user


def lines() -> list[tuple[str, str, dict[str, Any]]]:
    return list(AuditLog.objects.order_by("pk").values_list("who", "action", "detail"))


@pytest.mark.parametrize(
    ("usual", "own", "rights"),
    [
        ("none", "", []),
        ("metadata_viewer", "", [SEE]),
        ("viewer", "", [SEE, PAYLOADS]),
        ("operator", "", [SEE, PAYLOADS, OPERATE]),
        ("admin", "", [SEE, PAYLOADS, OPERATE, ADMINISTER]),
        ("none", "operator", [SEE, PAYLOADS, OPERATE]),
        ("admin", "metadata_viewer", [SEE]),
        ("viewer", "none", []),
    ],
)
def test_the_role_of_a_workspace_stands_in_place_of_the_organizations(
    run: Run, usual: str, own: str, rights: list[Role]
) -> None:
    user = member("bob", run, usual, own)

    assert [right for right in (SEE, PAYLOADS, OPERATE, ADMINISTER) if workspaces_of(user, right=right)] == rights


def test_a_role_of_one_workspace_says_nothing_of_another(client: Client, run: Run) -> None:
    other = Workspace.objects.create(slug="other", organization=run.sync.workspace.organization, project_dir="/nowhere")
    theirs = a_sync(other, "sync.theirs")
    client.force_login(member("bob", run, "none", "viewer"))

    assert (client.get(f"/syncs/{run.sync_id}/").status_code, client.get(f"/syncs/{theirs.pk}/").status_code) == (
        200,
        404,
    )
    assert "sync.theirs" not in client.get("/syncs/").content.decode()


def test_a_metadata_viewer_sees_counts_and_reasons_and_nothing_of_the_rows(client: Client, run: Run) -> None:
    client.force_login(member("bob", run, "metadata_viewer"))

    page = client.get(f"/runs/{run.pk}/").content.decode()
    found = client.get("/find/?q=N1").content.decode()

    assert ("has no year" in page, "View Records" in page, "N2" in page) == (True, True, False)
    assert '<dl class="facts card">' not in page  # nothing is known of the run that may be told there
    assert ("warning" + SECRET in page, "print" + SECRET in page) == (True, False)
    assert f"/runs/{run.pk}/" not in found
    assert "N2" not in client.get(f"/syncs/{run.sync_id}/").content.decode()
    for address in ("?record=records_updated.0:0", "?q=N1", "?q=a&within=payload", "download/?format=csv"):
        assert client.get(f"/runs/{run.pk}/records/{address}").status_code == 403
    assert client.post(f"/runs/{run.pk}/records/export/", {"format": "csv"}).status_code == 403
    assert lines() == []


def test_a_metadata_viewer_sees_of_each_row_what_became_of_it_and_nothing_of_what_it_holds(
    client: Client, run: Run
) -> None:
    client.force_login(member("bob", run, "metadata_viewer"))

    window = client.get(f"/runs/{run.pk}/records/").content.decode()
    refused = client.get(f"/runs/{run.pk}/records/?status=rejected&batch=1").content.decode().split('role="dialog"')[1]

    cells = re.findall(r'<td data-label="[^"]*"[^>]*>([^<]*)</td>', window)
    assert cells == ["", "upsert", "insert", "‹text› has no year", "upsert", "insert"]
    held = [text for text in (SECRET, "N1", "N2", "payload", "tailnum", "DuckDB query", "Download") if text in refused]
    assert (held, "1–1 of 1" in refused) == (["payload"], True)
    assert "Your role sees no identifiers and payloads." in refused
    assert lines() == []


@pytest.mark.parametrize(
    ("role", "scopes", "statuses"),
    [
        ("metadata_viewer", ["read", "records"], [403, 403, 200, 403, 403]),
        ("viewer", ["read"], [403, 403, 200, 403, 403]),
        ("viewer", ["read", "records"], [200, 200, 200, 200, 200]),
    ],
)
def test_the_api_gives_payloads_to_who_has_both_the_right_and_the_scope(
    client: Client, run: Run, role: str, scopes: list[str], statuses: list[int]
) -> None:
    user = member("bob", run, role)
    _, text = tokens.make(run.sync.workspace.organization, user, "t", scopes)

    asked = [
        f"sync_runs/{run.pk}/records",
        f"sync_runs/{run.pk}/records_export",
        f"sync_runs/{run.pk}/records_count?status=rejected",
        f"sync_runs/{run.pk}/records_count?message=Ada",
        f"records/N1/history?sync_id={run.sync_id}",
    ]
    head = {"Authorization": f"Bearer {text}"}
    log = client.get(f"/api/v1/sync_runs/{run.pk}/log", headers=head).json()["data"]

    assert [client.get(f"/api/v1/{address}", headers=head).status_code for address in asked] == statuses
    assert ("print" in [line["level"] for line in log]) == (statuses[0] == 200)


@pytest.mark.parametrize("ends", ["token", "role", "person"])
def test_a_link_to_a_file_ends_with_the_right_of_who_asked_for_it(client: Client, run: Run, ends: str) -> None:
    user = member("bob", run, "viewer")
    token, text = tokens.make(run.sync.workspace.organization, user, "t", ["records"])
    told = client.get(f"/api/v1/sync_runs/{run.pk}/records_export", headers={"Authorization": f"Bearer {text}"}).json()
    link = told["data"]["urls"][0].removeprefix("http://testserver")
    first = client.get(link).status_code

    if ends == "token":
        tokens.revoke(token)
    elif ends == "role":
        Membership.objects.update(role="metadata_viewer")
    else:
        User.objects.filter(pk=user.pk).update(is_active=False)

    assert (first, client.get(link).status_code) == (200, 403 if ends == "role" else 404)


def test_every_read_of_payloads_says_who_what_and_how_many(client: Client, run: Run) -> None:
    user = member("bob", run, "viewer")
    client.force_login(user)
    _, text = tokens.make(run.sync.workspace.organization, user, "t", ["records"])
    AuditLog.objects.all().delete()

    client.get(f"/runs/{run.pk}/records/?status=rejected&record=records_updated.0:1")
    client.get(f"/runs/{run.pk}/records/download/?format=csv&q=N1")
    client.get("/find/?q=N1")
    api = client.get(f"/api/v1/sync_runs/{run.pk}/records", headers={"Authorization": f"Bearer {text}"})

    said = {"rows": 1, "page": 1, "record": "records_updated.0:1", "status": "rejected"}
    hashed = Masker([Mask("identifier", "hash")], run.sync.workspace.mask_key).value("identifier", "N1")
    assert api.status_code == 200
    assert [(who, action) for who, action, _ in lines()] == [
        ("bob", name) for name in ("read_records", "download_records", "find_records", "read_records")
    ]
    assert [detail for _, _, detail in lines()][:3] == [
        said,
        {"rows": 1, "format": "csv", "text": "N1"},
        {"rows": 1, "identifier_hash": hashed},
    ]
    assert list(AuditLog.objects.values_list("sync", flat=True).distinct()) == [run.sync_id]


def test_commands_write_the_systems_user(run: Run) -> None:
    call_command_quietly("records", str(run.pk), "--status", "rejected", "--format", "json")
    call_command_quietly("pause", run.sync.name)

    assert lines() == [
        (audit.at_the_command_line(), "read_records", {"rows": 1, "format": "json", "status": "rejected"}),
        (audit.at_the_command_line(), "pause_sync", {}),
    ]


def test_what_a_schedule_starts_is_nobodys_doing(run: Run) -> None:
    actions.start_run(run.sync, trigger="schedule")

    assert lines() == []


def call_command_quietly(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command(*words, stdout=StringIO())
    assert not ended.value.code


def test_owners_become_admins_members_operators_and_viewers_stay() -> None:
    place = Organization.objects.create(name="Old")
    for role in ("owner", "member", "viewer"):
        Membership.objects.create(organization=place, user=User.objects.create(username=role), role=role)

    import_module("ondatra_web.migrations.0010_people").roles(apps, None)

    found = Membership.objects.filter(organization=place)
    assert dict(found.values_list("user__username", "role")) == {
        "owner": "admin",
        "member": "operator",
        "viewer": "viewer",
    }
