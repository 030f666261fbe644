"""A flexible body as numerics: shapes of elastic coordinates η about a body frame (floating frame of reference).

A point that is at s in the undeformed body is at

    u(s) = s + Φ(s) η + ½ ηᵀ H(s) η,

and a frame there is turned by the rotation vector Ψ(s) η, all in axes of the body.  The elastic energy is ½ ηᵀ K η, the
dissipation ½ η̇ᵀ D η̇.  The mass is that of points m_k at s_k, and of rods without extent that resist rotation about an
axis a_k with the moment of inertia j_k: sums that are integrals, where the points are nodes of a quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.system import check

FloatArray = NDArray[np.float64]

SAME_PLACE = 1e-9  # of the extent of the nodes: a frame this near to a node is at it


class Local(NamedTuple):
    """The deformation at one place: Φ [m], shape (3, n), H [m], shape (3, n, n), and Ψ [rad], shape (3, n)."""

    displacement: FloatArray
    second: FloatArray
    rotation: FloatArray


class MassPoints(NamedTuple):
    """Masses m [kg], shape (k,), at places s, shape (k, 3), with Φ, (k, 3, n), and H, (k, 3, n, n); and moments of
    inertia j [kg m²], shape (k,), about axes a, shape (k, 3), with Ψ, shape (k, 3, n)."""

    masses: FloatArray
    places: FloatArray
    displacement: FloatArray
    second: FloatArray
    moments: FloatArray
    axes: FloatArray
    rotation: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Modes:
    """The elastic coordinates of a body; made by :func:`beam` or :func:`modal_data`.

    ``names``: of the coordinates η.  ``stiffness`` K, ``damping`` D, ``mass_matrix`` M = ∫ ΦᵀΦ dm + …: shape (n, n).
    ``mass`` [kg], ``center`` [m] and ``inertia`` [kg m²] about the centre: of the undeformed body.
    ``frequencies`` [Hz]: of vibrations with the body frame held.  ``at(place)``: see :class:`Local`.
    """

    names: tuple[str, ...]
    stiffness: FloatArray
    damping: FloatArray
    points: MassPoints
    _local: Callable[[FloatArray], Local]
    _recipe: tuple[Callable[..., Modes], tuple[Any, ...]]  # from which it is rebuilt where it is unpickled

    @property
    def description(self) -> tuple[Any, ...]:
        """Everything that defines it, as values that compare."""
        return tuple([one.tobytes() if isinstance(one, np.ndarray) else one for one in self._recipe[1]])

    def __reduce__(self) -> tuple[Callable[..., Modes], tuple[Any, ...]]:
        return self._recipe

    def __deepcopy__(self, memo: Any) -> Modes:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Modes) and self.description == other.description

    def __hash__(self) -> int:
        return hash(self.description)

    def __repr__(self) -> str:
        return f"<Modes: {', '.join(self.names)}>"

    def at(self, place: Any) -> Local:
        """The deformation at a place of the undeformed body [m]; ModelError if the body has none there."""
        return self._local(np.array(check.vector(place, "a place on a flexible body")))

    @property
    def mass_matrix(self) -> FloatArray:
        """M of the elastic coordinates, with the body frame held, shape (n, n)."""
        P = self.points
        about = np.einsum("ki,kin->kn", P.axes, P.rotation)
        found = np.einsum("k,kin,kim->nm", P.masses, P.displacement, P.displacement)
        return np.asarray(found + np.einsum("k,kn,km->nm", P.moments, about, about))

    @property
    def frequencies(self) -> FloatArray:
        """Of vibrations with the body frame held [Hz], ascending."""
        from scipy.linalg import eigh  # type: ignore[import-untyped, unused-ignore]

        squares = eigh(self.stiffness, self.mass_matrix, eigvals_only=True)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi))

    @property
    def mass(self) -> float:
        """Of the body [kg]."""
        return float(self.points.masses.sum())

    @property
    def center(self) -> FloatArray:
        """Centre of mass of the undeformed body [m], shape (3,)."""
        return np.asarray(self.points.masses @ self.points.places / self.mass)

    @property
    def inertia(self) -> FloatArray:
        """Of the undeformed body about its centre of mass [kg m²], shape (3, 3)."""
        P = self.points
        d = P.places - self.center
        found = np.einsum(
            "k,kij->ij", P.masses, np.einsum("kl,kl,ij->kij", d, d, np.eye(3)) - d[:, :, None] * d[:, None]
        )
        return np.asarray(found + np.einsum("k,ki,kj->ij", P.moments, P.axes, P.axes))


def checked_damping(damping: Any, stiffness: FloatArray, mass: FloatArray) -> FloatArray:
    """D of a damping ratio of every mode, or of a matrix."""
    n = len(stiffness)
    if isinstance(damping, int | float) and not isinstance(damping, bool):
        ratio = check.number(damping, "the damping ratio of modes")
        if ratio < 0.0:
            raise ModelError(f"the damping ratio of modes is {ratio:g}; it must not be negative")
        from scipy.linalg import eigh  # type: ignore[import-untyped, unused-ignore]

        squares, shapes = eigh(stiffness, mass)
        back = mass @ shapes  # the inverse of shapesᵀ
        return np.asarray(back * (2.0 * ratio * np.sqrt(np.maximum(squares, 0.0)))) @ back.T
    return symmetric(damping, n, "the damping of modes")


def symmetric(given: Any, n: int, what: str) -> FloatArray:
    """A symmetric matrix without negative eigenvalues, shape (n, n)."""
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {given!r:.80}; it must be a matrix of numbers, shape ({n}, {n})") from None
    if found.shape != (n, n) or not np.isfinite(found).all():
        raise ModelError(f"{what} has the shape {found.shape}; it must be a finite matrix, shape ({n}, {n})")
    size = float(np.abs(found).max(initial=0.0))
    if (
        np.abs(found - found.T).max(initial=0.0) > 1e-9 * size
        or np.linalg.eigvalsh(found).min(initial=0.0) < -1e-9 * size
    ):
        raise ModelError(
            f"{what} is not symmetric, or has a negative eigenvalue; it must be symmetric and semidefinite"
        )
    return np.asarray(0.5 * (found + found.T))


def modal_data(
    places: Any,
    displacements: Any,
    stiffness: Any,
    masses: Any,
    *,
    rotations: Any = None,
    damping: Any = 0.0,
    names: Sequence[str] | None = None,
) -> Modes:
    """The modes of a finite-element model, such as Craig–Bampton modes.

    places [m], shape (k, 3): of the nodes in the undeformed body, in its axes.  displacements [m], shape (k, 3, n): Φ
    at the nodes.  rotations [rad], shape (k, 3, n): Ψ; nodes without one can carry points and no frames.  stiffness: K,
    shape (n, n).  masses [kg], shape (k,): lumped at the nodes, zero where a node has none.  damping: a ratio of every
    mode, or D, shape (n, n).  names: of the coordinates; "mode_1", … if not given.
    The body frame is fixed to the undeformed body; to its deformed shape it is as the modes have it.
    """
    s = _array(places, "places of modal data", (None, 3))
    k = len(s)
    phi = _array(displacements, "displacements of modal data", (k, 3, None))
    n = phi.shape[2]
    psi = None if rotations is None else _array(rotations, "rotations of modal data", (k, 3, n))
    m = _array(masses, "masses of modal data", (k,))
    if (m < 0.0).any() or not m.any():
        raise ModelError(f"masses of modal data are {m.tolist()}; none may be negative, and one must be positive")
    K = symmetric(stiffness, n, "the stiffness of modal data")
    words = tuple(names) if names is not None else tuple(f"mode_{i + 1}" for i in range(n))
    if len(words) != n or len(set(words)) != n or not all(isinstance(w, str) and w for w in words):
        raise ModelError(f"names of modal data are {words!r}; there must be {n} different names")
    D = checked_damping(damping, K, np.einsum("k,kin,kim->nm", m, phi, phi))
    return _of_nodes(s, phi, psi, m, K, D, words)


def _of_nodes(
    s: FloatArray,
    phi: FloatArray,
    psi: FloatArray | None,
    masses: FloatArray,
    K: FloatArray,
    D: FloatArray,
    names: tuple[str, ...],
) -> Modes:
    """The modes of checked data of nodes."""
    k, _, n = phi.shape
    none = np.zeros((k, 3, n, n))
    turning = np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3, n))
    points = MassPoints(masses, s, phi, none, *turning)
    extent = float(np.abs(s - s.mean(axis=0)).max(initial=0.0))

    def local(place: FloatArray) -> Local:
        far = np.linalg.norm(s - place, axis=1)
        node = int(far.argmin())
        if far[node] > SAME_PLACE * max(extent, 1e-300):
            raise ModelError(
                f"a place on a flexible body is {place.tolist()}, {far[node]:.3g} m from the nearest node of its modal "
                f"data, {s[node].tolist()}; give the place of a node"
            )
        return Local(phi[node], none[node], np.full((3, n), np.nan) if psi is None else psi[node])

    return Modes(names, K, D, points, local, (_of_nodes, (s, phi, psi, masses, K, D, names)))


def _array(given: Any, what: str, shape: tuple[int | None, ...]) -> FloatArray:
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} are {given!r:.80}; they must be numbers") from None
    fits = found.ndim == len(shape) and all(a in (None, b) for a, b in zip(shape, found.shape, strict=True))
    if not fits or not found.size:
        told = ", ".join("any" if one is None else str(one) for one in shape)
        raise ModelError(f"{what} have the shape {found.shape}; it must be ({told})")
    if not np.isfinite(found).all():
        raise ModelError(f"{what} contain numbers that are not finite")
    return found
