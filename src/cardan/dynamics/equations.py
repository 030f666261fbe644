"""The equations of motion of a packed system as tables for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.coordinates import formulations
from cardan.dynamics.algebra import linear_algebra
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

WIDTH = 6


class Equations:
    """Masses, gravity, constraints and linear algebra of a system whose reference frames are the principal frames.

    ``masses``, shape (bodies, 6): the diagonal of M [kg, kg m²].  ``gravity`` [m/s²].  Threads may share it.
    """

    def __init__(self, system: System, masses: FloatArray, gravity: Any) -> None:
        self.system = system
        self.problem = formulations.motion_problem(system, "manifold")
        self.equations, self.pattern, self.algebra, self.matrix = linear_algebra(system, self.problem.structure)
        own = self.problem.scales[: self.problem.rows][self.equations]
        roots = np.sqrt(masses.ravel())
        self.masses = masses
        self.values = np.concatenate([masses.ravel(), roots, 1.0 / roots, own, np.asarray(gravity, dtype=float)])
        rows = {row.constraint: row.start for row in system.rows}
        number = {int(row): k for k, row in enumerate(self.equations)}
        places = [(position, number[rows[signal.name]]) for position, signal in system.signals]
        self.drivers: IntArray = np.array(places, dtype=np.int64).reshape(-1)
