"""Which linear algebra a problem gets: chosen by its size, without the user's help."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardan.solvers import abi
from cardan.solvers.problem import Linear

IntArray = NDArray[np.int64]

DENSE_UNKNOWNS = 60  # up to here the dense matrix wins: it needs no symbolic work


def linear_algebra(structure: IntArray) -> Linear:
    """Dense normal equations for small problems, block-sparse ones beyond."""
    if structure[abi.UNKNOWNS] <= DENSE_UNKNOWNS:
        from cardan.solvers import _dense_normal

        return Linear(_dense_normal.LINEAR, structure, _dense_normal.linear_work(structure))
    return sparse(structure)


def sparse(structure: IntArray) -> Linear:
    """Block-sparse normal equations: ordering, symbolic factorisation, and the pattern table of both."""
    from cardan.math import _block_cholesky as cholesky
    from cardan.solvers import _sparse_normal as kernel

    count = int(structure[abi.BLOCKS])
    identity = np.arange(count, dtype=np.int64)
    starts, neighbours = _links(structure, identity, count)
    order = minimum_degree(starts, neighbours)
    number: IntArray = np.empty(count, dtype=np.int64)
    number[order] = identity
    starts, neighbours = _links(structure, number, count)

    parent, mark = np.empty_like(identity), np.empty_like(identity)
    cholesky.elimination_tree(count, starts, neighbours, parent, mark)
    columns: IntArray = np.zeros(count + 1, dtype=np.int64)
    nothing: IntArray = np.empty(0, dtype=np.int64)
    cholesky.fill_columns(count, starts, neighbours, parent, mark, columns, nothing, True)
    np.cumsum(columns, out=columns)
    rows: IntArray = np.empty(columns[-1], dtype=np.int64)
    cholesky.fill_columns(count, starts, neighbours, parent, mark, columns[:-1].copy(), rows, False)
    updates: IntArray = np.empty(count + 2, dtype=np.int64)
    entries: IntArray = np.empty(2 * (rows.size - count) + 1, dtype=np.int64)
    cholesky.fill_updates(count, columns, rows, updates, entries)

    offsets = structure[structure[abi.OFFSETS] :][: count + 1]
    widths = np.diff(offsets)[order]
    positions = np.concatenate([[0], np.cumsum(widths)[:-1]])
    of_column = np.repeat(identity, np.diff(columns))
    sizes = widths[rows] * widths[of_column]
    places = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    per_constraint = _slots(structure)
    pairs: IntArray = np.empty(3 * int((per_constraint * (per_constraint + 1) // 2).sum()) + 1, dtype=np.int64)
    kernel.fill_pairs(structure, number, columns, rows, places, pairs)

    parts = {
        kernel.STRUCTURE: structure,
        kernel.WIDTHS: widths,
        kernel.COLUMNS: columns,
        kernel.ROWS: rows,
        kernel.PLACES: places,
        kernel.UPDATES: updates,
        kernel.ENTRIES: entries,
        kernel.POSITIONS: positions,
        kernel.SOURCES: offsets[order],
        kernel.PAIRS: pairs,
    }
    values = int(sizes.sum())
    pattern: IntArray = np.empty(kernel.PATTERN + sum(part.size for part in parts.values()), dtype=np.int64)
    pattern[kernel.COUNT] = count
    pattern[kernel.VALUES] = values
    at = kernel.PATTERN
    for slot, part in parts.items():
        pattern[slot] = at
        pattern[at : at + part.size] = part
        at += part.size
    return Linear(kernel.LINEAR, pattern, 2 * values + int(structure[abi.UNKNOWNS]))


def minimum_degree(starts: IntArray, neighbours: IntArray) -> IntArray:
    """An order of elimination with little fill: SuperLU's multiple minimum degree on the graph of blocks."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    count = starts.size - 1
    degrees = np.diff(starts)
    graph = csc_matrix((np.full(neighbours.size, -1.0), neighbours, starts), shape=(count, count))
    diagonal = csc_matrix((degrees + 1.0, (np.arange(count), np.arange(count))), shape=(count, count))
    factor = splu(graph + diagonal, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    order: IntArray = np.empty(count, dtype=np.int64)
    order[factor.perm_c] = np.arange(count)
    return order


def _links(structure: IntArray, number: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Neighbours of each block in a numbering, from starts[b] on."""
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
    """Number of blocks that each constraint touches."""
    from cardan.solvers import _sparse_normal as kernel

    out: IntArray = np.empty(int(structure[abi.CONSTRAINTS]), dtype=np.int64)
    kernel.read_slots(structure, out)
    return out
