"""Whether a pair of boxes contains no local minimum of f = ½|S¹ − S²|², for the search of all local minima.

At the centre of the boxes g = ∂f/∂x.  Within them |g_i − g_i(centre)| ≤ Σ_j sup|H_ij| α_j with the half widths α, and

    |H_ij| ≤ |S_i| |S_j| + D |S_ij|   (the second term for parameters of one shape).

A pair is excluded if some g_i cannot vanish, and cannot have the sign of an active bound that the box touches, or if
some H_ii is negative in all of the box.

Two more tests concern the parameters i ∈ F whose side of the box touches no bound; C_ij ≥ |H_ij − H_ij(centre)| from
bounds of the third derivatives r_ij·r_l + r_il·r_j + r_jl·r_i + r·r_ijl.

* A saddle point: elimination of H_FF finds a vector w with wᵀH w < 0 at the centre, and so in all of the box if
  wᵀH w < −Σ |w_i| |w_j| C_ij.
* No point with g_F = 0 ([Krawczyk1969]): with Y = H_FF⁻¹, some i has
  |(Y g)_i| > α_i + Σ_j (|Y| C)_ij α_j + Σ_{j∉F} |Y H|_ij α_j.

The numbers of both nodes are in BOX of the workspace.
"""

from cardan.geometry._nodes import dot, enclose
from cardan.geometry._polish import difference
from cardan.geometry.tables import (
    BOUNDS,
    DERIVATIVES,
    LIMITS,
    Limit,
    NodeBox,
    NodeLinks,
    PatchTable,
    SearchJob,
    SearchWork,
    TreeTable,
)
from cardan.kernel.jit import evaluator, inner
from cardan.kernel.memory import tail

PIVOT = 1e-13  # of the largest entry: H_FF counts as singular


@inner
def third(work, i, j, l, far):
    """A bound of |∂³f/∂x_i ∂x_j ∂x_l|."""
    a, b, c = i >> 1, j >> 1, l >> 1
    p, q, s = i & 1, j & 1, l & 1
    A = tail(work.bounds, 10 * a)
    B = tail(work.bounds, 10 * b)
    C = tail(work.bounds, 10 * c)
    total = 0.0
    if a == b:
        total += A[2 + p + q] * C[s]
    if a == c:
        total += A[2 + p + s] * B[q]
    if b == c:
        total += B[2 + q + s] * A[p]
    if a == b and b == c:
        total += far * A[5 + p + q + s]
    return total


@inner
def second_order(patches, half, far, work):
    """H at the centre, and change ← C."""
    r = work.normal
    h = work.h
    change = work.change
    for i in range(4):
        for j in range(4):
            h[4 * i + j] = change[4 * i + j] = 0.0
            if (i & 1) < patches[i >> 1].freedoms and (j & 1) < patches[j >> 1].freedoms:
                k = i >> 1
                S = work.rows_b if k == 1 else work.rows_a
                other = work.rows_b if j >> 1 == 1 else work.rows_a
                value = dot(tail(S, 3 + 3 * (i & 1)), tail(other, 3 + 3 * (j & 1)))
                if k == j >> 1:
                    second = tail(S, 3 * (1 + patches[k].freedoms + (i & 1) + (j & 1)))
                    value += dot(second, r) * (1.0 - 2.0 * k)
                else:
                    value = -value
                h[4 * i + j] = value
                for l in range(4):
                    if (l & 1) < patches[l >> 1].freedoms:
                        change[4 * i + j] += third(work, i, j, l, far) * half[l]


@inner
def is_saddle(free, w, work):
    """Whether some w of the free parameters has wᵀH w < 0 in all of the box."""
    h = work.h
    change = work.change
    K = work.system  # H = K D Kᵀ with ones on the diagonal of K and D on that of the array
    for k in range(4):
        for i in range(k, 4):
            s = 0.0
            if free[i] != 0.0 and free[k] != 0.0:
                s = h[4 * i + k]
                for j in range(k):
                    if free[j] != 0.0:
                        s -= K[4 * i + j] * K[4 * k + j] * K[5 * j]
                if i > k:
                    s /= K[5 * k]
            K[4 * i + k] = s
            if i == k and free[k] != 0.0 and not s > 0.0:  # w = −H_{<k}⁻¹ H_{<k,k}, and 1
                bound = 0.0
                for back in range(k + 1):
                    at = k - back
                    w[at] = 1.0 if at == k else 0.0
                    if at < k and free[at] != 0.0:
                        for j in range(at + 1, k + 1):
                            if free[j] != 0.0:
                                w[at] -= K[4 * j + at] * w[j]
                for a in range(k + 1):
                    for b in range(k + 1):
                        bound += abs(w[a]) * abs(w[b]) * change[4 * a + b]
                return s < -bound
    return False


