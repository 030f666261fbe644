"""Limits that a state has reached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cardan.analysis.starts import tail_of
from cardan.coordinates import formulations
from cardan.system import tables as layout
from cardan.system.state import FloatArray, State
from cardan.system.system import Row, System, ints_at

# A bound is reached if its coordinate is this close to it, lengths relative to the extent of the piece, angles in
# radians: far above the residuals of an assembly, far below any gap that matters in a design.
REACHED = 1e-9


class ActiveLimit(NamedTuple):
    """A limit whose bound a coordinate has reached."""

    name: str
    bound: str  # "lower" or "upper"
    value: float  # of the coordinate
    unit: str


def active_limits(system: System, state: State) -> list[ActiveLimit]:
    """Limits whose bound is reached or exceeded in a state."""
    found = []
    every = limited(system, state)
    pieces = [piece.system for piece in system.pieces] if every else []
    lengths = {row.constraint: piece.judged_length for piece in pieces for row in piece.rows}
    for name, value, lower, upper, unit in every:
        near = REACHED * (lengths[name] if unit == "m" else max(1.0, abs(value)))
        for bound, reached in (("lower", value <= lower + near), ("upper", value >= upper - near)):
            if reached:
                found.append(ActiveLimit(name, bound, value, unit))
    return found


def limited(system: System, state: State) -> list[tuple[str, float, float, float, str]]:
    """Name, value, lower and upper bound and unit of every coordinate that has limits."""
    rows = limit_rows(system)
    if not rows:
        return []
    # With both bounds at zero the residual of a limit is the coordinate itself.
    floats = system.floats.copy()
    bounds = {}
    for row, par in rows:
        bounds[row.start] = float(floats[par]), float(floats[par + 1])
        floats[par : par + 2] = 0.0
    near = tail_of(system, state)
    problem = formulations.problem(system, "manifold").with_floats(floats)
    values = problem.residual(formulations.to_reference(system, state.coordinates, near))
    return [(row.constraint, float(values[row.start]), *bounds[row.start], row.primitive.unit) for row, _ in rows]


def relax_bounds(system: System, floats: FloatArray, length: float, slack: float, rounding: float) -> None:
    """Move every bound in floats outwards by a slack, lengths in units of ``length``, or by its rounding error.

    A coordinate that just touches a bound is then within it.
    """
    for row, par in limit_rows(system):
        unit = length if row.primitive.unit == "m" else 1.0
        for bound, sign in ((par, -1.0), (par + 1, 1.0)):
            if np.isfinite(floats[bound]):
                floats[bound] += sign * max(slack * unit, rounding * abs(floats[bound]))


def limit_rows(system: System) -> list[tuple[Row, int]]:
    """Rows of limits, with the positions of their bounds in the floats."""
    places = zip(system.rows, ints_at(system, layout.PAR), strict=True)
    return [(row, par) for row, par in places if row.primitive.code >= 0 and not row.primitive.equations]
