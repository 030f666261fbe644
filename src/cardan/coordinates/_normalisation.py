"""What formulations with the unknowns (r, p) of every body share: addition of a step, and the row pᵀp − 1.

    f = pᵀp − 1,   J = [0, 2pᵀ],   γ = −2 ṗᵀṗ

Reads q and v; writes one row and one block per body, behind those of the constraints.
"""

from cardan.coordinates._records import quaternion
from cardan.kernel.jit import inner
from cardan.kernel.memory import cut, piece, tail
from cardan.solvers.tables import GAMMA, JACOBIAN
from cardan.system.tables import POSE

WIDTH = POSE

block_row = piece(WIDTH, 0, WIDTH)  # (blocks, k)


@inner
def add_step(bodies, q, step, out):
    """r + δr and p + δp, of any length, into out."""
    for i in range(POSE * bodies):
        out[i] = q[i] + step[i]


@inner
def normalise(op, system, q, v, out, jacobian):
    """The row of every body, for RESIDUAL, JACOBIAN and GAMMA."""
    rows = cut(out, system.rows, system.bodies)
    for b in range(system.bodies):
        p = quaternion(v if op == GAMMA else q, b)
        square = 0.0
        for k in range(4):
            square += p[k] * p[k]
        rows[b] = -2.0 * square if op == GAMMA else square - 1.0
        if op == JACOBIAN:
            row = block_row(tail(jacobian, system.extras), system.blocks + b)
            for k in range(3):
                row[k] = 0.0
            for k in range(4):
                row[3 + k] = 2.0 * p[k]
