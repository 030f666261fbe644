"""Kernels of the manifold formulation: six unknowns (δr in world, δθ in body) per body, p ← p ⊗ exp(δθ/2).

∂(r + A s′)/∂(δr, δθ) = [I, −A s̃′], so a row d of ∂f/∂P adds d to the columns of δr and s′ × (Aᵀ d) to those of δθ;
a vector has no part in δr; an orientation x = p ⊗ s has ∂x/∂δθ = ½ p ⊗ (0, δθ) ⊗ s.
"""

from math import cos, sin, sqrt

from cardan._jit import evaluator, inner
from cardan.coordinates._features import ORIENTATION, POINT, update_constraints
from cardan.solvers.abi import RESIDUAL, RETRACT
from cardan.system.layout import (
    BLOCK,
    BODIES,
    BODY,
    COLUMN,
    COMPONENTS,
    CONSTRAINTS,
    DERIVATIVE,
    FEATURE,
    FEATURES,
    HEADER,
    KIND,
    NEXT,
    POSE,
    RECORD,
    ROWS,
    SLOT,
    SLOTS,
    SOURCE,
)

WIDTH = 6


@inner
def chain(ints, floats, q, jacobian, work, derivatives):
    """∂f/∂(δr, δθ) of every constraint from ∂f/∂x."""
    record = HEADER
    for _ in range(ints[CONSTRAINTS]):
        rows = ints[record + ROWS]
        slots = ints[record + SLOTS]
        components = ints[record + COMPONENTS]
        start = ints[record + BLOCK] * WIDTH
        stride = slots * WIDTH
        for i in range(start, start + rows * stride):
            jacobian[i] = 0.0
        first = record + RECORD + slots
        for f in range(ints[record + FEATURES]):
            at = first + FEATURE * f
            body = ints[at + BODY]
            if body < 0:
                continue
            kind = ints[at + KIND]
            s = ints[at + SOURCE]
            s0 = floats[s]
            s1 = floats[s + 1]
            s2 = floats[s + 2]
            d = derivatives + ints[record + DERIVATIVE] + ints[at + COLUMN]
            j = start + ints[at + SLOT] * WIDTH
            if kind == ORIENTATION:
                s3 = floats[s + 3]
                o = POSE * body + 3
                p0 = q[o]
                p1 = q[o + 1]
                p2 = q[o + 2]
                p3 = q[o + 3]
                for _ in range(rows):
                    d0 = work[d]
                    d1 = work[d + 1]
                    d2 = work[d + 2]
                    d3 = work[d + 3]
                    # a = p* ⊗ d, then b = a ⊗ s*: the row in the body's own axes is ½ the vector part of b
                    a0 = p0 * d0 + p1 * d1 + p2 * d2 + p3 * d3
                    a1 = p0 * d1 - p1 * d0 - p2 * d3 + p3 * d2
                    a2 = p0 * d2 + p1 * d3 - p2 * d0 - p3 * d1
                    a3 = p0 * d3 - p1 * d2 + p2 * d1 - p3 * d0
                    jacobian[j + 3] += 0.5 * (-a0 * s1 + a1 * s0 - a2 * s3 + a3 * s2)
                    jacobian[j + 4] += 0.5 * (-a0 * s2 + a1 * s3 + a2 * s0 - a3 * s1)
                    jacobian[j + 5] += 0.5 * (-a0 * s3 - a1 * s2 + a2 * s1 + a3 * s0)
                    d += components
                    j += stride
                continue
            o = 9 * body
            for _ in range(rows):
                d0 = work[d]
                d1 = work[d + 1]
                d2 = work[d + 2]
                if d0 != 0.0 or d1 != 0.0 or d2 != 0.0:
                    a0 = work[o] * d0 + work[o + 3] * d1 + work[o + 6] * d2
                    a1 = work[o + 1] * d0 + work[o + 4] * d1 + work[o + 7] * d2
                    a2 = work[o + 2] * d0 + work[o + 5] * d1 + work[o + 8] * d2
                    if kind == POINT:
                        jacobian[j] += d0
                        jacobian[j + 1] += d1
                        jacobian[j + 2] += d2
                    jacobian[j + 3] += s1 * a2 - s2 * a1
                    jacobian[j + 4] += s2 * a0 - s0 * a2
                    jacobian[j + 5] += s0 * a1 - s1 * a0
                d += components
                j += stride
        record = ints[record + NEXT]


@inner
def retract(bodies, q, step, out):
    """r + δr and p ⊗ exp(δθ/2), renormalised, into out."""
    for b in range(bodies):
        o = POSE * b
        k = WIDTH * b
        out[o] = q[o] + step[k]
        out[o + 1] = q[o + 1] + step[k + 1]
        out[o + 2] = q[o + 2] + step[k + 2]
        t1 = step[k + 3]
        t2 = step[k + 4]
        t3 = step[k + 5]
        angle = sqrt(t1 * t1 + t2 * t2 + t3 * t3)
        half = 0.5 * angle
        # sin(angle/2)/angle; below 1e-4 the next term of its series, angle⁴/3840, is under 1e-19
        ratio = sin(half) / angle if angle > 1e-4 else 0.5 - angle * angle / 48.0
        c = cos(half)
        t1 *= ratio
        t2 *= ratio
        t3 *= ratio
        p0 = q[o + 3]
        p1 = q[o + 4]
        p2 = q[o + 5]
        p3 = q[o + 6]
        n0 = p0 * c - p1 * t1 - p2 * t2 - p3 * t3
        n1 = p0 * t1 + p1 * c + p2 * t3 - p3 * t2
        n2 = p0 * t2 - p1 * t3 + p2 * c + p3 * t1
        n3 = p0 * t3 + p1 * t2 - p2 * t1 + p3 * c
        n = 1.0 / sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
        out[o + 3] = n0 * n
        out[o + 4] = n1 * n
        out[o + 5] = n2 * n
        out[o + 6] = n3 * n


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    if op == RETRACT:
        retract(ints[BODIES], q, step, out)
        return 0
    derivatives = update_constraints(ints, floats, q, out, work)
    if op != RESIDUAL:
        chain(ints, floats, q, jacobian, work, derivatives)
    return 0


EVALUATE = evaluator(_evaluate)
