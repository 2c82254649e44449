"""Runs a push function on given rows without sending anything: for people who write one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet

from runtime.custody.masks import Masker
from runtime.errors import Cancelled, ConfigError
from runtime.model import Column
from runtime.push import apart
from runtime.push.function import CallContext, CallResult, Outcome, PushCall, PushFunction
from runtime.push.http.answers import Answer
from runtime.push.http.auth import SecretSource
from runtime.push.http.rate_limits import MemoryLimiter
from runtime.push.http.requester import Request
from runtime.staging.values import CHANGE_TYPE, ROW_ID, to_rows


class Recording:
    """A transport that keeps each request and gives the same answer to all."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    def send(self, method: str, url: str, headers: Any, body: bytes | None, timeout: float) -> Answer:
        self.requests.append(Request(method, url, headers, body, timeout=timeout))
        return self.answer


class Sampling(Recording):
    """Keeps the first requests, gives each an empty answer, and ends the call that makes more or takes long."""

    def __init__(self, token_url: str, most: int = 20, seconds: float = 10.0) -> None:
        super().__init__(Answer(200, {"content-type": "application/json"}, b"{}"))
        self.token_url, self.most, self.end = token_url, most, time.monotonic() + seconds

    @property
    def over(self) -> bool:
        return len(self.requests) >= self.most or time.monotonic() > self.end

    def send(self, method: str, url: str, headers: Any, body: bytes | None, timeout: float) -> Answer:
        if url == self.token_url:  # how it is authorized, not what would be sent
            return Answer(200, {"content-type": "application/json"}, b'{"access_token": "token-of-a-dry-run"}')
        if self.over:
            raise Cancelled("a dry run shows the first requests only")
        return super().send(method, url, headers, body, timeout)


class StandIns:
    """The real secrets where they are set, else a text that says which one would stand there."""

    def __init__(self, secrets: SecretSource) -> None:
        self._secrets = secrets

    def get(self, name: str, default: Any = None) -> Any:
        return self._secrets.get(name) or (f"<{name}>" if default is None else default)


