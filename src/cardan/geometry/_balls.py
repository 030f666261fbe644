"""Balls around minima in which no pair is closer (the equations are in ``_search.py``).

Reads g, H and V of a polish and the derivative bounds of both trees; writes balls (:mod:`.abi`).
"""

from math import floor, sqrt

from cardan._jit import cut, floats_at, inner, integers_at, tail
from cardan.geometry import abi
from cardan.geometry._nodes import enclose, norm
from cardan.geometry._workspace import BOUNDS_A, BOUNDS_B, CLIPPED, DX, FIXED, G, H, L, V, Y

SHRINK = 0.7  # of the radius of a ball that is not certified
LEAST = 1e-3  # of the radius that is tried: smaller balls are not sought
ROUNDS = 5  # evaluations of the derivative bounds, within smaller and smaller balls
FIRST_BALL = 0.5  # of the width of a root: the radius that is tried first


@inner
def bounds_near(tree, number, x, reach, out, work):
    """out ← largest derivative bounds in the box x ± reach, from the parts of it in the roots of a patch."""
    nodes = integers_at(tree[abi.T_NODES])
    boxes = floats_at(tree[abi.T_BOXES])
    bounds = floats_at(tree[abi.T_BOUNDS])
    patch = tail(integers_at(tree[abi.T_PATCHES]), abi.PATCH * number)
    limits = tail(floats_at(tree[abi.T_LIMITS]), abi.P_LIMITS * number)
    part = cut(work, CLIPPED, 4)
    found = cut(work, CLIPPED + 4, 9)
    for i in range(abi.BOUNDS):
        out[i] = 0.0
    for k in range(tree[abi.T_ROOTS]):
        if nodes[abi.NODE_INTS * k + abi.N_PATCH] == number:
            box = tail(boxes, abi.NODE * k + abi.N_BOX)
            meets = True
            for i in range(patch[abi.P_FREEDOMS]):
                near = x[i]
                period = limits[3 * i + 2]
                if period > 0.0:
                    near += period * floor((0.5 * (box[2 * i] + box[2 * i + 1]) - near) / period + 0.5)
                part[2 * i] = max(box[2 * i], near - reach[i])
                part[2 * i + 1] = min(box[2 * i + 1], near + reach[i])
                meets = meets and part[2 * i] < part[2 * i + 1]
            if meets:
                enclose(patch, abi.DERIVATIVES, part, found, tail(bounds, abi.BOUNDS * k), work)
                for i in range(abi.BOUNDS):
                    out[i] = max(out[i], found[i])


@inner
def holds(patches, h, g, fixed, sigma, lipschitz, rho, K):
    """Whether H + diag(2|g|/ρ) − (Lρ/3) I is positive definite, in lengths y = σ x."""
    good = True
    for i in range(4):
        for j in range(i + 1):
            s = h[4 * i + j] / (sigma[i] * sigma[j])
            if (i & 1) >= patches[i >> 1][abi.P_FREEDOMS] or (j & 1) >= patches[j >> 1][abi.P_FREEDOMS]:
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
        if (i & 1) < patches[i >> 1][abi.P_FREEDOMS]:
            if sigma[i] == 0.0:
                return 0.0
            tree = tail(job, abi.TREE * (i >> 1))
            box = tail(floats_at(tree[abi.T_BOXES]), abi.N_BOX + 2 * (i & 1))
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
            freedoms = patches[k][abi.P_FREEDOMS]
            if freedoms > 0:
                B = tail(work, BOUNDS_A + (BOUNDS_B - BOUNDS_A) * k)
                s, t = 1.0 / sigma[2 * k], 1.0 / sigma[2 * k + 1]
                reach[0], reach[1] = rho * s, rho * t
                bounds_near(tail(job, abi.TREE * k), numbers[k], tail(x, 2 * k), reach, B, work)
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
def in_a_ball(job, na, nb, least, balls, count):
    """Whether a pair of nodes is inside a ball whose distance is at least ``least``."""
    ints_a = tail(integers_at(job[abi.T_NODES]), abi.NODE_INTS * na)
    ints_b = tail(integers_at(job[abi.TREE + abi.T_NODES]), abi.NODE_INTS * nb)
    for n in range(count):
        ball = tail(balls, abi.BALL * n)
        if ball[0] == ints_a[abi.N_PATCH] and ball[1] == ints_b[abi.N_PATCH] and ball[11] >= least:
            total = 0.0
            for i in range(4):
                tree = tail(job, abi.TREE * (i >> 1))
                patch = ints_a[abi.N_PATCH] if i < 2 else ints_b[abi.N_PATCH]
                period = floats_at(tree[abi.T_LIMITS])[abi.P_LIMITS * patch + 3 * (i & 1) + 2]
                box = tail(floats_at(tree[abi.T_BOXES]), abi.NODE * (na if i < 2 else nb) + abi.N_BOX + 2 * (i & 1))
                d = 0.5 * (box[0] + box[1]) - ball[2 + i]
                if period > 0.0:
                    d -= period * floor(d / period + 0.5)
                far = (abs(d) + 0.5 * (box[1] - box[0])) * ball[6 + i]
                total += far * far
            if total <= ball[10] * ball[10]:
                return True
    return False
