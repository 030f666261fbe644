"""The signed gap of two convex solids.

A convex solid is the hull of atoms (points, circles, arcs), grown by a radius ρ.  Its support function is
h(n) = max (n·c + r |n − (n·e) e|) + ρ |n|.  With M = A − B, H(n) = h_A(n) + h_B(−n): the signed gap is −min H(n) over
unit normals n from a to b.  It is the distance where the solids are apart, and minus the least depth where they
overlap.  −H(n) at *any* n is a lower bound of the gap.

Where they are apart, a and b on the faces of n have |b − a| ≥ gap ≥ −H(n): the search ends if both ends meet.  Else
the sphere of normals is divided into cells [Land1960].  In a cell with corners n_k, whose farthest points of M are p_k,
n = Σ μ_k n_k/|Σ μ_k n_k| and H(n) ≥ Σ_i λ_i p_i·n for any weights λ: a game of 3 × 3 numbers p_i·n_k bounds H from
below, with an error of the second order in the size of the cell.  The corners that matter in it say which atoms are
active; Newton's method on the sphere solves for the normal at which these are at equal heights.

Reads hulls (:mod:`.tables`); writes a Contact.  Works in the axes of a.
"""

from math import inf, sqrt

from cardan.collide.tables import CELLS, HALF_SPACE, Atom, Cell, Contact, PairRecord, Search
from cardan.kernel.fields import local
from cardan.kernel.jit import evaluator, inner, jit
from cardan.kernel.memory import call_evaluator, plain, pointer, tail

TIGHT = 1e-13  # of the size: bounds of the gap that meet
CLOSED = 2e-12  # of the size: cells within this of the least H cannot improve it
FACE = 1e-11  # of the size: atoms that are lower by this belong to the face
NEAR, NEARER = 1e-3, 1e-5  # of the size: atoms that are lower by this may belong to it
ROUNDING = 1e-15  # of the size
STEPS = 8  # of Newton's method
TURNS = 32  # of the search of nearest points
EDGE = 1e-9  # rad: the axis of a circle is along the normal
NONE = -1.0
OP = plain(0)


@inner
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def cross(a, b, out):
    x = a[1] * b[2] - a[2] * b[1]
    y = a[2] * b[0] - a[0] * b[2]
    z = a[0] * b[1] - a[1] * b[0]
    out[0], out[1], out[2] = x, y, z


@inner
def normalize(n):
    """n ← n/|n|; returns |n|."""
    length = sqrt(dot(n, n))
    if length > 0.0:
        n[0], n[1], n[2] = n[0] / length, n[1] / length, n[2] / length
    return length


@inner
def height(atom, x, y, z):
    """max n·p over an atom; −∞ if the ends of an arc, which are atoms too, are farther."""
    c, e = atom.center, atom.axis
    value = x * c[0] + y * c[1] + z * c[2]
    r = atom.radius
    if r == 0.0:
        return value
    along = x * e[0] + y * e[1] + z * e[2]
    u, v, w = x - along * e[0], y - along * e[1], z - along * e[2]
    length = sqrt(u * u + v * v + w * w)
    if atom.cosine > -2.0:
        m = atom.middle
        if u * m[0] + v * m[1] + w * m[2] < atom.cosine * length:
            return -inf
    return value + r * length


@inner
def highest(hull, x, y, z):
    """Number of the atom that is farthest along n."""
    best, found = -inf, 0
    for i in range(hull.count):
        value = height(Atom(hull.atoms, i), x, y, z)
        if value > best:
            best, found = value, i
    return found


@inner
def lean(atom, x, y, z, out):
    """out ← point c + r w of an atom, w = (n − (n·e) e)/|…|; its curvature r/|…|, and the tangent e × w."""
    c, e, r = atom.center, atom.axis, atom.radius
    out[0], out[1], out[2] = c[0], c[1], c[2]
    out[3] = out[4] = out[5] = out[6] = 0.0
    if r == 0.0:
        return
    along = x * e[0] + y * e[1] + z * e[2]
    w = tail(out, 4)
    w[0], w[1], w[2] = x - along * e[0], y - along * e[1], z - along * e[2]
    length = normalize(w)
    if length == 0.0:  # all points of the circle are equally far: one of them
        m = atom.middle
        w[0], w[1], w[2] = m[0], m[1], m[2]
    for k in range(3):
        out[k] += r * w[k]
    out[3] = r / max(length, 1e-300)
    cross(e, w, w)


