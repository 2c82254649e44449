"""Reads of payloads in the audit log: who, what filter, how many rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser

from ondatra_web import audit
from ondatra_web.models import AuditLog, Export, Run, Sync
from ondatra_web.tracking.records import without_plain
from runtime.custody.masks import Masker
from runtime.model import Mask
from runtime.records.filter import Filter


def of_run(
    user: AbstractBaseUser | None, action: str, run: Run, filter: Filter, rows: int | None = None, **more: Any
) -> None:
    """A read of what the filter selects of a run."""
    told = {"rows": rows, **{k: v for k, v in more.items() if v not in (None, "")}, **_kept(filter, run, rows)}
    _write(user, action, run.sync, f"run {run.pk}", {k: v for k, v in told.items() if v is not None})


def of_export(user: AbstractBaseUser | None, export: Export, **more: Any) -> None:
    """A fetch of its file; its filter was kept so that it may be told."""
    told = {"export": export.pk, "rows": export.rows, "format": export.format, **more, **export.filter}
    _write(user, "download_export", export.run.sync, f"run {export.run_id}", told)


def of_sync(
    user: AbstractBaseUser | None, action: str, sync: Sync, identifier: str | None, rows: int, **more: Any
) -> None:
    """A read over the runs of a sync. What was looked for is told by its hash: whether records hold it masked, only
    they know."""
    of_syncs(user, action, [(sync, rows)], identifier, **more)


def of_syncs(
    user: AbstractBaseUser | None, action: str, read: Iterable[tuple[Sync, int]], identifier: str | None, **more: Any
) -> None:
    """The same of several syncs, each with its rows."""
    lines = []
    for sync, rows in read:
        told = {} if identifier is None else {"identifier_hash": hashed(sync, identifier)}
        lines.append(_line(user, action, sync, sync.name, {"rows": rows, **told, **more}))
    audit.write_all(lines)


def hashed(sync: Sync, identifier: str) -> str:
    """As `@mask: …:hash` writes it."""
    return str(Masker([Mask("identifier", "hash")], sync.workspace.mask_key).value("identifier", identifier))


def _kept(filter: Filter, run: Run, rows: int | None) -> dict[str, Any]:
    """The filter as it may be kept: identifiers as the records hold them; a text that found nothing may be
    anybody's."""
    told = {name: value for name, value in asdict(without_plain(filter, run)).items() if value not in (None, ())}
    if not rows:
        for name in ("message", "prefix", "text"):
            if told.pop(name, None) is not None:
                told[f"{name}_without_a_match"] = True
    return told


def _write(user: AbstractBaseUser | None, action: str, sync: Sync, target: str, detail: dict[str, Any]) -> None:
    _line(user, action, sync, target, detail).save()


def _line(user: AbstractBaseUser | None, action: str, sync: Sync, target: str, detail: dict[str, Any]) -> AuditLog:
    return audit.line(sync.workspace.organization_id, user, action, target, detail, sync=sync)
