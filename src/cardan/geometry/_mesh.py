"""Triangle meshes: a tree of boxes, the closest point, the closest pair of two meshes.

Tree: nodes of two integers (left child and right child; of a leaf −1 − its first face and the number of its faces)
and six floats (lower and upper corner).  Faces are sorted so that a leaf holds consecutive ones.
Closest points on triangles by regions ([Ericson2005] 5.1.5), pairs of triangles by their edges and corners.
"""

from math import inf, sqrt

from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import as_integers, cut, floats_at, integers_at, pointer, tail

LEAF = 4  # faces of a leaf, at most
DEPTH = 128  # nodes that wait: the depth of a tree, at most 64, times two


@jit
def build(centers, boxes, order, nodes, bounds, stack, size):
    """The tree by halves at the median along the longest side; returns the number of nodes."""
    centers, boxes, order = pointer(centers), pointer(boxes), pointer(order)
    nodes, bounds, stack = pointer(nodes), pointer(bounds), pointer(stack)
    count = 1
    stack[0], stack[1], stack[2] = 0, 0, size[0]
    top = 1
    while top > 0:
        top -= 1
        k, first, last = stack[3 * top], stack[3 * top + 1], stack[3 * top + 2]
        box = tail(bounds, 6 * k)
        axis = 0
        widest = -1.0
        for c in range(3):
            low, high, near, far = inf, -inf, inf, -inf
            for i in range(first, last):
                face = order[i]
                low = min(low, boxes[6 * face + c])
                high = max(high, boxes[6 * face + 3 + c])
                near = min(near, centers[3 * face + c])
                far = max(far, centers[3 * face + c])
            box[c], box[3 + c] = low, high
            if far - near > widest:
                widest, axis = far - near, c
        if last - first <= LEAF:
            nodes[2 * k], nodes[2 * k + 1] = -1 - first, last - first
            continue
        middle = (first + last) >> 1
        low, high = first, last - 1
        while low < high:  # select the median (quickselect, Hoare)
            pivot = centers[3 * order[(low + high) >> 1] + axis]
            i, j = low, high
            while i <= j:
                while centers[3 * order[i] + axis] < pivot:
                    i += 1
                while centers[3 * order[j] + axis] > pivot:
                    j -= 1
                if i <= j:
                    order[i], order[j] = order[j], order[i]
                    i += 1
                    j -= 1
            if middle <= j:
                high = j
            elif middle >= i:
                low = i
            else:
                break
        nodes[2 * k], nodes[2 * k + 1] = count, count + 1
        stack[3 * top], stack[3 * top + 1], stack[3 * top + 2] = count, first, middle
        stack[3 * top + 3], stack[3 * top + 4], stack[3 * top + 5] = count + 1, middle, last
        top += 2
        count += 2
    return count


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def box_distance(box, p):
    """Squared distance of a point to a box."""
    total = 0.0
    for c in range(3):
        d = max(box[c] - p[c], p[c] - box[3 + c], 0.0)
        total += d * d
    return total


@inner
def point_triangle(t, p, out):
    """out ← the point of a triangle closest to p; returns the squared distance."""
    abx, aby, abz = t[3] - t[0], t[4] - t[1], t[5] - t[2]
    acx, acy, acz = t[6] - t[0], t[7] - t[1], t[8] - t[2]
    apx, apy, apz = p[0] - t[0], p[1] - t[1], p[2] - t[2]
    d1 = abx * apx + aby * apy + abz * apz
    d2 = acx * apx + acy * apy + acz * apz
    bb = abx * abx + aby * aby + abz * abz
    bc = abx * acx + aby * acy + abz * acz
    cc = acx * acx + acy * acy + acz * acz
    d3, d4, d5, d6 = d1 - bb, d2 - bc, d1 - bc, d2 - cc
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        v, w = 0.0, 0.0
    elif d3 >= 0.0 and d4 <= d3:
        v, w = 1.0, 0.0
    elif d6 >= 0.0 and d5 <= d6:
        v, w = 0.0, 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v, w = d1 / (d1 - d3), 0.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        v, w = 0.0, d2 / (d2 - d6)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        v = 1.0 - w
    else:
        total = 1.0 / (va + vb + vc)
        v, w = vb * total, vc * total
    out[0] = t[0] + v * abx + w * acx
    out[1] = t[1] + v * aby + w * acy
    out[2] = t[2] + v * abz + w * acz
    x, y, z = p[0] - out[0], p[1] - out[1], p[2] - out[2]
    return x * x + y * y + z * z


