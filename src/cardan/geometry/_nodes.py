"""Nodes of a tree: enclosures of boxes of the parameters, their place in a trimmed domain, children.

Reads and writes the tables of a tree (:mod:`.abi`); the workspace is that of ``_workspace.py``.
"""

from math import inf, sqrt

from cardan._jit import call_evaluator, cut, floats_at, inner, integers_at, jit, pointer, tail
from cardan.geometry import abi
from cardan.geometry._workspace import BOX, SCRATCH


@inner
def norm(a):
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


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
    """Bounds of the roots; returns a bound of the largest side of a box around them [m].  tree: address."""
    tree = integers_at(tree)
    work = pointer(work)
    boxes = floats_at(tree[abi.T_BOXES])
    for k in range(tree[abi.T_ROOTS]):
        integers_at(tree[abi.T_NODES])[abi.NODE_INTS * k + abi.N_ROOT] = k
        make_node(tree, k, work)
    side = size = 0.0
    for c in range(3):
        low, high = inf, -inf
        for k in range(tree[abi.T_ROOTS]):
            low, high = min(low, boxes[abi.NODE * k + c]), max(high, boxes[abi.NODE * k + c])
            size = max(size, boxes[abi.NODE * k + abi.N_SIZE])
        side = max(side, high - low)
    return side + 2.0 * size


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


@jit
def enclose_once(address, table, op, q, out, work):
    """Call an enclosure from Python; q: centre (2), half widths (2)."""
    table = integers_at(table)
    q = pointer(q)
    out = pointer(out)
    ints, floats = integers_at(table[1]), floats_at(table[2])
    return call_evaluator(address, op, ints, floats, q, tail(q, 2), out, out, pointer(work))
