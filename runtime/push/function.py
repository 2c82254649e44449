"""A push function: called with rows, its answers read by contract 2.3."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import orjson

from runtime.custody.redact import Redactor, everywhere
from runtime.errors import Cancelled
from runtime.push import culprit, starlark
from runtime.push.api_dict import Api
from runtime.push.builtins import Session
from runtime.push.call import CallContext, CallResult, FinalizeResult, PollResult, Prepared, PushCall
from runtime.push.finite import finite
from runtime.push.http.auth import Authorizer, SecretSource
from runtime.push.http.client import TransportError
from runtime.push.http.requester import Requester
from runtime.push.starlark import Module, StarlarkFailure, Watch
from runtime.push.statuses import Outcome, check_atomic, check_statuses, shortened, shown

#: How often a call may ask whether its run was cancelled; that is a look at the database.
ASK_EVERY = 0.5


@dataclass
class _Ended:
    """A call's value or failure, and what it left behind."""

    session: Session
    requester: Requester
    started_at: datetime
    ended_at: datetime
    value: Any = None
    failure: StarlarkFailure | None = None

    @property
    def left(self) -> dict[str, Any]:
        return {
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "calls": self.requester.calls,
            "prints": self.session.prints,
            "http_seconds": self.requester.seconds,
        }


class PushFunction:
    """One `lib/<name>.star`, compiled and checked; used from any number of threads."""

    def __init__(self, name: str, module: Module, api: Api, secrets: SecretSource) -> None:
        self.name, self.module, self.api = name, module, api
        self.file = module.file
        self.redactor = Redactor(also=everywhere)
        self._authorizer = Authorizer(api.auth, secrets, self.redactor)
        limit = api.rate_limit
        self.limit_key = f"name:{limit.name}" if limit and limit.name else f"lib:{name}"

    @property
    def has_finalize(self) -> bool:
        return "finalize" in self.module.parameters

    def prepared(self, call: PushCall, context: CallContext) -> Prepared:
        """The call, to begin later."""
        return _Here(self, call, context)

    def push(self, call: PushCall, context: CallContext) -> CallResult:
        """One call. Raises Cancelled only if nothing was sent; later a cancel makes rows whose fate is unknown."""
        given = {
            "batch_number": call.batch_number,
            "kind": call.kind,
            "key_columns": list(call.key_columns),
            "run_id": call.run_id,
            "attempt": call.attempt,
            "columns": [{"name": c.name, "type": c.duckdb_type} for c in call.columns],
            **dict(zip(self.api.push.args, call.args, strict=False)),
        }
        ended = self._call(
            "push", given, context, rows=call.rows, batch_number=call.batch_number, change_ids=call.change_ids
        )
        if ended.failure:
            # in atomic fail() is the answer that nothing was taken; anywhere else nobody knows
            known = ended.failure.failed and self.api.push.batch_mode == "atomic"
            return CallResult(self._all(call.rows, str(ended.failure), known=known), **ended.left)
        if self.api.push.batch_mode == "atomic":
            return CallResult(self._clean(check_atomic(ended.value, len(call.rows))), **ended.left)
        if self.api.push.batch_mode == "async":
            if not isinstance(ended.value, dict):
                message = f"push() must return a dict, the reference of its job, not {shown(ended.value)}"
                return CallResult(self._all(call.rows, message, known=False), **ended.left)
            return CallResult([], job_ref=ended.value, **ended.left)
        outcomes, warnings = check_statuses(ended.value, call.rows, "push")
        return CallResult(self._clean(outcomes), warnings=warnings, **ended.left)

    def poll(
        self,
        job_ref: dict[str, Any],
        rows: list[dict[str, Any]],
        context: CallContext,
        *,
        args: Sequence[str] = (),
        key_columns: Sequence[str] = (),
        batch_number: int = 0,
    ) -> PollResult:
        """One look at a job. A transport error is no answer: outcomes is None and the next look may do better. Raises
        Cancelled."""
        given = {
            "job_ref": job_ref,
            "key_columns": list(key_columns),
            **dict(zip(self.api.push.args, args, strict=False)),
        }
        ended = self._call("poll", given, context, rows=rows, batch_number=batch_number)
        if ended.failure:
            if isinstance(ended.failure.cause, TransportError):
                return PollResult(None, warnings=[self._kept(f"poll() got no answer: {ended.failure}")], **ended.left)
            message = self._kept(str(ended.failure))
            return PollResult(self._all(rows, message, known=False), error=message, **ended.left)
        if ended.value is None:
            return PollResult(None, **ended.left)
        outcomes, warnings = check_statuses(ended.value, rows, "poll")
        return PollResult(self._clean(outcomes), warnings=warnings, **ended.left)

    def finalize(self, succeeded: int, failed: int, context: CallContext) -> FinalizeResult:
        """The last call of a run; what it returns does not matter. Raises Cancelled."""
        declared = list(self.module.parameters["finalize"])
        given = {"succeeded": succeeded, "failed": failed}
        if not set(declared) & set(given):
            given = dict(zip(declared, (succeeded, failed), strict=False))
        ended = self._call("finalize", given, context)
        return FinalizeResult(
            self._kept(str(ended.failure)) if ended.failure else "", ended.requester.calls, ended.session.prints
        )

    def _call(
        self,
        name: str,
        given: Mapping[str, Any],
        context: CallContext,
        *,
        rows: list[dict[str, Any]] | None = None,
        batch_number: int = 0,
        change_ids: Sequence[str] | None = None,
    ) -> _Ended:
        cancelled = _throttled(context)
        watch = Watch(cancelled)
        requester = Requester(
            self.api,
            self._authorizer,
            self.redactor,
            limiter=context.limiter,
            limit_key=self.limit_key,
            transport=context.transport,
            cancelled=cancelled,
            batch_number=batch_number,
        )
        session = Session(requester, self.redactor, context.secrets, cancelled, watch, rows or (), change_ids)
        ended = _Ended(session, requester, datetime.now(UTC), datetime.now(UTC))
        declared = self.module.parameters[name]
        kwargs = {k: v for k, v in given.items() if k in declared}
        try:
            if rows is not None and "rows" in declared:
                ended.value = _with_rows(self.module, name, rows, kwargs, session, watch)
            else:
                ended.value = starlark.call(self.module, name, kwargs, session, watch)
        except StarlarkFailure as failure:
            if isinstance(failure.cause, Cancelled):
                ended.failure = self._cancelled(failure.cause, name, requester)
            else:
                ended.failure = self._with_row(failure, name, kwargs, rows, session, requester)
        except Cancelled as error:
            ended.failure = self._cancelled(error, name, requester)
        ended.ended_at = datetime.now(UTC)
        return ended

    @staticmethod
    def _cancelled(error: Cancelled, name: str, requester: Requester) -> StarlarkFailure:
        if name != "push" or not requester.sent:
            raise error
        return StarlarkFailure("the run was cancelled before push() had answered")

    def _with_row(
        self,
        failure: StarlarkFailure,
        name: str,
        kwargs: Mapping[str, Any],
        rows: list[dict[str, Any]] | None,
        session: Session,
        requester: Requester,
    ) -> StarlarkFailure:
        """Names the row, where the text of the function is to blame and not the way to the destination."""
        if (
            not rows
            or failure.failed
            or failure.cause
            or session.watch.why
            or "rows" not in self.module.parameters[name]
        ):
            return failure
        row = culprit.find(self.module, name, kwargs, rows, failure, session, requester.answers)
        return StarlarkFailure(failure.message, place=f"{failure.place}, row {row}") if row else failure

    def _all(self, rows: Sequence[Any], message: str, *, known: bool) -> list[Outcome]:
        return [Outcome("error", self._kept(message), known)] * len(rows)

    def _clean(self, outcomes: list[Outcome]) -> list[Outcome]:
        return [o if not o.message else Outcome(o.kind, self._kept(o.message), o.known) for o in outcomes]

    def _kept(self, message: str) -> str:
        """Without secrets, and no longer than anybody reads."""
        return shortened(self.redactor.text(message))


