"""DuckDB itself: the parser, the binder over empty tables and the evaluator of constants.

One in-memory connection a process. It never sees data: only types and constants of the SQL. It opens no file, loads no
extension, and has a limit of memory and of time; files are described by connections of their own (see opened.py).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, cached_property
from itertools import islice
from typing import Any

import duckdb
import orjson

from runtime.model import Column
from runtime.sql.model import problem

from . import types
from .bounded import Bounded
from .bunches import FORM, Columns, Described, Renamed, described, is_renamed, plain_ctes, side_by_side, together
from .confined import NO_EXTENSIONS
from .said import GateError
from .tree import EMPTY, Node, first_offset, line_of, quoted, walk
from .types import Type
from .watch import limited

_PLACE = re.compile(r'("query_location(?:_length)?":)\s*\d+')
_WORD = re.compile(rb"(?<![\w\"'.])[A-Za-z_]+(?![\w\"'(])")
#: Statements that are described by one question: many are cheaper than one, and more than these are not.
BUNCH = 10
#: Constants that are computed by one question.
AHEAD = 500
#: What a question may take: nothing here is about data.
MEMORY, SECONDS = "512MB", 10.0
lock = threading.RLock()


class Gate:
    def __init__(self) -> None:
        self.con = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": MEMORY, **NO_EXTENSIONS})
        self.other = self.con.cursor()  # for the second of two questions at the same time
        for con in (self.con, self.other):  # nothing is computed here that an optimizer would make quicker
            con.execute(
                "PRAGMA disable_optimizer; SET TimeZone = 'UTC'; SET python_enable_replacements = false; SET "
                "max_expression_depth = 2000"
            )
        self.con.execute("SET temp_directory = ''; SET enable_external_access = false; SET lock_configuration = true")
        self.con.execute("CREATE SCHEMA __files")
        self._tables: dict[str, tuple[Column, ...]] = {}
        self._schemas = {"main", "__files"}
        self._described = Bounded[str, Columns](20_000)
        self._types = Bounded[str, Columns](20_000)
        self.forms = Bounded[tuple[str, ...], Type](20_000)  # see Scope.form
        self._values = Bounded[str, tuple[Any, ...]](20_000)
        self._parsed = Bounded[str, Node](2000)
        self._ahead: dict[str, str] = {}  # what DuckDB said of texts that nobody asked for yet
        self._told: dict[str, tuple[Node, Described]] = {}
        self._nodes = Bounded[str, list[Node]](500)
        with_thread = ThreadPoolExecutor(1)  # a question of 20 ms that the first translation needs
        own = self.con.cursor()  # texts are read ahead meanwhile
        self._functions = with_thread.submit(
            lambda: own.execute(
                "SELECT function_name, function_type FROM duckdb_functions() WHERE schema_name = 'main'"
            ).fetchall()
        )
        with_thread.shutdown(wait=False)

    @cached_property
    def aggregates(self) -> set[str]:
        return {n for n, t in self._functions.result() if t == "aggregate"} | {
            "json_group_array",
            "json_group_object",
            "variant_group_array",
            "geomean",
            "geometric_mean",
            "wavg",
            "weighted_avg",
            "count_star",
        }

    @cached_property
    def scalars(self) -> set[str]:
        """The functions, operators and macros of one row."""
        return {n.lower() for n, t in self._functions.result() if t in ("scalar", "macro")} - self.aggregates

    @cached_property
    def keywords(self) -> set[str]:
        return {word for (word,) in self.run("SELECT keyword_name FROM duckdb_keywords()")}

    def run(self, sql: str, *args: object, seconds: float | None = None) -> list[tuple[Any, ...]]:
        seconds = seconds or SECONDS
        try:
            with limited(self.con, seconds):
                return self.con.execute(sql, list(args)).fetchall()
        except duckdb.InterruptException:
            raise GateError(f"it takes more than {seconds:g} s to find out what this is") from None
        except duckdb.Error as error:
            if "maximum nesting depth" in str(error):
                raise RecursionError from None
            raise GateError(str(error)) from None

    def parse(self, sql: str) -> Node:
        """The only statement of `sql`, never to be changed; SqlProblems for none, two, or a syntax error."""
        if sql not in self._parsed:
            self._parsed[sql] = self._parse(sql)
        return self._parsed[sql]

    def nodes(self, sql: str) -> list[Node]:
        """Every dict of the parsed text, in its order."""
        if sql not in self._nodes:
            self._nodes[sql] = list(walk(self.parse(sql)["node"]))
        return self._nodes[sql]

    def read_ahead(self, texts: Sequence[str]) -> None:
        """Has all these parsed by two questions at the same time; what is wrong with one is said when it is asked
        for."""
        halves = list(texts[::2]), list(texts[1::2])
        for half, answers in zip(
            halves, self._at_once(["SELECT json_serialize_sql(unnest(?::VARCHAR[]))"] * 2, halves), strict=True
        ):
            self._ahead |= {text: answer for text, (answer,) in zip(half, answers, strict=bool(answers))}

    def _parse(self, sql: str) -> Node:
        answer = _read(self._ahead.pop(sql, "") or self.run("SELECT json_serialize_sql(?::VARCHAR)", sql)[0][0])
        if answer["error"]:
            told = _refusal(sql, str(answer["error_message"]))
            at = int(answer.get("position") or (_pivot(sql) if "PIVOT without" in told else 0) or 0)
            if "expression depth" in told:
                raise RecursionError
            word = self._reserved(sql, at) if "syntax error" in told else None
            if word:
                told += f': {word.upper()} is a reserved word; where it is a name, write "{word}"'
            raise problem(line_of(sql, at), told)
        if len(answer["statements"]) != 1:
            found = len(answer["statements"])
            second = answer["statements"][1]["node"] if found > 1 else None
            line = line_of(sql, first_offset(second)) if second else 1
            raise problem(
                line,
                f"a model is exactly one SELECT; {'none was found' if not found else f'{found} statements were found'}",
            )
        statement: Node = answer["statements"][0]
        if statement["node"].get("from_table", {}).get("type") == "SHOW_REF":
            raise problem(1, _refusal(sql, "Only SELECT statements"))
        return statement

    def _reserved(self, sql: str, at: int) -> str | None:
        """The word before or at a byte of a syntax error that would be a name in quotes there."""
        raw = sql.encode()
        before = [w for w in _WORD.finditer(raw) if w.start() <= at and w[0].decode().lower() in self.keywords]
        for word in before[:-4:-1]:
            quoted_text = raw[: word.start()] + b'"' + word[0] + b'"' + raw[word.end() :]
            answer = _read(self.run("SELECT json_serialize_sql(?::VARCHAR)", quoted_text.decode())[0][0])
            if not answer["error"] or int(answer.get("position") or 0) > at + 2 + len(word[0]):
                return word[0].decode()
        return None

    def text(self, node: Node) -> str:
        """DuckDB's own spelling of a query node."""
        return str(self.run("SELECT json_deserialize_sql(?::JSON)", _written(node))[0][0])

    def spelt(self, node: Node) -> str:
        """The same of an expression."""
        return self.text(alone({**node, "alias": ""})).removeprefix("SELECT ")

    def types(self, node: Node) -> list[Type]:
        """The types of a query node's columns, without the way over its text."""
        return [kind for _, kind in self._columns(node)]

    def columns(self, node: Node) -> Columns:
        """Names and types of a query node's columns."""
        found = self._columns(node)
        return self.describe(self.text(node)) if is_renamed([name for name, _ in found]) else found

    def with_ctes(self, sql: str) -> Described:
        """The columns of a statement, and by id() those of the queries in its WITH: all told by one question where that
        is possible."""
        node = self.parse(sql)["node"]
        told = self._told.pop(sql, None)
        if told and told[0] is node:
            return told[1]
        entries = plain_ctes(node)
        with suppress(GateError, Renamed):  # the statement alone says what is wrong, if anything is
            if entries:
                rows = self.run(f"DESCRIBE SELECT * FROM {_executed(_written(side_by_side(_form(), node, entries)))}")
                return described(entries, [row[1] for row in rows])
        return self.describe(sql), {}

    def describe_ahead(self, texts: Sequence[str]) -> None:
        """Has `with_ctes` of all these answered by few questions over two connections; what is wrong with one is said
        when it is asked for."""
        size = min(BUNCH, -(-len(texts) // 2))
        asked = [(sql, node := self.parse(sql)["node"], plain_ctes(node)) for sql in texts]
        bunches = [asked[at : at + size] for at in range(0, len(asked), size)]
        questions = [
            _written(together(_form(), [side_by_side(_form(), node, entries) for _, node, entries in bunch]))
            for bunch in bunches
        ]
        answers = self._at_once([f"DESCRIBE SELECT * FROM {_executed(question)}" for question in questions])
        self._told = {}
        for bunch, rows in zip(bunches, answers, strict=True):
            left = iter(rows)
            for sql, node, entries in bunch if rows else ():
                kinds = [row[1] for row in islice(left, len(entries) + 1)]
                with suppress(Renamed):
                    self._told[sql] = node, described(entries, kinds)

    def _at_once(self, questions: Sequence[str], *args: Sequence[Any]) -> list[list[tuple[Any, ...]]]:
        """The answers, asked over two connections at the same time; none for what is wrong."""

        def ask(con: duckdb.DuckDBPyConnection, start: int) -> list[list[tuple[Any, ...]]]:
            out = []
            for question, *values in list(zip(questions, *args, strict=True))[start::2]:
                try:
                    with limited(con, SECONDS):
                        out.append(con.execute(question, values).fetchall())
                except duckdb.Error:
                    out.append([])
            return out

        with ThreadPoolExecutor(1) as thread:
            others = thread.submit(ask, self.other, 1)
            mine = ask(self.con, 0)
            return [(others.result() if at % 2 else mine)[at // 2] for at in range(len(questions))]

    def _columns(self, node: Node) -> Columns:
        written = _written(node)
        if written not in self._types:
            try:
                rows = self.run(f"DESCRIBE SELECT * FROM {_executed(written)}")
            except GateError:  # a table has no two columns of one name, such as those of SELECT NULL, NULL
                rows = self.run("DESCRIBE " + self.text(node))
            self._types[written] = [(r[0], types.parse(r[1])) for r in rows]
        return self._types[written]

    def describe(self, sql: str) -> Columns:
        if sql not in self._described:
            rows = self.run("DESCRIBE " + sql)
            self._described[sql] = [(r[0], types.parse(r[1])) for r in rows]
        return self._described[sql]

    def value(self, node: Node) -> Any:
        """The value of an expression without columns, now, as Python has it."""
        return self.run(self.text(alone(node)))[0][0]

    def constant(self, node: Node) -> Any:
        """The same of an expression that always has the same one."""
        return self._computed("SELECT * FROM ", node)[0]

    def compute_ahead(self, nodes: Sequence[Node]) -> None:
        """Has `constant` of these answered by few questions; what is wrong with one is said when it is asked for."""
        keys = {f"SELECT * FROM {_placed(alone(node))}": node for node in nodes}
        wanted = [(key, node) for key, node in keys.items() if key not in self._values]
        for at in range(0, len(wanted), AHEAD):
            bunch = wanted[at : at + AHEAD]
            items = [{**node, "alias": f"c{i}"} for i, (_, node) in enumerate(bunch)]
            with suppress(GateError):
                (row,) = self.run("SELECT * FROM " + _executed(_written({**alone(EMPTY), "select_list": items})))
                self._values.update({key: (value,) for (key, _), value in zip(bunch, row, strict=True)})

    def interval(self, node: Node) -> tuple[Any, ...]:
        """Months, days and microseconds of such an expression, named v."""
        return self._computed(
            "SELECT date_part('year', v) * 12 + date_part('month', v), date_part('day', v), date_part('hour', v) * "
            "3600000000 + "
            "date_part('minute', v) * 60000000 + date_part('microsecond', v) FROM ",
            {**node, "alias": "v"},
        )

    def _computed(self, question: str, node: Node) -> tuple[Any, ...]:
        written = _placed(alone(node))
        key = question + written
        if key not in self._values:
            try:
                (self._values[key],) = self.run(question + _executed(written))
            except GateError:  # said better of its text
                (self._values[key],) = self.run(f"{question}({self.text(alone(node))})")
        return self._values[key]

    def ensure(self, tables: Mapping[str, tuple[Column, ...]]) -> None:
        """Makes an empty table for each name `schema.table`."""
        for name, columns in tables.items():
            if self._tables.get(name) == columns:
                continue
            *schemas, table = name.split(".")
            if len(schemas) > 1 and f"@{schemas[0]}" not in self._schemas:
                self.run(f"ATTACH ':memory:' AS {quoted(schemas[0])}")
                self._schemas.add(f"@{schemas[0]}")
            path = ".".join(map(quoted, schemas))
            if ".".join(schemas) not in self._schemas:
                self.run(f"CREATE SCHEMA IF NOT EXISTS {path}")
                self._schemas.add(".".join(schemas))
            body = ", ".join(f"{quoted(c.name)} {c.duckdb_type}" for c in columns)
            self.run(f"CREATE OR REPLACE TABLE {path}.{quoted(table)} ({body})")
            self._tables[name] = columns
            self._described.clear()
            self._types.clear()
            self._told.clear()


def _executed(written: str) -> str:
    """A serialized statement as a table. A literal is bound once, a parameter twice."""
    return f"json_execute_serialized_sql('{written.replace(chr(39), chr(39) * 2)}')"


def _placed(node: Node) -> str:
    """A statement as it is serialized, wherever it stands in a text."""
    return _PLACE.sub(r"\g<1>0", _written(node))


def _written(node: Node) -> str:
    """A statement as DuckDB serializes it."""
    return _dumped({"error": False, "statements": [{"node": node, "named_param_map": []}]})


def placeless(node: Node) -> str:
    """A piece of a statement, wherever it stands in it: to be compared only."""
    return _PLACE.sub("", _dumped(node))


def _dumped(node: Node) -> str:
    try:
        return orjson.dumps(node).decode()
    except TypeError:  # nested deeper than it goes
        return json.dumps(node)


def _read(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def _refusal(sql: str, message: str) -> str:
    if "Only SELECT statements" not in message:
        return message
    if _pivot(sql) is not None:
        return (
            "PIVOT without named values is not supported, because the columns of a model are known before its rows: "
            "write PIVOT … ON column IN ('a', 'b')"
        )
    first = re.match(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(\w*)", sql, re.S)
    return f"a model is exactly one SELECT; {first[1].upper() if first else ''} was found"


def _pivot(sql: str) -> int | None:
    """Where the first PIVOT stands, in bytes."""
    found = re.finditer(r"--[^\n]*|/\*.*?\*/|'[^']*'|\"[^\"]*\"|(\bPIVOT\b)", sql, re.S | re.I)
    return next((len(sql[: one.start()].encode()) for one in found if one[1]), None)


@cache
def gate() -> Gate:
    return Gate()


def expression(sql: str) -> Node:
    """An expression, parsed."""
    found: Node = gate().parse(f"SELECT {sql}")["node"]["select_list"][0]
    return found


def conjunction(conditions: Sequence[Node]) -> Node:
    """That all of these hold."""
    return conditions[0] if len(conditions) == 1 else {**expression("true AND true"), "children": list(conditions)}


def alone(node: Node) -> Node:
    """A SELECT of one expression, over nothing."""
    return {**template(), "select_list": [node], "from_table": EMPTY, "aggregate_handling": "STANDARD_HANDLING"}


@cache
def _form() -> Node:
    node: Node = gate().parse(FORM)["node"]
    return node


@cache
def template() -> Node:
    """A SELECT … FROM a, (SELECT 1) q as DuckDB serializes it: the stuff that probes are made of."""
    node: Node = gate().parse("SELECT q.* FROM a, (SELECT 1) q GROUP BY ALL")["node"]
    return node
