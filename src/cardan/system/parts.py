"""Bodies, and the points and frames fixed on them."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from cardan.calls import explains
from cardan.constraints.registry import FeatureKind
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system.check import Quadruple, Triple
from cardan.system.formulas import Formula, Rule, are_floats, bindings, drawn_at, formulas_in, number, plain, sqrt, told
from cardan.system.orientation import orientation as as_quaternion
from cardan.system.read_only import read_only

if TYPE_CHECKING:
    from cardan.elastic.modes import Modes
    from cardan.geometry.shape import Shape as Geometry
    from cardan.geometry.shape import Trimmed
    from cardan.shapes.shape import Shape
    from cardan.system.attachments import Attachment
    from cardan.system.flexible import Elastic

_VECTOR = FeatureKind.VECTOR
_pack_pose = struct.Struct("7d").pack
T = TypeVar("T")

GROUND = "ground"  # the name of the fixed body
MASS_WORDS = ("mass", "inertia", "center")
# The checks of numbers, and what takes formulas in their places.
CHECKS: dict[str, Callable[[Any, str], Any]] = {"mass": check.mass, "inertia": check.inertia, "center": check.vector}
QUANTITIES = {"mass": check.quantity, "inertia": check.symmetric, "center": check.place}

# A unit x is made orthogonal to z; below this sine the two directions do not define a frame.
PARALLEL_SINE = 1e-9
LEAST_COMPONENT = 1e-3  # of a quaternion times 4: below, a component that was the largest when drawn loses digits


class Feature(NamedTuple):
    """What a primitive reads: a point, vector or orientation in the axes of its body, or a counted angle.

    ``value``: numbers, or formulas of parameters.
    """

    kind: FeatureKind
    body: Body | CountedAngle
    value: tuple[Any, ...]

    def at(self, variables: Mapping[str, float]) -> tuple[float, ...]:
        """Its value at given values of the parameters."""
        if not any([isinstance(c, Formula) for c in self.value]):
            return self.value
        return tuple([c.at(variables) if isinstance(c, Formula) else c for c in self.value])


class AngleRecord(NamedTuple):
    """A counted angle as packing keeps it: by serial number, with the template of its record (see layout)."""

    key: str
    serial: int
    ints: bytes
    floats: bytes
    bindings: tuple[tuple[int, int], ...] = ()  # of formulas: position among the floats, and node

    def drawn(self, values: Sequence[float]) -> AngleRecord:
        """The same with other values of the nodes of the book."""
        floats = array("d", self.floats)
        for position, node in self.bindings:
            floats[position] = values[node]
        return self._replace(floats=floats.tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class CountedAngle:
    """An angle whose whole turns are counted: of v, fixed on body b, about x × y, from x towards y, fixed on body a.

    ``key`` names it in :attr:`State.angles`.
    """

    key: str
    _serial: int  # its number within its mechanism
    a: Body
    x: Triple
    y: Triple
    b: Body
    v: Triple

    def features(self) -> tuple[Feature, ...]:
        """What an argument of the kind "angle" reads."""
        x, y, v = ((self.a, self.x), (self.a, self.y), (self.b, self.v))
        vectors = [Feature(FeatureKind.VECTOR, body, value) for body, value in (x, y, v)]
        return (*vectors, Feature(FeatureKind.ANGLE, self, ()))

    def record(self, values: Sequence[float] | None = None) -> AngleRecord:
        """As plain values; values: of the nodes of the book, the drawn ones where none are given."""
        ints = struct.pack("3q", self.a._serial, self.b._serial, 0)
        axes = (*self.x, *self.y, *self.v)
        made = AngleRecord(self.key, self._serial, ints, struct.pack("9d", *plain(axes)), bindings(axes))
        return made if values is None or not made.bindings else made.drawn(values)


class BodyRecord(NamedTuple):
    """A body as analyses read it: plain values, which no edit changes.  ``packed``: its authored pose r, p.

    Mass, center and inertia may have formulas, until the record is ``drawn``; then ``formed`` is True.
    """

    name: str
    serial: int
    packed: bytes
    mass: float
    center: Triple
    inertia: Any
    has_mass: bool
    formed: bool = False

    def drawn(self, nodes: Sequence[float] | None) -> BodyRecord:
        """With numbers in place of formulas; nodes: values of the nodes of the book."""
        return self._replace(formed=False, **{word: drawn_at(getattr(self, word), nodes) for word in MASS_WORDS})

    def rules(self) -> list[Rule]:
        """The checks of its numbers that are formulas."""
        found = [Rule(getattr(self, word), CHECKS[word], f"the {word} of body {self.name!r}") for word in MASS_WORDS]
        return [rule for rule in found if formulas_in(rule.value)]


class Checked(Generic[T]):
    """An attribute of a body that is checked when it is set; the mechanism is then packed again."""

    def __init__(self, checked: Callable[[Any, str], T], text: str) -> None:
        self.checked = checked
        self.__doc__ = text

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, body: Body, owner: type) -> T:
        return self if body is None else getattr(body, f"_{self._name}")

    def __set__(self, body: Body, value: Any) -> None:
        if body.is_ground:
            raise ModelError(f"the {self._name} of the ground cannot be set; move the bodies instead")
        with body._model.lock:
            given = body._with_given(self._name)
            checked = body._with_formulas(self.checked, value, self._name)
            body._model.edit_body(body, {f"_{self._name}": checked, "_given": given})


@explains()
class Body:
    """A rigid part with its authored pose: position r [m] in world, orientation p (w, x, y, z), A(p) body → world.

    Mass [kg], centre of mass [m] in body axes and inertia [kg m²] about it in body axes (None where none was given) are
    stored; kinematics does not use them.  They are given, or follow from the shapes that are attached with a density.
    Where neither is the case, the body is massless.  A body with a mass and no inertia is a point mass.
    Bodies are made by :meth:`cardan.Mechanism.body`; ``mechanism.ground`` is the fixed one.
    """

    __slots__ = (
        "_attachments",
        "_center",
        "_elastic",
        "_given",
        "_inertia",
        "_is_ground",
        "_mass",
        "_model",
        "_name",
        "_orientation",
        "_part",
        "_position",
        "_record",
        "_serial",
    )

    def __init__(
        self,
        model: Any,
        name: str,
        *,
        position: Any = (0.0, 0.0, 0.0),
        orientation: Any = (1.0, 0.0, 0.0, 0.0),
        mass: Any = None,
        inertia: Any = None,
        center: Any = None,
        is_ground: bool = False,
        serial: int = -1,
    ) -> None:
        self._serial = serial  # its number among all ever made by the mechanism; −1 for the ground
        self._model = model  # of the mechanism
        self._name = name
        self._is_ground = is_ground
        self._position = check.vector(position, f"the position of body {name!r}")
        self._orientation = as_quaternion(orientation, f"the orientation of body {name!r}")
        self._mass, self._center, self._inertia = 0.0, (0.0, 0.0, 0.0), None
        self._given: tuple[str, ...] = ()
        if not (mass is inertia is center is None):
            given = (("mass", mass), ("inertia", inertia), ("center", center))
            self._given = tuple([word for word, value in given if value is not None])
        if mass is not None:
            self._mass = 0.0 if is_ground else self._with_formulas(check.mass, mass, "mass")
        if inertia is not None:
            self._inertia = self._with_formulas(check.inertia, inertia, "inertia")
        if center is not None:
            self._center = self._with_formulas(check.vector, center, "center")
        self._attachments: tuple[Attachment, ...] = ()
        self._elastic: Elastic | None = None
        self._part: tuple[str, str, float | None] | None = None  # name, key and density of the CAD part it is made of
        self._pack()

    def _with_formulas(self, checked: Callable[[Any, str], Any], value: Any, word: str) -> Any:
        """A checked value; a mass, a center or an inertia may have formulas, which stay in it."""
        what = f"the {word} of body {self._name!r}"
        if word not in MASS_WORDS or not formulas_in(value):
            return checked(value, what)
        found = QUANTITIES[word](value, what)
        for _, formula in formulas_in(found):
            self._model.check_formula(what, formula)
        if told_of := Rule(found, checked, what).broken(formulas_in(found)[0][1].book.values):
            raise ModelError(told_of)
        return found

    def _with_given(self, word: str) -> tuple[str, ...]:
        """The quantities given, with one more; refused where shapes or a part with a density give the mass."""
        if word not in MASS_WORDS:
            return self._given
        if self._elastic is not None:
            raise ModelError(f"the {word} of body {self.name!r} follows from its modes, {self._elastic.modes!r}")
        if self._part is not None and self._part[2] is not None:
            raise ModelError(
                f"the {word} of body {self.name!r} follows from density={self._part[2]:g} of part {self._part[0]!r}; "
                "add the part with another density=, or without it and with mass=, center= and inertia="
            )
        if any(one.density is not None for one in self._attachments):
            raise ModelError(
                f"the {word} of body {self.name!r} follows from the shapes attached with a density; detach them, or "
                "attach them without density="
            )
        return tuple(dict.fromkeys((*self._given, word)))

    def _snapshot(self) -> dict[str, Any]:
        """The attributes as they are now, for :meth:`_restore`."""
        return {slot: getattr(self, slot) for slot in self.__slots__}

    def _restore(self, snapshot: dict[str, Any]) -> None:
        """Take back edits of the attributes."""
        for slot, value in snapshot.items():
            setattr(self, slot, value)

    def _keep_inertia(self, inertia: Any) -> None:
        """Set an inertia of a file, which may be that of no real body; notes of dynamics say so."""
        has_formulas = formulas_in(inertia)
        checked = self._with_formulas(check.inertia if has_formulas else check.any_inertia, inertia, "inertia")
        self._model.edit_body(self, {"_inertia": checked, "_given": self._with_given("inertia")})

    def _pack(self) -> None:
        """Make the record; every edit ends with it."""
        packed = _pack_pose(*self._position, *self._orientation)
        has_mass = "mass" in self._given
        if self._attachments and not has_mass:
            has_mass = any([one.density is not None for one in self._attachments])
        masses = (self._mass, self._center, self._inertia, has_mass)
        formed = bool(self._model.book.names and formulas_in(masses))
        self._record = BodyRecord(self._name, self._serial, packed, *masses, formed)

    @property
    def name(self) -> str:
        """The name, which does not change."""
        return self._name

    @property
    def owner(self) -> Any:
        """The mechanism it was made by."""
        return self._model.owner

    @property
    def is_ground(self) -> bool:
        """Whether it is the fixed body."""
        return self._is_ground

    @property
    def has_mass(self) -> bool:
        """Whether a mass was given; otherwise the body is massless."""
        return self._record.has_mass

    position = Checked(check.vector, "Authored position r [m] in world.")
    orientation = Checked(as_quaternion, "Authored orientation p, unit quaternion (w, x, y, z); see m.body.")
    mass = Checked(check.mass, "Mass [kg]; 0 of a massless body.  A number, or a formula of parameters.")
    inertia = Checked(
        check.inertia_or_none,
        "Inertia [kg m²] about the centre of mass, body axes; None if not given.  Of numbers or formulas.",
    )
    center = Checked(check.vector, "Centre of mass [m] in body axes.  Of numbers or formulas of parameters.")

    @property
    def fixed(self) -> bool:
        """Whether the body is fixed where it is drawn; may be set.  The ground always is."""
        return self._is_ground or f"{self._name}.fixed" in self._model.joints

    @fixed.setter
    def fixed(self, value: bool) -> None:
        if self._is_ground:
            raise ModelError("the ground is always fixed; set fixed of another body")
        self._model.fix(self, check.flag(value, f"fixed of body {self.name!r}"))

    def authored(self) -> tuple[Any, Any]:
        """The authored pose: position r [m], shape (3,), and A(p) body → world, shape (3, 3)."""
        return np.array(self._position), euler.matrix(np.array(self._orientation))

    @property
    def elastic(self) -> Elastic | None:
        """Its modes and elastic coordinates, if it is flexible."""
        return self._elastic

    def flexible(self, modes: Modes) -> Elastic:
        """Make the body flexible, with modes of :func:`cardan.elastic.beam` or :func:`cardan.elastic.modal_data`.

        Its elastic coordinates are parameters, ``"rod.bending_y_1"``, …, and its points and frames follow the deformed
        body: places are those of the undeformed one.  Mass, centre and inertia are those of the modes.  Joints are
        attached to it afterwards, shapes are not.  ``m.assemble`` solves for the coordinates of least energy,
        ``m.equilibrium`` for those at rest under loads.
        """
        made: Elastic = self._model.make_flexible(self, modes)
        return made

    def point(self, position: Any = (0.0, 0.0, 0.0)) -> Point:
        """A point fixed on this body, at ``position`` [m] in body axes."""
        if self._elastic is not None:
            return Point(self, self._elastic.place(position))
        return Point(self, self._own(check.place(position, f"a point on body {self.name!r}")))

    def frame(self, origin: Any = (0.0, 0.0, 0.0), *, z: Any = (0.0, 0.0, 1.0), x: Any = None) -> Frame:
        """A frame fixed on this body: origin [m], axis z, zero reference x, in body axes.

        x need not be orthogonal to z (its component along z is removed).  If omitted, x depends on z alone, and not on
        its sign: it is the body's x axis where z is orthogonal to that, y where z is ±x, else (2, z₁², z₁ z₂) made
        orthogonal to z.  Equal axes thus have equal x, up to rounding.
        """
        if self._elastic is not None:
            straight = Frame.build(self, check.vector(origin, f"the origin of a frame on body {self.name!r}"), z, x)
            z, turned = self._elastic.axes(straight.origin, straight.z, straight.x)
            f = Frame.build(self, self._elastic.place(straight.origin), z, turned)
            return Frame(self, f.origin, f.x, f.y, f.z, x is not None, f.given_z, f.given_x if x is not None else None)
        return Frame.build(self, origin, z, x)

    def vector(self, *components: Any) -> Direction:
        """A direction fixed on this body, ``body.vector(0, 0, 1)`` in body axes; made of unit length."""
        given = components[0] if len(components) == 1 else components
        if self._elastic is not None:
            raise ModelError(
                f"a vector on flexible body {self.name!r} has no place, so it is not known how it turns; use an axis "
                "of a frame, or a vector on a body that is fixed to it"
            )
        made = self._own(check.direction(given, f"a vector on body {self.name!r}"))
        return Direction(self, made, tuple(given) if _has_formulas(made) else None)

    def _own(self, values: Triple) -> Triple:
        """The same values; ModelError where a formula has parameters of another mechanism, or removed ones."""
        if are_floats(values):
            return values
        for value in values:
            if isinstance(value, Formula):
                self._model.check_formula(f"body {self.name!r}", value)
        return values

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The shapes attached to it, in order."""
        return self._attachments

    def attach(
        self,
        shape: Shape | Geometry | Trimmed,
        frame: Frame | None = None,
        *,
        color: Any = None,
        density: float | None = None,
    ) -> Attachment:
        """Attach a shape, such as ``cd.shapes.box(0.1, 0.2, 0.3)``: its origin and axes in a frame of this body.

        A curve, surface or trimmed face, such as ``cd.geometry.sphere(0.1)``, is for :meth:`cardan.Mechanism.contact`.

        frame: where the shape is; the body's own origin and axes if None.  color: "#rrggbb", or (red, green, blue) or
        (red, green, blue, opacity) from 0 to 1 (0: not drawn); chosen by the viewer if None.
        density [kg/m³]: mass, centre of mass and inertia of the body are then the sums over all shapes that have one;
        they must not be given to ``m.body`` too.
        """
        from cardan.system.attachments import Attachment, checked_color, checked_shape

        what = f"body {self.name!r}" if not self.is_ground else "the ground"
        kept = checked_shape(shape, f"attach of {what}")
        if self._elastic is not None:
            raise ModelError(
                f"attach of {what}, which is flexible: shapes do not deform yet; attach it to a body that is fixed to "
                "a frame of it"
            )
        if frame is None:
            frame = self.frame()
        elif not isinstance(frame, Frame) or frame.body is not self:
            raise ModelError(f"attach of {what} was given the frame {frame!r:.120}; it must be a frame of that body")
        elif any([isinstance(c, Formula) for c in (*frame.origin, *frame.x, *frame.z)]):
            raise ModelError(f"attach of {what} was given a frame with parameters; a shape is fixed: give it numbers")
        paint = checked_color(color, f"the color of a shape on {what}")
        if density is not None:
            density = check.positive(density, f"the density of a shape on {what}", instead="omit it for no mass")
            if self.is_ground:
                raise ModelError("a shape on the ground was given a density; the ground has no mass: omit density=")
        made = Attachment(self, kept, frame, paint, density)
        with self._model.lock:
            if density is not None and self._given:
                words = " and ".join(f"{word}=" for word in self._given)
                raise ModelError(
                    f"a shape on {what} was given density={density}, but {words} was given to the body; omit one of "
                    "them: either the density of its shapes, or numbers, give the mass of a body"
                )
            self._hold((*self._attachments, made), made)
        return made

    def detach(self, attachment: Attachment) -> None:
        """Remove an attached shape, with its mass.  Contacts on it must be removed first."""
        with self._model.lock:
            if attachment not in self._attachments:
                raise ModelError(f"detach of body {self.name!r} got {attachment!r}; it must be one of body.attachments")
            users = self._model.contacts_on(attachment)
            if users:
                told = ", ".join(f"{one.kind.name} {one.name!r}" for one in users)
                raise ModelError(
                    f"detach of body {self.name!r} got {attachment.shape!r:.120}, which is a face of {told}; remove "
                    f"that first, m.remove({users[0].name!r})"
                )
            self._hold(tuple(one for one in self._attachments if one is not attachment), attachment)

    def _hold(self, attachments: tuple[Attachment, ...], changed: Attachment) -> None:
        """Take new attachments; if the mass changes, the mechanism is packed again."""
        if changed.density is None:
            if self._model.collisions:  # which are made of the shapes
                self._model.edit_body(self, {"_attachments": attachments})
            else:
                self._attachments = attachments
            return
        from cardan.system.attachments import mass_of

        has_density = any(one.density is not None for one in attachments)
        mass, center, inertia = mass_of(attachments) if has_density else (0.0, (0.0, 0.0, 0.0), None)
        masses = {"_mass": mass, "_center": center, "_inertia": inertia}
        self._model.edit_body(self, {"_attachments": attachments, **masses})

    def __repr__(self) -> str:
        return f"<Body {self.name!r}>"

    def description(self) -> tuple[Any, ...]:
        """Everything that defines the body, as values that compare; equal bodies have equal descriptions."""
        shapes = tuple(one.description() for one in self._attachments)
        masses = told((self._mass, self._inertia, self._center))
        found = (self.name, self._position, self._orientation, *masses, shapes)
        return found if self._elastic is None else (*found, self._elastic.modes)


