"""The interpreter of recorded functions: number[target] ← operation(number[a], number[b], …), one after the other.

Reads a tape (``tables.Tape``), the features x in q, their rates in step and the parameters c in floats; writes f, g or
the rows of a shape to out and ∂f/∂x to jacobian.  op is the order of derivatives of a shape; else all are computed.
:mod:`._calls` calls it for a primitive, ``geometry/_traced.py`` for a shape.
"""

from math import acos, asin, atan, atan2, cos, cosh, exp, log, sin, sinh, sqrt, tan, tanh

from cardan.constraints._spline import spline
from cardan.constraints.tables import (
    CLEAR,
    CLEAR_PARTIALS,
    CONSTANT,
    FEATURE,
    FIRST,
    PARAMETER,
    RATE,
    STORE,
    STORE_PARTIAL,
    UNLESS,
    Instruction,
    Narrow,
    Tape,
    Wide,
)
from cardan.kernel.fields import local
from cardan.kernel.jit import evaluator, inner
from cardan.math._kernels import (
    angle_ratio,
    angle_ratio_s,
    angle_ratio_ss,
    beyond,
    inverse_norm3,
    inverse_square2,
    norm3,
    outside,
    power,
    sign4,
    unit3,
    unwrapped,
)


@inner
def function(op, a):
    """A function of one number; the order is that of ``tables.OPERATIONS``."""
    if op == 4:
        return sqrt(a)
    if op == 5:
        return sin(a)
    if op == 6:
        return cos(a)
    if op == 7:
        return tan(a)
    if op == 8:
        return exp(a)
    if op == 9:
        return log(a)
    if op == 10:
        return asin(a)
    if op == 11:
        return acos(a)
    if op == 12:
        return atan(a)
    if op == 13:
        return sinh(a)
    if op == 14:
        return cosh(a)
    return tanh(a)


@inner
def function_of_two(op, a, b):
    """A function of two numbers."""
    if op == 16:
        return power(a, b)
    if op == 17:
        return atan2(a, b)
    if op == 25:
        return inverse_square2(a, b)
    if op == 28:
        return angle_ratio(a, b)
    if op == 29:
        return angle_ratio_s(a, b)
    return angle_ratio_ss(a, b)


@inner
def function_of_more(op, a, b, c, d):
    """A function of three or four numbers."""
    if op == 18:
        return norm3(a, b, c)
    if op < 22:
        return unit3(op - 19, a, b, c)
    if op == 22:
        return inverse_norm3(a, b, c)
    if op == 23:
        return sign4(a, b, c, d)
    if op == 24:
        return unwrapped(a, b, c)
    if op == 26:
        return beyond(a, b, c)
    return outside(a, b, c)


@inner
def is_of_two(op):
    """Whether an operation is a function of two numbers."""
    return op == 16 or op == 17 or op == 25 or (op >= 28 and op <= 30)


@inner
def run(op, ints, floats, q, step, out, jacobian, numbers):
    """The instructions of a tape."""
    tape = Tape(ints)
    constants = tape.constants
    k = 0
    while k < tape.count:
        line = Instruction(tape.instructions, k)
        code = line.operation
        k += 1
        if code >= FIRST:
            code -= FIRST
            a = numbers[line.a]
            b = numbers[line.b]
            if code == 0:
                value = a + b
            elif code == 1:
                value = a - b
            elif code == 2:
                value = a * b
            elif code == 3:
                value = a / b
            elif code < 16:
                value = function(code, a)
            elif code > 30:
                value = spline(floats, code - 31, a)
            elif is_of_two(code):
                value = function_of_two(code, a, b)
            else:
                value = function_of_more(code, a, b, numbers[line.c], numbers[line.d])
            numbers[line.target] = value
        elif code == CONSTANT:
            numbers[line.target] = constants[line.a]
        elif code == FEATURE:
            numbers[line.target] = q[line.a]
        elif code == RATE:
            numbers[line.target] = step[line.a]
        elif code == PARAMETER:
            numbers[line.target] = floats[line.a]
        elif code == STORE:
            out[line.target] = numbers[line.a]
        elif code == STORE_PARTIAL:
            jacobian[line.target] = numbers[line.a]
        elif code == CLEAR:
            for i in range(line.a):
                out[i] = 0.0
        elif code == CLEAR_PARTIALS:
            for i in range(line.a):
                jacobian[i] = 0.0
        elif code == UNLESS:
            if op < line.target:
                k += line.a


def _run(op, ints, floats, q, step, out, jacobian, work):
    """A tape of few numbers; they are on the stack, since several threads may run one tape."""
    run(op, ints, floats, q, step, out, jacobian, local(Narrow).numbers)
    return 0


def _run_wide(op, ints, floats, q, step, out, jacobian, work):
    """A tape of any size."""
    run(op, ints, floats, q, step, out, jacobian, local(Wide).numbers)
    return 0


RUN = evaluator(_run)
RUN_WIDE = evaluator(_run_wide)
