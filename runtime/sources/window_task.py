"""Windows over whole partitions, within one of Spark's Python workers, to which these functions travel by value as
those of duck_task do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from runtime.sources.group_task import GROUP, QUOTED, begins, changes

#: A window over the list of a partition, of which one row's value is taken (`grouping/partitions.py`).
OVER_LIST = re.compile(
    r"\(SELECT v FROM \(SELECT u\.a0 AS n, (.*) AS v FROM \(SELECT unnest\((i\d+)\) AS u\)\) WHERE n = i\d+\)", re.S
)
#: The column by which the rows of a partition are found.
PART = "__part"


def of_rows(asking: Sequence[Any], places: Sequence[int]) -> list[Any]:
    """What a call over lists is told, as one over their rows: inputs, expressions, and the rest. `places` are -1 for
    inputs that are no lists."""
    inputs, expressions, *rest = asking
    rows = [[name, kind.removesuffix("[]")] for (name, kind), at in zip(inputs, places) if at >= 0]
    return [[*rows, [PART, "INTEGER"]], [[of_row(sql), *kinds] for sql, *kinds in expressions], *rest]


def of_row(sql: str) -> str:
    found = OVER_LIST.fullmatch(sql)
    if not found:
        raise ValueError(f"no window over a list: {sql}")
    parts = QUOTED.split(found[1])
    parts[::2] = [re.sub(r"\bu\.", f"{found[2]}.", part) for part in parts[::2]]
    return "".join(parts)


def of_numbered(inputs: Sequence[Any], expressions: Sequence[Any]) -> str:
    """The question over rows with numbers: DuckDB has its own order of them."""
    given = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in inputs)
    wanted = [f"CAST({sql} AS {carried}) AS f{i}" for i, (sql, _, carried) in enumerate(expressions)]
    fields = ", ".join(f"f{i}" for i in range(len(wanted)))
    rows = f"SELECT {', '.join(wanted)}, __n FROM (SELECT {given}, __n FROM __batch)"
    return f"SELECT {fields} FROM ({rows}) ORDER BY __n"


def whole(batches: Iterator[Any], key: int, asking: Any) -> Iterator[Any]:
    """The rows, which come in the order of the column `key`, in batches of whole partitions. One that does not fit into
    memory is an error of `asking`."""
    import pyarrow

    pieces: list[Any] = []
    for batch in batches:
        part = batch.column(key)
        if pieces and not pieces[-1].column(key)[-1].equals(part[0]):
            yield pyarrow.concat_batches(pieces)
            pieces = []
        last = begins(changes(part))[-1].as_py()
        if last:
            yield pyarrow.concat_batches([*pieces, batch.slice(0, last)])
            pieces, batch = [], batch.slice(last)
        pieces.append(batch)
        if sum(piece.nbytes for piece in pieces) > GROUP:
            raise ValueError(asking.too_much(sum(piece.num_rows for piece in pieces), "partition"))
    if pieces:
        yield pyarrow.concat_batches(pieces)


def halves(table: Any) -> tuple[Any, ...]:
    """Two tables of whole partitions, or the one that there is; `PART` is their column."""
    first = begins(changes(table.column(PART).combine_chunks()))
    middle = first[len(first) // 2].as_py()
    return (table[:middle], table[middle:]) if middle else (table,)
