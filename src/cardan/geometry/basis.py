"""B-spline bases: power coefficients of spans, knot insertion, degree elevation, interpolation.

A basis has knots t, degree p and n functions N_j; on a span u = u₀ + h (x + ½) with x ∈ [−½, ½].
"""

from __future__ import annotations

from itertools import pairwise
from math import comb

import numpy as np

from cardan.errors import ModelError
from cardan.geometry.checks import FloatArray, IntArray

SAME_KNOT = 1e-12  # of the size of the parameters: knots that may count as one


def clamped_knots(points: int, degree: int) -> FloatArray:
    """Uniform knots on [0, 1], with both ends repeated."""
    return np.concatenate([np.zeros(degree), np.linspace(0.0, 1.0, points - degree + 1), np.ones(degree)])


def spans(knots: FloatArray, degree: int) -> tuple[FloatArray, IntArray]:
    """Distinct knots of the domain, and for each span between them the index k with t_k ≤ u < t_{k+1}."""
    domain = knots[degree : knots.size - degree]
    breaks = domain[np.concatenate([[True], np.diff(domain) > 0.0])]
    return breaks, np.searchsorted(knots, breaks[:-1], side="right") - 1


def power_matrices(knots: FloatArray, degree: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Breaks, first control point of each span, and matrices M with Σ_j N_j(u) P_j = Σ_i xⁱ Σ_j M[span, i, j] P_j.

    The recursion of Cox and de Boor on polynomials in x ([Piegl1997] 2.2), for all spans at once.
    """
    breaks, at = spans(knots, degree)
    low, h = breaks[:-1], np.diff(breaks)
    middle = low + 0.5 * h
    N = np.zeros((at.size, 1, degree + 1))  # [span, function, power]
    N[:, 0, 0] = 1.0
    for r in range(1, degree + 1):
        new = np.zeros((at.size, r + 1, degree + 1))
        for j in range(r):  # function j of degree r − 1 begins at the knot at − r + 1 + j
            first, last = knots[at - r + 1 + j], knots[at + 1 + j]
            width = last - first
            rises, falls = (middle - first) / width, (last - middle) / width
            slope = (h / width)[:, None]
            shifted = np.concatenate([np.zeros((at.size, 1)), N[:, j, :-1]], axis=1)
            new[:, j + 1] += rises[:, None] * N[:, j] + slope * shifted
            new[:, j] += falls[:, None] * N[:, j] - slope * shifted
        N = new
    return breaks, at - degree, np.ascontiguousarray(N.transpose(0, 2, 1))


def smooth_ranges(
    breaks: FloatArray, knots: FloatArray, degree: int, period: float
) -> list[tuple[int, int, float, float, float]]:
    """Ranges of spans between knots with fewer than two continuous derivatives: first, end, their bounds and period."""
    u = breaks.tolist()
    last = len(u) - 1
    inside: list[int] = []
    near = SAME_KNOT * max(1.0, abs(u[0]), abs(u[-1]))
    # inner knots of a cubic that occur once need no search
    if degree < 3 or knots.size != last + 1 + 2 * degree or any([y - x <= near for x, y in pairwise(u)]):
        inside = [k for k in range(1, last) if continuity(knots, degree, breaks[k]) < 2]
    if period and degree > 2 and not inside and np.count_nonzero(knots == u[0]) == 1:
        return [(0, last, u[0], u[-1], period)]
    return [(a, b, u[a], u[b], 0.0) for a, b in pairwise([0, *inside, last])]


def collocation(knots: FloatArray, degree: int, u: FloatArray, derivative: int = 0) -> FloatArray:
    """N_j^(derivative)(u_k), shape (k, j)."""
    breaks, first, M = power_matrices(knots, degree)
    s = np.clip(np.searchsorted(breaks, u, side="right") - 1, 0, first.size - 1)
    h = np.diff(breaks)[s]
    x = (u - breaks[s]) / h - 0.5
    powers = np.zeros((u.size, degree + 1))
    for i in range(derivative, degree + 1):
        factor = np.prod(np.arange(i - derivative + 1, i + 1, dtype=float))
        powers[:, i] = factor * x ** (i - derivative) / h**derivative
    found = np.zeros((u.size, knots.size - degree - 1))
    rows = np.arange(u.size)
    local = np.einsum("ki,kij->kj", powers, M[s])
    for j in range(degree + 1):
        found[rows, first[s] + j] = local[:, j]
    return found


def insert_knot(points: FloatArray, knots: FloatArray, degree: int, u: float) -> tuple[FloatArray, FloatArray]:
    """Control points (first axis) and knots after one insertion of u (Boehm; [Piegl1997] 5.2)."""
    k = int(np.searchsorted(knots, u, side="right")) - 1
    k = min(k, knots.size - degree - 2)
    new = np.empty((points.shape[0] + 1, *points.shape[1:]))
    new[: k - degree + 1] = points[: k - degree + 1]
    new[k + 1 :] = points[k:]
    for i in range(k - degree + 1, k + 1):
        width = knots[i + degree] - knots[i]
        a = (u - knots[i]) / width if width > 0.0 else 0.0
        new[i] = a * points[i] + (1.0 - a) * points[i - 1]
    return new, np.insert(knots, k + 1, u)


def clamp(points: FloatArray, knots: FloatArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """The same curve on its domain, with both end knots degree + 1 times."""
    low, high = float(knots[degree]), float(knots[knots.size - degree - 1])
    for end in (low, high):
        while np.count_nonzero(knots == end) < degree:
            points, knots = insert_knot(points, knots, degree, end)
    first = int(np.flatnonzero(knots == low)[-1]) - degree
    last = int(np.flatnonzero(knots == high)[0]) + degree
    points = points[max(first, 0) : last - degree]
    inside = knots[(knots > low) & (knots < high)]
    return points, np.concatenate([np.full(degree + 1, low), inside, np.full(degree + 1, high)])


def bezier(points: FloatArray, knots: FloatArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """Breaks and Bézier control points of the spans, shape (spans, degree + 1, …)."""
    breaks, first, M = power_matrices(knots, degree)
    from_power = np.linalg.inv(bernstein_to_power(degree))
    local = np.stack([points[f : f + degree + 1] for f in first])
    return breaks, np.einsum("ai,sij,sj...->sa...", from_power, M, local)


def bernstein_to_power(degree: int) -> FloatArray:
    """M with Σ_i B_i(x + ½) P_i = Σ_k xᵏ Σ_i M[k, i] P_i."""
    found = np.zeros((degree + 1, degree + 1))
    for i in range(degree + 1):
        poly = np.array([float(comb(degree, i))])
        for _ in range(i):
            poly = np.convolve(poly, [0.5, 1.0])
        for _ in range(degree - i):
            poly = np.convolve(poly, [0.5, -1.0])
        found[:, i] = poly
    return found


def elevate(points: FloatArray, knots: FloatArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """The same curve with the degree one higher: every knot occurs once more.  Exact up to rounding: the new control
    points are the solution of the collocation equations at the Greville points of the new basis."""
    points, knots = clamp(points, knots, degree)
    values, times = np.unique(knots, return_counts=True)
    new = np.repeat(values, times + 1)
    return fit_same(points, knots, degree, new, degree + 1), new


def fit_same(points: FloatArray, knots: FloatArray, degree: int, new: FloatArray, new_degree: int) -> FloatArray:
    """Control points of a curve in a finer basis that contains it."""
    u = greville(new, new_degree)
    old = np.tensordot(collocation(knots, degree, u), points, axes=1)
    found = np.linalg.solve(collocation(new, new_degree, u), old.reshape(u.size, -1))
    return np.asarray(found.reshape(u.size, *points.shape[1:]))


def greville(knots: FloatArray, degree: int) -> FloatArray:
    """Means of degree consecutive knots, one per control point."""
    n = knots.size - degree - 1
    if degree == 0:
        return np.asarray(0.5 * (knots[:-1] + knots[1:]))
    return np.array([knots[i + 1 : i + degree + 1].mean() for i in range(n)])


def chord_parameters(points: FloatArray, what: str) -> FloatArray:
    """Parameters in [0, 1] by the lengths of chords; points (n, …)."""
    steps = np.sqrt(((np.diff(points, axis=0)) ** 2).reshape(points.shape[0] - 1, -1).sum(axis=1))
    same = np.flatnonzero(steps == 0.0)
    if same.size:
        raise ModelError(f"{what}[{same[0]}] and [{same[0] + 1}] coincide; points to interpolate must be distinct")
    return np.concatenate([[0.0], np.cumsum(steps) / steps.sum()])


def averaged_knots(u: FloatArray, degree: int) -> FloatArray:
    """Knots for interpolation at u: means of parameters ([Piegl1997] 9.8)."""
    n = u.size
    inside = [u[j : j + degree].mean() for j in range(1, n - degree)]
    return np.concatenate([np.full(degree + 1, u[0]), inside, np.full(degree + 1, u[-1])])


def fit_knots(u: FloatArray, points: int, degree: int) -> FloatArray:
    """Knots for a least-squares fit with fewer control points than data ([Piegl1997] 9.68)."""
    d = u.size / (points - degree)
    inside = []
    for j in range(1, points - degree):
        i = int(j * d)
        a = j * d - i
        inside.append((1.0 - a) * u[i - 1] + a * u[i])
    return np.concatenate([np.full(degree + 1, u[0]), inside, np.full(degree + 1, u[-1])])


def continuity(knots: FloatArray, degree: int, u: float) -> int:
    """Number of continuous derivatives at a knot."""
    return degree - int(np.count_nonzero(np.abs(knots - u) <= 1e-14 * max(1.0, abs(u))))
