"""Layout of the packed tables that evaluators read, as plain numbers (kernels inline them).

Ints:

====== =============================================================================
header bodies, constraints, rows, Jacobian rows×blocks, turns, where their table begins, most components, most rows
record CODE ROW ROWS BLOCK PAR FEATURES SLOTS COMPONENTS NEXT,
       then SLOTS body numbers (ascending: the movable bodies it touches),
       then per feature KIND BODY SLOT SOURCE COLUMN (BODY, SLOT = −1 on the ground)
turns  per angle whose whole turns are counted: BODY_A BODY_B SOURCE
====== =============================================================================

Floats: the parameters and the local coordinates of features, at the offsets PAR and SOURCE; of a turn x, y of body a
and v of body b, nine floats.

CODE is a primitive's code in a system's own table; in the table of a problem it is an address for all but the inline
primitives.  A feature TURN has the number of the turn as its SOURCE.

Coordinates q: POSE floats per body, then one angle per turn: its value when last accepted, whole turns included.

A Jacobian block of a constraint has ROWS × SLOTS·width entries, row by row, from BLOCK·width on, where width is the
number of unknowns per body in the formulation: one table serves all formulations.

Before packing, a record is a template: CODE 0 ROWS 0 FLOATS FEATURES SLOTS COMPONENTS SIZE, with serial numbers of
bodies and turns for their numbers, and SOURCE counted from the record's own first float.
"""

from __future__ import annotations

from typing import Final

BODIES: Final = 0
CONSTRAINTS: Final = 1
ROWS_TOTAL: Final = 2
BLOCKS: Final = 3  # Σ rows × slots
ANGLES: Final = 4
ANGLE_TABLE: Final = 5
WIDEST: Final = 6  # components of a constraint, at the most
TALLEST: Final = 7  # rows of a constraint, at the most
HEADER: Final = 8

CODE: Final = 0
ROW: Final = 1
ROWS: Final = 2
BLOCK: Final = 3
PAR: Final = 4
FEATURES: Final = 5
SLOTS: Final = 6
COMPONENTS: Final = 7
NEXT: Final = 8
RECORD: Final = 9

KIND: Final = 0
BODY: Final = 1
SLOT: Final = 2
SOURCE: Final = 3
COLUMN: Final = 4
FEATURE: Final = 5

POINT: Final = 0  # values of KIND
ORIENTATION: Final = 2
ANGLE: Final = 3

ANGLE_A: Final = 0
ANGLE_B: Final = 1
ANGLE_SOURCE: Final = 2
ANGLE_RECORD: Final = 3

POSE: Final = 7  # floats per body in q: r, p

STILL: Final = 0  # how a joint of a spanning tree turns: not, by one angle, by two of a cross, by four parameters
ABOUT_Z: Final = 1
CROSSED: Final = 2
ANYHOW: Final = 3
