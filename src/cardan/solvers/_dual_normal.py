"""Dual normal equations: JJᵀ + λI in place of JᵀJ + λI, for few equations that depend on many unknowns.

    (JᵀJ + λI)⁻¹ Jᵀr = Jᵀ (JJᵀ + λI)⁻¹ r

A loop closed by one joint has six equations, and each row depends on all unknowns of the loop: JᵀJ is full, JJᵀ is
6×6.  The step is a combination of rows of J even after rounding, so it has no component along free motions.

The module transposes the blocks of J and calls the linear algebra chosen for Jᵀ by its address.  Applied to Jᵀ, its
normal matrix is JJᵀ + λI, and it solves with S = (JJᵀ + λI)⁻¹.

A gradient g that is not Jᵀr, as in the refinement of a step, is split.  With t = S J g and h = g − Jᵀt,

    (JᵀJ + λI)⁻¹ g = JᵀS t + (h − JᵀS J h)/λ.

The first term has no small divisor.  In the second term, the component of h along each right singular vector of J is
that of g times λ/(σ² + λ), with σ the singular value.  The other components of h are those of g along free motions,
for which the exact factor is 1/λ.  The second term alone, with g in place of h, would lose all digits below eps/λ.
"""

from cardan.kernel.jit import evaluator
from cardan.kernel.memory import call_evaluator, cut
from cardan.solvers._blocks import add_transpose_times, times, transpose_times
from cardan.solvers.tables import BACK_SOLVE, FACTOR, Control, DualPattern


def _linear(op, pattern, control, r, gradient, step, jacobian, matrix):
    pattern = DualPattern(pattern)
    structure = pattern.structure
    permutation = pattern.permutation
    inner_pattern = pattern.inner_pattern
    rows = structure.rows
    unknowns = structure.unknowns
    entries = pattern.entries
    at = pattern.inner_work
    transposed = cut(matrix, at, entries)
    at += entries
    jt_r = cut(matrix, at, unknowns)  # a copy of Jᵀr, compared with later gradients
    at += unknowns
    rest = cut(matrix, at, unknowns)
    at += unknowns
    u = cut(matrix, at, rows)
    at += rows
    t = cut(matrix, at, rows)
    factor = cut(matrix, 0, pattern.inner_work)
    if op == FACTOR:
        for e in range(entries):
            transposed[e] = jacobian[permutation[e]]
        transpose_times(structure, jacobian, r, gradient)
        for i in range(unknowns):
            jt_r[i] = gradient[i]
        return call_evaluator(pattern.inner, FACTOR, inner_pattern, control, jt_r, u, t, transposed, factor)
    same = True
    for i in range(unknowns):
        if gradient[i] != jt_r[i]:
            same = False
    for i in range(unknowns):
        step[i] = 0.0
        rest[i] = gradient[i]
    if same:
        call_evaluator(pattern.inner, BACK_SOLVE, inner_pattern, control, jt_r, r, t, transposed, factor)
        add_transpose_times(structure, jacobian, 1.0, t, step)
        return 0
    # the inner BACK_SOLVE returns −S times its right-hand side
    times(structure, jacobian, rest, u)
    call_evaluator(pattern.inner, BACK_SOLVE, inner_pattern, control, jt_r, u, t, transposed, factor)
    add_transpose_times(structure, jacobian, 1.0, t, rest)
    call_evaluator(pattern.inner, BACK_SOLVE, inner_pattern, control, jt_r, t, u, transposed, factor)
    add_transpose_times(structure, jacobian, -1.0, u, step)
    times(structure, jacobian, rest, u)
    call_evaluator(pattern.inner, BACK_SOLVE, inner_pattern, control, jt_r, u, t, transposed, factor)
    add_transpose_times(structure, jacobian, 1.0, t, rest)
    for i in range(unknowns):
        step[i] -= rest[i] / Control(control).damping
    return 0


LINEAR = evaluator(_linear)
