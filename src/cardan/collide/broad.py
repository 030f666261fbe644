"""Pairs of solids that are near each other, by boxes: sweep and prune along the axis of the largest spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.collide.pairs import checked
from cardan.collide.solids import FloatArray, Solid
from cardan.math import euler

AT_ONCE = 1_000_000  # pairs that are compared at once


def candidates(solids: Sequence[Solid], poses: Any, *, margin: float = 0.0) -> NDArray[np.int64]:
    """Pairs (i, j), i < j, whose boxes in world axes are nearer than a margin [m], shape (k, 2).

    poses, shape (n, 7).  Solids of all other pairs are farther from each other than the margin.
    """
    solids, rows = checked(solids, poses)
    boxes = Boxes([np.array(s.box) for s in solids], [s.is_half_space for s in solids], [s.error for s in solids])
    return boxes.near(rows, 0.5 * margin)


class Boxes:
    """Boxes of solids or of pieces in their own axes, prepared for many poses."""

    def __init__(self, boxes: Sequence[FloatArray], is_plane: Sequence[bool], errors: Sequence[float]) -> None:
        """boxes [m]: lower and upper corner, shape (2, 3) each; not read where ``is_plane``: half-spaces z ≤ 0."""
        self._is_plane = np.array(is_plane, dtype=bool)
        local = np.array(boxes).reshape(-1, 2, 3)
        local[self._is_plane] = 0.0
        self._middle, self._half = local.mean(axis=1), 0.5 * (local[:, 1] - local[:, 0])
        self._errors = np.array(errors, dtype=np.float64).reshape(-1, 1)

    def near(self, poses: FloatArray, grown: Any = 0.0, moved: FloatArray | None = None) -> NDArray[np.int64]:
        """Pairs (i, j), i < j, of boxes that overlap where each is grown by ``grown`` [m], shape (n,) or one for all.

        poses: with unit quaternions, shape (n, 7).  moved: other poses of the same; boxes are then those around both,
        and half-spaces, which must be the same in both, see each box at both.
        """
        if not len(self._middle):
            return np.empty((0, 2), dtype=np.int64)
        is_plane = self._is_plane
        grown = np.broadcast_to(np.asarray(grown, dtype=np.float64).reshape(-1, 1), self._errors.shape) + self._errors
        at = [self._placed(rows) for rows in ((poses,) if moved is None else (poses, moved))]
        low = np.min([middle - half for _, middle, half in at], axis=0) - grown
        high = np.max([middle + half for _, middle, half in at], axis=0) + grown
        found = [_swept(low[~is_plane], high[~is_plane], np.flatnonzero(~is_plane))]
        for k in np.flatnonzero(is_plane).tolist():  # the least height of each box above the plane
            n = at[0][0][k, :, 2]
            heights = [(middle - poses[k, :3]) @ n - (half + grown) @ np.abs(n) for _, middle, half in at]
            others = np.flatnonzero((np.min(heights, axis=0) <= grown[k, 0]) & ~is_plane)
            found.append(np.sort(np.column_stack([others, np.full(len(others), k)]), axis=1))
        every = np.concatenate(found)
        return np.asarray(every[np.lexsort((every[:, 1], every[:, 0]))])

    def _placed(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rotation matrices, middles and half edges of boxes in world axes around the boxes."""
        R = np.asarray(euler.matrix(rows[:, 3:]))
        middle = np.einsum("kij,kj->ki", R, self._middle) + rows[:, :3]
        return R, middle, np.einsum("kij,kj->ki", np.abs(R), self._half)


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
