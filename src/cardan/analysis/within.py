"""What happens between the two ends of a step: limits that are exceeded there, and whole turns that are miscounted.

A step of a motion is judged at its end.  A coordinate may have been beyond a bound meanwhile, and be back: so the step
is followed along the curve between its ends (:mod:`cardan.analysis.curve`), in PARTS parts.  There every limited
coordinate has a value, and every equation a residual, which tells how far the curve is from the motion.  A cam's hump
that neither end knows of is a large one, and then the step is too long.  Where a coordinate comes near to a bound, its
extreme is sought; if the bound is exceeded there, or might be for all the residual says, the step is to end at the
extreme, where Newton's iteration decides.

The angle of a vector about an axis is that of its projection w, |w| = ρ ≤ 1, and changes by half a turn as w goes
through zero.  In a step w moves by no more than its bodies turn, Θ.  To get round zero the other way it would have to
move by ρ₀ + ρ₁; so as long as Θ < ρ₀ + ρ₁ the nearest of all angles is the right one.  Angles of joints have ρ = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from cardan.analysis.curve import Curve, End
from cardan.analysis.limits import limit_rows
from cardan.analysis.motion import ARC
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

PARTS: Final = 20  # of a step, which is 0.035 rad of what turns most
FINE: Final = 200  # parts where there are couplers or primitives of the user's own, whose graphs may have any shape
RESOLVED: Final = 1e-5  # rad, lengths in L: residual on the curve, above which the step is too long to be followed
UNSURE: Final = 100.0  # of its residual: how far a coordinate on the curve may be from where it is on the motion
TOUCHED: Final = 1e-9  # rad, lengths in L: a bound exceeded by less is reached, not exceeded
NARROWED: Final = 4  # times that the place of an extreme is narrowed down to a tenth
NEAR_END: Final = 0.1  # of a step: an extreme nearer to its start is not what it is cut down to
AGAIN: Final = 0.4  # of a step that is refused for other reasons
UNDEFINED: Final = 1e-6  # ρ of an angle that is none


class Driver(Protocol):
    """What gives a driver's value."""

    def value(self, time: float) -> float: ...


