"""Solids as unions of convex pieces: hulls of points, circles and arcs, grown by a radius.

A shape whose pieces are exact has the error 0.  Where a curve must be cut into chords (holes, fillets, involutes), the
error of the solid bounds how far its surface is from that of the shape [m].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.collide.pieces import cut
from cardan.collide.tables import CONVEX, HALF_SPACE, Atom, Hull, PairRecord
from cardan.errors import ModelError
from cardan.shapes import Mesh, Shape
from cardan.shapes.region import Arc, Line, Loop, Region
from cardan.shapes.solids import CORNERS, Box, Cylinder, Extrusion, HalfSpace, Revolution, Sphere

FloatArray = NDArray[np.float64]

ROUNDED = 1e-9  # of the size, and rad: outlines and meshes whose dents are no deeper count as convex
WHOLE = -2.0  # cosine of a whole circle: every direction is within it
Z = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A convex piece: its table, its atoms, shape (n, 11), and a box and a ball around it, in the axes of the solid."""

    hull: Any
    atoms: FloatArray
    growth: float
    low: FloatArray
    high: FloatArray

    @property
    def middle(self) -> FloatArray:
        """Centre of the box [m]."""
        return 0.5 * (self.low + self.high)

    @property
    def radius(self) -> float:
        """Of the ball about the middle [m]."""
        centers = np.linalg.norm(self.atoms[:, :3] - self.middle, axis=1)
        return float((centers + self.atoms[:, 3]).max()) + self.growth

    @property
    def is_ball(self) -> bool:
        """Whether rotations about its middle do not change it."""
        return len(self.atoms) == 1 and self.atoms[0, 3] == 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Solid:
    """A shape, prepared for gaps.  ``error`` [m]: how far its surface is from that of the shape, at most.

    Of each piece: the middle and the radius of a ball around it, the address of its table, and where its atoms start in
    ``corners``, shape (n, 11).
    """

    shape: Shape | None
    pieces: tuple[Piece, ...]
    error: float
    middles: FloatArray
    radii: FloatArray
    addresses: NDArray[np.int64]
    corners: FloatArray
    starts: NDArray[np.int64]

    @property
    def is_half_space(self) -> bool:
        """Whether it is the half-space z ≤ 0 of its own axes."""
        return self.shape is None

    @property
    def reach(self) -> float:
        """Radius about its origin [m]; infinite for a half-space."""
        return math.inf if self.shape is None else max(float(piece.hull.reach) for piece in self.pieces)

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner in its own axes [m], shape (3,) each."""
        if self.shape is None:
            return np.full(3, -np.inf), np.array([np.inf, np.inf, 0.0])
        return np.min([p.low for p in self.pieces], axis=0), np.max([p.high for p in self.pieces], axis=0)

    def spans(self, axes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Least and largest coordinate [m] of each piece along unit axes, shape (3, n): shape (pieces, n) each."""
        middle = self.corners[:, :3] @ axes
        along = self.corners[:, 4:7] @ axes
        half = self.corners[:, 3:4] * np.sqrt(np.maximum(0.0, 1.0 - along * along))
        growth = np.array([[p.growth] for p in self.pieces])
        low = np.minimum.reduceat(middle - half, self.starts, axis=0) - growth
        return low, np.maximum.reduceat(middle + half, self.starts, axis=0) + growth

    def __repr__(self) -> str:
        return f"<solid: {self.shape!r:.80}>" if self.shape is not None else "<solid: half-space z ≤ 0>"


def solid(shape: Any) -> Solid:
    """A shape, prepared for gaps; equal shapes share it."""
    if isinstance(shape, Solid):
        return shape
    if not isinstance(shape, Shape):
        raise ModelError(f"{shape!r:.80} is no shape; make one with cardan.shapes, or half_space()")
    return _prepared(shape)


@lru_cache(maxsize=1)
def half_space() -> Solid:
    """All points with z ≤ 0 of its own axes."""
    return _made(None, [(_points([(0.0, 0.0, 0.0)]), 0.0)], 0.0, HALF_SPACE)


