"""The header of a model file: `-- @directive: value` lines, then exactly one SELECT."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runtime.errors import ConfigError, Problem
from runtime.model import KINDS, Mask, MaxDeletes, Model, Sink
from runtime.project import schedules

NAMES = (
    "kind",
    "sink",
    "push",
    "unique_key",
    "group_key",
    "partitioned_by",
    "identifier",
    "on_missing",
    "max_deletes",
    "renamed_from",
    "mask",
    "schedule",
    "retention",
    "description",
    "tags",
    "dialect",
)
LINE = re.compile(r"\s*--\s*@(\w+)\s*(:?)\s*(.*?)\s*$")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
QUOTED = r'"(?:[^"]|"")*"'
#: Which kinds a directive goes with; those not named go with all.
ONLY_FOR = {"group_key": ("tracked",), "on_missing": ("merge",), "partitioned_by": ("partition",)}


class Wrong(ValueError):
    """A value that does not fit; its text says what was found and what is expected."""


def name_of(path: Path, project_dir: Path) -> tuple[str, str]:
    """(`schema.name` in lower case, the file relative to the project). Raises Wrong for a name that is no
    identifier."""
    relative = path.relative_to(project_dir)
    parts = relative.parts[1:-1]
    file = relative.as_posix()
    if len(parts) > 1:
        raise Wrong(f"models lie in models/ or one folder below it; {'/'.join(parts)} is deeper")
    schema = parts[0] if parts else "main"
    for part in (schema, path.stem):
        if not IDENTIFIER.match(part):
            raise Wrong(
                f"{part!r} is no name for a model: ASCII letters, digits and underscore, not starting with a digit"
            )
    return f"{schema}.{path.stem}".lower(), file


def parse_model(path: Path, project_dir: Path) -> tuple[Model | None, list[Problem]]:
    """The model of one file, and everything that is wrong with its header. None where no model can be made of it."""
    file = path.relative_to(project_dir).as_posix()
    try:
        name, file = name_of(path, project_dir)
    except Wrong as error:
        return None, [Problem(file, 1, str(error))]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        return None, [Problem(file, 1, f"cannot be read: {error.strerror}")]
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        return None, [
            Problem(
                file, line, f"is no UTF-8 text (byte {error.object[error.start]:#04x} on this line): save it as UTF-8"
            )
        ]
    if "\0" in text:
        return None, [
            Problem(
                file,
                text[: text.index("\0")].count("\n") + 1,
                "has a NUL character on this line: save it as UTF-8 text",
            )
        ]
    return _Header(name, file, path, text).model()


class _Header:
    def __init__(self, name: str, file: str, path: Path, text: str) -> None:
        self.name, self.file, self.path = name, file, path
        self.lines = re.split(r"\r\n|\r|\n", text)  # str.splitlines would also break texts at U+2028 and its like
        self.problems: list[Problem] = []
        self.found: dict[str, str] = {}
        self.at: dict[str, int] = {}

    def wrong(self, line: int, message: str) -> None:
        self.problems.append(Problem(self.file, line, message))

    def model(self) -> tuple[Model | None, list[Problem]]:
        start = self._read()
        sql = re.sub(r"(\s*;)+\s*\Z", "", "\n".join(self.lines[start:]).rstrip())
        if not sql.strip():
            self.wrong(max(len(self.lines), 1), "there is no SELECT after the header")
        values = self._values()
        self._fits(values)
        if not sql.strip():
            return None, self.problems
        return Model(
            name=self.name, file=self.file, path=self.path, sql=sql, sql_line=start + 1, lines=self.at, **values
        ), self.problems

    def _read(self) -> int:
        """Collects the directives; the index of the first line of the body."""
        start, quiet = None, False  # quiet: within /* … */ above the SELECT
        for number, line in enumerate(self.lines, 1):
            if start is None and (quiet or line.lstrip().startswith("/*")):
                line, quiet = _uncommented(line, quiet)
            match = LINE.match(line)
            if match:
                self._directive(number, match, after=start is not None)
            elif start is None and line.strip() and not line.strip().startswith("--"):
                start = number - 1
        return len(self.lines) if start is None else start

    def _directive(self, number: int, match: re.Match[str], *, after: bool) -> None:
        name, colon, value = match.groups()
        if name.lower() not in NAMES:
            if after and not colon:
                return  # a comment of the body that happens to begin with @
            near = difflib.get_close_matches(name.lower(), NAMES, 1)
            self.wrong(
                number, f"@{name} is no directive{f'; did you mean @{near[0]}?' if near else ': ' + ', '.join(NAMES)}"
            )
        elif after:
            self.wrong(number, f"@{name} stands after the SELECT: directives belong above it")
        elif not colon:
            self.wrong(number, f"@{name} needs a colon: -- @{name}: value")
        else:
            name = "sink" if name.lower() == "push" else name.lower()
            if name in self.found:
                self.wrong(number, f"@{match[1]} is repeated: it stands on line {self.at[name]} already")
                return
            self.found[name], self.at[name] = value, number

    def _values(self) -> dict[str, Any]:
        readers: dict[str, tuple[str, Callable[[str], Any]]] = {
            "kind": ("kind", _kind),
            "sink": ("sink", _sink),
            "identifier": ("identifier", _one),
            "on_missing": ("on_missing", _choice("ignore", "delete")),
            "max_deletes": ("max_deletes", _max_deletes),
            "renamed_from": ("renamed_from", _renamed),
            "mask": ("masks", _masks),
            "schedule": ("schedule", _schedule),
            "retention": ("retention", _retention),
            "description": ("description", str),
            "tags": ("tags", _tags),
            "dialect": ("dialect", _choice("duckdb", "spark")),
            "unique_key": ("unique_key", _columns),
            "group_key": ("group_key", _columns),
            "partitioned_by": ("partitioned_by", _columns),
        }
        values: dict[str, Any] = {}
        for name, text in self.found.items():
            field, read = readers[name]
            try:
                values[field] = read(text)
            except Wrong as error:
                self.wrong(self.at[name], f"@{name}: {error}")
        return values

    def _fits(self, values: dict[str, Any]) -> None:
        """Moves the key directives into `key` and checks what goes with which kind."""
        keys = {n: values.pop(n) for n in ("unique_key", "group_key", "partitioned_by") if n in values}
        kind = values.get("kind", "table")
        if "kind" in self.found and "kind" not in values:
            return  # an unknown kind says nothing of its key
        for name, kinds in ONLY_FOR.items():
            if name in self.found and kind not in kinds:
                self.wrong(self.at[name], f"@{name} goes with {', '.join(kinds)}, not with {kind}")
        if kind == "table" and "unique_key" in keys:
            self.wrong(
                self.at["unique_key"],
                "@unique_key goes with merge, scd2, append, tracked and partition, not with table",
            )
        needs = {
            "merge": ("unique_key",),
            "scd2": ("unique_key",),
            "tracked": ("group_key", "unique_key"),
            "partition": ("partitioned_by", "unique_key"),
            "append": ("unique_key",),
        }.get(kind, ())
        given = [n for n in needs if n in keys]
        if len(given) > 1:
            self.wrong(self.at[given[1]], f"@{given[0]} and @{given[1]} say the same: give one of them")
        if given:
            values["key"] = keys[given[0]]
        elif needs and kind != "append" and not any(n in self.found for n in needs):
            self.wrong(self.at.get("kind", 1), f"kind {kind} needs " + " or ".join(f"@{n}: column" for n in needs))


def _uncommented(line: str, quiet: bool) -> tuple[str, bool]:
    """What of a line stands behind the block comments that it begins with, and whether one of them goes on."""
    while quiet or line.lstrip().startswith("/*"):
        _, end, line = line.partition("*/") if quiet else line.lstrip()[2:].partition("*/")
        quiet = not end
        if quiet:
            return "", True
    return line, False


def _kind(text: str) -> str:
    if text.lower() == "events":
        raise Wrong(
            "events are collected, not sent: this kind has no sink and is not supported; use append for rows that are "
            "only added"
        )
    if text.lower() not in KINDS:
        raise Wrong(f"{text!r} is no kind; there are {', '.join(KINDS)}")
    return text.lower()


def _sink(text: str) -> Sink:
    match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:\((.*)\))?", text, re.S)
    if not match:
        raise Wrong(f"the name of a function in lib/ is expected, such as crm or crm('contacts'); found {text!r}")
    return Sink(match[1], _arguments(match[2]) if match[2] is not None else ())


def _arguments(text: str) -> tuple[str, ...]:
    """Quoted texts, separated by commas; a doubled quote stands for itself, as in SQL."""
    if not text.strip():
        return ()
    item = r"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)")\s*"""
    if not re.fullmatch(f"{item}(?:,{item})*", text, re.S):
        raise Wrong(f"arguments are quoted texts separated by commas, such as ('a', 'b'); found ({text})")
    return tuple(a.replace("''", "'") if a or not b else b.replace('""', '"') for a, b in re.findall(item, text, re.S))


