"""NURBS curves of any degree, and curves in the parameter plane of a surface.

Reads a shape's table and q; writes ``out``.  See ``_quotient.py`` for the equations.
"""

from cardan.geometry._quotient import HOMOGENEOUS, locate, retract
from cardan.geometry.tables import RETRACT, Limit, ShapeFloats, ShapeInts
from cardan.kernel.jit import evaluator
from cardan.kernel.memory import cut, tail

SCRATCH = 20  # floats of work besides the monomials


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    shape = ShapeInts(ints)
    if op == RETRACT:
        retract(ints, floats, q, step, out)
        return 0
    n = shape.degrees[0] + 1
    spans = shape.spans[0]
    breaks = ShapeFloats(floats).numbers
    O = cut(work, 0, 16)
    place = locate(breaks, spans, q[0], Limit(floats).lower, Limit(floats).period, O)
    x, h = O[0], O[1]
    C = cut(tail(breaks, spans + 1), place * n * HOMOGENEOUS, n * HOMOGENEOUS)
    X = cut(work, 16, n)
    X[0] = 1.0
    for i in range(1, n):
        X[i] = X[i - 1] * x
    factor = 1.0
    for k in range(op + 1):
        for c in range(HOMOGENEOUS):
            total = 0.0
            for i in range(k, n):
                number = 1.0
                for a in range(k):
                    number *= i - a
                total += number * X[i - k] * C[i * HOMOGENEOUS + c]
            O[k * HOMOGENEOUS + c] = total * factor
        factor *= h
    w = 1.0 / O[3]
    for c in range(3):
        s0 = O[c] * w
        out[c] = s0
        if op > 0:
            s1 = (O[4 + c] - O[7] * s0) * w
            out[3 + c] = s1
            if op > 1:
                s2 = (O[8 + c] - O[11] * s0 - 2.0 * O[7] * s1) * w
                out[6 + c] = s2
                if op > 2:
                    out[9 + c] = (O[12 + c] - O[15] * s0 - 3.0 * (O[11] * s1 + O[7] * s2)) * w
    return 0


EVALUATE = evaluator(_evaluate)
