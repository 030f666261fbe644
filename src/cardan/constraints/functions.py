"""Functions for primitives, couplings and drivers.  Their arguments are traced values, jets of time, or numbers."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

from cardan.constraints import coefficients, expression, jets
from cardan.constraints.expression import Quaternion, Scalar, TracingError, Vector
from cardan.constraints.jets import Jet


def _apply(name: str, a: Any) -> Any:
    a = coefficients.plain(a)
    if isinstance(a, Scalar):
        return a.graph.call(name, a)
    if isinstance(a, Jet):
        return jets.function(name, a)
    if isinstance(a, Vector | Quaternion):
        raise TracingError(f"cd.{name} takes a number, not {a!r}; take a component, cd.norm or cd.dot first")
    if hasattr(a, "call"):  # a formula of parameters
        return a.call(name)
    return getattr(math, name)(a)


def _function(name: str, text: str) -> Callable[[Any], Any]:
    def function(a: Any) -> Any:
        return _apply(name, a)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


sin = _function("sin", "Sine of an angle [rad].")
cos = _function("cos", "Cosine of an angle [rad].")
tan = _function("tan", "Tangent of an angle [rad].")
sqrt = _function("sqrt", "Square root.")
exp = _function("exp", "Exponential.")
log = _function("log", "Natural logarithm.")
asin = _function("asin", "Angle [rad] in [−π/2, π/2] of a sine; it has no derivative at ±1.")
acos = _function("acos", "Angle [rad] in [0, π] of a cosine; it has no derivative at ±1: prefer cd.atan2.")
atan = _function("atan", "Angle [rad] in (−π/2, π/2) of a tangent.")
sinh = _function("sinh", "Hyperbolic sine.")
cosh = _function("cosh", "Hyperbolic cosine.")
tanh = _function("tanh", "Hyperbolic tangent.")


def atan2(s: Any, c: Any) -> Any:
    """Angle [rad] in (−π, π] of a point (c, s)."""
    s, c = coefficients.plain(s), coefficients.plain(c)
    for a in (s, c):
        if isinstance(a, Scalar):
            return a.graph.call("atan2", a.graph.lift(s), a.graph.lift(c))
        if isinstance(a, Jet):
            return jets.atan2(s, c)
    for a in (s, c):
        if hasattr(a, "call"):  # a formula of parameters
            return a.lift(s).call("atan2", c)
    return math.atan2(s, c)


def clip(a: Any, lower: float, upper: float) -> Any:
    """a within [lower, upper], else the nearer bound, with zero derivative.  Use it for dwells and stops.

    If the slope and curvature of a smooth function vanish at both bounds, the function of cd.clip(a, …) is smooth too.
    The bounds are numbers.
    """
    a, lower, upper = map(coefficients.plain, (a, lower, upper))
    for bound in (lower, upper):
        if isinstance(bound, bool) or not isinstance(bound, numbers.Real) or not math.isfinite(bound):
            raise TracingError(f"the bounds of cd.clip must be finite numbers, not {bound!r}")
    if lower > upper:
        raise TracingError(f"the bounds of cd.clip are {lower} and {upper}; the lower must not be above the upper one")
    if isinstance(a, Vector | Quaternion):
        raise TracingError(f"cd.clip takes a number, not {a!r}; take a component, cd.norm or cd.dot first")
    if isinstance(a, Scalar):
        return a - expression.beyond(a, a.graph.lift(lower), a.graph.lift(upper))
    if isinstance(a, Jet):
        return a if lower <= a <= upper else Jet(lower if a < lower else upper)
    return min(max(a, lower), upper)


def dot(a: Any, b: Any) -> Any:
    """Dot product a·b of two vectors of a primitive."""
    first, second = _vectors("dot", a, b)
    return expression.dot(first, second)


def cross(a: Any, b: Any) -> Any:
    """Cross product a × b of two vectors of a primitive."""
    first, second = _vectors("cross", a, b)
    return expression.cross(first, second)


def norm(a: Any) -> Any:
    """Norm |a| of a vector of a primitive; at a = 0 its gradient is (1, 0, 0)."""
    if not isinstance(a, Vector):
        raise TracingError(f"cd.norm takes a vector, such as the difference of two points, not {a!r}")
    return expression.norm(a)


def rotation_vector(a: Any, b: Any) -> Any:
    """Rotation vector [rad] from orientation a to orientation b, in the axes of a."""
    if not isinstance(a, Quaternion) or not isinstance(b, Quaternion):
        raise TracingError(f"cd.rotation_vector takes two orientations, not {a!r} and {b!r}")
    return expression.relative_rotation_vector(a, b)


def rate(a: Any) -> Any:
    """Time derivative of a point, vector, coordinate or expression of them, in a rate primitive."""
    if isinstance(a, Vector):
        return Vector(*map(rate, a.components))
    if not isinstance(a, Scalar):
        way = "use cd.angular_velocity" if isinstance(a, Quaternion) else "the derivative of a number is zero"
        raise TracingError(f"cd.rate takes a traced vector or number, not {a!r}; {way}")
    _check_rates("rate", a)
    return a.graph.derivative(a, a.graph.rates, {})


def angular_velocity(a: Any) -> Any:
    """Angular velocity [rad/s] of an orientation in world axes, 2 vec(ṗ ⊗ p*), in a rate primitive."""
    if not isinstance(a, Quaternion):
        raise TracingError(f"cd.angular_velocity takes an orientation, not {a!r}")
    _check_rates("angular_velocity", a.w)
    w, *parts = a.components
    v, dv, dw = Vector(*parts), Vector(*map(rate, parts)), rate(w)
    return (dv * w - v * dw + expression.cross(v, dv)) * 2.0


def _check_rates(name: str, a: Scalar) -> None:
    if not a.graph.rates:
        raise TracingError(f"cd.{name} is for equations of velocities; declare this one with @cd.rate_primitive(…)")
    if a.graph.reads(a, "v"):
        raise TracingError(f"cd.{name} takes a value without rates; rate rows contain no accelerations")


def _vectors(name: str, a: Any, b: Any) -> tuple[Vector, Vector]:
    for vector in (a, b):
        if isinstance(vector, Vector):
            return vector.lifted(a), vector.lifted(b)
    raise TracingError(f"cd.{name} takes two vectors of a primitive, not {a!r} and {b!r}")