@inner
def into_b(s, n, k):
    """Component k of n in the axes of b."""
    return s.rotation[k] * n[0] + s.rotation[3 + k] * n[1] + s.rotation[6 + k] * n[2]


@inner
def from_b(s, v, is_point):
    """v ← its components in the axes of a; of a point also its place."""
    R, p = s.rotation, s.position
    x = R[0] * v[0] + R[1] * v[1] + R[2] * v[2]
    y = R[3] * v[0] + R[4] * v[1] + R[5] * v[2]
    z = R[6] * v[0] + R[7] * v[1] + R[8] * v[2]
    if is_point:
        x, y, z = x + p[0], y + p[1], z + p[2]
    v[0], v[1], v[2] = x, y, z


@inner
def lean_a(a, s, i, n):
    lean(Atom(a.atoms, i), n[0], n[1], n[2], s.one)


@inner
def lean_b(b, s, j, n):
    """s.other ← point, curvature and tangent of an atom of b, in the axes of a; for −n."""
    lean(Atom(b.atoms, j), -into_b(s, n, 0), -into_b(s, n, 1), -into_b(s, n, 2), s.other)
    from_b(s, s.other, True)
    from_b(s, tail(s.other, 4), False)


@inner
def consider(pair, s):
    """H at the unit normal s.trial; s.point ← point of M, s.found ← its atoms; the least H is kept."""
    floats = s.as_floats
    call_evaluator(pair.consider, OP, pair.as_ints, floats, floats, floats, floats, floats, floats)
    return s.value


def _consider(op, ints, floats, q, step, out, jacobian, work):
    pair, s = PairRecord(ints), Search(floats)
    a, b = pair.a, pair.b
    n = s.trial
    i = highest(a, n[0], n[1], n[2])
    j = highest(b, -into_b(s, n, 0), -into_b(s, n, 1), -into_b(s, n, 2))
    lean_a(a, s, i, n)
    lean_b(b, s, j, n)
    for k in range(3):
        s.point[k] = s.one[k] - s.other[k]
    s.found[0], s.found[1] = i, j
    s.value = dot(n, s.point)
    if s.value < s.best:
        s.best = s.value
        for k in range(3):
            s.normal[k] = n[k]
    return 0


CONSIDER = evaluator(_consider)


@inner
def consider_axes(pair, s):
    """The normals of the planes of circles: H has a corner there, and Newton's method none."""
    a, b = pair.a, pair.b
    for side in range(2):
        hull = b if side else a
        for i in range(hull.count):
            atom = Atom(hull.atoms, i)
            if atom.radius > 0.0:
                same = False
                if i > 0:
                    before = Atom(hull.atoms, i - 1)
                    same = before.radius > 0.0 and abs(dot(before.axis, atom.axis)) == 1.0
                if not same:
                    for sign in range(2):
                        for k in range(3):
                            s.trial[k] = atom.axis[k] * (1.0 - 2.0 * sign)
                        if side:
                            from_b(s, s.trial, False)
                        consider(pair, s)


@inner
def share(p, q):
    """x in [0, 1] with x p = (1 − x) q, if there is one."""
    return min(max(q / (p + q), 0.0), 1.0) if p + q != 0.0 else 0.5


