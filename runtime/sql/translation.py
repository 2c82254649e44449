"""DuckDB's SQL on Spark: DuckDB parses, binds and types; what is on the tested list is written for Spark, the rest is
refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from runtime.model import Column

from .asking import bounds, keys
from .asking.bounded import Bounded
from .asking.gate import Gate, gate, lock
from .asking.said import GateError
from .asking.scope import LEAVES, Columns, where
from .asking.tree import MAKING, Node, first_offset, line_of, methods_called, walk
from .asking.types import Type, UnknownType, name_quoted, parse, spark_type
from .expressions import respelt
from .expressions.expr import VOLATILE_NAMES
from .files import table_functions
from .files.places import Place
from .model import FileRead, Refused, SqlProblems, TableRef, Translated, problem
from .queries.query import Queries
from .scalar.calls import Calls
from .scalar.casts import INFINITE
from .scalar.functions import VOLATILE
from .scalar.spellings import UNUSUAL
from .scalar.texts import string

_HINT = "; rewrite it, or write the model in Spark SQL with `-- @dialect: spark`"
#: So few statements are described as well one by one.
FEW = 4
#: What takes longer (seconds) over no rows goes on by itself, as a recursion without an end does.
OVER_NOTHING = 1.0
_done = Bounded[Any, Translated](2000)


def read_ahead(texts: Sequence[str]) -> None:
    """These are parsed by one question, before `references` asks for each."""
    with lock:
        gate().read_ahead(texts)


def references(sql: str) -> tuple[TableRef, ...]:
    """The tables of the text, each at its first line. SqlProblems if it is not exactly one SELECT."""
    with lock:
        node = gate().parse(sql)["node"]
    out: dict[str, TableRef] = {}
    for item in tables_of(node, frozenset()):
        name = table_name(item["qualified_name"]["path"])
        out.setdefault(name, TableRef(name, line_of(sql, item["query_location"])))
    return tuple(out.values())


def describe_ahead(models: Sequence[tuple[str, Mapping[str, tuple[Column, ...]]]], place: Place) -> None:
    """The columns of these, each with the tables that it reads, are asked for by few questions, before `translate` asks
    for each."""
    texts = []
    with lock:
        for sql, mine in models:
            with suppress(Exception):  # said when it is translated
                check_functions(sql, gate().nodes(sql))
                text, reads = table_functions.replace(sql, gate().nodes(sql), place)
                gate().ensure({**mine, **{name: read.columns for name, read in reads.items()}})
                gate().parse(text)
                texts.append(text)
        if len(texts) >= FEW:
            gate().describe_ahead(texts)


def translate(sql: str, mine: Mapping[str, tuple[Column, ...]], place: Place) -> Translated:
    """`mine`: the tables that it reads, with their columns."""
    with lock:
        nodes = gate().nodes(sql)
        check_functions(sql, nodes)
        text, reads = table_functions.replace(sql, nodes, place)
        key = (text, tuple(sorted(mine.items())), repr(sorted(reads.items())))
        if key not in _done:
            made = _translate(text, mine, reads)
            exact = _translate(text, mine, reads, exact=True) if UNUSUAL in made.spark_sql else None
            _done[key] = replace(made, exact=exact)
        return _done[key]


def _translate(
    sql: str, mine: Mapping[str, tuple[Column, ...]], reads: Mapping[str, FileRead], *, exact: bool = False
) -> Translated:
    g = gate()
    known = {**mine, **{name: read.columns for name, read in reads.items()}}
    try:
        g.ensure(known)
        described, ctes = g.with_ctes(sql)
    except GateError as error:
        raise problem(error.line or 1, error.message) from None
    node = g.parse(sql)["node"]

    def lookup(path: list[str]) -> tuple[str, Columns]:
        name = table_name(path)
        view = reads[name].view if name in reads else name.replace(".", "__")
        return view, [(c.name, parse(c.duckdb_type)) for c in known[name]]

    calls = Calls(sql, exact=exact)
    queries = Queries(g, lookup, calls)
    if any(n.get("class") == "FUNCTION" and n.get("schema") for n in g.nodes(sql)):
        node, ctes = methods_called(node), {}
    if any(map(respelt.is_spelt, walk(node))):
        node, ctes = respelt.respelt(node), {}
    queries.known |= {**ctes, id(node): described}
    queries.top = id(node)
    try:
        text, columns = queries.write(node, None)
        if columns != described:
            raise Refused("this statement, whose columns come out differently")
        text = calls.written(text)
        tried(g, calls)
        check_intervals(node, described)
        computed = bool(calls.made or reads)
        outer = ", ".join(
            f"CAST({finite(n, t, computed)} AS {spark_type(t)}) AS {name_quoted(n)}" for n, t in described
        )
    except Refused as refusal:
        line = line_of(sql, refusal.where if refusal.where is not None else first_offset(node))
        raise problem(line, f"{refusal.construct} is not supported{_HINT if refusal.hint else ''}") from None
    except UnknownType as error:
        raise problem(1, f"a column of type {error} is not supported (cast it)") from None
    except GateError as error:
        raise problem(error.line or 1, error.message) from None
    doubled = [n for i, (n, _) in enumerate(described) if n.lower() in {m.lower() for m, _ in described[:i]}]
    if doubled:
        raise problem(1, f"two columns are named {doubled[0]}; give one of them another name with AS")
    if "${" in text + outer:  # Spark would put a setting or a variable of the environment there
        raise problem(1, _variable([n for n, _ in described]))
    out = tuple(Column(n, str(t), spark_type(t)) for n, t in described)
    ordered = any(m["type"] == "ORDER_MODIFIER" for m in node["modifiers"])
    return Translated(
        f"SELECT {outer} FROM ({text}) AS __m",
        out,
        tuple(reads.values()),
        tuple(mine),
        volatile(list(walk(node))),
        ordered,
        tuple(calls.made.values()),
    )


def check_intervals(node: Node, columns: Columns) -> None:
    """Refused: no destination has a form for them. Within a model they are DuckDB's text of them."""
    items = node.get("select_list") or []
    for at, (_, kind) in enumerate(columns):
        if "INTERVAL" in str(kind):
            item = items[at] if len(items) == len(columns) else node
            raise Refused(f"a value of type {kind} (cast it, or use it within one expression)", where(item))


