"""File functions of the SQL: found, checked against the project's folder, described by DuckDB, and put behind a table
name."""

from __future__ import annotations

import copy
import hashlib
import re
from pathlib import Path
from typing import Any

from runtime.model import Column

from . import types, uneven
from .gate import Gate, GateError, Node, gate, line_of, one_line, quoted, template
from .model import FileRead, SqlProblems
from .places import Place, state
from .types import UnknownType, spark_type

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
_described: dict[tuple[Any, ...], FileRead] = {}


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
            Path(item["table_name"]).name.split(".")[0]
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
            raise SqlProblems(
                [
                    (
                        line,
                        f"FROM '{item['table_name']}': read files by read_csv, read_parquet or read_json, or name a "
                        f".csv, .parquet or .json file",
                    )
                ]
            )
        function, given, options = _READERS[_KINDS[suffix]], [item["table_name"]], dict[str, Any]()
    else:
        function = item["function"]["function_name"]
        given, options = arguments(g, item, function, line)
    kind = FORMATS[function]
    unknown = sorted(set(options) - OPTIONS[kind])
    if unknown:
        raise SqlProblems(
            [
                (
                    line,
                    f"{function}(): the option {unknown[0]} is not supported; supported: "
                    f"{', '.join(sorted(OPTIONS[kind]))}",
                )
            ]
        )
    paths = tuple(place.absolute(p, line) for p in given)
    key = (function, paths, repr(sorted(options.items())), state(paths))
    if key not in _described:
        columns = (
            delta_columns(paths[0], line)
            if kind == "delta"
            else sniffed(g, function, paths, options, str(place.project), line)
        )
        view = "f_" + hashlib.sha256(repr((key[:3], columns)).encode()).hexdigest()[:16]
        if len(_described) > 5000:
            _described.clear()
        _described[key] = FileRead(
            view, kind, paths, tuple(sorted(options.items())), columns, function, str(place.project)
        )
    return _described[key]


def arguments(g: Gate, item: Node, function: str, line: int) -> tuple[list[str], dict[str, Any]]:
    """The paths and the options of a file function."""
    given: list[str] = []
    options: dict[str, Any] = {}
    base = {
        **template(),
        "from_table": {"type": "EMPTY", "alias": "", "sample": None},
        "aggregate_handling": "STANDARD_HANDLING",
    }
    for argument in item["function"]["arguments"]:
        expression, name = argument["expression"], argument.get("name")
        if not name and expression["class"] == "COMPARISON" and expression["left"]["class"] == "COLUMN_REF":
            name, expression = expression["left"]["column_names"][0], expression["right"]
        try:
            value = g.value({**expression, "alias": ""}, base)
        except GateError as error:
            raise SqlProblems(
                [(line, f"{function}(): {name or 'the path'} must be constant ({error.message.splitlines()[0]})")]
            ) from None
        if name:
            options[name.lower()] = value
        else:
            given = [str(v) for v in value] if isinstance(value, list) else [str(value)]
    if not given:
        raise SqlProblems([(line, f"{function}() names no file")])
    return given, options


def call(function: str, paths: tuple[str, ...], options: dict[str, Any]) -> str:
    """The file function as DuckDB text."""
    items = ["[" + ", ".join(literal(p) for p in paths) + "]", *(f"{n} = {literal(v)}" for n, v in options.items())]
    return f"{function}({', '.join(items)})"


def literal(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, int | float):
        return (
            {True: "true", False: "false", None: "NULL"}.get(value, repr(value))
            if isinstance(value, bool) or value is None
            else repr(value)
        )
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(str(k))}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def sniffed(
    g: Gate, function: str, paths: tuple[str, ...], options: dict[str, Any], root: str, line: int
) -> tuple[Column, ...]:
    try:
        rows = g.run(f"DESCRIBE SELECT * FROM {call(function, paths, options)}")
        refused = (
            ""
            if set(options) & _SHAPE
            else uneven.one_column(g, FORMATS[function], call(function, paths, options), paths, [r[0] for r in rows])
        )
    except GateError as error:
        delimiter = str(options.get("delim") or options.get("sep") or "") if "sniffing" in error.message else ""
        refused = one_line(error.message) + uneven.odd_line(paths, delimiter)
    if refused:
        raise SqlProblems([(line, f"{function}(): {refused.replace(root.rstrip('/') + '/', '')}")]) from None
    columns = []
    for name, text, *_ in rows:
        try:
            columns.append(Column(name, text, spark_type(types.parse(text))))
        except UnknownType:
            raise SqlProblems(
                [
                    (
                        line,
                        f"{function}(): column {name} has the type {text}, which Spark has no place for; name the "
                        f"columns to read",
                    )
                ]
            ) from None
    return tuple(columns)


def delta_columns(path: str, line: int) -> tuple[Column, ...]:
    from .delta import schema

    try:
        return schema(Path(path))
    except (OSError, ValueError, KeyError) as error:
        raise SqlProblems([(line, f"delta_scan(): {path} is not a Delta table that can be read ({error})")]) from None


__all__ = ["Place", "copy", "describe", "reads", "replace"]
