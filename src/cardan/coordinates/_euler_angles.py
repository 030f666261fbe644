"""Kernels of the Euler-angle formulation: six unknowns (r, ψ, θ, φ) per body, A = Rz(ψ) Rx(θ) Rz(φ).

The poses stay quaternions; a step is added to their angles.  The rotation in body axes is δθ = B (δψ, δθ, δφ):

    B = [b, n, e₃],   b = Aᵀe₃ = (sin θ sin φ, sin θ cos φ, cos θ),   n = (cos φ, −sin φ, 0), the line of nodes.

With u = (ψ̇, θ̇, φ̇):  ω = B u, and ω̇ = B u̇ + Ḃ u with Ḃ u = ψ̇ b × ω + θ̇ φ̇ n × e₃.
det B = −sin θ: at θ = 0 and θ = π one direction of rotation is out of reach.  There only ψ ± φ is determined, and
φ = 0 is taken.  [Haug1989]  For what is read and written see :mod:`cardan.coordinates._walk`.
"""

from math import atan2, cos, sin, sqrt

from cardan.coordinates._angular import add_angular, angular_rates
from cardan.coordinates._features import update_counted_angles, update_variables
from cardan.coordinates._records import position, quaternion
from cardan.coordinates._walk import walk
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import piece
from cardan.solvers.tables import RETRACT
from cardan.system.tables import SystemTable

WIDTH = 6

tangent = piece(WIDTH, 0, WIDTH)  # (step, body)


@inner
def multiply_by_b(p, a, row):
    """t ← tᵀB."""
    x = a[6]
    y = a[7]
    sine = sqrt(x * x + y * y)
    t0 = row[3]
    t1 = row[4]
    row[3] = t0 * x + t1 * y + row[5] * a[8]
    row[4] = (t0 * y - t1 * x) / sine if sine > 0.0 else t0


@inner
def rates(kind, s, p, a, v, x, rate, bias):
    """As on the manifold, with ω = B u and the bias Ḃ u."""
    b0 = a[6]
    b1 = a[7]
    b2 = a[8]
    sine = sqrt(b0 * b0 + b1 * b1)
    n0 = b1 / sine if sine > 0.0 else 1.0
    n1 = -b0 / sine if sine > 0.0 else 0.0
    w0 = v[3] * b0 + v[4] * n0
    w1 = v[3] * b1 + v[4] * n1
    w2 = v[3] * b2 + v[5]
    twist = v[4] * v[5]
    z = (v[3] * (b1 * w2 - b2 * w1) + twist * n1, v[3] * (b2 * w0 - b0 * w2) - twist * n0, v[3] * (b0 * w1 - b1 * w0))
    angular_rates(kind, s, p, a, v, (w0, w1, w2), z, x, rate, bias)


@inner
def add_to_angles(p, d_psi, d_theta, d_phi, out):
    """out ← p with its ZXZ angles moved.

    p = (cos ½θ cos σ, sin ½θ cos δ, sin ½θ sin δ, cos ½θ sin σ), σ = ½(ψ + φ), δ = ½(ψ − φ).
    """
    c = sqrt(p[0] * p[0] + p[3] * p[3])
    s = sqrt(p[1] * p[1] + p[2] * p[2])
    mean = atan2(p[3], p[0])
    apart = atan2(p[2], p[1])
    if s == 0.0:
        apart = mean
    elif c == 0.0:
        mean = apart
    half = atan2(s, c) + 0.5 * d_theta
    mean += 0.5 * (d_psi + d_phi)
    apart += 0.5 * (d_psi - d_phi)
    c = cos(half)
    s = sin(half)
    out[0] = c * cos(mean)
    out[1] = s * cos(apart)
    out[2] = s * sin(apart)
    out[3] = c * sin(mean)


@inner
def retract(bodies, q, step, out):
    """Steps added to positions and angles, into out."""
    for b in range(bodies):
        d = tangent(step, b)
        old = position(q, b)
        new = position(out, b)
        for i in range(3):
            new[i] = old[i] + d[i]
        add_to_angles(quaternion(q, b), d[3], d[4], d[5], quaternion(out, b))


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    system = SystemTable(ints)
    if op == RETRACT:
        retract(system.bodies, q, step, out)
        update_variables(system, WIDTH * system.bodies, q, step, out)
        update_counted_angles(system, floats, q, out, work)
    else:
        walk(op, system, floats, q, step, (out, jacobian, work), WIDTH, add_angular, multiply_by_b, None)
    return 0


def evaluate_motion(op, ints, floats, q, v, out, jacobian, work):
    system = SystemTable(ints)
    walk(op, system, floats, q, v, (out, jacobian, work), WIDTH, add_angular, multiply_by_b, rates)
    return 0


EVALUATE = evaluator(_evaluate)
