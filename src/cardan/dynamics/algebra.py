"""Linear algebra of the equations of motion: choice by size, order of elimination, and the pattern tables of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.constraints.registry import Primitive
from cardan.dynamics import tables
from cardan.dynamics.tables import WIDTH, Block, Column, Fill, Pair, Pattern, Strip
from cardan.lazy import LazyModule
from cardan.solvers.linear import band_order, factor_columns, factor_updates, minimum_degree
from cardan.solvers.problem import Algebra
from cardan.solvers.tables import Constraint, Structure
from cardan.system import tables as layout
from cardan.system.system import IntArray, System

_dual = LazyModule("cardan.dynamics._dual")
_kkt = LazyModule("cardan.dynamics._kkt")

DENSE_EQUATIONS = 60  # up to this number the dense matrix is as fast, and takes less time to prepare
HUB = 0.5  # of the most equations that a body has: a body with more is a hub
WORTH = 0.5  # of the cost of other orders: eliminating hubs last is taken if it costs less


class MotionAlgebra(NamedTuple):
    """Linear algebra of one system, and the row of each equation."""

    algebra: Algebra
    equations: IntArray


class Strips(NamedTuple):
    """Runs of rows of one constraint that are equations, one element each.

    ``row``, ``rows``, ``entry``: first row, number of rows, first entry in the Jacobian.  ``slots``, ``bodies``: number
    of bodies, and these, shape (strips, widest), filled up with −1.  ``fixed``: whether it depends on the ground.
    """

    row: IntArray
    rows: IntArray
    entry: IntArray
    slots: IntArray
    bodies: IntArray
    fixed: NDArray[np.bool_]

    def taken(self, order: IntArray) -> Strips:
        """In another order."""
        row, rows, entry, slots, bodies = (part[order] for part in self[:-1])
        return Strips(row, rows, entry, slots, bodies, self.fixed[order])

    @property
    def first(self) -> IntArray:
        """First equation of each."""
        return np.cumsum(self.rows) - self.rows

    @property
    def equations(self) -> IntArray:
        """The row of each equation."""
        return np.repeat(self.row, self.rows) + _within(self.rows)

    @property
    def table(self) -> IntArray:
        """As kernels read them."""
        starts = np.cumsum(Strip.size + self.slots) - Strip.size - self.slots
        out: IntArray = np.empty(starts.size * Strip.size + int(self.slots.sum()), dtype=np.int64)
        for name in ("first", "row", "rows", "entry", "slots"):
            out[starts + Strip.fields[name].first] = getattr(self, name)
        strip, slot = self.places
        out[starts[strip] + Strip.size + slot] = self.bodies[strip, slot]
        return out

    @property
    def places(self) -> tuple[IntArray, IntArray]:
        """Strip and slot of each block of the Jacobian, in order."""
        strip, slot = np.nonzero(self.bodies >= 0)
        return strip, slot


def linear_algebra(system: System, structure: IntArray, with_rates: bool = True) -> MotionAlgebra:
    """Dense where there are few equations, else block-sparse.  with_rates: whether rate rows are equations."""
    strips = read_strips(system, structure, with_rates)
    bodies = len(system.names)
    return dense(strips, bodies) if strips.rows.sum() <= DENSE_EQUATIONS else sparse(strips, bodies)


def read_strips(system: System, structure: IntArray, with_rates: bool = True) -> Strips:
    """Runs of rows that are equations; guard rows are none.  with_rates: whether rate rows are."""
    slots = system.ints[system.starts[:-1] + layout.SLOTS]
    records = Structure.size + np.cumsum(Constraint.size + slots) - Constraint.size - slots
    kinds = {id(primitive): primitive for primitive in system.primitives}
    number = {key: k for k, key in enumerate(kinds)}
    kind = np.array([number[id(primitive)] for primitive in system.primitives], dtype=np.int64)
    runs = [list(_runs(kind)) if with_rates or not kind.of_rates else [] for kind in kinds.values()]
    sizes = np.array([len(own) for own in runs], dtype=np.int64)
    every = np.array([run for own in runs for run in own], dtype=np.int64).reshape(-1, 2)
    counts = sizes[kind] if kind.size else kind
    owner = np.repeat(np.arange(kind.size), counts)
    first, rows = every[np.repeat((np.cumsum(sizes) - sizes)[kind], counts) + _within(counts)].T
    columns = np.arange(slots.max(initial=0))
    inside = columns < slots[:, None]
    at = np.where(inside, records[:, None] + Constraint.size + columns, 0)
    bodies = np.where(inside, structure[at], -1)
    absolute = np.array([not primitive.indifferent for primitive in kinds.values()], dtype=bool)
    fixed = _on_ground(system) | absolute[kind]
    entry = structure[records[owner] + Constraint.entry.first] + first * WIDTH * slots[owner]
    row = structure[records[owner] + Constraint.row.first] + first
    return Strips(row, rows, entry, slots[owner], bodies[owner], fixed[owner])


def _runs(primitive: Primitive) -> Iterator[tuple[int, int]]:
    """First row and number of rows of each run of a primitive's rows that are equations."""
    rows = [i for i in range(primitive.rows) if i not in primitive.guards]
    while rows:
        count = next((k for k, i in enumerate(rows) if i != rows[0] + k), len(rows))
        yield rows[0], count
        rows = rows[count:]


