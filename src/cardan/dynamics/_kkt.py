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

from cardan.dynamics import abi
from cardan.dynamics._dual import EXACT, MOST, NOISE, SLOW, dot_6, is_slow, largest, subtract_times, subtract_transposed
from cardan.dynamics.abi import WIDTH
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail

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

# What happens at one end of a long chain decays along it, to numbers with which processors compute slowly.
TINY = 1e-150


@inner
def is_plain(column):
    """Whether this is a body that no other column updates."""
    return column[SIGN] > 0 and column[UPDATE] == column[COLUMN + UPDATE]


@inner
def clear_column(column, entries, values):
    """Zeros."""
    for i in range(entries[BLOCK * column[ENTRY] + PLACE], entries[BLOCK * column[COLUMN + ENTRY] + PLACE]):
        values[i] = 0.0


@inner
def fill_diagonal(column, epsilon, references, pivot):
    """1 for a body, ε for a joint, which is added to the references, or 1 where a row is zero: then its λ is zero."""
    w = column[BREADTH]
    for i in range(w):
        e = 1.0
        if column[SIGN] < 0:
            e = epsilon if references[i] > 0.0 else 1.0
            references[i] += e
        pivot[i * (w + 1)] = e


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
def dot(n, a, b):
    """Sum of n products, as one expression for the widths of bodies, ball joints and hinges."""
    if n == 6:
        return dot_6(a, b)
    if n == 3:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    if n == 5:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4]
    e = 0.0
    for k in range(n):
        e += a[k] * b[k]
    return e


@inner
def subtract_row(n, c, sign, row, b, out):
    """out −= sign · b row, with b n×c."""
    for j in range(n):
        e = 0.0
        for k in range(c):
            e += row[k] * b[j * c + k]
        out[j] -= sign * e


@inner
def subtract_column(first, column, left, entries, values):
    """Subtract the products of one column on the left, whose block in this row is the entry ``first``."""
    w = column[BREADTH]
    c = left[BREADTH]
    pivot = tail(values, entries[BLOCK * first + PLACE])
    sign = float(column[SIGN] * left[SIGN])
    at = column[ENTRY]
    for t in range(first, left[COLUMN + ENTRY]):
        block = tail(entries, BLOCK * t)
        while entries[BLOCK * at + ROW] != block[ROW]:  # this column has an entry in each row of the left one
            at += 1
        for i in range(block[HEIGHT]):
            row = tail(values, block[PLACE] + i * c)
            out = tail(values, entries[BLOCK * at + PLACE] + i * w)
            count = i + 1 if t == first else w
            if c == 6:
                subtract_row(count, 6, sign, row, pivot, out)
            elif c == 5:
                subtract_row(count, 5, sign, row, pivot, out)
            elif c == 3:
                subtract_row(count, 3, sign, row, pivot, out)
            else:
                subtract_row(count, c, sign, row, pivot, out)


@inner
def update_column(column, columns, entries, updates, values):
    """Subtract the products of all columns on the left."""
    for u in range(column[UPDATE], column[COLUMN + UPDATE]):
        left = tail(columns, COLUMN * updates[PAIR * u + LEFT])
        subtract_column(updates[PAIR * u + CROSSING], column, left, entries, values)


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
def divide_row(w, factor, row):
    """row ← row L⁻ᵀ."""
    for j in range(w):
        e = row[j]
        for k in range(j):
            e -= row[k] * factor[j * w + k]
        row[j] = e * factor[j * w + j]


@inner
def divide_column(w, column, entries, factor, values):
    """Divide the blocks of a column below the diagonal by its factor."""
    for t in range(column[ENTRY] + 1, column[COLUMN + ENTRY]):
        block = tail(entries, BLOCK * t)
        for i in range(block[HEIGHT]):
            row = tail(values, block[PLACE] + i * w)
            if w == 3:
                divide_row(3, factor, row)
            elif w == 5:
                divide_row(5, factor, row)
            elif w == 6:
                divide_row(6, factor, row)
            else:
                divide_row(w, factor, row)


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
        diagonal[i] = 0.0
    least = 1.0
    for k in range(table[COUNT]):
        column = tail(columns, COLUMN * k)
        plain = is_plain(column)
        if not plain:
            clear_column(column, entries, values)
        fill_column(column, tail(pattern, table[FILLS]), jacobian, diagonal, values)
        if plain:
            continue
        pivot = tail(values, entries[BLOCK * column[ENTRY] + PLACE])
        own = tail(diagonal, column[POSITION] - n6) if column[SIGN] < 0 else references
        fill_diagonal(column, epsilon, own, pivot)
        update_column(column, columns, entries, updates, values)
        least = min(least, factor_pivot(column[BREADTH], own, pivot))
        divide_column(column[BREADTH], column, entries, pivot, values)
    return least


