"""Hands that hold: forces of least norm in the directions that the joints leave free.

With the mobility G = Ĵ_s P Ĵ_sᵀ of the rows of all hands that hold (:mod:`cardan.dynamics._soft`), the row i of a free
body of which would be |Ĵ_s,i|², and S = diag(1 of a point, size of a rotation):

    S G S = L Lᵀ,  L of r columns (Cholesky with pivots; what is left is below FIXED of a free body),
    L = Q R,  Qᵀ Q = 1,   (S G S)⁺ = Q R⁻ᵀ R⁻¹ Qᵀ,   y = S (S G S)⁺ S (d − Ĵ_s u₀).

The columns of Q span what the joints leave free.  A component outside is fixed by the joints: no force of the hand
changes it, what d is there does not matter, and y has no such component.  Forces of several hands on one freedom are
shared, with the least Σ |force|² + |torque/size|².

The velocity of a hand changes by an impulse I at the start of each cycle of h [s], where it was w₋ and becomes w.
With its force y₋ just before and y₊ just after, the force at that time is, up to terms in h²,

    F = y₋ + e,   e = I/h + ½ (y₊ − y₋).

At the end of the cycle y₋ is known, but the next target is not: e is extrapolated by its last difference d, limited by
the one before, so that a jump of the target causes no others, and noise is not amplified [vanLeer1979]:

    e ← e + d · min(1, max(0, (d₋·d)/(d·d))),   projected onto the columns of Q of the pose at the end.
"""

from math import sqrt

from cardan.dynamics._dual import dot_6
from cardan.dynamics.tables import WIDTH, SoftWork
from cardan.interact._hands import back_rotated, rotated
from cardan.interact.tables import FREE, HOLDS, MOST_HANDS, Hand
from cardan.kernel.jit import inner
from cardan.kernel.memory import tail
from cardan.system.tables import POSE

FIXED = 1e-10  # mobility relative to that of the free body: a smaller one is that of a component that the joints fix


@inner
def is_holding(hand):
    return hand.kind != FREE and hand.role == HOLDS


@inner
def fill_scales(job):
    """scales ← S."""
    scales = SoftWork(job.soft.pieces, job.soft_memory).scales
    for h in range(MOST_HANDS):
        hand = Hand(job.soft_floats, h)
        if is_holding(hand):
            for i in range(int(hand.rows)):
                scales[int(hand.row) + i] = 1.0 if i < 3 else sqrt(hand.twist / hand.stiffness)


@inner
def mobility(parts, most, i, j):
    """(S G S)_ij."""
    e = parts.matrix[most * max(i, j) + min(i, j)]
    return e * parts.scales[i] * parts.scales[j]


@inner
def factorise_rows(job, first, count):
    """basis ← L of some rows, column by column of length most; returns their number."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    most = job.soft.most
    columns = parts.basis
    left = parts.left
    for i in range(first, first + count):
        left[i] = mobility(parts, most, i, i)
    for rank in range(count):
        pivot = -1
        largest = FIXED
        for i in range(first, first + count):
            row = tail(parts.entries, WIDTH * i)
            size = dot_6(row, row) * parts.scales[i] * parts.scales[i]
            if left[i] > largest * size:
                largest = left[i] / size
                pivot = i
        if pivot < 0:
            return rank
        column = tail(columns, most * rank)
        root = sqrt(left[pivot])
        for i in range(first, first + count):
            e = mobility(parts, most, i, pivot)
            for k in range(rank):
                e -= columns[most * k + i] * columns[most * k + pivot]
            e = e / root if left[i] > 0.0 else 0.0  # zero of earlier pivots
            column[i] = e
            left[i] -= e * e
        column[pivot] = root
        left[pivot] = 0.0
    return count


@inner
def orthonormalise(job):
    """basis: L ← Q, triangle ← R, by Gram and Schmidt, twice."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    R = parts.triangle
    for c in range(soft.rank):
        column = tail(parts.basis, most * c)
        for k in range(c):
            R[most * k + c] = 0.0
        for _ in range(2):
            for k in range(c):
                other = tail(parts.basis, most * k)
                e = 0.0
                for i in range(soft.rows):
                    e += other[i] * column[i]
                R[most * k + c] += e
                for i in range(soft.rows):
                    column[i] -= e * other[i]
        square = 0.0
        for i in range(soft.rows):
            square += column[i] * column[i]
        R[most * c + c] = sqrt(square)
        for i in range(soft.rows):
            column[i] /= sqrt(square)


@inner
def factorise_holds(job):
    """rank, basis, triangle ← r, Q, R of the mobility; all rows are of hands that hold."""
    fill_scales(job)
    soft = job.soft
    soft.rank = factorise_rows(job, 0, soft.rows)
    orthonormalise(job)


