"""Smooth parts of a shape, for searches: bounds, root boxes of the parameters, how boxes are enclosed.

A patch has two continuous derivatives: NURBS are divided at knots of lower continuity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cardan.geometry.checks import FloatArray
from cardan.geometry.shape import Shape
from cardan.geometry.tables import LIMITS, ShapeInts

NURBS = "cardan.geometry._enclose"  # module of the kernel that encloses boxes of NURBS


class Patch(NamedTuple):
    """A smooth part of a shape.

    limits: bounds and period per parameter, as in the table; boxes: roots, shape (n, 4), or None: the spans of a NURBS;
    enclosure: module of the kernel that encloses boxes; bounds: of derivatives on each root, shape (n, 9), for the
    enclosure by Taylor's theorem; loops: of a trimmed face in the parameter plane; spans: first and end in u and in v.
    """

    shape: Shape
    limits: Sequence[float]
    boxes: FloatArray | None
    enclosure: str = NURBS
    bounds: FloatArray | None = None
    loops: FloatArray | None = None
    spans: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def root_count(self) -> int:
        """Number of roots."""
        first, end, low, high = self.spans
        return (end - first) * (high - low) if self.boxes is None else len(self.boxes)

    def roots(self) -> FloatArray:
        """Boxes u₀ u₁ v₀ v₁ of the parameters, shape (n, 4)."""
        if self.boxes is not None:
            return self.boxes
        first, end, low, high = self.spans
        found = np.zeros((end - first, high - low, 4))
        breaks = self.shape.floats[LIMITS:]
        u, v = breaks[first : end + 1], breaks[int(ShapeInts(self.shape.ints).spans[0]) + 1 :][low : high + 1]
        found[..., 0], found[..., 1] = u[:-1, None], u[1:, None]
        if self.shape.freedoms == 2:
            found[..., 2], found[..., 3] = v[:-1], v[1:]
        return found.reshape(-1, 4)
