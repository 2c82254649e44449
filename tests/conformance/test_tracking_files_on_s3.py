"""The strongest of the same cases with the store in a bucket of a real S3 server: written there by settings, read from there."""
import dataclasses
import json
import re
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import test_tracking_files as on_a_folder
from proxy import before
from pushing import SYNC, contacts, run_id, sent, source, statuses

BUCKET = "records"

test_a_run_writes_its_records_into_its_folder_by_batch_type = on_a_folder.test_a_run_writes_its_records_into_its_folder_by_batch_type
test_the_fact_tables_have_the_columns_asked_for_and_join_to_the_metadata = on_a_folder.test_the_fact_tables_have_the_columns_asked_for_and_join_to_the_metadata
test_each_request_and_its_answer_is_kept_with_its_batch = on_a_folder.test_each_request_and_its_answer_is_kept_with_its_batch
test_a_dry_run_leaves_no_files_of_tracking = on_a_folder.test_a_dry_run_leaves_no_files_of_tracking


@pytest.fixture
def proxy(s3):
    with before(s3.endpoint) as made:
        yield made


@pytest.fixture
def case(case, s3, proxy, monkeypatch, tmp_path):
    """The harness's case whose `store` is a copy of the bucket, as new as the moment it is asked for."""
    from django.conf import settings

    import boto3
    for name, value in {**s3.env, "AWS_ENDPOINT_URL_S3": proxy.url}.items():
        monkeypatch.setenv(name, value)
    prefix = uuid.uuid4().hex
    monkeypatch.setattr(settings, "ONDATRA", dataclasses.replace(settings.ONDATRA, tracking_url=f"s3://{BUCKET}/{prefix}"))
    client = boto3.client("s3", endpoint_url=s3.endpoint)

    def store(_):
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/"):
            for found in page.get("Contents", ()):
                place = tmp_path / "bucket" / found["Key"].removeprefix(f"{prefix}/")
                place.parent.mkdir(parents=True, exist_ok=True)
                client.download_file(BUCKET, found["Key"], str(place))
        return tmp_path / "bucket"

    case.url = f"s3://{BUCKET}/{prefix}"
    case.__class__ = type("CaseOnS3", (type(case),), {"store": property(store, lambda *_: None)})
    return case


def test_pages_and_commands_read_the_records_of_a_run_from_the_bucket(case):
    from django.contrib.auth.models import User
    from django.test import Client
    from ondatra_web.models import Membership, Organization

    result = on_a_folder.rejects(case)
    run = run_id(result)
    shown = case.command("records", run, "--format", "json", "--status", "rejected")
    assert [(r["identifier"], r["status_message"]) for r in json.loads(shown.stdout)] == [("2", "bad address"), ("3", "too long"), ("4", "bad address")]
    user = User.objects.create_user(f"reader{run}")
    Membership.objects.create(user=user, organization=Organization.objects.get(pk=case.metadata(SYNC)["organization_id"]))
    client = Client()
    client.force_login(user)
    window = client.get(f"/runs/{run}/records/?status=rejected").content.decode()
    assert [text in window for text in ("1–3 of 3", "bad address", "too long", f"{case.url}/sync_tracking_datasets/")] == [True] * 4
    panel = client.get(f"/runs/{run}/records/?record=records_updated.0:1").content.decode()
    assert "/push" in panel and "bad address" in panel          # the request of that row, from api_calls in the bucket
    lines = b"".join(client.get(f"/runs/{run}/records/download/?format=csv").streaming_content).splitlines()
    assert len(lines) == 6
    statuses(case)
    retried = case.command("retry", run, "--message-like", "bad", "--yes")
    assert retried.exit == 0, retried
    assert sorted(row[1] for row in sent(case)) == [1, 2, 2, 3, 4, 4, 5]


