"""Contact points of many solids, from one pose to the next.

Pairs that are near each other are listed with room to move, and the list is kept until a solid may have used up this
room.  Of each pair the closest points are tracked from those of the last poses.  The corners of the faces that meet
come from one kernel for all pairs of solids without curves; the others are those of :func:`contact_points`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.collide import points as _points
from cardan.collide.broad import Boxes
from cardan.collide.pairs import workspace
from cardan.collide.solids import FloatArray, Solid
from cardan.collide.tables import Contact, PairRecord
from cardan.lazy import LazyModule

_closest = LazyModule("cardan.collide._closest")
_corners = LazyModule("cardan.collide._corners")

IntArray = NDArray[np.int64]

ROOM: Final = 0.1  # of the smallest reach: how far solids may move until pairs are listed again
PAIR_BITS: Final = 32  # of a key, for the edges that meet at a point


class Manifolds(NamedTuple):
    """Contact points of pairs of solids: ``pairs``, shape (n,), are numbers in the list of pairs.

    ``keys``: the same for the same point of a pair at the next poses.  ``gaps`` [m], ``points`` [m], shape (n, 2, 3),
    on both solids, ``normals``, from the first to the second.
    """

    pairs: IntArray
    keys: IntArray
    gaps: FloatArray
    points: FloatArray
    normals: FloatArray


class ManifoldFinder:
    """Contact points of solids that move."""

    def __init__(self, solids: Sequence[Solid], margin: Callable[[int, int], float | None]) -> None:
        """margin: the least gap of two solids [m], by their numbers; None if they may overlap."""
        self._solids, self._margin = list(solids), margin
        self._boxes = Boxes([np.array(s.box) for s in solids], [s.is_half_space for s in solids],
                            [s.error for s in solids])  # fmt: skip
        reach = np.array([s.reach for s in solids])
        self._reach = np.where(np.isfinite(reach), reach, 0.0)
        self._room = ROOM * float(self._reach[self._reach > 0.0].min(initial=1.0))
        self._is_flat = np.array([_is_flat(s) for s in solids], dtype=bool)
        self._known: dict[tuple[int, int], float | None] = {}
        self._poses: FloatArray | None = None  # where pairs were listed
        self._within = 0.0
        self.pairs: IntArray = np.empty((0, 2), dtype=np.int64)
        self.margins: FloatArray = np.empty(0)
        self.version = 0  # of the list of pairs

    def find(self, poses: FloatArray, within: float) -> Manifolds:
        """Contact points that are nearer than the margin of their pair and ``within`` [m]; poses, shape (solids, 7)."""
        self._list_pairs(poses, within)
        parts = [self._found_flat(poses, within)] if len(self._flat) else []
        parts += [self._found_curved(k, poses, within) for k in self._curved.tolist()]
        whole = [np.concatenate(columns) for columns in zip(*parts, strict=True)] if parts else _nothing()
        order = np.argsort(whole[0], kind="stable")
        return Manifolds(*(column[order] for column in whole))

    def _list_pairs(self, poses: FloatArray, within: float) -> None:
        if self._poses is not None and within <= self._within:
            turned = np.minimum(*(np.linalg.norm(poses[:, 3:] - s * self._poses[:, 3:], axis=1) for s in (1.0, -1.0)))
            moved = np.linalg.norm(poses[:, :3] - self._poses[:, :3], axis=1) + 2.0 * self._reach * turned
            if float(moved.max(initial=0.0)) < 0.5 * self._room - 0.5 * (within - self._within):
                return
        self._poses, self._within = poses.copy(), 2.0 * within
        near = np.asarray(self._boxes.near(poses, 0.5 * (self._within + self._room + self._most_margin())))
        kept, margins = [], []
        for i, j in near.tolist():
            if (i, j) not in self._known:
                self._known[i, j] = self._margin(i, j)
            margin = self._known[i, j]
            if margin is not None:
                kept.append((i, j))
                margins.append(margin)
        before = {tuple(pair): k for k, pair in enumerate(self.pairs.tolist())}
        old, same = getattr(self, "_contacts", None), [before.get(pair, -1) for pair in kept]
        self.pairs = np.array(kept, dtype=np.int64).reshape(-1, 2)
        self.margins = np.array(margins)
        is_flat = self._is_flat[self.pairs].all(axis=1) if kept else np.zeros(0, dtype=bool)
        self._flat, self._curved = np.flatnonzero(is_flat), np.flatnonzero(~is_flat)
        self._contacts = np.zeros(len(kept), dtype=Contact.dtype)
        at = np.array(same, dtype=np.int64)
        if old is not None and (at >= 0).any():
            self._contacts[at >= 0] = old[at[at >= 0]]
        records = np.zeros((len(kept), PairRecord.size), dtype=np.int64)
        for k in self._flat.tolist():
            i, j = kept[k]
            records[k] = (self._solids[i].addresses[0], self._solids[j].addresses[0], i, j,
                          _closest.CONSIDER, _closest.POLISH, _closest.REFINE)  # fmt: skip
        self._records = records
        self.version += 1

    def _most_margin(self) -> float:
        return max((margin for margin in self._known.values() if margin is not None), default=0.0)

    def _found_flat(self, poses: FloatArray, within: float) -> tuple[Any, ...]:
        """Of pairs of solids without curves."""
        flat = self._flat[self._are_near(poses, self._flat, within)]
        records, contacts = self._records[flat].reshape(-1), self._contacts[flat]
        n = len(flat)
        if not n:
            return _nothing()
        rows = np.ascontiguousarray(poses).reshape(-1)
        _closest.closest_many(n, records, rows, contacts.view(np.float64), workspace())
        contacts["is_known"] = 1.0
        self._contacts[flat] = contacts
        limits = within + self.margins[flat]
        found = np.zeros(_corners.MOST * n, dtype=_corners.Corner.dtype)
        work = np.zeros((_corners.SIZE + _corners.ROOM + 1) * _corners.FacePoint.size)
        count = _corners.corners_many(n, records, rows, contacts.view(np.float64), limits, found.view(np.int64), work)
        found = found[:count]
        numbers = flat[found["pair"]]
        keys = (self._pair_keys(numbers) << PAIR_BITS) + found["code"]
        return numbers, keys, found["gap"], found["points"].reshape(-1, 2, 3), found["normal"]

    def _are_near(self, poses: FloatArray, numbers: IntArray, within: float) -> Any:
        """Whether balls around the two solids of pairs are near each other."""
        i, j = self.pairs[numbers].T
        reach = self._reach[i] + self._reach[j] + within + self.margins[numbers]
        is_plane = ~np.isfinite([s.reach for s in self._solids])
        return is_plane[i] | is_plane[j] | (((poses[i, :3] - poses[j, :3]) ** 2).sum(axis=1) <= reach**2)

    def _pair_keys(self, numbers: IntArray) -> IntArray:
        pairs = self.pairs[numbers]
        return np.asarray(pairs[:, 0] * len(self._solids) + pairs[:, 1])

    def _found_curved(self, k: int, poses: FloatArray, within: float) -> tuple[Any, ...]:
        """Of a pair with rims, or of several pieces."""
        i, j = self.pairs[k].tolist()
        limit = within + self.margins[k]
        found = _points.contact_points(self._solids[i], poses[i], self._solids[j], poses[j], within=limit)
        if not found:
            return _nothing()
        key = int(self._pair_keys(np.array([k]))[0]) << PAIR_BITS
        codes = [
            key + (hash(one.features) & (2**PAIR_BITS - 1)) for one in found
        ]  # of numbers: the same in any process
        return (
            np.full(len(found), k),
            np.array(codes, dtype=np.int64),
            np.array([one.gap for one in found]),
            np.array([one.points for one in found]),
            np.array([one.normal for one in found]),
        )


def _is_flat(solid: Solid) -> bool:
    """Whether it is one piece whose atoms are points."""
    return len(solid.pieces) == 1 and not solid.pieces[0].atoms[:, 3].any()


def _nothing() -> tuple[Any, ...]:
    none = np.empty(0, dtype=np.int64)
    return none, none, np.empty(0), np.empty((0, 2, 3)), np.empty((0, 3))
