"""The closest pair of two shapes: best-first branch and bound with a certificate.

With r = S¹(x₁) − (R S²(x₂) + t) and f = ½ r·r, over boxes of the parameters x = (x₁, x₂):

* **Node.** A box of the parameters of one shape, enclosed in a parallelogram with a radius (``_enclose.py``,
  ``_taylor.py``).
* **Lower bound.** The largest gap between two nodes along three directions: between the centres, along the best r, and
  along the difference after one sweep of coordinate descent on the parallelograms.
* **Upper bound.** Newton's method on f with bounds (projected; the Hessian is shifted until it is positive definite).
* **Ball.** Around a minimum x*, in lengths y = σ x:  f ≥ f* where |y − y*| ≤ ρ, if H + diag(2|g|/ρ) − (Lρ/3) I is
  positive definite, with |g| at active bounds only and L ≥ |f'''| = |3 r'·r'' + r·r'''| within the ball.  Pairs of
  nodes inside a ball are discarded, so that the boxes around a minimum need not be subdivided down to the tolerance.

What is left when the search ends cannot be closer than the returned lower bound.
Reads a job (:mod:`.abi`), the pose of b relative to a (R by rows, then t); writes x, options, nodes and heap.
"""

from math import floor, inf, sqrt

from cardan._jit import call_evaluator, cut, floats_at, inner, integers_at, jit, pointer, tail
from cardan.geometry import abi

NEWTON = 40  # iterations of one polish
STEP_TOLERANCE = 1e-12  # |g|/(|S_u| D): the angle between r and the normal
ROUNDING = 1e-14  # of f: an increase that is rounding, if a step of Newton's method is nearly over
NEAR = 1e-8  # of f: the predicted decrease of such a step
TINY = 1e-15  # of the size of the step: nothing is left to improve
POLISH_AGAIN = 0.1  # a pair this much smaller than where its line was polished last is polished
POLISH_DEEPER = 0.6  # a pair this much smaller than any polished before is polished
SHRINK = 0.6  # of the radius of a ball that is not certified
SHRINKS = 14
FIRST_BALL = 0.5  # of the width of a root: the radius that is tried first
SAME = 1e-3  # of the radius of a ball: a minimum this near to its centre is the same
SINGULAR = 1e-12  # pivot of the Hessian, relative to |S_u|²

# pieces of the workspace
ROWS_A, ROWS_B, V, H, G, FIXED, L, DX, Y, NORMAL, BOUNDS_A, BOUNDS_B, BOX, CLIPPED, FRAME, SCRATCH = (
    0, 30, 60, 72, 88, 92, 96, 112, 116, 120, 124, 134, 144, 148, 161, 173,
)  # fmt: skip


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
def enclose(patch, op, box, out, bounds, work):
    """Enclosure, or bounds of derivatives, of a box u₀ u₁ v₀ v₁."""
    q = cut(work, BOX, 4)
    q[0], q[1] = 0.5 * (box[0] + box[1]), 0.5 * (box[2] + box[3])
    q[2], q[3] = 0.5 * (box[1] - box[0]), 0.5 * (box[3] - box[2])
    floats = floats_at(patch[abi.P_FLOATS])
    ints = integers_at(patch[abi.P_INTS])
    return call_evaluator(patch[abi.P_ENCLOSE], op, ints, floats, q, tail(q, 2), out, bounds, tail(work, SCRATCH))


@inner
def norm(a):
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def is_inside(loops, u, v):
    """Whether (u, v) is inside the loops: the number of crossings of a ray is odd.

    loops: number of chains; per chain CHAIN floats: lower and upper bound of u, of v, offset of its points, number of
    its segments; then the points.
    """
    odd = False
    for k in range(int(loops[0])):
        chain = tail(loops, 1 + abi.CHAIN * k)
        if chain[2] <= v <= chain[3] and u <= chain[1]:
            at = tail(loops, int(chain[4]))
            n = int(chain[5])
            if u < chain[0]:  # all crossings count: their parity follows from the ends
                odd = odd != ((at[1] > v) != (at[2 * n + 1] > v))
            else:
                for _ in range(n):
                    if (at[1] > v) != (at[3] > v) and u < at[0] + (v - at[1]) * (at[2] - at[0]) / (at[3] - at[1]):
                        odd = not odd
                    at = tail(at, 2)
    return odd


