"""How a System lies in memory: one table of integers, one of floats, read by every kernel.

Integers: a header, then one record per constraint.

====== =============================================================================
header bodies, constraints, rows, Jacobian rows×blocks
record CODE ROW ROWS BLOCK PAR FEATURES SLOTS COMPONENTS NEXT,
       then SLOTS body numbers (ascending: the movable bodies it touches),
       then per feature KIND BODY SLOT SOURCE COLUMN (BODY, SLOT = −1 on the ground)
====== =============================================================================

Floats: the parameters and the local coordinates of features, at the offsets PAR and SOURCE.
A Jacobian block of a constraint has ROWS × SLOTS·width entries, row by row, from BLOCK·width on, where width is the
number of unknowns per body in the formulation: one table serves all formulations.
"""

from __future__ import annotations

from typing import Final

BODIES: Final = 0
CONSTRAINTS: Final = 1
ROWS_TOTAL: Final = 2
BLOCKS: Final = 3  # Σ rows × slots
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

POSE: Final = 7  # floats per body in q: r, p
MAX_COMPONENTS: Final = 32  # of all features of one constraint
MAX_ROWS: Final = 8  # of one constraint
