"""Kernels of the Euler-parameter formulation: seven unknowns (r, p) per body and the row pᵀp − 1.

    ∂(r + A(p) s)/∂(r, p) = [I, K(s, p)],   ẋ = ṙ + K(s, p) ṗ,   ẍ = r̈ + K(s, p) p̈ + 2 A(ṗ) s,

the true derivatives for p of any length, with
K(u, p) = [2(ẽ + e₀I)u, (e·u)I + e uᵀ − ẽũ − tilde(ẽu) − 2e₀ũ].  [Liu2013] eqs. 7, 8.
An orientation x = p ⊗ s is linear in p.  Velocities are (ṙ, ṗ).  For what is read and written see
:mod:`cardan.coordinates._walk`.  γ differs from that of the manifold by ¼|ω|² K p, since v̇ = 0 is another motion in
each.  [Haug1989]
"""

from cardan.coordinates._features import multiply, update_counted_angles, update_variables
from cardan.coordinates._normalisation import WIDTH, add_step, normalise
from cardan.coordinates._walk import walk
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail
from cardan.solvers.tables import RETRACT
from cardan.system.tables import ORIENTATION, POINT, SystemTable


@inner
def add_vector(d, p, u, row):
    """row += dᵀ K(u, p).

    With c = e × u and ẽũ = u eᵀ − (e·u) I:  K = 2[c + e₀u, (e·u) I + ½(e uᵀ − u eᵀ − tilde(c)) − e₀ũ], and dᵀ
    tilde(a) = (d × a)ᵀ.
    """
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        return
    eu = p[1] * u[0] + p[2] * u[1] + p[3] * u[2]
    de = p[1] * d[0] + p[2] * d[1] + p[3] * d[2]
    du = u[0] * d[0] + u[1] * d[1] + u[2] * d[2]
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        c_i = p[j + 1] * u[k] - p[k + 1] * u[j]
        c_j = p[k + 1] * u[i] - p[i + 1] * u[k]
        c_k = p[i + 1] * u[j] - p[j + 1] * u[i]
        row[0] += 2.0 * d[i] * (c_i + p[0] * u[i])
        row[i + 1] += (
            2.0 * eu * d[i]
            + de * u[i]
            - du * p[i + 1]
            - (d[j] * c_k - d[k] * c_j)
            - 2.0 * p[0] * (d[j] * u[k] - d[k] * u[j])
        )


@inner
def add_orientation(d, s, row):
    """row += d·∂(p ⊗ s)/∂p = d ⊗ s*."""
    row[0] += d[0] * s[0] + d[1] * s[1] + d[2] * s[2] + d[3] * s[3]
    for i in range(1, 4):
        j = i % 3 + 1
        k = j % 3 + 1
        row[i] += -d[0] * s[i] + d[i] * s[0] - d[j] * s[k] + d[k] * s[j]


@inner
def chain(kind, d, s, p, a, row):
    """row += d · ∂x/∂(r, p)."""
    if kind == ORIENTATION:
        add_orientation(d, s, tail(row, 3))
    else:
        if kind == POINT:
            for i in range(3):
                row[i] += d[i]
        add_vector(d, p, s, tail(row, 3))


@inner
def rates(kind, s, p, a, v, x, rate, bias):
    """ẋ and bias of one feature, from (ṙ, ṗ)."""
    d = tail(v, 3)
    if kind == ORIENTATION:
        multiply(d, s, rate)
        for i in range(4):
            bias[i] = 0.0
        return
    # A(p) s = (e₀² − e·e) s + 2 (e·s) e + 2 e₀ (e × s), differentiated once and twice with p̈ = 0
    es = p[1] * s[0] + p[2] * s[1] + p[3] * s[2]
    ds = d[1] * s[0] + d[2] * s[1] + d[3] * s[2]
    trace = 2.0 * (p[0] * d[0] - p[1] * d[1] - p[2] * d[2] - p[3] * d[3])
    square = 2.0 * (d[0] * d[0] - d[1] * d[1] - d[2] * d[2] - d[3] * d[3])
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        e_s = p[j + 1] * s[k] - p[k + 1] * s[j]
        d_s = d[j + 1] * s[k] - d[k + 1] * s[j]
        rate[i] = trace * s[i] + 2.0 * (es * d[i + 1] + ds * p[i + 1] + d[0] * e_s + p[0] * d_s)
        bias[i] = square * s[i] + 4.0 * (ds * d[i + 1] + d[0] * d_s)
        if kind == POINT:
            rate[i] += v[i]


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    system = SystemTable(ints)
    if op == RETRACT:
        add_step(system.bodies, q, step, out)
        update_variables(system, WIDTH * system.bodies, q, step, out)
        update_counted_angles(system, floats, q, out, work)
    else:
        walk(op, system, floats, q, step, (out, jacobian, work), WIDTH, chain, None, None)
        normalise(op, system, q, step, out, jacobian)
    return 0


def evaluate_motion(op, ints, floats, q, v, out, jacobian, work):
    system = SystemTable(ints)
    walk(op, system, floats, q, v, (out, jacobian, work), WIDTH, chain, None, rates)
    normalise(op, system, q, v, out, jacobian)
    return 0


EVALUATE = evaluator(_evaluate)
