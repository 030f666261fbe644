"""Forces of rigid contacts with Coulomb's friction: the problem on the true cone, dense.

    u = G r + b,   K ∋ r ⊥ u + μ|u_t| n ∈ K*,   K = {|r_t| ≤ μ r_n}

for contacts of three components each (normal, two tangential).  r_n ≥ 0, u_n ≥ 0, r_n u_n = 0; where a contact slips,
r_t = −μ r_n u_t/|u_t|.  G: symmetric, positive semidefinite, row-major; b: velocities (or accelerations) without
forces, restitution included.  [DeSaxce1998]

Sweeps of Gauss–Seidel solve one contact after the other exactly: it opens, sticks, or slips, which has one unknown, the
direction of the friction force.  Then Newton's method on  r_n = max(0, r_n − p u_n),  r_t = the nearest point to
r_t − p u_t in the disc of radius μ r_n  [Alart1991], whose unknowns are the components that are not zero.  ε on the
diagonal of G makes redundant contacts regular: both iterations are proximal [Rockafellar1976], so ε has no effect on
what they converge to.  The error of a contact is g|r − P(r − (u + μ|u_t| n)/g)| with the projection P onto K and
g = tr(G_cc)/3: a velocity.

Reads and writes nothing but its arguments; ``work`` has :func:`work_size` floats.
"""

from math import cos, pi, sin, sqrt

from cardan.kernel.jit import evaluator, inner, jit
from cardan.kernel.memory import call_evaluator, cut, tail
from cardan.kernel.table import Float, Table
from cardan.math._dense import lu_solve

SINGULAR = 1e-10  # of a f h: a smaller determinant of a contact's matrix is that of dependent directions
LOCAL_EPSILON = 1e-9  # of the trace of such a matrix: added to its diagonal
EPSILON = 1e-12  # of the mean diagonal: added to that of Newton's matrix
PIVOT = 1e-30  # of the largest entry: a smaller pivot of Newton's matrix is zero
CLOSE = 1e-14  # of the velocities: a smaller velocity across the friction force is rounding
TURNS = 12  # of Newton's method for the direction of slip
SECTORS = 32  # of directions, where it does not converge
BISECTIONS = 55
FEW, MANY = 4, 20  # sweeps before Newton's method: at first, and after it has failed
STEPS = 10  # of Newton's method between sweeps
LOST = 1e4  # times the least error: steps from there on are left
OPEN, STICKING, SLIPPING = 0.0, 1.0, 2.0


class Cone(Table):
    """What is asked of a solution, and how it ended."""

    tolerance: Float  # of the error, relative to the largest component of b
    most: Float  # sweeps
    error: Float  # largest of a contact [of u]
    scale: Float  # largest component of b
    sweeps: Float  # made
    steps: Float  # of Newton's method


def work_size(contacts):
    """Number of floats of the workspace for a number of contacts."""
    n = 3 * contacts
    return n * n + 6 * n + contacts


@inner
def project(x, y, z, mu):
    """The nearest point of the cone."""
    t = sqrt(y * y + z * z)
    if mu * t <= -x:
        return 0.0, 0.0, 0.0
    if t <= mu * x:
        return x, y, z
    n = (x + mu * t) / (1.0 + mu * mu)
    return n, mu * n * y / t, mu * n * z / t


@inner
def contact_error(r, u, mu, g):
    """g|r − P(r − (u + μ|u_t| n)/g)| of one contact."""
    if not g > 0.0:
        return max(-u[0], 0.0)
    x, y, z = project(r[0] - (u[0] + mu * sqrt(u[1] * u[1] + u[2] * u[2])) / g, r[1] - u[1] / g, r[2] - u[2] / g, mu)
    return g * sqrt((r[0] - x) ** 2 + (r[1] - y) ** 2 + (r[2] - z) ** 2)


@inner
def slip(A, b, mu, c, s):
    """r_n with u_n = 0 if the friction force has the direction (c, s); u_t across it, its derivative, and along it.

    A: the matrix of one contact as (nn, n1, n2, 11, 12, 22).
    """
    across_n = A[0] + mu * (A[1] * c + A[2] * s)
    if not across_n > 0.0:
        return -1.0, 0.0, 0.0, 0.0
    n = -b[0] / across_n
    m1, m2 = A[1] + mu * (A[3] * c + A[4] * s), A[2] + mu * (A[4] * c + A[5] * s)
    u1, u2 = b[1] + n * m1, b[2] + n * m2
    dn = -n * mu * (A[2] * c - A[1] * s) / across_n
    d1, d2 = dn * m1 + n * mu * (A[4] * c - A[3] * s), dn * m2 + n * mu * (A[5] * c - A[4] * s)
    return n, c * u2 - s * u1, c * d2 - s * d1 - s * u2 - c * u1, c * u1 + s * u2