@jit
def closest_point(nodes, bounds, order, triangles, p, out):
    """out ← the closest point of a mesh and its distance; returns its face.  Depth first, the closer child first.

    nodes, bounds, order, triangles: addresses; out: eight floats, then DEPTH keys and DEPTH nodes that wait.
    """
    nodes, bounds, order, triangles = integers_at(nodes), floats_at(bounds), integers_at(order), floats_at(triangles)
    p, out = pointer(p), pointer(out)
    keys = cut(out, 8, DEPTH)
    stack = as_integers(tail(out, 8 + DEPTH))
    best = inf
    at = -1
    stack[0] = 0
    keys[0] = 0.0
    top = 1
    found = tail(out, 4)
    while top > 0:
        top -= 1
        if keys[top] >= best:
            continue
        k = stack[top]
        child = nodes[2 * k]
        if child < 0:
            for i in range(-1 - child, -1 - child + nodes[2 * k + 1]):
                d = point_triangle(tail(triangles, 9 * i), p, found)
                if d < best:
                    best, at = d, i
                    for c in range(3):
                        out[c] = found[c]
        else:
            near = box_distance(tail(bounds, 6 * child), p)
            far = box_distance(tail(bounds, 6 * child + 6), p)
            first = child
            if far < near:
                near, far = far, near
                first = child + 1
            if far < best:
                stack[top], keys[top] = 2 * child + 1 - first, far
                top += 1
            if near < best:
                stack[top], keys[top] = first, near
                top += 1
    out[3] = sqrt(best)
    return order[at]


@inner
def clamp01(x):
    return min(max(x, 0.0), 1.0)


@inner
def edge_edge(a, b, c, d, out):
    """Closest points of the segments ab and cd ([Ericson2005] 5.1.9); returns the squared distance."""
    ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    vx, vy, vz = d[0] - c[0], d[1] - c[1], d[2] - c[2]
    rx, ry, rz = a[0] - c[0], a[1] - c[1], a[2] - c[2]
    uu, vv, uv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz, ux * vx + uy * vy + uz * vz
    ur, vr = ux * rx + uy * ry + uz * rz, vx * rx + vy * ry + vz * rz
    den = uu * vv - uv * uv
    s = clamp01((uv * vr - ur * vv) / den) if den > 0.0 else 0.0
    t = (uv * s + vr) / vv if vv > 0.0 else 0.0
    if t < 0.0:
        t = 0.0
        s = clamp01(-ur / uu) if uu > 0.0 else 0.0
    elif t > 1.0:
        t = 1.0
        s = clamp01((uv - ur) / uu) if uu > 0.0 else 0.0
    out[0], out[1], out[2] = a[0] + s * ux, a[1] + s * uy, a[2] + s * uz
    out[3], out[4], out[5] = c[0] + t * vx, c[1] + t * vy, c[2] + t * vz
    x, y, z = out[0] - out[3], out[1] - out[4], out[2] - out[5]
    return x * x + y * y + z * z


@inner
def pierces(a, b, t, out):
    """Whether the segment ab passes through a triangle; out ← the point."""
    e, f = tail(t, 3), tail(t, 6)
    x1, y1, z1 = e[0] - t[0], e[1] - t[1], e[2] - t[2]
    x2, y2, z2 = f[0] - t[0], f[1] - t[1], f[2] - t[2]
    nx, ny, nz = y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2
    da = nx * (a[0] - t[0]) + ny * (a[1] - t[1]) + nz * (a[2] - t[2])
    db = nx * (b[0] - t[0]) + ny * (b[1] - t[1]) + nz * (b[2] - t[2])
    if da * db > 0.0 or da == db:
        return False
    s = da / (da - db)
    px, py, pz = a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1]), a[2] + s * (b[2] - a[2])
    for k in range(3):
        p, q = tail(t, 3 * k), tail(t, 3 * ((k + 1) % 3))
        ex, ey, ez = q[0] - p[0], q[1] - p[1], q[2] - p[2]
        wx, wy, wz = px - p[0], py - p[1], pz - p[2]
        if (ey * wz - ez * wy) * nx + (ez * wx - ex * wz) * ny + (ex * wy - ey * wx) * nz < 0.0:
            return False
    out[0], out[1], out[2] = px, py, pz
    return True


@inner
def triangle_triangle(s, t, best, out, scratch):
    """out ← closest points of two triangles, if closer than √best; returns the smaller squared distance."""
    for k in range(6):
        p = tail(s, 3 * k) if k < 3 else tail(t, 3 * (k - 3))
        q = tail(s, 3 * ((k + 1) % 3)) if k < 3 else tail(t, 3 * ((k - 2) % 3))
        other = t if k < 3 else s
        d = point_triangle(other, p, scratch)
        if d < best:
            best = d
            for c in range(3):
                out[c] = p[c] if k < 3 else scratch[c]
                out[3 + c] = scratch[c] if k < 3 else p[c]
        if pierces(p, q, other, scratch):
            for c in range(3):
                out[c] = out[3 + c] = scratch[c]
            return 0.0
    for i in range(3):
        for j in range(3):
            a, b = tail(s, 3 * i), tail(s, 3 * ((i + 1) % 3))
            d = edge_edge(a, b, tail(t, 3 * j), tail(t, 3 * ((j + 1) % 3)), scratch)
            if d < best:
                best = d
                for c in range(6):
                    out[c] = scratch[c]
    return best


