"""Normal equations of a small system: dense JᵀJ and dense Cholesky factorisation."""

from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut
from cardan.math._dense import cholesky, cholesky_solve
from cardan.solvers._blocks import row_length
from cardan.solvers.tables import FACTOR, Control, Structure


@inner
def normal_equations(structure, r, jacobian, h, g):
    """h ← JᵀJ (lower triangle, dense row-major), g ← Jᵀr."""
    n = structure.unknowns
    offsets = structure.offsets
    for i in range(n):
        g[i] = 0.0
        for j in range(i * n, i * n + i + 1):
            h[j] = 0.0
    constraint = structure.records
    for _ in range(structure.constraints):
        row = constraint.row
        rows = constraint.rows
        start = constraint.entry
        slots = constraint.slots
        stride = row_length(constraint, offsets)
        a_at = start
        for a in range(slots):
            block = constraint.blocks[a]
            a0 = offsets[block]
            a_width = offsets[block + 1] - a0
            b_at = start
            for b in range(a + 1):
                other = constraint.blocks[b]
                b0 = offsets[other]
                b_width = offsets[other + 1] - b0
                for i in range(a_width):
                    target = (a0 + i) * n + b0
                    width = i + 1 if a == b else b_width
                    for k in range(rows):
                        v = jacobian[a_at + k * stride + i]
                        if v != 0.0:
                            e = b_at + k * stride
                            for j in range(width):
                                h[target + j] += v * jacobian[e + j]
                b_at += b_width
            for i in range(a_width):
                s = 0.0
                for k in range(rows):
                    s += jacobian[a_at + k * stride + i] * r[row + k]
                g[a0 + i] += s
            a_at += a_width
        constraint = after(constraint, constraint.slots)


def _linear(op, structure, control, r, gradient, step, jacobian, matrix):
    structure = Structure(structure)
    n = structure.unknowns
    factor = cut(matrix, 0, n * n)
    if op == FACTOR:
        normal_equations(structure, r, jacobian, factor, gradient)
        return 0 if cholesky(n, factor, Control(control).damping) else 1
    cholesky_solve(n, factor, gradient, step)
    for i in range(n):
        step[i] = -step[i]
    return 0


LINEAR = evaluator(_linear)


def linear_work(unknowns):
    """Number of floats for JᵀJ, which the factor overwrites."""
    return unknowns**2
