"""Dual normal equations: JJᵀ + ε in place of JᵀJ + ε, for few equations that depend on many unknowns.

    λ = (JJᵀ + ε)⁻¹ (J b − c),   u = b − Jᵀλ

A loop closed by one joint has six equations, and each row depends on all unknowns of the loop: JᵀJ is full, JJᵀ is
6×6.  u − b is a combination of rows of J even after rounding, so it has no component along free motions.

The module transposes the blocks of J and calls the linear algebra chosen for Jᵀ by its address.  Applied to Jᵀ, its
normal matrix is JJᵀ + ε.
"""

from cardan.kernel.jit import evaluator
from cardan.kernel.memory import call_evaluator, cut
from cardan.solvers._blocks import add_transpose_times, normal_right, times
from cardan.solvers.tables import BACK_SOLVE, FACTOR, LEAST, DualPattern, Projection


def _algebra(op, pattern, control, x, scratch, compliances, jacobian, matrix):
    pattern = DualPattern(pattern)
    structure = pattern.structure
    rows = structure.rows
    unknowns = structure.unknowns
    inner_pattern = pattern.inner_pattern
    entries = pattern.entries
    at = pattern.inner_work
    factor = cut(matrix, 0, at)
    transposed = cut(matrix, at, entries)
    if op == FACTOR:
        permutation = pattern.permutation
        for e in range(entries):
            transposed[e] = jacobian[permutation[e]]
        return call_evaluator(pattern.inner, FACTOR, inner_pattern, control, x, x, x, transposed, factor)
    t = cut(matrix, at + entries, rows)
    c = cut(x, unknowns, rows)
    if op == LEAST:
        for i in range(unknowns):
            x[i] = 0.0
    normal_right(structure, Projection(control).epsilon, jacobian, x, scratch)
    times(structure, jacobian, x, t)
    for i in range(rows):
        t[i] -= c[i]
    call_evaluator(pattern.inner, BACK_SOLVE, inner_pattern, control, t, scratch, t, transposed, factor)
    add_transpose_times(structure, jacobian, -1.0, t, x)
    for i in range(rows):
        c[i] = t[i]
    return 0


ALGEBRA = evaluator(_algebra)
