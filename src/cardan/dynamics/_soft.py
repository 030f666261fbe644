"""Soft rows: quantities of single bodies that are minimised, or held with a compliance, subject to the equations.

With Ĵ = D J M^−½ of the equations, Ĵ_s = J_s M^−½ of the soft rows, u = M^½ δ (δ a step, a velocity or an acceleration)
and a compliance C, diagonal and positive:

    minimise  ½ |u − b|² + ½ (Ĵ_s u − d)ᵀ C⁻¹ (Ĵ_s u − d)   subject to  Ĵ u = c.

With u₀ the solution without soft rows, P the projector onto Ĵ u = 0, and y the forces of the soft rows:

    W = P Ĵ_sᵀ,   G = Ĵ_s W,   (G + C) y = d − Ĵ_s u₀,   u = u₀ + W y.

The equations hold for every y.  Each soft row takes one solution with the factor at hand, so rows may come and go.
Reads the soft table and what its evaluator has written; writes the parts of SOFT_WORK.
"""

from math import sqrt

from cardan.dynamics import abi
from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import X, call_algebra, piece, roots
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import call_evaluator, cut, floats_at, integers_at, tail
from cardan.solvers import tables as solvers_abi

JACOBIAN, GAMMA = plain(solvers_abi.JACOBIAN), plain(solvers_abi.GAMMA)
SOLVE = plain(abi.SOLVE)
SINGULAR = 1e-300  # against division by zero

# parts of SOFT_WORK, in units of SOFT_MOST floats, but for the last three
RESIDUALS, STIFFNESSES, COMPLIANCES, FORCES, ENTRIES, MATRIX = 0, 1, 2, 3, 4, 4 + WIDTH


@inner
def soft_part(job, part, size):
    """A part of the workspace of soft rows."""
    return cut(floats_at(job[abi.SOFT_WORK]), part * integers_at(job[abi.SOFT_INTS])[abi.SOFT_MOST], size)


@inner
def soft_matrix(job):
    """The factor of G + C, SOFT_MOST² floats; then W, six per body and row; then multipliers, per row."""
    most = integers_at(job[abi.SOFT_INTS])[abi.SOFT_MOST]
    return tail(floats_at(job[abi.SOFT_WORK]), MATRIX * most)


@inner
def soft_directions(job):
    """W, row by row."""
    most = integers_at(job[abi.SOFT_INTS])[abi.SOFT_MOST]
    return tail(soft_matrix(job), most * most)


@inner
def soft_multipliers(job):
    """λ of every equation, scaled, for a unit force of each soft row."""
    most = integers_at(job[abi.SOFT_INTS])[abi.SOFT_MOST]
    return tail(soft_directions(job), most * WIDTH * job[abi.BODIES])


def work_size(most, bodies, equations):
    """Number of floats of SOFT_WORK; at its end are right-hand sides, and a solution."""
    return most * (MATRIX + most + WIDTH * bodies + equations + 2) + WIDTH * bodies + equations


@inner
def evaluate_soft(job, op, q, v, out):
    """JACOBIAN: residuals, stiffnesses and rows, scaled by M^−½.  GAMMA: out ← bias."""
    table = integers_at(job[abi.SOFT_INTS])
    rows = tail(floats_at(job[abi.SOFT_WORK]), ENTRIES * table[abi.SOFT_MOST])
    call_evaluator(job[abi.SOFT], op, table, floats_at(job[abi.SOFT_FLOATS]), q, v, out, rows, rows)
    if op == JACOBIAN:
        scale = tail(roots(job), 2 * WIDTH * job[abi.BODIES])
        for i in range(table[abi.SOFT_ROWS]):
            own = tail(scale, WIDTH * table[abi.SOFT_BODIES + i])
            for j in range(WIDTH):
                rows[WIDTH * i + j] *= own[j]


@inner
def condense(job, control, work):
    """W, and G without compliance, with the factor of the equations at hand."""
    table = integers_at(job[abi.SOFT_INTS])
    count = table[abi.SOFT_ROWS]
    most = table[abi.SOFT_MOST]
    n6 = WIDTH * job[abi.BODIES]
    rows = tail(floats_at(job[abi.SOFT_WORK]), ENTRIES * most)
    directions = soft_directions(job)
    multipliers = soft_multipliers(job)
    n = job[abi.EQUATIONS]
    matrix = soft_matrix(job)
    x = piece(job, X, work)
    for i in range(count):
        for k in range(n6 + n):
            x[k] = 0.0
        own = tail(x, WIDTH * table[abi.SOFT_BODIES + i])
        for j in range(WIDTH):
            own[j] = rows[WIDTH * i + j]
        call_algebra(job, SOLVE, control, work)
        for k in range(n6):
            directions[n6 * i + k] = x[k]
        for k in range(n):
            multipliers[n * i + k] = x[n6 + k]
        for j in range(i + 1):
            other = tail(directions, n6 * i + WIDTH * table[abi.SOFT_BODIES + j])
            matrix[most * i + j] = dot_6(tail(rows, WIDTH * j), other)


@inner
def factorise_soft(job):
    """The factor of G + C in place, its diagonal inverted; C is COMPLIANCES."""
    table = integers_at(job[abi.SOFT_INTS])
    most = table[abi.SOFT_MOST]
    compliance = soft_part(job, COMPLIANCES, most)
    matrix = soft_matrix(job)
    for i in range(table[abi.SOFT_ROWS]):
        row = tail(matrix, most * i)
        pivot = row[i] + compliance[i]
        for j in range(i):
            e = row[j]
            for k in range(j):
                e -= row[k] * matrix[most * j + k]
            e *= matrix[most * j + j]
            row[j] = e
            pivot -= e * e
        row[i] = 1.0 / sqrt(max(pivot, SINGULAR))


@inner
def soften(job, right, u):
    """FORCES ← y, u += W y; right: d of each row, overwritten."""
    table = integers_at(job[abi.SOFT_INTS])
    count = table[abi.SOFT_ROWS]
    most = table[abi.SOFT_MOST]
    n6 = WIDTH * job[abi.BODIES]
    rows = tail(floats_at(job[abi.SOFT_WORK]), ENTRIES * most)
    y = soft_part(job, FORCES, most)
    matrix = soft_matrix(job)
    directions = soft_directions(job)
    for i in range(count):
        e = right[i] - dot_6(tail(rows, WIDTH * i), tail(u, WIDTH * table[abi.SOFT_BODIES + i]))
        for k in range(i):
            e -= matrix[most * i + k] * y[k]
        y[i] = e * matrix[most * i + i]
    for i in range(count - 1, -1, -1):
        e = y[i] * matrix[most * i + i]
        y[i] = e
        for k in range(i):
            y[k] -= matrix[most * i + k] * e
    for i in range(count):
        own = tail(directions, n6 * i)
        for k in range(n6):
            u[k] += y[i] * own[k]
