"""Enclosures of pieces of NURBS: a parallelogram with a radius, and bounds of derivatives; rigorous.

A box of the parameters inside one span, with s, t ∈ [−1, 1] on it: (A, w) = Σ Dᵢⱼ sⁱ tʲ after a
shift of the power coefficients.  Let c = A₀₀/w₀₀ and A ← A − c w.  Then, for any e₁, e₂, d,

    S − (c + d + e₁ s + e₂ t) = B/w,    B = A − (d + e₁ s + e₂ t) w.

e₁ = A₁₀/w₀₀ and e₂ = A₀₁/w₀₀ remove the linear terms of B; d = ½(B₂₀ + B₀₂)/w₀₀ halves the range of s² and t².
The radius is Σ|Bᵢⱼ|/min w, where min w is the larger of w₀₀ − Σ|wᵢⱼ| and the least weight of the control points of the
span.
Bounds of derivatives follow from those of A and w by the quotient rule.

Operations: ENCLOSE: out ← centre, e₁, e₂, radius.  DERIVATIVES: out ← bounds of |S_u|, |S_v|, …, |S_vvv|.
Reads a shape's table, q (centre), step (half widths); work has :func:`work_size` floats.
"""

from math import sqrt

from cardan._jit import cut, evaluator, inner, tail
from cardan.geometry import abi
from cardan.geometry._quotient import locate


def work_size(n, m):
    """Floats of scratch for n × m coefficients per span."""
    return 4 * n * m + 32 + 4


@inner
def shift(D, count, stride, width, x, a):
    """Coefficients of powers of s, with the local parameter x + a s, in place; ``width`` neighbours at once."""
    for low in range(count - 1):  # Horner's scheme, repeated
        for k in range(count - 1 - low):
            i = count - 2 - k
            for c in range(width):
                D[i * stride + c] += x * D[(i + 1) * stride + c]
    factor = 1.0
    for i in range(count):
        for c in range(width):
            D[i * stride + c] *= factor
        factor *= a


@inner
def length(x, y, z):
    return sqrt(x * x + y * y + z * z)


def _enclose(op, ints, floats, q, step, out, jacobian, work):
    n = ints[abi.DEGREE_U] + 1
    surface = ints[abi.FREEDOMS] == 2
    m = ints[abi.DEGREE_V] + 1 if surface else 1
    breaks = tail(floats, abi.LIMITS)
    size = 4 * n * m
    D = cut(work, 0, size)
    N = cut(work, size, 16)
    W = cut(work, size + 16, 16)
    place = 0
    pieces = 1
    rates = tail(work, size + 32)
    for i in range(ints[abi.FREEDOMS]):
        spans = ints[abi.SPANS_U + i]
        place = place * spans + locate(breaks, spans, q[i], floats[3 * i], floats[3 * i + abi.PERIOD_U], N)
        breaks = tail(breaks, spans + 1)
        pieces *= spans
        W[i] = N[0]
        rates[i] = N[1]
    C = cut(breaks, size * place, size)
    least = breaks[size * pieces + place]
    for i in range(size):
        D[i] = C[i]
    shift(D, n, 4 * m, 4 * m, W[0], rates[0] * step[0])
    if surface:
        for i in range(n):
            shift(tail(D, 4 * m * i), m, 4, 4, W[1], rates[1] * step[1])
    w0 = D[3]
    cx, cy, cz = D[0] / w0, D[1] / w0, D[2] / w0
    others = -abs(w0)
    for i in range(n * m):
        others += abs(D[4 * i + 3])
        D[4 * i] -= cx * D[4 * i + 3]
        D[4 * i + 1] -= cy * D[4 * i + 3]
        D[4 * i + 2] -= cz * D[4 * i + 3]
    least = 1.0 / max(w0 - others, least)
    if op == abi.ENCLOSE:
        one = tail(D, 4 * m)
        two = tail(D, 4)
        ex, ey, ez = one[0] / w0, one[1] / w0, one[2] / w0
        fx, fy, fz = 0.0, 0.0, 0.0
        if surface:
            fx, fy, fz = two[0] / w0, two[1] / w0, two[2] / w0
        dx, dy, dz = 0.0, 0.0, 0.0
        radius = 0.0
        for turn in range(2):  # first the terms s² and t², which give d; then all others
            for i in range(n + 1):
                for j in range(m + 1 if surface else 1):
                    square = (i == 2 and j == 0) or (i == 0 and j == 2)
                    if turn == 1 - square:
                        x, y, z, w = 0.0, 0.0, 0.0, 0.0
                        if i < n and j < m:
                            at = tail(D, 4 * (i * m + j))
                            x, y, z, w = at[0], at[1], at[2], at[3]
                        if i > 0 and j < m:
                            h = D[4 * ((i - 1) * m + j) + 3]
                            x, y, z = x - ex * h, y - ey * h, z - ez * h
                        if j > 0 and i < n:
                            h = D[4 * (i * m + j - 1) + 3]
                            x, y, z = x - fx * h, y - fy * h, z - fz * h
                        if square:
                            radius += 0.5 * length(x, y, z)
                            dx, dy, dz = dx + 0.5 * x / w0, dy + 0.5 * y / w0, dz + 0.5 * z / w0
                        elif i + j > 0:
                            radius += length(x - dx * w, y - dy * w, z - dz * w)
            if turn == 0:
                low = 0.0
                if n > 2:
                    low += abs(D[4 * 2 * m + 3])
                if m > 2:
                    low += abs(D[11])
                radius += low * length(dx, dy, dz)
        out[0], out[1], out[2] = cx + dx, cy + dy, cz + dz
        out[3], out[4], out[5] = ex, ey, ez
        out[6], out[7], out[8] = fx, fy, fz
        out[9] = radius * least
        return 0
    row = -1
    for order in range(4):
        for l in range(order + 1):
            k = order - l
            total = weight = 0.0
            if l == 0 or surface:
                for i in range(k, n):
                    for j in range(l, m):
                        factor = 1.0
                        for a in range(k):
                            factor *= (i - a) / step[0]
                        for a in range(l):
                            factor *= (j - a) / step[1]
                        at = tail(D, 4 * (i * m + j))
                        total += factor * length(at[0], at[1], at[2])
                        weight += factor * abs(at[3])
                W[4 * k + l] = weight
                for a in range(k + 1):
                    for b in range(l + 1):
                        if a + b > 0:
                            choose = 1.0
                            if 0 < a < k:
                                choose *= k  # binom(2, 1) = 2, binom(3, 1) = binom(3, 2) = 3
                            if 0 < b < l:
                                choose *= l
                            total += choose * W[4 * a + b] * N[4 * (k - a) + l - b]
            N[4 * k + l] = total * least
            if row >= 0:
                out[row] = N[4 * k + l]
            row += 1
    return 0


ENCLOSE = evaluator(_enclose)