def finite(name: str, kind: Type, computed: bool) -> str:
    """A column; one of dates ends the run where DuckDB, or its file, gave an infinity, which Spark takes for a day."""
    text = name_quoted(name)
    if not computed or kind.letter not in INFINITE:
        return text
    told = string(f"the column {name} has an infinite date, which no table holds: write a day that is far enough")
    return f"CASE WHEN {INFINITE[kind.letter].format(text)} THEN raise_error({told}) ELSE {text} END"


def _variable(names: list[str]) -> str:
    named = next((n for n in names if "${" in n), None)
    if named is not None:
        return f"the column {named} has ${{ in its name, which is not supported: give it another with AS"
    return "a name that this SELECT reads has ${ in it, which is not supported: rename it where it comes from"


def tried(g: Gate, calls: Calls) -> None:
    """Each expression of DuckDB's is made ready over no rows: what is wrong with a pattern or a format is told now."""
    for call in calls.made.values():
        given = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in call.inputs)
        rows = f" FROM (SELECT {given} WHERE false)"
        try:
            wanted = ", ".join(f"CAST({sql} AS {to})" for sql, _, to in call.expressions)
            g.run(f"SELECT {wanted}{rows}", seconds=OVER_NOTHING)
        except GateError as error:
            several = zip(call.expressions, call.places, strict=True) if len(call.expressions) > 1 else ()
            for (sql, _, _), (line, _) in several:
                try:
                    g.run(f"SELECT {sql}{rows}", seconds=OVER_NOTHING)
                except GateError as own:
                    raise problem(line, own.message) from None
            raise problem(call.places[0][0], error.message) from None


def volatile(nodes: list[Node]) -> bool:
    return any(
        n.get("function_name") in VOLATILE
        or bool(n.get("sample"))
        or n.get("class") == "COLUMN_REF"
        and n["column_names"][0].lower() in VOLATILE_NAMES
        for n in nodes
    )


def table_name(path: Sequence[str]) -> str:
    return ".".join(p.lower() for p in (path if len(path) > 1 else ["main", *path]))


def tables_of(node: Any, ctes: frozenset[str]) -> Iterator[Node]:
    """The tables below a node that are neither CTEs nor files."""
    if node.get("type") == "BASE_TABLE":
        path = node["qualified_name"]["path"]
        if not (len(path) == 1 and (path[0].lower() in ctes or table_functions.is_path(path[0]))):
            yield node
    for entry in (node.get("cte_map") or {}).get("map", []):
        own = (
            frozenset({entry["key"].lower()})
            if entry["value"]["query_node"]["type"] == "RECURSIVE_CTE_NODE"
            else frozenset()
        )
        yield from tables_of(entry["value"], ctes | own)
        ctes = ctes | {entry["key"].lower()}
    for key, value in node.items():
        if value and key != "cte_map":
            for item in value if type(value) is list else (value,):
                if type(item) is dict and item.get("class") not in LEAVES:
                    yield from tables_of(item, ctes)
                elif type(item) is list:
                    yield from tables_of({"": item}, ctes)


def check_functions(sql: str, nodes: list[Node]) -> None:
    """Table functions that could read what they should not, and what nobody here knows, are refused before DuckDB binds
    the text."""
    known = {*table_functions.FORMATS, *MAKING}
    bad = [n for n in nodes if n.get("type") == "TABLE_FUNCTION" and n["function"]["function_name"] not in known]
    if bad:
        raise SqlProblems(
            [
                (
                    line_of(sql, n["query_location"]),
                    f"the table function {n['function']['function_name']}() is not supported{_HINT}",
                )
                for n in bad
            ]
        )
    for node in nodes:
        if node.keys() - keys.KEYS and (told := keys.unknown(node)):
            raise problem(line_of(sql, first_offset(node)), f"{told} is not supported{_HINT}")
    bounds.check_sizes(sql, nodes)
