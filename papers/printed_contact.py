"""Tangency and rolling of two surfaces as [NelsonCohen1998] print them: (4), (9) to (13), next to the library's rows.

With the tangents a = S²_u, d = S²_v of one surface and b = S¹_u, c = S¹_v of the other at the closest points, in world,

    (10)  C^tan = (a · b × c,  d · b × c)                              by the determinant (9)
    (11)  ∂C^tan/∂q: the product rule, with the derivatives of a, b, c, d by differences
    (13)  F = (S¹_u · w, S¹_v · w),   w = ∂S¹ q̇ − (velocity of the material point) − the same of S²
    (12)  F_q G, which is a vector of two numbers, the part of Ḟ without q̈, and not a Jacobian.  The rows that
          multiply λ are ∂F/∂q̇.

C^tan vanishes by itself at closest points inside both surfaces, so (10) and (11) remove no freedom there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardan.errors import ModelError
from cardan.geometry import Distance
from cardan.joints.contacts import face_geometry
from papers.contact import Papers

FloatArray = NDArray[np.float64]


class Printed:
    """The printed equations of two surfaces of a mechanism; see :class:`papers.contact.Papers`."""

    def __init__(self, papers: Papers) -> None:
        shapes = [face_geometry("the papers' contact", face) for face in papers.faces]
        if not isinstance(papers.query, Distance) or any(shape.freedoms != 2 for shape in shapes):
            raise ModelError(f"{papers.query!r:.80}: the printed equations are of two surfaces; give two, and no query")
        self.papers = papers
        self._shapes = shapes

    def tangents(self, q: FloatArray) -> FloatArray:
        """b, c of the first surface and a, d of the second [m], in world, shape (2, 2, 3)."""
        pair = self.papers.query.closest(self.papers._pose(q))
        found = []
        for (_, A), shape, own in zip(self.papers._frames(q), self._shapes, pair.parameters, strict=True):
            rows = shape._evaluate(np.asarray(own, dtype=float)[None, : shape.width], 1)[0, 1:3]
            found.append(rows @ A.T)
        return np.array(found)

    def _by_poses(self, q: FloatArray) -> FloatArray:
        """Derivatives of the tangents by differences of fourth order, shape (2, 2, 3, unknowns)."""
        p, h = self.papers.problem, self.papers.step
        found = np.empty((2, 2, 3, p.unknowns))
        for k, along in enumerate(np.eye(p.unknowns)):
            D = [
                (self.tangents(p.retract(q, s * along)) - self.tangents(p.retract(q, -s * along))) / (2.0 * s)
                for s in (h, 0.5 * h)
            ]
            found[..., k] = (4.0 * D[1] - D[0]) / 3.0
        return found

    def tangency(self, q: FloatArray) -> FloatArray:
        """C^tan (10) [m³], shape (2,)."""
        (b, c), (a, d) = self.tangents(q)
        return np.array([_determinant(a, b, c), _determinant(d, b, c)])

    def tangency_rows(self, q: FloatArray) -> FloatArray:
        """∂C^tan/∂q (11), shape (2, unknowns)."""
        ((b, c), (a, d)), ((bq, cq), (aq, dq)) = self.tangents(q), self._by_poses(q)
        return np.array([_row(a, aq, b, bq, c, cq), _row(d, dq, b, bq, c, cq)])

    def rolling_rows(self, q: FloatArray) -> FloatArray:
        """∂F/∂q̇ [m²], shape (2, unknowns): what multiplies λ."""
        return np.asarray(self.tangents(q)[0] @ self.papers.rolling(q))

    def rolling(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """F (13) [m²/s], shape (2,); v: rates of the unknowns."""
        return np.asarray(self.rolling_rows(q) @ v)

    def rolling_term(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """F_q G (12) [m²/s²], shape (2,), so that Ḟ = ∂F/∂q̇ q̈ + F_q G; −F_q G is γ of these rows."""
        retract, h = self.papers.problem.retract, 10.0 * self.papers.step
        D = [
            (self.rolling(retract(q, s * v), v) - self.rolling(retract(q, -s * v), v)) / (2.0 * s) for s in (h, 0.5 * h)
        ]
        return np.asarray((4.0 * D[1] - D[0]) / 3.0)


def _determinant(a: FloatArray, b: FloatArray, c: FloatArray) -> float:
    """a · b × c (9), by its minors as printed."""
    first = a[0] * (b[1] * c[2] - b[2] * c[1])
    second = a[1] * (b[0] * c[2] - b[2] * c[0])
    third = a[2] * (b[0] * c[1] - b[1] * c[0])
    return float(first - second + third)


def _row(a: FloatArray, aq: FloatArray, b: FloatArray, bq: FloatArray, c: FloatArray, cq: FloatArray) -> FloatArray:
    """One row of (11) as printed."""
    return np.asarray(
        aq[0] * (b[1] * c[2] - b[2] * c[1])
        + a[0] * (bq[1] * c[2] + cq[2] * b[1] - bq[2] * c[1] - cq[1] * b[2])
        - aq[1] * (b[0] * c[2] - b[2] * c[0])
        - a[1] * (bq[0] * c[2] + cq[2] * b[0] - bq[2] * c[0] - cq[0] * b[2])
        + aq[2] * (b[0] * c[1] - b[1] * c[0])
        + a[2] * (bq[0] * c[1] + cq[1] * b[0] - bq[1] * c[0] - cq[0] * b[1])
    )
