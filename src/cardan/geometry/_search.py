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
Reads a job (:mod:`.tables`) with the pose of b relative to a; writes x, options, nodes and heap.
"""

from math import inf, sqrt

from cardan.geometry._balls import ball_radius, in_a_ball
from cardan.geometry._nodes import children, move_node
from cardan.geometry._polish import open_pose, polish
from cardan.geometry.tables import (
    ALL,
    BALLS,
    BUDGET,
    COLD,
    ENCLOSE,
    FOUND,
    HEAP_FULL,
    IS_INSIDE,
    LIMITS,
    LOCAL,
    NODES_FULL,
    OUTSIDE,
    Ball,
    Enclosure,
    HeapEntry,
    NodeBox,
    NodeLinks,
    PatchTable,
    SearchJob,
    SearchLoop,
    SearchOptions,
    SearchWork,
    TreeTable,
)
from cardan.kernel.fields import local
from cardan.kernel.jit import inner, jit, plain
from cardan.kernel.memory import call_evaluator, floats_at, integers_at, tail

POLISH_AGAIN = 0.05  # a pair this much smaller than where its line was polished last is polished
POLISH_DEEPER = 0.25  # a pair this much smaller than any polished before is polished
POLISH_PAIRS, POLISH_FIRST = 1000, 3000  # one polish per so many pairs at most, after the first few
NEARLY = 1.05  # of the least distance: pairs of boxes around farther minima are discarded by their bounds
NEAR = 0.5  # of the size of a pair of boxes: a polish from it ends this near to a minimum that is known
SAME = 1e-3  # of the radius of a ball: a minimum this near to its centre is the same
NONE = plain(-1)


@inner
def gap_along(n0, n1, n2, x, y, z, A, B):
    """|n·d| minus the half widths of both parallelograms along n, which need not be a unit vector."""
    gap = abs(n0 * x + n1 * y + n2 * z)
    gap -= abs(n0 * A.edge_u[0] + n1 * A.edge_u[1] + n2 * A.edge_u[2])
    gap -= abs(n0 * B.edge_u[0] + n1 * B.edge_u[1] + n2 * B.edge_u[2])
    gap -= abs(n0 * A.edge_v[0] + n1 * A.edge_v[1] + n2 * A.edge_v[2])
    gap -= abs(n0 * B.edge_v[0] + n1 * B.edge_v[1] + n2 * B.edge_v[2])
    return gap


@inner
def lower_bound(A, B, normal, need):
    """A lower bound of the distance between two enclosures: their largest gap along three directions n.

    ``need`` as soon as it is reached.
    """
    x, y, z = B.center[0] - A.center[0], B.center[1] - A.center[1], B.center[2] - A.center[2]
    radii = A.radius + B.radius
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
                e = tail(A.edge_u if i < 2 else B.edge_u, 3 * (i & 1))  # edge_v follows edge_u
                unit = 1.0 / (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + 1e-300)  # independent of n
                s = min(1.0, max(-1.0, (n0 * e[0] + n1 * e[1] + n2 * e[2]) * unit))
                n0 -= s * e[0]
                n1 -= s * e[1]
                n2 -= s * e[2]
    return best


@inner
def put(entry, source):
    """entry ← source."""
    entry.bound = source.bound
    entry.tried = source.tried
    entry.node_a = source.node_a
    entry.node_b = source.node_b


@inner
def push(heap, loop, bound, tried, i, j):
    """Add a pair of nodes to the heap."""
    k = loop.count
    loop.count += 1
    while k > 0:
        up = HeapEntry(heap, (k - 1) >> 1)
        if up.bound <= bound:
            break
        put(HeapEntry(heap, k), up)
        k = (k - 1) >> 1
    entry = HeapEntry(heap, k)
    entry.bound = bound
    entry.tried = tried
    entry.node_a = i
    entry.node_b = j


@inner
def pop(heap, loop):
    """Remove the first entry of the heap."""
    count = loop.count
    loop.count -= 1
    last = HeapEntry(heap, count - 1)
    k = 0
    while 2 * k + 2 < count:
        down = 2 * k + 1
        if down + 2 < count and HeapEntry(heap, down + 1).bound < HeapEntry(heap, down).bound:
            down += 1
        source = HeapEntry(heap, down)
        if source.bound >= last.bound:
            break
        put(HeapEntry(heap, k), source)
        k = down
    put(HeapEntry(heap, k), last)


@inner
def squared_distance(A, B):
    """Of two centres."""
    dx, dy, dz = A.center[0] - B.center[0], A.center[1] - B.center[1], A.center[2] - B.center[2]
    return dx * dx + dy * dy + dz * dz


@inner
def is_feasible(patches, trial):
    """Whether the parameters of both shapes are inside the loops of trimmed faces."""
    for k in range(2):
        patch = patches[k]
        if patch.loops != 0:
            q = tail(trial, 2 * k)
            if call_evaluator(patch.trim, IS_INSIDE, patch.as_ints, floats_at(patch.loops), q, q, q, q, q) == 0:
                return False
    return True


@inner
def improve(job, i, j, T, x, options, work):
    """Polish from the centres of the nodes i and j, or from x if there are none; record the minimum and its ball."""
    one, two = TreeTable(job.trees, 0), TreeTable(job.trees, 1)
    trial = work.trial
    mode = options.mode
    size = 0.0
    if i < 0:
        for k in range(4):
            trial[k] = x[k]
        at_a, at_b = int(options.patch_a), int(options.patch_b)
    else:
        a, b = NodeBox(one.boxes, i), NodeBox(two.boxes, j)
        for k in range(2):
            trial[k] = 0.5 * (a.box[2 * k] + a.box[2 * k + 1])
            trial[2 + k] = 0.5 * (b.box[2 * k] + b.box[2 * k + 1])
        size = a.extent + b.extent
        at_a = NodeLinks(one.nodes, i).patch
        at_b = NodeLinks(two.nodes, j).patch
    numbers = (at_a, at_b)
    patches = (PatchTable(one.patches, at_a), PatchTable(two.patches, at_b))
    limits = (tail(one.limits, LIMITS * at_a), tail(two.limits, LIMITS * at_b))
    trimmed = (patches[0].loops | patches[1].loops) != 0
    reach = SAME if trimmed | (mode == ALL) else 1.0
    near = NEAR * size if reach == 1.0 else 0.0
    count = int(options.balls)
    distance = polish(patches, limits, trial, T, (job.balls, count), numbers, (reach, near), work)
    options.polishes += 1.0
    options.iterations += work.y[0]
    rest, known = work.y[1], work.y[2] != 0.0
    feasible = True
    if trimmed:
        feasible = is_feasible(patches, trial)
    improved = (mode == LOCAL) | (feasible & (distance < options.distance * (1.0 - 1e-14)))
    if improved:
        options.distance = distance
        options.patch_a = at_a
        options.patch_b = at_b
        if mode != ALL:
            options.limit = min(distance - options.tolerance, options.cut)
        for k in range(4):
            x[k] = trial[k]
        for k in range(3):
            options.point_a[k] = work.rows_a[k]
            options.point_b[k] = work.rows_b[k]
            if distance > 0.0:
                work.direction[k] = work.normal[k] / distance
    is_near = (mode != LOCAL) & (distance < NEARLY * options.distance) & (options.limit > 0.0)
    if ((mode == ALL) | is_near) & (count < BALLS) & (distance > 0.0) & (not known):
        rho = ball_radius(job, numbers, patches, trial, distance, mode == ALL, work)
        if improved:
            options.radius = rho
        ball = Ball(job.balls, count)
        ball.patches[0] = at_a
        ball.patches[1] = at_b
        for k in range(4):
            ball.x[k] = trial[k]
            ball.sigma[k] = work.dx[k]
        ball.rho = rho
        # g is not exactly zero: f ≥ f* − |g| ρ, where |g| ≤ 2 rest
        ball.distance = distance - 4.0 * rest * rho / distance if feasible else -1.0
        if (rho > 0.0) | ((mode == ALL) & feasible):
            options.balls += 1.0


@inner
def move_once(tree, n, T, job, tick):
    """Node n of b in the axes of a, moved once in a search."""
    if job.stamps[n] != tick:
        job.stamps[n] = tick
        move_node(tree, n, T, job.moved)
    return Enclosure(job.moved, n)


@inner
def nearest_untrimmed(job, i, T, tick):
    """The root of b with the centre nearest to that of the root i of a, both without loops; −1 if there is none."""
    one, two = TreeTable(job.trees, 0), TreeTable(job.trees, 1)
    nearest_root = NONE
    if PatchTable(one.patches, NodeLinks(one.nodes, i).patch).loops == 0:
        nearest = inf
        for n in range(two.roots):
            if PatchTable(two.patches, NodeLinks(two.nodes, n).patch).loops == 0:
                d = squared_distance(NodeBox(one.boxes, i), move_once(two, n, T, job, tick))
                if d < nearest:
                    nearest, nearest_root = d, n
    return nearest_root


@inner
def nearest_roots(job, T, tick, loop):
    """node_a, node_b of the loop ← the roots with the nearest centres: the first start."""
    one, two = TreeTable(job.trees, 0), TreeTable(job.trees, 1)
    nearest = inf
    for n in range(two.roots):
        if NodeLinks(two.nodes, n).state != OUTSIDE:
            B = move_once(two, n, T, job, tick)
            for m in range(one.roots):
                if NodeLinks(one.nodes, m).state != OUTSIDE:
                    d = squared_distance(NodeBox(one.boxes, m), B)
                    if d < nearest:
                        nearest, loop.node_a, loop.node_b = d, m, n


@inner
def next_start(job, T, tick, normal, loop):
    """The next root of a, and its nearest root of b: so that there is an upper bound from the beginning."""
    if loop.start >= 0:
        loop.node_a = loop.start
        loop.node_b = nearest_untrimmed(job, loop.start, T, tick)
        loop.polishes = 0
        if loop.node_b >= 0:
            A, B = NodeBox(TreeTable(job.trees, 0).boxes, loop.node_a), Enclosure(job.moved, loop.node_b)
            if lower_bound(A, B, normal, loop.limit) < loop.limit:
                loop.polishes = 1


@inner
def next_pair(job, options, loop):
    """The pair of least bound, and whether it is polished; False if it cannot contain the closest pair."""
    heap = job.heap
    first = HeapEntry(heap, 0)
    loop.tried = first.tried
    loop.node_a, loop.node_b = int(first.node_a), int(first.node_b)
    pop(heap, loop)
    i, j = loop.node_a, loop.node_b
    if in_a_ball(job, i, j, -0.5 if options.mode == ALL else options.limit, int(options.balls)):
        return False
    if options.mode == ALL:
        work = SearchWork(job.work)
        work.box[0], work.box[1] = i, j
        T, memory = work.frame, work.as_floats
        if call_evaluator(job.exclude, ENCLOSE, job.as_ints, T, T, T, memory, memory, memory) != 0:
            return False
    size = NodeBox(TreeTable(job.trees, 0).boxes, i).extent + NodeBox(TreeTable(job.trees, 1).boxes, j).extent
    often = (loop.rarely != 0) & (POLISH_PAIRS * options.polishes > loop.pairs + POLISH_FIRST)
    loop.polishes = 0
    if (size < POLISH_DEEPER * loop.deepest) | ((size < POLISH_AGAIN * loop.tried) & (not often)):
        loop.polishes = 1
        loop.tried = size
        loop.deepest = min(loop.deepest, size)
    return True


@inner
def divide(job, T, tick, normal, options, loop):
    """Put the pairs of the roots, or of the children of the present pair, into the heap; False if this ends."""
    one, two = TreeTable(job.trees, 0), TreeTable(job.trees, 1)
    first_a, last_a, first_b, last_b = 0, one.roots, 0, two.roots
    if loop.is_first == 0:
        i, j = loop.node_a, loop.node_b
        a, b = NodeBox(one.boxes, i), NodeBox(two.boxes, j)
        free_a = PatchTable(one.patches, NodeLinks(one.nodes, i).patch).freedoms
        free_b = PatchTable(two.patches, NodeLinks(two.nodes, j).patch).freedoms
        divide_a = (free_a > 0) & ((a.extent >= b.extent) | (free_b == 0))
        k = children(one if divide_a else two, i if divide_a else j, SearchWork(job.work))
        if k < 0:
            loop.status = NODES_FULL
            return False
        if divide_a:
            first_a, last_a, first_b, last_b = k, k + (1 << free_a), j, j + 1
        else:
            first_a, last_a, first_b, last_b = i, i + 1, k, k + (1 << free_b)
    new = (last_a - first_a) * (last_b - first_b)
    if loop.count + new > job.room:
        loop.status = HEAP_FULL
        return False
    if loop.pairs > options.budget:
        loop.status = BUDGET
        return False
    loop.pairs += new
    for n in range(first_b, last_b):
        if NodeLinks(two.nodes, n).state != OUTSIDE:
            B = move_once(two, n, T, job, tick)
            for m in range(first_a, last_a):
                if NodeLinks(one.nodes, m).state != OUTSIDE:
                    A = NodeBox(one.boxes, m)
                    least = max(lower_bound(A, B, normal, loop.limit), loop.bound)
                    if least < loop.limit:
                        if loop.is_first != 0:
                            loop.tried = A.extent + NodeBox(two.boxes, n).extent
                        push(job.heap, loop, least, loop.tried, m, n)
    loop.is_first = 0
    return True


@jit
def search(job):
    """The closest pair; returns a status.

    job: address.  In its state, x is the start in modes WARM and LOCAL.
    """
    job = SearchJob(integers_at(job))
    state = job.state
    options = SearchOptions(state.options)
    work = SearchWork(job.work)
    T, normal = work.frame, work.direction
    open_pose(state.pose, T)
    tick = int(options.tick)
    mode = options.mode
    for k in range(3):
        normal[k] = 0.0
    options.distance = inf
    options.limit = options.cut
    options.balls = options.polishes = options.iterations = 0.0
    one, two = TreeTable(job.trees, 0), TreeTable(job.trees, 1)
    loop = local(SearchLoop)
    loop.node_a = loop.node_b = loop.start = -1
    loop.is_first = loop.polishes = 1
    loop.status = FOUND
    loop.deepest = inf
    loop.limit = options.limit
    if (mode == ALL) | (mode == COLD):
        nearest_roots(job, T, tick, loop)
    # minima outside a trimmed domain do not count, so that polishes from the smallest boxes are needed
    loops = PatchTable(one.patches, 0).loops | PatchTable(two.patches, 0).loops
    if (loops == 0) & (mode != ALL):
        loop.rarely = 1
    if loops != 0:  # each root of an edge is also a start: its points always count
        loop.starts = one.roots
    while True:
        if loop.is_first != 0:
            next_start(job, T, tick, normal, loop)
        else:
            loop.bound = inf
            if loop.count > 0:
                loop.bound = HeapEntry(job.heap, 0).bound
            if loop.bound >= options.limit:
                break
            if not next_pair(job, options, loop):
                continue
        if loop.polishes != 0:
            improve(job, loop.node_a, loop.node_b, T, state.x, options, work)
        loop.limit = options.limit
        if (mode == LOCAL) | (loop.bound >= loop.limit):
            break
        loop.start += 1
        if (loop.is_first != 0) & (loop.start < loop.starts):
            continue
        if not divide(job, T, tick, normal, options, loop):
            break
    options.lower = max(min(loop.bound, options.limit), 0.0)
    options.pairs = loop.pairs
    return loop.status
