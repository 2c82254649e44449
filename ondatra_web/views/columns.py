"""Payload fields as columns of the window of records: which a person chose for a sync, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from ondatra_web.access import PAYLOADS, sync_for
from ondatra_web.models import Run, ShownColumns
from ondatra_web.views.shown import SignedIn, object_of
from runtime.records import exact

MOST = 12
#: Characters of a value in a cell.
MOST_OF_A_CELL = 80


@require_POST
@login_required
def choose(request: SignedIn, sync_id: int) -> HttpResponse:
    """Keeps the choice, and goes back to the window."""
    sync = sync_for(request.user, sync_id, PAYLOADS)
    names = [name[:200] for name in dict.fromkeys(request.POST.getlist("column")) if name][:MOST]
    ShownColumns.objects.update_or_create(user=request.user, sync=sync, defaults={"names": names})

    back = request.POST.get("back", "")
    if url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/"):
        return redirect(back)
    return redirect("sync", sync_id)


def chosen(request: SignedIn, run: Run) -> list[str]:
    found = ShownColumns.objects.filter(user=request.user, sync_id=run.sync_id).first()
    return list(found.names) if found else []


def offered(run: Run, rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[tuple[str, bool]]:
    """The fields that may be chosen, each with whether it is: those of the run's payloads, and what was chosen for
    others."""
    schema = run.metadata.get("record_payload_schema") or {}
    of_rows = {} if schema else {name: None for row in rows for name in object_of(row.get("record_payload"))}
    known = dict.fromkeys([*schema, *of_rows, *names])
    return [(exact.readable(name), name in names) for name in known]


def cells(row: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, str]]:
    """Name and value of each chosen field; empty where the row has none."""
    if not names:
        return []
    payload = object_of(row.get("record_payload"))
    return [(name, _cell(payload[name]) if name in payload else "") for name in names]


def _cell(value: Any) -> str:
    """A text as it is, everything else as JSON on one line."""
    text = exact.readable(value) if isinstance(value, str) else " ".join(exact.dumps(value).split())
    return text if len(text) <= MOST_OF_A_CELL else f"{text[:MOST_OF_A_CELL]}…"
