"""Checks of the facts of an example, with formulas independent of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardan.analysis.motion import Motion, MotionStatus
from cardan.examples import ExampleError
from cardan.joints import Role
from cardan.mechanism import Mechanism
from cardan.system.state import Pose, State

# [m, rad, 1], for mechanisms of about 1 m.  1000 times the assembly tolerance, because a closed form amplifies the
# residual near a dead point.
FACT_TOLERANCE = 1e-9


def expect(what: str, value: ArrayLike, expected: ArrayLike, tolerance: float = FACT_TOLERANCE) -> None:
    """Raise ExampleError unless value and expected (numbers or vectors) agree within the tolerance."""
    if not np.all(np.abs(np.subtract(value, expected)) <= tolerance):  # NaN fails
        raise ExampleError(f"{what}: {np.array(value).tolist()}, expected {np.array(expected).tolist()}")


def rotated(pose: Pose, v: Any) -> NDArray[np.float64]:
    """World components of v given in body axes: v + 2 w e×v + 2 e×(e×v).  The library uses the matrix A(p) instead."""
    w, x, y, z = pose.quaternion.tolist()
    a, b, c = v
    p, q, r = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return np.array([a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p])


def placed(pose: Pose, point: Any) -> NDArray[np.float64]:
    """World position [m] of a point given in body axes."""
    return np.asarray(pose.position + rotated(pose, point))


def rates(state: State, body: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Velocity [m/s] of a body's origin and its ω [rad/s], both in world axes; the state must have velocities."""
    if state.velocities is None:
        raise ExampleError(f"the state at t = {state.time} s has no velocities; use a state of a motion")
    row = state.velocities[state.names.index(body)]
    return row[:3], rotated(state[body], row[3:])


def velocity(state: State, body: str, point: Any) -> NDArray[np.float64]:
    """Velocity [m/s] of the body-fixed point that is at a world point: v + ω × (point − r)."""
    v, omega = rates(state, body)
    return np.asarray(v + np.cross(omega, np.asarray(point) - state[body].position))


def run_move(mechanism: Mechanism, times: Sequence[float] | NDArray[np.float64], start: State) -> Motion:
    """The motion of a driven mechanism at times [s], from a state; raises ExampleError unless it is complete."""
    moved = try_move(mechanism, times, start)
    if not moved.ok:
        raise ExampleError(f"the motion of {mechanism.name} does not reach t = {times[-1]} s; {moved.text()}")
    return moved


def try_move(mechanism: Mechanism, times: Sequence[float] | NDArray[np.float64], start: State | None = None) -> Motion:
    """The motion of a driven mechanism at times [s], complete or not; raises KeyboardInterrupt if interrupted."""
    moved = mechanism.move([float(t) for t in times], start)
    if moved.status is MotionStatus.INTERRUPTED:
        raise KeyboardInterrupt  # move() returns the part that was computed; stop the whole gallery
    return moved


def without_drivers(mechanism: Mechanism) -> Mechanism:
    """A copy of the mechanism without its drivers."""
    copy = mechanism.copy()
    for name, joint in mechanism.joints.items():
        if joint.kind.role is Role.DRIVER:
            copy.remove(name)
    return copy
