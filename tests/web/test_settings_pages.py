"""Tokens and workspaces, made and changed on pages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ondatra_web.models import ApiToken, AuditLog, Workspace
from tests.web.filled import person, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def place() -> Workspace:
    return workspace()


@pytest.fixture
def alice(client: Client, place: Workspace) -> User:
    user = person("alice", place)
    client.force_login(user)
    return user


@pytest.fixture
def roots(settings: Any, tmp_path: Path) -> Path:
    """The folder below which admins may place workspaces, with a project of ours and one of others."""
    settings.ONDATRA = replace(settings.ONDATRA, workspace_roots=(str(tmp_path),))
    for name in ("ours", "theirs", "shared"):
        (tmp_path / name).mkdir()
    other = workspace("elsewhere")
    Workspace.objects.filter(pk=other.pk).update(
        project_dir=str(tmp_path / "theirs"), env_file=str(tmp_path / "theirs.env")
    )
    return tmp_path


def problem(answer: Any) -> str:
    found = re.search(r'role="alert">(.*?)</p>', answer.content.decode(), re.S)
    return found[1].strip() if found else ""


def test_a_token_is_shown_once_works_and_is_revoked(client: Client, alice: User) -> None:
    page = client.post("/settings/tokens/make/", {"name": "airflow", "scopes": ["read"], "days": "30"})
    text = re.search(r">(ondatra_[\w-]+)<", page.content.decode())
    assert text and page["Cache-Control"] == "no-store"
    head = {"Authorization": f"Bearer {text[1]}"}

    listed = client.get("/settings/tokens/").content.decode()
    works = client.get("/api/v1/syncs", headers=head).status_code
    client.post(f"/settings/tokens/{ApiToken.objects.get().pk}/revoke/")

    assert ("airflow" in listed, text[1] in listed) == (True, False)
    assert (works, client.get("/api/v1/syncs", headers=head).status_code) == (200, 401)
    assert list(AuditLog.objects.order_by("pk").values_list("who", "action", "target")) == [
        ("alice", "make_token", "airflow"),
        ("alice", "revoke_token", "airflow"),
    ]


@pytest.mark.parametrize("told", [{"name": "x"}, {"name": "", "scopes": "read"}, {"name": "x", "scopes": "all"}])
def test_a_token_without_name_or_scope_is_not_made(client: Client, alice: User, told: dict[str, str]) -> None:
    answer = client.post("/settings/tokens/make/", told)

    assert (answer.status_code, bool(problem(answer)), ApiToken.objects.count()) == (422, True, 0)


def test_a_token_of_another_organization_is_not_there(client: Client, alice: User) -> None:
    there = workspace("elsewhere")
    theirs = ApiToken.objects.create(organization=there.organization, user=person("eve", there), name="t", digest="d")

    assert client.post(f"/settings/tokens/{theirs.pk}/revoke/").status_code == 404
    assert ApiToken.objects.count() == 1


def test_a_workspace_is_made_and_moved_on_a_page(client: Client, alice: User, place: Workspace, roots: Path) -> None:
    told = {"slug": "mine", "project": str(roots / "ours"), "allow_paths": f"{roots / 'shared'}\n\n"}
    client.post("/settings/workspaces/add/", told)
    made = Workspace.objects.get(slug="mine")
    client.post(f"/settings/workspaces/{made.pk}/save/", {"slug": "other", "project": str(roots / "shared")})

    moved = Workspace.objects.get(pk=made.pk)
    assert (made.organization, made.project_dir, made.allow_paths) == (
        place.organization,
        str(roots / "ours"),
        [str(roots / "shared")],
    )
    assert (moved.slug, moved.project_dir, moved.allow_paths) == ("mine", str(roots / "shared"), [])
    assert list(AuditLog.objects.values_list("who", "action")) == [("alice", "save_workspace")] * 2


def test_an_admin_reaches_no_folder_of_the_machine_or_of_another_organization(
    client: Client, alice: User, roots: Path
) -> None:
    (roots / "link").symlink_to(roots / "theirs")
    (roots / "theirs.env").write_text("KEY=1")

    def refused(**told: str) -> str:
        answer = client.post("/settings/workspaces/add/", {"slug": "mine", "project": str(roots / "ours"), **told})
        assert answer.status_code == 422
        return problem(answer)

    theirs, below = "is another organization&#x27;s", "lies below no folder that workspaces may use"
    assert theirs in refused(project=str(roots / "theirs"))
    assert theirs in refused(project=str(roots / "link"))
    assert theirs in refused(env_file=str(roots / "theirs.env"))
    for path in ("/etc", "/nowhere/at/all", str(roots), str(roots / ".." / "x")):
        assert below in refused(project=path)
        assert below in refused(allow_paths=path)
    assert below in refused(env_file="/proc/self/environ")
    assert "is taken" in refused(slug="elsewhere")
    assert Workspace.objects.filter(slug="mine").count() == 0


def test_without_such_folders_only_who_runs_the_install_saves_one(client: Client, alice: User, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    told = {"slug": "mine", "project": str(tmp_path / "p")}
    refused = client.post("/settings/workspaces/add/", told)
    User.objects.filter(pk=alice.pk).update(is_superuser=True)

    assert "ONDATRA_WORKSPACE_ROOTS" in problem(refused)
    assert client.post("/settings/workspaces/add/", told).status_code == 302
    assert "there is no such folder" in problem(
        client.post("/settings/workspaces/add/", {"slug": "more", "project": "/nowhere"})
    )


def test_other_workspaces_are_not_there_and_roles_below_admin_see_no_paths(client: Client, roots: Path) -> None:
    there = Workspace.objects.get(slug="elsewhere")
    client.force_login(person("bob", workspace(), "operator"))

    assert client.get(f"/settings/workspaces/{there.pk}/").status_code == 404
    assert client.get("/settings/workspaces/").status_code == 403
