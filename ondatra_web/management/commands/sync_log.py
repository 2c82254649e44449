"""`manage.py sync_log`: brings the table sync_log of every organization up to date; the scheduler does it every six
hours."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from ondatra_web.management.terminal import live
from ondatra_web.models import Organization
from ondatra_web.tracking import sync_log
from runtime.errors import ConfigError, OndatraError


class Command(BaseCommand):
    help = "Adds the records of new runs to the Delta table sync_log of each organization, for BI tools."

    def handle(self, *args: Any, **options: Any) -> None:
        code = 0
        for organization in Organization.objects.order_by("pk"):
            try:
                with live(f"{organization}: records added") as line:
                    written = sync_log.write(organization, line.reached)
            except ConfigError as error:
                self.stderr.write(str(error))
                raise SystemExit(2) from None
            except OndatraError as error:
                self.stderr.write(str(error))
                code = 1
                continue
            self.stdout.write(f"{written.url}: {written.rows:,} records of {written.files:,} files added")
            for problem in written.problems:
                self.stderr.write(problem)
                code = 1
        if code:
            raise SystemExit(code)
