"""Kernels of the Euler-parameter formulation: seven unknowns (r, p) per body and the row pᵀp − 1.

∂(r + A(p) s′)/∂(r, p) = [I, K(s′, p)], the true derivative for p of any length, with
K(u, p) = [2(ẽ + e₀I)u, (e·u)I + e uᵀ − ẽũ − tilde(ẽu) − 2e₀ũ].  [Liu2013] eqs. 7, 8.
An orientation x = p ⊗ s is linear in p.
"""

from cardan._jit import cut, evaluator, inner, tail
from cardan.coordinates._features import derivatives, update_constraint, update_counted_angles, update_matrices
from cardan.coordinates._normalisation import WIDTH, normalisation
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


@inner
def add_vector(d, p, u, row):
    """row += dᵀ K(u, p).

    With c = e × u and ẽũ = u eᵀ − (e·u) I:  K = 2[c + e₀u, (e·u) I + ½(e uᵀ − u eᵀ − tilde(c)) − e₀ũ], and dᵀ
    tilde(a) = (d × a)ᵀ.
    """
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        return
    eu = p[1] * u[0] + p[2] * u[1] + p[3] * u[2]
    de = p[1] * d[0] + p[2] * d[1] + p[3] * d[2]
    du = u[0] * d[0] + u[1] * d[1] + u[2] * d[2]
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        c_i = p[j + 1] * u[k] - p[k + 1] * u[j]
        c_j = p[k + 1] * u[i] - p[i + 1] * u[k]
        c_k = p[i + 1] * u[j] - p[j + 1] * u[i]
        row[0] += 2.0 * d[i] * (c_i + p[0] * u[i])
        row[i + 1] += (
            2.0 * eu * d[i]
            + de * u[i]
            - du * p[i + 1]
            - (d[j] * c_k - d[k] * c_j)
            - 2.0 * p[0] * (d[j] * u[k] - d[k] * u[j])
        )


@inner
def add_orientation(d, s, row):
    """row += d·∂(p ⊗ s)/∂p = d ⊗ s*."""
    row[0] += d[0] * s[0] + d[1] * s[1] + d[2] * s[2] + d[3] * s[3]
    for i in range(1, 4):
        j = i % 3 + 1
        k = j % 3 + 1
        row[i] += -d[0] * s[i] + d[i] * s[0] - d[j] * s[k] + d[k] * s[j]


@inner
def chain(record, ints, floats, q, jacobian, work):
    """∂f/∂(r, p) of one constraint from its ∂f/∂x."""
    head = tail(ints, record)
    rows = head[ROWS]
    slots = head[SLOTS]
    components = head[COMPONENTS]
    start = head[BLOCK] * WIDTH
    stride = slots * WIDTH
    for i in range(start, start + rows * stride):
        jacobian[i] = 0.0
    at = record + RECORD + slots
    for _ in range(head[FEATURES]):
        feature = tail(ints, at)
        body = feature[BODY]
        if body >= 0:
            kind = feature[KIND]
            u = tail(floats, feature[SOURCE])
            p = tail(q, POSE * body + 3)
            d = derivatives(ints) + feature[COLUMN]
            j = start + feature[SLOT] * WIDTH
            for _ in range(rows):
                if kind == ORIENTATION:
                    add_orientation(cut(work, d, 4), u, cut(jacobian, j + 3, 4))
                else:
                    if kind == POINT:
                        for i in range(3):
                            jacobian[j + i] += work[d + i]
                    add_vector(cut(work, d, 3), p, u, cut(jacobian, j + 3, 4))
                d += components
                j += stride
        at += FEATURE


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
            chain(record, ints, floats, q, jacobian, work)
        record = ints[record + NEXT]
    normalisation(ints, q, out, jacobian, op != RESIDUAL)
    return 0


EVALUATE = evaluator(_evaluate)
