"""Kernels over the packed tables: packing, centroids, the characteristic length, the change of reference frames."""

from math import sqrt

from cardan.kernel.jit import exact, exact_inner
from cardan.system.tables import (
    ANGLE,
    ANGLE_RECORD,
    ANGLE_TABLE,
    AXES,
    FEATURE,
    HEADER,
    ORIENTATION,
    POINT,
    POSE,
    RECORD,
    AngleRecord,
    Feature,
    Record,
    SystemTable,
)

SAME_POINT = 1e-14  # of its coordinates: a body whose points differ by less has no size


@exact_inner
def numbered(numbers, serial):
    """The number of a serial number; −1 where there is none."""
    return numbers[serial] if serial < numbers.size else -1


@exact_inner
def number_records(ints, numbers, starts):
    """Templates become records, in place: offsets added up, serial numbers replaced, slots in ascending order.

    numbers: of bodies and of counted angles by serial number.  starts ← where the records begin, and where they end.
    Returns −1, or the first record that refers to a body or a counted angle that has no number.
    """
    system = SystemTable(ints)
    at = HEADER
    row = 0
    block = 0
    par = 0
    for k in range(system.constraints):
        record = Record(ints[at:])
        starts[k] = at
        rows = record.rows
        slots = record.slots
        size = record.par
        record.row = row
        record.block = block
        record.par = par
        record.next += at
        system.tallest = max(system.tallest, rows)
        system.widest = max(system.widest, record.components)
        bodies = ints[at + RECORD :]
        for s in range(slots):
            number = numbered(numbers, bodies[s])
            if number < 0:
                return k
            i = s
            while i > 0 and bodies[i - 1] > number:
                bodies[i] = bodies[i - 1]
                i -= 1
            bodies[i] = number
        for f in range(at + RECORD + slots, record.next, FEATURE):
            feature = Feature(ints[f:])
            if feature.kind == ANGLE:
                feature.source = numbered(numbers, feature.source)
                if feature.source < 0:
                    return k
                continue
            feature.source += par
            if feature.body >= 0:
                number = numbered(numbers, feature.body)
                feature.body = number
                i = 0
                while bodies[i] != number:
                    i += 1
                feature.slot = i
        row += rows
        block += rows * slots
        par += size
        at = record.next
    starts[system.constraints] = at
    system.rows = row
    system.blocks = block
    ints[ANGLE_TABLE] = at  # kernels cannot assign to a field Within
    for _ in range(system.angles):
        angle = AngleRecord(ints[at:])
        if angle.a >= 0:
            angle.a = numbered(numbers, angle.a)
            if angle.a < 0:
                return system.constraints
        if angle.b >= 0:
            angle.b = numbered(numbers, angle.b)
            if angle.b < 0:
                return system.constraints
        angle.source = par
        at += ANGLE_RECORD
        par += AXES
    return -1


@exact_inner
def center_features(ints, floats, absolute, points, sizes, counts):
    """Move each body's reference to the centroid of its points, in place; sizes ← extent of each body's points.

    absolute: whether the ground's points stay where they are, and the origin of the solvers is that of the world.
    points [m], shape (bodies + 1, 3), in body axes, the last row for the ground, which is the origin of the solvers;
    sizes [m], shape (bodies + 1,): twice the largest distance of a point from the centroid, or zero.
    """
    system = SystemTable(ints)
    bodies = system.bodies
    for sweep in range(3):
        at = HEADER
        for _ in range(system.constraints):
            record = Record(ints[at:])
            for f in range(at + RECORD + record.slots, record.next, FEATURE):
                feature = Feature(ints[f:])
                if feature.kind == POINT:
                    body = feature.body
                    if body < 0:
                        body = bodies
                    s = floats[feature.source :]
                    c = points[3 * body :]
                    if sweep == 0:
                        counts[body] += 1.0
                        for i in range(3):
                            c[i] += s[i]
                    elif sweep == 1:
                        m = max(abs(s[0] - c[0]), abs(s[1] - c[1]), abs(s[2] - c[2]))
                        if m > 0.0:  # scaled, so that the squares neither overflow nor vanish
                            square = 0.0
                            for i in range(3):
                                part = (s[i] - c[i]) / m
                                square += part * part
                            sizes[body] = max(sizes[body], 2.0 * m * sqrt(square))
                    elif body < bodies or not absolute:
                        for i in range(3):
                            s[i] -= c[i]
            at = record.next
        for b in range(bodies + 1):
            largest = 0.0
            for i in range(3 * b, 3 * b + 3):
                if sweep == 0 and counts[b] > 0.0:
                    points[i] /= counts[b]
                largest = max(largest, abs(points[i]))
            if sizes[b] <= SAME_POINT * largest:  # equal points, whose mean is off by rounding
                sizes[b] = 0.0
    if absolute:
        for i in range(3 * bodies, 3 * bodies + 3):
            points[i] = 0.0


