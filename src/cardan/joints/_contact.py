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

from cardan.joints._pair import RATES, SOLVE, other_normal, space
from cardan.joints._vectors import apply, apply_back, cross, dot
from cardan.joints.tables import (
    CROSSED,
    DEGENERATE,
    FAR,
    ON_CURVE,
    OTHER_SIDE,
    PARAMETERS,
    REGULAR,
    TRIMMED,
    PairMotion,
    PairParameter,
    PairShape,
    PairTable,
)
from cardan.kernel.jit import inner
from cardan.kernel.memory import call_evaluator, integers_at, tail

OPPOSITE = 1e-6  # the least 1 + c of which g is computed


@inner
def table_of(c):
    """The table of the pair."""
    return PairTable(integers_at(int(PairParameter(c).address)))


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
    spare = w.matrix
    apply(w.R_WA, h, tail(row, 7))
    for c in range(3):
        row[c] = -row[7 + c]
        spare[c] = w.rows_b[c] - w.p_AB[c]
    cross(w.rows_b, h, tail(spare, 3))
    cross(spare, h, spare)
    for c in range(3):
        spare[c] += couple[c]
        spare[3 + c] += couple[c]
    put_orientation(tail(x, 3), tail(spare, 3), -1.0, tail(row, 3))
    apply_back(w.R_AB, spare, spare)
    put_orientation(tail(x, 10), spare, 1.0, tail(row, 10))


@inner
def update_axes(table, w):
    """LATEST ← two unit tangents t₁, t₂ = n × t₁, then zero, then a normal of b, which has one or not (returned).

    For a point on a curve: two unit vectors across the curve.
    """
    axes = w.latest
    t = tail(w.rows_a, 3)
    f = 1.0 / sqrt(dot(t, t))
    for c in range(3):
        axes[c] = f * t[c]
        axes[6 + c] = 0.0
    if table.form == ON_CURVE:
        m = axes
        sign = 1.0 if m[2] >= 0.0 else -1.0  # [Duff2017]
        a = -1.0 / (sign + m[2])
        b = m[0] * m[1] * a
        w.unit[0] = 1.0 + sign * m[0] * m[0] * a
        w.unit[1] = sign * b
        w.unit[2] = -sign * m[0]
        axes[3] = b
        axes[4] = sign + m[1] * m[1] * a
        axes[5] = -m[1]
        return False
    cross(w.unit, axes, tail(axes, 3))
    return other_normal(table, w, tail(axes, 9))


def contact(x, c, f, df):
    """f = (gap; t₁·r, t₂·r; t₁·n², t₂·n²), r = S² − S¹: the first is the equation, the others vanish with F.

    Where F = 0 has no solution within the shapes, all rows are those at the nearest pair, and so are their derivatives.
    The last two are then multiplied by g = √(2/(1 + c)), c = −n·n²: they become 2 sin ½∠, which vanishes only where the
    normals are opposed.
    For a point on a curve: (e₁·r, e₂·r; t·r).
    """
    table = table_of(c)
    call_evaluator(table.solver, SOLVE, table.as_ints, c, x, x, x, x, x)
    w = space(table, x)
    status = w.status
    columns = PARAMETERS + PairShape(table.shapes).width + PairShape(table.shapes, 1).width
    axes = w.latest
    across = table.form == ON_CURVE
    rows = 3 if across else 5
    for i in range(rows * columns):
        df[i] = 0.0
    for i in range(rows):
        f[i] = 0.0
    regular = status == REGULAR
    if regular and not across:  # the other rows vanish with F
        f[0] = w.gap
        for i in range(3):
            axes[6 + i] = 0.0
        put_row(x, w, df, w.unit, tail(axes, 6))
        return 0
    has_normal = update_axes(table, w)
    for c_ in range(3):
        r = w.rows_b[c_] - w.rows_a[c_]
        f[0] += w.unit[c_] * r
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
        apart = max(1.0 - dot(w.unit, tail(axes, 9)), OPPOSITE)
        half = sqrt(2.0 / apart)
        slope = 0.5 * half / apart
        for k in range(2):
            w.step[k] = f[3 + k] * slope  # steps are computed again when they are needed
            f[3 + k] *= half
    if not has_normal and PairShape(table.shapes, 1).freedoms == 1 and not across:  # a curve on a surface
        t = tail(w.rows_b, 3)
        f[3] = dot(w.unit, t) / sqrt(dot(t, t))
    if status == OTHER_SIDE:
        f[3] = 2.0
    if status == DEGENERATE or status == FAR or status == TRIMMED:
        f[rows - 1] = 1.0 + abs(f[rows - 1])
    if not regular and table.numbers.continuous != 0.0:
        f[0] = nan
    zero = tail(axes, 6)
    put_row(x, w, df, w.unit, zero)
    if across:
        put_row(x, w, tail(df, columns), tail(axes, 3), zero)
        if not regular:
            put_row(x, w, tail(df, 2 * columns), axes, zero)
    elif not regular:
        put_row(x, w, tail(df, columns), axes, zero)
        put_row(x, w, tail(df, 2 * columns), tail(axes, 3), zero)
        if has_normal and status != OTHER_SIDE:
            couple = w.ranks
            for k in range(2):
                cross(tail(axes, 9), tail(axes, 3 * k), couple)
                cross(tail(axes, 9), w.unit, tail(couple, 3))
                for i in range(3):
                    couple[i] = half * couple[i] + w.step[k] * couple[3 + i]
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


