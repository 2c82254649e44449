"""`manage.py confirm RUN`: lets a held run go on and waits for it."""

from __future__ import annotations

from typing import Any

from ondatra_web import actions
from ondatra_web.management.commands._runs import RunCommand
from ondatra_web.management.terminal import Live, Shown
from ondatra_web.models import Run
from ondatra_web.runs import ending, execution, printed, report
from runtime.errors import ProjectError


class Command(RunCommand):
    help = "Lets a held run go on: it is built again and sent if it deletes no more than was shown."

    def act(self, run: Run, options: dict[str, Any]) -> int:
        new = actions.confirm_run(run, send=False)
        try:
            with Live() as line:
                walk = execution.run_here(
                    run.sync.workspace,
                    [run.sync.name],
                    new.options,
                    trigger="confirm",
                    given={run.sync.name: new},
                    watch=Shown(line),
                )
        except ProjectError as error:
            ending.fail(new, str(error))
            self.stderr.write(str(error))
            return 2
        said = printed.of(report.of_walk(walk), as_json=False)
        self.stdout.write(said.text)
        return said.code
