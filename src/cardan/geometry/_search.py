"""The closest pair of two shapes: best-first branch and bound with a certificate.

With r = S¹(x₁) − (R S²(x₂) + t) and f = ½ r·r, over boxes of the parameters x = (x₁, x₂):

* **Node.** A box of the parameters of one shape, enclosed in a parallelogram with a radius (``_enclose.py``,
  ``_taylor.py``).
* **Lower bound.** The largest gap between two nodes along three directions: between the centres, along the best r, and
  along the difference after one sweep of coordinate descent on the parallelograms.
* **Upper bound.** Newton's method on f with bounds (projected; the Hessian is shifted until it is positive definite).
* **Ball.** Around a minimum x* no pair is closer (``_balls.py``).  Pairs of nodes inside a ball are discarded, so that
  the boxes around a minimum need not be subdivided down to the tolerance.

What is left when the search ends cannot be closer than the returned lower bound.
Reads a job (:mod:`.abi`) with the pose of b relative to a; writes x, options, nodes and heap.
"""

from math import inf, sqrt

from cardan.geometry._balls import ball_radius, in_a_ball
from cardan.geometry._nodes import box_of, children, limits_of, links_of, move_node, moved_of, node_of, patch_of
from cardan.geometry._polish import ball_of, open_pose, polish
from cardan.geometry._workspace import BOX, DX, FRAME, NORMAL, ROWS_A, ROWS_B, Y
from cardan.geometry.abi import (
    ALL,
    BALLS,
    BUDGET,
    COLD,
    ENCLOSE,
    ENTRY,
    FOUND,
    HEAP_FULL,
    IS_INSIDE,
    J_BALLS,
    J_EXCLUDE,
    J_HEAP,
    J_MOVED,
    J_ROOM,
    J_STAMPS,
    J_STATE,
    J_WORK,
    LOCAL,
    N_BOX,
    N_PATCH,
    N_SIZE,
    N_STATE,
    NODES_FULL,
    O_BALLS,
    O_BUDGET,
    O_CUT,
    O_DISTANCE,
    O_ITERATIONS,
    O_LIMIT,
    O_LOWER,
    O_MODE,
    O_PAIRS,
    O_PATCH_A,
    O_PATCH_B,
    O_POINT_A,
    O_POINT_B,
    O_POLISHES,
    O_RADIUS,
    O_TICK,
    O_TOLERANCE,
    OPTIONS,
    OUTSIDE,
    P_FREEDOMS,
    P_LOOPS,
    P_TRIM,
    POSE,
    S_OPTIONS,
    S_POSE,
    S_X,
    T_BOXES,
    T_LIMITS,
    T_NODES,
    T_PATCHES,
    T_ROOTS,
    TREE,
)
from cardan.kernel.jit import inner, jit, plain
from cardan.kernel.memory import call_evaluator, cut, floats_at, integers_at, piece, tail

POLISH_AGAIN = 0.05  # a pair this much smaller than where its line was polished last is polished
POLISH_DEEPER = 0.25  # a pair this much smaller than any polished before is polished
POLISH_PAIRS, POLISH_FIRST = 1000, 3000  # one polish per so many pairs at most, after the first few
NEARLY = 1.05  # of the least distance: pairs of boxes around farther minima are discarded by their bounds
NEAR = 0.5  # of the size of a pair of boxes: a polish from it ends this near to a minimum that is known
SAME = 1e-3  # of the radius of a ball: a minimum this near to its centre is the same
TRIAL, DIRECTION = ROWS_B + 22, ROWS_B + 26  # in the workspace: floats that rows of order two do not use
NONE, ZERO = plain(-1), plain(0)

entry_of = piece(ENTRY, 0, ENTRY)  # (heap, k)


@inner
def gap_along(n0, n1, n2, x, y, z, A, B):
    """|n·d| minus the half widths of both parallelograms along n, which need not be a unit vector."""
    gap = abs(n0 * x + n1 * y + n2 * z)
    for i in range(1, 3):
        gap -= abs(n0 * A[3 * i] + n1 * A[3 * i + 1] + n2 * A[3 * i + 2])
        gap -= abs(n0 * B[3 * i] + n1 * B[3 * i + 1] + n2 * B[3 * i + 2])
    return gap


