"""Checks of the interior of a step: limits that are exceeded within it, and whole turns that could be miscounted.

A step of a motion is computed only at its end.  Within it, a coordinate may exceed a bound and return.  So limited
coordinates and residuals are evaluated at PARTS points of the curve between its ends (:mod:`cardan.analysis.curve`);
the residuals measure how far the curve is from the motion.  A large residual (such as from a cam with a hump between
the ends) means that the step is too long.  Where a coordinate comes near to a bound, its extremum is located.  If the
bound is exceeded there, or could be within the error that the residual indicates, the step is shortened to end at the
extremum, and Newton's iteration decides.

The angle of a vector about an axis is that of its projection w, |w| = ρ ≤ 1; it jumps by half a turn when w passes
through zero.  In a step, w moves by no more than the rotation of its bodies, Θ.  To pass zero on the other side it must
move by at least ρ₀ + ρ₁.  So if Θ < ρ₀ + ρ₁, the nearest of all possible angles is the right one.  Angles of joints
have ρ = 1.
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
from cardan.system import reading
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

PARTS: Final = 20  # of a step; in each of them a body rotates by 0.035 rad at most
FINE: Final = 200  # parts for couplers and user-defined primitives, whose functions may have any shape
RESOLVED: Final = 1e-5  # [rad], lengths in L: with a larger residual on the curve the step is too long
ERROR_FACTOR: Final = 100.0  # of the residual: assumed error of a coordinate on the curve
TOUCHED: Final = 1e-9  # [rad], lengths in L: a bound exceeded by less counts as reached, not exceeded
NARROWED: Final = 4  # times that the interval of an extremum is reduced to a tenth
NEAR_END: Final = 0.1  # of a step: it is not shortened to an extremum closer than this to one of its ends
RETRY: Final = 0.4  # of a step that is rejected for other reasons
UNDEFINED: Final = 1e-6  # an angle with a smaller ρ is undefined


class Driver(Protocol):
    """A function of time that gives the value of a driver."""

    def value(self, time: float) -> float: ...


class Limits:
    """Limits of a system, checked within steps."""

    def __init__(self, system: System, problem: Problem, drivers: Sequence[tuple[int, Driver]]) -> None:
        """problem: that of Newton's iteration.  drivers: with their positions in the floats."""
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
        # The scales of the equations of each piece: residuals of other pieces do not affect a bound.
        equations = scales.copy()
        equations[self._rows] = 0.0
        limited, self._pieces = np.unique(pieces[self._rows], return_inverse=True)
        self._equations = np.where(pieces == limited[:, None], equations, 0.0)
        own = [row.start + i for row in system.rows if row.primitive.code < 0 for i in range(row.primitive.rows)]
        self._own, self._own_scales = np.array(own, dtype=np.int64), equations[own]

    def part(self, first: End, last: End) -> float:
        """1.0 if no bound is exceeded within a step; else the fraction of the step to try next."""
        curve = Curve(self._system, self._problem, first, last)
        if self._own.size and not self._is_met_closely(first.q, curve):
            return RETRY

        def read(parts: FloatArray) -> tuple[FloatArray, FloatArray]:
            return self._read(first.q, curve.steps(parts), first.time + parts * (last.time - first.time))

        parts = np.linspace(0.0, 1.0, PARTS + 1)
        gaps, defects = read(parts)
        if not defects.max() <= RESOLVED:  # also true for NaN
            return RETRY
        if self._is_pushed(last, gaps[-1], last.time - first.time):
            return RETRY
        # Between two points a coordinate is assumed to exceed its values by no more than it changes nearby.
        before, after = np.concatenate([gaps[:1], gaps[:-1]]), np.concatenate([gaps[1:], gaps[-1:]])
        is_least = (gaps <= before) & (gaps <= after)
        changes = np.pad(np.abs(np.diff(gaps, axis=0)), ((2, 2), (0, 0)))
        change = np.max([changes[k : k + PARTS + 1] for k in range(4)], axis=0)
        in_reach = gaps - change < ERROR_FACTOR * defects - self._touched
        found = 1.0
        for nearest, bound in np.argwhere(is_least & in_reach):
            low, high = parts[max(nearest - 1, 0)], parts[min(nearest + 1, PARTS)]
            for _ in range(NARROWED):
                finer = np.linspace(low, high, PARTS + 1)
                gaps, defects = read(finer)
                k = int(gaps[:, bound].argmin())
                low, high = finer[max(k - 1, 0)], finer[min(k + 1, PARTS)]
            if gaps[k, bound] < ERROR_FACTOR * defects[k, bound] - self._touched[bound]:
                found = min(found, float(finer[k]))
        return found if found == 1.0 else min(max(found, NEAR_END), 1.0 - NEAR_END)

    def _is_met_closely(self, q: FloatArray, curve: Curve) -> bool:
        """Whether couplers and user-defined primitives are met along a curve from a pose; drivers are not evaluated."""
        steps = curve.steps(np.linspace(0.0, 1.0, FINE + 1))
        f = self._problem.residuals(q, steps, np.empty(0, dtype=np.int64), np.empty((FINE + 1, 0)))
        return bool(np.abs(f[:, self._own] * self._own_scales).max() <= RESOLVED)

    def _is_pushed(self, end: End, gaps: FloatArray, span: float) -> bool:
        """Whether the drivers push a coordinate against a bound at the end of a step: the motion ends there."""
        touching = gaps < -0.5 * self._slacks
        if not touching.any():
            return False
        outward = -self._signs * self._problem.product(end.q, end.v)[self._rows] * span
        return bool((outward[touching] > 0.0).any())

    def _read(self, q: FloatArray, steps: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per step from a pose and per bound: distance of the coordinate to the bound, and residual of the piece."""
        values = np.array([[driver.value(time) for _, driver in self._drivers] for time in times.tolist()])
        f = self._problem.residuals(q, steps, self._places, values)
        defects = np.array([np.abs(f * equations).max(axis=1) for equations in self._equations])
        return self._signs * (f[:, self._rows] - self._bounds), defects[self._pieces].T


class AnglesCounted:
    """Counted angles that belong to no joint: they may be undefined in some poses."""

    def __init__(self, system: System) -> None:
        joints = {row.constraint for row in system.rows}
        own = [k for k, key in enumerate(system.counted_angles) if not {key, key.rpartition(".")[0]} & joints]
        angles = reading.angle_records(system)[own]
        self._bodies = len(system.names)
        self._keys = [system.counted_angles[k] for k in own]
        self._a, self._b, places = angles["a"], angles["b"], angles["source"]
        self._axes = system.floats[places[:, None] + np.arange(9)].reshape(-1, 3, 3) if own else np.empty((0, 3, 3))
        self._sides = 1.0 * (self._a >= 0) + (self._b >= 0)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def are_counted(self, first: FloatArray, last: FloatArray, rotation: float) -> bool:
        """Whether turns are counted correctly in a step in which no body rotates by more than rotation [rad]."""
        return bool((ARC * rotation * self._sides < self._projections(first) + self._projections(last)).all())

    def undefined(self, q: FloatArray) -> list[str]:
        """Keys of the angles that are undefined in a pose."""
        return [key for key, size in zip(self._keys, self._projections(q), strict=True) if size < UNDEFINED]

    def _projections(self, q: FloatArray) -> FloatArray:
        """ρ of every angle."""
        matrices = euler.matrix(q[: layout.POSE * self._bodies].reshape(-1, layout.POSE)[:, 3:])
        A = np.concatenate([matrices, np.eye(3)[None]])  # body −1 is the ground
        x, y = (np.einsum("kij,kj->ki", A[self._a], self._axes[:, i]) for i in (0, 1))
        v = np.einsum("kij,kj->ki", A[self._b], self._axes[:, 2])
        return np.hypot((x * v).sum(axis=1), (y * v).sum(axis=1))


def _pieces(system: System) -> IntArray:
    """The piece of each row, as the number of one of its bodies; −1 if the row is on the ground alone."""
    found: IntArray = np.full(system.powers.size, -1, dtype=np.int64)
    ints = system.ints.tolist()
    for at, row in zip(system.starts[:-1].tolist(), system.rows, strict=True):
        if bodies := reading.bodies(ints, at):
            body = 0 if system.in_one_piece else system.leader[bodies[0]]
            found[row.start : row.start + row.primitive.rows] = body
    return found
