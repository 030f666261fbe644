"""Threads: faces that a screw motion maps to themselves.

A velocity field v + ω × p slides along a surface where n·(v + ω × p) = 0 at every point p with normal n
[GelfandGuibas2004].  The null space of these rows over many points is one twist (v, ω) for a helical face: its axis is
that of ω, and its pitch is 2π v·ω/ω².  Surfaces of revolution have v·ω = 0; cylinders and planes have more than one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.errors import CardanError

if TYPE_CHECKING:
    from cardan.cad.picks import Face, FloatArray

GRID = 12  # points along each parameter
SLIDES = 2e-3  # of the largest singular value: a smaller one is a motion along the face; CAD approximates helices
CLEARLY = 10.0  # the next singular value is larger by this, else the face has more than one motion
STEP = 1e-5  # of the range of a parameter, for tangents
STEEP = 1e-4  # of the size of the face: a smaller pitch is that of a surface of revolution
INNER = (0.02, 0.98)  # of the range of a parameter: points are sampled within, away from ends where a face may be cut
DEGENERATE = 1e-9  # of the largest |S_u × S_v|: where it is smaller, the surface has no normal
ALIKE = 1e-3  # relative difference of the pitches of a screw and its nut, and [rad] between their axes
COAXIAL = 1e-2  # of the pitch: distance of the axes of a screw and its nut; both are found from approximated helices


class Thread(NamedTuple):
    """A helical face: a point on its axis [m], the direction, and the pitch [m], positive if right-handed."""

    point: FloatArray
    axis: FloatArray
    pitch: float


def thread_of(face: Face) -> Thread | None:
    """The thread of a free-form face, in the axes of its part; None if it has no thread."""
    if face.kind != "nurbs" or face._nurbs is None:
        return None
    try:
        points, normals = _sampled(face.nurbs)
    except CardanError:  # a surface that the library cannot evaluate is no thread
        return None
    if len(points) < GRID:
        return None
    middle = points.mean(axis=0)
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    p = (points - middle) / size
    values, vectors = np.linalg.svd(np.hstack([normals, np.cross(p, normals)]))[1:]
    if values[5] > SLIDES * values[0] or values[4] < CLEARLY * max(values[5], 0.1 * SLIDES * values[0]):
        return None
    v, w = vectors[5, :3], vectors[5, 3:]
    speed = float(np.linalg.norm(w))
    if speed < SLIDES:
        return None
    pitch = 2.0 * math.pi * size * float(v @ w) / speed**2
    if abs(pitch) < STEEP * size:
        return None
    return Thread(middle + size * np.cross(w, v) / speed**2, w / speed, pitch)


def _sampled(surface: Any) -> tuple[FloatArray, FloatArray]:
    """Points [m] and unit normals on a grid, without those where the surface is degenerate."""
    sides = []
    for low, high in surface.bounds:
        inner = np.linspace(*INNER, GRID)
        sides.append((low + inner * (high - low), STEP * (high - low)))
    (u, du), (v, dv) = sides
    at = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)
    tangents = [surface.evaluate(at + step) - surface.evaluate(at - step) for step in ((du, 0.0), (0.0, dv))]
    normals = np.cross(*tangents)
    lengths = np.linalg.norm(normals, axis=1)
    kept = lengths > DEGENERATE * lengths.max(initial=0.0)
    return surface.evaluate(at)[kept], normals[kept] / lengths[kept][:, None]


def are_alike(a: Thread, b: Thread) -> bool:
    """Whether two threads, in the same axes, have one axis, pitch and hand."""
    between = b.point - a.point
    far = np.linalg.norm(between - (between @ a.axis) * a.axis)
    is_parallel = np.linalg.norm(np.cross(a.axis, b.axis)) <= ALIKE
    return bool(is_parallel and far <= COAXIAL * abs(a.pitch) and abs(a.pitch - b.pitch) <= ALIKE * abs(a.pitch))
