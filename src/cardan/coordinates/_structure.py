"""The solvers' structure table and scales, from the packed system.

Reads the records; writes one constraint of the structure for each, then one per body where there are normalisation
rows.  These kernels are interpreted at first (:mod:`cardan.lazy`): they use no accessors of other kernel modules.
"""

from cardan.kernel.jit import exact
from cardan.solvers import abi
from cardan.solvers.abi import C_BLOCKS, C_ENTRY, C_ROW, C_ROWS, C_SLOTS
from cardan.system import layout

LENGTHS = 3  # unknowns of a body that are lengths; a rotation follows


@exact
def fill_structure(ints, width, normalised, work, out):
    """The whole table, for ``width`` unknowns per body; ``normalised`` adds one row per body.  Returns its end.

    Bodies are the first blocks; a block of one unknown for each free variable follows.

    ``work``: floats the evaluator needs.
    """
    bodies = ints[layout.BODIES]
    free = ints[layout.FREE]
    count = ints[layout.CONSTRAINTS]
    extra = bodies if normalised else 0
    at = abi.HEADER
    record = layout.HEADER
    for _ in range(count):
        slots = ints[record + layout.SLOTS]
        out[at + C_ROW] = ints[record + layout.ROW]
        out[at + C_ROWS] = ints[record + layout.ROWS]
        out[at + C_ENTRY] = ints[record + layout.BLOCK] * width + ints[record + layout.EXTRA]
        wide = ints[record + layout.WIDE]
        out[at + C_SLOTS] = slots + wide
        for s in range(slots):
            out[at + C_BLOCKS + s] = ints[record + layout.RECORD + s]
        for s in range(wide):
            out[at + C_BLOCKS + slots + s] = bodies + ints[ints[record + layout.LINKS] + s]
        at += C_BLOCKS + slots + wide
        record = ints[record + layout.NEXT]
    for b in range(extra):
        out[at + C_ROW] = ints[layout.ROWS_TOTAL] + b
        out[at + C_ROWS] = 1
        out[at + C_ENTRY] = (ints[layout.BLOCKS] + b) * width + ints[layout.EXTRAS]
        out[at + C_SLOTS] = 1
        out[at + C_BLOCKS] = b
        at += C_BLOCKS + 1
    blocks = bodies + free
    rotations = at + blocks + 1
    for b in range(blocks + 1):
        out[at + b] = width * b if b <= bodies else width * bodies + b - bodies
        out[rotations + b] = LENGTHS if b < bodies or free == 0 else 1
    out[abi.ROWS] = ints[layout.ROWS_TOTAL] + extra
    out[abi.UNKNOWNS] = width * bodies + free
    out[abi.CONSTRAINTS] = count + extra
    out[abi.BLOCKS] = blocks
    out[abi.JACOBIAN_SIZE] = (ints[layout.BLOCKS] + extra) * width + ints[layout.EXTRAS]
    out[abi.COORDINATES] = layout.POSE * bodies + ints[layout.VARIABLES] + ints[layout.ANGLES]
    out[abi.OFFSETS] = at
    out[abi.WORK] = work
    out[abi.ROTATIONS] = rotations
    return rotations + blocks + 1


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
            out[columns + b * width + i] = length if i < LENGTHS else angular
