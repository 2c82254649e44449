"""`@dialect: spark`: the text as it is, with tables mapped to views and the two JSON functions of the seeds added."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from runtime.model import Column

from .model import TableRef, Translated, problem
from .spark_text import PATHS, TABLE_FUNCTIONS, clear, forbid

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it prints what it does not know, which is told as a problem
VOLATILE = re.compile(
    r"\b(now|current_date|current_timestamp|curdate|localtimestamp|rand|randn|random|uuid|uniform|randstr|shuffle|monotonically_increasing_id|"
    r"unix_timestamp|current_time)\b",
    re.I,
)


@lru_cache(1024)
def _parsed(sql: str) -> Any:
    clear(sql)
    try:
        statements = [s for s in sqlglot.parse(sql, read="spark") if s is not None]
    except SqlglotError as error:
        details = error.errors[0] if getattr(error, "errors", None) else {}
        message = re.sub(r"\x1b\[[0-9;]*m", "", str(details.get("description") or error).splitlines()[0])
        near = f' at "{details["highlight"]}"' if details.get("highlight") else ""
        raise problem(int(details.get("line") or 1), message + near) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise problem(
            1,
            f"a model is exactly one SELECT; {len(statements)} statements were found"
            if len(statements) != 1
            else "a model is exactly one SELECT",
        )
    return statements[0]


def _tables(sql: str) -> list[tuple[str, Any]]:
    """Each table with its name, CTEs left out."""
    tree, out = _parsed(sql), []
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            name = (
                table.this.name
                if isinstance(table.this, exp.Anonymous)
                else table.this.sql_name()
                if isinstance(table.this, exp.Func)
                else ""
            )
            if name.lower() not in TABLE_FUNCTIONS and not name.lower().startswith("generate_series"):
                raise problem(
                    line(table), f"the table function {name.lower() or table.sql('spark')} is not allowed in a model"
                )
            continue
        parts = [p.name.lower() for p in table.parts]
        if len(parts) == 1 and _is_cte(table, parts[0]):
            continue
        if len(parts) > 1 and parts[0] in PATHS or any(re.search(r"[/:\\]", p) for p in parts):
            raise problem(
                line(table),
                f"{table.sql('spark')}: files are not read by path in Spark SQL; read them in a model of the "
                f"DuckDB dialect",
            )
        out.append((".".join(parts if len(parts) > 1 else ["main", *parts]), table))
    return out


def _is_cte(table: Any, name: str) -> bool:
    parent = table.parent
    while parent is not None:
        with_ = parent.args.get("with_") or parent.args.get("with")
        if with_ is not None and any(c.alias.lower() == name for c in with_.expressions):
            return True
        parent = parent.parent
    return False


def line(node: Any) -> int:
    found = [i.meta.get("line") for i in node.find_all(exp.Identifier) if i.meta.get("line")]
    return min(found, default=1)


def references(sql: str) -> tuple[TableRef, ...]:
    out: dict[str, TableRef] = {}
    for name, table in _tables(sql):
        out.setdefault(name, TableRef(name, line(table)))
    return tuple(out.values())


def translate(sql: str, tables: Mapping[str, tuple[Column, ...]]) -> Translated:
    tree = _parsed(sql)
    forbid(sql)
    edits = []
    for name, table in _tables(sql):
        first, last = table.parts[0].meta, table.parts[-1].meta
        alias = "" if table.alias else f" AS `{table.parts[-1].name}`"
        edits.append((first["start"], last["end"] + 1, f"`{name.replace('.', '__')}`{alias}"))
    text = sql
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    json_columns = {c.name.lower() for columns in tables.values() for c in columns if c.is_json}
    return Translated(
        json_calls(text, json_columns),
        None,
        (),
        tuple(tables),
        bool(VOLATILE.search(sql)),
        tree.args.get("order") is not None,
    )


_JSON = {"json_object", "json_group_array"}


def json_calls(text: str, json_columns: set[str]) -> str:
    """Writes json_object() and json_group_array() in Spark's terms, inner calls first."""
    tokens = sqlglot.tokenize(text, read="spark")
    for at in range(len(tokens) - 2, -1, -1):
        if (
            tokens[at].text.lower() in _JSON
            and tokens[at].token_type != TokenType.STRING
            and tokens[at + 1].text == "("
        ):
            start = tokens[at].start
            end, arguments = _arguments(text, tokens, at + 1)
            made = _call(tokens[at].text.lower(), arguments, json_columns, tokens[at].line)
            return json_calls(text[:start] + made + text[end:], json_columns)
    return text


def _arguments(text: str, tokens: list[Any], at: int) -> tuple[int, list[str]]:
    depth, start, out = 0, tokens[at].end + 1, []
    for token in tokens[at:]:
        if token.text in "([" and token.token_type != TokenType.STRING:
            depth += 1
        elif token.text in ")]" and token.token_type != TokenType.STRING:
            depth -= 1
        if depth == 0 or depth == 1 and token.text == "," and token.token_type != TokenType.STRING:
            out.append(text[start : token.start].strip())
            start = token.end + 1
        if depth == 0:
            return token.end + 1, [] if out == [""] else out
    raise problem(tokens[at].line, "a parenthesis is not closed")


def _piece(value: str, json_columns: set[str]) -> str:
    if value.startswith("/*json*/") or value.strip("`").split(".")[-1].strip("`").lower() in json_columns:
        return f"coalesce({value}, 'null')"
    return f"regexp_replace(to_json(array({value}), map('ignoreNullFields', 'false')), '^\\\\[|\\\\]$', '')"


def _call(name: str, arguments: list[str], json_columns: set[str], at: int) -> str:
    if name == "json_group_array":
        if len(arguments) != 1:
            raise problem(at, "json_group_array() takes one value")
        return (
            f"/*json*/nullif(concat('[', array_join(collect_list({_piece(arguments[0], json_columns)}), ','), "
            f"']'), '[]')"
        )
    if len(arguments) % 2:
        raise problem(at, "json_object() takes keys and values in pairs")
    parts = []
    for i in range(0, len(arguments), 2):
        parts += [
            f"'{',' if i else chr(123)}'",
            _piece(arguments[i], set()),
            "':'",
            _piece(arguments[i + 1], json_columns),
        ]
    return "/*json*/concat(" + ", ".join([*(parts or ["'{'"]), "'}'"]) + ")"
