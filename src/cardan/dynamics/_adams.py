"""Adams' method on the manifold: one evaluation of f, J, γ and one factorisation per step, and joints that stay closed.

Predict v by the polynomial through the last k accelerations, and the pose by its second integral, with Magnus' term
θ += h²/12 ω_n × ω_{n+1}.  Evaluate and factorise there.  Correct both by the polynomial through the new acceleration
and the last k; project pose and velocity onto the constraints with the same factor; compute the acceleration again,
at the corrected velocity, with the same J and factor.

Nodes may be uneven: with RTOL > 0 steps are chosen by the difference of two correctors, from order one on; otherwise
STEP is kept.  The kernel returns if it needs values that only Python computes (of drivers, of users' loads).  PHASE
tells where it continues when it is called again.
"""

from cardan.dynamics import abi
from cardan.dynamics._equations import (
    END_MULTIPLIERS,
    MULTIPLIERS,
    NEW_A,
    NEW_Q,
    NEW_V,
    OLD_Q,
    OLD_V,
    SHIFT,
    WEIGHTS,
    piece,
    retract,
    set_drivers,
)
from cardan.dynamics._instant import ACCELERATE, APPROACH, CLOSE, CURVATURE, KEEP, LINEARIZE, SEEK, at_instant, at_stops
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, floats_at, tail

MOST = 7  # nodes of a polynomial
SAME_STEP = 1e-9  # steps that differ by less, relatively, have the same weights
SAME_TIME = 1e-12  # times that differ by less, relative to a step, are one
SAFETY = 0.8  # of the step that would just meet RTOL
SHRINK = 0.2  # least factor on a refused step
GROW = 2.0  # largest factor on an accepted step
REDUCE = 0.5  # least factor on an accepted step
WORTH_GROWTH = 1.25  # a step that could grow by less is kept, so that its weights are reused
TRAPPED = 1e-5  # of the largest step: a refused step this small, without loads, drivers and stops, is refused for noise
LEAST_RATIO = 1e-12  # added to error/RTOL, which may be zero
MOST_SHIFT = 10.0  # of RTOL: a variable step that is shifted more onto the constraints is refused
FINITE = 1e200  # larger accelerations are refused: their squares would overflow

# Parts of WEIGHTS, MOST floats each: nodes, scratch, and the weights of ∫ and ∬ of the predictor, of the corrector, and
# of the corrector of one order less.
NODES, PARTIAL, PREDICT_V, PREDICT_Q, CORRECT_V, CORRECT_Q, LESS_V, LESS_Q, WEIGHTS_SIZE = range(0, 9 * MOST, MOST)


@inner
def integrals(k, nodes, s, once, twice, scratch):
    """Weights of ∫ and ∬ over [0, s] of the polynomial through values at k nodes."""
    for i in range(k):
        for j in range(k):
            scratch[j] = 0.0
        scratch[0] = 1.0
        degree = 0
        divisor = 1.0
        for j in range(k):
            if j != i:
                divisor *= nodes[i] - nodes[j]
                degree += 1
                for m in range(degree, 0, -1):
                    scratch[m] = scratch[m - 1] - nodes[j] * scratch[m]
                scratch[0] *= -nodes[j]
        first = 0.0
        second = 0.0
        power = s
        for m in range(k):
            first += scratch[m] * power / (m + 1)
            second += scratch[m] * power * s / ((m + 1) * (m + 2))
            power *= s
        once[i] = first / divisor
        twice[i] = second / divisor


@inner
def add_magnus(bodies, h, v, w, step):
    """step += h²/12 ω × ω' of every body."""
    c = h * h / 12.0
    for b in range(bodies):
        o = WIDTH * b + 3
        step[o] += c * (v[o + 1] * w[o + 2] - v[o + 2] * w[o + 1])
        step[o + 1] += c * (v[o + 2] * w[o] - v[o] * w[o + 2])
        step[o + 2] += c * (v[o] * w[o + 1] - v[o + 1] * w[o])


@inner
def node(history, n6, head, j):
    """The j-th last acceleration."""
    return tail(history, ((head + j) % abi.HISTORY) * n6)


