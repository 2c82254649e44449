"""What a build asks of another database, and what it reads of the lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from building import Built
from services import postgres

from runtime.lake import note, reading


@pytest.fixture
def asked(spark: Any) -> Iterator[Any]:
    """How many rows of its view `people` a database was asked for; Spark has a view of the same name."""
    with postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE asked")
        connection.execute("CREATE TABLE everybody AS SELECT i AS id FROM generate_series(1, 50) AS i")
        connection.execute("CREATE VIEW people AS SELECT id FROM everybody WHERE nextval('asked') > 0")
        told = {"user": "app", "password": "secret", "driver": "org.postgresql.Driver", "dbtable": "people"}
        reader = spark.read.format("jdbc").options(url=f"jdbc:postgresql://{url.rsplit('@', 1)[1]}", **told)
        reader.load().createOrReplaceTempView("people")
        yield lambda: connection.execute("SELECT last_value FROM asked").fetchone()[0]


def test_another_database_is_asked_once_a_build_and_how_much_it_told_is_known_to_the_next(
    spark: Any, tmp_path: Path, asked: Any
) -> None:
    table = Built(spark, tmp_path, "table")
    for build, changed in enumerate((0, 1, 1), 1):
        table.build(sql=f"SELECT id + {changed} * 100 AS id FROM people")
        assert (asked(), note.read(spark, table.table).read) == (50 * build, 50 * 4)
    assert len(table.table.read(spark).inputFiles()) == 1


def test_every_version_is_read_as_it_was(spark: Any, tmp_path: Path) -> None:
    table = Built(spark, tmp_path, "table")
    seen = {}
    for rows in (3, 5, 4):
        table.build(sql=f"SELECT id FROM range({rows})")
        seen[table.table.version(spark)] = rows
    assert {version: reading.read(spark, table.table, version).count() for version in seen} == seen
