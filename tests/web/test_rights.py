"""Every address of the product, asked by everybody: the answers stand in rights.txt, and an address without a row there
fails.

A method that has no row is refused (405). Whatever a request changes is rolled back.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core import signing
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from ondatra_web import people, tokens
from ondatra_web.alerts import rules
from ondatra_web.api.records import SALT
from ondatra_web.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertRule,
    ApiToken,
    Bucket,
    Export,
    Membership,
    ModelState,
    RecordFile,
    Role,
    SavedFilter,
)
from ondatra_web.tracking import exporting
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db
TABLE = Path(__file__).with_name("rights.txt")
#: Who asks, as the columns of the table: nobody, an admin of another organization, four roles, who runs the install.
PEOPLE = ("anonymous", "stranger", "metadata_viewer", "viewer", "operator", "admin", "staff")
METHODS = ("GET", "POST")
METHODS_OF_THE_API = (*METHODS, "PATCH", "DELETE")
#: What stands behind the address of a route that ends like this.
QUERIES = {
    "/history": "?sync_id={sync_id}",
    "/v1/find": "?q=N1",
    "<workspace_id>/add/": "?kind=failure",
    "<organization_id>/add/": "?kind=email",
}
#: Pages of the admin site for one table.
OF_A_TABLE = re.compile(r"/admin/\w+/\w+/")
Answers = dict[str, tuple[str, ...]]


def addresses() -> Iterator[str]:
    """Every route as the table writes it: `/runs/<run_id>/`; what takes any address ends with `<rest>`."""

    def walk(patterns: list[Any], before: str) -> Iterator[str]:
        for one in patterns:
            route = before + str(one.pattern)
            if isinstance(one, URLResolver):
                yield from walk(one.url_patterns, route)
            elif isinstance(one, URLPattern):
                yield re.sub(r"\(.*|\^.*", "<rest>", re.sub(r"<\w+:(\w+)>", r"<\1>", route))

    yield from walk(get_resolver().url_patterns, "/")


@pytest.fixture
def place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Any:
    """One row of each kind in an organization where each role has somebody, and the parts of addresses that name
    them."""
    cache.clear()
    caplog.set_level(logging.CRITICAL, "django.request")  # each refusal is written with its traceback
    there = workspace()
    sync = a_sync(there)
    run = a_run(sync, **closing(2, rejected=1))
    put_records(run, tmp_path / "store", [record("N1"), record("N2", "rejected", "no year", row=1)])
    admin = person("admin", there)
    bystander = person("bystander", there, "viewer")
    bucket = Bucket.objects.create(organization=there.organization, bucket="b", region="r")
    export = Export.objects.create(run=run, format="csv", status="done", ended_at=timezone.now())
    exporting.place(export).parent.mkdir(exist_ok=True)
    exporting.place(export).write_text("identifier\n")
    state = ModelState.objects.create(workspace=there, name="sync.aircraft", kind="merge")
    made, secret = people.invite(there.organization, Role.VIEWER, user=admin)
    token, _ = tokens.make(there.organization, bystander, "t", ["records"])
    rules.make_usual([there.pk])
    rule = AlertRule.objects.get(workspace=there, kind="failure")
    alert = Alert.objects.create(sync=sync, kind="failure", rule=rule, level="warning", since=timezone.now())
    channel = AlertChannel.objects.create(organization=there.organization, name="c", kind="webhook")
    delivery = AlertDelivery.objects.create(channel=channel, status="sent")
    file = RecordFile.objects.get(run=run)
    kept = SavedFilter.objects.create(user=bystander, organization=there.organization, name="f", chosen={"q": "a"})
    yield (
        there,
        {
            "sync_id": sync.pk,
            "run_id": run.pk,
            "export_id": export.pk,
            "state_id": state.pk,
            "organization_id": there.organization_id,
            "bucket_id": bucket.pk,
            "alert_id": alert.pk,
            "rule_id": rule.pk,
            "channel_id": channel.pk,
            "delivery_id": delivery.pk,
            "filter_id": kept.pk,
            "secret": secret,
            "invitation_id": made.pk,
            "membership_id": Membership.objects.get(user=bystander).pk,
            "workspace_id": there.pk,
            "token_id": token.pk,
            "signed": signing.dumps([file.pk, token.pk], salt=SALT),
            "identifier": "N1",
            "uidb64": urlsafe_base64_encode(force_bytes(bystander.pk)),
            "rest": "nothing",
            "name": "settings",
            "url": "nothing",
            "object_id": 1,
            "content_type_id": 1,
            "app_label": "ondatra_web",
            "id": 1,
            "key": 1,
            "deed": "expire",
            "token": default_token_generator.make_token(bystander),
        },
    )
    exporting.place(export).unlink()


class Asker:
    """One of PEOPLE, on pages by a session, in the API by a token with every scope."""

    #: Of all of them: each client of its own would look through the static files again.
    client = Client(raise_request_exception=False)

    def __init__(self, name: str, there: Any) -> None:
        self.name, self.session, self.text = name, "", ""
        if name == "anonymous":
            return
        if name == "staff":
            user, home = User.objects.create_superuser(name), there
        elif name == "stranger":
            home = workspace("elsewhere")
            user = person(name, home)
        else:
            home, user = there, User.objects.filter(username=name).first() or person(name, there, name)

        client = Client()
        client.force_login(user)
        self.session = client.cookies["sessionid"].value
        self.text = f"ondatra_{name}"
        ApiToken.objects.create(
            organization=home.organization,
            user=user,
            name=name,
            scopes=list(tokens.SCOPES),
            digest=tokens.digest(self.text),
            expires_at=timezone.now() + timedelta(hours=1),
        )

    def answer(self, method: str, address: str) -> str:
        """A status; `login` where a redirect leads there."""
        self.client.cookies.clear()
        head = {}
        if address.startswith("/api/") and self.text:
            head = {"Authorization": f"Bearer {self.text}"}
        elif self.session:
            self.client.cookies["sessionid"] = self.session
        with rolled_back():
            answer = self.client.generic(
                method, address, content_type="application/x-www-form-urlencoded", headers=head
            )
            leads_to = answer.headers.get("Location", "")
        return "login" if leads_to.startswith(("/login/", "/admin/login/")) else str(answer.status_code)


@contextmanager
def rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def filled_in(route: str, parts: dict[str, Any]) -> str:
    """An address of the route."""
    address = re.sub(r"<(\w+)>", lambda found: str(parts[found[1]]), route)
    return address + next((query for end, query in QUERIES.items() if route.endswith(end)), "").format(**parts)


def methods(route: str) -> tuple[str, ...]:
    return METHODS_OF_THE_API if route.startswith("/api/") else METHODS


def expected() -> Answers:
    rows = [line.split() for line in TABLE.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {f"{method} {route}": tuple(answers) for method, route, *answers in rows}


@pytest.mark.slow
def test_everybody_gets_the_answer_that_the_table_says(place: Any) -> None:
    there, parts = place
    askers = [Asker(name, there) for name in PEOPLE]
    told = expected()
    routes = {route for route in addresses() if f"GET {route}" in told or not OF_A_TABLE.match(route)}
    found: Answers = {}

    for asked in sorted(f"{method} {route}" for route in routes for method in methods(route)):
        method, route = asked.split()
        some = askers if asked in told else [askers[0], *askers[-2:]]
        answers = tuple(asker.answer(method, filled_in(route, parts)) for asker in some)
        if asked in told or "405" not in answers:
            found[asked] = answers

    assert found == told


def test_the_admin_sites_pages_of_tables_are_for_staff_alone(place: Any) -> None:
    """Told by one line and not by a row each: they are many, and have one gate."""
    there, parts = place
    told = expected()
    routes = {route for route in addresses() if OF_A_TABLE.match(route) and f"GET {route}" not in told}

    answers = {
        (route, asker.name): asker.answer("GET", filled_in(route, parts))
        for asker in (Asker("anonymous", there), Asker("admin", there))
        for route in routes
    }

    assert len(routes) > 50
    assert {asked: got for asked, got in answers.items() if got != "login"} == {}
