"""The value of a driver as a function of time, with its rate and its acceleration."""

from __future__ import annotations

import math
import numbers
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cardan.constraints.jets import Jet
from cardan.errors import ModelError

# When a function is declared, it must be defined at one of these times [s]; it may be undefined at t = 0.
TRIED = (0.0, 1.0, 0.1, 10.0)


class UndefinedError(ModelError):
    """A driver has no value at a time; it may have values at other times."""


@dataclass(frozen=True, slots=True)
class Signal:
    """The function of a driver, and the driver's name: a callable evaluated with jets, or a constant number."""

    name: str
    function: Callable[[Jet], Any] | float

    def jet(self, time: float) -> Jet:
        """Value, rate and acceleration at a time [s]."""
        what = f"driver {self.name!r} at t = {time:g} s"
        if not callable(self.function):
            result: Any = self.function
        else:
            try:
                result = self.function(Jet(time, 1.0))
            except ModelError:
                raise
            except (ArithmeticError, ValueError) as error:
                text = f"{what}: its function raised {type(error).__name__}: {error}"
                raise UndefinedError(f"{text}; use times at which it is defined") from error
            except Exception as error:
                raise ModelError(f"{what}: its function raised {type(error).__name__}: {error}") from error
        if isinstance(result, numbers.Real) and not isinstance(result, bool):
            result = Jet(float(result))
        if not isinstance(result, Jet):
            raise ModelError(f"{what} gives {result!r}; it must be a number, or computed from t with cd.sin, …")
        if not all(map(math.isfinite, (result.value, result.rate, result.acceleration))):
            raise UndefinedError(f"{what} gives {result!r}; value, rate and acceleration must be finite")
        return result

    def value(self, time: float) -> float:
        """Value at a time [s]."""
        return self.jet(time).value

    def some_value(self) -> float:
        """Value at t = 0, or at another time of TRIED if it is undefined there."""
        first: UndefinedError | None = None
        for time in TRIED:
            try:
                return self.value(time)
            except UndefinedError as error:
                first = first or error
        tried = ", ".join(f"{time:g}" for time in TRIED[1:])
        raise ModelError(f"{first}; it is also undefined at t = {tried} s") from first

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return not callable(self.function)

    def __copy__(self) -> Signal:
        return self

    def __deepcopy__(self, memo: Any) -> Signal:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            pickle.dumps(self.function)
        except Exception as error:
            raise ModelError(
                f"driver {self.name!r} cannot be pickled, because its function cannot ({error}); use a function that a "
                "module defines by name"
            ) from None
        return Signal, (self.name, self.function)


class Remembered:
    """A signal with cached values, for a motion, which evaluates it repeatedly at few times."""

    __slots__ = ("_jets", "_signal", "name")

    MOST = 64

    def __init__(self, signal: Signal) -> None:
        self.name = signal.name
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
        return self.jet(time).value
