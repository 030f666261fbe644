"""Adams' method on the manifold: one evaluation of f, J, γ and one factorisation per step, and joints that stay closed.

Predict v by the polynomial through the last k accelerations, and the pose by its second integral, with Magnus' term
θ += h²/12 ω_n × ω_{n+1}.  Evaluate and factorise there.  Correct both by the polynomial through the new acceleration
and the last k; project pose and velocity onto the constraints with the same factor; compute the acceleration again,
at the corrected velocity, with the same J and factor.

Nodes may be uneven: with RTOL > 0 steps are chosen by the difference of two correctors, from order one on; otherwise
STEP is kept.  The kernel returns if it needs values that only Python computes (of drivers, of users' loads).  PHASE
tells where it continues when it is called again.
"""

from cardan.dynamics._equations import (
    SOLVE,
    call_algebra,
    call_pose_algebra,
    mass_values,
    retract,
    rounding_of,
    set_drivers,
)
from cardan.dynamics._instant import ACCELERATE, APPROACH, CLOSE, CURVATURE, KEEP, LINEARIZE, SEEK, at_instant, at_stops
from cardan.dynamics.tables import (
    ACCEPT,
    ASK_DRIVERS,
    ASK_LOADS,
    BEGIN,
    BETWEEN,
    CORRECT,
    DONE,
    EVENT_REACHED,
    HISTORY,
    MOST_ERROR,
    NOT_CLOSED,
    NOT_FINITE,
    OUTPUT,
    PREDICT,
    PROJECTED,
    RUNNING,
    STEP_TOO_SMALL,
    WIDTH,
    Control,
    MotionJob,
    Rule,
    Weights,
    Work,
)
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail

SAME_STEP = 1e-9  # steps that differ by less, relatively, have the same weights
SAME_TIME = 1e-12  # times that differ by less, relative to a step, are one
SAFETY = 0.8  # of the step that would just meet RTOL
SHRINK = 0.2  # least factor on a refused step
GROW = 2.0  # largest factor on an accepted step
REDUCE = 0.5  # least factor on an accepted step
WORTH_GROWTH = 1.25  # a step that could grow by less is kept, so that its weights are reused
WORTH_REDUCTION = 0.9  # a step that should be reduced by less is kept
TRAPPED = 1e-5  # of the largest step: a refused step this small, without loads, drivers and stops, is refused for noise
LEAST_RATIO = 1e-12  # added to error/RTOL, which may be zero
MOST_SHIFT = 10.0  # of RTOL: a variable step that is shifted more onto the constraints is refused
FINITE = 1e200  # larger accelerations are refused: their squares would overflow

PREDICTOR, CORRECTOR, LOWER = range(3)  # rules of Weights; the last one is a corrector of one order less
MOST_NORMAL = 1e-8  # a larger error across the constraints may lead to another branch of a singular pose
KEEPING = 0.3  # of RTOL: an error with which a step is kept
CAREFUL = 20.0  # steps after a refused one
HOPELESS = 1e-3  # of the largest step: careful steps this short that cannot be projected are not careful any more
CAREFUL_EXACT = 1e-12  # in place of Control.exact, in such steps
ON = -1  # what a phase returns if the next phase follows


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
def node(work, n6, head, j):
    """The j-th last acceleration."""
    return tail(work.accelerations, ((head + j) % HISTORY) * n6)


@inner
def update_weights(control, times, weights):
    """Weights of the predictor, of the corrector, and of the corrector of one order less."""
    k = int(min(control.known, control.order))
    head = int(control.head)
    nodes = weights.nodes
    h = control.step
    nodes[0] = 1.0
    for j in range(k):
        nodes[j + 1] = (times[(head + j) % HISTORY] - control.time) / h
    for number in range(3):
        rule = Rule(weights.rules, number)
        first = 1 if number == PREDICTOR else 0
        integrals(k + number % 2, tail(nodes, first), 1.0, rule.once, rule.twice, weights.partial)
    lower = Rule(weights.rules, LOWER)
    lower.once[k] = 0.0
    lower.twice[k] = 0.0


