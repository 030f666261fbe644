"""Calls of evaluators from Python: one point, or many.

A table has addresses: evaluator, ints, floats.  ``work`` is the address of the scratch of one thread.  In front of it
are the parameters of one point, the size of the scratch, and the rows of that point.
"""

from cardan.geometry.tables import Limit, ShapeInts, ShapeTable
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import call_evaluator, floats_at, integers_at, pointer, tail

QS = 4  # floats of the scratch in front: the parameters of one point (2), the size of the scratch, one spare
OUT = 30  # floats that follow, for its rows
DONE, OUTSIDE, UNPREPARED = range(3)  # what a call found: bad parameters; no table yet, a bad order, a small scratch


@inner
def is_outside(ints, floats, q):
    """Whether a parameter is outside its bounds, or no number; spheres have coordinates without bounds."""
    shape = ShapeInts(ints)
    for i in range(shape.freedoms):
        limit = Limit(floats, i)
        if not (limit.lower <= q[i] <= limit.upper or (limit.period > 0.0 and q[i] == q[i])):
            return shape.width == shape.freedoms
    return False


@jit
def evaluate_one(table, order, u, v, scratch):
    """Rows up to that order at (u, v), behind the parameters in the scratch; returns DONE or why there are none."""
    if table == 0 or order < 0 or order > 3:
        return UNPREPARED
    table = ShapeTable(integers_at(table))
    q = floats_at(scratch)
    q[0] = u
    q[1] = v
    ints, floats = table.ints, table.floats
    if q[2] < QS + OUT + ShapeInts(ints).work:
        return UNPREPARED
    if is_outside(ints, floats, q):
        return OUTSIDE
    out = tail(q, QS)
    call_evaluator(table.evaluator, order, ints, floats, q, q, out, out, tail(q, QS + OUT))
    return DONE


@jit
def evaluate_many(table, order, q, step, out, work):
    """out[k] ← rows up to that order at q[k]; step: floats per point in q and in out, the number of points, and 1
    to check their parameters.  Returns the first point with a parameter outside its bounds, or −1.
    """
    table = ShapeTable(integers_at(table))
    ints = table.ints
    floats = table.floats
    work = floats_at(work)
    q = pointer(q)
    out = pointer(out)
    for k in range(step[2]):
        if step[3] != 0 and is_outside(ints, floats, q):
            return k
        call_evaluator(table.evaluator, order, ints, floats, q, q, out, out, work)
        q = tail(q, step[0])
        out = tail(out, step[1])
    return -1
