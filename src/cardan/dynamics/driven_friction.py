"""Friction of joints in driven motions: efforts and reactions of inverse dynamics, where directions of slip are known.

With λ₀ of the motion without friction and λ_j of a unit force along the coordinate of joint j, both by Jᵀλ = force,

    λ = λ₀ − Σ μ_j λ_j,   μ_j = s_j T_j(W_j(λ)),   s_j = sign ċ_j,

is solved by iteration, at all instants at once.  T and W are those of :mod:`cardan.dynamics._joint_friction`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from cardan.coordinates import rates
from cardan.dynamics.equations import Equations
from cardan.errors import ModelError
from cardan.system.state import FloatArray
from cardan.system.system import Row, System

if TYPE_CHECKING:
    from cardan.dynamics.joint_friction import JointRow

RESTING: Final = 1e-9  # [rad/s], or of the extent per second: a slower coordinate is at rest
STILL: Final = 1e-9  # [rad/s²], or of the extent, likewise
PASSES: Final = 400
EXACT: Final = 1e-14  # of the efforts
SOLVED: Final = 1e-9  # likewise: efforts that change by more in the last pass are not found


def numbers(e: Equations) -> list[int]:
    """The number of the equation of each joint with friction."""
    starts = {row.constraint: row.start for row in e.system.rows}
    number = {int(row): k for k, row in enumerate(e.equations)}
    return [number[starts[one.name]] for one in e.frictions]


def weight(system: System, row: Row) -> float:
    """Of the coordinate of a joint, as rates are compared: 1/L, or 1 of an angle."""
    return 1.0 if row.primitive.units[0] == "rad" else 1.0 / system.unit


def effort(one: JointRow, way: FloatArray, force: FloatArray, torque: FloatArray) -> FloatArray:
    """T of a joint, shape (times,), from R and M at frame b, shape (times, 3) each, in its axes."""
    k, length = one.coefficients(one.law.kinetic), one.law.length
    if one.law.law == "mesh":
        return np.asarray(np.where(force[:, 0] * way < 0.0, k[0], k[1]) * np.abs(force[:, 0]))
    if one.law.law == "thread":
        along = force[:, 2]
        return np.asarray((np.where(along * way * one.ratio > 0.0, k[0], k[1]) + k[2]) * np.abs(along))
    across, moment = force[:, :2], np.stack([torque[:, 1], -torque[:, 0]], axis=1)
    if one.law.law == "guide" and length:
        moment = moment + (0.5 * k[0] * one.law.width) * way[:, None] * across
    tilt = moment / length if length else np.zeros_like(moment)
    ends = np.linalg.norm(0.5 * across + tilt, axis=1) + np.linalg.norm(0.5 * across - tilt, axis=1)
    return np.asarray(k[0] * ends + k[2] * np.abs((torque if one.law.law == "guide" else force)[:, 2]))


def directions(
    e: Equations, times: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """s of every joint with friction, shape (times, joints), and the rows of their coordinates."""
    found = {row.constraint: row for row in e.system.rows}
    rows = [found[one.name].start for one in e.frictions]
    weights = np.array([weight(e.system, found[one.name]) for one in e.frictions])
    own = np.array(
        [e.problem.with_floats(e.floats_at(t)).jacobian(x)[1][rows] for t, x in zip(times.tolist(), q, strict=True)]
    )
    v, a = v.reshape(len(q), -1), a.reshape(len(q), -1)
    rate = np.einsum("kij,kj->ki", own, v) * weights
    bias = np.array([rates.gamma_at(e.system, *one)[rows] for one in zip(q, v, times.tolist(), strict=True)])
    growth = (np.einsum("kij,kj->ki", own, a) - bias) * weights
    ways = np.where(np.abs(rate) > RESTING, np.sign(rate), np.where(np.abs(growth) > STILL, np.sign(growth), 0.0))
    for k, one in enumerate(e.frictions):
        still = np.flatnonzero(ways[:, k] == 0.0)
        if still.size:
            raise ModelError(
                f"joint {one.joint!r} has friction and is at rest at t = {times[still[0]]:g} s, where its effort is "
                "not known: any up to its limit holds it; ask for times at which it moves"
            )
    return ways, own


def solve(
    e: Equations,
    ways: FloatArray,
    loads: Callable[[FloatArray, JointRow], tuple[FloatArray, FloatArray]],
    base: FloatArray,
    units: list[FloatArray],
) -> FloatArray:
    """μ of every joint with friction, shape (times, joints).

    loads: R and M of a joint by multipliers, shape (times, equations).  base: λ₀; units: λ_j, of this shape.
    """
    found = np.zeros_like(ways)
    own = [loads(base, one) for one in e.frictions]
    parts = [[loads(unit, one) for unit in units] for one in e.frictions]
    change = np.inf
    for _ in range(PASSES):
        new = np.empty_like(found)
        for j, one in enumerate(e.frictions):
            force, torque = own[j]
            for k, (df, dt) in enumerate(parts[j]):
                force, torque = force - found[:, k, None] * df, torque - found[:, k, None] * dt
            new[:, j] = ways[:, j] * effort(one, ways[:, j], force, torque)
        change = float((np.abs(new - found).max(axis=0) / np.maximum(np.abs(new).max(axis=0), 1e-300)).max(initial=0.0))
        found = new
        if change <= EXACT or not np.isfinite(change):
            break
    if not change <= SOLVED:
        names = ", ".join(repr(one.joint) for one in e.frictions)
        raise ModelError(f"no finite efforts move the joints with friction {names} as they are driven: they jam")
    return found
