"""Kernels of a pair of shapes: its equations at a pose, and Newton's method for the contact coordinates.

F and the gap are those of :mod:`cardan.joints._contact`.  For CROSSED curves  N = T¹ × T²,  F = (r·T¹, r·T²).  Reads
the table of the pair and x: frames and contact coordinates.  Writes the coordinates, and the workspace behind them.
"""

from math import floor, sqrt

from cardan.geometry import abi
from cardan.geometry._loops import is_inside
from cardan.joints import abi as own
from cardan.joints._vectors import apply, apply_back, cross, dot, rotation
from cardan.joints.abi import (
    B_PART,
    CROSSED,
    DEGENERATE,
    EDGE,
    FAR,
    FRAME,
    GAP,
    HELD,
    JUMPED,
    LATEST,
    MATRIX,
    NORMAL,
    OTHER_SIDE,
    PARAMETERS,
    REGULAR,
    ROWS_A,
    ROWS_B,
    SHAPE,
    STEP,
    TANGENT,
    TOP,
    TRIMMED,
    UNIT,
    WORK,
)
from cardan.kernel.jit import inner, plain
from cardan.kernel.memory import call_evaluator, floats_at, integers_at, tail

SOLVED = 1e-12  # of the size: the longest step at a solution
EXACT = 2e-14  # of the size: a smaller step is rounding; larger ones are made as long as they become shorter
LONGEST = 0.5  # of the size: the longest step, where coordinates need not be continuous
SINGULAR = 1e-6  # a smaller pivot of M, scaled to order one: the shapes touch along a line, or over an area
CONTRACTION = 0.5  # of two steps: with a larger one, the solution may belong to another contact
NEARBY = 1e-6  # of the size: after a shorter step it does not
SEAM = 1e-9  # of the period: a nearer place is at the seam; chords of loops are less exact
NONE = 1e300
SPARE = TOP + 33  # three floats behind the samples

SECOND, RETRACT = plain(2), abi.RETRACT
SOLVE, RATES = plain(own.SOLVE), plain(own.RATES)


@inner
def space(table, x):
    """The workspace behind the contact coordinates."""
    return tail(x, PARAMETERS + table[SHAPE + own.WIDTH] + table[SHAPE + B_PART + own.WIDTH])


@inner
def open_pose(x, w):
    """FRAME ← R (b to a), d (origin of b in a), R_a."""
    frame = tail(w, FRAME)
    other = tail(frame, 12)
    rotation(tail(x, 3), other)
    rotation(tail(x, 10), tail(w, MATRIX))
    for i in range(3):
        for j in range(3):
            s = 0.0
            for k in range(3):
                s += other[3 * k + i] * w[MATRIX + 3 * k + j]
            frame[3 * i + j] = s
    for i in range(3):
        w[MATRIX + i] = x[7 + i] - x[i]
    apply_back(other, tail(w, MATRIX), tail(frame, 9))


@inner
def evaluate(table, x, w):
    """S and its derivatives of both shapes, in the axes of a; N, n, gap; of TANGENT shapes the derivatives of N."""
    for k in range(2):
        shape = tail(table, SHAPE + B_PART * k)
        q = tail(x, PARAMETERS + (table[SHAPE + own.WIDTH] if k == 1 else 0))
        rows = tail(w, ROWS_B if k == 1 else ROWS_A)
        ints = integers_at(shape[own.INTS])
        call_evaluator(shape[own.EVALUATE], SECOND, ints, floats_at(shape[own.FLOATS]), q, q, rows, rows, tail(w, WORK))
        if k == 1:
            count = 1 if shape[own.FREEDOMS] == 0 else 3 * shape[own.FREEDOMS]
            for i in range(count):
                row = tail(rows, 3 * i)
                apply(tail(w, FRAME), row, row)
                if i == 0:
                    for c in range(3):
                        row[c] += w[FRAME + 9 + c]
    N = tail(w, NORMAL)
    A = tail(w, ROWS_A)
    for k in range(9):
        N[k] = 0.0
    if table[own.FORM] == CROSSED:
        cross(tail(A, 3), tail(w, ROWS_B + 3), N)
    elif table[SHAPE + own.FREEDOMS] == 2:
        cross(tail(A, 3), tail(A, 6), N)
        for k in range(2):
            cross(tail(A, 9 + 3 * k), tail(A, 6), tail(N, 3 + 3 * k))
            cross(tail(A, 3), tail(A, 12 + 3 * k), tail(w, UNIT))
            for c in range(3):
                N[3 + 3 * k + c] += w[UNIT + c]
    else:
        N[0] = A[4]
        N[1] = -A[3]
        N[3] = A[7]
        N[4] = -A[6]
    numbers = floats_at(table[own.NUMBERS])
    f = numbers[own.SIDE] / sqrt(dot(N, N))
    gap = 0.0
    for c in range(3):
        w[UNIT + c] = f * N[c]
        gap += w[UNIT + c] * (w[ROWS_B + c] - w[ROWS_A + c])
    w[GAP] = gap


