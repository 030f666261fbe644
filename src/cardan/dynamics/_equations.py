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

The row g of a joint's inertia I has a compliance: g v̇ − μ/I = γ (:mod:`cardan.dynamics.tables`).  In a projection it
belongs to the metric M + I gᵀg, and is no equation: there its c is ĝ b.

M is singular where bodies are massless, or point masses.  M^½ then contains pseudo-masses E, and the first two solves
are repeated as

    (M + E) a' + Jᵀλ = Q + E a,   J a' = γ + g̈,

until a' = a, so that E has no effect.  A pass multiplies the error along a free motion n by nᵀE n / nᵀ(M + E) n, which
is small if ker M ∩ ker J = {0}; if it is not, slow passes are extrapolated.  Where a force acts on a motion without
mass, passes do not end, and the acceleration is NaN.  A motion without mass and force keeps its velocity.
"""

from math import sqrt

from cardan.dynamics import tables
from cardan.dynamics._dual import dot_6, subtract_times
from cardan.dynamics.tables import WIDTH, Driver, Jet, MassValues, Pattern
from cardan.kernel.fields import after
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import call_evaluator, tail
from cardan.solvers import _job
from cardan.solvers import tables as solvers_tables
from cardan.solvers._job import evaluate
from cardan.system.tables import POSE

REGULAR = 1e-12  # a smaller pivot of Ĵ Ĵᵀ, whose diagonal is one: rows may be redundant
ACCURATE = 1e-5  # with a smaller pivot a solution is refined
EPSILON = 1e-10  # added to the diagonal where rows are redundant
PROXIMAL = 2.0  # iterations that remove the error of EPSILON
STILL = 1e-12  # of the extent in a step, or [rad]: slower velocities are rounding
SHORTEST = 1e-12  # [s], of a step that is not known yet
CONTRADICTED = 1e-6  # of the largest velocity or rate: equations that are missed by more contradict each other
CLOSED = 5e-13  # residual of a closed pose, relative to the extent, or in radians
MOST_TILT = 5e-7  # [rad] by which rounding of lengths may open an angle
ROUNDING = tables.ROUNDING
PASSES = 60  # at the most, where M is singular
SETTLED = 1e-13  # of u and b: a smaller error of the last pass is rounding
BALANCED = 1e-12  # likewise: a smaller change, which is the force that is left along directions without mass
UNMOVED = 1e-15  # likewise: a change that is rounding
SLOW = 0.05  # of the change in the pass before: if it is more, passes are extrapolated
ENDLESS = 1.0 - 1e-6  # likewise: a motion without mass
NAN = float("nan")

RESIDUAL = plain(solvers_tables.RESIDUAL)
GAMMA, MOTION = plain(solvers_tables.GAMMA), plain(solvers_tables.MOTION)
FACTOR, SOLVE, FORCE = map(plain, (tables.FACTOR, tables.SOLVE, tables.FORCE))
VELOCITY, ACCELERATION = plain(tables.VELOCITY), plain(tables.ACCELERATION)


@inner
def mass_values(job):
    """M, its roots, gravity, and weights of residuals."""
    return MassValues(job.mass_pieces, job.mass_memory)


@inner
def retract(job, q, step, out, work):
    """out ← q moved by a tangent vector."""
    _job.retract(job, q, step, out, work.evaluation)


@inner
def scale_jacobian(pattern, inverse_roots, active, jacobian, scales):
    """Ĵ ← D J M^−½ in place, and D, such that every row of Ĵ has length one, or zero where it is not active."""
    strip = pattern.strips
    for _ in range(pattern.strip_count):
        width = WIDTH * strip.slots
        row = tail(jacobian, strip.entry)
        for i in range(strip.rows):
            square = 0.0
            for s in range(strip.slots):
                w = tail(inverse_roots, WIDTH * strip.bodies[s])
                block = tail(row, WIDTH * s)
                for j in range(WIDTH):
                    e = block[j] * w[j]
                    block[j] = e
                    square += e * e
            d = active[strip.first + i] * (1.0 / sqrt(square) if square > 0.0 else 1.0)
            scales[strip.first + i] = d
            for j in range(width):
                row[j] *= d
            row = tail(row, width)
        strip = after(strip, strip.slots)


@inner
def take_rows(pattern, scales, rows, sign, out):
    """out ← sign · D · those of the rows that are equations."""
    strip = pattern.strips
    for _ in range(pattern.strip_count):
        for i in range(strip.rows):
            k = strip.first + i
            out[k] = sign * scales[k] * rows[strip.row + i]
        strip = after(strip, strip.slots)


@inner
def scale_compliances(job, scales, work):
    """E ← D²/I of the rows of joints' inertias, for accelerations and velocities, and for poses."""
    given = job.compliances
    found = work.compliances
    for k in range(job.equations):
        found[k] = scales[k] * scales[k] * given[k]
    if job.rated > 0:
        numbers = job.pose_equations
        of_poses = work.pose_compliances
        for k in range(job.equations - job.rated):
            of_poses[k] = found[numbers[k]]


