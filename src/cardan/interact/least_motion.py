"""The least motion that keeps inequalities: min ½ λᵀK λ + hᵀλ over λ ≥ 0, whose solution has h + K λ ≥ 0.

K = A Aᵀ of the rows A of the inequalities h + A z ≥ 0, in the metric in which the motion z = Aᵀλ is least.  This is
least distance programming [Lawson1974, ch. 23]: with E = (Bᵀ, −h)ᵀ for K = Bᵀ B, the least squares solution w ≥ 0 of
E w ≈ (0, …, 0, 1) gives λ; a residual of zero says that the inequalities contradict each other.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cardan.system.state import FloatArray

ADDED: Final = 1e-13  # to the diagonal of ones: several points of two faces have dependent rows
CONTRADICTED: Final = 1e-9  # residual of least squares: inequalities that no motion satisfies


def forces(matrix: FloatArray, h: FloatArray) -> FloatArray | None:
    """λ ≥ 0 with h + K λ ≥ 0 and least λᵀK λ; None if there is none.  matrix: K, shape (n, n)."""
    if not len(h) or h.min() >= 0.0:
        return np.zeros(len(h))
    roots = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    roots[roots == 0.0] = 1.0
    scaled = -h / roots
    size = float(np.abs(scaled).max())
    rows = np.vstack([_root(matrix / np.outer(roots, roots)), scaled / size])
    right = np.zeros(len(rows))
    right[-1] = 1.0
    try:
        from scipy.optimize import nnls

        w, _ = nnls(rows, right)
    except RuntimeError:  # too many iterations
        return None
    rest = 1.0 - float(rows[-1] @ w)
    if not rest > CONTRADICTED:
        return None
    return np.asarray(w * (size / rest) / roots)


def _root(matrix: FloatArray) -> FloatArray:
    """B with K + ε = Bᵀ B, for the least ε of some that rounding needs; K has a diagonal of ones."""
    added = ADDED
    while True:
        try:
            return np.asarray(np.linalg.cholesky(matrix + added * np.eye(len(matrix))).T, dtype=np.float64)
        except np.linalg.LinAlgError:
            added *= 100.0