@inner
def predict(job, control, q, v, work):
    """NEW_V, NEW_Q ← velocity and pose at the end of the step."""
    bodies = job.bodies
    n6 = WIDTH * bodies
    h = control.step
    k = int(min(control.known, control.order))
    head = int(control.head)
    weights = Weights(work.weights)
    if control.fresh != 0.0:
        update_weights(control, work.node_times, weights)
    new_v = work.new_v
    step = work.shift
    for i in range(n6):
        new_v[i] = 0.0
        step[i] = 0.0
    rule = Rule(weights.rules, PREDICTOR)
    for j in range(k):
        a = node(work, n6, head, j)
        once = rule.once[j]
        twice = rule.twice[j]
        for i in range(n6):
            new_v[i] += once * a[i]
            step[i] += twice * a[i]
    for i in range(n6):
        new_v[i] = v[i] + h * new_v[i]
        step[i] = h * (v[i] + h * step[i])
    add_magnus(bodies, h, v, new_v, step)
    retract(job, q, step, work.new_q, work)


@inner
def correct(job, control, v, work):
    """NEW_V, SHIFT ← corrected velocity, and change of the pose; returns the estimated error.

    The error is relative to the extent, or in radians, and to speeds above one [1/s].
    """
    n6 = WIDTH * job.bodies
    h = control.step
    k = int(min(control.known, control.order))
    head = int(control.head)
    weights = Weights(work.weights)
    new_v = work.new_v
    step = work.shift
    new_a = work.new_a
    accelerations = work.accelerations
    predictor = Rule(weights.rules, PREDICTOR)
    corrector = Rule(weights.rules, CORRECTOR)
    lower = Rule(weights.rules, LOWER)
    largest = 0.0
    for i in range(n6):
        once = corrector.once[0] * new_a[i]
        twice = corrector.twice[0] * new_a[i]
        less_once = lower.once[0] * new_a[i]
        less_twice = lower.twice[0] * new_a[i]
        before = 0.0
        for j in range(k):
            a = accelerations[((head + j) % HISTORY) * n6 + i]
            once += corrector.once[j + 1] * a
            twice += corrector.twice[j + 1] * a
            less_once += lower.once[j + 1] * a
            less_twice += lower.twice[j + 1] * a
            before += predictor.twice[j] * a
        unit = control.length if i % WIDTH < 3 else 1.0
        speed = max(1.0, abs(v[i]) / unit)
        largest = max(largest, h * h * abs(twice - less_twice) / unit, h * abs(once - less_once) / (unit * speed))
        new_v[i] = v[i] + h * once
        step[i] = h * h * (twice - before)
    return largest


@inner
def tangent_error(job, control, v, work):
    """The estimated error of :func:`correct` without what the projection onto the constraints removes.

    Accelerations near a singular pose have errors of rounding over σ³ across the branch of the motion.
    """
    n6 = WIDTH * job.bodies
    h = control.step
    k = int(min(control.known, control.order))
    head = int(control.head)
    weights = Weights(work.weights)
    accelerations = work.accelerations
    corrector = Rule(weights.rules, CORRECTOR)
    lower = Rule(weights.rules, LOWER)
    roots = mass_values(job).roots
    inverse_roots = mass_values(job).inverse_roots
    x = work.x
    largest = 0.0
    for of_pose in range(2):
        for i in range(n6):
            e = 0.0
            for j in range(k + 1):
                a = work.new_a[i] if j == 0 else accelerations[((head + j - 1) % HISTORY) * n6 + i]
                e += a * (corrector.twice[j] - lower.twice[j] if of_pose else corrector.once[j] - lower.once[j])
            x[i] = e * roots[i]
        for i in range(job.equations):
            x[n6 + i] = 0.0
        if of_pose:
            call_pose_algebra(job, SOLVE, control, work)
        else:
            call_algebra(job, SOLVE, control, work)
        for i in range(n6):
            unit = control.length if i % WIDTH < 3 else 1.0
            size = h / unit if of_pose else 1.0 / (unit * max(1.0, abs(v[i]) / unit))
            largest = max(largest, h * size * abs(x[i] * inverse_roots[i]))
    return largest


@inner
def store(job, control, t, q, v, a, multipliers, storage):
    """Append one row to the results: time, q, v, v̇, λ."""
    n6 = WIDTH * job.bodies
    size = 1 + job.coordinates + 2 * n6 + job.equations
    row = cut(storage, size * int(control.sample), size)
    control.sample += 1.0
    row[0] = t
    at = 1
    for i in range(job.coordinates):
        row[at + i] = q[i]
    at += job.coordinates
    for i in range(n6):
        row[at + i] = v[i]
        row[at + n6 + i] = a[i]
    at += 2 * n6
    for i in range(job.equations):
        row[at + i] = multipliers[i]


