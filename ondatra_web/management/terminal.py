"""What a person at a terminal sees of long work: a line for each thing that is done, below them one that lives."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from ondatra_web.durations import duration
from ondatra_web.runs.watch import Watch

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Of models that are built side by side so many are named.
NAMED = 2
PER_SECOND = 8
#: Without a terminal, seconds between two lines that say how far something is.
PLAIN_SECONDS = 5.0
LOOKING = {"changes": "comparing"}


class Live:
    """One line below what is printed meanwhile: what works now, for how long, how far it is. Without a terminal there
    is none, and `print` prints."""

    def __init__(self) -> None:
        self._what, self._since, self._told = "", time.monotonic(), time.monotonic()
        self._done, self._of = 0, 0
        self._console: Console | None = None

    def __enter__(self) -> Live:
        shown = sys.stdout if sys.stdout.isatty() else sys.stderr
        if not shown.isatty():
            return self
        from rich.console import Console
        from rich.live import Live as Line

        self._console = Console(file=shown, highlight=False)
        self._line = Line(
            console=self._console,
            get_renderable=self._text,
            transient=True,
            refresh_per_second=PER_SECOND,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )
        self._line.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console:
            self._line.stop()

    def print(self, text: str) -> None:
        """A line that stays, above the live one where both are shown."""
        if self._console and sys.stdout.isatty():
            self._console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def doing(self, what: str, of: int = 0) -> None:
        """What works from now on; with `of` pieces it has a rate and an end. Empty: nothing."""
        if what != self._what:
            self._what, self._since, self._done = what, time.monotonic(), 0
        self._of = of
        if self._console:
            self._line.refresh()  # what is printed next stands above this

    def more(self, pieces: int) -> None:
        self.reached(self._done + pieces)

    def reached(self, pieces: int) -> None:
        self._done = pieces
        if self._console is None and time.monotonic() - self._told > PLAIN_SECONDS:
            self._told = time.monotonic()
            print(self._now(), file=sys.stderr, flush=True)

    def _text(self) -> Text:
        from rich.text import Text

        return Text(self._now() if self._what else "", no_wrap=True, overflow="ellipsis", style="dim")

    def _now(self) -> str:
        seconds = time.monotonic() - self._since
        parts = [self._what]
        if self._of:
            parts[0] += f" {min(self._done, self._of):,} of {self._of:,}"
        elif self._done:
            parts[0] += f" {self._done:,}"
        rate = self._done / seconds if self._done and seconds > 1 else 0.0
        if rate:
            parts.append(f"{rate:,.0f} a second")
        if rate and self._of > self._done:
            parts.append(f"{_told((self._of - self._done) / rate)} left")
        else:
            parts.append(_told(seconds))
        return " · ".join(parts)


@contextmanager
def live(what: str) -> Iterator[Live]:
    """For work of one kind."""
    with Live() as line:
        line.doing(what)
        yield line


class Shown(Watch):
    """Of a run: the lines of its models as they are done."""

    def __init__(self, line: Live) -> None:
        self.line = line
        self._works: dict[str, str] = {}  # model -> what of it
        self._waits, self._width, self._of = "", 0, 0

    def planned(self, models: Sequence[str]) -> None:
        self._width = max(map(len, models), default=0)

    def doing(self, what: str) -> None:
        self._waits = what
        self._tell()

    def begins(self, model: str) -> None:
        self._works[model] = "reading"
        self._tell()

    def step(self, model: str, name: str) -> None:
        self._works[model] = LOOKING.get(name, name)
        self._tell()

    def done(self, model: str, action: str, rows: int, error: str | None, seconds: float) -> None:
        self._works.pop(model, None)
        self._tell()
        name = f"{action:>9}  {model:<{self._width}}"
        took = f"  {_told(seconds):>8}" if action == "built" else ""
        self.line.print(f"{name}  {error}" if error else f"{name}  {rows:>11,} rows{took}")

    def sends(self, sync: str, rows: int) -> None:
        self.line.doing(f"sending {sync}" if rows else "", rows)

    def sent(self, rows: int) -> None:
        self.line.more(rows)

    def _tell(self) -> None:
        named = [f"{what} {model}" for model, what in list(self._works.items())[:NAMED]]
        more = len(self._works) - len(named)
        self.line.doing(self._waits or ", ".join(named) + (f" and {more} more" if more else ""))


def _told(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))
