"""Kernels of the manifold formulation: six unknowns (δr in world, δθ in body) per body, p ← p ⊗ exp(δθ/2).

Velocities are (ṙ, ω in body).  For what is read and written see :mod:`cardan.coordinates._walk`.
"""

from math import cos, sqrt

from cardan.coordinates._angular import add_angular, angular_rates
from cardan.coordinates._features import add_turns, tangent, update_counted_angles, update_variables
from cardan.coordinates._records import counted_angles, pose
from cardan.coordinates._walk import walk
from cardan.kernel.jit import evaluator, inner
from cardan.math._kernels import half_sine_ratio
from cardan.solvers.tables import RETRACT
from cardan.system.tables import SystemTable

WIDTH = 6


@inner
def retract(bodies, q, step, out):
    """r + δr and p ⊗ exp(δθ/2), renormalised, into out."""
    for b in range(bodies):
        d = tangent(step, b)
        old = pose(q, b)
        new = pose(out, b)
        angle = sqrt(d[3] * d[3] + d[4] * d[4] + d[5] * d[5])
        ratio = half_sine_ratio(angle)
        c = cos(0.5 * angle)
        square = 0.0
        for i in range(4):
            if i == 0:
                s = old[3] * c
                for j in range(3, 6):
                    s -= old[j + 1] * ratio * d[j]
            else:
                j = i % 3 + 1
                k = j % 3 + 1
                s = old[3 + i] * c + ratio * (old[3] * d[2 + i] + old[3 + j] * d[2 + k] - old[3 + k] * d[2 + j])
            new[3 + i] = s
            square += s * s
        for i in range(4):
            new[3 + i] /= sqrt(square)
        for i in range(3):
            new[i] = old[i] + d[i]


@inner
def rates(kind, s, p, a, v, x, rate, bias):
    angular_rates(kind, s, p, a, v, (v[3], v[4], v[5]), (0.0, 0.0, 0.0), x, rate, bias)


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    system = SystemTable(ints)
    if op == RETRACT:
        retract(system.bodies, q, step, out)
        update_variables(system, WIDTH * system.bodies, q, step, out)
        update_counted_angles(system, floats, q, out, work)
    else:
        walk(op, system, floats, q, step, (out, jacobian, work), WIDTH, add_angular, None, None)
    return 0


def evaluate_motion(op, ints, floats, q, v, out, jacobian, work):
    system = SystemTable(ints)
    if op == RETRACT:
        retract(system.bodies, q, v, out)
        update_variables(system, WIDTH * system.bodies, q, v, out)
        update_counted_angles(system, floats, q, out, work)
        add_turns(system, floats, counted_angles(system, q), v, out, work)
        return 0
    walk(op, system, floats, q, v, (out, jacobian, work), WIDTH, add_angular, None, rates)
    return 0


EVALUATE = evaluator(_evaluate)
