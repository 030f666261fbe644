"""Constraints made of one primitive: a user's own, or a built-in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cardan.calls import offer
from cardan.constraints.registry import KINDS, Argument, Primitive
from cardan.constraints.signal import GivenRate
from cardan.constraints.user_motion import OwnLimb
from cardan.errors import ArgumentError, ModelError
from cardan.joints.coordinates import Coordinate
from cardan.joints.registry import Role, method_kind
from cardan.system import check
from cardan.system.formulas import Formula
from cardan.system.parts import Body, Direction, Feature, Frame, Point
from cardan.system.relations import Edge, Motion, Place, Relation, UserMotion
from cardan.system.tables import BY_USER

FREEDOMS = 6  # of one body against another

_VALID: dict[str, tuple[tuple[type, ...], str]] = {
    "point": ((Point, Frame), "a point (body.point(…)), or a frame for its origin"),
    "vector": ((Direction,), "a vector (body.vector(x, y, z))"),
    "orientation": ((Frame,), "a frame (body.frame(…))"),
}


def resolved(
    primitive: Primitive,
    given: Mapping[str, Any],
    coordinate: Callable[[Any, str], Coordinate],
    signal: GivenRate | None = None,
) -> tuple[tuple[Any, ...], Relation]:
    """The ends that were given for a primitive, and its relation; ``coordinate`` finds the coordinate of a joint.

    signal: the value of a rate row, if it is not zero.
    """
    names = [argument.name for argument in primitive.arguments]
    unknown = [name for name in given if name not in (*names, *primitive.parameters)]
    if unknown:
        valid = (*names, *primitive.parameters)
        raise ArgumentError(f"it has no argument {unknown[0]!r}; {offer(unknown[0], valid)}")
    ends: dict[str, Any] = {}
    features: list[Feature] = []
    for argument in primitive.arguments:
        if argument.name not in given:
            raise ModelError(f"it was not given {argument.name!r}, {_wanted(argument)}")
        value = given[argument.name]
        if KINDS[argument.kind].is_coordinate:
            try:
                end: Any = coordinate(value, argument.kind)
            except ModelError as error:
                raise ModelError(f"{argument.name!r}: {error}") from None
            features += end.arguments()
        else:
            end = value
            features.append(_feature(argument, value))
        ends[argument.name] = end
        if argument.of and ends[argument.of].body is not end.body:
            raise ModelError(
                f"{argument.name!r} is on body {end.body.name!r}, but must be on that of {argument.of!r}, "
                f"{ends[argument.of].body.name!r}"
            )
    parameters: list[Any] = []
    defaults = dict(primitive.defaults)
    for name in primitive.parameters:
        if name not in given and name not in defaults:
            raise ModelError(f"it was not given its parameter {name!r}; it must be a number")
        value = given.get(name, defaults.get(name))
        if callable(value) and not primitive.of_rates:
            parameters.append(check.function_of_time(value, name))
        else:
            parameters.append(check.quantity(value, f"the parameter {name!r}"))
    if signal is not None:
        parameters.append(0.0)
    return tuple(ends.values()), Relation(primitive, tuple(features), tuple(parameters), signal)


def edge_of(limb: Any, relation: Relation) -> Edge:
    """The edge of a constraint that moves like a motion of the user's own; ModelError if the two do not fit."""
    if not isinstance(limb, OwnLimb):
        raise ModelError(
            f"motion is {limb!r:.120}; it must be made with @cd.joint_motion(…) and motion.between(frame_a, frame_b)"
        )
    for end in (limb.a, limb.b):
        if not isinstance(end, Frame):
            raise ModelError(f"the motion {limb.motion.name!r} is between {end!r:.120}; it must be between two frames")
        if any(isinstance(value, Formula) for value in (*end.origin, *end.x, *end.z)):
            raise ModelError(f"the motion {limb.motion.name!r} has a frame with parameters; give it numbers")
    if relation.is_timed:
        raise ModelError("a parameter is a function of time, and a motion has none; omit motion=")
    bodies = {feature.body for feature in relation.features if isinstance(feature.body, Body)}
    if {limb.a.body, limb.b.body} != bodies or limb.a.body is limb.b.body:
        names = [sorted(repr(body.name) for body in own) for own in ({limb.a.body, limb.b.body}, bodies)]
        raise ModelError(
            f"the motion {limb.motion.name!r} is between {' and '.join(names[0])}, the equations are between "
            f"{' and '.join(names[1])}; they must be between the same two bodies"
        )
    count, equations = len(limb.motion.coordinates), relation.primitive.equations
    if count + equations != FREEDOMS:
        raise ModelError(
            f"the motion {limb.motion.name!r} has {count} coordinates, and there are {equations} equations; together "
            f"they must be {FREEDOMS}"
        )
    motion = UserMotion(limb.motion, limb.numbers, limb.search)
    return Edge(Motion(count, BY_USER), Place.of(limb.a), Place.of(limb.b), 1, equations, user_motion=motion)


def _wanted(argument: Argument) -> str:
    kind = KINDS[argument.kind]
    return f"a joint or coordinate ({argument.kind})" if kind.is_coordinate else _VALID[argument.kind][1]


def _feature(argument: Argument, value: Any) -> Feature:
    types: tuple[Any, ...] = _VALID[argument.kind][0]
    if not isinstance(value, types):
        raise ModelError(f"{argument.name!r} was given {value!r}; it must be {_wanted(argument)}")
    feature: Feature = value.orientation() if argument.kind == "orientation" else value.feature()
    return feature


constrain = method_kind("constrain", Role.JOINT)
contact = method_kind("contact", Role.CONTACT, ("face", "face"), parts=("roll",))
point_on_curve = method_kind("point_on_curve", Role.JOINT, ("point", "face"))
point_on_surface = method_kind("point_on_surface", Role.JOINT, ("point", "face"))
path = method_kind("path", Role.JOINT, ("frame", "face"))


def checked(primitive: Any, what: str, of_rates: bool = False) -> Primitive:
    """The primitive; a ModelError that says how to make one, if it is none."""
    maker = "@cd.rate_primitive(…)" if of_rates else "@cd.primitive(…)"
    if isinstance(primitive, Primitive):
        if primitive.text and "= spline(" in primitive.text:
            raise ModelError(f"{what} was given the primitive of a spline; use m.couple with the spline")
        if primitive.of_rates != of_rates:
            verb = "m.constrain" if of_rates else "m.constrain_rates"
            raise ModelError(f"{what} was given {primitive!r}; it must be made with {maker}, or be given to {verb}")
        return primitive
    hint = f"declare it with {maker}" if callable(primitive) else f"it must be made with {maker}"
    raise ModelError(f"{what} was given {primitive!r}, which is no primitive; {hint}")