@inner
def update_weights(control, times, weights):
    """Weights of the predictor, of the corrector, and of the corrector of one order less."""
    k = int(min(control[abi.KNOWN], control[abi.ORDER]))
    head = int(control[abi.HEAD])
    nodes = cut(weights, NODES, MOST)
    scratch = cut(weights, PARTIAL, MOST)
    h = control[abi.STEP]
    nodes[0] = 1.0
    for j in range(k):
        nodes[j + 1] = (times[(head + j) % abi.HISTORY] - control[abi.TIME]) / h
    for rule in range(3):
        own = tail(weights, PREDICT_V + 2 * MOST * rule)
        integrals(k + rule % 2, tail(nodes, 1 if rule == 0 else 0), 1.0, own, tail(own, MOST), scratch)
    weights[LESS_V + k] = 0.0
    weights[LESS_Q + k] = 0.0


@inner
def predict(job, control, q, v, history, work):
    """NEW_V, NEW_Q ← velocity and pose at the end of the step."""
    bodies = job[abi.BODIES]
    n6 = WIDTH * bodies
    h = control[abi.STEP]
    k = int(min(control[abi.KNOWN], control[abi.ORDER]))
    head = int(control[abi.HEAD])
    weights = piece(job, WEIGHTS, work)
    if control[abi.FRESH] != 0.0:
        update_weights(control, tail(history, abi.HISTORY * n6), weights)
    new_v = piece(job, NEW_V, work)
    step = piece(job, SHIFT, work)
    for i in range(n6):
        new_v[i] = 0.0
        step[i] = 0.0
    for j in range(k):
        a = node(history, n6, head, j)
        once = weights[PREDICT_V + j]
        twice = weights[PREDICT_Q + j]
        for i in range(n6):
            new_v[i] += once * a[i]
            step[i] += twice * a[i]
    for i in range(n6):
        new_v[i] = v[i] + h * new_v[i]
        step[i] = h * (v[i] + h * step[i])
    add_magnus(bodies, h, v, new_v, step)
    retract(job, q, step, piece(job, NEW_Q, work), work)


@inner
def correct(job, control, v, history, work):
    """NEW_V, SHIFT ← corrected velocity, and change of the pose; returns the estimated error.

    The error is relative to the extent, or in radians, and to speeds above one [1/s].
    """
    n6 = WIDTH * job[abi.BODIES]
    h = control[abi.STEP]
    k = int(min(control[abi.KNOWN], control[abi.ORDER]))
    head = int(control[abi.HEAD])
    weights = piece(job, WEIGHTS, work)
    new_v = piece(job, NEW_V, work)
    step = piece(job, SHIFT, work)
    new_a = piece(job, NEW_A, work)
    largest = 0.0
    for i in range(n6):
        once = weights[CORRECT_V] * new_a[i]
        twice = weights[CORRECT_Q] * new_a[i]
        less_once = weights[LESS_V] * new_a[i]
        less_twice = weights[LESS_Q] * new_a[i]
        before = 0.0
        for j in range(k):
            a = history[((head + j) % abi.HISTORY) * n6 + i]
            once += weights[CORRECT_V + j + 1] * a
            twice += weights[CORRECT_Q + j + 1] * a
            less_once += weights[LESS_V + j + 1] * a
            less_twice += weights[LESS_Q + j + 1] * a
            before += weights[PREDICT_Q + j] * a
        unit = control[abi.LENGTH] if i % WIDTH < 3 else 1.0
        speed = max(1.0, abs(v[i]) / unit)
        largest = max(largest, h * h * abs(twice - less_twice) / unit, h * abs(once - less_once) / (unit * speed))
        new_v[i] = v[i] + h * once
        step[i] = h * h * (twice - before)
    return largest


@inner
def store(job, control, t, q, v, a, multipliers, storage):
    """Append one row to the results: time, q, v, v̇, λ."""
    n6 = WIDTH * job[abi.BODIES]
    size = 1 + job[abi.COORDINATES] + 2 * n6 + job[abi.EQUATIONS]
    row = cut(storage, size * int(control[abi.SAMPLE]), size)
    control[abi.SAMPLE] += 1.0
    row[0] = t
    at = 1
    for i in range(job[abi.COORDINATES]):
        row[at + i] = q[i]
    at += job[abi.COORDINATES]
    for i in range(n6):
        row[at + i] = v[i]
        row[at + n6 + i] = a[i]
    at += 2 * n6
    for i in range(job[abi.EQUATIONS]):
        row[at + i] = multipliers[i]


