"""Constraints between points, lines and planes, as a designer draws them."""

from __future__ import annotations

import math
from typing import Any

from cardan.constraints import primitives
from cardan.errors import ModelError
from cardan.joints.coordinates import about_z, along_x, along_y, along_z, apart, between, swapped
from cardan.joints.lower_pairs import axes_aligned, coincident, same_orientation
from cardan.joints.registry import joint_kind
from cardan.quantities import Angle, Length
from cardan.system import check
from cardan.system.formulas import Formula, plain
from cardan.system.parts import Feature, Frame, Point
from cardan.system.relations import Location, Motion, Relation
from cardan.system.tables import ABOUT_Z, CROSSED, STILL


def _locations(a: Frame, b: Frame) -> tuple[Location, ...]:
    """Origins of frames that only give directions: they tell the size of parts in a model without other lengths."""
    found = []
    for end in (a, b):
        x, y, z = plain(end.origin)
        found.append(("" if end.body.is_ground else end.body.name, (x, y, z)))
    return tuple(found)


@joint_kind(distance=apart)
def distance(a: Point | Frame, b: Point | Frame, length: Length, *, squared: bool = False) -> list[Relation]:
    """Two points at a distance [m]: 1 equation; ``squared`` takes the paper's form d·d − L² instead of |d| − L.

    At a distance of 0 the points coincide: 3 equations.  The length may be a function of time.
    """
    if callable(length):
        length = check.function_of_time(length, "length")
    elif isinstance(length, Formula):
        length = check.positive_quantity(length, "the length", instead="where two points meet, use a spherical joint")
    else:
        length = check.positive(length, "the length", zero=True)
    kind = primitives.distance_squared if check.flag(squared, "squared") else primitives.distance
    if isinstance(length, float) and length == 0.0:
        return [coincident(a, b)]
    return [Relation(kind, (a.feature(), b.feature()), (length,))]


@joint_kind(angle=between)
def angle(a: Frame, b: Frame, angle: Angle, *, cosine: bool = False) -> list[Relation]:
    """The z axes at an angle [rad] from 0 to π: 1 equation; ``cosine`` takes the paper's form z_a·z_b − cos α.

    At 0 the axes are parallel, at π they are opposed: 2 equations each.  A formula, or a function of time, must stay
    between the two.
    """
    value = check.quantity_of_time(angle, "angle", "the angle")
    form = primitives.angle_cosine if check.flag(cosine, "cosine") else primitives.angle
    if isinstance(value, Formula):
        value.book.require(value, 0.0, math.pi, "the angle is {value} rad; it must lie between 0 and π")
    elif callable(angle):
        pass  # judged where it is used
    elif not 0.0 <= value <= math.pi:
        raise ModelError(f"the angle is {value} rad; it must lie between 0 and π")
    elif value in (0.0, math.pi):
        kind, body, z = b.axis("z")
        axis = Feature(kind, body, z if value == 0.0 else tuple([-c for c in z]))
        axes = a.axis("x"), a.axis("y"), a.axis("z"), axis
        return [Relation(primitives.aligned, axes, locations=_locations(a, b))]
    return [Relation(form, (a.axis("z"), b.axis("z")), (value,), locations=_locations(a, b))]


@joint_kind(motion=Motion(3, ABOUT_Z), angle=about_z)
def parallel(a: Frame, b: Frame) -> list[Relation]:
    """The z axes point the same way: 2 equations.  Coordinate: angle from x_a to x_b about z_a."""
    return [axes_aligned(a, b, _locations(a, b))]


@joint_kind(motion=Motion(3, CROSSED))
def perpendicular(a: Frame, b: Frame) -> list[Relation]:
    """z_a ⟂ z_b: 1 equation."""
    return [Relation(primitives.dot_1, (a.axis("z"), b.axis("z")), locations=_locations(a, b))]


@joint_kind(motion=Motion(3, STILL), x=along_x, y=along_y, z=along_z)
def orientation(a: Frame, b: Frame) -> list[Relation]:
    """Frame b has the orientation of frame a, and its origin is free: 3 equations.  Coordinates: x, y, z of b in a."""
    return [same_orientation(a, b, _locations(a, b))]


@joint_kind(displacement=swapped(along_z))
def point_on_line(a: Point | Frame, b: Frame) -> list[Relation]:
    """A point of body a on the z axis of a frame of body b: 2 equations.  Coordinate: displacement of a along it."""
    return [Relation(primitives.dot_2, (b.axis(k), a.feature(), b.feature()), (0.0,)) for k in "xy"]


@joint_kind(x=swapped(along_x), y=swapped(along_y))
def point_in_plane(a: Point | Frame, b: Frame) -> list[Relation]:
    """A point of body a in the xy plane of a frame of body b: 1 equation.  Coordinates: x, y of a in the plane."""
    return [Relation(primitives.dot_2, (b.axis("z"), a.feature(), b.feature()), (0.0,))]


@joint_kind(displacement=swapped(along_z))
def line_distance(a: Point | Frame, b: Frame, distance: Length) -> list[Relation]:
    """A point of body a at a distance [m] from the z axis of a frame of body b: 1 equation; 2 if the distance is 0.

    Coordinate: displacement of a along the axis.
    """
    if callable(distance):
        value: Any = check.function_of_time(distance, "distance")
    elif isinstance(distance, Formula):
        value = check.positive_quantity(distance, "the distance", instead="for a point on the line, use point_on_line")
    else:
        value = check.positive(distance, "the distance", zero=True)
        if value == 0.0:
            return list(point_on_line.build(a, b))
    features = b.axis("x"), b.axis("y"), b.feature(), a.feature()
    return [Relation(primitives.radial, features, (value,))]


@joint_kind(x=swapped(along_x), y=swapped(along_y))
def plane_distance(a: Point | Frame, b: Frame, distance: Length) -> list[Relation]:
    """A point of body a at a distance [m] from the xy plane of a frame of body b, positive towards z: 1 equation.

    Coordinates: x, y of a in the frame.
    """
    features = b.axis("z"), b.feature(), a.feature()
    return [Relation(primitives.dot_2, features, (check.quantity_of_time(distance, "distance", "the distance"),))]
