"""Tables that solvers, linear algebra and evaluators share, and the numbers of their operations.

Solvers, linear algebra and evaluators are C functions with one ABI (:mod:`cardan.kernel.memory`), called by address.
Operations of an evaluator:

========= ======================================================================
RESIDUAL  out ← f(q)
JACOBIAN  out ← f(q), jacobian ← ∂f/∂(tangent), block by block
RETRACT   out ← q moved by the tangent vector step
ENTER     out ← coordinates of the formulation from poses q; only if the coordinates are not poses
LEAVE     out ← poses from such coordinates q
GAMMA     out ← γ(q, v = step) with J v̇ = γ; only in evaluators for motion
MOTION    out ← f(q), then γ(q, v = step) behind the rows of f; jacobian as for JACOBIAN; only in evaluators for motion
========= ======================================================================

Linear algebra projects: it solves  u + Jᵀλ = b,  J u − ε λ = c  for all analyses, with J scaled as each of them needs.
ε is the damping of Levenberg–Marquardt, or what keeps the factor of redundant rows.  With the arguments (op, pattern,
control, x, scratch, compliances, jacobian, matrix) and a Projection at the beginning of the control vector:

========== =====================================================================
FACTOR     matrix ← factor of JᵀJ + ε, of JJᵀ + ε, or of the whole matrix; returns 1 if that is not positive definite
SOLVE      x = (b, c) ← (u, λ), with the factor
LEAST      the same for b = 0, which need not be written; only normal equations
BACK_SOLVE x ← (JᵀJ + ε)⁻¹ x; only dense and sparse normal equations
========== =====================================================================

Normal equations also write scratch ← εb + Jᵀc, and those of JᵀJ do not write λ.  In equations of motion rows may have
compliances, which are added to ε (:mod:`cardan.dynamics.tables`).

A solver has one operation, with the arguments (0, job, control, q, –, –, –, work): it iterates from q in place.

A structure contains a header; one record per constraint; the first unknown of each block, and the number of all
unknowns; and for each block the index, within the block, of its first rotational unknown (its step is capped), or the
width of the block if it has none.  A constraint's Jacobian entries start at ``entry``, row by row; each row is the
concatenation of its blocks.  Blocks may have any width: a solver does not depend on their meaning.  Kernels start with
constraint = structure.records  and continue with  constraint = after(constraint, constraint.slots).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from cardan.kernel.table import Address, Float, Int, Piece, Ref, Table, Within, Workspace

RESIDUAL: Final = 0
JACOBIAN: Final = 1
RETRACT: Final = 2
ENTER: Final = 3
LEAVE: Final = 4
GAMMA: Final = 5
MOTION: Final = 6

FACTOR: Final = 0
SOLVE: Final = 1
LEAST: Final = 2
BACK_SOLVE: Final = 3


class Constraint(Table):
    """A constraint in a structure."""

    row: Int  # its first row
    rows: Int
    entry: Int  # its first entry in the Jacobian
    slots: Int  # number of its blocks
    blocks: Int[...]  # their numbers, ascending


class Structure(Table):
    """What a solver knows of a problem: which rows depend on which blocks of unknowns."""

    rows: Int
    unknowns: Int
    constraints: Int
    blocks: Int
    jacobian_size: Int  # entries that are not zero by structure
    coordinates: Int  # length of q
    offsets: Within[Int]  # first unknown of each block, and their number
    work: Int  # floats of workspace that the evaluator needs
    rotations: Within[Int]  # of each block, its first rotational unknown
    records: Constraint[...]  # one per constraint


class Pair(Table):
    """Two blocks of a constraint, whose product is a block of JᵀJ."""

    row_slot: Int
    column_slot: Int
    product: Int  # index of the first float of their product in the factor


class SparsePattern(Table):
    """Pattern of a block-sparse factor, in elimination order."""

    count: Int  # of block columns
    values: Int  # floats of the factor
    structure: Within[Structure]
    widths: Within[Int]  # of the columns
    columns: Within[Int]  # where the blocks of each column begin, and their end
    rows: Within[Int]  # row of each block
    places: Within[Int]  # first float of each block
    updates: Within[Int]  # see `cardan.math._block_cholesky`
    entries: Within[Int]
    positions: Within[Int]  # first unknown of each column in the permuted order
    sources: Within[Int]  # and in the original one
    pairs: Within[Pair]  # of each constraint, one for each pair of its slots


class DualPattern(Table):
    """Pattern of the dual normal equations."""

    inner: Address  # of the linear algebra of JJᵀ
    inner_work: Int  # floats of its matrices
    entries: Int  # of J
    structure: Within[Structure]
    permutation: Within[Int]  # index in J of each entry of Jᵀ
    inner_pattern: Within[Int]


class Job(Table):
    """A problem (``cardan.solvers.problem.Problem``) that an analysis works on; each analysis adds what it needs."""

    run: Address  # what works on it: a solver; zero if the analysis is called by another address
    evaluator: Address
    ints: Ref[Int]  # tables of the problem
    floats: Ref[Float]
    structure: Ref[Structure]
    scales: Ref[Float]  # of the rows, then of the unknowns
    algebra: Address
    pattern: Ref[Int]  # table of the linear algebra


class SolverJob(Job):
    """One solver at work on one problem (``cardan.solvers.problem.Job``)."""

    pieces: Int[...]  # offsets of the pieces of the solver's workspace, and of their end


class Work(Workspace):
    """Pieces that begin the workspace of every solver."""

    evaluation: Piece  # of the evaluator
    r: Piece  # scaled residuals
    jacobian: Piece  # its scaled entries
    moved: Piece  # coordinates after a step


class Projection(Table):
    """What linear algebra reads and writes: it begins every control vector."""

    epsilon: Float  # ε
    pivot: Float  # the least one, relative to the diagonal; zero if the matrix is not positive definite


class Control(Projection):
    """Control vector of a solver: floats, read and written."""

    status: Float  # RUNNING, CONVERGED, STALLED or BROKEN
    iterations: Float  # done, over all calls
    chunk: Float  # iterations allowed in this call
    tolerance: Float  # on the largest scaled residual; Algorithm 1: on |r|
    residual_max: Float  # largest scaled residual at q
    cost: Float  # ½|r|², scaled
    damping: Float  # λ of the next step, before its bounds
    growth: Float  # of λ after a rejected step
    reuse: Float  # ≠ 0: results of the last call in work are reused (r and J at q, a vector); the value says which
    step_gain: Float  # k of the spring step
    mark_cost: Float  # cost at the last check of progress
    mark_iteration: Float  # iteration, or step, of the last check of progress
    step_size: Float  # |δ| of Newton's last step, scaled
    step_rotation: Float  # largest rotation of a block in it [rad]
    inverse: Float  # Algorithm 1: LU_FIRST or PSEUDO_ALWAYS
    singular: Float  # Algorithm 1: each pivot of LU must exceed this times the largest entry of J
    truncation: Float  # Algorithm 1: J⁺ ignores directions with a pivot below this times the largest pivot
    keep_rows: Float  # Newton: 1 to keep long rows of J (assembly), 0 to shorten them (motion)
    dense_entries: Float  # Newton: most entries of J for a dense decomposition
    step_bound: Float  # of the spring step: the part of the bound on k that is used
    step_factor: Float  # of the spring step: factor of the line search
    steps: Float  # accepted spring steps
    before: Float  # cost at the last accepted poses
    slope: Float  # first-order decrease of the cost by a whole spring step
    by_norm: Float  # spring step: ≠ 0 to bound |r| by the tolerance, not its largest entry
    measured: Float  # spring step: ≠ 0 where the scales end with those of the test of convergence
    patience: Float  # spring step: steps after which the rate of progress is judged; 0: never


class Sums(Table):
    """Of a group of constraints, for the spring step."""

    cost: Float  # ½|r|²
    worst: Float  # largest |r|, in the measure of the tolerance
    square: Float  # |r|², likewise


class Slope(Table):
    """Of a group of blocks, for the spring step."""

    slope: Float  # Σ κ|g|²
    square: Float  # |g|²


LU_FIRST: Final = 0.0  # J⁻¹ by LU; J⁺ if J is singular or not square
PSEUDO_ALWAYS: Final = 1.0  # J⁺ in every step

# values of Control.status; Outcome has the same values for Python
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
