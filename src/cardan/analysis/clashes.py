"""When parts of a motion overlap, or are nearer than a clearance: not at samples, but at all times.

Two solids are compared in the axes of the first.  The pose of the second is a curve (:mod:`.tracks`), and on an
interval of time the coefficients of the curve bound how far any of its points moves from where it is in the middle:

    |Δx(t)| ≤ δ = max_k |x_k − x_m| + 2ρ |vec(p_m* ⊗ p_k)|/(|p_m| |p|),   and along a direction n only
    n·Δx(t) ≥ min_k n·(x_k − x_m) − 2ρ |vec(p_m* ⊗ p_k) × n_b|/(|p_m| |p|),

since a rotation with the vector part e of its quaternion moves a vector v by 2|e × v|; ρ is the radius of the solid
about the centre of its box, n_b is n in its axes.  The signed gap changes by no more than the points of a solid move.
So a gap in the middle, or planes that separate the boxes there, decide the whole interval, or it is halved
(conservative advancement [MirtichCanny1995], by bisection).  Intervals that remain when δ is below TOUCH touch.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from cardan.analysis import tracks
from cardan.analysis.clash_pairs import MOST_NAMED, TOUCH, LeftOut, Parts, chosen_pairs, left_out_lines, parts_of
from cardan.analysis.motion import Motion, MotionStatus
from cardan.analysis.output import _drawn
from cardan.calls import explains
from cardan.collide.pairs import piece_gaps
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.state import FloatArray

if TYPE_CHECKING:
    from cardan.analysis.simulation import Simulation

SWEPT: Final = 1.05  # of how far a centre moves: curves of single bodies and of pairs differ by errors of sixth order
MOST_ACTIVE: Final = 20_000  # intervals of one pair that are undecided at a time: then it is left undecided
GROUPED: Final = (64, 8)  # segments that are tried together first
AT_ONCE: Final = 2_000_000  # pairs times segments that are compared in one array
TIMED: Final = 1e-13  # [s] of the ends of a clash
CHECKED: Final = 4096  # gaps between two looks at the clock


class Clash(NamedTuple):
    """Two bodies that are nearer than the clearance from a time to another [s].

    ``gap`` [m]: the least, at ``time``; minus the depth, where they overlap.  ``place`` [m]: where, in world;
    ``normal``: from a to b.
    """

    a: str
    b: str
    start: float
    end: float
    time: float
    gap: float
    place: Triple
    normal: Triple

    @property
    def depth(self) -> float:
        """How far they overlap at most [m]; 0 where they are only near."""
        return max(0.0, -self.gap)

    def text(self) -> str:
        """One line of a report."""
        what = f"overlap by {self.depth:.6g} m" if self.gap < 0.0 else f"are {self.gap:.6g} m apart"
        at = ", ".join(f"{x:.6g}" for x in self.place)
        span = f"t = {self.start:.9g} … {self.end:.9g} s"
        return f"{self.a!r} – {self.b!r}: {span}, they {what} at t = {self.time:.9g} s, at ({at}) m"


class Undecided(NamedTuple):
    """Times [s] between which it was not decided whether two bodies are nearer than the clearance, and why."""

    a: str
    b: str
    start: float
    end: float
    reason: str

    def text(self) -> str:
        """One line of a report."""
        return f"{self.a!r} – {self.b!r}: undecided for t = {self.start:.9g} … {self.end:.9g} s: {self.reason}"


@explains()
@dataclass(frozen=True, slots=True)
class Clashes:
    """When which bodies are nearer than a clearance: ``for clash in clashes``, in the order of time.

    ``ok``: there is none, and all was decided.  ``status``: done, or stopped by the time limit or the keyboard.
    ``times`` [s]: first and last time.  ``pairs``: how many pairs of bodies were compared.  ``left_out``: what was not
    compared, and why.  ``undecided``: pairs and times that were not decided.
    ``error`` [m]: of the poses between the outputs; for a simulation it is estimated.  ``notes``: what else is to know.
    """

    found: tuple[Clash, ...]
    undecided: tuple[Undecided, ...]
    left_out: tuple[LeftOut, ...]
    status: MotionStatus
    times: tuple[float, float]
    pairs: int
    clearance: float
    error: float
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """No bodies are nearer than the clearance at any time."""
        return self.status is MotionStatus.DONE and not self.found and not self.undecided

    def __iter__(self) -> Iterator[Clash]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, k: int) -> Clash:
        return self.found[k]

    def text(self) -> str:
        """A line for each clash, what is undecided, and what was left out."""
        span = f"t = {self.times[0]:g} … {self.times[1]:g} s"
        near = f" or nearer than {self.clearance:g} m" if self.clearance else ""
        count = f"{len(self.found)} {'clash' if len(self.found) == 1 else 'clashes'}" if self.found else "no clash"
        lines = [f"{self.status}: {count}{near}, {self.pairs} pairs, {span}"]
        for group in (self.found, self.undecided):
            lines += [one.text() for one in group[:MOST_NAMED]]
            lines += [f"… and {len(group) - MOST_NAMED} more"] if len(group) > MOST_NAMED else []
        lines += left_out_lines(self.left_out)
        return "\n  ".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {name: getattr(self, name) for name in ("ok", "pairs", "clearance", "error")}
        return {
            **plain,
            "status": str(self.status),
            "times": list(self.times),
            "clashes": [{**one._asdict(), "depth": one.depth} for one in self.found],
            "undecided": [one._asdict() for one in self.undecided],
            "left_out": [one._asdict() for one in self.left_out],
            "notes": list(self.notes),
        }


def clashes(
    result: Motion | Simulation,
    pairs: Any,
    clearance: Any,
    mechanism: Any,
    max_seconds: float | None,
    progress: Callable[[float], None] | None,
) -> Clashes:
    """See :meth:`cardan.Motion.clashes`."""
    began = clock.perf_counter()
    c = check.number(clearance, "clearance")
    deadline = None if max_seconds is None else began + check.positive(max_seconds, "max_seconds")
    if progress is not None and not callable(progress):
        raise ModelError(f"progress is {progress!r}; it must be a function of the fraction done, from 0 to 1")
    drawing = _drawn(result, mechanism)._model.drawing
    parts = parts_of(drawing)
    if parts.names[:-1] != result.names:
        raise ModelError(f"mechanism {drawing.contents.name!r} has other bodies than this result; pass its own")
    if not len(result.times):
        raise ModelError(f"the result has no states to compare: {result.status} {result.reason}".rstrip())
    bodies, left_out = chosen_pairs(drawing, parts, pairs)
    _check_half_spaces(parts, bodies)
    first, last = float(np.min(result.times)), float(np.max(result.times))
    made = Clashes((), (), left_out, MotionStatus.DONE, (first, last), len(bodies), c, 0.0, _ended(result))
    if not len(bodies):
        return made
    try:
        track = tracks.track(result, parts.reaches()[:-1], deadline)
    except (tracks.Stopped, KeyboardInterrupt) as stop:
        status = getattr(stop, "status", MotionStatus.INTERRUPTED)
        reason = "it was stopped before any pair was compared"
        rest = [Undecided(parts.names[a], parts.names[b], first, last, reason) for a, b in bodies.tolist()]
        return replace(made, status=status, undecided=tuple(rest))
    search = _Search(parts, track, bodies, c, deadline, progress)
    made = search.run(made)
    unknown = [Undecided(parts.names[a], parts.names[b], *when) for when in track.unsolved for a, b in bodies.tolist()]
    return replace(made, error=track.error, undecided=(*made.undecided, *unknown))


def _check_half_spaces(parts: Parts, bodies: Any) -> None:
    """ModelError if a half-space moves: it has no bound of how far its points move."""
    wanted = set(np.unique(bodies).tolist()) - {len(parts.names) - 1}
    for solid, k in zip(parts.solids, parts.owners.tolist(), strict=True):
        if solid.is_half_space and k in wanted:
            raise ModelError(
                f"clashes: body {parts.names[k]!r} has a half-space; attach it to the ground, or a box in its place"
            )


def _ended(result: Motion | Simulation) -> tuple[str, ...]:
    return () if result.ok else (f"the result ended early, and later times were not compared: {result.reason}",)


class _Groups(NamedTuple):
    """Of groups of intervals: the first one of each, the group of each interval, and the one in the middle of each."""

    first: Any
    of: Any
    middle: Any


class _Active(NamedTuple):
    """Intervals to decide: pair, ends [s], coefficients of the relative pose, shape (n, 6, 7)."""

    pair: Any
    start: FloatArray
    end: FloatArray
    curve: FloatArray

    def chosen(self, mask: Any) -> _Active:
        return _Active(*(values[mask] for values in self))

    def groups(self, size: int) -> _Groups:
        """Up to that many intervals of one pair that follow each other together."""
        number = np.arange(len(self.pair))
        if size == 1:
            return _Groups(number, number, number)
        follows = np.zeros(len(number), dtype=bool)
        follows[1:] = (self.pair[1:] == self.pair[:-1]) & (self.start[1:] == self.end[:-1])
        run = np.maximum.accumulate(np.where(follows, 0, number))  # where the run of each begins
        first = np.flatnonzero((number - run) % size == 0)
        of = np.searchsorted(first, number, side="right") - 1
        last = np.append(first[1:], len(number))
        return _Groups(first, of, (first + last) // 2)

    def halves(self) -> _Active:
        """Both halves of each, by de Casteljau."""
        left, right = np.empty_like(self.curve), np.empty_like(self.curve)
        row = self.curve
        for k in range(6):
            left[:, k], right[:, 5 - k] = row[:, 0], row[:, -1]
            row = 0.5 * (row[:, 1:] + row[:, :-1])
        middle = 0.5 * (self.start + self.end)
        both = ((self.pair, self.pair), (self.start, middle), (middle, self.end), (left, right))
        return _Active(*(np.concatenate(two) for two in both))


class _Leaf(NamedTuple):
    """An interval in which two solids clash, or touch: its pair and ends, and the gap in the middle."""

    pair: int
    start: float
    end: float
    gap: float
    is_sure: bool


class _Units(NamedTuple):
    """The convex pieces of all solids: body, pose of the middle of its box in that body, middle in its own axes [m],
    half the edges of the box, radius about the middle, and the radius that rotations see, which is 0 of a ball.  Both
    radii are infinite of a half-space, so that it is the first of its pairs.
    ``error`` [m]: how far its surface is from that of the shape.
    """

    pieces: tuple[Any, ...]
    address: Any
    owner: Any
    frame: FloatArray
    middle: FloatArray
    half: FloatArray
    radius: FloatArray
    spin: FloatArray
    error: FloatArray

    @staticmethod
    def of(parts: Parts) -> _Units:
        every = [(piece, k) for k, solid in enumerate(parts.solids) for piece in solid.pieces]
        pieces = tuple([piece for piece, _ in every])
        number = np.array([k for _, k in every], dtype=np.int64)
        middle = np.array([piece.middle for piece in pieces]).reshape(-1, 3)
        half = 0.5 * np.array([piece.high - piece.low for piece in pieces]).reshape(-1, 3)
        is_plane = np.array([solid.is_half_space for solid in parts.solids], dtype=bool)[number]
        radius = np.where(is_plane, np.inf, [piece.radius for piece in pieces])
        frame = parts.frames[number].copy()
        frame[:, :3] += euler.rotate(frame[:, 3:], middle)
        spin = np.where([piece.is_ball for piece in pieces] & ~is_plane, 0.0, radius)
        error = np.array([solid.error for solid in parts.solids])[number]
        address = np.concatenate([np.empty(0, dtype=np.int64), *[solid.addresses for solid in parts.solids]])
        return _Units(pieces, address, parts.owners[number], frame, middle, half, radius, spin, error)


class _Search:
    """The clashes of solids on a track."""

    def __init__(
        self,
        parts: Parts,
        track: tracks.Track,
        bodies: Any,
        clearance: float,
        deadline: float | None,
        progress: Callable[[float], None] | None,
    ) -> None:
        self._parts, self._bodies, self._clearance = parts, bodies, clearance
        self._deadline, self._progress = deadline, progress
        if len(track.times) == 1:  # one pose, for no time
            t, q, v, a = (np.repeat(x, 2, axis=0) for x in (track.times, track.poses, track.rates, track.accelerations))
            track = tracks.Track(t, q, v, a)
        self._times, self._h = track.times, np.diff(track.times)
        self._units = _Units.of(parts)
        self._moved = _carried(track, self._units.owner, self._units.frame)
        self._pairs, self._of = np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64)
        self._touch = self._error = np.empty(0)
        self._leaves: list[_Leaf] = []
        self._lost: list[tuple[int, float, float, str]] = []

    def run(self, made: Clashes) -> Clashes:
        """All clashes, or those found until it was stopped."""
        status = MotionStatus.DONE
        active = pending = _Active(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), np.empty((0, 6, 7)))
        try:
            active = pending = self._begin()
            total = float((active.end - active.start).sum())
            for size in (*GROUPED, 1) if len(active.pair) else ():
                active = pending = self._decided(pending, size)
            while len(active.pair):
                pending = active.halves()
                active = self._decided(pending, 1)
                if self._progress is not None:
                    left = float((active.end - active.start).sum())
                    self._progress(1.0 - left / total if total else 1.0)
            if self._progress is not None:
                self._progress(1.0)
        except tracks.Stopped as stop:
            status, active = stop.status, pending
        except KeyboardInterrupt:
            status, active = MotionStatus.INTERRUPTED, pending
        for pair, start, end in zip(active.pair.tolist(), active.start.tolist(), active.end.tolist(), strict=True):
            self._lost.append((pair, start, end, "it was stopped"))
        return replace(made, status=status, found=self._clashes(), undecided=self._undecided())

    def _begin(self) -> _Active:
        """The pairs of pieces, and the segments of time, in which their balls come near each other."""
        u = self._units
        q, v, dv = (x[..., :3] for x in self._moved)
        c = tracks.curves(q, v, dv, self._h)
        middle = np.einsum("k,tskn->tsn", tracks.MIDDLE, c)
        radius = SWEPT * np.linalg.norm(c - middle[:, :, None], axis=-1).max(axis=-1) + u.radius
        count = len(self._parts.names)
        low, high = np.full((len(self._h), count, 3), np.inf), np.full((len(self._h), count, 3), -np.inf)
        for k, owner in enumerate(u.owner.tolist()):  # boxes of bodies in world
            np.minimum(low[:, owner], middle[:, k] - radius[:, k, None], out=low[:, owner])
            np.maximum(high[:, owner], middle[:, k] + radius[:, k, None], out=high[:, owner])
        own = [np.flatnonzero(u.owner == k) for k in range(count)]
        found: list[tuple[Any, Any]] = []
        pairs, of, total = [], [], 0
        for k, near in self._near_bodies(low, high):
            first, second = (x.ravel() for x in np.meshgrid(*(own[i] for i in self._bodies[k]), indexing="ij"))
            at_once = max(1, AT_ONCE // len(first))
            for t in (near[i : i + at_once] for i in range(0, len(near), at_once)):
                apart = np.linalg.norm(middle[t][:, first] - middle[t][:, second], axis=-1)
                row, column = np.nonzero(apart - radius[t][:, first] - radius[t][:, second] <= self._clearance)
                found.append((t[row], column + total))
            pairs.append(np.column_stack([first, second]))
            of.append(np.full(len(first), k))
            total += len(first)
        if not found:
            return _Active(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), np.empty((0, 6, 7)))
        self._pairs, self._of = np.concatenate(pairs), np.concatenate(of)
        swap = u.spin[self._pairs[:, 0]] < u.spin[self._pairs[:, 1]]  # the second is the one that spins less
        self._pairs[swap] = self._pairs[swap, ::-1]
        a, b = self._pairs.T
        sizes = np.where(np.isfinite(u.radius), u.radius, 0.0)
        self._touch, self._error = TOUCH * (sizes[a] + sizes[b]), u.error[a] + u.error[b]
        t, p = (np.concatenate(x) for x in zip(*found, strict=True))
        order = np.lexsort((t, p))
        t, p = t[order], p[order]
        return _Active(p, self._times[t], self._times[t + 1], self._curves(p, t))

    def _near_bodies(self, low: FloatArray, high: FloatArray) -> Iterator[tuple[int, Any]]:
        """Pairs of bodies, and the segments in which their boxes, shape (segments, bodies, 3), come near each other."""
        at_once = max(1, AT_ONCE // len(self._h))
        for start in range(0, len(self._bodies), at_once):
            a, b = self._bodies[start : start + at_once].T
            is_near = np.ones((len(self._h), len(a)), dtype=bool)
            for k in range(3):
                is_near &= low[:, a, k] - high[:, b, k] <= self._clearance
                is_near &= low[:, b, k] - high[:, a, k] <= self._clearance
            for k in np.flatnonzero(is_near.any(axis=0)).tolist():
                yield start + k, np.flatnonzero(is_near[:, k])

    def _curves(self, pair: Any, segment: Any) -> FloatArray:
        """Coefficients of the second solid as seen from the first, shape (n, 6, 7)."""
        ends = np.stack([segment, segment + 1])
        a, b = self._pairs[pair].T
        seen = _seen(*([x[ends, k] for x in self._moved] for k in (a, b)))
        return tracks.pose_curves(*seen, self._h[segment][None])[0]

    # -- bounds --------------------------------------------------------------------------------------------------------

    def _decided(self, active: _Active, size: int) -> _Active:
        """Intervals that could not be decided, neither alone nor together with up to ``size`` neighbours."""
        group = active.groups(size)
        pair, start = active.pair[group.first], active.start[group.first]
        end = active.end[np.append(group.first[1:], len(active.end)) - 1] if len(pair) else start
        c, touch = self._clearance, self._touch[pair]
        move = _Moves(active.curve, self._units.spin[self._pairs[active.pair, 1]], group)
        near = self._boxes(pair, move) <= c - touch
        gap, error, normal = np.full(len(pair), np.inf), np.zeros(len(pair)), np.zeros((len(pair), 3))
        gap[near], error[near], normal[near] = self._gaps(pair[near], move.middle[near])
        is_clear = ~near | (gap - error + move.along(normal) > c - touch)
        is_clash = gap + error + move.farthest < c
        is_over = (move.farthest <= 0.5 * touch) | (0.5 * (start + end) <= start)
        ends = ~is_clear & (is_clash | is_over)
        columns = (pair, start, end, gap, gap + error < c - touch)
        self._leaves += map(_Leaf._make, zip(*(x[ends].tolist() for x in columns), strict=True))
        rest = active.chosen((~is_clear & ~ends)[group.of])
        count = np.bincount(rest.pair, minlength=1)
        if (count > MOST_ACTIVE + len(self._h)).any():
            many = count > MOST_ACTIVE + len(self._h)
            for k in np.flatnonzero(many).tolist():
                own = rest.pair == k
                reason = "they touch, or nearly touch, for long"
                self._lost.append((k, float(rest.start[own].min()), float(rest.end[own].max()), reason))
            rest = rest.chosen(~many[rest.pair])
        return rest

    def _boxes(self, pair: Any, move: _Moves) -> FloatArray:
        """A lower bound of the gap of each group, from balls, and from planes between the boxes."""
        a, b = self._pairs[pair].T
        z = self._units
        x, A = move.middle[:, :3], move.axes
        low = np.linalg.norm(x, axis=1) - z.radius[a] - z.radius[b] - move.far_centre
        for k in range(6):
            n = np.broadcast_to(np.eye(3)[k], x.shape) if k < 3 else A[:, :, k - 3]
            n = n * np.where((n * x).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
            n_b = np.einsum("ti,tij->tj", n, A)
            apart = (n * x).sum(axis=1) - (np.abs(n) * z.half[a]).sum(axis=1) - (np.abs(n_b) * z.half[b]).sum(axis=1)
            low = np.maximum(low, apart + move.along(n))
        plane = np.isinf(z.radius[a])  # all boxes are beside a half-space; above it, if its own plane separates them
        if plane.any():
            n = np.broadcast_to(np.eye(3)[2], x.shape)
            apart = x[:, 2] - (np.abs(A[:, 2]) * z.half[b]).sum(axis=1) + move.along(n)
            low[plane] = apart[plane]
        return low

    def _gaps(self, pair: Any, poses: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Signed gaps [m], their errors [m] and normals in the axes of the first piece."""
        gap, error, normal = np.empty(len(pair)), np.empty(len(pair)), np.empty((len(pair), 3))
        for first in range(0, len(pair), CHECKED):
            if self._deadline is not None and clock.perf_counter() > self._deadline:
                raise tracks.Stopped(MotionStatus.TIME_LIMIT)
            rows = slice(first, first + CHECKED)
            found = self._contacts(pair[rows], poses[rows])
            gap[rows], normal[rows] = found["gap"], found["normal"]
            error[rows] = found["error"] + self._error[pair[rows]]
        return gap, error, normal

    def _contacts(self, pair: Any, poses: FloatArray) -> Any:
        """In the axes of the first piece, from the middle of its box."""
        u = self._units
        a, b = self._pairs[pair].T
        placed = np.zeros((len(pair), 2, 7))
        placed[:, 0, :3], placed[:, 0, 3] = -u.middle[a], 1.0
        placed[:, 1, :3], placed[:, 1, 3:] = poses[:, :3] - euler.rotate(poses[:, 3:], u.middle[b]), poses[:, 3:]
        return piece_gaps(u.address[a], u.address[b], placed)

    def _gap(self, pair: int, pose: FloatArray) -> Any:
        return self._contacts(np.array([pair]), pose[None])[0]

    # -- results -------------------------------------------------------------------------------------------------------

    def _clashes(self) -> tuple[Clash, ...]:
        """Neighbouring intervals together, with their exact ends, by pairs of bodies."""
        by_bodies: dict[int, list[Clash]] = {}
        for pair, run in _runs(self._leaves):
            if any(leaf.is_sure for leaf in run):
                by_bodies.setdefault(int(self._of[pair]), []).append(self._clash(pair, run))
        found = []
        for own in by_bodies.values():
            merged: list[Clash] = []
            for one in sorted(own, key=lambda clash: clash.start):
                if merged and one.start <= merged[-1].end:
                    last = merged.pop()
                    deepest = min(last, one, key=lambda clash: clash.gap)
                    one = deepest._replace(start=last.start, end=max(last.end, one.end))
                merged.append(one)
            found += merged
        return tuple(sorted(found, key=lambda clash: (clash.start, clash.a, clash.b)))

    def _undecided(self) -> tuple[Undecided, ...]:
        found: dict[tuple[int, str], tuple[float, float]] = {}
        for pair, start, end, reason in self._lost:
            key = int(self._of[pair]), reason
            first, last = found.get(key, (start, end))
            found[key] = min(first, start), max(last, end)
        names = self._parts.names
        return tuple(
            Undecided(names[self._bodies[k, 0]], names[self._bodies[k, 1]], start, end, reason)
            for (k, reason), (start, end) in sorted(found.items())
        )

    def _clash(self, pair: int, run: list[_Leaf]) -> Clash:
        """Its exact ends, and the least gap."""
        curve: dict[int, FloatArray] = {}

        def pose(t: float) -> FloatArray:
            k, s = self._segment(t)
            if k not in curve:
                curve[k] = self._curves(np.array([pair]), np.array([k]))[0]
            q = tracks.basis(np.array(s)) @ curve[k]
            q[3:] /= np.linalg.norm(q[3:])
            return q

        def beyond(t: float) -> float:
            return float(self._gap(pair, pose(t))["gap"]) - self._clearance

        inside = [0.5 * (leaf.start + leaf.end) for leaf in run if leaf.gap < self._clearance]
        start = self._end(beyond, run[0].start, inside[0], float(self._times[0]))
        end = self._end(beyond, run[-1].end, inside[-1], float(self._times[-1]))
        k = min(range(len(run)), key=lambda i: run[i].gap)
        least = 0.5 * (run[k].start + run[k].end)
        low, high = max(start, run[max(k - 1, 0)].start), min(end, run[min(k + 1, len(run) - 1)].end)
        if high > low:
            from scipy.optimize import minimize_scalar  # type: ignore[import-untyped, unused-ignore]

            options = {"xatol": 1e-9 * (high - low)}
            better = minimize_scalar(beyond, bounds=(low, high), method="bounded", options=options)
            least = float(better.x) if better.fun < run[k].gap - self._clearance else least
        there = self._gap(pair, pose(least))
        return self._in_world(pair, (start, end, least), there)

    def _segment(self, t: float) -> tuple[int, float]:
        """The segment of a time [s], and s = (t − t₀)/h in it."""
        k = min(max(int(np.searchsorted(self._times, t, side="right")) - 1, 0), len(self._h) - 1)
        return k, float((t - self._times[k]) / self._h[k]) if self._h[k] > 0.0 else 0.0

    def _end(self, beyond: Callable[[float], float], outer: float, inner: float, limit: float) -> float:
        """The time between a time within a clash and one at its border at which it begins or ends."""
        from scipy.optimize import brentq

        sign = 1.0 if outer >= inner else -1.0
        step = max(TIMED, 1e-3 * abs(outer - inner))
        while beyond(outer) < 0.0:  # the border is known to TOUCH only
            if sign * (limit - outer) <= 0.0:
                return limit
            outer = min(outer + step, limit) if sign > 0.0 else max(outer - step, limit)
            step *= 2.0
        return float(brentq(beyond, inner, outer, xtol=TIMED, rtol=8.9e-16)) if outer != inner else outer

    def _in_world(self, pair: int, when: tuple[float, float, float], there: Any) -> Clash:
        """The clash in world axes, in the order of the bodies."""
        a, b = self._pairs[pair]
        t = when[2]
        k, s = self._segment(t)
        q, v, dv = (x[k : k + 2, a] for x in self._moved)
        q = tracks.basis(np.array(s)) @ tracks.pose_curves(q, v, dv, self._h[k : k + 1])[0]
        A = euler.as_matrix(q[3:])
        place = q[:3] + A @ there["points"].reshape(2, 3).mean(axis=0)
        first, second = self._units.owner[a], self._units.owner[b]
        normal = (1.0 if first < second else -1.0) * (A @ there["normal"])
        names = self._parts.names
        where = tuple(place.tolist()), tuple(normal.tolist())
        return Clash(names[min(first, second)], names[max(first, second)], *when, float(there["gap"]), *where)


