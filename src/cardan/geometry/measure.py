"""Measures of curves and surfaces: arc length, area, volume, mass properties, normals, curvature; tessellation.

Integrals by Gauss–Legendre quadrature with two orders on every span.  Spans on which they differ are divided; the sum
of the differences that are left is the stated error.
Volume by the divergence theorem: V = ⅓ ∮ S·N du dv, with N = S_u × S_v outwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import checks
from cardan.geometry.checks import FloatArray
from cardan.geometry.nurbs import Curve, Surface
from cardan.geometry.shape import Shape, Trimmed

ORDERS = (16, 24)  # points of Gauss–Legendre per box and direction
INTEGRAL_RTOL = 1e-13  # of the whole integral: the difference of both orders on a box that is not divided
SAMPLES = 4  # points per box and direction from which the middle and the size of a body are taken
MOST_BOXES = 2000  # divided in one round; if there are more, their differences are part of the stated error
MOST_ROUNDS = 40  # of divisions, after which the differences that are left are part of the stated error
CLOSED_RTOL = 1e-9  # of the area: |∮ N du dv| of a closed surface, and the flux of the waves below

# Waves a sin(k·x + φ) with a ⟂ k have no divergence, so that their flux through a closed surface is zero.  Their
# directions are oblique to the axes and to each other: the flux through the openings of a symmetrical shape does not
# cancel, as their area vectors may.  x is in units of the size of the body.
_WAVES_K = np.array([[1.1, 0.7, 1.6], [-1.3, 1.7, 0.5], [0.9, -1.2, 1.4]])
_WAVES_A = np.cross(_WAVES_K, np.roll(_WAVES_K, 1, axis=1)) / (_WAVES_K**2).sum(axis=1, keepdims=True)
_WAVES_PHASE = np.array([0.4, 1.0, 1.9])

KINDS = {1: "curve", 2: "surface"}
SAME = 1e-12  # of the size: vertices of a tessellation that coincide at a seam or a pole
WORTH = 0.8  # a division of all boxes of a tessellation is kept if it saves a fifth of the vertices
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
        density = checks.positive(density, "the density", zero=True)
        if not volume > 0.0:
            raise ModelError(
                f"the volume is {volume}; the normals must point outwards: exchange u and v, or flip faces"
            )
        center = first / volume
        central = second - volume * np.outer(center, center)
        inertia = density * (np.trace(central) * np.eye(3) - central)
        return cls(volume, density * volume, center, inertia)


def _nodes(boxes: FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """Points of quadrature (n, k, f) and their weights (n, k) in n boxes (n, f, 2) of f parameters."""
    x, w = np.polynomial.legendre.leggauss(order)
    half, middle = 0.5 * (boxes[:, :, 1] - boxes[:, :, 0]), 0.5 * (boxes[:, :, 1] + boxes[:, :, 0])
    f = boxes.shape[1]
    grid = np.stack([g.ravel() for g in np.meshgrid(*[x] * f, indexing="ij")], axis=1)
    weights = np.prod(np.stack(np.meshgrid(*[w] * f, indexing="ij")), axis=0).ravel()
    return middle[:, None] + half[:, None] * grid, half.prod(axis=1)[:, None] * weights


def _boxes(breaks: Sequence[FloatArray]) -> FloatArray:
    """The spans between breaks, one sequence per parameter, as boxes (n, f, 2)."""
    pairs = [np.stack([b[:-1], b[1:]], axis=1) for b in breaks]
    index = np.meshgrid(*[np.arange(len(p)) for p in pairs], indexing="ij")
    return np.stack([p[k.ravel()] for p, k in zip(pairs, index, strict=True)], axis=1)


def _integrate(boxes: FloatArray, integrand: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Integrals over boxes (n, f, 2) of the parameters, and their errors; integrand: of points (k, f), shape (k, m).

    The first of the m values is positive, and all have the same unit: errors are compared with the integral of the
    first.
    """
    total = error = np.zeros(1)
    size = 0.0
    for _ in range(MOST_ROUNDS):
        found = []
        for order in ORDERS:
            q, w = _nodes(boxes, order)
            values = integrand(q.reshape(-1, q.shape[2])).reshape(*w.shape, -1)
            found.append(np.einsum("nk,nkm->nm", w, values))
        off = np.abs(found[1] - found[0])
        size = max(size, float(total[0] + found[1][:, 0].sum()))
        bad = off.max(axis=1) > INTEGRAL_RTOL * size
        if np.count_nonzero(bad) > MOST_BOXES:
            bad[:] = False
        total, error = total + found[1][~bad].sum(axis=0), error + off[~bad].sum(axis=0)
        if not bad.any():
            return total, error
        boxes, rest = _divided(boxes[bad]), (found[1][bad].sum(axis=0), off[bad].sum(axis=0))
    return total + rest[0], error + rest[1]


def _divided(boxes: FloatArray) -> FloatArray:
    """Both halves of each box in every direction."""
    for i in range(boxes.shape[1]):
        middle = boxes[:, i].mean(axis=1)
        low, high = boxes.copy(), boxes.copy()
        low[:, i, 1] = high[:, i, 0] = middle
        boxes = np.concatenate([low, high])
    return boxes


