"""Contacts that open, in analyses: which refuse them, and what results tell about them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.apart import LEAST_SECONDS
from cardan.analysis.assemble import assemble
from cardan.analysis.contact_record import ContactHistory
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.result import AssemblyResult, Status
from cardan.analysis.starts import Start, tail_of
from cardan.coordinates import verdict
from cardan.errors import ModelError
from cardan.joints.gaps import Touching
from cardan.system import check
from cardan.system.drawing import Drawing
from cardan.system.state import State
from cardan.system.system import System

if TYPE_CHECKING:
    from cardan.analysis.simulation import Simulation

TOUCHING = 1e-9  # of the extent: faces that are nearer touch


def refuse(drawing: Drawing, what: str) -> None:
    """ModelError if a mechanism has contacts that open, which ``what`` does not consider yet."""
    if opening := drawing.contents.opening:
        raise ModelError(
            f"{what} does not consider contacts that open yet, and {opening[0].name!r} is one (unilateral=True); "
            "use m.simulate, or a copy of the mechanism without it"
        )


def assemble_open(
    drawing: Drawing,
    free: Iterable[Any],
    start: Start,
    at_time: float | None,
    options: AssemblyOptions,
    workers: int | None = None,
) -> AssemblyResult:
    """See :meth:`cardan.Mechanism.assemble`, of a mechanism with contacts that open: their gaps are zero or more.

    The joints are closed first.  The contact that overlaps most becomes an equation, and so on, until none overlaps;
    then those are left out again without which none overlaps, so that nothing is pulled together.
    """
    began = time.perf_counter()
    system = drawing.with_free(free)
    joined = found = assemble(system, start, at_time, options, workers)
    closed: list[Any] = []
    totals = [joined.iterations, joined.restarts]

    def again(joints: list[Any]) -> AssemblyResult:
        own = options
        if own.max_seconds is not None:
            own = replace(own, max_seconds=max(own.max_seconds - (time.perf_counter() - began), LEAST_SECONDS))
        made = drawing.packed(also=joints)
        made = made.with_variables(system.variables.free) if system.variables.free else made
        result = assemble(made, joined.state, joined.state.time, own, workers)
        totals[0], totals[1] = totals[0] + result.iterations, totals[1] + result.restarts
        return result

    def deepest(state: State) -> Any:
        over = {name: one.gap for name, one in gaps(drawing, state).items() if one.gap < -bar}
        return drawing.contents.joints[min(over, key=lambda name: over[name])] if over else None

    bar = TOUCHING * drawing.system.judged_length
    while found.ok and (worst := deepest(found.state)) is not None and worst not in closed:
        closed.append(worst)
        found = again(closed)
    for one in list(closed) if found.ok and len(closed) > 1 else ():
        fewer = again([other for other in closed if other is not one])
        if fewer.ok and deepest(fewer.state) is None:
            closed.remove(one)
            found = fewer
    is_over = joined.ok and (not found.ok or deepest(found.state) is not None)
    best = joined if is_over else found
    tail = tail_of(system, best.state)
    state = system.state(best.state.coordinates, tail if tail.size else None, best.state.time)
    status = Status.TIME_LIMIT if found.status is Status.TIME_LIMIT else Status.OVERLAP
    touches = _touching(drawing, state, bar) if joined.ok else ()
    residual = max([-one.gap for one in touches], default=0.0) / drawing.system.judged_length
    return replace(
        best,
        _system=system,
        _drawn=None,  # of the contacts that were equations
        state=state,
        _residuals=verdict.residuals(system, state.coordinates, tail, state.time),
        status=status if is_over else best.status,
        residual=max(best.residual, residual) if is_over else best.residual,
        iterations=totals[0],
        restarts=totals[1],
        seconds=time.perf_counter() - began,
        touching=touches,
    )


def _touching(drawing: Drawing, state: State, bar: float) -> tuple[Touching, ...]:
    """Faces that touch or overlap, the deepest overlap first."""
    found = []
    for name, one in gaps(drawing, state).items():
        if not one.gap > bar:
            a, b = (body.name for body in drawing.contents.joints[name].bodies)
            on_b = np.asarray(one.point)
            points = tuple((on_b - one.gap * np.asarray(one.normal)).tolist()), tuple(on_b.tolist())
            found.append(Touching(a, b, float(one.gap), 0.0, points, tuple(np.asarray(one.normal).tolist()), name))
    return tuple(sorted(found, key=lambda one: one.gap))


def watching(drawing: Drawing) -> System:
    """The packed system with the contacts that open as equations, from which gaps are read."""
    found: System = drawing.system.cached("contacts that open", lambda: drawing.packed(also=_closed(drawing)))
    return found


def _closed(drawing: Drawing) -> list[Any]:
    return list(drawing.contents.opening)


def gaps(drawing: Drawing, state: State) -> dict[str, Any]:
    """By name, the contacts that open as they are in a state (:class:`cardan.joints.contacts.Contact`)."""
    touches = watching(drawing).index.contacts
    return {joint.name: touches[joint.name].read(state) for joint in drawing.contents.opening}


def coordinates(drawing: Drawing, state: State) -> dict[str, float]:
    """Contact coordinates of the contacts that open, by their keys, in a state that has none."""
    found: dict[str, float] = {}
    touches = watching(drawing).index.contacts
    for name, contact in gaps(drawing, state).items():
        touch = touches[name]
        values = np.concatenate(touch.pair.in_order(contact.parameters))
        found |= dict(zip(touch.keys, values.tolist(), strict=True))
    return found


def read_history(simulation: Simulation, name: Any) -> ContactHistory:
    """See :meth:`cardan.Simulation.contact`."""
    record, e = simulation._record, simulation._equations
    if record is not None and name in record.histories:
        return record.histories[name]
    known = [opening.name for opening in e.openings]
    if not isinstance(name, str) or name not in known:
        raise check.unknown(name, "contact that opens", [*known, *(record.histories if record is not None else ())])
    touch = e.system.index.contacts[name]
    states = list(simulation.states)
    read = [touch.read(state) for state in states]
    gap = np.array([one.gap for one in read])
    points = np.array([one.point for one in read]).reshape(-1, 3)
    normals = np.array([one.normal for one in read]).reshape(-1, 3)
    reaction = simulation.reaction(name)
    a, b = touch.pair.in_order(touch.bodies)
    velocity = np.zeros((len(states), 3))
    for body, sign in ((a, -1.0), (b, 1.0)):
        if body:
            velocity += sign * np.array(
                [_velocity(state, body, point) for state, point in zip(states, points, strict=True)]
            ).reshape(-1, 3)
    slip = velocity - np.einsum("ij,ij->i", velocity, normals)[:, None] * normals
    touching = gap < TOUCHING * e.system.judged_length
    speeds = np.where(touching, np.linalg.norm(slip, axis=1), 0.0)
    unique = np.full(len(states), bool(reaction.unique))
    if record is not None:
        unique &= ~record.are_shared(name, simulation.times)
    return ContactHistory(gap, points, np.array(reaction.force), speeds, unique, normals)


def _velocity(state: State, body: str, point: Any) -> Any:
    """Of a point of a body that is at a place in world."""
    pose = state[body]
    return pose.velocity + np.cross(pose.angular_velocity, point - pose.position)
