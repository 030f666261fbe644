"""Drivers that push against limits: no velocities satisfy the drivers and leave the limits unpassed.

With the rates ġ of all equations but the limits, J v = ġ has the solutions v = v₀ + N w.  Limits that are reached allow
s c'(v₀ + N w) ≤ 0 only, s = −1 at a lower and +1 at an upper bound.  If no w meets all of these, the residuals of the
nearest one, z ≥ 0, weigh the limits that are in the way, and y of Jᵀy = Σ z s c' the equations that push.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from cardan.coordinates import rates
from cardan.dynamics.equations import Equations
from cardan.system.state import FloatArray

CONTRADICTED: Final = 1e-6  # of the largest given rate: less is rounding
INDEPENDENT: Final = 1e-9  # of a row of length one: a smaller part along a free motion is rounding
TAKES_PART: Final = 1e-3  # of the largest: an equation or a limit with a smaller part is not named
MOST_PASSES: Final = 50  # of the search, times its unknowns


class Push(NamedTuple):
    """Names of the constraints that push, drivers in general, and the numbers of the stops in their way."""

    by: tuple[str, ...]
    stops: tuple[int, ...]


def is_contradicted(run: Any) -> bool:
    """Whether the velocities of a run differ from what its active equations demand."""
    e: Equations = run.equations
    right, _ = rates.driver_rates(e.system, e.problem, run.time, run.q)
    own = e.weights * run.active
    missing = (e.problem.with_floats(run.floats).product(run.q, run.v) - right)[e.equations] * own
    return not np.abs(missing).max(initial=0.0) <= CONTRADICTED * np.abs(right[e.equations] * own).max(initial=0.0)


def find_push(run: Any, q: FloatArray, time: float) -> Push | None:
    """What pushes against the stops that hold in a pose, with the rates of a time [s]; None if nothing does."""
    from scipy.optimize import nnls

    e: Equations = run.equations
    held = np.flatnonzero(run.bounds["side"])
    own = e.stop_table["equation"][held]
    is_fixed = run.active == 1.0  # others are kept without effect
    is_fixed[own] = False
    is_fixed[e.compliances > 0.0] = False
    jacobian = e.problem.with_floats(run.floats).jacobian(q)[1][e.equations] * e.problem.scales[e.problem.rows :]
    lengths = np.linalg.norm(jacobian, axis=1)
    if not np.isfinite(lengths).all():
        return None
    lengths[lengths == 0.0] = 1.0
    rows = jacobian / lengths[:, None]
    right = rates.driver_rates(e.system, e.problem, time, q)[0][e.equations] / lengths
    given, stops = right[is_fixed], rows[own] * run.bounds["side"][held][:, None]
    u, s, v = np.linalg.svd(rows[is_fixed])
    rank = int((s > rates.RANK_RTOL * s.max(initial=0.0)).sum())
    u, s, v, free = u[:, :rank], s[:rank], v[:rank], v[rank:]
    velocity = v.T @ (u.T @ given / s)
    least = CONTRADICTED * np.abs(given).max(initial=0.0)
    if not np.abs(rows[is_fixed] @ velocity - given).max(initial=0.0) <= least:
        return None  # the drivers are inconsistent without the stops, too
    along = stops @ free.T
    along[np.abs(along) < INDEPENDENT] = 0.0
    table, bound = np.hstack([along, -along, np.eye(len(held))]), -stops @ velocity
    z = table @ nnls(table, bound, maxiter=MOST_PASSES * table.shape[1])[0] - bound
    if not z.max(initial=0.0) > least:
        return None
    y = np.zeros(right.size)
    y[is_fixed] = u @ (v @ (stops.T @ z) / s)
    parts = y * right
    owner = {row.start + i: row.constraint for row in e.system.rows for i in range(row.primitive.rows)}
    names = [owner[int(e.equations[k])] for k in np.flatnonzero(parts > TAKES_PART * parts.max())]
    return Push(tuple(dict.fromkeys(names)), tuple(int(k) for k in held[z > TAKES_PART * z.max()]))
