"""Runs a query on DuckDB and its translation on Spark, and brings both answers into one form."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from runtime.model import Column
from runtime.sources import files, plans
from runtime.sql import Translated, translate
from runtime.sql.asking.types import parse, spark_type
from runtime.sql.scalar import spellings

HERE = Path(__file__).parent
SETUP = (HERE / "setup.sql").read_text(encoding="utf-8")


def oracle() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(SETUP)
    return con


def tables(con: duckdb.DuckDBPyConnection) -> dict[str, tuple[Column, ...]]:
    """The tables of setup.sql by their names in a model."""
    found = con.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
    return {
        f"{s}.{t}".lower(): tuple(
            Column(r[0], r[1], spark_type(parse(r[1]))) for r in con.execute(f'DESCRIBE {s}."{t}"').fetchall()
        )
        for s, t in found
    }


def views(spark: Any, con: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """The same tables as temporary views of Spark."""
    for schema, table in con.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall():
        path = folder / f"{schema}__{table.replace(' ', '_')}.parquet"
        con.execute(f"COPY {schema}.\"{table}\" TO '{path}' (FORMAT parquet)")
        columns = [(r[0], spark_type(parse(r[1]))) for r in con.execute(f'DESCRIBE {schema}."{table}"').fetchall()]
        spark.read.parquet(str(path)).selectExpr(
            *(f"CAST(`{n}` AS {t}) AS `{n}`" for n, t in columns)
        ).createOrReplaceTempView(f"`{schema}__{table}`".lower())


def on_spark(
    spark: Any, sql: str, known: dict[str, tuple[Column, ...]], project: Path, dialect: str = "duckdb"
) -> tuple[list[str], list[str], list[list[Any]]]:
    """Names, DuckDB types and rows of a translated query. SqlProblems if it is refused."""
    done = translate(sql, dialect=dialect, tables=known, project_dir=project)
    for read in done.files:
        files.open_file(spark, read).createOrReplaceTempView(read.view)
    names, rows = computed(done, lambda one: take(spark, one))
    return names, [c.duckdb_type for c in done.columns or ()], rows


def take(spark: Any, done: Translated) -> tuple[list[str], list[list[Any]]]:
    frame = plans.open_query(spark, done)
    return frame.columns, [list(row) for row in frame.collect()]


def computed(done: Translated, take: Callable[[Translated], Any]) -> Any:
    """What a build of the translation gives, which is made again where texts of another spelling are met."""
    try:
        return take(done)
    except Exception as error:
        if done.exact is None or not spellings.is_met(error):
            raise
        return take(done.exact)


def plain(value: Any, kind: str) -> Any:
    """A value of either engine in one form; text and JSON stay exactly as they are."""
    if value is None:
        return None
    if isinstance(value, bool):
        return value
    if kind.endswith("]"):
        return [plain(v, kind[: kind.rindex("[")]) for v in value]
    if kind.startswith("MAP"):
        inner = parse(kind)
        pairs = value.items() if isinstance(value, dict) else value
        return sorted(([str(k), plain(v, str(inner.args[1]))] for k, v in pairs), key=str)
    if kind.startswith("STRUCT"):
        inner = parse(kind)
        items = list(value.values()) if isinstance(value, dict) else list(value)
        return [plain(v, str(t)) for v, t in zip(items, inner.args, strict=True)]
    if kind.startswith("TUPLE"):
        return [
            plain(v, str(t))
            for v, t in zip(value.values() if isinstance(value, dict) else value, parse(kind).args, strict=True)
        ]
    if kind.startswith("DECIMAL") or kind in ("HUGEINT", "UBIGINT"):
        return str(decimal.Decimal(str(value)))
    if kind in ("DOUBLE", "FLOAT"):
        number = float(value)
        return str(number) if math.isnan(number) or math.isinf(number) else float(f"{number:.12g}")
    if kind.startswith("TIMESTAMP"):
        moment = (
            value
            if isinstance(value, dt.datetime)
            else dt.datetime.fromisoformat(
                str(value).replace("+00", "+00:00") if "+00:00" not in str(value) else str(value)
            )
        )
        return (moment.astimezone(dt.UTC) if moment.tzinfo else moment).replace(tzinfo=None).isoformat()
    if isinstance(value, dt.date | dt.time | uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value


def form(rows: list[list[Any]], kinds: list[str], ordered: bool) -> list[str]:
    out = [
        json.dumps([plain(v, k) for v, k in zip(row, kinds, strict=True)], ensure_ascii=False, default=str)
        for row in rows
    ]
    return out if ordered else sorted(out)


def answer(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """DuckDB's own answer; moments with a zone as text, so that no zone library is needed."""
    described = con.execute(f"DESCRIBE {sql}").fetchall()
    kinds = [r[1] for r in described]
    columns = ", ".join(f"CAST(c{i} AS VARCHAR)" if "WITH TIME ZONE" in k else f"c{i}" for i, k in enumerate(kinds))
    try:
        rows = con.execute(
            f"SELECT {columns} FROM ({sql}) t({', '.join(f'c{i}' for i in range(len(kinds)))})"
        ).fetchall()
    except duckdb.Error as error:
        return {"error": str(error)}
    return {"columns": [r[0] for r in described], "types": kinds, "rows": [list(r) for r in rows]}


def unquoted(kind: str) -> str:
    """Whether a field's name in a STRUCT is quoted is a matter of spelling."""
    return kind.replace('"', "")
