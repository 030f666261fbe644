"""Second order: steps of the hands with the curvature of their cost and of the joints.

Along free motions the cost ½ Σ k r² has the gradient g = Σ k r W and the curvature H = P ∇²L P of L = ½ Σ k r² − λᵀf,
with λ such that ∇L = g.  A product H t is a difference of ∇L in a pose moved by PROBE along t.

Where a target is not reached, k r ∇²r and λᵀ∇²f are as large as the part k J_sᵀJ_s that a first-order step knows.  Then
g + H u = 0 is solved by conjugate gradients, up to the limit TRUST of a step, or along a direction of negative
curvature to it.  [Steihaug1983]  Where g vanishes, the cost may have a maximum or a saddle: the least curvature tells,
found by power iterations on s − H; if it is negative, a step is made along its direction.

Reads the factor of the equations and W at q; writes STEP and the array CURVES.
"""

from math import sqrt

from cardan.dynamics._dual import subtract_transposed
from cardan.dynamics._equations import SOLVE, call_algebra, mass_values, retract
from cardan.dynamics._soft import evaluate_soft
from cardan.dynamics.tables import WIDTH, Pattern, SoftWork
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import tail
from cardan.solvers import tables as solvers_tables
from cardan.solvers._job import evaluate

EVALUATE_JACOBIAN = plain(solvers_tables.JACOBIAN)

PROBE = 1e-3  # [rad], and of the extent: displacement of a difference of gradients
PROBES = 12  # power iterations
SHIFTED = 1.5  # of the largest curvature seen: s
NEGATIVE = -1e-4  # of the largest curvature seen: a lower one is negative
FREE_MOTION = 1e-6  # of a random vector: if less of it is free, nothing moves
NUDGE = 1e-2  # [rad], and of the extent: step along the direction of negative curvature
MOST_PRODUCTS = 12  # of conjugate gradients in one step
SOLVED = 1e-2  # of |g|: what a step leaves of the gradient
HALVINGS = 30  # of the search for the boundary


@inner
def largest_component(job, control, x):
    """Of x in the metric of the bodies: in radians, or of the extent."""
    n6 = WIDTH * job.bodies
    inverse = mass_values(job).inverse_roots
    length = control.length
    largest = 0.0
    for i in range(n6):
        e = abs(x[i]) * inverse[i] / (length if i % WIDTH < 3 else 1.0)
        if not e <= largest:
            largest = e
    return largest


