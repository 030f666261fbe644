"""Degrees of freedom from the rank of the Jacobian, and redundant equations.

The Jacobian of each connected piece is that on the manifold, without guard rows.  Lengths are in units of the piece's
own L, so that lengths and angles are comparable.  Long rows (of gears with large ratios) are shortened, so that other
rows do not look small beside them.  rank J = number of singular values above RANK_RTOL·σ_max; dof = 6·bodies − rank;
redundant equations = equations − rank.  The gap between the last counted and the first dropped singular value shows how
reliable the answer is.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cardan.coordinates import formulations, verdict
from cardan.coordinates.rates import shortening
from cardan.diagnosis import elimination
from cardan.diagnosis.causes import rings
from cardan.diagnosis.motions import FreeMotion, describe, describe_free
from cardan.errors import ModelError
from cardan.math import euler
from cardan.solvers.problem import Problem
from cardan.system import check
from cardan.system.residuals import Violation, violations
from cardan.system.state import FloatArray, State
from cardan.system.system import System

log = logging.getLogger("cardan")

RANK_RTOL = 1e-9  # of the largest singular value; residuals of 1e-12 perturb the zero ones far less than this
UNSURE_GAP = 1e3  # with a smaller gap the answer is uncertain
# At a dead point residuals of 1e-12 leave errors of their square root in the pose, and in the singular value that is
# zero there.  So the answer is uncertain too if a counted value is below this fraction of the largest.
NEARLY_SINGULAR = 1e-5
DENSE_UNKNOWNS = 600  # up to this the dense matrix is decomposed; above, body by body
ROUNDED = 1e-11  # of the largest: a zero value at a pose met to 1e-12 is below; a larger dropped value is uncertain
MOTIONS_TOLD = 6  # in a text


class Equation(NamedTuple):
    """One scalar equation: its constraint, the primitive, and the number of its row."""

    constraint: str
    primitive: str
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """The mobility of a mechanism in one pose.

    ``dof``: independent motions there, without drivers and limits; ``undriven``: those left with the drivers.
    ``gruebler``: 6·bodies − equations.  ``rank``: of the Jacobian.  ``singular_values``: scaled, largest first; for
    large mechanisms those of the elimination, body by body.  ``gap``: ratio of the last counted value to the first
    dropped one, the smallest of all pieces (inf if nothing was dropped).  ``certain``: the rank is clear from the
    values.  ``redundant``: equations that depend on earlier ones.
    ``residuals``: of every constraint, the worst first; ``worst``: of those that are not met.  ``residual``: the worst,
    as in an assembly; ``assembled``: it is met, so that the rank is that of a real pose.  ``unconnected``: bodies that
    are not connected to the ground.  ``free``: bodies that can move.
    ``motions``: a basis of the free motions, shape (dof, bodies, 6): velocity of the body's origin in world axes [m]
    and rotation in body axes [rad], bodies as in ``names``.  In each motion one coordinate changes by 1 rad or 1 m,
    while those of the other motions do not change.  ``free_motions``: this coordinate in words, for each motion.  Both
    are None for a mechanism with a large piece.  ``notes``: rings of gears that are locked or inconsistent, in words.
    """

    dof: int
    undriven: int
    gruebler: int
    rank: int
    equations: int
    redundant: list[Equation]
    singular_values: FloatArray
    gap: float
    certain: bool
    residuals: list[Violation]
    residual: float
    assembled: bool
    unconnected: tuple[str, ...]
    motions: FloatArray | None
    free_motions: tuple[FreeMotion, ...] | None
    names: tuple[str, ...]
    notes: tuple[str, ...]
    worst: list[Violation]

    @property
    def free(self) -> tuple[str, ...]:
        """Bodies that can move."""
        if not self.dof:
            return ()
        if self.free_motions is None:
            raise ModelError(f"free is not available for {len(self.names)} bodies: too many for a basis of motions")
        moving = {name for motion in self.free_motions for name in motion.bodies}
        return tuple(name for name in self.names if name in moving)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Diagnosis):
            return NotImplemented
        for name in self.__dataclass_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            same = np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            if not same:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]  # compared by value, and arrays have no hash

    def text(self) -> str:
        """A short report."""
        if self.rank == self.singular_values.size:
            gap = "no singular value is zero"
        else:
            gap = "the other singular values are zero" if math.isinf(self.gap) else f"gap {self.gap:.1e}"
        unknowns = 6 * len(self.names)
        lines = [
            f"degrees of freedom: {self.dof} ({unknowns} unknowns − rank {self.rank}; {gap})",
            f"Grübler count:      {self.gruebler}",
            f"redundant:          {len(self.redundant)} ({self.equations} equations − rank {self.rank})"
            + "".join(f"\n  {e.constraint}: {e.primitive}, row {e.row}" for e in self.redundant),
        ]
        if self.free_motions:
            told = [f"\n  {motion.text()}" for motion in self.free_motions[:MOTIONS_TOLD]]
            more = f"\n  and {self.dof - MOTIONS_TOLD} more" if self.dof > MOTIONS_TOLD else ""
            lines[0] += "".join(told) + more
        if self.undriven != self.dof:
            lines.insert(1, f"with the drivers:   {self.undriven}")
        if not self.certain:
            lines.append("  uncertain: the singular values show no clear gap; the pose may be near a singular one")
        lines += [f"  {note}" for note in self.notes]
        if not self.assembled:
            lines.append(f"not assembled: largest residual {self.residual:.1e}; the rank is that of this pose only")
            lines += [f"  {v.name}: {v.text()}" for v in self.worst[:5]]
        if self.unconnected:
            lines.append(f"not connected to the ground: {', '.join(map(repr, self.unconnected))}")
        return "\n".join(lines)


def diagnose(system: System, state: State, tolerance: float) -> Diagnosis:
    """See :meth:`cardan.Mechanism.diagnose`."""
    tolerance = verdict.checked_tolerance(tolerance)
    if set(state.names) != set(system.names):
        raise ModelError(
            f"the state has the bodies {list(state.names)[:5]}, the mechanism {list(system.names)[:5]}; pass a "
            "state of this mechanism"
        )
    for name, row in zip(state.names, state.coordinates, strict=True):
        if not np.isfinite(row).all():
            raise ModelError(f"the pose of body {name!r} is {row.tolist()}; every number in it must be finite")
        if np.abs(row).max() > check.LARGEST:
            raise ModelError(f"the pose of body {name!r} is {row.tolist()}; no number may exceed {check.LARGEST}")
    coordinates = state.coordinates
    if state.names != system.names:
        coordinates = coordinates[[state.names.index(name) for name in system.names]]
    near = np.array([state.angles.get(key, 0.0) for key in system.counted_angles])
    found = [
        _freedom(piece.system, piece.take(coordinates), piece.take_angles(near), state.time) for piece in system.pieces
    ]
    rank = sum(f.rank for f in found)
    motions, free_motions = _motions(system, coordinates, near, found) or (None, None)
    judged, residuals = verdict.judge_system(system, coordinates, near, tolerance, state.time)
    bounds = None if judged.met else verdict.row_bounds(system, coordinates, near, tolerance)
    return Diagnosis(
        dof=6 * len(system.names) - rank,
        undriven=6 * len(system.names) - sum(f.driven_rank for f in found),
        gruebler=system.gruebler,
        rank=rank,
        equations=system.equations,
        redundant=[equation for f in found for equation in f.redundant],
        singular_values=np.sort(np.concatenate([f.values for f in found] or [np.zeros(0)]))[::-1],
        gap=min((f.gap for f in found), default=math.inf),
        certain=all(f.certain for f in found),
        residuals=violations(system, residuals),
        residual=judged.residual,
        assembled=judged.met,
        unconnected=system.unconnected,
        motions=motions,
        free_motions=free_motions,
        names=system.names,
        notes=tuple(rings(system)),
        worst=[] if judged.met else violations(system, residuals, bounds),
    )


@dataclass(frozen=True, slots=True)
class _Freedom:
    """The mobility of one connected piece."""

    rank: int
    driven_rank: int  # with the drivers
    values: FloatArray
    redundant: list[Equation]
    motions: FloatArray | None

    @property
    def dropped(self) -> float:
        return float(self.values[self.rank]) if self.rank < self.values.size else 0.0

    @property
    def gap(self) -> float:
        return float(self.values[self.rank - 1] / self.dropped) if self.rank and self.dropped > 0.0 else math.inf

    @property
    def certain(self) -> bool:
        """The gap is large, no counted value is close to zero, and no dropped value is above rounding errors."""
        if not self.rank:
            return True
        largest, least = float(self.values[0]), float(self.values[self.rank - 1])
        return self.gap >= UNSURE_GAP and least >= NEARLY_SINGULAR * largest and self.dropped <= ROUNDED * largest


def _freedom(piece: System, coordinates: FloatArray, near: FloatArray, time: float) -> _Freedom:
    q = formulations.to_reference(piece, coordinates, near)
    length = piece.extent_at(q)
    problem = formulations.problem(piece, "manifold", length, time)
    drivers = {signal.name for _, signal in piece.signals}
    equations = {
        start + i: Equation(name, primitive.name, i)
        for name, primitive, start in piece.rows
        for i in range(primitive.rows)
        if i not in primitive.guards
    }
    rows = [row for row, equation in equations.items() if equation.constraint not in drivers]
    find = _dense if problem.unknowns <= DENSE_UNKNOWNS else _sparse
    rank, values, redundant, motions = find(problem, q, rows)
    driven_rank = find(problem, q, list(equations))[0] if drivers else rank
    return _Freedom(rank, driven_rank, values, [equations[row] for row in redundant], motions)


def _motions(
    system: System, coordinates: FloatArray, near: FloatArray, found: list[_Freedom]
) -> tuple[FloatArray, tuple[FreeMotion, ...]] | None:
    """The free motions of all pieces, and six of every body in no piece."""
    count = len(system.names)
    in_piece = np.zeros(count, dtype=bool)
    blocks = [np.zeros((0, count, 6))]
    words: list[FreeMotion] = []
    for piece, f in zip(system.pieces, found, strict=True):
        if f.motions is None:
            return None
        in_piece[piece.bodies] = True
        own, told = describe(piece.system, piece.take(coordinates), piece.take_angles(near), f.motions)
        block = np.zeros((len(own), count, 6))
        piece.put(own, block)
        blocks.append(block)
        words += told
    for body in np.flatnonzero(~in_piece):
        block = np.zeros((6, count, 6))
        block[:3, body, :3] = np.eye(3)
        block[3:, body, 3:] = euler.matrix(coordinates[body, 3:])  # rotations about the world's axes, in body axes
        blocks.append(block)
        words += describe_free(system.names[body])
    return np.concatenate(blocks), tuple(words)


Finding = tuple[int, FloatArray, list[int], FloatArray | None]  # rank, values, redundant rows, motions


def _dense(problem: Problem, q: FloatArray, rows: list[int]) -> Finding:
    """By the singular values of the whole Jacobian."""
    _, jacobian = problem.jacobian(q)
    scaled = jacobian * problem.scales[: problem.rows, None] * problem.scales[problem.rows :]
    shortened = scaled[rows] * shortening(scaled[rows])[:, None]
    if not rows:
        return 0, np.zeros(0), [], np.eye(problem.unknowns)
    _, values, right = np.linalg.svd(shortened, full_matrices=True)
    rank = int((values > RANK_RTOL * values[0]).sum())
    return rank, values, [rows[i] for i in dependent_rows(shortened, rank)], right[rank:]


def _sparse(problem: Problem, q: FloatArray, rows: list[int]) -> Finding:
    """Body by body; see :mod:`cardan.diagnosis.elimination`."""
    parts = elimination.fronts(problem, q, set(rows))
    cut = RANK_RTOL * elimination.largest_block(parts)
    rank, values = elimination.pivots(parts, cut)
    redundant = elimination.redundant_rows(parts, cut) if rank < len(rows) else []
    if len(redundant) != len(rows) - rank:
        log.warning("the rank implies %d redundant equations, but %d were found", len(rows) - rank, len(redundant))
    return rank, values, redundant, None


def dependent_rows(matrix: FloatArray, rank: int) -> list[int]:
    """The len(matrix) − rank rows that depend on the rows before them: modified Gram–Schmidt, twice per row.

    A row is independent if it has a component orthogonal to the rows before it.  If rounding makes their number differ
    from the rank, the rows with the largest components count as independent.
    """
    space = np.empty((min(matrix.shape), matrix.shape[1]))
    found = 0
    component = np.zeros(matrix.shape[0])
    size = float(np.sqrt((matrix * matrix).sum(axis=1)).max(initial=0.0))
    for i, row in enumerate(matrix):
        basis = space[:found]
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        component[i] = float(np.sqrt(rest @ rest))
        if component[i] > RANK_RTOL * size and found < len(space):
            space[found] = rest / component[i]
            found += 1
    order = np.argsort(-component, kind="stable")
    return sorted(int(i) for i in order[rank:])
