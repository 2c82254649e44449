"""DuckDB within one of Spark's Python workers: what a task calls for each batch of rows.

The functions travel to the workers by value, so nothing of this project is imported here but what travels too.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runtime.sources.group_task import aggregates_of, grouped, rows_of, values
from runtime.sources.window_task import halves, of_numbered, of_rows, whole

#: What a worker's DuckDB may take.
MEMORY = "512MB"
#: What DuckDB is asked at once, at least: rows, or bytes.
ROWS, BYTES = 40_000, 16_000_000
#: So many times as much where the rows are those of groups, which are fewer.
GROUPED = 5
#: Characters of a value that a message shows.
SHOWN = 200
#: Around the message of an error, so that it is found in what Spark makes of it.
MARK = "duckdb-said:"


class Asking:
    """The expressions of one call, asked for a batch of rows at a time. `inputs` are names with DuckDB's types;
    `expressions` text, its type, the type in which it travels. `versions` are those of the packages that a worker must
    have."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[tuple[str, str]],
        expressions: Sequence[tuple[str, str, str]],
        versions: dict[str, str] | None = None,
        memory: str = MEMORY,
    ) -> None:
        self.name, self.inputs, self.expressions, self.memory = name, inputs, expressions, memory
        self.versions = versions or {}

    def answers(self, arrays: Sequence[Any]) -> list[Any]:
        """An array for each expression."""
        import pyarrow

        self.check()
        table = pyarrow.table(
            [as_json(a) if kind == "JSON" else a for a, (_, kind) in zip(arrays, self.inputs)],
            names=[n for n, _ in self.inputs],
        )
        try:
            found = self.asked(table, self.expressions)
        except Exception as error:
            raise ValueError(self.explained(table, error)) from None
        return [plain_times(c) for c in found.columns]

    def asked(self, table: Any, expressions: Any) -> Any:
        """The answers as a table, of halves where the whole does not fit into memory."""
        import duckdb
        import pyarrow

        try:
            return self.asked_at_once(table, expressions)
        except duckdb.OutOfMemoryException:
            half = table.num_rows // 2
            if not half:
                raise
        return pyarrow.concat_tables([self.asked(part, expressions) for part in (table[:half], table[half:])])

    def asked_at_once(self, table: Any, expressions: Any) -> Any:
        import pyarrow

        found: dict[str, list[str]] = {}
        asked = [(aggregates_of(sql, found), *types) for sql, *types in expressions]
        if not found:
            return ask(table, select(self.inputs, expressions), self.memory)
        table = table.append_column("g", pyarrow.arange(0, table.num_rows))
        rows = {f"__{name}": values(table.column(name)) for name in found}
        return ask(table, select(self.inputs, asked, found), self.memory, rows)

    def check(self) -> None:
        unfit = missing(self.versions) if self.versions else ""
        if unfit:
            raise ValueError(self.told(unfit))
        self.versions = {}

    def explained(self, table: Any, error: Exception) -> str:
        """The first row that fails by itself, in it the expression, and the values that it is made of."""
        low, high = 0, table.num_rows
        while high - low > 1:
            middle = (low + high) // 2
            if self.failure(table.slice(low, middle - low), self.expressions):
                high = middle
            else:
                low = middle
        row = table.slice(low, 1)
        rows = max(map(rows_of, row.columns))
        for at, expression in enumerate(self.expressions):
            said = self.failure(row, [expression])
            if said.startswith("Out of Memory") and rows > 1:
                return self.too_much(rows)
            if said:
                used = set(re.findall(r"\bi\d+\b", expression[0]))
                shown = {n: shown_of(row.column(n)) for n, _ in self.inputs if n in used}
                return self.told(said, at, shown)
        return self.told(str(error))

    def failure(self, part: Any, some: Any) -> str:
        try:
            self.asked(part, some)
        except Exception as error:
            return str(error) or type(error).__name__
        return ""

    def comparable(self, column: Any) -> Any:
        """A column as one of which Arrow says what DuckDB finds equal."""
        import pyarrow

        if not (pyarrow.types.is_nested(column.type) or pyarrow.types.is_floating(column.type)):
            return column
        keys = "SELECT create_sort_key(k, 'ASC NULLS LAST') FROM __batch"
        return ask(pyarrow.table({"k": column}), keys, self.memory).column(0).combine_chunks()

    def too_much(self, rows: int, of: str = "group") -> str:
        return self.told(
            f"a {of} has {rows:,} rows or more, whose values do not fit into the {self.memory} of a task: {of} by "
            f"more, or ask for what keeps no values, such as avg() and count()"
        )

    def told(self, message: str, at: int = 0, values: dict[str, str] | None = None) -> str:
        """What is wrong with the expression at this place, so that the driver finds it."""
        return marked({"call": self.name, "at": at, "message": message, "values": values or {}})


