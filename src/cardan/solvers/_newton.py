"""Newton's iteration q ← q − J⁺Φ, with the Moore–Penrose inverse: Algorithm 1.  [Liu2013]

Small systems get the pseudo-inverse by a complete orthogonal decomposition.  Large ones get J⁺ ≈ (JᵀJ + λI)⁻¹Jᵀ with λ
at the edge of rounding, by the sparse linear algebra of the problem, refined once.

J and Φ are scaled, so that the pseudo-inverse of a rank-deficient J does not depend on the unit of length.  The loop
runs while the residual exceeds the tolerance (printed with the sign reversed in the paper).
"""

from math import sqrt

from cardan._jit import call_evaluator, cut, inner, jit, pointer, tail
from cardan.math._dense import minimum_norm
from cardan.solvers._blocks import add_defect, half_square, largest, scale_rows, spread
from cardan.solvers.abi import (
    BLOCKS,
    BROKEN,
    CHUNK,
    CONVERGED,
    COORDINATES,
    COST,
    DAMPING,
    FACTOR,
    ITERATIONS,
    JACOBIAN,
    JACOBIAN_SIZE,
    KEEP_ROWS,
    LIMITS,
    LONG_ROW,
    OFFSETS,
    OVERFLOW,
    RESIDUAL_MAX,
    RETRACT,
    ROWS,
    RUNNING,
    SOLVE,
    STATUS,
    STEP_ROTATION,
    STEP_SIZE,
    TOLERANCE,
    UNKNOWNS,
    WORK,
)

SINGULAR_RTOL = 1e-8  # of the largest pivot: below it a direction counts as singular and is left alone
SPARSE_DAMPING = 1e-12  # of the scaled normal equations: SINGULAR_RTOL squared is below their rounding


@inner
def measure_step(structure, step, control):
    """STEP_SIZE and STEP_ROTATION of a scaled step."""
    offsets = structure[OFFSETS]
    total = 0.0
    largest_rotation = 0.0
    for b in range(structure[BLOCKS]):
        first = structure[offsets + b]
        rotation = first + structure[structure[LIMITS] + b]
        square = 0.0
        for k in range(first, structure[offsets + b + 1]):
            total += step[k] * step[k]
            if k >= rotation:
                square += step[k] * step[k]
        largest_rotation = max(largest_rotation, square)
    control[STEP_SIZE] = sqrt(total)
    control[STEP_ROTATION] = sqrt(largest_rotation)


@inner
def shorten_rows(m, n, matrix, r):
    """Divide long rows of the matrix, m × n, and their residuals: the solution stays, and no row outweighs the rest."""
    for i in range(m):
        square = 0.0
        for k in range(i * n, i * n + n):
            square += matrix[k] * matrix[k]
        if square > LONG_ROW * LONG_ROW:
            factor = LONG_ROW / sqrt(square)
            r[i] *= factor
            for k in range(i * n, i * n + n):
                matrix[k] *= factor


@jit
def newton(evaluate, ints, floats, structure, scales, linear, pattern, dense_step, q, control, work, pivots):
    """Iterate from q in place until met, broken, or CHUNK iterations are done; returns STATUS.

    dense_step: whether work has room for J as one matrix, or else for the factor of the problem's linear algebra.
    """
    structure = pointer(structure)
    scales = pointer(scales)
    q = pointer(q)
    control = pointer(control)
    work = pointer(work)
    pivots = pointer(pivots)
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    size = structure[JACOBIAN_SIZE]
    coordinates = structure[COORDINATES]
    at = structure[WORK]
    inner = cut(work, 0, at)
    r = cut(work, at, m)
    at += m
    jacobian = cut(work, at, size)
    at += size
    moved = cut(work, at, coordinates)
    at += coordinates
    step = cut(work, at, n)
    at += n
    scratch = cut(work, at, 3 * n)
    at += 3 * n
    matrix = tail(work, at)
    control[DAMPING] = SPARSE_DAMPING
    control[STATUS] = RUNNING
    done = 0
    limit = int(control[CHUNK])
    while True:
        call_evaluator(evaluate, JACOBIAN, ints, floats, q, step, r, jacobian, inner)
        scale_rows(structure, scales, r, jacobian)
        control[COST] = half_square(structure, r)
        control[RESIDUAL_MAX] = largest(structure, r)
        if control[RESIDUAL_MAX] <= control[TOLERANCE]:
            control[STATUS] = CONVERGED
            break
        if not control[COST] < OVERFLOW:
            control[STATUS] = BROKEN
            break
        if done >= limit:
            break
        if dense_step:
            for i in range(m * n):
                matrix[i] = 0.0
            spread(structure, jacobian, matrix)
            if control[KEEP_ROWS] == 0.0:
                shorten_rows(m, n, matrix, r)
            minimum_norm(m, n, matrix, r, step, SINGULAR_RTOL, scratch, pivots)
        else:
            gradient = cut(scratch, 0, n)
            correction = cut(scratch, n, n)
            if call_evaluator(linear, FACTOR, pattern, control, r, gradient, step, jacobian, matrix) != 0:
                control[STATUS] = BROKEN
                break
            call_evaluator(linear, SOLVE, pattern, control, r, gradient, step, jacobian, matrix)
            add_defect(structure, r, jacobian, SPARSE_DAMPING, step, gradient)
            call_evaluator(linear, SOLVE, pattern, control, r, gradient, correction, jacobian, matrix)
            for i in range(n):
                step[i] = -(step[i] + correction[i])
        measure_step(structure, step, control)
        for i in range(n):
            step[i] *= -scales[m + i]
        call_evaluator(evaluate, RETRACT, ints, floats, q, step, moved, jacobian, inner)
        for i in range(coordinates):
            q[i] = moved[i]
        done += 1
    control[ITERATIONS] += done
    return int(control[STATUS])


def newton_work(structure, matrix):
    """Floats of work the kernel needs, of which ``matrix`` are for J or the linear algebra."""
    blocks = int(structure[ROWS]) + int(structure[JACOBIAN_SIZE])
    return int(structure[WORK]) + blocks + int(structure[COORDINATES]) + 4 * int(structure[UNKNOWNS]) + matrix