@inner
def leave_inertias(pattern, compliances, jacobian, x):
    """c ← Ĵ b in the rows of joints' inertias, so that they are weights of a projection and no equations."""
    n6 = WIDTH * pattern.bodies
    strip = pattern.strips
    for _ in range(pattern.strip_count):
        for i in range(strip.rows):
            k = strip.first + i
            if compliances[k] > 0.0:
                row = tail(jacobian, strip.entry + i * WIDTH * strip.slots)
                e = 0.0
                for s in range(strip.slots):
                    e += dot_6(tail(row, WIDTH * s), tail(x, WIDTH * strip.bodies[s]))
                x[n6 + k] = e
        strip = after(strip, strip.slots)


@inner
def set_drivers(job, control):
    """Write the values of the next row of DRIVE to the floats."""
    n = job.driven
    first = (n + job.timed) * int(control.drive_at)
    floats = job.floats
    for k in range(n):
        floats[Driver(job.drivers, k).place] = Jet(job.drive, first + k).value
    for k in range(job.timed):
        jet = Jet(job.drive, first + n + k)
        number = Jet(tail(floats, job.timed_places[k]))
        number.value = jet.value
        number.rate = jet.rate
        number.acceleration = jet.acceleration
    control.drive_at += 1.0


@inner
def add_drivers(job, row, order, scales, x, work):
    """x[equation of a driver] += its rate (order 1) or acceleration (order 2), scaled; for rates also −∂f/∂t.

    In accelerations γ contains the terms of parameters that are functions of time.
    """
    n6 = WIDTH * job.bodies
    for k in range(job.driven):
        equation = Driver(job.drivers, k).equation
        jet = Jet(row, k)
        x[n6 + equation] += scales[equation] * (jet.rate if order == 1 else jet.acceleration)
    if order == 1 and job.timed > 0:
        drift = work.drift
        pattern = Pattern(job.pattern)
        strip = pattern.strips
        for _ in range(pattern.strip_count):
            for i in range(strip.rows):
                k = strip.first + i
                x[n6 + k] += scales[k] * drift[strip.row + i]
            strip = after(strip, strip.slots)


@inner
def update_drift(job, q, work):
    """DRIFT ← −∂f/∂t of parameters that are functions of time: γ without velocities, with ċ in place of c̈."""
    floats = job.floats
    places = job.timed_places
    drift = work.drift
    kept = tail(drift, job.rows)
    for k in range(job.timed):
        number = Jet(tail(floats, places[k]))
        kept[k] = number.acceleration
        number.acceleration = number.rate
        number.rate = 0.0
    evaluate(job, GAMMA, q, work.rest, drift, drift, work.evaluation)
    for k in range(job.timed):
        number = Jet(tail(floats, places[k]))
        number.rate = number.acceleration
        number.acceleration = kept[k]


@inner
def update_forces(job, control, q, v, out, work):
    """out ← Q: gravity, the gyroscopic torque −ω × I ω, and all loads."""
    bodies = job.bodies
    masses = mass_values(job).masses
    gravity = mass_values(job).gravity
    extra = job.extra
    for b in range(bodies):
        m = tail(masses, WIDTH * b)
        w = tail(v, WIDTH * b)
        f = tail(out, WIDTH * b)
        e = tail(extra, WIDTH * b)
        for i in range(3):
            f[i] = m[i] * gravity[i] + e[i]
        f[3] = (m[4] - m[5]) * w[4] * w[5] + e[3]
        f[4] = (m[5] - m[3]) * w[5] * w[3] + e[4]
        f[5] = (m[3] - m[4]) * w[3] * w[4] + e[5]
    if job.loads != 0:
        floats = control.as_floats
        call_evaluator(job.loads, FORCE, job.load_table.as_ints, job.load_floats, q, v, out, floats, work)