@inner
def bound(cell, s):
    """A lower bound of H in a cell; s.weights ← weights λ of its corners that give it."""
    n, p = cell.normals, cell.points
    n0, n1, n2 = n, tail(n, 3), tail(n, 6)
    p0, p1, p2 = p, tail(p, 3), tail(p, 6)
    g00, g01, g02 = dot(p0, n0), dot(p0, n1), dot(p0, n2)
    g10, g11, g12 = dot(p1, n0), dot(p1, n1), dot(p1, n2)
    g20, g21, g22 = dot(p2, n0), dot(p2, n1), dot(p2, n2)
    best = -inf
    l0 = l1 = l2 = 0.0
    for k in range(7):
        x = y = z = 0.0
        if k == 0:
            x = 1.0
        elif k == 1:
            y = 1.0
        elif k == 2:
            z = 1.0
        elif k == 3:  # two corners: equal at both
            x = share(g00 - g01, g11 - g10)
            y = 1.0 - x
        elif k == 4:
            y = share(g11 - g12, g22 - g21)
            z = 1.0 - y
        elif k == 5:
            x = share(g00 - g02, g22 - g20)
            z = 1.0 - x
        else:  # all three: λᵀ (g_i0 − g_i1, g_i0 − g_i2) = 0
            u0, u1, u2 = g00 - g01, g10 - g11, g20 - g21
            v0, v1, v2 = g00 - g02, g10 - g12, g20 - g22
            x, y, z = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
            total = x + y + z
            if total == 0.0:
                break
            x, y, z = x / total, y / total, z / total
            if x < 0.0 or y < 0.0 or z < 0.0:
                break
        value = min(x * g00 + y * g10 + z * g20, x * g01 + y * g11 + z * g21, x * g02 + y * g12 + z * g22)
        if value > best:
            best, l0, l1, l2 = value, x, y, z
    s.weights[0], s.weights[1], s.weights[2] = l0, l1, l2
    best = max(best, min(dot(s.proof, n0), dot(s.proof, n1), dot(s.proof, n2)))
    if best < 0.0:  # |Σ μ n| is at least the distance of the plane of the corners
        cross_x = (n1[1] - n0[1]) * (n2[2] - n0[2]) - (n1[2] - n0[2]) * (n2[1] - n0[1])
        cross_y = (n1[2] - n0[2]) * (n2[0] - n0[0]) - (n1[0] - n0[0]) * (n2[2] - n0[2])
        cross_z = (n1[0] - n0[0]) * (n2[1] - n0[1]) - (n1[1] - n0[1]) * (n2[0] - n0[0])
        length = sqrt(cross_x * cross_x + cross_y * cross_y + cross_z * cross_z)
        inside = abs(n0[0] * cross_x + n0[1] * cross_y + n0[2] * cross_z)
        best = best * length / inside if inside > 0.0 else -inf
    return best


@inner
def add_active(s, i, j):
    """Add atoms to the active ones, if there is room."""
    for side in range(2):
        atom = j if side else i
        if atom < 0.0:
            continue
        for k in range(3 * side, 3 * side + 3):
            if s.active[k] == atom:
                break
            if s.active[k] < 0.0:
                s.active[k] = atom
                break


@inner
def clear_active(s):
    for k in range(6):
        s.active[k] = NONE


@inner
def polish(pair, s):
    """Newton's method from s.trial for the active atoms: minimise n·(a_0 − b_0) where all of a, and all of b, are at
    equal heights.

    With the tangent step d, gradient g, constraints c + C d = 0 and multipliers ν: W d + Cᵀν = −g, where
    W = ∇²(n·(a_0 − b_0)) + Σ ν ∇²c − H: the last term is the curvature of the sphere.
    """
    floats = s.as_floats
    call_evaluator(pair.polish, OP, pair.as_ints, floats, floats, floats, floats, floats, floats)


