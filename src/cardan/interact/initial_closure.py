"""A session before its joints are closed: one solver step per cycle, until the verdict is met."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.analysis.attempts import LEAST_TARGET, refine, target_residual
from cardan.analysis.starts import Start, start_angles, start_coordinates, start_time
from cardan.analysis.whole_turns import with_whole_turns
from cardan.coordinates import formulations, verdict
from cardan.coordinates.formulations import Formulation
from cardan.interact import tables
from cardan.lazy import LazyModule
from cardan.solvers import methods
from cardan.solvers.tables import Control, Outcome
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import IntArray, System

_blocks = LazyModule("cardan.solvers._blocks")


class Closing:
    """Levenberg–Marquardt, step by step, in a workspace made once: ``kernel(places)`` is one step."""

    def __init__(
        self, system: System, start: Start, at_time: float | None, formulation: Formulation, tolerance: float
    ) -> None:
        check.choice(formulation, "formulation", formulations.CHOICES)
        self._system = system
        self._formulation = formulation
        self.tolerance = verdict.checked_tolerance(tolerance)
        coordinates, near = start_coordinates(system, start), start_angles(system, start)
        self.drawn = coordinates, near  # as given
        self._poses: FloatArray = formulations.to_reference(system, coordinates, near)
        self.time = start_time(start, at_time)
        length = system.extent_at(self._poses)
        self._poses = with_whole_turns(system, self._poses, length, self.time)
        self._q: FloatArray = formulations.enter(system, formulation, self._poses)
        (stage,) = methods.REGISTRY["levenberg_marquardt"].stages
        problem = formulations.problem(system, formulation, length, self.time)
        at_start = np.abs(problem.residual(self._q) * problem.scales[: problem.rows])
        self._first_residual = float(at_start.max(initial=0.0))
        self._job = stage.job(problem)
        self._job.start(_target(system, length, self.tolerance))
        self._control = self._job.control
        self._control[Control.chunk.first] = 1.0
        self.kernel: Any = _blocks.run_at
        from cardan.kernel.memory import address_of

        arrays = self._job.table, self._control, self._q, self._job.work
        self.places: IntArray = np.array([address_of(array) for array in arrays])
        self.is_met = False
        self._is_drawn = not all([piece.system.own_length for piece in system.pieces])

    def status(self) -> int:
        """Status of a session after the last step: IDLE only if the verdict is met, as for an assembly."""
        state = self.state
        if self._is_drawn and self._control[Control.status.first] == Outcome.CONVERGED:
            refine(self._system, self._poses, self.tolerance, self.time)
            self._q[:] = formulations.enter(self._system, self._formulation, self._poses)
            state = self.state
        angles = formulations.angles(self._system, self._poses)
        found, _ = verdict.judge_system(self._system, state.coordinates, angles, self.tolerance, self.time)
        self.is_met = found.met
        return tables.IDLE if found.met else tables.STUCK

    @property
    def residual(self) -> float:
        """Largest residual after the last step, or at the start; lengths relative to the extent, angles in radians."""
        return float(self._control[Control.residual_max.first]) if self.iterations else self._first_residual

    @property
    def iterations(self) -> int:
        """Number of steps made."""
        return int(self._control[Control.iterations.first])

    @property
    def state(self) -> State:
        """The current poses."""
        formulations.leave(self._system, self._formulation, self._q, self._poses)
        angles = formulations.angles(self._system, self._poses).copy()
        return self._system.state(
            formulations.from_reference(self._system, self._poses), angles if angles.size else None, self.time
        )


def _target(system: System, length: float, tolerance: float) -> float:
    """The scaled residual at which the verdict on every piece, relative to its own extent, is met."""
    if system.in_one_piece:
        return target_residual(system, length, tolerance)
    own = [piece.system for piece in system.pieces]
    targets = [target_residual(p, length, tolerance) * min(1.0, p.judged_length / length) for p in own]
    return max(min(targets, default=tolerance), LEAST_TARGET)
