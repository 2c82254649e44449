"""Tables of another database that several models of a run read: asked for once, seen alike, gone when the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from services import postgres

from runtime.errors import BuildError
from runtime.model import Column
from runtime.sources import brought, copies
from runtime.sources.columns import columns_of
from runtime.sources.connections import Connection
from runtime.sources.copies import Copies, needed_of
from runtime.sources.tables import open_table
from runtime.sql import Translated, translate

SECRET = "pg-Qx7-only-here"
MART = (Column("id", "INTEGER", "INT"), Column("town", "VARCHAR", "STRING"))
#: One of each type that arrives in a way of its own.
ALL_TYPES = (
    "CREATE TABLE everything AS SELECT 1::smallint AS i2, 2::bigint AS i8, 1.5::real AS f4, 'NaN'::float8 AS f8, "
    "12.30::numeric(10, 2) AS paid, 1.5::numeric AS free, true AS ok, 'é'::text AS said, 'ab'::char(4) AS four, "
    "'x'::varchar(9) AS some, DATE '0001-01-01' AS born, TIMESTAMP '1500-02-28 01:02:03.456789' AS at, "
    "TIMESTAMPTZ '2026-01-15 08:09:10.123456+02' AS seen, TIME '08:09:10.5' AS daily, INTERVAL '1 day 2 h' AS span, "
    "'\\x00ff'::bytea AS raw, ARRAY[1, NULL, 3] AS many, ARRAY['a', NULL] AS words, '{\"a\": 1}'::jsonb AS doc, "
    "'00000000-0000-0000-0000-000000000001'::uuid AS tag, NULL::int AS nothing, 1 AS \"a b,c\""
)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Any, Connection]]:
    with postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER USER app PASSWORD '{SECRET}'")
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE TABLE people (id int, name text, town text, born date, doc jsonb)")
        connection.execute("INSERT INTO people SELECT i, 'p' || i, 'town', NULL, NULL FROM generate_series(1, 3) AS i")
        connection.execute("CREATE SEQUENCE ticks")
        connection.execute("CREATE VIEW moments AS SELECT id, nextval('ticks') AS tick FROM people")
        connection.execute(ALL_TYPES)
        told = {"url": f"jdbc:postgresql://{url.rsplit('@', 1)[1]}", "user": "app", "password": SECRET}
        yield connection, Connection("shop", "jdbc", told, hidden=(SECRET,))


@pytest.fixture
def staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ONDATRA_STAGING_URL", (tmp_path / "staging").as_uri())
    brought._mine.cache_clear()
    yield tmp_path / "staging"
    brought._mine.cache_clear()


def asked(connection: Any) -> list[str]:
    """What was read of tables since the last look, in the server's words."""
    log = connection.execute("SELECT pg_read_file('log')").fetchone()[0]
    lines = [line for line in log.rsplit("-- seen", 1)[-1].splitlines() if "FROM public." in line and "1=0" not in line]
    connection.execute("-- seen")
    return [line.split(": ", 2)[2].strip() for line in lines]


def models(spark: Any, connection: Connection, table: str, *texts: str) -> tuple[list[Translated], dict[str, Any]]:
    name = f"shop.public.{table}"
    columns = {"mart.towns": MART, name: columns_of(open_table(spark, connection, name).schema)}
    return [
        translate(text.replace("TABLE", name), dialect="duckdb", tables=columns, project_dir=Path("/nowhere"))
        for text in texts
    ], columns


def test_what_several_models_read_is_asked_for_once_with_the_columns_of_all(
    spark: Any, server: tuple[Any, Connection], staging: Path
) -> None:
    connection, shop = server
    read, columns = models(
        spark,
        shop,
        "people",
        "WITH all_of_them AS (SELECT * FROM TABLE) SELECT id, upper(name) AS name FROM all_of_them WHERE id > 1",
        "SELECT count(*) AS n FROM TABLE WHERE town IN (SELECT town FROM mart.towns)",
        "SELECT id FROM mart.towns",
    )
    asked(connection)
    with Copies(read, {"shop": shop}, columns) as opened:
        first, second = (opened.open(spark, "shop.public.people") for _ in range(2))
        assert [first.select("id", "name", "town").count(), second.filter("id > 1").count()] == [3, 2]
        there = list(staging.rglob("*.parquet"))
    assert asked(connection) == ['SELECT "id","name","town" FROM public.people']
    assert len(there) == 1 and not list(staging.rglob("*.parquet"))


