"""One connected piece of a mechanism, solved and judged from many starts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.analysis import attempts, whole_turns
from cardan.analysis.attempts import End, Task
from cardan.analysis.chunks import Progress, Worker, run_chunks
from cardan.analysis.options import AUTO
from cardan.analysis.restarts import CLOSE_REACH, REACH, Restarts
from cardan.coordinates import formulations
from cardan.coordinates.formulations import same_angles
from cardan.coordinates.verdict import Judge, shift, update_angles
from cardan.lazy import LazyModule
from cardan.solvers.problem import allowance, chunk_size
from cardan.solvers.tables import Control, Outcome, Structure
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_draws = LazyModule("cardan.analysis._draws")
_many = LazyModule("cardan.analysis._many")

CHUNKS_PER_WORKER = 16  # so that all threads finish at about the same time
MOST_STARTS = 256  # in one chunk


@dataclass(frozen=True, slots=True)
class Ends:
    """Results of the starts of a piece, as arrays of one length.

    ``coordinates``, shape (n, bodies, 7); ``q``: solver coordinates; ``verdicts``, shape (n, 2): residual and bound.
    ``results``: outcomes, with the columns of :mod:`cardan.analysis._many`.  ``late``: the deadline had passed.
    """

    coordinates: FloatArray
    q: FloatArray
    angle_count: int
    verdicts: FloatArray
    results: FloatArray
    late: NDArray[np.bool_]

    @classmethod
    def of(cls, coordinates: FloatArray, q: FloatArray, angle_count: int) -> Ends:
        """Empty results, for starts that are not yet solved."""
        count = len(q)
        results = np.zeros((count, _many.RESULT))
        results[:, _many.R_RESIDUAL] = np.inf
        results[:, _many.R_ATTEMPTS] = 1
        return cls(coordinates, q, angle_count, np.zeros((count, 2)), results, np.zeros(count, dtype=bool))

    def put(self, k: int, end: End) -> None:
        """Store the result of a single assembly."""
        self.q[k] = end.q
        run = end.run
        self.results[k] = run.outcome, run.residual, end.attempts, end.iterations, end.conflict, end.moved

    @property
    def angles(self) -> FloatArray:
        """Counted angles [rad], shape (n, angles)."""
        return self.q[:, self.q.shape[1] - self.angle_count :]

    def column(self, number: int) -> IntArray:
        """A column of the results that contains integers."""
        return self.results[:, number].astype(np.int64)


def solve_piece(
    piece: System, coordinates: FloatArray, near: FloatArray, task: Task, threads: int, progress: Progress | None
) -> Ends:
    """Solve from r and p of every body, shape (n, bodies, 7), and initial counted angles near [rad], (n, angles)."""
    count = len(coordinates)
    own: FloatArray = np.ascontiguousarray(coordinates).reshape(count, -1)
    starts: FloatArray = np.hstack([own, near])
    ends = Ends.of(np.empty(coordinates.shape), np.empty_like(starts), piece.tail.size)
    judge = Judge(piece, task.options.tolerance, task.time)
    size = max(1, min(MOST_STARTS, count // (CHUNKS_PER_WORKER * threads)))
    solver: _OneByOne = (_Shared if piece.length else _OneByOne)(piece, starts, ends, judge, task)

    def make_worker(stop: Event) -> Worker:
        solve = solver.make_worker(stop)

        def worker(first: int, last: int) -> None:  # all steps per chunk, so that the deadline is checked often
            shift(piece, starts[first:last], 1.0)
            update_angles(piece, starts[first:last])
            ends.q[first:last] = starts[first:last]
            solve(first, last)
            still = ends.results[first:last, _many.R_MOVED] == 0  # met at the start: bitwise unchanged
            ends.angles[first:last][still] = same_angles(ends.angles[first:last][still], near[first:last][still])
            final = ends.q[first:last].copy()
            shift(piece, final, -1.0)
            final[still, : own.shape[1]] = own[first:last][still]
            ends.coordinates[first:last] = final[:, : own.shape[1]].reshape(-1, *coordinates.shape[1:])
            judge.update(final, ends.verdicts[first:last])

        return worker

    run_chunks(count, size, make_worker, threads, progress)
    return ends


class _OneByOne:
    """Solves each start as a single assembly: for systems whose unit of length is the spread of each start."""

    def __init__(self, piece: System, starts: FloatArray, ends: Ends, judge: Judge, task: Task) -> None:
        self.piece, self.starts, self.ends, self.judge, self.task = piece, starts, ends, judge, task
        if formulations.projects(task.options.formulation):  # make tables and kernels before threads share them
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
        """Solve one start; after the deadline it stays unchanged."""
        if not self.task.is_late():
            self.ends.put(k, attempts.solve(self.piece, self.starts[k].copy(), self.task))
        self.ends.late[k] = self.task.is_late()


class _Shared(_OneByOne):
    """Solves many starts in one jitted call with a common unit of length; holds the data that the threads share.

    A start whose drivers must be moved in stages is solved as a single assembly.
    """

    def __init__(self, piece: System, starts: FloatArray, ends: Ends, judge: Judge, task: Task) -> None:
        super().__init__(piece, starts, ends, judge, task)
        formulation, length = task.options.formulation, piece.length
        self.problem = formulations.problem(piece, formulation, length, task.time)
        if task.options.solver.has_springs:
            self.problem = formulations.with_springs(piece, formulation, self.problem, length)
        self.whole = formulations.problem(piece, "manifold", length, task.time)
        self.other = formulations.problem(piece, formulation, attempts.OTHER_LENGTH * length, task.time)
        authored = formulations.to_reference(piece, piece.authored)  # with the drawn variables
        self.restarts = Restarts(piece, authored, length, task.options.seed)
        self.drivers: IntArray = np.array(whole_turns.driven_rows(piece), dtype=np.int64)
        self.options = self._options()
        k = _many
        self.shared = {  # arrays whose addresses are in the tables of the workers
            k.T_JUDGE: judge.table,
            k.T_BOUNDS: judge.bounds,
            k.T_TURN_ROWS: whole_turns.table(piece),
            k.T_DRIVERS: self.drivers,
            k.T_DRAW_TABLE: self.restarts.table,
            k.T_AUTHORED: self.restarts.authored,
            k.T_STARTS: starts.reshape(-1),
            k.T_ENDS: ends.q.reshape(-1),
            k.T_RESULTS: ends.results.reshape(-1),
        }
        self.jobs()  # compile kernels, and reject problems that cannot be solved, before threads begin

    def jobs(self) -> list[Any]:
        """Jobs of the solvers of an attempt, in order."""
        return [stage.job(self.problem) for stage in self.task.options.solver.stages]

    def _options(self) -> FloatArray:
        """The options in the form that the kernel reads."""
        options, k = self.task.options, _many
        solver = options.solver
        first = solver.stages[0]
        out: FloatArray = np.zeros(k.OPTIONS)
        for at, value in {
            k.IS_AUTO: options.method == AUTO,
            k.MOST: options.iterations,
            k.MOST_FIRST: solver.first_limit(options.iterations),
            k.FIRST_RESIDUAL: first.residual,
            k.EACH: chunk_size(self.problem),
            k.ALLOWANCE: allowance(self.problem),
            k.RESTARTS: options.restart_count,
            k.NEAR_RESIDUAL: attempts.near_residual(options.tolerance),
            k.DISTURBANCE: attempts.DISTURBANCE,
            k.UNIT: self.piece.length,
            k.MOST_REACH: REACH * self.piece.length,
            k.CLOSE_REACH: CLOSE_REACH * self.piece.length,
            k.MAY_END_EARLY: options.restarts is None,
            k.IS_PROVED: -1.0,
            k.PROJECTS: formulations.projects(options.formulation),
            k.MOST_STAGED: whole_turns.MOST_STAGES * whole_turns.STAGE,
            k.TARGET: attempts.target_residual(self.piece, self.piece.length, options.tolerance),
        }.items():
            out[at] = value
        out[k.MIDDLE : k.MIDDLE + 3] = self.restarts.center
        return out

    def _table(self, own: dict[int, Any]) -> IntArray:
        """The table that the kernel reads, for one worker; own: arrays that the worker keeps alive, by position."""
        from cardan.kernel.memory import address_of

        k, size = _many, self.starts.shape[1]
        evaluations = max(int(Structure(p.structure).work) for p in (self.problem, self.whole))
        rows = max(self.problem.rows, self.whole.rows)
        unknowns = max(size, int(Structure(self.problem.structure).coordinates))
        sizes = (size, size, size, size, size, unknowns, rows, Control.size, _draws.FLOATS, 2, self.whole.unknowns)
        offsets = [0, *accumulate((*sizes, evaluations, self.task.options.restart_count + 1))]
        table: IntArray = np.zeros(k.T_PIECES + len(offsets), dtype=np.int64)
        for place, array in {**self.shared, **own}.items():
            table[place] = address_of(array)
        table[k.T_DRAW] = _draws.DRAW
        table[k.T_SIZE] = size
        table[k.T_BODIES] = len(self.piece.names)
        table[k.T_ANGLES] = len(self.piece.counted_angles)
        table[k.T_VARIABLES] = len(self.piece.variable_names)
        table[k.T_CONTROL] = Control.size
        table[k.T_DRIVER_COUNT] = self.drivers.size
        table[k.T_PIECES :] = offsets
        return table

    def make_worker(self, stop: Event) -> Worker:
        """A worker with a workspace of its own."""
        k, ends = _many, self.ends
        jobs = self.jobs()
        own = {k.T_WHOLE: self.whole.table(), k.T_JUDGE_WORK: self.judge.workspace()}
        for job, places in zip(jobs, (k.FIRST_PLACES, k.SECOND_PLACES), strict=False):
            own.update(zip(places, (job.table, job.begin, job.work), strict=True))
        if self.task.options.method == AUTO:
            own[k.T_OTHER_JOB] = jobs[0].with_scales(self.other)
        table = self._table(own)
        work, memo = np.zeros(table[-1]), np.zeros(k.MEMO)

        def solve(last: int) -> bool:
            """Run the kernel; returns whether there is more to do."""
            with np.errstate(all="ignore"):  # compiled kernels do not warn either
                found = k.solve_many(table, self.options, memo, work, last)
            if found == k.ASKS:
                self.options[k.IS_PROVED] = attempts.is_proved(self.piece, self.task)
            return bool(found != k.DONE)

        def worker(first: int, last: int, own: Any = own) -> None:  # own: kept alive; the table has only addresses
            memo[k.START], memo[k.STAGE], memo[k.IS_WAITING], memo[k.policy.IS_LATE] = first, k.NEW, 0.0, 0.0
            more = not self.task.is_late()
            while more and (more := solve(last)) and not stop.is_set() and not self.task.is_late():
                pass
            at = int(memo[k.START])
            if at < last:
                ends.late[at:last] = True
                if memo[k.STAGE] != k.NEW:  # the current start ends at its current pose
                    memo[k.policy.IS_LATE] = 1.0
                    solve(at + 1)
            for number in np.flatnonzero(ends.results[first:last, k.R_OUTCOME] == k.NEEDS_CALLER).tolist():
                ends.results[first + number, k.R_OUTCOME] = int(Outcome.RUNNING)
                if stop.is_set():
                    return
                self.solve(first + number)

        return worker
