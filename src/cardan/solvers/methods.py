"""Solvers by name, each a chunked run of one kernel or two: between chunks Ctrl-C and the clock get their turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.solvers import abi
from cardan.solvers.abi import Outcome
from cardan.solvers.problem import Problem

_gradient = LazyModule("cardan.solvers._gradient")
_levenberg_marquardt = LazyModule("cardan.solvers._levenberg_marquardt")
_newton = LazyModule("cardan.solvers._newton")

FloatArray = NDArray[np.float64]

INITIAL_DAMPING = 1e-3
SPRING_GAIN = 0.1  # k of the spring step, as the papers have it
FULL_GAIN = np.inf  # hybrid: as long a step as is stable
SWITCH_RESIDUAL = 1e-2  # hybrid: the gradient has come near enough for Newton
SWITCH_ITERATIONS = 500  # hybrid: and this is all it gets
CHUNK_WORK = 2e7  # multiplications between two looks at the clock: some ten milliseconds
UNKNOWN_WORK = 100.0  # multiplications of an iteration per unknown, beside the linear algebra
CHUNK_MOST = 64
DENSE_NEWTON = 250_000  # entries of J up to which Newton decomposes it whole, some 500 × 500


@dataclass(slots=True)
class Budget:
    """What one attempt may use; ``deadline`` on the clock of time.perf_counter, or None."""

    iterations: int
    deadline: float | None = None

    def out_of_time(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline


class Run(NamedTuple):
    """How an attempt ended, with q moved in place: iterations used, largest scaled residual, ½|r|²."""

    outcome: Outcome
    iterations: int
    residual: float
    cost: float


def allowance(problem: Problem) -> int:
    """Iterations in some ten milliseconds, one at least."""
    per_iteration = problem.linear.cost + UNKNOWN_WORK * problem.unknowns
    return max(1, int(CHUNK_WORK / max(per_iteration, 1.0)))


def chunk_size(problem: Problem) -> int:
    """Iterations between two looks at the clock, in Python."""
    return min(CHUNK_MOST, allowance(problem))


def _iterate(problem: Problem, q: FloatArray, control: FloatArray, budget: Budget, call: Callable[[], Any]) -> Run:
    """Call a kernel chunk by chunk until it has an outcome or the budget is used up."""
    most = chunk_size(problem)
    left = budget.iterations
    control[abi.ITERATIONS] = 0.0
    while True:
        control[abi.CHUNK] = min(most, left)
        before = control[abi.ITERATIONS]
        call()
        left -= int(control[abi.ITERATIONS] - before)
        outcome = Outcome(int(control[abi.STATUS]))
        if outcome is not Outcome.RUNNING or left <= 0 or budget.out_of_time():
            break
    return Run(outcome, int(control[abi.ITERATIONS]), float(control[abi.RESIDUAL_MAX]), float(control[abi.COST]))


def levenberg_marquardt(problem: Problem, q: FloatArray, tolerance: float, budget: Budget) -> Run:
    """Damped minimum-norm steps from q, in place."""
    control = np.zeros(abi.CONTROL)
    control[abi.TOLERANCE] = tolerance
    control[abi.DAMPING] = INITIAL_DAMPING
    control[abi.GROWTH] = 2.0
    work = np.empty(_levenberg_marquardt.levenberg_marquardt_work(problem.structure, problem.linear.work))
    p = problem
    return _iterate(
        p,
        q,
        control,
        budget,
        lambda: _levenberg_marquardt.levenberg_marquardt(
            p.evaluate, p.ints, p.floats, p.structure, p.scales, p.linear.address, p.linear.pattern, q, control, work
        ),
    )


def newton(problem: Problem, q: FloatArray, tolerance: float, budget: Budget) -> Run:
    """Algorithm 1: full steps with the pseudo-inverse, in place."""
    control = np.zeros(abi.CONTROL)
    control[abi.TOLERANCE] = tolerance
    control[abi.KEEP_ROWS] = 1.0
    p = problem
    dense = p.rows * p.unknowns <= DENSE_NEWTON
    work = np.empty(_newton.newton_work(p.structure, p.rows * p.unknowns if dense else p.linear.work))
    pivots = np.empty(p.unknowns, dtype=np.int64)
    tables = (p.evaluate, p.ints, p.floats, p.structure, p.scales, p.linear.address, p.linear.pattern)
    return _iterate(
        p,
        q,
        control,
        budget,
        lambda: _newton.newton(*tables, dense, q, control, work, pivots),
    )


def newton_lu(problem: Problem, q: FloatArray, tolerance: float, budget: Budget) -> Run:
    """Algorithm 1 as printed: J⁻¹ by LU, and J⁺ only where J is singular or not square, in place."""
    from cardan.solvers import _algorithm_1 as kernel

    p = problem
    check_dense(p)
    control = algorithm_1_control(p, tolerance)
    work = np.empty(kernel.algorithm_1_work(p.structure))
    pivots = np.empty(kernel.algorithm_1_integers(p.structure), dtype=np.int64)
    return _iterate(
        p,
        q,
        control,
        budget,
        lambda: kernel.algorithm_1(p.evaluate, p.ints, p.floats, p.structure, p.scales, q, control, work, pivots),
    )


def check_dense(problem: Problem) -> None:
    """Refuse what Algorithm 1 cannot decompose as one matrix."""
    if problem.rows * problem.unknowns > DENSE_NEWTON:
        raise ModelError(
            f"method 'newton_lu' decomposes J as one matrix, here of {problem.rows} × {problem.unknowns} entries; it "
            f"must have {DENSE_NEWTON} at the most: use method='newton', which is sparse for large systems"
        )


def algorithm_1_control(problem: Problem, tolerance: float, inverse: float = abi.LU_FIRST) -> FloatArray:
    """Control vector of Algorithm 1.  A pivot must exceed what rounding alone leaves of one: free unknowns × ε."""
    from cardan.solvers._newton import SINGULAR_RTOL

    control: FloatArray = np.zeros(abi.CONTROL)
    control[abi.TOLERANCE] = tolerance
    control[abi.INVERSE] = inverse
    free = np.count_nonzero(problem.scales[problem.rows :])  # an unknown with the scale 0 is held
    control[abi.SINGULAR] = free * np.finfo(float).eps
    control[abi.TRUNCATION] = SINGULAR_RTOL
    return control


def gradient(
    problem: Problem, q: FloatArray, tolerance: float, budget: Budget, gain: float = SPRING_GAIN
) -> Run:
    """Spring steps, in place."""
    control = np.zeros(abi.CONTROL)
    control[abi.TOLERANCE] = tolerance
    control[abi.STEP_GAIN] = gain
    work = np.empty(_gradient.gradient_work(problem.structure))
    p = problem
    return _iterate(
        p,
        q,
        control,
        budget,
        lambda: _gradient.gradient(p.evaluate, p.ints, p.floats, p.structure, p.scales, q, control, work),
    )


def hybrid(problem: Problem, q: FloatArray, tolerance: float, budget: Budget) -> Run:
    """Spring steps until near, then Newton, in place."""
    near = max(SWITCH_RESIDUAL, tolerance)
    first = gradient(problem, q, near, Budget(min(SWITCH_ITERATIONS, budget.iterations), budget.deadline), FULL_GAIN)
    left = budget.iterations - first.iterations
    if first.outcome is Outcome.BROKEN or left <= 0 or budget.out_of_time():
        return first
    second = newton(problem, q, tolerance, Budget(left, budget.deadline))
    return Run(second.outcome, first.iterations + second.iterations, second.residual, second.cost)


@dataclass(frozen=True, slots=True)
class Solver:
    """A method by name, with the iterations it gets where the user says nothing."""

    name: str
    run: Callable[[Problem, FloatArray, float, Budget], Run]
    iterations: int


REGISTRY: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver("levenberg_marquardt", levenberg_marquardt, 200),
        Solver("newton", newton, 100),
        Solver("newton_lu", newton_lu, 100),
        Solver("gradient", gradient, 20_000),
        Solver("hybrid", hybrid, 1_000),
    )
}
