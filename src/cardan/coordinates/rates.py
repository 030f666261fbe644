"""Velocities and accelerations of a driven mechanism, on the manifold.

With Φ(q, t) = c(q) − g(t) = 0 for a driver and c(q) = 0 for the rest:  J v = ġ and J v̇ = γ + g̈.  Guard rows are no
equations and are left out: a limit that is just reached does not stop a motion away from it.

Where the drivers leave a motion free, the velocities are the least ones: those with the smallest

    |w|² = Σ_bodies |ṙ|²/L² + |ω|²,  w = D⁻¹v,

ṙ [m/s] of the reference point (the centroid of a body's joint points), ω [rad/s], L the characteristic length of the
piece.  With A = R J D (R: scales of the rows), w = Aᵀy.  So v̇ has, along the free motions, the component of D Ȧᵀ y:

    ẇ = Ȧᵀy + Aᵀẏ,   hence  v̇ is the solution of J v̇ = γ + g̈ that is nearest to  D Ȧᵀ y.

Ȧᵀy, with y constant, is computed by differences of fourth order along the motion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.solvers.tables import FACTOR, LONG_ROW, SOLVE, Projection
from cardan.system import tables as layout
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_blocks = LazyModule("cardan.solvers._blocks")

DENSE_UNKNOWNS = 36  # up to here by singular values, beyond by the normal equations of the solvers
RANK_RTOL = 1e-9  # relative to the largest singular value: smaller ones count as zero
DAMPING = 1e-12  # λ of the normal equations, relative to entries of order one, if motions are free
LEAST_DAMPING = 1e-15  # and if none is: then AᵀA has an inverse, and λ only makes it exist after rounding
REFINED = 1e-14  # of the right-hand side: a smaller residual is rounding
MOST_REFINEMENTS = 6  # each reduces the error by the factor λ/σ²
FREE = 1e-3  # of a component along a free motion: if less is left, it is due to a small singular value
# The same for singular poses.  With the least λ a generous bound costs nothing: σ² < 300 λ.  With the other, and some
# more random vectors, it is σ² < 7 λ.
NEARLY_SINGULAR = 1e-5
NEARLY_FREE = 0.03
PROBE = 1e-3  # [rad], lengths in L: largest motion of a body from one sample of the differences to the next


class Decomposition:
    """J = U S Vᵀ in one pose, with weighted rows, long ones shortened, and scaled unknowns: ``scaled`` is that J."""

    __slots__ = ("_columns", "_jacobian", "_rows", "scaled", "u", "v", "values")

    def __init__(self, system: System, problem: Problem, q: FloatArray) -> None:
        _, self._jacobian = problem.jacobian(q)
        rows, self._columns = weights(system, problem), problem.scales[problem.rows :]
        scaled: FloatArray = self._jacobian * rows[:, None] * self._columns
        short = shortening(scaled)
        self._rows: FloatArray = rows * short
        self.scaled: FloatArray = scaled * short[:, None]
        self.u, self.values, self.v = np.linalg.svd(self.scaled, full_matrices=False)

    @property
    def is_free(self) -> bool:
        """Whether some motion satisfies J v = 0."""
        return self.rank(RANK_RTOL) < self._columns.size

    def free_motions(self) -> FloatArray:
        """An orthonormal basis of the solutions of A w = 0, shape (freedoms, unknowns)."""
        return np.linalg.svd(self.scaled)[2][self.rank(RANK_RTOL) :]

    def rank(self, cut: float) -> int:
        """Number of singular values above ``cut`` times the largest."""
        return int((self.values > cut * self.values.max(initial=0.0)).sum())

    def solve(self, b: FloatArray, near: FloatArray | None = None, cut: float = RANK_RTOL) -> FloatArray:
        """The solution of J x = b nearest to ``near``, in scaled unknowns, in the directions above the cut."""
        rank = self.rank(cut)
        rest = b if near is None else b - self._jacobian @ near
        parts = self.u[:, :rank].T @ (self._rows * rest) / self.values[:rank]
        found: FloatArray = self._columns * (self.v[:rank].T @ parts)
        return found if near is None else near + found

    def multipliers(self, w: FloatArray) -> FloatArray:
        """R y with Aᵀ y = w, for a combination w of rows."""
        rank = self.rank(RANK_RTOL)
        return self._rows * (self.u[:, :rank] @ (self.v[:rank] @ w / self.values[:rank]))


class Factorization:
    """The same by the factor of AᵀA + λ, for systems that are too large for singular values.

    Each solve is refined twice over.  The inner refinement, with what u leaves of both equations of a projection,
    removes the rounding errors along free motions, if there are any; the outer one, with the residual b − A x, removes
    the effect of λ.
    """

    __slots__ = ("_arrays", "_columns", "_factored", "_problem", "_rows", "damping", "entries")

    def __init__(self, system: System, problem: Problem, q: FloatArray, damping: float = DAMPING) -> None:
        _, self.entries = problem.entries(q)
        self._problem = problem
        self._columns = problem.scales[problem.rows :]
        self._rows = np.ones(problem.rows)
        scales = np.concatenate([weights(system, problem), self._columns])
        _blocks.scale(problem.structure, scales, self._rows, self.entries)
        _blocks.shorten(problem.structure, self._rows, self.entries)
        self.damping, algebra = damping, problem.algebra
        x, scratch = np.zeros(problem.unknowns + problem.rows), np.zeros(problem.unknowns)
        control = Projection.new(epsilon=damping).as_floats
        self._arrays = (algebra.pattern, control, x, scratch, scratch, self.entries, np.empty(algebra.work))
        self._factored = not _blocks.call_at(algebra.address, FACTOR, *self._arrays)

    @property
    def is_free(self) -> bool:
        """Whether some motion satisfies J v = 0, up to rounding."""
        return self.damping != LEAST_DAMPING and len(self._nearly_free(1, FREE)) > 0

    def is_regular(self, freedoms: int) -> bool:
        """Whether there are no other directions with A w ≈ 0 than the free motions, of which the number is given.

        With σ² < 2λ a singular value could change its sign between two poses without being noticed.
        """
        spare, part = (1, NEARLY_SINGULAR) if self.damping == LEAST_DAMPING else (4, NEARLY_FREE)
        return self._factored and len(self._nearly_free(freedoms + spare, part)) <= freedoms

    def free_motions(self) -> FloatArray:
        """An orthonormal basis of the solutions of A w = 0, shape (freedoms, unknowns)."""
        count = 4
        while len(found := self._nearly_free(count, FREE)) == count:
            count *= 2
        return found

    def _nearly_free(self, most: int, part: float) -> FloatArray:
        """Directions with A w ≈ 0, from random vectors: those of which :meth:`free_part` leaves more than ``part``."""
        unknowns = self._problem.unknowns
        x = np.random.default_rng(0).standard_normal((min(most, unknowns), unknowns))
        _, sizes, basis = np.linalg.svd(np.array([self.free_part(row) for row in x]), full_matrices=False)
        return basis[: int((sizes > part).sum())]

    def free_part(self, x: FloatArray) -> FloatArray:
        """Component of a scaled vector along free motions: (λ(AᵀA + λ)⁻¹)² x."""
        for _ in range(2):
            x = self.project(x, 0.0)
        return x

    def project(self, b: FloatArray | float, c: FloatArray | float) -> FloatArray:
        """u of  u + Aᵀy = b,  A u − λy = c,  not refined: (AᵀA + λ)⁻¹ (λb + Aᵀc)."""
        n, x = self._problem.unknowns, self._arrays[2]
        x[:n], x[n:] = b, c
        _blocks.call_at(self._problem.algebra.address, SOLVE, *self._arrays)
        return x[:n].copy()

    def solve(self, b: FloatArray, near: FloatArray | None = None) -> FloatArray:
        """The solution of J x = b nearest to ``near``, in scaled unknowns."""
        right = self._rows * b
        found = np.zeros(self._problem.unknowns)
        if near is not None:
            right = right - self.image(near / self._columns)
        size = np.linalg.norm(right)
        rest = right
        for _ in range(MOST_REFINEMENTS):
            step = self.project(0.0, rest)
            for _ in range(0 if self.damping == LEAST_DAMPING else 2):
                step += self.project(-step, rest - self.image(step))
            found += step
            before, rest = rest, right - self.image(found)
            left = np.linalg.norm(rest)
            if not left > REFINED * size or left > 0.5 * np.linalg.norm(before):
                break
        found *= self._columns
        return found if near is None else near + found

    def multipliers(self, w: FloatArray) -> FloatArray:
        """R y with Aᵀ y = w, for a combination w of rows."""
        y = np.zeros(self._problem.rows)
        for _ in range(3):
            y += self.image(self.project(w - self._transposed_image(y), 0.0)) / self.damping
        return self._rows * y

    def image(self, x: FloatArray) -> FloatArray:
        """A x."""
        out: FloatArray = np.empty(self._problem.rows)
        _blocks.apply(self._problem.structure, self.entries, x, out)
        return out

    def _transposed_image(self, y: FloatArray) -> FloatArray:
        out: FloatArray = np.empty(self._problem.unknowns)
        _blocks.apply_transposed(self._problem.structure, self.entries, y, out)
        return out


def linearize(system: System, problem: Problem, q: FloatArray) -> Decomposition | Factorization:
    """The equations, linearised at q."""
    return (Decomposition if problem.unknowns <= DENSE_UNKNOWNS else Factorization)(system, problem, q)


def at_origins(system: System, q: FloatArray, v: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ṙ in world and ω in body axes of every body origin, and their derivatives, shape (bodies, 6) each.

    v and v̇: in the solvers' coordinates, as :func:`solver_rates` gives them.
    """
    v, a = v.reshape(-1, 6).copy(), a.reshape(-1, 6).copy()
    A = euler.matrix(q[: layout.POSE * len(system.names)].reshape(-1, layout.POSE)[:, 3:])
    w, c, axes = v[:, 3:], system.reference_points, system.reference_axes
    if axes is not None:
        c = euler.rotate(euler.conjugate(axes), c)
    arm = _cross(w, c)
    v[:, :3] -= np.einsum("kij,kj->ki", A, arm)
    a[:, :3] -= np.einsum("kij,kj->ki", A, _cross(a[:, 3:], c) + _cross(w, arm))
    if axes is not None:
        v[:, 3:], a[:, 3:] = euler.rotate(axes, w), euler.rotate(axes, a[:, 3:])
    return v, a


