"""Solids in closed form: box, cylinder, tube, sphere; extrusions of plane regions; bodies of revolution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cardan.shapes.region import Loop, Region, arcs, boundary, loop_points, polygon, signed_area, triangulate
from cardan.shapes.shape import SEGMENTS, FloatArray, IndexArray, Properties, Shape, Triangles, from_moments
from cardan.system.check import Triple

CORNERS = np.array([[x, y, z] for z in (-0.5, 0.5) for y in (-0.5, 0.5) for x in (-0.5, 0.5)])
SIDES = np.array([(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)])


@dataclass(frozen=True, slots=True)
class Box(Shape):
    """Edges x, y, z [m], centred on the origin: V = xyz, J_xx = V (y² + z²)/12."""

    size: Triple

    def properties(self) -> Properties:
        volume = math.prod(self.size)
        squares = np.square(self.size)
        return Properties(volume, np.zeros(3), np.diag(volume / 12.0 * (squares.sum() - squares)))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        faces = np.concatenate([SIDES[:, [0, 1, 2]], SIDES[:, [0, 2, 3]]])
        return Triangles(CORNERS * self.size, faces)


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


@dataclass(frozen=True, slots=True)
class Sphere(Shape):
    """Radius r [m] about the origin: V = 4/3 π r³, J = 2/5 V r²."""

    radius: float

    def properties(self) -> Properties:
        volume = 4.0 / 3.0 * math.pi * self.radius**3
        return Properties(volume, np.zeros(3), 0.4 * volume * self.radius**2 * np.eye(3))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        count = max(2, segments // 2)
        angle = math.pi * (np.arange(count + 1) / count - 0.5)
        profile = self.radius * np.column_stack([np.cos(angle), np.sin(angle)])
        profile[[0, -1], 0] = 0.0
        return lathe(profile, segments)


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
        return extruded(loops, triangulate(loops), self.height, self.taper)


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


@dataclass(frozen=True, slots=True)
class Revolution(Shape):
    """A region of the half plane (ρ, z), ρ ≥ 0, rotated about z.

    V = 2π ∫ρ dA, ∫z dV = 2π ∫ρ z dA, ∫z² dV = 2π ∫ρ z² dA, ∫x² dV = ∫y² dV = π ∫ρ³ dA.
    """

    loop: Loop

    def properties(self) -> Properties:
        rho, z, dz = boundary(self.loop)
        sign = math.copysign(1.0, float(rho @ dz))
        square = sign * 2.0 * math.pi * 0.5 * rho * rho * dz  # ∮ ρ²/2 dz = ∫ρ dA
        across = sign * math.pi * float(0.25 * rho**4 @ dz)
        first = np.array([0.0, 0.0, z @ square])
        return from_moments(float(square.sum()), first, np.diag([across, across, float(z * z @ square)]), np.zeros(3))

    def triangles(self, segments: int = SEGMENTS) -> Triangles:
        return lathe(loop_points(self.loop, segments), segments)


def lathe(profile: FloatArray, segments: int) -> Triangles:
    """The surface of a closed profile (ρ, z), shape (n, 2), rotated about z."""
    if signed_area(profile) < 0.0:
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
        *arcs(q, radius, direction - 0.5 * math.pi, math.pi),
        polygon(left)[0],
        *arcs(p, radius, direction + 0.5 * math.pi, math.pi),
    )
