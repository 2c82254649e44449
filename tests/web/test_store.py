"""Buckets of organizations' own, on a real S3 server: what is refused and why, switching over and back, a store that is
down."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import uuid
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db.models import RestrictedError
from django.test import Client
from seaweed import BUCKET, ROLE, S3Server, make_bucket

from ondatra_web.models import AuditLog, Bucket, Organization, Run, Workspace
from ondatra_web.tracking import buckets, facts, history, stores
from ondatra_web.tracking.buckets import Wanted
from runtime.errors import ConfigError, OndatraError, StoreError
from tests.web.filled import a_run, a_sync, closing, person, put_records, record, workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(s3: S3Server, settings: Any, tmp_path: Path) -> Workspace:
    """An install with a folder of its own that allows the server's endpoint."""
    settings.ONDATRA = dataclasses.replace(
        django_settings.ONDATRA, tracking_url=(tmp_path / "store").as_uri(), bucket_endpoints=(s3.endpoint,)
    )
    return workspace()


def wanted(s3: S3Server, bucket: str = BUCKET, **more: Any) -> Wanted:
    return Wanted(
        **{
            "bucket": bucket,
            "prefix": uuid.uuid4().hex,
            "endpoint": s3.endpoint,
            "access_key": "devkey",
            "secret_key": "devsecret123",
            **more,
        }
    )


def fresh(s3: S3Server) -> str:
    name = f"own-{uuid.uuid4().hex[:12]}"
    make_bucket(s3, name)
    return name


