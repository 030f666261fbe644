"""Plane regions: loops of lines, arcs and involutes; their moments, and their triangles.

A loop is a closed sequence of pieces.  Each piece maps t in [0, 1] to a point; it is smooth, so that Gauss–Legendre
quadrature along it is exact up to rounding.  A region is an outer loop and holes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from cardan.errors import ModelError
from cardan.shapes.shape import SEGMENTS, FloatArray, IndexArray

Pair: TypeAlias = tuple[float, float]

NODES = 20  # of the quadrature along one piece
WIDEST = math.pi / 2  # rad: widest arc of one piece; 20 nodes then leave errors below rounding
FLANK = 4  # segments of an involute
LOOSE = 1e-5  # of the size of an outline: gaps between pieces whose numbers have six digits
ROUNDED = 1e-12  # of the size of a profile: ρ at the end of an arc on the axis
TOUCHED = 1e-12  # of the size: a vertex that is nearer to a new side of a triangle lies on it
PAIRS = 100_000  # of edges that are tested for crossings at once


@dataclass(frozen=True, slots=True)
class Line:
    """From p to q [m]."""

    p: Pair
    q: Pair

    def at(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points and derivatives, shape (n, 2) each."""
        p, d = np.array(self.p), np.subtract(self.q, self.p)
        return p + t[:, None] * d, np.broadcast_to(d, (len(t), 2))

    def count(self, segments: int) -> int:
        """Number of chords."""
        return 1


