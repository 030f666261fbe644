"""Calls of primitives that are not compiled into the evaluators: their kernels, or their tapes (:mod:`._tape`)."""

from cardan.constraints.tables import ALL, RECORDED, Tape
from cardan.kernel.jit import inner
from cardan.kernel.memory import call_evaluator, call_primitive, integers_at


@inner
def call_value(code, x, c, f, df):
    """f and ∂f/∂x of a primitive by its address, or by that of its tape."""
    if code < RECORDED:
        call_primitive(code, x, c, f, df)
    else:
        tape = Tape(integers_at(code - RECORDED))
        call_evaluator(tape.run, ALL, tape.as_ints, c, x, x, f, df, df)


@inner
def call_curvature(code, x, rate, c, g):
    """ẋᵀ f_xx ẋ of a primitive by its address, or by that of its tape."""
    if code < RECORDED:
        call_primitive(code, x, rate, c, g)
    else:
        tape = Tape(integers_at(code - RECORDED))
        call_evaluator(tape.run, ALL, tape.as_ints, c, x, rate, g, g, g)
