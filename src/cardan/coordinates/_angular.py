"""Rows ∂f/∂(δr, δθ), δr in world and δθ in body: those of the manifold formulation, and what others begin with.

∂(r + A s′)/∂(δr, δθ) = [I, −A s̃′], so a row d of ∂f/∂P adds d to the columns of δr and s′ × (Aᵀ d) to those of δθ;
a vector has no part in δr; an orientation x = p ⊗ s has ∂x/∂δθ = ½ p ⊗ (0, δθ) ⊗ s.

Formulations whose rotations are a linear map of δθ multiply the rows by that map: with δθ = T δu the row of the
unknowns u is ∂f/∂δθ · T.  T = 2G(p) gives the virtual rotation, T = B(ψ, θ, φ) the ZXZ angles.
"""

from cardan._jit import cut, inner, tail
from cardan.coordinates._features import derivatives
from cardan.system.layout import (
    BLOCK,
    BODY,
    COLUMN,
    COMPONENTS,
    FEATURE,
    FEATURES,
    KIND,
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
def angular_chain(width, record, ints, floats, q, jacobian, work):
    """∂f/∂(δr, δθ) of one constraint into the first six entries of each of its blocks, which are ``width`` wide."""
    head = tail(ints, record)
    rows = head[ROWS]
    slots = head[SLOTS]
    components = head[COMPONENTS]
    start = head[BLOCK] * width
    stride = slots * width
    for i in range(start, start + rows * stride):
        jacobian[i] = 0.0
    at = record + RECORD + slots
    for _ in range(head[FEATURES]):
        feature = tail(ints, at)
        body = feature[BODY]
        if body >= 0:
            kind = feature[KIND]
            s = tail(floats, feature[SOURCE])
            d = derivatives(ints) + feature[COLUMN]
            j = start + feature[SLOT] * width
            for _ in range(rows):
                if kind == ORIENTATION:
                    add_orientation(cut(work, d, 4), tail(q, POSE * body + 3), s, cut(jacobian, j + 3, 3))
                else:
                    add_vector(kind == POINT, cut(work, d, 3), cut(work, 9 * body, 9), s, cut(jacobian, j, 6))
                d += components
                j += stride
        at += FEATURE
