"""The processes of the install."""

from __future__ import annotations

from django.contrib import admin

from ondatra_web import models, workers
from ondatra_web.admin.looking import Look


@admin.register(models.Worker)
class WorkerAdmin(Look):
    list_display = ("id", "kind", "host", "pid", "alive", "started_at", "heartbeat_at", "ended_at")
    list_filter = (("ended_at", admin.EmptyFieldListFilter),)
    columns = ("id", "kind", "host", "pid", "alive", "lock", "started_at", "heartbeat_at", "ended_at")
    below = (("Runs that it holds", "run", "owner"), ("Deliveries that it claimed", "delivery", "owner"))

    @admin.display(description="alive", boolean=True)
    def alive(self, worker: models.Worker) -> bool:
        return not workers.is_dead(worker)