def _parts(text: str) -> list[str]:
    """What commas part; those within double quotes do not."""
    return [part.strip() for part in re.sub(f"({QUOTED})|,", lambda m: m[1] or "\0", text).split("\0")]


def _bare(name: str) -> str:
    """A column as SQL names it: within double quotes a doubled one stands for itself."""
    return name[1:-1].replace('""', '"') if re.fullmatch(QUOTED, name) else name


def _one(text: str) -> str:
    if not text or len(_parts(text)) > 1:
        raise Wrong(f"one column is expected; found {text!r}")
    return _bare(text)


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(map(_bare, _parts(text)))
    if not all(names):
        raise Wrong(f"a column, or several separated by commas, is expected; found {text!r}")
    twice = [n for i, n in enumerate(names) if n.lower() in [m.lower() for m in names[:i]]]
    if twice:
        raise Wrong(f"{twice[0]!r} stands twice in {text!r}")
    return names


def _tags(text: str) -> tuple[str, ...]:
    try:
        return _columns(text)
    except Wrong as error:
        raise Wrong(str(error).replace("a column, or several", "a tag, or several")) from None


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in allowed:
            raise Wrong(f"{' or '.join(allowed)} is expected; found {text!r}")
        return text.lower()

    return read


def _max_deletes(text: str) -> MaxDeletes:
    match = re.fullmatch(r"(\d+)\s*(%?)", text)
    if not match or (match[2] and int(match[1]) > 100):
        raise Wrong(f"a number of records or a percentage is expected, such as 500 or 50%; found {text!r}")
    return MaxDeletes(int(match[1]), bool(match[2]))


