"""Splines for drivers and couplings: a table of points, or a spline of SciPy, with exact derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cardan.calls import explained, explains
from cardan.constraints.expression import Scalar, TracingError
from cardan.constraints.jets import Jet
from cardan.constraints.tables import SplineTable
from cardan.errors import ModelError

SMOOTH: Final = 1e-8  # largest jump of a value or slope at a breakpoint, relative to the largest value or slope
BEYOND: Final = 1e-9  # of the range: rounding of a time or coordinate at its ends
MOST_DEGREE: Final = 15

# positions in the table, which is a tuple
_PIECES, _DEGREE, _PERIOD = SplineTable.pieces.first, SplineTable.degree.first, SplineTable.period.first
_BREAKS = SplineTable.breaks.first


class BeyondError(ValueError):
    """A spline was evaluated beyond its points."""


@explains()
@dataclass(frozen=True, slots=True)
class Spline:
    """A smooth piecewise polynomial, for m.drive and m.couple; made by :func:`cardan.spline`, or of a SciPy spline.

    ``table``: ``tables.SplineTable``; coefficients are of powers of the distance from the first breakpoint of a piece,
    highest power first.  ``points``: x and y of a spline made by cd.spline.
    """

    table: tuple[float, ...]
    points: tuple[tuple[float, ...], tuple[float, ...]] | None = field(default=None, compare=False, repr=False)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The breakpoints, one more than pieces."""
        return self.table[_BREAKS : _BREAKS + 1 + int(self.table[_PIECES])]

    @property
    def coefficients(self) -> tuple[tuple[float, ...], ...]:
        """Of each piece, highest power first."""
        first, size = _BREAKS + 1 + int(self.table[_PIECES]), 1 + int(self.table[_DEGREE])
        return tuple(self.table[k : k + size] for k in range(first, len(self.table), size))

    @property
    def is_periodic(self) -> bool:
        """Whether it repeats with a period."""
        return self.table[_PERIOD] > 0.0

    @property
    def range(self) -> tuple[float, float]:
        """The first and the last breakpoint."""
        return self.table[_BREAKS], self.table[_BREAKS + int(self.table[_PIECES])]

    @property
    def samples(self) -> tuple[float, ...]:
        """Two arguments at which it is defined."""
        low, high = self.range
        return low, 0.5 * (low + high)

    def value(self, x: Any, order: int = 0) -> Any:
        """S, S′ or S″ at a number, or at an array of numbers.  BeyondError beyond the range, unless it is periodic."""
        low, high = self.range
        slack = BEYOND * (high - low)
        outside = np.atleast_1d((np.asarray(x) < low - slack) | (np.asarray(x) > high + slack))
        if not self.is_periodic and outside.any():
            where = np.atleast_1d(x)[outside][0]
            raise BeyondError(f"the spline is defined from {low:g} to {high:g}, not at {where:g}")
        degree, period = int(self.table[_DEGREE]), self.table[_PERIOD]
        breaks, coefficients = np.array(self.breaks), np.array(self.coefficients)
        at = np.asarray(x, dtype=np.float64)
        if period:
            at = at - period * np.floor((at - breaks[0]) / period)
        piece = np.clip(np.searchsorted(breaks, at, side="right") - 1, 0, len(coefficients) - 1)
        own, s = coefficients[piece], at - breaks[piece]
        found = np.zeros_like(s)
        for k in range(degree + 1 - order):
            found = found * s + math.perm(degree - k, order) * own[..., k]
        return found if found.ndim else float(found)

    def __call__(self, x: Any) -> Any:
        if isinstance(x, Scalar):
            raise TracingError(
                "a spline cannot be part of a traced equation; pass the spline itself to m.couple, its points scaled"
            )
        if isinstance(x, Jet):
            return x.chained(*(self.value(x.value, order) for order in range(3)))
        return self.value(x)

    def traced(self, x: Scalar) -> Scalar:
        """S(x) in the graph of a primitive whose parameters are the table."""
        return x.graph.call("spline_0", x)


