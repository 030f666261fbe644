"""Contacts along lines and faces, pairs that are not isolated, saddle points, high degrees, far places, bad queries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import cardan as cd
import distance_judge as judge
from distance_judge import judged, random_pose, rotation
from layers import sampled

g = cd.geometry
LYING = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)  # the axis z of a cylinder becomes −y
TURNED = (0.0, 1.0, 0.0, 0.0)  # upside down


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 0.0, -1e-6, -1e-3, -0.05])
def test_a_cylinder_touches_a_plane_along_a_line(gap):
    """The regular pairs are a line, so the equations are singular."""
    pair = g.Distance(g.plane(), g.cylinder(1.0, 2.0)).closest((0.3, -0.2, 1.0 + gap, *LYING), signed=True)
    assert pair.gap == pytest.approx(gap, abs=1e-9)
    assert pair.distance == pytest.approx(max(gap, 0.0), abs=1e-9)


@pytest.mark.parametrize("gap", [0.01, 0.0, -0.01])
def test_a_face_lies_on_a_face(gap):
    pair = g.Distance(g.plane(2.0, 2.0), g.plane(3.0, 3.0)).closest((0.1, 0.2, gap, *TURNED), signed=True)
    assert pair.gap == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("gap", [0.1, 0.0, -0.1])
def test_a_ball_in_a_bowl_has_the_gap_of_the_flipped_bowl(gap):
    bowl = g.sphere(1.0).to_nurbs().flipped()  # its normals point inwards
    pair = g.Distance(bowl, g.sphere(0.5)).closest((0.5 - gap, 0.0, 0.0), signed=True)
    assert pair.gap == pytest.approx(gap, abs=1e-9)


CENTRES = {
    "sphere": (g.sphere(2.0), (0, 0, 0), 2.0),
    "sphere as NURBS": (g.sphere(2.0).to_nurbs(), (0, 0, 0), 2.0),
    "pole of a NURBS": (g.sphere(2.0).to_nurbs(), (0, 0, 3), 1.0),
    "near its pole": (g.sphere(2.0).to_nurbs(), (1e-9, 1e-5, 3), np.hypot(3.0, 1e-5) - 2.0),
    "torus axis": (g.torus(2.0, 0.5), (0, 0, 0.3), np.hypot(2.0, 0.3) - 0.5),
    "torus core": (g.torus(2.0, 0.5), (2, 0, 0), 0.5),
    "cylinder axis": (g.cylinder(1.0, 2.0), (0, 0, 0.3), 1.0),
    "apex of a cone": (g.cone(0.0, 1.0, (0, 2)), (0, 0, -1), 1.0),
    "apex of a NURBS": (g.cone(0.0, 1.0, (0, 2)).to_nurbs(), (0.1, 0.2, -1), np.sqrt(1.05)),
    "inside a cone": (g.cone(0.0, 1.0, (0, 2)), (0, 0, 1), np.sqrt(0.5)),
}


@pytest.mark.slow
@sampled("name", CENTRES, 5)
def test_points_that_are_equally_far_from_a_whole_curve_or_surface(name):
    shape, p, expected = CENTRES[name]
    pair = g.closest_point(shape, p)
    assert pair.distance == pytest.approx(expected, abs=1e-12)
    assert pair.distance - pair.margin <= expected and pair.margin < 1e-3


@pytest.mark.slow
def test_pairs_that_are_not_isolated_have_a_distance_and_no_derivative_of_points():
    query = g.Distance(g.sphere(1.0), g.sphere(0.4))
    pair = query.closest()
    assert pair.distance == pytest.approx(0.6, abs=1e-12) and pair.margin < 0.01
    with pytest.raises(cd.ModelError, match="is not isolated"):
        g.exact(query, None, pair)
    for a, b, pose, expected in (
        (g.plane(2, 2), g.plane(3, 3), (0, 0, 1), 1.0),
        (g.line(2), g.line(3), (0, 1, 0), 1.0),
        (g.circle(2.0), g.circle(1.0), (0, 0, 1), np.sqrt(2.0)),
        (g.plane(), g.torus(2.0, 0.5), (0, 0, 2), 1.5),
        (g.circle(2.0), g.circle(2.0), None, 0.0),
    ):
        found = g.closest_pair(a, b, pose)
        assert found.distance == pytest.approx(expected, abs=1e-12)
        assert found.distance - found.margin <= expected


def test_identical_surfaces_and_small_shifts():
    s = g.Surface(*judge.bumps(np.random.default_rng(0)))
    assert g.closest_pair(s, s).distance < 1e-12
    for height in (1e-9, 1e-3):
        pair = g.closest_pair(s, s, (0, 0, height), budget=5000)
        assert 0.0 < pair.distance <= height and pair.margin <= pair.distance + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("degree", [7, 15])
def test_pairs_of_high_degree(degree):
    x = np.linspace(0.0, 1.0, degree + 1)
    rng = np.random.default_rng(degree)
    a, b = (
        g.Surface(
            np.stack([*np.meshgrid(x, x, indexing="ij"), 0.3 * rng.normal(size=(len(x), len(x)))], -1), degree=degree
        )
        for _ in range(2)
    )
    for k in range(3):
        pose = random_pose(np.random.default_rng(k), 1.0)
        pair = g.closest_pair(a, b, pose)
        assert judge.pair_verdict(judged(a), judged(b), pose, pair) is None and pair.margin < 1e-8


@pytest.mark.parametrize("kind", ["sliver", "edge", "corner", "flat", "needle", "knots 1e-9 apart"])
def test_pairs_with_nearly_degenerate_patches(kind):
    rng = np.random.default_rng(5)
    points, weights = judge.bumps(rng)
    knots = None
    if kind == "edge":
        points[0] = points[0, 0]
    elif kind == "corner":
        points[:2, :2] = points[0, 0]
    elif kind == "knots 1e-9 apart":
        knots = [0, 0, 0, 0, 0.5, 0.5 + 1e-9, 0.5 + 2e-9, 0.7, 1, 1, 1, 1]
    else:
        points *= {"sliver": (1, 1e-6, 1e-6), "flat": (1, 1, 0), "needle": (1, 1e-3, 0)}[kind]
    a, b = g.Surface(points, weights, knots, knots), g.Surface(*judge.bumps(rng))
    for _ in range(3):
        pose = random_pose(rng, 1.0)
        pair = g.closest_pair(a, b, pose)
        assert judge.pair_verdict(judged(a), judged(b), pose, pair) is None and pair.margin < 1e-8


def test_margins_include_the_rounding_of_far_places():
    points, weights = judge.bumps(np.random.default_rng(0))
    near, p = g.closest_point(g.Surface(points, weights), (0.3, 0.4, 0.7)), np.array([0.3, 0.4, 0.7])
    for far in (1e3, 1e6):
        pair = g.closest_point(g.Surface(points + far, weights), p + far)
        assert abs(pair.distance - near.distance) <= pair.margin + near.margin
    pair = g.closest_point(g.Surface(points, weights), (1e9, 0, 0))
    assert abs(pair.distance - (1e9 - 1.0)) <= pair.margin < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_all_local_minima_of_two_curves_in_space(seed):
    """Saddle points with H_ii > 0 must be excluded too."""
    rng = np.random.default_rng(seed)
    a, b = g.Curve(rng.normal(size=(8, 3))), g.Curve(rng.normal(size=(8, 3)))
    pose = np.concatenate([[1.0, 0.0, 0.0], rng.normal(size=4)])
    R, t = rotation(pose[3:]), pose[:3]
    u = np.linspace(0.0, 1.0, 1201)
    d = np.linalg.norm(a.evaluate(u)[:, None] - (b.evaluate(u) @ R.T + t)[None], axis=2)
    around = np.pad(d, 1, constant_values=np.inf)
    least = np.min([around[i : i + 1201, j : j + 1201] for i in range(3) for j in range(3) if (i, j) != (1, 1)], axis=0)

    def cost(x):
        return 0.5 * ((a(x[0]) - R @ b(x[1]) - t) ** 2).sum()

    expected: list[float] = []
    for i, j in np.argwhere(d <= least):
        found = minimize(cost, (u[i], u[j]), bounds=[(0, 1)] * 2, options={"ftol": 1e-16, "gtol": 1e-11})
        value = float(np.sqrt(2.0 * found.fun))
        if all(abs(value - other) > 1e-5 for other in expected):
            expected.append(value)
    pairs = g.Distance(a, b).minima(pose)
    assert [pair.distance for pair in pairs] == pytest.approx(sorted(expected), abs=1e-6)


BAD = {
    "the tolerance is -1.0": lambda q: q.closest((3, 0, 0), tolerance=-1.0),
    "the tolerance is nan": lambda q: q.closest((3, 0, 0), tolerance=np.nan),
    "the budget is 0": lambda q: q.closest((3, 0, 0), budget=0),
    "the pose is [nan": lambda q: q.track(np.array([np.nan, 0, 0, 1, 0, 0, 0])),
    "quaternion that is not zero": lambda q: q.track(np.zeros(7)),
    "is no shape and no point": lambda q: g.Distance(q.a, object()),
    "the plane is unbounded": lambda q: g.tessellate(g.plane(), 0.1),
    "it needs more than 20,000,000 vertices": lambda q: g.tessellate(q.a, 1e-15),
    "only curves and untrimmed surfaces": lambda q: g.tessellate(judge.face(g), 0.1),
    "a face is trimmed": lambda q: g.area(judge.face(g)),
    "torus(2.0, 0.5) is no Curve or Surface": lambda q: g.to_json(q.a),
    "torus(2.0, 0.5) is no Curve;": lambda q: g.to_scipy(q.a),
    "they must be named": lambda q: g.from_json("[]"),
    "degrees of the curve are 3": lambda q: g.from_dict(
        {"kind": "curve", "degrees": 3, "knots": [[0, 1]], "points": [], "weights": []}
    ),
    "knots of the surface are [[0, 1]]": lambda q: g.from_dict(
        {"kind": "surface", "degrees": [1, 1], "knots": [[0, 1]], "points": [], "weights": []}
    ),
    "the kind is 'solid'": lambda q: g.from_dict(
        {"kind": "solid", "degrees": [1], "knots": [[0, 1]], "points": [], "weights": []}
    ),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_queries_are_named(words):
    query = g.Distance(g.torus(2.0, 0.5), g.sphere(0.3))
    query.closest((3.5, 0.0, 0.0))
    with pytest.raises(cd.ModelError) as caught:
        BAD[words](query)
    assert words in str(caught.value), str(caught.value)


@pytest.mark.slow
def test_loops_that_cross_within_one_part_in_a_thousand_or_coincide_are_named():
    s = g.Surface(*judge.bumps(np.random.default_rng(0)))
    t = np.linspace(0.0, 2.0 * np.pi, 2001)[:-1]
    ring = np.stack([0.5 + 0.3 * np.cos(t), 0.5 + 0.3 * np.sin(t)], axis=1)
    knot = ring.copy()
    knot[501], knot[503] = ring[503], ring[501]
    assert g.Face(s, [g.Curve(np.vstack([ring, ring[:1]]), degree=1)]).contains(0.5, 0.5)
    with pytest.raises(cd.ModelError, match="loop 0 crosses itself near"):
        g.Face(s, [g.Curve(np.vstack([knot, knot[:1]]), degree=1)])
    square = g.Curve([(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)], degree=1)
    with pytest.raises(cd.ModelError, match="loops 0 and 1 cross near"):
        g.Face(s, [square, square])
