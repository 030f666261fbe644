"""The result of many motions or simulations: how each ended, and the outputs that were kept, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.calls import explains
from cardan.errors import ModelError
from cardan.system import check
from cardan.system.html import as_html, table_of
from cardan.system.state import FloatArray, State

DONE: Final = "done"
ERROR: Final = "error"  # of the model or a function of the user, in this run alone
TIME_LIMIT: Final = "time limit"
INTERRUPTED: Final = "interrupted"
STOPPED: Final = (TIME_LIMIT, INTERRUPTED)  # by the clock or the keyboard: no answer of the mechanism
NOT_BEGUN: Final = "it was not begun"
MOST_LISTED: Final = 5


class Failure(NamedTuple):
    """A run that did not reach its end: its number, its values of parameters, its status, and why."""

    run: int
    values: Mapping[str, float]
    status: str
    reason: str


@explains()
class Runs:
    """How many runs ended, and what was kept of them, as arrays of the length of the batch.

    ``ok``: the whole motion was computed.  ``status``: values of :class:`cardan.SimulationStatus` or
    :class:`cardan.MotionStatus`, or "error" where the model, or a function of the user, does not allow that run.
    ``reason``: why it ended, in words, "" for a run that is done.  ``notes``: of each run.  ``values``: of parameters
    by name, shape (n,) each.  ``times`` [s]: of the outputs.  ``units``: of the outputs, by their labels.
    ``interrupted``: by the keyboard, before all runs were finished.
    ``runs["max(effort(motor))"]``: an output, shape (n, …), or (n, times, …) if it was not reduced.  Where a run did
    not reach a time it is NaN; where it ended early, its reductions are those of the times that it reached; where it
    was stopped by ``max_seconds`` or the keyboard, all are NaN.
    """

    def __init__(
        self,
        values: Mapping[str, FloatArray],
        count: int,
        times: FloatArray,
        outputs: Mapping[str, FloatArray],
        units: Mapping[str, str],
        again: Callable[[int], Any],
        start: Callable[[int], State],
    ) -> None:
        """again, start: one run by its number, and the state from which it begins."""
        self.values = values
        self.times = times
        self.units = units
        self._outputs = outputs
        self._again, self._start = again, start
        self.seconds = 0.0
        self.interrupted = False
        self.status: NDArray[np.str_] = np.full(count, INTERRUPTED, dtype="U24")
        self.reason: list[str] = [NOT_BEGUN] * count
        self.notes: list[tuple[str, ...]] = [()] * count

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Whether the whole motion was computed, shape (n,)."""
        return self.status == DONE

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the outputs."""
        return tuple(self._outputs)

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, label: str) -> FloatArray:
        if label in self._outputs:
            return self._outputs[label]
        if label in self.values:
            return self.values[label]
        raise check.unknown(label, "output or parameter of these runs", (*self._outputs, *self.values))

    @property
    def failed(self) -> list[Failure]:
        """The runs that are not done, in their order."""
        return [
            Failure(k, {name: float(own[k]) for name, own in self.values.items()}, str(self.status[k]), self.reason[k])
            for k in np.flatnonzero(~self.ok).tolist()
        ]

    def again(self, k: int) -> Any:
        """Run ``k`` once more, alone: the whole :class:`cardan.Simulation` or :class:`cardan.Motion`, with the same
        numbers."""
        return self._again(self._checked(k))

    def start(self, k: int) -> State:
        """The state from which run ``k`` begins: ``m.simulate(duration, runs.start(k))`` is the same run."""
        return self._start(self._checked(k))

    def _checked(self, k: int) -> int:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not -len(self) <= k < len(self):
            raise ModelError(f"the number of the run is {k!r}; it must be a whole number from 0 to {len(self) - 1}")
        return int(k) % len(self)

    def counts(self) -> dict[str, int]:
        """Number of runs per status, the most frequent first."""
        words, numbers = np.unique(self.status, return_counts=True)
        return dict(sorted(zip(words.tolist(), numbers.tolist(), strict=True), key=lambda pair: -pair[1]))

    def table(self) -> dict[str, Any]:
        """Columns by title, one row each run, for ``pandas.DataFrame(runs.table())``: values, outputs, status, reason.

        An output with several numbers per run has a column for each: "position(crank) [m] 0", ….
        """
        found: dict[str, Any] = dict(self.values)
        for label, array in self._outputs.items():
            unit = self.units[label]
            title = f"{label} [{unit}]" if unit else label
            flat = array.reshape(len(self), -1)
            if array.ndim == 1:
                found[title] = array
            else:
                found |= {f"{title} {k}": flat[:, k] for k in range(flat.shape[1])}
        return found | {"status": self.status, "reason": np.array(self.reason, dtype=object)}

    def text(self) -> str:
        """How many runs ended how, and the first of those that failed."""
        ended = ", ".join(f"{count} {word}" for word, count in self.counts().items())
        lines = [f"{len(self)} runs: {ended or 'none'}; {self.seconds:.3g} s"]
        failed = self.failed
        lines += [f"run {one.run}: {one.status}: {one.reason.splitlines()[0]}" for one in failed[:MOST_LISTED]]
        lines += [f"and {len(failed) - MOST_LISTED} others"] if len(failed) > MOST_LISTED else []
        return "\n  ".join(lines)

    def __eq__(self, other: object) -> bool:
        """Equal in everything except the computing time."""
        if not isinstance(other, Runs):
            return NotImplemented
        mine, theirs = (
            {**{f"values {k}": v for k, v in one.values.items()}, **one._outputs, "times": one.times}
            for one in (self, other)
        )
        same = mine.keys() == theirs.keys() and all(np.array_equal(mine[k], theirs[k], equal_nan=True) for k in mine)
        return same and (self.status.tolist(), self.reason, self.notes) == (
            *(other.status.tolist(), other.reason, other.notes),
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_again": _unknown, "_start": _unknown}

    def _repr_html_(self) -> str:
        return as_html(self.text(), table_of(self.table()))

    def __repr__(self) -> str:
        return f"<Runs {self.text().splitlines()[0]}>"


def _unknown(_: int) -> Any:
    raise ModelError("these runs were pickled, without their mechanism; use m.simulate or m.move with their values")
