"""Assembly: from a start to poses that satisfy every constraint, with a verdict that is judged anew at the end.

``auto`` is Levenberg–Marquardt with lengths measured in L, the extent of the mechanism.  Where it stalls, it is tried
again from a start moved a little and with another L, and then from reproducible random poses.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from cardan.analysis.restarts import Restarts
from cardan.analysis.result import AssemblyResult, Status
from cardan.coordinates import formulations
from cardan.coordinates.formulations import Formulation
from cardan.errors import ModelError
from cardan.solvers import methods
from cardan.solvers.abi import Outcome
from cardan.solvers.methods import Budget, Run
from cardan.solvers.problem import Problem
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import System

AUTO: Final = "auto"
Method = Literal["auto", "levenberg_marquardt", "newton", "gradient", "hybrid"]

RESTARTS = 40
# Rounding of a pose r [m] alone moves a residual by this many ulps of |r|: no tolerance below it can be asked for.
ROUNDING = 64 * np.finfo(float).eps
TARGET = 0.25  # of the tolerance: what the solvers aim at, so that rounding in the final poses leaves the verdict
SADDLE_ITERATIONS = 3  # a first attempt that stalls this soon began at a saddle: it is disturbed a little
DISTURBANCE = 0.05  # rad, and in units of L
OTHER_LENGTH = 0.25  # of L, tried where the first attempt crept on to its iteration limit
SAME_COST = 1e-3  # relative: two attempts that ended this near ended at the same minimum
CONFLICT_SHARE = 0.25  # of all stalled attempts at the same least residual: evidence of a contradiction
CONFLICT_ENOUGH = 12  # equal ends in a row from the first on: no need to go on

_STATUS = {
    Outcome.RUNNING: Status.ITERATION_LIMIT,
    Outcome.CONVERGED: Status.STALLED,  # the kernel met its target but the verdict did not: never reported as met
    Outcome.STALLED: Status.STALLED,
    Outcome.BROKEN: Status.DIVERGED,
}


@dataclass(frozen=True, slots=True)
class _Options:
    method: str
    formulation: str
    tolerance: float
    iterations: int
    deadline: float | None
    restarts: int
    seed: int


def assemble(
    system: System,
    start: State | Mapping[Any, Any] | None,
    *,
    method: Method,
    formulation: Formulation,
    tolerance: float,
    max_iterations: int | None,
    max_seconds: float | None,
    restarts: int | None,
    seed: int,
) -> AssemblyResult:
    """See :meth:`cardan.Mechanism.assemble`."""
    began = time.perf_counter()
    options = _check(method, formulation, tolerance, max_iterations, max_seconds, restarts, seed, began)
    coordinates = start_coordinates(system, start)
    first = formulations.to_reference(system, coordinates)
    if options.method == AUTO:
        run, q, attempts, iterations, conflict = _auto(system, first, options)
    else:
        problem = formulations.problem(system, formulation)
        target = TARGET * _allowed(system, first, options.tolerance)
        q = first
        run = methods.REGISTRY[method].run(problem, q, target, Budget(options.iterations, options.deadline))
        attempts, iterations, conflict = 1, run.iterations, False
    return _verdict(system, q, run, conflict, options, attempts - 1, iterations, began)


def _check(
    method: Any,
    formulation: Any,
    tolerance: Any,
    max_iterations: Any,
    max_seconds: Any,
    restarts: Any,
    seed: Any,
    began: float,
) -> _Options:
    check.choice(method, "method", [AUTO, *methods.REGISTRY])
    check.choice(formulation, "formulation", formulations.REGISTRY)
    tolerance = check.positive(tolerance, "tolerance")
    if tolerance >= 1.0:
        raise ModelError(f"tolerance is {tolerance}; it must be below 1 (lengths are relative to the extent)")
    solver = methods.REGISTRY["levenberg_marquardt" if method == AUTO else method]
    iterations = solver.iterations if max_iterations is None else _count(max_iterations, "max_iterations", 1)
    if restarts is not None and method != AUTO:
        raise ModelError(f"restarts is {restarts}, but method {method!r} makes one attempt; use method='auto'")
    count = RESTARTS if restarts is None else _count(restarts, "restarts", 0)
    deadline = None if max_seconds is None else began + check.positive(max_seconds, "max_seconds")
    return _Options(method, formulation, tolerance, iterations, deadline, count, _count(seed, "seed", 0))


def _count(value: Any, what: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ModelError(f"{what} is {value!r}; it must be a whole number from {least} on")
    return int(value)


def start_coordinates(system: System, start: State | Mapping[Any, Any] | None) -> FloatArray:
    """r and p of every body, shape (bodies, 7): the authored poses, a state's, or the authored with some replaced."""
    if start is None:
        return system.authored
    if isinstance(start, State):
        if start.names == system.names:
            _check_finite(start)
            return start.coordinates
        missing = set(system.names) ^ set(start.names)
        if missing:
            raise ModelError(
                f"the start is a state of other bodies: {', '.join(map(repr, sorted(missing)[:5]))} not in both; pass "
                "a state of this mechanism, or a dict of poses for some of its bodies"
            )
        _check_finite(start)
        return start.coordinates[[start.names.index(name) for name in system.names]]
    if not isinstance(start, Mapping):
        raise ModelError(f"start is {start!r}; it must be a State or {{body: (position, quaternion)}}")
    return system.state().moved(start).coordinates


