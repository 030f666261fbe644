"""The attempts to assemble one connected piece of a mechanism from one start.

``auto`` is Levenberg–Marquardt with lengths measured in L, the extent of the mechanism.  If an attempt does not meet
the tolerance, :mod:`cardan.analysis._policy` chooses the next one: the start slightly disturbed, another L, or
reproducible random poses.  A pose that was reached from random poses is brought back towards the start.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cardan.analysis.contact_ends import lacks_contact
from cardan.analysis.impossible import is_impossible
from cardan.analysis.options import AUTO, RESTARTS, AssemblyOptions
from cardan.analysis.restarts import CLOSE_REACH, REACH, Restarts
from cardan.analysis.tables import Memo
from cardan.analysis.whole_turns import has_too_many_turns, stages, with_whole_turns
from cardan.coordinates import formulations, relative, verdict
from cardan.lazy import LazyModule, TieredModule
from cardan.solvers import methods
from cardan.solvers.problem import Budget, Job, Problem, Run
from cardan.solvers.tables import Outcome
from cardan.system.state import FloatArray
from cardan.system.system import System

_blocks = LazyModule("cardan.solvers._blocks")
_parts = LazyModule("cardan.analysis.parts")
_policy = TieredModule("cardan.analysis._policy")

TARGET = 0.25  # of the tolerance: target of the solvers, so that rounding of the final poses does not matter
NEAR = 1e-5  # a smaller residual may be limited by rounding only: the verdict is computed
POINTS_TARGET = 1e-2  # of the tolerance: a start in a model without a length of its own that is met so well is kept
MOST_REFINED = 10  # iterations that refine a pose
LEAST_TARGET = 1e-15  # residuals are not computed more accurately than this
DISTURBANCE = 0.05  # [rad], and in units of L: disturbance of a start or an end at a saddle point
OTHER_LENGTH = 0.25  # of L: unit of length of the second attempt if the first reached its iteration limit
COSTS = 128  # initial capacity of the list of costs; it grows when needed


class Task(NamedTuple):
    """One assembly: its options, its deadline on the clock of time.perf_counter, and the time of the drivers [s]."""

    options: AssemblyOptions
    deadline: float | None
    time: float
    workers: int = 1  # threads of a spring step
    is_part: bool = False  # the system is a part of another, and is not divided again

    def is_late(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline

    @property
    def budget(self) -> Budget:
        """The limits of one attempt: iterations and deadline."""
        return Budget(self.options.iterations, self.deadline)


class End(NamedTuple):
    """Result of the attempts at one piece: the best attempt, and the totals of all."""

    run: Run
    q: FloatArray
    attempts: int
    iterations: int
    conflict: bool = False
    projected: bool = False  # the start was moved before the first iteration

    @property
    def moved(self) -> bool:
        return self.projected or self.iterations > 0

    @property
    def is_searched(self) -> bool:
        """Whether it is solved, a conflict, or all restarts of the default were made."""
        return self.conflict or self.attempts > RESTARTS or self.run.outcome is Outcome.CONVERGED


def solve(system: System, q: FloatArray, task: Task) -> End:
    """Solve one connected piece from solver coordinates q."""
    end = _solve(system, q, task)
    if system.index.contacts and end.run.outcome is Outcome.CONVERGED and task.options.contact_restarts:
        return _until_contact(system, end, task)
    return end


def _until_contact(system: System, end: End, task: Task) -> End:
    """Restarts, if all equations are met in a pose where the shapes do not touch in a point."""
    once = task._replace(options=replace(task.options, restarts=0))
    draws: Restarts | None = None
    found = end
    while not _touches(system, found, task):
        if end.attempts > task.options.contact_restarts or task.is_late():
            return end
        if draws is None:
            authored = formulations.to_reference(system, system.authored, formulations.angles(system, end.q))
            draws = Restarts(system, authored, system.extent_at(end.q), task.options.seed)
        drawn = draws.anywhere(end.attempts, CLOSE_REACH)
        found = _solve(system, formulations.with_angles_of_poses(system, drawn), once)
        end = end._replace(attempts=end.attempts + 1, iterations=end.iterations + found.iterations)
    moved = end.projected or draws is not None
    return found._replace(attempts=end.attempts, iterations=end.iterations, projected=moved)


def _touches(system: System, end: End, task: Task) -> bool:
    """Whether all equations are met, and the shapes of every contact touch in a point."""
    poses, angles = formulations.from_reference(system, end.q), formulations.angles(system, end.q)
    return is_met(system, end.q, task) and not lacks_contact(system, poses, angles)


def _solve(system: System, q: FloatArray, task: Task) -> End:
    if not system.own_length and _is_rounded(system, q, task):
        problem = formulations.problem(system, "manifold", system.extent_at(q), task.time)
        return End(_measured(problem, q, Outcome.CONVERGED, 0), q, 1, 0)
    end = _solve_once(system, q, task)
    if system.own_length or end.run.outcome is not Outcome.CONVERGED:
        return end
    if end.iterations == 0 and is_met(system, end.q, task):
        return end
    return end._replace(iterations=end.iterations + refine(system, end.q, task.options.tolerance, task.time))


def target_residual(system: System, length: float, tolerance: float) -> float:
    """The scaled residual that a solver must reach so that the verdict, in metres and radians, is met.

    Without a length of its own a piece is solved in units of the spread of its start, and then refined.
    """
    return max(TARGET * tolerance * system.least_sensitivity(length), LEAST_TARGET)


def refine(system: System, q: FloatArray, tolerance: float, at_time: float) -> int:
    """q ← the pose after more iterations, at least one, until the verdict is met; returns their number.

    Lengths come as near to zero as their own rounding allows, whatever the unit of length in which q was solved.
    A pose that becomes no better is left as it was.  Newton's method follows if Levenberg–Marquardt stalls.
    """
    problem = formulations.problem(system, "manifold", system.judged_length, at_time)
    best, made = _judged(system, q, tolerance, at_time), 0
    for kernel in ("_levenberg_marquardt", "_newton"):
        job = Job(problem, methods.load(kernel), {})
        job.start(0.0)
        x = q.copy()
        for _ in range(MOST_REFINED):
            job.iterate(x, 1)
            made += 1
            found = _judged(system, x, tolerance, at_time)
            if not found.excess(tolerance) < best.excess(tolerance):
                break
            best, q[:] = found, x
            if best.met:
                return made
        if best.met:
            break
    return made


def _solve_once(system: System, q: FloatArray, task: Task) -> End:
    """Solve with lengths measured in the extent of the piece, or in the spread of its start."""
    options = task.options
    attempt = _auto if options.method == AUTO else _attempt
    if options.formulation not in relative.FORMULATIONS:
        return attempt(system, q, task)
    system.refuse_timed(f"formulation {options.formulation!r}")
    # A start that is met stays unchanged; any other is projected so that the joints of the tree are met.
    length = system.extent_at(q)
    run = _measured(formulations.problem(system, "manifold", length, task.time), q, Outcome.CONVERGED, 0)
    if run.residual <= target_residual(system, length, options.tolerance):
        return End(run, q, 1, 0)
    return attempt(system, q, task)._replace(projected=True)


def _attempt(system: System, q: FloatArray, task: Task) -> End:
    """One attempt by the chosen method; q is updated in place."""
    options = task.options
    length = system.extent_at(q)
    q = with_whole_turns(system, q, length, task.time)
    problem = formulations.problem(system, options.formulation, length, task.time)
    if options.solver.has_springs:
        problem = formulations.with_springs(system, options.formulation, problem, length, task.workers)
    x = formulations.enter(system, options.formulation, q)
    run = options.solver.run(problem, x, target_residual(system, length, options.tolerance), task.budget)
    formulations.leave(system, options.formulation, x, q)
    return End(run, q, 1, run.iterations)


def _auto(system: System, first: FloatArray, task: Task) -> End:
    """Attempts by Levenberg–Marquardt until one meets the tolerance or the policy gives up."""
    options = task.options
    length = system.extent_at(first)
    target = target_residual(system, length, options.tolerance)
    first, iterations = _in_stages(system, first, length, task)
    problem = formulations.problem(system, options.formulation, length, task.time)
    (stage,) = options.solver.stages
    job = stage.job(problem)
    q = first.copy()
    run = _run(system, job, q, target, task)
    iterations += run.iterations
    if _ends_met(system, run, q, task):
        return End(run, q, 1, iterations)
    cost_before = _measured(problem, formulations.enter(system, options.formulation, first), run.outcome, 0).cost
    history = _History(system, task, problem.unknowns, cost_before)
    best = run, q
    draws: Restarts | None = None
    while True:
        action = history.next_action(run, task.is_late())
        if history.is_best:
            best = run, q
        attempts = history.attempts
        if action in (_policy.END, _policy.CONFLICT):
            conflict = action == _policy.CONFLICT
            if conflict and draws is not None and history.is_far:
                best, more = _back(system, draws, job, best, first, history, task)
                iterations += more
            if conflict and not history.is_proved:
                conflict = not _has_too_many_turns(system, first, length, task)
            return End(*best, attempts, iterations, conflict)
        if action >= _policy.RESTART and _has_too_many_turns(system, first, length, task):
            return End(*best, attempts, iterations)  # the number of turns made from random poses would be a guess
        trial = job
        if action == _policy.CONTINUE:
            q = q.copy()
        elif action == _policy.OTHER_LENGTH:
            q = first.copy()
            trial = stage.job(formulations.problem(system, options.formulation, OTHER_LENGTH * length, task.time))
        else:
            if draws is None:
                authored = formulations.to_reference(system, system.authored, formulations.angles(system, first))
                draws = Restarts(system, authored, length, options.seed)
            drawn = _drawn(draws, action, attempts, first, best[1])
            q, staged = _in_stages(system, formulations.with_angles_of_poses(system, drawn), length, task)
            iterations += staged
        run = _run(system, trial, q, target, task)
        iterations += run.iterations
        if _ends_met(system, run, q, task):
            if draws is not None and history.is_far:
                (run, q), more = _back(system, draws, job, (run, q), first, history, task)
                iterations += more
            return End(run, q, attempts + 1, iterations)
        if trial is not job:  # costs are compared in one unit of length
            x = formulations.enter(system, options.formulation, q)
            run = _measured(problem, x, run.outcome, run.iterations)


def _has_too_many_turns(system: System, first: FloatArray, length: float, task: Task) -> bool:
    """Whether the drivers are too many turns away to be reached in stages."""
    return bool(system.counted_angles) and has_too_many_turns(system, first, length, task.time)


def is_proved(system: System, task: Task) -> bool:
    """Whether it is proved that no pose satisfies the system at the time of the task; computed once."""
    key = "is_proved", task.options.tolerance, task.time
    return system.cached(key, lambda: is_impossible(system, task.options.tolerance, task.time))


def is_in_parts(system: System, task: Task) -> bool:
    """Whether a part of the system is a conflict by itself, at the time of the task."""
    return bool(_parts.contradictory_part(system, task.options.tolerance, task.time, task.deadline))


def _drawn(draws: Restarts, action: int, attempt: int, first: FloatArray, best: FloatArray) -> FloatArray:
    """The poses where an attempt begins; first: the start, best: the end of the best attempt."""
    if action == _policy.TILT:
        return draws.near(best, attempt, DISTURBANCE, 0.0)
    if action == _policy.DISTURB:
        return draws.near(first, attempt, DISTURBANCE, draws.length)
    if action == _policy.HOP:
        return draws.some(best, attempt)
    return draws.anywhere(attempt, REACH if action == _policy.RESTART else CLOSE_REACH)


def _back(
    system: System,
    draws: Restarts,
    job: Job,
    found: tuple[Run, FloatArray],
    first: FloatArray,
    history: _History,
    task: Task,
) -> tuple[tuple[Run, FloatArray], int]:
    """A pose as good as the one found, but nearer to the first start, and the iterations used.

    Attempts begin between the pose found and the start, each nearer to the start.  They end where free parts have moved
    little.
    """
    iterations = 0
    target = target_residual(system, draws.length, task.options.tolerance)
    share = history.begin_way(draws.apart(found[1], first))
    while share and not task.is_late():
        q = formulations.with_angles_of_poses(system, draws.between(found[1], first, share))
        run = _run(system, job, q, target, task)
        iterations += run.iterations
        is_nearer, share = history.next_way(run.cost, _ends_met(system, run, q, task), draws.apart(q, first))
        if is_nearer:
            found = run, q
    return found, iterations


class _History:
    """The attempts so far, in the form that the policy reads."""

    def __init__(self, system: System, task: Task, unknowns: int, cost_before: float) -> None:
        self._system, self._task = system, task
        self._memo = memo = Memo.new()
        memo.has_angles = bool(system.counted_angles)
        memo.cost_before = cost_before
        memo.may_end_early = task.options.restarts is None
        memo.is_proved = -1.0
        memo.in_parts = 0.0 if task.is_part else -1.0
        memo.is_part = task.is_part
        memo.unknowns = unknowns
        self._costs: FloatArray = np.empty(COSTS)
        self.attempts = 0

    @property
    def is_proved(self) -> bool:
        """Whether it is proved that no pose satisfies the constraints."""
        return bool(self._memo.is_proved > 0.0)

    def next_action(self, run: Run, is_late: bool) -> int:
        """The action after an attempt; see :mod:`cardan.analysis._policy`."""
        self.attempts += 1
        if self.attempts > self._costs.size:
            self._costs = np.concatenate([self._costs, np.empty_like(self._costs)])
        memo = self._memo
        memo.attempts = self.attempts
        memo.cost = run.cost
        memo.outcome = run.outcome
        memo.taken = run.iterations
        memo.residual = run.residual
        memo.is_late = is_late
        restarts = self._task.options.restart_count
        action = int(_policy.next_attempt(restarts, memo.as_floats, self._costs))
        while action >= _policy.PROVE:
            if action == _policy.PROVE:
                memo.is_proved = is_proved(self._system, self._task)
            else:
                memo.in_parts = is_in_parts(self._system, self._task)
            action = int(_policy.next_attempt(restarts, memo.as_floats, self._costs))
        return action

    @property
    def is_best(self) -> bool:
        """Whether the last attempt is the best so far."""
        return bool(self._memo.is_best)

    @property
    def is_far(self) -> bool:
        """Whether the pose found was reached from random poses."""
        return bool(_policy.is_far(self._memo.as_floats))

    def begin_way(self, apart: float) -> float:
        """The share of the first attempt on the way back; apart: squared distance of the pose found."""
        self._memo.apart = apart
        self._memo.way = 1.0
        self._memo.share = _policy.FIRST_SHARE
        return float(_policy.FIRST_SHARE)

    def next_way(self, cost: float, is_met: bool, apart: float) -> tuple[bool, float]:
        """Whether an attempt on the way back ended as well and nearer; and the share of the next one, zero to end."""
        self._memo.cost = cost
        is_nearer = bool(_policy.is_nearer(self._memo.as_floats, is_met, apart))
        return is_nearer, float(self._memo.share)


def _run(system: System, job: Job, q: FloatArray, target: float, task: Task) -> Run:
    """One run of a solver from the poses q, in place."""
    formulation = task.options.formulation
    if formulation not in relative.FORMULATIONS:
        return job.run(q, target, task.budget)
    x = formulations.enter(system, formulation, q)
    run = job.run(x, target, task.budget)
    formulations.leave(system, formulation, x, q)
    return run


def _in_stages(system: System, q: FloatArray, length: float, task: Task) -> tuple[FloatArray, int]:
    """A start with its whole turns, and the iterations used.

    Turns are added to the counted angles if possible; otherwise the drivers are moved to their values in stages, and
    the system is solved at each stage.
    """
    if not system.counted_angles:
        return q, 0
    q = with_whole_turns(system, q, length, task.time)
    values = stages(system, q, length, task.time)
    if not values:
        return q, 0
    problem = formulations.problem(system, "manifold", length, task.time)
    problem = problem.with_floats(problem.floats.copy())
    target = target_residual(system, length, task.options.tolerance)
    (stage,) = task.options.solver.stages
    job = stage.job(problem)
    at, iterations = q.copy(), 0
    for stage_values in values:
        for position, value in stage_values:
            problem.floats[position] = value
        run = job.run(at, target, task.budget)
        iterations += run.iterations
        if not run.residual <= NEAR or task.is_late():
            return q, iterations
    return at, iterations


def _ends_met(system: System, run: Run, q: FloatArray, task: Task) -> bool:
    """Whether the solver has met its target, or is close to it and the verdict is met."""
    if run.outcome is Outcome.CONVERGED:
        return True
    if not run.residual <= near_residual(task.options.tolerance):
        return False
    if not system.own_length:
        refine(system, q, task.options.tolerance, task.time)
    return is_met(system, q, task)


def near_residual(tolerance: float) -> float:
    """A residual below may be limited by rounding only: the verdict is computed."""
    return max(NEAR, tolerance)


def is_met(system: System, q: FloatArray, task: Task) -> bool:
    """The verdict on solver coordinates."""
    return _judged(system, q, task.options.tolerance, task.time).met


def _judged(system: System, q: FloatArray, tolerance: float, at_time: float) -> verdict.Verdict:
    poses, angles = formulations.from_reference(system, q), formulations.angles(system, q)
    return verdict.judge_system(system, poses, angles, tolerance, at_time)[0]


def _is_rounded(system: System, q: FloatArray, task: Task) -> bool:
    """Whether all equations are met up to the rounding of coordinates, in a model without a length of its own.

    The target of the solvers does not depend on the place, so that such a start would be moved where it is far away.
    """
    found = _judged(system, q, POINTS_TARGET * task.options.tolerance, task.time)
    return found.residual <= TARGET * found.bound


def _measured(problem: Problem, x: FloatArray, outcome: Outcome, iterations: int) -> Run:
    """A run that ended at x, with residual and cost in the units of the problem."""
    residual = problem.residual(x)
    with np.errstate(over="ignore"):
        cost = float(_blocks.scale_residuals(problem.structure, problem.scales, residual))
    return Run(outcome, iterations, float(np.abs(residual).max(initial=0.0)), cost)