def from_origins(system: System, state: State, given: FloatArray | None) -> FloatArray:
    """Velocities of the reference frames, flat, from those of the body origins; zero where none are given."""
    shape = (len(system.names), 6)
    if given is None:
        return np.zeros(shape).ravel()
    if given.shape != shape:
        raise ModelError(f"the velocities have shape {given.shape}; it must be {shape}: ṙ and ω of every body")
    if not np.isfinite(given).all():
        k = int(np.argmin(np.isfinite(given).all(axis=1)))
        raise ModelError(f"the velocity of body {system.names[k]!r} is {given[k].tolist()}; it must be finite")
    p, axes = state.coordinates[:, 3:], system.reference_frames[:, 3:]
    v = given.copy()
    v[:, :3] += euler.rotate(p, np.cross(given[:, 3:], system.reference_points))
    v[:, 3:] = euler.rotate(euler.conjugate(axes), given[:, 3:])
    return v.ravel()


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """np.cross of rows, without its overhead."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]


def solver_rates(
    system: System, problem: Problem, q: FloatArray, time: float, known: Decomposition | Factorization | None = None
) -> tuple[FloatArray, FloatArray]:
    """v and v̇ in the solvers' coordinates, flat: of the reference frames.  known: J in q."""
    rate, acceleration = driver_rates(system, problem, time, q)
    known = known or linearize(system, problem, q)
    v = known.solve(rate)
    near = _free_acceleration(problem, q, v, known) if known.is_free else None
    return v, known.solve(gamma_at(system, q, v, time) + acceleration, near)