@exact_inner
def link_bodies(ints, starts, links):
    """Constraints by body: those that touch body b have their records in links[starts[b]:starts[b + 1]]."""
    system = SystemTable(ints)
    bodies = system.bodies
    for b in range(bodies + 2):
        starts[b] = 0
    for sweep in range(2):
        at = HEADER
        for _ in range(system.constraints):
            record = Record(ints[at:])
            for s in range(record.slots):
                b = record.bodies[s]
                if sweep == 0:
                    starts[b + 2] += 1
                else:
                    links[starts[b + 1]] = at
                    starts[b + 1] += 1
            at = record.next
        if sweep == 0:
            for b in range(2, bodies + 2):
                starts[b] += starts[b - 1]


@exact_inner
def rod(record, floats, rods):
    """Length [m] of the rod that a constraint is; zero for most.  rods: codes of the primitives of a distance."""
    for k in range(rods.size):
        if record.code == rods[k]:
            return floats[record.par]
    return 0.0


@exact_inner
def characteristic_length(ints, floats, rods, sizes, order, starts, links, queue, level, depth):
    """Extent of the assembled mechanism [m]: the ground's extent, or the longest chain of bodies.  Fills level.

    Bodies are visited level by level from the ground; what it does not reach is visited from the first body by name
    (order), and its levels count down from −1, so that level < 0 says: not connected to the ground.
    depth of a body = least depth of a neighbour one level nearer + its size + the length of a rod between them.
    None of this depends on the order of bodies or constraints.
    Returns −1 where order is needed and has not the size of it.
    """
    system = SystemTable(ints)
    bodies = system.bodies
    for b in range(bodies):
        level[b] = 0
        depth[b] = 0.0
    longest = sizes[bodies]
    head = 0
    tail = 0
    at = HEADER
    for _ in range(system.constraints):
        record = Record(ints[at:])
        length = rod(record, floats, rods)
        longest = max(longest, length)
        grounded = False
        for f in range(at + RECORD + record.slots, record.next, FEATURE):
            feature = Feature(ints[f:])
            grounded = grounded or (feature.body < 0 and feature.kind < ANGLE)
        if grounded:
            for s in range(record.slots):
                b = record.bodies[s]
                reach = sizes[b] + length
                if level[b] == 0:
                    level[b] = 1
                    depth[b] = reach
                    queue[tail] = b
                    tail += 1
                depth[b] = min(depth[b], reach)
        at = record.next
    seed = 0
    sign = 1
    while True:
        while head < tail:
            b = queue[head]
            head += 1
            longest = max(longest, depth[b])
            for k in range(starts[b], starts[b + 1]):
                record = Record(ints[links[k] :])
                length = rod(record, floats, rods)
                for s in range(record.slots):
                    other = record.bodies[s]
                    reach = depth[b] + sizes[other] + length
                    if level[other] == 0:
                        level[other] = level[b] + sign
                        depth[other] = reach
                        queue[tail] = other
                        tail += 1
                    elif level[other] == level[b] + sign:
                        depth[other] = min(depth[other], reach)
        if tail == bodies:
            return longest
        if order.size < bodies:
            return -1.0
        while level[order[seed]] != 0:
            seed += 1
        sign = -1
        level[order[seed]] = -1
        depth[order[seed]] = sizes[order[seed]]
        queue[tail] = order[seed]
        tail += 1