@inner
def flushed(e):
    """e, or zero where it is TINY; NaN stays NaN."""
    return 0.0 if abs(e) < TINY else e


@inner
def divide_forward(w, factor, y):
    """y ← L⁻¹ y."""
    for i in range(w):
        e = y[i]
        for j in range(i):
            e -= factor[i * w + j] * y[j]
        y[i] = flushed(e * factor[i * w + i])


@inner
def divide_backward(w, factor, y):
    """y ← L⁻ᵀ y."""
    for i in range(w - 1, -1, -1):
        e = flushed(y[i] * factor[i * w + i])
        y[i] = e
        for j in range(i):
            y[j] -= factor[i * w + j] * e


@inner
def subtract_below(w, column, entries, values, y, x):
    """Rows below the diagonal −= their blocks · y."""
    for t in range(column[ENTRY] + 1, column[COLUMN + ENTRY]):
        entry = tail(entries, BLOCK * t)
        block = tail(values, entry[PLACE])
        target = tail(x, entry[TARGET])
        for i in range(entry[HEIGHT]):
            target[i] -= dot(w, tail(block, i * w), y)


@inner
def subtract_multiple(n, factor, a, out):
    """out −= factor · a."""
    for i in range(n):
        out[i] -= factor * a[i]


@inner
def subtract_above(w, column, entries, values, y, x):
    """y −= transposed blocks · rows below the diagonal."""
    for t in range(column[ENTRY] + 1, column[COLUMN + ENTRY]):
        entry = tail(entries, BLOCK * t)
        block = tail(values, entry[PLACE])
        source = tail(x, entry[TARGET])
        for i in range(entry[HEIGHT]):
            e = source[i]
            row = tail(block, i * w)
            if w == 6:
                subtract_multiple(6, e, row, y)
            elif w == 3:
                subtract_multiple(3, e, row, y)
            elif w == 5:
                subtract_multiple(5, e, row, y)
            else:
                subtract_multiple(w, e, row, y)


@inner
def substitute(pattern, values, x):
    """x ← (L S Lᵀ)⁻¹ x."""
    table = tail(pattern, pattern[abi.P_FIRST_TABLE])
    columns = tail(pattern, table[COLUMNS])
    entries = tail(pattern, table[ENTRIES])
    for k in range(table[COUNT]):
        column = tail(columns, COLUMN * k)
        w = column[BREADTH]
        y = tail(x, column[POSITION])
        if not is_plain(column):
            divide_forward(w, tail(values, entries[BLOCK * column[ENTRY] + PLACE]), y)
        subtract_below(w, column, entries, values, y, x)
    for k in range(table[COUNT] - 1, -1, -1):
        column = tail(columns, COLUMN * k)
        w = column[BREADTH]
        y = tail(x, column[POSITION])
        if column[SIGN] < 0:
            for i in range(w):
                y[i] = -y[i]
        subtract_above(w, column, entries, values, y, x)
        if not is_plain(column):
            divide_backward(w, tail(values, entries[BLOCK * column[ENTRY] + PLACE]), y)


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
    total = cut(matrix, floats + WIDTH + n, size)
    last = int(control[abi.PROXIMAL])
    is_patient = op == abi.SOLVE and 0.0 < control[abi.LEAST_EPSILON] <= control[abi.EPSILON] and last > 1
    bar = EXACT * largest(size, x) if is_patient else 0.0
    if op == abi.SOLVE:
        for i in range(size):
            scratch[i] = x[i]
            total[i] = 0.0
    moved = 0.0
    is_stale = op == abi.FACTOR
    k = 0
    # x_{k+1} = x_k + K_ε⁻¹ (b − K x_k) is the proximal iteration, and removes rounding errors of the factor too
    while is_stale or k <= last:
        if is_stale:
            references = cut(matrix, floats, WIDTH + n)
            control[abi.PIVOT] = factorise(pattern, control[abi.EPSILON], jacobian, references, values)
            is_stale = False
            if op == abi.FACTOR:
                return 0
        substitute(pattern, values, x)
        if is_patient and k >= last - 1:
            before = moved
            moved = largest(size - n, x)
            if k == last and moved * moved > bar * before and k < MOST:
                if moved * moved > NOISE * largest(n, cut(total, size - n, n)) * before:
                    is_stale = is_slow(control, moved, before)
                    last += 2 if is_stale else int(moved < SLOW * before)
        if k < last:
            update_defect(pattern, jacobian, x, scratch)
        for i in range(size):
            total[i] += x[i]
            x[i] = scratch[i] if k < last else total[i]
        k += 1
    return 0


ALGEBRA = evaluator(_algebra)


def matrix_size(pattern):
    """Number of floats of the matrix."""
    table = int(pattern[abi.P_FIRST_TABLE])
    n = int(pattern[abi.P_EQUATIONS])
    return int(pattern[table + VALUES]) + 2 * n + WIDTH * (1 + int(pattern[abi.P_BODIES]))
