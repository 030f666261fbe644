"""Surfaces of degree up to three in both directions; lower degrees are padded with zero coefficients.

Reads a shape's table and q; writes ``out``; ``work`` has 136 floats.  See ``_quotient.py`` for the equations.
"""

from cardan.geometry._quotient import divide, locate, retract
from cardan.geometry.tables import RETRACT, Limit, ShapeFloats, ShapeInts
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail

WORK = 136


@inner
def powers(x, h, X):
    """Rows k of X ← ∂ᵏ(1, x, x², x³)/∂uᵏ, where dx/du = h."""
    X[0], X[1], X[2], X[3] = 1.0, x, x * x, x * x * x
    X[4], X[5], X[6], X[7] = 0.0, h, 2.0 * h * x, 3.0 * h * x * x
    X[8], X[9], X[10], X[11] = 0.0, 0.0, 2.0 * h * h, 6.0 * h * h * x
    X[12], X[13], X[14], X[15] = 0.0, 0.0, 0.0, 6.0 * h * h * h


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    shape = ShapeInts(ints)
    if op == RETRACT:
        retract(ints, floats, q, step, out)
        return 0
    breaks = ShapeFloats(floats).numbers
    X = cut(work, 40, 32)
    Y = cut(work, 56, 16)
    A = cut(work, 72, 64)
    O = cut(work, 0, 40)
    place = 0
    for i in range(2):
        spans = shape.spans[i]
        place = place * spans + locate(breaks, spans, q[i], Limit(floats, i).lower, Limit(floats, i).period, O)
        powers(O[0], O[1], tail(X, 16 * i))
        breaks = tail(breaks, spans + 1)
    C = cut(breaks, 64 * place, 64)
    for k in range(op + 1):
        a = cut(A, 16 * k, 16)
        x0, x1, x2, x3 = X[4 * k], X[4 * k + 1], X[4 * k + 2], X[4 * k + 3]
        for j in range(16):
            a[j] = x0 * C[j] + x1 * C[16 + j] + x2 * C[32 + j] + x3 * C[48 + j]
    row = 0
    for order in range(op + 1):
        for l in range(order + 1):
            a = cut(A, 16 * (order - l), 16)
            o = cut(O, 4 * row, 4)
            y0, y1, y2, y3 = Y[4 * l], Y[4 * l + 1], Y[4 * l + 2], Y[4 * l + 3]
            for c in range(4):
                o[c] = y0 * a[c] + y1 * a[4 + c] + y2 * a[8 + c] + y3 * a[12 + c]
            row += 1
    divide(O, out, op)
    return 0


EVALUATE = evaluator(_evaluate)
