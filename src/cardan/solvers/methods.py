"""Methods by name.  A method is one solver, or two in sequence: the second starts where the first ended.

To add a solver, write a kernel module with ``SOLVE``, ``pieces`` and ``prepare`` (:mod:`cardan.solvers._gradient` is a
short example) and add a line to REGISTRY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.solvers.problem import Budget, Job, Problem, Run
from cardan.solvers.tables import Outcome

FloatArray = NDArray[np.float64]

SPRING_GAIN = 0.1  # k of the spring step, as in the papers
FULL_GAIN = np.inf  # hybrid: the longest stable spring step
SPRING: Final = "_gradient"  # the kernel of the spring step
DENSE_LU = 250_000  # most entries of J for LU, about 500 × 500
SWITCH_RESIDUAL = 1e-2  # hybrid: at this residual Newton takes over
SWITCH_ITERATIONS = 500  # hybrid: after this many gradient steps Newton takes over
# hybrid: Newton takes over where, at the rate of this many gradient steps, five times as many would not suffice
SWITCH_PATIENCE = 50


@dataclass(frozen=True, slots=True)
class Stage:
    """One solver of a method: its kernel module, and options that replace the solver's defaults.

    ``iterations``: the maximum.  ``residual``: the stage ends at this residual if the tolerance is smaller.
    ``settings``: fields of the control vector.  ``most_entries``: the maximum number of entries of a dense J.
    """

    kernel: str
    iterations: int | None = None
    residual: float = 0.0
    settings: Mapping[str, float] = field(default_factory=dict)
    most_entries: int | None = None

    def job(self, problem: Problem) -> Job:
        """A job of this solver on a problem; the first call compiles or loads its kernel."""
        if self.most_entries is not None and problem.rows * problem.unknowns > self.most_entries:
            raise ModelError(
                f"method 'newton_lu' needs a dense J, here of {problem.rows} × {problem.unknowns} entries; it must "
                f"have at most {self.most_entries}: use method='newton', which is sparse for large systems"
            )
        if problem.shares is not None and self.kernel == SPRING:
            shared: Job = problem.shares.job(problem, self.settings)
            return shared
        return Job(problem, load(self.kernel), self.settings)


@cache
def load(kernel: str) -> Any:
    """The kernel module of a solver."""
    return import_module(f"cardan.solvers.{kernel}")


@dataclass(frozen=True, slots=True)
class Method:
    """A method, with its default number of iterations."""

    name: str
    iterations: int
    stages: tuple[Stage, ...]

    def run(self, problem: Problem, q: FloatArray, tolerance: float, budget: Budget) -> Run:
        """Solve from q, in place."""
        used = 0
        for stage in self.stages:
            left = budget.iterations - used
            limit = left if stage.iterations is None else self.first_limit(left)
            result = stage.job(problem).run(q, max(tolerance, stage.residual), Budget(limit, budget.deadline))
            used += result.iterations
            if result.outcome is Outcome.BROKEN or used >= budget.iterations or budget.is_out_of_time():
                break
        return result._replace(iterations=used)

    def first_limit(self, iterations: int) -> int:
        """Iterations of the first of two solvers: at most half of all, so that the second one has some."""
        most = self.stages[0].iterations
        return iterations if most is None else min(most, iterations // 2)

    @property
    def has_springs(self) -> bool:
        """Whether it makes spring steps."""
        return any([stage.kernel == SPRING for stage in self.stages])

    def with_springs(self, settings: Mapping[str, float], iterations: int | None, residual: float | None) -> Method:
        """The same with other settings of its spring steps; of two solvers, the first ends earlier or later."""
        first, *others = self.stages
        first = replace(first, settings={**first.settings, **settings})
        if others and iterations is not None:
            first = replace(first, iterations=iterations)
        if others and residual is not None:
            first = replace(first, residual=residual)
        return replace(self, stages=(first, *others))


_GRADIENT_FIRST = Stage(
    SPRING, SWITCH_ITERATIONS, SWITCH_RESIDUAL, {"step_gain": FULL_GAIN, "patience": SWITCH_PATIENCE}
)

REGISTRY: Final[dict[str, Method]] = {
    method.name: method
    for method in (
        Method("levenberg_marquardt", 200, (Stage("_levenberg_marquardt"),)),
        # full steps with the pseudo-inverse
        Method("newton", 100, (Stage("_newton"),)),
        # J⁻¹ by LU, J⁺ only if J is singular or not square
        Method("newton_lu", 100, (Stage("_algorithm_1", most_entries=DENSE_LU),)),
        # spring steps
        Method("gradient", 20_000, (Stage(SPRING, settings={"step_gain": SPRING_GAIN}),)),
        # spring steps until SWITCH_RESIDUAL, then Newton
        Method("hybrid", 1_000, (_GRADIENT_FIRST, Stage("_newton"))),
    )
}
