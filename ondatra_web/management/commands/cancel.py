"""`manage.py cancel RUN`: stops a run; what it had not sent stays due."""

from __future__ import annotations

from typing import Any

from ondatra_web import actions
from ondatra_web.management.commands._runs import RunCommand
from ondatra_web.models import Run


class Command(RunCommand):
    help = "Stops a run; what it had not sent stays due."

    def act(self, run: Run, options: dict[str, Any]) -> int:
        run = actions.cancel_run(run)
        self.stdout.write(f"run {run.pk} is {run.status}")
        return 0
