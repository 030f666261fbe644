"""Nodes of a tree: enclosures of boxes of the parameters, children.

Reads and writes the tables of a tree (:mod:`.tables`); the workspace is :class:`.tables.SearchWork`.
"""

from math import inf, sqrt

from cardan.geometry.tables import (
    BOUNDS,
    BOX_STATE,
    ENCLOSE,
    INSIDE,
    Enclosure,
    NodeBox,
    NodeLinks,
    PatchTable,
    SearchWork,
    ShapeFloats,
    ShapeInts,
    ShapeTable,
    TreeTable,
)
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import call_evaluator, floats_at, integers_at, pointer, tail


@inner
def norm(a):
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def enclose(patch, op, box, out, bounds, work):
    """Enclosure, or bounds of derivatives, of a box u₀ u₁ v₀ v₁."""
    q = work.box
    q[0], q[1] = 0.5 * (box[0] + box[1]), 0.5 * (box[2] + box[3])
    q[2], q[3] = 0.5 * (box[1] - box[0]), 0.5 * (box[3] - box[2])
    return call_evaluator(patch.enclose, op, patch.ints, patch.floats, q, tail(q, 2), out, bounds, work.scratch)


@inner
def make_node(tree, k, work):
    """Bounds of node k, whose patch, root and box are set."""
    links = NodeLinks(tree.nodes, k)
    node = NodeBox(tree.boxes, k)
    patch = PatchTable(tree.patches, links.patch)
    box = node.box
    out = node.as_floats
    enclose(patch, ENCLOSE, box, out, tail(tree.bounds, BOUNDS * links.root), work)
    node.extent = norm(node.edge_u) + norm(node.edge_v) + node.radius
    links.child = -1
    links.state = INSIDE
    if patch.loops != 0:
        loops = floats_at(patch.loops)
        links.state = call_evaluator(patch.trim, BOX_STATE, patch.as_ints, loops, box, box, out, box, box)


@jit
def make_roots(tree, work):
    """Bounds of the roots; returns a bound of the largest side of a box around them [m].  tree, work: addresses."""
    tree = TreeTable(integers_at(tree))
    work = SearchWork(floats_at(work))
    boxes = tree.boxes
    roots = tree.roots
    patch = PatchTable(tree.patches, 0)
    number = end = 0
    for k in range(roots):
        while k == end + patch.roots:
            end = k
            number += 1
            patch = PatchTable(tree.patches, number)
        links = NodeLinks(tree.nodes, k)
        links.patch = number
        links.root = k
        across = patch.across
        if across > 0:  # a span of a NURBS
            box = NodeBox(boxes, k).box
            at = ShapeFloats(patch.floats).numbers
            spans = ShapeInts(patch.ints).spans[0]
            u, v = patch.first_u + (k - end) // across, spans + 1 + patch.first_v + (k - end) % across
            box[0], box[1] = at[u], at[u + 1]
            box[2] = box[3] = 0.0
            if patch.freedoms == 2:
                box[2], box[3] = at[v], at[v + 1]
        make_node(tree, k, work)
    side = size = 0.0
    for c in range(3):
        low, high = inf, -inf
        for k in range(roots):
            node = NodeBox(boxes, k)
            low, high = min(low, node.center[c]), max(high, node.center[c])
            size = max(size, node.extent)
        side = max(side, high - low)
    return side + 2.0 * size


@inner
def children(tree, k, work):
    """First child of node k, made now if it has none; −1 if there is no room.  Two for a curve, four for a surface."""
    links = NodeLinks(tree.nodes, k)
    if links.child >= 0:
        return links.child
    count = tree.count
    first = count[0]
    if first + 4 > tree.capacity:
        return -1
    box = NodeBox(tree.boxes, k).box
    number = 1 << PatchTable(tree.patches, links.patch).freedoms
    for j in range(number):
        new = NodeLinks(tree.nodes, first + j)
        new.patch = links.patch
        new.root = links.root
        to = NodeBox(tree.boxes, first + j).box
        for i in range(2):
            low, high = box[2 * i], box[2 * i + 1]
            middle = 0.5 * (low + high)
            upper = (j >> i) & 1
            to[2 * i] = middle if upper else low
            to[2 * i + 1] = middle if (not upper and number > 1 + i) else high
        make_node(tree, first + j, work)
    count[0] = first + number
    links.child = first
    return first


@inner
def move_node(tree, k, T, moved):
    """moved ← centre, half edges and radius of node k of b in the axes of a."""
    node = NodeBox(tree.boxes, k)
    to = Enclosure(moved, k)
    for c in range(3):
        row = tail(T, 3 * c)
        to.center[c] = dot(row, node.center) + T[9 + c]
        to.edge_u[c] = dot(row, node.edge_u)
        to.edge_v[c] = dot(row, node.edge_v)
    to.radius = node.radius


@jit
def enclose_once(address, table, op, q, out, work):
    """Call an enclosure from Python; q: centre (2), half widths (2)."""
    shape = ShapeTable(integers_at(table))
    q = pointer(q)
    out = pointer(out)
    return call_evaluator(address, op, shape.ints, shape.floats, q, tail(q, 2), out, out, pointer(work))
