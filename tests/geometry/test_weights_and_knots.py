"""Uneven weights, knots of full multiplicity, third derivatives, lengths: against SciPy and closed forms."""

from __future__ import annotations

from itertools import pairwise, product
from math import factorial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import BSpline, NdBSpline
from scipy.special import ellipe

import cardan as cd
import distance_judge as judge
from cardan.geometry import checks
from distance_judge import judged

g = cd.geometry
ORDER = [(k - j, j) for k in range(4) for j in range(k + 1)]  # of the rows of derivatives: u, v, uu, uv, …, vvv


def series_quotient(a, w):
    """Taylor coefficients of a/w from those of a and w, up to the third order, by repeated elimination."""
    s = np.zeros_like(a)
    for i, j in ORDER:
        known = sum(w[k, m] * s[i - k, j - m] for k, m in product(range(i + 1), range(j + 1)) if k + m)
        s[i, j] = (a[i, j] - known) / w[0, 0]
    return s


@pytest.mark.parametrize("degree", [(3, 3), (2, 3), (5, 4)])
def test_derivatives_to_third_order_are_those_of_a_series_quotient(degree):
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(8, 9, 3)), rng.uniform(0.5, 2.0, (8, 9))
    s = g.Surface(points, weights, degree=degree)
    spline = NdBSpline(s.knots, np.concatenate([points * weights[..., None], weights[..., None]], -1), degree)
    for uv in rng.random((6, 2)):
        h = np.zeros((4, 4, 4))
        for i, j in ORDER:
            if i <= degree[0] and j <= degree[1]:
                h[i, j] = spline(uv[None], nu=(i, j))[0] / (factorial(i) * factorial(j))
        taylor = series_quotient(h[..., :3], h[..., 3])
        expected = np.array([taylor[i, j] * factorial(i) * factorial(j) for i, j in ORDER])
        for found in (s.derivatives(*uv, 3), s.evaluate(uv[None], 3)[0]):
            assert np.abs(found - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize("dimension", [2, 3])
def test_third_derivatives_of_curves_are_those_of_scipy(dimension):
    p = np.random.default_rng(2).normal(size=(11, dimension))
    for degree in (3, 5):
        c = g.Curve(p, degree=degree)
        u = np.linspace(0.01, 0.99, 37)
        expected = np.stack([BSpline(c.knots, p, degree)(u, k) for k in range(4)], axis=1)
        assert np.abs(c.evaluate(u, 3) - expected).max() < 1e-12 * np.abs(expected).max()


def test_a_knot_of_full_multiplicity_is_a_crease_and_an_edge_of_minima():
    """An interior knot that occurs degree times: the surface passes through that row of control points."""
    rng = np.random.default_rng(3)
    points, weights = judge.bumps(rng)
    points[3, :, 2] += 0.3  # a ridge
    knots = [0, 0, 0, 0, 0.4, 0.4, 0.4, 0.7, 1, 1, 1, 1]
    s = g.Surface(points, weights, knots, None)
    spline = NdBSpline(s.knots, np.concatenate([points * weights[..., None], weights[..., None]], -1), 3)

    def truth(uv):
        h = spline(np.atleast_2d(uv))
        return h[:, :3] / h[:, 3:]

    uv = np.stack([x.ravel() for x in np.meshgrid([0.0, 0.2, 0.4, 0.4 + 1e-9, 0.7, 1.0], np.linspace(0, 1, 7))], 1)
    assert np.abs(s.evaluate(uv) - truth(uv)).max() < 1e-13
    assert s(0.4, 0.0) == pytest.approx(points[3, 0], abs=1e-14)
    below, above = s.derivatives(0.4 - 1e-12, 0.5, 1)[1], s.derivatives(0.4, 0.5, 1)[1]
    assert np.linalg.norm(below - above) > 0.5
    assert len(s.to_bezier()) == 3 * 5
    with pytest.raises(cd.ModelError, match="occurs 3 times already"):
        s.insert(u=0.4)
    query, on_crease = g.Distance(s, (0.0, 0.0, 0.0)), 0
    x = np.linspace(0.0, 1.0, 201)  # u = 0.4 is one of the lines
    sampled = truth(np.stack([q.ravel() for q in np.meshgrid(x, x)], axis=1))
    for p in rng.uniform((0.2, 0.1, 0.4), (0.6, 0.9, 0.9), (8, 3)):
        pair = query.closest(p)
        least = np.linalg.norm(sampled - p, axis=1).min()
        assert least - 1e-3 < pair.distance <= least + 1e-12
        assert np.linalg.norm(truth(pair.parameters[0])[0] - p) == pytest.approx(pair.distance, abs=1e-12)
        on_crease += abs(pair.parameters[0][0] - 0.4) < 1e-9
    assert on_crease >= 3


def test_lengths_of_nurbs():
    assert g.arc_length(g.circle(2.0).to_nurbs())[0] == pytest.approx(4.0 * np.pi, rel=1e-13)
    length = g.arc_length(g.ellipse(3.0, 1.0).to_nurbs())[0]
    assert length == pytest.approx(12.0 * ellipe(8.0 / 9.0), rel=1e-10)
    parabola = g.Curve([(0, 0), (0.5, 0), (1, 1)], degree=2)  # y = x²
    exact = np.sqrt(5.0) / 2.0 + np.arcsinh(2.0) / 4.0
    assert g.arc_length(parabola)[0] == pytest.approx(exact, rel=1e-13)
    part = 0.5 * 0.6 * np.hypot(1.0, 1.2) + np.arcsinh(1.2) / 4.0
    assert g.arc_length(parabola, 0.0, 0.6)[0] == pytest.approx(part, rel=1e-13)
    with pytest.raises(cd.ModelError, match=r"the interval is \[0.5, 1.5\]"):
        g.arc_length(parabola, 0.5, 1.5)


def test_the_length_of_a_rational_curve_is_that_of_quadrature_within_its_error():
    rng = np.random.default_rng(4)
    p, w = rng.normal(size=(8, 3)), rng.uniform(0.5, 2.0, 8)
    c = g.Curve(p, w)
    h = BSpline(c.knots, np.column_stack([p * w[:, None], w]), 3)

    def speed(u):
        (*a, b), (*da, db) = h(u), h(u, 1)
        return np.linalg.norm((np.array(da) - np.array(a) / b * db) / b)

    expected = sum(quad(speed, a, b, epsabs=1e-12, epsrel=1e-12, limit=200)[0] for a, b in pairwise(c.breaks))
    length, error = g.arc_length(c)
    assert abs(length - expected) <= error + 1e-12 * expected
    assert error < 1e-5 * expected


def test_a_polyline_keeps_the_chord_error():
    c = g.Curve(np.random.default_rng(5).normal(size=(9, 2)))
    points, edges = g.tessellate(c, 0.01)
    u = np.linspace(0.0, 1.0, 20001)
    curve = BSpline(c.knots, c.points, 3)(u)
    a, b = points[edges[:, 0]], points[edges[:, 1]]
    middle = np.linalg.norm(curve[:, None] - 0.5 * (a + b), axis=2).min(axis=0)
    assert 1e-4 < middle.max() <= 0.01


# -- weights -----------------------------------------------------------------------------------------------------------


def uneven(ratio, count=8):
    """A bumpy surface whose weights are 1 or 1/ratio; the corner at the origin of u, v has a small one."""
    rng = np.random.default_rng(6)
    x = np.linspace(0.0, 1.0, count)
    points = np.stack([*np.meshgrid(x, x, indexing="ij"), 0.15 * rng.normal(size=(count, count))], axis=-1)
    weights = np.where(rng.random((count, count)) < 0.5, 1.0, 1.0 / ratio)
    weights[0, 0] = 1.0 / ratio
    weights[1, 1] = 1.0
    return points, weights


@pytest.mark.parametrize("degree", [1, 3, 5, 15])
@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e6])
def test_rounding_is_within_what_a_shape_states(ratio, degree):
    s = g.Surface(*uneven(ratio, degree + 3 if degree > 5 else 8), degree=degree)
    ends = np.concatenate([s.breaks[0], s.breaks[0][:-1] + 1e-9, np.linspace(0.01, 0.99, 12)])
    uv = np.stack([x.ravel() for x in np.meshgrid(ends, ends)], axis=1)
    error = np.abs(s.evaluate(uv) - judged(s)(uv)).max()
    assert 1e-3 * s.rounding < error <= s.rounding


