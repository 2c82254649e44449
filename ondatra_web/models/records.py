"""What a run leaves behind in the store, and what is made of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from ondatra_web.models.organizations import Organization
from ondatra_web.models.outbox import Delivery
from ondatra_web.models.processes import Worker
from ondatra_web.models.runs import Run


class RecordFile(models.Model):
    """One file of records in the store; named here so that no query lists a bucket."""

    run = models.ForeignKey(Run, models.CASCADE)
    delivery = models.ForeignKey(Delivery, models.SET_NULL, null=True)
    batch_type = models.CharField(max_length=20)  # records_updated, records_deleted, records_invalid
    number = models.IntegerField()
    url = models.CharField(max_length=1000)
    rows = models.IntegerField()
    size = models.BigIntegerField(default=0)
    counts = models.JSONField(default=dict)  # status -> rows
    operations = models.JSONField(default=dict)  # "status|operation|change_type" -> rows
    min_identifier = models.TextField(null=True)
    max_identifier = models.TextField(null=True)
    written_at = models.DateTimeField(default=timezone.now)
    log_batch = models.IntegerField(null=True, db_index=True)  # the commit of sync_log that it is in, or will be

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "batch_type", "number"], name="one_record_file")]

    def __str__(self) -> str:
        return f"{self.batch_type}.{self.number}"


class SyncLog(models.Model):
    """How far the table `sync_log` of an organization has got."""

    organization = models.OneToOneField(Organization, models.CASCADE)
    begun = models.IntegerField(default=0)  # the last batch of record files that was given a number
    done = models.IntegerField(default=0)  # the last one that was committed
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"sync log of {self.organization}"


class MessageGroup(models.Model):
    """Records of a run that say the same but for numbers, ids, quoted text and addresses."""

    run = models.ForeignKey(Run, models.CASCADE)
    status = models.CharField(max_length=10)  # as in the files
    pattern = models.CharField(max_length=500)
    sample_message = models.TextField()
    sample_identifier = models.TextField(null=True)
    rows = models.BigIntegerField()
    due = models.BigIntegerField(default=0)  # records among them that are due again
    beside = models.BigIntegerField(default=0)  # rows among them that only accompany a record, and are not counted
    first_run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "status", "pattern"], name="one_group")]

    def __str__(self) -> str:
        return self.pattern

    @property
    def ended(self) -> int:
        """Records that are not sent again by themselves."""
        return self.rows - self.due - self.beside


class ApiCallFile(models.Model):
    """One file of requests and answers in the store."""

    run = models.ForeignKey(Run, models.CASCADE)
    delivery = models.ForeignKey(Delivery, models.SET_NULL, null=True)
    url = models.CharField(max_length=1000)
    calls = models.IntegerField()

    class Meta:
        verbose_name = "request file"

    def __str__(self) -> str:
        return self.url


class Export(models.Model):
    """Records of a run on their way into one file to fetch."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        WORKING = "working"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        REMOVED = "removed"  # its time is over

    OPEN = (Status.QUEUED, Status.WORKING)

    run = models.ForeignKey(Run, models.CASCADE)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    format = models.CharField(max_length=10)
    filter = models.JSONField(default=dict)  # of runtime.records.filter.Filter, what is not None
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    wanted = models.BigIntegerField(null=True)  # rows that match
    rows = models.BigIntegerField(default=0)  # written so far
    size = models.BigIntegerField(default=0)
    error = models.TextField(blank=True)  # why it failed, or which files are missing from a file that is done
    owner = models.ForeignKey(Worker, models.SET_NULL, null=True, related_name="+")
    lease = models.IntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"export {self.pk}"

    @property
    def percent(self) -> int:
        return min(99, 100 * self.rows // self.wanted) if self.wanted else 0
