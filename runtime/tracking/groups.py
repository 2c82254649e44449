"""The messages of a record file, counted by what they have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from runtime.tracking import messages

#: Status and pattern.
_Key = tuple[str, str]
#: Patterns of one file that are kept apart; the rest is counted together.
MOST_GROUPS = 1_000
OTHER = "‹other messages›"
#: What the database remembers of a message is shortened; the file has more of it.
LONGEST_SAMPLE = 2_000


@dataclass(frozen=True)
class MessageGroup:
    """Rows of one status whose messages have the same pattern. Of them `due` are records that are due again, and
    `beside` rows that only accompany a record."""

    status: str
    pattern: str
    rows: int
    sample_message: str
    sample_identifier: str | None
    due: int = 0
    beside: int = 0


def message_groups(table: pa.Table, beside: pa.Array | None = None) -> list[MessageGroup]:
    """The groups of the records that have a message, most rows first. `beside` masks the rows that only accompany a
    record."""
    if table.column("status_message").null_count == table.num_rows:
        return []
    counted = (
        _counted(table, beside)
        .group_by(["status", "pattern"], use_threads=False)
        .aggregate(
            [
                ("status_message", "first"),
                ("identifier", "first", pc.ScalarAggregateOptions(skip_nulls=False)),
                ("identifier", "count", pc.CountOptions(mode="all")),
                ("due", "sum"),
                ("beside", "sum"),
            ]
        )
    )

    rows, due, accompany = Counter[_Key](), Counter[_Key](), Counter[_Key]()
    samples: dict[_Key, tuple[str, str | None]] = {}
    for entry in counted.to_pylist():
        group = entry["status"], entry["pattern"] if len(rows) < MOST_GROUPS else OTHER
        rows[group] += entry["identifier_count"]
        due[group] += entry["due_sum"]
        accompany[group] += entry["beside_sum"]
        samples.setdefault(group, (_sample(entry["status_message_first"]) or "", _sample(entry["identifier_first"])))

    return [MessageGroup(*key, n, *samples[key], due[key], accompany[key]) for key, n in rows.most_common()]


def _counted(table: pa.Table, beside: pa.Array | None) -> pa.Table:
    """The rows that have a message, with its pattern; `due` and `beside` are 1 where a row counts as such."""
    beside = pa.repeat(False, table.num_rows) if beside is None else beside
    outcome = table.column("outcome").cast(pa.string())
    due = pc.fill_null(pc.and_(pc.equal(outcome, "error"), pc.invert(beside)), False)
    said = table.select(["status", "status_message", "identifier"])
    said = said.append_column("due", due.cast(pa.int64())).append_column("beside", beside.cast(pa.int64()))
    told = table.column("status_message").is_valid()
    said, payloads = said.filter(told), table.column("record_payload").filter(told)
    patterns = messages.patterns(said.column("status_message").combine_chunks(), payloads.combine_chunks())
    return said.append_column("pattern", patterns)


def _sample(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= LONGEST_SAMPLE else text[: LONGEST_SAMPLE - 1] + "…"
