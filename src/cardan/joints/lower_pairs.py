"""Joints that machines are made of: the lower pairs, the universal joint, the fixed connection."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cardan.constraints import primitives
from cardan.errors import ModelError
from cardan.joints.registry import Relative, joint_kind
from cardan.system.parts import Frame, Point
from cardan.system.system import Use


def coincident(a: Frame | Point, b: Frame | Point) -> Use:
    """Origins meet: 3 equations [m]."""
    return Use(primitives.coincidence, (a.feature(), b.feature()))


def axes_aligned(a: Frame, b: Frame) -> Use:
    """z_b = z_a, not opposed: 2 equations [rad]."""
    return Use(primitives.aligned, (a.axis("x"), a.axis("y"), a.axis("z"), b.axis("z")))


def same_orientation(a: Frame, b: Frame) -> Use:
    """Frame b turned as frame a: 3 equations [rad]."""
    for frame, other in ((a, b), (b, a)):
        if frame.x_given and not other.x_given:
            raise ModelError(
                f"the frame on body {frame.body.name!r} has a reference x, that on {other.body.name!r} has none; a "
                "joint that locks the rotation about z needs x on both frames or on neither"
            )
    return Use(primitives.rotation_vector, (a.orientation(), b.orientation()))


def on_axis(a: Frame, b: Frame | Point) -> tuple[Use, Use]:
    """The origin of b on the z axis of a: 2 equations [m]."""
    return tuple(Use(primitives.dot_2, (a.axis(k), a.feature(), b.feature()), (0.0,)) for k in "xy")  # type: ignore[return-value]


def _none(_: Relative) -> Mapping[str, float]:
    return {}


@joint_kind(_none)
def fixed(a: Frame, b: Frame) -> list[Use]:
    """Frame b stays on frame a: 6 equations."""
    return [coincident(a, b), same_orientation(a, b)]


@joint_kind(lambda r: {"angle": r.turn()})
def revolute(a: Frame, b: Frame) -> list[Use]:
    """A hinge about z: 5 equations.  Coordinate: angle from x_a to x_b about z_a."""
    return [coincident(a, b), axes_aligned(a, b)]


@joint_kind(lambda r: {"displacement": r.d_A[2]})
def prismatic(a: Frame, b: Frame) -> list[Use]:
    """A slide along z without turning: 5 equations.  Coordinate: displacement of b along z_a."""
    return [*on_axis(a, b), same_orientation(a, b)]


@joint_kind(lambda r: {"angle": r.turn(), "displacement": r.d_A[2]})
def cylindrical(a: Frame, b: Frame) -> list[Use]:
    """A slide along z and a turn about it: 4 equations.  Coordinates: angle, displacement."""
    return [*on_axis(a, b), axes_aligned(a, b)]


@joint_kind(_none)
def spherical(a: Point | Frame, b: Point | Frame) -> list[Use]:
    """A ball joint: two points meet, 3 equations."""
    return [coincident(a, b)]


def _universal_angles(r: Relative) -> Mapping[str, float]:
    """Angle of z_b about z_a from x_a, and angle of z_a about z_b from x_b."""
    return {
        "angle_a": math.atan2(r.R_AB[1, 2], r.R_AB[0, 2]),
        "angle_b": math.atan2(r.R_AB[2, 1], r.R_AB[2, 0]),
    }


@joint_kind(_universal_angles)
def universal(a: Frame, b: Frame) -> list[Use]:
    """Origins meet, z_a ⟂ z_b: 4 equations.  Coordinates: angle_a of z_b about z_a, angle_b of z_a about z_b."""
    return [coincident(a, b), Use(primitives.dot_1, (a.axis("z"), b.axis("z")))]


@joint_kind(lambda r: {"x": r.d_A[0], "y": r.d_A[1], "angle": r.turn()})
def planar(a: Frame, b: Frame) -> list[Use]:
    """Frame b slides on the xy plane of frame a and turns about its normal: 3 equations.  Coordinates: x, y, angle."""
    return [Use(primitives.dot_2, (a.axis("z"), a.feature(), b.feature()), (0.0,)), axes_aligned(a, b)]
