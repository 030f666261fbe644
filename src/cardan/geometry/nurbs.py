"""NURBS curves and tensor-product surfaces ([Piegl1997]).

S(u, v) = Σᵢⱼ Nᵢ(u) Nⱼ(v) wᵢⱼ Pᵢⱼ / Σᵢⱼ Nᵢ(u) Nⱼ(v) wᵢⱼ   [m]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.geometry import basis, checks, tables
from cardan.geometry.checks import FloatArray
from cardan.geometry.patches import NURBS, Patch
from cardan.geometry.shape import Shape

PADDED = 3  # degrees up to this one are evaluated by one kernel of constant size
SMOOTH_RTOL = 1e-9  # of the first derivative: a closed shape whose ends agree to this is periodic


def _unwrap(points: FloatArray, knots: FloatArray | None, degree: int, what: str) -> tuple[FloatArray, FloatArray]:
    """Control points and knots of the full basis from the n points and n + 1 breaks of one period."""
    n = points.shape[0]
    if n < degree + 1:
        raise ModelError(f"{what}: {n} control points of one period; degree {degree} needs at least {degree + 1}")
    one = np.linspace(0.0, 1.0, n + 1) if knots is None else checks.numbers(knots, f"{what}: knots", 1)
    if one.size != n + 1:
        raise ModelError(f"{what} has {one.size} knots; {n} control points of one period need {n + 1}")
    if not (np.diff(one) > 0.0).all():
        k = int(np.argmin(np.diff(one) > 0.0)) + 1
        raise ModelError(f"{what}: knots[{k}] is {one[k]}, not above {one[k - 1]}; knots of a period must increase")
    period = one[-1] - one[0]
    full = np.concatenate([one[n - degree : n] - period, one, one[1 : degree + 1] + period])
    return np.concatenate([points, points[:degree]]), full


def _homogeneous(points: FloatArray, weights: FloatArray) -> FloatArray:
    """(w P, w) with three coordinates; z = 0 for curves in a plane."""
    found = np.zeros((*weights.shape, 4))
    found[..., : points.shape[-1]] = points * weights[..., None]
    found[..., 3] = weights
    return found


def _matrices(knots: FloatArray, degree: int) -> tuple[FloatArray, Any, FloatArray]:
    """power_matrices with zero rows up to the padded degree."""
    breaks, first, M = basis.power_matrices(knots, degree)
    if degree < PADDED:
        M = np.concatenate([M, np.zeros((M.shape[0], PADDED - degree, M.shape[2]))], axis=1)
    return breaks, first, M


class _Nurbs(Shape):
    """What curves and surfaces share.  extent: the largest side of a box around the control points [m]; rounding: how
    far a computed point may be from the exact one [m]."""

    extent: float
    rounding: float
    _smooth: tuple[list[tuple[int, int, float, float, float]], list[tuple[int, int, float, float, float]]]

    def patches(self, extent: float) -> list[Patch]:
        """Smooth parts, for searches."""
        return [
            Patch(self, (*u[2:], *v[2:]), None, NURBS, None, None, (u[0], u[1], v[0], v[1]))
            for u in self._smooth[0]
            for v in self._smooth[1]
        ]

    def whole_patches(self, extent: float) -> list[Patch]:
        """The whole domain as one part without roots, for local searches across knots."""
        return [Patch(self, self.floats[: tables.LIMITS].tolist(), None)]

    def from_patch(self, q: FloatArray, point: FloatArray) -> FloatArray:
        """Coordinates of the shape from the parameters of a patch and its point."""
        return q[: self.freedoms]


class Curve(_Nurbs):
    """A NURBS curve in the plane or in space.

    points: control points, shape (n, 2) or (n, 3) [m]; weights: (n,), positive; knots: n + degree + 1 numbers, clamped
    and uniform on [0, 1] if omitted.  periodic=True: the n points are one period, and knots are its n + 1 breaks.
    A clamped curve whose ends meet with equal derivatives is periodic too.
    """

    def __init__(
        self, points: Any, weights: Any = None, knots: Any = None, *, degree: int = 3, periodic: bool = False
    ) -> None:
        what = "curve"
        p = checks.numbers(points, f"{what}: points", 2)
        if p.shape[1] not in (2, 3):
            raise ModelError(f"{what}: points have {p.shape[1]} coordinates; they must have 2 or 3")
        degree = checks.count(degree, f"{what}: degree", 1)
        w = checks.weights(weights, p.shape[:1], f"{what}: weights")
        self.extent = checks.extent(p, "control points of the curve")
        self.rounding = checks.rounding(p, w, degree)
        if periodic:
            p, t = _unwrap(p, knots, degree, what)
            w = np.concatenate([w, w[:degree]])
        else:
            if knots is None and len(p) < degree + 1:
                raise ModelError(f"{what} has {len(p)} control points; degree {degree} needs at least {degree + 1}")
            t = basis.clamped_knots(len(p), degree) if knots is None else checks.knots(knots, len(p), degree, "knots")
        self.points, self.weights, self.knots, self.degree = p, w, t, degree
        self._homogeneous = _homogeneous(p, w)
        breaks, first, M = _matrices(t, degree)
        self.breaks = breaks
        local = np.stack([self._homogeneous[f : f + degree + 1] for f in first])
        C = np.einsum("sij,sjc->sic", M, local)
        n = M.shape[1]
        limits = [breaks[0], breaks[-1], 0.0, 0.0, 0.0, 0.0]
        if periodic or _closes(C[:1], C[-1:], np.diff(breaks)[[0, -1]]):
            limits[2] = breaks[-1] - breaks[0]
        self._smooth = basis.smooth_ranges(breaks, t, degree, limits[2]), [(0, 1, 0.0, 0.0, 0.0)]
        ints = np.array([1, 1, n - 1, 0, breaks.size - 1, 1, 0, 20 + n], dtype=np.int64)
        least = [w[f : f + degree + 1].min() for f in first]
        floats = np.concatenate([limits, breaks, C.ravel(), least])
        super().__init__("cardan.geometry._curve", ints, floats, p.shape[1])

    def __repr__(self) -> str:
        return f"<NURBS curve: degree {self.degree}, {len(self.points)} control points>"

    @property
    def homogeneous(self) -> FloatArray:
        """(w P, w), shape (n, 4)."""
        return self._homogeneous

    def to_bezier(self) -> list[Curve]:
        """The spans as curves of one span each, with the same parameters."""
        breaks, pieces = basis.bezier(self._homogeneous, self.knots, self.degree)
        knots = [np.repeat(breaks[k : k + 2], self.degree + 1) for k in range(len(pieces))]
        return [self._like(piece, t, self.degree) for piece, t in zip(pieces, knots, strict=True)]

    def insert(self, u: float, times: int = 1) -> Curve:
        """The same curve with a knot inserted."""
        h, t = self._homogeneous, self.knots
        for _ in range(times):
            _check_insertion(t, self.degree, u)
            h, t = basis.insert_knot(h, t, self.degree, u)
        return self._like(h, t, self.degree)

    def elevate(self, times: int = 1) -> Curve:
        """The same curve with a higher degree."""
        h, t, p = self._homogeneous, self.knots, self.degree
        for _ in range(times):
            h, t = basis.elevate(h, t, p)
            p += 1
        return self._like(h, t, p)

    def split(self, u: float) -> tuple[Curve, Curve]:
        """The parts of the curve below and above u."""
        low, high = self.bounds[0]
        if not low < u < high:
            raise ModelError(f"u is {u}; a curve is split between its ends, in ({low}, {high})")
        h, t = basis.clamp(self._homogeneous, self.knots, self.degree)
        while np.count_nonzero(t == u) < self.degree:
            h, t = basis.insert_knot(h, t, self.degree, u)
        first = int(np.flatnonzero(t == u)[0])
        p = self.degree
        below = self._like(h[:first], np.append(t[: first + p], u), p)
        return below, self._like(h[first - 1 :], np.concatenate([[u], t[first:]]), p)

    def reversed(self) -> Curve:
        """The same points with the parameter in the other direction."""
        t = self.knots[0] + self.knots[-1] - self.knots[::-1]
        return self._like(self._homogeneous[::-1], t, self.degree)

    def _like(self, h: FloatArray, knots: FloatArray, degree: int) -> Curve:
        return Curve(h[:, : self.dimension] / h[:, 3:], h[:, 3], knots, degree=degree)

    def transformed(self, matrix: Any, offset: Any = (0.0, 0.0, 0.0)) -> Curve:
        """The curve of the points A P + b, where A is 3×3; always in space."""
        p = np.zeros((len(self.points), 3))
        p[:, : self.dimension] = self.points
        return Curve(
            p @ np.asarray(matrix, dtype=float).T + np.asarray(offset), self.weights, self.knots, degree=self.degree
        )

    @classmethod
    def interpolate(cls, points: Any, *, degree: int = 3, parameters: Any = None, periodic: bool = False) -> Curve:
        """The curve through points, at parameters by chord length if none are given ([Piegl1997] 9.2.1).

        periodic=True: the curve closes with degree − 1 continuous derivatives; degree is odd.  The first point may be
        repeated at the end, and parameters has a value for it in any case, the end of the period.
        """
        p = checks.numbers(points, "points", 2)
        if len(p) < degree + 1:
            raise ModelError(f"{len(p)} points are given; interpolation of degree {degree} needs at least {degree + 1}")
        if periodic:
            return cls._interpolate_closed(p, degree, parameters)
        u = basis.chord_parameters(p, "points") if parameters is None else _increasing(parameters, len(p))
        knots = basis.averaged_knots(u, degree)
        return cls(np.linalg.solve(basis.collocation(knots, degree, u), p), knots=knots, degree=degree)

    @classmethod
    def _interpolate_closed(cls, p: FloatArray, degree: int, parameters: Any) -> Curve:
        """The periodic curve whose knots are the parameters of the points: of odd degree it exists and is unique."""
        if degree % 2 == 0:
            raise ModelError(f"the degree is {degree}; periodic interpolation needs an odd degree, such as 3")
        if np.abs(p[-1] - p[0]).max() <= SMOOTH_RTOL * np.ptp(p, axis=0).max():
            p = p[:-1]
        around = np.concatenate([p, p[:1]])
        u = basis.chord_parameters(around, "points") if parameters is None else _increasing(parameters, len(around))
        n = len(p)
        _, knots = _unwrap(p, u, degree, "points")
        N = basis.collocation(knots, degree, u[:-1])
        N[:, :degree] += N[:, n:]  # the last control points are the first ones
        return cls(np.linalg.solve(N[:, :n], p), knots=u, degree=degree, periodic=True)

    @classmethod
    def fit(cls, points: Any, count: int, *, degree: int = 3, parameters: Any = None) -> tuple[Curve, float]:
        """The least-squares curve with ``count`` control points, and its largest distance to the points at their
        parameters [m] ([Piegl1997] 9.4.1)."""
        p = checks.numbers(points, "points", 2)
        count = checks.count(count, "the number of control points", degree + 1)
        if len(p) < count:
            raise ModelError(f"{len(p)} points are given for {count} control points; give at least as many")
        u = basis.chord_parameters(p, "points") if parameters is None else _increasing(parameters, len(p))
        knots = basis.averaged_knots(u, degree) if len(p) == count else basis.fit_knots(u, count, degree)
        N = basis.collocation(knots, degree, u)
        found, *_ = np.linalg.lstsq(N, p, rcond=None)
        return cls(found, knots=knots, degree=degree), float(np.linalg.norm(N @ found - p, axis=1).max())


class Surface(_Nurbs):
    """A tensor-product NURBS surface.

    points: control points, shape (n, m, 3) [m]; weights: (n, m), positive; knots_u, knots_v: clamped and uniform on
    [0, 1] if omitted.  degree and periodic: one value, or one per direction; in a periodic direction the points are one
    period, and the knots its breaks.  The normal is S_u × S_v.
    """

    def __init__(
        self,
        points: Any,
        weights: Any = None,
        knots_u: Any = None,
        knots_v: Any = None,
        *,
        degree: int | Sequence[int] = 3,
        periodic: bool | Sequence[bool] = False,
    ) -> None:
        p = checks.numbers(points, "surface: points", 3)
        if p.shape[2] != 3:
            raise ModelError(f"surface: points have {p.shape[2]} coordinates; they must have 3")
        w = checks.weights(weights, p.shape[:2], "surface: weights")
        self.extent = checks.extent(p, "control points of the surface")
        degrees = (degree, degree) if isinstance(degree, int | np.integer) else tuple(degree)
        closed = (periodic, periodic) if isinstance(periodic, bool | np.bool_) else tuple(periodic)
        if len(degrees) != 2 or len(closed) != 2:
            raise ModelError("surface: degree and periodic take one value, or one per direction")
        self.degrees = tuple(checks.count(d, f"surface: degree {'uv'[i]}", 1) for i, d in enumerate(degrees))
        self.rounding = checks.rounding(p, w, max(self.degrees))
        knots: list[FloatArray] = []
        for axis, given in enumerate((knots_u, knots_v)):
            d, name = self.degrees[axis], f"knots_{'uv'[axis]}"
            if closed[axis]:
                moved, t = _unwrap(np.moveaxis(p, axis, 0), given, d, f"surface, {name}")
                p = np.moveaxis(moved, 0, axis)
                w = np.moveaxis(np.concatenate([np.moveaxis(w, axis, 0), np.moveaxis(w, axis, 0)[:d]]), 0, axis)
            elif given is None:
                if p.shape[axis] < d + 1:
                    raise ModelError(
                        f"surface has {p.shape[axis]} control points along {'uv'[axis]}; degree {d} needs {d + 1}"
                    )
                t = basis.clamped_knots(p.shape[axis], d)
            else:
                t = checks.knots(given, p.shape[axis], d, name)
            knots.append(t)
        self.points, self.weights, self.knots = p, w, tuple(knots)
        self._homogeneous = _homogeneous(p, w)
        bu, fu, Mu = _matrices(knots[0], self.degrees[0])
        bv, fv, Mv = _matrices(knots[1], self.degrees[1])
        self.breaks = (bu, bv)
        if max(self.degrees) > PADDED:
            kernel, Mu, Mv = "cardan.geometry._tensor", Mu[:, : self.degrees[0] + 1], Mv[:, : self.degrees[1] + 1]
        else:
            kernel = "cardan.geometry._bicubic"
        iu = fu[:, None] + np.arange(self.degrees[0] + 1)
        iv = fv[:, None] + np.arange(self.degrees[1] + 1)
        local = self._homogeneous[iu[:, None, :, None], iv[None, :, None, :]]
        C = np.einsum("sai,stijc->stajc", Mu, local)
        C = np.ascontiguousarray(np.einsum("tbj,stajc->stabc", Mv, C))
        n, m = Mu.shape[1], Mv.shape[1]
        limits = [bu[0], bu[-1], 0.0, bv[0], bv[-1], 0.0]
        if closed[0] or _closes(C[0], C[-1], np.diff(bu)[[0, -1]]):
            limits[2] = bu[-1] - bu[0]
        if closed[1] or _closes(C[:, 0].swapaxes(1, 2), C[:, -1].swapaxes(1, 2), np.diff(bv)[[0, -1]]):
            limits[5] = bv[-1] - bv[0]
        self._smooth = (
            basis.smooth_ranges(bu, knots[0], self.degrees[0], limits[2]),
            basis.smooth_ranges(bv, knots[1], self.degrees[1], limits[5]),
        )
        work = 136 if kernel.endswith("_bicubic") else 40 + 4 * n + 4 * m + 16 * m
        ints = np.array([2, 2, n - 1, m - 1, bu.size - 1, bv.size - 1, 0, work], dtype=np.int64)
        least = local[..., 3].min(axis=(2, 3))
        super().__init__(kernel, ints, np.concatenate([limits, bu, bv, C.ravel(), least.ravel()]))

    def __repr__(self) -> str:
        (p, q), (n, m) = self.degrees, self.points.shape[:2]
        return f"<NURBS surface: degrees {p} and {q}, {n} × {m} control points>"

    @property
    def homogeneous(self) -> FloatArray:
        """(w P, w), shape (n, m, 4)."""
        return self._homogeneous

    def _along(self, axis: int, change: Any) -> Surface:
        """A surface whose control points and knots along one axis are changed by a function of basis.py."""
        h = np.moveaxis(self._homogeneous, axis, 0)
        h, t, d = change(h, self.knots[axis], self.degrees[axis])
        knots, degrees = list(self.knots), list(self.degrees)
        knots[axis], degrees[axis] = t, d
        h = np.moveaxis(h, 0, axis)
        return Surface(h[..., :3] / h[..., 3:], h[..., 3], *knots, degree=degrees)

    def insert(self, u: float | None = None, v: float | None = None) -> Surface:
        """The same surface with a knot inserted in u, in v, or in both."""
        found = self
        for axis, value in enumerate((u, v)):
            if value is not None:

                def change(h: FloatArray, t: FloatArray, d: int, value: float = value) -> Any:
                    _check_insertion(t, d, value)
                    return (*basis.insert_knot(h, t, d, value), d)

                found = found._along(axis, change)
        return found

    def elevate(self, u: int = 0, v: int = 0) -> Surface:
        """The same surface with higher degrees."""
        found = self
        for axis, times in enumerate((u, v)):
            for _ in range(times):
                found = found._along(axis, lambda h, t, d: (*basis.elevate(h, t, d), d + 1))
        return found

    def to_bezier(self) -> list[Surface]:
        """The spans as surfaces of one span each, with the same parameters."""
        (bu, bv), (p, q) = self.breaks, self.degrees
        _, rows = basis.bezier(self._homogeneous, self.knots[0], p)
        found = []
        for s, piece in enumerate(rows):
            _, columns = basis.bezier(piece.swapaxes(0, 1), self.knots[1], q)
            for t, net in enumerate(columns):
                h = net.swapaxes(0, 1)
                knots = np.repeat(bu[s : s + 2], p + 1), np.repeat(bv[t : t + 2], q + 1)
                found.append(Surface(h[..., :3] / h[..., 3:], h[..., 3], *knots, degree=(p, q)))
        return found

    def iso(self, *, u: float | None = None, v: float | None = None) -> Curve:
        """The curve of constant u or constant v on the surface."""
        if (u is None) == (v is None):
            raise ModelError("give u or v, one of them: the parameter that is constant along the curve")
        axis, value = (0, u) if u is not None else (1, v)
        at = np.array([value], dtype=np.float64)
        N = basis.collocation(self.knots[axis], self.degrees[axis], at)[0]
        h = np.tensordot(N, self._homogeneous, axes=([0], [axis]))
        return Curve(h[:, :3] / h[:, 3:], h[:, 3], self.knots[1 - axis], degree=self.degrees[1 - axis])

    def flipped(self) -> Surface:
        """The same points with the opposite normal: u and v exchanged."""
        return Surface(
            self.points.swapaxes(0, 1), self.weights.T, self.knots[1], self.knots[0], degree=self.degrees[::-1]
        )

    def transformed(self, matrix: Any, offset: Any = (0.0, 0.0, 0.0)) -> Surface:
        """The surface of the points A P + b, where A is 3×3."""
        p = self.points @ np.asarray(matrix, dtype=float).T + np.asarray(offset, dtype=float)
        return Surface(p, self.weights, *self.knots, degree=self.degrees)

    @classmethod
    def interpolate(cls, points: Any, *, degree: int = 3) -> Surface:
        """The surface through a grid of points (n, m, 3), at averaged chord lengths ([Piegl1997] 9.2.5)."""
        p = checks.numbers(points, "points", 3)
        knots = []
        for axis in (0, 1):
            moved = np.moveaxis(p, axis, 0)
            if len(moved) < degree + 1:
                raise ModelError(
                    f"the grid has {len(moved)} points along {'uv'[axis]}; degree {degree} needs {degree + 1}"
                )
            u = np.mean([basis.chord_parameters(moved[:, k], "points") for k in range(moved.shape[1])], axis=0)
            t = basis.averaged_knots(u, degree)
            solved: Any = np.linalg.solve(basis.collocation(t, degree, u), moved.reshape(len(u), -1))
            p = np.moveaxis(solved.reshape(moved.shape), 0, axis)
            knots.append(t)
        return cls(p, None, *knots, degree=degree)

    @classmethod
    def fit(cls, points: Any, counts: int | Sequence[int], *, degree: int = 3) -> tuple[Surface, float]:
        """The least-squares surface of a grid of points with counts[0] × counts[1] control points, or counts in each
        direction, and its largest distance to the points at their parameters [m]."""
        given = counts if isinstance(counts, list | tuple | np.ndarray) else (counts, counts)
        if len(given) != 2:
            raise ModelError(f"counts is {counts!r}; it must be a whole number, or one per direction")
        counts = [
            checks.count(n, f"the number of control points along {'uv'[i]}", degree + 1) for i, n in enumerate(given)
        ]
        data = checks.numbers(points, "points", 3)
        p: Any = data
        knots, parameters = [], []
        for axis in (0, 1):
            moved = np.moveaxis(p, axis, 0)
            raw = np.moveaxis(data, axis, 0)
            if len(moved) < counts[axis]:
                raise ModelError(
                    f"the grid has {len(moved)} points along {'uv'[axis]} for {counts[axis]} control points"
                )
            u = np.mean([basis.chord_parameters(raw[:, k], "points") for k in range(raw.shape[1])], axis=0)
            exact = len(moved) == counts[axis]
            t = basis.averaged_knots(u, degree) if exact else basis.fit_knots(u, counts[axis], degree)
            solved, *_ = np.linalg.lstsq(basis.collocation(t, degree, u), moved.reshape(len(u), -1), rcond=None)
            p = np.moveaxis(solved.reshape(counts[axis], *moved.shape[1:]), 0, axis)
            knots.append(t)
            parameters.append(u)
        found = cls(p, None, *knots, degree=degree)
        uv = np.stack([g.ravel() for g in np.meshgrid(*parameters, indexing="ij")], axis=1)
        return found, float(np.linalg.norm(found.evaluate(uv) - data.reshape(-1, 3), axis=1).max())


def _closes(first: FloatArray, last: FloatArray, h: FloatArray) -> bool:
    """Whether the last span (power coefficients [span, power, …]) continues smoothly into the first."""
    n = first.shape[-3] if first.ndim > 3 else first.shape[1]
    axis = first.ndim - 3 if first.ndim > 3 else 1
    a, b = np.moveaxis(first, axis, 0), np.moveaxis(last, axis, 0)
    x = 0.5 ** np.arange(n)
    start, end = np.tensordot(x * (-1.0) ** np.arange(n), a, axes=1), np.tensordot(x, b, axes=1)
    k = np.arange(1, n)
    rise = np.tensordot(k * (-0.5) ** (k - 1), a[1:], axes=1) / h[0]
    fall = np.tensordot(k * 0.5 ** (k - 1), b[1:], axes=1) / h[1]
    size = np.abs(start - start.reshape(-1, 4).mean(axis=0)).max() + np.abs(rise).max() * h.sum()
    return bool(
        np.abs(start - end).max() <= SMOOTH_RTOL * max(size, 1e-300)
        and np.abs(rise - fall).max() <= SMOOTH_RTOL * np.abs(rise).max()
    )


def _check_insertion(knots: FloatArray, degree: int, u: float) -> None:
    low, high = knots[degree], knots[knots.size - degree - 1]
    if not low < u < high:
        raise ModelError(f"the knot is {u}; it must be inside the domain ({low}, {high})")
    if np.count_nonzero(knots == u) >= degree:
        raise ModelError(f"the knot {u} occurs {degree} times already; a shape of degree {degree} allows no more")


def _increasing(parameters: Any, count: int) -> FloatArray:
    u = checks.numbers(parameters, "parameters", 1)
    if u.size != count:
        raise ModelError(f"{u.size} parameters are given for {count} points")
    if not (np.diff(u) > 0.0).all():
        k = int(np.argmin(np.diff(u) > 0.0)) + 1
        raise ModelError(f"parameters[{k}] is {u[k]}, not above {u[k - 1]}; parameters must increase")
    return u
