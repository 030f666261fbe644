"""The signed gap of two solids at poses."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cardan.collide.solids import FloatArray, Solid, solid
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

    near: a gap of both at poses near these.  It is tracked from there; where they overlap, to the same face.  Solids of
    several pieces are always searched.
    """
    (a, b), poses = checked((a, b), (pose_a, pose_b))
    if a.is_half_space and b.is_half_space:
        raise ModelError("both solids are half-spaces, which have no gap; give a shape for one of them")
    if len(a.pieces) == 1 and len(b.pieces) == 1:
        found = contacts_of(a, b, poses, np.zeros((1, 2), dtype=np.int64), near)[0]
        return read(found, (0, 0), a.error + b.error)
    return _least(a, b, poses)


def gaps(solids: Sequence[Solid], poses: Any, pairs: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The signed gaps of many pairs [m], shape (k,), their points [m], shape (k, 2, 3), normals, shape (k, 3), and
    bounds of their errors [m], shape (k,); see :class:`Gap`.

    poses, shape (n, 7); pairs, shape (k, 2): numbers of solids, as from :func:`candidates`.
    """
    solids, rows = checked(solids, poses)
    chosen = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    for pair in chosen[((chosen < 0) | (chosen >= len(solids))).any(axis=1)].tolist():
        raise ModelError(f"pairs has {tuple(pair)}; there are {len(solids)} solids, numbered from 0")
    found = np.zeros(len(chosen), dtype=Contact.dtype)
    is_plain = np.array([len(s.pieces) == 1 for s in solids] or [True])
    plane = np.array([s.is_half_space for s in solids] or [False])
    if plane[chosen].all(axis=1).any():
        raise ModelError("both solids of a pair are half-spaces, which have no gap; leave the pair out")
    at = np.flatnonzero(is_plain[chosen].all(axis=1))
    addresses, errors = np.array([s.addresses[0] for s in solids]), np.array([s.error for s in solids])
    found[at] = _searched(addresses[chosen[at]], chosen[at], rows)
    found["error"][at] += errors[chosen[at]].sum(axis=1)
    for k in np.flatnonzero(~is_plain[chosen].all(axis=1)).tolist():
        i, j = chosen[k].tolist()
        one, row = gap(solids[i], rows[i], solids[j], rows[j]), found[k]
        row["gap"], row["points"], row["normal"], row["error"] = one.gap, one.points.ravel(), one.normal, one.error
    return found["gap"].copy(), found["points"].reshape(-1, 2, 3), found["normal"].copy(), found["error"].copy()


def checked(solids: Sequence[Solid], poses: Any) -> tuple[list[Solid], FloatArray]:
    """Solids, of shapes too, and the pose of each, shape (n, 7)."""
    if len(solids) != len(poses):
        raise ModelError(f"there are {len(solids)} solids and {len(poses)} poses; give a pose for each solid")
    return [solid(one) for one in solids], poses_of(poses)


def poses_of(values: Any) -> FloatArray:
    """Poses with unit quaternions, shape (n, 7)."""
    found = np.array([pose_of(value) for value in values]).reshape(-1, 7)
    found[:, 3:] /= np.linalg.norm(found[:, 3:], axis=1, keepdims=True)
    return found


def contacts_of(a: Solid, b: Solid, poses: FloatArray, pairs: Any, near: Gap | None = None) -> Any:
    """Contacts of pairs of pieces, shape (n, 2); near: a gap of the first pair, to track from."""
    contacts = np.zeros(len(pairs), dtype=Contact.dtype)
    if near is not None:
        row = contacts[0]
        row["normal"], row["is_known"], row["atoms"] = near.normal, 1.0, -1.0
        for side, atoms in enumerate(near.features[2:]):
            row["atoms"][3 * side : 3 * side + len(atoms)] = atoms
    addresses = np.column_stack([a.addresses[pairs[:, 0]], b.addresses[pairs[:, 1]]])
    return _searched(addresses, (0, 1), poses, contacts)


def piece_gaps(a: Any, b: Any, poses: FloatArray) -> Any:
    """Gaps of many pairs of pieces in one call, as rows of a Contact; errors of their solids are not included.

    a, b: addresses of the pieces (``solid.addresses``), shape (n,).  poses: of both, with unit quaternions, shape
    (n, 2, 7).
    """
    places = np.arange(2 * len(a)).reshape(-1, 2)
    return _searched(np.column_stack([a, b]), places, np.ascontiguousarray(poses, dtype=np.float64))


def _searched(addresses: Any, places: Any, poses: FloatArray, contacts: Any = None) -> Any:
    """Contacts of pairs of hulls, given by their addresses and the numbers of their poses, shape (n, 2) each.

    contacts: with normals and atoms to track from.
    """
    records = np.zeros((len(addresses), PairRecord.size), dtype=np.int64)
    records[:, :2], records[:, 2:4] = addresses, places
    records[:, 4:] = _closest.CONSIDER, _closest.POLISH, _closest.REFINE
    made = np.zeros(len(addresses), dtype=Contact.dtype) if contacts is None else contacts
    if len(made):
        _closest.closest_many(len(made), records.reshape(-1), poses.reshape(-1), made.view(np.float64), workspace())
    return made


def read(row: Any, pair: Sequence[int], error: float) -> Gap:
    """A contact of two pieces that a kernel wrote."""
    atoms = row["atoms"].astype(int)
    of_a, of_b = (tuple(sorted({k for k in part.tolist() if k >= 0})) for part in (atoms[:3], atoms[3:]))
    points = row["points"].reshape(2, 3).copy()
    return Gap(
        float(row["gap"]), points, row["normal"].copy(), (pair[0], pair[1], of_a, of_b), error + float(row["error"])
    )


def workspace() -> FloatArray:
    """Cells of a search, of this thread."""
    found: FloatArray | None = getattr(_memory, "cells", None)
    if found is None:
        found = _memory.cells = np.zeros((CELLS + 2) * Cell.size)
    return found


def bounds(a: Solid, b: Solid, poses: FloatArray) -> FloatArray:
    """Lower bounds of the gaps of all pairs of pieces [m]: of balls, and along the axes of both solids."""
    axes_a, axes_b = (euler.matrix(pose[3:]) for pose in poses)
    apart = np.full((len(a.pieces), len(b.pieces)), -np.inf)
    if not a.is_half_space and not b.is_half_space:
        centers = a.middles @ axes_a.T + poses[0, :3], b.middles @ axes_b.T + poses[1, :3]
        apart = np.linalg.norm(centers[0][:, None] - centers[1], axis=2) - a.radii[:, None] - b.radii
        axes = np.concatenate([axes_a, axes_b], axis=1)
        (low_a, high_a), (low_b, high_b) = a.spans(axes_a.T @ axes), b.spans(axes_b.T @ axes)
        shift = (poses[1, :3] - poses[0, :3]) @ axes
        for k in range(6):
            apart = np.maximum(apart, low_b[:, k] + shift[k] - high_a[:, None, k])
            apart = np.maximum(apart, low_a[:, None, k] - shift[k] - high_b[:, k])
    return np.asarray(apart)


def _least(a: Solid, b: Solid, poses: FloatArray) -> Gap:
    """The least gap of all pairs of pieces: those of the least bounds first, until all others are farther."""
    apart = bounds(a, b, poses)
    order = np.argsort(apart, axis=None, kind="stable")
    best: Gap | None = None
    at, many = 0, 1
    while at < len(order) and (best is None or apart.flat[order[at]] < best.gap):
        chosen = np.stack(np.unravel_index(order[at : at + many], apart.shape), axis=1)
        found = contacts_of(a, b, poses, chosen)
        k = int(np.argmin(found["gap"]))
        if best is None or found["gap"][k] < best.gap:
            best = read(found[k], chosen[k].tolist(), a.error + b.error)
        at, many = at + many, min(2 * many, 64)
    assert best is not None  # a solid has at least one piece
    return best
