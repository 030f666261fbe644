"""Contact points of convex solids: the corners of the overlap of the faces that meet, as :mod:`.points` describes.

For the normal n of a pair, in the axes (t₁, t₂, n) at its point on a: the face of each solid is the hull of the atoms
that are highest along n; the faces are clipped against each other [Sutherland1974]; a corner has the gap between the
planes of both faces there.  Of more than four corners, four that are far from each other are kept.

Reads pairs and the contacts that :func:`closest_many` wrote, of solids whose atoms are points, half-spaces and balls;
writes points, gaps and codes: a corner is where two edges meet, and an edge has twice the number of its atom, plus one
if it is of b.  Without corners the closest points themselves are the contact, of code 0.
"""

from math import sqrt

from cardan.collide._closest import cross, dot, rotation
from cardan.collide.tables import HALF_SPACE, Atom, Contact, PairRecord
from cardan.kernel.fields import local
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import pointer, tail
from cardan.kernel.table import Float, Int, Table

FLAT = 1e-9  # of the size: atoms that are lower by this belong to the face
TILTED = 1e-2  # of the size: the most that a face which is tilted within the tolerance may deviate
ALONG = 1e-9  # sine of the angle of edges that are along each other
MOST = 4  # points of a pair
ROOM = 32  # points of a face
FIRST, SECOND, THIRD, CLIPPED = 0, ROOM, 2 * ROOM, 3 * ROOM  # polygons in the workspace: of a, of b, two for clipping
SIZE = 4 * ROOM  # of the workspace, in FacePoint
CODES = 65536  # more than the codes of edges


class Corner(Table):
    """A contact point of a pair of hulls, in world axes."""

    pair: Int  # its number
    code: Int  # which edges meet there: identifies it from one pose to the next
    gap: Float  # [m]
    points: Float[6]  # on a, then on b [m]
    normal: Float[3]  # from a to b


class FacePoint(Table):
    """A corner of a face, of clipped faces, or of their overlap."""

    x: Float  # along the tangents [m]
    y: Float
    z: Float  # along the normal [m]
    gap: Float  # [m]
    code: Int  # of the edge that leaves it


class Meeting(Table):
    """Two faces at work."""

    axes: Float[9]  # two tangents and the normal from a to b
    origin: Float[3]  # the closest point of a
    matrix: Float[9]  # axes of a body
    normal: Float[3]  # in the axes of a body
    plane_a: Float[3]  # z = g x + h y + z₀ on the face of a
    plane_b: Float[3]
    is_plane_a: Float  # 1: all points of the face are in it
    is_plane_b: Float


@inner
def copy_point(points, to, other):
    """points[to] ← points[other]."""
    p, q = FacePoint(points, to), FacePoint(points, other)
    p.x, p.y, p.code, p.z = q.x, q.y, q.code, q.z


@inner
def offset(o, p, q):
    """Distance of p from the line o q, positive on its right."""
    x, y = q.x - o.x, q.y - o.y
    length = sqrt(x * x + y * y)
    return (y * (p.x - o.x) - x * (p.y - o.y)) / length if length > 0.0 else 0.0


@inner
def face(hull, pose, c, sign, depth, side, points, first):
    """points[first…] ← the atoms of a solid that are highest along sign·n; returns their number, −1 without room."""
    R = c.matrix
    rotation(tail(pose, 3), R)
    n = c.axes
    local_n = c.normal
    for k in range(3):
        local_n[k] = sign * (R[k] * n[6] + R[3 + k] * n[7] + R[6 + k] * n[8])
    top = -1e300
    for i in range(hull.count):
        top = max(top, dot(local_n, Atom(hull.atoms, i).center))
    count = 0
    for i in range(hull.count):
        at = Atom(hull.atoms, i).center
        if dot(local_n, at) < top - depth:
            continue
        if count == ROOM:
            return -1
        p = FacePoint(points, first + count)
        x = R[0] * at[0] + R[1] * at[1] + R[2] * at[2] + pose[0] - c.origin[0] + sign * hull.growth * n[6]
        y = R[3] * at[0] + R[4] * at[1] + R[5] * at[2] + pose[1] - c.origin[1] + sign * hull.growth * n[7]
        z = R[6] * at[0] + R[7] * at[1] + R[8] * at[2] + pose[2] - c.origin[2] + sign * hull.growth * n[8]
        p.x = n[0] * x + n[1] * y + n[2] * z
        p.y = n[3] * x + n[4] * y + n[5] * z
        p.z = n[6] * x + n[7] * y + n[8] * z
        p.code = 2 * i + side
        count += 1
    return count


