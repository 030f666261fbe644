"""The solvers' structure table, from the packed system."""

import numpy as np

from cardan._jit import jit
from cardan.solvers import abi
from cardan.system import layout

S_ROWS, S_UNKNOWNS, S_CONSTRAINTS, S_BLOCKS = abi.ROWS, abi.UNKNOWNS, abi.CONSTRAINTS, abi.BLOCKS
S_JACOBIAN, S_COORDINATES, S_OFFSETS, S_WORK, S_LIMITS = (
    abi.JACOBIAN_SIZE,
    abi.COORDINATES,
    abi.OFFSETS,
    abi.WORK,
    abi.LIMITS,
)
S_HEADER = abi.HEADER
BODIES, CONSTRAINTS, ROWS_TOTAL, BLOCKS, HEADER = (
    layout.BODIES,
    layout.CONSTRAINTS,
    layout.ROWS_TOTAL,
    layout.BLOCKS,
    layout.HEADER,
)
ROW, ROWS, BLOCK, SLOTS, RECORD, NEXT, POSE = (
    layout.ROW,
    layout.ROWS,
    layout.BLOCK,
    layout.SLOTS,
    layout.RECORD,
    layout.NEXT,
    layout.POSE,
)


@jit
def fill_structure(ints, width, normalised, out):
    """Constraints, block offsets and limits: ``width`` unknowns per body, a rotation from the third on.

    ``normalised`` adds one row per body.  Returns where the block offsets begin.
    """
    bodies = ints[BODIES]
    count = ints[CONSTRAINTS]
    at = S_HEADER
    record = HEADER
    for _ in range(count):
        slots = ints[record + SLOTS]
        out[at] = ints[record + ROW]
        out[at + 1] = ints[record + ROWS]
        out[at + 2] = ints[record + BLOCK] * width
        for s in range(slots + 1):
            out[at + 3 + s] = slots if s == 0 else ints[record + RECORD + s - 1]
        at += 4 + slots
        record = ints[record + NEXT]
    if normalised:
        for b in range(bodies):
            out[at] = ints[ROWS_TOTAL] + b
            out[at + 1] = 1
            out[at + 2] = (ints[BLOCKS] + b) * width
            out[at + 3] = 1
            out[at + 4] = b
            at += 5
    for b in range(bodies + 1):
        out[at + b] = width * b
        out[at + bodies + 1 + b] = 3
    return at


def structure(ints, width, normalised, work):
    """The table of a system in a formulation; ``work``: floats the evaluator needs."""
    bodies, constraints, blocks = int(ints[BODIES]), int(ints[CONSTRAINTS]), int(ints[BLOCKS])
    extra = bodies if normalised else 0
    out = np.empty(S_HEADER + 4 * constraints + blocks + 5 * extra + 2 * bodies + 2, dtype=np.int64)
    offsets = fill_structure(ints, width, normalised, out)
    out[S_ROWS] = int(ints[ROWS_TOTAL]) + extra
    out[S_UNKNOWNS] = width * bodies
    out[S_CONSTRAINTS] = constraints + extra
    out[S_BLOCKS] = bodies
    out[S_JACOBIAN] = (blocks + extra) * width
    out[S_COORDINATES] = POSE * bodies
    out[S_OFFSETS] = offsets
    out[S_WORK] = work
    out[S_LIMITS] = offsets + bodies + 1
    return out
