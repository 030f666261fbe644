"""Descent by the spring step only, from many starts, up to the first iteration whose poses meet a tolerance.

``assemble(method="gradient")`` iterates to a fraction of the tolerance, so that rounding does not change its verdict.
Here the verdict on poses with unit quaternions is computed after every iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np
from numpy.typing import NDArray

from cardan.analysis.chunks import Progress, Worker, run_chunks
from cardan.analysis.whole_turns import with_whole_turns
from cardan.coordinates import formulations
from cardan.coordinates.verdict import Judge, shift, update_angles
from cardan.lazy import LazyModule
from cardan.solvers import methods
from cardan.solvers.problem import Job, allowance
from cardan.solvers.tables import Control
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_descent = LazyModule("papers._descent")

START = 1  # starts per chunk: a single start may use all iterations


class Descents:
    """End points of the descents, as arrays with one entry per start.

    ``met``: whether the tolerance was met; ``iterations`` then is the first iteration that met it.  ``residual``: the
    largest scaled residual relative to its bound.  ``coordinates``: poses, shape (n, bodies, 7).  ``q``: the same in
    solver coordinates.
    """

    __slots__ = ("coordinates", "found", "iterations", "met", "q")

    def __init__(self, q: FloatArray, bodies: int) -> None:
        self.q = q
        self.coordinates: FloatArray = np.empty((len(q), bodies, layout.POSE))
        self.found: FloatArray = np.zeros((len(q), 2))
        self.iterations: IntArray = np.zeros(len(q), dtype=np.int64)
        self.met: NDArray[np.bool_] = np.zeros(len(q), dtype=bool)

    @property
    def residual(self) -> FloatArray:
        return self.found[:, 0]


def descend(
    system: System,
    formulation: str,
    starts: FloatArray,
    tolerance: float,
    iterations: int,
    *,
    gain: float = methods.SPRING_GAIN,
    threads: int = 1,
    progress: Progress | None = None,
) -> Descents:
    """Spring steps from the starts (r and p of every body, shape (n, bodies, 7)); gain: k, clipped for stability."""
    count, bodies = len(starts), len(system.names)
    q: FloatArray = np.hstack([starts.reshape(count, -1), np.zeros((count, len(system.counted_angles)))])
    shift(system, q, 1.0)
    update_angles(system, q)
    ends = Descents(q, bodies)
    judge = Judge(system, tolerance, 0.0)
    settings = {"step_gain": gain}
    kernel = methods.load("_gradient")
    formulations.problem(system, formulation)  # build tables and kernels before threads share them

    def job(q: FloatArray) -> Job:
        length = system.extent_at(q)
        problem = formulations.problem(system, formulation, length)
        return Job(formulations.with_springs(system, formulation, problem, length), kernel, settings)

    def make_worker(stop: Event) -> Worker:
        def worker(first: int, last: int) -> None:
            for k in range(first, last):
                _one(system, judge, job(ends.q[k]), iterations, ends, k, stop.is_set)

        return worker

    run_chunks(count, START, make_worker, threads, progress)
    final = ends.q.copy()
    shift(system, final, -1.0)
    ends.coordinates[:] = final[:, : layout.POSE * bodies].reshape(ends.coordinates.shape)
    return ends


def _one(
    system: System, judge: Judge, job: Job, iterations: int, ends: Descents, k: int, is_stopped: Callable[[], bool]
) -> None:
    """The descent from start k, in calls short enough for Ctrl-C to interrupt."""
    q = with_whole_turns(system, ends.q[k], system.extent_at(ends.q[k]), 0.0).copy()
    job.start(0.0)
    limits = np.array([iterations, allowance(job.problem)], dtype=np.int64)
    own = (job.table, job.control, q, job.work, judge.table, judge.bounds, judge.workspace(), limits, ends.found[k])
    outcome = _descent.UNDER_WAY
    while outcome == _descent.UNDER_WAY and not is_stopped():
        outcome = _descent.descend(*own)
    ends.q[k] = q
    ends.iterations[k] = int(Control(job.control).iterations)
    ends.met[k] = outcome == _descent.MET