class _Here(Prepared):
    """Runs where its result is asked for."""

    def __init__(self, push: PushFunction, call: PushCall, context: CallContext) -> None:
        self._push, self._call, self._context = push, call, context

    def begin(self) -> None:
        """Nothing can begin beside the thread that asks."""

    def result(self) -> CallResult:
        return self._push.push(self._call, self._context)


def _throttled(context: CallContext) -> Callable[[], bool]:
    last = [0.0, False]

    def cancelled() -> bool:
        now = time.monotonic()
        if not last[1] and now - last[0] >= ASK_EVERY:
            last[0], last[1] = now, context.cancelled()
        return bool(last[1])

    return cancelled


def _with_rows(
    module: Module, name: str, rows: list[dict[str, Any]], kwargs: dict[str, Any], session: Session, watch: Watch
) -> Any:
    """Rows of plain values travel as JSON, which Starlark reads seven times faster; nested ones keep their order as
    dicts."""
    lines = _plain_lines(rows)
    if lines is None:
        return starlark.call(module, name, {**kwargs, "rows": finite(rows)}, session, watch)
    return starlark.with_rows(module, name, list(rows[0]), lines, kwargs, session, watch)


def _plain_lines(rows: list[dict[str, Any]]) -> str | None:
    if not rows:
        return None
    names = list(rows[0])
    values = [list(row.values()) for row in rows]
    if set(map(type, chain.from_iterable(values))) & {dict, list, tuple} or any(list(row) != names for row in rows):
        return None
    try:
        return orjson.dumps(values).decode()
    except (TypeError, ValueError):  # integers over 64 bits
        return None
