"""A problem as a solver sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.lazy import LazyModule
from cardan.solvers import abi

_blocks = LazyModule("cardan.solvers._blocks")


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

    __slots__ = ("evaluate", "floats", "ints", "linear", "scales", "structure")

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

    @property
    def rows(self) -> int:
        return int(self.structure[abi.ROWS])

    @property
    def unknowns(self) -> int:
        return int(self.structure[abi.UNKNOWNS])

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
