"""Rows ∂f/∂(δr, δθ) as a start: formulations whose rotations are a linear map of δθ multiply them by that map.

With δθ = T δu the row of the unknowns u is ∂f/∂δθ · T.  T = 2G(p) gives the virtual rotation, T = B(ψ, θ, φ) the
ZXZ angles.  δθ is the rotation in body axes of the manifold formulation.
"""

from cardan._jit import inner
from cardan.coordinates._features import derivatives
from cardan.coordinates._manifold import add_orientation, add_vector
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
def angular_chain(width, record, ints, floats, q, jacobian, work):
    """∂f/∂(δr, δθ) of one constraint into the first six entries of each of its blocks, which are ``width`` wide."""
    rows = ints[record + ROWS]
    slots = ints[record + SLOTS]
    components = ints[record + COMPONENTS]
    start = ints[record + BLOCK] * width
    stride = slots * width
    for i in range(start, start + rows * stride):
        jacobian[i] = 0.0
    at = record + RECORD + slots
    for _ in range(ints[record + FEATURES]):
        body = ints[at + BODY]
        if body >= 0:
            kind = ints[at + KIND]
            s = floats[ints[at + SOURCE] :]
            d = derivatives(ints) + ints[at + COLUMN]
            j = start + ints[at + SLOT] * width
            for _ in range(rows):
                if kind == ORIENTATION:
                    add_orientation(work[d:], q[POSE * body + 3 :], s, jacobian[j + 3 :])
                else:
                    add_vector(kind == POINT, work[d:], work[9 * body :], s, jacobian[j:])
                d += components
                j += stride
        at += FEATURE
