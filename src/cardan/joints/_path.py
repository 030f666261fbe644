"""Kernels of a path: a frame whose origin is on a curve, with axes that follow it.

E(s) is the moving frame of the curve, x along its tangent, given by quaternions e(s), piecewise polynomials of degree
DEGREE (:mod:`cardan.joints.paths`).  With the quaternion q of b relative to E (E = e* ⊗ a* ⊗ b) and the tangent T = S',

    f = (e₁·r, e₂·r; 2 σ q_v; t·r),   r = S² − S¹,   σ = sign of q₀,
    q̇ = ½ w ⊗ q,   w = EᵀΩ − k ṡ,   (T·T − r·S'') ṡ = T·u,

where k is the rate of E by s in its own axes, and u, Ω are the velocities of b relative to a.  2 |q_v| = 2 sin ½∠
vanishes only where the axes are equal.  The last row vanishes with F, as for a point on a curve.

x and c are those of :mod:`cardan.joints._contact`.  Reads and writes the workspace behind x.
"""

from math import cos, floor, sin, sqrt

from cardan.joints._contact import add_centripetal, put_row, table_of, update_axes, update_motion
from cardan.joints._pair import SOLVE, space
from cardan.joints._vectors import apply_back, cross, dot
from cardan.joints.tables import DEGREE, EDGE, PARAMETERS, REGULAR, PairMotion, PairShape
from cardan.kernel.jit import inner
from cardan.kernel.memory import call_evaluator, tail

ROWS = 6


@inner
def product(p, q, out):
    """out ← p ⊗ q."""
    a = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3]
    b = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2]
    c = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1]
    d = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0]
    out[0] = a
    out[1] = b
    out[2] = c
    out[3] = d


@inner
def rotate(p, v, out):
    """out ← A(p) v, with |p| = 1."""
    x = p[2] * v[2] - p[3] * v[1] + p[0] * v[0]
    y = p[3] * v[0] - p[1] * v[2] + p[0] * v[1]
    z = p[1] * v[1] - p[2] * v[0] + p[0] * v[2]
    a = v[0] + 2.0 * (p[2] * z - p[3] * y)
    b = v[1] + 2.0 * (p[3] * x - p[1] * z)
    c = v[2] + 2.0 * (p[1] * y - p[2] * x)
    out[0] = a
    out[1] = b
    out[2] = c


@inner
def turn_about_x(v, c, s):
    """v ← v in axes that are turned about x by an angle with this cosine and sine."""
    y = c * v[1] + s * v[2]
    v[2] = c * v[2] - s * v[1]
    v[1] = y


@inner
def update_frame(table, x, w):
    """e, turning, bending ← e, k, k' at the parameter in x; relative ← q of b in the moving frame, σ|q| = 1."""
    numbers = table.path
    s = x[PARAMETERS]
    turns = 0.0
    breaks = numbers.breaks
    if numbers.period > 0.0:
        turns = floor((s - breaks[0]) / numbers.period)
        s -= turns * numbers.period
    low = 0
    high = int(numbers.spans)
    while high - low > 1:
        middle = (low + high) // 2
        if s < breaks[middle]:
            high = middle
        else:
            low = middle
    at = tail(breaks, int(numbers.spans) + 1 + 4 * (DEGREE + 1) * low)
    half = 0.5 * (breaks[low + 1] - breaks[low])
    z = (s - breaks[low]) / half - 1.0
    e = w.e
    first = w.first
    second = w.second
    square = 0.0
    inner_product = 0.0
    for i in range(4):
        value = 0.0
        slope = 0.0
        bend = 0.0
        for k in range(DEGREE + 1):
            bend = bend * z + 2.0 * slope
            slope = slope * z + value
            value = value * z + at[4 * k + i]
        e[i] = value
        first[i] = slope / half
        second[i] = bend / (half * half)
        square += value * value
        inner_product += value * first[i]
    k = w.turning
    b = w.bending
    f = 2.0 / square
    for i in range(3):
        j = 1 + (i + 1) % 3
        o = 1 + (i + 2) % 3
        k[i] = f * (e[0] * first[1 + i] - first[0] * e[1 + i] - e[j] * first[o] + e[o] * first[j])
        b[i] = f * (e[0] * second[1 + i] - second[0] * e[1 + i] - e[j] * second[o] + e[o] * second[j])
        b[i] -= f * inner_product * k[i]
    f = 1.0 / sqrt(square)
    for i in range(4):
        e[i] *= f
    if turns != 0.0 and numbers.twist != 0.0:
        angle = turns * numbers.twist
        first[0] = cos(0.5 * angle)
        first[1] = sin(0.5 * angle)
        first[2] = 0.0
        first[3] = 0.0
        product(e, first, e)
        turn_about_x(k, cos(angle), sin(angle))
        turn_about_x(b, cos(angle), sin(angle))
    q = w.relative
    first[0] = x[3]
    second[0] = e[0]
    for i in range(1, 4):
        first[i] = -x[3 + i]
        second[i] = -e[i]
    product(first, tail(x, 10), q)
    product(second, q, q)
    f = 1.0 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if q[0] < 0.0:
        f = -f
    for i in range(4):
        q[i] *= f


