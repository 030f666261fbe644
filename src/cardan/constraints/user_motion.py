"""Motions of joints of the user's own: A″(q) and d″(q) between two frames, recorded once with exact derivatives.

    @cd.joint_motion(angle="rad")
    def helix(angle, *, pitch):
        c, s = cd.cos(angle), cd.sin(angle)
        return ((c, -s, 0), (s, c, 0), (0, 0, 1)), (0, 0, pitch * angle)

    m.constrain("thread", thread, …, pitch=0.01, motion=helix.between(bolt.frame(), nut.frame(), pitch=0.01))

Frame b then is at d″ in the axes of frame a, and has the axes A″ there ([Liu2013] eqs. 9, 10).  A formulation by joints
takes such a constraint as a limb of its tree: its unknowns are the coordinates q, and its equations are left out.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.calls import explained, explains
from cardan.constraints import codegen
from cardan.constraints.expression import Graph, Plain, Quaternion, Scalar, TracingError, Vector
from cardan.constraints.registry import LENGTH_POWER, FeatureKind, Primitive
from cardan.constraints.user import _called, _default, _rows
from cardan.errors import ModelError

ROWS: Final = 12  # A″ row by row, then d″
MOST_COORDINATES: Final = 5
RANGE: Final = (-math.pi, math.pi)  # [rad] where an angle is searched for, if nothing is said
SPACING: Final = math.pi / 12.0  # [rad] of the angles that are tried; the nearest one is then improved
LENGTHS: Final = 24  # of a length that has a range, as many values are tried
MOST_SAMPLES: Final = 2_000
ORTHONORMAL: Final = 1e-9  # how far A″ may be from a rotation


@explains()
@dataclass(frozen=True, slots=True)
class JointMotion:
    """What :func:`joint_motion` makes: coordinates with their units, parameters, and the recorded A″ and d″."""

    name: str
    coordinates: tuple[tuple[str, str], ...]
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, float], ...]
    nodes: tuple[Plain, ...]
    rows: tuple[int, ...]
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)  # not in other processes

    def __reduce__(self) -> tuple[Any, ...]:
        recorded = (self.name, self.coordinates, self.parameters, self.defaults, self.nodes, self.rows)
        return JointMotion, recorded

    def __deepcopy__(self, memo: Any) -> JointMotion:
        return self

    @property
    def lengths(self) -> int:
        """How many coordinates are lengths; they come first."""
        return sum(unit == "m" for _, unit in self.coordinates)

    def between(self, a: Any, b: Any, *, search: Any = None, **parameters: Any) -> OwnLimb:
        """The motion of frame b in frame a, for ``m.constrain(…, motion=…)``.

        search: {coordinate: (lower, upper)}, where coordinates are looked for when a pose is given; angles are looked
        for in one turn, lengths around zero, where nothing is said.  It is no limit.
        """
        what = f"the motion {self.name!r}"
        for name in parameters:
            if name not in self.parameters:
                offered = ", ".join(self.parameters) or "none"
                raise ModelError(f"{what} has no parameter {name!r}; it has {offered}")
        values = {**dict(self.defaults), **parameters}
        numbers = []
        for name in self.parameters:
            if name not in values:
                raise ModelError(f"{what} was not given its parameter {name!r}; it must be a number")
            numbers.append(_number(values[name], f"{what}: the parameter {name!r}"))
        given = {} if search is None else search
        if not isinstance(given, dict) or any(name not in dict(self.coordinates) for name in given):
            listed = ", ".join(repr(name) for name, _ in self.coordinates)
            raise ModelError(
                f"{what}: search is {search!r:.80}; it must be {{coordinate: (lower, upper)}}, of {listed}"
            )
        ranges = tuple(_range(what, name, unit, given.get(name)) for name, unit in self.coordinates)
        self._check_rotation(what, dict(zip(self.parameters, numbers, strict=True)), ranges)
        return OwnLimb(self, a, b, tuple(numbers), ranges)

    def _check_rotation(self, what: str, values: dict[str, float], ranges: Sequence[tuple[float, float, int]]) -> None:
        """ModelError if A″ is not a rotation at some coordinates."""
        if self.function is None:
            return
        for share in (0.31, 0.5, 0.83):
            at = [low + share * (high - low) if high > low else share for low, high, _ in ranges]
            try:
                turned = np.array(self.function(*at, **values)[0], dtype=float)
            except (TypeError, ValueError, ArithmeticError) as error:
                raise ModelError(f"{what} has no value at the coordinates {at}: {error}") from None
            if turned.shape == (4,):
                off = abs(float(turned @ turned) - 1.0)
            else:
                off = float(np.abs(turned @ turned.T - np.eye(3)).max()) + float(np.linalg.det(turned) < 0.0)
            if not off <= ORTHONORMAL:
                raise ModelError(f"{what}: A is not a rotation at the coordinates {at}; it must be one at all of them")

    def kernel(self, reverse: bool) -> Primitive:
        """A″, d″ and their derivatives as rows of a primitive of q; reverse: of frame a in frame b."""
        return _kernel(self, reverse)


class OwnLimb(NamedTuple):
    """A motion between two frames, with its numbers; ``search``: per coordinate lower, upper and how many are tried."""

    motion: JointMotion
    a: Any
    b: Any
    numbers: tuple[float, ...]
    search: tuple[tuple[float, float, int], ...]


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ModelError(f"{what} is {value!r:.80}; it must be a finite number")
    return float(value)


def _range(what: str, name: str, unit: str, given: Any) -> tuple[float, float, int]:
    if given is None:
        return (*RANGE, math.ceil(2.0 * math.pi / SPACING)) if unit == "rad" else (0.0, 0.0, 0)
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ModelError(f"{what}: search of {name!r} is {given!r:.80}; it must be (lower, upper)") from None
    low, high = (_number(one, f"{what}: a bound of search of {name!r}") for one in (low, high))
    if not low < high:
        raise ModelError(f"{what}: search of {name!r} is ({low}, {high}); the lower bound must be below the upper one")
    tried = math.ceil(min((high - low) / SPACING, MOST_SAMPLES)) if unit == "rad" else LENGTHS
    return low, high, tried


@explained
def joint_motion(*misplaced: Any, **coordinates: str) -> Callable[[Callable[..., Any]], JointMotion]:
    """Declare the motion of a joint of your own, for ``m.constrain(…, motion=…)`` and formulations by joints.

    Each positional argument of the function is a coordinate with its unit, "m" or "rad", lengths first; keyword-only
    arguments are parameters.  The function returns the orientation and the position of frame b in frame a: a 3 × 3
    matrix or four Euler parameters (of unit length), and three lengths [m].  It is called once with symbols; it
    computes with operators and cd.sin, cd.cos, ….
    """
    if misplaced or not coordinates:
        raise ModelError("declare the coordinates of the motion with their units, as in @cd.joint_motion(angle='rad')")

    def make(function: Callable[..., Any]) -> JointMotion:
        name = getattr(function, "__name__", type(function).__name__)
        what = f"motion {name!r}"
        if not callable(function):
            raise ModelError(f"{what} was made from {function!r}; it must be a function")
        units = list(coordinates.values())
        if any(unit not in ("m", "rad") for unit in units) or sorted(units) != units:
            raise ModelError(f"{what} has the units {units}; each must be 'm' or 'rad', and lengths come first")
        if len(units) > MOST_COORDINATES:
            raise ModelError(f"{what} has {len(units)} coordinates; a joint has at most {MOST_COORDINATES}")
        parameters, defaults = _signature(what, function, list(coordinates))
        graph = Graph()
        variables = [graph.variable(f"x{i}") for i in range(len(units))]
        named = {word: graph.variable(f"c{i}") for i, word in enumerate(parameters)}
        try:
            rows = _motion_rows(graph, _called(function, variables, named))
            nodes = tuple(node.plain() for node in graph.nodes)
            numbers = tuple(row.index for row in rows)
        except TracingError as error:
            raise ModelError(f"{what}: {error}") from None
        return JointMotion(name, tuple(coordinates.items()), parameters, defaults, nodes, numbers, function)

    return make


def _signature(
    what: str, function: Callable[..., Any], wanted: list[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, float], ...]]:
    """Names of the parameters, and their defaults."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ModelError(f"{what}: Python cannot list its arguments; wrap it in a plain function") from None
    positional = [p.name for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in given if p.kind is p.KEYWORD_ONLY]
    if positional != wanted or len(positional) + len(named) != len(given):
        raise ModelError(
            f"{what} takes {positional}, but the coordinates {wanted} are declared; both must have the same names in "
            "the same order (parameters come after a *)"
        )
    defaults = tuple((p.name, _default(what, p.name, p.default)) for p in named if p.default is not p.empty)
    return tuple(p.name for p in named), defaults


