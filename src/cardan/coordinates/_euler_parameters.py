"""Kernels of the Euler-parameter formulation: seven unknowns (r, p) per body and the row pᵀp − 1.

∂(r + A(p) s′)/∂(r, p) = [I, K(s′, p)], the true derivative for p of any length, with
K(u, p) = [2(ẽ + e₀I)u, (e·u)I + e uᵀ − ẽũ − tilde(ẽu) − 2e₀ũ].  [Liu2013] eqs. 7, 8.
An orientation x = p ⊗ s is linear in p.
"""

from cardan._jit import evaluator, inner
from cardan.coordinates._features import ORIENTATION, POINT, update_constraints
from cardan.solvers.abi import RESIDUAL, RETRACT
from cardan.system.layout import (
    BLOCK,
    BLOCKS,
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
    ROWS_TOTAL,
    SLOT,
    SLOTS,
    SOURCE,
)

WIDTH = 7


@inner
def chain(ints, floats, q, jacobian, work, derivatives):
    """∂f/∂(r, p) of every constraint from ∂f/∂x."""
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
            u0 = floats[s]
            u1 = floats[s + 1]
            u2 = floats[s + 2]
            o = POSE * body + 3
            p0 = q[o]
            p1 = q[o + 1]
            p2 = q[o + 2]
            p3 = q[o + 3]
            d = derivatives + ints[record + DERIVATIVE] + ints[at + COLUMN]
            j = start + ints[at + SLOT] * WIDTH
            if kind == ORIENTATION:
                u3 = floats[s + 3]
                for _ in range(rows):
                    d0 = work[d]
                    d1 = work[d + 1]
                    d2 = work[d + 2]
                    d3 = work[d + 3]
                    # the adjoint of p ↦ p ⊗ s is d ↦ d ⊗ s*
                    jacobian[j + 3] += d0 * u0 + d1 * u1 + d2 * u2 + d3 * u3
                    jacobian[j + 4] += -d0 * u1 + d1 * u0 - d2 * u3 + d3 * u2
                    jacobian[j + 5] += -d0 * u2 + d1 * u3 + d2 * u0 - d3 * u1
                    jacobian[j + 6] += -d0 * u3 - d1 * u2 + d2 * u1 + d3 * u0
                    d += components
                    j += stride
                continue
            eu = p1 * u0 + p2 * u1 + p3 * u2
            c0 = p2 * u2 - p3 * u1  # e × u
            c1 = p3 * u0 - p1 * u2
            c2 = p1 * u1 - p2 * u0
            for _ in range(rows):
                d0 = work[d]
                d1 = work[d + 1]
                d2 = work[d + 2]
                if d0 != 0.0 or d1 != 0.0 or d2 != 0.0:
                    if kind == POINT:
                        jacobian[j] += d0
                        jacobian[j + 1] += d1
                        jacobian[j + 2] += d2
                    de = d0 * p1 + d1 * p2 + d2 * p3
                    du = d0 * u0 + d1 * u1 + d2 * u2
                    jacobian[j + 3] += 2.0 * (d0 * (c0 + p0 * u0) + d1 * (c1 + p0 * u1) + d2 * (c2 + p0 * u2))
                    # dᵀ[(e·u)I + e uᵀ − ẽũ − tilde(ẽu) − 2e₀ũ], with ẽũ = u eᵀ − (e·u)I
                    # and dᵀ tilde(a) = (d × a)ᵀ
                    g0 = d1 * c2 - d2 * c1
                    g1 = d2 * c0 - d0 * c2
                    g2 = d0 * c1 - d1 * c0
                    h0 = d1 * u2 - d2 * u1
                    h1 = d2 * u0 - d0 * u2
                    h2 = d0 * u1 - d1 * u0
                    jacobian[j + 4] += 2.0 * eu * d0 + de * u0 - du * p1 - g0 - 2.0 * p0 * h0
                    jacobian[j + 5] += 2.0 * eu * d1 + de * u1 - du * p2 - g1 - 2.0 * p0 * h1
                    jacobian[j + 6] += 2.0 * eu * d2 + de * u2 - du * p3 - g2 - 2.0 * p0 * h2
                d += components
                j += stride
        record = ints[record + NEXT]


@inner
def normalisation(ints, q, out, jacobian, with_jacobian):
    """pᵀp − 1 of every body behind the constraints' rows, and its row 2pᵀ."""
    row = ints[ROWS_TOTAL]
    j = ints[BLOCKS] * WIDTH
    for b in range(ints[BODIES]):
        o = POSE * b + 3
        s = -1.0
        for k in range(4):
            s += q[o + k] * q[o + k]
        out[row + b] = s
        if with_jacobian:
            for k in range(3):
                jacobian[j + k] = 0.0
            for k in range(4):
                jacobian[j + 3 + k] = 2.0 * q[o + k]
            j += WIDTH


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    if op == RETRACT:
        for i in range(POSE * ints[BODIES]):
            out[i] = q[i] + step[i]
        return 0
    derivatives = update_constraints(ints, floats, q, out, work)
    normalisation(ints, q, out, jacobian, op != RESIDUAL)
    if op != RESIDUAL:
        chain(ints, floats, q, jacobian, work, derivatives)
    return 0


EVALUATE = evaluator(_evaluate)
