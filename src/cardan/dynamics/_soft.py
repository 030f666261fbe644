"""Soft rows: quantities of single bodies that are minimised, or held with a compliance, subject to the equations.

With Ĵ = D J M^−½ of the equations, Ĵ_s = J_s M^−½ of the soft rows, u = M^½ δ (δ a step, a velocity or an acceleration)
and a compliance C, diagonal and positive:

    minimise  ½ |u − b|² + ½ (Ĵ_s u − d)ᵀ C⁻¹ (Ĵ_s u − d)   subject to  Ĵ u = c.

With u₀ the solution without soft rows, P the projector onto Ĵ u = 0, and y the forces of the soft rows:

    W = P Ĵ_sᵀ,   G = Ĵ_s W,   (G + C) y = d − Ĵ_s u₀,   u = u₀ + W y.

The equations hold for every y.  Each soft row takes one solution with the factor at hand, so rows may come and go.
Reads the soft table and what its evaluator has written; writes SoftWork.
"""

from math import sqrt

from cardan.dynamics._dual import dot_6
from cardan.dynamics._equations import mass_values, solve
from cardan.dynamics.tables import WIDTH, SoftWork
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import call_evaluator, tail
from cardan.solvers import tables as solvers_tables

JACOBIAN, GAMMA = plain(solvers_tables.JACOBIAN), plain(solvers_tables.GAMMA)
SINGULAR = 1e-300  # against division by zero


def plan_work(most, bodies, equations):
    """Offsets of SoftWork."""
    n6 = WIDTH * bodies
    return SoftWork.plan(
        residuals=most,
        stiffnesses=most,
        compliances=most,
        forces=most,
        entries=WIDTH * most,
        matrix=most * most,
        directions=most * n6,
        multipliers=most * equations,
        right=most,
        bias=most,
        solution=n6 + equations,
        scales=most,
        left=most,
        basis=most * most,
        triangle=most * most,
    )


@inner
def evaluate_soft(job, op, q, v, out):
    """JACOBIAN: residuals, stiffnesses and rows, scaled by M^−½.  GAMMA: out ← bias."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    rows = parts.entries
    call_evaluator(job.soft_evaluator, op, soft.as_ints, job.soft_floats, q, v, out, rows, rows)
    if op == JACOBIAN:
        scale = mass_values(job).inverse_roots
        for i in range(soft.rows):
            inverse_roots = tail(scale, WIDTH * soft.bodies[i])
            for j in range(WIDTH):
                rows[WIDTH * i + j] *= inverse_roots[j]


@inner
def condense(job, control, work):
    """W, and G without compliance, with the factor of the equations at hand."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    count = soft.rows
    most = soft.most
    n6 = WIDTH * job.bodies
    rows = parts.entries
    directions = parts.directions
    multipliers = parts.multipliers
    n = job.equations
    matrix = parts.matrix
    x = work.x
    for i in range(count):
        for k in range(n6 + n):
            x[k] = 0.0
        of_body = tail(x, WIDTH * soft.bodies[i])
        for j in range(WIDTH):
            of_body[j] = rows[WIDTH * i + j]
        solve(job, control, False, work)
        for k in range(n6):
            directions[n6 * i + k] = x[k]
        for k in range(n):
            multipliers[n * i + k] = x[n6 + k]
        for j in range(i + 1):
            other = tail(directions, n6 * i + WIDTH * soft.bodies[j])
            matrix[most * i + j] = dot_6(tail(rows, WIDTH * j), other)


@inner
def factorise_soft(job):
    """The factor of G + C in place, its diagonal inverted; C are the compliances."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    compliance = parts.compliances
    matrix = parts.matrix
    for i in range(soft.rows):
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
    """forces ← y, u += W y; right: d of each row, overwritten."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    count = soft.rows
    most = soft.most
    n6 = WIDTH * job.bodies
    rows = parts.entries
    y = parts.forces
    matrix = parts.matrix
    directions = parts.directions
    for i in range(count):
        e = right[i] - dot_6(tail(rows, WIDTH * i), tail(u, WIDTH * soft.bodies[i]))
        for k in range(i):
            e -= matrix[most * i + k] * y[k]
        y[i] = e * matrix[most * i + i]
    for i in range(count - 1, -1, -1):
        e = y[i] * matrix[most * i + i]
        y[i] = e
        for k in range(i):
            y[k] -= matrix[most * i + k] * e
    for i in range(count):
        direction = tail(directions, n6 * i)
        for k in range(n6):
            u[k] += y[i] * direction[k]
