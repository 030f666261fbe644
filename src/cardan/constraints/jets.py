"""Second-order jets: a function of time, computed together with its rate and its acceleration.

The jet of f(g) is f, f′ ġ and f″ ġ² + f′ g̈.  Drivers are evaluated with jets, so ``lambda t: …`` gives all three.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, NoReturn

import numpy as np

from cardan.constraints import coefficients


class Jet:
    """A value with its first and second derivative in time: numbers, or arrays of them at many times."""

    __slots__ = ("acceleration", "rate", "value")

    def __init__(self, value: Any, rate: Any = 0.0, acceleration: Any = 0.0) -> None:
        self.value: Any = value if type(value) is np.ndarray else float(value)
        self.rate: Any = rate if type(rate) is np.ndarray else float(rate)
        self.acceleration: Any = acceleration if type(acceleration) is np.ndarray else float(acceleration)

    def chained(self, f: float, f1: float, f2: float) -> Jet:
        """f of this jet, from f, f′ and f″ at its value."""
        return Jet(f, f1 * self.rate, f2 * self.rate * self.rate + f1 * self.acceleration)

    # A number has no derivatives: its terms, which are zero, are not computed.

    def __add__(self, other: Any) -> Jet:
        if type(other) is float:
            return Jet(self.value + other, self.rate, self.acceleration)
        o = lift(other)
        return Jet(self.value + o.value, self.rate + o.rate, self.acceleration + o.acceleration)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.rate, -self.acceleration)

    def __pos__(self) -> Jet:
        return self

    def __sub__(self, other: Any) -> Jet:
        return self + (-other if type(other) is float else -lift(other))

    def __rsub__(self, other: Any) -> Jet:
        return lift(other) + -self

    def __mul__(self, other: Any) -> Jet:
        if type(other) is float:
            return Jet(self.value * other, self.rate * other, self.acceleration * other)
        o = lift(other)
        acceleration = self.acceleration * o.value + 2.0 * self.rate * o.rate + self.value * o.acceleration
        return Jet(self.value * o.value, self.rate * o.value + self.value * o.rate, acceleration)

    __rmul__ = __mul__

    def reciprocal(self) -> Jet:
        i = 1.0 / self.value
        return self.chained(i, -i * i, 2.0 * i * i * i)

    def __truediv__(self, other: Any) -> Jet:
        return self * (1.0 / other if type(other) is float else lift(other).reciprocal())

    def __rtruediv__(self, other: Any) -> Jet:
        return lift(other) * self.reciprocal()

    def __pow__(self, exponent: Any) -> Jet:
        if isinstance(exponent, Jet):
            return function("exp", exponent * function("log", self))
        n, v = float(coefficients.plain(exponent)), self.value
        if n == 0.0:
            return Jet(1.0)
        # math.pow raises an error for a root of a negative number; ** would give a complex number
        power = _library(v).pow
        first = n * power(v, n - 1.0) if n != 1.0 else 1.0
        second = n * (n - 1.0) * power(v, n - 2.0) if n not in (1.0, 2.0) else n * (n - 1.0)
        return self.chained(power(v, n), first, second)

    def __rpow__(self, base: Any) -> Jet:
        return function("exp", self * math.log(coefficients.plain(base)))

    def __abs__(self) -> Jet:
        return self if self.value >= 0.0 else -self

    # Comparisons use the value, so that a driver may be piecewise.

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < lift(other).value)

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= lift(other).value)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > lift(other).value)

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= lift(other).value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Jet | numbers.Real) and bool(self.value == lift(other).value)

    __hash__ = None  # type: ignore[assignment]  # compared by value

    def __bool__(self) -> bool:
        return bool(self.value != 0.0)

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
    value = coefficients.plain(value)
    if isinstance(value, Jet):
        return value
    if getattr(value, "ndim", None) == 0:  # NumPy passes its numbers as arrays in comparisons
        value = value.item()
    if isinstance(value, numbers.Real):
        return Jet(float(value))
    raise TypeError(f"a driver can compute with numbers and time, not with {value!r}")


# Functions of NumPy by the names of those in math.
_ARRAYS: Final = SimpleNamespace(
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "cosh", "tanh")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "tan2")},
    pow=np.power,
)


def _library(value: Any) -> Any:
    """The functions for a value: of math for a number, which raise errors; of NumPy for an array."""
    return _ARRAYS if type(value) is np.ndarray else math


# f, f′, f″ at a value, with the functions of a library.
DERIVATIVES: Final[Mapping[str, Callable[[Any, Any], tuple[Any, Any, Any]]]] = {
    "sin": lambda v, m: (m.sin(v), m.cos(v), -m.sin(v)),
    "cos": lambda v, m: (m.cos(v), -m.sin(v), -m.cos(v)),
    "tan": lambda v, m: (m.tan(v), 1.0 + m.tan(v) ** 2, 2.0 * m.tan(v) * (1.0 + m.tan(v) ** 2)),
    "exp": lambda v, m: (m.exp(v), m.exp(v), m.exp(v)),
    "log": lambda v, m: (m.log(v), 1.0 / v, -1.0 / (v * v)),
    "sqrt": lambda v, m: (m.sqrt(v), 0.5 / m.sqrt(v), -0.25 / (v * m.sqrt(v))),
    "asin": lambda v, m: (m.asin(v), (1.0 - v * v) ** -0.5, v * (1.0 - v * v) ** -1.5),
    "acos": lambda v, m: (m.acos(v), -((1.0 - v * v) ** -0.5), -v * (1.0 - v * v) ** -1.5),
    "atan": lambda v, m: (m.atan(v), 1.0 / (1.0 + v * v), -2.0 * v / (1.0 + v * v) ** 2),
    "sinh": lambda v, m: (m.sinh(v), m.cosh(v), m.sinh(v)),
    "cosh": lambda v, m: (m.cosh(v), m.sinh(v), m.cosh(v)),
    "tanh": lambda v, m: (m.tanh(v), 1.0 - m.tanh(v) ** 2, -2.0 * m.tanh(v) * (1.0 - m.tanh(v) ** 2)),
}


def function(name: str, argument: Any) -> Jet:
    """A named function of a jet."""
    jet = lift(argument)
    return jet.chained(*DERIVATIVES[name](jet.value, _library(jet.value)))


def atan2(s: Any, c: Any) -> Jet:
    """Angle of (c, s); its rate is (c ṡ − s ċ)/(s² + c²)."""
    s, c = lift(s), lift(c)
    square = s * s + c * c
    cross = Jet(c.value * s.rate - s.value * c.rate, c.value * s.acceleration - s.value * c.acceleration)
    rate = cross / Jet(square.value, square.rate)
    return Jet(_library(square.value).atan2(s.value, c.value), rate.value, rate.rate)
