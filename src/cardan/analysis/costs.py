"""Costs of a run: what :meth:`Simulation.gradient` differentiates.

A cost is made of functionals of one number e(t) over the steps of a run, by sums, products, quotients and powers.  The
function of e is called once, with a state whose numbers are symbols (:mod:`.traced_state`).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cardan.calls import explained, explains
from cardan.errors import ModelError
from cardan.system import check
from cardan.system.state import FloatArray

MADE_OF: Final = "cd.final, cd.integral, cd.mean, cd.peak or cd.misfit"
EVEN: Final = 1e-9  # relative: steps that differ by less are equal
AT_STEP: Final = 1e-6  # of a step: a measured value this near to its end is there
NODES: Final = 4  # of the polynomial that a quadrature integrates between two steps


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """A number that depends on a run: made by cd.final, cd.integral, cd.mean, cd.peak, cd.misfit, and by arithmetic.

    ``operation``: "final", "integral", "mean", "peak", "misfit", "number", or one of + * / **.
    """

    operation: str
    terms: tuple[Cost, ...] = ()
    function: Callable[..., Any] | None = None
    value: float = 0.0  # of a number; the power p of a peak
    measured: tuple[FloatArray, FloatArray] | None = None  # times and values of a misfit

    def __add__(self, other: Any) -> Cost:
        return Cost("+", (self, lifted(other)))

    def __radd__(self, other: Any) -> Cost:
        return Cost("+", (lifted(other), self))

    def __sub__(self, other: Any) -> Cost:
        return self + (-1.0) * lifted(other)

    def __rsub__(self, other: Any) -> Cost:
        return lifted(other) + (-1.0) * self

    def __mul__(self, other: Any) -> Cost:
        return Cost("*", (self, lifted(other)))

    def __rmul__(self, other: Any) -> Cost:
        return Cost("*", (lifted(other), self))

    def __truediv__(self, other: Any) -> Cost:
        return Cost("/", (self, lifted(other)))

    def __rtruediv__(self, other: Any) -> Cost:
        return Cost("/", (lifted(other), self))

    def __pow__(self, exponent: Any) -> Cost:
        if isinstance(exponent, bool) or not isinstance(exponent, numbers.Real) or not math.isfinite(exponent):
            raise ModelError(f"the exponent of a cost is {exponent!r}; it must be a finite number")
        return Cost("**", (self,), value=float(exponent))

    def __neg__(self) -> Cost:
        return (-1.0) * self

    @property
    def functionals(self) -> list[Cost]:
        """Those that it is made of, each once."""
        if self.function is not None:
            return [self]
        return list(dict.fromkeys(one for term in self.terms for one in term.functionals))

    def evaluated(self, known: dict[Cost, float]) -> float:
        """Its value from those of its functionals."""
        if self.function is not None:
            return known[self]
        values = [term.evaluated(known) for term in self.terms]
        if self.operation == "number":
            return self.value
        if self.operation == "+":
            return values[0] + values[1]
        if self.operation == "*":
            return values[0] * values[1]
        try:
            found = values[0] / values[1] if self.operation == "/" else values[0] ** self.value
        except (ZeroDivisionError, OverflowError):
            found = math.nan
        return found if isinstance(found, float) else math.nan

    def slopes(self, known: dict[Cost, float], factor: float, into: dict[Cost, float]) -> None:
        """into[functional] += factor · ∂(this)/∂functional."""
        if self.function is not None:
            into[self] = into.get(self, 0.0) + factor
            return
        values = [term.evaluated(known) for term in self.terms]
        parts: tuple[float, ...] = ()
        if self.operation == "+":
            parts = (1.0, 1.0)
        elif self.operation == "*":
            parts = (values[1], values[0])
        elif self.operation == "/":
            parts = (1.0 / values[1], -values[0] / values[1] ** 2)
        elif self.operation == "**":
            try:
                parts = (self.value * values[0] ** (self.value - 1.0) if self.value else 0.0,)
            except (ZeroDivisionError, OverflowError):
                names = ", ".join([f"cd.{one.operation}(…)" for one in self.functionals])
                raise ModelError(
                    f"the cost has no derivative where {names} to the power {self.value:g} is taken of zero, as in "
                    "this run; take the cost without this power, or add a positive number before it"
                ) from None
        for term, part in zip(self.terms, parts, strict=True):
            term.slopes(known, factor * part, into)

    def __repr__(self) -> str:
        return f"<cost: {self.operation}>"


def lifted(value: Any) -> Cost:
    """A cost, or a finite number as one."""
    if isinstance(value, Cost):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ModelError(f"a cost was combined with {value!r}; it must be another cost or a finite number")
    return Cost("number", value=float(value))


def _functional(what: str, function: Any, value: float = 0.0) -> Cost:
    if not callable(function):
        raise ModelError(
            f"cd.{what} was given {function!r}; it must be a function of a state, such as "
            f"cd.{what}(lambda s: s.coordinate('A') ** 2)"
        )
    return Cost(what, function=function, value=value)


@explained
def final(function: Callable[[Any], Any]) -> Cost:
    """e at the end of a run: ``cd.final(lambda s: s["arm"].point((1, 0, 0)).z)``, for :meth:`Simulation.gradient`.

    The function is called once, with a state whose numbers are symbols: ``s.time``, ``s["arm"].position``,
    ``.point(…)``, ``.velocity_of(…)``, ``.angular_velocity``, ``s.coordinate("A")``, ``s.rate("A")`` and others of
    :class:`cardan.State`.  It computes with operators and cd.sin, cd.dot, …
    """
    return _functional("final", function)


@explained
def integral(function: Callable[[Any], Any]) -> Cost:
    """∫ e dt over a run, by cubic polynomials through e at the steps; see :func:`cardan.final`."""
    return _functional("integral", function)


@explained
def mean(function: Callable[[Any], Any]) -> Cost:
    """1/T ∫ e dt over a run; see :func:`cardan.integral`."""
    return _functional("mean", function)


@explained
def peak(function: Callable[[Any], Any], p: float = 16) -> Cost:
    """(1/T ∫ |e|ᵖ dt)^(1/p), p ≥ 2: a smooth number near the largest |e|, which it does not exceed."""
    power = check.number(p, "p")
    if power < 2.0:
        raise ModelError(f"p is {p!r}; it must be 2 or more")
    return _functional("peak", function, power)


@explained
def misfit(function: Callable[[Any], Any], times: Any, values: Any) -> Cost:
    """1/n Σ (e(tₖ) − yₖ)²: how far a run is from n measured values y; see :func:`cardan.final`.

    times [s]: of the values, at steps of the run.
    """
    try:
        t, y = (np.array(given, dtype=np.float64) for given in (times, values))
    except (TypeError, ValueError):
        raise ModelError("times and values of cd.misfit must be lists of numbers") from None
    if t.ndim != 1 or t.shape != y.shape or not t.size or not (np.isfinite(t).all() and np.isfinite(y).all()):
        raise ModelError(
            f"times and values of cd.misfit have the shapes {t.shape} and {y.shape}; they must be lists of as many "
            "finite numbers"
        )
    made = _functional("misfit", function)
    return Cost("misfit", function=made.function, measured=(t, y))


def quadrature(times: FloatArray) -> FloatArray:
    """Weights of ∫ e dt for values at these times, shape (times,): local polynomials of degree three."""
    count = len(times)
    weights: FloatArray = np.zeros(count)
    if count < 2:
        return weights
    width = min(NODES, count)
    unit = np.diff(times)
    if count > 2 * NODES and np.ptp(unit) <= EVEN * unit[0]:  # all steps are equal: those of the first ones, mirrored
        ends = quadrature(times[: 2 * NODES])[:NODES]
        weights[:] = unit.mean()
        weights[:NODES], weights[-NODES:] = ends, ends[::-1]
        return weights
    k = np.arange(count - 1)
    first = np.clip(k - 1, 0, count - width)
    places = first[:, None] + np.arange(width)
    nodes = (times[places] - times[k, None]) / unit[:, None]
    powers = nodes[:, None, :] ** np.arange(width)[None, :, None]
    moments = np.broadcast_to(1.0 / np.arange(1, width + 1), (len(k), width))
    np.add.at(weights, places, unit[:, None] * np.linalg.solve(powers, moments[..., None])[..., 0])
    return weights


def reduced(cost: Cost, values: FloatArray, times: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """A functional of the values of e at the steps, and its derivatives by them."""
    slopes = np.zeros(len(values))
    if cost.measured is not None:
        places = _places(cost.measured[0], times)
        rest = values[places] - cost.measured[1]
        np.add.at(slopes, places, 2.0 / len(rest) * rest)
        return float(rest @ rest) / len(rest), slopes
    span = float(times[-1] - times[0]) or 1.0
    if cost.operation == "final":
        slopes[-1] = 1.0
        return float(values[-1]), slopes
    if cost.operation != "peak":
        slopes = weights / (span if cost.operation == "mean" else 1.0)
        return float(slopes @ values), slopes
    p, largest = cost.value, float(np.abs(values).max())
    if not largest > 0.0:
        return largest, slopes
    scaled = np.abs(values) / largest
    total = float(weights @ scaled**p) / span
    if not total > 0.0:
        return math.nan, slopes
    found = total ** (1.0 / p)
    return largest * found, found / total * weights / span * scaled ** (p - 1.0) * np.sign(values)


def _places(wanted: FloatArray, times: FloatArray) -> Any:
    """The steps at some times; ModelError if there is no step."""
    places = np.clip(np.searchsorted(times, wanted), 1, len(times) - 1)
    places -= wanted - times[places - 1] < times[places] - wanted
    step = np.diff(times).min(initial=np.inf)
    off = np.abs(times[places] - wanted)
    if not (off <= AT_STEP * step).all():
        t = wanted[off > AT_STEP * step][0]
        raise ModelError(f"a value of cd.misfit is at t = {t:g} s, where the run has no step; use constant steps to it")
    return places
