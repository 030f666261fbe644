"""Linear algebra of the equations of motion of large mechanisms: block-sparse L S Lᵀ with S = ±1 of

    [ I   Ĵᵀ ] [u]   [b]
    [ Ĵ  −ε I] [λ] = [c]

Nodes are bodies (six unknowns, sign +) and joints (all rows on the same bodies, sign −).  The matrix is quasi-definite
for ε > 0, so that a factor exists for every order of elimination.  [Vanderbei1995]  With all bodies first it is that of
Ĵ Ĵᵀ + ε I.  Left-looking as :mod:`cardan.math._block_cholesky`, one block column at a time; with A the matrix and s the
signs,

    L(:,k) ← s_k (A(:,k) − Σ_{c<k} s_c L(:,c) L(k,c)ᵀ),   L(k,k) ← chol,   L(i,k) ← L(i,k) L(k,k)⁻ᵀ.

A plain body, one before all joints that it has, has L(k,k) = I, which is not stored.  Pivots of bodies are at least 1.
A joint's pivot is measured relative to the diagonal of Ĵ Ĵᵀ + ε I, as in :mod:`cardan.dynamics._dual`.

Reads the pattern and Ĵ; writes matrix: the factor (VALUES floats), what pivots are relative to (WIDTH floats for every
body, then one per equation), and the sum of the solutions of proximal iterations.
"""

from math import sqrt

from cardan._jit import cut, evaluator, inner, tail
from cardan.dynamics import abi
from cardan.dynamics._dual import dot_6, subtract_times, subtract_transposed
from cardan.dynamics._equations import WIDTH

# table at P_FIRST_TABLE: numbers of columns and of floats of the factor, then offsets in the pattern
COUNT, VALUES, COLUMNS, ENTRIES, FILLS, UPDATES, HEADER = range(7)
# a column: its first entry, fill and update, which end where those of the next begin; width, sign, first unknown in x
ENTRY, FILL, UPDATE, BREADTH, SIGN, POSITION, COLUMN = range(7)
# an entry, one block of the factor, the diagonal first: its row, that row's width and first unknown, first float
ROW, HEIGHT, TARGET, PLACE, BLOCK = range(5)
# a fill, the part of a strip on one body: where it is in Ĵ and in the factor, how to step there, sign, first equation
SOURCE, STRIDE, ROWS, GOAL, ROW_STEP, COLUMN_STEP, FACTOR_SIGN, EQUATION, PART = range(9)
# an update of a column: by the column LEFT, whose block in this row is the entry CROSSING
LEFT, CROSSING, PAIR = range(3)


@inner
def is_plain(column):
    """Whether this is a body that no other column updates."""
    return column[SIGN] > 0 and column[UPDATE] == column[COLUMN + UPDATE]


@inner
def start_column(column, entries, epsilon, values):
    """The column of the matrix without Ĵ: zeros, and 1 or ε on the diagonal."""
    w = column[BREADTH]
    begin = entries[BLOCK * column[ENTRY] + PLACE]
    for i in range(begin, entries[BLOCK * column[COLUMN + ENTRY] + PLACE]):
        values[i] = 0.0
    for i in range(w):
        values[begin + i * (w + 1)] = 1.0 if column[SIGN] > 0 else epsilon


@inner
def fill_column(column, fills, jacobian, diagonal, values):
    """Copy the blocks of Ĵ that lie in a column; add the squares of their rows to the diagonal."""
    for f in range(column[FILL], column[COLUMN + FILL]):
        part = tail(fills, PART * f)
        sign = float(part[FACTOR_SIGN])
        across = part[COLUMN_STEP]
        for i in range(part[ROWS]):
            row = tail(jacobian, part[SOURCE] + i * part[STRIDE])
            out = tail(values, part[GOAL] + i * part[ROW_STEP])
            for j in range(WIDTH):
                out[j * across] = sign * row[j]
            diagonal[part[EQUATION] + i] += dot_6(row, row)


@inner
def subtract_products(n, w, c, sign, lower, a, b, out):
    """out −= sign · a bᵀ, with a n×c, b w×c, out n×w; of a diagonal block only the lower triangle."""
    for i in range(n):
        for j in range(i + 1 if lower else w):
            e = 0.0
            for k in range(c):
                e += a[i * c + k] * b[j * c + k]
            out[i * w + j] -= sign * e


