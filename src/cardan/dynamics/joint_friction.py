"""A run with friction of joints: which of them stick, which slip, and where that changes.

The row of the coordinate of such a joint is an equation while it sticks.  Steps end where a rate becomes zero, or where
an effort exceeds its limit (:mod:`cardan.dynamics._joint_friction`).  Then every joint at rest sticks at first; the one
whose effort exceeds its limit most is released, in the direction of the force that its row would have to carry, until
no other does.  One that does not begin to move that way sticks again.  If rows that stick are redundant, their efforts
are those of least norm; a joint that is released, but cannot move while others stick, rests at its limit.  A joint at
rest whose rate other equations determine, as at a dead point or by a driver, does not stick: it slips as they move it,
and has no friction while they do not.
Hits at limits are too short for friction: their impulses have none, and release joints that stick.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics import driven_friction, impacts, tables
from cardan.dynamics.contact_events import ContactEvent, ContactEventKind
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import MOST_STEP, RESTING, VARIABLE_STEPS, Settings
from cardan.dynamics.joint_friction_tables import IDLES, RESTS, SLIPS, STICKS, Friction
from cardan.dynamics.reactions import ConstraintForces, strips
from cardan.dynamics.rebound import ReboundRun
from cardan.dynamics.tables import WIDTH, Bound, Soft
from cardan.joints.friction import JointFriction
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system.relations import Place
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

_joint_friction = LazyModule("cardan.dynamics._joint_friction")

COORDINATES: Final = {"bearing": "angle", "guide": "displacement", "thread": "angle"}  # on which a law acts
LAWS: Final = {"bearing": 0, "guide": 1, "thread": 2, "mesh": 3}
EXCEEDED: Final = 1e-12  # of a limit: a larger effort does not stick
JAMMED: Final = 1e9  # of the radius: a coefficient that nothing overcomes
STILL: Final = 1e-9  # of what the limit would give to the free bodies: a smaller acceleration is rounding
HELD: Final = 1e-9  # of a row of length one: if less is left beside other rows, these hold its coordinate
ROUNDS: Final = 20  # of stops and friction in turn, at one time
UNFITTING: Final = 4 + tables.LOCKED  # status of a run: no joints that stick or slip fit the forces


class JointRow(NamedTuple):
    """Friction of a joint: the row of its coordinate, its law, and where its forces are read.

    ``name``: of the row; ``joint``: whose forces are the load.  ``a``, ``b``: its frames.
    ``ratio``: of a thread [m/rad] or of gears.
    """

    name: str
    joint: str
    law: JointFriction
    a: Place
    b: Place
    ratio: float = 0.0

    def coefficients(self, given: tuple[float, float, float]) -> tuple[float, float, float]:
        """Those of the kernel; of a thread by its lead angle, at which friction may be too large to move at all."""
        if self.law.law != "thread":
            return given
        r, t = self.law.length, abs(self.ratio) / self.law.length
        mu = given[0] * math.sqrt(1.0 + self.law.width**2 / (1.0 + t * t))
        size, left = r * mu * (1.0 + t * t), 1.0 - mu * t
        return size / left if left > 0.0 else JAMMED * r, size / (1.0 + mu * t), given[2]


def records(e: Equations) -> Any:
    """The tables of :class:`Friction`."""
    system, numbers = e.system, e.system.numbers()
    rows = {row.constraint: row.start for row in system.rows}
    number = {int(row): k for k, row in enumerate(e.equations)}
    names = np.empty(e.problem.rows, dtype=object)
    for row in system.rows:
        names[row.start : row.start + row.primitive.rows] = row.constraint
    found = np.zeros(len(e.frictions), dtype=Friction.dtype)
    every = list(strips(e))
    for one, record in zip(e.frictions, found, strict=True):
        equation = number[rows[one.name]]
        (own,) = [s for s in every if s.first <= equation < s.first + s.rows]
        bodies = own.bodies[: own.slots].tolist()
        record["law"], record["equation"] = LAWS[one.law.law], equation
        record["entry"] = own.entry + (equation - own.first) * WIDTH * own.slots
        record["slots"] = len(bodies)
        record["first"], record["second"] = bodies[0], bodies[-1]
        row = next(row for row in system.rows if row.constraint == one.name)
        record["weight"] = driven_friction.weight(system, row)
        frame = numbers[one.b.body]
        body = frame if frame >= 0 else numbers[one.a.body]
        record["body"], record["frame"], record["sign"] = body, frame, 1.0 if frame >= 0 else -1.0
        values = np.frombuffer(one.b.floats).reshape(4, 3)
        origin, axes = values[0] - system.origin, values[1:]
        if frame >= 0:
            back = euler.conjugate(system.reference_frames[frame, 3:])
            origin = np.asarray(euler.rotate(back, values[0] - system.reference_points[frame]))
            axes = np.array([euler.rotate(back, axis) for axis in axes])
        record["origin"], record["axes"] = origin, axes.ravel()
        if one.law.law == "mesh":
            (teeth,) = [s for s in every if names[s.row] == one.joint]
            record["strip"][0], record["ratio"] = teeth.first, one.ratio
            record["kinetic"], record["static"] = one.law.kinetic, one.law.static
            continue
        bearing = [s for s in every if names[s.row] == one.joint and body in s.bodies[: s.slots].tolist()]
        record["strips"] = len(bearing)
        for k, s in enumerate(bearing):
            slot = s.bodies[: s.slots].tolist().index(body)
            record["strip"][4 * k : 4 * k + 4] = s.first, s.rows, s.entry + WIDTH * slot, WIDTH * s.slots
        record["kinetic"] = one.coefficients(one.law.kinetic)
        record["static"] = one.coefficients(one.law.static)
        record["length"], record["width"], record["ratio"] = one.law.length, one.law.width, one.ratio
    return found


class FrictionRun(ReboundRun):
    """A run of a mechanism with friction of joints."""

    def __init__(self, equations: Equations, *given: Any, settings: Settings = VARIABLE_STEPS, **options: Any) -> None:
        """given, settings, options: of :class:`ReboundRun`."""
        self.frictions: Any = records(equations)
        self.compliances: FloatArray = equations.compliances.copy()
        self.memory: FloatArray = np.zeros(0)
        self._has_begun = False
        super().__init__(equations, *given, settings=settings, **options)
        self._foresees = self._returns = False
        if not settings.max_step:
            self.control.most_step = MOST_STEP * self._span
        self._rows: IntArray = equations.equations[self.frictions["equation"].astype(int)]
        g = equations.problem.with_floats(self.floats).jacobian(self.q)[1][self._rows]
        self._mobility = (g * g / equations.metric.ravel()).sum(axis=1)  # of the free bodies
        self._give(np.arange(len(self._rows)), True)

    def _make_table(self, offsets: IntArray) -> None:
        e, most = self.equations, len(self.frictions)
        if len(self.bounds) == len(e.stops):
            added = np.zeros(most, dtype=Bound.dtype)
            added["lower"], added["upper"], added["weight"] = -np.inf, np.inf, 1.0
            self.bounds = np.concatenate([self.bounds, added])
        super()._make_table(offsets)
        rows = e.equations[self.frictions["equation"].astype(int)]
        places = [e.friction_places[one.name] for one in e.frictions]
        table = np.array(
            list(zip(self.frictions["equation"].astype(int), rows, places, strict=True)), dtype=tables.Stop.dtype
        )
        self._stops = np.concatenate([e.stop_table, table])
        pieces = _joint_friction.plan_work(most, len(e.system.names), e.equations.size, len(self.times))
        if not self.memory.size:
            self.memory = np.zeros(int(pieces[-1]))
        self._soft = Soft.new(open=1, rows=most, most=most, pieces=np.concatenate([pieces, np.zeros(16, int)])[:16])
        job = self.job
        job.stops, job.bounds, job.stop_count = self._stops, self.bounds, len(self._stops)
        job.compliances = self.compliances
        job.soft, job.soft_floats, job.soft_memory = self._soft, self.frictions.view(np.float64), self.memory
        job.soft_solver, job.stop_solver = _joint_friction.SOLVE, _joint_friction.EVENTS

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key not in ("_soft", "_stops")}

    @property
    def failed(self) -> list[str]:
        """The joints whose friction allows no finite force."""
        return [one.joint for one, k in zip(self.equations.frictions, self.frictions, strict=True) if k["failed"]]

    def lost_friction(self) -> FloatArray:
        """Energy that friction has taken up to each output that was reached [J]."""
        return self.memory[len(self.memory) - len(self.times) :][: self.reached].copy()

    # -- modes ---------------------------------------------------------------------------------------------------------

    def _give(self, which: Any, way: bool) -> None:
        """Let rows give way, or hold their coordinates where they are."""
        for k in np.atleast_1d(which).tolist():
            equation = int(self.frictions["equation"][k])
            self.compliances[equation] = self._mobility[k] if way else 0.0
            if not way:
                values = self.equations.problem.with_floats(self.floats).jacobian(self.q)[0]
                self.floats[self.equations.friction_places[self.equations.frictions[k].name]] += values[self._rows[k]]

    def _set_mode(self, k: int, mode: float) -> None:
        if (self.frictions["mode"][k] == STICKS) != (mode == STICKS) or not self._has_begun:
            self._give(k, mode != STICKS)
        self.frictions["mode"][k] = mode

    def _coordinate_rates(self) -> FloatArray:
        """ċ of every joint with friction."""
        found: FloatArray = self.equations.problem.with_floats(self.floats).product(self.q, self.v)[self._rows]
        return found

    def _accelerations(self) -> FloatArray:
        """c̈ of every joint with friction."""
        e = self.equations
        product = e.problem.with_floats(self.floats).product(self.q, self._last_acceleration())
        gamma = formulations.gamma(e.system, "manifold", self.q, self.v, self.floats)
        found: FloatArray = product[self._rows] - gamma[self._rows]
        return found

    def _slip_by_rates(self) -> None:
        """Let every joint that moves slip in its direction."""
        for k, rate in enumerate(self._coordinate_rates().tolist()):
            if abs(rate) * self.frictions["weight"][k] > RESTING:
                self._set_mode(k, float(np.sign(rate)) * SLIPS)

    def _hit(self, released: int) -> bool:
        found = super()._hit(released)
        if found:
            self._slip_by_rates()
        return found

    # -- events --------------------------------------------------------------------------------------------------------

    def begin(self, released: int = -1) -> int:
        """See :meth:`ReboundRun.begin`; then which joints stick and which slip."""
        item = int(self.control.event) - 1 - len(self.equations.stops)
        before = self.frictions["mode"].copy()
        is_start = not self._has_begun
        if is_start:
            for k in range(len(before)):
                self._set_mode(k, STICKS)
            self._slip_by_rates()
            self._has_begun = True
        forced = -1
        if item >= 0:
            forced = item if before[item] == STICKS else -1
            self._stop(item)
        sample = float(self.control.sample)
        sides = None
        for _ in range(ROUNDS):
            self.control.sample = sample
            status = super().begin(released)
            if status != tables.RUNNING:
                return status
            now = self.bounds["side"].copy()
            if sides is not None and (now == sides).all():
                self._tell_changes(before, is_start)
                return status
            sides = now
            status = self._settle(forced, sample)
            if status != tables.RUNNING:
                return status
            if not self.equations.stops:
                self._tell_changes(before, is_start)
                return status
            released = -1
        return UNFITTING

    def _stop(self, item: int) -> None:
        """Let a joint stick whose rate has become zero, with all that cannot move without it."""
        e = self.equations
        if self._is_held(item, self._others(0.0 * self._mobility)):
            self._set_mode(item, IDLES)
            return
        jacobian = e.problem.with_floats(self.floats).jacobian(self.q)[1]
        own = jacobian[self._rows[item]]
        W = impacts.responses(e, jacobian, self.active, own[None])[:, 0]
        if own @ W > HELD * self._mobility[item]:
            self.v -= W * (own @ self.v) / (own @ W)
        for k, rate in enumerate(self._coordinate_rates().tolist()):
            if k == item or abs(rate) * self.frictions["weight"][k] <= RESTING:
                self._set_mode(k, STICKS)

    def _tell_changes(self, before: FloatArray, is_start: bool) -> None:
        if is_start:
            return
        for one, old, new in zip(
            self.equations.frictions, before.tolist(), self.frictions["mode"].tolist(), strict=True
        ):
            slips = abs(new) == SLIPS
            if slips and old != new:
                self.events.append(ContactEvent(self.time, one.joint, ContactEventKind.SLIP))
            if not slips and abs(old) == SLIPS:
                self.events.append(ContactEvent(self.time, one.joint, ContactEventKind.STICK))

    def _settle(self, forced: int, sample: float) -> int:
        """Let joints at rest stick or slip, so that efforts are within limits and slip goes its way."""
        rates = self._coordinate_rates() * self.frictions["weight"]
        resting = np.flatnonzero(np.abs(rates) <= RESTING).tolist()
        for k in np.flatnonzero(np.abs(rates) > RESTING).tolist():
            self._set_mode(k, float(np.sign(rates[k])) * SLIPS)
        led, status = self._lead(resting, sample)
        if status != tables.RUNNING:
            return status
        direction = np.ones(len(self._rows))
        others: list[int] = []  # to be released where a trial has no finite force
        modes = dict.fromkeys([k for k in resting if k not in led], STICKS)
        tried = set()
        while tuple(modes.values()) not in tried:
            tried.add(tuple(modes.values()))
            for k, mode in modes.items():
                self._set_mode(k, mode)
            self.control.sample = sample
            status = self._begin()
            if status == tables.NOT_FINITE and others:
                k = others.pop(0)
                modes[k] = direction[k]
                continue
            if status != tables.RUNNING:
                return status
            found = self.frictions
            direction = np.where(found["multiplier"] > 0.0, SLIPS, -SLIPS)
            excess = {k: abs(found["multiplier"][k]) - found["limit"][k] for k, mode in modes.items() if mode == STICKS}
            over = {
                k: x / found["limit"][k] if found["limit"][k] > 0.0 else np.inf for k, x in excess.items() if x > 0.0
            }
            over = {k: x for k, x in over.items() if x > EXCEEDED and k != forced}
            if forced in excess:
                over[forced] = np.inf
            wrong = self._going_back(modes)
            if wrong:
                modes[wrong[0]] = STICKS
            elif over:
                worst, *others = sorted(over, key=lambda k: -over[k])
                modes[worst] = direction[worst]
            else:
                rows = self._others(self.compliances[self.frictions["equation"].astype(int)] == 0.0)
                for k in [k for k, mode in modes.items() if mode != STICKS]:
                    if self._is_held(k, rows):
                        self._set_mode(k, RESTS * np.sign(modes[k]))
                return status
            if wrong and wrong[0] == forced:
                forced = -1
        return UNFITTING

    def _lead(self, resting: list[int], sample: float) -> tuple[list[int], int]:
        """Joints at rest whose rates other equations determine: they slip if these move them; and the status."""
        rows = self._others(0.0 * self._mobility)
        led = [k for k in resting if self._is_held(k, rows)]
        if not led:
            return [], int(tables.RUNNING)
        for k in led:
            self._set_mode(k, IDLES)
        self.control.sample = sample
        status = self._begin()
        if status == tables.RUNNING:
            found = self._accelerations()
            bars = STILL * self._mobility * np.abs(self.frictions["limit"])
            for k in [k for k in led if abs(found[k]) > bars[k]]:
                self._set_mode(k, float(np.sign(found[k])) * SLIPS)
        return led, status

    def _going_back(self, modes: dict[int, float]) -> list[int]:
        """Joints that were released, but move against their direction."""
        slipping = [k for k, mode in modes.items() if mode != STICKS]
        if not slipping:
            return []
        found = self._accelerations()
        bars = STILL * self._mobility * np.abs(self.frictions["limit"])
        return [k for k in slipping if np.sign(modes[k]) * found[k] < -bars[k]]

    def _others(self, sticking: FloatArray) -> FloatArray:
        """Rows of the equations that hold, of length one, and of the joints that stick."""
        e = self.equations
        holds = (self.active > 0.0) & (e.compliances == 0.0)
        holds[self.frictions["equation"].astype(int)[sticking > 0.0]] = True
        rows: FloatArray = self._jacobian()[e.equations[holds]]
        return rows / np.maximum(np.linalg.norm(rows, axis=1), np.finfo(float).tiny)[:, None]

    def _jacobian(self) -> FloatArray:
        e = self.equations
        found: FloatArray = e.problem.with_floats(self.floats).jacobian(self.q)[1] / np.sqrt(e.metric.ravel())
        return found

    def _is_held(self, k: int, rows: FloatArray) -> bool:
        """Whether rows leave no motion of a coordinate."""
        if not len(rows):
            return False
        jacobian = self._jacobian()
        own = jacobian[self._rows[k]] / np.linalg.norm(jacobian[self._rows[k]])
        left = own - rows.T @ np.linalg.lstsq(rows.T, own, rcond=1e-12)[0]
        return float(np.linalg.norm(left)) < HELD


def notes(run: FrictionRun) -> list[str]:
    """A note on joints whose friction has a load that is not unique, because equations are redundant."""
    e = run.equations
    forces = ConstraintForces(e, np.array([run.time]), run.q[None], np.zeros((1, e.equations.size)), redundant=True)
    loose = []
    for one in e.frictions:
        if one.law.law == "mesh":
            if forces.is_shared(one.joint):
                loose.append(one.joint)
            continue
        known = forces.reaction((one.joint,), one.b, "joint").determined
        needed = [2]
        if one.law.law != "thread":
            along = [2 if one.law.law == "bearing" else 5] if one.law.kinetic[2] else []
            needed = [0, 1, *([3, 4] if one.law.length else []), *along]
        if not known[needed].all():
            loose.append(one.joint)
    if not loose:
        return []
    return [
        f"equations are redundant, and the load on the friction of {', '.join(map(repr, loose))} is not unique: the "
        "multipliers of least norm are taken"
    ]
