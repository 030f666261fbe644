"""Velocities of a formulation's unknowns as velocities on the manifold: ω = T(q) u, ω̇ = T u̇ + Ṫ u.

================ ==================== ================================= ==========================
formulation      u                    ω in body axes                    Ṫ u
================ ==================== ================================= ==========================
virtual_rotation ṗ                    2G(p) ṗ                           2G(ṗ) ṗ = 0
euler_angles     (ψ̇, θ̇, φ̇)            B(ψ, θ, φ) u                      Ḃ u
================ ==================== ================================= ==========================

J v̇ = γ in the new unknowns follows from that of the manifold:  γ = γ_manifold(ω) − ∂f/∂δθ · Ṫ u.
"""

from __future__ import annotations

import numpy as np

from cardan.math import euler
from cardan.system import layout
from cardan.system.state import FloatArray


def as_manifold(formulation: str, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(ṙ, ω) and (0, Ṫu) of every body, each flat, of ``virtual_rotation`` or ``euler_angles``."""
    given = v.reshape(-1, 7 if formulation == "virtual_rotation" else 6)
    poses = q[: layout.POSE * len(given)].reshape(-1, layout.POSE)  # the angles of turns come behind
    rates: FloatArray = np.zeros((len(poses), 6))
    bias: FloatArray = np.zeros((len(poses), 6))
    rates[:, :3] = given[:, :3]
    if formulation == "virtual_rotation":
        rates[:, 3:] = 2.0 * np.einsum("bij,bj->bi", euler.G(poses[:, 3:]), given[:, 3:])
    else:
        rates[:, 3:], bias[:, 3:] = _from_angles(poses[:, 3:], given[:, 3:])
    return rates.ravel(), bias.ravel()


def _from_angles(p: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ω = B u and Ḃ u, with u = (ψ̇, θ̇, φ̇), shape (bodies, 3).

    B = [Aᵀe₃, n, e₃] with the line of nodes n = (cos φ, −sin φ, 0):  d(Aᵀe₃)/dt = Aᵀe₃ × ω,  ṅ = φ̇ (n × e₃).
    """
    third = euler.matrix(p)[:, 2, :]
    sine = np.hypot(third[:, 0], third[:, 1])
    nodes = np.zeros_like(third)
    regular = sine > 0.0
    nodes[:, 0] = np.divide(third[:, 1], sine, out=np.ones_like(sine), where=regular)
    nodes[:, 1] = np.divide(-third[:, 0], sine, out=np.zeros_like(sine), where=regular)
    last = np.array([0.0, 0.0, 1.0])
    omega = u[:, :1] * third + u[:, 1:2] * nodes + u[:, 2:] * last
    bias = u[:, :1] * np.cross(third, omega) + u[:, 1:2] * u[:, 2:] * np.cross(nodes, last)
    return omega, bias
