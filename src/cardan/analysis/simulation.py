"""The result of a simulation: states, reactions and energies at the output times, kept as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from cardan.analysis.contact_record import ContactEvent, ContactHistory, ContactRecord, Energy
from cardan.analysis.one_sided import read_history
from cardan.analysis.ownership import check_own, chosen_coordinate
from cardan.analysis.readings import Readings
from cardan.calls import explains
from cardan.dynamics import joint_inertias
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import Event, Integration
from cardan.dynamics.pulling_contacts import pulling
from cardan.dynamics.reactions import (
    Connection,
    ConstraintForces,
    Reaction,
    drift,
    rate_drift,
    read_effort,
    read_reaction,
)
from cardan.dynamics.tables import WIDTH
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.joints.coordinates import Course
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.parts import Body
from cardan.system.state import FloatArray, State

if TYPE_CHECKING:
    from cardan.analysis.costs import Cost
    from cardan.analysis.gradient import Gradient
    from cardan.system.drawing import Drawing
    from cardan.system.formulas import Parameter

_gradient = LazyModule("cardan.analysis.gradient")

TURN = 2.0 * np.pi
TURN_DOUBT = 1.0  # rad, between a change of an angle and what its rates give: if more, turns may be missed


class UncountedTurnsError(ModelError):
    """An angle may have made whole turns between two output times; ``what``: which, and when."""

    def __init__(self, what: str, way: str = "") -> None:
        super().__init__(f"{what}; {way}" if way else what)
        self.what = what


class SimulationStatus(StrEnum):
    """How a simulation ended."""

    DONE = "done"  # the whole duration
    NOT_ASSEMBLED = "not assembled"  # no assembly at the start
    NOT_FINITE = "not finite"  # an acceleration overflowed
    STEP_TOO_LARGE = "step too large"  # the joints could not be kept closed, or the error of a step is large
    LIMIT = "limit"  # a driver pushes a coordinate against its limit
    EVENTS = "events"  # contacts hit each other too often for events
    CONTACTS = "contacts not solved"  # no impulses keep bodies that collide apart
    CONTACT = "contact"  # a contact ended: at an edge, a pole, or where the shapes would cross
    STEP_TOO_SMALL = "step too small"  # no step met rtol
    UNDEFINED = "undefined"  # a driver has no value at later times, such as past the end of a spline
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"


def plain(values: FloatArray) -> Any:
    """A list of numbers, None for those that are not finite."""
    kept = values.astype(object)
    kept[~np.isfinite(values)] = None
    return kept.tolist()


class References(NamedTuple):
    """Of every body: the inverse of p of its principal frame, A(p), and −c̃ of its reference point c [m]."""

    back: FloatArray
    principal: FloatArray
    minus_c: FloatArray


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


@explains()
class Simulation(Readings):
    """A motion under forces.

    ``ok``: the whole duration was simulated.  ``status`` and ``reason``: how it ended, and why.  ``times`` [s]: outputs
    that were reached.  ``states``: at these times, with velocities and accelerations.  ``steps``, ``refused``: how many
    steps were taken, and how many were refused and repeated with a smaller size.  ``error``: the largest estimated
    error of a step, relative to the extent, or in radians.  ``notes``: what was assumed or changed at the start,
    contacts that were drawn apart or on the other side, and contacts that pull.
    ``events``: limits that were reached or left, contacts that ended, and what happened to contacts that open
    (:class:`cardan.ContactEvent`), with the time [s].
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
        redundant: bool = False,
        events: Sequence[Event | ContactEvent] = (),
    ) -> None:
        """results, shape (times, columns): time, q, v, v̇ and multipliers, in the coordinates of the solvers.

        redundant: whether equations were redundant in some state.
        """
        self._equations = equations
        self._system = equations.system
        self._results = results
        self.status = status
        self.reason = reason
        self._notes = tuple(notes)
        self.steps = steps
        self.refused = refused
        self.error = error
        self._redundant = redundant
        self._record: ContactRecord | None = None  # of contacts that open
        self._connections: Mapping[str, Connection] = {}
        self._source: tuple[Any, int] | None = None  # the mechanism, and how often it had been edited
        self.events = tuple(events)
        self._run: tuple[Integration, float] | None = None  # and the time at which it was to end [s]
        self._start: tuple[FloatArray, FloatArray] | None = None  # q, v before they were projected
        self._drawing: Drawing | None = None
        self._undefined = ""  # why a driver has no value after that time

    @property
    def ok(self) -> bool:
        """The whole duration was simulated."""
        return self.status is SimulationStatus.DONE

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed or changed at the start; and contacts that pull, with the first output where they do."""
        return *self._notes, *self._pulling

    @cached_property
    def _pulling(self) -> tuple[str, ...]:
        e = self._equations
        if not e.system.contacts or not len(self.times):
            return ()
        q, v, a = self._results[:, 1 : 1 + int(e.coordinates)], self._rates(0), self._rates(1)
        multipliers = self._forces.multipliers if self._redundant else self._multipliers()
        shared = self._forces.is_shared if self._redundant else lambda _: False
        return pulling(e, self._connections, (self.times, q, v, a, multipliers), shared)

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
        if not len(self.times):
            return None
        last = Simulation(self._equations, self._results[-1:], self.status, self.reason)
        return last._state(0)  # the others need not be computed

    def resume(self, max_seconds: float | None = None, progress: Callable[[float], None] | None = None) -> Simulation:
        """Continue a simulation that was stopped by ``max_seconds`` or by the keyboard.

        The result has all outputs from the beginning.  Its numbers are those of a run that was not stopped.
        """
        from cardan.analysis.simulate import resume

        made = resume(self, max_seconds, progress)
        made._connections, made._source, made._start = self._connections, self._source, self._start
        made._drawing = self._drawing
        return made

    def gradient(self, cost: Cost, parameters: Iterable[str | Parameter] | None = None) -> Gradient:
        """Exact derivatives of a cost of this run, by the discrete adjoint of its steps.

            g = sim.gradient(cd.integral(lambda s: s.rate("A") ** 2) + cd.final(lambda s: s["arm"].position.z))
            g.value, g.of("arm").mass, g.of("spring").stiffness, g.of("B").points, g.gravity, g.start["arm"].velocity

        The time that it takes does not depend on the number of derivatives.  parameters: those whose derivatives are
        wanted, all where none are given.  A run is refused, with the item and a way out, if one of its parts cannot be
        differentiated yet: see :class:`cardan.Gradient`.
        """
        return _gradient.gradient(self, cost, parameters)

    # -- columns of the results ----------------------------------------------------------------------------------------

    @property
    def _bodies(self) -> int:
        return len(self._equations.system.names)

    def _poses(self) -> FloatArray:
        """Poses of the principal frames from the system's origin, shape (times, bodies, 7)."""
        return self._results[:, 1 : 1 + layout.POSE * self._bodies].reshape(-1, self._bodies, layout.POSE)

    def _first_poses(self) -> FloatArray:
        """Poses of the principal frames before the start was projected, shape (bodies, 7)."""
        assert self._start is not None
        return self._start[0][: layout.POSE * self._bodies].reshape(-1, layout.POSE)

    def _angles(self) -> FloatArray:
        """Counted angles [rad], shape (times, angles)."""
        first = 1 + layout.POSE * self._bodies
        return self._results[:, first : first + len(self._equations.system.counted_angles)]

    def _rates(self, order: int) -> FloatArray:
        """v (order 0) or v̇ (1) of the principal frames, shape (times, bodies, 6)."""
        first = (
            1 + layout.POSE * self._bodies + len(self._equations.system.counted_angles) + WIDTH * self._bodies * order
        )
        return self._results[:, first : first + WIDTH * self._bodies].reshape(-1, self._bodies, WIDTH)

    def _multipliers(self) -> FloatArray:
        """λ of every equation, shape (times, equations)."""
        return self._results[:, self._results.shape[1] - self._equations.equations.size :]

    @cached_property
    def _rotations(self) -> tuple[FloatArray, FloatArray]:
        """p of every body, shape (times, bodies, 4), and A(p), shape (times, bodies, 3, 3)."""
        p = self._poses()[:, :, 3:]
        p = euler.multiply(p, np.broadcast_to(self._references().back, p.shape))
        return p, euler.matrix(p)

    @cached_property
    def _coordinates(self) -> FloatArray:
        """r and p of every body, shape (times, bodies, 7)."""
        system, (p, A) = self._equations.system, self._rotations
        points = np.broadcast_to(system.reference_points, p[:, :, 1:].shape)
        r = self._poses()[:, :, :3] + system.origin - np.einsum("...ij,...j->...i", A, points)
        return np.concatenate([r, p], axis=2)

    @cached_property
    def _origin_rates(self) -> tuple[FloatArray, FloatArray]:
        """Velocities and accelerations of the body origins, ω and ω̇ in body axes, shape (times, bodies, 6) each."""
        v, a = self._rates(0), self._rates(1)
        A, (_, principal, minus_c) = self._rotations[1], self._references()
        w, dw = (np.einsum("bij,tbj->tbi", principal, x[:, :, 3:]) for x in (v, a))
        # of every body: ω × c = −c̃ ω, and ω̇ × c + ω × (ω × c)
        w_c, dw_c = (np.einsum("bij,tbj->tbi", minus_c, x) for x in (w, dw))
        dw_c += np.einsum("tbij,tbj->tbi", euler.tilde(w), w_c)
        velocity = v[:, :, :3] - np.einsum("tbij,tbj->tbi", A, w_c)
        acceleration = a[:, :, :3] - np.einsum("tbij,tbj->tbi", A, dw_c)
        return np.concatenate([velocity, w], axis=2), np.concatenate([acceleration, dw], axis=2)

    def _references(self) -> References:
        """Of the principal frames; made once per system."""
        system = self._equations.system

        def make() -> References:
            frames = system.reference_frames[:, 3:]
            return References(euler.conjugate(frames), euler.matrix(frames), -euler.tilde(system.reference_points))

        return system.cached("references", make)

    def _state(self, k: int) -> State:
        system = self._equations.system
        velocities, accelerations = self._origin_rates
        keys = system.counted_angles
        return State(
            system.names,
            system.index,
            self._coordinates[k].copy(),
            velocities=velocities[k].copy(),
            accelerations=accelerations[k].copy(),
            angles=dict(zip(keys, self._angles()[k].tolist(), strict=True)) if keys else None,
            time=float(self.times[k]),
            variables=system.values,
        )

    def _index(self, what: str, body: str | Body) -> int:
        check_own(what, body, self._source)
        name = getattr(body, "name", body)
        system = self._equations.system
        if not isinstance(name, str) or name not in system.index:
            raise check.unknown(name, "movable body of this simulation", system.names)
        return system.index[name]

    # -- results -------------------------------------------------------------------------------------------------------

    def positions(self, body: str | Body) -> FloatArray:
        """Positions of a body's origin [m] in world, shape (times, 3)."""
        return self._coordinates[:, self._index("positions", body), :3].copy()

    def quaternions(self, body: str | Body) -> FloatArray:
        """Quaternions of a body, shape (times, 4)."""
        return self._coordinates[:, self._index("quaternions", body), 3:].copy()

    def velocities(self, body: str | Body) -> FloatArray:
        """ṙ of a body's origin [m/s] in world and ω [rad/s] in body axes, shape (times, 6)."""
        return self._origin_rates[0][:, self._index("velocities", body)].copy()

    def accelerations(self, body: str | Body) -> FloatArray:
        """r̈ of a body's origin [m/s²] in world and ω̇ [rad/s²] in body axes, shape (times, 6)."""
        return self._origin_rates[1][:, self._index("accelerations", body)].copy()

    def coordinate(self, joint: str | Joint | Coordinate, of: str | None = None) -> FloatArray:
        """A coordinate of a joint, shape (times,): [m], or [rad] with whole turns.

        If no constraint depends on the angle, the mechanism does not count its turns; then they are counted here, from
        the first time, by the angles and their rates at the output times.  Raises ModelError where the two do not
        agree: the output times are too far apart.
        """
        joint = chosen_coordinate("coordinate", joint, of, self._source, self._system)
        keys = self._equations.system.counted_angles
        is_counted = joint.counted is not None and joint.counted.key in keys
        near = self._angles()[:, keys.index(joint.counted.key)] if joint.counted is not None and is_counted else None
        world = [self._course(feature) for feature in joint.features]
        values = joint.values_in_world([one.value for one in world], near)
        return self._unwrapped(joint, world, values) if joint.kind == "angle" and not is_counted else values

    def _unwrapped(self, angle: Coordinate, world: Sequence[Course], values: FloatArray) -> FloatArray:
        """An angle without jumps by whole turns between two times.

        The change between two times is the one within ±π.  If the mean of the two rates gives another number of turns,
        it is the change nearest to Hermite's rule h/2 (φ̇ + φ̇′) + h²/12 (φ̈ − φ̈′), which must be near this mean.
        """
        rate, growth = angle.rates_in_world(world)  # the angle may be undefined at some times
        h = np.diff(self.times)
        change = np.diff(values)
        change -= TURN * np.round(change / TURN)
        mean = 0.5 * h * (rate[1:] + rate[:-1])
        guess = mean - h * h / 12.0 * np.diff(growth)
        is_long = np.round((mean - change) / TURN) != 0.0
        is_long &= np.isfinite(guess)
        turns = np.where(is_long, np.round((guess - change) / TURN), 0.0)
        doubt = np.maximum(np.abs(guess - mean), np.abs(guess - change - TURN * turns))
        unsure = np.flatnonzero(is_long & (doubt > TURN_DOUBT))
        if unsure.size:
            before, after = self.times[unsure[0] : unsure[0] + 2]
            raise UncountedTurnsError(
                f"{angle!r} may have made uncounted whole turns between t = {before:g} s and {after:g} s",
                "pass more times to simulate, or make it a counted angle: m.limit(name, coordinate, lower=-1e9)",
            )
        return np.cumsum(np.concatenate([values[:1], change + TURN * turns]))

    def _need_states(self) -> None:
        if not len(self.times):
            raise ModelError(f"the simulation has no states, and so no forces: {self.status} {self.reason}".rstrip())

    @cached_property
    def _forces(self) -> ConstraintForces:
        self._need_states()
        q = self._results[:, 1 : 1 + int(self._equations.coordinates)]
        return ConstraintForces(self._equations, self.times, q, self._multipliers(), self._redundant)

    def _acting(self) -> tuple[ConstraintForces, Mapping[str, Connection]]:
        return self._forces, self._connections

    def reaction(self, joint: str | Joint, on: str | Body = "b", axes: str = "world") -> Reaction:
        """Force and torque of a joint on one of its bodies, about the origin of the joint's frame on that body.

        on: "b", "a", a body, or the name of a body.  If a body is itself named "a" or "b", pass the body.  The reaction
        on the ground is the opposite of the forces on the other bodies.
        axes: "world", or "joint" for the axes of that frame (those of the body, if the joint has a point there).
        Couplings, drivers and your own constraints have reactions too: the part of the forces that they exert, without
        those of the joints that guide the bodies.  For a coupling, "a" and "b" are the bodies b of its two coordinates.
        The reaction of a contact is the whole force, at the point of contact: ``normal`` and ``traction`` are its
        parts, and the torque is that against spin.  That of ``f"{contact}.roll"`` is traction and spin torque alone.
        """
        check_own("reaction", joint, self._source)
        check_own("reaction", on, self._source)
        return read_reaction(self._forces, self._connections, joint, on, axes, self._equations.system)

    def effort(self, driver: str | Joint) -> FloatArray:
        """Torque [N m] or force [N] of a driver, limit, or load with a coordinate (actuator, spring); shape (times,).

        Positive if it increases the coordinate.  Its power is effort × rate of the coordinate.
        """
        check_own("effort", driver, self._source)
        self._need_states()
        v = self._rates(0).reshape(len(self.times), -1)
        return read_effort(self._forces, self._connections, driver, self.times, v)

    @property
    def energy(self) -> Energy:
        """Kinetic energy, also of inertias of joints, and potential energy of gravity, springs and bushings."""
        e = self._equations
        v = self._rates(0)
        kinetic = 0.5 * np.einsum("kbi,bi,kbi->k", v, e.masses, v)
        heights = (self._poses()[:, :, :3] + e.system.origin) @ e.gravity
        potential = -heights @ e.masses[:, 0]
        rows = np.ascontiguousarray(self._results[:, 1 : 1 + int(e.coordinates)])
        if e.inertias:
            states = zip(self.times.tolist(), rows, v.reshape(len(rows), -1), strict=True)
            kinetic = kinetic + np.array([joint_inertias.kinetic(e, *state) for state in states])
        if e.forces is not None:
            potential = potential + np.array([e.forces.potential(q) for q in rows])
        if self._record is None:
            return Energy(kinetic, potential)
        return Energy(kinetic, potential, *self._record.losses)

    def contact(self, name: str) -> ContactHistory:
        """Gap, points, force and slip of a contact that opens, at the output times.

        For a contact that does not open, see :meth:`reaction` and ``sim.states[k].contact(name)``.
        """
        check_own("contact", name, self._source)
        self._need_states()
        return read_history(self, getattr(name, "name", name))

    @property
    def penetration(self) -> float:
        """The largest depth [m] by which faces of contacts that open, or bodies that collide, overlapped."""
        depths = [-self.contact(opening.name).gap.min(initial=0.0) for opening in self._equations.openings]
        return max(0.0 if self._record is None else self._record.penetration, *depths, 0.0)

    @property
    def contact_error(self) -> float:
        """The largest error of a contact problem, relative; zero if there was none."""
        return 0.0 if self._record is None else self._record.error

    @property
    def drift(self) -> FloatArray:
        """Largest residual of any equation, lengths relative to the extent, angles in radians, shape (times,)."""
        return drift(self._equations, self.times, self._results[:, 1 : 1 + int(self._equations.coordinates)])

    @property
    def rate_drift(self) -> FloatArray:
        """Largest residual of the velocities of any equation, |J v − ġ|, per extent or in rad/s, shape (times,).

        Rate rows, which have no residual of poses, are among them.
        """
        q = self._results[:, 1 : 1 + int(self._equations.coordinates)]
        return rate_drift(self._equations, self.times, q, self._rates(0).reshape(len(self.times), -1))

    def text(self) -> str:
        """The status, the times reached, and why it ended."""
        if not len(self.times):
            return f"{self.status}: {self.reason}"
        span = f"t = {self.times[0]:g} … {self.times[-1]:g} s, {len(self.times)} times, {self.steps} steps"
        lines = [f"{self.status}: {span}", *([self.reason] if self.reason else []), *self.notes]
        return "\n  ".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a number that is not finite becomes None."""
        energy = self.energy
        return {
            "ok": self.ok,
            "status": str(self.status),
            "reason": self.reason,
            "notes": list(self.notes),
            "steps": self.steps,
            "refused": self.refused,
            "times": self.times.tolist(),
            "energy": {"kinetic": plain(energy.kinetic), "potential": plain(energy.potential)},
            "drift": plain(self.drift),
            "bodies": {
                name: {
                    "positions": plain(self.positions(name)),
                    "quaternions": plain(self.quaternions(name)),
                    "velocities": plain(self.velocities(name)),
                }
                for name in self._equations.system.names
            },
        }

    to_dict = as_dict

    def __eq__(self, other: object) -> bool:
        """Equal results of equal systems and loads; the number of steps is not compared."""
        if not isinstance(other, Simulation):
            return NotImplemented
        mine, theirs = self._equations, other._equations
        return (
            (self.status, self.reason, self.notes) == (other.status, other.reason, other.notes)
            and bool(np.array_equal(self._results, other._results, equal_nan=True))
            and mine.system == theirs.system
            and mine.stops == theirs.stops
            and mine.forces == theirs.forces
            and mine.inertias == theirs.inertias
            and bool(np.array_equal(mine.masses, theirs.masses) and np.array_equal(mine.gravity, theirs.gravity))
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def __getstate__(self) -> dict[str, Any]:
        cached = ("_coordinates", "_origin_rates", "_forces", "_pulling")
        kept = {key: value for key, value in self.__dict__.items() if key not in cached}
        return kept | {"_source": None, "_drawing": None}

    def __repr__(self) -> str:
        return f"<Simulation {self.text().splitlines()[0]}>"
