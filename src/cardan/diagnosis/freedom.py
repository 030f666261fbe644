"""Degrees of freedom by rank, and what the count of equations hides.

The Jacobian is taken on the manifold with lengths in L, guard rows left out, so that its singular values compare
lengths
and angles in one measure.  rank J = number of singular values above RANK_RTOL·σ_max; dof = 6·bodies − rank; redundant
equations = equations − rank.  The gap between the last value counted and the first one dropped says how far the
answer can be trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cardan.coordinates import formulations
from cardan.errors import ModelError
from cardan.system.residuals import Violation, violations
from cardan.system.state import FloatArray, State
from cardan.system.system import System

RANK_RTOL = 1e-9  # of the largest singular value; residuals of 1e-12 perturb the zero ones far less than this
UNSURE_GAP = 1e3  # a gap below this factor is called uncertain
# At a dead point residuals of 1e-12 leave the pose uncertain by their root, and with it the singular value that
# vanishes there: one counted, but below this part of the largest, makes the answer uncertain too.
NEARLY_SINGULAR = 1e-5
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
    dropped).  ``redundant``: equations that follow from those before them.  ``residuals``: every constraint, the worst
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
    motions: FloatArray  # scaled tangent vectors, shape (dof, unknowns), orthonormal: a basis of the free motions
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
    residuals, jacobian = problem.jacobian(formulations.to_reference(system, state.coordinates))
    rows = problem.scales[: problem.rows]
    scaled = jacobian * rows[:, None] * problem.scales[problem.rows :]
    equations = [
        (Equation(name, primitive.name, i), start + i)
        for name, primitive, start in system.rows
        for i in range(primitive.rows)
        if i not in primitive.guards
    ]
    kept = scaled[[row for _, row in equations]]
    unknowns = problem.unknowns
    if kept.size:
        _, values, right = np.linalg.svd(kept, full_matrices=True)
    else:
        values, right = np.zeros(0), np.eye(unknowns)
    cut = RANK_RTOL * (values[0] if values.size else 0.0)
    rank = int((values > cut).sum())
    dropped = float(values[rank]) if rank < values.size else 0.0
    gap = float(values[rank - 1] / dropped) if rank and dropped > 0.0 else math.inf
    return Diagnosis(
        dof=unknowns - rank,
        gruebler=system.gruebler,
        rank=rank,
        equations=len(equations),
        redundant=[equations[i][0] for i in dependent_rows(kept, rank)],
        singular_values=values,
        gap=gap,
        residuals=violations(system, residuals),
        residual=float((np.abs(residuals) * rows).max(initial=0.0)),
        unconnected=system.unconnected,
        motions=right[rank:],
        names=system.names,
    )


def dependent_rows(matrix: FloatArray, rank: int) -> list[int]:
    """Rows that depend on the rows before them, as many as the rank leaves: modified Gram–Schmidt, twice per row.

    Rows are taken in their order as long as they bring a new direction.  Where rounding leaves the count other than the
    rank says, those that bring least are dropped, or those that bring most are kept.
    """
    basis = np.zeros((0, matrix.shape[1]))
    brought = np.zeros(matrix.shape[0])
    size = float(np.sqrt((matrix * matrix).sum(axis=1)).max(initial=0.0))
    for i, row in enumerate(matrix):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        brought[i] = float(np.sqrt(rest @ rest))
        if brought[i] > RANK_RTOL * size and basis.shape[0] < matrix.shape[1]:
            basis = np.vstack([basis, rest / brought[i]])
    order = np.argsort(-brought, kind="stable")
    return sorted(int(i) for i in order[rank:])
