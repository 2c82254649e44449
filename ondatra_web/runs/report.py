"""What a walk came to, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ondatra_web.models import Run
from ondatra_web.runs import waiting
from ondatra_web.runs.walk import Walk
from ondatra_web.tracking import records

WORST = [
    Run.Status.COMPLETED,
    Run.Status.SKIPPED,
    Run.Status.COMPLETED_WITH_REJECTS,
    Run.Status.CANCELLED,
    Run.Status.HELD,
    Run.Status.FAILED,
]


def of_walk(walk: Walk) -> dict[str, Any]:
    """The object that `run --json` prints."""
    fresh = Run.objects.select_related("sync").in_bulk([run.pk for run in walk.runs.values()])
    refused = waiting.refused(run.sync for run in fresh.values())
    syncs = [
        of_run(fresh[run.pk], refused.get(run.sync_id, 0))
        for name in walk.project.order
        if (run := walk.runs.get(name))
    ]
    models = [
        {"model": r.model.name, "kind": r.model.kind, "action": r.action, "rows": r.rows, "error": r.error}
        for r in walk.results.values()
    ]
    statuses = [s["status"] for s in syncs] + [Run.Status.FAILED for m in models if m["action"] == "failed"]
    worst = max(statuses, key=lambda s: WORST.index(Run.Status(s)), default=Run.Status.COMPLETED)
    return {"status": str(worst), "models": models, "syncs": syncs}


def of_run(run: Run, refused: int) -> dict[str, Any]:
    """`refused` are records that any run of the sync was refused and that are not at the destination since."""
    return {
        "sync": run.sync.name,
        "sync_id": run.sync_id,
        "run_id": run.pk,
        "status": run.status,
        "error": run.error or None,
        "seconds": round((run.ended_at - run.started_at).total_seconds(), 3)
        if run.ended_at and run.started_at
        else None,
        "counts": run.counts,
        "refused": refused,
        "tracking": run.tracking or None,
        "trigger": run.trigger,
        "dry_run": run.dry_run,
        **({"first_requests": records.first_requests(run)} if run.dry_run else {}),
    }


def exit_code(said: Mapping[str, Any]) -> int:
    """0: everything due was delivered, or nothing was due."""
    good = all(
        s["status"] == Run.Status.COMPLETED or s["dry_run"] and s["status"] != Run.Status.FAILED for s in said["syncs"]
    )
    return 0 if good and not any(m["action"] in ("failed", "skipped") for m in said["models"]) else 1
