"""Assembly: from a start to poses that satisfy every constraint, with a verdict that is judged anew at the end.

``auto`` is Levenberg–Marquardt with lengths measured in L, the extent of the mechanism.  Where it stalls, it is tried
again from a start moved a little and with another L, and then from reproducible random poses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from cardan.analysis.restarts import Restarts
from cardan.analysis.result import AssemblyResult, Status
from cardan.analysis.winding import has_too_many_turns, stages, with_whole_turns
from cardan.coordinates import formulations, verdict
from cardan.coordinates.formulations import Formulation
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.solvers import methods
from cardan.solvers.abi import Outcome
from cardan.solvers.methods import Budget, Run
from cardan.solvers.problem import Problem
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_blocks = LazyModule("cardan.solvers._blocks")

AUTO: Final = "auto"
Method = Literal["auto", "levenberg_marquardt", "newton", "newton_lu", "gradient", "hybrid"]

RESTARTS = 100
MOST_ITERATIONS = 10**15  # nobody waits for more, and kernels count in floats
TARGET = 0.25  # of the tolerance: what the solvers aim at, so that rounding in the final poses leaves the verdict
NEAR = 1e-5  # a residual that may be met as far as rounding goes; worth a look
# Of that, where the model has no length: what is solved in the spread of the start is judged in metres, and this leaves
# no doubt up to a spread of 400 m, so that the same iterations are made in every unit.
POINTS_TARGET = 1e-2
LEAST_TARGET = 1e-15  # residuals are not computed better than this
UNIT = 1e-9  # how far the square of a quaternion's length may be from one
POSE_ASKED = f"its numbers must be finite and its quaternion of length 1, the square of which may be off by {UNIT}"
SADDLE_ITERATIONS = 3  # a first attempt that stalls this soon began at a saddle: it is disturbed a little
DISTURBANCE = 0.05  # rad, and in units of L
OTHER_LENGTH = 0.25  # of L, tried where the first attempt crept on to its iteration limit
GETTING_ON = 0.98  # of the cost before: an attempt that ends below it has not been in vain
SAME_COST = 1e-3  # relative: two attempts that ended this near ended at the same minimum
CONFLICT_SHARE = 0.25  # of all attempts ended at the same least residual: evidence of a contradiction
CONFLICT_ENOUGH = 12  # ends that must agree; where the first so many all do, there is no need to go on

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
    seconds: float | None
    restarts: int
    seed: int


class _Task(NamedTuple):
    """One assembly: what was asked for, until when it may take, and the time of its drivers."""

    options: _Options
    deadline: float | None
    time: float

    def is_late(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline


def assemble(
    system: System,
    start: State | Mapping[Any, Any] | None,
    *,
    at_time: float | None,
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
    try:
        options = _checked(method, formulation, tolerance, max_iterations, max_seconds, restarts, seed)
    except TypeError:  # what has no hash is no option either: said by the check itself
        options = _check(method, formulation, tolerance, max_iterations, max_seconds, restarts, seed)
    deadline = None if options.seconds is None else began + options.seconds
    task = _Task(options, deadline, start_time(start, at_time))
    coordinates = start_coordinates(system, start)
    near = start_angles(system, start)
    if system.in_one_piece:
        end = _solve(system, formulations.to_reference(system, coordinates, near), task)
        # what was met at the start stays as it is, to the last bit
        moved = formulations.from_reference(system, end.q) if end.moved else coordinates.copy()
        return _verdict(system, moved, _angles(system, end, near), [end], task, began)
    moved = coordinates.copy()
    angles = formulations.angles(system, formulations.to_reference(system, coordinates, near)).copy()
    ends = []
    for bodies, piece in system.components():
        mine = [system.counted_angles.index(key) for key in piece.counted_angles]
        end = _solve(piece, formulations.to_reference(piece, coordinates[bodies], near[mine]), task)
        if end.moved:
            moved[bodies] = formulations.from_reference(piece, end.q)
        angles[mine] = _angles(piece, end, near[mine])
        ends.append(end)
    return _verdict(system, moved, angles, ends, task, began)


class _End(NamedTuple):
    """Where the attempts at one connected piece ended: the best of them, and what all took."""

    run: Run
    q: FloatArray
    attempts: int
    iterations: int
    length: float  # what lengths were solved in [m]
    conflict: bool = False
    projected: bool = False  # the start was moved before the first iteration

    @property
    def moved(self) -> bool:
        return self.projected or self.iterations > 0


def _angles(system: System, end: _End, near: FloatArray) -> FloatArray:
    """Angles of the turns where it ended; those of the start, to the last bit, where it did not move."""
    found = formulations.angles(system, end.q)
    return found if end.moved else formulations.same_angles(found, near)


def _solve(system: System, q: FloatArray, task: _Task) -> _End:
    """Solve one connected piece from q."""
    end = _solve_once(system, q, task)
    if system.length or end.run.outcome is not Outcome.CONVERGED or _is_met(system, end.q, task):
        return end
    # It was met as the spread of its start lets it be, which is larger than what it is judged by.
    again = _solve_once(system, end.q.copy(), task)
    iterations, projected = end.iterations + again.iterations, end.projected or again.projected
    return again._replace(attempts=end.attempts, iterations=iterations, projected=projected)


def _solve_once(system: System, q: FloatArray, task: _Task) -> _End:
    """Solve it to what its length, or the spread of its start, asks for."""
    options = task.options
    if formulations.projects(options.formulation):
        # What is met at the start is left alone; all else begins where the joints of the tree are met.
        length = system.extent_at(q)
        problem = formulations.problem(system, "manifold", length, task.time)
        run = _remeasured(_AT_START, problem, q)
        if run.residual <= _target(system, length, options.tolerance):
            return _End(run, q, 1, 0, length)
        end = _auto(system, q, task) if options.method == AUTO else _attempt(system, q, task)
        return end._replace(projected=True)
    return _auto(system, q, task) if options.method == AUTO else _attempt(system, q, task)


_AT_START = Run(Outcome.CONVERGED, 0, 0.0, 0.0)


def _attempt(system: System, q: FloatArray, task: _Task) -> _End:
    """One attempt by the method that was asked for, in place."""
    options = task.options
    length = system.extent_at(q)
    q = with_whole_turns(system, q, length, task.time)
    target = _target(system, length, options.tolerance)
    budget = Budget(options.iterations, task.deadline)
    problem = formulations.problem(system, options.formulation, length, task.time)
    run = _run(methods.REGISTRY[options.method].run, system, problem, q, target, budget, options.formulation)
    return _End(run, q, 1, run.iterations, length)


def _run(
    solve: Callable[[Problem, FloatArray, float, Budget], Run],
    system: System,
    problem: Problem,
    q: FloatArray,
    target: float,
    budget: Budget,
    formulation: str,
) -> Run:
    """One run of a solver from the poses q, in place."""
    x = formulations.enter(system, formulation, q)
    run = solve(problem, x, target, budget)
    formulations.leave(system, formulation, x, q)
    return run


def _check(
    method: Any,
    formulation: Any,
    tolerance: Any,
    max_iterations: Any,
    max_seconds: Any,
    restarts: Any,
    seed: Any,
) -> _Options:
    check.choice(method, "method", [AUTO, *methods.REGISTRY])
    check.choice(formulation, "formulation", formulations.CHOICES)
    tolerance = verdict.checked_tolerance(tolerance)
    solver = methods.REGISTRY["levenberg_marquardt" if method == AUTO else method]
    iterations = solver.iterations
    if max_iterations is not None:
        iterations = min(check.count(max_iterations, "max_iterations", 1), MOST_ITERATIONS)
    if restarts is not None and method != AUTO:
        raise ModelError(f"restarts is {restarts}, but method {method!r} makes one attempt; use method='auto'")
    count = RESTARTS if restarts is None else check.count(restarts, "restarts", 0)
    seconds = None if max_seconds is None else check.positive(max_seconds, "max_seconds")
    return _Options(method, formulation, tolerance, iterations, seconds, count, check.count(seed, "seed", 0))


_checked = lru_cache(maxsize=64, typed=True)(_check)  # the same few options are asked for again and again


def start_coordinates(system: System, start: State | Mapping[Any, Any] | None) -> FloatArray:
    """r and p of every body, shape (bodies, 7): the authored poses, a state's, or the authored with some replaced."""
    if start is None:
        return system.authored
    if isinstance(start, State):
        _check_poses(start)
        if start.names == system.names:
            return start.coordinates
        missing = set(system.names) ^ set(start.names)
        if missing:
            raise ModelError(
                f"the start is a state of other bodies: {', '.join(map(repr, sorted(missing)[:5]))} not in both; pass "
                "a state of this mechanism, or a dict of poses for some of its bodies"
            )
        return start.coordinates[[start.names.index(name) for name in system.names]]
    if not isinstance(start, Mapping):
        raise ModelError(f"start is {start!r}; it must be a State or {{body: (position, quaternion)}}")
    return system.state().moved(start).coordinates