@inner
def update_motion(table, x, rate, c, w):
    """PairMotion ← ω of both bodies, T ṡ of both shapes, ṅ; all in the axes of a, ṅ and ω relative to the world."""
    m = PairMotion(w.ranks)
    angular_velocity(tail(x, 3), tail(rate, 3), m.omega_a)
    angular_velocity(tail(x, 10), tail(rate, 10), m.omega_b)
    apply(w.R_AB, m.omega_b, m.omega_b)
    u = w.latest
    spare = m.bent_a
    product = m.bent_b
    for k in range(3):
        spare[k] = rate[7 + k] - rate[k]
    apply_back(w.R_WA, spare, u)
    for k in range(3):
        spare[k] = w.rows_b[k] - w.p_AB[k]
    cross(m.omega_b, spare, spare)
    cross(m.omega_a, w.rows_b, product)
    for k in range(3):
        u[k] += spare[k] - product[k]
        u[3 + k] = m.omega_b[k] - m.omega_a[k]
    call_evaluator(table.solver, RATES, table.as_ints, c, x, x, x, x, x)
    at = 0
    for k in range(2):
        freedoms = PairShape(table.shapes, k).freedoms
        rows = w.rows_b if k == 1 else w.rows_a
        along = m.along_b if k == 1 else m.along_a
        bent = m.bent_b if k == 1 else m.bent_a
        for i in range(3):
            along[i] = 0.0
            bent[i] = 0.0
        for p in range(freedoms):
            s = w.step[at + p] * w.per_length[at + p]
            for i in range(3):
                along[i] += s * rows[3 + 3 * p + i]
                for o in range(freedoms):
                    bent[i] += s * w.step[at + o] * w.per_length[at + o] * rows[3 * (1 + freedoms + p + o) + i]
        at += freedoms
    turn = m.turn
    numbers = table.numbers
    N = w.normal
    f = numbers.side / sqrt(dot(N, N))
    for i in range(3):
        turn[i] = 0.0
    if table.form == CROSSED:  # Ṅ = Ṫ¹ × T² + T¹ × (Ṫ² + Ω × T²)
        a = w.matrix
        b = tail(w.matrix, 3)
        for i in range(3):
            a[i] = w.step[0] * w.per_length[0] * w.rows_a[6 + i]
            b[i] = m.omega_b[i] - m.omega_a[i]
        cross(b, tail(w.rows_b, 3), b)
        for i in range(3):
            b[i] += w.step[1] * w.per_length[1] * w.rows_b[6 + i]
        cross(a, tail(w.rows_b, 3), a)
        cross(tail(w.rows_a, 3), b, b)
        for i in range(3):
            turn[i] = f * (a[i] + b[i])
    else:
        for p in range(PairShape(table.shapes).freedoms):
            s = w.step[p] * w.per_length[p]
            for i in range(3):
                turn[i] += s * f * N[3 + 3 * p + i]
    d = dot(turn, w.unit)
    for i in range(3):
        turn[i] -= d * w.unit[i]
    cross(m.omega_a, w.unit, u)
    for i in range(3):
        turn[i] += u[i]