@inner
def subtract_column(c, first, column, left, entries, values):
    """Subtract the products of one column on the left, c wide, whose block in this row is the entry ``first``."""
    pivot = tail(values, entries[BLOCK * first + PLACE])
    sign = float(column[SIGN] * left[SIGN])
    at = column[ENTRY]
    for t in range(first, left[COLUMN + ENTRY]):
        block = tail(entries, BLOCK * t)
        while entries[BLOCK * at + ROW] != block[ROW]:  # this column has an entry in each row of the left one
            at += 1
        out = tail(values, entries[BLOCK * at + PLACE])
        own = tail(values, block[PLACE])
        subtract_products(block[HEIGHT], column[BREADTH], c, sign, t == first, own, pivot, out)


@inner
def update_column(column, columns, entries, updates, values):
    """Subtract the products of all columns on the left; unrolled for the widths of bodies, ball joints and hinges."""
    for u in range(column[UPDATE], column[COLUMN + UPDATE]):
        left = tail(columns, COLUMN * updates[PAIR * u + LEFT])
        first = updates[PAIR * u + CROSSING]
        c = left[BREADTH]
        if c == 6:
            subtract_column(6, first, column, left, entries, values)
        elif c == 3:
            subtract_column(3, first, column, left, entries, values)
        elif c == 5:
            subtract_column(5, first, column, left, entries, values)
        else:
            subtract_column(c, first, column, left, entries, values)


@inner
def factor_pivot(w, references, a):
    """a ← L in place, its diagonal inverted; returns the least pivot relative to its reference, 1 at the most."""
    least = 1.0
    for i in range(w):
        for j in range(i + 1):
            e = a[i * w + j]
            for k in range(j):
                e -= a[i * w + k] * a[j * w + k]
            if j < i:
                a[i * w + j] = e * a[j * w + j]
            elif not e > 0.0:
                least = 0.0
                a[i * w + i] = 0.0
            else:
                least = min(least, e / references[i])
                a[i * w + i] = 1.0 / sqrt(e)
    return least


@inner
def divide(n, w, factor, block):
    """block ← block L⁻ᵀ, with block n×w."""
    for i in range(n):
        row = tail(block, i * w)
        for j in range(w):
            e = row[j]
            for k in range(j):
                e -= row[k] * factor[j * w + k]
            row[j] = e * factor[j * w + j]


@inner
def finish_column(w, column, entries, references, values):
    """Factorise the diagonal block of a column, and divide the blocks below by it; returns the least relative pivot."""
    factor = tail(values, entries[BLOCK * column[ENTRY] + PLACE])
    least = factor_pivot(w, references, factor)
    for t in range(column[ENTRY] + 1, column[COLUMN + ENTRY]):
        block = tail(entries, BLOCK * t)
        divide(block[HEIGHT], w, factor, tail(values, block[PLACE]))
    return least


@inner
def factorise(pattern, epsilon, jacobian, references, values):
    """values ← factor; returns the least relative pivot."""
    table = tail(pattern, pattern[abi.P_FIRST_TABLE])
    columns = tail(pattern, table[COLUMNS])
    entries = tail(pattern, table[ENTRIES])
    updates = tail(pattern, table[UPDATES])
    n6 = WIDTH * pattern[abi.P_BODIES]
    diagonal = tail(references, WIDTH)
    for i in range(WIDTH):
        references[i] = 1.0
    for i in range(pattern[abi.P_EQUATIONS]):
        diagonal[i] = epsilon
    least = 1.0
    for k in range(table[COUNT]):
        column = tail(columns, COLUMN * k)
        plain = is_plain(column)
        if not plain:
            start_column(column, entries, epsilon, values)
        fill_column(column, tail(pattern, table[FILLS]), jacobian, diagonal, values)
        if plain:
            continue
        update_column(column, columns, entries, updates, values)
        w = column[BREADTH]
        own = tail(diagonal, column[POSITION] - n6) if column[SIGN] < 0 else references
        if w == 6:
            pivot = finish_column(6, column, entries, own, values)
        elif w == 3:
            pivot = finish_column(3, column, entries, own, values)
        elif w == 5:
            pivot = finish_column(5, column, entries, own, values)
        else:
            pivot = finish_column(w, column, entries, own, values)
        least = min(least, pivot)
    return least