def start_time(start: Any, at_time: Any) -> float:
    """The time asked for [s], or that of the start, or zero."""
    if at_time is None:
        return start.time if isinstance(start, State) else 0.0
    return check.number(at_time, "time")


def start_angles(system: System, start: Any) -> FloatArray:
    """Angles [rad], shape (turns,), that whole turns are counted from: those of a state, or zero."""
    if not system.counted_angles:
        return _NO_ANGLES
    known = start.angles if isinstance(start, State) else {}
    found: FloatArray = np.array([known.get(key, 0.0) for key in system.counted_angles])
    if not np.isfinite(found).all():
        key = system.counted_angles[int(np.flatnonzero(~np.isfinite(found))[0])]
        raise ModelError(f"the angle of {key!r} in the start is {known[key]}; it must be finite")
    return found


_NO_ANGLES: FloatArray = np.empty(0)


def _check_poses(state: State) -> None:
    squares = np.einsum("ij,ij->i", state.quaternions, state.quaternions)
    bad = np.flatnonzero(~(np.isfinite(state.positions).all(axis=1) & (np.abs(squares - 1.0) <= UNIT)))
    if bad.size:
        name = state.names[bad[0]]
        raise ModelError(f"the pose of body {name!r} in the start is {state[name]}; {POSE_ASKED}")


