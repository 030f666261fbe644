"""Choice of the linear algebra of a problem, by its size and structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.lazy import LazyModule
from cardan.solvers import tables
from cardan.solvers.problem import Algebra
from cardan.solvers.tables import DualPattern, SparsePattern, Structure

_cholesky = LazyModule("cardan.math._block_cholesky")
_dense_normal = LazyModule("cardan.solvers._dense_normal")
_dual_normal = LazyModule("cardan.solvers._dual_normal")

IntArray = NDArray[np.int64]

DENSE_UNKNOWNS = 60  # up to this size the dense matrix is faster: it needs no symbolic factorisation
MOST_INTERPRETED = 500  # nodes of a graph, which take a millisecond: SciPy takes 0.3 s to import
_UNKNOWNS = Structure.unknowns.first
KEPT = 10_000  # integers of a structure, at most, whose symbolic factorisation is kept for other mechanisms like it


def linear_algebra(structure: IntArray) -> Algebra:
    """Dense normal equations for small problems, block-sparse ones for large problems."""
    if structure[_UNKNOWNS] <= DENSE_UNKNOWNS:
        return _dense(structure)
    return _kept(structure.tobytes()) if structure.size <= KEPT else sparse(structure)


@lru_cache(maxsize=64)
def _kept(table: bytes) -> Algebra:
    """:func:`sparse` of a structure: the same for all mechanisms that are connected alike."""
    return sparse(np.frombuffer(bytearray(table), dtype=np.int64))


def _dense(structure: IntArray, *, allocate: bool = True) -> Algebra:
    n = int(structure[_UNKNOWNS])
    return Algebra(_dense_normal.ALGEBRA, structure, _dense_normal.linear_work(n) if allocate else 0, n**3 / 6.0)


def path_algebra(structure: IntArray) -> Algebra:
    """As :func:`linear_algebra`, or :func:`dual` if rows are few and long, as those of closed loops are.

    Both matrices have dense blocks for any order of elimination: JᵀJ the unknowns of one constraint, JJᵀ the rows that
    depend on one block.  The costs to form and factorise these are compared.
    """
    if not Structure(structure).rows:
        return _dense(structure, allocate=False)  # never called
    if Structure(structure).unknowns <= DENSE_UNKNOWNS:
        return _dense(structure)
    by_unknowns, by_rows = _clique_costs(structure)
    return dual(structure) if by_rows <= by_unknowns else sparse(structure)


def _clique_costs(structure: IntArray) -> tuple[float, float]:
    """Multiplications to form JᵀJ and to factorise its largest dense block; the same for JJᵀ."""
    widths = np.diff(block_offsets(structure))
    rows = list(constraints(structure))
    heights = np.array([row.rows for row in rows])
    lengths = np.array([widths[row.blocks].sum() for row in rows])
    dependent = np.zeros(widths.size, dtype=np.int64)  # number of rows that depend on each block
    for row in rows:
        dependent[row.blocks] += row.rows
    by_unknowns = 0.5 * float(heights @ (lengths * lengths)) + float(lengths.max()) ** 3 / 6.0
    by_rows = 0.5 * float(widths @ (dependent * dependent)) + float(dependent.max()) ** 3 / 6.0
    return by_unknowns, by_rows


class Constraint(NamedTuple):
    """A constraint in a structure table: its first row, its rows, its first entry in J, and its block numbers."""

    first: int
    rows: int
    start: int
    blocks: IntArray


def constraints(structure: IntArray) -> Iterator[Constraint]:
    """The constraints of a structure table, in order."""
    at = Structure.size
    for _ in range(int(Structure(structure).constraints)):
        blocks = at + tables.Constraint.size
        first, rows, start, slots = structure[at:blocks].tolist()
        at = blocks + slots
        yield Constraint(first, rows, start, structure[blocks:at])


def block_offsets(structure: IntArray) -> IntArray:
    """First unknown of each block, and the number of all unknowns."""
    seen = Structure(structure)
    offsets: IntArray = seen.offsets[: seen.blocks + 1]
    return offsets


def transposed(structure: IntArray) -> tuple[IntArray, IntArray]:
    """The structure of Jᵀ, and the index in J of each entry of Jᵀ.

    Blocks of J become constraints of Jᵀ, and constraints of J become its blocks.
    """
    seen, offsets = Structure(structure), block_offsets(structure)
    widths = np.diff(offsets)
    rows = list(constraints(structure))
    # for each block of J: its constraint, its block number, its first entry, and the length of a row
    owners, blocks, firsts, strides = [], [], [], []
    for c, row in enumerate(rows):
        sizes = widths[row.blocks]
        owners.append(np.full(sizes.size, c))
        blocks.append(row.blocks)
        firsts.append(row.start + np.cumsum(sizes) - sizes)
        strides.append(np.full(sizes.size, sizes.sum()))
    owner, block, first, stride = (
        np.concatenate(part or [np.zeros(0)]).astype(np.int64) for part in (owners, blocks, firsts, strides)
    )
    order = np.argsort(block, kind="stable")  # by block, its constraints ascending
    owner, block, first, stride = owner[order], block[order], first[order], stride[order]
    heights = np.array([row.rows for row in rows], dtype=np.int64)
    counts = np.bincount(block, minlength=widths.size)
    lengths = np.bincount(block, weights=heights[owner], minlength=widths.size).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(widths * lengths)])

    record = tables.Constraint
    size = Structure.size + record.size * widths.size + owner.size
    table: IntArray = np.zeros(size + 2 * len(rows) + 1, dtype=np.int64)
    earlier = np.cumsum(counts) - counts
    records = Structure.size + record.size * np.arange(widths.size) + earlier
    fields = {record.row: offsets[:-1], record.rows: widths, record.entry: begins[:-1], record.slots: counts}
    for field, values in fields.items():
        table[records + field.first] = values
    table[records[block] + record.blocks.first + np.arange(owner.size) - np.repeat(earlier, counts)] = owner
    table[size : size + len(rows) + 1] = [*[row.first for row in rows], int(seen.rows)]
    out = Structure(table)
    out.rows, out.unknowns, out.jacobian_size = seen.unknowns, seen.rows, seen.jacobian_size
    out.constraints, out.blocks = widths.size, len(rows)
    out.offsets, out.rotations = size, size + len(rows) + 1

    # Jᵀ is filled row by row; within a block, rows and columns are exchanged.
    permutation: IntArray = np.empty(int(seen.jacobian_size), dtype=np.int64)
    height, width = heights[owner], widths[block]
    before = np.cumsum(height) - height
    column = before - np.repeat(np.concatenate([[0], np.cumsum(lengths)[:-1]]), counts)
    area = height * width
    piece = np.repeat(np.arange(owner.size), area)
    place = np.arange(piece.size) - np.repeat(np.cumsum(area) - area, area)
    across, down = np.divmod(place, height[piece])
    target = begins[block[piece]] + across * lengths[block[piece]] + column[piece] + down
    permutation[target.astype(np.int64)] = first[piece] + down * stride[piece] + across
    return table, permutation


def dual(structure: IntArray) -> Algebra:
    """Dual normal equations, with the linear algebra chosen for JJᵀ."""
    transpose, permutation = transposed(structure)
    inner = linear_algebra(transpose)
    header = DualPattern.new(inner=inner.address, inner_work=inner.work, entries=permutation.size)
    parts = {"structure": structure, "permutation": permutation, "inner_pattern": inner.pattern}
    pattern = with_parts(header, parts)
    floats = permutation.size + int(Structure(structure).rows)
    return Algebra(_dual_normal.ALGEBRA, pattern, inner.work + floats, inner.cost)


def sparse(structure: IntArray) -> Algebra:
    """Block-sparse normal equations: ordering, symbolic factorisation, and the pattern table of both."""
    from cardan.solvers import _sparse_normal as kernel

    count = int(Structure(structure).blocks)
    identity = np.arange(count, dtype=np.int64)
    order, (columns, rows) = _best_order(structure, count)
    number: IntArray = np.empty(count, dtype=np.int64)
    number[order] = identity
    updates, entries = factor_updates(columns, rows)
    offsets = block_offsets(structure)
    widths = np.diff(offsets)[order]
    positions = np.concatenate([[0], np.cumsum(widths)[:-1]])
    of_column = np.repeat(identity, np.diff(columns))
    sizes = widths[rows] * widths[of_column]
    places = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    per_constraint = _slots(structure)
    pairs: IntArray = np.empty(3 * int((per_constraint * (per_constraint + 1) // 2).sum()) + 1, dtype=np.int64)
    kernel.fill_pairs(structure, number, columns, rows, places, pairs)

    parts = {
        "structure": structure,
        "widths": widths,
        "columns": columns,
        "rows": rows,
        "places": places,
        "updates": updates,
        "entries": entries,
        "positions": positions,
        "sources": offsets[order],
        "pairs": pairs,
    }
    values = int(sizes.sum())
    pattern = with_parts(SparsePattern.new(count=count, values=values), parts)
    in_column = np.add.reduceat(widths[rows], columns[:-1]).astype(float)
    cost = float((widths * in_column * in_column).sum())
    return Algebra(kernel.ALGEBRA, pattern, values + int(Structure(structure).unknowns), cost)


def elimination_order(structure: IntArray) -> IntArray:
    """Block numbers in an order of elimination with little fill."""
    return _best_order(structure, int(Structure(structure).blocks))[0]


def _best_order(structure: IntArray, count: int) -> tuple[IntArray, tuple[IntArray, IntArray]]:
    """The cheaper of a band order and a minimum-degree order, and the columns of its factor."""
    blocks = np.arange(count + 1, dtype=np.int64)
    starts, neighbours = _links(structure, blocks[:-1], count)
    links = np.sort(np.repeat(blocks[:-1] * count, np.diff(starts)) + neighbours)
    links = links[np.diff(links, prepend=-1) > 0]  # each once
    starts, neighbours = np.searchsorted(links, blocks * count), links % count
    edges = links.size // 2
    best = None
    for make in (band_order, minimum_degree):
        order = make(starts, neighbours)
        columns, rows = _columns(structure, order, count)
        entries = np.diff(columns)
        work = float((entries * entries).sum())
        if best is None or work < best[0]:
            best = work, order, (columns, rows)
        if rows.size == edges + count:  # no fill at all
            break
    assert best is not None
    return best[1], best[2]


def _columns(structure: IntArray, order: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """The columns of the factor in an order of elimination."""
    number: IntArray = np.empty(count, dtype=np.int64)
    number[order] = np.arange(count)
    return factor_columns(*_links(structure, number, count))


def factor_columns(starts: IntArray, neighbours: IntArray) -> tuple[IntArray, IntArray]:
    """Symbolic factorisation: (columns, rows), where the rows of column k of the factor start at rows[columns[k]].

    The neighbours of node k, in the order of elimination, start at neighbours[starts[k]].
    """
    count = starts.size - 1
    parent, mark = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    _cholesky.elimination_tree(count, starts, neighbours, parent, mark)
    columns: IntArray = np.zeros(count + 1, dtype=np.int64)
    _cholesky.fill_columns(count, starts, neighbours, parent, mark, columns, mark, True)
    np.cumsum(columns, out=columns)
    rows: IntArray = np.empty(columns[-1], dtype=np.int64)
    _cholesky.fill_columns(count, starts, neighbours, parent, mark, columns[:-1].copy(), rows, False)
    return columns, rows


def factor_updates(columns: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Which columns update each column: (updates, entries) of :mod:`cardan.math._block_cholesky`."""
    count = columns.size - 1
    updates: IntArray = np.empty(count + 2, dtype=np.int64)
    entries: IntArray = np.empty(2 * (rows.size - count) + 1, dtype=np.int64)
    _cholesky.fill_updates(count, columns, rows, updates, entries)
    return updates, entries


