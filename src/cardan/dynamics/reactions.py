"""Forces of constraints: reactions of joints, efforts of drivers, and which of them are unique.

A constraint acts on the bodies with −Jᵀλ.  Where equations are redundant, many λ give the same motion.  Then the one of
least norm is taken, with lengths divided by the extent, so that it does not depend on masses or on the axes of the
world.  A component is unique if no λ with Jᵀλ = 0 changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.coordinates import formulations
from cardan.dynamics import driven_friction, joint_inertias
from cardan.dynamics.equations import Equations
from cardan.dynamics.tables import WIDTH, Control, ForceWork, Pattern, Strip
from cardan.errors import ModelError
from cardan.joints import Joint, JointKind, Role
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.parts import GROUND
from cardan.system.relations import Place
from cardan.system.state import FloatArray, State, Touch
from cardan.system.system import IntArray, System

if TYPE_CHECKING:
    from cardan.dynamics.joint_friction import JointRow

_reactions = LazyModule("cardan.dynamics._reactions")

UNIQUE: Final = 1e-6  # force times extent, or torque, due to a random λ̃ of size one with Jᵀλ = 0: less is rounding
UNCARRIED: Final = 1e-6  # of the largest force: a larger rest is a force that neither joints nor drivers can give
SEED: Final = 0
ROLLING: Final = ".roll"  # the rate row of a contact has its name, and this


class Reaction(NamedTuple):
    """Force [N] and torque [N m] of a constraint on one of its bodies, shape (times, 3) each.

    The torque is about the origin of the constraint's frame on that body; of a contact, about the point of contact.
    ``unique``: whether the equations of motion determine all of it, at all times.  If not, because equations are
    redundant, it is the solution of least norm.  ``determined``, shape (6,): the same for each component of force and
    torque.
    Of a contact also ``normal`` and ``traction`` [N], the parts of the force, of the same shape: force = normal +
    traction, and the torque is that against spin.  Without rolling the traction is zero.  None of other constraints.
    """

    force: FloatArray
    torque: FloatArray
    unique: bool
    determined: NDArray[np.bool_]
    normal: FloatArray | None = None
    traction: FloatArray | None = None

    def __repr__(self) -> str:
        known = "unique" if self.unique else "not unique"
        if self.force.ndim == 1:
            force, torque = (", ".join(f"{x:.4g}" for x in vector.tolist()) for vector in self[:2])
            return f"<Reaction: force ({force}) N, torque ({torque}) N m, {known}>"
        force, torque = (f"{np.linalg.norm(rows, axis=1).max(initial=0.0):.4g}" for rows in self[:2])
        return f"<Reaction: {len(self.force)} times, force up to {force} N, torque up to {torque} N m, {known}>"

    def at(self, time: int) -> Reaction:
        """That of one of the times, by number; forces and torque have the shape (3,)."""
        parts = (None if part is None else part[time] for part in (self.normal, self.traction))
        return Reaction(self.force[time], self.torque[time], self.unique, self.determined, *parts)


class Connection(NamedTuple):
    """Where a constraint is attached: its sides a and b (None if it does not have two), and all its frames."""

    kind: JointKind[Any]
    a: Place | None
    b: Place | None
    places: tuple[Place, ...]


def connection(joint: Joint, by_end: Sequence[tuple[Place, ...]]) -> Connection:
    """Of a joint or driver: its frames a and b.  Of a coupling: frame b of its first and of its second coordinate.

    Of a rate row on one body: no frame a.  by_end: the frames of each end.
    """
    places = tuple([place for own in by_end for place in own])
    sides = places if len(by_end) == 1 else tuple([own[-1] for own in by_end])
    if joint.kind.role is Role.RATE:  # several features of it may be on one body
        sides = tuple({place.body: place for place in reversed(places)}.values())[::-1]
    a, b = sides if len(sides) == 2 else (None, sides[0] if len(sides) == 1 else None)
    return Connection(joint.kind, a, b, places)


class ConstraintForces:
    """Forces of all constraints at some instants.  ``multipliers``, shape (times, equations): λ.

    ``wrenches``, shape (times, pairs, 6): per pair of a constraint and a body the force in world at the centre of mass
    and the torque in principal axes.  ``free``: the same of a random λ with Jᵀλ = 0; None if there is none.
    """

    def __init__(
        self, equations: Equations, times: FloatArray, q: FloatArray, multipliers: FloatArray, redundant: bool
    ) -> None:
        """q, shape (times, coordinates): of the solvers.  redundant: whether other λ may give the same motion."""
        self._times = times
        self.equations = equations
        self.q = np.ascontiguousarray(q)
        self._pairs, self._bodies, self._slots = _pairs(equations)
        self._job = _job(equations)
        self.multipliers = np.ascontiguousarray(multipliers)
        if equations.inertias:  # they are not forces of constraints
            self.multipliers = self.multipliers.copy()
            self.multipliers[:, equations.joint_inertias.equations] = 0.0
        self.free: FloatArray | None = None
        rubbing = [
            k for k in np.flatnonzero(equations.compliances).tolist() if k not in equations.joint_inertias.equations
        ]
        efforts = self.multipliers[:, rubbing]
        if redundant and self.multipliers.size:
            if rubbing:  # friction acts as it does; the rest is shared by the constraints
                self.multipliers = self.multipliers.copy()
                self.multipliers[:, rubbing] = 0.0
                self.wrenches = self._forces(self.multipliers)
            limits = _released(equations)
            holds = np.ones_like(self.multipliers)
            holds[:, limits] = self.multipliers[:, limits] != 0.0
            self.multipliers, _ = self._least_norm(self.multipliers, self.wrenches)
            self.multipliers[:, rubbing] = efforts
            self.wrenches = self._forces(self.multipliers)
            unit = holds * _scales(equations)[0]
            random = unit * np.random.default_rng(SEED).standard_normal(self.multipliers.shape)
            self.random = random - self._least_norm(random, self._forces(random))[0]
            self.free = self._forces(self.random)

    @cached_property
    def wrenches(self) -> FloatArray:
        """Of the multipliers; efforts do not need them."""
        return self._forces(self.multipliers)

    def _forces(self, multipliers: FloatArray) -> FloatArray:
        out = np.zeros((len(self.q), len(self._bodies), WIDTH))
        work = _work(self.equations)
        for k in _moments(self.equations, self._job[2], self._times):
            _reactions.forces(self._job[0], self._pairs, self.q[k], multipliers[k], out[k], *work)
        return out

    def _least_norm(self, multipliers: FloatArray, wrenches: FloatArray) -> tuple[FloatArray, FloatArray]:
        """λ of least norm with the same forces."""
        total = np.zeros((len(self.q), len(self.equations.system.names), WIDTH))
        for pair, body in enumerate(self._bodies.tolist()):
            total[:, body] += wrenches[:, pair]
        force = -total.reshape(len(self.q), -1)
        return _least_norm(self.equations, self._job, self._times, self.q, force, multipliers)

    def effort(self, name: str) -> FloatArray:
        """−λ of the only equation of a constraint, shape (times,)."""
        rows = {row.constraint: row.start for row in self.equations.system.rows}
        numbers = np.flatnonzero(self.equations.equations == rows[name])
        found: FloatArray = -self.multipliers[:, numbers].sum(axis=1)  # of a limit in a driven motion: zero
        return found

    def is_shared(self, name: str) -> bool:
        """Whether redundant equations leave λ of the first equation of a constraint undetermined."""
        if self.free is None:
            return False
        rows = {row.constraint: row.start for row in self.equations.system.rows}
        numbers = np.flatnonzero(self.equations.equations == rows[name])
        unit = _scales(self.equations)[0][numbers]
        return bool((np.abs(self.random[:, numbers] / unit) > UNIQUE).any())

    def reaction(self, names: tuple[str, ...], place: Place, axes: str) -> Reaction:
        """Of a constraint on the body of a place, about the place's origin.

        names: that of the constraint, and of a contact that rolls also that of its rate row; both are added.
        """
        length = self.equations.system.judged_length
        forces, torques = zip(*[self._at(name, place, axes, self.wrenches) for name in names], strict=True)
        determined = np.ones(6, dtype=bool)
        if self.free is not None:
            loose = [self._at(name, place, axes, self.free) for name in names]
            worst = np.sum([np.hstack([force * length, torque]) for force, torque in loose], axis=0)
            determined = np.abs(worst).max(axis=0, initial=0.0) <= UNIQUE
        traction = np.sum(forces[1:], axis=0) if len(names) > 1 else np.zeros_like(forces[0])
        whole = np.sum(forces, axis=0), np.sum(torques, axis=0)
        return Reaction(*whole, bool(determined.all()), determined, forces[0], traction)

    def _contact_points(self, touch: Touch) -> FloatArray:
        """Where a contact is [m] in world, shape (times, 3)."""
        system = self.equations.system
        poses = (formulations.from_reference(system, q) for q in self.q)
        angles = (formulations.angles(system, q).copy() for q in self.q)
        states = (system.state(*both) for both in zip(poses, angles, strict=True))
        return np.array([touch.read(state).point for state in states]).reshape(-1, 3)

    def _at(self, name: str, place: Place, axes: str, wrenches: FloatArray) -> tuple[FloatArray, FloatArray]:
        system = self.equations.system
        count = len(self.q)
        values = np.frombuffer(place.floats).reshape(4, 3)
        own = system.numbers()[place.body]
        touch = system.index.contacts.get(name.removesuffix(ROLLING) if name in self.equations.rate_rows else name)
        slots = self._slots.get(name, {})
        chosen = slots if own < 0 else {own: slots[own]} if own in slots else {}
        sign = -1.0 if own < 0 else 1.0
        poses = self.q[:, : layout.POSE * len(system.names)].reshape(count, -1, layout.POSE)
        orientation = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (count, 4))
        point = np.broadcast_to(values[0] - system.origin, (count, 3))
        if own >= 0:
            back = euler.conjugate(system.reference_frames[own, 3:])
            orientation = euler.multiply(poses[:, own, 3:], np.broadcast_to(back, (count, 4)))
            arm = np.broadcast_to(values[0] - system.reference_points[own], (count, 3))
            point = poses[:, own, :3] + euler.rotate(orientation, arm)
        if touch is not None:
            point = self._contact_points(touch) - system.origin
        force, torque = np.zeros((count, 3)), np.zeros((count, 3))
        for body, slot in chosen.items():
            f = wrenches[:, slot, :3]
            force += sign * f
            t = euler.rotate(poses[:, body, 3:], wrenches[:, slot, 3:]) + np.cross(poses[:, body, :3] - point, f)
            torque += sign * t
        if axes == "joint":
            triad = np.stack(
                [euler.rotate(orientation, np.broadcast_to(axis, (count, 3))) for axis in values[1:]], axis=1
            )
            force, torque = (np.einsum("kij,kj->ki", triad, vector) for vector in (force, torque))
        return force, torque


def read_reaction(
    forces: ConstraintForces, connections: Mapping[str, Connection], joint: Any, on: Any, axes: str, system: System
) -> Reaction:
    """The reaction that a user asks for; ModelError where there is none."""
    name = getattr(joint, "name", joint)
    if not isinstance(name, str) or name not in connections:
        raise check.unknown(name, "joint or constraint", connections)
    if axes not in ("world", "joint"):
        raise check.unknown(axes, "axes", ("world", "joint"))
    found = connections[name]
    place = {"a": found.a, "b": found.b}[on] if isinstance(on, str) and on in ("a", "b") else None
    if place is None:
        body = getattr(on, "name", on)
        names = {number: key for key, number in system.index.items()} | {-1: GROUND}
        on_body = {names[system.numbers()[p.body]]: p for p in reversed(found.places)}
        if not isinstance(body, str) or body not in on_body:
            sides = "" if found.a is None else "'a', 'b', or "
            offered = ", ".join(map(repr, on_body))
            raise ModelError(f"on is {on!r}; for {name!r} it must be {sides}one of the bodies {offered}")
        place = on_body[body]
    if found.kind.role is not Role.CONTACT:
        rows = (name, *[one.name for one in forces.equations.frictions if one.joint == name])
        return forces.reaction(rows, place, axes)._replace(normal=None, traction=None)
    rolling = connections.get(f"{name}{ROLLING}")
    parts = (name, f"{name}{ROLLING}") if rolling is not None and rolling.kind.role is Role.RATE else (name,)
    return forces.reaction(parts, place, axes)


def read_effort(
    forces: ConstraintForces, connections: Mapping[str, Connection], driver: Any, times: FloatArray, v: FloatArray
) -> FloatArray:
    """The effort that a user asks for; ModelError where there is none.  v: shape (times, unknowns)."""
    name = getattr(driver, "name", driver)
    drivers = [key for key, found in connections.items() if found.kind.role in (Role.DRIVER, Role.LIMIT)]
    drivers += [one.name for one in forces.equations.frictions]
    loads = forces.equations.forces
    named = loads.named if loads is not None else []
    if isinstance(name, str) and name in connections and name not in drivers:
        raise ModelError(
            f"{name!r} is a {connections[name].kind.name}, which acts on bodies and not on one coordinate; "
            f"use reaction({name!r}): effort is for drivers, limits and loads with a coordinate"
        )
    if not isinstance(name, str) or name not in (*drivers, *named):
        raise check.unknown(name, "driver, limit or load with a coordinate", (*drivers, *named))
    if loads is not None and name in named:
        return loads.efforts(name, times, forces.q, np.ascontiguousarray(v))
    return forces.effort(name)


def effort_units(forces: ConstraintForces, connections: Mapping[str, Connection]) -> dict[str, str]:
    """What has an effort, by name, the drivers first: "N m" if it acts on an angle, "N" if on a length."""
    loads = forces.equations.forces
    rows = {row.constraint: row.primitive.units[0] for row in forces.equations.system.rows}
    named: dict[str, str] = {}
    for role in (Role.DRIVER, Role.LIMIT):
        named |= {name: rows[name] for name, found in connections.items() if found.kind.role is role}
    named |= {one.name: rows[one.name] for one in forces.equations.frictions}
    named |= {} if loads is None else loads.units
    return {name: "N m" if unit == "rad" else "N" for name, unit in named.items()}


def inverse(equations: Equations, states: tuple[State, ...]) -> tuple[ConstraintForces, FloatArray]:
    """Forces that a given motion needs: λ of M v̇ + Jᵀλ = Q, from states with velocities and accelerations; and v.

    ModelError if the motion needs forces that neither joints nor drivers give.
    """
    q, v, a = principal_rates(equations.system, states)
    times = np.array([state.time for state in states])
    loads = loads_at(equations, times, q, v)
    inertia = joint_inertias.forces(equations, times, q, v, a)
    columns = _scales(equations)[1]
    job = _job(equations)
    holding = np.ones((len(q), equations.equations.size))
    holding[:, _released(equations)] = 0.0  # at a limit a motion ends
    force = (loads - inertia).reshape(len(q), -1)
    multipliers, rest = _least_norm(equations, job, times, q, force, holding)
    if equations.frictions:
        ways, rows = driven_friction.directions(equations, times, q, v, a)
        units = [_least_norm(equations, job, times, q, rows[:, k], holding)[0] for k in range(rows.shape[1])]
        efforts = driven_friction.solve(equations, ways, partial(_load, equations, times, q), multipliers, units)
        force = force - np.einsum("kj,kji->ki", efforts, rows)
        multipliers, rest = _least_norm(equations, job, times, q, force, holding)
        multipliers[:, driven_friction.numbers(equations)] = efforts
    largest = np.abs(columns * np.abs(loads).reshape(len(q), -1)).max(initial=0.0)
    largest = max(float(largest), float(np.abs(columns * inertia.reshape(len(q), -1)).max(initial=0.0)))
    if rest.max(initial=0.0) > UNCARRIED * largest:
        at = states[int(rest.argmax())].time
        raise ModelError(
            f"at t = {at:g} s the motion needs forces that neither joints nor drivers give: the drivers leave a "
            "freedom; drive it too, or use simulate"
        )
    redundant = bool(job[1].redundant != 0.0)
    return ConstraintForces(equations, times, q, multipliers, redundant), v.reshape(len(q), -1)


def _load(
    equations: Equations, times: FloatArray, q: FloatArray, multipliers: FloatArray, one: JointRow
) -> tuple[FloatArray, FloatArray]:
    """R and M of a joint with friction on b at frame b, in its axes, shape (times, 3) each."""
    forces = ConstraintForces(equations, times, q, multipliers, redundant=False)
    if one.law.law == "mesh":
        torque = one.ratio * -forces.effort(one.joint)
        return np.stack([torque, 0.0 * torque, 0.0 * torque], axis=1), np.zeros((len(times), 3))
    return forces._at(one.joint, one.b, "joint", forces.wrenches)


def drift(equations: Equations, times: FloatArray, q: FloatArray) -> FloatArray:
    """Largest residual of any equation at each of the times, lengths relative to the extent, shape (times,)."""
    p, system = equations.problem, equations.system
    signals = [*system.signals, *[(position, function) for position, _, function in system.timed]]
    weights = np.zeros(p.rows)
    weights[equations.equations] = equations.weights
    weights[equations.stop_table["row"]] = 0.0
    places: IntArray = np.array([position for position, _ in signals], dtype=np.int64)
    values = [signal.jets(times)[:, 0] for _, signal in signals]
    drive: FloatArray = np.array(values).reshape(len(signals), len(times)).T.copy()
    largest = np.empty(len(times))
    job, _, _owner = _job(equations, writes=True)
    count = len(equations.stops) - len(equations.openings)  # limits, before the contacts that open
    limits = equations.stop_table[:count].view(np.int64), equations.bounds[:count].view(np.float64)
    _reactions.drift(job, places, drive, weights, *limits, np.ascontiguousarray(q), largest, *_work(equations))
    return largest


def rate_drift(equations: Equations, times: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Largest |J v − ġ| of any equation at each of the times, lengths relative to the extent, shape (times,)."""
    p = equations.problem
    weights = np.zeros(p.rows)
    weights[equations.equations] = equations.weights
    weights[equations.stop_table["row"]] = 0.0
    opening = {f"{one.name}{ROLLING}" for one in equations.openings}
    for row in equations.system.rows:  # rows that hold at times
        if row.constraint in opening:
            weights[row.start : row.start + row.primitive.rows] = 0.0
    demanded = np.zeros((len(times), p.rows))
    system = equations.system
    rows = {row.constraint: row.start for row in system.rows}
    for _, signal in system.signals:
        demanded[:, rows[signal.name]] = signal.jets(times)[:, 1]
    found = []
    for a, b, c, t in zip(np.ascontiguousarray(q), v, demanded, times.tolist(), strict=True):
        if system.timed:
            c -= formulations.time_derivative(system, a, t)
            p = p.with_floats(system.floats_at(t))
        found.append(weights * (p.product(a, b) - c))
    largest: FloatArray = np.abs(np.array(found).reshape(len(times), -1)).max(axis=1, initial=0.0)
    return largest


