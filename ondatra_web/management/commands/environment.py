"""`manage.py environment`: whether the install has everything that it needs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from ondatra_web.environment.findings import BAD
from ondatra_web.environment.looking import look


class Command(BaseCommand):
    help = "Checks database, Redis, workers, Spark, store, disk and versions; ends with 1 where one does not work."

    def handle(self, *args: Any, **options: Any) -> None:
        findings = look()
        for found in findings:
            seen = f"; last sign {found.seen:%Y-%m-%d %H:%M:%S} UTC" if found.seen else ""
            self.stdout.write(
                f"{found.state:<8} {found.part}: {found.said}{seen}{f' ({found.detail})' if found.detail else ''}"
            )
            if found.todo:
                self.stdout.write(f"{'':<8} {found.todo}")
        if any(found.state == BAD for found in findings):
            raise SystemExit(1)