def rates_along(
    system: System, problem: Problem, q: FloatArray, time: float, along: tuple[FloatArray, FloatArray], cut: float
) -> tuple[FloatArray, FloatArray]:
    """The rates nearest to those of an approximate motion, and its own in directions with singular values below cut.

    along: v and v̇ of the approximate motion.  cut: relative to the largest singular value.
    """
    rate, acceleration = driver_rates(system, problem, time, q)
    known = Decomposition(system, problem, q)
    v = known.solve(rate, along[0], cut)
    return v, known.solve(gamma_at(system, q, v, time) + acceleration, along[1], cut)


def gamma_at(system: System, q: FloatArray, v: FloatArray, time: float) -> FloatArray:
    """γ at a time [s], with the terms of parameters that are functions of time."""
    return formulations.gamma(system, "manifold", q, v, system.floats_at(time) if system.timed else None)


def driver_rates(system: System, problem: Problem, time: float, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Right sides of J v = ġ − C_t and of J v̇ = γ + g̈, shape (rows,): ġ and g̈ of drivers, and −C_t in the pose q."""
    rate, acceleration = np.zeros(problem.rows), np.zeros(problem.rows)
    if system.timed:
        rate -= formulations.time_derivative(system, q, time)
    for (_, signal), row in zip(system.signals, driver_rows(system).values(), strict=True):
        jet = signal.jet(time)
        rate[row], acceleration[row] = jet.rate, jet.acceleration
    return rate, acceleration


def driver_rows(system: System) -> dict[str, int]:
    """The row of every driver, in their order."""

    def find() -> dict[str, int]:
        rows = {row.constraint: row.start for row in system.rows}
        return {signal.name: rows[signal.name] for _, signal in system.signals}

    return system.cached("driver rows", find)


def _free_acceleration(
    problem: Problem, q: FloatArray, v: FloatArray, known: Decomposition | Factorization
) -> FloatArray:
    """D Ȧᵀ y along the motion, with the multipliers y of v."""
    columns = problem.scales[problem.rows :]
    speed = float(np.abs(v / columns).max())
    if not speed > 0.0:
        return np.zeros_like(v)
    h = PROBE / speed
    y = known.multipliers(v / columns)
    found: FloatArray = np.zeros_like(v)
    image = np.empty_like(v)
    for steps, weight in ((1, 8.0), (2, -1.0)):
        for sign in (1.0, -1.0):
            _, entries = problem.entries(problem.retract(q, sign * steps * h * v))
            _blocks.apply_transposed(problem.structure, entries, y, image)
            found += sign * weight * image
    return columns * columns * found / (12.0 * h)


def weights(system: System, problem: Problem) -> FloatArray:
    """Scales of the rows, shape (rows,), zero for guards."""
    found: FloatArray = problem.scales[: problem.rows].copy()
    for _, primitive, start in system.rows:
        for guard in primitive.guards:
            found[start + guard] = 0.0
    return found


def shortening(scaled: FloatArray) -> FloatArray:
    """Factors, one per row of a scaled Jacobian and 1 for most, that leave no row longer than LONG_ROW."""
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return LONG_ROW / np.maximum(lengths, LONG_ROW)


def difference(system: System, a: FloatArray, b: FloatArray) -> FloatArray:
    """The tangent vector from solver coordinates a to b, flat: retract(a, difference(a, b)) = b."""
    return differences(system, a, [b])[0]


def differences(system: System, a: FloatArray, others: Sequence[FloatArray]) -> FloatArray:
    """The tangent vectors from solver coordinates a to others, shape (others, unknowns)."""
    end = layout.POSE * len(system.names)
    p = np.tile(a[:end].reshape(-1, layout.POSE), (len(others), 1))
    r = np.concatenate([b[:end].reshape(-1, layout.POSE) for b in others])
    return np.hstack([r[:, :3] - p[:, :3], euler.difference(p[:, 3:], r[:, 3:])]).reshape(len(others), -1)
