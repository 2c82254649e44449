"""Dates, timestamps, intervals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..casts import E
from ..model import Refused
from ..scope import where
from ..texts import bound, string
from ..tree import Node
from ..types import BIGINT, DOUBLE, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Type, spark_type
from .registry import VOLATILE, result, rules, writer

if TYPE_CHECKING:
    from ..expr import Expressions

VOLATILE |= {
    "now",
    "current_timestamp",
    "transaction_timestamp",
    "get_current_timestamp",
    "current_date",
    "today",
    "random",
    "uuid",
    "gen_random_uuid",
    "uuidv4",
}
_MICROS = "unix_micros(CAST({0} AS TIMESTAMP_LTZ))"
_PARTS = {
    "year": "year({0})",
    "month": "month({0})",
    "day": "day({0})",
    "quarter": "quarter({0})",
    "week": "weekofyear({0})",
    "dow": "(dayofweek({0}) - 1)",
    "isodow": "(weekday({0}) + 1)",
    "doy": "dayofyear({0})",
    "isoyear": "extract(YEAROFWEEK FROM {0})",
    "decade": "floor(year({0}) / 10)",
    "hour": "hour({0})",
    "minute": "minute({0})",
    "second": "second({0})",
    "millisecond": "pmod({m}, 60000000) div 1000",
    "microsecond": "pmod({m}, 60000000)",
    "epoch": "({m} / 1e6D)",
}
_UNITS = {
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "dayofmonth": "day",
    "weekofyear": "week",
    "y": "year",
    "yr": "year",
    "mon": "month",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "min": "minute",
    "m": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "us": "microsecond",
    "w": "week",
    "msec": "millisecond",
    "usec": "microsecond",
}
_TRUNC = {"year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"}

rules(
    __name__,
    {
        "now current_timestamp transaction_timestamp get_current_timestamp": ": =current_timestamp()",
        "current_date today": ": =current_date()",
        "random": ": =rand()",
        "uuid gen_random_uuid uuidv4": ": uuid()",
        "last_day": "M: last_day({0})",
        "dayname": "M: date_format({0}, 'EEEE')",
        "monthname": "M: date_format({0}, 'MMMM')",
        "make_date": "III: make_date({0}, {1}, {2})",
        "epoch_ms": [("M", "round({m} / 1000BD, 0)"), ("i", "CAST(timestamp_millis({0}) AS TIMESTAMP_NTZ)")],
        "epoch_us": "M: {m}",
        "epoch_ns": "M: ({m} * 1000)",
        "make_timestamp": [
            ("i", "CAST(timestamp_micros({0}) AS TIMESTAMP_NTZ)"),
            ("IIIIIF", "make_timestamp_ntz({0}, {1}, {2}, {3}, {4}, CAST({5} AS DECIMAL(16,6)))"),
        ],
        "to_timestamp": "F: timestamp_micros(CAST(rint({0} * 1e6D) AS BIGINT))",
    },
)
for _names, _part in (
    ("year", "year"),
    ("month", "month"),
    ("day dayofmonth", "day"),
    ("quarter", "quarter"),
    ("week weekofyear", "week"),
    ("isoyear", "isoyear"),
    ("dayofweek weekday", "dow"),
    ("isodow", "isodow"),
    ("dayofyear", "doy"),
    ("hour", "hour"),
    ("minute", "minute"),
    ("second", "second"),
    ("epoch", "epoch"),
    ("millisecond", "millisecond"),
    ("microsecond", "microsecond"),
    ("decade", "decade"),
):
    rules(__name__, {_names: "M: " + _PARTS[_part].replace("{m}", _MICROS)})
from .registry import RULES  # noqa: E402

for _name in ("epoch_ms", "epoch_us", "epoch_ns"):
    RULES[_name] = [(s, t.replace("{m}", _MICROS)) for s, t in RULES[_name]]


def unit(w: Expressions, node: Node, what: str) -> str:
    """The canonical name of a unit: 'months' is month."""
    text = str(w.constant(node, what)).lower()
    text = text if text in _UNITS or text in _PARTS or text in _TRUNC else text.rstrip("s")
    return _UNITS.get(text, text)


def moment(e: E, node: Node) -> E:
    if e.type.letter not in "DTZ":
        raise Refused(f"a date function over {e.type}", where(node))
    return e


@writer("date_part", "datepart")
def part(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    name, e = unit(w, arguments[0], "date_part() of a unit"), w.write(arguments[1])
    if name not in _PARTS:
        raise Refused(f"date_part('{name}')", where(node))
    moment(e, node)
    return result(w, _PARTS[name].replace("{m}", _MICROS).replace("{0}", e.text), node)


@writer("date_trunc", "datetrunc")
def trunc(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    name, e = unit(w, arguments[0], "date_trunc() to a unit"), moment(w.write(arguments[1]), node)
    if name not in _TRUNC:
        raise Refused(f"date_trunc('{name}')", where(node))
    return result(w, f"date_trunc('{name.upper()}', {e.text})", node)


@writer("date_diff", "datediff")
def diff(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """Counts boundaries; weeks are whole seven days."""
    name = unit(w, arguments[0], "date_diff() in a unit")
    a, b = (moment(w.write(x), node) for x in arguments[1:])
    if a.type.letter != b.type.letter:
        a, b = (w.cast(x, TIMESTAMP, node) if x.type.letter == "D" else x for x in (a, b))
        if a.type.letter != b.type.letter:
            raise Refused(f"date_diff() of {a.type} and {b.type}", where(node))
    months = f"((year({b.text}) - year({a.text})) * 12 + month({b.text}) - month({a.text}))"
    table = {
        "year": f"(year({b.text}) - year({a.text}))",
        "month": months,
        "day": f"datediff({b.text}, {a.text})",
        "quarter": f"((year({b.text}) - year({a.text})) * 4 + quarter({b.text}) - quarter({a.text}))",
        "week": f"(datediff({b.text}, {a.text}) div 7)",
    }
    if name in ("hour", "minute", "second", "millisecond", "microsecond"):
        step = {
            "hour": 3_600_000_000,
            "minute": 60_000_000,
            "second": 1_000_000,
            "millisecond": 1000,
            "microsecond": 1,
        }[name]
        stamps = [_MICROS.replace("{0}", x.text) for x in (a, b)]
        table[name] = f"(CAST(floor({stamps[1]} / {step}BD) AS BIGINT) - CAST(floor({stamps[0]} / {step}BD) AS BIGINT))"
    if name == "week" and a.type.letter != "D":
        raise Refused(f"date_diff('week') of {a.type} (cast to DATE)", where(node), hint=False)
    if name not in table:
        raise Refused(f"date_diff('{name}')", where(node))
    return E(f"CAST({table[name]} AS BIGINT)", BIGINT)


_STRF = {
    "%Y": "yyyy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%M": "mm",
    "%S": "ss",
    "%y": "yy",
    "%a": "EEE",
    "%A": "EEEE",
    "%b": "MMM",
    "%B": "MMMM",
    "%-d": "d",
    "%-m": "M",
    "%-H": "H",
    "%-I": "h",
    "%I": "hh",
    "%p": "a",
    "%j": "DDD",
    "%f": "SSSSSS",
    "%%": "'%'",
    "%F": "yyyy-MM-dd",
    "%T": "HH:mm:ss",
    "%-M": "m",
    "%-S": "s",
    "%g": "SSS",
}


def java_format(text: str, node: Node, parsing: bool = False) -> str:
    out = ""
    for part in re.findall(r"%-?[A-Za-z%]|[A-Za-z]+|[^A-Za-z%]|%", text):
        if part.startswith("%"):
            known = _STRF.get(part)
            if known is None or part == "%g" or parsing and part in ("%y", "%a", "%A", "%j", "%f"):
                raise Refused(f"{part} in a date format", where(node))
            out += (
                {"dd": "d", "MM": "M", "HH": "H", "mm": "m", "ss": "s", "hh": "h"}.get(known, known)
                if parsing
                else known
            )
        else:
            out += "''" if part == "'" else part if part in " -/:.,T" and part != "T" else f"'{part}'"
    return out


@writer("strftime")
def strftime(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    a = w.write(arguments[0])
    moment_, other = (arguments[0], arguments[1]) if a.type.letter in "DTZ" else (arguments[1], arguments[0])
    e, text = moment(w.write(moment_), node), w.constant(other, "the format of strftime()")
    if text is None:
        raise Refused("strftime() with the format NULL", where(node))
    return E(f"date_format({e.text}, {string(java_format(text, node))})", VARCHAR)


@writer("strptime")
def strptime(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    e, text = w.write(arguments[0]), w.constant(arguments[1], "the format of strptime()")
    if e.type.letter != "s" or not isinstance(text, str) or re.search(r"%-?[A-Za-z]%-?[A-Za-z]", text):
        raise Refused("strptime() with a list of formats or with fields that touch", where(node))
    return result(w, f"to_timestamp_ntz({e.text}, {string(java_format(text, node, parsing=True))})", node)


@writer("timezone")
def timezone(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    zone, e = w.constant(arguments[0], "AT TIME ZONE"), w.write(arguments[1])
    if e.type.letter == "Z":
        return E(f"CAST(from_utc_timestamp({e.text}, {string(zone)}) AS TIMESTAMP_NTZ)", TIMESTAMP)
    if e.type.letter == "T":
        return E(bound(f"CAST({e.text} AS TIMESTAMP_LTZ)", "tz", _from_zone(string(zone))), TIMESTAMPTZ)
    raise Refused(f"{e.type} AT TIME ZONE", where(node))


def _from_zone(zone: str) -> str:
    """The moment of a clock's time `tz`: of an hour that comes twice the second one, as the offset of the next day
    says; one that never came is read with the offset before it."""
    later = f"to_utc_timestamp(tz + INTERVAL '1' DAY, {zone}) - INTERVAL '1' DAY"
    return f"CASE WHEN from_utc_timestamp({later}, {zone}) = tz THEN {later} ELSE to_utc_timestamp(tz, {zone}) END"


@writer(
    "to_years",
    "to_months",
    "to_weeks",
    "to_days",
    "to_hours",
    "to_minutes",
    "to_seconds",
    "to_milliseconds",
    "to_microseconds",
)
def interval(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    """An interval of a number that is not constant: only whole numbers."""
    source = arguments[0]
    while source["class"] == "CAST" or source["class"] == "FUNCTION" and source["function_name"] == "trunc":
        source = source["child"] if source["class"] == "CAST" else source["arguments"][0]["expression"]
    e = w.write(source)
    if e.type.letter != "i":
        raise Refused(f"{node['function_name']}({e.type})", where(node))
    name, factor = {
        "to_years": ("MONTH", 12),
        "to_months": ("MONTH", 1),
        "to_weeks": ("DAY", 7),
        "to_days": ("DAY", 1),
        "to_hours": ("MICROSECOND", 3600 * 10**6),
        "to_minutes": ("MICROSECOND", 60 * 10**6),
        "to_seconds": ("MICROSECOND", 10**6),
        "to_milliseconds": ("MICROSECOND", 1000),
        "to_microseconds": ("MICROSECOND", 1),
    }[node["function_name"]]
    big = name == "MICROSECOND"
    text = f"CAST({e.text} AS {'BIGINT' if big else 'INT'})"
    return E("", Type("INTERVAL"), ((name, text if factor == 1 else f"({text} * {factor}{'L' if big else ''})"),))


def moved(w: Expressions, operator: str, a: E, b: E, arguments: list[Node], node: Node) -> E:
    """Date arithmetic: date ± days, date - date, moment ± interval."""
    kind = w.type(node)
    if operator == "+" and b.type.letter in "DTZ":
        a, b = b, a
    if a.type.name == b.type.name == "DATE" and operator == "-":
        return E(f"CAST(datediff({a.text}, {b.text}) AS BIGINT)", kind)
    if a.type.name == "DATE" and b.type.letter == "i" and operator in "+-":
        return E(f"{'date_add' if operator == '+' else 'date_sub'}({a.text}, CAST({b.text} AS INT))", kind)
    if a.type.letter in "DTZ" and b.type.name == "INTERVAL" and operator in "+-":
        text = w.cast(a, kind, node).text
        for name, count in b.interval:
            count = count if operator == "+" else f"(-{count})"
            step = {
                "MONTH": f"make_ym_interval(0, {count})",
                "DAY": f"make_dt_interval({count})",
                "MICROSECOND": f"make_dt_interval(0, 0, 0, CAST({count} / 1000000BD AS DECIMAL(18,6)))",
            }[name]
            if count.lstrip("-(").rstrip(")").isdigit():
                number = int(count.strip("()").replace("--", ""))
                step = {"MONTH": f"INTERVAL '{number}' MONTH", "DAY": f"INTERVAL '{number}' DAY"}.get(name, step)
            text = f"({text} + {step})"
        return E(f"CAST({text} AS {spark_type(kind)})", kind)
    raise Refused(f"{a.type} {operator} {b.type}", where(node))


@writer("date_add")
def date_add(w: Expressions, arguments: list[Node], node: Node) -> E | None:
    return moved(w, "+", w.write(arguments[0]), w.write(arguments[1]), arguments, node)


__all__ = ["DOUBLE"]
