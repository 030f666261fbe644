"""Balls around minima of f = ½ r·r in which no pair is closer.

In lengths y = σ x, at y* + d:  r = r* + V d + s with |s| ≤ ½ M₂ |d|², where M₂ and M₃ bound |S''| and |S'''| of both
shapes within the ball |d| ≤ ρ.  Let C = r*·∂²r, so that H = V Vᵀ + C.  Then

    f − f* = g·d + ½ |V d + s|² + r*·s
    ½ |V d + s|² ≥ ½ (1 − z) |V d|² − ½ (1/z − 1) |s|²   for 0 < z ≤ 1
    r*·s ≥ ½ dᵀC d − D M₃ |d|³/6
    g·d ≥ Σ |g_i| d_i²/ρ   over the parameters at active bounds.

With z = min(½ M₂ ρ, 1): f ≥ f* in the ball if H − z V Vᵀ + diag(2|g|/ρ − z (1 − z) − D M₃ ρ/3) is positive definite,
with M₃ of each shape in its own two rows.

A search of all local minima needs balls without other minima: f increases along each ray from y*.  Its derivative is
r·(V d + t) with |t| ≤ M₂ |d|², and in the same way, with z = ½ M₂ ρ < ⅔, it is positive if
H − (3/2) z V Vᵀ + diag(|g|/ρ − (3/2) z − 2 z² − D M₃ ρ/2) is positive definite.

Reads g, H and V of a polish and the derivative bounds of both trees; writes balls (:mod:`.tables`).
"""

from math import floor, inf, sqrt

from cardan.geometry._nodes import dot, enclose, norm
from cardan.geometry.tables import BOUNDS, DERIVATIVES, LIMITS, Ball, Limit, NodeBox, NodeLinks, PatchTable, TreeTable
from cardan.kernel.jit import inner
from cardan.kernel.memory import tail

SHRINK = 0.7  # of the radius of a ball that is not certified
LEAST = 1e-3  # of the radius that is tried first: smaller balls are not sought
ROUNDS = 3  # evaluations of the derivative bounds, within balls of other radii
CLOSE = 1.3  # ratio of a radius that is not certified to one that is: they are near enough to each other
FIRST_BALL, GROW = 0.15, 3.0  # of the width of a root: the radius that is tried first; its factor if it is certified


@inner
def bounds_near(tree, number, x, reach, out, work):
    """out ← largest derivative bounds in the box x ± reach, from the parts of it in the roots of a patch."""
    patch = PatchTable(tree.patches, number)
    limits = tail(tree.limits, LIMITS * number)
    part = work.clipped
    of_part = work.part_bounds
    for i in range(BOUNDS):
        out[i] = 0.0
    for k in range(tree.roots):
        if NodeLinks(tree.nodes, k).patch == number:
            box = NodeBox(tree.boxes, k).box
            meets = True
            for i in range(patch.freedoms):
                near = x[i]
                period = Limit(limits, i).period
                if period > 0.0:
                    near += period * floor((0.5 * (box[2 * i] + box[2 * i + 1]) - near) / period + 0.5)
                part[2 * i] = max(box[2 * i], near - reach[i])
                part[2 * i + 1] = min(box[2 * i + 1], near + reach[i])
                meets = meets and part[2 * i] < part[2 * i + 1]
            if meets:
                enclose(patch, DERIVATIVES, part, of_part, tail(tree.bounds, BOUNDS * k), work)
                for i in range(BOUNDS):
                    out[i] = max(out[i], of_part[i])


@inner
def holds(patches, bend, twists, rho, alone, work):
    """Whether a ball of radius ρ has no closer pair; alone: and no other minimum.  bend: ½ M₂; twists: D M₃ of both
    shapes."""
    h, g, v, fixed, sigma, K = work.h, work.g, work.v, work.fixed, work.dx, work.factor
    z = bend * rho
    lost = min(z, 1.0)
    less = lost * (1.0 - lost)
    twist, edge = rho / 3.0, 2.0 / rho
    if alone:
        lost = 1.5 * z
        less = lost + 2.0 * z * z
        twist, edge = 0.5 * rho, 1.0 / rho
    good = lost <= 1.0
    for i in range(4):
        for j in range(i + 1):
            s = (h[4 * i + j] - lost * dot(tail(v, 3 * i), tail(v, 3 * j))) / (sigma[i] * sigma[j])
            if (i & 1) >= patches[i >> 1].freedoms or (j & 1) >= patches[j >> 1].freedoms:
                s = 1.0 if i == j else 0.0
            elif i == j:
                s -= less + twists[i >> 1] * twist
                if fixed[i] != 0.0:
                    s += edge * abs(g[i]) / sigma[i]
            for k in range(j):
                s -= K[4 * i + k] * K[4 * j + k]
            if i == j:
                good = good and s > 0.0
                K[4 * i + i] = sqrt(s) if s > 0.0 else 1.0
            else:
                K[4 * i + j] = s / K[4 * j + j]
    return good


