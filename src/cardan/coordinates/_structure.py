"""The solvers' structure table, from the packed system."""

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


def structure_size(ints):
    """A bound on the length of the table, with room for one more row per body."""
    return S_HEADER + 4 * int(ints[CONSTRAINTS]) + int(ints[BLOCKS]) + 7 * int(ints[BODIES]) + 1


@jit
def fill_structure(ints, width, normalised, work, out):
    """Blocks of ``width`` unknowns per body, from the third on a rotation; ``normalised`` adds one row per body."""
    bodies = ints[BODIES]
    rows = ints[ROWS_TOTAL]
    entries = ints[BLOCKS] * width
    count = ints[CONSTRAINTS]
    at = S_HEADER
    record = HEADER
    for _ in range(count):
        slots = ints[record + SLOTS]
        out[at] = ints[record + ROW]
        out[at + 1] = ints[record + ROWS]
        out[at + 2] = ints[record + BLOCK] * width
        out[at + 3] = slots
        for s in range(slots):
            out[at + 4 + s] = ints[record + RECORD + s]
        at += 4 + slots
        record = ints[record + NEXT]
    if normalised:
        for b in range(bodies):
            out[at] = rows
            out[at + 1] = 1
            out[at + 2] = entries
            out[at + 3] = 1
            out[at + 4] = b
            at += 5
            rows += 1
            entries += width
        count += bodies
    out[S_ROWS] = rows
    out[S_UNKNOWNS] = width * bodies
    out[S_CONSTRAINTS] = count
    out[S_BLOCKS] = bodies
    out[S_JACOBIAN] = entries
    out[S_COORDINATES] = POSE * bodies
    out[S_OFFSETS] = at
    out[S_WORK] = work
    for b in range(bodies + 1):
        out[at + b] = width * b
    at += bodies + 1
    out[S_LIMITS] = at
    for b in range(bodies):
        out[at + b] = 3
