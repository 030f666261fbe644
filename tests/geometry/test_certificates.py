"""Certificates, all local minima of two surfaces, a shape with itself, trimmed edges, contact."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
import distance_judge as judge
from cardan.geometry.tables import Ball, SearchOptions
from distance_judge import judged, random_pose, rotation
from layers import sampled

g = cd.geometry


def pair_of_patches(seed, reach):
    rng = np.random.default_rng(seed)
    a, b = g.Surface(*judge.bumps(rng)), g.Surface(*judge.bumps(rng))
    return a, b, random_pose(rng, reach)


def judged_minima(a, b, pose, within):
    """Distances of all local minima below ``within``: polished from a grid of starts, duplicates removed."""
    a, b = judged(a), judged(b)
    R, t = rotation(pose[3:]), pose[:3]
    (qa, pa), (qb, pb) = a.grid(13), b.grid(13)
    d = np.linalg.norm(pa[:, None] - (pb @ R.T + t)[None], axis=2)
    starts = np.argwhere(d < within + 0.1)
    starts = starts[:: max(1, len(starts) // 3000)]
    x, found = judge.polish(a, b, R, t, np.concatenate([qa[starts[:, 0]], qb[starts[:, 1]]], axis=1), steps=150)
    kept = []
    for k in np.argsort(found):
        if found[k] < within and all(np.abs(x[k] - x[j]).max() > 1e-5 for j in kept):
            kept.append(k)
    return x[kept], found[kept]


@pytest.mark.slow
def test_all_local_minima_of_two_surfaces():
    a, b, pose = pair_of_patches(0, 1.3)
    pairs = g.Distance(a, b).minima(pose, within=0.8)
    x, expected = judged_minima(a, b, pose, 0.8)
    assert len(expected) > 1
    assert [pair.distance for pair in pairs] == pytest.approx(expected, abs=1e-9)
    for pair, q in zip(pairs, x, strict=True):
        assert np.concatenate(pair.parameters) == pytest.approx(q, abs=1e-6)


def balls_of(query):
    """Centres x, scales σ, radii ρ and distances of the balls of the last search."""
    found = query._balls[: Ball.size * int(SearchOptions(query._options).balls)].reshape(-1, Ball.size)
    return [(ball[2:6], ball[6:10], ball[10], ball[11]) for ball in found if ball[10] > 0.0]


@pytest.mark.parametrize("seed", range(6))
def test_no_pair_within_a_ball_is_closer_than_its_centre(seed):
    a, b, pose = pair_of_patches(seed, 1.2)
    query = g.Distance(a, b)
    query.closest(pose)
    rng = np.random.default_rng(seed)
    one, two = judged(a), judged(b)
    balls = balls_of(query)
    assert balls
    for x, sigma, rho, distance in balls:
        d = rng.normal(size=(4000, 4))
        d *= rho * rng.uniform(0.0, 1.0, (4000, 1)) ** 0.25 / np.linalg.norm(d, axis=1, keepdims=True)
        q = x + d / sigma
        q = q[((q >= 0.0) & (q <= 1.0)).all(axis=1)]
        away = one(q[:, :2]) - (two(q[:, 2:]) @ rotation(pose[3:]).T + pose[:3])
        assert np.linalg.norm(away, axis=1).min() >= distance - 1e-12


@pytest.mark.parametrize(
    ("x", "y", "limit"),
    [
        (lambda u: u, lambda u: 50.0 + u**2 - u**3, 1.0),  # the third derivative: lower than at u = 0 beyond u = 1
        (lambda u: u - u**2, lambda u: 1.0 - 1e-3 * u**3, 1.0),  # the second derivative: it returns to x = 0 at u = 1
        (lambda u: u - u**2, lambda u: 10.0 - u**2 / 80.0, 0.5),  # 2f = 100 + u² ((1 − u)² − ¼) + …
    ],
)
def test_balls_are_nearly_as_large_as_they_may_be(x, y, limit):
    u = np.array([-1.0, -0.3, 0.6, 1.2])
    curve = g.Curve.interpolate(np.stack([x(u), y(u)], axis=1), parameters=u)
    query = g.Distance(curve, (0.0, 0.0))
    pair = query.closest()
    fine = np.linspace(-1.0, 1.2, 20001)
    assert pair.distance == pytest.approx(np.hypot(x(fine), y(fine)).min(), abs=1e-8)
    ((_, sigma, rho, _),) = [ball for ball in balls_of(query) if abs(ball[0][0]) < 1e-9]  # the first start
    assert 0.6 * limit < rho / sigma[0] < 1.001 * limit


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_all_local_minima_of_a_point_and_a_polynomial_are_roots_of_its_derivative(seed):
    """f' of a cubic is a polynomial of degree 5."""
    rng = np.random.default_rng(seed)
    p = [np.polynomial.Polynomial(rng.normal(size=4)) for _ in range(3)]
    if seed == 0:
        p = [np.polynomial.Polynomial(c) for c in ([0.0, 1.0, -1.0], [10.0, 0.0, -1.0 / 80.0], [0.0])]
    f = sum(q * q for q in p)
    roots = f.deriv().roots()
    u = roots[np.abs(roots.imag) < 1e-9].real
    u = [v for v in u if -2.0 < v < 2.0 and f.deriv(2)(v) > 0.0]
    u += [v for v, slope in ((-2.0, 1.0), (2.0, -1.0)) if slope * f.deriv()(v) > 0.0]
    at = np.linspace(-2.0, 2.0, 4)
    curve = g.Curve.interpolate(np.stack([q(at) for q in p], axis=1), parameters=at)
    found = [float(pair.parameters[0][0]) for pair in g.Distance(curve, (0.0, 0.0, 0.0)).minima()]
    assert sorted(found) == pytest.approx(sorted(u), abs=1e-6)


