"""The kernel that draws random poses for restarts, with SplitMix64 seeded for each body.  [Steele2014]

Draws are bitwise reproducible: every operation is rounded as written, on every machine.
"""

from math import cos, pi, sin, sqrt

import numpy as np

from cardan.analysis.tables import Draw, Drawn
from cardan.kernel.jit import evaluator, exact_inner
from cardan.kernel.memory import fma

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
DRAWS = 64  # random numbers reserved for each attempt
TURNS = 1.5  # counted angles are drawn within ± this many turns of the first start

# operations
NEAR, ANYWHERE, SOME, BETWEEN, APART = 0, 1, 2, 3, 4
CHOSEN = (0.5, 0.25)  # share of the bodies that SOME draws, in turn


@exact_inner
def uniform(seed, index):
    """The random number with this index, in [0, 1)."""
    z = seed + np.uint64(index) * _GOLDEN
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    z = z ^ (z >> _S31)
    return float(z >> _S11) * 2.0**-53


@exact_inner
def place(o, q, shift, rotation, center, out):
    """out ← center + A(p) shift and p ⊗ rotation, for the body at offset o with the orientation p in q."""
    x, y, z = shift
    w0, w1, w2, w3 = rotation
    e0 = q[o + 3]
    e1 = q[o + 4]
    e2 = q[o + 5]
    e3 = q[o + 6]
    u0 = 2.0 * fma(e2, z, -e3 * y)
    u1 = 2.0 * fma(e3, x, -e1 * z)
    u2 = 2.0 * fma(e1, y, -e2 * x)
    out[o] = fma(-e3, u1, fma(e0, u0, fma(e2, u2, center[0] + x)))
    out[o + 1] = fma(e3, u0, fma(e0, u1, fma(-e1, u2, center[1] + y)))
    out[o + 2] = fma(-e2, u0, fma(e1, u1, fma(e0, u2, center[2] + z)))
    out[o + 3] = fma(e0, w0, -fma(e3, w3, fma(e2, w2, e1 * w1)))
    out[o + 4] = fma(-e3, w2, fma(e2, w3, fma(e1, w0, e0 * w1)))
    out[o + 5] = fma(e3, w1, fma(e2, w0, fma(e0, w2, -e1 * w3)))
    out[o + 6] = fma(e3, w0, fma(-e2, w1, fma(e1, w2, e0 * w3)))


@exact_inner
def draw_anywhere(drawn, attempt, q, reach, center, out):
    """Uniform orientations; positions within ± reach of the centre, along the axes of the authored body in q.

    Free variables are drawn between zero and twice their values in q.
    Odd attempts draw the counted angles too: a screw may need another number of turns than the start has.
    """
    bodies = drawn.bodies
    variables = drawn.variables
    seeds = drawn.seeds
    for b in range(bodies):
        k = attempt * DRAWS + 1
        seed = np.uint64(seeds[b])
        x = reach * (2.0 * uniform(seed, k) - 1.0)
        y = reach * (2.0 * uniform(seed, k + 1) - 1.0)
        z = reach * (2.0 * uniform(seed, k + 2) - 1.0)
        # from the unit cube to uniform unit quaternions [Shoemake1992]
        u = uniform(seed, k + 3)
        v = 2.0 * pi * uniform(seed, k + 4)
        w = 2.0 * pi * uniform(seed, k + 5)
        s = sqrt(1.0 - u)
        t = sqrt(u)
        rotation = (s * sin(v), s * cos(v), t * sin(w), t * cos(w))
        place(7 * b, q, (x, y, z), rotation, (center[0], center[1], center[2]), out)
    for k in range(bodies, bodies + variables):
        o = 6 * bodies + k
        out[o] = q[o]
        if k < bodies + drawn.free:
            out[o] *= 2.0 * uniform(np.uint64(seeds[k]), attempt * DRAWS + 1)
    for k in range(bodies + variables, bodies + variables + drawn.angles):
        o = 6 * bodies + k
        out[o] = q[o]
        if attempt % 2 == 1:
            out[o] += 2.0 * pi * TURNS * (2.0 * uniform(np.uint64(seeds[k]), attempt * DRAWS + 1) - 1.0)