def _on_ground(system: System) -> NDArray[np.bool_]:
    """Whether each relation has a feature on the ground."""
    records = system.starts[:-1]
    counts = system.ints[records + layout.FEATURES]
    owner = np.repeat(np.arange(records.size), counts)
    first = records + layout.RECORD + system.ints[records + layout.SLOTS]
    features = first[owner] + layout.FEATURE * _within(counts)
    ground = (system.ints[features + layout.BODY] < 0) & (system.ints[features + layout.KIND] < layout.ANGLE)
    found: NDArray[np.bool_] = np.bincount(owner[ground], minlength=records.size) > 0
    return found


def _within(counts: IntArray) -> IntArray:
    """0, 1, …, n − 1 for each n of the counts, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _pattern(strips: Strips, bodies: int, table: IntArray, second: IntArray) -> IntArray:
    """Header, strips and two tables."""
    of_strips = strips.table
    first = Pattern.size + of_strips.size
    header = Pattern.new(
        bodies=bodies,
        equations=strips.rows.sum(),
        strip_count=strips.rows.size,
        first_table=first,
        second_table=first + table.size,
    )
    return np.concatenate([header.as_ints, of_strips, table, second])


def dense(strips: Strips, bodies: int) -> MotionAlgebra:
    """The dense matrix Ĵ Ĵᵀ: pairs of strips with a common body, and the first equation that each one is linked to."""
    strip, slot = strips.places
    order = np.argsort(strips.bodies[strip, slot], kind="stable")
    strip, slot = strip[order], slot[order]
    counts = np.bincount(strips.bodies[strip, slot], minlength=bodies)
    # each block with all blocks on the same body
    repeats = np.repeat(counts, counts)
    a = np.repeat(np.arange(strip.size), repeats)
    b = np.repeat(np.repeat(np.cumsum(counts) - counts, counts), repeats) + _within(repeats)
    below = strip[b] <= strip[a]
    a, b = a[below], b[below]
    order = np.lexsort((strip[b], slot[a], strip[a]))
    a, b = a[order], b[order]
    first, stride = strips.first, WIDTH * strips.slots
    entry = strips.entry[strip] + WIDTH * slot
    pairs = _records(
        Pair,
        first_a=first[strip[a]],
        first_b=first[strip[b]],
        rows_a=strips.rows[strip[a]],
        rows_b=strips.rows[strip[b]],
        entry_a=entry[a],
        entry_b=entry[b],
        stride_a=stride[strip[a]],
        stride_b=stride[strip[b]],
    )
    least = first.copy()
    np.minimum.at(least, strip[a], first[strip[b]])
    pattern = _pattern(strips, bodies, pairs, np.repeat(least, strips.rows))
    equations = strips.equations
    n = equations.size
    return MotionAlgebra(Algebra(_dual.ALGEBRA, pattern, _dual.matrix_size(n), n**3 / 6.0), equations)


@dataclass(frozen=True, slots=True)
class Graph:
    """Bodies and joints as nodes, bodies first.  A joint is all equations on the same bodies.

    ``heights``: rows of each joint.  ``links``: joint and body of each block.  ``bodies``, ``fixed``: of each joint, as
    those of strips.
    """

    count: int
    heights: IntArray
    links: tuple[IntArray, IntArray]
    bodies: IntArray
    fixed: NDArray[np.bool_]

    @property
    def nodes(self) -> int:
        return self.count + self.heights.size

    @property
    def widths(self) -> IntArray:
        """Unknowns of each node."""
        return np.concatenate([np.full(self.count, WIDTH), self.heights])

    @property
    def incidence(self) -> Any:
        """Sparse matrix, one row per joint, one column per body."""
        from scipy.sparse import csr_matrix

        return csr_matrix((np.ones(self.links[0].size), self.links), shape=(self.heights.size, self.count))


def grouped(strips: Strips, bodies: int) -> tuple[Strips, IntArray, Graph]:
    """Strips in an order in which those of a joint are together, the joint of each, and the graph."""
    keys = np.column_stack([strips.bodies, strips.fixed])
    _, example, joint = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rank = np.empty_like(example)
    rank[np.argsort(example)] = np.arange(example.size)  # in the order in which they are found
    joint = rank[joint.ravel()]
    order = np.argsort(joint, kind="stable")
    example = np.sort(example)
    heights = np.bincount(joint, weights=strips.rows, minlength=example.size).astype(np.int64)
    own = strips.bodies[example]
    number, slot = np.nonzero(own >= 0)
    graph = Graph(bodies, heights, (number, own[number, slot]), own, strips.fixed[example])
    return strips.taken(order), joint[order], graph


class Factor(NamedTuple):
    """A symbolic factor: nodes in order of elimination, its columns, their rows, and its cost in multiplications."""

    order: IntArray
    columns: IntArray
    rows: IntArray
    cost: float


def sparse(strips: Strips, bodies: int, order: IntArray | None = None) -> MotionAlgebra:
    """The block-sparse matrix, with its nodes eliminated in the given order, or in the cheapest one known."""
    strips, joint, graph = grouped(strips, bodies)
    factor = best_factor(graph) if order is None else symbolic(graph, order)
    pattern = _pattern(strips, bodies, *_tables(strips, joint, graph, factor))
    return MotionAlgebra(Algebra(_kkt.ALGEBRA, pattern, _kkt.matrix_size(pattern), factor.cost), strips.equations)


def best_factor(graph: Graph) -> Factor:
    """The cheapest of tree order, dual orders, and, where a few bodies have most of the cost, that with these last."""
    best = symbolic(graph, tree_order(graph))
    joints, bodies = graph.links
    rows = np.bincount(bodies, weights=graph.heights[joints], minlength=graph.count)
    least = float((WIDTH * rows * rows).sum()) / 2.0 + float(rows.max(initial=0.0)) ** 3 / 6.0
    if least >= best.cost:  # the equations of one body alone
        return best
    incidence = graph.incidence
    linked = incidence @ incidence.T
    for make in (band_order, minimum_degree):
        found = symbolic(graph, dual_order(graph, make(linked.indptr, linked.indices)))
        if found.cost < best.cost:
            best = found
        if found.rows.size == graph.nodes + joints.size + (linked.nnz - graph.heights.size) // 2:  # no fill
            break
    if least >= WORTH * best.cost:
        found = symbolic(graph, hub_order(graph, rows >= HUB * rows.max()))
        best = found if found.cost < WORTH * best.cost else best
    return best


def hub_order(graph: Graph, hubs: NDArray[np.bool_]) -> IntArray:
    """Dual order of all other bodies and the joints that they have, then the hubs, then joints of hubs alone.

    What is eliminated before a hub may touch both the hub and the ground, so rows may be dependent there that are not
    so in the whole mechanism.  Then ε keeps the pivots, and proximal iterations remove its effect.
    """
    joints, bodies = graph.links
    others = ~hubs[bodies]
    own = replace(graph, links=(joints[others], bodies[others]))
    linked = own.incidence @ own.incidence.T
    order = dual_order(own, minimum_degree(linked.indptr, linked.indices))
    alone = np.bincount(joints[others], minlength=graph.heights.size) == 0
    last = np.concatenate([np.where(hubs, 1, 0), np.where(alone, 2, 0)])
    return order[np.argsort(last[order], kind="stable")]


def dual_order(graph: Graph, joints: IntArray) -> IntArray:
    """Joints in this order, each body just before the first joint that it has."""
    last = graph.heights.size
    position: IntArray = np.empty(last, dtype=np.int64)
    position[joints] = np.arange(last)
    first: IntArray = np.full(graph.count, last, dtype=np.int64)
    np.minimum.at(first, graph.links[1], position[graph.links[0]])
    is_joint = np.arange(graph.nodes) >= graph.count
    return np.lexsort((is_joint, np.concatenate([first, position])))


def tree_order(graph: Graph) -> IntArray:
    """From the leaves of a tree to its root, the ground: each joint after all bodies of its loop but the nearest to it.

    In a tree of shortest paths, the bodies of a joint have a lowest common ancestor, and its loop consists of the paths
    to it.  The joint is eliminated after all other bodies of these paths, and before the ancestor.  So a joint of the
    tree comes between the body that it carries and the one that carries it, as in articulated-body algorithms.

    No pivot is singular unless rows are redundant.  Joints that are eliminated, and bodies that are, form connected
    parts; each touches one other body at the most, or the ground.  Rows that depend on relative poses alone keep their
    rank if one body of a part is fixed, because a rigid motion of all its bodies changes no row.
    """
    from scipy.sparse.csgraph import breadth_first_order

    ground = graph.nodes
    order, before = breadth_first_order(_rooted(graph), ground, directed=True, return_predecessors=True)
    rank: IntArray = np.empty(graph.nodes + 1, dtype=np.int64)
    rank[order] = np.arange(order.size)
    above = before[: graph.count]
    carrier = np.where(above == ground, ground, before[above])
    parent = np.append(np.where(carrier < graph.count, carrier, graph.count), graph.count)
    ancestor = _common_ancestors(parent, graph)
    position = np.append(-rank[: graph.count], 1)  # of bodies and the ground
    is_body = np.arange(graph.nodes) < graph.count
    return np.lexsort((is_body, np.concatenate([position[:-1], position[ancestor]])))


def _rooted(graph: Graph) -> Any:
    """Links of nodes and of the ground, the last node; a part without it is linked to it by the body of most joints."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    ground = graph.nodes
    fixed = graph.count + np.flatnonzero(graph.fixed)
    joints, bodies = graph.links
    a = np.concatenate([graph.count + joints, fixed])
    b = np.concatenate([bodies, np.full(fixed.size, ground)])

    def linked(a: IntArray, b: IntArray) -> Any:
        ends = np.concatenate([a, b]), np.concatenate([b, a])
        return csr_matrix((np.ones(2 * a.size), ends), shape=(ground + 1, ground + 1))

    _, part = connected_components(linked(a, b), directed=False)
    degree = np.bincount(bodies, minlength=graph.count)
    largest = np.lexsort((-degree, part[: graph.count]))
    own = part[largest]
    roots = largest[(np.diff(own, prepend=-1) != 0) & (own != part[ground])]
    return linked(np.concatenate([a, roots]), np.concatenate([b, np.full(roots.size, ground)]))


