"""Kernels of a pair of shapes: its equations at a pose, and Newton's method for the contact coordinates.

F and the gap are those of :mod:`cardan.joints._contact`.  For CROSSED curves  N = T¹ × T²,  F = (r·T¹, r·T²).  Reads
the table of the pair and x: frames and contact coordinates.  Writes the coordinates, and the workspace behind them.
"""

from math import floor, sqrt

from cardan.geometry._loops import is_inside
from cardan.geometry.tables import RETRACT, Limit
from cardan.joints import tables
from cardan.joints._vectors import apply, apply_back, cross, dot, rotation
from cardan.joints.tables import (
    CROSSED,
    DEGENERATE,
    EDGE,
    FAR,
    JUMPED,
    OTHER_SIDE,
    PARAMETERS,
    REGULAR,
    TANGENT,
    TRIMMED,
    PairShape,
    PairWork,
)
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import call_evaluator, tail

SOLVED = 1e-12  # of the size: the longest step at a solution
EXACT = 2e-14  # of the size: a smaller step is rounding; larger ones are made as long as they become shorter
LONGEST = 0.5  # of the size: the longest step, where coordinates need not be continuous
SINGULAR = 1e-6  # a smaller pivot of M, scaled to order one: the shapes touch along a line, or over an area
CONTRACTION = 0.5  # of two steps: with a larger one, the solution may belong to another contact
NEARBY = 1e-6  # of the size: after a shorter step it does not
SEAM = 1e-9  # of the period: a nearer place is at the seam; chords of loops are less exact
NONE = 1e300

SECOND = plain(2)
SOLVE, RATES = plain(tables.SOLVE), plain(tables.RATES)


@inner
def space(table, x):
    """The workspace behind the contact coordinates."""
    return PairWork(tail(x, PARAMETERS + PairShape(table.shapes).width + PairShape(table.shapes, 1).width))


@inner
def open_pose(x, w):
    """R_AB, p_AB, R_WA ← the pose of b relative to a, and the axes of a."""
    other = w.R_WA
    rotation(tail(x, 3), other)
    rotation(tail(x, 10), w.matrix)
    for i in range(3):
        for j in range(3):
            s = 0.0
            for k in range(3):
                s += other[3 * k + i] * w.matrix[3 * k + j]
            w.R_AB[3 * i + j] = s
    for i in range(3):
        w.matrix[i] = x[7 + i] - x[i]
    apply_back(other, w.matrix, w.p_AB)


@inner
def evaluate(table, x, w):
    """S and its derivatives of both shapes, in the axes of a; N, n, gap; of TANGENT shapes the derivatives of N."""
    for k in range(2):
        shape = PairShape(table.shapes, k)
        q = tail(x, PARAMETERS + (PairShape(table.shapes).width if k == 1 else 0))
        rows = w.rows_b if k == 1 else w.rows_a
        ints = shape.ints
        call_evaluator(shape.evaluate, SECOND, ints, shape.floats, q, q, rows, rows, w.scratch)
        if k == 1:
            count = 1 if shape.freedoms == 0 else 3 * shape.freedoms
            for i in range(count):
                row = tail(rows, 3 * i)
                apply(w.R_AB, row, row)
                if i == 0:
                    for c in range(3):
                        row[c] += w.p_AB[c]
    N = w.normal
    A = w.rows_a
    for k in range(9):
        N[k] = 0.0
    if table.form == CROSSED:
        cross(tail(A, 3), tail(w.rows_b, 3), N)
    elif PairShape(table.shapes).freedoms == 2:
        cross(tail(A, 3), tail(A, 6), N)
        for k in range(2):
            cross(tail(A, 9 + 3 * k), tail(A, 6), tail(N, 3 + 3 * k))
            cross(tail(A, 3), tail(A, 12 + 3 * k), w.unit)
            for c in range(3):
                N[3 + 3 * k + c] += w.unit[c]
    else:
        N[0] = A[4]
        N[1] = -A[3]
        N[3] = A[7]
        N[4] = -A[6]
    numbers = table.numbers
    f = numbers.side / sqrt(dot(N, N))
    gap = 0.0
    for c in range(3):
        w.unit[c] = f * N[c]
        gap += w.unit[c] * (w.rows_b[c] - w.rows_a[c])
    w.gap = gap


