"""What support may do to a sync."""

from __future__ import annotations

from typing import Any

from ondatra_web import actions, models, repairs
from ondatra_web.admin.deeds import Deed, corrected
from ondatra_web.runs import waiting


def _asks_discard(sync: models.Sync) -> list[str]:
    waits = waiting.counted(sync)
    return [
        f"{waits['due']:,} records that are due, {waits['rejected']:,} refused ones and {waits['blocked']:,} in open "
        f"jobs are taken as delivered: they are not sent any more."
    ]


def _discard(sync: models.Sync, user: Any) -> str:
    dropped = actions.discard(sync, user=user)
    return f"{sum(dropped.values()):,} records that waited are discarded."


def _pause(sync: models.Sync, user: Any) -> str:
    actions.pause_sync(sync, user=user)
    return "Its schedule is paused."


def _resume(sync: models.Sync, user: Any) -> str:
    actions.resume_sync(sync, user=user)
    return "Its schedule goes on."


OF_A_SYNC = (
    Deed(
        "pause",
        "Pause its schedule",
        lambda s: ["Its schedule starts no runs until it is resumed; a person still can."],
        _pause,
        lambda s: bool(s.schedule) and s.paused_at is None,
    ),
    Deed(
        "resume",
        "Resume its schedule",
        lambda s: ["Its schedule starts runs again."],
        _resume,
        lambda s: s.paused_at,
    ),
    Deed(
        "recount",
        "Recompute what waits",
        lambda s: ["What is due, refused and blocked is added up anew from the states of its chunks."],
        lambda s, user: corrected(repairs.recount_waiting(s, user=user)),
    ),
    Deed("discard", "Discard what waits", _asks_discard, _discard),
)
