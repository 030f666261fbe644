"""The equations of motion at one instant, for all integrators.

    M v̇ + Jᵀλ = Q,   J v̇ = γ + g̈,   J v = ġ,   f = 0

in the velocities v = (ṙ of the centre of mass in world, ω in principal axes) of each body, so that M is constant and
diagonal.  With u = M^½ v̇ and Ĵ = D J M^−½, where D gives every row of Ĵ the length one, every solve has one form,
u + Ĵᵀλ̂ = b,  Ĵ u = c:

============ ================= ===============
acceleration b = M^−½ Q        c = D(γ + g̈)
velocity     b = M^½ v         c = D ġ
pose         b = M^½ δ         c = −D f
============ ================= ===============

The second and third are projections in the metric of M.  Rate rows A v = b are rows of J in the first two, but not in
the third, which then has a factor of its own.
"""

from math import sqrt

from cardan.dynamics import abi
from cardan.dynamics._dual import subtract_times
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import call_evaluator, cut, floats_at, integers_at, tail
from cardan.solvers import tables as solvers_abi
from cardan.system.tables import POSE

REGULAR = 1e-12  # a smaller pivot of Ĵ Ĵᵀ, whose diagonal is one: rows may be redundant
ACCURATE = 1e-5  # with a smaller pivot a solution is refined
EPSILON = 1e-10  # added to the diagonal where rows are redundant
PROXIMAL = 2.0  # iterations that remove the error of EPSILON
STILL = 1e-12  # of the extent in a step, or [rad]: slower velocities are rounding
SHORTEST = 1e-12  # [s], of a step that is not known yet
CONTRADICTED = 1e-6  # of the largest velocity or rate: equations that are missed by more contradict each other
CLOSED = 5e-13  # residual of a closed pose, relative to the extent, or in radians
ROUNDING = 64 * 2.0**-52  # of the largest coordinate: poses cannot be stored more exactly

RESIDUAL, RETRACT = plain(solvers_abi.RESIDUAL), plain(solvers_abi.RETRACT)
GAMMA, MOTION = plain(solvers_abi.GAMMA), plain(solvers_abi.MOTION)
FACTOR, SOLVE, FORCE = map(plain, (abi.FACTOR, abi.SOLVE, abi.FORCE))
VELOCITY, ACCELERATION = plain(abi.VELOCITY), plain(abi.ACCELERATION)
# pieces of the workspace; Integration._offsets plans them
(
    EVALUATION,
    VALUES,
    JACOBIAN,
    MATRIX,
    X,
    SCRATCH,
    NEW_V,
    NEW_Q,
    MOVED_Q,
    SHIFT,
    NEW_A,
    MULTIPLIERS,
    WEIGHTS,
    STAGES,
    OLD_Q,
    OLD_V,
    END_MULTIPLIERS,
    SCALES,
    POSE_SCALES,
    POSE_MATRIX,
    DRIFT,
    REST,
) = map(plain, range(22))


@inner
def piece(job, number, work):
    """A piece of the workspace."""
    at = job[abi.PIECES + number]
    return cut(work, at, job[abi.PIECES + number + 1] - at)


@inner
def roots(job):
    """M, M^½, M^−½ (WIDTH per body each), gravity; per equation the weight of its residual: 1/L, or 1 of an angle."""
    return floats_at(job[abi.MASSES])


@inner
def evaluate(job, op, q, v, out, jacobian, work):
    return call_evaluator(
        job[abi.EVALUATOR], op, integers_at(job[abi.INTS]), floats_at(job[abi.FLOATS]), q, v, out, jacobian, work
    )


@inner
def retract(job, q, step, out, work):
    """out ← q moved by a tangent vector."""
    evaluate(job, RETRACT, q, step, out, out, piece(job, EVALUATION, work))