class _Moves:
    """How far the second piece moves from its pose in the middle of each group of intervals; spin [m]: its radius."""

    __slots__ = ("_first", "_moved", "_of", "_turned", "axes", "far_centre", "farthest", "middle")

    def __init__(self, curve: FloatArray, spin: FloatArray, group: _Groups) -> None:
        self._first, self._of = group.first, group.of
        middle = np.einsum("k,tkn->tn", tracks.MIDDLE, curve[group.middle])
        middle[:, 3:] /= np.linalg.norm(middle[:, 3:], axis=1, keepdims=True)
        self.middle, self.axes = middle, euler.matrix(middle[:, 3:])
        p = middle[group.of, 3:]
        self._moved = curve[:, :, :3] - middle[group.of, None, :3]
        along = np.einsum("tn,tkn->tk", p, curve[:, :, 3:])  # |p| is no less, at any time
        sign = np.where(along.sum(axis=1) < 0.0, -1.0, 1.0)
        least = (sign[:, None] * along).min(axis=1)
        about = euler.multiply(euler.conjugate(p)[:, None], curve[:, :, 3:])[..., 1:]
        with np.errstate(divide="ignore"):
            factor = np.where(least > 0.0, 2.0 * spin / np.maximum(least, 1e-300), 1e300)
        factor = np.where(spin > 0.0, np.minimum(factor, 1e300), 0.0)
        self._turned = factor[:, None, None] * about
        distance = np.linalg.norm(self._moved, axis=2)
        self.far_centre = self._most(distance.max(axis=1))
        far = np.minimum(np.linalg.norm(self._turned, axis=2), 2.0 * spin[:, None])  # no point moves farther
        self.farthest = self._most((distance + far).max(axis=1))

    def _most(self, values: FloatArray) -> FloatArray:
        found: FloatArray = np.maximum.reduceat(values, self._first) if len(values) else values
        return found

    def along(self, n: FloatArray) -> FloatArray:
        """The least n·Δx [m] of any point; n: unit vectors in the axes of the first piece, shape (groups, 3)."""
        n_b = np.einsum("ti,tij->tj", n, self.axes)[self._of]
        turned = np.linalg.norm(np.cross(self._turned, n_b[:, None]), axis=2)
        return -self._most((turned - np.einsum("tkn,tn->tk", self._moved, n[self._of])).max(axis=1))