@inner
def meets(at, box):
    """Whether the segment from at[0:2] to at[2:4] meets a box."""
    t0, t1 = 0.0, 1.0
    for i in range(2):
        a = at[i]
        d = at[2 + i] - a
        if d == 0.0:
            if a < box[2 * i] or a > box[2 * i + 1]:
                return False
        else:
            p, q = (box[2 * i] - a) / d, (box[2 * i + 1] - a) / d
            t0 = max(t0, min(p, q))
            t1 = min(t1, max(p, q))
    return t0 <= t1


@inner
def state_of(patch, box):
    """INSIDE, CROSSING or OUTSIDE: the box against the loops of a trimmed face."""
    if patch[abi.P_LOOPS] == 0:
        return abi.INSIDE
    loops = floats_at(patch[abi.P_LOOPS])
    for k in range(int(loops[0])):
        chain = tail(loops, 1 + abi.CHAIN * k)
        if chain[0] <= box[1] and chain[1] >= box[0] and chain[2] <= box[3] and chain[3] >= box[2]:
            at = tail(loops, int(chain[4]))
            for _ in range(int(chain[5])):
                if meets(at, box):
                    return abi.CROSSING
                at = tail(at, 2)
    return abi.INSIDE if is_inside(loops, 0.5 * (box[0] + box[1]), 0.5 * (box[2] + box[3])) else abi.OUTSIDE


@inner
def make_node(tree, k, work):
    """Bounds of node k, whose patch, root and box are set."""
    ints = tail(integers_at(tree[abi.T_NODES]), abi.NODE_INTS * k)
    node = tail(floats_at(tree[abi.T_BOXES]), abi.NODE * k)
    patch = tail(integers_at(tree[abi.T_PATCHES]), abi.PATCH * ints[abi.N_PATCH])
    B = tail(floats_at(tree[abi.T_BOUNDS]), abi.BOUNDS * ints[abi.N_ROOT])
    box = tail(node, abi.N_BOX)
    enclose(patch, abi.ENCLOSE, box, node, B, work)
    node[abi.N_SIZE] = norm(tail(node, 3)) + norm(tail(node, 6)) + node[abi.N_RADIUS]
    ints[abi.N_CHILD] = -1
    ints[abi.N_STATE] = state_of(patch, box)


@jit
def make_roots(tree, work):
    """Bounds of the roots."""
    tree = integers_at(tree)
    work = floats_at(work)
    for k in range(tree[abi.T_ROOTS]):
        make_node(tree, k, work)
    return 0


@inner
def children(tree, k, work):
    """First child of node k, made now if it has none; −1 if there is no room.  Two for a curve, four for a surface."""
    nodes = integers_at(tree[abi.T_NODES])
    ints = tail(nodes, abi.NODE_INTS * k)
    if ints[abi.N_CHILD] >= 0:
        return ints[abi.N_CHILD]
    count = integers_at(tree[abi.T_COUNT])
    first = count[0]
    if first + 4 > tree[abi.T_CAPACITY]:
        return -1
    floats = floats_at(tree[abi.T_BOXES])
    box = tail(floats, abi.NODE * k + abi.N_BOX)
    patch = tail(integers_at(tree[abi.T_PATCHES]), abi.PATCH * ints[abi.N_PATCH])
    number = 1 << patch[abi.P_FREEDOMS]
    for j in range(number):
        new = tail(nodes, abi.NODE_INTS * (first + j))
        new[abi.N_PATCH] = ints[abi.N_PATCH]
        new[abi.N_ROOT] = ints[abi.N_ROOT]
        to = tail(floats, abi.NODE * (first + j) + abi.N_BOX)
        for i in range(2):
            low, high = box[2 * i], box[2 * i + 1]
            middle = 0.5 * (low + high)
            upper = (j >> i) & 1
            to[2 * i] = middle if upper else low
            to[2 * i + 1] = middle if (not upper and number > 1 + i) else high
        make_node(tree, first + j, work)
    count[0] = first + number
    ints[abi.N_CHILD] = first
    return first


@inner
def move_node(tree, k, T, moved):
    """moved ← centre, half edges and radius of node k of b in the axes of a."""
    node = tail(floats_at(tree[abi.T_BOXES]), abi.NODE * k)
    to = tail(moved, 10 * k)
    for i in range(3):
        for c in range(3):
            value = T[3 * c] * node[3 * i] + T[3 * c + 1] * node[3 * i + 1] + T[3 * c + 2] * node[3 * i + 2]
            to[3 * i + c] = value + T[9 + c] if i == 0 else value
    to[9] = node[9]


