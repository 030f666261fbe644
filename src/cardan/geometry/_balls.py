"""Balls around minima in which no pair is closer (the equations are in ``_search.py``).

Reads g, H and V of a polish and the derivative bounds of both trees; writes balls (:mod:`.abi`).
"""

from math import floor, sqrt

from cardan._jit import cut, floats_at, inner, integers_at, tail
from cardan.geometry._nodes import bounds_of, box_of, enclose, limits_of, links_of, norm, patch_of
from cardan.geometry._polish import ball_of
from cardan.geometry._workspace import BOUNDS_A, BOUNDS_B, CLIPPED, DX, FIXED, G, H, L, V, Y
from cardan.geometry.abi import (
    BOUNDS,
    DERIVATIVES,
    J_BALLS,
    N_BOX,
    N_PATCH,
    P_FREEDOMS,
    T_BOUNDS,
    T_BOXES,
    T_LIMITS,
    T_NODES,
    T_PATCHES,
    T_ROOTS,
    TREE,
)

SHRINK = 0.7  # of the radius of a ball that is not certified
LEAST = 1e-3  # of the radius that is tried: smaller balls are not sought
ROUNDS = 5  # evaluations of the derivative bounds, within smaller and smaller balls
FIRST_BALL = 0.5  # of the width of a root: the radius that is tried first


@inner
def bounds_near(tree, number, x, reach, out, work):
    """out ← largest derivative bounds in the box x ± reach, from the parts of it in the roots of a patch."""
    nodes = integers_at(tree[T_NODES])
    boxes = floats_at(tree[T_BOXES])
    bounds = floats_at(tree[T_BOUNDS])
    patch = patch_of(integers_at(tree[T_PATCHES]), number)
    limits = limits_of(floats_at(tree[T_LIMITS]), number)
    part = cut(work, CLIPPED, 4)
    found = cut(work, CLIPPED + 4, 9)
    for i in range(BOUNDS):
        out[i] = 0.0
    for k in range(tree[T_ROOTS]):
        if links_of(nodes, k)[N_PATCH] == number:
            box = box_of(boxes, k)
            meets = True
            for i in range(patch[P_FREEDOMS]):
                near = x[i]
                period = limits[3 * i + 2]
                if period > 0.0:
                    near += period * floor((0.5 * (box[2 * i] + box[2 * i + 1]) - near) / period + 0.5)
                part[2 * i] = max(box[2 * i], near - reach[i])
                part[2 * i + 1] = min(box[2 * i + 1], near + reach[i])
                meets = meets and part[2 * i] < part[2 * i + 1]
            if meets:
                enclose(patch, DERIVATIVES, part, found, bounds_of(bounds, k), work)
                for i in range(BOUNDS):
                    out[i] = max(out[i], found[i])


@inner
def holds(patches, h, g, fixed, sigma, lipschitz, rho, K):
    """Whether H + diag(2|g|/ρ) − (Lρ/3) I is positive definite, in lengths y = σ x."""
    good = True
    for i in range(4):
        for j in range(i + 1):
            s = h[4 * i + j] / (sigma[i] * sigma[j])
            if (i & 1) >= patches[i >> 1][P_FREEDOMS] or (j & 1) >= patches[j >> 1][P_FREEDOMS]:
                s = 1.0 if i == j else 0.0
            elif i == j:
                s -= lipschitz * rho / 3.0
                if fixed[i] != 0.0:
                    s += 2.0 * abs(g[i]) / (sigma[i] * rho)
            for k in range(j):
                s -= K[4 * i + k] * K[4 * j + k]
            if i == j:
                good = good and s > 0.0
                K[4 * i + i] = sqrt(s) if s > 0.0 else 1.0
            else:
                K[4 * i + j] = s / K[4 * j + j]
    return good


