"""`manage.py scheduler`: schedules, take-over of dead workers, messages that were lost, files that wait, retention,
facts."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import close_old_connections

from ondatra_web import workers
from ondatra_web.clock import scheduling

log = logging.getLogger("ondatra.scheduler")


class Command(BaseCommand):
    help = "Starts scheduled runs, resumes what dead workers left, writes files that wait. One works at a time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="one round, then end")

    def handle(self, *args: Any, **options: Any) -> None:
        me = workers.me("scheduler")
        while True:
            close_old_connections()
            pause = scheduling.EVERY_SECONDS
            try:
                if scheduling.leads(me):
                    scheduling.round()
                    pause = scheduling.pause()
            except Exception:  # a database or store that is down for a while must not end the scheduler
                log.exception("this round failed; the next one is in %s s", scheduling.EVERY_SECONDS)
            if options["once"]:
                return
            time.sleep(pause)
