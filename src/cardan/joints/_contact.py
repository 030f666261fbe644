"""Kernels of contacts: contact coordinates by Newton's method, the rows of a contact and of rolling, and their γ.

Shapes S¹(s¹) on body a and S²(s²) on body b, all in the axes of the frame of a:

    r = S¹ − S²,   F = (r·T¹ᵢ, N·T²ⱼ) = 0,   gap = n·(S² − S¹),   n = ± N/|N|,

with the tangents Tᵢ = ∂S/∂sᵢ and the normal N of the first shape: T¹₁ × T¹₂ of a surface, (y', −x', 0) of a curve.
At a solution r is along n, so the derivative of the gap by s vanishes: its rate is n·u, with the velocity u of the
point of b relative to a, and  d²gap/dt² = n·(a² − a¹) + gap |ṅ|²,  where a is the acceleration of S with ṡ from
M ṡ = −∂F/∂t,  M = ∂F/∂s.  These equations do not divide by the gap ([Montana1988] for zero gap).

x of a contact: origin and orientation of the frame of a, the same of b, contact coordinates; then a workspace, which
:func:`contact` fills and its curvature reads.  c: address of the table of the pair.
"""

from math import nan, sqrt

from cardan._jit import call_evaluator, evaluator, floats_at, inner, integers_at, plain, tail
from cardan.geometry import abi
from cardan.joints import abi as own
from cardan.joints.abi import (
    B_PART,
    DEGENERATE,
    EDGE,
    FAR,
    FRAME,
    GAP,
    HELD,
    LATEST,
    MATRIX,
    NORMAL,
    OTHER_SIDE,
    PARAMETERS,
    REGULAR,
    ROWS_A,
    ROWS_B,
    SHAPE,
    STATUS,
    STEP,
    TOP,
    UNIT,
    WORK,
)

SOLVED = 1e-12  # of the size: the longest step at a solution
EXACT = 2e-14  # of the size: a smaller step is rounding; larger ones are made as long as they become shorter
LONGEST = 0.5  # of the size: the longest step
SINGULAR = 1e-6  # a smaller pivot of M, scaled to order one: the shapes touch along a line, or over an area
STARTS = 8  # pairs of samples from which Newton's method is tried
NONE = 1e300

SECOND, RETRACT = plain(2), abi.RETRACT
ITERATIONS, TRIED = plain(30), plain(15)  # of Newton's method; from a pair of samples
SOLVE, RATES = plain(own.SOLVE), plain(own.RATES)


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def cross(a, b, out):
    x = a[1] * b[2] - a[2] * b[1]
    y = a[2] * b[0] - a[0] * b[2]
    z = a[0] * b[1] - a[1] * b[0]
    out[0] = x
    out[1] = y
    out[2] = z


@inner
def rotation(p, out):
    """out ← A(p)/|p|², row by row; returns |p|²."""
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    f = 2.0 / square
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        out[4 * i] = f * (p[0] * p[0] + p[1 + i] * p[1 + i]) - 1.0
        out[3 * k + j] = f * (p[1 + j] * p[1 + k] + p[0] * p[1 + i])
        out[3 * j + k] = f * (p[1 + j] * p[1 + k] - p[0] * p[1 + i])
    return square


@inner
def apply(R, v, out):
    """out ← R v."""
    x = v[0]
    y = v[1]
    z = v[2]
    for i in range(3):
        out[i] = R[3 * i] * x + R[3 * i + 1] * y + R[3 * i + 2] * z


