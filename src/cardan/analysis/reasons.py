"""Why drivers cannot be followed: what they ask for is out of range, or contradicts something else."""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.coordinates import rates
from cardan.solvers.problem import Problem
from cardan.system.state import FloatArray
from cardan.system.system import System

CONTRADICTED: Final = 1e-6  # of the rates asked for: less is rounding; and of the worst one: less is not named
MOST_NAMED: Final = 5


def out_of_range(system: System, time: float, soon: float) -> str:
    """Which driver will ask for what its coordinate cannot be, a while [s] after a time [s]; "" where none does."""
    kinds = {row.constraint: row.primitive.name for row in system.rows}
    for _, signal in system.signals:
        jet = signal.jet(time)
        value = jet.value + soon * (jet.rate + 0.5 * soon * jet.acceleration)
        if kinds[signal.name] == "angle" and not 0.0 <= value <= np.pi:
            return f"driver {signal.name!r} asks for an inclination of {value:.8g} rad; it lies in [0, π]"
        if kinds[signal.name] == "distance" and value < 0.0:
            return f"driver {signal.name!r} asks for a distance of {value:.3g} m; it is never negative"
    return ""


def contradiction(system: System, problem: Problem, q: FloatArray, time: float) -> str:
    """Which constraints no rates of the bodies can keep, and by how much each falls short; "" where some rates do."""
    velocity, _ = rates.solver_rates(system, problem, q, time)
    rows = {row.constraint: row.start for row in system.rows}
    wanted = np.zeros(problem.rows)
    for _, signal in system.signals:
        wanted[rows[signal.name]] = signal.jet(time).rate
    weights = rates.weights(system, problem)
    short = np.abs(wanted - problem.product(q, velocity))
    scaled = short * weights
    if not scaled.max() > CONTRADICTED * np.abs(wanted * weights).max():
        return ""
    worst = []
    for name, primitive, start in system.rows:
        k = start + int(scaled[start : start + primitive.rows].argmax())
        if scaled[k] > CONTRADICTED * scaled.max():
            worst.append((-scaled[k], f"{name!r} by {short[k]:.4g} {primitive.units[k - start]}/s"))
    return ", ".join(text for _, text in sorted(worst)[:MOST_NAMED])
