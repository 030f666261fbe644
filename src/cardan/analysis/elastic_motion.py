"""Simulations of mechanisms with flexible bodies: the equations of :mod:`cardan.dynamics.elastic`, integrated.

    [ M  Jᵀ ] [ v̇ ]   [ Q − h − Kη − Dη̇ ]
    [ J  0  ] [ λ ] = [ γ               ]

The method is DOP853 [Hairer1993] with an error control of every step.  After each step the pose is put back onto the
constraints, by the least change, and the velocities, by that of least kinetic energy.  Of redundant equations a largest
independent set is kept.  All of it is dense and in Python: it is for mechanisms of a few bodies.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cardan.analysis.contact_record import Energy
from cardan.analysis.elastic import assemble_elastic
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.simulation import Simulation, SimulationStatus
from cardan.analysis.simulation_options import SimulationOptions
from cardan.analysis.starts import start_angles
from cardan.calls import explains
from cardan.coordinates import rates
from cardan.dynamics.elastic import WIDTH, ElasticEquations, refuse_items
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.drawing import Drawing
from cardan.system.parts import Body, Frame, Point
from cardan.system.state import FloatArray, State

RTOL: Final = 1e-6  # where none is given
OUTPUTS: Final = 101  # where no times are given
LEAST_RTOL: Final = 1e-12
INDEPENDENT: Final = 1e-9  # of the largest pivot: smaller ones belong to redundant equations
LEAST_MASS: Final = 1e-13  # of the largest, along the free motions


@explains()
@dataclass(frozen=True, slots=True, eq=False)
class FlexibleSimulation:
    """The motion of a mechanism with flexible bodies.

    ``ok``: it reached the end.  ``status``, ``reason``: how it ended.  ``times`` [s] and ``states`` of the outputs:
    with velocities of the bodies, and elastic coordinates in ``state.variables``.  ``shapes``, ``shape_rates``: by
    body, its elastic coordinates and their rates, shape (times, n).  ``energy``: potential energy with that of
    deformation.  ``strain`` [J]: of deformation alone, shape (times,).  ``drift``: the largest residual of the joints
    in each output, in radians and relative to the extent.  ``steps``: their number.  ``notes``: what is assumed about
    masses.
    """

    status: SimulationStatus
    reason: str
    times: FloatArray
    states: tuple[State, ...]
    shapes: dict[str, FloatArray]
    shape_rates: dict[str, FloatArray]
    energy: Energy
    strain: FloatArray
    drift: FloatArray
    steps: int
    notes: tuple[str, ...]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """ModelError for what a simulation of rigid bodies has in addition."""
            if name.startswith("_") or not hasattr(Simulation, name):
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            told = ", ".join(map(repr, self.shapes))
            raise ModelError(
                f"a simulation with flexible bodies ({told}) has no {name!r} yet; it has states, trace, shapes, energy"
            )

    @property
    def ok(self) -> bool:
        """It reached the end."""
        return self.status is SimulationStatus.DONE

    def trace(self, place: Point | Frame | Body) -> FloatArray:
        """Where a point of a body is in world [m], shape (times, 3); it follows the deformation."""
        point = place.point() if isinstance(place, Frame | Body) else place
        if not isinstance(point, Point) or any(point.body.name not in state for state in self.states[:1]):
            raise ModelError(f"trace was given {place!r:.80}; it must be a point, a frame or a body of the mechanism")
        feature = point.feature()
        return np.array([state[point.body.name].point(feature.at(state.variables)) for state in self.states])

    def text(self) -> str:
        """How it ended, in words."""
        end = f"t = {self.times[0]:g} … {self.times[-1]:g} s, " if len(self.times) else ""
        lines = [f"{self.status}: {end}{len(self.times)} times, {self.steps} steps"]
        lines += [f"  {self.reason}"] if self.reason else []
        return "\n".join([*lines, *[f"  note: {note}" for note in self.notes]])

    def __repr__(self) -> str:
        return f"<FlexibleSimulation {self.text().splitlines()[0]}>"


@dataclass(slots=True)
class _Kept:
    """What is kept of the outputs."""

    times: list[float] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    eta: list[FloatArray] = field(default_factory=list)
    eta_rates: list[FloatArray] = field(default_factory=list)
    energies: list[tuple[float, float, float]] = field(default_factory=list)
    drift: list[float] = field(default_factory=list)


class _Run:
    """One integration: z and v at a time, and the rows that are independent."""

    def __init__(self, e: ElasticEquations, z: FloatArray, v: FloatArray) -> None:
        self.e, self.z = e, z
        self.poses = layout.POSE * e.count
        self.n = e.scales.size - e.first
        self.K, self.D = e.elastic("stiffness"), e.elastic("damping")
        self.tail = z[self.poses + self.n :]
        self.rows = self._independent()
        N = e.free_motions(z)
        M = N.T @ e.mass(z) @ N
        if M.size and np.linalg.eigvalsh(M)[0] <= LEAST_MASS * np.abs(M).max():
            raise ModelError("simulate with flexible bodies needs masses for all that moves; give masses to the bodies")
        self.v = self.allowed(z, v)

    def _independent(self) -> Any:
        from scipy.linalg import qr  # type: ignore[import-untyped, unused-ignore]

        J = self.e.jacobian(self.z) * self.e.scales
        if not J.size:
            return np.zeros(0, dtype=np.int64)
        _, R, order = qr(J.T, mode="economic", pivoting=True)
        pivots = np.abs(np.diag(R))
        return np.sort(order[: int((pivots > INDEPENDENT * max(pivots[0], 1e-300)).sum())])

    def full(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """z and v of the integrator's vector."""
        size = self.poses + self.n
        z = np.concatenate([y[:size], self.tail])
        own = z[: self.poses].reshape(-1, layout.POSE)
        own[:, 3:] = euler.normalize(own[:, 3:])
        if self.tail.size:
            z = self.e.problem.retract(z, np.zeros(self.e.scales.size))
        return z, y[size:]

    def packed(self) -> FloatArray:
        return np.concatenate([self.z[: self.poses + self.n], self.v])

    def slope(self, t: float, y: FloatArray) -> FloatArray:
        """ẏ."""
        e = self.e
        e.set_time(t)
        z, v = self.full(y)
        right = e.applied(z, v) - e.bias(z, v) - self.K @ e.shape(z) - self.D @ v
        found = self._solve(z, right, e.gamma(z, v)[self.rows])
        rates_of_poses = np.empty((e.count, layout.POSE))
        bodies = v[: e.first].reshape(-1, WIDTH)
        p = y[: self.poses].reshape(-1, layout.POSE)[:, 3:]
        rates_of_poses[:, :3], rates_of_poses[:, 3:] = bodies[:, :3], euler.rate_from_body(p, bodies[:, 3:])
        return np.concatenate([rates_of_poses.ravel(), v[e.first :], found])

    def _solve(self, z: FloatArray, force: FloatArray, right: FloatArray) -> FloatArray:
        e, n, m = self.e, self.e.scales.size, self.rows.size
        J = e.jacobian(z)[self.rows]
        matrix = np.zeros((n + m, n + m))
        matrix[:n, :n], matrix[:n, n:], matrix[n:, :n] = e.mass(z), J.T, J
        return np.asarray(np.linalg.solve(matrix, np.concatenate([force, right]))[:n])

    def allowed(self, z: FloatArray, v: FloatArray) -> FloatArray:
        """The velocities of the joints and drivers that are nearest in kinetic energy."""
        e = self.e
        driven, _ = rates.driver_rates(e.system, e.problem, e.time, z)
        missing = (e.rows * driven - e.jacobian(z) @ v)[self.rows]
        return np.asarray(v + self._solve(z, np.zeros_like(v), missing))

    def accept(self, t: float, y: FloatArray) -> bool:
        """Take a step, put back onto the constraints; False if that is not possible."""
        e = self.e
        e.set_time(t)
        z, v = self.full(y)
        closed = e.closed(z)
        if closed is None:
            return False
        self.z, self.v = closed, self.allowed(closed, v)
        self.tail = self.z[self.poses + self.n :]
        return True

    def keep(self, kept: _Kept, t: float) -> None:
        """Keep the present instant as an output."""
        e = self.e
        state = e.state(self.z, self.v)
        eta = e.eta(self.z)
        kept.times.append(t)
        kept.states.append(state)
        kept.eta.append(eta.copy())
        kept.eta_rates.append(self.v[e.first :].copy())
        strain = 0.5 * float(e.shape(self.z) @ self.K @ e.shape(self.z))
        kept.energies.append((0.5 * float(self.v @ e.mass(self.z) @ self.v), e.potential(self.z) + strain, strain))
        kept.drift.append(float(np.abs(e.problem.residual(self.z) * e.rows).max(initial=0.0)))


