"""What the address of a window of records asks for, and the choices that it offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ondatra_web.forms import STATUSES
from ondatra_web.models import MessageGroup, Run
from runtime.records.filter import STATUSES as FILE_STATUSES

#: (status, operation, change type) -> rows.
Tally = Counter[tuple[str, str, str]]


@dataclass(frozen=True)
class Choice:
    """A filter to choose, with the address that chooses it."""

    value: str
    label: str
    count: int | None
    chosen: bool
    query: str


def chosen_of(run: Run, address: Mapping[str, Any]) -> dict[str, Any]:
    """What the address asks for; a reason of another run is none."""
    reason = address.get("reason")
    known = reason and MessageGroup.objects.filter(run=run, pk=reason).exists()
    return {**address, "group": reason if known else None}


def statuses(tally: Tally, kept: Mapping[str, Any]) -> list[Choice]:
    """Each status with its count and the address that chooses it."""
    return [_status(value, label, tally, kept) for value, label in STATUSES]


def _status(value: str, label: str, tally: Tally, kept: Mapping[str, Any]) -> Choice:
    count = sum(n for (status, _, _), n in tally.items() if not value or status in FILE_STATUSES[value])
    return Choice(value, label, count, value == kept.get("status", ""), address_of(kept, status=value))


def warned(run: Run, kept: Mapping[str, Any]) -> Choice:
    """Those that arrived with a remark, which the run counts."""
    chosen = kept.get("outcome") == "warn"
    query = address_of(kept, outcome="" if chosen else "warn", status="")
    return Choice("warn", "Warned", run.warned, chosen, query)


def operations(tally: Tally, kept: Mapping[str, Any]) -> list[str]:
    """Those of the run, and the chosen one."""
    return _words({operation for _, operation, _ in tally}, kept.get("operation"))


def change_types(tally: Tally, kept: Mapping[str, Any]) -> list[str]:
    """The same."""
    return _words({change for _, _, change in tally}, kept.get("change_type"))


def _words(found: set[str], chosen: Any) -> list[str]:
    return sorted({word for word in (*found, chosen) if word})


def address_of(kept: Mapping[str, Any], **more: Any) -> str:
    """The query of an address with these values."""
    return "?" + urlencode({name: value for name, value in {**kept, **more}.items() if value not in ("", None)})
