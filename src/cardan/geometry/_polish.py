"""A local minimum of f = ½ r·r with r = S¹(x₁) − (R S²(x₂) + t), by Newton's method within bounds.

The step is projected; the Hessian H = V Vᵀ + r·∂²r is shifted until it is positive definite.  Reads the patches of both
shapes; writes x, and rows, r, g and H at x into the workspace (:class:`.tables.SearchWork`).  Conditions are joined by
& and |: ``and`` and ``or`` are branches, which take several times as long to compile.
"""

from math import inf, sqrt

from cardan.geometry._nodes import dot, norm
from cardan.geometry.tables import Ball, Limit
from cardan.kernel.jit import inner
from cardan.kernel.memory import call_evaluator, tail

NEWTON = 40  # iterations of one polish
STEP_TOLERANCE = 1e-12  # |g|/(|S_u| D): the angle between r and the normal
RESIDUE = 3e-16  # of the coordinates: |g|/|S_u| that is rounding of r; it matters at small gaps
# Of f: an increase that is rounding, if a step of Newton's method is nearly over.  At small gaps rounding of r is more:
# of both values of f it is at the most 4 |r| RESIDUE of the coordinates.
ROUNDING = 1e-14
NEAR = 1e-8  # of f: the predicted decrease of such a step
TINY = 1e-15  # of the size of the step: nothing is left to improve
# Of |S_u|²: the first shift of a Hessian that is not positive definite.  Where shapes cross, H is singular as r → 0; a
# shift that vanishes with r keeps the convergence superlinear ([Yamashita2001]).
SHIFT = 3e-2
DAMP, FIRST_DAMPING = 8.0, 3e-2  # factor and first value of the damping after a step that does not reduce f
SAME = 1e-9  # of the distance: two minima that are nearer to each other are one
SINGULAR = 1e-12  # pivot of the Hessian, relative to |S_u|²


@inner
def evaluate(patch, order, q, out, scratch):
    return call_evaluator(patch.evaluator, order, patch.ints, patch.floats, q, q, out, out, scratch)


@inner
def open_pose(pose, T):
    """T ← R by rows, then t, of a pose; its quaternion need not have the length one."""
    w, x, y, z = pose[3], pose[4], pose[5], pose[6]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    T[0], T[1], T[2] = 1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)
    T[3], T[4], T[5] = s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)
    T[6], T[7], T[8] = s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)
    T[9], T[10], T[11] = pose[0], pose[1], pose[2]


