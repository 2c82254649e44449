"""The messages of a record file, counted by what they have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from runtime.tracking import messages

#: Patterns of one file that are kept apart; the rest is counted together.
MOST_GROUPS = 1_000
OTHER = "‹other messages›"
#: What the database remembers of a message is shortened; the file has more of it.
LONGEST_SAMPLE = 2_000


@dataclass(frozen=True)
class MessageGroup:
    """Rows of one status whose messages have the same pattern."""

    status: str
    pattern: str
    rows: int
    sample_message: str
    sample_identifier: str | None


def message_groups(said: pa.Table) -> list[MessageGroup]:
    """The groups of the rows that have a message; a message that many rows share is looked at once."""
    if not said.num_rows:
        return []
    distinct = (
        said.select(["status", "status_message", "identifier"])
        .group_by(["status", "status_message"], use_threads=False)
        .aggregate([("identifier", "first"), ("identifier", "count", pc.CountOptions(mode="all"))])
    )
    patterns = messages.patterns(distinct.column("status_message").combine_chunks()).to_pylist()
    rows: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], tuple[str, str | None]] = {}

    for entry, pattern in zip(distinct.to_pylist(), patterns, strict=True):
        group = entry["status"], pattern
        if group not in rows and len(rows) >= MOST_GROUPS:
            group = entry["status"], OTHER
        rows[group] += entry["identifier_count"]
        samples.setdefault(group, (_sample(entry["status_message"]) or "", _sample(entry["identifier_first"])))

    return [MessageGroup(status, said, n, *samples[status, said]) for (status, said), n in rows.most_common()]


def _sample(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= LONGEST_SAMPLE else text[: LONGEST_SAMPLE - 1] + "…"
