"""`manage.py records RUN`: the records of a run, as a table or in a format that other programs read; `records SYNC
--undelivered`: those that are not at the destination, over all runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.core.management.base import CommandParser

from ondatra_web.management.commands._filters import add_filter, given
from ondatra_web.management.commands._runs import RunCommand, sync_named
from ondatra_web.management.terminal import live
from ondatra_web.models import Run
from ondatra_web.runs import undelivered
from ondatra_web.runs.undelivered import Undelivered
from ondatra_web.tracking import asked, reads
from ondatra_web.tracking import records as web_records
from runtime.errors import ConfigError, StoreError
from runtime.records import exports, query
from runtime.records.filter import FileRef, Filter

MOST_TABLE_ROWS = 1_000


class Command(RunCommand):
    help = "Shows or exports the records of a run, or what of a sync was refused and is not at the destination."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="a run's id; with --undelivered a sync's name")
        parser.add_argument(
            "--undelivered", action="store_true", help="what is refused and not at the destination, over all runs"
        )
        parser.add_argument("--workspace", default="default", metavar="SLUG", help="of the sync")
        add_filter(parser)
        parser.add_argument("--format", choices=["table", *exports.FORMATS], default="table")
        parser.add_argument("--output", metavar="FILE", help="a file to write to; parquet needs one")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["undelivered"]:
            raise SystemExit(self._undelivered(options))
        if not query.is_row(options["run"]):
            self.stderr.write(
                f"{options['run']} is no run's id; `{settings.ONDATRA.command('runs')}` lists them, and a sync's name "
                f"goes with --undelivered"
            )
            raise SystemExit(2)
        super().handle(*args, **{**options, "run": int(options["run"])})

    def _undelivered(self, options: dict[str, Any]) -> int:
        """A line for each record, however many: JSON lines with --format json."""
        try:
            sync = sync_named(options["run"], options["workspace"])
            rows = 0
            for row in undelivered.of_sync(sync):
                rows += 1
                if options["format"] == "json":
                    self.stdout.write(json.dumps(vars(row), ensure_ascii=False))
                else:
                    self.stdout.write(_line(row))
            reads.of_sync(None, "read_undelivered", sync, None, rows)
        except ConfigError as error:
            self.stderr.write(str(error))
            return 2
        except StoreError as error:
            self.stderr.write(str(error))
            return 1
        return 0

    def act(self, run: Run, options: dict[str, Any]) -> int:
        if options["format"] == "parquet" and not options["output"]:
            raise ConfigError("parquet is no text: name a file with --output FILE")
        try:
            chosen = web_records.with_masked(asked.asked(run, given(options)), run)
            files = web_records.asked_files(run, chosen)
            problems: list[str] = []
            if options["format"] == "table":
                rows = self._table(files, chosen, options["output"])
            else:
                shown = live("rows written") if options["output"] else nullcontext()
                with self._sink(options["output"]) as sink, shown as line:
                    rows = exports.export(
                        files,
                        chosen,
                        options["format"],
                        sink,
                        bom=False,
                        problems=problems,
                        progress=line.reached if line else lambda rows: None,
                    )
            reads.of_run(None, "read_records", run, chosen, rows, format=options["format"])
            for problem in problems:
                self.stderr.write(problem)
            if problems:
                return 1  # everything else was written
        except StoreError as error:
            self.stderr.write(str(error))
            return 1
        return 0

    @contextmanager
    def _sink(self, output: str | None) -> Iterator[BinaryIO]:
        if output:
            if not Path(output).parent.is_dir():
                raise ConfigError(f"{output} cannot be written: there is no such folder")
            part = Path(f"{output}.part")  # a broken-off export leaves no file that looks whole
            try:
                with part.open("wb") as file:
                    yield file
                part.replace(output)
            except OSError as error:
                raise ConfigError(f"{output} cannot be written: {error.strerror or error}") from None
            finally:
                part.unlink(missing_ok=True)
            return
        sys.stdout.flush()
        yield cast(BinaryIO, _Text(self.stdout))
        sys.stdout.flush()

    def _table(self, files: Sequence[FileRef], chosen: Filter, output: str | None) -> int:
        """How many rows it showed."""
        with live("reading the records"):
            page = query.page(files, chosen, limit=MOST_TABLE_ROWS)
            total = query.count(files, chosen) if page.next else 0
        lines = [f"{'identifier':<28} {'status':<10} {'operation':<9} reason"]
        lines += [
            f"{_short(row['identifier'], 28):<28} {_short(row['status'], 10):<10} {_short(row['operation'], 9):<9} "
            f"{_short(row['status_message'], 200)}"
            for row in page.rows
        ]
        if page.next:
            lines.append(f"… the first {MOST_TABLE_ROWS:,} of {total:,}; --format csv, json or parquet gives all")
        text = "\n".join(line.rstrip() for line in lines) + "\n"
        if output:
            Path(output).write_text(text, encoding="utf-8")
        else:
            self.stdout.write(text, ending="")
        for problem in page.problems:
            self.stderr.write(problem)
        return len(page.rows)


def _line(row: Undelivered) -> str:
    if row.run_id is None:
        return f"row {row.row_id}: its record is past its retention; --full sends the row again"
    return (
        f"{_short(row.identifier, 28):<28} run {row.run_id:<7} {_short(row.operation, 9):<9} {_short(row.reason, 200)}"
    )


class _Text:
    """Bytes to a text stream, for a caller that captures what a command prints."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, data: bytes) -> int:
        self.stream.write(bytes(data).decode("utf-8", "replace"), ending="")
        return len(data)


def _short(value: object, most: int) -> str:
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
