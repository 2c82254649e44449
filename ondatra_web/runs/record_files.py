"""The record files of a run by name, with their message groups added up."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F, Max
from django.utils import timezone

from ondatra_web.models import ApiCallFile, Delivery, MessageGroup, RecordFile, Run
from runtime.tracking import files as tracked
from runtime.tracking import groups


def add(
    run_id: int,
    delivery_id: int | None,
    files: Sequence[tracked.WrittenFile],
    calls_file: tuple[str, int] | None = None,
) -> None:
    """Names written files, and adds up their message groups; `calls_file` is the URL of the requests' file with how
    many it holds."""
    run = Run.objects.only("sync_id").get(pk=run_id)
    for file in files:
        RecordFile.objects.get_or_create(
            run_id=run_id,
            batch_type=file.batch_type,
            number=file.number,
            defaults={
                "delivery_id": delivery_id,
                "url": file.path,
                "rows": file.rows,
                "size": file.size,
                "counts": file.counts,
                "operations": file.operations,
                "min_identifier": file.min_identifier,
                "max_identifier": file.max_identifier,
                "written_at": timezone.now(),
            },
        )
        for group in file.groups:
            _add_group(run, group)
    if calls_file:
        url, calls = calls_file
        ApiCallFile.objects.create(run_id=run_id, delivery_id=delivery_id, url=url, calls=calls)


def next_number(run_id: int, batch_type: str) -> int:
    """Should be called with the run locked: the first number of that batch type that no delivery reserved and no file
    has."""
    reserved = Delivery.objects.filter(run_id=run_id).values_list("files", flat=True)
    named = RecordFile.objects.filter(run_id=run_id, batch_type=batch_type).aggregate(n=Max("number"))["n"]
    taken = [number for files in reserved if (number := files.get(batch_type)) is not None]
    return max(taken if named is None else [*taken, named], default=-1) + 1


def _add_group(run: Run, group: groups.MessageGroup) -> None:
    pattern = group.pattern[:500]
    known, made = MessageGroup.objects.get_or_create(
        run_id=run.pk,
        status=group.status,
        pattern=pattern,
        defaults={
            "sample_message": group.sample_message,
            "sample_identifier": group.sample_identifier,
            "rows": group.rows,
            "due": group.due,
            "beside": group.beside,
            "first_run_id": _first_run(run, group.status, pattern),
        },
    )
    if not made:
        MessageGroup.objects.filter(pk=known.pk).update(
            rows=F("rows") + group.rows, due=F("due") + group.due, beside=F("beside") + group.beside
        )


def _first_run(run: Run, status: str, pattern: str) -> int:
    """The run in which this sync first said so: the newest earlier group knows it."""
    earlier = (
        MessageGroup.objects.filter(run__sync_id=run.sync_id, status=status, pattern=pattern, run_id__lt=run.pk)
        .order_by("-run_id")
        .values_list("first_run_id", flat=True)
        .first()
    )
    return earlier or run.pk
