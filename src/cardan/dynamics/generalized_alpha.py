"""The generalised-α method on the manifold: implicit, of order two, for stiff springs and dampers.  [Bruls2010]

    (1 − α_m) a' + α_m a = (1 − α_f) v̇' + α_f v̇
    q' = q ⊕ (h v + h² ((½ − β) a + β a')),   v' = v + h ((1 − γ) a + γ a')
    M v̇' + Jᵀλ' = Q(q', v', t'),   f(q', t') = 0,   A(q') v' = b(t')

is solved by Newton's iteration for a' and λ', with

    ⎡ (1 − α_m)/(1 − α_f) M + γ h C + β h² K   Jᵀ ⎤
    ⎣ J                                        −ε ⎦ ,   K = −∂Q/∂q,  C = −∂Q/∂v,

K and C by differences, again where the iteration is slow.  ε makes redundant rows regular; the iteration removes its
effect.  Then v' is projected onto J v = ġ in the metric of M.  Matrices are dense, and steps are computed in Python.
Where M is singular, the matrix contains pseudo-masses, and the iteration removes their effect.

The error of a pose is estimated as h² (β − 1/6) (a' − a), times the inverse of this matrix and the masses: a stiff load
changes a much, and the pose little.  A step with too large an error is divided, as at the start of a run whose springs
are far from their equilibrium: there ρ∞ = 0.8 damps their accelerations by this factor in each step.

The projection leaves errors of first order in v̇' and λ'.  Outputs are therefore solved from M v̇ + Jᵀλ = Q,
J v̇ = γ + g̈.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cardan.coordinates import rates
from cardan.dynamics import joint_inertias, tables
from cardan.dynamics.integrate import Integration
from cardan.dynamics.reactions import applied
from cardan.dynamics.tables import WIDTH
from cardan.errors import ModelError
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

RADIUS: Final = 0.8  # spectral radius for infinite frequencies: 1 damps nothing, 0 damps most
ALPHA_M: Final = (2.0 * RADIUS - 1.0) / (RADIUS + 1.0)
ALPHA_F: Final = RADIUS / (RADIUS + 1.0)
GAMMA: Final = 0.5 + ALPHA_F - ALPHA_M
BETA: Final = 0.25 * (GAMMA + 0.5) ** 2
MASS: Final = (1.0 - ALPHA_M) / (1.0 - ALPHA_F)
EPSILON: Final = 1e-10  # of the diagonal of Ĵ Ĵᵀ, which is one
ITERATIONS: Final = 20  # of Newton's method in a step
CONVERGED: Final = 1e-13  # relative to the extent, or in radians: a smaller change of the pose is rounding
FEW: Final = 2  # iterations at least, so that multipliers converge too
DIFFERENCE: Final = 1e-6  # of the extent, or rad; and of velocities above one
SLOW: Final = 0.1  # of the change before: if it is not less, K and C are computed again
HALVINGS: Final = 14  # of a step, at the most
MOST_UNKNOWNS: Final = 600
SAME_TIME: Final = 1e-12


class GeneralizedAlpha(Integration):
    """A run of the generalised-α method."""

    def __init__(self, equations: Any, *arguments: Any, **options: Any) -> None:
        self._refuse(equations)
        super().__init__(equations, *arguments, **options)
        p = equations.problem
        bodies = len(equations.system.names)
        self._units: FloatArray = np.tile(np.repeat([equations.system.unit, 1.0], 3), bodies)
        self._of_rates = np.zeros(p.rows, dtype=bool)
        for row in equations.system.rows:
            if row.primitive.of_rates:
                self._of_rates[row.start : row.start + row.primitive.rows] = True
        self._hard = np.flatnonzero(equations.compliances == 0.0)  # equations; the others are inertias of joints
        self._rows: IntArray = equations.equations[self._hard]
        self._of_rates = self._of_rates[self._rows]
        self._has_contacts = bool(equations.system.contacts)
        self._pseudo: FloatArray = np.empty(0)  # a
        self._multipliers: FloatArray = np.zeros(self._rows.size)

    def _refuse(self, equations: Any) -> None:
        """ModelError if a run cannot consider a part of the model."""
        if equations.stops:
            names = ", ".join(repr(stop.name) for stop in equations.stops)
            raise ModelError(f"method 'generalized_alpha' does not stop at the limits {names}; use method='adams'")
        if WIDTH * len(equations.system.names) > MOST_UNKNOWNS:
            raise ModelError(
                f"method 'generalized_alpha' is for up to {MOST_UNKNOWNS // WIDTH} bodies, and there are "
                f"{len(equations.system.names)}; use method='adams'"
            )

    def begin(self, released: int = -1) -> int:
        """Project the start, and take a = v̇."""
        status = super().begin(released)
        self._pseudo = self._last_acceleration().copy()
        return status

    def _steps(self, until: float, steps: int) -> int:
        """Steps that end at every output."""
        c = self.control
        for _ in range(steps):
            left = until - self.time
            if left <= SAME_TIME * (abs(until) + self.step):
                return tables.DONE
            ahead = float(self.times[self.reached]) if self.reached < len(self.times) else until
            end = min(ahead, until)
            h = self.step if end - self.time > self.step * (1.0 + 1e-9) else end - self.time
            status = self._divided(h, end if h != self.step else self.time + h)
            if status != tables.RUNNING:
                return status
            if c.error > tables.MOST_ERROR:
                return tables.RUNNING
        return tables.RUNNING

    def _divided(self, h: float, end: float) -> int:
        """One step to a time, or several shorter ones if its error would be large; returns a status of tables."""
        least, part, c = h * 0.5**HALVINGS, h, self.control
        while True:
            is_last = end - self.time <= part * (1.0 + 1e-9)
            size, is_least = end - self.time if is_last else part, part <= least
            status = self._step(size, end if is_last else self.time + size, is_refused=not is_least)
            if status == tables.RUNNING:
                c.taken += 1.0
                if is_last or c.error > tables.MOST_ERROR:
                    return status
                part *= 2.0
            elif is_least or status == tables.NOT_FINITE or (status == tables.NOT_CLOSED and self._has_contacts):
                return status
            else:
                c.refused += 1.0
                part = 0.5 * size

    def _short_step(self, h: float, end: float) -> int:
        return self._step(h, self.time + h) if end - self.time > h else self._step(end - self.time, end)

    def _step(self, h: float, time: float, is_refused: bool = False) -> int:
        """One step to a time; returns a status of tables.

        is_refused: a step with a large error is not taken, and the status is STEP_TOO_SMALL.
        """
        e, c = self.equations, self.control
        masses, light = e.masses.ravel(), e.light.ravel()
        v_dot, a, v = self._last_acceleration().copy(), self._pseudo, self.v
        new_a, multipliers = a.copy(), self._multipliers.copy()
        problem = e.problem.with_floats(e.floats_at(time))
        rate, _ = rates.driver_rates(e.system, e.problem, time, self.q)
        rate = rate[self._rows]
        matrix, before = None, np.inf
        for k in range(ITERATIONS):
            q = problem.retract(self.q, h * v + h * h * ((0.5 - BETA) * a + BETA * new_a))
            new_v = v + h * ((1.0 - GAMMA) * a + GAMMA * new_a)
            new_v_dot = ((1.0 - ALPHA_M) * new_a + ALPHA_M * a - ALPHA_F * v_dot) / (1.0 - ALPHA_F)
            f, jacobian = problem.jacobian(q)
            f, jacobian = f[self._rows], jacobian[self._rows]
            force = self._force(time, q, new_v)
            if not np.isfinite(force).all():
                c.ask_time = time
                return tables.NOT_FINITE
            if matrix is None:
                tangent = MASS * joint_inertias.mass_times(e, q, np.eye(masses.size), e.light)
                tangent += self._tangent(time, q, new_v, force, h)
                scales = 1.0 / np.maximum(np.sqrt((jacobian**2 / light).sum(axis=1)), 1e-300)
                rows = jacobian * scales[:, None]
                matrix = np.block([[tangent, rows.T], [rows, -EPSILON * np.eye(len(f))]])
            unbalanced = joint_inertias.mass_times(e, q, new_v_dot) + jacobian.T @ multipliers - force
            missing = np.where(self._of_rates, (jacobian @ new_v - rate) / (GAMMA * h), f / (BETA * h * h))
            change = np.linalg.solve(matrix, -np.concatenate([unbalanced, scales * missing]))
            new_a = new_a + change[: masses.size]
            multipliers = multipliers + scales * change[masses.size :]
            size = float((BETA * h * h * np.abs(change[: masses.size]) / self._units).max())
            if not np.isfinite(size):
                return tables.NOT_CLOSED
            if size <= CONVERGED and k >= FEW:
                break
            if size > max(SLOW * before, CONVERGED):
                matrix = None
            before = size
        else:
            return tables.NOT_CLOSED
        q = problem.retract(self.q, h * v + h * h * ((0.5 - BETA) * a + BETA * new_a))
        if not np.isfinite(q).all():  # a contact has ended
            return tables.NOT_CLOSED
        load = np.concatenate([MASS * joint_inertias.mass_times(e, q, new_a - a), np.zeros(len(f))])
        moved = np.linalg.solve(matrix, load)[: masses.size]
        largest = float((h * h * abs(BETA - 1.0 / 6.0) * np.abs(moved) / self._units).max())
        if is_refused and not largest <= tables.MOST_ERROR:
            return tables.STEP_TOO_SMALL
        c.error = max(c.error, largest)
        c.last_error = largest
        self.q[:] = q
        new_v = v + h * ((1.0 - GAMMA) * a + GAMMA * new_a)
        self.v[:] = self._projected(problem, self.q, new_v, rate)
        new_v_dot = ((1.0 - ALPHA_M) * new_a + ALPHA_M * a - ALPHA_F * v_dot) / (1.0 - ALPHA_F)
        self._last_acceleration()[:] = new_v_dot
        self._pseudo, self._multipliers = new_a, multipliers
        c.time = time
        k = self.reached
        if k < len(self.times) and abs(float(self.times[k]) - time) <= SAME_TIME * (abs(time) + h):
            outputs = self._accelerations(problem, time, self._force(time, self.q, self.v))
            self.results[k] = np.concatenate([[time], self.q, self.v, *outputs])
            c.sample += 1.0
        return tables.RUNNING

    def _force(self, time: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """Q, flat, with the bias of the inertias of joints."""
        return applied(self.equations, time, q, v) + joint_inertias.bias(self.equations, time, q, v)

    def _tangent(self, time: float, q: FloatArray, v: FloatArray, force: FloatArray, h: float) -> FloatArray:
        """γ h C + β h² K, by differences."""
        e = self.equations
        found = np.empty((v.size, v.size))
        for j in range(v.size):
            step = np.zeros(v.size)
            step[j] = DIFFERENCE * self._units[j]
            moved = self._force(time, e.problem.retract(q, step), v)
            faster = step * max(1.0, abs(v[j]) / self._units[j])
            found[:, j] = BETA * h * h * (force - moved) / step[j]
            found[:, j] += GAMMA * h * (force - self._force(time, q, v + faster)) / faster[j]
        return found

    def _accelerations(self, problem: Any, time: float, force: FloatArray) -> tuple[FloatArray, FloatArray]:
        """v̇ and λ of M v̇ + Jᵀλ = Q, J v̇ = γ + g̈ at the end of a step; force: Q, flat."""
        e = self.equations
        inverse = self._inverse_root(self.q)
        jacobian = problem.jacobian(self.q)[1][self._rows] @ inverse
        lengths = np.maximum(np.linalg.norm(jacobian, axis=1), 1e-300)
        rows = jacobian / lengths[:, None]
        _, growth = rates.driver_rates(e.system, e.problem, time, self.q)
        gamma = rates.gamma_at(e.system, self.q, self.v, time) + growth
        right = gamma[self._rows] / lengths
        free = inverse.T @ force
        if e.is_massless:
            weights = inverse.T @ joint_inertias.mass_times(e, self.q, inverse)
            found = self._solved(rows, free, right, weights)
            rest = free - weights @ found
        else:
            back = np.linalg.lstsq(rows, right - rows @ free, rcond=EPSILON)[0]
            found, rest = free + back, -back
        acceleration = inverse @ found
        multipliers = np.zeros(e.equations.size)
        multipliers[self._hard] = np.linalg.lstsq(rows.T, rest, rcond=EPSILON)[0] / lengths
        own = e.joint_inertias
        if own.values.size:  # μ = I c̈
            rising = problem.jacobian(self.q)[1][own.rows] @ acceleration - gamma[own.rows]
            multipliers[own.equations] = own.values * rising
        return acceleration, multipliers

    def _inverse_root(self, q: FloatArray) -> FloatArray:
        """C with Cᵀ M C = 1, upper triangular, M with the inertias of joints, and the metric where there is no mass."""
        e = self.equations
        if not e.inertias:
            return np.diag(1.0 / np.sqrt(e.metric.ravel()))
        root = np.linalg.cholesky(joint_inertias.mass_times(e, q, np.eye(e.masses.size), e.metric))
        return np.asarray(np.linalg.inv(root).T)

    def _projected(self, problem: Any, q: FloatArray, v: FloatArray, rate: FloatArray) -> FloatArray:
        """The velocity nearest to v in the metric of M with J v = ġ."""
        inverse = self._inverse_root(q)
        jacobian = problem.jacobian(q)[1][self._rows]
        missing = rate - jacobian @ v
        if self.equations.is_massless:
            weights = inverse.T @ joint_inertias.mass_times(self.equations, q, inverse)
            found: FloatArray = v + inverse @ self._solved(jacobian @ inverse, np.zeros_like(v), missing, weights)
            return found
        found = v + inverse @ np.linalg.lstsq(jacobian @ inverse, missing, rcond=EPSILON)[0]
        return found

    def _solved(self, rows: FloatArray, force: FloatArray, right: FloatArray, weights: FloatArray) -> FloatArray:
        """The least u with W u + Jᵀλ = force, J u = right, where W is singular along directions without mass."""
        left, sigma, v = np.linalg.svd(rows)
        rank = int((sigma > EPSILON * sigma.max(initial=0.0)).sum())
        part = v[:rank].T @ (left[:, :rank].T @ right / sigma[:rank])
        free = v[rank:]
        reduced = free @ weights @ free.T
        found: FloatArray = part + free.T @ np.linalg.lstsq(reduced, free @ (force - weights @ part), rcond=EPSILON)[0]
        return found