@exact_inner
def group_bodies(ints, leader):
    """leader ← for each body the first of those that constraints connect it with, −1 where it has no constraint.

    Returns whether all bodies are of one group.
    """
    system = SystemTable(ints)
    bodies = system.bodies
    for b in range(bodies):
        leader[b] = -1
    at = HEADER
    for _ in range(system.constraints):
        record = Record(ints[at:])
        first = record.bodies[0] if record.slots > 0 else 0
        for s in range(record.slots):
            b = record.bodies[s]
            if leader[b] < 0:
                leader[b] = b
            while leader[b] != b:
                leader[b] = leader[leader[b]]
                b = leader[b]
            while leader[first] != first:
                first = leader[first]
            if first < b:
                leader[b] = first
            else:
                leader[first] = b
                first = b
        at = record.next
    whole = True
    for b in range(bodies):
        if leader[b] >= 0:
            leader[b] = leader[leader[b]]  # earlier bodies point to their first one already
        if leader[b] != 0:
            whole = False
    return whole


@exact_inner
def largest_coordinate(drawn, points):
    """Largest coordinate [m] of the centroids of joint points and of the drawn positions, POSE floats each."""
    largest = 0.0
    for i in range(points.size):
        largest = max(largest, abs(points[i]))
    for i in range(drawn.size):
        if i % POSE < 3:
            largest = max(largest, abs(drawn[i]))
    return largest


@exact
def measure(ints, floats, rods, numbers, absolute, order, drawn, tables, scratch, results):
    """Pack the templates in ints, and measure what they describe, in place; returns L [m].

    Returns −1 where bodies that the ground does not reach need their order by name: then it is called once more with
    that order, when everything is packed already.  Returns −2 − k where record k refers to what is not packed.
    rods, numbers, absolute: see rod, number_records, center_features; without numbers the templates are packed
    already, and only measured.  drawn: authored poses.
    tables ← starts of the records (constraints + 1), level and leader of the bodies: see characteristic_length,
    group_bodies.
    scratch: ints.size + 2·bodies + 3 integers, the last of which says whether the bodies are one group.
    results: measures, then points, 3·(bodies + 1) floats each.  The last measure says how many points are on the
    ground, that at 2·bodies + 1 is the largest coordinate that was drawn [m].  points ← centroids of the bodies'
    points, then of the ground's.
    """
    system = SystemTable(ints)
    count = system.bodies
    measures = results[: 3 * count + 3]
    points = results[3 * count + 3 :]
    starts = tables[: system.constraints + 1]
    level = tables[starts.size :]
    if order.size == 0:
        if numbers.size > 0:
            unknown = number_records(ints, numbers, starts)
            if unknown >= 0:
                return -2.0 - unknown
        for i in range(3 * count + 3):
            points[i] = 0.0
            measures[i] = 0.0
        center_features(ints, floats, absolute, points, measures, measures[2 * count + 2 :])
        measures[2 * count + 1] = largest_coordinate(drawn, points)
        scratch[scratch.size - 1] = 1 if group_bodies(ints, level[count:]) else 0
    links = scratch[2 * count + 2 :]
    link_bodies(ints, scratch, links)
    return characteristic_length(
        ints, floats, rods, measures, order, scratch, links, scratch[count + 2 :], level, measures[count + 1 :]
    )


@exact_inner
def multiply(p, q0, q1, q2, q3):
    """p ← p ⊗ q, in place."""
    p0 = p[0]
    p1 = p[1]
    p2 = p[2]
    p3 = p[3]
    p[0] = p0 * q0 - p1 * q1 - p2 * q2 - p3 * q3
    p[1] = p0 * q1 + p1 * q0 + p2 * q3 - p3 * q2
    p[2] = p0 * q2 + p2 * q0 + p3 * q1 - p1 * q3
    p[3] = p0 * q3 + p3 * q0 + p1 * q2 - p2 * q1


