"""`ondatra.toml`: the project's dialect, and the sources outside of it by name. Secrets stand in the environment, never
in the file.

A connection reaches exactly what it says and nothing with the install's own credentials: URLs hold no parameters,
drivers take the properties on a list (others load code or files), and an object store needs keys of its own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from runtime.config import from_env
from runtime.custody.redact import HIDDEN, everywhere
from runtime.custody.secrets import Secrets
from runtime.errors import Problem
from runtime.model import Dialect

FILE = "ondatra.toml"
#: Names that DuckDB or Spark give a meaning of their own.
TAKEN = {
    "main",
    "memory",
    "system",
    "temp",
    "spark_catalog",
    "parquet",
    "csv",
    "json",
    "orc",
    "text",
    "delta",
    "avro",
    "binaryfile",
    "jdbc",
    "xml",
    "iceberg",
    "image",
    "libsvm",
    "hudi",
    "kafka",
}
DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "redshift": "com.amazon.redshift.Driver",
}
PROPERTIES = {
    "ssl",
    "sslmode",
    "connectTimeout",
    "socketTimeout",
    "loginTimeout",
    "currentSchema",
    "databaseName",
    "encrypt",
    "trustServerCertificate",
    "ApplicationName",
    "applicationName",
    "useSSL",
    "requireSSL",
    "serverTimezone",
}
_SECRET_NAME = re.compile(r"password|passwd|secret|token|credential|private|api.?key|access.?key", re.I)
KEYS = {
    "jdbc": {"type", "url", "user", "password", "properties", "fetch_size"},
    "s3": {"type", "url", "endpoint", "region", "access_key", "secret_key", "session_token", "format"},
    "catalog": {"type", "class", "options"},
}
SECRET = {"password", "access_key", "secret_key", "session_token"}
FORMATS = ("parquet", "delta")
_URL = {
    "jdbc": re.compile(rf"jdbc:({'|'.join(DRIVERS)})://[\w.-]+(:\d+)?(/[\w.-]*)?\Z"),
    "s3": re.compile(r"s3://[a-z0-9][a-z0-9.-]+(/[\w./=-]*)?\Z"),
}
_FORM = {
    "jdbc": "jdbc:postgresql://host:5432/database, without user, password or parameters (there are user, password and "
    "properties for them); "
    f"databases: {', '.join(DRIVERS)}",
    "s3": "s3://bucket or s3://bucket/prefix",
}


@dataclass(frozen=True)
class Connection:
    """One `[connections.NAME]`. `told` is its table with secrets filled in; `missing` names secrets that are not
    set."""

    name: str
    type: str
    told: Mapping[str, Any] = field(repr=False)
    hidden: tuple[str, ...] = field(default=(), repr=False)  # the values that came from the environment
    missing: tuple[str, ...] = ()
    source: str = ""  # where a missing secret is to be set

    def scrub(self, text: str) -> str:
        """A message of the other side, without this connection's secrets."""
        for value in self.hidden:
            text = text.replace(value, HIDDEN)
        return text


@dataclass(frozen=True)
class Settings:
    dialect: Dialect | None = None
    connections: Mapping[str, Connection] = field(default_factory=dict)


def read(folder: Path, secrets: Secrets) -> tuple[Settings, list[Problem]]:
    """The settings of a project folder; without the file, none."""
    path = folder / FILE
    if not path.is_file():
        return Settings(), []
    try:
        text = path.read_text(encoding="utf-8")
        told = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = re.search(r"at line (\d+)", str(error))
        return Settings(), [Problem(FILE, int(line[1]) if line else 1, f"cannot be read as TOML: {error}")]
    reader = _Reader(text, secrets)
    for key in told:
        if key not in ("dialect", "connections"):
            reader.wrong(key, f"{key!r} is no key; there are: dialect, connections")
    dialect = told.get("dialect")
    if dialect not in (None, "duckdb", "spark"):
        reader.wrong("dialect", f"dialect is duckdb or spark; found {dialect!r}")
        dialect = None
    tables = told.get("connections", {})
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        reader.wrong("connections", "connections are written as tables: [connections.shop]")
        tables = {}
    found = [c for name, table in tables.items() if (c := reader.connection(name, table))]
    return Settings(cast("Dialect | None", dialect), {c.name: c for c in found}), reader.problems


