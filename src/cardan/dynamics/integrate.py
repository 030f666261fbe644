"""Integration in time: a run of Adams' or a Runge–Kutta method, which can be stopped and continued."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.dynamics import abi
from cardan.dynamics.abi import WIDTH
from cardan.dynamics.equations import Equations
from cardan.dynamics.pushes import Push, find_push, is_contradicted
from cardan.lazy import LazyModule
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

_equations = LazyModule("cardan.dynamics._equations")
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
STABILIZATIONS: Final = ("projection", "none", "baumgarte")  # in the order of abi
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
FAILURES: Final = (abi.NOT_FINITE, abi.NOT_CLOSED)
RETRIES: Final = 4  # of a variable step in which a contact is lost, before its end is looked for
RETRIED: Final = 0.25  # of the last step: the next retry
MOST_SHORT: Final = 1000  # steps to the end of a contact: a bisection takes some tens
START: Final = "dopri5"  # the method that gives the first accelerations of constant steps
TABLEAU_SIZE: Final = 64  # floats
TABLEAU_VALUES: Final = {  # as the kernel reads them
    name: np.array([*(value for row in tableau.rows for value in row), *tableau.nodes, *tableau.error])
    for name, tableau in TABLEAUS.items()
}


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
        method: str = "adams",
        step: float | None = None,
        rtol: float | None = None,
        max_step: float | None = None,
        stabilization: str = "projection",
        gain: float | None = None,
    ) -> None:
        """time, end [s]: of the run.  times [s]: of the outputs.  max_step [s]: of steps chosen by rtol."""
        e = equations
        self.equations, self.method, self.first = e, method, time
        self.times: FloatArray = np.ascontiguousarray(times, dtype=np.float64)
        self.q, self.v = q.copy(), v.copy()
        n, n6 = e.equations.size, WIDTH * len(e.system.names)
        self.floats = e.problem.floats.copy()
        drivers = e.drivers.size // 2 + e.timed.size
        self._ahead = max(LEAST_AHEAD, AHEAD // max(1, drivers))
        self.drive: FloatArray = np.zeros(max(1, 3 * self._ahead * drivers))
        self.extra: FloatArray = np.zeros(n6)
        self.active: FloatArray = np.ones(n)
        self.active[e.stop_table[:, abi.STOP_EQUATION]] = 0.0
        self.bounds = e.bounds.copy()
        for (equation, _, place), bounds in zip(e.stop_table, self.bounds, strict=True):
            if bounds[abi.LOWER] == bounds[abi.UPPER]:  # not a stop, but an equation that always holds
                self.active[equation], self.floats[place] = 1.0, bounds[abi.LOWER]
                bounds[abi.LOWER], bounds[abi.UPPER] = -np.inf, np.inf
        self.history: FloatArray = np.zeros(abi.HISTORY * (n6 + 1) + TABLEAU_SIZE)
        self.results: FloatArray = np.empty((len(self.times), e.columns))
        self.control = c = np.zeros(abi.CONTROL)
        c[abi.LENGTH] = e.system.judged_length
        c[abi.EXACT] = EXACT
        weights = e.masses[:, 0]
        if weights.min(initial=np.inf) < LIGHT * weights.max(initial=0.0):
            c[abi.LEAST_EPSILON] = LEAST_EPSILON
        c[abi.STABILIZATION] = STABILIZATIONS.index(stabilization)
        c[abi.GAIN] = gain or (BAUMGARTE_GAIN / step if step else 0.0)
        c[abi.TIME] = time
        c[abi.SAMPLES] = len(self.times)
        c[abi.RTOL] = ESTIMATE * (rtol or 0.0)
        apart = (self.times - time) / (step or 1.0)
        on_steps = bool((np.abs(apart - np.round(apart))[:-1] < SAME_TIME).all())
        self._foresees = method == "adams" and step is not None and on_steps and not e.stops
        self._span = span = end - time
        c[abi.LEAST_STEP] = LEAST_STEP * span
        is_smooth = not e.stops and e.forces is None and not drivers
        c[abi.MOST_STEP] = max_step or (MOST_SMOOTH_STEP if is_smooth else MOST_STEP) * span
        c[abi.MOST_TURN] = MOST_TURN if any(not stop.is_turn for stop in e.stops) else np.inf
        c[abi.TURN_STEP] = np.inf
        c[abi.ORDER] = VARIABLE_ORDER if rtol else FIXED_ORDER
        self.step = step or span
        self.events: list[Event] = []
        self.push: Push | None = None  # what ended the run at a stop
        self._tried: FloatArray | None = None  # a row of the results: where steps are bisected
        self._returns = bool(rtol) and is_smooth  # to a mark, if no step meets rtol
        self._marks: list[Mark] = []  # where the last two calls of advance() began
        if not e.offsets:
            e.offsets = self._offsets()
        self.work: FloatArray = np.zeros(e.offsets[-1])
        self._make_table(e.offsets)

    def _offsets(self) -> list[int]:
        """First floats of the pieces of the workspace, and their end; they depend on the equations alone."""
        e, w = self.equations, _equations
        rows, _, entries, coordinates, evaluation = e.problem.sizes
        evaluation = max(evaluation, e.forces.work if e.forces else 0)
        n, n6 = e.equations.size, WIDTH * len(e.system.names)
        sizes = {
            w.EVALUATION: evaluation,
            w.VALUES: 2 * rows,
            w.JACOBIAN: entries,
            w.MATRIX: e.matrix,
            w.X: n6 + n,
            w.SCRATCH: n6 + 2 * n,
            w.NEW_V: n6,
            w.NEW_Q: coordinates,
            w.MOVED_Q: coordinates,
            w.SHIFT: n6,
            w.NEW_A: n6,
            w.MULTIPLIERS: n,
            w.WEIGHTS: _adams.WEIGHTS_SIZE,
            w.STAGES: (2 * MOST_STAGES + 1) * n6,
            w.OLD_Q: coordinates,
            w.OLD_V: n6,
            w.END_MULTIPLIERS: n,
            w.SCALES: n,
            w.POSE_SCALES: e.poses.equations.size if e.poses else 0,
            w.POSE_MATRIX: e.poses.algebra.matrix if e.poses else 0,
            w.DRIFT: rows + e.timed.size if e.timed.size else 0,
            w.REST: n6 if e.timed.size else 0,
        }
        return [0, *accumulate(sizes[k] for k in range(len(sizes)))]

    def _make_table(self, offsets: list[int]) -> None:
        """The job: addresses of arrays, which stay alive with the run, sizes, and offsets."""
        from cardan.kernel.memory import address_of

        e, p = self.equations, self.equations.problem
        self._arrays = {
            abi.INTS: p.ints,
            abi.FLOATS: self.floats,
            abi.PATTERN: e.pattern,
            abi.MASSES: e.values,
            abi.DRIVERS: e.drivers,
            abi.DRIVE: self.drive,
            abi.TIMED_PLACES: e.timed,
            abi.TIMES: self.times,
            abi.EXTRA: self.extra,
            abi.ACTIVE: self.active,
            abi.STOPS: e.stop_table.reshape(-1),
            abi.BOUNDS: self.bounds.reshape(-1),
        }
        poses = e.poses.algebra if e.poses is not None else None
        self._arrays[abi.POSE_PATTERN] = poses.pattern if poses else e.pattern
        if e.poses is not None:
            self._arrays[abi.POSE_EQUATIONS] = e.poses.equations
        table = [0] * abi.PIECES + offsets
        table[abi.POSE_ALGEBRA] = poses.address if poses else e.algebra
        table[abi.RATED] = e.equations.size - poses.equations.size if poses else 0
        if e.forces is not None:
            self._arrays |= {abi.LOAD_INTS: e.forces.ints, abi.LOAD_FLOATS: e.forces.floats}
            table[abi.LOADS], table[abi.ASKS] = e.forces.address, int(e.forces.asks)
        if self.control[abi.STABILIZATION] == abi.BAUMGARTE:
            table[abi.FEEDBACK] = _feedback.ADD
        table[abi.EVALUATOR], table[abi.ALGEBRA], table[abi.INSTANT] = p.evaluate, e.algebra, _instant.INSTANT
        if e.stops:
            table[abi.STOP_SOLVER] = _stops.STOPS
        for place, array in self._arrays.items():
            table[place] = address_of(array)
        table[abi.BODIES], table[abi.COORDINATES], table[abi.ROWS] = len(e.system.names), e.coordinates, p.rows
        table[abi.EQUATIONS], table[abi.DRIVEN] = e.equations.size, e.drivers.size // 2
        table[abi.STOP_COUNT], table[abi.TIMED] = len(e.stops), e.timed.size
        self.job: IntArray = np.array(table, dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("job", "_arrays")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_table(self._offsets())

    @property
    def time(self) -> float:
        """Time reached [s]."""
        return float(self.control[abi.TIME])

    @property
    def reached(self) -> int:
        """Number of results so far."""
        return int(self.control[abi.SAMPLE])

    @property
    def turns_far(self) -> bool:
        """Whether a constant step would turn a body so far that it could pass a stop and return."""
        return bool(self.control[abi.RTOL] == 0.0 and self.step > self.control[abi.TURN_STEP])

    def begin(self, released: int = -1) -> int:
        """Start, or restart after an event: find the stops that hold, project pose and velocity, compute accelerations.

        First all stops hold that are reached, and that the drivers do not move away from; the velocity towards them
        becomes zero (inelastic impact).  Then
        those that would pull are released one by one.  Returns the status of the kernel, RUNNING if it succeeded, or
        LOCKED if drivers push against stops.
        released: the stop that has just been released.
        """
        sample = float(self.control[abi.SAMPLE])
        status = self._begin()
        if status != abi.RUNNING or not self._reach_stops(released):
            return status
        self.control[abi.SAMPLE] = sample  # an output at this time is that with the stops
        before = Mark(self.q.copy(), self.v.copy(), self.control.copy())
        for _ in range(1 + len(self.equations.stops)):
            self.control[abi.SAMPLE] = sample
            status = self._begin()
            if self._is_pushed(status, before):
                return abi.LOCKED
            if status != abi.RUNNING or not self._release_one():
                return status
        return status

    def _begin(self) -> int:
        c = self.control
        c[abi.PHASE], c[abi.KNOWN], c[abi.HEAD], c[abi.HOLD], c[abi.FRESH] = abi.BEGIN, 0.0, 0.0, 0.0, 1.0
        c[abi.STAGE], c[abi.EVENT], c[abi.HIGH], c[abi.WHOLE] = 0.0, 0.0, 0.0, 0.0
        c[abi.STEP], c[abi.CHUNK] = self.step, 0.0
        status = self._call(_adams.ADVANCE, 0)
        if status == abi.RUNNING and c[abi.RTOL] > 0.0:
            a = np.abs(self._last_acceleration().reshape(-1, 2, 3)).max(axis=(0, 2), initial=0.0)
            largest = max(a[0] / c[abi.LENGTH], a[1], LEAST_ACCELERATION)
            first = FIRST_STEP * float(np.sqrt(c[abi.RTOL] / largest))
            c[abi.STEP] = min(first, MOST_FIRST_STEP * self.step, c[abi.MOST_STEP], c[abi.TURN_STEP])
        return status

    def _is_pushed(self, status: int, before: Mark, soon: float = 0.0) -> bool:
        """Whether drivers push against the stops that hold; then the run is back at a state, with these stops released.

        status: of the kernel.  soon [s]: the rates of the drivers are those of a later time.
        """
        system = self.equations.system
        if not (system.signals or system.timed) or (status == abi.RUNNING and not is_contradicted(self)):
            return False
        self.push = find_push(self, before.q, float(before.control[abi.TIME]) + soon)
        if self.push is None:
            return False
        self.q[:], self.v[:], self.control[:] = before
        for stop in self.push.stops:
            self.active[self.equations.stop_table[stop, abi.STOP_EQUATION]] = 0.0
        if self._begin() == abi.RUNNING:
            self._keep_tried()
        return True

    def end_here(self) -> None:
        """Add the last state from which a step was tried to the results, although it is not at an output time."""
        if self._tried is None and self.begin() == abi.RUNNING:
            self._keep_tried()
        last = float(self.results[self.reached - 1, 0]) if self.reached else -np.inf
        if self._tried is not None and self._tried[0] > last:
            self.results = np.vstack([self.results[: self.reached], self._tried, self.results[self.reached + 1 :]])
            self.control[abi.SAMPLE] += 1.0

    def _keep_tried(self) -> None:
        """The state now, after begin(), as a row of the results."""
        self._tried = np.concatenate([[self.time], self.q, self.v, self._last_acceleration(), self._end_multipliers()])

    def _end_multipliers(self) -> FloatArray:
        """λ at the end of the last step."""
        return self.work[self.job[abi.PIECES + _equations.END_MULTIPLIERS] :][: self.equations.equations.size]

    def _reach_stops(self, released: int) -> bool:
        """Let every stop hold that is reached, and from which the velocity does not lead away; whether there is one."""
        if not self.equations.stops:
            return False
        values, rates = self._stop_coordinates()
        for k, (value, rate) in enumerate(zip(values, rates, strict=True)):
            lower, upper, weight, side, *_ = self.bounds[k]
            if side == 0.0 and k != released:
                for bound, sign in ((lower, -1.0), (upper, 1.0)):
                    if weight * sign * (value - bound) > -REACHED and weight * sign * rate > -RESTING:
                        self._set_side(k, sign)
        return bool(self.bounds[:, abi.SIDE].any())

    def _release_one(self) -> bool:
        """Release the stop that pulls most, if any does; whether there was one."""
        pushes = -self.bounds[:, abi.GAP] * (self.bounds[:, abi.SIDE] != 0.0)
        strongest = float(np.abs(self._end_multipliers()).max(initial=0.0))
        pulling = np.flatnonzero(pushes < -_stops.NEUTRAL * strongest)
        if pulling.size:
            self._set_side(int(pulling[np.argmin(pushes[pulling])]), 0.0)
        return bool(pulling.size)

    def _set_side(self, stop: int, side: float) -> None:
        """Let a stop hold its lower (−1) or upper (+1) bound, or none (0)."""
        equation, _, place = self.equations.stop_table[stop]
        self.bounds[stop, abi.SIDE] = side
        self.active[equation] = 1.0 if side else 0.0
        bound = self.bounds[stop, abi.LOWER if side < 0.0 else abi.UPPER]
        self.floats[place] = bound if side else 0.0
        what = "reached" if side else "left"
        self.events.append(Event(self.time, self.equations.stops[stop].name, what))

    def _stop_coordinates(self) -> tuple[FloatArray, FloatArray]:
        """Coordinates of the stops and their rates, shape (stops,) each."""
        problem = self.equations.problem.with_floats(self.floats)
        values, jacobian = problem.jacobian(self.q)
        rows = self.equations.stop_table[:, abi.STOP_ROW]
        return values[rows] + self.floats[self.equations.stop_table[:, abi.STOP_PLACE]], jacobian[rows] @ self.v

    def advance(self, until: float, steps: int) -> int:
        """At most that many steps towards a time; returns the status of the kernel."""
        c = self.control
        while True:
            redundant = float(c[abi.REDUNDANT])
            if self._returns:
                self._marks = [*self._marks[-1:], Mark(self.q.copy(), self.v.copy(), c.copy())]
            status = self._steps(until, steps)
            if status == abi.STEP_TOO_SMALL and self._returns:
                status = self._go_round(until, steps)
            if status in FAILURES and self.equations.system.contacts:
                status = self._retry(until, steps, status, redundant)
            if status in FAILURES and self.equations.system.contacts:
                status = self._approach_end(until, status, redundant)
                steps -= 1
                if status == abi.RUNNING:
                    self._tried = None
                    return status  # the caller looks at the clock: these steps may be many
            if status != abi.EVENT_REACHED:
                return self._ended(status)
            k = int(c[abi.EVENT]) - 1
            is_released = self.bounds[k, abi.SIDE] != 0.0
            if is_released:
                self._set_side(k, 0.0)
            status = self.begin(k if is_released else -1)
            most = MOST_EVENTS + 2 * len(self.equations.stops)
            if len(self.events) > most and self.time - self.events[-most].time <= c[abi.LEAST_STEP]:
                return abi.LOCKED
            steps -= 1
            if status != abi.RUNNING or steps <= 0:
                return status

    def _ended(self, status: int) -> int:
        """The status of the kernel, or LOCKED after a failure because drivers begin to push against stops."""
        if status in (*FAILURES, abi.STEP_TOO_SMALL) and self.bounds[:, abi.SIDE].any():
            now = Mark(self.q.copy(), self.v.copy(), self.control.copy())
            if not self.equations.system.contacts and self._is_pushed(status, now, SOON * self._span):
                return abi.LOCKED
        return status

    def _go_round(self, until: float, steps: int) -> int:
        """After steps that became too small, because one of them ended very near to a singular pose: other steps.

        Smooth motions pass such poses if no step ends where rounding over σ² exceeds rtol.
        """
        c, taken = self.control, float(self.control[abi.TAKEN])
        failed = Mark(self.q.copy(), self.v.copy(), c.copy())
        for mark in reversed(self._marks):
            for factor in DETOURS:
                self.q[:], self.v[:], c[:] = mark
                c[abi.REFUSED] += taken - c[abi.TAKEN]
                status = self.begin()
                c[abi.STEP] *= factor
                if status == abi.RUNNING:
                    status = self._steps(until, steps)
                if status != abi.STEP_TOO_SMALL:
                    return status
        self.q[:], self.v[:], c[:] = failed
        return abi.STEP_TOO_SMALL

    def _retry(self, until: float, steps: int, failure: int, redundant: float) -> int:
        """After a variable step in which a contact was lost, as it may be where a body turns far: shorter steps.

        Their errors do not tell that, since the accelerations of a ball that rolls down a slope are constant.
        redundant: the value of REDUNDANT before the failure.  Returns the status of the kernel.
        """
        c, status, left, start = self.control, failure, RETRIES, self.time
        while status in FAILURES and c[abi.RTOL] > 0.0 and c[abi.PHASE] in (abi.CORRECT, abi.ACCEPT):
            if self.time > start:
                left, start = RETRIES, self.time
            if left == 0 or c[abi.KNOWN] == 0.0:
                break
            left -= 1
            c[abi.REDUNDANT], c[abi.DRIVE_AT], c[abi.PHASE] = redundant, c[abi.DRIVE_COUNT], abi.PREDICT
            c[abi.STEP] *= RETRIED
            c[abi.REFUSED] += 1.0
            c[abi.HOLD], c[abi.FRESH] = 0.0, 1.0
            status = self._steps(until, steps)
        return status

    def _go_back(self) -> float:
        """After an output that failed within the last step: back to the state before this step; its length [s]."""
        c, at = self.control, self.job[abi.PIECES :]
        times = self.history[abi.HISTORY * self.v.size :]
        start = float(times[(int(c[abi.HEAD]) + 1) % abi.HISTORY])
        self.q[:] = self.work[at[_equations.OLD_Q] :][: self.q.size]
        self.v[:] = self.work[at[_equations.OLD_V] :][: self.v.size]
        h, c[abi.TIME] = self.time - start, start
        return h

    def _approach_end(self, until: float, failure: int, redundant: float) -> int:
        """After a step that failed, because a contact may end within it: shorter ones, by bisection.

        Steps become longer again where several of them succeed, because not every failure is an end.
        Returns the failure if a contact ends, at the time now; RUNNING if the end of the step was reached, or after
        MOST_SHORT steps.
        redundant: the value of REDUNDANT before the failure.
        """
        c = self.control
        h = self._go_back() if c[abi.PHASE] == abi.OUTPUT else min(float(c[abi.STEP]), until - self.time)
        end, longest, left = self.time + h, h, MOST_SHORT
        begun: Mark | None = None
        while (h := 0.5 * h) >= c[abi.LEAST_STEP]:
            status, taken = abi.RUNNING, 0
            while status == abi.RUNNING:
                c[abi.REDUNDANT], c[abi.DRIVE_AT] = redundant, c[abi.DRIVE_COUNT]
                status = self.begin()
                if status in FAILURES and begun is not None:  # the contact ends before the last step does
                    self.q[:], self.v[:], c[:] = begun
                    break
                if status != abi.RUNNING or end - self.time <= c[abi.LEAST_STEP] or left == 0:
                    return status
                left -= 1
                self._keep_tried()
                begun = Mark(self.q.copy(), self.v.copy(), c.copy())
                status = self._short_step(h, end)
                taken += 1
                if taken > 2:
                    h = min(2.0 * h, longest)
            if status == abi.EVENT_REACHED:
                return status
        return failure

    def _short_step(self, h: float, end: float) -> int:
        """One step of h [s], or to a time if that is nearer; returns RUNNING, an event, or a failure."""
        whole, self.step = self.step, h
        status = self._runge_kutta(START, 1, end)
        self.step = whole
        return abi.RUNNING if status == abi.DONE else status

    def _steps(self, until: float, steps: int) -> int:
        """Steps until an event, or until there are enough of them."""
        c = self.control
        if self.method != "adams":
            return self._runge_kutta(self.method, steps, until)
        if c[abi.RTOL] == 0.0 and c[abi.KNOWN] < FIXED_ORDER:
            while c[abi.KNOWN] < FIXED_ORDER:
                if steps <= 0 or self.turns_far:
                    return abi.RUNNING
                status = self._runge_kutta(START, 1, until)
                steps -= 1
                if status != abi.RUNNING:
                    return status
            c[abi.BASE], c[abi.COUNT], c[abi.STEP] = c[abi.TIME], 0.0, self.step
            c[abi.FRESH], c[abi.UNEVEN] = 1.0, FIXED_ORDER
        c[abi.END], c[abi.CHUNK] = until, steps
        return self._call(_adams.ADVANCE, 0)

    def _runge_kutta(self, name: str, steps: int, until: float) -> int:
        """Steps that end at every output, because these methods do not interpolate within a step."""
        tableau, c = TABLEAUS[name], self.control
        values = TABLEAU_VALUES[name]
        at = self.history.size - TABLEAU_SIZE
        self.history[at : at + values.size] = values
        c[abi.EXACT], c[abi.CHUNK] = STAGE_EXACT, steps
        while c[abi.CHUNK] > 0.0:
            c[abi.STEP], c[abi.BASE], c[abi.COUNT] = self.step, c[abi.TIME], 0.0
            ahead = self.times[self.reached] if self.reached < len(self.times) else until
            c[abi.END] = min(ahead, until)
            status = self._call(_runge_kutta.ADVANCE, len(tableau.nodes))
            if status != abi.DONE or c[abi.END] == until:
                break
            status = abi.RUNNING
        c[abi.EXACT] = EXACT
        return status

    def _call(self, address: int, op: int) -> int:
        """Call a kernel until it needs no more values of drivers or loads; returns its status."""
        arguments = (self.job, self.control, self.q, self.v, self.history, self.results.reshape(-1), self.work)
        while True:
            status = int(_blocks.call_at(address, op, *arguments))
            if status == abi.ASK_DRIVERS:
                self._fill_drivers()
            elif status == abi.ASK_LOADS:
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
        at = self.job[abi.PIECES :]
        new_q, new_v = at[_equations.NEW_Q], at[_equations.NEW_V]
        q = self.work[new_q : new_q + self.q.size]
        v = self.work[new_v : new_v + self.v.size]
        return float(self.control[abi.ASK_TIME]), q, v

    def _fill_drivers(self) -> None:
        """Value, rate and acceleration of every driver at the times of :meth:`_asked`."""
        c = self.control
        times = self._asked()
        system = self.equations.system
        functions = [signal for _, signal in system.signals] + [function for _, _, function in system.timed]
        table = self.drive[: 3 * len(functions) * len(times)].reshape(len(times), -1)
        for k, function in enumerate(functions):
            table[:, 3 * k : 3 * k + 3] = function.jets(times)
        c[abi.DRIVE_AT], c[abi.DRIVE_COUNT] = 0.0, float(len(times))

    def _asked(self) -> FloatArray:
        """The time that the kernel asks for; also the next ones if steps are constant and end at all outputs."""
        c = self.control
        if not self._foresees or c[abi.PHASE] == abi.BEGIN:
            return c[abi.ASK_TIME : abi.ASK_TIME + 1].copy()
        if c[abi.KNOWN] < FIXED_ORDER:  # the stages of a first step
            nodes = TABLEAUS[START].nodes
            stages = [c[abi.TIME] + node * c[abi.STEP] for node in nodes[int(c[abi.STAGE]) :]]
            return np.array([*stages, c[abi.STEP_END]])
        last, step, base, count = c[abi.END], c[abi.STEP], c[abi.BASE], c[abi.COUNT]
        times = base + (count + 1.0 + np.arange(self._ahead)) * step
        ahead: FloatArray = np.append(times[times < last - SAME_TIME * step], last)[: self._ahead]
        return ahead

    def _last_acceleration(self) -> FloatArray:
        head, n6 = int(self.control[abi.HEAD]), WIDTH * len(self.equations.system.names)
        return self.history[head * n6 : (head + 1) * n6]
