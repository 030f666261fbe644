"""Distances by dense sampling and polishing, with SciPy's splines and NumPy: no code of the library.

A verdict is None, or says what is wrong.  It needs three things: the pair is a pair (the judge computes the reported
distance at the reported parameters), the judge finds nothing closer, and the judge finds a minimum just as close.
The last one can fail only if the sample is too coarse; the judge then samples more densely.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.interpolate import BSpline
from scipy.spatial import cKDTree

ACHIEVED = 1e-12  # |distance − |S¹ − S²||, for sizes of about 1
CLOSER = 1e-10  # a pair of the judge that is closer by more than this refutes
CONFIRMED = 1e-9  # the judge must come this near
TOUCH = 1e-8  # nothing is closer than zero: a pair that is achieved and as near as this needs no more
FINER = ((41, 8), (81, 40), (161, 150))  # samples per parameter, and number of polished starts


class Judged:
    """A rational surface, evaluated with the basis functions of SciPy."""

    def __init__(self, points, weights, knots, degrees):
        self._net = np.concatenate([points * weights[..., None], weights[..., None]], -1)
        self._bases = [
            [BSpline(t, np.eye(len(t) - d - 1), d).derivative(k) for k in range(min(d, 2) + 1)]
            for t, d in zip(knots, degrees, strict=True)
        ]
        self.low = np.array([t[d] for t, d in zip(knots, degrees, strict=True)])
        self.high = np.array([t[-d - 1] for t, d in zip(knots, degrees, strict=True)])
        self._grids = {}

    def __call__(self, uv, order=0):
        """Points (n, 3); for order 2 the list S, S_u, S_v, S_uu, S_uv, S_vv."""
        uv = np.atleast_2d(uv)
        U, V = ([basis(uv[:, i]) for basis in self._bases[i][: order + 1]] for i in (0, 1))
        rows = [np.einsum("njc,nj->nc", np.tensordot(u, self._net, axes=1), V[0]) for u in U]
        if order == 0:
            return rows[0][:, :3] / rows[0][:, 3:]
        across = np.tensordot(U[0], self._net, axes=1)
        h, hu, huu = rows
        hv, hvv = (np.einsum("njc,nj->nc", across, v) for v in V[1:])
        huv = np.einsum("njc,nj->nc", np.tensordot(U[1], self._net, axes=1), V[1])
        w = h[:, 3:]
        s = h[:, :3] / w
        su, sv = ((x[:, :3] - s * x[:, 3:]) / w for x in (hu, hv))
        suu = (huu[:, :3] - 2.0 * hu[:, 3:] * su - huu[:, 3:] * s) / w
        suv = (huv[:, :3] - hu[:, 3:] * sv - hv[:, 3:] * su - huv[:, 3:] * s) / w
        svv = (hvv[:, :3] - 2.0 * hv[:, 3:] * sv - hvv[:, 3:] * s) / w
        return [s, su, sv, suu, suv, svv]

    def grid(self, n):
        if n not in self._grids:
            axes = [np.linspace(a, b, n) for a, b in zip(self.low, self.high, strict=True)]
            uv = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
            h = np.einsum("ai,ijc,bj->abc", self._bases[0][0](axes[0]), self._net, self._bases[1][0](axes[1]))
            self._grids[n] = uv, (h[..., :3] / h[..., 3:]).reshape(-1, 3)
        return self._grids[n]


class Still:
    """A point, as a surface."""

    low = high = np.zeros(2)

    def __init__(self, p):
        self._p = np.asarray(p, dtype=float)

    def __call__(self, uv, order=0):
        rows = [np.broadcast_to(self._p, (len(uv), 3)), *[np.zeros((len(uv), 3))] * 5]
        return rows if order else rows[0]


def judged(surface):
    """The judge's own copy of a surface, from its control points."""
    return Judged(surface.points, surface.weights, surface.knots, surface.degrees)


