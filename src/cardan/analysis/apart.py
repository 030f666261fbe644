"""Assembly of parts that must not overlap (:meth:`cardan.Mechanism.collide`).

The mechanism is first assembled by its joints alone.  Pairs of solids that overlap in the pose found get a row each
(:mod:`cardan.joints.gaps`), and it is assembled again from there, until no pair overlaps that has no row.  So a pose in
which nothing overlaps costs one broad phase, parts that are apart are never connected, and the verdict judges the gaps
as it judges joints: relative to the extent of the piece.

If no such pose is found, the joints are closed again, near the pose in which they and the gaps are met best.  The
status is then ``overlap``, and the pairs are named: the joints by themselves do not contradict each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cardan.analysis.assemble import assemble
from cardan.analysis.options import AUTO, AssemblyOptions
from cardan.analysis.result import AssemblyResult, Status
from cardan.analysis.starts import Start, start_coordinates, tail_of
from cardan.coordinates import verdict
from cardan.diagnosis.freedom import Diagnosis
from cardan.diagnosis.second_order import RANK_RTOL
from cardan.errors import ModelError
from cardan.joints.gaps import Colliding, Touching
from cardan.system.drawing import Contents, Drawing
from cardan.system.residuals import violations
from cardan.system.state import State
from cardan.system.system import System

# Two solids touch if their gap is less than this share of the size of the smaller one: far above the residuals of an
# assembly, far below any gap that matters in a design.
TOUCHING = 1e-9
RESTARTS = 24  # of an assembly with rows of gaps: random poses seldom help where the parts at hand do not fit
LEAST_SECONDS = 1e-9  # left of a limit of time that has passed

Pairs = Mapping[tuple[int, int], float]  # margins [m] by numbers of two solids


def colliding(contents: Contents) -> Colliding:
    """The solids of a mechanism that must not overlap; made once."""
    return contents.colliding(lambda: Colliding(contents, list(contents.collisions.values())))


def touching(drawing: Drawing, state: State) -> tuple[Touching, ...]:
    """Bodies that touch or overlap in a state of the mechanism, the deepest overlap first."""
    if not drawing.contents.collisions:
        return ()
    return tuple(colliding(drawing.contents).touching(start_coordinates(drawing.system, state), TOUCHING))


def refuse(drawing: Drawing, what: str) -> None:
    """ModelError if the mechanism has collisions, which ``what`` does not consider."""
    for name in drawing.contents.collisions:
        way = f"remove it from a copy: c = m.copy(); c.remove({name!r})"
        raise ModelError(f"collide {name!r}: {what} does not consider collisions yet; {way}")


def refuse_touching(drawing: Drawing, what: str, state: State | None) -> None:
    """ModelError if parts touch in a state (None: as drawn), whose one-sided contacts ``what`` does not consider."""
    for one in touching(drawing, drawing.checked_state(what, state)):
        raise ModelError(
            f"{what} does not consider contacts that may open, and {one.a!r} and {one.b!r} touch in this state (gap "
            f"{drawing.system.display.text(one.gap, 'm')}); let them overlap: m.collide(…, exclude=[({one.a!r}, "
            f"{one.b!r})])"
        )


def diagnose_apart(drawing: Drawing, found: Diagnosis, state: State) -> Diagnosis:
    """A diagnosis with what touches, and judged with the gaps of parts that overlap."""
    parts = colliding(drawing.contents)
    coordinates = start_coordinates(drawing.system, state)
    touches = parts.touching(coordinates, TOUCHING)
    if not touches:
        return found
    pairs = {(i, j): margin for i, j, margin, _ in parts.near(coordinates)}
    residual, worst, is_met = found.residual, found.worst, found.assembled
    if pairs:
        system = _packed(drawing, parts, pairs, drawing.system)
        angles = tail_of(system, state)
        judged, residuals = verdict.judge_system(system, coordinates, angles, found.tolerance, state.time)
        if not judged.met:
            bounds = verdict.row_bounds(system, coordinates, angles, found.tolerance)
            residual, worst, is_met = judged.residual, violations(system, residuals, bounds), False
    kept = None
    if found.motions is not None:
        rows = parts.closing_rates(coordinates, TOUCHING) @ found.motions.reshape(found.dof, -1).T
        kept = found.dof - int(np.linalg.matrix_rank(rows, RANK_RTOL * max(1.0, np.abs(rows).max(initial=0.0))))
    told = replace(found, touching=tuple(touches), dof_touching=kept)
    return replace(told, residual=residual, worst=worst, assembled=is_met)


def assemble_apart(
    drawing: Drawing,
    free: Iterable[Any],
    start: Start,
    at_time: float | None,
    options: AssemblyOptions,
    workers: int | None = None,
) -> AssemblyResult:
    """See :meth:`cardan.Mechanism.assemble`, of a mechanism with collisions."""
    began = time.perf_counter()
    system = drawing.with_free(free)
    joined = found = assemble(system, start, at_time, options, workers)
    if not joined.ok:
        return joined
    parts = colliding(drawing.contents)
    held: dict[tuple[int, int], float] = {}
    totals = [joined.iterations, joined.restarts]
    moment = joined.state.time

    def again(of: System, state: State, own: AssemblyOptions) -> AssemblyResult:
        if own.max_seconds is not None:
            left = own.max_seconds - (time.perf_counter() - began)
            own = replace(own, max_seconds=max(left, LEAST_SECONDS))
        result = assemble(of, state, moment, own, workers)
        totals[0], totals[1] = totals[0] + result.iterations, totals[1] + result.restarts
        return result

    own = _with_restarts(options, RESTARTS if options.restarts is None else options.restarts)
    while new := _new(parts, found.state, held):
        held |= new
        found = again(_packed(drawing, parts, held, system), found.state, own)
        if not found.ok:  # the pairs that have no row yet are only to be named
            own = _with_restarts(options, 0)
    if found.ok:
        over = dict(held) | {(i, j): margin for i, j, margin, _ in parts.near(found.state.coordinates)}
        judged = found if len(over) == len(held) else _judged(_packed(drawing, parts, over, system), found, options)
        is_met = isinstance(judged, AssemblyResult) or judged.met
        status = Status.ASSEMBLED if is_met else Status.OVERLAP
        return _result(system, found, judged, parts, status, totals, began)
    closed = again(system, found.state, options)
    best = closed if closed.ok else joined
    pairs = {(i, j): margin for i, j, margin, _ in parts.near(best.state.coordinates)}
    if not pairs:
        return _result(system, best, best, parts, Status.ASSEMBLED, totals, began)
    late = found.status is Status.TIME_LIMIT
    judged = _judged(_packed(drawing, parts, pairs, system), best, options)
    return _result(system, best, judged, parts, Status.TIME_LIMIT if late else Status.OVERLAP, totals, began)


def _with_restarts(options: AssemblyOptions, restarts: int) -> AssemblyOptions:
    """The options with another number of restarts, which only the method "auto" makes."""
    return replace(options, restarts=restarts) if options.method == AUTO else options


def _new(parts: Colliding, state: State, held: Pairs) -> dict[tuple[int, int], float]:
    """Pairs that overlap in a state, and have no row yet; none that are fixed to each other, which no row separates."""
    return {
        (i, j): margin
        for i, j, margin, _ in parts.near(state.coordinates)
        if (i, j) not in held and not parts.is_welded(parts.owners[i], parts.owners[j])
    }


def _packed(drawing: Drawing, parts: Colliding, pairs: Pairs, system: System) -> System:
    """The system with a row for each pair."""
    made = drawing.packed(also=[parts.bundle(i, j, margin) for (i, j), margin in pairs.items()])
    return made.with_variables(system.variables.free) if system.variables.free else made


def _judged(system: System, found: AssemblyResult, options: AssemblyOptions) -> verdict.Verdict:
    state = found.state
    return verdict.judge_system(system, state.coordinates, tail_of(system, state), options.tolerance, state.time)[0]


def _result(
    system: System,
    found: AssemblyResult,
    judged: AssemblyResult | verdict.Verdict,
    parts: Colliding,
    status: Status,
    totals: list[int],
    began: float,
) -> AssemblyResult:
    """A result of the mechanism itself, without the rows of gaps; judged: the residual and its bound, with them."""
    tail = tail_of(system, found.state)
    state = system.state(found.state.coordinates, tail if tail.size else None, found.state.time)
    return replace(
        found,
        _system=system,
        state=state,
        _residuals=verdict.residuals(system, state.coordinates, tail, state.time),
        status=status,
        residual=judged.residual,
        tolerance=judged.tolerance if isinstance(judged, AssemblyResult) else judged.bound,
        iterations=totals[0],
        restarts=totals[1],
        seconds=time.perf_counter() - began,
        touching=tuple(parts.touching(state.coordinates, TOUCHING)),
    )
