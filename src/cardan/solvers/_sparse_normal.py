"""Normal equations of a large system: block-sparse Cholesky, with JᵀJ stored in the pattern of its factor.

The pattern is one table of integers: a header of offsets, the structure of the problem, the columns of the factor in
elimination order, and for each constraint the pairs of its blocks with the index of their product in the factor.
"""

from cardan.kernel.jit import evaluator, inner, jit
from cardan.kernel.memory import cut, tail
from cardan.math._block_cholesky import factorise, substitute
from cardan.solvers import abi
from cardan.solvers._blocks import row_length
from cardan.solvers.abi import CONSTRAINTS, DAMPING, FACTOR, UNKNOWNS

# header: numbers of block columns and of floats of the factor, then the offset of each part
COUNT, VALUES = range(2)
STRUCTURE, WIDTHS, COLUMNS, ROWS, PLACES, UPDATES, ENTRIES, POSITIONS, SOURCES, PAIRS, PATTERN = range(2, 13)
# POSITIONS, SOURCES: first unknown of each column in the permuted order, and in the original one

# a pair of blocks of a constraint
ROW_SLOT = 0
COLUMN_SLOT = 1
PRODUCT = 2  # index of the first float of their product in the factor
PAIR = 3


@jit
def count_links(structure, starts):
    """starts[b + 1] ← number of neighbours of block b, duplicates included; returns the sum."""
    total = 0
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[CONSTRAINTS]):
        slots = constraint[abi.C_SLOTS]
        for s in range(slots):
            starts[constraint[abi.C_BLOCKS + s] + 1] += slots - 1
            total += slots - 1
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])
    return total


@jit
def read_slots(structure, out):
    """out ← number of blocks of each constraint."""
    constraint = tail(structure, abi.HEADER)
    for c in range(structure[CONSTRAINTS]):
        out[c] = constraint[abi.C_SLOTS]
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


@jit
def fill_links(structure, number, starts, neighbours):
    """Neighbours of each block, both renumbered by ``number``; advances starts[b] to the end of block b."""
    constraint = tail(structure, abi.HEADER)
    for _ in range(structure[CONSTRAINTS]):
        slots = constraint[abi.C_SLOTS]
        for s in range(slots):
            b = number[constraint[abi.C_BLOCKS + s]]
            for t in range(slots):
                if t != s:
                    neighbours[starts[b]] = number[constraint[abi.C_BLOCKS + t]]
                    starts[b] += 1
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


@jit
def fill_pairs(structure, number, columns, rows, places, pairs):
    """pairs ← ROW_SLOT, COLUMN_SLOT and PRODUCT for each constraint and each pair of its slots."""
    constraint = tail(structure, abi.HEADER)
    out = 0
    for _ in range(structure[CONSTRAINTS]):
        slots = constraint[abi.C_SLOTS]
        for s in range(slots):
            for t in range(s + 1):
                row = s
                column = t
                if number[constraint[abi.C_BLOCKS + s]] < number[constraint[abi.C_BLOCKS + t]]:
                    row = t
                    column = s
                k = number[constraint[abi.C_BLOCKS + column]]
                target = number[constraint[abi.C_BLOCKS + row]]
                low = columns[k]
                high = columns[k + 1] - 1
                while low < high:
                    middle = (low + high) // 2
                    if rows[middle] < target:
                        low = middle + 1
                    else:
                        high = middle
                pairs[out + ROW_SLOT] = row
                pairs[out + COLUMN_SLOT] = column
                pairs[out + PRODUCT] = places[low]
                out += PAIR
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


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
def normal_equations(pattern, r, jacobian, values, gradient):
    """values ← JᵀJ (blocks on and below the diagonal), gradient ← Jᵀr."""
    structure = tail(pattern, pattern[STRUCTURE])
    for i in range(pattern[VALUES]):
        values[i] = 0.0
    for i in range(structure[UNKNOWNS]):
        gradient[i] = 0.0
    offsets = tail(structure, structure[abi.OFFSETS])
    constraint = tail(structure, abi.HEADER)
    pair = pattern[PAIRS]
    for _ in range(structure[CONSTRAINTS]):
        rows = constraint[abi.C_ROWS]
        slots = constraint[abi.C_SLOTS]
        entry = tail(jacobian, constraint[abi.C_ENTRY])
        residual = tail(r, constraint[abi.C_ROW])
        blocks = tail(constraint, abi.C_BLOCKS)
        stride = row_length(constraint, offsets)
        start = 0
        for s in range(slots):
            first = offsets[blocks[s]]
            width = offsets[blocks[s] + 1] - first
            for k in range(rows):
                v = residual[k]
                for i in range(width):
                    gradient[first + i] += v * entry[k * stride + start + i]
            other = 0
            for t in range(s + 1):
                narrow = offsets[blocks[t] + 1] - offsets[blocks[t]]
                # the row block of the product comes first; slots are in the order of the structure
                swapped = pattern[pair + ROW_SLOT] != s
                m = narrow if swapped else width
                n = width if swapped else narrow
                a = tail(entry, other) if swapped else tail(entry, start)
                b = tail(entry, start) if swapped else tail(entry, other)
                out = cut(values, pattern[pair + PRODUCT], m * n)
                if m == 6 and n == 6:
                    add_product_6(rows, stride, a, b, out)
                else:
                    add_product(rows, m, n, stride, a, b, out)
                other += narrow
                pair += PAIR
            start += width
        constraint = tail(constraint, abi.C_BLOCKS + constraint[abi.C_SLOTS])


def _linear(op, pattern, control, r, gradient, step, jacobian, matrix):
    count = pattern[COUNT]
    widths = tail(pattern, pattern[WIDTHS])
    columns = tail(pattern, pattern[COLUMNS])
    rows = tail(pattern, pattern[ROWS])
    places = tail(pattern, pattern[PLACES])
    values = cut(matrix, 0, pattern[VALUES])
    if op == FACTOR:
        normal_equations(pattern, r, jacobian, values, gradient)
        for k in range(count):
            place = places[columns[k]]
            for i in range(widths[k]):
                values[place + i * (widths[k] + 1)] += control[DAMPING]
        updates = tail(pattern, pattern[UPDATES])
        entries = tail(pattern, pattern[ENTRIES])
        return 0 if factorise(count, widths, columns, rows, places, updates, entries, values) else 1
    positions = tail(pattern, pattern[POSITIONS])
    sources = tail(pattern, pattern[SOURCES])
    permuted = cut(matrix, pattern[VALUES], pattern[pattern[STRUCTURE] + UNKNOWNS])
    for k in range(count):
        for i in range(widths[k]):
            permuted[positions[k] + i] = -gradient[sources[k] + i]
    substitute(count, widths, columns, rows, places, positions, values, permuted)
    for k in range(count):
        for i in range(widths[k]):
            step[sources[k] + i] = permuted[positions[k] + i]
    return 0


LINEAR = evaluator(_linear)
