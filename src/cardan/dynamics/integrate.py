"""Integration in time: a run of Adams' or a Runge–Kutta method, which can be stopped and continued."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.constraints.signal import UndefinedError
from cardan.dynamics import tables
from cardan.dynamics.contact_events import ContactEvent
from cardan.dynamics.equations import Equations
from cardan.dynamics.limit_conflicts import Push, find_push, is_contradicted
from cardan.dynamics.tables import HISTORY, RULES, WIDTH, Control, Driver, MotionJob, Rule, Weights, Work
from cardan.lazy import LazyModule
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

_adams = LazyModule("cardan.dynamics._adams")
_feedback = LazyModule("cardan.dynamics._feedback")
_instant = LazyModule("cardan.dynamics._instant")
_stops = LazyModule("cardan.dynamics._stops")
_runge_kutta = LazyModule("cardan.dynamics._runge_kutta")
_blocks = LazyModule("cardan.solvers._blocks")

FIXED_ORDER: Final = 4  # accelerations that a predictor of constant step reads
VARIABLE_ORDER: Final = 5
FIRST_STEP: Final = 0.1  # first step of variable ones, times √(rtol/acceleration)
MOST_FIRST_STEP: Final = 1e-3  # of the duration
MOST_STEP: Final = 1e-2  # of the duration, where none is given
MOST_SMOOTH_STEP: Final = 0.1  # the same without limits, loads and functions of time, which may change within a step
MOST_TURN: Final = 0.5  # rad of a body in a step, where stops could be passed and left within it
MOST_EVENTS: Final = 20  # at one time, besides two per stop: a driver pushes against a stop
LEAST_STEP: Final = 1e-13  # of the duration
LIGHT: Final = 1e-4  # of the largest mass: lighter bodies need more iterations of the linear algebra
LEAST_EPSILON: Final = 1e-14  # of their ε
EXACT: Final = 3e-7  # the square of a smaller shift onto the constraints is rounding: J need not be evaluated again
STAGE_EXACT: Final = 1e-12  # for the stages of Runge–Kutta methods, which use J at their pose
REACHED: Final = 1e-9  # relative to the extent, or in radians: a stop that is this near is reached
RESTING: Final = 1e-9  # per second, likewise: a coordinate that leaves a stop more slowly rests at it
ESTIMATE: Final = 0.5  # of rtol: what the estimated error of a step may be
SAME_TIME: Final = 1e-9  # of a step: an output this near to its end is there
STABILIZATIONS: Final = ("projection", "none", "baumgarte")  # in the order of tables
BAUMGARTE_GAIN: Final = 0.1  # α of Baumgarte's terms, times the step: residuals decay within some ten steps
AHEAD: Final = 4096  # values of drivers that are computed at once
LEAST_AHEAD: Final = 64  # times at which they are computed, if there are many drivers
MOST_STAGES: Final = 7
DETOURS: Final = (1.0, 0.7, 0.5, 0.35)  # factors on the first step of a run that goes round a singular pose
LEAST_ACCELERATION: Final = 1e-30  # in extents per s², or rad/s²: against division by zero


class Tableau(NamedTuple):
    """An explicit Runge–Kutta method: rows of the lower triangle, the weights last, the nodes, and the weights less
    those of the method that estimates the error, which also uses the acceleration at the end of the step."""

    rows: tuple[tuple[float, ...], ...]
    nodes: tuple[float, ...]
    error: tuple[float, ...]


TABLEAUS: Final = {
    "rk4": Tableau(
        ((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
        (0.0, 1 / 2, 1 / 2, 1.0),
        (0.0, 0.0, 0.0, 1 / 6, -1 / 6),
    ),
    # [DormandPrince1980]
    "dopri5": Tableau(
        (
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
            (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        ),
        (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
        (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    ),
}
SOON: Final = 1e-9  # of the duration: after a failure, drivers that push within it are looked for
FAILURES: Final = (tables.NOT_FINITE, tables.NOT_CLOSED)
RETRIES: Final = 4  # of a variable step in which a contact is lost, before its end is looked for
RETRIED: Final = 0.25  # of the last step: the next retry
MOST_SHORT: Final = 1000  # steps to the end of a contact: a bisection takes some tens
START: Final = "dopri5"  # the method that gives the first accelerations of constant steps
TRIANGLES: Final = {name: [value for row in method.rows for value in row] for name, method in TABLEAUS.items()}
_ACCELERATIONS: Final = Work.pieces["accelerations"]


class Event(NamedTuple):
    """A limit that was reached or left, or a contact that ended, at a time [s]."""

    time: float
    limit: str  # its name, or that of the contact
    what: str  # "reached", "left", or "contact ended"


class Mark(NamedTuple):
    """A state of a run, from which it can be begun again."""

    q: FloatArray
    v: FloatArray
    control: FloatArray


class Settings(NamedTuple):
    """Method and steps of a run; ``max_step`` [s]: of steps chosen by ``rtol``."""

    method: str = "adams"
    step: float | None = None
    rtol: float | None = None
    max_step: float | None = None
    stabilization: str = "projection"
    gain: float | None = None


VARIABLE_STEPS: Final = Settings()


class Integration:
    """A run from one state on: tables, workspace and history.  Threads must not share it.

    ``q``, ``v``: pose and velocity now, in the coordinates of the solvers.  ``results``, shape (samples, columns):
    time, q, v, v̇, λ at each of ``times``, as far as they are reached.
    """

    def __init__(
        self,
        equations: Equations,
        q: FloatArray,
        v: FloatArray,
        time: float,
        times: FloatArray,
        *,
        end: float,
        settings: Settings = VARIABLE_STEPS,
    ) -> None:
        """time, end [s]: of the run.  times [s]: of the outputs."""
        e = equations
        method, step, rtol, max_step, stabilization, gain = settings
        self.equations, self.method, self.first = e, method, time
        self.times: FloatArray = np.ascontiguousarray(times, dtype=np.float64)
        self.q, self.v = q.copy(), v.copy()
        n, n6 = e.equations.size, WIDTH * len(e.system.names)
        self.floats = np.append(e.problem.floats, 0.0) if e.openings else e.problem.floats.copy()
        drivers = e.drivers.size // 2 + e.timed.size
        self._ahead = max(LEAST_AHEAD, AHEAD // max(1, drivers))
        self.drive: FloatArray = np.zeros((max(1, self._ahead * drivers), 3))  # Jets
        self.extra: FloatArray = np.zeros(n6)
        self.active: FloatArray = np.ones(n)
        self.active[e.stop_table["equation"]] = 0.0
        self.bounds = e.bounds.copy()
        for stop, bound in zip(e.stop_table, self.bounds, strict=True):
            if bound["lower"] == bound["upper"]:  # not a stop, but an equation that always holds
                self.active[stop["equation"]], self.floats[stop["place"]] = 1.0, bound["lower"]
                bound["lower"], bound["upper"] = -np.inf, np.inf
        self.results: FloatArray = np.empty((len(self.times), e.columns))
        weights = e.masses[:, 0]
        is_light = weights.min(initial=np.inf) < LIGHT * weights.max(initial=0.0) or e.is_massless
        apart = (self.times - time) / (step or 1.0)
        on_steps = bool((np.abs(apart - np.round(apart))[:-1] < SAME_TIME).all())
        self._foresees = method == "adams" and step is not None and on_steps and not e.stops
        self._span = span = end - time
        is_smooth = not e.stops and e.forces is None and not drivers
        self.control = Control.new(
            time=time,
            rtol=ESTIMATE * (rtol or 0.0),
            order=VARIABLE_ORDER if rtol else FIXED_ORDER,
            length=e.system.unit,
            least_epsilon=LEAST_EPSILON if is_light else 0.0,
            samples=len(self.times),
            least_step=LEAST_STEP * span,
            exact=EXACT,
            most_step=max_step or (MOST_SMOOTH_STEP if is_smooth else MOST_STEP) * span,
            stabilization=STABILIZATIONS.index(stabilization),
            gain=gain or (BAUMGARTE_GAIN / step if step else 0.0),
            most_turn=MOST_TURN if e.stops and any([not stop.is_turn for stop in e.stops]) else np.inf,
            turn_step=np.inf,
            compliant=float(len(e.inertias) + len(e.frictions)),
        )
        self.deadline = np.inf  # of the clock [s]: advance() returns soon after it
        self._has_feedback = stabilization == "baumgarte"
        self.step = step or span
        self.events: list[Event | ContactEvent] = []
        self.push: Push | None = None  # what ended the run at a stop
        self._tried: FloatArray | None = None  # a row of the results: where steps are bisected
        self._returns = bool(rtol) and is_smooth  # to a mark, if no step meets rtol
        self._marks: list[Mark] = []  # where the last two calls of advance() began
        if e.offsets is None:
            e.offsets = self._offsets()
        self.work: FloatArray = np.zeros(e.offsets[-1])
        self._make_table(e.offsets)

    def _offsets(self) -> IntArray:
        """Offsets of the pieces of the workspace, and of their end; they depend on the equations alone."""
        e = self.equations
        rows, _, entries, coordinates, evaluation = e.problem.sizes
        n, n6 = e.equations.size, WIDTH * len(e.system.names)
        offsets: IntArray = Work.plan(
            evaluation=max(evaluation, e.forces.work if e.forces else 0),
            values=2 * rows,
            jacobian=entries,
            matrix=e.algebra.work,
            x=n6 + n,
            scratch=n6 + 2 * n,
            new_v=n6,
            new_q=coordinates,
            moved_q=coordinates,
            shift=n6,
            new_a=n6,
            multipliers=n,
            weights=Weights.size + RULES * Rule.size,
            accelerations=HISTORY * n6,
            node_times=HISTORY,
            stages=(2 * MOST_STAGES + 1) * n6,
            tableau=MOST_STAGES * (MOST_STAGES + 1) // 2,
            stage_nodes=MOST_STAGES,
            error_weights=MOST_STAGES + 1,
            old_q=coordinates,
            old_v=n6,
            end_multipliers=n,
            scales=n,
            pose_scales=e.poses.equations.size if e.poses else 0,
            pose_matrix=e.poses.algebra.work if e.poses else 0,
            compliances=n if e.compliances.any() else 0,
            pose_compliances=e.poses.equations.size if e.poses and e.compliances.any() else 0,
            drift=rows + e.timed.size if e.timed.size else 0,
            rest=n6 if e.timed.size else 0,
            passes=3 * n6 + n if e.is_massless else 0,
        )
        return offsets

    def _make_table(self, offsets: IntArray) -> None:
        """The job: addresses of arrays, which stay alive with it, sizes, and offsets."""
        e, p = self.equations, self.equations.problem
        poses = e.poses.algebra if e.poses is not None else None
        self.job = job = MotionJob.new(
            open=offsets.size,
            evaluator=p.evaluate,
            ints=p.ints,
            floats=self.floats,
            structure=p.structure,
            scales=p.scales,
            algebra=e.algebra.address,
            pattern=e.algebra.pattern,
            mass_memory=self._mass_values,
            mass_pieces=e.mass_pieces,
            drivers=e.drivers,
            drive=self.drive.reshape(-1),
            times=self.times,
            extra=self.extra,
            active=self.active,
            compliances=e.compliances,
            stops=e.stop_table,
            bounds=self.bounds,
            guards=e.guards,
            guard_count=e.guards.size,
            feedback=_feedback.ADD if self._has_feedback else 0,
            instant=_instant.INSTANT,
            stop_solver=_stops.STOPS if e.stops else 0,
            pose_algebra=poses.address if poses else e.algebra.address,
            pose_pattern=poses.pattern if poses else e.algebra.pattern,
            pose_equations=e.poses.equations if e.poses else None,
            bodies=len(e.system.names),
            coordinates=e.coordinates,
            rows=p.rows,
            equations=e.equations.size,
            driven=e.drivers.size // Driver.size,
            stop_count=len(e.stops),
            rated=e.equations.size - e.poses.equations.size if e.poses else 0,
            timed=e.timed.size,
            timed_places=e.timed,
            massless=int(self._is_singular),
            pieces=offsets,
        )
        if e.forces is not None:
            job.loads, job.load_table, job.load_floats = e.forces.address, e.forces.table, e.forces.floats
            job.asks = int(e.forces.asks)
        self._pieces = Work(job.pieces, self.work)
        first, second, end = offsets[_ACCELERATIONS : _ACCELERATIONS + 3]  # faster than by their names
        self.accelerations: FloatArray = self.work[first:second].reshape(HISTORY, -1)  # a ring
        self.node_times: FloatArray = self.work[second:end]

    @property
    def _mass_values(self) -> FloatArray:
        """M, and the roots of masses."""
        return self.equations.values

    @property
    def _is_singular(self) -> bool:
        """Whether M is singular, so that solutions are repeated until pseudo-masses have no effect."""
        return self.equations.is_massless

    def __getstate__(self) -> dict[str, Any]:
        remade = ("job", "_pieces", "accelerations", "node_times")
        return {key: value for key, value in self.__dict__.items() if key not in remade}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_table(self._offsets())

    @property
    def time(self) -> float:
        """Time reached [s]."""
        return float(self.control.time)

    @property
    def reached(self) -> int:
        """Number of results so far."""
        return int(self.control.sample)

    @property
    def had_hits(self) -> bool:
        """Whether impulses of hits have changed the velocity, which so differs from that given."""
        return False

    @property
    def turns_far(self) -> bool:
        """Whether a constant step would turn a body so far that it could pass a stop and return."""
        return bool(self.control.rtol == 0.0 and self.step > self.control.turn_step)

    def begin(self, released: int = -1) -> int:
        """Start, or restart after an event: find the stops that hold, project pose and velocity, compute accelerations.

        First all stops hold that are reached, and that the drivers do not move away from; the velocity towards them
        becomes zero (inelastic impact).  Then
        those that would pull are released one by one.  Returns the status of the kernel, RUNNING if it succeeded, or
        LOCKED if drivers push against stops.
        released: the stop that has just been released.
        """
        sample = float(self.control.sample)
        status = self._begin()
        if status != tables.RUNNING or not self._reach_stops(released):
            return status
        self.control.sample = sample  # an output at this time is that with the stops
        before = Mark(self.q.copy(), self.v.copy(), self.control.as_floats.copy())
        for _ in range(1 + len(self.equations.stops)):
            self.control.sample = sample
            status = self._begin()
            if self._is_pushed(status, before):
                return tables.LOCKED
            if status != tables.RUNNING or not self._release_one():
                return status
        return status

    def _begin(self) -> int:
        c = self.control
        begun = {"phase": tables.BEGIN, "known": 0.0, "head": 0.0, "hold": 0.0, "fresh": 1.0}
        c.write(**begun, stage=0.0, event=0.0, high=0.0, whole=0.0, step=self.step, chunk=0.0)
        status = self._call(_adams.ADVANCE, 0)
        now = Control.read(c.as_floats)
        if status == tables.RUNNING and now.rtol > 0.0:
            a = np.abs(self._last_acceleration().reshape(-1, 2, 3)).max(axis=(0, 2), initial=0.0)
            largest = max(a[0] / now.length, a[1], LEAST_ACCELERATION)
            first = FIRST_STEP * float(np.sqrt(now.rtol / largest))
            c.step = min(first, MOST_FIRST_STEP * self.step, now.most_step, now.turn_step)
        return status

    def _is_pushed(self, status: int, before: Mark, soon: float = 0.0) -> bool:
        """Whether drivers push against the stops that hold; then the run is back at a state, with these stops released.

        status: of the kernel.  soon [s]: the rates of the drivers are those of a later time.
        """
        system = self.equations.system
        if not (system.signals or system.timed) or (status == tables.RUNNING and not is_contradicted(self)):
            return False
        self.push = find_push(self, before.q, float(Control(before.control).time) + soon)
        if self.push is None:
            return False
        self.q[:], self.v[:], self.control.as_floats[:] = before
        for stop in self.push.stops:
            self.active[self.equations.stop_table["equation"][stop]] = 0.0
        if self._begin() == tables.RUNNING:
            self._keep_tried()
        return True

    def end_here(self) -> None:
        """Add the last state from which a step was tried to the results, although it is not at an output time."""
        if self._tried is None and self.begin() == tables.RUNNING:
            self._keep_tried()
        last = float(self.results[self.reached - 1, 0]) if self.reached else -np.inf
        if self._tried is not None and self._tried[0] > last:
            self.results = np.vstack([self.results[: self.reached], self._tried, self.results[self.reached + 1 :]])
            self.control.sample += 1.0

    def _keep_tried(self) -> None:
        """The state now, after begin(), as a row of the results."""
        self._tried = self.last_row()

    def last_row(self) -> FloatArray:
        """The state at the end of the last step, as a row of the results."""
        return np.concatenate([[self.time], self.q, self.v, self._last_acceleration(), self._end_multipliers()])

    def _end_multipliers(self) -> FloatArray:
        """λ at the end of the last step."""
        multipliers: FloatArray = self._pieces.end_multipliers
        return multipliers

    def _reach_stops(self, released: int) -> bool:
        """Let every stop hold that is reached, and from which the velocity does not lead away; whether there is one."""
        if not self.equations.stops:
            return False
        values, rates = self._stop_coordinates()
        for k, (value, rate) in enumerate(zip(values, rates, strict=True)):
            lower, upper, weight, side, *_ = self.bounds[k].item()
            if side == 0.0 and k != released:
                for bound, sign in ((lower, -1.0), (upper, 1.0)):
                    if weight * sign * (value - bound) > -REACHED and weight * sign * rate > -RESTING:
                        self._set_side(k, sign)
        return bool(self.bounds["side"].any())

    def _release_one(self) -> bool:
        """Release the stop that pulls most, if any does; whether there was one."""
        pushes = -self.bounds["gap"] * (self.bounds["side"] != 0.0)
        strongest = float(np.abs(self._end_multipliers()).max(initial=0.0))
        pulling = np.flatnonzero(pushes < -_stops.NEUTRAL * strongest)
        if pulling.size:
            self._set_side(int(pulling[np.argmin(pushes[pulling])]), 0.0)
        return bool(pulling.size)

    def _set_side(self, stop: int, side: float) -> None:
        """Let a stop hold its lower (−1) or upper (+1) bound, or none (0)."""
        equation, _, place = self.equations.stop_table[stop].item()
        self.bounds["side"][stop] = side
        self.active[equation] = 1.0 if side else 0.0
        bound = self.bounds["lower" if side < 0.0 else "upper"][stop]
        self.floats[place] = bound if side else 0.0
        what = "reached" if side else "left"
        self.events.append(Event(self.time, self.equations.stops[stop].name, what))

    def _stop_coordinates(self) -> tuple[FloatArray, FloatArray]:
        """Coordinates of the stops and their rates, shape (stops,) each."""
        problem = self.equations.problem.with_floats(self.floats)
        values, jacobian = problem.jacobian(self.q)
        rows = self.equations.stop_table["row"]
        return values[rows] + self.floats[self.equations.stop_table["place"]], jacobian[rows] @ self.v

    def advance(self, until: float, steps: int) -> int:
        """At most that many steps towards a time; returns the status of the kernel."""
        c = self.control
        while True:
            redundant = float(c.redundant)
            if self._returns:
                self._marks = [*self._marks[-1:], Mark(self.q.copy(), self.v.copy(), c.as_floats.copy())]
            status = self._steps(until, steps)
            if status == tables.STEP_TOO_SMALL and self._returns:
                status = self._go_round(until, steps)
            if status in FAILURES and self.equations.system.contacts:
                status = self._retry(until, steps, status, redundant)
            if status in FAILURES and self.equations.system.contacts:
                status = self._approach_end(until, status, redundant)
                steps -= 1
                if status == tables.RUNNING:
                    self._tried = None
                    return status  # the caller looks at the clock: these steps may be many
            if status != tables.EVENT_REACHED:
                return self._ended(status)
            k = int(c.event) - 1
            is_released = self._is_release(k)
            if is_released:
                self._set_side(k, 0.0)
            status = self.begin(k if is_released else -1)
            most = MOST_EVENTS + 2 * len(self.equations.stops)
            if len(self.events) > most and self.time - self.events[-most].time <= c.least_step:
                return tables.LOCKED
            steps -= 1
            if status != tables.RUNNING or steps <= 0 or self._is_late:
                return status

    @property
    def _is_late(self) -> bool:
        """Whether the caller shall look at the clock, although steps are left: many of them may be of Python."""
        return clock.perf_counter() > self.deadline

    def _is_release(self, stop: int) -> bool:
        """Whether the event of a stop is the end of its push."""
        return bool(self.bounds["side"][stop] != 0.0)

    def _ended(self, status: int) -> int:
        """The status of the kernel, or LOCKED after a failure because drivers begin to push against stops."""
        if status in (*FAILURES, tables.STEP_TOO_SMALL) and self.bounds["side"].any():
            now = Mark(self.q.copy(), self.v.copy(), self.control.as_floats.copy())
            if not self.equations.system.contacts and self._is_pushed(status, now, SOON * self._span):
                return tables.LOCKED
        return status

    def _go_round(self, until: float, steps: int) -> int:
        """After steps that became too small, because one of them ended very near to a singular pose: other steps.

        Smooth motions pass such poses if no step ends where rounding over σ² exceeds rtol.
        """
        c, taken = self.control, float(self.control.taken)
        failed = Mark(self.q.copy(), self.v.copy(), c.as_floats.copy())
        for mark in reversed(self._marks):
            for factor in DETOURS:
                self.q[:], self.v[:], c.as_floats[:] = mark
                c.refused += taken - c.taken
                status = self.begin()
                c.step *= factor
                if status == tables.RUNNING:
                    status = self._steps(until, steps)
                if status != tables.STEP_TOO_SMALL:
                    return status
        self.q[:], self.v[:], c.as_floats[:] = failed
        return tables.STEP_TOO_SMALL

    def _retry(self, until: float, steps: int, failure: int, redundant: float) -> int:
        """After a variable step in which a contact was lost, as it may be where a body turns far: shorter steps.

        Their errors do not tell that, since the accelerations of a ball that rolls down a slope are constant.
        redundant: the value of REDUNDANT before the failure.  Returns the status of the kernel.
        """
        c, status, left, start = self.control, failure, RETRIES, self.time
        while status in FAILURES and c.rtol > 0.0 and c.phase in (tables.CORRECT, tables.ACCEPT):
            if self.time > start:
                left, start = RETRIES, self.time
            if left == 0 or c.known == 0.0 or RETRIED * c.step < c.least_step:
                break
            left -= 1
            c.redundant, c.drive_at, c.phase = redundant, c.drive_count, tables.PREDICT
            c.step *= RETRIED
            c.refused += 1.0
            c.hold, c.fresh = 0.0, 1.0
            status = tables.RUNNING if self._is_late else self._steps(until, steps)
        return status

    def _go_back(self) -> float:
        """After an output that failed within the last step: back to the state before this step; its length [s]."""
        c = self.control
        start = float(self.node_times[(int(c.head) + 1) % HISTORY])
        self.q[:], self.v[:] = self._pieces.old_q, self._pieces.old_v
        h, c.time = self.time - start, start
        return h

    def _approach_end(self, until: float, failure: int, redundant: float) -> int:
        """After a step that failed, because a contact may end within it: shorter ones, by bisection.

        Steps become longer again where several of them succeed, because not every failure is an end.
        Returns the failure if a contact ends, at the time now; RUNNING if the end of the step was reached, or after
        MOST_SHORT steps.
        redundant: the value of REDUNDANT before the failure.
        """
        c = self.control
        h = self._go_back() if c.phase == tables.OUTPUT else min(float(c.step), until - self.time)
        end, longest, left = self.time + h, h, MOST_SHORT
        begun: Mark | None = None
        while (h := 0.5 * h) >= c.least_step:
            status, taken = tables.RUNNING, 0
            while status == tables.RUNNING:
                c.redundant, c.drive_at = redundant, c.drive_count
                status = self.begin()
                if status in FAILURES and begun is not None:  # the contact ends before the last step does
                    self.q[:], self.v[:], c.as_floats[:] = begun
                    break
                if status != tables.RUNNING or end - self.time <= c.least_step or left == 0:
                    return status
                left -= 1
                self._keep_tried()
                begun = Mark(self.q.copy(), self.v.copy(), c.as_floats.copy())
                status = self._short_step(h, end)
                taken += 1
                if taken > 2:
                    h = min(2.0 * h, longest)
            if status == tables.EVENT_REACHED:
                return status
        return failure

    def _short_step(self, h: float, end: float) -> int:
        """One step of h [s], or to a time if that is nearer; returns RUNNING, an event, or a failure."""
        whole, self.step = self.step, h
        status = self._runge_kutta(START, 1, end)
        self.step = whole
        return tables.RUNNING if status == tables.DONE else status

    def _steps(self, until: float, steps: int) -> int:
        """Steps until an event, or until there are enough of them."""
        c = self.control
        if self.method != "adams":
            return self._runge_kutta(self.method, steps, until)
        if c.rtol == 0.0 and c.known < FIXED_ORDER:
            while c.known < FIXED_ORDER:
                if steps <= 0 or self.turns_far:
                    return tables.RUNNING
                status = self._runge_kutta(START, 1, until)
                steps -= 1
                if status != tables.RUNNING:
                    return status
            c.base, c.count, c.step = c.time, 0.0, self.step
            c.fresh, c.uneven = 1.0, FIXED_ORDER
        c.write(end=until, chunk=steps)
        return self._call(_adams.ADVANCE, 0)

    def _runge_kutta(self, name: str, steps: int, until: float) -> int:
        """Steps that end at every output, because these methods do not interpolate within a step."""
        tableau, c, stages = TABLEAUS[name], self.control, len(TABLEAUS[name].nodes)
        self._pieces.tableau[: len(TRIANGLES[name])] = TRIANGLES[name]
        self._pieces.stage_nodes[:stages] = tableau.nodes
        self._pieces.error_weights[: stages + 1] = tableau.error
        c.exact, c.chunk = STAGE_EXACT, steps
        while c.chunk > 0.0:
            c.step, c.base, c.count = self.step, c.time, 0.0
            ahead = self.times[self.reached] if self.reached < len(self.times) else until
            c.end = min(ahead, until)
            status = self._call(_runge_kutta.ADVANCE, stages)
            if status != tables.DONE or c.end == until:
                break
            status = tables.RUNNING
        c.exact = EXACT
        return status

    def _call(self, address: int, op: int) -> int:
        """Call a kernel until it needs no more values of drivers or loads; returns its status."""
        records = self.job.as_ints, self.control.as_floats
        results = self.results.reshape(-1)
        arguments = (*records, self.q, self.v, results, results, self.work)
        while True:
            status = int(_blocks.call_at(address, op, *arguments))
            if status == tables.ASK_DRIVERS:
                self._fill_drivers()
            elif status == tables.ASK_LOADS:
                self._fill_extra()
            else:
                return status

    def _fill_extra(self) -> None:
        """Forces of the loads that Python calls, at the pose and velocity that the kernel asks for."""
        assert self.equations.forces is not None
        self.equations.forces.extra(*self._asked_state(), self.extra)

    def undefined_loads(self) -> list[str]:
        """Names of the loads that have no finite force at the pose and velocity that were evaluated last."""
        return self.equations.forces.undefined(*self._asked_state()) if self.equations.forces else []

    @property
    def tried_pose(self) -> FloatArray:
        """The pose that was evaluated last, in the coordinates of the solvers."""
        return self._asked_state()[1]

    def _asked_state(self) -> tuple[float, FloatArray, FloatArray]:
        """Time, pose and velocity of an evaluation."""
        return float(self.control.ask_time), self._pieces.new_q, self._pieces.new_v

    def _fill_drivers(self) -> None:
        """Value, rate and acceleration of every driver at the times of :meth:`_asked`."""
        c = self.control
        times = self._asked()
        system = self.equations.system
        functions = [signal for _, signal in system.signals] + [function for _, _, function in system.timed]
        try:
            values = [function.jets(times) for function in functions]
        except UndefinedError:
            if len(times) == 1:
                raise
            times = times[: _defined(functions, times)]  # the others may never be needed
            values = [function.jets(times) for function in functions]
        table = self.drive[: len(functions) * len(times)].reshape(len(times), -1, 3)
        for k, value in enumerate(values):
            table[:, k] = value
        c.drive_at, c.drive_count = 0.0, float(len(times))

    def _asked(self) -> FloatArray:
        """The time that the kernel asks for; also the next ones if steps are constant and end at all outputs."""
        c = self.control
        if not self._foresees or c.phase == tables.BEGIN:
            return np.array([c.ask_time])
        if c.known < FIXED_ORDER:  # the stages of a first step
            nodes = TABLEAUS[START].nodes
            stages = [c.time + node * c.step for node in nodes[int(c.stage) :]]
            return np.array([*stages, c.step_end])
        last, step, base, count = c.end, c.step, c.base, c.count
        times = base + (count + 1.0 + np.arange(self._ahead)) * step
        ahead: FloatArray = np.append(times[times < last - SAME_TIME * step], last)[: self._ahead]
        return ahead

    def _last_acceleration(self) -> FloatArray:
        found: FloatArray = self.accelerations[int(self.control.head)]
        return found


def _defined(functions: Sequence[Any], times: FloatArray) -> int:
    """At how many of the times all functions are defined before the first at which one is not; at least one."""
    for k, time in enumerate(times.tolist()[1:], start=1):
        try:
            for function in functions:
                function.jet(time)
        except UndefinedError:
            return k
    return len(times)