@inner
def is_passed(job, control, q, v, storage, work):
    """Store the state now, if an output is there; returns whether an output is before it."""
    if control.sample >= control.samples:
        return False
    t = job.times[int(control.sample)]
    if is_at(t, control.time, control.step):
        a = node(work, WIDTH * job.bodies, int(control.head), 0)
        store(job, control, control.time, q, v, a, work.end_multipliers, storage)
        return False
    return t <= control.time


@inner
def is_finite(n, a):
    for i in range(n):
        if not abs(a[i]) < FINITE:
            return False
    return True


@inner
def push(job, control, t, a, work):
    """Keep an acceleration as the last."""
    n6 = WIDTH * job.bodies
    head = (int(control.head) + HISTORY - 1) % HISTORY
    control.head = float(head)
    last = node(work, n6, head, 0)
    for i in range(n6):
        last[i] = a[i]
    work.node_times[head] = t
    control.known = min(control.known + 1.0, float(HISTORY))


@inner
def accept(job, control, q, v, work):
    """q, v ← the new pose and velocity, kept in OLD_Q and OLD_V; the new acceleration becomes the last."""
    new_q = work.new_q
    new_v = work.new_v
    old_q = work.old_q
    old_v = work.old_v
    for i in range(job.coordinates):
        old_q[i] = q[i]
        q[i] = new_q[i]
    for i in range(WIDTH * job.bodies):
        old_v[i] = v[i]
        v[i] = new_v[i]
    control.time = control.ask_time
    if control.known > 0.0:
        control.count += 1.0
    push(job, control, control.time, work.new_a, work)


@inner
def least_step(job, control):
    """The least step of RTOL.

    The accelerations of parts without loads, drivers and stops are smooth.  If their steps become very small, the error
    is rounding that a singular pose enlarges, and grows as the pose is approached in smaller steps.
    """
    is_smooth = job.loads == 0 and job.stop_count == 0 and job.driven + job.timed == 0
    return max(control.least_step, TRAPPED * control.largest_step if is_smooth else 0.0)


@inner
def next_step(control):
    """Choose the next step by the error of the last one."""
    control.largest_step = max(control.largest_step, control.step)
    k = min(control.known - 1.0, control.order)
    growth = SAFETY * (control.last_error / control.rtol + LEAST_RATIO) ** (-1.0 / (k + 1.0))
    control.hold += 1.0
    if control.known <= control.order + 1.0 or control.hold <= control.order + 2.0:
        control.fresh = 1.0
    most = min(control.most_step, SAFETY * control.turn_step)
    is_due = control.hold > k and (growth > WORTH_GROWTH or growth < WORTH_REDUCTION)
    is_starting = control.refused == 0.0 and growth > GROW
    is_far = control.step > control.turn_step
    if is_due or is_starting or is_far or (k < control.order and growth > 1.0):
        control.step = min(control.step * min(GROW, max(REDUCE, growth)), most)
        control.hold = 0.0
        control.fresh = 1.0


@inner
def next_chunk(control):
    """Steps left; none if a constant step was too large, or the next one would turn a body too far."""
    is_too_large = control.last_error > MOST_ERROR or control.step > control.turn_step
    return 0.0 if control.rtol == 0.0 and is_too_large else control.chunk - 1.0


@inner
def lacks_drivers(job, control):
    """Whether Python must fill DRIVE for the time ASK_TIME first."""
    return job.driven + job.timed > 0 and control.drive_at >= control.drive_count


@inner
def is_at(t, other, step):
    """Whether two times are one."""
    return abs(t - other) <= SAME_TIME * (abs(t) + step)


@inner
def next_status(control):
    """ON if another step follows, or why none does."""
    if control.event != 0.0:
        return EVENT_REACHED
    if control.chunk <= 0.0:
        return RUNNING
    return DONE if control.end - control.time <= SAME_TIME * control.step else ON


@inner
def next_time(control):
    """The end of the next step.  Constant steps are counted, so that rounding does not accumulate."""
    step = control.step
    rest = control.end - control.time
    if rest < step * (1.0 + SAME_STEP):
        if rest < step * (1.0 - SAME_STEP):
            control.step = rest
            control.fresh = 1.0
        return control.end
    if control.rtol > 0.0 or control.high > 0.0 or control.whole > 0.0:
        return control.time + step
    return control.base + (control.count + 1.0) * step