@inner
def call_algebra(job, op, control, work):
    """FACTOR or SOLVE with X."""
    return _job.call_algebra(job, op, control, work.x, work.scratch, work.compliances, work.jacobian, work.matrix)


@inner
def call_pose_algebra(job, op, control, work):
    """FACTOR or SOLVE with X, without rate rows."""
    return call_evaluator(
        job.pose_algebra,
        op,
        job.pose_pattern.as_ints,
        control.as_floats,
        work.x,
        work.scratch,
        work.pose_compliances if job.rated > 0 else work.compliances,
        work.jacobian,
        work.pose_matrix if job.rated > 0 else work.matrix,
    )


@inner
def begin_passes(job, keeps, work):
    """Keep X = (b, c); keeps: what b has along directions without mass is not a force, but the last u."""
    n6 = WIDTH * job.bodies
    masses = mass_values(job).masses
    x = work.x
    right = work.passes
    last = tail(right, n6 + job.equations)
    change = tail(last, n6)
    for i in range(n6 + job.equations):
        right[i] = x[i]
    for i in range(n6):
        last[i] = 0.0
        change[i] = 0.0
        if keeps and masses[i] == 0.0:
            last[i] = x[i]
            right[i] = 0.0


@inner
def is_unsettled(job, number, work):
    """Whether another pass is needed; then X ← its right-hand side.  number: of the pass, from 0."""
    n6 = WIDTH * job.bodies
    masses = mass_values(job).masses
    x = work.x
    right = work.passes
    last = tail(right, n6 + job.equations)
    change = tail(last, n6)
    moved = 0.0
    size = 0.0
    product = 0.0
    square = 0.0
    for i in range(n6):
        size = max(size, abs(x[i]), abs(right[i]))
        if masses[i] == 0.0:
            e = x[i] - last[i]
            moved = max(moved, abs(e))
            product += e * change[i]
            square += change[i] * change[i]
            change[i] = e
    rate = abs(product) / square if square > 0.0 else 1.0
    is_balanced = moved <= BALANCED * size and rate * moved <= SETTLED * size * (1.0 - rate)
    if is_balanced or not moved > UNMOVED * size:
        return False
    is_leap = number % 3 == 2 and SLOW < rate < ENDLESS
    gain = rate / (1.0 - rate) if is_leap else 0.0
    for i in range(n6):
        if masses[i] == 0.0:
            last[i] = x[i] + gain * change[i]
            if is_leap:
                change[i] = 0.0
        x[i] = right[i] + last[i]
    for i in range(n6, n6 + job.equations):
        x[i] = right[i]
    return True


@inner
def solve(job, control, keeps, work):
    """SOLVE with X, where M may be singular.  keeps: as of begin_passes; then passes that do not end are no failure."""
    if job.massless != 0:
        begin_passes(job, keeps, work)
    number = 0
    is_open = True
    while is_open:
        call_algebra(job, SOLVE, control, work)
        is_open = False
        if job.massless != 0 and number < PASSES:
            is_open = is_unsettled(job, number, work)
        elif number == PASSES and not keeps:
            work.x[0] = NAN
        number += 1


@inner
def linearize(job, control, q, v, work):
    """f, γ and J at (q, v), Ĵ and its factor.  Redundant rows, seen by a small pivot, are factorised with EPSILON."""
    jacobian = work.jacobian
    values = work.values
    evaluate(job, MOTION, q, v, values, jacobian, work.evaluation)
    if job.timed > 0:
        update_drift(job, q, work)
    scale_equations(job, control, work)
    factorise(job, control, work)


@inner
def scale_equations(job, control, work):
    """Ĵ ← D J M^−½, and D, of all equations and of those of poses; compliances."""
    scales = work.scales
    scale_jacobian(Pattern(job.pattern), mass_values(job).inverse_roots, job.active, work.jacobian, scales)
    if job.rated > 0:
        numbers = job.pose_equations
        pose_scales = work.pose_scales
        for k in range(job.equations - job.rated):
            pose_scales[k] = scales[numbers[k]]
    if control.compliant > 0.0:
        scale_compliances(job, scales, work)


