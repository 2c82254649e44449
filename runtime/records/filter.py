"""What is looked for in record files: as SQL, and by what the database counted of each file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.errors import ConfigError
from runtime.records import searching
from runtime.records.duck import quoted
from runtime.store.base import Store
from runtime.tracking import messages

#: What a person may call a status -> the words in the files.
STATUSES: dict[str, tuple[str, ...]] = {
    "success": ("succeeded",),
    "succeeded": ("succeeded",),
    "rejected": ("rejected",),
    "invalid": ("NULL", "DUPLICATE"),
    "null": ("NULL",),
    "duplicate": ("DUPLICATE",),
    "planned": ("planned",),
    "waiting": ("waiting",),
}
#: What push() answered for a row -> the statuses that its record may have.
OUTCOMES: dict[str, tuple[str, ...]] = {
    "ok": ("succeeded",),
    "warn": ("succeeded",),
    "error": ("rejected",),
    "reject": ("rejected",),
    "invalid": ("NULL", "DUPLICATE"),
}
SHOWN = {
    "succeeded": "Success",
    "rejected": "Rejected",
    "NULL": "Invalid",
    "DUPLICATE": "Invalid",
    "planned": "Planned",
    "waiting": "Waiting",
}


@dataclass(frozen=True)
class FileRef:
    """A record file as the database knows it. Without `counts` or `operations` it is opened to be counted."""

    store: Store
    path: str
    rows: int
    counts: Mapping[str, int] | None = None
    operations: Mapping[str, int] | None = None  # "status|operation|change_type" -> rows
    min_identifier: str | None = None
    max_identifier: str | None = None
    run_id: int | None = None

    @property
    def name(self) -> str:
        """`records_updated.3`: unique within a run."""
        return self.path.rsplit("/", 1)[-1].removesuffix(".parquet")


@dataclass(frozen=True)
class Filter:
    """What is looked for; what is None does not matter. `message` is a substring without case in which `%` stands for
    anything, `pattern` a message group, `identifiers` exact ones (plain and masked forms), `prefix` the beginning of
    one, `batch` the number of a push call. `text` is looked for in any case `within` an identifier, message or payload;
    `how` it is compared, see `searching`."""

    status: str | None = None
    operation: str | None = None
    change_type: str | None = None
    message: str | None = None
    identifier: str | None = None
    prefix: str | None = None
    pattern: str | None = None
    identifiers: tuple[str, ...] = ()
    outcome: str | None = None
    attempt: int | None = None
    batch: int | None = None
    text: str | None = None
    within: str | None = None
    how: str | None = None

    @property
    def statuses(self) -> tuple[str, ...]:
        """As in the files; empty for all. Raises ConfigError."""
        if not self.status:
            return OUTCOMES.get(self.outcome or "", ())
        try:
            return STATUSES[self.status.lower()]
        except KeyError:
            raise ConfigError(f"there is no status {self.status!r}; there are: {', '.join(STATUSES)}") from None

    @property
    def exact(self) -> tuple[str, ...]:
        return (*self.identifiers, *(() if self.identifier is None else (self.identifier,)))

    @property
    def by_counts(self) -> bool:
        """Whether the files' counts alone tell how many rows match."""
        asked = self.exact or self.prefix or self.message or self.text or self.outcome or self.attempt or self.batch
        return not asked and self.pattern is None

    @property
    def searched(self) -> tuple[str, str, str]:
        """Text, column and comparison of a search; the text is empty where there is none."""
        within = self.within or "identifier"
        return self.text or "", within, self.how or searching.usual(within)

    def matches(self, file: FileRef) -> int | None:
        """How many rows of the file match, where its counts tell."""
        if self.operation or self.change_type:
            if file.operations is None:
                return None
            split = [(k.split("|"), n) for k, n in file.operations.items()]
            return sum(
                n
                for (status, operation, change), n in split
                if (not self.statuses or status in self.statuses)
                and self.operation in (None, "", operation)
                and self.change_type in (None, "", change)
            )
        if not self.statuses:
            return file.rows
        return None if file.counts is None else sum(file.counts.get(s, 0) for s in self.statuses)

    def may_hold(self, file: FileRef) -> bool:
        """Whether it is worth opening the file."""
        if self.matches(file) == 0:
            return False
        low, high = file.min_identifier, file.max_identifier
        if low is None or high is None:
            return True
        if self.exact and not any(low <= text <= high for text in self.exact):
            return False
        text, within, how = self.searched
        if text and within == "identifier" and not searching.may_lie_between(text, how, low, high):
            return False
        return not self.prefix or (
            low[: len(self.prefix)] <= self.prefix <= high[: len(self.prefix)] if self.prefix else True
        )

    @property
    def sampled(self) -> str | None:
        """The column of which a sample makes the condition cheaper."""
        text, within, _ = self.searched
        if text and within != "identifier":
            return searching.COLUMNS[within]
        return "status_message" if self.message and "%" not in self.message else None

    def where(self, sample: Sequence[str] = ()) -> tuple[str, dict[str, Any]]:
        """The condition with its bound values."""
        parts: list[str] = []
        values: dict[str, Any] = {}

        def add(sql: str, **bound: Any) -> None:
            parts.append(sql)
            values.update(bound)

        if self.statuses:
            add(
                f"status IN ({', '.join(map(quoted, self.statuses))})"
            )  # our own words, so that files are pruned by them
        if self.operation:
            add("operation = $operation", operation=self.operation)
        if self.change_type:
            add("change_type = $change_type", change_type=self.change_type)
        if self.outcome:
            add("outcome = $outcome", outcome=self.outcome)
        if self.attempt:
            add("attempt = $attempt", attempt=self.attempt)
        if self.batch:
            add("batch_number = $batch", batch=self.batch)
        if len(self.exact) == 1:
            add("identifier = $identifier", identifier=self.exact[0])
        elif self.exact:
            add("list_contains($identifiers, identifier)", identifiers=list(self.exact))
        if self.prefix:
            add("starts_with(identifier, $prefix)", prefix=self.prefix)
        if self.text:
            sql, bound = searching.condition(*self.searched, sample)
            add(sql, **bound)
        if self.message and "%" not in self.message:
            sql, bound = searching.anywhere(self.message, "status_message", () if self.text else sample, name="message")
            add(sql, **bound)
        elif self.message:
            add(
                r"status_message ILIKE $message ESCAPE '\'",
                message="%" + re.sub(r"([\\_])", r"\\\1", self.message) + "%",
            )
        if self.pattern is not None:
            same = messages.has_pattern("status_message", self.pattern, "record_payload")
            add(
                rf"status_message LIKE $like ESCAPE '\' AND {same}",
                like=messages.like(self.pattern),  # costs little, and passes few that the pattern does not
                pattern=self.pattern,
            )
        return " AND ".join(parts) or "true", values
