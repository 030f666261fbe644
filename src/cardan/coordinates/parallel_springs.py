"""The spring step of one mechanism on several threads.  [NelsonCohen1998]

An iteration has two passes, each over groups of constraints or of bodies: evaluate r and J; add up the forces on each
body and move it.  Threads meet at a barrier after each pass, where one of them decides (:mod:`._gradient`).  The bits
of the result are those of one thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from cardan.coordinates.tables import Place, Pull, Springs
from cardan.lazy import LazyModule
from cardan.solvers.problem import Budget, Problem, Run
from cardan.solvers.tables import RETRACT, RUNNING, Control, Outcome, Slope, Structure, Sums
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System
from cardan.system.tables import SystemTable

_blocks = LazyModule("cardan.solvers._blocks")
_gradient = LazyModule("cardan.solvers._gradient")
_records = LazyModule("cardan.coordinates._records")
_shares = LazyModule("cardan.coordinates._parallel_springs")

FORMULATIONS: Final = ("manifold", "euler_angles")  # whose rows are those of the constraints
LEAST_GROUPS: Final = 4  # in a share: a smaller share is dominated by call overhead
POLL_INTERVAL: Final = 0.05  # [s] between two checks of the threads by the waiting thread
EVALUATE, MOVE, END = range(3)
_OUTCOMES = tuple(Outcome)


class Tables:
    """The groups of constraints and of bodies of a system; made once and shared."""

    def __init__(self, system: System, problem: Problem) -> None:
        ints, structure = problem.ints, problem.structure
        bodies, count = len(system.names), int(Structure(structure).constraints)
        self.evaluations = -(-count // _gradient.GROUP)
        self.moves = -(-bodies // _gradient.GROUP)
        slots = int(SystemTable(ints).blocks)  # at least one row each
        size = int(system.starts[-1]) - layout.HEADER + layout.HEADER * self.evaluations
        self.parts: IntArray = np.empty(size, dtype=np.int64)
        self.places: IntArray = np.zeros(Place.size * self.evaluations, dtype=np.int64)
        self.members: IntArray = np.empty(slots, dtype=np.int64)
        numbers: IntArray = np.full(bodies, -1, dtype=np.int64)
        _shares.fill_shares(ints, structure, self.parts, self.places, self.members, numbers)
        self.starts: IntArray = np.empty(bodies + 1, dtype=np.int64)
        self.pulls: IntArray = np.empty(Pull.size * slots, dtype=np.int64)
        _shares.fill_pulls(structure, self.starts, self.pulls)
        counted = int(Structure(structure).coordinates) - layout.POSE * bodies
        bodies_most = int(self.places.reshape(-1, Place.size)[:, Place.bodies.first].max(initial=0))
        header = SystemTable.new()
        header.as_ints[:] = ints[: layout.HEADER]
        header.bodies = bodies_most
        self.work = layout.POSE * bodies_most + counted + int(_records.plan_workspace(header).size)
        whole = SystemTable(ints)
        self.header: IntArray = SystemTable.new(widest=whole.widest, tallest=whole.tallest).as_ints
        self.counted = counted


class Shares:
    """Makes jobs of the spring step on several threads; see :attr:`cardan.solvers.problem.Problem.shares`."""

    def __init__(self, tables: Tables, workers: int) -> None:
        self.tables = tables
        self.workers = workers

    def job(self, problem: Problem, settings: Mapping[str, float]) -> SharedJob:
        """A job with entries of the control vector that replace its defaults."""
        return SharedJob(problem, self.tables, self.workers, settings)


def can_share(system: System, formulation: str) -> bool:
    """Whether the step of a system can be divided; otherwise one thread makes it."""
    return formulation in FORMULATIONS and not system.variable_names and bool(system.primitives)


def shares(system: System, formulation: str, problem: Problem, workers: int) -> Shares | None:
    """The division of a system among threads; None where one thread makes the step."""
    if workers == 1 or not can_share(system, formulation):
        return None
    tables: Tables = system.cached(("shares", formulation), lambda: Tables(system, problem))
    return Shares(tables, workers)


class SharedJob:
    """The spring step on several threads, with the interface of :class:`cardan.solvers.problem.Job`.

    ``clock`` is called after every iteration.
    """

    def __init__(self, problem: Problem, tables: Tables, workers: int, settings: Mapping[str, float]) -> None:
        self.problem, self.tables, self.workers = problem, tables, workers
        begin = _gradient.prepare(problem)
        begin.write(**settings)
        self.begin: FloatArray = begin.as_floats
        self.control: FloatArray = np.zeros(Control.size)
        self.scales: FloatArray = problem.scales if problem.springs is None else problem.springs
        self.clock: Callable[[], None] | None = None

    def run(self, q: FloatArray, tolerance: float, budget: Budget) -> Run:
        """Iterate from q, in place, until there is an outcome or the budget is used up."""
        self.control[:] = self.begin
        Control(self.control).tolerance = tolerance
        _Threads(self, q, budget).run()
        control = Control(self.control)
        outcome = _OUTCOMES[int(control.status)]
        return Run(outcome, int(control.iterations), float(control.residual_max), float(control.cost))


class _Threads:
    """One run: the arrays that its threads share, and what is decided between two passes."""

    def __init__(self, job: SharedJob, q: FloatArray, budget: Budget) -> None:
        p, t = job.problem, job.tables
        self.job, self.result, self.budget = job, q, budget
        self.q, self.moved = q.copy(), q.copy()
        rows, unknowns, entries, _, evaluation = p.sizes
        self.r: FloatArray = np.empty(rows)
        self.jacobian: FloatArray = np.empty(entries)
        self.direction, self.step, self.bound = (np.zeros(unknowns) for _ in range(3))
        # of each group, then of all
        self.sums: FloatArray = np.zeros(Sums.size * (t.evaluations + 1))
        self.slopes: FloatArray = np.zeros(Slope.size * (t.moves + 1))
        self.rest: FloatArray = np.empty(evaluation if t.counted else 0)  # to count angles
        self.phase, self.gathers = EVALUATE, 1
        groups = (t.evaluations, t.moves)
        shrinks = job.workers > 1
        self.divided = [
            [_shrinking(*edges) if shrinks else [edges] for edges in _edges(count, job.workers)] for count in groups
        ]
        self.queues: list[deque[tuple[int, int]]] = [deque(own) for own in self.divided[EVALUATE]]

    def run(self) -> None:
        """All passes, each thread in a loop; a single one is the calling thread."""
        if self.job.workers == 1:
            share = self.worker()
            while self.phase != END:
                for first, last in _taken(self.queues[0]):
                    share(first, last)
                self.advance()
            self.result[:] = self.q
            return
        failed: list[BaseException] = []
        barrier = threading.Barrier(self.job.workers, action=self.advance)

        def work(k: int) -> None:
            try:
                share = self.worker()
                while self.phase != END:
                    for queue in self.queues[k:] + self.queues[:k]:
                        for first, last in _taken(queue):
                            share(first, last)
                    barrier.wait()
            except threading.BrokenBarrierError:
                pass  # another thread failed and reports the error, or the caller was interrupted
            except BaseException as error:
                failed.append(error)
                barrier.abort()

        others = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(self.job.workers)]
        for thread in others:
            thread.start()
        try:
            for thread in others:
                while thread.is_alive():
                    thread.join(POLL_INTERVAL)
        except BaseException:
            barrier.abort()
            for thread in others:
                thread.join()
            raise
        if failed:
            raise failed[0]
        self.result[:] = self.q

    def worker(self) -> Callable[[int, int], None]:
        """A function that does a pass for the groups first … last − 1, in its own workspace."""
        p, t, job = self.job.problem, self.job.tables, self.job
        work = np.empty(t.work)
        springs = Springs.new(
            evaluator=p.evaluate,
            floats=p.floats,
            structure=p.structure,
            scales=job.scales,
            control=job.control,
            parts=t.parts,
            places=t.places,
            members=t.members,
            header=t.header.copy(),
            starts=t.starts,
            pulls=t.pulls,
            r=self.r,
            jacobian=self.jacobian,
            sums=self.sums,
            direction=self.direction,
            step=self.step,
            bound=self.bound,
            slopes=self.slopes,
        )

        def share(first: int, last: int) -> None:
            if self.phase == EVALUATE:
                poses = self.q if Control(job.control).slope < 0.0 else self.moved
                _shares.evaluate_groups(springs.as_ints, first, last, poses, work)
            else:
                _shares.move_groups(springs.as_ints, first, last, self.q, self.moved, self.gathers, work)

        return share

    def advance(self) -> None:
        """Decide after a pass; called by one thread while the others wait."""
        job, control = self.job, Control(self.job.control)
        if self.phase == EVALUATE:
            is_first = control.slope < 0.0
            arguments = job.problem.rows, job.control, job.tables.evaluations, self.sums
            self.gathers = int(_gradient.judge_trial_of(*arguments))
            if self.gathers and not is_first:
                self.q, self.moved = self.moved, self.q
            if job.clock is not None and not is_first:
                job.clock()
            is_out = control.iterations >= self.budget.iterations or self.budget.is_out_of_time()
            self.phase = END if control.status != RUNNING or is_out else MOVE
        else:
            if self.gathers:
                _gradient.judge_slope_of(job.control, job.tables.moves, self.slopes)
            if control.status != RUNNING:
                self.phase = END
                return
            if job.tables.counted:
                p = job.problem
                arrays = self.q, self.step, self.moved, self.moved, self.rest
                _blocks.call_at(p.evaluate, RETRACT, p.ints, p.floats, *arrays)
            control.iterations += 1.0
            self.phase = EVALUATE
        if self.phase != END:
            for queue, own in zip(self.queues, self.divided[self.phase], strict=True):
                queue.extend(own)


def _edges(count: int, workers: int) -> list[tuple[int, int]]:
    return list(pairwise([k * count // workers for k in range(workers + 1)]))


def _shrinking(first: int, last: int) -> list[tuple[int, int]]:
    """Split first … last − 1 into ranges, each half of the rest; the short last ones let threads finish together.

    A guided schedule, [Polychronopoulos1987], but each thread starts with the same groups in every iteration, so their
    data stay in its cache.
    """
    edges = [first]
    while edges[-1] < last:
        left = last - edges[-1]
        edges.append(edges[-1] + min(left, max(left // 2, LEAST_GROUPS)))
    return list(pairwise(edges))


def _taken(queue: deque[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Take the remaining items of a queue one by one; other threads may take some too."""
    while True:
        try:
            yield queue.popleft()
        except IndexError:
            return
