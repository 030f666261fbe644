"""Contacts, wheels, points on curves and surfaces, and paths, checked against a model and added to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from cardan import joints
from cardan.errors import ModelError
from cardan.joints import Joint, JointKind
from cardan.joints.ownership import check_end, check_place
from cardan.lazy import LazyModule
from cardan.system import check
from cardan.system.formulas import Formula
from cardan.system.parts import Frame

if TYPE_CHECKING:
    from cardan.mechanism.model import Model
    from cardan.quantities import InSI
    from cardan.system.attachments import Attachment

_contacts = LazyModule("cardan.joints.contacts")
_geometry = LazyModule("cardan.geometry")


class Opening(TypedDict, total=False):
    """Options of a contact that opens: see :meth:`cardan.Mechanism.contact`."""

    unilateral: bool
    restitution: InSI
    friction: InSI


def contact(
    model: Model,
    name: str,
    face_a: Attachment,
    face_b: Attachment,
    mode: Any,
    side: Any = "outside",
    start: tuple[Any, Any] | None = None,
    jacobian: Any = "exact",
    query: Any = None,
    opening: Opening | None = None,
) -> Joint:
    """See :meth:`cardan.Mechanism.contact`."""
    own = opening or {}
    if unknown := [word for word in own if word not in Opening.__annotations__]:
        raise check.unknown(unknown[0], "argument of a contact", [*Opening.__annotations__])
    unilateral, impact = own.get("unilateral", False), (own.get("restitution", 0.0), own.get("friction", 0.0))
    name = model.new_name(name, "a contact")
    what = f"contact {name!r}"
    check.choice(mode, f"{what}: mode", ("slide", "roll", "roll_without_spin"))
    check.choice(side, f"{what}: side", ("outside", "inside", "crossing"))
    check.choice(jacobian, f"{what}: jacobian", ("exact", "differences"))
    opens = check.flag(unilateral, f"{what}: unilateral")
    restitution, friction = checked_restitution(what, impact[0]), checked_friction(what, impact[1])
    if not opens and (restitution or friction != (0.0, 0.0)):
        word, value = ("restitution", impact[0]) if restitution else ("friction", impact[1])
        raise ModelError(f"{what}: {word} is {value!r}, but the contact does not open; give unilateral=True with it")
    if opens and mode != "slide":
        raise ModelError(
            f"{what}: unilateral is True, but mode is {mode!r}; a contact that opens rolls where its friction holds: "
            "leave mode out, and give friction="
        )
    if opens and jacobian == "differences":
        raise ModelError(
            f"{what}: unilateral is True, but jacobian is 'differences'; a contact that opens needs 'exact'"
        )
    if opens and side == "crossing":
        raise ModelError(f"{what}: unilateral is True, but side is 'crossing'; curves that cross have no inside")
    if jacobian == "differences":
        near = _contacts.closest_pair(what, (face_a, face_b), side, mode, start, query)
        ends = (face_a.frame, face_b.frame)
        given = (("mode", mode), ("jacobian", jacobian))
        return _add(model, joints.contact, name, near, ends, mode, given)
    if query is not None:
        raise ModelError(f"{what} was given a query, which needs jacobian='differences'")
    pair = _contacts.pair_of(what, (face_a, face_b), side, mode, start)
    options: tuple[tuple[str, Any], ...] = (("mode", mode), ("side", side))
    if start is not None:
        options += (("start", pair.in_order(pair.start)),)
    if opens:
        if pair.crossed:
            raise ModelError(f"{what}: unilateral is True, but curves that cross in space have no inside")
        options += (("unilateral", True),)
        options += (("restitution", restitution),) if restitution else ()
        options += (("friction", friction),) if friction != (0.0, 0.0) else ()
    return _add(model, joints.contact, name, pair, (face_a.frame, face_b.frame), mode, options)


def checked_restitution(what: str, given: Any) -> float:
    """A coefficient of restitution, from 0 to 1."""
    value = check.number(given, f"{what}: restitution")
    if not 0.0 <= value <= 1.0:
        raise ModelError(f"{what}: restitution is {value:g}; it must be from 0 to 1")
    return value


def checked_friction(what: str, given: Any) -> tuple[float, float]:
    """Coefficients of static and kinetic friction, from one number or two."""
    if isinstance(given, list | tuple | np.ndarray):
        static, kinetic = check.numbers(given, 2, f"{what}: friction")
    else:
        static = kinetic = check.number(given, f"{what}: friction")
    for value in (static, kinetic):
        check.positive(value, f"{what}: friction", zero=True)
    if kinetic > static:
        raise ModelError(
            f"{what}: friction is {given!r}, (static, kinetic); the kinetic coefficient must not exceed the static one"
        )
    return static, kinetic


def wheel(model: Model, name: str, frame: Frame, radius: float, face: Attachment | None) -> Joint:
    """See :meth:`cardan.Mechanism.wheel`."""
    check_end(model, f"wheel {name!r}", "frame", frame)
    name = model.new_name(name, "a wheel")
    radius = check.positive(radius, f"the radius of wheel {name!r}")
    with model.as_one(model.ground, frame.body, items=("joints", "rate_rows")):
        road = model.ground.attach(_geometry.plane()) if face is None else face
        disc = frame.body.attach(_geometry.circle(radius), frame)
        return contact(model, name, road, disc, "roll")


def point_on(model: Model, kind: JointKind[Any], name: str, point: Any, face: Attachment) -> Joint:
    """See :meth:`cardan.Mechanism.point_on_surface` and :meth:`cardan.Mechanism.point_on_curve`."""
    is_surface = kind is joints.point_on_surface
    name = model.new_name(name, "a point on a surface" if is_surface else "a point on a curve")
    freedoms = 2 if is_surface else 1
    what = f"{kind.name} {name!r}"
    check_end(model, what, "point", point)
    shape = _contacts.face_geometry(what, face, example="sphere(0.1)" if freedoms == 2 else "circle(0.1)")
    if shape.freedoms != freedoms:
        wanted = "surface" if freedoms == 2 else "curve"
        raise ModelError(f"{what} was given {shape!r:.120}; it must be a {wanted} that is attached to a body")
    _contacts.check_regular(what, shape)
    position = point.feature().value
    if any(isinstance(value, Formula) for value in position):
        raise ModelError(f"{what} was given a point with parameters; a point on a shape is fixed: give it numbers")
    of_pair = {"across": freedoms == 1, "exchanged": True, "trims": (_contacts.trim_of(face), None)}
    pair = _contacts.Pair(shape, _contacts.point_shape(), **of_pair)
    ends = (_contacts.frame_of(point.body, position), face.frame)
    return _add(model, kind, name, pair, ends, "slide", ())


def path(model: Model, name: str, frame: Frame, face: Attachment, follow: Any, up: Any) -> Joint:
    """See :meth:`cardan.Mechanism.path`."""
    name = model.new_name(name, "a path")
    what = f"path {name!r}"
    check_end(model, what, "frame", frame)
    check.choice(follow, f"{what}: follow", ("frenet", "least_turning"))
    shape = _contacts.face_geometry(what, face, example="circle(0.1)")
    if shape.freedoms != 1:
        raise ModelError(f"{what} was given {shape!r:.120}; it must be a curve that is attached to a body")
    if not np.isfinite(shape.bounds[0]).all():
        raise ModelError(f"{what} was given a line without end; use m.prismatic")
    if any(isinstance(value, Formula) for value in (*frame.origin, *frame.x, *frame.z)):
        raise ModelError(f"{what} was given a frame with parameters; a frame on a curve is fixed: give it numbers")
    direction = check.vector(up, f"{what}: up")
    pair = _contacts.path_pair(what, shape, follow, tuple(direction))
    options = (("follow", follow), ("up", tuple(direction)))
    return _add(model, joints.path, name, pair, (frame, face.frame), "slide", options)


def on_face(model: Model, face: Attachment) -> list[Joint]:
    """The contacts, points on curves or surfaces, and paths that use a face."""
    touching = [
        joint for joint in model.joints.values() if any(one.template.pair is not None for one in joint.relations)
    ]
    return [joint for joint in touching if _contacts.uses(joint, face)]


def _add(
    model: Model,
    kind: JointKind[Any],
    name: str,
    pair: Any,
    ends: tuple[Frame, Frame],
    mode: Any,
    options: tuple[tuple[str, Any], ...],
) -> Joint:
    what = f"{kind.name} {name!r}"
    for end in ends:
        check_place(model, what, end)
    if ends[0].body is ends[1].body:
        raise ModelError(f"{what} connects body {ends[0].body.name!r} to itself; it needs two different bodies")
    frames = ends[::-1] if pair.exchanged else ends
    coordinates = _contacts.coordinates_of(name, pair, frames)
    touching, rolling = _contacts.relations(pair, frames, coordinates, mode)
    parameters = (*options, ("shapes", pair.description()))
    made = Joint(name, kind, ends, parameters, (touching,))
    if rolling is not None:
        rate = model.new_name(f"{name}.roll", "the rolling of a contact")
        row = Joint(rate, joints.rolling, ends, parameters, (rolling,))
        rate_rows, every = {**model.rate_rows, rate: row}, {**model.joints, name: made}
        model.assign(rate_rows=rate_rows, joints=every)
        return made
    model.keep("joints", made)
    return made
