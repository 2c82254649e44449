"""Which records somebody asks for: the one home of what window, downloads, exports, retries, API and commands take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ondatra_web.models import MessageGroup, Run
from ondatra_web.tracking.records import listed_files, with_masked
from runtime.errors import ConfigError
from runtime.records import query
from runtime.records.filter import FileRef, Filter

#: What is taken as it is given; an empty value is none.
PLAIN = ("operation", "change_type", "message", "outcome", "attempt", "batch")


def filter_of(run: Run, given: Mapping[str, Any]) -> Filter:
    """`group` is the id of a message group of the run, `identifiers` whole ones of which a record has any, `q` a text
    that is looked for `within` an identifier, message or payload, compared as `how` says. Raises ConfigError for a
    group of another run, and a status that there is not."""
    group = _group(run, given.get("group"))
    q = given.get("q") or None
    plain: dict[str, Any] = {name: given.get(name) or None for name in PLAIN}
    chosen = Filter(
        **plain,
        status=given.get("status") or (group.status if group else None),
        identifier=given.get("primary_identifier"),
        identifiers=tuple(given.get("identifiers") or ()),
        pattern=group.pattern if group else None,
        text=q,
        within=(given.get("within") or None) if q else None,
        how=(given.get("how") or None) if q else None,
    )
    chosen.where()  # a wrong status is an error before anything is read
    return chosen


def _group(run: Run, chosen: Any) -> MessageGroup | None:
    if not chosen:
        return None
    found = MessageGroup.objects.filter(run=run, pk=chosen).first()
    if found is None:
        raise ConfigError(f"run {run.pk} has no message group {chosen}")
    return found


def found_by(run: Run, files: Sequence[FileRef], filter: Filter) -> Filter:
    """A text that no identifier has is taken for the whole of one whose records hold it masked."""
    text, within, _ = filter.searched
    if text and within == "identifier" and not query.page(files, filter, limit=1).rows:
        return with_masked(replace(filter, text=None, within=None, how=None, identifier=text), run)
    return filter


def asked(run: Run, given: Mapping[str, Any]) -> Filter:
    """What is asked for, as it is found. Raises OndatraError."""
    return found_by(run, listed_files(run), filter_of(run, given))
