"""Kernels of the virtual-rotation formulation: seven unknowns (r, p) per body, the row pᵀp − 1, and [Liu2013] eq. 6b.

The derivative of a rotated vector is written with the virtual rotation δπ′ = 2G δp:
δ(A s) = −A s̃ δπ′ = −2 A s̃ G δp.  So the row of p is ∂f/∂δθ · 2G(p), and ω = 2G(p) ṗ, where ω̇ = 2G p̈ since G(ṗ) ṗ = 0.
Since G p = 0 the row has no part along p: on the unit sphere it is the derivative along the sphere alone, off the
sphere it is no derivative.  It is there to be compared with :mod:`cardan.coordinates._euler_parameters`.
For what is read and written see :mod:`cardan.coordinates._walk`.
"""

from cardan.coordinates._angular import add_angular, angular_rates
from cardan.coordinates._features import update_counted_angles, update_variables
from cardan.coordinates._normalisation import WIDTH, add_step, normalise
from cardan.coordinates._walk import walk
from cardan.kernel.jit import evaluator, inner
from cardan.solvers.tables import RETRACT
from cardan.system.tables import SystemTable


@inner
def multiply_by_2g(p, a, row):
    """t ← 2 tᵀG(p) with G = [−e, −ẽ + e₀I]:  tᵀG = (−t·e, e₀t + e × t)."""
    t0 = 2.0 * row[3]
    t1 = 2.0 * row[4]
    t2 = 2.0 * row[5]
    row[3] = -(p[1] * t0 + p[2] * t1 + p[3] * t2)
    row[4] = p[0] * t0 + p[2] * t2 - p[3] * t1
    row[5] = p[0] * t1 + p[3] * t0 - p[1] * t2
    row[6] = p[0] * t2 + p[1] * t1 - p[2] * t0


@inner
def rates(kind, s, p, a, v, x, rate, bias):
    """As on the manifold, with ω = 2G(p) ṗ."""
    w = (
        2.0 * (p[0] * v[4] - p[1] * v[3] + p[3] * v[5] - p[2] * v[6]),
        2.0 * (p[0] * v[5] - p[2] * v[3] + p[1] * v[6] - p[3] * v[4]),
        2.0 * (p[0] * v[6] - p[3] * v[3] + p[2] * v[4] - p[1] * v[5]),
    )
    angular_rates(kind, s, p, a, v, w, (0.0, 0.0, 0.0), x, rate, bias)


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    system = SystemTable(ints)
    if op == RETRACT:
        add_step(system.bodies, q, step, out)
        update_variables(system, WIDTH * system.bodies, q, step, out)
        update_counted_angles(system, floats, q, out, work)
    else:
        walk(op, system, floats, q, step, (out, jacobian, work), WIDTH, add_angular, multiply_by_2g, None)
        normalise(op, system, q, step, out, jacobian)
    return 0


def evaluate_motion(op, ints, floats, q, v, out, jacobian, work):
    system = SystemTable(ints)
    walk(op, system, floats, q, v, (out, jacobian, work), WIDTH, add_angular, multiply_by_2g, rates)
    normalise(op, system, q, v, out, jacobian)
    return 0


EVALUATE = evaluator(_evaluate)