@inner
def add_centripetal(w, m, factor, which, arm, out):
    """out += ω × (ω × arm) + factor ω × (T ṡ) of body a (0) or b (1), with a sign."""
    omega = m.omega_b if which == 1 else m.omega_a
    along = m.along_b if which == 1 else m.along_a
    v = w.matrix
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
    across = table.form == ON_CURVE
    if across:
        update_axes(table, w)
        other = (w.latest[3], w.latest[4], w.latest[5])
    else:
        other = (0.0, 0.0, 0.0)
    update_motion(table, x, rate, c, w)
    m = PairMotion(w.ranks)
    a = w.latest
    for i in range(3):
        a[i] = m.bent_b[i] - m.bent_a[i]
        a[3 + i] = w.rows_b[i] - w.p_AB[i]
    add_centripetal(w, m, 2.0, 0, w.rows_a, a)
    add_centripetal(w, m, 2.0, 1, tail(a, 3), a)
    for i in range(3 if across else 5):
        g[i] = 0.0
    g[0] = dot(w.unit, a)
    if across:
        g[1] = other[0] * a[0] + other[1] * a[1] + other[2] * a[2]
    else:
        g[0] += w.gap * dot(m.turn, m.turn)
    return 0


def rolling(x, c, f, df):
    """Rows t₁·u, t₂·u (of curves in a common plane: t₁·u) [m/s], and n·Ω [rad/s] without spin; f = 0."""
    table = table_of(c)
    call_evaluator(table.solver, SOLVE, table.as_ints, c, x, x, x, x, x)
    w = space(table, x)
    columns = PARAMETERS + PairShape(table.shapes).width + PairShape(table.shapes, 1).width
    update_axes(table, w)
    axes = w.latest
    zero = tail(axes, 6)
    slips = 2 if table.form == CROSSED else PairShape(table.shapes).freedoms
    rows = slips + (1 if table.spinless != 0 else 0)
    for i in range(rows):
        f[i] = 0.0
        row = tail(df, i * columns)
        for k in range(PARAMETERS, columns):
            row[k] = 0.0
        if i < slips:
            put_row(x, w, row, tail(axes, 3 * i), zero)
        else:
            put_row(x, w, row, zero, w.unit)
    return 0


def rolling_curvature(x, rate, c, g):
    """t·(d/dt of u with u = 0), ṅ·Ω, without accelerations of the frames."""
    table = table_of(c)
    w = space(table, x)
    update_axes(table, w)
    spare = tail(w.rows_a, 9)  # second derivatives of S¹ are read before
    t = w.latest
    axes = (t[0], t[1], t[2], t[3], t[4], t[5])
    update_motion(table, x, rate, c, w)
    m = PairMotion(w.ranks)
    a = w.latest
    for i in range(3):
        a[i] = 0.0
        a[3 + i] = w.rows_b[i] - w.p_AB[i]
        spare[i] = w.rows_b[i]
    add_centripetal(w, m, 1.0, 0, spare, a)
    add_centripetal(w, m, 1.0, 1, tail(a, 3), a)
    slips = 2 if table.form == CROSSED else PairShape(table.shapes).freedoms
    g[0] = axes[0] * a[0] + axes[1] * a[1] + axes[2] * a[2]
    if slips == 2:
        g[1] = axes[3] * a[0] + axes[4] * a[1] + axes[5] * a[2]
    if table.spinless != 0:
        turn = m.turn
        g[slips] = 0.0
        for i in range(3):
            g[slips] += turn[i] * (m.omega_b[i] - m.omega_a[i])
    return 0
