"""`manage.py store`: where an organization's records are kept; names a bucket of its own, checks it, switches back."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web.models import Bucket, Organization
from ondatra_web.tracking import buckets, stores
from runtime.errors import ConfigError, StoreError


class Command(BaseCommand):
    help = (
        "Shows, checks or changes where the records of an organization's runs are kept. Without options it shows "
        "and checks."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", type=int, metavar="ID", help="the first one where it is left out")
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--bucket", metavar="NAME", help="new runs are written there once a write, a read and a delete went through"
        )
        what.add_argument(
            "--install", action="store_true", help="new runs are written to the install's own store again"
        )
        parser.add_argument("--prefix", default="", metavar="FOLDER", help="a folder in the bucket")
        parser.add_argument("--region", default="us-east-1")
        parser.add_argument(
            "--endpoint",
            default="",
            metavar="URL",
            help="a server that ONDATRA_BUCKET_ENDPOINTS allows; AWS where it is left out",
        )
        parser.add_argument(
            "--access-key", default="", metavar="ID", help="its secret key is asked for, or read from standard input"
        )
        parser.add_argument("--role", default="", metavar="ARN", help="a role to assume instead of a key pair")
        parser.add_argument(
            "--retention-days",
            type=int,
            metavar="N",
            help="remove records there after so many days; never where it is left out",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._act(self._organization(options["organization"]), options)
        except ConfigError as error:
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        except StoreError as error:
            self.stderr.write(str(error))
            raise SystemExit(1) from None

    def _organization(self, wanted: int | None) -> Organization:
        rows = Organization.objects.order_by("pk")
        found = (rows.filter(pk=wanted) if wanted is not None else rows).first()
        if found is None:
            known = ", ".join(f"{o.pk} {o.name}" for o in Organization.objects.order_by("pk")[:20])
            raise ConfigError(f"there is no organization {wanted}; there are: {known}")
        return found

    def _act(self, organization: Organization, options: dict[str, Any]) -> None:
        if options["bucket"]:
            secret = _secret() if options["access_key"] else ""
            buckets.save(
                organization,
                buckets.Wanted(
                    bucket=options["bucket"],
                    prefix=options["prefix"],
                    region=options["region"],
                    endpoint=options["endpoint"].rstrip("/"),
                    access_key=options["access_key"],
                    secret_key=secret,
                    role_arn=options["role"],
                    retention_days=options["retention_days"],
                ),
            )
        elif options["install"]:
            buckets.use_install(organization)
        url, bucket = stores.current(organization.pk)
        self.stdout.write(f"organization {organization.pk} {organization.name}: new runs keep their records in {url}")
        if waiting := stores.unwritten(organization.pk):
            self.stdout.write(f"  {waiting:,} records wait for their store")
        for known in Bucket.objects.filter(organization=organization, in_use=False):
            self.stdout.write(f"  earlier: {known.url}")
        if not bucket:
            stores.at(url, None).check()
        elif not options["bucket"]:
            buckets.check(bucket)
        self.stdout.write("  it was written, read and cleaned up")


def _secret() -> str:
    return getpass.getpass("Secret key: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
