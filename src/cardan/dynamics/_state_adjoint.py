"""What a reverse sweep does at one state: projections are made again and recorded, then differentiated.

The acceleration and both projections solve K x = b with one symmetric K = [[M, Jᵀ], [J, 0]], whose factor is at hand.
So the bars of a solution (a, λ) give those of its right-hand side by one more solution, K (μ, ν) = (ā, λ̄), and all
other derivatives are those of one scalar, with a, λ, μ, ν fixed:

    H = μ·Q(q, v, t) + ν·γ(q, v) − λ·J(q) μ − ν·J(q) a − μ·M a.

Projections have f̄ = −ν, and M v or M δ in place of Q.  J̄ of all solutions with one J is a sum of pairs, which is
pulled back once.

REPLAY  projects NOW_Q, NOW_V along SHIFT, as CLOSE of :mod:`._instant` does, and records each projection; returns
        their number.  op: the least number of projections, negative if J and its factor are at hand.
REVERSE Q_PART, V_PART ← bars before these projections, from those of the state (likewise), of its acceleration (A_PART)
        and multipliers (GIVEN_NU).  op: REVERSE plus the number of projections; also PREDICTED if the first J is that
        of an acceleration in FIRST_A, which Adams' corrector has read.
"""

from math import cos, sin, sqrt

from cardan.dynamics._equations import (
    ACCURATE,
    CLOSED,
    SOLVE,
    call_algebra,
    farthest,
    is_closed,
    mass_values,
    project_pose,
    project_velocity,
    retract,
)
from cardan.dynamics._instant import LINEARIZE, at_instant, current
from cardan.dynamics.adjoint_tables import CLOSURES as MOST_CLOSURES
from cardan.dynamics.adjoint_tables import CURVED, MASS_NUMBERS, Adjoint, AdjointWork, Closure
from cardan.dynamics.tables import HISTORY, WIDTH, Control, Driver, Rule, Weights, Work
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import call_evaluator, tail

REVERSE, PREDICTED = plain(64), plain(128)
PULL_CURVED = plain(CURVED)
NONE = plain(0)
PREDICTOR, CORRECTOR = range(2)  # rules of Weights
SMALL = 1e-2  # square of an angle [rad²] below which series are used


@inner
def copy(n, x, out):
    """out ← x."""
    for i in range(n):
        out[i] = x[i]


@inner
def clear(n, out):
    """out ← 0."""
    for i in range(n):
        out[i] = 0.0


@inner
def closure(adj, own, k):
    """The record of a projection."""
    return Closure(adj.closure_pieces, tail(own.tape, adj.closure_pieces[7] * k))


@inner
def replay(adj, job, control, least, is_stale, own, work):
    """REPLAY."""
    n6 = WIDTH * job.bodies
    n = job.equations
    q = own.now_q
    v = own.now_v
    step = own.shift
    x = work.x
    scales = work.scales
    count = 0
    is_open = True
    while is_open:
        if is_stale:
            at_instant(LINEARIZE, job, control, q, v, own.now_a, own.now_multipliers, work)
        this = closure(adj, own, count)
        copy(job.coordinates, q, this.q)
        copy(n6, step, this.step)
        copy(n6, v, this.v)
        shift = project_pose(job, control, step, work)
        copy(n6, step, this.shift)
        for i in range(n):
            this.pose_multipliers[i] = scales[i] * x[n6 + i]
        retract(job, q, step, own.moved, work)
        copy(job.coordinates, own.moved, q)
        project_velocity(job, control, current(job, control), v, work)
        copy(n6, v, this.new_v)
        for i in range(n):
            this.multipliers[i] = scales[i] * x[n6 + i]
        clear(n6, step)
        count += 1
        is_small = shift * shift * farthest(job, q) <= CLOSED * control.length
        is_accurate = control.redundant == 0.0 and control.pivot > ACCURATE and is_small
        is_done = shift <= control.exact and (is_accurate or is_closed(job, control, q, work))
        is_open = count < MOST_CLOSURES and (count < least or not is_done)
        is_stale = True
    return count


@inner
def solve(job, control, top, low, has_low, own, work):
    """MU, NU ← K⁻¹ (top, low) with the factor at hand."""
    n6 = WIDTH * job.bodies
    x = work.x
    inverse_roots = mass_values(job).inverse_roots
    scales = work.scales
    for i in range(n6):
        x[i] = top[i] * inverse_roots[i]
    for i in range(job.equations):
        x[n6 + i] = scales[i] * low[i] if has_low else 0.0
    call_algebra(job, SOLVE, control, work)
    for i in range(n6):
        own.mu[i] = x[i] * inverse_roots[i]
    for i in range(job.equations):
        own.nu[i] = x[n6 + i] * scales[i]


