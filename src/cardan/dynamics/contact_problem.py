"""The contacts of a step of many free bodies: sweeps of Gauss–Seidel, sparse Newton steps, and a path at last.

See :mod:`cardan.math._many_cones` for the equations.  The matrix of Newton's method has 6 × 6 blocks, in the pattern of
the bodies that touch; SciPy factors it.  Its pattern is kept while the same bodies touch.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.dynamics.tables import WIDTH
from cardan.lazy import LazyModule
from cardan.math import smoothed_cones
from cardan.system.state import FloatArray

_many_cones = LazyModule("cardan.math._many_cones")

IntArray = NDArray[np.int64]

# of the inverse of a contact's mean diagonal entry of G: they make Newton's matrix regular; small ones serve long
# chains of contacts, large ones many redundant points, and rounds of Newton's method take them in turn
EPSILONS: Final = (1e-9, 1e-7, 1e-6, 1e-5)
FEW, MANY = 4, 20  # sweeps before Newton's method: at first, and after it has failed
CHUNKS: Final = 6  # of sweeps at first, at the most: of spheres they are cheaper than factors
FALLING: Final = 0.5  # of the error of the last chunk: another one is worth it
STEPS: Final = 12  # of Newton's method between sweeps
ROUNDS: Final = 8  # of sweeps and Newton's method
LOST: Final = 1e4  # times the least error: steps from there on are left
ROUNDED: Final = 1e-10  # of the velocities: for a larger error the last resort is taken
FEW_CONTACTS, ENOUGH = 100, 5e-9  # with more contacts the last resort costs much: only for an error above this
STALLED: Final = 1e-11  # of the velocities: an error below this that does not decrease is rounding


class Outcome(NamedTuple):
    """Impulses r, shape (contacts, 3), velocities v, flat, the largest error of a contact, and numbers of the work."""

    impulses: FloatArray
    velocities: FloatArray
    error: float
    factors: int
    sweeps: int


def _error(found: tuple[FloatArray, FloatArray, float]) -> float:
    return found[2]


class ContactProblem:
    """The solver of the contact problems of a run."""

    def __init__(self, roots: FloatArray) -> None:
        """roots: square roots of the masses of all unknowns, shape (bodies, 6)."""
        self._count = len(roots)
        self._roots: FloatArray = np.append(roots.ravel(), np.ones(WIDTH))
        self._bodies: IntArray | None = None  # of the pattern that is kept
        self._pattern: tuple[Any, ...] = ()

    def solve(self, bodies: IntArray, rows: FloatArray, free: FloatArray, bias: FloatArray, mu: FloatArray,
              start: FloatArray, tolerance: float) -> Outcome:  # fmt: skip
        """Impulses and velocities of a step.

        bodies, shape (contacts, 2), −1: fixed; rows J_c, shape (contacts, 2, 3, 6); free: v₀, flat; bias, shape
        (contacts, 3), is added to J_c v; start: impulses to start from; tolerance: of the error of a contact.
        """
        numbers = np.where(bodies < 0, self._count, bodies)
        own = np.where((bodies < 0)[:, :, None, None], 0.0, rows)
        scaled = own / self._roots.reshape(-1, WIDTH)[numbers][:, :, None, :]
        diagonals = self._diagonals(scaled)
        v = np.append(free, np.zeros(WIDTH)) * self._roots
        fixed, r = v.copy(), np.ascontiguousarray(start, dtype=np.float64).ravel().copy()
        flat = np.ascontiguousarray(numbers).ravel(), np.ascontiguousarray(scaled).ravel()
        b, kernels = np.ascontiguousarray(bias).ravel(), _many_cones
        error = kernels.sweep_contacts(0, *flat, fixed, b, mu, diagonals, r, v)
        size = max(
            float(np.abs(b).max(initial=0.0)),
            float(np.abs(fixed).max(initial=0.0)) * float(np.abs(scaled).max(initial=0.0)),
        )
        factors = sweeps = 0
        best = (r, v, error)
        for k in range(ROUNDS):
            if best[2] <= tolerance:
                break
            before, last = best[2], np.inf
            r, v = r.copy(), v.copy()
            for _ in range(CHUNKS if k == 0 else 1):
                error = kernels.sweep_contacts(FEW if k == 0 and last == np.inf else MANY, *flat, fixed, b, mu,
                                               diagonals, r, v)  # fmt: skip
                sweeps += FEW if k == 0 and last == np.inf else MANY
                if error <= tolerance or not error < FALLING * last:
                    break
                last = error
            best = min(best, (r, v, error), key=_error)
            r, v, error, made = self._newton(flat, fixed, b, mu, diagonals, best if k == 0 else (r, v, error),
                                             tolerance, EPSILONS[k % len(EPSILONS)])  # fmt: skip
            factors += made
            best = min(best, (r, v, error), key=_error)
            if best[2] >= 0.5 * before and best[2] <= STALLED * size:
                break
        r, v, error = best
        if not error <= max(tolerance, (ROUNDED if mu.size <= FEW_CONTACTS else ENOUGH) * size):
            tried, least = self._follow(flat, scaled, b, mu, diagonals, fixed, max(tolerance, 0.1 * ROUNDED * size))
            if least < error:
                r = tried
                error = kernels.sweep_contacts(0, *flat, fixed, b, mu, diagonals, r, v)
                for epsilon in EPSILONS:
                    r, v, error, made = self._newton(flat, fixed, b, mu, diagonals, (r, v, error), tolerance, epsilon)
                    factors += made
                    if error <= tolerance:
                        break
        impulses = r.reshape(-1, 3)
        return Outcome(impulses, (v / self._roots)[:-WIDTH], error, factors, sweeps)

    def _newton(self, flat: Any, fixed: FloatArray, b: FloatArray, mu: FloatArray, diagonals: FloatArray, start: Any,
                tolerance: float, epsilon: float) -> tuple[FloatArray, FloatArray, float, int]:  # fmt: skip
        """Newton's steps from a start (r, v, error): r, v and error where this is least, and the factors made."""
        from scipy.sparse import csc_matrix
        from scipy.sparse.linalg import splu

        best_r, best_v, best = start
        r, v = best_r.copy(), best_v.copy()
        pattern, places = self._structure(flat[0])
        indices, starts = pattern
        data, blocks = np.empty(len(indices)), np.empty(12 * mu.size + 18)
        right = np.empty(fixed.size)
        factors = 0
        for _ in range(STEPS):
            _many_cones.newton_blocks(epsilon, *flat, b, mu, diagonals, r, v, blocks, right)
            _many_cones.fill_matrix(mu.size, flat[1], blocks, places, data)
            matrix = csc_matrix((data, indices, starts), shape=(fixed.size, fixed.size))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    factor = splu(matrix, permc_spec="MMD_AT_PLUS_A",
                                  options={"SymmetricMode": True, "DiagPivotThresh": 0.0})  # fmt: skip
            except RuntimeError:  # singular
                break
            factors += 1
            change = factor.solve(right)
            if not np.isfinite(change).all():
                break
            error = _many_cones.newton_step(*flat, fixed, b, mu, diagonals, blocks, change, r, v)
            if error < best:
                best, best_r, best_v = error, r.copy(), v.copy()
            elif not error < LOST * best:
                break
            if best <= tolerance:
                break
        return best_r, best_v, best, factors

    def _follow(self, flat: Any, scaled: FloatArray, b: FloatArray, mu: FloatArray, diagonals: FloatArray,
                fixed: FloatArray, tolerance: float) -> tuple[FloatArray, float]:  # fmt: skip
        """The last resort: r, flat, and its error."""
        from scipy.sparse import bmat, bsr_matrix, csr_matrix, identity
        from scipy.sparse.linalg import splu

        m = mu.size
        columns = WIDTH * flat[0].reshape(m, 2)[:, None, :, None] + np.arange(WIDTH) + np.zeros((1, 3, 1, 1), np.int64)
        starts = 2 * WIDTH * np.arange(3 * m + 1)
        J = csr_matrix((scaled.transpose(0, 2, 1, 3).ravel(), columns.ravel(), starts), shape=(3 * m, fixed.size))
        u, g = J @ fixed + b, diagonals[: 7 * m].reshape(m, 7)[:, 6]
        one, places, ends = identity(fixed.size, format="csc"), np.arange(m), np.arange(m + 1)

        def speeds(r: FloatArray) -> FloatArray:
            return np.asarray(u + J @ (J.T @ r.ravel())).reshape(m, 3)

        def newton(A: FloatArray, B: FloatArray, phi: FloatArray) -> FloatArray | None:
            of_u = bsr_matrix((B, places, ends), shape=(3 * m, 3 * m)) @ J
            matrix = bmat([[one, -J.T], [of_u, bsr_matrix((A, places, ends), shape=(3 * m, 3 * m))]], format="csc")
            try:
                found = splu(matrix).solve(np.concatenate([np.zeros(fixed.size), -phi.ravel()]))
            except RuntimeError:  # singular
                return None
            return np.asarray(found[fixed.size :].reshape(m, 3))

        r, error = smoothed_cones.follow(speeds, newton, mu, np.maximum(g, np.finfo(float).tiny), tolerance,
                                        paths=len(smoothed_cones.SCALES) if m <= FEW_CONTACTS else 1)  # fmt: skip
        return r.ravel(), error

    def _diagonals(self, scaled: FloatArray) -> FloatArray:
        """The block of G of each contact, and its mean diagonal entry; nine more numbers are a workspace."""
        G = np.einsum("ksia,ksja->kij", scaled, scaled)
        mean = np.trace(G, axis1=1, axis2=2) / 3.0
        rows = [G[:, 0, 0], G[:, 0, 1], G[:, 0, 2], G[:, 1, 1], G[:, 1, 2], G[:, 2, 2], mean]
        return np.append(np.stack(rows, axis=1).ravel(), np.zeros(9))

    def _structure(self, bodies: IntArray) -> tuple[Any, ...]:
        """Row numbers and starts of columns of Newton's matrix, and the places of blocks in its data."""
        if self._bodies is not None and np.array_equal(bodies, self._bodies):
            return self._pattern
        n, (i, j) = self._count + 1, bodies.reshape(-1, 2).T
        is_pair = (i < self._count) & (j < self._count) & (i != j)
        own = np.arange(n) * (n + 1)  # blocks as column · n + row
        links = np.unique(np.concatenate([own, (i * n + j)[is_pair], (j * n + i)[is_pair]]))
        column, row = np.divmod(links, n)
        first = np.searchsorted(links, np.arange(n + 1) * n)
        height = WIDTH * np.diff(first)  # of a column
        begins = np.append(0, np.cumsum(WIDTH * height))
        of_block = begins[column] + WIDTH * (np.arange(len(links)) - first[column])
        sizes = np.repeat(height, WIDTH)
        starts = np.append(0, np.cumsum(sizes)).astype(np.int32)
        in_column = [(WIDTH * row[first[k] : first[k + 1], None] + np.arange(WIDTH)).ravel() for k in range(n)]
        indices = np.concatenate([np.tile(one, WIDTH) for one in in_column]).astype(np.int32)

        def place(rows: Any, columns: Any, exists: Any) -> Any:
            at = np.minimum(np.searchsorted(links, columns * n + rows), len(links) - 1)
            return np.where(exists, of_block[at], -1), height[columns]

        table = np.empty((len(i), 4, 2), dtype=np.int64)
        moves_i, moves_j = i < self._count, j < self._count
        for k, (rows, columns, exists) in enumerate(
            ((i, i, moves_i), (i, j, is_pair), (j, i, is_pair), (j, j, moves_j))
        ):
            table[:, k, 0], table[:, k, 1] = place(rows, columns, exists)
        of_bodies = np.stack(place(np.arange(n), np.arange(n), np.ones(n, dtype=bool)), axis=1)
        places = np.concatenate([table.ravel(), of_bodies.ravel()]).astype(np.int64)
        self._bodies, self._pattern = bodies.copy(), ((indices, starts), places)
        return self._pattern
