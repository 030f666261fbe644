"""The result of a simulation: states, reactions and energies at the output times, kept as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import Event, Integration
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.math import euler
from cardan.system import check, layout
from cardan.system.parts import Body
from cardan.system.state import FloatArray, State


class SimulationStatus(StrEnum):
    """How a simulation ended."""

    DONE = "done"  # the whole duration
    NOT_ASSEMBLED = "not assembled"  # no assembly at the start
    NOT_FINITE = "not finite"  # an acceleration overflowed
    STEP_TOO_LARGE = "step too large"  # the joints could not be kept closed, or the error of a step is large
    STEP_TOO_SMALL = "step too small"  # no step met rtol
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"


class Energy(NamedTuple):
    """Energies [J] at the output times, shape (times,) each."""

    kinetic: FloatArray
    potential: FloatArray

    @property
    def total(self) -> FloatArray:
        """Their sum."""
        return self.kinetic + self.potential


class Reaction(NamedTuple):
    """Force [N] and torque [N m] of a joint on one of its bodies at the output times, shape (times, 3) each.

    The torque is about the origin of the joint's frame on that body.
    """

    force: FloatArray
    torque: FloatArray


class States(Sequence[State]):
    """The states of a simulation, each made when it is read."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def __len__(self) -> int:
        return len(self._simulation.times)

    @overload
    def __getitem__(self, k: int) -> State: ...
    @overload
    def __getitem__(self, k: slice) -> list[State]: ...
    def __getitem__(self, k: int | slice) -> State | list[State]:
        if isinstance(k, slice):
            return [self._simulation._state(i) for i in range(len(self))[k]]
        return self._simulation._state(range(len(self))[k])

    def __iter__(self) -> Iterator[State]:
        return (self._simulation._state(k) for k in range(len(self)))


