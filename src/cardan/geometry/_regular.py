"""Regular pairs: r·S¹_i = 0 and N¹·S²_j = 0, with r = S¹ − S² and the normal N¹ of the first shape.

At a closest pair that is not on an edge the difference is along both normals.  These equations do not divide by the
distance: they stay regular at a gap of zero and when the shapes penetrate each other, where the gap
(S² − S¹)·N¹/|N¹| is negative.  Newton's method; the step is bounded.
N¹ = S_u × S_v of a surface, and (y', −x', 0) of a curve in the xy plane.

Where shapes touch along a line or a face (a cylinder on a plane), the pairs are not isolated and the matrix is
singular.  Elimination with row and column exchanges then leaves the remaining parameters where they are; the equations
that are left must hold already.  Rows and columns are scaled by lengths, so that entries are ratios and angles.
"""

from math import sqrt

from cardan.geometry._nodes import dot, norm
from cardan.geometry._polish import difference, open_pose
from cardan.geometry.tables import LIMITS, Limit, PatchTable, SearchJob, SearchOptions, SearchWork, TreeTable
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import integers_at, pointer, tail

ITERATIONS = 40
CONVERGED = 1e-13
SINGULAR = 1e-9  # a pivot: the angle by which a normal turns over the whole range of a parameter
CONSISTENT = 1e-9  # what may be left of an equation without a pivot


@inner
def cross_into(a, b, factor, out):
    out[0] += factor * (a[1] * b[2] - a[2] * b[1])
    out[1] += factor * (a[2] * b[0] - a[0] * b[2])
    out[2] += factor * (a[0] * b[1] - a[1] * b[0])


@inner
def normal_and_rates(S, freedoms, N):
    """N ← normal, ∂N/∂u, ∂N/∂v: nine numbers."""
    for k in range(9):
        N[k] = 0.0
    if freedoms == 2:
        u, v = tail(S, 3), tail(S, 6)
        cross_into(u, v, 1.0, N)
        for k in range(2):
            cross_into(tail(S, 9 + 3 * k), v, 1.0, tail(N, 3 + 3 * k))
            cross_into(u, tail(S, 12 + 3 * k), 1.0, tail(N, 3 + 3 * k))
    else:
        N[0], N[1] = S[4], -S[3]
        N[3], N[4] = S[7], -S[6]


@inner
def eliminate(m, order, n):
    """Elimination with row and column exchanges; m ← triangular, order ← columns; returns the rank."""
    for k in range(n):
        row, column = k, k
        for i in range(k, n):
            for c in range(k, n):
                if abs(m[5 * i + c]) > abs(m[5 * row + column]):
                    row, column = i, c
        if not abs(m[5 * row + column]) > SINGULAR:
            return k
        for c in range(5):
            m[5 * k + c], m[5 * row + c] = m[5 * row + c], m[5 * k + c]
        for i in range(n):
            m[5 * i + k], m[5 * i + column] = m[5 * i + column], m[5 * i + k]
        order[k], order[column] = order[column], order[k]
        for i in range(k + 1, n):
            factor = m[5 * i + k] / m[5 * k + k]
            for c in range(k, 5):
                m[5 * i + c] -= factor * m[5 * k + c]
    return n


@jit
def regular(job, pose, x, options):
    """x ← a regular pair near x; options ← the gap as distance, points.  Returns 0 if it converged."""
    job = SearchJob(integers_at(job))
    one, two = TreeTable(job.trees, 0), TreeTable(job.trees, 1)
    x = pointer(x)
    options = SearchOptions(pointer(options))
    work = SearchWork(job.work)
    T = work.frame
    open_pose(pointer(pose), T)
    at_a, at_b = int(options.patch_a), int(options.patch_b)
    patches = (PatchTable(one.patches, at_a), PatchTable(two.patches, at_b))
    limits = (tail(one.limits, LIMITS * at_a), tail(two.limits, LIMITS * at_b))
    first, second = patches[0].freedoms, patches[1].freedoms
    n = first + second
    A = work.rows_a
    B = work.rows_b
    N = work.change  # and its rates
    m = work.system  # 4 × 5
    width = work.dx  # of the parameters
    order = work.y  # columns in the order of the pivots
    for i in range(n):
        limit = Limit(limits[0], i) if i < first else Limit(limits[1], i - first)
        width[i] = limit.upper - limit.lower
    status = 1
    for used in range(ITERATIONS + 1):
        difference(patches, x, T, work)
        r = work.normal
        normal_and_rates(A, first, N)
        size = sqrt(dot(N, N))
        options.distance = -dot(r, N) / size
        for c in range(3):
            options.point_a[c] = A[c]
            options.point_b[c] = B[c]
        if status == 0 or used == ITERATIONS:
            break
        length = 0.0
        for i in range(n):
            order[i] = i
            length = max(length, width[i] * norm(tail(A, 3 + 3 * i) if i < first else tail(B, 3 + 3 * (i - first))))
        for i in range(n):
            row = tail(m, 5 * i)
            if i < first:
                t = tail(A, 3 + 3 * i)
                row[4] = -dot(r, t)
                for k in range(first):
                    row[k] = dot(tail(A, 3 + 3 * k), t) + dot(r, tail(A, 3 * (1 + first + i + k)))
                for k in range(second):
                    row[first + k] = -dot(tail(B, 3 + 3 * k), t)
                scale = length * norm(t)
            else:
                j = i - first
                t = tail(B, 3 + 3 * j)
                row[4] = -dot(N, t)
                for k in range(first):
                    row[k] = dot(tail(N, 3 + 3 * k), t)
                for k in range(second):
                    row[first + k] = dot(N, tail(B, 3 * (1 + second + j + k)))
                scale = size * norm(t)
            if not scale > 0.0:
                return 2
            row[4] /= scale
            for k in range(n):
                row[k] *= width[k] / scale
        rank = eliminate(m, order, n)
        for i in range(rank, n):
            if not abs(m[5 * i + 4]) <= CONSISTENT:
                return 2
        change = 0.0
        for back in range(rank):
            i = rank - 1 - back
            s = m[5 * i + 4]
            for k in range(i + 1, rank):
                s -= m[5 * i + k] * m[5 * k + 4]
            m[5 * i + 4] = s / m[5 * i + i]
            change = max(change, abs(m[5 * i + 4]))
        shorten = min(1.0, 0.1 / change) if change > 0.0 else 1.0
        for row_number in range(rank):
            i = int(order[row_number])
            k = 0 if i < first else 1
            p = i if i < first else i - first
            limit = Limit(limits[k], p)
            to = x[2 * k + p] + shorten * m[5 * row_number + 4] * width[i]
            if limit.period == 0.0:
                to = min(max(to, limit.lower), limit.upper)
            x[2 * k + p] = to
        if change <= CONVERGED:
            status = 0
    return status
