"""What goes out: chunks, what a run delivers of them, jobs at destinations, and the files that are left of it."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q

from ondatra_web import models
from ondatra_web.admin.columns import counts, link, size, told
from ondatra_web.admin.looking import Look, is_id, of_run, of_sync

A_RUN = "A run’s id"


class OfARun(Look):
    search_help_text = A_RUN

    def found(self, term: str) -> Q | None:
        return of_run(term)


@admin.register(models.Chunk)
class ChunkAdmin(Look):
    sync = link("sync", "sync")
    staged_by = link("staged_by", "staged by")
    waits = (
        told("due_rows", "due"),
        told("rejected_rows", "refused"),
        told("blocked_rows", "in open jobs"),
    )
    list_display = ("id", sync, staged_by, "phase", told("rows", "rows"), told("records", "records"), *waits)
    list_select_related = ("sync", "staged_by__sync")
    search_help_text = "A chunk’s id, or the whole name of a sync"
    columns = (
        "id",
        sync,
        staged_by,
        "url",
        "phase",
        told("rows", "rows"),
        told("records", "records"),
        counts("change_counts", "changes"),
        "table_version",
        *waits,
    )
    below = (("Deliveries", "delivery", "chunk"), ("Jobs", "job", "chunk"))

    def found(self, term: str) -> Q | None:
        return Q(pk=int(term)) if is_id(term) else of_sync(term)


@admin.register(models.Delivery)
class DeliveryAdmin(OfARun):
    run = link("run", "run")
    chunk = link("chunk", "chunk")
    owner = link("owner", "claimed by")
    list_display = (
        "id",
        run,
        chunk,
        "ordinal",
        "status",
        owner,
        "lease",
        told("records", "records"),
        counts("counts", "ended as"),
    )
    list_select_related = ("run__sync", "chunk", "owner")
    columns = (
        "id",
        run,
        chunk,
        "ordinal",
        "phase",
        "carried",
        "status",
        owner,
        "lease",
        told("rows", "rows"),
        told("records", "records"),
        counts("counts", "ended as"),
        counts("files", "numbers of its files"),
        "first_call",
    )
    below = (
        ("Record files", "recordfile", "delivery"),
        ("Request files", "apicallfile", "delivery"),
        ("Jobs", "job", "delivery"),
    )


@admin.register(models.Job)
class JobAdmin(OfARun):
    """Without its reference, which a push function may make of anything."""

    sync = link("sync", "sync")
    run = link("run", "run")
    chunk = link("chunk", "chunk")
    list_display = ("id", sync, run, chunk, "batch_number", "created_at", "ended_at")
    list_select_related = ("sync", "run__sync", "chunk")
    columns = ("id", sync, run, link("delivery", "delivery"), chunk, "batch_number", "created_at", "ended_at")


@admin.register(models.RecordFile)
class RecordFileAdmin(OfARun):
    """Without its first and last identifier."""

    run = link("run", "run")
    delivery = link("delivery", "delivery")
    list_display = (
        "__str__",
        run,
        delivery,
        told("rows", "rows"),
        size("size", "size"),
        counts("counts", "by status"),
        "written_at",
    )
    list_select_related = ("run__sync", "delivery")
    columns = (
        "batch_type",
        "number",
        "url",
        run,
        delivery,
        told("rows", "rows"),
        size("size", "size"),
        counts("counts", "by status"),
        "written_at",
        "log_batch",
    )


@admin.register(models.ApiCallFile)
class ApiCallFileAdmin(OfARun):
    run = link("run", "run")
    delivery = link("delivery", "delivery")
    list_display = ("id", run, delivery, told("calls", "requests"), "url")
    list_select_related = ("run__sync", "delivery")
    columns = ("id", run, delivery, told("calls", "requests"), "url")
