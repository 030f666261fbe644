"""Motion under forces: assemble the start, integrate, and say how it ended."""

from __future__ import annotations

import copy
import math
import time as clock
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import numpy as np

from cardan.analysis import one_sided
from cardan.analysis.assemble import assemble
from cardan.analysis.contact_ends import lost_contacts, refuse_jumps, told, unmet_contacts
from cardan.analysis.contact_record import ContactRecord
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.reasons import contradiction, listed
from cardan.analysis.simulation import Simulation, SimulationStatus
from cardan.analysis.simulation_options import SimulationArguments, SimulationOptions, simulation_options
from cardan.analysis.starts import start_coordinates
from cardan.constraints.signal import GivenRate, UndefinedError, last_defined
from cardan.coordinates import formulations, rates, verdict
from cardan.dynamics import joint_friction, massless, tables
from cardan.dynamics.build import connections, equations_of, new_equations
from cardan.dynamics.equations import Equations
from cardan.dynamics.functions import NotFiniteError
from cardan.dynamics.generalized_alpha import GeneralizedAlpha
from cardan.dynamics.integrate import MOST_TURN, Event, Integration, Settings
from cardan.dynamics.joint_friction import UNFITTING, FrictionRun
from cardan.dynamics.limit_conflicts import Push
from cardan.dynamics.opening import DENSE, OpeningRun
from cardan.dynamics.reactions import ROLLING, ConstraintForces
from cardan.dynamics.rebound import DENSE as REBOUNDING
from cardan.dynamics.rebound import ReboundRun
from cardan.dynamics.sliding import UNDECIDED
from cardan.dynamics.stepping import SteppedRun, UnsolvedContactsError
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.math import euler
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_freedom = LazyModule("cardan.diagnosis.freedom")
_gaps = LazyModule("cardan.joints.gaps")  # it loads all shapes

RTOL: Final = 1e-6  # where neither a step nor a tolerance is given
OUTPUTS: Final = 100  # intervals between outputs of variable steps, where no times are given
CHUNK: Final = 2000  # steps times bodies between two checks of the clock
CALLED_CHUNK: Final = 40  # the same, if loads are called by Python
MOST_NUMBERS: Final = 500_000_000  # of results: 4 GB
CHANGED: Final = 1e-9  # of the largest velocity, or absolute below 1: a larger change at the start is noted
MOVED: Final = 1e-3  # of the extent, or rad: a smaller motion in the assembly of the start closes rounded data
SAME_TIME: Final = 1e-12  # relative: a smaller difference of times is rounding
JUMP_SPAN: Final = 1e-9  # of the duration: a driver is evaluated this near to the time where a run ended, or a step
SINGULAR: Final = 1e-4  # of the largest: a smaller singular value of J tends to zero
DEPENDENT: Final = 1e-12  # of the largest: a smaller one is zero, of redundant equations
MOST_EXAMINED: Final = 200  # bodies: larger mechanisms are not examined for singular poses
MOST_NAMED: Final = 4  # constraints
SHORTER: Final = 0.8  # of the largest step that turns no body too far: the step that is proposed
ENDING: Final = 1e-6  # of the duration: a contact that ends within it ended the run
SMALLER: Final = "; use a smaller step"
LOOK_AHEAD: Final = 10  # constant steps: a motion that loses its mass within them ended the run
MOST_AHEAD: Final = 1000  # variable steps in this time: more are needed only where the run ends
KEPT: Final = "earlier results are kept; resume() continues"
UNREACHED: Final = (SimulationStatus.STEP_TOO_LARGE, SimulationStatus.STEP_TOO_SMALL)
FAILED: Final = (*UNREACHED, SimulationStatus.NOT_FINITE)
STOPPED: Final = (SimulationStatus.TIME_LIMIT, SimulationStatus.INTERRUPTED)

STATUS: Final = {
    tables.NOT_FINITE: (SimulationStatus.NOT_FINITE, "an acceleration is not finite"),
    tables.STEP_TOO_SMALL: (SimulationStatus.STEP_TOO_SMALL, "no step meets rtol"),
    tables.LOCKED: (SimulationStatus.LIMIT, "a driver pushes against a limit"),
    UNDECIDED: (
        SimulationStatus.CONTACTS,
        "contacts slip in different directions, and their forces are not unique, but would decide the motion; use "
        "fewer contacts, or m.collide with contacts='steps';",
    ),
    DENSE: (SimulationStatus.EVENTS, "contacts hit or slip too often for events; give them a smaller restitution"),
    UNFITTING: (SimulationStatus.CONTACTS, "no joints that stick or slip fit the forces and their friction"),
    REBOUNDING: (SimulationStatus.EVENTS, "limits are hit too often for events; give them a smaller restitution"),
    tables.NOT_CLOSED: (SimulationStatus.STEP_TOO_LARGE, f"the joints cannot be kept closed{SMALLER}"),
}