@inner
def scale_jacobian(pattern, inverse_roots, active, jacobian, scales):
    """Ĵ ← D J M^−½ in place, and D, such that every row of Ĵ has length one, or zero where it is not active."""
    strip = tail(pattern, abi.P_HEADER)
    for _ in range(pattern[abi.P_STRIPS]):
        width = WIDTH * strip[abi.S_SLOTS]
        row = tail(jacobian, strip[abi.S_ENTRY])
        for i in range(strip[abi.S_ROWS]):
            square = 0.0
            for s in range(strip[abi.S_SLOTS]):
                w = tail(inverse_roots, WIDTH * strip[abi.S_BODIES + s])
                block = tail(row, WIDTH * s)
                for j in range(WIDTH):
                    e = block[j] * w[j]
                    block[j] = e
                    square += e * e
            d = active[strip[abi.S_FIRST] + i] * (1.0 / sqrt(square) if square > 0.0 else 1.0)
            scales[strip[abi.S_FIRST] + i] = d
            for j in range(width):
                row[j] *= d
            row = tail(row, width)
        strip = tail(strip, abi.S_BODIES + strip[abi.S_SLOTS])


@inner
def take_rows(pattern, scales, rows, sign, out):
    """out ← sign · D · those of the rows that are equations."""
    strip = tail(pattern, abi.P_HEADER)
    for _ in range(pattern[abi.P_STRIPS]):
        for i in range(strip[abi.S_ROWS]):
            k = strip[abi.S_FIRST] + i
            out[k] = sign * scales[k] * rows[strip[abi.S_ROW] + i]
        strip = tail(strip, abi.S_BODIES + strip[abi.S_SLOTS])


@inner
def set_drivers(job, control):
    """Write the drivers' values of the next row of DRIVE to the floats; returns that row: g, ġ, g̈ of each driver."""
    n = job[abi.DRIVEN]
    row = tail(floats_at(job[abi.DRIVE]), 3 * (n + job[abi.TIMED]) * int(control[abi.DRIVE_AT]))
    places = integers_at(job[abi.DRIVERS])
    floats = floats_at(job[abi.FLOATS])
    for k in range(n):
        floats[places[2 * k]] = row[3 * k]
    for k in range(job[abi.TIMED]):
        place = integers_at(job[abi.TIMED_PLACES])[k]
        for i in range(3):
            floats[place + i] = row[3 * (n + k) + i]
    control[abi.DRIVE_AT] += 1.0
    return row


@inner
def add_drivers(job, row, order, scales, x, work):
    """x[equation of a driver] += its rate (order 1) or acceleration (order 2), scaled; for rates also −∂f/∂t.

    In accelerations γ contains the terms of parameters that are functions of time.
    """
    n6 = WIDTH * job[abi.BODIES]
    places = integers_at(job[abi.DRIVERS])
    for k in range(job[abi.DRIVEN]):
        equation = places[2 * k + 1]
        x[n6 + equation] += scales[equation] * row[3 * k + order]
    if order == 1 and job[abi.TIMED] > 0:
        drift = piece(job, DRIFT, work)
        pattern = integers_at(job[abi.PATTERN])
        strip = tail(pattern, abi.P_HEADER)
        for _ in range(pattern[abi.P_STRIPS]):
            for i in range(strip[abi.S_ROWS]):
                k = strip[abi.S_FIRST] + i
                x[n6 + k] += scales[k] * drift[strip[abi.S_ROW] + i]
            strip = tail(strip, abi.S_BODIES + strip[abi.S_SLOTS])


@inner
def update_drift(job, q, work):
    """DRIFT ← −∂f/∂t of parameters that are functions of time: γ without velocities, with ċ in place of c̈."""
    floats = floats_at(job[abi.FLOATS])
    places = integers_at(job[abi.TIMED_PLACES])
    drift = piece(job, DRIFT, work)
    kept = tail(drift, job[abi.ROWS])
    for k in range(job[abi.TIMED]):
        place = places[k]
        kept[k] = floats[place + 2]
        floats[place + 2] = floats[place + 1]
        floats[place + 1] = 0.0
    evaluate(job, GAMMA, q, piece(job, REST, work), drift, drift, piece(job, EVALUATION, work))
    for k in range(job[abi.TIMED]):
        place = places[k]
        floats[place + 1] = floats[place + 2]
        floats[place + 2] = kept[k]