@inner
def add_mass_bar(adj, bodies, sign, mu, a):
    """Bars of the masses: += sign · ∂(μ·M a)/∂M."""
    for b in range(bodies):
        bars = tail(adj.masses, MASS_NUMBERS * b)
        u = tail(mu, WIDTH * b)
        w = tail(a, WIDTH * b)
        bars[0] += sign * (u[0] * w[0] + u[1] * w[1] + u[2] * w[2])
        for i in range(3):
            for j in range(3):
                bars[1 + 3 * i + j] += sign * u[3 + i] * w[3 + j]


@inner
def add_force_bars(adj, job, mu, v, v_bar):
    """Those of μ·Q of gravity and of the gyroscopic torque −ω × I ω."""
    masses = mass_values(job).masses
    gravity = mass_values(job).gravity
    for b in range(job.bodies):
        bars = tail(adj.masses, MASS_NUMBERS * b)
        m = tail(masses, WIDTH * b)
        u = tail(mu, WIDTH * b)
        w = tail(v, WIDTH * b)
        g = tail(v_bar, WIDTH * b)
        for i in range(3):
            bars[0] += u[i] * gravity[i]
            adj.gravity[i] += m[0] * u[i]
        for i in range(3):
            j = (i + 1) % 3
            k = (i + 2) % 3
            c = u[3 + j] * w[3 + k] - u[3 + k] * w[3 + j]  # of μ × ω
            for s in range(3):
                bars[1 + 3 * i + s] -= c * w[3 + s]
            factor = (m[3 + j] - m[3 + k]) * u[3 + i]
            g[3 + j] += factor * w[3 + k]
            g[3 + k] += factor * w[3 + j]


@inner
def add_pair(job, number, multipliers, vector, own):
    """A pair of J̄: −multipliers times vector."""
    n6 = WIDTH * job.bodies
    n = job.equations
    y = tail(own.vectors, number * n6)
    w = tail(own.pair_weights, (1 + number) * n)
    for i in range(n6):
        y[i] = vector[i]
    for i in range(n):
        w[i] = -multipliers[i]


@inner
def add_drive_bars(adj, job, control, order, nu):
    """Bars of the rates or accelerations of drivers: += ν."""
    if job.driven > 0:
        first = 3 * job.driven * (int(control.drive_at) - 1)
        for k in range(job.driven):
            adj.drive[first + 3 * k + order] += nu[Driver(job.drivers, k).equation]


@inner
def reverse_acceleration(adj, job, control, is_first, pairs, own, work):
    """Bars of the state whose acceleration this is; MU, NU ← those of its right-hand side."""
    q = own.first_q if is_first else own.now_q
    v = own.first_v if is_first else own.now_v
    a = own.first_a if is_first else own.now_a
    multipliers = own.first_multipliers if is_first else own.now_multipliers
    v_part = own.pulled if is_first else own.v_part
    solve(job, control, own.a_part, own.given_nu, not is_first, own, work)
    add_drive_bars(adj, job, control, 2, own.nu)
    add_force_bars(adj, job, own.mu, v, v_part)
    if job.loads != 0:
        loads = adj.loads
        call_evaluator(adj.load_pull_back, NONE, loads.as_ints, v, q, own.mu, own.q_part, v_part, own.loads)
    table = adj.pull
    call_evaluator(adj.pull_back, PULL_CURVED, table.as_ints, own.nu, q, v, own.q_part, v_part, own.pull)
    add_pair(job, pairs, multipliers, own.mu, own)
    add_pair(job, pairs + 1, own.nu, a, own)
    add_mass_bar(adj, job.bodies, -1.0, own.mu, a)
    return pairs + 2


@inner
def reverse_velocity(adj, job, control, pairs, this, own, work):
    """V_PART ← bar of the velocity before its projection."""
    n6 = WIDTH * job.bodies
    masses = mass_values(job).masses
    solve(job, control, own.v_part, own.v_part, False, own, work)
    add_drive_bars(adj, job, control, 1, own.nu)
    add_pair(job, pairs, this.multipliers, own.mu, own)
    add_pair(job, pairs + 1, own.nu, this.new_v, own)
    add_mass_bar(adj, job.bodies, 1.0, own.mu, this.v)
    add_mass_bar(adj, job.bodies, -1.0, own.mu, this.new_v)
    for i in range(n6):
        own.v_part[i] = masses[i] * own.mu[i]
    return pairs + 2