@explains()
@read_only("make another one with body.point(…), and joints with it")
@dataclass(frozen=True, slots=True)
class Point:
    """A point fixed on a body, position [m] in body axes."""

    body: Body
    position: Triple

    def feature(self) -> Feature:
        return Feature(FeatureKind.POINT, self.body, self.position)

    def description(self) -> tuple[Any, ...]:
        return "point", self.body.name, told(self.position)


@explains()
@read_only("make another one with body.vector(…), and joints with it")
@dataclass(frozen=True, slots=True)
class Direction:
    """A unit vector fixed on a body, in body axes."""

    body: Body
    components: Triple
    given: Any = field(default=None, compare=False, repr=False)  # before scaling, if it has formulas

    def feature(self) -> Feature:
        return Feature(FeatureKind.VECTOR, self.body, self.components)

    def description(self) -> tuple[Any, ...]:
        return "vector", self.body.name, told(self.components)


@explains()
@read_only("make another one with body.frame(…), and joints with it")
@dataclass(frozen=True, slots=True)
class Frame:
    """A right-handed frame fixed on a body: origin [m] and unit axes in body axes.  z is the axis, x the zero."""

    body: Body
    origin: Triple
    x: Triple
    y: Triple
    z: Triple
    x_given: bool = field(default=True)
    given_z: Any = field(default=None, compare=False, repr=False)  # z and x before scaling, if they have formulas
    given_x: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def build(cls, body: Body, origin: Any, z: Any, x: Any) -> Frame:
        where = f"a frame on body {body.name!r}"
        origin = body._own(check.place(origin, f"the origin of {where}"))
        unit_z = body._own(check.direction(z, f"the axis z of {where}"))
        if x is None:
            unit_x: Triple | None = default_reference(unit_z)
        else:
            unit_x = _orthogonal_part(body._own(check.direction(x, f"the reference x of {where}")), unit_z, where)
        if unit_x is None:
            raise ModelError(f"the reference x of {where} is {x!r}, parallel to its axis z {z!r}; it must not be")
        unit_y = cross(unit_z, unit_x)
        if not _has_formulas((*unit_x, *unit_z)):
            return cls(body, origin, unit_x, unit_y, unit_z, x is not None)
        return cls(body, origin, unit_x, unit_y, unit_z, x is not None, tuple(z), None if x is None else tuple(x))

    def point(self) -> Point:
        """The origin."""
        return Point(self.body, self.origin)

    def feature(self) -> Feature:
        """The origin, as a feature."""
        return Feature(FeatureKind.POINT, self.body, self.origin)

    def axis(self, which: str) -> Feature:
        """The unit axis ``"x"``, ``"y"`` or ``"z"``, as a feature."""
        return Feature(_VECTOR, self.body, getattr(self, which))

    def orientation(self) -> Feature:
        """The quaternion body ← frame, as a feature."""
        return Feature(FeatureKind.ORIENTATION, self.body, self.quaternion())

    def quaternion(self) -> Quadruple:
        """Unit quaternion (w, x, y, z) of the rotation that maps frame axes to body axes."""
        return quaternion_from_columns(self.x, self.y, self.z)

    def description(self) -> tuple[Any, ...]:
        return "frame", self.body.name, told(self.origin), told(self.x), told(self.z), self.x_given


