"""A Delta table in the project's folder: its log, read without Spark, and its files, all of which lie below it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from runtime.model import Column
from runtime.sql.asking import types
from runtime.sql.asking.types import spark_type
from runtime.sql.model import problem

from .opened import Opened, open_checked
from .places import Look, Match, Place

LOG = "_delta_log"
#: The actions of a log that name files.
NAMING = ("add", "cdc", "remove", "sidecar")
_COMMIT = re.compile(
    r"\d+(\.\d+\.compacted)?\.json|\d+\.checkpoint(\.[\w.-]+)?\.(parquet|json)|_sidecars/[\w.-]+\.parquet"
)

_DUCKDB = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "double": "DOUBLE",
    "float": "FLOAT",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


def schema(place: Place, path: Path, line: int) -> tuple[Column, ...]:
    """Raises OSError or ValueError if there is no log, SqlProblems if it leads elsewhere."""
    with tempfile.TemporaryDirectory(prefix="ondatra-delta-") as folder:
        found = copied_log(place, path, Path(folder), line)
    fields = json.loads(found["schemaString"])["fields"]
    return tuple(Column(f["name"], text := duckdb_type(f["type"]), spark_type(types.parse(text))) for f in fields)


def opened(place: Place, path: Path, line: int = 1) -> tuple[Opened, Path]:
    """The table's files as they lie now, and the folder to read it from: its log is a copy that was looked through, its
    data are links to what is open."""
    matches = [m for m in _table_files(place, path, line) if m.path.relative_to(path).parts[0] != LOG]
    files = Opened(matches, place, line, [f"table/{m.path.relative_to(path)}" for m in matches])
    try:
        copied_log(place, path, files.folder / "table" / LOG, line)
    except BaseException:
        files.close()
        raise
    return files, files.folder / "table"


def copied_log(place: Place, path: Path, into: Path, line: int) -> dict[str, Any]:
    """Copies the log's commits and checkpoints, and looks the copies through: the newest metaData. SqlProblems for a
    file that lies elsewhere than below the table."""
    found, look = None, Look(place)
    for match in _table_files(place, path / LOG, line):
        name = match.path.relative_to(path / LOG)
        if not _COMMIT.fullmatch(str(name)):
            continue  # checksums and hints, which say the same again
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        with open(open_checked(match, look, line), "rb") as source, (into / name).open("wb") as target:
            shutil.copyfileobj(source, target)
    for file in sorted(into.rglob("*"), key=lambda f: (f.suffix != ".parquet", f.name)):
        for action in _actions(file) if file.is_file() else ():
            found = action.get("metaData") or found
            _check(action, path, line)
    if not found:
        raise ValueError("it has no log")
    return found


def _table_files(place: Place, folder: Path, line: int) -> Iterator[Match]:
    """The files below a folder, through no links."""
    look = Look(place)
    for parent, folders, names in os.walk(folder):
        for name in sorted([*names, *(f for f in folders if (Path(parent) / f).is_symlink())]):
            path = Path(parent) / name
            if path.is_symlink():
                raise problem(line, f"delta_scan(): {path} is a link: a Delta table holds its own files only")
            yield place.checked(path, line, look)


def _actions(file: Path) -> Iterator[dict[str, Any]]:
    if file.suffix == ".json":
        for text in file.read_text(encoding="utf-8").splitlines():
            action = json.loads(text) if text.strip() else {}
            yield action if isinstance(action, dict) else {}
    else:
        import pyarrow.parquet as pq

        parts = pq.ParquetFile(file)
        wanted = [c for c in parts.schema_arrow.names if c in ("metaData", *NAMING)]
        for batch in parts.iter_batches(columns=wanted):
            yield from batch.to_pylist()


def _check(action: dict[str, Any], path: Path, line: int) -> None:
    for kind in NAMING:
        said = action.get(kind)
        if not said:
            continue
        name = unquote(str(said.get("path") or ""))
        vector = said.get("deletionVector") or {}
        if name.startswith("/") or re.match(r"[a-z][a-z0-9+.-]*:", name, re.I) or ".." in name.split("/"):
            elsewhere = name
        elif vector.get("storageType") not in (None, "u", "i"):
            elsewhere = str(vector.get("pathOrInlineDv"))
        else:
            continue
        raise problem(line, f"delta_scan(): the log of {path} names the file {elsewhere}, which is not below it")


def duckdb_type(kind: Any) -> str:
    if isinstance(kind, str):
        return kind.upper() if kind.startswith("decimal") else _DUCKDB[kind]
    if kind["type"] == "array":
        return duckdb_type(kind["elementType"]) + "[]"
    if kind["type"] == "map":
        return f"MAP({duckdb_type(kind['keyType'])}, {duckdb_type(kind['valueType'])})"
    return "STRUCT(" + ", ".join(f'"{f["name"]}" {duckdb_type(f["type"])}' for f in kind["fields"]) + ")"
