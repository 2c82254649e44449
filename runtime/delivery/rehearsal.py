"""Runs a push function on given rows without sending anything: for people who write one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet

from runtime.columns import CHANGE_TYPE, ROWID
from runtime.delivery.stand_ins import Recording, StandIns
from runtime.errors import ConfigError
from runtime.push import apart
from runtime.push.call import CallContext, CallResult, PushCall
from runtime.push.function import PushFunction
from runtime.push.http.answers import Answer
from runtime.push.http.auth import SecretSource
from runtime.push.http.rate_limits import MemoryLimiter
from runtime.push.statuses import Outcome
from runtime.staging.values import to_rows


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
            **{k: v for k, v in row.items() if k not in (ROWID, CHANGE_TYPE)},
            ROWID: row.get(ROWID, i),
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
                f"  {row[ROWID]}:{row[CHANGE_TYPE]} {outcome.kind}"
                + (f": {outcome.message}" if outcome.message else "")
            )
    return "\n".join(lines)
