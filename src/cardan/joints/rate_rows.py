"""Rate rows: constraints of velocities alone, A(q) v = 0, that no equation of poses replaces (nonholonomic).

They have names and ends like joints, but only velocities are constrained: assembly, the verdict and the projection of
poses in a simulation ignore them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cardan.constraints.functions import angular_velocity, cross, dot, rate
from cardan.constraints.registry import Primitive
from cardan.constraints.user import rate_primitive
from cardan.errors import ModelError
from cardan.joints.registry import Role, method_kind
from cardan.system.parts import Body, Feature, Frame
from cardan.system.relations import Relation


@cache
def blade() -> Primitive:
    """0 = z·ṗ [m/s]: the point p does not move along z."""

    def blade(i: Any, z: Any) -> Any:
        return dot(z, rate(i))

    return rate_primitive(i="point", z="vector of i")(blade)


@cache
def relative_blade() -> Primitive:
    """0 = z·(ṗ − ṙ − ω × (p − r)) [m/s]: the point p does not move along z as seen from a body at r that turns at ω."""

    def relative_blade(i: Any, z: Any, j: Any, turned: Any) -> Any:
        return dot(z, rate(i) - rate(j) - cross(angular_velocity(turned), i - j))

    kinds = {"i": "point", "z": "vector of i", "j": "point", "turned": "orientation of j"}
    return rate_primitive(**kinds)(relative_blade)


@cache
def spin() -> Primitive:
    """x·(ω_b − ω_a), y·(ω_b − ω_a), z·(ω_b − ω_a) [rad/s], shape (3,), for the axes x, y, z of frame a."""

    def spin(a: Any, b: Any, x: Any, y: Any, z: Any) -> Any:
        relative = angular_velocity(b) - angular_velocity(a)
        return [dot(axis, relative) for axis in (x, y, z)]

    axes = dict.fromkeys("xyz", "vector of a")
    return rate_primitive(unit="rad/s", a="orientation", b="orientation", **axes)(spin)


def knife_edge_relation(frame: Frame, relative_to: Body | None) -> Relation:
    """The row of a knife edge."""
    features: tuple[Feature, ...] = (frame.feature(), frame.axis("z"))
    if relative_to is None or relative_to.is_ground:
        return Relation(blade(), features)
    if relative_to is frame.body:
        raise ModelError(f"relative_to is body {relative_to.name!r} itself, relative to which nothing on it moves")
    other = relative_to.frame()
    return Relation(relative_blade(), (*features, other.feature(), other.orientation()))


knife_edge = method_kind("knife_edge", Role.RATE, ("frame",))
constrain_rates = method_kind("constrain_rates", Role.RATE)
rolling = method_kind("rolling", Role.RATE, implied=True)  # of a contact
