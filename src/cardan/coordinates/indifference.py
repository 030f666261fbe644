"""Constraints that know nothing of the world: their value is the same in all axes, or a vector that turns with them."""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.coordinates import formulations
from cardan.math import euler
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import Row, System

INDIFFERENT: Final = 1e-9  # of its derivatives' size: what a rigid motion of all bodies may change of a constraint
SIZES: Final = (1.0, 1e-2, 1e2, 1.0, 1e-1, 1e1, 1e3, 1.0)  # m, of the poses it is tried at


def is_indifferent(system: System, row: Row) -> bool:
    """Whether a constraint states only how its features lie to each other, as all built-in primitives do: its value is
    the same in all axes, or is a vector that is turned along with them.

    A primitive of the user's is tried: at random poses of the system a rigid motion of all bodies, a displacement and
    a turn ω, must change its value f by 0, or by ω × f, to first order.  A smooth function that knows of the world's
    axes or origin fails it almost everywhere; of one made of pieces no place tells enough, and it does not count.
    """
    if row.primitive.code >= 0:
        return True
    if row.primitive.piecewise:
        return False
    tried: FloatArray = system.cached("rigid motions", lambda: rigid_changes(system))
    return bool((tried[row.start : row.start + row.primitive.rows] <= INDIFFERENT).all())  # not so where it is NaN


def rigid_changes(system: System) -> FloatArray:
    """Per row, by how much a rigid motion changes it otherwise, in parts of its derivatives' size; shape (rows,)."""
    rng = np.random.default_rng(1)
    tried = [_changes_at(system, _random_poses(len(system.names), size, rng)) for size in SIZES]
    worst: FloatArray = np.max(tried, axis=0)
    return worst


def _random_poses(count: int, size: float, rng: np.random.Generator) -> FloatArray:
    poses = rng.normal(size=(count, layout.POSE))
    poses[:, :3] *= size
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1)[:, None]
    return poses


def _changes_at(system: System, poses: FloatArray) -> FloatArray:
    problem = formulations.problem(system, "manifold", 1.0)
    f, entries = problem.entries(
        formulations.rewound(system, np.concatenate([poses.ravel(), np.zeros(len(system.turns))]))
    )
    changes: FloatArray = np.empty(system.powers.size)
    matrices = [euler.matrix(p) for p in poses[:, 3:]]
    reach = max(1.0, float(np.abs(poses[:, :3]).max(initial=0.0)))  # a lever: a moment is as uncertain as it is long
    for record in system.starts[:-1].tolist():
        row, rows, block, slots = (int(system.ints[record + k]) for k in _PLACES)
        bodies = system.ints[record + layout.RECORD :][:slots]
        J = entries[6 * block : 6 * (block + rows * slots)].reshape(rows, slots, 6)
        moments = np.zeros((rows, 3))
        for k, body in enumerate(bodies):
            moments += J[:, k, 3:] @ matrices[body].T + np.cross(poses[body, :3], J[:, k, :3])
        turned = np.abs(moments).max(axis=1)
        if rows == 3:
            along = np.abs(moments + euler.tilde(f[row : row + 3])).max(axis=1)  # ω × f = −f̃ ω
            turned = min(turned, along, key=np.max)
        shifted = np.abs(J[:, :, :3].sum(axis=1)).max(axis=1)
        size = np.abs(J).max(axis=(1, 2), initial=np.finfo(float).tiny)
        changes[row : row + rows] = np.maximum(shifted, turned / reach) / size
    return changes


_PLACES = (layout.ROW, layout.ROWS, layout.BLOCK, layout.SLOTS)
