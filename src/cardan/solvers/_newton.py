"""Newton's iteration q ← q − J⁺Φ, with the Moore–Penrose inverse: Algorithm 1.  [Liu2013]

Small systems use a complete orthogonal decomposition.  Large systems use J⁺ ≈ (JᵀJ + λI)⁻¹Jᵀ with λ of the order of
rounding; the sparse linear algebra of the problem solves this, with two refinements.

J and Φ are scaled, so the pseudo-inverse of a rank-deficient J does not depend on the unit of length.  The loop runs
while the residual exceeds the tolerance (the paper prints the opposite sign).
"""

from math import sqrt

from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import as_integers
from cardan.kernel.table import Piece
from cardan.math._dense import minimum_norm
from cardan.solvers import tables
from cardan.solvers._blocks import shorten_rows, spread_rows
from cardan.solvers._job import begin, call_algebra, end, has_ended, linearise, move, project, refine
from cardan.solvers.tables import BROKEN, FACTOR, Control, SolverJob

DENSE = 250_000  # most entries of J for a dense decomposition, about 500 × 500
SINGULAR_RTOL = 1e-8  # of the largest pivot: a direction with a smaller pivot is singular and gets no step
SPARSE_DAMPING = 1e-12  # of the scaled normal equations; SINGULAR_RTOL² would be smaller than their rounding


@inner
def measure_step(structure, step, control):
    """Write the size and the largest rotation of a scaled step."""
    offsets = structure.offsets
    rotations = structure.rotations
    total = 0.0
    largest_rotation = 0.0
    for b in range(structure.blocks):
        square = 0.0
        for k in range(offsets[b], offsets[b + 1]):
            total += step[k] * step[k]
            if k >= offsets[b] + rotations[b]:
                square += step[k] * step[k]
        largest_rotation = max(largest_rotation, square)
    control.step_size = sqrt(total)
    control.step_rotation = sqrt(largest_rotation)


class Work(tables.Work):
    x: Piece  # the step, then λ
    scratch: Piece  # of minimum_norm
    correction: Piece  # of x
    rest: Piece  # scratch of the linear algebra
    pivots: Piece  # integers
    matrix: Piece  # dense J or a sparse factor


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace, after those of every solver."""
    m, n = sizes.rows, sizes.unknowns
    vectors = {"x": n + m, "scratch": 3 * n, "correction": n + m, "rest": n, "pivots": n}
    return {**vectors, "matrix": max(m * n if m * n <= DENSE else 0, matrix)}


def prepare(problem):
    """The initial control vector."""
    return Control.new(keep_rows=1.0, dense_entries=DENSE, epsilon=SPARSE_DAMPING)


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, broken, or CHUNK iterations are done; returns STATUS."""
    job = SolverJob(job)
    control = Control(control)
    work = Work(job.pieces, work)
    structure = job.structure
    r = work.r
    jacobian = work.jacobian
    matrix = work.matrix
    x = work.x
    m = structure.rows
    n = structure.unknowns
    is_dense = m * n <= min(control.dense_entries, DENSE)
    limit = begin(control)
    done = 0
    while True:
        linearise(job, q, r, jacobian, work.evaluation)
        if has_ended(structure, control, r, False) or done >= limit:
            break
        if control.keep_rows == 0.0:
            shorten_rows(structure, r, jacobian)
        if is_dense:
            for i in range(m * n):
                matrix[i] = 0.0
            spread_rows(structure, jacobian, matrix)
            minimum_norm(m, n, matrix, r, x, SINGULAR_RTOL, work.scratch, as_integers(work.pivots))
        else:
            if call_algebra(job, FACTOR, control, x, x, x, jacobian, matrix) != 0:
                control.status = BROKEN
                break
            project(job, control, r, x, work.rest, jacobian, matrix)
            for k in range(2):  # the first removes rounding errors along free motions, the second the effect of ε
                refine(job, control, 1.0 - k, r, x, work, jacobian, matrix)
        measure_step(structure, x, control)
        for i in range(n):
            x[i] *= -job.scales[m + i]
        move(job, q, x, work)
        done += 1
    return end(control, done)


SOLVE = evaluator(_solve)