@inner
def eliminate(w, column, entries, values, x):
    """Forward substitution with one column."""
    y = tail(x, column[POSITION])
    if not is_plain(column):
        factor = tail(values, entries[BLOCK * column[ENTRY] + PLACE])
        for i in range(w):
            e = y[i]
            for j in range(i):
                e -= factor[i * w + j] * y[j]
            y[i] = e * factor[i * w + i]
    for t in range(column[ENTRY] + 1, column[COLUMN + ENTRY]):
        entry = tail(entries, BLOCK * t)
        block = tail(values, entry[PLACE])
        target = tail(x, entry[TARGET])
        for i in range(entry[HEIGHT]):
            e = 0.0
            for j in range(w):
                e += block[i * w + j] * y[j]
            target[i] -= e


@inner
def resolve(w, column, entries, values, x):
    """Backward substitution with one column, and its sign."""
    y = tail(x, column[POSITION])
    if column[SIGN] < 0:
        for i in range(w):
            y[i] = -y[i]
    for t in range(column[ENTRY] + 1, column[COLUMN + ENTRY]):
        entry = tail(entries, BLOCK * t)
        block = tail(values, entry[PLACE])
        source = tail(x, entry[TARGET])
        for i in range(entry[HEIGHT]):
            e = source[i]
            for j in range(w):
                y[j] -= block[i * w + j] * e
    if not is_plain(column):
        factor = tail(values, entries[BLOCK * column[ENTRY] + PLACE])
        for i in range(w - 1, -1, -1):
            e = y[i] * factor[i * w + i]
            y[i] = e
            for j in range(i):
                y[j] -= factor[i * w + j] * e


@inner
def substitute(pattern, values, x):
    """x ← (L S Lᵀ)⁻¹ x."""
    table = tail(pattern, pattern[abi.P_FIRST_TABLE])
    columns = tail(pattern, table[COLUMNS])
    entries = tail(pattern, table[ENTRIES])
    for k in range(table[COUNT]):
        column = tail(columns, COLUMN * k)
        if column[BREADTH] == 6:
            eliminate(6, column, entries, values, x)
        elif column[BREADTH] == 3:
            eliminate(3, column, entries, values, x)
        elif column[BREADTH] == 5:
            eliminate(5, column, entries, values, x)
        else:
            eliminate(column[BREADTH], column, entries, values, x)
    for k in range(table[COUNT] - 1, -1, -1):
        column = tail(columns, COLUMN * k)
        if column[BREADTH] == 6:
            resolve(6, column, entries, values, x)
        elif column[BREADTH] == 3:
            resolve(3, column, entries, values, x)
        elif column[BREADTH] == 5:
            resolve(5, column, entries, values, x)
        else:
            resolve(column[BREADTH], column, entries, values, x)


@inner
def update_defect(pattern, jacobian, x, defect):
    """defect −= K x, with K the matrix for ε = 0."""
    n6 = WIDTH * pattern[abi.P_BODIES]
    n = pattern[abi.P_EQUATIONS]
    for i in range(n6):
        defect[i] -= x[i]
    subtract_transposed(pattern, jacobian, cut(x, n6, n), defect)
    rows = cut(defect, n6, n)
    subtract_times(pattern, jacobian, x, rows)
    for i in range(n):
        rows[i] = -rows[i]


def _algebra(op, pattern, control, x, scratch, unused, jacobian, matrix):
    n = pattern[abi.P_EQUATIONS]
    size = WIDTH * pattern[abi.P_BODIES] + n
    floats = pattern[pattern[abi.P_FIRST_TABLE] + VALUES]
    values = cut(matrix, 0, floats)
    if op == abi.FACTOR:
        references = cut(matrix, floats, WIDTH + n)
        control[abi.PIVOT] = factorise(pattern, control[abi.EPSILON], jacobian, references, values)
        return 0
    total = cut(matrix, floats + WIDTH + n, size)
    iterations = int(control[abi.PROXIMAL])
    for i in range(size):
        scratch[i] = x[i]
        total[i] = 0.0
    # x_{k+1} = x_k + K_ε⁻¹ (b − K x_k) is the proximal iteration, and removes rounding errors of the factor too
    for left in range(iterations, -1, -1):
        substitute(pattern, values, x)
        if left > 0:
            update_defect(pattern, jacobian, x, scratch)
        for i in range(size):
            total[i] += x[i]
            x[i] = scratch[i] if left > 0 else total[i]
    return 0


ALGEBRA = evaluator(_algebra)


def matrix_size(pattern):
    """Number of floats of the matrix."""
    table = int(pattern[abi.P_FIRST_TABLE])
    n = int(pattern[abi.P_EQUATIONS])
    return int(pattern[table + VALUES]) + 2 * n + WIDTH * (1 + int(pattern[abi.P_BODIES]))
