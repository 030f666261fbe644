"""Enclosures of pieces of smooth shapes from bounds of their derivatives on a root (``jacobian``), by Taylor's theorem.

A box of the parameters with centre x_c and half widths α, β lies within a radius of c ± S_u α ± S_v β, where
c = S + ¼(S_uu α² + S_vv β²) and

    radius = ¼|S_uu| α² + ¼|S_vv| β² + |S_uv| α β + (B_uuu α³ + 3 B_uuv α² β + 3 B_uvv α β² + B_vvv β³)/6.

The evaluator of the shape is called at the address behind its integers.
"""

from math import sqrt

from cardan.geometry import tables
from cardan.geometry.tables import BOUNDS, RETRACT, Enclosure, ShapeInts
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import call_evaluator, cut, tail

ORDER = RETRACT - 6  # 2, as an integer that is not a literal


@inner
def length(a):
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


def _enclose(op, ints, floats, q, step, out, jacobian, work):
    if op != tables.ENCLOSE:
        for i in range(BOUNDS):
            out[i] = jacobian[i]
        return 0
    shape = ShapeInts(ints)
    S = cut(work, 0, 18)
    call_evaluator(shape.more[0], ORDER, ints, floats, q, q, S, S, tail(work, 18))
    a, b = step[0], 0.0
    freedoms = shape.freedoms
    enclosure = Enclosure(out)
    for c in range(3):
        enclosure.center[c] = S[c]
        enclosure.edge_u[c] = 0.0
        enclosure.edge_v[c] = 0.0
    B = jacobian
    radius = 0.0
    if freedoms == 1:
        for c in range(3):
            enclosure.center[c] += 0.25 * a * a * S[6 + c]
            enclosure.edge_u[c] = a * S[3 + c]
        radius = 0.25 * a * a * length(tail(S, 6)) + a * a * a * B[5] / 6.0
    elif freedoms == 2:
        b = step[1]
        for c in range(3):
            enclosure.center[c] += 0.25 * (a * a * S[9 + c] + b * b * S[15 + c])
            enclosure.edge_u[c] = a * S[3 + c]
            enclosure.edge_v[c] = b * S[6 + c]
        radius = 0.25 * (a * a * length(tail(S, 9)) + b * b * length(tail(S, 15))) + a * b * length(tail(S, 12))
        radius += (a * a * (a * B[5] + 3.0 * b * B[6]) + b * b * (3.0 * a * B[7] + b * B[8])) / 6.0
    enclosure.radius = radius
    return 0


ENCLOSE = evaluator(_enclose)
