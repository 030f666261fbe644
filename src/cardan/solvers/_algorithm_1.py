"""Algorithm 1 of [Liu2013], step for step:

    while n < N and ‖Φ(q)‖ > ε:   (the paper prints <)
        q ← q − J⁻¹Φ   if J is invertible,   else q ← q − J⁺Φ;   n ← n + 1

‖·‖ is the Euclidean norm.  The paper does not define when J is singular.  Here J is singular if it is not square, or if
LU with partial pivoting finds a pivot that does not exceed SINGULAR × max|J_ij|.  J⁺ is truncated: directions whose
pivot is below TRUNCATION times the largest pivot get no step.  Φ, J and the unknowns are scaled.  An unknown with
scale 0 is fixed and has no column in J.
"""

from math import sqrt

from cardan._jit import as_integers, call_evaluator, evaluator, inner, jit, plain, tail
from cardan.math._dense import lu_solve, minimum_norm
from cardan.solvers import abi
from cardan.solvers._blocks import half_square, largest
from cardan.solvers._job import evaluate, piece, retract, scales_of, structure_of
from cardan.solvers._newton import SINGULAR_RTOL
from cardan.solvers.abi import (
    BROKEN,
    CHUNK,
    CONSTRAINTS,
    CONVERGED,
    COORDINATES,
    COST,
    INVERSE,
    ITERATIONS,
    JACOBIAN,
    LU_FIRST,
    OVERFLOW,
    RESIDUAL_MAX,
    ROWS,
    RUNNING,
    SINGULAR,
    SOLVER,
    STATUS,
    TOLERANCE,
    TRUNCATION,
    UNKNOWNS,
)

EPSILON = 2.0**-52

# how one of many starts ended
END_ITERATIONS, END_OUTCOME, END_NORM, END = range(4)


@inner
def number_free(structure, scales, columns):
    """columns ← index of each unknown among the free unknowns, −1 if it is fixed.  Returns the number of free ones."""
    m = structure[ROWS]
    free = 0
    for k in range(structure[UNKNOWNS]):
        columns[k] = -1
        if scales[m + k] != 0.0:
            columns[k] = free
            free += 1
    return free


@inner
def place_free(structure, scales, columns, free, entries, factors):
    """entries ← (entry of J, position in a row-major matrix) for the entries in free columns, factors ← their scales.

    Returns the number of these entries.
    """
    m = structure[ROWS]
    offsets = tail(structure, structure[abi.OFFSETS])
    constraint = tail(structure, abi.HEADER)
    count = 0
    for _ in range(structure[CONSTRAINTS]):
        entry = constraint[abi.C_ENTRY]
        for i in range(constraint[abi.C_ROW], constraint[abi.C_ROW] + constraint[abi.C_ROWS]):
            for s in range(constraint[abi.C_SLOTS]):
                block = constraint[abi.C_BLOCKS + s]
                for k in range(offsets[block], offsets[block + 1]):
                    if columns[k] >= 0:
                        entries[2 * count] = entry
                        entries[2 * count + 1] = i * free + columns[k]
                        factors[count] = scales[i] * scales[m + k]
                        count += 1
                    entry += 1
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])
    return count


@inner
def solve(m, n, by_lu, matrix, r, solution, control, copy, right, scratch, pivots):
    """solution ← J⁻¹Φ if by_lu and J (m×n) is square and not singular, else J⁺Φ.  matrix and r are not changed."""
    if by_lu and m == n:
        for i in range(m * n):
            copy[i] = matrix[i]
        for i in range(m):
            right[i] = r[i]
        if lu_solve(m, copy, right, solution, control[SINGULAR]):
            return
    for i in range(m * n):
        copy[i] = matrix[i]
    for i in range(m):
        right[i] = r[i]
    minimum_norm(m, n, copy, right, solution, control[TRUNCATION], scratch, pivots)


