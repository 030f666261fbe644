"""Contacts: two shapes on two bodies that touch in a point, and slide or roll on each other.

The contact coordinates s (parameters of both shapes at the contact) are solved for wherever a pose is evaluated, from
those of the last accepted pose, which are in q beside the counted angles.  What is left is one equation of poses, the
gap between the shapes; so a contact needs no unknowns of its own, and the mass matrix stays diagonal.  Rolling adds
rate rows.  The equations are in :mod:`cardan.joints._contact`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from cardan.constraints.registry import LENGTH_POWER, FeatureKind, Primitive, Unit
from cardan.errors import ModelError
from cardan.geometry.analytic import Analytic
from cardan.geometry.analytic import Point as PointShape
from cardan.geometry.shape import Shape, Trimmed
from cardan.joints import tables
from cardan.joints.closest import ClosestPair, closest_pair
from cardan.joints.pairs import Contact, ContactStatus, Pair, check_regular, endless, is_planar
from cardan.joints.paths import Follow
from cardan.joints.registry import Role
from cardan.system.attachments import Attachment, check_attached
from cardan.system.parts import Body, CountedAngle, Direction, Feature, Frame, Point
from cardan.system.relations import Relation

if TYPE_CHECKING:
    from cardan.joints.registry import Joint

__all__ = ["Contact", "ContactStatus", "Pair", "check_regular", "closest_pair"]

Mode = Literal["slide", "roll", "roll_without_spin"]
Side = Literal["outside", "inside", "crossing"]


@dataclass(frozen=True, slots=True)
class Form:
    """What the primitive of a contact is rebuilt from: its kernels, and the numbers of coordinates and rows."""

    function: str  # "contact", "rolling", "path", "closest" or "closest_rolling"
    widths: tuple[int, int]
    units: tuple[Unit, ...]
    equations: int
    module: str = "cardan.joints._contact"
    is_contact: ClassVar[bool] = True

    def reduced(self, made: Primitive) -> tuple[Callable[..., Primitive], tuple[Any, ...]]:
        return primitive_of, (self,)


@cache
def primitive_of(form: Form) -> Primitive:
    """The primitive of a form."""
    frame = (FeatureKind.POINT, FeatureKind.ORIENTATION)
    features = (*frame, *frame, *[FeatureKind.ANGLE] * sum(form.widths))
    rows = len(form.units)
    return Primitive(
        -1,
        form.function,
        (),
        ("pair",),
        (),
        form.units,
        tuple(range(form.equations, rows)),
        "value",
        None,
        form.function,
        features=features,
        components=sum(feature.components for feature in features),
        rows=rows,
        equations=form.equations,
        powers=tuple(LENGTH_POWER[unit] for unit in form.units),
        of_rates=form.function in ("rolling", "closest_rolling"),
        text=repr(form),
        origin=form,
    )


def relations(
    pair: Pair | ClosestPair, frames: tuple[Frame, Frame], coordinates: tuple[CountedAngle, ...], mode: Mode
) -> tuple[Relation, Relation | None]:
    """The relation of a contact, and that of its rolling."""
    ends = [feature for frame in frames for feature in (frame.feature(), frame.orientation())]
    slips: tuple[Unit, ...] = ("m", "m") if pair.slips == 2 else ("m",)
    rows: tuple[Unit, ...] = (*slips, "rad") if pair.spinless else slips
    if isinstance(pair, ClosestPair):
        where = "cardan.joints._closest"
        form = primitive_of(Form("closest", (0, 0), ("m",), 1, where))
        touching = Relation(form, tuple(ends), (0.0,), size=pair.size, pair=pair)
        if mode == "slide":
            return touching, None
        rolling = primitive_of(Form("closest_rolling", (0, 0), rows, len(rows), where))
        return touching, Relation(rolling, tuple(ends), (0.0,), pair=pair)
    widths = pair.shapes[0].width, pair.shapes[1].width
    units: tuple[Unit, ...] = ("m", "m", "m") if pair.across else ("m", "m", "m", "rad", "rad")
    equations = 2 if pair.across else 1
    if pair.path is not None:
        units, equations = ("m", "m", "rad", "rad", "rad", "m"), 5
    features = (*ends, *[Feature(FeatureKind.ANGLE, one, ()) for one in coordinates])
    which = ("contact",) if pair.path is None else ("path", "cardan.joints._path")
    form = primitive_of(Form(which[0], widths, units, equations, *which[1:]))
    touching = Relation(form, features, (0.0,), size=pair.size, pair=pair)
    if mode == "slide":
        return touching, None
    rolling = primitive_of(Form("rolling", widths, rows, len(rows)))
    return touching, Relation(rolling, features, (0.0,), pair=pair)


def rolling_of(touching: Relation) -> Relation:
    """The rolling of a contact without it."""
    pair = touching.template.pair
    slips: tuple[Unit, ...] = ("m", "m") if pair.slips == 2 else ("m",)
    form = Form("rolling", (pair.shapes[0].width, pair.shapes[1].width), slips, len(slips))
    return Relation(primitive_of(form), touching.features, (0.0,), pair=pair)


def coordinates_of(name: str, pair: Pair | ClosestPair, frames: tuple[Frame, Frame]) -> tuple[CountedAngle, ...]:
    """The contact coordinates, which are carried like counted angles."""
    if isinstance(pair, ClosestPair):
        return ()
    zero = (0.0, 0.0, 0.0)
    words = [f"{name}.{'ab'[k]}{i}" for k, shape in enumerate(pair.shapes) for i in range(shape.width)]
    a, b = frames[0].body, frames[1].body
    return tuple(CountedAngle(word, a._model.next_serial(), a, zero, zero, b, zero) for word in words)


def pair_of(what: str, faces: tuple[Attachment, Attachment], side: str, mode: str, start: Any = None) -> Pair:
    """The pair of two faces, the one with the normal first; ModelError if they have no contact."""
    shapes = [face_geometry(what, face, "; solids and meshes need jacobian='differences'") for face in faces]
    for shape in shapes:
        check_regular(what, shape)
    swap = _rank(shapes[1]) > _rank(shapes[0])
    a, b = shapes[::-1] if swap else shapes
    names = f"{_told(shapes[0])} and {_told(shapes[1])}"
    curves = a.freedoms == b.freedoms == 1
    crossed = curves and (side == "crossing" or not (is_planar(a) and is_planar(b)))
    if a.freedoms == 0:
        raise ModelError(f"{what} was given {names}; two points have no contact: use m.spherical")
    if a.freedoms == 1 and b.freedoms == 0:
        raise ModelError(f"{what} was given {names}; a point and a curve have no normal: use m.point_on_curve")
    if side == "crossing" and not curves:
        raise ModelError(f"{what} was given {names} with side='crossing', which is for two curves in space")
    if crossed and side == "inside":
        raise ModelError(f"{what} was given {names} with side='inside'; curves that cross in space have no inside")
    flat = [_told(shape) for shape in (a, b)]
    if flat[0] == "plane" and flat[1] in ("plane", "cylinder", "cone", "line"):
        raise ModelError(
            f"{what} was given {names}, which touch along a line or over an area, not in a point; use m.planar, or "
            "the outlines of the parts as curves in a plane"
        )
    if side == "inside":
        _check_fits(what, a, b)
    if endless(b) != tables.BOUNDED:
        raise ModelError(f"{what} was given {names}, which have no end; give one of them a size")
    if mode != "slide" and b.freedoms == 0:
        raise ModelError(f"{what} was given {names} with mode={mode!r}; a point does not roll: use mode='slide'")
    if mode == "roll_without_spin" and a.freedoms == 1 and not crossed:
        raise ModelError(f"{what} was given {names} with mode={mode!r}; curves in a plane have no spin: use 'roll'")
    order = -1 if swap else 1
    trims = tuple([trim_of(face) for face in faces][::order])
    known = None if start is None else tuple(_start(what, start, shapes)[::order])
    return Pair(
        a,
        b,
        -1.0 if side == "inside" else 1.0,
        spinless=mode == "roll_without_spin",
        exchanged=swap,
        crossed=crossed,
        start=known,  # type: ignore[arg-type]  # two, as there are two faces
        trims=trims,  # type: ignore[arg-type]  # two, too
    )


def path_pair(what: str, curve: Shape, follow: Follow, up: tuple[float, float, float]) -> Pair:
    """The pair of a curve and a frame that follows it; ModelError if the curve has no such frame."""
    check_regular(what, curve)
    pair = Pair(curve, point_shape(), across=True, exchanged=True, path=(what, follow, up))
    assert pair.moving is not None  # which raises an error if the curve has no such frame
    return pair


def _check_fits(what: str, outer: Shape, inner: Shape) -> None:
    """ModelError if a sphere in a sphere, or a circle in a circle, is as large as the outer one, or larger."""
    shapes = [shape for shape in (outer, inner) if isinstance(shape, Analytic)]
    if len({shape.name for shape in shapes}) != 1 or len(shapes) != 2 or shapes[0].name not in ("sphere", "circle"):
        return
    name, (radius, other) = shapes[0].name, [shape.numbers[0] for shape in shapes]
    if radius == other:
        use = "m.spherical" if name == "sphere" else "m.revolute"
        raise ModelError(f"{what} was given two {name}s of one size with side='inside'; use {use}")
    if radius < other:
        raise ModelError(
            f"{what} was given a {name} of radius {other:g} m inside one of {radius:g} m, in which it does not fit; "
            "exchange the faces, or use side='outside'"
        )


def _start(what: str, start: Any, shapes: Sequence[Shape]) -> list[tuple[float, ...]]:
    """Parameters on both faces at which the search for a contact begins, checked."""
    wanted = " and ".join(str(shape.width) for shape in shapes)
    valid = f"it must be the parameters on both faces, {wanted} numbers, as in state.contact(name).parameters"
    try:
        parts = [np.array(part, dtype=float, ndmin=1) for part in start]  # copies: directions are normalised below
    except (TypeError, ValueError):
        raise ModelError(f"{what}: start is {start!r}; {valid}") from None
    if len(parts) != 2 or any(part.shape != (shape.width,) for part, shape in zip(parts, shapes, strict=False)):
        raise ModelError(f"{what}: start is {start!r}; {valid}")
    for part, shape in zip(parts, shapes, strict=True):
        if shape.width > shape.freedoms:
            length = float(np.linalg.norm(part))
            if not 0.0 < length < np.inf:
                raise ModelError(f"{what}: start has {part.tolist()} on {_told(shape)}; it must be a direction")
            part /= length
            continue
        for value, (low, high), period in zip(part.tolist(), shape.bounds, shape.periods, strict=True):
            if not np.isfinite(value) or not (period or low <= value <= high):
                raise ModelError(f"{what}: start has {value} on {_told(shape)}; it must be in [{low}, {high}]")
    return [tuple(part.tolist()) for part in parts]


def _rank(shape: Shape) -> tuple[int, int]:
    return shape.freedoms, int(endless(shape) != tables.BOUNDED)


def _told(shape: Shape) -> str:
    return getattr(shape, "name", "") or type(shape).__name__


def face_geometry(what: str, face: Any, way: str = "", example: str = "sphere(0.1)") -> Shape:
    """The curve or surface of an attached face; way: what to do with a solid, example: of a shape that fits."""
    found = getattr(getattr(face, "shape", None), "geometry", None)
    if not isinstance(face, Attachment) or not isinstance(found, Shape):
        given = (
            f"a {type(face).__name__} of {face.body!r}"
            if isinstance(face, Point | Direction | Frame)
            else f"{face!r:.120}"
        )
        raise ModelError(
            f"{what} was given {given}; it must be a face: face = body.attach(cd.geometry.{example})"
            f"{way if isinstance(face, Attachment) else ''}"
        )
    check_attached(what, face)
    return found


def trim_of(face: Attachment) -> Trimmed | None:
    """The trimmed face of an attachment, if it is one."""
    return getattr(face.shape, "trim", None)


def uses(joint: Joint, face: Attachment) -> bool:
    """Whether a contact, a point on a curve or surface, or a path is on this face.

    Faces of one shape in one frame are not distinguished.
    """
    if not any(end is face.frame for end in joint.ends):
        return False
    pair = joint.relations[0].template.pair
    if not pair.shapes:  # meshes or a query: a face is known by its frame alone
        return True
    wanted = getattr(face.shape, "geometry", None), trim_of(face)
    return any(
        end is face.frame and (joint.kind.role is Role.CONTACT or shape.freedoms > 0) and (shape, trim) == wanted
        for end, shape, trim in zip(joint.ends, pair.in_order(pair.shapes), pair.in_order(pair.trims), strict=True)
    )


def point_shape() -> Shape:
    """The shape of a point at the origin of its frame."""
    return PointShape((0.0, 0.0, 0.0))


def frame_of(body: Body, position: Any) -> Frame:
    """A frame at a point of a body, with its axes."""
    return body.frame(position, z=(0.0, 0.0, 1.0), x=(1.0, 0.0, 0.0))