@inner
def search_slip(A, b, mu, out):
    """out ← the solution of least r_n among all directions of slip; False if there is none."""
    least, width = -1.0, 2.0 * pi / SECTORS
    for k in range(SECTORS):
        low, high = k * width, (k + 1) * width
        n_low, f_low, _, along_low = slip(A, b, mu, cos(low), sin(low))
        n_high, f_high, _, along_high = slip(A, b, mu, cos(high), sin(high))
        if n_low <= 0.0 or n_high <= 0.0 or f_low * f_high > 0.0 or (along_low > 0.0 and along_high > 0.0):
            continue
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            _, f, _, _ = slip(A, b, mu, cos(middle), sin(middle))
            if f * f_low > 0.0:
                low = middle
            else:
                high = middle
        c, s = cos(low), sin(low)
        n, _, _, along = slip(A, b, mu, c, s)
        if along <= -CLOSE * b[0] and (least < 0.0 or n < least):
            least = n
            out[0], out[1], out[2] = n, mu * n * c, mu * n * s
    return least >= 0.0


@inner
def follow_slip(A, b, mu, y, z, out):
    """out ← the solution that slips, by Newton's method from the direction (y, z) of friction; False if it fails."""
    t = sqrt(y * y + z * z)
    if not t > 0.0:
        return False
    c, s = y / t, z / t
    for _ in range(TURNS):
        n, f, slope, along = slip(A, b, mu, c, s)
        if n <= 0.0:
            return False
        rounding = CLOSE * (abs(along) + abs(b[1]) + abs(b[2]) - b[0])
        if abs(f) <= rounding and along <= rounding:
            out[0], out[1], out[2] = n, mu * n * c, mu * n * s
            return True
        if slope == 0.0:
            return False
        turn = -min(max(f / slope, -0.5), 0.5)
        co, si = cos(turn), sin(turn)
        c, s = c * co - s * si, s * co + c * si
    return False


@inner
def solve_contact(A, b, mu, r):
    """r ← the force of one contact, u = A r + b; A and b are overwritten.

    Where directions are dependent, the problem with ε more on the diagonal and b − ε r: repeated, a proximal iteration.
    """
    if b[0] >= 0.0 and not (A[0] > 0.0 and r[0] != 0.0 and is_dependent(A, mu)):
        r[0] = r[1] = r[2] = 0.0
        return
    trace = A[0] + A[3] + A[5]
    if not trace > 0.0:
        r[0] = r[1] = r[2] = 0.0
        return
    if mu == 0.0:
        r[1] = r[2] = 0.0
        r[0] = -b[0] / A[0] if A[0] > 0.0 else 0.0
        return
    if is_dependent(A, mu):
        e = LOCAL_EPSILON * trace
        A[0], A[3], A[5] = A[0] + e, A[3] + e, A[5] + e
        b[0], b[1], b[2] = b[0] - e * r[0], b[1] - e * r[1], b[2] - e * r[2]
        if b[0] >= 0.0:
            r[0] = r[1] = r[2] = 0.0
            return
    k11, k12, k22 = A[3] * A[5] - A[4] * A[4], A[4] * A[2] - A[1] * A[5], A[1] * A[4] - A[3] * A[2]
    det = A[0] * k11 + A[1] * k12 + A[2] * k22
    x = y = z = 0.0
    if det > 0.0:
        x = -(k11 * b[0] + k12 * b[1] + k22 * b[2]) / det
        y = -(k12 * b[0] + (A[0] * A[5] - A[2] * A[2]) * b[1] + (A[1] * A[2] - A[0] * A[4]) * b[2]) / det
        z = -(k22 * b[0] + (A[1] * A[2] - A[0] * A[4]) * b[1] + (A[0] * A[3] - A[1] * A[1]) * b[2]) / det
        if x >= 0.0 and y * y + z * z <= (mu * x) ** 2:
            r[0], r[1], r[2] = x, y, z
            return
    if follow_slip(A, b, mu, r[1], r[2], r):
        return
    if follow_slip(A, b, mu, y, z, r) or follow_slip(A, b, mu, -b[1], -b[2], r):
        return
    if search_slip(A, b, mu, r):
        return
    r[0], r[1], r[2] = project(max(x, 0.0), y, z, mu)


