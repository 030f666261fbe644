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

from cardan.dynamics import abi as dynamics_abi
from cardan.dynamics._dual import subtract_transposed
from cardan.dynamics._equations import (
    EVALUATION,
    MOVED_Q,
    MULTIPLIERS,
    OLD_Q,
    SCALES,
    SHIFT,
    SOLVE,
    VALUES,
    X,
    call_algebra,
    evaluate,
    piece,
    retract,
    roots,
)
from cardan.dynamics._soft import (
    ENTRIES,
    FORCES,
    RESIDUALS,
    STIFFNESSES,
    evaluate_soft,
    soft_directions,
    soft_multipliers,
    soft_part,
)
from cardan.dynamics.abi import WIDTH
from cardan.interact import abi
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import floats_at, integers_at, tail
from cardan.solvers import tables as solvers_abi

EVALUATE_JACOBIAN = plain(solvers_abi.JACOBIAN)

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
    n6 = WIDTH * job[dynamics_abi.BODIES]
    inverse = tail(roots(job), 2 * n6)
    length = control[dynamics_abi.LENGTH]
    largest = 0.0
    for i in range(n6):
        e = abs(x[i]) * inverse[i] / (length if i % WIDTH < 3 else 1.0)
        if not e <= largest:
            largest = e
    return largest


@inner
def keep_gradient(job, work):
    """FORCES ← k r, MULTIPLIERS ← λ at the pose of RESIDUALS and W; returns the number of soft rows."""
    n = job[dynamics_abi.EQUATIONS]
    soft = integers_at(job[dynamics_abi.SOFT_INTS])
    most = soft[dynamics_abi.SOFT_MOST]
    count = soft[dynamics_abi.SOFT_ROWS]
    residual = soft_part(job, RESIDUALS, most)
    stiffness = soft_part(job, STIFFNESSES, most)
    force = soft_part(job, FORCES, most)
    multipliers = soft_multipliers(job)
    scales = piece(job, SCALES, work)
    unscaled = piece(job, MULTIPLIERS, work)
    for i in range(count):
        force[i] = stiffness[i] * residual[i]
    for k in range(n):
        e = 0.0
        for i in range(count):
            e += force[i] * multipliers[n * i + k]
        unscaled[k] = scales[k] * e
    return count


@inner
def curvature_times(table, job, control, q, count, t, work):
    """X ← H t; returns |t|², or 0 if t is zero, or if contacts end on both sides.

    RESIDUALS and ENTRIES become those of another pose.
    """
    n6 = WIDTH * job[dynamics_abi.BODIES]
    inverse = tail(roots(job), 2 * n6)
    soft = integers_at(job[dynamics_abi.SOFT_INTS])
    most = soft[dynamics_abi.SOFT_MOST]
    residual = soft_part(job, RESIDUALS, most)
    stiffness = soft_part(job, STIFFNESSES, most)
    entries = soft_part(job, ENTRIES, WIDTH * most)
    force = soft_part(job, FORCES, most)
    directions = soft_directions(job)
    x = piece(job, X, work)
    values = piece(job, VALUES, work)
    own = piece(job, OLD_Q, work)
    moved = piece(job, MOVED_Q, work)
    product = piece(job, SHIFT, work)
    other = tail(floats_at(table[abi.CURVES]), 2 * n6)  # J of the other pose
    square = 0.0
    for i in range(n6):
        square += t[i] * t[i]
    largest = largest_component(job, control, t)
    if not largest > 0.0:
        return 0.0
    size = PROBE / largest
    for _ in range(2):
        for i in range(n6):
            own[i] = size * t[i] * inverse[i]
            product[i] = 0.0
        retract(job, q, own, moved, work)
        evaluate(job, EVALUATE_JACOBIAN, moved, moved, values, other, piece(job, EVALUATION, work))
        unscaled = piece(job, MULTIPLIERS, work)
        subtract_transposed(integers_at(job[dynamics_abi.PATTERN]), other, unscaled, product)
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
    for i in range(soft[dynamics_abi.SOFT_ROWS]):
        b = tail(x, WIDTH * soft[dynamics_abi.SOFT_BODIES + i])
        for j in range(WIDTH):
            b[j] += stiffness[i] * residual[i] * entries[WIDTH * i + j]
    for i in range(job[dynamics_abi.EQUATIONS]):
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
    n6 = WIDTH * job[dynamics_abi.BODIES]
    trial = piece(job, SHIFT, work)
    low = 0.0
    high = 2.0 * control[abi.TRUST] / largest_component(job, control, d)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        for i in range(n6):
            trial[i] = u[i] + middle * d[i]
        if largest_component(job, control, trial) < control[abi.TRUST]:
            low = middle
        else:
            high = middle
    for i in range(n6):
        u[i] += low * d[i]


@inner
def bend_step(table, job, control, q, work):
    """STEP ← the second-order step within TRUST, SLOPE; returns its size, whether TRUST cuts it, and the products.

    Without any product it is no step.
    """
    n6 = WIDTH * job[dynamics_abi.BODIES]
    count = keep_gradient(job, work)
    x = piece(job, X, work)
    u = floats_at(table[abi.STEP])
    d = floats_at(table[abi.CURVES])
    g = tail(d, n6)  # g + H u
    force = soft_part(job, FORCES, integers_at(job[dynamics_abi.SOFT_INTS])[dynamics_abi.SOFT_MOST])
    directions = soft_directions(job)
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
        if curvature_times(table, job, control, q, count, d, work) == 0.0:
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
        is_cut = not (step > 0.0 and largest_component(job, control, u) <= control[abi.TRUST])
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
    evaluate_soft(job, EVALUATE_JACOBIAN, q, q, soft_part(job, RESIDUALS, 1))
    for k in range(n6):
        e = 0.0
        for i in range(count):
            e += force[i] * directions[n6 * i + k]
        slope += 2.0 * e * u[k]
    control[abi.SLOPE] = slope
    size = largest_component(job, control, u)
    inverse = tail(roots(job), 2 * n6)
    for i in range(n6):
        u[i] *= inverse[i]
    return size, is_cut, products


@inner
def find_descent(table, job, control, q, work):
    """STEP ← a free motion along which a cost with zero gradient at q has a maximum, of size NUDGE; whether there is.

    The factor at hand is that of q, W is of q, and RESIDUALS too.
    """
    n6 = WIDTH * job[dynamics_abi.BODIES]
    n = job[dynamics_abi.EQUATIONS]
    inverse = tail(roots(job), 2 * n6)
    x = piece(job, X, work)
    t = floats_at(table[abi.STEP])
    noise = floats_at(table[abi.NOISE])
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
        square = curvature_times(table, job, control, q, count, t, work)
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
