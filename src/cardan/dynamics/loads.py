"""Loads: springs, forces, torques, actuators, friction, bushings, dampers.  They exert forces, and constrain nothing.

A load is a law of efforts on the coordinates of relations, or a wrench on a body.  A new kind is one function with
``@load_kind`` that returns an :class:`Action`.  Annotations say what its options measure (:mod:`cardan.quantities`);
its method and its place in files follow from it.

========== ============================================== =================
coordinate effort, positive if it increases the coordinate power
========== ============================================== =================
length     force [N]                                      effort · rate [W]
angle      torque [N m]                                   effort · rate [W]
========== ============================================== =================
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, ParamSpec

import numpy as np

from cardan.calls import explains
from cardan.constraints import primitives
from cardan.dynamics import tables
from cardan.dynamics.functions import Called, Recorded, recorded_or_called, taking
from cardan.errors import ModelError
from cardan.joints.coordinates import Coordinate, coordinate
from cardan.joints.couplings import DRIVEN
from cardan.joints.rate_rows import spin
from cardan.quantities import FunctionOfMotion, FunctionOfTime, InSI, OfCoordinate
from cardan.system import check
from cardan.system.formulas import Formula, Rule, formulas_in, told
from cardan.system.parts import Body
from cardan.system.read_only import read_only
from cardan.system.relations import Relation

P = ParamSpec("P")

SLIDING_SPEED: Final = 1e-3  # [m/s or rad/s] at which regularised Coulomb friction has reached tanh 1 = 76 %
AXES: Final = ("world", "body")
SYMMETRIC: Final = 1e-9  # relative to the largest entry: a smaller difference is rounding


class Law(NamedTuple):
    """Efforts on the coordinates of relations; ``code``, ``sort`` and ``numbers`` as in :mod:`.tables`.

    Numbers may be formulas of parameters.
    """

    code: int
    sort: int
    numbers: tuple[Any, ...]


class Wrench(NamedTuple):
    """A force [N] at a point [m] of a body, in its axes, or a torque [N m]; ``vector`` in world or in body axes."""

    body: Body
    is_torque: bool
    in_body: bool
    point: tuple[float, float, float]
    vector: tuple[float, float, float]


class Action(NamedTuple):
    """What a load does: a law on relations, or a wrench; ``function`` gives the effort, or the vector.

    ``rules``: checks of its numbers that are formulas, besides the conditions of the book.
    """

    relations: tuple[Relation, ...] = ()
    law: Law | None = None
    wrench: Wrench | None = None
    function: Recorded | Called | None = None
    rules: tuple[Rule, ...] = ()

    def numbers(self) -> list[tuple[str, tuple[Any, ...]]]:
        """By the names of fields, its numbers besides those of its relations; some may be formulas."""
        if self.wrench is not None:
            return [("point", self.wrench.point), ("vector", self.wrench.vector)]
        return [] if self.law is None else [("numbers", self.law.numbers)]


@dataclass(frozen=True, slots=True)
class LoadKind(Generic[P]):
    """One kind of load.  ``takes``: what its first arguments are, "point", "frame", "body", "coordinate" or, with a
    bar between them, one of several."""

    name: str
    build: Callable[P, Action]
    takes: tuple[str, ...]

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.build)

    def __reduce__(self) -> tuple[Callable[[str], LoadKind[Any]], tuple[str]]:
        return find_kind, (self.name,)


REGISTRY: dict[str, LoadKind[Any]] = {}


def find_kind(name: str) -> LoadKind[Any]:
    """The registered kind of that name."""
    return REGISTRY[name]


def load_kind(*takes: str) -> Callable[[Callable[P, Action]], LoadKind[P]]:
    """Register a kind of load by the function that builds it."""

    def register(build: Callable[P, Action]) -> LoadKind[P]:
        made = REGISTRY[build.__name__] = LoadKind(build.__name__, build, takes)
        return made

    return register


@explains()
@read_only("remove it, m.remove({name!r}), and add it again")
@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A load of a mechanism, by name: its kind, what it acts on, its parameters."""

    name: str
    kind: LoadKind[Any]
    ends: tuple[Any, ...]
    parameters: tuple[tuple[str, Any], ...]
    action: Action

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations whose coordinates it acts on; none for a wrench."""
        return self.action.relations

    @property
    def _rules(self) -> list[Rule]:
        """The checks of its numbers that are formulas, besides the conditions of the book."""
        return [rule._replace(what=f"{self.kind.name} {self.name!r}: the {rule.what}") for rule in self.action.rules]

    @property
    def bodies(self) -> tuple[Body, ...]:
        """Every body it acts on, the ground included."""
        found: dict[Body, None] = {}
        for end in self.ends:
            if isinstance(end, Coordinate):
                found.update(dict.fromkeys(end.bodies))
            else:
                found[end if isinstance(end, Body) else end.body] = None
        return tuple(found)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints on whose coordinates it acts."""
        return tuple(end.joint for end in self.ends if isinstance(end, Coordinate) and end.joint)

    @property
    def is_called(self) -> bool:
        """Whether Python calls its function in every evaluation."""
        return isinstance(self.action.function, Called)

    def __deepcopy__(self, memo: dict[int, Any]) -> Load:
        ends, action = deepcopy((self.ends, self.action), memo)
        own = tuple([(k, deepcopy(v, memo) if formulas_in(v) else v) for k, v in self.parameters])
        return Load(self.name, self.kind, ends, own, action)

    def description(self) -> tuple[Any, ...]:
        """All that defines the load, as plain values: equal descriptions, equal loads."""
        ends = tuple(("body", end.name) if isinstance(end, Body) else end.description() for end in self.ends)
        return self.name, self.kind.name, ends, told(self.parameters)

    def __repr__(self) -> str:
        return f"<{self.kind.name} {self.name!r}: {' – '.join(repr(body.name) for body in self.bodies)}>"