@inner
def add_retraction_bars(bodies, step, bar, q_bar, step_bar):
    """Of q ⊕ step: bars of q and of the step, from the bar of the pose in its own tangent."""
    for b in range(bodies):
        o = WIDTH * b
        for i in range(3):
            q_bar[o + i] += bar[o + i]
            step_bar[o + i] += bar[o + i]
        x, y, z = step[o + 3], step[o + 4], step[o + 5]
        u, v, w = bar[o + 3], bar[o + 4], bar[o + 5]
        square = x * x + y * y + z * z
        if square < SMALL:
            second = 0.5 - square / 24.0 * (1.0 - square / 30.0 * (1.0 - square / 56.0 * (1.0 - square / 90.0)))
            third = (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0 * (1.0 - square / 110.0)))) / 6.0
            first = 1.0 - square * third
        else:
            angle = sqrt(square)
            first = sin(angle) / angle
            second = (1.0 - cos(angle)) / square
            third = (1.0 - first) / square
        p, q, r = y * w - z * v, z * u - x * w, x * v - y * u  # step × bar
        pp, qq, rr = y * r - z * q, z * p - x * r, x * q - y * p
        q_bar[o + 3] += u + first * p + second * pp
        q_bar[o + 4] += v + first * q + second * qq
        q_bar[o + 5] += w + first * r + second * rr
        step_bar[o + 3] += u + second * p + third * pp
        step_bar[o + 4] += v + second * q + third * qq
        step_bar[o + 5] += w + second * r + third * rr


@inner
def reverse_pose(adj, job, control, pairs, this, own, work):
    """Q_PART, SHIFT_BAR ← bars of the pose before its projection, and of the step along which it is projected."""
    n6 = WIDTH * job.bodies
    masses = mass_values(job).masses
    copy(n6, own.q_part, own.moved)
    clear(n6, own.q_part)
    clear(n6, own.shift_bar)
    add_retraction_bars(job.bodies, this.shift, own.moved, own.q_part, own.shift_bar)
    solve(job, control, own.shift_bar, own.shift_bar, False, own, work)
    add_pair(job, pairs, this.pose_multipliers, own.mu, own)
    add_pair(job, pairs + 1, own.nu, this.shift, own)
    add_mass_bar(adj, job.bodies, 1.0, own.mu, this.step)
    add_mass_bar(adj, job.bodies, -1.0, own.mu, this.shift)
    for i in range(n6):
        own.shift_bar[i] = masses[i] * own.mu[i]
    for i in range(job.equations):
        own.pair_weights[i] = -own.nu[i]
    return pairs + 2


@inner
def reverse_corrector(job, control, own):
    """Bars of the accelerations that Adams' corrector reads: A_PART of the first, A_BARS of the others; V_BAR."""
    n6 = WIDTH * job.bodies
    h = control.step
    k = int(control.order)
    head = int(control.head)
    corrector = Rule(Weights(own.weights).rules, CORRECTOR)
    predictor = Rule(Weights(own.weights).rules, PREDICTOR)
    for i in range(n6):
        own.a_part[i] = h * corrector.once[0] * own.v_part[i] + h * h * corrector.twice[0] * own.shift_bar[i]
        own.v_bar[i] += own.v_part[i]
    for j in range(k):
        bar = tail(own.a_bars, ((head - j) % HISTORY) * n6)
        once = h * corrector.once[j + 1]
        twice = h * h * (corrector.twice[j + 1] - predictor.twice[j])
        for i in range(n6):
            bar[i] += once * own.v_part[i] + twice * own.shift_bar[i]


@inner
def reverse(adj, job, control, count, is_predicted, own, work):
    """REVERSE."""
    pairs = reverse_acceleration(adj, job, control, False, 0, own, work)
    for c in range(count - 1, -1, -1):
        this = closure(adj, own, c)
        if c < count - 1:
            at_instant(LINEARIZE, job, control, this.q, this.v, own.now_a, own.now_multipliers, work)
            pairs = 0
        pairs = reverse_velocity(adj, job, control, pairs, this, own, work)
        pairs = reverse_pose(adj, job, control, pairs, this, own, work)
        if c == 0 and is_predicted:
            reverse_corrector(job, control, own)
            clear(WIDTH * job.bodies, own.pulled)
            pairs = reverse_acceleration(adj, job, control, True, pairs, own, work)
        table = adj.pull
        bars = own.q_part
        weights = own.pair_weights
        call_evaluator(adj.pull_back, pairs, table.as_ints, weights, this.q, own.vectors, bars, bars, own.pull)


def _at_state(op, ints, floats, q, v, out, unused, memory):
    adj = Adjoint(ints)
    job = adj.job
    control = Control(floats)
    own = AdjointWork(adj.pieces, memory)
    work = Work(job.pieces, adj.memory)
    if op >= REVERSE:
        reverse(adj, job, control, op % REVERSE, op >= PREDICTED, own, work)
        return 0
    return replay(adj, job, control, abs(op), op > 0, own, work)


AT_STATE = evaluator(_at_state)
