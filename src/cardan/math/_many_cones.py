"""Contact problems of many free bodies, without G: see :mod:`._cone` for the problem and its conditions.

    v = v₀ + Ĵᵀ r,   u = Ĵ v + b,   Ĵ = J_c M^(−1/2),   each contact between two bodies, which have six unknowns each.

Newton's equations of contact c, with F = 0 where it opens, sticks or slips as it should [Alart1991], are

    B_u δu + (B_r + ε) δr = −F   ⇒   δr = −(s + D Ĵ δv),   D = (B_r + ε)⁻¹ B_u,   s = (B_r + ε)⁻¹ F,

so that (1 + Ĵᵀ D Ĵ) δv = −Ĵᵀ s: 6 × 6 blocks, of the graph of bodies that touch, not symmetric where
contacts slip.  ε makes redundant contacts regular; it has no effect on what the iteration converges to.

The unknowns of body k are v[6k…]; a body that is fixed has rows of zeros.  Rows of a contact: 3 × 6 of its first body,
then of its second.
"""

from math import sqrt

from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import pointer, tail
from cardan.math._cone import contact_error, project, solve_contact


@inner
def own_velocity(bodies, rows, b, v, k, u):
    """u ← Ĵ v + b of contact k."""
    for i in range(3):
        e = b[3 * k + i]
        for side in range(2):
            row, of_body = tail(rows, 36 * k + 18 * side + 6 * i), tail(v, 6 * bodies[2 * k + side])
            for j in range(6):
                e += row[j] * of_body[j]
        u[i] = e


@inner
def push(bodies, rows, k, x, y, z, v):
    """v += Ĵᵀ (x, y, z) of contact k."""
    for side in range(2):
        row, of_body = tail(rows, 36 * k + 18 * side), tail(v, 6 * bodies[2 * k + side])
        for j in range(6):
            of_body[j] += row[j] * x + row[6 + j] * y + row[12 + j] * z


@inner
def apply_forces(count, unknowns, bodies, rows, free, r, v):
    """v ← v₀ + Ĵᵀ r."""
    for i in range(unknowns):
        v[i] = free[i]
    for k in range(count):
        if (r[3 * k] != 0.0) | (r[3 * k + 1] != 0.0) | (r[3 * k + 2] != 0.0):
            push(bodies, rows, k, r[3 * k], r[3 * k + 1], r[3 * k + 2], v)


@inner
def largest_error(count, bodies, rows, b, mu, g, r, v, u):
    """The largest error of a contact, infinite if one is not a number; u: three floats."""
    worst = 0.0
    for k in range(count):
        own_velocity(bodies, rows, b, v, k, u)
        e = contact_error(tail(r, 3 * k), u, mu[k], g[7 * k + 6])
        if not e <= worst:
            worst = e if e == e else float("inf")
    return worst


@jit
def sweep_contacts(sweeps, bodies, rows, free, b, mu, diagonals, r, v):
    """Sweeps of Gauss–Seidel: r ← and v ←; returns the largest error.

    diagonals: of each contact the six numbers of its block of G (nn, n1, n2, 11, 12, 22), and a mean diagonal entry
    g, shape (7 · contacts + 9,): nine more are a workspace.
    """
    count, unknowns = mu.size, v.size
    bodies, rows, free, b, mu = pointer(bodies), pointer(rows), pointer(free), pointer(b), pointer(mu)
    r, v = pointer(r), pointer(v)
    g = pointer(diagonals)
    A, c = tail(g, 7 * count), tail(g, 7 * count + 6)
    apply_forces(count, unknowns, bodies, rows, free, r, v)
    for _ in range(sweeps):
        for k in range(count):
            own, of_g = tail(r, 3 * k), tail(g, 7 * k)
            own_velocity(bodies, rows, b, v, k, c)
            x, y, z = own[0], own[1], own[2]
            if (c[0] >= 0.0) & (x == 0.0) & (y == 0.0) & (z == 0.0):
                continue
            for i in range(6):
                A[i] = of_g[i]
            c[0] -= A[0] * x + A[1] * y + A[2] * z
            c[1] -= A[1] * x + A[3] * y + A[4] * z
            c[2] -= A[2] * x + A[4] * y + A[5] * z
            solve_contact(A, c, mu[k], own)
            push(bodies, rows, k, own[0] - x, own[1] - y, own[2] - z, v)
    return largest_error(count, bodies, rows, b, mu, g, r, v, c)


@inner
def newton_block(u, r, mu, g, epsilon, D, s):
    """D ← (B_r + ε)⁻¹ B_u, s ← (B_r + ε)⁻¹ F of one contact; forces of one that opens become zero."""
    for i in range(9):
        D[i] = 0.0
    p = 1.0 / g if g > 0.0 else 0.0
    if (p == 0.0) | (r[0] - p * u[0] <= 0.0):
        for i in range(3):
            s[i], r[i] = 0.0, 0.0
        return
    stiff = p / epsilon
    D[0], s[0] = stiff, stiff * u[0]
    y, z = r[1] - p * u[1], r[2] - p * u[2]
    t, m = sqrt(y * y + z * z), mu * max(r[0], 0.0)
    if (t <= m) & (mu > 0.0):
        D[4], s[1] = stiff, stiff * u[1]
        D[8], s[2] = stiff, stiff * u[2]
        return
    d, e = (y / t, z / t) if t > 0.0 else (1.0, 0.0)
    w = min(m / t, 1.0) if t > 0.0 else 0.0
    # B_r of both tangents is 1 along d and 1 − w across it; B_u is p w across d
    f, h = r[1] - m * d, r[2] - m * e
    along, across = (d * f + e * h + mu * s[0]) / (1.0 + epsilon), (d * h - e * f) / (1.0 - w + epsilon)
    s[1], s[2] = d * along - e * across, e * along + d * across
    down, turned = mu * D[0] / (1.0 + epsilon), p * w / (1.0 - w + epsilon)
    D[3], D[6] = d * down, e * down
    D[4], D[5] = turned * e * e, -turned * d * e
    D[7], D[8] = -turned * d * e, turned * d * d


