"""Fields of the structure table by name: see :mod:`cardan.solvers.abi` for its layout.

A constraint is known by its position ``at`` in the table:

    at = FIRST
    for _ in range(structure[CONSTRAINTS]):
        …
        at = next_constraint(structure, at)
"""

from cardan._jit import inner, plain, tail
from cardan.solvers.abi import C_BLOCKS, C_ENTRY, C_ROW, C_ROWS, C_SLOTS, HEADER, LIMITS, OFFSETS

FIRST = plain(HEADER)  # position of the first constraint


@inner
def first_row(structure, at):
    """Number of the constraint's first row."""
    return structure[at + C_ROW]


@inner
def end_row(structure, at):
    """Number of the row behind the constraint's last."""
    return structure[at + C_ROW] + structure[at + C_ROWS]


@inner
def row_count(structure, at):
    """Rows of the constraint."""
    return structure[at + C_ROWS]


@inner
def first_entry(structure, at):
    """Position of the constraint's first entry in the Jacobian."""
    return structure[at + C_ENTRY]


@inner
def slot_count(structure, at):
    """Blocks that the constraint touches."""
    return structure[at + C_SLOTS]


@inner
def block_in(structure, at, slot):
    """Number of the block in a slot of the constraint."""
    return structure[at + C_BLOCKS + slot]


@inner
def blocks_of(structure, at):
    """Numbers of the constraint's blocks, one per slot."""
    return tail(structure, at + C_BLOCKS)


@inner
def next_constraint(structure, at):
    """Position of the constraint that follows."""
    return at + C_BLOCKS + structure[at + C_SLOTS]


@inner
def block_offsets(structure):
    """Numbers of the blocks' first unknowns: block b has those from offsets[b] to offsets[b + 1] − 1."""
    return tail(structure, structure[OFFSETS])


@inner
def row_length(structure, at):
    """Entries in a row of the constraint: the widths of its blocks in sum."""
    offsets = block_offsets(structure)
    total = 0
    for s in range(slot_count(structure, at)):
        block = block_in(structure, at, s)
        total += offsets[block + 1] - offsets[block]
    return total


@inner
def rotation_offsets(structure):
    """Per block, how many of its unknowns come before those that are a rotation."""
    return tail(structure, structure[LIMITS])