@inner
def hold(job, right, u):
    """forces ← y, u += W y; right: d of each row, overwritten."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    n6 = WIDTH * job.bodies
    y = parts.forces
    R = parts.triangle
    b = parts.left
    for i in range(soft.rows):
        body = tail(u, WIDTH * soft.bodies[i])
        right[i] = parts.scales[i] * (right[i] - dot_6(tail(parts.entries, WIDTH * i), body))
    for c in range(soft.rank):
        b[c] = 0.0
        for i in range(soft.rows):
            b[c] += parts.basis[most * c + i] * right[i]
    for c in range(soft.rank - 1, -1, -1):
        for k in range(c + 1, soft.rank):
            b[c] -= R[most * c + k] * b[k]
        b[c] /= R[most * c + c]
    for c in range(soft.rank):
        for k in range(c):
            b[c] -= R[most * k + c] * b[k]
        b[c] /= R[most * c + c]
    for i in range(soft.rows):
        y[i] = 0.0
        for c in range(soft.rank):
            y[i] += parts.scales[i] * parts.basis[most * c + i] * b[c]
        direction = tail(parts.directions, n6 * i)
        for k in range(n6):
            u[k] += y[i] * direction[k]


@inner
def fill_speeds(job, part, out):
    """out ← a part of w of every row."""
    for h in range(MOST_HANDS):
        hand = Hand(job.soft_floats, h)
        if is_holding(hand):
            for i in range(int(hand.rows)):
                out[int(hand.row) + i] = part * hand.speed[i]


@inner
def eliminate_holds(job):
    """G of all rows ← that with the hands that hold; their own rows ← those of the unit matrix."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    matrix = parts.matrix
    g = parts.left
    held = parts.scales
    for i in range(soft.rows):
        held[i] = 0.0
    for h in range(MOST_HANDS):
        hand = Hand(job.soft_floats, h)
        if is_holding(hand):
            for i in range(int(hand.rows)):
                held[int(hand.row) + i] = 1.0
    for _ in range(soft.rows):
        pivot = -1
        largest = FIXED
        for i in range(soft.rows):
            row = tail(parts.entries, WIDTH * i)
            if held[i] == 1.0 and matrix[most * i + i] > largest * dot_6(row, row):
                largest = matrix[most * i + i] / dot_6(row, row)
                pivot = i
        if pivot < 0:
            break
        held[pivot] = 2.0
        for i in range(soft.rows):
            g[i] = matrix[most * max(i, pivot) + min(i, pivot)]
        for i in range(soft.rows):
            for j in range(i + 1):
                matrix[most * i + j] -= g[i] * g[j] / g[pivot]
    for i in range(soft.rows):
        for j in range(i + 1):
            if held[i] != 0.0 or held[j] != 0.0:
                matrix[most * i + j] = 1.0 if i == j else 0.0


@inner
def project_forces(job, q):
    """FORCE, TORQUE of hands that hold ← their parts in the columns of the basis, which is that of q; rows: right."""
    parts = SoftWork(job.soft.pieces, job.soft_memory)
    soft = job.soft
    most = soft.most
    x = parts.right
    b = parts.left
    for h in range(MOST_HANDS):
        hand = Hand(job.soft_floats, h)
        if is_holding(hand):
            row = tail(x, int(hand.row))
            for i in range(3):
                row[i] = hand.force[i]
            if hand.rows == 6.0:
                scale = parts.scales[int(hand.row) + 3]
                t = hand.torque
                row[3], row[4], row[5] = back_rotated(tail(q, POSE * int(hand.body) + 3), t[0], t[1], t[2])
                for i in range(3, 6):
                    row[i] /= scale
    for c in range(soft.rank):
        b[c] = 0.0
        for i in range(soft.rows):
            b[c] += parts.basis[most * c + i] * x[i]
    for i in range(soft.rows):
        x[i] = 0.0
        for c in range(soft.rank):
            x[i] += parts.basis[most * c + i] * b[c]
    for h in range(MOST_HANDS):
        hand = Hand(job.soft_floats, h)
        if is_holding(hand):
            row = tail(x, int(hand.row))
            for i in range(3):
                hand.force[i] = row[i]
            if hand.rows == 6.0:
                s = parts.scales[int(hand.row) + 3]
                a, b_, c_ = rotated(tail(q, POSE * int(hand.body) + 3), s * row[3], s * row[4], s * row[5])
                hand.torque[0] = a
                hand.torque[1] = b_
                hand.torque[2] = c_


@inner
def extrapolated(hand, h):
    """Write e at the end of a cycle of h [s] to FORCE and TORQUE, and keep what the next cycle needs."""
    square = hand.twist / hand.stiffness
    along = 0.0
    length = 0.0
    for i in range(6):
        e = hand.impulse[i] / h
        if hand.known > 0.0:
            e += 0.5 * (hand.first[i] - hand.before[i])
        weight = 1.0 if i < 3 else 1.0 / square
        d = e - hand.jump[i] if hand.known > 0.0 else 0.0
        along += weight * d * hand.trend[i]
        length += weight * d * d
        hand.trend[i] = d
        hand.jump[i] = e
        hand.before[i] = hand.pull[i]
    part = min(1.0, max(0.0, along / length)) if length > 0.0 else 0.0
    for i in range(3):
        hand.force[i] = hand.jump[i] + part * hand.trend[i]
        hand.torque[i] = hand.jump[3 + i] + part * hand.trend[3 + i]
    hand.known += 1.0


@inner
def finish_holds(job, q, h):
    """FORCE, TORQUE, REDUNDANT ← what hands that hold feel at the end of a cycle of h [s] at q.

    The rows of the last solution are those of q.  The basis is overwritten.
    """
    for k in range(MOST_HANDS):
        hand = Hand(job.soft_floats, k)
        if is_holding(hand):
            extrapolated(hand, h)
    project_forces(job, q)
    for k in range(MOST_HANDS):
        hand = Hand(job.soft_floats, k)
        if is_holding(hand):
            for i in range(3):
                hand.force[i] = -hand.force[i] - hand.pull[i]
                hand.torque[i] = -hand.torque[i] - hand.pull[3 + i]
            hand.redundant = hand.rows - factorise_rows(job, int(hand.row), int(hand.rows))
