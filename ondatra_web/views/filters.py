"""What the address of a window of records asks for, and the choices that it offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from ondatra_web.forms import STATUSES
from ondatra_web.models import MessageGroup, Run
from ondatra_web.tracking.records import files_of, with_masked
from runtime.records import query as record_files
from runtime.records.query import STATUSES as FILE_STATUSES
from runtime.records.query import FileRef, Filter

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


def filter_of(run: Run, address: Mapping[str, Any]) -> Filter:
    """What the address asks for."""
    pattern = None
    if address.get("reason"):
        pattern = MessageGroup.objects.filter(run=run, pk=address["reason"]).values_list("pattern", flat=True).first()
    return Filter(
        status=address.get("status") or None,
        operation=address.get("operation") or None,
        change_type=address.get("change_type") or None,
        prefix=address.get("q") or None,
        pattern=pattern,
    )


def found_by(run: Run, files: Sequence[FileRef], filter: Filter) -> Filter:
    """A search takes the beginning of an identifier; where nothing begins so, the whole of one, plain or masked."""
    if filter.prefix and not record_files.page(files, filter, limit=1).rows:
        return with_masked(replace(filter, prefix=None, identifier=filter.prefix), run)
    return filter


def chosen_filter(run: Run, address: Mapping[str, Any]) -> Filter:
    """What the address selects, as the window shows it. Raises OndatraError."""
    return found_by(run, files_of(run), filter_of(run, address))


def statuses(tally: Tally, kept: Mapping[str, Any]) -> list[Choice]:
    """Each status with its count and the address that chooses it."""
    return [_status(value, label, tally, kept) for value, label in STATUSES]


def _status(value: str, label: str, tally: Tally, kept: Mapping[str, Any]) -> Choice:
    count = sum(n for (status, _, _), n in tally.items() if not value or status in FILE_STATUSES[value])
    return Choice(value, label, count, value == kept.get("status", ""), address_of(kept, status=value))


def operations(tally: Tally, kept: Mapping[str, Any]) -> list[str]:
    """Those of the run, and the chosen one."""
    return sorted({operation for _, operation, _ in tally} | ({kept["operation"]} if kept.get("operation") else set()))


def address_of(kept: Mapping[str, Any], **more: Any) -> str:
    """The query of an address with these values."""
    return "?" + urlencode({name: value for name, value in {**kept, **more}.items() if value not in ("", None)})
