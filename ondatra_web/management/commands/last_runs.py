"""`manage.py last_runs`: what the newest run of each sync delivered, what was refused and why, and where to look."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from ondatra_web.models import Run, Sync
from ondatra_web.runs import undelivered, waiting
from ondatra_web.tracking import records


class Command(BaseCommand):
    help = "Prints what the newest run of each sync delivered, what was refused and why."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", default="default", metavar="SLUG")
        parser.add_argument("--url", default="", metavar="URL", help="where the pages are, to print links")

    def handle(self, *args: Any, **options: Any) -> None:
        syncs = Sync.objects.filter(workspace__slug=options["workspace"], archived_at=None).order_by("name")
        refused = waiting.refused(syncs)
        for sync in syncs:
            run = Run.objects.filter(sync=sync, dry_run=False).order_by("-pk").first()
            if run:
                self.stdout.write("\n".join(told(sync, run, options["url"], refused.get(sync.pk, 0))))


def told(sync: Sync, run: Run, url: str, refused: int) -> list[str]:
    """One sync's lines: counts, the commonest reasons, a link or a command."""
    counts = {
        "sent": run.succeeded,
        "with a remark": run.warned,
        "refused": run.rejected,
        "due again": run.retrying,
        "not tried": run.not_tried,
        "invalid": run.invalid,
        "unchanged": run.unchanged,
    }
    shown = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number or name == "sent")
    lines = [f"{sync.name} → {sync.destination_type} {sync.destination_object}: {shown}"]
    if run.error:
        lines.append(f"    {run.status}: {run.error}")
    lines += [f"    {line}" for line in records.reasons(run.pk)]
    if refused:
        lines.append(f"    {undelivered.told(sync.name, refused)}")
    only = " --status rejected" if run.rejected else ""
    command = settings.ONDATRA.command(f"records {run.pk}{only}")
    lines.append(f"    {url}/runs/{run.pk}/records/" if url else f"    {command}")
    return lines