def _has_formulas(values: Sequence[Any]) -> bool:
    return any([isinstance(value, Formula) for value in values])


def default_x(z: Triple) -> Triple:
    """The default of x before its component along z is removed: (2, z₁², z₁ z₂), continuous in z.

    x is the same for z and −z.  It is the body's x axis if z is orthogonal to that, and the y axis if z is ±x.
    No choice is continuous for all z.  This one jumps only at z ∥ (2, z₁², z₁ z₂), which is ±(0.912, 0.379, 0.158): 9°
    from all directions of small integers and of multiples of 15° in the planes of the axes, and 9° from these planes.
    """
    return 2.0, z[0] * z[0], z[0] * z[1]


def default_reference(z: Triple) -> Triple:
    """The unit axis x of a frame for which only its unit axis z is given."""
    if are_floats(z):
        return _float_reference((z[0] + 0.0, z[1] + 0.0, z[2] + 0.0))  # −0 would be found as 0 in the cache
    return _reference(z)


def _reference(z: Triple) -> Triple:
    found = _orthogonal_part(default_x(z), z) or _orthogonal_part((1.0, 0.0, 0.0), z)
    assert found is not None  # no z is parallel to both
    return found


_float_reference = lru_cache(maxsize=1024)(_reference)  # the joints of a mechanism have few different axes


