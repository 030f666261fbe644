"""Calls of evaluators from Python: one point, or many.

A table has addresses: evaluator, ints, floats.  ``work`` is the address of the scratch of one thread.
"""

from cardan._jit import call_evaluator, floats_at, integers_at, jit, pointer, tail
from cardan.geometry import abi

QS = 4  # floats of work in front, for the parameters of one point


@jit
def evaluate_one(table, order, u, v, out, work):
    """out ← rows up to that order at (u, v); returns 1 if a parameter is outside its bounds."""
    table = integers_at(table)
    q = floats_at(work)
    q[0] = u
    q[1] = v
    ints, floats = integers_at(table[1]), floats_at(table[2])
    for i in range(ints[abi.FREEDOMS]):
        if not (floats[3 * i] <= q[i] <= floats[3 * i + 1] or (floats[3 * i + abi.PERIOD_U] > 0.0 and q[i] == q[i])):
            return 1
    out = pointer(out)
    return call_evaluator(table[0], order, ints, floats, q, q, out, out, tail(q, QS))


@jit
def evaluate_many(table, order, q, step, out, work):
    """out[k] ← rows up to that order at q[k]; step: floats per point in q and in out, and the number of points."""
    table = integers_at(table)
    ints = integers_at(table[1])
    floats = floats_at(table[2])
    work = floats_at(work)
    q = pointer(q)
    out = pointer(out)
    for _ in range(step[2]):
        call_evaluator(table[0], order, ints, floats, q, q, out, out, work)
        q = tail(q, step[0])
        out = tail(out, step[1])
    return 0