def _target(system: System, length: float, tolerance: float) -> float:
    """What a solver must reach so that the verdict, in metres and radians, is met with something to spare."""
    sharper = 1.0 if system.length else POINTS_TARGET
    return max(TARGET * sharper * tolerance * system.least_sensitivity(length), LEAST_TARGET)


def _auto(system: System, first: FloatArray, task: _Task) -> _End:
    """Levenberg–Marquardt from the start, then disturbed or with another L, then from random poses."""
    options = task.options
    length = system.extent_at(first)
    problem = formulations.problem(system, options.formulation, length, task.time)
    solve = methods.levenberg_marquardt
    first, staged = _in_stages(system, first, length, task)
    q = first.copy()
    target = _target(system, length, options.tolerance)
    budget = Budget(options.iterations, task.deadline)
    run = _run(solve, system, problem, q, target, budget, options.formulation)
    if _met(system, run, q, task):
        return _End(run, q, 1, run.iterations + staged, length)
    best = run, q
    costs = [run.cost]
    before = _remeasured(run, problem, formulations.enter(system, options.formulation, first)).cost
    iterations, attempts = run.iterations + staged, 1
    authored = formulations.to_reference(system, system.authored, formulations.angles(system, first))
    draws = Restarts(system, authored, length, options.seed)
    while True:
        same = sum(cost <= best[0].cost * (1.0 + SAME_COST) for cost in costs)
        agreed = same == attempts == CONFLICT_ENOUGH
        late = task.is_late()
        if agreed or late or attempts > options.restarts:
            conflict = same >= CONFLICT_ENOUGH and same >= CONFLICT_SHARE * attempts and not late
            if conflict and system.counted_angles and has_too_many_turns(system, first, length, task.time):
                conflict = False  # all attempts ended short of them
            return _End(*best, attempts, iterations, length, conflict)
        tried = problem
        if system.counted_angles and run.outcome is Outcome.RUNNING and run.cost < GETTING_ON * before:
            q = q.copy()  # it makes turns, a radian at a time: it goes on from where it is
        elif attempts == 1 and run.outcome is Outcome.RUNNING:
            q = first.copy()
            tried = formulations.problem(system, options.formulation, OTHER_LENGTH * length, task.time)
        elif attempts == 1 and run.iterations <= SADDLE_ITERATIONS:
            drawn = formulations.with_angles_of_poses(system, draws.near(first, attempts, DISTURBANCE))
            q, staged = _in_stages(system, drawn, length, task)
            iterations += staged
        else:
            drawn = formulations.with_angles_of_poses(system, draws.anywhere(attempts))
            q, staged = _in_stages(system, drawn, length, task)
            iterations += staged
        before = run.cost
        run = _run(solve, system, tried, q, target, budget, options.formulation)
        attempts += 1
        iterations += run.iterations
        if _met(system, run, q, task):
            return _End(run, q, attempts, iterations, length)
        if tried is not problem:
            # costs are compared in one measure
            run = _remeasured(run, problem, formulations.enter(system, options.formulation, q))
        if run.cost < best[0].cost:
            best = run, q
        costs.append(run.cost)


