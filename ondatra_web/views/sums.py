"""Where every row of a run went, as equations that close."""

from __future__ import annotations

from dataclasses import dataclass

from ondatra_web.models import Run

#: Counts that people call by other words.
WORDS = {"carried": "carried over", "retrying": "due again", "not_tried": "not tried"}


@dataclass(frozen=True)
class Sums:
    """The equations of a run's counts, written out, and whether they hold."""

    closes: bool
    lines: tuple[str, ...]


def sums(run: Run) -> Sums:
    equations = (
        _equation(run, "source", "source rows", ("unchanged", "invalid", "changed")),
        _equation(run, "planned", "to send", ("changed", "deleted", "carried")),
        _equation(run, "planned", "", ("succeeded", "rejected", "retrying", "not_tried")),
    )
    return Sums(all(closes for closes, _ in equations), tuple(line for _, line in equations))


def _equation(run: Run, whole: str, label: str, parts: tuple[str, ...]) -> tuple[bool, str]:
    """Whether the parts make the whole, and both sides as text."""
    counts = run.counts
    right = " + ".join(f"{counts[part]:,} {WORDS.get(part, part)}" for part in parts)
    return counts[whole] == sum(counts[part] for part in parts), f"{counts[whole]:,} {label}".strip() + f" = {right}"


def planned_of(run: Run) -> str:
    """What the rows to send are made of: `352 changed, 4 deleted, 3 carried over`."""
    parts = [f"{run.changed:,} changed"]
    if run.deleted:
        parts.append(f"{run.deleted:,} deleted")
    if run.carried:
        parts.append(f"{run.carried:,} carried over")

    return ", ".join(parts)
