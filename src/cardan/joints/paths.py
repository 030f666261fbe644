"""Moving frames of curves, for :meth:`cardan.Mechanism.path`: E(s) with x along the tangent, as polynomials of s.

Frenet: y is the principal normal, z the binormal.  Least turning: the frame never rotates about its tangent
([Bishop1975]); it is found without a differential equation.  The least rotation from a fixed tangent a to T(s), with
the quaternion (1 + a·T, a × T), rotates about T with a rate that is known; its integral is taken back.

Quaternions of E at Chebyshev points are interpolated by polynomials of degree DEGREE; spans are halved until these
agree with E to ACCURACY.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.polynomial import chebyshev

from cardan.errors import ModelError
from cardan.geometry.shape import Shape
from cardan.joints.tables import DEGREE, MovingFrame
from cardan.math import euler
from cardan.system.state import FloatArray

Follow = Literal["frenet", "least_turning"]

ACCURACY = 2e-13  # of a quaternion
MOST_SPANS = 4000
FIRST_SPANS = 4  # per piece of a curve, at least
STRAIGHT = 1e-6  # curvature times length: with less, a curve has no principal normal
JUMP = 1e-5  # of the largest torsion or curvature, over the whole curve: a larger change at a knot is a jump
NEXT = 1e-12  # of the range of the parameter: how far from a knot both sides are compared
CORNER = 1e-9  # rad: a larger change of the tangent at a knot is a corner
WIDE = 0.5  # the least cosine between tangents of one span

_NODES = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))[::-1]
_CHECKS = np.linspace(-1.0, 1.0, 2 * DEGREE + 3)
_FIT = np.linalg.inv(chebyshev.chebvander(_NODES, DEGREE))
_POWERS = np.array([np.pad(chebyshev.cheb2poly(row), (0, DEGREE - k)) for k, row in
                    ((k, np.eye(DEGREE + 1)[k, : k + 1]) for k in range(DEGREE + 1))])  # fmt: skip


class Path:
    """The moving frame of a curve as a table for kernels.

    up: along z of the first frame, as far as the tangent allows; for "least_turning" alone.  ``jump``: the first
    parameter at which the curvature jumps, and with it the angular velocity of the frame; None if it is continuous.
    """

    def __init__(self, what: str, curve: Shape, follow: Follow, up: tuple[float, float, float]) -> None:
        self.what, self.curve, self.follow = what, curve, follow
        low, high = curve.bounds[0]
        inside = [s for s in np.unique(getattr(curve, "knots", ())).tolist() if low < s < high]
        ends = [low, *inside, high]
        self._check_corners(ends)
        self.jump = self._find_jump(ends)
        pieces = max(1, -(-FIRST_SPANS // (len(ends) - 1)))
        spans = [
            (a + (b - a) * k / pieces, a + (b - a) * (k + 1) / pieces) for a, b in pairwise(ends) for k in range(pieces)
        ]
        first = self._first(up)
        last = first
        breaks = [low]
        rows: list[FloatArray] = []
        todo = spans[::-1]
        while todo:
            a, b = todo.pop()
            found = self._fitted(a, b, last)
            if found is None:
                if len(rows) + len(todo) > MOST_SPANS:
                    raise ModelError(
                        f"{what}: the axes of the curve turn too fast near the parameter {a:.6g}"
                        + (
                            ": its principal normal is not continuous there, or its curvature nearly vanishes; use "
                            "follow='least_turning'"
                            if self._is_frenet
                            else ""
                        )
                    )
                todo += [(0.5 * (a + b), b), (a, 0.5 * (a + b))]
                continue
            coefficients, last = found
            breaks.append(b)
            rows.append(coefficients)
        period = float(curve.periods[0])
        twist = 0.0
        if period:
            turned = euler.matrix(first).T @ euler.matrix(last)
            twist = float(np.arctan2(turned[2, 1], turned[1, 1]))
        numbers = np.concatenate([breaks, np.array(rows).ravel()])
        self.table = MovingFrame.new(open=numbers.size, spans=len(rows), period=period, twist=twist, breaks=numbers)

    @property
    def _is_frenet(self) -> bool:
        return self.follow == "frenet"

    def _derivatives(self, s: FloatArray) -> FloatArray:
        return np.asarray(self.curve._evaluate(s[:, None], 2))

    def _tangents(self, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """T and dT/ds, shape (n, 3)."""
        rows = self._derivatives(s)
        length = np.linalg.norm(rows[:, 1], axis=1)[:, None]
        if not length.min() > 0.0:
            raise ModelError(f"{self.what}: the curve has no tangent at the parameter {s[np.argmin(length)]:.6g}")
        T = rows[:, 1] / length
        bent = rows[:, 2] - T * (T * rows[:, 2]).sum(axis=1)[:, None]
        return T, bent / length

    def _check_corners(self, ends: list[float]) -> None:
        inner = np.array(ends[1:-1])
        if not inner.size:
            return
        step = NEXT * (ends[-1] - ends[0])
        before, after = self._tangents(inner - step)[0], self._tangents(inner + step)[0]
        turned = np.linalg.norm(np.cross(before, after), axis=1)
        slack = CORNER + 4.0 * step * np.linalg.norm(self._tangents(inner + step)[1], axis=1)
        if (turned > slack).any():
            at = inner[np.argmax(turned - slack)]
            raise ModelError(f"{self.what}: the curve has a corner at the parameter {at:.6g}; give a smooth curve")
        if self._is_frenet:
            before, after = self._torsions(inner - step), self._torsions(inner + step)
            jumps = np.abs(after - before) * (ends[-1] - ends[0])
            if jumps.max() > JUMP * (1.0 + np.abs(before).max() * (ends[-1] - ends[0])):
                raise ModelError(
                    f"{self.what}: the torsion of the curve jumps at the parameter {inner[np.argmax(jumps)]:.6g}, and "
                    "with it the angular velocity of a Frenet frame; use follow='least_turning', or a curve of degree=5"
                )

    def _find_jump(self, ends: list[float]) -> float | None:
        """The first knot at which the curvature jumps; the last one is the seam of a closed curve."""
        at = np.array(ends[1:] if self.curve.periods[0] else ends[1:-1])
        if not at.size:
            return None
        step = NEXT * (ends[-1] - ends[0])
        before, after = at - step, at + step
        if self.curve.periods[0]:
            after[-1] = ends[0] + step
        size = float(np.ptp(self._derivatives(np.linspace(ends[0], ends[-1], 2 * len(ends) + 7))[:, 0], axis=0).max())
        bent = [size * self._curvatures(s) for s in (before, after)]
        large = np.linalg.norm(bent[1] - bent[0], axis=1) > JUMP * (1.0 + np.linalg.norm(bent, axis=2).max())
        return float(at[np.argmax(large)]) if large.any() else None

    def _curvatures(self, s: FloatArray) -> FloatArray:
        """dT by the arc length [1/m], shape (n, 3)."""
        return np.asarray(self._tangents(s)[1] / np.linalg.norm(self._derivatives(s)[:, 1], axis=1)[:, None])

    def _torsions(self, s: FloatArray) -> FloatArray:
        """Rate of the rotation about the tangent by s [rad]."""
        rows = np.asarray(self.curve._evaluate(s[:, None], 3))
        across = np.cross(rows[:, 1], rows[:, 2])
        square = np.maximum((across**2).sum(axis=1), 1e-300)
        return np.asarray((across * rows[:, 3]).sum(axis=1) * np.linalg.norm(rows[:, 1], axis=1) / square)

    def _first(self, up: tuple[float, float, float]) -> FloatArray:
        """Quaternion of the first frame."""
        low = np.array([self.curve.bounds[0][0]])
        if self._is_frenet:
            return np.asarray(self._frenet(low)[0])
        T = self._tangents(low)[0][0]
        z = np.array(up) - T * (T @ up)
        size = float(np.linalg.norm(z))
        if not size > 1e-6 * np.linalg.norm(up):
            raise ModelError(f"{self.what}: up={up} is along the curve where it begins; give another direction")
        z /= size
        return np.asarray(euler.from_matrix(np.column_stack([T, np.cross(z, T), z])))

    def _frenet(self, s: FloatArray) -> FloatArray:
        """Quaternions of (T, N, B)."""
        T, bent = self._tangents(s)
        size = np.linalg.norm(bent, axis=1)
        low, high = self.curve.bounds[0]
        if not size.min() * (high - low) > STRAIGHT:
            raise ModelError(
                f"{self.what}: the curve is straight at the parameter {s[np.argmin(size)]:.6g}, where it has no "
                "principal normal; use follow='least_turning'"
            )
        N = bent / size[:, None]
        return np.array([euler.from_matrix(np.column_stack(one)) for one in zip(T, N, np.cross(T, N), strict=True)])

    def _fitted(self, a: float, b: float, last: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Coefficients from the highest power on, shape (DEGREE + 1, 4), and the last frame; None: a span too long."""
        z = np.concatenate([_NODES, _CHECKS])
        s = np.clip(a + 0.5 * (b - a) * (1.0 + z), a, b)
        if self._is_frenet:
            found: Any = _continued(self._frenet(s), last, z)
        else:
            found = self._transported(s, z, 0.5 * (b - a), last)
        if found is None:
            return None
        coefficients = _FIT @ found[: DEGREE + 1]
        if np.abs(chebyshev.chebval(_CHECKS, coefficients).T - found[DEGREE + 1 :]).max() > ACCURACY:
            return None
        return (_POWERS.T @ coefficients)[::-1], found[-1]

    def _transported(self, s: FloatArray, z: FloatArray, half: float, last: FloatArray) -> FloatArray | None:
        """Quaternions of the frame that continues the last one, without rotation about the tangent."""
        T, bent = self._tangents(s)
        middle = self._tangents(np.array([0.5 * (s.min() + s.max())]))[0][0]
        cosine = T @ middle
        if cosine.min() < WIDE:
            return None
        e = np.column_stack([1.0 + cosine, np.cross(middle, T)])
        rate = np.column_stack([bent @ middle, np.cross(middle, bent)])
        square = (e**2).sum(axis=1)
        spin = (
            2.0
            * (  # about T, from the vector part of ė ⊗ e*
                (T * (e[:, :1] * rate[:, 1:] - rate[:, :1] * e[:, 1:] + np.cross(e[:, 1:], rate[:, 1:]))).sum(axis=1)
            )
            / square
        )
        fit = _FIT @ spin[: DEGREE + 1]
        if np.abs(chebyshev.chebval(_CHECKS, fit) - spin[DEGREE + 1 :]).max() * half > ACCURACY:
            return None
        back = -half * chebyshev.chebval(z, chebyshev.chebint(fit, lbnd=-1.0))
        e /= np.sqrt(square)[:, None]
        start = e[np.argmin(s)]
        held = euler.multiply(start * np.array([1.0, -1.0, -1.0, -1.0]), last)
        about = np.column_stack([np.cos(0.5 * back), np.sin(0.5 * back), np.zeros((len(s), 2))])
        found = np.array([euler.multiply(euler.multiply(p, held), r) for p, r in zip(e, about, strict=True)])
        return _continued(found, last, z)


def _continued(found: FloatArray, last: FloatArray, z: FloatArray) -> FloatArray:
    """The same rotations with signs that continue the last one."""
    order = np.argsort(z, kind="stable")
    before = last
    for k in order:
        if found[k] @ before < 0.0:
            found[k] *= -1.0
        before = found[k]
    return found
