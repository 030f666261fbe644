"""Mechanism: the public interface.  Each method is a thin call into the layers below."""

from __future__ import annotations

import copy as copying
import inspect
import math
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, Unpack, overload

import numpy as np

from cardan import joints
from cardan.analysis.motion import Motion
from cardan.analysis.result import AssemblyResult
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import GivenRate, Line, Signal
from cardan.constraints.spline import Spline, as_function
from cardan.dynamics import loads
from cardan.dynamics.loads import Load, LoadKind
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint, JointKind, own, placing
from cardan.joints.coordinates import make_counted_angle
from cardan.joints.rate_rows import knife_edge_relation
from cardan.lazy import LazyModule
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.display import DEFAULT, Display
from cardan.system.formulas import Book, Condition, Formula, Parameter, bindings, plain
from cardan.system.html import as_html, table_of
from cardan.system.parts import GROUND, Body, CountedAngle, Direction, Frame, Point
from cardan.system.relations import Bundle, Relation
from cardan.system.state import State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.batch_result import BatchResult
    from cardan.analysis.chunks import Progress
    from cardan.analysis.equilibrium import Equilibrium
    from cardan.analysis.linearise import ConstraintEquations
    from cardan.analysis.options import AssemblyOptions, OptionArguments
    from cardan.analysis.sensitivity import Sensitivity, Tolerances
    from cardan.analysis.simulation import Simulation
    from cardan.analysis.vibration import Linearization
    from cardan.coordinates.formulations import Formulation
    from cardan.diagnosis.freedom import Diagnosis
    from cardan.dynamics.equations import Equations
    from cardan.dynamics.mass import Masses
    from cardan.dynamics.model import Model
    from cardan.dynamics.reactions import Connection
    from cardan.interact.session import Session
    from cardan.system.attachments import Attachment

# Solvers are loaded on first use, so that building a model does not wait for them.
_assemble = LazyModule("cardan.analysis.assemble")
_batch = LazyModule("cardan.analysis.batch")
_contacts = LazyModule("cardan.joints.contacts")
_equations = LazyModule("cardan.dynamics.equations")
_equilibrium = LazyModule("cardan.analysis.equilibrium")
_files = LazyModule("cardan.files.writer")  # of a layer above, which m.save calls
_forces = LazyModule("cardan.dynamics.forces")
_geometry = LazyModule("cardan.geometry")
_forward = LazyModule("cardan.joints.forward")
_freedom = LazyModule("cardan.diagnosis.freedom")
_linearise = LazyModule("cardan.analysis.linearise")
_mass = LazyModule("cardan.dynamics.mass")
_model = LazyModule("cardan.dynamics.model")
_move = LazyModule("cardan.analysis.move")
_options = LazyModule("cardan.analysis.options")
_reactions = LazyModule("cardan.dynamics.reactions")
_sensitivity = LazyModule("cardan.analysis.sensitivity")
_session = LazyModule("cardan.interact.session")
_simulate = LazyModule("cardan.analysis.simulate")
_solve_rates = LazyModule("cardan.analysis.solve_rates")
_vibration = LazyModule("cardan.analysis.vibration")

P = ParamSpec("P")

if TYPE_CHECKING:

    class Item(Body, Joint, Load):  # type: ignore[misc]  # never made
        """What ``m[name]`` may be: editors then offer the members of bodies, joints and loads."""

        a: Any
        b: Any


class _Adds(Protocol[P]):
    """A method that adds a joint, between two frames or points, or between two bodies at a place in the drawing."""

    @overload
    def __call__(self, name: str, /, *args: P.args, **options: P.kwargs) -> Joint: ...
    @overload
    def __call__(
        self, name: str, a: Body, b: Body, /, *options: Any, at: Any = ..., axis: Any = ..., x: Any = ..., **named: Any
    ) -> Joint: ...


def _adds(kind: JointKind[P]) -> _Adds[P]:
    """A method that adds a joint of that kind: ``m.kind(name, a, b, …)``."""

    def method(self: Mechanism, name: str, /, *args: Any, **options: Any) -> Joint:
        return self._add(kind, name, args, options)

    _describe(method, kind, Joint)
    made: Any = method
    return made  # type: ignore[no-any-return]


def _exerts(kind: LoadKind[P]) -> Callable[Concatenate[Mechanism, str, P], Load]:
    """A method that adds a load of that kind: ``m.kind(name, …)``."""

    def method(self: Mechanism, name: str, /, *args: P.args, **options: P.kwargs) -> Load:
        return self._add_load(kind, name, args, options)

    _describe(method, kind, Load)
    return method


def _describe(method: Any, kind: JointKind[Any] | LoadKind[Any], result: type) -> None:
    """Give a method the name, the text and the arguments of a kind."""
    method.__name__ = kind.name
    method.__qualname__ = f"Mechanism.{kind.name}"
    method.__doc__ = kind.build.__doc__
    built = inspect.signature(kind.build)
    first = [inspect.Parameter(word, inspect.Parameter.POSITIONAL_ONLY) for word in ("self", "name")]
    options = [p for p in built.parameters.values() if p.name != "own"]
    if isinstance(kind, JointKind) and placing.takes_place(kind):
        method.__doc__ = f"{method.__doc__}{placing.TEXT}"
        options += [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=None) for word in placing.WORDS]
    method.__signature__ = inspect.Signature([*first, *options], return_annotation=result)


