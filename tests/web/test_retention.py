"""What is removed when, what stays, and that a round may be broken off."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from seaweed import S3Server

from ondatra_web.models import ApiCallFile, Bucket, MessageGroup, RecordFile, Run, RunLog, Workspace
from ondatra_web.tracking import buckets, records, retention, stores
from runtime.errors import StoreError
from runtime.records import query
from runtime.records.filter import Filter
from runtime.store.folder import FolderStore
from tests.web.filled import a_run, a_sync, closing, person, put_calls, put_records, record, workspace
from tests.web.test_store import fresh, wanted

pytestmark = pytest.mark.django_db
OLD = timedelta(days=15)


@pytest.fixture
def place(settings: Any, tmp_path: Path) -> Workspace:
    settings.ONDATRA = dataclasses.replace(
        settings.ONDATRA, data_dir=tmp_path / "data", tracking_url=(tmp_path / "store").as_uri()
    )
    return workspace()


def kept(folder: Path, run: Run) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.parent.name == str(run.pk))


def test_each_sync_has_its_own_days_and_expired_runs_keep_counts_groups_and_a_line(
    place: Workspace, client: Client, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    short, long = a_sync(place, "sync.short", retention_days=2), a_sync(place, "sync.long", retention_days=60)
    runs = {
        (s.name, days): a_run(s, ago=timedelta(days=days), **closing(2, rejected=1))
        for s in (short, long)
        for days in (1, 15, 61)
    }
    for run in runs.values():
        put_records(run, store, [record("a"), record("b", "rejected", "bad address", "reject")])
        put_calls(run, store, [{}])

    assert retention.expire() == 3 and retention.expire() == 0

    expired = {name for name, run in runs.items() if Run.objects.get(pk=run.pk).rows_expired_at}
    assert expired == {("sync.short", 15), ("sync.short", 61), ("sync.long", 61)}
    assert {name for name, run in runs.items() if not kept(store, run)} == expired
    gone = runs["sync.short", 15]
    assert MessageGroup.objects.filter(run=gone).get().rows == 1 and Run.objects.get(pk=gone.pk).rejected == 1
    assert not RecordFile.objects.filter(run=gone).exists() and not ApiCallFile.objects.filter(run=gone).exists()
    assert RunLog.objects.get(run=gone).text == "the records were removed after 2 days: 2 files"
    client.force_login(person("alice", place))
    page = client.get(f"/runs/{gone.pk}/").content.decode()
    assert "records expired" in page and "bad address" in page and "View Records" not in page
    assert client.get(f"/runs/{gone.pk}/records/").status_code == 410
    assert "View Records" in client.get(f"/runs/{runs['sync.long', 15].pk}/").content.decode()


def test_a_round_that_breaks_off_goes_on_where_it_was(
    place: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, store = a_sync(place), tmp_path / "store"
    runs = [a_run(sync, ago=OLD, **closing(1)) for _ in range(3)]
    for run in runs:
        put_records(run, store, [record("a")])
        put_records(run, store, [record("b")], number=1)
    (store / f"sync_tracking_datasets/{place.organization_id}/{sync.pk}/{runs[1].pk}/notes.parquet").write_text(
        "somebody else's"
    )
    deleted: list[str] = []
    whole = FolderStore.delete

    def breaks(self: FolderStore, path: str) -> None:
        if deleted:
            raise KeyboardInterrupt
        deleted.append(path)
        whole(self, path)

    monkeypatch.setattr(FolderStore, "delete", breaks)
    with pytest.raises(KeyboardInterrupt):
        retention.expire()
    assert [bool(Run.objects.get(pk=r.pk).rows_expired_at) for r in runs] == [True, False, False]
    assert [len(kept(store, r)) for r in runs] == [0, 2, 2]
    monkeypatch.setattr(FolderStore, "delete", whole)

    assert retention.expire() == 2
    assert [kept(store, r) for r in runs] == [[], ["notes.parquet"], []]


def test_files_that_still_wait_and_stores_that_are_down_are_left_for_later(
    place: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = a_sync(place)
    pending, other = a_run(sync, ago=OLD, tracking="pending", **closing(1)), a_run(sync, ago=OLD, **closing(1))
    for run in (pending, other):
        put_records(run, tmp_path / "store", [record("a")])
    with monkeypatch.context() as down:
        down.setattr(FolderStore, "list", lambda *_: (_ for _ in ()).throw(StoreError("down")))
        assert retention.expire() == 0

    assert retention.expire() == 1
    assert [bool(kept(tmp_path / "store", r)) for r in (pending, other)] == [True, False]


def test_invalid_rows_that_a_later_run_shows_stay_until_that_run_expires(place: Workspace, tmp_path: Path) -> None:
    sync, store = a_sync(place), tmp_path / "store"
    first = a_run(sync, ago=OLD, **closing(2, invalid=1))
    put_records(first, store, [record("a")])
    put_records(first, store, [record(None, "NULL", "the key is NULL", "invalid")], batch_type="records_invalid")
    later = a_run(sync, **closing(2, invalid=1), store_url=store.as_uri())
    put_records(later, store, [record("b")])

    retention.expire()
    assert kept(store, first) == ["records_invalid.0.parquet"]
    assert [r["status"] for r in query.page(records.files_of(later), Filter()).rows] == ["succeeded", "NULL"]

    Run.objects.filter(pk=later.pk).update(created_at=timezone.now() - OLD)
    retention.expire()
    retention.expire()
    assert kept(store, first) == kept(store, later) == [] and not RecordFile.objects.exists()


def test_what_a_dry_run_would_have_sent_goes_with_its_days(place: Workspace, tmp_path: Path) -> None:
    run = a_run(a_sync(place), ago=OLD, dry_run=True, **closing(1))
    folder = tmp_path / "data" / "dry_runs" / str(run.pk)
    folder.mkdir(parents=True)
    (folder / "planned.0.parquet").write_text("x")

    assert retention.expire() == 1 and not folder.exists()


def test_a_bucket_of_its_own_is_never_cleaned_unless_told(
    s3: S3Server, place: Workspace, settings: Any, tmp_path: Path
) -> None:
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, bucket_endpoints=(s3.endpoint,))
    own = buckets.save(place.organization, wanted(s3, fresh(s3)))
    store = stores.at(own.url, own)
    run = a_run(a_sync(place), ago=timedelta(days=400), bucket=own, **closing(1))
    put_records(run, tmp_path, [record("a")], store=store)
    folder = f"sync_tracking_datasets/{place.organization_id}/{run.sync_id}/{run.pk}"

    assert retention.expire() == 0 and store.exists(f"{folder}/records_updated.0.parquet")
    Bucket.objects.filter(pk=own.pk).update(retention_days=500)
    assert retention.expire() == 0
    Bucket.objects.filter(pk=own.pk).update(retention_days=30)
    assert retention.expire() == 1 and list(store.list(folder)) == []
    assert store.exists("ondatra.json")
