"""Derivatives of constraints and loads, contracted: what a reverse sweep needs of them.

A feature is x = r + R s, with R s = A s of a point or a vector, or p ⊗ s of an orientation.  Its rates follow from
S_ω s = ω × s, or ½ (0, ω) ⊗ s:

    ẋ = ṙ + R S_ω s,   ẍ = R S_ω S_ω s (bias),   R S_δθ s: the change of R s by a rotation δθ.

So with h = Rᵀ x̄:  s̄ += h,  θ̄ += ∂(h·S_ω s)/∂ω, and the adjoint of S_ω is S_−ω.

PULL_BACK adds to the derivatives of a cost by the tangent of q, by v and by the floats of a system:

    CURVED   those of ν·γ                                 weights: ν
    n ≥ 0    those of f̄·f + Σ_i w_i·J y_i over n pairs    weights: f̄, w_1, …, w_n; vectors: y_1, …, y_n

LOADS adds those of μ·Q.
"""

from math import sqrt, tanh

from cardan.constraints._calls import call_curvature, call_value
from cardan.coordinates._features import multiply, update_features, update_matrices, update_primitive
from cardan.coordinates._records import features, matrix, quaternion
from cardan.dynamics.adjoint_tables import BILINEAR, CURVED, DIFFERENCE, Kernels, LoadPull, LoadPullWork, Pull, PullWork
from cardan.dynamics.tables import APART, LINEAR, MATRIX, WIDTH, Control, Law, LawCall, Linear, Wrench
from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner, plain
from cardan.kernel.memory import call_evaluator, cut, tail
from cardan.solvers._blocks import add_transpose_times, times
from cardan.solvers._job import evaluate
from cardan.solvers.tables import JACOBIAN as JACOBIAN_OPERATION
from cardan.system.tables import ANGLE, FEATURE, ORIENTATION, POINT, Feature

JACOBIAN = plain(JACOBIAN_OPERATION)
TWO_PAIRS = plain(2)
LAW_SIZE = Law.size


@inner
def spin(is_orientation, w, sign, s, out):
    """out ← S_ω s for ω = sign · w."""
    w0 = sign * w[0]
    w1 = sign * w[1]
    w2 = sign * w[2]
    if is_orientation:
        out[0] = -0.5 * (w0 * s[1] + w1 * s[2] + w2 * s[3])
        out[1] = 0.5 * (w0 * s[0] + w1 * s[3] - w2 * s[2])
        out[2] = 0.5 * (w1 * s[0] + w2 * s[1] - w0 * s[3])
        out[3] = 0.5 * (w2 * s[0] + w0 * s[2] - w1 * s[1])
    else:
        out[0] = w1 * s[2] - w2 * s[1]
        out[1] = w2 * s[0] - w0 * s[2]
        out[2] = w0 * s[1] - w1 * s[0]


@inner
def add_spin_bar(is_orientation, s, h, out):
    """out += ∂(h·S_ω s)/∂ω."""
    if is_orientation:
        out[0] += 0.5 * (h[1] * s[0] - h[0] * s[1] + h[3] * s[2] - h[2] * s[3])
        out[1] += 0.5 * (h[2] * s[0] - h[0] * s[2] + h[1] * s[3] - h[3] * s[1])
        out[2] += 0.5 * (h[3] * s[0] - h[0] * s[3] + h[2] * s[1] - h[1] * s[2])
    else:
        out[0] += s[1] * h[2] - s[2] * h[1]
        out[1] += s[2] * h[0] - s[0] * h[2]
        out[2] += s[0] * h[1] - s[1] * h[0]


@inner
def to_local(is_orientation, p, a, g, out):
    """out ← Rᵀ g."""
    if is_orientation:
        out[0] = p[0] * g[0] + p[1] * g[1] + p[2] * g[2] + p[3] * g[3]
        out[1] = p[0] * g[1] - p[1] * g[0] - p[2] * g[3] + p[3] * g[2]
        out[2] = p[0] * g[2] + p[1] * g[3] - p[2] * g[0] - p[3] * g[1]
        out[3] = p[0] * g[3] - p[1] * g[2] + p[2] * g[1] - p[3] * g[0]
    else:
        g0 = g[0]
        g1 = g[1]
        g2 = g[2]
        for i in range(3):
            out[i] = a[i] * g0 + a[3 + i] * g1 + a[6 + i] * g2


