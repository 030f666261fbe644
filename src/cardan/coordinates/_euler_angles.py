"""Kernels of the Euler-angle formulation: six unknowns (r, ψ, θ, φ) per body, A = Rz(ψ) Rx(θ) Rz(φ).

The poses stay quaternions; a step is added to the angles they have.  The rotation in body axes is δθ = B (δψ, δθ, δφ):

    B = [Aᵀe₃, (cos φ, −sin φ, 0), e₃],   Aᵀe₃ = (sin θ sin φ, sin θ cos φ, cos θ)

det B = −sin θ: at θ = 0 and θ = π one direction of rotation is out of reach.  There only ψ ± φ is determined, and
φ = 0 is taken.  [Haug1989]
"""

from math import atan2, cos, sin, sqrt

from cardan._jit import evaluator, inner, tail
from cardan.coordinates._angular import angular_chain
from cardan.coordinates._features import update_constraint, update_counted_angles, update_matrices
from cardan.solvers.abi import RESIDUAL, RETRACT
from cardan.system.layout import BLOCK, BODIES, CONSTRAINTS, HEADER, NEXT, POSE, RECORD, ROWS, SLOTS

WIDTH = 6


@inner
def multiply_by_b(record, ints, jacobian, work):
    """t ← tᵀB in every block of one constraint."""
    slots = ints[record + SLOTS]
    j = ints[record + BLOCK] * WIDTH + 3
    for _ in range(ints[record + ROWS]):
        for s in range(slots):
            last = 9 * ints[record + RECORD + s] + 6  # of the rows of A: Aᵀe₃
            x = work[last]
            y = work[last + 1]
            sine = sqrt(x * x + y * y)
            t0 = jacobian[j]
            t1 = jacobian[j + 1]
            t2 = jacobian[j + 2]
            jacobian[j] = t0 * x + t1 * y + t2 * work[last + 2]
            jacobian[j + 1] = (t0 * y - t1 * x) / sine if sine > 0.0 else t0
            j += WIDTH


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


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    if op == RETRACT:
        for b in range(ints[BODIES]):
            o = POSE * b
            k = WIDTH * b
            for i in range(3):
                out[o + i] = q[o + i] + step[k + i]
            add_to_angles(tail(q, o + 3), step[k + 3], step[k + 4], step[k + 5], tail(out, o + 3))
        update_counted_angles(ints, floats, q, out, work)
        return 0
    update_matrices(ints[BODIES], q, work)
    record = HEADER
    for _ in range(ints[CONSTRAINTS]):
        update_constraint(record, ints, floats, q, out, work)
        if op != RESIDUAL:
            angular_chain(WIDTH, record, ints, floats, q, jacobian, work)
            multiply_by_b(record, ints, jacobian, work)
        record = ints[record + NEXT]
    return 0


EVALUATE = evaluator(_evaluate)
