"""File functions of the SQL: found, checked against the project's folder, described by DuckDB, and put behind a table
name."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from runtime.model import Column
from runtime.sql.asking import types
from runtime.sql.asking.bounded import Bounded
from runtime.sql.asking.gate import Gate, gate
from runtime.sql.asking.said import GateError, one_line
from runtime.sql.asking.tree import Node, line_of, quoted, walk
from runtime.sql.asking.types import UnknownType, spark_type
from runtime.sql.asking.watch import limited
from runtime.sql.model import FileRead, problem
from runtime.sql.scalar.functions import UNFOLDABLE

from . import uneven
from .delta import schema
from .opened import Opened
from .places import Place, state

FORMATS = {
    "read_csv": "csv",
    "read_csv_auto": "csv",
    "read_parquet": "parquet",
    "parquet_scan": "parquet",
    "read_json": "json",
    "read_json_auto": "json",
    "read_ndjson": "json",
    "read_ndjson_auto": "json",
    "read_json_objects": "json",
    "delta_scan": "delta",
}
OPTIONS = {
    "csv": {
        "header",
        "delim",
        "sep",
        "quote",
        "escape",
        "nullstr",
        "types",
        "dtypes",
        "columns",
        "names",
        "all_varchar",
        "dateformat",
        "timestampformat",
        "union_by_name",
        "filename",
        "hive_partitioning",
        "auto_detect",
        "skip",
        "compression",
        "encoding",
        "null_padding",
        "sample_size",
        "comment",
        "allow_quoted_nulls",
        "strict_mode",
        "max_line_size",
        "decimal_separator",
        "thousands",
        "new_line",
        "normalize_names",
        "files_to_sniff",
        "force_not_null",
        "ignore_errors",
        "column_names",
        "column_types",
    },
    "parquet": {"union_by_name", "filename", "hive_partitioning", "hive_types_autocast", "binary_as_string"},
    "json": {
        "columns",
        "format",
        "union_by_name",
        "filename",
        "hive_partitioning",
        "auto_detect",
        "compression",
        "dateformat",
        "timestampformat",
        "records",
        "sample_size",
        "maximum_depth",
        "maximum_object_size",
        "convert_strings_to_integers",
        "field_appearance_threshold",
        "ignore_errors",
        "map_inference_threshold",
    },
    "delta": set(),
}
_PATH = re.compile(r"[/*?]|\.(csv|tsv|txt|parquet|json|jsonl|ndjson)(\.gz|\.zst)?$", re.I)
_KINDS = {
    "csv": "csv",
    "tsv": "csv",
    "txt": "csv",
    "parquet": "parquet",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
}
_READERS = {"csv": "read_csv", "parquet": "read_parquet", "json": "read_json"}
#: Options with which the number of columns is no guess.
_SHAPE = {"delim", "sep", "columns", "names", "column_names", "null_padding", "auto_detect"}
#: What has one value for the time of a check, and how it is written: the day in a file's name, say.
DATES = {"strftime", "current_date", "current_timestamp", "today", "now", "get_current_timestamp"}
_VARYING = {"WINDOW", "STAR", "PARAMETER", "DEFAULT", "POSITIONAL_REFERENCE", "LAMBDA"}
#: Seconds in which the columns of files are found.
SECONDS = 60.0
_described = Bounded[tuple[Any, ...], FileRead](5000)


def is_path(name: str) -> bool:
    return bool(_PATH.search(name))


def reads(nodes: list[Node]) -> list[Node]:
    """The FROM items that read files."""
    found = [
        item
        for item in nodes
        if item.get("type") in ("TABLE_FUNCTION", "BASE_TABLE")
        and (
            item["function"]["function_name"] in FORMATS
            if item["type"] == "TABLE_FUNCTION"
            else len(item["qualified_name"]["path"]) == 1 and is_path(item["table_name"])
        )
    ]
    return sorted(found, key=lambda n: n["query_location"])


def replace(sql: str, nodes: list[Node], place: Place) -> tuple[str, dict[str, FileRead]]:
    """The SQL with every file read replaced by a table `__files.<view>` on the same line, and those reads by name."""
    raw, out, last, found = sql.encode(), b"", 0, {}
    for item in reads(nodes):
        line = line_of(sql, item["query_location"])
        read = describe(item, place, line)
        found[f"__files.{read.view}"] = read
        start, end = item["query_location"], item["query_location"] + item["query_location_length"]
        stem = (
            Path(item["table_name"]).name.split(".")[0] or "file"
            if item["type"] == "BASE_TABLE"
            else item["function"]["function_name"]
        )
        renamed = item.get("column_name_alias") or []
        alias = quoted(item.get("alias") or stem) + (f"({', '.join(map(quoted, renamed))})" if renamed else "")
        out += raw[last:start] + f" __files.{read.view} AS {alias} ".encode() + b"\n" * raw[start:end].count(b"\n")
        last = end
    return (out + raw[last:]).decode(), found


def describe(item: Node, place: Place, line: int) -> FileRead:
    g = gate()
    if item["type"] == "BASE_TABLE":
        suffix = re.sub(r"\.(gz|zst)$", "", item["table_name"].lower()).rsplit(".", 1)[-1]
        if suffix not in _KINDS:
            raise problem(
                line,
                f"FROM '{item['table_name']}': read files by read_csv, read_parquet or read_json, or name a "
                f".csv, .parquet or .json file",
            )
        function, given, options = _READERS[_KINDS[suffix]], [item["table_name"]], dict[str, Any]()
    else:
        function = item["function"]["function_name"]
        given, options = arguments(g, item, function, line)
    kind = FORMATS[function]
    unknown = sorted(set(options) - OPTIONS[kind])
    if unknown:
        raise problem(
            line,
            f"{function}(): the option {unknown[0]} is not supported; supported: {', '.join(sorted(OPTIONS[kind]))}",
        )
    paths = tuple(place.absolute(p, line) for p in given)
    key = (function, paths, repr(sorted(options.items())), place, state(place, paths))
    if key not in _described:
        columns = (
            delta_columns(place, paths[0], line) if kind == "delta" else sniffed(place, function, paths, options, line)
        )
        view = "f_" + hashlib.sha256(repr((key[:3], columns)).encode()).hexdigest()[:16]
        told = tuple(sorted(options.items()))
        _described[key] = FileRead(view, kind, paths, told, columns, function, place)
    return _described[key]


def arguments(g: Gate, item: Node, function: str, line: int) -> tuple[list[str], dict[str, Any]]:
    """The paths and the options of a file function: constants, which DuckDB computes without anything else."""
    given: list[str] = []
    options: dict[str, Any] = {}
    for argument in item["function"]["arguments"]:
        expression, name = argument["expression"], argument.get("name")
        if not name and expression["class"] == "COMPARISON" and expression["left"]["class"] == "COLUMN_REF":
            name, expression = expression["left"]["column_names"][0], expression["right"]
        what = f"the option {name}" if name else "the path"
        odd = next((o for part in walk(expression) if (o := varying(g, part))), None)
        if odd:
            told = f"{function}(): {what} must be a constant; found {odd}: write the value itself"
            raise problem(line, told)
        try:
            value = g.value({**expression, "alias": ""})
        except GateError as error:
            said = error.message.splitlines()[0]
            raise problem(line, f"{function}(): {what} must be a constant ({said}): write the value itself") from None
        if name:
            options[name.lower()] = value
        else:
            given = [str(v) for v in value] if isinstance(value, list) else [str(value)]
    if not given:
        raise problem(line, f"{function}() names no file")
    return given, options


def varying(g: Gate, part: Node) -> str | None:
    """What makes a part of an expression no constant, as a person calls it; None if nothing does."""
    kind = part.get("class")
    if part.get("type") in ("SELECT_NODE", "SET_OPERATION_NODE", "TABLE_FUNCTION", "BASE_TABLE") or kind == "SUBQUERY":
        return "a subquery"
    if kind == "COLUMN_REF":
        name = ".".join(part["column_names"])
        return None if name.lower() in DATES else f"the column {name}"
    if kind == "FUNCTION":
        name = part["function_name"]
        return None if name in g.scalars - UNFOLDABLE or name in DATES else f"{name}()"
    return "a " + str(kind).replace("_", " ").lower() if kind in _VARYING else None


def call(function: str, paths: tuple[str, ...], options: dict[str, Any]) -> str:
    """The file function as DuckDB text."""
    items = ["[" + ", ".join(literal(p) for p in paths) + "]", *(f"{n} = {literal(v)}" for n, v in options.items())]
    return f"{function}({', '.join(items)})"


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(str(k))}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def sniffed(
    place: Place, function: str, paths: tuple[str, ...], options: dict[str, Any], line: int
) -> tuple[Column, ...]:
    matches = place.matches(paths, line)
    if not matches:
        shown = ", ".join(f'"{p.removeprefix(f"{place.project}/")}"' for p in paths)
        raise problem(line, f"{function}(): No files found that match the pattern {shown}")
    with Opened(matches, place, line) as opened, opened.duckdb() as con:
        source = call(function, opened.patterns(), options)
        try:
            rows = asked(con, f"DESCRIBE SELECT * FROM {source}")
            names = [r[0] for r in rows]
            ask = partial(asked, con)
            refused = (
                "" if set(options) & _SHAPE else uneven.one_column(ask, FORMATS[function], source, opened.paths, names)
            )
        except GateError as error:
            delimiter = str(options.get("delim") or options.get("sep") or "") if "sniffing" in error.message else ""
            refused = one_line(error.message) + uneven.odd_line(opened.paths, delimiter)
        refused = opened.said(refused, str(place.project))
    if refused:
        raise problem(line, f"{function}(): {refused}") from None
    columns = []
    for name, text, *_ in rows:
        try:
            columns.append(Column(name, text, spark_type(types.parse(text))))
        except UnknownType:
            raise problem(
                line,
                f"{function}(): column {name} has the type {text}, which Spark has no place for; name the "
                f"columns to read",
            ) from None
    return tuple(columns)


def asked(con: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """DuckDB's answer about files; GateError if it refuses, or takes too long."""
    try:
        with limited(con, SECONDS):
            return con.execute(sql).fetchall()
    except duckdb.InterruptException:
        raise GateError(f"its columns are not found within {SECONDS:g} s; name them with columns = {{…}}") from None
    except duckdb.Error as error:
        raise GateError(str(error)) from None


def delta_columns(place: Place, path: str, line: int) -> tuple[Column, ...]:
    try:
        return schema(place, Path(path), line)
    except (OSError, ValueError, KeyError) as error:
        raise problem(line, f"delta_scan(): {path} is not a Delta table that can be read ({error})") from None
