"""Newton's iteration q ← q − J⁺Φ, with the Moore–Penrose inverse: Algorithm 1.  [Liu2013]

J and Φ are scaled, so that the pseudo-inverse of a rank-deficient J does not depend on the unit of length.  The loop
runs while the residual exceeds the tolerance (printed with the sign reversed in the paper).
"""

from cardan._jit import call_evaluator, jit
from cardan.math._dense import minimum_norm
from cardan.solvers._blocks import half_square, largest, scale_rows, spread
from cardan.solvers.abi import (
    CHUNK,
    COORDINATES,
    COST,
    ITERATIONS,
    JACOBIAN,
    JACOBIAN_SIZE,
    RESIDUAL_MAX,
    RETRACT,
    ROWS,
    STATUS,
    TOLERANCE,
    UNKNOWNS,
    WORK,
)

SINGULAR_RTOL = 1e-8  # of the largest pivot: below it a direction counts as singular and is left alone


@jit
def newton(evaluate, ints, floats, structure, scales, q, control, work, pivots):
    """Iterate from q in place until met, broken, or CHUNK iterations are done; returns STATUS."""
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    size = structure[JACOBIAN_SIZE]
    coordinates = structure[COORDINATES]
    at = structure[WORK]
    inner = work[:at]
    r = work[at : at + m]
    at += m
    jacobian = work[at : at + size]
    at += size
    moved = work[at : at + coordinates]
    at += coordinates
    step = work[at : at + n]
    at += n
    scratch = work[at : at + 3 * n]
    at += 3 * n
    dense = work[at : at + m * n]
    control[STATUS] = 0.0
    done = 0
    limit = int(control[CHUNK])
    while True:
        call_evaluator(evaluate, JACOBIAN, ints, floats, q, step, r, jacobian, inner)
        scale_rows(structure, scales, r, jacobian)
        control[COST] = half_square(structure, r)
        control[RESIDUAL_MAX] = largest(structure, r)
        if control[RESIDUAL_MAX] <= control[TOLERANCE]:
            control[STATUS] = 1.0
            break
        if not control[COST] < 1e200:
            control[STATUS] = 3.0
            break
        if done >= limit:
            break
        for i in range(m * n):
            dense[i] = 0.0
        spread(structure, jacobian, dense)
        minimum_norm(m, n, dense, r, step, SINGULAR_RTOL, scratch, pivots)
        for i in range(n):
            step[i] *= -scales[m + i]
        call_evaluator(evaluate, RETRACT, ints, floats, q, step, moved, jacobian, inner)
        for i in range(coordinates):
            q[i] = moved[i]
        done += 1
    control[ITERATIONS] += done
    return int(control[STATUS])


def newton_work(structure):
    """Floats of work the kernel needs."""
    m = int(structure[ROWS])
    n = int(structure[UNKNOWNS])
    return int(structure[WORK]) + m + int(structure[JACOBIAN_SIZE]) + int(structure[COORDINATES]) + 4 * n + m * n
