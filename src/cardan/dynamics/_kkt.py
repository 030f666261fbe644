"""Linear algebra of the equations of motion of large mechanisms: block-sparse L S Lᵀ with S = ±1 of

    [ I   Ĵᵀ ] [u]   [b]
    [ Ĵ  −ε I] [λ] = [c]

with −(ε I + E) where rows have compliances E.
Nodes are bodies (six unknowns, sign +) and joints (all rows on the same bodies, sign −).  The matrix is quasi-definite
for ε > 0, so that a factor exists for every order of elimination.  [Vanderbei1995]  With all bodies first it is that of
Ĵ Ĵᵀ + ε I.  Left-looking as :mod:`cardan.math._block_cholesky`, one block column at a time; with A the matrix and s the
signs,

    L(:,k) ← s_k (A(:,k) − Σ_{c<k} s_c L(:,c) L(k,c)ᵀ),   L(k,k) ← chol,   L(i,k) ← L(i,k) L(k,k)⁻ᵀ.

A plain body, one before all joints that it has, has L(k,k) = I, which is not stored.  Pivots of bodies are at least 1.
A joint's pivot is measured relative to the diagonal of Ĵ Ĵᵀ + ε I, as in :mod:`cardan.dynamics._dual`.

Reads the pattern and Ĵ; writes matrix: the factor (Factor.values floats), what pivots are relative to (WIDTH floats for
every body, then one per equation), and the sum of the solutions of proximal iterations.
"""

from math import sqrt

from cardan.dynamics import tables
from cardan.dynamics._dual import EXACT, MOST, NOISE, SLOW, dot_6, is_slow, largest, subtract_times, subtract_transposed
from cardan.dynamics.tables import WIDTH, Block, Column, Control, Factor, Fill, Pattern, Update
from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail

# What happens at one end of a long chain decays along it, to numbers with which processors compute slowly.
TINY = 1e-150


@inner
def is_plain(column):
    """Whether this is a body that no other column updates."""
    return column.sign > 0 and column.update == after(column, 0).update


@inner
def clear_column(column, entries, values):
    """Zeros."""
    for i in range(Block(entries, column.entry).place, Block(entries, after(column, 0).entry).place):
        values[i] = 0.0


@inner
def fill_diagonal(column, epsilon, references, pivot, n6, control, compliances):
    """1 for a body, ε for a joint, which is added to the references, or 1 where a row is zero: then its λ is zero."""
    w = column.breadth
    for i in range(w):
        e = 1.0
        if column.sign < 0:
            e = epsilon if references[i] > 0.0 else 1.0
            if control.compliant > 0.0:
                e += compliances[column.position - n6 + i]
            references[i] += e
        pivot[i * (w + 1)] = e


@inner
def fill_column(column, fills, jacobian, diagonal, values):
    """Copy the blocks of Ĵ that lie in a column; add the squares of their rows to the diagonal."""
    for f in range(column.fill, after(column, 0).fill):
        part = Fill(fills, f)
        sign = float(part.sign)
        across = part.column_step
        for i in range(part.rows):
            row = tail(jacobian, part.source + i * part.stride)
            out = tail(values, part.goal + i * part.row_step)
            for j in range(WIDTH):
                out[j * across] = sign * row[j]
            diagonal[part.equation + i] += dot_6(row, row)


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
    w = column.breadth
    c = left.breadth
    pivot = tail(values, Block(entries, first).place)
    sign = float(column.sign * left.sign)
    at = column.entry
    for t in range(first, after(left, 0).entry):
        block = Block(entries, t)
        while Block(entries, at).row != block.row:  # this column has an entry in each row of the left one
            at += 1
        for i in range(block.height):
            row = tail(values, block.place + i * c)
            out = tail(values, Block(entries, at).place + i * w)
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
    for u in range(column.update, after(column, 0).update):
        left = Column(columns, Update(updates, u).left)
        subtract_column(Update(updates, u).crossing, column, left, entries, values)


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
    for t in range(column.entry + 1, after(column, 0).entry):
        block = Block(entries, t)
        for i in range(block.height):
            row = tail(values, block.place + i * w)
            if w == 3:
                divide_row(3, factor, row)
            elif w == 5:
                divide_row(5, factor, row)
            elif w == 6:
                divide_row(6, factor, row)
            else:
                divide_row(w, factor, row)