def with_parts(header: Any, parts: Mapping[str, IntArray]) -> IntArray:
    """A table and what its fields refer to, one part after the other."""
    at = type(header).size
    for name, part in parts.items():
        setattr(header, name, at)
        at += part.size
    return np.concatenate([header.as_ints, *parts.values()])


def band_order(starts: IntArray, neighbours: IntArray) -> IntArray:
    """Reverse Cuthill–McKee: neighbours get near numbers, so chains have no fill and memory is read in order.

    The neighbours of node k start at neighbours[starts[k]].  The order is that of SciPy's function, which is imported
    only for large graphs.
    """
    count = starts.size - 1
    if count > MOST_INTERPRETED:
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        order: IntArray = reverse_cuthill_mckee(_matrix(starts, neighbours), symmetric_mode=True).astype(np.int64)
        return order
    degrees = np.diff(starts).astype(np.int32)  # the type matters to the order of equal ones
    degrees[neighbours[np.repeat(np.arange(count), np.diff(starts)) == neighbours]] += 1  # links of nodes to themselves
    known, begins, links = degrees.tolist(), starts.tolist(), neighbours.tolist()
    found: dict[int, None] = {}
    for seed in np.argsort(degrees).tolist():
        level = [] if seed in found else [seed]
        found |= dict.fromkeys(level)
        for node in level:  # it grows: breadth first
            near = [other for other in dict.fromkeys(links[begins[node] : begins[node + 1]]) if other not in found]
            near.sort(key=known.__getitem__)
            found |= dict.fromkeys(near)
            level += near
    return np.array([*found][::-1], dtype=np.int64)