def test_minima_that_cannot_be_separated_are_refused():
    a, b, pose = pair_of_patches(1, 1.3)
    with pytest.raises(cd.ModelError, match="could not be separated within the budget"):
        g.Distance(a, b).minima(pose, budget=2000)
    with pytest.raises(cd.ModelError, match="not isolated"):
        g.Distance(g.torus(2.0, 0.5), (0.0, 0.0, 0.0)).minima(budget=5000)


@sampled("budget", [30, 100, 300], 2)
def test_the_margin_of_a_search_that_ends_early_is_valid(budget):
    unfinished = 0
    for seed in range(6):
        a, b, pose = pair_of_patches(seed, 1.2)
        pair = g.Distance(a, b).closest(pose, budget=budget)
        least = judge.closest(judged(a), judged(b), pose)
        assert pair.distance - pair.margin <= least + 1e-12
        assert pair.distance >= least - 1e-9
        unfinished += pair.margin > 1e-7
    assert unfinished or budget == 300


@pytest.mark.parametrize("tolerance", [0.02, 0.1])
def test_the_margin_counts_pairs_discarded_within_the_tolerance(tolerance):
    """Pairs of boxes whose bound is within the tolerance of the best distance are not searched."""
    for seed in range(6):
        a, b, pose = pair_of_patches(seed, 1.2)
        query = g.Distance(a, b)
        pair, least = query.closest(pose, tolerance=tolerance), query.closest(pose).distance
        assert pair.margin >= min(tolerance, pair.distance) * (1.0 - 1e-12)
        assert pair.distance - pair.margin <= least


def test_a_shape_with_itself():
    """Both sides of a query may be one object: they have a tree each."""
    a, _, pose = pair_of_patches(2, 1.2)
    pair = g.closest_pair(a, a, pose)
    assert judge.pair_verdict(judged(a), judged(a), pose, pair) is None
    copy = g.Surface(a.points, a.weights)
    assert g.closest_pair(a, copy, pose).distance == pair.distance
    for shape in (a, g.sphere(1.0), g.Curve([(0, 0, 0), (1, 2, 0), (2, -1, 1), (3, 0, 0)])):
        assert g.closest_pair(shape, shape, budget=2000).distance < 1e-12


@pytest.mark.slow
def test_a_face_and_a_ball_are_a_radius_closer_than_its_centre():
    """A trimmed edge in a closest pair of two shapes."""
    f = judge.face(g)
    query, edges = g.Distance(f, g.sphere(0.02)), 0
    for p in np.random.default_rng(8).uniform((0.4, 0.4, 0.0), (0.6, 0.6, 0.3), (6, 3)):
        pair, point = query.closest(p), g.closest_point(f, p)
        assert pair.distance == pytest.approx(point.distance - 0.02, abs=1e-9)
        edges += f.edge(pair) is not None
    assert edges


def test_the_rate_of_the_gap_at_contact_is_that_of_differences():
    query = g.Distance(g.torus(2.0, 0.5), g.ellipsoid(0.5, 0.4, 0.3))
    pose = np.array([2.9, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    turn = np.array([0.9, 0.2, -0.3, 0.1])
    pose[3:] = turn / np.linalg.norm(turn)

    def gap(x):
        return query.closest(x, signed=True).gap

    low, high = 2.5, 3.2
    for _ in range(60):
        pose[0] = 0.5 * (low + high)
        low, high = (pose[0], high) if gap(pose) < 0.0 else (low, pose[0])
    pair = query.closest(pose, signed=True)
    assert abs(pair.gap) < 1e-8
    rate = g.exact(query, pose, pair)[1]
    h = 1e-5
    for k in range(6):
        ends = [cd.geometry.pose_derivatives.moved(pose, "tangent", k, s) for s in (h, -h)]
        assert (gap(ends[0]) - gap(ends[1])) / (2.0 * h) == pytest.approx(rate[k], abs=1e-6)