def make(kind: LoadKind[Any], name: str, ends: tuple[Any, ...], options: Mapping[str, Any]) -> Load:
    """The load of that kind; its ends are those that the mechanism has checked."""
    action = kind.build(*ends, **options)
    if isinstance(action.function, Called):
        action = action._replace(function=Called(f"{kind.name} {name!r}", action.function.function))
    values = []
    for word, value in options.items():
        if word != "of" and value is not None:
            values.append((word, action.function if callable(value) else _plain(value)))
    return Load(name, kind, ends, tuple(values), action)


def _plain(value: Any) -> Any:
    """Numbers, and lists of them, as floats and tuples of them, so that descriptions compare equal."""
    if isinstance(value, str | Formula):
        return value
    if formulas_in(value):
        return tuple(map(_plain, value))
    plain = np.asarray(value, dtype=float).tolist()
    return tuple(map(_plain, plain)) if isinstance(plain, list) else plain


# -- the kinds ---------------------------------------------------------------------------------------------------------


@load_kind("point|coordinate", "point")
def spring(
    a: Any,
    b: Any = None,
    *,
    stiffness: InSI = 0.0,
    rest: OfCoordinate = 0.0,
    damping: InSI = 0.0,
    of: str | None = None,
) -> Action:
    """A spring and damper between two points, or on a coordinate of a joint: −stiffness·(x − rest) − damping·ẋ.

    x: the distance of the points [m], or the coordinate [m or rad, with whole turns].  stiffness [N/m or N m/rad],
    rest [m or rad], damping [N s/m or N m s/rad].  of: which coordinate, where the joint has several.
    """
    on = a if b is None else coordinate(a, b, "distance")
    k = check.positive_quantity(
        stiffness, "the stiffness", zero=True, instead="use an actuator for a negative stiffness"
    )
    c = check.positive_quantity(damping, "the damping", zero=True, instead="use an actuator for a negative damping")
    if k == 0.0 and c == 0.0:
        raise ModelError("neither stiffness nor damping is above zero; give one of them, or both")
    length = check.quantity(rest, "the rest")
    if on.kind == "distance" and isinstance(length, Formula):
        check.positive_quantity(length, "the rest", zero=True)
    elif on.kind == "distance" and length < 0.0:
        raise ModelError(f"the rest is {length} m; a distance is never negative: it must be zero or more")
    return _linear(on, stiffness=k, rest=length, damping=c)


