"""Curves and surfaces as shapes of bodies: what they look like.  They have no volume."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.shape import Shape as Geometry
from cardan.shapes.shape import SEGMENTS, FloatArray, Properties, Shape, Triangles

THICKNESS = 0.02  # of the extent: the band that a curve is drawn as
UNBOUNDED = 1.0  # [m] half of the side of the square that an unbounded plane is drawn as


class Curved(Shape):
    """A curve or surface of :mod:`cardan.geometry`, for contacts and looks."""

    __slots__ = ("geometry",)

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry

    def properties(self) -> Properties:
        raise ModelError(
            f"{self.geometry!r} is a curve or surface, which has no mass; omit density=, and give mass=, center= and "
            "inertia= to m.body, or attach a solid as well"
        )

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        g = self.geometry
        if g.freedoms == 0:
            raise ModelError("a point has no surface")
        axes = [np.linspace(*self._range(i), segments + 1) for i in range(g.freedoms)]
        if g.width > g.freedoms:  # a sphere by longitude and latitude
            axes = [np.linspace(0.0, 2.0 * np.pi, segments + 1), np.linspace(-0.5 * np.pi, 0.5 * np.pi, segments // 2)]
        first, second = (axes[0], axes[1]) if g.freedoms == 2 else (axes[0], np.array([-0.5, 0.5]))
        u, v = (grid.ravel() for grid in np.meshgrid(first, second, indexing="ij"))
        if g.width > g.freedoms:
            q: FloatArray = np.stack([np.cos(u) * np.cos(v), np.sin(u) * np.cos(v), np.sin(v)], axis=1)
        else:
            q = np.stack([u, v], axis=1)[:, : g.freedoms]
        points = g._evaluate(np.ascontiguousarray(q), 0)[:, 0]
        if g.freedoms == 1:
            points = points + np.outer(v, (0.0, 0.0, THICKNESS * float(np.ptp(points, axis=0).max())))
        n, m = len(first), len(second)
        k = (np.arange(n - 1)[:, None] * m + np.arange(m - 1)).ravel()
        faces = np.concatenate([np.stack([k, k + m, k + m + 1], axis=1), np.stack([k, k + m + 1, k + 1], axis=1)])
        return Triangles(points, faces)

    def _range(self, i: int) -> tuple[float, float]:
        low, high = self.geometry.bounds[i]
        return low if np.isfinite(low) else -UNBOUNDED, high if np.isfinite(high) else UNBOUNDED

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curved) and self.geometry.key() == other.geometry.key()

    def __hash__(self) -> int:
        return hash(self.geometry.key())

    def __reduce__(self) -> tuple[Any, ...]:
        return Curved, (self.geometry,)

    def __deepcopy__(self, memo: Any) -> Curved:
        return self

    def __repr__(self) -> str:
        return repr(self.geometry)