def _polish(op, ints, floats, q, step, out, jacobian, work):
    pair, s = PairRecord(ints), Search(floats)
    a, b = pair.a, pair.b
    n = s.trial
    multiplier = 0.0
    for _ in range(STEPS):
        ux, uy, uz = 0.0, 0.0, 0.0  # tangents u, v
        if abs(n[0]) < 0.6:
            ux, uy, uz = 0.0, -n[2], n[1]
        else:
            ux, uy, uz = n[2], 0.0, -n[0]
        length = sqrt(ux * ux + uy * uy + uz * uz)
        ux, uy, uz = ux / length, uy / length, uz / length
        vx, vy, vz = n[1] * uz - n[2] * uy, n[2] * ux - n[0] * uz, n[0] * uy - n[1] * ux
        gu = gv = value = 0.0
        wuu = wuv = wvv = 0.0
        c1 = c1u = c1v = c2 = c2u = c2v = 0.0
        equal = 0
        for side in range(2):
            sign = 1.0 - 2.0 * side
            base = base_u = base_v = base_uu = base_uv = base_vv = 0.0
            for k in range(3):
                number = s.active[3 * side + k]
                if number < 0.0:
                    break
                if side:
                    lean_b(b, s, int(number), n)
                else:
                    lean_a(a, s, int(number), n)
                at = s.other if side else s.one
                h = sign * dot(n, at)
                hu = sign * (at[0] * ux + at[1] * uy + at[2] * uz)
                hv = sign * (at[0] * vx + at[1] * vy + at[2] * vz)
                tu = at[4] * ux + at[5] * uy + at[6] * uz
                tv = at[4] * vx + at[5] * vy + at[6] * vz
                uu, uv, vv = at[3] * tu * tu, at[3] * tu * tv, at[3] * tv * tv
                if k == 0:
                    base, base_u, base_v, base_uu, base_uv, base_vv = h, hu, hv, uu, uv, vv
                    value, gu, gv = value + h, gu + hu, gv + hv
                    wuu, wuv, wvv = wuu + uu, wuv + uv, wvv + vv
                else:
                    equal += 1
                    if equal == 1:
                        c1, c1u, c1v = h - base, hu - base_u, hv - base_v
                        wuu += multiplier * (uu - base_uu)
                        wuv += multiplier * (uv - base_uv)
                        wvv += multiplier * (vv - base_vv)
                    elif equal == 2:
                        c2, c2u, c2v = h - base, hu - base_u, hv - base_v
        wuu, wvv = wuu - value, wvv - value
        du = dv = 0.0
        if equal == 0:
            det = wuu * wvv - wuv * wuv
            if det <= 0.0 or wuu + wvv <= 0.0:
                return 0
            du, dv = (wuv * gv - wvv * gu) / det, (wuv * gu - wuu * gv) / det
        elif equal == 1:
            square = c1u * c1u + c1v * c1v
            if square == 0.0:
                return 0
            du, dv = -c1 * c1u / square, -c1 * c1v / square
            tu, tv = -c1v, c1u
            bend = wuu * tu * tu + 2.0 * wuv * tu * tv + wvv * tv * tv
            slope = tu * (gu + wuu * du + wuv * dv) + tv * (gv + wuv * du + wvv * dv)
            if bend <= 0.0:
                return 0
            du, dv = du - slope / bend * tu, dv - slope / bend * tv
            multiplier = -(c1u * (gu + wuu * du + wuv * dv) + c1v * (gv + wuv * du + wvv * dv)) / square
        elif equal == 2:
            det = c1u * c2v - c1v * c2u
            if det == 0.0:
                return 0
            du, dv = (c1v * c2 - c2v * c1) / det, (c2u * c1 - c1u * c2) / det
        else:
            return 0
        size = sqrt(du * du + dv * dv)
        if not size < inf:
            return 0
        if size > 0.5:
            du, dv = 0.5 * du / size, 0.5 * dv / size
        n[0] += du * ux + dv * vx
        n[1] += du * uy + dv * vy
        n[2] += du * uz + dv * vz
        normalize(n)
        consider(pair, s)
        if size < 1e-14 or (equal > 0 and size < 1e-9 and multiplier == 0.0):
            return 0
    return 0


POLISH = evaluator(_polish)


