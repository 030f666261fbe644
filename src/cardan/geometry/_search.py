"""The closest pair of two shapes: best-first branch and bound with a certificate.

With r = S¹(x₁) − (R S²(x₂) + t) and f = ½ r·r, over boxes of the parameters x = (x₁, x₂):

* **Node.** A box of the parameters of one shape, enclosed in a parallelogram with a radius (``_enclose.py``,
  ``_taylor.py``).
* **Lower bound.** The largest gap between two nodes along three directions: between the centres, along the best r, and
  along the difference after one sweep of coordinate descent on the parallelograms.
* **Upper bound.** Newton's method on f with bounds (projected; the Hessian is shifted until it is positive definite).
* **Ball.** Around a minimum x*, in lengths y = σ x:  f ≥ f* where |y − y*| ≤ ρ, if H + diag(2|g|/ρ) − (Lρ/3) I is
  positive definite, with |g| at active bounds only, and L ≥ |f'''| = |3 r'·r'' + r·r'''| within the ball.  Pairs of
  nodes inside a ball are discarded, so that the boxes around a minimum need not be subdivided down to the tolerance.

What is left when the search ends cannot be closer than the returned lower bound.
Reads a job (:mod:`.abi`), the pose of b relative to a (R by rows, then t); writes x, options, nodes and heap.
"""

from math import inf, sqrt

from cardan._jit import call_evaluator, cut, floats_at, inner, integers_at, jit, tail
from cardan.geometry import abi
from cardan.geometry._balls import ball_radius, in_a_ball
from cardan.geometry._nodes import children, dot, is_inside, move_node, norm
from cardan.geometry._polish import open_pose, polish
from cardan.geometry._workspace import BOX, DX, FRAME, NORMAL, ROWS_A, ROWS_B, Y

POLISH_AGAIN = 0.05  # a pair this much smaller than where its line was polished last is polished
POLISH_DEEPER = 0.4  # a pair this much smaller than any polished before is polished
POLISH_PAIRS, POLISH_FIRST = 150, 600  # one polish per so many pairs at most, after the first few
SAME = 1e-3  # of the radius of a ball: a minimum this near to its centre is the same


@inner
def gap_along(d0, d1, d2, A, B, distance):
    """|n·d| minus the half widths of both parallelograms along n = (d0, d1, d2), which need not be a unit vector."""
    total = distance
    for i in range(1, 3):
        total -= abs(d0 * A[3 * i] + d1 * A[3 * i + 1] + d2 * A[3 * i + 2])
        total -= abs(d0 * B[3 * i] + d1 * B[3 * i + 1] + d2 * B[3 * i + 2])
    return total


@inner
def slide(d, e):
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
    along = abs(x * normal[0] + y * normal[1] + z * normal[2])
    best = gap_along(normal[0], normal[1], normal[2], A, B, along) - radii
    if best < need:
        square = x * x + y * y + z * z
        best = max(best, gap_along(x, y, z, A, B, square) / (sqrt(square) + 1e-300) - radii)
        if best < need:
            d[0], d[1], d[2] = x, y, z
            for i in range(4):
                slide(d, tail(A if i < 2 else B, 3 + 3 * (i & 1)))
            along = d[0] * x + d[1] * y + d[2] * z
            best = max(best, gap_along(d[0], d[1], d[2], A, B, along) / (norm(d) + 1e-300) - radii)
    return best


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


@jit
def search(job, pose, x, options):
    """The closest pair; returns a status.

    job, pose, x, options: addresses; x: parameters (u¹, v¹, u², v²), the start in modes WARM and LOCAL.
    """
    job = integers_at(job)
    x = floats_at(x)
    options = floats_at(options)
    other = tail(job, abi.TREE)
    moved = floats_at(job[abi.J_MOVED])
    stamps = integers_at(job[abi.J_STAMPS])
    keys = floats_at(job[abi.J_KEYS])
    pairs = integers_at(job[abi.J_PAIRS])
    balls = floats_at(job[abi.J_BALLS])
    work = floats_at(job[abi.J_WORK])
    T = cut(work, FRAME, 12)
    open_pose(floats_at(pose), T)
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
    count = ball_count = tick - tick  # not literals, for which functions would be compiled once more
    deepest = inf
    polishes = pair_count = iterations = 0
    status = abi.FOUND
    lower = 0.0
    # minima outside a trimmed domain do not count, so that polishes from the smallest boxes are needed
    trimmed = integers_at(job[abi.T_PATCHES])[abi.P_LOOPS] != 0 or integers_at(other[abi.T_PATCHES])[abi.P_LOOPS] != 0
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
                    dx, dy, dz = A[0] - B[0], A[1] - B[1], A[2] - B[2]
                    d = dx * dx + dy * dy + dz * dz
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
            often = not trimmed and mode != abi.ALL and POLISH_PAIRS * polishes > pair_count + POLISH_FIRST
            if size < POLISH_DEEPER * deepest or (size < POLISH_AGAIN * tried and not often):
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
            rest = work[Y + 1]
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
                # g is not exactly zero: f ≥ f* − |g| ρ, where |g| ≤ 2 rest
                ball[11] = distance - 4.0 * rest * rho / distance if feasible else -1.0
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