@inner
def first_row(w, i, first, second, op):
    """Row i of M and of the right-hand side, returned: r·T¹ᵢ."""
    A, B = w.rows_a, w.rows_b
    row = tail(w.matrix, 5 * i)
    t = tail(A, 3 + 3 * i)
    value = 0.0
    for c in range(3):
        r = A[c] - B[c]
        value += (w.latest[c] if op == RATES else -r) * t[c]
    for k in range(first):
        s = 0.0
        for c in range(3):
            s += A[3 + 3 * k + c] * t[c] + (A[c] - B[c]) * A[3 * (1 + first + i + k) + c]
        row[k] = s
    for k in range(second):
        row[first + k] = -dot(tail(B, 3 + 3 * k), t)
    return value


@inner
def second_row(w, j, first, second, crossed, op):
    """Row first + j of M and of the right-hand side, returned: N·T²ⱼ, or r·T² of CROSSED curves."""
    A, B, N = w.rows_a, w.rows_b, w.normal
    row = tail(w.matrix, 5 * (first + j))
    t = tail(B, 3 + 3 * j)
    h = w.spare
    for c in range(3):
        h[c] = A[c] - B[c] if crossed else N[c]
    if op == RATES:
        O = tail(w.latest, 3)
        value = -(
            h[0] * (O[1] * t[2] - O[2] * t[1]) + h[1] * (O[2] * t[0] - O[0] * t[2]) + h[2] * (O[0] * t[1] - O[1] * t[0])
        )
        value += dot(w.latest, t) if crossed else 0.0
    else:
        value = -dot(h, t)
    for k in range(first):
        row[k] = dot(tail(A, 3), t) if crossed else dot(tail(N, 3 + 3 * k), t)
    for k in range(second):
        row[first + k] = dot(h, tail(B, 3 * (1 + second + j + k)))
        if crossed:
            row[first + k] -= dot(t, t)
    return value


@inner
def solve_step(table, w, op):
    """step ← M⁻¹(−F), or M⁻¹(−∂F/∂t) for RATES, as lengths along the tangents; False if M is singular.

    Held coordinates stay.  RATES reads u and Ω from ``latest``.
    """
    crossed = table.form == CROSSED
    A = w.rows_a
    B = w.rows_b
    m = w.matrix
    step = w.step
    first = PairShape(table.shapes).freedoms
    second = PairShape(table.shapes, 1).freedoms
    n = first + second
    scale = 1.0 if crossed else table.numbers.extent / sqrt(dot(w.normal, w.normal))
    for k in range(n):
        t = tail(A, 3 + 3 * k) if k < first else tail(B, 3 + 3 * (k - first))
        w.per_length[k] = 1.0 / sqrt(dot(t, t))
    for i in range(n):
        row = tail(m, 5 * i)
        weight = w.per_length[i]
        if i < first:
            value = first_row(w, i, first, second, op)
        else:
            value = second_row(w, i - first, first, second, crossed, op)
            weight *= scale
        for k in range(n):
            row[k] *= weight * w.per_length[k]
        row[4] = value * weight
    for k in range(n):
        if w.held[k] != 0.0:
            for i in range(n):
                m[5 * i + k] = 0.0
                m[5 * k + i] = 0.0
            m[5 * k + k] = 1.0
            m[5 * k + 4] = 0.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(m[5 * i + k]) > abs(m[5 * best + k]):
                best = i
        if not abs(m[5 * best + k]) > SINGULAR:  # also if it is not a number
            return False
        for c in range(5):
            a = m[5 * k + c]
            m[5 * k + c] = m[5 * best + c]
            m[5 * best + c] = a
        for i in range(k + 1, n):
            f = m[5 * i + k] / m[5 * k + k]
            for c in range(k, 5):
                m[5 * i + c] -= f * m[5 * k + c]
    for back in range(n):
        i = n - 1 - back
        s = m[5 * i + 4]
        for k in range(i + 1, n):
            s -= m[5 * i + k] * step[k]
        step[i] = s / m[5 * i + i]
    return True


@inner
def hold(table, x, w):
    """held ← coordinates at a bound that the step would cross; whether there is a new one."""
    changed = False
    at = 0
    for k in range(2):
        shape = PairShape(table.shapes, k)
        if shape.width == shape.freedoms:
            q = tail(x, PARAMETERS + (PairShape(table.shapes).width if k == 1 else 0))
            for p in range(shape.freedoms):
                move = w.step[at + p]
                limit = Limit(shape.floats, p)
                low = q[p] <= limit.lower and move < 0.0
                high = q[p] >= limit.upper and move > 0.0
                if limit.period == 0.0 and (low or high) and w.held[at + p] == 0.0:
                    w.held[at + p] = 1.0
                    changed = True
        at += shape.freedoms
    return changed


