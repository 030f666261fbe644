"""Euler parameters p = (e0, e) and rotations, in plain NumPy, batched over leading dimensions.

Quaternions are scalar-first (w, x, y, z), shape (..., 4); vectors have shape (..., 3); angles are radians. A body at
orientation p maps body vectors to world by v = A(p) v'. A rotation vector in body axes is multiplied on the right.

A(p) = E Gᵀ, E = [−e, ẽ + e0 I], G = [−e, −ẽ + e0 I] [Liu2013] sec. 2.1 are polynomials, defined here for *every* p:
off the unit sphere A(p) = |p|² A(p/|p|). Newton on (r, p) leaves the sphere between iterations, so `matrix`, `E`, `G`,
`K`, `multiply`, `rotate` and the rates never normalise. These functions use p/|p|: `log`, `difference`, `canonical` and
the converters `as_matrix`, `as_zxz`, `as_scipy`; they raise ValueError for a zero or non-finite
p. The algebraic functions propagate NaN; the `from_*` converters reject it (except the reordering `from_xyzw`).

The update p ← p ⊗ exp(δθ/2) of the conventions is `retract(p, δθ)`: `exp` here takes the full rotation vector δθ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "E", "G", "K", "as_matrix", "as_scipy", "as_xyzw", "as_zxz", "canonical", "conjugate",
    "difference", "exp", "from_axis_angle", "from_matrix", "from_rotation_vector", "from_scipy", "from_xyzw",
    "from_zxz", "log", "matrix", "multiply", "normalize", "random", "rate_from_body",
    "retract", "rotate", "tilde",
]  # fmt: skip

Array = NDArray[np.float64]

# Each series is used below the argument at which its first omitted term, relative to the sum, is half an ulp: 1.1e-16.
EXP_SERIES_BELOW = 2.0**-7  # |φ| [rad]: omitted |φ|⁶/322560 = 7e-19; the quotient itself fails only at 0/0
LOG_SERIES_BELOW = 2.0**-9  # |e|/e0 = tan(|φ|/2): omitted x⁶/7 = 8e-18; the quotient itself fails only at 0/0
MATRIX_TOLERANCE = 1e-6  # max|AᵀA − I|: accepts a rotation printed with seven digits, rejects a scaled or sheared one
ZXZ_SINGULAR_BELOW = 2.0**-51  # of sin(θ/2), cos(θ/2): rounding of a unit quaternion; ψ and φ are not unique there


def _rows(value: ArrayLike, size: int, name: str) -> Array:
    """`value` as float64 with last dimension `size`."""
    rows = np.asarray(value, dtype=np.float64)
    if rows.ndim == 0 or rows.shape[-1] != size:
        raise ValueError(f"{name} must have shape (..., {size}), got {rows.shape}")
    return rows


def _finite(rows: Array, name: str) -> Array:
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must be finite, got {rows}")
    return rows


def _direction(value: ArrayLike, size: int, name: str) -> Array:
    """`value` divided by a power of two (exact), largest component in [½, 1): squares neither over- nor underflow."""
    rows = _rows(value, size, name)
    largest = np.abs(rows).max(axis=-1)
    bad = ~(np.isfinite(rows).all(axis=-1) & (largest > 0))
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at index {first}" if first else ""
        raise ValueError(f"{name} must be finite and non-zero, got {rows[first]}{where}")
    return np.asarray(np.ldexp(rows, -np.frexp(largest)[1][..., None]))


def _length(v: Array) -> Array:
    """|v| of shape (..., 3) without over- or underflow."""
    return np.asarray(np.hypot(np.hypot(v[..., 0], v[..., 1]), v[..., 2]))


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.sqrt((rows * rows).sum(axis=-1, keepdims=True)))


def _leading_positive(rows: Array) -> Array:
    """±rows, the first non-zero component positive, without negative zeros."""
    lead = np.take_along_axis(rows, np.argmax(rows != 0, axis=-1)[..., None], axis=-1)
    return np.where(lead < 0, -rows, rows) + 0.0


def _apply(m: Array, v: Array) -> Array:
    return np.asarray(np.einsum("...ij,...j->...i", m, v))


def _matrix_of(rows: list[list[Array]]) -> Array:
    """Stack scalar fields of one shape (...) into (..., rows, columns)."""
    first = rows[0][0]
    found: Array = np.empty((*first.shape, len(rows), len(rows[0])), dtype=first.dtype)  # np.stack is slow for one pose
    for i, row in enumerate(rows):
        for j, field in enumerate(row):
            found[..., i, j] = field
    return found


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    total = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


# --- Euler parameters: polynomial in p, defined for every p -------------------------------------------------------


def tilde(v: ArrayLike) -> Array:
    """ṽ with ṽ w = v × w; shape (..., 3) → (..., 3, 3). [Liu2013] sec. 2."""
    v = _rows(v, 3, "v")
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    o = np.zeros_like(x)
    return _matrix_of([[o, -z, y], [z, o, -x], [-y, x, o]])


def E(p: ArrayLike) -> Array:
    """E = [−e, ẽ + e0 I], shape (..., 4) → (..., 3, 4): E p = 0, E Eᵀ = |p|² I, ω = 2 E ṗ. [Liu2013] sec. 2.1."""
    p = _rows(p, 4, "p")
    w, x, y, z = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    return _matrix_of([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])


def G(p: ArrayLike) -> Array:
    """G = [−e, −ẽ + e0 I], shape (..., 4) → (..., 3, 4): G p = 0, G Gᵀ = |p|² I, ω' = 2 G ṗ. [Liu2013] sec. 2.1."""
    p = _rows(p, 4, "p")
    w, x, y, z = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    return _matrix_of([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])


