"""Normal equations by way of the rows: JJᵀ + λI in place of JᵀJ + λI, for few equations that touch many unknowns.

    (JᵀJ + λI)⁻¹ Jᵀr = Jᵀ (JJᵀ + λI)⁻¹ r

A loop closed by one joint has six equations whose rows are as long as the loop: JᵀJ is full, JJᵀ is 6×6.  Such a step
is a combination of rows of J, whatever rounding does, so nothing is pushed along free motions.

JJᵀ is what other linear algebra makes of Jᵀ.  So this one transposes the blocks of J and calls that by its address,
with S = (JJᵀ + λI)⁻¹ as its answer.

A gradient g that is not Jᵀr, as in the refinement of a step, is split.  With t = S J g and h = g − Jᵀt,

    (JᵀJ + λI)⁻¹ g = JᵀS t + (h − JᵀS J h)/λ.

The first term has no small divisor.  In the second, h has of the rows' space only the part λ/(σ² + λ), for each
singular value σ, and what is left of h is what g has along free motions, where 1/λ is the answer.  The second formula
alone, with g for h, would lose all digits below eps/λ.
"""

from cardan._jit import call_evaluator, cut, evaluator, tail
from cardan.solvers._blocks import add_transpose_times, times, transpose_times
from cardan.solvers.abi import BACK_SOLVE, DAMPING, FACTOR, ROWS, UNKNOWNS

INNER = 0  # address of the linear algebra of JJᵀ
INNER_WORK = 1  # floats of its matrices
ENTRIES = 2  # of J
STRUCTURE = 3  # where each part begins
PERMUTATION = 4
INNER_PATTERN = 5
PATTERN = 6


def _linear(op, pattern, control, r, gradient, step, jacobian, matrix):
    structure = tail(pattern, pattern[STRUCTURE])
    permutation = cut(pattern, pattern[PERMUTATION], pattern[ENTRIES])
    within = tail(pattern, pattern[INNER_PATTERN])
    rows = structure[ROWS]
    unknowns = structure[UNKNOWNS]
    entries = pattern[ENTRIES]
    at = pattern[INNER_WORK]
    transposed = cut(matrix, at, entries)
    at += entries
    known = cut(matrix, at, unknowns)  # Jᵀr, to know it again
    at += unknowns
    rest = cut(matrix, at, unknowns)
    at += unknowns
    u = cut(matrix, at, rows)
    at += rows
    t = cut(matrix, at, rows)
    factor = cut(matrix, 0, pattern[INNER_WORK])
    if op == FACTOR:
        for e in range(entries):
            transposed[e] = jacobian[permutation[e]]
        transpose_times(structure, jacobian, r, gradient)
        for i in range(unknowns):
            known[i] = gradient[i]
        return call_evaluator(pattern[INNER], FACTOR, within, control, known, u, t, transposed, factor)
    same = True
    for i in range(unknowns):
        if gradient[i] != known[i]:
            same = False
    for i in range(unknowns):
        step[i] = 0.0
        rest[i] = gradient[i]
    if same:
        call_evaluator(pattern[INNER], BACK_SOLVE, within, control, known, r, t, transposed, factor)
        add_transpose_times(structure, jacobian, 1.0, t, step)
        return 0
    # the other linear algebra answers with −S of what it is given
    times(structure, jacobian, rest, u)
    call_evaluator(pattern[INNER], BACK_SOLVE, within, control, known, u, t, transposed, factor)
    add_transpose_times(structure, jacobian, 1.0, t, rest)
    call_evaluator(pattern[INNER], BACK_SOLVE, within, control, known, t, u, transposed, factor)
    add_transpose_times(structure, jacobian, -1.0, u, step)
    times(structure, jacobian, rest, u)
    call_evaluator(pattern[INNER], BACK_SOLVE, within, control, known, u, t, transposed, factor)
    add_transpose_times(structure, jacobian, 1.0, t, rest)
    for i in range(unknowns):
        step[i] -= rest[i] / control[DAMPING]
    return 0


LINEAR = evaluator(_linear)
