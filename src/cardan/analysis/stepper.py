"""One solver step at a time: for loops that must return within microseconds, and for watching an assembly happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cardan.analysis.assemble import TARGET, start_angles, start_coordinates, start_time
from cardan.analysis.winding import with_whole_turns
from cardan.coordinates import formulations
from cardan.coordinates.formulations import Formulation
from cardan.solvers import abi, methods
from cardan.solvers.abi import Outcome
from cardan.system import check
from cardan.system.state import FloatArray, State
from cardan.system.system import System

_CONVERGED = int(Outcome.CONVERGED)  # a plain number: comparing with an enum member costs more than half a step


class Stepper:
    """Levenberg–Marquardt, step by step, in a workspace made once.  Not to be shared between threads.

    >>> stepper = mechanism.stepper()            # doctest: +SKIP
    >>> while not stepper.step():                # doctest: +SKIP
    ...     draw(stepper.state)
    """

    def __init__(
        self,
        system: System,
        start: State | Mapping[Any, Any] | None,
        at_time: float | None,
        formulation: Formulation,
        tolerance: float,
    ) -> None:
        from cardan.solvers import _levenberg_marquardt as kernel

        check.choice(formulation, "formulation", formulations.CHOICES)
        self._system = system
        self._formulation = formulation
        coordinates, near = start_coordinates(system, start), start_angles(system, start)
        self._poses: FloatArray = formulations.to_reference(system, coordinates, near)
        self._time = start_time(start, at_time)
        length = system.extent_at(self._poses)
        self._poses = with_whole_turns(system, self._poses, length, self._time)
        self._q: FloatArray = formulations.enter(system, formulation, self._poses)
        p = formulations.problem(system, formulation, length, self._time)
        self._control: FloatArray = np.zeros(abi.CONTROL)
        self._control[abi.TOLERANCE] = TARGET * check.positive(tolerance, "tolerance")
        self._control[abi.DAMPING] = methods.INITIAL_DAMPING
        self._control[abi.GROWTH] = 2.0
        self._control[abi.CHUNK] = 1.0
        work = np.empty(kernel.levenberg_marquardt_work(p.structure, p.linear.work))
        self._run = kernel.levenberg_marquardt
        tables = (p.evaluate, p.ints, p.floats, p.structure, p.scales, p.linear.address, p.linear.pattern)
        self._arguments = (*tables, self._q, self._control, work)

    def step(self) -> bool:
        """One damped step from where it is; True once every residual is met."""
        met: bool = self._run(*self._arguments) == _CONVERGED
        return met

    @property
    def residual(self) -> float:
        """Largest residual after the last step, lengths relative to the extent, angles in radians."""
        return float(self._control[abi.RESIDUAL_MAX])

    @property
    def iterations(self) -> int:
        """Steps made."""
        return int(self._control[abi.ITERATIONS])

    @property
    def stalled(self) -> bool:
        """Another step would not get nearer."""
        return int(self._control[abi.STATUS]) in (Outcome.STALLED, Outcome.BROKEN)

    @property
    def state(self) -> State:
        """The poses now."""
        formulations.leave(self._system, self._formulation, self._q, self._poses)
        angles = formulations.angles(self._system, self._poses).copy() if self._system.counted_angles else None
        return self._system.state(formulations.from_reference(self._system, self._poses), angles, self._time)