def simulate(
    drawing: Drawing, duration: float, state: Any, given: SimulationOptions | None, changes: SimulationArguments
) -> Simulation:
    """See :meth:`cardan.Mechanism.simulate`."""
    options = simulation_options(given, changes)
    system = drawing.system
    equations, notes = new_equations(drawing, friction=True) if drawing.contents.frictions else equations_of(drawing)
    _check_contacts(drawing, equations, options)
    own = partial(one_sided.coordinates, drawing) if drawing.contents.opening else None
    colliding = _stepped(drawing, options)
    simulation = _simulate(system, equations, duration, state, options, list(notes), touching=own, colliding=colliding)
    if simulation.status is SimulationStatus.UNDEFINED and simulation._run is not None:  # again, to the drivers' end
        packed, first = equations.system, simulation._run[0].first
        signals = [signal for _, signal in packed.signals] + [function for _, _, function in packed.timed]
        until = last_defined(signals, first, first + duration)
        if until is not None and until[0] > first:
            simulation = _simulate(system, equations, duration, state, options, list(notes), until, own, colliding)
    simulation._connections, simulation._drawing = connections(drawing), drawing
    return simulation


def _simulate(
    system: System,
    equations: Equations,
    duration: float,
    state: Any,
    options: SimulationOptions,
    notes: list[str],
    until: tuple[float, UndefinedError] | None = None,
    touching: Callable[[State], dict[str, float]] | None = None,
    colliding: Any = None,
) -> Simulation:
    """system: that of kinematics, which assembles the start.  until: the time after which a driver has no value [s].
    touching: coordinates of contacts that open in a state.  colliding: bodies that collide, for steps."""
    began = clock.perf_counter()
    duration = check.positive(duration, "duration")
    refuse_jumps(system)
    deadline = None if options.max_seconds is None else began + options.max_seconds
    of_start = AssemblyOptions(max_seconds=options.max_seconds, tolerance=options.tolerance)
    found = assemble(system, state, getattr(state, "time", None), of_start)
    if found.ok and options.tolerance > verdict.TOLERANCE:
        _check_fit(system, found.state, options.tolerance)
    first = found.state.time
    outputs = _outputs(first, duration, options.step, options.times)
    end = first + duration if until is None else until[0]
    if until is not None:
        outputs = np.append(outputs[outputs < end], end)
    if len(outputs) * equations.columns > MOST_NUMBERS:
        raise ModelError(f"{len(outputs)} outputs would take too much memory; give the times of fewer outputs: times=")
    if not found.ok:
        reason = f"at t = {first:g} s: {found.text()}"
        nothing = np.empty((0, equations.columns))
        return Simulation(equations, nothing, SimulationStatus.NOT_ASSEMBLED, reason, notes=notes)
    notes += [*_of_assembly(system, state, found.state), *found.notes]
    own = equations.system
    q = principal_pose(own, found.state, state, touching)
    given = getattr(state, "velocities", None)
    if given is not None and state.names != found.state.names:  # another order of the bodies
        given = given[[state.names.index(name) for name in found.state.names]]
    v = rates.from_origins(own, found.state, given)
    rtol = RTOL if options.step is None and options.rtol is None else options.rtol
    settings = Settings(options.method, options.step, rtol, options.max_step, options.stabilization, options.gain)
    run: Integration
    if colliding is not None:
        run = SteppedRun(equations, q, v, first, outputs, end=end, settings=settings, colliding=colliding)
    elif touching is not None:
        run = OpeningRun(equations, q, v, first, outputs, end=end, settings=settings, impacts=options.impacts)
    elif equations.frictions:
        run = FrictionRun(equations, q, v, first, outputs, end=end, settings=settings, impacts=options.impacts)
    elif any(stop.restitution for stop in equations.stops) and options.method != "generalized_alpha":
        run = ReboundRun(equations, q, v, first, outputs, end=end, settings=settings, impacts=options.impacts)
    else:
        kind = GeneralizedAlpha if options.method == "generalized_alpha" else Integration
        run = kind(equations, q, v, first, outputs, end=end, settings=settings)
    idle = massless.examine(run)
    notes += idle.notes
    if isinstance(run, OpeningRun):
        run.refuse_turning(idle.basis)
    notes += joint_friction.notes(run) if isinstance(run, FrictionRun) else []
    code = run.begin()
    if run.control.redundant and code == tables.RUNNING:
        notes += _of_redundancy(system, run, found.state)
    if given is not None and not run.had_hits:  # hits at the start are no contradiction
        change = float(np.abs(run.v - v).max(initial=0.0))
        if change > CHANGED * max(1.0, float(np.abs(v).max(initial=0.0))):
            text = "the velocities at the start contradict joints or drivers; they were changed by up to"
            notes.append(f"{text} {change:.3g}")
    made = _go_on(run, code, end, notes, deadline, options.progress, "" if until is None else str(until[1]))
    made._start = (q, v)
    return made


