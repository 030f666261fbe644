"""Packed loops of a trimmed face in the parameter plane.

Number of chains; per chain CHAIN floats: lower and upper bound of u, of v, offset of its points, number of its
segments; then the points.
"""

from cardan.geometry.abi import CHAIN
from cardan.kernel.jit import inner
from cardan.kernel.memory import piece, tail

chain_of = piece(CHAIN, 1, CHAIN)  # (loops, k)


@inner
def is_inside(loops, u, v):
    """Whether (u, v) is inside the loops: the number of crossings of a ray is odd."""
    odd = False
    for k in range(int(loops[0])):
        chain = chain_of(loops, k)
        if chain[2] <= v <= chain[3] and u <= chain[1]:
            at = tail(loops, int(chain[4]))
            n = int(chain[5])
            if u < chain[0]:  # all crossings count: their parity follows from the ends
                odd = odd != ((at[1] > v) != (at[2 * n + 1] > v))
            else:
                for _ in range(n):
                    if (at[1] > v) != (at[3] > v) and u < at[0] + (v - at[1]) * (at[2] - at[0]) / (at[3] - at[1]):
                        odd = not odd
                    at = tail(at, 2)
    return odd
