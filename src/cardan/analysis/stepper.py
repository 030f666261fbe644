"""One solver step at a time: for real-time loops, and to show the iterations of an assembly."""

from __future__ import annotations

from typing import Any

from cardan.analysis.attempts import LEAST_TARGET, target_residual
from cardan.analysis.starts import Start, start_angles, start_coordinates, start_time
from cardan.analysis.whole_turns import with_whole_turns
from cardan.coordinates import formulations, verdict
from cardan.coordinates.formulations import Formulation
from cardan.lazy import LazyModule
from cardan.solvers import abi, methods
from cardan.solvers.abi import Outcome
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_blocks = LazyModule("cardan.solvers._blocks")

# ints: comparing with an enum member takes longer than half a step
_RUNNING = int(Outcome.RUNNING)


class Stepper:
    """Levenberg–Marquardt, step by step, in a workspace made once.  Do not share it between threads.

    >>> stepper = mechanism.stepper()            # doctest: +SKIP
    >>> while not stepper.step():                # doctest: +SKIP
    ...     draw(stepper.state)
    """

    def __init__(
        self, system: System, start: Start, at_time: float | None, formulation: Formulation, tolerance: float
    ) -> None:
        check.choice(formulation, "formulation", formulations.CHOICES)
        self._system = system
        self._formulation = formulation
        self._tolerance = verdict.checked_tolerance(tolerance)
        coordinates, near = start_coordinates(system, start), start_angles(system, start)
        self._poses: FloatArray = formulations.to_reference(system, coordinates, near)
        self._time = start_time(start, at_time)
        length = system.extent_at(self._poses)
        self._poses = with_whole_turns(system, self._poses, length, self._time)
        self._q: FloatArray = formulations.enter(system, formulation, self._poses)
        (stage,) = methods.REGISTRY["levenberg_marquardt"].stages
        self._job = stage.job(formulations.problem(system, formulation, length, self._time))
        self._job.start(_target(system, length, self._tolerance))
        self._control = self._job.control
        self._control[abi.CHUNK] = 1.0
        self._run: Any = _blocks.run
        self._arguments = (self._job.table, self._control, self._q, self._job.work)
        self._is_met = False

    def step(self) -> bool:
        """Make one damped step; True once every constraint is met, by the same verdict as an assembly."""
        if self._run(*self._arguments) == _RUNNING:
            return False
        state = self.state
        angles = formulations.angles(self._system, self._poses)
        found, _ = verdict.judge_system(self._system, state.coordinates, angles, self._tolerance, self._time)
        self._is_met = found.met
        return found.met

    def __reduce__(self) -> tuple[Any, ...]:
        # made anew: its tables hold addresses, which are valid in this process only
        return Stepper, (self._system, self.state, self._time, self._formulation, self._tolerance)

    @property
    def residual(self) -> float:
        """Largest residual after the last step, lengths relative to the extent, angles in radians."""
        return float(self._control[abi.RESIDUAL_MAX])

    @property
    def iterations(self) -> int:
        """Number of steps made."""
        return int(self._control[abi.ITERATIONS])

    @property
    def stalled(self) -> bool:
        """Whether another step would not reduce the residuals."""
        return int(self._control[abi.STATUS]) != _RUNNING and not self._is_met

    @property
    def state(self) -> State:
        """The current poses."""
        formulations.leave(self._system, self._formulation, self._q, self._poses)
        angles = formulations.angles(self._system, self._poses).copy()
        return self._system.state(
            formulations.from_reference(self._system, self._poses), angles if angles.size else None, self._time
        )


def _target(system: System, length: float, tolerance: float) -> float:
    """The scaled residual at which the verdict on every piece, relative to its own extent, is met."""
    if system.in_one_piece:
        return target_residual(system, length, tolerance)
    own = [piece.system for piece in system.pieces]
    targets = [target_residual(p, length, tolerance) * min(1.0, p.judged_length / length) for p in own]
    return max(min(targets, default=tolerance), LEAST_TARGET)