class Windows(Asking):
    """The same of windows over rows of whole partitions, whose last input says which of them a row is of."""

    def asked(self, table: Any, expressions: Any) -> Any:
        import duckdb
        import pyarrow

        numbered = table.append_column("__n", pyarrow.arange(0, table.num_rows))
        try:
            return ask(numbered, of_numbered(self.inputs, expressions), self.memory)
        except duckdb.OutOfMemoryException:
            parts = halves(table)
            if len(parts) == 1:
                raise ValueError(self.too_much(table.num_rows, "partition")) from None
        return pyarrow.concat_tables([self.asked(part, expressions) for part in parts])

    def explained(self, table: Any, error: Exception) -> str:
        return str(error) if MARK in str(error) else super().explained(table, error)


def evaluator(asking: Asking) -> Callable[..., Any]:
    """A function of Arrow arrays, one for each input, that gives a struct array of f0, f1 and so on."""

    # without types: Spark would read a kind of function from them
    def evaluate(*arrays):  # type: ignore[no-untyped-def]
        import pyarrow

        found = asking.answers(arrays)
        return pyarrow.StructArray.from_arrays(found, [f"f{i}" for i in range(len(found))])

    return evaluate


def passer(told: bytes) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function of record batches. Told as JSON: `calls`, each with what `Asking` needs and an Arrow schema of its
    answers; `steps` over the columns of a batch: `["call", name, columns]`, whose answers are further columns, and
    `["keep", column]`, by which other rows are left out; `back`, the columns that are the result, named c0, c1 and so
    on. The first step may be `["group", stay, keys, lists]`, see `grouped`, or `["whole", column]`, which says of which
    partition a row is: then those after it are `["window", name, columns]`, -1 for an input that is no list."""

    def through(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        plan = json.loads(told)
        windows = {name: rest[0] for kind, name, *rest in plan["steps"] if kind == "window"}
        asking = {
            name: Windows(name, *of_rows(call["asking"], windows[name]))
            if name in windows
            else Asking(name, *call["asking"])
            for name, call in plan["calls"].items()
        }
        kinds = {
            name: pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(call["schema"]))).types
            for name, call in plan["calls"].items()
        }
        names = [f"c{i}" for i in range(len(plan["back"]))]
        steps = plan["steps"]
        if steps[0][0] == "group":
            (_, *how), *steps = steps
            found = grouped(gathered(batches, GROUPED), next(iter(asking.values())), *how)
        elif steps[0][0] == "whole":
            (_, key), *steps = steps
            parts = whole(gathered(batches, GROUPED), key, next(iter(asking.values())))
            found = (batch.columns for batch in parts)
            steps = [["call", name, [*(at for at in places if at >= 0), key]] for _, name, places in steps]
        else:
            found = (batch.columns for batch in gathered(batches))
        for columns in found:
            batch = Columns(columns)
            for kind, *rest in steps:
                if kind == "call":
                    name, places = rest
                    batch.called(asking[name], places, kinds[name])
                else:
                    batch.keep(rest[0])
            yield pyarrow.RecordBatch.from_arrays([batch.value(i) for i in plan["back"]], names)

    return through


class Columns:
    """The columns of a batch, and answers, which are asked for when they are needed: not of rows that are left out."""

    def __init__(self, columns: list[Any]) -> None:
        self.columns = [*columns]
        self.calls: dict[int, tuple[Asking, list[int], list[Any], int]] = {}

    def called(self, asking: Asking, places: list[int], kinds: list[Any]) -> None:
        first = len(self.columns)
        self.columns += [None] * len(kinds)
        self.calls.update(dict.fromkeys(range(first, len(self.columns)), (asking, places, kinds, first)))

    def value(self, at: int) -> Any:
        import pyarrow

        if self.columns[at] is None:
            asking, places, kinds, first = self.calls[at]
            given = [self.value(i) for i in places] or [pyarrow.repeat(1, len(self.columns[0]))]
            answers = zip(asking.answers(given), kinds)
            self.columns[first : first + len(kinds)] = [a if a.type == to else a.cast(to) for a, to in answers]
        return self.columns[at]

    def keep(self, at: int) -> None:
        """Leaves out the rows for which a Boolean is not true."""
        wanted = self.value(at)
        if wanted.true_count < len(wanted):
            self.columns = [None if c is None else c.filter(wanted) for c in self.columns]


def gathered(batches: Iterator[Any], times: int = 1) -> Iterator[Any]:
    """The same rows in fewer batches: a question costs as much as some thousand rows, and Spark's batches are small,
    since it counts their rows and not their bytes."""
    import pyarrow

    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= times * ROWS or size >= times * BYTES:
            yield pyarrow.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pyarrow.concat_batches(waiting)


def missing(versions: dict[str, str]) -> str:
    """What the Python of this worker lacks."""
    found = packages()
    if found == versions:
        return ""
    wanted, have = (" and ".join(f"{n} {v}" for n, v in side.items()) for side in (versions, found))
    return (
        f"the Python of Spark's executors needs {wanted}, and has {have}: set PYSPARK_PYTHON or ONDATRA_SPARK_archives"
    )


def packages() -> dict[str, str]:
    """The versions that this Python has of what a task needs."""
    from importlib import import_module

    found = {}
    for name in ("duckdb", "pyarrow"):
        try:
            found[name] = str(import_module(name).__version__)
        except ImportError:
            found[name] = "none"
    return found


def select(inputs: Any, expressions: Any, aggregates: dict[str, list[str]] | None = None) -> str:
    """`aggregates` are those of the rows of lists, by the list, which are the columns m0, m1 and so on of `__` and its
    name: DuckDB computes them for all groups at once, and would hold a list for each expression over it."""
    plain = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT", "VARCHAR", "DATE", "TIMESTAMP"}
    used = set(re.findall(r"\bi\d*\b", " ".join(sql for sql, *_ in expressions)))
    given = ["g"] if aggregates else ["1"]
    given += [n if kind in plain | {"JSON"} else f"CAST({n} AS {kind}) AS {n}" for n, kind in inputs if n in used]
    wanted = ", ".join(
        f"{sql} AS f{i}" if kind == carried else f"CAST({sql} AS {carried}) AS f{i}"
        for i, (sql, kind, carried) in enumerate(expressions)
    )
    text = f"SELECT {wanted} FROM (SELECT {', '.join(given)} FROM __batch) AS __batch"
    for name, found in (aggregates or {}).items():
        rows = f"(SELECT g, CAST(u AS {dict(inputs)[name][:-2]}) AS __u FROM __{name})"
        asked = ", ".join(f"{sql} AS m{i}" for i, sql in enumerate(found))
        none = ", ".join(f"{sql} AS n{i}" for i, sql in enumerate(found))  # of a group without rows
        text += f" LEFT JOIN (SELECT g, {asked} FROM {rows} GROUP BY g) AS __{name} USING (g)"
        text += f" CROSS JOIN (SELECT {none} FROM {rows} WHERE false) AS __none_{name}"
    return f"{text} ORDER BY __batch.g" if aggregates else text


def shown_of(column: Any) -> str:
    """A value as a message shows it, a long list by its begin."""
    value = column[0]
    begin = value.values[:SHOWN].to_pylist() if rows_of(column) > SHOWN else value.as_py()
    return str(begin)[:SHOWN]


def ask(table: Any, sql: str, memory: str, others: dict[str, Any] | None = None) -> Any:
    """The answer as a table, from the worker's one connection. `others`: further tables by their names."""
    import duckdb

    con = getattr(duckdb, "__ondatra__", None)
    if con is None:
        config: dict[str, Any] = {
            "threads": 1,
            "memory_limit": memory,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
        }
        con = duckdb.connect(":memory:", config=config)
        con.execute("SET TimeZone = 'UTC'; SET Calendar = 'gregorian'; SET python_enable_replacements = false")
        con.execute("SET temp_directory = ''; SET enable_external_access = false; SET max_expression_depth = 2000")
        con.execute("SET lock_configuration = true")
        setattr(duckdb, "__ondatra__", con)  # noqa: B010  # for the next task of this worker
    tables = {"__batch": table, **(others or {})}
    for name, rows in tables.items():
        con.register(name, rows)
    try:
        return con.sql(sql).to_arrow_table()
    finally:
        for name in tables:
            con.unregister(name)


def as_json(array: Any) -> Any:
    """Text that is JSON already, as DuckDB knows it."""
    import pyarrow

    kind = pyarrow.json_(pyarrow.utf8())
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
    return pyarrow.ExtensionArray.from_storage(kind, array.cast(pyarrow.utf8()))


def plain_times(array: Any) -> Any:
    """Times of day in the unit that Spark has."""
    import pyarrow

    def spark(kind: Any) -> Any:
        if pyarrow.types.is_time(kind):
            return pyarrow.time64("ns")
        if pyarrow.types.is_map(kind):
            return pyarrow.map_(spark(kind.key_type), spark(kind.item_type))
        if pyarrow.types.is_list(kind):
            return pyarrow.list_(pyarrow.field(kind.value_field.name, spark(kind.value_type)))
        if pyarrow.types.is_struct(kind):
            return pyarrow.struct([pyarrow.field(f.name, spark(f.type)) for f in kind])
        return kind

    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
    return array.cast(spark(array.type)) if "time64" in str(array.type) else array


def marked(said: dict[str, Any]) -> str:
    return MARK + base64.b64encode(json.dumps(said).encode()).decode() + ":"
