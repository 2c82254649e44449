"""The rate limits of a workspace: in Redis where there is one, else in the database, kept between runs either way."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.db import transaction

from ondatra_web.models import RateLimitHit, Workspace
from ondatra_web.runs.patience import patiently
from runtime.push.http.rate_limits import LONGEST_PAUSE, Limiter, RedisLimiter
from runtime.threads import wait

#: Until when a budget rests, and when it was told to.
PAUSE, ASKED = "pause:", "paused:"


def limiter(workspace: Workspace) -> Limiter:
    """The budgets of one workspace, shared by all its workers."""
    prefix = f"{workspace.pk}:"
    if settings.ONDATRA.redis_url:
        return RedisLimiter(settings.ONDATRA.redis_url, prefix)
    return DatabaseLimiter(prefix)


class DatabaseLimiter:
    """runtime.push.http.rate_limits.Limiter as rows: one a request within the window, and one that says until when to
    pause."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def take(self, key: str, n: int, seconds: float, cancelled: Callable[[], bool]) -> None:
        """Waits until fewer than n requests of this budget lie within the last `seconds`. Raises Cancelled."""
        while (left := self._try(self.prefix + key, n, seconds)) > 0:
            wait(left, cancelled, "its rate limit")

    @patiently
    def pause(self, key: str, until: float) -> None:
        """No request of this budget before that Unix time, or for LONGEST_PAUSE at most."""
        name, now = self.prefix + key, time.time()
        until = min(until, now + LONGEST_PAUSE)
        with transaction.atomic():
            RateLimitHit.objects.filter(key=PAUSE + name, at__lt=until).delete()
            RateLimitHit.objects.filter(key=ASKED + name).delete()
            RateLimitHit.objects.bulk_create(
                [RateLimitHit(key=PAUSE + name, at=until), RateLimitHit(key=ASKED + name, at=now)]
            )

    @patiently
    def _try(self, key: str, n: int, seconds: float) -> float:
        """Takes one request of the budget, or says how long to wait before asking again."""
        now = time.time()
        with transaction.atomic():
            RateLimitHit.objects.filter(key=key, at__lte=now - seconds).delete()
            if RateLimitHit.objects.filter(
                key=ASKED + key, at__gt=now + 1
            ).exists():  # the clock was set back since: nobody knows how long to wait
                RateLimitHit.objects.filter(key__in=(PAUSE + key, ASKED + key)).delete()
            RateLimitHit.objects.filter(key=PAUSE + key, at__gt=now + LONGEST_PAUSE).update(at=now + LONGEST_PAUSE)
            paused = (
                RateLimitHit.objects.filter(key=PAUSE + key, at__gt=now)
                .order_by("-at")
                .values_list("at", flat=True)
                .first()
            )
            if paused:
                return float(paused - now)
            # a clock that was set back must not block the budget for longer than its window
            hits = list(
                RateLimitHit.objects.filter(key=key, at__lte=now + seconds).order_by("at").values_list("at", flat=True)
            )
            if len(hits) >= n:
                return float(max(hits[len(hits) - n] + seconds - now, 0.001))
            RateLimitHit.objects.create(key=key, at=now)
        return 0.0
