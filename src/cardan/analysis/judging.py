"""The verdict on many starts of a connected piece at once, in one jitted call."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.coordinates import formulations, verdict
from cardan.solvers import abi
from cardan.system import layout
from cardan.system.state import FloatArray
from cardan.system.system import System


def shift(piece: System, q: FloatArray, sign: float) -> None:
    """Poses in the rows of q from body origins to reference points (+1) or back (−1), by the kernel for one of them."""
    from cardan.system import _tables

    bodies = len(piece.names)
    poses = np.ascontiguousarray(q[:, : layout.POSE * bodies])
    reference_points = np.tile(piece.reference_points.reshape(-1), len(q))
    _tables.shift_reference(bodies * len(q), reference_points, piece.origin, sign, poses.reshape(-1))
    q[:, : layout.POSE * bodies] = poses


def update_angles(piece: System, q: FloatArray) -> None:
    """Angles of the turns in the rows of q ← those of its poses, within half a turn of what the rows say."""
    from cardan.analysis import _winding

    if not piece.counted_angles or not len(q):
        return
    problem = formulations.problem(piece, "manifold")
    zeros, moved = np.zeros(problem.unknowns), np.empty(q.shape[1])
    work = np.empty(int(problem.structure[abi.WORK]))
    flat = q.reshape(-1)  # a view: rows of q are whole
    first = layout.POSE * len(piece.names)
    tables = problem.evaluate, problem.ints, problem.floats
    _winding.update_angles_of_many(*tables, first, flat, len(q), moved, zeros, work)


class Judge:
    """Evaluates every constraint in sharp form at poses that are returned; threads may share it.

    ``tables`` and ``bounds``: as the kernels of :mod:`cardan.analysis._judging` want them.
    """

    def __init__(self, piece: System, tolerance: float, time: float) -> None:
        from cardan.analysis import _judging

        self.piece = piece
        self.problem = formulations.problem(piece.judged(), "manifold", None, time)
        p = self.problem
        self.tables: tuple[Any, ...] = (
            p.ints,
            p.floats,
            piece.judged_powers(),
            piece.reference_points.reshape(-1),
            piece.origin,
        )
        self._kernel: Any = _judging
        self.bounds: FloatArray = np.zeros(_judging.BOUNDS)
        self.bounds[_judging.TOLERANCE] = tolerance
        self.bounds[_judging.LENGTH] = piece.judged_length
        self.bounds[_judging.ROUNDING] = verdict.ROUNDING
        self.bounds[_judging.ROUNDING_MOST] = verdict.ROUNDING_MOST

    def update(self, poses: FloatArray, found: FloatArray) -> None:
        """found ← residual and bound, shape (n, 2).

        poses: r, p of the bodies' origins, then the angles of turns, shape (n, 7 bodies + turns).
        """
        p = self.problem
        shifted = poses.copy()
        shift(self.piece, shifted, 1.0)
        update_angles(self.piece.judged(), shifted)
        zeros, rows, work = np.zeros(p.unknowns), np.empty(p.rows), np.empty(int(p.structure[abi.WORK]))
        given = (self.bounds, len(poses), zeros, poses.reshape(-1), shifted.reshape(-1))
        self._kernel.judge_many(p.evaluate, *self.tables, *given, rows, work, found.reshape(-1))
