"""The solvers' structure table, from the packed system."""

from cardan._jit import exact
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
BODIES, CONSTRAINTS, ROWS_TOTAL, BLOCKS, ANGLES, HEADER = (
    layout.BODIES,
    layout.CONSTRAINTS,
    layout.ROWS_TOTAL,
    layout.BLOCKS,
    layout.ANGLES,
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


@exact
def fill_structure(ints, width, normalised, work, out):
    """Header, constraints, block offsets and limits: ``width`` unknowns per body, a rotation from the third on.

    ``normalised`` adds one row per body.  ``work``: floats the evaluator needs.
    """
    bodies = ints[BODIES]
    count = ints[CONSTRAINTS]
    extra = bodies if normalised else 0
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
    for b in range(extra):
        out[at] = ints[ROWS_TOTAL] + b
        out[at + 1] = 1
        out[at + 2] = (ints[BLOCKS] + b) * width
        out[at + 3] = 1
        out[at + 4] = b
        at += 5
    for b in range(bodies + 1):
        out[at + b] = width * b
        out[at + bodies + 1 + b] = 3
    out[S_ROWS] = ints[ROWS_TOTAL] + extra
    out[S_UNKNOWNS] = width * bodies
    out[S_CONSTRAINTS] = count + extra
    out[S_BLOCKS] = bodies
    out[S_JACOBIAN] = (ints[BLOCKS] + extra) * width
    out[S_COORDINATES] = POSE * bodies + ints[ANGLES]
    out[S_OFFSETS] = at
    out[S_WORK] = work
    out[S_LIMITS] = at + bodies + 1


@exact
def fill_scales(powers, length, angular, bodies, width, out):
    """Scales of the rows, L to the power of each, and of the unknowns: L for lengths, ``angular`` for the rest."""
    rows = powers.size
    for i in range(rows):
        out[i] = 1.0 if powers[i] == 0 else 1.0 / length if powers[i] == 1 else 1.0 / (length * length)
    columns = out.size - bodies * width
    for i in range(rows, columns):
        out[i] = 1.0
    for b in range(bodies):
        for i in range(width):
            out[columns + b * width + i] = length if i < 3 else angular
