"""`manage.py confirm RUN`: lets a held run go on and waits for it."""

from __future__ import annotations

from typing import Any

from ondatra_web import actions
from ondatra_web.management.commands._walks import WalkCommand
from ondatra_web.models import Run
from ondatra_web.runs import ending, execution
from ondatra_web.runs.walk import Walk
from ondatra_web.runs.watch import Watch
from runtime.errors import ProjectError


class Command(WalkCommand):
    help = "Lets a held run go on: it is built again and sent if it deletes no more than was shown."

    def act(self, run: Run, options: dict[str, Any]) -> int:
        new = actions.confirm_run(run, send=False)
        return self.walked(lambda watch: _made(new, watch))


def _made(run: Run, watch: Watch) -> Walk:
    sync = run.sync
    try:
        return execution.run_here(
            sync.workspace, [sync.name], run.options, trigger="confirm", given={sync.name: run}, watch=watch
        )
    except ProjectError as error:
        ending.fail(run, str(error))
        raise