@inner
def polish_cell(pair, cell, s):
    """Newton's method for the atoms of the corners that matter in a cell."""
    clear_active(s)
    n = s.trial
    n[0] = n[1] = n[2] = 0.0
    mattering = 0
    for k in range(3):
        if s.weights[k] > 0.0:
            mattering += 1
            add_active(s, cell.atoms[2 * k], cell.atoms[2 * k + 1])
        for c in range(3):
            n[c] += s.weights[k] * cell.normals[3 * k + c] if mattering else 0.0
    count = 0
    for k in range(6):
        count += 1 if s.active[k] >= 0.0 else 0
    if count > 4:  # faces that are parallel: the plane of the three points
        p = cell.points
        for c in range(3):
            s.one[c], s.other[c] = p[3 + c] - p[c], p[6 + c] - p[c]
        cross(s.one, s.other, n)
        if dot(n, cell.normals) < 0.0:
            n[0], n[1], n[2] = -n[0], -n[1], -n[2]
        if normalize(n) > 0.0:
            consider(pair, s)
        return
    if normalize(n) > 0.0:
        polish(pair, s)


@inner
def face_support(hull, s, side, low, direction, out):
    """out ← the point, farthest along a direction, of the atoms of a solid that n meets from the height ``low`` on;
    returns its atom."""
    n = s.normal
    best, found = -inf, 0
    for i in range(hull.count):
        atom = Atom(hull.atoms, i)
        at = s.other if side else s.one
        if side:
            lean_b(hull, s, i, n)
        else:
            lean_a(hull, s, i, n)
        is_disc = atom.radius > 0.0 and at[3] * EDGE > atom.radius
        x, y, z = direction[0], direction[1], direction[2]
        if not is_disc:
            x, y, z = n[0], n[1], n[2]
        if side:
            sign = 1.0 if is_disc else -1.0
            for c in range(3):
                s.local[c] = sign * (s.rotation[c] * x + s.rotation[3 + c] * y + s.rotation[6 + c] * z)
            x, y, z = s.local[0], s.local[1], s.local[2]
        value = height(atom, x, y, z)
        if value == -inf:
            continue  # the ends of an arc are atoms too
        if is_disc:
            lean(atom, x, y, z, at)
            if side:
                from_b(s, at, True)
        if (-dot(n, at) if side else dot(n, at)) < low:
            continue
        value = dot(direction, at)
        if value > best:
            best, found = value, i
            for c in range(3):
                out[c] = at[c]
    return found


@inner
def nearest(s, count):
    """The point nearest to the origin of a simplex of up to three points in the plane; s.shares ← its weights.  Points
    that are not needed are dropped; returns their number."""
    f, w = s.flat, s.shares
    w[0], w[1], w[2] = 1.0, 0.0, 0.0
    if count == 1:
        return count
    i, j = 0, 1
    if count == 3:
        area = (f[2] - f[0]) * (f[5] - f[1]) - (f[3] - f[1]) * (f[4] - f[0])
        if area != 0.0:
            w[0] = (f[2] * f[5] - f[3] * f[4]) / area
            w[1] = (f[4] * f[1] - f[5] * f[0]) / area
            w[2] = 1.0 - w[0] - w[1]
            if w[0] >= 0.0 and w[1] >= 0.0 and w[2] >= 0.0:
                return count
    least, part = inf, 0.0
    for e in range(3 if count == 3 else 1):
        k, l = e, (e + 1) % 3
        dx, dy = f[2 * l] - f[2 * k], f[2 * l + 1] - f[2 * k + 1]
        square = dx * dx + dy * dy
        t = -(f[2 * k] * dx + f[2 * k + 1] * dy) / square if square > 0.0 else 0.0
        t = min(max(t, 0.0), 1.0)
        x, y = f[2 * k] + t * dx, f[2 * k + 1] + t * dy
        if x * x + y * y < least:
            least, part, i, j = x * x + y * y, t, k, l
    w[0] = w[1] = w[2] = 0.0
    w[i], w[j] = 1.0 - part, part
    if count == 3 and i + j != 1:  # the last one takes the place of the one that is dropped
        d = 3 - i - j
        f[2 * d], f[2 * d + 1], w[d] = f[4], f[5], w[2]
        s.pairs[2 * d], s.pairs[2 * d + 1] = s.pairs[4], s.pairs[5]
        for c in range(6):
            s.simplex[6 * d + c] = s.simplex[12 + c]
    return 2