@inner
def apply_back(R, v, out):
    """out ← Rᵀ v."""
    x = v[0]
    y = v[1]
    z = v[2]
    for i in range(3):
        out[i] = R[i] * x + R[3 + i] * y + R[6 + i] * z


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
    """S and its derivatives of both shapes, in the axes of a; N and its derivatives, n, gap."""
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
    if table[SHAPE + own.FREEDOMS] == 2:
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

    HELD coordinates stay.  RATES reads u and Ω from LATEST.
    """
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
            weight = step[4 + i] * size / big
            if op == RATES:
                O = tail(w, LATEST + 3)
                value = -(
                    N[0] * (O[1] * t[2] - O[2] * t[1])
                    + N[1] * (O[2] * t[0] - O[0] * t[2])
                    + N[2] * (O[0] * t[1] - O[1] * t[0])
                )
            else:
                value = -dot(N, t)
            for k in range(first):
                row[k] = dot(tail(N, 3 + 3 * k), t)
            for k in range(second):
                row[first + k] = dot(N, tail(B, 3 * (1 + second + j + k)))
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
        if not abs(m[5 * best + k]) > SINGULAR:
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
    elif freedoms == 1 and table[SHAPE + own.FREEDOMS] == 1:
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
def newton(table, x, w, most):
    """Contact coordinates ← a solution near them; returns its status."""
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
        previous = longest
        move(table, x, w, min(1.0, LONGEST * size / longest))
    if status == REGULAR:
        for k in range(n):
            if w[HELD + k] != 0.0:
                return EDGE
        if other_normal(table, w, tail(w, TOP)) and dot(tail(w, TOP), tail(w, UNIT)) > 0.0:
            return OTHER_SIDE
    return status


@inner
def start_from(table, x, w, i, j):
    """Contact coordinates ← those of two samples; along directions without end, where the samples are opposite."""
    for k in range(2):
        shape = tail(table, SHAPE + B_PART * k)
        q = tail(x, PARAMETERS + (table[SHAPE + own.WIDTH] if k == 1 else 0))
        sample = tail(floats_at(shape[own.SAMPLES]), own.SAMPLE * (j if k == 1 else i))
        for p in range(shape[own.WIDTH]):
            q[p] = sample[p]
        if k == 1 and table[own.ENDLESS] != own.BOUNDED:
            p = tail(w, TOP + 3 * STARTS)
            apply(tail(w, FRAME), tail(sample, 3), p)
            first = tail(x, PARAMETERS)
            if table[own.ENDLESS] == own.ALONG_Z:
                first[1] = p[2] + w[FRAME + 11]
            else:
                first[0] = p[0] + w[FRAME + 9]
                if table[own.ENDLESS] == own.ALONG_XY:
                    first[1] = p[1] + w[FRAME + 10]


@inner
def rank_samples(table, w):
    """TOP ← the pairs of samples that are most nearly opposite and close: score, numbers."""
    first = tail(table, SHAPE)
    second = tail(table, SHAPE + B_PART)
    numbers = floats_at(table[own.NUMBERS])
    side = numbers[own.SIDE]
    scale = numbers[own.SIZE] * numbers[own.SIZE]
    top = tail(w, TOP)
    for k in range(STARTS):
        top[3 * k] = NONE
        top[3 * k + 1] = 0.0
        top[3 * k + 2] = 0.0
    moved = tail(top, 3 * STARTS)
    endless = table[own.ENDLESS]
    opposed = first[own.FREEDOMS] == second[own.FREEDOMS]
    for j in range(second[own.COUNT]):
        b = tail(floats_at(second[own.SAMPLES]), own.SAMPLE * j)
        apply(tail(w, FRAME), tail(b, 3), moved)
        apply(tail(w, FRAME), tail(b, 6), tail(moved, 3))
        for c in range(3):
            moved[c] += w[FRAME + 9 + c]
        for i in range(first[own.COUNT]):
            a = tail(floats_at(first[own.SAMPLES]), own.SAMPLE * i)
            along = 0.0
            square = 0.0
            cosine = 0.0
            for c in range(3):
                r = moved[c] - a[3 + c]
                free = (endless == own.ALONG_Z and c == 2) or (endless == own.ALONG_XY and c < 2)
                if free or (endless == own.ALONG_X and c == 0):
                    r = 0.0
                along += side * a[6 + c] * r
                square += r * r
                cosine += side * a[6 + c] * moved[3 + c]
            score = square - 0.75 * along * along
            if opposed:
                score += scale * (1.0 + cosine) * (1.0 + cosine)
            k = STARTS
            while k > 0 and score < top[3 * k - 3]:
                k -= 1
                if k < STARTS - 1:
                    for c in range(3):
                        top[3 * k + 3 + c] = top[3 * k + c]
            if k < STARTS:
                top[3 * k] = score
                top[3 * k + 1] = i
                top[3 * k + 2] = j


@inner
def search(table, x, w, width):
    """Contact coordinates ← of the regular pairs found from samples the one of least |gap|; returns a status.

    Without a regular pair: the best pair of samples, moved as far as Newton's method leads.
    """
    rank_samples(table, w)
    best = NONE
    found = FAR
    saved = tail(w, TOP + 3 * STARTS + 3)
    for k in range(STARTS):  # `newton` overwrites the first of them, when it is in use
        if k == 0 or w[TOP + 3 * k] < NONE:
            i = int(w[TOP + 3 * k + 1])
            j = int(w[TOP + 3 * k + 2])
            start_from(table, x, w, i, j)
            status = newton(table, x, w, TRIED)
            value = abs(w[GAP])
            if status == REGULAR and (found != REGULAR or value < best):
                found = REGULAR
                best = value
                for p in range(width):
                    saved[p] = x[PARAMETERS + p]
            elif found != REGULAR and k == 0:
                found = status
                for p in range(width):
                    saved[p] = x[PARAMETERS + p]
    for p in range(width):
        x[PARAMETERS + p] = saved[p]
    return found


def _solve(op, table, unused, x, unused_1, unused_2, unused_3, unused_4):
    """SOLVE: contact coordinates in x ← solved; workspace ← values there; STATUS.  RATES: STEP ← ṡ as lengths.

    Coordinates that are all zero, or not finite, are not known: the pair is searched for.  So it is where Newton's
    method fails, unless coordinates must be CONTINUOUS.
    """
    w = space(table, x)
    n = table[SHAPE + own.FREEDOMS] + table[SHAPE + B_PART + own.FREEDOMS]
    if op == RATES:
        for k in range(n):
            w[HELD + k] = 0.0
        if not solve_step(table, w, RATES):
            for k in range(n):
                w[STEP + k] = nan
        return 0
    open_pose(x, w)
    numbers = floats_at(table[own.NUMBERS])
    width = table[SHAPE + own.WIDTH] + table[SHAPE + B_PART + own.WIDTH]
    known = False
    finite = True
    for p in range(width):
        known = known or x[PARAMETERS + p] != 0.0
        finite = finite and abs(x[PARAMETERS + p]) < NONE
    status = FAR
    if known and finite:
        at = PARAMETERS
        for k in range(2):
            shape = tail(table, SHAPE + B_PART * k)
            if shape[own.WIDTH] > shape[own.FREEDOMS]:  # a unit vector
                f = 1.0 / sqrt(dot(tail(x, at), tail(x, at)))
                for c in range(3):
                    x[at + c] *= f
            at += shape[own.WIDTH]
        status = newton(table, x, w, ITERATIONS)
    if status != REGULAR and (numbers[own.CONTINUOUS] == 0.0 or not (known and finite)):
        status = search(table, x, w, width)
        evaluate(table, x, w)
    known = False
    for p in range(width):
        known = known or x[PARAMETERS + p] != 0.0
    if not known and width > 0:
        x[PARAMETERS] = own.ZERO
    w[STATUS] = status
    return 0


SOLVE_PAIR = evaluator(_solve)


@inner
def table_of(c):
    """The table of the pair."""
    return integers_at(int(c[own.ADDRESS]))


@inner
def put_orientation(p, torque, factor, out):
    """out ← factor · 2/|p|² p ⊗ (0, torque): the derivative by p of what changes by torque·δθ."""
    f = 2.0 * factor / (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
    out[0] = -f * (p[1] * torque[0] + p[2] * torque[1] + p[3] * torque[2])
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        out[1 + i] = f * (p[0] * torque[i] + p[1 + j] * torque[k] - p[1 + k] * torque[j])


@inner
def put_row(x, w, row, h, couple):
    """row ← derivative of  h·u + couple·Ω  by velocities of the features; h, couple in the axes of a.

    u: velocity of S² of b relative to a; Ω: angular velocity of b relative to a.
    """
    frame = tail(w, FRAME)
    spare = tail(w, MATRIX)
    apply(tail(frame, 12), h, tail(row, 7))
    for c in range(3):
        row[c] = -row[7 + c]
        spare[c] = w[ROWS_B + c] - frame[9 + c]
    cross(tail(w, ROWS_B), h, tail(spare, 3))
    cross(spare, h, spare)
    for c in range(3):
        spare[c] += couple[c]
        spare[3 + c] += couple[c]
    put_orientation(tail(x, 3), tail(spare, 3), -1.0, tail(row, 3))
    apply_back(frame, spare, spare)
    put_orientation(tail(x, 10), spare, 1.0, tail(row, 10))


@inner
def update_axes(table, w):
    """LATEST ← two unit tangents t₁, t₂ = n × t₁, then zero, then a normal of b, which has one or not (returned).

    For a point on a curve: two unit vectors across the curve.
    """
    axes = tail(w, LATEST)
    t = tail(w, ROWS_A + 3)
    f = 1.0 / sqrt(dot(t, t))
    for c in range(3):
        axes[c] = f * t[c]
        axes[6 + c] = 0.0
    if table[own.ACROSS] != 0:
        m = axes
        sign = 1.0 if m[2] >= 0.0 else -1.0  # [Duff2017]
        a = -1.0 / (sign + m[2])
        b = m[0] * m[1] * a
        w[UNIT] = 1.0 + sign * m[0] * m[0] * a
        w[UNIT + 1] = sign * b
        w[UNIT + 2] = -sign * m[0]
        axes[3] = b
        axes[4] = sign + m[1] * m[1] * a
        axes[5] = -m[1]
        return False
    cross(tail(w, UNIT), axes, tail(axes, 3))
    return other_normal(table, w, tail(axes, 9))


def contact(x, c, f, df):
    """f = (gap; t₁·r, t₂·r; t₁·n², t₂·n²), r = S² − S¹: the first is the equation, the others vanish with F.

    Where F = 0 has no solution within the shapes, all rows are those at the nearest pair, and so are their derivatives.
    For a point on a curve: (e₁·r, e₂·r; t·r).
    """
    table = table_of(c)
    call_evaluator(table[own.SOLVER], SOLVE, table, c, x, x, x, x, x)
    w = space(table, x)
    status = w[STATUS]
    columns = PARAMETERS + table[SHAPE + own.WIDTH] + table[SHAPE + B_PART + own.WIDTH]
    has_normal = update_axes(table, w)
    axes = tail(w, LATEST)
    across = table[own.ACROSS] != 0
    rows = 3 if across else 5
    for i in range(rows * columns):
        df[i] = 0.0
    for i in range(rows):
        f[i] = 0.0
    regular = status == REGULAR
    for c_ in range(3):
        r = w[ROWS_B + c_] - w[ROWS_A + c_]
        f[0] += w[UNIT + c_] * r
        if across:
            f[1] += axes[3 + c_] * r
            f[2] += axes[c_] * r
        else:
            f[1] += axes[c_] * r
            f[2] += axes[3 + c_] * r
            if has_normal:
                f[3] += axes[c_] * axes[9 + c_]
                f[4] += axes[3 + c_] * axes[9 + c_]
    if not has_normal and table[SHAPE + B_PART + own.FREEDOMS] == 1 and not across:  # a curve on a surface
        t = tail(w, ROWS_B + 3)
        f[3] = dot(tail(w, UNIT), t) / sqrt(dot(t, t))
    if status == OTHER_SIDE:
        f[3] = 2.0
    if status == DEGENERATE or status == FAR:
        f[rows - 1] += 1.0
    if not regular and floats_at(table[own.NUMBERS])[own.CONTINUOUS] != 0.0:
        f[0] = nan
    zero = tail(axes, 6)
    put_row(x, w, df, tail(w, UNIT), zero)
    if across:
        put_row(x, w, tail(df, columns), tail(axes, 3), zero)
        if not regular:
            put_row(x, w, tail(df, 2 * columns), axes, zero)
    elif not regular:
        put_row(x, w, tail(df, columns), axes, zero)
        put_row(x, w, tail(df, 2 * columns), tail(axes, 3), zero)
        if has_normal and status != OTHER_SIDE:
            couple = tail(w, TOP)
            for k in range(2):
                cross(tail(axes, 9), tail(axes, 3 * k), couple)
                put_row(x, w, tail(df, (3 + k) * columns), zero, couple)
    return 0


@inner
def angular_velocity(p, rate, out):
    """out ← ω in the axes of the frame, 2 Im(p* ⊗ ṗ)/|p|²."""
    f = 2.0 / (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        out[i] = f * (p[0] * rate[1 + i] - rate[0] * p[1 + i] - p[1 + j] * rate[1 + k] + p[1 + k] * rate[1 + j])


# pieces behind TOP, in the curvatures: ω of a and b, velocities of the contact point along both shapes, accelerations
OMEGA_A, OMEGA_B, ALONG_A, ALONG_B, TURN, SPARE = range(0, 18, 3)


@inner
def update_motion(table, x, rate, c, w):
    """Behind TOP ← ω of both bodies, T ṡ of both shapes, ṅ; all in the axes of a, ṅ and ω relative to the world.

    Returns the parts of the accelerations n·(S_ss ṡ ṡ) for the direction n as they are, in SPARE (six floats).
    """
    frame = tail(w, FRAME)
    m = tail(w, TOP)
    angular_velocity(tail(x, 3), tail(rate, 3), m)
    angular_velocity(tail(x, 10), tail(rate, 10), tail(m, OMEGA_B))
    apply(frame, tail(m, OMEGA_B), tail(m, OMEGA_B))
    u = tail(w, LATEST)
    spare = tail(m, SPARE)
    for k in range(3):
        spare[k] = rate[7 + k] - rate[k]
    apply_back(tail(frame, 12), spare, u)
    for k in range(3):
        spare[k] = w[ROWS_B + k] - frame[9 + k]
    cross(tail(m, OMEGA_B), spare, spare)
    cross(m, tail(w, ROWS_B), tail(spare, 3))
    for k in range(3):
        u[k] += spare[k] - spare[3 + k]
        u[3 + k] = m[OMEGA_B + k] - m[k]
    call_evaluator(table[own.SOLVER], RATES, table, c, x, x, x, x, x)
    at = 0
    for k in range(2):
        freedoms = table[SHAPE + B_PART * k + own.FREEDOMS]
        rows = tail(w, ROWS_B if k == 1 else ROWS_A)
        along = tail(m, ALONG_B if k == 1 else ALONG_A)
        bent = tail(m, SPARE + 3 * k)
        for i in range(3):
            along[i] = 0.0
            bent[i] = 0.0
        for p in range(freedoms):
            s = w[STEP + at + p] * w[STEP + 4 + at + p]
            for i in range(3):
                along[i] += s * rows[3 + 3 * p + i]
                for o in range(freedoms):
                    bent[i] += s * w[STEP + at + o] * w[STEP + 4 + at + o] * rows[3 * (1 + freedoms + p + o) + i]
        at += freedoms
    turn = tail(m, TURN)
    numbers = floats_at(table[own.NUMBERS])
    N = tail(w, NORMAL)
    f = numbers[own.SIDE] / sqrt(dot(N, N))
    for i in range(3):
        turn[i] = 0.0
    for p in range(table[SHAPE + own.FREEDOMS]):
        s = w[STEP + p] * w[STEP + 4 + p]
        for i in range(3):
            turn[i] += s * f * N[3 + 3 * p + i]
    d = dot(turn, tail(w, UNIT))
    for i in range(3):
        turn[i] -= d * w[UNIT + i]
    cross(m, tail(w, UNIT), u)
    for i in range(3):
        turn[i] += u[i]


@inner
def add_centripetal(w, m, factor, which, arm, out):
    """out += ω × (ω × arm) + factor ω × (T ṡ) of body a (0) or b (1), with a sign."""
    omega = tail(m, OMEGA_B if which == 1 else OMEGA_A)
    along = tail(m, ALONG_B if which == 1 else ALONG_A)
    v = tail(w, MATRIX)
    cross(omega, arm, v)
    for i in range(3):
        v[i] += factor * along[i]
    cross(omega, v, v)
    for i in range(3):
        out[i] += v[i] if which == 1 else -v[i]


def contact_curvature(x, rate, c, g):
    """g = n·(a² − a¹) + gap |ṅ|², without the accelerations of the frames; zero for the other rows.

    The workspace behind x is that of :func:`contact` at the same x.
    """
    table = table_of(c)
    w = space(table, x)
    across = table[own.ACROSS] != 0
    if across:
        update_axes(table, w)
        other = (w[LATEST + 3], w[LATEST + 4], w[LATEST + 5])
    else:
        other = (0.0, 0.0, 0.0)
    update_motion(table, x, rate, c, w)
    m = tail(w, TOP)
    a = tail(w, LATEST)
    for i in range(3):
        a[i] = m[SPARE + 3 + i] - m[SPARE + i]
        a[3 + i] = w[ROWS_B + i] - w[FRAME + 9 + i]
    add_centripetal(w, m, 2.0, 0, tail(w, ROWS_A), a)
    add_centripetal(w, m, 2.0, 1, tail(a, 3), a)
    for i in range(3 if across else 5):
        g[i] = 0.0
    g[0] = dot(tail(w, UNIT), a)
    if across:
        g[1] = other[0] * a[0] + other[1] * a[1] + other[2] * a[2]
    else:
        g[0] += w[GAP] * dot(tail(m, TURN), tail(m, TURN))
    return 0


def rolling(x, c, f, df):
    """Rows t₁·u, t₂·u (of curves in a plane: t₁·u) [m/s], and n·Ω [rad/s] without spin; f = 0."""
    table = table_of(c)
    call_evaluator(table[own.SOLVER], SOLVE, table, c, x, x, x, x, x)
    w = space(table, x)
    columns = PARAMETERS + table[SHAPE + own.WIDTH] + table[SHAPE + B_PART + own.WIDTH]
    update_axes(table, w)
    axes = tail(w, LATEST)
    zero = tail(axes, 6)
    slips = table[SHAPE + own.FREEDOMS]
    rows = slips + (1 if table[own.SPINLESS] != 0 else 0)
    for i in range(rows):
        f[i] = 0.0
        row = tail(df, i * columns)
        for k in range(PARAMETERS, columns):
            row[k] = 0.0
        if i < slips:
            put_row(x, w, row, tail(axes, 3 * i), zero)
        else:
            put_row(x, w, row, zero, tail(w, UNIT))
    return 0


def rolling_curvature(x, rate, c, g):
    """t·(d/dt of u with u = 0), ṅ·Ω, without accelerations of the frames."""
    table = table_of(c)
    w = space(table, x)
    update_axes(table, w)
    spare = tail(w, ROWS_A + 9)  # second derivatives of S¹ are read before
    t = tail(w, LATEST)
    axes = (t[0], t[1], t[2], t[3], t[4], t[5])
    update_motion(table, x, rate, c, w)
    m = tail(w, TOP)
    a = tail(w, LATEST)
    for i in range(3):
        a[i] = 0.0
        a[3 + i] = w[ROWS_B + i] - w[FRAME + 9 + i]
        spare[i] = w[ROWS_B + i]
    add_centripetal(w, m, 1.0, 0, spare, a)
    add_centripetal(w, m, 1.0, 1, tail(a, 3), a)
    slips = table[SHAPE + own.FREEDOMS]
    g[0] = axes[0] * a[0] + axes[1] * a[1] + axes[2] * a[2]
    if slips == 2:
        g[1] = axes[3] * a[0] + axes[4] * a[1] + axes[5] * a[2]
    if table[own.SPINLESS] != 0:
        turn = tail(m, TURN)
        g[slips] = 0.0
        for i in range(3):
            g[slips] += turn[i] * (m[OMEGA_B + i] - m[i])
    return 0
