"""How a System lies in memory: one table of integers, one of floats, read by every kernel.

Integers: a header, then one record per constraint.

====== =============================================================================
header bodies, constraints, rows, derivative size, Jacobian rows×blocks, first record
record CODE ROW ROWS BLOCK PAR DERIVATIVE FEATURES SLOTS COMPONENTS NEXT,
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
DERIVATIVES: Final = 3  # entries of ∂f/∂x of all constraints
BLOCKS: Final = 4  # Σ rows × slots
HEADER: Final = 8

CODE: Final = 0
ROW: Final = 1
ROWS: Final = 2
BLOCK: Final = 3
PAR: Final = 4
DERIVATIVE: Final = 5
FEATURES: Final = 6
SLOTS: Final = 7
COMPONENTS: Final = 8
NEXT: Final = 9
RECORD: Final = 10

KIND: Final = 0
BODY: Final = 1
SLOT: Final = 2
SOURCE: Final = 3
COLUMN: Final = 4
FEATURE: Final = 5

POSE: Final = 7  # floats per body in q: r, p
MAX_COMPONENTS: Final = 32  # of all features of one constraint
