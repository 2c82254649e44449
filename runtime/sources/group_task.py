"""Groups of rows as lists, within one of Spark's Python workers, to which these functions travel by value as those of
duck_task do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.sources.duck_task import Asking

#: Bytes of the values of a group, at most.
GROUP = 512_000_000
#: Texts and names within DuckDB's SQL, and what an aggregate of the rows of a list ends with.
QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")""")
UNNESTED = re.compile(r" FROM \(SELECT unnest\((i\d+)\) AS __u\)\)")


def grouped(
    batches: Iterator[Any], asking: Asking, stay: int, keys: list[int], lists: list[Any]
) -> Iterator[list[Any]]:
    """The groups of rows of which those of one number, their first column, come together: columns of what stays of each
    group, the number of its rows, and its lists.

    `stay` columns have one value in all rows of a group; in the places of `keys` it tells them apart. Without keys all
    rows are one group, behind a first one that is none. Then follow a number for the order of the rows, and the columns
    of `lists`: each is told as the places of its fields by their names, and that of what is NULL in a row which
    is not in the list. A group that does not fit is an error of `asking`."""

    pieces: list[Any] = []  # of the last number, of which more may come
    for batch in batches:
        by = batch.column(0)
        if keys and pieces and not pieces[-1].column(0)[-1].equals(by[0]):
            yield listed(pieces, asking, stay, keys, lists)
        last = begins(changes(by))[-1].as_py() if keys else 0
        if last:
            pieces.append(batch.slice(0, last))
            yield listed(pieces, asking, stay, keys, lists)
        pieces.append(batch.slice(last))
        if sum(piece.nbytes for piece in pieces) > GROUP:
            raise ValueError(asking.too_much(sum(piece.num_rows for piece in pieces)))
    if pieces:
        yield listed(pieces, asking, stay, keys, lists)


def changes(column: Any) -> Any:
    """Of each value but the first, whether it is another one than that before."""
    import pyarrow.compute as pc

    one, other = column.slice(1), column.slice(0, len(column) - 1)
    differ = pc.fill_null(pc.not_equal(one, other), False)
    return pc.or_(differ, pc.not_equal(pc.is_null(one), pc.is_null(other)))


def begins(changed: Any) -> Any:
    """Where groups begin."""
    import pyarrow
    import pyarrow.compute as pc

    first = pyarrow.array([0], pyarrow.int32())
    return pyarrow.concat_arrays([first, pc.add(pc.indices_nonzero(changed), 1).cast(pyarrow.int32())])


def in_order(batch: Any, asking: Asking, stay: int, keys: list[int]) -> tuple[Any, Any]:
    """The rows of a group side by side in the order in which they were read, and where others begin. Sorted by their
    number those of two groups may be mixed, which is rare, and those that Spark read in parts, or laid aside."""
    import pyarrow
    import pyarrow.compute as pc

    by, *others = [batch.column(0), *(asking.comparable(batch.column(at)) for at in keys if at)]
    order, changed = batch.column(stay), changes(by)
    mixed = [pc.less(order.slice(1), order.slice(0, len(order) - 1)), *map(changes, others)]
    if not any(pc.any(pc.and_not(one, changed)).as_py() for one in mixed):
        return batch, begins(changed if keys else pyarrow.nulls(0, pyarrow.bool_()))

    table = pyarrow.table([by, *others, order], [str(at) for at in range(len(others) + 2)])
    rows = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    changed = changes(by.take(rows))
    for one in others:
        changed = pc.or_(changed, changes(one.take(rows)))
    return batch.take(rows), begins(changed)


def listed(pieces: list[Any], asking: Asking, stay: int, keys: list[int], lists: list[Any]) -> list[Any]:
    """The columns of the groups of these rows, of which none are kept, as `grouped` says."""
    import pyarrow
    import pyarrow.compute as pc

    batch = pyarrow.concat_batches(pieces)
    pieces.clear()
    batch, first = in_order(batch, asking, stay, keys)
    ends = pyarrow.concat_arrays([first, pyarrow.array([batch.num_rows], pyarrow.int32())])
    rows = pc.subtract(ends.slice(1), first).cast(pyarrow.int64())
    found = [*(column.take(first) for column in batch.columns[:stay]), rows if keys else pc.subtract(rows, 1)]
    values = batch.columns[stay:]
    for fields, there in lists:
        left = None if there is None else values[there].is_null()
        row = pyarrow.StructArray.from_arrays([values[at] for at in fields.values()], [*fields], mask=left)
        offsets = ends
        if left is not None:
            kept = pc.cumulative_sum(pc.invert(left).cast("int32"))
            offsets = pyarrow.concat_arrays([pyarrow.array([0], pyarrow.int32()), kept]).take(ends)
            row = row.drop_null()
        found.append(pyarrow.ListArray.from_arrays(offsets, row))
    return found


def rows_of(column: Any) -> int:
    """How many rows the list of a group has; 1 for another value."""
    import pyarrow
    import pyarrow.compute as pc

    return (pc.list_value_length(column)[0].as_py() or 0) if pyarrow.types.is_list(column.type) else 1


def values(column: Any) -> Any:
    """The rows of lists, `u`, each with the number of its list, `g`, as a table."""
    import pyarrow
    import pyarrow.compute as pc

    return pyarrow.table({"g": pc.list_parent_indices(column), "u": pc.list_flatten(column)})


def aggregates_of(sql: str, found: dict[str, list[str]]) -> str:
    """An expression over lists without the aggregates of their rows, which are `found` by the name of the list."""
    masked = QUOTED.sub(lambda text: "_" * len(text[0]), sql)
    for over in reversed(list(UNNESTED.finditer(masked))):
        begin, depth = over.start(), 1
        while depth:
            begin -= 1
            depth += {"(": -1, ")": 1}.get(masked[begin], 0)
        name, aggregate = over[1], sql[begin + len("(SELECT ") : over.start()]
        known = found.setdefault(name, [])
        known += [] if aggregate in known else [aggregate]
        at = known.index(aggregate)
        told = f"CASE WHEN __{name}.g IS NULL THEN __none_{name}.n{at} ELSE __{name}.m{at} END"
        sql = f"{sql[:begin]}({told}){sql[over.end() :]}"
    return sql