@inner
def ball_radius(job, numbers, patches, x, distance, alone, work):
    """ρ of the ball around the minimum x in which no pair is closer; zero if there is none; σ in dx.

    alone: a ball without other minima.
    """
    v = work.v
    sigma = work.dx
    reach = work.y
    rho = 0.0
    for i in range(4):
        sigma[i] = norm(tail(v, 3 * i))
        if (i & 1) < patches[i >> 1].freedoms:
            if sigma[i] == 0.0:
                return 0.0
            tree = TreeTable(job.trees, i >> 1)
            box = tail(NodeBox(tree.boxes, 0).box, 2 * (i & 1))
            rho = max(rho, FIRST_BALL * sigma[i] * (box[1] - box[0]))
        else:
            sigma[i] = 1.0
    least = LEAST * rho
    low, high = 0.0, inf  # certified, and not certified
    bend = twist = other = 0.0  # ½ M₂; D M₃ of the second and of the first shape
    inside = least
    rounds = 0
    while True:
        if holds(patches, bend, (other, twist), inside, alone, work):
            if rounds > 0:
                low = inside
        else:
            if rounds == 0:  # H itself is not positive definite
                return 0.0
            inside *= SHRINK
            if inside > max(low, least):
                continue
        if rounds > 0:
            if low < rho:
                high = rho
            if (rounds == ROUNDS) | (high < CLOSE * low):
                return low
            rho = sqrt(max(low, least) * high) if high < inf else GROW * low
        rounds += 1
        bend = twist = 0.0
        for k in range(2):
            other = twist
            twist = 0.0
            freedoms = patches[k].freedoms
            if freedoms > 0:
                B = tail(work.bounds, 10 * k)
                s, t = 1.0 / sigma[2 * k], 1.0 / sigma[2 * k + 1]
                reach[0], reach[1] = rho * s, rho * t
                bounds_near(TreeTable(job.trees, k), numbers[k], tail(x, 2 * k), reach, B, work)
                if freedoms == 1:
                    t = 0.0
                ss, tt = s * s, t * t
                second = B[2] * B[2] * ss * ss + 2.0 * B[3] * B[3] * ss * tt + B[4] * B[4] * tt * tt
                bend = max(bend, 0.5 * sqrt(second))
                third = ss * ss * (B[5] * B[5] * ss + 3.0 * B[6] * B[6] * tt)
                third += tt * tt * (3.0 * B[7] * B[7] * ss + B[8] * B[8] * tt)
                twist = distance * sqrt(third)
        inside = rho  # the bounds hold in smaller balls too


@inner
def in_a_ball(job, na, nb, least, count):
    """Whether a pair of nodes is inside one of count balls whose distance is at least ``least``."""
    trees = (TreeTable(job.trees, 0), TreeTable(job.trees, 1))
    numbers = (na, nb)
    for n in range(count):
        ball = Ball(job.balls, n)
        rest = ball.rho * ball.rho if ball.distance >= least else -1.0
        for i in range(4):
            if rest >= 0.0:
                tree = trees[i >> 1]
                k = numbers[i >> 1]
                patch = NodeLinks(tree.nodes, k).patch
                box = tail(NodeBox(tree.boxes, k).box, 2 * (i & 1))
                period = Limit(tail(tree.limits, LIMITS * patch), i & 1).period
                d = 0.5 * (box[0] + box[1]) - ball.x[i]
                if period > 0.0:
                    d -= period * floor(d / period + 0.5)
                far = (abs(d) + 0.5 * (box[1] - box[0])) * ball.sigma[i]
                rest -= far * far
                if patch != ball.patches[i >> 1]:
                    rest = -1.0
        if rest >= 0.0:
            return True
    return False
