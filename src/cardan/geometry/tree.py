"""The search structure of a shape: smooth patches, root boxes of their parameters, derivative bounds, nodes.

A patch has two continuous derivatives: NURBS are divided at knots of lower continuity.  Nodes are made when a search
needs them, so a tree is mutable and belongs to one :class:`~.distance.Distance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cardan.geometry import abi, basis
from cardan.geometry._workspace import SCRATCH
from cardan.geometry.checks import FloatArray, IntArray
from cardan.geometry.memory import Memory, address_of
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.shape import Shape
from cardan.lazy import LazyModule

_nodes = LazyModule("cardan.geometry._nodes")

CAPACITY = 1000  # nodes of a tree at first; a search of two bumpy surfaces makes about 300
SAME_KNOT = 1e-12  # of the size of the parameters: knots that may count as one
ENLARGE = 4
MOST_NODES = 4_000_000
_FRONT = abi.TREE + 1  # integers of a tree before its patches


class Patch(NamedTuple):
    """A smooth part of a shape.

    limits: bounds and period per parameter, as in the table; boxes: roots, shape (n, 4); enclosure: module of the
    kernel that encloses boxes; bounds: of derivatives on each root, shape (n, 9), for the enclosure by Taylor's
    theorem; loops: of a trimmed face in the parameter plane.
    """

    shape: Shape
    limits: FloatArray
    boxes: FloatArray
    enclosure: str = "cardan.geometry._enclose"
    bounds: FloatArray | None = None
    loops: FloatArray | None = None


def nurbs_patches(shape: Curve | Surface) -> list[Patch]:
    """Patches of a NURBS, between knots with fewer than two continuous derivatives."""
    surface = isinstance(shape, Surface)
    breaks: Sequence[FloatArray] = shape.breaks if isinstance(shape, Surface) else (shape.breaks,)
    knots = shape.knots if isinstance(shape, Surface) else (shape.knots,)
    degrees = shape.degrees if isinstance(shape, Surface) else (shape.degree,)
    number = [b.size - 1 for b in breaks]
    ranges = [_smooth(b, t, d, p) for b, t, d, p in zip(breaks, knots, degrees, shape.periods, strict=True)]
    if not surface:
        ranges.append([(0, 1, 0.0)])
        breaks = (*breaks, np.array([0.0, 0.0]))
        number.append(1)
    boxes = np.empty((number[0], number[1], 4))
    boxes[..., 0], boxes[..., 1] = breaks[0][:-1, None], breaks[0][1:, None]
    boxes[..., 2], boxes[..., 3] = breaks[1][:-1], breaks[1][1:]
    if len(ranges[0]) == len(ranges[1]) == 1:
        limits = shape.floats[: abi.LIMITS].copy()
        limits[2], limits[5] = ranges[0][0][2], ranges[1][0][2]
        return [Patch(shape, limits, boxes.reshape(-1, 4))]
    u, v = breaks[0].tolist(), breaks[1].tolist()
    found = []
    for s, e, period_u in ranges[0]:
        for t, f, period_v in ranges[1]:
            limits = np.array([u[s], u[e], period_u, v[t], v[f], period_v])
            found.append(Patch(shape, limits, boxes[s:e, t:f].reshape(-1, 4)))
    return found


def whole(shape: Shape) -> Patch:
    """The whole domain, without roots."""
    limits = shape.floats[: abi.LIMITS].copy()
    return Patch(shape, limits, np.empty((0, 4)))


def _smooth(breaks: FloatArray, knots: FloatArray, degree: int, period: float) -> list[tuple[int, int, float]]:
    """Ranges of spans between knots that are not smooth: first, end, period."""
    inside: list[int] = []
    u = breaks.tolist()
    simple = knots.size - 2 * (degree + 1) == len(u) - 2 and degree > 2  # every inner knot occurs once
    if not simple or min(y - x for x, y in pairwise(u)) <= SAME_KNOT * max(1.0, abs(u[0]), abs(u[-1])):
        inside = [k for k in range(1, breaks.size - 1) if basis.continuity(knots, degree, breaks[k]) < 2]
    if not inside and period and np.count_nonzero(knots == breaks[0]) == 1 and degree > 2:
        return [(0, breaks.size - 1, period)]
    ends = [0, *inside, breaks.size - 1]
    return [(a, b, 0.0) for a, b in pairwise(ends)]


def _work(ints: IntArray) -> int:
    """Floats of scratch of the evaluator and of the enclosure of a shape."""
    n, m = int(ints[abi.DEGREE_U]) + 1, int(ints[abi.DEGREE_V]) + 1
    return max(int(ints[abi.WORK]) + 18, 4 * n * m + 36 + 4 * n + 4 * m)


@cache
def enclosure(module: str) -> int:
    """Address of the kernel that encloses boxes."""
    return int(import_module(module).ENCLOSE)


class Tree:
    """Packed patches, roots and nodes, in one memory.

    ints: the table (fields T_…), the number of nodes, patches, nodes; floats: limits, bounds of the roots, boxes.
    """

    def __init__(self, shape: Any, extent: float = np.inf) -> None:
        self.patches: list[Patch] = shape.patches(extent)
        self.smooth = len(self.patches)
        if self.smooth > 1:  # one more, without roots: the whole domain, for local searches
            self.patches = [*self.patches, *shape.whole_patches(extent)]
        self._shape = shape  # its tables are used by address
        self.roots = sum([len(patch.boxes) for patch in self.patches])
        self.capacity = max(CAPACITY, 4 * self.roots)
        self._take()
        floats = self._memory.floats
        rows: list[int] = []
        first, last = 0, len(self.patches) * abi.P_LIMITS
        for k, patch in enumerate(self.patches):
            loops = 0 if patch.loops is None else address_of(patch.loops)
            rows += [*patch.shape.addresses, patch.shape.freedoms, enclosure(patch.enclosure), loops]
            floats[abi.P_LIMITS * k : abi.P_LIMITS * (k + 1)] = patch.limits
            end = first + len(patch.boxes)
            self.nodes[first:end, abi.N_PATCH] = k
            self.boxes[first:end, abi.N_BOX : abi.N_BOX + 4] = patch.boxes
            if patch.bounds is not None:
                floats[last + abi.BOUNDS * first : last + abi.BOUNDS * end] = patch.bounds.ravel()
            first = end
        self._memory.ints[abi.TREE : _FRONT + len(rows)] = [self.roots, *rows]
        self.work = max([_work(patch.shape.ints) for patch in self.patches])
        found = float(_nodes.make_roots(self._memory.addresses[0], np.empty(self.scratch)))
        hull = getattr(shape, "extent", np.inf)  # of the control points: roots with uneven weights may be far larger
        self.extent = min(found, hull)

    def _take(self) -> None:
        """Memory for ``capacity`` nodes, and the table."""
        n, patches = self.capacity, len(self.patches)
        front, limits = _FRONT + abi.PATCH * patches, abi.P_LIMITS * patches
        bounds = limits + abi.BOUNDS * self.roots
        self._memory = Memory.take(front + n * abi.NODE_INTS, bounds + n * abi.NODE)
        ints, floats = self._memory.addresses
        nodes, boxes = ints + 8 * front, floats + 8 * bounds
        self.table = [
            ints + 8 * _FRONT, floats, nodes, boxes, floats + 8 * limits, ints + 8 * abi.TREE, n, self.roots,
        ]  # fmt: skip
        self._memory.ints[: abi.TREE] = self.table
        self.count: IntArray = self._memory.ints[abi.TREE : _FRONT]
        self.nodes: IntArray = self._memory.ints[front:].reshape(n, abi.NODE_INTS)
        self.boxes: FloatArray = self._memory.floats[bounds:].reshape(n, abi.NODE)

    def __del__(self) -> None:
        if hasattr(self, "_memory"):
            self._memory.give()

    @property
    def scratch(self) -> int:
        """Floats of the workspace of a search with this tree."""
        return SCRATCH + self.work

    @property
    def is_full(self) -> bool:
        """Whether there is no room for the children of a node."""
        return bool(self.count[0] + 4 > self.capacity)

    def forget(self) -> None:
        """Remove all nodes but the roots."""
        self.count[0] = self.roots
        self.nodes[: self.roots, abi.N_CHILD] = -1

    def enlarge(self) -> bool:
        """Make room for more nodes; False at the limit."""
        if self.capacity * ENLARGE > MOST_NODES:
            return False
        old = self._memory
        self.capacity *= ENLARGE
        self._take()
        self._memory.ints[abi.TREE : old.ints.size] = old.ints[abi.TREE :]
        self._memory.floats[: old.floats.size] = old.floats
        old.give()
        return True


def call_enclosure(shape: Shape, box: FloatArray, op: int) -> FloatArray:
    """The enclosure (op 0: centre, two half edges, radius) or the derivative bounds (op 1) of a box inside one span."""
    out = np.empty(10)
    work = np.empty(_work(shape.ints))
    q = np.zeros(4)
    for i in range(shape.freedoms):
        q[i], q[2 + i] = 0.5 * (box[2 * i] + box[2 * i + 1]), 0.5 * (box[2 * i + 1] - box[2 * i])
    shape.table  # noqa: B018  (makes the table)
    _nodes.enclose_once(enclosure("cardan.geometry._enclose"), shape._table_address, op, q, out, work)
    return out[:10] if op == 0 else out[: abi.BOUNDS]
