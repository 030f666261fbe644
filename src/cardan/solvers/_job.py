"""Named access to a solver's job: the tables and functions at its addresses, and the pieces of its workspace."""

from cardan._jit import call_evaluator, cut, floats_at, inner, integers_at
from cardan.solvers._blocks import scale_rows
from cardan.solvers.abi import EVALUATOR, FLOATS, INTS, JACOBIAN, LINEAR, PATTERN, PIECES, RETRACT, SCALES, STRUCTURE


@inner
def structure_of(job):
    """The structure table."""
    return integers_at(job[STRUCTURE])


@inner
def scales_of(job):
    """Scales of the rows, then of the unknowns."""
    return floats_at(job[SCALES])


@inner
def piece(job, number, work):
    """A piece of the workspace."""
    at = job[PIECES + number]
    return cut(work, at, job[PIECES + number + 1] - at)


@inner
def evaluate(job, op, q, step, out, jacobian, work):
    """Call the problem's evaluator."""
    return call_evaluator(
        job[EVALUATOR], op, integers_at(job[INTS]), floats_at(job[FLOATS]), q, step, out, jacobian, work
    )


@inner
def evaluate_scaled(job, q, r, jacobian, work):
    """r ← D_r f(q), jacobian ← D_r J(q) D_c."""
    evaluate(job, JACOBIAN, q, r, r, jacobian, work)
    scale_rows(structure_of(job), scales_of(job), r, jacobian)


@inner
def retract(job, q, step, moved, work):
    """moved ← q moved by the tangent vector step, unscaled."""
    evaluate(job, RETRACT, q, step, moved, moved, work)


@inner
def call_linear(job, op, control, r, gradient, step, jacobian, matrix):
    """Call the problem's linear algebra."""
    return call_evaluator(job[LINEAR], op, integers_at(job[PATTERN]), control, r, gradient, step, jacobian, matrix)
