"""The tables that solvers, linear algebra and evaluators share, as plain numbers (kernels inline them).

All are C functions of one ABI (:mod:`cardan._jit`), called by address.  Operations of an evaluator:

========= ======================================================================
RESIDUAL  out ← f(q)
JACOBIAN  out ← f(q), jacobian ← ∂f/∂(tangent), block by block
RETRACT   out ← q moved by the tangent vector step
ENTER     out ← coordinates of the formulation from poses q, where these are not poses themselves
LEAVE     out ← poses from such coordinates q
GAMMA     out ← γ(q, v = step) with J v̇ = γ; evaluators of motion alone have it
========= ======================================================================

Operations of linear algebra, with the arguments (op, pattern, control, r, gradient, step, jacobian, matrix):

========== =====================================================================
FACTOR     gradient ← Jᵀr, matrix ← factor of JᵀJ + control[DAMPING]·I; 1 if that is not positive definite
BACK_SOLVE step ← −(JᵀJ + damping·I)⁻¹ gradient, with the factor; r and jacobian as for FACTOR, any gradient
========== =====================================================================

A solver has one operation, with the arguments (0, job, control, q, –, –, –, work): it iterates from q in place.

Job: the addresses of the solver itself and of a problem's evaluator, tables and linear algebra, then the offsets of the
pieces of the solver's workspace and of their end (:class:`cardan.solvers.problem.Job`).

Structure: a header, then one record per constraint (ROW ROWS ENTRY SLOTS and its SLOTS block numbers, ascending), then
the tangent offset of every block and of their end, then per block the number of the first unknown that is a rotation
(its step is capped; the width where there is none).  A constraint's Jacobian entries begin at ENTRY, row by row, each
row the concatenation of its blocks.  Blocks may have any width: a solver does not depend on what they stand for.
Kernels walk it as  constraint = tail(structure, HEADER),  read fields by name (constraint[C_ROWS]), and go on with
tail(constraint, C_BLOCKS + constraint[C_SLOTS]).
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

FACTOR: Final = 0
BACK_SOLVE: Final = 1

# header of the structure table
ROWS: Final = 0
UNKNOWNS: Final = 1
CONSTRAINTS: Final = 2
BLOCKS: Final = 3
JACOBIAN_SIZE: Final = 4
COORDINATES: Final = 5  # length of q
OFFSETS: Final = 6  # where the block offsets begin
WORK: Final = 7  # floats of work the evaluator asks for
LIMITS: Final = 8  # where the step limits begin: per block, the first of its unknowns that are a rotation
HEADER: Final = 9

# record of a constraint in the structure table
C_ROW: Final = 0  # its first row
C_ROWS: Final = 1
C_ENTRY: Final = 2  # its first entry of the Jacobian
C_SLOTS: Final = 3
C_BLOCKS: Final = 4  # the numbers of its blocks begin here

# job of a solver: addresses, then offsets of the pieces of its workspace
SOLVER: Final = 0
EVALUATOR: Final = 1
INTS: Final = 2
FLOATS: Final = 3
STRUCTURE: Final = 4
SCALES: Final = 5
LINEAR: Final = 6
PATTERN: Final = 7
PIECES: Final = 8

# control vector of an iterating kernel: floats in and out
STATUS: Final = 0
ITERATIONS: Final = 1  # done, over all calls
CHUNK: Final = 2  # iterations allowed in this call
TOLERANCE: Final = 3  # on the largest scaled residual
RESIDUAL_MAX: Final = 4  # largest scaled residual at q
COST: Final = 5  # ½|r|², scaled
DAMPING: Final = 6
GROWTH: Final = 7
REUSE: Final = 8  # work still holds what the last call left there (r and J at q, a vector): 0 no, else where
STEP_GAIN: Final = 9  # k of the gradient step
MARK_COST: Final = 10  # cost when the search was last found to be getting on, and at which iteration
MARK_ITERATION: Final = 11
STEP_SIZE: Final = 12  # |δ| of Newton's last step, scaled
STEP_ROTATION: Final = 13  # largest rotation of a block in it [rad]
INVERSE: Final = 14  # of Algorithm 1: LU_FIRST or PSEUDO_ALWAYS
SINGULAR: Final = 15  # of Algorithm 1: part of the largest entry of J that every pivot of LU must exceed
TRUNCATION: Final = 16  # of Algorithm 1: part of the largest pivot below which J⁺ leaves a direction alone
KEEP_ROWS: Final = 17  # of Newton: 1 where long rows of J stay as they are, as in an assembly; 0 in a motion
DENSE_ENTRIES: Final = 18  # of Newton: entries of J up to which it is decomposed as one matrix
CONTROL: Final = 19

LU_FIRST: Final = 0.0  # J⁻¹ where LU finds one, J⁺ where J is singular or not square
PSEUDO_ALWAYS: Final = 1.0  # J⁺ in every step

# values of STATUS, as the kernels write them; Outcome names them for the layer above
RUNNING: Final = 0.0
CONVERGED: Final = 1.0
STALLED: Final = 2.0
BROKEN: Final = 3.0
OVERFLOW: Final = 1e200  # a cost above this is on its way to infinity


class Outcome(IntEnum):
    """How a kernel's run ended, for the layer above to turn into a verdict."""

    RUNNING = 0  # chunk used up
    CONVERGED = 1
    STALLED = 2  # the linear model promises no decrease, though the residual is not met
    BROKEN = 3  # a number overflowed or became NaN

# A scaled row of J longer than this is made as short before what is small is told from what is zero.  Rows have lengths
# near one, but for those of large ratios: one of 1e4 (a gear) makes of σ_min/σ_max 1e-8 what is 1e-4 for short rows.
LONG_ROW: Final = 10.0
