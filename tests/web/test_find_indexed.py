"""Find, answered by the index of histories: what it covers, what it lacks, and what it still names."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from ondatra_web.models import Organization, RecordFile, Run, Sync
from ondatra_web.tracking import finding, history
from runtime.records import newest
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(tmp_path: Path, settings: Any) -> Path:
    """An index of its own: ids begin anew with each test."""
    settings.ONDATRA = replace(settings.ONDATRA, data_dir=tmp_path / "data")
    return tmp_path


def _kept(sync: Sync, place: Path, *identifiers: str) -> Run:
    run = a_run(sync, **closing(len(identifiers)))
    put_records(run, place, [record(identifier, row=row) for row, identifier in enumerate(identifiers)])
    RecordFile.objects.update(written_at=timezone.now() - timedelta(hours=1))
    return run


def _home() -> Organization:
    return workspace().organization


def _without_files(*runs: Run) -> None:
    """Whoever opens one now does not find it."""
    for run in runs:
        for file in history.files_of(run.sync):
            file.store.delete(file.path)


def _search(q: str, *, begins: bool = False) -> finding.Search:
    user = User.objects.filter(username="alice").first() or person("alice", workspace())
    return finding.search(user, _home(), q, begins=begins, upto=finding.newest_run())


def _found(search: finding.Search) -> list[tuple[str, str, int]]:
    told = ((row["identifier"], row["sync"].name, int(row["sync_run_id"])) for row in search.rows)
    return sorted(told)


def test_the_index_answers_for_all_syncs_and_no_record_file_is_opened(place: Path) -> None:
    runs = [_kept(a_sync(workspace(), f"sync.n{n}"), place, "A", "B") for n in range(3)]
    newest_of_first = _kept(runs[0].sync, place, "B", "C")
    assert history.refresh(_home()) == 4
    _without_files(*runs)

    search = _search("B")

    assert _found(search) == [("B", f"sync.n{n}", run.pk) for n, run in enumerate([newest_of_first, *runs[1:]])]
    assert (search.searched, search.total, search.problems) == (3, 3, [])


def test_what_was_written_since_is_found_beside_it_and_stands_in_it_soon(place: Path) -> None:
    sync = a_sync(workspace(), "sync.n")
    _kept(sync, place, "A")
    history.refresh(_home())
    later = _kept(sync, place, "A")
    assert _found(_search("A")) == [("A", "sync.n", later.pk)]

    assert (history.add_new(_home()), history.add_new(_home())) == (1, 0)
    _without_files(later)
    assert _found(_search("A")) == [("A", "sync.n", later.pk)]


@pytest.mark.parametrize("settled", [True, False])
def test_a_thing_whose_newest_run_is_no_longer_kept_is_told_by_the_run_before(place: Path, settled: bool) -> None:
    sync = a_sync(workspace(), "sync.n")
    first, last = _kept(sync, place, "A", "B"), _kept(sync, place, "A", "C")
    history.refresh(_home())
    Run.objects.filter(pk=last.pk).update(rows_expired_at=timezone.now())
    RecordFile.objects.filter(run=last).delete()
    if settled:
        for _ in range(4):  # so that what is gone is too little to be written anew
            _kept(sync, place, "Z")
        history.refresh(_home())

    assert _found(_search("A")) == [("A", "sync.n", first.pk)]


def test_an_index_that_was_deleted_hides_nothing(place: Path) -> None:
    run = _kept(a_sync(workspace(), "sync.n"), place, "A")
    history.refresh(_home())
    for file in history.index_of(_home().pk).folder.glob("*.parquet"):
        file.unlink()

    assert _found(_search("A")) == [("A", "sync.n", run.pk)]


def test_where_too_many_begin_so_a_part_is_shown_and_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _kept(a_sync(workspace(), "sync.n"), place, "A1", "A2", "A3", "B1")
    history.refresh(_home())
    monkeypatch.setattr(newest, "MOST_ROWS", 2)

    search = _search("A", begins=True)

    assert _found(search) == [("A1", "sync.n", run.pk), ("A2", "sync.n", run.pk)]
    assert search.problems == [
        "so many begin so that only the first of the alphabet were looked at: give more of the identifier"
    ]


def test_a_store_that_cannot_be_opened_hides_its_own_files_only(place: Path) -> None:
    good = _kept(a_sync(workspace(), "sync.good"), place, "A")
    bad = _kept(a_sync(workspace(), "sync.bad"), place, "A")
    Run.objects.filter(pk=bad.pk).update(store_url="ftp://elsewhere")

    search = _search("A")

    assert _found(search) == [("A", "sync.good", good.pk)]
    assert [problem.partition(" is neither")[0] for problem in search.problems] == ["the store 'ftp://elsewhere'"]
