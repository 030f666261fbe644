"""What a joint is: a bundle of primitives between two frames or points, with the coordinates it leaves free.

A new joint is one function with ``@joint_kind``, which also declares its coordinates and the motion it allows.
Annotations say what its options measure (:mod:`cardan.quantities`).  Methods, files and drawings follow from it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, ParamSpec

import numpy as np

from cardan.calls import explains
from cardan.constraints.registry import Primitive
from cardan.constraints.signal import Signal
from cardan.errors import ModelError
from cardan.joints.coordinates import Coordinate, Rule
from cardan.system import check, formulas
from cardan.system.formulas import Formula, bindings, plain
from cardan.system.parts import Body, CountedAngle, Frame, Point
from cardan.system.read_only import read_only
from cardan.system.relations import Edge, Motion, Place, Relation
from cardan.system.state import FloatArray, State

P = ParamSpec("P")


class Role(Enum):
    """What a constraint is for."""

    JOINT = "joint"  # between features of bodies
    COUPLING = "coupling"  # between two coordinates
    DRIVER = "driver"  # a coordinate as a function of time
    LIMIT = "limit"  # bounds of a coordinate
    CONTACT = "contact"  # two faces that touch
    RATE = "rate"  # of velocities alone


@dataclass(frozen=True, slots=True)
class Relative:
    """Pose of frame b in frame a: d_A [m], shape (3,), and R_AB, shape (3, 3).  A point has the axes of its body."""

    d_A: FloatArray
    R_AB: FloatArray

    def angle(self) -> float:
        """Angle [rad] in (−π, π] from x_a to x_b about z_a."""
        angle = math.atan2(self.R_AB[1, 0], self.R_AB[0, 0])
        return math.pi if angle == -math.pi else angle


@dataclass(frozen=True, slots=True)
class JointKind(Generic[P]):
    """One kind of joint, or of constraint between coordinates: how it is built, and which coordinates it leaves free.

    ``takes``: what its first arguments are: "frame", "point" (or a frame), "face", or a kind of coordinate, "" for any;
    none if it is made of a primitive.
    ``own``: whether the builder takes an argument ``own``: the joint's coordinates by name, or the name of a constraint
    between coordinates.
    ``motion``: what it leaves free between frames a and b, so that it can be part of a spanning tree; None: it cannot.
    ``thread``: from the options to pitch [m/rad] and offset [m], where its "angle" carries b along z_a.
    ``parts``: of items that may be made and removed with it, the last words of their names; ``implied``: it is such.
    """

    name: str
    role: Role
    build: Callable[P, Sequence[Relation]]
    coordinates: Mapping[str, Rule]
    takes: tuple[str, ...]
    motion: Motion | None = None
    thread: Callable[..., tuple[float, float]] | None = None
    parts: tuple[str, ...] = ()
    implied: bool = False
    ends: tuple[str, ...] = field(init=False, repr=False, compare=False)  # names of the first arguments
    options: tuple[str, ...] = field(init=False, repr=False, compare=False)  # names of the others
    own: bool = field(init=False, repr=False, compare=False)
    label: str = field(init=False, repr=False, compare=False)  # in messages: "a revolute joint"

    def __post_init__(self) -> None:
        names = tuple(inspect.signature(self.build).parameters)
        object.__setattr__(self, "ends", names[: len(self.takes)])
        object.__setattr__(self, "options", tuple([name for name in names[len(self.takes) :] if name != "own"]))
        object.__setattr__(self, "own", "own" in names)
        object.__setattr__(self, "label", f"{check.with_article(self.name)} joint")

    @property
    def is_between_places(self) -> bool:
        """Whether it is a joint between two frames or points."""
        return self.role is Role.JOINT and len(self.takes) == 2 and {*self.takes} <= {"frame", "point"}

    @property
    def takes_inertia(self) -> bool:
        """Whether its joints may have an inertia: they have one coordinate, and leave it free."""
        return len(self.coordinates) == 1 and self.motion is not None

    def edge(
        self,
        ends: tuple[Any, ...],
        relations: Sequence[Relation],
        angles: Sequence[tuple[str, CountedAngle]],
        options: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Edge | None:
        """The motion that one joint of this kind allows, as plain values."""
        if self.motion is None:
            return None
        equations = sum([relation.primitive.equations for relation in relations])
        edge = Edge(self.motion, Place.of(ends[0]), Place.of(ends[1]), len(relations), equations)
        if self.thread is None:
            return edge
        pitch, offset = self.thread(*options, **named)
        pair = (pitch, offset)
        lead, shift = plain(pair)
        serial = dict(angles)["angle"]._serial
        return edge._replace(pitch=lead, offset=shift, counted=serial, bindings=bindings(pair))

    def __reduce__(self) -> tuple[Callable[[str], JointKind[Any]], tuple[str]]:
        return find_kind, (self.name,)


REGISTRY: dict[str, JointKind[Any]] = {}


def find_kind(name: str) -> JointKind[Any]:
    """The registered kind of that name."""
    return REGISTRY[name]


def joint_kind(
    *, motion: Motion | None = None, thread: Callable[..., tuple[float, float]] | None = None, **coordinates: Rule
) -> Callable[[Callable[P, Sequence[Relation]]], JointKind[P]]:
    """Register a function that builds the primitives of a joint; the coordinates it leaves free, by name.

    The first arguments of the function, a and b, are frames, or frames or points where they are annotated so.
    motion, thread: see :class:`JointKind`.
    """

    def register(build: Callable[P, Sequence[Relation]]) -> JointKind[P]:
        ends = list(inspect.signature(build).parameters.values())[:2]
        takes = tuple("point" if "Point" in str(end.annotation) else "frame" for end in ends)
        declared = (build.__name__, Role.JOINT, build, coordinates, takes, motion, thread)
        return REGISTRY.setdefault(build.__name__, JointKind(*declared))

    return register


def coupling_kind(
    *takes: str, role: Role = Role.COUPLING, parts: tuple[str, ...] = ()
) -> Callable[[Callable[P, Sequence[Relation]]], JointKind[P]]:
    """Register a function that builds the primitives of a constraint between coordinates, of these kinds ("": any)."""

    def register(build: Callable[P, Sequence[Relation]]) -> JointKind[P]:
        return REGISTRY.setdefault(build.__name__, JointKind(build.__name__, role, build, {}, takes, parts=parts))

    return register


def method_kind(
    name: str, role: Role, takes: tuple[str, ...] = (), *, parts: tuple[str, ...] = (), implied: bool = False
) -> JointKind[Any]:
    """Register a kind that a method of ``Mechanism`` builds."""

    def build() -> list[Relation]:
        raise AssertionError("Mechanism builds this")

    return REGISTRY.setdefault(name, JointKind(name, role, build, {}, takes, parts=parts, implied=implied))


@explains()
@read_only("remove it, m.remove({name!r}), and add it again", settable=("inertia",))
@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """A constraint of a mechanism, by name: its kind, what it connects, its parameters.

    ``ends``: the frames, points, vectors or coordinates it is between.  ``angles``: those of its coordinates that are
    angles, by name.  ``edge``: the motion it allows, where its kind declares one.
    """

    name: str
    kind: JointKind[Any]
    ends: tuple[Any, ...]
    parameters: tuple[tuple[str, Any], ...]
    relations: tuple[Relation, ...]
    angles: tuple[tuple[str, CountedAngle], ...] = ()
    edge: Edge | None = None

    @property
    def a(self) -> Frame | Point:
        """The first of two frames or points."""
        return self._end(0)

    @property
    def b(self) -> Frame | Point:
        """The second of two frames or points."""
        return self._end(1)

    def _end(self, k: int) -> Frame | Point:
        if len(self.ends) != 2 or not all(isinstance(end, Frame | Point) for end in self.ends):
            raise ModelError(f"{self.kind.name} {self.name!r} is not between two frames; see its ends")
        return self.ends[k]

    @property
    def bodies(self) -> tuple[Body, ...]:
        """Every body it is on, the ground included."""
        found: dict[Body, None] = {}
        for end in self.ends:
            found.update(dict.fromkeys(end.bodies if isinstance(end, Coordinate) else (end.body,)))
        return tuple(found)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints whose coordinates it is between."""
        return tuple(end.joint for end in self.ends if isinstance(end, Coordinate) and end.joint)

    @property
    def equations(self) -> int:
        """Number of constraint equations; limits and drivers do not count."""
        return sum(relation.primitive.equations for relation in self.relations if relation.signal is None)

    @property
    def inertia(self) -> Any:
        """Inertia of the coordinate [kg m² of an angle, kg of a displacement], zero if none was set; may be set.
        A number, or a formula of parameters that is above zero.

        I adds ½ I q̇² to the kinetic energy, as a rotor does that turns with the joint: a motor of the moment J behind a
        gear of the ratio n has I = J n².  Also called armature.  The joint must have one coordinate.
        """
        model = self._model
        return 0.0 if model is None else model.inertias.get(self.name, 0.0)

    @inertia.setter
    def inertia(self, value: Any) -> None:
        what = f"the inertia of joint {self.name!r}"
        if not self.kind.takes_inertia:
            valid = ", ".join(kind.name for kind in REGISTRY.values() if kind.takes_inertia)
            raise ModelError(
                f"{what} cannot be set: {check.with_article(self.kind.name)} has none, only joints of one coordinate "
                f"have ({valid}); give inertia= to a body, or use several joints"
            )
        given = value
        if isinstance(value, Formula):
            if told := formulas.Rule(value, check.positive, what).broken(value.book.values):
                raise ModelError(told)
        else:
            given = check.positive(value, what, zero=True, instead="use 0 for none")
        if self._model is None or self._model.joints.get(self.name) is not self:
            raise ModelError(f"{what} cannot be set: the joint was removed, or is of another mechanism")
        self._model.set_joint_inertia(self.name, given)

    @property
    def _model(self) -> Any:
        """Of its mechanism."""
        body = next(iter(self.bodies), None)
        return None if body is None else body._model

    def of(self, name: str) -> Coordinate:
        """One of its coordinates, for drivers, limits and couplings: ``joint.of("displacement")``."""
        rule = self.kind.coordinates.get(name) if isinstance(name, str) else None
        if rule is None:
            offered = ", ".join(map(repr, self.kind.coordinates)) or "none"
            what = f"joint {self.name!r} ({self.kind.name})"
            if name is None and self.kind.coordinates:
                raise ModelError(f"{what} has {len(self.kind.coordinates)} coordinates, {offered}; name one of them")
            raise ModelError(f"{what} has no coordinate {name!r}; it has {offered}")
        kind, features = rule(*self.ends)
        return Coordinate(kind, features, dict(self.angles).get(name), self.name, name, *self.ends)

    def _check_state(self, state: Any) -> None:
        if not isinstance(state, State):
            raise ModelError(f"joint {self.name!r} was given {state!r}; it must be a State, such as result.state")

    def coordinates(self, state: State) -> dict[str, float]:
        """The joint's coordinates in a state, by name: angles [rad], displacements [m].

        Angles are in (−π, π], or include whole turns where the state counts them, as in a mechanism with drivers or
        gears.
        """
        self._check_state(state)
        return {name: self.of(name).value(state) for name in self.kind.coordinates}

    def coordinate(self, state: State, name: str | None = None) -> float:
        """One coordinate; the name may be omitted where there is only one."""
        self._check_state(state)
        return self.chosen(name).value(state)

    def rate(self, state: State, name: str | None = None) -> float:
        """The rate of one coordinate in a state with velocities: [m/s], or [rad/s]."""
        self._check_state(state)
        return self.chosen(name).rate(state)

    def acceleration(self, state: State, name: str | None = None) -> float:
        """The acceleration of one coordinate in a state with accelerations: [m/s²], or [rad/s²]."""
        self._check_state(state)
        return self.chosen(name).acceleration(state)

    def chosen(self, name: str | None = None) -> Coordinate:
        """One of its coordinates; the name may be omitted where there is only one."""
        if name is None and not self.kind.coordinates:
            what = f"joint {self.name!r} ({self.kind.name})"
            raise ModelError(f"{what} has no coordinates; use cd.coordinate(frame_a, frame_b, of)")
        only = next(iter(self.kind.coordinates)) if name is None and len(self.kind.coordinates) == 1 else name
        return self.of(only)  # type: ignore[arg-type]  # None is refused with the names

    def relative(self, state: State) -> Relative:
        """Pose of b in a."""
        self._check_state(state)
        (p_WA, R_WA), (p_WB, R_WB) = _world(self.a, state), _world(self.b, state)
        return Relative(R_WA.T @ (p_WB - p_WA), R_WA.T @ R_WB)

    def __deepcopy__(self, memo: dict[int, Any]) -> Joint:
        ends, relations, angles = deepcopy((self.ends, self.relations, self.angles), memo)
        # a driver's function stays the same object
        parameters = tuple((k, deepcopy(v, memo) if isinstance(v, Formula | Signal) else v) for k, v in self.parameters)
        return Joint(self.name, self.kind, ends, parameters, relations, angles, self.edge)

    def description(self) -> tuple[Any, ...]:
        """All that defines the joint, as plain values: equal descriptions, equal joints."""
        ends = tuple(end.description() for end in self.ends)
        told = tuple((k, v.description() if isinstance(v, Formula | Primitive) else v) for k, v in self.parameters)
        return self.name, self.kind.name, ends, told

    def __repr__(self) -> str:
        return f"<{self.kind.name} {self.name!r}: {' – '.join(repr(body.name) for body in self.bodies)}>"


def _world(item: Frame | Point, state: State) -> tuple[FloatArray, FloatArray]:
    pose = state[item.body.name]
    if isinstance(item, Point):
        return pose.point(item.feature().at(state.variables)), pose.matrix
    axes = [item.axis(k).at(state.variables) for k in "xyz"]
    return pose.point(item.feature().at(state.variables)), pose.matrix @ np.column_stack(axes)
