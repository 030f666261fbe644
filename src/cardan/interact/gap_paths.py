"""Whether solids stay apart on the way from one pose of a mechanism to another.

Between two poses each body moves with a constant velocity and rotates about a fixed axis.  Two convex pieces a, b of
solids are then known to stay apart, up to an overlap of SHALLOW of the thinner one:

- by distance: no point moves farther relative to the other piece than m, and the gaps at both ends have the sum g ≥ m;
- by a plane: with a fixed normal n, s = min n·x_b − max n·x_a at both ends.  A point at the distance ρ of the axis of a
  rotation θ is nearer than ρ θ²/8 to the chord of its way, so s between them is at least the lesser of both minus
  (ρ_a θ_a² + ρ_b θ_b²)/8;
- by advancing: from a pose with the gap g, a motion by g + SHALLOW w ends before an overlap deeper than SHALLOW w.
  [Mirtich1996]

A pair for which none of these holds gives a **cut**: its nearest points where it first touches, which a step must keep
apart.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.joints.gaps import Colliding
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system.state import FloatArray

_broad = LazyModule("cardan.collide.broad")
_pairs = LazyModule("cardan.collide.pairs")

SHALLOW: Final = 0.04  # of the width of the thinner piece: the deepest overlap between two poses of a cycle
TILT: Final = 1e-3  # [rad] of a part, to find more points at which it touches another
APART: Final = 0.05  # of the width of the thinner piece: points that are nearer to each other count once
ADVANCES: Final = 16  # at the most; then a pair counts as touching where it is
IDENTITY: Final = np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])

IntArray = NDArray[np.int64]


class Cuts(NamedTuple):
    """Nearest points of pairs of pieces on the way of a step, in world axes.

    ``pairs``: numbers of the pieces, shape (k, 2).  ``parts`` of the step, shape (k,).  ``gaps`` [m] less the margins,
    shape (k,).  ``points`` [m], shape (k, 2, 3).  ``normals``, shape (k, 3), from the first piece to the second.
    """

    pairs: IntArray
    parts: FloatArray
    gaps: FloatArray
    points: FloatArray
    normals: FloatArray

    def chosen(self, which: Any) -> Cuts:
        """Some of them."""
        return Cuts(*(values[which] for values in self))

    def and_also(self, other: Cuts) -> Cuts:
        """Those of both."""
        return Cuts(*(np.concatenate([mine, its]) for mine, its in zip(self, other, strict=True)))


NONE: Final = Cuts(np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0), np.zeros((0, 2, 3)), np.zeros((0, 3)))


class Paths:
    """The convex pieces of the solids of a mechanism, and how they move relative to each other."""

    def __init__(self, parts: Colliding) -> None:
        self._parts = parts
        pieces = [(k, piece) for k, solid in enumerate(parts.solids) for piece in solid.pieces]
        self._solids: IntArray = np.array([k for k, _ in pieces], dtype=np.int64)
        self.bodies: IntArray = parts._bodies[self._solids]
        self._addresses: IntArray = np.concatenate([s.addresses for s in parts.solids] or [np.zeros(0, np.int64)])
        self._is_plane = np.array([parts.solids[k].is_half_space for k, _ in pieces], dtype=bool)
        boxes = [np.array([piece.low, piece.high]) for _, piece in pieces]
        self._boxes = _broad.Boxes(boxes, self._is_plane, np.zeros(len(pieces)))
        spans = [
            np.ptp(box, axis=0).min() if not flat else np.inf for box, flat in zip(boxes, self._is_plane, strict=True)
        ]
        self._widths: FloatArray = np.array(spans, dtype=np.float64)
        # about the origin of the body
        reaches = [
            np.linalg.norm(parts._places[k, :3]) + (float(piece.hull.reach) if not flat else 0.0)
            for (k, piece), flat in zip(pieces, self._is_plane, strict=True)
        ]
        self._reaches: FloatArray = np.array(reaches, dtype=np.float64)
        self._growths: FloatArray = np.array([piece.growth for _, piece in pieces], dtype=np.float64)
        self._atoms: FloatArray = np.concatenate([piece.atoms for _, piece in pieces] or [np.zeros((0, 11))])
        self._counts: IntArray = np.array([len(piece.atoms) for _, piece in pieces], dtype=np.int64)
        self._starts: IntArray = np.cumsum(self._counts) - self._counts
        self.size = float(max((r for r in self._reaches if np.isfinite(r)), default=1.0)) or 1.0
        self._margins: dict[tuple[int, int], float] = {}
        self._most = max((one.margin for one, *_ in parts._sets), default=0.0)

    def owners(self, pair: tuple[int, int]) -> tuple[str, str]:
        """Names of the bodies of two pieces."""
        a, b = (self._parts.owners[self._solids[k]] for k in pair)
        return a, b

    def _margin(self, i: int, j: int) -> float:
        """The least gap of two solids [m]; minus infinity if they may overlap."""
        found = self._margins.get((i, j))
        if found is None:
            told = self._parts.moving_margin(self._parts.owners[i], self._parts.owners[j])
            found = self._margins[i, j] = -np.inf if told is None else told
        return found

    def margins(self, pairs: IntArray) -> FloatArray:
        """Of each pair of pieces, shape (k,)."""
        of = self._solids[pairs]
        return np.array([self._margin(i, j) for i, j in of.tolist()], dtype=np.float64)

    def placed(self, coordinates: FloatArray) -> FloatArray:
        """Poses of the solids of all pieces, shape (pieces, 7)."""
        found = self._parts.poses(coordinates)
        found[:, 3:] /= np.linalg.norm(found[:, 3:], axis=1, keepdims=True)
        return found[self._solids]

    def narrow(self, pairs: IntArray, poses: FloatArray, margins: FloatArray, parts: Any = 1.0) -> Cuts:
        """Gaps of pairs, whose poses have the shape (k, 2, 7).

        The search finds a plane between two pieces, and so a lower bound of their gap, whatever its error is.
        """
        found = _pairs.piece_gaps(self._addresses[pairs[:, 0]], self._addresses[pairs[:, 1]], poses)
        gaps = found["gap"] - margins
        every = np.broadcast_to(np.asarray(parts, dtype=np.float64), gaps.shape)
        gaps = np.where(np.isnan(gaps), -np.inf, gaps)
        return Cuts(pairs, every, gaps, found["points"].reshape(-1, 2, 3), found["normal"])

    def near(self, coordinates: FloatArray, within: float) -> Cuts:
        """Pairs of pieces whose gap exceeds the margin by less than ``within`` [m]."""
        poses = self.placed(coordinates)
        pairs = self._boxes.near(poses, 0.5 * (within + self._most))
        margins = self.margins(pairs)
        pairs, margins = pairs[margins > -np.inf], margins[margins > -np.inf]
        found = self.narrow(pairs, poses[pairs], margins)
        return found.chosen(found.gaps <= within)

    def of_pairs(self, coordinates: FloatArray, pairs: IntArray) -> Cuts:
        """Gaps of some pairs in one pose of the bodies."""
        return self.narrow(pairs, self.placed(coordinates)[pairs], self.margins(pairs), 0.0)

    def spread(self, cuts: Cuts, start: FloatArray, end: FloatArray) -> Cuts:
        """With more points of pairs that touch along an edge or a face: the nearest ones after small rotations of b.

        The gap of each is that of its points along the normal of the pair.  start, end: poses of bodies and ground.
        """
        count = len(cuts.pairs)
        if not count:
            return cuts
        poses = np.repeat(self._between(start, end, cuts.pairs, cuts.parts), 4, axis=0)
        n = cuts.normals
        least = np.eye(3)[np.argmin(np.abs(n), axis=1)]
        t = np.cross(n, least)
        t /= np.linalg.norm(t, axis=1, keepdims=True)
        axes = np.stack([t, -t, np.cross(n, t), -np.cross(n, t)], axis=1).reshape(-1, 3)
        turns = np.column_stack([np.full(4 * count, np.cos(0.5 * TILT)), np.sin(0.5 * TILT) * axes])
        at = np.repeat(cuts.points[:, 1], 4, axis=0)
        poses[:, 1, :3] = at + euler.rotate(turns, poses[:, 1, :3] - at)
        poses[:, 1, 3:] = euler.multiply(turns, poses[:, 1, 3:])
        pairs, normals = np.repeat(cuts.pairs, 4, axis=0), np.repeat(n, 4, axis=0)
        margins = self.margins(pairs)
        found = self.narrow(pairs, poses, margins)
        points = found.points.copy()
        points[:, 1] = at + euler.rotate(euler.conjugate(turns), points[:, 1] - at)
        gaps = np.einsum("ij,ij->i", points[:, 1] - points[:, 0], normals) - margins
        widths = np.minimum(*self._widths[pairs].T)
        away = np.linalg.norm(points[:, 1] - at, axis=1)
        kept = (away > APART * widths) & (gaps < 2.0 * TILT * away + np.repeat(cuts.gaps, 4)) & np.isfinite(found.gaps)
        return cuts.and_also(Cuts(pairs, np.repeat(cuts.parts, 4), gaps, points, normals).chosen(kept))

    def cuts(self, start: FloatArray, end: FloatArray) -> Cuts:
        """Pairs that do not stay apart from one pose of the bodies to another, shape (bodies, 7) each."""
        way = _Way(self, start, end)
        pairs, margins = way.pairs, way.margins
        if not len(pairs):
            return NONE
        last = self.narrow(pairs, way.last[pairs], margins)
        first = self.narrow(pairs, way.first[pairs], margins, 0.0)
        allowed = SHALLOW * np.minimum(*self._widths[pairs].T)
        moved = way.moved[pairs].sum(axis=1)
        open_ones = np.flatnonzero((last.gaps < 0.0) | (first.gaps + last.gaps + 2.0 * allowed < moved))
        if not len(open_ones):
            return NONE
        chosen = pairs[open_ones]
        least = margins[open_ones] + way.bulges[chosen].sum(axis=1) - allowed[open_ones]
        by_last = self._apart(way, chosen, last.normals[open_ones]) >= least
        by_first = self._apart(way, chosen, first.normals[open_ones]) >= least
        is_over = last.gaps[open_ones] < 0.0
        is_known = np.where(is_over, by_last & (last.gaps[open_ones] > -np.inf), by_last | by_first)
        found = last.chosen(open_ones[is_known & is_over])
        rest = open_ones[~is_known]
        return found.and_also(self._advanced(way, rest, allowed, moved, last)) if len(rest) else found

    def _apart(self, way: _Way, pairs: IntArray, normals: FloatArray) -> FloatArray:
        """The lesser of n·x_b − n·x_a at both ends [m], for the points of a and b that are nearest along n."""
        ends = [
            -self._highest(pairs[:, 1], poses[pairs[:, 1]], -normals)
            - self._highest(pairs[:, 0], poses[pairs[:, 0]], normals)
            for poses in (way.first, way.last)
        ]
        return np.minimum(*ends)

    def _highest(self, pieces: IntArray, poses: FloatArray, n: FloatArray) -> FloatArray:
        """The largest n·x of the points of pieces [m], shape (k,)."""
        local = np.einsum("kji,kj->ki", np.asarray(euler.matrix(poses[:, 3:])), n)
        counts = self._counts[pieces]
        ends = np.cumsum(counts)
        number = np.repeat(np.arange(len(pieces)), counts)
        atoms = self._atoms[np.repeat(self._starts[pieces] - ends + counts, counts) + np.arange(ends[-1])]
        d = local[number]
        along = np.einsum("ij,ij->i", atoms[:, 4:7], d)
        heights = np.einsum("ij,ij->i", atoms[:, :3], d) + atoms[:, 3] * np.sqrt(np.maximum(0.0, 1.0 - along * along))
        highest = np.maximum.reduceat(heights, ends - counts) + self._growths[pieces]
        return np.einsum("ij,ij->i", poses[:, :3], n) + np.where(self._is_plane[pieces], 0.0, highest)

    def _advanced(self, way: _Way, open_ones: IntArray, allowed: FloatArray, moved: FloatArray, last: Cuts) -> Cuts:
        """Cuts of those pairs that touch before the end, by advancing each of them."""
        found = NONE
        parts = np.zeros(len(moved))
        for count in range(ADVANCES):
            now = parts[open_ones]
            poses = self._between(way.start, way.end, way.pairs[open_ones], now)
            at = self.narrow(way.pairs[open_ones], poses, way.margins[open_ones], now)
            touch = ((at.gaps < 0.0) & (now > 0.0)) | (at.gaps < -allowed[open_ones]) | (count == ADVANCES - 1)
            found = found.and_also(at.chosen(touch))
            open_ones, gaps = open_ones[~touch], at.gaps[~touch]
            parts[open_ones] += (np.maximum(gaps, 0.0) + allowed[open_ones]) / moved[open_ones]
            ended = parts[open_ones] >= 1.0
            found = found.and_also(last.chosen(open_ones[ended & (last.gaps[open_ones] < 0.0)]))
            open_ones = open_ones[~ended]
            if not len(open_ones):
                break
        return found

    def _between(self, start: FloatArray, end: FloatArray, pairs: IntArray, parts: FloatArray) -> FloatArray:
        """Poses of the solids of pairs, each at its own part of the way, shape (k, 2, 7)."""
        bodies = self.bodies[pairs].reshape(-1)
        poses = between(start[bodies], end[bodies], np.repeat(parts, 2))
        places = self._parts._places[self._solids[pairs].reshape(-1)]
        turned = euler.multiply(poses[:, 3:], places[:, 3:])
        found = np.hstack([poses[:, :3] + euler.rotate(poses[:, 3:], places[:, :3]), turned])
        found[:, 3:] /= np.linalg.norm(found[:, 3:], axis=1, keepdims=True)
        return found.reshape(-1, 2, 7)


class _Way:
    """Two poses of the bodies, the motion between them, and the pairs of pieces that may meet on the way."""

    def __init__(self, paths: Paths, start: FloatArray, end: FloatArray) -> None:
        self.start = with_ground(start)
        self.end = same_sides(self.start, with_ground(end))
        self.first, self.last = paths.placed(self.start[:-1]), paths.placed(self.end[:-1])
        turned = np.linalg.norm(self.end[:, 3:] - self.start[:, 3:], axis=1)
        angles = 4.0 * np.arcsin(np.minimum(1.0, 0.5 * turned))[paths.bodies]
        shifts = np.linalg.norm(self.end[:, :3] - self.start[:, :3], axis=1)[paths.bodies]
        self.moved = shifts + paths._reaches * angles  # of no point of a piece more [m]
        self.bulges = paths._reaches * angles * angles / 8.0
        pairs = paths._boxes.near(self.first, self.bulges + 0.5 * paths._most, self.last)
        pairs = pairs[self.moved[pairs].sum(axis=1) > 0.0]
        margins = paths.margins(pairs)
        chosen = margins > -np.inf
        self.pairs, self.margins = pairs[chosen], margins[chosen]


def between(start: FloatArray, end: FloatArray, parts: Any) -> FloatArray:
    """Poses at parts of the way: constant velocities, fixed axes of rotation; shape (n, 7) each, parts (n,) or one.

    Quaternions of both ends must not be opposite.
    """
    parts = np.broadcast_to(np.asarray(parts, dtype=np.float64).reshape(-1, 1), (len(start), 1))
    found = start + parts * (end - start)
    half = 2.0 * np.arcsin(np.minimum(1.0, 0.5 * np.linalg.norm(end[:, 3:] - start[:, 3:], axis=1)))
    turning = half > 1e-6  # below, a chord is the arc
    if turning.any():
        h, part = half[turning][:, None], parts[turning]
        a, b = start[turning, 3:], end[turning, 3:]
        found[turning, 3:] = (np.sin((1.0 - part) * h) * a + np.sin(part * h) * b) / np.sin(h)
    found[:, 3:] /= np.linalg.norm(found[:, 3:], axis=1, keepdims=True)
    return np.asarray(found)


def with_ground(coordinates: FloatArray) -> FloatArray:
    """Poses of the bodies, and then of the ground, which is body −1."""
    return np.concatenate([coordinates, IDENTITY])


def same_sides(start: FloatArray, end: FloatArray) -> FloatArray:
    """end with the sign of each quaternion that is nearer to that of start."""
    found = end.copy()
    found[:, 3:] *= np.where((start[:, 3:] * end[:, 3:]).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
    return found
