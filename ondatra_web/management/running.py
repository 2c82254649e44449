"""What `run` takes and tells, whoever makes the run. One that a worker makes needs no Django here, whose set-up takes
half a second."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

from ondatra_web.management.terminal import Live, Shown
from ondatra_web.runs import asking
from ondatra_web.runs.asking import Report
from ondatra_web.runs.watch import Watch
from runtime import config
from runtime.errors import ConfigError, OndatraError, ProjectError

#: What a run is asked for.
CHOSEN = ("full", "baseline", "dry_run", "limit", "rebuild")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--workspace", default="default", metavar="SLUG")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--full", action="store_true", help="send every current row again")
    parser.add_argument("--baseline", action="store_true", help="take the current state as delivered; send nothing")
    parser.add_argument("--dry-run", action="store_true", help="send nothing, change nothing; show what would be sent")
    parser.add_argument("--limit", type=int, metavar="N", help="send N records; the rest stays due")
    parser.add_argument("--here", action="store_true", help="in this process, though a worker of `ondatra up` is there")
    parser.add_argument("--rebuild", action="store_true", help="ignore what is remembered of unchanged inputs")


def problem(options: Mapping[str, Any]) -> str:
    """What is wrong with options that were understood; empty where nothing is."""
    if options["full"] and options["baseline"]:
        return "--full sends everything again and --baseline sends nothing: give one of them"
    if options["limit"] is not None and options["limit"] < 1:
        return f"--limit {options['limit']}: a positive number of records is expected"
    return ""


def chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in CHOSEN if options[name]}


def told(
    make: Callable[[Watch], Report], as_json: bool, *, out: Callable[[str], object], error: Callable[[str], object]
) -> int:
    """Makes the run and tells a person or a program of it; the exit code."""
    try:
        with nullcontext() if as_json else Live() as line:
            report = make(Shown(line) if line else Watch())
    except (ProjectError, ConfigError) as wrong:
        if as_json:
            problems = [vars(p) for p in wrong.problems] if isinstance(wrong, ProjectError) else []
            failed = {"status": "failed", "error": str(wrong), "problems": problems, "models": [], "syncs": []}
            out(json.dumps(failed))
        error(str(wrong))
        return 2
    except OndatraError as wrong:
        error(str(wrong))
        return 1
    out(json.dumps(report.said, ensure_ascii=False) if as_json else report.text)
    return report.code


# by a worker


def handed_over(argv: Sequence[str], own: config.Config) -> int | None:
    """The exit code of the run that these words ask for, made by a worker; None where this process has to see to it,
    or to say what is wrong."""
    options = _understood(argv)
    if options is None or options["here"] or problem(options) or own.wrong or config.wrong_of_django():
        return None
    as_json = options["json"]
    with asking.asked(own, options["workspace"], options["models"], chosen(options), as_json=as_json) as wire:
        return told(wire.hear, as_json, out=print, error=_error) if wire else None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _understood(argv: Sequence[str]) -> dict[str, Any] | None:
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    try:
        options, more = parser.parse_known_args(argv)
    except (ValueError, argparse.ArgumentError):
        return None
    return None if more else vars(options)


def _error(text: str) -> None:
    if sys.stderr.isatty():  # as Django's commands show it
        from django.core.management.color import color_style

        text = color_style().ERROR(text)
    print(text, file=sys.stderr, flush=True)
