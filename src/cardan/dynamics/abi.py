"""Layout of the tables that the kernels of dynamics share: integer constants, inlined into kernels.

Job: addresses of functions and arrays, sizes, then the offsets of the pieces of the workspace and of their end.

Pattern: a header; strips; then the tables of one linear algebra.  A strip is a run of rows of one constraint that are
equations (guard rows are none): S_FIRST (its first equation), S_ROW (its first row), S_ROWS, S_ENTRY (its first entry
in the Jacobian), S_SLOTS, then the bodies of its blocks.

Linear algebra solves  u + Ĵᵀλ = b,  Ĵ u = c  with Ĵ = D J M^−½, by two operations with the arguments
(op, pattern, control, x, scratch, –, Ĵ, matrix):

====== ====================================================================================================
FACTOR matrix ← factor, with control[EPSILON] added to the diagonal of Ĵ Ĵᵀ; control[PIVOT] ← its least pivot
       relative to that diagonal, zero if it is not definite
SOLVE  x = (b, c) ← (u, λ), with control[PROXIMAL] iterations that remove the error of EPSILON; more with LEAST_EPSILON
====== ====================================================================================================

ACTIVE has a factor for each equation: 1, or 0 where it does not hold now (a stop that is not reached).

RATED is the number of rate rows, which are equations of velocities and accelerations, but not of poses.  If there are
some, poses have a linear algebra of their own: POSE_ALGEBRA, POSE_PATTERN, and POSE_EQUATIONS, which has the number of
each of its equations among all equations.

Loads act on generalised forces (force in world at the centre of mass, torque in principal axes) by three operations
with the arguments (op, table, floats, q, v, out, control or efforts, work):

===== ===========================================================================================
FORCE out += forces of all loads but the called ones, at the time control[ASK_TIME]
APPLY out += forces of the called ones: an effort per law and a vector per wrench are given
READ  out ← coordinate, rate, effort, potential energy of each law, at the time control[ASK_TIME]
===== ===========================================================================================

Soft rows act beside the equations, which hold exactly (:mod:`cardan.dynamics._soft`).  SOFT is the address of their
evaluator, or zero: JACOBIAN gives their residuals, stiffnesses and rows, GAMMA the bias of their accelerations.
SOFT_SOLVER is the address of what lets them act on X, a VELOCITY or an ACCELERATION that solves the equations, or zero.
FEEDBACK is the address of what adds Baumgarte's terms to X (:mod:`cardan.dynamics._feedback`), or zero.
INSTANT is the address of the equations at one instant (:mod:`cardan.dynamics._instant`), STOP_SOLVER that of the
events at limits (:mod:`cardan.dynamics._stops`), zero if there are none: SEEK an event in a step, KEEP all gaps.
"""

from __future__ import annotations

from typing import Final

WIDTH: Final = 6  # velocities of a body: ṙ of the centre of mass in world, ω in principal axes

# job
(
    EVALUATOR,
    INTS,
    FLOATS,
    ALGEBRA,
    PATTERN,
    LOADS,
    LOAD_INTS,
    LOAD_FLOATS,
    MASSES,
    DRIVERS,
    DRIVE,
    TIMES,
    EXTRA,
    ACTIVE,
    STOPS,
    BOUNDS,
    SOFT,
    SOFT_INTS,
    SOFT_FLOATS,
    SOFT_WORK,
    SOFT_SOLVER,
    FEEDBACK,
    INSTANT,
    STOP_SOLVER,
    POSE_ALGEBRA,
    POSE_PATTERN,
    POSE_EQUATIONS,
    BODIES,
    COORDINATES,
    ROWS,
    EQUATIONS,
    DRIVEN,
    ASKS,
    STOP_COUNT,
    RATED,
    TIMED,
    TIMED_PLACES,
    PIECES,
) = range(38)

# pattern
P_BODIES, P_EQUATIONS, P_STRIPS, P_FIRST_TABLE, P_SECOND_TABLE, P_HEADER = range(6)
S_FIRST, S_ROW, S_ROWS, S_ENTRY, S_SLOTS, S_BODIES = range(6)

FACTOR: Final = 0
SOLVE: Final = 1

