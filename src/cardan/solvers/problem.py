"""Problem (the equations that a solver is given) and Job (one solver applied to one problem)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.lazy import LazyModule
from cardan.solvers import tables
from cardan.solvers.tables import JACOBIAN, RESIDUAL, RETRACT, Control, Outcome, SolverJob, Structure

_blocks = LazyModule("cardan.solvers._blocks")

CHUNK_WORK = 2e7  # multiplications between two checks of the clock: about ten milliseconds
UNKNOWN_WORK = 100.0  # multiplications per unknown and iteration, in addition to the linear algebra
CHUNK_MOST = 64
_NONE: Mapping[str, float] = {}

# positions in the arrays, for what is read at every call
_ROWS, _UNKNOWNS, _WORK = Structure.rows.first, Structure.unknowns.first, Structure.work.first
_ENTRIES, _COORDINATES = Structure.jacobian_size.first, Structure.coordinates.first
_TOLERANCE, _CHUNK = Control.tolerance.first, Control.chunk.first
_RESULT = slice(Control.iterations.first, Control.cost.first + 1)


class Algebra(NamedTuple):
    """Linear algebra, called by address (:mod:`cardan.solvers.tables`).

    ``pattern``: its table (the structure, or a sparse pattern).  ``work``: number of floats of its matrices.  ``cost``:
    multiplications of one factorisation.
    """

    address: int
    pattern: NDArray[np.int64]
    work: int
    cost: float


class Sizes(NamedTuple):
    """Sizes of the arrays of a problem."""

    rows: int
    unknowns: int
    entries: int  # of the Jacobian
    coordinates: int
    work: int  # floats of the evaluator's workspace


@lru_cache(maxsize=256)
def _template(kernel: Any, plan: Any, sizes: Sizes, evaluator: int, algebra: int, matrix: int) -> NDArray[np.int64]:
    """A job table without addresses of arrays: the same for all problems of these sizes.

    plan: the function of the kernel module that gives the sizes of its pieces.  algebra: address of the linear algebra.
    matrix: floats of its matrices.
    """
    shared = {"evaluation": sizes.work, "r": sizes.rows, "jacobian": sizes.entries, "moved": sizes.coordinates}
    pieces = kernel.Work.plan(**shared, **plan(sizes, matrix))
    own = {"run": kernel.SOLVE, "evaluator": evaluator, "algebra": algebra, "pieces": pieces}
    table: NDArray[np.int64] = SolverJob.new(open=pieces.size, **own).as_ints
    return table


@dataclass(slots=True, eq=False)
class Problem:
    """An evaluator's address, its two tables, the structure of its Jacobian, its scales (rows, then columns), and its
    linear algebra.

    ``springs``: scales of the spring step, where they differ: of rows and unknowns, then the factors of the rows from
    there to the measure of the tolerance.  ``shares``: what makes jobs of the spring step on several threads.
    """

    evaluate: int
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]
    structure: NDArray[np.int64]
    scales: NDArray[np.float64]
    algebra: Algebra
    springs: NDArray[np.float64] | None = None
    shares: Any = None
    _jobs: dict[int, tuple[Any, NDArray[np.float64]]] = field(default_factory=dict, init=False, repr=False)

    @property
    def sizes(self) -> Sizes:
        header = self.structure[: Structure._size].tolist()  # faster than five fields
        return Sizes(header[_ROWS], header[_UNKNOWNS], header[_ENTRIES], header[_COORDINATES], header[_WORK])

    @property
    def rows(self) -> int:
        return int(self.structure[_ROWS])

    @property
    def unknowns(self) -> int:
        return int(self.structure[_UNKNOWNS])

    def table(self) -> NDArray[np.int64]:
        """A job table without solver and workspace, for kernels that only evaluate."""
        template = tables.Job.new(evaluator=self.evaluate, algebra=self.algebra.address)
        return self._table(template.as_ints, self.scales)

    def prepare(self, kernel: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The job table for the solver of a kernel module, and its initial control vector; made once."""
        prepared = self._jobs.get(kernel.SOLVE)
        if prepared is None:
            algebra = self.algebra
            template = _template(kernel, kernel.pieces, self.sizes, self.evaluate, algebra.address, algebra.work)
            scales = self.springs if self.springs is not None and hasattr(kernel, "HAS_SPRINGS") else self.scales
            prepared = self._jobs[kernel.SOLVE] = self._table(template, scales), kernel.prepare(self).as_floats
        return prepared

    def _table(self, template: NDArray[np.int64], scales: NDArray[np.float64]) -> NDArray[np.int64]:
        """A job table; the problem keeps the arrays alive that it refers to."""
        table = template.copy()
        _blocks.write_addresses(table, self.ints, self.floats, self.structure, scales, self.algebra.pattern)
        return table

    def with_floats(self, floats: NDArray[np.float64]) -> Problem:
        """The same problem with other parameters."""
        return Problem(self.evaluate, self.ints, floats, self.structure, self.scales, self.algebra, self.springs)

    def residual(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """f(q), unscaled, shape (rows,)."""
        out: NDArray[np.float64] = np.zeros(self.rows)
        tables = self.ints, self.floats
        _blocks.call_at(self.evaluate, RESIDUAL, *tables, q, _EMPTY, out, _EMPTY, self._work())
        return out

    def entries(self, q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """f(q), shape (rows,), and the entries of the Jacobian in the order of the structure, unscaled."""
        out: NDArray[np.float64] = np.zeros(self.rows)
        entries: NDArray[np.float64] = np.zeros(self.sizes.entries)
        self._call(self.evaluate, JACOBIAN, self.ints, self.floats, q, _EMPTY, out, entries, self._work())
        return out, entries

    def jacobian(self, q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """f(q), shape (rows,), and the dense Jacobian, shape (rows, unknowns), unscaled."""
        out, entries = self.entries(q)
        dense: NDArray[np.float64] = np.zeros((self.rows, self.unknowns))
        _blocks.spread(self.structure, entries, dense.reshape(-1))
        return out, dense

    def product(self, q: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        """J(q) x, unscaled, shape (rows,), computed without a dense matrix."""
        out: NDArray[np.float64] = np.empty(self.rows)
        _blocks.apply(self.structure, self.entries(q)[1], x, out)
        return out

    def retract(self, q: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
        """q moved by a tangent vector (unscaled)."""
        out: NDArray[np.float64] = np.empty_like(q)
        self._call(self.evaluate, RETRACT, self.ints, self.floats, q, step, out, _EMPTY, self._work())
        return out

    def residuals(
        self, q: NDArray[np.float64], steps: NDArray[np.float64], places: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """f(q ⊕ steps[k]) for each k, unscaled, shape (steps, rows).

        steps: tangent vectors, shape (steps, unknowns).  places: indices into floats, to which values[k] is written
        before step k; values has shape (steps, places).  The last values remain in floats.
        """
        out: NDArray[np.float64] = np.zeros((len(steps), self.rows))
        tables = self.evaluate, self.ints, self.floats
        _blocks.follow(*tables, q, steps, places, values, np.empty_like(q), out, self._work())
        return out

    def _work(self) -> NDArray[np.float64]:
        return np.empty(int(self.structure[_WORK]))

    @staticmethod
    def _call(address: int, op: int, *arrays: NDArray[Any]) -> int:
        return int(_blocks.call_at(address, op, *arrays))


_EMPTY: NDArray[np.float64] = np.empty(0)
_OUTCOMES = tuple(Outcome)


class Budget(NamedTuple):
    """Limits of one attempt.  ``deadline``: a time of time.perf_counter [s], or None."""

    iterations: int
    deadline: float | None = None

    def is_out_of_time(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline


class Run(NamedTuple):
    """Result of one attempt: outcome, iterations used, largest scaled residual, and ½|r|²; q is changed in place."""

    outcome: Outcome
    iterations: int
    residual: float
    cost: float


class Job:
    """One solver applied to one problem: the table that its kernel reads, its control vector and its workspace.

    Threads must not share a job.  ``table``: a :class:`cardan.solvers.tables.SolverJob`.  ``begin``: the initial
    control vector of a run, without the tolerance.
    """

    __slots__ = ("begin", "control", "problem", "table", "work")

    def __init__(self, problem: Problem, kernel: Any, settings: Mapping[str, float] = _NONE) -> None:
        """kernel: the module of a solver.  settings: fields of the control vector that replace its defaults."""
        self.problem = problem
        self.table, begin = problem.prepare(kernel)
        self.begin: NDArray[np.float64] = begin.copy()
        self.control: NDArray[np.float64] = np.empty(Control.size)
        self.work: NDArray[np.float64] = np.empty(self.table[-1])
        for name, value in settings.items():
            self.begin[Control.fields[name].first] = value

    def with_scales(self, problem: Problem) -> NDArray[np.int64]:
        """The table with the scales of another problem, kept alive by the caller; only the length may differ."""
        from cardan.kernel.memory import address_of

        table = self.table.copy()
        table[SolverJob.scales.first] = address_of(problem.scales)
        return table

    def start(self, tolerance: float) -> None:
        """Begin a run with a tolerance on the largest scaled residual."""
        self.control[:] = self.begin
        self.control[_TOLERANCE] = tolerance

    def iterate(self, q: NDArray[np.float64], count: int) -> int:
        """Do at most ``count`` iterations from q, in place; returns the outcome as an integer."""
        self.control[_CHUNK] = count
        return int(_blocks.run(self.table, self.control, q, self.work))

    def run(self, q: NDArray[np.float64], tolerance: float, budget: Budget) -> Run:
        """Iterate from q, in place, until there is an outcome or the budget is used up.

        Ctrl-C and the deadline are checked between chunks of iterations.
        """
        self.start(tolerance)
        chunk, done, most = chunk_size(self.problem), 0, budget.iterations
        while True:
            outcome = self.iterate(q, min(chunk, most - done))
            iterations, _, _, residual, cost = self.control[_RESULT].tolist()
            done = int(iterations)
            if outcome or done >= most or budget.is_out_of_time():
                return Run(_OUTCOMES[outcome], done, residual, cost)


def allowance(problem: Problem) -> int:
    """Number of iterations that take about ten milliseconds, at least one."""
    per_iteration = problem.algebra.cost + UNKNOWN_WORK * problem.unknowns
    return max(1, int(CHUNK_WORK / max(per_iteration, 1.0)))


def chunk_size(problem: Problem) -> int:
    """Number of iterations between two checks of the clock in Python."""
    return min(CHUNK_MOST, allowance(problem))
