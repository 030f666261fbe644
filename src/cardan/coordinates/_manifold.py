"""Kernels of the manifold formulation: six unknowns (δr in world, δθ in body) per body, p ← p ⊗ exp(δθ/2)."""

from math import cos, sqrt

from cardan._jit import evaluator, inner, tail
from cardan.coordinates._angular import angular_chain
from cardan.coordinates._features import update_constraint, update_counted_angles, update_matrices
from cardan.math._kernels import half_sine_ratio
from cardan.solvers.abi import RESIDUAL, RETRACT
from cardan.system.layout import BODIES, CONSTRAINTS, HEADER, NEXT, POSE

WIDTH = 6


@inner
def retract(bodies, q, step, out):
    """r + δr and p ⊗ exp(δθ/2), renormalised, into out."""
    for b in range(bodies):
        o = POSE * b
        k = WIDTH * b
        angle = sqrt(step[k + 3] * step[k + 3] + step[k + 4] * step[k + 4] + step[k + 5] * step[k + 5])
        ratio = half_sine_ratio(angle)
        c = cos(0.5 * angle)
        p = tail(q, o + 3)
        square = 0.0
        for i in range(4):
            if i == 0:
                s = p[0] * c
                for j in range(1, 4):
                    s -= p[j] * ratio * step[k + 2 + j]
            else:
                j = i % 3 + 1
                m = j % 3 + 1
                s = p[i] * c + ratio * (p[0] * step[k + 2 + i] + p[j] * step[k + 2 + m] - p[m] * step[k + 2 + j])
            out[o + 3 + i] = s
            square += s * s
        for i in range(4):
            out[o + 3 + i] /= sqrt(square)
        for i in range(3):
            out[o + i] = q[o + i] + step[k + i]


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    if op == RETRACT:
        retract(ints[BODIES], q, step, out)
        update_counted_angles(ints, floats, q, out, work)
        return 0
    update_matrices(ints[BODIES], q, work)
    record = HEADER
    for _ in range(ints[CONSTRAINTS]):
        update_constraint(record, ints, floats, q, out, work)
        if op != RESIDUAL:
            angular_chain(WIDTH, record, ints, floats, q, jacobian, work)
        record = ints[record + NEXT]
    return 0


EVALUATE = evaluator(_evaluate)
