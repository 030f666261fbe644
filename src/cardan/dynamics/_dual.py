"""Linear algebra of the equations of motion of small mechanisms: dense S = Ĵ Ĵᵀ, zeros left of each row skipped.

    λ = S⁻¹ (Ĵ b − c),   u = b − Ĵᵀλ

With compliances, Ĵ u − E λ = c, S is Ĵ Ĵᵀ + E.

Where rows are redundant S is singular, and S + ε is factorised.  The iterations  λ += (S + ε)⁻¹ (Ĵ u − c)  from λ = 0
converge to the λ of least norm: each multiplies the error along a singular vector by ε/(ε + σ²).  [Rockafellar1976]
Light bodies between heavy ones make σ² as small as the ratio of their masses.  Where there are such bodies and the last
iteration still changes u, others follow, and if they are slow, S is factorised again with a smaller ε.  Otherwise a
small σ² is that of redundant rows beside the constraints, and is not to be resolved.
With ε = 0 they remove the rounding of an ill-conditioned S.
"""

from math import sqrt

from cardan.dynamics import tables
from cardan.dynamics.tables import WIDTH, Control, Pair, Pattern
from cardan.kernel.fields import after
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import cut, tail

EXACT = 1e-10  # of b and c: a larger error of u, estimated from the last two iterations, is reduced by others
NOISE = 1e-14  # of λ: a smaller error is rounding, as where c is no more than a contradiction of redundant rows
SLOW = 0.2  # of the change in the iteration before: if it is not less, ε is too large
REDUCED = 1e-2  # of ε: the next one
MOST = 40  # iterations
PAIR_SIZE = Pair.size