def _motion_rows(graph: Graph, result: Any) -> list[Scalar]:
    """A″ row by row and d″, from what a function returned."""
    shape = "it must return (A, d): a 3 × 3 matrix or four Euler parameters, and three lengths"
    if not isinstance(result, list | tuple) or len(result) != 2:
        raise TracingError(f"it returned {result!r:.80}; {shape}")
    turned, moved = result
    rotation = list(turned.components) if isinstance(turned, Quaternion) else _rows(graph, turned, 0)
    position = list(moved.components) if isinstance(moved, Vector) else _rows(graph, moved, 0)
    if len(position) != 3 or len(rotation) not in (4, 9):
        raise TracingError(f"it returned {len(rotation)} numbers of a rotation and {len(position)} of a place; {shape}")
    if len(rotation) == 4:
        rotation = _matrix(rotation)
    rows = [*rotation, *position]
    if not any(graph.reads(row, "x") for row in rows):
        raise TracingError("it does not depend on its coordinates")
    return rows


def _matrix(p: Sequence[Scalar]) -> list[Scalar]:
    """A(p) of unit Euler parameters, row by row."""
    w, x, y, z = p
    return [
        w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z,
    ]  # fmt: skip


@cache
def _kernel(motion: JointMotion, reverse: bool) -> Primitive:
    count = len(motion.coordinates)
    graph = Graph.from_plain(motion.nodes, count, len(motion.parameters))
    rows = [graph.nodes[k] for k in motion.rows]
    if reverse:  # A″ᵀ and −A″ᵀ d″
        A, d = rows[:9], rows[9:]
        rows = [A[3 * (k % 3) + k // 3] for k in range(9)]
        rows += [-(A[i] * d[0] + A[3 + i] * d[1] + A[6 + i] * d[2]) for i in range(3)]
    text = codegen.motion_module((graph, graph.nodes[:count], rows))
    units: tuple[Any, ...] = ("rad",) * 9 + ("m",) * 3
    return Primitive(
        -1, motion.name, (), motion.parameters, (), units, (), "value", None, motion.name,
        features=(FeatureKind.ANGLE,) * count, components=count, rows=ROWS, equations=ROWS,
        powers=tuple(LENGTH_POWER[unit] for unit in units), text=text, origin=motion,
    )  # fmt: skip
