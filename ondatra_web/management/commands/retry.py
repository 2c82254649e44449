"""`manage.py retry RUN`: sends chosen records again, as a new run."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from ondatra_web.management.commands._runs import RunCommand, agreed
from ondatra_web.management.commands.run import text
from ondatra_web.models import Run
from ondatra_web.runs import execution, report, resending
from ondatra_web.tracking import reads
from runtime.errors import ConfigError, ProjectError, StoreError
from runtime.records.filter import Filter


class Command(RunCommand):
    help = (
        "Shows how many records match, then sends just these again as a new run. Delivered rows only if an "
        "--identifier names them, as they are now."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--status", metavar="S", help="as in the files (rejected, or any where identifiers are given)"
        )
        parser.add_argument("--message-like", metavar="M", help="a part of the message, without case; %% is a wildcard")
        parser.add_argument("--identifier", metavar="I", action="append", default=[], help="may be given several times")
        parser.add_argument("--yes", action="store_true", help="send without asking")

    def act(self, run: Run, options: dict[str, Any]) -> int:
        status = options["status"] or (None if options["identifier"] else "rejected")
        chosen = Filter(status=status, message=options["message_like"], identifiers=tuple(options["identifier"]))
        try:
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
        said = report.of_walk(execution.resend_here(found, self._begun))
        self.stdout.write(text(said))
        return report.exit_code(said)

    def _begun(self, run: Run) -> None:
        self.stderr.write(f"run {run.pk} of {run.sync.name} started")
