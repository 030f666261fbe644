"""What a solver knows of a problem: an evaluator's address, a structure table, scales.

Operations of the evaluator (see :mod:`cardan._jit` for its ABI):

========= ======================================================================
RESIDUAL  out ← f(q)
JACOBIAN  out ← f(q), jacobian ← ∂f/∂(tangent), block by block
RETRACT   out ← q moved by the tangent vector step
ENTER     out ← coordinates of the formulation from poses q, where these are not poses themselves
LEAVE     out ← poses from such coordinates q
GAMMA     out ← γ(q, v = step) with J v̇ = γ; evaluators of motion alone have it
========= ======================================================================

Linear algebra comes by address too, so that one loop serves dense and sparse systems.  In the same ABI its arguments
are (op, pattern, control, r, gradient, step, jacobian, matrix):

========= ======================================================================
FACTOR    gradient ← Jᵀr, matrix ← factor of JᵀJ + control[DAMPING]·I; 1 if that is not positive definite
SOLVE     step ← −(JᵀJ + damping·I)⁻¹ gradient, with the factor; r and jacobian as for FACTOR, any gradient
========= ======================================================================

Structure: a header, then per constraint ROW ROWS START SLOTS and its SLOTS block numbers (ascending), then the tangent
offset of every block and of their end, then per block the number of the first unknown that is a rotation (its step is
capped; the width where there is none).  A constraint's Jacobian entries begin at START, row by row, each row the
concatenation of its blocks.  Blocks of any width: a solver never asks what they stand for.
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
SOLVE: Final = 1

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

# control vector of an iterating kernel: floats in and out
STATUS: Final = 0
ITERATIONS: Final = 1  # done, over all calls
CHUNK: Final = 2  # iterations allowed in this call
TOLERANCE: Final = 3  # on the largest scaled residual
RESIDUAL_MAX: Final = 4  # largest scaled residual at q
COST: Final = 5  # ½|r|², scaled
DAMPING: Final = 6
GROWTH: Final = 7
REUSE: Final = 8  # work holds r and J at q: 0 no, 1 in the first place, 2 in the second
STEP_GAIN: Final = 9  # k of the gradient step
MARK_COST: Final = 10  # cost when the search was last found to be getting on, and at which iteration
MARK_ITERATION: Final = 11
STEP_SIZE: Final = 12  # |δ| of Newton's last step, scaled
STEP_ROTATION: Final = 13  # largest rotation of a block in it [rad]
INVERSE: Final = 14  # of Algorithm 1: LU_FIRST or PSEUDO_ALWAYS
SINGULAR: Final = 15  # of Algorithm 1: part of the largest entry of J that every pivot of LU must exceed
TRUNCATION: Final = 16  # of Algorithm 1: part of the largest pivot below which J⁺ leaves a direction alone
KEEP_ROWS: Final = 17  # of Newton: 1 where long rows of J stay as they are, as in an assembly; 0 in a motion
CONTROL: Final = 18

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

# solvers, by number
LEVENBERG_MARQUARDT: Final = 0
NEWTON: Final = 1
NEWTON_LU: Final = 2
GRADIENT: Final = 3
NO_SOLVER: Final = -1  # where none follows

# A scaled row of J longer than this is made as short before what is small is told from what is zero.  Rows have lengths
# near one, but for those of large ratios: one of 1e4 (a gear) makes of σ_min/σ_max 1e-8 what is 1e-4 for short rows.
LONG_ROW: Final = 10.0
