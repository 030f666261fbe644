"""Normal equations of a small system: dense JᵀJ and dense Cholesky factorisation."""

from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail
from cardan.math._dense import cholesky, cholesky_solve
from cardan.solvers._blocks import normal_right, row_length
from cardan.solvers.tables import BACK_SOLVE, FACTOR, LEAST, SOLVE, Projection, Structure


@inner
def normal_matrix(structure, jacobian, h):
    """h ← JᵀJ (lower triangle, dense row-major)."""
    n = structure.unknowns
    offsets = structure.offsets
    for i in range(n):
        for j in range(i * n, i * n + i + 1):
            h[j] = 0.0
    constraint = structure.records
    for _ in range(structure.constraints):
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
            a_at += a_width
        constraint = after(constraint, constraint.slots)


@inner
def gradient(structure, jacobian, r, g):
    """g ← Jᵀr; the rows of a constraint are added up first."""
    offsets = structure.offsets
    for i in range(structure.unknowns):
        g[i] = 0.0
    constraint = structure.records
    for _ in range(structure.constraints):
        c = tail(r, constraint.row)
        stride = row_length(constraint, offsets)
        at = constraint.entry
        for a in range(constraint.slots):
            first = offsets[constraint.blocks[a]]
            width = offsets[constraint.blocks[a] + 1] - first
            for i in range(width):
                s = 0.0
                for k in range(constraint.rows):
                    s += jacobian[at + k * stride + i] * c[k]
                g[first + i] += s
            at += width
        constraint = after(constraint, constraint.slots)


def _algebra(op, structure, control, x, scratch, compliances, jacobian, matrix):
    structure = Structure(structure)
    n = structure.unknowns
    epsilon = Projection(control).epsilon
    factor = cut(matrix, 0, n * n)
    if op == FACTOR:
        normal_matrix(structure, jacobian, factor)
        return 0 if cholesky(n, factor, epsilon) else 1
    if op == LEAST:
        gradient(structure, jacobian, tail(x, n), scratch)
    elif op == SOLVE:
        normal_right(structure, epsilon, jacobian, x, scratch)
    cholesky_solve(n, factor, x if op == BACK_SOLVE else scratch, x)
    return 0


ALGEBRA = evaluator(_algebra)


def linear_work(unknowns):
    """Number of floats for JᵀJ, which the factor overwrites."""
    return unknowns**2