def applied(equations: Equations, time: float, q: FloatArray, v: FloatArray) -> FloatArray:
    """Q of gravity, −ω × I ω and all loads at one instant, flat."""
    found: FloatArray = loads_at(equations, np.array([time]), q[None], v.reshape(1, -1, WIDTH)).ravel()
    return found


def loads_at(equations: Equations, times: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Q of gravity, −ω × I ω and all loads, shape (times, bodies, 6)."""
    out = np.zeros_like(v)
    out[..., :3] = equations.masses[:, :3] * equations.gravity
    out[..., 3:] = -np.cross(v[..., 3:], equations.masses[:, 3:] * v[..., 3:])
    if equations.forces is not None:
        for k, t in enumerate(times.tolist()):
            out[k] += equations.forces.total(t, q[k], v[k].ravel()).reshape(-1, WIDTH)
    return out


def principal_rates(system: System, states: tuple[State, ...]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """q, v and v̇ of the principal frames, shapes (times, coordinates) and (times, bodies, 6)."""
    poses = np.array([state.coordinates for state in states])
    rates = [np.array([getattr(state, word) for state in states]) for word in ("velocities", "accelerations")]
    p = poses[..., 3:]
    axes = np.broadcast_to(system.reference_frames[:, 3:], p.shape)
    c = np.broadcast_to(system.reference_points, p[..., 1:].shape)
    v, a = rates
    w, dw = v[..., 3:].copy(), a[..., 3:].copy()
    back = euler.conjugate(axes)
    q = np.concatenate([poses[..., :3] - system.origin + euler.rotate(p, c), euler.multiply(p, axes)], axis=2)
    v[..., :3] += euler.rotate(p, np.cross(w, c))
    a[..., :3] += euler.rotate(p, np.cross(dw, c) + np.cross(w, np.cross(w, c)))
    v[..., 3:], a[..., 3:] = euler.rotate(back, w), euler.rotate(back, dw)
    return _with_angles(system, q.reshape(len(states), -1), states), v, a


def _with_angles(system: System, poses: FloatArray, states: tuple[State, ...]) -> FloatArray:
    """q with the counted angles of the states; those that only loads count follow from one state to the next."""
    keys = system.counted_angles
    q = np.hstack([poses, np.zeros((len(states), len(keys)))])
    first = poses.shape[1]
    for k, state in enumerate(states if keys else ()):
        before = q[k - 1, first:].tolist() if k else [0.0] * len(keys)
        q[k, first:] = [state.angles.get(key, near) for key, near in zip(keys, before, strict=True)]
        if any(key not in state.angles for key in keys):
            q[k] = formulations.with_angles_of_poses(system, q[k])
    return q


def _scales(equations: Equations) -> tuple[FloatArray, FloatArray]:
    """D of the equations, and C."""
    p = equations.problem
    return p.scales[: p.rows][equations.equations], p.scales[p.rows :]


def _job(equations: Equations, writes: bool = False) -> tuple[IntArray, Control, Problem]:
    """The table of the kernels, a control vector, and what keeps the arrays of the table alive.

    writes: the kernel writes to the floats of the problem, so that it has its own.
    """
    p = equations.problem
    floats = p.floats.copy() if equations.system.timed or writes else p.floats
    owner = equations.with_floats(floats)
    return owner.table(), Control.new(), owner


def _moments(equations: Equations, owner: Problem, times: FloatArray) -> Iterator[slice]:
    """All times at once; one by one, with the floats of the time, where parameters are functions of time."""
    if not equations.system.timed:
        yield slice(0, len(times))
        return
    for k, time in enumerate(times.tolist()):
        owner.floats[:] = equations.floats_at(time)
        yield slice(k, k + 1)


def _least_norm(
    equations: Equations,
    job: tuple[IntArray, Control, Problem],
    times: FloatArray,
    q: FloatArray,
    force: FloatArray,
    holding: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """λ of least norm with Jᵀλ = force, shape (times, equations), and the largest component left over, scaled by C.

    holding, shape (times, equations): zero for limits that do not hold.
    """
    rows, columns = _scales(equations)
    multipliers, rest = holding.copy(), np.zeros(len(q))
    stops, scaled, work = _stop_entries(equations), columns * force, _work(equations)
    for k in _moments(equations, job[2], times):
        _reactions.least_norm(job[0], job[1].as_floats, stops, q[k], scaled[k], multipliers[k], rest[k], *work)
    return multipliers * rows, rest


def _released(equations: Equations) -> IntArray:
    """Equations that need not hold: limits, and the rows of inertias and friction of joints."""
    found: IntArray = np.concatenate([equations.stop_table["equation"], np.flatnonzero(equations.compliances)])
    return found


def _stop_entries(equations: Equations) -> IntArray:
    """Of each equation that need not hold its number, and the first entry and the number of entries of its row in J."""
    limits = set(_released(equations).tolist())
    every = strips(equations) if limits else ()
    entries = [(s.first, s.entry, WIDTH * s.slots) for s in every if s.first in limits]  # strips of one row
    return np.array(entries, dtype=np.int64).reshape(-1, 3)


def strips(equations: Equations) -> Iterator[Strip]:
    """The strips of the pattern."""
    at = Pattern.size
    for _ in range(int(Pattern(equations.algebra.pattern).strip_count)):
        strip = Strip(equations.algebra.pattern[at:])
        yield strip
        at += Strip.size + int(strip.slots)


def _work(equations: Equations) -> tuple[IntArray, FloatArray]:
    """Offsets of ForceWork, and its memory."""
    rows, _, entries, _, evaluation = equations.problem.sizes
    n, n6 = equations.equations.size, WIDTH * len(equations.system.names)
    sizes = {"values": rows, "jacobian": entries, "x": n6 + n, "scratch": n6 + 2 * n}
    offsets = ForceWork.plan(**sizes, matrix=equations.algebra.work, evaluation=evaluation)
    return offsets, np.empty(offsets[-1])


def _pairs(equations: Equations) -> tuple[IntArray, IntArray, dict[str, dict[int, int]]]:
    """For each body of each strip the number of its pair; for each pair its body; numbers by constraint and body."""
    names = np.empty(equations.problem.rows, dtype=object)
    for row in equations.system.rows:
        names[row.start : row.start + row.primitive.rows] = row.constraint
    slots: dict[str, dict[int, int]] = {}
    places: list[int] = []
    bodies: list[int] = []
    for strip in strips(equations):
        pairs = slots.setdefault(names[strip.row], {})
        for body in strip.bodies[: strip.slots].tolist():
            if body not in pairs:
                pairs[body] = len(bodies)
                bodies.append(body)
            places.append(pairs[body])
    return np.array(places, dtype=np.int64), np.array(bodies, dtype=np.int64), slots
