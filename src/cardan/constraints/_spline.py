"""Piecewise polynomials: S(x) = Σ_k a_k (x − x_i)^(d − k) on the piece x_i ≤ x < x_(i+1), of degree d.

Reads a table (``SplineTable``).  Beyond the ends the first and the last polynomial continue.
"""

from math import floor

from cardan.constraints.tables import SplineTable
from cardan.kernel.jit import inner
from cardan.kernel.memory import tail


@inner
def spline(table, order, x):
    """The derivative of S of an order (0, 1, 2) at x."""
    table = SplineTable(table)
    pieces = int(table.pieces)
    degree = int(table.degree)
    period = table.period
    breaks = table.breaks
    if period > 0.0:
        x = x - period * floor((x - breaks[0]) / period)
    low = 0
    high = pieces
    while high - low > 1:
        middle = (low + high) // 2
        if x >= breaks[middle]:
            low = middle
        else:
            high = middle
    s = x - breaks[low]
    coefficients = tail(breaks, pieces + 1 + low * (degree + 1))
    value = 0.0
    for k in range(degree + 1 - order):
        power = degree - k
        factor = 1.0
        if order >= 1:
            factor = factor * power
        if order >= 2:
            factor = factor * (power - 1)
        value = value * s + factor * coefficients[k]
    return value