class Mechanism:
    """Bodies, the joints between them, and the loads on them.  All share one set of names.

    Add bodies with :meth:`body`, joints with :meth:`revolute`, :meth:`spherical`, …, loads with :meth:`spring`,
    :meth:`force`, …, then :meth:`assemble`, :meth:`move`, :meth:`simulate` or :meth:`diagnose`.  Only dynamics uses
    ``gravity`` [m/s²] and loads.  ``poses`` are states to be saved with it: ``m.poses["open"] = result.state``.
    """

    if not TYPE_CHECKING:  # checkers know the attributes

        def __setattr__(self, name: str, value: Any) -> None:
            if not (name.startswith("_") or name in SETTABLE or hasattr(type(self), name)):
                raise check.unknown(name, f"attribute of mechanism {self.name!r} that can be set", SETTABLE)
            object.__setattr__(self, name, value)

    def __init__(self, name: str = "mechanism", *, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self._name = check.name(name, "the mechanism")
        self._gravity = check.vector(gravity, f"the gravity of mechanism {name!r}")
        self._ground = Body(self, GROUND, mass=0.0, is_ground=True)
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, Joint] = {}
        self._loads: dict[str, Load] = {}
        self._display = DEFAULT
        self._rate_rows: dict[str, Joint] = {}
        self._system: System | None = None
        self._edits = 0
        self._serials = 0
        self.poses: dict[str, State] = {}
        self._source: Any = None  # of a mechanism that was read from a file: its units, names and expressions
        self._parameters: dict[str, Parameter] = {}
        self._book = Book()
        self._drawn: dict[str, float] = {}  # values of the parameters
        self._used: tuple[list[int], list[Condition]] | None = None  # nodes of the formulas in use, their conditions
        self._elsewhere: _Elsewhere | None = None  # the system at the values of the last state that had others

    def _next_serial(self) -> int:
        """A number for a body or a counted angle, never given twice: packing knows them by it."""
        own = self.__dict__  # as in _touch
        own["_serials"] += 1
        return int(own["_serials"]) - 1

    # -- building ------------------------------------------------------------------------------------------------------

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
        fixed: the body stays where it is drawn; ``body.fixed = False`` frees it.
        """
        fixed = check.flag(fixed, f"fixed of body {name!r}")
        name = self._new_name(name, "a body")
        made = Body(
            self,
            name,
            position=position,
            orientation=orientation,
            mass=mass,
            inertia=inertia,
            center=center,
            serial=self._next_serial(),
        )
        self._bodies[name] = made
        self._touch()
        if fixed:
            self._fix(made, True)
        return made

    def add(self, item: Any, name: str | None = None, *, density: Any = None, **options: Any) -> Any:
        """Add a part of a CAD file as a body, or an assembly as bodies, at their placements in the file.

        item: a part or an assembly of :func:`cardan.load_step`.  name: of the body; that of the part if None.
        density [kg/m³]: gives mass, centre and inertia; otherwise give them as to :meth:`body`.
        options: of :meth:`body`.  Returns the body, or the list of bodies.
        """
        if not hasattr(item, "add_to"):
            raise ModelError(f"add was given {item!r:.80}; it must be a part or an assembly, from cd.load_step(path)")
        return item.add_to(self, name, density, **options)

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
        name = self._new_name(name, "a parameter")
        start = check.number(value, f"the value of parameter {name!r}")
        low = -math.inf if lower is None else check.number(lower, f"lower of parameter {name!r}")
        high = math.inf if upper is None else check.number(upper, f"upper of parameter {name!r}")
        if not low < high:
            raise ModelError(f"lower of parameter {name!r} is {low} and upper is {high}; lower must be below upper")
        _check_bounds(name, start, low, high)
        own = 0.0 if period is None else check.positive(period, f"period of parameter {name!r}")
        if own and (lower is not None or upper is not None):
            raise ModelError(f"parameter {name!r} was given bounds and a period; give one of them")
        number = self._book.add(name, start, (low, high), own)
        made = Parameter(self, name, self._book, self._book.nodes[number])
        self._parameters[name] = made
        self._drawn = self._book.drawn()
        self._touch()
        return made

    def _set_parameter(self, parameter: Parameter, value: Any) -> None:
        """Change a drawn value; the packed system is measured again when it is next needed."""
        name = parameter.name
        if self._parameters.get(name) is not parameter:
            raise ModelError(f"parameter {name!r} was removed from mechanism {self.name!r}; it has no value to set")
        number = check.number(value, f"the value of parameter {name!r}")
        _check_bounds(name, number, parameter.lower, parameter.upper)
        self._redraw({**self._drawn, name: number})

    def _redraw(self, drawn: dict[str, float]) -> None:
        book = self._book
        values = book.evaluate(drawn)
        book.check(values, *self._formulas())
        book.values, self._drawn = values, drawn
        book.periods = [(period, values[node]) for (period, _), node in zip(book.periods, book.nodes, strict=True)]

    def _formulas(self) -> tuple[list[int], list[Condition]]:
        """Nodes of the formulas that joints and loads use, and their conditions; kept until the next edit."""
        if self._used is None:
            items: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values(), *self._loads.values()]
            nodes = [node for item in items for node in _nodes_of(item)]
            self._used = nodes, self._book.conditions_of(nodes)
        return self._used

    def _check_formula(self, what: str, formula: Formula) -> None:
        """ModelError where a formula is of another mechanism, or where a parameter of it was removed."""
        if formula.book is not self._book:
            raise ModelError(f"{what} was given {formula!r} of another mechanism; use a parameter of {self.name!r}")
        if self._book.is_removed(formula.index):
            raise ModelError(f"{what} was given {formula!r}, whose parameter was removed")

    def _check_all_bounds(self, values: Mapping[str, float]) -> None:
        """ModelError if a parameter has a value beyond its bounds."""
        for name, value in values.items():
            _check_bounds(name, value, self._parameters[name].lower, self._parameters[name].upper)

    def _values_of(self, state: State) -> dict[str, float]:
        """Values of all parameters in a state: the drawn one of a parameter that the state does not have."""
        return {name: state.variables.get(name, value) for name, value in self._drawn.items()}

    def _at(self, start: Any) -> Any:
        """A context in which the drawing has the parameter values of a state."""
        if start is None or not self._parameters or not isinstance(start, State) or start.is_drawn_at(self._drawn):
            return _HERE
        drawn = self._values_of(start)
        if drawn == self._drawn:
            return _HERE
        if self._elsewhere is None or self._elsewhere.drawn != drawn:
            values = self._book.evaluate(drawn)
            try:
                self._check_all_bounds(drawn)
                self._book.check(values, *self._formulas())
            except ModelError as error:
                raise ModelError(f"the parameters of the state are not valid: {error}") from None
            self._elsewhere = _Elsewhere(self, drawn, values, None)
        return self._elsewhere

    fixed = _adds(joints.fixed)
    revolute = _adds(joints.revolute)
    prismatic = _adds(joints.prismatic)
    cylindrical = _adds(joints.cylindrical)
    spherical = _adds(joints.spherical)
    universal = _adds(joints.universal)
    planar = _adds(joints.planar)
    distance = _adds(joints.distance)
    angle = _adds(joints.angle)
    parallel = _adds(joints.parallel)
    perpendicular = _adds(joints.perpendicular)
    point_on_line = _adds(joints.point_on_line)
    point_in_plane = _adds(joints.point_in_plane)
    screw = _adds(joints.screw)
    constant_velocity = _adds(joints.constant_velocity)
    orientation = _adds(joints.orientation)
    line_distance = _adds(joints.line_distance)
    plane_distance = _adds(joints.plane_distance)

    gear = _adds(joints.gear)
    rack = _adds(joints.rack)
    belt = _adds(joints.belt)
    couple = _adds(joints.couple)

    spring = _exerts(loads.spring)
    friction = _exerts(loads.friction)
    actuator = _exerts(loads.actuator)
    force = _exerts(loads.force)
    torque = _exerts(loads.torque)
    bushing = _exerts(loads.bushing)

    def drive(
        self,
        name: str,
        coordinate: Joint | Coordinate,
        function: Callable[[Any], Any] | float,
        *,
        of: str | None = None,
    ) -> Joint:
        """Make a coordinate follow a function of time [s]: ``m.drive("motor", hinge, lambda t: 2 * cd.pi * t)``.

        coordinate: a joint, or a coordinate made by :func:`cardan.coordinate`; of: which of a joint that has several.
        function: with operators and cd.sin, cd.sqrt, … in metres, or in radians with whole turns; or a constant number.
        """
        return self._add(joints.drive, name, (self._chosen(f"drive {name!r}", coordinate, of), function), {})

    def limit(
        self,
        name: str,
        coordinate: Joint | Coordinate,
        *,
        lower: float = -math.inf,
        upper: float = math.inf,
        of: str | None = None,
    ) -> Joint:
        """Keep a coordinate within bounds, in metres or radians; either bound may be omitted."""
        chosen = self._chosen(f"limit {name!r}", coordinate, of)
        return self._add(joints.limit, name, (chosen,), {"lower": lower, "upper": upper})

    def constrain(self, name: str, primitive: Primitive, /, **given: Any) -> Joint:
        """Add a constraint of your own: a primitive made by :func:`cardan.primitive`, with its features and parameters.

        ``m.constrain("level", equal_height, i=a.point(…), j=b.point(…), up=a.vector(0, 0, 1), offset=0.1)``

        motion: what it allows, made by :func:`cardan.joint_motion`, if the primitive has no argument of that name.
        Formulations by joints then solve for its coordinates in place of its equations.
        """
        name = self._new_name(name, "a constraint")
        kind = own.checked(primitive, f"constraint {name!r}")
        what = f"constraint {name!r} (primitive {kind.name!r})"
        names = (*(argument.name for argument in kind.arguments), *kind.parameters)
        motion = given.pop("motion", None) if "motion" not in names else None
        try:
            ends, relation = own.resolved(kind, given, self._coordinate)
            edge = None if motion is None else own.edge_of(motion, relation)
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
        for end in ends:
            for body in end.bodies if isinstance(end, Coordinate) else (end.body,):
                self._check_body(what, body)
        if not relation.bodies:
            raise ModelError(f"{what} is on the ground alone; at least one feature must be on a movable body")
        on_bodies = {feature.body for feature in relation.features if isinstance(feature.body, Body)}
        if len(on_bodies) == 1 and kind.indifferent:
            raise ModelError(
                f"{what} is on body {relation.bodies[0].name!r} alone, and no motion of this body changes it; a "
                "constraint needs two different bodies, of which one may be the ground"
            )
        for value in relation.parameters:
            if isinstance(value, Formula):
                self._check_formula(what, value)
        values = list(zip(kind.parameters, relation.parameters, strict=True))
        if edge is not None and motion is not None:
            values.append(("motion", (edge.own, motion.a.description(), motion.b.description())))
        return self._keep(Joint(name, joints.constrain, ends, (("primitive", kind), *values), (relation,), edge=edge))

    def knife_edge(self, name: str, frame: Frame, *, relative_to: Body | None = None) -> Joint:
        """A blade, wheel or skate: the velocity of the frame's origin along its z axis is zero.

        relative_to: a body that the velocity is measured from; None for the ground.
        It constrains velocities alone: assembly ignores it; everything that computes velocities satisfies it.
        """
        name = self._new_name(name, "a knife edge")
        what = f"knife_edge {name!r}"
        self._check_end(what, "frame", frame)
        if relative_to is not None and not isinstance(relative_to, Body):
            raise ModelError(f"{what}: relative_to is {relative_to!r}; it must be a body, such as m[name]")
        if relative_to is not None:
            self._check_body(what, relative_to)
        try:
            relation = knife_edge_relation(frame, relative_to)
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
        if not relation.bodies:
            raise ModelError(f"{what} is on the ground, which does not move; the frame must be on a movable body")
        other = None if relative_to is None or relative_to.is_ground else relative_to.frame()
        ends = (frame,) if other is None else (other, frame)
        return self._keep_rate_row(Joint(name, joints.knife_edge, ends, (), (relation,)))

    def constrain_rates(
        self, name: str, primitive: Primitive, /, *, value: Callable[[Any], Any] | float | None = None, **given: Any
    ) -> Joint:
        """Add a constraint of velocities of your own: a primitive made by :func:`cardan.rate_primitive`.

        ``m.constrain_rates("blade", blade, i=sled.point(…), axis=sled.vector(0, 1, 0))``.  value [m/s or rad/s]: what
        the row is equal to, a number or a function of time; zero where it is not given.
        """
        name = self._new_name(name, "a rate row")
        kind = own.checked(primitive, f"rate row {name!r}", of_rates=True)
        what = f"rate row {name!r} (primitive {kind.name!r})"
        signal = None
        if value is not None:
            if kind.rows != 1:
                raise ModelError(f"{what} was given a value, but has {kind.rows} rows; a value belongs to one row")
            if not callable(value):
                value = check.number(value, f"{what}: the value, if not a function of time,")
            signal = GivenRate(Signal(name, value))
            signal.signal.some_value()
        try:
            ends, relation = own.resolved(kind, given, self._coordinate, signal)
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
        for end in ends:
            for body in end.bodies if isinstance(end, Coordinate) else (end.body,):
                self._check_body(what, body)
        if not relation.bodies:
            raise ModelError(f"{what} is on the ground alone; at least one feature must be on a movable body")
        values: list[tuple[str, Any]] = list(zip(kind.parameters, relation.parameters, strict=False))
        if signal is not None:
            values.append(("value", signal))
        made = Joint(name, joints.constrain_rates, ends, (("primitive", kind), *values), (relation,))
        return self._keep_rate_row(made)

    def contact(
        self,
        name: str,
        face_a: Attachment,
        face_b: Attachment,
        *,
        mode: Literal["slide", "roll", "roll_without_spin"] = "slide",
        side: Literal["outside", "inside", "crossing"] = "outside",
        start: tuple[Any, Any] | None = None,
        jacobian: Literal["exact", "differences"] = "exact",
        query: Any = None,
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
        jacobian: "differences" finds the closest points of the faces, and the derivatives by differences, as the papers
        do.  It serves solids and meshes (``body.attach(cd.shapes.sphere(0.1))``), and with ``query`` any object whose
        ``closest_pair(pose)`` gives ``points``, shape (2, 3) [m], on a and b in the axes of face_a, for a pose
        (x, y, z, e0, e1, e2, e3) of face_b relative to face_a.  Such faces are outside each other, with a clearance of
        1e-6 of their size, and slide or roll in assemblies, diagnoses and :meth:`solve_rates`; motions refuse them.
        """
        name = self._new_name(name, "a contact")
        what = f"contact {name!r}"
        check.choice(mode, f"{what}: mode", ("slide", "roll", "roll_without_spin"))
        check.choice(side, f"{what}: side", ("outside", "inside", "crossing"))
        check.choice(jacobian, f"{what}: jacobian", ("exact", "differences"))
        if jacobian == "differences":
            near = _contacts.closest_pair(what, (face_a, face_b), side, mode, start, query)
            ends = (face_a.frame, face_b.frame)
            given = (("mode", mode), ("jacobian", jacobian))
            return self._add_contact(joints.contact, name, near, ends, mode, given)
        if query is not None:
            raise ModelError(f"{what} was given a query, which needs jacobian='differences'")
        pair = _contacts.pair_of(what, (face_a, face_b), side, mode, start)
        options: tuple[tuple[str, Any], ...] = (("mode", mode), ("side", side))
        if start is not None:
            options += (("start", pair.in_order(pair.start)),)
        return self._add_contact(joints.contact, name, pair, (face_a.frame, face_b.frame), mode, options)

    def wheel(self, name: str, frame: Frame, radius: float, face: Attachment | None = None) -> Joint:
        """A thin disc that rolls without slipping: its centre is the origin of the frame, its axle the z axis.

        radius [m].  face: the surface on which it rolls; without it, the xy plane of the ground.  A short form of
        :meth:`contact` between this face and a circle.
        """
        self._check_end(f"wheel {name!r}", "frame", frame)
        name = self._new_name(name, "a wheel")
        radius = check.positive(radius, f"the radius of wheel {name!r}")
        road = self._ground.attach(_geometry.plane()) if face is None else face
        disc = frame.body.attach(_geometry.circle(radius), frame)
        try:
            return self.contact(name, road, disc, mode="roll")
        except ModelError:
            frame.body.detach(disc)
            if face is None:
                self._ground.detach(road)
            raise

    def point_on_surface(self, name: str, point: Point, face: Attachment) -> Joint:
        """A point of a body stays on a surface of another: ``face = body.attach(cd.geometry.torus(1.0, 0.2))``."""
        name = self._new_name(name, "a point on a surface")
        return self._add_point(joints.point_on_surface, name, point, face, 2)

    def point_on_curve(self, name: str, point: Point, face: Attachment) -> Joint:
        """A point of a body stays on a curve of another: ``face = body.attach(cd.geometry.ellipse(1.0, 0.5))``."""
        name = self._new_name(name, "a point on a curve")
        return self._add_point(joints.point_on_curve, name, point, face, 1)

    def path(
        self,
        name: str,
        frame: Frame,
        face: Attachment,
        *,
        follow: Literal["frenet", "least_turning"] = "least_turning",
        up: Any = (0.0, 0.0, 1.0),
    ) -> Joint:
        """A frame that follows a curve of another body: one freedom, along the curve.  ``face = body.attach(curve)``.

        Its origin is on the curve, and its x axis along the tangent.  follow: "frenet": y is along the principal
        normal, z along the binormal; the curve must be curved everywhere.  "least_turning": the frame does not rotate
        about the tangent; where the parameter begins, its z axis is along ``up`` (in the frame of the face), as far as
        the tangent allows.  Along a curve in a plane, with ``up`` across it, z stays across.  Round a closed curve in
        space such a frame comes back turned about the tangent, and turns further with each round.
        """
        name = self._new_name(name, "a path")
        what = f"path {name!r}"
        self._check_end(what, "frame", frame)
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
        return self._add_contact(joints.path, name, pair, (frame, face.frame), "slide", options)

    def _add_point(self, kind: JointKind[Any], name: str, point: Any, face: Attachment, freedoms: int) -> Joint:
        what = f"{kind.name} {name!r}"
        self._check_end(what, "point", point)
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
        return self._add_contact(kind, name, pair, ends, "slide", ())

    def _add_contact(
        self,
        kind: JointKind[Any],
        name: str,
        pair: Any,
        ends: tuple[Frame, Frame],
        mode: Any,
        options: tuple[tuple[str, Any], ...],
    ) -> Joint:
        what = f"{kind.name} {name!r}"
        for end in ends:
            self._check_body(what, end.body)
        if ends[0].body is ends[1].body:
            raise ModelError(f"{what} connects body {ends[0].body.name!r} to itself; it needs two different bodies")
        frames = ends[::-1] if pair.exchanged else ends
        coordinates = _contacts.coordinates_of(name, pair, frames, self)
        touching, rolling = _contacts.relations(pair, frames, coordinates, mode)
        parameters = (*options, ("shapes", pair.description()))
        if rolling is not None:
            rate = self._new_name(f"{name}.roll", "the rolling of a contact")
            self._keep_rate_row(Joint(rate, joints.rolling, ends, parameters, (rolling,)))
        return self._keep(Joint(name, kind, ends, parameters, (touching,)))

    def _keep_rate_row(self, made: Joint) -> Joint:
        self._rate_rows[made.name] = made
        self._touch()
        return made

    def _add(self, kind: JointKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Joint:
        name = self._new_name(name, kind.label)
        what = f"{kind.name} {name!r}"
        try:
            ends, rest, named = self._ends(what, kind, args, options)
            if "function" in kind.options:
                rest = tuple(as_function(value) for value in rest)
                named = {word: as_function(value) if word == "function" else value for word, value in named.items()}
            angles: tuple[tuple[str, CountedAngle], ...] = ()
            for word, rule in kind.coordinates.items():
                sort, features = rule(*ends)
                if sort == "angle":
                    counted = make_counted_angle(self._angle_key(kind, name, word), self, features)
                    angles = (*angles, (word, counted))
            extra: dict[str, Any] = {}
            if kind.own:
                bare = Joint(name, kind, ends, (), (), angles)
                extra["own"] = {w: bare.of(w) for w in kind.coordinates} if kind.coordinates else name
            for value in (*rest, *named.values()):
                if isinstance(value, Formula):
                    self._check_formula(what, value)
            with self._book.making(what):
                relations = tuple(kind.build(*ends, *rest, **named, **extra))
        except ModelError as error:
            text = str(error)
            raise ModelError(text if text.startswith(what) else f"{what}: {text}") from None
        except TypeError as error:
            raise ModelError(f"{what}: {error}; see help(Mechanism.{kind.name})") from None
        values: tuple[tuple[str, Any], ...] = ()
        if rest or named:
            values = _recorded_values((*zip(kind.options, rest, strict=False), *named.items()), relations[0])
        edge = kind.edge(ends, relations, angles, rest, named)
        made = Joint(name, kind, ends, values, relations, angles, edge)
        spline = dict(values).get("function") if kind is joints.couple else None
        if isinstance(spline, Spline) and not spline.is_periodic:
            lower, upper = spline.range
            self._add(joints.limit, f"{name}.range", ends[:1], {"lower": lower, "upper": upper})
        return self._keep(made)

    def _add_load(self, kind: LoadKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Load:
        name = self._new_name(name, check.with_article(kind.name))
        what = f"{kind.name} {name!r}"
        try:
            bound = kind.signature.bind(*args, **options)
        except TypeError as error:
            raise ModelError(f"{what}: {error}; see help(Mechanism.{kind.name})") from None
        bound.apply_defaults()
        named = dict(bound.arguments)
        given = [named.pop(word) for word in list(named)[: len(kind.takes)]]
        ends = [self._load_end(what, given[0], kind.takes[0], named.get("of"))]
        if isinstance(ends[0], Coordinate) and len(given) > 1 and given[1] is not None:
            raise ModelError(f"{what} was given {given[1]!r} after {ends[0]!r}; a second point belongs to a point")
        if not isinstance(ends[0], Coordinate):
            ends += [
                self._load_end(what, end, takes, None) for end, takes in zip(given[1:], kind.takes[1:], strict=True)
            ]
        try:
            made = loads.make(kind, name, tuple(ends), named)
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
        self._loads[name] = made
        self._touch()
        return made

    def _load_end(self, what: str, given: Any, takes: str, of: str | None) -> Any:
        """What a load acts on, checked: a coordinate, a point, a frame or a body."""
        if "coordinate" in takes and not (takes != "coordinate" and isinstance(given, Frame | Point)):
            chosen = self._chosen(what, given, of)
            for body in chosen.bodies:
                self._check_body(what, body)
            return chosen
        if of is not None:
            raise ModelError(f"{what} was given of={of!r} with {given!r}; of= chooses a coordinate of a joint: omit it")
        if takes != "body":
            self._check_end(what, "frame" if takes == "frame" else "point", given)
        elif not isinstance(given, Body):
            raise ModelError(f"{what} was given {given!r}; it must be a body, such as m[name]")
        else:
            self._check_body(what, given)
        return given

    def _angle_key(self, kind: JointKind[Any], name: str, word: str) -> str:
        """Key of an angle in states: the name of its joint, and of the coordinate where that is not "angle"."""
        key = name if word == "angle" else f"{name}.{word}"
        of, _, other = name.rpartition(".")
        taken = ""
        if of in self._joints and other in self._joints[of].kind.coordinates:
            taken = f"that is a coordinate of joint {of!r}"
        elif key != name and key in self._joints:
            taken = f"its {word} is {key!r}, which is a joint"
        if taken:
            raise ModelError(f"{kind.label} cannot be named {name!r}: {taken}")
        return key

    def _keep(self, made: Joint) -> Joint:
        self._joints[made.name] = made
        self._touch()
        return made

    def _ends(
        self, what: str, kind: JointKind[Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any]]:
        """The ends of a joint, checked, and what is left of its arguments."""
        count = len(kind.takes)
        named = dict(options)
        args = self._placed(kind, args, named)
        ends = [*args[:count], *[named.pop(word) for word in kind.ends[len(args) :] if word in named]]
        if len(ends) < count:
            missing = ", ".join(map(repr, kind.ends[len(ends) :]))
            raise ModelError(f"{what} was not given {missing}; see help(Mechanism.{kind.name})")
        for k, takes in enumerate(kind.takes):
            if takes in ("frame", "point"):
                self._check_end(what, takes, ends[k])
            else:
                ends[k] = self._coordinate(ends[k], takes)
                for body in ends[k].bodies:
                    self._check_body(what, body)
        if count == 2 and isinstance(ends[0], Frame | Point) and ends[0].body is ends[1].body:
            body = ends[0].body.name
            raise ModelError(f"{what} connects body {body!r} to itself; a joint needs two different bodies")
        if count == 2 and isinstance(ends[0], Coordinate) and ends[0].features == ends[1].features:
            raise ModelError(f"{what} couples {ends[0]!r} with itself; a coupling needs two different coordinates")
        return tuple(ends), args[count:], named

    def _placed(self, kind: JointKind[Any], args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments, with frames in place of bodies if the joint is placed in the drawing: at=, axis=, x=."""
        ends = (*args[:2], *[named[word] for word in kind.ends[len(args) : 2] if word in named])
        if not placing.is_placed(kind, ends, named):
            return args
        for end in ends:
            if isinstance(end, Body):
                self._check_body("it", end)
        if len(ends) < 2:
            return args
        for word in kind.ends[len(args) : 2]:
            del named[word]
        return (*placing.frames(kind, ends[0], ends[1], named), *args[2:])

    def _check_end(self, what: str, takes: str, end: Any) -> None:
        frame_only = takes == "frame"
        valid = "a frame (body.frame(…))" if frame_only else "a point or frame (body.point(…), body.frame(…))"
        if not isinstance(end, Frame if frame_only else Frame | Point):
            raise ModelError(f"{what} was given {end!r}; it must be {valid}")
        self._check_body(what, end.body)

    def _coordinate(self, given: Any, kind: str) -> Coordinate:
        """The coordinate meant by a joint that has one of that kind ("" for any), or by a coordinate."""
        if isinstance(given, Coordinate):
            if kind and given.kind != kind:
                raise ModelError(f"{given!r} was given where {check.with_article(kind)} is needed")
            if given.joint and not self._is_current(given):
                raise ModelError(f"{given!r} was given, but its joint was removed; take that of the new joint")
            return given
        if not isinstance(given, Joint):
            way = f"; pass the joint itself, m[{given!r}]" if isinstance(given, str) and given in self._joints else ""
            raise ModelError(f"{given!r} was given; it must be a joint, or a coordinate made by cd.coordinate(…){way}")
        self._coordinate_owner(given)
        every = [given.of(word) for word in given.kind.coordinates]
        found = [coordinate for coordinate in every if not kind or coordinate.kind == kind]
        if len(found) != 1:
            words = ", ".join(repr(c.name) for c in found) if found else "none"
            wanted = check.with_article(kind) if kind else "a coordinate"
            way = "choose one with joint.of(name)" if found else "take one with cd.coordinate(frame_a, frame_b, of)"
            raise ModelError(f"joint {given.name!r} ({given.kind.name}) was given for {wanted}; it has {words}: {way}")
        return found[0]

    def _chosen(self, what: str, given: Any, of: str | None) -> Coordinate:
        """The coordinate of a joint by name, or its only one."""
        try:
            if of is not None and isinstance(given, Joint):
                self._coordinate_owner(given)
                return given.of(of)
            if of is not None and isinstance(given, Coordinate) and given.name != of:
                raise ModelError(f"{given!r} was given with of={of!r}; omit of=, since this is a coordinate already")
            return self._coordinate(given, "")
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None

    def _is_current(self, coordinate: Coordinate) -> bool:
        """Whether a coordinate's joint still exists; those of other mechanisms are refused later, by their bodies."""
        if coordinate.a.body.owner is not self:
            return True
        joint = self._joints.get(coordinate.joint)
        if joint is None or coordinate.name not in joint.kind.coordinates:
            return False
        found = joint.of(coordinate.name)
        return found.features == coordinate.features and found.counted is coordinate.counted

    def _coordinate_owner(self, joint: Joint) -> None:
        if self._joints.get(joint.name) is not joint:
            raise ModelError(f"{joint!r} is not, or no longer, a joint of mechanism {self.name!r}")

    def _check_own(self, what: str, item: Any) -> None:
        """ModelError if a body, joint or coordinate is of another mechanism, or was removed; names are not checked."""
        if isinstance(item, Body):
            self._check_body(what, item)
        elif isinstance(item, Joint) and self._joints.get(item.name, self._rate_rows.get(item.name)) is not item:
            raise ModelError(f"{what} was given {item!r}, which is not, or no longer, of mechanism {self.name!r}")
        elif isinstance(item, Coordinate):
            for body in item.bodies:
                self._check_body(what, body)
            if item.joint and not self._is_current(item):
                raise ModelError(f"{what} was given {item!r}, but its joint was removed; take that of the new joint")

    def _check_start(self, what: str, start: Any) -> None:
        """ModelError if poses are given by bodies of another mechanism."""
        if isinstance(start, Mapping) and not isinstance(start, State):
            for body in start:
                self._check_own(what, body)

    def _check_body(self, what: str, body: Body) -> None:
        if body is self._ground or self._bodies.get(body.name) is body:
            return
        if body.owner is not self:
            other = getattr(body.owner, "name", "?")
            raise ModelError(
                f"{what} was given body {body.name!r} of another mechanism ({other!r}), or a frame, point or face on "
                f"it; use the {body.name!r} of {self.name!r}, m[{body.name!r}]"
            )
        raise ModelError(f"{what} was given body {body.name!r}, which was removed, or a frame, point or face on it")

    def _new_name(self, given: Any, what: str) -> str:
        name = check.name(given, what)
        if name == GROUND:
            raise ModelError(f"{what} cannot be named {name!r}: that is the fixed body")
        if self._has(name):
            kinds: dict[str, Mapping[str, Any]] = {
                "body": self._bodies,
                "joint": self._joints,
                "load": self._loads,
                "rate row": self._rate_rows,
                "parameter": self._parameters,
            }
            taken = next(word for word, items in kinds.items() if name in items)
            raise ModelError(f"{what} cannot be named {name!r}: there is a {taken} of that name; choose another")
        return name

    def remove(self, name: str | Body | Joint | Load | Parameter, *, joints: bool = False) -> None:
        """Remove a load, a joint, a rate row, a body, or a parameter that nothing uses.

        joints: also remove the joints, rate rows and loads attached to it; without it, nothing may be attached.
        """
        if not isinstance(name, str | Body | Joint | Load | Parameter):
            raise ModelError(
                f"remove was given {name!r}; it must be a body, a joint, a load, a parameter, or the name of one"
            )
        key = name if isinstance(name, str) else name.name
        mine = self._ground if key == GROUND else self._item(key)
        if not isinstance(name, str) and mine is not name:
            raise ModelError(f"{name!r} is of another mechanism, not of {self.name!r}; remove it there, or by name")
        if key == GROUND:
            raise ModelError("the ground cannot be removed")
        if mine is None:
            raise check.unknown(key, "body, joint, load or parameter", self)
        others: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values(), *self._loads.values()]
        if isinstance(mine, Joint):
            users = [item.name for item in others if key in item.joints]
            self._joints.pop(f"{key}.range" if not users and mine.kind.name == "couple" else "", None)
            if not users and mine.kind.name == "contact":
                self._rate_rows.pop(f"{key}.roll", None)
            if mine.kind.name == "rolling":
                raise ModelError(f"{key!r} is the rolling of contact {key.removesuffix('.roll')!r}; remove the contact")
            text = f"joint {key!r} has a coordinate that {', '.join(map(repr, users))} act on"
        elif isinstance(mine, Parameter):
            users = [item.name for item in self._users(key)]
            text = f"parameter {key!r} is used by {', '.join(map(repr, users))}"
        else:
            users = [item.name for item in others if mine in item.bodies]
            held = (("joints", self._joints), ("rate rows", self._rate_rows), ("loads", self._loads))
            attached = [(word, [user for user in users if user in items]) for word, items in held]
            parts = [f"the {word} {', '.join(map(repr, names))}" for word, names in attached if names]
            text = f"body {key!r} has {' and '.join(parts)}"
        if users and not joints:
            raise ModelError(f"{text}; remove them first, or pass joints=True")
        if isinstance(mine, Parameter):
            del self._parameters[key]
            self._book.names[mine._number] = None
            self._drawn = self._book.drawn()
        for item in (key, *users):
            self._bodies.pop(item, None)
            gone = self._joints.pop(item, None)
            if gone is not None:
                self._book.forget(_what(gone))
            self._loads.pop(item, None)
            self._rate_rows.pop(item, None)
        self._touch()

    def _users(self, parameter: str) -> list[Joint | Load]:
        """Joints, rate rows and loads with a formula of that parameter."""
        items: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values(), *self._loads.values()]
        return [item for item in items if parameter in self._book.parameters_of(_nodes_of(item))]

    def _touch(self) -> None:
        """Discard the packed system; it is packed again when next needed.  Every edit calls this."""
        own = self.__dict__  # __setattr__, which checks names, would take a tenth of the time of adding a joint
        own["_system"] = own["_elsewhere"] = own["_used"] = None
        own["_edits"] += 1

    def _edited(self, body: Body) -> None:
        """An attribute of a body was set; a fixed body stays fixed where it is drawn now."""
        if self._is_fixed(body):
            self._fix(body, True)
        self._touch()

    def _is_fixed(self, body: Body) -> bool:
        return f"{body.name}.fixed" in self._joints

    def _fix(self, body: Body, fixed: bool) -> None:
        """Fix a body where it is drawn, by a joint that is named after it, or free it."""
        name = f"{body.name}.fixed"
        if fixed:
            order = [*self._joints, name]
            self._joints.pop(name, None)
            made = self._add(joints.fixed, name, placing.frames(joints.fixed, self._ground, body, {}), {})
            self._joints = {key: self._joints.get(key, made) for key in dict.fromkeys(order)}
        elif name in self._joints:
            self.remove(name)
        self._touch()

    # -- reading -------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name; a copy may have another."""
        return self._name

    @property
    def ground(self) -> Body:
        """The fixed body; its axes are the world's."""
        return self._ground

    @property
    def gravity(self) -> Triple:
        """Acceleration of gravity [m/s²] in world."""
        return self._gravity

    @gravity.setter
    def gravity(self, value: Any) -> None:
        self._gravity = check.vector(value, f"the gravity of mechanism {self.name!r}")

    @property
    def display(self) -> Display:
        """Units of lengths and angles in texts: ``m.display = cd.Display(length="inch")``; arrays are always SI."""
        return self._display

    @display.setter
    def display(self, value: Display) -> None:
        if not isinstance(value, Display):
            raise ModelError(f"the display is {value!r}; it must be a cd.Display, such as cd.Display(length='mm')")
        self._display = value
        self._touch()

    @property
    def bodies(self) -> Mapping[str, Body]:
        """The movable bodies by name, in the order they were made."""
        return dict(self._bodies)

    @property
    def joints(self) -> Mapping[str, Joint]:
        """The joints by name, in the order they were made."""
        return dict(self._joints)

    @property
    def loads(self) -> Mapping[str, Load]:
        """The loads by name, in the order they were made."""
        return dict(self._loads)

    @property
    def rate_rows(self) -> Mapping[str, Joint]:
        """The constraints of velocities alone by name, in the order they were made."""
        return dict(self._rate_rows)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The design parameters by name, in the order they were made."""
        return dict(self._parameters)

    def _item(self, name: str) -> Any:
        """The joint, body, load, rate row or parameter of that name, or None."""
        held = (self._joints, self._bodies, self._loads, self._rate_rows, self._parameters)
        return next((items[name] for items in held if name in items), None)

    def _has(self, name: str) -> bool:
        """Whether an item has that name."""
        if name in self._bodies or name in self._joints or name in self._loads:
            return True
        return name in self._rate_rows or name in self._parameters

    def __getitem__(self, name: str) -> Item:
        found = self._item(name) if isinstance(name, str) else None
        if found is None:
            if name == GROUND:
                ground: Any = self._ground
                return ground  # type: ignore[no-any-return]
            raise check.unknown(name, "body, joint, load or parameter", self)
        made: Item = found
        return made

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._item(name) is not None or name == GROUND)

    def __iter__(self) -> Iterator[str]:
        yield from self._bodies
        yield from self._joints
        yield from self._loads
        yield from self._rate_rows
        yield from self._parameters

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def system(self) -> System:
        """The packed, frozen system; made on demand."""
        if self._system is None:
            if not self._bodies:
                raise ModelError(f"mechanism {self.name!r} has no bodies; add one with m.body(name)")
            self._system = self._packed()
        elif self._system.values is not self._drawn and self._parameters:
            self._system = self._system.redrawn(self._book.values, self._drawn)
        return self._system

    def _packed(self, references: Any = None) -> System:
        """The system, with the reference frames of its bodies where they are given; see :class:`cardan.System`."""
        bodies, bundles = list(self._bodies.values()), list(self._joints.values())
        rows = list(self._rate_rows.values()) if self._rate_rows else ()
        return System(bodies, bundles, self._counted_angles(), references, rows, self._own_book(), self._display)

    def _own_book(self) -> tuple[Book, dict[str, float]] | None:
        """The formulas and the drawn values, if there are parameters."""
        return (self._book, self._drawn) if self._parameters else None

    def _counted_angles(self, with_loads: bool = False) -> list[CountedAngle]:
        """Angles whose whole turns are counted: those of all joints, if any relation (or load) reads one."""
        items: list[Joint | Load] = [*self._joints.values(), *self._rate_rows.values()]
        items += self._loads.values() if with_loads else ()
        needed = [counted for item in items for relation in item.relations for counted in relation.counted_angles]
        if not needed:
            return []
        found = {counted: None for joint in self._joints.values() for _, counted in joint.angles}
        return [*found, *(counted for counted in dict.fromkeys(needed) if counted not in found)]

    @property
    def state(self) -> State:
        """The authored poses."""
        return self.system.state()

    def adopt(self, state: State) -> None:
        """Make a state the drawing: its poses become the authored poses, its values those of the parameters.

        Whole turns are not part of a drawing.
        """
        if not isinstance(state, State):
            raise ModelError(f"adopt was given {state!r}; it must be a State, such as result.state")
        for body in self._bodies.values():
            if body.name not in state:
                raise ModelError(f"adopt was given a state without body {body.name!r}; it must be of this mechanism")
        values = self._values_of(state)
        self._check_all_bounds(values)
        if values != self._drawn:
            self._redraw(values)
        for body in self._bodies.values():
            pose = state[body]
            body.position = pose.position.tolist()
            body.orientation = pose.quaternion.tolist()

    def state_at(self, values: Mapping[Any, Any] | None = None) -> State:
        """Forward kinematics: the state in which coordinates of joints have given values, the others those as drawn.

        values: ``{"A": 0.3, "slide.displacement": 0.1, "ball": orientation, "free_body": (position, orientation)}``: by
        name of a joint with one coordinate, or "joint.coordinate", or a joint or coordinate; a ball joint takes the
        orientation of b in a, in any form of ``orientation=``; a body without a joint takes its pose.
        Bodies are placed along a spanning tree that prefers the given joints.  Joints that close loops are not
        considered: assemble the result, ``m.assemble(m.state_at(…))``.
        """
        found: State = _forward.state_at(self, {} if values is None else values)
        return found

    # -- solving -------------------------------------------------------------------------------------------------------

    def assemble(
        self,
        start: State | Mapping[Any, Any] | None = None,
        *,
        time: float | None = None,
        free: Iterable[str | Parameter] = (),
        least: Any = None,
        workers: int | None = None,
        options: AssemblyOptions | None = None,
        **changes: Unpack[OptionArguments],
    ) -> AssemblyResult:
        """Find poses that satisfy every joint, from the authored poses or from ``start``.

        start: a State, or ``{body: (position, quaternion)}`` for some bodies.
        time [s]: of the drivers; that of the start, or 0, where none is given.
        free: parameters to solve for too, within their bounds; their values are in ``result.state.variables``.
        least: where many values fit: ``"nearest"`` to the drawn values, or a formula of parameters to be minimised,
        such as ``L1 + L2``.  Without it some values near the drawn ones are found.
        options: a :class:`cardan.AssemblyOptions`.  Its fields may also be given one by one: ``method``,
        ``formulation``, ``tolerance``, ``max_iterations``, ``max_seconds``, ``restarts``, ``seed``, ``spring``.
        workers: threads that share each spring step of the methods ``"gradient"`` and ``"hybrid"``; 1 if it is not
        given.  The result does not depend on it, to the last bit.
        """
        own = _checked_options(options, changes)
        if start is not None:
            self._check_start("assemble", start)
        where = self._at(start) if self._parameters else _HERE
        if where is _HERE and not free and least is None:
            plain_result: AssemblyResult = _assemble.assemble(self.system, start, time, own, workers)
            return plain_result
        with where:
            system = self._with_free(free)
            if least is None:
                result: AssemblyResult = _assemble.assemble(system, start, time, own, workers)
            elif workers is not None:
                raise ModelError(f"workers is {workers}, but an assembly with least= uses one thread; omit one of them")
            elif system.variables.free:
                result = _assemble.assemble_least(system, start, time, own, least)
            else:
                raise ModelError(f"least is {least!r}, but no parameter is free; give free=[…]")
        return result

    def _with_free(self, free: Iterable[str | Parameter]) -> System:
        """The system in which some parameters are unknowns."""
        if isinstance(free, str | Parameter):
            raise ModelError(f"free is {free!r}; it must be a list of parameters or their names")
        names = tuple(dict.fromkeys([self._parameter_name(item) for item in free]))
        for name in names:
            self._book.check_period(name, self._formulas()[0])
        return self.system.with_variables(names) if names else self.system

    def _parameter_name(self, item: Any) -> str:
        name = item.name if isinstance(item, Parameter) else item
        if not isinstance(name, str) or name not in self._parameters:
            raise check.unknown(name, "parameter", self._parameters)
        if isinstance(item, Parameter) and self._parameters[name] is not item:
            raise ModelError(f"{item!r} is of another mechanism, not of {self.name!r}, or was removed")
        return name

    def assemble_many(
        self,
        starts: Any,
        *,
        time: float | None = None,
        free: Iterable[str | Parameter] = (),
        values: Mapping[Any, Any] | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
        options: AssemblyOptions | None = None,
        **changes: Unpack[OptionArguments],
    ) -> BatchResult:
        """Assemble from many starts: what :meth:`assemble` would answer to each, as arrays.

        starts: r [m] and p of every body, shape (n, bodies, 7), or a list of what :meth:`assemble` takes.
        free: parameters to solve for too, as in :meth:`assemble`.
        values: of parameters by name, shape (n,) each, one for each start; then ``starts`` may be one state for all.
        Without it the values are those of each state.
        workers: threads; None for one per core, 1 for the calling thread alone.  The answers do not depend on it.
        progress: called now and then with the number of starts done, and of all starts.
        options: as of :meth:`assemble`; ``max_seconds`` is for all starts together.
        """
        own = _checked_options(options, changes)
        return self._assemble_many(starts, time, free, values, workers, progress, own)

    def _assemble_many(
        self,
        starts: Any,
        time: float | None,
        free: Iterable[str | Parameter],
        values: Mapping[Any, Any] | None,
        workers: int | None,
        progress: Progress | None,
        own: AssemblyOptions,
        bounded: bool = True,
    ) -> BatchResult:
        """bounded: False where values may be beyond the bounds of their parameters, as samples of tolerances may."""
        names = self._with_free(free).variables.free
        starts, given = _batch.starts_with_values(starts, values, self._drawn, self._parameter_name)
        both = [name for name in given if name in names]
        if both and values is not None:
            raise ModelError(f"parameter {both[0]!r} is free and in values; a free parameter starts from its state")
        self._check_values(given, bounded)
        held = tuple([name for name in given if name not in names])
        system = self.system.with_variables(names, held) if names or held else self.system
        results: BatchResult = _batch.assemble_many(system, starts, time, own, workers, progress, given)
        return results

    def _check_values(self, given: Mapping[str, Any], bounded: bool) -> None:
        """ModelError where parameters have a value beyond their bounds, or one that a formula does not allow."""
        if not given:
            return
        counts = {len(numbers): name for name, numbers in given.items()}
        if len(counts) > 1:
            told = ", ".join(f"{count} for {name!r}" for count, name in counts.items())
            raise ModelError(f"values are for different numbers of starts: {told}; give as many for each parameter")
        valid = self._book.are_valid({**self._drawn, **given}, self._formulas()[0])
        for name, numbers in given.items():
            parameter = self._parameters[name]
            if bounded:
                valid = valid & (parameter.lower <= numbers) & (numbers <= parameter.upper)
        if not np.all(valid):
            k = int(np.flatnonzero(~valid)[0])
            own = {name: float(numbers[k]) for name, numbers in given.items()}
            try:
                self._check_all_bounds(own if bounded else {})
                self._book.check(self._book.evaluate({**self._drawn, **own}), *self._formulas())
            except ModelError as error:
                raise ModelError(f"the parameters of start {k} are not valid: {error}") from None

    def move(
        self,
        times: Iterable[float],
        start: State | Mapping[Any, Any] | None = None,
        *,
        tolerance: float = 1e-12,
        max_seconds: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Motion:
        """Positions, velocities and accelerations at times [s] of a driven motion, on one branch.

        The mechanism is assembled at the first time, from ``start``, and followed from there: steps are as small as
        the motion needs, the branch is kept, and at a dead point or a limit the motion ends and says so.
        times: increasing, or decreasing.  max_seconds: for the whole call.  progress: called with the part done.
        Interrupted by the keyboard, it returns what was reached.
        """
        self._check_start("move", start)
        with self._at(start):
            motion: Motion = _move.move(
                self.system, times, start, tolerance=tolerance, max_seconds=max_seconds, progress=progress
            )
            motion._model = self._model()
        motion._source = self, self._edits
        return motion

    def simulate(
        self,
        duration: float,
        state: State | Mapping[Any, Any] | None = None,
        *,
        step: float | None = None,
        rtol: float | None = None,
        times: Iterable[float] | None = None,
        method: str = "adams",
        max_step: float | None = None,
        max_seconds: float | None = None,
        progress: Callable[[float], None] | None = None,
        stabilization: str = "projection",
        gain: float | None = None,
        tolerance: float = 1e-12,
    ) -> Simulation:
        """The motion under gravity and loads over a duration [s], from a state with its velocities, or from rest.

        step [s]: constant steps.  rtol: variable steps, chosen so that the estimated error of each is below rtol,
        relative to the extent, or in radians.  If neither is given, rtol is 1e-6.
        times [s]: of the outputs.  If none are given, every constant step, or 100 intervals.
        method: "adams"; "rk4" and "dopri5" for comparison; "generalized_alpha", an implicit method of order 2 for stiff
        springs and dampers, which is computed in Python and slower.
        max_step [s]: of steps chosen by rtol.  Where it is not given, a hundredth of the duration, or a tenth without
        loads, drivers and limits.  A pulse of a load that is shorter may be stepped over.
        max_seconds: for the whole call.  progress: called with the part done, between 0 and 1.
        stabilization: "projection" keeps joints closed in every step.  "none" and "baumgarte" are for comparison: the
        joints are equations of accelerations alone, and open slowly; with Baumgarte's terms they open less.
        gain [1/s]: α of Baumgarte's terms 2α (J v − ġ) + α² f; 0.1/step where it is not given.
        tolerance: of the assembly at the start, as in :meth:`assemble`.
        If it is interrupted by the keyboard, the result contains what was reached.
        """
        given = (step, rtol, times, method, max_step, max_seconds, progress, stabilization, gain, tolerance)
        options = _simulate.Options(*given)
        self._check_start("simulate", state)
        with self._at(state):
            equations, notes = self._equations()
            simulation: Simulation = _simulate.simulate(self.system, equations, duration, state, options, notes)
            simulation._connections = self._connections()
        simulation._source = self, self._edits
        return simulation

    def equilibrium(
        self, state: State | Mapping[Any, Any] | None = None, *, max_iterations: int = 200, tolerance: float = 1e-12
    ) -> Equilibrium:
        """A pose near a state, or the drawing, where the mechanism rests under gravity and loads.

        The search follows the forces, so that it ends at a stable equilibrium, except if it starts at an unstable one;
        ``stable`` tells.  Limits hold.  Drivers keep the values of the time of the state.  Dampers and friction have no
        force at rest.  Reactions and efforts: ``eq.reaction("A")``, ``eq.effort("motor")``.
        tolerance: of the assembly at the start, as in :meth:`assemble`.
        """
        self._check_start("equilibrium", state)
        with self._at(state):
            equations, notes = self._equations()
            rough = [repr(load.name) for load in self._loads.values() if dict(load.parameters).get("coulomb")]
            if rough:
                notes.append(f"friction {', '.join(rough)} has no force at rest: it holds no parts in equilibrium")
            given = (self.system, equations, state, notes, self._connections(), max_iterations, tolerance)
            found: Equilibrium = _equilibrium.find_equilibrium(*given)
        if found._instant is not None:
            found._instant._source = self, self._edits
        return found

    def linearize(self, state: State | Mapping[Any, Any] | None = None, *, tolerance: float = 1e-12) -> Linearization:
        """Small motions about an equilibrium: frequencies [Hz], damping ratios, modes, and the matrix A of ż = A z.

        state: at rest, in equilibrium, such as ``m.equilibrium().state``.  Drivers keep the values of its time.
        tolerance: of the assembly of the state, as in :meth:`assemble`.
        """
        self._check_start("linearize", state)
        with self._at(state):
            found: Linearization = _vibration.linearize(self.system, self._equations()[0], state, tolerance)
        return found

    def solve_rates(self, state: State, given: Mapping[Any, float] | None = None) -> State:
        """The state with velocities that satisfy every joint and driver, and given rates of coordinates.

        given: rates [rad/s] or [m/s] by joint (its name, if it has one coordinate) or coordinate: ``{"A": 2.0,
        "pin.angle": 1.0}``.
        What they leave free has the least kinetic energy.  Raises ModelError, with names, if rates contradict each
        other.
        """
        if not isinstance(state, State):
            raise ModelError(f"solve_rates got {state!r}; it must be a State, such as result.state")
        if given is not None and not isinstance(given, Mapping):
            raise ModelError(f"solve_rates got the rates {given!r}; they must be by joint, such as {{'A': 2.0}}")
        with self._at(state):
            return self._solve_rates(state, given or {})

    def _solve_rates(self, state: State, given: Mapping[Any, float]) -> State:
        chosen = []
        for key in given:
            one = self._chosen("solve_rates", self._by_key(key) if isinstance(key, str) else key, None)
            self._check_own("solve_rates", one)
            chosen.append(one)
        driven, theirs = copying.deepcopy((self, chosen))
        for one, copied, rate in zip(chosen, theirs, given.values(), strict=True):
            name = f"rate of {one.joint or one.name}"
            is_one_of = bool(one.joint) and len(self[one.joint].kind.coordinates) > 1
            name += f".{one.name}" if is_one_of or name in driven else ""
            while name in driven:
                name += "'"
            line = Line(one.value(state), check.number(rate, name), state.time)
            driven._add(joints.drive, name, (driven[one.joint].of(one.name) if one.joint else copied, line), {})
        sampled = any([relation.is_sampled for joint in self._joints.values() for relation in joint.relations])
        equations, _ = driven._new_equations(follow=False) if sampled else driven._equations()
        found: State = _solve_rates.solve_rates(self.system, equations, state)
        return found

    def _by_key(self, key: str) -> Any:
        """A joint by its name, or a coordinate by "joint.coordinate"."""
        of, _, word = key.rpartition(".")
        return self._joints[of].of(word) if key not in self._joints and of in self._joints else self[key]

    def _equations(self) -> tuple[Equations, list[str]]:
        """The equations of motion, and what they assume; kept with the system, if there are no loads."""
        if self._loads:
            return self._new_equations()
        equations, notes = self.system.cached(("equations of motion", self._gravity), self._new_equations)
        return equations, list(notes)

    def session(
        self,
        state: State | Mapping[Any, Any] | None = None,
        *,
        mode: str = "kinematic",
        rate: float = 1000.0,
        hand: str = "constraint",
        time: float | None = None,
        closed: bool = True,
        formulation: Formulation = "manifold",
        tolerance: float = 1e-12,
    ) -> Session:
        """An operator in the loop: grasp bodies, move targets, and read the force on the hand, cycle by cycle.

        state: where it begins; it is assembled, and the drawing where none is given.
        closed: False begins with open joints; the first cycles close them, one solver step each.  Then add hands.
        formulation, tolerance: of this assembly, as of :meth:`assemble`.  time: of the drivers, that of the state where
        none is given.
        mode: "kinematic": the joints are rigid and the hands compliant; no time passes, so masses, gravity and loads do
        not act, and drivers keep the values that they have at the time of the state.  "dynamic": the equations of
        motion, with gravity, loads and drivers.
        rate [Hz]: of the cycles; a cycle of a dynamic session lasts 1/rate.
        hand: "constraint" or "spring", what grasps are in a dynamic session; see :meth:`Session.grasp`.
        """
        self._check_start("session", state)
        with self._at(state):
            model = self.copy()
            owner = self if closed else model  # later changes of this mechanism do not matter to the session

            def equations() -> Equations:
                with owner._at(state):
                    return owner._equations()[0] if mode == "dynamic" else owner._metric_equations()

            made: Session = _session.Session(
                self.system,
                equations,
                self,
                state,
                mode=mode,
                rate=rate,
                hand=hand,
                time=time,
                closed=closed,
                formulation=formulation,
                tolerance=tolerance,
                probe=model._probe,
            )
        return made

    def _probe(self, of: Any, axis: Any) -> tuple[str, Equations, str]:
        """The metric equations with one more coordinate: the name of a limit without bounds, and the unit.

        of: a joint, its name, or a coordinate, and the name of one of several; or a hand, and a direction.
        """
        if self._rate_rows:
            rows = ", ".join(map(repr, self._rate_rows))
            raise ModelError(
                f"range cannot consider rate rows ({rows}), because they exclude no pose; explore without them"
            )
        m = self.copy()
        name = "range"
        while name in m:
            name += "'"
        if hasattr(of, "local"):
            frame = m._bodies[of.body].frame(of.local, z=axis)
            chosen = joints.coordinate(m.ground.frame(z=axis), frame, "displacement")
        elif isinstance(of, Coordinate):
            if of.joint not in m._joints:
                raise ModelError(
                    f"range was given {of!r}; it must be a joint of this mechanism, or a coordinate of one"
                )
            chosen = m._joints[of.joint].of(of.name)
        else:
            key = getattr(of, "name", of)
            joint = m._joints.get(key) if isinstance(key, str) else None
            if joint is None:
                raise check.unknown(key, "joint of this session", m._joints)
            chosen = m._chosen(f"range of {key!r}", joint, axis)
        m._add(joints.limit, name, (chosen,), {"lower": -1e300, "upper": 1e300})
        unit = "m" if chosen.kind in ("displacement", "distance") else "rad"
        return name, m._metric_equations(), unit

    def _metric_equations(self) -> Equations:
        """The equations with a ball of the size of each body, of 1 kg at the centroid of its joint points, for it."""
        centroids = self.system.centroids.tolist()
        parts = [_mass.Part(name, 1.0, tuple(c), None) for name, c in zip(self._bodies, centroids, strict=True)]
        found = _mass.masses(parts, self._points(), self.system.judged_length)
        return self._pack_equations(found, (0.0, 0.0, 0.0), [])

    def _new_equations(self, follow: bool = True) -> tuple[Equations, list[str]]:
        """The equations of motion, and what they assume.  follow: False for one pose: contacts are not followed."""
        bodies = list(self._bodies.values())
        found = _mass.masses(bodies, self._points(), self.system.judged_length)
        moving = [(k, body) for k, body in enumerate(bodies) if not body.fixed]
        told = {
            "no inertia was given for {}: solid balls are assumed; give inertia= to m.body": [
                body.name for _, body in moving if body.name in found.assumed
            ],
            "no mass was given for {}: 1 kg is assumed; give mass= to m.body": [
                body.name for _, body in moving if not body.has_mass
            ],
            "the largest principal moment of {} exceeds the sum of the others, as in no real body: check inertia=": [
                body.name for k, body in moving if not check.are_moments(found.diagonal[k, 3:])
            ],
        }
        notes = [
            note.format(", ".join(names[:8]) + (" …" if len(names) > 8 else ""))
            for note, names in told.items()
            if names
        ]
        return self._pack_equations(found, self._gravity, list(self._loads.values()), follow), notes

    def _pack_equations(self, found: Masses, gravity: Triple, loads: list[Load], follow: bool = True) -> Equations:
        """The equations of motion with these masses, gravity and loads."""
        bodies = list(self._bodies.values())
        limits = [joint for joint in self._joints.values() if joint.kind is joints.limit]
        stops = [
            _equations.Stop(joint.name, *joint.relations[0].parameters, is_turn=joint.ends[0].is_turn)
            for joint in limits
        ]
        bundles = [joints.held(joint) if joint in limits else joint for joint in self._joints.values()]
        bundles += self._rate_rows.values()
        bundles = [_followed(bundle) for bundle in bundles] if follow else bundles
        angles = self._counted_angles(with_loads=bool(loads))
        system = System(bodies, bundles, angles, found.frames, formulas=self._own_book())
        forces = _forces.Forces(system, bodies, loads, angles) if loads else None
        equations: Equations = _equations.Equations(system, found.diagonal, gravity, stops, forces)
        return equations

    def _points(self) -> dict[str, list[Any]]:
        """Where each body is joined [m], in its axes, by its name."""
        points: dict[str, list[Any]] = {}
        for joint in self._joints.values():
            for end in joint.ends:
                for place in (end.a, end.b) if isinstance(end, Coordinate) else (end,):
                    if not isinstance(place, Direction):
                        points.setdefault(place.body.name, []).append(plain(place.feature().value))
        return points

    def _connections(self) -> dict[str, Connection]:
        """Where each constraint is attached; kept with the system."""
        constraints = (self._joints | self._rate_rows).items()
        found: dict[str, Connection] = self.system.cached(
            "connections", lambda: {name: _reactions.connection(joint) for name, joint in constraints}
        )
        return found

    def _model(self) -> Model:
        """What reactions need in addition to the system, as plain values."""
        parts = tuple(_mass.Part(b.name, b.mass, b.center, b.inertia) for b in self._bodies.values())
        loaded = self.copy() if self._loads else None
        model: Model = _model.Model(parts, self._points(), self._gravity, self._connections(), loaded)
        return model

    def diagnose(
        self, state: State | None = None, *, tolerance: float = 1e-12, free: Iterable[str | Parameter] = ()
    ) -> Diagnosis:
        """Degrees of freedom, redundancy and residuals in a state (the authored one where none is given).

        tolerance: as in :meth:`assemble`; the state counts as assembled where every residual is within it, and
        motions along which every residual stays within it count as free.
        free: parameters that are unknowns too; one that nothing determines is reported as a freedom, by name.
        """
        if state is None:
            state = self.system.state()
        elif not isinstance(state, State):
            raise ModelError(f"diagnose was given {state!r}; it must be a State, such as result.state")
        with self._at(state):
            found: Diagnosis = _freedom.diagnose(self._with_free(free), state, tolerance)
        return found

    def constraint_equations(
        self, state: State | None = None, joint: str | Joint | None = None, *, sparse: bool | None = None
    ) -> ConstraintEquations:
        """Value, Jacobian and γ of all constraints in a state (the authored one where none is given), or of one joint.

        Rows are in the order of m.joints; columns are (δr in world, δθ in body axes) of each body, in the order of
        m.bodies.  sparse: of the Jacobian; None: if it is large.  See :class:`cardan.ConstraintEquations`.
        """
        own = self._checked_state("constraint_equations", state)
        self._check_own("constraint_equations", joint)
        with self._at(own):
            found: ConstraintEquations = _linearise.constraint_equations(self.system, own, joint, sparse)
        return found

    def jacobian(
        self,
        of: Point | Frame | Body,
        state: State | None = None,
        *,
        by: str | Joint | Iterable[str | Joint] = "bodies",
        sparse: bool | None = None,
    ) -> Any:
        """Derivative of the position of a point [m] in world, shape (3, n), or of a frame or body, shape (6, n).

        The last three rows of a frame are its rotation [rad] in world axes.
        by: "bodies": n = 6·bodies, (δr in world, δθ in body axes) of each body, in the order of m.bodies, whatever the
        joints; or "drivers", or the names of some drivers: one column for each, [per rad or per m], along the motion
        that the joints allow, with the other drivers at rest.
        """
        own = self._checked_state("jacobian", state)
        place = of if isinstance(of, Body) else getattr(of, "body", None)
        if place is not None:
            self._check_body("jacobian", place)
        by = by if isinstance(by, str | Joint) or not isinstance(by, Iterable) else list(by)
        for driver in by if isinstance(by, list) else [by]:
            self._check_own("jacobian", driver)
        with self._at(own):
            return _linearise.jacobian(self.system, of, own, by, sparse)

    def _checked_state(self, what: str, state: State | None) -> State:
        if state is None:
            return self.system.state()
        if not isinstance(state, State) or state.names != self.system.names:
            raise ModelError(f"{what} was given {state!r}; it must be a State of this mechanism, such as result.state")
        return state

    def sensitivity(
        self,
        state: State,
        outputs: Any,
        parameters: Iterable[str | Parameter] | None = None,
        *,
        tolerance: float = 1e-10,
    ) -> Sensitivity:
        """Exact derivatives of outputs with respect to parameters, in an assembled state.

        outputs: a list of joints (by name, if they have one coordinate), coordinates, points or frames (their origins
        in world), or ``(primitive, {argument: …})`` for whatever a primitive can express.  A second output with the
        same label, such as another point of the same body, is labelled "crank x (output 1)".
        parameters: None for all.  Drivers keep their values.  Where a freedom is left, the poses change as little as
        possible, and ``result.unique`` tells which outputs depend on that choice.
        """
        given = self._parameters if parameters is None else parameters
        names = tuple(dict.fromkeys([self._parameter_name(p) for p in ([given] if isinstance(given, str) else given)]))
        if not names:
            way = "give some" if self._parameters else "add one with m.parameter(name, value)"
            raise ModelError(f"there are no parameters to differentiate by in mechanism {self.name!r}; {way}")
        if not isinstance(state, State):
            raise ModelError(f"sensitivity was given {state!r}; it must be a State, such as result.state")
        self._checked_state("sensitivity", state)
        with self._at(state):
            system, labels = self._outputs(outputs)
            found: Sensitivity = _sensitivity.sensitivity(self.system, system, labels, state, names, tolerance)
        return found

    def tolerances(
        self,
        state: State,
        outputs: Any,
        tolerances: Mapping[Any, float],
        *,
        samples: int = 100_000,
        seed: int = 0,
        distribution: Literal["normal", "uniform"] = "normal",
        workers: int | None = None,
    ) -> Tolerances:
        """What tolerances ±t of parameters do to outputs: worst case, root of squares, and a Monte Carlo.

        outputs: as of :meth:`sensitivity`.  tolerances: ``{"L": 0.1e-3, …}``.
        samples: parameters drawn from a normal distribution with σ = t/3, or a uniform one; the mechanism is assembled
        for each, on all cores, from the poses of the state and without restarts, which could lead to another branch.
        Values may be beyond the bounds of a parameter.
        seed: of the draws, which depend on the names of the parameters, not on their order.
        """
        began = clock.perf_counter()
        given = _sensitivity.checked_tolerances(tolerances, self._parameter_name)
        check.choice(distribution, "distribution", _sensitivity.FACTORS)
        count = check.count(samples, "samples", 2)
        found = self.sensitivity(state, outputs, given)
        values = _sensitivity.draw(
            given, {**self._drawn, **state.variables}, count, check.count(seed, "seed", 0), distribution
        )
        options = _checked_options(None, {"restarts": 0})
        batch = self._assemble_many(state, None, (), values, workers, None, options, bounded=False)
        with self._at(state):
            system, labels = self._outputs(outputs)
            seen = system.with_variables((), tuple(given))
        angles = batch._system.counted_angles
        keys = {key: batch.angles[:, len(batch._system.variable_names) + k] for k, key in enumerate(angles)}
        near = [np.full(count, angle) for angle in _sensitivity.angles_at(seen, state)]
        tail = [keys.get(key, near[k]) for k, key in enumerate(seen.counted_angles)]
        poses = np.column_stack([batch.coordinates.reshape(count, -1), *values.values(), *tail])
        every = _sensitivity.evaluate_many(seen, len(labels), poses[batch.ok], state.time)
        failed = int((~batch.ok).sum())
        seconds = clock.perf_counter() - began
        wraps = _sensitivity.wrapping(seen, len(labels))
        result: Tolerances = _sensitivity.combine(found, given, every, wraps, failed, distribution, seconds)
        return result

    def _outputs(self, outputs: Any) -> tuple[System, list[Any]]:
        """The system whose relations are the outputs, and a label and a unit for each row."""
        if isinstance(outputs, str | Joint | Coordinate | Point | Frame) or not isinstance(outputs, Iterable):
            outputs = [outputs]
        bundles: list[Bundle] = []
        labels: list[Any] = []
        for k, given in enumerate(outputs):
            what = f"output {k}"
            if isinstance(given, Point | Frame):
                self._check_body(what, given.body)
                relation = joints.coincident(self._ground.point(), given)
                words = [f"{given.body.name} {axis}" for axis in "xyz"]
            elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Primitive):
                ends, relation = own.resolved(given[0], given[1], self._coordinate)
                for end in ends:
                    for body in end.bodies if isinstance(end, Coordinate) else (end.body,):
                        self._check_body(what, body)
                rows = given[0].rows
                words = [given[0].name if rows == 1 else f"{given[0].name} {i}" for i in range(rows)]
            else:
                chosen = self._chosen(what, self[given] if isinstance(given, str) else given, None)
                for body in chosen.bodies:
                    self._check_body(what, body)
                relation = Relation(joints.DRIVEN[chosen.kind], chosen.arguments(), (0.0,))
                single = chosen.joint and len(self._joints[chosen.joint].kind.coordinates) == 1
                words = [chosen.joint if single else f"{chosen.joint} {chosen.name}".strip()]
            if not relation.bodies:
                way = ", except with parameters: take its formula, such as (2 * L).value" if relation.nodes else ""
                raise ModelError(f"{what} is on the ground alone; it never changes{way}")
            bundles.append(Bundle(what, [relation]))
            taken = {label.label for label in labels}
            words = [f"{word} ({what})" if word in taken else word for word in words]
            labels += [_sensitivity.Output(w, u) for w, u in zip(words, relation.primitive.units, strict=True)]
        if not bundles:
            raise ModelError("there are no outputs; give joints, coordinates, points or primitives")
        counted = dict.fromkeys([angle for b in bundles for r in b.relations for angle in r.counted_angles])
        system = System(list(self._bodies.values()), bundles, list(counted), None, formulas=self._own_book())
        return system, labels

    # -- values --------------------------------------------------------------------------------------------------------

    def save(self, path: Any, *, units: Mapping[str, str] | None = None) -> None:
        """Write the mechanism to a file ``*.cardan.toml`` or ``*.json``, for :func:`cardan.load`.

        units: such as ``{"length": "mm", "angle": "deg"}``; those of the file that it was read from, or SI.
        Functions are written as expressions.  What a file cannot contain raises a ModelError, and nothing is written.
        An existing file is replaced at once, or not at all.
        """
        _files.save(self, path, units=units)

    def copy(self, name: str | None = None) -> Mechanism:
        """An independent copy."""
        made = copying.deepcopy(self)
        if name is not None:
            made._name = check.name(name, "the mechanism")
        return made

    def __copy__(self) -> Mechanism:
        return self.copy()

    def description(self) -> tuple[Any, ...]:
        """Everything that defines the mechanism, as plain values."""
        return (
            self.name,
            self._gravity,
            self._display,
            tuple(one.description() for one in self._ground.attachments),
            tuple(body.description() for body in self._bodies.values()),
            tuple(joint.description() for joint in self._joints.values()),
            tuple(load.description() for load in self._loads.values()),
            tuple(row.description() for row in self._rate_rows.values()),
            tuple((p.name, p.value, p.lower, p.upper, p.period) for p in self._parameters.values()),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return self.description() == other.description()

    __hash__ = None  # type: ignore[assignment]  # it can be edited

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_system": None, "_elsewhere": None}

    def table(self) -> dict[str, list[Any]]:
        """The joints as columns by title, one row each, for ``pandas.DataFrame(m.table())``."""
        items = list(self._joints.values())
        return {
            "joint": [joint.name for joint in items],
            "kind": [joint.kind.name for joint in items],
            "bodies": [" – ".join(body.name for body in joint.bodies) for joint in items],
            "equations": [joint.equations for joint in items],
            "coordinates": [", ".join(joint.kind.coordinates) for joint in items],
        }

    def _repr_html_(self) -> str:
        bodies = [(body.name, *body.position, body.fixed) for body in self._bodies.values()]
        return as_html(repr(self), (("body", "x [m]", "y [m]", "z [m]", "fixed"), bodies), table_of(self.table()))

    def __repr__(self) -> str:
        loads = f", {len(self._loads)} loads" if self._loads else ""
        rows = f", {len(self._rate_rows)} rate rows" if self._rate_rows else ""
        return f"<Mechanism {self.name!r}: {len(self._bodies)} bodies, {len(self._joints)} joints{loads}{rows}>"


class _Elsewhere:
    """A context in which the drawing of a mechanism has other values of its parameters."""

    def __init__(
        self, mechanism: Mechanism, drawn: dict[str, float], values: list[float], system: System | None
    ) -> None:
        self.mechanism, self.drawn, self.values, self.system = mechanism, drawn, values, system
        self._kept: Any = None

    def __enter__(self) -> None:
        m = self.mechanism
        here = m.system  # packed before the values change, so that what does not depend on them is shared
        self._kept = m._book.values, m._drawn, here
        m._book.use(self.values)
        m._drawn, m._system = self.drawn, self.system or here
        self.system = m.system

    def __exit__(self, *_: object) -> None:
        m = self.mechanism
        self.system = m._system
        values, m._drawn, m._system = self._kept
        m._book.use(values)


SETTABLE = ("gravity", "display", "poses")
_HERE = nullcontext()


def _followed(bundle: Joint | Bundle) -> Joint | Bundle:
    """The same for motions, in which contacts stay near where they were."""
    if not any([relation.primitive.is_contact for relation in bundle.relations]):
        return bundle
    return Bundle(bundle.name, [relation.followed() for relation in bundle.relations])


def _nodes_of(item: Joint | Load) -> list[int]:
    """Nodes of the formulas of a joint or load."""
    found = [node for relation in item.relations for node in relation.nodes]
    wrench = item.action.wrench if isinstance(item, Load) else None
    return found if wrench is None else [*found, *(node for _, node in bindings(wrench.point))]


def _what(joint: Joint) -> str:
    """The kind and the name of a joint, as in errors."""
    return f"{joint.kind.name} {joint.name!r}"


def _check_bounds(name: str, value: float, lower: float, upper: float) -> None:
    if not lower <= value <= upper:
        raise ModelError(
            f"the value of parameter {name!r} is {value}; it must lie within {lower} and {upper}, its bounds"
        )


def _checked_options(options: AssemblyOptions | None, changes: OptionArguments) -> AssemblyOptions:
    made: AssemblyOptions = _options.assembly_options(options, changes)
    return made


def _recorded_values(parameters: Iterable[tuple[str, Any]], relation: Relation) -> tuple[tuple[str, Any], ...]:
    """The options of a joint by name, as it keeps them."""
    return tuple([(word, _recorded(relation, v) if callable(v) else _plain(v)) for word, v in parameters])


def _recorded(relation: Relation, given: Any) -> Any:
    """A spline, or the primitive or signal made of a user's function: it compares by value, and can be pickled."""
    if isinstance(given, Spline) and relation.signal is None:
        return given
    return relation.primitive if relation.signal is None else relation.signal


def _plain(value: Any) -> Any:
    """A parameter as a plain value: NumPy scalars become floats, so that descriptions compare equal."""
    return value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
