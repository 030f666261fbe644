"""The result of an assembly from many starts: verdicts as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.analysis.result import AssemblyResult, Status
from cardan.calls import explains
from cardan.errors import ModelError
from cardan.system import check
from cardan.system.saving import Saved
from cardan.system.state import FloatArray, State
from cardan.system.system import IntArray, System

_NUMBERS = ("coordinates", "angles", "residual", "tolerance", "iterations", "restarts")


@explains()
@dataclass(slots=True, eq=False, repr=False)
class BatchResult(Saved):
    """Verdicts of many assemblies, as arrays of the length of the batch.

    ``ok``: every constraint is met.  ``status``: values of :class:`Status`.  ``residual``: the largest in relation to
    its bound; ``tolerance``: this bound.  ``iterations``: sum over all attempts; ``restarts``: attempts after the
    first.  ``coordinates`` [m, 1], shape (n, bodies, 7).  ``angles`` [rad], shape (n, variables + counted angles):
    parameters that are free, or that differ from start to start (``variables``), then the counted angles.
    """

    _system: System
    coordinates: FloatArray
    angles: FloatArray
    status: NDArray[np.str_]
    residual: FloatArray
    tolerance: FloatArray
    iterations: IntArray
    restarts: IntArray
    seconds: float
    time: float
    method: str
    formulation: str

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Whether every constraint is met."""
        return self.status == str(Status.ASSEMBLED)

    def _take(self, k: int, found: AssemblyResult, angles: FloatArray) -> None:
        """Replace the verdict on start ``k``; angles: variables and counted angles of its state."""
        self.coordinates[k], self.angles[k] = found.state.coordinates, angles
        self.status[k], self.residual[k], self.tolerance[k] = str(found.status), found.residual, found.tolerance
        self.iterations[k], self.restarts[k] = found.iterations, found.restarts

    def __len__(self) -> int:
        return len(self.ok)

    def variable(self, parameter: Any) -> FloatArray:
        """Values of a parameter, shape (n,)."""
        name = getattr(parameter, "name", parameter)
        names = self._system.variable_names
        if name in names:
            return self._system.rounded_to_bounds(self.angles[:, : len(names)])[:, names.index(name)]
        if name not in self._system.values:
            raise check.unknown(name, "parameter of this mechanism", self._system.values)
        return np.full(len(self), self._system.values[name])

    def __eq__(self, other: object) -> bool:
        """Equal in everything except the computing time."""
        if not isinstance(other, BatchResult):
            return NotImplemented
        same = all(np.array_equal(getattr(self, a), getattr(other, a), equal_nan=True) for a in _NUMBERS)
        same_options = all(getattr(self, a) == getattr(other, a) for a in ("time", "method", "formulation"))
        mine, theirs = self._system, other._system
        same_model = mine.names == theirs.names and mine.counted_angles == theirs.counted_angles
        return same and same_options and same_model and np.array_equal(self.status, other.status)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def state(self, k: int) -> State:
        """The final state of the assembly from start ``k``; a negative number counts from the end."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not -len(self) <= k < len(self):
            valid = f"from 0 to {len(self) - 1}, or from {-len(self)} to −1 counted from the end"
            raise ModelError(f"the index of the start is {k!r}; it must be a whole number {valid}")
        angles = self.angles[k].copy() if self.angles.shape[1] else None
        return self._system.state(self.coordinates[k].copy(), angles, self.time)

    def counts(self) -> dict[str, int]:
        """Number of starts per status, the most frequent first."""
        words, numbers = np.unique(self.status, return_counts=True)
        pairs = sorted(zip(words.tolist(), numbers.tolist(), strict=True), key=lambda pair: -pair[1])
        return dict(pairs)

    def text(self) -> str:
        """A summary in one line."""
        ended = ", ".join(f"{count} {word}" for word, count in self.counts().items())
        restarted = int((self.restarts > 0).sum())
        return (
            f"{len(self)} starts: {ended}; {self.iterations.mean():.1f} iterations on average, {restarted} restarted, "
            f"{1e3 * self.seconds:.1f} ms"
        )

    def __repr__(self) -> str:
        return f"<BatchResult {self.text()}>"
