"""Window functions and their frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import where
from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import TIMESTAMP
from runtime.sql.model import Refused
from runtime.sql.scalar import collations, constants
from runtime.sql.scalar.casts import E

from . import aggregates, as_read, equality, partitions
from .orders import ordered

if TYPE_CHECKING:
    from runtime.sql.expressions.expr import Expressions

RANKS = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}
VALUES = {"lag", "lead", "first_value", "last_value", "nth_value", "first", "last"}
#: Rows of a frame of which each row may have the list.
SHORT = 50
#: Of these, those that are nothing without an order of the rows.
FOR_ORDERED = {"row_number", "ntile", "lag", "lead"}


def write(w: Expressions, node: Node) -> E:
    """A window function, its arguments and its keys computed before the rows are put in order."""
    if w.is_outer(node):
        told = "a window over columns of the query around (write it around the subquery)"
        raise Refused(told, where(node), hint=False)
    with w.at(grouped=w.grouped):
        try:
            return written(w, node)
        except Refused:
            if w.scope.grouped:
                raise
            return partitions.write(w, node)


def written(w: Expressions, node: Node) -> E:
    name = node["function_name"]
    if node.get("exclude_clause", "NO_OTHER") != "NO_OTHER":
        return without_own_row(w, node, name) if w.scope.grouped else partitions.write(w, node)
    over = f"OVER ({specification(w, node, name)})"
    arguments = [a["expression"] for a in node["arguments"]]
    kind = w.type(node)
    if name not in RANKS | VALUES | w.scope.gate.aggregates:
        raise Refused(f"{name}() OVER", where(node))
    if name not in RANKS | VALUES:
        return aggregated(w, node, " " + over)
    if node.get("distinct") or node.get("arg_orders"):
        raise Refused("DISTINCT or ORDER BY in the arguments of a window function", where(node))
    if node.get("filter_expr") or node.get("filter"):
        raise Refused("FILTER with OVER", where(node), hint=False)
    if name in RANKS:
        text = f"{name}({', '.join(w.write(a).text for a in arguments)}) {over}"
        return E(text if kind.name == "DOUBLE" else f"CAST({text} AS BIGINT)", kind)
    return E(value(w, node, name, arguments, over), kind)


def aggregated(w: Expressions, node: Node, over: str) -> E:
    """DuckDB's aggregates over the list of a short frame, else over their partition: of a long one each row would have
    a list. In a correlated subquery Spark has no number of a row."""
    if w.scope.grouped or w.scope.parent is not None or is_short(w, node):
        return aggregates.write(w, node, over)
    aggregates.check(w, node, over)
    return aggregates.own(w, node, over) or partitions.write(w, node)


def is_short(w: Expressions, node: Node) -> bool:
    """Whether a frame has few rows."""
    rows = 0
    for side in ("start", "end"):
        reach = node.get(f"{side}_expr")
        if not node[side].endswith("_ROWS") or node[side].startswith("EXPR") and not (reach and w.is_constant(reach)):
            return False
        rows += abs(int(w.constant(reach, "the bound of a window frame"))) if reach else 0
    return rows <= SHORT


def without_own_row(w: Expressions, node: Node, name: str) -> E:
    """EXCLUDE CURRENT ROW of a frame in ROWS: the rows before and those after."""
    start, end = node["start"], node["end"]
    sides = (
        start.startswith(("UNBOUNDED_P", "EXPR_P", "CURRENT_ROW")),
        end.startswith(("UNBOUNDED_F", "EXPR_F", "CURR")),
    )
    whole = (start, end) == ("UNBOUNDED_PRECEDING", "UNBOUNDED_FOLLOWING") and bool(node["orders"])
    in_rows = whole or any(side.endswith("_ROWS") for side in (start, end))
    if node["exclude_clause"] != "CURRENT_ROW" or name in RANKS | VALUES or not in_rows or not all(sides):
        raise Refused("this form of EXCLUDE in a window", where(node), hint=False)

    keys = specification(w, node, "row_number")
    frames = []
    if not start.startswith("CURRENT_ROW"):
        frames.append(f"{bound(w, start, node.get('start_expr'))} AND 1 PRECEDING")
    if not end.startswith("CURRENT_ROW"):
        frames.append(f"1 FOLLOWING AND {bound(w, end, node.get('end_expr'))}")
    if not frames or any(text.startswith("0 ") or text.endswith(" 0 FOLLOWING") for text in frames):
        raise Refused("a window frame of no row", where(node), hint=False)
    first, *others = (f" OVER ({keys} ROWS BETWEEN {text})" for text in frames)
    return aggregates.write(w, node, first, *others)


def value(w: Expressions, node: Node, name: str, arguments: list[Node], over: str) -> str:
    kind = w.type(node)
    name = {"first": "first_value", "last": "last_value"}.get(name, name)
    items = [w.cast(w.write(arguments[0]), kind, arguments[0]).text]
    if name in ("lag", "lead"):
        items += [str(w.constant(arguments[1], f"the offset of {name}()"))] if len(arguments) > 1 else []
        if len(arguments) > 2:
            items.append(w.cast(w.write(arguments[2]), kind, arguments[2]).text)
    elif name == "nth_value":
        items.append(str(w.constant(arguments[1], "the position of nth_value()")))
    nulls = " IGNORE NULLS" if node.get("ignore_nulls") else ""
    return f"{name}({', '.join(items)}){nulls} {over}"


def specification(w: Expressions, node: Node, name: str) -> str:
    out = []
    if node["partitions"]:
        out.append("PARTITION BY " + ", ".join(equality.key(w, p, "PARTITION BY") for p in node["partitions"]))
    keys = []
    for order in node["orders"]:
        item = collations.key(order["expression"], w.type(order["expression"]))
        key = w.write(item)
        if is_ranged(node):
            key = measured(key, item)
        keys.append(" ".join(ordered(w, key, order, item)))
    whole = (node["start"], node["end"]) == ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE")
    if not keys and name in VALUES - FOR_ORDERED and whole:
        return " ".join([*out, f"ORDER BY {as_read.order(w)} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"])
    if not keys and (name in FOR_ORDERED or is_counted(node)):
        keys = [as_read.order(w)]
    elif not keys and name in RANKS:
        keys = ["true"]
    if keys:
        out.append("ORDER BY " + ", ".join(keys))
    if name not in RANKS and name not in ("lag", "lead"):
        out += frame(w, node, bool(keys))
    return " ".join(out)


def is_counted(node: Node) -> bool:
    """Whether a frame reaches over a number of rows."""
    return any(node[side].endswith("_ROWS") for side in ("start", "end"))


def is_ranged(node: Node) -> bool:
    """Whether a frame reaches as far as a value says."""
    return any(node[side].startswith("EXPR_") and node[side].endswith("_RANGE") for side in ("start", "end"))


def measured(key: E, item: Node) -> E:
    """The key of a frame in RANGE, from which Spark and DuckDB measure alike: days as moments."""
    if key.type.name == "DATE":
        return E(f"CAST({key.text} AS TIMESTAMP_NTZ)", TIMESTAMP)
    if key.type.name not in (
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "DECIMAL",
        "DOUBLE",
        "TIMESTAMP",
        "TIMESTAMPTZ",
    ):
        raise Refused(f"a window frame in RANGE over a value of type {key.type}", where(item), hint=False)
    return key


def frame(w: Expressions, node: Node, ordered: bool) -> list[str]:
    start, end = node["start"], node["end"]
    modes = {m for m in ("ROWS", "RANGE", "GROUPS") for side in (start, end) if side.endswith("_" + m)} or {"RANGE"}
    if len(modes) != 1 or "GROUPS" in modes:
        raise Refused("a window frame in GROUPS", where(node))
    mode = modes.pop()
    if (start, end) == ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"):
        return []  # the default of both
    if not ordered and (start, end) == ("UNBOUNDED_PRECEDING", "UNBOUNDED_FOLLOWING"):
        return []
    kinds = {of_months(w, e) for e in (node.get("start_expr"), node.get("end_expr")) if e is not None} - {None}
    if len(kinds) > 1:
        raise Refused("a window frame of months on one side and days or hours on the other", where(node), hint=False)
    days = mode == "RANGE" and w.type(node["orders"][0]["expression"]).name == "DATE"
    low, high = (bound(w, node[side], node.get(f"{side}_expr"), days) for side in ("start", "end"))
    return [f"{mode} BETWEEN {low} AND {high}"]


def of_months(w: Expressions, expression: Node) -> bool | None:
    """Whether an interval is one of months or years; None for another type."""
    if w.type(expression).name != "INTERVAL" or not w.is_constant(expression):
        return None
    return any(unit in ("MONTH", "YEAR") for unit, _ in constants.interval(w, expression))


def bound(w: Expressions, side: str, expression: Node | None, days: bool = False) -> str:
    """An end of a frame; `days` are what a number counts from a day."""
    if side.startswith("CURRENT_ROW"):
        return "CURRENT ROW"
    if side.startswith("UNBOUNDED"):
        return side.replace("_", " ")
    way = "PRECEDING" if "PRECEDING" in side else "FOLLOWING"
    assert expression is not None
    if w.type(expression).name == "INTERVAL":
        parts = dict(constants.interval(w, expression)) if w.is_constant(expression) else None
        if parts is None or "MONTH" in parts and len(parts) > 1:
            raise Refused("a window frame of months with days, or of what is not constant", where(expression))
        if "MONTH" in parts:
            return f"INTERVAL '{parts['MONTH']}' MONTH {way}"
        micros = int(parts.get("MICROSECOND", 0)) + int(parts.get("DAY", 0)) * 86_400_000_000
        return f"INTERVAL '{micros // 10**6}.{micros % 10**6:06}' SECOND {way}"
    reach = w.constant(expression, "the bound of a window frame")
    return f"INTERVAL '{reach}' DAY {way}" if days else f"{reach} {way}"