def test_a_bucket_is_checked_saved_and_its_secret_kept_encrypted(place: Workspace, s3: S3Server) -> None:
    saved = buckets.save(place.organization, wanted(s3, fresh(s3)))

    assert stores.current(place.organization_id) == (saved.url, saved)
    assert "devsecret123" not in str(Bucket.objects.values_list().get(pk=saved.pk))
    assert list(stores.of_organization(place.organization_id).list("metadata")) == [
        f"metadata/{place.organization_id}/{name}.parquet"
        for name in ("destination_objects", "destinations", "source_objects")
    ]
    assert "devsecret123" not in str(list(AuditLog.objects.values_list("action", "target", "detail")))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"secret_key": "wrong"}, "secret key does not belong"),
        ({"access_key": "nobody"}, "access key is unknown"),
        ({"bucket": "no-such-bucket"}, "no such bucket"),
        ({"access_key": "rokey", "secret_key": "rosecret123"}, "not allowed to do that"),
        ({"bucket": "UPPER"}, "is no bucket name"),
        ({"prefix": "a/../b"}, "is no folder name"),
        ({"endpoint": "http://169.254.169.254"}, "ONDATRA_BUCKET_ENDPOINTS"),
        ({"secret_key": ""}, "secret key is missing"),
        ({"access_key": "", "secret_key": ""}, "never used"),
        ({"role_arn": "arn:aws:iam::1:role/x"}, "not by both"),
        ({"access_key": "", "secret_key": "", "role_arn": "me"}, "is no role"),
        ({"region": "Sweden!"}, "is no region"),
        ({"retention_days": 0}, "at least 1 day"),
    ],
)
def test_a_bucket_that_cannot_be_used_says_why_and_changes_nothing(
    place: Workspace, s3: S3Server, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(OndatraError, match=said) as error:
        buckets.save(place.organization, wanted(s3, **changed))

    assert "devsecret123" not in str(error.value) and "rosecret123" not in str(error.value)
    assert not Bucket.objects.exists() and stores.current(place.organization_id)[1] is None


def test_a_clock_that_is_wrong_is_named(place: Workspace, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import botocore.auth

    now = dt.datetime.now(dt.UTC)
    monkeypatch.setattr(
        botocore.auth, "get_current_datetime", lambda *_, **__: (now - dt.timedelta(hours=3)).replace(tzinfo=None)
    )

    with pytest.raises(StoreError, match="clock"):
        buckets.save(place.organization, wanted(s3))


def test_a_bucket_of_the_install_or_of_somebody_else_is_refused(place: Workspace, s3: S3Server, settings: Any) -> None:
    mine, other = fresh(s3), workspace("other").organization
    first = wanted(s3, mine)
    buckets.save(place.organization, first)

    with pytest.raises(ConfigError, match="used by another organization"):
        buckets.save(other, wanted(s3, mine))
    Bucket.objects.all().delete()  # another install, whose database knows nothing of it
    with pytest.raises(StoreError, match="another organization or install"):
        buckets.save(other, first)
    settings.ONDATRA = dataclasses.replace(settings.ONDATRA, tracking_url=f"s3://{BUCKET}/own", s3_endpoint=s3.endpoint)
    with pytest.raises(ConfigError, match="install's own"):
        buckets.save(other, wanted(s3))


def test_credentials_of_the_install_are_never_used_for_a_bucket(
    place: Workspace, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    saved = buckets.save(place.organization, wanted(s3, fresh(s3)))
    Bucket.objects.filter(pk=saved.pk).update(access_key="", secret="")
    saved.refresh_from_db()

    with pytest.raises(ConfigError, match="neither a role nor a whole key pair"):
        stores.at(saved.url, saved)


def test_a_role_reaches_its_bucket_and_no_other(
    place: Workspace, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**s3.env, "AWS_ENDPOINT_URL_STS": s3.endpoint}.items():
        monkeypatch.setenv(name, value)
    theirs, not_theirs = f"role-{uuid.uuid4().hex[:12]}", fresh(s3)
    make_bucket(s3, theirs)
    by_role = {"access_key": "", "secret_key": "", "role_arn": ROLE}

    saved = buckets.save(place.organization, wanted(s3, theirs, **by_role))

    assert stores.of_organization(place.organization_id).exists("ondatra.json") and not saved.secret
    with pytest.raises(StoreError, match="not allowed to do that"):  # though the install's own credentials may
        buckets.save(place.organization, wanted(s3, not_theirs, **by_role))
    with pytest.raises(StoreError, match="cannot be assumed"):
        buckets.save(
            place.organization, wanted(s3, theirs, **{**by_role, "role_arn": "arn:aws:iam::123456789012:role/nobody"})
        )
    assert stores.current(place.organization_id)[1] == saved


def test_runs_are_shown_from_where_they_were_written_through_every_switch(
    place: Workspace, s3: S3Server, client: Client, tmp_path: Path
) -> None:
    sync = a_sync(place)
    client.force_login(person("alice", place))
    own = buckets.save(place.organization, wanted(s3, fresh(s3)))
    second = buckets.save(place.organization, wanted(s3, fresh(s3)))
    runs = {}
    for name, bucket in (("install", None), ("own", own), ("second", second)):
        runs[name] = a_run(sync, bucket=bucket, **closing(1))
        put_records(
            runs[name],
            tmp_path / "store",
            [record(f"id-{name}"), record("same")],
            store=stores.at(bucket.url, bucket) if bucket else None,
        )

    for switch in (
        lambda: buckets.use(own),
        lambda: buckets.use_install(place.organization),
        lambda: buckets.use(second),
    ):
        switch()
        for name, run in runs.items():
            assert f"id-{name}" in client.get(f"/runs/{run.pk}/records/").content.decode()
        assert {entry["sync_run_id"] for entry in history.history_of(sync, "same")} == {
            str(run.pk) for run in runs.values()
        }
    assert stores.current(place.organization_id) == (second.url, second)


def test_a_bucket_that_runs_still_need_is_not_forgotten(place: Workspace, s3: S3Server) -> None:
    own = buckets.save(place.organization, wanted(s3, fresh(s3)))
    run = a_run(a_sync(place), bucket=own, store_url=own.url, **closing(1))
    with pytest.raises(ConfigError, match="new runs are written there"):
        buckets.forget(own)
    buckets.use_install(place.organization)
    own.refresh_from_db()
    with pytest.raises(ConfigError, match="the records of 1 runs lie there"):
        buckets.forget(own)
    with pytest.raises(RestrictedError):
        own.delete()
    Run.objects.filter(pk=run.pk).update(rows_expired_at=dt.datetime.now(dt.UTC))

    buckets.forget(own)

    assert not Bucket.objects.exists() and Run.objects.get(pk=run.pk).bucket is None


def test_an_organization_goes_with_its_runs_and_buckets(place: Workspace, s3: S3Server) -> None:
    own = buckets.save(place.organization, wanted(s3, fresh(s3)))
    a_run(a_sync(place), bucket=own, store_url=own.url, **closing(1))

    place.organization.delete()

    assert not Bucket.objects.exists() and not Run.objects.exists()


def test_another_encryption_key_is_an_error_that_says_what_to_do_and_an_old_one_still_opens(
    place: Workspace, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONDATRA_ENCRYPTION_KEY", "a" * 40)
    own = buckets.save(place.organization, wanted(s3, fresh(s3)))
    monkeypatch.setenv("ONDATRA_ENCRYPTION_KEY", "b" * 40)
    with pytest.raises(ConfigError, match="ONDATRA_ENCRYPTION_KEY"):
        stores.credentials_of(own)
    monkeypatch.setenv("ONDATRA_ENCRYPTION_KEY", f"{'b' * 40},{'a' * 40}")

    assert stores.credentials_of(own).secret_key == "devsecret123"


# page and command


def _form(s3: S3Server, **changed: Any) -> dict[str, Any]:
    told = dataclasses.asdict(wanted(s3, **changed))
    return {**{k: v for k, v in told.items() if v is not None}, "by": "key"}


def test_the_page_saves_a_bucket_shows_why_not_and_never_the_secret(
    place: Workspace, s3: S3Server, client: Client
) -> None:
    client.force_login(person("alice", place))
    own = fresh(s3)
    url = f"/store/{place.organization_id}/"

    refused = client.post(f"{url}save/", _form(s3, secret_key="wrong-geheim"))
    assert refused.status_code == 422
    assert "secret key does not belong" in refused.content.decode() and "wrong-geheim" not in refused.content.decode()

    saved = client.post(f"{url}save/", _form(s3, bucket=own), follow=True).content.decode()
    assert f"s3://{own}/" in saved and "was written, read and cleaned up" in saved and "devsecret123" not in saved
    changed = client.post(
        f"{url}save/", _form(s3, bucket=own, secret_key="", retention_days=30), follow=True
    ).content.decode()
    assert 'value="30"' in changed and Bucket.objects.get().retention_days == 30
    back = client.post(f"{url}install/", follow=True).content.decode()
    assert "install’s own store" in back and stores.current(place.organization_id)[1] is None


def test_only_an_owner_changes_the_store_and_strangers_do_not_see_it(
    place: Workspace, s3: S3Server, client: Client
) -> None:
    url = f"/store/{place.organization_id}/"
    client.force_login(person("bob", place, "member"))
    assert "Check and save" not in client.get(url).content.decode()
    assert [client.post(f"{url}{end}").status_code for end in ("save/", "install/")] == [403, 403]
    client.force_login(person("charlie", workspace("other")))
    assert [client.get(url).status_code, client.post(f"{url}save/", _form(s3)).status_code] == [404, 404]
    theirs = buckets.save(place.organization, wanted(s3, fresh(s3)))
    elsewhere = Organization.objects.get(name="org of other")
    assert client.post(f"/store/{elsewhere.pk}/buckets/{theirs.pk}/", {"forget": 1}).status_code == 404


def test_the_command_names_a_bucket_checks_it_and_switches_back(
    place: Workspace, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, said = fresh(s3), io.StringIO()
    organization = str(place.organization_id)
    monkeypatch.setattr("sys.stdin", io.StringIO("devsecret123\n"))
    call_command(
        "store",
        "--organization",
        organization,
        "--bucket",
        own,
        "--endpoint",
        s3.endpoint,
        "--access-key",
        "devkey",
        stdout=said,
    )
    call_command("store", "--organization", organization, stdout=said)
    assert (
        said.getvalue().count(f"records in s3://{own}\n") == 2 and stores.current(place.organization_id)[1] is not None
    )
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        aws_access_key_id="devkey",
        aws_secret_access_key="devsecret123",
        region_name="us-east-1",
    )
    for found in client.list_objects_v2(Bucket=own)["Contents"]:
        client.delete_object(Bucket=own, Key=found["Key"])
    client.delete_bucket(Bucket=own)
    with pytest.raises(SystemExit) as ended:
        call_command("store", "--organization", organization, stdout=said, stderr=said)
    assert ended.value.code == 1 and "no such bucket" in Bucket.objects.get().problem
    call_command("store", "--organization", organization, "--install", stdout=said)
    assert stores.current(place.organization_id)[1] is None


def test_fact_tables_go_where_new_runs_go(place: Workspace, s3: S3Server) -> None:
    own = buckets.save(place.organization, wanted(s3, fresh(s3)))
    assert all(url.startswith(own.url) for url in facts.write_fact_tables(place.organization))
