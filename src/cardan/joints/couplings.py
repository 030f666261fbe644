"""Constraints between coordinates: gears, racks, belts, couplings; drivers and limits of one coordinate.

Angles include whole turns, so a ratio holds over any number of turns.  An angle is that of its joint: for two gears on
a moving carrier, use their joints with the carrier.
"""

from __future__ import annotations

import math
from typing import Any, Final

from cardan.constraints import primitives, user
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import Signal
from cardan.constraints.spline import Spline
from cardan.errors import ModelError
from cardan.joints.coordinates import Coordinate
from cardan.joints.registry import Joint, Role, coupling_kind
from cardan.quantities import Angle, CoordinateOfOther, CoordinateOfTime, InSI, Length, OfCoordinate
from cardan.system import check
from cardan.system.formulas import Formula, plain
from cardan.system.parts import Feature
from cardan.system.relations import Bundle, Relation

Given = Joint | Coordinate | str
"""What users pass for a coordinate: itself, or a joint that has one of that kind; or the name of either.

Builders receive the coordinate."""


def _arguments(given: Given) -> tuple[Feature, ...]:
    """The features of a coordinate."""
    return _resolved(given).arguments()


def _resolved(given: Given) -> Coordinate:
    assert isinstance(given, Coordinate)  # the mechanism has replaced joints
    return given


def _nonzero(value: Any, name: str) -> Any:
    """A quantity that is not zero, or a function of time."""
    return check.function_of_time(value, name) if callable(value) else check.nonzero_quantity(value, f"the {name}")


@coupling_kind("angle", "angle")
def gear(first: Given, second: Given, *, ratio: InSI, phase: Angle = 0.0) -> list[Relation]:
    """Two angles in proportion, angle_2 = ratio·angle_1 + phase: 1 equation.

    ratio: turns of the second per turn of the first, negative for external gears.  phase [rad].  Both may be functions
    of time; the equation holds between the angles themselves, not between their rates.
    """
    parameters = (_nonzero(ratio, "ratio"), check.quantity_of_time(phase, "phase", "the phase"))
    return [Relation(primitives.gear, (*_arguments(first), *_arguments(second)), parameters)]


@coupling_kind("angle", "displacement")
def rack(first: Given, second: Given, *, radius: Length, offset: Length = 0.0) -> list[Relation]:
    """A pinion on a rack, displacement = radius·angle + offset: 1 equation.  radius [m], signed; offset [m].

    Both may be functions of time.
    """
    parameters = (_nonzero(radius, "radius"), check.quantity_of_time(offset, "offset", "the offset"))
    return [Relation(primitives.rack, (*_arguments(first), *_arguments(second)), parameters)]


@coupling_kind("angle", "angle")
def belt(
    first: Given, second: Given, *, radius_1: Length, radius_2: Length, crossed: bool = False, phase: Angle = 0.0
) -> list[Relation]:
    """Two pulleys on a belt that does not slip, angle_2 = ± radius_1/radius_2·angle_1 + phase: 1 equation.

    radius_1, radius_2 [m].  crossed: the belt crosses itself, and the pulleys rotate in opposite directions.
    """
    radii = check.positive_quantity(radius_1, "radius_1"), check.positive_quantity(radius_2, "radius_2")
    ratio = radii[0] / radii[1]
    parameters = (-ratio if check.flag(crossed, "crossed") else ratio, check.quantity(phase, "the phase"))
    return [Relation(primitives.gear, (*_arguments(first), *_arguments(second)), parameters, size=max(plain(radii)))]


@coupling_kind("", "", parts=("range",))
def couple(first: Given, second: Given, function: CoordinateOfOther) -> list[Relation]:
    """coordinate_2 = function(coordinate_1): 1 equation, for any two coordinates and any smooth function.

    function: of one number, with operators and cd.sin, cd.cos, …; coordinates are in metres and radians.  Or a spline:
    cd.spline(x, y), a SciPy spline, or a table (x, y), such as the measured profile of a cam.  Unless it is periodic,
    a limit "name.range" keeps the first coordinate within its points.
    """
    made = user.coupling("its equation", _resolved(first).kind, _resolved(second).kind, function)
    table = function.table if isinstance(function, Spline) else ()
    return [Relation(made, (*_arguments(first), *_arguments(second)), table)]


