"""Records as CSV, JSON, JSON lines or Parquet: file after file, a batch at a time, however many there are."""

from __future__ import annotations

import contextlib
import io
import queue
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import duckdb
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from runtime.errors import ConfigError, StoreError
from runtime.records import duck, formulas
from runtime.records.filter import FileRef, Filter
from runtime.records.opened import NAMES, opened, roots
from runtime.tracking.schema import MOMENT, SCHEMA

Format = Literal["csv", "json", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
BATCH_ROWS = 50_000
_MOMENT_TEXT = "'%Y-%m-%dT%H:%M:%S.%fZ'"
_BOM = b"\xef\xbb\xbf"


def export(
    files: Sequence[FileRef],
    filter: Filter | None,
    format: Format,
    sink: BinaryIO,
    *,
    most: int | None = None,
    bom: bool = True,
    progress: Callable[[int], None] = lambda rows: None,
    problems: list[str] | None = None,
) -> int:
    """Writes what the filter selects, in bounded memory; `progress` is told the rows so far. How many rows it wrote.

    A file that cannot be read is left out and told in `problems`; where that is None, StoreError is raised once all
    else is written.
    """
    if format not in FORMATS:
        raise ConfigError(f"there is no format {format!r}; there are: {', '.join(FORMATS)}")
    chosen = filter or Filter()
    missed: list[str] = []
    batches = _ahead(selected(files, chosen, _expressions(format), most, problems=missed))
    writer = {"csv": _csv, "json": _json, "jsonl": _json_lines, "parquet": _parquet}[format]
    if format == "csv" and bom:
        sink.write(_BOM)
    total = 0
    for rows in writer(batches, sink):
        total += rows
        progress(total)
    if problems is None and missed:
        raise StoreError(_left_out(missed))
    (problems if problems is not None else []).extend(missed)
    return total


def selected(
    files: Sequence[FileRef],
    chosen: Filter,
    expressions: str | Callable[[Path], str],
    most: int | None = None,
    *,
    problems: list[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """What the filter selects, in the order of the files; `expressions` are SQL over the columns of
    a file, `identifier, row_id`. Problems as in `export`."""
    where, values = chosen.where()
    left = most
    candidates = [f for f in files if chosen.may_hold(f)]
    if not candidates:
        return
    missed: list[str] = []
    with duck.cursor(roots(candidates), seconds=0) as one:
        for file in candidates:  # one at a time: a bounded local copy holds for any size
            limit = "" if left is None else f" LIMIT {left}"
            for part in opened([file], missed):
                bound: Mapping[str, object] = {k: v for k, v in values.items() if f"${k}" in where} | part.values
                picked = expressions if isinstance(expressions, str) else expressions(part.places[0])
                sql = f"SELECT {picked} FROM ({part.source()}) WHERE {where}{limit}"
                for batch in _batches(one, sql, bound, file, missed):
                    yield batch
                    left = None if left is None else left - batch.num_rows
            if left is not None and left <= 0:
                break
    if problems is None and missed:
        raise StoreError(_left_out(missed))
    (problems if problems is not None else []).extend(missed)


def _batches(
    one: duck.Cursor, sql: str, bound: Mapping[str, object], file: FileRef, missed: list[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of one file; where it is damaged, those before the damage."""
    rows = 0
    try:
        for batch in one.sql(sql, params=bound).to_arrow_reader(BATCH_ROWS):
            rows += batch.num_rows
            yield batch
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # the reader raises DuckDB's errors as Arrow's
        missed.append(f"{duck.unreadable(file.name, error)}; {rows:,} rows before that were taken")


def _ahead(batches: Iterator[pa.RecordBatch], most: int = 2) -> Iterator[pa.RecordBatch]:
    """The same batches; a thread reads at most so many while earlier ones are written."""
    ready: queue.Queue[Any] = queue.Queue(most)
    over = threading.Event()

    def read() -> None:
        end: Any = None
        try:
            for batch in batches:
                ready.put(batch)
                if over.is_set():
                    return
        except BaseException as error:
            end = error
        ready.put(end)

    reader = threading.Thread(target=read, name="export", daemon=True)
    reader.start()
    try:
        while isinstance(found := ready.get(), pa.RecordBatch):
            yield found
        if found is not None:
            raise found
    finally:
        over.set()
        while reader.is_alive():  # whoever stops in the middle lets the reader end too
            with contextlib.suppress(queue.Empty):
                ready.get(timeout=0.05)


def _left_out(missed: Sequence[str]) -> str:
    more = f"; and {len(missed) - 5:,} more" if len(missed) > 5 else ""
    return "; ".join(missed[:5]) + f"{more}: everything else was exported"


# the way over microseconds costs half of a conversion between time zones
_MOMENTS = {
    name: f"strftime(make_timestamp(epoch_us({name})), {_MOMENT_TEXT})"
    for name in NAMES
    if SCHEMA.field(name).type == MOMENT
}


def _expressions(format: Format) -> Callable[[Path], str]:
    """What is selected of a file."""
    if format == "parquet":
        return lambda place: ", ".join(NAMES)
    if format == "csv":
        return lambda place: ", ".join(f"{_cell(name, formulas.without(place))} AS {name}" for name in NAMES)
    fields = ", ".join(f"'{n}': {_MOMENTS.get(n, n)}" for n in NAMES)
    return lambda place: f"CAST(to_json({{{fields}}}) AS VARCHAR) AS line"


def _cell(name: str, harmless: Collection[str]) -> str:
    if name in _MOMENTS:
        return _MOMENTS[name]
    is_text = SCHEMA.field(name).type == pa.string()
    return formulas.safe(name) if is_text and name not in harmless else name


# formats


def _csv(batches: Iterator[pa.RecordBatch], sink: BinaryIO) -> Iterator[int]:
    sink.write(",".join(NAMES).encode() + b"\r\n")
    for batch in batches:
        text = io.BytesIO()
        csv.write_csv(batch, text, csv.WriteOptions(include_header=False, quoting_style="needed", eol="\r\n"))
        sink.write(text.getbuffer())
        yield batch.num_rows


def _lines(batch: pa.RecordBatch, between: str) -> bytes:
    return between.join(batch.column(0).to_pylist()).encode("utf-8", "replace")


def _json(batches: Iterator[pa.RecordBatch], sink: BinaryIO) -> Iterator[int]:
    sink.write(b"[")
    first = True
    for batch in batches:
        if batch.num_rows:
            sink.write((b"\n" if first else b",\n") + _lines(batch, ",\n"))
            first = False
        yield batch.num_rows
    sink.write(b"\n]\n")


def _json_lines(batches: Iterator[pa.RecordBatch], sink: BinaryIO) -> Iterator[int]:
    for batch in batches:
        if batch.num_rows:
            sink.write(_lines(batch, "\n") + b"\n")
        yield batch.num_rows


def _parquet(batches: Iterator[pa.RecordBatch], sink: BinaryIO) -> Iterator[int]:
    plain = ("identifier", "record_payload", "previous_payload", "row_id")
    with pq.ParquetWriter(
        sink, SCHEMA, compression="zstd", use_dictionary=[n for n in NAMES if n not in plain]
    ) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(SCHEMA), row_group_size=BATCH_ROWS)
            yield batch.num_rows
