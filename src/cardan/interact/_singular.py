"""Singular poses of the joints: whether one was passed.

A sign tells.  With u, v the singular vectors of the least singular value σ of Ĵ at the last pose, σ' = uᵀ Ĵ' v at the
next one changes continuously, and is negative beyond a pose where σ is zero.  Where |σ'| is small, u and v are kept
until it is larger again.  If σ' is negative then, a singular pose was passed.  Another branch may have been taken
there with σ' > 0: its tangent has a component along v, that of the old branch has none.  So the displacement along v
tells.

Another singular value than that of u and v may fall below theirs, and to zero.  If the least one after a sub-step is
much smaller than σ, it was not followed: the sub-step is made again, shorter, with its vectors at the last pose.

Reads the tables of a session and the factor of the equations at hand; writes u, v, and σ and its sums in control.
"""

from math import sqrt

from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import SOLVE, call_algebra, mass_values
from cardan.dynamics.tables import WIDTH, Pattern
from cardan.kernel.fields import after
from cardan.kernel.jit import inner
from cardan.kernel.memory import tail
from cardan.system.tables import POSE

LEAST_SIGMA = 1e-3  # with a smaller σ solutions are refined
MOST_ZONE = 5e-3  # σ of a pose whose singular vectors can be a reference, at the most
ZONE_PART = 0.2  # of the largest σ so far: the same, where σ is always small
SMALL = 0.1  # of the largest σ so far: towards a singular pose
LEAST_STEP = 1e-3  # [rad], and of the extent: a shorter sub-step is made even if it passes a singular pose
KEPT = 0.5  # of σ: length of a sub-step [rad], and of the extent, which changes σ by less
STRIDE = 0.02  # [rad], and of the extent: a sub-step that is tried elsewhere, since σ of long chains is always small
TAKEN = 0.03  # of the displacement when σ is large again: a larger part along v is on another branch
FIRMLY = 0.1  # the same, before σ is large again
FIRM = 2e-3  # of the extent: the least displacement along v that settles it before
MIXED = 0.1  # of a vector: random part, so that another one can become the least
FRESH = 0.05  # of σ: after a longer way [rad], and of the extent, singular vectors are computed anew
FALLING = 0.95  # of σ: inverse iterations continue while one reduces the estimate to less
MOST_ROUNDS = 16


@inner
def refine(control, most):
    """Let solutions be refined at most so often, unless J has nearly lost rank."""
    full = control.refined
    control.proximal = min(most, full) if control.sigma > LEAST_SIGMA else full


@inner
def times_jacobian(job, v, out, work):
    """out ← Ĵ v."""
    pattern = Pattern(job.pattern)
    jacobian = work.jacobian
    strip = pattern.strips
    for _ in range(pattern.strip_count):
        at = strip.entry
        for i in range(strip.rows):
            e = 0.0
            for s in range(strip.slots):
                e += dot_6(tail(jacobian, at), tail(v, WIDTH * strip.bodies[s]))
                at += WIDTH
            out[strip.first + i] = e
        strip = after(strip, strip.slots)


@inner
def signed_sigma(session, job, work):
    """uᵀ Ĵ v with the vectors of the reference pose."""
    n = job.equations
    x = work.x
    times_jacobian(job, session.first_v, x, work)
    u = session.first_u
    e = 0.0
    for i in range(n):
        e += u[i] * x[i]
    return e


@inner
def is_singular(control, sigma):
    """Whether a pose with this σ is so near to a singular one that its own u and v can be no reference."""
    return abs(sigma) <= min(MOST_ZONE, ZONE_PART * control.widest)


@inner
def longest_step(control):
    """Of a sub-step [rad], and of the extent: shorter towards a singular pose, so that it is not passed unseen."""
    sigma = control.sigma
    least = STRIDE if sigma > SMALL * control.widest or control.in_zone > 0.0 else LEAST_STEP
    return max(least, KEPT * sigma)


@inner
def leave_zone(session, job, control, q, new_q, sigma):
    """Add a sub-step to WAY, the displacement since σ is too small to renew v.

    Returns whether a singular pose was passed, when σ is large again or another branch was taken; then WAY is zero.
    """
    mass = mass_values(job).roots
    v = session.first_v
    way = session.way
    across = 0.0
    square = 0.0
    for b in range(job.bodies):
        one = tail(q, POSE * b)
        two = tail(new_q, POSE * b)
        for i in range(WIDTH):
            e = two[i] - one[i]
            if i == 3:
                e = 2.0 * (one[3] * two[4] - one[4] * two[3] - one[5] * two[6] + one[6] * two[5])
            elif i == 4:
                e = 2.0 * (one[3] * two[5] - one[5] * two[3] - one[6] * two[4] + one[4] * two[6])
            elif i == 5:
                e = 2.0 * (one[3] * two[6] - one[6] * two[3] - one[4] * two[5] + one[5] * two[4])
            k = WIDTH * b + i
            way[k] += e * mass[k]
            across += way[k] * v[k]
            square += way[k] * way[k]
    control.in_zone = 1.0
    taken = abs(across) > TAKEN * sqrt(square)
    firm = abs(across) > max(FIRMLY * sqrt(square), FIRM * control.length)
    if is_singular(control, sigma) and not firm:
        return False
    clear_way(session, job, control)
    return sigma < 0.0 or taken


@inner
def clear_way(session, job, control):
    way = session.way
    for i in range(WIDTH * job.bodies):
        way[i] = 0.0
    control.in_zone = 0.0


@inner
def refresh_sigma(session, job, control, rounds, work):
    """u, v ← singular vectors of the least singular value, by inverse iterations v ← Ĵᵀ(ĴĴᵀ)⁻² Ĵ v.

    Some rounds, and more while σ falls: where two singular values cross, v turns to another vector.  A random part is
    added in each round, another one each time, since one alone may have no part along that vector.
    """
    n = job.equations
    n6 = WIDTH * job.bodies
    x = work.x
    v = session.first_v
    u = session.first_u
    noise = session.noise
    step = work.shift
    mixed = MIXED / sqrt(float(n6))
    refine(control, 0.0)
    sigma = 1e300
    for k in range(max(rounds, MOST_ROUNDS)):
        at = int(control.mixes) % n6
        control.mixes += 1.0
        for i in range(n6):
            step[i] = v[i] + mixed * noise[at]
            at = at + 1 if at + 1 < n6 else 0
        times_jacobian(job, step, u, work)
        for _ in range(2):
            for i in range(n6):
                x[i] = 0.0
            for i in range(n):
                x[n6 + i] = -u[i]
            call_algebra(job, SOLVE, control, work)
            for i in range(n):
                u[i] = x[n6 + i]
        square = 0.0
        for i in range(n6):
            square += x[i] * x[i]
        scale = 1.0 / sqrt(square) if square > 0.0 else 0.0
        for i in range(n6):
            v[i] = scale * x[i]
        last = sigma
        times_jacobian(job, v, u, work)
        square = 0.0
        for i in range(n):
            square += u[i] * u[i]
        sigma = sqrt(square)
        if k + 1 >= rounds and not sigma < FALLING * last:
            break
    for i in range(n):
        u[i] = u[i] / sigma if sigma > 0.0 else 0.0
    control.sigma = sigma
    control.walked = 0.0
    control.widest = max(control.widest, sigma)
