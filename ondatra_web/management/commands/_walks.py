"""What the commands share that go on with a run of before by a new one, which this process makes."""

from __future__ import annotations

from collections.abc import Callable

from ondatra_web.management import running
from ondatra_web.management.commands._runs import RunCommand
from ondatra_web.runs import printed, report
from ondatra_web.runs.walk import Walk
from ondatra_web.runs.watch import Watch


class WalkCommand(RunCommand):
    """A command whose first argument is a run's id, and whose end is a walk."""

    def walked(self, make: Callable[[Watch], Walk]) -> int:
        """Shows what the walk does while it goes on, prints its report, or what is wrong; the exit code."""
        return running.told(
            lambda watch: printed.of(report.of_walk(make(watch)), as_json=False),
            as_json=False,
            out=self.stdout.write,
            error=self.stderr.write,
        )