@exact_inner
def draw_near(bodies, angles, seeds, attempt, q, size, length, out):
    """q with every body moved by up to size·length and rotated by up to about size rad."""
    for b in range(bodies):
        k = attempt * DRAWS + 1
        o = 7 * b
        seed = np.uint64(seeds[b])
        x = size * length * (2.0 * uniform(seed, k) - 1.0)
        y = size * length * (2.0 * uniform(seed, k + 1) - 1.0)
        z = size * length * (2.0 * uniform(seed, k + 2) - 1.0)
        t1 = 0.5 * size * (2.0 * uniform(seed, k + 3) - 1.0)
        t2 = 0.5 * size * (2.0 * uniform(seed, k + 4) - 1.0)
        t3 = 0.5 * size * (2.0 * uniform(seed, k + 5) - 1.0)
        n = 1.0 / sqrt(fma(t3, t3, fma(t2, t2, fma(t1, t1, 1.0))))
        place(o, q, (x, y, z), (n, n * t1, n * t2, n * t3), (q[o], q[o + 1], q[o + 2]), out)
    for o in range(7 * bodies, 7 * bodies + angles):
        out[o] = q[o]


@exact_inner
def keep_others(bodies, angles, seeds, attempt, best, out):
    """out ← best for all bodies but some, chosen at random, and for all counted angles."""
    k = attempt * DRAWS + 7
    largest = CHOSEN[attempt % 2]
    least = 1.0
    for b in range(bodies):
        least = min(least, uniform(np.uint64(seeds[b]), k))
    for b in range(bodies):
        if uniform(np.uint64(seeds[b]), k) > max(largest, least):  # at least one body is drawn
            for o in range(7 * b, 7 * b + 7):
                out[o] = best[o]
    for o in range(7 * bodies, 7 * bodies + angles):
        out[o] = best[o]


@exact_inner
def interpolate(bodies, angles, q, target, share, out):
    """out ← poses at a share of the way from q to target; orientations along the shorter arc."""
    for b in range(bodies):
        o = 7 * b
        dot = 0.0
        for i in range(o + 3, o + 7):
            dot = fma(q[i], target[i], dot)
        sign = -share if dot < 0.0 else share
        for i in range(o, o + 7):
            out[i] = fma(sign if i >= o + 3 else share, target[i], (1.0 - share) * q[i])
        square = 0.0
        for i in range(o + 3, o + 7):
            square = fma(out[i], out[i], square)
        factor = 1.0 / sqrt(square)
        for i in range(o + 3, o + 7):
            out[i] *= factor
    for o in range(7 * bodies, 7 * bodies + angles):
        out[o] = fma(share, target[o], (1.0 - share) * q[o])


@exact_inner
def square_apart(bodies, q, other, length):
    """Σ |Δr|²/L² + 4 sin²(θ/2) over all bodies, which are rotated by θ relative to each other."""
    result = 0.0
    for b in range(bodies):
        o = 7 * b
        dot = 0.0
        for i in range(o, o + 3):
            d = (q[i] - other[i]) / length
            result = fma(d, d, result)
        for i in range(o + 3, o + 7):
            dot = fma(q[i], other[i], dot)
        result += 4.0 * max(0.0, fma(-dot, dot, 1.0))
    return result


def _draw(op, ints, floats, q, other, out, unused_1, unused_2):
    """out ← a draw from q: op NEAR, ANYWHERE, SOME (the other bodies as in ``other``), or BETWEEN q and other.

    op APART: out[0] ← squared distance of q and other.  ints: what is drawn (Drawn); floats: how (Draw).
    """
    drawn = Drawn(ints)
    draw = Draw(floats)
    bodies = drawn.bodies
    others = drawn.variables + drawn.angles
    attempt = int(draw.attempt)
    if op == NEAR:
        draw_near(bodies, others, drawn.seeds, attempt, q, draw.spread, draw.length, out)
    elif op == BETWEEN:
        interpolate(bodies, others, q, other, draw.share, out)
    elif op == APART:
        out[0] = square_apart(bodies, q, other, draw.length)
    else:
        draw_anywhere(drawn, attempt, q, draw.reach, draw.center, out)
        if op == SOME:
            keep_others(bodies, others, drawn.seeds, attempt, other, out)
    return 0


DRAW = evaluator(_draw)
