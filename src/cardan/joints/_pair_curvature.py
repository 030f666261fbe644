"""Kernel of the relative curvature of two shapes at a contact: whether they touch from outside each other.

Heights over the tangent plane are ½ yᵀ K y, with K = Pᵀ (S_pq · n) P and the parameters P by distances along two axes
of the plane.  n points to b, so the shapes do not cross if K_b − K_a has no negative eigenvalue; along a curve it is a
number.  Reads the workspace of a solved pair, writes ``least`` and ``most``.
"""

from math import sqrt

from cardan.joints._vectors import cross, dot
from cardan.joints.tables import TANGENT, PairShape
from cardan.kernel.jit import inner
from cardan.kernel.memory import tail


@inner
def update_heights(rows, freedoms, axes, n, out):
    """out ← K₁₁, K₁₂, K₂₂ along two unit vectors in the tangent plane; of a curve K₁₁ along itself."""
    if freedoms == 1:
        out[0] = dot(tail(rows, 6), n) / dot(tail(rows, 3), tail(rows, 3))
        return
    a = dot(tail(rows, 3), axes)
    b = dot(tail(rows, 6), axes)
    c = dot(tail(rows, 3), tail(axes, 3))
    d = dot(tail(rows, 6), tail(axes, 3))
    f = 1.0 / (a * d - b * c)
    uu = dot(tail(rows, 9), n)
    uv = dot(tail(rows, 12), n)
    vv = dot(tail(rows, 15), n)
    p = f * d
    q = -f * c
    r = -f * b
    s = f * a
    out[0] = uu * p * p + 2.0 * uv * p * q + vv * q * q
    out[1] = uu * p * r + uv * (p * s + q * r) + vv * q * s
    out[2] = uu * r * r + 2.0 * uv * r * s + vv * s * s


@inner
def largest(k, freedoms):
    """The largest |curvature| of K."""
    if freedoms == 1:
        return abs(k[0])
    mean = 0.5 * (k[0] + k[2])
    half = 0.5 * (k[0] - k[2])
    return abs(mean) + sqrt(half * half + k[1] * k[1])


@inner
def judge(table, w):
    """least, most ← least relative curvature, sum of the largest curvatures, times the size; 1 where none is needed."""
    first = PairShape(table.shapes).freedoms
    second = PairShape(table.shapes, 1).freedoms
    w.least = 1.0
    w.most = 1.0
    if table.form != TANGENT or second == 0:
        return
    n = w.unit
    axes = w.latest
    t = tail(w.rows_b, 3) if second == 1 else tail(w.rows_a, 3)
    f = 1.0 / sqrt(dot(t, t))
    for c in range(3):
        axes[c] = f * t[c]
    cross(n, axes, tail(axes, 3))
    a = w.matrix
    b = tail(w.matrix, 3)
    update_heights(w.rows_a, first, axes, n, a)
    update_heights(w.rows_b, second, axes, n, b)
    freedoms = min(first, second)
    size = table.numbers.extent
    w.most = size * (largest(a, freedoms) + largest(b, freedoms))
    if freedoms == 1:
        w.least = size * (b[0] - a[0])
        return
    for c in range(3):
        b[c] -= a[c]
    mean = 0.5 * (b[0] + b[2])
    half = 0.5 * (b[0] - b[2])
    w.least = size * (mean - sqrt(half * half + b[1] * b[1]))
