"""A joint placed once, in the drawing: its two frames from one point and one axis in world, and the authored poses."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from cardan.errors import ModelError
from cardan.joints.registry import JointKind
from cardan.system import check
from cardan.system.parts import Body, Frame, Point
from cardan.system.tables import CROSSED, STILL

WORDS = ("at", "axis", "x")
PERPENDICULAR: Final = 1e-6  # cosine: directions typed with six digits are perpendicular
TEXT = """

        a and b may be bodies, or their names, if at= [m] says where the joint is drawn, in world: then its frames
        coincide as drawn, with z along axis= and x along x=, and every coordinate reads 0.
        """


def takes_place(kind: JointKind[Any]) -> bool:
    """Whether joints of that kind can be placed: between two frames or points that can coincide."""
    return kind.is_between_places and "distance" not in kind.coordinates


def is_placed(kind: JointKind[Any], ends: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Whether a joint between frames or points was given bodies, or a place in the drawing."""
    if not kind.is_between_places:
        return False
    if given and any([word in given for word in WORDS]):
        return True
    return len(ends) == 2 and isinstance(ends[0], Body) and isinstance(ends[1], Body)


def frames(kind: JointKind[Any], a: Any, b: Any, given: dict[str, Any]) -> tuple[Frame | Point, Frame | Point]:
    """The frames (or points) on bodies a and b that coincide, as drawn, with one frame in world.

    given: ``at`` [m], ``axis`` and ``x`` in world axes; they are removed.  If the z axes are perpendicular, ``axis`` is
    z_a and ``x`` is z_b, so that both angles are zero; x_b is then z_a.
    """
    at, axis, x = (given.pop(word, None) for word in WORDS)
    for end in (a, b):
        if not isinstance(end, Body):
            raise ModelError(f"it was given {end!r} with at=; pass the two bodies, or two frames without at=")
    if not takes_place(kind):
        raise ModelError("at= is one place for both bodies; a distance is between two points: a.point(…), b.point(…)")
    if at is None:
        if kind.motion is None or kind.motion.translations or kind.motion.rotation != STILL:
            raise ModelError(
                f"it was given {a!r} and {b!r}; it must be a frame (body.frame(…)) or, where a point will do, a point "
                "or frame (body.point(…)); or say where the joint is drawn: at=(x, y, z)"
            )
        at = b.position  # a weld is the same anywhere
    if axis is None and x is not None and kind.takes == ("frame", "frame"):
        raise ModelError("x= was given without axis=; give both, in world axes")
    world = Frame.build(a.owner.ground, at, (0.0, 0.0, 1.0) if axis is None else axis, x)
    crossed = kind.motion is not None and kind.motion.rotation == CROSSED
    if crossed and x is not None:
        _check_perpendicular(world, axis, x)
    first = _on(a, world.origin, world.z, world.x, kind.takes[0])
    second = _on(b, world.origin, *((world.x, world.z) if crossed else (world.z, world.x)), kind.takes[1])
    return first, second


def _check_perpendicular(world: Frame, axis: Any, x: Any) -> None:
    """ModelError unless x, the second axis of a joint whose axes cross, is perpendicular to the first."""
    cosine = float(np.dot(world.z, check.direction(x, "x=")))
    if abs(cosine) > PERPENDICULAR:
        way = tuple(np.round(world.x, 6).tolist())
        given = [tuple(np.asarray(one).tolist()) for one in (x, axis)]
        raise ModelError(
            f"x= is {given[0]}, at {math.degrees(math.acos(cosine)):.6g}° from axis= {given[1]}; it is the second "
            f"axis of the joint and must be perpendicular to the first: the nearest such is {way}"
        )


def _on(body: Body, origin: Any, z: Any, x: Any, takes: str) -> Frame | Point:
    """A world frame, fixed on a body as it is drawn."""
    (p_WB, R_WB) = body.authored()
    place = check.vector(R_WB.T @ (np.array(origin) - p_WB), f"a point on body {body.name!r}")
    if takes == "point":
        return body.point(place)
    return body.frame(place, z=R_WB.T @ np.array(z), x=R_WB.T @ np.array(x))