@inner
def witness(a, b, s, contact, depth):
    """contact.points ← points of both faces at the normal, in the axes of a, as near as possible across it; returns
    their distance across it [m].

    depth [m]: atoms that are lower by this belong to the face.  The points are those of the least difference across the
    normal in the hull of all differences, by simplices of up to three pairs.  [Gilbert1988]
    """
    n, x, f, u, v, toward = s.normal, s.simplex, s.flat, s.u, s.v, s.trial
    if abs(n[0]) < 0.6:
        u[0], u[1], u[2] = 0.0, -n[2], n[1]
    else:
        u[0], u[1], u[2] = n[2], 0.0, -n[0]
    normalize(u)
    cross(n, u, v)
    i = highest(a, n[0], n[1], n[2])
    j = highest(b, -into_b(s, n, 0), -into_b(s, n, 1), -into_b(s, n, 2))
    lean_a(a, s, i, n)
    lean_b(b, s, j, n)
    low_a, low_b = dot(n, s.one) - depth, -dot(n, s.other) - depth
    for c in range(3):
        x[c], x[3 + c] = s.one[c], s.other[c]
    count = 0
    px = py = 0.0
    for turn in range(TURNS):
        at = tail(x, 6 * count)
        if turn > 0:
            for c in range(3):
                toward[c] = -px * u[c] - py * v[c]
            normalize(toward)
            i = face_support(a, s, False, low_a, toward, at)
            for c in range(3):
                toward[c] = -toward[c]
            j = face_support(b, s, True, low_b, toward, tail(at, 3))
        f[2 * count] = u[0] * (at[0] - at[3]) + u[1] * (at[1] - at[4]) + u[2] * (at[2] - at[5])
        f[2 * count + 1] = v[0] * (at[0] - at[3]) + v[1] * (at[1] - at[4]) + v[2] * (at[2] - at[5])
        before = sqrt(px * px + py * py)
        if turn > 0 and before * before - (px * f[2 * count] + py * f[2 * count + 1]) <= 1e-15 * s.length * before:
            break  # no point is nearer
        s.pairs[2 * count], s.pairs[2 * count + 1] = i, j
        count = nearest(s, count + 1)
        px = py = 0.0
        for k in range(count):
            px, py = px + s.shares[k] * f[2 * k], py + s.shares[k] * f[2 * k + 1]
        if count == 3:
            px = py = 0.0
            break
        if sqrt(px * px + py * py) <= 1e-15 * s.length:
            break
    for c in range(6):
        contact.points[c] = 0.0
        contact.atoms[c] = NONE
    for k in range(count):
        if s.shares[k] > 0.0:
            contact.atoms[k], contact.atoms[3 + k] = s.pairs[2 * k], s.pairs[2 * k + 1]
            for c in range(6):
                contact.points[c] += s.shares[k] * x[6 * k + c]
    return sqrt(px * px + py * py)


@inner
def refine(pair, s, contact):
    """The normal to its last digits, and its points; returns their distance across it [m].

    Of the atoms that are nearly at the top, the nearest points say which ones are active.
    """
    floats = s.as_floats
    call_evaluator(pair.refine, OP, pair.as_ints, floats, floats, floats, contact.as_floats, floats, floats)
    return s.across


def _refine(op, ints, floats, q, step, out, jacobian, work):
    pair, s, contact = PairRecord(ints), Search(floats), Contact(out)
    a, b = pair.a, pair.b
    for k in range(5):  # faces, atoms near them, faces, atoms nearer to them, faces
        depth = NEAR if k == 1 else NEARER if k == 3 else FACE
        s.across = witness(a, b, s, contact, depth * s.length)
        if k % 2 == 0:
            if s.across <= FACE * s.length or a.kind == HALF_SPACE or b.kind == HALF_SPACE:
                break
            continue
        clear_active(s)
        for c in range(3):
            add_active(s, contact.atoms[c], contact.atoms[3 + c])
            s.trial[c] = s.normal[c]
        polish(pair, s)
        value = consider(pair, s)
        if value <= s.best + ROUNDING * s.length:  # Newton's normal is nearer than one that is lower by rounding
            s.best = value
            for c in range(3):
                s.normal[c] = s.trial[c]
    return 0


