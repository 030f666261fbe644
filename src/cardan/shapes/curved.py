"""Curves and surfaces as shapes of bodies: what they look like.  They have no volume.

A closed curve in a plane is drawn as a plate within it, or as a frame around it where the other body is inside; other
curves are drawn as tubes.  A surface that encloses a volume is drawn as it is, others as thin shells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.shape import Shape as Geometry
from cardan.geometry.shape import Trimmed
from cardan.shapes.region import Region, polygon
from cardan.shapes.shape import SEGMENTS, FloatArray, IndexArray, Properties, Shape, Triangles
from cardan.shapes.solids import Extrusion

PLATE = 0.12  # thickness of a plate, of the extent of its outline;
FRAME = 1.15  # and a frame is this much larger than its outline
TUBE = 0.012  # radius of a tube, of the extent of its curve
SIDES = 10  # of a tube
SHELL = 0.008  # thickness of a shell, of its extent
JOINED = 1e-6  # of the extent: a curve whose ends are nearer is drawn closed
FLAT = 1e-9  # of the extent: a curve with less height is in a plane
WELDED = 1e-7  # of the extent: points of a mesh that are nearer are one vertex
UNBOUNDED = 1.0  # [m] half of the length that an unbounded shape is drawn with, where no other is given


class Curved(Shape):
    """A curve, surface or trimmed face of :mod:`cardan.geometry`, for contacts and looks.

    reach [m]: half of the length that is drawn of an unbounded one; is_outside: the material is around a closed curve.
    trim: the face, if loops bound a part of the surface.
    """

    __slots__ = ("geometry", "is_outside", "reach", "trim")

    def __init__(
        self, geometry: Geometry, reach: float = UNBOUNDED, is_outside: bool = False, trim: Trimmed | None = None
    ) -> None:
        self.geometry, self.reach, self.is_outside, self.trim = geometry, reach, is_outside, trim

    def drawn(self, reach: float, is_outside: bool) -> Curved:
        """The same shape, to be drawn otherwise."""
        return Curved(self.geometry, reach, is_outside, self.trim)

    def properties(self) -> Properties:
        raise ModelError(
            f"{self.geometry!r} is a curve or surface, which has no mass; omit density=, and give mass=, center= and "
            "inertia= to m.body, or attach a solid as well"
        )

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        if self.geometry.freedoms == 0:
            raise ModelError("a point has no surface")
        return self._curve(2 * segments) if self.geometry.freedoms == 1 else self._surface(segments)

    def _curve(self, count: int) -> Triangles:
        parameters = np.linspace(*self._range(0), count + 1)
        p = self.geometry._evaluate(np.ascontiguousarray(parameters[:, None]), 0)[:, 0]
        size = float(np.ptp(p, axis=0).max())
        is_closed = float(np.abs(p[0] - p[-1]).max()) <= JOINED * size
        if is_closed and float(np.ptp(p[:, 2])) <= FLAT * size:
            outline = [(float(x), float(y)) for x, y in p[:-1, :2]]
            if _area(p[:-1]) < 0.0:
                outline.reverse()
            made = self._plate(outline, PLATE * size)
            return Triangles(made.vertices + np.array([0.0, 0.0, p[0, 2]]), made.faces)
        return _tube(p[:-1] if is_closed else p, TUBE * size, is_closed)

    def _plate(self, outline: list[tuple[float, float]], thickness: float) -> Triangles:
        if not self.is_outside:
            return Extrusion(Region(polygon(outline)), thickness).triangles()
        middle = 0.5 * (np.min(outline, axis=0) + np.max(outline, axis=0))
        around = [(float(x), float(y)) for x, y in middle + FRAME * (np.array(outline) - middle)]
        return Extrusion(Region(polygon(around), (polygon(outline),)), thickness).triangles()

    def _surface(self, segments: int) -> Triangles:
        g = self.geometry
        if g.width > g.freedoms:  # a sphere by longitude and latitude
            axes = [np.linspace(0.0, 2.0 * np.pi, segments + 1), np.linspace(-0.5 * np.pi, 0.5 * np.pi, segments // 2)]
        else:
            axes = [np.linspace(*self._range(i), segments + 1) for i in range(2)]
        u, v = (grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
        q: FloatArray = np.stack([u, v], axis=1)
        if g.width > g.freedoms:
            q = np.stack([np.cos(u) * np.cos(v), np.sin(u) * np.cos(v), np.sin(v)], axis=1)
        points = g._evaluate(np.ascontiguousarray(q), 0)[:, 0]
        n, m = len(axes[0]), len(axes[1])
        k = (np.arange(n - 1)[:, None] * m + np.arange(m - 1)).ravel()
        faces = np.concatenate([np.stack([k, k + m, k + m + 1], axis=1), np.stack([k, k + m + 1, k + 1], axis=1)])
        if self.trim is not None:
            inside = [self.trim.contains(*middle) for middle in q[faces].mean(axis=1).tolist()]
            faces = faces[inside] if any(inside) else faces
        return _shell(*_joined(points, faces))

    def _range(self, i: int) -> tuple[float, float]:
        low, high = self.geometry.bounds[i]
        return low if np.isfinite(low) else -self.reach, high if np.isfinite(high) else self.reach

    def _key(self) -> tuple[Any, ...]:
        trim = None if self.trim is None else self.trim.key()
        return self.geometry.key(), self.reach, self.is_outside, trim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curved) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return Curved, (self.geometry, self.reach, self.is_outside, self.trim)

    def __deepcopy__(self, memo: Any) -> Curved:
        return self

    def __repr__(self) -> str:
        return repr(self.geometry)


def _area(p: FloatArray) -> float:
    """Area of a polygon in the xy plane [m²], positive if it runs counter-clockwise."""
    x, y = p[:, 0], p[:, 1]
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _tube(p: FloatArray, radius: float, is_closed: bool) -> Triangles:
    """Rings around the points of a curve; each ring is turned as little as possible against the one before."""
    t = np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0) if is_closed else np.gradient(p, axis=0)
    t = t / np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-300)
    side = np.cross(t[0], np.eye(3)[int(np.argmin(np.abs(t[0])))])
    angles = np.linspace(0.0, 2.0 * np.pi, SIDES, endpoint=False)
    rings = []
    for point, along in zip(p, t, strict=True):
        side = side - (side @ along) * along
        side = side / max(float(np.linalg.norm(side)), 1e-300)
        other = np.cross(along, side)
        rings.append(point + radius * (np.cos(angles)[:, None] * side + np.sin(angles)[:, None] * other))
    n = len(rings)
    i, j = np.meshgrid(np.arange(n if is_closed else n - 1), np.arange(SIDES), indexing="ij")
    a, b = i * SIDES + j, i * SIDES + (j + 1) % SIDES
    c, d = (i + 1) % n * SIDES + j, (i + 1) % n * SIDES + (j + 1) % SIDES
    faces = [np.stack([a, b, d], axis=-1).reshape(-1, 3), np.stack([a, d, c], axis=-1).reshape(-1, 3)]
    if not is_closed:
        fan = np.arange(1, SIDES - 1)
        caps = np.stack([np.zeros_like(fan), fan + 1, fan], axis=1)
        faces += [caps, (n - 1) * SIDES + caps[:, ::-1]]
    return Triangles(np.concatenate(rings), np.concatenate(faces))


def _joined(points: FloatArray, faces: IndexArray) -> tuple[FloatArray, IndexArray]:
    """One vertex where the points of a seam or a pole coincide, and no faces without area."""
    size = max(float(np.ptp(points, axis=0).max()), 1e-300)
    keys = np.round(points / (WELDED * size)).astype(np.int64)
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    made = number.reshape(-1)[faces]
    solid = (made[:, 0] != made[:, 1]) & (made[:, 1] != made[:, 2]) & (made[:, 2] != made[:, 0])
    return points[first], made[solid]


def _shell(points: FloatArray, faces: IndexArray) -> Triangles:
    """A closed surface with its faces outward, or an open one with a thickness."""
    edges = np.concatenate([faces[:, [k, (k + 1) % 3]] for k in range(3)])
    keys = edges[:, 0] * len(points) + edges[:, 1]
    rim = edges[~np.isin(keys, edges[:, 1] * len(points) + edges[:, 0])]
    a, b, c = (points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    if not len(rim):
        is_inward = float(np.sum(a * normals)) < 0.0  # six times the volume
        return Triangles(points, faces[:, ::-1] if is_inward else faces)
    at = np.zeros_like(points)
    for k in range(3):
        np.add.at(at, faces[:, k], normals)
    at /= np.maximum(np.linalg.norm(at, axis=1, keepdims=True), 1e-300)
    half = 0.5 * SHELL * float(np.ptp(points, axis=0).max())
    n = len(points)
    p, q = rim[:, 0], rim[:, 1]
    sides = [np.stack([p, p + n, q + n], axis=1), np.stack([p, q + n, q], axis=1)]
    return Triangles(np.concatenate([points + half * at, points - half * at]),
                     np.concatenate([faces, faces[:, ::-1] + n, *sides]))  # fmt: skip
