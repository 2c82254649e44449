"""Lake and staging in a bucket of a real S3 server, through Spark's own s3a: the same line, and delivery reads its chunks from there."""
import dataclasses
import uuid

import boto3
import pytest
from pushing import SYNC, contacts, counts, pushes, sent, source, statuses

BUCKET = "records"


@pytest.fixture
def places(case, s3, monkeypatch):
    """The keys in the bucket below lake/ and staging/, as new as the moment it is called."""
    from django.conf import settings

    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    prefix = uuid.uuid4().hex
    monkeypatch.setattr(settings, "ONDATRA", dataclasses.replace(
        settings.ONDATRA, lake_url=f"s3://{BUCKET}/{prefix}/lake", staging_url=f"s3://{BUCKET}/{prefix}/staging", s3_endpoint=s3.endpoint))
    client = boto3.client("s3", endpoint_url=s3.endpoint)

    def keys(part):
        found = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/{part}/")
        return [key["Key"].removeprefix(f"{prefix}/") for page in found for key in page.get("Contents", ())]
    return keys


@pytest.mark.slow
def test_a_merge_run_a_quiet_run_and_the_changes_with_lake_and_staging_in_a_bucket(case, places):
    contacts(case, *[(i, f"p{i}@x") for i in range(1, 8)], header="-- @on_missing: delete", push={"batch_size": 3})
    statuses(case, {2: "error: later"}, times=1)

    first = case.run()
    assert first.counts(SYNC) == counts(source=7, changed=7, planned=7, succeeded=6, retrying=1), first
    assert [len(rows) for rows in pushes(case)] == [3, 3, 1]
    assert any("/sync/contacts/_delta_log/" in key for key in places("lake"))
    chunks = [key for key in places("staging") if key.endswith(".parquet")]
    assert len(chunks) == 1                     # and delivery read it: nothing lies on this machine
    assert not list(case.engine.data.glob(f"staging/*/{first.sync(SYNC)['sync_id']}"))

    case.dest.clear()
    assert case.run().counts(SYNC)["carried"] == 1                  # from the same chunk in the bucket
    assert sent(case) == [("insert", 2, "p2@x")]

    case.dest.clear()
    assert case.run().counts(SYNC) == counts(source=7, unchanged=7)
    assert sent(case) == []

    source(case, *[(i, f"p{i}@x") for i in range(1, 6)], (6, "new@x"), (8, "p8@x"))
    dry = case.run(dry_run=True)
    assert (dry.counts(SYNC)["planned"], sent(case), [k for k in places("staging") if k.endswith(".parquet")]) == (3, [], chunks)
    third = case.run()
    assert third.counts(SYNC) == counts(source=7, unchanged=5, changed=2, deleted=1, planned=3, succeeded=3), third
    assert sent(case) == [("delete", 7, "p7@x"), ("insert", 8, "p8@x"), ("update_postimage", 6, "new@x"), ("update_preimage", 6, "p6@x")]
    assert {(r["identifier"], r["status"]) for r in case.records(SYNC)} == {("6", "succeeded"), ("7", "succeeded"), ("8", "succeeded")}
    assert case.run(full=True).counts(SYNC)["succeeded"] == 7
