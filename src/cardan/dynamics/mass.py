"""Masses of bodies, in the frames that make the mass matrix constant and diagonal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cardan.errors import ModelError
from cardan.system.parts import BodyRecord, cross, quaternion_from_columns
from cardan.system.state import FloatArray

LEAST_SIZE = 0.1  # of the mechanism's extent: radius of a body all of whose joint points are at its centre of mass
LEAST_MOMENT = 1e-12  # of the largest principal moment: a smaller one counts as zero


class Masses(NamedTuple):
    """Of all bodies: ``frames``, shape (bodies, 7), the centre of mass [m] and the quaternion body ← principal axes;
    ``diagonal``, shape (bodies, 6), of the mass matrix [kg, kg m²]; ``assumed``: bodies whose inertia was never given.
    """

    frames: FloatArray
    diagonal: FloatArray
    assumed: tuple[str, ...]


def masses(bodies: Sequence[BodyRecord], points: Mapping[str, Iterable[Any]], length: float) -> Masses:
    """Masses of bodies; points [m]: where each is joined, in its axes, by its name.  length [m]: of the mechanism.

    A body whose inertia was never given is taken for a solid ball around its centre of mass that reaches to its
    farthest joint point.
    """
    frames = np.array([principal_frame(body) for body in bodies]).reshape(-1, 7)
    diagonal = np.empty((len(bodies), 6))
    for k, body in enumerate(bodies):
        diagonal[k, :3] = body.mass
        diagonal[k, 3:] = _moments(body, points.get(body.name, ()), length)
    assumed = tuple(body.name for body in bodies if body.inertia is None)
    return Masses(frames, diagonal, assumed)


def _moments(body: BodyRecord, points: Iterable[Any], length: float) -> FloatArray:
    """Principal moments [kg m²], in the order of the axes of the principal frame."""
    if body.inertia is None:
        away = [float(np.linalg.norm(np.subtract(point, body.center))) for point in points]
        radius = max(away, default=0.0) or LEAST_SIZE * length
        return np.full(3, 0.4 * body.mass * radius * radius)
    inertia = np.array(body.inertia)
    is_diagonal = not (inertia[0, 1] or inertia[0, 2] or inertia[1, 2])
    moments: FloatArray = np.diag(inertia).copy() if is_diagonal else np.linalg.eigvalsh(inertia)
    if moments.min() <= LEAST_MOMENT * moments.max():
        raise ModelError(
            f"the inertia of body {body.name!r} has principal moments {moments.tolist()} kg m²; each must be above "
            "zero to simulate: give a thin rod a small moment about its axis"
        )
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
