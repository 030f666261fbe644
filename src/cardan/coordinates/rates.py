"""Velocities and accelerations of a driven mechanism, on the manifold.

With Φ(q, t) = c(q) − g(t) = 0 for a driver and c(q) = 0 for the rest:  J v = ġ and J v̇ = γ + g̈.  Where the drivers
leave a motion free, the solution of least norm is taken.  Guard rows are no equations and are left out: a limit that is
just reached does not stop a motion away from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cardan.coordinates import formulations
from cardan.math import euler
from cardan.solvers import abi
from cardan.solvers.problem import Problem
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import System

DENSE_UNKNOWNS = 600  # up to here by singular values, beyond by the sparse normal equations
RANK_RTOL = 1e-9  # relative to the largest singular value: smaller ones count as zero
DAMPING = 1e-14  # of the sparse normal equations, relative to entries of order one


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

    def rank(self, cut: float) -> int:
        """Number of singular values above ``cut`` times the largest."""
        return int((self.values > cut * self.values[0]).sum())

    def solve(self, b: FloatArray, near: FloatArray, cut: float) -> FloatArray:
        """The solution of J x = b nearest to ``near``, in scaled unknowns, in the directions above the cut."""
        rank = self.rank(cut)
        parts = self.u[:, :rank].T @ (self._rows * (b - self._jacobian @ near)) / self.values[:rank]
        found: FloatArray = near + self._columns * (self.v[:rank].T @ parts)
        return found


def at_origins(system: System, q: FloatArray, v: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ṙ in world and ω in body axes of every body origin, and their derivatives, shape (bodies, 6) each.

    v and v̇: in the solvers' coordinates, as :func:`solver_rates` gives them.
    """
    v, a = v.reshape(-1, 6).copy(), a.reshape(-1, 6).copy()
    A = euler.matrix(q[: layout.POSE * len(system.names)].reshape(-1, layout.POSE)[:, 3:])
    w, c, axes = v[:, 3:], system.reference_points, system.reference_axes
    if axes is not None:
        c = euler.rotate(euler.conjugate(axes), c)
    v[:, :3] -= np.einsum("kij,kj->ki", A, np.cross(w, c))
    a[:, :3] -= np.einsum("kij,kj->ki", A, np.cross(a[:, 3:], c) + np.cross(w, np.cross(w, c)))
    if axes is not None:
        v[:, 3:], a[:, 3:] = euler.rotate(axes, w), euler.rotate(axes, a[:, 3:])
    return v, a


def solver_rates(
    system: System,
    problem: Problem,
    q: FloatArray,
    time: float,
    along: tuple[FloatArray, FloatArray] | None = None,
    cut: float = RANK_RTOL,
    known: Decomposition | None = None,
) -> tuple[FloatArray, FloatArray]:
    """v and v̇ in the solvers' coordinates, flat: of the reference frames.

    along: v and v̇ of an approximate motion; the nearest rates are returned, and its own in directions whose
    singular value is below cut, relative to the largest.  known: of J in q.
    """
    rate, acceleration = np.zeros(problem.rows), np.zeros(problem.rows)
    rows = {row.constraint: row.start for row in system.rows}
    for _, signal in system.signals:
        jet = signal.jet(time)
        rate[rows[signal.name]], acceleration[rows[signal.name]] = jet.rate, jet.acceleration
    if known is None and problem.unknowns <= DENSE_UNKNOWNS:
        known = Decomposition(system, problem, q)
    solve = partial(known.solve, cut=cut) if known else _sparse_solver(problem, q, weights(system, problem))
    near = along or (np.zeros(problem.unknowns), np.zeros(problem.unknowns))
    v = solve(rate, near[0])
    a = solve(formulations.gamma(system, "manifold", q, v) + acceleration, near[1])
    return v, a


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
    found: FloatArray = abi.LONG_ROW / np.maximum(lengths, abi.LONG_ROW)
    return found


def _sparse_solver(problem: Problem, q: FloatArray, rows: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """A solver of J x = b with weighted rows: the solution nearest to a vector, in scaled unknowns."""
    from cardan.solvers import _blocks

    m = problem.rows
    scales = np.concatenate([rows, problem.scales[m:]])
    _, entries = problem.entries(q)
    r = np.zeros(m)
    _blocks.scale(problem.structure, scales, r, entries)
    control = np.zeros(abi.CONTROL)
    control[abi.DAMPING] = DAMPING
    work = np.empty(problem.linear.work)
    n = problem.unknowns

    def solve(b: FloatArray, near: FloatArray) -> FloatArray:
        right = rows * b
        total: FloatArray = near / scales[m:]
        gradient, step = np.empty(n), np.empty(n)
        for _ in range(2):  # the second removes the error of damping and rounding
            image = np.zeros(m)
            _blocks.apply(problem.structure, entries, total, image)
            rest = right - image
            arrays = (problem.linear.pattern, control, -rest, gradient, step, entries, work)
            if _blocks.call_at(problem.linear.address, abi.FACTOR, *arrays):
                return np.full(n, np.nan)
            _blocks.call_at(problem.linear.address, abi.BACK_SOLVE, *arrays)
            total += step
        total *= scales[m:]
        return total

    return solve


def difference(system: System, a: FloatArray, b: FloatArray) -> FloatArray:
    """The tangent vector from solver coordinates a to b, flat: retract(a, difference(a, b)) = b."""
    found: FloatArray = differences(system, a, [b])[0]
    return found


def differences(system: System, a: FloatArray, others: Sequence[FloatArray]) -> FloatArray:
    """The tangent vectors from solver coordinates a to others, shape (others, unknowns)."""
    end = layout.POSE * len(system.names)
    p = np.tile(a[:end].reshape(-1, layout.POSE), (len(others), 1))
    r = np.concatenate([b[:end].reshape(-1, layout.POSE) for b in others])
    return np.hstack([r[:, :3] - p[:, :3], euler.difference(p[:, 3:], r[:, 3:])]).reshape(len(others), -1)
