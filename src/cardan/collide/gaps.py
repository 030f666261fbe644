"""The signed gap of two solids at poses."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cardan.collide.solids import FloatArray, Solid
from cardan.collide.tables import CELLS, Cell, Contact, PairRecord
from cardan.errors import ModelError
from cardan.geometry.distance import pose_of
from cardan.lazy import LazyModule
from cardan.math import euler

_closest = LazyModule("cardan.collide._closest")
_memory = threading.local()

Features: TypeAlias = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """The signed gap [m] of two solids: their distance, or minus the least depth where they overlap.

    ``points`` [m], shape (2, 3): on a and on b, in world axes, with points[1] − points[0] = gap · normal.  ``normal``,
    shape (3,): from a to b.  ``features``: the convex pieces of a and b, and the atoms (corners, rims) of each that the
    points are between.  ``error`` [m]: bound of the error; 0 if it is rounding alone.
    """

    gap: float
    points: FloatArray
    normal: FloatArray
    features: Features
    error: float


def gap(a: Solid, pose_a: Any, b: Solid, pose_b: Any, *, near: Gap | None = None) -> Gap:
    """The signed gap of two solids at poses (x, y, z, w, qx, qy, qz); the least one of their convex pieces.

    near: a gap of both at poses near these.  It is tracked from there; where they overlap, to the same face.
    """
    poses = poses_of((pose_a, pose_b))
    if a.is_half_space and b.is_half_space:
        raise ModelError("both solids are half-spaces, which have no gap; give a shape for one of them")
    if len(a.pieces) == 1 and len(b.pieces) == 1:
        return _of_pieces(a, b, poses, np.zeros((1, 2), dtype=np.int64), near)[0]
    return _least(a, b, poses)


def poses_of(values: Any) -> FloatArray:
    """Poses with unit quaternions, shape (n, 7)."""
    found = np.array([pose_of(value) for value in values])
    found[:, 3:] /= np.linalg.norm(found[:, 3:], axis=1, keepdims=True)
    return found


def _of_pieces(a: Solid, b: Solid, poses: FloatArray, pairs: Any, near: Gap | None = None) -> list[Gap]:
    """Gaps of pairs of pieces, shape (n, 2)."""
    records = np.zeros(1 + PairRecord.size * len(pairs), dtype=np.int64)
    records[0] = len(pairs)
    hulls = [(a.pieces[i].hull, b.pieces[j].hull) for i, j in pairs.tolist()]
    for k, (one, other) in enumerate(hulls):
        record = PairRecord.new(a=one, b=other, body_a=0, body_b=1, **functions())
        records[1 + PairRecord.size * k :][: PairRecord.size] = record.as_ints
    contacts = np.zeros(len(pairs), dtype=Contact.dtype)
    if near is not None:
        row = contacts[0]
        row["normal"], row["is_known"], row["atoms"] = near.normal, 1.0, -1.0
        for side, atoms in enumerate(near.features[2:]):
            row["atoms"][3 * side : 3 * side + len(atoms)] = atoms  # type: ignore[arg-type]
    _closest.closest_many(records, poses.reshape(-1), contacts.view(np.float64), workspace())
    return [_read(row, i, j, a.error + b.error) for row, (i, j) in zip(contacts, pairs.tolist(), strict=True)]


def _read(row: Any, i: int, j: int, error: float) -> Gap:
    atoms = row["atoms"].astype(int)
    of_a, of_b = (tuple(sorted({k for k in part.tolist() if k >= 0})) for part in (atoms[:3], atoms[3:]))
    points = row["points"].reshape(2, 3).copy()
    return Gap(float(row["gap"]), points, row["normal"].copy(), (i, j, of_a, of_b), error + float(row["error"]))


def functions() -> dict[str, int]:
    """Addresses of the parts of the search."""
    return {"consider": _closest.CONSIDER, "polish": _closest.POLISH, "refine": _closest.REFINE}


def workspace() -> FloatArray:
    """Cells of a search, of this thread."""
    found: FloatArray | None = getattr(_memory, "cells", None)
    if found is None:
        found = _memory.cells = np.zeros((CELLS + 2) * Cell.size)
    return found


def _least(a: Solid, b: Solid, poses: FloatArray) -> Gap:
    """The least gap of all pairs of pieces: nearest balls first, until all others are farther."""
    centers = []
    for solid, pose in ((a, poses[0]), (b, poses[1])):
        centers.append(solid.middles @ euler.matrix(pose[3:]).T + pose[:3])
    apart = np.linalg.norm(centers[0][:, None] - centers[1], axis=2) - a.radii[:, None] - b.radii
    order = np.argsort(apart, axis=None, kind="stable")
    best: Gap | None = None
    at, many = 0, 1
    while at < len(order) and (best is None or apart.flat[order[at]] < best.gap):
        chosen = np.stack(np.unravel_index(order[at : at + many], apart.shape), axis=1)
        found = min(_of_pieces(a, b, poses, chosen), key=lambda g: g.gap)
        best = found if best is None or found.gap < best.gap else best
        at, many = at + many, min(2 * many, 64)
    assert best is not None  # a solid has at least one piece
    return best
