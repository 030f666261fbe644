"""The motion of what the drivers leave free: the least velocities, integrated over time.

    q̇ = v(q, t),  v = argmin |D⁻¹v|  subject to  J v = ġ        (:mod:`cardan.coordinates.rates`)

is a differential equation on the assembled poses.  It is integrated by the method DOP853 of SciPy [Hairer1993], in
poses whose positions are divided by L.  Before v is computed, each pose is projected onto the constraints.  The steps
depend on the error alone and not on the requested times; between them the interpolant of the method is evaluated.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cardan.analysis.motion import Undriven
from cardan.coordinates import rates
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import System

FIRST_STEP: Final = 1e-3  # of the time span
RTOL: Final = 3e-14  # relative error of a step; the least that SciPy allows
LEAST_ATOL: Final = 1e-12  # [rad], lengths in L: absolute error of a step, or the tolerance of the motion if larger
MOST_ROTATION: Final = 1.0  # rad of any body in a step, so that whole turns are never miscounted
MOVES: Final = 1e-6  # of a unit motion, scaled: a body that moves less does not move

Project = Callable[[FloatArray, float], FloatArray | None]


def undriven(system: System, known: rates.Decomposition | rates.Factorization) -> tuple[Undriven, ...]:
    """What the drivers leave free in a pose, by pieces; known: J there."""
    if not known.is_free:
        return ()
    basis = known.free_motions()
    basis = basis.reshape(len(basis), -1, 6)
    driven = {signal.name for _, signal in system.signals}
    pieces = [(piece.bodies, not driven & {row.constraint for row in piece.system.rows}) for piece in system.pieces]
    connected = {int(body) for bodies, _ in pieces for body in bodies}
    alone = [(np.array([body]), True) for body in range(len(system.names)) if body not in connected]
    found = []
    for bodies, at_rest in [*pieces, *alone]:
        own = basis[:, bodies]
        count = int((np.linalg.svd(own.reshape(len(own), -1), compute_uv=False) > MOVES).sum())
        if count:
            is_moving = np.linalg.norm(own, axis=(0, 2)) > MOVES
            found.append(Undriven(count, tuple(system.names[k] for k in bodies[is_moving]), at_rest))
    return tuple(found)


class LeastVelocity:
    """Poses of a motion with the least velocities, from a pose onwards."""

    def __init__(
        self,
        system: System,
        problem: Problem,
        start: tuple[float, FloatArray],
        last: float,
        project: Project,
        tolerance: float,
        deadline: float | None,
        rated: tuple[System, Problem] | None = None,
    ) -> None:
        """start: a time [s] and a pose.  last: no driver is evaluated beyond this time.  project: the nearest pose that
        meets the constraints at a time, or None.  deadline: a time of time.perf_counter.  rated: the system with its
        rate rows, which the velocities satisfy, and its problem; None if there are none."""
        from scipy.integrate import DOP853

        self._system, self._problem = system, problem
        self._rated = rated or (system, problem)
        self._project = project
        self._deadline = deadline
        time, self._base = start
        bodies = len(system.names)
        self._end = layout.POSE * bodies
        self._units = np.ones((bodies, layout.POSE))
        self._units[:, :3] = problem.scales[problem.rows :].reshape(bodies, 6)[:, :1]
        first = (self._base[: self._end].reshape(bodies, -1) / self._units).ravel()
        self._path: list[tuple[Any, FloatArray]] = []  # interpolants of steps, and the poses at their beginning
        step, atol = FIRST_STEP * abs(last - time), max(LEAST_ATOL, tolerance)
        self._solver = DOP853(self._rates, time, first, last, first_step=step, rtol=RTOL, atol=atol)

    def pose(self, time: float, since: float) -> FloatArray | None:
        """The pose at a time, up to the error of the integration; no earlier time than ``since`` will be asked for."""
        sign = self._solver.direction
        while (time - self._solver.t) * sign > 0.0:
            if self._solver.status != "running" or self._is_out_of_time():
                return None
            self._solver.step()
            if self._solver.status == "failed":
                return None
            self._path.append((self._solver.dense_output(), self._base))
            base = self._at(self._solver.t, self._solver.y, self._base)
            if base is None:
                self._solver.status = "failed"
                return None
            self._base = base
        self._path = [(part, base) for part, base in self._path if (part.t - since) * sign >= 0.0]
        for part, base in self._path:
            if (part.t - time) * sign >= 0.0:
                return self._at(time, part(time), base)
        return None

    def _is_out_of_time(self) -> bool:
        return self._deadline is not None and clock.perf_counter() >= self._deadline

    def _at(self, time: float, y: FloatArray, base: FloatArray) -> FloatArray | None:
        """The pose at y, projected; None if there is none, or if it is too far from ``base`` to count turns."""
        if not np.isfinite(y).all():
            return None
        poses = y.reshape(self._units.shape) * self._units
        poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
        step = rates.difference(self._system, base, poses.ravel())
        if not np.linalg.norm(step.reshape(-1, 6)[:, 3:], axis=1).max() <= MOST_ROTATION:
            return None
        return self._project(self._problem.retract(base, step), time)

    def _rates(self, time: float, y: FloatArray) -> FloatArray:
        """ẏ; NaN if there is no pose, and the step is then shortened."""
        q = self._at(time, y, self._base)
        if q is None:
            return np.full_like(y, np.nan)
        known = rates.linearize(*self._rated, q)
        v = known.solve(rates.driver_rates(*self._rated, time, q)[0]).reshape(-1, 6)
        # quaternions of the length that they have in y: otherwise a loss of length would change their rotation
        p = q[: self._end].reshape(-1, layout.POSE)[:, 3:]
        p = p * np.linalg.norm(y.reshape(self._units.shape)[:, 3:], axis=1, keepdims=True)
        spin = np.hstack([np.zeros((len(v), 1)), 0.5 * v[:, 3:]])
        return np.hstack([v[:, :3] / self._units[:, :3], euler.multiply(p, spin)]).ravel()
