"""Building a mechanism: bodies, joints, contacts, rate rows, loads, parameters; and removing them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from cardan import joints
from cardan.calls import explained, explains
from cardan.constraints.registry import Primitive
from cardan.dynamics import loads
from cardan.dynamics.loads import Load, LoadKind
from cardan.errors import ModelError
from cardan.joints import Joint, JointKind, Role, friction, placing
from cardan.joints.making import OF_ONE, signature_of
from cardan.mechanism import collisions, constraints, contacts, parameters, removing
from cardan.mechanism import loads as _loads
from cardan.mechanism.methods import Methods
from cardan.quantities import InSI, Length
from cardan.system import check
from cardan.system.formulas import Parameter
from cardan.system.parts import Body, Frame, Point
from cardan.system.state import State

if TYPE_CHECKING:
    from cardan.joints.collisions import Collisions
    from cardan.mechanism.model import Model
    from cardan.system.attachments import Attachment

T = TypeVar("T")


def _adds(kind: JointKind[Any]) -> Callable[..., Joint]:
    """A method that adds a joint of that kind: ``m.kind(name, a, b, …)``."""
    given = inspect.signature(kind.build).parameters.values() if kind.role in OF_ONE else ()
    defaults = {p.name: p.default for p in given if p.name in ("lower", "upper")}  # a limit has both bounds

    def method(self: Building, name: str, *args: Any, **options: Any) -> Joint:
        with self._model.lock:
            return self._model.add_joint(kind, name, args, {**defaults, **options})

    return _described(method, kind)


def _exerts(kind: LoadKind[Any]) -> Callable[..., Load]:
    """A method that adds a load of that kind: ``m.kind(name, …)``."""

    def method(self: Building, name: str, /, *args: Any, **options: Any) -> Load:
        with self._model.lock:
            return _loads.add(self._model, kind, name, args, options)

    return _described(method, kind)


def _described(method: Callable[..., T], kind: JointKind[Any] | LoadKind[Any]) -> Callable[..., T]:
    """The method with the name, the text and the arguments of a kind."""
    method.__name__ = kind.name
    method.__qualname__ = f"Mechanism.{kind.name}"
    method.__doc__ = kind.build.__doc__
    of_one = isinstance(kind, JointKind) and kind.role in OF_ONE
    sort = inspect.Parameter.POSITIONAL_OR_KEYWORD if of_one else inspect.Parameter.POSITIONAL_ONLY
    first = [inspect.Parameter(word, sort) for word in ("self", "name")]
    own = signature_of(kind) if isinstance(kind, JointKind) else kind.signature
    options = [*own.parameters.values()]
    if isinstance(kind, JointKind) and kind.name in friction.KINDS.values():
        method.__doc__ = f"{method.__doc__}{friction.TEXT}"
    if isinstance(kind, JointKind) and placing.takes_place(kind):
        method.__doc__ = f"{method.__doc__}{placing.TEXT}"
    result = Joint if isinstance(kind, JointKind) else Load
    signature = inspect.Signature([*first, *options], return_annotation=result)
    method.__signature__ = signature  # type: ignore[attr-defined]
    return explained(method)


@explains()
class Building(Methods):
    """Adds and removes bodies, joints, contacts, rate rows, loads and parameters."""

    _model: Model

    def body(
        self,
        name: str,
        *,
        position: Any = (0.0, 0.0, 0.0),
        orientation: Any = (1.0, 0.0, 0.0, 0.0),
        mass: Any = None,
        inertia: Any = None,
        center: Any = None,
        fixed: bool = False,
    ) -> Body:
        """Add a body with its authored pose; see :class:`cardan.Body`.

        position [m].  orientation: a quaternion (w, x, y, z), a 3×3 matrix, (axis, angle), Euler angles by name such as
        ("xyz", (a, b, c)) (capital letters: about the axes of the body), or a SciPy Rotation.
        mass [kg]: without it the body is massless.  inertia [kg m²]: about the centre of mass, 3×3; or three numbers,
        the moments about the axes of the body; without it, the body is a point mass.  center [m]: of mass, in body
        axes.
        fixed: the body stays where it is drawn; ``body.fixed = False`` frees it.
        """
        if fixed is not False:
            fixed = check.flag(fixed, f"fixed of body {name!r}")
        model = self._model
        with model.lock:
            made = Body(
                model,
                model.new_name(name, "a body"),
                position=position,
                orientation=orientation,
                mass=mass,
                inertia=inertia,
                center=center,
                serial=model.next_serial(),
            )
            return model.keep_body(made, fixed)

    def add(self, item: Any, name: str | None = None, *, density: Any = None, **options: Any) -> Any:
        """Add a part of a CAD file as a body, or an assembly as bodies, at their placements in the file.

        item: a part or an assembly of :func:`cardan.load_step`.  name: of the body; that of the part if None.
        density [kg/m³]: gives mass, centre and inertia; otherwise give them as to :meth:`body`.
        options: of :meth:`body`.  Returns the body, or the list of bodies.
        """
        if not hasattr(item, "add_to"):
            raise ModelError(f"add was given {item!r:.80}; it must be a part or an assembly, from cd.load_step(path)")
        with self._model.as_one():
            return item.add_to(self, name, density, **options)

    def constrain(self, name: str, primitive: Primitive, /, **given: Any) -> Joint:
        """Add a constraint of your own: a primitive made by :func:`cardan.primitive`, with its features and parameters.

        ``m.constrain("level", equal_height, i=a.point(…), j=b.point(…), up=a.vector(0, 0, 1), offset=0.1)``

        motion: what it allows, made by :func:`cardan.joint_motion`, if the primitive has no argument of that name.
        Formulations by joints then solve for its coordinates in place of its equations.
        """
        with self._model.lock:
            return constraints.constrain(self._model, name, primitive, given)

    def knife_edge(self, name: str, frame: Frame, *, relative_to: Body | str | None = None) -> Joint:
        """A blade, wheel or skate: the velocity of the frame's origin along its z axis is zero.

        relative_to: a body, or its name, that the velocity is measured from; None for the ground.
        It constrains velocities alone: assembly ignores it; everything that computes velocities satisfies it.
        """
        with self._model.lock:
            return constraints.knife_edge(self._model, name, frame, relative_to)

    def constrain_rates(
        self, name: str, primitive: Primitive, /, *, value: Callable[[Any], Any] | float | None = None, **given: Any
    ) -> Joint:
        """Add a constraint of velocities of your own: a primitive made by :func:`cardan.rate_primitive`.

        ``m.constrain_rates("blade", blade, i=sled.point(…), axis=sled.vector(0, 1, 0))``.  value [m/s or rad/s]: what
        the row is equal to, a number or a function of time; zero where it is not given.
        """
        with self._model.lock:
            return constraints.constrain_rates(self._model, name, primitive, value, given)

    def contact(
        self,
        name: str,
        face_a: Attachment,
        face_b: Attachment,
        *,
        mode: Literal["slide", "roll", "roll_without_spin"] = "slide",
        side: Literal["outside", "inside", "crossing"] = "outside",
        start: InSI = None,
        jacobian: Literal["exact", "differences"] = "exact",
        query: Any = None,
        **opening: Unpack[contacts.Opening],
    ) -> Joint:
        """Two faces that touch in a point: ``face = body.attach(cd.geometry.sphere(0.1))``.

        Surfaces, trimmed faces, a curve or a point on a surface, or two curves.  It removes one degree of freedom.
        mode: "roll" adds two rows of velocities (one for curves): the bodies do not slip; "roll_without_spin" a third:
        they do not turn about the common normal.  These are the rate row ``f"{name}.roll"``.
        side: "inside" where face_b is within face_a, as a ball in a socket: outward normals are then equal, not
        opposed.  Curves in the xy planes of their frames have a common plane; other curves cross in space, and so do
        all curves with "crossing": the normal is perpendicular to both tangents.
        start: parameters on both faces near which the contact is searched for, if it is not known from a state; it
        chooses one of several contacts.  Contact coordinates are in the states; ``state.contact(name)`` gives point,
        normal, gap and parameters.
        unilateral: False for a contact that never opens; the results note where it pulls.  True for one that only
        pushes: faces touch or are apart, and hit each other in :meth:`simulate`.
        restitution: of a unilateral contact, from 0 to 1: the part of the normal speed that a hit returns.
        friction: of a unilateral contact: a coefficient, or two, (static, kinetic).
        jacobian: "differences" finds the closest points of the faces, and the derivatives by differences, as the papers
        do.  It serves solids and meshes (``body.attach(cd.shapes.sphere(0.1))``), and with ``query`` any object whose
        ``closest_pair(pose)`` gives ``points``, shape (2, 3) [m], on a and b in the axes of face_a, for a pose
        (x, y, z, e0, e1, e2, e3) of face_b relative to face_a.  Such faces are outside each other, with a clearance of
        1e-6 of their size, and slide or roll in assemblies, diagnoses and :meth:`solve_rates`; motions refuse them.
        """
        given = (mode, side, start, jacobian, query, opening)
        with self._model.lock:
            return contacts.contact(self._model, name, face_a, face_b, *given)

    def wheel(self, name: str, frame: Frame, radius: Length, face: Attachment | None = None) -> Joint:
        """A thin disc that rolls without slipping: its centre is the origin of the frame, its axle the z axis.

        radius [m].  face: the surface on which it rolls; without it, the xy plane of the ground.  A short form of
        :meth:`contact` between this face and a circle.
        """
        with self._model.lock:
            return contacts.wheel(self._model, name, frame, radius, face)

    def point_on_surface(self, name: str, point: Point, face: Attachment) -> Joint:
        """A point of a body stays on a surface of another: ``face = body.attach(cd.geometry.torus(1.0, 0.2))``."""
        with self._model.lock:
            return contacts.point_on(self._model, joints.point_on_surface, name, point, face)

    def point_on_curve(self, name: str, point: Point, face: Attachment) -> Joint:
        """A point of a body stays on a curve of another: ``face = body.attach(cd.geometry.ellipse(1.0, 0.5))``."""
        with self._model.lock:
            return contacts.point_on(self._model, joints.point_on_curve, name, point, face)

    def path(
        self,
        name: str,
        frame: Frame,
        face: Attachment,
        *,
        follow: Literal["frenet", "least_turning"] = "least_turning",
        up: InSI = (0.0, 0.0, 1.0),
    ) -> Joint:
        """A frame that follows a curve of another body: one freedom, along the curve.  ``face = body.attach(curve)``.

        Its origin is on the curve, and its x axis along the tangent.  follow: "frenet": y is along the principal
        normal, z along the binormal; the curve must be curved everywhere.  "least_turning": the frame does not rotate
        about the tangent; where the parameter begins, its z axis is along ``up`` (in the frame of the face), as far as
        the tangent allows.  Along a curve in a plane, with ``up`` across it, z stays across.  Round a closed curve in
        space such a frame comes back turned about the tangent, and turns further with each round.
        """
        with self._model.lock:
            return contacts.path(self._model, name, frame, face, follow, up)

    def parameter(
        self, name: str, value: Any, *, lower: Any = None, upper: Any = None, period: Any = None
    ) -> Parameter:
        """Add a design parameter, which can replace any number of a joint, point, frame or vector.

        ``L = m.parameter("L", 1.0); crank.point((L, 0, 0)); m.distance("rod", a, b, 2 * L + 0.1)``.  It is held at its
        value: the results are those of the plain number.  ``L.value = 1.2`` changes the drawing.
        lower, upper: bounds that ``assemble(free=…)`` keeps, and that a new value must be within.
        period: values that differ by it are the same, as 2π of an angle that only appears in ``cd.sin`` and ``cd.cos``;
        ``assemble(free=…)`` then returns the value within half a period of the one that was set.
        """
        with self._model.lock:
            return parameters.add(self._model, name, value, lower, upper, period)

    def adopt(self, state: State) -> None:
        """Make a state the drawing: its poses become the authored poses, its values those of the parameters.

        Whole turns are not part of a drawing.
        """
        with self._model.lock:
            parameters.adopt(self._model, state)

    def collide(
        self,
        bodies: Any = "all",
        *,
        exclude: Any = (),
        margin: Length = 0.0,
        joined: bool = False,
        name: str = "collisions",
        restitution: float = 0.0,
        friction: Any = 0.0,
    ) -> Collisions:
        """Bodies that must not overlap: ``m.collide("all")``, or ``m.collide([a, b, m.ground])``.

        Each body is the union of its attached solids; ``cd.shapes.half_space()`` is all that is below a plane.  Curves
        and surfaces have no inside.  ``"all"`` includes the ground, and bodies that are added later.
        exclude: bodies, and pairs of bodies, that may overlap, also by name: ``exclude=["cover", ("pin", "hub")]``.
        joined: False excludes pairs that a joint, a contact or a coupling joins; ``.excluded`` lists them.
        margin [m]: the least gap.  name: of this set of collisions, for m.remove(name).  If two sets have the same
        pair, the one that was added last decides.
        restitution, friction: of hits between these bodies in :meth:`simulate`, as of :meth:`contact`.
        """
        with self._model.lock:
            return collisions.add(self._model, name, bodies, exclude, margin, joined, (restitution, friction))

    def remove(self, name: str | Body | Joint | Load | Parameter | Collisions, *, joints: bool = False) -> None:
        """Remove a load, a joint, a rate row, a body, a set of collisions, or a parameter that nothing uses.

        joints: also remove the joints, rate rows and loads attached to it; without it, nothing may be attached.
        """
        with self._model.lock:
            removing.remove(self._model, name, joints)


for _kind in joints.REGISTRY.values():
    if _kind.is_between_places or _kind.role in (Role.COUPLING, *OF_ONE):
        setattr(Building, _kind.name, _adds(_kind))
for _load in loads.REGISTRY.values():
    setattr(Building, _load.name, _exerts(_load))
