"""A run with contacts that slip, stick or roll: their tables, which of them do what, and when that changes.

A contact that sticks or rolls has its tangential rows as equations, one that slips a force in the kernel
(:mod:`cardan.dynamics._friction`).  After every event the problem on the cone tells which contacts open, slip or stick
(:mod:`cardan.dynamics.friction`).  Rows that depend on others are left out.  Then the forces are not unique, and their
shares never decide: after each step the problem of all contacts does.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics import friction, impacts, tables
from cardan.dynamics.contact_events import ContactEvent, ContactEventKind
from cardan.dynamics.equations import Equations
from cardan.dynamics.friction_tables import FADED, FREE, SHARED, SLIP, STICK, Friction, Grip
from cardan.dynamics.integrate import FAILURES, LEAST_ACCELERATION, RESTING, TABLEAUS, Integration, Mark
from cardan.dynamics.reactions import ROLLING
from cardan.dynamics.tables import Pattern, Strip
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

_friction = LazyModule("cardan.dynamics._friction")

NUDGE: Final = 1e-12  # of the speeds: the approach that begins a shock
CHANGE_STEP: Final = 1e-13  # of a step: the time at which held contacts begin to slip is not sought nearer
CHANGE_KNOWN: Final = 1e-3  # likewise: how they slip is read where it is clear
UNDECIDED: Final = 3 + tables.LOCKED  # status of a run: forces that are not unique decide the motion
TURNING: Final = 1e-6  # rad/s: bodies that turn relative to each other roll


class Loss(NamedTuple):
    """Energy [J] that hits and shocks took at a time [s], by their whole impulses."""

    time: float
    energy: float


class Local(NamedTuple):
    """Some contacts in a pose: their rows J_c, shape (3 contacts, unknowns), normal, then two tangential ones (zero
    where there are none), the response W to unit forces, G = J_c W, and velocities u, shape (contacts, 3)."""

    rows: FloatArray
    response: FloatArray
    G: FloatArray
    u: FloatArray


class SlidingRun(Integration):
    """A run of a mechanism with contacts that open, without hits."""

    def __init__(self, equations: Equations, *given: Any, **options: Any) -> None:
        """given, options: of :class:`Integration`."""
        self.losses: list[Loss] = []
        self.notes: list[str] = []
        self._shocks = 0
        self._begun: dict[int, FloatArray] = {}  # by number: directions of contacts that begin to slip now
        self._parted: set[int] = set()  # numbers of contacts that open now
        self.shared: list[tuple[float, frozenset[str]]] = []  # from a time on, contacts whose forces are not unique
        self._least_factor = friction.JAMMED
        self._is_undecided = False  # whether forces that are not unique decide the motion
        self._sought = -np.inf  # s: where held contacts were last seen to change
        self.contact_error = 0.0
        self._grips = [k for k, one in enumerate(equations.openings) if one.friction[0] > 0.0]
        self._tangents = _tangents(equations)
        self._numbers = np.zeros(Friction.size + Grip.size * len(self._grips))
        self._fill_grips(equations)
        self._memory: FloatArray = np.zeros(0)
        super().__init__(equations, *given, **options)
        for equation in self._tangents.values():
            self.active[equation] = 0.0
        self.active[equations.stop_table["equation"][self._first :]] = FADED  # their rows give the rates of gaps

    @property
    def had_hits(self) -> bool:
        """See :attr:`Integration.had_hits`."""
        return bool(self.losses)

    def _fill_grips(self, e: Equations) -> None:
        """The tables of contacts with friction."""
        self.table.count = float(len(self._grips))
        strips = {}
        at = Pattern.size
        for _ in range(int(Pattern(e.algebra.pattern).strip_count)):
            strip = Strip(e.algebra.pattern[at:])
            strips[int(strip.first)] = strip
            at += Strip.size + int(strip.slots)
        first = len(e.stops) - len(e.openings)
        for grip, k in zip(self.grips, self._grips, strict=True):
            grip["hold"], grip["drag"] = e.openings[k].friction
            grip["stop"], grip["normal"] = first + k, e.stop_table["equation"][first + k]
            equations = self._tangents[first + k]
            strip = strips[int(equations[0])]
            grip["first"], grip["rows"], grip["entry"] = equations[0], len(equations), strip.entry
            grip["slots"] = strip.slots
            grip["bodies"][: int(strip.slots)] = strip.bodies[: int(strip.slots)]

    @property
    def table(self) -> Friction:
        """The table of friction."""
        return Friction(self._numbers)

    @property
    def grips(self) -> Any:
        """The contacts with friction, as records."""
        return self._numbers[Friction.size :].view(Grip.dtype)

    def _make_table(self, offsets: IntArray) -> None:
        """See :class:`Integration`; with the kernels of friction, if there is any."""
        super()._make_table(offsets)
        if not self._grips:
            return
        if not self._memory.size:
            size, n = self.v.size + self.equations.equations.size, len(self._grips)
            self._memory = np.zeros(len(self.times) + 2 + size * (n + 1) + n * (n + 1))
        job = self.job
        job.soft, job.soft_floats, job.soft_memory = tables.Soft.new(), self._numbers, self._memory
        job.soft_solver, job.stop_solver = _friction.ACT, _friction.WATCH

    def _runge_kutta(self, name: str, steps: int, until: float) -> int:
        self.table.stages = float(len(TABLEAUS[name].nodes))
        status = super()._runge_kutta(name, steps, until)
        self.table.stages = 0.0
        return status

    @property
    def _first(self) -> int:
        """The number of the first stop that is a contact."""
        return len(self.equations.stops) - len(self.equations.openings)

    def _is_release(self, stop: int) -> bool:
        return self.table.event == 0.0 and super()._is_release(stop)

    def _local(self, on: list[int]) -> Local:
        """Contacts, by their numbers among the stops; all other contacts are open."""
        e = self.equations
        jacobian = e.problem.with_floats(self.floats).jacobian(self.q)[1]
        active = self.active.copy()
        for k in range(self._first, len(e.stops)):
            active[e.stop_table["equation"][k]] = 0.0
            active[self._tangents.get(k, [])] = 0.0
        rows = np.zeros((3 * len(on), self.v.size))
        for i, k in enumerate(on):
            equations = [int(e.stop_table["equation"][k]), *self._tangents.get(k, ())]
            rows[3 * i : 3 * i + len(equations)] = jacobian[e.equations[equations]]
        W = impacts.responses(e, jacobian, active, rows)
        return Local(rows, W, rows @ W, (rows @ self.v).reshape(-1, 3))

    def _push(self, local: Local, impulses: FloatArray) -> list[float]:
        """Impulses at contacts, and the energy that they take; normal speeds after them."""
        after = local.u + (local.G @ impulses.ravel()).reshape(-1, 3)
        taken = -0.5 * impulses * (local.u + after)
        self.v += local.response @ impulses.ravel()
        self.losses.append(Loss(self.time, float(taken.sum())))
        speeds: list[float] = after[:, 0].tolist()
        return speeds

    def _choose_modes(self) -> bool:
        """Let closed contacts open, slip or stick; whether there was a shock, after which they must choose again."""
        e, first = self.equations, self._first
        on = [k for k in range(first, len(e.stops)) if self.bounds["side"][k] != 0.0]
        if not on:
            return False
        modes = self.grips["mode"].copy()
        for k in on:
            self._hold(k, 0.0, FREE)
        sample = float(self.control.sample)
        status = self._begin()
        self.control.sample = sample
        if status != tables.RUNNING:
            for k in on:
                self._hold(k, 1.0, FREE)
            return False
        local = self._local(on)
        found = self._choice(on, local, self._contact_accelerations(on, local))
        if found.jammed >= 0:
            return self._jam(on, found, local)
        self._set_modes(on, found, local, modes)
        return False

    def _contact_accelerations(self, on: list[int], local: Local) -> FloatArray:
        """d/dt of the velocities u of contacts now, shape (contacts, 3)."""
        e = self.equations
        gamma = formulations.gamma(e.system, "manifold", self.q, self.v, self.floats)
        found: FloatArray = local.rows @ self._last_acceleration()
        for i, k in enumerate(on):
            equations = [int(e.stop_table["equation"][k]), *self._tangents.get(k, ())]
            found[3 * i : 3 * i + len(equations)] -= gamma[e.equations[equations]]
        return found.reshape(-1, 3)

    def _choice(self, on: list[int], local: Local, accelerations: FloatArray) -> friction.Choice:
        """What contacts do that have these accelerations without their forces."""
        rounding = LEAST_ACCELERATION * float(self.control.length)  # of rows with the factor FADED
        accelerations = np.where(np.abs(accelerations) > rounding, accelerations, 0.0)
        speeds = np.hypot(local.u[:, 1], local.u[:, 2])
        still = RESTING * max(float(self.control.length), float(np.abs(self.v).max(initial=0.0)))
        slips = np.where(speeds[:, None] > still, local.u[:, 1:] / np.maximum(speeds, 1e-300)[:, None], 0.0)
        for i, k in enumerate(on):
            slips[i] = self._begun.get(k, slips[i])
        coefficients = np.array([self.equations.openings[k - self._first].friction for k in on])
        return friction.choose(local.G, accelerations, slips, coefficients, self._least_factor)

    def advance(self, until: float, steps: int) -> int:
        """See :meth:`Integration.advance`; where forces are not unique, all contacts are examined after each step."""
        status = tables.RUNNING
        while status == tables.RUNNING and steps > 0:
            if self._is_late:
                return status
            if not (self.bounds["side"] == SHARED).any():
                return self._unjammed(super().advance(until, steps))
            mark = Mark(self.q.copy(), self.v.copy(), self.control.as_floats.copy())
            numbers, told, start = self._numbers.copy(), len(self.events), self.time
            status = self._unjammed(super().advance(until, 1))
            steps -= 1
            is_new = start - self._sought > self.control.least_step  # a change that is found twice is none
            is_going = status in (tables.RUNNING, tables.DONE) and len(self.events) == told
            if is_going and is_new and self._change() is not None:
                status = self._seek_change(mark, numbers)
                self._sought = self.time
            if status in (tables.RUNNING, tables.DONE) and self._is_undecided:
                return UNDECIDED
        return status

    def _unjammed(self, status: int) -> int:
        """After steps that ended where the friction of a slip leaves no finite force: a shock there."""
        if status not in FAILURES or self.table.is_jammed == 0.0:
            return status
        self.table.is_jammed = 0.0
        self._least_factor, shocks = friction.NEARLY_JAMMED, self._shocks
        begun = self.begin()
        self._least_factor = friction.JAMMED
        if self._shocks == shocks:
            self._note_once(
                f"friction leaves no finite force at t = {self.time:g} s (Painlevé), and no shock was found"
            )
            return status
        return begun

    def _change(self) -> tuple[dict[int, FloatArray], set[int]] | None:
        """Contacts that begin to slip, with directions, and those that open; None if there are none."""
        on = [k for k in range(self._first, len(self.equations.stops)) if self.bounds["side"][k] != 0.0]
        local = self._local(on)
        forces = np.zeros((len(on), 3))
        multipliers = self._end_multipliers()
        for i, k in enumerate(on):
            equations = [int(self.equations.stop_table["equation"][k]), *self._tangents.get(k, ())]
            forces[i, : len(equations)] = -multipliers[equations]
        free = self._contact_accelerations(on, local) - (local.G @ forces.ravel()).reshape(-1, 3)
        begun = {k: self.grips["base"][self._grips.index(k - self._first)] for k in on if self._mode(k) == SLIP}
        self._begun = {k: base.copy() for k, base in begun.items() if np.abs(base).max() > 0.0}
        found = self._choice(on, local, free)
        self._begun = {}
        self._is_undecided = self._decides(on, found, local)
        slips = {k: found.directions[i] for i, k in enumerate(on) if self._mode(k) == STICK and not found.sticks[i]}
        parted = {k for i, k in enumerate(on) if found.opens[i]}
        slips = {k: direction for k, direction in slips.items() if k not in parted}
        return (slips, parted) if slips or parted else None

    def _mode(self, k: int) -> float:
        return float(self.grips["mode"][self._grips.index(k - self._first)]) if k in self._tangents else FREE

    def _seek_change(self, mark: Mark, numbers: FloatArray) -> int:
        """After a step in which contacts slip or open that are held: back to the time at which they begin to."""
        found, start = self._change(), float(tables.Control(mark.control).time)
        low, high = 0.0, self.time - start
        span = high
        while high - low > CHANGE_STEP * span:
            middle = 0.5 * (low + high)
            if (status := self._go_to(mark, numbers, start + middle)) != tables.RUNNING:
                return status
            if (change := self._change()) is None:
                low = middle
            else:
                found, high = change if high - low > CHANGE_KNOWN * span else found, middle
        status = self._go_to(mark, numbers, start + low)
        if status != tables.RUNNING or found is None:
            return status
        slips, parted = found
        for k in parted:
            self._set_side(k, 0.0)
        self._begun, self._parted = slips, parted
        return self.begin()

    def _go_to(self, mark: Mark, numbers: FloatArray, time: float) -> int:
        """From a state to a later time, with the same contacts."""
        self.q[:], self.v[:], self.control.as_floats[:] = mark
        self._numbers[:] = numbers
        status = self._begin()
        while status == tables.RUNNING and time - self.time > self.control.least_step:
            status = self._short_step(time - self.time, time)
        return status

    def _jam(self, on: list[int], found: friction.Choice, local: Local) -> bool:
        """Friction leaves no finite force at a contact, or a force is possible beside none."""
        k = on[found.jammed]
        name = self.equations.stops[k].name
        for other in on:
            self._hold(other, 1.0, FREE)
        if found.is_indeterminate:
            self._set_side(k, 0.0)
            self._note_once(
                f"contact {name!r} is indeterminate at t = {self.time:g} s: friction lets it push or open (Painlevé); "
                "it opens"
            )
            return True
        u = local.u.copy()
        u[found.jammed, 0] -= NUDGE * float(np.abs(u).max())
        coefficients = np.array([self.equations.openings[j - self._first].friction[1] for j in on])
        impulses, _ = friction.solve_cone(local.G, u, coefficients)
        self._push(local, impulses)
        self._tell(
            k, ContactEventKind.SHOCK, float(np.hypot(*local.u[found.jammed, 1:])), float(impulses[found.jammed, 0])
        )
        self._shocks += 1
        self._note_once(
            f"contact {name!r} is inconsistent at t = {self.time:g} s: friction leaves no finite force (Painlevé); an "
            "impulse without a hit (shock) ends the slip"
        )
        return True

    def _note_once(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _hold(self, k: int, factor: float, mode: float, side: float = -1.0) -> None:
        """Whether the rows of a closed contact are equations: of the gap, and tangential ones."""
        self.active[self.equations.stop_table["equation"][k]] = factor or FADED
        self.bounds["side"][k] = side
        if k in self._tangents:
            grip = self._grips.index(k - self._first)
            self.grips["mode"][grip] = mode
            self.grips["is_shared"][grip] = float(side == SHARED)
            self.active[self._tangents[k]] = FADED if mode == SLIP else 0.0

    def _set_modes(self, on: list[int], found: friction.Choice, local: Local, before: FloatArray) -> None:
        """Write what contacts do to the tables; rows that depend on others are no equations."""
        closed = [i for i in range(len(on)) if not found.opens[i]]
        tangential = [3 * i + 1 + j for i in closed if found.sticks[i] for j in range(len(self._tangents[on[i]]))]
        inverse = 1.0 / self.equations.metric.ravel()
        carried = np.einsum("ij,j,ij->i", local.rows, inverse, local.rows)
        chosen, depend = friction.independent(local.G, carried, [3 * i for i in closed], tangential)
        self._is_undecided = depend and self._decides(on, found, local)
        for i, k in enumerate(on):
            if found.opens[i]:
                self._set_side(k, 0.0)
                continue
            has_normal = 3 * i in chosen
            slips = k in self._tangents and not found.sticks[i]
            mode = FREE if k not in self._tangents else STICK if not slips else SLIP if has_normal else FREE
            self._hold(k, float(has_normal), mode, SHARED if depend else -1.0)
            if k not in self._tangents:
                continue
            grip = self._grips.index(k - self._first)
            if mode == STICK:
                for j, equation in enumerate(self._tangents[k]):
                    self.active[equation] = float(3 * i + 1 + j in chosen)
                if before[grip] != STICK:
                    self._tell(k, ContactEventKind.ROLL if self._is_turning(k) else ContactEventKind.STICK)
            else:
                self.grips["base"][grip] = self.grips["slide"][grip] = found.directions[i]
                largest = max(local.G[3 * i + 1, 3 * i + 1], local.G[3 * i + 2, 3 * i + 2])
                self.grips["slowing"][grip] = self.grips["drag"][grip] * largest * found.forces[i, 0]
                if before[grip] == STICK:
                    self._tell(k, ContactEventKind.SLIP, float(np.hypot(*local.u[i, 1:])))

    def _decides(self, on: list[int], found: friction.Choice, local: Local) -> bool:
        """Whether shares of forces that are not unique decide how contacts slip."""
        closed = [i for i in range(len(on)) if not found.opens[i]]
        slip = [k in self._tangents and not found.sticks[i] for i, k in enumerate(on)]
        drag = np.zeros((self.v.size, len(closed)))
        for j, i in enumerate(closed):
            if slip[i]:
                mu = self.equations.openings[on[i] - self._first].friction[1]
                drag[:, j] = mu * local.response[:, 3 * i + 1 : 3 * i + 3] @ found.directions[i]
        drag *= np.sqrt(self.equations.metric.ravel())[:, None]
        normals = [3 * i for i in closed]
        return bool(drag.any()) and friction.decides(local.G[np.ix_(normals, normals)], drag)

    def _is_turning(self, k: int) -> bool:
        """Whether the bodies of a contact turn relative to each other."""
        system = self.equations.system
        poses = self.q[: layout.POSE * len(system.names)].reshape(-1, layout.POSE)
        spins = euler.rotate(poses[:, 3:], self.v.reshape(-1, tables.WIDTH)[:, 3:])
        bodies = system.index.contacts[self.equations.stops[k].name].bodies
        a, b = [spins[system.index[body]] if body in system.index else np.zeros(3) for body in bodies]
        return bool(np.linalg.norm(a - b) > TURNING)

    def _release_one(self) -> bool:
        """See :class:`Integration`; shares of forces that are not unique do not release a contact."""
        shared = self.bounds["side"] == SHARED
        gaps = self.bounds["gap"].copy()
        self.bounds["gap"][shared] = -np.inf
        released = super()._release_one()
        self.bounds["gap"][shared] = gaps[shared]
        return released

    def _set_side(self, stop: int, side: float) -> None:
        if stop < self._first:
            super()._set_side(stop, side)
            return
        self._hold(stop, 1.0 if side else 0.0, FREE, side)
        self._tell(stop, ContactEventKind.CLOSING if side else ContactEventKind.OPENING)

    def _tell(self, stop: int, kind: ContactEventKind, speed: float = 0.0, impulse: float = 0.0) -> None:
        self.events.append(ContactEvent(self.time, self.equations.stops[stop].name, kind, speed, impulse))


def _tangents(e: Equations) -> dict[int, list[int]]:
    """By the number of its stop, the tangential equations of each contact with friction."""
    first = len(e.stops) - len(e.openings)
    numbers = {int(row): k for k, row in enumerate(e.equations)}
    rows = {row.constraint: row for row in e.system.rows}
    found = {}
    for k, one in enumerate(e.openings):
        if (row := rows.get(f"{one.name}{ROLLING}")) is not None:
            found[first + k] = [numbers[row.start + i] for i in range(row.primitive.rows)]
    return found


def pair(direction: FloatArray) -> FloatArray:
    """A direction as two numbers."""
    return np.append(direction, 0.0)[:2]
