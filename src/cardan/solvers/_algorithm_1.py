"""Algorithm 1 of [Liu2013], step for step:

    while n < N and ‖Φ(q)‖ > ε:   (the paper prints <)
        q ← q − J⁻¹Φ   if J is invertible,   else q ← q − J⁺Φ;   n ← n + 1

‖·‖ is the Euclidean norm.  The paper does not define when J is singular.  Here J is singular if it is not square, or if
LU with partial pivoting finds a pivot that does not exceed SINGULAR × max|J_ij|.  J⁺ is truncated: directions whose
pivot is below TRUNCATION times the largest pivot get no step.  Φ, J and the unknowns are scaled.  An unknown with
scale 0 is fixed and has no column in J.
"""

from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import as_integers, tail
from cardan.math._dense import lu_solve, minimum_norm
from cardan.solvers import abi
from cardan.solvers._job import OWN, evaluate, has_ended, move, open_job, piece
from cardan.solvers._newton import SINGULAR_RTOL

EPSILON = 2.0**-52


@inner
def number_free(structure, scales, columns):
    """columns ← index of each unknown among the free unknowns, −1 if it is fixed.  Returns the number of free ones."""
    m = structure[abi.ROWS]
    free = 0
    for k in range(structure[abi.UNKNOWNS]):
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
    m = structure[abi.ROWS]
    offsets = tail(structure, structure[abi.OFFSETS])
    constraint = tail(structure, abi.HEADER)
    count = 0
    for _ in range(structure[abi.CONSTRAINTS]):
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
        if lu_solve(m, copy, right, solution, control[abi.SINGULAR]):
            return
    for i in range(m * n):
        copy[i] = matrix[i]
    for i in range(m):
        right[i] = r[i]
    minimum_norm(m, n, copy, right, solution, control[abi.TRUNCATION], scratch, pivots)


# pieces of the workspace, after those of every solver
RIGHT, STEP, SOLUTION, SCRATCH, FACTORS, MATRIX, COPY, COLUMNS, ORDER, ENTRIES = map(plain, range(OWN, OWN + 10))


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace."""
    m, n, entries, _, _ = sizes
    return m, n, n, 3 * n, entries, m * n, m * n, n, n, 2 * entries


def prepare(problem, control):
    """Set the initial control vector.  A pivot must exceed the rounding error: number of free unknowns × ε."""
    free = sum(1 for scale in problem.scales[problem.rows :].tolist() if scale != 0.0)
    control[abi.INVERSE] = abi.LU_FIRST
    control[abi.SINGULAR] = free * EPSILON
    control[abi.TRUNCATION] = SINGULAR_RTOL


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, broken, or CHUNK iterations are done; returns STATUS."""
    structure, scales, evaluation, r, jacobian, moved = open_job(job, work)
    m = structure[abi.ROWS]
    n = structure[abi.UNKNOWNS]
    right = piece(job, RIGHT, work)
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
    control[abi.STATUS] = abi.RUNNING
    done = 0
    limit = int(control[abi.CHUNK])
    while True:
        evaluate(job, abi.JACOBIAN, q, step, r, jacobian, evaluation)
        for i in range(m):
            r[i] *= scales[i]
        if has_ended(structure, control, r, True) or done >= limit:
            break
        for i in range(count):
            matrix[entries[2 * i + 1]] = jacobian[entries[2 * i]] * factors[i]
        by_lu = control[abi.INVERSE] == abi.LU_FIRST
        solve(m, free, by_lu, matrix, r, solution, control, copy, right, scratch, order)
        for k in range(n):
            step[k] = -scales[m + k] * solution[columns[k]] if columns[k] >= 0 else 0.0
        move(job, q, step, moved, evaluation)
        done += 1
    control[abi.ITERATIONS] += done
    return int(control[abi.STATUS])


SOLVE = evaluator(_solve)