@load_kind("coordinate")
def friction(
    joint: Any, *, viscous: InSI = 0.0, coulomb: InSI = 0.0, speed: InSI = SLIDING_SPEED, of: str | None = None
) -> Action:
    """Friction on a coordinate of a joint: −viscous·ẋ − coulomb·tanh(ẋ/speed).

    viscous [N s/m or N m s/rad].  coulomb [N or N m]: an effort, not a coefficient.  Coulomb friction is regularised:
    below ``speed`` [m/s or rad/s] it decreases to zero, so that a joint creeps where it would stick.
    """
    c = check.positive_quantity(viscous, "viscous", zero=True)
    e = check.positive_quantity(coulomb, "coulomb", zero=True)
    if c == 0.0 and e == 0.0:
        raise ModelError("neither viscous nor coulomb is above zero; give one of them, or both")
    return _linear(joint, damping=c, coulomb=e, speed=check.positive_quantity(speed, "the speed"))


@load_kind("coordinate")
def actuator(joint: Any, f: FunctionOfMotion, *, of: str | None = None) -> Action:
    """An effort on a coordinate of a joint, positive where it increases the coordinate.

    f: a number [N or N m], or a function f(t, coordinate, rate).  A function of operators and cd.sin, cd.tanh, … is
    recorded once and compiled, with the values that its other variables have then; any other function is called by
    Python in every evaluation.  It must depend on its arguments only.
    """
    if not callable(f):
        return _linear(joint, constant=check.quantity(f, "f, if not a function of (t, coordinate, rate),"))
    function = recorded_or_called(f)
    if isinstance(function, Recorded):
        law = Law(tables.RECORDED, _sort(joint), function.constants)
    else:
        law = Law(tables.CALLED, _sort(joint), ())
    return Action((_relation(joint),), law, function=function)


@load_kind("point")
def force(point: Any, f: FunctionOfTime, *, axes: str = "world") -> Action:
    """A force at a point of a body.

    f [N]: three numbers, or a function f(t, state) that returns them; in world axes, or in those of the body.
    """
    place = point.feature().value
    return _wrench(point.body, False, place, f, axes)


@load_kind("body")
def torque(body: Any, f: FunctionOfTime, *, axes: str = "world") -> Action:
    """A torque on a body.

    f [N m]: three numbers, or a function f(t, state) that returns them; in world axes, or in those of the body.
    """
    return _wrench(body, True, (0.0, 0.0, 0.0), f, axes)


@load_kind("frame", "frame")
def bushing(frame_a: Any, frame_b: Any, stiffness: InSI, damping: InSI = (0.0,) * 6) -> Action:
    """An elastic connection of two frames: efforts −K x − C ẋ, with the potential ½ xᵀ K x.

    x: the position of frame b in frame a [m], then the rotation vector from a to b [rad], in the axes of a.  K and C:
    six numbers, or symmetric 6×6 matrices, in the order force x y z, torque x y z; K without damping is conservative at
    every angle below π.  The force acts at the origin of frame b.
    """
    about = Relation(primitives.rotation_vector, (frame_a.orientation(), frame_b.orientation()))
    (k, rules_k), (c, rules_c) = _matrix(stiffness, "stiffness"), _matrix(damping, "damping")
    if not rules_k and not rules_c and not any((*k, *c)):
        raise ModelError("neither stiffness nor damping is above zero; give one of them, or both")
    return _between(frame_a, frame_b, about, (*k, *c), rules_k + rules_c)


@load_kind("frame", "frame")
def damper(frame_a: Any, frame_b: Any, damping: InSI) -> Action:
    """Resistance to the motion of frame b relative to frame a: efforts −C w.

    w: the velocity of the origin of b in frame a [m/s], then the angular velocity of b relative to a [rad/s], in the
    axes of a.  C: six numbers, or a symmetric 6×6 matrix, in the order force x y z, torque x y z.  The force acts at
    the origin of frame b.  Other than with the damping of a bushing, the torque is C ω at every angle.
    """
    axes = [frame_a.axis(k) for k in "xyz"]
    about = Relation(spin(), (frame_a.orientation(), frame_b.orientation(), *axes))
    matrix, rules = _matrix(damping, "damping")
    if not rules and not any(matrix):
        raise ModelError("the damping is zero; give a number above zero")
    return _between(frame_a, frame_b, about, (*(0.0,) * 36, *matrix), rules)


