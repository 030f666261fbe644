"""The lower pairs, the universal joint and the fixed joint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from cardan.constraints import primitives
from cardan.errors import ModelError
from cardan.joints.coordinates import Coordinate, about_z, along_x, along_y, along_z, between, cross_about_z, swapped
from cardan.joints.registry import joint_kind
from cardan.quantities import Length
from cardan.system import check
from cardan.system.parts import Frame, Point
from cardan.system.relations import Location, Motion, Relation
from cardan.system.tables import ABOUT_Z, ANYHOW, CROSSED, STILL

# The mechanism passes a joint's own coordinates; the default allows users to omit the argument.
_OWN: Final[Mapping[str, Coordinate]] = {}


def coincident(a: Frame | Point, b: Frame | Point) -> Relation:
    """Origins coincide: 3 equations [m]."""
    return Relation(primitives.coincidence, (a.feature(), b.feature()))


def axes_aligned(a: Frame, b: Frame, locations: tuple[Location, ...] = ()) -> Relation:
    """z_b = z_a, not opposed: 2 equations [rad]."""
    return Relation(primitives.aligned, (a.axis("x"), a.axis("y"), a.axis("z"), b.axis("z")), locations=locations)


def same_orientation(a: Frame, b: Frame, locations: tuple[Location, ...] = ()) -> Relation:
    """Frame b has the orientation of frame a: 3 equations [rad]."""
    _check_references(a, b)
    return Relation(primitives.rotation_vector, (a.orientation(), b.orientation()), locations=locations)


def _check_references(a: Frame, b: Frame) -> None:
    """ModelError if one frame has a reference x and the other has none."""
    for frame, other in ((a, b), (b, a)):
        if frame.x_given and not other.x_given:
            raise ModelError(
                f"the frame on body {frame.body.name!r} has a reference x, that on {other.body.name!r} has none; a "
                "joint that locks the rotation about z needs x on both frames or on neither"
            )


def on_axis(a: Frame, b: Frame | Point) -> tuple[Relation, Relation]:
    """The origin of b on the z axis of a: 2 equations [m]."""
    return tuple(Relation(primitives.dot_2, (a.axis(k), a.feature(), b.feature()), (0.0,)) for k in "xy")  # type: ignore[return-value]


@joint_kind(motion=Motion(0, STILL))
def fixed(a: Frame, b: Frame) -> list[Relation]:
    """Frame b coincides with frame a: 6 equations."""
    return [coincident(a, b), same_orientation(a, b)]


@joint_kind(motion=Motion(0, ABOUT_Z), angle=about_z)
def revolute(a: Frame, b: Frame) -> list[Relation]:
    """A hinge about z: 5 equations.  Coordinate: angle from x_a to x_b about z_a."""
    return [coincident(a, b), axes_aligned(a, b)]


@joint_kind(motion=Motion(1, STILL), displacement=along_z)
def prismatic(a: Frame, b: Frame) -> list[Relation]:
    """Translation along z without rotation: 5 equations.  Coordinate: displacement of b along z_a."""
    return [*on_axis(a, b), same_orientation(a, b)]


@joint_kind(motion=Motion(1, ABOUT_Z), angle=about_z, displacement=along_z)
def cylindrical(a: Frame, b: Frame) -> list[Relation]:
    """Translation along z and rotation about it: 4 equations.  Coordinates: angle, displacement."""
    return [*on_axis(a, b), axes_aligned(a, b)]


@joint_kind(motion=Motion(0, ANYHOW))
def spherical(a: Point | Frame, b: Point | Frame) -> list[Relation]:
    """A ball joint: two points coincide, 3 equations."""
    return [coincident(a, b)]


@joint_kind(motion=Motion(0, CROSSED), angle_a=cross_about_z, angle_b=swapped(cross_about_z))
def universal(a: Frame, b: Frame) -> list[Relation]:
    """Origins coincide, z_a ⟂ z_b: 4 equations.  Coordinates: angle_a of z_b about z_a, angle_b of z_a about z_b.

    R_AB = R_z(angle_a) C R_z(−angle_b), where C maps z_b to x_a and x_b to z_a.  So angle_b is minus the angle by which
    b is turned about z_b: for R₁(q₁) R₂(q₂) take q₁ = angle_a and q₂ = −angle_b.
    """
    return [coincident(a, b), Relation(primitives.dot_1, (a.axis("z"), b.axis("z")))]


@joint_kind(bend=between)
def constant_velocity(a: Frame, b: Frame) -> list[Relation]:
    """A joint between two shafts along z_a and z_b that turn at equal speeds at any bend: 4 equations.

    Origins coincide, and frame b is frame a rotated about an axis perpendicular to z: x_a and x_b are in phase.
    Coordinate: bend, the angle between the shafts, 0 if they are in line.
    """
    _check_references(a, b)
    axes = a.axis("x"), a.axis("y"), b.axis("x"), b.axis("y")
    return [coincident(a, b), Relation(primitives.twist, axes)]


@joint_kind(motion=Motion(2, ABOUT_Z), x=along_x, y=along_y, angle=about_z)
def planar(a: Frame, b: Frame) -> list[Relation]:
    """Frame b moves in the xy plane of frame a and rotates about its normal: 3 equations.  Coordinates: x, y, angle."""
    return [Relation(primitives.dot_2, (a.axis("z"), a.feature(), b.feature()), (0.0,)), axes_aligned(a, b)]


def _thread(pitch: Length, offset: Length = 0.0) -> tuple[Any, Any]:
    """Pitch [m/rad] and offset [m] of a thread, checked."""
    lead = check.nonzero_quantity(pitch, "the pitch", " m", " (for a nut that only rotates use a revolute joint)")
    return lead / (2.0 * math.pi), check.quantity(offset, "the offset")


@joint_kind(motion=Motion(0, ABOUT_Z), thread=_thread, angle=about_z, displacement=along_z)
def screw(
    a: Frame, b: Frame, pitch: Length, *, offset: Length = 0.0, own: Mapping[str, Coordinate] = _OWN
) -> list[Relation]:
    """A nut b on a thread a: 5 equations, displacement = pitch·angle/2π + offset.  Coordinates: angle, displacement.

    pitch [m per turn]: positive for a right-hand thread.  offset [m]: displacement at angle zero.
    """
    parameters = _thread(pitch, offset)
    thread = Relation(primitives.rack, (*own["angle"].arguments(), *own["displacement"].arguments()), parameters)
    return [*on_axis(a, b), axes_aligned(a, b), thread]
