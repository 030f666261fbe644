"""The equations of motion of a mechanism, from one of its drawings: masses, gravity, limits and loads, packed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cardan import joints
from cardan.dynamics import mass
from cardan.dynamics.equations import Equations, Opening, Stop
from cardan.dynamics.forces import Forces
from cardan.dynamics.joint_friction import COORDINATES, JointRow
from cardan.dynamics.reactions import ROLLING, Connection, connection
from cardan.errors import ModelError
from cardan.joints import Joint, Role
from cardan.lazy import LazyModule
from cardan.system import check
from cardan.system.check import Triple
from cardan.system.drawing import Drawing
from cardan.system.parts import BodyRecord
from cardan.system.relations import Bundle
from cardan.system.system import System

_contacts = LazyModule("cardan.joints.contacts")

NO_FRICTION = (0.0, 0.0)


def equations_of(drawing: Drawing) -> tuple[Equations, list[str]]:
    """The equations of motion, and what they assume; kept with the system, if there are no loads."""
    if drawing.contents.loads:
        return new_equations(drawing)
    equations, notes = drawing.system.cached(("equations of motion", drawing.gravity), lambda: new_equations(drawing))
    return equations, list(notes)


def new_equations(drawing: Drawing, follow: bool = True, friction: bool = False) -> tuple[Equations, list[str]]:
    """The equations of motion, and what they assume.  follow: False for one pose: contacts are not followed.

    friction: whether they have the rows of the friction of joints.
    """
    c = drawing.contents
    found = mass.masses(drawing.records, drawing.joint_points(), drawing.system.judged_length)
    notes = mass_notes(drawing.records, found, _fixed(drawing))
    return _packed(drawing, found, drawing.gravity, list(c.loads.values()), follow, friction=friction), notes


def _fixed(drawing: Drawing) -> frozenset[str]:
    """Names of the bodies that are fixed where they are drawn."""
    c = drawing.contents
    return frozenset([body.name for body in c.records if f"{body.name}.fixed" in c.joints])


def mass_notes(bodies: Sequence[BodyRecord], found: mass.Masses, fixed: frozenset[str]) -> list[str]:
    """What is assumed about masses that were not given, in words; those of fixed bodies do not matter."""
    moving = [(k, body) for k, body in enumerate(bodies) if body.name not in fixed]
    are_real = check.are_moments(found.diagonal[:, 3:])
    told = {
        "no mass was given for {}: massless, 0 kg and 0 kg m²; give mass= to m.body, or a shape with density=": [
            body.name for _, body in moving if not body.has_mass and body.inertia is None
        ],
        "no mass was given for {}, but an inertia: 0 kg; give mass= to m.body": [
            body.name for _, body in moving if not body.has_mass and body.inertia is not None
        ],
        "no inertia was given for {}: point masses, 0 kg m²; give inertia= to m.body, or a shape with density=": [
            body.name for _, body in moving if body.has_mass and body.inertia is None
        ],
        "the largest principal moment of {} exceeds the sum of the others, as in no real body: check inertia=": [
            body.name for k, body in moving if not are_real[k]
        ],
    }
    return [
        note.format(", ".join(names[:8]) + (" …" if len(names) > 8 else "")) for note, names in told.items() if names
    ]


def metric_equations(drawing: Drawing) -> Equations:
    """The equations with a ball of the size of each body, of 1 kg at the centroid of its joint points, for it."""
    system = drawing.system
    pairs = zip(drawing.records, system.centroids.tolist(), strict=True)
    parts = [body._replace(center=(x, y, z), inertia=None) for body, (x, y, z) in pairs]
    diagonal = mass.balls(parts, [1.0] * len(parts), drawing.joint_points(), system.judged_length)
    frames = np.array([mass.principal_frame(body) for body in parts]).reshape(-1, 7)
    return _packed(drawing, mass.Masses(frames, diagonal, diagonal), (0.0, 0.0, 0.0), [], with_inertias=False)


def inertia_rows(joints_by_name: Mapping[str, Joint], inertias: Mapping[str, float]) -> dict[str, tuple[Bundle, float]]:
    """By its name, the row of the coordinate of each joint that has an inertia, and the inertia."""
    found = {}
    for name, value in inertias.items():
        row = joints.coordinate_row(f"{name}.inertia", joints_by_name[name].chosen())
        found[row.name] = (row, value)
    return found


def friction_rows(drawing: Drawing) -> dict[str, tuple[Bundle, JointRow]]:
    """By its name, the row of the coordinate of each joint that has friction, and what belongs to it."""
    c, places = drawing.contents, drawing.places()
    found = {}
    for name, law in c.frictions.items():
        joint = c.joints[name]
        coordinate = joint.ends[0] if law.law == "mesh" else joint.of(COORDINATES[law.law])
        ratio = dict(joint.parameters).get("ratio" if law.law == "mesh" else "pitch", 0.0)
        if not isinstance(ratio, float | int):
            raise ModelError(f"{joint.kind.name} {name!r} has friction, and so its ratio or pitch must be a number")
        row = joints.coordinate_row(f"{name}.friction", coordinate)
        a, b = places[name][0][0], places[name][-1][-1]
        if a.bindings or b.bindings:
            raise ModelError(
                f"joint {name!r} has friction and a formula in its frames, which friction does not consider"
            )
        found[row.name] = (
            row,
            JointRow(row.name, name, law, a, b, ratio / (2.0 * math.pi) if law.law == "thread" else ratio),
        )
    return found


def _packed(
    drawing: Drawing,
    found: mass.Masses,
    gravity: Triple,
    loads: list[Any],
    follow: bool = True,
    with_inertias: bool = True,
    friction: bool = False,
) -> Equations:
    """The equations of motion with these masses, gravity and loads."""
    c = drawing.contents
    limits = [joint for joint in c.joints.values() if joint.kind.role is Role.LIMIT]
    stops = []
    for joint in limits:
        lower, upper = joint.relations[0].parameters
        restitution = float(dict(joint.parameters).get("restitution", 0.0))
        stops.append(Stop(joint.name, lower, upper, joint.ends[0].is_turn, restitution))
    bundles = [joints.held(joint) if joint in limits else joint for joint in c.joints.values()]
    openings = [_opening(joint) for joint in c.opening]
    bundles += rolling_rows(c.opening)
    rows = inertia_rows(c.joints, drawing.inertias) if with_inertias else {}
    slides = friction_rows(drawing) if friction else {}
    added = [row for row, _ in (*rows.values(), *slides.values())]
    bundles += [*added, *c.rate_rows.values()]
    bundles = [_followed(bundle) for bundle in bundles] if follow else bundles
    angles = drawing.counted_angles([*loads, *added, *c.opening])
    system = System(drawing.records, bundles, angles, found.frames, formulas=drawing.values)
    system.index.contents = c
    forces = Forces(system, drawing.records, loads, angles, drawing.values) if loads else None
    inertias = {name: value for name, (_, value) in rows.items()}
    frictions = [one for _, one in slides.values()] if slides else ()
    return Equations(system, found.diagonal, gravity, stops, forces, found.metric, inertias, openings, frictions)


def _opening(joint: Joint) -> Opening:
    """A contact that opens."""
    given = dict(joint.parameters)
    return Opening(joint.name, given.get("restitution", 0.0), given.get("friction", NO_FRICTION))


def rolling_rows(opening: Sequence[Joint]) -> list[Joint]:
    """The rate rows of contacts that open and have friction: they hold where a contact sticks or rolls."""
    found = []
    for joint in opening:
        if _opening(joint).friction != NO_FRICTION:
            rows = _contacts.rolling_of(joint.relations[0])
            found.append(Joint(f"{joint.name}{ROLLING}", joints.rolling, joint.ends, joint.parameters, (rows,)))
    return found


def connections(drawing: Drawing) -> dict[str, Connection]:
    """Where each constraint is attached; kept with the system."""

    def make() -> dict[str, Connection]:
        c, places = drawing.contents, drawing.places()
        constraints = {**c.joints, **c.rate_rows}
        found = {name: connection(constraints[name], by_end) for name, by_end in places.items()}
        rolling = {row.name: connection(row, places[row.name.removesuffix(ROLLING)]) for row in rolling_rows(c.opening)}
        return found | rolling

    found: dict[str, Connection] = drawing.system.cached("connections", make)
    return found


class Inverse(NamedTuple):
    """What inverse dynamics needs of a mechanism in addition to its packed system, as plain values.

    Masses, ``gravity`` [m/s²], and where each constraint is attached, at the time when a motion was computed.
    ``points`` [m]: where each body is joined, in its axes, by its name.  ``loaded``: the drawing, if it has loads, or
    joints with inertia or friction.
    ``fixed``: names of the bodies that are fixed where they are drawn.
    """

    parts: tuple[BodyRecord, ...]
    points: Mapping[str, Sequence[Any]]
    gravity: Triple
    connections: Mapping[str, Connection]
    loaded: Drawing | None
    fixed: frozenset[str]

    @staticmethod
    def of(drawing: Drawing) -> Inverse:
        """That of a drawing."""
        c = drawing.contents
        loaded = drawing if c.loads or c.inertias or c.frictions else None
        given = (drawing.joint_points(), drawing.gravity, connections(drawing))
        return Inverse(tuple(drawing.records), *given, loaded, _fixed(drawing))

    def notes(self, system: System) -> tuple[str, ...]:
        """What is assumed about masses."""
        found = mass.masses(self.parts, self.points, system.judged_length)
        return tuple(mass_notes(self.parts, found, self.fixed))

    def equations(self, system: System) -> Equations:
        """The equations of motion of a packed system of the mechanism."""
        if self.loaded is not None and self.loaded.contents.frictions:
            return new_equations(self.loaded, friction=True)[0]
        if self.loaded is not None:
            return equations_of(self.loaded)[0]
        found = mass.masses(self.parts, self.points, system.judged_length)
        own = system.rated.with_references(found.frames)
        return Equations(own, found.diagonal, np.array(self.gravity), metric=found.metric)


def _followed(bundle: Joint | Bundle) -> Joint | Bundle:
    """The same for motions, in which contacts stay near where they were."""
    if not any([relation.template.pair is not None for relation in bundle.relations]):
        return bundle
    return Bundle(bundle.name, [relation.followed() for relation in bundle.relations])