@inner
def gap_along(d0, d1, d2, A, B, distance):
    """|n·d| minus the half widths of both parallelograms along n = (d0, d1, d2), which need not be a unit vector."""
    total = distance
    for i in range(1, 3):
        total -= abs(d0 * A[3 * i] + d1 * A[3 * i + 1] + d2 * A[3 * i + 2])
        total -= abs(d0 * B[3 * i] + d1 * B[3 * i + 1] + d2 * B[3 * i + 2])
    return total


@inner
def slide(d, e, from_a, sign):
    """One step of coordinate descent: the multiple s ∈ [−1, 1] of e that brings d ± s e nearest to zero."""
    square = dot(e, e)
    if square > 0.0:
        s = min(1.0, max(-1.0, dot(d, e) / square))
        for c in range(3):
            d[c] -= s * e[c]


@inner
def lower_bound(A, B, normal, need, d):
    """Largest gap between two nodes along three directions; the first that reaches ``need``."""
    x, y, z = B[0] - A[0], B[1] - A[1], B[2] - A[2]
    radii = A[9] + B[9]
    square = x * x + y * y + z * z
    length = sqrt(square) + 1e-300
    best = gap_along(x, y, z, A, B, square) / length - radii
    if best < need:
        along = abs(x * normal[0] + y * normal[1] + z * normal[2])
        best = max(best, gap_along(normal[0], normal[1], normal[2], A, B, along) - radii)
        if best < need:
            d[0], d[1], d[2] = x, y, z
            for i in range(4):
                slide(d, tail(A if i < 2 else B, 3 + 3 * (i & 1)), i < 2, 1.0)
            length = norm(d) + 1e-300
            along = d[0] * x + d[1] * y + d[2] * z
            best = max(best, gap_along(d[0], d[1], d[2], A, B, along) / length - radii)
    return best


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
    """K ← Cholesky factor of H + shift diag|V_i|², with rows of fixed parameters those of the identity."""
    for i in range(4):
        size = dot(tail(v, 3 * i), tail(v, 3 * i))
        for j in range(i + 1):
            s = h[4 * i + j]
            if i == j:
                s += shift * size
            if fixed[i] != 0.0 or fixed[j] != 0.0:
                s = 1.0 if i == j else 0.0
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
    """Minimise f from x within the limits of the patches; x ← a local minimum; returns its distance."""
    y = cut(work, Y, 4)
    g = cut(work, G, 4)
    h = cut(work, H, 16)
    v = cut(work, V, 12)
    fixed = cut(work, FIXED, 4)
    K = cut(work, L, 16)
    dx = cut(work, DX, 4)
    best = inf
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
            if last or rest <= STEP_TOLERANCE * sqrt(2.0 * f):
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
            shift = max(4.0 * shift, 3e-2)
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
    work[Y] = used
    return sqrt(2.0 * best)


@inner
def bounds_near(tree, number, x, reach, out, work):
    """out ← largest derivative bounds in the box x ± reach, from the parts of it in the roots of a patch."""
    nodes = integers_at(tree[abi.T_NODES])
    boxes = floats_at(tree[abi.T_BOXES])
    bounds = floats_at(tree[abi.T_BOUNDS])
    patch = tail(integers_at(tree[abi.T_PATCHES]), abi.PATCH * number)
    limits = tail(floats_at(tree[abi.T_LIMITS]), abi.P_LIMITS * number)
    part = cut(work, CLIPPED, 4)
    found = cut(work, CLIPPED + 4, 9)
    for i in range(abi.BOUNDS):
        out[i] = 0.0
    for k in range(tree[abi.T_ROOTS]):
        if nodes[abi.NODE_INTS * k + abi.N_PATCH] == number:
            box = tail(boxes, abi.NODE * k + abi.N_BOX)
            meets = True
            for i in range(patch[abi.P_FREEDOMS]):
                near = x[i]
                period = limits[3 * i + 2]
                if period > 0.0:
                    near += period * floor((0.5 * (box[2 * i] + box[2 * i + 1]) - near) / period + 0.5)
                part[2 * i] = max(box[2 * i], near - reach[i])
                part[2 * i + 1] = min(box[2 * i + 1], near + reach[i])
                meets = meets and part[2 * i] < part[2 * i + 1]
            if meets:
                enclose(patch, abi.DERIVATIVES, part, found, tail(bounds, abi.BOUNDS * k), work)
                for i in range(abi.BOUNDS):
                    out[i] = max(out[i], found[i])


