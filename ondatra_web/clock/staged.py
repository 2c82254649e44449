"""Staged chunks that nothing needs any more: removed once they are as old as the records of their sync are kept.

A chunk is needed while rows of it are undelivered, while its files wait for the store, and while a run that delivered
it can be sent again record by record. What a dead process staged and no chunk names goes as well, and what it
had copied there for a run. May be broken off at any place.
"""

from __future__ import annotations

import datetime as dt
import logging

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from ondatra_web.models import UNDELIVERED, Chunk, Delivery, Run, Sync
from runtime.sources import brought
from runtime.staging import chunks

log = logging.getLogger("ondatra.staged")


def remove_old() -> int:
    """One look at the staging area; how many runs' chunks are gone."""
    brought.forget_dead()
    gone = 0
    for sync in Sync.objects.all():
        folder = f"{settings.ONDATRA.staging_url.rstrip('/')}/{sync.workspace_id}/{sync.pk}"
        try:
            there = {int(name) for name in chunks.list_folders(folder) if name.isdigit()}
            for run_id in sorted(there - _needed(sync, there)):
                Chunk.objects.filter(
                    sync=sync, staged_by=run_id
                ).delete()  # first: a folder without chunks is found again
                chunks.remove(f"{folder}/{run_id}")
                gone += 1
        except OSError as error:
            log.warning("staged chunks of %s past their retention stay for now: %s", sync.name, error)
    return gone


def _needed(sync: Sync, run_ids: set[int]) -> set[int]:
    """Which of these runs staged something that is still wanted, or may be staging."""
    young = _young(sync)
    return {
        *young.filter(pk__in=run_ids).values_list("pk", flat=True),
        *Chunk.objects.filter(UNDELIVERED, sync=sync, staged_by__in=run_ids).values_list("staged_by", flat=True),
        *Delivery.objects.filter(run__in=young, chunk__staged_by__in=run_ids).values_list(
            "chunk__staged_by", flat=True
        ),
    }


def _young(sync: Sync) -> QuerySet[Run]:
    since = timezone.now() - dt.timedelta(days=sync.retention_days)
    return Run.objects.filter(Q(created_at__gt=since) | Q(status__in=Run.ACTIVE) | Q(tracking="pending"), sync=sync)
