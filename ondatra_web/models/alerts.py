"""What calls people: rules, what they found, and how it was told. Nothing here holds a payload."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from ondatra_web.models.organizations import Organization
from ondatra_web.models.runs import Run
from ondatra_web.models.syncs import Sync
from ondatra_web.models.workspaces import Workspace


class AlertKind(models.TextChoices):
    FAILURE = "failure"
    REJECTED = "rejected"
    INVALID = "invalid", "Invalid rows"
    DEVIATION = "deviation", "Row count"
    DURATION = "duration"
    LATE = "late"
    DUE = "due", "Growing due"
    HELD = "held"


class AlertLevel(models.TextChoices):
    WARNING = "warning"
    CRITICAL = "critical"


class AlertChannel(models.Model):
    """Where an organization is told of alerts. What opens the door there is sealed (`tracking.vault`)."""

    class Kind(models.TextChoices):
        EMAIL = "email", "E-mail"
        SLACK = "slack", "Slack"
        WEBHOOK = "webhook", "Webhook"

    organization = models.ForeignKey(Organization, models.CASCADE)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    recipients = models.JSONField(default=list, blank=True)  # addresses of e-mail
    url = models.TextField(blank=True, editable=False)  # sealed: that of Slack is its password
    host = models.CharField(max_length=300, blank=True)  # of the URL, for people
    secret = models.TextField(blank=True, editable=False)  # sealed: signs what a webhook is sent
    level = models.CharField(max_length=10, choices=AlertLevel.choices, default=AlertLevel.WARNING)  # from here on
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="one_channel_a_name")]

    def __str__(self) -> str:
        return self.name


class AlertRule(models.Model):
    """When people are called: for one sync, those with a tag, or (with neither) all of a workspace. Of the rules of a
    kind the narrowest holds for a sync."""

    workspace = models.ForeignKey(Workspace, models.CASCADE)
    kind = models.CharField(max_length=10, choices=AlertKind.choices)
    sync = models.ForeignKey(Sync, models.CASCADE, null=True, blank=True)
    tag = models.CharField(max_length=100, blank=True)
    enabled = models.BooleanField(default=True)
    unit = models.CharField(max_length=10)  # of the thresholds: ondatra_web.alerts.kinds says which there are
    measure = models.CharField(max_length=10, blank=True)  # what a deviation looks at
    warning = models.FloatField(null=True, blank=True)
    critical = models.FloatField(null=True, blank=True)
    recovery = models.BooleanField(default=True)  # tell of the end, too
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_until = models.TimeField(null=True, blank=True)
    quiet_zone = models.CharField(max_length=60, default="UTC")
    quiet_critical = models.BooleanField(default=False)  # critical ones wait for the morning, too
    channels = models.ManyToManyField(AlertChannel, blank=True)  # none: every one of the organization
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "tag"], condition=Q(sync=None), name="one_alert_rule_a_tag"
            ),
            models.UniqueConstraint(fields=["sync", "kind"], name="one_alert_rule_a_sync"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.scope}"

    @property
    def scope(self) -> str:
        return self.sync.name if self.sync else f"tag {self.tag}" if self.tag else "all syncs"


class Alert(models.Model):
    """One condition of one sync, from when it was found until it had ended."""

    sync = models.ForeignKey(Sync, models.CASCADE)
    kind = models.CharField(max_length=10, choices=AlertKind.choices)
    rule = models.ForeignKey(AlertRule, models.SET_NULL, null=True)
    level = models.CharField(max_length=10, choices=AlertLevel.choices)
    run = models.ForeignKey(Run, models.SET_NULL, null=True)  # the newest that shows it
    since = models.DateTimeField()  # of the condition, which may be older than the alert
    opened_at = models.DateTimeField(default=timezone.now)
    changed_at = models.DateTimeField(default=timezone.now)
    resolved_at = models.DateTimeField(null=True, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    summary = models.CharField(max_length=500)
    details = models.JSONField(default=dict)  # counts, thresholds, patterns of reasons

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sync", "kind"], condition=Q(resolved_at=None), name="one_open_alert")
        ]
        indexes = [
            models.Index(fields=["sync", "-id"]),
            models.Index(fields=["id"], condition=Q(resolved_at=None), name="alert_open"),
        ]

    def __str__(self) -> str:
        return f"alert {self.pk}"

    @property
    def state(self) -> str:
        return "resolved" if self.resolved_at else "acknowledged" if self.acknowledged_at else "open"


class AlertEvent(models.Model):
    """One change of an alert's state; what is told of it is fixed here, however late it is sent."""

    class What(models.TextChoices):
        RAISED = "raised"
        WORSE = "worse"
        BETTER = "better"
        RESOLVED = "resolved"
        ACKNOWLEDGED = "acknowledged"

    alert = models.ForeignKey(Alert, models.CASCADE)
    what = models.CharField(max_length=15, choices=What.choices)
    level = models.CharField(max_length=10, choices=AlertLevel.choices)
    run = models.ForeignKey(Run, models.SET_NULL, null=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    summary = models.CharField(max_length=500)
    details = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.what} {self.alert_id}"


class AlertDelivery(models.Model):
    """One message to one channel: what waits to be sent, and the log of what was. Without an event it is a test."""

    class Status(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"
        DROPPED = "dropped"  # over before the quiet hours were, or its channel is switched off

    channel = models.ForeignKey(AlertChannel, models.CASCADE)
    event = models.ForeignKey(AlertEvent, models.CASCADE, null=True)
    lead = models.ForeignKey("self", models.SET_NULL, null=True, blank=True)  # the message that tells of it, too
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.WAITING)
    created_at = models.DateTimeField(default=timezone.now)
    next_at = models.DateTimeField(default=timezone.now)  # not sent before; while one sends it, when another may
    quiet = models.BooleanField(default=False)  # it waits for the end of quiet hours
    attempts = models.IntegerField(default=0)
    tries = models.JSONField(default=list)  # of each attempt: at, status, said, seconds
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["channel", "event"], name="one_delivery_a_channel_and_event")]
        indexes = [
            models.Index(fields=["channel", "-id"]),
            models.Index(fields=["next_at"], condition=Q(status="waiting"), name="alert_delivery_waiting"),
        ]

    def __str__(self) -> str:
        return f"alert delivery {self.pk}"


class SyncUsual(models.Model):
    """What a sync usually does, kept small, so that a run is judged without looking through those before it."""

    sync = models.OneToOneField(Sync, models.CASCADE)
    counts = models.JSONField(default=list)  # of the last runs: [source rows, to send, deleted, seconds]
    due = models.JSONField(default=list)  # rows due after each of the last runs
    failed_in_row = models.IntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    last_began = models.DateTimeField(null=True, blank=True)  # the newest run that has ended
    schedule = models.CharField(max_length=100, blank=True)  # as it was last seen; empty while paused
    schedule_from = models.DateTimeField(null=True, blank=True)  # since when

    def __str__(self) -> str:
        return f"usual of {self.sync}"
