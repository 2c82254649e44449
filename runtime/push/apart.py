"""Push functions whose calls run in the process of sandbox.py."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtime.errors import OndatraError
from runtime.push.call import CallContext, CallResult, FinalizeResult, PollResult, PushCall
from runtime.push.function import PushFunction
from runtime.push.http.auth import SecretSource
from runtime.push.http.calls import Calls
from runtime.push.http.client import POOL
from runtime.push.load import load_push
from runtime.push.sandbox import Answering, Sandbox, SandboxDied, sandbox
from runtime.push.starlark import place_of

#: Seconds that it may take to find where a call was.
TRACING = 20.0


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
            told = self._told("push", died, (call,), {}, context)
            return CallResult(self._all(call.rows, told, known=False), began, datetime.now(UTC))

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
            told = self._told("poll", died, (job_ref, rows), more, context)
            return PollResult(self._all(rows, told, known=False), began, datetime.now(UTC), error=told)

    def finalize(self, succeeded: int, failed: int, context: CallContext) -> FinalizeResult:
        try:
            found: FinalizeResult = self._there("finalize", (succeeded, failed), {}, context, 0)
            return found
        except SandboxDied as died:
            return FinalizeResult(self._told("finalize", died, (succeeded, failed), {}, context))

    def _there(
        self, method: str, given: tuple[Any, ...], more: Mapping[str, Any], context: CallContext, batch_number: int
    ) -> Any:
        answer = _answering(context)
        there = sandbox()
        self._open(there, answer)
        own = context.transport is POOL
        asked = ("call", self._key, method, given, more, own, context.cancelled())
        result, raw, secrets = there.call(asked, answer)
        self.redactor.learn(secrets)
        return replace(result, calls=Calls.of(raw, self.redactor, batch_number))

    def _told(
        self, method: str, died: SandboxDied, given: tuple[Any, ...], more: Mapping[str, Any], context: CallContext
    ) -> str:
        place = self._place(died, method, given, more, context)
        return f"{method}() was ended: {died}; what it had sent is not known{f' ({place})' if place else ''}"

    def _place(
        self, died: SandboxDied, method: str, given: tuple[Any, ...], more: Mapping[str, Any], context: CallContext
    ) -> str:
        """Where it was, by the same call once more with nothing sent; empty where that ends otherwise."""
        there = sandbox()
        asked = ("trace", self.name, dict(self.module.texts), self.api, method, given, more)
        try:
            there.call(asked, _answering(context), within=TRACING)
        except SandboxDied as again:
            if there.place and str(again) == str(died):
                return place_of(*there.place, self.module.texts)
        except OndatraError:
            pass  # it ended as other calls do
        return ""

    def _open(self, there: Sandbox, answer: Answering) -> None:
        if self._key not in there.known:
            there.call(("open", self._key, self.name, dict(self.module.texts), self.api), answer)
            there.known.add(self._key)


#: Stands for "not set" where None might be a default.
_NOTHING = object()


def _answering(context: CallContext) -> Answering:
    """What a call over there may ask for."""

    def answer(name: str, asked: tuple[Any, ...]) -> Any:
        if name == "secret":
            variable, has_default = asked
            found = context.secrets.get(variable, _NOTHING) if has_default else context.secrets.get(variable)
            return None if found is _NOTHING else found
        if name == "take":
            key, n, seconds = asked
            return context.limiter.take(key, n, seconds, context.cancelled)
        if name == "pause":
            return context.limiter.pause(*asked)
        if name == "send":
            return context.transport.send(*asked)
        return context.cancelled()

    return answer


def load(project_dir: Path, name: str, *, secrets: SecretSource, sink_args: Sequence[str] = ()) -> ApartPush:
    """As load_push(), for delivery."""
    return ApartPush(load_push(project_dir, name, secrets=secrets, sink_args=sink_args), secrets)