@inner
def solve_step(table, w, op):
    """STEP ← M⁻¹(−F), or M⁻¹(−∂F/∂t) for RATES, as lengths along the tangents; False if M is singular.

    HELD coordinates stay.  RATES reads u and Ω from LATEST.  The second rows of CROSSED curves are r·T².
    """
    crossed = table[own.FORM] == CROSSED
    A = tail(w, ROWS_A)
    B = tail(w, ROWS_B)
    N = tail(w, NORMAL)
    m = tail(w, MATRIX)
    step = tail(w, STEP)
    size = floats_at(table[own.NUMBERS])[own.SIZE]
    first = table[SHAPE + own.FREEDOMS]
    second = table[SHAPE + B_PART + own.FREEDOMS]
    n = first + second
    big = sqrt(dot(N, N))
    for k in range(n):
        t = tail(A, 3 + 3 * k) if k < first else tail(B, 3 + 3 * (k - first))
        step[4 + k] = 1.0 / sqrt(dot(t, t))
    for i in range(n):
        row = tail(m, 5 * i)
        if i < first:
            t = tail(A, 3 + 3 * i)
            weight = step[4 + i]
            value = 0.0
            for c in range(3):
                r = A[c] - B[c]
                value += (w[LATEST + c] if op == RATES else -r) * t[c]
            for k in range(first):
                s = 0.0
                for c in range(3):
                    s += A[3 + 3 * k + c] * t[c] + (A[c] - B[c]) * A[3 * (1 + first + i + k) + c]
                row[k] = s
            for k in range(second):
                row[first + k] = -dot(tail(B, 3 + 3 * k), t)
        else:
            j = i - first
            t = tail(B, 3 + 3 * j)
            weight = step[4 + i] if crossed else step[4 + i] * size / big
            h = tail(w, SPARE)
            for c in range(3):
                h[c] = A[c] - B[c] if crossed else N[c]
            if op == RATES:
                O = tail(w, LATEST + 3)
                value = -(
                    h[0] * (O[1] * t[2] - O[2] * t[1])
                    + h[1] * (O[2] * t[0] - O[0] * t[2])
                    + h[2] * (O[0] * t[1] - O[1] * t[0])
                )
                value += dot(tail(w, LATEST), t) if crossed else 0.0
            else:
                value = -dot(h, t)
            for k in range(first):
                row[k] = dot(tail(A, 3), t) if crossed else dot(tail(N, 3 + 3 * k), t)
            for k in range(second):
                row[first + k] = dot(h, tail(B, 3 * (1 + second + j + k)))
                if crossed:
                    row[first + k] -= dot(t, t)
        for k in range(n):
            row[k] *= weight * step[4 + k]
        row[4] = value * weight
    for k in range(n):
        if w[HELD + k] != 0.0:
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
    """HELD ← coordinates at a bound that the step would cross; whether there is a new one."""
    changed = False
    at = 0
    for k in range(2):
        shape = tail(table, SHAPE + B_PART * k)
        if shape[own.WIDTH] == shape[own.FREEDOMS]:
            q = tail(x, PARAMETERS + (table[SHAPE + own.WIDTH] if k == 1 else 0))
            limits = floats_at(shape[own.FLOATS])
            for p in range(shape[own.FREEDOMS]):
                move = w[STEP + at + p]
                low = q[p] <= limits[3 * p] and move < 0.0
                high = q[p] >= limits[3 * p + 1] and move > 0.0
                if limits[3 * p + 2] == 0.0 and (low or high) and w[HELD + at + p] == 0.0:
                    w[HELD + at + p] = 1.0
                    changed = True
        at += shape[own.FREEDOMS]
    return changed


