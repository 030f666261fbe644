"""Degrees of freedom by rank, and what the count of equations hides.

The Jacobian is taken on the manifold with lengths in L, guard rows left out, so that its singular values compare
lengths
and angles in one measure.  rank J = number of singular values above RANK_RTOL·σ_max; dof = 6·bodies − rank; redundant
equations = equations − rank.  The gap between the last value counted and the first one dropped says how far the
answer can be trusted.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.diagnosis import elimination
from cardan.errors import ModelError
from cardan.solvers import abi
from cardan.solvers.problem import Problem
from cardan.system.residuals import Violation, violations
from cardan.system.state import FloatArray, State
from cardan.system.system import System

log = logging.getLogger("cardan")

RANK_RTOL = 1e-9  # of the largest singular value; residuals of 1e-12 perturb the zero ones far less than this
UNSURE_GAP = 1e3  # a gap below this factor is called uncertain
# At a dead point residuals of 1e-12 leave the pose uncertain by their root, and with it the singular value that
# vanishes there: one counted, but below this part of the largest, makes the answer uncertain too.
NEARLY_SINGULAR = 1e-5
DENSE_UNKNOWNS = 600  # up to here the whole matrix is decomposed; beyond, body by body
MET = 1e-9  # residuals above this, lengths relative to L, make the rank that of a pose which is no solution


class Equation(NamedTuple):
    """One scalar equation: the constraint it belongs to, the primitive, and which of its rows."""

    constraint: str
    primitive: str
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What a mechanism can do in one pose.

    ``dof``: independent motions there.  ``gruebler``: 6·bodies − equations.  ``rank`` of the Jacobian, with
    ``singular_values`` (scaled, largest first) and ``gap``, the ratio on both sides of the cut (inf where nothing was
    dropped).  For large mechanisms they are those of the elimination, body by body, instead of the whole Jacobian's.
     ``redundant``: equations that follow from those before them.  ``residuals``: every constraint, the worst
    first.  ``unconnected``: bodies that nothing connects to the ground.  ``free``: bodies that can move at all.
    """

    dof: int
    gruebler: int
    rank: int
    equations: int
    redundant: list[Equation]
    singular_values: FloatArray
    gap: float
    residuals: list[Violation]
    residual: float
    unconnected: tuple[str, ...]
    motions: FloatArray | None  # orthonormal basis of the free motions, shape (dof, unknowns), scaled; None if large
    names: tuple[str, ...]

    @property
    def assembled(self) -> bool:
        """The residuals are met, so that the rank is that of a real pose."""
        return self.residual <= MET

    @property
    def certain(self) -> bool:
        """The singular values fall into two groups far apart, and none of those counted is close to zero."""
        kept = self.singular_values[: self.rank]
        return self.gap >= UNSURE_GAP and not (kept < NEARLY_SINGULAR * self.singular_values[:1].sum()).any()

    @property
    def free(self) -> tuple[str, ...]:
        """Bodies that some free motion moves."""
        if not self.dof:
            return ()
        if self.motions is None:
            raise ModelError(f"free is not known for {len(self.names)} bodies: too many for a basis of free motions")
        size = np.abs(self.motions).reshape(self.dof, len(self.names), -1).max(axis=(0, 2))
        return tuple(name for name, s in zip(self.names, size, strict=True) if s > 1e-6)

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
            gap = "nothing dropped"
        else:
            gap = "those dropped are zero" if math.isinf(self.gap) else f"gap {self.gap:.1e}"
        lines = [
            f"degrees of freedom: {self.dof} (rank {self.rank} of {self.equations} equations; {gap})",
            f"Grübler count:      {self.gruebler}",
            f"redundant:          {len(self.redundant)}"
            + "".join(f"\n  {e.constraint}: {e.primitive}, row {e.row}" for e in self.redundant),
        ]
        if not self.certain:
            lines.append("  uncertain: the singular values show no clear gap; the pose may be near a singular one")
        if not self.assembled:
            lines.append(f"not assembled: largest residual {self.residual:.1e}; the rank is that of this pose only")
            lines += [f"  {v.name}: {v.text()}" for v in self.residuals[:5]]
        if self.unconnected:
            lines.append(f"not connected to the ground: {', '.join(map(repr, self.unconnected))}")
        return "\n".join(lines)