@inner
def is_finite(n, a):
    for i in range(n):
        if not abs(a[i]) < FINITE:
            return False
    return True


@inner
def push(job, control, t, a, history):
    """Keep an acceleration as the last."""
    n6 = WIDTH * job[abi.BODIES]
    head = (int(control[abi.HEAD]) + abi.HISTORY - 1) % abi.HISTORY
    control[abi.HEAD] = float(head)
    own = tail(history, head * n6)
    for i in range(n6):
        own[i] = a[i]
    history[abi.HISTORY * n6 + head] = t
    control[abi.KNOWN] = min(control[abi.KNOWN] + 1.0, float(abi.HISTORY))


@inner
def accept(job, control, q, v, history, work):
    """q, v ← the new pose and velocity, kept in OLD_Q and OLD_V; the new acceleration becomes the last."""
    new_q = piece(job, NEW_Q, work)
    new_v = piece(job, NEW_V, work)
    old_q = piece(job, OLD_Q, work)
    old_v = piece(job, OLD_V, work)
    for i in range(job[abi.COORDINATES]):
        old_q[i] = q[i]
        q[i] = new_q[i]
    for i in range(WIDTH * job[abi.BODIES]):
        old_v[i] = v[i]
        v[i] = new_v[i]
    control[abi.TIME] = control[abi.ASK_TIME]
    if control[abi.KNOWN] > 0.0:
        control[abi.COUNT] += 1.0
    push(job, control, control[abi.TIME], piece(job, NEW_A, work), history)


@inner
def least_step(job, control):
    """The least step of RTOL.

    The accelerations of parts without loads, drivers and stops are smooth.  If their steps become very small, the error
    is rounding that a singular pose enlarges, and grows as the pose is approached in smaller steps.
    """
    is_smooth = job[abi.LOADS] == 0 and job[abi.STOP_COUNT] == 0 and job[abi.DRIVEN] + job[abi.TIMED] == 0
    return max(control[abi.LEAST_STEP], TRAPPED * control[abi.LARGEST_STEP] if is_smooth else 0.0)


@inner
def next_step(control):
    """Choose the next step by the error of the last one."""
    control[abi.LARGEST_STEP] = max(control[abi.LARGEST_STEP], control[abi.STEP])
    k = min(control[abi.KNOWN] - 1.0, control[abi.ORDER])
    growth = SAFETY * (control[abi.LAST_ERROR] / control[abi.RTOL] + LEAST_RATIO) ** (-1.0 / (k + 1.0))
    control[abi.HOLD] += 1.0
    if control[abi.KNOWN] <= control[abi.ORDER] + 1.0 or control[abi.HOLD] <= control[abi.ORDER] + 2.0:
        control[abi.FRESH] = 1.0
    most = min(control[abi.MOST_STEP], SAFETY * control[abi.TURN_STEP])
    is_due = control[abi.HOLD] > k and (growth > WORTH_GROWTH or growth < SAFETY)
    is_starting = control[abi.REFUSED] == 0.0 and growth > GROW
    is_far = control[abi.STEP] > control[abi.TURN_STEP]
    if is_due or is_starting or is_far or (k < control[abi.ORDER] and growth > 1.0):
        control[abi.STEP] = min(control[abi.STEP] * min(GROW, max(REDUCE, growth)), most)
        control[abi.HOLD] = 0.0
        control[abi.FRESH] = 1.0


@inner
def next_chunk(control):
    """Steps left; none if a constant step was too large, or the next one would turn a body too far."""
    is_too_large = control[abi.LAST_ERROR] > abi.MOST_ERROR or control[abi.STEP] > control[abi.TURN_STEP]
    return 0.0 if control[abi.RTOL] == 0.0 and is_too_large else control[abi.CHUNK] - 1.0


@inner
def lacks_drivers(job, control):
    """Whether Python must fill DRIVE for the time ASK_TIME first."""
    return job[abi.DRIVEN] + job[abi.TIMED] > 0 and control[abi.DRIVE_AT] >= control[abi.DRIVE_COUNT]


@inner
def is_at(t, other, step):
    """Whether two times are one."""
    return abs(t - other) <= SAME_TIME * (abs(t) + step)