# pieces of the workspace
EVALUATION, R, RIGHT, J, MOVED, STEP, SOLUTION, SCRATCH, FACTORS, MATRIX, COPY, COLUMNS, ORDER, ENTRIES = map(
    plain, range(14)
)


def pieces(problem):
    """Number of floats in each piece of the workspace."""
    m, n, entries, coordinates, evaluation = problem.sizes
    return evaluation, m, m, entries, coordinates, n, n, 3 * n, entries, m * n, m * n, n, n, 2 * entries


def prepare(problem, control):
    """Set the initial control vector.  A pivot must exceed the rounding error: number of free unknowns × ε."""
    free = sum(1 for scale in problem.scales[problem.rows :].tolist() if scale != 0.0)
    control[INVERSE] = LU_FIRST
    control[SINGULAR] = free * EPSILON
    control[TRUNCATION] = SINGULAR_RTOL


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, broken, or CHUNK iterations are done; returns STATUS."""
    structure = structure_of(job)
    scales = scales_of(job)
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    coordinates = structure[COORDINATES]
    evaluation = piece(job, EVALUATION, work)
    r = piece(job, R, work)
    right = piece(job, RIGHT, work)
    jacobian = piece(job, J, work)
    moved = piece(job, MOVED, work)
    step = piece(job, STEP, work)
    solution = piece(job, SOLUTION, work)
    scratch = piece(job, SCRATCH, work)
    factors = piece(job, FACTORS, work)
    matrix = piece(job, MATRIX, work)
    copy = piece(job, COPY, work)
    columns = as_integers(piece(job, COLUMNS, work))
    order = as_integers(piece(job, ORDER, work))
    entries = as_integers(piece(job, ENTRIES, work))
    free = number_free(structure, scales, columns)
    count = place_free(structure, scales, columns, free, entries, factors)
    for i in range(m * free):
        matrix[i] = 0.0
    control[STATUS] = RUNNING
    done = 0
    limit = int(control[CHUNK])
    while True:
        evaluate(job, JACOBIAN, q, step, r, jacobian, evaluation)
        for i in range(m):
            r[i] *= scales[i]
        control[COST] = half_square(structure, r)
        control[RESIDUAL_MAX] = largest(structure, r)
        if sqrt(2.0 * control[COST]) <= control[TOLERANCE]:
            control[STATUS] = CONVERGED
            break
        if not control[COST] < OVERFLOW:
            control[STATUS] = BROKEN
            break
        if done >= limit:
            break
        for i in range(count):
            matrix[entries[2 * i + 1]] = jacobian[entries[2 * i]] * factors[i]
        by_lu = control[INVERSE] == LU_FIRST
        solve(m, free, by_lu, matrix, r, solution, control, copy, right, scratch, order)
        for k in range(n):
            step[k] = -scales[m + k] * solution[columns[k]] if columns[k] >= 0 else 0.0
        retract(job, q, step, moved, evaluation)
        for i in range(coordinates):
            q[i] = moved[i]
        done += 1
    control[ITERATIONS] += done
    return int(control[STATUS])


SOLVE = evaluator(_solve)


@jit
def run_many(job, starts, first, last, control, work, q, ends):
    """Algorithm 1 with N = CHUNK from the starts first … last − 1, each a row of coordinates.

    The solver is called by address, since an inlined copy might round differently.
    ends ← ITERATIONS, OUTCOME, NORM of each start.
    """
    coordinates = structure_of(job)[COORDINATES]
    for k in range(first, last):
        for i in range(coordinates):
            q[i] = starts[k * coordinates + i]
        control[ITERATIONS] = 0.0
        outcome = call_evaluator(job[SOLVER], 0, job, control, q, control, control, control, work)
        end = tail(ends, END * k)
        end[END_ITERATIONS] = control[ITERATIONS]
        end[END_OUTCOME] = float(outcome)
        end[END_NORM] = sqrt(2.0 * control[COST])