# control vector of an integrator: floats, read and written
(
    PHASE,
    TIME,
    STEP,
    END,
    RTOL,
    ORDER,
    KNOWN,
    HEAD,
    HOLD,
    FRESH,
    TAKEN,
    REFUSED,
    CHUNK,
    ERROR,
    LAST_ERROR,
    LENGTH,
    EPSILON,
    PROXIMAL,
    LEAST_EPSILON,  # to which SOLVE may reduce EPSILON where iterations converge slowly; 0: their number is PROXIMAL
    REDUNDANT,
    PIVOT,
    DRIVE_AT,
    DRIVE_COUNT,
    ASK_TIME,
    SAMPLE,
    SAMPLES,
    LEAST_STEP,
    EXACT,
    STAGE,
    STEP_END,
    BASE,
    COUNT,
    EVENT,
    LOW,
    LOW_GAP,
    HIGH,
    HIGH_GAP,
    WHOLE,  # the step that is repeated up to the extreme of a coordinate; −1: it is taken as a whole; 0: neither
    UNEVEN,
    SHIFTED,
    MOST_STEP,
    STABILIZATION,
    GAIN,
    LARGEST_STEP,
    MOST_TURN,  # [rad] of a body in a step; infinite if no stop needs it
    TURN_STEP,  # [s] in which the fastest body turns so far
    CONTROL,
) = range(47)

# what the kernel of an integrator returns
RUNNING, DONE, ASK_DRIVERS, ASK_LOADS, NOT_FINITE, STEP_TOO_SMALL, NOT_CLOSED, EVENT_REACHED, LOCKED = range(9)

# values of STABILIZATION: poses and velocities are projected; equations of accelerations alone; with Baumgarte's terms
PROJECTED, UNSTABILIZED, BAUMGARTE = range(3)

# values of PHASE
BEGIN, PREDICT, CORRECT, ACCEPT, OUTPUT, BETWEEN = range(6)

# A stop, one end of a limit or both: its equation, its row, and the place of its bound in the floats.
STOP_EQUATION, STOP_ROW, STOP_PLACE, STOP = range(4)
# Its lower and upper bound, the weight of its coordinate, which bound holds (−1: lower, +1: upper, 0: none), and its
# gap at the start of a step: minus the distance to the bound, or minus its push if a bound holds.  If none holds, its
# coordinate and the rate of it at the start, and the coordinate at the end of a step.
LOWER, UPPER, WEIGHT, SIDE, GAP, START, RATE, FINISH, BOUND = range(9)

SEEK, KEEP = range(2)  # operations on stops

HISTORY: Final = 8  # number of accelerations that are kept, with their times

# loads: operations
FORCE, APPLY, READ = range(3)

# header: addresses of the load system's evaluator, tables and structure; sizes; pieces of the workspace
(L_EVALUATOR, L_INTS, L_FLOATS, L_STRUCTURE, L_ROWS, L_ENTRIES, L_LAWS, L_WRENCHES, L_VALUES, L_HEADER) = range(10)

# a law: its kind, its first row and number of rows, how its rows give the coordinate, where its numbers are in the
# floats, and the address of its function
LAW, LAW_ROW, LAW_ROWS, LAW_SORT, LAW_NUMBERS, LAW_FUNCTION, LAW_RECORD = range(7)
LINEAR, MATRIX, RECORDED, CALLED = range(4)  # values of LAW
PLAIN, APART, INCLINED = range(3)  # values of LAW_SORT: a coordinate, |vector of three rows|, an angle between two axes
# numbers of LINEAR
CONSTANT, STIFFNESS, REST, DAMPING, COULOMB, SPEED = range(6)
# what READ gives of a law
R_COORDINATE, R_RATE, R_EFFORT, R_ENERGY, READING = range(5)

# a wrench: body, force or torque, axes, whether Python gives its vector, its numbers (point, vector) in the floats
W_BODY, W_TORQUE, W_IN_BODY, W_CALLED, W_NUMBERS, W_RECORD = range(6)

# soft rows: number of rows, and of rows at most; whether they are condensed with the factor at hand; then the body of
# each row
SOFT_ROWS, SOFT_MOST, SOFT_WHICH, SOFT_BEGINS, SOFT_EXTRA, SOFT_READY, SOFT_BODIES = range(7)
VELOCITY, ACCELERATION, IMPLICIT = range(3)  # what soft rows act on

# Estimated error of a step, and shift onto the constraints; relative to the extent, or in radians.  A constant step
# with a larger error is too large.  A variable step with a larger shift is refused.
MOST_ERROR: Final = 1e-3