@lru_cache(maxsize=4096)
def _prepared(shape: Shape) -> Solid:
    if isinstance(shape, HalfSpace):
        return half_space()
    if isinstance(shape, Box):
        return _made(shape, [(_points(CORNERS * shape.size), 0.0)])
    if isinstance(shape, Sphere):
        return _made(shape, [(_points([(0.0, 0.0, 0.0)]), shape.radius)])
    if isinstance(shape, Cylinder) and not shape.bore:
        h = 0.5 * shape.height
        return _made(shape, [(np.array([_circle((0.0, 0.0, z), shape.radius) for z in (-h, h)]), 0.0)])
    if isinstance(shape, Revolution) and (atoms := _revolved(shape.profile)) is not None:
        return _made(shape, [(atoms, 0.0)])
    if isinstance(shape, Extrusion) and (atoms := _prism(shape.region, shape.height, shape.taper)) is not None:
        return _made(shape, [(atoms, 0.0)])
    if isinstance(shape, Mesh) and (atoms := _convex_mesh(shape)) is not None:
        return _made(shape, [(atoms, 0.0)], shape.deviation)
    parts, error = cut(shape)
    return _made(shape, [(_points(rows), 0.0) for rows in parts], error)


def _made(shape: Shape | None, parts: Sequence[tuple[FloatArray, float]], error: float = 0.0,
          kind: int = CONVEX) -> Solid:  # fmt: skip
    pieces = []
    for atoms, growth in parts:
        c, r, e = atoms[:, :3], atoms[:, 3:4], atoms[:, 4:7]
        across = r * np.sqrt(np.maximum(0.0, 1.0 - e * e))  # half the box of a whole circle
        reach = float((np.linalg.norm(c, axis=1) + r[:, 0]).max()) + growth
        hull = Hull.new(kind=kind, count=len(atoms), growth=growth, reach=reach, atoms=atoms.reshape(-1))
        low, high = (c - across).min(axis=0) - growth, (c + across).max(axis=0) + growth
        pieces.append(Piece(hull, atoms, growth, low, high))
    middles, radii = np.array([p.middle for p in pieces]), np.array([p.radius for p in pieces])
    corners = np.concatenate([p.atoms for p in pieces])
    starts = np.cumsum([0, *(len(p.atoms) for p in pieces[:-1])])
    # the records keep the tables alive as long as the pieces, which have them too
    addresses = np.array([PairRecord.new(a=p.hull).as_ints[0] for p in pieces])
    return Solid(shape, tuple(pieces), error, middles, radii, addresses, corners, starts)


def _points(rows: Any) -> FloatArray:
    found = np.zeros((len(rows), Atom.size))
    found[:, :3] = rows
    found[:, 6], found[:, 7], found[:, 10] = 1.0, 1.0, WHOLE
    return found


def _circle(center: Sequence[float], radius: float, middle: Sequence[float] = (1.0, 0.0, 0.0),
            cosine: float = WHOLE) -> FloatArray:  # fmt: skip
    """A circle about z, or an arc of it."""
    return np.array([*center, radius, *Z, *middle, cosine])


def _revolved(profile: Loop) -> FloatArray | None:
    """Atoms of a revolution, if it is convex and its profile has straight lines alone."""
    if not all(isinstance(piece, Line) for piece in profile):
        return None
    rows = np.array([piece.p for piece in profile if isinstance(piece, Line)])
    both = np.concatenate([rows, rows * (-1.0, 1.0)])  # the section by a plane through the axis
    corners = _corners_of_hull(both)
    size = float(np.abs(rows).max())
    if not _is_outline(rows[rows[:, 0] > ROUNDED * size], corners, size):
        return None
    on_axis = rows[rows[:, 0] <= ROUNDED * size]
    ends = corners[:, 1].min(), corners[:, 1].max()
    for z in ends:  # the axis itself must belong to the solid, up to both ends
        if not len(on_axis) or not np.abs(on_axis[:, 1] - z).min() <= ROUNDED * size:
            return None
    kept = corners[corners[:, 0] >= 0.0]
    return np.array([_circle((0.0, 0.0, z), r) if r > ROUNDED * size else _points([(0.0, 0.0, z)])[0] for r, z in kept])


def _corners_of_hull(rows: FloatArray) -> FloatArray:
    from cardan.shapes.region import hull

    return np.array(hull([(float(x), float(y)) for x, y in rows]))


def _is_outline(rows: FloatArray, corners: FloatArray, size: float) -> bool:
    """Whether points are all on the outline of a convex polygon."""
    a, d = corners, np.roll(corners, -1, axis=0) - corners
    d = d / np.linalg.norm(d, axis=1, keepdims=True)
    away = rows[:, None] - a
    off = d[:, 0] * away[..., 1] - d[:, 1] * away[..., 0]
    return bool((off.min(axis=1) <= ROUNDED * size).all())


