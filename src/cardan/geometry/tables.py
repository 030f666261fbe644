"""Tables of shapes and searches that kernels read, and the operations of the evaluators of shapes.

A shape is a table of integers (:class:`ShapeInts`), a table of floats (:class:`ShapeFloats`) and the address of an
evaluator of the fixed ABI: ``evaluate(op, ints, floats, q, step, out, jacobian, work)``.

========== ==========================================================================================================
op 0 … 3   out ← S and its derivatives up to that order at q, rows of three numbers, ROWS of them; with one parameter
           S, S', S'', S'''; with two S, S_u, S_v, S_uu, S_uv, S_vv, …  ``work`` has as many floats as ints say.
RETRACT    out ← q ⊕ step, within the bounds; ``step`` has a number per freedom, q and out have the width of the shape
========== ==========================================================================================================

Derivatives are with respect to the step: S(q ⊕ (u, v)) at u = v = 0.  For most shapes q = (u, v) and ⊕ is +.  Spheres
have q = m, a unit vector: no poles and no seams.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.kernel.table import Address, Float, Int, Ref, Table

RETRACT = np.int64(8)
ENCLOSE, DERIVATIVES = np.int64(0), np.int64(1)  # operations of enclosures (_enclose.py, _taylor.py)
BOX_STATE, IS_INSIDE = np.int64(0), np.int64(1)  # operations on the loops of a face (_trim.py)

ROWS: Final = (1, 3, 6, 10)  # number of rows up to each order, for two parameters

# kinds of closed forms
POINT, LINE, CIRCLE, PLANE, SPHERE, CYLINDER, CONE, TORUS = range(8)

INSIDE, CROSSING, OUTSIDE = range(3)  # states of a node of a trimmed face
COLD, WARM, LOCAL, ALL = range(4)  # modes of a search
FOUND, NODES_FULL, HEAP_FULL, BUDGET = range(4)  # status of a search

BALLS: Final = 256  # balls of a search at the most
BOUNDS: Final = 9  # bounds of |∂S/∂u|, |∂S/∂v|, |∂²S/∂u²|, … on a root of a search
POSE: Final = 7  # numbers of a pose: x, y, z, then the quaternion w, x, y, z


class ShapeInts(Table):
    """The integers of a shape."""

    freedoms: Int  # number of parameters
    width: Int  # numbers of q
    degrees: Int[2]
    spans: Int[2]
    kind: Int  # of a closed form
    work: Int  # floats of the workspace of the evaluator
    more: Int[...]  # address of the evaluator, where the enclosure needs it; tables of other shapes


class Limit(Table):
    """Bounds of one parameter."""

    lower: Float
    upper: Float
    period: Float  # 0: not periodic


LIMITS: Final = 2 * Limit.size  # floats of the bounds of both parameters


class ShapeFloats(Table):
    """The floats of a shape."""

    limits: Float[LIMITS]  # a Limit per parameter
    numbers: Float[...]  # of its kind


class ShapeTable(Table):
    """A shape by its addresses."""

    evaluator: Address
    ints: Ref[Int]
    floats: Ref[Float]


class Chain(Table):
    """A chain of segments of a loop."""

    low_u: Float
    high_u: Float
    low_v: Float
    high_v: Float
    first: Float  # place of its points
    count: Float  # of its segments


class Loops(Table):
    """The packed loops of a trimmed face: the chains, then their points."""

    count: Float  # of chains
    chains: Float[...]


class PatchTable(Table):
    """A smooth part of a shape (two continuous derivatives), with an evaluator of its own."""

    evaluator: Address
    ints: Ref[Int]
    floats: Ref[Float]
    freedoms: Int
    enclose: Address
    loops: Address  # of the loops of a trimmed face, or 0
    roots: Int  # number of its roots, boxes of its parameters
    first_u: Int  # of roots that are spans of a NURBS: the first span in u
    first_v: Int
    across: Int  # their number in v; else 0
    trim: Address


class NodeLinks(Table):
    """A node of a tree: its place in the tree."""

    patch: Int
    root: Int
    child: Int  # the first of its children; −1: not made yet
    state: Int  # INSIDE, CROSSING, OUTSIDE


class Enclosure(Table):
    """A parallelogram with a radius around a part of a shape [m]."""

    center: Float[3]
    edge_u: Float[3]  # half an edge
    edge_v: Float[3]
    radius: Float


class NodeBox(Enclosure):
    """A node of a tree: its enclosure and its box of the parameters."""

    box: Float[4]  # u₀ u₁ v₀ v₁
    extent: Float  # [m]


class TreeTable(Table):
    """The search structure of one shape."""

    patches: Ref[PatchTable]
    limits: Ref[Float]  # LIMITS of each patch
    nodes: Ref[NodeLinks]
    boxes: Ref[NodeBox]
    bounds: Ref[Float]  # BOUNDS of each root
    count: Ref[Int]  # number of nodes
    capacity: Int
    roots: Int


class HeapEntry(Table):
    """A pair of nodes that may contain the closest pair."""

    bound: Float  # of the distance, from below [m]
    tried: Float  # size at which its line was polished last [m]
    node_a: Float
    node_b: Float


class Ball(Table):
    """A ball around a minimum in which no pair is closer."""

    patches: Float[2]
    x: Float[4]
    sigma: Float[4]
    rho: Float
    distance: Float  # [m]; −1: the minimum is outside the loops


class SearchOptions(Table):
    """Options and results of a search."""

    tolerance: Float  # [m]
    budget: Float  # pairs of boxes
    mode: Float  # COLD, WARM, LOCAL, ALL
    cut: Float  # pairs that are not closer are not sought [m]
    tick: Float  # number of the search
    distance: Float  # [m]
    lower: Float  # bound of the distance [m]
    radius: Float  # of the ball around the closest pair
    patch_a: Float
    patch_b: Float
    pairs: Float
    polishes: Float
    iterations: Float
    balls: Float
    point_a: Float[3]  # in the axes of a [m]
    point_b: Float[3]
    limit: Float  # pairs of boxes that are not closer than this are discarded [m]


class SearchState(Table):
    """What a search begins and ends with."""

    x: Float[4]  # parameters of both shapes
    pose: Float[POSE]  # of b relative to a
    options: Float[SearchOptions.size]


class SearchJob(Table):
    """A search: both trees, and memory."""

    trees: Int[2 * TreeTable.size]
    moved: Ref[Enclosure]  # nodes of b in the axes of a
    stamps: Ref[Int]  # number of the search in which each was moved
    heap: Ref[HeapEntry]
    room: Int  # entries that fit into the heap
    balls: Ref[Ball]
    work: Ref[Float]
    state: Ref[SearchState]
    exclude: Address


class SearchWork(Table):
    """The workspace of a search."""

    rows_a: Float[30]
    rows_b: Float[18]  # up to order two
    spare: Float[4]
    trial: Float[4]
    direction: Float[4]
    v: Float[12]
    h: Float[16]
    g: Float[4]
    fixed: Float[4]
    factor: Float[16]
    dx: Float[4]
    y: Float[4]
    normal: Float[4]  # r
    bounds: Float[20]  # of derivatives of a, then of b, ten each
    box: Float[4]
    clipped: Float[4]
    part_bounds: Float[9]
    frame: Float[12]  # R by rows, then t
    change: Float[16]
    system: Float[32]
    scratch: Float[...]  # of evaluators and enclosures


class SearchLoop(Table):
    """The state of the loop of a search."""

    count: Int  # of entries in the heap
    pairs: Int  # that were bounded so far
    start: Int  # roots of a that were tried as starts
    starts: Int
    node_a: Int
    node_b: Int
    is_first: Int  # the roots are not in the heap yet
    polishes: Int  # whether the present pair is polished
    rarely: Int  # whether polishes are rationed
    status: Int
    bound: Float
    tried: Float
    deepest: Float  # size of the smallest pair that was polished
    limit: Float


ENCLOSURE_MORE: Final = 36  # floats of an enclosure besides the coefficients


def enclosing(n: int, m: int) -> int:
    """Floats that the enclosure of a shape with n × m coefficients per span needs."""
    return 4 * n * m + ENCLOSURE_MORE + 4 * n + 4 * m