@inner
def ball_radius(job, numbers, patches, x, distance, work):
    """ρ of the ball around the minimum x in which no point is closer; zero if there is none; σ in DX."""
    v = cut(work, V, 12)
    g = cut(work, G, 4)
    h = cut(work, H, 16)
    fixed = cut(work, FIXED, 4)
    K = cut(work, L, 16)
    sigma = cut(work, DX, 4)
    reach = cut(work, Y, 4)
    rho = 0.0
    for i in range(4):
        sigma[i] = norm(tail(v, 3 * i))
        if (i & 1) < patches[i >> 1][abi.P_FREEDOMS]:
            if sigma[i] == 0.0:
                return 0.0
            tree = tail(job, abi.TREE * (i >> 1))
            box = tail(floats_at(tree[abi.T_BOXES]), abi.N_BOX + 2 * (i & 1))
            rho = max(rho, FIRST_BALL * sigma[i] * (box[1] - box[0]))
        else:
            sigma[i] = 1.0
    for _ in range(SHRINKS):
        m1 = m2 = m3 = 0.0
        for k in range(2):
            freedoms = patches[k][abi.P_FREEDOMS]
            if freedoms > 0:
                B = tail(work, BOUNDS_A + (BOUNDS_B - BOUNDS_A) * k)
                s, t = 1.0 / sigma[2 * k], 1.0 / sigma[2 * k + 1]
                reach[0], reach[1] = rho * s, rho * t
                bounds_near(tail(job, abi.TREE * k), numbers[k], tail(x, 2 * k), reach, B, work)
                if freedoms == 1:
                    t = 0.0
                m1 += (B[0] * s) ** 2 + (B[1] * t) ** 2
                m2 = max(m2, sqrt((B[2] * s * s) ** 2 + 2.0 * (B[3] * s * t) ** 2 + (B[4] * t * t) ** 2))
                third = (B[5] * s * s * s) ** 2 + 3.0 * (B[6] * s * s * t) ** 2
                m3 = max(m3, sqrt(third + 3.0 * (B[7] * s * t * t) ** 2 + (B[8] * t * t * t) ** 2))
        m1 = sqrt(m1)
        lipschitz = 3.0 * m1 * m2 + (distance + m1 * rho) * m3
        good = True
        for i in range(4):
            for j in range(i + 1):
                s = h[4 * i + j] / (sigma[i] * sigma[j])
                if (i & 1) >= patches[i >> 1][abi.P_FREEDOMS] or (j & 1) >= patches[j >> 1][abi.P_FREEDOMS]:
                    s = 1.0 if i == j else 0.0
                elif i == j:
                    s -= lipschitz * rho / 3.0
                    if fixed[i] != 0.0:
                        s += 2.0 * abs(g[i]) / (sigma[i] * rho)
                for k in range(j):
                    s -= K[4 * i + k] * K[4 * j + k]
                if i == j:
                    good = good and s > 0.0
                    K[4 * i + i] = sqrt(s) if s > 0.0 else 1.0
                else:
                    K[4 * i + j] = s / K[4 * j + j]
        if good:
            return rho
        rho *= SHRINK
    return 0.0


@inner
def in_a_ball(job, na, nb, least, balls, count):
    """Whether a pair of nodes is inside a ball whose distance is at least ``least``."""
    ints_a = tail(integers_at(job[abi.T_NODES]), abi.NODE_INTS * na)
    ints_b = tail(integers_at(job[abi.TREE + abi.T_NODES]), abi.NODE_INTS * nb)
    for n in range(count):
        ball = tail(balls, abi.BALL * n)
        if ball[0] == ints_a[abi.N_PATCH] and ball[1] == ints_b[abi.N_PATCH] and ball[11] >= least:
            total = 0.0
            for i in range(4):
                tree = tail(job, abi.TREE * (i >> 1))
                patch = ints_a[abi.N_PATCH] if i < 2 else ints_b[abi.N_PATCH]
                period = floats_at(tree[abi.T_LIMITS])[abi.P_LIMITS * patch + 3 * (i & 1) + 2]
                box = tail(floats_at(tree[abi.T_BOXES]), abi.NODE * (na if i < 2 else nb) + abi.N_BOX + 2 * (i & 1))
                d = 0.5 * (box[0] + box[1]) - ball[2 + i]
                if period > 0.0:
                    d -= period * floor(d / period + 0.5)
                far = (abs(d) + 0.5 * (box[1] - box[0])) * ball[6 + i]
                total += far * far
            if total <= ball[10] * ball[10]:
                return True
    return False


