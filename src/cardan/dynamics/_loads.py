"""Generalised forces of loads.

A law acts on coordinates x(q) of a system of their own, which has the bodies and reference frames of the mechanism:

    ẋ = J v,   e = e(t, x, ẋ),   Q += Jᵀ e,

so that e·ẋ is the power, and −∂V/∂x the effort, of a load with the potential V.  For the distance of two points x is
the vector d between them, which has a gradient where |d| has none: e(|d|, d·ḋ/|d|) acts along d/|d|.  At d = 0 it acts
along ±ḋ, if it is the same just before and just after; otherwise it is undefined, NaN.

A wrench is a force at a point, or a torque, on one body.

Reads the tables (:mod:`cardan.dynamics.abi`), q, v; writes out, and in the workspace the evaluator's part, x, J, ẋ, e
and the arguments of one function.
"""

from math import nan, pi, sqrt, tanh

from cardan.coordinates._records import matrix
from cardan.dynamics import abi
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import evaluator, exact_inner, inner, plain
from cardan.kernel.memory import call_evaluator, call_primitive, cut, floats_at, integers_at, tail
from cardan.solvers._blocks import add_transpose_times, times
from cardan.solvers.tables import JACOBIAN as JACOBIAN_OPERATION

JACOBIAN = plain(JACOBIAN_OPERATION)
ARGUMENTS = 7  # of a recorded function: t, x, ẋ; its value; its derivatives


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
    if law[abi.LAW] == abi.LINEAR:
        e = numbers[abi.CONSTANT] - numbers[abi.STIFFNESS] * (x - numbers[abi.REST]) - numbers[abi.DAMPING] * rate
        if numbers[abi.COULOMB] != 0.0:
            e -= numbers[abi.COULOMB] * tanh(rate / numbers[abi.SPEED])
        return e
    if law[abi.LAW] == abi.RECORDED:
        scratch[0] = t
        scratch[1] = x
        scratch[2] = rate
        call_primitive(law[abi.LAW_FUNCTION], scratch, scratch, tail(scratch, 3), tail(scratch, 4))
        return scratch[3]
    return 0.0


@inner
def update_scalar(op, law, numbers, t, given, x, rates, out, scratch):
    """out ← effort per row of a law of one coordinate; scratch ← coordinate, rate, effort."""
    sort = law[abi.LAW_SORT]
    value = x[0]
    rate = rates[0]
    if sort == abi.APART:
        value = length(x[0], x[1], x[2])
        if value > 0.0:
            rate = (x[0] * rates[0] + x[1] * rates[1] + x[2] * rates[2]) / value
        else:
            rate = length(rates[0], rates[1], rates[2])
    e = given if op == abi.APPLY else effort(law, numbers, t, value, rate, scratch)
    if sort == abi.PLAIN:
        out[0] = e
    elif sort == abi.INCLINED:
        out[0] = nan if e != 0.0 and (value == 0.0 or value == pi) else e
    elif value > 0.0:
        for i in range(3):
            out[i] = along(e, x[i], value)
    else:
        before = e if op == abi.APPLY else effort(law, numbers, t, 0.0, -rate, scratch)
        for i in range(3):
            out[i] = e * rates[i] / rate if rate > 0.0 else 0.0
            if e + before != 0.0 or value != value:
                out[i] = nan
    scratch[abi.R_COORDINATE] = value
    scratch[abi.R_RATE] = rate
    scratch[abi.R_EFFORT] = e if out[0] == out[0] else nan


@inner
def update_matrix(law, numbers, x, rates, out):
    """out ← −K x − C ẋ; returns ½ xᵀ K x.  K, then C, are row-major."""
    n = law[abi.LAW_ROWS]
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
    body = wrench[abi.W_BODY]
    a = matrix(work, body)
    own = tail(out, WIDTH * body)
    in_body = wrench[abi.W_IN_BODY] != 0
    u = f[0] if in_body else a[0] * f[0] + a[3] * f[1] + a[6] * f[2]  # in principal axes
    v = f[1] if in_body else a[1] * f[0] + a[4] * f[1] + a[7] * f[2]
    w = f[2] if in_body else a[2] * f[0] + a[5] * f[1] + a[8] * f[2]
    if wrench[abi.W_TORQUE] != 0:
        own[3] += u
        own[4] += v
        own[5] += w
        return
    for i in range(3):
        own[i] += a[3 * i] * u + a[3 * i + 1] * v + a[3 * i + 2] * w if in_body else f[i]
    own[3] += point[1] * w - point[2] * v
    own[4] += point[2] * u - point[0] * w
    own[5] += point[0] * v - point[1] * u


def _act(op, ints, floats, q, v, out, given, work):
    rows = ints[abi.L_ROWS]
    at = ints[abi.L_VALUES]
    x = cut(work, at, rows)
    rates = cut(work, at + rows, rows)
    efforts = cut(work, at + 2 * rows, rows)
    scratch = cut(work, at + 3 * rows, ARGUMENTS)
    jacobian = cut(work, at + 3 * rows + ARGUMENTS, ints[abi.L_ENTRIES])
    structure = integers_at(ints[abi.L_STRUCTURE])
    tables = integers_at(ints[abi.L_INTS])
    call_evaluator(ints[abi.L_EVALUATOR], JACOBIAN, tables, floats_at(ints[abi.L_FLOATS]), q, v, x, jacobian, work)
    times(structure, jacobian, v, rates)
    t = 0.0 if op == abi.APPLY else given[abi.ASK_TIME]
    law = tail(ints, abi.L_HEADER)
    for k in range(ints[abi.L_LAWS]):
        row = law[abi.LAW_ROW]
        own = cut(efforts, row, law[abi.LAW_ROWS])
        numbers = tail(floats, law[abi.LAW_NUMBERS])
        called = law[abi.LAW] == abi.CALLED
        energy = 0.0
        if (op == abi.APPLY) != called and op != abi.READ:
            for i in range(law[abi.LAW_ROWS]):
                own[i] = 0.0
        elif law[abi.LAW] == abi.MATRIX:
            energy = update_matrix(law, numbers, tail(x, row), tail(rates, row), own)
            for i in range(abi.R_ENERGY):
                scratch[i] = 0.0
        else:
            e = given[k] if op == abi.APPLY else 0.0
            update_scalar(op, law, numbers, t, e, tail(x, row), tail(rates, row), own, scratch)
            if law[abi.LAW] == abi.LINEAR:
                stretch = scratch[abi.R_COORDINATE] - numbers[abi.REST]
                energy = 0.5 * numbers[abi.STIFFNESS] * stretch * stretch
        if op == abi.READ:
            reading = cut(out, abi.READING * k, abi.READING)
            for i in range(abi.R_ENERGY):
                reading[i] = scratch[i]
            reading[abi.R_ENERGY] = energy
        law = tail(law, abi.LAW_RECORD)
    if op == abi.READ:
        return 0
    add_transpose_times(structure, jacobian, 1.0, efforts, out)
    wrench = law
    for k in range(ints[abi.L_WRENCHES]):
        if (op == abi.APPLY) == (wrench[abi.W_CALLED] != 0):
            point = cut(floats, wrench[abi.W_NUMBERS], 3)
            constant = cut(floats, wrench[abi.W_NUMBERS] + 3, 3)
            f = tail(given, ints[abi.L_LAWS] + 3 * k) if op == abi.APPLY else constant
            add_wrench(wrench, point, f, work, out)
        wrench = tail(wrench, abi.W_RECORD)
    return 0


ACT = evaluator(_act)
