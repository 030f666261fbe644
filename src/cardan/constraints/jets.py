"""Second-order jets: a function of time, computed together with its rate and its acceleration.

The jet of f(g) is f, f′ ġ and f″ ġ² + f′ g̈.  Drivers are evaluated with jets, so ``lambda t: …`` gives all three.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn


class Jet:
    """A value with its first and second derivative in time."""

    __slots__ = ("acceleration", "rate", "value")

    def __init__(self, value: float, rate: float = 0.0, acceleration: float = 0.0) -> None:
        self.value = float(value)
        self.rate = float(rate)
        self.acceleration = float(acceleration)

    def chained(self, f: float, f1: float, f2: float) -> Jet:
        """f of this jet, from f, f′ and f″ at its value."""
        return Jet(f, f1 * self.rate, f2 * self.rate * self.rate + f1 * self.acceleration)

    def __add__(self, other: Any) -> Jet:
        o = lift(other)
        return Jet(self.value + o.value, self.rate + o.rate, self.acceleration + o.acceleration)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.rate, -self.acceleration)

    def __pos__(self) -> Jet:
        return self

    def __sub__(self, other: Any) -> Jet:
        return self + -lift(other)

    def __rsub__(self, other: Any) -> Jet:
        return lift(other) + -self

    def __mul__(self, other: Any) -> Jet:
        o = lift(other)
        acceleration = self.acceleration * o.value + 2.0 * self.rate * o.rate + self.value * o.acceleration
        return Jet(self.value * o.value, self.rate * o.value + self.value * o.rate, acceleration)

    __rmul__ = __mul__

    def reciprocal(self) -> Jet:
        i = 1.0 / self.value
        return self.chained(i, -i * i, 2.0 * i * i * i)

    def __truediv__(self, other: Any) -> Jet:
        return self * lift(other).reciprocal()

    def __rtruediv__(self, other: Any) -> Jet:
        return lift(other) * self.reciprocal()

    def __pow__(self, exponent: Any) -> Jet:
        if isinstance(exponent, Jet):
            return function("exp", exponent * function("log", self))
        n, v = float(exponent), self.value
        if n == 0.0:
            return Jet(1.0)
        # math.pow raises an error for a root of a negative number; ** would give a complex number
        first = n * math.pow(v, n - 1.0) if n != 1.0 else 1.0
        second = n * (n - 1.0) * math.pow(v, n - 2.0) if n not in (1.0, 2.0) else n * (n - 1.0)
        return self.chained(math.pow(v, n), first, second)

    def __rpow__(self, base: Any) -> Jet:
        return function("exp", self * math.log(base))

    def __abs__(self) -> Jet:
        return self if self.value >= 0.0 else -self

    # Comparisons use the value, so that a driver may be piecewise.

    def __lt__(self, other: Any) -> bool:
        return self.value < lift(other).value

    def __le__(self, other: Any) -> bool:
        return self.value <= lift(other).value

    def __gt__(self, other: Any) -> bool:
        return self.value > lift(other).value

    def __ge__(self, other: Any) -> bool:
        return self.value >= lift(other).value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Jet | numbers.Real) and self.value == lift(other).value

    __hash__ = None  # type: ignore[assignment]  # compared by value

    def __bool__(self) -> bool:
        return self.value != 0.0

    def __mod__(self, other: Any) -> Jet:
        """Remainder of the value; the derivatives do not change."""
        return Jet(self.value % float(other), self.rate, self.acceleration)

    def __floordiv__(self, other: Any) -> Jet:
        return Jet(self.value // float(other))

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            "the time of a driver has derivatives and is not a plain number: use cd.sin, cd.sqrt, … in place of "
            "math.sin, math.sqrt, …; or return cd.Jet(value, rate, acceleration) computed by hand from t.value"
        )

    __float__ = __int__ = __index__ = __round__ = __floor__ = __ceil__ = _refuse

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's scalar functions are computed with derivatives too."""
        name = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}.get(
            ufunc.__name__, ufunc.__name__
        )
        if method == "__call__" and not options:
            if name in OPERATORS:
                return OPERATORS[name](*map(lift, inputs))
            if name == "atan2":
                return atan2(*inputs)
            if name in DERIVATIVES:
                return function(name, inputs[0])
        raise TypeError(f"numpy.{ufunc.__name__} of time cannot be differentiated; use cd.sin, cd.sqrt, …")

    def __repr__(self) -> str:
        return f"Jet({self.value!r}, {self.rate!r}, {self.acceleration!r})"


# NumPy's names of the operators, used when the left operand is a NumPy number.
OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": lambda a, b: a ** (b if b.rate or b.acceleration else b.value),
    "remainder": lambda a, b: a % b.value,
    "floor_divide": lambda a, b: a // b.value,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": operator.abs,
    "square": lambda a: a * a,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def lift(value: Any) -> Jet:
    """A number as a jet with zero derivatives."""
    if isinstance(value, Jet):
        return value
    if type(value) is float:  # the common case; the checks below take ten times as long
        return Jet(value)
    if getattr(value, "ndim", None) == 0:  # NumPy passes its numbers as arrays in comparisons
        value = value.item()
    if isinstance(value, numbers.Real):
        return Jet(float(value))
    raise TypeError(f"a driver can compute with numbers and time, not with {value!r}")


# f, f′, f″ at a value.
DERIVATIVES: Final[Mapping[str, Callable[[float], tuple[float, float, float]]]] = {
    "sin": lambda v: (math.sin(v), math.cos(v), -math.sin(v)),
    "cos": lambda v: (math.cos(v), -math.sin(v), -math.cos(v)),
    "tan": lambda v: (math.tan(v), 1.0 + math.tan(v) ** 2, 2.0 * math.tan(v) * (1.0 + math.tan(v) ** 2)),
    "exp": lambda v: (math.exp(v), math.exp(v), math.exp(v)),
    "log": lambda v: (math.log(v), 1.0 / v, -1.0 / (v * v)),
    "sqrt": lambda v: (math.sqrt(v), 0.5 / math.sqrt(v), -0.25 / (v * math.sqrt(v))),
    "asin": lambda v: (math.asin(v), (1.0 - v * v) ** -0.5, v * (1.0 - v * v) ** -1.5),
    "acos": lambda v: (math.acos(v), -((1.0 - v * v) ** -0.5), -v * (1.0 - v * v) ** -1.5),
    "atan": lambda v: (math.atan(v), 1.0 / (1.0 + v * v), -2.0 * v / (1.0 + v * v) ** 2),
    "sinh": lambda v: (math.sinh(v), math.cosh(v), math.sinh(v)),
    "cosh": lambda v: (math.cosh(v), math.sinh(v), math.cosh(v)),
    "tanh": lambda v: (math.tanh(v), 1.0 - math.tanh(v) ** 2, -2.0 * math.tanh(v) * (1.0 - math.tanh(v) ** 2)),
}


def function(name: str, argument: Any) -> Jet:
    """A named function of a jet."""
    jet = lift(argument)
    return jet.chained(*DERIVATIVES[name](jet.value))


def atan2(s: Any, c: Any) -> Jet:
    """Angle of (c, s); its rate is (c ṡ − s ċ)/(s² + c²)."""
    s, c = lift(s), lift(c)
    square = s * s + c * c
    cross = Jet(c.value * s.rate - s.value * c.rate, c.value * s.acceleration - s.value * c.acceleration)
    rate = cross / Jet(square.value, square.rate)
    return Jet(math.atan2(s.value, c.value), rate.value, rate.rate)
