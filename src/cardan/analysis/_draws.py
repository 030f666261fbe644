"""Kernels that draw poses for restarts: SplitMix64 of each body's seed.  [Steele2014]"""

from math import cos, pi, sin, sqrt

import numpy as np

from cardan._jit import inner, jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
DRAWS = 64  # numbers set aside for each attempt
TURNS = 1.5  # angles begin to be counted from within ± so many turns of where the first start was


@inner
def uniform(seed, index):
    """Number of that index in [0, 1)."""
    z = seed + np.uint64(index) * _GOLDEN
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    z = z ^ (z >> _S31)
    return float(z >> _S11) * 2.0**-53


@inner
def place(o, a, q, x, y, z, w0, w1, w2, w3, c0, c1, c2, out):
    """out ← c + A(a) (x, y, z) and p ⊗ w for the body at offset o, with a its authored pose, p the one in q."""
    e0 = a[o + 3]
    e1 = a[o + 4]
    e2 = a[o + 5]
    e3 = a[o + 6]
    u0 = 2.0 * (e2 * z - e3 * y)
    u1 = 2.0 * (e3 * x - e1 * z)
    u2 = 2.0 * (e1 * y - e2 * x)
    out[o] = c0 + x + e0 * u0 + e2 * u2 - e3 * u1
    out[o + 1] = c1 + y + e0 * u1 + e3 * u0 - e1 * u2
    out[o + 2] = c2 + z + e0 * u2 + e1 * u1 - e2 * u0
    e0 = q[o + 3]
    e1 = q[o + 4]
    e2 = q[o + 5]
    e3 = q[o + 6]
    out[o + 3] = e0 * w0 - e1 * w1 - e2 * w2 - e3 * w3
    out[o + 4] = e0 * w1 + e1 * w0 + e2 * w3 - e3 * w2
    out[o + 5] = e0 * w2 - e1 * w3 + e2 * w0 + e3 * w1
    out[o + 6] = e0 * w3 + e1 * w2 - e2 * w1 + e3 * w0


@jit
def draw_anywhere(bodies, seeds, attempt, q, center, reach, out):
    """Uniform orientations, positions within ± reach of the centre along the axes of the authored body in q.

    Every other time the angles behind the poses are drawn too: a screw may want another turn than the start has.
    """
    for b in range(bodies):
        k = attempt * DRAWS + 1
        x = reach * (2.0 * uniform(seeds[b], k) - 1.0)
        y = reach * (2.0 * uniform(seeds[b], k + 1) - 1.0)
        z = reach * (2.0 * uniform(seeds[b], k + 2) - 1.0)
        # from the unit cube to uniform unit quaternions [Shoemake1992]
        u = uniform(seeds[b], k + 3)
        v = 2.0 * pi * uniform(seeds[b], k + 4)
        w = 2.0 * pi * uniform(seeds[b], k + 5)
        s = sqrt(1.0 - u)
        t = sqrt(u)
        place(
            7 * b, q, q, x, y, z, s * sin(v), s * cos(v), t * sin(w), t * cos(w), center[0], center[1], center[2], out
        )
    for k in range(bodies, seeds.size):
        o = 6 * bodies + k
        out[o] = q[o]
        if attempt % 2 == 1:
            out[o] += 2.0 * pi * TURNS * (2.0 * uniform(seeds[k], attempt * DRAWS + 1) - 1.0)
    return bodies


@jit
def draw_near(bodies, seeds, attempt, q, size, length, out):
    """q with every body moved by up to size·length and turned by up to about size rad."""
    for b in range(bodies):
        k = attempt * DRAWS + 1
        o = 7 * b
        x = size * length * (2.0 * uniform(seeds[b], k) - 1.0)
        y = size * length * (2.0 * uniform(seeds[b], k + 1) - 1.0)
        z = size * length * (2.0 * uniform(seeds[b], k + 2) - 1.0)
        t1 = 0.5 * size * (2.0 * uniform(seeds[b], k + 3) - 1.0)
        t2 = 0.5 * size * (2.0 * uniform(seeds[b], k + 4) - 1.0)
        t3 = 0.5 * size * (2.0 * uniform(seeds[b], k + 5) - 1.0)
        n = 1.0 / sqrt(1.0 + t1 * t1 + t2 * t2 + t3 * t3)
        place(o, q, q, x, y, z, n, n * t1, n * t2, n * t3, q[o], q[o + 1], q[o + 2], out)
    return bodies