def _common_ancestors(parent: IntArray, graph: Graph) -> IntArray:
    """Lowest common ancestor of the bodies of each joint; the last element of ``parent`` is the ground."""
    ground = parent.size - 1
    levels = [parent]  # ancestors at distances 1, 2, 4, …
    depth = np.where(np.arange(parent.size) == ground, 0, 1)
    while (levels[-1] != ground).any():
        depth = depth + depth[levels[-1]]
        levels.append(levels[-1][levels[-1]])
    found = np.where(graph.fixed, ground, graph.bodies[:, 0] if graph.bodies.shape[1] else ground)
    for column in graph.bodies.T:
        a, b = found, np.where(column < 0, found, column)
        a, b = np.where(depth[a] >= depth[b], a, b), np.where(depth[a] >= depth[b], b, a)
        excess = depth[a] - depth[b]
        for k, level in enumerate(levels):
            a = np.where(excess >> k & 1, level[a], a)
        for level in reversed(levels):
            apart = level[a] != level[b]
            a, b = np.where(apart, level[a], a), np.where(apart, level[b], b)
        found = np.where(a == b, a, parent[a])
    return found


def symbolic(graph: Graph, order: IntArray) -> Factor:
    """The columns of the factor in an order of elimination."""
    from scipy.sparse import csr_matrix

    count = graph.nodes
    number: IntArray = np.empty(count, dtype=np.int64)
    number[order] = np.arange(count)
    a, b = number[graph.count + graph.links[0]], number[graph.links[1]]
    ends = np.concatenate([a, b]), np.concatenate([b, a])
    matrix = csr_matrix((np.ones(2 * a.size), ends), shape=(count, count))
    starts, neighbours = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    columns, rows = factor_columns(starts, neighbours)
    width = graph.widths[order].astype(float)
    below = np.add.reduceat(width[rows], columns[:-1]) - width
    divided = np.where(_plain(graph, order, rows), 0.0, width * width * (below / 2.0 + width / 6.0))
    return Factor(order, columns, rows, float((width * below * below).sum() / 2.0 + divided.sum()))


