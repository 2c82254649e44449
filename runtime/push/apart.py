"""Push functions whose calls run in the process of sandbox.py."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtime.errors import OndatraError
from runtime.push.call import CallContext, CallResult, FinalizeResult, PollResult, Prepared, PushCall
from runtime.push.function import PushFunction
from runtime.push.http.auth import SecretSource
from runtime.push.http.calls import Calls
from runtime.push.http.client import POOL
from runtime.push.load import load_push
from runtime.push.sandbox import Answering, Begun, Sandbox, SandboxDied, sandbox
from runtime.push.starlark import place_of

#: Seconds that it may take to find where a call was.
TRACING = 20.0


class ApartPush(PushFunction):
    """As PushFunction. A call that ends the process ends with rows of which nothing is known."""

    def __init__(self, inner: PushFunction, secrets: SecretSource) -> None:
        super().__init__(inner.name, inner.module, inner.api, secrets)
        self._key = uuid.uuid4().hex

    def push(self, call: PushCall, context: CallContext) -> CallResult:
        return self.prepared(call, context).result()

    def prepared(self, call: PushCall, context: CallContext) -> Prepared:
        return _Away(self, call, context)

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

    def begun(self, method: str, packed: bytes, context: CallContext) -> Begun:
        """Raises SandboxDied, and what the text of the function raises."""
        there = sandbox()
        self._open(there, _answering(context))
        return there.begin(("call", self._key, method, packed, context.transport is POOL, context.cancelled()))

    def heard(self, begun: Begun, context: CallContext, batch_number: int) -> Any:
        """Raises SandboxDied, Cancelled and what else is raised over there."""
        result, raw, secrets = begun.answer(_answering(context))
        self.redactor.learn(secrets)
        return replace(result, calls=Calls.of(raw, self.redactor, batch_number))

    def ended(self, died: SandboxDied, call: PushCall, context: CallContext, began: datetime) -> CallResult:
        """Of a call that ended the process."""
        told = self._told("push", died, (call,), {}, context)
        return CallResult(self._all(call.rows, told, known=False), began, datetime.now(UTC))

    def _there(
        self, method: str, given: tuple[Any, ...], more: Mapping[str, Any], context: CallContext, batch_number: int
    ) -> Any:
        return self.heard(self.begun(method, pickle.dumps((given, more)), context), context, batch_number)

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


class _Away(Prepared):
    """Ready to be sent to the process at once: until this call is answered, the sender may do something else."""

    def __init__(self, push: ApartPush, call: PushCall, context: CallContext) -> None:
        self._push, self._call, self._context = push, call, context
        self._packed = pickle.dumps(((call,), {}))
        self._began = datetime.now(UTC)
        self._out: Begun | OndatraError | None = None

    def begin(self) -> None:
        self._began = datetime.now(UTC)
        try:
            self._out = self._push.begun("push", self._packed, self._context)
        except OndatraError as error:  # raised where the answer is asked for
            self._out = error

    def result(self) -> CallResult:
        if self._out is None:
            self.begin()
        try:
            if isinstance(self._out, OndatraError):
                raise self._out
            assert self._out is not None
            found: CallResult = self._push.heard(self._out, self._context, self._call.batch_number)
            return found
        except SandboxDied as died:
            return self._push.ended(died, self._call, self._context, self._began)


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