@inner
def push(keys, pairs, count, bound, tried, i, j):
    k = count
    while k > 0:
        up = (k - 1) >> 1
        if keys[abi.KEY * up] <= bound:
            break
        keys[abi.KEY * k] = keys[abi.KEY * up]
        keys[abi.KEY * k + 1] = keys[abi.KEY * up + 1]
        pairs[abi.PAIR_INTS * k] = pairs[abi.PAIR_INTS * up]
        pairs[abi.PAIR_INTS * k + 1] = pairs[abi.PAIR_INTS * up + 1]
        k = up
    keys[abi.KEY * k] = bound
    keys[abi.KEY * k + 1] = tried
    pairs[abi.PAIR_INTS * k] = i
    pairs[abi.PAIR_INTS * k + 1] = j


@inner
def pop(keys, pairs, count):
    """Remove the first of count entries; count − 1 are left."""
    n = count - 1
    bound, tried = keys[abi.KEY * n], keys[abi.KEY * n + 1]
    i, j = pairs[abi.PAIR_INTS * n], pairs[abi.PAIR_INTS * n + 1]
    k = 0
    while True:
        down = 2 * k + 1
        if down >= n:
            break
        if down + 1 < n and keys[abi.KEY * (down + 1)] < keys[abi.KEY * down]:
            down += 1
        if keys[abi.KEY * down] >= bound:
            break
        keys[abi.KEY * k] = keys[abi.KEY * down]
        keys[abi.KEY * k + 1] = keys[abi.KEY * down + 1]
        pairs[abi.PAIR_INTS * k] = pairs[abi.PAIR_INTS * down]
        pairs[abi.PAIR_INTS * k + 1] = pairs[abi.PAIR_INTS * down + 1]
        k = down
    keys[abi.KEY * k] = bound
    keys[abi.KEY * k + 1] = tried
    pairs[abi.PAIR_INTS * k] = i
    pairs[abi.PAIR_INTS * k + 1] = j


@inner
def open_pose(pose, T):
    """T ← R by rows, then t, of a pose; its quaternion need not have the length one."""
    w, x, y, z = pose[3], pose[4], pose[5], pose[6]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    T[0], T[1], T[2] = 1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)
    T[3], T[4], T[5] = s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)
    T[6], T[7], T[8] = s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)
    T[9], T[10], T[11] = pose[0], pose[1], pose[2]


