"""Whole results as a job: what the worker writes, how far it is, who may fetch it, and what becomes of it."""

from __future__ import annotations

import dataclasses
import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from django.test import Client
from django.utils import timezone

from ondatra_web import queue
from ondatra_web.models import AuditLog, Export, Run, Worker
from ondatra_web.tracking import exporting, retention
from ondatra_web.views import downloads
from runtime.custody.masks import Masker
from runtime.errors import ConfigError
from runtime.model import Mask
from runtime.records.filter import Filter
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db
ROWS = 120


@pytest.fixture
def run(tmp_path: Path, settings: Any) -> Run:
    """Rows in three files, every tenth rejected, one of them a formula."""
    settings.ONDATRA = dataclasses.replace(
        settings.ONDATRA, data_dir=tmp_path / "data", tracking_url=(tmp_path / "store").as_uri()
    )
    found = a_run(a_sync(workspace()), "completed_with_rejects", **closing(ROWS, rejected=12))
    rows = [
        record("=1+1" if i == 5 else f"N{i:03}", *(("rejected", f"bad {i}", "reject") if i % 10 == 0 else ()), row=i)
        for i in range(ROWS)
    ]
    for number in range(3):
        put_records(found, tmp_path / "store", rows[40 * number : 40 * number + 40], number=number)
    return found


@pytest.fixture
def alice(client: Client, run: Run) -> Client:
    client.force_login(person("alice", run.sync.workspace))
    return client


def done(run: Run, filter: Filter | None = None, format: str = "csv") -> Export:
    made = exporting.start(run, filter or Filter(), format)
    exporting.work(made.pk)
    made.refresh_from_db()
    return made


def test_a_job_writes_every_format_whole_and_says_how_many(run: Run) -> None:
    made = {format: done(run, format=format) for format in ("csv", "jsonl", "json", "parquet")}

    read = {format: exporting.place(one).read_bytes() for format, one in made.items()}
    assert {(one.status, one.rows, one.wanted, one.error) for one in made.values()} == {("done", ROWS, ROWS, "")}
    assert [one.size for one in made.values()] == [len(data) for data in read.values()]
    assert (
        [orjson.loads(line)["row_id"] for line in read["jsonl"].splitlines()]
        == [r["row_id"] for r in orjson.loads(read["json"])]
        == list(range(ROWS))
    )
    assert pq.read_table(io.BytesIO(read["parquet"])).column("identifier").to_pylist()[4:6] == ["N004", "=1+1"]
    assert b'\r\n"\'=1+1",' in read["csv"] and read["csv"].count(b"\r\n") == ROWS + 1


