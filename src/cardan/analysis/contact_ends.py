"""Why a motion with contacts ends: the contacts that end there, by name; and paths that dynamics cannot follow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.system import tables as layout
from cardan.system.parts import GROUND
from cardan.system.state import FloatArray, State
from cardan.system.system import System

# parts of a step within which a contact ends; the last one is longer than the step, which may end at an edge
AHEAD: Final = tuple((1.0 + 1e-6) * 10.0**k for k in range(-12, 1))
LONGEST: Final = 0.01  # of the size, or rad: beyond such a displacement no contact is said to end
NEAR_EDGE: Final = 1e-6  # of the range of a parameter
SAME: Final = 1e-9  # of the size: both ends of a shape are one point
APART: Final = 1e-3  # of the extent: a smaller gap of a drawing is rounded data
WAY: Final = "make the shapes larger or less curved, or end the motion earlier"
SEAM: Final = "where its ends meet in a corner"
AROUND: Final = (
    "make this shape periodic, with periodic=True of Curve, Curve.interpolate or Surface, or period= of traced, or end "
    "the motion earlier"
)
ENDS: Final = {  # by status
    "edge": "reaches the edge of a shape",
    "trimmed": "leaves the loops of a trimmed face",
    "pole": "meets a pole of a surface, where it has no normal",
    "crossing": "is no longer a point: the difference of the curvatures becomes zero, and beyond the shapes cross",
    "conformal": "is no longer a point: the shapes touch along a line or over an area",
    "other side": "passes to the other side of a shape",
    "jumped": "does not continue: the next point of contact is not near this one",
    "lost": "has ended",
    "far": "does not continue: no points with opposed normals are near",
}


def refuse_jumps(system: System) -> None:
    """ModelError if the curvature of the curve of a path jumps: there the body would need an impulse.

    Its angular velocity is proportional to the curvature.  Projected velocities would lose kinetic energy at the jump,
    which an ideal guide does not.
    """
    for name, touch in system.index.contacts.items():
        jump = None if touch.pair.path is None else touch.pair.moving.jump
        if jump is not None:
            raise ModelError(
                f"path {name!r}: the curvature of the curve jumps at the parameter {jump:.6g}, and with it the angular "
                "velocity of the frame; dynamics need a continuous curvature: give a curve such as "
                "cd.geometry.Curve.interpolate(points), of degree 3 or higher"
            )


def lost_contacts(system: System, q: FloatArray, step: FloatArray, longest: float = LONGEST) -> dict[str, str]:
    """By name, what happens to the contacts that end within a small step from a pose; the first of them.

    q, step: solver coordinates and displacement of the manifold formulation.  A long step, as at a dead point, tells
    nothing about the contacts along it: only its beginning is looked at, up to a displacement ``longest``, relative to
    the size of the contacts, or in radians.
    """
    touches = system.index.contacts
    if not touches or not np.isfinite(q).all() or not np.isfinite(step).all():
        return {}
    retract, poses = formulations.problem(system, "manifold").retract, layout.POSE * len(system.names)
    now = _state(system, q)
    moves = np.abs(step[: 6 * len(system.names)].reshape(-1, 2, 3)).max(axis=(0, 2))
    size = min([touch.pair.size for touch in touches.values() if touch.pair.size] or [1.0])
    reach = max(float(moves[0]) / size, float(moves[1]))
    for part in AHEAD:
        if part * reach > longest:
            break
        moved = q.copy()
        moved[:poses] = retract(q, part * step)[:poses]
        state, found = _state(system, moved), {}
        for name, touch in touches.items():
            status = touch._replace(pair=touch.pair.followed()).read(state).status
            if status != "regular":
                edges = _edges(touch.pair, touch.read(now).parameters)
                if status in ("far", "jumped", "conformal"):
                    nearly = touch.nearly(now)
                    status = nearly if nearly != "regular" else status
                found[name] = ENDS[status] + (f" ({edges})" if edges else "")
        if found:
            return found
    return {}


def unmet_contacts(system: System, q: FloatArray) -> list[str]:
    """Contacts for which no points were found in a pose, whose contact coordinates are then not finite."""
    if not np.isfinite(q[: layout.POSE * len(system.names)]).all():
        return []
    state = _state(system, q)
    return [
        name
        for name, touch in system.index.contacts.items()
        if not np.isfinite(np.concatenate(touch.pair.in_order(touch.read(state).parameters))).all()
    ]


def closed_contacts(system: System, drawn: tuple[FloatArray, FloatArray], state: State) -> tuple[str, ...]:
    """Contacts whose shapes were drawn apart, or on the other side of each other than when assembled, in words.

    drawn: r and p of each body, shape (bodies, 7), and the variables and counted angles of the start.
    """
    touches = system.index.contacts
    before = system.state(drawn[0], drawn[1].copy() if drawn[1].size else None)
    found = []
    for name, touch in touches.items():
        first, second = (repr(body or GROUND) for body in touch.bodies)
        if touch.is_behind(before) and not touch.is_behind(state):
            found.append(
                f"contact {name!r}: {first} and {second} are drawn on the other side of each other, and were assembled "
                "on the side of the normals; if this is wrong, see side= of m.contact"
            )
        elif (
            all(shape.freedoms for shape in touch.pair.shapes)
            and (  # not a point on a curve: a joint
                gap := touch.read(before).gap
            )
            > APART * system.judged_length
        ):
            found.append(
                f"contact {name!r}: {first} and {second} are drawn {gap:.3g} m apart, and were brought into contact, "
                "since a contact does not open"
            )
    return tuple(found)


def told(found: dict[str, str]) -> str:
    """Contacts that end, in words."""
    words = "; ".join(f"{name!r} {what}" for name, what in found.items())
    return f"contact {words}; {AROUND if SEAM in words else WAY}"


def lacks_contact(system: System, coordinates: FloatArray, angles: FloatArray) -> bool:
    """Whether the shapes of a contact cross, or do not touch in a point, in a pose that meets all equations.

    coordinates: r and p of each body, shape (bodies, 7).
    """
    touches = system.index.contacts
    if not touches:
        return False
    state = system.state(coordinates, angles.copy() if angles.size else None)
    return any(touch.read(state).status != "regular" for touch in touches.values())


def _edges(pair: Any, parameters: Any) -> str:
    """Parameters that are at their bounds, in words."""
    found = [
        f"{'uv'[i]} of {shape!r} is {value:.6g}{f', {SEAM}' if _meets_itself(shape, values, i) else ''}"
        for shape, values in zip(pair.closed, pair.in_order(parameters), strict=True)
        for i, (value, (low, high), period) in enumerate(zip(values, shape.bounds, shape.periods, strict=False))
        if shape.width == shape.freedoms
        and not period
        and np.isfinite(high - low)
        and min(value - low, high - value) <= NEAR_EDGE * (high - low)
    ]
    return ", ".join(found)


def _meets_itself(shape: Any, values: Any, i: int) -> bool:
    """Whether a shape has the same point at both bounds of parameter i, the other one as given."""
    at = np.array([values[: shape.width]] * 3, dtype=float)
    low, high = shape.bounds[i]
    at[:, i] = low, 0.5 * (low + high), high
    points = shape.evaluate(at)
    return bool(np.abs(points[2] - points[0]).max() <= SAME * np.ptp(points, axis=0).max())


def _state(system: System, q: FloatArray) -> State:
    return system.state(formulations.from_reference(system, q), formulations.angles(system, q).copy())
