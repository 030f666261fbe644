"""Regular pairs: r·S¹_i = 0 and N¹·S²_j = 0, with r = S¹ − S² and the normal N¹ of the first shape.

At a closest pair that is not on an edge the difference is along both normals.  These equations do not divide by the
distance: they stay regular at a gap of zero and when the shapes penetrate each other, where the gap
(S² − S¹)·N¹/|N¹| is negative.  Newton's method; the step is bounded.
N¹ = S_u × S_v of a surface, and (y', −x', 0) of a curve in the xy plane.
"""

from math import sqrt

from cardan._jit import cut, floats_at, inner, integers_at, jit, pointer, tail
from cardan.geometry import abi
from cardan.geometry._nodes import dot
from cardan.geometry._polish import difference, open_pose
from cardan.geometry._workspace import FRAME, NORMAL, ROWS_A, ROWS_B

ITERATIONS = 40
CONVERGED = 1e-13
F, M = 60, 72  # pieces of the workspace: F (4), and a matrix 4×5


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


@jit
def regular(job, pose, x, options):
    """x ← a regular pair near x; options ← gap in O_DISTANCE, points.  Returns 0 if it converged."""
    job = integers_at(job)
    other = tail(job, abi.TREE)
    x = pointer(x)
    options = pointer(options)
    work = floats_at(job[abi.J_WORK])
    T = cut(work, FRAME, 12)
    open_pose(pointer(pose), T)
    at_a, at_b = int(options[abi.O_PATCH_A]), int(options[abi.O_PATCH_B])
    patch_a = tail(integers_at(job[abi.T_PATCHES]), abi.PATCH * at_a)
    patch_b = tail(integers_at(other[abi.T_PATCHES]), abi.PATCH * at_b)
    patches = (patch_a, patch_b)
    limits = (
        tail(floats_at(job[abi.T_LIMITS]), abi.P_LIMITS * at_a),
        tail(floats_at(other[abi.T_LIMITS]), abi.P_LIMITS * at_b),
    )
    first, second = patch_a[abi.P_FREEDOMS], patch_b[abi.P_FREEDOMS]
    n = first + second
    A = cut(work, ROWS_A, 30)
    B = cut(work, ROWS_B, 30)
    N = cut(work, 96, 9)
    m = cut(work, M, 20)
    status = 1
    for used in range(ITERATIONS + 1):
        difference(job, patches, x, T, work)
        r = tail(work, NORMAL)
        normal_and_rates(A, first, N)
        size = sqrt(dot(N, N))
        options[abi.O_DISTANCE] = -dot(r, N) / size
        for c in range(3):
            options[abi.O_POINT_A + c] = A[c]
            options[abi.O_POINT_B + c] = B[c]
        if status == 0 or used == ITERATIONS:
            break
        for i in range(n):
            row = tail(m, 5 * i)
            if i < first:
                t = tail(A, 3 + 3 * i)
                row[4] = -dot(r, t)
                for k in range(first):
                    row[k] = dot(tail(A, 3 + 3 * k), t) + dot(r, tail(A, 3 * (1 + first + i + k)))
                for k in range(second):
                    row[first + k] = -dot(tail(B, 3 + 3 * k), t)
            else:
                j = i - first
                t = tail(B, 3 + 3 * j)
                row[4] = -dot(N, t)
                for k in range(first):
                    row[k] = dot(tail(N, 3 + 3 * k), t)
                for k in range(second):
                    row[first + k] = dot(N, tail(B, 3 * (1 + second + j + k)))
        good = True
        for k in range(n):  # elimination with row exchanges
            best = k
            for i in range(k + 1, n):
                if abs(m[5 * i + k]) > abs(m[5 * best + k]):
                    best = i
            if not abs(m[5 * best + k]) > 0.0:
                good = False
                break
            for c in range(5):
                m[5 * k + c], m[5 * best + c] = m[5 * best + c], m[5 * k + c]
            for i in range(k + 1, n):
                factor = m[5 * i + k] / m[5 * k + k]
                for c in range(k, 5):
                    m[5 * i + c] -= factor * m[5 * k + c]
        if not good:
            return 2
        for back in range(n):
            i = n - 1 - back
            s = m[5 * i + 4]
            for k in range(i + 1, n):
                s -= m[5 * i + k] * m[5 * k + 4]
            m[5 * i + 4] = s / m[5 * i + i]
        shorten = 1.0
        change = 0.0
        for i in range(n):
            k = 0 if i < first else 1
            p = i if i < first else i - first
            width = limits[k][3 * p + 1] - limits[k][3 * p]
            change = max(change, abs(m[5 * i + 4]) / width)
        shorten = min(1.0, 0.1 / change) if change > 0.0 else 1.0
        for i in range(n):
            k = 0 if i < first else 1
            p = i if i < first else i - first
            limit = tail(limits[k], 3 * p)
            to = x[2 * k + p] + shorten * m[5 * i + 4]
            if limit[2] == 0.0:
                to = min(max(to, limit[0]), limit[1])
            x[2 * k + p] = to
        if change <= CONVERGED:
            status = 0
    return status