def test_more_rows_than_come_at_once_are_a_job_with_a_sample_beside_it(
    alice: Client, run: Run, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    monkeypatch.setattr(downloads, "MOST_AT_ONCE", 50)
    monkeypatch.setattr(downloads, "SAMPLE", 7)
    page = alice.get(f"/runs/{run.pk}/records/").content.decode()
    assert "All 120, as a file to fetch" in page and "The first 7, at once" in page
    assert alice.get(f"/runs/{run.pk}/records/download/?format=csv").status_code == 413
    sample = b"".join(alice.get(f"/runs/{run.pk}/records/download/?format=jsonl&sample=1").streaming_content)  # type: ignore[arg-type]
    assert len(sample.splitlines()) == 7

    with django_capture_on_commit_callbacks(execute=True):
        address = alice.post(f"/runs/{run.pk}/records/export/?status=rejected", {"format": "jsonl"})["Location"]
    assert "Queued" in alice.get(address).content.decode()
    assert [m.actor_name for m in _messages()] == ["export"]
    made = Export.objects.get()
    exporting.work(made.pk)
    shown = _text(alice, address)
    assert "12 rows" in shown and "sync.aircraft.run" in shown and ".rejected.jsonl" in shown
    fetched = alice.get(f"{address}file/")
    lines = b"".join(fetched.streaming_content).splitlines()  # type: ignore[arg-type]
    assert [orjson.loads(line)["row_id"] for line in lines] == list(range(0, ROWS, 10))
    assert "jsonl · 12 rows · done" in _text(alice, f"/runs/{run.pk}/records/")


def _text(client: Client, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


def _messages() -> list[Any]:
    import dramatiq

    queue.broker().declare_queue("export")
    waiting = queue.broker().queues["export"]  # type: ignore[attr-defined]
    return [dramatiq.Message.decode(waiting.get()) for _ in range(waiting.qsize())]


def test_progress_is_told_and_a_cancelled_export_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "TELL_SECONDS", 0)
    made, seen = exporting.start(run, Filter(), "csv"), []
    teller = exporting._teller

    def spy(export: Export) -> Any:
        tell = teller(export)

        def told(rows: int) -> None:
            tell(rows)
            seen.append((Export.objects.get(pk=made.pk).rows, Export.objects.get(pk=made.pk).percent))
            if rows == 80:
                exporting.cancel(made)

        return told

    monkeypatch.setattr(exporting, "_teller", spy)
    exporting.work(made.pk)

    made.refresh_from_db()
    assert (seen, made.status) == ([(40, 33), (80, 66)], "cancelled")
    assert list(exporting.place(made).parent.iterdir()) == []


def test_a_damaged_file_is_named_and_everything_else_is_in_the_file(alice: Client, run: Run, tmp_path: Path) -> None:
    place = next((tmp_path / "store").rglob("records_updated.1.parquet"))
    data = bytearray(place.read_bytes())
    data[40:400] = bytes(360)  # its footer still reads well
    place.write_bytes(bytes(data))

    made = done(run, format="jsonl")

    kept = [orjson.loads(line)["row_id"] for line in exporting.place(made).read_bytes().splitlines()]
    assert (made.status, kept) == ("done", [*range(40), *range(80, 120)])
    assert "records_updated.1.parquet" in made.error
    assert "Not in the file:" in alice.get(f"/exports/{made.pk}/").content.decode()


def test_an_export_whose_worker_died_is_begun_anew_and_one_that_lives_is_left_alone(run: Run) -> None:
    made = exporting.start(run, Filter(), "csv")
    dead = Worker.objects.create(kind="push", host="h", pid=1, ended_at=timezone.now())
    alive = Worker.objects.create(kind="push", host="elsewhere", pid=1, lock="/nowhere/w.lock")
    Export.objects.filter(pk=made.pk).update(status="working", owner=alive)
    exporting.work(made.pk)
    assert not exporting.place(made).exists()
    Export.objects.filter(pk=made.pk).update(owner=dead)
    _messages()
    exporting.resume()
    assert [m.args for m in _messages()] == [(made.pk,)]

    exporting.work(made.pk)

    made.refresh_from_db()
    assert (made.status, made.lease, exporting.place(made).exists()) == ("done", 1, True)


def test_what_was_searched_for_is_not_kept_where_the_key_is_masked(client: Client, run: Run, tmp_path: Path) -> None:
    masked = a_run(a_sync(workspace(), "sync.contacts"), **closing(1))
    hashed = Masker([Mask("identifier", "hash")], masked.sync.workspace.mask_key).value("identifier", "ada@example.com")
    put_records(masked, tmp_path / "store", [record(hashed), record("f" * 64)])
    client.force_login(person("alice", masked.sync.workspace))

    address = client.post(f"/runs/{masked.pk}/records/export/?q=ada@example.com", {"format": "csv"})["Location"]

    assert (
        "ada@example.com" not in str(list(Export.objects.values_list("filter"))) + client.get(address).content.decode()
    )
    made = Export.objects.get()
    exporting.work(made.pk)
    made.refresh_from_db()
    assert (made.rows, AuditLog.objects.get().detail) == (
        1,
        {"export": made.pk, "format": "csv", "identifiers": [hashed]},
    )


def test_asking_twice_is_one_job_and_there_is_a_bound(run: Run) -> None:
    first = exporting.start(run, Filter(status="rejected"), "csv")
    assert exporting.start(run, Filter(status="rejected"), "csv") == first
    for n in range(exporting.MOST_OPEN - 1):
        exporting.start(run, Filter(prefix=f"N{n}"), "csv")
    with pytest.raises(ConfigError, match="exports of run"):
        exporting.start(run, Filter(), "csv")
    with pytest.raises(ConfigError, match="there is no format 'xls'"):
        exporting.start(run, Filter(), "xls")


def test_a_store_that_is_gone_ends_the_job_with_its_reason(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "exports").write_text("in the way")

    made = exporting.start(run, Filter(), "csv")
    with pytest.raises(OSError):
        exporting.work(made.pk)
    (tmp_path / "data" / "exports").unlink()
    Export.objects.filter(pk=made.pk).update(status="queued")
    for place in (tmp_path / "store").rglob("*.parquet"):
        place.unlink()
    exporting.work(made.pk)
    made.refresh_from_db()
    assert made.status == "done" and made.rows == 0 and "records_updated.2" in made.error


def test_a_file_is_for_its_organization_and_for_a_while(alice: Client, client: Client, run: Run) -> None:
    made = done(run)
    other = Client()
    other.force_login(person("charlie", workspace("other")))
    assert [other.get(f"/exports/{made.pk}/{end}").status_code for end in ("", "live/", "file/")] == [404] * 3
    assert other.post(f"/exports/{made.pk}/cancel/").status_code == 404
    assert alice.get(f"/exports/{made.pk}/file/").status_code == 200

    Export.objects.filter(pk=made.pk).update(ended_at=timezone.now() - exporting.KEPT - timedelta(minutes=1))
    exporting.remove_old()
    assert not exporting.place(made).exists() and alice.get(f"/exports/{made.pk}/file/").status_code == 410
    assert "not kept any more" in alice.get(f"/exports/{made.pk}/").content.decode()


def test_the_file_of_a_run_goes_with_its_records(run: Run) -> None:
    made = done(run)
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=15))

    retention.expire()

    assert not exporting.place(made).exists()


def test_what_is_sent_again_is_not_kept_either_where_the_key_is_masked(
    client: Client, run: Run, tmp_path: Path
) -> None:
    masked = a_run(a_sync(workspace(), "sync.contacts"), **closing(1))
    hashed = Masker([Mask("identifier", "hash")], masked.sync.workspace.mask_key).value("identifier", "ada@example.com")
    put_records(masked, tmp_path / "store", [record(hashed), record("f" * 64)])
    client.force_login(person("alice", masked.sync.workspace))

    client.post(f"/runs/{masked.pk}/retry/?q=ada@example.com")

    again = Run.objects.get(trigger="retry")
    assert again.options == {"retry_of": masked.pk, "chosen": {"identifiers": [hashed]}}
    assert AuditLog.objects.get().detail == {"run": again.pk, "chosen": {"identifiers": [hashed]}}