@inner
def lower_bound(A, B, normal, need):
    """A lower bound of the distance between two nodes: their largest gap along three directions n.

    ``need`` as soon as it is reached.
    """
    x, y, z = B[0] - A[0], B[1] - A[1], B[2] - A[2]
    radii = A[9] + B[9]
    best = gap_along(normal[0], normal[1], normal[2], x, y, z, A, B) - radii
    if best >= need:
        return need
    n0, n1, n2 = x, y, z
    for sweep in range(2):
        gap = gap_along(n0, n1, n2, x, y, z, A, B)
        square = n0 * n0 + n1 * n1 + n2 * n2
        if gap > 0.0 and gap * gap >= (need + radii) * (need + radii) * square:
            return need
        if sweep == 1:
            best = max(best, gap / (sqrt(square) + 1e-300) - radii)
        else:
            for i in range(4):  # coordinate descent: the multiple s ∈ [−1, 1] of e that brings n nearest to zero
                e = tail(A if i < 2 else B, 3 + 3 * (i & 1))
                unit = 1.0 / (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + 1e-300)  # does not wait for n
                s = min(1.0, max(-1.0, (n0 * e[0] + n1 * e[1] + n2 * e[2]) * unit))
                n0 -= s * e[0]
                n1 -= s * e[1]
                n2 -= s * e[2]
    return best


@inner
def push(heap, count, bound, tried, i, j):
    k = count
    while k > 0:
        up = entry_of(heap, (k - 1) >> 1)
        if up[0] <= bound:
            break
        to = entry_of(heap, k)
        for c in range(ENTRY):
            to[c] = up[c]
        k = (k - 1) >> 1
    to = entry_of(heap, k)
    to[0] = bound
    to[1] = tried
    to[2] = i
    to[3] = j


@inner
def pop(heap, count):
    """Remove the first of count entries; count − 1 are left."""
    last = entry_of(heap, count - 1)
    k = 0
    while 2 * k + 2 < count:
        down = 2 * k + 1
        if down + 2 < count and entry_of(heap, down + 1)[0] < entry_of(heap, down)[0]:
            down += 1
        source = entry_of(heap, down)
        if source[0] >= last[0]:
            break
        to = entry_of(heap, k)
        for c in range(ENTRY):
            to[c] = source[c]
        k = down
    to = entry_of(heap, k)
    for c in range(ENTRY):
        to[c] = last[c]


@inner
def improve(job, i, j, T, x, options, work):
    """Polish from the centres of the nodes i and j, or from x if there are none; record the minimum and its ball."""
    other = tail(job, TREE)
    balls = floats_at(job[J_BALLS])
    trial = cut(work, TRIAL, 4)
    mode = options[O_MODE]
    size = 0.0
    if i < 0:
        for k in range(4):
            trial[k] = x[k]
        at_a, at_b = int(options[O_PATCH_A]), int(options[O_PATCH_B])
    else:
        a, b = box_of(floats_at(job[T_BOXES]), i), box_of(floats_at(other[T_BOXES]), j)
        for k in range(2):
            trial[k] = 0.5 * (a[2 * k] + a[2 * k + 1])
            trial[2 + k] = 0.5 * (b[2 * k] + b[2 * k + 1])
        size = a[N_SIZE - N_BOX] + b[N_SIZE - N_BOX]
        at_a = links_of(integers_at(job[T_NODES]), i)[N_PATCH]
        at_b = links_of(integers_at(other[T_NODES]), j)[N_PATCH]
    numbers = (at_a, at_b)
    patches = (patch_of(integers_at(job[T_PATCHES]), at_a), patch_of(integers_at(other[T_PATCHES]), at_b))
    limits = (limits_of(floats_at(job[T_LIMITS]), at_a), limits_of(floats_at(other[T_LIMITS]), at_b))
    trimmed = (patches[0][P_LOOPS] | patches[1][P_LOOPS]) != 0
    reach = SAME if trimmed | (mode == ALL) else 1.0
    near = NEAR * size if reach == 1.0 else 0.0
    count = int(options[O_BALLS])
    distance = polish(patches, limits, trial, T, balls, count, numbers, reach, near, work)
    options[O_POLISHES] += 1.0
    options[O_ITERATIONS] += work[Y]
    rest, known = work[Y + 1], work[Y + 2] != 0.0
    feasible = True
    if trimmed:
        for k in range(2):
            loops = patches[k][P_LOOPS]
            if loops != 0:
                q = tail(trial, 2 * k)
                trim = patches[k][P_TRIM]
                if call_evaluator(trim, IS_INSIDE, patches[k], floats_at(loops), q, q, q, work, work) == 0:
                    feasible = False
    improved = (mode == LOCAL) | (feasible & (distance < options[O_DISTANCE] * (1.0 - 1e-14)))
    if improved:
        options[O_DISTANCE] = distance
        options[O_PATCH_A] = at_a
        options[O_PATCH_B] = at_b
        if mode != ALL:
            options[O_LIMIT] = min(distance - options[O_TOLERANCE], options[O_CUT])
        for k in range(4):
            x[k] = trial[k]
        for k in range(3):
            options[O_POINT_A + k] = work[ROWS_A + k]
            options[O_POINT_B + k] = work[ROWS_B + k]
            if distance > 0.0:
                work[DIRECTION + k] = work[NORMAL + k] / distance
    near = (mode != LOCAL) & (distance < NEARLY * options[O_DISTANCE]) & (options[O_LIMIT] > 0.0)
    if ((mode == ALL) | near) & (count < BALLS) & (distance > 0.0) & (not known):
        rho = ball_radius(job, numbers, patches, trial, distance, mode == ALL, work)
        if improved:
            options[O_RADIUS] = rho
        ball = ball_of(balls, count)
        ball[0] = at_a
        ball[1] = at_b
        for k in range(4):
            ball[2 + k] = trial[k]
            ball[6 + k] = work[DX + k]
        ball[10] = rho
        # g is not exactly zero: f ≥ f* − |g| ρ, where |g| ≤ 2 rest
        ball[11] = distance - 4.0 * rest * rho / distance if feasible else -1.0
        if (rho > 0.0) | ((mode == ALL) & feasible):
            options[O_BALLS] += 1.0


