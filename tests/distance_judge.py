"""Distances by dense sampling and polishing, with SciPy's splines: no code of the library."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import NdBSpline
from scipy.optimize import minimize
from scipy.spatial import cKDTree


class Judged:
    """A rational surface, evaluated by SciPy."""

    def __init__(self, points, weights, knots, degrees):
        self._spline = NdBSpline(knots, np.concatenate([points * weights[..., None], weights[..., None]], -1), degrees)
        self.low = np.array([t[d] for t, d in zip(knots, degrees, strict=True)])
        self.high = np.array([t[-d - 1] for t, d in zip(knots, degrees, strict=True)])

    def __call__(self, uv):
        h = self._spline(np.atleast_2d(uv))
        return h[:, :3] / h[:, 3:]

    def with_gradient(self, uv):
        uv = np.atleast_2d(uv)
        h = self._spline(uv)
        found = [h[:, :3] / h[:, 3:]]
        for nu in ((1, 0), (0, 1)):
            d = self._spline(uv, nu=nu)
            found.append((d[:, :3] - found[0] * d[:, 3:]) / h[:, 3:])
        return [f[0] for f in found]

    def grid(self, n):
        axes = [np.linspace(a, b, n) for a, b in zip(self.low, self.high, strict=True)]
        uv = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        return uv, self(uv)


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


def closest(a, b, pose, n=41, starts=6):
    """The least distance of two surfaces: n² samples of each, then L-BFGS-B from the best that are apart."""
    R, t = rotation(pose[3:]), np.asarray(pose[:3])
    (qa, pa), (qb, pb) = a.grid(n), b.grid(n)
    pb = pb @ R.T + t
    d, k = cKDTree(pb).query(pa)
    order = np.argsort(d)
    chosen = []
    for i in order:
        x = np.concatenate([qa[i], qb[k[i]]])
        if all(np.abs(x - y).max() > 0.1 for y in chosen):
            chosen.append(x)
        if len(chosen) == starts:
            break

    def cost(x):
        s, su, sv = a.with_gradient(x[:2])
        r, ru, rv = (R @ v for v in b.with_gradient(x[2:]))
        e = s - r - t
        return 0.5 * e @ e, np.array([e @ su, e @ sv, -e @ ru, -e @ rv])

    bounds = list(zip(np.concatenate([a.low, b.low]), np.concatenate([a.high, b.high]), strict=True))
    ends = [minimize(cost, x, jac=True, bounds=bounds, options={"ftol": 1e-16, "gtol": 1e-12}) for x in chosen]
    return float(np.sqrt(2.0 * min(end.fun for end in ends)))
