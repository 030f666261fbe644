"""Kernels of contacts: the rows of a contact and of rolling, and their γ.

Shapes S¹(s¹) on body a and S²(s²) on body b, all in the axes of the frame of a:

    r = S¹ − S²,   F = (r·T¹ᵢ, N·T²ⱼ) = 0,   gap = n·(S² − S¹),   n = ± N/|N|,

with the tangents Tᵢ = ∂S/∂sᵢ and the normal N of the first shape: T¹₁ × T¹₂ of a surface, (y', −x', 0) of a curve.
At a solution r is along n, so the derivative of the gap by s vanishes: its rate is n·u, with the velocity u of the
point of b relative to a, and  d²gap/dt² = n·(a² − a¹) + gap |ṅ|²,  where a is the acceleration of S with ṡ from
M ṡ = −∂F/∂t,  M = ∂F/∂s.  These equations do not divide by the gap ([Montana1988] for zero gap).  Contact coordinates
are solved for by a kernel that is called by its address (:mod:`cardan.joints._pair_solver`).

x of a contact: origin and orientation of the frame of a, the same of b, contact coordinates; then a workspace, which
:func:`contact` fills and its curvature reads.  c: address of the table of the pair.
"""

from math import nan, sqrt

from cardan.joints import abi as own
from cardan.joints._pair import RATES, SOLVE, other_normal, space
from cardan.joints._vectors import apply, apply_back, cross, dot
from cardan.joints.abi import (
    B_PART,
    CROSSED,
    DEGENERATE,
    FAR,
    FRAME,
    GAP,
    LATEST,
    MATRIX,
    NORMAL,
    ON_CURVE,
    OTHER_SIDE,
    PARAMETERS,
    REGULAR,
    ROWS_A,
    ROWS_B,
    SHAPE,
    STATUS,
    STEP,
    TOP,
    TRIMMED,
    UNIT,
)
from cardan.kernel.jit import inner
from cardan.kernel.memory import call_evaluator, floats_at, integers_at, tail

OPPOSITE = 1e-6  # the least 1 + c of which g is computed


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
    if table[own.FORM] == ON_CURVE:
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
    The last two are then multiplied by g = √(2/(1 + c)), c = −n·n²: they become 2 sin ½∠, which vanishes only where the
    normals are opposed.
    For a point on a curve: (e₁·r, e₂·r; t·r).
    """
    table = table_of(c)
    call_evaluator(table[own.SOLVER], SOLVE, table, c, x, x, x, x, x)
    w = space(table, x)
    status = w[STATUS]
    columns = PARAMETERS + table[SHAPE + own.WIDTH] + table[SHAPE + B_PART + own.WIDTH]
    axes = tail(w, LATEST)
    across = table[own.FORM] == ON_CURVE
    rows = 3 if across else 5
    for i in range(rows * columns):
        df[i] = 0.0
    for i in range(rows):
        f[i] = 0.0
    regular = status == REGULAR
    if regular and not across:  # the other rows vanish with F
        f[0] = w[GAP]
        for i in range(3):
            axes[6 + i] = 0.0
        put_row(x, w, df, tail(w, UNIT), tail(axes, 6))
        return 0
    has_normal = update_axes(table, w)
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
    half = 1.0
    slope = 0.0
    if has_normal and not regular:
        apart = max(1.0 - dot(tail(w, UNIT), tail(axes, 9)), OPPOSITE)
        half = sqrt(2.0 / apart)
        slope = 0.5 * half / apart
        for k in range(2):
            w[STEP + k] = f[3 + k] * slope  # steps are computed again when they are needed
            f[3 + k] *= half
    if not has_normal and table[SHAPE + B_PART + own.FREEDOMS] == 1 and not across:  # a curve on a surface
        t = tail(w, ROWS_B + 3)
        f[3] = dot(tail(w, UNIT), t) / sqrt(dot(t, t))
    if status == OTHER_SIDE:
        f[3] = 2.0
    if status == DEGENERATE or status == FAR or status == TRIMMED:
        f[rows - 1] = 1.0 + abs(f[rows - 1])
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
                cross(tail(axes, 9), tail(w, UNIT), tail(couple, 3))
                for i in range(3):
                    couple[i] = half * couple[i] + w[STEP + k] * couple[3 + i]
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
    if table[own.FORM] == CROSSED:  # Ṅ = Ṫ¹ × T² + T¹ × (Ṫ² + Ω × T²)
        a = tail(w, MATRIX)
        b = tail(w, MATRIX + 3)
        for i in range(3):
            a[i] = w[STEP] * w[STEP + 4] * w[ROWS_A + 6 + i]
            b[i] = m[OMEGA_B + i] - m[i]
        cross(b, tail(w, ROWS_B + 3), b)
        for i in range(3):
            b[i] += w[STEP + 1] * w[STEP + 5] * w[ROWS_B + 6 + i]
        cross(a, tail(w, ROWS_B + 3), a)
        cross(tail(w, ROWS_A + 3), b, b)
        for i in range(3):
            turn[i] = f * (a[i] + b[i])
    else:
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
    across = table[own.FORM] == ON_CURVE
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
    """Rows t₁·u, t₂·u (of curves in a common plane: t₁·u) [m/s], and n·Ω [rad/s] without spin; f = 0."""
    table = table_of(c)
    call_evaluator(table[own.SOLVER], SOLVE, table, c, x, x, x, x, x)
    w = space(table, x)
    columns = PARAMETERS + table[SHAPE + own.WIDTH] + table[SHAPE + B_PART + own.WIDTH]
    update_axes(table, w)
    axes = tail(w, LATEST)
    zero = tail(axes, 6)
    slips = 2 if table[own.FORM] == CROSSED else table[SHAPE + own.FREEDOMS]
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
    slips = 2 if table[own.FORM] == CROSSED else table[SHAPE + own.FREEDOMS]
    g[0] = axes[0] * a[0] + axes[1] * a[1] + axes[2] * a[2]
    if slips == 2:
        g[1] = axes[3] * a[0] + axes[4] * a[1] + axes[5] * a[2]
    if table[own.SPINLESS] != 0:
        turn = tail(m, TURN)
        g[slips] = 0.0
        for i in range(3):
            g[slips] += turn[i] * (m[OMEGA_B + i] - m[i])
    return 0
