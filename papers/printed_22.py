"""Algorithm 1 with the matrix (22) as it is printed in [Liu2013]: Example 1, body 1 movable, Peng's formula.

The equations are Φ_e = A u_e · (Q_e − A P_e) and pᵀp − 1.  By (6b) the row of an equation is 2 t G with

    t = −(Q − A P)ᵀ A ũ + uᵀ AᵀA P̃.

The matrix (22) has uᵀP̃ in the last term.  The two are equal on the unit sphere only, where AᵀA = I; in general
AᵀA = |p|⁴ I.  Iterates leave the sphere, so the counts of Table 2 depend on it.
"""

from __future__ import annotations

import numpy as np

from cardan.math import euler
from cardan.system.state import FloatArray
from cardan.system.system import IntArray
from papers.liu2013 import EXAMPLES, Convergence, Settings, coordinates

_U, _P, _Q = (np.array([getattr(e, word) for e in EXAMPLES[1]], dtype=np.float64) for word in "upq")
SINGULAR = 4 * float(np.finfo(np.float64).eps)  # relative to the largest entry of J, as in Algorithm 1


def residual(p: FloatArray) -> FloatArray:
    """Φ at p, shape (n, 4) → (n, 4), the normalisation last."""
    A = euler.matrix(p)
    u, arm = np.einsum("nij,ej->nei", A, _U), _Q - np.einsum("nij,ej->nei", A, _P)
    return np.concatenate([np.einsum("nei,nei->ne", u, arm), (p * p).sum(axis=1, keepdims=True) - 1.0], axis=1)


def jacobian(p: FloatArray) -> FloatArray:
    """The matrix (22) at p, shape (n, 4) → (n, 4, 4), the row of the normalisation last."""
    A = euler.matrix(p)
    arm = _Q - np.einsum("nij,ej->nei", A, _P)
    t = -np.einsum("nei,nij,ejk->nek", arm, A, euler.tilde(_U)) + np.einsum("ei,eij->ej", _U, euler.tilde(_P))
    return np.concatenate([2.0 * np.einsum("nek,nkl->nel", t, euler.G(p)), 2.0 * p[:, None, :]], axis=1)


def algorithm_1(starts: FloatArray, settings: Settings) -> Convergence:
    """From every start p, shape (n, 4), all at once."""
    p = coordinates(starts)[:, 3:].copy()
    count = len(p)
    ok, iterations, norms = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64), np.full(count, np.nan)
    alive: IntArray = np.arange(count)
    with np.errstate(all="ignore"):
        for k in range(settings.iterations):
            phi = residual(p[alive])
            norm = np.linalg.norm(phi, axis=1)
            norms[alive], iterations[alive] = norm, k
            ok[alive[norm <= settings.epsilon]] = True
            keep = norm > settings.epsilon  # NaN is dropped too
            alive, phi = alive[keep], phi[keep]
            if not alive.size:
                break
            J = jacobian(p[alive])
            finite = np.isfinite(J).all(axis=(1, 2))
            alive, phi, J = alive[finite], phi[finite], J[finite]
            p[alive] -= _solved(J, phi, settings)
    return Convergence(ok, iterations, norms)


def _solved(J: FloatArray, phi: FloatArray, settings: Settings) -> FloatArray:
    """J⁻¹Φ, or J⁺Φ where J is singular or where it is asked for."""
    singular = np.full(len(J), settings.inverse == "pseudo")
    if not singular.all():
        values = np.linalg.svd(J, compute_uv=False)
        singular |= values[:, -1] <= SINGULAR * np.abs(J).max(axis=(1, 2))
    out = np.empty_like(phi)
    out[~singular] = np.linalg.solve(J[~singular], phi[~singular][..., None])[..., 0]
    out[singular] = (np.linalg.pinv(J[singular]) @ phi[singular][..., None])[..., 0]
    return out
