"""The reverse sweep of a run: the discrete adjoint of the steps of :mod:`._adams` and :mod:`._runge_kutta`.

Each step is made again from the rows of the run, and then reversed:

    start        the projection onto the constraints, twice, since J must be that of the projected pose to first order
    Adams        v_p, q_p by the predictor; a_p, J and its factor there; the corrector; one projection; v̇ at its end
    Runge–Kutta  stages at poses q ⊕ θ with θ̇ = v + ½ θ × v + c(θ²) θ × (θ × v), each of them projected; v̇ at the end

Where rows are redundant, predicted poses are brought nearer to the constraints, as in the run.  The bars of a pose are
taken to be those before this: they differ by the derivative of the predictor's error.

Bars of the last accelerations are kept in a ring, as accelerations are in the run.  All that belongs to one state is
in :mod:`._state_adjoint`.
"""

from math import sin, sqrt

from cardan.dynamics._adams import add_magnus, integrals
from cardan.dynamics._equations import retract, set_drivers
from cardan.dynamics._instant import ACCELERATE, APPROACH, CURVATURE, LINEARIZE, at_instant
from cardan.dynamics._runge_kutta import tangent_rate
from cardan.dynamics._state_adjoint import PREDICTED, REVERSE, add_retraction_bars, clear, copy
from cardan.dynamics.adjoint_tables import BEGUN, Adjoint, AdjointWork
from cardan.dynamics.tables import BEGIN as BEGIN_PHASE
from cardan.dynamics.tables import CORRECT, HISTORY, PREDICT, WIDTH, Control, Rule, Weights, Work
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import call_evaluator, cut, tail
from cardan.system.tables import POSE

PREDICTOR, CORRECTOR = range(2)  # rules of Weights
FEW = 0.09  # square of an angle [rad²] below which series are used
SAME_STEP = 1e-9  # steps that differ by less, relatively, have the same weights


@inner
def row_size(job):
    """Columns of a row."""
    return 1 + job.coordinates + 2 * WIDTH * job.bodies + job.equations


@inner
def call_state(adj, op, control, own):
    """Call the kernel of :mod:`._state_adjoint`."""
    q = own.now_q
    return call_evaluator(adj.at_state, op, adj.as_ints, control.as_floats, q, q, q, q, own.memory)


@inner
def add_cost(adj, job, n, own):
    """Bars of the state of a row: += those of the cost."""
    n6 = WIDTH * job.bodies
    of_row = cut(adj.of_rows, (3 * n6 + job.equations) * n, 3 * n6 + job.equations)
    ring = tail(own.a_bars, (n % HISTORY) * n6)
    for i in range(n6):
        own.q_bar[i] += of_row[i]
        own.v_bar[i] += of_row[n6 + i]
        ring[i] += of_row[2 * n6 + i]
    for i in range(job.equations):
        own.given_nu[i] = of_row[3 * n6 + i]


@inner
def set_time(adj, job, control, n, stage, time):
    """The time of an evaluation, and the drivers' values there."""
    control.ask_time = time
    control.drive_at = float(adj.places[n] + stage)
    if job.driven > 0:
        set_drivers(job, control)
    else:
        control.drive_at += 1.0


@inner
def take_bars(job, n, own):
    """Bars of an evaluation at the end of a step ← those of the state; these become zero."""
    n6 = WIDTH * job.bodies
    ring = tail(own.a_bars, (n % HISTORY) * n6)
    copy(n6, own.q_bar, own.q_part)
    copy(n6, own.v_bar, own.v_part)
    copy(n6, ring, own.a_part)
    clear(n6, own.q_bar)
    clear(n6, own.v_bar)
    clear(n6, ring)


@inner
def take_end(adj, job, control, new, own):
    """NOW_A, NOW_MULTIPLIERS ← those at the end of the step; MISMATCH ← how far the step is from that of the run."""
    n6 = WIDTH * job.bodies
    at = 1 + job.coordinates + n6
    most = adj.mismatch
    for b in range(job.bodies):
        for i in range(POSE):
            off = abs(own.now_q[POSE * b + i] - new[1 + POSE * b + i]) / (control.length if i < 3 else 1.0)
            most = off if most == most and not off <= most else most
        for i in range(WIDTH):
            unit = control.length if i < 3 else 1.0
            v = new[1 + job.coordinates + WIDTH * b + i] / unit
            off = abs(own.now_v[WIDTH * b + i] / unit - v) / max(1.0, abs(v))
            most = off if most == most and not off <= most else most
    adj.mismatch = most
    copy(n6, tail(new, at), own.now_a)
    copy(job.equations, tail(new, at + n6), own.now_multipliers)