@inner
def factorise(pattern, control, compliances, jacobian, references, values):
    """values ← factor; returns the least relative pivot."""
    ints = pattern.as_ints
    factor = Factor(tail(ints, pattern.first_table))
    columns = tail(ints, factor.columns)
    entries = tail(ints, factor.entries)
    updates = tail(ints, factor.updates)
    n6 = WIDTH * pattern.bodies
    diagonal = tail(references, WIDTH)
    for i in range(WIDTH):
        references[i] = 1.0
    for i in range(pattern.equations):
        diagonal[i] = 0.0
    least = 1.0
    for k in range(factor.count):
        column = Column(columns, k)
        plain = is_plain(column)
        if not plain:
            clear_column(column, entries, values)
        fill_column(column, tail(ints, factor.fills), jacobian, diagonal, values)
        if plain:
            continue
        pivot = tail(values, Block(entries, column.entry).place)
        squares = tail(diagonal, column.position - n6) if column.sign < 0 else references
        fill_diagonal(column, control.epsilon, squares, pivot, n6, control, compliances)
        update_column(column, columns, entries, updates, values)
        least = min(least, factor_pivot(column.breadth, squares, pivot))
        divide_column(column.breadth, column, entries, pivot, values)
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
    for t in range(column.entry + 1, after(column, 0).entry):
        entry = Block(entries, t)
        block = tail(values, entry.place)
        target = tail(x, entry.target)
        for i in range(entry.height):
            target[i] -= dot(w, tail(block, i * w), y)


@inner
def subtract_multiple(n, factor, a, out):
    """out −= factor · a."""
    for i in range(n):
        out[i] -= factor * a[i]


@inner
def subtract_above(w, column, entries, values, y, x):
    """y −= transposed blocks · rows below the diagonal."""
    for t in range(column.entry + 1, after(column, 0).entry):
        entry = Block(entries, t)
        block = tail(values, entry.place)
        source = tail(x, entry.target)
        for i in range(entry.height):
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
    ints = pattern.as_ints
    factor = Factor(tail(ints, pattern.first_table))
    columns = tail(ints, factor.columns)
    entries = tail(ints, factor.entries)
    for k in range(factor.count):
        column = Column(columns, k)
        w = column.breadth
        y = tail(x, column.position)
        if not is_plain(column):
            divide_forward(w, tail(values, Block(entries, column.entry).place), y)
        subtract_below(w, column, entries, values, y, x)
    for k in range(factor.count - 1, -1, -1):
        column = Column(columns, k)
        w = column.breadth
        y = tail(x, column.position)
        if column.sign < 0:
            for i in range(w):
                y[i] = -y[i]
        subtract_above(w, column, entries, values, y, x)
        if not is_plain(column):
            divide_backward(w, tail(values, Block(entries, column.entry).place), y)


@inner
def update_defect(pattern, control, compliances, jacobian, x, defect):
    """defect −= K x, with K the matrix for ε = 0."""
    n6 = WIDTH * pattern.bodies
    n = pattern.equations
    for i in range(n6):
        defect[i] -= x[i]
    subtract_transposed(pattern, jacobian, cut(x, n6, n), defect)
    rows = cut(defect, n6, n)
    subtract_times(pattern, jacobian, x, rows)
    for i in range(n):
        rows[i] = -rows[i]
    if control.compliant > 0.0:
        for i in range(n):
            rows[i] += compliances[i] * x[n6 + i]


def _algebra(op, ints, floats, x, scratch, compliances, jacobian, matrix):
    pattern = Pattern(ints)
    control = Control(floats)
    n = pattern.equations
    size = WIDTH * pattern.bodies + n
    end = Factor(tail(ints, pattern.first_table)).values
    values = cut(matrix, 0, end)
    total = cut(matrix, end + WIDTH + n, size)
    last = int(control.proximal)
    is_patient = op == tables.SOLVE and 0.0 < control.least_epsilon <= control.epsilon and last > 1
    bar = EXACT * largest(size, x) if is_patient else 0.0
    if op == tables.SOLVE:
        for i in range(size):
            scratch[i] = x[i]
            total[i] = 0.0
    moved = 0.0
    is_stale = op == tables.FACTOR
    k = 0
    # x_{k+1} = x_k + K_ε⁻¹ (b − K x_k) is the proximal iteration, and removes rounding errors of the factor too
    while is_stale or k <= last:
        if is_stale:
            references = cut(matrix, end, WIDTH + n)
            control.pivot = factorise(pattern, control, compliances, jacobian, references, values)
            is_stale = False
            if op == tables.FACTOR:
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
            update_defect(pattern, control, compliances, jacobian, x, scratch)
        for i in range(size):
            total[i] += x[i]
            x[i] = scratch[i] if k < last else total[i]
        k += 1
    return 0


ALGEBRA = evaluator(_algebra)


def matrix_size(pattern):
    """Number of floats of the matrix."""
    header = Pattern(pattern)
    return int(Factor(pattern[header.first_table :]).values + 2 * header.equations + WIDTH * (1 + header.bodies))
