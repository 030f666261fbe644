"""Functions shared by the planar linkages: links, pins, and the intersection of two circles."""

from __future__ import annotations

from math import atan2
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler

Plane = tuple[float, float]  # x, y [m]

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)  # every hinge rotates about z; its angle is measured from x


def link(m: cd.Mechanism, name: str, at: Plane, towards: Plane, *, layer: float = 0.0) -> cd.Body:
    """A body with its origin at one point of the plane and its x axis towards another, at height z = layer [m]."""
    angle = atan2(towards[1] - at[1], towards[0] - at[0])
    return m.body(name, position=(*at, layer), orientation=euler.from_axis_angle(Z, angle))


def pin(m: cd.Mechanism, name: str, a: cd.Body, on_a: Plane, b: cd.Body, on_b: Plane = (0.0, 0.0)) -> cd.Joint:
    """A hinge about z through a point of a and a point of b, each in its body's axes; on_b defaults to the origin."""
    return m.revolute(name, a.frame((*on_a, 0.0), z=Z, x=X), b.frame((*on_b, 0.0), z=Z, x=X))


def side(p: Plane, q: Plane, x: Plane) -> float:
    """1 if x lies to the left of the line from p to q, −1 if it lies to the right."""
    return 1.0 if (q[0] - p[0]) * (x[1] - p[1]) > (q[1] - p[1]) * (x[0] - p[0]) else -1.0


def intersect_circles(p: tuple[Any, Any], r: float, q: tuple[Any, Any], s: float, side: float = 1.0) -> tuple[Any, Any]:
    """Intersection of the circles of radius r about p and s about q, to the left (1) or right (−1) of p → q.

    x = p + a e + side h e⊥,  e = (q − p)/d,  d = |q − p|,  a = (r² − s² + d²)/2d,  h = √(r² − a²).
    The points [m] may be expressions in time; the result then is one too.
    """
    d = cd.sqrt((q[0] - p[0]) ** 2 + (q[1] - p[1]) ** 2)
    ex, ey = (q[0] - p[0]) / d, (q[1] - p[1]) / d
    a = (r**2 - s**2 + d**2) / (2.0 * d)
    try:
        h = side * cd.sqrt(r**2 - a**2)
    except ValueError:
        raise ExampleError(f"the circles of {r} m about {p} and of {s} m about {q} do not intersect") from None
    return p[0] + a * ex - h * ey, p[1] + a * ey + h * ex


def flat(point: NDArray[np.float64]) -> Plane:
    """x and y of a point in space."""
    return float(point[0]), float(point[1])
