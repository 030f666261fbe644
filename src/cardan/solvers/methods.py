"""Methods by name: each is one solver, or two of which the second begins where the first ended.

To add a solver, write a kernel module with ``SOLVE``, ``pieces`` and ``prepare`` (:mod:`cardan.solvers._gradient` is a
short one) and add a line to REGISTRY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.solvers import abi
from cardan.solvers.abi import Outcome
from cardan.solvers.problem import Budget, Job, Problem, Run

FloatArray = NDArray[np.float64]

SPRING_GAIN = 0.1  # k of the spring step, as the papers have it
FULL_GAIN = np.inf  # hybrid: as long a spring step as is stable
DENSE_LU = 250_000  # entries of J up to which it is decomposed by LU, some 500 × 500
SWITCH_RESIDUAL = 1e-2  # hybrid: the gradient has come near enough for Newton
SWITCH_ITERATIONS = 500  # hybrid: all that the gradient gets


@dataclass(frozen=True, slots=True)
class Stage:
    """One solver of a method: its kernel module, and where it differs from what the solver does by itself.

    ``iterations``: at the most.  ``residual``: what it aims at, where the tolerance is below that.
    ``settings``: entries of the control vector.  ``most_entries``: of J, where it is decomposed as one matrix.
    """

    kernel: str
    iterations: int | None = None
    residual: float = 0.0
    settings: Mapping[int, float] = field(default_factory=dict)
    most_entries: int | None = None

    def job(self, problem: Problem) -> Job:
        """This solver at work on a problem; its kernel is compiled or loaded when it is first asked for."""
        size = problem.rows * problem.unknowns
        if self.most_entries is not None and size > self.most_entries:
            raise ModelError(
                f"method 'newton_lu' decomposes J as one matrix, here of {problem.rows} × {problem.unknowns} entries; "
                f"it must have {self.most_entries} at the most: use method='newton', which is sparse for large systems"
            )
        return Job(problem, load(self.kernel), self.settings)


@cache
def load(kernel: str) -> Any:
    """The kernel module of a solver."""
    return import_module(f"cardan.solvers.{kernel}")


@dataclass(frozen=True, slots=True)
class Method:
    """A method with the iterations that it gets where the user says nothing."""

    name: str
    iterations: int
    stages: tuple[Stage, ...]

    def run(self, problem: Problem, q: FloatArray, tolerance: float, budget: Budget) -> Run:
        """Solve from q, in place."""
        used = 0
        for stage in self.stages:
            left = budget.iterations - used
            most = left if stage.iterations is None else min(stage.iterations, left)
            own = Budget(most, budget.deadline)
            found = stage.job(problem).run(q, max(tolerance, stage.residual), own)
            used += found.iterations
            if found.outcome is Outcome.BROKEN or used >= budget.iterations or budget.is_out_of_time():
                break
        return found._replace(iterations=used)


_GRADIENT_FIRST = Stage("_gradient", SWITCH_ITERATIONS, SWITCH_RESIDUAL, {abi.STEP_GAIN: FULL_GAIN})

REGISTRY: Final[dict[str, Method]] = {
    method.name: method
    for method in (
        Method("levenberg_marquardt", 200, (Stage("_levenberg_marquardt"),)),
        # full steps with the pseudo-inverse
        Method("newton", 100, (Stage("_newton"),)),
        # J⁻¹ by LU, J⁺ only where J is singular or not square
        Method("newton_lu", 100, (Stage("_algorithm_1", most_entries=DENSE_LU),)),
        # spring steps
        Method("gradient", 20_000, (Stage("_gradient", settings={abi.STEP_GAIN: SPRING_GAIN}),)),
        # spring steps until near, then Newton
        Method("hybrid", 1_000, (_GRADIENT_FIRST, Stage("_newton"))),
    )
}
