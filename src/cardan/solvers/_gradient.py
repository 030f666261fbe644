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
from cardan.solvers import abi
from cardan.solvers._blocks import larger, times, transpose_times
from cardan.solvers._job import OWN, evaluate_scaled, has_ended, move, open_job, piece

FIRST_POWERS = 8  # power iterations before the first step
STALL_GRADIENT = 1e-9  # |Jᵀr|/|r| below this: a stationary point that is not a solution


@inner
def stiffest(structure, jacobian, steps, v, rows, image):
    """A lower bound of λ_max(JᵀJ), by power iterations from v; v is overwritten by a unit vector."""
    n = structure[abi.UNKNOWNS]
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


# pieces of the workspace, after those of every solver
DIRECTION, IMAGE, V, PRODUCT = map(plain, range(OWN, OWN + 4))


def pieces(sizes, matrix):
    """Number of floats in each piece of the workspace."""
    return sizes[1], sizes[1], sizes[1], sizes[0]


def prepare(problem, control):
    """Set the initial control vector; other entries are zero."""
    control[abi.STEP_GAIN] = inf  # the longest stable step


def _solve(op, job, control, q, unused_1, unused_2, unused_3, work):
    """Iterate from q in place until converged, stalled, or CHUNK iterations are done; returns STATUS.

    REUSE ≠ 0: work contains v from the last call.
    """
    structure, scales, evaluation, r, jacobian, moved = open_job(job, work)
    m = structure[abi.ROWS]
    n = structure[abi.UNKNOWNS]
    direction = piece(job, DIRECTION, work)
    image = piece(job, IMAGE, work)
    v = piece(job, V, work)
    rows = piece(job, PRODUCT, work)
    control[abi.STATUS] = abi.RUNNING
    done = 0
    limit = int(control[abi.CHUNK])
    while True:
        evaluate_scaled(job, q, r, jacobian, evaluation)
        if has_ended(structure, control, r, False) or done >= limit:
            break
        transpose_times(structure, jacobian, r, direction)
        square = 0.0
        for i in range(n):
            square += direction[i] * direction[i]
        if not square < inf:  # r is finite but J is not
            control[abi.STATUS] = abi.BROKEN
            break
        if sqrt(square) <= STALL_GRADIENT * sqrt(2.0 * control[abi.COST]):
            control[abi.STATUS] = abi.STALLED
            break
        if control[abi.REUSE] == 0.0:
            for i in range(n):
                v[i] = direction[i]
        bound = stiffest(structure, jacobian, 1 if control[abi.REUSE] != 0.0 else FIRST_POWERS, v, rows, image)
        control[abi.REUSE] = 1.0
        bound = larger(bound, times(structure, jacobian, direction, rows) / square)
        gain = min(control[abi.STEP_GAIN], 1.0 / bound)
        for i in range(n):
            direction[i] *= -gain * scales[m + i]
        move(job, q, direction, moved, evaluation)
        done += 1
    control[abi.ITERATIONS] += done
    return int(control[abi.STATUS])


SOLVE = evaluator(_solve)
