"""Explicit Runge–Kutta methods on the manifold, for comparison, and to start Adams' method.

Within a step the pose is q ⊕ θ, with  θ̇ = v + ½ θ × v + 1/12 θ × (θ × v) + …  in the rotations.  A stage is evaluated
at the pose and velocity nearest to it that satisfy the constraints: f, J and γ are then those of a smooth vector field
that is the right one on the constraints, so that every method keeps its order.

The error of a step is that of a second method of lower order with the same stages and the acceleration at the end.
"""

from math import sin, sqrt

from cardan.dynamics import abi
from cardan.dynamics._adams import SAME_TIME, accept, is_at, is_finite, lacks_drivers, next_chunk, next_time, store
from cardan.dynamics._equations import END_MULTIPLIERS, NEW_A, NEW_Q, NEW_V, SHIFT, STAGES, piece, retract, set_drivers
from cardan.dynamics._instant import ACCELERATE, APPROACH, CLOSE, CURVATURE, KEEP, LINEARIZE, SEEK, at_instant, at_stops
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, floats_at, tail

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
    n6 = WIDTH * job[abi.BODIES]
    largest = 0.0
    for i in range(n6):
        e = weights[op] * a[i]
        for j in range(op):
            e += weights[j] * stages[2 * n6 * j + n6 + i]
        unit = control[abi.LENGTH] if i % WIDTH < 3 else 1.0
        largest = max(largest, control[abi.STEP] * abs(e) / max(unit, abs(v[i])))
    return largest


def _advance(op, job, control, q, v, history, storage, work):
    """Steps of STEP from (q, v) until END, or until CHUNK steps are done; returns RUNNING, DONE, … of abi.

    op: number of stages.
    The last acceleration in the history is that of (q, v).  The coefficients are at the end of the history: the lower
    triangle of the tableau row by row, its last row the weights, then the nodes, then the weights of the error.
    """
    bodies = job[abi.BODIES]
    n6 = WIDTH * bodies
    times = floats_at(job[abi.TIMES])
    new_q = piece(job, NEW_Q, work)
    new_v = piece(job, NEW_V, work)
    new_a = piece(job, NEW_A, work)
    step = piece(job, SHIFT, work)
    multipliers = piece(job, END_MULTIPLIERS, work)
    stages = piece(job, STAGES, work)  # of each stage θ̇ and v̇, then θ
    theta = cut(stages, 2 * n6 * op, n6)
    tableau = tail(history, abi.HISTORY * (n6 + 1))
    nodes = tail(tableau, op * (op + 1) // 2)
    while True:
        h = control[abi.STEP]
        s = int(control[abi.STAGE])
        if control[abi.PHASE] == abi.PREDICT:
            if s == 0:
                if control[abi.EVENT] != 0.0:
                    return abi.EVENT_REACHED
                if control[abi.CHUNK] <= 0.0:
                    return abi.RUNNING
                rest = control[abi.END] - control[abi.TIME]
                if rest <= SAME_TIME * h:
                    return abi.DONE
                control[abi.STEP_END] = next_time(control, rest)
                h = control[abi.STEP]
                s = 1
                control[abi.STAGE] = 1.0
                first = tail(history, int(control[abi.HEAD]) * n6)
                for i in range(n6):
                    stages[i] = v[i]
                    stages[n6 + i] = first[i]
            control[abi.ASK_TIME] = control[abi.STEP_END] if s == op else control[abi.TIME] + nodes[s] * h
            if lacks_drivers(job, control):
                return abi.ASK_DRIVERS
            set_drivers(job, control)
            for i in range(n6):
                once = 0.0
                twice = 0.0
                for j in range(s):
                    weight = tableau[s * (s - 1) // 2 + j]
                    twice += weight * stages[2 * n6 * j + i]
                    once += weight * stages[2 * n6 * j + n6 + i]
                new_v[i] = v[i] + h * once
                theta[i] = h * twice
            retract(job, q, theta, new_q, work)
            control[abi.SHIFTED] = 0.0
            for i in range(n6):
                new_a[i] = 0.0
            at_instant(APPROACH, job, control, new_q, new_v, new_a, multipliers, work)
            for i in range(n6):
                step[i] = new_a[i]
            if not is_finite(n6, new_v):
                return abi.NOT_FINITE
            if not at_instant(LINEARIZE | CLOSE, job, control, new_q, new_v, new_a, multipliers, work):
                return abi.NOT_CLOSED
            control[abi.PHASE] = abi.ACCEPT
            if job[abi.ASKS] != 0:
                return abi.ASK_LOADS
        at_instant(CURVATURE | ACCELERATE, job, control, new_q, new_v, new_a, multipliers, work)
        if not is_finite(n6, new_a):
            return abi.NOT_FINITE
        control[abi.PHASE] = abi.PREDICT
        if s < op:
            control[abi.STAGE] += 1.0
            own = tail(stages, 2 * n6 * s)
            tangent_rate(bodies, theta, new_v, own)
            for i in range(n6):
                own[n6 + i] = new_a[i]
            continue
        if job[abi.STOP_COUNT] > 0:
            if at_stops(SEEK, job, control, new_q, new_v, multipliers, work):
                control[abi.STAGE] = 0.0
                continue
            control[abi.HIGH] = 0.0
            at_stops(KEEP, job, control, new_q, new_v, multipliers, work)
        control[abi.STAGE] = 0.0
        error = step_error(job, control, op, tail(nodes, op), new_v, new_a, stages)
        control[abi.LAST_ERROR] = max(error, control[abi.SHIFTED])
        control[abi.ERROR] = max(control[abi.ERROR], control[abi.LAST_ERROR])
        accept(job, control, q, v, history, work)
        control[abi.TAKEN] += 1.0
        control[abi.CHUNK] = next_chunk(control)
        if control[abi.SAMPLE] < control[abi.SAMPLES]:
            if is_at(times[int(control[abi.SAMPLE])], control[abi.TIME], h):
                store(job, control, control[abi.TIME], q, v, new_a, multipliers, storage)


ADVANCE = evaluator(_advance)
