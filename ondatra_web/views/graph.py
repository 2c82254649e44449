"""Where each model of a lineage stands: inputs to the left of what reads them, in columns that stay short whatever
their number.

Pure arithmetic, so that the page is one SVG made by a template; coordinates are its user units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runtime.project import dag

WIDTH, HEIGHT = 208, 46
GAP_X, GAP_Y, EDGE = 64, 14, 8
#: Sweeps that move each model towards the middle of its neighbours; more change nothing to the eye.
SWEEPS = 4
FEWEST_ROWS = 6


@dataclass(frozen=True)
class Spot:
    """The upper left corner of a model's box."""

    name: str
    x: int
    y: int


@dataclass(frozen=True)
class Drawing:
    spots: tuple[Spot, ...]
    paths: tuple[str, ...]  # of SVG, from the right side of an input to the left side of its reader
    width: int
    height: int


def around(name: str, inputs: Mapping[str, Iterable[str]]) -> set[str]:
    """A model with everything that it needs and everything that needs it."""
    readers: dict[str, list[str]] = {}
    for reader, found in inputs.items():
        for read in found:
            readers.setdefault(read, []).append(reader)
    return dag.upstream([name], inputs) | dag.upstream([name], readers)


def draw(inputs: Mapping[str, Iterable[str]]) -> Drawing:
    """`inputs` are the models with the names of those that they read; names that are no model are left out."""
    edges = [(read, name) for name, found in inputs.items() for read in found if read in inputs and read != name]
    columns = _columns(inputs, edges)
    most = max(FEWEST_ROWS, math.ceil(math.sqrt(len(inputs)) * 1.3))
    where: dict[str, Spot] = {}
    at = 0
    for column in columns:
        rows = math.ceil(
            len(column) / math.ceil(len(column) / most)
        )  # a long one is broken into several of equal length
        for i, name in enumerate(column):
            where[name] = Spot(name, EDGE + (at + i // rows) * (WIDTH + GAP_X), EDGE + (i % rows) * (HEIGHT + GAP_Y))
        at += math.ceil(len(column) / rows)
    width = max((s.x for s in where.values()), default=0) + WIDTH + EDGE
    height = max((s.y for s in where.values()), default=0) + HEIGHT + EDGE
    return Drawing(tuple(where.values()), tuple(_path(where[a], where[b]) for a, b in edges), width, height)


def _columns(inputs: Mapping[str, Iterable[str]], edges: list[tuple[str, str]]) -> list[list[str]]:
    """Models by the longest way to them, and within a column near to their neighbours."""
    depth: dict[str, int] = {}
    before: dict[str, list[str]] = {name: [] for name in inputs}
    after: dict[str, list[str]] = {name: [] for name in inputs}
    for read, reader in edges:
        before[reader].append(read)
        after[read].append(reader)
    for name in dag.order(before)[0]:
        depth[name] = max((depth[i] + 1 for i in before[name] if i in depth), default=0)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in sorted(inputs):
        columns[depth[name]].append(name)
    for sweep in range(SWEEPS):
        neighbours = before if sweep % 2 == 0 else after
        place = {name: i / len(column) for column in columns for i, name in enumerate(column)}
        for column in columns if sweep % 2 == 0 else reversed(columns):
            column.sort(
                key=lambda n: sum(place[m] for m in neighbours[n]) / len(neighbours[n]) if neighbours[n] else place[n]
            )
            place |= {name: i / len(column) for i, name in enumerate(column)}
    return columns


def _path(start: Spot, end: Spot) -> str:
    x1, y1, x2, y2 = start.x + WIDTH, start.y + HEIGHT // 2, end.x, end.y + HEIGHT // 2
    bend = max(GAP_X // 2, (x2 - x1) // 3)
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
