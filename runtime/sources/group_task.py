"""Groups of rows as lists, within one of Spark's Python workers, to which these functions travel by value as those of
duck_task do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.sources.duck_task import Asking

#: Bytes of the values of a group, at most; with more rows than so many it is asked for alone, without a list.
GROUP, LARGE = 512_000_000, 500_000


def grouped(batches: Iterator[Any], asking: Asking, keys: int, lists: list[int]) -> Iterator[Any]:
    """The groups of rows that come in the order of the first `keys` columns. Where there are none all rows are one
    group, behind a first one that is none. Of each group come these `lists` (places of columns) of what is not NULL, of
    the other columns the value of its first row, and then the number of its rows; a large one comes alone. One that
    does not fit is an error of `asking`."""
    import pyarrow

    pieces: list[Any] = []  # of the last group, of which more may come
    for batch in batches:
        if pieces and not is_one(pieces[-1], batch, keys):
            yield listed(pyarrow.concat_batches(pieces), keys, lists)
            pieces = []
        first = begins(batch, keys)
        last, rows = first[-1].as_py(), sum(piece.num_rows for piece in pieces)
        if not last:
            pieces.append(batch)
            if sum(piece.nbytes for piece in pieces) > GROUP:
                raise ValueError(asking.too_much(rows + batch.num_rows))
            continue
        if rows > LARGE:
            end = first[1].as_py()
            yield listed(pyarrow.concat_batches([*pieces, batch.slice(0, end)]), keys, lists)
            pieces, batch, last = [], batch.slice(end), last - end
        if pieces or last:
            yield listed(pyarrow.concat_batches([*pieces, batch.slice(0, last)]), keys, lists)
        pieces = [batch.slice(last)]
    if pieces:
        yield listed(pyarrow.concat_batches(pieces), keys, lists)


def is_one(batch: Any, following: Any, keys: int) -> bool:
    """Whether the last group of some rows goes on in the following."""
    import pyarrow

    both = pyarrow.concat_batches([batch.slice(batch.num_rows - 1), following.slice(0, 1)])
    return len(begins(both, keys)) == 1


def begins(batch: Any, keys: int) -> Any:
    """Where groups begin in rows of which there are some."""
    import pyarrow
    import pyarrow.compute as pc

    first = pyarrow.array([0], pyarrow.uint64())
    changes = None
    for column in batch.columns[:keys]:
        one, other = column.slice(1), column.slice(0, len(column) - 1)
        differ = pc.fill_null(pc.not_equal(one, other), False)
        differ = pc.or_(differ, pc.not_equal(pc.is_null(one), pc.is_null(other)))
        changes = differ if changes is None else pc.or_(changes, differ)
    if changes is None:
        return first
    return pyarrow.concat_arrays([first, pc.add(pc.indices_nonzero(changes), pyarrow.scalar(1, pyarrow.uint64()))])


def listed(batch: Any, keys: int, lists: list[int]) -> Any:
    """A row for each group, as `grouped` says."""
    import pyarrow
    import pyarrow.compute as pc

    first = begins(batch, keys)
    ends = pyarrow.concat_arrays([first.cast(pyarrow.int32()), pyarrow.array([batch.num_rows], pyarrow.int32())])
    found = []
    for at, column in enumerate(batch.columns):
        if at not in lists:
            found.append(column.take(first))
            continue
        offsets = ends
        if column.null_count:
            there = column.is_valid()
            before = pyarrow.concat_arrays(
                [pyarrow.array([0], pyarrow.int32()), pc.cumulative_sum(there.cast("int32"))]
            )
            offsets, column = before.take(ends), column.filter(there)
        found.append(pyarrow.ListArray.from_arrays(offsets, column))
    rows = pc.subtract(ends.slice(1), ends.slice(0, len(ends) - 1)).cast(pyarrow.int64())
    found.append(rows if keys else pc.subtract(rows, 1))
    return pyarrow.RecordBatch.from_arrays(found, [str(i) for i in range(len(found))])


def is_large(column: Any) -> bool:
    """Whether it is the list of one large group."""
    return len(column) == 1 and rows_of(column) > LARGE


def rows_of(column: Any) -> int:
    """How many rows the list of a group has; 1 for another value."""
    import pyarrow
    import pyarrow.compute as pc

    return (pc.list_value_length(column)[0].as_py() or 0) if pyarrow.types.is_list(column.type) else 1


def values(column: Any) -> Any:
    """The rows of a list, `u`, as a table."""
    import pyarrow

    return pyarrow.table({"u": column.chunk(0).flatten()})
