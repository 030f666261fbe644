"""Assembly from many starts: the work of :mod:`cardan.analysis.assemble` in jitted calls, on one core or on all.

Every start gets the same attempts and the same verdict as from ``assemble``.  The result does not depend on the
number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from cardan.analysis import contact_ends
from cardan.analysis.assemble import STATUS, assemble
from cardan.analysis.attempts import Task
from cardan.analysis.batch_result import BatchResult
from cardan.analysis.chunks import Progress, worker_count
from cardan.analysis.many import Ends, solve_piece
from cardan.analysis.options import AssemblyOptions
from cardan.analysis.result import Status
from cardan.analysis.starts import UNIT, VALID_POSE, start_angles, start_coordinates, start_time
from cardan.analysis.tables import Result
from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.lazy import LazyModule
from cardan.solvers.tables import Outcome
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.drawing import Drawing
from cardan.system.formulas import Parameter
from cardan.system.pieces import Piece
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_many = LazyModule("cardan.analysis._many")

MOST_RESTARTS = 1_000_000  # every thread stores the final cost of each attempt


def assemble_many(
    drawing: Drawing,
    starts: Any,
    at_time: float | None,
    free: Iterable[str | Parameter],
    values: Mapping[Any, Any] | None,
    options: AssemblyOptions,
    workers: int | None,
    progress: Progress | None,
    tolerances: Mapping[str, float] = MappingProxyType({}),
) -> BatchResult:
    """See :meth:`cardan.Mechanism.assemble_many`.

    tolerances: by which the values were drawn; samples may be beyond the bounds of their parameters.
    """
    names = drawing.with_free(free).variables.free
    starts, given = _starts_with_values(starts, values, drawing.drawn, drawing.contents.parameter_name)
    both = [name for name in given if name in names]
    if both and values is not None:
        raise ModelError(f"parameter {both[0]!r} is free and in values; a free parameter starts from its state")
    drawing.check_values(given, tolerances)
    held = tuple([name for name in given if name not in names])
    system = drawing.system.with_variables(names, held) if names or held else drawing.system
    found = _assemble_many(system, starts, at_time, options, workers, progress, given)
    if drawing.contents.collisions:
        _separate(drawing, system, found, starts, options)
    return found


def _separate(drawing: Drawing, system: System, found: BatchResult, starts: Any, options: AssemblyOptions) -> None:
    """Assemble the starts after which parts overlap one by one, with rows of their gaps."""
    from cardan.analysis.apart import LEAST_SECONDS, assemble_apart, colliding

    parts = colliding(drawing.contents)
    coordinates, near = _starts(system, starts)
    for name in system.variables.given:
        near[:, system.variable_names.index(name)] = found.angles[:, system.variable_names.index(name)]
    for k in np.flatnonzero(found.ok).tolist():
        if any(True for _ in parts.near(found.coordinates[k])):
            start = system.state(coordinates[k], near[k].copy() if near.size else None, found.time)
            left = None if options.max_seconds is None else max(options.max_seconds - found.seconds, LEAST_SECONDS)
            own = replace(options, max_seconds=left)
            began = time.perf_counter()
            again = assemble_apart(drawing.at(start), system.variables.free, start, found.time, own)
            found._take(k, again, start_angles(system, again.state))
            found.seconds += time.perf_counter() - began


def _assemble_many(
    system: System,
    starts: Any,
    at_time: float | None,
    options: AssemblyOptions,
    workers: int | None,
    progress: Progress | None,
    given: Mapping[str, FloatArray],
) -> BatchResult:
    """given: values of parameters for each start, by name."""
    began = time.perf_counter()
    check.count(options.restart_count, "restarts from many starts", 0, MOST_RESTARTS)
    threads = worker_count(workers)
    formulations.refuse_unsupported(system, options.formulation)
    if progress is not None and not callable(progress):
        raise ModelError(f"progress is {progress!r}; it must be a function (done, total)")
    moment = _time(starts, at_time)
    coordinates, near = _starts(system, starts)
    for name, values in given.items():
        if len(values) != len(coordinates):
            raise ModelError(f"values has {len(values)} numbers for {name!r}, but there are {len(coordinates)} starts")
        near[:, system.variable_names.index(name)] = values
    deadline = None if options.max_seconds is None else began + options.max_seconds
    task = Task(options, deadline, moment)
    ends = []
    for k, piece in enumerate(system.pieces):
        own_progress = _share(progress, k, len(system.pieces))
        own = piece.take(coordinates), piece.take_angles(near)
        ends.append((piece, solve_piece(piece.system, *own, task, threads, own_progress)))
    return _verdict(system, coordinates, near, ends, task, began)


def _starts_with_values(
    starts: Any, values: Mapping[Any, Any] | None, drawn: Mapping[str, float], named: Callable[[Any], str]
) -> tuple[Any, dict[str, FloatArray]]:
    """The starts, and for each parameter that is not as drawn in all of them its values, shape (n,)."""
    if values is None:
        if not drawn or not isinstance(starts, Sequence) or isinstance(starts, str):
            return starts, {}
        every = [start.variables if isinstance(start, State) else {} for start in starts]
        found = {
            name: np.array([own.get(name, value) for own in every])
            for name, value in drawn.items()
            if any(own.get(name, value) != value for own in every)
        }
        return starts, found
    given = checked_values(values, named)
    if isinstance(starts, State):
        count = len(next(iter(given.values())))
        own = {n: np.full(count, v) for n, v in starts.variables.items() if n not in given and v != drawn.get(n, v)}
        return _Repeated(starts, count), {**own, **given}
    return starts, given


def checked_values(values: Any, named: Callable[[Any], str]) -> dict[str, FloatArray]:
    """Values of parameters by name, shape (n,) each.  named: the name of a parameter, or a ModelError."""
    if not isinstance(values, Mapping) or not values:
        raise ModelError(f"values is {values!r}; it must be {{parameter: array of numbers}}")
    given = {}
    for key, numbers in values.items():
        name = named(key)
        try:
            given[name] = np.array(numbers, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the values of parameter {name!r} are {numbers!r}; they must be numbers") from None
        if given[name].ndim != 1 or not np.isfinite(given[name]).all():
            raise ModelError(f"the values of parameter {name!r} must be finite numbers, shape (n,)")
    return given


class _Repeated(Sequence[State]):
    """One state as many starts."""

    def __init__(self, state: State, count: int) -> None:
        self.state, self._count = state, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: Any) -> Any:
        return self.state


def _share(progress: Progress | None, k: int, count: int) -> Progress | None:
    """The progress function of one piece, as a share of the progress of all pieces."""
    if progress is None:
        return None
    return lambda done, total: progress((k * total + done) // count, total)


def _verdict(
    system: System, coordinates: FloatArray, near: FloatArray, ends: list[tuple[Piece, Ends]], task: Task, began: float
) -> BatchResult:
    """Combine the results of the connected pieces for every start, as a single assembly does."""
    count = len(coordinates)
    moved, angles = coordinates.copy(), near.copy()
    residual, allowed = np.zeros(count), np.full(count, task.options.tolerance)
    met, late, conflict = np.ones(count, dtype=bool), np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    farthest, outcome = np.full(count, -np.inf), np.zeros(count, dtype=np.int64)
    iterations, restarts = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for piece, end in ends:
        piece.put(end.coordinates, moved)
        piece.put_angles(end.angles, angles)
        iterations += end.column("iterations")
        restarts += end.column("attempts") - 1
        found, bound = end.verdicts.T
        met &= found <= bound
        late |= end.late
        conflict |= end.column("conflict") > 0
        with np.errstate(over="ignore"):  # a ratio that overflows is worse too
            worse = (found / bound > residual / allowed) | ~np.isfinite(found)
        residual[worse], allowed[worse] = found[worse], bound[worse]
        # the status of a failure is that of the piece with the largest final residual
        own, run = end.column("outcome"), end.results[:, Result.residual.first]
        rank = np.where(own == int(Outcome.CONVERGED), -1.0, np.where(np.isnan(run), np.inf, run))
        further = rank > farthest
        farthest[further], outcome[further] = rank[further], own[further]
    if system.variables.free:
        refused = met & ~system.are_valid(angles[:, : len(system.variable_names)])
        met[refused], outcome[refused] = False, int(Outcome.STALLED)
    for k in np.flatnonzero(met) if system.index.contacts else ():
        if contact_ends.lacks_contact(system, moved[k], angles[k]):
            met[k], outcome[k] = False, int(Outcome.STALLED)
            left = None if task.deadline is None else task.deadline - time.perf_counter()
            if task.options.contact_restarts and (left is None or left > 0.0):
                options = replace(task.options, max_seconds=left)
                again = assemble(system, system.state(coordinates[k], near[k].copy()), task.time, options)
                iterations[k], restarts[k], met[k] = again.iterations, again.restarts, again.ok
                residual[k], allowed[k] = again.residual, again.tolerance
                moved[k], angles[k] = again.state.coordinates, start_angles(system, again.state)
    words = np.array([str(STATUS[value]) for value in Outcome], dtype="U16")
    status = words[outcome]
    status[conflict] = str(Status.CONFLICT)
    status[late] = str(Status.TIME_LIMIT)
    status[met] = str(Status.ASSEMBLED)
    return BatchResult(
        system,
        moved,
        angles,
        status=status,
        residual=residual,
        tolerance=allowed,
        iterations=iterations,
        restarts=restarts,
        seconds=time.perf_counter() - began,
        time=task.time,
        method=task.options.method,
        formulation=task.options.formulation,
    )


def _time(starts: Any, at_time: Any) -> float:
    """The time of the drivers [s]: the given one, or that of all states among the starts."""
    if isinstance(starts, _Repeated):
        return start_time(starts.state, at_time)
    if at_time is not None or not isinstance(starts, Sequence):
        return start_time(None, at_time)
    times = {start_time(start, None) for start in starts}
    if len(times) > 1:
        raise ModelError(f"the starts are states at {len(times)} different times; pass time=… for all of them")
    return times.pop() if times else 0.0


def _start(system: System, k: int, start: Any) -> tuple[FloatArray, FloatArray]:
    """Poses and counted angles of one start of a list; an error says which."""
    try:
        return start_coordinates(system, start), start_angles(system, start)
    except ModelError as error:
        raise type(error)(f"start {k}: {error}") from None


def _starts(system: System, starts: Any) -> tuple[FloatArray, FloatArray]:
    """r and p of every body, shape (n, bodies, 7), and initial counted angles, shape (n, counted angles); checked."""
    bodies = len(system.names)
    wanted = f"an array of shape (n, {bodies}, 7), r and p of every body, or a list of states"
    if isinstance(starts, State | Mapping | str):
        raise ModelError(f"the starts are {starts!r}; they must be {wanted}")
    if isinstance(starts, _Repeated):
        one, tail = _start(system, 0, starts.state)
        return np.tile(one, (len(starts), 1, 1)), np.tile(tail, (len(starts), 1))
    if isinstance(starts, Sequence) and not len(starts):
        raise ModelError(f"there are no starts; they must be {wanted}, with n ≥ 1")
    if isinstance(starts, Sequence) and any(start is None or isinstance(start, State | Mapping) for start in starts):
        for k, start in enumerate(starts):
            if not (start is None or isinstance(start, State | Mapping)):
                raise ModelError(f"start {k} is of type {type(start).__name__}; it must be a state or a dict of poses")
        listed, near = zip(*[_start(system, k, start) for k, start in enumerate(starts)], strict=True)
        return np.array(listed), np.array(near).reshape(len(listed), system.tail.size)
    try:
        given = np.asarray(starts)
        is_real = given.dtype.kind in "iufO"  # complex numbers would lose a part; texts are not accepted
        coordinates: FloatArray = np.array(given if is_real else np.nan, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"the starts are {type(starts).__name__}; they must be {wanted}") from None
    if not is_real:
        raise ModelError(f"the starts are of type {given.dtype}; they must be {wanted}, of real numbers")
    if coordinates.ndim != 3 or coordinates.shape[1:] != (bodies, layout.POSE):
        raise ModelError(f"the starts have shape {coordinates.shape}; they must be {wanted}")
    if not len(coordinates):
        raise ModelError(f"there are no starts; they must be {wanted}, with n ≥ 1")
    squares = np.einsum("kij,kij->ki", coordinates[:, :, 3:], coordinates[:, :, 3:])
    within = (np.abs(coordinates[:, :, :3]) <= check.LARGEST).all(axis=2)
    fine = np.isfinite(coordinates).all(axis=2) & (np.abs(squares - 1.0) <= UNIT)
    if not (within & fine).all():
        k, b = np.argwhere(~(within & fine))[0]
        valid = VALID_POSE if not fine[k, b] else f"its coordinates must not exceed {check.LARGEST}"
        raise ModelError(f"the pose of body {system.names[b]!r} in start {k} is {coordinates[k, b].tolist()}; {valid}")
    return coordinates, np.tile(system.tail, (len(coordinates), 1))