def test_all_of_them_see_the_same_rows(spark: Any, server: tuple[Any, Connection], staging: Path) -> None:
    _, shop = server
    read, columns = models(spark, shop, "moments", "SELECT tick FROM TABLE", "SELECT id, tick FROM TABLE")
    with Copies(read, {"shop": shop}, columns) as opened:
        seen = [[r.tick for r in opened.open(spark, "shop.public.moments").collect()] for _ in range(2)]
    assert seen[0] == seen[1]


def test_a_model_that_is_alone_with_its_table_reads_it_itself(
    spark: Any, server: tuple[Any, Connection], staging: Path
) -> None:
    connection, shop = server
    read, columns = models(spark, shop, "people", "SELECT id FROM TABLE", "SELECT id FROM mart.towns")
    asked(connection)
    with Copies(read, {"shop": shop}, columns) as opened:
        assert opened.open(spark, "shop.public.people").select("id").count() == 3
    assert (len(asked(connection)), list(staging.rglob("*"))) == (1, [])


def test_values_of_every_type_are_those_of_the_table(spark: Any, server: tuple[Any, Connection], staging: Path) -> None:
    _, shop = server
    read, columns = models(spark, shop, "everything", "SELECT * FROM TABLE", "SELECT * FROM TABLE WHERE ok")
    with Copies(read, {"shop": shop}, columns) as opened:
        copy, table = opened.open(spark, "shop.public.everything"), open_table(spark, shop, "shop.public.everything")
        assert copy.schema.simpleString() == table.schema.simpleString()
        assert repr(copy.collect()) == repr(table.collect())


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("SELECT count(*) AS n FROM TABLE", set()),
        ("SELECT p.name FROM mart.towns t JOIN TABLE p ON p.id = t.id", {"id", "name"}),
        ("SELECT t.id FROM mart.towns t WHERE t.town = (SELECT max(town) FROM TABLE)", {"town"}),
        ("SELECT id FROM TABLE EXCEPT SELECT id FROM TABLE WHERE born > DATE '2000-01-01'", {"id", "born"}),
        ("SELECT DISTINCT * EXCLUDE (doc) FROM TABLE", {"id", "name", "town", "born"}),
    ],
)
def test_the_columns_that_a_model_needs_are_those_that_its_result_depends_on(
    spark: Any, server: tuple[Any, Connection], text: str, needed: set[str]
) -> None:
    _, shop = server
    [model], columns = models(spark, shop, "people", text)
    table = open_table(spark, shop, "shop.public.people")
    assert needed_of(spark, table, "shop.public.people", model, columns) == frozenset(needed)


def test_what_a_model_needs_that_asks_for_the_day_is_not_told_by_its_plan_of_today(
    spark: Any, server: tuple[Any, Connection]
) -> None:
    _, shop = server
    text = "SELECT id, CASE WHEN current_date >= DATE '2999-01-01' THEN name ELSE town END AS said FROM TABLE"
    [model], columns = models(spark, shop, "people", text)
    table = open_table(spark, shop, "shop.public.people")
    assert needed_of(spark, table, "shop.public.people", model, columns) is None


def test_where_that_cannot_be_told_the_table_is_read_whole(
    spark: Any, server: tuple[Any, Connection], staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, shop = server
    read, columns = models(spark, shop, "people", "SELECT name FROM TABLE", "SELECT name, id FROM TABLE")
    monkeypatch.setattr(copies, "_planned", lambda *_: 1 / 0)
    monkeypatch.setattr(copies, "_needed", {})
    asked(connection)
    with Copies(read, {"shop": shop}, columns) as opened:
        opened.open(spark, "shop.public.people")
    assert asked(connection) == ['SELECT "id","name","town","born","doc" FROM public.people']


def test_a_read_that_fails_is_told_without_secrets_and_the_next_model_tries_again(
    spark: Any, server: tuple[Any, Connection], staging: Path
) -> None:
    connection, shop = server
    connection.execute("CREATE VIEW wrong AS SELECT id, 1 / (id - 2) AS n FROM people")
    read, columns = models(spark, shop, "wrong", "SELECT n FROM TABLE", "SELECT id, n FROM TABLE")
    with Copies(read, {"shop": shop}, columns) as opened:
        with pytest.raises(BuildError) as told:
            opened.open(spark, "shop.public.wrong")
        connection.execute("CREATE OR REPLACE VIEW wrong AS SELECT id, id AS n FROM people")
        assert opened.open(spark, "shop.public.wrong").count() == 3
    assert str(told.value) == "shop.public.wrong: ERROR: division by zero"
