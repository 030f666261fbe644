"""The search structure of a shape: smooth patches, root boxes of their parameters, derivative bounds, nodes.

Nodes are made when a search needs them, so a tree is mutable and belongs to one :class:`~.distance.Distance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from cardan.geometry.checks import FloatArray, IntArray
from cardan.geometry.memory import Memory, address_of
from cardan.geometry.patches import Patch
from cardan.geometry.shape import Shape
from cardan.geometry.tables import BOUNDS, Enclosure, NodeBox, NodeLinks, SearchWork, ShapeInts, TreeTable, enclosing
from cardan.lazy import LazyModule, direct

_nodes = LazyModule("cardan.geometry._nodes")

CAPACITY = 1000  # nodes of a tree at first; a search of two bumpy surfaces makes about 300
ENLARGE = 4
MOST_NODES = 4_000_000
_FRONT = TreeTable.size + 1  # integers of a tree before its patches
_WORK, _DEGREES, _BOX = ShapeInts.work.first, ShapeInts.degrees.first, NodeBox.box.first


def _work(header: Sequence[int]) -> int:
    """Floats of scratch of the evaluator and of the enclosure of a shape."""
    return max(header[_WORK] + 18, enclosing(header[_DEGREES] + 1, header[_DEGREES + 1] + 1))


@cache
def enclosure(module: str) -> int:
    """Address of the kernel that encloses boxes."""
    return int(import_module(module).ENCLOSE)


def _make_first_roots(*arguments: int) -> float:
    """The first call of a process: later ones do not look up the types of their arguments."""
    found: float = _nodes.make_roots(*arguments)
    Tree._make_roots = staticmethod(direct(_nodes.make_roots))
    return found


@cache
def trim() -> int:
    """Address of the kernel that tests boxes and points against the loops of a face."""
    return int(import_module("cardan.geometry._trim").TRIM)


class Tree:
    """Packed patches, roots and nodes, in one memory.  scratch: floats of the workspace of a search with this tree."""

    _make_roots: ClassVar[Any] = staticmethod(_make_first_roots)

    def __init__(self, shape: Any, extent: float = np.inf) -> None:
        self._shape = shape  # its tables are used by address
        patches: list[Patch] = shape.patches(extent)
        self.smooth = len(patches)
        if self.smooth > 1:  # one more, without roots: the whole domain, for local searches
            patches = [*patches, *shape.whole_patches(extent)]
        self.patches = patches
        rows: list[int] = []
        limits: list[float] = []
        roots = work = end = 0
        for part, own, boxes, module, _, loops, (first, last, low, high) in patches:
            count = (last - first) * (high - low) if boxes is None else len(boxes)
            place = 0 if loops is None else address_of(loops)
            rows += part.addresses
            rows += part.freedoms, enclosure(module), place, count, first, low, high - low, trim() if place else 0
            limits += own
            roots += count
            work = max(work, _work(part.header))
        self.roots, self._rows, self._limits = roots, rows, len(limits)
        self.scratch = SearchWork.size + work
        self.capacity = max(CAPACITY, 4 * roots)
        memory = self._take()
        floats = memory.floats
        floats[: self._limits] = limits
        for patch in patches:
            if patch.boxes is not None:  # else the kernel makes the roots, and no bounds are needed
                first, end = end, end + len(patch.boxes)
                self.boxes[first:end, _BOX : _BOX + 4] = patch.boxes
                if patch.bounds is not None:
                    at = self._limits + BOUNDS * first
                    floats[at : at + patch.bounds.size] = patch.bounds.ravel()
            else:
                end += patch.root_count
        ints, start = memory.addresses
        found = Tree._make_roots(ints, start + 8 * self._scratch)
        hull = getattr(shape, "extent", np.inf)  # of the control points: roots with uneven weights may be far larger
        self.extent = min(found, hull)

    def _take(self) -> Memory:
        """Memory for ``capacity`` nodes, and the table.

        ints: the table, the number of nodes, patches, nodes; floats: limits, bounds, scratch, boxes.
        """
        n, rows, roots, limits = self.capacity, self._rows, self.roots, self._limits
        self._front = front = _FRONT + len(rows)
        self._scratch = scratch = limits + BOUNDS * roots
        self._first = first = scratch + self.scratch
        self._memory = memory = Memory.take(front + n * NodeLinks.size, first + n * NodeBox.size)
        ints, floats = memory.addresses
        self.table = table = [
            ints + 8 * _FRONT, floats, ints + 8 * front, floats + 8 * first, floats + 8 * limits,
            ints + 8 * TreeTable.size, n, roots,
        ]  # fmt: skip
        memory.ints[:front] = [*table, roots, *rows]
        return memory

    @property
    def count(self) -> IntArray:
        """Number of nodes, shape (1,)."""
        return self._memory.ints[TreeTable.size : _FRONT]

    @property
    def nodes(self) -> IntArray:
        """Patch, root, first child and state of each node, shape (capacity, 4)."""
        return self._memory.ints[self._front :].reshape(-1, NodeLinks.size)

    @property
    def boxes(self) -> FloatArray:
        """Enclosure, box and size of each node, shape (capacity, 15)."""
        return self._memory.floats[self._first :].reshape(-1, NodeBox.size)

    def __del__(self) -> None:
        if hasattr(self, "_memory"):
            self._memory.give()

    @property
    def is_full(self) -> bool:
        """Whether there is no room for the children of a node."""
        return bool(self.count[0] + 4 > self.capacity)

    def forget(self) -> None:
        """Remove all nodes but the roots."""
        self.count[0] = self.roots
        self.nodes[: self.roots, NodeLinks.child.first] = -1

    def enlarge(self) -> bool:
        """Make room for more nodes; False at the limit."""
        if self.capacity * ENLARGE > MOST_NODES:
            return False
        old = self._memory
        self.capacity *= ENLARGE
        self._take()
        self._memory.ints[TreeTable.size : old.ints.size] = old.ints[TreeTable.size :]
        self._memory.floats[: old.floats.size] = old.floats
        old.give()
        return True


def call_enclosure(shape: Shape, box: FloatArray, op: int) -> FloatArray:
    """The enclosure (op 0: centre, two half edges, radius) or the derivative bounds (op 1) of a box inside one span."""
    out = np.empty(Enclosure.size)
    work = np.empty(_work(shape.header))
    q = np.zeros(4)
    for i in range(shape.freedoms):
        q[i], q[2 + i] = 0.5 * (box[2 * i] + box[2 * i + 1]), 0.5 * (box[2 * i + 1] - box[2 * i])
    shape.table  # noqa: B018  (makes the table)
    _nodes.enclose_once(enclosure("cardan.geometry._enclose"), shape._table_address, op, q, out, work)
    return out if op == 0 else out[:BOUNDS]
