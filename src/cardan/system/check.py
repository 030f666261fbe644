"""Checks of user input: numbers, vectors, names.  Each error names the item, its value and what is valid."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np

from cardan.constraints.signal import Signal
from cardan.errors import ModelError, UnknownNameError
from cardan.system.formulas import Formula, are_floats, plain, sqrt

Triple: TypeAlias = tuple[float, float, float]
Quadruple: TypeAlias = tuple[float, float, float, float]


UNIT_ROUNDING = 1e-15  # a squared length this near to one is one up to rounding
LEAST = math.ulp(0.0)  # above zero
LARGEST = 1e150  # of a coordinate: its square is still finite
ROUNDED_MOMENTS = 1.1  # largest moment over the sum of the others: with two digits each is exact to 5 %


def number(value: Any, what: str) -> float:
    """A finite float."""
    if isinstance(value, str | bytes | bool):
        raise ModelError(f"{what} is {value!r}; it must be a number")
    if isinstance(value, Formula):
        raise ModelError(
            f"{what} is {value!r}; a parameter is not allowed here: give a number, such as "
            f"its value now, {value.value:g} (in Python its .value)"
        )
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what} is {_short(value)}; it must be a number") from None
    if not math.isfinite(result):
        raise ModelError(f"{what} is {result}; it must be finite")
    return result


def quantity(value: Any, what: str) -> Any:
    """A finite float, or a formula of parameters."""
    return value if isinstance(value, Formula) else number(value, what)


def function_of_time(value: Any, name: str) -> Signal:
    """A parameter that is a function of time [s], called with a jet as the functions of drivers are."""
    found = Signal.reading(name, value, "parameter")
    found.some_value()
    return found


def quantity_of_time(value: Any, name: str, what: str) -> Any:
    """A finite float, a formula of parameters, or a function of time."""
    return function_of_time(value, name) if callable(value) else quantity(value, what)


def positive_quantity(value: Any, what: str, *, zero: bool = False, instead: str = "") -> Any:
    """A finite float above zero, or from zero on, or a formula of parameters that is."""
    if not isinstance(value, Formula):
        return positive(value, what, zero=zero, instead=instead)
    bound = "zero or more" if zero else "above zero"
    text = f"{what} is {{value}}, of {value!r}; it must be {bound}{instead and '; ' + instead}"
    value.book.require(value, -LEAST if zero else 0.0, math.inf, text)
    return value


def nonzero_quantity(value: Any, what: str, unit: str = "", instead: str = "") -> Any:
    """A finite float that is not zero, or a formula of parameters that is not."""
    text = f"{what} is {{value}}{unit}; it must not be zero{instead}"
    if isinstance(value, Formula):
        value.book.require(value, 0.0, 0.0, text)
        return value
    found = number(value, what)
    if found == 0.0:
        raise ModelError(text.format(value=0))
    return found


def count(value: Any, what: str, least: int, most: int | None = None, *, instead: str = "") -> int:
    """A whole number from ``least`` on, and up to ``most``."""
    bound = ""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        bound = f"a whole number from {least} on"
    elif most is not None and value > most:
        bound = f"{most:,} at the most"
    if bound:
        raise ModelError(f"{what} is {_short(value)}; it must be {bound}{instead and '; ' + instead}")
    return int(value)


def positive(value: Any, what: str, *, zero: bool = False, instead: str = "") -> float:
    """A finite float above zero, or from zero on."""
    result = number(value, what)
    if result < 0.0 or (result == 0.0 and not zero):
        bound = "zero or more" if zero else "above zero"
        raise ModelError(f"{what} is {result}; it must be {bound}{instead and '; ' + instead}")
    return result


def mass(value: Any, what: str) -> float:
    """A finite float from zero on [kg]."""
    return positive(value, what, zero=True)


def numbers(value: Any, count: int, what: str, kind: Any = number) -> tuple[float, ...]:
    """A tuple of that many finite floats, or of quantities if that is the kind."""
    if type(value) is tuple or type(value) is list:
        items = value
    elif type(value) is np.ndarray and value.dtype == float and value.ndim:
        items = value.tolist()
    elif isinstance(value, str | bytes | Mapping | Set):
        raise ModelError(f"{what} is {_short(value)}; it must be {count} numbers in order")
    else:
        try:
            items = list(value)
        except TypeError:
            raise ModelError(f"{what} is {_short(value)}; it must be {count} numbers") from None
    if len(items) == count and are_floats(items) and all(map(math.isfinite, items)):  # the common case, fast
        return tuple(items)
    if len(items) != count:
        raise ModelError(f"{what} has {len(items)} numbers, {_short(value)}; it must have {count}")
    try:
        return tuple([kind(item, what) for item in items])
    except ModelError as error:
        if any([isinstance(item, Formula) for item in items]):
            raise ModelError(str(error)) from None
        raise ModelError(f"{what} is {_short(value)}; it must be {count} numbers, each finite") from None


def _short(value: Any) -> str:
    """repr, at most 120 characters."""
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "…"


def _are_coordinates(value: Any) -> bool:
    """Whether a value is three floats that need no further check, as most are; a fast check."""
    if type(value) not in (tuple, list) or len(value) != 3 or not are_floats(value):
        return False
    x, y, z = value
    return bool(-LARGEST <= x <= LARGEST and -LARGEST <= y <= LARGEST and -LARGEST <= z <= LARGEST)


def vector(value: Any, what: str) -> Triple:
    """Three finite floats."""
    if _are_coordinates(value):
        return tuple(value)
    x, y, z = numbers(value, 3, what)
    if max(abs(x), abs(y), abs(z)) > LARGEST:
        raise ModelError(f"{what} is {(x, y, z)}; its coordinates must not exceed {LARGEST}")
    return x, y, z


def place(value: Any, what: str) -> Triple:
    """Three finite floats or formulas of parameters."""
    if _are_coordinates(value):
        return tuple(value)
    x, y, z = numbers(value, 3, what, quantity)
    if max([abs(c) for c in plain((x, y, z))]) > LARGEST:
        raise ModelError(f"{what} is {(x, y, z)}; its coordinates must not exceed {LARGEST}")
    return x, y, z


def direction(value: Any, what: str) -> Triple:
    """Three finite floats or formulas of parameters, scaled to length one."""
    x, y, z = given = numbers(value, 3, what, quantity)
    largest = max([abs(c) for c in plain(given)])
    if largest == 0.0:
        raise ModelError(f"{what} is {(x, y, z)}; a direction must not be zero")
    # Neither overflow nor underflow in the squares.  A power of two changes no digit, so formulas may keep it.
    scale = math.ldexp(1.0, -min(max(math.frexp(largest)[1], -1000), 1000))
    x, y, z = x * scale, y * scale, z * scale
    n: Any = sqrt(x * x + y * y + z * z)
    if isinstance(n, Formula):
        text = (
            f"{what} is {given}, whose length is zero at these values of the parameters; a direction must not be zero"
        )
        n.book.require(n, 0.0, math.inf, text)
    return x / n, y / n, z / n


def quaternion(value: Any, what: str) -> Quadruple:
    """Four finite floats (w, x, y, z), scaled to length one."""
    w, x, y, z = numbers(value, 4, what)
    if abs(w * w + x * x + y * y + z * z - 1.0) <= UNIT_ROUNDING:
        return w, x, y, z  # of unit length already: scaling would only change the last bits
    largest = max(abs(w), abs(x), abs(y), abs(z))
    if largest == 0.0:
        raise ModelError(f"{what} is {(w, x, y, z)}; a quaternion (w, x, y, z) must not be zero")
    w, x, y, z = w / largest, x / largest, y / largest, z / largest
    n = math.sqrt(w * w + x * x + y * y + z * z)
    return w / n, x / n, y / n, z / n


def inertia(value: Any, what: str, real: bool = True) -> tuple[Triple, Triple, Triple]:
    """A symmetric 3×3 matrix, kg m², whose principal moments are those of a real body (none above the others' sum).

    Three numbers are the moments about the axes of the body: a diagonal matrix.
    A moment that was rounded or measured may exceed the sum by the factor ROUNDED_MOMENTS.  real: False for files,
    whose data may be of others: it may exceed the sum by any factor, and notes of dynamics say so.
    """
    rows = _three(value, what)
    if not any([hasattr(row, "__len__") for row in rows]):
        rows = np.diag(numbers(rows, 3, what)).tolist()
    matrix = np.array([numbers(row, 3, f"a row of {what}") for row in rows])
    size = float(np.abs(matrix).max())
    if float(np.abs(matrix - matrix.T).max()) > 1e-9 * size:
        raise ModelError(f"{what} is {matrix.tolist()}; it must be symmetric")
    moments = np.linalg.eigvalsh(matrix)
    if moments[0] < 0.0 or (real and not are_moments(moments, ROUNDED_MOMENTS)):
        raise ModelError(
            f"{what} has principal moments {moments.tolist()}; they must not be negative, and none may exceed the "
            "sum of the other two; if the body rotates about one axis only, give all three the value of this axis"
        )
    a, b, c = (tuple(map(float, row)) for row in 0.5 * (matrix + matrix.T))
    return a, b, c  # type: ignore[return-value]  # rows of a 3×3 array


def are_moments(moments: Any, most: float = 1.0 + 1e-9) -> Any:
    """Whether no principal moment exceeds the sum of the others, times most; moments: shape (…, 3)."""
    largest = np.max(moments, axis=-1)
    return largest <= (np.sum(moments, axis=-1) - largest) * most


def any_inertia(value: Any, what: str) -> tuple[Triple, Triple, Triple]:
    """The same of files, whose data may be of others: a moment may exceed the sum of the others by any factor."""
    return inertia(value, what, real=False)


def symmetric(value: Any, what: str) -> Any:
    """An inertia with formulas as a 3×3 matrix, each entry the mean of itself and of that across the diagonal."""
    rows = _three(value, what)
    if not any([hasattr(row, "__len__") for row in rows]):
        a, b, c = numbers(rows, 3, what, quantity)
        return (a, 0.0, 0.0), (0.0, b, 0.0), (0.0, 0.0, c)
    matrix = [numbers(row, 3, f"a row of {what}", quantity) for row in rows]
    pairs = [[(matrix[i][j], matrix[j][i]) for j in range(3)] for i in range(3)]
    return tuple([tuple([a if a == b else 0.5 * (a + b) for a, b in row]) for row in pairs])


def inertia_or_none(value: Any, what: str) -> tuple[Triple, Triple, Triple] | None:
    """None, or as :func:`inertia`."""
    return None if value is None else inertia(value, what)


def _three(value: Any, what: str) -> Sequence[Any]:
    try:
        rows = list(value)
    except TypeError:
        raise ModelError(f"{what} is {value!r}; it must be 3×3 numbers, or three principal moments") from None
    if len(rows) != 3:
        raise ModelError(f"{what} has {len(rows)} rows; it must be 3×3 numbers, or three principal moments")
    return rows


def name(value: Any, what: str) -> str:
    """A non-empty string."""
    if not isinstance(value, str) or not value.strip():
        raise ModelError(f"the name of {what} is {_short(value)}; it must be a non-empty string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ModelError(f"the name of {what} is {value!r}; it must be text that can be written as UTF-8") from None
    return value


def with_article(word: str) -> str:
    """ "a box", "an extrusion"."""
    return f"{'an' if word[0].lower() in 'aeio' else 'a'} {word}"  # "u" is spoken as in "a universal joint"


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ModelError(f"{what} is {_short(value)}; it must be True or False")
    return bool(value)


def unknown(value: Any, what: str, valid: Iterable[str]) -> UnknownNameError:
    """The error for an unknown name, with similar ones."""
    names = list(valid)
    near = difflib.get_close_matches(str(value), names, n=3)
    listed = ", ".join(map(repr, near or names[:8])) + (", …" if not near and len(names) > 8 else "")
    hint = f"did you mean {listed}?" if near else f"there are {listed}" if names else "there are none"
    return UnknownNameError(f"no {what} is named {value!r}; {hint}")


def choice(value: Any, what: str, valid: Iterable[str]) -> str:
    """One of the valid words."""
    words = list(valid)
    if value not in words:
        raise ModelError(f"{what} is {value!r}; it must be one of {', '.join(map(repr, words))}")
    return str(value)