def _check_kind(shape: Any, *freedoms: int) -> None:
    """ModelError if the shape has another number of parameters, or none."""
    if hasattr(shape, "faces"):
        raise ModelError(f"{shape!r} has no parameters u, v; use its area and mass_properties()")
    if not isinstance(shape, Shape | Trimmed) or shape.freedoms not in freedoms:
        raise ModelError(f"{shape!r:.80} is no {' or '.join(KINDS[f] for f in freedoms)}; give one")


def _breaks(shape: Any, freedoms: int) -> list[FloatArray]:
    """Parameters between which a curve (freedoms = 1) or surface (2) is smooth, per direction."""
    _check_kind(shape, freedoms)
    if isinstance(shape, Trimmed):
        raise ModelError("a face is trimmed, and integrals are over whole surfaces; use its surface, or a mesh of it")
    if isinstance(shape, Curve):
        return [shape.breaks]
    if isinstance(shape, Surface):
        return list(shape.breaks)
    if not np.isfinite(shape.bounds).all():
        raise ModelError(f"{shape!r} is unbounded, or has no parameters u, v; use to_nurbs(), or give it a size")
    return [np.linspace(low, high, 9) for low, high in shape.bounds]


def _rows(shape: Any, q: FloatArray) -> FloatArray:
    """Points and first derivatives at parameters (k, f); ModelError if they are not finite."""
    S: FloatArray = shape._evaluate(q, 1)
    if not np.isfinite(S).all():
        k = int(np.argwhere(~np.isfinite(S))[0][0])
        raise ModelError(f"{shape!r} has no finite point and derivatives at the parameters {q[k].tolist()}")
    return S


def arc_length(curve: Any, lower: float | None = None, upper: float | None = None) -> tuple[float, float]:
    """Length of a curve between two parameters [m], and an estimate of its error."""
    breaks = _breaks(curve, 1)[0]
    low, high = breaks[0] if lower is None else lower, breaks[-1] if upper is None else upper
    if not breaks[0] <= low <= high <= breaks[-1]:
        raise ModelError(f"the interval is [{low}, {high}]; it must be in [{breaks[0]}, {breaks[-1]}]")
    inside = breaks[(breaks > low) & (breaks < high)]
    boxes = _boxes([np.concatenate([[low], inside, [high]])])
    length, error = _integrate(boxes, lambda q: np.linalg.norm(_rows(curve, q)[:, 1], axis=1)[:, None])
    return float(length[0]), float(error[0])


def area(surface: Any) -> tuple[float, float]:
    """Area [m²], and an estimate of its error."""

    def size(q: FloatArray) -> FloatArray:
        S = _rows(surface, q)
        return np.asarray(np.linalg.norm(np.cross(S[:, 1], S[:, 2]), axis=1)[:, None])

    found, error = _integrate(_boxes(_breaks(surface, 2)), size)
    return float(found[0]), float(error[0])


def mass_properties(surfaces: Any, density: float = 1.0) -> MassProperties:
    """Mass properties of the body that is enclosed by a closed surface, or by several that close together.

    By the divergence theorem, with N outwards: ∫dV = ⅓∮x·N, ∫x_i dV = ¼∮x_i x·N, ∫x_i x_j dV = ⅕∮x_i x_j x·N.
    """
    shapes = list(surfaces) if isinstance(surfaces, list | tuple) else [surfaces]
    if not shapes:
        raise ModelError("no surfaces are given; a body needs a closed surface")
    boxes = [_boxes(_breaks(shape, 2)) for shape in shapes]
    samples = [_rows(shape, _nodes(b, SAMPLES)[0].reshape(-1, 2))[:, 0] for shape, b in zip(shapes, boxes, strict=True)]
    places = np.concatenate(samples)
    middle = 0.5 * (places.min(axis=0) + places.max(axis=0))
    # lengths from the middle in units of this one, so that all integrals are compared with the area
    reach = float(np.abs(places - middle).max())
    unit = reach if reach > 0.0 else 1.0

    def moments(shape: Any, q: FloatArray) -> FloatArray:
        """|N|, N, flux of the waves, x·N, x_i x·N and x_i x_j x·N at parameters q, shape (k, 20)."""
        S = _rows(shape, q)
        x, n = (S[:, 0] - middle) / unit, np.cross(S[:, 1] / unit, S[:, 2] / unit)
        waves = np.sin(x @ _WAVES_K.T + _WAVES_PHASE) * (n @ _WAVES_A.T)
        flux = np.einsum("ki,ki->k", x, n)[:, None]
        second = (x[:, :, None] * x[:, None, :]).reshape(-1, 9)
        return np.concatenate([np.linalg.norm(n, axis=1)[:, None], n, waves, flux, flux * x, flux * second], axis=1)

    total = np.zeros(20)
    for shape, b in zip(shapes, boxes, strict=True):
        total = total + _integrate(b, partial(moments, shape))[0]
    if np.linalg.norm(total[1:4]) > CLOSED_RTOL * total[0]:
        raise ModelError(
            f"the surface is open: the sum of its area vectors is {total[1:4] * unit**2}; a body needs a closed surface"
        )
    if np.linalg.norm(total[4:7]) > CLOSED_RTOL * total[0]:
        raise ModelError(
            "the surface is open, or normals of some parts point inwards: a flow without sources has a net flux of "
            f"{np.linalg.norm(total[4:7]) / total[0]:.2g} of the area through it; add missing parts, such as end caps, "
            "or flip those parts"
        )
    volume = total[7] / 3.0 * unit**3
    first = total[8:11] / 4.0 * unit**4  # div(x x_i) = 4 x_i
    second = total[11:].reshape(3, 3) / 5.0 * unit**5  # div(x x_i x_j) = 5 x_i x_j
    found = MassProperties.from_moments(float(volume), first, second, density)
    return replace(found, center=found.center + middle)


