"""Where the nodes of a graph are drawn: in columns, each node to the right of those that need it.

Owns the columns, the order in them and the coordinates. Must not know what is drawn.

A library is not used: those in Python need Graphviz as a program, and a graph of services has few nodes. The columns
are by the longest path; the order in each follows the middle of the neighbors, which keeps most lines from crossing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

_SWEEPS = 8
_COLUMN_GAP, _ROW_GAP = 150, 24


class Size(NamedTuple):
    width: int
    height: int


class Box(NamedTuple):
    x: int
    y: int
    size: Size

    @property
    def left(self) -> tuple[int, int]:
        return self.x, self.y + self.size.height // 2

    @property
    def right(self) -> tuple[int, int]:
        return self.x + self.size.width, self.y + self.size.height // 2


class Layout(NamedTuple):
    boxes: Mapping[str, Box]
    lines: Mapping[tuple[str, str], Sequence[tuple[int, int]]]
    """The points of each edge, from the right of its source to the left of its target."""
    size: Size


def lay_out(sizes: Mapping[str, Size], edges: Iterable[tuple[str, str]]) -> Layout:
    """Lay out nodes with these sizes; an edge that closes a cycle does not move its nodes."""
    pairs = list(dict.fromkeys(edges))
    columns_of = _longest_paths(list(sizes), pairs)
    chains = {pair: _chain(pair, columns_of) for pair in pairs}
    all_sizes = {**dict.fromkeys((name for chain in chains.values() for name in chain), Size(0, 0)), **sizes}
    columns = _ordered_columns(columns_of, chains)
    boxes = _place(columns, all_sizes)
    lines = {pair: _points([boxes[name] for name in chain]) for pair, chain in chains.items()}
    extent = Size(
        max((box.right[0] for box in boxes.values()), default=0),
        max((box.y + box.size.height for box in boxes.values()), default=0),
    )
    return Layout(boxes={name: boxes[name] for name in sizes}, lines=lines, size=extent)


def _longest_paths(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the column of each node: one more than that of any node that needs it."""
    column = dict.fromkeys(names, 0)
    # No path has more edges than there are other nodes; a cycle would move its nodes for ever.
    for _ in range(len(names) - 1):
        moved = False
        for source, target in pairs:
            if column[target] <= column[source] < len(names) - 1:
                column[target] = column[source] + 1
                moved = True
        if not moved:
            break
    return column


def _chain(pair: tuple[str, str], column: dict[str, int]) -> list[str]:
    """Return the nodes of an edge with a place in each column between them, which is added to the columns."""
    source, target = pair
    between = [f"{source}>{target}>{index}" for index in range(column[source] + 1, column[target])]
    column.update({name: column[source] + offset for offset, name in enumerate(between, 1)})
    return [source, *between, target]


def _ordered_columns(column: Mapping[str, int], chains: Mapping[tuple[str, str], Sequence[str]]) -> list[list[str]]:
    columns: list[list[str]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for name, index in column.items():
        columns[index].append(name)
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for chain in chains.values():
        for source, target in pairwise(chain):
            before.setdefault(target, []).append(source)
            after.setdefault(source, []).append(target)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        neighbors = before if forward else after
        steps = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        for index in steps:
            _sort_by_neighbors(columns[index], columns[index - 1 if forward else index + 1], neighbors)
    return columns


def _sort_by_neighbors(column: list[str], other: Sequence[str], neighbors: Mapping[str, Sequence[str]]) -> None:
    rows = {name: row for row, name in enumerate(other)}

    def middle(item: tuple[int, str]) -> float:
        own, name = item
        found = [rows[neighbor] for neighbor in neighbors.get(name, ()) if neighbor in rows]
        return sum(found) / len(found) if found else float(own)

    column[:] = [name for _, name in sorted(enumerate(column), key=middle)]


def _place(columns: Sequence[Sequence[str]], sizes: Mapping[str, Size]) -> dict[str, Box]:
    heights = [sum(sizes[name].height + _ROW_GAP for name in column) - _ROW_GAP for column in columns]
    tallest = max(heights, default=0)
    boxes: dict[str, Box] = {}
    x = 0
    for column, height in zip(columns, heights, strict=True):
        width = max(sizes[name].width for name in column)
        y = (tallest - height) // 2
        for name in column:
            boxes[name] = Box(x, y, sizes[name] if sizes[name].width else Size(width, 0))
            y += sizes[name].height + _ROW_GAP
        x += width + _COLUMN_GAP
    return boxes


def _points(boxes: Sequence[Box]) -> list[tuple[int, int]]:
    middle = [point for box in boxes[1:-1] for point in (box.left, box.right)]
    return [boxes[0].right, *middle, boxes[-1].left]
