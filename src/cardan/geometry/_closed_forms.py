"""Closed forms: point, line, circle and ellipse, plane, sphere and ellipsoid, cylinder, cone, torus.

Reads a shape's table and q; writes ``out``; ``work`` has 8 floats.
"""

from math import cos, sin, sqrt

from cardan.geometry._quotient import retract
from cardan.geometry.tables import CIRCLE, LINE, PLANE, POINT, RETRACT, SPHERE, TORUS, ShapeFloats, ShapeInts
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut

WORK = 8


@inner
def put(out, row, x, y, z):
    out[3 * row] = x
    out[3 * row + 1] = y
    out[3 * row + 2] = z


@inner
def tangents(m, t):
    """t ← two unit vectors with t₁ × t₂ = m, continuous in m except at m = (0, 0, −1) ([Duff2017])."""
    sign = 1.0 if m[2] >= 0.0 else -1.0
    a = -1.0 / (sign + m[2])
    b = m[0] * m[1] * a
    put(t, 0, 1.0 + sign * m[0] * m[0] * a, sign * b, -sign * m[0])
    put(t, 1, b, sign + m[1] * m[1] * a, -m[1])


@inner
def sphere(order, axes, m, out, work):
    """S = diag(axes) exp_m(u t₁ + v t₂), with exp_m(d) = m cos|d| + d sin|d|/|d|, at u = v = 0."""
    t = work
    tangents(m, t)
    for c in range(3):
        a = axes[c]
        n, p, q = a * m[c], a * t[c], a * t[3 + c]
        out[c] = n
        if order > 0:
            out[3 + c] = p
            out[6 + c] = q
        if order > 1:
            out[9 + c] = -n
            out[12 + c] = 0.0
            out[15 + c] = -n
        if order > 2:
            out[18 + c] = -p
            out[21 + c] = -q / 3.0
            out[24 + c] = -p / 3.0
            out[27 + c] = -q


@inner
def ring(order, rows, radius_a, radius_b, height, u, out):
    """(a cos u, b sin u, z), with derivatives by u in the given step of rows."""
    x, y = radius_a * cos(u), radius_b * sin(u)
    dx, dy = -radius_a * sin(u), radius_b * cos(u)
    put(out, 0, x, y, height)
    if order > 0:
        put(out, rows[0], dx, dy, 0.0)
    if order > 1:
        put(out, rows[1], -x, -y, 0.0)
    if order > 2:
        put(out, rows[2], -dx, -dy, 0.0)


@inner
def turned(order, u, r, z, out):
    """(r(v) cos u, r(v) sin u, z(v)) from r, r', r'', r''' and z, …: a surface of revolution."""
    c, s = cos(u), sin(u)
    put(out, 0, r[0] * c, r[0] * s, z[0])
    if order > 0:
        put(out, 1, -r[0] * s, r[0] * c, 0.0)
        put(out, 2, r[1] * c, r[1] * s, z[1])
    if order > 1:
        put(out, 3, -r[0] * c, -r[0] * s, 0.0)
        put(out, 4, -r[1] * s, r[1] * c, 0.0)
        put(out, 5, r[2] * c, r[2] * s, z[2])
    if order > 2:
        put(out, 6, r[0] * s, -r[0] * c, 0.0)
        put(out, 7, -r[1] * c, -r[1] * s, 0.0)
        put(out, 8, -r[2] * s, r[2] * c, 0.0)
        put(out, 9, r[3] * c, r[3] * s, z[3])


def _evaluate(op, ints, floats, q, step, out, jacobian, work):
    shape = ShapeInts(ints)
    """Numbers of a kind follow LIMITS: radii (a, b, c) of circle, ellipse, sphere, ellipsoid, cylinder; R and r of a
    torus; radius at v = 0 and slope of a cone; the coordinates of a point."""
    kind = shape.kind
    a = cut(ShapeFloats(floats).numbers, 0, 3)
    if op == RETRACT:
        if kind == SPHERE:
            tangents(q, work)
            d = sqrt(step[0] * step[0] + step[1] * step[1])
            k = sin(d) / d if d > 1e-9 else 1.0  # the next term, d²/6, is below rounding
            x = cos(d) * q[0] + k * (step[0] * work[0] + step[1] * work[3])
            y = cos(d) * q[1] + k * (step[0] * work[1] + step[1] * work[4])
            z = cos(d) * q[2] + k * (step[0] * work[2] + step[1] * work[5])
            d = 1.0 / sqrt(x * x + y * y + z * z)
            put(out, 0, x * d, y * d, z * d)
        else:
            retract(ints, floats, q, step, out)
        return 0
    if kind == SPHERE:
        sphere(op, a, q, out, work)
        return 0
    for k in range(3 * (1 if kind == POINT else op + 1 if shape.freedoms == 1 else (op + 1) * (op + 2) // 2)):
        out[k] = 0.0
    if kind == POINT:
        put(out, 0, a[0], a[1], a[2])
    elif kind == LINE:
        out[0] = q[0]
        if op > 0:
            out[3] = 1.0
    elif kind == CIRCLE:
        ring(op, (1, 2, 3), a[0], a[1], 0.0, q[0], out)
    elif kind == PLANE:
        out[0] = q[0]
        out[1] = q[1]
        if op > 0:
            out[3] = 1.0
            out[7] = 1.0
    else:
        r = cut(work, 0, 4)
        z = cut(work, 4, 4)
        for k in range(8):
            work[k] = 0.0
        if kind == TORUS:
            x, y = a[1] * cos(q[1]), a[1] * sin(q[1])
            r[0], r[1], r[2], r[3] = a[0] + x, -y, -x, y
            z[0], z[1], z[2], z[3] = y, x, -y, -x
        else:  # cylinder and cone
            r[0], r[1] = a[0] + a[1] * q[1], a[1]
            z[0], z[1] = q[1], 1.0
        turned(op, q[0], r, z, out)
    return 0


EVALUATE = evaluator(_evaluate)
