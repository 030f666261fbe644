"""Pairs of solids that are near each other, by boxes: sweep and prune along the axis of the largest spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.collide.pairs import checked
from cardan.collide.solids import Solid
from cardan.math import euler

AT_ONCE = 1_000_000  # pairs that are compared at once


def candidates(solids: Sequence[Solid], poses: Any, *, margin: float = 0.0) -> NDArray[np.int64]:
    """Pairs (i, j), i < j, whose boxes in world axes are nearer than a margin [m], shape (k, 2).

    poses, shape (n, 7).  Solids of all other pairs are farther from each other than the margin.
    """
    solids, rows = checked(solids, poses)
    if not len(solids):
        return np.empty((0, 2), dtype=np.int64)
    kinds = {id(s): s for s in solids}
    boxes = {key: np.array(s.box) for key, s in kinds.items()}
    local = np.array([boxes[id(s)] for s in solids])
    is_plane = np.array([s.is_half_space for s in solids])
    local[is_plane] = 0.0
    R = np.asarray(euler.matrix(rows[:, 3:]))
    middle = np.einsum("kij,kj->ki", R, local.mean(axis=1)) + rows[:, :3]
    half = np.einsum("kij,kj->ki", np.abs(R), 0.5 * (local[:, 1] - local[:, 0])) + 0.5 * margin
    errors = np.array([s.error for s in solids])[:, None]
    low, high = middle - half - errors, middle + half + errors
    found = [_swept(low[~is_plane], high[~is_plane], np.flatnonzero(~is_plane))]
    for k in np.flatnonzero(is_plane).tolist():  # the least height of each box above the plane
        n = R[k, :, 2]
        height = (middle - rows[k, :3]) @ n - (half + errors) @ np.abs(n)
        others = np.flatnonzero((height <= 0.5 * margin) & ~is_plane)
        found.append(np.sort(np.column_stack([others, np.full(len(others), k)]), axis=1))
    every = np.concatenate(found)
    return np.asarray(every[np.lexsort((every[:, 1], every[:, 0]))])


def _swept(low: Any, high: Any, numbers: Any) -> NDArray[np.int64]:
    if len(low) < 2:
        return np.empty((0, 2), dtype=np.int64)
    axis = int(np.argmax((low + high).std(axis=0)))
    order = np.argsort(low[:, axis], kind="stable")
    low, high, numbers = low[order], high[order], numbers[order]
    last = np.searchsorted(low[:, axis], high[:, axis], side="right")
    counts = np.maximum(last - np.arange(1, len(low) + 1), 0)
    ends = np.cumsum(counts)
    found = []
    at = 0
    while at < len(low):
        before = int(ends[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(ends, before + AT_ONCE, side="right")))
        i = np.repeat(np.arange(at, stop), counts[at:stop])
        j = i + 1 + before + np.arange(len(i)) - (ends - counts)[i]
        near = ((low[i] <= high[j]) & (low[j] <= high[i])).all(axis=1)
        found.append(np.sort(np.column_stack([numbers[i[near]], numbers[j[near]]]), axis=1))
        at = stop
    return np.concatenate(found)
