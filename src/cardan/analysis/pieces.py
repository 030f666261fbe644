"""One connected piece of a mechanism, solved and judged from many starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.analysis import assemble as one
from cardan.analysis.chunks import Progress, Worker, run_chunks
from cardan.analysis.judging import Judge, rewind, shift
from cardan.analysis.restarts import REACH, Restarts
from cardan.coordinates import formulations, verdict
from cardan.solvers import abi, kernels, methods
from cardan.solvers.problem import Problem
from cardan.system import layout
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
    ``outcome`` and ``run``: how the run ended that led there, and its largest scaled residual.  ``late``: time was up.
    """

    __slots__ = (
        "angles",
        "attempts",
        "conflict",
        "coordinates",
        "found",
        "iterations",
        "late",
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
        self.late: NDArray[np.bool_] = np.zeros(count, dtype=bool)

    def put(self, k: int, end: one._End) -> None:
        """Take over how a single assembly ended, but for its verdict."""
        self.q[k] = end.q
        self.outcome[k] = int(end.run.outcome)
        self.run[k] = end.run.residual
        self.attempts[k] = end.attempts
        self.iterations[k] = end.iterations
        self.conflict[k] = end.conflict

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
    count, turns = len(coordinates), len(piece.turns)
    own = np.ascontiguousarray(coordinates)
    starts: FloatArray = np.hstack([own.reshape(count, -1), near])
    ends = Ends(np.empty_like(own), np.empty_like(starts), turns)
    judge = Judge(piece, task.options.tolerance, task.time)
    size = max(1, min(MOST_STARTS, count // (CHUNKS_PER_WORKER * task.threads)))
    make_solver: Callable[[Event], Worker]
    if piece.length and not turns and not formulations.projects(task.options.formulation):
        make_solver = _Shared(piece, own, starts, ends, judge, task, piece.length).make_worker
    else:  # lengths are measured in the spread of each start, turns wound, or unknowns made anew from the poses of each
        make_solver = _one_by_one(piece, starts, ends, judge, task)
        begin = formulations.to_reference(piece, own[0], near[0])
        formulations.enter(piece, task.options.formulation, begin)  # tables and kernels, before threads share them

    def make_worker(stop: Event) -> Worker:
        solve = make_solver(stop)

        def worker(first: int, last: int) -> None:  # all is done chunk by chunk, so that the clock gets its turn
            shift(piece, starts[first:last], 1.0)
            rewind(piece, starts[first:last])
            ends.q[first:last] = starts[first:last]
            ends.coordinates[first:last] = own[first:last]
            solve(first, last)

        return worker

    run_chunks(count, size, make_worker, task.threads, progress)
    return ends


def _one_by_one(piece: System, starts: FloatArray, ends: Ends, judge: Judge, task: Task) -> Callable[[Event], Worker]:
    """Workers that solve as a single assembly does, start by start; what is left when time is up is judged in bulk."""
    single = one._Task(task.options, task.deadline, task.time)

    def solve(k: int) -> None:
        end = one._solve(piece, starts[k].copy(), single)
        ends.put(k, end)
        ends.late[k] = task.is_late()
        if end.moved:
            ends.coordinates[k] = formulations.from_reference(piece, end.q)
        judged = (piece, ends.coordinates[k], piece.judged_length, task.options.tolerance)
        ends.found[k] = verdict.judge(*judged, None, ends.angles[k], task.time)

    def make_worker(stop: Event) -> Worker:
        def worker(first: int, last: int) -> None:
            at = first
            while at < last and not task.is_late():
                if stop.is_set():
                    return
                solve(at)
                at += 1
            if at < last:
                ends.late[at:last] = True
                poses = np.hstack([ends.coordinates[at:last].reshape(last - at, -1), ends.angles[at:last]])
                judge.update(poses, ends.found[at:last])

        return worker

    return make_worker


class _Shared:
    """What the threads share, for starts whose lengths are measured in one length and that count no turns."""

    def __init__(
        self,
        piece: System,
        own: FloatArray,
        starts: FloatArray,
        ends: Ends,
        judge: Judge,
        task: Task,
        length: float,
    ) -> None:
        from cardan.analysis import _batch

        options = task.options
        self.piece, self.own, self.starts, self.ends, self.judge, self.task = piece, own, starts, ends, judge, task
        self.problem = formulations.problem(piece, options.formulation, length, task.time)
        other = formulations.problem(piece, options.formulation, one.OTHER_LENGTH * length, task.time)
        restarts = Restarts(piece, formulations.to_reference(piece, piece.authored), length, options.seed)
        self.addresses, self.numbers = _addresses(self.problem, judge.problem, options)
        self.options = _options(self.problem, options, length)
        self.target = one._target(piece, length, options.tolerance)
        p = self.problem
        self.tables = (self.addresses, p.ints, p.floats, p.structure, p.scales, other.scales, p.linear.pattern)
        self.draws = (restarts.seeds, restarts.authored, restarts.center)
        self.kernel: Any = _batch

    def make_worker(self, stop: Event) -> Worker:
        """A worker with a workspace of its own."""
        kernel, ends, p, judged = self.kernel, self.ends, self.problem, self.judge.problem
        size = self.starts.shape[1]
        memo, control = np.zeros(kernel.MEMO), np.zeros(abi.CONTROL)
        zeros, rows = np.zeros(max(p.unknowns, judged.unknowns)), np.empty(max(p.rows, judged.rows))
        needed = [int(judged.structure[abi.WORK]), *(kernels.work_size(number, p) for number in self.numbers)]
        work = np.empty(max(needed))
        costs, places = np.empty(self.task.options.restarts + 1), np.empty(4 * size)
        pivots = np.empty(kernels.pivot_count(p), dtype=np.int64)
        judging = (*self.judge.tables, self.judge.bounds)
        given = (*self.draws, self.options, self.target, self.starts.reshape(-1))
        own = (memo, control, costs, zeros, places, rows, work, pivots)
        answers = (ends.q.reshape(-1), ends.outcome, ends.run, ends.attempts, ends.iterations, ends.conflict)

        def solve(last: int) -> bool:
            """Whether there is more to do."""
            return bool(kernel.solve_many(*self.tables, *judging, *given, last, *own, *answers))

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
            self.conclude(first, last)

        return worker

    def conclude(self, first: int, last: int) -> None:
        """Poses and verdicts of the starts first … last − 1."""
        ends, bodies = self.ends, len(self.piece.names)
        final = ends.q[first:last].copy()
        shift(self.piece, final, -1.0)
        still = ends.iterations[first:last] == 0  # what was met at the start stays as it is, to the last bit
        final[still] = self.own[first:last].reshape(last - first, -1)[still]
        ends.coordinates[first:last] = final.reshape(-1, bodies, layout.POSE)
        self.judge.update(final, ends.found[first:last])


def _addresses(problem: Problem, judged: Problem, options: one._Options) -> tuple[IntArray, list[int]]:
    """Addresses of all that the kernel calls, and the numbers of its solvers."""
    from cardan._jit import kernel_address
    from cardan.analysis import _batch, _draws

    if options.method == "newton_lu":
        methods.check_dense(problem)
    method = "levenberg_marquardt" if options.method == one.AUTO else options.method
    numbers = [number for number in kernels.SEQUENCES[method] if number >= 0]
    addresses: IntArray = np.zeros(_batch.ADDRESSES, dtype=np.int64)
    addresses[_batch.EVALUATE] = problem.evaluate
    addresses[_batch.LINEAR] = problem.linear.address
    addresses[_batch.JUDGED] = judged.evaluate
    for number in numbers:
        addresses[_batch.SOLVERS + number] = kernels.address(number)
    if options.method == one.AUTO:
        addresses[_batch.NEAR_DRAW] = kernel_address(_draws.draw_near, "UiFddF")
        addresses[_batch.ANYWHERE_DRAW] = kernel_address(_draws.draw_anywhere, "UiFFdF")
    return addresses, numbers


def _options(problem: Problem, options: one._Options, length: float) -> FloatArray:
    """The options as the kernel reads them."""
    from cardan.analysis import _batch as kernel

    method = "levenberg_marquardt" if options.method == one.AUTO else options.method
    first, then = kernels.SEQUENCES[method]
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
        kernel.ALLOWANCE: kernels.allowance(problem),
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
        kernel.OPTION_GAIN: methods.SPRING_GAIN,
        kernel.IS_DENSE: kernels.is_dense(problem),
        kernel.OPTION_SINGULAR: singular,
        kernel.OPTION_TRUNCATION: truncation,
    }.items():
        out[at] = value
    return out
