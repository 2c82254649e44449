"""Runs of syncs, and what they said."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from ondatra_web.models.buckets import Bucket
from ondatra_web.models.processes import Worker
from ondatra_web.models.syncs import Sync

COUNTS = (
    "source",
    "unchanged",
    "invalid",
    "changed",
    "deleted",
    "carried",
    "planned",
    "succeeded",
    "warned",
    "rejected",
    "retrying",
    "not_tried",
)


#: Databases use the index of such a condition only for questions that ask just so.
PENDING = Q(tracking="pending")
#: Runs that have ended and of which alerts do not know yet.
UNJUDGED = Q(judged=False, ended_at__isnull=False)


class Run(models.Model):
    """One execution of one sync; its id is [SYNC_RUN_ID]."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        WORKING = "working"
        HELD = "held"
        CANCELING = "canceling"
        COMPLETED = "completed"
        COMPLETED_WITH_REJECTS = "completed_with_rejects"
        FAILED = "failed"
        CANCELLED = "cancelled"
        SKIPPED = "skipped"

    ACTIVE = (Status.QUEUED, Status.WORKING, Status.CANCELING)
    #: Of a sync at most one run is so.
    AT_WORK = (Status.WORKING, Status.CANCELING)

    sync = models.ForeignKey(Sync, models.CASCADE)
    status = models.CharField(max_length=30, choices=Status.choices, default=Status.QUEUED)
    trigger = models.CharField(max_length=20, default="command")  # command, page, schedule, api, retry, confirm
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    started_with = models.CharField(max_length=200, blank=True)  # by what: a token, a schedule's text, a system's user
    cancelled_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    failed = models.BooleanField(default=False)  # it ends as failed, whatever its counts say
    error = models.TextField(blank=True)  # why, for people; of a held or skipped run as well
    confirmed_as = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")  # goes on as
    step = models.CharField(max_length=10, blank=True)  # build, changes, push, finish
    step_times = models.JSONField(default=dict)  # step -> [start, end] as ISO texts
    options = models.JSONField(default=dict)  # full, baseline, dry_run, limit, rebuild, retry_of, …
    dry_run = models.BooleanField(default=False)
    full = models.BooleanField(default=False)
    staged = models.BooleanField(default=False)  # the mark moved: its chunks stand in Delivery
    idempotency_key = models.CharField(max_length=200, blank=True)  # of the API call that started it
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, blank=True, related_name="+")
    lease = models.IntegerField(default=0)  # grows at each take-over; writes under an old one fail
    failed_in_row = models.IntegerField(default=0)
    finalized = models.BooleanField(default=False)
    tracking = models.CharField(max_length=10, blank=True)  # written, pending; empty while the run goes on
    store_url = models.CharField(max_length=1000, blank=True)
    bucket = models.ForeignKey(Bucket, models.RESTRICT, null=True, blank=True)  # null: the install's own store
    metadata = models.JSONField(default=dict)  # what metadata.json holds
    rules = models.JSONField(default=dict)  # what delivery needs of the model, as it was staged
    table_version = models.BigIntegerField(null=True)
    source_count = models.BigIntegerField(default=0)
    unchanged = models.BigIntegerField(default=0)
    invalid = models.BigIntegerField(default=0)
    changed = models.BigIntegerField(default=0)
    deleted = models.BigIntegerField(default=0)
    carried = models.BigIntegerField(default=0)
    planned = models.BigIntegerField(default=0)
    succeeded = models.BigIntegerField(default=0)
    warned = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    retrying = models.BigIntegerField(default=0)
    not_tried = models.BigIntegerField(default=0)
    companions_due = models.BigIntegerField(
        default=0
    )  # old images that ended in error: not counted, but the run is not complete
    push_ms = models.BigIntegerField(default=0)  # time spent in push(), summed over calls
    http_ms = models.BigIntegerField(default=0)  # of it waiting for the destination
    rows_expired_at = models.DateTimeField(null=True, blank=True)  # the retention removed its records
    judged = models.BooleanField(default=False)  # alerts know how it ended

    class Meta:
        indexes = [
            models.Index(fields=["sync", "-id"]),
            models.Index(fields=["status"]),
            models.Index(fields=["id"], condition=UNJUDGED, name="run_unjudged"),
            models.Index(fields=["sync"], condition=PENDING, name="run_pending"),
        ]
        constraints = [
            # One run of a sync works at a time, whatever starts it.
            models.UniqueConstraint(
                fields=["sync"], condition=Q(status__in=["working", "canceling"]), name="one_working_run"
            ),
            models.UniqueConstraint(
                fields=["sync", "idempotency_key"], condition=~Q(idempotency_key=""), name="one_run_a_key"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.sync}"

    @property
    def starter(self) -> str:
        """Who or what started it: `ada`, `ada, token airflow`, `schedule every 6h`, `root (command line)`."""
        if self.trigger == "schedule":
            return f"schedule {self.started_with}".strip()
        person = self.started_by.get_username() if self.started_by else ""
        return ", ".join(filter(None, (person, self.started_with))) or self.trigger

    @property
    def counts(self) -> dict[str, int]:
        return {name: getattr(self, "source_count" if name == "source" else name) for name in COUNTS}


class RunLog(models.Model):
    """Lines that a run said: print() of push functions, warnings."""

    run = models.ForeignKey(Run, models.CASCADE)
    at = models.DateTimeField(default=timezone.now)
    level = models.CharField(max_length=10, default="info")
    text = models.TextField()

    class Meta:
        verbose_name = "line of a log"
        verbose_name_plural = "lines of logs"

    def __str__(self) -> str:
        return self.text
