"""DuckDB within one of Spark's Python workers: what a task calls for each batch of rows.

The functions travel to the workers by value, so nothing of this project is imported here.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

#: What a worker's DuckDB may take.
MEMORY = "512MB"
#: What DuckDB is asked at once, at least: rows, or bytes.
ROWS, BYTES = 40_000, 16_000_000
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
        self.sql = select(inputs, expressions)
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
            found = ask(table, self.sql, self.memory)
        except Exception as error:
            raise ValueError(self.explained(table, error)) from None
        return [plain_times(c) for c in found.columns]

    def check(self) -> None:
        unfit = missing(self.versions) if self.versions else ""
        if unfit:
            raise ValueError(marked({"call": self.name, "at": 0, "message": unfit, "values": {}}))
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
        for at, expression in enumerate(self.expressions):
            said = self.failure(row, [expression])
            if said:
                used = set(re.findall(r"\bi\d+\b", expression[0]))
                shown = {n: str(row.column(n)[0].as_py())[:SHOWN] for n, _ in self.inputs if n in used}
                return marked({"call": self.name, "at": at, "message": said, "values": shown})
        return marked({"call": self.name, "at": 0, "message": str(error), "values": {}})

    def failure(self, part: Any, some: Any) -> str:
        try:
            ask(part, select(self.inputs, some), self.memory)
        except Exception as error:
            return str(error) or type(error).__name__
        return ""


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
    on."""

    def through(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        plan = json.loads(told)
        asking = {name: Asking(name, *call["asking"]) for name, call in plan["calls"].items()}
        kinds = {
            name: pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(call["schema"]))).types
            for name, call in plan["calls"].items()
        }
        names = [f"c{i}" for i in range(len(plan["back"]))]
        for batch in gathered(batches):
            columns = batch.columns
            for kind, *rest in plan["steps"]:
                if kind == "call":
                    name, places = rest
                    given = [columns[i] for i in places] or [pyarrow.repeat(1, len(columns[0]))]
                    found = asking[name].answers(given)
                    columns += [a if a.type == to else a.cast(to) for a, to in zip(found, kinds[name])]
                else:
                    columns = kept(columns, columns[rest[0]])
            yield pyarrow.RecordBatch.from_arrays([columns[i] for i in plan["back"]], names)

    return through


def gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """The same rows in fewer batches: a question costs as much as some thousand rows, and Spark's batches are small,
    since it counts their rows and not their bytes."""
    import pyarrow

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= ROWS or sum(b.nbytes for b in waiting) >= BYTES:
            yield pyarrow.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pyarrow.concat_batches(waiting)


def kept(columns: list[Any], wanted: Any) -> list[Any]:
    """The rows for which a Boolean is true."""
    return columns if wanted.true_count == len(wanted) else [c.filter(wanted) for c in columns]


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


def select(inputs: Any, expressions: Any) -> str:
    plain = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT", "VARCHAR", "DATE", "TIMESTAMP"}
    given = ", ".join(f"{n}" if kind in plain | {"JSON"} else f"CAST({n} AS {kind}) AS {n}" for n, kind in inputs)
    wanted = ", ".join(
        f"{sql} AS f{i}" if kind == carried else f"CAST({sql} AS {carried}) AS f{i}"
        for i, (sql, kind, carried) in enumerate(expressions)
    )
    return f"SELECT {wanted} FROM (SELECT {given} FROM __batch)"


def ask(table: Any, sql: str, memory: str) -> Any:
    """The answer as a table, from the worker's one connection."""
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
    con.register("__batch", table)
    try:
        return con.sql(sql).to_arrow_table()
    finally:
        con.unregister("__batch")


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
