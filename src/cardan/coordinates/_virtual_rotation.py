"""Kernels of the virtual-rotation formulation: seven unknowns (r, p) per body, the row pᵀp − 1, and [Liu2013] eq. 6b.

The derivative of a rotated vector is written with the virtual rotation δπ′ = 2G δp:
δ(A s′) = −A s̃′ δπ′ = −2 A s̃′ G δp.  So the row of p is ∂f/∂δθ · 2G(p).  Since G p = 0 it knows nothing of a p that
grows: on the unit sphere it is the derivative along the sphere alone, off the sphere it is none.  It is there to be
compared with :mod:`cardan.coordinates._euler_parameters`.
"""

from cardan._jit import evaluator, inner, tail
from cardan.coordinates._angular import angular_chain
from cardan.coordinates._features import update_constraint, update_counted_angles, update_matrices
from cardan.coordinates._normalisation import WIDTH, normalisation
from cardan.solvers.abi import RESIDUAL, RETRACT
from cardan.system.layout import BLOCK, BODIES, CONSTRAINTS, HEADER, NEXT, POSE, RECORD, ROWS, SLOTS


@inner
def multiply_by_2g(record, ints, q, jacobian):
    """t ← 2 tᵀG(p) in every block of one constraint, with G = [−e, −ẽ + e₀I]:  tᵀG = (−t·e, e₀t + e × t)."""
    slots = ints[record + SLOTS]
    j = ints[record + BLOCK] * WIDTH + 3
    for _ in range(ints[record + ROWS]):
        for s in range(slots):
            p = tail(q, POSE * ints[record + RECORD + s] + 3)
            t0 = 2.0 * jacobian[j]
            t1 = 2.0 * jacobian[j + 1]
            t2 = 2.0 * jacobian[j + 2]
            jacobian[j] = -(p[1] * t0 + p[2] * t1 + p[3] * t2)
            jacobian[j + 1] = p[0] * t0 + p[2] * t2 - p[3] * t1
            jacobian[j + 2] = p[0] * t1 + p[3] * t0 - p[1] * t2
            jacobian[j + 3] = p[0] * t2 + p[1] * t1 - p[2] * t0
            j += WIDTH


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    if op == RETRACT:
        for i in range(POSE * ints[BODIES]):
            out[i] = q[i] + step[i]
        update_counted_angles(ints, floats, q, out, work)
        return 0
    update_matrices(ints[BODIES], q, work)
    record = HEADER
    for _ in range(ints[CONSTRAINTS]):
        update_constraint(record, ints, floats, q, out, work)
        if op != RESIDUAL:
            angular_chain(WIDTH, record, ints, floats, q, jacobian, work)
            multiply_by_2g(record, ints, q, jacobian)
        record = ints[record + NEXT]
    normalisation(ints, q, out, jacobian, op != RESIDUAL)
    return 0


EVALUATE = evaluator(_evaluate)
