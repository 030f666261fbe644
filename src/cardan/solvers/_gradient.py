"""Gradient descent with spring steps δ = −κ Jᵀr: a constraint acts on its bodies like a spring.  [Nelson1998] eq. 5

The gain k is dimensionless: r, J and the unknowns are scaled by the characteristic length.  With g = Jᵀr the linear
model of ½|r|² decreases if κ < 2 |g|²/|Jg|², and for every g if κ < 2/λ_max(JᵀJ).  Therefore

    κ = min(k, 1/λ),   λ = max(|JᵀJv|/|v|, |Jg|²/|g|²),   v ← JᵀJv/|JᵀJv|.

One power iteration per step brings v closer to the eigenvector of λ_max.  The first step does several, from v = g.
κ = 1/λ_max is half of the bound and removes the stiffest mode in one step.  For any v, the model decreases by κ|g|²/2
or more.
"""

from math import inf, sqrt

from cardan._jit import evaluator, inner, plain
from cardan.solvers._blocks import half_square, larger, largest, times, transpose_times
from cardan.solvers._job import evaluate_scaled, piece, retract, scales_of, structure_of
from cardan.solvers.abi import (
    BROKEN,
    CHUNK,
    CONVERGED,
    COORDINATES,
    COST,
    ITERATIONS,
    OVERFLOW,
    RESIDUAL_MAX,
    REUSE,
    ROWS,
    RUNNING,
    STALLED,
    STATUS,
    STEP_GAIN,
    TOLERANCE,
    UNKNOWNS,
)

FIRST_POWERS = 8  # power iterations before the first step
STALL_GRADIENT = 1e-9  # |Jᵀr|/|r| below this: a stationary point that is not a solution


@inner
def stiffest(structure, jacobian, steps, v, rows, image):
    """A lower bound of λ_max(JᵀJ), by power iterations from v; v is overwritten by a unit vector."""
    n = structure[UNKNOWNS]
    estimate = 0.0
    for _ in range(steps):
        times(structure, jacobian, v, rows)
        transpose_times(structure, jacobian, rows, image)
        before = 0.0
        after = 0.0
        for i in range(n):
            before += v[i] * v[i]
            after += image[i] * image[i]
        if not after > 0.0:
            return estimate
        estimate = sqrt(after / before)
        for i in range(n):
            v[i] = image[i] / sqrt(after)
    return estimate


# pieces of the workspace
EVALUATION, R, J, MOVED, DIRECTION, IMAGE, V, PRODUCT = map(plain, range(8))


def pieces(problem):
    """Number of floats in each piece of the workspace."""
    m, n, entries, coordinates, evaluation = problem.sizes
    return evaluation, m, entries, coordinates, n, n, n, m


def prepare(problem, control):
    """Set the initial control vector; other entries are zero."""
    control[STEP_GAIN] = inf  # the longest stable step


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, stalled, or CHUNK iterations are done; returns STATUS.

    REUSE ≠ 0: work contains v from the last call.
    """
    structure = structure_of(job)
    scales = scales_of(job)
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    coordinates = structure[COORDINATES]
    evaluation = piece(job, EVALUATION, work)
    r = piece(job, R, work)
    jacobian = piece(job, J, work)
    moved = piece(job, MOVED, work)
    direction = piece(job, DIRECTION, work)
    image = piece(job, IMAGE, work)
    v = piece(job, V, work)
    rows = piece(job, PRODUCT, work)
    control[STATUS] = RUNNING
    done = 0
    limit = int(control[CHUNK])
    while True:
        evaluate_scaled(job, q, r, jacobian, evaluation)
        cost = half_square(structure, r)
        control[COST] = cost
        control[RESIDUAL_MAX] = largest(structure, r)
        if control[RESIDUAL_MAX] <= control[TOLERANCE]:
            control[STATUS] = CONVERGED
            break
        if not cost < OVERFLOW:
            control[STATUS] = BROKEN
            break
        if done >= limit:
            break
        transpose_times(structure, jacobian, r, direction)
        square = 0.0
        for i in range(n):
            square += direction[i] * direction[i]
        if not square < inf:  # r is finite but J is not
            control[STATUS] = BROKEN
            break
        if sqrt(square) <= STALL_GRADIENT * sqrt(2.0 * cost):
            control[STATUS] = STALLED
            break
        if control[REUSE] == 0.0:
            for i in range(n):
                v[i] = direction[i]
        bound = stiffest(structure, jacobian, 1 if control[REUSE] != 0.0 else FIRST_POWERS, v, rows, image)
        control[REUSE] = 1.0
        bound = larger(bound, times(structure, jacobian, direction, rows) / square)
        gain = min(control[STEP_GAIN], 1.0 / bound)
        for i in range(n):
            direction[i] *= -gain * scales[m + i]
        retract(job, q, direction, moved, evaluation)
        for i in range(coordinates):
            q[i] = moved[i]
        done += 1
    control[ITERATIONS] += done
    return int(control[STATUS])


SOLVE = evaluator(_solve)
