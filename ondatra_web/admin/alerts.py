"""Alerts, the rules that open them, and the messages that were sent of them."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q

from ondatra_web import models
from ondatra_web.admin.columns import link
from ondatra_web.admin.looking import Look, is_id, of_sync

Empty = admin.EmptyFieldListFilter


@admin.register(models.Alert)
class AlertAdmin(Look):
    sync, run = link("sync", "sync"), link("run", "run")
    list_display = ("id", sync, "kind", "level", run, "since", "acknowledged_at", "resolved_at")
    list_select_related = ("sync", "run")
    list_filter = (("resolved_at", Empty),)
    search_help_text = "An id, or the name of a sync"
    columns = (
        "id",
        sync,
        "kind",
        "level",
        run,
        "summary",
        "since",
        "opened_at",
        "changed_at",
        "acknowledged_at",
        "acknowledged_by",
        "resolved_at",
    )

    def found(self, term: str) -> Q | None:
        return Q(pk=int(term)) if is_id(term) else of_sync(term)


@admin.register(models.AlertRule)
class AlertRuleAdmin(Look):
    workspace, sync = link("workspace", "workspace"), link("sync", "sync")
    list_display = ("id", workspace, sync, "tag", "kind", "enabled", "warning", "critical", "unit")
    list_select_related = ("workspace", "sync")
    columns = (*list_display, "recovery", "quiet_from", "quiet_until", "quiet_zone", "quiet_critical", "changed_at")
    below = (("Alerts", "alert", "rule"),)


@admin.register(models.AlertChannel)
class AlertChannelAdmin(Look):
    """Where messages go; the address of Slack is its password, and is not shown."""

    organization = link("organization", "organization")
    list_display = ("name", "id", organization, "kind", "host", "level", "enabled")
    list_select_related = ("organization",)
    columns = (*list_display, "created_at")
    below = (("Messages", "alertdelivery", "channel"),)


@admin.register(models.AlertDelivery)
class AlertDeliveryAdmin(Look):
    channel = link("channel", "channel")
    list_display = ("id", channel, "status", "attempts", "quiet", "created_at", "next_at", "ended_at")
    list_select_related = ("channel",)
    columns = list_display
