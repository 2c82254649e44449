"""A workspace is made and changed in one place, whoever asks: the command's rules hold in the admin site too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ondatra_web import workspaces
from ondatra_web.models import AuditLog, Organization, Workspace
from ondatra_web.workspaces import Wanted
from runtime.config import ROOT
from tests.web.filled import workspace

pytestmark = pytest.mark.django_db
SYSTEMS = "it is the system's, and models would read passwords and other people's files: give a folder of its own"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("path", ["/", "/etc", "/etc/ssl", "/proc", "/home", "/var"])
def test_a_folder_of_the_system_is_neither_project_nor_allowed_path(project: Path, path: str) -> None:
    resolved = Path(path).resolve()

    assert workspaces.problems(Wanted("w", path)) == [("project_dir", f"project {resolved}: {SYSTEMS}")]
    assert workspaces.problems(Wanted("w", str(project), allow_paths=(path,))) == [
        ("allow_paths", f"allowed path {resolved}: {SYSTEMS}")
    ]


def test_a_link_to_the_system_is_followed(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")

    assert workspaces.problems(Wanted("w", str(tmp_path / "link"))) == [("project_dir", f"project /etc: {SYSTEMS}")]


@pytest.mark.parametrize("below", ["", "lake", ".."])
def test_what_the_install_keeps_is_no_allowed_path(project: Path, config: Any, below: str) -> None:
    path = (config.data_dir / below).resolve()
    path.mkdir(exist_ok=True)

    ((field, why),) = workspaces.problems(Wanted("w", str(project), allow_paths=(str(path),)))

    assert field == "allow_paths"
    assert f"models would read {config.data_dir}" in why or why.startswith(f"allowed path {path}: it is the system's")


@pytest.mark.parametrize("path", [ROOT, ROOT / "runtime", ROOT / "ondatra_web" / "runs"])
def test_the_code_of_the_install_is_no_allowed_path(project: Path, path: Path) -> None:
    ((field, why),) = workspaces.problems(Wanted("w", str(project), allow_paths=(str(path),)))

    assert (field, why.partition(":")[0]) == ("allow_paths", f"allowed path {path}")


def test_a_project_in_the_data_folder_is_refused(config: Any) -> None:
    folder = config.data_dir / "lake"
    folder.mkdir(exist_ok=True)

    assert workspaces.problems(Wanted("w", str(folder))) == [
        (
            "project_dir",
            f"project {folder} lies in {config.data_dir}, which the install keeps for itself: put it elsewhere",
        )
    ]


def test_every_workspace_has_a_mask_key_of_its_own(project: Path) -> None:
    made = [workspaces.save(Wanted(slug, str(project)))[0] for slug in ("one", "two")]

    assert [len(w.mask_key) for w in made] == [64, 64]
    assert made[0].mask_key != made[1].mask_key


def test_the_admin_site_makes_a_workspace_with_a_key_and_writes_it_down(admin: Client, project: Path) -> None:
    organization = Organization.objects.create(name="Ours")

    answer = admin.post(
        "/admin/ondatra_web/workspace/add/",
        {"organization": organization.pk, "slug": "mine", "project_dir": str(project), "allow_paths": "[]"},
    )

    assert answer.status_code == 302
    made = Workspace.objects.get(slug="mine")
    assert (made.organization, made.project_dir, len(made.mask_key)) == (organization, str(project), 64)
    assert AuditLog.objects.get(action="save_workspace").target == "mine"


def test_the_admin_site_refuses_what_the_command_refuses(admin: Client) -> None:
    organization = Organization.objects.create(name="Ours")

    answer = admin.post(
        "/admin/ondatra_web/workspace/add/",
        {"organization": organization.pk, "slug": "mine", "project_dir": "/etc", "allow_paths": '["/"]'},
    )

    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors == {
        "project_dir": [f"project /etc: {SYSTEMS}"],
        "allow_paths": [f"allowed path /: {SYSTEMS}"],
    }
    assert not Workspace.objects.filter(slug="mine").exists()


def test_the_admin_site_changes_paths_and_never_the_organization_or_the_slug(admin: Client, project: Path) -> None:
    place, other = workspace("mine"), Organization.objects.create(name="Other")

    answer = admin.post(
        f"/admin/ondatra_web/workspace/{place.pk}/change/",
        {"organization": other.pk, "slug": "theirs", "project_dir": str(project), "allow_paths": "[]"},
    )

    assert answer.status_code == 302
    now = Workspace.objects.get(pk=place.pk)
    assert (now.organization, now.slug, now.project_dir) == (place.organization, "mine", str(project))
