"""Buckets of organizations' own: named, checked by a real write, read and delete, switched to and back. Runs stay where
they were written."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone

from ondatra_web import audit
from ondatra_web.models import Bucket, Organization, Run
from ondatra_web.tracking import facts, stores, vault
from runtime.custody.redact import everywhere
from runtime.errors import ConfigError, OndatraError, StoreError
from runtime.store.base import AlreadyThere, Store
from runtime.store.opening import open_store

log = logging.getLogger("ondatra.buckets")
#: Says whose a bucket is, so that two organizations, or two installs, never write into one.
OWNER_FILE = "ondatra.json"


@dataclass(frozen=True)
class Wanted:
    """What a person typed in. An empty secret keeps the one that is known for the same bucket and access key."""

    bucket: str
    prefix: str = ""
    region: str = "us-east-1"
    endpoint: str = ""
    access_key: str = ""
    secret_key: str = ""
    role_arn: str = ""
    retention_days: int | None = None

    def __repr__(self) -> str:
        return f"Wanted({self.bucket})"


def save(organization: Organization, wanted: Wanted, *, user: AbstractBaseUser | None = None) -> Bucket:
    """Checks the bucket and writes new runs there from now on. Raises ConfigError, and StoreError that says why it
    cannot be used."""
    _check_words(wanted)
    known = _free(organization, wanted)
    made = known or Bucket(organization=organization, bucket=wanted.bucket, endpoint=wanted.endpoint)
    kept = made.secret if made.access_key == wanted.access_key and not wanted.secret_key else ""
    made.prefix, made.region, made.role_arn, made.access_key = (
        wanted.prefix.strip("/"),
        wanted.region,
        wanted.role_arn,
        wanted.access_key,
    )
    made.secret = "" if wanted.role_arn else vault.seal(wanted.secret_key) if wanted.secret_key else kept
    made.retention_days = wanted.retention_days
    if not wanted.role_arn and not made.secret:
        raise ConfigError("the secret key is missing: enter it with its access key id, or name a role")
    _probe(made)
    try:
        _use(made, user, "save_bucket")
    except IntegrityError:
        raise ConfigError(f"the bucket {wanted.bucket} is used by another organization: name one of your own") from None
    return made


def use(bucket: Bucket, *, user: AbstractBaseUser | None = None) -> None:
    """Switches back to a bucket that is known already. Raises StoreError where it cannot be used now."""
    check(bucket)
    _use(bucket, user, "use_bucket")


def use_install(organization: Organization, *, user: AbstractBaseUser | None = None) -> None:
    """New runs are written to the install's own store again; runs in buckets are still shown from there."""
    with transaction.atomic():
        Bucket.objects.filter(organization=organization, in_use=True).update(in_use=False)
        audit.write(organization.pk, user, "use_install_store", organization.name, {})
    _write_facts(organization)


def check(bucket: Bucket) -> None:
    """A real write, read and delete, remembered with what it found. Raises StoreError, ConfigError."""
    problem = ""
    try:
        _probe(bucket)
    except OndatraError as error:
        problem = everywhere.text(str(error))
        raise
    finally:
        Bucket.objects.filter(pk=bucket.pk).update(checked_at=timezone.now(), problem=problem)


def forget(bucket: Bucket, *, user: AbstractBaseUser | None = None) -> None:
    """Drops the credentials of a bucket that nothing needs any more. Its files are not touched."""
    with transaction.atomic():
        needed = Run.objects.filter(bucket=bucket, rows_expired_at=None).exclude(planned=0, invalid=0).count()
        if bucket.in_use or needed:
            why = "new runs are written there" if bucket.in_use else f"the records of {needed:,} runs lie there"
            raise ConfigError(f"{bucket.url} is still needed: {why}")
        Run.objects.filter(bucket=bucket).update(bucket=None, store_url="", rows_expired_at=timezone.now())
        audit.write(bucket.organization_id, user, "forget_bucket", bucket.url, {})
        bucket.delete()


def set_retention(bucket: Bucket, days: int | None, *, user: AbstractBaseUser | None = None) -> None:
    """How many days records are kept there; None keeps them for ever."""
    if days is not None and days < 1:
        raise ConfigError(
            f"{days} days cannot be: a retention is at least 1 day, or empty so that nothing is ever removed"
        )
    Bucket.objects.filter(pk=bucket.pk).update(retention_days=days)
    audit.write(bucket.organization_id, user, "bucket_retention", bucket.url, {"days": days})


def endpoints() -> list[str]:
    """The servers that organizations may name; the empty one is AWS."""
    return ["", *settings.ONDATRA.bucket_endpoints]