def _plain(graph: Graph, order: IntArray, rows: IntArray) -> NDArray[np.bool_]:
    """Whether each column is a body that no other column updates: its only entry in its row is on the diagonal."""
    found: NDArray[np.bool_] = (order < graph.count) & (np.bincount(rows, minlength=order.size) == 1)
    return found


def _tables(strips: Strips, joint: IntArray, graph: Graph, factor: Factor) -> tuple[IntArray, IntArray]:
    """The tables of :mod:`cardan.dynamics._kkt`: its header, and the rest."""
    order, columns, rows, _ = factor
    count, identity = graph.nodes, np.arange(graph.nodes)
    number: IntArray = np.empty(count, dtype=np.int64)
    number[order] = identity
    widths = graph.widths
    positions = (np.cumsum(widths) - widths)[order]
    widths = widths[order]
    of_column = np.repeat(identity, np.diff(columns))
    sizes = widths[rows] * widths[of_column]
    sizes[columns[:-1][_plain(graph, order, rows)]] = 0
    places = np.cumsum(sizes) - sizes
    updates, crossings = factor_updates(columns, rows)
    strip, slot = strips.places
    own, body = number[graph.count + joint[strip]], number[strips.bodies[strip, slot]]
    column, row = np.minimum(own, body), np.maximum(own, body)
    place = places[np.searchsorted(of_column * count + rows, column * count + row)]
    first = strips.first
    height = strips.rows[strip]
    within = first[strip] - (np.cumsum(graph.heights) - graph.heights)[joint[strip]]
    last = own > body
    by_column = np.argsort(column, kind="stable")
    ends = np.searchsorted(column[by_column], np.arange(count + 1))
    fills = {
        "source": strips.entry[strip] + WIDTH * slot,
        "stride": WIDTH * strips.slots[strip],
        "rows": height,
        "goal": place + within * np.where(last, WIDTH, 1),
        "row_step": np.where(last, WIDTH, 1),
        "column_step": np.where(last, 1, widths[own]),
        "sign": np.where(last, 1, -1),
        "equation": first[strip],
    }
    parts = {
        "columns": _records(
            Column,
            entry=columns,
            fill=ends,
            update=updates[:-1],
            breadth=np.append(widths, 0),
            sign=np.append(np.where(order < graph.count, 1, -1), 0),
            position=np.append(positions, 0),
        ),
        "entries": _records(
            Block,
            row=np.append(rows, count),
            height=np.append(widths[rows], 0),
            target=np.append(positions[rows], 0),
            place=np.append(places, sizes.sum()),
        ),
        "fills": _records(Fill, **{name: values[by_column] for name, values in fills.items()}),
        "updates": crossings[:-1],
    }
    header = tables.Factor.new(count=count, values=sizes.sum())
    at = Pattern.size + strips.table.size + tables.Factor.size
    for name, part in parts.items():
        setattr(header, name, at)
        at += part.size
    return header.as_ints, np.concatenate(list(parts.values()))


def _records(table: Any, **fields: IntArray) -> IntArray:
    """Columns of a table as records, one after the other."""
    columns: IntArray = np.array([fields[name] for name in table.fields], dtype=np.int64)
    return columns.T.reshape(-1)
