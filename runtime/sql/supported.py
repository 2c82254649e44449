"""The page docs/dialect.md, made from the tables that the translation itself works with: python bench/dialect.py
--page."""

from __future__ import annotations

from .asking.gate import gate
from .asking.types import parse, spark_type
from .files import table_functions
from .grouping import aggregates, windows
from .scalar import alike, functions
from .spark_text import FORBIDDEN

#: Where the part of the page begins that a run of the generator writes.
TRIED = "## Tried\n"
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
    "EXCLUDE …), also inside an expression, in WHERE and as `*COLUMNS(…)`; the name of a table as a STRUCT of its row",
    "INNER, LEFT, RIGHT, FULL, CROSS, SEMI, ANTI, NATURAL and ASOF [LEFT] JOIN; ON and USING; LATERAL subqueries",
    "Subqueries as values, EXISTS, IN and ANY (also of several columns), ARRAY(SELECT …), correlated or not, also over "
    "groups, aggregates and aliases of the SELECT around; VALUES",
    "WITH, WITH RECURSIVE … UNION ALL, MATERIALIZED; WITH RECURSIVE … UNION and USING KEY over tables that fit into "
    "memory, for DuckDB computes them as a whole, as it does one that reads no table",
    "UNION, UNION ALL, UNION [ALL] BY NAME, EXCEPT [ALL], INTERSECT [ALL]",
    "PIVOT … IN (values), also over several columns, UNPIVOT",
    "Every expression of a row that DuckDB has: CASE, BETWEEN, IN, tuples, LIKE, ILIKE, GLOB, SIMILAR TO, ~, COLLATE, "
    "TRY, casts, `x.f()`, comparisons of lists, structs and maps, unsigned and huge numbers, intervals on the "
    "way",
    "unnest() in the select list (several go in step) and in FROM, also WITH ORDINALITY; range(), generate_series(), "
    "json_each(), json_tree()",
    "List comprehensions, lambdas, `list[1]`, `list[1:2]`, `struct.field`, `map['key']`, `json->'key'`, "
    "`json->>'$.path'`",
    "Any expression of constants only: DuckDB computes it at check time",
)
SPARKS = (
    "columns and fields of structs; constants, which DuckDB computes while the model is checked",
    "=, <>, <, <=, >, >=, BETWEEN, IN (values) and IS [NOT] DISTINCT FROM between booleans, texts, dates, timestamps, "
    "times, whole numbers, decimals and doubles of one kind",
    "AND, OR, NOT, IS [NOT] NULL; CASE and COALESCE over what is Spark's",
    "casts to a wider number, of whole numbers and booleans to text, of a timestamp to its day",
    "casts of a column of texts to a whole number of 64 bits at most or a day, as long as each text is spelt as its "
    "value is written, `7` and `2024-01-31`: at the first other one, ` 7` or `1e3`, a build begins anew, and from then "
    "on these casts of the model are DuckDB's",
    f"over texts, whole numbers of 64 bits at most, doubles, days and timestamps without a time zone, wherever the "
    f"arguments on which it depends are constants: {', '.join(f'`{n}`' for n in sorted(alike.NAMES))}",
    "of these upper, lower, ILIKE with letters, strftime, date_trunc and round over a column (round also over a short "
    "sum or product); to_json over a struct of texts, whole numbers and booleans; list_transform by `x + 1` and the "
    "like; regular expressions of characters and classes of ASCII, of which at most one repeats without a bound, as "
    "the last or behind a `^`",
    "but where a projection asks DuckDB for something else anyway, it computes these casts along with it, and: "
    f"{', '.join(f'`{n}`' for n in sorted(alike.DEAR))}",
    "joins, grouping, order, limits, set operations, subqueries, unnest()",
)
REFUSED = (
    "USING SAMPLE and TABLESAMPLE with a seed (REPEATABLE): Spark draws other rows",
    "what is no SELECT, such as SUMMARIZE and DESCRIBE: a model is the rows of one",
    "table functions that this page does not name, such as `read_text()`, `glob()` and `duckdb_tables()`: what they "
    "tell is no source that could be watched for changes",
    "`infinity` as a constant date or timestamp: write a day that is far enough",
    "24:00:00 as a constant time: Spark's days end before it",
    "PIVOT without named values: the columns of a model are known before its rows (write ON column IN ('a', 'b'))",
    "INTERVAL as a column of a model: no destination has a form for it (cast it)",
    "UNION, VARIANT, GEOMETRY and UHUGEINT as a column, also of a subquery: no type of Spark's holds them (cast them, "
    "or use them within one expression); a HUGEINT or a sum of more than 38 digits ends the run",
    "UNION, EXCEPT and INTERSECT over maps and intervals, GROUP BY, DISTINCT and PARTITION BY over lists and structs "
    "of these and over TIMETZ, and DISTINCT over them beside an aggregate or a window: Spark finds others equal than "
    "DuckDB does",
    "COLLATE in a column of a subquery, within a key of GROUP BY, ORDER BY or PARTITION BY other than as its last "
    "word, of what a window or unnest() made of it, in DISTINCT beside a window or a group, with IN (SELECT … FROM), "
    "and collations of languages: Spark's text does not keep them",
    "GROUP BY what chance made, which Spark would draw again where it is shown, aggregates over it in the query that "
    "draws it, `random() IN (SELECT … FROM)`, and chance within a lambda",
    "lists IN (SELECT …) of FLOAT and of other numbers, JSON IN (SELECT …), and `(a, b) < ANY (SELECT …)`: Spark "
    "compares them otherwise (cast them, or join the table)",
    "`list_reduce()` of more than ten constants, which DuckDB would compute while the model is checked: each step may "
    "make more of them",
    "`bitstring_agg()` without the least and the greatest value, which only all rows tell",
    "within a subquery that reads no table the whole row of a table around (write its columns)",
    "an alias in a lambda whose parameter is called as a column of what the alias stands for (call it otherwise)",
    "the `rowid` of json_each() and json_tree(), and of tables: Spark has none",
    "WITH RECURSIVE … UNION and USING KEY over files, chance or the moment, or in a correlated subquery",
    "an alias, an aggregate, or a column without its table, of a query around where the subquery has a PIVOT, "
    "json_each(), json_tree(), * RENAME, or unnest() in a select list: which columns that has of its own is not seen",
    "a column of type MAP of the query around in an aggregate, a window or a query within the subquery: Spark joins by "
    "none (take it apart in a query around)",
    "a subquery without a table over both a column of USING and that of a table with this name: it would not know "
    "which is meant (write the table's name before both)",
    "`t.x` of a query around in a subquery whose table has a column `t` too, which DuckDB itself takes in WHERE only "
    "(give the table another name)",
    "unnest() over a column of the query around beside others in a LATERAL SELECT without a table: Spark unnests it "
    "alone (write FROM t, unnest(t.list) AS u(x))",
    "in a LATERAL subquery over columns of the query around chance, POSITIONAL JOIN, windows that Spark has not and "
    "outer joins by what DuckDB compares, which number rows, and what DuckDB makes of a subquery's answer (compute it "
    "in a query around)",
    "SELECT DISTINCT with ORDER BY what is not selected: one value may stand for rows with several of these",
    "unnest() within an expression beside a window function: DuckDB's windows do not see its rows, Spark's would",
    "unnest() of what is grouped within an expression, and recursive unnest() of lists within structs: Spark unnests "
    "once a SELECT (write it in a query around)",
    "two columns of one name in a result, or named so by `AS t(a, a)`: a table has none",
    "LIMIT and OFFSET that are not constant, GROUPING SETS over a constant: Spark has none",
    "USING over columns of other types, and IN (SELECT …) between a text and something else: cast one of them",
    "CTEs each of which names the one before twice, ten in a row: Spark plans a copy of the first for each way to it, "
    "over a thousand here; make one of them a model of its own",
    "ASOF RIGHT and FULL JOIN, and one without exactly one inequality over a column of the right table",
    "PIVOT and UNPIVOT ON several columns at once (`ON (a, b)`), COLUMNS() over two tables with a column of one name",
    "window frames in GROUPS, and EXCLUDE but for CURRENT ROW of an aggregate in ROWS, in a query with GROUP BY (write "
    "them around it)",
    "ROLLUP, CUBE and GROUPING SETS in a correlated subquery: Spark takes none there (group by the columns of the "
    "query around, and join)",
    "a RIGHT or FULL join, or one by USING, that is the right of another join and needs a column of what is left of "
    "it: Spark's parentheses see none (write one join after the other)",
    "USING after an outer, semi or anti join with a condition over columns of both sides that DuckDB computes, and "
    "after one with a subquery over its columns",
    "functions that tell of the session, the machine or DuckDB itself, or change it: "
    f"{', '.join(f'`{n}`' for n in sorted(functions.REFUSED | aggregates.REFUSED))}",
)


