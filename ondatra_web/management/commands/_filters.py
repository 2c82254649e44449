"""The filter of the window of records as options of a command, by the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from runtime.records.filter import OUTCOMES, STATUSES
from runtime.records.searching import HOW, WITHIN

#: Options whose names are not those of the filter.
_NAMED = {"message_like": "message", "search": "q", "identifier": "identifiers"}
_PLAIN = ("status", "operation", "change_type", "group", "outcome", "attempt", "batch", "within", "how")


def add_filter(parser: CommandParser) -> None:
    parser.add_argument("--status", metavar="S", help=f"one of {', '.join(STATUSES)}")
    parser.add_argument("--operation", metavar="O", help="as the records name it: upsert, delete, …")
    parser.add_argument("--change-type", metavar="C", help="insert, update_postimage, delete, …")
    parser.add_argument("--outcome", choices=list(OUTCOMES), help="what push() answered")
    parser.add_argument("--attempt", metavar="N", type=int, help="the attempt within the run, from 1")
    parser.add_argument("--batch", metavar="N", type=int, help="the number of the push call, from 1")
    parser.add_argument("--group", metavar="ID", type=int, help="a message group of the run, as the API lists them")
    parser.add_argument("--message-like", metavar="M", help="a part of the message, or a pattern with %%")
    parser.add_argument(
        "--identifier",
        metavar="I",
        action="append",
        default=[],
        help="the key as the records show it, or the plain one where it is masked; may be given several times",
    )
    parser.add_argument("--search", metavar="TEXT", help="a text that is looked for in any case")
    parser.add_argument("--within", choices=list(WITHIN), help="where: in identifiers unless this says otherwise")
    parser.add_argument("--how", choices=list(HOW), help="how it is compared: the beginning of an identifier, else any")


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """What `asked` takes."""
    told = {name: options[name] for name in _PLAIN}
    return {**told, **{name: options[option] for option, name in _NAMED.items()}}