@inner
def reverse_start(adj, job, control, new, own):
    """Q_BAR, V_BAR ← bars of the start before its projection."""
    n6 = WIDTH * job.bodies
    control.phase = float(BEGIN_PHASE)
    control.exact = adj.exact
    set_time(adj, job, control, 0, 0, new[0])
    copy(job.coordinates, adj.start, own.now_q)
    copy(n6, tail(adj.start, job.coordinates), own.now_v)
    clear(n6, own.shift)
    count = call_state(adj, 2, control, own)
    take_end(adj, job, control, new, own)
    take_bars(job, 0, own)
    call_state(adj, REVERSE + count, control, own)
    copy(n6, own.q_part, own.q_bar)
    copy(n6, own.v_part, own.v_bar)


@inner
def update_weights(adj, control, n, size, own):
    """Weights of the predictor and the corrector of the step to row n."""
    weights = Weights(own.weights)
    nodes = weights.nodes
    k = int(control.order)
    start = adj.rows[size * (n - 1)]
    nodes[0] = 1.0
    for j in range(k):
        nodes[j + 1] = (adj.rows[size * (n - 1 - j)] - start) / control.step
    for number in range(2):
        rule = Rule(weights.rules, number)
        integrals(k + number, tail(nodes, 1 - number), 1.0, rule.once, rule.twice, weights.partial)


@inner
def predict(adj, job, control, n, size, vo, own, work):
    """FIRST_Q, FIRST_V, THETA ← the predicted state and the step to it, as in the run."""
    n6 = WIDTH * job.bodies
    h = control.step
    k = int(control.order)
    rule = Rule(Weights(own.weights).rules, PREDICTOR)
    at = 1 + job.coordinates + n6
    v = own.first_v
    theta = own.theta
    clear(n6, v)
    clear(n6, theta)
    for j in range(k):
        a = tail(adj.rows, size * (n - 1 - j) + at)
        for i in range(n6):
            v[i] += rule.once[j] * a[i]
            theta[i] += rule.twice[j] * a[i]
    for i in range(n6):
        v[i] = vo[i] + h * v[i]
        theta[i] = h * (vo[i] + h * theta[i])
    add_magnus(job.bodies, h, vo, v, theta)
    retract(job, tail(adj.rows, size * (n - 1) + 1), theta, own.first_q, work)


@inner
def correct(adj, job, control, n, size, vo, own):
    """NOW_V, SHIFT ← the corrected velocity and the change of the pose."""
    n6 = WIDTH * job.bodies
    h = control.step
    k = int(control.order)
    weights = Weights(own.weights)
    predictor = Rule(weights.rules, PREDICTOR)
    corrector = Rule(weights.rules, CORRECTOR)
    at = 1 + job.coordinates + n6
    for i in range(n6):
        once = corrector.once[0] * own.first_a[i]
        twice = corrector.twice[0] * own.first_a[i]
        for j in range(k):
            a = adj.rows[size * (n - 1 - j) + at + i]
            once += corrector.once[j + 1] * a
            twice += (corrector.twice[j + 1] - predictor.twice[j]) * a
        own.now_v[i] = vo[i] + h * once
        own.shift[i] = h * h * twice


@inner
def add_magnus_bars(bodies, h, vo, v, theta_bar, vo_bar, v_bar):
    """Of θ += h²/12 ω × ω'."""
    c = h * h / 12.0
    for b in range(bodies):
        o = WIDTH * b + 3
        for i in range(3):
            j = o + (i + 1) % 3
            k = o + (i + 2) % 3
            vo_bar[o + i] += c * (v[j] * theta_bar[k] - v[k] * theta_bar[j])
            v_bar[o + i] += c * (theta_bar[j] * vo[k] - theta_bar[k] * vo[j])


@inner
def reverse_predictor(adj, job, control, n, vo, own):
    """Bars of the state before the step and of the accelerations, from Q_PART and PULLED of the predicted state."""
    n6 = WIDTH * job.bodies
    h = control.step
    clear(n6, own.theta_bar)
    add_retraction_bars(job.bodies, own.theta, own.q_part, own.q_bar, own.theta_bar)
    add_magnus_bars(job.bodies, h, vo, own.first_v, own.theta_bar, own.v_bar, own.pulled)
    rule = Rule(Weights(own.weights).rules, PREDICTOR)
    for i in range(n6):
        own.v_bar[i] += h * own.theta_bar[i] + own.pulled[i]
    for j in range(int(control.order)):
        bar = tail(own.a_bars, ((n - 1 - j) % HISTORY) * n6)
        for i in range(n6):
            bar[i] += h * rule.once[j] * own.pulled[i] + h * h * rule.twice[j] * own.theta_bar[i]