def test_the_notebook_answers_its_questions_on_the_bucket(case):
    on_a_folder.rejects(case)
    meta = case.metadata(SYNC)
    assert case.command("fact_tables").exit == 0
    notebook = Path(__file__).parents[2] / "docs" / "notebook.py"
    ids = [str(meta[name]) for name in ("organization_id", "sync_configuration_id", "sync_run_id")]
    done = subprocess.run([sys.executable, str(notebook), case.url, *ids], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = dict(part.split("\n", 1) for part in done.stdout.split("\n## ")[1:])
    assert re.search(r"bad address *│ \[2, 4\]", said["Rejected records by error message"]), done.stdout
    assert re.search(r"upsert *│ rejected *│ +3 ", said["Records by status and operation"])
    assert re.search(r"2 *│ bad address *│ \{\"id\":2,", said["Payloads of rejected records"])
    assert re.search(r"sync.contacts *│ id *│ number", said["Fields and their types"])
    assert re.search(rf"│ {ids[2]} *│ upsert *│ rejected", said["History of the record that was rejected most often"])
    assert re.search(r"sync.contacts *│ Crm *│ Record *│ rejected *│ +3 ", said["Records by source and destination object"])


def test_a_store_that_goes_down_loses_no_record_or_request_and_the_files_follow_whatever_the_project_says(case, proxy, monkeypatch):
    from django.conf import settings

    contacts(case, *[(i, f"p{i}@x") for i in range(1, 8)], push={"batch_size": 2})
    case.dest.rule("POST", "^/push$", handler=lambda call: (proxy.stop(), (200, {"statuses": {"3": "reject: no"}}))[1])
    ended = case.run()
    said = ended.sync(SYNC)
    assert (said["status"], said["counts"]["succeeded"], said["counts"]["rejected"], said["tracking"]) == ("completed_with_rejects", 6, 1, "pending")
    assert case.files(SYNC) == []

    with monkeypatch.context() as fewer:
        fewer.setattr(settings, "ONDATRA", dataclasses.replace(settings.ONDATRA, most_unwritten=6))
        case.write("data/contacts.csv", "id,email\n8,new@x\n")
        refused = case.run()
    assert (refused.exit, "7 records of earlier runs wait" in refused.text, case.sent()) == (2, True, [])
    proxy.down = False
    monkeypatch.setattr("ondatra_web.clock.scheduling.files_asked._passed", {})
    broken = case.write("models/sync/broken.sql", "SELECT 1 AS")        # an error in the project holds no files
    case.command("scheduler", "--once")
    broken.unlink()
    assert [(r["identifier"], r["status"]) for r in case.records(SYNC)] == [(str(i), "rejected" if i == 3 else "succeeded") for i in range(1, 8)]
    assert [(c["batch_number"], json.loads(c["response_text"])) for c in case.api_calls(SYNC)] == [(n, {"statuses": {"3": "reject: no"}}) for n in range(1, 5)]
    shown = case.command("records", said["run_id"], "--format", "json")
    assert [r["status"] for r in json.loads(shown.stdout)].count("succeeded") == 6
    assert case.run().exit == 0


def two_chunks(case, proxy, at_the_second):
    """A project whose next run deletes one row and then, in another chunk, adds one. The bucket is held up from the first call on; `at_the_second` is
    called while the second one is out. What tells the records of all later runs."""
    contacts(case, (1, "a@x"), (2, "b@x"), header="-- @on_missing: delete")
    assert case.run().exit == 0
    case.dest.clear()
    source(case, (2, "b@x"), (3, "c@x"))
    came = iter([proxy.through.clear, at_the_second])
    case.dest.rule("POST", "^/push$", handler=lambda call: (next(came, lambda: None)(), (200, {}))[1])
    first = run_folders(case)
    return lambda: sorted((r["identifier"], r["operation"], r["status"]) for folder in run_folders(case) - first
                          for place in folder.glob("*.parquet") for r in pq.read_table(place, partitioning=None).to_pylist())


def run_folders(case):
    return {place.parent for place in case.store.glob("sync_tracking_datasets/*/*/*/metadata.json")}


def test_files_are_written_while_the_next_chunk_is_pushed_and_close_their_delivery_at_once(case, proxy):
    from django.db import connection
    from ondatra_web.models import Delivery

    seen = []

    def delivery():
        first = Delivery.objects.select_related("run").order_by("-run", "ordinal").first()
        return first.status, first.run.status, first.run.succeeded, first.recordfile_set.count()

    def look():
        time.sleep(1.2)                         # two looks of the thread that closes
        seen.extend([delivery(), recorded()])
        proxy.through.set()
        end = time.monotonic() + 30
        while delivery()[0] != "closed" and time.monotonic() < end:
            time.sleep(0.1)
        seen.append(delivery())
        connection.close()

    recorded = two_chunks(case, proxy, look)
    ended = case.run()
    assert seen == [("sealed", "working", 0, 0), [], ("closed", "working", 1, 1)]
    assert (ended.sync(SYNC)["status"], sent(case)) == ("completed", [("delete", 1, "a@x"), ("insert", 3, "c@x")])
    assert recorded() == [("1", "delete", "succeeded"), ("3", "upsert", "succeeded")]


def test_killed_before_the_files_of_a_sealed_chunk_are_there_the_next_run_writes_them_and_sends_nothing_of_it_again(case, proxy, monkeypatch):
    reached, gone = threading.Event(), threading.Event()
    monkeypatch.setenv("ONDATRA_TRACKING_URL", case.url)
    recorded = two_chunks(case, proxy, lambda: (reached.set(), gone.wait(60)))
    process = case.spawn()
    assert reached.wait(120)
    process.kill()
    proxy.stop()                                # what was held up never arrives
    gone.set()
    proxy.down = False
    assert recorded() == []
    case.dest.clear()
    assert (case.run().exit, sent(case)) == (0, [("insert", 3, "c@x")])
    assert recorded() == [("1", "delete", "succeeded"), ("3", "upsert", "succeeded")]
