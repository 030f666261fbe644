"""Kernels of the manifold formulation: six unknowns (δr in world, δθ in body) per body, p ← p ⊗ exp(δθ/2).

∂(r + A s′)/∂(δr, δθ) = [I, −A s̃′], so a row d of ∂f/∂P adds d to the columns of δr and s′ × (Aᵀ d) to those of δθ;
a vector has no part in δr; an orientation x = p ⊗ s has ∂x/∂δθ = ½ p ⊗ (0, δθ) ⊗ s.
"""

from math import cos, sin, sqrt

from cardan._jit import evaluator, inner
from cardan.coordinates._features import derivatives, update_constraint, update_matrices, update_turns
from cardan.solvers.abi import RESIDUAL, RETRACT
from cardan.system.layout import (
    BLOCK,
    BODIES,
    BODY,
    COLUMN,
    COMPONENTS,
    CONSTRAINTS,
    FEATURE,
    FEATURES,
    HEADER,
    KIND,
    NEXT,
    ORIENTATION,
    POINT,
    POSE,
    RECORD,
    ROWS,
    SLOT,
    SLOTS,
    SOURCE,
)

WIDTH = 6


@inner
def add_vector(is_point, d, a, s, row):
    """row += d·∂(r + A s)/∂(δr, δθ), or that of a vector A s."""
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        return
    b0 = a[0] * d[0] + a[3] * d[1] + a[6] * d[2]
    b1 = a[1] * d[0] + a[4] * d[1] + a[7] * d[2]
    b2 = a[2] * d[0] + a[5] * d[1] + a[8] * d[2]
    if is_point:
        for i in range(3):
            row[i] += d[i]
    row[3] += s[1] * b2 - s[2] * b1
    row[4] += s[2] * b0 - s[0] * b2
    row[5] += s[0] * b1 - s[1] * b0


@inner
def add_orientation(d, p, s, row):
    """row += d·∂(p ⊗ s)/∂δθ, which is half the vector part of (p* ⊗ d) ⊗ s*."""
    a0 = p[0] * d[0] + p[1] * d[1] + p[2] * d[2] + p[3] * d[3]
    a1 = p[0] * d[1] - p[1] * d[0] - p[2] * d[3] + p[3] * d[2]
    a2 = p[0] * d[2] + p[1] * d[3] - p[2] * d[0] - p[3] * d[1]
    a3 = p[0] * d[3] - p[1] * d[2] + p[2] * d[1] - p[3] * d[0]
    row[0] += 0.5 * (-a0 * s[1] + a1 * s[0] - a2 * s[3] + a3 * s[2])
    row[1] += 0.5 * (-a0 * s[2] + a1 * s[3] + a2 * s[0] - a3 * s[1])
    row[2] += 0.5 * (-a0 * s[3] - a1 * s[2] + a2 * s[1] + a3 * s[0])


@inner
def chain(record, ints, floats, q, jacobian, work):
    """∂f/∂(δr, δθ) of one constraint from its ∂f/∂x."""
    rows = ints[record + ROWS]
    slots = ints[record + SLOTS]
    components = ints[record + COMPONENTS]
    start = ints[record + BLOCK] * WIDTH
    stride = slots * WIDTH
    for i in range(start, start + rows * stride):
        jacobian[i] = 0.0
    at = record + RECORD + slots
    for _ in range(ints[record + FEATURES]):
        body = ints[at + BODY]
        if body >= 0:
            kind = ints[at + KIND]
            s = floats[ints[at + SOURCE] :]
            d = derivatives(ints) + ints[at + COLUMN]
            j = start + ints[at + SLOT] * WIDTH
            for _ in range(rows):
                if kind == ORIENTATION:
                    add_orientation(work[d:], q[POSE * body + 3 :], s, jacobian[j + 3 :])
                else:
                    add_vector(kind == POINT, work[d:], work[9 * body :], s, jacobian[j:])
                d += components
                j += stride
        at += FEATURE


@inner
def retract(bodies, q, step, out):
    """r + δr and p ⊗ exp(δθ/2), renormalised, into out."""
    for b in range(bodies):
        o = POSE * b
        k = WIDTH * b
        angle = sqrt(step[k + 3] * step[k + 3] + step[k + 4] * step[k + 4] + step[k + 5] * step[k + 5])
        # sin(angle/2)/angle; below 1e-4 the next term of its series, angle⁴/3840, is under 1e-19
        ratio = sin(0.5 * angle) / angle if angle > 1e-4 else 0.5 - angle * angle / 48.0
        c = cos(0.5 * angle)
        p = q[o + 3 : o + 7]
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
        update_turns(ints, floats, q, out, work)
        return 0
    update_matrices(ints[BODIES], q, work)
    record = HEADER
    for _ in range(ints[CONSTRAINTS]):
        update_constraint(record, ints, floats, q, out, work)
        if op != RESIDUAL:
            chain(record, ints, floats, q, jacobian, work)
        record = ints[record + NEXT]
    return 0


EVALUATE = evaluator(_evaluate)