def _carried(track: tracks.Track, owner: Any, frame: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Poses, rates and their derivatives of frames of bodies, shape (times, frames, 7 or 6).

    With c in body axes:  ṙ + A(ω × c),  r̈ + A(ω̇ × c + ω × (ω × c)).
    """
    r_c, axes = frame[:, :3], frame[:, 3:]
    q, v, a = (x[:, owner] for x in (track.poses, track.rates, track.accelerations))
    A = euler.matrix(q[..., 3:])
    w, dw = v[..., 3:], a[..., 3:]
    arm = np.cross(w, r_c)
    back = euler.matrix(euler.conjugate(axes))

    def carry(x: FloatArray, y: FloatArray, turning: FloatArray) -> FloatArray:
        return np.concatenate([x + np.einsum("tsij,tsj->tsi", A, y), turning], axis=-1)

    p = euler.multiply(q[..., 3:], np.broadcast_to(axes, q[..., 3:].shape))
    turned = [np.einsum("sij,tsj->tsi", back, x) for x in (w, dw)]
    poses = carry(q[..., :3], np.broadcast_to(r_c, w.shape), p)
    return poses, carry(v[..., :3], arm, turned[0]), carry(a[..., :3], np.cross(dw, r_c) + np.cross(w, arm), turned[1])


def _seen(one: list[FloatArray], two: list[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pose, rates and their derivatives of the second frame in the axes of the first, shape (…, 7 or 6).

    With d = r_b − r_a and u = A_aᵀ ḋ:  x = A_aᵀ d,  ẋ = u − ω_a × x,
    ẍ = A_aᵀ d̈ − ω̇_a × x + ω_a × (ω_a × x) − 2 ω_a × u;
    with A = A_aᵀ A_b and s = Aᵀ ω_a:  ω = ω_b − s,  ω̇ = ω̇_b − Aᵀ ω̇_a + ω × s.
    """
    (qa, va, aa), (qb, vb, ab) = one, two
    back = euler.matrix(euler.conjugate(qa[..., 3:]))
    d = [np.einsum("...ij,...j->...i", back, (y - x)[..., :3]) for x, y in zip(one, two, strict=True)]
    w, dw = va[..., 3:], aa[..., 3:]
    arm = np.cross(w, d[0])
    p = euler.multiply(euler.conjugate(qa[..., 3:]), qb[..., 3:])
    into_b = euler.matrix(euler.conjugate(p))
    s, ds = (np.einsum("...ij,...j->...i", into_b, x) for x in (w, dw))
    turning = vb[..., 3:] - s
    x = np.concatenate([d[0], p], axis=-1)
    rate = np.concatenate([d[1] - arm, turning], axis=-1)
    ddx = d[2] - np.cross(dw, d[0]) + np.cross(w, arm) - 2.0 * np.cross(w, d[1])
    return x, rate, np.concatenate([ddx, ab[..., 3:] - ds + np.cross(turning, s)], axis=-1)


def _runs(leaves: list[_Leaf]) -> Iterator[tuple[int, list[_Leaf]]]:
    """Intervals of one pair that follow each other."""
    run: list[_Leaf] = []
    for leaf in sorted(leaves):
        if run and (leaf.pair != run[-1].pair or leaf.start != run[-1].end):
            yield run[0].pair, run
            run = []
        run.append(leaf)
    if run:
        yield run[0].pair, run