@inner
def difference(patches, x, T, work):
    """Rows of both shapes in the axes of a; normal ← r = S¹ − S²; returns ½ r·r."""
    for k in range(2):
        patch = patches[k]
        S = work.rows_b if k == 1 else work.rows_a
        evaluate(patch, 2, tail(x, 2 * k), S, work.scratch)
        if k == 1:
            freedoms = patch.freedoms
            for row in range((freedoms + 1) * (freedoms + 2) // 2):
                a, b, c = S[3 * row], S[3 * row + 1], S[3 * row + 2]
                for i in range(3):
                    S[3 * row + i] = T[3 * i] * a + T[3 * i + 1] * b + T[3 * i + 2] * c
            for i in range(3):
                S[i] += T[9 + i]
    r = work.normal
    for c in range(3):
        r[c] = work.rows_a[c] - work.rows_b[c]
    return 0.5 * (r[0] * r[0] + r[1] * r[1] + r[2] * r[2])


@inner
def quadratic(patches, limits, x, work):
    """g, H and fixed parameters of f at the evaluated point; returns the largest |g_i|/|V_i| of the free parameters."""
    r = work.normal
    v = work.v
    g = work.g
    h = work.h
    fixed = work.fixed
    for k in range(2):
        S = work.rows_b if k == 1 else work.rows_a
        sign = 1.0 - 2.0 * k
        freedoms = patches[k].freedoms
        for p in range(2):
            for c in range(3):
                v[3 * (2 * k + p) + c] = sign * S[3 + 3 * p + c] if p < freedoms else 0.0
            for s in range(p + 1):
                value = 0.0
                if p < freedoms:
                    value = sign * dot(tail(S, 3 * (1 + freedoms + p + s)), r)
                h[4 * (2 * k + p) + 2 * k + s] = value
    h[8] = h[9] = h[12] = h[13] = 0.0
    rest = 0.0
    for i in range(4):
        a = tail(v, 3 * i)
        g[i] = dot(a, r)
        for j in range(i + 1):
            h[4 * i + j] += dot(a, tail(v, 3 * j))
            h[4 * j + i] = h[4 * i + j]
        limit = Limit(limits[i >> 1], i & 1)
        bounded = limit.period == 0.0
        active = bounded & (((x[i] <= limit.lower) & (g[i] > 0.0)) | ((x[i] >= limit.upper) & (g[i] < 0.0)))
        absent = (i & 1) >= patches[i >> 1].freedoms
        fixed[i] = 1.0 if active | absent else 0.0
        length = norm(a)
        if not active and length > 0.0:
            rest = max(rest, abs(g[i]) / length)
    return rest


@inner
def factor(h, fixed, v, shift, K):
    """K ← Cholesky factor of H + shift diag|V_i|², with rows of fixed parameters those of diag|V_i|²."""
    for i in range(4):
        size = dot(tail(v, 3 * i), tail(v, 3 * i))
        for j in range(i + 1):
            s = h[4 * i + j]
            if i == j:
                s += shift * size
            if fixed[i] != 0.0 or fixed[j] != 0.0:
                s = 0.0 if i != j else size if size > 0.0 else 1.0
            for k in range(j):
                s -= K[4 * i + k] * K[4 * j + k]
            if i == j:
                if not s > SINGULAR * size:
                    return False
                K[4 * i + i] = sqrt(s)
            else:
                K[4 * i + j] = s / K[4 * j + j]
    return True


@inner
def is_known(balls, count, patches, reach, near, x):
    """Whether x is near the minimum of a ball: within ``reach`` of its radius, or ``near`` [m].  patches: numbers."""
    for n in range(count):
        ball = Ball(balls, n)
        if ball.patches[0] == patches[0] and ball.patches[1] == patches[1]:
            apart = 0.0
            for k in range(4):
                apart = max(apart, abs(ball.x[k] - x[k]) * ball.sigma[k])
            if apart <= max(reach * ball.rho, near):
                return True
    return False


@inner
def polish(patches, limits, x, T, known_balls, numbers, reaches, work):
    """Minimise f from x within the limits of the patches; x ← a local minimum; returns its distance.

    known_balls: balls, and their number.  reaches: reach, near.  It ends early within ``reach`` of the radius of a ball
    that is known, or ``near`` its minimum [m].
    y ← the number of iterations, the largest |g_i|/|V_i| of a free parameter that is left, and 1 if it ended early.
    """
    y = work.y
    g = work.g
    v = work.v
    fixed = work.fixed
    K = work.factor
    dx = work.dx
    for i in range(4):
        y[i] = x[i]
    best = rest = predicted = inf
    damping = size = noise = 0.0
    used = 0
    last = known = False
    while True:
        used += 1
        f = difference(patches, y, T, work)
        if last | (f < best) | ((f <= best + noise) & (predicted <= NEAR * best)):
            best = f
            damping *= 0.1
            for i in range(4):
                x[i] = y[i]
            rest = quadratic(patches, limits, x, work)
            size = norm(work.rows_a) + norm(work.rows_b)
            noise = max(ROUNDING * f, 4.0 * RESIDUE * size * sqrt(2.0 * f))
            if last | (rest <= max(STEP_TOLERANCE * sqrt(2.0 * f), RESIDUE * size)):
                break
            near = max(reaches[1], SAME * sqrt(2.0 * f))
            known = is_known(known_balls[0], known_balls[1], numbers, reaches[0], near, x)
            if known:
                break
        elif (damping > 1e8) | (predicted <= ROUNDING * best) | (f != f):
            last = True
        else:
            damping = max(DAMP * damping, FIRST_DAMPING)
        if not last:
            shift = damping
            while not factor(work.h, fixed, v, shift, K):
                shift = max(4.0 * shift, min(SHIFT, sqrt(2.0 * best) / size))
                if shift > 1e12:
                    break
            for i in range(4):
                s = -g[i] if fixed[i] == 0.0 else 0.0
                for k in range(i):
                    s -= K[4 * i + k] * dx[k]
                dx[i] = s / K[4 * i + i]
            predicted = moved = 0.0
            for j in range(4):
                i = 3 - j
                s = dx[i]
                for k in range(i + 1, 4):
                    s -= K[4 * k + i] * dx[k]
                dx[i] = s / K[4 * i + i]
                limit = Limit(limits[i >> 1], i & 1)
                to = x[i] + dx[i]
                if limit.period == 0.0:
                    to = min(max(to, limit.lower), limit.upper)
                y[i] = to
                s = abs(to - x[i])
                predicted += abs(g[i]) * s
                moved = max(moved, s * norm(tail(v, 3 * i)))
            last = (moved <= TINY * size) | (used >= NEWTON)
        if last:  # rows, g and H once more at the best point
            for i in range(4):
                y[i] = x[i]
    y[0], y[1], y[2] = used, rest, 1.0 if known else 0.0
    return sqrt(2.0 * best)
