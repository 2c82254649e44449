"""What models' files say of their syncs: a row for each model with a sink, as the file describes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ondatra_web.models import Sync, Workspace
from runtime.model import Model


def save(workspace: Workspace, models: Iterable[Model]) -> None:
    """A new row where there is none; of others what takes effect at once. Another schedule begins anew."""
    known = {sync.name: sync for sync in Sync.objects.filter(workspace=workspace)}
    for model in models:
        if model.sink is None:
            continue
        told = _told(model)
        sync = known.get(model.name)
        if sync is None:
            first = {
                "kind": model.kind,
                "key": list(model.key),
                "function": model.sink.function,
                "sink_args": list(model.sink.args),
            }
            Sync.objects.get_or_create(workspace=workspace, name=model.name, defaults={**told, **first})
        elif any(getattr(sync, k) != v for k, v in told.items()):
            again = {"next_run_at": None} if sync.schedule != told["schedule"] else {}
            Sync.objects.filter(pk=sync.pk).update(**told, **again)


def _told(model: Model) -> dict[str, Any]:
    return {
        "description": model.description,
        "tags": list(model.tags),
        "schedule": model.schedule or "",
        "retention_days": model.retention,
        "archived_at": None,
    }
