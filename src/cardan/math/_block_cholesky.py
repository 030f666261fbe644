"""Block-sparse Cholesky factorisation: a symbolic part, done once, and a numeric part.

A symmetric matrix of dense blocks is given by its graph.  In elimination order, column k of the factor has the diagonal
block first, then the blocks of rows(k) in ascending order.  Each block is stored row-major, w_row × w_col.

Symbolic: elimination tree and row subtrees.  [Liu1990]  Numeric: left-looking, one block column at a time,

    L(:,k) ← A(:,k) − Σ_{c<k} L(:,c) L(k,c)ᵀ,   L(k,k) ← chol,   L(i,k) ← L(i,k) L(k,k)⁻ᵀ.

Row k of the factor lists the columns that update column k; it is computed once.  The numeric part writes only the
values, so threads may share the symbolic part.
"""

from math import sqrt

from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import tail


@jit
def elimination_tree(count, starts, neighbours, parent, ancestor):
    """parent[k] ← parent of column k, −1 for roots.

    The neighbours of k, numbered in elimination order, start at neighbours[starts[k]].
    """
    for k in range(count):
        parent[k] = -1
        ancestor[k] = -1
        for t in range(starts[k], starts[k + 1]):
            c = neighbours[t]
            while c < k and c != -1:
                up = ancestor[c]
                ancestor[c] = k
                if up == -1:
                    parent[c] = k
                    break
                if up == k:
                    break
                c = up


@jit
def fill_columns(count, starts, neighbours, parent, mark, columns, rows, counting):
    """If counting, columns[k + 1] += number of entries of column k; else rows ← their rows, diagonal first, ascending.

    Filling advances columns[k] to the end of column k.
    """
    for k in range(count):
        mark[k] = -1
    for k in range(count):
        mark[k] = k
        if counting:
            columns[k + 1] += 1
        else:
            rows[columns[k]] = k
            columns[k] += 1
        for t in range(starts[k], starts[k + 1]):
            c = neighbours[t]
            if c >= k:
                continue
            while mark[c] != k:
                mark[c] = k
                if counting:
                    columns[c + 1] += 1
                else:
                    rows[columns[c]] = k
                    columns[c] += 1
                c = parent[c]


@jit
def fill_updates(count, columns, rows, updates, entries):
    """Row k of the factor left of the diagonal: pairs (column, entry), ascending, starting at entries[2·updates[k]]."""
    for k in range(count + 2):
        updates[k] = 0
    for k in range(count):
        for t in range(columns[k] + 1, columns[k + 1]):
            updates[rows[t] + 2] += 1
    for k in range(2, count + 2):
        updates[k] += updates[k - 1]
    for k in range(count):
        for t in range(columns[k] + 1, columns[k + 1]):
            u = updates[rows[t] + 1]
            entries[2 * u] = k
            entries[2 * u + 1] = t
            updates[rows[t] + 1] = u + 1


@inner
def factor_diagonal(w, a):
    """a ← L with L Lᵀ = a, in place; the inverse of the diagonal is stored.  False if not positive definite."""
    for i in range(w):
        for j in range(i + 1):
            s = a[i * w + j]
            for k in range(j):
                s -= a[i * w + k] * a[j * w + k]
            if i == j:
                if not s > 0.0:
                    return False
                a[i * w + i] = 1.0 / sqrt(s)
            else:
                a[i * w + j] = s * a[j * w + j]
    return True


@inner
def subtract_square(n, w, a, out):
    """out −= a aᵀ, on and below the diagonal, with a n×w, row-major."""
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(w):
                s += a[i * w + k] * a[j * w + k]
            out[i * n + j] -= s


@inner
def subtract_product(m, n, w, a, b, out):
    """out −= a bᵀ, with a m×w, b n×w, out m×n, row-major."""
    for i in range(m):
        for j in range(n):
            s = 0.0
            for k in range(w):
                s += a[i * w + k] * b[j * w + k]
            out[i * n + j] -= s


@inner
def divide_by_factor(m, w, diagonal, block):
    """block ← block L⁻ᵀ, with block m×w and L the factored diagonal block."""
    for i in range(m):
        for j in range(w):
            s = block[i * w + j]
            for p in range(j):
                s -= block[i * w + p] * diagonal[j * w + p]
            block[i * w + j] = s * diagonal[j * w + j]


@inner
def dot_6(a, i, b, j):
    """Sum of six products as one expression: the overhead of a short loop would exceed its arithmetic."""
    return (
        a[i] * b[j]
        + a[i + 1] * b[j + 1]
        + a[i + 2] * b[j + 2]
        + a[i + 3] * b[j + 3]
        + a[i + 4] * b[j + 4]
        + a[i + 5] * b[j + 5]
    )