@inner
def keep_gradient(job, work):
    """FORCES ← k r, MULTIPLIERS ← λ at the pose of RESIDUALS and W; returns the number of soft rows."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    n = job.equations
    soft = job.soft
    count = soft.rows
    residual = parts.residuals
    stiffness = parts.stiffnesses
    force = parts.forces
    multipliers = parts.multipliers
    scales = work.scales
    unscaled = work.multipliers
    for i in range(count):
        force[i] = stiffness[i] * residual[i]
    for k in range(n):
        e = 0.0
        for i in range(count):
            e += force[i] * multipliers[n * i + k]
        unscaled[k] = scales[k] * e
    return count


@inner
def curvature_times(session, job, control, q, count, t, work):
    """X ← H t; returns |t|², or 0 if t is zero, or if contacts end on both sides.

    RESIDUALS and ENTRIES become those of another pose.
    """
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    n6 = WIDTH * job.bodies
    inverse = mass_values(job).inverse_roots
    soft = job.soft
    residual = parts.residuals
    stiffness = parts.stiffnesses
    entries = parts.entries
    force = parts.forces
    directions = parts.directions
    x = work.x
    values = work.values
    displacement = work.old_q
    moved = work.moved_q
    product = work.shift
    other = session.other_jacobian
    square = 0.0
    for i in range(n6):
        square += t[i] * t[i]
    largest = largest_component(job, control, t)
    if not largest > 0.0:
        return 0.0
    size = PROBE / largest
    for _ in range(2):
        for i in range(n6):
            displacement[i] = size * t[i] * inverse[i]
            product[i] = 0.0
        retract(job, q, displacement, moved, work)
        evaluate(job, EVALUATE_JACOBIAN, moved, moved, values, other, work.evaluation)
        unscaled = work.multipliers
        subtract_transposed(Pattern(job.pattern), other, unscaled, product)
        finite = True
        for i in range(n6):
            x[i] = product[i] * inverse[i]
            if not abs(x[i]) < 1e300:
                finite = False
        if finite:
            break
        size = -size  # a contact ends on this side
    if not finite:
        return 0.0
    evaluate_soft(job, EVALUATE_JACOBIAN, moved, moved, residual)
    for i in range(soft.rows):
        b = tail(x, WIDTH * soft.bodies[i])
        for j in range(WIDTH):
            b[j] += stiffness[i] * residual[i] * entries[WIDTH * i + j]
    for i in range(job.equations):
        x[n6 + i] = 0.0
    call_algebra(job, SOLVE, control, work)
    for i in range(count):
        for k in range(n6):
            x[k] -= force[i] * directions[n6 * i + k]
    for i in range(n6):
        x[i] /= size
    return square


@inner
def reach_boundary(job, control, u, d, work):
    """u ← u + τ d, τ > 0, where its largest component is TRUST."""
    n6 = WIDTH * job.bodies
    trial = work.shift
    low = 0.0
    high = 2.0 * control.trust / largest_component(job, control, d)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        for i in range(n6):
            trial[i] = u[i] + middle * d[i]
        if largest_component(job, control, trial) < control.trust:
            low = middle
        else:
            high = middle
    for i in range(n6):
        u[i] += low * d[i]


@inner
def bend_step(session, job, control, q, work):
    """STEP ← the second-order step within TRUST, SLOPE; returns its size, whether TRUST cuts it, and the products.

    Without any product it is no step.
    """
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    n6 = WIDTH * job.bodies
    count = keep_gradient(job, work)
    x = work.x
    u = session.step
    d = session.along
    g = session.total  # g + H u
    force = parts.forces
    directions = parts.directions
    square = 0.0
    for k in range(n6):
        e = 0.0
        for i in range(count):
            e += force[i] * directions[n6 * i + k]
        u[k] = 0.0
        d[k] = -e
        g[k] = e
        square += e * e
    slope = 0.0
    first = square
    is_cut = False
    products = 0
    while products < MOST_PRODUCTS and square > SOLVED * SOLVED * first:
        if curvature_times(session, job, control, q, count, d, work) == 0.0:
            break
        products += 1
        curvature = 0.0
        for i in range(n6):
            curvature += d[i] * x[i]
        step = square / curvature if curvature > 0.0 else 0.0
        if step > 0.0:
            for i in range(n6):
                x[i] *= step
                u[i] += step * d[i]
        is_cut = not (step > 0.0 and largest_component(job, control, u) <= control.trust)
        if is_cut:
            for i in range(n6):
                u[i] -= step * d[i]
            reach_boundary(job, control, u, d, work)
            break
        last = square
        square = 0.0
        for i in range(n6):
            g[i] += x[i]
            square += g[i] * g[i]
        for i in range(n6):
            d[i] = square / last * d[i] - g[i]
    evaluate_soft(job, EVALUATE_JACOBIAN, q, q, parts.memory)
    for k in range(n6):
        e = 0.0
        for i in range(count):
            e += force[i] * directions[n6 * i + k]
        slope += 2.0 * e * u[k]
    control.slope = slope
    size = largest_component(job, control, u)
    inverse = mass_values(job).inverse_roots
    for i in range(n6):
        u[i] *= inverse[i]
    return size, is_cut, products


@inner
def find_descent(session, job, control, q, work):
    """STEP ← a free motion along which a cost with zero gradient at q has a maximum, of size NUDGE; whether there is.

    The factor at hand is that of q, W is of q, and RESIDUALS too.
    """
    n6 = WIDTH * job.bodies
    n = job.equations
    inverse = mass_values(job).inverse_roots
    x = work.x
    t = session.step
    noise = session.noise
    count = keep_gradient(job, work)
    for i in range(n6 + n):
        x[i] = noise[i] if i < n6 else 0.0
    call_algebra(job, SOLVE, control, work)
    whole = 0.0
    free = 0.0
    for i in range(n6):
        whole += noise[i] * noise[i]
        free += x[i] * x[i]
        t[i] = x[i]
    if not free > FREE_MOTION * FREE_MOTION * whole:
        return False
    shift = 0.0
    curvature = 0.0
    for trial in range(PROBES):
        square = curvature_times(session, job, control, q, count, t, work)
        if square == 0.0:
            return False
        along = 0.0
        product_square = 0.0
        for i in range(n6):
            along += t[i] * x[i]
            product_square += x[i] * x[i]
        shift = max(shift, SHIFTED * sqrt(product_square / square))
        if not shift > 0.0:
            return False
        curvature = along / square
        if trial == PROBES - 1:
            size = NUDGE / largest_component(job, control, t)
            for i in range(n6):
                t[i] *= size * inverse[i]
        else:
            # the first product removes the motions that the cost does not depend on
            scale = 1.0 / shift
            for i in range(n6):
                t[i] = (t[i] if trial > 0 else 0.0) - scale * x[i]
    return curvature < NEGATIVE * shift