def page() -> str:
    return "\n".join([*_head(), *_functions(), *_refused(), *_types(), *_files(), *_spark()])


def _head() -> list[str]:
    return [
        "# DuckDB's SQL on Spark",
        "",
        "This page is generated from the tables of `runtime/sql` by `python bench/dialect.py --page`, its last part by "
        "`--all`; a test holds the others to the tables.",
        "",
        "A model is DuckDB SQL unless it says `-- @dialect: spark`. DuckDB parses it, finds its columns and their "
        "types over empty tables, and computes "
        "its constants. Spark then scans, joins, groups and orders rows; DuckDB itself computes what is computed "
        "within a row, in Spark's tasks, a batch of rows at a time (see below). What neither can do is refused at "
        "check time with the construct and the line, never answered differently.",
        "",
        "## Statements",
        "",
        *(f"- {c}" for c in CONSTRUCTS),
        "",
    ]


def named(names: set[str]) -> str:
    return ", ".join(f"`{n}`" for n in sorted(names))


def scalars() -> set[str]:
    """The functions and operators that DuckDB computes for a row."""
    inner = ("__", "icu_", "collate_", "json_copy_", "=", "!", "<", ">", "IS ")
    found = {n for n in gate().scalars - functions.REFUSED - functions.VOLATILE if not n.startswith(inner)}
    return found | {n for n in gate().scalars if n.startswith("!~~")}