def minimum_degree(starts: IntArray, neighbours: IntArray) -> IntArray:
    """SuperLU's multiple minimum degree on the graph of blocks: little fill in branched and meshed systems."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import splu

    graph, count = _matrix(starts, neighbours), starts.size - 1
    dominant = diags(np.asarray(graph.sum(axis=1)).ravel() + 1.0) - graph
    options = {"SymmetricMode": True}
    factor = splu(dominant.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    order: IntArray = np.empty(count, dtype=np.int64)
    order[factor.perm_c] = np.arange(count)
    return order


def _matrix(starts: IntArray, neighbours: IntArray) -> Any:
    """A graph as a sparse matrix of ones."""
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(neighbours.size), neighbours, starts), shape=(starts.size - 1, starts.size - 1))


def _links(structure: IntArray, number: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """(starts, neighbours) in the given numbering: the neighbours of block b start at neighbours[starts[b]]."""
    from cardan.solvers import _sparse_normal as kernel

    counts: IntArray = np.zeros(count + 1, dtype=np.int64)
    total = kernel.count_links(structure, counts)
    starts: IntArray = np.zeros(count + 1, dtype=np.int64)
    starts[number + 1] = counts[1:]
    np.cumsum(starts, out=starts)
    neighbours: IntArray = np.empty(total, dtype=np.int64)
    kernel.fill_links(structure, number, starts[:-1].copy(), neighbours)
    return starts, neighbours


def _slots(structure: IntArray) -> IntArray:
    """Number of blocks of each constraint."""
    from cardan.solvers import _sparse_normal as kernel

    out: IntArray = np.empty(int(Structure(structure).constraints), dtype=np.int64)
    kernel.read_slots(structure, out)
    return out