def _refuse_options(o: SimulationOptions, drawing: Drawing) -> None:
    given: dict[str, Any] = {"method": None if o.method == "adams" else o.method}
    given |= {"stabilization": None if o.stabilization == "projection" else o.stabilization}
    given |= {"contacts": None if o.contacts == "auto" else o.contacts}
    given |= {"impacts": None if o.impacts == "together" else o.impacts}
    given |= {"gain": o.gain, "step": o.step}  # last: others need them
    for word, value in given.items():
        if value is not None:
            names = ", ".join(repr(one.body) for one in drawing.contents.flexible)
            raise ModelError(
                f"{word} is {value!r}, but simulations with flexible bodies ({names}) have one method, with rtol=; "
                f"omit {word}="
            )


def _output_times(o: SimulationOptions, start: float, duration: float) -> FloatArray:
    if o.times is None:
        return np.asarray(start + np.linspace(0.0, duration, OUTPUTS))
    found = np.array([check.number(one, "an output time") for one in o.times])
    if not found.size or (np.diff(found) <= 0).any() or found[0] < start or found[-1] > start + duration * (1 + 1e-12):
        raise ModelError(
            f"times are {found.tolist()!r:.80}; they must increase, from {start:g} to {start + duration:g} s"
        )
    return found


def simulate(drawing: Drawing, duration: Any, start: Any, options: SimulationOptions) -> FlexibleSimulation:
    """See :meth:`cardan.Mechanism.simulate`."""
    refuse_items(drawing, "simulate")
    _refuse_options(options, drawing)
    length = check.positive(duration, "the duration of a simulation")
    begin, why = start, "the state does not close the joints; pass m.assemble(state).state"
    if not isinstance(start, State):
        found = assemble_elastic(drawing, (), start, None, AssemblyOptions(tolerance=options.tolerance), (None, None))
        begin, why = found.state, found.text()
    first = begin.time
    e = ElasticEquations(drawing, first)
    times = _output_times(options, first, length)
    kept, steps = _Kept(), 0
    status, reason = SimulationStatus.DONE, ""
    z = e.closed(e.start(begin, start_angles(e.system, begin)))
    if z is None:
        return _result(e, kept, SimulationStatus.NOT_ASSEMBLED, why, 0)
    run = _Run(e, z, e.velocities(begin))
    until = None if options.max_seconds is None else clock.perf_counter() + options.max_seconds
    t, h = first, None
    try:
        for target in times.tolist():
            if target > t:
                t, h, count, status, reason = _advance(run, t, target, h, options, length, until)
                steps += count
                if options.progress is not None:
                    options.progress((t - first) / length)
            if status is not SimulationStatus.DONE:
                break
            run.keep(kept, t)
    except KeyboardInterrupt:
        status, reason = SimulationStatus.INTERRUPTED, f"interrupted at t = {t:g} s"
    return _result(e, kept, status, reason, steps)