@inner
def dot_6(a, b):
    """Sum of six products as one expression."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@inner
def fill(n, count, pairs, jacobian, epsilon, s):
    """s ← Ĵ Ĵᵀ + ε I, lower triangle, row-major."""
    for i in range(n * n):
        s[i] = 0.0
    for k in range(count):
        pair = Pair(pairs, k)
        same = pair.first_a == pair.first_b
        for i in range(pair.rows_a):
            a = tail(jacobian, pair.entry_a + i * pair.stride_a)
            a0, a1, a2, a3, a4, a5 = a[0], a[1], a[2], a[3], a[4], a[5]  # not read again after each row[j]
            row = tail(s, (pair.first_a + i) * n + pair.first_b)
            b = tail(jacobian, pair.entry_b)
            for j in range(i + 1 if same else pair.rows_b):
                row[j] += a0 * b[0] + a1 * b[1] + a2 * b[2] + a3 * b[3] + a4 * b[4] + a5 * b[5]
                b = tail(b, pair.stride_b)
    for i in range(n):
        s[i * n + i] += epsilon if s[i * n + i] > 0.0 else 1.0  # a row of zeros asks for nothing: its λ is zero


@inner
def add_compliances(n, compliances, s):
    """s += E."""
    for i in range(n):
        s[i * n + i] += compliances[i]


@inner
def invert_pivot(pivot, diagonal, place):
    """place[0] ← 1/√pivot, or zero if the matrix is not definite; returns pivot/diagonal, or zero."""
    if not pivot > 0.0:
        place[0] = 0.0
        return 0.0
    place[0] = 1.0 / sqrt(pivot)
    return pivot / diagonal


@inner
def factorise(n, first, s):
    """s ← L in place, its diagonal inverted; zeros left of first[i] are skipped.  Returns the least relative pivot.

    Two rows at once, so that each row above is read once for both.  If n is odd, the last row is alone.
    """
    least = 1.0
    for i in range(0, n, 2):
        is_pair = i + 1 < n
        row = tail(s, i * n)
        low = tail(row, n if is_pair else 0)
        begin = min(first[i], first[i + 1]) if is_pair else first[i]
        pivot = row[i]
        low_pivot = low[i + 1] if is_pair else 1.0
        diagonal = pivot
        low_diagonal = low_pivot
        below = low[i]
        for j in range(begin, i):
            other = tail(s, j * n)
            e = row[j]
            f = low[j]
            for k in range(max(begin, first[j]), j):
                e -= row[k] * other[k]
                f -= low[k] * other[k]
            e *= other[j]
            f *= other[j]
            low[j] = f
            row[j] = e
            pivot -= e * e
            low_pivot -= f * f
            below -= e * f
        least = min(least, invert_pivot(pivot, diagonal, tail(row, i)))
        if is_pair:
            below *= row[i]
            low[i] = below
            least = min(least, invert_pivot(low_pivot - below * below, low_diagonal, tail(low, i + 1)))
    return least


@inner
def substitute(n, first, s, x):
    """x ← (L Lᵀ)⁻¹ x."""
    for i in range(n):
        row = tail(s, i * n)
        e = x[i]
        for k in range(first[i], i):
            e -= row[k] * x[k]
        x[i] = e * row[i]
    for i in range(n - 1, -1, -1):
        row = tail(s, i * n)
        e = x[i] * row[i]
        x[i] = e
        for k in range(first[i], i):
            x[k] -= row[k] * e


@inner
def largest(n, x):
    """Largest absolute value of n numbers."""
    e = 0.0
    for i in range(n):
        e = max(e, abs(x[i]))
    return e


@inner
def subtract_times(pattern, jacobian, u, out):
    """out ← Ĵ u − out."""
    strip = pattern.strips
    for _ in range(pattern.strip_count):
        at = strip.entry
        for i in range(strip.rows):
            e = 0.0
            for s in range(strip.slots):
                e += dot_6(tail(jacobian, at), tail(u, WIDTH * strip.bodies[s]))
                at += WIDTH
            k = strip.first + i
            out[k] = e - out[k]
        strip = after(strip, strip.slots)


@inner
def subtract_transposed(pattern, jacobian, multipliers, u):
    """u −= Ĵᵀλ."""
    strip = pattern.strips
    for _ in range(pattern.strip_count):
        at = strip.entry
        for i in range(strip.rows):
            e = multipliers[strip.first + i]
            for s in range(strip.slots):
                b = tail(u, WIDTH * strip.bodies[s])
                row = tail(jacobian, at)
                for j in range(WIDTH):
                    b[j] -= row[j] * e
                at += WIDTH
        strip = after(strip, strip.slots)


@inner
def is_slow(control, moved, before):
    """Whether iterations converge slowly and ε can be reduced, as it then is; moved, before: last changes of u."""
    if moved < SLOW * before or control.epsilon <= control.least_epsilon:
        return False
    control.epsilon = max(REDUCED * control.epsilon, control.least_epsilon)
    return True


def _algebra(op, ints, floats, x, scratch, compliances, jacobian, matrix):
    pattern = Pattern(ints)
    control = Control(floats)
    n = pattern.equations
    n6 = WIDTH * pattern.bodies
    first = cut(ints, pattern.second_table, n)
    s = cut(matrix, 0, n * n)
    multipliers = cut(x, n6, n)
    right = cut(scratch, 0, n)
    change = cut(scratch, n, n)
    old = cut(scratch, 2 * n, n6)
    last = int(control.proximal)
    is_patient = op == tables.SOLVE and 0.0 < control.least_epsilon <= control.epsilon and last > 1
    bar = 0.0
    if op == tables.SOLVE:
        for i in range(n):
            right[i] = multipliers[i]
            multipliers[i] = 0.0
        if is_patient:
            bar = EXACT * max(largest(n6, x), largest(n, right))
    moved = 0.0
    is_stale = op == tables.FACTOR
    k = 0
    while is_stale or k <= last:
        if is_stale:
            start = pattern.first_table
            pairs = tail(ints, start)
            fill(n, (pattern.second_table - start) // PAIR_SIZE, pairs, jacobian, control.epsilon, s)
            if control.compliant > 0.0:
                add_compliances(n, compliances, s)
            control.pivot = factorise(n, first, s)
            is_stale = False
            if op == tables.FACTOR:
                return 0
        for i in range(n):
            change[i] = right[i]
        if control.compliant > 0.0:
            for i in range(n):
                change[i] += compliances[i] * multipliers[i]
        if is_patient and k >= last - 1:
            for i in range(n6):
                old[i] = x[i]
        subtract_times(pattern, jacobian, x, change)
        substitute(n, first, s, change)
        subtract_transposed(pattern, jacobian, change, x)
        for i in range(n):
            multipliers[i] += change[i]
        if is_patient and k >= last - 1:
            before = moved
            for i in range(n6):
                old[i] -= x[i]
            moved = largest(n6, old)
            if k == last and moved * moved > bar * before and k < MOST:
                if moved * moved > NOISE * largest(n, multipliers) * before:
                    is_stale = is_slow(control, moved, before)
                    last += 2 if is_stale else int(moved < SLOW * before)
        k += 1
    return 0


ALGEBRA = evaluator(_algebra)


def matrix_size(equations):
    """Number of floats of the factor."""
    return equations**2