def _functions() -> list[str]:
    own = set(aggregates.WRITERS)
    others = gate().aggregates - own - aggregates.REFUSED
    return [
        "## Who computes what",
        "",
        "Spark, where its answer is DuckDB's for every value of the types:",
        "",
        *(f"- {said}" for said in SPARKS),
        f"- the aggregates {named(own)}, over numbers, texts, dates, timestamps and booleans, without an ORDER BY of "
        "their own",
        f"- the window functions {named(windows.RANKS | windows.VALUES)}, over ROWS and RANGE frames",
        f"- what changes from run to run, and makes the model run every time: {named(functions.VOLATILE)}",
        "",
        "DuckDB, everything else within a row, the whole expression at once: casts, operators and",
        "",
        named(scalars()),
        "",
        "DuckDB, over the rows that Spark sorted for a group, or for a window: aggregates with an ORDER BY "
        f"or DISTINCT that is not Spark's, and {named(others)}; beside one of these also the others of the SELECT but "
        "for count(*), and HAVING. The values of a group have to fit into 512 MB, some "
        "twenty million numbers, and so have those of a partition of such a window. Window frames in GROUPS, with "
        "EXCLUDE, over times, of months with days, and what else Spark has not, it computes over whole partitions; "
        "with ONDATRA_PLAIN_BUILD=1, or another Spark than Ondatra was tried with, over a list of the partition for "
        "each of its rows, which should have some thousand rows at most there.",
        "",
        "Where a query leaves the order of rows open (`row_number() OVER ()`, `first(x)`, `list(x)`, ties of "
        "`arg_max(x, y)` and `mode(x)`, LIMIT without ORDER BY, POSITIONAL JOIN, the text of a group by COLLATE), it "
        "is the one in which Spark reads them: that of a file, and of a table until it is written anew; windows over "
        "groups take that of the keys. DuckDB's own order of what is joined or grouped is none that one could rely "
        "on, and neither is Spark's. What goes to a "
        "destination should name an order. The key of a group, a DISTINCT or a UNION of -0.0 comes out as 0.0. "
        "Sums and averages of doubles depend on the order in which either adds, in their last digits and in an "
        "overflow on the way. Estimates (`approx_quantile` and the like) and `hash` are those of this "
        "version of DuckDB.",
        "",
        "A condition of WHERE or ON is parted at AND: what is Spark's prunes columns, is pushed into files and makes "
        "equi-joins; an equality between a DuckDB expression of one side and one of the other is an equi-join over "
        "what DuckDB computed.",
        "",
    ]


def _refused() -> list[str]:
    return ["## Refused", "", *(f"- {r}" for r in REFUSED), ""]


def _types() -> list[str]:
    rows = [f"| {t} | {spark_type(parse(t))} |" for t in TYPES]
    return ["## Types", "", "| DuckDB | Spark |", "|---|---|", *rows, ""]


def _files() -> list[str]:
    rows = [
        f"| `{name}` | {', '.join(sorted(table_functions.OPTIONS[kind])) or 'none'} |"
        for name, kind in table_functions.FORMATS.items()
    ]
    return [
        "## Files",
        "",
        "Paths are relative to the project folder; nothing outside it and the allowed paths is read, and nothing of "
        "the install wherever it lies. Paths and options are constants. Globs and lists "
        "of paths work (`*`, `?`, `[…]`, `**` through folders; no hidden files, no links to folders by `**`); `FROM "
        "'file'` takes .csv, .tsv, .parquet, .json, .jsonl and .ndjson. DuckDB itself finds the columns at check time "
        "and reads CSV and JSON when the model runs, all their columns: a file without one of the first file's ends "
        "the run, also where the model asks for none (write `union_by_name = true`). What is promised of files: "
        "docs/security.md.",
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
