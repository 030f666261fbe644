"""Measures of curves and surfaces: arc length, area, volume, mass properties, normals, curvature; tessellation.

Integrals by Gauss–Legendre quadrature on every span, with two orders: their difference is the stated error.
Volume by the divergence theorem: V = ⅓ ∮ S·N du dv, with N = S_u × S_v outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.checks import FloatArray
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.shape import Trimmed

ORDERS = (16, 24)  # points of Gauss–Legendre per span and direction
CLOSED_RTOL = 1e-9  # of the area: |∮ N du dv| of a closed surface
SAME = 1e-12  # of the size: vertices of a tessellation that coincide at a seam or a pole
MOST_VERTICES = 20_000_000  # of a tessellation


@dataclass(frozen=True, slots=True, eq=False)
class MassProperties:
    """volume [m³], mass [kg], center [m], inertia about the centre [kg m²], shape (3, 3)."""

    volume: float
    mass: float
    center: FloatArray
    inertia: FloatArray

    @classmethod
    def from_moments(cls, volume: float, first: FloatArray, second: FloatArray, density: float) -> MassProperties:
        """From ∫dV, ∫x dV and ∫x xᵀ dV."""
        if not volume > 0.0:
            raise ModelError(
                f"the volume is {volume}; the normals must point outwards: exchange u and v, or flip faces"
            )
        center = first / volume
        central = second - volume * np.outer(center, center)
        inertia = density * (np.trace(central) * np.eye(3) - central)
        return cls(volume, density * volume, center, inertia)


def _nodes(breaks: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(order)
    h = 0.5 * np.diff(breaks)[:, None]
    return (0.5 * (breaks[:-1] + breaks[1:])[:, None] + h * x).ravel(), (h * w).ravel()


def _breaks(shape: Any) -> list[FloatArray]:
    if isinstance(shape, Trimmed):
        raise ModelError("a face is trimmed, and integrals are over whole surfaces; use its surface, or a mesh of it")
    if isinstance(shape, Curve):
        return [shape.breaks]
    if isinstance(shape, Surface):
        return list(shape.breaks)
    if not np.isfinite(shape.bounds).all():
        raise ModelError(f"{shape!r} is unbounded, or has no parameters u, v; use to_nurbs(), or give it a size")
    return [np.linspace(low, high, 9) for low, high in shape.bounds]


def arc_length(curve: Any, lower: float | None = None, upper: float | None = None) -> tuple[float, float]:
    """Length of a curve between two parameters [m], and an estimate of its error."""
    breaks = _breaks(curve)[0]
    low, high = breaks[0] if lower is None else lower, breaks[-1] if upper is None else upper
    if not breaks[0] <= low <= high <= breaks[-1]:
        raise ModelError(f"the interval is [{low}, {high}]; it must be in [{breaks[0]}, {breaks[-1]}]")
    inside = breaks[(breaks > low) & (breaks < high)]
    parts = np.concatenate([[low], inside, [high]])
    found = []
    for order in ORDERS:
        u, w = _nodes(parts, order)
        found.append(float(w @ np.linalg.norm(curve.evaluate(u, 1)[:, 1], axis=1)))
    return found[-1], abs(found[-1] - found[0])


def _surface_nodes(surface: Any, order: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points, area vectors N du dv and weights."""
    (u, wu), (v, wv) = (_nodes(b, order) for b in _breaks(surface))
    grid = np.stack([g.ravel() for g in np.meshgrid(u, v, indexing="ij")], axis=1)
    S = surface.evaluate(grid, 1)
    weights = np.outer(wu, wv).ravel()
    return S[:, 0], np.cross(S[:, 1], S[:, 2]) * weights[:, None], weights


def area(surface: Any) -> tuple[float, float]:
    """Area [m²], and an estimate of its error."""
    found = [float(np.linalg.norm(_surface_nodes(surface, order)[1], axis=1).sum()) for order in ORDERS]
    return found[-1], abs(found[-1] - found[0])


def mass_properties(surfaces: Any, density: float = 1.0) -> MassProperties:
    """Mass properties of the body that is enclosed by a closed surface, or by several that close together.

    By the divergence theorem, with N outwards: ∫dV = ⅓∮x·N, ∫x_i dV = ¼∮x_i x·N, ∫x_i x_j dV = ⅕∮x_i x_j x·N.
    """
    shapes = list(surfaces) if isinstance(surfaces, list | tuple) else [surfaces]
    parts = [_surface_nodes(shape, ORDERS[-1])[:2] for shape in shapes]
    x, n = np.concatenate([p for p, _ in parts]), np.concatenate([q for _, q in parts])
    total = np.linalg.norm(n, axis=1).sum()
    if np.linalg.norm(n.sum(axis=0)) > CLOSED_RTOL * total:
        raise ModelError(
            f"the surface is open: the sum of its area vectors is {n.sum(axis=0)}; a body needs a closed surface"
        )
    flux = np.einsum("ki,ki->k", x, n)
    volume = flux.sum() / 3.0
    first = np.einsum("k,ki->i", flux, x) / 4.0  # div(x x_i) = 4 x_i
    second = np.einsum("k,ki,kj->ij", flux, x, x) / 5.0  # div(x x_i x_j) = 5 x_i x_j
    return MassProperties.from_moments(float(volume), first, second, density)


def volume(surfaces: Any) -> float:
    """Volume that is enclosed [m³]."""
    return mass_properties(surfaces).volume


