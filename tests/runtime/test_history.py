"""The history of one thing over runs: the same with an index, without one, and with half of one."""

from __future__ import annotations

import fcntl

import duckdb
import pytest
from test_records import put, record

from runtime.records import query
from runtime.records.history import HistoryIndex
from runtime.store.folder import FolderStore


@pytest.fixture
def files(tmp_path):
    store = FolderStore(tmp_path / "store")
    return [
        put(
            store,
            [record(i, "rejected", f"no {run}", run=run) if i == run % 5 else record(i, run=run) for i in range(5)],
            0,
            run=run,
        )
        for run in range(1, 13)
    ]


@pytest.fixture
def index(tmp_path):
    return HistoryIndex(tmp_path / "it's the index")


def runs(found):
    return [(int(r["sync_run_id"]), r["status"]) for r in found]


EXPECTED = [(run, "rejected" if run % 5 == 2 else "succeeded") for run in range(12, 0, -1)]


@pytest.mark.parametrize("indexed", [0, 5, 12])
def test_a_history_is_whole_whatever_the_index_covers(files, index, indexed):
    index.refresh(files[:indexed])
    assert runs(index.find(files, ["id_0002"])) == EXPECTED


def test_a_history_says_where_the_record_lies(files, index):
    index.refresh(files)
    (newest,) = index.find(files, ["id_0003"], limit=1)
    run, address = newest["place"].split("/")
    assert (run, query.record([f for f in files if f.run_id == int(run)], address)["identifier"]) == ("12", "id_0003")


def test_an_indexed_history_opens_no_record_file(files, index):
    index.refresh(files)
    for f in files:
        f.store.delete(f.path)
    assert runs(index.find(files, ["id_0002"])) == EXPECTED


def test_the_index_grows_file_by_file_and_stays_a_few_files(files, index):
    for n in range(1, 13):
        assert index.refresh(files[:n]) == 1
    assert (runs(index.find(files, ["id_0002"])), len(index._places()) < 5) == (EXPECTED, True)
    assert index.refresh(files) == 0


def test_runs_that_are_no_longer_kept_leave_the_history(files, index):
    index.refresh(files[:6])
    assert runs(index.find(files[3:], ["id_0002"])) == EXPECTED[:9]
    index.refresh(files[3:])
    assert index.covered() >= {f"{n}/records_updated.0" for n in range(4, 13)}


def test_expired_records_and_broken_files_leave_the_index_itself(files, index):
    index.refresh(files)
    (index.folder / "broken.parquet").write_bytes(b"not parquet")
    index.refresh(files[4:])
    said = duckdb.execute(
        "SELECT DISTINCT sync_run_id FROM read_parquet($p)", {"p": str(index.folder / "*.parquet")}
    ).fetchall()
    assert {int(run) for (run,) in said} == set(range(5, 13)) and index.covered() == {
        f"{n}/records_updated.0" for n in range(5, 13)
    }
    index.refresh([])
    assert index._places() == []


def test_both_forms_of_an_identifier_are_looked_for(files, index):
    index.refresh(files[:6])
    assert len(index.find(files, ["id_0002", "id_0003"])) == 24


def test_an_index_that_was_deleted_is_made_again(files, index):
    index.refresh(files)
    for place in index._places():
        place.unlink()
    assert (index.refresh(files), runs(index.find(files, ["id_0002"]))) == (12, EXPECTED)


def test_only_one_process_makes_the_index(files, index):
    index.folder.mkdir()
    with (index.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert index.refresh(files) == 0
    assert index.refresh(files) == 12
