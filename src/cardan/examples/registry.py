"""What an example is: a mechanism with a purpose, and the facts it shows, judged by formulas of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardan.analysis.motion import Motion, MotionStatus
from cardan.analysis.result import AssemblyResult
from cardan.errors import CardanError
from cardan.mechanism import Mechanism
from cardan.system.state import Pose, State

# [m, rad, 1], for mechanisms of about a metre: a thousand times what the assembly leaves open, since a closed form near
# a dead position enlarges it.
FACT_TOLERANCE = 1e-9


class ExampleError(CardanError):
    """A mechanism of the gallery does not do what it is there to show."""


@dataclass(frozen=True, slots=True)
class Example:
    """A mechanism of the gallery.

    ``build()`` gives the mechanism as a designer would sketch it: near to an assembled pose, not in it.
    ``check(mechanism, result)`` raises ExampleError, or returns what it found true, one sentence each.
    ``dof`` and ``gruebler`` are what a diagnosis must find: the true freedom, and the count of equations.
    ``motion(mechanism, state)`` tells, in the same way, what holds over a whole motion begun in an assembled state.
    ``duration`` [s]: how long the drivers of a driven one have something to show, from t = 0 on; 0 where none is.
    ``everywhere`` is false where freedom and facts belong to the way it is drawn: a linkage with a rhombus, say, can
    also be assembled with the rhombus folded flat, and then moves otherwise.
    """

    name: str
    title: str
    build: Callable[..., Mechanism]
    check: Callable[[Mechanism, AssemblyResult], list[str]]
    dof: int
    gruebler: int
    motion: Callable[[Mechanism, State], list[str]] | None = None
    duration: float = 0.0
    everywhere: bool = True

    @property
    def redundant(self) -> int:
        """Equations that follow from the others: (6·bodies − rank) − (6·bodies − equations)."""
        return self.dof - self.gruebler

    def facts(self, mechanism: Mechanism, result: AssemblyResult) -> list[str]:
        """All that holds in an assembled state, counts first; ExampleError where something does not."""
        if not result.ok:
            raise ExampleError(f"{self.name} is not assembled; {result.text()}")
        found = mechanism.diagnose(result.state)
        for what, value, declared in (
            ("degrees of freedom", found.dof, self.dof),
            ("Grübler count", found.gruebler, self.gruebler),
            ("redundant equations", len(found.redundant), self.redundant),
        ):
            if value != declared:
                raise ExampleError(f"{self.name} has {what} {value}; it is there to show {declared}")
        freedom = f"degrees of freedom: {self.dof}, by count of equations {self.gruebler}; {self.redundant} redundant"
        return [freedom, *self.check(mechanism, result)]

    def motion_facts(self, mechanism: Mechanism, result: AssemblyResult) -> list[str]:
        """All that holds over its motion from the pose of the sketch; nothing where it is not there to be moved."""
        return [] if self.motion is None else self.motion(mechanism, result.state)


def expect(what: str, value: ArrayLike, expected: ArrayLike, tolerance: float = FACT_TOLERANCE) -> None:
    """Raise ExampleError unless value and expected, numbers or vectors, agree within the tolerance."""
    if not np.all(np.abs(np.subtract(value, expected)) <= tolerance):  # NaN does not agree
        raise ExampleError(f"{what}: {np.array(value).tolist()}, expected {np.array(expected).tolist()}")


def rotated(pose: Pose, v: Any) -> NDArray[np.float64]:
    """v in world, given in body axes: v + 2 w e×v + 2 e×(e×v), not by the matrix A(p) which the library uses."""
    w, x, y, z = pose.quaternion.tolist()
    a, b, c = v
    p, q, r = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return np.array([a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p])


def placed(pose: Pose, point: Any) -> NDArray[np.float64]:
    """World position [m] of a point given in body axes, by :func:`rotated`."""
    return np.asarray(pose.position + rotated(pose, point))


def rates(state: State, body: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Velocity [m/s] of a body's origin and its ω [rad/s], both in world, in a state of a motion."""
    if state.velocities is None:
        raise ExampleError(f"the state at t = {state.time} s has no velocities; it is not of a motion")
    row = state.velocities[state.names.index(body)]
    return row[:3], rotated(state[body], row[3:])


def velocity(state: State, body: str, point: Any) -> NDArray[np.float64]:
    """Velocity [m/s] of a body where it is at a point of the world: v + ω × (point − r)."""
    v, omega = rates(state, body)
    return np.asarray(v + np.cross(omega, np.asarray(point) - state[body].position))


def played(mechanism: Mechanism, times: Sequence[float] | NDArray[np.float64], start: State) -> Motion:
    """The motion of a driven mechanism at times [s], from a state; ExampleError unless all of them are reached."""
    moved = tried(mechanism, times, start)
    if not moved.ok:
        raise ExampleError(f"{mechanism.name} is not moved to t = {times[-1]} s; {moved.text()}")
    return moved


def tried(mechanism: Mechanism, times: Sequence[float] | NDArray[np.float64], start: State | None = None) -> Motion:
    """The motion of a driven mechanism at times [s], as far as it comes; an interrupt ends more than the motion."""
    moved = mechanism.move([float(t) for t in times], start)
    if moved.status is MotionStatus.INTERRUPTED:
        raise KeyboardInterrupt  # a motion keeps what was reached; a gallery is to stop
    return moved


def released(mechanism: Mechanism) -> Mechanism:
    """A copy without its drivers, free to be driven otherwise."""
    copy = mechanism.copy()
    for name, joint in mechanism.joints.items():
        if joint.kind.name == "drive":
            copy.remove(name)
    return copy