@inner
def update_forces(job, control, q, v, out, work):
    """out ← Q: gravity, the gyroscopic torque −ω × I ω, and all loads."""
    bodies = job[abi.BODIES]
    n6 = WIDTH * bodies
    mass = roots(job)
    gravity = tail(mass, 3 * n6)
    extra = floats_at(job[abi.EXTRA])
    for b in range(bodies):
        m = tail(mass, WIDTH * b)
        w = tail(v, WIDTH * b)
        f = tail(out, WIDTH * b)
        e = tail(extra, WIDTH * b)
        for i in range(3):
            f[i] = m[i] * gravity[i] + e[i]
        f[3] = (m[4] - m[5]) * w[4] * w[5] + e[3]
        f[4] = (m[5] - m[3]) * w[5] * w[3] + e[4]
        f[5] = (m[3] - m[4]) * w[3] * w[4] + e[5]
    if job[abi.LOADS] != 0:
        table = integers_at(job[abi.LOAD_INTS])
        call_evaluator(job[abi.LOADS], FORCE, table, floats_at(job[abi.LOAD_FLOATS]), q, v, out, control, work)


@inner
def call_algebra(job, op, control, work):
    """FACTOR or SOLVE with X."""
    return call_evaluator(
        job[abi.ALGEBRA],
        op,
        integers_at(job[abi.PATTERN]),
        control,
        piece(job, X, work),
        piece(job, SCRATCH, work),
        control,
        piece(job, JACOBIAN, work),
        piece(job, MATRIX, work),
    )


@inner
def call_pose_algebra(job, op, control, work):
    """FACTOR or SOLVE with X, without rate rows."""
    return call_evaluator(
        job[abi.POSE_ALGEBRA],
        op,
        integers_at(job[abi.POSE_PATTERN]),
        control,
        piece(job, X, work),
        piece(job, SCRATCH, work),
        control,
        piece(job, JACOBIAN, work),
        piece(job, POSE_MATRIX if job[abi.RATED] > 0 else MATRIX, work),
    )


@inner
def linearize(job, control, q, v, work):
    """f, γ and J at (q, v), Ĵ and its factor.  Redundant rows, seen by a small pivot, are factorised with EPSILON."""
    jacobian = piece(job, JACOBIAN, work)
    values = piece(job, VALUES, work)
    evaluate(job, MOTION, q, v, values, jacobian, piece(job, EVALUATION, work))
    if job[abi.TIMED] > 0:
        update_drift(job, q, work)
    n6 = WIDTH * job[abi.BODIES]
    mass = roots(job)
    pattern = integers_at(job[abi.PATTERN])
    active = floats_at(job[abi.ACTIVE])
    scales = piece(job, SCALES, work)
    scale_jacobian(pattern, tail(mass, 2 * n6), active, jacobian, scales)
    if job[abi.RATED] > 0:
        numbers = integers_at(job[abi.POSE_EQUATIONS])
        pose_scales = piece(job, POSE_SCALES, work)
        for k in range(job[abi.EQUATIONS] - job[abi.RATED]):
            pose_scales[k] = scales[numbers[k]]
    factorise(job, control, work)


