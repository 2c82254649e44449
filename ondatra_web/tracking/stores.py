"""Which store a run's files lie in: the install's, or a bucket of its organization's own with credentials of its
own."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Sum

from ondatra_web.models import Bucket, Delivery, Run
from ondatra_web.tracking import vault
from runtime.errors import ConfigError
from runtime.store.base import Credentials, Store
from runtime.store.opening import open_store


def current(organization_id: int) -> tuple[str, Bucket | None]:
    """Where new runs are written: URL and bucket, None for the install's own store."""
    bucket = Bucket.objects.filter(organization_id=organization_id, in_use=True).first()
    return (bucket.url, bucket) if bucket else (settings.ONDATRA.tracking_url, None)


def at(url: str, bucket: Bucket | None) -> Store:
    """The store at an address; nothing is contacted yet. Raises ConfigError."""
    return open_store(url or settings.ONDATRA.tracking_url, credentials=credentials_of(bucket) if bucket else None)


def of_run(run: Run) -> Store:
    """The store that the run's files were written to, whatever is in use now."""
    return at(run.store_url, run.bucket)


def of_organization(organization_id: int) -> Store:
    return at(*current(organization_id))


def credentials_of(bucket: Bucket) -> Credentials:
    """Raises ConfigError where its secret cannot be decrypted."""
    if bucket.role_arn:
        return Credentials(
            role_arn=bucket.role_arn,
            external_id=bucket.organization.external_id,
            region=bucket.region,
            endpoint=bucket.endpoint,
        )
    return Credentials(
        access_key=bucket.access_key,
        secret_key=vault.unseal(bucket.secret) if bucket.secret else "",
        region=bucket.region,
        endpoint=bucket.endpoint,
    )


def unwritten(organization_id: int) -> int:
    """Records whose files wait for their store."""
    sealed = Delivery.objects.filter(status=Delivery.Status.SEALED)  # few of all that there were
    waiting = Delivery.objects.filter(run__sync__workspace__organization_id=organization_id, pk__in=sealed.values("pk"))
    return int(waiting.aggregate(n=Sum("records"))["n"] or 0)


def refuse_if_full(organization_id: int) -> None:
    """Raises ConfigError where so many records wait for their store that a new run would only add to them."""
    most = settings.ONDATRA.most_unwritten
    if (waiting := unwritten(organization_id)) > most:
        raise ConfigError(
            f"{waiting:,} records of earlier runs wait for their store, more than ONDATRA_MOST_UNWRITTEN allows "
            f"({most:,}): "
            "no run starts until it is back; the page Store says what is wrong with it"
        )
