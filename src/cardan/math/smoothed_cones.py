"""The contact problem of :mod:`._cone` along a path: the last resort, where sweeps and Newton's method fail.

With ũ = u + μ|u_t| n, the pair x = (μ r_n, r_t), y = (ũ_n, μ u_t)/g is complementary on Lorentz's cone L of R³, and

    φ_ν(x, y) = x + y − ((x − y)² + 4 ν² e)^½ = 0   ⇔   x, y ∈ int L, x ∘ y = ν² e

in its Jordan algebra [Fukushima2002].  φ_ν is smooth for ν > 0, with |u_t| smoothed by ν too: damped Newton steps for r
follow the path to ν = 0.  ν decreases where φ_ν is small against it; where steps become short, it returns to the last
such point and decreases less.  Contacts without friction have r_t = 0 and the same for the numbers r_n, u_n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

STEPS: Final = 300  # of Newton's method, at the most
NEAR: Final = 0.3  # of ν: φ is small
FIRST, FASTEST, SLOWEST = 0.1, 0.05, 0.97  # factors of ν
FASTER, SLOWER = 1.3, 0.5  # their powers after a good and after a bad step
SHORT: Final = 0.1  # of a step of Newton's method
SHORTEST: Final = 1e-3
SHORT_STEPS: Final = 2  # until it returns
DECREASE: Final = 1e-2  # of |φ|, times the length of a step, at least
END: Final = 1e-16  # of the first ν
SCALES: Final = (1.0, 10.0, 0.1, 100.0, 0.01)  # of y against x: each has a path of its own


def follow(
    speeds: Callable[[FloatArray], FloatArray],
    newton: Callable[[FloatArray, FloatArray, FloatArray], FloatArray | None],
    mu: FloatArray,
    g: FloatArray,
    tolerance: float,
    paths: int = len(SCALES),
) -> tuple[FloatArray, float]:
    """Forces r, shape (contacts, 3), and the largest error of a contact.

    speeds: u = G r + b of r, both of shape (contacts, 3).  newton: δ with (A + B G) δ = −φ for blocks A, B, shape
    (contacts, 3, 3), and φ; None if there is none.  g: mean diagonal entry of each contact.
    """
    best, least = np.zeros((len(mu), 3)), np.inf
    for scale in SCALES[:paths]:
        with np.errstate(all="ignore"):  # a path that leads to infinity
            r, error = _path(speeds, newton, mu, g, scale, tolerance)
        if error < least:
            best, least = r, error
        if least <= tolerance:
            break
    return best, least


def follow_dense(G: FloatArray, b: FloatArray, mu: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
    """:func:`follow` for a matrix G and b, flat."""
    m = len(mu)

    def speeds(r: FloatArray) -> FloatArray:
        return np.asarray(G @ r.ravel() + b).reshape(m, 3)

    def newton(A: FloatArray, B: FloatArray, phi: FloatArray) -> FloatArray | None:
        matrix = (B @ G.reshape(m, 3, -1)).reshape(3 * m, 3 * m)
        for k in range(m):
            matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] += A[k]
        try:
            return -np.asarray(np.linalg.solve(matrix, phi.ravel())).reshape(m, 3)
        except np.linalg.LinAlgError:
            return None

    g = np.maximum(G.diagonal().reshape(m, 3).mean(axis=1), np.finfo(float).tiny)
    return follow(speeds, newton, mu, g, tolerance)


def _path(
    speeds: Callable[[FloatArray], FloatArray],
    newton: Callable[[FloatArray, FloatArray, FloatArray], FloatArray | None],
    mu: FloatArray,
    g: FloatArray,
    scale: float,
    tolerance: float,
) -> tuple[FloatArray, float]:
    """The best forces on one path, and their error."""
    own = scale * g
    r = np.zeros((len(mu), 3))
    first = nu = float(np.abs(speeds(r)).max() / own.mean())
    r[:, 0] += nu
    best, least, factor, short = r.copy(), np.inf, FIRST, 0
    kept: tuple[FloatArray, float] | None = None
    for _ in range(STEPS):
        phi, A, B = _equations(r, speeds(r), mu, own, nu)
        step = newton(A, B, phi)
        if step is None or not np.isfinite(step).all():
            break
        before, part = float(np.linalg.norm(phi)), 1.0
        while True:
            trial = r + part * step
            u = speeds(trial)
            after = float(np.linalg.norm(_equations(trial, u, mu, own, nu)[0]))
            if after <= (1.0 - DECREASE * part) * before or part < SHORTEST:
                break
            part *= 0.5
        r = trial
        of_cones = _projected(r, mu)
        error = _error(of_cones, speeds(of_cones), mu, g)
        if error < least:
            best, least = of_cones, error
        if least <= tolerance or not nu > END * first:
            break
        if after <= NEAR * nu:
            kept, short = (r.copy(), nu), 0
            nu *= factor
            factor = max(FASTEST, factor**FASTER) if part == 1.0 else factor
        elif part < SHORT and kept is not None:
            short += 1
            if short == SHORT_STEPS:
                factor, short = factor**SLOWER, 0
                r, nu = kept[0].copy(), kept[1] * factor
                if factor > SLOWEST:
                    break
    return best, least


def _equations(r: FloatArray, u: FloatArray, mu: FloatArray, g: FloatArray, nu: float) -> Any:
    """φ, ∂φ/∂r and ∂φ/∂u of each contact."""
    rubs = mu > 0.0
    scale = np.where(rubs, mu, 1.0)
    slip = np.sqrt((u[:, 1:] ** 2).sum(axis=1) + (nu * g) ** 2)
    x = np.column_stack([scale * r[:, 0], np.where(rubs[:, None], r[:, 1:], 0.0)])
    y = np.column_stack([u[:, 0] + mu * slip, mu[:, None] * u[:, 1:]]) / g[:, None]
    of_x, of_y = np.zeros((len(mu), 3, 3)), np.zeros((len(mu), 3, 3))
    of_x[:, 0, 0], of_x[:, 1, 1], of_x[:, 2, 2] = scale, rubs, rubs
    of_y[:, 0, 0], of_y[:, 1, 1], of_y[:, 2, 2] = 1.0, mu, mu
    of_y[:, 0, 1:] = (mu / slip)[:, None] * u[:, 1:]
    of_y /= g[:, None, None]
    z = x - y
    square, across = (z**2).sum(axis=1) + 4.0 * nu * nu, 2.0 * z[:, :1] * z[:, 1:]
    length = np.linalg.norm(across, axis=1)
    low, high = np.sqrt(np.maximum(square - length, 4.0 * nu * nu)), np.sqrt(square + length)  # roots of eigenvalues
    root = np.column_stack([0.5 * (low + high), across / (low + high)[:, None]])
    ratio = np.linalg.solve(_arrow(root), _arrow(z))
    phi = x + y - root
    A, B = (np.eye(3) - ratio) @ of_x, (np.eye(3) + ratio) @ of_y
    phi[~rubs, 1:], A[~rubs, 1:], B[~rubs, 1:] = r[~rubs, 1:], np.eye(3)[1:], 0.0
    return phi, A, B


def _arrow(z: FloatArray) -> FloatArray:
    """The matrix of the product with z in the Jordan algebra."""
    found = np.zeros((len(z), 3, 3))
    for k in range(3):
        found[:, k, k] = z[:, 0]
    found[:, 0, 1:] = found[:, 1:, 0] = z[:, 1:]
    return found


def _error(r: FloatArray, u: FloatArray, mu: FloatArray, g: FloatArray) -> float:
    """The largest error of a contact, as :func:`cardan.math._cone.contact_error`."""
    back = r - u / g[:, None]
    back[:, 0] -= mu * np.hypot(u[:, 1], u[:, 2]) / g
    return float((g * np.linalg.norm(r - _projected(back, mu), axis=1)).max())


def _projected(r: FloatArray, mu: FloatArray) -> FloatArray:
    """The nearest points of the cones."""
    x, t = r[:, 0], np.hypot(r[:, 1], r[:, 2])
    n = (x + mu * t) / (1.0 + mu * mu)
    on_cone = np.column_stack([n, (mu * n / np.maximum(t, 1e-300))[:, None] * r[:, 1:]])
    found = np.where((t <= mu * x)[:, None], r, on_cone)
    found[mu * t <= -x] = 0.0
    return found