def volume(surfaces: Any) -> float:
    """Volume that is enclosed [m³]."""
    return mass_properties(surfaces).volume


def normal(surface: Any, u: float, v: float) -> FloatArray:
    """Unit normal S_u × S_v / |…| of a surface."""
    _check_kind(surface, 2)
    if isinstance(surface, Trimmed):
        surface = surface.surface
    S = surface.derivatives(u, v, 1)
    n = np.cross(S[1], S[2])
    size = np.linalg.norm(n)
    if not size > 0.0:
        raise ModelError(f"the surface has no normal at ({u}, {v}): S_u and S_v are parallel (a pole or a fold)")
    return np.asarray(n / size)


def curvature(shape: Any, u: float, v: float = 0.0) -> Any:
    """Of a curve: κ = |S' × S''|/|S'|³ [1/m].  Of a surface: the two principal curvatures [1/m], the larger
    first; positive where the surface bends towards its normal."""
    _check_kind(shape, 1, 2)
    if isinstance(shape, Trimmed):
        shape = shape.surface
    S = shape.derivatives(u, v, 2)
    if shape.freedoms == 1:
        first, second = (np.append(r, [0.0] * (3 - len(r))) for r in (S[1], S[2]))
        if not first.any():
            raise ModelError(f"the curve has no curvature at {u}: S' is zero (a cusp)")
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
    second derivatives on each root or part of it; the number of divisions there follows from it.  A closed surface
    gives a closed mesh: vertices at seams and poles are not repeated.
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
    steps = _divisions(boxes, bounds, shape.freedoms, chord)
    # bounds of rational spans are far too large; those of their parts are closer
    while isinstance(shape, Curve | Surface) and len(boxes) < MOST_BOXES:
        sides = [[(row[2 * i], row[2 * i + 1]) for i in range(shape.freedoms)] for row in boxes]
        halves = _divided(np.array(sides)).reshape(-1, 2 * shape.freedoms)
        boxes = np.pad(halves, ((0, 0), (0, 4 - halves.shape[1])))
        bounds = np.array([call_enclosure(shape, box, 1) for box in boxes])
        finer = _divisions(boxes, bounds, shape.freedoms, chord)
        if not _vertex_count(finer) < WORTH * _vertex_count(steps):
            break
        steps = finer
    if _vertex_count(steps) > MOST_VERTICES:
        raise ModelError(
            f"the chord error is {chord} m; it needs more than {MOST_VERTICES:,} vertices: allow a larger one"
        )
    axes = []
    for ends, counts in steps:
        parts = [np.linspace(*side, int(n) + 1)[:-1] for side, n in zip(pairwise(ends), counts, strict=True)]
        axes.append(np.append(np.concatenate(parts), ends[-1]))
    if shape.freedoms == 1:
        points = shape.evaluate(axes[0])
        return points, np.stack([np.arange(len(points) - 1), np.arange(1, len(points))], axis=1)
    uv = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    n, m = len(axes[0]), len(axes[1])
    k = (np.arange(n - 1)[:, None] * m + np.arange(m - 1)).ravel()
    faces = np.concatenate([np.stack([k, k + m, k + m + 1], axis=1), np.stack([k, k + m + 1, k + 1], axis=1)])
    return _welded(shape.evaluate(uv).reshape(n, m, 3), faces)


def _divisions(
    boxes: FloatArray, bounds: FloatArray, freedoms: int, chord: float
) -> list[tuple[FloatArray, FloatArray]]:
    """Per parameter: the ends of the boxes (n, 4), and the number of divisions between each two of them."""
    found = []
    for i in range(freedoms):
        second = bounds[:, 2 if i == 0 else 4] + (bounds[:, 3] if freedoms == 2 else 0.0)
        ends = np.unique(boxes[:, 2 * i : 2 * i + 2])
        most = [second[(boxes[:, 2 * i] < high) & (boxes[:, 2 * i + 1] > low)].max() for low, high in pairwise(ends)]
        counts = np.ceil(np.diff(ends) * np.sqrt(np.array(most) * freedoms / (8.0 * chord)))
        found.append((ends, np.maximum(counts, 1.0)))
    return found


def _vertex_count(steps: Sequence[tuple[FloatArray, FloatArray]]) -> float:
    return float(np.prod([1.0 + counts.sum() for _, counts in steps]))


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
