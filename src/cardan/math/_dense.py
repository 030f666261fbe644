"""Dense factorisations for small systems: Cholesky, LU, and the complete orthogonal decomposition (pseudo-inverse)."""

from math import sqrt

from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import cut, pointer


@inner
def cholesky(n, a, damping):
    """a ← L with L Lᵀ = a + damping·I, in place, from the lower triangle (row-major).  False if indefinite."""
    for i in range(n):
        row = i * n
        for j in range(i + 1):
            other = j * n
            s = a[row + j]
            for k in range(j):
                s -= a[row + k] * a[other + k]
            if i == j:
                s += damping
                if not s > 0.0:
                    return False
                a[row + i] = 1.0 / sqrt(s)  # the inverse is stored: the solves only divide by the diagonal
            else:
                a[row + j] = s * a[other + j]
    return True


@inner
def cholesky_solve(n, factor, b, x):
    """x ← (L Lᵀ)⁻¹ b."""
    for i in range(n):
        s = b[i]
        row = i * n
        for k in range(i):
            s -= factor[row + k] * x[k]
        x[i] = s * factor[row + i]
    for i in range(n - 1, -1, -1):
        row = i * n
        s = x[i] * factor[row + i]
        x[i] = s
        for k in range(i):
            x[k] -= factor[row + k] * s


@jit
def solve_definite(n, a, damping, b, x):
    """x ← (a + damping·I)⁻¹ b for a symmetric a, row-major, which is overwritten; False if this is not definite."""
    if not cholesky(n, pointer(a), damping):
        return False
    cholesky_solve(n, pointer(a), pointer(b), pointer(x))
    return True


@inner
def lu_solve(n, a, b, x, singular):
    """x ← A⁻¹ b by Gaussian elimination with partial pivoting; a (n×n, row-major) and b are overwritten.

    False, with x undefined, if a pivot does not exceed ``singular`` times the largest entry of A.
    """
    largest = 0.0
    for i in range(n * n):
        largest = max(largest, abs(a[i]))
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(a[i * n + k]) > abs(a[best * n + k]):
                best = i
        if not abs(a[best * n + k]) > singular * largest:
            return False
        if best != k:
            for j in range(k, n):
                a[k * n + j], a[best * n + j] = a[best * n + j], a[k * n + j]
            b[k], b[best] = b[best], b[k]
        inverse = 1.0 / a[k * n + k]
        for i in range(k + 1, n):
            factor = a[i * n + k] * inverse
            if factor != 0.0:
                for j in range(k + 1, n):
                    a[i * n + j] -= factor * a[k * n + j]
                b[i] -= factor * b[k]
    for k in range(n - 1, -1, -1):
        s = b[k]
        for j in range(k + 1, n):
            s -= a[k * n + j] * x[j]
        x[k] = s / a[k * n + k]
    return True


@inner
def reflect_columns(m, n, a, b, norms, products, pivots, rtol):
    """a ← R of A P = Q R by Householder reflections with column pivoting, b ← Qᵀb; returns the rank.

    norms: squared norms of the columns of A.  It ends at the first pivot of at most rtol times the first one.
    """
    rank = 0
    first = 0.0
    for k in range(min(m, n)):
        best = k
        for j in range(k + 1, n):
            if norms[j] > norms[best]:
                best = j
        size = sqrt(norms[best])
        if k == 0:
            first = size
        if size <= rtol * first:  # a NaN becomes a pivot or stays in the later columns; in both cases all of x is NaN
            break
        if best != k:
            pivots[k], pivots[best] = pivots[best], pivots[k]
            for i in range(m):
                a[i * n + k], a[i * n + best] = a[i * n + best], a[i * n + k]
        head = a[k * n + k]
        alpha = -size if head > 0.0 else size
        v0 = head - alpha
        beta = -1.0 / (alpha * v0)  # 2/|v|², with v = (v0, a[k+1:, k])
        width = n - k - 1
        top = cut(a, k * n + k + 1, width)
        rest = cut(norms, k + 1, width)
        product = v0 * b[k]  # vᵀb
        for j in range(width):
            products[j] = v0 * top[j]
        for i in range(k + 1, m):
            v = a[i * n + k]
            row = cut(a, i * n + k + 1, width)
            for j in range(width):
                products[j] += v * row[j]
            product += v * b[i]
        product *= beta
        b[k] -= v0 * product
        for j in range(width):
            products[j] *= beta
            top[j] -= v0 * products[j]
            rest[j] = 0.0
        for i in range(k + 1, m):
            v = a[i * n + k]
            row = cut(a, i * n + k + 1, width)
            for j in range(width):
                row[j] -= v * products[j]
                rest[j] += row[j] * row[j]
            b[i] -= v * product
        a[k * n + k] = alpha
        rank += 1
    return rank


@inner
def reflect_rows(n, rank, a, heads, taus):
    """Make the upper trapezoid of ``rank`` rows triangular by reflections from the right: a ← T and their vectors."""
    width = n - rank
    for k in range(rank - 1, -1, -1):
        head = a[k * n + k]
        beyond = cut(a, k * n + rank, width)
        s = head * head
        for j in range(width):
            s += beyond[j] * beyond[j]
        size = sqrt(s)
        alpha = -size if head > 0.0 else size
        v0 = head - alpha
        tau = -1.0 / (alpha * v0)
        for i in range(k):
            row = cut(a, i * n + rank, width)
            s = v0 * a[i * n + k]
            for j in range(width):
                s += beyond[j] * row[j]
            s *= tau
            a[i * n + k] -= s * v0
            for j in range(width):
                row[j] -= s * beyond[j]
        a[k * n + k] = alpha
        heads[k] = v0
        taus[k] = tau


@inner
def minimum_norm(m, n, a, b, x, rtol, work, pivots):
    """x ← A⁺ b by a complete orthogonal decomposition; a (m×n, row-major) and b are overwritten.  Returns the rank.

    Householder QR with column pivoting, A P = Q R.  Rows of R whose diagonal entry is below rtol times the first are
    dropped.  Reflections from the right make the remaining trapezoid triangular.  [Golub2013] 5.4.2, 5.5.  A NaN in A
    makes all of x NaN.  work: 3n floats, pivots: n.  Loops run over contiguous rows, so that the compiler uses vector
    instructions.
    """
    norms = cut(work, 0, n)  # squared norms of the columns, without the rows already eliminated
    taus = cut(work, n, n)
    z = cut(work, 2 * n, n)
    for j in range(n):
        pivots[j] = j
        norms[j] = 0.0
        z[j] = 0.0
    for i in range(m):
        row = cut(a, i * n, n)
        for j in range(n):
            norms[j] += row[j] * row[j]
    rank = reflect_columns(m, n, a, b, norms, taus, pivots, rtol)
    if rank == 0:  # all entries are zero or NaN
        total = 0.0
        for j in range(n):
            total += norms[j]
        if total != total:
            for j in range(n):
                z[j] = total
    heads = norms  # first components of the reflections from the right
    if n > rank:
        reflect_rows(n, rank, a, heads, taus)
    for k in range(rank - 1, -1, -1):
        s = b[k]
        for j in range(k + 1, rank):
            s -= a[k * n + j] * z[j]
        z[k] = s / a[k * n + k]
    if n > rank:
        for k in range(rank):
            s = heads[k] * z[k]
            for j in range(rank, n):
                s += a[k * n + j] * z[j]
            s *= taus[k]
            z[k] -= s * heads[k]
            for j in range(rank, n):
                z[j] -= s * a[k * n + j]
    for j in range(n):
        x[pivots[j]] = z[j]
    return rank
