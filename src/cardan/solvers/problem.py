"""A problem as a solver sees it, and a solver at work on it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.lazy import LazyModule
from cardan.solvers import abi
from cardan.solvers.abi import Outcome

_blocks = LazyModule("cardan.solvers._blocks")

CHUNK_WORK = 2e7  # multiplications between two looks at the clock: some ten milliseconds
UNKNOWN_WORK = 100.0  # multiplications of an iteration per unknown, beside the linear algebra
CHUNK_MOST = 64
_NONE: Mapping[int, float] = {}


class Linear:
    """Linear algebra by address: its table (the structure, or a sparse pattern), the floats its matrices take, and the
    multiplications of one factorisation."""

    __slots__ = ("address", "cost", "pattern", "work")

    def __init__(self, address: int, pattern: NDArray[np.int64], work: int, cost: float) -> None:
        self.address = address
        self.pattern = pattern
        self.work = work
        self.cost = cost


class Problem:
    """An evaluator's address, its two tables, the structure of its Jacobian, scales (rows, then columns), and the
    linear algebra that suits its size."""

    __slots__ = ("_tables", "evaluate", "floats", "ints", "linear", "scales", "structure")

    def __init__(
        self,
        evaluate: int,
        ints: NDArray[np.int64],
        floats: NDArray[np.float64],
        structure: NDArray[np.int64],
        scales: NDArray[np.float64],
        linear: Linear,
    ) -> None:
        self.evaluate = evaluate
        self.ints = ints
        self.floats = floats
        self.structure = structure
        self.scales = scales
        self.linear = linear
        self._tables: dict[int, NDArray[np.int64]] = {}

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Rows, unknowns, entries of the Jacobian, coordinates, and floats of work of the evaluator."""
        rows, unknowns, _, _, entries, coordinates, _, work = self.structure[: abi.LIMITS].tolist()
        return rows, unknowns, entries, coordinates, work

    @property
    def rows(self) -> int:
        return int(self.structure[abi.ROWS])

    @property
    def unknowns(self) -> int:
        return int(self.structure[abi.UNKNOWNS])

    def table(self) -> NDArray[np.int64]:
        """The table of a job without a solver and without a workspace: for kernels that only evaluate."""
        return self._table(0, ())

    def job_table(self, kernel: Any) -> NDArray[np.int64]:
        """The table of a job: that of the solver in a kernel module; made once."""
        found = self._tables.get(kernel.SOLVE)
        if found is None:
            found = self._tables[kernel.SOLVE] = self._table(kernel.SOLVE, kernel.pieces(self))
        return found

    def _table(self, solver: int, pieces: tuple[int, ...]) -> NDArray[np.int64]:
        """Addresses, which the problem keeps alive, and offsets of the pieces of a workspace."""
        table = np.array([solver, self.evaluate, 0, 0, 0, 0, self.linear.address, 0, 0, *accumulate(pieces)])
        _blocks.write_addresses(self.ints, self.floats, self.structure, self.scales, self.linear.pattern, table)
        return table

    def with_floats(self, floats: NDArray[np.float64]) -> Problem:
        """The same problem with other parameters."""
        return Problem(self.evaluate, self.ints, floats, self.structure, self.scales, self.linear)

    def residual(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """f(q), unscaled, shape (rows,)."""
        out: NDArray[np.float64] = np.zeros(self.rows)
        self._call(self.evaluate, abi.RESIDUAL, self.ints, self.floats, q, _EMPTY, out, _EMPTY, self._work())
        return out

    def entries(self, q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """f(q), shape (rows,), and the entries of the Jacobian, block rows one after the other, unscaled."""
        out: NDArray[np.float64] = np.zeros(self.rows)
        entries: NDArray[np.float64] = np.zeros(int(self.structure[abi.JACOBIAN_SIZE]))
        self._call(self.evaluate, abi.JACOBIAN, self.ints, self.floats, q, _EMPTY, out, entries, self._work())
        return out, entries

    def jacobian(self, q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """f(q), shape (rows,), and the dense Jacobian, shape (rows, unknowns), unscaled."""
        out, entries = self.entries(q)
        dense: NDArray[np.float64] = np.zeros((self.rows, self.unknowns))
        _blocks.spread(self.structure, entries, dense.reshape(-1))
        return out, dense

    def product(self, q: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        """J(q) x, unscaled, shape (rows,), without a dense matrix."""
        out: NDArray[np.float64] = np.empty(self.rows)
        _blocks.apply(self.structure, self.entries(q)[1], x, out)
        return out

    def retract(self, q: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
        """q moved by a tangent vector (unscaled)."""
        out: NDArray[np.float64] = np.empty_like(q)
        self._call(self.evaluate, abi.RETRACT, self.ints, self.floats, q, step, out, _EMPTY, self._work())
        return out

    def residuals(
        self,
        q: NDArray[np.float64],
        steps: NDArray[np.float64],
        places: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """f at q moved by tangent vectors, shape (steps, unknowns); unscaled, shape (steps, rows).

        places: in the floats, of the values, shape (steps, places), that go with each step; the last ones stay there.
        """
        out: NDArray[np.float64] = np.zeros((len(steps), self.rows))
        tables = self.evaluate, self.ints, self.floats
        _blocks.follow(*tables, q, steps, places, values, np.empty_like(q), out, self._work())
        return out

    def _work(self) -> NDArray[np.float64]:
        return np.empty(int(self.structure[abi.WORK]))

    @staticmethod
    def _call(address: int, op: int, *arrays: NDArray[Any]) -> int:
        return int(_blocks.call_at(address, op, *arrays))


_EMPTY: NDArray[np.float64] = np.empty(0)


class Budget(NamedTuple):
    """What one attempt may use; ``deadline`` on the clock of time.perf_counter, or None."""

    iterations: int
    deadline: float | None = None

    def is_out_of_time(self) -> bool:
        return self.deadline is not None and time.perf_counter() >= self.deadline


class Run(NamedTuple):
    """How an attempt ended, with q moved in place: iterations used, largest scaled residual, ½|r|²."""

    outcome: Outcome
    iterations: int
    residual: float
    cost: float


class Job:
    """A solver at work on a problem: the table that its kernel reads, its control vector and its workspace.

    Not to be shared between threads.  ``table``: see :mod:`cardan.solvers.abi`.  ``begin``: the control vector as it is
    at the beginning of a run, but for the tolerance.
    """

    __slots__ = ("begin", "control", "problem", "table", "work")

    def __init__(self, problem: Problem, kernel: Any, settings: Mapping[int, float] = _NONE) -> None:
        """kernel: the module of a solver.  settings: entries of the control vector, in place of the solver's own."""
        self.problem = problem
        self.table = problem.job_table(kernel)
        self.control: NDArray[np.float64] = np.zeros(abi.CONTROL)
        self.work: NDArray[np.float64] = np.empty(self.table[-1])
        kernel.prepare(problem, self.control)
        for entry, value in settings.items():
            self.control[entry] = value
        self.begin = self.control.copy()

    def with_scales(self, problem: Problem) -> NDArray[np.int64]:
        """The table with the scales of another problem, which must be the same but for the unit of length."""
        from cardan._jit import address_of

        table = self.table.copy()
        table[abi.SCALES] = address_of(problem.scales)
        return table

    def start(self, tolerance: float) -> None:
        """Begin a run, to a tolerance on the largest scaled residual."""
        self.control[:] = self.begin
        self.control[abi.TOLERANCE] = tolerance

    def iterate(self, q: NDArray[np.float64], count: int) -> int:
        """Up to so many iterations from q, in place; returns the outcome as a plain number."""
        self.control[abi.CHUNK] = count
        return int(_blocks.run(self.table, self.control, q, self.work))

    def run(self, q: NDArray[np.float64], tolerance: float, budget: Budget) -> Run:
        """Iterate from q, in place, until there is an outcome or the budget is used up.

        Between chunks of iterations Ctrl-C is noticed and the clock is read.
        """
        self.start(tolerance)
        most, control = chunk_size(self.problem), self.control
        while True:
            outcome = self.iterate(q, min(most, budget.iterations - int(control[abi.ITERATIONS])))
            if outcome or control[abi.ITERATIONS] >= budget.iterations or budget.is_out_of_time():
                break
        _, iterations, _, _, residual, cost = control[: abi.COST + 1].tolist()
        return Run(Outcome(outcome), int(iterations), residual, cost)


def allowance(problem: Problem) -> int:
    """Iterations in some ten milliseconds, one at least."""
    per_iteration = problem.linear.cost + UNKNOWN_WORK * problem.unknowns
    return max(1, int(CHUNK_WORK / max(per_iteration, 1.0)))


def chunk_size(problem: Problem) -> int:
    """Iterations between two looks at the clock, in Python."""
    return min(CHUNK_MOST, allowance(problem))