@inner
def node_gap(a, b, T):
    """Squared lower bound of the distance of box a and the moved box b: along the axes of a and along those of b."""
    one = other = 0.0
    cx, cy, cz = 0.5 * (b[0] + b[3]), 0.5 * (b[1] + b[4]), 0.5 * (b[2] + b[5])
    hx, hy, hz = 0.5 * (b[3] - b[0]), 0.5 * (b[4] - b[1]), 0.5 * (b[5] - b[2])
    ox = oy = oz = 0.0
    for i in range(3):
        middle = T[3 * i] * cx + T[3 * i + 1] * cy + T[3 * i + 2] * cz + T[9 + i]
        half = abs(T[3 * i]) * hx + abs(T[3 * i + 1]) * hy + abs(T[3 * i + 2]) * hz
        d = middle - 0.5 * (a[i] + a[3 + i])
        ox, oy, oz = ox + T[3 * i] * d, oy + T[3 * i + 1] * d, oz + T[3 * i + 2] * d
        gap = max(abs(d) - half - 0.5 * (a[3 + i] - a[i]), 0.0)
        one += gap * gap
    for k in range(3):
        half = 0.0
        for i in range(3):
            half += 0.5 * (a[3 + i] - a[i]) * abs(T[3 * i + k])
        d = ox if k == 0 else oy if k == 1 else oz
        gap = max(abs(d) - half - (hx if k == 0 else hy if k == 1 else hz), 0.0)
        other += gap * gap
    return max(one, other)


@inner
def triangle_gap(s, t):
    """Squared distance of the boxes of two triangles."""
    total = 0.0
    for c in range(3):
        low = min(s[c], s[3 + c], s[6 + c]) - max(t[c], t[3 + c], t[6 + c])
        high = min(t[c], t[3 + c], t[6 + c]) - max(s[c], s[3 + c], s[6 + c])
        gap = max(low, high, 0.0)
        total += gap * gap
    return total


@inner
def extent(box):
    x, y, z = box[3] - box[0], box[4] - box[1], box[5] - box[2]
    return x * x + y * y + z * z


@jit
def closest_pair(nodes_a, bounds_a, faces_a, nodes_b, bounds_b, faces_b, T, out, stack, keys):
    """out ← closest points of two meshes in the axes of a; returns the squared distance.

    Depth first, the closer pair of children first; out[6:8] ← positions of the faces in the sorted order.
    """
    nodes_a, bounds_a, faces_a = pointer(nodes_a), pointer(bounds_a), pointer(faces_a)
    nodes_b, bounds_b, faces_b = pointer(nodes_b), pointer(bounds_b), pointer(faces_b)
    T, out, stack, keys = pointer(T), pointer(out), pointer(stack), pointer(keys)
    moved = tail(out, 8)  # nine floats of a triangle, then six of scratch, six of the pair
    scratch = tail(out, 17)
    pair = tail(out, 23)
    best = inf
    stack[0], stack[1] = 0, 0
    keys[0] = 0.0
    top = 1
    while top > 0:
        top -= 1
        i, j = stack[2 * top], stack[2 * top + 1]
        if keys[top] >= best:
            continue
        leaf_a, leaf_b = nodes_a[2 * i] < 0, nodes_b[2 * j] < 0
        if leaf_a and leaf_b:
            for n in range(-1 - nodes_b[2 * j], -1 - nodes_b[2 * j] + nodes_b[2 * j + 1]):
                t = tail(faces_b, 9 * n)
                for k in range(3):
                    for c in range(3):
                        value = T[3 * c] * t[3 * k] + T[3 * c + 1] * t[3 * k + 1] + T[3 * c + 2] * t[3 * k + 2]
                        moved[3 * k + c] = value + T[9 + c]
                for m in range(-1 - nodes_a[2 * i], -1 - nodes_a[2 * i] + nodes_a[2 * i + 1]):
                    if triangle_gap(tail(faces_a, 9 * m), moved) >= best:
                        continue
                    d = triangle_triangle(tail(faces_a, 9 * m), moved, best, pair, scratch)
                    if d < best:
                        best = d
                        for c in range(6):
                            out[c] = pair[c]
                        out[6], out[7] = m, n
            if best == 0.0:
                break
            continue
        split_a = leaf_b or (not leaf_a and extent(tail(bounds_a, 6 * i)) >= extent(tail(bounds_b, 6 * j)))
        first = nodes_a[2 * i] if split_a else nodes_b[2 * j]
        near = far = 0.0
        for k in range(2):
            a = first + k if split_a else i
            b = j if split_a else first + k
            gap = node_gap(tail(bounds_a, 6 * a), tail(bounds_b, 6 * b), T)
            if k == 0:
                near = gap
            else:
                far = gap
        for k in range(2):
            which = 1 - k if near <= far else k  # the closer pair is taken first, so it is pushed last
            gap = far if which == 1 else near
            if gap < best:
                stack[2 * top] = first + which if split_a else i
                stack[2 * top + 1] = j if split_a else first + which
                keys[top] = gap
                top += 1
    return best
