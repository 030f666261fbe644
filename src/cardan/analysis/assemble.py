"""Assembly from one start: find poses that satisfy every constraint, and judge the poses that are returned."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np

from cardan.analysis import attempts, contact_ends
from cardan.analysis.attempts import End, Task
from cardan.analysis.chunks import worker_count
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.result import AssemblyResult, Status
from cardan.analysis.starts import Start, start_angles, start_coordinates, start_time
from cardan.coordinates import formulations, relative, verdict
from cardan.errors import ModelError
from cardan.solvers.tables import Outcome
from cardan.system.state import FloatArray
from cardan.system.system import System

SAME_COST: Final = 1e-9  # relative: a cost that is larger by less is the same
STATUS: Final = {
    Outcome.RUNNING: Status.ITERATION_LIMIT,
    Outcome.CONVERGED: Status.STALLED,  # the solver met its target, but the verdict is not met
    Outcome.STALLED: Status.STALLED,
    Outcome.BROKEN: Status.DIVERGED,
}


def assemble_least(
    system: System, start: Start, at_time: float | None, options: AssemblyOptions, workers: int | None, least: Any
) -> AssemblyResult:
    """See :meth:`cardan.Mechanism.assemble`: with free parameters, and the least of a cost."""
    from cardan.analysis.least_cost import checked_cost, minimise

    if workers is not None:
        raise ModelError(f"workers is {workers}, but an assembly with least= uses one thread; omit one of them")
    if not system.variables.free:
        raise ModelError(f"least is {least!r}, but no parameter is free; give free=[…]")
    cost = checked_cost(system, least)
    found = assemble(system, start, at_time, options)
    if not found.ok:
        return found
    book = system._source.book
    assert book is not None
    bounds = [book.bounds[book.names.index(name)] for name in system.variables.free]
    near = start_angles(system, found.state)
    q = formulations.to_reference(system, found.state.coordinates, near)
    q, reason = minimise(system, q, cost, found.state.time, bounds)
    state = system.state(formulations.from_reference(system, q), formulations.angles(system, q), found.state.time)
    again = assemble(system, state, at_time, options)
    again.iterations += found.iterations
    again.restarts += found.restarts
    again.seconds += found.seconds
    least_cost, last_cost = (cost(start_angles(system, one)[: len(bounds)])[0] for one in (state, again.state))
    if not reason and not last_cost <= least_cost + SAME_COST * abs(least_cost):
        reason = "the least cost is in a pose with opposed axes that a joint aligns; start nearer to the wanted pose"
    if again.ok and reason:
        again.status, again._no_least = Status.NO_LEAST, reason
    return again


def assemble(
    system: System, start: Start, at_time: float | None, options: AssemblyOptions, workers: int | None = None
) -> AssemblyResult:
    """See :meth:`cardan.Mechanism.assemble`."""
    began = time.perf_counter()
    deadline = None if options.max_seconds is None else began + options.max_seconds
    threads = 1 if workers is None else _checked_workers(system, workers, options)
    if options.formulation in relative.FORMULATIONS:
        formulations.refuse_unsupported(system, options.formulation)
    task = Task(options, deadline, start_time(start, at_time), threads)
    coordinates = start_coordinates(system, start)
    near = start_angles(system, start)
    if system.in_one_piece:
        end = attempts.solve(system, formulations.to_reference(system, coordinates, near), task)
        # a start that is met is returned bitwise unchanged
        moved = formulations.from_reference(system, end.q) if end.moved else coordinates.copy()
        return _result(system, moved, _angles(system, end, near), [end], task, began, (coordinates, near))
    moved = coordinates.copy()
    angles = formulations.angles(system, formulations.to_reference(system, coordinates, near)).copy()
    ends = []
    for piece in system.pieces:
        own = piece.take_angles(near)
        end = attempts.solve(piece.system, formulations.to_reference(piece.system, piece.take(coordinates), own), task)
        if end.moved:
            piece.put(formulations.from_reference(piece.system, end.q), moved)
        piece.put_angles(_angles(piece.system, end, own), angles)
        ends.append(end)
    return _result(system, moved, angles, ends, task, began, (coordinates, near))


def _checked_workers(system: System, workers: int, options: AssemblyOptions) -> int:
    """The number of threads of a spring step."""
    from cardan.coordinates.parallel_springs import FORMULATIONS

    if not options.solver.has_springs:
        raise ModelError(
            f"workers is {workers}, but method {options.method!r} uses one thread; only the spring steps of 'gradient' "
            "and 'hybrid' are divided among threads, and assemble_many among starts"
        )
    found = worker_count(workers)
    if found > 1 and options.formulation not in FORMULATIONS:
        raise ModelError(
            f"workers is {workers}, but one thread makes the spring steps of formulation {options.formulation!r}; omit "
            f"workers=, or use {' or '.join(map(repr, FORMULATIONS))}"
        )
    if found > 1 and system.variable_names:
        names = ", ".join(map(repr, system.variable_names))
        raise ModelError(f"workers is {workers}, but one thread makes spring steps with free {names}; omit workers=")
    return found


def _angles(system: System, end: End, near: FloatArray) -> FloatArray:
    """Final counted angles; bitwise those of the start if it was not moved."""
    found = formulations.angles(system, end.q)
    return found if end.moved else formulations.same_angles(found, near)


def _is_refused(system: System, coordinates: FloatArray, angles: FloatArray) -> bool:
    """Whether shapes cross where their gap is closed, or free parameters have values that a formula does not allow."""
    if system.index.contacts and contact_ends.lacks_contact(system, coordinates, angles):
        return True
    return bool(system.variables.free) and not system.are_valid(angles[: len(system.variable_names)])


def _result(
    system: System,
    coordinates: FloatArray,
    angles: FloatArray,
    ends: list[End],
    task: Task,
    began: float,
    drawn: tuple[FloatArray, FloatArray],
) -> AssemblyResult:
    """Evaluate every constraint at the poses that are returned; this alone decides the verdict.

    drawn: poses, and variables and counted angles, of the start.
    """
    options = task.options
    found, residuals = verdict.judge_system(system, coordinates, angles, options.tolerance, task.time)
    is_met = found.met
    if not is_met and system.variable_names:  # within the bounds, so that it can be diagnosed, or be a start
        angles = system.within_bounds(angles)
        found, residuals = verdict.judge_system(system, coordinates, angles, options.tolerance, task.time)
        is_met = found.met
    if is_met and not _is_refused(system, coordinates, angles):
        status = Status.ASSEMBLED
    elif is_met:
        status = Status.STALLED
    elif task.is_late():
        status = Status.TIME_LIMIT
    elif any(end.conflict for end in ends):
        status = Status.CONFLICT
    else:
        unmet = [end.run for end in ends if end.run.outcome is not Outcome.CONVERGED] or [end.run for end in ends]
        status = STATUS[max(unmet, key=lambda run: np.nan_to_num(run.residual, nan=np.inf)).outcome]
    return AssemblyResult(
        system,
        system.state(coordinates, angles if angles.size else None, task.time),
        residuals,
        status=status,
        residual=found.residual,
        tolerance=found.bound,
        iterations=sum([end.iterations for end in ends]),
        restarts=sum([end.attempts for end in ends]) - len(ends),
        seconds=time.perf_counter() - began,
        method=options.method,
        formulation=options.formulation,
        _asked=options.tolerance,
        _drawn=drawn if system.index.contacts else None,
        _is_searched=not is_met and all([end.is_searched for end in ends]),
    )
