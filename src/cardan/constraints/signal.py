"""The value of a driver as a function of time, with its rate and its acceleration."""

from __future__ import annotations

import contextlib
import math
import numbers
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.constraints import coefficients
from cardan.constraints.expression import Graph, digests
from cardan.constraints.jets import Jet
from cardan.errors import ModelError

# When a function is declared, it must be defined at one of these times [s]; it may be undefined at t = 0.
TRIED = (0.0, 1.0, 0.1, 10.0)
RECORDED = 1e-9  # relative: an expression rounds differently from the function that it was recorded of


class UndefinedError(ModelError):
    """A driver has no value at a time; it may have values at other times."""


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """The function of a driver, and the driver's name: a callable evaluated with jets, or a constant number.

    ``kind``: what has the name: a driver, or a parameter of a constraint.  Signals are equal if their functions are, or
    if these are recorded as the same expression, such as a Python function and its text in a file.
    ``used``: formulas of parameters that the function reads.  ``values``: of all nodes of their book; None: as drawn.
    """

    name: str
    function: Callable[[Jet], Any] | float
    kind: str = "driver"
    used: tuple[Any, ...] = ()
    values: Sequence[float] | None = None

    @staticmethod
    def reading(name: str, function: Any, kind: str = "driver", often: bool = True) -> Signal:
        """The signal of a function, or of a formula, that may read parameters.

        often: the function is called at several times, so that formulas in its pieces are seen.
        """
        if hasattr(function, "in_force"):
            function = Always(function)
        made = Signal(name, function, kind)
        if callable(function):
            with coefficients.collecting() as found:
                for time in (*TRIED, *getattr(function, "samples", ())):
                    with contextlib.suppress(UndefinedError):
                        made.jet(time)
                        if not often:
                            break
            if found:
                return replace(made, used=tuple(found))
        return made

    def drawn(self, values: Sequence[float]) -> Signal:
        """The same at other values of the nodes of the book."""
        return replace(self, values=values) if self.used else self

    def _called(self, t: Jet) -> Any:
        """What the function returns at a time."""
        assert callable(self.function)
        if not self.used and coefficients.is_standing():  # its formulas are being collected
            return self.function(t)
        nodes = self.values if self.values is not None or not self.used else self.used[0].book.values

        def number(formula: Any) -> Any:
            if nodes is None or all([formula.index != one.index for one in self.used]):
                tried = ", ".join(f"{time:g}" for time in TRIED)
                raise ModelError(
                    f"{self._at(np.min(t.value))}: its function reads {formula!r}, which it did not at t = {tried} s "
                    "when it was declared; let it read this at all times, such as by adding 0.0 * parameter"
                )
            return nodes[formula.index]

        with coefficients.standing(number):
            return self.function(t)

    def jet(self, time: float) -> Jet:
        """Value, rate and acceleration at a time [s]."""
        if not callable(self.function):
            result: Any = self.function
        else:
            try:
                result = self._called(Jet(time, 1.0))
            except ModelError:
                raise
            except (ArithmeticError, ValueError) as error:
                text = f"{self._at(time)}: its function raised {type(error).__name__}: {error}"
                raise UndefinedError(f"{text}; use times at which it is defined") from error
            except Exception as error:
                raise ModelError(f"{self._at(time)}: its function raised {type(error).__name__}: {error}") from error
        if type(result) is not Jet and isinstance(result, numbers.Real) and not isinstance(result, bool):
            result = Jet(float(result))
        if not isinstance(result, Jet):
            text = f"{self._at(time)} gives {result!r}"
            raise ModelError(f"{text}; it must be a number, or computed from t with cd.sin, …")
        if not all(map(math.isfinite, (result.value, result.rate, result.acceleration))):
            raise UndefinedError(f"{self._at(time)} gives {result!r}; value, rate and acceleration must be finite")
        return result

    def _at(self, time: float) -> str:
        """Whose value it is, and when, for messages."""
        return f"{self.kind} {self.name!r} at t = {time:g} s"

    def jets(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Value, rate and acceleration at times [s], shape (times, 3).

        A function that can compute with arrays is called once.  Any other (one that compares the time, for example)
        is called once for each time.
        """
        out: NDArray[np.float64] = np.zeros((len(times), 3))
        if not callable(self.function):
            out[:, 0] = self.jet(0.0).value
            return out
        if len(times) > 1:
            try:
                with np.errstate(all="ignore"):
                    result = self._called(Jet(times, 1.0))
                out[:] = np.column_stack(np.broadcast_arrays(result.value, result.rate, result.acceleration, times)[:3])
            except Exception:  # it cannot: called with one time, it gives the number or the error that users know
                out[:] = np.nan
        ends = (0, -1) if len(times) > 1 and np.isfinite(out).all() else ()
        if not ends or not all(self._is_alike(out[k], float(times[k])) for k in ends):
            for k, time in enumerate(times.tolist()):
                jet = self.jet(time)
                out[k] = jet.value, jet.rate, jet.acceleration
        return out

    def _is_alike(self, row: NDArray[np.float64], time: float) -> bool:
        """Whether value, rate and acceleration are those of one call, but for rounding."""
        jet = self.jet(time)
        pairs = zip(row.tolist(), (jet.value, jet.rate, jet.acceleration), strict=True)
        return all(math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-300) for found, expected in pairs)

    def value(self, time: float) -> float:
        """Value at a time [s]."""
        return float(self.jet(time).value)

    def some_value(self) -> float:
        """Value at t = 0, or at another time of TRIED if it is undefined there."""
        first: UndefinedError | None = None
        for time in (*TRIED, *getattr(self.function, "samples", ())):
            try:
                return self.value(time)
            except UndefinedError as error:
                first = first or error
        tried = ", ".join(f"{time:g}" for time in TRIED[1:])
        raise ModelError(f"{first}; it is also undefined at t = {tried} s") from first

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Signal):
            return NotImplemented
        if (self.name, self.kind) != (other.name, other.kind):
            return False
        if self.function is other.function or self.function == other.function:
            return [self._at_values(f) for f in self.used] == [other._at_values(f) for f in other.used]
        mine = recorded(self.function, 1)
        return mine is not None and mine == recorded(other.function, 1) and self._is_like(other)

    def _at_values(self, formula: Any) -> float:
        return float(formula.book.values[formula.index] if self.values is None else self.values[formula.index])

    def __hash__(self) -> int:
        return hash((self.name, self.kind))

    def _is_like(self, other: Signal) -> bool:
        """Whether two signals have the same values at the times of TRIED."""
        found: list[list[Jet | None]] = [[], []]
        for values, signal in zip(found, (self, other), strict=True):
            for time in TRIED:
                try:
                    values.append(signal.jet(time))
                except UndefinedError:
                    values.append(None)
        for a, b in zip(*found, strict=True):
            if a is None or b is None:
                if a is not b:
                    return False
                continue
            pairs = ((a.value, b.value), (a.rate, b.rate), (a.acceleration, b.acceleration))
            if not all(math.isclose(x, y, rel_tol=RECORDED, abs_tol=RECORDED) for x, y in pairs):
                return False
        return True

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return not callable(self.function)

    def __copy__(self) -> Signal:
        return self

    def __deepcopy__(self, memo: Any) -> Signal:
        return replace(self, used=deepcopy(self.used, memo)) if self.used else self

    def __reduce__(self) -> tuple[Any, ...]:
        check_picklable(f"{self.kind} {self.name!r}", self.function)
        return Signal, (self.name, self.function, self.kind, self.used, self.values)


@dataclass(frozen=True, slots=True)
class Always:
    """The function that is equal to a formula of parameters at all times."""

    formula: Any

    def __call__(self, t: Any) -> Any:
        return coefficients.plain(self.formula)


def recorded(function: Any, count: int, *rest: Any) -> tuple[bytes, ...] | None:
    """A digest of each expression that a function of ``count`` numbers computes; None if it cannot be recorded.

    rest: its further arguments.  Sums and products do not depend on the order of their terms.
    """
    graph = Graph()
    try:
        variables = [graph.variable(f"x{k}") for k in range(count)]
        with coefficients.standing(lambda formula: formula.recorded(graph)):
            result = function(*variables, *rest) if callable(function) else function
        rows = [graph.lift(item) for item in (result if isinstance(result, list | tuple) else [result])]
    except Exception:  # the user's function can raise any exception
        return None
    return digests([node.plain() for node in graph.nodes], [row.index for row in rows])


def last_defined(signals: Iterable[Any], first: float, last: float) -> tuple[float, UndefinedError] | None:
    """Up to which time from ``first`` to ``last`` [s] all signals are defined, and the error beyond it.

    None if they are all defined at ``last``, or one is not at ``first``.  A spline ends at its last point; of other
    functions the end is found by bisection, so a gap between two times at which one is defined is not seen.
    """
    found: tuple[float, UndefinedError] | None = None
    for signal in signals:
        try:
            signal.jet(first)
        except UndefinedError:
            return None
        known, beyond = first, last if found is None else found[0]
        try:
            signal.jet(beyond)
            continue
        except UndefinedError as error:
            reason = error
        ends = getattr(getattr(getattr(signal, "signal", signal), "function", None), "range", ())
        inside = [end for end in ends if min(first, beyond) <= end <= max(first, beyond)]
        while not inside and (middle := 0.5 * (known + beyond)) not in (known, beyond):
            try:
                signal.jet(middle)
                known = middle
            except UndefinedError:
                beyond = middle
        found = (max(inside, key=lambda end: abs(end - first)) if inside else known), reason
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """A driver's function: a value at a time [s], and a constant rate."""

    value: float
    rate: float
    time: float

    def __call__(self, t: Any) -> Any:
        return self.value + self.rate * (t - self.time)


@dataclass(frozen=True, slots=True)
class GivenRate:
    """The value of a rate row as a function of time: the rate of something that has no value."""

    signal: Signal

    @property
    def is_constant(self) -> bool:
        return False

    @property
    def used(self) -> tuple[Any, ...]:
        """Formulas of parameters that its function reads."""
        return self.signal.used

    def drawn(self, values: Sequence[float]) -> GivenRate:
        """The same at other values of the nodes of the book."""
        return GivenRate(self.signal.drawn(values))

    @property
    def name(self) -> str:
        return self.signal.name

    def jet(self, time: float) -> Jet:
        """Zero, rate and acceleration at a time [s]."""
        found = self.signal.jet(time)
        return Jet(0.0, found.value, found.rate)

    def jets(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Zero, rate and acceleration at times [s], shape (times, 3)."""
        found = self.signal.jets(times)
        return np.column_stack([np.zeros(len(times)), found[:, :2]])

    def value(self, time: float) -> float:
        """Zero."""
        return 0.0

    def __copy__(self) -> GivenRate:
        return self

    def __deepcopy__(self, memo: Any) -> GivenRate:
        return GivenRate(deepcopy(self.signal, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return GivenRate, (self.signal,)


_by_value: ContextVar[bool] = ContextVar("functions are pickled by value", default=False)


@contextmanager
def pickled_by_value() -> Iterator[None]:
    """In this context the pickler sends the code of functions that have no name in a module, as cloudpickle does."""
    token = _by_value.set(True)
    try:
        yield
    finally:
        _by_value.reset(token)


def check_picklable(what: str, function: Any) -> None:
    """ModelError if the function of an item cannot be pickled."""
    if _by_value.get():
        return
    try:
        pickle.dumps(function)
    except Exception as error:  # pickling can raise any exception
        raise ModelError(
            f"{what} cannot be pickled, because its function cannot ({error}); use a function that a module defines by "
            "name"
        ) from None


class Remembered:
    """A signal with cached values, for a motion, which evaluates it repeatedly at few times."""

    __slots__ = ("_jets", "_signal", "kind", "name")

    MOST = 64

    def __init__(self, signal: Signal) -> None:
        self.name = signal.name
        self.kind = getattr(signal, "kind", "driver")
        self._signal = signal
        self._jets: dict[float, Jet] = {}

    def jet(self, time: float) -> Jet:
        """Value, rate and acceleration at a time [s]."""
        found = self._jets.get(time)
        if found is None:
            if len(self._jets) >= self.MOST:
                self._jets.clear()
            found = self._jets[time] = self._signal.jet(time)
        return found

    def value(self, time: float) -> float:
        """Value at a time [s]."""
        return float(self.jet(time).value)