def _check_fit(system: System, state: State, tolerance: float) -> None:
    """ModelError if the data fit only within the tolerance: dependent equations then lock the motion."""
    found = _freedom.diagnose(system, state, tolerance)
    if found.by_tolerance:
        names = ", ".join(dict.fromkeys(repr(equation.constraint) for equation in found.redundant))
        raise ModelError(
            f"the joints fit each other only within the tolerance {tolerance:g}: in a simulation they would lock "
            f"{found.by_tolerance} freedoms; give exact data, or remove redundant equations ({names})"
        )


def _of_assembly(system: System, start: Any, found: State) -> list[str]:
    """A note on a start that was not assembled, with the body that the assembly moved most."""
    before, after = start_coordinates(system, start), found.coordinates
    way = np.linalg.norm(after[:, :3] - before[:, :3], axis=1)
    turn = np.linalg.norm(euler.log(euler.multiply(euler.conjugate(before[:, 3:]), after[:, 3:])), axis=1)
    sizes = np.maximum(way / system.judged_length, turn)
    if not sizes.max(initial=0.0) > MOVED:
        return []
    k = int(sizes.argmax())
    how = [f"moved by {way[k]:.3g} m"] * bool(way[k] > MOVED * system.judged_length)
    how += [f"turned by {np.degrees(turn[k]):.3g}°"] * bool(turn[k] > MOVED)
    return [f"the start was not assembled: body {system.names[k]!r} was {' and '.join(how)} to assemble it"]


def _of_redundancy(system: System, run: Integration, state: State) -> list[str]:
    """Notes on a start with redundant equations: a shaky structure, and drivers that share their efforts."""
    notes = []
    count = _freedom.infinitesimal(system, state)
    if count:
        notes.append(
            f"shaky at the start: {count} {'freedom is' if count == 1 else 'freedoms are'} infinitesimal only; along "
            "them reactions are unbounded, and the results depend on rounding"
        )
    signals = run.equations.system.signals
    if signals:
        e = run.equations
        forces = ConstraintForces(e, np.array([run.time]), run.q[None], np.zeros((1, e.equations.size)), redundant=True)
        shared = [signal.name for _, signal in signals if forces.is_shared(signal.name)]
        if shared:
            names = ", ".join(map(repr, shared))
            notes.append(f"the efforts of {names} are not unique, because equations are redundant: the least are given")
    return notes


def resume(simulation: Simulation, max_seconds: float | None, progress: Callable[[float], None] | None) -> Simulation:
    """See :meth:`cardan.analysis.simulation.Simulation.resume`."""
    deadline = None if max_seconds is None else clock.perf_counter() + check.positive(max_seconds, "max_seconds")
    if simulation._run is None and simulation.status in STOPPED:
        raise ModelError("a simulation that was loaded cannot be resumed; simulate from its last state")
    if simulation._run is None or simulation.status not in STOPPED:
        raise ModelError(f"the simulation ended ({simulation.status}); only one that was stopped can be resumed")
    run, last = simulation._run
    given = copy.deepcopy(run), tables.RUNNING, last, list(simulation._notes), deadline, progress
    return _go_on(*given, simulation._undefined)


