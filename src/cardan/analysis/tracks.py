"""Poses between the outputs of a result: a polynomial of fifth degree for each body and each pair of neighbours.

Let f be r or p of a body (or of one shape as seen from another), with f, ḟ, f̈ known at both ends of a segment of length
h.  In Bernstein's form f(s) = Σ B_k(s) c_k, s = (t − t₀)/h, with

    c₀ = f₀,  c₁ = c₀ + h ḟ₀/5,  c₂ = c₀ + 2h ḟ₀/5 + h² f̈₀/20,   and the same backwards from f₁,

and p(s)/|p(s)| is the orientation.  A curve lies within the convex hull of its c_k, so maxima of convex functions over
the c_k bound those over the segment: no sample is needed.  The error is f⁽⁶⁾ h⁶ s³(1 − s)³/720.

For a simulation these curves are the motion between outputs.  A driven motion is solved again within the segments, at
s = PART, until the curves agree with it to FOLLOWED.  It is not the middle, where errors vanish if the motion is
symmetric about it.  These times then are ends of shorter segments, whose error is less by (1 − PART)⁶ or more.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cardan.analysis.motion import Motion
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system.state import FloatArray, State

if TYPE_CHECKING:
    from cardan.analysis.simulation import Simulation

_move = LazyModule("cardan.analysis.move")

FOLLOWED: Final = 1e-9  # of the extent: distance of a curve from the motion at s = PART, at most
STAYED: Final = 0.7  # of the error before: one that falls by less stays.  A kink of a driver divides it by 1.6 or more.
NOISY: Final = 1e-6  # of the extent: a smaller error that stays may be noise of the states, as near a dead point
MOST_STAYS: Final = 2  # divisions in a row after which it is
PART: Final = 0.4
SHORTENED: Final = 16.0  # what division of a segment divides this distance by, at least; (1 − PART)⁻⁶ = 21 in the limit
MOST_ROTATION: Final = 1.5  # rad of a body in a segment: beyond, the ends do not tell how it turned
LEAST_SEGMENT: Final = 1e-12  # of the time span: shorter segments are not divided, as at the corner of a driver
BINOMIAL: Final = np.array([1.0, 5.0, 10.0, 10.0, 5.0, 1.0])
MIDDLE: Final = BINOMIAL / 32.0  # B_k(1/2)
REST: Final = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])  # the pose of the ground


@dataclass(frozen=True, slots=True)
class Track:
    """Poses and rates at increasing times; ``error`` [m]: of what is between them, as far as it is known.

    ``poses``: r [m] and p, shape (times, bodies + 1, 7).  ``rates``, ``accelerations``: (ṙ in world, ω in body axes)
    and their derivatives, shape (times, bodies + 1, 6).  The last body is the ground.
    """

    times: FloatArray
    poses: FloatArray
    rates: FloatArray
    accelerations: FloatArray
    error: float = 0.0
    unsolved: tuple[tuple[float, float, str], ...] = ()  # times between which a motion is not known, and why


def track(result: Motion | Simulation, reaches: FloatArray, deadline: float | None) -> Track:
    """The motion of all bodies; reaches [m]: of the shapes about the origin of each, shape (bodies,), 0 without one."""
    if isinstance(result, Motion):
        return _Followed(result, reaches, deadline).track()
    q, (v, a) = result._coordinates, result._origin_rates
    found = Track(result.times, _with_ground(q, REST), _with_ground(v), _with_ground(a))
    turned = rotations(found).max(axis=1, initial=0.0) if len(found.times) > 1 else np.zeros(0)
    if (turned > MOST_ROTATION).any():
        k = int(turned.argmax())
        raise ModelError(
            f"between the outputs at t = {found.times[k]:g} s and {found.times[k + 1]:g} s a body turns by about "
            f"{turned[k]:.2g} rad, so its poses in between are not known; simulate with more outputs: times="
        )
    return replace(found, error=_estimate(found, reaches))


def curves(f: FloatArray, rate: FloatArray, acceleration: FloatArray, h: FloatArray) -> FloatArray:
    """Bernstein coefficients between neighbours, shape (times − 1, …, 6, n), of values of shape (times, …, n).

    h [s]: between the times, shape (times − 1, …) with as many dimensions as differ.
    """
    h = h.reshape(*h.shape, *[1] * (f.ndim - h.ndim))
    first, last = f[:-1], f[1:]
    v0, v1 = h / 5.0 * rate[:-1], h / 5.0 * rate[1:]
    a0, a1 = h * h / 20.0 * acceleration[:-1], h * h / 20.0 * acceleration[1:]
    inner = (first + v0, first + 2.0 * v0 + a0, last - 2.0 * v1 + a1, last - v1)
    return np.stack([first, *inner, last], axis=-2)


def pose_curves(poses: FloatArray, rates: FloatArray, accelerations: FloatArray, h: FloatArray) -> FloatArray:
    """Coefficients of r and p, shape (times − 1, …, 6, 7), from poses (…, 7) and their rates (…, 6) in body axes."""
    p, w, dw = poses[..., 3:], rates[..., 3:], accelerations[..., 3:]
    dp = euler.rate_from_body(p, w)
    ddp = euler.rate_from_body(p, dw) - 0.25 * (w * w).sum(axis=-1, keepdims=True) * p
    made = np.empty((len(poses) - 1, *poses.shape[1:-1], 6, 7))
    made[..., :3] = curves(poses[..., :3], rates[..., :3], accelerations[..., :3], h)
    opposite = (p[:-1] * p[1:]).sum(axis=-1) < 0.0  # p and −p are one orientation: the nearer one is meant
    sign = np.where(opposite, -1.0, 1.0)[..., None, None]
    turned = curves(p, dp, ddp, h)
    made[..., :3, 3:], made[..., 3:, 3:] = turned[..., :3, :], sign * turned[..., 3:, :]
    return made


def rotations(found: Track) -> FloatArray:
    """About how far each body turns from each time to the next [rad], shape (times − 1, bodies + 1)."""
    w = np.linalg.norm(found.rates[..., 3:], axis=-1)
    by_rates = np.diff(found.times)[:, None] * np.maximum(w[:-1], w[1:])
    p = found.poses[..., 3:]
    by_poses = 2.0 * np.arccos(np.minimum(np.abs((p[:-1] * p[1:]).sum(axis=-1)), 1.0))
    return np.maximum(by_rates, by_poses)


def distances(a: FloatArray, b: FloatArray, extent: float) -> FloatArray:
    """How far apart two poses of each body are [m], as errors of curves, shape (…, bodies).

    |Δr| + 64 |Δp| extent/2: p turns by half the angle of a point that goes round, so its error of sixth order is 2⁻⁶ of
    that of the point, which may belong to another body that is seen from this one.  Δp includes the error of |p|:
    what is along p in one place is across it in another.
    """
    p, q = a[..., 3:], b[..., 3:]
    turned = np.minimum(np.linalg.norm(p - q, axis=-1), np.linalg.norm(p + q, axis=-1))
    return np.linalg.norm(a[..., :3] - b[..., :3], axis=-1) + 32.0 * extent * turned


def extent_of(poses: FloatArray, reaches: FloatArray) -> float:
    """Size of what bodies with shapes pass through [m]; poses: shape (times, bodies, 7)."""
    r = poses[:, reaches > 0.0, :3].reshape(-1, 3)
    return float(np.ptp(r, axis=0).max() if len(r) else 0.0) + 2.0 * float(reaches.max(initial=0.0))


def _with_ground(values: FloatArray, rest: FloatArray | float = 0.0) -> FloatArray:
    made = np.empty((values.shape[0], values.shape[1] + 1, values.shape[2]))
    made[:, :-1], made[:, -1] = values, rest
    return made


def _estimate(found: Track, reaches: FloatArray) -> float:
    """The error of the curves [m], from those over two segments each, which miss the output between them."""
    if len(found.times) < 3:
        return 0.0
    chosen, extent = reaches > 0.0, extent_of(found.poses[:, :-1], reaches)
    largest = 0.0
    for first in (0, 1):
        rows = slice(first, None, 2)
        t = found.times[rows]
        if len(t) < 2:
            continue
        c = pose_curves(found.poses[rows], found.rates[rows], found.accelerations[rows], np.diff(t))[:, :-1][:, chosen]
        between = found.times[first + 1 :: 2][: len(c)]
        s = (between - t[:-1]) / np.diff(t)
        made = np.einsum("tk,tbkn->tbn", basis(s), c)
        true = found.poses[first + 1 :: 2][: len(c), :-1][:, chosen]
        largest = max(largest, float(distances(made, true, extent).max(initial=0.0)))
    return largest / SHORTENED


def basis(s: FloatArray) -> FloatArray:
    """B_k(s), shape (…, 6)."""
    k = np.arange(6)
    return BINOMIAL * s[..., None] ** k * (1.0 - s[..., None]) ** (5 - k)


class _Followed:
    """A driven motion that is solved again where its curves are not exact."""

    def __init__(self, motion: Motion, reaches: FloatArray, deadline: float | None) -> None:
        self._motion, self._reaches, self._deadline = motion, reaches, deadline
        self._states: list[State] = sorted(motion.states, key=lambda state: state.time)
        self._unsolved: list[tuple[float, float, str]] = []
        self._error = 0.0
        self._extent = extent_of(np.array([state.coordinates for state in self._states]), reaches)

    def track(self) -> Track:
        """All states, with those in between that are needed."""
        span = self._states[-1].time - self._states[0].time
        first = range(len(self._states) - 1) if self._reaches.any() else ()
        pending = dict.fromkeys(
            first, (np.inf, 0)
        )  # by segment: the error before it was divided, and how often it stayed
        while pending:
            found: dict[int, State] = {}
            for run in _runs(list(pending)):
                found |= self._within(run)
            errors = self._errors(found)
            divided: dict[int, tuple[float, int]] = {}
            states: list[State] = []
            for k, state in enumerate(self._states):
                states.append(state)
                if k not in found:
                    continue
                states.append(found[k])
                before, stays = pending[k]
                stays = stays + 1 if STAYED * before < errors[k] < NOISY * self._extent else 0
                is_short = found[k].time - state.time < LEAST_SEGMENT * span or stays >= MOST_STAYS
                if errors[k] <= FOLLOWED * self._extent or is_short:
                    self._error = max(self._error, errors[k] if is_short else errors[k] / SHORTENED)
                else:
                    divided |= dict.fromkeys((len(states) - 2, len(states) - 1), (errors[k], stays))
            self._states, pending = states, divided
        return replace(_rows(self._states), error=self._error, unsolved=tuple(self._unsolved))

    def _within(self, run: list[int]) -> dict[int, State]:
        """States within neighbouring segments, at s = PART, by segment."""
        states = self._states
        times = [states[run[0]].time, *[states[k].time + PART * (states[k + 1].time - states[k].time) for k in run]]
        left = None if self._deadline is None else max(1e-9, self._deadline - clock.perf_counter())
        again = _move.move(
            self._motion._system, times, states[run[0]], tolerance=1e-12, max_seconds=left, progress=None
        )
        if not again.ok:
            if again.status in ("interrupted", "time limit"):
                raise Stopped(again.status)
            first, last = states[run[0]].time, states[run[-1] + 1].time
            self._unsolved.append((first, last, f"the motion could not be solved again there: {again.reason}"))
        return dict(zip(run, again.states[1:], strict=False))

    def _errors(self, found: dict[int, State]) -> dict[int, float]:
        """Distance of the curves from states within [m], by segment; infinite after large turns."""
        chosen = np.flatnonzero(self._reaches > 0.0)
        rows, ks = _rows(self._states), list(found)
        own = [x[:, chosen] for x in (rows.poses, rows.rates, rows.accelerations)]
        c = pose_curves(own[0], own[1], own[2], np.diff(rows.times))[ks]
        true = np.array([found[k].coordinates[chosen] for k in ks]).reshape(len(ks), len(chosen), 7)
        off = distances(np.einsum("k,tbkn->tbn", basis(np.array(PART)), c), true, self._extent)
        off[rotations(rows)[:, chosen][ks] > MOST_ROTATION] = np.inf
        return dict(zip(ks, off.max(axis=1, initial=0.0).tolist(), strict=True))


class Stopped(Exception):
    """A search that was stopped; ``status``: by what."""

    def __init__(self, status: Any) -> None:
        super().__init__(str(status))
        self.status = status


def _rows(states: list[State]) -> Track:
    q, v, a = (np.array([getattr(s, word) for s in states]) for word in ("coordinates", "velocities", "accelerations"))
    times = np.array([state.time for state in states])
    return Track(times, _with_ground(q, REST), _with_ground(v), _with_ground(a))


def _runs(numbers: list[int]) -> list[list[int]]:
    """Neighbouring numbers together."""
    found: list[list[int]] = []
    for k in numbers:
        if found and found[-1][-1] == k - 1:
            found[-1].append(k)
        else:
            found.append([k])
    return found
