"""What a filter selects, as a file that comes at once."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpResponse
from django.views.decorators.http import require_safe

from ondatra_web.access import PAYLOADS, run_for
from ondatra_web.forms import FORMATS, DownloadForm
from ondatra_web.models import Run
from ondatra_web.tracking import asked, reads
from ondatra_web.tracking.records import listed_files, visible
from ondatra_web.views.filters import chosen_of
from ondatra_web.views.shown import SignedIn
from runtime.errors import OndatraError
from runtime.records import exports
from runtime.records import query as record_files

#: More rows than this are a job with a file to fetch; a sample of them comes at once.
MOST_AT_ONCE = 50_000
SAMPLE = 1_000
TYPES = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}


@require_safe
@login_required
def download(request: SignedIn, run_id: int) -> HttpResponse | FileResponse:
    """Written beside and then sent, so that a store that fails half way sends nothing cut off."""
    run = run_for(request.user, run_id, PAYLOADS)
    form = DownloadForm(request.GET)
    if not form.is_valid() and "format" in form.errors:
        return refused(400, f"format is one of {', '.join(name for name, _ in FORMATS)}")
    if visible(run) != "shown":
        return gone(run)

    file: BinaryIO = tempfile.TemporaryFile()  # type: ignore[assignment]  # noqa: SIM115 -- the response closes it
    try:
        wrong = _write(request, run, form.chosen, file)
    except OndatraError as error:
        wrong = refused(503, str(error))
    if wrong is not None:
        file.close()
        return wrong

    file.seek(0)
    format = form.chosen["format"]
    return FileResponse(file, as_attachment=True, filename=_name(run, form.chosen), content_type=TYPES[format])


def refused(status: int, why: str) -> HttpResponse:
    """A line of text instead of a file."""
    return HttpResponse(why, status=status, content_type="text/plain")


def gone(run: Run) -> HttpResponse:
    return refused(410, f"the records of run {run.pk} have expired or never were")


def _write(request: SignedIn, run: Run, chosen: Mapping[str, Any], file: BinaryIO) -> HttpResponse | None:
    """Fills the file; an answer instead where there are too many rows. Raises OndatraError."""
    files = listed_files(run)
    filter = asked.found_by(run, files, asked.filter_of(run, chosen_of(run, chosen)))
    if not chosen["sample"] and (total := record_files.count(files, filter)) > MOST_AT_ONCE:
        return refused(
            413,
            f"{total:,} rows are too many to come at once: start an export in the window of records, or add sample=1 "
            f"for the first {SAMPLE:,}",
        )

    rows = exports.export(files, filter, chosen["format"], file, most=SAMPLE if chosen["sample"] else None)
    reads.of_run(request.user, "download_records", run, filter, rows, format=chosen["format"])
    return None


def _name(run: Run, chosen: Mapping[str, Any]) -> str:
    """`sync.contacts.run7.rejected.csv`, or `sync.contacts.run7.rejected.first-1000.csv` for the first rows of it."""
    parts = [run.sync.name, f"run{run.pk}", chosen["status"], f"first-{SAMPLE}" if chosen["sample"] else ""]
    return ".".join(part for part in (*parts, chosen["format"]) if part)
