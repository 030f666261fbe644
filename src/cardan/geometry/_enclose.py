"""Enclosures of pieces of NURBS: a parallelogram with a radius, and bounds of derivatives; rigorous.

A box of the parameters inside one span, with s, t ∈ [−1, 1] on it: (A, w) = Σ Dᵢⱼ sⁱ tʲ after a
shift of the power coefficients.  Let c = A₀₀/w₀₀ and A ← A − c w.  Then, for any e₁, e₂, d,

    S − (c + d + e₁ s + e₂ t) = B/w,    B = A − (d + e₁ s + e₂ t) w.

e₁ = A₁₀/w₀₀ and e₂ = A₀₁/w₀₀ remove the linear terms of B; d = ½(B₂₀ + B₀₂)/w₀₀ halves the range of s² and t².
Each component of B is at most the sum of its |Bᵢⱼ|, and the radius is the length of these sums, divided by min w: the
larger of w₀₀ − Σ|wᵢⱼ| and the least weight of the control points of the span.
Bounds of derivatives follow from those of A and w by the quotient rule.

Operations: ENCLOSE: out ← centre, e₁, e₂, radius.  DERIVATIVES: out ← bounds of |S_u|, |S_v|, …, |S_vvv|.
Reads a shape's table, q (centre), step (half widths); work has :func:`work_size` floats.
"""

from math import sqrt

from cardan._jit import cut, evaluator, inner, tail
from cardan.geometry import abi
from cardan.geometry._quotient import locate

MORE = 36  # floats of scratch besides the coefficients


def work_size(n, m):
    """Floats of scratch for n × m coefficients per span."""
    return 4 * n * m + MORE + 4 * n + 4 * m


@inner
def shift(D, count, width, x, a):
    """Coefficients of powers of s, with the local parameter x + a s, in place; rows of ``width`` points."""
    for low in range(count - 1):  # Horner's scheme, repeated
        for k in range(count - 1 - low):
            at = tail(D, 4 * width * (count - 2 - k))
            up = tail(at, 4 * width)
            for i in range(width):
                for c in range(4):
                    at[4 * i + c] += x * up[4 * i + c]
    factor = a
    for i in range(1, count):
        at = tail(D, 4 * width * i)
        for j in range(width):
            for c in range(4):
                at[4 * j + c] *= factor
        factor *= a


@inner
def falling(F, count, step):
    """F[k, i] ← i (i − 1) … (i − k + 1)/stepᵏ, k = 0 … 3: factors of the k-th derivative."""
    for k in range(4):
        for i in range(count):
            F[count * k + i] = 1.0 if k == 0 else F[count * (k - 1) + i] * (i - k + 1) / step


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
    at = tail(work, size + 32)
    for i in range(ints[abi.FREEDOMS]):
        spans = ints[abi.SPANS_U + i]
        place = place * spans + locate(breaks, spans, q[i], floats[3 * i], floats[3 * i + abi.PERIOD_U], N)
        breaks = tail(breaks, spans + 1)
        pieces *= spans
        at[2 * i], at[2 * i + 1] = N[0], N[1] * step[i]
    C = cut(breaks, size * place, size)
    least = breaks[size * pieces + place]
    for i in range(size):
        D[i] = C[i]
    shift(D, n, m, at[0], at[1])
    if surface:
        for i in range(n):
            shift(tail(D, 4 * m * i), m, 1, at[2], at[3])
    w0 = D[3]
    cx, cy, cz = D[0] / w0, D[1] / w0, D[2] / w0
    others = -abs(w0)
    for i in range(n * m):
        p = tail(D, 4 * i)
        others += abs(p[3])
        p[0], p[1], p[2] = p[0] - cx * p[3], p[1] - cy * p[3], p[2] - cz * p[3]
    least = 1.0 / max(w0 - others, least)
    if op == abi.ENCLOSE:
        p = tail(D, 4 * m)
        ex, ey, ez = p[0] / w0, p[1] / w0, p[2] / w0
        fx, fy, fz = 0.0, 0.0, 0.0
        if surface:
            fx, fy, fz = D[4] / w0, D[5] / w0, D[6] / w0
        beyond = across = 0.0  # Σ|w| of the last row and of the last column: B has one more of each
        for i in range(n):
            for j in range(m):
                p = tail(D, 4 * (i * m + j))
                low = D[4 * ((i - 1) * m + j) + 3] if i > 0 else 0.0
                left = D[4 * (i * m + j) - 1] if j > 0 else 0.0
                p[0] -= ex * low + fx * left
                p[1] -= ey * low + fy * left
                p[2] -= ez * low + fz * left
                beyond += abs(p[3]) if i == n - 1 else 0.0
                across += abs(p[3]) if j == m - 1 else 0.0
        dx, dy, dz = 0.0, 0.0, 0.0
        x, y = beyond * abs(ex) + across * abs(fx), beyond * abs(ey) + across * abs(fy)
        z = beyond * abs(ez) + across * abs(fz)
        for sweep in range(2):  # first d, then what it leaves of s² and t²
            for k in range(2):
                if (n if k == 0 else m) > 2:
                    p = tail(D, 8 * m if k == 0 else 8)
                    if sweep == 0:
                        dx, dy, dz = dx + 0.5 * p[0] / w0, dy + 0.5 * p[1] / w0, dz + 0.5 * p[2] / w0
                    else:  # half of s² and t², and all of d w
                        x += 0.5 * abs(p[0]) + abs(dx * p[3]) - abs(p[0] - dx * p[3])
                        y += 0.5 * abs(p[1]) + abs(dy * p[3]) - abs(p[1] - dy * p[3])
                        z += 0.5 * abs(p[2]) + abs(dz * p[3]) - abs(p[2] - dz * p[3])
        for i in range(1, n * m):
            p = tail(D, 4 * i)
            x += abs(p[0] - dx * p[3])
            y += abs(p[1] - dy * p[3])
            z += abs(p[2] - dz * p[3])
        out[0], out[1], out[2] = cx + dx, cy + dy, cz + dz
        out[3], out[4], out[5] = ex, ey, ez
        out[6], out[7], out[8] = fx, fy, fz
        out[9] = sqrt(x * x + y * y + z * z) * least
        return 0
    U, V = tail(work, size + MORE), tail(work, size + MORE + 4 * n)
    falling(U, n, step[0])
    V[0] = 1.0
    if surface:
        falling(V, m, step[1])
    row = -1
    for order in range(4):
        for l in range(order + 1):
            k = order - l
            total = 0.0
            if l == 0 or surface:
                x, y, z, weight = 0.0, 0.0, 0.0, 0.0
                for i in range(k, n):
                    for j in range(l, m):
                        p = tail(D, 4 * (i * m + j))
                        factor = U[k * n + i] * V[l * m + j]
                        x += factor * abs(p[0])
                        y += factor * abs(p[1])
                        z += factor * abs(p[2])
                        weight += factor * abs(p[3])
                total = sqrt(x * x + y * y + z * z)
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