def _check_finite(state: State) -> None:
    bad = np.flatnonzero(~np.isfinite(state.coordinates).all(axis=1))
    if bad.size:
        raise ModelError(f"the pose of body {state.names[bad[0]]!r} in the start has a number that is not finite")


def _allowed(system: System, coordinates: FloatArray, tolerance: float) -> float:
    """The tolerance, or what rounding of the largest coordinate alone can cause, whichever is more."""
    positions = coordinates.reshape(-1, 7)[:, :3]
    largest = max(float(np.abs(positions).max(initial=0.0)), float(np.abs(system.ground_center).max()))
    return max(tolerance, ROUNDING * max(1.0, largest / system.length))


def _auto(system: System, first: FloatArray, options: _Options) -> tuple[Run, FloatArray, int, int, bool]:
    """(best run, its q, attempts, iterations of all, whether the constraints seem to contradict each other)."""
    problem = formulations.problem(system, options.formulation)
    solve = methods.levenberg_marquardt
    q = first.copy()
    target = TARGET * _allowed(system, q, options.tolerance)
    run = solve(problem, q, target, Budget(options.iterations, options.deadline))
    if run.outcome is Outcome.CONVERGED:
        return run, q, 1, run.iterations, False
    best = run, q
    costs = [run.cost] if run.outcome is Outcome.STALLED else []
    iterations, attempts = run.iterations, 1
    draws = Restarts(system, formulations.to_reference(system, system.authored), options.seed)
    while True:
        same = sum(cost <= best[0].cost * (1.0 + SAME_COST) for cost in costs)
        agreed = same == attempts == CONFLICT_ENOUGH
        late = options.deadline is not None and time.perf_counter() >= options.deadline
        if agreed or late or attempts > options.restarts:
            conflict = same >= 3 and same >= CONFLICT_SHARE * attempts and not late
            return *best, attempts, iterations, conflict
        tried = problem
        if attempts == 1 and run.outcome is Outcome.RUNNING:
            q = first.copy()
            tried = formulations.problem(system, options.formulation, OTHER_LENGTH * system.length)
        elif attempts == 1 and run.iterations <= SADDLE_ITERATIONS:
            q = draws.near(first, attempts, DISTURBANCE)
        else:
            q = draws.anywhere(attempts)
        target = TARGET * _allowed(system, q, options.tolerance)
        run = solve(tried, q, target, Budget(options.iterations, options.deadline))
        attempts += 1
        iterations += run.iterations
        if run.outcome is Outcome.CONVERGED:
            return run, q, attempts, iterations, False
        if tried is not problem:
            run = _remeasured(run, problem, q)  # costs are compared in one measure
        if run.cost < best[0].cost:
            best = run, q
        if run.outcome is Outcome.STALLED:
            costs.append(run.cost)


def _remeasured(run: Run, problem: Problem, q: FloatArray) -> Run:
    residual = problem.residual(q) * problem.scales[: problem.rows]
    return Run(run.outcome, run.iterations, float(np.abs(residual).max(initial=0.0)), 0.5 * float(residual @ residual))


def _verdict(
    system: System,
    q: FloatArray,
    run: Run,
    conflict: bool,
    options: _Options,
    restarts: int,
    iterations: int,
    began: float,
) -> AssemblyResult:
    """Evaluate every constraint at the poses that are returned; only that decides."""
    finite = bool(np.isfinite(q).all())
    coordinates = formulations.from_reference(system, q) if finite else q.reshape(-1, 7).copy()
    judge = formulations.problem(system, "manifold")
    residuals = judge.residual(formulations.to_reference(system, coordinates))
    scaled = np.abs(residuals) * judge.scales[: judge.rows]
    residual = float(scaled.max(initial=0.0)) if finite else float("inf")
    allowed = _allowed(system, coordinates, options.tolerance) if finite else options.tolerance
    if finite and residual <= allowed:
        status = Status.ASSEMBLED
    elif options.deadline is not None and time.perf_counter() >= options.deadline:
        status = Status.TIME_LIMIT
    elif conflict:
        status = Status.CONFLICT
    else:
        status = _STATUS[run.outcome]
    return AssemblyResult(
        system,
        system.state(coordinates),
        residuals,
        status=status,
        residual=residual,
        tolerance=allowed,
        iterations=iterations,
        restarts=restarts,
        seconds=time.perf_counter() - began,
        method=options.method,
        formulation=options.formulation,
    )
