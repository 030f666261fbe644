"""What solvers share: calls of the problem's functions at the addresses in a job, and the end of a run."""

from math import sqrt

from cardan.kernel.jit import inner
from cardan.kernel.memory import call_evaluator
from cardan.solvers._blocks import half_square, largest, scale_rows
from cardan.solvers.tables import BROKEN, CONVERGED, JACOBIAN, OVERFLOW, RETRACT, RUNNING


@inner
def evaluate(job, op, q, step, out, jacobian, work):
    """Call the problem's evaluator."""
    return call_evaluator(job.evaluator, op, job.ints, job.floats, q, step, out, jacobian, work)


@inner
def evaluate_scaled(job, q, r, jacobian, work):
    """r ← D_r f(q), jacobian ← D_r J(q) D_c."""
    evaluate(job, JACOBIAN, q, r, r, jacobian, work)
    scale_rows(job.structure, job.scales, r, jacobian)


@inner
def retract(job, q, step, moved, work):
    """moved ← q moved by the tangent vector step, unscaled."""
    evaluate(job, RETRACT, q, step, moved, moved, work)


@inner
def call_linear(job, op, control, r, gradient, step, jacobian, matrix):
    """Call the problem's linear algebra."""
    return call_evaluator(job.linear, op, job.pattern, control.as_floats, r, gradient, step, jacobian, matrix)


@inner
def has_ended(structure, control, r, by_norm):
    """Write the cost, the largest residual and the status of the scaled residuals r; return whether the run has ended.

    by_norm: the tolerance bounds |r|, not the largest residual.
    """
    control.cost = half_square(structure, r)
    control.residual_max = largest(structure, r)
    if (sqrt(2.0 * control.cost) if by_norm else control.residual_max) <= control.tolerance:
        control.status = CONVERGED
    elif not control.cost < OVERFLOW:
        control.status = BROKEN
    return control.status != RUNNING


@inner
def move(job, q, step, moved, work):
    """q ← q moved by the tangent vector step, unscaled."""
    retract(job, q, step, moved, work)
    for i in range(job.structure.coordinates):
        q[i] = moved[i]