def _renamed(text: str) -> str:
    parts = text.lower().split(".")
    if len(parts) > 2 or not all(IDENTIFIER.match(p) for p in parts):
        raise Wrong(f"the old name of the model is expected, such as sync.contacts; found {text!r}")
    return text.lower() if len(parts) == 2 else f"main.{text.lower()}"


def _masks(text: str) -> tuple[Mask, ...]:
    masks: list[Mask] = []
    for part in _parts(text):
        match = re.fullmatch(f"({QUOTED}|[^:]+?)\\s*(?::(.*))?", part)
        column, how = (_bare(match[1]), "redact" if match[2] is None else match[2].strip()) if match else ("", "")
        if how not in ("hash", "redact", "last4"):
            raise Wrong(f"column, column:hash, column:redact or column:last4 is expected; found {part!r}")
        if column.lower() in (m.column.lower() for m in masks):
            raise Wrong(f"{column!r} stands twice in {text!r}")
        masks.append(Mask(column, how))  # type: ignore[arg-type]
    return tuple(masks)


def _schedule(text: str) -> str:
    try:
        schedules.check(text)
    except ConfigError as error:
        raise Wrong(str(error)) from None
    return text


def _retention(text: str) -> int:
    if not re.fullmatch(r"\d{1,5}", text) or int(text) < 1:
        raise Wrong(f"a number of days from 1 on is expected; found {text!r}")
    return int(text)


def columns_named(model: Model) -> Sequence[tuple[str, str]]:
    """(directive, column) for every column that the header names."""
    key = next((n for n in ("unique_key", "group_key", "partitioned_by") if n in model.lines), "kind")
    named = [(key, k) for k in model.key] + [("mask", m.column) for m in model.masks]
    return named + ([("identifier", model.identifier)] if model.identifier else [])