def _between(a: Any, b: Any, about: Relation, numbers: tuple[Any, ...], rules: tuple[Rule, ...]) -> Action:
    """Of two frames: a law of K and C on the position of b in a, and on the rows of a rotation."""
    if a.body is b.body:
        raise ModelError(f"it is between body {a.body.name!r} and itself; it needs two different bodies")
    along = [Relation(primitives.dot_2, (a.axis(k), a.feature(), b.feature()), (0.0,)) for k in "xyz"]
    return Action((*along, about), Law(tables.MATRIX, tables.PLAIN, numbers), rules=rules)


def _linear(on: Coordinate, **numbers: Any) -> Action:
    words = ("constant", "stiffness", "rest", "damping", "coulomb", "speed")
    law = Law(tables.LINEAR, _sort(on), tuple(numbers.get(word, 1.0 if word == "speed" else 0.0) for word in words))
    return Action((_relation(on),), law)


def _relation(on: Coordinate) -> Relation:
    """The relation whose value is the coordinate, or the vector between two points."""
    if on.kind == "distance":
        return Relation(primitives.coincidence, on.features)
    return Relation(DRIVEN[on.kind], on.arguments(), (0.0,))


def _sort(on: Coordinate) -> int:
    return {"distance": tables.APART, "inclination": tables.INCLINED}.get(on.kind, tables.PLAIN)


def _wrench(body: Body, is_torque: bool, point: Any, f: Any, axes: str) -> Action:
    in_body = check.choice(axes, "axes", AXES) == "body"
    if body.is_ground:
        raise ModelError("it is on the ground, which does not move; it must be on a movable body")
    function = None
    if callable(f):
        function = Called("", taking(f, "t", "state"))
        vector = (0.0, 0.0, 0.0)
    else:
        vector = check.place(f, "f, if not a function of (t, state),")
    return Action(wrench=Wrench(body, is_torque, in_body, point, vector), function=function)


def _matrix(given: Any, what: str) -> tuple[tuple[Any, ...], tuple[Rule, ...]]:
    """As :func:`_symmetric`, and the rule of a matrix with formulas."""
    if not formulas_in(given):
        return _symmetric(given, what), ()
    rows: Any = (
        [check.numbers(row, 6, f"a row of the {what}", check.quantity) for row in given]
        if all(isinstance(row, tuple | list) for row in given)
        else check.numbers(given, 6, f"the {what}", check.quantity)
    )
    if not isinstance(rows, list):
        rows = [tuple([value if i == j else 0.0 for j in range(6)]) for i, value in enumerate(rows)]
    rule = Rule(tuple(rows), _symmetric, what)
    if broken := rule.broken(formulas_in(rows)[0][1].book.values):
        raise ModelError(broken)
    pairs = [(rows[i][j], rows[j][i]) for i in range(6) for j in range(6)]
    return tuple([a if a == b else 0.5 * (a + b) for a, b in pairs]), (rule,)


def _symmetric(given: Any, what: str) -> tuple[float, ...]:
    """A symmetric 6×6 matrix without negative eigenvalues, row-major, of six numbers or of six rows."""
    try:
        matrix = np.array(given, dtype=float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape == (6,):
        matrix = np.diag(matrix)
    if matrix.shape != (6, 6) or not np.isfinite(matrix).all():
        raise ModelError(f"the {what} is {given!r}; it must be six numbers, or 6×6 numbers, each finite")
    scale = np.sqrt(np.abs(np.diag(matrix)))
    scale[scale == 0.0] = 1.0
    plain = matrix / scale[:, None] / scale  # forces and torques on one scale
    if np.abs(plain - plain.T).max() > SYMMETRIC * np.abs(plain).max(initial=1.0):
        raise ModelError(f"the {what} is {matrix.tolist()}; it must be symmetric")
    if np.linalg.eigvalsh(plain)[0] < -SYMMETRIC * np.abs(plain).max(initial=1.0):
        raise ModelError(f"the {what} is {matrix.tolist()}; it must have no negative eigenvalue")
    return tuple((0.5 * (matrix + matrix.T)).ravel().tolist())