@inner
def move(table, x, w, factor):
    """Contact coordinates ← those moved by the step, within the bounds."""
    at = 0
    for k in range(2):
        shape = PairShape(table.shapes, k)
        if shape.freedoms > 0:
            q = tail(x, PARAMETERS + (PairShape(table.shapes).width if k == 1 else 0))
            scratch = w.scratch
            for p in range(shape.freedoms):
                w.matrix[p] = factor * w.step[at + p] * w.per_length[at + p]
            ints = shape.ints
            call_evaluator(shape.evaluate, RETRACT, ints, shape.floats, q, w.matrix, q, q, scratch)
        at += shape.freedoms


@inner
def other_normal(table, w, out):
    """out ← unit normal of b in the axes of a; whether it has one."""
    B = w.rows_b
    freedoms = PairShape(table.shapes, 1).freedoms
    if freedoms == 2:
        cross(tail(B, 3), tail(B, 6), out)
    elif freedoms == 1 and PairShape(table.shapes).freedoms == 1 and table.form == TANGENT:
        w.matrix[0] = w.R_AB[2]
        w.matrix[1] = w.R_AB[5]
        w.matrix[2] = w.R_AB[8]
        cross(tail(B, 3), w.matrix, out)
    else:
        return False
    f = 1.0 / sqrt(dot(out, out))
    for c in range(3):
        out[c] *= f
    return True


@inner
def within_period(value, low, period):
    """The same place of a periodic parameter, in its first period."""
    return value - period * floor((value - low) / period) if period > 0.0 else value


@inner
def beside_seam(value, low, period, side):
    """A value at a seam, moved into the period at its begin (side 1) or its end (2); any other, and side 0: itself."""
    near = SEAM * period
    if side == 0 or period == 0.0 or near < value - low < period - near:
        return value
    return low + near if side == 1 else low + period - near


@inner
def is_trimmed(table, x):
    """Whether the coordinates are outside the loops of a trimmed face.

    Loops end at the seams of a closed surface.  A contact that moves along a seam is on either side by rounding, so
    both sides are tried.
    """
    for k in range(2):
        shape = PairShape(table.shapes, k)
        if shape.is_trimmed != 0:
            q = tail(x, PARAMETERS + (PairShape(table.shapes).width if k == 1 else 0))
            limit_u, limit_v = Limit(shape.floats, 0), Limit(shape.floats, 1)
            loops = shape.loops
            u = within_period(q[0], limit_u.lower, limit_u.period)
            v = within_period(q[1], limit_v.lower, limit_v.period)
            outside = True
            for i in range(3):
                for j in range(3):
                    a = beside_seam(u, limit_u.lower, limit_u.period, i)
                    b = beside_seam(v, limit_v.lower, limit_v.period, j)
                    if outside and (i == 0 or a != u) and (j == 0 or b != v):
                        outside = not is_inside(loops, a, b)
            if outside:
                return True
    return False


@inner
def newton(table, x, w, most, continuous):
    """Contact coordinates ← a solution near them; returns its status.

    continuous: the solution must belong to the start, JUMPED if steps do not become shorter at once.  [Deuflhard2011]
    """
    size = table.numbers.extent
    n = PairShape(table.shapes).freedoms + PairShape(table.shapes, 1).freedoms
    status = FAR
    previous = NONE
    for _ in range(most):
        evaluate(table, x, w)
        for k in range(n):
            w.held[k] = 0.0
        regular = True
        for _ in range(n + 1):
            regular = solve_step(table, w, SOLVE)
            if not regular or not hold(table, x, w):
                break
        if not regular:
            return DEGENERATE
        longest = 0.0
        for k in range(n):
            longest = max(longest, abs(w.step[k]))
        if longest <= SOLVED * size and (longest <= EXACT * size or longest > 0.25 * previous):
            status = REGULAR
            break
        if not longest < NONE:
            return FAR
        if continuous and previous > NEARBY * size and longest > CONTRACTION * previous:
            return JUMPED
        previous = longest
        move(table, x, w, 1.0 if continuous else min(1.0, LONGEST * size / longest))
    if status == REGULAR:
        for k in range(n):
            if w.held[k] != 0.0:
                return EDGE
        if other_normal(table, w, w.ranks) and dot(w.ranks, w.unit) > 0.0:
            return OTHER_SIDE
        if is_trimmed(table, x):
            return TRIMMED
    return status