REFINE = evaluator(_refine)


@inner
def is_proven(pair, s, contact):
    """Whether the solids are apart and the bounds of their distance meet: −H ≤ gap ≤ |b − a|.

    s.proof ← a − b, a point of M that is as far along the best normal as M: it bounds H near this normal.
    """
    if s.best == s.judged:
        return False
    across = refine(pair, s, contact)
    s.judged = s.best
    for k in range(3):
        s.proof[k] = contact.points[k] - contact.points[3 + k]
    if s.best >= 0.0:
        return False
    contact.error = sqrt(s.best * s.best + across * across) + s.best
    return contact.error <= TIGHT * s.length


@inner
def place_corner(cell, k, s):
    """Corner k of a cell ← the normal that was considered last."""
    for c in range(3):
        cell.normals[3 * k + c] = s.trial[c]
        cell.points[3 * k + c] = s.point[c]
    cell.atoms[2 * k], cell.atoms[2 * k + 1] = s.found[0], s.found[1]


@inner
def copy_corner(cell, k, other, l):
    for c in range(3):
        cell.normals[3 * k + c] = other.normals[3 * l + c]
        cell.points[3 * k + c] = other.points[3 * l + c]
    cell.atoms[2 * k], cell.atoms[2 * k + 1] = other.atoms[2 * l], other.atoms[2 * l + 1]


