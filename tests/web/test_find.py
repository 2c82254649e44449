"""Find: one identifier in every sync, however many there are."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ondatra_web import tokens
from ondatra_web.models import Run
from ondatra_web.tracking import finding, history
from runtime.custody.masks import Masker
from runtime.model import Mask
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db
ROW = re.compile(r'<code>([^<]*)</code>.*?/syncs/\d+/">([^<]*)</a>.*?Open in run (\d+)', re.S)


@pytest.fixture
def alice(client: Client, tmp_path: Path, settings: Any) -> Client:
    """The owner of an install whose indexes are its own: ids begin anew with each test."""
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, data_dir=tmp_path / "data")
    client.force_login(person("alice", workspace()))
    return client


def _kept(place: Path, name: str, *identifiers: str, ago: int = 1) -> Run:
    """A sync that ran some hours ago, with these records."""
    run = a_run(a_sync(workspace(), name), ago=timedelta(hours=ago), **closing(len(identifiers)))
    put_records(run, place, [record(identifier, row=row) for row, identifier in enumerate(identifiers)])
    return run


def _page(client: Client, address: str) -> str:
    return " ".join(unescape(client.get(address).content.decode()).split())


def _found(text: str) -> list[tuple[str, str, int]]:
    """Identifier, sync and run of each row of the page."""
    return [(identifier, sync, int(run)) for identifier, sync, run in ROW.findall(text)]


def test_a_record_of_the_last_of_many_syncs_is_found(alice: Client, tmp_path: Path) -> None:
    run = _kept(tmp_path, "sync.first", "N201AA")
    for n in range(101):
        a_run(a_sync(workspace(), f"sync.n{n}"), **closing(1))

    text = _page(alice, "/find/?q=N201AA")

    assert _found(text) == [("N201AA", "sync.first", run.pk)]
    assert "Searched 102 of 102 syncs" in text


def test_a_search_that_takes_long_says_how_far_it_is_and_goes_on(
    alice: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [_kept(tmp_path, f"sync.n{n}", "N201AA") for n in range(3)]
    monkeypatch.setattr(finding, "SECONDS", 0)

    address, said, found = "/find/?q=N201AA", [], []
    while address:
        text = _page(alice, address)
        said += re.findall(r"Searched \d of 3", text)
        found += [run for _, _, run in _found(text)]
        on = re.search(r'href="(\S+)" hx-get', text)
        address = f"/find/{on[1]}" if on else ""

    assert said == ["Searched 1 of 3", "Searched 2 of 3", "Searched 3 of 3"]
    assert found == [run.pk for run in reversed(runs)]


def test_a_program_searches_in_the_same_steps(alice: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [_kept(tmp_path, f"sync.n{n}", "N201AA") for n in range(3)]
    monkeypatch.setattr(finding, "SECONDS", 0)
    place = workspace()
    token = tokens.make(place.organization, person("ada", place), "t", ["records"])[1]

    said, cursor = [], ""
    while cursor is not None:
        address = f"/api/v1/find?q=N201AA{cursor and f'&cursor={cursor}'}"
        told = alice.get(address, headers={"authorization": f"Bearer {token}"}).json()["data"]
        cursor = told["next_cursor"]
        said.append((told["syncs_searched"], told["syncs"], [r["sync_run_id"] for r in told["records"]]))

    assert said == [(n + 1, 3, [run.pk]) for n, run in enumerate(reversed(runs))]


def test_a_run_that_begins_meanwhile_hides_no_sync(
    alice: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = _kept(tmp_path, "sync.old", "N201AA")
    _kept(tmp_path, "sync.new", "N1", "N3")
    monkeypatch.setattr(finding, "SECONDS", 0)
    on = re.search(r'href="(\S+)" hx-get', _page(alice, "/find/?q=N201AA"))
    assert on is not None

    a_run(old.sync, "working")

    assert _found(_page(alice, f"/find/{on[1]}")) == [("N201AA", "sync.old", old.pk)]


def test_the_newest_record_of_each_sync_stands_first(alice: Client, tmp_path: Path) -> None:
    old = _kept(tmp_path, "sync.aircraft", "N201AA", ago=9)
    new = a_run(old.sync, **closing(1))
    put_records(new, tmp_path, [record("N201AA", "rejected", "no year", "reject", row=5)])

    assert _found(_page(alice, "/find/?q=N201AA")) == [("N201AA", "sync.aircraft", new.pk)]


def test_what_begins_so_is_found_where_it_is_asked_for(alice: Client, tmp_path: Path) -> None:
    run = _kept(tmp_path, "sync.aircraft", "N201AA", "N202AA", "N300", "n201")

    assert _found(_page(alice, "/find/?q=N20")) == []
    assert _found(_page(alice, "/find/?q=N20&how=beginning")) == [
        ("N202AA", "sync.aircraft", run.pk),
        ("N201AA", "sync.aircraft", run.pk),
    ]


@pytest.mark.parametrize("indexed", [False, True])
def test_a_beginning_reads_the_same_with_and_without_the_index(alice: Client, tmp_path: Path, indexed: bool) -> None:
    run = _kept(tmp_path, "sync.aircraft", "N200", *(f"N20%_{n}" for n in range(3)), "N21")
    if indexed:
        history.refresh(run.sync.workspace.organization)
        for file in history.files_of(run.sync):
            file.store.delete(file.path)

    found = _found(_page(alice, "/find/?q=N20%25_&how=beginning"))

    assert [identifier for identifier, _, _ in found] == ["N20%_2", "N20%_1", "N20%_0"]


def test_more_things_than_are_shown_are_said(alice: Client, tmp_path: Path) -> None:
    _kept(tmp_path, "sync.aircraft", *(f"N{n}" for n in range(finding.MOST_OF_A_SYNC + 1)))

    text = _page(alice, "/find/?q=N&how=beginning")

    assert len(_found(text)) == finding.MOST_OF_A_SYNC
    assert "begin so: give more of the identifier" in text


@pytest.mark.parametrize("how", ["whole", "beginning"])
def test_a_masked_identifier_is_found_by_its_plain_form(alice: Client, tmp_path: Path, how: str) -> None:
    hashed = Masker([Mask("identifier", "hash")], workspace().mask_key).value("identifier", "ada@example.com")
    run = _kept(tmp_path, "sync.contacts", str(hashed))

    assert [found for _, _, found in _found(_page(alice, f"/find/?q=ada@example.com&how={how}"))] == [run.pk]


def test_nothing_found_says_what_was_searched_and_offers_the_beginning(alice: Client, tmp_path: Path) -> None:
    _kept(tmp_path, "sync.aircraft", "N201AA")

    text = _page(alice, "/find/?q=N20")

    assert "No kept record is called “N20”" in text
    assert "Searched 1 of 1 sync," in text
    assert 'href="?q=N20&how=beginning"' in text


def test_records_of_others_are_not_searched(client: Client, tmp_path: Path) -> None:
    _kept(tmp_path, "sync.aircraft", "N201AA")
    client.force_login(person("charlie", workspace("elsewhere")))

    text = _page(client, "/find/?q=N201AA")

    assert _found(text) == []
    assert "Searched 0 of 0 syncs" in text