@inner
def ball_radius(job, numbers, patches, x, distance, work):
    """ρ of the ball around the minimum x in which no point is closer; zero if there is none; σ in DX."""
    v = cut(work, V, 12)
    g = cut(work, G, 4)
    h = cut(work, H, 16)
    fixed = cut(work, FIXED, 4)
    K = cut(work, L, 16)
    sigma = cut(work, DX, 4)
    reach = cut(work, Y, 4)
    rho = 0.0
    for i in range(4):
        sigma[i] = norm(tail(v, 3 * i))
        if (i & 1) < patches[i >> 1][P_FREEDOMS]:
            if sigma[i] == 0.0:
                return 0.0
            tree = tail(job, TREE * (i >> 1))
            box = tail(floats_at(tree[T_BOXES]), N_BOX + 2 * (i & 1))
            rho = max(rho, FIRST_BALL * sigma[i] * (box[1] - box[0]))
        else:
            sigma[i] = 1.0
    found = lipschitz = 0.0
    inside = LEAST * rho
    rounds = 0
    while True:
        if holds(patches, h, g, fixed, sigma, lipschitz, inside, K):
            if rounds > 0:
                found = max(found, inside)
                if inside == rho:
                    return found
        else:
            if rounds == 0:  # H itself is not positive definite
                return 0.0
            inside *= SHRINK
            if inside > LEAST * rho:
                continue
        if rounds == ROUNDS:
            return found
        if rounds > 0:
            rho = sqrt(rho * max(found, inside))
        rounds += 1
        m1 = m2 = m3 = 0.0
        for k in range(2):
            freedoms = patches[k][P_FREEDOMS]
            if freedoms > 0:
                B = tail(work, BOUNDS_A + (BOUNDS_B - BOUNDS_A) * k)
                s, t = 1.0 / sigma[2 * k], 1.0 / sigma[2 * k + 1]
                reach[0], reach[1] = rho * s, rho * t
                bounds_near(tail(job, TREE * k), numbers[k], tail(x, 2 * k), reach, B, work)
                if freedoms == 1:
                    t = 0.0
                ss, tt = s * s, t * t
                m1 += B[0] * B[0] * ss + B[1] * B[1] * tt
                m2 = max(m2, sqrt(B[2] * B[2] * ss * ss + 2.0 * B[3] * B[3] * ss * tt + B[4] * B[4] * tt * tt))
                third = ss * ss * (B[5] * B[5] * ss + 3.0 * B[6] * B[6] * tt)
                m3 = max(m3, sqrt(third + tt * tt * (3.0 * B[7] * B[7] * ss + B[8] * B[8] * tt)))
        m1 = sqrt(m1)
        lipschitz = 3.0 * m1 * m2 + (distance + m1 * rho) * m3
        inside = rho  # L holds in smaller balls too


@inner
def in_a_ball(job, na, nb, least, count):
    """Whether a pair of nodes is inside one of count balls whose distance is at least ``least``."""
    trees = (job, tail(job, TREE))
    numbers = (na, nb)
    for n in range(count):
        ball = ball_of(floats_at(job[J_BALLS]), n)
        rest = ball[10] * ball[10] if ball[11] >= least else -1.0
        for i in range(4):
            if rest >= 0.0:
                tree = trees[i >> 1]
                k = numbers[i >> 1]
                patch = links_of(integers_at(tree[T_NODES]), k)[N_PATCH]
                box = tail(box_of(floats_at(tree[T_BOXES]), k), 2 * (i & 1))
                period = limits_of(floats_at(tree[T_LIMITS]), patch)[3 * (i & 1) + 2]
                d = 0.5 * (box[0] + box[1]) - ball[2 + i]
                if period > 0.0:
                    d -= period * floor(d / period + 0.5)
                far = (abs(d) + 0.5 * (box[1] - box[0])) * ball[6 + i]
                rest -= far * far
                if patch != ball[i >> 1]:
                    rest = -1.0
        if rest >= 0.0:
            return True
    return False