@inner
def search(pair, s, contact, cells):
    """The least H over all normals; returns the number of cells that were divided."""
    axes = Cell(cells, CELLS)  # two more: the corners of the octahedron, a cell that is divided
    for k in range(6):
        for c in range(3):
            s.trial[c] = 0.0
        s.trial[k % 3] = 1.0 if k < 3 else -1.0
        consider(pair, s)
        place_corner(Cell(axes, k // 3), k % 3, s)
    head, waiting, divided = 0, 0, 0
    for octant in range(8):
        cell = Cell(cells, waiting)
        for k in range(3):
            copy_corner(cell, k, Cell(axes, (octant >> k) & 1), k)
        cell.bound = bound(cell, s)
        waiting += 1
    now = Cell(cells, CELLS)
    while waiting > 0:
        first = Cell(cells, head)
        for k in range(3):
            copy_corner(now, k, first, k)
        now.bound = first.bound
        head, waiting = (head + 1) % CELLS, waiting - 1
        if now.bound >= s.best - CLOSED * s.length:
            continue
        bound(now, s)
        polish_cell(pair, now, s)
        if is_proven(pair, s, contact):
            return divided
        now.bound = max(now.bound, bound(now, s))
        if now.bound >= s.best - CLOSED * s.length:
            continue
        divided += 1
        widest, k = 4.0, 0
        for e in range(3):
            cosine = dot(tail(now.normals, 3 * e), tail(now.normals, 3 * ((e + 1) % 3)))
            if cosine < widest:
                widest, k = cosine, e
        l = (k + 1) % 3
        for c in range(3):
            s.trial[c] = now.normals[3 * k + c] + now.normals[3 * l + c]
        normalize(s.trial)
        consider(pair, s)
        if waiting + 2 > CELLS or widest >= 1.0:
            contact.error = max(contact.error, s.best - now.bound)
            continue
        for half in range(2):
            cell = Cell(cells, (head + waiting) % CELLS)
            for c in range(3):
                copy_corner(cell, c, now, c)
            place_corner(cell, l if half else k, s)
            cell.bound = max(bound(cell, s), now.bound)
            if cell.bound < s.best - CLOSED * s.length:
                waiting += 1
    return divided


@inner
def rotation(q, R):
    """R ← matrix of a unit quaternion."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    R[0], R[1], R[2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    R[3], R[4], R[5] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    R[6], R[7], R[8] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


@inner
def closest(pair, pose_a, pose_b, contact, cells):
    """contact ← gap, points and normal of two hulls at poses (x, y, z, quaternion)."""
    a, b = pair.a, pair.b
    s = local(Search)
    A, B, R = s.axes_a, s.axes_b, s.rotation
    rotation(tail(pose_a, 3), A)
    rotation(tail(pose_b, 3), B)
    for i in range(3):
        s.position[i] = 0.0
        for k in range(3):
            s.position[i] += A[3 * k + i] * (pose_b[k] - pose_a[k])
            R[3 * i + k] = A[i] * B[k] + A[3 + i] * B[3 + k] + A[6 + i] * B[6 + k]
    s.length = sqrt(dot(s.position, s.position)) + a.reach + b.reach
    s.best = s.judged = inf
    clear_active(s)
    contact.error = contact.cells = 0.0
    n = s.trial
    done = False
    if a.kind == HALF_SPACE or b.kind == HALF_SPACE:
        n[0], n[1], n[2] = 0.0, 0.0, 1.0
        if a.kind != HALF_SPACE:
            n[2] = -1.0
            from_b(s, n, False)
        consider(pair, s)
        refine(pair, s, contact)
        done = True
    elif contact.is_known > 0.0:
        for k in range(3):
            n[k] = A[k] * contact.normal[0] + A[3 + k] * contact.normal[1] + A[6 + k] * contact.normal[2]
        for k in range(3):
            add_active(s, contact.atoms[k], contact.atoms[3 + k])
        consider(pair, s)
        polish(pair, s)
        across = refine(pair, s, contact)
        contact.error = sqrt(s.best * s.best + across * across) - abs(s.best)
        done = contact.error <= TIGHT * s.length
    if not done:
        contact.error = 0.0
        for k in range(3):
            n[k] = s.position[k]
        if normalize(n) > 0.0:
            consider(pair, s)
            add_active(s, s.found[0], s.found[1])
            polish(pair, s)
        consider_axes(pair, s)
        if not is_proven(pair, s, contact):
            contact.error = 0.0
            contact.cells = search(pair, s, contact, cells)
            if s.best != s.judged:
                refine(pair, s, contact)
    n = s.normal
    if a.kind == HALF_SPACE or b.kind == HALF_SPACE:  # its point is the foot of the other's
        there, here = (0, 3) if a.kind == HALF_SPACE else (3, 0)
        sign = -1.0 if a.kind == HALF_SPACE else 1.0
        for c in range(3):
            contact.points[there + c] = contact.points[here + c] - sign * s.best * n[c]
    for k in range(3):
        contact.points[k] += a.growth * n[k]
        contact.points[3 + k] -= b.growth * n[k]
    contact.gap = -s.best - a.growth - b.growth
    if contact.error <= CLOSED * s.length:
        contact.error = 0.0
    for side in range(2):
        p = tail(contact.points, 3 * side)
        x, y, z = p[0], p[1], p[2]
        for k in range(3):
            p[k] = A[3 * k] * x + A[3 * k + 1] * y + A[3 * k + 2] * z + pose_a[k]
    for k in range(3):
        contact.normal[k] = A[3 * k] * n[0] + A[3 * k + 1] * n[1] + A[3 * k + 2] * n[2]


@jit
def closest_many(count, pairs, poses, contacts, cells):
    """contacts ← those of pairs of hulls, at rows of poses."""
    pairs, poses, contacts, cells = pointer(pairs), pointer(poses), pointer(contacts), pointer(cells)
    for k in range(count):
        pair = PairRecord(pairs, k)
        at_a, at_b = tail(poses, 7 * pair.body_a), tail(poses, 7 * pair.body_b)
        closest(pair, at_a, at_b, Contact(contacts, k), cells)
    return 0