@inner
def interpolate(job, control, t, work):
    """NEW_V, NEW_Q ← velocity and pose at a time within the last step, from the state before it."""
    bodies = job.bodies
    n6 = WIDTH * bodies
    head = int(control.head)
    times = work.node_times
    before = times[(head + 1) % HISTORY]
    accelerations = work.accelerations
    k = int(min(control.known, control.order + 1.0))
    weights = Weights(work.weights)
    nodes = weights.nodes
    rule = Rule(weights.rules, PREDICTOR)
    once = rule.once
    twice = rule.twice
    h = t - before
    for j in range(k):
        nodes[j] = (times[(head + j) % HISTORY] - before) / h
    integrals(k, nodes, 1.0, once, twice, weights.partial)
    control.fresh = 1.0
    old_v = work.old_v
    new_v = work.new_v
    step = work.shift
    for i in range(n6):
        first = 0.0
        second = 0.0
        for j in range(k):
            a = accelerations[((head + j) % HISTORY) * n6 + i]
            first += once[j] * a
            second += twice[j] * a
        new_v[i] = old_v[i] + h * first
        step[i] = h * (old_v[i] + h * second)
    add_magnus(bodies, h, old_v, new_v, step)
    retract(job, work.old_q, step, work.new_q, work)


@inner
def begin(job, control, q, v, work):
    """BEGIN: project the start."""
    control.ask_time = control.time
    if lacks_drivers(job, control):
        return ASK_DRIVERS
    set_drivers(job, control)
    for i in range(job.coordinates):
        work.new_q[i] = q[i]
    for i in range(WIDTH * job.bodies):
        work.new_v[i] = v[i]
        work.shift[i] = 0.0
    if not at_instant(LINEARIZE | CLOSE, job, control, work.new_q, work.new_v, work.new_a, work.multipliers, work):
        return NOT_CLOSED
    control.phase = ACCEPT
    return ASK_LOADS if job.asks != 0 else ON


@inner
def begin_step(job, control, q, v, work):
    """PREDICT: the pose and velocity at the end of the next step, if there is one."""
    status = next_status(control)
    if status != ON:
        return status
    control.ask_time = next_time(control)
    if lacks_drivers(job, control):
        return ASK_DRIVERS
    set_drivers(job, control)
    predict(job, control, q, v, work)
    control.phase = CORRECT
    return ASK_LOADS if job.asks != 0 else ON


@inner
def refuse(job, control, shrink):
    """Make a step again, shorter."""
    control.refused += 1.0
    control.careful = max(control.careful, CAREFUL)
    control.hold = 0.0
    control.fresh = 1.0
    control.step *= shrink
    control.phase = PREDICT
    return STEP_TOO_SMALL if control.step < least_step(job, control) else ON


@inner
def correct_step(job, control, v, work):
    """CORRECT: evaluate at the predicted pose, correct and project; or refuse the step.

    Near a singular pose with a singular value σ, accelerations change by the error of a pose over σ.  The factor of the
    pose before does not remove this error.  Careful steps therefore project the predicted pose with its own factor,
    unless this remains impossible for short steps.
    """
    exact = control.exact
    op = APPROACH | LINEARIZE | ACCELERATE
    if control.careful > 0.0:
        control.exact = min(exact, max(CAREFUL_EXACT, rounding_of(job, control, work.new_q)))
        op |= CLOSE | CURVATURE
        for i in range(WIDTH * job.bodies):
            work.shift[i] = 0.0
    status = try_step(op, job, control, v, work)
    control.exact = exact
    return status