@exact_inner
def rotate_back(p, v):
    """v ← A(p)ᵀ v of a unit quaternion, in place: v − 2 e₀ (e × v) + 2 e × (e × v)."""
    u0 = 2.0 * (p[2] * v[2] - p[3] * v[1])
    u1 = 2.0 * (p[3] * v[0] - p[1] * v[2])
    u2 = 2.0 * (p[1] * v[1] - p[2] * v[0])
    v[0] += p[2] * u2 - p[3] * u1 - p[0] * u0
    v[1] += p[3] * u0 - p[1] * u2 - p[0] * u1
    v[2] += p[1] * u1 - p[2] * u0 - p[0] * u2


@exact
def change_frames(ints, floats, frames):
    """Express points, vectors and orientations of the bodies in other frames, in place.

    frames, 7 floats per body: origin [m] and unit quaternion old ← new, in the frames that the features are in.
    """
    system = SystemTable(ints)
    at = HEADER
    for _ in range(system.constraints):
        record = Record(ints[at:])
        for f in range(at + RECORD + record.slots, record.next, FEATURE):
            feature = Feature(ints[f:])
            if feature.kind < ANGLE and feature.body >= 0:
                c = frames[POSE * feature.body :]
                v = floats[feature.source :]
                if feature.kind == POINT:
                    for i in range(3):
                        v[i] -= c[i]
                if feature.kind != ORIENTATION:
                    rotate_back(c[3:], v)
                    continue
                for i in range(1, 4):  # a* ⊗ v = (v* ⊗ a)*
                    v[i] = -v[i]
                multiply(v, c[3], c[4], c[5], c[6])
                for i in range(1, 4):
                    v[i] = -v[i]
        at = record.next
    for k in range(system.angles):
        angle = AngleRecord(system.angle_table, k)
        for i in range(3):  # x, y on body a, v on body b
            b = angle.b if i == 2 else angle.a
            if b >= 0:
                rotate_back(frames[POSE * b + 3 :], floats[angle.source + 3 * i :])


@exact
def shift_reference(bodies, frames, origin, sign, q):
    """q ← poses of the reference frames from those of the bodies (sign +1), or back (−1).

    frames, 3 or 7 floats per body: c [m] and, where the frames have axes of their own, the quaternion a body ← frame.
    r moves by sign·(A(p) c − origin), and p ← p ⊗ a.
    On the way back quaternions are normalised first, unless they have length one to the last bit.  A quaternion of
    length zero has no direction and becomes NaN.
    """
    stride = frames.size // bodies if bodies > 0 else 3
    for b in range(bodies):
        c = frames[stride * b :]
        p = q[POSE * b + 3 :]
        if sign < 0.0:
            square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
            norm = sqrt(square)
            for i in range(4):
                p[i] /= norm
            if stride == POSE:
                multiply(p, c[3], -c[4], -c[5], -c[6])
        r = q[POSE * b :]
        e0 = p[0]
        e1 = p[1]
        e2 = p[2]
        e3 = p[3]
        c0 = sign * c[0]
        c1 = sign * c[1]
        c2 = sign * c[2]
        # A c = c + 2 e₀ (e × c) + 2 e × (e × c) for a unit quaternion
        u0 = 2.0 * (e2 * c2 - e3 * c1)
        u1 = 2.0 * (e3 * c0 - e1 * c2)
        u2 = 2.0 * (e1 * c1 - e2 * c0)
        r[0] = (r[0] - sign * origin[0]) + (c0 + e0 * u0 + e2 * u2 - e3 * u1)
        r[1] = (r[1] - sign * origin[1]) + (c1 + e0 * u1 + e3 * u0 - e1 * u2)
        r[2] = (r[2] - sign * origin[2]) + (c2 + e0 * u2 + e1 * u1 - e2 * u0)
        if stride == POSE and sign > 0.0:
            multiply(p, c[3], c[4], c[5], c[6])
