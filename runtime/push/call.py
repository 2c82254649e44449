"""What a push function is called with, and what is left of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from runtime.model import Column
from runtime.push.http.auth import SecretSource
from runtime.push.http.calls import Calls
from runtime.push.http.client import POOL, Transport
from runtime.push.http.rate_limits import Limiter
from runtime.push.statuses import OK, Outcome


@dataclass(frozen=True)
class PushCall:
    """What one call of push() is about."""

    rows: list[dict[str, Any]]
    batch_number: int = 1
    kind: str = "merge"
    key_columns: Sequence[str] = ()
    columns: Sequence[Column] = ()
    run_id: int = 0
    attempt: int = 1
    args: Sequence[str] = ()
    change_ids: Sequence[str] | None = None  # one a row, the same however often the change is sent


@dataclass(frozen=True)
class CallContext:
    """What calls of one run share. `transport` replaces the network in a dry run."""

    secrets: SecretSource
    limiter: Limiter
    cancelled: Callable[[], bool] = lambda: False
    transport: Transport = POOL


@dataclass(frozen=True)
class CallResult:
    """How a call of push() ended, one outcome for each row in order."""

    outcomes: list[Outcome]
    started_at: datetime
    ended_at: datetime
    calls: Calls = field(default_factory=Calls)
    prints: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    job_ref: dict[str, Any] | None = None  # async: outcomes are then empty until poll() gives them
    http_seconds: float = 0.0


@dataclass(frozen=True)
class PollResult:
    """One look at a job. `outcomes` is None while it goes on; `error` is set when it failed (outcomes say so too)."""

    outcomes: list[Outcome] | None
    started_at: datetime
    ended_at: datetime
    calls: Calls = field(default_factory=Calls)
    prints: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: str = ""
    http_seconds: float = 0.0


@dataclass(frozen=True)
class FinalizeResult:
    error: str = ""
    calls: Calls = field(default_factory=Calls)
    prints: list[str] = field(default_factory=list)


class Prepared(Protocol):
    """A call of push() that is ready to begin."""

    def begin(self) -> None:
        """May return before the call has ended. Raises nothing."""

    def result(self) -> CallResult:
        """Begins the call where it has not begun, and waits for its end. Raises as `PushFunction.push`."""


def telling(result: CallResult | PollResult) -> list[int]:
    """The places of its requests that people look for: those that failed, or all where a row did."""
    if any(o is not OK and o.kind in ("error", "reject") for o in result.outcomes or ()):
        return list(range(len(result.calls)))
    return result.calls.failed()
