"""Residual of each constraint in metres and radians, by its name."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cardan.calls import explains
from cardan.constraints.registry import LENGTH_POWER
from cardan.system.display import DEFAULT, Display
from cardan.system.state import FloatArray
from cardan.system.system import System


class _Residual(NamedTuple):
    name: str
    residual: float
    unit: str


@explains()
class Violation(_Residual):
    """Residual of one constraint in one unit: (name, residual, unit); ``display``: the units of its text."""

    display: Display = DEFAULT

    def text(self) -> str:
        """In the units of the mechanism's display."""
        return self.display.text(self.residual, self.unit)


def violations(system: System, residuals: FloatArray, bounds: FloatArray | None = None) -> list[Violation]:
    """Residual of every constraint, one entry per unit it has: the norm of its rows, angles as true angles [rad].

    residuals: unscaled, shape (rows,), of the judged system.  Largest first, lengths measured in L.
    bounds: of the rows; if given, an entry all of whose rows are within them is left out.
    """
    system = system.judged()
    squares: dict[tuple[str, str], float] = {}
    unmet = set()
    for name, primitive, start in system.rows:
        for unit in dict.fromkeys(primitive.units):
            mine = [start + i for i in range(primitive.rows) if primitive.units[i] == unit]
            if bounds is None or not (np.abs(residuals[mine]) <= bounds[mine]).all():
                unmet.add((name, unit))
            value = math.hypot(*residuals[mine].tolist())
            if primitive.measure == "chord":
                value = 2.0 * math.asin(min(1.0, 0.5 * value))
            elif primitive.measure == "sine":
                value = math.asin(min(1.0, value))
            squares[name, unit] = squares.get((name, unit), 0.0) + value * value
    found = [Violation(key[0], math.sqrt(square), key[1]) for key, square in squares.items() if key in unmet]
    for violation in found:
        violation.display = system.display
    # NaN counts as the worst
    size = {unit: system.judged_length**power for unit, power in LENGTH_POWER.items()}
    return sorted(found, key=lambda v: (not math.isnan(v.residual), -v.residual / size[v.unit]))


def accepting_tolerance(residual: float, *, squared: bool = False) -> float:
    """The smallest power of ten that, as a tolerance, accepts a residual (lengths in L, angles in radians).

    squared: where the square of the tolerance is the bound, because L is only how far apart the bodies were drawn.
    """
    return float(f"1e{math.ceil(math.log10(math.sqrt(residual) if squared else residual))}")