@inner
def to_world(is_orientation, p, a, s, out):
    """out ← R s."""
    if is_orientation:
        multiply(p, s, out)
    else:
        for i in range(3):
            out[i] = a[3 * i] * s[0] + a[3 * i + 1] * s[1] + a[3 * i + 2] * s[2]


@inner
def add(n, x, out):
    """out += x."""
    for i in range(n):
        out[i] += x[i]


@inner
def update_features_rates(record, floats, q, v, n, pieces):
    """ẋ and biases of all features of a constraint, into ``given``."""
    rate = pieces.given
    bias = tail(rate, n)
    first = features(record)
    for i in range(2 * n):
        rate[i] = 0.0
    s1 = pieces.local
    s2 = tail(s1, 4)
    for k in range(record.features):
        this = Feature(first, k)
        body = this.body
        kind = this.kind
        if body >= 0 and kind < ANGLE:
            turns = kind == ORIENTATION
            p = quaternion(q, body)
            a = matrix(pieces.matrices, body)
            w = tail(v, WIDTH * body + 3)
            out = tail(rate, this.column)
            spin(turns, w, 1.0, tail(floats, this.source), s1)
            spin(turns, w, 1.0, s1, s2)
            to_world(turns, p, a, s1, out)
            to_world(turns, p, a, s2, tail(bias, this.column))
            if kind == POINT:
                add(3, tail(v, WIDTH * body), out)


@inner
def call_linear(kernels, rows, n, x, given, c, g):
    """g ← ∂ψ₁/∂x, ∂ψ₁/∂c (:mod:`cardan.constraints.adjoints`); given: w, Y."""
    if kernels.linear > BILINEAR:
        call_curvature(kernels.linear, x, given, c, g)
        return
    for i in range(n):
        g[i] = 0.0
    if kernels.linear == DIFFERENCE:
        for i in range(3):
            g[i] = -given[i]
            g[3 + i] = given[i]
        return
    last = 3 * rows
    for r in range(rows):
        w = given[r]
        y = tail(given, rows + n * r)
        for i in range(3):
            g[3 * r + i] = w * x[last + i] + y[last + i]
            g[last + i] += w * x[3 * r + i] + y[3 * r + i]


@inner
def call_curved(kernels, rows, n, x, given, c, g):
    """g ← ∂ψ₂/∂x, ∂ψ₂/∂ẋ, ∂ψ₂/∂b, ∂ψ₂/∂c; given: ẋ, b, w."""
    if kernels.curved > BILINEAR:
        call_curvature(kernels.curved, x, given, c, g)
        return
    for i in range(3 * n):
        g[i] = 0.0
    b = tail(given, n)
    w = tail(given, 2 * n)
    gv = tail(g, n)
    gb = tail(g, 2 * n)
    if kernels.curved == DIFFERENCE:
        for i in range(3):
            gb[i] = -w[i]
            gb[3 + i] = w[i]
        return
    last = 3 * rows
    for r in range(rows):
        for i in range(3):
            own = 3 * r + i
            g[own] = w[r] * b[last + i]
            g[last + i] += w[r] * b[own]
            gv[own] = 2.0 * w[r] * given[last + i]
            gv[last + i] += 2.0 * w[r] * given[own]
            gb[own] = w[r] * x[last + i]
            gb[last + i] += w[r] * x[own]


