"""Boxes and points of the parameters of a trimmed face against its loops; compiled only where there is one.

BOX_STATE: returns INSIDE, CROSSING or OUTSIDE of the box q = u₀ u₁ v₀ v₁.  IS_INSIDE: returns 1 if the point q = (u, v)
is inside.  Reads the packed loops in ``floats`` (``_loops.py``).
"""

from cardan.geometry._loops import is_inside
from cardan.geometry.tables import BOX_STATE, CROSSING, INSIDE, OUTSIDE, Chain, Loops
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail


@inner
def meets(at, box):
    """Whether the segment from at[0:2] to at[2:4] meets a box."""
    t0, t1 = 0.0, 1.0
    for i in range(2):
        a = at[i]
        d = at[2 + i] - a
        if d == 0.0:
            if a < box[2 * i] or a > box[2 * i + 1]:
                return False
        else:
            p, q = (box[2 * i] - a) / d, (box[2 * i + 1] - a) / d
            t0 = max(t0, min(p, q))
            t1 = min(t1, max(p, q))
    return t0 <= t1


@inner
def state_of(loops, box):
    """INSIDE, CROSSING or OUTSIDE: the box against the loops."""
    packed = Loops(loops)
    for k in range(int(packed.count)):
        chain = Chain(packed.chains, k)
        beside = chain.low_u > box[1] or chain.high_u < box[0] or chain.low_v > box[3] or chain.high_v < box[2]
        if not beside:
            at = tail(loops, int(chain.first))
            for _ in range(int(chain.count)):
                if meets(at, box):
                    return CROSSING
                at = tail(at, 2)
    return INSIDE if is_inside(loops, 0.5 * (box[0] + box[1]), 0.5 * (box[2] + box[3])) else OUTSIDE


def _trim(op, ints, floats, q, step, out, jacobian, work):
    if op == BOX_STATE:
        return state_of(floats, q)
    return 1 if is_inside(floats, q[0], q[1]) else 0


TRIM = evaluator(_trim)
