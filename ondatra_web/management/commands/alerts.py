"""`manage.py alerts`: what is open, and a way to send without workers."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ondatra_web.alerts import judging, sending, states


class Command(BaseCommand):
    help = (
        "Lists open alerts. With --send it judges runs that ended and sends what waits, for an install without workers."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--send", action="store_true", help="judge, look at the clock, and send what waits")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["send"]:
            judging.judge()
            judging.look()
        for alert in states.open_of().order_by("-level", "sync__name"):
            told = f"{alert.level:<8}  {alert.sync.workspace.slug}  {alert.sync.name}  {alert.kind}: {alert.summary}"
            self.stdout.write(f"{alert.since:%Y-%m-%d %H:%M} UTC  {told}")
        if options["send"]:
            tried = sending.send_waiting()
            self.stdout.write(f"{tried} message{' was' if tried == 1 else 's were'} tried")
