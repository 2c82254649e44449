"""Whole results as a file: started from the window of records, watched here, fetched from here."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ondatra_web.access import OPERATE, PAYLOADS, export_for, run_for
from ondatra_web.forms import FORMATS, DownloadForm
from ondatra_web.models import Export
from ondatra_web.tracking import asked, exporting, reads
from ondatra_web.tracking.records import visible
from ondatra_web.views.downloads import TYPES, gone, refused
from ondatra_web.views.filters import chosen_of
from ondatra_web.views.shown import SignedIn
from runtime.errors import OndatraError

TONES = {Export.Status.DONE: "ok", Export.Status.FAILED: "bad", Export.Status.WORKING: "live"}


@require_POST
@login_required
def start(request: SignedIn, run_id: int) -> HttpResponse:
    """The filter is the window's address; the format comes with the button."""
    run = run_for(request.user, run_id, PAYLOADS)
    form = DownloadForm({**request.GET.dict(), "format": request.POST.get("format", "")})
    try:
        if visible(run) != "shown":
            return gone(run)
        made = exporting.start(
            run, asked.asked(run, chosen_of(run, form.chosen)), str(form.chosen["format"]), user=request.user
        )
    except OndatraError as error:
        messages.error(request, str(error))
        return redirect("run", run_id)
    return redirect("export", made.pk)


@require_safe
@login_required
def export(request: SignedIn, export_id: int) -> HttpResponse:
    return render(request, "records/export.html", _context(export_for(request.user, export_id)))


@require_safe
@login_required
def live(request: SignedIn, export_id: int) -> HttpResponse:
    return render(request, "records/_export_progress.html", _context(export_for(request.user, export_id)))


def _context(found: Export) -> dict[str, object]:
    return {
        "export": found,
        "run": found.run,
        "sync": found.run.sync,
        "label": dict(FORMATS)[found.format],
        "tone": TONES.get(Export.Status(found.status), ""),
        "active": found.status in Export.OPEN,
        "kept_until": found.ended_at + exporting.KEPT if found.ended_at else None,
        "name": exporting.name_of(found),
        "filters": [(name.replace("_", " "), value) for name, value in found.filter.items()],
    }


@require_safe
@login_required
def file(request: SignedIn, export_id: int) -> HttpResponse | FileResponse:
    found = export_for(request.user, export_id)
    place = exporting.fetched(found)
    if visible(found.run) != "shown" or found.status == Export.Status.REMOVED:
        return refused(410, f"the file of export {found.pk} is not kept any more")
    if place is None:
        return refused(404, f"export {found.pk} has no file: it is {found.status}")
    reads.of_export(request.user, found)
    return FileResponse(
        place.open("rb"), as_attachment=True, filename=exporting.name_of(found), content_type=TYPES[found.format]
    )


@require_POST
@login_required
def cancel(request: SignedIn, export_id: int) -> HttpResponse:
    exporting.cancel(export_for(request.user, export_id, OPERATE), user=request.user)
    return redirect("export", export_id)
