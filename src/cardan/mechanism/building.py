"""Building a mechanism: bodies, joints, rate rows, loads; and removing them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cardan import joints
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import GivenRate, Signal
from cardan.constraints.spline import Spline, as_function
from cardan.dynamics import loads
from cardan.dynamics.loads import Load, LoadKind
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint, JointKind, Role, own, placing
from cardan.joints.coordinates import make_counted_angle
from cardan.joints.rate_rows import knife_edge_relation
from cardan.mechanism.drawing import Drawing
from cardan.mechanism.methods import Methods
from cardan.system import check
from cardan.system.formulas import Formula, Parameter
from cardan.system.parts import GROUND, Body, CountedAngle, Frame, Point
from cardan.system.relations import Relation

T = TypeVar("T")
OF_ONE = (Role.DRIVER, Role.LIMIT)  # roles of constraints of one coordinate, which may be chosen by of=


def _adds(kind: JointKind[Any]) -> Callable[..., Joint]:
    """A method that adds a joint of that kind: ``m.kind(name, a, b, …)``."""
    given = inspect.signature(kind.build).parameters.values() if kind.role in OF_ONE else ()
    defaults = {p.name: p.default for p in given if p.default is not p.empty}  # a limit has both bounds

    def method(self: Building, name: str, *args: Any, **options: Any) -> Joint:
        return self._add(kind, name, args, {**defaults, **options})

    return _described(method, kind)


def _exerts(kind: LoadKind[Any]) -> Callable[..., Load]:
    """A method that adds a load of that kind: ``m.kind(name, …)``."""

    def method(self: Building, name: str, /, *args: Any, **options: Any) -> Load:
        return self._add_load(kind, name, args, options)

    return _described(method, kind)


def _described(method: Callable[..., T], kind: JointKind[Any] | LoadKind[Any]) -> Callable[..., T]:
    """The method with the name, the text and the arguments of a kind."""
    method.__name__ = kind.name
    method.__qualname__ = f"Mechanism.{kind.name}"
    method.__doc__ = kind.build.__doc__
    built = inspect.signature(kind.build)
    of_one = isinstance(kind, JointKind) and kind.role in OF_ONE
    sort = inspect.Parameter.POSITIONAL_OR_KEYWORD if of_one else inspect.Parameter.POSITIONAL_ONLY
    first = [inspect.Parameter(word, sort) for word in ("self", "name")]
    options = [p for p in built.parameters.values() if p.name != "own"]
    if of_one:
        options.append(inspect.Parameter("of", inspect.Parameter.KEYWORD_ONLY, default=None))
    if isinstance(kind, JointKind) and placing.takes_place(kind):
        method.__doc__ = f"{method.__doc__}{placing.TEXT}"
        options += [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=None) for word in placing.WORDS]
    result = Joint if isinstance(kind, JointKind) else Load
    signature = inspect.Signature([*first, *options], return_annotation=result)
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


class Building(Drawing, Methods):
    """Adds and removes bodies, joints, rate rows and loads."""

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
            self._check_place(what, end)
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
            self._check_place(what, end)
        if not relation.bodies:
            raise ModelError(f"{what} is on the ground alone; at least one feature must be on a movable body")
        for one in relation.parameters:
            if isinstance(one, Formula):
                self._check_formula(what, one)
        values: list[tuple[str, Any]] = list(zip(kind.parameters, relation.parameters, strict=False))
        if signal is not None:
            values.append(("value", signal))
        made = Joint(name, joints.constrain_rates, ends, (("primitive", kind), *values), (relation,))
        return self._keep_rate_row(made)

    def _keep(self, made: Joint) -> Joint:
        self._joints[made.name] = made
        self._touch()
        return made

    def _keep_rate_row(self, made: Joint) -> Joint:
        self._rate_rows[made.name] = made
        self._touch()
        return made

    def _add(self, kind: JointKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Joint:
        name = self._new_name(name, kind.label)
        what = _what(kind, name)
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
        spline = dict(values).get("function") if "range" in kind.parts else None
        if isinstance(spline, Spline) and not spline.is_periodic:
            lower, upper = spline.range
            self._add(joints.limit, f"{name}.range", ends[:1], {"lower": lower, "upper": upper})
        return self._keep(made)

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
                chosen = self._chosen(what, ends[k], named.pop("of", None)) if kind.role in OF_ONE else None
                ends[k] = self._coordinate(ends[k], takes) if chosen is None else chosen
                self._check_place(what, ends[k])
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

    def _add_load(self, kind: LoadKind[Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Load:
        name = self._new_name(name, check.with_article(kind.name))
        what = _what(kind, name)
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
            self._check_place(what, chosen)
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
            for items, part in ((self._joints, "range"), (self._rate_rows, "roll")):
                if not users and part in mine.kind.parts:
                    items.pop(f"{key}.{part}", None)
            if mine.kind.implied:
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
                self._book.forget(_what(gone.kind, gone.name))
            self._loads.pop(item, None)
            self._rate_rows.pop(item, None)
        self._touch()

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


for _kind in joints.REGISTRY.values():
    if _kind.is_between_places or _kind.role in (Role.COUPLING, *OF_ONE):
        setattr(Building, _kind.name, _adds(_kind))
for _load in loads.REGISTRY.values():
    setattr(Building, _load.name, _exerts(_load))


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


def _what(kind: JointKind[Any] | LoadKind[Any], name: str) -> str:
    """The kind and the name of a joint or load: in errors, and as the user of conditions of formulas."""
    return f"{kind.name} {name!r}"