@inner
def move(table, x, w, factor):
    """Contact coordinates ← those moved by the step, within the bounds."""
    at = 0
    for k in range(2):
        shape = tail(table, SHAPE + B_PART * k)
        if shape[own.FREEDOMS] > 0:
            q = tail(x, PARAMETERS + (table[SHAPE + own.WIDTH] if k == 1 else 0))
            scratch = tail(w, WORK)
            for p in range(shape[own.FREEDOMS]):
                w[MATRIX + p] = factor * w[STEP + at + p] * w[STEP + 4 + at + p]
            ints = integers_at(shape[own.INTS])
            call_evaluator(
                shape[own.EVALUATE], RETRACT, ints, floats_at(shape[own.FLOATS]), q, tail(w, MATRIX), q, q, scratch
            )
        at += shape[own.FREEDOMS]


@inner
def other_normal(table, w, out):
    """out ← unit normal of b in the axes of a; whether it has one."""
    B = tail(w, ROWS_B)
    freedoms = table[SHAPE + B_PART + own.FREEDOMS]
    if freedoms == 2:
        cross(tail(B, 3), tail(B, 6), out)
    elif freedoms == 1 and table[SHAPE + own.FREEDOMS] == 1 and table[own.FORM] == TANGENT:
        w[MATRIX] = w[FRAME + 2]
        w[MATRIX + 1] = w[FRAME + 5]
        w[MATRIX + 2] = w[FRAME + 8]
        cross(tail(B, 3), tail(w, MATRIX), out)
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
        shape = tail(table, SHAPE + B_PART * k)
        if shape[own.LOOPS] != 0:
            q = tail(x, PARAMETERS + (table[SHAPE + own.WIDTH] if k == 1 else 0))
            limits = floats_at(shape[own.FLOATS])
            loops = floats_at(shape[own.LOOPS])
            u = within_period(q[0], limits[abi.LOWER_U], limits[abi.PERIOD_U])
            v = within_period(q[1], limits[abi.LOWER_V], limits[abi.PERIOD_V])
            outside = True
            for i in range(3):
                for j in range(3):
                    a = beside_seam(u, limits[abi.LOWER_U], limits[abi.PERIOD_U], i)
                    b = beside_seam(v, limits[abi.LOWER_V], limits[abi.PERIOD_V], j)
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
    size = floats_at(table[own.NUMBERS])[own.SIZE]
    n = table[SHAPE + own.FREEDOMS] + table[SHAPE + B_PART + own.FREEDOMS]
    status = FAR
    previous = NONE
    for _ in range(most):
        evaluate(table, x, w)
        for k in range(n):
            w[HELD + k] = 0.0
        regular = True
        for _ in range(n + 1):
            regular = solve_step(table, w, SOLVE)
            if not regular or not hold(table, x, w):
                break
        if not regular:
            return DEGENERATE
        longest = 0.0
        for k in range(n):
            longest = max(longest, abs(w[STEP + k]))
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
            if w[HELD + k] != 0.0:
                return EDGE
        if other_normal(table, w, tail(w, TOP)) and dot(tail(w, TOP), tail(w, UNIT)) > 0.0:
            return OTHER_SIDE
        if is_trimmed(table, x):
            return TRIMMED
    return status
