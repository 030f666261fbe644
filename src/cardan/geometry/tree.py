"""The search structure of a shape: smooth patches, root boxes of their parameters, derivative bounds, nodes.

A patch has two continuous derivatives: NURBS are divided at knots of lower continuity.  Nodes are made when a search
needs them, so a tree is mutable and belongs to one :class:`~.distance.Distance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.geometry import abi, basis
from cardan.geometry.checks import FloatArray, IntArray
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.shape import Shape
from cardan.lazy import LazyModule

_search = LazyModule("cardan.geometry._search")

CAPACITY = 3000  # nodes of a tree at first
ENLARGE = 4
MOST_NODES = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
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
    found = []
    for s, e, period_u in ranges[0]:
        for t, f, period_v in ranges[1]:
            limits = np.array([breaks[0][s], breaks[0][e], period_u, breaks[1][t], breaks[1][f], period_v])
            found.append(Patch(shape, limits, boxes[s:e, t:f].reshape(-1, 4)))
    return found


def whole(shape: Shape) -> Patch:
    """The whole domain, without roots."""
    limits = shape.floats[: abi.LIMITS].copy()
    return Patch(shape, limits, np.empty((0, 4)))


def _smooth(breaks: FloatArray, knots: FloatArray, degree: int, period: float) -> list[tuple[int, int, float]]:
    """Ranges of spans between knots that are not smooth: first, end, period."""
    inside = [k for k in range(1, breaks.size - 1) if basis.continuity(knots, degree, breaks[k]) < 2]
    if not inside and period and np.count_nonzero(knots == breaks[0]) == 1 and degree > 2:
        return [(0, breaks.size - 1, period)]
    ends = [0, *inside, breaks.size - 1]
    return [(a, b, 0.0) for a, b in pairwise(ends)]


def _work(ints: IntArray) -> int:
    """Floats of scratch of the evaluator and of the enclosure of a shape."""
    n, m = int(ints[abi.DEGREE_U]) + 1, int(ints[abi.DEGREE_V]) + 1
    return max(int(ints[abi.WORK]) + 18, 4 * n * m + 36)


def enclosure(module: str) -> int:
    """Address of the kernel that encloses boxes."""
    return int(import_module(module).ENCLOSE)


class Tree:
    """Packed patches, roots and nodes."""

    def __init__(self, shape: Any, extent: float = np.inf) -> None:
        from cardan._jit import address_of

        self.patches: list[Patch] = shape.patches(extent)
        self.smooth = len(self.patches)
        if self.smooth > 1:  # one more, without roots: the whole domain, for local searches
            self.patches = [*self.patches, *shape.whole_patches(extent)]
        count = len(self.patches)
        self._patches = np.zeros((count, abi.PATCH), dtype=np.int64)
        self._limits = np.empty((count, abi.P_LIMITS))
        for k, patch in enumerate(self.patches):
            loops = 0 if patch.loops is None else address_of(patch.loops)
            self._patches[k] = (*patch.shape.table, patch.shape.freedoms, enclosure(patch.enclosure), loops)
            self._limits[k] = patch.limits
        boxes = self.patches[0].boxes if count == 1 else np.concatenate([patch.boxes for patch in self.patches])
        bounds = [np.zeros((len(p.boxes), abi.BOUNDS)) if p.bounds is None else p.bounds for p in self.patches]
        self._bounds = bounds[0] if count == 1 else np.concatenate(bounds)
        self.roots = len(boxes)
        numbers = np.repeat(np.arange(count), [len(patch.boxes) for patch in self.patches])
        self.capacity = max(CAPACITY, 4 * self.roots)
        self.nodes: IntArray = np.empty((self.capacity, abi.NODE_INTS), dtype=np.int64)
        self.boxes: FloatArray = np.empty((self.capacity, abi.NODE))
        self.nodes[: self.roots, abi.N_PATCH] = numbers
        self.nodes[: self.roots, abi.N_ROOT] = np.arange(self.roots)
        self.boxes[: self.roots, abi.N_BOX : abi.N_BOX + 4] = boxes
        self.count = np.array([self.roots], dtype=np.int64)
        self.work = max(_work(patch.shape.ints) for patch in self.patches)
        self._shape = shape  # its tables are used by address
        table = self.table()
        work = np.empty(self.scratch)
        _search.make_roots(address_of(table), address_of(work))

    @property
    def scratch(self) -> int:
        """Floats of the workspace of a search with this tree."""
        return 173 + self.work

    def table(self) -> IntArray:
        """Fields T_…: addresses, then numbers."""
        from cardan._jit import address_of

        arrays = (self._patches, self._limits, self.nodes, self.boxes, self._bounds, self.count)
        return np.array([*(address_of(a) for a in arrays), self.capacity, self.roots], dtype=np.int64)

    def enlarge(self) -> bool:
        """Make room for more nodes; False at the limit."""
        if self.capacity * ENLARGE > MOST_NODES:
            return False
        self.capacity *= ENLARGE
        for name in ("nodes", "boxes"):
            old = getattr(self, name)
            new = np.empty((self.capacity, old.shape[1]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        return True


def call_enclosure(shape: Shape, box: FloatArray, op: int) -> FloatArray:
    """The enclosure (op 0: centre, two half edges, radius) or the derivative bounds (op 1) of a box inside one span."""
    out = np.empty(10)
    work = np.empty(_work(shape.ints))
    q = np.zeros(4)
    for i in range(shape.freedoms):
        q[i], q[2 + i] = 0.5 * (box[2 * i] + box[2 * i + 1]), 0.5 * (box[2 * i + 1] - box[2 * i])
    shape.table  # noqa: B018  (makes the table)
    _search.enclose_once(enclosure("cardan.geometry._enclose"), shape._table_address, op, q, out, work)
    return out[:10] if op == 0 else out[: abi.BOUNDS]
