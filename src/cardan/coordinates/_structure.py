"""The solvers' structure table and scales, from the packed system.

Reads the records; writes one constraint of the structure for each, then one per body where there are normalisation
rows.  These kernels are interpreted at first (:mod:`cardan.lazy`): they use no accessors of other kernel modules.
"""

from cardan.kernel.jit import exact
from cardan.solvers.tables import Constraint, Structure
from cardan.system.tables import HEADER, POSE, Record, SystemTable

STRUCTURE, CONSTRAINT = Structure.size, Constraint.size
OFFSETS, ROTATIONS = Structure.offsets.first, Structure.rotations.first

LENGTHS = 3  # unknowns of a body that are lengths; a rotation follows


@exact
def fill_structure(ints, width, normalised, work, out):
    """The whole table, for ``width`` unknowns per body; ``normalised`` adds one row per body.  Returns its end.

    Bodies are the first blocks; a block of one unknown for each free variable follows.

    ``work``: floats the evaluator needs.
    """
    system = SystemTable(ints)
    bodies = system.bodies
    free = system.free
    count = system.constraints
    extra = bodies if normalised else 0
    at = STRUCTURE
    place = HEADER
    for _ in range(count):
        record = Record(ints[place:])
        slots = record.slots
        wide = record.wide
        constraint = Constraint(out[at:])
        constraint.row = record.row
        constraint.rows = record.rows
        constraint.entry = record.block * width + record.extra
        constraint.slots = slots + wide
        for s in range(slots):
            constraint.blocks[s] = record.bodies[s]
        for s in range(wide):
            constraint.blocks[slots + s] = bodies + ints[record.links + s]
        at += CONSTRAINT + slots + wide
        place = record.next
    for b in range(extra):
        constraint = Constraint(out[at:])
        constraint.row = system.rows + b
        constraint.rows = 1
        constraint.entry = (system.blocks + b) * width + system.extras
        constraint.slots = 1
        constraint.blocks[0] = b
        at += CONSTRAINT + 1
    blocks = bodies + free
    rotations = at + blocks + 1
    for b in range(blocks + 1):
        out[at + b] = width * b if b <= bodies else width * bodies + b - bodies
        out[rotations + b] = LENGTHS if b < bodies or free == 0 else 1
    structure = Structure(out)
    structure.rows = system.rows + extra
    structure.unknowns = width * bodies + free
    structure.constraints = count + extra
    structure.blocks = blocks
    structure.jacobian_size = (system.blocks + extra) * width + system.extras
    structure.coordinates = POSE * bodies + system.variables + system.angles
    structure.work = work
    out[OFFSETS] = at
    out[ROTATIONS] = rotations
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
