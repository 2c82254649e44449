"""The page docs/dialect.md, made from the tables that the translation itself works with: python -m
runtime.sql.supported."""

from __future__ import annotations

from . import files, windows
from .functions import registry
from .spark_text import FORBIDDEN
from .types import parse, spark_type

HEADS = {
    "numbers": "Numbers and choices",
    "strings": "Text",
    "dates": "Dates and times",
    "lists": "Lists, structs, maps",
    "jsons": "JSON",
    "aggregates": "Aggregates",
}
TYPES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10,2)",
    "VARCHAR",
    "JSON",
    "UUID",
    "BLOB",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "INTEGER[]",
    "MAP(VARCHAR, INTEGER)",
    "STRUCT(a INTEGER)",
)
CONSTRUCTS = (
    "SELECT with expressions, aliases used later in the same SELECT, WHERE, GROUP BY (positions, aliases, ALL, "
    "ROLLUP, CUBE, GROUPING SETS), HAVING, QUALIFY, "
    "ORDER BY (positions, aliases, ALL, NULLS FIRST and LAST), LIMIT, OFFSET, DISTINCT, DISTINCT ON",
    "FROM first (`FROM t SELECT …`, `FROM t`), trailing commas, `alias: expression`, names in any case",
    "`*` with EXCLUDE, REPLACE, RENAME, LIKE; `t.*`, `struct.*`; COLUMNS('pattern'), COLUMNS(lambda …), COLUMNS(* "
    "EXCLUDE …), also inside an expression",
    "INNER, LEFT, RIGHT, FULL, CROSS, SEMI, ANTI, NATURAL and ASOF [LEFT] JOIN; ON and USING; LATERAL subqueries",
    "Subqueries as values, EXISTS, IN, ARRAY(SELECT …), correlated or not; VALUES",
    "WITH, WITH RECURSIVE … UNION ALL, MATERIALIZED",
    "UNION, UNION ALL, UNION [ALL] BY NAME, EXCEPT [ALL], INTERSECT [ALL]",
    "PIVOT … IN (values), UNPIVOT",
    "CASE, BETWEEN, IN, LIKE, ILIKE, GLOB, SIMILAR TO, ~, IS [NOT] DISTINCT FROM, COALESCE, CAST, ::, TRY_CAST, TRY "
    "over casts, // and %",
    "unnest() in the select list (several go in step) and in FROM; range() and generate_series()",
    "List comprehensions, lambdas, `list[1]`, `list[1:2]`, `struct.field`, `map['key']`, `json->'key'`, "
    "`json->>'$.path'`",
    "Any expression of constants only: DuckDB computes it at check time",
)
REFUSED = (
    "POSITIONAL JOIN, USING SAMPLE and TABLESAMPLE, LIMIT n%: without a row order they have no stable answer",
    "`> ALL (subquery)` and `= ANY` with another comparison than `=`: use max() or min()",
    "PIVOT without named values, PIVOT over several columns",
    "`infinity` as a constant date or timestamp: write a day that is far enough",
    "INTERVAL as a result, timestamp - timestamp, age(): use date_diff()",
    "row_number(), rank(), lag() and lead() without ORDER BY; first() and last() without ORDER BY",
    "approx_count_distinct() and other approximations: use count(DISTINCT …)",
    "comparing text with a number, a date or a boolean that is not a constant: cast one side",
    "regular expressions with look-around, POSIX classes or named groups; patterns, formats, JSON paths and "
    "separators that are not constants",
    "FLOAT in expressions, ENUM, BIT, UNION, TIMESTAMP_NS, TIME WITH TIME ZONE, unnamed structs as a result",
    "list_distinct() and mode(), whose order or choice DuckDB leaves open",
    "hash(), typeof(), and every function that is not named above",
)
STOPS = (
    "upper() of letters whose capital is several letters (ß), lower() of İ and Σ, reverse() of composed letters",
    "text cast to a number in hexadecimal or with underscores, text cast to a date or time in another form than "
    "`2026-01-31` and `10:20:30`",
)


def page() -> str:
    return "\n".join([*_head(), *_functions(), *_refused(), *_types(), *_files(), *_spark()])


def _head() -> list[str]:
    return [
        "# DuckDB's SQL on Spark",
        "",
        "This page is generated from the tables of `runtime/sql` by `python -m runtime.sql.supported > "
        "docs/dialect.md`; a test holds the two equal.",
        "",
        "A model is DuckDB SQL unless it says `-- @dialect: spark`. DuckDB parses it, finds its columns and their "
        "types over empty tables, and computes "
        "its constants. What is named here is then written for Spark so that the answer is DuckDB's; everything else "
        "is refused at check time "
        "with the construct and the line, never answered differently.",
        "",
        "## Statements",
        "",
        *(f"- {c}" for c in CONSTRUCTS),
        "",
    ]


def _functions() -> list[str]:
    out = ["## Functions and operators", ""]
    for family, head in HEADS.items():
        names = ", ".join(f"`{n}`" for n in registry.family(family) if n not in ("list_count_all",))
        out += [f"{head}: {names}", ""]
    windowed = ", ".join(f"`{n}`" for n in sorted(windows.RANKS | windows.VALUES))
    volatile = ", ".join(f"`{n}`" for n in sorted(registry.VOLATILE))
    return [
        *out,
        f"Windows: {windowed} and the aggregates, over ROWS and RANGE frames without EXCLUDE",
        "",
        f"Functions whose answer changes from run to run make the model run every time: {volatile}",
        "",
    ]


def _refused() -> list[str]:
    return [
        "## Refused",
        "",
        *(f"- {r}" for r in REFUSED),
        "",
        "Stopped while running, because DuckDB's answer cannot be given:",
        "",
        *(f"- {s}" for s in STOPS),
        "",
    ]


def _types() -> list[str]:
    rows = [f"| {t} | {spark_type(parse(t))} |" for t in TYPES]
    return ["## Types", "", "| DuckDB | Spark |", "|---|---|", *rows, ""]


def _files() -> list[str]:
    rows = [
        f"| `{name}` | {', '.join(sorted(files.OPTIONS[kind])) or 'none'} |" for name, kind in files.FORMATS.items()
    ]
    return [
        "## Files",
        "",
        "Paths are relative to the project folder; nothing outside it and the allowed paths is read, and nothing of "
        "the install wherever it lies. Paths and options are constants. Globs and lists "
        "of paths work (`*`, `?`, `[…]`, `**` through folders; no hidden files, no links to folders by `**`); `FROM "
        "'file'` takes .csv, .tsv, .parquet, .json, .jsonl and .ndjson. DuckDB itself finds the columns at check time "
        "and reads CSV and JSON when the model runs. What is promised of files: docs/security.md.",
        "",
        "| function | options |",
        "|---|---|",
        *rows,
        "",
    ]


def _spark() -> list[str]:
    return [
        "## Spark SQL",
        "",
        "With `-- @dialect: spark` the text goes to Spark as it is; `schema.name` means the model of that name. "
        "`json_object(key, value, …)` and "
        f"`json_group_array(value)` are added. Refused: {', '.join(f'`{f}`' for f in sorted(FORBIDDEN))}, TRANSFORM … "
        "USING, IDENTIFIER(…), files by path, and what is no built-in function of Spark.",
        "",
    ]


if __name__ == "__main__":
    print(page(), end="")
