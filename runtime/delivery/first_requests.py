"""The first requests that a run would make, for a dry run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from runtime.custody.masks import Masker, Scrubber
from runtime.delivery.stand_ins import Sampling
from runtime.errors import Cancelled
from runtime.model import Column
from runtime.push import apart
from runtime.push.api_dict import Auth
from runtime.push.call import CallContext, CallResult, PushCall
from runtime.push.http.auth import SecretSource
from runtime.push.http.calls import ApiCall
from runtime.push.http.rate_limits import MemoryLimiter

#: Lines that one call may say.
MOST_SAID = 20


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
    # of its own: it may not share a token with calls that are real
    push = apart.load(project_dir, name, secrets=secrets)
    auth = push.api.auth
    transport = Sampling(auth.token_url if auth else "")
    context = CallContext(
        secrets=secrets, limiter=MemoryLimiter(), transport=transport, cancelled=lambda: transport.over
    )
    given: dict[str, Any] = {
        "kind": kind,
        "key_columns": key_columns,
        "columns": columns,
        "run_id": run_id,
        "args": args,
    }

    found: list[dict[str, Any]] = []
    said: list[str] = []
    for number, rows in enumerate(batches, 1):
        try:
            result = push.push(PushCall(rows, batch_number=number, **given), context)
        except Cancelled:
            break
        scrub = masker.scrubber(rows)
        found += [_shown(made, number, scrub, auth) for made in result.calls]
        said += _said(result, number, scrub, ended_by_us=transport.over)
        if transport.over:
            break
    return {"requests": found, "said": said}


def _shown(made: ApiCall, number: int, scrub: Scrubber, auth: Auth | None) -> dict[str, Any]:
    signed = auth.name if auth and auth.kind == "hmac" else None
    return {
        "call": number,
        "method": made.method,
        "url": scrub(made.url),
        "body": None if made.request_body is None else scrub(made.request_body),
        "headers": {k: "***" if k == signed else scrub(v) for k, v in made.request_headers.items()},
    }


def _said(result: CallResult, number: int, scrub: Scrubber, *, ended_by_us: bool) -> list[str]:
    """Prints, and what the rows were told, unless that is only that the call was ended."""
    problems = [] if ended_by_us else sorted({o.message for o in result.outcomes if o.message})
    return [f"call {number}: {scrub(line)}" for line in (*result.prints, *problems)][:MOST_SAID]
