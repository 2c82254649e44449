"""View Records: a window over a run with an address of its own; filter, search, page, one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from ondatra_web.access import OPERATE, PAYLOADS, SEE, may, run_for
from ondatra_web.forms import FORMATS, HOW, OUTCOMES, WITHIN, RecordFilterForm
from ondatra_web.models import MessageGroup, Run
from ondatra_web.tracking import asked, reads, unsent
from ondatra_web.tracking.records import files_of, kept_until, visible
from ondatra_web.views import bare_records, columns, downloads
from ondatra_web.views import run as run_page
from ondatra_web.views.filters import address_of, change_types, chosen_of, operations, statuses, warned
from ondatra_web.views.panel import panel_of
from ondatra_web.views.shown import SignedIn, record_status
from runtime.errors import OndatraError
from runtime.records import query as record_files
from runtime.records.filter import FileRef, Filter
from runtime.records.query import Page

SIZE = 25
MOST_REASONS = 100
#: Statuses that are offered though no record has them.
ALWAYS = ("", "success", "rejected", "invalid")


@require_safe
@login_required
def records(request: SignedIn, run_id: int) -> HttpResponse:
    form = RecordFilterForm(request.GET)
    telling = any(form.chosen[name] for name in bare_records.TELLING)
    run = run_for(request.user, run_id, PAYLOADS if telling else SEE)
    shown = visible(run)
    context: dict[str, Any] = {
        "run": run,
        "sync": run.sync,
        "chosen": form.chosen,
        "visible": shown,
        "kept_until": kept_until(run),
        "active": run.status in Run.ACTIVE,
        "payloads": may(request.user, PAYLOADS, run.sync.workspace),
        "again": may(request.user, OPERATE, run.sync.workspace) and not (run.dry_run or run.sync.archived_at),
    }

    if shown == "shown":
        try:
            address = {name: value for name, value in form.chosen.items() if value}
            context |= _window(request, run, address) if context["payloads"] else _bare(run, address)
        except OndatraError as error:
            context |= {"problems": [str(error)], "rows": [], "total": 0}

    if not request.headers.get("HX-Request"):
        context["behind"] = _behind(request, run)
    return render(request, "records/records.html", context, status=410 if shown == "expired" else 200)


def _behind(request: SignedIn, run: Run) -> str:
    """The page of the run, which stands still behind the window."""
    return render_to_string("runs/_run.html", {**run_page.context(request, run), "still": True}, request)


def _window(request: SignedIn, run: Run, address: Mapping[str, Any]) -> dict[str, Any]:
    waiting, left_out = unsent.listed(run)
    files = files_of(run) + waiting
    filter = asked.found_by(run, files, asked.filter_of(run, chosen_of(run, address)))
    kept = {name: value for name, value in address.items() if name not in ("page", "record")}
    chosen = str(address.get("record") or "")
    listed = _listed(files, filter, kept, int(address.get("page") or 1), chosen)
    if left_out:
        listed["problems"] = [*listed["problems"], f"{left_out:,} more rows wait than are listed here"]
    reads.of_run(request.user, "read_records", run, filter, len(listed["rows"]), page=listed["number"], record=chosen)

    return {
        **_choices(run, files, kept, address),
        **listed,
        **_columns(request, run, listed["rows"]),
        **_to_download(run, kept, listed["total"]),
        "query": record_files.duckdb_query(files, filter) if files else "",
        "panel": panel_of(run, files, chosen) if chosen else None,
        "filtered": bool(kept),
        "kept": kept,
    }


def _bare(run: Run, address: Mapping[str, Any]) -> dict[str, Any]:
    """The window without what the rows hold."""
    files = files_of(run) + unsent.files(run)
    filter = asked.filter_of(run, chosen_of(run, address))
    kept = {name: value for name, value in address.items() if name != "page"}
    listed = _listed(files, filter, kept, int(address.get("page") or 1), "")
    bare = {"rows": bare_records.rows_of(run, listed["rows"]), "filtered": bool(kept), "kept": kept}
    return {**_choices(run, files, kept, address), **listed, **bare}


def _choices(run: Run, files: Sequence[FileRef], kept: Mapping[str, Any], address: Mapping[str, Any]) -> dict[str, Any]:
    """What the filters offer, and what of it is chosen."""
    tally = record_files.tally(files)
    return {
        "statuses": [c for c in statuses(tally, kept) if c.count or c.value in ALWAYS],
        "warned": warned(run, kept),
        "operations": operations(tally, kept),
        "change_types": change_types(tally, kept),
        "outcomes": OUTCOMES,
        "places": WITHIN,
        "hows": HOW,
        "more_chosen": any(kept.get(name) for name in ("change_type", "outcome", "attempt", "batch")),
        "reasons": list(MessageGroup.objects.filter(run=run).order_by("-rows")[:MOST_REASONS]),
        "reason": str(address.get("reason") or ""),
    }


def _columns(request: SignedIn, run: Run, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The payload fields that the person chose as columns, written into the rows, and what else there is to choose."""
    names = columns.chosen(request, run)
    for row in rows:
        row["cells"] = columns.cells(row, names)
    return {"columns": names, "fields": columns.offered(run, rows, names)}


def _listed(
    files: Sequence[FileRef], filter: Filter, kept: Mapping[str, Any], number: int, chosen: str
) -> dict[str, Any]:
    """The rows of one page, with the addresses around it."""
    total = record_files.count(files, filter)
    pages = max(1, -(-total // SIZE))
    number = min(number, pages)
    before = (number - 1) * SIZE
    page = record_files.page(files, filter, offset=before, limit=SIZE) if total else Page()
    here = {**kept, "page": number} if number > 1 else kept

    return {
        "rows": [_row(r, place, here, chosen) for r, place in zip(page.rows, page.places, strict=True)],
        "problems": page.problems,
        "total": total,
        "first": before + 1,
        "last": before + len(page.rows),
        "number": number,
        "pages": pages,
        "newer": address_of(kept, page=number - 1),
        "next": address_of(kept, page=number + 1),
        "close_record": address_of(here),
    }


def _row(record: dict[str, Any], place: str, here: Mapping[str, Any], chosen: str) -> dict[str, Any]:
    return {
        **record,
        "shown": record_status(record),
        "query": address_of(here, record=place),
        "selected": place == chosen,
    }


def _to_download(run: Run, kept: Mapping[str, Any], total: int) -> dict[str, Any]:
    """What comes at once, everything or the first rows, and what takes a job."""
    at_once = total <= downloads.MOST_AT_ONCE
    sample = "" if at_once else 1
    return {
        "at_once": at_once,
        "sample": downloads.SAMPLE,
        "downloads": [(label, address_of(kept, format=name, sample=sample)) for name, label in FORMATS],
        "export": address_of(kept),
        "formats": FORMATS,
        "exports": run.export_set.exclude(status="removed").order_by("-pk")[:5],
    }