def _prism(region: Region, height: float, taper: float) -> FloatArray | None:
    """Atoms of an extrusion, if its region is convex and has lines and arcs alone."""
    if region.holes:
        return None
    runs = _runs(region.outer)
    if runs is None:
        return None
    rows = []
    for scale, z in ((1.0, -0.5 * height), (taper, 0.5 * height)):
        for piece in runs:
            if isinstance(piece, Line):
                rows.append(_points([(scale * piece.p[0], scale * piece.p[1], z)])[0])
                continue
            center = (scale * piece.center[0], scale * piece.center[1], z)
            r, half = scale * piece.radius, 0.5 * piece.sweep
            if half >= math.pi * (1.0 - ROUNDED):
                rows.append(_circle(center, r))
                continue
            along = piece.start + half
            rows.append(_circle(center, r, (math.cos(along), math.sin(along), 0.0), math.cos(half)))
            for angle in (piece.start, piece.start + piece.sweep):
                end = (center[0] + r * math.cos(angle), center[1] + r * math.sin(angle), z)
                rows.append(_points([end])[0])
    return np.array(rows)


def _runs(loop: Loop) -> list[Line | Arc] | None:
    """The pieces of a convex loop, anticlockwise, arcs of one circle joined; None if it is not convex."""
    from cardan.shapes.region import loop_points, signed_area

    if not all(isinstance(piece, Line | Arc) for piece in loop):
        return None
    size = float(np.abs(loop_points(loop, 48)).max())
    if signed_area(loop_points(loop, 48)) < 0.0:
        loop = tuple(_backward(piece) for piece in loop[::-1])
    runs: list[Line | Arc] = []
    for piece in loop:
        assert isinstance(piece, Line | Arc)
        if isinstance(piece, Line) and math.dist(piece.p, piece.q) <= ROUNDED * size:
            continue
        last = runs[-1] if runs else None
        if isinstance(piece, Arc) and isinstance(last, Arc) and _is_one_circle(last, piece, size):
            runs[-1] = Arc(last.center, last.radius, last.start, last.sweep + piece.sweep)
        else:
            runs.append(piece)
    if len(runs) > 1 and isinstance(runs[0], Arc) and isinstance(runs[-1], Arc):
        first, last = runs[0], runs[-1]
        if _is_one_circle(last, first, size):
            runs = [Arc(last.center, last.radius, last.start, last.sweep + first.sweep), *runs[1:-1]]
    directions = []
    for piece in runs:
        if isinstance(piece, Line):
            directions += [math.atan2(piece.q[1] - piece.p[1], piece.q[0] - piece.p[0])] * 2
        elif piece.sweep <= 0.0:
            return None
        else:
            directions += [piece.start + 0.5 * math.pi, piece.start + piece.sweep + 0.5 * math.pi]
    for k in range(len(runs)):  # the angle at each corner
        turn = directions[(2 * k + 2) % len(directions)] - directions[2 * k + 1]
        turn = (turn + math.pi) % (2.0 * math.pi) - math.pi
        if turn < -ROUNDED:
            return None
    return runs


def _backward(piece: Any) -> Line | Arc:
    if isinstance(piece, Line):
        return Line(piece.q, piece.p)
    return Arc(piece.center, piece.radius, piece.start + piece.sweep, -piece.sweep)


def _is_one_circle(a: Arc, b: Arc, size: float) -> bool:
    return math.dist(a.center, b.center) + abs(a.radius - b.radius) <= ROUNDED * size and a.sweep * b.sweep > 0.0


def _convex_mesh(shape: Mesh) -> FloatArray | None:
    """The corners of a mesh, if it is closed and convex: no vertex is below the surface of the hull of all vertices."""
    from scipy.spatial import ConvexHull

    if not shape.is_closed:
        raise ModelError(
            f"{shape.name} is not closed: some edges do not belong to exactly two triangles, so it has no inside and "
            "no depth; repair it, attach closed shapes in its place, or use cardan.geometry.Mesh for its distance"
        )
    volume = shape.properties().volume
    hull = ConvexHull(shape.vertices)
    if hull.volume - volume > ROUNDED * hull.volume:
        return None
    size = float(np.ptp(shape.vertices, axis=0).max())
    normals, heights = hull.equations[:, :3], hull.equations[:, 3]
    for vertex in np.delete(shape.vertices, hull.vertices, axis=0):  # a small pit has less volume than rounding
        if (normals @ vertex + heights).max() < -ROUNDED * size:
            return None
    return _points(shape.vertices[np.sort(hull.vertices)])
