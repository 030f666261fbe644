"""Normal equations of a large system: block-sparse Cholesky, with JᵀJ stored in the pattern of its factor.

The pattern is one table of integers: a header of offsets, the structure of the problem, the columns of the factor in
elimination order, and for each constraint the pairs of its blocks with the index of their product in the factor.
"""

from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner, jit
from cardan.kernel.memory import cut, tail
from cardan.math._block_cholesky import factorise, substitute
from cardan.solvers._blocks import normal_right, row_length, transpose_times
from cardan.solvers.tables import BACK_SOLVE, FACTOR, LEAST, SOLVE, Pair, Projection, SparsePattern, Structure


@jit
def count_links(structure, starts):
    """starts[b + 1] ← number of neighbours of block b, duplicates included; returns the sum."""
    structure = Structure(structure)
    total = 0
    constraint = structure.records
    for _ in range(structure.constraints):
        slots = constraint.slots
        for s in range(slots):
            starts[constraint.blocks[s] + 1] += slots - 1
            total += slots - 1
        constraint = after(constraint, constraint.slots)
    return total


@jit
def read_slots(structure, out):
    """out ← number of blocks of each constraint."""
    structure = Structure(structure)
    constraint = structure.records
    for c in range(structure.constraints):
        out[c] = constraint.slots
        constraint = after(constraint, constraint.slots)


@jit
def fill_links(structure, number, starts, neighbours):
    """Neighbours of each block, both renumbered by ``number``; advances starts[b] to the end of block b."""
    structure = Structure(structure)
    constraint = structure.records
    for _ in range(structure.constraints):
        slots = constraint.slots
        for s in range(slots):
            b = number[constraint.blocks[s]]
            for t in range(slots):
                if t != s:
                    neighbours[starts[b]] = number[constraint.blocks[t]]
                    starts[b] += 1
        constraint = after(constraint, constraint.slots)


@jit
def fill_pairs(structure, number, columns, rows, places, pairs):
    """pairs ← one for each constraint and each pair of its slots."""
    structure = Structure(structure)
    constraint = structure.records
    count = 0
    for _ in range(structure.constraints):
        slots = constraint.slots
        for s in range(slots):
            for t in range(s + 1):
                row = s
                column = t
                if number[constraint.blocks[s]] < number[constraint.blocks[t]]:
                    row = t
                    column = s
                k = number[constraint.blocks[column]]
                target = number[constraint.blocks[row]]
                low = columns[k]
                high = columns[k + 1] - 1
                while low < high:
                    middle = (low + high) // 2
                    if rows[middle] < target:
                        low = middle + 1
                    else:
                        high = middle
                pair = Pair(pairs, count)
                pair.row_slot = row
                pair.column_slot = column
                pair.product = places[low]
                count += 1
        constraint = after(constraint, constraint.slots)


@inner
def add_product(rows, m, n, stride, a, b, out):
    """out += aᵀ b, with a rows×m and b rows×n in rows of length stride."""
    for k in range(rows):
        for i in range(m):
            v = a[k * stride + i]
            for j in range(n):
                out[i * n + j] += v * b[k * stride + j]


@inner
def add_product_6(rows, stride, a, b, out):
    """add_product for 6×6 blocks; the loops have constant length, so the compiler unrolls them."""
    for k in range(rows):
        o = k * stride
        b0 = b[o]
        b1 = b[o + 1]
        b2 = b[o + 2]
        b3 = b[o + 3]
        b4 = b[o + 4]
        b5 = b[o + 5]
        for i in range(6):
            v = a[o + i]
            if v != 0.0:
                out[6 * i] += v * b0
                out[6 * i + 1] += v * b1
                out[6 * i + 2] += v * b2
                out[6 * i + 3] += v * b3
                out[6 * i + 4] += v * b4
                out[6 * i + 5] += v * b5


@inner
def normal_matrix(pattern, jacobian, values):
    """values ← JᵀJ (blocks on and below the diagonal)."""
    structure = pattern.structure
    for i in range(pattern.values):
        values[i] = 0.0
    offsets = structure.offsets
    constraint = structure.records
    count = 0
    for _ in range(structure.constraints):
        rows = constraint.rows
        slots = constraint.slots
        entry = tail(jacobian, constraint.entry)
        blocks = constraint.blocks
        stride = row_length(constraint, offsets)
        start = 0
        for s in range(slots):
            width = offsets[blocks[s] + 1] - offsets[blocks[s]]
            other = 0
            for t in range(s + 1):
                narrow = offsets[blocks[t] + 1] - offsets[blocks[t]]
                # the row block of the product comes first; slots are in the order of the structure
                pair = Pair(pattern.pairs, count)
                swapped = pair.row_slot != s
                m = narrow if swapped else width
                n = width if swapped else narrow
                a = tail(entry, other) if swapped else tail(entry, start)
                b = tail(entry, start) if swapped else tail(entry, other)
                out = cut(values, pair.product, m * n)
                if m == 6 and n == 6:
                    add_product_6(rows, stride, a, b, out)
                else:
                    add_product(rows, m, n, stride, a, b, out)
                other += narrow
                count += 1
            start += width
        constraint = after(constraint, constraint.slots)


def _algebra(op, pattern, control, x, scratch, compliances, jacobian, matrix):
    pattern = SparsePattern(pattern)
    count = pattern.count
    widths = pattern.widths
    columns = pattern.columns
    rows = pattern.rows
    places = pattern.places
    values = cut(matrix, 0, pattern.values)
    epsilon = Projection(control).epsilon
    if op == FACTOR:
        normal_matrix(pattern, jacobian, values)
        for k in range(count):
            place = places[columns[k]]
            for i in range(widths[k]):
                values[place + i * (widths[k] + 1)] += epsilon
        updates = pattern.updates
        entries = pattern.entries
        return 0 if factorise(count, widths, columns, rows, places, updates, entries, values) else 1
    positions = pattern.positions
    sources = pattern.sources
    n = pattern.structure.unknowns
    permuted = cut(matrix, pattern.values, n)
    if op == LEAST:
        transpose_times(pattern.structure, jacobian, tail(x, n), scratch)
    elif op == SOLVE:
        normal_right(pattern.structure, epsilon, jacobian, x, scratch)
    right = x if op == BACK_SOLVE else scratch
    for k in range(count):
        for i in range(widths[k]):
            permuted[positions[k] + i] = right[sources[k] + i]
    substitute(count, widths, columns, rows, places, positions, values, permuted)
    for k in range(count):
        for i in range(widths[k]):
            x[sources[k] + i] = permuted[positions[k] + i]
    return 0


ALGEBRA = evaluator(_algebra)