@inner
def subtract_square_6(a, out):
    """subtract_square for 6×6."""
    for i in range(6):
        for j in range(i + 1):
            out[6 * i + j] -= dot_6(a, 6 * i, a, 6 * j)


@inner
def subtract_product_6(a, b, out):
    """subtract_product for 6×6."""
    for i in range(6):
        for j in range(6):
            out[6 * i + j] -= dot_6(a, 6 * i, b, 6 * j)


@inner
def divide_by_factor_6(d, block):
    """divide_by_factor for 6×6, with the row in local variables."""
    for i in range(0, 36, 6):
        x0 = block[i] * d[0]
        x1 = (block[i + 1] - x0 * d[6]) * d[7]
        x2 = (block[i + 2] - x0 * d[12] - x1 * d[13]) * d[14]
        x3 = (block[i + 3] - x0 * d[18] - x1 * d[19] - x2 * d[20]) * d[21]
        x4 = (block[i + 4] - x0 * d[24] - x1 * d[25] - x2 * d[26] - x3 * d[27]) * d[28]
        x5 = (block[i + 5] - x0 * d[30] - x1 * d[31] - x2 * d[32] - x3 * d[33] - x4 * d[34]) * d[35]
        block[i] = x0
        block[i + 1] = x1
        block[i + 2] = x2
        block[i + 3] = x3
        block[i + 4] = x4
        block[i + 5] = x5


@inner
def factorise(count, widths, columns, rows, places, updates, entries, values):
    """values ← factor, in place.  False if not positive definite.

    columns[k]: first entry of column k (the diagonal block).  rows, places: row and first float of each entry.
    updates[k]: first pair (column, entry) of row k left of the diagonal; pairs are in ascending order of columns.
    """
    for k in range(count):
        first = columns[k]
        last = columns[k + 1]
        w = widths[k]
        for u in range(updates[k], updates[k + 1]):
            c = entries[2 * u]
            wc = widths[c]
            pivot = tail(values, places[entries[2 * u + 1]])
            at = first
            six = w == 6 and wc == 6
            if six:
                subtract_square_6(pivot, tail(values, places[first]))
            else:
                subtract_square(w, wc, pivot, tail(values, places[first]))
            for t in range(entries[2 * u + 1] + 1, columns[c + 1]):
                while rows[at] != rows[t]:  # column k has an entry in each row below k in which column c has one
                    at += 1
                if six and widths[rows[t]] == 6:
                    subtract_product_6(tail(values, places[t]), pivot, tail(values, places[at]))
                else:
                    subtract_product(widths[rows[t]], w, wc, tail(values, places[t]), pivot, tail(values, places[at]))
        diagonal = tail(values, places[first])
        if not factor_diagonal(w, diagonal):
            return False
        for t in range(first + 1, last):
            if w == 6 and widths[rows[t]] == 6:
                divide_by_factor_6(diagonal, tail(values, places[t]))
            else:
                divide_by_factor(widths[rows[t]], w, diagonal, tail(values, places[t]))
    return True


@inner
def substitute(count, widths, columns, rows, places, offsets, values, x):
    """x ← (L Lᵀ)⁻¹ x, in place; the unknowns of column k start at offsets[k]."""
    for k in range(count):
        w = widths[k]
        o = offsets[k]
        diagonal = tail(values, places[columns[k]])
        for i in range(w):
            s = x[o + i]
            for j in range(i):
                s -= diagonal[i * w + j] * x[o + j]
            x[o + i] = s * diagonal[i * w + i]
        for t in range(columns[k] + 1, columns[k + 1]):
            block = tail(values, places[t])
            target = offsets[rows[t]]
            for i in range(widths[rows[t]]):
                s = 0.0
                for j in range(w):
                    s += block[i * w + j] * x[o + j]
                x[target + i] -= s
    for k in range(count - 1, -1, -1):
        w = widths[k]
        o = offsets[k]
        for t in range(columns[k] + 1, columns[k + 1]):
            block = tail(values, places[t])
            source = offsets[rows[t]]
            for i in range(widths[rows[t]]):
                for j in range(w):
                    x[o + j] -= block[i * w + j] * x[source + i]
        diagonal = tail(values, places[columns[k]])
        for i in range(w - 1, -1, -1):
            s = x[o + i] * diagonal[i * w + i]
            x[o + i] = s
            for j in range(i):
                x[o + j] -= diagonal[i * w + j] * s
