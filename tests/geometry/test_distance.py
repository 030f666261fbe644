"""Closest pairs against brute force with polishing, closed forms, and differences."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial import cKDTree

import cardan as cd
import distance_judge as judge
from cardan.geometry.distance import pose_of
from cardan.math import euler
from distance_judge import judged, random_pose, rotation
from layers import sampled

g = cd.geometry
KNOTS = (0, 0, 0, 0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1)


def bumpy(rng):
    return g.Surface(*judge.bumps(rng))


def verdict(a, b, pose, pair):
    return judge.pair_verdict(judged(a), judged(b), pose, pair)


@pytest.mark.parametrize("seed", range(25))
def test_the_closest_pair_of_bumpy_patches_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    a, b = bumpy(rng), bumpy(rng)
    pose = random_pose(rng, rng.uniform(0.6, 1.6))
    pair = g.closest_pair(a, b, pose)
    assert verdict(a, b, pose, pair) is None
    assert pair.margin < 1e-7


@pytest.mark.long
def test_a_thousand_pairs_and_a_thousand_poses_are_those_of_brute_force():
    rng = np.random.default_rng(2024)
    fixed = bumpy(rng), bumpy(rng)
    kept = g.Distance(*fixed)
    faults, places = [], set()
    for k in range(2000):
        a, b = (bumpy(rng), bumpy(rng)) if k < 1000 else fixed
        pose = random_pose(rng, rng.uniform(0.6, 1.6))
        pair = (g.Distance(a, b) if k < 1000 else kept).closest(pose)
        places |= {(k < 1000, int((np.minimum(q, 1.0 - q) < 1e-12).sum())) for q in pair.parameters}
        fault = verdict(a, b, pose, pair)
        faults += [f"case {k}: {fault}"] if fault else []
    assert not faults
    assert len(places) == 6  # inside, edges and corners, of both


@pytest.mark.slow
def test_the_judge_refutes_a_pair_that_is_not_the_closest():
    refuted = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        a, b = bumpy(rng), bumpy(rng)
        pose = random_pose(rng, rng.uniform(0.6, 1.6))
        query = g.Distance(a, b)
        best = query.closest(pose)
        for x in rng.uniform(0.1, 0.9, (4, 4)):
            local = query.track(pose, g.Pair(0.0, best.points, (x[:2], x[2:]), 0.0, best.patches))
            assert (verdict(a, b, pose, local) is None) == (local.distance <= best.distance + judge.CLOSER)
            refuted += local.distance > best.distance + judge.CLOSER
        best.distance -= 1e-6
        assert "that of its points" in verdict(a, b, pose, best)
    assert refuted > 5


def test_closed_forms():
    assert g.closest_point(g.sphere(2.0), (3, 4, 0)).distance == pytest.approx(3.0, abs=1e-14)
    assert g.closest_pair(g.plane(), g.sphere(0.5), (9, 2, 3)).distance == pytest.approx(2.5, abs=1e-14)
    assert g.closest_pair(g.torus(2, 0.5), g.sphere(0.5), (4, 0, 0)).distance == pytest.approx(1.0, abs=1e-14)
    assert g.closest_pair(g.circle(1), g.circle(0.5), (0, 3, 0)).distance == pytest.approx(1.5, abs=1e-14)
    assert g.closest_pair(g.cylinder(1), g.sphere(0.5), (3, 4, 7)).distance == pytest.approx(3.5, abs=1e-14)
    assert g.closest_pair(g.cone(1, 1, (0, 5)), g.sphere(0.1), (4, 0, 1)).distance == pytest.approx(np.sqrt(2) - 0.1)


def test_the_seam_and_the_pole_are_no_places():
    rng = np.random.default_rng(3)
    for shape in (g.sphere(1.0), g.torus(2.0, 0.4), g.cylinder(1.0, 3.0)):
        axis = np.array([0.0, 0.0, 1.0])
        for p in [(3, 1e-9, 0.1), (3, -1e-9, 0.1), *rng.normal(size=(3, 3)) * 3]:
            turned = euler.matrix(euler.from_axis_angle(axis, 1.0)) @ p
            first, second = g.closest_point(shape, p).distance, g.closest_point(shape, turned).distance
            assert first == pytest.approx(second, abs=1e-13)


def test_surfaces_of_low_continuity_and_creases():
    rng = np.random.default_rng(5)
    x, y = np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 6), indexing="ij")
    net = np.stack([x, y, 0.2 * rng.normal(size=(6, 6))], -1)
    for degree in (1, 2):
        s = g.Surface(net, degree=degree)
        j = judged(s)
        points = j.grid(301)[1]
        for p in rng.uniform(-0.3, 1.3, (8, 3)):
            pair = g.closest_point(s, p)
            sampled = np.linalg.norm(points - p, axis=1).min()
            assert pair.distance <= sampled + 1e-12
            assert sampled - pair.distance < 5e-3
            assert np.linalg.norm(s(*pair.parameters[0]) - p) == pytest.approx(pair.distance, abs=1e-12)


def nearest(s, p):
    """The least distance of a point to a surface, by the judge."""
    truth = judged(s)
    uv, points = truth.grid(121)
    d = ((points - p) ** 2).sum(axis=1)
    starts = np.array(judge.apart(uv[np.argsort(d)[:3000]], 30, 0.02))
    x = np.pad(starts, ((0, 0), (0, 2)))
    return min(judge.polish(truth, judge.Still(p), np.eye(3), np.zeros(3), x)[1].min(), np.sqrt(d.min()))


def hostile(kind):
    """A surface over the unit square: with a pole, in other units, of high degree, with very uneven weights."""
    rng = np.random.default_rng(11)
    points, weights = judge.bumps(rng)
    if kind == "pole":
        points[:, 0] = points[0, 0]
    elif kind == "degree 15":
        x = np.linspace(0, 1, 18)
        points = np.stack([*np.meshgrid(x, x, indexing="ij"), 0.4 * rng.normal(size=(18, 18))], -1)
        return g.Surface(points, rng.uniform(0.5, 2.0, (18, 18)), degree=15), 1.0
    elif kind == "weights 1e6":
        weights = 10.0 ** rng.uniform(-3, 3, (8, 8))
    scale = {"micrometres": 1e6, "megametres": 1e-6}.get(kind, 1.0)
    return g.Surface(points * scale, weights), scale


@pytest.mark.parametrize("kind", ["pole", "degree 15", "weights 1e6", "micrometres", "megametres"])
def test_hostile_surfaces(kind):
    s, scale = hostile(kind)
    query = g.Distance(s, (0.0, 0.0, 0.0))
    for p in scale * np.random.default_rng(2).uniform((-0.3, -0.3, -0.5), (1.3, 1.3, 0.5), (5, 3)):
        pair = query.closest(p)
        assert pair.distance <= nearest(s, p) + 1e-9 * scale
        assert np.linalg.norm(judged(s)(pair.parameters[0])[0] - p) == pytest.approx(pair.distance, abs=1e-11 * scale)
        assert pair.margin <= 1e-7 * scale


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_pairs_do_not_depend_on_the_unit(scale):
    rng = np.random.default_rng(4)
    a, b = bumpy(rng), bumpy(rng)
    A, B = (g.Surface(s.points * scale, s.weights) for s in (a, b))
    for _ in range(4):
        pose = random_pose(rng, 1.2)
        scaled = np.concatenate([scale * pose[:3], pose[3:]])
        one, two = g.closest_pair(a, b, pose), g.closest_pair(A, B, scaled)
        assert two.distance / scale == pytest.approx(one.distance, abs=1e-12)
    gap = g.Distance(g.sphere(scale), g.sphere(0.5 * scale)).closest((0, 0, 1.45 * scale), signed=True).gap
    assert gap / scale == pytest.approx(-0.05, abs=1e-12)


@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-5])
def test_the_direction_of_a_small_gap_has_the_digits_that_the_points_allow(gap):
    """(S² − S¹)/g is the common normal of two ellipsoids, within rounding of the points over the gap."""
    rng = np.random.default_rng(3)
    axes = np.array([[1.0, 0.8, 0.9], [0.7, 1.1, 0.6]])
    distance = g.Distance(*(g.ellipsoid(*row) for row in axes))
    for _ in range(100):
        p = euler.normalize(rng.normal(size=4))
        R = np.asarray(euler.matrix(p))
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        ends = [row**2 * m / np.linalg.norm(row * m) for row, m in zip(axes, (n, -R.T @ n), strict=True)]
        pair = distance.closest(np.concatenate([ends[0] + gap * n - R @ ends[1], p]))
        found = (pair.points[1] - pair.points[0]) / pair.distance
        assert np.abs(found - n).max() < 1e-11 + 1e-14 / gap


def test_surfaces_that_cross_have_no_distance():
    """Case 1414 of the thousand poses ended at 2e-9 while its Hessian became singular."""
    rng = np.random.default_rng(7)
    a, b = bumpy(rng), bumpy(rng)
    query = g.Distance(a, b)
    found = [query.closest(random_pose(rng, rng.uniform(0.05, 0.3))).distance for _ in range(60)]
    assert max(found) < 1e-13


@pytest.mark.parametrize(
    "curve",
    [
        g.Curve([(0, 0), (1, 1), (0, 1), (1, 0)]),
        g.Curve([(0, 0), (1, 1), (1, 1), (1, 1), (2, 0)]),
        g.traced(lambda u: (u * u, u * u * u), (-1.0, 1.0)),
    ],
)
def test_curves_with_cusps(curve):
    points = curve.evaluate(np.linspace(*curve.bounds[0], 100001))[:, :2]
    for p in [*np.random.default_rng(1).uniform(-0.5, 1.5, (10, 2)), (-0.3, 0.0), (1.0, 1.2)]:
        sampled = np.linalg.norm(points - p, axis=1).min()
        assert sampled - 1e-7 < g.closest_point(curve, p).distance <= sampled + 1e-12


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7, 0.0, -1e-3, -0.05])
def test_the_signed_gap_is_right_through_contact(gap):
    a, b = g.sphere(1.0), g.ellipsoid(0.5, 0.4, 0.3)
    n = np.array([0.3, -0.5, 0.8])
    n /= np.linalg.norm(n)
    turn = euler.from_axis_angle((1, 2, 3), 0.8)
    R = euler.matrix(turn)
    m = -(R.T @ n) * b.axes  # the point of b with the normal −n
    m /= np.linalg.norm(m)
    pose = np.concatenate([(1.0 + gap) * n - R @ (b.axes * m), turn])
    pair = g.Distance(a, b).closest(pose, signed=True)
    assert pair.gap == pytest.approx(gap, abs=2e-8)
    assert pair.distance == pytest.approx(max(gap, 0.0), abs=2e-8)


def test_tracking_follows_the_pair_through_contact():
    query = g.Distance(g.torus(2.0, 0.5), g.sphere(0.3))
    pair = query.closest((3.5, 0.2, 0.1))
    for z in np.linspace(0.1, 1.2, 60):
        pair = query.track(np.array([3.5 - 0.3 * z, 0.2, z, 1.0, 0, 0, 0]))
    x, y = 3.5 - 0.36, 0.2
    assert pair.distance == pytest.approx(np.hypot(np.hypot(x, y) - 2.0, 1.2) - 0.8, abs=1e-12)
    near = query.regular((2.75, 0.0, 0.0), query.closest((2.9, 0.0, 0.0)))
    assert near.gap == pytest.approx(-0.05, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_all_local_minima_of_a_curve(seed):
    rng = np.random.default_rng(seed)
    c = g.Curve(rng.normal(size=(9, 2)))
    found = [pair.distance for pair in g.Distance(c, (0.1, 0.2)).minima()]
    d = np.linalg.norm(c.evaluate(np.linspace(0, 1, 200001)) - (0.1, 0.2), axis=1)
    padded = np.concatenate([[np.inf], d, [np.inf]])
    expected = np.sort(d[(padded[1:-1] < padded[:-2]) & (padded[1:-1] < padded[2:])])
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("count", [15, pytest.param(1000, marks=pytest.mark.long)])
def test_a_trimmed_face_with_holes(count):
    f = judge.face(g)
    truth = judge.Plate(judged(f.surface))
    query = g.Distance(f, (0.0, 0.0, 0.0))
    rng = np.random.default_rng(8)
    edges, faults = 0, []
    for p in rng.uniform((-0.2, -0.2, -0.4), (1.2, 1.2, 0.4), (count, 3)):
        pair = query.closest(p)
        edge = f.edge(pair)
        q = pair.parameters[0] if edge is None else edge.curve(float(pair.parameters[0][0]))
        fault = truth.verdict(p, pair.distance, q)
        faults += [f"{p}: {fault}"] if fault else []
        edges += edge is not None
    assert not faults
    assert count / 5 < edges < count


def circle_of_parameters(radius):
    """A circle around (0.5, 0.5) in the parameter plane."""
    corners = np.array([[1, 0], [1, 1], [0, 1], [-1, 1], [-1, 0], [-1, -1], [0, -1], [1, -1], [1, 0]], dtype=float)
    weights = [1.0, *[np.sqrt(0.5), 1.0] * 4]
    return g.Curve(0.5 + radius * corners, weights, [0, 0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1, 1, 1], degree=2)


@pytest.mark.slow
@sampled("aside", [1e-9, 0.0, 1e-6], 1)
def test_above_the_centre_of_a_hole_all_points_of_its_edge_are_the_closest(aside):
    plate = g.Surface(np.array([[[0, 0, 0], [0, 1, 0]], [[1, 0, 0], [1, 1, 0]]], dtype=float), degree=1)
    ring = g.Face(plate, [[circle_of_parameters(0.4)], [circle_of_parameters(0.2)]])
    expected = np.hypot(0.2 - aside, 0.3)
    for partner, pose, radius in ((0.5 + aside, 0.5, 0.3), None, 0.0), (g.sphere(0.05), (0.5 + aside, 0.5, 0.3), 0.05):
        pair = g.closest_pair(ring, partner, pose)
        assert -1e-12 < pair.distance - (expected - radius) < 1e-9  # the tolerance of the search
        assert pair.margin < 1e-2  # it is not zero: boxes across the edge are left when the budget ends


@pytest.mark.slow
def test_a_trimmed_wave_and_a_torus():
    """Judged by samples of the disc and the closed form of the torus."""
    x, y = np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6), indexing="ij")
    wave = g.Surface(np.stack([x, y, 0.3 * np.sin(3 * x + y) * np.cos(2 * y)], -1))
    query = g.Distance(g.Face(wave, [[circle_of_parameters(0.3)]]), g.torus(0.6, 0.2))
    r, t = np.meshgrid(0.3 * np.linspace(0, 1, 201), np.linspace(0, 2 * np.pi, 721), indexing="ij")
    samples = wave.evaluate(np.stack([0.5 + r * np.cos(t), 0.5 + r * np.sin(t)], -1).reshape(-1, 2))
    rng = np.random.default_rng(5)
    for _ in range(8):
        p = euler.normalize(rng.normal(size=4))
        at = 2.0 * rng.normal(size=3)
        local = (samples - at) @ euler.matrix(p)
        sampled = np.abs(np.hypot(np.hypot(local[:, 0], local[:, 1]) - 0.6, local[:, 2]) - 0.2).min()
        assert sampled - 1e-3 < query.closest((*at, *p)).distance <= sampled + 1e-12


def test_bad_domains_are_named():
    s = bumpy(np.random.default_rng(0))
    with pytest.raises(cd.ModelError, match="at least one loop"):
        g.Face(s, [])
    with pytest.raises(cd.ModelError, match="loop 0 has no curves"):
        g.Face(s, [[]])
    eight = g.Curve([(0.2, 0.2), (0.8, 0.8), (0.8, 0.2), (0.2, 0.6), (0.2, 0.2)], degree=1)
    with pytest.raises(cd.ModelError, match="loop 0 crosses itself"):
        g.Face(s, [eight])
    with pytest.raises(cd.ModelError, match="loop 0 encloses no area"):
        g.Face(s, [g.Curve([(0.2, 0.2), (0.8, 0.8), (0.2, 0.2)], degree=1)])
    with pytest.raises(cd.ModelError, match="loop 0 is open"):
        g.Face(s, [g.Curve([(0.2, 0.2), (0.8, 0.8), (0.2, 0.5)], degree=1)])
    square = [(0.2, 0.2), (0.6, 0.2), (0.6, 0.6), (0.2, 0.6), (0.2, 0.2)]
    moved = [(x + 0.2, y + 0.1) for x, y in square]
    with pytest.raises(cd.ModelError, match="loops 0 and 1 cross near"):
        g.Face(s, [g.Curve(square, degree=1), g.Curve(moved, degree=1)])
    with pytest.raises(cd.ModelError, match="leaves the domain"):
        g.Face(s, [g.Curve([(0.2, 0.2), (1.8, 0.8), (0.2, 0.5), (0.2, 0.2)], degree=1)])


@pytest.mark.parametrize("chart", ["tangent", "renormalise", "drop", "angles"])
def test_exact_derivatives_are_richardson_differences(chart):
    from cardan.geometry.pose_derivatives import chart_map

    rng = np.random.default_rng(1)
    query = g.Distance(g.torus(2.0, 0.5), g.ellipsoid(0.5, 0.4, 0.3))
    for _ in range(3):
        pose = np.concatenate([rng.normal(3.0, 0.8, 3), rng.normal(size=4)])
        pose[3:] /= np.linalg.norm(pose[3:])
        points, rate = g.exact(query, pose, query.closest(pose))
        found = g.differences(query, pose, chart=chart, h=1e-3)
        expected = points @ chart_map(pose, chart)
        assert np.abs(found - expected).max() < 1e-7 * np.abs(expected).max()
    assert rate.shape == (6,)


@pytest.mark.parametrize(("scheme", "order"), [("forward", 1), ("central", 2), ("richardson", 4)])
def test_the_error_of_differences_has_its_order(scheme, order):
    query = g.Distance(g.torus(2.0, 0.5), g.ellipsoid(0.5, 0.4, 0.3))
    pose = np.array([3.1, 0.7, 0.9, 0.5, 0.5, -0.5, 0.5])
    exact = g.exact(query, pose, query.closest(pose))[0]
    errors = [np.abs(g.differences(query, pose, scheme=scheme, h=h) - exact).max() for h in (0.04, 0.02)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


def test_curves_with_curves_and_surfaces():
    rng = np.random.default_rng(6)
    c, d, s = g.Curve(rng.random((8, 3))), g.Curve(rng.random((7, 3)) + np.array([0.4, 0, 0])), bumpy(rng)
    u = np.linspace(0.0, 1.0, 1501)
    uv = judge.judged(s).grid(301)[1]
    pose = random_pose(rng, 0.9)
    R, t = rotation(pose[3:]), pose[:3]
    for a, b, pa, pb in ((c, d, c.evaluate(u), d.evaluate(u)), (s, c, uv, c.evaluate(u)), (c, s, c.evaluate(u), uv)):
        pair = g.closest_pair(a, b, pose)
        sampled = cKDTree(pb @ R.T + t).query(pa)[0].min()
        assert sampled - 3e-3 < pair.distance <= sampled + 1e-12
        one, two = a(*pair.parameters[0]), R @ b(*pair.parameters[1]) + t
        assert np.linalg.norm(one - two) == pytest.approx(pair.distance, abs=1e-12)
        assert pair.margin < 1e-7


def test_differences_accept_any_object_with_closest_pair():
    class Query:
        def closest_pair(self, pose):
            return g.closest_pair(g.sphere(1.0), g.sphere(0.5), pose)

    pose = np.array([3.0, 0, 0, 1, 0, 0, 0])
    found = g.differences(Query(), pose, scheme="central", h=1e-4)
    assert found[0, :, :3] == pytest.approx(np.diag([0, 1 / 3, 1 / 3]), abs=1e-6)
    with pytest.raises(cd.ModelError, match="no closest_pair"):
        g.differences(object(), pose)


def ball(n, rng):
    """A closed mesh: the convex hull of random points on a bumpy sphere."""
    from scipy.spatial import ConvexHull

    p = rng.normal(size=(n, 3))
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    faces = ConvexHull(p).simplices
    t = p[faces]
    inward = np.einsum("ij,ij->i", np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]), t.mean(axis=1)) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return g.Mesh(p * (1.0 + 0.2 * np.sin(5.0 * p[:, :1])), faces)


@pytest.mark.parametrize("count", [6, pytest.param(200, marks=pytest.mark.long)])
def test_pairs_of_meshes_are_those_of_brute_force(count):
    rng = np.random.default_rng(9)
    a, b = ball(100, rng), ball(80, rng)
    touching = 0
    for _ in range(count):
        pose = random_pose(rng, rng.uniform(1.6, 3.0))
        pair = a.closest_pair(b, pose)
        moved = b.vertices @ rotation(pose[3:]).T + pose[:3]
        expected = judge.mesh_distance(a.vertices[a.faces], moved[b.faces])
        assert pair.distance == pytest.approx(expected, abs=1e-12)
        touching += expected == 0.0
    assert 0 < touching < count


@pytest.mark.slow
def test_a_mesh_keeps_its_answers_in_a_copy():
    mesh = ball(50, np.random.default_rng(0))
    copied = pickle.loads(pickle.dumps(mesh))
    assert copied.closest_point((1, 2, 3)).distance == mesh.closest_point((1, 2, 3)).distance


def test_full_trees_forget_earlier_searches_and_stay_right(monkeypatch):
    monkeypatch.setattr(g.distance, "FORGET", 1000)
    rng = np.random.default_rng(3)
    a, b = bumpy(rng), bumpy(rng)
    query = g.Distance(a, b)
    most = 0
    for _ in range(40):
        pose = random_pose(rng, rng.uniform(0.6, 1.2))
        assert query.closest(pose).distance == pytest.approx(g.Distance(a, b).closest(pose).distance, abs=1e-9)
        assert query.closest(pose).margin < 1e-7
        most = max(most, *(int(tree.count[0]) for tree in query.trees))
    assert most > 500 and max(tree.capacity for tree in query.trees) <= 4000


def test_queries_that_share_memory_do_not_share_results():
    rng = np.random.default_rng(3)
    shapes, pose = [bumpy(rng) for _ in range(4)], random_pose(rng, 1.2)
    expected = [g.Distance(a, shapes[0]).closest(pose).distance for a in shapes[1:]]
    queries = [g.Distance(a, shapes[0]) for a in shapes[1:]]
    for _ in range(2):
        assert [query.closest(pose).distance for query in queries] == expected
        g.Distance(shapes[3], shapes[2]).closest(pose)


def test_meshes_are_those_of_brute_force():
    rng = np.random.default_rng(4)
    a, b = ball(300, rng), ball(200, rng)
    assert a.is_closed
    fine = a.vertices[a.faces]
    w = rng.dirichlet(np.ones(3), 60)
    samples = np.einsum("sk,fkc->fsc", w, fine).reshape(-1, 3)
    for p in rng.normal(size=(20, 3)) * 2.0:
        pair = a.closest_point(p, signed=True)
        least = np.linalg.norm(samples - p, axis=1).min()
        assert pair.distance <= least + 1e-12
        assert least - pair.distance < 0.05
        assert (pair.gap < 0) == (a.winding(p) > 0.5)
    for _ in range(10):
        pose = random_pose(rng, 3.0)
        pair = a.closest_pair(b, pose)
        moved = g.Mesh(b.vertices @ rotation(pose[3:]).T + pose[:3], b.faces)
        corners = [a.closest_point(p).distance for p in moved.vertices]
        corners += [moved.closest_point(p).distance for p in a.vertices]
        least = min(corners)
        assert pair.distance <= least + 1e-12
        assert pair.distance > least - 0.05
        assert np.linalg.norm(pair.points[0] - pair.points[1]) == pytest.approx(pair.distance, abs=1e-12)
    assert a.closest_pair(b, (0.9, 0, 0)).distance == 0.0
    assert a.mass_properties().volume == pytest.approx(4.19, rel=0.1)


@pytest.mark.nojit
@pytest.mark.parametrize("pose", [(0.0, np.nan, 0.0), np.full((4, 4), np.inf), (0, 0, 0, np.nan, 0, 0, 0)])
def test_a_pose_that_is_not_finite_is_refused_as_such(pose):
    with pytest.raises(cd.ModelError, match=r"the pose is .*; it(s numbers)? must be finite"):
        pose_of(pose)


def sheet_with_hole(ways=(1, 1)):
    """A sheet of 2 m by 2 m with the normal +z and a hole of 0.5 m; ways: the direction of each loop."""
    sheet = g.Surface([[(-1, -1, 0), (-1, 1, 0)], [(1, -1, 0), (1, 1, 0)]], degree=1)
    outer = g.Curve([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)], degree=1)
    loops = outer, circle_of_parameters(0.25)
    return g.Face(sheet, [[c if way > 0 else c.reversed()] for c, way in zip(loops, ways, strict=True)])


@pytest.mark.slow
@sampled("ways", [(1, -1), (1, 1), (-1, 1), (-1, -1)], 1)
def test_the_sign_of_a_gap_at_an_edge_is_the_side_of_the_normal(ways):
    face = sheet_with_hole(ways)
    whole = g.Distance(face.surface, (0.0, 0.0, 0.0))
    query = g.Distance(face, (0.0, 0.0, 0.0))
    ball = g.Distance(face, g.sphere(0.2))
    for side in (1.0, -1.0):
        beside = query.closest((3.0, 0.0, side), signed=True)
        assert beside.gap == pytest.approx(side * np.sqrt(5.0), abs=1e-9)
        assert whole.closest((3.0, 0.0, side), signed=True).gap == pytest.approx(beside.gap, abs=1e-9)
        assert whole.closest((0.7, 0.6, side), signed=True).gap == pytest.approx(side, abs=1e-9)
        assert query.closest((0.7, 0.6, side), signed=True).gap == pytest.approx(side, abs=1e-9)
        for x, y in ((0.1, 0.0), (-0.1, 0.2), (0.0, -0.3)):
            far = np.hypot(0.5 - np.hypot(x, y), 1.0)
            assert query.closest((x, y, side), signed=True).gap == pytest.approx(side * far, abs=1e-9)
            assert ball.closest((x, y, side), signed=True).gap == pytest.approx(side * (far - 0.2), abs=1e-9)


def test_a_ball_that_crosses_only_the_edge_of_a_hole_has_no_gap():
    """The point below its centre is in the hole; beside the hole a smaller ball penetrates the sheet."""
    query = g.Distance(sheet_with_hole(), g.sphere(0.6))
    at_the_hole = query.closest((0.0, 0.02, 0.2), signed=True)
    assert at_the_hole.distance < 1e-9 and at_the_hole.gap is None
    beside = g.Distance(sheet_with_hole(), g.sphere(0.1))
    assert beside.closest((0.8, 0.7, 0.06), signed=True).gap == pytest.approx(-0.04, abs=1e-9)