def test_margins_include_the_rounding_of_uneven_weights():
    points, weights = uneven(1e6)
    s = g.Surface(points, weights)
    corner, truth = points[0, 0], judged(s)
    for step in ((-0.3, -0.2, -0.1), (-0.1, -0.1, 0.05), (-0.01, -0.02, 0.0)):
        p = corner + step
        pair = g.closest_point(s, p)
        least = min(np.linalg.norm(truth(pair.parameters[0])[0] - p), np.linalg.norm(corner - p))
        assert abs(pair.distance - least) <= s.rounding
        assert pair.distance - pair.margin <= least
        assert s.rounding <= pair.margin < 1e-7


def test_weights_over_ten_decades_are_refused_by_name():
    points, weights = uneven(1.0)
    weights[2, 5] = 1e10
    with pytest.raises(cd.ModelError, match=r"weights\[0, 0\] is 1.0 and \[2, 5\] is 10000000000.0; their ratio"):
        g.Surface(points, weights)
    with pytest.raises(cd.ModelError, match=r"weights\[1\] is 1e-07 and \[0\] is 1.0; their ratio"):
        g.Curve(points[0], [1.0, 1e-7, *[1.0] * 6])


def test_shapes_at_the_limit_of_weights_can_be_edited():
    s = g.Surface(*uneven(checks.MOST_UNEVEN))
    for other in (*s.to_bezier(), s.insert(u=0.3, v=0.7), s.flipped(), s.iso(u=0.3)):
        assert other.weights.max() / other.weights.min() <= checks.MOST_UNEVEN * (1.0 + 1e-6)


