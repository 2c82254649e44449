"""Syncs."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html

from ondatra_web import models
from ondatra_web.admin.columns import link, told
from ondatra_web.admin.looking import Look, is_id
from ondatra_web.admin.sync_deeds import OF_A_SYNC

Empty = admin.EmptyFieldListFilter


@admin.register(models.Sync)
class SyncAdmin(Look):
    workspace = link("workspace", "workspace")
    organization = link("workspace.organization", "organization")
    list_display = ("name", "id", workspace, organization, "kind", "destination_type", "state", "next_run_at")
    list_select_related = ("workspace__organization",)
    list_filter = (("paused_at", Empty), ("archived_at", Empty))
    search_help_text = "Part of a name, or an id"
    columns = (
        "id",
        "name",
        "description",
        "workspace",
        organization,
        "kind",
        told("key", "key"),
        "function",
        "destination_type",
        "destination_object",
        told("tags", "tags"),
        "schedule",
        "next_run_at",
        "paused_at",
        "archived_at",
        "retention_days",
        "mark",
        told("source_rows", "source rows"),
        told("invalid_rows", "invalid rows"),
        "finalize_due",
        "created_at",
        "page",
    )
    below = (
        ("Runs", "run", "sync"),
        ("Chunks", "chunk", "sync"),
        ("Jobs", "job", "sync"),
    )
    deeds = OF_A_SYNC

    def found(self, term: str) -> Q | None:
        named = Q(name__icontains=term)
        return named | Q(pk=int(term)) if is_id(term) else named

    @admin.display(description="state")
    def state(self, sync: models.Sync) -> str:
        return "archived" if sync.archived_at else "paused" if sync.paused_at else "active"

    @admin.display(description="in the product")
    def page(self, sync: models.Sync) -> str:
        return format_html('<a href="{}">page of the sync</a>', reverse("sync", args=[sync.pk]))
