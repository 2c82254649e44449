"""CSV and JSON files in which DuckDB sees no columns though there should be some: told, instead of whole lines sent as
one value."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runtime.sql.asking.said import GateError

#: Asks DuckDB.
Ask = Callable[[str], list[tuple[Any, ...]]]
#: Fields of a line are told apart by one of these, as DuckDB guesses.
DELIMITERS = ",;|\t"
UNKNOWN = ", so that its columns are not known: name them with columns = {'id': 'BIGINT'}"
#: So many bytes of a file are looked through for the odd line.
LOOK = 4_000_000


def one_column(ask: Ask, kind: str, source: str, paths: Sequence[Path], names: list[str]) -> str:
    """What is wrong with files read as one column; empty if nothing is. `source` is the file function as DuckDB
    text."""
    if kind not in ("csv", "json") or len(names) != 1:
        return ""
    found = list(paths)
    if found and not any(f.stat().st_size for f in found):
        return f"{found[0]} is empty{UNKNOWN}" + (", or write a header" if kind == "csv" else "")
    if names[0].startswith("\ufffe"):
        return f"{found[0]} is UTF-16 with the high byte first, which is not supported: save it as UTF-8"
    try:
        first = ask(f"SELECT * FROM {source} LIMIT 1") if names[0] in ("column0", "json") else []
    except GateError:  # whoever reads the rows is told
        return ""
    if kind == "json":
        return f"{found[0]} has no object{UNKNOWN}" if found and names == ["json"] and not first else ""
    text = str(first[0][0]) if first else names[0]
    delimiter = max(DELIMITERS, key=text.count)
    if delimiter not in text:
        return ""
    return (
        f"each line of {found[0]} would be one value, {text[:100]!r}, because the lines do not all have the same "
        f"number of fields"
        f"{odd_line(paths, delimiter)}; correct the file, or write null_padding = true where the last fields may be "
        f"missing, ignore_errors = true to leave "
        f"such lines out, or another delim if it has one column"
    )


def odd_line(paths: Sequence[Path], delimiter: str) -> str:
    """`: FILE, line 7, has 3, the first line 2`, where that can be seen."""
    for path in paths if delimiter else ():
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = csv.reader(file.read(LOOK).splitlines(keepends=True)[:-1] or [""], delimiter=delimiter)
                expected = len(next(lines, []))
                for fields in lines:
                    if fields and len(fields) != expected:
                        return f": {path}, line {lines.line_num}, has {len(fields)}, the first line {expected}"
        except (OSError, ValueError, csv.Error, TypeError):  # compressed, or of another encoding
            continue
    return ""
