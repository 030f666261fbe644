"""Hits without friction: impulses at contacts, on the velocities that the joints allow.

With the active equations J v = ġ, the response W to unit impulses along the rows J_c of the contacts satisfies

    M W + Jᵀλ = J_cᵀ,   J W = 0,   G = J_c W,

so joints hold for every impulse r: v⁺ = v + W r, and the approach speeds u = J_c v become u⁺ = u + G r.  Newton's law
of restitution, u⁺ = −e u⁻, holds where r > 0; elsewhere u⁺ ≥ −e u⁻ [Moreau1988].  This is a linear complementarity
problem.  The work of the impulses is r·(u⁻ + u⁺)/2, not positive if all e are equal.  If different e give energy,
Poisson's law is used: impulses of restitution are e times those of compression.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cardan.dynamics.equations import Equations
from cardan.system.state import FloatArray

RANK_RTOL: Final = 1e-12  # of the largest singular value: smaller ones are those of redundant equations
LEAST_RTOL: Final = 1e-13  # of the largest diagonal entry of G: a contact with a smaller one cannot move
GAIN: Final = 1e-12  # of the kinetic energy along the normals: a larger positive work is a gain
MOST_TURNS: Final = 10_000  # hits in turn at one time
SLOW: Final = 1e-13  # of the fastest approach: slower ones are no hits in turn


class Impact(NamedTuple):
    """Impulses r [N s], speeds after them [m/s], the change of v, the work [J], and the law of restitution."""

    impulses: FloatArray
    speeds: FloatArray
    change: FloatArray
    work: float
    law: str


def responses(equations: Equations, jacobian: FloatArray, active: FloatArray, rows: FloatArray) -> FloatArray:
    """W, shape (unknowns, contacts), for J of all rows, shape (rows, unknowns), and J_c, shape (contacts, unknowns).

    Solved in the metric of the masses, by least squares: equations may be redundant, and M singular.
    """
    e = equations
    roots: FloatArray = np.sqrt(e.metric.ravel())
    J = (jacobian[e.equations] / roots)[(active > 0.0) & (e.compliances == 0.0)]
    J = J / np.maximum(np.linalg.norm(J, axis=1), np.finfo(float).tiny)[:, None]
    M = np.diag(e.masses.ravel() / roots**2)
    if e.inertias:
        g = jacobian[e.joint_inertias.rows] / roots
        M = M + g.T @ (e.joint_inertias.values[:, None] * g)
    n, m = len(roots), len(J)
    whole = np.zeros((n + m, n + m))
    whole[:n, :n], whole[:n, n:], whole[n:, :n] = M, J.T, J
    right = np.zeros((n + m, len(rows)))
    right[:n] = (rows / roots).T
    found = np.linalg.lstsq(whole, right, rcond=RANK_RTOL)[0][:n]
    if m:  # J W = 0 to rounding
        found = found - np.linalg.lstsq(J, J @ found, rcond=RANK_RTOL)[0]
    response: FloatArray = np.asarray(found / roots[:, None], dtype=np.float64)
    return response


def together(G: FloatArray, u: FloatArray, e: FloatArray) -> FloatArray:
    """r ≥ 0 with G r + (1 + e) u ≥ 0, and one of them zero for each contact."""
    return _complement(G, u + e * np.minimum(u, 0.0))


def in_turn(G: FloatArray, u: FloatArray, e: FloatArray) -> FloatArray:
    """r of hits one after another, the fastest approach first, until no contact approaches."""
    r, w = np.zeros_like(u), u.copy()
    slow = SLOW * float(np.abs(u).max(initial=0.0))
    for _ in range(MOST_TURNS):
        k = int(np.argmin(w))
        if w[k] >= -slow or G[k, k] <= LEAST_RTOL * float(np.diag(G).max()):
            return r
        hit = -(1.0 + e[k]) * w[k] / G[k, k]
        r[k] += hit
        w += hit * G[:, k]
    return r + _complement(G, w)  # e = 0 for what is left


def solve(G: FloatArray, W: FloatArray, u: FloatArray, e: FloatArray, impacts: str) -> Impact:
    """The hits of contacts with approach speeds u ≤ 0 (or contacts at rest), that never give energy."""
    r = in_turn(G, u, e) if impacts == "in_turn" else together(G, u, e)
    law = "Newton"
    bound = GAIN * float(np.abs(u).max(initial=0.0)) * float(np.abs(r).max(initial=0.0))
    if _work(G, u, r) > bound:
        pressed = together(G, u, np.zeros_like(e))
        r, law = pressed + e * pressed, "Poisson"
        r = r + _complement(G, u + G @ r)
        if _work(G, u, r) > bound:
            r, law = pressed, "inelastic"
    return Impact(r, u + G @ r, W @ r, _work(G, u, r), law)


def _work(G: FloatArray, u: FloatArray, r: FloatArray) -> float:
    return float(r @ (u + 0.5 * (G @ r)))


def _complement(G: FloatArray, b: FloatArray) -> FloatArray:
    """r ≥ 0 with G r + b ≥ 0 and r·(G r + b) = 0; G is symmetric and semidefinite.

    As a problem of least squares with bounds: G = A Aᵀ, and |Aᵀ r + A⁺ b| is least.
    """
    from scipy.optimize import nnls

    if not (b < 0.0).any():
        return np.zeros_like(b)
    values, vectors = np.linalg.eigh(0.5 * (G + G.T))
    kept = values > LEAST_RTOL * max(float(values[-1]), np.finfo(float).tiny)
    roots = np.sqrt(values[kept])
    left = vectors[:, kept] * roots
    r: FloatArray = nnls(left.T, -(vectors[:, kept].T @ b) / roots)[0]
    on = np.flatnonzero(r > 0.0)
    if on.size:  # the last digits
        r[on] -= np.linalg.lstsq(G[np.ix_(on, on)], (G @ r + b)[on], rcond=LEAST_RTOL)[0]
    return np.maximum(r, 0.0)