def rotation(p):
    w, x, y, z = np.asarray(p) / np.linalg.norm(p)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def bumps(rng):
    """Control points and weights of a bicubic patch over the unit square: 8 × 8, heights of ± 0.15."""
    x, y = np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8), indexing="ij")
    return np.stack([x, y, 0.15 * rng.normal(size=(8, 8))], -1), rng.uniform(0.8, 1.25, (8, 8))


def random_pose(rng, reach):
    """A random rotation; the centres of two such patches are ``reach`` apart."""
    p = rng.normal(size=4)
    p /= np.linalg.norm(p)
    n = rng.normal(size=3)
    center = np.array([0.5, 0.5, 0.0])
    return np.concatenate([center + reach * n / np.linalg.norm(n) - rotation(p) @ center, p])


def apart(starts, count, least=0.1):
    """The first ``count`` starts that are not near each other."""
    chosen = []
    for x in starts:
        if all(np.abs(x - y).max() > least for y in chosen):
            chosen.append(x)
        if len(chosen) == count:
            break
    return chosen


def polish(a, b, R, t, x, steps=60):
    """Local minima of ½|S¹ − R S² − t|² from rows of x, all at once: Newton's method with |eigenvalues|, projected on
    the bounds, with a step that is shortened where the cost would grow.  Returns parameters and distances."""
    low, high = np.concatenate([a.low, b.low]), np.concatenate([a.high, b.high])
    best, scale, done = np.full(len(x), np.inf), np.ones(len(x)), np.zeros(len(x), dtype=bool)
    y, step, kept = x.copy(), np.zeros_like(x), x.copy()
    for _ in range(steps):
        A, B = a(y[:, :2], 2), [q @ R.T for q in b(y[:, 2:], 2)]
        r = A[0] - B[0] - t
        f = 0.5 * (r * r).sum(1)
        better = f < best
        V = np.stack([A[1], A[2], -B[1], -B[2]], axis=1)
        H = V @ V.swapaxes(1, 2)
        for first, rows, sign in ((0, A, 1.0), (2, B, -1.0)):
            uu, uv, vv = (sign * (r * row).sum(1) for row in rows[3:])
            H[:, first, first] += uu
            H[:, first + 1, first + 1] += vv
            H[:, first, first + 1] += uv
            H[:, first + 1, first] += uv
        g = np.einsum("nic,nc->ni", V, r)
        fixed = ((y <= low) & (g >= 0.0)) | ((y >= high) & (g <= 0.0))
        g[fixed] = 0.0
        H[fixed] = 0.0
        H.swapaxes(1, 2)[fixed] = 0.0
        w, Q = np.linalg.eigh(H)
        w = np.maximum(np.abs(w), 1e-12 * np.abs(w).max(axis=1, keepdims=True) + 1e-300)
        new = -np.einsum("nij,nj->ni", Q, np.einsum("nji,nj->ni", Q, g) / w)
        new[fixed] = 0.0
        kept[better], best[better], step[better] = y[better], f[better], new[better]
        scale = np.where(better, np.minimum(1.0, 2.0 * scale), 0.3 * scale)
        done |= np.abs(step * scale[:, None]).max(axis=1) < 1e-15
        if done.all():
            break
        y = np.clip(kept + scale[:, None] * step, low, high)
    return kept, np.sqrt(2.0 * best)


def closest(a, b, pose, n=41, starts=8):
    """The least distance of two surfaces: n² samples of each, then polishing from the best that are apart."""
    R, t = rotation(pose[3:]), np.asarray(pose[:3])
    (qa, pa), (qb, pb) = a.grid(n), b.grid(n)
    d, k = cKDTree(pb @ R.T + t).query(pa)
    nearest = np.argsort(d)
    chosen = apart((np.concatenate([qa[i], qb[k[i]]]) for i in nearest), starts)
    return float(polish(a, b, R, t, np.array(chosen))[1].min())


def verdict(distance, achieved, closest_of):
    """None if a distance is right; ``closest_of`` gives the judge's own, more densely at each step of FINER."""
    if not abs(distance - achieved) <= ACHIEVED:
        return f"the distance is {distance}, but that of its points is {achieved}"
    least = np.inf
    for n, starts in FINER:
        least = min(least, closest_of(n, starts))
        if distance > least + CLOSER:
            return f"the distance is {distance:.12f}; the judge finds {least:.12f}"
        if distance <= TOUCH or distance >= least - CONFIRMED:
            return None
    return f"the distance is {distance:.12f}; the judge finds no minimum below {least:.12f}"


