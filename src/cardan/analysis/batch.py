"""Assembly from many starts: the work of :mod:`cardan.analysis.assemble` in jitted calls, on one core or on all.

Every start gets the attempts, and then the verdict, that a call of ``assemble`` would give it; how many threads share
the work changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cardan.analysis import assemble as one
from cardan.analysis.assemble import POSE_ASKED, UNIT, Method, start_angles, start_coordinates, start_time
from cardan.analysis.batch_result import BatchResult
from cardan.analysis.chunks import Progress, worker_count
from cardan.analysis.pieces import Ends, Task, solve_piece
from cardan.analysis.result import Status
from cardan.coordinates.formulations import Formulation
from cardan.errors import ModelError
from cardan.solvers.abi import Outcome
from cardan.system import check, layout
from cardan.system.state import FloatArray, State
from cardan.system.system import IntArray, System

MOST_RESTARTS = 1_000_000  # every thread remembers how each attempt ended


def assemble_many(
    system: System,
    starts: Any,
    *,
    at_time: float | None,
    method: Method,
    formulation: Formulation,
    tolerance: float,
    max_iterations: int | None,
    max_seconds: float | None,
    restarts: int | None,
    seed: int,
    workers: int | None,
    progress: Progress | None,
) -> BatchResult:
    """See :meth:`cardan.Mechanism.assemble_many`."""
    began = time.perf_counter()
    options = one._check(method, formulation, tolerance, max_iterations, max_seconds, restarts, seed)
    check.count(options.restarts, "restarts from many starts", 0, MOST_RESTARTS)
    threads = worker_count(workers)
    if progress is not None and not callable(progress):
        raise ModelError(f"progress is {progress!r}; it must be a function of what is done and of how much there is")
    moment = _time(starts, at_time)
    coordinates, near = _starts(system, starts)
    deadline = None if options.seconds is None else began + options.seconds
    task = Task(options, deadline, moment, threads)
    pieces = system.components()
    ends = []
    for k, (bodies, piece) in enumerate(pieces):
        turns = [system.counted_angles.index(key) for key in piece.counted_angles]
        tell = _share(progress, k, len(pieces))
        ends.append((bodies, turns, solve_piece(piece, coordinates[:, bodies], near[:, turns], task, tell)))
    return _verdict(system, coordinates, near, ends, task, began)


def _share(progress: Progress | None, k: int, count: int) -> Progress | None:
    """Progress of one piece as progress of all of them."""
    if progress is None:
        return None
    return lambda done, total: progress(k * total + done, count * total)


def _verdict(
    system: System,
    coordinates: FloatArray,
    near: FloatArray,
    ends: list[tuple[IntArray, list[int], Ends]],
    task: Task,
    began: float,
) -> BatchResult:
    """Of every start, from those of the connected pieces: as a single assembly puts them together."""
    count = len(coordinates)
    moved, angles = coordinates.copy(), near.copy()
    residual, allowed = np.zeros(count), np.full(count, task.options.tolerance)
    met, late, conflict = np.ones(count, dtype=bool), np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    farthest, outcome = np.full(count, -np.inf), np.zeros(count, dtype=np.int64)
    iterations, restarts = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for bodies, turns, end in ends:
        moved[:, bodies] = end.coordinates
        angles[:, turns] = end.angles
        iterations += end.iterations
        restarts += end.attempts - 1
        met &= end.residual <= end.bound
        late |= end.late
        conflict |= end.conflict > 0
        with np.errstate(over="ignore"):  # beyond all numbers is worse too
            worse = (end.residual / end.bound > residual / allowed) | ~np.isfinite(end.residual)
        residual[worse], allowed[worse] = end.residual[worse], end.bound[worse]
        # a failure is that of the piece whose run ended farthest from its target
        rank = np.where(end.outcome == int(Outcome.CONVERGED), -1.0, np.where(np.isnan(end.run), np.inf, end.run))
        further = rank > farthest
        farthest[further], outcome[further] = rank[further], end.outcome[further]
    words = np.array([str(one._STATUS[value]) for value in Outcome], dtype="U16")
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
        at_time=task.time,
        method=task.options.method,
        formulation=task.options.formulation,
    )


def _time(starts: Any, at_time: Any) -> float:
    """The time of the drivers [s]: the one asked for, or that of all states among the starts."""
    if at_time is not None or not isinstance(starts, Sequence):
        return start_time(None, at_time)
    times = {start_time(start, None) for start in starts}
    if len(times) > 1:
        raise ModelError(f"the starts are states at {len(times)} different times; pass time=… for all of them")
    return times.pop() if times else 0.0


def _starts(system: System, starts: Any) -> tuple[FloatArray, FloatArray]:
    """r and p of every body, shape (n, bodies, 7), and angles that turns count from, shape (n, turns); checked."""
    bodies = len(system.names)
    wanted = f"an array of shape (n, {bodies}, 7), r and p of every body, or a list of states"
    if isinstance(starts, State | Mapping | str):
        raise ModelError(f"the starts are {starts!r}; they must be {wanted}")
    if isinstance(starts, Sequence) and not len(starts):
        raise ModelError(f"there are no starts; they must be {wanted}, one at least")
    if isinstance(starts, Sequence) and any(start is None or isinstance(start, State | Mapping) for start in starts):
        for k, start in enumerate(starts):
            if not (start is None or isinstance(start, State | Mapping)):
                raise ModelError(f"start {k} is of type {type(start).__name__}; among states it must be one too")
        listed = [start_coordinates(system, start) for start in starts]
        near = np.array([start_angles(system, start) for start in starts])
        return np.array(listed), near.reshape(len(listed), len(system.counted_angles))
    try:
        given = np.asarray(starts)
        is_real = given.dtype.kind in "iufO"  # of complex numbers a part would be dropped, of texts none is asked for
        coordinates: FloatArray = np.array(given if is_real else np.nan, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"the starts are {type(starts).__name__}; they must be {wanted}") from None
    if not is_real:
        raise ModelError(f"the starts are of type {given.dtype}; they must be {wanted}, of real numbers")
    if coordinates.ndim != 3 or coordinates.shape[1:] != (bodies, layout.POSE):
        raise ModelError(f"the starts have shape {coordinates.shape}; they must be {wanted}")
    if not len(coordinates):
        raise ModelError(f"there are no starts; they must be {wanted}, one at least")
    squares = np.einsum("kij,kij->ki", coordinates[:, :, 3:], coordinates[:, :, 3:])
    within = (np.abs(coordinates[:, :, :3]) <= check.LARGEST).all(axis=2)
    fine = np.isfinite(coordinates).all(axis=2) & (np.abs(squares - 1.0) <= UNIT)
    if not (within & fine).all():
        k, b = np.argwhere(~(within & fine))[0]
        asked = POSE_ASKED if not fine[k, b] else f"its coordinates must not exceed {check.LARGEST}"
        raise ModelError(f"the pose of body {system.names[b]!r} in start {k} is {coordinates[k, b].tolist()}; {asked}")
    return coordinates, np.zeros((len(coordinates), len(system.counted_angles)))