@inner
def factorise(job, control, work):
    """The factor of Ĵ Ĵᵀ; with EPSILON on its diagonal where rows were or are redundant."""
    if job[abi.SOFT_SOLVER] != 0:
        integers_at(job[abi.SOFT_INTS])[abi.SOFT_READY] = 0
    for _ in range(2):
        redundant = control[abi.REDUNDANT] != 0.0
        control[abi.EPSILON] = EPSILON if redundant else 0.0
        control[abi.PIVOT] = 1.0
        call_algebra(job, FACTOR, control, work)
        if job[abi.RATED] > 0:
            pivot = control[abi.PIVOT]
            control[abi.PIVOT] = 1.0
            call_pose_algebra(job, FACTOR, control, work)
            control[abi.PIVOT] = min(pivot, control[abi.PIVOT])
        control[abi.PROXIMAL] = PROXIMAL if redundant else (1.0 if control[abi.PIVOT] < ACCURATE else 0.0)
        if redundant or control[abi.PIVOT] > REGULAR:
            break
        control[abi.REDUNDANT] = 1.0


@inner
def add_soft_rows(job, op, control, v, work):
    """Let soft rows act on the velocity or the acceleration in X."""
    if job[abi.SOFT_SOLVER] != 0:
        x = piece(job, X, work)
        call_evaluator(job[abi.SOFT_SOLVER], op, job, control, piece(job, NEW_Q, work), v, x, x, work)


@inner
def solve_acceleration(job, control, q, v, row, a, multipliers, work):
    """a ← v̇, multipliers ← λ (unscaled) with the factor at hand; γ is the second half of VALUES."""
    n6 = WIDTH * job[abi.BODIES]
    n = job[abi.EQUATIONS]
    mass = roots(job)
    scales = piece(job, SCALES, work)
    x = piece(job, X, work)
    values = piece(job, VALUES, work)
    update_forces(job, control, q, v, x, piece(job, EVALUATION, work))
    for i in range(n6):
        x[i] *= mass[2 * n6 + i]
    take_rows(integers_at(job[abi.PATTERN]), scales, tail(values, job[abi.ROWS]), 1.0, tail(x, n6))
    add_drivers(job, row, 2, scales, x, work)
    if job[abi.FEEDBACK] != 0:
        call_evaluator(job[abi.FEEDBACK], SOLVE, job, control, q, v, x, row, work)
    call_algebra(job, SOLVE, control, work)
    add_soft_rows(job, ACCELERATION, control, v, work)
    for i in range(n6):
        a[i] = x[i] * mass[2 * n6 + i]
    for i in range(n):
        multipliers[i] = scales[i] * x[n6 + i]


@inner
def update_gamma(job, q, v, work):
    """The second half of VALUES ← γ at (q, v)."""
    values = piece(job, VALUES, work)
    gamma = tail(values, job[abi.ROWS])
    evaluate(job, GAMMA, q, v, gamma, gamma, piece(job, EVALUATION, work))


@inner
def project_pose(job, control, step, work):
    """step ← the tangent vector nearest to it in the metric of M that removes f; returns its largest component."""
    n6 = WIDTH * job[abi.BODIES]
    mass = roots(job)
    x = piece(job, X, work)
    values = piece(job, VALUES, work)
    for i in range(n6):
        x[i] = step[i] * mass[n6 + i]
    scales = piece(job, POSE_SCALES if job[abi.RATED] > 0 else SCALES, work)
    take_rows(integers_at(job[abi.POSE_PATTERN]), scales, values, -1.0, tail(x, n6))
    patience = control[abi.LEAST_EPSILON]
    control[abi.LEAST_EPSILON] = 0.0  # f may be rounding, and the pose is projected again
    call_pose_algebra(job, SOLVE, control, work)
    control[abi.LEAST_EPSILON] = patience
    largest = 0.0
    for i in range(n6):
        step[i] = x[i] * mass[2 * n6 + i]
        largest = max(largest, abs(step[i]) / (control[abi.LENGTH] if i % WIDTH < 3 else 1.0))
    return largest


