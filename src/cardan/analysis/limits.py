"""Which limits a state has reached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.system import layout
from cardan.system.state import State
from cardan.system.system import System, ints_at

# A coordinate this near to a bound, lengths relative to the extent of its piece, angles in radians, has reached it: far
# above what an assembly leaves open, far below what a designer would call a gap.
REACHED = 1e-9


class ActiveLimit(NamedTuple):
    """A limit whose bound a coordinate has reached."""

    name: str
    bound: str  # "lower" or "upper"
    value: float  # of the coordinate
    unit: str


def active_limits(system: System, state: State) -> list[ActiveLimit]:
    """Limits whose bound is reached, or exceeded, in a state."""
    found = []
    every = limited(system, state)
    lengths = {row.constraint: piece.length for _, piece in system.components() for row in piece.rows} if every else {}
    for name, value, lower, upper, unit in every:
        near = REACHED * ((lengths[name] or 1.0) if unit == "m" else max(1.0, abs(value)))
        for bound, reached in (("lower", value <= lower + near), ("upper", value >= upper - near)):
            if reached:
                found.append(ActiveLimit(name, bound, value, unit))
    return found


def limited(system: System, state: State) -> list[tuple[str, float, float, float, str]]:
    """Name, value, lower and upper bound and unit of every coordinate that has limits."""
    rows = [row for row in system.rows if row.primitive.code >= 0 and not row.primitive.equations]
    if not rows:
        return []
    # With both bounds at zero the residual of a limit is the coordinate itself.
    floats = system.floats.copy()
    bounds = {}
    for row, par in zip(system.rows, ints_at(system, layout.PAR), strict=True):
        if row.primitive.code >= 0 and not row.primitive.equations:
            bounds[row.start] = float(floats[par]), float(floats[par + 1])
            floats[par : par + 2] = 0.0
    near = np.array([state.angles.get(key, 0.0) for key in system.turns])
    problem = formulations.problem(system, "manifold").with_floats(floats)
    values = problem.residual(formulations.to_reference(system, state.coordinates, near))
    return [(row.constraint, float(values[row.start]), *bounds[row.start], row.primitive.unit) for row in rows]