@inner
def next_time(control, rest):
    """The end of the next step.  Constant steps are counted, so that rounding does not accumulate."""
    step = control[abi.STEP]
    if rest < step * (1.0 + SAME_STEP):
        if rest < step * (1.0 - SAME_STEP):
            control[abi.STEP] = rest
            control[abi.FRESH] = 1.0
        return control[abi.END]
    if control[abi.RTOL] > 0.0 or control[abi.HIGH] > 0.0 or control[abi.WHOLE] > 0.0:
        return control[abi.TIME] + step
    return control[abi.BASE] + (control[abi.COUNT] + 1.0) * step


@inner
def interpolate(job, control, history, t, work):
    """NEW_V, NEW_Q ← velocity and pose at a time within the last step, from the state before it."""
    bodies = job[abi.BODIES]
    n6 = WIDTH * bodies
    head = int(control[abi.HEAD])
    before = history[abi.HISTORY * n6 + (head + 1) % abi.HISTORY]
    k = int(min(control[abi.KNOWN], control[abi.ORDER] + 1.0))
    weights = piece(job, WEIGHTS, work)
    nodes = cut(weights, NODES, MOST)
    once = cut(weights, PREDICT_V, MOST)
    twice = cut(weights, PREDICT_Q, MOST)
    h = t - before
    for j in range(k):
        nodes[j] = (history[abi.HISTORY * n6 + (head + j) % abi.HISTORY] - before) / h
    integrals(k, nodes, 1.0, once, twice, cut(weights, PARTIAL, MOST))
    control[abi.FRESH] = 1.0
    old_v = piece(job, OLD_V, work)
    new_v = piece(job, NEW_V, work)
    step = piece(job, SHIFT, work)
    for i in range(n6):
        first = 0.0
        second = 0.0
        for j in range(k):
            a = history[((head + j) % abi.HISTORY) * n6 + i]
            first += once[j] * a
            second += twice[j] * a
        new_v[i] = old_v[i] + h * first
        step[i] = h * (old_v[i] + h * second)
    add_magnus(bodies, h, old_v, new_v, step)
    retract(job, piece(job, OLD_Q, work), step, piece(job, NEW_Q, work), work)


