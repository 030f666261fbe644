"""Whether a pair of boxes contains no local minimum of f = ½|S¹ − S²|², for the search of all local minima.

At the centre of the boxes g = ∂f/∂x.  Within them |g_i − g_i(centre)| ≤ Σ_j sup|H_ij| α_j with the half widths α, and

    |H_ij| ≤ |S_i| |S_j| + D |S_ij|   (the second term for parameters of one shape).

A pair is excluded if some g_i cannot vanish, and cannot have the sign of an active bound that the box touches, or if
some H_ii is negative in all of the box.
The numbers of both nodes are in BOX of the workspace.
"""

from cardan._jit import cut, evaluator, floats_at, integers_at, tail
from cardan.geometry import abi
from cardan.geometry._nodes import dot, enclose
from cardan.geometry._polish import difference
from cardan.geometry._workspace import BOUNDS_A, BOUNDS_B, BOX, NORMAL, ROWS_A, ROWS_B, Y


def _exclude(op, ints, floats, q, step, out, jacobian, work):
    job = ints
    numbers = (int(work[BOX]), int(work[BOX + 1]))
    other = tail(job, abi.TREE)
    first = integers_at(job[abi.T_NODES])[abi.NODE_INTS * numbers[0]]
    second = integers_at(other[abi.T_NODES])[abi.NODE_INTS * numbers[1]]
    patch_a = tail(integers_at(job[abi.T_PATCHES]), abi.PATCH * first)
    patch_b = tail(integers_at(other[abi.T_PATCHES]), abi.PATCH * second)
    patches = (patch_a, patch_b)
    found = (first, second)
    boxes = (
        tail(floats_at(job[abi.T_BOXES]), abi.NODE * numbers[0] + abi.N_BOX),
        tail(floats_at(other[abi.T_BOXES]), abi.NODE * numbers[1] + abi.N_BOX),
    )
    x = cut(work, Y, 4)
    reach = 0.0
    for k in range(2):
        tree = tail(job, abi.TREE * k)
        root = integers_at(tree[abi.T_NODES])[abi.NODE_INTS * numbers[k] + abi.N_ROOT]
        bounds = tail(floats_at(tree[abi.T_BOUNDS]), abi.BOUNDS * root)
        reach += floats_at(tree[abi.T_BOXES])[abi.NODE * numbers[k] + abi.N_SIZE]
        B = tail(work, BOUNDS_A + (BOUNDS_B - BOUNDS_A) * k)
        if patches[k][abi.P_FREEDOMS] > 0:
            enclose(patches[k], abi.DERIVATIVES, boxes[k], B, bounds, work)
    for k in range(2):
        for p in range(2):
            x[2 * k + p] = 0.5 * (boxes[k][2 * p] + boxes[k][2 * p + 1])
    f = difference(job, patches, x, floats, work)
    r = tail(work, NORMAL)
    far = (2.0 * f) ** 0.5 + 2.0 * reach
    for i in range(4):
        k, p = i >> 1, i & 1
        if p < patches[k][abi.P_FREEDOMS]:
            S = tail(work, ROWS_A + (ROWS_B - ROWS_A) * k)
            B = tail(work, BOUNDS_A + (BOUNDS_B - BOUNDS_A) * k)
            g = dot(tail(S, 3 + 3 * p), r) * (1.0 - 2.0 * k)
            change = 0.0
            for l in range(2):
                for s in range(patches[l][abi.P_FREEDOMS]):
                    half = 0.5 * (boxes[l][2 * s + 1] - boxes[l][2 * s])
                    bound = B[p] * work[BOUNDS_A + (BOUNDS_B - BOUNDS_A) * l + s]
                    if l == k:
                        bound += far * B[2 + p + s]
                    change += bound * half
            tree = tail(job, abi.TREE * k)
            limit = tail(floats_at(tree[abi.T_LIMITS]), abi.P_LIMITS * found[k] + 3 * p)
            at_lower = limit[2] == 0.0 and boxes[k][2 * p] <= limit[0]
            at_upper = limit[2] == 0.0 and boxes[k][2 * p + 1] >= limit[1]
            if (g > change and not at_lower) or (g < -change and not at_upper):
                return 1
            if not at_lower and not at_upper:  # a minimum needs H_ii ≥ 0
                freedoms = patches[k][abi.P_FREEDOMS]
                bend = dot(tail(S, 3 + 3 * p), tail(S, 3 + 3 * p))
                bend += dot(tail(S, 3 * (1 + freedoms + 2 * p)), r) * (1.0 - 2.0 * k)
                change = 0.0
                for l in range(2):
                    for s in range(patches[l][abi.P_FREEDOMS]):
                        half = 0.5 * (boxes[l][2 * s + 1] - boxes[l][2 * s])
                        bound = B[2 + 2 * p] * work[BOUNDS_A + (BOUNDS_B - BOUNDS_A) * l + s]
                        if l == k:
                            bound += 2.0 * B[2 + p + s] * B[p] + far * B[5 + 2 * p + s]
                        change += bound * half
                if bend < -change:
                    return 1
    return 0


EXCLUDE = evaluator(_exclude)
