"""Translations that outlive the process: a check of models that did not change asks neither DuckDB nor Spark's parser.

A file of SQLite in the data folder, of which nothing depends: it can be deleted at any time, and one that cannot be
used is passed over. An entry is found by everything that a translation comes from: the text, the columns of the tables
that it reads, the folders that it may read, the state of its files, and the translators themselves.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from runtime.config import from_env
from runtime.model import Column

from .files.places import Place, state
from .model import Call, FileRead, SqlProblems, TableRef, Translated

FILE = "translations.sqlite3"
#: More entries than this, and the oldest go.
MOST = 20_000
#: What has another value another day, or in another process.
_DAILY = re.compile(
    r"\b(?:today|now|current_\w+|localtime\w*|transaction_timestamp|get_current\w*|random|uuid\w*|gen_random_uuid|getenv|getvariable)\b",
    re.I,
)
_thread = threading.local()
#: Texts of Spark, and whether their models met others than the usual spellings: the file is asked once a process.
_exact: dict[str, bool] = {}


def current() -> Memory | None:
    """The memory of this thread while it is `remembering`."""
    return getattr(_thread, "memory", None)


@contextmanager
def remembering() -> Iterator[None]:
    """References and translations of this thread are looked up, and kept for later processes."""
    if current() is not None:
        yield
        return
    path = from_env().data_dir / FILE
    try:
        _thread.memory = Memory(path)
    except sqlite3.Error as error:
        _thread.memory = None
        if type(error) is sqlite3.DatabaseError:  # no database, or a damaged one: the next check begins anew
            path.unlink(missing_ok=True)
    try:
        yield
    finally:
        memory, _thread.memory = current(), None
        if memory:
            memory.close()


@cache
def _translators() -> list[Any]:
    """What decides how a text is translated besides the text: changes with each version of the engine."""
    own = Path(__file__).parent
    stats = [(str(p.relative_to(own)), s.st_size, s.st_mtime_ns) for p in sorted(own.rglob("*.py")) if (s := p.stat())]
    return [1, version("duckdb"), version("sqlglot"), stats]


class Memory:
    """The open file; new entries are written when it is closed."""

    def __init__(self, path: Path) -> None:
        self._new: dict[str, bytes] = {}
        self._ahead: dict[str, bytes | None] = {}  # what was fetched: None for what the file does not know
        self._file = sqlite3.connect(path, timeout=1)
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, made REAL NOT NULL, value BLOB NOT NULL) WITHOUT "
            "ROWID"
        )

    def close(self) -> None:
        with suppress(sqlite3.Error):  # another process writes the same at this moment
            if self._new:
                with self._file:
                    self._file.executemany(
                        "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)",
                        [(k, time.time(), v) for k, v in self._new.items()],
                    )
                    self._file.execute(
                        "DELETE FROM kept WHERE key IN (SELECT key FROM kept ORDER BY made DESC LIMIT -1 OFFSET ?)",
                        [MOST],
                    )
        self._file.close()

    def look_ahead(self, models: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Fetches the references of all these (SQL, dialect) at once; those that are not known."""
        keys = {_key("references", dialect, sql): (sql, dialect) for sql, dialect in models}
        self._fetch(list(keys))
        return [model for key, model in keys.items() if not self._ahead.get(key)]

    def look_further(
        self, models: Sequence[tuple[str, str, Mapping[str, tuple[Column, ...]]]], place: Place
    ) -> list[int]:
        """The same of the translations of these (SQL, dialect, tables that it reads): the places of those that are not
        known."""
        keys = [_translation_key(*model, place) for model in models]
        self._fetch(keys)
        return [at for at, key in enumerate(keys) if not self._ahead.get(key)]

    def _fetch(self, keys: list[str]) -> None:
        with suppress(sqlite3.Error):
            rows = self._file.execute(
                "SELECT key, value FROM kept WHERE key IN (SELECT value FROM json_each(?))",
                [orjson.dumps(keys).decode()],
            )
            self._ahead |= {**dict.fromkeys(keys), **dict(rows.fetchall())}

    def references(self, sql: str, dialect: str) -> tuple[TableRef, ...] | None:
        found = self._get(_key("references", dialect, sql))
        return None if found is None else tuple(TableRef(*item) for item in found)

    def keep_references(self, sql: str, dialect: str, found: tuple[TableRef, ...]) -> None:
        self._put(_key("references", dialect, sql), [[t.name, t.line] for t in found])

    def translation(
        self, sql: str, dialect: str, tables: Mapping[str, tuple[Column, ...]], place: Place
    ) -> Translated | None:
        """None as well if its files are others now, or may not be read any more."""
        found = self._get(_translation_key(sql, dialect, tables, place))
        if found is None:
            return None
        files = tuple(
            FileRead(
                view,
                kind,
                tuple(paths),
                tuple((n, v) for n, v in options),
                _columns(columns),
                function,
                place,
            )
            for view, kind, paths, options, columns, function in found["files"]
        )
        try:
            for path in (path for file in files for path in file.paths):
                place.absolute(path, 1)
            if _states(files, place) != found["states"]:
                return None
        except SqlProblems:
            return None
        columns = found["columns"]
        made = [
            Translated(
                text,
                None if columns is None else _columns(columns),
                files,
                tuple(found["tables"]),
                found["volatile"],
                found["ordered"],
                tuple(_call(*said) for said in calls),
            )
            for text, calls in found["texts"]
        ]
        return replace(made[0], exact=made[1]) if made[1:] else made[0]

    def keep_translation(
        self, sql: str, dialect: str, tables: Mapping[str, tuple[Column, ...]], place: Place, made: Translated
    ) -> None:
        if any(
            f.format == "delta" for f in made.files
        ):  # its folder does not tell that the columns of the table changed
            return
        if (
            not all(_is_written(path, sql, place) for f in made.files for path in f.paths)
            or made.files
            and _DAILY.search(sql)
        ):
            return  # which files they are is computed: from the date of today, say
        files = [[f.view, f.format, f.paths, f.options, _told(f.columns), f.function] for f in made.files]
        with suppress(TypeError):  # an option that JSON has no form for
            self._put(
                _translation_key(sql, dialect, tables, place),
                {
                    "texts": [[one.spark_sql, list(map(_said, one.calls))] for one in (made, made.exact) if one],
                    "columns": None if made.columns is None else _told(made.columns),
                    "files": files,
                    "states": _states(made.files, place),
                    "tables": made.tables,
                    "volatile": made.volatile,
                    "ordered": made.ordered,
                },
            )

    def is_exact(self, sql: str) -> bool:
        return bool(self._get(_key("exact", sql)))

    def keep_exact(self, sql: str) -> None:
        self._put(_key("exact", sql), True)

    def _get(self, key: str) -> Any:
        with suppress(sqlite3.Error, orjson.JSONDecodeError):
            if key in self._ahead:
                found = self._ahead[key]
                return orjson.loads(found) if found else None
            row = self._file.execute("SELECT value FROM kept WHERE key = ?", [key]).fetchone()
            return orjson.loads(row[0]) if row else None
        return None

    def _put(self, key: str, value: Any) -> None:
        self._new[key] = orjson.dumps(value)