class Simulation:
    """A motion under forces.

    ``ok``: the whole duration was simulated.  ``status`` and ``reason``: how it ended, and why.  ``times`` [s]: outputs
    that were reached.  ``states``: at these times, with velocities and accelerations.  ``steps``, ``refused``: how many
    steps were taken, and how many refused and repeated smaller.  ``notes``: what was assumed or changed at the start.
    ``events``: limits that were reached or left, with the time [s].
    """

    def __init__(
        self,
        equations: Equations,
        results: FloatArray,
        status: SimulationStatus,
        reason: str,
        *,
        notes: Sequence[str] = (),
        steps: int = 0,
        refused: int = 0,
        error: float = 0.0,
        events: Sequence[Event] = (),
        run: tuple[Integration, float] | None = None,
    ) -> None:
        """results, shape (times, columns): time, q, v, v̇ and multipliers, in the coordinates of the solvers."""
        self._equations = equations
        self._results = results
        self.status = status
        self.reason = reason
        self.notes = tuple(notes)
        self.steps = steps
        self.refused = refused
        self.error = error
        self.events = tuple(events)
        self._run = run

    @property
    def ok(self) -> bool:
        """The whole duration was simulated."""
        return self.status is SimulationStatus.DONE

    @property
    def times(self) -> FloatArray:
        """Output times that were reached [s]."""
        return self._results[:, 0]

    @property
    def states(self) -> States:
        """States at the output times."""
        return States(self)

    @property
    def state(self) -> State | None:
        """The last state."""
        return self._state(len(self.times) - 1) if len(self.times) else None

    def resume(self, max_seconds: float | None = None, progress: Callable[[float], None] | None = None) -> Simulation:
        """Go on where a simulation was stopped, by ``max_seconds`` or by the keyboard, as if it had not been.

        The result has all outputs from the beginning; its numbers are those of a run that was not stopped.
        """
        from cardan.analysis.simulate import resume

        return resume(self, max_seconds, progress)

    # -- columns of the results ----------------------------------------------------------------------------------------

    @property
    def _bodies(self) -> int:
        return len(self._equations.system.names)

    def _poses(self) -> FloatArray:
        """Poses of the principal frames from the system's origin, shape (times, bodies, 7)."""
        return self._results[:, 1 : 1 + layout.POSE * self._bodies].reshape(-1, self._bodies, layout.POSE)

    def _angles(self) -> FloatArray:
        """Counted angles [rad], shape (times, angles)."""
        first = 1 + layout.POSE * self._bodies
        return self._results[:, first : first + len(self._equations.system.counted_angles)]

    def _rates(self, order: int) -> FloatArray:
        """v (order 0) or v̇ (1) of the principal frames, shape (times, bodies, 6)."""
        first = 1 + layout.POSE * self._bodies + len(self._equations.system.counted_angles) + 6 * self._bodies * order
        return self._results[:, first : first + 6 * self._bodies].reshape(-1, self._bodies, 6)

    def _multipliers(self) -> FloatArray:
        """λ of every equation, shape (times, equations)."""
        return self._results[:, self._results.shape[1] - self._equations.equations.size :]

    @cached_property
    def _coordinates(self) -> FloatArray:
        """r and p of every body, shape (times, bodies, 7)."""
        system, poses = self._equations.system, self._poses()
        back = euler.conjugate(system.reference_frames[:, 3:])
        p = euler.multiply(poses[:, :, 3:], np.broadcast_to(back, poses[:, :, 3:].shape))
        r = (
            poses[:, :, :3]
            + system.origin
            - euler.rotate(p, np.broadcast_to(system.reference_points, p[:, :, 1:].shape))
        )
        found: FloatArray = np.concatenate([r, p], axis=2)
        return found

    def _origin_rates(self) -> tuple[FloatArray, FloatArray]:
        """Velocities and accelerations of the body origins, ω and ω̇ in body axes, shape (times, bodies, 6) each."""
        system = self._equations.system
        p, axes = self._coordinates[:, :, 3:], system.reference_frames[:, 3:]
        shape = (*p.shape[:2], 3)
        v, a = self._rates(0), self._rates(1)
        turn = np.broadcast_to(axes, p.shape)
        w, dw = euler.rotate(turn, v[:, :, 3:]), euler.rotate(turn, a[:, :, 3:])
        c = np.broadcast_to(system.reference_points, shape)
        velocity = v[:, :, :3] - euler.rotate(p, np.cross(w, c))
        acceleration = a[:, :, :3] - euler.rotate(p, np.cross(dw, c) + np.cross(w, np.cross(w, c)))
        return np.concatenate([velocity, w], axis=2), np.concatenate([acceleration, dw], axis=2)

    @cached_property
    def _all_rates(self) -> tuple[FloatArray, FloatArray]:
        return self._origin_rates()

    def _state(self, k: int) -> State:
        system = self._equations.system
        velocities, accelerations = self._all_rates
        keys = system.counted_angles
        return State(
            system.names,
            system.index,
            self._coordinates[k].copy(),
            velocities=velocities[k].copy(),
            accelerations=accelerations[k].copy(),
            angles=dict(zip(keys, self._angles()[k].tolist(), strict=True)) if keys else None,
            time=float(self.times[k]),
        )

    def _index(self, body: str | Body) -> int:
        name = getattr(body, "name", body)
        system = self._equations.system
        if not isinstance(name, str) or name not in system.index:
            raise check.unknown(name, "movable body of this simulation", system.names)
        return system.index[name]

    # -- what is asked for ---------------------------------------------------------------------------------------------

    def positions(self, body: str | Body) -> FloatArray:
        """Positions of a body's origin [m] in world, shape (times, 3)."""
        return self._coordinates[:, self._index(body), :3].copy()

    def quaternions(self, body: str | Body) -> FloatArray:
        """Quaternions of a body, shape (times, 4)."""
        return self._coordinates[:, self._index(body), 3:].copy()

    def velocities(self, body: str | Body) -> FloatArray:
        """ṙ of a body's origin [m/s] in world and ω [rad/s] in body axes, shape (times, 6)."""
        return self._all_rates[0][:, self._index(body)].copy()

    def accelerations(self, body: str | Body) -> FloatArray:
        """r̈ of a body's origin [m/s²] in world and ω̇ [rad/s²] in body axes, shape (times, 6)."""
        return self._all_rates[1][:, self._index(body)].copy()

    def coordinate(self, joint: Joint | Coordinate, of: str | None = None) -> FloatArray:
        """A coordinate of a joint, shape (times,): [m], or [rad] with whole turns where the mechanism counts them."""
        if isinstance(joint, Joint):
            words = tuple(joint.kind.coordinates)
            joint = joint.of(words[0] if of is None and len(words) == 1 else of)  # type: ignore[arg-type]
        if not isinstance(joint, Coordinate):
            raise ModelError(f"coordinate got {joint!r}; it must be a joint or a coordinate of the mechanism")
        values = np.array([joint.value(state) for state in self.states])
        is_counted = joint.counted is None or joint.counted.key in self._equations.system.counted_angles
        return values if is_counted else np.unwrap(values)

    @property
    def energy(self) -> Energy:
        """Kinetic energy, and potential energy of gravity, springs and bushings."""
        e = self._equations
        kinetic = 0.5 * np.einsum("kbi,bi,kbi->k", self._rates(0), e.masses, self._rates(0))
        heights = (self._poses()[:, :, :3] + e.system.origin) @ e.gravity
        potential = -heights @ e.masses[:, 0]
        if e.forces is not None:
            rows = np.ascontiguousarray(self._results[:, 1 : 1 + int(e.coordinates)])
            potential = potential + np.array([e.forces.potential(q) for q in rows])
        return Energy(kinetic, potential)

    @property
    def drift(self) -> FloatArray:
        """Largest residual of any equation, lengths relative to the extent, angles in radians, shape (times,)."""
        e = self._equations
        scales = e.problem.scales[: e.problem.rows][e.equations]
        found = np.empty(len(self.times))
        for k, row in enumerate(self._results[:, 1 : 1 + int(e.coordinates)]):
            problem = e.problem
            if e.system.signals:
                problem = problem.with_floats(e.floats_at(float(self.times[k])))
            residuals = problem.residual(np.ascontiguousarray(row))
            found[k] = np.abs(residuals[e.equations] * scales).max(initial=0.0)
        return found

    def text(self) -> str:
        """The status, the times reached, and why it ended."""
        if not len(self.times):
            return f"{self.status}: {self.reason}"
        span = f"t = {self.times[0]:g} … {self.times[-1]:g} s, {len(self.times)} times, {self.steps} steps"
        lines = [f"{self.status}: {span}", *([self.reason] if self.reason else []), *self.notes]
        return "\n  ".join(lines)

    def __repr__(self) -> str:
        return f"<Simulation {self.text().splitlines()[0]}>"