@inner
def factorise(job, control, work):
    """The factor of Ĵ Ĵᵀ; with EPSILON on its diagonal where rows were or are redundant."""
    if job.soft_solver != 0:
        job.soft.ready = 0
    for _ in range(2):
        redundant = control.redundant != 0.0
        control.epsilon = EPSILON if redundant else 0.0
        control.pivot = 1.0
        call_algebra(job, FACTOR, control, work)
        if job.rated > 0:
            pivot = control.pivot
            control.pivot = 1.0
            call_pose_algebra(job, FACTOR, control, work)
            control.pivot = min(pivot, control.pivot)
        is_rough = control.pivot < ACCURATE or job.massless != 0
        control.proximal = PROXIMAL if redundant else (1.0 if is_rough else 0.0)
        if redundant or control.pivot > REGULAR:
            break
        control.redundant = 1.0


@inner
def add_soft_rows(job, op, control, v, work):
    """Let soft rows act on the velocity or the acceleration in X."""
    if job.soft_solver != 0:
        x = work.x
        call_evaluator(job.soft_solver, op, job.as_ints, control.as_floats, work.new_q, v, x, x, work.memory)


@inner
def solve_acceleration(job, control, q, v, row, a, multipliers, work):
    """a ← v̇, multipliers ← λ (unscaled) with the factor at hand; γ is the second half of VALUES."""
    n6 = WIDTH * job.bodies
    n = job.equations
    inverse_roots = mass_values(job).inverse_roots
    scales = work.scales
    x = work.x
    values = work.values
    update_forces(job, control, q, v, x, work.evaluation)
    for i in range(n6):
        x[i] *= inverse_roots[i]
    take_rows(Pattern(job.pattern), scales, tail(values, job.rows), 1.0, tail(x, n6))
    add_drivers(job, row, 2, scales, x, work)
    if job.feedback != 0:
        call_evaluator(job.feedback, SOLVE, job.as_ints, control.as_floats, q, v, x, row.as_floats, work.memory)
    solve(job, control, False, work)
    add_soft_rows(job, ACCELERATION, control, v, work)
    for i in range(n6):
        a[i] = x[i] * inverse_roots[i]
    for i in range(n):
        multipliers[i] = scales[i] * x[n6 + i]


@inner
def update_gamma(job, q, v, work):
    """The second half of VALUES ← γ at (q, v)."""
    values = work.values
    gamma = tail(values, job.rows)
    evaluate(job, GAMMA, q, v, gamma, gamma, work.evaluation)


@inner
def project_pose(job, control, step, work):
    """step ← the tangent vector nearest to it in the metric of M that removes f; returns its largest component."""
    n6 = WIDTH * job.bodies
    roots = mass_values(job).roots
    inverse_roots = mass_values(job).inverse_roots
    x = work.x
    values = work.values
    for i in range(n6):
        x[i] = step[i] * roots[i]
    scales = work.pose_scales if job.rated > 0 else work.scales
    take_rows(job.pose_pattern, scales, values, -1.0, tail(x, n6))
    if control.compliant > 0.0:
        compliances = work.pose_compliances if job.rated > 0 else work.compliances
        leave_inertias(job.pose_pattern, compliances, work.jacobian, x)
    patience = control.least_epsilon
    control.least_epsilon = 0.0  # f may be rounding, and the pose is projected again
    call_pose_algebra(job, SOLVE, control, work)
    control.least_epsilon = patience
    largest = 0.0
    for i in range(n6):
        step[i] = x[i] * inverse_roots[i]
        largest = max(largest, abs(step[i]) / (control.length if i % WIDTH < 3 else 1.0))
    return largest


@inner
def approach(job, control, q, moved, back, work):
    """Bring a pose nearer to the constraints with the factor of the pose before it.

    J of redundant rows is evaluated on the constraints only.  Away from them redundant rows contradict each other, and
    their contradiction would be divided by EPSILON.
    back ← the tangent vector back to where the pose was.  The step is not orthogonal, since this J is not that of q.
    """
    n6 = WIDTH * job.bodies
    step = work.shift
    values = work.values
    for i in range(n6):
        back[i] = 0.0
    for _ in range(2):
        evaluate(job, RESIDUAL, q, q, values, values, work.evaluation)
        for i in range(n6):
            step[i] = 0.0
        control.shifted = max(control.shifted, project_pose(job, control, step, work))
        retract(job, q, step, moved, work)
        for i in range(job.coordinates):
            q[i] = moved[i]
        for i in range(n6):
            back[i] -= step[i]


