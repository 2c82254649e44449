"""Push functions whose calls run in the process of sandbox.py."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtime.push.function import CallContext, CallResult, FinalizeResult, PollResult, PushCall, PushFunction, load_push
from runtime.push.http.auth import SecretSource
from runtime.push.http.calls import Calls
from runtime.push.http.client import POOL
from runtime.push.sandbox import Sandbox, SandboxDied, sandbox


class ApartPush(PushFunction):
    """As PushFunction. A call that ends the process ends with rows of which nothing is known."""

    def __init__(self, inner: PushFunction, secrets: SecretSource) -> None:
        super().__init__(inner.name, inner.module, inner.api, secrets)
        self._key = uuid.uuid4().hex

    def push(self, call: PushCall, context: CallContext) -> CallResult:
        began = datetime.now(UTC)
        try:
            found: CallResult = self._there("push", (call,), {}, context, call.batch_number)
            return found
        except SandboxDied as died:
            return CallResult(self._all(call.rows, _told("push", died), known=False), began, datetime.now(UTC))

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
        began, more = datetime.now(UTC), {"args": args, "key_columns": key_columns, "batch_number": batch_number}
        try:
            found: PollResult = self._there("poll", (job_ref, rows), more, context, batch_number)
            return found
        except SandboxDied as died:
            told = _told("poll", died)
            return PollResult(self._all(rows, told, known=False), began, datetime.now(UTC), error=told)

    def finalize(self, succeeded: int, failed: int, context: CallContext) -> FinalizeResult:
        try:
            found: FinalizeResult = self._there("finalize", (succeeded, failed), {}, context, 0)
            return found
        except SandboxDied as died:
            return FinalizeResult(_told("finalize", died))

    def _there(
        self, method: str, given: tuple[Any, ...], more: Mapping[str, Any], context: CallContext, batch_number: int
    ) -> Any:
        def answer(name: str, asked: tuple[Any, ...]) -> Any:
            if name == "secret":
                variable, has_default = asked
                found = context.secrets.get(variable, _NOTHING) if has_default else context.secrets.get(variable)
                return None if found is _NOTHING else found
            if name == "take":
                key, n, seconds = asked
                context.limiter.take(key, n, seconds, context.cancelled)
                return None
            if name == "pause":
                context.limiter.pause(*asked)
                return None
            if name == "send":
                return context.transport.send(*asked)
            return context.cancelled()

        there = sandbox()
        self._open(there, answer)
        own = context.transport is POOL
        asked = ("call", self._key, method, given, more, own, context.cancelled())
        result, raw, secrets = there.call(asked, answer)
        self.redactor.learn(secrets)
        return replace(result, calls=Calls.of(raw, self.redactor, batch_number))

    def _open(self, there: Sandbox, answer: Any) -> None:
        if self._key not in there.known:
            there.call(("open", self._key, self.name, dict(self.module.texts), self.api), answer)
            there.known.add(self._key)


#: Stands for "not set" where None might be a default.
_NOTHING = object()


def _told(function: str, died: SandboxDied) -> str:
    return f"{function}() was ended: {died}; what it had sent is not known"


def load(project_dir: Path, name: str, *, secrets: SecretSource, sink_args: Sequence[str] = ()) -> ApartPush:
    """As load_push(), for delivery."""
    return ApartPush(load_push(project_dir, name, secrets=secrets, sink_args=sink_args), secrets)
