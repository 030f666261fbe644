"""Enclosures of pieces of NURBS: a parallelogram with a radius, and bounds of derivatives; rigorous.

A box of the parameters inside one span, with s, t ∈ [−1, 1] on it: (A, w) = Σ Dᵢⱼ sⁱ tʲ after a
shift of the power coefficients.  Let c = A₀₀/w₀₀ and A ← A − c w.  Then, for any e₁, e₂, d,

    S − (c + d + e₁ s + e₂ t) = B/w,    B = A − (d + e₁ s + e₂ t) w.

e₁ = A₁₀/w₀₀ and e₂ = A₀₁/w₀₀ remove the linear terms of B; d = ½(B₂₀ + B₀₂)/w₀₀ halves the range of s² and t².
Each component of B is at most the sum of its |Bᵢⱼ|, and the radius is the length of these sums, divided by min w: the
larger of w₀₀ − Σ|wᵢⱼ| and the least weight of the control points of the span.
Bounds of derivatives follow from those of A and w by the quotient rule.

Operations: ENCLOSE: out ← centre, e₁, e₂, radius.  DERIVATIVES: out ← bounds of |S_u|, |S_v|, …, |S_vvv|.
Reads a shape's table, q (centre), step (half widths); work has :func:`.tables.enclosing` floats.
"""

from math import sqrt

from cardan.geometry import tables
from cardan.geometry._quotient import locate
from cardan.geometry.tables import ENCLOSURE_MORE, Enclosure, Limit, ShapeFloats, ShapeInts
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail

CUBIC = 4  # coefficients


@inner
def shift(D, count, width, x, a):
    """Coefficients of powers of s, with the local parameter x + a s, in place; rows of ``width`` numbers.

    Horner's scheme, repeated; for cubics in one sweep, which takes a third of the time.
    """
    if count == CUBIC:
        for i in range(width):
            p3 = D[3 * width + i]
            p2 = D[2 * width + i] + x * p3
            p1 = D[width + i] + x * p2
            D[i] += x * p1
            p2 += x * p3
            p1 += x * p2
            p2 += x * p3
            D[width + i] = a * p1
            D[2 * width + i] = a * a * p2
            D[3 * width + i] = a * a * a * p3
    else:
        factor = 1.0
        for low in range(count):
            for k in range(count - 1 - low):
                p = tail(D, width * (count - 2 - k))
                for i in range(width):
                    p[i] += x * p[width + i]
            p = tail(D, width * low)
            for i in range(width):
                p[i] *= factor
            factor *= a


@inner
def falling(F, count, step):
    """F[k, i] ← i (i − 1) … (i − k + 1)/stepᵏ, k = 0 … 3: factors of the k-th derivative."""
    for k in range(4):
        for i in range(count):
            F[count * k + i] = 1.0 if k == 0 else F[count * (k - 1) + i] * (i - k + 1) / step


