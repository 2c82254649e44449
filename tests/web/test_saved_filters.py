"""Filters of the list of syncs that a person keeps under a name."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from ondatra_web.models import Membership, SavedFilter, Workspace
from tests.web.filled import a_run, a_sync, person, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(client: Client, place: Workspace) -> Client:
    a_run(a_sync(place, "sync.crm", tags=["crm"]), "failed")
    a_run(a_sync(place, "sync.books"))
    client.force_login(person("ada", place))
    return client


def _saved(client: Client, address: str) -> list[tuple[str, str, bool]]:
    """Address and name of each that is offered, and whether it is the chosen one."""
    text = " ".join(unescape(client.get(address).content.decode()).split())
    bar = re.findall(r'aria-label="Saved filters">(.*?)</nav>', text)
    found = re.findall(r'href="([^"]*)"( aria-current="true")?>([^<]*)</a>', bar[0] if bar else "")
    return [(query, name, bool(here)) for query, here, name in found]


def _save(client: Client, **chosen: Any) -> Any:
    return client.post("/syncs/filters/", chosen, follow=True)


@pytest.mark.parametrize("page", ["/", "/syncs/"])
def test_a_filter_is_kept_under_a_name_and_chosen_from_home_and_from_the_list(ada: Client, page: str) -> None:
    there = _save(ada, name="Broken CRM", q="crm", state="failed", tag="crm", sort="last", **{"from": "home"})

    query = "?q=crm&state=failed&tag=crm&sort=last"
    assert (there.redirect_chain, there.status_code) == ([(f"/{query}", 302)], 200)
    assert _saved(ada, page) == [(query, "Broken CRM", False)]
    assert _saved(ada, f"{page}{query}") == [(query, "Broken CRM", True)]
    shown = ada.get(f"{page}{query}").content.decode()
    assert ("Remove Broken CRM" in shown, "Save this filter" in shown) == (True, False)


def test_only_what_is_chosen_can_be_saved(ada: Client) -> None:
    assert "Save this filter" not in ada.get("/syncs/?sort=last").content.decode()
    assert "Save this filter" in ada.get("/syncs/?state=failed&page=1").content.decode()

    said = _save(ada, name="Nothing", state="no such state").content.decode()
    assert "something that is chosen" in said
    assert "needs a name of up to 60 characters" in _save(ada, name="x" * 61, q="crm").content.decode()
    assert not SavedFilter.objects.exists()


def test_the_same_name_takes_the_place_of_the_one_before(ada: Client) -> None:
    _save(ada, name="Mine", q="crm")
    _save(ada, name="Mine", q="books")

    assert _saved(ada, "/syncs/") == [("?q=books", "Mine", False)]


def test_thirty_are_kept_and_no_more(ada: Client) -> None:
    for n in range(30):
        _save(ada, name=f"F{n}", q=f"a{n}")

    assert "30 filters are saved: remove one" in _save(ada, name="One more", q="b").content.decode()
    assert "30 filters are saved" not in _save(ada, name="F3", q="other").content.decode()
    assert SavedFilter.objects.count() == 30


def test_a_filter_is_its_persons_own_in_that_organization(ada: Client, place: Workspace) -> None:
    _save(ada, name="Mine", q="crm")
    mine = SavedFilter.objects.get()
    bob = Client()
    bob.force_login(person("bob", place))
    elsewhere = workspace("other").organization
    Membership.objects.create(user=mine.user, organization=elsewhere, role="viewer")

    assert (_saved(bob, "/syncs/"), bob.post(f"/syncs/filters/{mine.pk}/").status_code) == ([], 404)
    ada.post("/settings/organization/", {"organization": elsewhere.pk})
    assert _saved(ada, "/syncs/") == []
    Membership.objects.filter(user=mine.user, organization=place.organization).delete()
    assert ada.post(f"/syncs/filters/{mine.pk}/").status_code == 404


def test_one_is_removed_and_the_person_stays_where_they_were(ada: Client) -> None:
    _save(ada, name="Mine", q="crm")

    there = ada.post(f"/syncs/filters/{SavedFilter.objects.get().pk}/", {"from": "syncs"})

    assert (there["Location"], SavedFilter.objects.count()) == ("/syncs/", 0)