@inner
def is_dependent(A, mu):
    """Whether the directions of a contact with friction are dependent."""
    if mu == 0.0:
        return False
    det = A[0] * (A[3] * A[5] - A[4] * A[4]) - A[1] * (A[1] * A[5] - A[4] * A[2]) + A[2] * (A[1] * A[4] - A[3] * A[2])
    t = (A[0] + A[3] + A[5]) / 3.0
    return not (det > SINGULAR * A[0] * A[3] * A[5] and det > 1e-3 * SINGULAR * t * t * t)


@inner
def sweep(count, G, b, mu, r, local):
    """One contact after the other.  local: 9 floats."""
    n = 3 * count
    A, c = local, tail(local, 6)
    for k in range(count):
        i = 3 * k
        own = tail(r, i)
        for j in range(3):
            row = tail(G, (i + j) * n)
            e = b[i + j]
            for l in range(n):
                e += row[l] * r[l]
            c[j] = e - row[i] * own[0] - row[i + 1] * own[1] - row[i + 2] * own[2]
        one, two, three = tail(G, i * n + i), tail(G, (i + 1) * n + i), tail(G, (i + 2) * n + i)
        A[0], A[1], A[2], A[3], A[4], A[5] = one[0], one[1], one[2], two[1], two[2], three[2]
        solve_contact(A, c, mu[k], own)


@inner
def trace_of(n, G, i):
    """Mean diagonal entry of a contact whose first component is i."""
    return (G[i * n + i] + G[(i + 1) * n + i + 1] + G[(i + 2) * n + i + 2]) / 3.0


@inner
def update_error(count, G, b, mu, r, u):
    """u ← G r + b; returns the largest error of a contact, infinite if one is not a number."""
    n = 3 * count
    for i in range(n):
        row = tail(G, i * n)
        e = b[i]
        for l in range(n):
            e += row[l] * r[l]
        u[i] = e
    worst = 0.0
    for k in range(count):
        i = 3 * k
        e = contact_error(tail(r, i), tail(u, i), mu[k], trace_of(n, G, i))
        if not e <= worst:
            worst = e if e == e else float("inf")
    return worst


@inner
def choose(count, G, mu, r, u, state):
    """state ← of each contact: it opens, sticks or slips; forces of those that open become zero."""
    n = 3 * count
    for k in range(count):
        i = 3 * k
        g = trace_of(n, G, i)
        state[k] = STICKING
        if not g > 0.0 or r[i] - u[i] / g <= 0.0:
            state[k] = OPEN
            r[i] = r[i + 1] = r[i + 2] = 0.0
        else:
            y, z = r[i + 1] - u[i + 1] / g, r[i + 2] - u[i + 2] / g
            m = mu[k] * max(r[i], 0.0)
            if mu[k] == 0.0 or y * y + z * z > m * m:
                state[k] = SLIPPING


@inner
def newton(count, G, b, mu, r, u, state, work):
    """r ← r + one step of Newton's method, projected onto the cones; False if it cannot be made.

    work: n² + 3 n floats, n = 3 · count.
    """
    n = 3 * count
    at = tail(work, 0)  # components that are unknown
    right, step, matrix = tail(work, n), tail(work, 2 * n), tail(work, 3 * n)
    size = 0
    mean = 0.0
    choose(count, G, mu, r, u, state)
    for k in range(count):
        if state[k] != OPEN:
            at[size] = 3 * k
            size += 1
            mean += trace_of(n, G, 3 * k)
            if mu[k] > 0.0:
                at[size], at[size + 1] = 3 * k + 1, 3 * k + 2
                size += 2
    if size == 0:
        return True
    epsilon = EPSILON * mean / count
    for i in range(n):
        row = tail(G, i * n)
        e = b[i]
        for l in range(n):
            e += row[l] * r[l]
        u[i] = e
    line = 0
    while line < size:
        i = int(at[line])
        k = i // 3
        fill_normal(n, G, u, i, size, at, line, epsilon, matrix, right)
        line += 1
        if mu[k] > 0.0:
            if state[k] == STICKING:
                fill_normal(n, G, u, i + 1, size, at, line, epsilon, matrix, right)
                fill_normal(n, G, u, i + 2, size, at, line + 1, epsilon, matrix, right)
            else:
                right[line], right[line + 1] = fill_slip(n, G, mu[k], r, u, i, size, at, line, matrix)
            line += 2
    if not lu_solve(size, matrix, right, step, PIVOT):
        return False
    for l in range(size):
        i = int(at[l])
        r[i] -= step[l]
        if not abs(r[i]) < 1e300:
            return False
    for k in range(count):
        i = 3 * k
        if mu[k] == 0.0:
            r[i + 1] = r[i + 2] = 0.0
        r[i], r[i + 1], r[i + 2] = project(r[i], r[i + 1], r[i + 2], mu[k])
    return True