def _advance(op, job, control, q, v, history, storage, work):
    """Integrate from (q, v) until END, or until CHUNK steps are done; returns RUNNING, DONE, … of abi."""
    n6 = WIDTH * job[abi.BODIES]
    times = floats_at(job[abi.TIMES])
    new_q = piece(job, NEW_Q, work)
    new_v = piece(job, NEW_V, work)
    new_a = piece(job, NEW_A, work)
    step = piece(job, SHIFT, work)
    multipliers = piece(job, MULTIPLIERS, work)
    end_multipliers = piece(job, END_MULTIPLIERS, work)
    while True:
        if control[abi.PHASE] == abi.BEGIN:
            control[abi.ASK_TIME] = control[abi.TIME]
            if lacks_drivers(job, control):
                return abi.ASK_DRIVERS
            set_drivers(job, control)
            for i in range(job[abi.COORDINATES]):
                new_q[i] = q[i]
            for i in range(n6):
                new_v[i] = v[i]
                step[i] = 0.0
            if not at_instant(LINEARIZE | CLOSE, job, control, new_q, new_v, new_a, multipliers, work):
                return abi.NOT_CLOSED
            control[abi.PHASE] = abi.ACCEPT
            if job[abi.ASKS] != 0:
                return abi.ASK_LOADS
        if control[abi.PHASE] == abi.PREDICT:
            if control[abi.EVENT] != 0.0:
                return abi.EVENT_REACHED
            if control[abi.CHUNK] <= 0.0:
                return abi.RUNNING
            rest = control[abi.END] - control[abi.TIME]
            if rest <= SAME_TIME * control[abi.STEP]:
                return abi.DONE
            control[abi.ASK_TIME] = next_time(control, rest)
            if lacks_drivers(job, control):
                return abi.ASK_DRIVERS
            set_drivers(job, control)
            predict(job, control, q, v, history, work)
            control[abi.PHASE] = abi.CORRECT
            if job[abi.ASKS] != 0:
                return abi.ASK_LOADS
        if control[abi.PHASE] == abi.CORRECT:
            control[abi.SHIFTED] = 0.0
            at_instant(APPROACH | LINEARIZE | ACCELERATE, job, control, new_q, new_v, new_a, multipliers, work)
            if not is_finite(n6, new_a):
                return abi.NOT_FINITE
            error = correct(job, control, v, history, work)
            control[abi.FRESH] = 1.0 if control[abi.UNEVEN] > 0.0 else 0.0
            refused = control[abi.RTOL] > 0.0 and error > control[abi.RTOL]
            shrink = SHRINK
            if refused:
                k = min(control[abi.KNOWN], control[abi.ORDER])
                shrink = max(SHRINK, SAFETY * (error / control[abi.RTOL]) ** (-1.0 / (k + 1.0)))
            elif not at_instant(CLOSE, job, control, new_q, new_v, new_a, multipliers, work):
                if control[abi.RTOL] == 0.0:
                    return abi.NOT_CLOSED
                refused = True
            elif control[abi.RTOL] > 0.0:
                refused = control[abi.SHIFTED] > max(abi.MOST_ERROR, MOST_SHIFT * control[abi.RTOL])
            else:
                error = max(error, control[abi.SHIFTED])
            if refused:
                control[abi.REFUSED] += 1.0
                control[abi.HOLD] = 0.0
                control[abi.FRESH] = 1.0
                control[abi.STEP] *= shrink
                control[abi.PHASE] = abi.PREDICT
                if control[abi.STEP] < least_step(job, control):
                    return abi.STEP_TOO_SMALL
                continue
            control[abi.LAST_ERROR] = error
            control[abi.ERROR] = max(control[abi.ERROR], error)
            control[abi.PHASE] = abi.ACCEPT
            if job[abi.ASKS] != 0:
                return abi.ASK_LOADS
        if control[abi.PHASE] == abi.ACCEPT:
            at_instant(CURVATURE | ACCELERATE, job, control, new_q, new_v, new_a, end_multipliers, work)
            if not is_finite(n6, new_a):
                return abi.NOT_FINITE
            if job[abi.STOP_COUNT] > 0:
                if control[abi.KNOWN] > 0.0 and at_stops(SEEK, job, control, new_q, new_v, end_multipliers, work):
                    control[abi.PHASE] = abi.PREDICT
                    continue
                control[abi.HIGH] = 0.0
                at_stops(KEEP, job, control, new_q, new_v, end_multipliers, work)
            accept(job, control, q, v, history, work)
            if control[abi.KNOWN] > 1.0:
                control[abi.UNEVEN] = max(0.0, control[abi.UNEVEN] - 1.0)
                control[abi.TAKEN] += 1.0
                control[abi.CHUNK] = next_chunk(control)
                if control[abi.RTOL] > 0.0:
                    next_step(control)
            control[abi.PHASE] = abi.OUTPUT
        if control[abi.PHASE] == abi.OUTPUT:
            if control[abi.SAMPLE] >= control[abi.SAMPLES]:
                control[abi.PHASE] = abi.PREDICT
                continue
            t = times[int(control[abi.SAMPLE])]
            if is_at(t, control[abi.TIME], control[abi.STEP]):
                a = tail(history, int(control[abi.HEAD]) * n6)
                store(job, control, control[abi.TIME], q, v, a, end_multipliers, storage)
                control[abi.PHASE] = abi.PREDICT
                continue
            if t > control[abi.TIME]:
                control[abi.PHASE] = abi.PREDICT
                continue
            control[abi.ASK_TIME] = t
            if lacks_drivers(job, control):
                return abi.ASK_DRIVERS
            set_drivers(job, control)
            interpolate(job, control, history, t, work)
            for i in range(n6):
                step[i] = 0.0
            if not at_instant(LINEARIZE | CLOSE, job, control, new_q, new_v, new_a, multipliers, work):
                return abi.NOT_CLOSED
            control[abi.PHASE] = abi.BETWEEN
            if job[abi.ASKS] != 0:
                return abi.ASK_LOADS
        if control[abi.PHASE] == abi.BETWEEN:
            at_instant(CURVATURE | ACCELERATE, job, control, new_q, new_v, new_a, multipliers, work)
            store(job, control, control[abi.ASK_TIME], new_q, new_v, new_a, multipliers, storage)
            control[abi.PHASE] = abi.OUTPUT


ADVANCE = evaluator(_advance)