# checks


def _check_words(wanted: Wanted) -> None:
    """Raises ConfigError that names the field."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", wanted.bucket):
        raise ConfigError(f"{wanted.bucket!r} is no bucket name: 3 to 63 lower-case letters, digits, dots and hyphens")
    if not re.fullmatch(r"[A-Za-z0-9!_.*'()/=-]{0,300}", wanted.prefix) or ".." in wanted.prefix.split("/"):
        raise ConfigError(f"the prefix {wanted.prefix!r} is no folder name: letters, digits and / ! - _ . * ' ( ) =")
    if not re.fullmatch(r"[a-z0-9-]{2,50}", wanted.region):
        raise ConfigError(f"{wanted.region!r} is no region: for example eu-north-1")
    if wanted.endpoint not in endpoints():
        known = ", ".join(endpoints()[1:]) or "none"
        raise ConfigError(
            f"the endpoint {wanted.endpoint} is not among those that this install allows ({known}): "
            "its operator adds it to ONDATRA_BUCKET_ENDPOINTS"
        )
    if wanted.role_arn and (wanted.access_key or wanted.secret_key):
        raise ConfigError("a bucket is reached by a role or by a key pair, not by both")
    if wanted.role_arn and not re.fullmatch(r"arn:aws[a-z-]*:iam::\d{1,20}:role/[\w+=,.@/-]{1,200}", wanted.role_arn):
        raise ConfigError(f"{wanted.role_arn!r} is no role: for example arn:aws:iam::123456789012:role/ondatra-records")
    if not wanted.role_arn and not wanted.access_key:
        raise ConfigError(
            "neither a role nor an access key id was given: the install's own credentials are never used for a bucket "
            "of yours"
        )
    if wanted.retention_days is not None and wanted.retention_days < 1:
        raise ConfigError("a retention is at least 1 day, or empty so that nothing is ever removed")


def _free(organization: Organization, wanted: Wanted) -> Bucket | None:
    """The organization's own row of that bucket. Raises ConfigError where the bucket is the install's or another
    organization's."""
    config = settings.ONDATRA
    for url in (config.tracking_url, config.lake_url, config.staging_url):
        parts = urlsplit(url)
        if (
            parts.scheme.startswith("s3")
            and parts.netloc == wanted.bucket
            and wanted.endpoint == (config.s3_endpoint or "").rstrip("/")
        ):
            raise ConfigError(f"the bucket {wanted.bucket} is the install's own: name one of yours")
    found = Bucket.objects.filter(bucket=wanted.bucket, endpoint=wanted.endpoint).select_related("organization").first()
    if found and found.organization_id != organization.pk:
        raise ConfigError(f"the bucket {wanted.bucket} is used by another organization: name one of your own")
    return found


def _probe(bucket: Bucket) -> None:
    """Raises StoreError."""
    store = open_store(bucket.url, credentials=stores.credentials_of(bucket))
    store.check()
    _claim(store, bucket.organization)


def _claim(store: Store, organization: Organization) -> None:
    """Leaves a note of whose the bucket is. Raises StoreError where it says somebody else."""
    mine = {"owner": hashlib.sha256(organization.external_id.encode()).hexdigest()}
    try:
        store.put_new(OWNER_FILE, orjson.dumps(mine))
    except AlreadyThere:
        try:
            found = orjson.loads(store.get(OWNER_FILE))
        except orjson.JSONDecodeError:
            found = None
        if found != mine:
            raise StoreError(
                f"{store.url} holds the records of another organization or install: name another bucket or prefix; "
                f"if it is yours alone, remove {store.url_of(OWNER_FILE)} and try again"
            ) from None


# writes


def _use(bucket: Bucket, user: AbstractBaseUser | None, action: str) -> None:
    with transaction.atomic():
        Bucket.objects.filter(organization_id=bucket.organization_id, in_use=True).exclude(pk=bucket.pk).update(
            in_use=False
        )
        bucket.in_use, bucket.saved_at, bucket.checked_at, bucket.problem = True, timezone.now(), timezone.now(), ""
        bucket.save()
        by = "role" if bucket.role_arn else "key pair"
        audit.write(
            bucket.organization_id, user, action, bucket.url, {"by": by, "retention_days": bucket.retention_days}
        )
    _write_facts(bucket.organization)


def _write_facts(organization: Organization) -> None:
    """The fact tables stand beside the records, from the first run on."""
    try:
        facts.write_fact_tables(organization)
    except OndatraError as error:
        log.warning("the fact tables of organization %s wait: %s", organization.pk, error)
