"""Shapes with closed forms: line, circle, ellipse, plane, sphere, ellipsoid, cylinder, cone, torus.

Their charts have no poles and no seams: angles are periodic and not wrapped, and a sphere has q = m ∈ S².  Each is in a
frame of its own: the axis is z, the centre the origin.  Normals S_u × S_v point outwards.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf, pi
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import build, checks, tables
from cardan.geometry.checks import FloatArray
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.patches import Patch
from cardan.geometry.shape import Shape, read_parameters

TURN = 2.0 * pi
PARTS = 8  # roots per turn
FAR = 8.0  # reach of a chart of the sphere in a local search, where the antipode is at infinity


class Analytic(Shape):
    """A shape with a closed form; ``numbers`` are its sizes [m]."""

    def __init__(self, name: str, kind: int, limits: Any, numbers: Any, bounds: Any, dimension: int = 3) -> None:
        self.name = name
        self.numbers = tuple(float(x) for x in numbers)
        self._derivative_bounds = np.array(bounds, dtype=float)
        freedoms = len(limits)
        flat = [x for limit in limits for x in limit] + [0.0] * (6 - 3 * freedoms)
        width = 3 if kind == tables.SPHERE else freedoms
        ints = tables.ShapeInts.new(open=1, freedoms=freedoms, width=width, kind=kind, work=8).as_ints
        floats = np.array([*flat, *self.numbers, *[0.0] * (3 - len(self.numbers))])
        super().__init__("cardan.geometry._closed_forms", ints, floats, dimension)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.numbers))})"

    def __reduce__(self) -> Any:
        return _rebuild, (self.name, self.numbers, self.bounds)

    def patches(self, extent: float) -> list[Patch]:
        """The whole shape, with roots of an eighth of a turn; unbounded directions end at ± extent."""
        limits = self.floats[: tables.LIMITS].tolist()
        axes = []
        for i, period in enumerate(self.periods):
            low, high = max(limits[3 * i], -extent), min(limits[3 * i + 1], extent)
            if not (np.isfinite(low) and np.isfinite(high)):
                raise ModelError(f"the {self.name} is unbounded; it must be bounded, or its partner must be")
            limits[3 * i], limits[3 * i + 1] = low, high
            axes.append(np.linspace(low, high, (PARTS if period else 1) + 1))
        axes += [np.zeros(2)] * (2 - self.freedoms)
        boxes = np.array([(*u, *v) for u in pairwise(axes[0]) for v in pairwise(axes[1])])
        bounds = np.broadcast_to(self._derivative_bounds, (len(boxes), tables.BOUNDS)).copy()
        return [Patch(self, limits, boxes, "cardan.geometry._taylor", bounds)]

    def to_patch(self, q: FloatArray) -> tuple[int, FloatArray]:
        """Number of the patch and its parameters for coordinates q."""
        return 0, q

    def from_patch(self, q: FloatArray, point: FloatArray) -> FloatArray:
        """Coordinates of the shape from the parameters of a patch and its point."""
        return q[: self.freedoms]

    def offset(self, distance: float) -> Any:
        """The shape at that distance along its normals, which is exact for spheres, cylinders, cones, tori and
        circles."""
        d = float(distance)
        if self.name in ("circle", "sphere"):
            return _rebuild(self.name, (self.numbers[0] + d,), self.bounds)
        if self.name == "cylinder":
            return _rebuild("cylinder", (self.numbers[0] + d,), self.bounds)
        if self.name == "torus":
            return torus(self.numbers[0], self.numbers[1] + d)
        if self.name == "cone":
            slope = self.numbers[1]
            return _rebuild("cone", (self.numbers[0] + d * float(np.hypot(1.0, slope)), slope), self.bounds)
        raise ModelError(f"the offset of a {self.name} is not a shape of the same kind; sample it and fit a surface")

    def to_nurbs(self) -> Curve | Surface:
        """The same points as a NURBS, which is exact.  That of a sphere or ellipsoid has poles."""
        a = self.numbers
        if self.name in ("circle", "ellipse"):
            return build.circle(a[0], a[-1])
        if self.width == self.freedoms and not all(np.isfinite(b).all() for b in self.bounds):
            raise ModelError(f"the {self.name} is unbounded; a NURBS is bounded: give its size")
        if self.name == "line":
            ((low, high),) = self.bounds
            return Curve([(low, 0, 0), (high, 0, 0)], knots=(low, low, high, high), degree=1)
        if self.name == "plane":
            (a0, a1), (b0, b1) = self.bounds
            points = [[(x, y, 0.0) for y in (b0, b1)] for x in (a0, a1)]
            return Surface(points, None, (a0, a0, a1, a1), (b0, b0, b1, b1), degree=1)
        if self.name in ("sphere", "ellipsoid"):
            half = build.circle(1.0, 1.0, half=True)
            ball = build.revolve(half.transformed([[1, 0, 0], [0, 0, 0], [0, 1, 0]]))
            return ball.transformed(np.diag(a if len(a) == 3 else 3 * a))
        if self.name == "torus":
            ring = build.circle(a[1], a[1]).transformed([[1, 0, 0], [0, 0, 0], [0, 1, 0]], (a[0], 0, 0))
            return build.revolve(ring)
        low, high = self.bounds[1]
        slope = a[1] if len(a) > 1 else 0.0
        ends = [(a[0] + slope * z, 0.0, z) for z in (low, high)]
        return build.revolve(Curve(ends, knots=(low, low, high, high), degree=1))


class Sphere(Analytic):
    """A sphere or ellipsoid: q = m ∈ S², S = diag(a, b, c) m.  Searches use two stereographic charts."""

    def derivatives(self, u: float, v: float = 0.0, order: int = 2) -> FloatArray:
        """ModelError: a sphere has no parameters u, v."""
        raise ModelError(f"a {self.name} has no parameters u, v: give unit vectors m to evaluate(m, order)")

    def evaluate(self, parameters: Any, order: int = 0) -> FloatArray:
        """Points and derivatives at unit vectors m, shape (n, 3); derivatives along the local chart of m."""
        m = read_parameters(parameters)
        if m.ndim == 2 and m.shape[1] == 3:
            size = np.linalg.norm(m, axis=1)
            bad = np.flatnonzero(~(np.abs(size - 1.0) <= 1e-6))
            if bad.size:
                raise ModelError(f"m[{bad[0]}] is {m[bad[0]].tolist()}; it must be a unit vector")
        return super().evaluate(m, order)

    def sample(self, count: int) -> FloatArray:
        """Unit vectors, about evenly spread: count² of them on a spiral."""
        n = count * count
        z = 1.0 - (2.0 * np.arange(n) + 1.0) / n
        angle = pi * (3.0 - np.sqrt(5.0)) * np.arange(n)
        r = np.sqrt(1.0 - z * z)
        return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)

    @property
    def axes(self) -> FloatArray:
        """Half axes [m]."""
        return np.array(self.numbers if len(self.numbers) == 3 else 3 * self.numbers)

    def charts(self) -> tuple[Surface, Surface]:
        """Stereographic charts on [−1, 1]², of a half and more each: (2u, 2v, 1 − u² − v²)/(1 + u² + v²), and the same
        with x and y exchanged and −z."""
        if not hasattr(self, "_charts"):
            u, square = np.linspace(-1.0, 1.0, 5), np.array([1.0, 0.0, 0.0, 0.0, 1.0])
            w = 1.0 + square[:, None] + square
            x, y = np.broadcast_arrays(2.0 * u[:, None], 2.0 * u)
            z = 1.0 - square[:, None] - square
            knots = np.array([-1, -1, -1, 0, 0, 1, 1, 1], dtype=float)
            nets = np.stack([x, y, z], -1) / w[..., None], np.stack([y, x, -z], -1) / w[..., None]
            self._charts = tuple(Surface(net * self.axes, w, knots, knots, degree=2) for net in nets)
        return self._charts  # type: ignore[return-value]  # two of them

    def patches(self, extent: float) -> list[Patch]:
        """The two charts; each is smooth across its knots."""
        limits = (-1.0, 1.0, 0.0, -1.0, 1.0, 0.0)
        boxes = np.array([(a, a + 1.0, b, b + 1.0) for a in (-1.0, 0.0) for b in (-1.0, 0.0)])
        return [Patch(chart, limits, boxes) for chart in self.charts()]

    def whole_patches(self, extent: float) -> list[Patch]:
        """The two charts with larger bounds, which are not edges of the sphere."""
        limits = (-FAR, FAR, 0.0, -FAR, FAR, 0.0)
        return [Patch(chart, limits, None) for chart in self.charts()]

    def to_patch(self, q: FloatArray) -> tuple[int, FloatArray]:
        x, y, z = q
        return (0, np.array([x, y]) / (1.0 + z)) if z >= 0.0 else (1, np.array([y, x]) / (1.0 - z))

    def from_patch(self, q: FloatArray, point: FloatArray) -> FloatArray:
        m = point / self.axes
        return np.asarray(m / np.linalg.norm(m))


def _span(value: Any, what: str) -> tuple[float, float]:
    """Lower and upper bound: None for no bounds, one number for the length of a centred interval, or a pair."""
    if value is None:
        return -inf, inf
    if isinstance(value, int | float | np.number):
        half = 0.5 * checks.positive(value, what)
        return -half, half
    low, high = (float(x) for x in value)
    if not low < high:
        raise ModelError(f"{what} is {value!r}; the lower bound must be below the upper one")
    return low, high


def line(length: Any = None) -> Analytic:
    """The x axis (u, 0, 0); length: None for an unbounded line, a number (centred), or (lower, upper) [m]."""
    return Analytic("line", tables.LINE, [(*_span(length, "the length"), 0.0)], (), [1, 0, 0, 0, 0, 0, 0, 0, 0])


def circle(radius: float) -> Analytic:
    """(r cos u, r sin u, 0): a circle in the xy plane [m]."""
    r = checks.positive(radius, "the radius of the circle")
    return Analytic("circle", tables.CIRCLE, [(0.0, TURN, TURN)], (r, r), [r, 0, r, 0, 0, r, 0, 0, 0])


def ellipse(a: float, b: float) -> Analytic:
    """(a cos u, b sin u, 0): an ellipse in the xy plane [m]."""
    a, b = checks.positive(a, "the half axis a"), checks.positive(b, "the half axis b")
    r = max(a, b)
    return Analytic("ellipse", tables.CIRCLE, [(0.0, TURN, TURN)], (a, b), [r, 0, r, 0, 0, r, 0, 0, 0])


def plane(width: Any = None, height: Any = None) -> Analytic:
    """The xy plane with normal z; unbounded, or with a width along x and a height along y [m]."""
    u, v = _span(width, "the width"), _span(height, "the height")
    return Analytic("plane", tables.PLANE, [(*u, 0.0), (*v, 0.0)], (), [1, 1, 0, 0, 0, 0, 0, 0, 0])


def sphere(radius: float) -> Sphere:
    """A sphere about the origin [m]; coordinates are unit vectors m."""
    r = checks.positive(radius, "the radius of the sphere")
    return Sphere("sphere", tables.SPHERE, [(-inf, inf, 0.0)] * 2, (r, r, r), np.zeros(9))


def ellipsoid(a: float, b: float, c: float) -> Sphere:
    """An ellipsoid with half axes a, b, c along x, y, z [m]; coordinates are unit vectors m."""
    axes = [checks.positive(x, f"the half axis {name}") for x, name in zip((a, b, c), "abc", strict=True)]
    return Sphere("ellipsoid", tables.SPHERE, [(-inf, inf, 0.0)] * 2, axes, np.zeros(9))


def cylinder(radius: float, height: Any = None) -> Analytic:
    """(r cos u, r sin u, v): the side of a cylinder, unbounded or of that height, centred [m]."""
    r = checks.positive(radius, "the radius of the cylinder")
    limits = [(0.0, TURN, TURN), (*_span(height, "the height"), 0.0)]
    return Analytic("cylinder", tables.CYLINDER, limits, (r,), [r, 1, r, 0, 0, r, 0, 0, 0])


def cone(radius: float, slope: float, height: Any) -> Analytic:
    """((r + s v) cos u, (r + s v) sin u, v): the side of a cone with radius r at v = 0 and dr/dz = s [m]."""
    r, s = checks.positive(radius, "the radius of the cone", zero=True), float(slope)
    low, high = _span(height, "the height")
    ends = [r + s * low, r + s * high]
    if min(ends) < 0.0:
        raise ModelError(f"the cone passes its apex: its radius is {min(ends)} at one end; it must be zero or more")
    if min(ends) == 0.0 and s == 0.0:
        raise ModelError("the cone has no radius; it must have a positive radius somewhere")
    big = max(ends)
    bounds = [big, float(np.hypot(1.0, s)), big, abs(s), 0, big, abs(s), 0, 0]
    return Analytic("cone", tables.CONE, [(0.0, TURN, TURN), (low, high, 0.0)], (r, s), bounds)


def torus(major: float, minor: float) -> Analytic:
    """((R + r cos v) cos u, (R + r cos v) sin u, r sin v) with R > r [m]."""
    R, r = checks.positive(major, "the major radius"), checks.positive(minor, "the minor radius")
    if r >= R:
        raise ModelError(f"the minor radius {r} of the torus is not below the major radius {R}; it would cross itself")
    big = R + r
    return Analytic("torus", tables.TORUS, [(0.0, TURN, TURN)] * 2, (R, r), [big, r, big, r, r, big, r, r, r])


class Point(Analytic):
    """A fixed point, for searches."""

    def __init__(self, position: Any) -> None:
        p = checks.numbers(position, "the point", 1)
        if p.size not in (2, 3):
            raise ModelError(f"the point has {p.size} coordinates; it must have 2 or 3")
        super().__init__("point", tables.POINT, [], [*p, 0.0][:3], np.zeros(9))

    def patches(self, extent: float) -> list[Patch]:
        bounds = np.zeros((1, tables.BOUNDS))
        return [Patch(self, (0.0,) * tables.LIMITS, np.zeros((1, 4)), "cardan.geometry._taylor", bounds)]


def _rebuild(name: str, numbers: tuple[float, ...], bounds: Any) -> Any:
    makers: dict[str, Any] = {
        "line": lambda: line(bounds[0]),
        "circle": lambda: circle(numbers[0]),
        "ellipse": lambda: ellipse(*numbers[:2]),
        "plane": lambda: plane(*bounds),
        "sphere": lambda: sphere(numbers[0]),
        "ellipsoid": lambda: ellipsoid(*numbers),
        "cylinder": lambda: cylinder(numbers[0], bounds[1]),
        "cone": lambda: cone(numbers[0], numbers[1], bounds[1]),
        "torus": lambda: torus(*numbers[:2]),
        "point": lambda: Point(numbers),
    }
    return makers[name]()