def _in_stages(system: System, q: FloatArray, length: float, task: _Task) -> tuple[FloatArray, int]:
    """A start with its whole turns made: counted where they can be, else led through; and the iterations that took."""
    q = with_whole_turns(system, q, length, task.time)
    way = stages(system, q, length, task.time)
    if not way:
        return q, 0
    problem = formulations.problem(system, "manifold", length, task.time)
    problem = problem.with_floats(problem.floats.copy())
    target = _target(system, length, task.options.tolerance)
    at, iterations = q.copy(), 0
    for values in way:
        for place, value in values:
            problem.floats[place] = value
        run = methods.levenberg_marquardt(problem, at, target, Budget(task.options.iterations, task.deadline))
        iterations += run.iterations
        if not run.residual <= NEAR or task.is_late():
            return q, iterations
    return at, iterations


def _met(system: System, run: Run, q: FloatArray, task: _Task) -> bool:
    """The solver has met its target, or came as near to it as rounding lets it and the verdict is satisfied."""
    if run.outcome is Outcome.CONVERGED:
        return True
    return run.residual <= NEAR and _is_met(system, q, task)


def _is_met(system: System, q: FloatArray, task: _Task) -> bool:
    """The verdict on a pose."""
    poses, angles = formulations.from_reference(system, q), formulations.angles(system, q)
    length = system.judged_length
    found, bound = verdict.judge(system, poses, length, task.options.tolerance, None, angles, task.time)
    return found <= bound


def _remeasured(run: Run, problem: Problem, q: FloatArray) -> Run:
    residual = problem.residual(q)
    with np.errstate(over="ignore"):  # beyond all numbers is no cost either
        cost = float(_blocks.cost(problem.structure, problem.scales, residual))
    return Run(run.outcome, run.iterations, float(np.abs(residual).max(initial=0.0)), cost)


def _verdict(
    system: System,
    coordinates: FloatArray,
    angles: FloatArray,
    ends: list[_End],
    task: _Task,
    began: float,
) -> AssemblyResult:
    """Evaluate every constraint at the poses that are returned; only that decides.

    Each connected piece is judged by its own extent: a watch in a ship is held to the tolerance of a watch.
    """
    options = task.options
    residuals = verdict.residuals(system, coordinates, angles, task.time)
    if system.in_one_piece:
        length = system.judged_length
        residual, allowed = verdict.judge(system, coordinates, length, options.tolerance, residuals, angles)
        met = residual <= allowed
    else:
        residual, allowed, met = 0.0, options.tolerance, True
        for bodies, piece in system.components():
            mine = angles[[system.counted_angles.index(key) for key in piece.counted_angles]]
            where = coordinates[bodies]
            length = piece.judged_length
            found, bound = verdict.judge(piece, where, length, options.tolerance, None, mine, task.time)
            if not found <= bound:
                met = False
            if found / bound > residual / allowed or not np.isfinite(found):
                residual, allowed = found, bound
    if met:
        status = Status.ASSEMBLED
    elif task.is_late():
        status = Status.TIME_LIMIT
    elif any(end.conflict for end in ends):
        status = Status.CONFLICT
    else:
        unmet = [end.run for end in ends if end.run.outcome is not Outcome.CONVERGED] or [end.run for end in ends]
        status = _STATUS[max(unmet, key=lambda run: run.residual).outcome]
    return AssemblyResult(
        system,
        system.state(coordinates, angles if system.counted_angles else None, task.time),
        residuals,
        status=status,
        residual=residual,
        tolerance=allowed,
        iterations=sum([end.iterations for end in ends]),
        restarts=sum([end.attempts for end in ends]) - len(ends),
        seconds=time.perf_counter() - began,
        method=options.method,
        formulation=options.formulation,
    )