@inner
def fill_normal(n, G, u, i, size, at, line, epsilon, matrix, right):
    """The equation u_i = 0, divided by the mean diagonal entry of its contact."""
    p = 1.0 / trace_of(n, G, i - i % 3)
    row, out = tail(G, i * n), tail(matrix, line * size)
    for l in range(size):
        out[l] = p * row[int(at[l])]
    out[line] += p * epsilon
    right[line] = p * u[i]


@inner
def fill_slip(n, G, mu, r, u, i, size, at, line, matrix):
    """The rows of r_t = μ r_n d, d = y/|y|, y = r_t − p u_t; returns their right sides.  i: first of the contact."""
    p = 1.0 / trace_of(n, G, i)
    y, z = r[i + 1] - p * u[i + 1], r[i + 2] - p * u[i + 2]
    t = sqrt(y * y + z * z)
    d, e = y / t, z / t
    m = mu * max(r[i], 0.0)
    w = min(m / t, 1.0)
    a, c, f = w * (1.0 - d * d), -w * d * e, w * (1.0 - e * e)
    one, two = tail(G, (i + 1) * n), tail(G, (i + 2) * n)
    first, second = tail(matrix, line * size), tail(matrix, (line + 1) * size)
    for l in range(size):
        j = int(at[l])
        first[l] = p * (a * one[j] + c * two[j])
        second[l] = p * (c * one[j] + f * two[j])
    first[line] += 1.0 - a
    first[line + 1] -= c
    second[line] -= c
    second[line + 1] += 1.0 - f
    first[line - 1] -= mu * d
    second[line - 1] -= mu * e
    return r[i + 1] - m * d, r[i + 2] - m * e


def _solve(op, ints, floats, G, b, r, mu, work):
    count = op
    n = 3 * count
    cone = Cone(floats)
    u, trial, state = cut(work, 0, n), cut(work, n, n), cut(work, 2 * n, count)
    rest = tail(work, 2 * n + count)
    scale = 0.0
    for i in range(n):
        scale = max(scale, abs(b[i]))
    cone.scale = scale
    cone.sweeps = cone.steps = 0.0
    bar = cone.tolerance * scale
    error = update_error(count, G, b, mu, r, u)
    while error > bar and cone.sweeps < cone.most:
        for _ in range(FEW if cone.sweeps < 2 * FEW or count == 1 else MANY):
            sweep(count, G, b, mu, r, rest)
            cone.sweeps += 1.0
        error = update_error(count, G, b, mu, r, u)
        if count == 1 and cone.sweeps <= 2 * FEW:
            continue
        for i in range(n):
            trial[i] = r[i]
        for _ in range(STEPS):
            if error <= bar:
                break
            cone.steps += 1.0
            if not newton(count, G, b, mu, trial, u, state, rest):
                break
            found = update_error(count, G, b, mu, trial, u)
            if found < error:
                error = found
                for i in range(n):
                    r[i] = trial[i]
            elif not found < LOST * error:
                break
    cone.error = error
    return 0 if error <= bar else 1


SOLVE = evaluator(_solve)


@jit
def solve(address, count, nothing, matrix, free, friction, forces, cone, work):
    """forces ← r from a start, cone ← how it ended; returns 0 if the error is within the tolerance.

    address: ``SOLVE``.  nothing: an array of integers.  Shapes of m contacts: (3 m · 3 m,), (3 m,), (m,), (3 m,), the
    floats of a :class:`Cone`, and (work_size(m),).
    """
    return call_evaluator(address, count, nothing, cone, matrix, free, forces, friction, work)