@inner
def pull_curved(record, kernels, table, weights, q, v, q_bar, v_bar, pieces):
    """Those of one constraint: CURVED."""
    n = record.components
    floats = table.floats
    update_features_rates(record, floats, q, v, n, pieces)
    own = tail(pieces.given, 2 * n)
    for r in range(record.rows):
        e = table.numbers[record.row + r]
        own[r] = -weights[e] if e >= 0 else 0.0
    g = pieces.found
    call_curved(kernels, record.rows, n, pieces.x, pieces.given, tail(floats, record.par), g)
    add(kernels.parameters, tail(g, 3 * n), tail(table.gradient, record.par))
    first = features(record)
    local = pieces.local
    s1 = tail(local, 4)
    h0 = tail(local, 8)
    h1 = tail(local, 12)
    h2 = tail(local, 16)
    back = tail(local, 20)
    for k in range(record.features):
        this = Feature(first, k)
        kind = this.kind
        body = this.body
        if kind >= ANGLE:
            continue
        turns = kind == ORIENTATION
        size = 4 if turns else 3
        gx = tail(g, this.column)
        s_bar = tail(table.gradient, this.source)
        if body < 0:
            add(size, gx, s_bar)
            continue
        s = tail(floats, this.source)
        p = quaternion(q, body)
        a = matrix(pieces.matrices, body)
        w = tail(v, WIDTH * body + 3)
        r_bar = tail(q_bar, WIDTH * body)
        theta_bar = tail(r_bar, 3)
        u_bar = tail(v_bar, WIDTH * body)
        w_bar = tail(u_bar, 3)
        gv = tail(gx, n)
        to_local(turns, p, a, gx, h0)
        to_local(turns, p, a, gv, h1)
        to_local(turns, p, a, tail(gx, 2 * n), h2)
        spin(turns, w, 1.0, s, s1)
        spin(turns, w, 1.0, s1, local)  # s''
        add_spin_bar(turns, s, h0, theta_bar)
        add_spin_bar(turns, s1, h1, theta_bar)
        add_spin_bar(turns, local, h2, theta_bar)
        add_spin_bar(turns, s1, h2, w_bar)
        spin(turns, w, -1.0, h2, back)
        add(size, back, h1)  # s̄'
        add_spin_bar(turns, s, h1, w_bar)
        spin(turns, w, -1.0, h1, back)
        add(size, h0, s_bar)
        add(size, back, s_bar)
        if kind == POINT:
            add(3, gx, r_bar)
            add(3, gv, u_bar)


@inner
def update_vectors(record, table, pairs, weights, vectors, pieces):
    """The row of J̄ of each row and body: Σ_i w_i y_i."""
    rows = record.rows
    for s in range(record.slots):
        body = record.bodies[s]
        for r in range(rows):
            own = cut(pieces.vectors, WIDTH * (rows * s + r), WIDTH)
            for j in range(WIDTH):
                own[j] = 0.0
            e = table.numbers[record.row + r]
            if e >= 0:
                for i in range(pairs):
                    z = weights[table.weights * (1 + i) + e]
                    y = tail(vectors, table.unknowns * i + WIDTH * body)
                    for j in range(WIDTH):
                        own[j] += z * y[j]


@inner
def pull_linear(record, kernels, table, pairs, weights, q, vectors, q_bar, pieces):
    """Those of one constraint: f̄·f + Σ_i w_i·J y_i."""
    n = record.components
    rows = record.rows
    floats = table.floats
    c = tail(floats, record.par)
    df = pieces.derivatives
    update_primitive(record.code, pieces.x, c, pieces.values, df)
    update_vectors(record, table, pairs, weights, vectors, pieces)
    given = pieces.given
    for r in range(rows):
        e = table.numbers[record.row + r]
        given[r] = weights[e] if e >= 0 else 0.0
    for i in range(rows * n):
        given[rows + i] = 0.0
    first = features(record)
    s1 = pieces.local
    h = tail(s1, 4)
    back = tail(s1, 8)
    for k in range(record.features):
        this = Feature(first, k)
        kind = this.kind
        body = this.body
        if kind < ANGLE and body >= 0:
            turns = kind == ORIENTATION
            p = quaternion(q, body)
            a = matrix(pieces.matrices, body)
            for r in range(rows):
                y = tail(pieces.vectors, WIDTH * (rows * this.slot + r))
                out = tail(given, rows + n * r + this.column)
                spin(turns, tail(y, 3), 1.0, tail(floats, this.source), s1)
                to_world(turns, p, a, s1, out)
                if kind == POINT:
                    add(3, y, out)
    g = pieces.found
    call_linear(kernels, rows, n, pieces.x, given, c, g)
    add(kernels.parameters, tail(g, n), tail(table.gradient, record.par))
    for k in range(record.features):
        this = Feature(first, k)
        kind = this.kind
        body = this.body
        if kind >= ANGLE:
            continue
        turns = kind == ORIENTATION
        size = 4 if turns else 3
        gx = tail(g, this.column)
        s_bar = tail(table.gradient, this.source)
        if body < 0:
            add(size, gx, s_bar)
            continue
        s = tail(floats, this.source)
        p = quaternion(q, body)
        a = matrix(pieces.matrices, body)
        r_bar = tail(q_bar, WIDTH * body)
        theta_bar = tail(r_bar, 3)
        to_local(turns, p, a, gx, h)
        add(size, h, s_bar)
        add_spin_bar(turns, s, h, theta_bar)
        if kind == POINT:
            add(3, gx, r_bar)
        for r in range(rows):
            w = tail(pieces.vectors, WIDTH * (rows * this.slot + r) + 3)
            to_local(turns, p, a, tail(df, n * r + this.column), h)
            spin(turns, w, 1.0, s, s1)
            add_spin_bar(turns, s1, h, theta_bar)
            spin(turns, w, -1.0, h, back)
            add(size, back, s_bar)