def pair_verdict(a, b, pose, pair):
    """None if a closest pair of two judged surfaces is right."""
    qa, qb = pair.parameters
    for q, s in ((qa, a), (qb, b)):
        if not ((q >= s.low) & (q <= s.high)).all():
            return f"the parameters {q} are outside of the surface"
    achieved = np.linalg.norm(a(qa)[0] - rotation(pose[3:]) @ b(qb)[0] - pose[:3])
    return verdict(pair.distance, achieved, lambda n, starts: closest(a, b, pose, n, starts))


class Plate:
    """A judged surface, trimmed: the square |u − ½|, |v − ½| ≤ 0.45 without two discs of the parameter plane."""

    holes = ((0.5, 0.5, 0.2), (0.25, 0.25, 0.08))

    def __init__(self, surface):
        self.surface = surface
        side, turn = np.linspace(0.05, 0.95, 2001), np.linspace(0.0, 2.0 * np.pi, 2001)
        ends = (0.05, 0.95)
        self.borders = [(side, lambda t, w=w: np.stack([t, 0.0 * t + w], -1)) for w in ends]
        self.borders += [(side, lambda t, w=w: np.stack([0.0 * t + w, t], -1)) for w in ends]
        self.borders += [
            (turn, lambda t, x=x, y=y, r=r: np.stack([x + r * np.cos(t), y + r * np.sin(t)], -1))
            for x, y, r in self.holes
        ]
        self._sampled = [surface(border(t)) for t, border in self.borders]

    def contains(self, uv, slack=0.0):
        inside = np.abs(uv - 0.5).max(axis=-1) <= 0.45 + slack
        for x, y, r in self.holes:
            inside &= np.hypot(uv[..., 0] - x, uv[..., 1] - y) >= r - slack
        return inside

    def closest(self, p, n, starts):
        """The least distance to a point: samples and polishing inside, repeated samples on each border."""
        uv, points = self.surface.grid(4 * n)
        inside = self.contains(uv)
        uv, points = uv[inside], points[inside]
        d = ((points - p) ** 2).sum(axis=1)
        nearest = np.argpartition(d, 300 * starts)[: 300 * starts]
        chosen = np.array(apart(uv[nearest[np.argsort(d[nearest])]], starts, 0.03))
        x, found = polish(self.surface, Still(p), np.eye(3), np.zeros(3), np.pad(chosen, ((0, 0), (0, 2))))
        least = float(min(found[self.contains(x[:, :2])], default=np.inf))
        for (t, border), q in zip(self.borders, self._sampled, strict=True):
            d = np.linalg.norm(q - p, axis=1)
            for i in apart(np.argsort(d)[:, None], 3, 40):
                at, h = t[i[0]], t[1] - t[0]
                for _ in range(6):
                    near = np.clip(np.linspace(at - h, at + h, 41), t[0], t[-1])
                    here = np.linalg.norm(self.surface(border(near)) - p, axis=1)
                    at, h = near[np.argmin(here)], 0.06 * h
                least = min(least, float(here.min()))
        return least

    def verdict(self, p, distance, q):
        """None if q is the closest place of the plate to p, at that distance."""
        if not self.contains(q, slack=1e-7):
            return f"the place {q} is outside of the domain"
        achieved = np.linalg.norm(self.surface(q)[0] - p)
        return verdict(distance, achieved, lambda n, starts: self.closest(p, n, starts))


def face(geometry):
    """The face of a :class:`Plate`, made of a bumpy surface by the library that is judged."""
    circle = geometry.circle(1.0).to_nurbs()
    rings = [
        geometry.Curve(circle.points * r + (x, y), circle.weights, circle.knots, degree=2) for x, y, r in Plate.holes
    ]
    corners = [(0.05, 0.05), (0.95, 0.05), (0.95, 0.95), (0.05, 0.95), (0.05, 0.05)]
    outer = [geometry.Curve(list(side), degree=1) for side in itertools.pairwise(corners)]
    return geometry.Face(geometry.Surface(*bumps(np.random.default_rng(0))), [outer, *rings])


