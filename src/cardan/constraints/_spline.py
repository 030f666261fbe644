"""Piecewise polynomials: S(x) = Σ_k a_k (x − x_i)^(d − k) on the piece x_i ≤ x < x_(i+1), of degree d.

Reads a table (``spline.Spline``): the number of pieces, the degree d, the period (0: none), the breakpoints, and for
each piece its coefficients a_0 … a_d.  Beyond the ends the first and the last polynomial continue.
"""

from math import floor

from cardan.kernel.jit import inner


@inner
def spline(table, order, x):
    """The derivative of S of an order (0, 1, 2) at x."""
    pieces = int(table[0])
    degree = int(table[1])
    period = table[2]
    first = table[3]
    if period > 0.0:
        x = x - period * floor((x - first) / period)
    low = 0
    high = pieces
    while high - low > 1:
        middle = (low + high) // 2
        if x >= table[3 + middle]:
            low = middle
        else:
            high = middle
    s = x - table[3 + low]
    at = 4 + pieces + low * (degree + 1)
    value = 0.0
    for k in range(degree + 1 - order):
        power = degree - k
        factor = 1.0
        if order >= 1:
            factor = factor * power
        if order >= 2:
            factor = factor * (power - 1)
        value = value * s + factor * table[at + k]
    return value