def _pull_back(op, ints, weights, q, v, q_bar, v_bar, memory):
    """v: of CURVED the velocity, else the vectors of the pairs.  v_bar: only of CURVED."""
    table = Pull(ints)
    system = table.system
    pieces = PullWork(table.pieces, memory)
    update_matrices(system.bodies, q, pieces.matrices)
    record = system.records
    for number in range(system.constraints):
        kernels = Kernels(table.kernels, number)
        update_features(system, record, table.floats, q, pieces.matrices, pieces.x)
        if op == CURVED:
            pull_curved(record, kernels, table, weights, q, v, q_bar, v_bar, pieces)
        else:
            pull_linear(record, kernels, table, op, weights, q, v, q_bar, pieces)
        record = after(record, record.slots + FEATURE * record.features)
    return 0


PULL_BACK = evaluator(_pull_back)


@inner
def pull_linear_law(law, numbers, bars, value, rate, along):
    """LINEAR: gradients by its numbers; returns e, ∂e/∂x and ∂e/∂ẋ."""
    linear = Linear(numbers)
    own = Linear(bars)
    e = linear.constant - linear.stiffness * (value - linear.rest) - linear.damping * rate
    slope = -linear.damping
    own.constant += along
    own.stiffness -= along * (value - linear.rest)
    own.rest += along * linear.stiffness
    own.damping -= along * rate
    if linear.coulomb != 0.0:
        slip = tanh(rate / linear.speed)
        steep = linear.coulomb * (1.0 - slip * slip) / linear.speed
        e -= linear.coulomb * slip
        slope -= steep
        own.coulomb -= along * slip
        own.speed += along * steep * rate / linear.speed
    return e, -linear.stiffness, slope


@inner
def pull_recorded_law(law, tape, count, numbers, bars, t, value, rate, along, scratch):
    """RECORDED: the same."""
    call = LawCall(scratch)
    call.time = t
    call.coordinate = value
    call.rate = rate
    call_value(law.function, scratch, numbers, tail(scratch, 3), tail(scratch, 4))
    if count > 0:
        given = tail(scratch, 8)
        for i in range(4):
            given[i] = 0.0
        given[0] = along
        found = tail(scratch, 12)
        call_curvature(tape, scratch, given, numbers, found)
        add(count, tail(found, 3), bars)
    return call.effort, call.slope, call.rate_slope


@inner
def pull_scalar(table, k, law, numbers, t, x, rates, along, out, scratch):
    """Law k, of one coordinate: out ← bars of x, of ẋ, and efforts; three of each."""
    bars = tail(table.numbers, law.numbers)
    value = x[0]
    rate = rates[0]
    way = along[0]
    apart = law.sort == APART
    if apart:
        value = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
        rate = (x[0] * rates[0] + x[1] * rates[1] + x[2] * rates[2]) / value
        way = (x[0] * along[0] + x[1] * along[1] + x[2] * along[2]) / value
    if law.kind == LINEAR:
        e, slope, steep = pull_linear_law(law, numbers, bars, value, rate, way)
    else:
        tape, count = table.laws[k], table.counts[k]
        e, slope, steep = pull_recorded_law(law, tape, count, numbers, bars, t, value, rate, way, scratch)
    x_bar = slope * way
    rate_bar = steep * way
    if apart:
        dot = 0.0
        for i in range(3):
            u = x[i] / value
            out[i] = e * along[i] + rate_bar * rates[i]  # ū
            dot += u * out[i]
            out[3 + i] = rate_bar * u
            out[6 + i] = e * u
        for i in range(3):
            u = x[i] / value
            out[i] = x_bar * u + (out[i] - u * dot) / value
    else:
        out[0] = x_bar
        out[3] = rate_bar
        out[6] = e