# The primitive of a driver, whose last parameter is its value, and that of a limit.
DRIVEN: Final[dict[str, Primitive]] = {
    "angle": primitives.turned,
    "displacement": primitives.dot_2,
    "distance": primitives.distance,
    "inclination": primitives.angle,
}
LIMITED: Final[dict[str, Primitive]] = {
    "angle": primitives.turn_limit,
    "displacement": primitives.displacement_limit,
    "distance": primitives.distance_limit,
    "inclination": primitives.inclination_limit,
}


@coupling_kind("", role=Role.DRIVER)
def drive(coordinate: Given, function: CoordinateOfTime, *, own: str) -> list[Relation]:
    """Make a coordinate follow a function of time [s]: ``m.drive("motor", hinge, lambda t: 2 * cd.pi * t)``.

    coordinate: a joint or its name, or a coordinate made by :func:`cardan.coordinate`; of: which of a joint that has
    several.
    function: with operators and cd.sin, cd.sqrt, … in metres, or in radians with whole turns; or a constant number; or
    a spline: cd.spline(times, values), a SciPy spline, or a table (times, values).
    Parameters in it, and in place of a number, have the values of the state.
    It is called with t as a jet, so that rate and acceleration are computed together with the value.  It need only be
    defined at the times that are used.
    """
    if not callable(function) and not isinstance(function, Formula):
        function = check.number(function, "the value, if not a function of time,")
    on = _resolved(coordinate)
    signal = Signal.reading(own, function, often=bool(on.a.body._model.book.names))
    return [Relation(DRIVEN[on.kind], on.arguments(), (signal.some_value(),), signal)]


@coupling_kind("", role=Role.LIMIT)
def limit(
    coordinate: Given, *, lower: OfCoordinate = -math.inf, upper: OfCoordinate = math.inf, restitution: InSI = 0.0
) -> list[Relation]:
    """Keep a coordinate within bounds, in metres or radians; either bound may be omitted.

    restitution e, from 0 to 1: in a simulation the rate ċ of the coordinate becomes −e ċ where a bound is hit.
    """
    low, high = _bound(lower, "lower"), _bound(upper, "upper")
    rebound = check.number(restitution, "restitution")
    if not 0.0 <= rebound <= 1.0:
        raise ModelError(f"restitution is {rebound:g}; it must be from 0 to 1")
    if rebound and low == high:
        raise ModelError(f"restitution is {rebound:g}, but lower and upper are both {low:g}; leave restitution out")
    if math.isinf(low) and math.isinf(high):
        raise ModelError("neither lower nor upper is given; give one of them, or both")
    if low > high:
        raise ModelError(f"lower is {low} and upper is {high}; lower must not be above upper")
    on = _resolved(coordinate)
    if on.kind == "distance" and high < 0.0:
        raise ModelError(f"upper is {high} m; a distance is never negative")
    if on.kind == "inclination" and (high < 0.0 or low > math.pi):
        raise ModelError(f"the limits are {low} and {high} rad; the angle between two axes lies in [0, π]")
    return [Relation(LIMITED[on.kind], on.arguments(), (low, high))]


def held(joint: Joint) -> Bundle:
    """A limit as the equation c − bound that holds its coordinate where a bound is reached; the bound is zero here."""
    (coordinate,) = joint.ends
    return coordinate_row(joint.name, coordinate)


def coordinate_row(name: str, coordinate: Coordinate) -> Bundle:
    """A coordinate as a row that has its value, rate and acceleration."""
    return Bundle(name, [Relation(DRIVEN[coordinate.kind], coordinate.arguments(), (0.0,))])


def _bound(value: Any, what: str) -> float:
    if isinstance(value, float) and math.isinf(value) and (value < 0) == (what == "lower"):
        return value
    return check.number(value, what)
