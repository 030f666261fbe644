"""Layout of the packed tables that evaluators read, as plain numbers (kernels inline them).

Integers:

====== ===========================================================================================================
header BODIES CONSTRAINTS ROWS_TOTAL BLOCKS ANGLES ANGLE_TABLE WIDEST TALLEST
record one per constraint: CODE ROW ROWS BLOCK PAR FEATURES SLOTS COMPONENTS NEXT,
       then SLOTS body numbers (the movable bodies that it depends on, ascending),
       then per feature KIND BODY SLOT SOURCE COLUMN (BODY, SLOT = −1 on the ground)
angles one per angle whose whole turns are counted: ANGLE_A ANGLE_B (bodies) ANGLE_SOURCE
codes  in the table of a motion problem only: per constraint the code or address of its curvature ẋᵀ f_xx ẋ
====== ===========================================================================================================

Floats: parameters at PAR, local coordinates of features at SOURCE; of a counted angle x, y of body a and v of body b,
nine floats.

CODE is a primitive's code in a system's own table; in the table of a problem it is an address for all but the inline
primitives.  A feature of KIND ANGLE has the number of its counted angle as SOURCE.

Coordinates q: POSE floats per body, then the counted angles: their values when last accepted, whole turns included.

A Jacobian block of a constraint has ROWS × SLOTS·width entries, row by row, from BLOCK·width on, where width is the
number of unknowns per body in the formulation: one table serves all formulations.

Before packing, a record is a template: CODE 0 ROWS 0 FLOATS FEATURES SLOTS COMPONENTS SIZE, with serial numbers of
bodies and counted angles for their numbers, and SOURCE counted from the record's own first float.

Kernels of the formulations read these tables through :mod:`cardan.coordinates._records`.
"""

from __future__ import annotations

from typing import Final

BODIES: Final = 0  # header
CONSTRAINTS: Final = 1
ROWS_TOTAL: Final = 2
BLOCKS: Final = 3  # Σ rows × slots
ANGLES: Final = 4
ANGLE_TABLE: Final = 5
WIDEST: Final = 6  # components of a constraint, at the most
TALLEST: Final = 7  # rows of a constraint, at the most
HEADER: Final = 8

# record
CODE, ROW, ROWS, BLOCK, PAR, FEATURES, SLOTS, COMPONENTS, NEXT, RECORD = range(10)

# feature
KIND, BODY, SLOT, SOURCE, COLUMN, FEATURE = range(6)

POINT: Final = 0  # values of KIND
ORIENTATION: Final = 2
ANGLE: Final = 3

# counted angle
ANGLE_A, ANGLE_B, ANGLE_SOURCE, ANGLE_RECORD = range(4)

POSE: Final = 7  # floats per body in q: r, p

MATRIX: Final = 9  # floats of a rotation matrix, row by row

# rotation of a joint in a spanning tree: none, one angle, two of a cross, four Euler parameters
STILL, ABOUT_Z, CROSSED, ANYHOW = range(4)
