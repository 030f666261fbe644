"""Nodes of a tree: enclosures of boxes of the parameters, children.

Reads and writes the tables of a tree (:mod:`.abi`); the workspace is that of ``_workspace.py``.
"""

from math import inf, sqrt

from cardan.geometry._workspace import BOX, SCRATCH
from cardan.geometry.abi import (
    BOUNDS,
    BOX_STATE,
    ENCLOSE,
    INSIDE,
    LIMITS,
    MOVED,
    N_BOX,
    N_CHILD,
    N_PATCH,
    N_RADIUS,
    N_ROOT,
    N_SIZE,
    N_STATE,
    NODE,
    NODE_INTS,
    P_ACROSS,
    P_ENCLOSE,
    P_FIRST_U,
    P_FIRST_V,
    P_FLOATS,
    P_FREEDOMS,
    P_INTS,
    P_LIMITS,
    P_LOOPS,
    P_ROOTS,
    P_TRIM,
    PATCH,
    SPANS_U,
    T_BOUNDS,
    T_BOXES,
    T_CAPACITY,
    T_COUNT,
    T_NODES,
    T_PATCHES,
    T_ROOTS,
)
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import call_evaluator, cut, floats_at, integers_at, piece, pointer, tail

# accessors (array, k)
node_of = piece(NODE, 0, NODE)
box_of = piece(NODE, N_BOX, 4)
links_of = piece(NODE_INTS, 0, NODE_INTS)
patch_of = piece(PATCH, 0, PATCH)
limits_of = piece(P_LIMITS, 0, P_LIMITS)
bounds_of = piece(BOUNDS, 0, BOUNDS)
moved_of = piece(MOVED, 0, MOVED)


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
    floats = floats_at(patch[P_FLOATS])
    ints = integers_at(patch[P_INTS])
    return call_evaluator(patch[P_ENCLOSE], op, ints, floats, q, tail(q, 2), out, bounds, tail(work, SCRATCH))


@inner
def make_node(tree, k, work):
    """Bounds of node k, whose patch, root and box are set."""
    links = links_of(integers_at(tree[T_NODES]), k)
    node = node_of(floats_at(tree[T_BOXES]), k)
    patch = patch_of(integers_at(tree[T_PATCHES]), links[N_PATCH])
    box = tail(node, N_BOX)
    enclose(patch, ENCLOSE, box, node, bounds_of(floats_at(tree[T_BOUNDS]), links[N_ROOT]), work)
    node[N_SIZE] = norm(tail(node, 3)) + norm(tail(node, 6)) + node[N_RADIUS]
    links[N_CHILD] = -1
    links[N_STATE] = INSIDE
    if patch[P_LOOPS] != 0:
        loops = floats_at(patch[P_LOOPS])
        links[N_STATE] = call_evaluator(patch[P_TRIM], BOX_STATE, patch, loops, box, box, node, work, work)


@jit
def make_roots(tree, work):
    """Bounds of the roots; returns a bound of the largest side of a box around them [m].  tree, work: addresses."""
    tree = integers_at(tree)
    work = floats_at(work)
    boxes = floats_at(tree[T_BOXES])
    roots = tree[T_ROOTS]
    patch = integers_at(tree[T_PATCHES])
    number = end = 0
    for k in range(roots):
        while k == end + patch[P_ROOTS]:
            end = k
            number += 1
            patch = tail(patch, PATCH)
        links = links_of(integers_at(tree[T_NODES]), k)
        links[N_PATCH] = number
        links[N_ROOT] = k
        across = patch[P_ACROSS]
        if across > 0:  # a span of a NURBS
            box = box_of(boxes, k)
            at = tail(floats_at(patch[P_FLOATS]), LIMITS)
            spans = integers_at(patch[P_INTS])[SPANS_U]
            u, v = patch[P_FIRST_U] + (k - end) // across, spans + 1 + patch[P_FIRST_V] + (k - end) % across
            box[0], box[1] = at[u], at[u + 1]
            box[2] = box[3] = 0.0
            if patch[P_FREEDOMS] == 2:
                box[2], box[3] = at[v], at[v + 1]
        make_node(tree, k, work)
    side = size = 0.0
    for c in range(3):
        low, high = inf, -inf
        for k in range(roots):
            node = node_of(boxes, k)
            low, high = min(low, node[c]), max(high, node[c])
            size = max(size, node[N_SIZE])
        side = max(side, high - low)
    return side + 2.0 * size


@inner
def children(tree, k, work):
    """First child of node k, made now if it has none; −1 if there is no room.  Two for a curve, four for a surface."""
    nodes = integers_at(tree[T_NODES])
    links = links_of(nodes, k)
    if links[N_CHILD] >= 0:
        return links[N_CHILD]
    count = integers_at(tree[T_COUNT])
    first = count[0]
    if first + 4 > tree[T_CAPACITY]:
        return -1
    boxes = floats_at(tree[T_BOXES])
    box = box_of(boxes, k)
    number = 1 << patch_of(integers_at(tree[T_PATCHES]), links[N_PATCH])[P_FREEDOMS]
    for j in range(number):
        new = links_of(nodes, first + j)
        new[N_PATCH] = links[N_PATCH]
        new[N_ROOT] = links[N_ROOT]
        to = box_of(boxes, first + j)
        for i in range(2):
            low, high = box[2 * i], box[2 * i + 1]
            middle = 0.5 * (low + high)
            upper = (j >> i) & 1
            to[2 * i] = middle if upper else low
            to[2 * i + 1] = middle if (not upper and number > 1 + i) else high
        make_node(tree, first + j, work)
    count[0] = first + number
    links[N_CHILD] = first
    return first


@inner
def move_node(tree, k, T, moved):
    """moved ← centre, half edges and radius of node k of b in the axes of a."""
    node = node_of(floats_at(tree[T_BOXES]), k)
    to = moved_of(moved, k)
    for i in range(3):
        p = tail(node, 3 * i)
        for c in range(3):
            row = tail(T, 3 * c)
            value = dot(row, p)
            to[3 * i + c] = value + T[9 + c] if i == 0 else value
    to[N_RADIUS] = node[N_RADIUS]


@jit
def enclose_once(address, table, op, q, out, work):
    """Call an enclosure from Python; q: centre (2), half widths (2)."""
    table = integers_at(table)
    q = pointer(q)
    out = pointer(out)
    ints, floats = integers_at(table[1]), floats_at(table[2])
    return call_evaluator(address, op, ints, floats, q, tail(q, 2), out, out, pointer(work))
