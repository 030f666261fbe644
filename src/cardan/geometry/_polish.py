"""A local minimum of f = ½ r·r with r = S¹(x₁) − (R S²(x₂) + t), by Newton's method within bounds.

The step is projected; the Hessian H = V Vᵀ + r·∂²r is shifted until it is positive definite.  Reads the patches of both
shapes; writes x, and rows, r, g and H at x into the workspace (``_workspace.py``).
"""

from math import inf, sqrt

from cardan._jit import call_evaluator, cut, floats_at, inner, integers_at, tail
from cardan.geometry import abi
from cardan.geometry._nodes import dot, norm
from cardan.geometry._workspace import DX, FIXED, NORMAL, ROWS_A, ROWS_B, SCRATCH, G, H, L, V, Y

NEWTON = 40  # iterations of one polish
STEP_TOLERANCE = 1e-12  # |g|/(|S_u| D): the angle between r and the normal
RESIDUE = 3e-16  # of the coordinates: |g|/|S_u| that is rounding of r; it matters at small gaps
ROUNDING = 1e-14  # of f: an increase that is rounding, if a step of Newton's method is nearly over
NEAR = 1e-8  # of f: the predicted decrease of such a step
TINY = 1e-15  # of the size of the step: nothing is left to improve
# Of |S_u|²: the first shift of a Hessian that is not positive definite.  Where shapes cross, H is singular as r → 0; a
# shift that vanishes with r keeps the convergence superlinear ([Yamashita2001]).
SHIFT = 3e-2
SINGULAR = 1e-12  # pivot of the Hessian, relative to |S_u|²


@inner
def rows_of(freedoms):
    return (freedoms + 1) * (freedoms + 2) // 2


@inner
def evaluate(patch, order, q, out, scratch):
    floats = floats_at(patch[abi.P_FLOATS])
    return call_evaluator(
        patch[abi.P_EVALUATOR], order, integers_at(patch[abi.P_INTS]), floats, q, q, out, out, scratch
    )


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
def difference(job, patches, x, T, work):
    """Rows of both shapes in the axes of a; r ← S¹ − S² in row 0 of NORMAL; returns ½ r·r."""
    for k in range(2):
        patch = patches[k]
        S = tail(work, ROWS_A + (ROWS_B - ROWS_A) * k)
        evaluate(patch, 2, tail(x, 2 * k), S, tail(work, SCRATCH))
        if k == 1:
            for row in range(rows_of(patch[abi.P_FREEDOMS])):
                a, b, c = S[3 * row], S[3 * row + 1], S[3 * row + 2]
                for i in range(3):
                    S[3 * row + i] = T[3 * i] * a + T[3 * i + 1] * b + T[3 * i + 2] * c
            for i in range(3):
                S[i] += T[9 + i]
    r = tail(work, NORMAL)
    for c in range(3):
        r[c] = work[ROWS_A + c] - work[ROWS_B + c]
    return 0.5 * (r[0] * r[0] + r[1] * r[1] + r[2] * r[2])


@inner
def quadratic(patches, limits, x, work):
    """g, H and FIXED of f at the evaluated point; returns the largest |g_i|/|V_i| of the free parameters."""
    r = cut(work, NORMAL, 3)
    v = cut(work, V, 12)
    g = cut(work, G, 4)
    h = cut(work, H, 16)
    fixed = cut(work, FIXED, 4)
    for k in range(2):
        S = tail(work, ROWS_A + (ROWS_B - ROWS_A) * k)
        sign = 1.0 - 2.0 * k
        freedoms = patches[k][abi.P_FREEDOMS]
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
        limit = tail(limits[i >> 1], 3 * (i & 1))
        bounded = limit[2] == 0.0
        active = bounded and ((x[i] <= limit[0] and g[i] > 0.0) or (x[i] >= limit[1] and g[i] < 0.0))
        absent = (i & 1) >= patches[i >> 1][abi.P_FREEDOMS]
        fixed[i] = 1.0 if active or absent else 0.0
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
def polish(job, patches, limits, x, T, work):
    """Minimise f from x within the limits of the patches; x ← a local minimum; returns its distance.

    Y ← the number of iterations, and the largest |g_i|/|V_i| of a free parameter that is left.
    """
    y = cut(work, Y, 4)
    g = cut(work, G, 4)
    h = cut(work, H, 16)
    v = cut(work, V, 12)
    fixed = cut(work, FIXED, 4)
    K = cut(work, L, 16)
    dx = cut(work, DX, 4)
    best = inf
    size = 1.0
    rest = inf
    damping = 0.0
    predicted = inf
    for i in range(4):
        y[i] = x[i]
    used = 0
    last = False
    while used < NEWTON or last:
        used += 1
        f = difference(job, patches, y, T, work)
        if last or f < best or (f <= best * (1.0 + ROUNDING) and predicted <= NEAR * best):
            best = f
            damping *= 0.1
            for i in range(4):
                x[i] = y[i]
            rest = quadratic(patches, limits, x, work)
            size = norm(tail(work, ROWS_A)) + norm(tail(work, ROWS_B))
            if last or rest <= max(STEP_TOLERANCE * sqrt(2.0 * f), RESIDUE * size):
                break
        else:
            if damping > 1e8 or predicted <= ROUNDING * best or f != f:
                last = True  # rows, g and H once more at the best point
                for i in range(4):
                    y[i] = x[i]
                continue
            damping = max(4.0 * damping, 1e-3)
        shift = damping
        while not factor(h, fixed, v, shift, K):
            shift = max(4.0 * shift, min(SHIFT, sqrt(2.0 * best) / size))
            if shift > 1e12:
                break
        for i in range(4):
            s = -g[i] if fixed[i] == 0.0 else 0.0
            for k in range(i):
                s -= K[4 * i + k] * dx[k]
            dx[i] = s / K[4 * i + i]
        for j in range(4):
            i = 3 - j
            s = dx[i]
            for k in range(i + 1, 4):
                s -= K[4 * k + i] * dx[k]
            dx[i] = s / K[4 * i + i]
        predicted = 0.0
        moved = 0.0
        for i in range(4):
            limit = tail(limits[i >> 1], 3 * (i & 1))
            to = x[i] + dx[i]
            if limit[2] == 0.0:
                to = min(max(to, limit[0]), limit[1])
            y[i] = to
            predicted += abs(g[i] * (to - x[i]))
            moved = max(moved, abs(to - x[i]) * norm(tail(v, 3 * i)))
        if moved <= TINY * (norm(tail(work, ROWS_A)) + norm(tail(work, ROWS_B))):
            last = True
            for i in range(4):
                y[i] = x[i]
        if used >= NEWTON:
            last = True
            for i in range(4):
                y[i] = x[i]
    work[Y], work[Y + 1] = used, rest
    return sqrt(2.0 * best)