def _enclose(op, ints, floats, q, step, out, jacobian, work):
    shape = ShapeInts(ints)
    n = shape.degrees[0] + 1
    surface = shape.freedoms == 2
    m = shape.degrees[1] + 1 if surface else 1
    breaks = ShapeFloats(floats).numbers
    size = 4 * n * m
    D = cut(work, 0, size)
    place = cut(work, size, 4)
    N = cut(work, size + 4, 16)
    W = cut(work, size + 20, 16)
    number = 0
    pieces = 1
    for i in range(shape.freedoms):
        spans = shape.spans[i]
        number = number * spans + locate(breaks, spans, q[i], Limit(floats, i).lower, Limit(floats, i).period, N)
        breaks = tail(breaks, spans + 1)
        pieces *= spans
        place[2 * i], place[2 * i + 1] = N[0], N[1] * step[i]
    C = cut(breaks, size * number, size)
    least = breaks[size * pieces + number]
    for i in range(size):
        D[i] = C[i]
    shift(D, n, 4 * m, place[0], place[1])
    if surface:
        for i in range(n):
            shift(tail(D, 4 * m * i), m, 4, place[2], place[3])
    # row i has the coefficients of sⁱ; in it, those of the powers of t if it is a surface
    w0 = D[3]
    unit = 1.0 / w0
    if op == tables.ENCLOSE:
        enclosure = Enclosure(out)
        for c in range(3):
            p = tail(D, c)
            last = 3 - c  # p[last] is the weight
            center = p[0] * unit
            e = (p[4 * m] - center * p[4 * m + last]) * unit
            f = tt = wt = 0.0
            ss, ws = p[8 * m] - center * p[8 * m + last] - e * p[4 * m + last], p[8 * m + last]
            if surface:
                f = (p[4] - center * p[4 + last]) * unit
                tt, wt = p[8] - center * p[8 + last] - f * p[4 + last], p[8 + last]
            d = 0.5 * (ss + tt) * unit
            # half of s² and t², and all of d w, in place of what the sweep adds
            total = 0.5 * (abs(ss) + abs(tt)) + abs(d * ws) + abs(d * wt)
            W[c] = total - abs(ss - d * ws) - abs(tt - d * wt)
            enclosure.center[c] = center + d
            enclosure.edge_u[c] = e
            enclosure.edge_v[c] = f
        x, y, z = enclosure.center[0], enclosure.center[1], enclosure.center[2]
        ex, ey, ez = enclosure.edge_u[0], enclosure.edge_u[1], enclosure.edge_u[2]
        fx, fy, fz = enclosure.edge_v[0], enclosure.edge_v[1], enclosure.edge_v[2]
        tx, ty, tz, others = W[0], W[1], W[2], abs(w0)
        beyond = across = 0.0
        left = w0
        first = 1
        for i in range(n):
            for j in range(first, m):  # B₀₀ = −d w₀₀ is in W
                p = tail(D, 4 * (i * m + j))
                w = p[3]
                low = D[4 * (i * m + j - m) + 3] if i > 0 else 0.0
                tx += abs(p[0] - x * w - ex * low - fx * left)
                ty += abs(p[1] - y * w - ey * low - fy * left)
                tz += abs(p[2] - z * w - ez * low - fz * left)
                others += abs(w)
                left = w
            across += abs(left)
            left = 0.0
            first = 0
        for j in range(m):
            beyond += abs(D[4 * (n * m - m + j) + 3])
        # B has one more row and one more column
        tx += beyond * abs(ex) + across * abs(fx)
        ty += beyond * abs(ey) + across * abs(fy)
        tz += beyond * abs(ez) + across * abs(fz)
        enclosure.radius = sqrt(tx * tx + ty * ty + tz * tz) / max(2.0 * w0 - others, least)
        return 0
    others = 0.0
    cx, cy, cz = D[0] * unit, D[1] * unit, D[2] * unit
    for i in range(n * m):
        p = tail(D, 4 * i)
        w = p[3]
        others += abs(w)
        p[0], p[1], p[2] = p[0] - cx * w, p[1] - cy * w, p[2] - cz * w
    least = 1.0 / max(2.0 * w0 - others, least)
    R, S = cut(work, size + ENCLOSURE_MORE, 4 * n), cut(work, size + ENCLOSURE_MORE + 4 * n, 4 * m)
    falling(R, n, step[0])
    falling(S, m, step[1])
    at = -1
    for order in range(4):
        for l in range(order + 1):
            k = order - l
            total = 0.0
            if l == 0 or surface:
                x = y = z = weight = 0.0
                for i in range(k, n):
                    for j in range(l, m):
                        p = tail(D, 4 * (i * m + j))
                        factor = R[k * n + i] * S[l * m + j]
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
            if at >= 0:
                out[at] = N[4 * k + l]
            at += 1
    return 0


ENCLOSE = evaluator(_enclose)
