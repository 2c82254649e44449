"""What a run left and is busy with beside its counts: chunks, files, retries, lines of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from ondatra_web.models import ApiCallFile, Delivery, RecordFile, Run, RunLog

MOST_LINES = 200
MOST_RETRIES = 10


@dataclass(frozen=True)
class Traces:
    chunks: int
    done: int
    in_flight: int
    files: int
    size: int  # bytes of the record files
    call_files: int
    folder: str  # of the record files in the store
    retries: list[Run]
    retry_of: int | None


def traces(run: Run) -> Traces:
    """The same number of questions for any run."""
    status = Delivery.Status
    chunks = Delivery.objects.filter(run=run).aggregate(
        every=Count("pk"),
        done=Count("pk", filter=Q(status__in=[status.SEALED, status.CLOSED])),
        in_flight=Count("pk", filter=Q(status=status.CLAIMED)),
    )
    files = RecordFile.objects.filter(run=run).aggregate(n=Count("pk"), size=Sum("size"))
    calls = ApiCallFile.objects.filter(run=run).count()
    place = run.sync.workspace.organization_id
    folder = f"{run.store_url}/sync_tracking_datasets/{place}/{run.sync_id}/{run.pk}" if files["n"] else ""
    again = Run.objects.filter(sync_id=run.sync_id, pk__gt=run.pk, options__retry_of=run.pk)
    return Traces(
        chunks["every"],
        chunks["done"],
        chunks["in_flight"],
        files["n"],
        files["size"] or 0,
        calls,
        folder,
        list(again.defer("metadata").order_by("pk")[:MOST_RETRIES]),
        run.options.get("retry_of"),
    )


def lines(run: Run, chosen: dict[str, Any], *, prints: bool) -> list[RunLog]:
    """The newest lines of a level and with a text; what a push function prints may be anything of its rows."""
    found: QuerySet[RunLog] = RunLog.objects.filter(run=run)
    if not prints:
        found = found.exclude(level="print")
    if chosen["level"]:
        found = found.filter(level=chosen["level"])
    if chosen["find"]:
        found = found.filter(text__icontains=chosen["find"])
    return list(found.order_by("-id")[:MOST_LINES])[::-1]
