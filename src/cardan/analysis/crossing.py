"""Crossings of two branches of a motion: the pose is singular, but each branch continues smoothly through it.

Near such a pose, at t*, the least singular value σ decreases as |t − t*|, and the steps for which Newton's iteration is
reliable decrease with it.  So the motion is bridged.  From q₀ at t₀, some steps before t*, it is extrapolated by its
rates to t₁ after t*, and corrected there to q₁.  In between, the motion is the curve of fifth degree
(:mod:`cardan.analysis.curve`), provided that this curve agrees with the motion: it needs no correction at regular
poses, and meets all constraints at the singular one.  Two branches that pass each other at a distance ε leave a
residual of about ε² there; then no bridge is built, since it would jump from one branch to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cardan.analysis.curve import PROBE, Curve, End
from cardan.coordinates import rates
from cardan.lazy import LazyModule
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import System

_blocks = LazyModule("cardan.solvers._blocks")

MOST_UNKNOWNS: Final = 600  # with more, no bridge is built: it takes some ten SVDs, of 200 ms for 600 unknowns
STRAIGHT: Final = 0.1  # of the step: largest distance of the pose after the crossing from the extrapolated one
PASSED: Final = 0.3  # of σ(t₀): with a smaller σ(t₁) the crossing is not yet passed
ACCURATE: Final = 1e-8  # [rad], lengths in L: largest distance between the curve and the motion
CHECKED: Final = (0.15, 0.85)  # fractions of the bridge where it is compared with the motion; t* is often near 0.5
TINY: Final = 1e-300
REAL: Final = 1e-6  # of an eigenvalue: a smaller imaginary part is a rounding error of a double eigenvalue
UNCHANGED: Final = 0.5  # norm of J₀⁺(J − J₀): with a smaller one, more than half of each singular value is left
KRYLOV_FIRST: Final = 6  # dimension of the Krylov space at which most steps are found to be harmless
KRYLOV: Final = 24  # and at most
SMALL: Final = 0.5  # eigenvalues in the first space that are all smaller are harmless
NEARBY: Final = 1e-6  # of the bridge: accuracy of t*, and step of the finite differences for it
# Of the largest singular value: directions with a smaller one are not corrected, in poses and in rates.  There the
# rounding error of a residual, 1e-14, would be divided by σ, or by σ² and σ³.
POSE_CUT: Final = 1e-5
RATE_CUT: Final = 1e-3
CORRECTIONS: Final = 3

Drive = Callable[[float], None]
Newton = Callable[[FloatArray, float], FloatArray | None]
Meets = Callable[[FloatArray, float], bool]


class Linearization:
    """The equations linearised at one regular pose: J₀ = U S Vᵀ, scaled, without zero singular values.

    On the path to a pose nearby, the eigenvalues of S⁻¹UᵀJV start at 1.  J is singular where one of them is zero.  So
    a real negative eigenvalue at the other pose shows that a singular pose lies in between, and that the other pose is
    on another branch.  (The sign of the determinant is not enough: it is unchanged if two equal linkages both jump.)
    """

    def __init__(self, system: System, problem: Problem, q: FloatArray, rank: int = 0) -> None:
        """rank: that of earlier poses, used if it is larger than the rank here."""
        found = rates.Decomposition(system, problem, q)
        self.known = found
        self._scaled = found.scaled
        self.rank = max(rank, found.rank(rates.RANK_RTOL))
        self._u, self._values, self._v = found.u[:, : self.rank], found.values[: self.rank], found.v[: self.rank]

    def part_left(self, other: Any) -> float:
        """The least real eigenvalue of J₀⁺J, at most 1, where J is that of another linearization.

        It is zero or less if a singular pose lies in between.  If it is small, the step approaches one: it is the part
        of the least singular value that is left.
        """
        change = self._u.T @ (other._scaled - self._scaled) @ self._v.T / np.maximum(self._values, TINY)[:, None]
        size = float(np.linalg.norm(change))
        return 1.0 if size < UNCHANGED else _least_real(np.linalg.eigvals(change))


class SparseLinearization:
    """The same for a system that is too large for singular values.

    The eigenvalues of J₀⁺(J − J₀) that are largest in size are approximated in a Krylov space.  [Golub2013] 10.5
    """

    rank = 0

    def __init__(
        self, system: System, problem: Problem, q: FloatArray, damping: float = rates.LEAST_DAMPING, freedoms: int = 0
    ) -> None:
        """damping: λ, see :class:`rates.Factorization`.  freedoms: number of free motions at regular poses."""
        self._problem = problem
        self.known = rates.Factorization(system, problem, q, damping)
        self.is_regular = self.known.is_regular(freedoms)

    def part_left(self, other: Any) -> float:
        """See :meth:`Linearization.part_left`; 0 if one of the poses is too near to singular for the factors."""
        if not (self.is_regular and other.is_regular):
            return 0.0
        n = self._problem.unknowns
        change = other.known.entries - self.known.entries
        basis, H = np.zeros((KRYLOV + 1, n)), np.zeros((KRYLOV + 1, KRYLOV))
        first: FloatArray = np.random.default_rng(0).standard_normal(n)
        basis[0] = first / np.linalg.norm(first)
        image = np.zeros(self._problem.rows)
        found: Any = np.zeros(0)
        for k in range(KRYLOV):
            _blocks.apply(self._problem.structure, change, basis[k], image)
            x = self.known.project(0.0, image)
            before, size = math.inf, math.sqrt(x @ x)
            while size < 0.5 * before:  # twice is enough
                parts = basis[: k + 1] @ x
                x -= parts @ basis[: k + 1]
                H[: k + 1, k] += parts
                before, size = size, math.sqrt(x @ x)
            H[k + 1, k] = size
            if not math.isfinite(size):
                return 0.0
            if k + 1 in (KRYLOV_FIRST, KRYLOV) or size < TINY:
                found = np.linalg.eigvals(H[: k + 1, : k + 1])
                if size < TINY or np.abs(found).max() < SMALL:
                    break
            basis[k + 1] = x / size
        return _least_real(found)


def _least_real(eigenvalues: Any) -> float:
    """The least real number among 1 + eigenvalues, at most 1."""
    is_real = np.abs(eigenvalues.imag) <= REAL * np.abs(eigenvalues)
    return 1.0 + float(eigenvalues.real[is_real].min(initial=0.0))


class Crossing:
    """The motion between two regular poses, with a singular one in between."""

    def __init__(
        self,
        system: System,
        problem: Problem,
        drive: Drive,
        start: tuple[float, FloatArray],
        span: float,
        meets: Meets,
        rated: tuple[System, Problem] | None = None,
    ) -> None:
        """From a time [s] and a pose in solver coordinates over a span [s]; meets: the verdict on a pose at a time.

        rated: the system with its rate rows, and its problem, if there are any.  They do not change the poses, but they
        may determine the rates where the equations of the poses are singular.
        """
        self._system = system
        self._problem = problem
        self._rated = rated or (system, problem)
        self._drive = drive
        self._start, self._first = start
        self._span = span
        self._meets = meets
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
        return time is not None and self._meets(self.pose(time), time) and self._is_accurate(newton)

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
        found = rates.rates_along(*self._rated, q, time, along, RATE_CUT)
        return rates.at_origins(self._system, q, *found)

    def _on_curve(self, time: float) -> FloatArray:
        assert self._curve is not None  # made by build
        return self._curve.pose((time - self._start) / self._span)

    def _apart(self, a: FloatArray, b: FloatArray) -> float:
        return float(np.linalg.norm(rates.difference(self._system, a, b) / self._columns))

    def _scaled(self, q: FloatArray) -> FloatArray:
        _, J = self._problem.jacobian(q)
        return J * self._weights[:, None] * self._columns

    def _singular_values(self, q: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.svd(self._scaled(q), compute_uv=False), dtype=np.float64)

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

    def _is_accurate(self, newton: Newton) -> bool:
        for part in CHECKED:
            time = self._start + part * self._span
            curve = self._on_curve(time)
            found = newton(curve, time)
            if found is None or self._apart(curve, found) > ACCURATE:
                return False
        return True
