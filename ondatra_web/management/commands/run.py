"""`manage.py run`: build, deliver and wait, in one process."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from ondatra_web import audit, projects
from ondatra_web.durations import duration
from ondatra_web.management.terminal import Live, Shown
from ondatra_web.models import Workspace
from ondatra_web.runs import engine, execution, handover, report, undelivered
from ondatra_web.runs.patience import patiently
from ondatra_web.runs.watch import Watch
from ondatra_web.tracking import records
from runtime.errors import ConfigError, OndatraError, ProjectError

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


class Command(BaseCommand):
    help = "Runs the models (and what they need) in order, delivers what changed, waits."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("models", nargs="*", metavar="MODEL")
        parser.add_argument("--workspace", default="default", metavar="SLUG")
        parser.add_argument("--json", action="store_true", help="print one object")
        parser.add_argument("--full", action="store_true", help="send every current row again")
        parser.add_argument("--baseline", action="store_true", help="take the current state as delivered; send nothing")
        parser.add_argument(
            "--dry-run", action="store_true", help="send nothing, change nothing; show what would be sent"
        )
        parser.add_argument("--limit", type=int, metavar="N", help="send N records; the rest stays due")
        parser.add_argument(
            "--here", action="store_true", help="in this process, though a worker of `ondatra up` is there"
        )
        parser.add_argument("--rebuild", action="store_true", help="ignore what is remembered of unchanged inputs")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["full"] and options["baseline"]:
            self.stderr.write("--full sends everything again and --baseline sends nothing: give one of them")
            raise SystemExit(2)
        if options["limit"] is not None and options["limit"] < 1:
            self.stderr.write(f"--limit {options['limit']}: a positive number of records is expected")
            raise SystemExit(2)
        told = {k: options[k] for k in ("full", "baseline", "dry_run", "limit", "rebuild") if options[k]}
        try:
            workspace = projects.workspace_of(options["workspace"])
            patiently(audit.write)(
                workspace.organization_id, None, "run", workspace.slug, {"models": options["models"], **told}
            )
            with Live() if not options["json"] else nullcontext() as line:
                said = _made(workspace, options, told, Shown(line) if line else Watch())
        except (ProjectError, ConfigError) as error:
            if options["json"]:
                problems = [vars(p) for p in error.problems] if isinstance(error, ProjectError) else []
                self.stdout.write(
                    json.dumps(
                        {"status": "failed", "error": str(error), "problems": problems, "models": [], "syncs": []}
                    )
                )
            self.stderr.write(str(error))
            raise SystemExit(2) from None
        except OndatraError as error:
            self.stderr.write(str(error))
            raise SystemExit(1) from None
        self.stdout.write(json.dumps(said, ensure_ascii=False) if options["json"] else text(said))
        raise SystemExit(report.exit_code(said))


def _made(workspace: Workspace, options: dict[str, Any], told: dict[str, Any], watch: Watch) -> dict[str, Any]:
    """The report of the run, by a worker that has an engine or by this process."""
    said = None if options["here"] else handover.ask(workspace, options["models"], told, watch)
    if said is None:
        engine.expect(workspace)
    return said or report.of_walk(execution.run_here(workspace, options["models"], told, watch=watch))


def text(said: dict[str, Any]) -> str:
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