@inner
def add_block(left, middle, at, stride, data):
    """data[column by column] += leftᵀ middle, 6 × 6; left and middle have three rows."""
    for j in range(6):
        x, y, z = middle[j], middle[6 + j], middle[12 + j]
        out = tail(data, at + j * stride)
        for i in range(6):
            out[i] += left[i] * x + left[6 + i] * y + left[12 + i] * z


@jit
def newton_blocks(epsilon, bodies, rows, b, mu, diagonals, r, v, blocks, right):
    """blocks ← D and s of each contact, 12 floats; right ← −Ĵᵀ s, without the forces of contacts that open."""
    count, unknowns = mu.size, right.size
    bodies, rows, b, mu, g = pointer(bodies), pointer(rows), pointer(b), pointer(mu), pointer(diagonals)
    r, v, blocks, right = pointer(r), pointer(v), pointer(blocks), pointer(right)
    u = tail(g, 7 * count)
    for i in range(unknowns):
        right[i] = 0.0
    for k in range(count):
        own_velocity(bodies, rows, b, v, k, u)
        D, s, own = tail(blocks, 12 * k), tail(blocks, 12 * k + 9), tail(r, 3 * k)
        x, y, z = own[0], own[1], own[2]
        newton_block(u, own, mu[k], g[7 * k + 6], epsilon, D, s)
        if D[0] != 0.0:
            x, y, z = s[0], s[1], s[2]
        if (x != 0.0) | (y != 0.0) | (z != 0.0):  # the velocity still has the force of a contact that opens
            push(bodies, rows, k, -x, -y, -z, right)


@jit
def fill_matrix(count, rows, blocks, places, data):
    """data ← 1 + Ĵᵀ D Ĵ, column by column; behind the blocks is a workspace of 18 floats.

    places: of each contact, for the blocks (first, first), (first, second), (second, first), (second, second), where
    they begin in data and how far their columns are apart; −1 where there is none.  Behind those, the same for each
    body.
    """
    size, number = data.size, places.size // 2 - 4 * count
    rows, blocks, places, data = pointer(rows), pointer(blocks), pointer(places), pointer(data)
    product = tail(blocks, 12 * count)
    for i in range(size):
        data[i] = 0.0
    for k in range(number):
        at, stride = places[8 * count + 2 * k], places[8 * count + 2 * k + 1]
        for j in range(6):
            data[at + j * stride + j] = 1.0
    for k in range(count):
        D = tail(blocks, 12 * k)
        if D[0] == 0.0:
            continue
        for second in range(2):
            of_second = tail(rows, 36 * k + 18 * second)
            for i in range(3):
                for j in range(6):
                    product[6 * i + j] = (
                        D[3 * i] * of_second[j] + D[3 * i + 1] * of_second[6 + j] + D[3 * i + 2] * of_second[12 + j]
                    )
            for first in range(2):
                at = places[8 * k + 4 * first + 2 * second]
                if at >= 0:
                    stride = places[8 * k + 4 * first + 2 * second + 1]
                    add_block(tail(rows, 36 * k + 18 * first), product, at, stride, data)


@jit
def newton_step(bodies, rows, free, b, mu, diagonals, blocks, change, r, v):
    """r ← r − s − D Ĵ δv, projected onto the cones, v ← v₀ + Ĵᵀ r; returns the largest error of a contact."""
    count, unknowns = mu.size, v.size
    bodies, rows, free, b, mu = pointer(bodies), pointer(rows), pointer(free), pointer(b), pointer(mu)
    g, blocks, change, r, v = pointer(diagonals), pointer(blocks), pointer(change), pointer(r), pointer(v)
    u = tail(g, 7 * count)
    for k in range(count):
        D, own = tail(blocks, 12 * k), tail(r, 3 * k)
        if D[0] == 0.0:
            continue
        for i in range(3):
            e = 0.0
            for side in range(2):
                row, of_body = tail(rows, 36 * k + 18 * side + 6 * i), tail(change, 6 * bodies[2 * k + side])
                for j in range(6):
                    e += row[j] * of_body[j]
            u[i] = e
        for i in range(3):
            own[i] -= D[9 + i] + D[3 * i] * u[0] + D[3 * i + 1] * u[1] + D[3 * i + 2] * u[2]
        own[0], own[1], own[2] = project(own[0], own[1], own[2], mu[k])
    apply_forces(count, unknowns, bodies, rows, free, r, v)
    return largest_error(count, bodies, rows, b, mu, g, r, v, u)