@pytest.mark.parametrize("ratio", [1.0, 10.0, 70.0])
def test_measures_do_not_depend_on_a_projective_change_of_the_parameter(ratio):
    """Weights w_i cⁱ of a Bézier curve or surface give the same points with another parameter."""
    rng = np.random.default_rng(3)
    knots = np.repeat([0.0, 1.0], 4)
    powers = ratio ** np.arange(4)
    P, w = rng.normal(size=(4, 3)), rng.uniform(0.5, 1.0, 4)
    length, error = g.arc_length(g.Curve(P, w * powers, knots))
    assert length == pytest.approx(g.arc_length(g.Curve(P, w, knots))[0], rel=1e-11)
    assert error <= 1e-11 * length
    P, w = rng.normal(size=(4, 4, 3)), rng.uniform(0.5, 1.0, (4, 4))
    size, error = g.area(g.Surface(P, w * powers[:, None], knots, knots))
    expected, rest = g.area(g.Surface(P, w, knots, knots))
    assert abs(size - expected) <= 1e-11 * size + error + rest
    assert error <= 1e-7 * size


@pytest.mark.parametrize("ratio", [1.0, 10.0, 70.0])
def test_mass_properties_do_not_depend_on_a_projective_change_of_the_parameter(ratio):
    """Two Bézier surfaces over the unit square, which meet along their edges."""
    knots = np.repeat([0.0, 1.0], 4)
    x, y = np.meshgrid(np.linspace(0.0, 1.0, 4), np.linspace(0.0, 1.0, 4), indexing="ij")
    z = 0.7 * np.pad(np.ones((2, 2)), 1)
    w = (ratio ** np.arange(4))[:, None] * np.ones((4, 4))
    above, below = (g.Surface(np.stack([x, y, s * z], axis=-1), w, knots, knots) for s in (1.0, -2.0))
    mass = g.mass_properties([above, below.flipped()], density=2.0)
    volume = 3.0 * 0.7 * 0.25  # ∫z dx dy = ¹⁄₁₆ Σ z_ij of a polynomial surface, for x and y along the parameters
    assert mass.volume == pytest.approx(volume, rel=1e-11)
    assert mass.center == pytest.approx([0.5, 0.5, mass.center[2]], abs=1e-11)
    even = g.mass_properties([g.Surface(s.points, None, knots, knots) for s in (above, below.flipped())], density=2.0)
    assert mass.inertia == pytest.approx(even.inertia, rel=1e-11, abs=1e-12)


def test_a_length_that_is_not_resolved_has_a_stated_error():
    """|c'| of a curve with a cusp inside a span is not smooth; the length of (u², u³) is known."""
    curve = g.Curve.interpolate([(u**2, u**3) for u in (-1.0, -0.3, 0.5, 1.2)], parameters=(-1.0, -0.3, 0.5, 1.2))
    exact = ((4.0 + 9.0) ** 1.5 - 8.0 + (4.0 + 9.0 * 1.44) ** 1.5 - 8.0) / 27.0
    length, error = g.arc_length(curve)
    assert abs(length - exact) <= error + 1e-13
    assert error < 1e-10
