"""Algorithm 1 of [Liu2013], step for step:

    while n < N and ‖Φ(q)‖ > ε:   (the paper prints <)
        q ← q − J⁻¹Φ   if J is invertible,   else q ← q − J⁺Φ;   n ← n + 1

‖·‖ is the Euclidean norm.  The paper does not define when J is singular.  Here J is singular if it is not square, or if
LU with partial pivoting finds a pivot that does not exceed singular × max|J_ij|.  J⁺ is truncated: directions whose
pivot is below truncation times the largest pivot get no step.  Φ, J and the unknowns are scaled.  An unknown with
scale 0 is fixed and has no column in J.
"""

from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import as_integers
from cardan.kernel.table import Piece
from cardan.math._dense import lu_solve, minimum_norm
from cardan.solvers import tables
from cardan.solvers._job import begin, end, evaluate, has_ended, move
from cardan.solvers._newton import SINGULAR_RTOL
from cardan.solvers.tables import JACOBIAN, LU_FIRST, Control, SolverJob

EPSILON = 2.0**-52


@inner
def number_free(structure, scales, columns):
    """columns ← index of each unknown among the free unknowns, −1 if it is fixed.  Returns the number of free ones."""
    m = structure.rows
    free = 0
    for k in range(structure.unknowns):
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
    m = structure.rows
    offsets = structure.offsets
    constraint = structure.records
    count = 0
    for _ in range(structure.constraints):
        entry = constraint.entry
        for i in range(constraint.row, constraint.row + constraint.rows):
            for s in range(constraint.slots):
                block = constraint.blocks[s]
                for k in range(offsets[block], offsets[block + 1]):
                    if columns[k] >= 0:
                        entries[2 * count] = entry
                        entries[2 * count + 1] = i * free + columns[k]
                        factors[count] = scales[i] * scales[m + k]
                        count += 1
                    entry += 1
        constraint = after(constraint, constraint.slots)
    return count


class Work(tables.Work):
    right: Piece  # a copy of r
    step: Piece
    solution: Piece  # J⁻¹Φ or J⁺Φ, of the free unknowns
    scratch: Piece  # of minimum_norm
    factors: Piece  # scales of the entries of J in free columns
    matrix: Piece  # J, its free columns
    copy: Piece
    columns: Piece  # index of each unknown among the free ones, −1 if it is fixed; integers
    order: Piece  # of the columns in minimum_norm; integers
    entries: Piece  # for each entry in a free column: its place in J and in the matrix; integers


@inner
def solve(m, n, control, work):
    """solution ← J⁻¹Φ if LU is allowed and J (m×n) is square and not singular, else J⁺Φ.  matrix and r are kept."""
    matrix = work.matrix
    copy = work.copy
    r = work.r
    right = work.right
    solution = work.solution
    if control.inverse == LU_FIRST and m == n:
        for i in range(m * n):
            copy[i] = matrix[i]
        for i in range(m):
            right[i] = r[i]
        if lu_solve(m, copy, right, solution, control.singular):
            return
    for i in range(m * n):
        copy[i] = matrix[i]
    for i in range(m):
        right[i] = r[i]
    minimum_norm(m, n, copy, right, solution, control.truncation, work.scratch, as_integers(work.order))


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace, after those of every solver."""
    m, n, entries = sizes.rows, sizes.unknowns, sizes.entries
    vectors = {"right": m, "step": n, "solution": n, "scratch": 3 * n, "factors": entries}
    return {**vectors, "matrix": m * n, "copy": m * n, "columns": n, "order": n, "entries": 2 * entries}


def prepare(problem):
    """The initial control vector.  A pivot must exceed the rounding error: number of free unknowns × ε."""
    free = sum(1 for scale in problem.scales[problem.rows :].tolist() if scale != 0.0)
    return Control.new(inverse=LU_FIRST, singular=free * EPSILON, truncation=SINGULAR_RTOL)


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, broken, or CHUNK iterations are done; returns STATUS."""
    job = SolverJob(job)
    control = Control(control)
    work = Work(job.pieces, work)
    structure = job.structure
    scales = job.scales
    r = work.r
    jacobian = work.jacobian
    m = structure.rows
    step = work.step
    solution = work.solution
    factors = work.factors
    matrix = work.matrix
    columns = as_integers(work.columns)
    entries = as_integers(work.entries)
    free = number_free(structure, scales, columns)
    count = place_free(structure, scales, columns, free, entries, factors)
    for i in range(m * free):
        matrix[i] = 0.0
    limit = begin(control)
    done = 0
    while True:
        evaluate(job, JACOBIAN, q, step, r, jacobian, work.evaluation)
        for i in range(m):
            r[i] *= scales[i]
        if has_ended(structure, control, r, True) or done >= limit:
            break
        for i in range(count):
            matrix[entries[2 * i + 1]] = jacobian[entries[2 * i]] * factors[i]
        solve(m, free, control, work)
        for k in range(structure.unknowns):
            step[k] = -scales[m + k] * solution[columns[k]] if columns[k] >= 0 else 0.0
        move(job, q, step, work)
        done += 1
    return end(control, done)


SOLVE = evaluator(_solve)