def _advance(
    run: _Run, t: float, target: float, h: float | None, o: SimulationOptions, duration: float, until: float | None
) -> tuple[float, float | None, int, SimulationStatus, str]:
    """Integrate to a time; returns the time reached, the last step, the number of steps, how and why it ended."""
    from scipy.integrate import DOP853  # type: ignore[import-untyped, unused-ignore]

    rtol = max(LEAST_RTOL, RTOL if o.rtol is None else o.rtol)
    e = run.e
    of_poses = np.tile([*[e.system.judged_length] * 3, *[1.0] * 4], e.count)
    atol = rtol * np.concatenate([of_poses, e.scales[e.first :], e.scales])
    most = min(duration / 100.0 if o.max_step is None else o.max_step, target - t)
    slope: Callable[[float, FloatArray], FloatArray] = run.slope
    given = {"rtol": rtol, "atol": atol, "max_step": most}
    solver = DOP853(slope, t, run.packed(), target, first_step=None if h is None else min(h, most), **given)
    steps = 0
    while solver.status == "running":
        try:
            message = solver.step()
        except (np.linalg.LinAlgError, ValueError):
            message = "the equations have no solution"
        if message is not None or not run.accept(solver.t, solver.y):
            reason = f"at t = {solver.t:g} s: {message or 'the joints could not be closed'}"
            return run.e.time, h, steps, SimulationStatus.STEP_TOO_SMALL, reason
        steps += 1
        h = solver.step_size if solver.status == "running" or h is None else max(h, solver.step_size)
        solver.y = run.packed()
        solver.f = slope(solver.t, solver.y)
        if until is not None and clock.perf_counter() > until:
            return solver.t, h, steps, SimulationStatus.TIME_LIMIT, f"max_seconds passed at t = {solver.t:g} s"
    return target, h, steps, SimulationStatus.DONE, ""


def _result(e: ElasticEquations, kept: _Kept, status: SimulationStatus, reason: str, steps: int) -> FlexibleSimulation:
    count = len(kept.times)
    eta, eta_rates = (np.array(one).reshape(count, -1) for one in (kept.eta, kept.eta_rates))
    names = [(e.system.names[one.body], one.columns.start - e.first, one.columns.stop - e.first) for one in e.flexible]
    energies = np.array(kept.energies).reshape(count, 3)
    return FlexibleSimulation(
        status,
        reason,
        np.array(kept.times),
        tuple(kept.states),
        {name: eta[:, a:b] for name, a, b in names} if count else {},
        {name: eta_rates[:, a:b] for name, a, b in names} if count else {},
        Energy(energies[:, 0], energies[:, 1]),
        energies[:, 2],
        np.array(kept.drift),
        steps,
        tuple(e.notes),
    )
