"""The rate rows of a system (nonholonomic constraints) as matrices: A(q) v = b(t), and A v̇ = γ + ḃ with γ = −Ȧ v.

v are the velocities of the manifold formulation, six per body: ṙ of the reference point in world axes, ω in reference
axes.  q and v are those of the system itself.  Kernels call the evaluator by its address; see :class:`RateRows`.
"""

from __future__ import annotations

import numpy as np

from cardan.coordinates import formulations, rates
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import System


class RateRows:
    """The rate rows of a system; threads may share it.

    ``names``: the constraint of each row.  ``problem``: its ``evaluate`` is the address of a function of the ABI of
    evaluators, to be called with ``problem.ints``, ``problem.floats``, q, v, out, jacobian and a workspace of
    ``problem.sizes.work`` floats: JACOBIAN writes the entries of A, block by block as ``problem.structure`` says, GAMMA
    writes γ, and MOTION both (out: zeros, then γ).  ``scales``: of the rows, 1/L or 1.
    """

    def __init__(self, system: System) -> None:
        self.system = system.rates_alone
        self.problem: Problem = formulations.motion_problem(self.system, "manifold")
        self.names: tuple[str, ...] = tuple(
            name for name, primitive, _ in self.system.rows for _ in range(primitive.rows)
        )
        self.scales: FloatArray = self.problem.scales[: self.problem.rows]

    def __len__(self) -> int:
        return len(self.names)

    def matrix(self, q: FloatArray) -> FloatArray:
        """A(q), shape (rows, 6·bodies)."""
        return self.problem.jacobian(q)[1]

    def values(self, time: float) -> tuple[FloatArray, FloatArray]:
        """b and ḃ at a time [s], shape (rows,) each: zero for all rows without a given value."""
        return rates.driver_rates(self.system, self.problem, time, np.empty(0))

    def gamma(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """γ = −Ȧ v, shape (rows,)."""
        return formulations.gamma(self.system, "manifold", q, v)

    def product(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """A v, shape (rows,)."""
        return np.asarray(self.problem.product(q, v))
