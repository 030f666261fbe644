"""Contacts that open, in analyses: which refuse them, and what results tell about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.contact_record import ContactHistory
from cardan.errors import ModelError
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.state import State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.simulation import Simulation

TOUCHING = 1e-9  # of the extent: faces that are nearer touch


def refuse(drawing: Drawing, what: str) -> None:
    """ModelError if a mechanism has contacts that open, which ``what`` does not consider yet."""
    if opening := drawing.contents.opening:
        raise ModelError(
            f"{what} does not consider contacts that open yet, and {opening[0].name!r} is one (unilateral=True); "
            "use m.simulate, or a copy of the mechanism without it"
        )


def refuse_overlaps(drawing: Drawing, state: State) -> None:
    """ModelError if faces of a contact that opens overlap: an assembly closes joints alone."""
    for name, contact in gaps(drawing, state).items():
        if contact.gap < -TOUCHING * drawing.system.judged_length:
            raise ModelError(
                f"contact {name!r}: the faces overlap by {-contact.gap:.3g} m where the joints are closed, and "
                "assemble does not push them apart yet; start from a pose in which they are apart"
            )


def watching(drawing: Drawing) -> System:
    """The packed system with the contacts that open as equations, from which gaps are read."""
    found: System = drawing.system.cached("contacts that open", lambda: drawing.packed(also=_closed(drawing)))
    return found


def _closed(drawing: Drawing) -> list[Any]:
    return list(drawing.contents.opening)


def gaps(drawing: Drawing, state: State) -> dict[str, Any]:
    """By name, the contacts that open as they are in a state (:class:`cardan.joints.contacts.Contact`)."""
    touches = watching(drawing).index.contacts
    return {joint.name: touches[joint.name].read(state) for joint in drawing.contents.opening}


def coordinates(drawing: Drawing, state: State) -> dict[str, float]:
    """Contact coordinates of the contacts that open, by their keys, in a state that has none."""
    found: dict[str, float] = {}
    touches = watching(drawing).index.contacts
    for name, contact in gaps(drawing, state).items():
        touch = touches[name]
        values = np.concatenate(touch.pair.in_order(contact.parameters))
        found |= dict(zip(touch.keys, values.tolist(), strict=True))
    return found


def read_history(simulation: Simulation, name: Any) -> ContactHistory:
    """See :meth:`cardan.Simulation.contact`."""
    record, e = simulation._record, simulation._equations
    if record is not None and name in record.histories:
        return record.histories[name]
    known = [opening.name for opening in e.openings]
    if not isinstance(name, str) or name not in known:
        raise check.unknown(name, "contact that opens", [*known, *(record.histories if record is not None else ())])
    touch = e.system.index.contacts[name]
    states = list(simulation.states)
    read = [touch.read(state) for state in states]
    gap = np.array([one.gap for one in read])
    points = np.array([one.point for one in read]).reshape(-1, 3)
    normals = np.array([one.normal for one in read]).reshape(-1, 3)
    reaction = simulation.reaction(name)
    a, b = touch.pair.in_order(touch.bodies)
    velocity = np.zeros((len(states), 3))
    for body, sign in ((a, -1.0), (b, 1.0)):
        if body:
            velocity += sign * np.array(
                [_velocity(state, body, point) for state, point in zip(states, points, strict=True)]
            ).reshape(-1, 3)
    slip = velocity - np.einsum("ij,ij->i", velocity, normals)[:, None] * normals
    touching = gap < TOUCHING * e.system.judged_length
    speeds = np.where(touching, np.linalg.norm(slip, axis=1), 0.0)
    unique = np.full(len(states), bool(reaction.unique))
    if record is not None:
        unique &= ~record.are_shared(name, simulation.times)
    return ContactHistory(gap, points, np.array(reaction.force), speeds, unique, normals)


def _velocity(state: State, body: str, point: Any) -> Any:
    """Of a point of a body that is at a place in world."""
    pose = state[body]
    return pose.velocity + np.cross(pose.angular_velocity, point - pose.position)
