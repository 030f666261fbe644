"""Positions along a driven motion: continuation that stays on one branch, or stops and reports why.

From one time to the next, Newton's iteration starts at the current pose.  Its first step is the tangent of the motion;
the ratio of the second step to the first shows whether the linear model is valid.  Time steps are chosen such that it
is:  |δ₂| ≤ CONTRACTION·|δ₁|, and no body rotates by more than MOST_ROTATION in a step.  [Deuflhard2011]
They are also chosen such that the driver values within a step are known from its ends: otherwise a driver that moves
out and back within a step would seem to be constant.

Two things can end a motion.  At a *dead point* the drivers cannot move the mechanism any further: the Jacobian becomes
singular and the rates become unbounded, so that ever smaller steps are rejected.  If a driver pushes a coordinate
against a *limit*, there is no solution either.  Where branches cross (the flat pose of a parallelogram) the Jacobian is
singular as well, but the motion continues: see :mod:`cardan.analysis.crossing`.

With rate rows, and freedoms that the drivers leave, velocities are integrated (:mod:`cardan.analysis.undriven`).  Then
the Jacobian of all rows, with the rate rows, determines whether a pose is singular.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from cardan.analysis.assemble import assemble
from cardan.analysis.attempts import TARGET, refine
from cardan.analysis.contact_ends import lost_contacts, told
from cardan.analysis.crossing import MOST_UNKNOWNS, Crossing, Linearization, SparseLinearization
from cardan.analysis.curve import End
from cardan.analysis.limits import ActiveLimit, active_limits, limit_rows, limited, relax_bounds
from cardan.analysis.motion import Motion, MotionStatus
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.reasons import contradicting_drivers, contradiction, locked, out_of_range
from cardan.analysis.step_interior import RETRY, AnglesCounted, Limits
from cardan.analysis.undriven import LeastVelocity, undriven
from cardan.constraints.jets import Jet
from cardan.constraints.signal import Remembered, UndefinedError, last_defined
from cardan.coordinates import formulations, rates, verdict
from cardan.diagnosis import elimination
from cardan.errors import ModelError
from cardan.solvers import methods
from cardan.solvers.problem import Job, Problem
from cardan.solvers.tables import Control, Outcome
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import System

CONTRACTION: Final = 0.25  # |δ₂|/|δ₁| of Newton's steps, at most
MOST_ROTATION: Final = 0.7  # rad per step of any body, so that whole turns are never miscounted
MOST_ITERATIONS: Final = 12  # of Newton in one step
SLOW: Final = 0.5  # ratio of two later steps of Newton; above it the iteration does not converge
ROUNDED: Final = 1e-9  # a step of Newton this small may be a rounding error
DENSE: Final = 5_000  # entries of J up to which a step decomposes the dense matrix, in less than a millisecond
LEAST_STEP: Final = 1e-11  # of the time span: a step rejected at this size ends the motion
FIRST_STEP: Final = 1e-2  # of the time span
# Largest deviation of a driver in a step from its Taylor series at the start: relative, and absolute (lengths in L).
DRIVER_RTOL: Final = 0.5
DRIVER_ATOL: Final = 1e-6
OVERSHOOT: Final = 1e-9  # lengths in L: largest excess of a driver within a step over its values at the ends
INSIDE: Final = 0.382  # of a step: drivers are also evaluated there, so that a full period is not taken for a constant
BRIDGE: Final = 4.0  # length of a bridge over a crossing, in rejected steps
APPROACHED: Final = 0.1  # of the least singular value: if a step reduces it below this, a singular pose is near
APPROACH: Final = 0.1  # of the time left to a dead point: what a step towards it leaves
AT_DEAD_POINT: Final = 2.0  # rejected steps: a dead point is nearer, or it was not the reason
FOLDED: Final = 0.6  # of the least singular value: what such a step leaves; √APPROACH = 0.32 in theory
LEAST_APPROACH: Final = 1e-7  # of the time span: such a step is accepted only if it is no longer than this
SINGULAR: Final = 1e-3  # least singular value relative to the largest: below it, a motion ends at a dead point

BOUNDED: Final = 1e-3  # of the driver rates, velocities times σ: those at a dead point are larger
SOON: Final = 1e-6  # of the time span: a driver that leaves the range of its coordinate within it ends the motion
AHEAD: Final = 1e-6  # [rad], lengths in L: extrapolation beyond the end, to find limits that stop the motion

BETWEEN: Final = (
    *(MotionStatus.DEAD_POINT, MotionStatus.LIMIT, MotionStatus.CONTACT, MotionStatus.UNDEFINED, MotionStatus.LOST),
)
NOT_FINITE: Final = "a constraint has derivatives that are not finite"

Progress = Callable[[float], None]


def move(
    system: System,
    times: Iterable[float],
    start: State | Mapping[Any, Any] | None,
    *,
    tolerance: float,
    max_seconds: float | None,
    progress: Progress | None,
) -> Motion:
    """See :meth:`cardan.Mechanism.move`."""
    began = clock.perf_counter()
    wanted = _check_times(times)
    if system.rated is not system:
        system.refuse_timed("move with rate rows")
    if not system.rated.signals and not system.timed:
        raise ModelError("the mechanism has no drivers to move it; add one with m.drive(name, joint, function)")
    tolerance = check.positive(tolerance, "tolerance")
    deadline = None if max_seconds is None else began + check.positive(max_seconds, "max_seconds")
    if progress is not None and not callable(progress):
        raise ModelError(f"progress is {progress!r}; it must be a function of the fraction done, from 0 to 1")
    options = AssemblyOptions(tolerance=tolerance, max_seconds=max_seconds)
    first = assemble(system, start, float(wanted[0]), options)
    if not first.ok:
        return Motion(system, [], MotionStatus.NOT_ASSEMBLED, f"at t = {wanted[0]:g} s: {first.text()}")
    try:
        path = _Path(system, first.state, wanted, tolerance, deadline)
    except np.linalg.LinAlgError:
        return Motion(system, [], MotionStatus.LOST, f"at t = {wanted[0]:.9g} s {NOT_FINITE}", notes=first.notes)
    if (stopped := path.conflict()) is not None:
        return Motion(system, [], *stopped, undriven=path.undriven, notes=first.notes)
    states = [path.state()]
    rotation = []
    status, reason, undefined = MotionStatus.DONE, "", ""
    targets = wanted[1:].tolist()
    try:
        while targets:
            try:
                stopped = path.advance(targets[0])
            except UndefinedError as error:
                if undefined:
                    raise
                end, undefined = _end_of_drivers(system, path.time, targets[-1], error)
                targets = [*[t for t in targets if abs(t - path.time) <= abs(end - path.time)], end]
                path.ends_at(end)
                continue
            if stopped is None and undefined and len(targets) == 1:
                stopped = MotionStatus.UNDEFINED, undefined
            if stopped is not None:
                status, reason = stopped
                break
            del targets[0]
            states.append(path.state())
            rotation.append(path.take_rotation())
            if progress is not None:
                progress((len(states) - 1) / (len(wanted) - 1))
    except UndefinedError as error:
        status, reason = MotionStatus.UNDEFINED, f"ended at t = {path.time:.9g} s: {error}"
    except np.linalg.LinAlgError:
        return Motion(
            *(system, states, MotionStatus.LOST, f"after t = {path.time:.9g} s {NOT_FINITE}", states[-1], path.steps),
            *(rotation, path.undriven, first.notes),
        )
    except KeyboardInterrupt:
        status, reason = MotionStatus.INTERRUPTED, f"interrupted at t = {path.time:g} s; earlier states are kept"
    last = path.state() if status in BETWEEN and path.is_met() else states[-1]
    return Motion(system, states, status, reason, last, path.steps, rotation, path.undriven, first.notes)


def _end_of_drivers(system: System, now: float, last: float, error: UndefinedError) -> tuple[float, str]:
    """The time after which a driver has no value, on the way from now to the last time, and why, in words."""
    signals = [signal for _, signal in system.rated.signals] + [function for _, _, function in system.timed]
    end, reason = last_defined(signals, now, last) or (now, error)
    return end, f"the drivers end at t = {end:.9g} s: {reason}"


def _check_times(times: Any) -> FloatArray:
    try:
        wanted = np.array([check.number(t, "a time") for t in times])
    except TypeError:
        raise ModelError(f"times is {times!r}; it must be a list of times [s]") from None
    if not wanted.size:
        raise ModelError("times is empty; it must contain at least one time [s]")
    steps = np.sign(np.diff(wanted))
    wrong = np.flatnonzero((steps != steps[:1]) | (steps == 0.0))
    if wrong.size:
        before, after = wanted[wrong[0] : wrong[0] + 2].tolist()
        raise ModelError(
            f"times must all increase, or all decrease; times[{wrong[0]}] = {before!r} s is followed by {after!r} s"
        )
    return wanted


class _Path:
    """The current point of a motion, and its continuation."""

    def __init__(
        self, system: System, state: State, times: FloatArray, tolerance: float, deadline: float | None
    ) -> None:
        self.system = system
        self.time = state.time
        self.steps = 0
        self._tolerance = tolerance
        self._deadline = deadline
        near = np.array([state.angles[key] for key in system.counted_angles])
        self.q = formulations.to_reference(system, state.coordinates, near)
        self._first = self.q
        self._length = system.extent_at(self.q)
        problem = formulations.problem(system, "manifold", self._length, self.time)
        scales = problem.scales.copy()
        scales[problem.rows :] = _units(system, state)
        self.problem = replace(problem, floats=system.followed(problem.floats), scales=scales)
        # a coordinate that touches a bound must be able to leave it, in spite of rounding errors
        relax_bounds(system, self.problem.floats, self._length, TARGET * tolerance, TARGET * verdict.ROUNDING)
        self._rated: tuple[System, Problem] | None = None  # with the rate rows, if there are any
        if system.rated is not system:
            rated = formulations.problem(system.rated, "manifold", self._length, self.time)
            own = np.concatenate([rated.scales[: rated.rows], scales[problem.rows :]])
            self._rated = system.rated, replace(rated, floats=system.rated.followed(rated.floats), scales=own)
        self._span = float(np.ptp(times)) or 1.0
        self._step = FIRST_STEP * self._span
        rows = {row.constraint: row.start for row in system.rows}
        drivers = [(position, Remembered(signal)) for position, signal in system.signals]
        timed = [(position, Remembered(function)) for position, _, function in system.timed]
        self._signals = drivers + timed
        self._drivers = [(rows[signal.name], signal) for _, signal in drivers]
        starts = [system.rows[number].start for _, number, _ in system.timed]
        self._drivers += [(start, function) for start, (_, function) in zip(starts, timed, strict=True)]
        self._limits = Limits(system, self.problem, self._signals) if limit_rows(system) else None
        self._end: End | None = None  # the last pose with its rates, if there are limits
        self._angles = AnglesCounted(system)
        self._rotation = 0.0  # [rad] largest of any body in Newton's last run
        self._rotation_sum = 0.0  # [rad] sum over the steps since the last take_rotation()
        self._crossing: Crossing | None = None  # while the motion is on a bridge
        self._last = float(times[-1])
        self._least_velocity: LeastVelocity | None = None
        self._find_freedoms(self.q)
        self._linearization = self._linearize(self.q, 0)
        settings = {"dense_entries": DENSE, "keep_rows": 0.0, "epsilon": self._damping}
        self._job = Job(self.problem, methods.load("_newton"), settings)
        self._unlimited = self._job
        if self._is_free and self._limits is not None:
            # where free bodies move to does not depend on limits; a motion ends at contact
            problem = self.problem.with_floats(self.problem.floats.copy())
            relax_bounds(system, problem.floats, self._length, np.inf, 0.0)
            self._unlimited = Job(problem, methods.load("_newton"), settings)

    def _find_freedoms(self, q: FloatArray) -> None:
        """What the drivers leave free in a pose, and the damping of the normal equations that follows from it.

        A pose has more freedoms than velocities if there are rate rows: then velocities are integrated.
        """
        found = undriven(self.system.rated, rates.linearize(self.system, self.problem, q))
        self._is_free = any(not one.at_rest for one in found)
        self._damping = rates.DAMPING if found else rates.LEAST_DAMPING
        self._leading, leading = (self.system, self.problem), found
        if self._rated is not None:
            found = undriven(self.system.rated, rates.linearize(*self._rated, q))
            if self._is_free:  # rate rows determine free bodies, also in poses in which the joints are singular
                self._leading, leading = self._rated, found
        self._freedoms = sum(one.freedoms for one in leading)
        self.undriven = found

    def _find_freedoms_near(self, time: float) -> None:
        """Find what is free in a pose nearby, at a time: a singular pose has more freedoms."""
        near, _ = self._newton(self.q, time, strict=False)
        if near is not None:
            self._find_freedoms(near)
            self._linearization = self._linearize(self.q, 0)

    def _rates(
        self, q: FloatArray, time: float, known: rates.Decomposition | rates.Factorization | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """v and v̇ in the solvers' coordinates; known: J in q."""
        if self.system.timed:  # J may depend on the time
            self._drive(time)
            known = None
        if self._rated is None:
            return rates.solver_rates(self.system, self.problem, q, time, known)
        return rates.solver_rates(*self._rated, q, time)

    def conflict(self) -> tuple[MotionStatus, str] | None:
        """Status and reason if no velocities satisfy the rate rows together with drivers and joints."""
        if self._rated is None:
            return None
        unmet = contradiction(*self._rated, self.q, self.time)
        if not unmet:
            return None
        names = ", ".join(map(repr, dict.fromkeys(self.system.rate_constraints)))
        text = f"at t = {self.time:.9g} s no velocities satisfy the drivers, the joints and the rate rows {names}"
        return MotionStatus.LOST, f"{text} (residual rates: {unmet})"

    def state(self) -> State:
        """The state now, with its velocities."""
        if self._crossing is not None:
            velocities, accelerations = self._crossing.rates(self.q, self.time)
        else:
            found = self._rates(self.q, self.time, self._linearization.known)
            velocities, accelerations = rates.at_origins(self.system, self.q, *found)
        return self._pose_state(self.q).with_rates(velocities, accelerations)

    def ends_at(self, time: float) -> None:
        """Drivers have no values after this time."""
        self._last, self._least_velocity = time, None

    def take_rotation(self) -> float:
        """Sum of the largest rotations of a body in each step [rad] since the last call."""
        rotation, self._rotation_sum = self._rotation_sum, 0.0
        return rotation

    def _pose_state(self, q: FloatArray) -> State:
        poses = formulations.from_reference(self.system, q)
        angles = formulations.angles(self.system, q).copy() if self.system.counted_angles else None
        return self.system.state(poses, angles, self.time)

    def advance(self, target: float) -> tuple[MotionStatus, str] | None:
        """Continue to a time; None when it is reached, else status and reason."""
        sign = 1.0 if target >= self.time else -1.0
        while self.time != target:
            if self._deadline is not None and clock.perf_counter() >= self._deadline:
                return MotionStatus.TIME_LIMIT, f"the time allowed ran out at t = {self.time:g} s"
            if (stopped := self.conflict()) is not None:
                return stopped
            if self._crossing is not None:
                if self._crossing.covers(target):
                    pose = self._crossing.pose(target)
                    self._accept(pose, target, self._rotation_to(pose))
                else:
                    end, pose = self._crossing.end
                    self._crossing = self._least_velocity = None
                    self._accept(pose, end, self._rotation_to(pose))
                    self._linearization = self._linearize(pose, self._linearization.rank)
                continue
            left = abs(target - self.time)
            step = self._resolved_step(sign, min(self._step, left))
            time = target if step == left else self.time + sign * step
            if step < left and (step < LEAST_STEP * self._span or time == self.time):
                return self._ended(self.time + sign * 4.0 * max(LEAST_STEP * self._span, np.spacing(abs(self.time))))
            if self._leading is self._rated and self._least_velocity is None:
                self._find_freedoms_near(time)
            if self._leading is self._rated:
                found, contraction = self._with_least_velocity(None, time), 0.0
            else:
                found, contraction = self._newton(self.q, time)
                if found is not None and self._is_free:
                    found = self._with_least_velocity(found, time)
            ahead = self._linearization if found is None else self._linearize(found, self._linearization.rank)
            if not self._continues(ahead, step):
                found = None
            if found is None and self._rotation <= MOST_ROTATION and self._bridge(sign, step):
                continue
            if found is None and self._approach(target, step):
                continue
            if found is not None:
                part = self._kept_part(found, time, ahead)
                if part < 1.0:
                    self._step = part * step
                    continue
                self._accept(found, time, self._rotation)
                self._linearization = ahead
                ease = min(0.9 * CONTRACTION / max(contraction, 1e-6), 0.95 * MOST_ROTATION / max(self._rotation, 1e-6))
                grown = step * min(2.0, max(1.0, ease))
                self._step = max(grown, self._step) if step == left else grown
                continue
            self._step = 0.4 * step
        if self.is_met():
            return self.conflict()
        return MotionStatus.LOST, f"at t = {self.time:g} s the constraints are not met"

    def is_met(self) -> bool:
        """Whether the verdict is met now; the pose is refined if it is not."""
        if not self._meets(self.q, self.time):
            self.q = self.q.copy()
            refine(self.system, self.q, self._tolerance, self.time)
        return self._meets(self.q, self.time)

    def _accept(self, q: FloatArray, time: float, rotation: float) -> None:
        self.q, self.time = q, time
        self._rotation_sum += rotation
        self.steps += 1

    def _rotation_to(self, q: FloatArray) -> float:
        """Largest rotation of a body from the current pose to another [rad]."""
        return float(np.linalg.norm(rates.difference(self.system, self.q, q).reshape(-1, 6)[:, 3:], axis=1).max())

    def _linearize(self, q: FloatArray, rank: int) -> Linearization | SparseLinearization:
        """The leading equations, whose J shows branches and dead points, linearised; rank: that of earlier poses."""
        if self.problem.unknowns > rates.DENSE_UNKNOWNS:
            damping = rates.DAMPING if self._freedoms else rates.LEAST_DAMPING
            return SparseLinearization(*self._leading, q, damping, self._freedoms)
        return Linearization(*self._leading, q, rank)

    def _with_least_velocity(self, near: FloatArray | None, time: float) -> FloatArray | None:
        """The pose at a time, of the motion with the least velocities.

        near: a pose there, by Newton's iteration; None where rate rows determine the motion: poses may be singular.
        """
        rotation = self._rotation if near is not None else 0.0
        if self._least_velocity is None:
            if near is not None:
                self._find_freedoms(near)  # a singular pose has more of them
                if not self._is_free:
                    return near

            def project(guess: FloatArray, time: float) -> FloatArray | None:
                limited, self._job = self._job, self._unlimited
                try:
                    return self._newton(guess, time, strict=False)[0]
                finally:
                    self._job = limited

            start = self.time, self.q
            self._least_velocity = LeastVelocity(
                self.system, self.problem, start, self._last, project, self._tolerance, self._deadline, self._rated
            )
        found = self._least_velocity.pose(time, self.time)
        self._rotation = rotation if found is None else max(rotation, self._rotation_to(found))
        return found if near is not None or self._rotation <= MOST_ROTATION else None

    def _kept_part(self, q: FloatArray, time: float, linearization: Linearization | SparseLinearization) -> float:
        """1.0 if turns are counted and limits kept in a step to a pose; else the fraction of the step to try next."""
        if self._angles and not self._angles.are_counted(self.q, q, self._rotation):
            return RETRY
        if self._limits is None:
            return 1.0
        if self._end is None or self._end.time != self.time:
            self._end = self._with_rates(self.q, self.time, self._linearization)
        end = self._with_rates(q, time, linearization)
        part = self._limits.part(self._end, end)
        if part == 1.0:
            self._end = end
        return part

    def _with_rates(self, q: FloatArray, time: float, linearization: Linearization | SparseLinearization) -> End:
        return End(time, q, *self._rates(q, time, linearization.known))

    def _resolved_step(self, sign: float, step: float) -> float:
        """The step, shortened until its ends determine the drivers within it."""
        for row, signal in self._drivers:
            scale = float(self.problem.scales[row])
            here = signal.jet(self.time)
            while step >= LEAST_STEP * self._span:
                steps = sign * INSIDE * step, sign * step
                parts = [_predicted_part(here, signal.jet(self.time + h), h, scale) for h in steps]
                if min(parts) == 1.0:
                    break
                step *= INSIDE * parts[0] if parts[0] < 1.0 else parts[1]
        return step

    def _drive(self, time: float) -> None:
        for position, signal in self._signals:
            self._job.problem.floats[position] = signal.value(time)

    def _newton(self, start: FloatArray, time: float, strict: bool = True) -> tuple[FloatArray | None, float]:
        """The pose at a time by Newton from a pose, or None if the linear model is not valid; and its contraction."""
        self._drive(time)
        q = start.copy()
        control = Control(self._job.control)
        largest_angle = float(np.abs(formulations.angles(self.system, q)).max(initial=1.0))
        self._job.start(TARGET * max(self._tolerance, verdict.ROUNDING * largest_angle))
        first = last = contraction = self._rotation = 0.0
        made = 0
        for _ in range(MOST_ITERATIONS):
            outcome = Outcome(self._job.iterate(q, 1))
            if control.iterations > made:
                made += 1
                size = float(control.step_size)
                self._rotation += float(control.step_rotation)
                if outcome is Outcome.BROKEN or not np.isfinite(size) or self._rotation > MOST_ROTATION:
                    return None, contraction
                if made == 1:
                    first = size
                elif made == 2:
                    contraction = size / first if first > 0.0 else 0.0
                    if strict and contraction > CONTRACTION:
                        return None, contraction
                elif size > SLOW * last and size > ROUNDED:
                    return None, contraction
                last = size
            if outcome is Outcome.CONVERGED:
                if control.residual_max > TARGET * self._tolerance or not (made or strict):
                    # the target allows for the rounding of large angles; rows without angles have a smaller bound,
                    # and so have the rows of a small piece: a good guess is corrected at least once
                    control.tolerance = 0.0
                    self._job.iterate(q, 1)
                return (q if np.isfinite(q).all() else None), contraction
        is_limited_by_rounding = last <= ROUNDED and float(control.residual_max) <= self._tolerance
        return (q if is_limited_by_rounding else None), contraction

    def _continues(self, ahead: Linearization | SparseLinearization, step: float) -> bool:
        """Whether a step stays on its branch: it neither passes nor suddenly approaches a singular pose."""
        here = self._linearization
        if ahead is here:
            return True
        left = here.part_left(ahead)
        return left >= APPROACHED or (left > 0.0 and step <= LEAST_APPROACH * self._span)

    def _bridge(self, sign: float, step: float) -> bool:
        """Whether branches cross within some steps of the rejected size; if so, build the bridge over the crossing."""
        if self.problem.unknowns > MOST_UNKNOWNS or (self._rated is not None and self._is_free):
            return False  # rate rows of free bodies are integrated

        def newton(guess: FloatArray, time: float) -> FloatArray | None:
            return self._newton(guess, time, strict=False)[0]

        start = self.time, self.q
        span = sign * BRIDGE * step
        bridge = Crossing(self.system, self.problem, self._drive, start, span, self._meets, self._rated)
        try:
            if bridge.build(newton) and self._is_within_limits(*bridge.end):
                self._crossing = bridge
        except (ModelError, np.linalg.LinAlgError):  # a driver, or a contact, need not exist beyond the given times
            pass
        return self._crossing is not None

    def _approach(self, target: float, rejected: float) -> bool:
        """Whether a dead point lies within a rejected step; if so, go most of the way to it.

        At a dead point in the time τ the mechanism moves as  q ≈ q* − √τ p,  so  v = p/(2√τ),  τ = |v|²/(2 v·v̇),  and
        the pose at the time τ' before it is near  q ⊕ 2(τ − √(ττ'))v.
        """
        if self._is_free:
            return False
        here = self._with_rates(self.q, self.time, self._linearization)
        columns = self.problem.scales[self.problem.rows :]
        speed, growth = float(((here.v / columns) ** 2).sum()), float((here.v / columns) @ (here.a / columns))
        left = 0.5 * speed / growth if growth else 0.0
        if not 0.0 < left * np.sign(target - self.time) <= AT_DEAD_POINT * rejected:
            return False
        time = self.time + (1.0 - APPROACH) * left
        if time == self.time or abs(time - self.time) > abs(target - self.time):
            return False
        guess = self.problem.retract(self.q, 2.0 * (1.0 - np.sqrt(APPROACH)) * left * here.v)
        found, _ = self._newton(guess, time, strict=False)
        if found is None:
            return False
        self._rotation = self._rotation_to(found)
        ahead = self._linearize(found, self._linearization.rank)
        if self._rotation > MOST_ROTATION or not APPROACHED <= self._linearization.part_left(ahead) <= FOLDED:
            return False
        if self._kept_part(found, time, ahead) < 1.0:
            return False
        self._accept(found, time, self._rotation)
        self._linearization = ahead
        self._step = 0.5 * APPROACH * abs(left)
        return True

    def _is_within_limits(self, time: float, q: FloatArray) -> bool:
        """Whether limits are kept on the bridge from the current pose to another."""
        if self._limits is None:
            return True
        here = self._with_rates(self.q, self.time, self._linearization)
        return self._limits.part(here, self._with_rates(q, time, self._linearize(q, self._linearization.rank))) == 1.0

    def _meets(self, q: FloatArray, time: float) -> bool:
        """The verdict on a pose at a time."""
        poses, angles = formulations.from_reference(self.system, q), formulations.angles(self.system, q)
        return verdict.judge_system(self.system, poses, angles, self._tolerance, time)[0].met

    def _ended(self, rejected: float) -> tuple[MotionStatus, str]:
        """Why no further step is possible."""
        drivers = ", ".join(repr(signal.name) for _, signal in self.system.signals)
        where = f"at t = {self.time:.9g} s"
        limits = self._limits_reached(rejected)
        if limits:
            names = ", ".join(f"{limit.name!r} ({limit.bound})" for limit in limits)
            text = f"{where} the limit {names} is reached, and a motion ends at contact"
            return MotionStatus.LIMIT, f"{text}; drivers: {drivers}"
        undefined = self._angles.undefined(self.q) if self._angles else []
        if undefined:
            text = f"{where} the angle {', '.join(map(repr, undefined))} is undefined"
            return MotionStatus.LOST, f"{text}: its vector is parallel to its axis, and turns cannot be counted"
        if self.system.contacts:
            ahead = float(np.copysign(SOON * self._span, rejected - self.time))
            lost = lost_contacts(self.system, self.q, ahead * self._rates(self.q, self.time)[0])
            if lost:
                return MotionStatus.CONTACT, f"{where} {told(lost)}"
        soon = float(np.copysign(SOON * self._span, rejected - self.time))
        outside = out_of_range(self.system, self.time, soon)
        if outside:
            return MotionStatus.LOST, f"{where} the {outside}"
        for row, signal in self._drivers:
            before, after = signal.value(self.time), signal.value(rejected)
            if self.problem.scales[row] * abs(after - before) > DRIVER_ATOL:
                text = f"{where} the {signal.kind} {signal.name!r} jumps from {before:.9g} to {after:.9g}"
                return MotionStatus.LOST, f"{text}; a motion must be continuous"
        dependent = contradicting_drivers(self.system, self.problem, self._first, self.q, self.time)
        unmet = contradiction(self.system, self.problem, self.q, self.time)
        if dependent:
            rest = f" (residual rates: {unmet})" if unmet else ""
            return MotionStatus.LOST, f"{where} the {dependent}, and no velocities satisfy all of them{rest}"
        least = self._least()
        if least < SINGULAR and self.problem.unknowns > MOST_UNKNOWNS and self._are_rates_bounded(least):
            text = f"{where} branches seem to cross (least singular value {least:.1e} of the largest)"
            return MotionStatus.LOST, f"{text}; crossings are not followed with more than {MOST_UNKNOWNS} unknowns"
        if least < SINGULAR:
            what = locked(*self._leading, self.q, self.time, self._linearization.known)
            text = f"{where} a dead point is reached (least singular value {least:.1e} of the largest)"
            return MotionStatus.DEAD_POINT, f"{text}: {what}"
        if unmet:
            text = f"{where} the drivers {drivers} are inconsistent with the joints or with each other"
            return MotionStatus.LOST, f"{text}: no velocities satisfy all constraints (residual rates: {unmet})"
        return MotionStatus.LOST, f"{where} no pose near the last one was found {rejected - self.time:+.1e} s later"

    def _limits_reached(self, rejected: float) -> list[ActiveLimit]:
        """Limits that are reached now or after the least step, and that the velocities would exceed."""
        if self._limits is None:
            return []
        velocity, _ = self._rates(self.q, self.time)
        speed = float(np.abs(velocity / self.problem.scales[self.problem.rows :]).max())
        step = np.sign(rejected - self.time) * max(abs(rejected - self.time), AHEAD / max(speed, 1e-300))
        now, then, ahead = (
            self._pose_state(self.problem.retract(self.q, h * velocity)) for h in (0.0, rejected - self.time, step)
        )
        before, after = ({name: value for name, value, *_ in limited(self.system, state)} for state in (now, ahead))
        reached = {(one.name, one.bound): one for state in (then, now) for one in active_limits(self.system, state)}
        outward = {"lower": -1.0, "upper": 1.0}
        return [one for one in reached.values() if (after[one.name] - before[one.name]) * outward[one.bound] > 0.0]

    def _are_rates_bounded(self, least: float) -> bool:
        """Whether the velocities do not increase as 1/σ towards a singular pose, as they do towards a dead point."""
        system, problem = self._leading
        rate, _ = rates.driver_rates(system, problem, self.time, self.q)
        velocity = self._linearization.known.solve(rate) / problem.scales[problem.rows :]
        driven = np.linalg.norm(rate * problem.scales[: problem.rows])
        return bool(least * np.linalg.norm(velocity) < BOUNDED * driven)

    def _least(self) -> float:
        """The least nonzero singular value relative to the largest; of a large system by elimination body by body."""
        if isinstance(self._linearization, Linearization):
            values = self._linearization.known.values[: self._linearization.rank]
            return float(values[-1] / values[0]) if values.size else 1.0
        kept = set(np.flatnonzero(rates.weights(self.system, self.problem)).tolist())
        parts = elimination.fronts(self.problem, self.q, kept)
        rank, values = elimination.pivots(parts, rates.RANK_RTOL * elimination.largest_block(parts))
        return float(values[rank - 1] / values[0])


def _units(system: System, state: State) -> FloatArray:
    """Scales of the unknowns: 1 for rotations, and the L of its own piece for every position."""
    found: FloatArray = np.ones((len(system.names), 6))
    for piece in system.pieces:
        near = np.array([state.angles[key] for key in piece.system.counted_angles])
        q = formulations.to_reference(piece.system, piece.take(state.coordinates), near)
        found[piece.bodies, :3] = piece.system.extent_at(q)
    return found.ravel()


def _predicted_part(here: Jet, there: Jet, step: float, scale: float) -> float:
    """1.0 if a driver agrees with its Taylor series over a step [s]; else the fraction of the step to try next."""
    expected = step * (here.rate + 0.5 * step * here.acceleration)
    size = abs(step) * (abs(here.rate) + 0.5 * abs(step * here.acceleration))
    if scale * abs(there.value - here.value - expected) > DRIVER_ATOL + DRIVER_RTOL * scale * size:
        return 0.5
    if here.rate * there.rate < 0.0:  # it reverses within the step, which should end there
        part = here.rate / (here.rate - there.rate)
        if scale * part * abs(step * here.rate) > OVERSHOOT:
            return float(min(part, 0.9))
    return 1.0
