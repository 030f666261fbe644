"""Layout of the packed tables that evaluators read, as plain numbers (kernels inline them).

Integers:

====== ===========================================================================================================
header BODIES CONSTRAINTS ROWS_TOTAL BLOCKS ANGLES ANGLE_TABLE WIDEST TALLEST
       VARIABLES FREE VARIABLE_TABLE EXTRAS EXPAND EXPANDED TRACK
record one per constraint: CODE ROW ROWS BLOCK PAR FEATURES SLOTS COMPONENTS NEXT EXTRA WIDE LINKS,
       then SLOTS body numbers (the movable bodies that it depends on, ascending),
       then per feature KIND BODY SLOT SOURCE COLUMN (BODY, SLOT = −1 on the ground)
table  of variables, where there are some: T_NODES T_OUTPUTS T_TANGENTS T_FLOATS, the nodes (NODE integers: operation
       and two earlier nodes, or a place in the floats or among the variables), the outputs (OUTPUT: node, place in
       the floats, place of the shift), the nodes of the tangents; then, at LINKS of a constraint, its WIDE free
       variables, a count, and per count LINK integers: feature, column among these variables, place of the tangent
angles one per angle whose whole turns are counted: ANGLE_A ANGLE_B (bodies) ANGLE_SOURCE
codes  in the table of a motion problem only: per constraint the code or address of its curvature ẋᵀ f_xx ẋ
====== ===========================================================================================================

Floats: parameters at PAR, local coordinates of features at SOURCE; of a counted angle x, y of body a and v of body b,
nine floats.

CODE is a primitive's code in a system's own table; in the table of a problem it is an address for all but the inline
primitives.  A feature of KIND ANGLE has the number of its counted angle as SOURCE.  A contact coordinate is such a
feature whose SLOT is TRACKED.

Coordinates q: POSE floats per body, then the variables, of which the first FREE are unknowns, then the counted angles:
their values when last accepted, whole turns included.

A Jacobian block of a constraint has ROWS × (SLOTS·width + WIDE) entries, row by row, from BLOCK·width + EXTRA on, where
width is the number of unknowns per body in the formulation: one table serves all formulations.

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
VARIABLES: Final = 8  # scalars behind the poses in q
FREE: Final = 9  # of these, unknowns
VARIABLE_TABLE: Final = 10
EXTRAS: Final = 11  # Σ rows × free variables
EXPAND: Final = 12  # address of the kernel that evaluates formulas; in the table of a problem only
EXPANDED: Final = 13  # floats that this kernel writes
TRACK: Final = 14  # address of the kernel that follows contact coordinates, or zero; in the table of a problem only
HEADER: Final = 15

# record
CODE, ROW, ROWS, BLOCK, PAR, FEATURES, SLOTS, COMPONENTS, NEXT, EXTRA, WIDE, LINKS, RECORD = range(13)

# feature
KIND, BODY, SLOT, SOURCE, COLUMN, FEATURE = range(6)

POINT: Final = 0  # values of KIND
ORIENTATION: Final = 2
ANGLE: Final = 3
SCALAR: Final = 4
TIMED: Final = 5  # a number that is a function of time: its value, rate and acceleration

TRACKED: Final = -2  # SLOT of a contact coordinate

# table of variables
T_NODES, T_OUTPUTS, T_TANGENTS, T_FLOATS, TABLE = range(5)
NODE: Final = 3
OUTPUT: Final = 3
L_FEATURE, L_COLUMN, L_TANGENT, LINK = range(4)

# counted angle
ANGLE_A, ANGLE_B, ANGLE_SOURCE, ANGLE_RECORD = range(4)

POSE: Final = 7  # floats per body in q: r, p

MATRIX: Final = 9  # floats of a rotation matrix, row by row

# rotation of a joint in a spanning tree: none, one angle, two of a cross, four Euler parameters; or a motion of the
# user's own, whose coordinates all count as translations
STILL, ABOUT_Z, CROSSED, ANYHOW, BY_USER = range(5)
