"""Faces: surfaces whose domain is trimmed by loops of curves in the parameter plane, as in CAD models.

Inside is where a ray crosses the loops an odd number of times: an outer loop, holes in it, islands in holes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.checks import FloatArray
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.patches import Patch
from cardan.geometry.shape import Shape, Trimmed
from cardan.geometry.tables import BOUNDS, Chain, Loops, ShapeInts, ShapeTable

CHORD = 1e-7  # of the size of the domain: how far the polygons of the loops may be from the curves
MOST_CHORDS = 200_000  # of one curve of a loop: more are a curve far larger than the domain
JOIN = 1e-9  # of the size of the domain: ends of consecutive curves that coincide
SEGMENTS = 32  # of a chain: what is tested at once


class EdgeCurve(Shape):
    """S(c(t)): a curve in the parameter plane, on the surface."""

    def __init__(self, surface: Surface, curve: Curve) -> None:
        self.surface, self.curve = surface, curve
        low, high = curve.bounds[0]
        work = 42 + max(surface.work, curve.work)
        ints = ShapeInts.new(open=1 + 2 * ShapeTable.size, freedoms=1, width=1, work=work).as_ints
        super().__init__("cardan.geometry._on_surface", ints, np.array([low, high, 0.0, 0.0, 0.0, 0.0]))

    def key(self) -> tuple[Any, ...]:
        """Everything that defines its points, as plain values that compare."""
        return self.kernel, self.surface.key(), self.curve.key()

    @property
    def table(self) -> Any:
        """Addresses as of every shape; those of S and c are written at first use."""
        if self._table is None:
            self.ints.flags.writeable = True
            ShapeInts(self.ints).more[1:] = [*self.surface.table, *self.curve.table]
        return super().table

    def patches(self, extent: float) -> list[Patch]:
        """Parts between knots of low continuity; derivative bounds by the chain rule from those of S and c."""
        found = []
        for patch in self.curve.patches(np.inf):
            limits = [*patch.limits[:2], 0.0, *patch.limits[3:]]
            boxes = _divided(patch.roots(), 4)
            bounds = np.zeros((len(boxes), BOUNDS))
            for k, box in enumerate(boxes):
                c = enclose(self.curve, box[:2], 1)
                middle = self.curve.evaluate([0.5 * (box[0] + box[1])])[0]
                reach = c[0] * 0.5 * (box[1] - box[0])
                region = [
                    (max(m - reach, low), min(m + reach, high))
                    for m, (low, high) in zip(middle, self.surface.bounds, strict=True)
                ]
                s = _surface_bounds(self.surface, region)
                first, second = np.hypot(s[0], s[1]), np.sqrt(s[2] ** 2 + 2.0 * s[3] ** 2 + s[4] ** 2)
                third = np.sqrt(s[5] ** 2 + 3.0 * s[6] ** 2 + 3.0 * s[7] ** 2 + s[8] ** 2)
                bounds[k, 0] = first * c[0]
                bounds[k, 2] = second * c[0] ** 2 + first * c[2]
                bounds[k, 5] = third * c[0] ** 3 + 3.0 * second * c[0] * c[2] + first * c[5]
            found.append(Patch(self, limits, boxes, "cardan.geometry._taylor", bounds))
        return found


def _divided(boxes: FloatArray, parts: int) -> FloatArray:
    at = np.linspace(0.0, 1.0, parts + 1)
    rows = [(a + (b - a) * s, a + (b - a) * t, 0.0, 0.0) for a, b, *_ in boxes for s, t in pairwise(at)]
    return np.array(rows)


def enclose(shape: Shape, box: Sequence[float], op: int) -> FloatArray:
    """The enclosure (op 0) or the derivative bounds (op 1) of a box inside one span of a NURBS."""
    from cardan.geometry.tree import call_enclosure

    return call_enclosure(shape, np.asarray(box, dtype=float), op)


def _surface_bounds(surface: Surface, region: Sequence[tuple[float, float]]) -> FloatArray:
    """Largest derivative bounds of a surface on a region, from the spans that it meets."""
    found = np.zeros(BOUNDS)
    spans = []
    for breaks, (low, high) in zip(surface.breaks, region, strict=True):
        if high <= low:
            low, high = low - 1e-9 * (breaks[-1] - breaks[0]), high + 1e-9 * (breaks[-1] - breaks[0])
        parts = [(max(a, low), min(b, high)) for a, b in pairwise(breaks) if a < high and b > low]
        spans.append(parts)
    for a in spans[0]:
        for b in spans[1]:
            found = np.maximum(found, enclose(surface, (*a, *b), 1))
    return found


def flatten(curve: Curve, tolerance: float) -> FloatArray:
    """Points of a polygon within the tolerance of a curve: |c''| h²/8 bounds the error of a chord."""
    found = []
    for patch in curve.patches(np.inf):
        for box in patch.roots():
            second = enclose(curve, box[:2], 1)[2]
            chords = (box[1] - box[0]) * np.sqrt(second / (8.0 * tolerance))
            if not chords <= MOST_CHORDS:
                raise ModelError(
                    f"a curve of a loop needs {chords:.3g} chords; it must be in the domain of the surface, and its "
                    f"curvature so that {MOST_CHORDS:,} suffice"
                )
            count = max(1, int(np.ceil(chords)))
            found.append(np.linspace(box[0], box[1], count + 1)[:-1])
    u = np.append(np.concatenate(found), curve.bounds[0][1])
    return curve.evaluate(u)


class Face(Trimmed):
    """A surface trimmed by loops.

    loops: each a closed curve in the parameter plane, or a list of curves that follow each other.
    """

    freedoms = 2
    width = 2
    dimension = 3

    def __init__(self, surface: Surface, loops: Sequence[Any]) -> None:
        if not isinstance(surface, Surface):
            raise ModelError(f"a face needs a Surface, not {surface!r}; use to_nurbs()")
        self.surface = surface
        self.bounds, self.periods, self.extent = surface.bounds, surface.periods, surface.extent
        self.rounding = surface.rounding
        self.loops = [list(loop) if isinstance(loop, list | tuple) else [loop] for loop in loops]
        if not self.loops:
            raise ModelError("a face needs at least one loop; an untrimmed surface is a Surface")
        self.size = max(high - low for low, high in surface.bounds)
        polygons = []
        for k, loop in enumerate(self.loops):
            parts: list[FloatArray] = []
            if not loop:
                raise ModelError(f"loop {k} has no curves; a loop needs at least one")
            for j, curve in enumerate(loop):
                if not isinstance(curve, Curve) or curve.dimension != 2:
                    raise ModelError(f"curve {j} of loop {k} is {curve!r}; it must be a Curve in the plane")
                points = flatten(curve, CHORD * self.size)
                if parts and np.abs(points[0] - parts[-1][-1]).max() > JOIN * self.size:
                    raise ModelError(
                        f"curve {j} of loop {k} begins at {points[0]}; the one before ends at {parts[-1][-1]}"
                    )
                parts.append(points)
            polygon = np.concatenate([p[:-1] for p in parts])
            if np.abs(parts[-1][-1] - polygon[0]).max() > JOIN * self.size:
                raise ModelError(f"loop {k} is open: it ends at {parts[-1][-1]} and begins at {polygon[0]}")
            self._check_inside(k, polygon)
            polygons.append(polygon)
        self.polygons = polygons
        self._segments = np.concatenate([np.concatenate([p, np.roll(p, -1, axis=0)], axis=1) for p in polygons])
        self._check_crossings()
        self._packed = _pack(polygons)
        if abs(sum(_area(p) for p in polygons)) == 0.0:
            raise ModelError("the domain of the face is empty: its loops enclose no area")

    def __repr__(self) -> str:
        return f"<face of {self.surface!r}, {len(self.loops)} {'loop' if len(self.loops) == 1 else 'loops'}>"

    def _check_inside(self, k: int, polygon: FloatArray) -> None:
        for i, (low, high) in enumerate(self.surface.bounds):
            slack = 1e-9 * self.size
            outside = (polygon[:, i] < low - slack) | (polygon[:, i] > high + slack)
            if outside.any():
                place = polygon[int(np.argmax(outside))]
                raise ModelError(
                    f"loop {k} leaves the domain of the surface at {place}; {'uv'[i]} must be in [{low}, {high}]"
                )
        if abs(_area(polygon)) <= 1e-14 * self.size**2:
            raise ModelError(f"loop {k} encloses no area: the domain of the face is empty")

    def _check_crossings(self) -> None:
        """Loops must neither cross nor overlap themselves or each other: segments of chains whose bounds meet."""
        s = self._segments
        counts = [len(p) for p in self.polygons]
        loop, number = np.repeat(np.arange(len(counts)), counts), np.concatenate([np.arange(n) for n in counts])
        low, high = np.minimum(s[:, :2], s[:, 2:]), np.maximum(s[:, :2], s[:, 2:])
        starts = np.flatnonzero(number % SEGMENTS == 0)  # of the chains
        ends = np.append(starts[1:], len(s))
        lowest, highest = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            near = np.flatnonzero(((lowest[i:] <= highest[i]) & (highest[i:] >= lowest[i])).all(axis=1)) + i
            others = np.concatenate([np.arange(starts[j], ends[j]) for j in near])
            (u0, v0), (u1, v1) = low[others].T[:, :, None], high[others].T[:, :, None]
            (x0, y0), (x1, y1) = low[start:end].T, high[start:end].T
            columns, rows = np.nonzero((u0 <= x1) & (u1 >= x0) & (v0 <= y1) & (v1 >= y0))
            rows, columns = rows + start, others[columns]
            # neighbours of one loop share an end
            apart = np.abs(number[rows] - number[columns]) % np.maximum(np.take(counts, loop[rows]) - 1, 1) > 1
            kept = apart | (loop[rows] != loop[columns])
            rows, columns = rows[kept], columns[kept]
            hit = np.flatnonzero(_cross(s[rows], s[columns], JOIN * self.size))
            if hit.size:
                k, l, place = loop[rows[hit[0]]], loop[columns[hit[0]]], s[rows[hit[0]], :2].tolist()
                raise ModelError(
                    f"loop {k} crosses itself near {place}" if k == l else f"loops {k} and {l} cross near {place}"
                )

    def contains(self, u: float, v: float) -> bool:
        """Whether (u, v) is inside the domain."""
        s = self._segments
        with np.errstate(all="ignore"):
            hit = ((s[:, 1] > v) != (s[:, 3] > v)) & (
                u < s[:, 0] + (v - s[:, 1]) * (s[:, 2] - s[:, 0]) / (s[:, 3] - s[:, 1])
            )
        return bool(np.count_nonzero(hit) % 2)

    def key(self) -> tuple[Any, ...]:
        """Everything that defines its points, as plain values that compare."""
        return self.surface.key(), self._packed.tobytes()

    def patches(self, extent: float) -> list[Patch]:
        """Patches of the surface with the loops, and the edges as curves."""
        found = [patch._replace(loops=self._packed) for patch in self.surface.patches(extent)]
        self._edges = [EdgeCurve(self.surface, curve) for loop in self.loops for curve in loop]
        for edge in self._edges:
            found += edge.patches(extent)
        return found

    def whole_patches(self, extent: float) -> list[Patch]:
        """None: a local search stays on the patch of its start."""
        return []

    def from_patch(self, q: FloatArray, point: FloatArray) -> FloatArray:
        return q

    def edge(self, pair: Any, k: int = 0) -> EdgeCurve | None:
        """The edge that a point of a pair is on; None if inside the face.  k: 0 if the face is a, 1 if it is b."""
        number = pair.patches[k] - len(self.surface.patches(np.inf))
        if number < 0:
            return None
        for edge in self._edges:
            count = len(edge.patches(np.inf))
            if number < count:
                return edge
            number -= count
        return None


def _chains(polygon: FloatArray) -> list[tuple[int, FloatArray]]:
    """Chains of at most SEGMENTS segments, each with the number of its first one."""
    closed = np.concatenate([polygon, polygon[:1]])
    return [(k, closed[k : k + SEGMENTS + 1]) for k in range(0, len(polygon), SEGMENTS)]


def _pack(polygons: Sequence[FloatArray]) -> FloatArray:
    """Chains of segments with their bounds, as kernels read them."""
    chains = [chain for polygon in polygons for _, chain in _chains(polygon)]
    at = Loops.size + Chain.size * len(chains)
    heads = []
    for chain in chains:
        (u0, v0), (u1, v1) = chain.min(axis=0), chain.max(axis=0)
        heads.append((u0, u1, v0, v1, at, len(chain) - 1))
        at += chain.size
    return np.concatenate([[float(len(chains))], np.ravel(heads), np.concatenate(chains).ravel()])


def _area(p: FloatArray) -> float:
    q = np.roll(p, -1, axis=0)
    return float(0.5 * np.sum(p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]))


def _cross(s: FloatArray, t: FloatArray, tolerance: float) -> Any:
    """Whether segments (u₀, v₀, u₁, v₁) cross each other inside both, or overlap along more than the tolerance."""

    def side(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
        return np.asarray(
            (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
        )

    a, b, c, d = s[..., :2], s[..., 2:], t[..., :2], t[..., 2:]
    sides = side(a, b, c), side(a, b, d), side(c, d, a), side(c, d, b)
    along = b - a
    length = np.sqrt((along * along).sum(axis=-1))
    size = np.where(length > 0.0, length, 1.0)
    ends = [((x - a) * along).sum(axis=-1) / size for x in (c, d)]
    common = np.minimum(np.maximum(*ends), length) - np.maximum(np.minimum(*ends), 0.0)
    flat = (np.abs(sides[0]) <= 1e-3 * tolerance * size) & (np.abs(sides[1]) <= 1e-3 * tolerance * size)
    return (sides[0] * sides[1] < 0.0) & (sides[2] * sides[3] < 0.0) | flat & (common > tolerance)
