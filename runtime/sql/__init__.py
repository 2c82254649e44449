"""DuckDB's SQL on Spark, and Spark's own: `references` and `translate`. The translators load when a text needs them;
most were translated before. The way of a text, from room to room:

model           what goes in and comes out
kept            the translations of earlier processes, asked first
translation     the whole way of a text in DuckDB's dialect: parsed, checked, its files found, written
asking/         what DuckDB is asked: parse tree, names, types
files/          the files that it reads: where they may lie, how they are described
queries/        a query, clause by clause
expressions/    an expression of it, and who writes that
grouping/       what is computed over several rows: groups, orders, aggregates, windows
scalar/         what is computed within a row: Spark's where the answer is the same, else calls of DuckDB
spark_dialect   the way of a text in Spark's dialect
spark_text      what no such text may hold
supported       the page docs/dialect.md
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from runtime.model import Column

from . import kept
from .asking import bounds
from .files.places import Place
from .kept import remembering
from .model import FileRead, SqlProblems, TableRef, Translated, problem

__all__ = [
    "FileRead",
    "SqlProblems",
    "TableRef",
    "Translated",
    "read_ahead",
    "references",
    "remembering",
    "translate",
    "translate_ahead",
]


@lru_cache(2000)
def references(sql: str, dialect: str = "duckdb") -> tuple[TableRef, ...]:
    """The tables that a model reads, each at its first line. SqlProblems if the SQL is not exactly one SELECT."""
    memory = kept.current()
    found = memory.references(sql, dialect) if memory else None
    if found is None:
        with _told(sql):
            if dialect == "spark":
                from . import spark_dialect

                found = spark_dialect.references(sql)
            else:
                from . import translation

                found = translation.references(sql)
        if memory:
            memory.keep_references(sql, dialect, found)
    return found


def read_ahead(models: Iterable[tuple[str, str]]) -> None:
    """Makes `references` cheaper for these (SQL, dialect): what is remembered is looked up at once, and the rest parsed
    at once."""
    wanted = [(sql, dialect) for sql, dialect in models if dialect == "duckdb"]
    memory = kept.current()
    unknown = memory.look_ahead(wanted) if memory else wanted
    if unknown:
        from . import translation

        translation.read_ahead([sql for sql, _ in unknown])


def translate_ahead(
    models: Sequence[tuple[str, str, Mapping[str, tuple[Column, ...]]]],
    *,
    project_dir: str | Path,
    allow_paths: Sequence[str | Path] = (),
    hidden: Sequence[Path] = (),
) -> None:
    """Makes `translate` cheaper for these (SQL, dialect, tables that it reads), none of which reads another: what is
    remembered is looked up at once, and the columns of the rest are asked for together."""
    place = Place(Path(project_dir), tuple(Path(p) for p in allow_paths), tuple(hidden))
    memory = kept.current()
    unknown = memory.look_further(models, place) if memory else range(len(models))
    asked = [(sql, tables) for sql, dialect, tables in (models[at] for at in unknown) if dialect == "duckdb"]
    if asked:
        from . import translation

        translation.describe_ahead(asked, place)


def translate(
    sql: str,
    *,
    dialect: str,
    tables: Mapping[str, tuple[Column, ...]],
    project_dir: str | Path,
    allow_paths: Sequence[str | Path] = (),
    hidden: Sequence[Path] = (),
) -> Translated:
    """The Spark SQL of a model; SqlProblems says what is wrong with it or not supported. `tables`: `schema.table` ->
    its columns."""
    wanted = references(sql, dialect)
    check_known(wanted, tables)
    mine = {t.name: tables[t.name] for t in wanted}
    place = Place(Path(project_dir), tuple(Path(p) for p in allow_paths), tuple(hidden))
    memory = kept.current()
    found = memory.translation(sql, dialect, mine, place) if memory else None
    if found is None:
        with _told(sql):
            if dialect == "spark":
                from . import spark_dialect

                found = spark_dialect.translate(sql, mine)
            else:
                from . import translation

                found = translation.translate(sql, mine, place)
        if memory:
            memory.keep_translation(sql, dialect, mine, place, found)
    return found


@contextmanager
def _told(sql: str) -> Iterator[None]:
    """Whatever goes wrong with a text is a problem of this text, with a line; nothing ends the check of the others."""
    try:
        bounds.check(sql)
        yield
    except SqlProblems:
        raise
    except RecursionError:
        told = "an expression nested so deeply is not supported; split it over several models"
        raise problem(bounds.deepest(sql), told) from None
    except Exception as error:
        told = f"the translation fails over this model ({type(error).__name__}: {error}); please report it"
        raise problem(1, " ".join(told.split())) from error


def check_known(wanted: Sequence[TableRef], tables: Mapping[str, Any]) -> None:
    problems = []
    for ref in wanted:
        if ref.name not in tables:
            near = difflib.get_close_matches(ref.name, tables, 3, 0.5)
            problems.append(
                (ref.line, f"there is no table {ref.name}" + (f"; near names: {', '.join(near)}" if near else ""))
            )
    if problems:
        raise SqlProblems(problems)