@inner
def has_no_root(free, half, g, work):
    """Whether g_F vanishes nowhere in the box."""
    h = work.h
    change = work.change
    m = work.system  # H_FF and the unit matrix, then Y
    largest = 0.0
    for i in range(4):
        for j in range(4):
            both = free[i] != 0.0 and free[j] != 0.0
            m[8 * i + j] = h[4 * i + j] if both else (1.0 if i == j else 0.0)
            m[8 * i + 4 + j] = 1.0 if i == j else 0.0
            if both:
                largest = max(largest, abs(h[4 * i + j]))
    for k in range(4):
        best = k
        for i in range(k + 1, 4):
            if abs(m[8 * i + k]) > abs(m[8 * best + k]):
                best = i
        if free[k] != 0.0 and not abs(m[8 * best + k]) > PIVOT * largest:
            return False
        for c in range(8):
            m[8 * k + c], m[8 * best + c] = m[8 * best + c], m[8 * k + c]
        pivot = m[8 * k + k]
        for c in range(8):
            m[8 * k + c] /= pivot
        for i in range(4):
            if i != k:
                factor = m[8 * i + k]
                for c in range(8):
                    m[8 * i + c] -= factor * m[8 * k + c]
    for i in range(4):
        if free[i] != 0.0:
            step, reach = 0.0, half[i]
            for j in range(4):
                fixed = 0.0
                for k in range(4):
                    if free[k] != 0.0:
                        y = m[8 * i + 4 + k]
                        reach += abs(y) * change[4 * k + j] * half[j]
                        if free[j] == 0.0:
                            fixed += y * h[4 * k + j]
                        elif j == k:
                            step += y * g[k]
                reach += abs(fixed) * half[j]
            if abs(step) > reach:
                return True
    return False


def _exclude(op, ints, floats, q, step, out, jacobian, work):
    job = SearchJob(ints)
    work = SearchWork(work)
    numbers = (int(work.box[0]), int(work.box[1]))
    trees = (TreeTable(job.trees, 0), TreeTable(job.trees, 1))
    places = (NodeLinks(trees[0].nodes, numbers[0]).patch, NodeLinks(trees[1].nodes, numbers[1]).patch)
    patches = (PatchTable(trees[0].patches, places[0]), PatchTable(trees[1].patches, places[1]))
    boxes = (NodeBox(trees[0].boxes, numbers[0]).box, NodeBox(trees[1].boxes, numbers[1]).box)
    x = work.y
    reach = 0.0
    for k in range(2):
        tree = trees[k]
        bounds = tail(tree.bounds, BOUNDS * NodeLinks(tree.nodes, numbers[k]).root)
        reach += NodeBox(tree.boxes, numbers[k]).extent
        B = tail(work.bounds, 10 * k)
        if patches[k].freedoms > 0:
            enclose(patches[k], DERIVATIVES, boxes[k], B, bounds, work)
    for k in range(2):
        for p in range(2):
            x[2 * k + p] = 0.5 * (boxes[k][2 * p] + boxes[k][2 * p + 1])
    f = difference(patches, x, floats, work)
    r = work.normal
    far = (2.0 * f) ** 0.5 + 2.0 * reach
    free, gradient, halves = work.fixed, work.g, work.dx
    for i in range(4):
        k, p = i >> 1, i & 1
        free[i] = gradient[i] = halves[i] = 0.0
        if p < patches[k].freedoms:
            S = work.rows_b if k == 1 else work.rows_a
            B = tail(work.bounds, 10 * k)
            g = dot(tail(S, 3 + 3 * p), r) * (1.0 - 2.0 * k)
            change = 0.0
            for l in range(2):
                for s in range(patches[l].freedoms):
                    half = 0.5 * (boxes[l][2 * s + 1] - boxes[l][2 * s])
                    bound = B[p] * work.bounds[10 * l + s]
                    if l == k:
                        bound += far * B[2 + p + s]
                    change += bound * half
            limit = Limit(tail(trees[k].limits, LIMITS * places[k]), p)
            at_lower = limit.period == 0.0 and boxes[k][2 * p] <= limit.lower
            at_upper = limit.period == 0.0 and boxes[k][2 * p + 1] >= limit.upper
            if (g > change and not at_lower) or (g < -change and not at_upper):
                return 1
            halves[i], gradient[i] = 0.5 * (boxes[k][2 * p + 1] - boxes[k][2 * p]), g
            if not at_lower and not at_upper:  # a minimum needs H_ii ≥ 0
                free[i] = 1.0
                freedoms = patches[k].freedoms
                bend = dot(tail(S, 3 + 3 * p), tail(S, 3 + 3 * p))
                bend += dot(tail(S, 3 * (1 + freedoms + 2 * p)), r) * (1.0 - 2.0 * k)
                change = 0.0
                for l in range(2):
                    for s in range(patches[l].freedoms):
                        half = 0.5 * (boxes[l][2 * s + 1] - boxes[l][2 * s])
                        bound = B[2 + 2 * p] * work.bounds[10 * l + s]
                        if l == k:
                            bound += 2.0 * B[2 + p + s] * B[p] + far * B[5 + 2 * p + s]
                        change += bound * half
                if bend < -change:
                    return 1
    second_order(patches, halves, far, work)
    return 1 if is_saddle(free, x, work) or has_no_root(free, halves, gradient, work) else 0


EXCLUDE = evaluator(_exclude)
