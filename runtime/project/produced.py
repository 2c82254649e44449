"""What a model's SELECT produces: whether directives and destinations can take it, and what to warn of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from runtime.columns import HASH, OURS
from runtime.errors import Problem
from runtime.model import Column, Model
from runtime.project import directives
from runtime.sql import Translated

RESERVED = (OURS, HASH)
#: The type itself, also within lists and structs; not a field that has this name.
INTERVAL = re.compile(r"\bINTERVAL(?=\[|,|\)|$)")
NO_CODE = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.S)
LIMIT = re.compile(r"\b(?:limit|offset)\s+[\d(]", re.I)
FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
SCD2_COLUMNS = ("valid_from_snapshot", "valid_to_snapshot", "is_current")
Wrong = Callable[[int, str], None]


def check_columns(model: Model, columns: Sequence[Column], wrong: Wrong) -> Model:
    """Says what is wrong with the columns; the model with its key and identifier as the columns spell them."""
    names = {c.name.lower(): c.name for c in columns}
    shown = ", ".join(c.name for c in columns)
    for directive, column in directives.columns_named(model):
        if column.lower() not in names:
            wrong(
                model.line(directive),
                f"@{directive} names the column {column!r}, which the SELECT does not produce; it produces {shown}",
            )
    for c in columns:
        if c.name.lower().startswith(RESERVED):
            wrong(
                model.sql_line,
                f"the column {c.name} begins with a reserved name ({', '.join(RESERVED)}): rename it",
            )
        if model.kind == "scd2" and c.name.lower() in SCD2_COLUMNS:
            wrong(model.sql_line, f"the column {c.name} is reserved for kind scd2, which adds it: rename it")
        if taken := _taken(c.name):
            wrong(
                model.sql_line,
                f"the column {c.name} {taken}, which Delta tables cannot take: give it another with AS",
            )
        if INTERVAL.search(c.duckdb_type):
            wrong(
                model.sql_line,
                f"the column {c.name} is an INTERVAL, which has no form at a destination: cast it, for example to "
                f"VARCHAR",
            )
    if len(names) < len(columns):
        twice = sorted({c.name for c in columns if sum(d.name.lower() == c.name.lower() for d in columns) > 1})
        wrong(
            model.sql_line,
            f"the SELECT produces {', '.join(twice)} more than once: give each column a name of its own",
        )
    masked_keys = {k.lower() for k in model.key} & {m.column.lower() for m in model.masks if m.how != "hash"}
    for column in sorted(masked_keys):
        wrong(
            model.line("mask"),
            f"@mask: the key column {column} can only be masked with hash, so that its records can be found",
        )
    return replace(
        model,
        key=tuple(names.get(k.lower(), k) for k in model.key),
        identifier=model.identifier and names.get(model.identifier.lower(), model.identifier),
    )


def _taken(name: str) -> str:
    """Why no table can have a column of this name; empty where one can."""
    if "`" in name:
        return "has a backtick in its name"
    if name.lower() == "_metadata":
        return "has a name that Spark uses itself"
    return "has a name that Delta's change feed uses itself" if name.lower() in FEED_COLUMNS else ""


def _unordered_limit(sql: str) -> int | None:
    """The line, from 0, of a LIMIT or OFFSET in whose own SELECT no ORDER BY stands before it."""
    text = NO_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), sql)
    for limit in LIMIT.finditer(text):
        depth, before = 0, []
        for c in reversed(text[: limit.start()]):
            depth += (c == ")") - (c == "(")
            if depth < 0:
                break
            if not depth:
                before.append(c)
        if not re.search(r"\border\s+by\b", "".join(reversed(before)), re.I):
            return text.count("\n", 0, limit.start())
    return None


def warnings(model: Model) -> list[Problem]:
    """What a person should know of a model that is right."""
    found = []
    if model.kind == "append" and not model.key:
        told = "append without @unique_key: equal content is sent once per copy"
        found.append(Problem(model.file, model.line("kind"), told))
    limit = _unordered_limit(model.sql)
    if limit is not None:
        told = "LIMIT without ORDER BY: which rows are sent is not stable"
        found.append(Problem(model.file, model.sql_line + limit, told))
    return found


def left_out(model: Model, translated: Translated) -> list[Problem]:
    """The patterns of a model that pass over the install's own folder, at the line of its SELECT."""
    return [
        Problem(model.file, model.sql_line, f"{read.function}('{path}') leaves out the data folder of this install")
        for read in translated.files
        for path in read.paths
        if read.place is not None and read.place.left_out(path)
    ]
