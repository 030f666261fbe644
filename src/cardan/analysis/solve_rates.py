"""Velocities in one pose that satisfy every joint, driver and given rate, with the least kinetic energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from cardan import joints
from cardan.analysis.assemble import assemble
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.reasons import contradiction, listed
from cardan.constraints.signal import Line
from cardan.coordinates import formulations, rates
from cardan.dynamics import tables
from cardan.dynamics.build import equations_of, new_equations
from cardan.dynamics.equations import Equations
from cardan.dynamics.integrate import Integration
from cardan.errors import ModelError
from cardan.joints import ownership
from cardan.joints.making import make
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.state import State
from cardan.system.system import System

MET: Final = 1e-9  # of the largest rate of a row, lengths relative to the extent: a larger difference is not met


def solve_rates(drawing: Drawing, state: State, given: Mapping[Any, float] | None) -> State:
    """The state with velocities; see :meth:`cardan.Mechanism.solve_rates`."""
    if not isinstance(state, State):
        raise ModelError(f"solve_rates got {state!r}; it must be a State, such as result.state")
    if given is not None and not isinstance(given, Mapping):
        raise ModelError(f"solve_rates got the rates {given!r}; they must be by joint, such as {{'A': 2.0}}")
    drawing = drawing.at(state)
    driven = _driven(drawing, state, given or {})
    sampled = any([relation.is_sampled for joint in drawing.contents.joints.values() for relation in joint.relations])
    equations, _ = new_equations(driven, follow=False) if sampled else equations_of(driven)
    return _solved(drawing.system, equations, state)


def _driven(drawing: Drawing, state: State, given: Mapping[Any, float]) -> Drawing:
    """The drawing with a driver for each given rate."""
    chosen = []
    for key in given:
        item = drawing.contents.by_key(key) if isinstance(key, str) else key
        one = ownership.chosen_coordinate(drawing.contents, "solve_rates", item, None)
        ownership.check_own(drawing.contents, "solve_rates", one)
        chosen.append(one)
    driven = drawing
    for one, rate in zip(chosen, given.values(), strict=True):
        name = f"rate of {one.joint or one.name}"
        is_one_of = bool(one.joint) and len(drawing.contents.joints[one.joint].kind.coordinates) > 1
        name += f".{one.name}" if is_one_of or driven.contents.has(name) else ""
        while driven.contents.has(name):
            name += "'"
        line = Line(one.value(state), check.number(rate, name), state.time)
        driven = driven.with_joint(make(driven.contents, joints.drive, name, (one, line), {}))
    return driven


def _solved(system: System, equations: Equations, state: State) -> State:
    """The state with velocities of the equations of motion.  system: that of kinematics."""
    found = assemble(system, state, state.time, AssemblyOptions(restarts=0))
    if not found.ok:
        raise ModelError(f"the state of solve_rates is not assembled: {found.text()}")
    own = equations.system
    known = {**state.angles, **found.state.angles}
    angles = np.array([known.get(key, 0.0) for key in own.counted_angles])
    q = formulations.to_reference(own, found.state.coordinates, angles)
    time = state.time
    run = Integration(equations, q, np.zeros(6 * len(own.names)), time, np.array([time]), end=time + 1.0)
    if run.begin() != tables.RUNNING:
        if run.push is not None:
            stops = listed([equations.stops[k].name for k in run.push.stops])
            words = f"{listed(run.push.by)} would move a coordinate beyond the limit {stops}, where it is"
            raise ModelError(f"at t = {state.time:g} s {words}; give a rate away from it, or remove the limit")
        if equations.rate_rows and (unmet := contradiction(own, equations.constraints, q, time)):
            raise ModelError(f"rates contradict each other, the joints or the rate rows (residual rates: {unmet})")
        raise ModelError(f"at t = {state.time:g} s the velocities cannot be computed: the pose cannot be kept closed")
    _check(equations, run, state.time)
    velocities, _ = rates.at_origins(own, run.q, run.v, np.zeros_like(run.v))
    return found.state.with_rates(velocities)


def _check(equations: Equations, run: Integration, time: float) -> None:
    """ModelError if rates contradict each other; it names them."""
    p, rows = equations.problem, {row.constraint: row.start for row in equations.system.rows}
    demanded = np.zeros(p.rows)
    for _, signal in equations.system.signals:
        demanded[rows[signal.name]] = signal.jet(time).rate
    if equations.system.timed:
        demanded -= formulations.time_derivative(equations.system, run.q, time)
    missing = p.scales[: p.rows] * (p.with_floats(run.floats).product(run.q, run.v) - demanded)
    missing[np.setdiff1d(np.arange(p.rows), equations.equations)] = 0.0
    missing[equations.stop_table["row"]] = 0.0
    missing[equations.joint_inertias.rows] = 0.0
    largest = float(np.abs(p.scales[: p.rows] * demanded).max(initial=0.0))
    if float(np.abs(missing).max(initial=0.0)) > MET * largest:
        names = [*dict.fromkeys((*(signal.name for _, signal in equations.system.signals), *equations.rate_rows))]
        wrong = [name for name in names if abs(missing[rows[name]]) > MET * largest] or names
        raise ModelError(
            f"rates contradict each other or the joints: {', '.join(map(repr, wrong))} cannot all be met; remove one"
        )
