"""Reads what push() and poll() return, by the rules of contract 2.3, Return values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from runtime.columns import CHANGE_TYPE, ROWID

#: Bytes that are kept of a message, with room for the mark and for what is said before it.
LONGEST_MESSAGE, _ROOM = 64 * 1024, 256
_MARK = re.compile(r"… \(cut: [\d,]+ bytes in all\)$")

Kind = Literal["ok", "warn", "error", "reject"]


@dataclass(frozen=True)
class Outcome:
    """What became of one row. `known` is False where the destination may have taken it although it counts as error."""

    kind: Kind
    message: str | None = None
    known: bool = True

    def __reduce__(self) -> Any:
        """OK stays the one that it is in another process, too: most rows are told by it, and by a look alone."""
        return "OK" if self is OK else (Outcome, (self.kind, self.message, self.known))


OK = Outcome("ok")


def check_statuses(value: Any, rows: Sequence[Mapping[str, Any]], function: str) -> tuple[list[Outcome], list[str]]:
    """One outcome for each row, and warnings; a broken answer makes every row an error of which nothing is known."""
    if not isinstance(value, dict):
        return _broken(rows, f"{function}() must return a dict of statuses, not {shown(value)}"), []
    keys = [f"{row[ROWID]}:{row[CHANGE_TYPE]}" for row in rows]
    missing = [key for key in keys if key not in value]
    if missing:
        return _broken(
            rows, f"{function}() gave no status for {len(missing)} of {len(keys)} rows; the first is {missing[0]}"
        ), []
    outcomes = []
    for key in keys:
        status = value[key]
        outcome = OK if status == "ok" else _read(status)
        if outcome is None:
            return _broken(
                rows,
                f"{function}() gave {key} the status {shown(status)}; allowed are ok, warn: m, error: m, reject: m",
            ), []
        outcomes.append(outcome)
    extra = len(value) - len(set(keys))
    if not extra:
        return outcomes, []
    known = set(keys)
    first = next(k for k in value if k not in known)
    return outcomes, [
        f"{function}() gave {extra} status(es) for rows that were not in its call; the first is {shown(first)}"
    ]


def check_atomic(value: Any, rows: int) -> list[Outcome]:
    """None delivered every row; any other value is a broken answer."""
    if value is None:
        return [OK] * rows
    return [Outcome("error", f"push() in atomic mode must return None, not {shown(value)}", known=False)] * rows


def _read(status: Any) -> Outcome | None:
    if not isinstance(status, str):
        return None
    kind, colon, message = status.partition(":")
    if not colon or kind not in ("warn", "error", "reject"):
        return None
    return Outcome(cast(Kind, kind), message.strip() or None)


def _broken(rows: Sequence[Any], message: str) -> list[Outcome]:
    return [Outcome("error", message, known=False)] * len(rows)


def shortened(message: str) -> str:
    """The message as it is kept; one that is cut says so at its end. Secrets should be gone from it by now, or half of
    one might stay."""
    if len(message) * 4 <= LONGEST_MESSAGE:
        return message
    data = message.encode(errors="backslashreplace")
    if len(data) <= LONGEST_MESSAGE:
        return message

    return data[: LONGEST_MESSAGE - _ROOM].decode(errors="ignore") + f"… (cut: {len(data):,} bytes in all)"


def parted(message: str) -> tuple[str, str]:
    """A kept message without the mark that it was cut, and the mark; empty where it was not."""
    found = _MARK.search(message, max(0, len(message) - _ROOM))
    return (message[: found.start()], found[0]) if found else (message, "")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