def matrix(p: ArrayLike) -> Array:
    """A = E Gᵀ = (e0² − e·e) I + 2 e eᵀ + 2 e0 ẽ, shape (..., 4) → (..., 3, 3), body to world. [Liu2013] sec. 2.1.

    For every p: A Aᵀ = |p|⁴ I and det A = |p|⁶. The rotation of an unnormalised p is `as_matrix`.
    """
    p = _rows(p, 4, "p")
    w, x, y, z = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    return _matrix_of([
        [ww + xx - yy - zz, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), ww - xx + yy - zz, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), ww - xx - yy + zz],
    ])  # fmt: skip


def K(u: ArrayLike, p: ArrayLike) -> Array:
    """K = ∂(A(p) u)/∂p, the true derivative for every p; u (..., 3), p (..., 4) → (..., 3, 4), in the unit of u.

    K = [2(ẽ + e0 I)u, (e·u) I + e uᵀ − ẽũ − tilde(ẽu) − 2 e0 ũ] [Liu2013] eq. 7
      = 2 [e × u + e0 u, (e·u) I + e uᵀ − u eᵀ − e0 ũ].
    For every p, with A = A(p) from `matrix` (which contains the factor |p|²):
    K p = 2 A u, K ½Gᵀ = −A ũ, K ½Eᵀ = −tilde(A u), |p|² K = −2 A ũ G + 2 A u pᵀ.
    The first term of the last identity is the virtual-rotation formula [Liu2013] eq. 6b: valid only along the sphere.
    """
    u, p = _rows(u, 3, "u"), _rows(p, 4, "p")
    w, e = p[..., :1], p[..., 1:]
    w, e, u = w[..., None], e[..., None], u[..., None]
    e_t, u_t = np.swapaxes(e, -1, -2), np.swapaxes(u, -1, -2)
    by_scalar = tilde(e[..., 0]) @ u + w * u
    by_vector = (e_t @ u) * np.eye(3) + e @ u_t - u @ e_t - w * tilde(u[..., 0])
    return np.concatenate([2 * by_scalar, 2 * by_vector], axis=-1)