def triangle_distance(s, t):
    """Distances of pairs of triangles, shapes (n, 3, 3): features in their interior, and 0 where an edge pierces."""
    n = len(s)
    least = np.full(n, np.inf)
    sides = [(0, 1), (1, 2), (2, 0)]
    for one, two in ((s, t), (t, s)):
        e1, e2 = two[:, 1] - two[:, 0], two[:, 2] - two[:, 0]
        for i in range(3):
            p = one[:, i]
            for j, k in sides:  # a corner and a corner, a corner and a side
                d, e = p - two[:, j], two[:, k] - two[:, j]
                x = np.clip((d * e).sum(1) / (e * e).sum(1), 0.0, 1.0)
                least = np.minimum(least, np.linalg.norm(d - x[:, None] * e, axis=1))
            x, y = solve_2(e1, e2, p - two[:, 0])  # a corner and the inside
            foot = two[:, 0] + x[:, None] * e1 + y[:, None] * e2
            inside = (x >= 0.0) & (y >= 0.0) & (x + y <= 1.0)
            least = np.where(inside, np.minimum(least, np.linalg.norm(p - foot, axis=1)), least)
            k = (i + 1) % 3  # a side through the inside
            A = np.stack([e1, e2, p - one[:, k]], axis=2)
            good = np.abs(np.linalg.det(A)) > 1e-30
            x = np.full((n, 3), -1.0)
            x[good] = np.linalg.solve(A[good], (p - two[:, 0])[good][..., None])[..., 0]
            least[(x >= 0.0).all(1) & (x[:, 0] + x[:, 1] <= 1.0) & (x[:, 2] <= 1.0)] = 0.0
    for i, j in sides:
        for k, m in sides:  # two sides
            u, v, d = s[:, j] - s[:, i], t[:, m] - t[:, k], t[:, k] - s[:, i]
            x, y = solve_2(u, -v, d)
            inside = (x >= 0.0) & (x <= 1.0) & (y >= 0.0) & (y <= 1.0)
            e = np.linalg.norm(x[:, None] * u - y[:, None] * v - d, axis=1)
            least = np.where(inside, np.minimum(least, e), least)
    return least


def solve_2(e, f, d):
    """x, y that minimise |x e + y f − d|; NaN if e and f are parallel."""
    ee, ef, ff = (e * e).sum(1), (e * f).sum(1), (f * f).sum(1)
    de, df = (d * e).sum(1), (d * f).sum(1)
    with np.errstate(all="ignore"):
        det = ee * ff - ef * ef
        return np.where(det > 0.0, (de * ff - df * ef) / det, np.nan), np.where(
            det > 0.0, (df * ee - de * ef) / det, np.nan
        )


def mesh_distance(s, t):
    """The least distance of two sets of triangles: all pairs whose bounding spheres could be as near as some pair of
    corners, which is an upper bound."""
    reach = cKDTree(t.reshape(-1, 3)).query(s.reshape(-1, 3))[0].min()
    cs, ct = s.mean(axis=1), t.mean(axis=1)
    rs, rt = (np.linalg.norm(x - c[:, None], axis=2).max(axis=1) for x, c in ((s, cs), (t, ct)))
    near = cKDTree(ct).query_ball_point(cs, reach + rs + rt.max())
    i = np.repeat(np.arange(len(s)), [len(row) for row in near])
    j = np.concatenate([np.asarray(row, dtype=int) for row in near])
    could = np.linalg.norm(cs[i] - ct[j], axis=1) <= reach + rs[i] + rt[j]
    i, j = i[could], j[could]
    return min(
        float(triangle_distance(s[i[k : k + 50000]], t[j[k : k + 50000]]).min()) for k in range(0, len(i), 50000)
    )
