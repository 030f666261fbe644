"""One connected piece of a mechanism, solved and judged from many starts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.analysis import assemble as one
from cardan.analysis import winding
from cardan.analysis.chunks import Progress, Worker, run_chunks
from cardan.analysis.judging import Judge, shift, update_angles
from cardan.analysis.restarts import REACH, Restarts
from cardan.coordinates import formulations
from cardan.coordinates.formulations import same_angles
from cardan.solvers import abi, kernels, methods
from cardan.solvers.abi import Outcome
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

CHUNKS_PER_WORKER = 16  # so that threads end together although starts differ
MOST_STARTS = 256  # in one chunk


@dataclass(frozen=True, slots=True)
class Task:
    """What was asked for, until when it may take, the time of the drivers, and the threads to share the work."""

    options: one._Options
    deadline: float | None
    time: float
    threads: int

    def is_late(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline


class Ends:
    """Where the starts of a piece ended, as arrays of one length.

    ``coordinates``, shape (n, bodies, 7), and ``angles``, shape (n, turns).  ``residual`` and ``bound``: the verdict.
    ``outcome`` and ``run``: how the run ended that led there, and its largest scaled residual.  ``moved``: 0 where the
    poses of the start were met.  ``late``: time was up.
    """

    __slots__ = (
        "angles",
        "attempts",
        "conflict",
        "coordinates",
        "found",
        "iterations",
        "late",
        "moved",
        "outcome",
        "q",
        "run",
    )

    def __init__(self, coordinates: FloatArray, q: FloatArray, turns: int) -> None:
        count = len(q)
        self.coordinates = coordinates
        self.q = q
        self.angles = q[:, q.shape[1] - turns :]
        self.found: FloatArray = np.zeros((count, 2))
        self.outcome: IntArray = np.zeros(count, dtype=np.int64)
        self.run: FloatArray = np.full(count, np.inf)
        self.attempts: IntArray = np.ones(count, dtype=np.int64)
        self.iterations: IntArray = np.zeros(count, dtype=np.int64)
        self.conflict: IntArray = np.zeros(count, dtype=np.int64)
        self.moved: IntArray = np.zeros(count, dtype=np.int64)
        self.late: NDArray[np.bool_] = np.zeros(count, dtype=bool)

    def put(self, k: int, end: one._End) -> None:
        """Take over how a single assembly ended."""
        self.q[k] = end.q
        self.outcome[k] = int(end.run.outcome)
        self.run[k] = end.run.residual
        self.attempts[k] = end.attempts
        self.iterations[k] = end.iterations
        self.conflict[k] = end.conflict
        self.moved[k] = end.moved

    @property
    def residual(self) -> FloatArray:
        return self.found[:, 0]

    @property
    def bound(self) -> FloatArray:
        return self.found[:, 1]


def solve_piece(
    piece: System, coordinates: FloatArray, near: FloatArray, task: Task, progress: Progress | None
) -> Ends:
    """Solve from r and p of every body, shape (n, bodies, 7), with turns counted from near [rad], shape (n, turns)."""
    count = len(coordinates)
    own: FloatArray = np.ascontiguousarray(coordinates).reshape(count, -1)
    starts: FloatArray = np.hstack([own, near])
    ends = Ends(np.empty(coordinates.shape), np.empty_like(starts), len(piece.counted_angles))
    judge = Judge(piece, task.options.tolerance, task.time)
    size = max(1, min(MOST_STARTS, count // (CHUNKS_PER_WORKER * task.threads)))
    solver: _OneByOne = (_Shared if piece.length else _OneByOne)(piece, starts, ends, judge, task)

    def make_worker(stop: Event) -> Worker:
        solve = solver.make_worker(stop)

        def worker(first: int, last: int) -> None:  # all is done chunk by chunk, so that the clock gets its turn
            shift(piece, starts[first:last], 1.0)
            update_angles(piece, starts[first:last])
            ends.q[first:last] = starts[first:last]
            solve(first, last)
            still = ends.moved[first:last] == 0  # what was met at the start stays as it is, to the last bit
            ends.angles[first:last][still] = same_angles(ends.angles[first:last][still], near[first:last][still])
            final = ends.q[first:last].copy()
            shift(piece, final, -1.0)
            final[still, : own.shape[1]] = own[first:last][still]
            ends.coordinates[first:last] = final[:, : own.shape[1]].reshape(-1, *coordinates.shape[1:])
            judge.update(final, ends.found[first:last])

        return worker

    run_chunks(count, size, make_worker, task.threads, progress)
    return ends


class _OneByOne:
    """Solves as single assemblies do: for starts whose lengths are measured in the spread of each."""

    def __init__(self, piece: System, starts: FloatArray, ends: Ends, judge: Judge, task: Task) -> None:
        self.piece, self.starts, self.ends, self.task = piece, starts, ends, task
        self.single = one._Task(task.options, task.deadline, task.time)
        if formulations.projects(task.options.formulation):  # tables and kernels, before threads share them
            formulations.enter(piece, task.options.formulation, formulations.to_reference(piece, piece.authored))

    def make_worker(self, stop: Event) -> Worker:
        """A worker for the starts first … last − 1."""

        def worker(first: int, last: int) -> None:
            for k in range(first, last):
                if stop.is_set():
                    return
                self.solve(k)

        return worker

    def solve(self, k: int) -> None:
        """One start; when time is up it stays where it is."""
        if not self.task.is_late():
            self.ends.put(k, one._solve(self.piece, self.starts[k].copy(), self.single))
        self.ends.late[k] = self.task.is_late()


class _Shared(_OneByOne):
    """Solves many in one jitted call, measured in one length: what the threads share.

    Where drivers must be led through whole turns, a start is solved as a single assembly after all.
    """

    def __init__(self, piece: System, starts: FloatArray, ends: Ends, judge: Judge, task: Task) -> None:
        from cardan.analysis import _batch

        super().__init__(piece, starts, ends, judge, task)
        options, length = task.options, piece.length
        formulation = options.formulation
        self.problem = p = formulations.problem(piece, formulation, length, task.time)
        self.whole = formulations.problem(piece, "manifold", length, task.time)
        self.judged = judge.problem
        other = formulations.problem(piece, formulation, one.OTHER_LENGTH * length, task.time)
        restarts = Restarts(piece, formulations.to_reference(piece, piece.authored), length, options.seed)
        addresses, self.numbers = _addresses(p, self.whole, options)
        drivers: IntArray = np.array(winding.driven_rows(piece), dtype=np.int64)
        solved = (p.ints, p.floats, p.structure, p.scales, other.scales, p.linear.pattern)
        whole = (self.whole.ints, self.whole.floats, self.whole.structure, self.whole.scales)
        drawn = (restarts.seeds, restarts.authored, restarts.center)
        asked = (_options(p, options, length), one._target(piece, length, options.tolerance))
        turns = (winding.table(piece), drivers)
        judged = (*judge.tables, judge.bounds)
        self.tables = (addresses, *solved, *whole, *turns, *judged, *drawn, *asked, starts.reshape(-1))
        self.kernel: Any = _batch

    def make_worker(self, stop: Event) -> Worker:
        """A worker with a workspace of its own."""
        kernel, ends, p, problems = self.kernel, self.ends, self.problem, (self.problem, self.whole, self.judged)
        memo, control = np.zeros(kernel.MEMO), np.zeros(abi.CONTROL)
        zeros, rows = np.zeros(max(q.unknowns for q in problems)), np.empty(max(q.rows for q in problems))
        needed = [*(int(q.structure[abi.WORK]) for q in problems), *(kernels.work_size(n, p) for n in self.numbers)]
        costs, places = np.empty(self.task.options.restarts + 1), np.empty(kernel.PLACES * self.starts.shape[1])
        pivots = np.empty(kernels.pivot_count(p), dtype=np.int64)
        own = (memo, control, costs, zeros, places, rows, np.empty(max(needed)), pivots)
        answers = (ends.q.reshape(-1), ends.outcome, ends.run, ends.attempts, ends.iterations)

        def solve(last: int) -> bool:
            """Whether there is more to do."""
            with np.errstate(all="ignore"):  # as in compiled kernels, also where they are interpreted
                return bool(kernel.solve_many(*self.tables, last, *own, *answers, ends.conflict, ends.moved))

        def worker(first: int, last: int) -> None:
            memo[kernel.START], memo[kernel.STAGE], memo[kernel.IS_LATE] = first, kernel.NEW, 0.0
            more = not self.task.is_late()
            while more and (more := solve(last)) and not stop.is_set() and not self.task.is_late():
                pass
            at = int(memo[kernel.START])
            if at < last:
                ends.late[at:last] = True
                if memo[kernel.STAGE] != kernel.NEW:  # the one that was under way ends where it is
                    memo[kernel.IS_LATE] = 1.0
                    solve(at + 1)
            for k in np.flatnonzero(ends.outcome[first:last] == kernel.ASIDE).tolist():
                ends.outcome[first + k] = int(Outcome.RUNNING)
                if stop.is_set():
                    return
                self.solve(first + k)

        return worker


def _solvers(options: one._Options) -> tuple[int, int]:
    """Numbers of the solver of an attempt, and of the one that follows."""
    return kernels.SEQUENCES["levenberg_marquardt" if options.method == one.AUTO else options.method]


def _addresses(problem: Problem, whole: Problem, options: one._Options) -> tuple[IntArray, list[int]]:
    """Addresses of all that the kernel calls, and the numbers of its solvers."""
    from cardan._jit import kernel_address
    from cardan.analysis import _batch, _draws

    if options.method == "newton_lu":
        methods.check_dense(problem)
    numbers = [number for number in _solvers(options) if number != abi.NO_SOLVER]
    addresses: IntArray = np.zeros(_batch.ADDRESSES, dtype=np.int64)
    addresses[_batch.EVALUATE] = problem.evaluate
    addresses[_batch.LINEAR] = problem.linear.address
    addresses[_batch.POSES] = whole.evaluate
    for number in numbers:
        addresses[_batch.SOLVERS + number] = kernels.address(number)
    if options.method == one.AUTO:
        addresses[_batch.NEAR_DRAW] = kernel_address(_draws.draw_near, "iUiFddF")
        addresses[_batch.ANYWHERE_DRAW] = kernel_address(_draws.draw_anywhere, "iUiFFdF")
    return addresses, numbers


def _options(problem: Problem, options: one._Options, length: float) -> FloatArray:
    """The options as the kernel reads them."""
    from cardan.analysis import _batch as kernel

    first, then = _solvers(options)
    singular, truncation = kernels.singular(problem)
    out: FloatArray = np.zeros(kernel.OPTIONS)
    for at, value in {
        kernel.IS_AUTO: options.method == one.AUTO,
        kernel.SOLVER: first,
        kernel.THEN: then,
        kernel.MOST: options.iterations,
        kernel.MOST_FIRST: methods.SWITCH_ITERATIONS,
        kernel.FIRST_TOLERANCE: methods.SWITCH_RESIDUAL,
        kernel.EACH: methods.chunk_size(problem),
        kernel.ALLOWANCE: methods.allowance(problem),
        kernel.RESTARTS: options.restarts,
        kernel.NEAR: one.NEAR,
        kernel.SADDLE_ITERATIONS: one.SADDLE_ITERATIONS,
        kernel.DISTURBANCE: one.DISTURBANCE,
        kernel.SAME_COST: one.SAME_COST,
        kernel.CONFLICT_SHARE: one.CONFLICT_SHARE,
        kernel.CONFLICT_ENOUGH: one.CONFLICT_ENOUGH,
        kernel.LENGTH: length,
        kernel.REACH: REACH,
        kernel.OPTION_DAMPING: methods.INITIAL_DAMPING,
        kernel.OPTION_GAIN: methods.FULL_GAIN if options.method == "hybrid" else methods.SPRING_GAIN,
        kernel.IS_DENSE: kernels.is_dense(problem),
        kernel.OPTION_SINGULAR: singular,
        kernel.OPTION_TRUNCATION: truncation,
        kernel.PROJECTS: formulations.projects(options.formulation),
        kernel.GETTING_ON: one.GETTING_ON,
        kernel.MOST_STAGED: winding.MOST_STAGES * winding.STAGE,
    }.items():
        out[at] = value
    return out