@inner
def pull_matrix(law, numbers, bars, x, rates, along, x_bar, rate_bar, efforts):
    """−K x − C ẋ."""
    n = law.rows
    for i in range(n):
        x_bar[i] = 0.0
        rate_bar[i] = 0.0
        efforts[i] = 0.0
    for i in range(n):
        for j in range(n):
            at = n * i + j
            efforts[i] -= numbers[at] * x[j] + numbers[n * n + at] * rates[j]
            x_bar[j] -= numbers[at] * along[i]
            rate_bar[j] -= numbers[n * n + at] * along[i]
            bars[at] -= along[i] * x[j]
            bars[n * n + at] -= along[i] * rates[j]


@inner
def pull_wrench(wrench, numbers, bars, a, mu, q_bar, scratch):
    """A force or torque that is constant in world or in body axes: μ·Q and its derivatives."""
    body = wrench.body
    s = cut(numbers, wrench.numbers, 3)
    f = cut(numbers, wrench.numbers + 3, 3)
    s_bar = tail(bars, wrench.numbers)
    f_bar = tail(s_bar, 3)
    move = tail(mu, WIDTH * body)
    turn = tail(move, 3)
    theta_bar = tail(q_bar, WIDTH * body + 3)
    own = scratch
    force = tail(scratch, 4)
    in_body = wrench.in_body != 0
    if wrench.is_torque != 0:  # f·A μ, or f·μ
        to_local(False, a, a, f, force)
        to_world(False, a, a, turn, own)
        if in_body:
            add(3, turn, f_bar)
        else:
            add_spin_bar(False, turn, force, theta_bar)
            add(3, own, f_bar)
        return
    spin(False, turn, 1.0, s, own)
    if in_body:
        to_local(False, a, a, move, force)
        add_spin_bar(False, f, force, theta_bar)
        add(3, force, f_bar)
        add(3, own, f_bar)
        spin(False, turn, -1.0, f, own)
    else:
        to_local(False, a, a, f, force)
        add_spin_bar(False, own, force, theta_bar)
        add(3, move, f_bar)
        to_world(False, a, a, own, tail(scratch, 8))
        add(3, tail(scratch, 8), f_bar)
        spin(False, turn, -1.0, force, own)
    add(3, own, s_bar)


def _loads(op, ints, v, q, mu, q_bar, v_bar, memory):
    table = LoadPull(ints)
    loads = table.job.load_table
    numbers = table.job.load_floats
    t = Control(table.control).ask_time
    own = LoadPullWork(table.pieces, memory)
    pull = table.pull
    n6 = pull.unknowns
    n = pull.weights
    jacobian = own.jacobian
    evaluate(loads, JACOBIAN, q, v, own.rows, jacobian, own.evaluation)
    times(loads.structure, jacobian, v, own.rates)
    times(loads.structure, jacobian, mu, own.along)
    weights = own.weights
    for k in range(loads.law_count):
        law = Law(loads.laws, k)
        row = law.row
        at = law.numbers
        x = tail(own.rows, row)
        rates = tail(own.rates, row)
        along = tail(own.along, row)
        x_bar = tail(weights, row)
        rate_bar = tail(weights, n + row)
        efforts = tail(weights, 2 * n + row)
        given = tail(numbers, at)
        bars = tail(table.numbers, at)
        if law.kind == MATRIX:
            pull_matrix(law, given, bars, x, rates, along, x_bar, rate_bar, efforts)
        else:
            out = tail(own.scratch, 0)
            rest = tail(own.scratch, 9)
            pull_scalar(table, k, law, given, t, x, rates, along, out, rest)
            for i in range(law.rows):
                x_bar[i] = out[i]
                rate_bar[i] = out[3 + i]
                efforts[i] = out[6 + i]
    if loads.law_count > 0:
        add_transpose_times(loads.structure, jacobian, 1.0, tail(weights, n), v_bar)
        for i in range(n6):
            own.vectors[i] = v[i]
            own.vectors[n6 + i] = mu[i]
        call_evaluator(table.pull_back, TWO_PAIRS, pull.as_ints, weights, q, own.vectors, q_bar, v_bar, own.pull)
    wrenches = tail(loads.laws.as_ints, LAW_SIZE * loads.law_count)
    for k in range(loads.wrench_count):
        wrench = Wrench(wrenches, k)
        a = matrix(own.evaluation, wrench.body)
        pull_wrench(wrench, numbers, table.numbers, a, mu, q_bar, own.scratch)
    return 0


LOADS = evaluator(_loads)