def chosen(made: Translated) -> Translated:
    """The translation, or the exact one of a model in which texts of another spelling were met."""
    if made.exact is None:
        return made
    if made.spark_sql not in _exact:
        _exact[made.spark_sql] = False
        with suppress(sqlite3.Error), closing(Memory(from_env().data_dir / FILE)) as memory:
            _exact[made.spark_sql] = memory.is_exact(made.spark_sql)
    return made.exact if _exact[made.spark_sql] else made


def choose_exact(made: Translated) -> None:
    """From now on `chosen` gives the exact one of this translation, in later processes too if that can be kept."""
    _exact[made.spark_sql] = True
    with suppress(sqlite3.Error), closing(Memory(from_env().data_dir / FILE)) as memory:
        memory.keep_exact(made.spark_sql)


def _is_written(path: str, sql: str, place: Place) -> bool:
    """Whether a path stands in the SQL as it is."""
    forms = {path, os.path.relpath(path, place.project)}
    return any(f"{q}{form.replace(q, q + q)}{q}" in sql for form in forms for q in ("'", '"'))


def _key(*said: Any) -> str:
    return hashlib.sha256(orjson.dumps([_translators(), *said])).hexdigest()


def _translation_key(sql: str, dialect: str, tables: Mapping[str, tuple[Column, ...]], place: Place) -> str:
    return _key(
        "translation",
        dialect,
        sql,
        [[name, _told(columns)] for name, columns in tables.items()],
        str(place.project),
        [str(p) for p in (*place.allowed, "", *place.hidden)],
    )


def _told(columns: tuple[Column, ...]) -> list[list[str]]:
    return [[c.name, c.duckdb_type, c.spark_type] for c in columns]


def _columns(told: list[list[str]]) -> tuple[Column, ...]:
    return tuple(Column(*column) for column in told)


def _said(call: Call) -> list[Any]:
    return [call.name, call.inputs, call.expressions, call.returns, call.places]


def _call(name: str, inputs: list[Any], expressions: list[Any], returns: str, places: list[Any]) -> Call:
    return Call(name, tuple(map(tuple, inputs)), tuple(map(tuple, expressions)), returns, tuple(map(tuple, places)))


def _states(files: tuple[FileRead, ...], place: Place) -> list[list[list[Any]]]:
    return [[list(item) for item in state(place, file.paths)] for file in files]