@inner
def nearest_untrimmed(job, i, T, moved, stamps, tick):
    """The root of b with the centre nearest to that of the root i of a, both without loops; −1 if there is none."""
    other = tail(job, TREE)
    nodes_a, nodes_b = integers_at(job[T_NODES]), integers_at(other[T_NODES])
    found = NONE
    if patch_of(integers_at(job[T_PATCHES]), links_of(nodes_a, i)[N_PATCH])[P_LOOPS] == 0:
        A = node_of(floats_at(job[T_BOXES]), i)
        nearest = inf
        for n in range(other[T_ROOTS]):
            if patch_of(integers_at(other[T_PATCHES]), links_of(nodes_b, n)[N_PATCH])[P_LOOPS] == 0:
                if stamps[n] != tick:
                    stamps[n] = tick
                    move_node(other, n, T, moved)
                B = moved_of(moved, n)
                dx, dy, dz = A[0] - B[0], A[1] - B[1], A[2] - B[2]
                d = dx * dx + dy * dy + dz * dz
                if d < nearest:
                    nearest, found = d, n
    return found


@jit
def search(job):
    """The closest pair; returns a status.

    job: address.  In its state (:mod:`.abi`), x is the start in modes WARM and LOCAL.
    """
    job = integers_at(job)
    state = floats_at(job[J_STATE])
    x = cut(state, S_X, 4)
    options = cut(state, S_OPTIONS, OPTIONS)
    other = tail(job, TREE)
    moved = floats_at(job[J_MOVED])
    stamps = integers_at(job[J_STAMPS])
    heap = floats_at(job[J_HEAP])
    work = floats_at(job[J_WORK])
    T = cut(work, FRAME, 12)
    open_pose(cut(state, S_POSE, POSE), T)
    nodes_a, nodes_b = integers_at(job[T_NODES]), integers_at(other[T_NODES])
    boxes_a, boxes_b = floats_at(job[T_BOXES]), floats_at(other[T_BOXES])
    tick = int(options[O_TICK])
    mode = options[O_MODE]
    normal = cut(work, DIRECTION, 3)
    for k in range(3):
        normal[k] = 0.0
    options[O_DISTANCE] = inf
    options[O_LIMIT] = options[O_CUT]
    options[O_BALLS] = options[O_POLISHES] = options[O_ITERATIONS] = 0.0
    i = j = NONE
    if (mode == ALL) | (mode == COLD):  # the nearest roots are the first start
        nearest = inf
        for n in range(other[T_ROOTS]):
            if links_of(nodes_b, n)[N_STATE] != OUTSIDE:
                move_node(other, n, T, moved)
                stamps[n] = tick
                B = moved_of(moved, n)
                for m in range(job[T_ROOTS]):
                    if links_of(nodes_a, m)[N_STATE] != OUTSIDE:
                        A = node_of(boxes_a, m)
                        dx, dy, dz = A[0] - B[0], A[1] - B[1], A[2] - B[2]
                        d = dx * dx + dy * dy + dz * dz
                        if d < nearest:
                            nearest, i, j = d, m, n
    # minima outside a trimmed domain do not count, so that polishes from the smallest boxes are needed
    loops = integers_at(job[T_PATCHES])[P_LOOPS] | integers_at(other[T_PATCHES])[P_LOOPS]
    rarely = (loops == 0) & (mode != ALL)
    # so that there is an upper bound from the beginning, each root of an edge is also a start: its points always count
    starts = job[T_ROOTS] if loops != 0 else ZERO
    start = NONE
    limit = options[O_LIMIT]
    status = FOUND
    count = pair_count = ZERO
    deepest = inf
    bound = 0.0
    tried = 0.0
    polishing = first = True
    while True:
        # 1. the next start of a polish, or the next pair to divide
        if first:
            if start >= 0:
                i = start
                j = nearest_untrimmed(job, i, T, moved, stamps, tick)
                polishing = j >= 0
                if polishing:
                    polishing = lower_bound(node_of(boxes_a, i), moved_of(moved, j), normal, limit) < limit
        else:
            bound = inf
            if count > 0:
                bound = heap[0]
            if bound >= options[O_LIMIT]:
                break
            tried = heap[1]
            i, j = int(heap[2]), int(heap[3])
            pop(heap, count)
            count -= 1
            if in_a_ball(job, i, j, -0.5 if mode == ALL else options[O_LIMIT], int(options[O_BALLS])):
                continue
            if mode == ALL:
                work[BOX], work[BOX + 1] = i, j
                if call_evaluator(job[J_EXCLUDE], ENCLOSE, job, T, T, T, work, work, work) != 0:
                    continue
            size = node_of(boxes_a, i)[N_SIZE] + node_of(boxes_b, j)[N_SIZE]
            often = rarely & (POLISH_PAIRS * options[O_POLISHES] > pair_count + POLISH_FIRST)
            polishing = (size < POLISH_DEEPER * deepest) | ((size < POLISH_AGAIN * tried) & (not often))
            if polishing:
                tried = size
                deepest = min(deepest, size)
        if polishing:
            improve(job, i, j, T, x, options, work)
        limit = options[O_LIMIT]
        if (mode == LOCAL) | (bound >= limit):
            break
        start += 1
        if first & (start < starts):
            continue
        # 2. the pairs of the roots, or of the children
        first_a, last_a, first_b, last_b = 0, job[T_ROOTS], 0, other[T_ROOTS]
        if not first:
            a, b = node_of(boxes_a, i), node_of(boxes_b, j)
            free_a = patch_of(integers_at(job[T_PATCHES]), links_of(nodes_a, i)[N_PATCH])[P_FREEDOMS]
            free_b = patch_of(integers_at(other[T_PATCHES]), links_of(nodes_b, j)[N_PATCH])[P_FREEDOMS]
            divide_a = (free_a > 0) & ((a[N_SIZE] >= b[N_SIZE]) | (free_b == 0))
            k = children(job if divide_a else other, i if divide_a else j, work)
            if k < 0:
                status = NODES_FULL
                break
            if divide_a:
                first_a, last_a, first_b, last_b = k, k + (1 << free_a), j, j + 1
            else:
                first_a, last_a, first_b, last_b = i, i + 1, k, k + (1 << free_b)
        new = (last_a - first_a) * (last_b - first_b)
        if count + new > job[J_ROOM]:
            status = HEAP_FULL
            break
        if pair_count > options[O_BUDGET]:
            status = BUDGET
            break
        pair_count += new
        for n in range(first_b, last_b):
            if links_of(nodes_b, n)[N_STATE] != OUTSIDE:
                if stamps[n] != tick:
                    stamps[n] = tick
                    move_node(other, n, T, moved)
                for m in range(first_a, last_a):
                    if links_of(nodes_a, m)[N_STATE] != OUTSIDE:
                        least = max(lower_bound(node_of(boxes_a, m), moved_of(moved, n), normal, limit), bound)
                        if least < limit:
                            if first:
                                tried = node_of(boxes_a, m)[N_SIZE] + node_of(boxes_b, n)[N_SIZE]
                            push(heap, count, least, tried, m, n)
                            count += 1
        first = False
    options[O_LOWER] = max(min(bound, options[O_LIMIT]), 0.0)
    options[O_PAIRS] = pair_count
    return status
