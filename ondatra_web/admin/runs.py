"""Runs, and what they say."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import admin
from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html

from ondatra_web import models
from ondatra_web.admin.columns import link, size, told
from ondatra_web.admin.looking import Look, is_id, of_run, of_sync
from ondatra_web.admin.run_deeds import OF_A_RUN


@admin.register(models.Run)
class RunAdmin(Look):
    sync = link("sync", "sync")
    workspace = link("sync.workspace", "workspace")
    organization = link("sync.workspace.organization", "organization")
    list_display = (
        "id",
        sync,
        workspace,
        "status",
        "trigger",
        "created_at",
        "took",
        told("planned", "planned"),
        told("rejected", "rejected"),
        told("retrying", "due again"),
        "tracking",
    )
    list_select_related = ("sync__workspace",)
    list_filter = ("status",)
    search_help_text = "A run’s id, or the whole name of a sync"
    columns = (
        "id",
        sync,
        workspace,
        organization,
        "status",
        "error",
        "trigger",
        "started_by",
        "cancelled_by",
        "created_at",
        "started_at",
        "ended_at",
        "step",
        "dry_run",
        "full",
        "staged",
        "confirmed_as",
        "owner",
        "lease",
        "tracking",
        "store_url",
        "rows_expired_at",
        "table_version",
        *(told(n, n.replace("_", " ")) for n in ("source_count", "unchanged", "invalid", "changed", "deleted")),
        *(told(n, n.replace("_", " ")) for n in ("carried", "planned", "succeeded", "warned", "rejected", "retrying")),
        told("not_tried", "not tried"),
        told("companions_due", "old images that are due"),
        "finalized",
        "page",
    )
    below = (
        ("Deliveries", "delivery", "run"),
        ("Jobs", "job", "run"),
        ("Record files", "recordfile", "run"),
        ("Request files", "apicallfile", "run"),
        ("Message groups", "messagegroup", "run"),
        ("Exports", "export", "run"),
    )
    deeds = OF_A_RUN

    def found(self, term: str) -> Q | None:
        return Q(pk=int(term)) if is_id(term) else of_sync(term)

    @admin.display(description="took")
    def took(self, run: models.Run) -> str:
        if run.started_at is None or run.ended_at is None:
            return "–"
        return str(timedelta(seconds=round((run.ended_at - run.started_at).total_seconds())))

    @admin.display(description="in the product")
    def page(self, run: models.Run) -> str:
        return format_html('<a href="{}">page of the run</a>, with its log and records', reverse("run", args=[run.pk]))


@admin.register(models.MessageGroup)
class MessageGroupAdmin(Look):
    """Patterns without the values of rows; a sample of each is on the page of the run."""

    run = link("run", "run")
    first = link("first_run", "first seen in")
    list_display = ("pattern", "status", told("rows", "rows"), told("due", "due again"), run, first)
    list_select_related = ("run__sync", "first_run__sync")
    search_help_text = "A run’s id"
    columns = (
        "pattern",
        "status",
        told("rows", "rows"),
        told("due", "due again"),
        told("beside", "beside"),
        run,
        first,
    )

    def found(self, term: str) -> Q | None:
        return of_run(term)


@admin.register(models.Export)
class ExportAdmin(Look):
    """Without its filter, which may name records."""

    run = link("run", "run")
    list_display = (
        "id",
        run,
        "format",
        "status",
        told("rows", "rows"),
        size("size", "size"),
        "created_by",
        "created_at",
        "ended_at",
    )
    list_select_related = ("run__sync", "created_by")
    search_help_text = "A run’s id"
    columns = (
        "id",
        run,
        "format",
        "status",
        "error",
        told("wanted", "wanted"),
        told("rows", "rows"),
        size("size", "size"),
        "created_by",
        "created_at",
        "started_at",
        "ended_at",
        "owner",
        "lease",
    )

    def found(self, term: str) -> Q | None:
        return of_run(term)
