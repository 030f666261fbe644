"""Newton's iteration q ← q − J⁺Φ, with the Moore–Penrose inverse: Algorithm 1.  [Liu2013]

Small systems use a complete orthogonal decomposition.  Large systems use J⁺ ≈ (JᵀJ + λI)⁻¹Jᵀ with λ of the order of
rounding; the sparse linear algebra of the problem solves this, with two refinements.

J and Φ are scaled, so the pseudo-inverse of a rank-deficient J does not depend on the unit of length.  The loop runs
while the residual exceeds the tolerance (the paper prints the opposite sign).
"""

from math import sqrt

from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import as_integers, cut, tail
from cardan.math._dense import minimum_norm
from cardan.solvers import abi
from cardan.solvers._blocks import shorten_rows, spread_rows, update_defect
from cardan.solvers._job import OWN, call_linear, evaluate_scaled, has_ended, move, open_job, piece

DENSE = 250_000  # most entries of J for a dense decomposition, about 500 × 500
SINGULAR_RTOL = 1e-8  # of the largest pivot: a direction with a smaller pivot is singular and gets no step
SPARSE_DAMPING = 1e-12  # of the scaled normal equations; SINGULAR_RTOL² would be smaller than their rounding


@inner
def measure_step(structure, step, control):
    """Write STEP_SIZE and STEP_ROTATION of a scaled step."""
    offsets = tail(structure, structure[abi.OFFSETS])
    rotations = tail(structure, structure[abi.ROTATIONS])
    total = 0.0
    largest_rotation = 0.0
    for b in range(structure[abi.BLOCKS]):
        square = 0.0
        for k in range(offsets[b], offsets[b + 1]):
            total += step[k] * step[k]
            if k >= offsets[b] + rotations[b]:
                square += step[k] * step[k]
        largest_rotation = max(largest_rotation, square)
    control[abi.STEP_SIZE] = sqrt(total)
    control[abi.STEP_ROTATION] = sqrt(largest_rotation)


# pieces of the workspace, after those of every solver
STEP, SCRATCH, PIVOTS, MATRIX = map(plain, range(OWN, OWN + 4))


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace; the matrix is either dense J or a sparse factor."""
    m, n, _, _, _ = sizes
    return n, 3 * n, n, max(m * n if m * n <= DENSE else 0, matrix)


def prepare(problem, control):
    """Set the initial control vector; other entries are zero."""
    control[abi.KEEP_ROWS] = 1.0
    control[abi.DENSE_ENTRIES] = DENSE
    control[abi.DAMPING] = SPARSE_DAMPING


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, broken, or CHUNK iterations are done; returns STATUS."""
    structure, scales, evaluation, r, jacobian, moved = open_job(job, work)
    m = structure[abi.ROWS]
    n = structure[abi.UNKNOWNS]
    step = piece(job, STEP, work)
    scratch = piece(job, SCRATCH, work)
    pivots = as_integers(piece(job, PIVOTS, work))
    matrix = piece(job, MATRIX, work)
    is_dense = m * n <= min(control[abi.DENSE_ENTRIES], DENSE)
    control[abi.STATUS] = abi.RUNNING
    done = 0
    limit = int(control[abi.CHUNK])
    while True:
        evaluate_scaled(job, q, r, jacobian, evaluation)
        if has_ended(structure, control, r, False) or done >= limit:
            break
        if control[abi.KEEP_ROWS] == 0.0:
            shorten_rows(structure, r, jacobian)
        if is_dense:
            for i in range(m * n):
                matrix[i] = 0.0
            spread_rows(structure, jacobian, matrix)
            minimum_norm(m, n, matrix, r, step, SINGULAR_RTOL, scratch, pivots)
        else:
            gradient = cut(scratch, 0, n)
            correction = cut(scratch, n, n)
            if call_linear(job, abi.FACTOR, control, r, gradient, step, jacobian, matrix) != 0:
                control[abi.STATUS] = abi.BROKEN
                break
            call_linear(job, abi.BACK_SOLVE, control, r, gradient, step, jacobian, matrix)
            damping = control[abi.DAMPING]
            for _ in range(2):  # the first removes rounding errors along free motions, the second the effect of λ
                update_defect(structure, r, jacobian, damping, step, gradient)
                call_linear(job, abi.BACK_SOLVE, control, r, gradient, correction, jacobian, matrix)
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
    control[abi.ITERATIONS] += done
    return int(control[abi.STATUS])


SOLVE = evaluator(_solve)
