"""Surfaces from curves: revolution, extrusion, ruled, lofted; the exact circle ([Piegl1997] chapters 7, 8, 10)."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import basis, checks
from cardan.geometry.checks import FloatArray
from cardan.geometry.nurbs import Curve, Surface


def arc(angle: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points, weights and knots [rad] of the unit arc from 0 to that angle, degree 2, in at most quarter turns."""
    parts = max(1, int(np.ceil(abs(angle) / (0.5 * pi) - 1e-12)))
    step = angle / parts
    w = cos(0.5 * step)
    points, weights = [], []
    for k in range(2 * parts + 1):
        at = 0.5 * step * k
        size = 1.0 if k % 2 == 0 else 1.0 / w
        points.append((size * cos(at), size * sin(at)))
        weights.append(1.0 if k % 2 == 0 else w)
    inner = np.repeat(abs(step) * np.arange(1, parts), 2)
    return np.array(points), np.array(weights), np.concatenate([[0.0] * 3, inner, [abs(angle)] * 3])


def circle(a: float, b: float, *, half: bool = False) -> Curve:
    """The ellipse (a cos, b sin) as a NURBS; half: from (0, −b) by (a, 0) to (0, b)."""
    points, weights, knots = arc(pi if half else 2.0 * pi)
    if half:
        points = np.stack([points[:, 1], -points[:, 0]], axis=1)
    return Curve(points * (a, b), weights, knots, degree=2)


def revolve(profile: Any, angle: float = 2.0 * pi) -> Surface:
    """The profile turned about the z axis by an angle [rad]; u is along the arc, v along the profile.

    profile: a Curve, or a closed form, of which the exact NURBS is taken.
    """
    profile = _profile(profile)
    if not isinstance(angle, int | float | np.number):
        raise ModelError(f"the angle is {angle!r:.80}; it must be a number [rad]")
    if not 0.0 < abs(angle) <= 2.0 * pi * (1.0 + 1e-12):
        raise ModelError(f"the angle is {angle}; it must be within a whole turn, and not zero")
    p = _in_space(profile)
    ring, w, knots = arc(angle)
    points = np.empty((len(ring), len(p), 3))
    points[..., 0] = ring[:, :1] * p[:, 0] - ring[:, 1:] * p[:, 1]
    points[..., 1] = ring[:, 1:] * p[:, 0] + ring[:, :1] * p[:, 1]
    points[..., 2] = p[:, 2]
    return Surface(points, w[:, None] * profile.weights, knots, profile.knots, degree=(2, profile.degree))


def extrude(profile: Any, along: Any) -> Surface:
    """The profile moved along a vector [m]; u is along the profile.

    profile: a Curve, or a closed form, of which the exact NURBS is taken.
    """
    profile = _profile(profile)
    d = checks.numbers(along, "the vector", 1)
    if d.size != 3 or not d.any():
        raise ModelError(f"the vector is {d.tolist()}; an extrusion needs three numbers that are not all zero")
    p = _in_space(profile)
    w = np.stack([profile.weights, profile.weights], axis=1)
    return Surface(np.stack([p, p + d], axis=1), w, profile.knots, (0, 0, 1, 1), degree=(profile.degree, 1))


def ruled(first: Curve, second: Curve) -> Surface:
    """Straight lines between points of equal parameter of two curves; u is along the curves."""
    _check_curves([first, second])
    (a, b), knots, degree = _compatible([first, second])
    h = np.stack([a, b], axis=1)
    return Surface(h[..., :3] / h[..., 3:], h[..., 3], knots, (0, 0, 1, 1), degree=(degree, 1))


def loft(curves: Sequence[Curve], degree: int = 3) -> Surface:
    """The surface through curves, interpolated along v at chord lengths ([Piegl1997] 10.3)."""
    degree = checks.count(degree, "the degree of the loft", 1)
    if not isinstance(curves, list | tuple):
        raise ModelError(f"the curves of a loft are {curves!r:.80}; they must be a list")
    _check_curves(curves)
    if len(curves) < degree + 1:
        raise ModelError(f"{len(curves)} curves are given; a loft of degree {degree} needs at least {degree + 1}")
    homogeneous, knots, d = _compatible(curves)
    h = np.stack(homogeneous, axis=1)
    v = np.mean([basis.chord_parameters(row[:, :3] / row[:, 3:], "curves") for row in h], axis=0)
    t = basis.averaged_knots(v, degree)
    N = basis.collocation(t, degree, v)
    h = np.stack([np.linalg.solve(N, row) for row in h])
    bad = np.argwhere(h[..., 3] <= 0.0)
    if bad.size:
        raise ModelError(f"the loft has a weight that is not positive at {bad[0].tolist()}; add curves in between")
    return Surface(h[..., :3] / h[..., 3:], h[..., 3], knots, t, degree=(d, degree))


def _profile(shape: Any) -> Curve:
    """A NURBS curve with the points of the shape."""
    if getattr(shape, "freedoms", 0) == 1 and hasattr(shape, "to_nurbs"):
        shape = shape.to_nurbs()
    if not isinstance(shape, Curve):
        raise ModelError(f"the profile is {shape!r:.80}; it must be a Curve, a line, a circle or an ellipse")
    return shape


def _check_curves(curves: Sequence[Any]) -> None:
    """ModelError if one of them is no NURBS: the surface depends on the parameters of its curves."""
    for k, curve in enumerate(curves):
        if not isinstance(curve, Curve):
            way = "use to_nurbs(), whose parameter is not the angle" if hasattr(curve, "to_nurbs") else "give Curves"
            raise ModelError(f"curve {k} is {curve!r:.80}; points of equal parameter are joined: {way}")


def _in_space(curve: Curve) -> FloatArray:
    p = np.zeros((len(curve.points), 3))
    p[:, : curve.dimension] = curve.points
    return p


def _compatible(curves: Sequence[Curve]) -> tuple[list[FloatArray], FloatArray, int]:
    """Homogeneous control points of the curves in one basis: the highest degree, all knots, on [0, 1]."""
    degree = max(curve.degree for curve in curves)
    found = []
    for curve in curves:
        h, t, p = curve.homogeneous, curve.knots, curve.degree
        h, t = basis.clamp(h, t, p)
        while p < degree:
            h, t = basis.elevate(h, t, p)
            p += 1
        found.append((h, (t - t[0]) / (t[-1] - t[0])))
    values = np.unique(np.round(np.concatenate([t for _, t in found]), 13))
    knots = np.repeat(values, [max(np.count_nonzero(np.abs(t - v) < 1e-12) for _, t in found) for v in values])
    return [basis.fit_same(h, t, degree, knots, degree) for h, t in found], knots, degree