@dataclass
class Rehearsal:
    """What one push function did with the rows, call by call."""

    results: list[CallResult] = field(default_factory=list)
    rows: list[list[dict[str, Any]]] = field(default_factory=list)
    outcomes: list[list[Outcome]] = field(default_factory=list)  # of poll() where push() started a job

    @property
    def failed(self) -> bool:
        return any(o.kind in ("error", "reject") for some in self.outcomes for o in some)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON list, JSON lines, CSV or Parquet file; row ids and change types are added where they are
    missing."""
    try:
        if path.suffix == ".parquet":
            rows = to_rows(pyarrow.parquet.read_table(path))
        elif path.suffix == ".csv":
            rows = to_rows(pyarrow.csv.read_csv(path))
        else:
            text = path.read_text(encoding="utf-8")
            rows = (
                json.loads(text)
                if text.lstrip().startswith("[")
                else [json.loads(line) for line in text.splitlines() if line.strip()]
            )
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no rows can be read: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        raise ConfigError(f"{path}: a list of objects is expected, with at least one row")
    return [
        {
            **{k: v for k, v in row.items() if k not in (ROW_ID, CHANGE_TYPE)},
            ROW_ID: row.get(ROW_ID, i),
            CHANGE_TYPE: row.get(CHANGE_TYPE, "insert"),
        }
        for i, row in enumerate(rows, 1)
    ]


def rehearse(
    project_dir: Path,
    name: str,
    rows: Sequence[dict[str, Any]],
    *,
    secrets: SecretSource,
    kind: str = "merge",
    key_columns: Sequence[str] = (),
    args: Sequence[str] = (),
    answer: Answer | None = None,
) -> Rehearsal:
    """Calls push() with the rows in batches, then poll() once for each job. Raises ProjectError."""
    standing = StandIns(secrets)
    push = apart.load(project_dir, name, secrets=standing)
    context = CallContext(
        secrets=standing,
        limiter=MemoryLimiter(),
        transport=Recording(answer or Answer(200, {"content-type": "application/json"}, b"{}")),
    )
    if len(args) != len(push.api.push.args):
        raise ConfigError(
            f"{push.file}: push.args names {', '.join(push.api.push.args) or 'no arguments'}; {len(args)} given"
        )
    found = Rehearsal()
    size = push.api.push.batch_size
    for number, start in enumerate(range(0, len(rows), size), 1):
        batch = list(rows[start : start + size])
        call = PushCall(batch, batch_number=number, kind=kind, key_columns=key_columns, run_id=1, args=args)
        result = push.push(call, context)
        found.results.append(result)
        found.rows.append(batch)
        found.outcomes.append(_polled(push, result, batch, context, args, key_columns))
    return found


def first_requests(
    project_dir: Path,
    name: str,
    batches: Iterable[list[dict[str, Any]]],
    *,
    secrets: SecretSource,
    masker: Masker,
    kind: str,
    key_columns: Sequence[str] = (),
    columns: Sequence[Column] = (),
    run_id: int = 0,
    args: Sequence[str] = (),
) -> dict[str, Any]:
    """The first requests that push() would make of these rows, and its prints; every request is answered by an empty
    object, none leaves.

    Secrets and masked values are taken out. Raises ProjectError.
    """
    push = apart.load(
        project_dir, name, secrets=secrets
    )  # of its own: it may not share a token with calls that are real
    auth = push.api.auth
    transport = Sampling(auth.token_url if auth else "")
    context = CallContext(
        secrets=secrets, limiter=MemoryLimiter(), transport=transport, cancelled=lambda: transport.over
    )
    found: list[dict[str, Any]] = []
    said: list[str] = []
    for number, rows in enumerate(batches, 1):
        try:
            result = push.push(
                PushCall(
                    rows,
                    batch_number=number,
                    kind=kind,
                    key_columns=key_columns,
                    columns=columns,
                    run_id=run_id,
                    args=args,
                ),
                context,
            )
        except Cancelled:
            break
        scrub = masker.scrubber(rows)
        found += [
            {
                "call": number,
                "method": made.method,
                "url": scrub(made.url),
                "body": None if made.request_body is None else scrub(made.request_body),
                "headers": {
                    k: "***" if auth and auth.kind == "hmac" and k == auth.name else scrub(v)
                    for k, v in made.request_headers.items()
                },
            }
            for made in result.calls
        ]
        problems = (
            sorted({o.message for o in result.outcomes if o.message}) if not transport.over else []
        )  # else it was we who ended the call
        said += [f"call {number}: {scrub(line)}" for line in (*result.prints, *problems)][:20]
        if transport.over:
            break
    return {"requests": found, "said": said}


def _polled(
    push: PushFunction,
    result: CallResult,
    rows: list[dict[str, Any]],
    context: CallContext,
    args: Sequence[str],
    key_columns: Sequence[str],
) -> list[Outcome]:
    if result.job_ref is None:
        return result.outcomes
    polled = push.poll(result.job_ref, rows, context, args=args, key_columns=key_columns)
    result.calls.extend(polled.calls)
    result.prints.extend(polled.prints)
    return polled.outcomes or []


def parse_answer(status: int, text: str | None) -> Answer:
    """What the stub answers: a status and, if given, a JSON body."""
    if text is None:
        text = "{}"
    try:
        json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--answer must be JSON: {error}") from None
    if not 100 <= status <= 599:
        raise ConfigError(f"--status {status} is no HTTP status")
    return Answer(status, {"content-type": "application/json"}, text.encode())


def told(rehearsal: Rehearsal) -> str:
    """The whole story as lines of text."""
    lines = []
    for number, (result, rows, outcomes) in enumerate(
        zip(rehearsal.results, rehearsal.rows, rehearsal.outcomes, strict=True), 1
    ):
        lines.append(f"call {number}: {len(rows)} rows, {len(result.calls)} requests")
        for made in result.calls:
            lines.append(f"  {made.method} {made.url}" + (f"  (rows {', '.join(made.rows)})" if made.rows else ""))
            lines += [f"    {name}: {value}" for name, value in made.request_headers.items() if name != "Accept"]
            if made.request_body is not None:
                lines.append(f"    {made.request_body}")
            lines.append(f"    -> {made.status if made.status is not None else 'no answer: ' + made.response_text}")
        lines += [f"  print: {line}" for line in result.prints]
        lines += [f"  warning: {line}" for line in result.warnings]
        if result.job_ref is not None:
            lines.append(
                f"  job: {json.dumps(result.job_ref, ensure_ascii=False)}"
                + ("" if outcomes else "  (poll() says that it goes on)")
            )
        for row, outcome in zip(rows, outcomes, strict=False):
            lines.append(
                f"  {row[ROW_ID]}:{row[CHANGE_TYPE]} {outcome.kind}"
                + (f": {outcome.message}" if outcome.message else "")
            )
    return "\n".join(lines)
