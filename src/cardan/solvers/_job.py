"""Named access to a solver's job: the tables and functions at its addresses, and the pieces of its workspace."""

from math import sqrt

from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import call_evaluator, cut, floats_at, integers_at
from cardan.solvers import abi
from cardan.solvers._blocks import half_square, largest, scale_rows

# the pieces that begin the workspace of every solver
EVALUATION, R, J, MOVED, OWN = map(plain, range(5))


@inner
def structure_of(job):
    """The structure table."""
    return integers_at(job[abi.STRUCTURE])


@inner
def scales_of(job):
    """Scales of the rows, then of the unknowns."""
    return floats_at(job[abi.SCALES])


@inner
def piece(job, number, work):
    """A piece of the workspace."""
    at = job[abi.PIECES + number]
    return cut(work, at, job[abi.PIECES + number + 1] - at)


@inner
def evaluate(job, op, q, step, out, jacobian, work):
    """Call the problem's evaluator."""
    return call_evaluator(
        job[abi.EVALUATOR], op, integers_at(job[abi.INTS]), floats_at(job[abi.FLOATS]), q, step, out, jacobian, work
    )


@inner
def evaluate_scaled(job, q, r, jacobian, work):
    """r ← D_r f(q), jacobian ← D_r J(q) D_c."""
    evaluate(job, abi.JACOBIAN, q, r, r, jacobian, work)
    scale_rows(structure_of(job), scales_of(job), r, jacobian)


@inner
def retract(job, q, step, moved, work):
    """moved ← q moved by the tangent vector step, unscaled."""
    evaluate(job, abi.RETRACT, q, step, moved, moved, work)


@inner
def call_linear(job, op, control, r, gradient, step, jacobian, matrix):
    """Call the problem's linear algebra."""
    pattern = integers_at(job[abi.PATTERN])
    return call_evaluator(job[abi.LINEAR], op, pattern, control, r, gradient, step, jacobian, matrix)


@inner
def open_job(job, work):
    """Return the structure, the scales, and the pieces for the evaluator, r, J and a moved q."""
    return (
        structure_of(job),
        scales_of(job),
        piece(job, EVALUATION, work),
        piece(job, R, work),
        piece(job, J, work),
        piece(job, MOVED, work),
    )


@inner
def has_ended(structure, control, r, by_norm):
    """Write COST, RESIDUAL_MAX and STATUS of the scaled residuals r; return whether the run has ended.

    by_norm: the tolerance bounds |r|, not the largest residual.
    """
    control[abi.COST] = half_square(structure, r)
    control[abi.RESIDUAL_MAX] = largest(structure, r)
    if (sqrt(2.0 * control[abi.COST]) if by_norm else control[abi.RESIDUAL_MAX]) <= control[abi.TOLERANCE]:
        control[abi.STATUS] = abi.CONVERGED
    elif not control[abi.COST] < abi.OVERFLOW:
        control[abi.STATUS] = abi.BROKEN
    return control[abi.STATUS] != abi.RUNNING


@inner
def move(job, q, step, moved, work):
    """q ← q moved by the tangent vector step, unscaled."""
    retract(job, q, step, moved, work)
    for i in range(structure_of(job)[abi.COORDINATES]):
        q[i] = moved[i]