@inner
def plane(points, first, count, tolerance, out):
    """out ← (g, h, z₀) with z = g x + h y + z₀ on a face; False if its points are not in a plane."""
    p = FacePoint(points, first)
    far, one = 0.0, 0
    for k in range(1, count):
        q = FacePoint(points, first + k)
        away = (q.x - p.x) ** 2 + (q.y - p.y) ** 2
        if away > far:
            far, one = away, k
    g = h = 0.0
    if far > tolerance * tolerance:
        q = FacePoint(points, first + one)
        x, y, z = q.x - p.x, q.y - p.y, q.z - p.z
        wide, other = 0.0, 0
        for k in range(1, count):
            o = FacePoint(points, first + k)
            area = x * (o.y - p.y) - y * (o.x - p.x)
            if abs(area) > abs(wide):
                wide, other = area, k
        if abs(wide) > tolerance * sqrt(far):
            o = FacePoint(points, first + other)
            u, v, w = o.x - p.x, o.y - p.y, o.z - p.z
            g, h = (z * v - w * y) / wide, (x * w - u * z) / wide
        else:
            g, h = z * x / far, z * y / far
    out[0], out[1], out[2] = g, h, p.z - g * p.x - h * p.y
    for k in range(count):
        q = FacePoint(points, first + k)
        if abs(g * q.x + h * q.y + out[2] - q.z) > tolerance:
            return False
    return True


@inner
def polygon(points, first, count, tolerance, spare):
    """points[first…] ← their hull in the plane, anticlockwise; returns the number of its corners.  spare: room."""
    kept = 0
    for k in range(count):  # sorted by x, then y; those that coincide only once
        p = FacePoint(points, first + k)
        is_new = True
        for j in range(kept):
            q = FacePoint(points, spare + j)
            if max(abs(p.x - q.x), abs(p.y - q.y)) <= tolerance:
                is_new = False
        if is_new:
            j = kept
            while j > 0:
                q = FacePoint(points, spare + j - 1)
                if (q.x < p.x) | ((q.x == p.x) & (q.y <= p.y)):
                    break
                copy_point(points, spare + j, spare + j - 1)
                j -= 1
            copy_point(points, spare + j, first + k)
            kept += 1
    if kept < 3:
        for k in range(kept):
            copy_point(points, first + k, spare + k)
        return kept
    size = 0
    for way in range(2):
        begin = size
        for k in range(kept):
            at = spare + (k if way == 0 else kept - 1 - k)
            q = FacePoint(points, at)
            while size - begin > 1:
                if offset(FacePoint(points, first + size - 2), FacePoint(points, first + size - 1), q) > tolerance:
                    break
                size -= 1
            copy_point(points, first + size, at)
            size += 1
        size -= 1
    return size


@inner
def clipped(points, subject, count, window, corners, tolerance, out):
    """points[THIRD…] ← the part of a polygon, segment or point within a polygon; returns the number of its corners.

    ``code`` of a corner is that of the edge that leaves it.
    """
    is_closed = count > 2
    rows, kept = THIRD, CLIPPED
    for k in range(count):
        copy_point(points, rows + k, subject + k)
    for w in range(corners):
        o = FacePoint(points, window + w)
        e = FacePoint(points, window + (w + 1 if w + 1 < corners else 0))
        x, y = e.x - o.x, e.y - o.y
        length = sqrt(x * x + y * y)
        x, y = x / length, y / length
        size = 0
        for k in range(count):
            p = FacePoint(points, rows + k)
            inside = x * (p.y - o.y) - y * (p.x - o.x)
            if size + 2 > ROOM:
                return -1
            if inside >= -tolerance:
                copy_point(points, kept + size, rows + k)
                size += 1
            if (k + 1 == count) & (not is_closed):
                continue
            q = FacePoint(points, rows + (k + 1 if k + 1 < count else 0))
            other = x * (q.y - o.y) - y * (q.x - o.x)
            if (inside >= -tolerance) != (other >= -tolerance):
                t = min(max(inside / (inside - other), 0.0), 1.0)
                r = FacePoint(points, kept + size)
                r.x, r.y = p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)
                r.code = p.code if is_closed & (other >= -tolerance) else o.code
                size += 1
        rows, kept, count = kept, rows, size
        if count == 0:
            return 0
    size = 0
    for k in range(count):
        p = FacePoint(points, rows + k)
        is_new = True
        for j in range(size):
            q = FacePoint(out, j)
            if max(abs(p.x - q.x), abs(p.y - q.y)) <= tolerance:
                is_new = False
        if is_new:
            q = FacePoint(out, size)
            q.x, q.y = p.x, p.y
            q.code = one_code(p.code)
            if is_closed:
                q.code = two_codes(FacePoint(points, rows + (k if k > 0 else count) - 1).code, p.code)
            size += 1
    return size


