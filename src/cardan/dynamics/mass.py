"""Masses of bodies, in the frames that make the mass matrix constant and diagonal.

A mass without an inertia is a point mass, and a body without a mass is massless: the diagonal of M has zeros there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cardan.system.parts import BodyRecord, cross, quaternion_from_columns
from cardan.system.state import FloatArray

LEAST_SIZE = 0.1  # of the mechanism's extent: radius of a ball all of whose joint points are at its centre
LEAST_MOMENT = 1e-12  # of the largest principal moment: a smaller one counts as zero


class Masses(NamedTuple):
    """Of all bodies: ``frames``, shape (bodies, 7), the centre of mass [m] and the quaternion body ← principal axes;
    ``diagonal``, shape (bodies, 6), of the mass matrix [kg, kg m²], zero where there is no mass or no inertia;
    ``metric``: the same, with what balls of the size of the bodies have in place of zeros.
    """

    frames: FloatArray
    diagonal: FloatArray
    metric: FloatArray


def masses(bodies: Sequence[BodyRecord], points: Mapping[str, Iterable[Any]], length: float) -> Masses:
    """Masses of bodies; points [m]: where each is joined, in its axes, by its name.  length [m]: of the mechanism."""
    frames = np.array([principal_frame(body) for body in bodies]).reshape(-1, 7)
    diagonal = np.empty((len(bodies), 6))
    for k, body in enumerate(bodies):
        diagonal[k, :3] = body.mass
        diagonal[k, 3:] = _moments(body)
    if diagonal.all():
        return Masses(frames, diagonal, diagonal)
    weights, moments = diagonal[:, 0], diagonal[:, 3:]
    largest = float(moments.max(initial=0.0))
    lightest = float(weights[weights > 0.0].min(initial=np.inf))
    unit = lightest if np.isfinite(lightest) else largest / length**2 or 1.0
    filled = balls(bodies, np.where(weights > 0.0, weights, unit), points, length)
    of_bodies = moments.max(axis=1, keepdims=True)
    filled[:, 3:] = np.where(of_bodies > 0.0, of_bodies, filled[:, 3:])
    return Masses(frames, diagonal, np.where(diagonal > 0.0, diagonal, filled))


def balls(
    bodies: Sequence[BodyRecord], weights: Iterable[float], points: Mapping[str, Iterable[Any]], length: float
) -> FloatArray:
    """Diagonals of solid balls of these masses [kg] that reach from the centres to the farthest joint points."""
    diagonal = np.empty((len(bodies), 6))
    for k, (body, mass) in enumerate(zip(bodies, weights, strict=True)):
        away = [float(np.linalg.norm(np.subtract(point, body.center))) for point in points.get(body.name, ())]
        radius = max(away, default=0.0) or LEAST_SIZE * length
        diagonal[k, :3], diagonal[k, 3:] = mass, 0.4 * mass * radius * radius
    return diagonal


def _moments(body: BodyRecord) -> FloatArray:
    """Principal moments [kg m²], in the order of the axes of the principal frame."""
    if body.inertia is None:
        return np.zeros(3)
    inertia = np.array(body.inertia)
    is_diagonal = not (inertia[0, 1] or inertia[0, 2] or inertia[1, 2])
    moments: FloatArray = np.diag(inertia).copy() if is_diagonal else np.linalg.eigvalsh(inertia)
    moments[moments <= LEAST_MOMENT * moments.max()] = 0.0
    return moments


def principal_frame(body: Any) -> tuple[float, ...]:
    """Reference frame of a body for dynamics: centre of mass [m], then the quaternion body ← principal axes of inertia.

    The axes are those of the body where no inertia is given, or where it is diagonal already.
    """
    inertia = body.inertia
    if inertia is None or not (inertia[0][1] or inertia[0][2] or inertia[1][2]):
        return (*body.center, 1.0, 0.0, 0.0, 0.0)
    _, axes = np.linalg.eigh(inertia)
    x, y = (tuple(axis.tolist()) for axis in axes.T[:2])
    return (*body.center, *quaternion_from_columns(x, y, cross(x, y)))
