"""Why the drivers cannot be followed: a value is out of range, or the drivers are inconsistent with the joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from cardan.coordinates import rates
from cardan.solvers.problem import Problem
from cardan.system import reading
from cardan.system.state import FloatArray
from cardan.system.system import System

CONTRADICTED: Final = 1e-6  # of the largest driver rate: less is rounding; of the largest residual: less is not listed
MOST_NAMED: Final = 5
MOST_LISTED: Final = 12
LOCKED: Final = 0.1  # of the largest multiplier, or of the largest velocity: less does not belong to what locks
DEPENDENT: Final = 1e-6  # of the largest singular value: drivers are independent in directions with a larger one
TAKES_PART: Final = 1e-3  # of a unit combination of drivers: a driver with a smaller part is not named
MOST_UNKNOWNS: Final = 1200  # dependent drivers are not looked for in larger systems: that takes seconds


Known = rates.Decomposition | rates.Factorization


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
    right, _ = rates.driver_rates(system, problem, time, q)  # of J v = right
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


def locked(system: System, problem: Problem, q: FloatArray, time: float, known: Known) -> str:
    """Names what locks at a dead point: the drivers that act on it, and the bodies that they cannot move.

    Near a dead point the velocities are large along the motion that locks.  Their multipliers are large for the
    constraints that lock it.
    """
    weights = rates.weights(system, problem)
    w = known.solve(rates.driver_rates(system, problem, time, q)[0]) / problem.scales[problem.rows :]
    y = np.abs(np.divide(known.multipliers(w), weights, out=np.zeros_like(weights), where=weights > 0.0))
    speeds = np.linalg.norm(w.reshape(-1, 6), axis=1)
    rows = rates.driver_rows(system)
    largest = max([y[row] for row in rows.values()], default=0.0)
    drivers = [name for name, row in rows.items() if y[row] >= LOCKED * largest]
    bodies: set[int] = set()
    ints = system.ints.tolist()
    for at, (_, primitive, start) in zip(system.starts[:-1].tolist(), system.rows, strict=True):
        if y[start : start + primitive.rows].max(initial=0.0) > LOCKED * y.max():
            bodies |= set(reading.bodies(ints, at))
    moving = [system.names[k] for k in sorted(bodies) if speeds[k] > LOCKED * speeds.max()]
    what = listed(moving) if moving else "the mechanism"
    return f"the {'driver' if len(drivers) == 1 else 'drivers'} {listed(drivers)} cannot move {what} any further"


class Dependence(NamedTuple):
    """Drivers that depend on each other in a pose, given the joints.

    ``combinations``: of the drivers' rates, shape (rank deficiency, drivers), which the joints make zero.
    """

    rank: int
    names: tuple[str, ...]
    combinations: FloatArray


def dependent_drivers(system: System, problem: Problem, q: FloatArray, count: int | None = None) -> Dependence:
    """Dependent drivers in a pose; count: the number of combinations, if it is known."""
    rows = rates.driver_rows(system)
    weights = rates.weights(system, problem)
    _, jacobian = problem.jacobian(q)
    scaled = jacobian * weights[:, None] * problem.scales[problem.rows :]
    scaled *= rates.shortening(scaled)[:, None]
    is_joint = weights > 0.0
    is_joint[list(rows.values())] = False
    _, values, right = np.linalg.svd(scaled[is_joint])
    free = right[int((values > rates.RANK_RTOL * values.max(initial=0.0)).sum()) :]
    names = tuple(rows)
    u, s, _ = np.linalg.svd(scaled[list(rows.values())] @ free.T)
    s = np.concatenate([s, np.zeros(len(names) - s.size)])
    if count is None:
        count = int((s <= DEPENDENT * s.max(initial=0.0)).sum())
    found = u[:, len(names) - count :].T
    part = np.linalg.norm(found, axis=0)
    return Dependence(len(names) - count, tuple(n for n, p in zip(names, part, strict=True) if p > TAKES_PART), found)


def contradicting_drivers(system: System, problem: Problem, first: FloatArray, q: FloatArray, time: float) -> str:
    """Describes drivers that depend on each other in two poses of a motion and want different rates in the second."""
    if problem.unknowns > MOST_UNKNOWNS:
        return ""
    count = len(dependent_drivers(system, problem, first).combinations)
    if not count:
        return ""
    found = dependent_drivers(system, problem, q, count)
    rows = list(rates.driver_rows(system).values())
    rate = (rates.driver_rates(system, problem, time, q)[0] * rates.weights(system, problem))[rows]
    if not np.abs(found.combinations @ rate).max() > CONTRADICTED * np.abs(rate).max():
        return ""
    every = len(system.signals)
    return f"drivers {listed(found.names)} depend on each other: the {every} drivers have the rank {found.rank}"


def listed(names: Sequence[str]) -> str:
    """Some names, and the number of the others."""
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(map(repr, names[:MOST_LISTED])) + more
