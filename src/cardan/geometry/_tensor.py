"""Surfaces of any degree.  Reads a shape's table and q; writes ``out``; ``work`` has :func:`work_size` floats."""

from cardan.geometry._quotient import HOMOGENEOUS, divide, locate, retract
from cardan.geometry.tables import RETRACT, Limit, ShapeFloats, ShapeInts
from cardan.kernel.jit import evaluator
from cardan.kernel.memory import cut, tail


def work_size(n, m):
    """Floats of scratch for n × m coefficients per span."""
    return 40 + 4 * n + 4 * m + 4 * m * HOMOGENEOUS


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    shape = ShapeInts(ints)
    if op == RETRACT:
        retract(ints, floats, q, step, out)
        return 0
    breaks = ShapeFloats(floats).numbers
    O = cut(work, 0, 40)
    n = shape.degrees[0] + 1
    m = shape.degrees[1] + 1
    width = m * HOMOGENEOUS
    X = cut(work, 40, 4 * n)
    Y = cut(work, 40 + 4 * n, 4 * m)
    A = cut(work, 40 + 4 * n + 4 * m, 4 * width)
    place = 0
    at = X
    for i in range(2):
        spans = shape.spans[i]
        place = place * spans + locate(breaks, spans, q[i], Limit(floats, i).lower, Limit(floats, i).period, O)
        breaks = tail(breaks, spans + 1)
        terms = shape.degrees[i] + 1
        at[0] = 1.0
        for k in range(1, terms):
            at[k] = at[k - 1] * O[0]
        for k in range(1, op + 1):  # the k-th derivative of (1, x, x², …)
            at[k * terms] = 0.0
            for j in range(1, terms):
                at[k * terms + j] = j * O[1] * at[(k - 1) * terms + j - 1]
        at = Y
    C = cut(breaks, n * width * place, n * width)
    for k in range(op + 1):
        for j in range(width):
            total = 0.0
            for i in range(n):
                total += X[k * n + i] * C[i * width + j]
            A[k * width + j] = total
    row = 0
    for order in range(op + 1):
        for l in range(order + 1):
            a = tail(A, width * (order - l))
            for c in range(HOMOGENEOUS):
                total = 0.0
                for j in range(m):
                    total += Y[l * m + j] * a[j * HOMOGENEOUS + c]
                O[row * HOMOGENEOUS + c] = total
            row += 1
    divide(O, out, op)
    return 0


EVALUATE = evaluator(_evaluate)
