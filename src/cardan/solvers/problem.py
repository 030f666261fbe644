"""A problem as a solver sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardan.solvers import abi


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Linear algebra by address: its table (the structure, or a sparse pattern) and the floats its matrices take."""

    address: int
    pattern: NDArray[np.int64]
    work: int


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """An evaluator's address, its two tables, the structure of its Jacobian, scales (rows, then columns), and the
    linear algebra that suits its size."""

    evaluate: int
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]
    structure: NDArray[np.int64]
    scales: NDArray[np.float64]
    linear: Linear

    @property
    def rows(self) -> int:
        return int(self.structure[abi.ROWS])

    @property
    def unknowns(self) -> int:
        return int(self.structure[abi.UNKNOWNS])

    def residual(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """f(q), unscaled, shape (rows,)."""
        from cardan.solvers import _blocks

        out: NDArray[np.float64] = np.zeros(self.rows)
        work = np.empty(int(self.structure[abi.WORK]))
        _blocks.evaluate_at(self.evaluate, abi.RESIDUAL, self.ints, self.floats, q, out, _EMPTY, work)
        return out

    def jacobian(self, q: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """f(q), shape (rows,), and the dense Jacobian, shape (rows, unknowns), unscaled."""
        from cardan.solvers import _blocks

        out: NDArray[np.float64] = np.zeros(self.rows)
        entries = np.zeros(int(self.structure[abi.JACOBIAN_SIZE]))
        work = np.empty(int(self.structure[abi.WORK]))
        _blocks.evaluate_at(self.evaluate, abi.JACOBIAN, self.ints, self.floats, q, out, entries, work)
        dense: NDArray[np.float64] = np.zeros((self.rows, self.unknowns))
        _blocks.spread(self.structure, entries, dense.reshape(-1))
        return out, dense

    def retract(self, q: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
        """q moved by a tangent vector (unscaled)."""
        from cardan.solvers import _blocks

        out: NDArray[np.float64] = np.empty_like(q)
        work = np.empty(int(self.structure[abi.WORK]))
        _blocks.retract_at(self.evaluate, self.ints, self.floats, q, step, out, work)
        return out


_EMPTY: NDArray[np.float64] = np.empty(0)
