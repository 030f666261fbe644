"""Which freedoms of first order are motions: by continuation, and by second order.

Let N be the null space of J (freedoms of first order) and S its left null space (dependent equations, self-stresses).
With H(n, m) = d/dh J(q ⊕ h n) m,

    f(q ⊕ (h n + h² a)) = f + h J n + h² (J a + ½ H(n, n)) + O(h³),

so n is the beginning of a motion only if some a satisfies J a + ½ H(n, n) = 0: s·H(n, n) = 0 for every s in S.

Continuation: a step along a random n, then Newton's method with the J of the first pose.  If it ends on the
constraints, every n is tangent to a motion, because a random one is.  Otherwise the forms s·H(n, n) decide.  If one is
definite, nothing moves, although N is not empty: a shaky structure, such as two collinear bars.  If one is
semidefinite, motions are in its kernel, where the others are examined again.  [Connelly1996]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cardan.coordinates.rates import shortening
from cardan.solvers.problem import Problem
from cardan.solvers.tables import Structure
from cardan.system.state import FloatArray
from cardan.system.system import IntArray

RANK_RTOL = 1e-9  # of the largest singular value; residuals of 1e-12 perturb the zero ones far less than this
DIFFERENCE = 1e-4  # step of the central differences of J: their error is 1e-8, and rounding 1e-12
STEP = 0.02  # of a continuation, at most: [rad] or in L, of the body that moves most
CONVERGES = 0.1  # of the least counted singular value: Newton's method with a fixed J converges for shorter steps
SHORTER = 0.2  # factor on a step that was too long
STEPS_TRIED = 3
CORRECTIONS = 20
CURVED = 1e-3  # a residual above this times h² obstructs a motion
ROUNDING = 1e-14  # of a residual
FLAT = 1e-4  # of the largest form: smaller forms are zero
ZERO = 1e-9  # of the forms, relative: a common zero
STARTS = 20  # random ones of the search for a common zero


class Forms(NamedTuple):
    """s·H(n, m), shape (stresses, freedoms, freedoms), and the largest |H(n, m)|."""

    values: FloatArray
    scale: float


class Linearised:
    """Scaled equations at a pose: J = U S Vᵀ, long rows shortened, without guard rows."""

    def __init__(self, problem: Problem, q: FloatArray, rows: list[int]) -> None:
        self._problem, self._q, self._rows = problem, q, rows
        self._columns: FloatArray = problem.scales[problem.rows :]
        structure = problem.structure
        self._blocks: IntArray = Structure(structure).offsets[: int(Structure(structure).blocks)]
        residual, jacobian = problem.jacobian(q)
        scaled = jacobian[rows] * problem.scales[rows][:, None] * self._columns
        short = shortening(scaled)
        self._weights: FloatArray = problem.scales[rows] * short
        self.residual: FloatArray = residual[rows] * self._weights
        self.matrix: FloatArray = scaled * short[:, None]
        self.u, self.values, self.v = np.linalg.svd(self.matrix, full_matrices=True)

    def _residual(self, q: FloatArray) -> FloatArray:
        return self._problem.residual(q)[self._rows] * self._weights

    def _jacobian(self, q: FloatArray) -> FloatArray:
        return self._problem.jacobian(q)[1][self._rows] * self._weights[:, None] * self._columns

    def _moved(self, q: FloatArray, step: FloatArray) -> FloatArray:
        return self._problem.retract(q, self._columns * step)

    def rank(self, cut: float) -> int:
        """Number of singular values above the cut, and above rounding errors."""
        return int((self.values > max(cut, RANK_RTOL * float(self.values[0]))).sum())

    def irreducible(self, rank: int, least: float) -> float:
        """Share of the residual that no small motion reduces, between 0 and 1; 1 if all residuals are below least."""
        if np.abs(self.residual).max(initial=0.0) <= least:
            return 1.0
        return float(np.linalg.norm(self.u[:, rank:].T @ self.residual) / np.linalg.norm(self.residual))

    def forms(self, rank: int) -> Forms:
        """For the bases of S and N; the unit of a motion is that of the body that moves most."""
        null, stresses = self.v[rank:] / _largest_motion(self.v[rank:], self._blocks), self.u[:, rank:]
        found, scale = np.empty((stresses.shape[1], len(null), len(null))), 0.0
        for k, n in enumerate(null):
            change = self._jacobian(self._moved(self._q, DIFFERENCE * n))
            change -= self._jacobian(self._moved(self._q, -DIFFERENCE * n))
            second = change @ null.T / (2.0 * DIFFERENCE)
            found[:, k] = stresses.T @ second
            scale = max(scale, float(np.linalg.norm(second, axis=0).max()))
        return Forms(0.5 * (found + found.transpose(0, 2, 1)), scale)

    def continues(self, rank: int) -> bool | None:
        """Whether a random freedom of first order is the beginning of a motion; None if rounding hides it."""
        null, stresses = self.v[rank:], self.u[:, rank:]
        n = np.random.default_rng(0).normal(size=len(null)) @ null
        n /= _largest_motion(n[None], self._blocks)
        h = min(STEP, CONVERGES * float(self.values[rank - 1])) if rank else STEP
        noise = 10.0 * float(np.abs(self.residual).max(initial=0.0)) + ROUNDING
        for _ in range(STEPS_TRIED):
            if CURVED * h * h <= noise:
                return None
            left = self._followed(rank, h * n)
            if left is not None:
                return bool(np.linalg.norm(stresses.T @ (left - self.residual)) <= CURVED * h * h)
            h *= SHORTER
        return None

    def _followed(self, rank: int, step: FloatArray) -> FloatArray | None:
        """Residuals after a step and the corrections that J allows; None if these do not converge."""
        q = self._moved(self._q, step)
        before = np.inf
        for _ in range(CORRECTIONS):
            residual = self._residual(q)
            part = self.u[:, :rank].T @ residual / self.values[:rank]
            size = float(np.linalg.norm(part))
            if size <= ROUNDING or (size < np.sqrt(ROUNDING) and size > 0.5 * before):
                return residual
            if not size < before:
                return None
            before = size
            q = self._moved(q, -self.v[:rank].T @ part)
        return None


def _largest_motion(motions: FloatArray, blocks: IntArray) -> float:
    """Of one body or variable in any of the motions, shape (motions, unknowns): [rad] and in L, scaled.

    blocks: the first unknown of each body and variable.
    """
    return float(np.sqrt(np.add.reduceat(motions * motions, blocks, axis=1).max()))


class Curvature(NamedTuple):
    """What second order says: freedoms that it excludes (None: it does not decide), and whether motions branch.

    ``kept``: combinations of the freedoms that it does not exclude, orthonormal columns; None: all.
    """

    infinitesimal: int | None
    branches: bool = False
    kept: FloatArray | None = None

    def motions(self, freedoms: FloatArray) -> FloatArray:
        """Of a basis of all freedoms, rows, the part that second order does not exclude."""
        return freedoms if self.kept is None else self.kept.T @ freedoms


def flat(forms: FloatArray, most: float, least: int) -> FloatArray:
    """Freedoms n with |s·H(n, ·)| at most ``most``, but at least ``least`` of them: orthonormal columns."""
    _, sizes, v = np.linalg.svd(forms.reshape(-1, forms.shape[-1]), full_matrices=True)
    curved = min(int((sizes > most).sum()), forms.shape[-1] - least)
    return v[curved:].T


def curvature(forms: Forms, is_obstructed: bool) -> Curvature:
    """Which freedoms can satisfy n·Q n = 0 for all forms Q.  is_obstructed: it is known that not all can."""
    values, scale = forms
    freedoms = values.shape[-1]
    _, sizes, axes = np.linalg.svd(values.reshape(len(values), -1), full_matrices=False)
    if not sizes[0] > FLAT * scale:
        return Curvature(None if is_obstructed else 0)
    left = (sizes[:, None] * axes)[sizes > FLAT * sizes[0]].reshape(-1, freedoms, freedoms) / sizes[0]
    kept = np.eye(freedoms)
    branches = False
    while left.shape[-1] and np.abs(left).max() > FLAT:
        kernel = _kernel(left)
        if kernel is None:
            branches = _has_zero(left)
            if not branches:
                return Curvature(None)
            break
        left, kept = kernel.T @ left @ kernel, kept @ kernel
    return Curvature(freedoms - left.shape[-1], branches, kept)


def _kernel(forms: FloatArray) -> FloatArray | None:
    """Kernel of a semidefinite combination of the forms, as columns; None if none is found."""
    size = forms.shape[-1]
    flat = forms.reshape(len(forms), -1)
    nearest = np.linalg.lstsq(flat.T, np.eye(size).ravel(), rcond=None)[0]  # the combination nearest to the identity
    for matrix in (np.tensordot(nearest, forms, 1), *(sign * form for form in forms for sign in (1.0, -1.0))):
        values, vectors = np.linalg.eigh(matrix)
        if values[-1] > FLAT and values[0] >= -FLAT * values[-1]:
            return vectors[:, values <= FLAT * values[-1]]
    return None


def _has_zero(forms: FloatArray) -> bool:
    """Whether all forms vanish along some direction, and change independently around it."""
    rng = np.random.default_rng(0)
    for _ in range(STARTS):
        n = np.asarray(rng.normal(size=forms.shape[-1]))
        for _ in range(CORRECTIONS):
            n /= float(np.linalg.norm(n))
            gradients = 2.0 * forms @ n
            values = 0.5 * gradients @ n
            if np.abs(values).max() <= ZERO:
                sizes = np.linalg.svd(gradients, compute_uv=False)
                if len(forms) < forms.shape[-1] and sizes[-1] > FLAT:
                    return True
                break
            n -= np.linalg.lstsq(gradients, values, rcond=None)[0]
    return False
