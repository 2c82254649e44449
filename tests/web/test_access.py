"""What a person may see and do, asked of the pages themselves. Which address answers whom stands in rights.txt."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.http import Http404
from django.test import Client

from ondatra_web.access import run_for, sync_for, syncs_of
from ondatra_web.models import AuditLog, Export, Run, Sync
from tests.web.filled import a_run, a_sync, closing, person, workspace

pytestmark = pytest.mark.django_db
WRITES = ["/syncs/{sync}/start/", "/runs/{run}/cancel/", "/runs/{run}/confirm/"]


@pytest.fixture
def sync() -> Sync:
    return a_sync(workspace())


@pytest.fixture
def run(sync: Sync) -> Run:
    return a_run(sync, **closing())


@pytest.fixture
def owner(sync: Sync) -> User:
    return person("alice", sync.workspace)


@pytest.fixture
def stranger() -> User:
    return person("charlie", workspace("elsewhere"))


@pytest.mark.parametrize("address", WRITES)
def test_a_stranger_cannot_start_or_stop_anything(client: Client, run: Run, stranger: User, address: str) -> None:
    client.force_login(stranger)

    assert client.post(address.format(sync=run.sync_id, run=run.pk)).status_code == 404
    assert AuditLog.objects.count() == 0


@pytest.mark.parametrize("address", WRITES)
def test_a_viewer_looks_but_does_not_start_or_stop(client: Client, run: Run, address: str) -> None:
    client.force_login(person("bob", run.sync.workspace, "viewer"))

    assert client.get(f"/runs/{run.pk}/").status_code == 200
    assert client.post(address.format(sync=run.sync_id, run=run.pk)).status_code == 403
    assert Run.objects.count() == 1


def test_a_viewer_is_shown_no_buttons_that_he_may_not_press(client: Client, run: Run) -> None:
    client.force_login(person("bob", run.sync.workspace, "viewer"))

    assert "/start/" not in client.get(f"/syncs/{run.sync_id}/").content.decode()


def test_lists_hold_only_what_belongs_to_the_persons_organizations(client: Client, run: Run, stranger: User) -> None:
    a_sync(workspace("elsewhere"), "sync.theirs")
    client.force_login(stranger)

    page = client.get("/syncs/").content.decode()

    assert "sync.theirs" in page
    assert "sync.aircraft" not in page


def test_access_functions_raise_for_strangers_and_answer_members(run: Run, owner: User, stranger: User) -> None:
    assert sync_for(owner, run.sync_id) == run.sync
    assert run_for(owner, run.pk) == run
    assert list(syncs_of(stranger)) == []
    with pytest.raises(Http404):
        sync_for(stranger, run.sync_id)
    with pytest.raises(Http404):
        run_for(stranger, run.pk)


@pytest.mark.parametrize("name, status", [("dora", 403), ("erin", 302), ("alice", 302)])
def test_an_export_is_cancelled_by_who_made_it_or_may_write(
    client: Client, run: Run, owner: User, name: str, status: int
) -> None:
    people = {"alice": owner, **{n: person(n, run.sync.workspace, "viewer") for n in ("dora", "erin")}}
    export = Export.objects.create(run=run, format="csv", created_by=people["erin"])
    client.force_login(people[name])

    answer = client.post(f"/exports/{export.pk}/cancel/")

    export.refresh_from_db()
    assert (answer.status_code, export.status) == (status, "queued" if status == 403 else "cancelled")


def test_nobody_is_signed_out_by_following_a_link(client: Client, owner: User) -> None:
    client.force_login(owner)

    assert client.get("/logout/").status_code == 405
    assert client.get("/").status_code == 200


def test_the_tests_host_is_none_of_an_install() -> None:
    from ondatra_web import settings

    assert settings.ALLOWED_HOSTS == ["localhost", "127.0.0.1", "[::1]"]