@inner
def reverse_adams(adj, job, control, n, is_new, own, work):
    """The step of Adams' method to row n.  is_new: whether its weights are those of the last one."""
    size = row_size(job)
    new = tail(adj.rows, size * n)
    vo = tail(adj.rows, size * (n - 1) + 1 + job.coordinates)
    control.phase = float(CORRECT)
    control.exact = adj.exact
    control.head = float(n - 1)
    set_time(adj, job, control, n, 0, new[0])
    if is_new:
        update_weights(adj, control, n, size, own)
    predict(adj, job, control, n, size, vo, own, work)
    op = APPROACH | LINEARIZE | ACCELERATE
    at_instant(op, job, control, own.first_q, own.first_v, own.first_a, own.first_multipliers, work)
    correct(adj, job, control, n, size, vo, own)
    copy(job.coordinates, own.first_q, own.now_q)
    count = call_state(adj, -1, control, own)
    take_end(adj, job, control, new, own)
    take_bars(job, n, own)
    call_state(adj, PREDICTED + count, control, own)
    reverse_predictor(adj, job, control, n, vo, own)


@inner
def rate_factor(square):
    """c and dc/d(θ²) of θ̇ = v + ½ θ × v + c θ × (θ × v)."""
    if square < FEW:
        s = square
        c = 1.0 / 12.0 + s / 720.0 * (1.0 + s / 42.0 * (1.0 + s / 40.0 * (1.0 + s * (5.0 / 198.0))))
        d = 1.0 / 720.0 + s / 15120.0 * (1.0 + s * (3.0 / 80.0) * (1.0 + s / 29.7 * (1.0 + 0.03125 * s)))
        return c, d
    angle = sqrt(square)
    half = sin(0.5 * angle)
    c = (1.0 - 0.25 * angle * sin(angle) / (half * half)) / square
    slope = (0.25 * (angle - sin(angle)) / (half * half) - 2.0 * c * angle) / square
    return c, 0.5 * slope / angle


@inner
def reverse_tangent_rate(bodies, theta, v, bar, v_bar, theta_bar):
    """Bars of v and θ, += those of θ̇."""
    for b in range(bodies):
        o = WIDTH * b
        t = tail(theta, o + 3)
        w = tail(v, o + 3)
        y = tail(bar, o + 3)
        c, slope = rate_factor(t[0] * t[0] + t[1] * t[1] + t[2] * t[2])
        p0, p1, p2 = t[1] * y[2] - t[2] * y[1], t[2] * y[0] - t[0] * y[2], t[0] * y[1] - t[1] * y[0]
        r0, r1, r2 = t[1] * w[2] - t[2] * w[1], t[2] * w[0] - t[0] * w[2], t[0] * w[1] - t[1] * w[0]
        g = tail(v_bar, o)
        for i in range(3):
            g[i] += bar[o + i]
        g[3] += y[0] - 0.5 * p0 + c * (t[1] * p2 - t[2] * p1)
        g[4] += y[1] - 0.5 * p1 + c * (t[2] * p0 - t[0] * p2)
        g[5] += y[2] - 0.5 * p2 + c * (t[0] * p1 - t[1] * p0)
        e = -2.0 * slope * (p0 * r0 + p1 * r1 + p2 * r2)
        k = tail(theta_bar, o + 3)
        k[0] += 0.5 * (w[1] * y[2] - w[2] * y[1]) + c * (r1 * y[2] - r2 * y[1] - w[1] * p2 + w[2] * p1) + e * t[0]
        k[1] += 0.5 * (w[2] * y[0] - w[0] * y[2]) + c * (r2 * y[0] - r0 * y[2] - w[2] * p0 + w[0] * p2) + e * t[1]
        k[2] += 0.5 * (w[0] * y[1] - w[1] * y[0]) + c * (r0 * y[1] - r1 * y[0] - w[0] * p1 + w[1] * p0) + e * t[2]