@jit
def search(job, pose, x, options):
    """The closest pair; returns a status.  x: parameters (u¹, v¹, u², v²), the start in modes WARM and LOCAL."""
    job = integers_at(job)
    x = pointer(x)
    options = pointer(options)
    other = tail(job, abi.TREE)
    moved = floats_at(job[abi.J_MOVED])
    stamps = integers_at(job[abi.J_STAMPS])
    keys = floats_at(job[abi.J_KEYS])
    pairs = integers_at(job[abi.J_PAIRS])
    balls = floats_at(job[abi.J_BALLS])
    work = floats_at(job[abi.J_WORK])
    T = cut(work, FRAME, 12)
    open_pose(pointer(pose), T)
    nodes_a, nodes_b = integers_at(job[abi.T_NODES]), integers_at(other[abi.T_NODES])
    boxes_a, boxes_b = floats_at(job[abi.T_BOXES]), floats_at(other[abi.T_BOXES])
    tick = int(options[abi.O_TICK])
    mode = int(options[abi.O_MODE])
    tolerance = options[abi.O_TOLERANCE]
    cut_off = options[abi.O_CUT]
    trial = tail(work, ROWS_B + 22)  # four floats that rows of order two do not use
    normal = tail(work, ROWS_B + 26)
    normal[0] = normal[1] = normal[2] = 0.0
    best = inf
    count = ball_count = 0
    deepest = inf
    polishes = pair_count = iterations = 0
    status = abi.FOUND
    lower = 0.0
    begin = mode == abi.WARM or mode == abi.LOCAL
    scanned = False
    at_a = at_b = 0
    while True:
        # 1. the next start of a polish, or the next pair to divide
        polishing = False
        i = j = 0
        bound = 0.0
        tried = 0.0
        if begin:
            begin = False
            polishing = True
            for k in range(4):
                trial[k] = x[k]
            at_a, at_b = int(options[abi.O_PATCH_A]), int(options[abi.O_PATCH_B])
        elif not scanned:
            scanned = True
            nearest = inf
            for n in range(other[abi.T_ROOTS]):
                if nodes_b[abi.NODE_INTS * n + abi.N_STATE] == abi.OUTSIDE:
                    continue
                move_node(other, n, T, moved)
                stamps[n] = tick
                B = tail(moved, 10 * n)
                for m in range(job[abi.T_ROOTS]):
                    A = tail(boxes_a, abi.NODE * m)
                    if nodes_a[abi.NODE_INTS * m + abi.N_STATE] == abi.OUTSIDE:
                        continue
                    d = (A[0] - B[0]) ** 2 + (A[1] - B[1]) ** 2 + (A[2] - B[2]) ** 2
                    if d < nearest:
                        nearest, i, j = d, m, n
            if mode != abi.WARM:
                polishing = True
        else:
            if count == 0:
                lower = best - tolerance
                break
            bound, tried = keys[0], keys[1]
            i, j = pairs[0], pairs[1]
            lower = bound
            if bound >= (cut_off if mode == abi.ALL else min(best - tolerance, cut_off)):
                break
            if best <= tolerance and mode != abi.ALL:
                break
            pop(keys, pairs, count)
            count -= 1
            least = -0.5 if mode == abi.ALL else min(best - tolerance, cut_off)
            if in_a_ball(job, i, j, least, balls, ball_count):
                continue
            if mode == abi.ALL:
                work[BOX], work[BOX + 1] = i, j
                if call_evaluator(job[abi.J_EXCLUDE], abi.ENCLOSE, job, T, T, T, work, work, work) != 0:
                    continue
            size = boxes_a[abi.NODE * i + abi.N_SIZE] + boxes_b[abi.NODE * j + abi.N_SIZE]
            if size < POLISH_DEEPER * deepest or size < POLISH_AGAIN * tried:
                polishing = True
                tried = size
                deepest = min(deepest, size)
        if polishing:
            if scanned:
                for k in range(2):
                    trial[k] = 0.5 * (boxes_a[abi.NODE * i + 10 + 2 * k] + boxes_a[abi.NODE * i + 11 + 2 * k])
                    trial[2 + k] = 0.5 * (boxes_b[abi.NODE * j + 10 + 2 * k] + boxes_b[abi.NODE * j + 11 + 2 * k])
                at_a, at_b = nodes_a[abi.NODE_INTS * i], nodes_b[abi.NODE_INTS * j]
            patch_a = tail(integers_at(job[abi.T_PATCHES]), abi.PATCH * at_a)
            patch_b = tail(integers_at(other[abi.T_PATCHES]), abi.PATCH * at_b)
            limits_a = tail(floats_at(job[abi.T_LIMITS]), abi.P_LIMITS * at_a)
            limits_b = tail(floats_at(other[abi.T_LIMITS]), abi.P_LIMITS * at_b)
            patches = (patch_a, patch_b)
            distance = polish(job, patches, (limits_a, limits_b), trial, T, work)
            polishes += 1
            iterations += int(work[Y])
            feasible = True
            if patch_a[abi.P_LOOPS] != 0:
                feasible = is_inside(floats_at(patch_a[abi.P_LOOPS]), trial[0], trial[1])
            if patch_b[abi.P_LOOPS] != 0:
                feasible = feasible and is_inside(floats_at(patch_b[abi.P_LOOPS]), trial[2], trial[3])
            if mode == abi.LOCAL:
                for k in range(4):
                    x[k] = trial[k]
                for k in range(3):
                    options[abi.O_POINT_A + k] = work[ROWS_A + k]
                    options[abi.O_POINT_B + k] = work[ROWS_B + k]
                best = distance
                break
            improved = feasible and distance < best * (1.0 - 1e-14)
            if improved:
                best = distance
                for k in range(4):
                    x[k] = trial[k]
                options[abi.O_PATCH_A] = at_a
                options[abi.O_PATCH_B] = at_b
                for k in range(3):
                    options[abi.O_POINT_A + k] = work[ROWS_A + k]
                    options[abi.O_POINT_B + k] = work[ROWS_B + k]
                if distance > 0.0:
                    for k in range(3):
                        normal[k] = work[NORMAL + k] / distance
            known = False
            for n in range(ball_count):
                ball = tail(balls, abi.BALL * n)
                if ball[0] == at_a and ball[1] == at_b:
                    apart = 0.0
                    for k in range(4):
                        apart = max(apart, abs(ball[2 + k] - trial[k]) * ball[6 + k])
                    known = known or apart <= max(SAME * ball[10], 1e-9 * distance)
            if ball_count < abi.BALLS and distance > 0.0 and not known:
                rho = ball_radius(job, (at_a, at_b), patches, trial, distance, work)
                if improved:
                    options[abi.O_RADIUS] = rho
                ball = tail(balls, abi.BALL * ball_count)
                ball[0], ball[1] = at_a, at_b
                for k in range(4):
                    ball[2 + k] = trial[k]
                    ball[6 + k] = work[DX + k]
                ball[10] = rho
                ball[11] = distance if feasible else -1.0
                if rho > 0.0 or (mode == abi.ALL and feasible):
                    ball_count += 1
        if not scanned:
            continue
        # 2. the pairs of the roots, or of the children
        if count == 0 and tried == 0.0 and bound == 0.0 and pair_count == 0:
            first_a, last_a, first_b, last_b = 0, job[abi.T_ROOTS], 0, other[abi.T_ROOTS]
            tried = inf
        else:
            if best <= tolerance and mode != abi.ALL:
                lower = 0.0
                break
            big_a, big_b = boxes_a[abi.NODE * i + abi.N_SIZE], boxes_b[abi.NODE * j + abi.N_SIZE]
            free_a = tail(integers_at(job[abi.T_PATCHES]), abi.PATCH * nodes_a[abi.NODE_INTS * i])[abi.P_FREEDOMS]
            free_b = tail(integers_at(other[abi.T_PATCHES]), abi.PATCH * nodes_b[abi.NODE_INTS * j])[abi.P_FREEDOMS]
            first_a, last_a, first_b, last_b = i, i + 1, j, j + 1
            divide_a = free_a > 0 and (big_a >= big_b or free_b == 0)
            k = 0
            for _ in range(1):
                tree = job if divide_a else other
                k = children(tree, i if divide_a else j, work)
            if divide_a:
                first_a, last_a = k, k + (1 << free_a)
            else:
                first_b, last_b = k, k + (1 << free_b)
            if k < 0:
                status = abi.NODES_FULL
                break
        if count + (last_a - first_a) * (last_b - first_b) > job[abi.J_HEAP]:
            status = abi.HEAP_FULL
            break
        if pair_count > options[abi.O_BUDGET]:
            status = abi.BUDGET
            break
        need = cut_off if mode == abi.ALL else min(best - tolerance, cut_off)
        for n in range(first_b, last_b):
            if nodes_b[abi.NODE_INTS * n + abi.N_STATE] == abi.OUTSIDE:
                continue
            if stamps[n] != tick:
                stamps[n] = tick
                move_node(other, n, T, moved)
            for m in range(first_a, last_a):
                if nodes_a[abi.NODE_INTS * m + abi.N_STATE] == abi.OUTSIDE:
                    continue
                pair_count += 1
                least = lower_bound(tail(boxes_a, abi.NODE * m), tail(moved, 10 * n), normal, need, tail(work, Y))
                least = max(least, bound)
                if least < need:
                    first = tried
                    if tried == inf:
                        first = boxes_a[abi.NODE * m + abi.N_SIZE] + boxes_b[abi.NODE * n + abi.N_SIZE]
                    push(keys, pairs, count, least, first, m, n)
                    count += 1
    options[abi.O_DISTANCE] = best
    options[abi.O_LOWER] = max(lower, 0.0)
    options[abi.O_PAIRS] = pair_count
    options[abi.O_POLISHES] = polishes
    options[abi.O_ITERATIONS] = iterations
    options[abi.O_BALLS] = ball_count
    return status


@jit
def enclose_once(address, table, op, q, out, work):
    """Call an enclosure from Python; q: centre (2), half widths (2)."""
    table = integers_at(table)
    q = pointer(q)
    out = pointer(out)
    ints, floats = integers_at(table[1]), floats_at(table[2])
    return call_evaluator(address, op, ints, floats, q, tail(q, 2), out, out, pointer(work))
