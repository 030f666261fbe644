"""Features by (δr, δθ), δr in world and δθ in body axes: the manifold formulation, and what others begin with.

    ∂(r + A s)/∂(δr, δθ) = [I, −A s̃],      ẋ = ṙ + A(ω × s),   ẍ = r̈ + A(ω̇ × s + ω × (ω × s)),
    ∂(p ⊗ s)/∂δθ = ½ p ⊗ (0, δθ) ⊗ s,      ẋ = ½ p ⊗ ω ⊗ s,    ẍ = ½ p ⊗ ω̇ ⊗ s − ¼|ω|² x.

So a row d of ∂f/∂P adds d to the columns of δr and s × (Aᵀ d) to those of δθ; a vector has no part in δr.

Where δθ = T δu for the unknowns u of a formulation, its rows are ∂f/∂δθ · T, and ω = T u̇, ω̇ = T ü + Ṫ u̇.  T = 2G(p)
gives the virtual rotation, T = B(ψ, θ, φ) the ZXZ angles; on the manifold T = I.

Reads one feature; writes one row of a block, or ẋ and its bias (:mod:`cardan.coordinates._walk`).
"""

from cardan.kernel.jit import inner
from cardan.kernel.memory import tail
from cardan.system.tables import ORIENTATION, POINT


@inner
def add_angular(kind, d, s, p, a, row):
    """row += d · ∂x/∂(δr, δθ)."""
    if kind == ORIENTATION:
        add_orientation(d, p, s, tail(row, 3))
    else:
        add_vector(kind == POINT, d, a, s, row)


@inner
def add_vector(is_point, d, a, s, row):
    """row += d · ∂(r + A s)/∂(δr, δθ), or that of a vector A s."""
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        return
    b0 = a[0] * d[0] + a[3] * d[1] + a[6] * d[2]
    b1 = a[1] * d[0] + a[4] * d[1] + a[7] * d[2]
    b2 = a[2] * d[0] + a[5] * d[1] + a[8] * d[2]
    if is_point:
        for i in range(3):
            row[i] += d[i]
    row[3] += s[1] * b2 - s[2] * b1
    row[4] += s[2] * b0 - s[0] * b2
    row[5] += s[0] * b1 - s[1] * b0


@inner
def add_orientation(d, p, s, row):
    """row += d · ∂(p ⊗ s)/∂δθ, which is half the vector part of (p* ⊗ d) ⊗ s*."""
    a0 = p[0] * d[0] + p[1] * d[1] + p[2] * d[2] + p[3] * d[3]
    a1 = p[0] * d[1] - p[1] * d[0] - p[2] * d[3] + p[3] * d[2]
    a2 = p[0] * d[2] + p[1] * d[3] - p[2] * d[0] - p[3] * d[1]
    a3 = p[0] * d[3] - p[1] * d[2] + p[2] * d[1] - p[3] * d[0]
    row[0] += 0.5 * (-a0 * s[1] + a1 * s[0] - a2 * s[3] + a3 * s[2])
    row[1] += 0.5 * (-a0 * s[2] + a1 * s[3] + a2 * s[0] - a3 * s[1])
    row[2] += 0.5 * (-a0 * s[3] - a1 * s[2] + a2 * s[1] + a3 * s[0])


@inner
def half_product(p, w0, w1, w2, s):
    """½ p ⊗ (0, w) ⊗ s."""
    a0 = -w0 * s[1] - w1 * s[2] - w2 * s[3]
    a1 = w0 * s[0] + w1 * s[3] - w2 * s[2]
    a2 = -w0 * s[3] + w1 * s[0] + w2 * s[1]
    a3 = w0 * s[2] - w1 * s[1] + w2 * s[0]
    return (
        0.5 * (p[0] * a0 - p[1] * a1 - p[2] * a2 - p[3] * a3),
        0.5 * (p[0] * a1 + p[1] * a0 + p[2] * a3 - p[3] * a2),
        0.5 * (p[0] * a2 - p[1] * a3 + p[2] * a0 + p[3] * a1),
        0.5 * (p[0] * a3 + p[1] * a2 - p[2] * a1 + p[3] * a0),
    )


@inner
def angular_rates(kind, s, p, a, v, w, z, x, rate, bias):
    """ẋ and bias of one feature from ṙ, the first of v, the angular velocity w = ω and z = ω̇ at v̇ = 0."""
    if kind == ORIENTATION:
        rate[0], rate[1], rate[2], rate[3] = half_product(p, w[0], w[1], w[2], s)
        bias[0], bias[1], bias[2], bias[3] = half_product(p, z[0], z[1], z[2], s)
        square = 0.25 * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
        for i in range(4):
            bias[i] -= square * x[i]
        return
    u0 = w[1] * s[2] - w[2] * s[1]
    u1 = w[2] * s[0] - w[0] * s[2]
    u2 = w[0] * s[1] - w[1] * s[0]
    c0 = w[1] * u2 - w[2] * u1 + z[1] * s[2] - z[2] * s[1]
    c1 = w[2] * u0 - w[0] * u2 + z[2] * s[0] - z[0] * s[2]
    c2 = w[0] * u1 - w[1] * u0 + z[0] * s[1] - z[1] * s[0]
    for i in range(3):
        rate[i] = a[3 * i] * u0 + a[3 * i + 1] * u1 + a[3 * i + 2] * u2
        bias[i] = a[3 * i] * c0 + a[3 * i + 1] * c1 + a[3 * i + 2] * c2
        if kind == POINT:
            rate[i] += v[i]
