"""What answers about alerts look like. No address and no secret of a channel is in any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ondatra_web.models import Alert, AlertChannel, AlertDelivery, AlertEvent, AlertKind, AlertRule, Sync

STATES = ["open", "acknowledged", "resolved"]


class AlertShape(serializers.ModelSerializer[Alert]):
    alert_type = serializers.ChoiceField(source="kind", choices=AlertKind.choices)
    state = serializers.ChoiceField(choices=STATES)
    message = serializers.CharField(source="summary")
    sync = serializers.CharField(source="sync.name")
    sync_run_id = serializers.IntegerField(source="run_id", allow_null=True)
    workspace = serializers.CharField(source="sync.workspace.slug")
    acknowledged_by = serializers.CharField(source="acknowledged_by.username", allow_null=True, default=None)
    details = serializers.DictField(help_text="Counts, thresholds, and patterns of reasons.")

    class Meta:
        model = Alert
        fields: tuple[str, ...] = (
            "id", "alert_type", "level", "state", "message", "sync_id", "sync", "workspace", "sync_run_id", "rule_id",
            "since", "opened_at", "changed_at", "resolved_at", "acknowledged_at", "acknowledged_by", "details",
        )  # fmt: skip


class EventShape(serializers.ModelSerializer[AlertEvent]):
    message = serializers.CharField(source="summary")
    sync_run_id = serializers.IntegerField(source="run_id", allow_null=True)
    by = serializers.CharField(source="user.username", allow_null=True, default=None)

    class Meta:
        model = AlertEvent
        fields = ("id", "what", "level", "at", "message", "sync_run_id", "by")


class OneAlertShape(AlertShape):
    events = EventShape(source="alertevent_set", many=True)

    class Meta(AlertShape.Meta):
        fields = (*AlertShape.Meta.fields, "events")


class RuleShape(serializers.ModelSerializer[AlertRule]):
    alert_type = serializers.ChoiceField(source="kind", choices=AlertKind.choices)
    quiet_from = serializers.CharField(allow_null=True)
    quiet_until = serializers.CharField(allow_null=True)
    channel_ids = serializers.SerializerMethodField(help_text="Empty: every channel of the organization.")

    class Meta:
        model = AlertRule
        fields = (
            "id", "alert_type", "workspace_id", "sync_id", "tag", "enabled", "unit", "measure", "warning", "critical",
            "recovery", "quiet_from", "quiet_until", "quiet_zone", "quiet_critical", "channel_ids", "changed_at",
        )  # fmt: skip

    def get_channel_ids(self, rule: AlertRule) -> list[int]:
        return [channel.pk for channel in rule.channels.all()]


class ChannelShape(serializers.ModelSerializer[AlertChannel]):
    recipients = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = AlertChannel
        fields = ("id", "name", "kind", "recipients", "host", "level", "enabled", "created_at")


class NewChannelShape(ChannelShape):
    secret = serializers.CharField(help_text="What signs the messages of a webhook: said this once.", default="")

    class Meta(ChannelShape.Meta):
        fields = (*ChannelShape.Meta.fields, "secret")  # type: ignore[assignment]


class TryShape(serializers.Serializer[Mapping[str, Any]]):
    at = serializers.CharField()
    seconds = serializers.FloatField()
    status = serializers.IntegerField(allow_null=True, help_text="of HTTP")
    said = serializers.CharField(allow_blank=True)


class DeliveryShape(serializers.ModelSerializer[AlertDelivery]):
    alert_id = serializers.SerializerMethodField(help_text="null: a test")
    tries = serializers.SerializerMethodField()

    class Meta:
        model = AlertDelivery
        fields = ("id", "channel_id", "alert_id", "status", "created_at", "next_at", "ended_at", "attempts", "tries")

    def get_alert_id(self, delivery: AlertDelivery) -> int | None:
        return delivery.event.alert_id if delivery.event else None

    @extend_schema_field(TryShape(many=True))
    def get_tries(self, delivery: AlertDelivery) -> list[dict[str, Any]]:
        return delivery.tries


class ScheduleShape(serializers.ModelSerializer[Sync]):
    sync_id = serializers.IntegerField(source="pk")
    sync = serializers.CharField(source="name")
    workspace = serializers.CharField(source="workspace.slug")
    paused = serializers.SerializerMethodField()

    class Meta:
        model = Sync
        fields = ("sync_id", "sync", "workspace", "schedule", "next_run_at", "paused", "paused_at")

    def get_paused(self, sync: Sync) -> bool:
        return sync.paused_at is not None
