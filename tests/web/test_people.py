"""People come in, change what they are, and go: by links, on pages, with what each of it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from ondatra_web import people, tokens
from ondatra_web.models import ApiToken, AuditLog, Invitation, Membership, Workspace, WorkspaceRole
from tests.web.filled import a_sync, person, workspace

pytestmark = pytest.mark.django_db
NEW = {"password1": "mint-tea-at-nine", "password2": "mint-tea-at-nine"}


@pytest.fixture(autouse=True)
def fresh_limits() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def place() -> Workspace:
    return workspace()


@pytest.fixture
def admin(place: Workspace) -> Client:
    client = Client()
    client.force_login(person("alice", place))
    return client


def of(name: str) -> Membership:
    return Membership.objects.get(user__username=name)


def invited(admin: Client, role: str = "viewer", **told: Any) -> str:
    page = admin.post("/settings/members/invite/", {"role": role, **told}).content.decode()
    found = re.search(r"http://testserver(/invitations/[\w-]+/)", page)
    assert found, page
    return found[1]


def said(client: Client, address: str, **data: Any) -> str:
    return client.post(address, data, follow=True).content.decode()


# invitations


def test_an_invitation_makes_an_account_and_a_member_once(
    admin: Client, place: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    link, guest, late = invited(admin, "operator"), Client(), Client()
    caplog.clear()

    weak = guest.post(link, {"username": "bob", "password1": "bob", "password2": "bob"})
    joined = guest.post(link, {"username": "bob", **NEW}, follow=True)

    assert ("too short" in weak.content.decode(), joined.status_code) == (True, 200)
    assert link not in caplog.text
    assert "You belong to Default now." in joined.content.decode()
    assert (of("bob").role, guest.get("/settings/members/").status_code) == ("operator", 200)
    assert (late.get(link).status_code, late.post(link, {"username": "eve", **NEW}).status_code) == (410, 410)
    assert list(AuditLog.objects.order_by("pk").values_list("who", "action", "detail")) == [
        ("alice", "invite", {"role": "operator"}),
        ("bob", "join", {"role": "operator"}),
    ]


def test_who_has_an_account_joins_by_a_button_and_a_link_of_a_workspace_gives_a_role_there_alone(
    admin: Client, place: Workspace
) -> None:
    link, guest = invited(admin, "operator", workspace=place.pk), Client()
    guest.force_login(person("bob", workspace("elsewhere")))

    assert "Join as bob" in guest.get(link).content.decode()
    said(guest, link)

    member = Membership.objects.get(user__username="bob", organization=place.organization)
    assert (member.role, list(member.workspace_roles.values_list("workspace__slug", "role"))) == (
        "none",
        [("default", "operator")],
    )


def test_an_invitation_never_takes_a_right_away(admin: Client, place: Workspace) -> None:
    said(admin, invited(admin, "viewer"))
    said(admin, invited(admin, "viewer", workspace=place.pk))

    assert (of("alice").role, WorkspaceRole.objects.get().role) == ("admin", "admin")


@pytest.mark.parametrize("how", ["withdrawn", "old"])
def test_an_invitation_that_is_withdrawn_or_old_works_no_more(admin: Client, how: str) -> None:
    link = invited(admin)
    made = Invitation.objects.get()
    if how == "withdrawn":
        said(admin, f"/settings/members/invitations/{made.pk}/")
    else:
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert Client().post(link, {"username": "bob", **NEW}).status_code == 410
    assert not User.objects.filter(username="bob").exists()


def test_the_link_is_kept_nowhere(admin: Client) -> None:
    secret = invited(admin).split("/")[2]

    assert secret not in str([*Invitation.objects.values(), *AuditLog.objects.values()])
    assert secret not in admin.get("/settings/members/").content.decode()


def test_with_a_server_of_e_mail_the_link_is_sent(admin: Client, settings: Any) -> None:
    settings.MAIL_IS_SET = True

    link = invited(admin, "viewer", email="bob@example.com")

    assert [(m.to, f"http://testserver{link}" in m.body) for m in mail.outbox] == [(["bob@example.com"], True)]


def test_what_is_over_is_forgotten(admin: Client) -> None:
    invited(admin)
    people.forget_old()
    kept = Invitation.objects.count(), Session.objects.count()
    Invitation.objects.update(expires_at=timezone.now())
    Session.objects.update(expire_date=timezone.now())

    people.forget_old()

    assert (kept, Invitation.objects.count(), Session.objects.count()) == ((1, 1), 0, 0)


# roles, leaving, removing


def test_the_last_admin_stays_one_until_there_is_another(admin: Client, place: Workspace) -> None:
    alice, bob = of("alice"), person("bob", place, "viewer")
    for address in (f"/settings/members/{alice.pk}/change/", f"/settings/members/{alice.pk}/remove/"):
        assert "alice is the last admin of Default" in said(admin, address, role="viewer")
    assert of("alice").role == "admin"

    said(admin, f"/settings/members/{of('bob').pk}/change/", role="admin")
    left = said(admin, f"/settings/members/{alice.pk}/remove/")

    assert "You left Default." in left
    assert list(Membership.objects.values_list("user", "role")) == [(bob.pk, "admin")]


def test_an_admin_who_cannot_sign_in_does_not_count(admin: Client, place: Workspace) -> None:
    User.objects.filter(pk=person("bob", place).pk).update(is_active=False)

    assert "is the last admin" in said(admin, f"/settings/members/{of('alice').pk}/remove/")


def test_who_is_removed_loses_tokens_and_roles_of_workspaces(admin: Client, place: Workspace) -> None:
    bob = person("bob", place, "viewer")
    said(admin, f"/settings/members/{of('bob').pk}/change/", workspace=place.pk, role="operator")
    tokens.make(place.organization, bob, "t", ["read"])

    said(admin, f"/settings/members/{of('bob').pk}/remove/")

    assert (ApiToken.objects.count(), WorkspaceRole.objects.count(), bob.membership_set.count()) == (0, 0, 0)
    assert list(AuditLog.objects.order_by("-pk").values_list("who", "action")[:2]) == [
        ("alice", "remove_member"),
        ("alice", "revoke_token"),
    ]


def test_the_role_of_a_workspace_is_set_and_taken_back(admin: Client, place: Workspace) -> None:
    person("bob", place, "viewer")
    address = f"/settings/members/{of('bob').pk}/change/"

    said(admin, address, workspace=place.pk, role="none")
    none = list(WorkspaceRole.objects.values_list("role", flat=True))
    said(admin, address, workspace=place.pk, role="")

    assert (none, WorkspaceRole.objects.count()) == (["none"], 0)


def test_only_an_admin_changes_a_role_not_even_ones_own(place: Workspace, client: Client) -> None:
    client.force_login(person("bob", place, "operator"))
    person("eve", place, "viewer")

    statuses = [
        client.post(f"/settings/members/{of(name).pk}/{what}/", {"role": "admin"}).status_code
        for name, what in (("bob", "change"), ("eve", "change"), ("eve", "remove"), ("bob", "remove"))
    ]

    assert (statuses, of("eve").role) == ([403, 403, 403, 302], "viewer")
    assert client.post("/settings/members/invite/", {"role": "viewer"}).status_code == 404  # bob left


def test_lists_show_the_organization_that_was_chosen(client: Client, place: Workspace) -> None:
    there = workspace("elsewhere")
    a_sync(place, "sync.here"), a_sync(there, "sync.there")
    bob = person("bob", place)
    Membership.objects.create(user=bob, organization=there.organization, role="viewer")
    client.force_login(bob)

    def shown() -> list[str]:
        page = client.get("/syncs/").content.decode()
        return [name for name in ("sync.here", "sync.there") if name in page]

    first = shown()
    client.post("/settings/organization/", {"organization": there.organization_id})

    assert (first, shown(), client.get("/settings/tokens/").status_code) == (["sync.here"], ["sync.there"], 403)
    assert client.post("/settings/organization/", {"organization": 10**6}).status_code == 404


# sign-in, sessions, passwords


def sign_in(client: Client, name: str, password: str, address: str = "10.0.0.1") -> int:
    return client.post("/login/", {"username": name, "password": password}, REMOTE_ADDR=address).status_code


def test_after_five_wrong_passwords_the_right_one_waits_too_from_that_address(place: Workspace) -> None:
    person("alice", place)
    client = Client()
    for name in ("alice", "ALICE ", "alice", "alice", "alice"):
        assert sign_in(client, name, "wrong") == 200

    refused = client.post("/login/", {"username": "alice", "password": "alice-password"}, REMOTE_ADDR="10.0.0.1")

    assert (refused.status_code, int(refused["Retry-After"]) > 0) == (429, True)
    assert "Too many attempts" in refused.content.decode()
    assert sign_in(client, "alice", "alice-password", "10.0.0.2") == 302


def test_one_address_tries_fifty_names_and_one_name_is_tried_from_fifty_addresses(place: Workspace) -> None:
    person("alice", place)
    tries = [sign_in(Client(), f"nobody{number}", "wrong") for number in range(51)]
    others = [sign_in(Client(), "alice", "wrong", f"10.0.1.{number}") for number in range(51)]

    assert (tries[-2:], others[-2:]) == ([200, 429], [200, 429])


def test_a_sign_in_rotates_the_session_and_ends_after_a_week(client: Client, place: Workspace) -> None:
    person("alice", place)
    client.get("/login/")
    client.session["before"] = 1
    before = client.session.session_key

    sign_in(client, "alice", "alice-password")

    ends = client.session.get_expiry_date() - timezone.now()
    assert client.session.session_key != before
    assert timedelta(days=6) < ends <= timedelta(days=7)


def test_a_new_password_ends_every_other_session(client: Client) -> None:
    user, elsewhere = person("alice", workspace()), Client()
    for one in (client, elsewhere):
        one.force_login(user)

    wrong = client.post(
        "/settings/account/password/", {"old_password": "no", "new_password1": "a", "new_password2": "b"}
    )
    told = {"old_password": "alice-password", "new_password1": "mint-tea-at-nine", "new_password2": "mint-tea-at-nine"}
    done = client.post("/settings/account/password/", told)

    user.refresh_from_db()
    assert (wrong.status_code, done.status_code, user.check_password("mint-tea-at-nine")) == (422, 302, True)
    assert (client.get("/settings/account/").status_code, elsewhere.get("/settings/account/").status_code) == (200, 302)


def test_all_sessions_of_a_person_end_by_an_admin_and_all_others_by_oneself(admin: Client, place: Workspace) -> None:
    bob, here, there = person("bob", place, "viewer"), Client(), Client()
    for one in (here, there):
        one.force_login(bob)

    assert "1 other session of yours ended" in said(here, "/settings/account/sessions/")
    assert (here.get("/").status_code, there.get("/").status_code) == (200, 302)
    assert "1 sessions of bob have ended" in said(admin, f"/settings/members/{of('bob').pk}/change/", sessions=1)
    assert (here.get("/").status_code, admin.get("/").status_code) == (302, 200)


def test_a_lost_password_is_set_anew_by_the_link_of_an_e_mail(client: Client, place: Workspace, settings: Any) -> None:
    settings.MAIL_IS_SET = True
    bob = person("bob", place, "viewer")
    User.objects.filter(pk=bob.pk).update(email="bob@example.com")
    session = Client()
    session.force_login(bob)

    for address in ("bob@example.com", "nobody@example.com"):
        assert "a link is on its way" in said(client, "/password/lost/", email=address)
    (sent,) = mail.outbox
    link = re.search(r"http://testserver(/password/new/\S+)", sent.body)
    assert link
    form = client.get(link[1])["Location"]
    client.post(form, {"new_password1": "mint-tea-at-nine", "new_password2": "mint-tea-at-nine"})

    bob.refresh_from_db()
    assert (bob.check_password("mint-tea-at-nine"), session.get("/").status_code) == (True, 302)
    assert "was used or is older" in Client().get(link[1], follow=True).content.decode()


def test_without_e_mail_an_admin_makes_the_link_but_not_for_who_has_rights_elsewhere(
    admin: Client, place: Workspace
) -> None:
    person("bob", place, "viewer")
    eve = person("eve", place, "viewer")
    Membership.objects.create(user=eve, organization=workspace("elsewhere").organization, role="admin")

    page = said(admin, f"/settings/members/{of('bob').pk}/change/", reset=1)
    theirs = Membership.objects.get(user=eve, organization=place.organization)
    refused = said(admin, f"/settings/members/{theirs.pk}/change/", reset=1)

    assert re.search(r"http://testserver/password/new/\S+", page)
    assert "rights elsewhere" in refused and "/password/new/" not in refused


def test_the_address_for_lost_passwords_changes_with_the_password_only(admin: Client) -> None:
    wrong = admin.post("/settings/account/email/", {"email": "a@example.com", "password": "no"})
    before = User.objects.get(username="alice").email
    admin.post("/settings/account/email/", {"email": "a@example.com", "password": "alice-password"})

    assert (wrong.status_code, before, User.objects.get(username="alice").email) == (422, "", "a@example.com")
