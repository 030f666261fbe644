"""One connected piece of a mechanism, solved and judged from many starts."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.analysis import attempts, whole_turns
from cardan.analysis.attempts import End, Task
from cardan.analysis.chunks import Progress, Worker, run_chunks
from cardan.analysis.options import AUTO
from cardan.analysis.restarts import CLOSE_REACH, REACH, Restarts
from cardan.analysis.tables import Batch, BatchMemo, BatchWork, Draw, Options, Result
from cardan.coordinates import formulations
from cardan.coordinates.formulations import same_angles
from cardan.coordinates.tables import Verdict
from cardan.coordinates.verdict import Judge, shift, update_angles
from cardan.lazy import LazyModule
from cardan.solvers.problem import allowance, chunk_size
from cardan.solvers.tables import Control, Outcome
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
    ``results``: a :class:`~cardan.analysis.tables.Result` in each row.  ``late``: the deadline had passed.
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
        results = np.zeros((count, Result.size))
        results[:, Result.residual.first] = np.inf
        results[:, Result.attempts.first] = 1
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

    def column(self, name: str) -> IntArray:
        """A field of the results that contains integers."""
        return self.results[:, Result.fields[name].first].astype(np.int64)


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
    solver: _OneByOne = (_Shared if piece.own_length else _OneByOne)(piece, starts, ends, judge, task)

    def make_worker(stop: Event) -> Worker:
        solve = solver.make_worker(stop)

        def worker(first: int, last: int) -> None:  # all steps per chunk, so that the deadline is checked often
            shift(piece, starts[first:last], 1.0)
            update_angles(piece, starts[first:last])
            ends.q[first:last] = starts[first:last]
            solve(first, last)
            still = ends.results[first:last, Result.moved.first] == 0  # met at the start: bitwise unchanged
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
        self.shared = {  # arrays that the tables of all workers refer to
            "judged": judge.judged,
            "bounds": judge.bounds,
            "turn_rows": whole_turns.table(piece),
            "drivers": self.drivers,
            "drawn": self.restarts.table,
            "authored": self.restarts.authored,
            "starts": starts.reshape(-1),
            "ends": ends.q.reshape(-1),
            "results": ends.results.reshape(-1),
        }
        self.jobs()  # compile kernels, and reject problems that cannot be solved, before threads begin

    def jobs(self) -> list[Any]:
        """Jobs of the solvers of an attempt, in order."""
        return [stage.job(self.problem) for stage in self.task.options.solver.stages]

    def _options(self) -> Any:
        """The options in the form that the kernel reads."""
        options, length = self.task.options, self.piece.length
        solver = options.solver
        return Options.new(
            is_auto=options.method == AUTO,
            most=options.iterations,
            most_first=solver.first_limit(options.iterations),
            first_residual=solver.stages[0].residual,
            each=chunk_size(self.problem),
            allowance=allowance(self.problem),
            restarts=options.restart_count,
            near_residual=attempts.near_residual(options.tolerance),
            disturbance=attempts.DISTURBANCE,
            unit=length,
            most_reach=REACH * length,
            close_reach=CLOSE_REACH * length,
            may_end_early=options.restarts is None,
            is_proved=-1.0,
            in_parts=-1.0,
            projects=formulations.projects(options.formulation),
            most_staged=whole_turns.MOST_STAGES * whole_turns.STAGE,
            target=attempts.target_residual(self.piece, length, options.tolerance),
            middle=self.restarts.center,
        )

    def _plan(self) -> IntArray:
        """Offsets of the pieces of a worker's workspace."""
        size = self.starts.shape[1]
        offsets: IntArray = BatchWork.plan(
            **{name: size for name in ("q", "best", "spare", "first", "before")},
            x=max(size, self.problem.sizes.coordinates),
            rows=max(self.problem.rows, self.whole.rows),
            control=Control.size,
            drawn=Draw.size,
            verdict=Verdict.size,
            zeros=self.whole.unknowns,
            evaluation=max(self.problem.sizes.work, self.whole.sizes.work),
            costs=self.task.options.restart_count + 1,
        )
        return offsets

    def _table(self) -> Any:
        """The table that the kernel reads, for one worker, which keeps alive what it refers to."""
        jobs, offsets, piece = self.jobs(), self._plan(), self.piece
        batch = Batch.new(open=offsets.size, pieces=offsets, draw=_draws.DRAW, **self.shared)
        batch.whole, batch.judge_work = self.whole.table(), self.judge.workspace()
        for name, job in zip(("", "second_"), jobs, strict=False):
            setattr(batch, f"{name}job", job.table)
            setattr(batch, f"{name}begin", job.begin)
            setattr(batch, f"{name}work", job.work)
        if self.task.options.method == AUTO:
            batch.other_job = jobs[0].with_scales(self.other)
        batch.coordinates, batch.bodies = self.starts.shape[1], len(piece.names)
        batch.angles, batch.variables = len(piece.counted_angles), len(piece.variable_names)
        batch.driver_count, batch.solvers = self.drivers.size, len(jobs)
        return batch

    def make_worker(self, stop: Event) -> Worker:
        """A worker with a workspace of its own."""
        k, ends = _many, self.ends
        batch, memo = self._table(), BatchMemo.new()
        work = np.zeros(batch.pieces[-1])

        def solve(last: int) -> bool:
            """Run the kernel; returns whether there is more to do."""
            with np.errstate(all="ignore"):  # compiled kernels do not warn either
                end = k.solve_many(batch.as_ints, self.options.as_floats, memo.as_floats, work, last)
            if end == k.ASKS_FOR_PROOF:
                self.options.is_proved = attempts.is_proved(self.piece, self.task)
            elif end == k.ASKS_FOR_PARTS:
                self.options.in_parts = attempts.is_in_parts(self.piece, self.task)
            return bool(end != k.DONE)

        def worker(first: int, last: int) -> None:
            memo.start, memo.stage, memo.is_waiting, memo.is_late = first, k.NEW, 0.0, 0.0
            more = not self.task.is_late()
            while more and (more := solve(last)) and not stop.is_set() and not self.task.is_late():
                pass
            at = int(memo.start)
            if at < last:
                ends.late[at:last] = True
                if memo.stage != k.NEW:  # the current start ends at its current pose
                    memo.is_late = 1.0
                    solve(at + 1)
            for number in np.flatnonzero(ends.results[first:last, Result.outcome.first] == k.NEEDS_CALLER).tolist():
                ends.results[first + number, Result.outcome.first] = int(Outcome.RUNNING)
                if stop.is_set():
                    return
                self.solve(first + number)

        return worker
