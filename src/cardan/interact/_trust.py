"""How far a hand that holds goes towards its target in one cycle of h [s]: the part τ of its velocity w.

A mechanism that starts with the velocity v goes on, without forces, with the accelerations by which its joints bend its
path.  Those of the hands' rows are c.  In the scaled rows of :mod:`cardan.interact._holds`, let Q be what the joints
leave free, d = h w the way to the target, a its part in Q, and n = h J_s v − a the way that drivers make.  Let b be the
part of h² c outside of Q, which no force of a hand changes.  With τ w hands end at τ a + n + ½ τ² b, up to third order.
The nearest of these points to the target is at the first zero of

    −(d − n − τ a − ½ τ² b)·(a + τ b) = −a·a + τ (a·a − b·(d − n)) + ½ τ³ b·b     of 0 < τ ≤ 1.

It is at τ = 1 for targets on the path; for targets far off a curved path a longer step would overshoot.

The other part of c is removed by a force of the hand.  Near a pose in which joints fix a further component of the hand,
such as a stretched arm, v and the acceleration a_h that this takes become large.  In the metric of M

    τ ≤ max(1/(4 ρ), 7/4 − 3/2 ρ),   ρ = h |a_h|/|v|,

so that such a pose is approached by a factor per cycle, and not passed within one.  Elsewhere ρ is about the angle by
which a body turns in a cycle; up to 0.5 rad, τ is one.
"""

from math import sqrt

from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import mass_values, solve, take_rows, update_gamma
from cardan.dynamics._soft import GAMMA, evaluate_soft
from cardan.dynamics.tables import WIDTH, Pattern, SoftWork
from cardan.interact._holds import fill_speeds
from cardan.kernel.jit import inner
from cardan.kernel.memory import tail

LONGEST = 0.5  # ρ of a whole step
HALVINGS = 50  # of the interval that contains a zero


@inner
def bend(job, control, q, v, u, work):
    """bias ← S c, at v = M^−½ u.  Overwrites v, γ and X."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    n6 = WIDTH * job.bodies
    inverse_roots = mass_values(job).inverse_roots
    x = work.x
    for i in range(n6):
        v[i] = u[i] * inverse_roots[i]
        x[i] = 0.0
    update_gamma(job, q, v, work)
    take_rows(Pattern(job.pattern), work.scales, tail(work.values, job.rows), 1.0, tail(x, n6))
    solve(job, control, True, work)
    c = parts.bias
    evaluate_soft(job, GAMMA, q, v, c)
    for i in range(soft.rows):
        change = dot_6(tail(parts.entries, WIDTH * i), tail(x, WIDTH * soft.bodies[i]))
        c[i] = parts.scales[i] * (change - c[i])


@inner
def energy_norm(job, rows):
    """|R⁻¹ Qᵀ x| of scaled rows x: the least M-norm of a velocity that has their part in the basis; left ← Qᵀ x."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    R = parts.triangle
    z = parts.forces
    square = 0.0
    for c in range(soft.rank):
        e = 0.0
        for i in range(soft.rows):
            e += parts.basis[most * c + i] * rows[i]
        parts.left[c] = e
        z[c] = e
    for c in range(soft.rank - 1, -1, -1):
        for k in range(c + 1, soft.rank):
            z[c] -= R[most * c + k] * z[k]
        z[c] /= R[most * c + c]
        square += z[c] * z[c]
    return sqrt(square)


@inner
def first_zero(linear, cubic):
    """The first zero of −1 + linear τ + cubic τ³, cubic ≥ 0, in 0 < τ ≤ 1; 1 if there is none.

    There is one at the most, because the cubic is convex and negative at zero.
    """
    low = 0.0
    high = 1.0
    if linear + cubic <= 1.0:
        return 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle * (linear + middle * middle * cubic) > 1.0:
            high = middle
        else:
            low = middle
    return high


@inner
def trusted_part(job, control, q, v, u, work):
    """τ, for the velocity M^−½ u that the hands would have with all of w.  Overwrites v, γ, X, right, bias, forces."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    h = control.step
    a = parts.right
    b = parts.bias
    bend(job, control, q, v, u, work)
    for i in range(soft.rows):
        a[i] = parts.scales[i] * dot_6(tail(parts.entries, WIDTH * i), tail(u, WIDTH * soft.bodies[i]))
    fast = energy_norm(job, a)
    for i in range(soft.rows):
        for c in range(soft.rank):
            a[i] -= parts.basis[soft.most * c + i] * parts.left[c]  # now n/h
    square = 0.0
    for c in range(soft.rank):
        square += parts.left[c] * parts.left[c]
    turned = h * energy_norm(job, b)
    for i in range(soft.rows):
        for c in range(soft.rank):
            b[i] -= parts.basis[soft.most * c + i] * parts.left[c]
    d = parts.forces
    fill_speeds(job, 1.0, d)
    aside = 0.0
    bent = 0.0
    for i in range(soft.rows):
        aside += h * b[i] * (parts.scales[i] * d[i] - a[i])
        bent += h * h * b[i] * b[i]
    part = first_zero(1.0 - aside / square, 0.5 * bent / square) if square > 0.0 else 1.0
    if turned > LONGEST * fast:
        part = min(part, max(0.25 * fast / turned, 1.75 - 1.5 * turned / fast))
    return part
