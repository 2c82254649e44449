"""A run that the command line asks for, what is printed of its report, and the code that it ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings

from ondatra_web import audit
from ondatra_web.durations import duration
from ondatra_web.models import Workspace
from ondatra_web.runs import execution, report, undelivered
from ondatra_web.runs.asking import Report
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.watch import Watch
from ondatra_web.tracking import records

ROWS = (
    "source",
    "unchanged",
    "invalid",
    "changed",
    "deleted",
    "carried",
    "succeeded",
    "rejected",
    "retrying",
    "not_tried",
)


def made(
    workspace: Workspace, names: Sequence[str], options: Mapping[str, Any], watch: Watch, *, as_json: bool
) -> Report:
    """A run that a person asked the command line for, written down and made by this process."""
    asked = {"models": names, **options}
    patiently(audit.write)(workspace.organization_id, None, "run", workspace.slug, asked)
    walk = execution.run_here(workspace, names, options, watch=watch)
    return of(report.of_walk(walk), as_json=as_json)


def of(said: dict[str, Any], *, as_json: bool) -> Report:
    """Nothing is put together for a person where a program reads."""
    return Report(said, "" if as_json else _text(said), report.exit_code(said))


def _text(said: dict[str, Any]) -> str:
    """The report for a person below the lines of its models: one block a sync."""
    lines: list[str] = []
    for sync in said["syncs"]:
        counts = sync["counts"]
        shown = ", ".join(
            f"{name.replace('_', ' ')} {counts[name]:,}"
            for name in ROWS
            if counts[name] or name in ("source", "succeeded")
        )
        lines += ["", f"{sync['sync']}: run {sync['run_id']} {sync['status'].replace('_', ' ')}", f"    {shown}"]
        if sync["seconds"] is not None:
            lines.append(f"    took {duration(timedelta(seconds=sync['seconds']))}, with what was built for it")
        if sync["error"]:
            lines.append(f"    {sync['error']}")
        lines += [f"    {line}" for line in _asked(sync.get("first_requests") or {})]
        if counts["rejected"] or counts["retrying"] or counts["invalid"]:
            lines += [f"    {line}" for line in records.reasons(sync["run_id"], 3)]
            why = settings.ONDATRA.command(f"records {sync['run_id']} --status rejected")
            lines.append(f"    why: {why}")
        if sync["refused"]:
            lines.append(f"    {undelivered.told(sync['sync'], sync['refused'])}")
    return "\n".join(lines)


def _asked(said: dict[str, Any]) -> list[str]:
    """The first requests of a dry run."""
    lines = []
    for made in said.get("requests", ()):
        headers = ", ".join(f"{name}: {value}" for name, value in made["headers"].items() if name != "Accept")
        lines += [
            f"would send {made['method']} {made['url']}  {headers}".rstrip(),
            *([f"    {made['body'][:2_000]}"] if made["body"] else []),
        ]
    return [*lines, *said.get("said", ())]
