"""The curve of fifth degree between two poses of a motion, which approximates the motion in between.

    q(t) = q₀ ⊕ φ(s),  s = (t − t₀)/(t₁ − t₀),

with the values and the first two derivatives given by the poses and the rates at both ends.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cardan.coordinates import rates
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import System

PROBE: Final = 1e-3  # of the curve: step of the finite differences for the derivatives of φ at its end


class End(NamedTuple):
    """A pose of a motion in solver coordinates at a time [s], with v and v̇, flat."""

    time: float
    q: FloatArray
    v: FloatArray
    a: FloatArray


class Curve:
    """Poses in solver coordinates between two ends."""

    __slots__ = ("_first", "_problem", "_terms")

    def __init__(self, system: System, problem: Problem, first: End, last: End) -> None:
        T = last.time - first.time
        h = PROBE * T
        around = [problem.retract(last.q, s * h * last.v + 0.5 * (s * h) ** 2 * last.a) for s in (-1.0, 0.0, 1.0)]
        before, end, after = rates.differences(system, first.q, around)
        c1, c2 = T * first.v, 0.5 * T * T * first.a
        value = end - c1 - c2
        slope = (after - before) / (2.0 * PROBE) - c1 - 2.0 * c2
        bend = (after - 2.0 * end + before) / PROBE**2 - 2.0 * c2
        c3 = 10.0 * value - 4.0 * slope + 0.5 * bend
        c4 = -15.0 * value + 7.0 * slope - bend
        c5 = 6.0 * value - 3.0 * slope + 0.5 * bend
        self._first = first.q
        self._problem = problem
        self._terms: FloatArray = np.array([c1, c2, c3, c4, c5])

    def pose(self, part: float) -> FloatArray:
        """The pose at s = part."""
        return self._problem.retract(self._first, self.steps(np.array([part]))[0])

    def steps(self, parts: FloatArray) -> FloatArray:
        """φ(s) at s = parts, shape (parts, unknowns)."""
        return parts[:, None] ** np.arange(1, 6) @ self._terms