@inner
def stretch(w):
    """T·T + (S¹ − S²)·S'': the derivative of F by s."""
    total = dot(tail(w.rows_a, 3), tail(w.rows_a, 3))
    for c in range(3):
        total += (w.rows_a[c] - w.rows_b[c]) * w.rows_a[6 + c]
    return total


def path(x, c, f, df):
    """f = (e₁·r, e₂·r; 2 σ q_v; t·r) and its derivatives."""
    table = table_of(c)
    call_evaluator(table.solver, SOLVE, table.as_ints, c, x, x, x, x, x)
    w = space(table, x)
    columns = PARAMETERS + PairShape(table.shapes).width + PairShape(table.shapes, 1).width
    update_axes(table, w)
    update_frame(table, x, w)
    axes = w.latest
    zero = tail(axes, 6)
    q = w.relative
    for i in range(ROWS * columns):
        df[i] = 0.0
    f[0] = 0.0
    f[1] = 0.0
    f[5] = 0.0
    for k in range(3):
        r = w.rows_b[k] - w.rows_a[k]
        f[0] += w.unit[k] * r
        f[1] += axes[3 + k] * r
        f[5] += axes[k] * r
        f[2 + k] = 2.0 * q[1 + k]
    put_row(x, w, df, w.unit, zero)
    put_row(x, w, tail(df, columns), tail(axes, 3), zero)
    if w.status != REGULAR:
        put_row(x, w, tail(df, 5 * columns), axes, zero)
        if w.status != EDGE:
            f[5] = 1.0 + abs(f[5])
    h = w.first
    couple = w.second
    per_length = 1.0 / stretch(w)
    for i in range(3):
        j = (i + 1) % 3
        o = (i + 2) % 3
        couple[i] = q[0]  # row i of q₀ − [q_v]×
        couple[j] = q[1 + o]
        couple[o] = -q[1 + j]
        share = -dot(couple, w.turning) * per_length
        for k in range(3):
            h[k] = share * w.rows_a[3 + k]
        rotate(w.e, couple, couple)
        put_row(x, w, tail(df, (2 + i) * columns), h, couple)
    return 0


def path_curvature(x, rate, c, g):
    """d²f/dt² without the accelerations of the frames, at r = 0 for ṡ and s̈; zero for the last row."""
    table = table_of(c)
    w = space(table, x)
    update_axes(table, w)
    t = w.latest
    across = (t[3], t[4], t[5])
    update_frame(table, x, w)
    update_motion(table, x, rate, c, w)
    v = PairMotion(w.ranks)
    a = w.latest
    for i in range(3):
        a[i] = v.bent_b[i] - v.bent_a[i]
        a[3 + i] = w.rows_b[i] - w.p_AB[i]
    add_centripetal(w, v, 2.0, 0, w.rows_a, a)
    add_centripetal(w, v, 2.0, 1, tail(a, 3), a)
    g[0] = dot(w.unit, a)
    g[1] = across[0] * a[0] + across[1] * a[1] + across[2] * a[2]
    g[5] = 0.0
    u = w.latest
    spare = tail(w.latest, 3)
    for i in range(3):
        spare[i] = rate[7 + i] - rate[i]
    apply_back(w.R_WA, spare, u)
    cross(v.omega_a, w.rows_b, spare)  # ω_a × p
    for i in range(3):
        u[i] -= spare[i]
        spare[i] += 2.0 * u[i]
    cross(v.omega_a, spare, spare)  # −p̈
    speed = w.step[0] * w.per_length[0]
    T = tail(w.rows_a, 3)
    second = tail(w.rows_a, 6)
    gain = (2.0 * speed * dot(u, second) - dot(spare, T) - 3.0 * speed * speed * dot(T, second)) / stretch(w)
    omega = tail(w.latest, 6)
    bent = tail(w.latest, 9)
    for i in range(3):
        omega[i] = v.omega_b[i] - v.omega_a[i]
    cross(v.omega_b, v.omega_a, bent)  # Ω̇ = −ω_a × ω_b
    q = w.relative
    e = w.first
    e[0] = w.e[0]
    for i in range(1, 4):
        e[i] = -w.e[i]
    rotate(e, omega, omega)
    rotate(e, bent, bent)
    k = w.turning
    cross(omega, k, u)  # −k × (EᵀΩ)
    for i in range(3):
        bent[i] += speed * u[i] - speed * speed * w.bending[i] - gain * k[i]
        omega[i] -= speed * k[i]
    qv = tail(q, 1)
    cross(omega, qv, u)
    fall = -0.5 * dot(omega, qv)
    for i in range(3):
        u[i] = 0.5 * (q[0] * omega[i] + u[i])
    cross(omega, u, u)
    cross(bent, qv, spare)
    for i in range(3):
        g[2 + i] = q[0] * bent[i] + spare[i] + fall * omega[i] + u[i]
    return 0
