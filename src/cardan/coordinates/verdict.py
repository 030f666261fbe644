"""Whether a pose meets every constraint: the one verdict that assembly, motion, stepping and diagnosis share.

Every primitive is judged in metres and radians, and every connected piece of a mechanism by its own extent: a small
part in a large assembly has to meet the tolerance relative to its own size.

If a piece has no length of its own, its extent is the spread S of its bodies as drawn (System.spread).
Rigid motions and units leave no other length.  But S says nothing about the parts: a joint that is open by tol S is not
closed.  The bound is tol² S, which few more iterations reach from tol S, or the rounding of the
coordinates in the judged pose, if that is larger.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.coordinates.tables import Judged, JudgeWork
from cardan.errors import ModelError
from cardan.lazy import LazyModule, TieredModule
from cardan.solvers.tables import Structure
from cardan.system import check
from cardan.system import tables as layout
from cardan.system.state import FloatArray
from cardan.system.system import IntArray, System

_tables = LazyModule("cardan.system._tables")
_judging = LazyModule("cardan.coordinates._judging")
_verdict = TieredModule("cardan.coordinates._verdict")

TOLERANCE: Final = 1e-12  # the default: lengths relative to the extent, angles in radians
# Rounding of a pose changes a residual by up to this, relative to its coordinates: a smaller bound cannot be met.
ROUNDING = 64 * float(np.finfo(float).eps)
ROUNDING_MOST = 1e-6  # largest bound: with larger rounding errors a mechanism with an extent is never assembled
MOST_NAMED: Final = 5  # bodies

_NONE: FloatArray = np.empty(0)


class Verdict(NamedTuple):
    """The residual that is largest in relation to its bound (lengths relative to the extent), and that bound.

    The residual is inf where a pose is not finite.
    """

    residual: float
    bound: float

    @property
    def met(self) -> bool:
        """Whether every constraint is met."""
        return self.residual <= self.bound

    def excess(self, tolerance: float) -> float:
        """The factor by which a tolerance must be larger to accept the residual; at most 1 where it is met."""
        ratio = self.residual / self.bound
        return ratio if self.bound >= tolerance else math.sqrt(ratio)


def checked_tolerance(value: Any) -> float:
    """A valid tolerance: above 0, below 1."""
    tolerance = check.positive(value, "tolerance")
    if tolerance >= 1.0:
        raise ModelError(f"tolerance is {tolerance}; it must be below 1 (lengths are relative to the extent)")
    return tolerance


def residuals(system: System, coordinates: FloatArray, near: FloatArray | None = None, time: float = 0.0) -> FloatArray:
    """Of every row in metres or radians, shape (rows,), with r, p of each body, shape (bodies, 7).

    near [rad], shape (variables + counted angles,): whole turns are counted from these.  time [s]: of the drivers.
    """
    judged = system.judged()
    problem = formulations.problem(judged, "manifold", None, time)
    return problem.residual(formulations.to_reference(judged, coordinates, near))


def judge(
    piece: System,
    coordinates: FloatArray,
    tolerance: float,
    *,
    angles: FloatArray | None = None,
    time: float = 0.0,
    known: FloatArray | None = None,
) -> Verdict:
    """The verdict on a connected piece in a pose; arguments as of :func:`residuals`.

    Only lengths are allowed the rounding of far-away coordinates: an orientation is as accurate there as anywhere.
    known: the residuals, if they are computed already.
    """
    found = residuals(piece, coordinates, angles, time) if known is None else known
    out = np.empty(2)
    _verdict.judge(
        found,
        piece.judged_powers(),
        coordinates.reshape(-1),
        _NONE if angles is None else angles[len(piece.variable_names) :] if piece.variable_names else angles,
        piece.reference_frames.reshape(-1),
        piece.origin,
        _bounds(piece, tolerance),
        out,
    )
    return Verdict(float(out[0]), float(out[1]))


def judge_system(
    system: System, coordinates: FloatArray, angles: FloatArray, tolerance: float, time: float
) -> tuple[Verdict, FloatArray]:
    """The verdict on a system, which is that on the worst of its pieces; and the residuals of all rows."""
    found = residuals(system, coordinates, angles, time)
    if system.in_one_piece:
        return judge(system, coordinates, tolerance, angles=angles, known=found), found
    worst = Verdict(0.0, tolerance)
    for piece in system.pieces:
        own = judge(piece.system, piece.take(coordinates), tolerance, angles=piece.take_angles(angles), time=time)
        if own.excess(tolerance) > worst.excess(tolerance) or not np.isfinite(own.residual):
            worst = own
    return worst, found


def row_bounds(system: System, coordinates: FloatArray, angles: FloatArray, tolerance: float) -> FloatArray:
    """The bound of every row in its own unit, shape (rows,), as the verdict on each piece applies it."""
    found = np.full(len(system.powers), tolerance)
    for piece in system.pieces:
        own, length = piece.system, piece.system.judged_length
        far = _largest_coordinate(own, piece.take(coordinates))
        counted = piece.take_angles(angles)[len(own.variable_names) :]
        largest = max(1.0, float(np.abs(counted).max(initial=0.0)))
        _, least, _, rounding_least, *_ = _bounds(own, tolerance).tolist()
        of_lengths = max(least, min(max(rounding_least, ROUNDING * far / length), ROUNDING_MOST))
        powers = own.judged_powers()
        sizes = np.where(powers < 0, np.maximum(-powers, largest), 1.0)
        others = np.maximum(tolerance, ROUNDING * sizes)
        found[piece.rows_in(system)] = np.where(powers > 0, of_lengths * length ** np.maximum(powers, 0), others)
    return found


def _largest_coordinate(piece: System, coordinates: FloatArray) -> float:
    points = (coordinates[:, :3], piece.reference_points, piece.origin)
    return max(float(np.abs(table).max(initial=0.0)) for table in points)


def too_far(system: System, coordinates: FloatArray, known: FloatArray) -> list[str]:
    """Pieces that are open by rounding at most, but too small for the place where they are, in words.

    known: the residuals of all rows.
    """
    found = []
    for piece in system.pieces:
        own, length = piece.system, piece.system.judged_length
        far = _largest_coordinate(own, piece.take(coordinates))
        open_by = np.abs(known[piece.rows_in(system)])[own.judged_powers() == 1]
        if own.own_length and open_by.size and max(ROUNDING_MOST * length, open_by.max()) < ROUNDING * far:
            bodies = ", ".join(map(repr, own.names[:MOST_NAMED])) + " …" * (len(own.names) > MOST_NAMED)
            found.append(
                f"coordinates of {bodies} are up to {far:.3g} m, where rounding opens joints by up to "
                f"{ROUNDING * far:.2g} m; that is too much for an extent of {length:.3g} m: draw these parts nearer to "
                "the origin, or correct their lengths"
            )
    return found


def _bounds(piece: System, tolerance: float) -> FloatArray:
    """The bounds that the kernels read, in the order of :class:`~cardan.coordinates.tables.Bounds`."""
    length = piece.judged_length
    share = tolerance if piece.spread else 1.0
    of_lengths = max(share * tolerance, piece.noise / length)
    resolved = max(of_lengths, ROUNDING_MOST) if piece.own_length else math.inf
    return np.array([tolerance, of_lengths, ROUNDING, share * ROUNDING, ROUNDING_MOST, resolved, length])


class Judge:
    """The verdict on many poses of a connected piece, for kernels; threads may share it.

    ``table`` and ``bounds``: as the kernels of :mod:`cardan.coordinates._judging` read them.
    """

    def __init__(self, piece: System, tolerance: float, time: float) -> None:
        self.piece = piece
        self.problem = p = formulations.problem(piece.judged(), "manifold", None, time)
        self.bounds = _bounds(piece, tolerance)
        frames = piece.reference_frames.reshape(-1)
        bodies, angles = len(piece.names), len(piece.counted_angles)
        variables = len(piece.variable_names)
        size = layout.POSE * bodies + variables + angles
        _, unknowns, _, _, evaluation = p.sizes
        pieces = dict.fromkeys(("poses", "shifted", "moved"), size)
        offsets = JudgeWork.plan(**pieces, zeros=unknowns, residuals=p.rows, evaluation=evaluation)
        arrays = {"ints": p.ints, "floats": p.floats, "powers": piece.judged_powers(), "origin": piece.origin}
        sizes = {"bodies": bodies, "variables": variables, "angles": angles, "rows": p.rows}
        self.judged = Judged.new(open=offsets.size, evaluator=p.evaluate, frames=frames, **arrays, **sizes)
        self.judged.frames_size, self.judged.pieces = frames.size, offsets
        self.table: IntArray = self.judged.as_ints
        self._size = int(offsets[-1])

    def workspace(self) -> FloatArray:
        """A workspace for the kernels; threads do not share it."""
        return np.zeros(self._size)  # a part of it is a step of zeros

    def update(self, poses: FloatArray, found: FloatArray) -> None:
        """found ← residual and bound, shape (n, 2).

        poses: r, p of the bodies' origins, then the counted angles, shape (n, 7 bodies + angles).
        """
        shifted = poses.copy()
        shift(self.piece, shifted, 1.0)
        update_angles(self.piece.judged(), shifted)
        rows = (poses.reshape(-1), shifted.reshape(-1))
        _judging.judge_many(self.table, self.bounds, len(poses), *rows, self.workspace(), found.reshape(-1))


def shift(piece: System, q: FloatArray, sign: float) -> None:
    """Poses in the rows of q from body origins to reference points (+1) or back (−1), by the kernel for one of them."""
    bodies = len(piece.names)
    poses = np.ascontiguousarray(q[:, : layout.POSE * bodies])
    frames = np.tile(piece.reference_frames.reshape(-1), len(q))
    _tables.shift_reference(bodies * len(q), frames, piece.origin, sign, poses.reshape(-1))
    q[:, : layout.POSE * bodies] = poses


def update_angles(piece: System, q: FloatArray) -> None:
    """Counted angles in the rows of q ← those of its poses, within half a turn of their previous values."""
    if not piece.counted_angles or not len(q):
        return
    problem = formulations.problem(piece, "manifold")
    zeros, moved = np.zeros(problem.unknowns), np.empty(q.shape[1])
    work = np.empty(int(Structure(problem.structure).work))
    flat = q.reshape(-1)  # a view: rows of q are whole
    first = layout.POSE * len(piece.names) + len(piece.variable_names)
    tables = problem.evaluate, problem.ints, problem.floats
    _judging.update_angles_of_many(*tables, first, flat, len(q), moved, zeros, work)
