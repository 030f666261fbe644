"""Layout of the tables that solvers, linear algebra and evaluators share: integer constants, inlined into kernels.

Solvers, linear algebra and evaluators are C functions with one ABI (:mod:`cardan.kernel.memory`), called by address.
Operations of an evaluator:

========= ======================================================================
RESIDUAL  out ← f(q)
JACOBIAN  out ← f(q), jacobian ← ∂f/∂(tangent), block by block
RETRACT   out ← q moved by the tangent vector step
ENTER     out ← coordinates of the formulation from poses q; only if the coordinates are not poses
LEAVE     out ← poses from such coordinates q
GAMMA     out ← γ(q, v = step) with J v̇ = γ; only in evaluators for motion
MOTION    out ← f(q), then γ(q, v = step) from row ROWS on; jacobian as for JACOBIAN; only in evaluators for motion
========= ======================================================================

Operations of linear algebra, with the arguments (op, pattern, control, r, gradient, step, jacobian, matrix):

========== =====================================================================
FACTOR     gradient ← Jᵀr, matrix ← factor of JᵀJ + control[DAMPING]·I; returns 1 if not positive definite
BACK_SOLVE step ← −(JᵀJ + damping·I)⁻¹ gradient, with the factor; same r and jacobian as for FACTOR, any gradient
========== =====================================================================

A solver has one operation, with the arguments (0, job, control, q, –, –, –, work): it iterates from q in place.

Job: the addresses of the solver itself and of a problem's evaluator, tables and linear algebra, then the offsets of the
pieces of the solver's workspace and the offset of their end (:class:`cardan.solvers.problem.Job`).

Structure: a header; one record per constraint (ROW ROWS ENTRY SLOTS, then SLOTS block numbers in ascending order); the
first unknown of each block, and the number of all unknowns; and for each block the index, within the block, of its
first rotational unknown (its step is capped), or the width of the block if it has none.  A constraint's Jacobian
entries start at ENTRY, row by row; each row is the concatenation of its blocks.  Blocks may have any width: a solver
does not depend on their meaning.  Kernels start with  constraint = tail(structure, HEADER),  read fields by name
(constraint[C_ROWS]), and continue with  constraint = tail(constraint, C_BLOCKS + constraint[C_SLOTS]).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

RESIDUAL: Final = 0
JACOBIAN: Final = 1
RETRACT: Final = 2
ENTER: Final = 3
LEAVE: Final = 4
GAMMA: Final = 5
MOTION: Final = 6

FACTOR: Final = 0
BACK_SOLVE: Final = 1

# header of the structure table
ROWS: Final = 0
UNKNOWNS: Final = 1
CONSTRAINTS: Final = 2
BLOCKS: Final = 3
JACOBIAN_SIZE: Final = 4
COORDINATES: Final = 5  # length of q
OFFSETS: Final = 6  # start of the block offsets
WORK: Final = 7  # number of floats of workspace that the evaluator needs
ROTATIONS: Final = 8  # start of the rotations: for each block, its first rotational unknown
HEADER: Final = 9

# record of a constraint in the structure table
C_ROW: Final = 0  # its first row
C_ROWS: Final = 1
C_ENTRY: Final = 2  # its first entry in the Jacobian
C_SLOTS: Final = 3  # number of its blocks
C_BLOCKS: Final = 4  # start of its block numbers

# job of a solver: addresses, then offsets of the pieces of its workspace
SOLVER, EVALUATOR, INTS, FLOATS, STRUCTURE, SCALES, LINEAR, PATTERN, PIECES = range(9)

# control vector of a solver: floats, read and written
STATUS: Final = 0
ITERATIONS: Final = 1  # done, over all calls
CHUNK: Final = 2  # iterations allowed in this call
TOLERANCE: Final = 3  # on the largest scaled residual; Algorithm 1: on |r|
RESIDUAL_MAX: Final = 4  # largest scaled residual at q
COST: Final = 5  # ½|r|², scaled
DAMPING: Final = 6
GROWTH: Final = 7
REUSE: Final = 8  # ≠ 0: results of the last call in work are reused (r and J at q, a vector); the value says which
STEP_GAIN: Final = 9  # k of the spring step
MARK_COST: Final = 10  # cost at the last check of progress
MARK_ITERATION: Final = 11  # iteration, or step, of the last check of progress
STEP_SIZE: Final = 12  # |δ| of Newton's last step, scaled
STEP_ROTATION: Final = 13  # largest rotation of a block in it [rad]
INVERSE: Final = 14  # Algorithm 1: LU_FIRST or PSEUDO_ALWAYS
SINGULAR: Final = 15  # Algorithm 1: each pivot of LU must exceed this times the largest entry of J
TRUNCATION: Final = 16  # Algorithm 1: J⁺ ignores directions with a pivot below this times the largest pivot
KEEP_ROWS: Final = 17  # Newton: 1 to keep long rows of J (assembly), 0 to shorten them (motion)
DENSE_ENTRIES: Final = 18  # Newton: most entries of J for a dense decomposition
STEP_BOUND: Final = 19  # of the spring step: the part of the bound on k that is used
STEP_FACTOR: Final = 20  # of the spring step: factor of the line search
STEPS: Final = 21  # accepted spring steps
BEFORE: Final = 22  # cost at the last accepted poses
SLOPE: Final = 23  # first-order decrease of the cost by a whole spring step
BY_NORM: Final = 24  # spring step: ≠ 0 to bound |r| by the tolerance, not its largest entry
MEASURED: Final = 25  # spring step: ≠ 0 where the scales end with those of the test of convergence
PATIENCE: Final = 26  # spring step: steps after which the rate of progress is judged; 0: never
CONTROL: Final = 27

LU_FIRST: Final = 0.0  # J⁻¹ by LU; J⁺ if J is singular or not square
PSEUDO_ALWAYS: Final = 1.0  # J⁺ in every step

# values of STATUS in the control vector; Outcome has the same values for Python
RUNNING: Final = 0.0
CONVERGED: Final = 1.0
STALLED: Final = 2.0
BROKEN: Final = 3.0
OVERFLOW: Final = 1e200  # a cost above this is treated as an overflow


class Outcome(IntEnum):
    """How a call of a solver ended."""

    RUNNING = 0  # all iterations of the chunk are used
    CONVERGED = 1
    STALLED = 2  # the linear model predicts no decrease, but the residual exceeds the tolerance
    BROKEN = 3  # a number overflowed or became NaN


# Scaled rows of J with a larger norm are scaled down to it before the rank is determined.  Most norms are near one;
# large ratios are the exception: a gear ratio of 1e4 changes σ_min/σ_max from 1e-4 to 1e-8.
LONG_ROW: Final = 10.0
