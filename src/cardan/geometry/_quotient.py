"""Operations that all evaluators of NURBS share: the span of a parameter, the retraction, the quotient rule.

Each span holds power coefficients of the homogeneous point (w S, w) in a centred local parameter
x = (u − u₀)/h − ½ ∈ [−½, ½].  With A = w S ([Piegl1997] 4.5):

    A(x, y) = Σᵢⱼ Cᵢⱼ xⁱ yʲ,    w ∂ᵏS = ∂ᵏA − Σ_{0<a≤k} binom(k, a) ∂ᵃw ∂ᵏ⁻ᵃS
"""

from math import floor

from cardan.geometry.tables import Limit, ShapeInts
from cardan.kernel.jit import inner

HOMOGENEOUS = 4


@inner
def locate(breaks, spans, u, lower, period, x):
    """x ← (local parameter, 1/h) of u; returns its span: that of equal spans if u is in it, else found by bisection."""
    if period > 0.0:
        u -= period * floor((u - lower) / period)
    low = int((u - breaks[0]) * spans / (breaks[spans] - breaks[0]))
    low = min(max(low, 0), spans - 1)
    if not (breaks[low] <= u < breaks[low + 1]):
        low = 0
        high = spans
        while high - low > 1:
            middle = (low + high) >> 1
            if u >= breaks[middle]:
                low = middle
            else:
                high = middle
    h = 1.0 / (breaks[low + 1] - breaks[low])
    x[0] = (u - breaks[low]) * h - 0.5
    x[1] = h
    return low


@inner
def retract(ints, floats, q, step, out):
    """out ← q + step within the bounds; periodic parameters are not wrapped, so that they are continuous."""
    for i in range(ShapeInts(ints).freedoms):
        u = q[i] + step[i]
        if Limit(floats, i).period == 0.0:
            u = min(max(u, Limit(floats, i).lower), Limit(floats, i).upper)
        out[i] = u


@inner
def divide(O, out, order):
    """out ← derivatives of A/w from those of (A, w), in the order of ROWS."""
    w = 1.0 / O[3]
    for c in range(3):
        out[c] = O[c] * w
    if order > 0:
        wu = O[7]
        wv = O[11]
        for c in range(3):
            out[3 + c] = (O[4 + c] - wu * out[c]) * w
            out[6 + c] = (O[8 + c] - wv * out[c]) * w
        if order > 1:
            wuu, wuv, wvv = O[15], O[19], O[23]
            for c in range(3):
                s, u, v = out[c], out[3 + c], out[6 + c]
                out[9 + c] = (O[12 + c] - wuu * s - 2.0 * wu * u) * w
                out[12 + c] = (O[16 + c] - wuv * s - wu * v - wv * u) * w
                out[15 + c] = (O[20 + c] - wvv * s - 2.0 * wv * v) * w
            if order > 2:
                for c in range(3):
                    s, u, v, uu, uv, vv = out[c], out[3 + c], out[6 + c], out[9 + c], out[12 + c], out[15 + c]
                    out[18 + c] = (O[24 + c] - O[27] * s - 3.0 * (wuu * u + wu * uu)) * w
                    out[21 + c] = (O[28 + c] - O[31] * s - 2.0 * (wuv * u + wu * uv) - wuu * v - wv * uu) * w
                    out[24 + c] = (O[32 + c] - O[35] * s - 2.0 * (wuv * v + wv * uv) - wvv * u - wu * vv) * w
                    out[27 + c] = (O[36 + c] - O[39] * s - 3.0 * (wvv * v + wv * vv)) * w
