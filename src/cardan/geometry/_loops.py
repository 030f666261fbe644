"""Packed loops of a trimmed face in the parameter plane.

Reads the packed loops (:class:`.tables.Loops`).
"""

from cardan.geometry.tables import Chain, Loops
from cardan.kernel.jit import inner
from cardan.kernel.memory import tail


@inner
def is_inside(loops, u, v):
    """Whether (u, v) is inside the loops: the number of crossings of a ray is odd."""
    odd = False
    packed = Loops(loops)
    for k in range(int(packed.count)):
        chain = Chain(packed.chains, k)
        if chain.low_v <= v <= chain.high_v and u <= chain.high_u:
            at = tail(loops, int(chain.first))
            n = int(chain.count)
            if u < chain.low_u:  # all crossings count: their parity follows from the ends
                odd = odd != ((at[1] > v) != (at[2 * n + 1] > v))
            else:
                for _ in range(n):
                    if (at[1] > v) != (at[3] > v) and u < at[0] + (v - at[1]) * (at[2] - at[0]) / (at[3] - at[1]):
                        odd = not odd
                    at = tail(at, 2)
    return odd
