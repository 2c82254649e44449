"""The audit log of an organization, for its admins."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ondatra_web import audit
from ondatra_web.access import ADMINISTER, own_organization
from ondatra_web.forms import AuditForm
from ondatra_web.models import AuditLog, Organization
from ondatra_web.views.filters import address_of
from ondatra_web.views.shown import SignedIn

SIZE = 100
COLUMNS = ("at", "who", "action", "sync", "target", "detail")
#: A cell that begins so is computed by spreadsheets.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@require_safe
@login_required
def log(request: SignedIn) -> HttpResponse:
    """Newest first; pages go on behind a line, so that none costs more than another."""
    organization = own_organization(request, ADMINISTER)
    form = AuditForm(request.GET)
    chosen = form.chosen
    found = list(_lines(organization, chosen)[: SIZE + 1])
    kept = {name: value for name, value in chosen.items() if name != "before"}
    context = {
        "organization": organization,
        "form": form,
        "lines": [(line, audit.ACTIONS.get(line.action, line.action.replace("_", " "))) for line in found[:SIZE]],
        "members": organization.membership_set.order_by("user__username").values_list("user__username", flat=True),
        "older": address_of(kept, before=found[SIZE - 1].pk) if len(found) > SIZE else "",
        "newest": address_of(kept) if "before" in chosen else "",
        "export": address_of(kept),
        "filtered": bool(kept),
    }
    return render(request, "settings/audit.html", context)


def _lines(organization: Organization, chosen: Mapping[str, Any]) -> QuerySet[AuditLog]:
    found = AuditLog.objects.filter(organization=organization).select_related("sync").order_by("-pk")
    if who := chosen.get("who"):
        found = found.filter(who__in=[who, audit.at_the_command_line_as(who)])
    if action := chosen.get("action"):
        found = found.filter(action=action)
    if sync := chosen.get("sync"):
        found = found.filter(sync__name=sync.lower())
    if since := chosen.get("since"):
        found = found.filter(at__gte=datetime.combine(since, time(), UTC))
    if until := chosen.get("until"):
        found = found.filter(at__lt=datetime.combine(until, time(), UTC) + timedelta(days=1))
    if before := chosen.get("before"):
        found = found.filter(pk__lt=before)
    return found


@require_safe
@login_required
def export(request: SignedIn) -> StreamingHttpResponse:
    """All lines that the address selects, as CSV that spreadsheets open."""
    organization = own_organization(request, ADMINISTER)
    chosen = AuditForm(request.GET).chosen
    told = {name: str(value) for name, value in chosen.items()}
    lines = _lines(organization, chosen)
    newest = lines.values_list("pk", flat=True).first() or 0  # the line about this export is none of it
    audit.write(organization.pk, request.user, "export_audit_log", organization.name, {"rows": lines.count(), **told})
    answer = StreamingHttpResponse(_csv(lines.filter(pk__lte=newest)), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="audit-log.{timezone.now():%Y-%m-%d}.csv"'
    return answer


def _csv(lines: QuerySet[AuditLog]) -> Iterator[str]:
    writer = csv.writer(_Lines())
    yield "\ufeff" + writer.writerow(COLUMNS)
    for line in lines.iterator(chunk_size=2_000):
        sync = line.sync.name if line.sync else ""
        detail = json.dumps(line.detail, ensure_ascii=False) if line.detail else ""
        cells = (line.at.isoformat(), line.who, line.action, sync, line.target, detail)
        yield writer.writerow([f"'{cell}" if cell.startswith(FORMULA) else cell for cell in cells])


class _Lines:
    """A file whose writes are their own answer."""

    def write(self, text: str) -> str:
        return text
