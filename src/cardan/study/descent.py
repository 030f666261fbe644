"""Descent by the spring step alone, from many starts, to the first iteration whose poses meet a tolerance.

``assemble(method="gradient")`` aims at a part of the tolerance, so that rounding leaves its verdict: here the verdict
itself, on poses with unit quaternions, is asked after every iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardan.analysis.chunks import Progress, Worker, run_chunks
from cardan.analysis.judging import Judge, shift, update_angles
from cardan.analysis.winding import with_whole_turns
from cardan.coordinates import formulations
from cardan.solvers import abi, kernels, methods
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

START = 1  # in a chunk: one may take all the iterations there are


class Descents:
    """Where the descents ended, as arrays of one length.

    ``met``: the tolerance was met, and ``iterations`` is the first at which it was.  ``residual``: the largest for what
    it may be, scaled.  ``coordinates``, shape (n, bodies, 7), and ``q``: poses, and the same in solver coordinates.
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
    """Up to so many spring steps from r and p of every body, shape (n, bodies, 7); gain: k, clipped to be stable."""
    count, bodies = len(starts), len(system.names)
    q: FloatArray = np.hstack([starts.reshape(count, -1), np.zeros((count, len(system.counted_angles)))])
    shift(system, q, 1.0)
    update_angles(system, q)
    ends = Descents(q, bodies)
    judge = Judge(system, tolerance, 0.0)
    solver = kernels.address(abi.GRADIENT)
    formulations.problem(system, formulation)  # tables and kernels, before threads share them

    def make_worker(stop: Event) -> Worker:
        def worker(first: int, last: int) -> None:
            for k in range(first, last):
                _one(system, formulation, judge, solver, (iterations, gain), ends, k, stop.is_set)

        return worker

    run_chunks(count, START, make_worker, threads, progress)
    final = ends.q.copy()
    shift(system, final, -1.0)
    ends.coordinates[:] = final[:, : layout.POSE * bodies].reshape(ends.coordinates.shape)
    return ends


def _one(
    system: System,
    formulation: str,
    judge: Judge,
    solver: int,
    asked: tuple[int, float],
    ends: Descents,
    k: int,
    is_stopped: Callable[[], bool],
) -> None:
    """The descent from start k, in calls short enough for Ctrl-C; asked: iterations, and k of the spring step."""
    from cardan.study import _descent

    kernel: Any = _descent
    length = system.extent_at(ends.q[k])
    p, judged = formulations.problem(system, formulation, length), judge.problem
    q = with_whole_turns(system, ends.q[k], length, 0.0).copy()
    control = np.zeros(abi.CONTROL)
    control[abi.STATUS], control[abi.STEP_GAIN] = abi.RUNNING, asked[1]
    zeros, rows = np.zeros(max(p.unknowns, judged.unknowns)), np.empty(judged.rows)
    work = np.empty(kernels.work_size(abi.GRADIENT, p))
    judged_work = np.empty(int(judged.structure[abi.WORK]))
    places = np.empty(3 * q.size)
    problem = (p.evaluate, p.ints, p.floats, p.structure, p.scales)
    verdict = (judged.evaluate, *judge.tables, judge.bounds)
    limits = (asked[0], methods.allowance(p))
    outcome = kernel.UNDER_WAY
    while outcome == kernel.UNDER_WAY and not is_stopped():
        own = (control, zeros, q, places, rows, work, judged_work, ends.found[k])
        outcome = kernel.descend(solver, *problem, *verdict, *limits, *own)
    ends.q[k] = q
    ends.iterations[k] = int(control[abi.ITERATIONS])
    ends.met[k] = outcome == kernel.MET
