"""Joints that can be limbs of a tree: known by their primitives alone, as the tables of a system hold them.

A joint is an edge where its bundle of primitives is one of PATTERNS, all between the same two bodies, with axes that
belong together: what is left free then has coordinates of its own.  Its frames are read from the features.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.system.layout import (
    ABOUT_Z,
    ANYHOW,
    BODY,
    CROSSED,
    FEATURE,
    FEATURES,
    PAR,
    RECORD,
    SLOTS,
    SOURCE,
    STILL,
)
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

AXES_ATOL = 1e-14  # axes of one frame are orthogonal to rounding, and differ by no more where they are stored twice


class Motion(NamedTuple):
    """What a joint leaves free, in its frame on the parent: translations (1: z, 2: x and y, 3: all), then a turn."""

    translations: int
    rotation: int

    def coordinates(self) -> int:
        return self.translations + (0, 1, 2, 4)[self.rotation]

    def unknowns(self, euler: bool) -> int:
        return self.translations + (0, 1, 2, 4 if euler else 3)[self.rotation]


FREE: Final = Motion(3, ANYHOW)

# By the names of the primitives, in the order in which joints state them.
PATTERNS: dict[tuple[str, ...], Motion] = {
    ("coincidence", "rotation_vector"): Motion(0, STILL),  # fixed
    ("coincidence", "aligned"): Motion(0, ABOUT_Z),  # revolute
    ("dot_2", "dot_2", "rotation_vector"): Motion(1, STILL),  # prismatic
    ("dot_2", "dot_2", "aligned"): Motion(1, ABOUT_Z),  # cylindrical
    ("dot_2", "dot_2", "aligned", "rack"): Motion(0, ABOUT_Z),  # screw
    ("coincidence",): Motion(0, ANYHOW),  # spherical
    ("coincidence", "dot_1"): Motion(0, CROSSED),  # universal
    ("dot_2", "aligned"): Motion(2, ABOUT_Z),  # planar
    ("aligned",): Motion(3, ABOUT_Z),  # parallel
    ("dot_1",): Motion(3, CROSSED),  # perpendicular
}


class Edges(NamedTuple):
    """Joints that can be part of the tree, by columns: each between bodies a and b (−1: the ground).

    ``frames``, shape (joints, 14): of a, then of b, each the quaternion body ← frame and the place [m] from the body's
    reference point.  ``pitch`` [m] per radian.  ``counted``: 1 + number of the turn that the angle is, 0: none.
    ``first``, ``size``: of the constraints that it replaces, the number of the first and how many.
    """

    names: list[str]
    weights: list[int]  # equations
    motions: list[Motion]
    a: list[int]
    b: list[int]
    frames: FloatArray
    pitch: FloatArray
    counted: IntArray
    first: list[int]
    size: list[int]


class _Read(NamedTuple):
    """All joints of one pattern, by columns; ``good``: those whose features make them a joint."""

    good: NDArray[np.bool_]
    a: IntArray
    b: IntArray
    frames: FloatArray  # shape (joints, 14)
    pitch: FloatArray
    counted: IntArray


def edges(system: System) -> Edges:
    """Every joint of the system that can be a limb, in no order that matters."""
    rows = system.rows
    names = [row.constraint for row in rows]
    kinds = [row.primitive.name if row.primitive.code >= 0 else "" for row in rows]  # a user's may have any name
    groups: dict[tuple[str, ...], list[int]] = {}
    at = 0
    while at < len(names):
        end = at + 1
        while end < len(names) and names[end] == names[at]:
            end += 1
        pattern = tuple(kinds[at:end])
        if pattern in PATTERNS:
            groups.setdefault(pattern, []).append(at)
        at = end
    found = Edges([], [], [], [], [], np.empty((0, 14)), np.empty(0), np.empty(0, dtype=np.int64), [], [])
    reads = []
    for pattern, firsts in groups.items():
        size = len(pattern)
        good, *read = _read(system, pattern, system.starts[np.add.outer(firsts, range(size))])
        if not good.all():
            firsts = np.array(firsts)[good].tolist()
            read = [column[good] for column in read]
        reads.append(read[2:])
        weight = sum(row.primitive.equations for row in rows[firsts[0] : firsts[0] + size]) if firsts else 0
        found.names.extend([names[first] for first in firsts])
        found.weights.extend([weight] * len(firsts))
        found.motions.extend([PATTERNS[pattern]] * len(firsts))
        found.a.extend(read[0].tolist())
        found.b.extend(read[1].tolist())
        found.first.extend(firsts)
        found.size.extend([size] * len(firsts))
    if not reads:
        return found
    frames, pitch, counted = (np.concatenate(column) for column in zip(*reads, strict=True))
    return found._replace(frames=frames, pitch=pitch, counted=counted)


def _read(system: System, pattern: tuple[str, ...], records: IntArray) -> _Read:
    """Bodies and frames of joints of one pattern; records: where those of each begin, shape (joints, primitives)."""
    table, floats = system.ints, system.floats
    count = len(records)
    frames: FloatArray = np.zeros((count, 14))
    frames[:, [0, 7]] = 1.0
    good: NDArray[np.bool_] = np.ones(count, dtype=bool)
    a = b = np.empty(0, dtype=np.int64)
    normals: list[FloatArray] = []
    read = _Read(good, a, b, frames, np.zeros(count), np.zeros(count, dtype=np.int64))
    for k, primitive in enumerate(pattern):
        record = records[:, k]
        first = record + RECORD + table[record + SLOTS]
        features = int(table[record[0] + FEATURES])  # as many for all, since they are of one primitive
        bodies = table[np.add.outer(first + BODY, FEATURE * np.arange(features))]
        sources = table[np.add.outer(first + SOURCE, FEATURE * np.arange(features))]
        if k == 0:
            a, b = bodies[:, 0], bodies[:, -1]
            read = read._replace(a=a, b=b)
            good &= a != b
        if primitive == "rack":
            _read_thread(read, floats, table[record + PAR], bodies, sources)
            continue
        good &= (bodies[:, :-1] == a[:, None]).all(axis=1) & (bodies[:, -1] == b)
        on_a, on_b = sources[:, -2], sources[:, -1]  # of points and of axes z, the last on each body
        if primitive == "rotation_vector":
            frames[:, :4], frames[:, 7:11] = _take(floats, on_a, 4), _take(floats, on_b, 4)
        elif primitive in ("aligned", "dot_1"):
            frames[:, :4], frames[:, 7:11] = _with_axis(_take(floats, on_a)), _with_axis(_take(floats, on_b))
        else:
            origins = np.hstack([_take(floats, on_a), _take(floats, on_b)])
            if primitive == "dot_2":
                good &= floats[table[record + PAR]] == 0.0
                if normals:
                    good &= (origins == frames[:, _ORIGINS]).all(axis=1)
                normals.append(_take(floats, sources[:, 0]))
            frames[:, _ORIGINS] = origins
    if normals:
        good &= _belong(normals, _rotated(frames[:, :4], _Z))
    return read


_ORIGINS = [4, 5, 6, 11, 12, 13]
_X, _Y, _Z = np.eye(3)


def _read_thread(read: _Read, floats: FloatArray, par: IntArray, bodies: IntArray, sources: IntArray) -> None:
    """Screws: d = radius·θ + offset on the axis of a slide that turns.  The angle counts from x of both frames."""
    good, a, b, frames, pitch, counted = read
    ground = np.full_like(a, -1)
    good &= (bodies == np.column_stack([a, a, b, ground, a, a, b])).all(axis=1)  # x, y, v, turn, axis, p, q
    x, y, v, axis, p, q = (_take(floats, sources[:, k]) for k in (0, 1, 2, 4, 5, 6))
    on_a, on_b = _with_x(frames[:, :4], x), _with_x(frames[:, 7:11], v)
    z = _rotated(on_a, _Z)
    same = (axis, z), (p, frames[:, 4:7]), (q, frames[:, 11:]), (x, _rotated(on_a, _X)), (y, _rotated(on_a, _Y))
    for one, other in (*same, (v, _rotated(on_b, _X))):
        good &= np.abs(one - other).max(axis=1) <= AXES_ATOL
    frames[:, :4], frames[:, 7:11] = on_a, on_b
    frames[:, 4:7] += floats[par + 1][:, None] * z
    pitch[:] = floats[par]
    counted[:] = sources[:, 3] + 1


def _take(floats: FloatArray, starts: IntArray, size: int = 3) -> FloatArray:
    taken: FloatArray = floats[np.add.outer(starts, range(size))]
    return taken


def _with_axis(z: FloatArray) -> FloatArray:
    """Quaternions of frames with those unit axes z, whatever their x: the least turn from z or −z, which is nearer."""
    up = z[:, 2] >= 0.0
    half = np.sqrt(0.5 * (1.0 + np.abs(z[:, 2])))
    x, y, none = 0.5 * z[:, 0] / half, -0.5 * z[:, 1] / half, np.zeros(len(z))
    columns = [np.where(up, half, y), np.where(up, y, half), np.where(up, x, none), np.where(up, none, x)]
    return np.column_stack(columns)


def _rotated(p: FloatArray, u: FloatArray) -> FloatArray:
    """A(p) u of unit quaternions."""
    t = 2.0 * np.cross(p[:, 1:], u)
    rotated: FloatArray = u + p[:, :1] * t + np.cross(p[:, 1:], t)
    return rotated


def _with_x(p: FloatArray, x: FloatArray) -> FloatArray:
    """Frames p turned about their z until their x is there."""
    sine, cosine = (np.einsum("ij,ij->i", _rotated(p, u), x) for u in (_Y, _X))
    half = 0.5 * np.arctan2(sine, cosine)
    c, s = np.cos(half), np.sin(half)
    w, e1, e2, e3 = p.T
    return np.column_stack([w * c - e3 * s, e1 * c + e2 * s, e2 * c - e1 * s, e3 * c + w * s])


def _belong(normals: list[FloatArray], z: FloatArray) -> NDArray[np.bool_]:
    """Whether translations that the normals leave are those along z (two normals), or those across z (one)."""
    good: NDArray[np.bool_]
    if len(normals) == 1:
        good = np.abs(normals[0] - z).max(axis=1) <= AXES_ATOL
        return good
    pairs = ((normals[0], z), (normals[1], z), (normals[0], normals[1]))
    good = np.all([np.abs(np.einsum("ij,ij->i", u, v)) <= AXES_ATOL for u, v in pairs], axis=0)
    return good