@inner
def farthest(job, q):
    """The largest coordinate [m]."""
    far = 0.0
    for b in range(job.bodies):
        for i in range(3):
            far = max(far, abs(q[POSE * b + i]))
    return far


@inner
def farthest_of(strip, q):
    """The largest coordinate [m] of the bodies of a strip."""
    far = 0.0
    for s in range(strip.slots):
        pose = tail(q, POSE * strip.bodies[s])
        far = max(far, abs(pose[0]), abs(pose[1]), abs(pose[2]))
    return far


@inner
def rounding_of(job, control, q):
    """The rounding of the largest coordinate, relative to the extent."""
    return ROUNDING * farthest(job, q) / control.length


@inner
def row_rounding(rounding, far, control, most_tilt):
    """The rounding of a weighted residual, of bodies with coordinates up to far [m]; rounding: of MassValues.

    A length is rounded as coordinates are.  Redundant lengths contradict each other by that, and turn bodies: then an
    angle is allowed this tilt, but at most most_tilt [rad].
    """
    if rounding > 0.0:
        return rounding * far
    return min(ROUNDING * far / control.length, most_tilt) if control.redundant != 0.0 else 0.0


@inner
def is_closed(job, control, q, work):
    """Whether a pose meets every equation, up to CLOSED, or up to rounding if the coordinates of its bodies are large.

    If J has lost rank, or nearly so, a small shift does not show that a pose is closed.
    """
    values = work.values
    evaluate(job, RESIDUAL, q, q, values, values, work.evaluation)
    weights = mass_values(job).weights
    roundings = mass_values(job).roundings
    active = job.active
    pattern = Pattern(job.pattern)
    strip = pattern.strips
    for _ in range(pattern.strip_count):
        far = farthest_of(strip, q)
        for i in range(strip.rows):
            k = strip.first + i
            bar = max(CLOSED, row_rounding(roundings[k], far, control, MOST_TILT))
            if not abs(values[strip.row + i]) * weights[k] * active[k] <= bar:
                return False
        strip = after(strip, strip.slots)
    return True


@inner
def is_opposed(job, work):
    """Whether an axis in VALUES points against the one that it is aligned with: its guard z·v − 1 is −2, not 0."""
    for k in range(job.guard_count):
        if work.values[job.guards[k]] < -1.0:
            return True
    return False


@inner
def project_velocity(job, control, row, v, work):
    """v ← the velocity nearest to it in the metric of M with J v = ġ."""
    n6 = WIDTH * job.bodies
    roots = mass_values(job).roots
    inverse_roots = mass_values(job).inverse_roots
    x = work.x
    for i in range(n6):
        x[i] = v[i] * roots[i]
    for i in range(job.equations):
        x[n6 + i] = 0.0
    add_drivers(job, row, 1, work.scales, x, work)
    if control.compliant > 0.0:
        leave_inertias(Pattern(job.pattern), work.compliances, work.jacobian, x)
    solve(job, control, True, work)
    add_soft_rows(job, VELOCITY, control, v, work)
    for i in range(n6):
        v[i] = x[i] * inverse_roots[i]


@inner
def contradicts_rates(job, control, row, work):
    """Whether the velocities in X, just projected, miss an equation: rate rows and drivers contradict each other.

    Without rate rows such drivers cannot be followed by the poses either, which is seen there.
    """
    if job.rated == 0 or control.redundant == 0.0:
        return False
    n6 = WIDTH * job.bodies
    n = job.equations
    x = work.x
    missing = tail(x, n6)
    size = 0.0
    for i in range(n6):
        size = max(size, abs(x[i]))
    for i in range(n):
        missing[i] = 0.0
    add_drivers(job, row, 1, work.scales, x, work)
    for i in range(n):
        size = max(size, abs(missing[i]))
    subtract_times(Pattern(job.pattern), work.jacobian, x, missing)
    largest = 0.0
    for i in range(n):
        if control.compliant == 0.0 or work.compliances[i] == 0.0:
            largest = max(largest, abs(missing[i]))
    roots = mass_values(job).roots
    most = 0.0
    for i in range(n6):
        most = max(most, roots[i] * (control.length if i % WIDTH < 3 else 1.0))
    return largest > CONTRADICTED * size + STILL * most / max(abs(control.step), SHORTEST)
