"""Newton's iteration q ← q − J⁺Φ, with the Moore–Penrose inverse: Algorithm 1.  [Liu2013]

Small systems use a complete orthogonal decomposition.  Large systems use J⁺ ≈ (JᵀJ + λI)⁻¹Jᵀ with λ of the order of
rounding; the sparse linear algebra of the problem solves this, with two refinements.

J and Φ are scaled, so the pseudo-inverse of a rank-deficient J does not depend on the unit of length.  The loop runs
while the residual exceeds the tolerance (the paper prints the opposite sign).
"""

from math import sqrt

from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import as_integers, cut
from cardan.kernel.table import Piece
from cardan.math._dense import minimum_norm
from cardan.solvers import tables
from cardan.solvers._blocks import shorten_rows, spread_rows, update_defect
from cardan.solvers._job import call_linear, evaluate_scaled, has_ended, move
from cardan.solvers.tables import BACK_SOLVE, BROKEN, FACTOR, RUNNING, Control, JobTable

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
    step: Piece
    scratch: Piece  # of minimum_norm; or a gradient and a correction
    pivots: Piece  # integers
    matrix: Piece  # dense J or a sparse factor


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace, after those of every solver."""
    m, n, _, _, _ = sizes
    return {"step": n, "scratch": 3 * n, "pivots": n, "matrix": max(m * n if m * n <= DENSE else 0, matrix)}


def prepare(problem):
    """The initial control vector."""
    return Control.new(keep_rows=1.0, dense_entries=DENSE, damping=SPARSE_DAMPING)


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, broken, or CHUNK iterations are done; returns STATUS."""
    job = JobTable(job)
    control = Control(control)
    work = Work(job.pieces, work)
    structure = job.structure
    scales = job.scales
    evaluation = work.evaluation
    r = work.r
    jacobian = work.jacobian
    moved = work.moved
    m = structure.rows
    n = structure.unknowns
    step = work.step
    scratch = work.scratch
    pivots = as_integers(work.pivots)
    matrix = work.matrix
    is_dense = m * n <= min(control.dense_entries, DENSE)
    control.status = RUNNING
    done = 0
    limit = int(control.chunk)
    while True:
        evaluate_scaled(job, q, r, jacobian, evaluation)
        if has_ended(structure, control, r, False) or done >= limit:
            break
        if control.keep_rows == 0.0:
            shorten_rows(structure, r, jacobian)
        if is_dense:
            for i in range(m * n):
                matrix[i] = 0.0
            spread_rows(structure, jacobian, matrix)
            minimum_norm(m, n, matrix, r, step, SINGULAR_RTOL, scratch, pivots)
        else:
            gradient = cut(scratch, 0, n)
            correction = cut(scratch, n, n)
            if call_linear(job, FACTOR, control, r, gradient, step, jacobian, matrix) != 0:
                control.status = BROKEN
                break
            call_linear(job, BACK_SOLVE, control, r, gradient, step, jacobian, matrix)
            damping = control.damping
            for _ in range(2):  # the first removes rounding errors along free motions, the second the effect of λ
                update_defect(structure, r, jacobian, damping, step, gradient)
                call_linear(job, BACK_SOLVE, control, r, gradient, correction, jacobian, matrix)
                for i in range(n):
                    step[i] += correction[i]
                damping = 0.0
            for i in range(n):
                step[i] = -step[i]
        measure_step(structure, step, control)
        for i in range(n):
            step[i] *= -scales[m + i]
        move(job, q, step, moved, evaluation)
        done += 1
    control.iterations += done
    return int(control.status)


SOLVE = evaluator(_solve)