@inner
def try_step(op, job, control, v, work):
    """The operations at the predicted pose, the corrector and the projection; or refuse the step."""
    new_q = work.new_q
    new_v = work.new_v
    new_a = work.new_a
    multipliers = work.multipliers
    control.shifted = 0.0
    if not at_instant(op, job, control, new_q, new_v, new_a, multipliers, work):
        status = refuse(job, control, SHRINK)
        if control.step < HOPELESS * control.largest_step:
            control.careful = 0.0
        return status
    if not is_finite(WIDTH * job.bodies, new_a):
        return NOT_FINITE
    error = correct(job, control, v, work)
    is_noisy = control.careful >= CAREFUL and control.rtol < error < MOST_NORMAL and control.stabilization == PROJECTED
    if is_noisy:
        tangent = tangent_error(job, control, v, work)
        if tangent <= control.rtol:
            error = max(tangent, KEEPING * control.rtol)
            control.careful += 1.0
    control.fresh = 1.0 if control.uneven > 0.0 else 0.0
    refused = control.rtol > 0.0 and error > control.rtol
    shrink = SHRINK
    if refused:
        k = min(control.known, control.order)
        shrink = max(SHRINK, SAFETY * (error / control.rtol) ** (-1.0 / (k + 1.0)))
    elif not at_instant(CLOSE, job, control, new_q, new_v, new_a, multipliers, work):
        if control.rtol == 0.0:
            return NOT_CLOSED
        refused = True
    elif control.rtol > 0.0:
        refused = control.shifted > max(MOST_ERROR, MOST_SHIFT * control.rtol)
    else:
        error = max(error, control.shifted)
    if refused:
        return refuse(job, control, shrink)
    control.last_error = error
    control.error = max(control.error, error)
    control.careful = max(0.0, control.careful - 1.0)
    control.phase = ACCEPT
    return ASK_LOADS if job.asks != 0 else ON


@inner
def accept_step(job, control, q, v, work):
    """ACCEPT: the acceleration at the end of the step, which is taken unless it is to end at an event."""
    new_q = work.new_q
    new_v = work.new_v
    multipliers = work.end_multipliers
    at_instant(CURVATURE | ACCELERATE, job, control, new_q, new_v, work.new_a, multipliers, work)
    if not is_finite(WIDTH * job.bodies, work.new_a):
        return NOT_FINITE
    if job.stop_count > 0:
        if control.known > 0.0 and at_stops(SEEK, job, control, new_q, new_v, multipliers, work):
            control.phase = PREDICT
            return ON
        control.high = 0.0
        at_stops(KEEP, job, control, new_q, new_v, multipliers, work)
    accept(job, control, q, v, work)
    if control.known > 1.0:
        control.uneven = max(0.0, control.uneven - 1.0)
        control.taken += 1.0
        control.chunk = next_chunk(control)
        if control.rtol > 0.0:
            next_step(control)
    control.phase = OUTPUT
    return ON


@inner
def begin_output(job, control, q, v, storage, work):
    """OUTPUT: store the state at the end of the step, if an output is there, or interpolate to the next output."""
    if not is_passed(job, control, q, v, storage, work):
        control.phase = PREDICT
        return ON
    t = job.times[int(control.sample)]
    control.ask_time = t
    if lacks_drivers(job, control):
        return ASK_DRIVERS
    set_drivers(job, control)
    interpolate(job, control, t, work)
    for i in range(WIDTH * job.bodies):
        work.shift[i] = 0.0
    if not at_instant(LINEARIZE | CLOSE, job, control, work.new_q, work.new_v, work.new_a, work.multipliers, work):
        return NOT_CLOSED
    control.phase = BETWEEN
    return ASK_LOADS if job.asks != 0 else ON


@inner
def end_output(job, control, storage, work):
    """BETWEEN: store the interpolated state."""
    new_a = work.new_a
    at_instant(CURVATURE | ACCELERATE, job, control, work.new_q, work.new_v, new_a, work.multipliers, work)
    store(job, control, control.ask_time, work.new_q, work.new_v, new_a, work.multipliers, storage)
    control.phase = OUTPUT
    return ON


def _advance(op, ints, floats, q, v, storage, unused, memory):
    """Integrate from (q, v) until the end, or until a chunk of steps is done; returns RUNNING, DONE, …"""
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    status = ON
    while status == ON:
        if control.phase == BEGIN:
            status = begin(job, control, q, v, work)
        elif control.phase == PREDICT:
            status = begin_step(job, control, q, v, work)
        elif control.phase == CORRECT:
            status = correct_step(job, control, v, work)
        elif control.phase == ACCEPT:
            status = accept_step(job, control, q, v, work)
        elif control.phase == OUTPUT:
            status = begin_output(job, control, q, v, storage, work)
        else:
            status = end_output(job, control, storage, work)
    return status


ADVANCE = evaluator(_advance)
