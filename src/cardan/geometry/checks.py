"""Checks of shapes' data: each error names the item, the index and the value."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

MOST_UNEVEN = 1e6  # largest weight over smallest weight of a shape
ROUNDING = 1e-15  # of a point, per size, that ratio and degree: spans are sums of powers, whose terms cancel


def numbers(value: Any, what: str, dimensions: int) -> FloatArray:
    """A contiguous array of finite floats with that many dimensions."""
    try:
        found = np.array(value, dtype=float, order="C")
    except (TypeError, ValueError):
        raise ModelError(f"{what} cannot be read as an array of numbers; give rows of equal length") from None
    if found.ndim != dimensions:
        raise ModelError(f"{what} has the shape {found.shape}; it must have {dimensions} dimensions")
    bad = np.argwhere(~np.isfinite(found))
    if bad.size:
        index = tuple(int(k) for k in bad[0])
        raise ModelError(f"{what}[{', '.join(map(str, index))}] is {found[index]}; it must be finite")
    return found


def positive(value: Any, what: str, *, zero: bool = False) -> float:
    """A finite float above zero, or from zero on."""
    if isinstance(value, bool | str | bytes) or not isinstance(value, int | float | np.number):
        raise ModelError(f"{what} is {value!r}; it must be a number")
    found = float(value)
    if not math.isfinite(found) or found < 0.0 or (found == 0.0 and not zero):
        raise ModelError(f"{what} is {found}; it must be {'zero or more' if zero else 'above zero'} and finite")
    return found


def count(value: Any, what: str, least: int) -> int:
    """A whole number from ``least`` on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ModelError(f"{what} is {value!r}; it must be a whole number from {least} on")
    return int(value)


def knots(value: Any, points: int, degree: int, what: str) -> FloatArray:
    """Knots of a basis with that many control points: points + degree + 1 numbers that do not decrease."""
    found = numbers(value, what, 1)
    if found.size != points + degree + 1:
        raise ModelError(
            f"{what} has {found.size} knots; {points} control points of degree {degree} need {points + degree + 1}"
        )
    down = np.flatnonzero(np.diff(found) < 0.0)
    if down.size:
        k = int(down[0]) + 1
        raise ModelError(f"{what}[{k}] is {found[k]}, below {what}[{k - 1}] = {found[k - 1]}; knots must not decrease")
    if not found[degree] < found[points]:
        raise ModelError(f"{what} spans no interval: knots {degree} and {points} are both {found[degree]}")
    interior = found[degree + 1 : points]
    for value_, times in zip(*np.unique(interior, return_counts=True), strict=True):
        if found[degree] < value_ < found[points] and times > degree:
            k = int(np.searchsorted(found, value_))
            raise ModelError(
                f"{what}[{k}] = {value_} occurs {times} times; an interior knot may occur at most {degree} times, "
                "since the curve would have a gap; make two shapes of it"
            )
    return found


def weights(value: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    """Positive weights of that shape; None for ones."""
    if value is None:
        return np.ones(shape)
    found = numbers(value, what, len(shape))
    if found.shape != shape:
        raise ModelError(f"{what} has the shape {found.shape}; it must be that of the control points, {shape}")
    bad = np.argwhere(found <= 0.0)
    if bad.size:
        index = tuple(int(k) for k in bad[0])
        raise ModelError(f"{what}[{', '.join(map(str, index))}] is {found[index]}; weights must be above zero")
    if found.max() > MOST_UNEVEN * (1.0 + 1e-6) * found.min():  # edits of a shape at the limit round its weights
        (low, least), (high, most) = (
            (", ".join(str(int(k)) for k in np.unravel_index(at, shape)), found.flat[at])
            for at in (int(found.argmin()), int(found.argmax()))
        )
        raise ModelError(
            f"{what}[{low}] is {least} and [{high}] is {most}; their ratio must be at most {MOST_UNEVEN:g}, since "
            "points near the smaller one would be lost in rounding; divide the shape, or move its control points"
        )
    return found


def rounding(points: FloatArray, weights: FloatArray, degree: int) -> float:
    """How far a computed point may be from the exact one [m]."""
    return float(ROUNDING * degree * np.abs(points).max() * weights.max() / weights.min())


def extent(points: FloatArray, what: str) -> float:
    """The largest side of a box around control points [m]; those that all coincide make no curve."""
    flat = points.reshape(-1, points.shape[-1])
    found = float(np.ptp(flat, axis=0).max())
    if found == 0.0:
        raise ModelError(f"all {len(flat)} {what} coincide at {flat[0].tolist()}; a shape needs an extent")
    return found
