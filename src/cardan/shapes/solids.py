"""Solids in closed form: box, cylinder, tube, sphere; extrusions of plane regions; bodies of revolution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.quantities import Edges, InSI, Length, Outline, Outlines
from cardan.shapes import region as plane
from cardan.shapes.region import Loop, Pair, Region, circle, polygon
from cardan.shapes.registry import in_files, maker
from cardan.shapes.shape import SEGMENTS, FloatArray, IndexArray, Properties, Shape, Triangles, from_moments
from cardan.system import check

SHEET = 0.01  # thickness of the plate that a half-space is drawn as, of its size
CORNERS = np.array([[x, y, z] for z in (-0.5, 0.5) for y in (-0.5, 0.5) for x in (-0.5, 0.5)])
SIDES = np.array([(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)])


@in_files
@dataclass(frozen=True, slots=True)
class Box(Shape):
    """Edges x, y, z [m], centred on the origin: V = xyz, J_xx = V (y² + z²)/12."""

    size: Edges

    def properties(self) -> Properties:
        volume = math.prod(self.size)
        squares = np.square(self.size)
        return Properties(volume, np.zeros(3), np.diag(volume / 12.0 * (squares.sum() - squares)))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        faces = np.concatenate([SIDES[:, [0, 1, 2]], SIDES[:, [0, 2, 3]]])
        return Triangles(CORNERS * self.size, faces)


@maker
def box(x: Any, y: Any, z: Any) -> Box:
    """A box with edges x, y, z [m], centred on its origin."""
    sizes = [check.positive(value, f"the edge {word} of a box") for word, value in (("x", x), ("y", y), ("z", z))]
    return Box((sizes[0], sizes[1], sizes[2]))


@in_files
@dataclass(frozen=True, slots=True)
class Cylinder(Shape):
    """Radius r, height h [m] along z, centred on the origin; a bore of radius i makes it a tube.

    V = π (r² − i²) h, J_zz = V (r² + i²)/2, J_xx = V (3 (r² + i²) + h²)/12.
    """

    radius: float
    height: float
    bore: float = 0.0

    def properties(self) -> Properties:
        r, i, h = self.radius, self.bore, self.height
        volume = math.pi * (r - i) * (r + i) * h
        squares = r * r + i * i
        across = volume * (3.0 * squares + h * h) / 12.0
        return Properties(volume, np.zeros(3), np.diag([across, across, 0.5 * volume * squares]))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        r, i, z = self.radius, self.bore, 0.5 * self.height
        return lathe(np.array([(i, -z), (r, -z), (r, z), (i, z)]), segments)

    @classmethod
    def _of_file(cls, radius: Length, height: Length, bore: Length = 0.0) -> Cylinder:
        return tube(radius, bore, height) if bore else cylinder(radius, height)

    def _in_file(self) -> Mapping[str, Any]:
        return {"radius": self.radius, "height": self.height, **({"bore": self.bore} if self.bore else {})}


@maker
def cylinder(radius: Any, height: Any) -> Cylinder:
    """A cylinder along z, centred on its origin; radius, height [m]."""
    return Cylinder(check.positive(radius, "the radius of a cylinder"), _height(height, "a cylinder"))


@maker
def tube(outer: Any, inner: Any, height: Any) -> Cylinder:
    """A hollow cylinder along z, centred on its origin; radii outer and inner, and height [m]."""
    r, i = check.positive(outer, "the outer radius of a tube"), check.positive(inner, "the inner radius of a tube")
    if i >= r:
        raise ModelError(f"the inner radius of a tube is {i} m, the outer {r} m; the inner must be smaller")
    return Cylinder(r, _height(height, "a tube"), i)


@in_files
@dataclass(frozen=True, slots=True)
class Sphere(Shape):
    """Radius r [m] about the origin: V = 4/3 π r³, J = 2/5 V r²."""

    radius: Length

    def properties(self) -> Properties:
        volume = 4.0 / 3.0 * math.pi * self.radius**3
        return Properties(volume, np.zeros(3), 0.4 * volume * self.radius**2 * np.eye(3))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        count = max(2, segments // 2)
        angle = math.pi * (np.arange(count + 1) / count - 0.5)
        profile = self.radius * np.column_stack([np.cos(angle), np.sin(angle)])
        profile[[0, -1], 0] = 0.0
        return lathe(profile, segments)


@maker
def sphere(radius: Any) -> Sphere:
    """A ball about its origin; radius [m]."""
    return Sphere(check.positive(radius, "the radius of a sphere"))


@in_files
@dataclass(frozen=True, slots=True)
class HalfSpace(Shape):
    """All points with z ≤ 0, such as the ground below parts; drawn as a square plate with edges ``size`` [m].

    It has an inside, for gaps and collisions, but neither a volume nor a mass.
    """

    size: Length

    def properties(self) -> Properties:
        raise ModelError(
            "a half-space has no volume and no mass; omit density=, or attach a solid, such as cd.shapes.box(x, y, z)"
        )

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        plate = box(self.size, self.size, SHEET * self.size).triangles()
        return Triangles(plate.vertices - (0.0, 0.0, 0.5 * SHEET * self.size), plate.faces)

    @classmethod
    def _of_file(cls, size: Length = 1.0) -> HalfSpace:
        return half_space(size)


@maker
def half_space(size: Any = 1.0) -> HalfSpace:
    """All points with z ≤ 0, as the ground below parts; drawn as a square plate with edges ``size`` [m]."""
    return HalfSpace(check.positive(size, "the size of a half-space"))


@in_files
@dataclass(frozen=True, slots=True)
class Extrusion(Shape):
    """A region of the xy plane, between z = −h/2 and h/2; at the top it is scaled by ``taper`` about the z axis.

    With area moments A, S, M of the region at the bottom and the scale s(z): V = A ∫s² dz, ∫x dV = S ∫s³ dz,
    ∫x xᵀ dV = M ∫s⁴ dz.
    """

    region: Region
    height: float
    taper: float = 1.0

    def properties(self) -> Properties:
        area, first, second = self.region.moments()
        h, k = self.height, self.taper - 1.0
        nodes, weights = np.polynomial.legendre.leggauss(5)  # exact up to degree 9
        z, s = 0.5 * h * nodes, 1.0 + k * 0.5 * (nodes + 1.0)
        w = 0.5 * h * weights

        def integral(power: int, of_z: int) -> float:
            return float(w @ (s**power * z**of_z))

        volume = area * integral(2, 0)
        f = np.array([*(first * integral(3, 0)), area * integral(2, 1)])
        m = np.zeros((3, 3))
        m[:2, :2] = second * integral(4, 0)
        m[:2, 2] = m[2, :2] = first * integral(3, 1)
        m[2, 2] = area * integral(2, 2)
        return from_moments(volume, f, m, np.zeros(3))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        loops = self.region.points(segments)
        return extruded(loops, plane.triangulate(loops), self.height, self.taper)

    @classmethod
    def _of_file(cls, outline: Outline, height: Length, holes: Outlines = (), taper: InSI = 1.0) -> Extrusion:
        return cls(plane.checked_region(Region(outline, holes), "an extrusion"), height, taper)

    def _in_file(self) -> Mapping[str, Any]:
        holes = {"holes": self.region.holes} if self.region.holes else {}
        return {"outline": self.region.outer, **holes, "height": self.height, "taper": self.taper}


@maker
def extrusion(outline: Any, height: Any, *, holes: Any = (), taper: Any = 1.0) -> Extrusion:
    """A prism: an outline of points (x, y) [m] with holes, between z = −height/2 and height/2.

    holes: circles (x, y, radius), or polygons.  taper: scale of the upper face about the z axis.
    """
    rows = _pairs(outline, "the outline of an extrusion", 3)
    made = _region(polygon(rows), holes, "an extrusion")
    return Extrusion(made, _height(height, "an extrusion"), check.positive(taper, "the taper of an extrusion"))


@maker
def link(a: Any, b: Any, *, width: Any, thickness: Any, hole: Any = 0.0) -> Extrusion:
    """A bar with round ends about the points a and b = (x, y) [m] of its xy plane, and a hole of that radius at each.

    width [m]: of the bar, 2·radius of its ends.  thickness [m]: along z, centred on z = 0.
    """
    p, q = _pair(a, "the point a of a link"), _pair(b, "the point b of a link")
    w, t = check.positive(width, "the width of a link"), check.positive(thickness, "the thickness of a link")
    r = check.positive(hole, "the hole of a link", zero=True)
    if math.dist(p, q) == 0.0:
        raise ModelError(f"the points a and b of a link are both {p}; they must differ")
    if r >= 0.5 * w or (r and math.dist(p, q) <= 2.0 * r):
        raise ModelError(f"the hole of a link has radius {r} m; it must be below half the width {w} m and the length")
    return Extrusion(Region(stadium(p, q, 0.5 * w), (circle(p, r), circle(q, r)) if r else ()), t)


@maker
def plate(points: Any, *, thickness: Any, radius: Any = 0.0, holes: Any = ()) -> Extrusion:
    """A plate: a polygon of points (x, y) [m] with holes; or, with a radius, what is within it of their convex hull.

    holes: circles (x, y, radius), or polygons.  thickness [m]: along z, centred on z = 0.
    """
    rows = _pairs(points, "the points of a plate", 3 if not radius else 2)
    t = check.positive(thickness, "the thickness of a plate")
    r = check.positive(radius, "the radius of a plate", zero=True)
    outline = plane.rounded(plane.hull(rows), r) if r else polygon(rows)
    return Extrusion(_region(outline, holes, "a plate"), t)


def extruded(loops: list[FloatArray], faces: IndexArray, height: float, taper: float) -> Triangles:
    """Between z = ∓height/2, from the triangles of the plane region."""
    flat = np.concatenate(loops)
    n = len(flat)
    low, high = (np.column_stack([s * flat, np.full(n, z)]) for s, z in ((1.0, -0.5 * height), (taper, 0.5 * height)))
    walls = []
    start = 0
    for rows in loops:
        a = np.arange(start, start + len(rows))
        b = np.roll(a, -1)
        walls += [np.column_stack([a, b, b + n]), np.column_stack([a, b + n, a + n])]
        start += len(rows)
    return Triangles(np.concatenate([low, high]), np.concatenate([faces[:, ::-1], faces + n, *walls]))


@in_files
@dataclass(frozen=True, slots=True)
class Revolution(Shape):
    """A region of the half plane (ρ, z), ρ ≥ 0, rotated about z.

    V = 2π ∫ρ dA, ∫z dV = 2π ∫ρ z dA, ∫z² dV = 2π ∫ρ z² dA, ∫x² dV = ∫y² dV = π ∫ρ³ dA.
    """

    profile: Loop

    def properties(self) -> Properties:
        rho, z, dz = plane.boundary(self.profile)
        sign = math.copysign(1.0, float(rho @ dz))
        square = sign * 2.0 * math.pi * 0.5 * rho * rho * dz  # ∮ ρ²/2 dz = ∫ρ dA
        across = sign * math.pi * float(0.25 * rho**4 @ dz)
        first = np.array([0.0, 0.0, z @ square])
        return from_moments(float(square.sum()), first, np.diag([across, across, float(z * z @ square)]), np.zeros(3))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        return lathe(plane.loop_points(self.profile, segments), segments)

    @classmethod
    def _of_file(cls, profile: Outline) -> Revolution:
        return cls(plane.checked_profile(profile, "the profile of a revolution"))


@maker
def revolution(profile: Any) -> Revolution:
    """A closed profile of points (ρ, z) [m], ρ ≥ 0, rotated about the z axis."""
    what = "the profile of a revolution"
    return Revolution(plane.checked_profile(polygon(_pairs(profile, what, 3)), what))


def lathe(profile: FloatArray, segments: int) -> Triangles:
    """The surface of a closed profile (ρ, z), shape (n, 2), rotated about z."""
    if plane.signed_area(profile) < 0.0:
        profile = profile[::-1]
    size = float(np.abs(profile).max())
    on_axis = profile[:, 0] <= 1e-12 * size
    counts = np.where(on_axis, 1, segments)
    starts = np.concatenate([[0], np.cumsum(counts)])
    angle = 2.0 * math.pi * np.arange(segments) / segments
    rows = [
        np.array([[0.0, 0.0, z]])
        if pole
        else np.column_stack([r * np.cos(angle), r * np.sin(angle), np.full(segments, z)])
        for (r, z), pole in zip(profile, on_axis, strict=True)
    ]
    j, after = np.arange(segments), (np.arange(segments) + 1) % segments
    faces = []
    for i in range(len(profile)):
        k = (i + 1) % len(profile)
        a, b = (starts[i] + j * (not on_axis[i]), starts[i] + after * (not on_axis[i]))
        d, c = (starts[k] + j * (not on_axis[k]), starts[k] + after * (not on_axis[k]))
        if not on_axis[i]:
            faces.append(np.column_stack([a, b, c]))
        if not on_axis[k]:
            faces.append(np.column_stack([a, c, d]))
    return Triangles(np.concatenate(rows), np.concatenate(faces))


def stadium(p: tuple[float, float], q: tuple[float, float], radius: float) -> Loop:
    """Outline of all points within a radius of the line p q."""
    direction = math.atan2(q[1] - p[1], q[0] - p[0])
    n = (radius * math.sin(direction), -radius * math.cos(direction))
    right, left = (
        [(p[0] + n[0], p[1] + n[1]), (q[0] + n[0], q[1] + n[1])],
        [(q[0] - n[0], q[1] - n[1]), (p[0] - n[0], p[1] - n[1])],
    )
    return (
        polygon(right)[0],
        *plane.arcs(q, radius, direction - 0.5 * math.pi, math.pi),
        polygon(left)[0],
        *plane.arcs(p, radius, direction + 0.5 * math.pi, math.pi),
    )


def _height(value: Any, what: str) -> float:
    return check.positive(value, f"the height of {what}")


def _pair(value: Any, what: str) -> Pair:
    x, y = check.numbers(value, 2, what)
    return x, y


def _pairs(values: Any, what: str, least: int) -> list[Pair]:
    try:
        rows = [_pair(value, f"one of {what}") for value in values]
    except TypeError:
        raise ModelError(f"{what}: {values!r:.120}; they must be pairs (x, y)") from None
    if len(rows) > 1 and rows[0] == rows[-1]:
        rows.pop()  # closed already
    if len(rows) < least:
        raise ModelError(f"{what}: there are {len(rows)}; there must be {least} or more")
    return rows


def _region(outline: Loop, holes: Any, what: str) -> Region:
    """A region whose loops do not cross, each hole inside."""
    loops: list[Loop] = [outline]
    try:
        given = list(holes)
    except TypeError:
        raise ModelError(f"the holes of {what} are {holes!r:.120}; they must be a list") from None
    for hole in given:
        where = f"a hole of {what}"
        if _is_circle(hole):
            x, y, r = check.numbers(hole, 3, where)
            loops.append(circle((x, y), check.positive(r, f"the radius of {where}")))
        else:
            loops.append(polygon(_pairs(hole, where, 3)))
    return plane.checked_region(Region(loops[0], tuple(loops[1:])), what)


def _is_circle(hole: Any) -> bool:
    return isinstance(hole, Sequence | np.ndarray) and len(hole) == 3 and not np.ndim(hole[0])
