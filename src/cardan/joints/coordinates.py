"""Coordinates between two frames or points: what joints leave free, and what drivers, limits and couplings act on.

============ =================================================== ====
kind         meaning                                             unit
============ =================================================== ====
angle        of a vector of b about x × y of a, with whole turns rad
displacement of a point of b along an axis of a                  m
distance     between two points                                  m
inclination  between two axes, in [0, π]                         rad
============ =================================================== ====
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.calls import explained, explains
from cardan.constraints.registry import KINDS, FeatureKind
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system.parts import Body, CountedAngle, Feature, Frame, Point
from cardan.system.state import FloatArray, State

Rule = Callable[[Any, Any], tuple[str, tuple[Feature, ...]]]
"""From two ends to the kind of a coordinate and the features it is computed from (without the counted angle)."""


def about_z(a: Frame, b: Frame) -> tuple[str, tuple[Feature, ...]]:
    """Angle from x_a to x_b about z_a."""
    return "angle", (a.axis("x"), a.axis("y"), b.axis("x"))


def cross_about_z(a: Frame, b: Frame) -> tuple[str, tuple[Feature, ...]]:
    """Angle from x_a to z_b about z_a."""
    return "angle", (a.axis("x"), a.axis("y"), b.axis("z"))


def along(axis: str) -> Rule:
    """Displacement of b along an axis of a."""
    return lambda a, b: ("displacement", (a.axis(axis), a.feature(), b.feature()))


along_x, along_y, along_z = along("x"), along("y"), along("z")


def apart(a: Frame | Point, b: Frame | Point) -> tuple[str, tuple[Feature, ...]]:
    """Distance of two points."""
    return "distance", (a.feature(), b.feature())


def between(a: Frame, b: Frame) -> tuple[str, tuple[Feature, ...]]:
    """Angle between z_a and z_b, in [0, π]."""
    return "inclination", (a.axis("z"), b.axis("z"))


def swapped(rule: Rule) -> Rule:
    """The same with a and b exchanged."""
    return lambda a, b: rule(b, a)


class Course(NamedTuple):
    """A point [m] or direction in world over some instants, with its derivatives by time, shape (instants, 3) each."""

    value: FloatArray
    rate: FloatArray
    acceleration: FloatArray


def course(
    feature: Feature, local: FloatArray, poses: FloatArray, velocities: FloatArray, accelerations: FloatArray
) -> Course:
    """Of a feature of a body, from its values in body axes, shape (instants, 3), and from the motion of the body.

    poses, shape (instants, 7): r and p.  velocities, shape (instants, 6): ṙ in world, ω in body axes; accelerations:
    r̈ and ω̇ likewise.  With x = A s in world:  ẋ = ω × x  and  ẍ = ω̇ × x + ω × ẋ.
    """
    p = poses[:, 3:]
    x, w, dw = (np.asarray(euler.rotate(p, one)) for one in (local, velocities[:, 3:], accelerations[:, 3:]))
    dx = np.cross(w, x)
    ddx = np.cross(dw, x) + np.cross(w, dx)
    if feature.kind is FeatureKind.POINT:
        return Course(x + poses[:, :3], dx + velocities[:, :3], ddx + accelerations[:, :3])
    return Course(x, dx, ddx)


def still(local: FloatArray) -> Course:
    """Of a feature of the ground."""
    return Course(local, np.zeros_like(local), np.zeros_like(local))


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class Coordinate:
    """One coordinate between two ends, ready to be driven, limited or coupled.

    ``joint``: name of the joint it belongs to, "" for a coordinate between two frames without a joint.
    """

    kind: str
    features: tuple[Feature, ...]
    counted: CountedAngle | None
    joint: str
    name: str
    a: Frame | Point
    b: Frame | Point

    @property
    def unit(self) -> str:
        """ "m" or "rad"."""
        return str(KINDS[self.kind].unit)

    @property
    def is_turn(self) -> bool:
        """Whether it is the angle of a joint about an axis that is fixed in both bodies."""
        return self.kind == self.name == "angle" and bool(self.joint)

    @property
    def bodies(self) -> tuple[Body, Body]:
        return self.a.body, self.b.body

    def arguments(self) -> tuple[Feature, ...]:
        """The features a primitive reads for it."""
        return self.features if self.counted is None else (*self.features, Feature(FeatureKind.ANGLE, self.counted, ()))

    def value(self, state: State) -> float:
        """In a state: [m], or [rad] with whole turns where the state counts them, else in (−π, π]."""
        if not isinstance(state, State):
            raise ModelError(f"{self!r} was given {state!r}; it must be a State, such as result.state")
        return float(self.values((state,))[0])

    def values(self, states: Sequence[State]) -> FloatArray:
        """In several states with the same bodies, shape (states,), as :meth:`value`."""
        known = [state.angles.get(self.counted.key) for state in states] if self.counted is not None else [None]
        near = None if None in known else np.array(known, dtype=np.float64)
        return self.values_in_world([_world(feature, states) for feature in self.features], near)

    def values_in_world(self, world: Sequence[FloatArray], near: FloatArray | None) -> FloatArray:
        """From its features in world coordinates, shape (states, 3) each; shape (states,).

        near [rad], shape (states,): angles that count its whole turns; without them an angle is in (−π, π].
        """
        if self.kind == "displacement":
            return _dot(world[0], world[2] - world[1])
        if self.kind == "distance":
            return np.asarray(np.linalg.norm(world[1] - world[0], axis=1))
        if self.kind == "inclination":
            u, v = world
            return np.asarray(np.arctan2(np.linalg.norm(np.cross(u, v), axis=1), _dot(u, v)))
        x, y, w = world
        angle = np.arctan2(_dot(y, w), _dot(x, w))
        if near is not None:
            turns = (near - angle) / (2.0 * math.pi)
            return np.asarray(angle + 2.0 * math.pi * np.where(np.isfinite(turns), np.round(turns), math.nan))
        return np.where(angle == -math.pi, math.pi, angle)

    def rate(self, state: State) -> float:
        """Its rate in a state with velocities: [m/s], or [rad/s]; NaN where it is undefined."""
        return float(self._rates((state,), "rate")[0][0])

    def acceleration(self, state: State) -> float:
        """Its acceleration in a state with accelerations: [m/s²], or [rad/s²]; NaN where it is undefined."""
        return float(self._rates((state,), "acceleration")[1][0])

    def _rates(self, states: Sequence[State], what: str) -> tuple[FloatArray, FloatArray]:
        """Rates and accelerations in several states with the same bodies, shape (states,) each.

        what: "rate" if accelerations are not needed; they may then be wrong.
        """
        for state in states:
            if not isinstance(state, State):
                raise ModelError(f"{self!r} was given {state!r}; it must be a State, such as motion.states[0]")
            if state.velocities is None:
                ways = "states of m.move, m.simulate and m.solve_rates have them"
                raise ModelError(f"this state has no velocities, and so {self!r} has no {what}; {ways}")
            if state.accelerations is None and what != "rate":
                ways = "states of m.move and m.simulate have them"
                raise ModelError(f"this state has no accelerations, and so {self!r} has none; {ways}")
        return self.rates_in_world([_course(feature, states) for feature in self.features])

    def rates_in_world(self, world: Sequence[Course]) -> tuple[FloatArray, FloatArray]:
        """Rates and accelerations from its features in world coordinates, shape (instants,) each.

        displacement: a·d;  distance: |d|.  inclination θ of unit vectors, with c = u·v:  θ̇ = −ċ/sin θ,
        θ̈ = −(c̈ + c θ̇²)/sin θ.  angle, with z = (x + i y)·w:  φ̇ = Im ż/z,  φ̈ = Im(z̈/z − (ż/z)²).
        NaN where it is undefined.
        """
        with np.errstate(all="ignore"):
            if self.kind == "displacement":
                axis, start, end = world
                return _product(axis, _difference(start, end))[1:]
            if self.kind == "distance":
                d = _difference(*world)
                size = np.linalg.norm(d.value, axis=1)
                _, half, square = _product(d, d)
                rate = np.where(size > 0.0, 0.5 * half / size, math.nan)
                return rate, (0.5 * square - rate * rate) / size
            if self.kind == "inclination":
                u, v = world
                c, dc, ddc = _product(u, v)
                sine = np.linalg.norm(np.cross(u.value, v.value), axis=1)
                rate = np.where(sine > 0.0, -dc / sine, math.nan)
                return rate, -(ddc + c * rate * rate) / sine
            x, y, w = world
            real, imaginary = _product(x, w), _product(y, w)
            z, dz, ddz = (a + 1j * b for a, b in zip(real, imaginary, strict=True))
            ratio = np.where(z != 0.0, dz / z, complex(math.nan, math.nan))
            return ratio.imag, (ddz / z - ratio * ratio).imag

    def projections(self, states: Sequence[State]) -> FloatArray:
        """Of an angle: length of the vector projected onto the plane of x and y; 1 in a joint, 0 if undefined."""
        x, y, w = (_world(feature, states) for feature in self.features)
        return np.hypot(_dot(x, w), _dot(y, w))

    def description(self) -> tuple[Any, ...]:
        return self.kind, self.joint, self.name, self.a.description(), self.b.description()

    def __repr__(self) -> str:
        of = f"joint {self.joint!r}" if self.joint else f"{self.a.body.name!r} – {self.b.body.name!r}"
        return f"<{self.kind} of {of}>"


def _world(feature: Feature, states: Sequence[State]) -> FloatArray:
    """A point [m] or direction in world coordinates, shape (states, 3)."""
    body = feature.body
    assert isinstance(body, Body)
    states[0][body.name]  # raises if the states do not have the body
    local = np.array([feature.at(state.variables) for state in states])
    if body.is_ground:
        return local
    k = states[0].names.index(body.name)
    poses = np.array([state.coordinates[k] for state in states])
    found = np.asarray(euler.rotate(poses[:, 3:], local))
    return found + poses[:, :3] if feature.kind is FeatureKind.POINT else found


def _course(feature: Feature, states: Sequence[State]) -> Course:
    """A feature over states with velocities; accelerations that are not known are zero."""
    body = feature.body
    assert isinstance(body, Body)
    states[0][body.name]  # raises if the states do not have the body
    local = np.array([feature.at(state.variables) for state in states])
    if body.is_ground:
        return still(local)
    k = states[0].names.index(body.name)
    none = np.zeros((len(states[0].names), 6))
    poses = np.array([state.coordinates[k] for state in states])
    v = np.array([(none if state.velocities is None else state.velocities)[k] for state in states])
    a = np.array([(none if state.accelerations is None else state.accelerations)[k] for state in states])
    return course(feature, local, poses, v, a)


def _difference(start: Course, end: Course) -> Course:
    return Course(*[b - a for a, b in zip(start, end, strict=True)])


def _product(a: Course, b: Course) -> tuple[FloatArray, FloatArray, FloatArray]:
    """a·b with its first and second derivatives."""
    first = _dot(a.rate, b.value) + _dot(a.value, b.rate)
    second = _dot(a.acceleration, b.value) + 2.0 * _dot(a.rate, b.rate) + _dot(a.value, b.acceleration)
    return _dot(a.value, b.value), first, second


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", a, b))


# Names of the coordinates between two ends that belong to no joint.
RULES: Final[Mapping[str, Rule]] = {
    "angle": about_z,
    "displacement": along_z,
    "x": along_x,
    "y": along_y,
    "z": along_z,
    "distance": apart,
    "inclination": between,
}
# Of these the first end, or both, must be frames.
_NEEDS_FRAMES: Final[Mapping[str, tuple[bool, bool]]] = {
    **dict.fromkeys(("angle", "inclination"), (True, True)),
    **dict.fromkeys(("displacement", "x", "y", "z"), (True, False)),
    "distance": (False, False),
}


@explained
def coordinate(a: Frame | Point, b: Frame | Point, of: str = "angle") -> Coordinate:
    """A coordinate between two frames or points, for drivers, limits and couplings, where there is no joint.

    of: ``"angle"`` from x_a to x_b about z_a; ``"displacement"`` (or ``"z"``), ``"x"``, ``"y"`` of b along the axes of
    a; ``"distance"``; ``"inclination"``, the angle between z_a and z_b in [0, π].
    """
    if not isinstance(of, str) or of not in RULES:
        raise check.unknown(of, "coordinate", RULES)
    for end, must in zip((a, b), _NEEDS_FRAMES[of], strict=True):
        if not isinstance(end, Frame if must else Frame | Point):
            valid = "a frame (body.frame(…))" if must else "a point or frame (body.point(…), body.frame(…))"
            raise ModelError(f"the coordinate {of!r} was given {end!r}; it must be {valid}")
    if a.body is b.body:
        raise ModelError(f"the coordinate {of!r} is between body {a.body.name!r} and itself; it never changes")
    if a.body.owner is not b.body.owner:
        names = [f"{end.body.name!r} of {end.body.owner.name!r}" for end in (a, b)]
        raise ModelError(f"the coordinate {of!r} is between {names[0]} and {names[1]}, two mechanisms; use one of them")
    kind, features = RULES[of](a, b)
    counted = make_counted_angle("", features) if kind == "angle" else None
    return Coordinate(kind, features, counted, "", of, a, b)


def make_counted_angle(key: str, features: tuple[Feature, ...]) -> CountedAngle:
    """The counted angle of those axes, numbered by the mechanism; without a key, named after its number."""
    (_, a, x), (_, _, y), (_, b, v) = features
    assert isinstance(a, Body)
    assert isinstance(b, Body)
    serial = a._model.next_serial()
    return CountedAngle(key or f"{a.name} – {b.name} ({serial})", serial, a, x, y, b, v)
