"""Processes, and what they count together."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Worker(models.Model):
    """A process. It holds an OS lock on `lock` for life: a free lock proves that it is dead."""

    kind = models.CharField(max_length=20)  # run, pipeline, push, alerts, scheduler; several with blanks between
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    lock = models.CharField(
        max_length=1000, blank=True
    )  # a file's path, or empty for a PostgreSQL advisory lock on the id
    started_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.host}/{self.pid}"


class RateLimitHit(models.Model):
    """One HTTP request counted against a rate limit, where there is no Redis."""

    key = models.CharField(max_length=200)
    at = models.FloatField()  # Unix seconds

    class Meta:
        indexes = [models.Index(fields=["key", "at"])]

    def __str__(self) -> str:
        return self.key
