"""View Records: a window over a run with an address of its own; filter, search, page, one record, download."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ondatra_web.access import may_write, run_for
from ondatra_web.forms import FORMATS, STATUSES, DownloadForm, RecordFilterForm
from ondatra_web.models import MessageGroup, Run
from ondatra_web.tracking.records import files_of, with_masked
from ondatra_web.views import run as run_page
from ondatra_web.views.finding import found_records
from ondatra_web.views.panel import panel_of
from ondatra_web.views.shown import SignedIn, kept_until, record_status, records_visible
from runtime.errors import OndatraError
from runtime.records import exports
from runtime.records import query as record_files
from runtime.records.query import STATUSES as FILE_STATUSES
from runtime.records.query import FileRef, Filter, Page

SIZE = 25
MOST_REASONS = 100
#: More rows than this are a job with a file to fetch; a sample of them comes at once.
MOST_AT_ONCE = 50_000
SAMPLE = 1_000
TYPES = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True)
class Choice:
    """A filter to choose, with the address that chooses it."""

    value: str
    label: str
    count: int | None
    chosen: bool
    query: str


@require_safe
@login_required
def records(request: SignedIn, run_id: int) -> HttpResponse:
    run = run_for(request.user, run_id)
    form = RecordFilterForm(request.GET)
    address = {name: value for name, value in form.chosen.items() if value}
    shown = records_visible(run)
    context: dict[str, Any] = {
        "run": run,
        "sync": run.sync,
        "chosen": form.chosen,
        "visible": shown,
        "kept_until": kept_until(run),
        "active": run.status in Run.ACTIVE,
        "again": may_write(request.user, run.sync) and not (run.dry_run or run.sync.archived_at),
    }
    if shown == "shown":
        try:
            context |= _window(run, address)
        except OndatraError as error:
            context |= {"problems": [str(error)], "rows": [], "total": 0}
    if not request.headers.get("HX-Request"):  # the page behind the window
        context["behind"] = run_page.context(request, run)
    return render(request, "records/records.html", context, status=410 if shown == "expired" else 200)


def _window(run: Run, address: dict[str, Any]) -> dict[str, Any]:
    files = files_of(run)
    tally = record_files.tally(files)
    groups = list(MessageGroup.objects.filter(run=run).order_by("-rows")[:MOST_REASONS])
    filter = _found_by(run, files, filter_of(run, address))
    total = record_files.count(files, filter)
    pages = max(1, -(-total // SIZE))
    number = min(int(address.get("page") or 1), pages)
    page = record_files.page(files, filter, offset=(number - 1) * SIZE, limit=SIZE) if total else Page()
    kept = {k: v for k, v in address.items() if k not in ("page", "record")}
    here = {**kept, "page": number} if number > 1 else kept
    chosen = str(address.get("record") or "")
    return {
        "statuses": [c for c in _statuses(tally, kept) if c.value != "planned" or run.dry_run],
        "operations": _operations(tally, kept),
        "reasons": groups,
        "rows": [_row(r, place, here, chosen) for r, place in zip(page.rows, page.places, strict=True)],
        "problems": page.problems,
        "total": total,
        "first": (number - 1) * SIZE + 1,
        "last": (number - 1) * SIZE + len(page.rows),
        "number": number,
        "pages": pages,
        "newer": _query(kept, page=number - 1),
        "next": _query(kept, page=number + 1),
        "downloads": [(label, _query(kept, format=name)) for name, label in FORMATS],
        "query": record_files.duckdb_query(files, filter) if files else "",
        "export": _query(kept),
        "at_once": total <= MOST_AT_ONCE,
        "sample": SAMPLE,
        "formats": FORMATS,
        "exports": run.export_set.exclude(status="removed").order_by("-pk")[:5],
        "panel": panel_of(run, files, chosen) if chosen else None,
        "close_record": _query(here),
        "filtered": bool(kept),
        "kept": kept,
        "reason": str(address.get("reason") or ""),
    }


def filter_of(run: Run, address: dict[str, Any]) -> Filter:
    """What the address asks for."""
    pattern = None
    if address.get("reason"):
        pattern = MessageGroup.objects.filter(run=run, pk=address["reason"]).values_list("pattern", flat=True).first()
    return Filter(
        status=address.get("status") or None,
        operation=address.get("operation") or None,
        change_type=address.get("change_type") or None,
        prefix=address.get("q") or None,
        pattern=pattern,
    )


def _found_by(run: Run, files: Sequence[FileRef], filter: Filter) -> Filter:
    """A search takes the beginning of an identifier; where nothing begins so, the whole of one, plain or masked."""
    if filter.prefix and not record_files.page(files, filter, limit=1).rows:
        return with_masked(replace(filter, prefix=None, identifier=filter.prefix), run)
    return filter


def chosen_filter(run: Run, address: dict[str, Any]) -> Filter:
    """What the address selects, as the window shows it. Raises OndatraError."""
    return _found_by(run, files_of(run), filter_of(run, address))


def _row(record: dict[str, Any], place: str, here: dict[str, Any], chosen: str) -> dict[str, Any]:
    return {**record, "shown": record_status(record), "query": _query(here, record=place), "selected": place == chosen}


def _statuses(tally: Any, kept: dict[str, Any]) -> list[Choice]:
    chosen = kept.get("status", "")
    counts = {
        value: sum(n for (status, _, _), n in tally.items() if not value or status in FILE_STATUSES[value])
        for value, _ in STATUSES
    }
    return [
        Choice(value, label, counts[value], value == chosen, _query({**kept, "status": value}))
        for value, label in STATUSES
    ]


def _operations(tally: Any, kept: dict[str, Any]) -> list[str]:
    return sorted({operation for _, operation, _ in tally} | ({kept["operation"]} if kept.get("operation") else set()))


def _query(kept: dict[str, Any], **more: Any) -> str:
    return "?" + urlencode({k: v for k, v in {**kept, **more}.items() if v not in ("", None)})


@require_safe
@login_required
def download(request: SignedIn, run_id: int) -> HttpResponse | FileResponse:
    """What the filter selects, whole; written beside and then sent, so that a store that fails half way sends nothing
    cut off."""
    run = run_for(request.user, run_id)
    form = DownloadForm(request.GET)
    if not form.is_valid() and "format" in form.errors:
        return HttpResponseBadRequest(
            f"format is one of {', '.join(name for name, _ in FORMATS)}", content_type="text/plain"
        )
    if records_visible(run) != "shown":
        return HttpResponse(
            f"the records of run {run.pk} have expired or never were", status=410, content_type="text/plain"
        )
    format = form.cleaned_data["format"]
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- the response closes it
    try:
        files = files_of(run)
        chosen = _found_by(run, files, filter_of(run, form.chosen))
        if not form.chosen["sample"] and (total := record_files.count(files, chosen)) > MOST_AT_ONCE:
            file.close()
            return HttpResponse(
                f"{total:,} rows are too many to come at once: start an export in the window of records, or add "
                f"sample=1 "
                f"for the first {SAMPLE:,}",
                status=413,
                content_type="text/plain",
            )
        exports.export(files, chosen, format, file, most=SAMPLE if form.chosen["sample"] else None)  # type: ignore[arg-type]
    except OndatraError as error:
        file.close()
        return HttpResponse(str(error), status=503, content_type="text/plain")
    file.seek(0)
    status = f".{form.chosen['status']}" if form.chosen["status"] else ""
    return FileResponse(
        file, as_attachment=True, filename=f"{run.sync.name}.run{run.pk}{status}.{format}", content_type=TYPES[format]
    )


@require_safe
@login_required
def find(request: SignedIn) -> HttpResponse:
    """One thing, looked for in the kept records of every sync."""
    q = request.GET.get("q", "")[:2_000]
    problems: list[str] = []
    rows = found_records(request.user, q, problems) if q else []
    return render(request, "records/find.html", {"q": q, "rows": rows, "problems": problems})
