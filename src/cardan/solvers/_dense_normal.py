"""Normal equations of a small system: JᵀJ as one dense matrix, Cholesky without regard to zeros."""

from cardan._jit import cut, evaluator, inner
from cardan.math._dense import cholesky, cholesky_solve
from cardan.solvers._structure import (
    FIRST,
    block_in,
    block_offsets,
    first_entry,
    first_row,
    next_constraint,
    row_count,
    row_length,
    slot_count,
)
from cardan.solvers.abi import CONSTRAINTS, DAMPING, FACTOR, UNKNOWNS


@inner
def normal_equations(structure, r, jacobian, h, g):
    """h ← JᵀJ (lower triangle, dense row-major), g ← Jᵀr."""
    n = structure[UNKNOWNS]
    offsets = block_offsets(structure)
    for i in range(n):
        g[i] = 0.0
        for j in range(i * n, i * n + i + 1):
            h[j] = 0.0
    at = FIRST
    for _ in range(structure[CONSTRAINTS]):
        row = first_row(structure, at)
        rows = row_count(structure, at)
        start = first_entry(structure, at)
        slots = slot_count(structure, at)
        stride = row_length(structure, at)
        a_at = start
        for a in range(slots):
            block = block_in(structure, at, a)
            a0 = offsets[block]
            a_width = offsets[block + 1] - a0
            b_at = start
            for b in range(a + 1):
                other = block_in(structure, at, b)
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
        at = next_constraint(structure, at)


def _linear(op, structure, control, r, gradient, step, jacobian, matrix):
    n = structure[UNKNOWNS]
    factor = cut(matrix, 0, n * n)
    if op == FACTOR:
        normal_equations(structure, r, jacobian, factor, gradient)
        return 0 if cholesky(n, factor, control[DAMPING]) else 1
    cholesky_solve(n, factor, gradient, step)
    for i in range(n):
        step[i] = -step[i]
    return 0


LINEAR = evaluator(_linear)


def linear_work(structure):
    """Floats for JᵀJ, which its factor replaces."""
    n = int(structure[UNKNOWNS])
    return n * n
