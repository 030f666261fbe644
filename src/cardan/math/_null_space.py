"""The null space of a sparse matrix by Householder's reflections, row by row: A H₁ H₂ … = (R, 0).

A reflection acts only on the unknowns that its row depends on after the earlier ones, and that are not yet pivots.  So
a row of a chain takes part in the reflections of the joint before it alone, and no ordering of the unknowns is needed.
A row whose rest is small depends on the rows before it, and has no reflection.
"""

from math import copysign, sqrt

from cardan.kernel.jit import jit
from cardan.kernel.memory import pointer, tail


@jit
def reflect(rows, n, matrix, dependent, taus, sizes, bounds, is_pivot):
    """matrix ← vectors v of the reflections 1 − τ v vᵀ, by rows, zero outside of bounds; τ = 0: no reflection.

    sizes ← what is left of each row after the reflections before it.  bounds, shape (rows · 2): first and last index of
    v, and one more.  is_pivot, shape (n,): zeros; ← ones for the unknowns that are determined by the others.
    dependent: a smaller rest of a row is rounding.
    """
    a = pointer(matrix)
    for k in range(rows):
        row = tail(a, k * n)
        first = n
        last = 0
        for i in range(n):
            if row[i] != 0.0:
                first = min(first, i)
                last = i + 1
        for j in range(k):
            if taus[j] == 0.0 or bounds[2 * j + 1] <= first or bounds[2 * j] >= last:
                continue
            v = tail(a, j * n)
            s = 0.0
            for i in range(max(first, bounds[2 * j]), min(last, bounds[2 * j + 1])):
                s += v[i] * row[i]
            if s != 0.0:
                s *= taus[j]
                for i in range(bounds[2 * j], bounds[2 * j + 1]):
                    row[i] -= s * v[i]
                first = min(first, bounds[2 * j])
                last = max(last, bounds[2 * j + 1])
        square = 0.0
        best = -1
        for i in range(first, last):
            if is_pivot[i] != 0:
                row[i] = 0.0
            elif row[i] != 0.0:
                square += row[i] * row[i]
                if best < 0 or abs(row[i]) > abs(row[best]):
                    best = i
        size = sqrt(square)
        sizes[k] = size
        taus[k] = 0.0
        bounds[2 * k] = first
        bounds[2 * k + 1] = last
        if size > dependent:
            taus[k] = 1.0 / (size * (size + abs(row[best])))
            row[best] += copysign(size, row[best])
            is_pivot[best] = 1


@jit
def expand(rows, n, columns, matrix, taus, bounds, basis, products):
    """basis ← H₁ H₂ … basis, row-major, shape (n · columns); products, shape (columns,): workspace."""
    a = pointer(matrix)
    for k in range(rows - 1, -1, -1):
        if taus[k] == 0.0:
            continue
        v = tail(a, k * n)
        for c in range(columns):
            products[c] = 0.0
        for i in range(bounds[2 * k], bounds[2 * k + 1]):
            if v[i] != 0.0:
                for c in range(columns):
                    products[c] += v[i] * basis[i * columns + c]
        for i in range(bounds[2 * k], bounds[2 * k + 1]):
            if v[i] != 0.0:
                factor = taus[k] * v[i]
                for c in range(columns):
                    basis[i * columns + c] -= factor * products[c]
