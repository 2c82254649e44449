"""What a text may ask of the check: everything that would grow beyond measure is refused before DuckDB is asked.

DuckDB's memory limit does not count the texts that a function makes, and a function is not interrupted within: so what
makes much out of little is looked at beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from runtime.sql.model import problem

from .tree import SERIES, Node, first_offset, line_of, walk

#: Characters of a model.
LONGEST = 1_000_000
#: Characters or elements of a value that is computed while a model is checked.
LARGEST = 100_000
#: Parts of a SELECT once each alias stands for what it names.
PARTS = 5_000
#: Columns of a query.
WIDEST = 5_000
#: Functions that make a text or a list as long as a number says.
MAKERS = {
    *SERIES,
    "array_resize",
    "bitstring",
    "format",
    "left_pad",
    "list_resize",
    "lpad",
    "printf",
    "repeat",
    "rpad",
    "sprintf",
}
#: Of these, those whose numbers are values, and no lengths.
FORMATS = {"format", "printf", "sprintf"}
_NUMBER = re.compile(r"\d{5,}")
_WHY = "constants are computed while a model is checked"


def check(sql: str) -> None:
    """SqlProblems for a text that is too long to be looked at."""
    if len(sql) > LONGEST:
        told = f"the model has {len(sql):,} characters; {LONGEST:,} is the most: put its data in a file"
        raise problem(1, told)


def deepest(sql: str) -> int:
    """The line where most is open."""
    depth = most = 0
    at = 0
    for found in re.finditer(r"[(\[{]|[)\]}]|\bCASE\b|\bEND\b", sql, re.I):
        depth += 1 if found[0].upper() in ("(", "[", "{", "CASE") else -1
        if depth > most:
            most, at = depth, found.start()
    return sql.count("\n", 0, at) + 1


def check_sizes(sql: str, nodes: Sequence[Node]) -> None:
    """SqlProblems for constants that are too large, and for aliases of aliases that grow too far."""
    if nodes and _width(nodes[0], {}) > WIDEST:
        told = f"a query over more than {WIDEST:,} columns is not supported: name the columns instead of *"
        raise problem(line_of(sql, first_offset(nodes[0])), told)
    of_rows = {id(node["function"]) for node in nodes if node.get("type") == "TABLE_FUNCTION"}
    for node in nodes:
        wrong = None
        if node.get("type") == "SELECT_NODE":
            wrong = _grown(node)
        elif node.get("class") == "FUNCTION" and id(node) not in of_rows and _size(node) > LARGEST:
            wrong = f"a constant of more than {LARGEST:,} characters or elements is not supported ({_WHY})"
        if wrong:
            raise problem(line_of(sql, first_offset(node)), wrong)


def _width(query: Node, ctes: Mapping[str, int]) -> int:
    """How many columns a query has at least, a table of a name counted as one; more than WIDEST as soon as a part of it
    has."""
    known, most = dict(ctes), 0
    for entry in query["cte_map"]["map"]:
        found = _width(entry["value"]["query_node"], known)
        known[entry["key"].lower()], most = found, max(most, found)
    if most > WIDEST:
        return most
    if query["type"] == "SELECT_NODE":
        rows = _width_of_rows(query["from_table"], known)
        return max(rows if rows > WIDEST else 0, sum(rows if i["class"] == "STAR" else 1 for i in query["select_list"]))
    children = query.get("children") or [query[side] for side in ("left", "right") if query.get(side)]
    return max((_width(child, known) for child in children), default=1)


def _width_of_rows(item: Node, ctes: Mapping[str, int]) -> int:
    if item["type"] == "JOIN":
        return _width_of_rows(item["left"], ctes) + _width_of_rows(item["right"], ctes)
    if item["type"] == "SUBQUERY":
        return _width(item["subquery"]["node"], ctes)
    return ctes.get(item["table_name"].lower(), 1) if item["type"] == "BASE_TABLE" else 1


def _grown(select: Node) -> str | None:
    """DuckDB puts what an alias names in the place of the alias, and so does the translation."""
    sizes: dict[str, int] = {}
    for item in select["select_list"]:
        parts = list(walk(item))
        size = sum(_part(part, sizes) for part in parts)
        if size > PARTS + len(parts):
            named = item.get("alias") or "this column"
            return f"aliases that are made of aliases: {named} stands for more than {PARTS:,} parts"
        if item.get("alias"):
            sizes.setdefault(item["alias"].lower(), size)
    return None


def _part(part: Node, sizes: dict[str, int]) -> int:
    if part.get("class") == "COLUMN_REF" and len(part["column_names"]) == 1:
        return sizes.get(part["column_names"][0].lower(), 1)
    return 1 if "class" in part else 0


def _size(node: Node) -> int:
    """How long a value may get that a function makes of constants; 1 where a column decides, for it is not computed
    here, and for functions that make nothing longer."""
    if node["function_name"] in MAKERS:
        arguments = [a["expression"] for a in node["arguments"]]
        if node["function_name"] in SERIES and (numbers := _whole(arguments)):
            return max(len(range(*numbers)), 1)
        return _made(arguments[:1] if node["function_name"] in FORMATS and _is_fixed(arguments) else arguments)
    if not _holds(node, "LAMBDA"):
        return 1
    out = 1
    for argument in node["arguments"]:
        sizes = [_size(part) for part in walk(argument) if part.get("class") == "FUNCTION"]
        out = min(out * max(sizes, default=1), LARGEST + 1)
    return out


def _whole(arguments: list[Node]) -> list[int]:
    """The numbers of a series, if all are written out."""
    literals = [a.get("literal") or {} for a in arguments]
    numbers = [int(one["text"]) for one in literals if one.get("kind") == "INTEGER"]
    return numbers if len(numbers) == len(arguments) < 4 and 0 not in numbers[2:] else []


def _is_fixed(arguments: list[Node]) -> bool:
    """Whether the text of a format alone says how wide it is, and no argument of it."""
    text = str((arguments[0].get("literal") or {}).get("text") or "") if arguments else ""
    return bool(text) and "*" not in text and not re.search(r"\{[^}]*\{", text)


def _made(arguments: list[Node]) -> int:
    """The length that a maker's numbers ask for, times that of what it repeats."""
    if any(part.get("class") in ("COLUMN_REF", "SUBQUERY") for a in arguments for part in walk(a)):
        return 1
    out = 1
    for argument in arguments:
        for part in walk(argument):
            literal = part.get("literal") or {}
            text = str(literal.get("text") or "")
            if literal.get("kind") == "INTEGER" and text.lstrip("-").isdigit():
                out *= max(abs(int(text)), 1)
            elif literal.get("kind") == "STRING":
                numbers = [int(n) for n in _NUMBER.findall(text)]
                out *= max(len(text), *numbers, 1) if numbers else max(len(text), 1)
            elif literal.get("kind") in ("DECIMAL", "DOUBLE", "NUMBER"):
                out *= LARGEST + 1
            if out > LARGEST:
                return out
    return out


def _holds(node: Node, kind: str) -> bool:
    return any(part.get("class") == kind for part in walk(node.get("arguments", [])))
