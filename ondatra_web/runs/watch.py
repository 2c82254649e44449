"""What a run tells whoever waits for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence


class Watch:
    """This one tells which runs began, so that they can be cancelled, and nothing more. `sent` is called from threads
    of their own; whatever is told can be written as JSON."""

    def planned(self, models: Sequence[str]) -> None:
        """These models are looked at, in about this order."""

    def doing(self, what: str) -> None:
        """Something that everything else waits for, until it is empty again."""

    def begins(self, model: str) -> None:
        """A model is built."""

    def began(self, run: int, sync: str) -> None:
        print(f"run {run} of {sync} started", file=sys.stderr, flush=True)

    def step(self, model: str, name: str) -> None:
        """Its changes are looked for: `changes`."""

    def done(self, model: str, action: str, rows: int, error: str | None, seconds: float) -> None:
        """A model is as it should be, or failed."""

    def sends(self, sync: str, rows: int) -> None:
        """So many rows of a sync go out from now on; 0 where all went."""

    def sent(self, rows: int) -> None:
        """So many of them were answered."""


TOLD = ("planned", "doing", "begins", "began", "step", "done", "sends", "sent")
