"""`manage.py retry RUN`: sends chosen records again, as a new run."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from ondatra_web.management.commands._filters import add_filter, given
from ondatra_web.management.commands._runs import agreed
from ondatra_web.management.commands._walks import WalkCommand
from ondatra_web.models import Run
from ondatra_web.runs import execution, resending
from ondatra_web.tracking import asked, reads
from runtime.errors import ConfigError, ProjectError, StoreError

#: Filters that say themselves which statuses are meant.
SAYS_STATUS = ("identifiers", "outcome", "group")


class Command(WalkCommand):
    help = (
        "Shows how many records match (the rejected ones, unless filters say others), then sends just these again as a "
        "new run. Delivered rows only if an --identifier names them, as they are now."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_filter(parser)
        parser.add_argument("--yes", action="store_true", help="send without asking")

    def act(self, run: Run, options: dict[str, Any]) -> int:
        told = given(options)
        if not any(told[name] for name in ("status", *SAYS_STATUS)):
            told["status"] = "rejected"
        try:
            chosen = asked.asked(run, told)
            found = resending.prepare(run, chosen)
        except ProjectError as error:
            raise ConfigError(str(error)) from None
        except StoreError as error:
            self.stderr.write(str(error))
            return 1
        self.stdout.write(found.told)
        if found.plan.empty or not (options["yes"] or agreed("Send them?")):
            return 0

        rows = found.plan.records + len(found.plan.again)
        reads.of_run(None, "retry_run", run, chosen, rows)
        return self.walked(lambda watch: execution.resend_here(found, watch))
