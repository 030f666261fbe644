"""Generalised forces of loads.

A law acts on coordinates x(q) of a system of their own, which has the bodies and reference frames of the mechanism:

    ẋ = J v,   e = e(t, x, ẋ),   Q += Jᵀ e,

so that e·ẋ is the power, and −∂V/∂x the effort, of a load with the potential V.  For the distance of two points x is
the vector d between them, which has a gradient where |d| has none: e(|d|, d·ḋ/|d|) acts along d/|d|.  At d = 0 it acts
along ±ḋ, if it is the same just before and just after; otherwise it is undefined, NaN.

A wrench is a force at a point, or a torque, on one body.

Reads Loads (:mod:`cardan.dynamics.tables`), q, v; writes out, and in the workspace the evaluator's part, x, J, ẋ, e and
the arguments of one function.
"""

from math import nan, pi, sqrt, tanh

from cardan.constraints._calls import call_value
from cardan.coordinates._records import matrix
from cardan.dynamics.tables import (
    APART,
    APPLY,
    CALLED,
    INCLINED,
    LINEAR,
    MATRIX,
    PLAIN,
    READ,
    RECORDED,
    WIDTH,
    Control,
    Law,
    LawCall,
    Linear,
    Loads,
    LoadWork,
    Reading,
    Wrench,
)
from cardan.kernel.jit import evaluator, exact_inner, inner, plain
from cardan.kernel.memory import cut, tail
from cardan.solvers._blocks import add_transpose_times, times
from cardan.solvers._job import evaluate
from cardan.solvers.tables import JACOBIAN as JACOBIAN_OPERATION

JACOBIAN = plain(JACOBIAN_OPERATION)
LAW_SIZE = Law.size
EFFORT, SLOPES = plain(LawCall.effort.first), plain(LawCall.time_slope.first)


@exact_inner
def length(x, y, z):
    """√(x² + y² + z²) without underflow, which reordered products would bring back."""
    size = max(abs(x), abs(y), abs(z))
    if not size > 0.0:
        return size
    x /= size
    y /= size
    z /= size
    return size * sqrt(x * x + y * y + z * z)


@exact_inner
def along(e, x, value):
    """e · x/|d|; the quotient first, since e and x may both be tiny."""
    return e * (x / value)


@inner
def effort(law, numbers, t, x, rate, scratch):
    """e(t, x, ẋ) of a law of one coordinate; zero for a called one."""
    if law.kind == LINEAR:
        linear = Linear(numbers)
        e = linear.constant - linear.stiffness * (x - linear.rest) - linear.damping * rate
        if linear.coulomb != 0.0:
            e -= linear.coulomb * tanh(rate / linear.speed)
        return e
    if law.kind == RECORDED:
        call = LawCall(scratch)
        call.time = t
        call.coordinate = x
        call.rate = rate
        call_value(law.function, scratch, numbers, tail(scratch, EFFORT), tail(scratch, SLOPES))
        return call.effort
    return 0.0


@inner
def update_scalar(op, law, numbers, t, called, x, rates, out, scratch):
    """out ← effort per row of a law of one coordinate, or the called one; scratch ← coordinate, rate, effort."""
    sort = law.sort
    value = x[0]
    rate = rates[0]
    if sort == APART:
        value = length(x[0], x[1], x[2])
        if value > 0.0:
            rate = (x[0] * rates[0] + x[1] * rates[1] + x[2] * rates[2]) / value
        else:
            rate = length(rates[0], rates[1], rates[2])
    e = called if op == APPLY else effort(law, numbers, t, value, rate, scratch)
    if sort == PLAIN:
        out[0] = e
    elif sort == INCLINED:
        out[0] = nan if e != 0.0 and (value == 0.0 or value == pi) else e
    elif value > 0.0:
        for i in range(3):
            out[i] = along(e, x[i], value)
    else:
        before = e if op == APPLY else effort(law, numbers, t, 0.0, -rate, scratch)
        for i in range(3):
            out[i] = e * rates[i] / rate if rate > 0.0 else 0.0
            if e + before != 0.0 or value != value:
                out[i] = nan
    reading = Reading(scratch)
    reading.coordinate = value
    reading.rate = rate
    reading.effort = e if out[0] == out[0] else nan


