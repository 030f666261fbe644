"""What the planar linkages of the gallery share: links drawn from pin to pin, the meeting of two circles, a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import atan2, cos, hypot, sin, sqrt

import numpy as np
from numpy.typing import NDArray

import cardan as cd
from cardan.examples.registry import ExampleError
from cardan.math import euler

Plane = tuple[float, float]  # x, y [m]

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)  # every hinge turns about z and counts from x


def link(m: cd.Mechanism, name: str, at: Plane, towards: Plane, *, layer: float = 0.0) -> cd.Body:
    """A body with its origin at a point of the plane and its x axis towards another, in a layer z [m]."""
    angle = atan2(towards[1] - at[1], towards[0] - at[0])
    return m.body(name, position=(*at, layer), orientation=euler.from_axis_angle(Z, angle))


def pin(m: cd.Mechanism, name: str, a: cd.Body, on_a: Plane, b: cd.Body, on_b: Plane = (0.0, 0.0)) -> cd.Joint:
    """A hinge about z through a point of a and a point of b, each in its own axes; b's is its origin if not given."""
    return m.revolute(name, a.frame((*on_a, 0.0), z=Z, x=X), b.frame((*on_b, 0.0), z=Z, x=X))


def side(p: Plane, q: Plane, x: Plane) -> float:
    """1 where x lies to the left of the way from p to q, −1 where it lies to the right."""
    return 1.0 if (q[0] - p[0]) * (x[1] - p[1]) > (q[1] - p[1]) * (x[0] - p[0]) else -1.0


def meeting(p: Plane, r: float, q: Plane, s: float, side: float = 1.0) -> Plane:
    """Where the circle of radius r about p meets that of radius s about q, to the left (1) or right (−1) of p → q.

    x = p + a e + side h e⊥,  e = (q − p)/d,  d = |q − p|,  a = (r² − s² + d²)/2d,  h = √(r² − a²).
    """
    d = hypot(q[0] - p[0], q[1] - p[1])
    ex, ey = (q[0] - p[0]) / d, (q[1] - p[1]) / d
    a = (r**2 - s**2 + d**2) / (2.0 * d)
    if abs(a) > r:
        raise ExampleError(f"the circles of {r} m about {p} and of {s} m about {q} do not meet")
    h = side * sqrt(r**2 - a**2)
    return p[0] + a * ex - h * ey, p[1] + a * ey + h * ex


def flat(point: NDArray[np.float64]) -> Plane:
    """x and y of a point in space."""
    return float(point[0]), float(point[1])


def swept(mechanism: cd.Mechanism, hinge: str, angles: Iterable[float], state: cd.State) -> Iterator[cd.State]:
    """States in which a hinge of a copy is held at one angle [rad] after another, each begun where the last ended."""
    copy = mechanism.copy()
    old = copy[hinge]
    for angle in angles:
        turned = cos(angle) * np.array(old.a.x) + sin(angle) * np.array(old.a.y)
        copy.remove(hinge)
        copy.fixed(hinge, old.a.body.frame(old.a.origin, z=old.a.z, x=turned), old.b)
        result = copy.assemble(state)
        if not result.ok:
            raise ExampleError(f"{mechanism.name} does not assemble with {hinge} at {angle} rad; {result.text()}")
        state = result.state
        yield state
