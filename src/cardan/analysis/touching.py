"""Why a motion with contacts ends: the contacts that leave a shape, by name."""

from __future__ import annotations

import numpy as np

from cardan.coordinates import formulations
from cardan.system import layout
from cardan.system.state import FloatArray, State
from cardan.system.system import System

NEAR_EDGE = 1e-6  # of the range of a parameter
WAY = "make the shape larger, or end the motion earlier"


def lost_contacts(system: System, q: FloatArray, v: FloatArray | None = None, ahead: float = 0.0) -> str:
    """Contacts that are at an edge in a pose, or that no longer exist after a time ``ahead`` [s] at velocities v; "" if
    there are none.  q, v: solver coordinates and velocities of the manifold formulation."""
    touches = system.index.contacts
    if not touches:
        return ""
    state = _state(system, q)
    later = state
    if v is not None and np.isfinite(v).all():
        p = formulations.problem(system, "manifold")
        moved = q.copy()
        moved[: layout.POSE * len(system.names)] = p.retract(q, ahead * v)[: layout.POSE * len(system.names)]
        later = _state(system, moved)
    found = []
    for name, touch in touches.items():
        contact = touch.read(state)
        after = touch._replace(pair=touch.pair.followed()).read(later)
        edges = [
            f"{'uv'[i]} of {shape!r} is {value:.6g}"
            for shape, values in zip(touch.pair.shapes, touch.pair.in_order(contact.parameters), strict=True)
            for i, (value, bounds, period) in enumerate(zip(values, shape.bounds, shape.periods, strict=False))
            if shape.width == shape.freedoms and not period and _is_near(value, bounds, after.status)
        ]
        if edges or after.status != "regular":
            text = f" ({', '.join(edges)})" if edges else ""
            what = "the contact is at the edge of a shape" if edges else after.status
            found.append(f"{name!r}: {what}{text}")
    return f"contact {'; '.join(found)}; {WAY}" if found else ""


def crossing(system: System, coordinates: FloatArray, angles: FloatArray) -> bool:
    """Whether the shapes of a contact cross in a pose, r and p of each body, shape (bodies, 7)."""
    touches = system.index.contacts
    if not touches:
        return False
    from cardan.joints.contacts import CROSSING

    state = system.state(coordinates, angles.copy() if angles.size else None)
    return any(touch.read(state).status == CROSSING for touch in touches.values())


def _is_near(value: float, bounds: tuple[float, float], status: str) -> bool:
    low, high = bounds
    share = NEAR_EDGE if status == "regular" else 0.1
    return min(value - low, high - value) <= share * (high - low) if np.isfinite(high - low) else False


def _state(system: System, q: FloatArray) -> State:
    return system.state(formulations.from_reference(system, q), formulations.angles(system, q).copy())
