"""The row pᵀp − 1 of every body, for formulations whose unknowns are (r, p)."""

from cardan._jit import inner
from cardan.system.layout import BLOCKS, BODIES, POSE, ROWS_TOTAL

WIDTH = 7


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
