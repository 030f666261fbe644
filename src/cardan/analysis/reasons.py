"""Why the drivers cannot be followed: a value is out of range, or the drivers are inconsistent with the joints."""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.coordinates import rates
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import System

CONTRADICTED: Final = 1e-6  # of the largest driver rate: less is rounding; of the largest residual: less is not listed
MOST_NAMED: Final = 5


def out_of_range(system: System, time: float, soon: float) -> str:
    """Describes a driver whose value is out of range at time + soon [s]; "" if there is none."""
    kinds = {row.constraint: row.primitive.name for row in system.rows}
    for _, signal in system.signals:
        jet = signal.jet(time)
        value = jet.value + soon * (jet.rate + 0.5 * soon * jet.acceleration)
        if kinds[signal.name] == "angle" and not 0.0 <= value <= np.pi:
            return f"driver {signal.name!r} sets an inclination of {value:.8g} rad; it must be in [0, π]"
        if kinds[signal.name] == "distance" and value < 0.0:
            return f"driver {signal.name!r} sets a distance of {value:.3g} m; it must not be negative"
    return ""


def contradiction(system: System, problem: Problem, q: FloatArray, time: float) -> str:
    """Constraints that no velocities satisfy, each with its residual rate; "" if some velocities satisfy all."""
    velocity, _ = rates.solver_rates(system, problem, q, time)
    rows = {row.constraint: row.start for row in system.rows}
    right = np.zeros(problem.rows)  # of J v = right
    for _, signal in system.signals:
        right[rows[signal.name]] = signal.jet(time).rate
    weights = rates.weights(system, problem)
    residual = np.abs(right - problem.product(q, velocity))
    scaled = residual * weights
    if not scaled.max() > CONTRADICTED * np.abs(right * weights).max():
        return ""
    worst = []
    for name, primitive, start in system.rows:
        k = start + int(scaled[start : start + primitive.rows].argmax())
        if scaled[k] > CONTRADICTED * scaled.max():
            worst.append((-scaled[k], f"{name!r} {residual[k]:.4g} {primitive.units[k - start]}/s"))
    return ", ".join(text for _, text in sorted(worst)[:MOST_NAMED])
