"""Joints that can be limbs of a tree, as columns: the motions that joints declare, in the reference frames of a system.

Where all three translations are free, the frames of a joint are put at the reference points: translations are then
measured between these, and do not depend on where the frames were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.math import euler
from cardan.system.parts import quaternion_from_columns
from cardan.system.relations import Edge, Motion, Place, UserMotion
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System
from cardan.system.tables import ANYHOW, BY_USER, STILL

FREE: Final = Motion(3, ANYHOW)


class Edges(NamedTuple):
    """Joints that can be part of the tree, by columns: each between bodies a and b (−1: the ground).

    ``weights``: numbers of equations.
    ``frames``, shape (joints, 14): of a, then of b, each the quaternion reference ← frame and the origin [m] in the
    body's reference frame.  ``pitch`` [m/rad].  ``counted``: 1 + number of its angle among those counted, 0: none.
    ``first``, ``size``: of the relations that it replaces, the number of the first and how many.  ``user_motions``:
    of the user's own.
    """

    names: list[str]
    weights: Sequence[int]
    motions: Sequence[Motion]
    a: list[int]
    b: list[int]
    frames: FloatArray
    pitch: FloatArray
    counted: IntArray
    first: list[int]
    size: Sequence[int]
    user_motions: Sequence[UserMotion | None]


def edges(system: System) -> Edges:
    """Every joint of the system that declares a motion."""
    names, number = list(system.edges), system.numbers()
    columns = zip(*system.edges.values(), strict=True) if names else ((),) * len(Edge._fields)
    motions, places_a, places_b, sizes, equations, pitches, offsets, counted, _, user_motions = columns
    relations = system.constraints[::-1]
    first = dict(zip(relations, range(len(relations) - 1, -1, -1), strict=True))  # the last written is the first
    a, b = [[number[place.body] for place in places] for places in (places_a, places_b)]
    angles = np.array([1 + number[serial] for serial in counted], dtype=np.int64)
    kinds = np.array([motion.translations for motion in motions]), np.array([motion.rotation for motion in motions])
    threads = angles > 0
    a_frames = _frames(system, kinds, threads, places_a, a)
    b_frames = _frames(system, kinds, threads, places_b, b)
    if any(offsets):
        a_frames[:, 4:] += np.array(offsets)[:, None] * _rotated(a_frames[:, :4], _Z)
    frames, starts = np.hstack([a_frames, b_frames]), [first[name] for name in names]
    return Edges(names, equations, motions, a, b, frames, np.array(pitches), angles, starts, sizes, user_motions)


def _frames(
    system: System, kinds: tuple[Any, Any], threads: Any, places: Sequence[Place], bodies: list[int]
) -> FloatArray:
    """Quaternions and origins of the joints' frames in the reference frames of their bodies, shape (places, 7).

    kinds: per joint the translations and the rotation of its motion.  threads: which joints are threads.
    Only the directions that the motion depends on are those drawn: z, and x where the angle is locked or counted.
    """
    drawn: FloatArray = np.frombuffer(b"".join([place.floats for place in places])).reshape(-1, 4, 3)
    axes = drawn[:, 1:]  # x, y, z in rows
    references = system.reference_frames
    origins = drawn[:, 0] - np.vstack([references[:, :3], system.origin])[bodies]
    if references.shape[1] > 3:  # they have axes of their own
        back = euler.conjugate(np.vstack([references[:, 3:], (1.0, 0.0, 0.0, 0.0)])[bodies])
        axes, origins = euler.rotate(back[:, None], axes), euler.rotate(back, origins)
    frames = np.hstack([_with_axis(axes[:, 2]), origins])
    translations, rotation = kinds
    frames[(translations == 3) & (rotation != BY_USER), 4:] = 0.0
    frames[rotation == ANYHOW, :4] = 1.0, 0.0, 0.0, 0.0
    if threads.any():
        frames[threads, :4] = _with_x(frames[threads, :4], axes[threads, 0])
    for k in np.flatnonzero((rotation == STILL) | (rotation == BY_USER)):
        frames[k, :4] = quaternion_from_columns(*axes[k].tolist())
    return frames


def _with_axis(z: FloatArray) -> FloatArray:
    """Quaternions of frames with those unit axes z: the least rotation from z or −z, whichever is nearer."""
    up = z[:, 2] >= 0.0
    half = np.sqrt(0.5 * (1.0 + np.abs(z[:, 2])))
    x, y, none = 0.5 * z[:, 0] / half, -0.5 * z[:, 1] / half, np.zeros(len(z))
    columns = [np.where(up, half, y), np.where(up, y, half), np.where(up, x, none), np.where(up, none, x)]
    return np.column_stack(columns)


_X, _Y, _Z = np.eye(3)


def _rotated(p: FloatArray, u: FloatArray) -> FloatArray:
    """A(p) u of unit quaternions."""
    t = 2.0 * np.cross(p[:, 1:], u)
    return u + p[:, :1] * t + np.cross(p[:, 1:], t)


def _with_x(p: FloatArray, x: FloatArray) -> FloatArray:
    """Frames p rotated about their z until their x is there."""
    half = 0.5 * np.arctan2(*(np.einsum("ij,ij->i", _rotated(p, u), x) for u in (_Y, _X)))
    c, s = np.cos(half), np.sin(half)
    w, e1, e2, e3 = p.T
    return np.column_stack([w * c - e3 * s, e1 * c + e2 * s, e2 * c - e1 * s, e3 * c + w * s])