class Limits:
    """Limits of a system, followed through steps."""

    def __init__(self, system: System, problem: Problem, drivers: Sequence[tuple[int, Driver]]) -> None:
        """problem: as Newton's iteration has it.  drivers: with their places in the floats."""
        self._system = system
        self._drivers = drivers
        floats = problem.floats.copy()
        for _, par in limit_rows(system):
            floats[par : par + 2] = 0.0  # the residual of a limit is then the coordinate itself
        self._problem = problem.with_floats(floats)
        scales = problem.scales[: problem.rows]
        pieces = _pieces(system)
        rows, signs, bounds, slacks = [], [], [], []
        for row, par in limit_rows(system):
            for place, sign in ((par, 1.0), (par + 1, -1.0)):
                if np.isfinite(system.floats[place]):
                    rows.append(row.start)
                    signs.append(sign * scales[row.start])
                    bounds.append(system.floats[place])
                    slacks.append(abs(problem.floats[place] - system.floats[place]) * scales[row.start])
        self._rows = np.array(rows, dtype=np.int64)
        self._signs, self._bounds, self._slacks = np.array(signs), np.array(bounds), np.array(slacks)
        self._touched = TOUCHED * np.maximum(1.0, np.abs(self._signs * self._bounds))
        self._places = np.array([place for place, _ in drivers], dtype=np.int64)
        # The scales of the equations of each piece: what happens in another does not make a bound unsure.
        equations = scales.copy()
        equations[self._rows] = 0.0
        limited, self._pieces = np.unique(pieces[self._rows], return_inverse=True)
        self._equations = np.where(pieces == limited[:, None], equations, 0.0)
        own = [row.start + i for row in system.rows if row.primitive.code < 0 for i in range(row.primitive.rows)]
        self._own, self._own_scales = np.array(own, dtype=np.int64), equations[own]

    def part(self, first: End, last: End) -> float:
        """The part of a step in which no bound is exceeded, as far as can be told: 1, or less, to be tried next."""
        curve = Curve(self._system, self._problem, first, last)
        if self._own.size and not self._is_met_closely(first.q, curve):
            return AGAIN

        def read(parts: FloatArray) -> tuple[FloatArray, FloatArray]:
            return self._read(first.q, curve.steps(parts), first.time + parts * (last.time - first.time))

        parts = np.linspace(0.0, 1.0, PARTS + 1)
        gaps, defects = read(parts)
        if not defects.max() <= RESOLVED:  # nor if it is NaN
            return AGAIN
        if self._is_pushed(last, gaps[-1], last.time - first.time):
            return AGAIN
        # Between two of its values a coordinate is taken to go no further beyond them than it changes nearby.
        before, behind = np.concatenate([gaps[:1], gaps[:-1]]), np.concatenate([gaps[1:], gaps[-1:]])
        is_least = (gaps <= before) & (gaps <= behind)
        changes = np.pad(np.abs(np.diff(gaps, axis=0)), ((2, 2), (0, 0)))
        change = np.max([changes[k : k + PARTS + 1] for k in range(4)], axis=0)
        in_reach = gaps - change < UNSURE * defects - self._touched
        found = 1.0
        for nearest, bound in np.argwhere(is_least & in_reach):
            low, high = parts[max(nearest - 1, 0)], parts[min(nearest + 1, PARTS)]
            for _ in range(NARROWED):
                finer = np.linspace(low, high, PARTS + 1)
                gaps, defects = read(finer)
                k = int(gaps[:, bound].argmin())
                low, high = finer[max(k - 1, 0)], finer[min(k + 1, PARTS)]
            if gaps[k, bound] < UNSURE * defects[k, bound] - self._touched[bound]:
                found = min(found, float(finer[k]))
        return found if found == 1.0 else min(max(found, NEAR_END), 1.0 - NEAR_END)

    def _is_met_closely(self, q: FloatArray, curve: Curve) -> bool:
        """Whether couplers, and what else is the user's own, agree with a curve from a pose; no driver is asked."""
        steps = curve.steps(np.linspace(0.0, 1.0, FINE + 1))
        f = self._problem.residuals(q, steps, np.empty(0, dtype=np.int64), np.empty((FINE + 1, 0)))
        return bool(np.abs(f[:, self._own] * self._own_scales).max() <= RESOLVED)

    def _is_pushed(self, end: End, gaps: FloatArray, span: float) -> bool:
        """Whether a bound holds back what the drivers, if it were not, would take beyond it: a motion ends there."""
        kept = gaps < -0.5 * self._slacks
        if not kept.any():
            return False
        outward = -self._signs * self._problem.product(end.q, end.v)[self._rows] * span
        return bool((outward[kept] > 0.0).any())

    def _read(self, q: FloatArray, steps: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per step from a pose and per bound: how far its coordinate is within, and the residual of its piece."""
        values = np.array([[driver.value(time) for _, driver in self._drivers] for time in times.tolist()])
        f = self._problem.residuals(q, steps, self._places, values)
        defects = np.array([np.abs(f * equations).max(axis=1) for equations in self._equations])
        return self._signs * (f[:, self._rows] - self._bounds), defects[self._pieces].T


class AnglesCounted:
    """Angles that are counted and belong to no joint, so that they may be undefined in some pose."""

    def __init__(self, system: System) -> None:
        joints = {row.constraint for row in system.rows}
        own = [k for k, key in enumerate(system.counted_angles) if not {key, key.rpartition(".")[0]} & joints]
        at = int(system.ints[layout.ANGLE_TABLE]) + layout.ANGLE_RECORD * np.array(own, dtype=np.int64)
        self._bodies = len(system.names)
        self._keys = [system.counted_angles[k] for k in own]
        self._a, self._b = system.ints[at + layout.ANGLE_A], system.ints[at + layout.ANGLE_B]
        places = system.ints[at + layout.ANGLE_SOURCE]
        self._axes = system.floats[places[:, None] + np.arange(9)].reshape(-1, 3, 3) if own else np.empty((0, 3, 3))
        self._sides = 1.0 * (self._a >= 0) + (self._b >= 0)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def are_counted(self, first: FloatArray, last: FloatArray, rotation: float) -> bool:
        """Whether no angle can be mistaken for another in a step in which no body turns by more than turned [rad]."""
        return bool((ARC * rotation * self._sides < self._projections(first) + self._projections(last)).all())

    def undefined(self, q: FloatArray) -> list[str]:
        """Keys of the angles that are none in a pose."""
        return [key for key, size in zip(self._keys, self._projections(q), strict=True) if size < UNDEFINED]

    def _projections(self, q: FloatArray) -> FloatArray:
        """ρ of every angle."""
        matrices = euler.matrix(q[: layout.POSE * self._bodies].reshape(-1, layout.POSE)[:, 3:])
        A = np.concatenate([matrices, np.eye(3)[None]])  # body −1 is the ground
        x, y = (np.einsum("kij,kj->ki", A[self._a], self._axes[:, i]) for i in (0, 1))
        v = np.einsum("kij,kj->ki", A[self._b], self._axes[:, 2])
        found: FloatArray = np.hypot((x * v).sum(axis=1), (y * v).sum(axis=1))
        return found


def _pieces(system: System) -> IntArray:
    """Per row the piece it belongs to, by the number of a body; −1 where it is on the ground alone."""
    found: IntArray = np.full(system.powers.size, -1, dtype=np.int64)
    for at, row in zip(system.starts[:-1].tolist(), system.rows, strict=True):
        if system.ints[at + layout.SLOTS]:
            body = 0 if system.in_one_piece else system.leader[system.ints[at + layout.RECORD]]
            found[row.start : row.start + row.primitive.rows] = body
    return found