@dataclass(frozen=True, slots=True)
class Arc:
    """Of a circle: centre and radius [m], from the angle ``start`` [rad] over ``sweep``, positive counter-clockwise."""

    center: Pair
    radius: float
    start: float
    sweep: float

    def at(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points and derivatives, shape (n, 2) each."""
        angle = self.start + self.sweep * t
        c, s = np.cos(angle), np.sin(angle)
        d = self.radius * self.sweep
        return np.array(self.center) + self.radius * np.column_stack([c, s]), d * np.column_stack([-s, c])

    def count(self, segments: int) -> int:
        """Number of chords."""
        return max(1, math.ceil(segments * abs(self.sweep) / (2.0 * math.pi) - 1e-9))


@dataclass(frozen=True, slots=True)
class Involute:
    """Of a base circle of radius [m] about the origin, in polar form: with the roll angle u [rad] from u₀ to u₁,
    ρ = radius √(1 + u²), angle = start + side (u − arctan u)."""

    radius: float
    start: float
    side: float
    first: float
    last: float

    def at(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points and derivatives, shape (n, 2) each."""
        du = self.last - self.first
        u = self.first + du * t
        rho, angle = self.radius * np.sqrt(1.0 + u * u), self.start + self.side * (u - np.arctan(u))
        c, s = np.cos(angle), np.sin(angle)
        drho, dangle = self.radius * u / np.sqrt(1.0 + u * u), self.side * u * u / (1.0 + u * u)
        x, dx = rho[:, None] * np.column_stack([c, s]), drho[:, None] * np.column_stack([c, s])
        return x, du * (dx + (rho * dangle)[:, None] * np.column_stack([-s, c]))

    def count(self, segments: int) -> int:
        """Number of chords."""
        return max(2, round(FLANK * segments / 48))


Piece: TypeAlias = Line | Arc | Involute
Loop: TypeAlias = tuple[Piece, ...]


def polygon(points: Sequence[Pair]) -> Loop:
    """Straight lines between points."""
    return tuple(Line(p, q) for p, q in zip(points, (*points[1:], points[0]), strict=True))


def arcs(center: Pair, radius: float, start: float, sweep: float) -> Loop:
    """An arc, in pieces that the quadrature integrates exactly."""
    count = max(1, math.ceil(abs(sweep) / WIDEST - 1e-9))
    return tuple(Arc(center, radius, start + k * sweep / count, sweep / count) for k in range(count))


def circle(center: Pair, radius: float) -> Loop:
    """A whole circle, counter-clockwise."""
    return arcs(center, radius, 0.0, 2.0 * math.pi)


def rounded(points: Sequence[Pair], radius: float) -> Loop:
    """A convex, counter-clockwise polygon (or two points), widened by a radius [m]: lines and arcs."""
    loop: list[Piece] = []
    count = len(points)
    directions = [math.atan2(q[1] - p[1], q[0] - p[0]) for p, q in zip(points, (*points[1:], points[0]), strict=True)]
    for k in range(count):
        before, after = directions[k - 1], directions[k]
        sweep = (after - before) % (2.0 * math.pi)
        loop += arcs(points[k], radius, before - 0.5 * math.pi, sweep)
        end, begin = (_out(points[j], radius, after) for j in (k, (k + 1) % count))
        loop.append(Line(end, begin))
    return tuple(loop)


def _out(point: Pair, radius: float, direction: float) -> Pair:
    """A point moved to the right of a direction [rad]."""
    return point[0] + radius * math.sin(direction), point[1] - radius * math.cos(direction)


def hull(points: Sequence[Pair]) -> list[Pair]:
    """The convex hull, counter-clockwise, without points on its edges.  [Andrew1979]"""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    size = max(abs(c) for p in ordered for c in (p[0] - ordered[0][0], p[1] - ordered[0][1]))
    found: list[Pair] = []
    for way in (ordered, ordered[::-1]):
        chain: list[Pair] = []
        for p in way:
            while len(chain) > 1 and _cross(chain[-2], chain[-1], p) <= 1e-9 * size * size:
                chain.pop()
            chain.append(p)
        found += chain[:-1]
    return found


def _cross(o: Pair, a: Pair, b: Pair) -> float:
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


@lru_cache(maxsize=8)
def _nodes(count: int) -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * (x + 1.0), 0.5 * w


def boundary(loop: Loop) -> tuple[FloatArray, FloatArray, FloatArray]:
    """x and y [m] and weighted dy [m] at the quadrature nodes of a loop: ∮ F dy = Σ F(x, y)·dy."""
    t, w = _nodes(NODES)
    pairs = [piece.at(t) for piece in loop]
    x = np.concatenate([p for p, _ in pairs])
    return x[:, 0], x[:, 1], np.concatenate([w * d[:, 1] for _, d in pairs])


@dataclass(frozen=True, slots=True)
class Region:
    """An outer loop, and holes in it."""

    outer: Loop
    holes: tuple[Loop, ...] = ()

    def moments(self) -> tuple[float, FloatArray, FloatArray]:
        """∫dA, ∫x dA, ∫x xᵀ dA, by Green's theorem: ∮ x dy, …"""
        area, first, second = 0.0, np.zeros(2), np.zeros((2, 2))
        for k, loop in enumerate((self.outer, *self.holes)):
            x, y, dy = boundary(loop)
            a = float(x @ dy)
            sign = math.copysign(1.0, a) * (-1.0 if k else 1.0)
            area += sign * a
            first += sign * np.array([0.5 * x * x @ dy, x * y @ dy])
            xy = 0.5 * x * x * y @ dy
            second += sign * np.array([[x**3 @ dy / 3.0, xy], [xy, x * y * y @ dy]])
        return area, first, second

    def points(self, segments: int) -> list[FloatArray]:
        """Vertices of the outer loop, counter-clockwise, and of the holes, clockwise; shape (n, 2) each."""
        found = []
        for k, loop in enumerate((self.outer, *self.holes)):
            rows = loop_points(loop, segments)
            found.append(rows if (signed_area(rows) > 0.0) != (k > 0) else rows[::-1])
        return found


def loop_points(loop: Loop, segments: int) -> FloatArray:
    """Vertices of a loop, shape (n, 2); equal neighbours are left out."""
    rows: list[Pair] = []
    for piece in loop:
        if isinstance(piece, Line):
            rows.append(piece.p)
        else:
            count = piece.count(segments)
            rows += piece.at(np.arange(count) / count)[0].tolist()
    found = np.array(rows, dtype=float)
    size = float(np.abs(found).max())
    keep = np.abs(found - np.roll(found, 1, axis=0)).max(axis=1) > 1e-9 * size
    return np.asarray(found[keep])


def signed_area(rows: FloatArray) -> float:
    """Of a polygon, positive if it is counter-clockwise."""
    x, y = (rows - rows[0]).T
    return 0.5 * float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def crossing(loops: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray] | None:
    """Two points near each other where the edges of polygons cross or touch; None where they do not."""
    p = np.concatenate(loops)
    q = np.concatenate([np.roll(rows, -1, axis=0) for rows in loops])
    starts = np.cumsum([0, *(len(rows) for rows in loops)])
    after = np.concatenate([np.roll(np.arange(a, b), -1) for a, b in pairwise(starts)])
    d = q - p
    low, high = np.minimum(p[:, 0], q[:, 0]), np.maximum(p[:, 0], q[:, 0])
    order = np.argsort(low, kind="stable")
    last = np.searchsorted(low[order], high[order], side="right")  # edges that begin to the left of the end of each
    counts = last - np.arange(1, len(order) + 1)  # of pairs: each edge with those after it in this order
    ends = np.cumsum(counts)
    at = 0
    while at < len(order):
        before = int(ends[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(ends, before + PAIRS, side="right")))
        i = np.repeat(np.arange(at, stop), counts[at:stop])
        k, l = order[i], order[i + 1 + before + np.arange(len(i)) - (ends - counts)[i]]
        kept = (l != after[k]) & (after[l] != k)
        k, l = k[kept], l[kept]
        s1, s2 = (_turn(d[k], x[l] - p[k]) for x in (p, q))
        s3, s4 = (_turn(d[l], x[k] - p[l]) for x in (p, q))
        hit = np.flatnonzero((s1 * s2 <= 0.0) & (s3 * s4 <= 0.0) & ~((s1 == 0.0) & (s2 == 0.0)))
        if hit.size:
            return p[k[hit[0]]], p[l[hit[0]]]
        at = stop
    return None


def _turn(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def triangulate(loops: Sequence[FloatArray]) -> IndexArray:
    """Triangles of a polygon with holes, as rows of the concatenated vertices, by cutting ears.  [Eberly2002]"""
    p = np.concatenate(loops)
    starts = np.cumsum([0, *(len(rows) for rows in loops)])
    ring = list(range(starts[1]))
    order = sorted(range(1, len(loops)), key=lambda k: -float(loops[k][:, 0].max()))
    for k in order:
        hole = list(range(starts[k], starts[k + 1]))
        ring = _bridged(p, ring, hole, [list(range(starts[j], starts[j + 1])) for j in order[order.index(k) :]])
    return _cut_ears(p, ring)


def _bridged(p: FloatArray, ring: list[int], hole: list[int], holes: list[list[int]]) -> list[int]:
    """The ring joined to a hole by a double edge from the hole's rightmost vertex to the nearest visible vertex."""
    first = int(np.argmax(p[hole, 0]))
    h = p[hole[first]]
    edges = np.array([*zip(ring, (*ring[1:], ring[0]), strict=True)])
    for loop in holes:
        edges = np.concatenate([edges, [*zip(loop, (*loop[1:], loop[0]), strict=True)]])
    a, b = p[edges[:, 0]], p[edges[:, 1]]
    nearest = np.argsort(((p[ring] - h) ** 2).sum(axis=1), kind="stable")
    for k in nearest:
        v = p[ring[k]]
        mine = (edges == ring[k]).any(axis=1) | (edges == hole[first]).any(axis=1)
        same = (np.abs(a - v).max(axis=1) == 0.0) | (np.abs(b - v).max(axis=1) == 0.0)
        s1, s2 = _turn(v - h, a - h), _turn(v - h, b - h)
        s3, s4 = _turn(b - a, h - a), _turn(b - a, v - a)
        if not ((s1 * s2 <= 0.0) & (s3 * s4 <= 0.0) & ~mine & ~same).any() and _inside(p, ring, int(k), h):
            around = hole[first:] + hole[: first + 1]
            return ring[: k + 1] + around + ring[k:]
    raise ModelError("a hole of the outline is not inside it; move it inside")


def _inside(p: FloatArray, ring: list[int], k: int, h: FloatArray) -> bool:
    """Whether the direction to h lies within the corner k of a ring."""
    v, before, after = p[ring[k]], p[ring[k - 1]], p[ring[(k + 1) % len(ring)]]
    left, right = _turn(after - v, h - v) > 0.0, _turn(h - v, before - v) > 0.0
    return bool(left and right) if _turn(after - v, before - v) > 0.0 else bool(left or right)


def _cut_ears(p: FloatArray, ring: list[int]) -> IndexArray:
    left = np.array(ring)
    faces = []
    at = 0
    size = float(np.abs(p - p[0]).max())
    while len(left) > 3:
        ear = _ear(p, left, at, TOUCHED * size)
        if ear is None:
            ear = _ear(p, left, at, 0.0)  # an outline that nearly touches itself
        if ear is None:
            raise ModelError("the outline of the shape crosses or touches itself; give a simple outline")
        at = ear
        n = len(left)
        faces.append((left[(at - 1) % n], left[at % n], left[(at + 1) % n]))
        left = np.delete(left, at % n)
        at = at % n  # next to the ear, so that fans stay short
    return np.array([*faces, tuple(left)], dtype=np.int64)


def _ear(p: FloatArray, left: IndexArray, at: int, near: float) -> int | None:
    """The first corner from a place on whose triangle has no other vertex in it, nor nearer to its new side than
    ``near`` [m]: a ring through such a vertex would touch itself there."""
    n = len(left)
    size = float(np.abs(p - p[0]).max())
    for k in range(at, at + n):
        a, b, c = p[left[(k - 1) % n]], p[left[k % n]], p[left[(k + 1) % n]]
        if _turn(b - a, c - a) > 1e-14 * size * size:
            others = p[left]
            low = -near * float(np.hypot(*(a - c)))
            inside = (
                (_turn(b - a, others - a) >= 0.0)
                & (_turn(c - b, others - b) >= 0.0)
                & (_turn(a - c, others - c) >= low)
            )
            corner = np.zeros(n, dtype=bool)
            for x in (a, b, c):
                corner |= (others == x).all(axis=1)
            if not (inside & ~corner).any():
                return k
    return None


def checked_region(region: Region, what: str) -> Region:
    """The region; ModelError if a loop is not closed or crosses itself or another, or if a hole is not inside."""
    loops = (region.outer, *region.holes)
    for loop in loops:
        check_closed(loop, f"the outline of {what}")
    rows = [loop_points(loop, SEGMENTS) for loop in loops]
    _check_simple(rows, f"the outline of {what}")
    for k, hole in enumerate(rows[1:], 1):
        around = _loops_around(rows, hole[0])
        around[k] = False
        if not around[0] or around[1:].any():
            raise ModelError(f"a hole of {what} at {hole.mean(axis=0).tolist()} is not inside it; move it inside")
    return region


def checked_profile(loop: Loop, what: str) -> Loop:
    """The profile of a revolution; ModelError if it is not closed, crosses itself, or has ρ < 0."""
    check_closed(loop, what)
    rows = loop_points(loop, SEGMENTS)
    least = float(rows[:, 0].min())
    if least < -ROUNDED * float(np.abs(rows).max()):
        raise ModelError(f"{what} has ρ = {least} m; ρ must be zero or more")
    _check_simple([rows], what)
    return loop


def check_closed(loop: Loop, what: str) -> None:
    """ModelError if a piece does not begin where the one before it ends."""
    ends = np.array([piece.at(np.array([0.0, 1.0]))[0] for piece in loop])
    gaps = np.abs(ends[:, 0] - np.roll(ends[:, 1], 1, axis=0)).max(axis=1)
    k = int(gaps.argmax())
    if not gaps[k] <= LOOSE * float(np.abs(ends).max()):
        last, first = ends[k - 1, 1].tolist(), ends[k, 0].tolist()
        raise ModelError(
            f"{what} is not closed: piece {k + 1} begins at {first} m, and the one before it ends at {last} m; each "
            "piece must begin where the one before it ends"
        )


def _check_simple(rows: list[Any], what: str) -> None:
    """ModelError if polygons, shape (points, 2) each, cross or touch, or if the first has no area."""
    is_flat = min(map(len, rows)) < 3
    found = None if is_flat else crossing(rows)
    if found is not None:
        raise ModelError(f"{what} crosses or touches itself near {found[0].tolist()}; give lines that do not cross")
    if is_flat or not abs(signed_area(rows[0])) > 0.0:
        raise ModelError(f"{what} has no area; its points must not lie on one line")


def _loops_around(loops: list[Any], p: Any) -> Any:
    """Whether a point is within each polygon, shape (loops,): a ray from it crosses the boundary an odd number of
    times."""
    a, b = np.concatenate(loops), np.concatenate([np.roll(rows, -1, axis=0) for rows in loops])
    across = (a[:, 1] > p[1]) != (b[:, 1] > p[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        x = a[:, 0] + (p[1] - a[:, 1]) * (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1])
    starts = np.cumsum([0, *(len(rows) for rows in loops[:-1])])
    return np.add.reduceat(across & (x > p[0]), starts) % 2 == 1
