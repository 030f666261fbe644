"""What a joint is: a bundle of primitives between two frames or points, with the coordinates it leaves free.

A new joint is one function with ``@joint_kind``; the registry-wide tests then cover it, and ``Mechanism`` offers it
as a method by one line.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec

import numpy as np

from cardan.errors import ModelError
from cardan.system.parts import Frame, Point
from cardan.system.state import FloatArray, State
from cardan.system.system import Use

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Relative:
    """Pose of frame b in frame a: d_A [m], shape (3,), and R_AB, shape (3, 3).  A point counts as its body's axes."""

    d_A: FloatArray
    R_AB: FloatArray

    def turn(self) -> float:
        """Angle [rad] in (−π, π] from x_a to x_b about z_a."""
        angle = math.atan2(self.R_AB[1, 0], self.R_AB[0, 0])
        return math.pi if angle == -math.pi else angle


Coordinates = Callable[[Relative], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class JointKind(Generic[P]):
    """One kind of joint: how it is built, how many equations it has, which coordinates it leaves or measures."""

    name: str
    build: Callable[P, Sequence[Use]]
    coordinates: Coordinates
    frames_only: tuple[bool, bool]  # for a and b: a point will not do
    options: tuple[str, ...]  # names of the arguments behind a and b

    def __reduce__(self) -> tuple[Callable[[str], JointKind[Any]], tuple[str]]:
        return find_kind, (self.name,)


REGISTRY: dict[str, JointKind[Any]] = {}


def find_kind(name: str) -> JointKind[Any]:
    """The registered kind of that name."""
    return REGISTRY[name]


def joint_kind(coordinates: Coordinates) -> Callable[[Callable[P, Sequence[Use]]], JointKind[P]]:
    """Register a function that builds the primitives of a joint; ``coordinates`` reads its free coordinates."""

    def register(build: Callable[P, Sequence[Use]]) -> JointKind[P]:
        a, b, *options = inspect.signature(build).parameters.values()
        frames_only = ("Point" not in str(a.annotation), "Point" not in str(b.annotation))
        kind = JointKind(build.__name__, build, coordinates, frames_only, tuple(o.name for o in options))
        REGISTRY[kind.name] = kind
        return kind

    return register


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """A constraint of a mechanism, by name: its kind, what it connects, its parameters."""

    name: str
    kind: JointKind[Any]
    a: Frame | Point
    b: Frame | Point
    parameters: tuple[tuple[str, Any], ...]
    uses: tuple[Use, ...]

    @property
    def equations(self) -> int:
        """Number of constraint equations."""
        return sum(use.primitive.equations for use in self.uses)

    def coordinates(self, state: State) -> dict[str, float]:
        """The joint's coordinates in a state, by name: angles [rad] in (−π, π], displacements [m]."""
        if not isinstance(state, State):
            raise ModelError(f"joint {self.name!r} was given {state!r}; it must be a State, such as result.state")
        return {name: float(value) for name, value in self.kind.coordinates(self.relative(state)).items()}

    def coordinate(self, state: State, name: str | None = None) -> float:
        """One coordinate; the name may be left out where there is only one."""
        values = self.coordinates(state)
        if name is None and len(values) == 1:
            return next(iter(values.values()))
        if name not in values:
            offered = ", ".join(map(repr, values)) or "none"
            raise ModelError(f"joint {self.name!r} ({self.kind.name}) has no coordinate {name!r}; it has {offered}")
        return values[name]

    def relative(self, state: State) -> Relative:
        """Pose of b in a."""
        (p_WA, R_WA), (p_WB, R_WB) = _world(self.a, state), _world(self.b, state)
        return Relative(R_WA.T @ (p_WB - p_WA), R_WA.T @ R_WB)

    def description(self) -> tuple[Any, ...]:
        """All that defines the joint, as plain values: equal descriptions, equal joints."""
        return self.name, self.kind.name, self.a.description(), self.b.description(), self.parameters

    def __repr__(self) -> str:
        return f"<{self.kind.name} {self.name!r}: {self.a.body.name!r} – {self.b.body.name!r}>"


def _world(item: Frame | Point, state: State) -> tuple[FloatArray, FloatArray]:
    pose = state[item.body]
    if isinstance(item, Point):
        return pose.point(item.position), pose.matrix
    return pose.point(item.origin), pose.matrix @ np.column_stack([item.x, item.y, item.z])