@inner
def approach(job, control, q, moved, back, work):
    """Bring a pose nearer to the constraints with the factor of the pose before it.

    J of redundant rows is evaluated on the constraints only.  Away from them redundant rows contradict each other, and
    their contradiction would be divided by EPSILON.
    back ← the tangent vector back to where the pose was.  The step is not orthogonal, since this J is not that of q.
    """
    n6 = WIDTH * job[abi.BODIES]
    step = piece(job, SHIFT, work)
    values = piece(job, VALUES, work)
    for i in range(n6):
        back[i] = 0.0
    for _ in range(2):
        evaluate(job, RESIDUAL, q, q, values, values, piece(job, EVALUATION, work))
        for i in range(n6):
            step[i] = 0.0
        control[abi.SHIFTED] = max(control[abi.SHIFTED], project_pose(job, control, step, work))
        retract(job, q, step, moved, work)
        for i in range(job[abi.COORDINATES]):
            q[i] = moved[i]
        for i in range(n6):
            back[i] -= step[i]


@inner
def is_closed(job, control, q, work):
    """Whether a pose meets every equation, up to CLOSED, or up to rounding if coordinates are large.

    If J has lost rank, or nearly so, a small shift does not show that a pose is closed.
    """
    far = 0.0
    for b in range(job[abi.BODIES]):
        for i in range(3):
            far = max(far, abs(q[POSE * b + i]))
    bar = max(CLOSED, ROUNDING * far / control[abi.LENGTH])
    values = piece(job, VALUES, work)
    evaluate(job, RESIDUAL, q, q, values, values, piece(job, EVALUATION, work))
    weights = tail(roots(job), 3 * WIDTH * job[abi.BODIES] + 3)
    active = floats_at(job[abi.ACTIVE])
    pattern = integers_at(job[abi.PATTERN])
    strip = tail(pattern, abi.P_HEADER)
    for _ in range(pattern[abi.P_STRIPS]):
        for i in range(strip[abi.S_ROWS]):
            k = strip[abi.S_FIRST] + i
            if not abs(values[strip[abi.S_ROW] + i]) * weights[k] * active[k] <= bar:
                return False
        strip = tail(strip, abi.S_BODIES + strip[abi.S_SLOTS])
    return True


@inner
def project_velocity(job, control, row, v, work):
    """v ← the velocity nearest to it in the metric of M with J v = ġ."""
    n6 = WIDTH * job[abi.BODIES]
    mass = roots(job)
    x = piece(job, X, work)
    for i in range(n6):
        x[i] = v[i] * mass[n6 + i]
    for i in range(job[abi.EQUATIONS]):
        x[n6 + i] = 0.0
    add_drivers(job, row, 1, piece(job, SCALES, work), x, work)
    call_algebra(job, SOLVE, control, work)
    add_soft_rows(job, VELOCITY, control, v, work)
    for i in range(n6):
        v[i] = x[i] * mass[2 * n6 + i]


@inner
def contradicts_rates(job, control, row, work):
    """Whether the velocities in X, just projected, miss an equation: rate rows and drivers contradict each other.

    Without rate rows such drivers cannot be followed by the poses either, which is seen there.
    """
    if job[abi.RATED] == 0 or control[abi.REDUNDANT] == 0.0:
        return False
    n6 = WIDTH * job[abi.BODIES]
    n = job[abi.EQUATIONS]
    x = piece(job, X, work)
    missing = tail(x, n6)
    size = 0.0
    for i in range(n6):
        size = max(size, abs(x[i]))
    for i in range(n):
        missing[i] = 0.0
    add_drivers(job, row, 1, piece(job, SCALES, work), x, work)
    for i in range(n):
        size = max(size, abs(missing[i]))
    subtract_times(integers_at(job[abi.PATTERN]), piece(job, JACOBIAN, work), x, missing)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(missing[i]))
    masses = tail(roots(job), n6)
    most = 0.0
    for i in range(n6):
        most = max(most, masses[i] * (control[abi.LENGTH] if i % WIDTH < 3 else 1.0))
    return largest > CONTRADICTED * size + STILL * most / max(abs(control[abi.STEP]), SHORTEST)
