"""The result of a motion: states at the given times, as far as they were reached, and why it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.analysis.ownership import check_own, chosen_coordinate
from cardan.analysis.readings import Readings
from cardan.calls import explains
from cardan.diagnosis.causes import rings
from cardan.errors import ModelError
from cardan.joints import Coordinate, Joint
from cardan.lazy import LazyModule
from cardan.system import check
from cardan.system.parts import Body
from cardan.system.state import FloatArray, State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.dynamics.build import Inverse
    from cardan.dynamics.reactions import Connection, ConstraintForces, Reaction

_pulling = LazyModule("cardan.dynamics.pulling_contacts")
_reactions = LazyModule("cardan.dynamics.reactions")
_simulation = LazyModule("cardan.analysis.simulation")

ARC = 1.25  # rotation of a body in the motion, at most, relative to its rotation by Newton's iteration
MOST_NAMED = 5


class MotionStatus(StrEnum):
    """How a motion ended."""

    DONE = "done"  # every given time was reached
    NOT_ASSEMBLED = "not assembled"  # no assembly at the first time
    DEAD_POINT = "dead point"  # the drivers cannot move the mechanism any further
    LIMIT = "limit"  # a coordinate reached its limit
    CONTACT = "contact"  # a contact ended: at an edge, a pole, or where the shapes would cross
    COLLISION = "collision"  # two parts that must not overlap met
    UNDEFINED = "undefined"  # a driver has no value at later times, such as past the end of a spline
    LOST = "lost"  # no pose was found near the last one
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"


class Undriven(NamedTuple):
    """Freedoms of one connected piece that no driver determines: their number, and the bodies that can move."""

    freedoms: int
    bodies: tuple[str, ...]
    at_rest: bool  # no driver acts on the piece

    def text(self) -> str:
        """One line of a report."""
        names = ", ".join(map(repr, self.bodies[:MOST_NAMED]))
        more = f" and {len(self.bodies) - MOST_NAMED} more" if len(self.bodies) > MOST_NAMED else ""
        law = "no driver acts on it, and it stays at rest" if self.at_rest else "the least velocities are taken"
        return f"undriven: {self.freedoms} {'freedom' if self.freedoms == 1 else 'freedoms'} of {names}{more}; {law}"


@explains()
class Motion(Readings):
    """States along a driven motion.

    ``ok``: all times were reached.  ``status`` and ``reason``: how the motion ended, and why.  ``times`` [s]: those
    reached.  ``states``: at these times, each with velocities.  ``state``: the final state.  It lies between two times
    for the statuses dead point, limit, contact, collision, undefined and lost; it is None if not assembled, otherwise
    the last of the states.
    ``steps``: total number of steps.  ``undriven``: what the drivers leave free at the first time, by connected pieces.
    ``notes``: contacts that were drawn apart or on the other side, and contacts that pull.
    """

    __slots__ = (
        "_forces",
        "_needs",
        "_notes",
        "_rotation",
        "_source",
        "_system",
        "reason",
        "state",
        "states",
        "status",
        "steps",
        "undriven",
    )

    def __init__(
        self,
        system: System,
        states: list[State],
        status: MotionStatus,
        reason: str,
        last: State | None = None,
        steps: int = 0,
        rotation: Sequence[float] = (),
        undriven: Sequence[Undriven] = (),
        notes: Sequence[str] = (),
    ) -> None:
        """rotation [rad]: largest rotation of any body from each state to the next.  notes: on the assembly."""
        self._system = system
        self._needs: Inverse | None = None  # of inverse dynamics
        self._forces: tuple[ConstraintForces, FloatArray] | None = None
        self._source: tuple[Any, int] | None = None  # the mechanism, and how often it had been edited
        self.states = tuple(states)
        self.status = status
        self.reason = reason
        self.state = last if last is not None else states[-1] if states else None
        self.steps = steps
        self._rotation = tuple(rotation)
        self.undriven = tuple(undriven)
        self._notes = tuple(notes)

    @property
    def ok(self) -> bool:
        """Every given time was reached."""
        return self.status is MotionStatus.DONE

    @property
    def times(self) -> FloatArray:
        """Times reached [s]."""
        return np.array([state.time for state in self.states])

    def positions(self, body: str | Body) -> FloatArray:
        """Positions of a body's origin [m] in world, shape (times, 3)."""
        return self._of("positions", body, lambda state, k: state.positions[k], 3)

    def quaternions(self, body: str | Body) -> FloatArray:
        """Quaternions of a body, shape (times, 4)."""
        return self._of("quaternions", body, lambda state, k: state.quaternions[k], 4)

    def velocities(self, body: str | Body) -> FloatArray:
        """ṙ of a body's origin [m/s] in world and ω [rad/s] in body axes, shape (times, 6)."""
        return self._of("velocities", body, lambda state, k: state.velocities[k], 6)

    def accelerations(self, body: str | Body) -> FloatArray:
        """r̈ of a body's origin [m/s²] in world and ω̇ [rad/s²] in body axes, shape (times, 6)."""
        return self._of("accelerations", body, lambda state, k: state.accelerations[k], 6)

    def coordinate(self, joint: str | Joint | Coordinate, of: str | None = None) -> FloatArray:
        """A coordinate of a joint over the motion, shape (times,): [m], or [rad] with whole turns.

        If no constraint depends on the angle, the mechanism does not count its turns; then they are counted here, from
        the first time.  Raises ModelError if two times are too far apart to count the turns in between.
        """
        joint = chosen_coordinate("coordinate", joint, of, self._source, self._system)
        if not self.states:
            return np.empty(0)
        values = joint.values(self.states)
        is_counted = joint.counted is None or joint.counted.key in self._system.counted_angles
        return values if is_counted else self._unwrapped(joint, values)

    def _unwrapped(self, angle: Coordinate, values: FloatArray) -> FloatArray:
        """An angle without jumps by whole turns between two times; see :mod:`cardan.analysis.step_interior`."""
        sizes = angle.projections(self.states)
        sides = sum(not body.is_ground for body in angle.bodies)
        unsure = np.flatnonzero(ARC * sides * np.array(self._rotation) >= sizes[:-1] + sizes[1:])
        if unsure.size:
            before, after = self.times[unsure[0] : unsure[0] + 2]
            raise ModelError(
                f"{angle!r} may have made uncounted whole turns between t = {before:g} s and {after:g} s; "
                "pass more times to move, or make it a counted angle: m.limit(name, coordinate, lower=-1e9)"
            )
        return np.unwrap(values)

    def _of(self, what: str, body: str | Body, read: Any, width: int) -> FloatArray:
        check_own(what, body, self._source)
        name = getattr(body, "name", body)
        if not isinstance(name, str) or name not in self._system.index:
            raise check.unknown(name, "movable body of this motion", self._system.names)
        k = self._system.index[name]
        return np.array([read(state, k) for state in self.states]).reshape(len(self.states), width)

    def reaction(self, joint: str | Joint, on: str | Body = "b", axes: str = "world") -> Reaction:
        """Force and torque of a joint that the motion needs (inverse dynamics), as :meth:`Simulation.reaction`."""
        check_own("reaction", joint, self._source)
        check_own("reaction", on, self._source)
        (forces, _), model = self._inverse()
        return _reactions.read_reaction(forces, model.connections, joint, on, axes, self._system)

    def effort(self, driver: str | Joint) -> FloatArray:
        """Torque [N m] or force [N] of a driver that the motion needs, as :meth:`Simulation.effort`."""
        check_own("effort", driver, self._source)
        (forces, v), model = self._inverse()
        return _reactions.read_effort(forces, model.connections, driver, self.times, v)

    @property
    def notes(self) -> tuple[str, ...]:
        """Contacts that were drawn apart or on the other side; contacts that pull, with the first time where they do.

        The latter are found by inverse dynamics, if no freedom is undriven.  They are not part of :meth:`text`.
        Where forces were computed, for them or for :meth:`effort` and :meth:`reaction`, also what was assumed about
        masses.
        """
        if not self._system.contacts or not self.states or self.undriven:
            return *self._notes, *self._mass_notes
        try:
            (forces, _), model = self._inverse()
        except ModelError as error:  # such as a force along a free motion that no driver determines
            return *self._notes, f"it is not known whether contacts pull: {error}"
        q, v, a = _reactions.principal_rates(forces.equations.system, self.states)
        results = self.times, q, v, a, forces.multipliers
        pulls = _pulling.pulling(forces.equations, model.connections, results, forces.is_shared)
        return *self._notes, *self._mass_notes, *pulls

    @property
    def _mass_notes(self) -> tuple[str, ...]:
        return () if self._forces is None or self._needs is None else self._needs.notes(self._system)

    def _acting(self) -> tuple[ConstraintForces, Mapping[str, Connection]]:
        (forces, _), model = self._inverse()
        return forces, model.connections

    def _inverse(self) -> tuple[tuple[ConstraintForces, FloatArray], Inverse]:
        assert self._needs is not None  # Mechanism.move sets it
        if not self.states:
            raise ModelError(f"the motion has no states, and so no forces: {self.status} {self.reason}".rstrip())
        if self._forces is None:
            self._forces = _reactions.inverse(self._needs.equations(self._system), self.states)
        return self._forces, self._needs

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a number that is not finite becomes None."""
        plain = _simulation.plain
        read = {
            "positions": self.positions,
            "quaternions": self.quaternions,
            "velocities": self.velocities,
            "accelerations": self.accelerations,
        }
        return {
            "ok": self.ok,
            "status": str(self.status),
            "reason": self.reason,
            "steps": self.steps,
            "times": self.times.tolist(),
            "bodies": {name: {word: plain(of(name)) for word, of in read.items()} for name in self.names},
        }

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {key: getattr(self, key) for key in self.__slots__} | {"_forces": None, "_source": None}

    def text(self) -> str:
        """The status, the times reached, why the motion ended, and what the drivers leave free."""
        if not self.states:
            return f"{self.status}: {self.reason}"
        span = f"t = {self.states[0].time:g} … {self.states[-1].time:g} s, {len(self.states)} times, {self.steps} steps"
        details = [*([self.reason] if self.reason else []), *self._notes]
        details += [] if self.status is MotionStatus.DONE else rings(self._system)
        details += [one.text() for one in self.undriven[:MOST_NAMED]]
        if len(self.undriven) > MOST_NAMED:
            details.append(f"undriven: also freedoms of {len(self.undriven) - MOST_NAMED} other pieces")
        return "\n  ".join([f"{self.status}: {span}", *details])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Motion):
            return NotImplemented
        return (self.states, self.status, self.reason) == (other.states, other.status, other.reason)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and states have no hash

    def __repr__(self) -> str:
        return f"<Motion {self.text().splitlines()[0]}>"
