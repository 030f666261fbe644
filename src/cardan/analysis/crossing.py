"""Crossings of two branches of a motion: the pose is singular, but each branch continues smoothly through it.

Near such a pose, at t*, the least singular value σ decreases as |t − t*|, and the steps for which Newton's iteration is
reliable decrease with it.  So the motion is bridged.  From q₀ at t₀, some steps before t*, it is extrapolated by its
rates to t₁ after t*, and corrected there to q₁.  In between, the motion is the curve of fifth degree
(:mod:`cardan.analysis.curve`), provided that this curve agrees with the motion: it needs no correction at regular
poses, and meets all constraints at the singular one.  Two branches that pass each other at a distance ε leave a
residual of about ε² there; then no bridge is built, since it would jump from one branch to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cardan.analysis.curve import PROBE, Curve, End
from cardan.coordinates import rates
from cardan.solvers import abi
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import System

MOST_UNKNOWNS: Final = 240  # more are not decomposed: an SVD takes 20 ms for 240 unknowns, 200 ms for 600
STRAIGHT: Final = 0.1  # of the step: largest distance of the pose after the crossing from the extrapolated one
PASSED: Final = 0.3  # of σ(t₀): with a smaller σ(t₁) the crossing is not yet passed
ACCURATE: Final = 1e-8  # [rad], lengths in L: largest distance between the curve and the motion
CHECKED: Final = (0.15, 0.85)  # fractions of the bridge where it is compared with the motion; t* is often near 0.5
TINY: Final = 1e-300
REAL: Final = 1e-6  # of an eigenvalue: a smaller imaginary part is a rounding error of a double eigenvalue
POWERS: Final = 12  # power iterations
GROWN: Final = 0.8  # bound on the spectral radius; below 1, since there are few power iterations
SPARSE_DAMPING: Final = 1e-12  # of the sparse normal equations, whose entries are of order one
NEARBY: Final = 1e-6  # of the bridge: accuracy of t*, and step of the finite differences for it
# Of the largest singular value: directions with a smaller one are not corrected, in poses and in rates.  There the
# rounding error of a residual, 1e-14, would be divided by σ, or by σ² and σ³.
POSE_CUT: Final = 1e-5
RATE_CUT: Final = 1e-3
CORRECTIONS: Final = 3

Drive = Callable[[float], None]
Newton = Callable[[FloatArray, float], FloatArray | None]


class Linearization:
    """The equations linearised at one regular pose: J₀ = U S Vᵀ, scaled, without zero singular values.

    On the path to a pose nearby, the eigenvalues of S⁻¹UᵀJV start at 1.  J is singular where one of them is zero.  So
    a real negative eigenvalue at the other pose shows that a singular pose lies in between, and that the other pose is
    on another branch.  (The sign of the determinant is not enough: it is unchanged if two equal linkages both jump.)
    """

    def __init__(self, system: System, problem: Problem, q: FloatArray, rank: int = 0) -> None:
        """rank: that of earlier poses, used if it is larger than the rank here."""
        found = rates.Decomposition(system, problem, q)
        self.decomposition = found
        self._scaled = found.scaled
        self.rank = max(rank, found.rank(rates.RANK_RTOL))
        self._u, self._values, self._v = found.u[:, : self.rank], found.values[: self.rank], found.v[: self.rank]
        self.least = float(self._values[-1] / self._values[0]) if self.rank else 1.0  # nonzero, relative to the largest

    def crosses_singularity(self, other: Any) -> bool:
        """Whether a singular pose lies between this and another linearization."""
        change = self._u.T @ (other._scaled - self._scaled) @ self._v.T / np.maximum(self._values, TINY)[:, None]
        if np.linalg.norm(change) < 1.0:
            return False
        found = np.linalg.eigvals(change)
        return bool(np.any((np.abs(found.imag) <= REAL * np.abs(found)) & (found.real <= -1.0)))


class SparseLinearization:
    """A conservative version of :class:`Linearization` for a system that is too large for a decomposition.

    While all eigenvalues of J₀⁺(J − J₀) are below 1, no singular pose can lie in between.  The largest is estimated by
    power iteration.
    """

    rank = 0
    least = 1.0  # not computed
    decomposition = None

    def __init__(self, system: System, problem: Problem, q: FloatArray) -> None:
        from cardan.solvers import _blocks

        self._kernels: Any = _blocks
        self._problem = problem
        _, self._entries = problem.entries(q)
        scales = np.concatenate([rates.weights(system, problem), problem.scales[problem.rows :]])
        _blocks.scale(problem.structure, scales, np.zeros(problem.rows), self._entries)

    def crosses_singularity(self, other: Any) -> bool:
        """Whether a singular pose may lie between this and another linearization."""
        p, kernels = self._problem, self._kernels
        change = other._entries - self._entries
        image, gradient, step = np.zeros(p.rows), np.zeros(p.unknowns), np.zeros(p.unknowns)
        control, work = np.zeros(abi.CONTROL), np.empty(p.linear.work)
        control[abi.DAMPING] = SPARSE_DAMPING
        arrays = (p.linear.pattern, control, image, gradient, step, self._entries, work)
        if kernels.call_at(p.linear.address, abi.FACTOR, *arrays):
            return True
        x: FloatArray = np.random.default_rng(0).standard_normal(p.unknowns)
        x /= np.linalg.norm(x)
        sizes = []
        for _ in range(POWERS):
            kernels.apply(p.structure, change, x, image)
            kernels.apply_transposed(p.structure, self._entries, image, gradient)
            kernels.call_at(p.linear.address, abi.BACK_SOLVE, *arrays)
            sizes.append(float(np.linalg.norm(step)))
            if not sizes[-1] > TINY:
                return not np.isfinite(sizes[-1])
            x = step / sizes[-1]
        return not np.exp(np.mean(np.log(sizes[POWERS // 2 :]))) < GROWN


class Crossing:
    """The motion between two regular poses, with a singular one in between."""

    def __init__(
        self,
        system: System,
        problem: Problem,
        drive: Drive,
        start: tuple[float, FloatArray],
        span: float,
        tolerance: float,
    ) -> None:
        """From a time [s] and a pose in solver coordinates over a span [s]; tolerance: on every scaled residual."""
        self._system = system
        self._problem = problem
        self._drive = drive
        self._start, self._first = start
        self._span = span
        self._tolerance = tolerance
        self._weights = rates.weights(system, problem)
        self._columns = problem.scales[problem.rows :]
        self._weights *= rates.shortening(self._scaled(self._first))
        self._end: FloatArray = self._first
        self._curve: Curve | None = None

    @property
    def end(self) -> tuple[float, FloatArray]:
        """Time and pose after the crossing."""
        return self._start + self._span, self._end

    def covers(self, time: float) -> bool:
        """Whether a time lies on the bridge."""
        return 0.0 <= (time - self._start) / self._span <= 1.0

    def build(self, newton: Newton) -> bool:
        """Find the other end and the curve; False if no branches cross or the motion leaves the curve."""
        v, a = rates.solver_rates(self._system, self._problem, self._first, self._start)
        step = self._span * v + 0.5 * self._span**2 * a
        guess = self._problem.retract(self._first, step)
        found = newton(guess, self._start + self._span)
        if found is None or self._apart(guess, found) > STRAIGHT * np.linalg.norm(step / self._columns):
            return False
        before, after = self._singular_values(self._first), self._singular_values(found)
        last = int((before > rates.RANK_RTOL * before[0]).sum()) - 1
        if after[last] < PASSED * before[last]:
            return False
        self._end = found
        end = self._start + self._span
        v1, a1 = rates.solver_rates(self._system, self._problem, found, end)
        ends = End(self._start, self._first, v, a), End(end, found, v1, a1)
        self._curve = Curve(self._system, self._problem, *ends)
        time = self._singular_time(last, float(before[last] / (before[last] + after[last])))
        return time is not None and self._is_met(time) and self._is_accurate(newton)

    def pose(self, time: float) -> FloatArray:
        """The pose at a time on the bridge, corrected in all directions except the singular ones."""
        self._drive(time)
        q = self._on_curve(time)
        for _ in range(CORRECTIONS):
            f, J = self._problem.jacobian(q)
            inverse = np.linalg.pinv(J * self._weights[:, None] * self._columns, rcond=POSE_CUT)
            q = self._problem.retract(q, -self._columns * (inverse @ (self._weights * f)))
        return q

    def rates(self, q: FloatArray, time: float) -> tuple[FloatArray, FloatArray]:
        """Velocities and accelerations of every body at a time on the bridge, shape (bodies, 6) each."""
        h = PROBE * self._span
        here = self._on_curve(time)
        before, after = (rates.difference(self._system, here, self._on_curve(time + sign * h)) for sign in (-1.0, 1.0))
        along = (after - before) / (2.0 * h), (after + before) / h**2
        found = rates.solver_rates(self._system, self._problem, q, time, along, RATE_CUT)
        return rates.at_origins(self._system, q, *found)

    def _on_curve(self, time: float) -> FloatArray:
        assert self._curve is not None  # made by build
        return self._curve.pose((time - self._start) / self._span)

    def _apart(self, a: FloatArray, b: FloatArray) -> float:
        return float(np.linalg.norm(rates.difference(self._system, a, b) / self._columns))

    def _scaled(self, q: FloatArray) -> FloatArray:
        _, J = self._problem.jacobian(q)
        scaled: FloatArray = J * self._weights[:, None] * self._columns
        return scaled

    def _singular_values(self, q: FloatArray) -> FloatArray:
        values: FloatArray = np.asarray(np.linalg.svd(self._scaled(q), compute_uv=False), dtype=np.float64)
        return values

    def _singular_time(self, k: int, part: float) -> float | None:
        """t*, by Newton's iteration for uᵀJv = 0 with the singular vectors of σ_k; part: first guess of s."""
        time, h = self._start + self._span * part, NEARBY * self._span
        for _ in range(8):
            u, values, v = np.linalg.svd(self._scaled(self._on_curve(time)), full_matrices=False)
            slope = float(u[:, k] @ self._scaled(self._on_curve(time + h)) @ v[k] - values[k]) / h
            step = -float(values[k]) / slope if slope else np.inf
            if abs(step) <= abs(h):
                return time + step
            time += step
            if not self.covers(time):
                break
        return None

    def _is_met(self, time: float) -> bool:
        f = self._problem.residual(self.pose(time)) * self._problem.scales[: self._problem.rows]
        return bool(np.abs(f).max() <= self._tolerance)

    def _is_accurate(self, newton: Newton) -> bool:
        for part in CHECKED:
            time = self._start + part * self._span
            curve = self._on_curve(time)
            found = newton(curve, time)
            if found is None or self._apart(curve, found) > ACCURATE:
                return False
        return True