@inner
def begin_stage(adj, job, n, s, h, size, own, work):
    """NOW_Q, NOW_V, THETA ← a stage, before its projection."""
    n6 = WIDTH * job.bodies
    old = tail(adj.rows, size * (n - 1))
    row = tail(adj.tableau, s * (s - 1) // 2)
    for i in range(n6):
        once = 0.0
        twice = 0.0
        for j in range(s):
            twice += row[j] * own.stages[2 * n6 * j + i]
            once += row[j] * own.stages[2 * n6 * j + n6 + i]
        own.now_v[i] = old[1 + job.coordinates + i] + h * once
        own.theta[i] = h * twice
        own.shift[i] = 0.0
    retract(job, tail(old, 1), own.theta, own.now_q, work)


@inner
def end_stage(job, s, own):
    """Keep θ̇ and v̇ of a stage."""
    n6 = WIDTH * job.bodies
    stage = tail(own.stages, 2 * n6 * s)
    tangent_rate(job.bodies, own.theta, own.now_v, stage)
    copy(n6, own.now_a, tail(stage, n6))


@inner
def reverse_stage(adj, job, n, s, h, own):
    """Bars of the state before the step and of earlier stages, from Q_PART, V_PART and THETA_BAR of a stage."""
    n6 = WIDTH * job.bodies
    row = tail(adj.tableau, s * (s - 1) // 2)
    add_retraction_bars(job.bodies, own.theta, own.q_part, own.q_bar, own.theta_bar)
    for i in range(n6):
        own.v_bar[i] += own.v_part[i]
    for j in range(s):
        bar = tail(own.stage_bars, 2 * n6 * j)
        for i in range(n6):
            bar[i] += h * row[j] * own.theta_bar[i]
            bar[n6 + i] += h * row[j] * own.v_part[i]


@inner
def take_stage_bars(job, s, own):
    """Bars of a stage: of its acceleration, and of its state by θ̇."""
    n6 = WIDTH * job.bodies
    bar = tail(own.stage_bars, 2 * n6 * s)
    clear(n6, own.q_part)
    clear(n6, own.v_part)
    clear(n6, own.theta_bar)
    clear(job.equations, own.given_nu)
    copy(n6, tail(bar, n6), own.a_part)
    reverse_tangent_rate(job.bodies, own.theta, own.now_v, bar, own.v_part, own.theta_bar)


@inner
def reverse_runge_kutta(adj, job, control, n, own, work):
    """The Runge–Kutta step to row n: all stages are made, then reversed from the last one on."""
    n6 = WIDTH * job.bodies
    size = row_size(job)
    old = tail(adj.rows, size * (n - 1))
    new = tail(adj.rows, size * n)
    h = new[0] - old[0]
    count = adj.stages
    at = 1 + job.coordinates
    control.phase = float(PREDICT)
    control.exact = adj.stage_exact
    copy(n6, tail(old, at), own.stages)
    copy(n6, tail(old, at + n6), tail(own.stages, n6))
    clear(2 * n6 * count, own.stage_bars)
    for k in range(2 * count - 1):
        s = k + 1 if k < count else 2 * count - 1 - k
        time = new[0] if s == count else old[0] + adj.nodes[s] * h
        set_time(adj, job, control, n, s - 1, time)
        begin_stage(adj, job, n, s, h, size, own, work)
        if control.redundant != 0.0:
            at_instant(APPROACH, job, control, own.now_q, own.now_v, own.shift, own.now_multipliers, work)
        closures = call_state(adj, 1, control, own)
        if s == count:
            take_end(adj, job, control, new, own)
            take_bars(job, n, own)
            clear(n6, own.theta_bar)
        else:
            op = CURVATURE | ACCELERATE
            at_instant(op, job, control, own.now_q, own.now_v, own.now_a, own.now_multipliers, work)
            if k < count:
                end_stage(job, s, own)
            else:
                take_stage_bars(job, s, own)
        if k >= count - 1:
            call_state(adj, REVERSE + closures, control, own)
            reverse_stage(adj, job, n, s, h, own)
    ring = tail(own.a_bars, ((n - 1) % HISTORY) * n6)
    for i in range(n6):
        own.v_bar[i] += own.stage_bars[i]
        ring[i] += own.stage_bars[n6 + i]


def _reverse(op, ints, floats, q, v, out, unused, memory):
    """From row op down to adj.stop; bars of the state before that row are in Q_BAR, V_BAR and A_BARS."""
    adj = Adjoint(ints)
    job = adj.job
    control = Control(floats)
    work = Work(job.pieces, adj.memory)
    own = AdjointWork(adj.pieces, memory)
    size = row_size(job)
    last = -1.0
    if control.redundant != 0.0:  # a pose is approached with the factor of one that is near
        copy(job.coordinates, tail(adj.rows, size * op + 1), own.now_q)
        copy(WIDTH * job.bodies, tail(adj.rows, size * op + 1 + job.coordinates), own.now_v)
        at_instant(LINEARIZE, job, control, own.now_q, own.now_v, own.now_a, own.now_multipliers, work)
    for n in range(op, adj.stop - 1, -1):
        add_cost(adj, job, n, own)
        order = adj.orders[n]
        if order > 0:
            h = adj.rows[size * n] - adj.rows[size * (n - 1)]
            is_new = n < 2 * HISTORY or abs(h - last) > SAME_STEP * h or control.uneven > 0.0
            control.step = h
            control.order = float(order)
            last = h
            reverse_adams(adj, job, control, n, is_new, own, work)
        elif order == BEGUN:
            reverse_start(adj, job, control, tail(adj.rows, 0), own)
        else:
            reverse_runge_kutta(adj, job, control, n, own, work)
    return 0


REVERSE_RUN = evaluator(_reverse)