def _orthogonal_part(a: Triple, z: Triple, where: str = "a frame") -> Triple | None:
    along = a[0] * z[0] + a[1] * z[1] + a[2] * z[2]
    x, y, w = a[0] - along * z[0], a[1] - along * z[1], a[2] - along * z[2]
    n: Any = sqrt(x * x + y * y + w * w)
    if number(n) <= PARALLEL_SINE:
        return None
    if isinstance(n, Formula):
        text = f"the reference x of {where} is parallel to its axis z at these values of the parameters; it must not be"
        n.book.require(n, PARALLEL_SINE, math.inf, text)
    x, y, w = x / n, y / n, w / n
    along = x * z[0] + y * z[1] + w * z[2]  # again: the first pass loses digits where a is nearly parallel to z
    x, y, w = x - along * z[0], y - along * z[1], w - along * z[2]
    n = sqrt(x * x + y * y + w * w)
    return x / n, y / n, w / n


def cross(a: Triple, b: Triple) -> Triple:
    """a × b, of numbers or formulas."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def quaternion_from_columns(x: Triple, y: Triple, z: Triple) -> Quadruple:
    """Largest-component method: no loss at any angle.  [Shepperd1978]

    For formulas the component that is largest at the drawn values is kept; it must stay above LEAST_COMPONENT.
    """
    trace = x[0] + y[1] + z[2]
    squares = plain((trace, x[0], y[1], z[2]))
    k = squares.index(max(squares))
    if k == 0:
        q = (1.0 + trace, y[2] - z[1], z[0] - x[2], x[1] - y[0])
    elif k == 1:
        q = (y[2] - z[1], 1.0 + x[0] - y[1] - z[2], x[1] + y[0], z[0] + x[2])
    elif k == 2:
        q = (z[0] - x[2], x[1] + y[0], 1.0 + y[1] - x[0] - z[2], y[2] + z[1])
    else:
        q = (x[1] - y[0], z[0] + x[2], y[2] + z[1], 1.0 + z[2] - x[0] - y[1])
    n: Any = sqrt(sum(c * c for c in q))
    if isinstance(n, Formula):
        text = "a frame is rotated so far from its drawn axes that its quaternion is lost; build it again at the values"
        n.book.require(n, LEAST_COMPONENT, math.inf, text)
    return q[0] / n, q[1] / n, q[2] / n, q[3] / n