@inner
def update_matrix(law, numbers, x, rates, out):
    """out ← −K x − C ẋ; returns ½ xᵀ K x.  K, then C, are row-major."""
    n = law.rows
    energy = 0.0
    for i in range(n):
        elastic = 0.0
        viscous = 0.0
        for j in range(n):
            elastic += numbers[n * i + j] * x[j]
            viscous += numbers[n * n + n * i + j] * rates[j]
        out[i] = -elastic - viscous
        energy += 0.5 * x[i] * elastic
    return energy


@inner
def add_wrench(wrench, point, f, work, out):
    """A force at a point of a body (relative to its centre of mass, in principal axes), or a torque."""
    body = wrench.body
    a = matrix(work, body)
    force = tail(out, WIDTH * body)
    in_body = wrench.in_body != 0
    u = f[0] if in_body else a[0] * f[0] + a[3] * f[1] + a[6] * f[2]  # in principal axes
    v = f[1] if in_body else a[1] * f[0] + a[4] * f[1] + a[7] * f[2]
    w = f[2] if in_body else a[2] * f[0] + a[5] * f[1] + a[8] * f[2]
    if wrench.is_torque != 0:
        force[3] += u
        force[4] += v
        force[5] += w
        return
    for i in range(3):
        force[i] += a[3 * i] * u + a[3 * i + 1] * v + a[3 * i + 2] * w if in_body else f[i]
    force[3] += point[1] * w - point[2] * v
    force[4] += point[2] * u - point[0] * w
    force[5] += point[0] * v - point[1] * u


def _act(op, ints, floats, q, v, out, last, memory):
    """last: a control vector, or of APPLY the efforts and vectors that Python gives."""
    loads = Loads(ints)
    work = LoadWork(loads.pieces, memory)
    x = work.x
    rates = work.rates
    efforts = work.efforts
    scratch = work.scratch
    jacobian = work.jacobian
    evaluate(loads, JACOBIAN, q, v, x, jacobian, work.evaluation)
    times(loads.structure, jacobian, v, rates)
    t = 0.0 if op == APPLY else Control(last).ask_time
    for k in range(loads.law_count):
        law = Law(loads.laws, k)
        row = law.row
        effort_rows = cut(efforts, row, law.rows)
        numbers = tail(floats, law.numbers)
        called = law.kind == CALLED
        reading = Reading(scratch)
        energy = 0.0
        slope = 0.0
        rate_slope = 0.0
        if (op == APPLY) != called and op != READ:
            for i in range(law.rows):
                effort_rows[i] = 0.0
        elif law.kind == MATRIX:
            energy = update_matrix(law, numbers, tail(x, row), tail(rates, row), effort_rows)
            reading.coordinate = 0.0
            reading.rate = 0.0
            reading.effort = 0.0
        else:
            e = last[k] if op == APPLY else 0.0
            update_scalar(op, law, numbers, t, e, tail(x, row), tail(rates, row), effort_rows, scratch)
            if law.kind == LINEAR and op == READ:
                linear = Linear(numbers)
                stretch = reading.coordinate - linear.rest
                energy = 0.5 * linear.stiffness * stretch * stretch
                slip = tanh(reading.rate / linear.speed)
                slope = -linear.stiffness
                rate_slope = -linear.damping - linear.coulomb / linear.speed * (1.0 - slip * slip)
            elif law.kind == RECORDED:
                slope = LawCall(scratch).slope
                rate_slope = LawCall(scratch).rate_slope
        if op == READ:
            result = Reading(out, k)
            result.coordinate = reading.coordinate
            result.rate = reading.rate
            result.effort = reading.effort
            result.energy = energy
            result.slope = slope
            result.rate_slope = rate_slope
    if op == READ:
        return 0
    add_transpose_times(loads.structure, jacobian, 1.0, efforts, out)
    wrenches = tail(loads.laws.as_ints, LAW_SIZE * loads.law_count)  # they follow the laws
    for k in range(loads.wrench_count):
        wrench = Wrench(wrenches, k)
        if (op == APPLY) == (wrench.is_called != 0):
            point = cut(floats, wrench.numbers, 3)
            constant = cut(floats, wrench.numbers + 3, 3)
            f = tail(last, loads.law_count + 3 * k) if op == APPLY else constant
            add_wrench(wrench, point, f, work.evaluation, out)
    return 0


ACT = evaluator(_act)
