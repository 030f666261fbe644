"""Tables of shapes that kernels read, and the operations of their evaluators.

A shape is a table of integers (HEADER fields), a table of floats (LIMITS fields, then numbers of its kind) and the
address of an evaluator of the fixed ABI: ``evaluate(op, ints, floats, q, step, out, jacobian, work)``.

========== ==========================================================================================================
op 0 … 3   out ← S and its derivatives up to that order at q, rows of three numbers in the order of ROWS; with one
           parameter S, S', S'', S'''.  ``work`` has ints[WORK] floats.
RETRACT    out ← q ⊕ step, within the bounds; ``step`` has ints[FREEDOMS] numbers, q and out ints[WIDTH]
========== ==========================================================================================================

Derivatives are with respect to the step: S(q ⊕ (u, v)) at u = v = 0.  For most shapes q = (u, v) and ⊕ is +.  Spheres
have q = m, a unit vector: no poles and no seams.
"""

from __future__ import annotations

from typing import Final

import numpy as np

# ints
FREEDOMS, WIDTH, DEGREE_U, DEGREE_V, SPANS_U, SPANS_V, KIND, WORK = range(8)
HEADER = 8

# floats: bounds [parameter] and periods (0: not periodic) of both parameters
LOWER_U, UPPER_U, PERIOD_U, LOWER_V, UPPER_V, PERIOD_V = range(6)
LIMITS = 6

RETRACT = np.int64(8)
ENCLOSE, DERIVATIVES = np.int64(0), np.int64(1)  # operations of enclosures (_enclose.py, _taylor.py)

# rows of three numbers in out, for two parameters
S, S_U, S_V, S_UU, S_UV, S_VV, S_UUU, S_UUV, S_UVV, S_VVV = range(10)
ROWS: Final = (1, 3, 6, 10)  # number of rows up to each order

# kinds of closed forms
POINT, LINE, CIRCLE, PLANE, SPHERE, CYLINDER, CONE, TORUS = range(8)

# bounds of |∂S/∂u|, |∂S/∂v|, |∂²S/∂u²|, … on a root of the search
BOUNDS = 9

# A tree: the search structure of one shape.  Each patch is smooth (two continuous derivatives) and has an evaluator of
# its own; roots are boxes of its parameters.
P_EVALUATOR, P_INTS, P_FLOATS, P_FREEDOMS, P_ENCLOSE, P_LOOPS = range(6)
# number of its roots; for those that are spans of a NURBS the first span in u and in v, and the number in v, else 0
P_ROOTS, P_FIRST_U, P_FIRST_V, P_ACROSS, P_TRIM = range(6, 11)
PATCH = 11
BOX_STATE, IS_INSIDE = np.int64(0), np.int64(1)  # operations of the function at P_TRIM, with the loops of a face
CHAIN = 6  # floats of a chain of segments of a loop
P_LIMITS = 6  # floats of a patch: bounds and period of both parameters, as LIMITS
N_PATCH, N_ROOT, N_CHILD, N_STATE = range(4)  # integers of a node
NODE_INTS = 4
INSIDE, CROSSING, OUTSIDE = range(3)  # states of a node of a trimmed face
# floats of a node: centre, two half edges, radius, box u₀ u₁ v₀ v₁, size
N_CENTER, N_EDGE_1, N_EDGE_2, N_RADIUS, N_BOX, N_SIZE = 0, 3, 6, 9, 10, 14
NODE = 15

# fields of a tree in a job: addresses, then numbers
T_PATCHES, T_LIMITS, T_NODES, T_BOXES, T_BOUNDS, T_COUNT, T_CAPACITY, T_ROOTS = range(8)
TREE = 8

# A job: the trees of both shapes, then these
J_MOVED, J_STAMPS, J_HEAP, J_ROOM, J_BALLS, J_WORK, J_STATE, J_EXCLUDE = range(2 * TREE, 2 * TREE + 8)
JOB = 2 * TREE + 8
MOVED = 10  # floats of a node of b in the axes of a: centre, two half edges, radius
ENTRY = 4  # floats of a pair in the heap: lower bound, size at which its line was polished last, node of a, node of b
BALL = 12  # floats of a ball: patch a, patch b, x (4), σ (4), ρ, D
BALLS = 256

# options and results of a search
O_TOLERANCE, O_BUDGET, O_MODE, O_CUT, O_TICK, O_DISTANCE, O_LOWER, O_RADIUS, O_PATCH_A, O_PATCH_B = range(10)
O_PAIRS, O_POLISHES, O_ITERATIONS, O_BALLS = range(10, 14)
O_POINT_A, O_POINT_B = 14, 17  # points of the pair, in the axes of a
O_LIMIT = 20  # pairs of boxes that are not closer than this are discarded
OPTIONS = 21
COLD, WARM, LOCAL, ALL = range(4)  # modes
POSE = 7  # numbers of a pose: x, y, z, then the quaternion w, x, y, z
# The state of a search: parameters (u¹, v¹, u², v²), the pose of b relative to a, options and results
S_X, S_POSE, S_OPTIONS = 0, 4, 4 + POSE
STATE = S_OPTIONS + OPTIONS
FOUND, NODES_FULL, HEAP_FULL, BUDGET = range(4)  # status
