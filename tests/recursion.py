"""The recursion of joint coordinates as the paper writes it, in NumPy: ∂A_i u/∂q and ∂r_i/∂q from the root outwards.

    J_i(u) = J_{i−1}(C A″ C_iᵀ u) + [0, A_{i−1} C J″(C_iᵀ u), 0]                                    [Liu2013] eq. 13
    Jʳ_i   = Jʳ_{i−1} + J_{i−1}(s) + J_{i−1}(C d″) + [0, A_{i−1} C D, 0] − J_i(s_i)                 [Liu2013] eq. 16

with C, s the joint's frame and place on body i−1, C_i, s_i those on body i, J″(u) = ∂A″u/∂c and D = ∂d″/∂c for the
joint's own coordinates c.  The second term of (16) is printed as J_i(s), but s is fixed on body i−1.  For Euler
parameters J″(u) = K(u, c), the derivative for c of any length.  A function of points and vectors has the derivative

    f_q = Σ ∂f/∂r_i Jʳ_i + Σ ∂f/∂v_j J_j(v_j′)                                                      [Liu2013] eq. 17

where J is that of the body v_j is fixed on (printed with another index).  Solvers do not use this module: its cost is
that of a dense matrix per body.  They run the same recursion the other way (:mod:`cardan.coordinates._relative`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.coordinates import tree
from cardan.coordinates.tree import Limb
from cardan.math import euler
from cardan.system.state import FloatArray
from cardan.system.system import System
from cardan.system.tables import ABOUT_Z, ANYHOW, CROSSED

_SWAP = np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])  # z to x and x to z
_TILDE_Z = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


def _about_z(angle: float) -> FloatArray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


class JointMotion:
    """A″ and d″ of a joint at its coordinates c (translations [m], then angles [rad] or Euler parameters)."""

    def __init__(self, limb: Limb, c: FloatArray) -> None:
        count, rotation = limb.motion
        first = 2 if count == 1 else 0
        self.D: FloatArray = np.zeros((3, c.size))
        self.D[range(first, first + count), range(count)] = 1.0
        self._c = c
        self._rotation = rotation
        self._count = count
        self.A: FloatArray = np.eye(3)
        if rotation == ABOUT_Z:
            self.A = _about_z(c[count])
            self.D[2, count] = limb.pitch
        elif rotation == CROSSED:
            self.A = _about_z(c[count]) @ _SWAP @ _about_z(-c[count + 1])
        elif rotation == ANYHOW:
            self.A = euler.E(c[count:]) @ euler.G(c[count:]).T
        self.d: FloatArray = self.D @ c

    def J(self, u: FloatArray) -> FloatArray:
        """∂(A″u)/∂c, shape (3, coordinates)."""
        out: FloatArray = np.zeros((3, self._c.size))
        k = self._count
        if self._rotation == ABOUT_Z:
            out[:, k] = _TILDE_Z @ self.A @ u
        elif self._rotation == CROSSED:
            out[:, k] = _TILDE_Z @ self.A @ u
            out[:, k + 1] = -self.A @ _TILDE_Z @ u
        elif self._rotation == ANYHOW:
            out[:, k:] = euler.K(u, self._c[k:])
        return out


class Recursion:
    """Poses and their derivatives at joint coordinates q, of the bodies' reference points in solver coordinates."""

    def __init__(self, system: System, q: FloatArray) -> None:
        limbs = tree.spanning_tree(system).limbs
        self._limbs = {limb.body: limb for limb in limbs}
        self._slices: dict[int, slice] = {}
        at = 0
        for limb in limbs:
            self._slices[limb.body] = slice(at, at + limb.motion.coordinates())
            at += limb.motion.coordinates()
        self.size = at
        self.motions = {limb.body: JointMotion(limb, q[self._slices[limb.body]]) for limb in limbs}
        self.A: dict[int, FloatArray] = {tree.GROUND: np.eye(3)}
        self.r: dict[int, FloatArray] = {tree.GROUND: np.zeros(3)}
        for limb in limbs:  # eqs. 9 and 10
            C, s, C_i, s_i = self.frames(limb.body)
            motion = self.motions[limb.body]
            A = self.A[limb.parent]
            self.A[limb.body] = A @ C @ motion.A @ C_i.T
            self.r[limb.body] = self.r[limb.parent] + A @ (s + C @ motion.d) - self.A[limb.body] @ s_i

    def parent(self, body: int) -> int:
        """The parent of a body in the tree, −1 for the ground."""
        return self._limbs[body].parent

    def frames(self, body: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """C and s of the body's joint on its parent, and on the body."""
        c, s, c_i, s_i = np.split(self._limbs[body].frames, [4, 7, 11])
        return euler.matrix(c), s, euler.matrix(c_i), s_i

    def J(self, body: int, u: Any) -> FloatArray:
        """∂(A_i u)/∂q for u fixed on the body, shape (3, coordinates): eq. 13."""
        if body == tree.GROUND:
            return np.zeros((3, self.size))
        C, _, C_i, _ = self.frames(body)
        motion, parent = self.motions[body], self.parent(body)
        out = self.J(parent, C @ motion.A @ C_i.T @ u)
        out[:, self._slices[body]] += self.A[parent] @ C @ motion.J(C_i.T @ u)
        return out

    def Jr(self, body: int) -> FloatArray:
        """∂r_i/∂q, shape (3, coordinates): eq. 16, its second term for body i−1."""
        if body == tree.GROUND:
            return np.zeros((3, self.size))
        C, s, _, s_i = self.frames(body)
        motion, parent = self.motions[body], self.parent(body)
        out = self.Jr(parent) + self.J(parent, s) + self.J(parent, C @ motion.d) - self.J(body, s_i)
        out[:, self._slices[body]] += self.A[parent] @ C @ motion.D
        return out