def multiply(p: ArrayLike, q: ArrayLike) -> Array:
    """p ⊗ q, shape (..., 4): A(p ⊗ q) = A(p) A(q) and |p ⊗ q| = |p| |q|. [Sola2017] quaternion product.

    The order of the terms makes the vector part of p* ⊗ p exactly zero.
    """
    p, q = _rows(p, 4, "p"), _rows(q, 4, "q")
    a, b, c, d = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    return np.stack([
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y + c * w + d * x - b * z,
        a * z + d * w + b * y - c * x,
    ], axis=-1)  # fmt: skip


def conjugate(p: ArrayLike) -> Array:
    """p* = (e0, −e), shape (..., 4): p* ⊗ p = (|p|², 0), A(p*) = A(p)ᵀ."""
    p = _rows(p, 4, "p")
    return np.concatenate([p[..., :1], -p[..., 1:]], axis=-1)


def normalize(p: ArrayLike) -> Array:
    """p/|p|, shape (..., 4), at any magnitude; ValueError naming the value if p is zero or not finite."""
    return _unit(_direction(p, 4, "p"))


def canonical(p: ArrayLike) -> Array:
    """±p/|p| with the first non-zero component positive, shape (..., 4): one quaternion per rotation.

    It is discontinuous at rotations by π (e0 = 0), as any such choice is. To compare rotations, use `difference`.
    """
    return _leading_positive(normalize(p))


def rotate(p: ArrayLike, v: ArrayLike) -> Array:
    """A(p) v, the vector part of p ⊗ (0, v) ⊗ p*, shape (..., 3), in the unit of v; off the sphere scaled by |p|²."""
    return _apply(matrix(p), _rows(v, 3, "v"))


# --- Rates --------------------------------------------------------------------------------------------------------


def rate_from_body(p: ArrayLike, omega: ArrayLike) -> Array:
    """ṗ = ½ Gᵀ ω' = ½ p ⊗ (0, ω') [1/s], shape (..., 4), ω' [rad/s] in body axes; p·ṗ = 0. [Haug1989].

    For every p, 2 G ṗ = |p|² ω'.
    """
    return 0.5 * _apply(np.swapaxes(G(p), -1, -2), _rows(omega, 3, "omega"))


# --- The group ----------------------------------------------------------------------------------------------------


def _half_sine_quotient(theta: Array) -> Array:
    """sin(θ/2)/θ, shape (...)."""
    series = theta < EXP_SERIES_BELOW
    near_zero = _horner((1 / 2, -1 / 48, 1 / 3840), np.where(series, theta, 0.0) ** 2)
    return np.where(series, near_zero, np.sin(theta / 2) / np.where(series, 1.0, theta))


def exp(rotation_vector: ArrayLike) -> Array:
    """exp(φ) = (cos ½|φ|, sin(½|φ|) φ/|φ|), φ [rad] shape (..., 3) → (..., 4); smooth, so e0 < 0 for π < |φ| < 3π.

    A(exp(φ)) is the matrix exponential of φ̃. [Sola2017].
    """
    phi = _rows(rotation_vector, 3, "rotation_vector")
    theta = _length(phi)
    return np.concatenate([np.cos(theta / 2)[..., None], _half_sine_quotient(theta)[..., None] * phi], axis=-1)


def log(p: ArrayLike) -> Array:
    """φ with A(exp(φ)) = A(p)/|p|² and |φ| ≤ π (to rounding) [rad], shape (..., 4) → (..., 3). [Sola2017].

    φ = 2 atan2(|e|, e0) e/|e|, where ±p is chosen so that the first non-zero component is positive. So log(−p) = log(p)
    bit for bit, |φ| is the smaller angle (e0 ≥ 0), and at exactly π (e0 = 0) the first non-zero component of φ is
    positive.
    """
    p = _leading_positive(_direction(p, 4, "p"))
    w, e = p[..., 0], p[..., 1:]
    sine = _length(e)
    series = sine < LOG_SERIES_BELOW * w
    tangent = np.where(series, sine, 0.0) / np.where(series, w, 1.0)
    quotient = 2 * np.arctan2(sine, w) / np.where(series, 1.0, sine)
    near_identity = _horner((1.0, -1 / 3, 1 / 5), tangent**2) * 2 / np.where(series, w, 1.0)
    return np.where(series, near_identity, quotient)[..., None] * e


