"""Rows that a function in FROM makes: range(), generate_series(), unnest(), json_each() and json_tree()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.sql.asking.scope import Scope, Source, call, where
from runtime.sql.asking.tree import MAKING, OF_JSON, SERIES, Node, walk
from runtime.sql.asking.types import BIGINT, Type, name_quoted, rows_of
from runtime.sql.expressions.expr import Expressions
from runtime.sql.model import Refused
from runtime.sql.scalar import constants
from runtime.sql.scalar.casts import E
from runtime.sql.scalar.constants import as_type

from .item import Item, exploded, named

if TYPE_CHECKING:
    from .query import Queries

#: Rows of a series that one task counts.
OF_A_TASK = 10_000


def item(queries: Queries, node: Node, scope: Scope) -> Item:
    """The rows under their names; file functions are tables by now."""
    function = node["function"]
    name, arguments = function["function_name"], [a["expression"] for a in function["arguments"]]
    numbered = node.get("with_ordinality") not in (None, "WITHOUT_ORDINALITY")
    if name not in MAKING:
        raise Refused(f"the table function {name}()", where(node))
    if numbered and name in OF_JSON:
        raise Refused("WITH ORDINALITY", where(node))

    w = queries.expressions(scope.inner(scope if scope.from_ast is not None else scope.parent))
    if name in OF_JSON:
        return of_json(w, name, arguments, node, scope)
    alias, given = node.get("alias") or name, node.get("column_name_alias") or []
    label, number = [*given, *(name, "ordinality")[len(given) :]][:2]
    found = counted(w, name, arguments, label, number if numbered else "")
    kind, rows = found or listed(w, name, arguments, node, label, number if numbered else "")
    columns = [(label, kind), *([(number, BIGINT)] if numbered else [])]

    lateral = "LATERAL " if scope.from_ast is not None and holds_column(arguments) else ""
    single = "" if given or numbered and lateral else label
    return Item(f"{lateral}({rows}) AS {name_quoted(alias)}", [Source(alias, columns, single=single)])


def holds_column(arguments: list[Node]) -> bool:
    return any(part.get("class") == "COLUMN_REF" for a in arguments for part in walk(a))


def counted(w: Expressions, name: str, arguments: list[Node], label: str, number: str) -> tuple[Type, str] | None:
    """A series of whole numbers between constants, which Spark counts itself, however long it is."""
    if name not in SERIES or not all(map(w.is_constant, arguments)):
        return None
    if w.type(call(name, *arguments)).element != BIGINT:
        return None
    given = [constants.computed(w.scope.gate, as_type(a, BIGINT)) for a in arguments]
    if None in given or given[2:] == [0]:  # nothing, and DuckDB's error
        return None

    begin, end, step = [0, *given, 1] if len(given) == 1 else [*given, 1][:3]
    last = end if name == "generate_series" else end - (1 if step > 0 else -1)
    count = max((last - begin) // step + 1, 0)
    stop = begin + count * step
    if not -(2**63) < min(begin, stop) <= max(begin, stop) < 2**63:
        return None
    tasks = ", 1" if count <= OF_A_TASK else ""
    place = f", (id - {begin}L) DIV {step}L + 1 AS {name_quoted(number)}" if number else ""
    return BIGINT, f"SELECT id AS {name_quoted(label)}{place} FROM range({begin}L, {stop}L, {step}L{tasks})"


def listed(w: Expressions, name: str, arguments: list[Node], node: Node, label: str, number: str) -> tuple[Type, str]:
    """The elements of a list, a row for each."""
    if name == "unnest" and len(arguments) != 1:
        raise Refused("unnest() with options in FROM", where(node))
    found = series(w, name, arguments) if name in SERIES else w.write(arguments[0])
    if found.type.name != "LIST":
        raise Refused(f"unnest({found.type}) in FROM", where(node))
    kind, shown = found.type.element, name_quoted(label)
    if not number:
        return kind, f"SELECT explode({found.text}) AS {shown}"
    rows = f"SELECT posexplode({found.text}) AS (__at, {shown})"
    return kind, f"SELECT {shown}, CAST(__at + 1 AS BIGINT) AS {name_quoted(number)} FROM ({rows}) AS __n"


def series(w: Expressions, name: str, arguments: list[Node]) -> E:
    """The list of a series; one of moments may be too long to be made while the model is checked."""
    node = call(name, *arguments)
    if all(map(w.is_constant, arguments)):
        rows = f"FROM {name}({', '.join(map(w.scope.gate.spelt, arguments))}) LIMIT {constants.FEW + 1}"
        if w.scope.gate.run(f"SELECT count(*) FROM ({rows})")[0][0] > constants.FEW:
            return w.asked(node)
    return w.write(node)


def of_json(w: Expressions, name: str, arguments: list[Node], node: Node, scope: Scope) -> Item:
    """DuckDB makes a list of their rows."""
    columns = scope.gate.describe(f"SELECT * FROM {name}('{{}}'::JSON)")
    called = f"{name}({', '.join(f'{{{i}}}' for i in range(len(arguments)))})"
    found: list[E] = [w.write(a) for a in arguments]
    rows = w.over(f"(SELECT list(j ORDER BY j.id) FROM {called} AS j)", found, rows_of(columns), node)
    lateral = "LATERAL " if scope.from_ast is not None and any(map(w.is_outer, arguments)) else ""
    return named(f"{lateral}({exploded(rows)})", columns, node, name)