class _Reader:
    """Collects what is wrong, each at its line."""

    def __init__(self, text: str, secrets: Secrets) -> None:
        self.lines, self.secrets, self.problems = text.splitlines(), secrets, list[Problem]()

    def wrong(self, key: str, message: str, name: str = "") -> None:
        start = next(
            (
                i
                for i, text in enumerate(self.lines)
                if name and re.match(rf"\s*\[\s*connections\s*\.\s*[\"']?{re.escape(name)}\b", text)
            ),
            0,
        )
        line = next(
            (i for i in range(start, len(self.lines)) if re.match(rf"\s*\[?[\"']?{re.escape(key)}\b", self.lines[i])),
            start,
        )
        self.problems.append(Problem(FILE, line + 1, f"connection {name}: {message}" if name else message))

    def connection(self, name: str, table: dict[str, Any]) -> Connection | None:
        before = len(self.problems)
        kind = table.get("type")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in TAKEN:
            self.wrong(
                "", "its name must be lower-case letters, digits and underscores and no word that SQL uses itself", name
            )
        if kind not in KEYS:
            self.wrong("type", f"type is jdbc, s3 or catalog; found {kind!r}", name)
            return None
        for key in sorted(set(table) - KEYS[kind]):
            self.wrong(key, f"{key!r} is no key of type {kind}; there are: {', '.join(sorted(KEYS[kind]))}", name)
        self._values(name, kind, table)
        hidden: list[str] = []
        missing: list[str] = []
        values = self._filled(
            name, {k: v for k, v in table.items() if k not in ("properties", "options")}, hidden, missing
        )
        values |= {
            "properties": table.get("properties", {}),
            "options": self._filled(name, table.get("options", {}), hidden, missing),
        }
        return (
            Connection(name, kind, values, tuple(hidden), tuple(missing), self.secrets.source)
            if len(self.problems) == before
            else None
        )

    def _filled(self, name: str, table: Mapping[str, Any], hidden: list[str], missing: list[str]) -> dict[str, Any]:
        """The table with the environment's values in the place of `{ env = "NAME" }`."""
        values: dict[str, Any] = {}
        for key, value in table.items():
            if not isinstance(value, dict):
                values[key] = value
            elif set(value) != {"env"} or not isinstance(value["env"], str):
                self.wrong(key, f'{key}: {{ env = "NAME" }} is expected', name)
            elif found := self.secrets.get(value["env"]):
                values[key] = found
                hidden.append(found)
                everywhere.add(found)
            else:
                missing.append(value["env"])
        return values

    def _catalog(self, name: str, table: dict[str, Any]) -> None:
        known = from_env().catalog_classes
        if table.get("class") not in known:
            allowed = ", ".join(known) or "none"
            self.wrong(
                "class",
                f"class is one that the install allows in ONDATRA_CATALOG_CLASSES ({allowed}); found "
                f"{table.get('class')!r}",
                name,
            )
        options = table.get("options", {})
        if not isinstance(options, dict) or not all(isinstance(v, str | int | bool | dict) for v in options.values()):
            self.wrong("options", "options is a table of texts, numbers and truth values", name)
            table["options"] = {}
            return
        for key in sorted(options):
            if not re.fullmatch(r"[\w.-]+", key):
                self.wrong("options", f"the option {key!r} is no name of letters, digits, points and dashes", name)
            elif _SECRET_NAME.search(key) and not isinstance(options[key], dict):
                self.wrong(
                    "options",
                    f'{key} must not stand in this file: write {key} = {{ env = "NAME" }} and set NAME in '
                    f"{self.secrets.source}",
                    name,
                )

    def _values(self, name: str, kind: str, table: dict[str, Any]) -> None:
        if kind == "catalog":
            self._catalog(name, table)
            return
        url = table.get("url")
        if not isinstance(url, str) or not _URL[kind].match(url) or ".." in url:
            # it may hold a password: not shown
            self.wrong("url", f"url must be {_FORM[kind]}", name)
        for key in sorted(SECRET & set(table)):
            if not isinstance(table[key], dict):
                self.wrong(
                    key,
                    f'{key} must not stand in this file: write {key} = {{ env = "NAME" }} and set NAME in '
                    f"{self.secrets.source}",
                    name,
                )
        for key in sorted({"access_key", "secret_key"} - set(table)) if kind == "s3" else ():
            self.wrong(
                "",
                f'{key} is missing: write {key} = {{ env = "NAME" }}; the install\'s own credentials are not used',
                name,
            )
        if table.get("format", "parquet") not in FORMATS:
            self.wrong("format", f"format is {' or '.join(FORMATS)}; found {table['format']!r}", name)
        if not isinstance(table.get("fetch_size", 1), int) or table.get("fetch_size", 1) < 1:
            self.wrong("fetch_size", f"fetch_size is a positive number of rows; found {table['fetch_size']!r}", name)
        for key in sorted({"endpoint", "region", "user"} & set(table)):
            if not isinstance(table[key], str) and not (key == "user" and isinstance(table[key], dict)):
                self.wrong(key, f"{key} is text; found {table[key]!r}", name)
        properties = table.get("properties", {})
        if not isinstance(properties, dict) or not all(isinstance(v, str | int | bool) for v in properties.values()):
            self.wrong("properties", "properties is a table of texts, numbers and truth values", name)
            return
        for key in sorted(set(properties) - PROPERTIES):
            self.wrong(
                "properties", f"the property {key} is not allowed; allowed: {', '.join(sorted(PROPERTIES))}", name
            )
