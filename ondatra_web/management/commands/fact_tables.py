"""`manage.py fact_tables`: writes the fact tables now; the scheduler does it every six hours."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from ondatra_web.models import Organization
from ondatra_web.tracking import facts
from runtime.errors import ConfigError, StoreError


class Command(BaseCommand):
    help = "Writes source_objects, destinations and destination_objects of every organization."

    def handle(self, *args: Any, **options: Any) -> None:
        for organization in Organization.objects.order_by("pk"):
            try:
                urls = facts.write_fact_tables(organization)
            except ConfigError as error:
                self.stderr.write(str(error))
                raise SystemExit(2) from None
            except StoreError as error:
                self.stderr.write(str(error))
                raise SystemExit(1) from None
            for url in urls:
                self.stdout.write(url)