def difference(p: ArrayLike, q: ArrayLike) -> Array:
    """log(p* ⊗ q) [rad], body axes of p, shape (..., 3).

    retract(p, difference(p, q)) = ±q for unit p and q; exactly 0 if q = ±p.
    """
    return log(multiply(conjugate(p), q))


def retract(p: ArrayLike, dtheta: ArrayLike) -> Array:
    """p ⊗ exp(δθ), δθ [rad] in body axes, shape (..., 3) → (..., 4); keeps |p|. ∂(A u)/∂δθ at 0 is −A ũ."""
    return multiply(p, exp(dtheta))


# --- Conversions --------------------------------------------------------------------------------------------------


def from_matrix(a: ArrayLike, *, tolerance: float = MATRIX_TOLERANCE) -> Array:
    """`canonical` p with A(p) = a, shape (..., 3, 3) → (..., 4), at every angle.

    Shepperd's method: 4 p pᵀ is linear in a, and its row with the largest diagonal entry (≥ 1) is normalised.
    ValueError if the defect max|aᵀa − I| exceeds `tolerance` or if a is a reflection.
    """
    a = np.asarray(a, dtype=np.float64)
    if a.ndim < 2 or a.shape[-2:] != (3, 3):
        raise ValueError(f"a must have shape (..., 3, 3), got {a.shape}")
    _finite(a, "a")
    defect = np.abs(np.swapaxes(a, -1, -2) @ a - np.eye(3)).max(axis=(-2, -1))
    determinant = np.asarray(np.linalg.det(a))
    bad = (defect > tolerance) | (determinant < 0)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at index {first}" if first else ""
        raise ValueError(
            f"a is not a rotation{where}: determinant {determinant[first]:.9g} (must be 1), "
            f"orthogonality defect max|aᵀa − I| = {defect[first]:.3g} (at most {tolerance:g})"
        )
    xx, yy, zz = a[..., 0, 0], a[..., 1, 1], a[..., 2, 2]
    wx, wy, wz = a[..., 2, 1] - a[..., 1, 2], a[..., 0, 2] - a[..., 2, 0], a[..., 1, 0] - a[..., 0, 1]
    xy, xz, yz = a[..., 0, 1] + a[..., 1, 0], a[..., 0, 2] + a[..., 2, 0], a[..., 1, 2] + a[..., 2, 1]
    outer = _matrix_of([
        [1 + xx + yy + zz, wx, wy, wz],
        [wx, 1 + xx - yy - zz, xy, xz],
        [wy, xy, 1 - xx + yy - zz, yz],
        [wz, xz, yz, 1 - xx - yy + zz],
    ])  # fmt: skip
    largest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    return canonical(np.take_along_axis(outer, largest[..., None, None], axis=-2)[..., 0, :])


def as_matrix(p: ArrayLike) -> Array:
    """A(p/|p|), a rotation for every p ≠ 0, shape (..., 4) → (..., 3, 3)."""
    return matrix(normalize(p))


def from_rotation_vector(rotation_vector: ArrayLike) -> Array:
    """`exp` of a finite rotation vector [rad], shape (..., 3) → (..., 4)."""
    return exp(_finite(_rows(rotation_vector, 3, "rotation_vector"), "rotation_vector"))


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """(cos ½α, sin(½α) n/|n|), axis n (..., 3) of any length ≠ 0, angle α [rad] (...) → (..., 4)."""
    n = _unit(_direction(axis, 3, "axis"))
    half = _finite(np.asarray(angle, dtype=np.float64), "angle")[..., None] / 2
    scalar, vector = np.cos(half), np.sin(half) * n
    return np.concatenate([np.broadcast_to(scalar, (*vector.shape[:-1], 1)), vector], axis=-1)


