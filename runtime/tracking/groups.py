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
    """The groups of the records that have a message, most rows first; a message that many rows share is looked at once.
    `beside` masks the rows that only accompany a record."""
    if table.column("status_message").null_count == table.num_rows:
        return []
    distinct = (
        _counted(table, beside)
        .group_by(["status", "status_message"], use_threads=False)
        .aggregate(
            [
                ("identifier", "first"),
                ("identifier", "count", pc.CountOptions(mode="all")),
                ("due", "sum"),
                ("beside", "sum"),
            ]
        )
    )
    patterns = messages.patterns(distinct.column("status_message").combine_chunks()).to_pylist()

    rows, due, accompany = Counter[_Key](), Counter[_Key](), Counter[_Key]()
    samples: dict[_Key, tuple[str, str | None]] = {}
    for entry, pattern in zip(distinct.to_pylist(), patterns, strict=True):
        group = entry["status"], pattern
        if group not in rows and len(rows) >= MOST_GROUPS:
            group = entry["status"], OTHER
        rows[group] += entry["identifier_count"]
        due[group] += entry["due_sum"]
        accompany[group] += entry["beside_sum"]
        samples.setdefault(group, (_sample(entry["status_message"]) or "", _sample(entry["identifier_first"])))

    return [MessageGroup(*key, n, *samples[key], due[key], accompany[key]) for key, n in rows.most_common()]


def _counted(table: pa.Table, beside: pa.Array | None) -> pa.Table:
    """What groups are made of, of the rows that have a message: `due` and `beside` are 1 where a row counts as such."""
    beside = pa.repeat(False, table.num_rows) if beside is None else beside
    outcome = table.column("outcome").cast(pa.string())
    due = pc.fill_null(pc.and_(pc.equal(outcome, "error"), pc.invert(beside)), False)
    said = table.select(["status", "status_message", "identifier"])
    said = said.append_column("due", due.cast(pa.int64())).append_column("beside", beside.cast(pa.int64()))
    return said.filter(pc.is_valid(table.column("status_message")))


def _sample(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= LONGEST_SAMPLE else text[: LONGEST_SAMPLE - 1] + "…"
