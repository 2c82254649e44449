"""Syncs, and where they send to."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from ondatra_web.models.workspaces import Workspace


class Destination(models.Model):
    """Where syncs of a workspace send to; its id joins `destination_id` of metadata.json and the fact tables."""

    workspace = models.ForeignKey(Workspace, models.CASCADE)
    type = models.CharField(max_length=200)  # HubSpot

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "type"], name="one_destination_a_type")]

    def __str__(self) -> str:
        return self.type


class DestinationObject(models.Model):
    """What is kept there: `destination_object_id`."""

    destination = models.ForeignKey(Destination, models.CASCADE)
    name = models.CharField(max_length=200)  # Contact

    class Meta:
        constraints = [models.UniqueConstraint(fields=["destination", "name"], name="one_destination_object_a_name")]

    def __str__(self) -> str:
        return f"{self.destination} / {self.name}"


class Sync(models.Model):
    """A SQL model that has a sink; its id is [SYNC_ID]."""

    workspace = models.ForeignKey(Workspace, models.CASCADE)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    key = models.JSONField(default=list)
    function = models.CharField(max_length=200)
    sink_args = models.JSONField(default=list)
    destination_type = models.CharField(max_length=200, blank=True)
    destination_object = models.CharField(max_length=200, blank=True)
    destination = models.ForeignKey(DestinationObject, models.SET_NULL, null=True, blank=True)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=list, blank=True)
    schedule = models.CharField(max_length=100, blank=True)
    next_run_at = models.DateTimeField(null=True, blank=True, db_index=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    retention_days = models.IntegerField(default=14)
    columns = models.JSONField(default=list)  # of the newest chunk: [[name, duckdb type, spark type], …]
    mark = models.BigIntegerField(null=True)  # table version up to which changes became chunks
    mark_commit = models.CharField(max_length=64, blank=True)  # the id of that version's commit; empty: not known
    source_rows = models.BigIntegerField(default=0)  # of the last build; what `source` counts while nothing changed
    invalid_rows = models.BigIntegerField(default=0)
    invalid_digest = models.CharField(max_length=64, blank=True)
    invalid_run = models.ForeignKey("Run", models.SET_NULL, null=True, related_name="+")
    finalize_due = models.BooleanField(default=False)  # everything was delivered but finalize() has not ended well
    finalize_counts = models.JSONField(default=list)  # [succeeded, failed] that it is due for
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_sync_a_model")]

    def __str__(self) -> str:
        return self.name
