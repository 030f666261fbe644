"""Kernels over the packed tables: reference points, the characteristic length, the change of reference."""

from math import sqrt

from cardan._jit import inner, jit
from cardan.system.layout import (
    BODIES,
    BODY,
    CODE,
    CONSTRAINTS,
    FEATURE,
    FEATURES,
    HEADER,
    KIND,
    NEXT,
    PAR,
    POSE,
    RECORD,
    SLOTS,
    SOURCE,
)

SAME_POINT = 1e-14  # of its coordinates: a body whose points differ by less has no size


@jit
def center_features(ints, floats, centers, sizes, counts):
    """Move each body's reference to the centroid of its points, in place; sizes ← extent of each body's points.

    centers [m], shape (bodies + 1, 3), in body axes, the last row for the ground, which is the origin of the solvers;
    sizes [m], shape (bodies + 1,): twice the largest distance of a point from the centroid, or zero.
    """
    bodies = ints[BODIES]
    for sweep in range(3):
        record = HEADER
        for _ in range(ints[CONSTRAINTS]):
            at = record + RECORD + ints[record + SLOTS]
            for _ in range(ints[record + FEATURES]):
                if ints[at + KIND] == 0:
                    body = ints[at + BODY]
                    if body < 0:
                        body = bodies
                    s = ints[at + SOURCE]
                    if sweep == 0:
                        counts[body] += 1.0
                        for i in range(3):
                            centers[3 * body + i] += floats[s + i]
                    else:
                        x = floats[s] - centers[3 * body]
                        y = floats[s + 1] - centers[3 * body + 1]
                        z = floats[s + 2] - centers[3 * body + 2]
                        if sweep == 1:
                            m = max(abs(x), abs(y), abs(z))
                            if m > 0.0:  # scaled, so that the squares neither overflow nor vanish
                                x /= m
                                y /= m
                                z /= m
                                sizes[body] = max(sizes[body], 2.0 * m * sqrt(x * x + y * y + z * z))
                        else:
                            floats[s] = x
                            floats[s + 1] = y
                            floats[s + 2] = z
                at += FEATURE
            record = ints[record + NEXT]
        for b in range(bodies + 1):
            largest = 0.0
            for i in range(3):
                if sweep == 0 and counts[b] > 0.0:
                    centers[3 * b + i] /= counts[b]
                largest = max(largest, abs(centers[3 * b + i]))
            if sizes[b] <= SAME_POINT * largest:  # equal points, whose mean is off by rounding
                sizes[b] = 0.0


@jit
def link_bodies(ints, starts, links):
    """Constraints by body: those that touch body b have their records in links[starts[b]:starts[b + 1]]."""
    bodies = ints[BODIES]
    for b in range(bodies + 2):
        starts[b] = 0
    for sweep in range(2):
        record = HEADER
        for _ in range(ints[CONSTRAINTS]):
            for i in range(ints[record + SLOTS]):
                b = ints[record + RECORD + i]
                if sweep == 0:
                    starts[b + 2] += 1
                else:
                    links[starts[b + 1]] = record
                    starts[b + 1] += 1
            record = ints[record + NEXT]
        if sweep == 0:
            for b in range(2, bodies + 2):
                starts[b] += starts[b - 1]


@inner
def on_ground(ints, record):
    """Whether a constraint has a feature on the ground."""
    at = record + RECORD + ints[record + SLOTS]
    for _ in range(ints[record + FEATURES]):
        if ints[at + BODY] < 0:
            return True
        at += FEATURE
    return False


@jit
def characteristic_length(ints, floats, sizes, distance_codes, order, starts, links, queue, level, depth):
    """Extent of the assembled mechanism [m]: the ground's extent, or the longest chain of bodies.  Fills level.

    Bodies are visited level by level from the ground; what it does not reach is visited from the first body by name
    (order), and its levels count down from −1, so that level < 0 says: not connected to the ground.
    depth of a body = least depth of a neighbour one level nearer + its size + the length of a rod between them.
    None of this depends on the order of bodies or constraints.
    """
    bodies = ints[BODIES]
    for b in range(bodies):
        level[b] = 0
        depth[b] = 0.0
    longest = sizes[bodies]
    head = 0
    tail = 0
    record = HEADER
    for _ in range(ints[CONSTRAINTS]):
        code = ints[record + CODE]
        rod = floats[ints[record + PAR]] if code == distance_codes[0] or code == distance_codes[1] else 0.0
        longest = max(longest, rod)
        if on_ground(ints, record):
            for i in range(ints[record + SLOTS]):
                b = ints[record + RECORD + i]
                if level[b] == 0:
                    level[b] = 1
                    depth[b] = sizes[b] + rod
                    queue[tail] = b
                    tail += 1
                else:
                    depth[b] = min(depth[b], sizes[b] + rod)
        record = ints[record + NEXT]
    seed = 0
    sign = 1
    while True:
        while head < tail:
            b = queue[head]
            head += 1
            longest = max(longest, depth[b])
            for k in range(starts[b], starts[b + 1]):
                record = links[k]
                code = ints[record + CODE]
                rod = floats[ints[record + PAR]] if code == distance_codes[0] or code == distance_codes[1] else 0.0
                for i in range(ints[record + SLOTS]):
                    other = ints[record + RECORD + i]
                    reach = depth[b] + sizes[other] + rod
                    if level[other] == 0:
                        level[other] = level[b] + sign
                        depth[other] = reach
                        queue[tail] = other
                        tail += 1
                    elif level[other] == level[b] + sign:
                        depth[other] = min(depth[other], reach)
        while seed < bodies and level[order[seed]] != 0:
            seed += 1
        if seed == bodies:
            return longest
        sign = -1
        level[order[seed]] = -1
        depth[order[seed]] = sizes[order[seed]]
        queue[tail] = order[seed]
        tail += 1


@jit
def shift_reference(bodies, centers, origin, sign, q):
    """q ← poses with r moved by sign·(A(p) c − origin): from body origins to reference points (+1), or back (−1)."""
    for b in range(bodies):
        o = POSE * b
        e0 = q[o + 3]
        e1 = q[o + 4]
        e2 = q[o + 5]
        e3 = q[o + 6]
        c0 = sign * centers[3 * b]
        c1 = sign * centers[3 * b + 1]
        c2 = sign * centers[3 * b + 2]
        # A c = c + 2 e₀ (e × c) + 2 e × (e × c) for a unit quaternion
        u0 = 2.0 * (e2 * c2 - e3 * c1)
        u1 = 2.0 * (e3 * c0 - e1 * c2)
        u2 = 2.0 * (e1 * c1 - e2 * c0)
        q[o] = (q[o] - sign * origin[0]) + (c0 + e0 * u0 + e2 * u2 - e3 * u1)
        q[o + 1] = (q[o + 1] - sign * origin[1]) + (c1 + e0 * u1 + e3 * u0 - e1 * u2)
        q[o + 2] = (q[o + 2] - sign * origin[2]) + (c2 + e0 * u2 + e1 * u1 - e2 * u0)
