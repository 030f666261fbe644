"""Tables of contacts that kernels read (:mod:`cardan.joints._contact`)."""

from __future__ import annotations

# operations of the solver of a pair; the last two: rolling by closest points
SOLVE, RATES, JUDGE, ROLL, ROLL_RATES = range(5)

# table of a pair: address of the solver; address of the numbers; the equations of the pair; whether rolling is without
# spin; directions of the first shape that have no end; then both shapes
SOLVER, NUMBERS, FORM, SPINLESS, ENDLESS, SHAPE = range(6)
EVALUATE, INTS, FLOATS, FREEDOMS, WIDTH, SAMPLES, COUNT, LOOPS = range(8)  # of a shape; LOOPS: 0 if it is not trimmed
B_PART = 8
PATH = SHAPE + 2 * B_PART  # behind both shapes: address of the moving frame of a path, or 0

TANGENT, ON_CURVE, CROSSED = range(3)  # values of FORM: common normal; a point on a curve; curves that cross in space
BOUNDED, ALONG_X, ALONG_XY, ALONG_Z = range(4)  # values of ENDLESS

SIDE, SIZE, CONTINUOUS = range(3)  # numbers: ±1; [m]; whether a contact must stay near where it was
SAMPLE = 11  # floats of a sample: coordinates (3), point, normal, least and largest curvature (+: away from the normal)
LEAST_BENT, MOST_BENT = 9, 10  # −, + infinite: no contact is to be made there

ADDRESS = 0  # parameter of a relation

ZERO = 1e-300  # in place of coordinates that are all zero, which are not known

FRAMES = 4  # features of both frames
PARAMETERS = 14  # of x: behind these

# status of a pair, a float in the workspace; :class:`cardan.joints.contacts.ContactStatus` names them
(REGULAR, FAR, DEGENERATE, EDGE, OTHER_SIDE, TRIMMED, CROSSING, JUMPED, LOST, AIMED) = (
    0.0,
    1.0,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    7.0,
    8.0,
    9.0,
)

# workspace behind x
FRAME = 0  # R (9), d (3), R_a (9)
ROWS_A = 21
ROWS_B = 39
NORMAL = 57
UNIT = 66
MATRIX = 69
GAP = 89
STATUS = 90
STEP = 91  # step (4), 1/|T| (4)
HELD = 99
LATEST = 103  # u, Ω; or axes (12)
TOP = 115  # samples (24), a moved sample (6), saved coordinates (6), the aim (3)
LEAST = 154  # the least relative curvature, and the sum of the largest of both shapes; times SIZE
MOST = 155
MOVING = 156  # of a path: the following, 22 floats
FIRST, TURNING, BENDING, RELATIVE, SPARE_MOVING = 0, 4, 7, 10, 14  # e (4), k (3), k' (3), q (4), spare (8)
WORK = 178

# moving frame of a path: number of spans, period of the parameter or 0, angle about the tangent after a period; then
# the breaks, and per span the coefficients of e from the highest power on
SPANS, PERIOD, TWIST, BREAKS = range(4)
DEGREE = 9
