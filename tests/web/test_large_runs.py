"""One record of a large sync: only the files that may hold it are named and opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from ondatra_web.models import Chunk, Delivery, Run
from ondatra_web.tracking import history, records
from runtime.store.opening import open_store
from tests.web.filled import a_run, a_sync, closing, put_calls, put_records, record, workspace

pytestmark = pytest.mark.django_db


def a_delivery(run: Run, ordinal: int) -> Delivery:
    chunk = Chunk.objects.create(sync=run.sync, url=f"file:///{ordinal}.parquet", rows=1, records=1, states=b"")
    return Delivery.objects.create(run=run, chunk=chunk, ordinal=ordinal, rows=1, records=1)


def test_a_history_names_only_files_with_room_for_the_identifier(tmp_path: Path) -> None:
    sync = a_sync(workspace())
    folder = f"sync_tracking_datasets/{sync.workspace.organization_id}/{sync.pk}"
    bounds = [("B", "Z"), ("a", "f"), ("g", "\u00e9"), ("b\0a", "b\0z"), ("C" * 300, "C" * 300)]
    runs = [a_run(sync, **closing(2)) for _ in range(2)]
    for run in runs:
        for number, (low, high) in enumerate(bounds):
            put_records(run, tmp_path, [record(low), record(high)], number=number)
        open_store(tmp_path.as_uri()).replace(f"{folder}/{run.pk}/records_updated.1.parquet", b"damaged")

    def named(identifier: str) -> set[int]:
        return {int(f.name.split(".")[1]) for f in history.files_of(sync, [identifier])}

    assert [named(i) for i in ("g", "\u00e9", "Z", "b\0a", "C" * 300, "\u00ea")] == [
        {2},
        {2},
        {0},
        {1, 3},
        {0, 4},
        set(),
    ]
    assert [(e["identifier"], e["sync_run_id"]) for e in history.history_of(sync, "g")] == [
        ("g", str(run.pk)) for run in reversed(runs)
    ]
    assert [len(history.history_of(sync, i)) for i in ("B", "C" * 300)] == [2, 4]
    assert len(history.files_of(sync)) == 10  # the index is made of all


def test_the_requests_of_a_record_come_from_the_file_of_its_chunk(tmp_path: Path) -> None:
    run = a_run(a_sync(workspace()), **closing(2))
    for number, name in enumerate(("a", "b")):
        delivery = a_delivery(run, number)
        put_records(run, tmp_path, [record(name)], number=number, delivery=delivery)
        put_calls(run, tmp_path, [{"request_body": f"for {name}"}, {"request_body": "for all"}], delivery=delivery)
    told = {"batch_number": 1, "row_id": 0, "change_type": "insert", "identifier": "b"}
    other = open_store(tmp_path.as_uri())
    assert [c["request_body"] for c in records.calls_of(run, told, "records_updated.1:0")] == ["for b"]
    first = run.apicallfile_set.order_by("pk").first()
    assert first is not None
    other.replace(other.path_of(first.url), b"damaged")
    unknown = {**told, "identifier": "no such"}
    assert [c["request_body"] for c in records.calls_of(run, unknown, "records_updated.1:0")] == ["for b", "for all"]