def from_zxz(angles: ArrayLike) -> Array:
    """p with A(p) = Rz(ψ) Rx(θ) Rz(φ), angles (ψ, θ, φ) [rad] shape (..., 3) → (..., 4); smooth in the angles.

    p = (cos ½θ cos ½(ψ+φ), sin ½θ cos ½(ψ−φ), sin ½θ sin ½(ψ−φ), cos ½θ sin ½(ψ+φ)). [Haug1989].
    """
    angles = _finite(_rows(angles, 3, "angles"), "angles") / 2
    psi, theta, phi = angles[..., 0], angles[..., 1], angles[..., 2]
    c, s = np.cos(theta), np.sin(theta)
    plus, minus = psi + phi, psi - phi
    return np.stack([c * np.cos(plus), s * np.cos(minus), s * np.sin(minus), c * np.sin(plus)], axis=-1)


def as_zxz(p: ArrayLike) -> Array:
    """(ψ, θ, φ) [rad], shape (..., 4) → (..., 3): A = Rz(ψ) Rx(θ) Rz(φ), θ in [0, π], ψ and φ in (−π, π].

    At θ = 0 and θ = π (to rounding, `ZXZ_SINGULAR_BELOW`) only ψ + φ or ψ − φ is determined: φ = 0 there.
    """
    p = canonical(p)
    w, x, y, z = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    cosine, sine = np.hypot(w, z), np.hypot(x, y)
    at_zero, at_pi = sine < ZXZ_SINGULAR_BELOW, cosine < ZXZ_SINGULAR_BELOW
    theta = np.where(at_zero, 0.0, np.where(at_pi, np.pi, 2 * np.arctan2(sine, cosine)))
    half_sum, half_difference = np.arctan2(z, w), np.arctan2(y, x)
    half_sum = np.where(at_pi, half_difference, half_sum)
    half_difference = np.where(at_zero, half_sum, half_difference)
    angles = np.stack([half_sum + half_difference, theta, half_sum - half_difference], axis=-1)
    angles = np.where(angles > np.pi, angles - 2 * np.pi, angles)
    return np.where(angles <= -np.pi, angles + 2 * np.pi, angles) + 0.0


def from_xyzw(q: ArrayLike) -> Array:
    """(x, y, z, w) → (w, x, y, z), shape (..., 4); order only, no normalisation."""
    return np.roll(_rows(q, 4, "q"), 1, axis=-1)


def as_xyzw(p: ArrayLike) -> Array:
    """(w, x, y, z) → (x, y, z, w), shape (..., 4); order only, no normalisation."""
    return np.roll(_rows(p, 4, "p"), -1, axis=-1)


def from_scipy(rotation: Any) -> Array:
    """p of a `scipy.spatial.transform.Rotation` (single or stack), shape (..., 4), with SciPy's sign."""
    return from_xyzw(rotation.as_quat())


def as_scipy(p: ArrayLike) -> Any:
    """The `scipy.spatial.transform.Rotation` of p, with the matrix `as_matrix(p)`; shape (4,), (n, 4)."""
    # SciPy is imported here so that `import cardan` stays fast
    from scipy.spatial.transform import Rotation  # type: ignore[import-untyped, unused-ignore]

    return Rotation.from_quat(as_xyzw(normalize(p)))


def random(rng: np.random.Generator, shape: int | tuple[int, ...] = ()) -> Array:
    """Unit quaternions uniform on S³, so rotations uniform on SO(3), shape (*shape, 4)."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return normalize(rng.standard_normal((*shape, 4)))