@explained
def spline(x: Any, y: Any, *, periodic: bool = False) -> Spline:
    """The cubic spline through points (x, y), twice continuously differentiable, for m.drive and m.couple.

    x: increasing; times [s], or values of the first coordinate [m or rad].  y: values [m or rad].
    periodic: it repeats with the period x[-1] − x[0], as the profile of a cam over a turn; y[-1] must be y[0].
    Otherwise it is defined from x[0] to x[-1] only.
    """
    from scipy.interpolate import CubicSpline  # type: ignore[import-untyped, unused-ignore]

    try:
        points = np.array([np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    except (TypeError, ValueError):
        raise ModelError("the x and y of a spline must be two lists of numbers of the same length") from None
    if points.ndim != 2 or points.shape[1] < 2 or not np.isfinite(points).all():
        raise ModelError(f"the points of a spline have the shape {points.shape}; it must be two or more finite points")
    if not (np.diff(points[0]) > 0.0).all():
        raise ModelError("the x of a spline must increase from point to point")
    if periodic and abs(points[1, -1] - points[1, 0]) > 1e-12 * np.abs(points[1]).max():
        raise ModelError(
            f"the periodic spline begins at {points[1, 0]:g} and ends at {points[1, -1]:g}; repeat the first"
        )
    if periodic:
        points[1, -1] = points[1, 0]
        if points.shape[1] < 3:
            raise ModelError("a periodic spline needs three or more points")
    try:
        with np.errstate(all="ignore"):
            found = CubicSpline(*points, bc_type="periodic" if periodic else "not-a-knot")
    except (ValueError, np.linalg.LinAlgError) as error:  # such as x that are equal but for rounding
        raise ModelError(f"there is no spline through these points: {error}") from None
    return replace(of_scipy(found, periodic), points=(tuple(points[0].tolist()), tuple(points[1].tolist())))


def of_scipy(given: Any, periodic: bool | None = None) -> Spline:
    """The spline of a SciPy PPoly (CubicSpline, PchipInterpolator, …) or BSpline, of one scalar function."""
    from scipy.interpolate import PPoly  # type: ignore[import-untyped, unused-ignore]

    extrapolate = getattr(given, "extrapolate", False)
    if not hasattr(given, "x"):
        low, high = float(given.t[given.k]), float(given.t[len(given.t) - given.k - 1])
        given = PPoly.from_spline(given)
        inside = (given.x[:-1] >= low) & (given.x[1:] <= high)
        coefficients, breaks = given.c[:, inside], [*given.x[:-1][inside], high]
    else:
        coefficients, breaks = given.c, list(given.x)
    is_periodic = extrapolate == "periodic" if periodic is None else periodic
    return of_pieces(breaks, coefficients, is_periodic, repr(given))


def of_pieces(breaks: Any, coefficients: Any, periodic: bool, what: str) -> Spline:
    """The spline of breakpoints and of the coefficients of its pieces, shape (degree + 1, pieces), highest power first.

    what: the name of the spline in errors.
    """
    coefficients = np.asarray(coefficients, dtype=np.float64)
    if coefficients.ndim != 2 or coefficients.shape[0] > MOST_DEGREE + 1 or not np.isfinite(coefficients).all():
        raise ModelError(f"{what} was given; a spline must have one finite value and a degree of {MOST_DEGREE} at most")
    widths = np.diff(breaks)
    kept = widths > 0.0
    x = np.array([*np.array(breaks[:-1])[kept], breaks[-1]])
    degree, pieces = len(coefficients) - 1, int(kept.sum())
    period = float(x[-1] - x[0]) if periodic else 0.0
    own = coefficients[:, kept].T.ravel().tolist()
    made = Spline((float(pieces), float(degree), period, *x.tolist(), *own))
    with np.errstate(all="ignore"):
        _check_smooth(made, x, coefficients[:, kept], np.diff(x))
    return made


def _check_smooth(made: Spline, x: NDArray[np.float64], c: NDArray[np.float64], widths: NDArray[np.float64]) -> None:
    """ModelError if the value or the slope jumps at a breakpoint, or over a period."""
    for order, word in ((0, "value"), (1, "slope")):
        degree = len(c) - 1
        factors = np.array([np.prod([degree - k - j for j in range(order)]) for k in range(degree + 1 - order)])
        begin = c[degree - order] * (factors[-1] if len(factors) else 0.0) if degree >= order else 0.0 * c[0]
        end = np.zeros(len(widths))
        for factor, row in zip(factors, c, strict=False):
            end = end * widths + factor * row
        jump = np.abs(begin[1:] - end[:-1])
        places = x[1:-1]
        if made.is_periodic:
            jump, places = np.append(jump, abs(begin[0] - end[-1])), x[1:]
        size = max(np.abs(begin).max(), np.abs(end).max())
        if not np.isfinite(size):
            raise ModelError(f"the {word} of the spline is too large to be computed; its numbers must be smaller")
        if jump.size and jump.max() > SMOOTH * size:
            k = int(jump.argmax())
            raise ModelError(
                f"the spline has a jump of its {word} at {places[k]:g}; drivers and couplings need a continuous slope: "
                "use cd.spline(x, y), or a cubic spline"
            )


def as_function(given: Any) -> Any:
    """A Spline, of a SciPy spline or of a table (x, y); anything else unchanged."""
    if hasattr(given, "c") and (hasattr(given, "x") or hasattr(given, "t")) and callable(given):
        return of_scipy(given)
    if isinstance(given, tuple | list) and len(given) == 2 and all(np.ndim(one) == 1 for one in given):
        return spline(*given)
    return given