def normal(surface: Any, u: float, v: float) -> FloatArray:
    """Unit normal S_u × S_v / |…| of a surface."""
    S = surface.derivatives(u, v, 1)
    n = np.cross(S[1], S[2])
    size = np.linalg.norm(n)
    if not size > 0.0:
        raise ModelError(f"the surface has no normal at ({u}, {v}): S_u and S_v are parallel (a pole or a fold)")
    return np.asarray(n / size)


def curvature(shape: Any, u: float, v: float = 0.0) -> Any:
    """Of a curve: κ = |S' × S''|/|S'|³ [1/m].  Of a surface: the two principal curvatures [1/m], the larger
    first; positive where the surface bends towards its normal."""
    S = shape.derivatives(u, v, 2)
    if shape.freedoms == 1:
        first, second = (np.append(r, [0.0] * (3 - len(r))) for r in (S[1], S[2]))
        return float(np.linalg.norm(np.cross(first, second)) / np.linalg.norm(first) ** 3)
    n = normal(shape, u, v)
    first_form = np.array([[S[1] @ S[1], S[1] @ S[2]], [S[1] @ S[2], S[2] @ S[2]]])
    second_form = np.array([[S[3] @ n, S[4] @ n], [S[4] @ n, S[5] @ n]])
    half = 0.5 * np.trace(np.linalg.solve(first_form, second_form))
    gauss = np.linalg.det(second_form) / np.linalg.det(first_form)
    root = np.sqrt(max(half * half - gauss, 0.0))
    return float(half + root), float(half - root)


def tessellate(shape: Any, chord: float) -> tuple[FloatArray, Any]:
    """Points of a polyline, or vertices and faces of a mesh, whose distance to the shape is at most ``chord`` [m].

    A chord over a box of the parameters with sides p, q is within (B_uu p² + 2 B_uv p q + B_vv q²)/8, where the B bound
    second derivatives on each root; the number of divisions per root follows from it.  A closed surface gives a closed
    mesh: vertices at seams and poles are not repeated.
    """
    if not chord > 0.0:
        raise ModelError(f"the chord error is {chord}; it must be above zero")
    from cardan.geometry.tree import call_enclosure

    if getattr(shape, "width", 0) == 3:
        shape = shape.to_nurbs()  # a sphere or ellipsoid
    patches = shape.patches(np.inf)
    if any(patch.loops is not None for patch in patches) or len({id(p.shape) for p in patches}) > 1:
        raise ModelError("only curves and untrimmed surfaces can be tessellated; use the surface, or to_nurbs()")
    boxes = np.concatenate([patch.roots() for patch in patches])
    if patches[0].bounds is None:
        bounds = np.array([call_enclosure(shape, box, 1) for box in boxes])
    else:
        bounds = np.concatenate([patch.bounds for patch in patches])
    axes, divisions = [], [1.0] * shape.freedoms
    for i in range(shape.freedoms):
        second = bounds[:, 2 if i == 0 else 4] + (bounds[:, 3] if shape.freedoms == 2 else 0.0)
        ends = np.unique(boxes[:, 2 * i : 2 * i + 2])
        at = []
        for low, high in pairwise(ends):
            here = (boxes[:, 2 * i] < high) & (boxes[:, 2 * i + 1] > low)
            count = int(np.ceil((high - low) * np.sqrt(second[here].max() * shape.freedoms / (8.0 * chord))))
            divisions[i] += max(count, 1)
            if np.prod(divisions) > MOST_VERTICES:
                raise ModelError(
                    f"the chord error is {chord} m; it needs more than {MOST_VERTICES:,} vertices: allow a larger one"
                )
            at.append(np.linspace(low, high, max(count, 1) + 1)[:-1])
        axes.append(np.append(np.concatenate(at), ends[-1]))
    if shape.freedoms == 1:
        points = shape.evaluate(axes[0])
        return points, np.stack([np.arange(len(points) - 1), np.arange(1, len(points))], axis=1)
    uv = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    n, m = len(axes[0]), len(axes[1])
    k = (np.arange(n - 1)[:, None] * m + np.arange(m - 1)).ravel()
    faces = np.concatenate([np.stack([k, k + m, k + m + 1], axis=1), np.stack([k, k + m + 1, k + 1], axis=1)])
    return _welded(shape.evaluate(uv).reshape(n, m, 3), faces)


def _welded(grid: FloatArray, faces: Any) -> tuple[FloatArray, Any]:
    """Vertices and faces without the vertices that coincide at seams and poles, and without faces that collapse."""
    n, m = grid.shape[:2]
    number = np.arange(n * m).reshape(n, m)
    near = SAME * np.ptp(grid.reshape(-1, 3), axis=0).max()
    for axis in (0, 1):
        side, name = np.moveaxis(grid, axis, 0), np.moveaxis(number, axis, 0)
        for end in (0, -1):
            if np.abs(side[end] - side[end, 0]).max() <= near:
                name[end] = name[end, 0]
        if np.abs(side[0] - side[-1]).max() <= near:
            name[-1] = name[0]
    kept, names = np.unique(number, return_inverse=True)
    found = names.ravel()[faces]
    whole = (found[:, 0] != found[:, 1]) & (found[:, 1] != found[:, 2]) & (found[:, 2] != found[:, 0])
    return grid.reshape(-1, 3)[kept], found[whole]