def diagnose(system: System, state: State) -> Diagnosis:
    """See :meth:`cardan.Mechanism.diagnose`."""
    if state.names != system.names:
        raise ModelError(
            f"the state has the bodies {list(state.names)[:5]}, the mechanism {list(system.names)[:5]}; diagnose a "
            "state of this mechanism"
        )
    for name, row in zip(state.names, state.coordinates, strict=True):
        if not np.isfinite(row).all():
            raise ModelError(f"the pose of body {name!r} is {row.tolist()}; every number in it must be finite")
    problem = formulations.problem(system, "manifold")
    q = formulations.to_reference(system, state.coordinates)
    equations = {
        start + i: Equation(name, primitive.name, i)
        for name, primitive, start in system.rows
        for i in range(primitive.rows)
        if i not in primitive.guards
    }
    find = _dense if problem.unknowns <= DENSE_UNKNOWNS else _sparse
    rank, values, redundant, motions = find(problem, q, list(equations))
    dropped = float(values[rank]) if rank < values.size else 0.0
    judge = formulations.problem(system.judged(), "manifold")
    residuals = judge.residual(q)
    return Diagnosis(
        dof=problem.unknowns - rank,
        gruebler=system.gruebler,
        rank=rank,
        equations=len(equations),
        redundant=[equations[row] for row in redundant],
        singular_values=values,
        gap=float(values[rank - 1] / dropped) if rank and dropped > 0.0 else math.inf,
        residuals=violations(system, residuals),
        residual=float((np.abs(residuals) * judge.scales[: judge.rows]).max(initial=0.0)),
        unconnected=system.unconnected,
        motions=motions,
        names=system.names,
    )


Finding = tuple[int, FloatArray, list[int], FloatArray | None]  # rank, values, redundant rows, motions


def _dense(problem: Problem, q: FloatArray, rows: list[int]) -> Finding:
    """By the singular values of the whole Jacobian."""
    _, jacobian = problem.jacobian(q)
    scaled = jacobian * problem.scales[: problem.rows, None] * problem.scales[problem.rows :]
    kept = scaled[rows]
    if not kept.size:
        return 0, np.zeros(0), [], np.eye(problem.unknowns)
    _, values, right = np.linalg.svd(kept, full_matrices=True)
    rank = int((values > RANK_RTOL * values[0]).sum())
    return rank, values, [rows[i] for i in dependent_rows(kept, rank)], right[rank:]


def _sparse(problem: Problem, q: FloatArray, rows: list[int]) -> Finding:
    """Body by body; see :mod:`cardan.diagnosis.elimination`."""
    parts = elimination.blocks(problem, q, set(rows))
    size = max((float(np.linalg.norm(part.entries)) for part in parts), default=0.0)
    rank, values = elimination.pivots(problem, parts, RANK_RTOL * size)
    excess = len(rows) - rank
    if not excess:
        return rank, values, [], None
    offsets = problem.structure[problem.structure[abi.OFFSETS] :]
    redundant: list[int] = []
    for group in elimination.involved(problem, parts):
        numbers, matrix = elimination.dense(group, offsets)
        singular = np.linalg.svd(matrix, compute_uv=False)
        group_rank = int((singular > RANK_RTOL * singular[0]).sum())
        redundant += [numbers[i] for i in dependent_rows(matrix, group_rank)]
    redundant.sort()
    if len(redundant) != excess:
        log.warning("rank leaves %d redundant equations, their groups name %d", excess, len(redundant))
    return rank, values, redundant, None


def dependent_rows(matrix: FloatArray, rank: int) -> list[int]:
    """Rows that depend on the rows before them, as many as the rank leaves: modified Gram–Schmidt, twice per row.

    Rows are taken in their order as long as they bring a new direction.  Where rounding leaves the count other than the
    rank says, those that bring least are dropped, or those that bring most are kept.
    """
    space = np.empty((min(matrix.shape), matrix.shape[1]))
    found = 0
    brought = np.zeros(matrix.shape[0])
    size = float(np.sqrt((matrix * matrix).sum(axis=1)).max(initial=0.0))
    for i, row in enumerate(matrix):
        basis = space[:found]
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        brought[i] = float(np.sqrt(rest @ rest))
        if brought[i] > RANK_RTOL * size and found < len(space):
            space[found] = rest / brought[i]
            found += 1
    order = np.argsort(-brought, kind="stable")
    return sorted(int(i) for i in order[rank:])