@inner
def one_code(a):
    """Of a corner of one edge."""
    return a + 1


@inner
def two_codes(a, b):
    """Of a corner where two edges meet."""
    low, high = min(a, b), max(a, b)
    return low + 1 if low == high else (low + 1) * CODES + high + 1


@inner
def overlap(points, a, b, tolerance, out):
    """out ← corners of the overlap of two faces of a and b points (−1: the whole plane); returns their number."""
    if (a < 0) | (b < 0):
        first, count = (SECOND, b) if a < 0 else (FIRST, a)
        for k in range(count):
            p, q = FacePoint(points, first + k), FacePoint(out, k)
            q.x, q.y, q.code = p.x, p.y, one_code(p.code)
        return count
    if (a >= 3) | (b >= 3):
        subject, count, window, corners = (SECOND, b, FIRST, a) if a >= 3 else (FIRST, a, SECOND, b)
        return clipped(points, subject, count, window, corners, tolerance, out)
    if (a < 2) | (b < 2):
        return 0
    o, p = FacePoint(points, FIRST), FacePoint(points, FIRST + 1)
    q, r = FacePoint(points, SECOND), FacePoint(points, SECOND + 1)
    x, y, u, v = p.x - o.x, p.y - o.y, r.x - q.x, r.y - q.y
    length = sqrt(x * x + y * y)
    if abs(x * v - y * u) > ALONG * length * sqrt(u * u + v * v):
        return 0
    for k in range(4):  # two edges along each other: the two ends in the middle
        at = FIRST + k if k < 2 else SECOND + k - 2
        p = FacePoint(points, at)
        p.z = (x * p.x + y * p.y) / length
        j = k
        while j > 0:
            if FacePoint(points, THIRD + j - 1).z <= p.z:
                break
            copy_point(points, THIRD + j, THIRD + j - 1)
            j -= 1
        copy_point(points, THIRD + j, at)
    for k in range(2):
        p, q = FacePoint(points, THIRD + 1 + k), FacePoint(out, k)
        q.x, q.y, q.code = p.x, p.y, one_code(p.code)
    return 2


@inner
def spread(out, count):
    """Four corners that are far from each other: ends of the longest diagonal, and the farthest on both sides."""
    for k in range(1, count):  # by code, so that the choice does not depend on the pose
        j = k
        copy_point(out, count, k)
        while j > 0:
            if FacePoint(out, j - 1).code <= FacePoint(out, count).code:
                break
            copy_point(out, j, j - 1)
            j -= 1
        copy_point(out, j, count)
    best, one, two = 0.0, 0, 0
    for k in range(count):
        p = FacePoint(out, k)
        for j in range(k + 1, count):
            q = FacePoint(out, j)
            away = (p.x - q.x) ** 2 + (p.y - q.y) ** 2
            if away > best * (1.0 + FLAT):
                best, one, two = away, k, j
    o, e = FacePoint(out, one), FacePoint(out, two)
    left, right, third, fourth = 0.0, 0.0, one, one
    for k in range(count):
        p = FacePoint(out, k)
        side = (e.x - o.x) * (p.y - o.y) - (e.y - o.y) * (p.x - o.x)
        if side > left + FLAT * best:
            left, third = side, k
        if -side > right + FLAT * best:
            right, fourth = -side, k
    size = 0
    for k in range(count):
        if (k == one) | (k == two) | (k == third) | (k == fourth):
            copy_point(out, size, k)
            size += 1
    return size


