"""The spring step δ = −κ Jᵀr: every constraint pulls on its bodies like a spring.  [Nelson1998] eq. 5

k is dimensionless: r, J and the unknowns are scaled by the characteristic length.  The step decreases ½|r|² as long as
κ < 2/λ_max(JᵀJ); κ = min(k, 1/(‖J‖₁‖J‖_∞)) is within that bound, because ‖J‖₂² ≤ ‖J‖₁ ‖J‖_∞.
"""

from math import sqrt

from cardan._jit import call_evaluator, inner, jit, pointer, tail
from cardan.solvers._blocks import half_square, largest, scale_rows
from cardan.solvers.abi import (
    BROKEN,
    CHUNK,
    CONSTRAINTS,
    CONVERGED,
    COORDINATES,
    COST,
    HEADER,
    ITERATIONS,
    JACOBIAN,
    JACOBIAN_SIZE,
    OFFSETS,
    OVERFLOW,
    RESIDUAL_MAX,
    RETRACT,
    ROWS,
    RUNNING,
    STALLED,
    STATUS,
    STEP_GAIN,
    TOLERANCE,
    UNKNOWNS,
    WORK,
)

STALL_GRADIENT = 1e-9  # |Jᵀr|/|r| below this: a stationary point that is no solution


@inner
def gradient_and_bound(structure, r, jacobian, gradient, sums):
    """gradient ← Jᵀr; returns ‖J‖₁‖J‖_∞."""
    n = structure[UNKNOWNS]
    offsets = structure[OFFSETS]
    for i in range(n):
        gradient[i] = 0.0
        sums[i] = 0.0
    by_row = 0.0
    at = HEADER
    for _ in range(structure[CONSTRAINTS]):
        row = structure[at]
        entry = structure[at + 2]
        slots = structure[at + 3]
        for i in range(row, row + structure[at + 1]):
            total = 0.0
            for s in range(slots):
                block = structure[at + 4 + s]
                for k in range(structure[offsets + block], structure[offsets + block + 1]):
                    v = jacobian[entry]
                    gradient[k] += v * r[i]
                    sums[k] += abs(v)
                    total += abs(v)
                    entry += 1
            by_row = max(by_row, total)
        at += 4 + slots
    by_column = 0.0
    for i in range(n):
        by_column = max(by_column, sums[i])
    return by_row * by_column


@jit
def gradient(evaluate, ints, floats, structure, scales, q, control, work):
    """Iterate from q in place until met, stalled, or CHUNK iterations are done; returns STATUS."""
    structure = pointer(structure)
    scales = pointer(scales)
    q = pointer(q)
    control = pointer(control)
    work = pointer(work)
    m = structure[ROWS]
    n = structure[UNKNOWNS]
    size = structure[JACOBIAN_SIZE]
    coordinates = structure[COORDINATES]
    at = structure[WORK]
    inner = work
    r = tail(work, at)
    at += m
    jacobian = tail(work, at)
    at += size
    moved = tail(work, at)
    at += coordinates
    direction = tail(work, at)
    at += n
    sums = tail(work, at)
    control[STATUS] = RUNNING
    done = 0
    limit = int(control[CHUNK])
    while True:
        call_evaluator(evaluate, JACOBIAN, ints, floats, q, direction, r, jacobian, inner)
        scale_rows(structure, scales, r, jacobian)
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
        bound = gradient_and_bound(structure, r, jacobian, direction, sums)
        square = 0.0
        for i in range(n):
            square += direction[i] * direction[i]
        if sqrt(square) <= STALL_GRADIENT * sqrt(2.0 * cost):
            control[STATUS] = STALLED
            break
        gain = min(control[STEP_GAIN], 1.0 / bound)
        for i in range(n):
            direction[i] *= -gain * scales[m + i]
        call_evaluator(evaluate, RETRACT, ints, floats, q, direction, moved, jacobian, inner)
        for i in range(coordinates):
            q[i] = moved[i]
        done += 1
    control[ITERATIONS] += done
    return int(control[STATUS])


def gradient_work(structure):
    """Floats of work the kernel needs."""
    n = int(structure[UNKNOWNS])
    blocks = int(structure[ROWS]) + int(structure[JACOBIAN_SIZE])
    return int(structure[WORK]) + blocks + int(structure[COORDINATES]) + 2 * n
