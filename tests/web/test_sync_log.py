"""The table sync_log: records of all runs once, by Spark, from a folder and from a bucket; whatever happens half
way."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from pyspark.sql import SparkSession
from seaweed import BUCKET, S3Server

from ondatra_web.clock import scheduling
from ondatra_web.models import Destination, DestinationObject, Organization, RecordFile, Sync, SyncLog
from ondatra_web.tracking import facts, sync_log
from runtime.lake.spark import isolated
from runtime.lake.table import LakeTable
from runtime.store.opening import open_store
from runtime.tracking import sync_log as table
from tests.web.filled import a_run, a_sync, closing, put_records, record, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.server)])
def organization(
    request: pytest.FixtureRequest, spark: SparkSession, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Organization:
    """Store and lake in a folder, or both in a bucket that Spark reads as on a cluster."""
    place = tmp_path.as_uri()
    if request.param == "bucket":
        s3: S3Server = request.getfixturevalue("s3")
        for name, value in s3.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("ondatra_web.tracking.sync_log.ON_A_CLUSTER", True)
        place = f"s3://{BUCKET}/{uuid.uuid4().hex}"
        settings.ONDATRA = dataclasses.replace(django_settings.ONDATRA, s3_endpoint=s3.endpoint)
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, tracking_url=f"{place}/store", lake_url=f"{place}/lake")
    return workspace().organization


def a_log(sync: Sync, *files: list[dict[str, Any]], **more: Any) -> None:
    run = a_run(sync, **closing(1))
    for number, rows in enumerate(files):
        put_records(run, Path(), rows, number=number, store=open_store(django_settings.ONDATRA.tracking_url))


def logged(organization: Organization) -> list[tuple[Any, ...]]:
    rows = LakeTable(sync_log.url_of(organization)).read(isolated(django_settings.ONDATRA)).collect()
    return sorted((r["identifier"], r["status"], r["sync_run_id"], r["destination_object_id"]) for r in rows)


def test_every_record_stands_once_and_joins_the_fact_tables(
    organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace()
    target = DestinationObject.objects.create(
        destination=Destination.objects.create(workspace=place, type="HubSpot"), name="Contact"
    )
    sync = a_sync(place, destination=target)
    a_log(sync, [record("a"), record("b", "rejected", "no")], [record("c", row=7, previous={"tailnum": "c"})])

    call_command("sync_log")
    first = logged(organization)
    assert [(i, s, d) for i, s, _, d in first] == [
        ("a", "succeeded", target.pk),
        ("b", "rejected", target.pk),
        ("c", "succeeded", target.pk),
    ]

    # a process that died behind the commit, and one that died before it
    SyncLog.objects.update(done=0)
    call_command("sync_log")
    assert logged(organization) == first
    a_log(sync, [record("d")])
    with monkeypatch.context() as broken, pytest.raises(SystemExit):
        broken.setattr(table, "append", lambda *_, **__: 1 / 0)
        call_command("sync_log")
    assert RecordFile.objects.filter(log_batch=2).count() == 1  # it keeps its number
    call_command("sync_log")
    assert [row[0] for row in logged(organization)] == ["a", "b", "c", "d"]
    version = LakeTable(sync_log.url_of(organization)).version(isolated(django_settings.ONDATRA))
    call_command("sync_log")
    assert LakeTable(sync_log.url_of(organization)).version(isolated(django_settings.ONDATRA)) == version

    spark = isolated(django_settings.ONDATRA)
    for url in facts.write_fact_tables(organization):
        spark.read.parquet(table.path_of(url)).createOrReplaceTempView(url.rsplit("/", 1)[-1].removesuffix(".parquet"))
    LakeTable(sync_log.url_of(organization)).read(spark).createOrReplaceTempView("sync_log")
    joined = spark.sql("""SELECT s.name, d.name, o.name, sync_log.status, count(*) FROM sync_log
        JOIN source_objects s ON s.id = source_object_id
        JOIN destinations d ON d.id = destination_id JOIN destination_objects o ON o.id = destination_object_id
        GROUP BY ALL ORDER BY status""").collect()
    assert [tuple(row) for row in joined] == [
        (sync.name, "HubSpot", "Contact", "rejected", 1),
        (sync.name, "HubSpot", "Contact", "succeeded", 3),
    ]


def test_a_damaged_file_is_named_and_holds_nothing_else_up(
    organization: Organization, capsys: pytest.CaptureFixture[str]
) -> None:
    a_log(a_sync(workspace()), [record("a")], [record("b")], [record("c")])
    store = open_store(django_settings.ONDATRA.tracking_url)
    path = store.path_of(RecordFile.objects.get(number=1).url)
    whole = store.get(path)
    store.replace(path, whole[:-20])

    with pytest.raises(SystemExit):
        call_command("sync_log")
    assert f"{path} is left out for now" in capsys.readouterr().err
    assert [row[0] for row in logged(organization)] == ["a", "c"]

    store.replace(path, whole)
    call_command("sync_log")
    assert [row[0] for row in logged(organization)] == ["a", "b", "c"]


def test_the_scheduler_wakes_the_pipeline_worker_only_for_new_records(
    settings: Any, stub_broker: Any, tmp_path: Path
) -> None:
    def waiting() -> list[Any]:
        scheduling.write_sync_log()
        said = list(stub_broker.queues["pipeline"].queue) if "pipeline" in stub_broker.queues else []
        stub_broker.flush_all()
        return said

    place = workspace()
    settings.ONDATRA = dataclasses.replace(django_settings.ONDATRA, tracking_url=tmp_path.as_uri())
    assert len(waiting()) == 0
    a_log(a_sync(place), [record("a")])
    assert len(waiting()) == 1
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, keeps_sync_log=False)
    assert len(waiting()) == 0
