"""Curves on a surface: S(c(t)), where c is a curve in the parameter plane of S; derivatives by the chain rule.

The integers end with the address of this evaluator, then addresses of evaluator, ints, floats of S and of c.
Reads a shape's table and q; writes ``out``; scratch: rows of S (30) and of c (12), then that of their evaluators.
"""

from cardan.geometry._quotient import retract
from cardan.geometry.tables import RETRACT, ShapeInts, ShapeTable
from cardan.kernel.jit import evaluator
from cardan.kernel.memory import call_evaluator, cut, tail

SCRATCH = 42


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    if op == RETRACT:
        retract(ints, floats, q, step, out)
        return 0
    S = cut(work, 0, 30)
    c = cut(work, 30, 12)
    rest = tail(work, SCRATCH)
    tables = tail(ShapeInts(ints).more, 1)  # behind the address of this evaluator
    surface, curve = ShapeTable(tables, 0), ShapeTable(tables, 1)
    call_evaluator(curve.evaluator, op, curve.ints, curve.floats, q, q, c, c, rest)
    call_evaluator(surface.evaluator, op, surface.ints, surface.floats, c, c, S, S, rest)
    u1, v1, u2, v2, u3, v3 = c[3], c[4], c[6], c[7], c[9], c[10]
    for k in range(3):
        out[k] = S[k]
        if op > 0:
            out[3 + k] = S[3 + k] * u1 + S[6 + k] * v1
        if op > 1:
            second = S[9 + k] * u1 * u1 + 2.0 * S[12 + k] * u1 * v1 + S[15 + k] * v1 * v1
            out[6 + k] = second + S[3 + k] * u2 + S[6 + k] * v2
        if op > 2:
            third = S[18 + k] * u1 * u1 * u1 + 3.0 * u1 * v1 * (S[21 + k] * u1 + S[24 + k] * v1)
            third += S[27 + k] * v1 * v1 * v1 + 3.0 * (S[9 + k] * u1 * u2 + S[15 + k] * v1 * v2)
            third += 3.0 * S[12 + k] * (u1 * v2 + v1 * u2)
            out[9 + k] = third + S[3 + k] * u3 + S[6 + k] * v3
    return 0


EVALUATE = evaluator(_evaluate)