def _go_on(
    run: Integration,
    code: int,
    last: float,
    notes: list[str],
    deadline: float | None,
    progress: Callable[[float], None] | None,
    undefined: str,
) -> Simulation:
    """Integrate until the time ``last``, or until it ends for another reason.

    undefined: why a driver has no value later, if the run was to go on.
    """
    c = run.control
    run.deadline = np.inf if deadline is None else deadline
    first = run.first
    by_python = run.job.asks or isinstance(run, GeneralizedAlpha)
    chunk = max(1, (CALLED_CHUNK if by_python else CHUNK) // len(run.equations.system.names))
    status, reason = SimulationStatus.DONE, ""
    try:
        while code == tables.RUNNING:
            if run.turns_far:
                status, reason = SimulationStatus.STEP_TOO_LARGE, _of_turn(run)
                break
            code = run.advance(last, chunk)
            if progress is not None:
                progress((run.time - first) / (last - first))
            if c.error > tables.MOST_ERROR and c.rtol == 0.0:
                status = SimulationStatus.STEP_TOO_LARGE
                reason = f"the error of a step is about {c.error:.1g} at t = {run.time:g} s{SMALLER}"
                break
            if code == tables.RUNNING and deadline is not None and clock.perf_counter() > deadline:
                status, reason = SimulationStatus.TIME_LIMIT, f"stopped at t = {run.time:g} s; {KEPT}"
                break
    except KeyboardInterrupt:
        status, reason = SimulationStatus.INTERRUPTED, f"interrupted at t = {run.time:g} s; {KEPT}"
    except UndefinedError as error:
        status, reason = SimulationStatus.UNDEFINED, f"{error}; earlier results are kept"
    except NotFiniteError as error:
        status, reason = SimulationStatus.NOT_FINITE, f"{error}; earlier results are kept"
    except UnsolvedContactsError as error:
        status, reason = SimulationStatus.CONTACTS, f"{error}{SMALLER}; earlier results are kept"
    if code in STATUS:
        status, reason = _of_end(run, code, last)
    if undefined and status is SimulationStatus.DONE:
        status, reason = SimulationStatus.UNDEFINED, f"the drivers end at t = {last:g} s: {undefined}"
    if status in UNREACHED and not run.turns_far:
        reason = _explained(run, reason)
    if code == tables.NOT_CLOSED and (unmet := _contradicted_rates(run)):
        reason = f"no velocities satisfy the drivers, the joints and the rate rows at t = {run.time:g} s ({unmet})"
    ended = tables.Control.read(c.as_floats)
    count = _closed_count(run) if status in FAILED else run.reached
    simulation = Simulation(
        run.equations,
        run.results[:count],
        status,
        reason,
        notes=[*notes, *[note for note in getattr(run, "notes", ()) if note not in notes]],
        steps=int(ended.taken),
        refused=int(ended.refused),
        error=float(ended.error),
        redundant=bool(ended.redundant),
        events=run.events,
    )
    simulation._record = _record(run, count)
    simulation._run, simulation._undefined = (run, last), undefined
    return simulation


def _record(run: Integration, count: int) -> ContactRecord | None:
    """What is kept of contacts that open and of limits that are hit, at the first outputs."""
    if not isinstance(run, SteppedRun | OpeningRun | ReboundRun):
        return None
    times = run.results[:count, 0]
    if isinstance(run, SteppedRun):
        hits, friction, steps = run.losses(times)
        return ContactRecord(hits, friction, penetration=run.penetration, error=run.contact_error, lost_steps=steps)
    if isinstance(run, ReboundRun):
        lost = run.lost_friction()[:count] if isinstance(run, FrictionRun) else np.zeros(count)
        return ContactRecord(run.lost_impact()[:count], lost)
    return ContactRecord(*run.lost(times), error=run.contact_error, shared=tuple(run.shared))


def _stepped(drawing: Drawing, options: SimulationOptions) -> Any:
    """The bodies that collide, if a run takes steps with their contacts; ModelError if it cannot."""
    if options.contacts != "steps":
        return None
    contents = drawing.contents
    if not contents.collisions:
        raise ModelError("contacts is 'steps', but no bodies collide; add m.collide(...), or leave contacts out")
    if options.step is None:
        raise ModelError("contacts is 'steps', which are constant; give step= [s]")
    if options.method != "adams" or options.stabilization != "projection":
        raise ModelError("contacts is 'steps', which has a method of its own; leave out method= and stabilization=")
    if options.impacts != "together":
        raise ModelError("contacts is 'steps', where hits of a step are one problem; leave out impacts='in_turn'")
    return _gaps.Colliding(contents, list(contents.collisions.values()))


def _check_contacts(drawing: Drawing, equations: Equations, options: SimulationOptions) -> None:
    """ModelError if the options, or the limits, do not serve the contacts that open."""
    rebounding = [stop.name for stop in equations.stops if stop.restitution]
    if rebounding and options.stabilization != "projection":
        raise ModelError(
            f"limit {rebounding[0]!r} has a restitution, but stabilization is {options.stabilization!r}; hits need "
            "'projection'"
        )
    if equations.frictions:
        _check_friction(equations.frictions[0].joint, drawing, options)
    if not (opening := drawing.contents.opening):
        return
    name = f"contact {opening[0].name!r} opens"
    rough = [joint.name for joint in opening if "friction" in dict(joint.parameters)]
    for own in rough:
        if (row := f"{own}{ROLLING}") in drawing.contents.joints or row in drawing.contents.rate_rows:
            raise ModelError(f"contact {own!r} has friction, whose rows are named {row!r}; rename that constraint")
    if options.impacts == "in_turn" and rough:
        raise ModelError(
            f"contact {rough[0]!r} has friction, but impacts is 'in_turn', which is for hits without friction; use "
            "'together'"
        )
    if options.contacts == "steps":
        raise ModelError(f"{name}, but contacts is 'steps', which serves bodies that collide; use 'events'")
    if options.method == "generalized_alpha":
        raise ModelError(f"{name}, but method is 'generalized_alpha', which has no events; use 'adams'")
    if options.stabilization != "projection":
        raise ModelError(f"{name}, but stabilization is {options.stabilization!r}; contacts need 'projection'")
    if rebounding:
        raise ModelError(
            f"{name}, and limit {rebounding[0]!r} has a restitution: simulate does not consider hits of both in one "
            "mechanism yet; leave out the restitution of the limit"
        )


def _check_friction(joint: str, drawing: Drawing, options: SimulationOptions) -> None:
    """ModelError if the options, or contacts that open, do not serve the friction of joints."""
    what = f"joint {joint!r} has friction"
    if drawing.contents.opening:
        raise ModelError(
            f"{what}, and contact {drawing.contents.opening[0].name!r} opens: simulate does not consider both in one "
            "mechanism yet; leave out friction= of the joint"
        )
    if options.contacts == "steps":
        raise ModelError(f"{what}, but contacts is 'steps', which does not consider it; use 'events'")
    if options.method == "generalized_alpha":
        raise ModelError(f"{what}, but method is 'generalized_alpha', which has no events; use 'adams'")
    if options.stabilization != "projection":
        raise ModelError(f"{what}, but stabilization is {options.stabilization!r}; friction needs 'projection'")


def _closed_count(run: Integration) -> int:
    """Number of results, without those at the end whose joints are open; the first one is always kept."""
    equations, count = run.equations, run.reached
    system = equations.system
    others = {*(stop.name for stop in equations.stops), *equations.inertias, *equations.rate_rows}
    others.update(one.name for one in equations.frictions)
    joints = [row.start + k for row in system.rows if row.constraint not in others for k in range(row.primitive.rows)]
    while count > 1:
        time, q = float(run.results[count - 1, 0]), run.results[count - 1, 1 : 1 + run.q.size]
        poses, angles = formulations.from_reference(system, q), formulations.angles(system, q)
        open_by = np.abs(verdict.residuals(system, poses, angles, time))
        if not (open_by > verdict.row_bounds(system, poses, angles, tables.MOST_ERROR))[joints].any():
            break
        count -= 1
    return count


def _of_end(run: Integration, code: int, last: float) -> tuple[SimulationStatus, str]:
    """The status of a run that its kernel has ended before the time ``last``, and the reason, in words."""
    status, words = STATUS[code]
    names = run.undefined_loads() if code == tables.NOT_FINITE else []
    if names:
        verb = "has" if len(names) == 1 else "have"
        words += f", because {', '.join(map(repr, names))} {verb} no finite force"
    elif code == tables.NOT_FINITE and isinstance(run, FrictionRun) and run.failed:
        words += f", because the friction of {listed(run.failed)} allows no finite force"
    elif code == tables.NOT_FINITE and (lost_mass := massless.lost_mass(run)):
        words += f", because {lost_mass.text}"
    elif run.push is not None:
        words = _of_push(run, run.push)
        run.end_here()
    elif lost := lost_contacts(run.equations.system, run.q, ENDING * (last - run.first) * run.v):
        status, words = SimulationStatus.CONTACT, f"{told(lost)};"
        run.events += [Event(run.time, name, "contact ended") for name in lost]
        run.end_here()
    elif run.reached == 0 and (apart := unmet_contacts(run.equations.system, run.q)):
        status = SimulationStatus.CONTACT
        words = (
            f"contact {', '.join(map(repr, apart))} has no points with opposed normals, because a face is beyond the "
            "edge of the other; move a body, or make the shapes larger;"
        )
    return status, f"{words} at t = {run.time:g} s; earlier results are kept"


def _of_turn(run: Integration) -> str:
    """A constant step that turns a body too far to find stops within it, in words."""
    most = float(run.control.turn_step)
    names = [stop.name for stop in run.equations.stops if not stop.is_turn]
    return (
        f"a step turns a body by {MOST_TURN * run.step / most:.3g} rad at t = {run.time:g} s, so that it could pass "
        f"{'limits' if len(names) > 1 else 'limit'} {listed(names[:MOST_NAMED])} and return; use a step of "
        f"{SHORTER * most:.2g} s, or rtol"
    )


def _of_push(run: Integration, push: Push) -> str:
    """Drivers that push against limits, in words."""
    e = run.equations
    drivers = {signal.name for _, signal in e.system.signals}
    word = ("driver" if drivers.issuperset(push.by) else "constraint") + ("s" if len(push.by) > 1 else "")
    touching = {one.name for one in e.openings}
    names = [e.stops[k].name for k in push.stops]
    sides = [f"{e.stops[k].name!r} ({'lower' if run.bounds['side'][k] < 0.0 else 'upper'})" for k in push.stops]
    against = f"{'limits' if len(sides) > 1 else 'limit'} {', '.join(sides)}"
    if touching.intersection(names):
        against = f"{'closed contacts' if len(names) > 1 else 'closed contact'} {', '.join(map(repr, names))}"
    return f"{word} {listed(push.by)} {'push' if len(push.by) > 1 else 'pushes'} against {against}"


def _contradicted_rates(run: Integration) -> str:
    """Residual rates of what contradicts the rate rows, in words; "" if nothing does."""
    e = run.equations
    unmet = contradiction(e.system, e.constraints, run.q, run.time) if e.rate_rows else ""
    return f"residual rates: {unmet}" if unmet else ""


def _explained(run: Integration, reason: str) -> str:
    """The reason of a run whose steps cannot reach its end, with the cause if it is known."""
    if jump := _driver_reason(run):
        return reason + jump
    if lost := _massless_reason(run):
        return reason.replace(SMALLER, "") + lost
    return reason + _singular_reason(run)


def _driver_reason(run: Integration) -> str:
    """Whether drivers caused the end of a run, because they jump or are inconsistent, in words; "" if not."""
    system = run.equations.system
    if not system.signals:
        return ""
    unmet = contradiction(system, run.equations.constraints, run.q, run.time)
    if unmet:
        return f"; no velocities satisfy the drivers and the joints (residual rates: {unmet})"
    h = 2.0 * max(run.step or 0.0, JUMP_SPAN * float(run.times[-1] - run.first))
    for _, signal in system.signals:
        if isinstance(signal, GivenRate):
            continue
        times = np.array([run.time - h, run.time, run.time + h])
        try:
            value, rate, _ = signal.jets(times).T
        except ModelError:  # it is not defined there
            continue
        jump = np.abs(np.diff(value) - 0.5 * h * (rate[1:] + rate[:-1])).max()
        if jump > tables.MOST_ERROR:
            return f"; driver {signal.name!r} jumps by about {jump:.3g} near t = {run.time:g} s"
    return ""


def _massless_reason(run: Integration) -> str:
    """Whether a run ended near a pose where a motion loses its mass, in words; "" if not.

    Constant steps end at some distance from it: variable ones go on from there.
    """
    if found := massless.lost_mass(run):
        return f"; near this pose {found.text}"
    if not run.equations.is_massless or run.control.rtol > 0.0:
        return ""
    end = run.time + LOOK_AHEAD * run.step
    ahead = Integration(run.equations, run.q, run.v, run.time, np.empty(0), end=end, settings=Settings(rtol=RTOL))
    try:
        code = ahead.begin()
        if code == tables.RUNNING:
            code = ahead.advance(end, MOST_AHEAD)
    except (UndefinedError, NotFiniteError):  # the mass is not the cause
        return ""
    lost = massless.lost_mass(ahead) if code in (tables.RUNNING, tables.NOT_FINITE, tables.STEP_TOO_SMALL) else None
    return f"; smaller steps end too, near t = {ahead.time:.4g} s, where {lost.text}" if lost else ""


def _singular_reason(run: Integration) -> str:
    """Whether a run ended near a singular pose, in words; "" if not.

    There a singular value σ of J tends to zero.  A force along its direction needs a reaction of that force over σ.
    The motion itself may be smooth on its branch, but other branches begin in this pose, and rounding over σ² decides
    which one is followed.  A run that comes so near that no step meets its tolerance ends.  Examined are the last pose
    and the one that a step from there led to.
    """
    e = run.equations
    if len(e.system.names) > MOST_EXAMINED:
        return ""
    tolerance = float(run.control.rtol)
    small = max(SINGULAR, math.sqrt(np.finfo(float).eps / tolerance) if tolerance > 0.0 else 0.0)
    for q in (run.q, run.tried_pose):
        jacobian = e.problem.with_floats(run.floats).jacobian(q)[1][e.equations] / np.sqrt(e.metric.ravel())
        jacobian *= ((run.active == 1.0) & (e.compliances == 0.0))[:, None]
        lengths = np.linalg.norm(jacobian, axis=1)
        if not np.isfinite(lengths).all() or not lengths.size:
            continue
        left, sigma, _ = np.linalg.svd(jacobian / np.where(lengths > 0.0, lengths, 1.0)[:, None], full_matrices=False)
        near = (sigma < small * sigma[0]) & (sigma > DEPENDENT * sigma[0])
        if near.any():
            break
    else:
        return ""
    weights = np.abs(left[:, near]).max(axis=1)
    owner = {row.start + i: row.constraint for row in e.system.rows for i in range(row.primitive.rows)}
    names = dict.fromkeys(owner[int(e.equations[k])] for k in np.argsort(-weights) if weights[k] > 0.1 * weights.max())
    listed = ", ".join(map(repr, list(names)[:MOST_NAMED])) + (", …" if len(names) > MOST_NAMED else "")
    return f"; it is near a singular pose, where the reactions of {listed} grow without bound"


def _outputs(first: float, duration: float, step: float | None, times: Iterable[float] | None = None) -> FloatArray:
    """Output times [s], increasing; those given, every step, or OUTPUTS intervals."""
    if times is None:
        count = OUTPUTS if step is None else max(1, math.ceil(min(duration / step, MOST_NUMBERS) * (1.0 - SAME_TIME)))
        if count >= MOST_NUMBERS:
            raise ModelError(
                f"step is {step}; in {duration:g} s it gives too many outputs: give times=, or a larger step"
            )
        grid = np.arange(count + 1) * (duration / count if step is None else step)
        grid[-1] = duration
        return np.array(first + grid, dtype=np.float64)
    if not isinstance(times, Iterable):
        raise ModelError(f"times is {times!r}; it must be a list of output times [s]")
    found = np.array([check.number(t, "an output time") for t in times])
    if not found.size or not (np.diff(found) > 0.0).all():
        raise ModelError(f"times are {found.tolist()}; they must increase, and there must be one at least")
    if found[0] < first or found[-1] > first + duration + SAME_TIME * (abs(first) + duration):
        raise ModelError(
            f"times go from {found[0]:g} to {found[-1]:g} s; they must lie within {first:g} … {first + duration:g} s"
        )
    return found


def principal_pose(
    system: System, found: State, start: Any, touching: Callable[[State], dict[str, float]] | None = None
) -> FloatArray:
    """q of the principal frames in a state that was assembled from a start; touching: as of :func:`_simulate`."""
    known = {**getattr(start, "angles", {}), **found.angles}  # loads may count angles that kinematics does not
    if touching is not None:
        known |= touching(found)
    angles = np.array([known.get(key, 0.0) for key in system.counted_angles])
    return formulations.to_reference(system, found.coordinates, angles)
