"""The operations of a job, by the addresses in its table; and what solvers share.

evaluate f, or γ; linearise: r and J, scaled, then FACTOR; project: SOLVE of  u + Jᵀλ = b,  J u − ε λ = c; retract.
"""

from math import sqrt

from cardan.kernel.jit import inner
from cardan.kernel.memory import call_evaluator
from cardan.solvers._blocks import half_square, largest, scale_rows, update_rest
from cardan.solvers.tables import BROKEN, CONVERGED, JACOBIAN, LEAST, OVERFLOW, RETRACT, RUNNING, SOLVE


@inner
def evaluate(job, op, q, step, out, jacobian, work):
    """Call the problem's evaluator."""
    return call_evaluator(job.evaluator, op, job.ints, job.floats, q, step, out, jacobian, work)


@inner
def linearise(job, q, r, jacobian, work):
    """r ← D_r f(q), jacobian ← D_r J(q) D_c."""
    evaluate(job, JACOBIAN, q, r, r, jacobian, work)
    scale_rows(job.structure, job.scales, r, jacobian)


@inner
def retract(job, q, step, moved, work):
    """moved ← q moved by the tangent vector step, unscaled."""
    evaluate(job, RETRACT, q, step, moved, moved, work)


@inner
def call_algebra(job, op, control, x, scratch, compliances, jacobian, matrix):
    """Call the linear algebra of a job; compliances: only read in equations of motion."""
    return call_evaluator(job.algebra, op, job.pattern, control.as_floats, x, scratch, compliances, jacobian, matrix)


@inner
def project(job, control, r, x, scratch, jacobian, matrix):
    """x ← u of least ½|J u − r|² + ½ε|u|², with the factor; scratch ← Jᵀr."""
    n = job.structure.unknowns
    for i in range(job.structure.rows):
        x[n + i] = r[i]
    call_algebra(job, LEAST, control, x, scratch, scratch, jacobian, matrix)


@inner
def refine(job, control, weight, r, x, work, jacobian, matrix):
    """x += the projection of what it leaves, with the same factor.

    weight: 1 to remove rounding errors, 0 to remove also the effect of ε.
    """
    correction = work.correction
    update_rest(job.structure, r, jacobian, weight, x, correction)
    call_algebra(job, SOLVE, control, correction, work.rest, work.rest, jacobian, matrix)
    for i in range(job.structure.unknowns):
        x[i] += correction[i]


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
def move(job, q, step, work):
    """q ← q moved by the tangent vector step, unscaled."""
    retract(job, q, step, work.moved, work.evaluation)
    for i in range(job.structure.coordinates):
        q[i] = work.moved[i]


@inner
def begin(control):
    """Start a call of a solver; returns the iterations that it may make."""
    control.status = RUNNING
    return int(control.chunk)


@inner
def end(control, done):
    """End a call after so many iterations; returns the status."""
    control.iterations += done
    return int(control.status)