@inner
def find(pair, pose_a, pose_b, contact, within, c, points, out):
    """out ← corners of one pair, in the axes of c; returns their number, 0 if the closest points are the contact."""
    a, b = pair.a, pair.b
    n, axes = contact.normal, c.axes
    least = 0
    for k in range(1, 3):
        if abs(n[k]) < abs(n[least]):
            least = k
    for k in range(3):
        c.matrix[k] = 1.0 if k == least else 0.0
        axes[6 + k] = n[k]
        c.origin[k] = contact.points[k]
    cross(n, c.matrix, axes)
    length = sqrt(dot(axes, axes))
    for k in range(3):
        axes[k] /= length
    cross(n, axes, tail(axes, 3))
    size = (a.reach if a.kind != HALF_SPACE else 0.0) + (b.reach if b.kind != HALF_SPACE else 0.0)
    flat = FLAT * size
    count_a = count_b = -1
    c.is_plane_a = c.is_plane_b = 1.0
    for attempt in range(2):
        depth = flat if attempt else max(flat, min(within - contact.gap, TILTED * size))
        if a.kind == HALF_SPACE:
            c.plane_a[0] = c.plane_a[1] = c.plane_a[2] = 0.0
        else:
            count_a = face(a, pose_a, c, 1.0, depth, 0, points, FIRST)
            if count_a < 0:
                return 0
            c.is_plane_a = 1.0 if plane(points, FIRST, count_a, flat, c.plane_a) else 0.0
        if b.kind == HALF_SPACE:
            c.plane_b[0] = c.plane_b[1] = 0.0
            c.plane_b[2] = contact.gap
        else:
            count_b = face(b, pose_b, c, -1.0, depth, 1, points, SECOND)
            if count_b < 0:
                return 0
            c.is_plane_b = 1.0 if plane(points, SECOND, count_b, flat, c.plane_b) else 0.0
        if c.is_plane_a * c.is_plane_b > 0.0:
            break
    if count_a >= 0:
        count_a = polygon(points, FIRST, count_a, flat, THIRD)
    if count_b >= 0:
        count_b = polygon(points, SECOND, count_b, flat, THIRD)
    found = overlap(points, count_a, count_b, flat, out)
    if found > MOST:
        found = spread(out, found)
    kept = 0
    for k in range(found):
        p = FacePoint(out, k)
        low = c.plane_a[0] * p.x + c.plane_a[1] * p.y + c.plane_a[2] if c.is_plane_a > 0.0 else 0.0
        high = c.plane_b[0] * p.x + c.plane_b[1] * p.y + c.plane_b[2] if c.is_plane_b > 0.0 else contact.gap
        if high - low <= within + flat:
            q = FacePoint(out, kept)
            q.x, q.y, q.code, q.z, q.gap = p.x, p.y, p.code, low, high - low
            kept += 1
    return kept


@jit
def corners_many(count, pairs, poses, contacts, within, found, points):
    """found ← contact points of pairs of hulls; returns their number.

    found: Corner, four for each pair.  points: a workspace of ``SIZE + ROOM + 1`` FacePoint.
    """
    pairs, poses, contacts, within = pointer(pairs), pointer(poses), pointer(contacts), pointer(within)
    found, points = pointer(found), pointer(points)
    out = FacePoint(points, SIZE).as_floats
    c = local(Meeting)
    total = 0
    for k in range(count):
        pair, contact = PairRecord(pairs, k), Contact(contacts, k)
        if not contact.gap <= within[k]:
            continue
        number = 0
        is_round = (pair.a.kind != HALF_SPACE) & (pair.a.count == 1)
        if not (is_round | ((pair.b.kind != HALF_SPACE) & (pair.b.count == 1))):
            pose_a, pose_b = tail(poses, 7 * pair.body_a), tail(poses, 7 * pair.body_b)
            number = find(pair, pose_a, pose_b, contact, within[k], c, points, out)
        for j in range(max(number, 1)):
            made = Corner(found, total)
            total += 1
            made.pair = k
            for i in range(3):
                made.normal[i] = contact.normal[i]
            if number == 0:
                made.gap, made.code = contact.gap, 0
                for i in range(6):
                    made.points[i] = contact.points[i]
                continue
            p = FacePoint(out, j)
            made.gap, made.code = p.gap, p.code
            for i in range(3):
                low = c.axes[i] * p.x + c.axes[3 + i] * p.y + c.axes[6 + i] * p.z
                made.points[i] = c.origin[i] + low
                made.points[3 + i] = c.origin[i] + low + p.gap * c.axes[6 + i]
    return total
