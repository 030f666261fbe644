"""Explicit Runge–Kutta methods on the manifold, for comparison, and to start Adams' method.

Within a step the pose is q ⊕ θ, with  θ̇ = v + ½ θ × v + 1/12 θ × (θ × v) + …  in the rotations.  A stage is evaluated
at the pose and velocity nearest to it that satisfy the constraints: f, J and γ are then those of a smooth vector field
that is the right one on the constraints, so that every method keeps its order.

The error of a step is that of a second method of lower order with the same stages and the acceleration at the end.
"""

from math import sin, sqrt

from cardan.dynamics._adams import (
    ON,
    accept,
    is_finite,
    is_passed,
    lacks_drivers,
    next_chunk,
    next_status,
    next_time,
    node,
)
from cardan.dynamics._equations import retract, set_drivers
from cardan.dynamics._instant import ACCELERATE, APPROACH, CLOSE, CURVATURE, KEEP, LINEARIZE, SEEK, at_instant, at_stops
from cardan.dynamics.tables import (
    ACCEPT,
    ASK_DRIVERS,
    ASK_LOADS,
    NOT_CLOSED,
    NOT_FINITE,
    PREDICT,
    WIDTH,
    Control,
    MotionJob,
    Work,
)
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail

SMALL = 0.02  # [rad] below, a series is used: rounding of the closed form is divided by the square of the angle


@inner
def tangent_rate(bodies, theta, v, out):
    """out ← θ̇: v in the translations, the inverse of the right Jacobian of exp times ω in the rotations."""
    for b in range(bodies):
        o = WIDTH * b
        for i in range(3):
            out[o + i] = v[o + i]
        t = tail(theta, o + 3)
        w = tail(v, o + 3)
        square = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
        angle = sqrt(square)
        if angle < SMALL:
            c = 1.0 / 12.0 + square / 720.0 + square * square / 30240.0
        else:
            half = sin(0.5 * angle)
            c = (1.0 - 0.25 * angle * sin(angle) / (half * half)) / square
        x = t[1] * w[2] - t[2] * w[1]
        y = t[2] * w[0] - t[0] * w[2]
        z = t[0] * w[1] - t[1] * w[0]
        out[o + 3] = w[0] + 0.5 * x + c * (t[1] * z - t[2] * y)
        out[o + 4] = w[1] + 0.5 * y + c * (t[2] * x - t[0] * z)
        out[o + 5] = w[2] + 0.5 * z + c * (t[0] * y - t[1] * x)


@inner
def step_error(job, control, op, weights, v, a, stages):
    """h Σ eⱼ v̇ⱼ of the stages, the last at the end of the step; relative to the extent, to speeds above one [1/s]."""
    n6 = WIDTH * job.bodies
    largest = 0.0
    for i in range(n6):
        e = weights[op] * a[i]
        for j in range(op):
            e += weights[j] * stages[2 * n6 * j + n6 + i]
        unit = control.length if i % WIDTH < 3 else 1.0
        largest = max(largest, control.step * abs(e) / max(unit, abs(v[i])))
    return largest


@inner
def begin_step(job, control, v, work):
    """The end of the next step, and its first stage, which is the state now; returns ON if there is such a step."""
    status = next_status(control)
    if status != ON:
        return status
    control.step_end = next_time(control)
    control.stage = 1.0
    n6 = WIDTH * job.bodies
    first = node(work, n6, int(control.head), 0)
    for i in range(n6):
        work.stages[i] = v[i]
        work.stages[n6 + i] = first[i]
    return ON


@inner
def begin_stage(op, job, control, q, v, work):
    """PREDICT: the pose and velocity of a stage, or of the end, on the constraints."""
    n6 = WIDTH * job.bodies
    s = int(control.stage)
    h = control.step
    row = tail(work.tableau, s * (s - 1) // 2)
    new_q = work.new_q
    new_v = work.new_v
    new_a = work.new_a
    stages = work.stages
    theta = cut(stages, 2 * n6 * op, n6)
    control.ask_time = control.step_end if s == op else control.time + work.stage_nodes[s] * h
    if lacks_drivers(job, control):
        return ASK_DRIVERS
    set_drivers(job, control)
    for i in range(n6):
        once = 0.0
        twice = 0.0
        for j in range(s):
            weight = row[j]
            twice += weight * stages[2 * n6 * j + i]
            once += weight * stages[2 * n6 * j + n6 + i]
        new_v[i] = v[i] + h * once
        theta[i] = h * twice
    retract(job, q, theta, new_q, work)
    control.shifted = 0.0
    for i in range(n6):
        new_a[i] = 0.0
    at_instant(APPROACH, job, control, new_q, new_v, new_a, work.end_multipliers, work)
    for i in range(n6):
        work.shift[i] = new_a[i]
    if not is_finite(n6, new_v):
        return NOT_FINITE
    if not at_instant(LINEARIZE | CLOSE, job, control, new_q, new_v, new_a, work.end_multipliers, work):
        return NOT_CLOSED
    control.phase = ACCEPT
    return ASK_LOADS if job.asks != 0 else ON


@inner
def end_stage(op, job, control, work):
    """ACCEPT: the acceleration of a stage, or at the end of the step; returns NOT_FINITE or ON."""
    n6 = WIDTH * job.bodies
    s = int(control.stage)
    at_instant(CURVATURE | ACCELERATE, job, control, work.new_q, work.new_v, work.new_a, work.end_multipliers, work)
    if not is_finite(n6, work.new_a):
        return NOT_FINITE
    control.phase = PREDICT
    if s < op:
        control.stage += 1.0
        stage = tail(work.stages, 2 * n6 * s)
        tangent_rate(job.bodies, tail(work.stages, 2 * n6 * op), work.new_v, stage)
        for i in range(n6):
            stage[n6 + i] = work.new_a[i]
    else:
        control.stage = 0.0
    return ON


@inner
def end_step(op, job, control, q, v, storage, work):
    """Take the step, unless it is to end at an event."""
    new_q = work.new_q
    new_v = work.new_v
    multipliers = work.end_multipliers
    if job.stop_count > 0:
        if at_stops(SEEK, job, control, new_q, new_v, multipliers, work):
            return
        control.high = 0.0
        at_stops(KEEP, job, control, new_q, new_v, multipliers, work)
    error = step_error(job, control, op, work.error_weights, new_v, work.new_a, work.stages)
    control.last_error = max(error, control.shifted)
    control.error = max(control.error, control.last_error)
    accept(job, control, q, v, work)
    control.taken += 1.0
    control.chunk = next_chunk(control)
    is_passed(job, control, q, v, storage, work)


def _advance(op, ints, floats, q, v, storage, unused, memory):
    """Steps from (q, v) until the end, or until a chunk of steps is done; returns RUNNING, DONE, …

    op: number of stages.
    The last acceleration is that of (q, v).
    """
    job = MotionJob(ints)
    control = Control(floats)
    work = Work(job.pieces, memory)
    status = ON
    while status == ON:
        if control.phase == PREDICT:
            if control.stage == 0.0:
                status = begin_step(job, control, v, work)
            if status == ON:
                status = begin_stage(op, job, control, q, v, work)
        else:
            status = end_stage(op, job, control, work)
            if status == ON and control.stage == 0.0:
                end_step(op, job, control, q, v, storage, work)
    return status


ADVANCE = evaluator(_advance)
