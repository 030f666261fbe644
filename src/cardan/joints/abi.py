"""Tables of contacts that kernels read (:mod:`cardan.joints._contact`)."""

from __future__ import annotations

# operations of the solver of a pair
SOLVE, RATES = 0, 1

# table of a pair: address of the solver; address of the numbers; whether it is a point on a curve; whether rolling is
# without spin; directions of the first shape that have no end; then both shapes
SOLVER, NUMBERS, ACROSS, SPINLESS, ENDLESS, SHAPE = range(6)
EVALUATE, INTS, FLOATS, FREEDOMS, WIDTH, SAMPLES, COUNT = range(7)  # of a shape
B_PART = 7
PAIR = SHAPE + 2 * B_PART

BOUNDED, ALONG_X, ALONG_XY, ALONG_Z = range(4)  # values of ENDLESS

SIDE, SIZE, CONTINUOUS = range(3)  # numbers: ±1; [m]; whether a contact must stay near where it was
SAMPLE = 9  # floats of a sample: coordinates (3), point, normal

ADDRESS = 0  # parameter of a relation

ZERO = 1e-300  # in place of coordinates that are all zero, which are not known

FRAMES = 4  # features of both frames
PARAMETERS = 14  # of x: behind these

# status of a pair
REGULAR, FAR, DEGENERATE, EDGE, OTHER_SIDE = 0.0, 1.0, 2.0, 3.0, 4.0

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
TOP = 115  # samples (24), a moved sample (6), saved coordinates (6)
WORK = 154
