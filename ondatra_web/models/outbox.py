"""Chunks on their way to a destination, and what it answered."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from ondatra_web.models.processes import Worker
from ondatra_web.models.runs import Run
from ondatra_web.models.syncs import Sync

#: Chunks of which something waits. Databases use the index of that condition only for questions that ask just so.
UNDELIVERED = Q(due_rows__gt=0) | Q(rejected_rows__gt=0) | Q(blocked_rows__gt=0)


SEALED = Q(status="sealed")


class Chunk(models.Model):
    """An immutable staged file of changes, and what is still undelivered of it.

    `states` is zlib over one byte a row of the file, in its order; see `runtime.staging.states`.
    """

    sync = models.ForeignKey(Sync, models.CASCADE)
    staged_by = models.ForeignKey(Run, models.SET_NULL, null=True)
    url = models.CharField(max_length=1000)
    rows = models.IntegerField()
    records = models.IntegerField()
    phase = models.SmallIntegerField(default=1)  # 0: deletes that come before everything else
    change_counts = models.JSONField(default=dict)  # change type -> rows
    columns = models.JSONField(default=list)
    table_version = models.BigIntegerField(null=True)
    states = models.BinaryField()
    runs_failed = models.BinaryField(null=True)  # like states: runs in which the row ended in error, at most 255
    due_rows = models.IntegerField(default=0)  # untried, refused or unknown
    blocked_rows = models.IntegerField(default=0)
    rejected_rows = models.IntegerField(default=0)
    rejected_records = models.IntegerField(default=0)  # of these rows the ones that are records

    class Meta:
        indexes = [models.Index(fields=["sync", "id"], condition=UNDELIVERED, name="chunk_undelivered")]

    def __str__(self) -> str:
        return f"chunk {self.pk}"


class Delivery(models.Model):
    """What one run delivers of one chunk."""

    class Status(models.TextChoices):
        WAITING = "waiting"
        CLAIMED = "claimed"
        SEALED = "sealed"  # answers frozen, files not yet durable
        CLOSED = "closed"

    run = models.ForeignKey(Run, models.CASCADE)
    chunk = models.ForeignKey(Chunk, models.CASCADE)
    ordinal = models.IntegerField()  # order of sending within the run
    phase = models.SmallIntegerField(default=1)
    carried = models.BooleanField(default=False)
    positions = models.BinaryField(null=True)  # zlib over a bit mask of the chunk's rows; null = all
    rows = models.IntegerField()
    records = models.IntegerField()
    first_call = models.IntegerField(default=1)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.WAITING)
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, related_name="+")
    lease = models.IntegerField(default=0)
    counts = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True)  # of the sealed answers
    files = models.JSONField(default=dict)  # batch type -> number, reserved at the seal
    sealed = models.JSONField(default=dict)  # what the record files follow: tracking.info.rules_of

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["run", "status", "ordinal"]),
            models.Index(fields=["status"], condition=SEALED, name="delivery_sealed"),
        ]
        constraints = [models.UniqueConstraint(fields=["run", "chunk"], name="one_delivery_a_run_and_chunk")]

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class Answer(models.Model):
    """The answers of some push calls, kept until the record file is durable."""

    delivery = models.ForeignKey(Delivery, models.CASCADE)
    blob = models.BinaryField()  # see `runtime.delivery.answers`
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"answers {self.pk}"


class Job(models.Model):
    """An asynchronous job at the destination."""

    sync = models.ForeignKey(Sync, models.CASCADE)
    run = models.ForeignKey(Run, models.CASCADE)
    delivery = models.ForeignKey(Delivery, models.SET_NULL, null=True)
    chunk = models.ForeignKey(Chunk, models.CASCADE)
    positions = models.BinaryField()
    batch_number = models.IntegerField()
    ref = models.TextField()  # JSON, as push() answered it
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"job {self.pk}"
