"""Evaluation, exact shapes, editing, measures and bad input."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import BSpline, NdBSpline, make_interp_spline

import cardan as cd
from cardan.geometry import basis
from cardan.geometry import intervals as ranges

g = cd.geometry
RNG = np.random.default_rng(7)
POINTS, WEIGHTS = RNG.normal(size=(9, 10, 3)), RNG.uniform(0.5, 2.0, (9, 10))


def surface(degree=3):
    return g.Surface(POINTS, WEIGHTS, degree=degree)


@pytest.mark.parametrize("degree", [(1, 1), (2, 3), (3, 3), (4, 2), (5, 7), (8, 9)])
def test_a_surface_is_that_of_scipy(degree):
    s = surface(degree)
    h = NdBSpline(s.knots, np.concatenate([POINTS * WEIGHTS[..., None], WEIGHTS[..., None]], -1), degree)
    uv = RNG.random((300, 2))
    expected = h(uv)
    assert np.abs(s.evaluate(uv) - expected[:, :3] / expected[:, 3:]).max() < 1e-12
    u, v = uv[0]
    assert np.abs(s.derivatives(u, v, 2) - s.evaluate(uv[:1], 2)[0]).max() == 0.0


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 15])
def test_a_curve_is_that_of_scipy(degree):
    p = RNG.normal(size=(20, 3))
    c = g.Curve(p, degree=degree)
    u = np.linspace(0.0, 1.0, 401)
    assert np.abs(c.evaluate(u) - BSpline(c.knots, p, degree)(u)).max() < 1e-12
    assert np.abs(g.to_scipy(c)(u) - c.evaluate(u)).max() < 1e-12
    assert np.abs(g.from_scipy(g.to_scipy(c)).evaluate(u) - c.evaluate(u)).max() < 1e-14


def test_parameters_may_be_read_only():
    """As the arrays of a state are."""
    u = np.linspace(0.0, 1.0, 5)
    expected = g.circle(1.0).evaluate(u)
    u.flags.writeable = False
    assert (g.circle(1.0).evaluate(u) == expected).all()


SHAPES = {
    "bicubic": surface(),
    "degree 4": surface((4, 5)),
    "periodic": g.Surface(POINTS, WEIGHTS, periodic=(True, False)),
    "curve": g.Curve(POINTS[0], WEIGHTS[0]),
    "circle": g.circle(2.0),
    "ellipse": g.ellipse(1.0, 3.0),
    "line": g.line(2.0),
    "plane": g.plane(2.0, 3.0),
    "cylinder": g.cylinder(1.5, 2.0),
    "cone": g.cone(1.0, 0.4, (0.0, 2.0)),
    "torus": g.torus(2.0, 0.5),
    "traced curve": g.traced(lambda u: (cd.cos(u) + u * cd.sin(u), cd.sin(u) - u * cd.cos(u)), (0.1, 2.0)),
    "traced surface": g.traced(lambda u, v: (u, v, cd.exp(u * v) / (1.0 + u * u)), (0.0, 1.0), (-1.0, 1.0)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_are_differences(name):
    s = SHAPES[name]
    q = np.array([[low + (high - low) * x for low, high in s.bounds] for x in (0.237, 0.411, 0.843)])
    exact = s.evaluate(q, 3)
    h = 1e-5
    orders = {1: [(0, 1), (1, 2), (2, 3)], 2: [(0, 1), (1, 3), (2, 4), (3, 6), (4, 7), (5, 8)]}[s.freedoms]
    for i in range(s.freedoms):
        step = np.eye(s.freedoms)[i] * h
        rate = (s.evaluate(q + step, 2) - s.evaluate(q - step, 2)) / (2.0 * h)
        for low, high in orders:
            row = high + (i if s.freedoms == 2 else 0)
            error = np.abs(rate[:, low] - exact[:, row]).max()
            assert error < 1e-6 * (1.0 + np.abs(exact).max()), (low, row)


def test_the_chart_of_a_sphere_has_no_pole():
    s = g.ellipsoid(1.0, 2.0, 3.0)
    m = np.array([(0, 0, 1), (0, 0, -1), (0.6, 0, -0.8), (1, 0, 0)], dtype=float)
    rows = s.evaluate(m, 3)
    assert np.abs((rows[:, 0] / s.axes) ** 2).sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    normals = np.cross(rows[:, 1], rows[:, 2])
    outward = m / s.axes
    assert np.abs(np.cross(normals, outward)).max() < 1e-14
    assert (np.einsum("ij,ij->i", normals, outward) > 0).all()


@pytest.mark.parametrize(
    ("shape", "residual"),
    [
        (g.circle(2.0), lambda p: np.hypot(p[:, 0], p[:, 1]) - 2.0),
        (g.ellipse(1.0, 3.0), lambda p: p[:, 0] ** 2 + p[:, 1] ** 2 / 9.0 - 1.0),
        (g.sphere(2.0), lambda p: np.linalg.norm(p, axis=1) - 2.0),
        (g.ellipsoid(1.0, 2.0, 3.0), lambda p: np.linalg.norm(p / (1, 2, 3), axis=1) - 1.0),
        (g.cylinder(1.5, 2.0), lambda p: np.hypot(p[:, 0], p[:, 1]) - 1.5),
        (g.cone(1.0, 0.4, (0.0, 2.0)), lambda p: np.hypot(p[:, 0], p[:, 1]) - 1.0 - 0.4 * p[:, 2]),
        (g.torus(2.0, 0.5), lambda p: np.hypot(np.hypot(p[:, 0], p[:, 1]) - 2.0, p[:, 2]) - 0.5),
        (g.plane(2.0, 3.0), lambda p: p[:, 2]),
    ],
)
def test_conics_and_quadrics_are_exact_as_nurbs_too(shape, residual):
    assert np.abs(residual(shape.evaluate(shape.sample(13)))).max() < 1e-13
    n = shape.to_nurbs()
    assert np.abs(residual(n.evaluate(n.sample(37)))).max() < 1e-13
    copy = pickle.loads(pickle.dumps(shape))
    assert np.array_equal(copy.evaluate(shape.sample(5)), shape.evaluate(shape.sample(5)))


def test_edits_change_no_point():
    s, uv = surface(), RNG.random((100, 2))
    for other in (s.insert(u=0.3, v=0.61), s.insert(u=0.3).insert(u=0.3), s.elevate(1, 2), s.flipped().flipped()):
        assert np.abs(other.evaluate(uv) - s.evaluate(uv)).max() < 1e-11
    pieces = s.to_bezier()
    assert len(pieces) == 6 * 7
    for piece in pieces:
        q = piece.sample(3)
        assert np.abs(piece.evaluate(q) - s.evaluate(q)).max() < 1e-12
    c = g.Curve(POINTS[0], WEIGHTS[0])
    below, above = c.split(0.37)
    u = np.linspace(0.0, 0.37, 9)
    assert np.abs(below.evaluate(u) - c.evaluate(u)).max() < 1e-13
    assert np.abs(above.evaluate(1.0 - u) - c.evaluate(1.0 - u)).max() < 1e-13
    assert np.abs(s.iso(u=0.3).evaluate([0.7])[0] - s(0.3, 0.7)).max() < 1e-13
    assert np.array_equal(g.from_json(g.to_json(s)).evaluate(uv), s.evaluate(uv))


def test_periodic_directions_close_with_their_derivatives():
    for s in (SHAPES["periodic"], g.Curve(POINTS[0], periodic=True)):
        ends = [s.derivatives(x, 0.3 if s.freedoms == 2 else 0.0, 2) for x in (0.0, 1.0)]
        assert s.periods[0] == 1.0
        assert np.abs(ends[0] - ends[1]).max() < 1e-12


def test_interpolation_and_fit_state_their_error():
    t = np.linspace(0.0, 3.0, 60)
    data = np.stack([np.cos(t), np.sin(t), 0.2 * t], axis=1)
    u = basis.chord_parameters(data, "points")
    assert np.abs(g.Curve.interpolate(data).evaluate(u) - data).max() < 1e-12
    fitted, error = g.Curve.fit(data, 12)
    assert np.linalg.norm(fitted.evaluate(u) - data, axis=1).max() == pytest.approx(error, rel=1e-9)
    x, y = np.meshgrid(t, t, indexing="ij")
    grid = np.stack([x, y, np.sin(x) * np.cos(y)], axis=-1)
    assert g.Surface.fit(grid, (14, 14))[1] < 1e-3
    s = g.Surface.interpolate(grid[::6, ::6])
    assert np.abs(s(0, 0) - grid[0, 0]).max() < 1e-12


@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("is_repeated", [True, False])
def test_periodic_interpolation_is_smooth_at_the_seam(degree, is_repeated):
    t = np.linspace(0.0, 2.0 * np.pi, 24) ** 1.1
    t *= 2.0 * np.pi / t[-1]
    around = np.stack([(2.0 + np.cos(3 * t)) * np.cos(t), (2.0 + np.cos(3 * t)) * np.sin(t), np.sin(t)], axis=1)
    u = np.append(basis.chord_parameters(around[:-1], "points") * 0.9, 1.0)
    for given in (None, u):
        data = around if is_repeated else around[:-1]
        c = g.Curve.interpolate(data, degree=degree, periodic=True, parameters=given)
        at = basis.chord_parameters(around, "points") if given is None else u
        assert c.periods == (1.0,)
        assert np.abs(c.evaluate(at) - around).max() < 1e-12
        order = min(degree - 1, 2)
        ends = c.evaluate(np.array([0.0, 1.0]), 3)[:, : order + 1]
        assert np.abs(ends[0] - ends[1]).max() < 1e-9 * np.abs(ends).max()
        if degree == 3:
            expected = make_interp_spline(at, np.concatenate([around[:-1], around[:1]]), bc_type="periodic")
            some = np.linspace(0.0, 1.0, 301)
            assert np.abs(c.evaluate(some) - expected(some)).max() < 1e-12


def test_one_count_is_that_of_both_directions():
    x, y = np.meshgrid(np.linspace(0, 1, 20), np.linspace(0, 1, 15), indexing="ij")
    grid = np.stack([x, y, x * y + 0.1 * np.sin(5 * x)], axis=-1)
    one, two = g.Surface.fit(grid, 8), g.Surface.fit(grid, (8, 8))
    assert np.array_equal(one[0].points, two[0].points) and one[1] == two[1]
    assert g.Surface.fit(grid, np.int64(8))[0].points.shape == (8, 8, 3)
    assert g.Surface.fit(grid, [9, 8])[0].points.shape == (9, 8, 3)


def test_texts_of_shapes_have_kind_and_size():
    square = [g.Curve([a, b], degree=1) for a, b in pairwise([(0, 0), (0.5, 0), (0.5, 0.5), (0, 0)])]
    texts = {
        "<NURBS curve: degree 3, 5 control points>": g.Curve(POINTS[0][:5]),
        "<NURBS surface: degrees 3 and 2, 4 × 5 control points>": g.Surface(POINTS[:4, :5], degree=(3, 2)),
        "<face of <NURBS surface: degrees 3 and 3, 4 × 4 control points>, 1 loop>": g.Face(
            g.Surface(POINTS[:4, :4]), [square]
        ),
        "<mesh: 3 vertices, 2 faces>": g.Mesh(np.eye(3), [(0, 1, 2), (0, 2, 1)]),
    }
    assert {repr(shape): shape for shape in texts.values()} == texts


def test_surfaces_from_curves():
    c = g.Curve([(1, 0, 0), (2, 0, 1), (1, 0, 2), (1.5, 0, 3)])
    s = g.revolve(c, 2.0)
    assert np.hypot(*s(0.7, 0.4)[:2]) == pytest.approx(c(0.4)[0], abs=1e-14)
    e = g.extrude(c, (0, 3, 0))
    assert np.abs(e(0.4, 0.5) - c(0.4) - (0, 1.5, 0)).max() < 1e-14
    other = c.elevate().transformed(np.eye(3), (0, 1, 0))
    assert np.abs(g.ruled(c, other)(0.3, 0.5) - c(0.3) - (0, 0.5, 0)).max() < 1e-12
    curves = [c.transformed(np.eye(3), (0, k, 0)) for k in range(5)]
    assert np.abs(g.loft(curves)(0.3, 0.5) - curves[2](0.3)).max() < 1e-12
    assert g.torus(2.0, 0.5).offset(0.1).numbers == (2.0, 0.6)
    cone = g.cone(1.0, 0.4, (0.0, 2.0))
    assert g.closest_point(cone, cone.offset(0.2)(0.3, 1.0)).distance == pytest.approx(0.2, abs=1e-13)


@pytest.mark.parametrize("name", ["circle", "sphere", "cylinder", "cone", "torus"])
def test_offsets_are_at_their_distance(name):
    shape = g.sphere(2.0) if name == "sphere" else SHAPES[name]
    places = shape.sample(3) if name == "sphere" else np.array([(x, 0.9)[: shape.freedoms] for x in (0.3, 1.1, 2.2)])
    for distance in (0.2, -0.1):
        for p in shape.offset(distance).evaluate(places):
            pair = g.Distance(shape, (0.0, 0.0, 0.0)).closest(p, signed=True)
            assert pair.gap == pytest.approx(distance, abs=1e-13)
    with pytest.raises(cd.ModelError, match="the offset of a ellipse is not"):
        g.ellipse(1.0, 2.0).offset(0.1)


def test_several_surfaces_that_close_together_have_a_volume():
    x = np.array([-1.0, 1.0])
    face = g.Surface([[(a, b, 1.0) for b in x] for a in x], degree=1)
    turns = [np.roll(np.eye(3), k, axis=1) for k in range(3)]
    cube = [face.transformed(A) for A in turns] + [face.flipped().transformed(-A).flipped() for A in turns]
    mass = g.mass_properties([s if g.normal(s, 0.5, 0.5) @ s(0.5, 0.5) > 0 else s.flipped() for s in cube], density=2.0)
    assert mass.volume == pytest.approx(8.0, rel=1e-13)
    assert mass.inertia == pytest.approx(np.eye(3) * 16.0 * 8.0 / 12.0, abs=1e-12)
    with pytest.raises(cd.ModelError, match="the surface is open"):
        g.volume(cube[:5])


def test_a_curve_and_plain_values():
    c = g.Curve(POINTS[0][:, :2], WEIGHTS[0], degree=4)
    u = np.linspace(0.0, 1.0, 33)
    for other in (g.from_json(g.to_json(c)), g.from_dict(g.as_dict(c))):
        assert np.array_equal(other.evaluate(u, 3), c.evaluate(u, 3))
    line = g.line(2.0)
    ends = line.to_nurbs().bounds[0]
    at = np.linspace(*ends, 7)
    assert np.abs(line.to_nurbs().evaluate(at) - line.evaluate(at)).max() < 1e-15


def test_measures_are_those_of_closed_forms():
    R, r = 2.0, 0.5
    torus = g.torus(R, r)
    assert g.area(torus)[0] == pytest.approx(4 * np.pi**2 * R * r, rel=1e-13)
    mass = g.mass_properties(torus, density=3.0)
    assert mass.volume == pytest.approx(2 * np.pi**2 * R * r**2, rel=1e-13)
    assert mass.inertia[2, 2] == pytest.approx(mass.mass * (R**2 + 0.75 * r**2), rel=1e-12)
    ball = g.mass_properties(g.ellipsoid(1, 2, 3).to_nurbs().transformed(np.eye(3), (5, 0, 0)))
    assert ball.volume == pytest.approx(8.0 * np.pi, rel=1e-10)
    assert np.abs(ball.center - (5, 0, 0)).max() < 1e-9
    assert ball.inertia[0, 0] == pytest.approx(ball.mass * 13 / 5, rel=1e-9)
    assert g.arc_length(g.circle(2.0))[0] == pytest.approx(4 * np.pi, rel=1e-14)
    assert g.curvature(g.circle(2.0), 0.3) == pytest.approx(0.5, abs=1e-14)
    n = g.normal(torus, 0.3, 0.4)
    assert n == pytest.approx((np.cos(0.4) * np.cos(0.3), np.cos(0.4) * np.sin(0.3), np.sin(0.4)), abs=1e-14)
    assert g.curvature(torus, 0.3, 0.0) == pytest.approx((-1 / 2.5, -2.0), abs=1e-14)


@pytest.mark.parametrize("name", ["bicubic", "curve", "traced curve", "torus"])
def test_a_plot_shows_the_points_of_the_shape(name):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    s = SHAPES[name]
    axes = g.plot(s, count=6)
    ends = [np.linspace(low, high, 7 if s.freedoms == 2 else 49) for low, high in s.bounds]
    points = s.evaluate(np.stack([x.ravel() for x in np.meshgrid(*ends, indexing="ij")], axis=1))
    drawn = [axes.get_xlim(), axes.get_ylim(), *([axes.get_zlim()] if hasattr(axes, "get_zlim") else [])]
    assert len(drawn) == s.dimension
    for k, (low, high) in enumerate(drawn):
        assert low <= points[:, k].min() and points[:, k].max() <= high
    plt.close("all")


@pytest.mark.parametrize("name", ["bicubic", "torus", "traced surface", "cylinder"])
def test_tessellation_keeps_the_chord_error(name):
    s, chord = SHAPES[name], 0.02
    vertices, faces = g.tessellate(s, chord)
    if len(faces) > 4000:
        faces = faces[:: len(faces) // 4000]
    middles = vertices[faces].mean(axis=1)[::10]
    query = g.Distance(s, (0.0, 0.0, 0.0))
    assert max(query.closest(p).distance for p in middles) <= chord


def test_ranges_contain_sampled_values():
    s = SHAPES["traced surface"]
    boxes = [(np.array([0.2]), np.array([0.5])), (np.array([-0.3]), np.array([0.4]))]
    nodes = [c for row in s._rows[1:] for c in row]
    found = ranges.evaluate(s._graph, nodes, boxes)
    q = np.stack([RNG.uniform(0.2, 0.5, 500), RNG.uniform(-0.3, 0.4, 500)], axis=1)
    values = s.evaluate(q, 3)[:, 1:].reshape(500, -1)
    for k, (low, high) in enumerate(found):
        assert low[0] <= values[:, k].min() and values[:, k].max() <= high[0]


BAD = {
    "9 knots": lambda: g.Curve(POINTS[0][:6], knots=np.linspace(0, 1, 9)),
    "knots[5] is 0.2": lambda: g.Curve(POINTS[0][:6], knots=[0, 0, 0, 0, 0.5, 0.2, 1, 1, 1, 1]),
    "weights[2] is 0.0": lambda: g.Curve(POINTS[0][:4], [1, 1, 0, 1]),
    "points[1, 2] is nan": lambda: g.Curve([(0, 0, 0), (1, 1, np.nan), (1, 2, 3), (2, 2, 2)]),
    "coincide": lambda: g.Curve(np.ones((5, 3))),
    "weights[0, 1] is -1.0": lambda: g.Surface(POINTS[:4, :4], np.where(np.arange(16).reshape(4, 4) == 1, -1, 1)),
    "occurs 5 times": lambda: g.Curve(POINTS[0], knots=[0] * 4 + [0.5] * 5 + [1] * 5),
    "degree": lambda: g.Curve(POINTS[0], degree=0),
    "u is 1.5": lambda: surface().derivatives(1.5, 0.1),
    "order is 4": lambda: surface().evaluate([(0.1, 0.1)], 4),
    "order is 5": lambda: [SHAPES["bicubic"].derivatives(0.1, 0.1, order) for order in (2, 5)],
    "parameter v of point 1 is 1.25": lambda: surface().evaluate([(0.1, 0.1), (0.2, 1.25)]),
    "knots_v[5] is 0.1": lambda: g.Surface(POINTS, knots_v=[0, 0, 0, 0, 0.4, 0.1, *[0.5] * 3, *[1.0] * 5]),
    "knots_u has 5 knots": lambda: g.Surface(POINTS, knots_u=np.linspace(0, 1, 5)),
    "points[0, 1, 2] is inf": lambda: g.Surface(np.where(np.arange(48).reshape(4, 4, 3) == 5, np.inf, 1.0)),
    "points[1] and [2] coincide": lambda: g.Curve.interpolate([(0, 0), (1, 0), (1, 0), (2, 1)]),
    "periodic interpolation needs an odd degree": lambda: g.Curve.interpolate(POINTS[0], degree=2, periodic=True),
    "along u is '8'": lambda: g.Surface.fit(POINTS, "8"),
    "along v is 7.5": lambda: g.Surface.fit(POINTS, (4, 7.5)),
    "counts is (4, 4, 4)": lambda: g.Surface.fit(POINTS, (4, 4, 4)),
    "along u is True": lambda: g.Surface.fit(POINTS, True),
    "hole at the edge (0, 1)": lambda: g.Mesh(np.eye(3), [(0, 1, 2)]).mass_properties(),
    "the text is not JSON": lambda: g.from_json("{"),
    "lack 'weights'": lambda: g.from_dict({"kind": "curve", "degrees": [1], "knots": [], "points": []}),
    "the curve is rational": lambda: g.to_scipy(SHAPES["curve"]),
    "radius of the circle is -1.0": lambda: g.circle(-1.0),
    "cross itself": lambda: g.torus(1.0, 1.5),
    "open": lambda: g.volume(surface()),
    "not bounded near": lambda: g.closest_point(g.traced(lambda u: (cd.sqrt(u), u), (0.0, 1.0)), (0, 0)),
    "both unbounded": lambda: g.Distance(g.plane(), g.line()),
    "faces[1, 2] is 9": lambda: g.Mesh(np.eye(3), [(0, 1, 2), (0, 1, 9)]),
    "hole at the edge": lambda: g.Mesh(np.eye(3), [(0, 1, 2)]).closest_point((0, 0, 0), signed=True),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_named(words):
    with pytest.raises(cd.ModelError) as caught:
        BAD[words]()
    assert words in str(caught.value), str(caught.value)


def different_shapes():
    """Shapes that differ, some of them only in one number or in their kind."""
    corners = [(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.1)]
    plate = g.Surface([[(-1, -1, 0), (-1, 1, 0)], [(1, -1, 0), (1, 1, 0)]], degree=1)
    loop, other = g.Curve(corners, degree=1), g.Curve(corners[::-1], degree=1)
    points = [(0, 0), (1, 0.1), (2, 0), (3, 1.0 / 3.0)]
    made = [
        g.sphere(0.2),
        g.sphere(0.3),
        g.circle(0.2),
        g.plane(1.0),
        g.torus(1.0 / 3.0, 0.1),
        g.cylinder(0.3, (-1, 2)),
    ]
    made += [g.analytic.Point((0.0, 0.0, 0.2)), g.analytic.Point((0.0, 0.2, 0.0))]
    made += [
        g.Curve(points),
        g.Curve(points, degree=2),
        g.Curve(points, (1, 2, 1.5, 1)),
        g.Curve(points, periodic=True),
    ]
    made += [g.Curve([(*p, 0.0) for p in points]), plate, g.Face(plate, [loop]), g.Face(plate, [other]), surface()]
    made += [g.traced(lambda u, v: (u, v, u * v), (0, 1), (0, 1)), g.traced(lambda u, v: (u, v, u * v), (0, 1), (0, 2))]
    return [
        *made,
        g.traced(lambda u, v: (u, v, u + v), (0, 1), (0, 1)),
        *(edge(plate, curve) for curve in (loop, other)),
    ]


def edge(surface, curve):
    from cardan.geometry.face import EdgeCurve

    return EdgeCurve(surface, curve)


def test_shapes_are_equal_if_their_values_are():
    made, again = different_shapes(), different_shapes()
    for k, one in enumerate(made):
        assert [one == other for other in again] == [k == n for n in range(len(again))], one
        assert hash(one) == hash(again[k])
        assert pickle.loads(pickle.dumps(one)) == one
        assert one != "a shape"
    made[0].evaluate(np.array([[0.0, 0.0, 1.0]]))  # a shape in use has addresses, which are not part of its value
    made[-1].evaluate(np.array([[0.5]]))
    assert made[0] == again[0] and made[-1] == again[-1]


@pytest.mark.parametrize("name", ["surface", "curve", "sphere", "face", "mesh", "traced"])
def test_shapes_do_not_change(name):
    """Kernels read packed copies: a change would have no effect, or an effect on some results alone."""
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0), [0.0], indexing="ij"), axis=-1)[:, :, 0]
    surface = g.Surface(grid)
    square = [g.Curve([(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)], degree=1)]
    shape = {
        "surface": lambda: surface,
        "curve": lambda: g.Curve(grid[0]),
        "sphere": lambda: g.sphere(1.0),
        "face": lambda: g.Face(surface, [square]),
        "mesh": lambda: g.Mesh(np.eye(3), [(0, 1, 2)]),
        "traced": lambda: g.traced(lambda u: (u, u * u, 0.0 * u), (0.0, 1.0)),
    }[name]()
    for attribute in ("radius", "bounds"):
        with pytest.raises(cd.ReadOnlyError, match=f"^{attribute} of .* cannot be set"):
            setattr(shape, attribute, 3.0)
    for attribute in ("points", "weights", "knots", "vertices", "faces"):
        value = getattr(shape, attribute, ())
        for array in value if isinstance(value, tuple) else (value,):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    copy = pickle.loads(pickle.dumps(shape))
    with pytest.raises(cd.ReadOnlyError):
        copy.radius = 3.0


def box_faces(sides, part=1.0):
    """The six faces of a box around the origin with normals outwards, each reduced to a part of its sides."""
    found = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        for side in (-1.0, 1.0):
            points = np.zeros((2, 2, 3))
            points[..., k] = 0.5 * side * sides[k]
            points[..., i] = 0.5 * part * sides[i] * side * np.array([[-1.0], [1.0]])
            points[..., j] = 0.5 * part * sides[j] * np.array([-1.0, 1.0])
            found.append(g.Surface(points, degree=1))
    return found


BARREL = g.Curve([(1, 0, -1), (1.5, 0, 0), (1, 0, 1)], degree=2)
OPEN = {
    "cylinder": lambda: g.cylinder(1.0, 2.0),
    "cylinder far away": lambda: g.cylinder(1.0, 2.0).to_nurbs().transformed(np.eye(3), (1e3, 0, 2e3)),
    "box without two faces": lambda: box_faces((1.0, 2.0, 3.0))[:4],
    "barrel": lambda: g.revolve(BARREL),
    "cube with gaps at all edges": lambda: box_faces((2.0, 2.0, 2.0), 0.5),
    "cube with two faces inside out": lambda: (
        [s.flipped() for s in box_faces((2.0, 2.0, 2.0))[:2]] + box_faces((2.0, 2.0, 2.0))[2:]
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_surfaces_whose_area_vectors_cancel_have_no_volume(name):
    for measure in (g.volume, g.mass_properties):
        with pytest.raises(cd.ModelError, match="the surface is open"):
            measure(OPEN[name]())


@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), (300.0, -20.0, 1e3)])
def test_open_surfaces_and_their_caps_have_the_volume_of_the_body(place):
    def placed(shapes):
        return [s.transformed(np.eye(3), place) for s in shapes]

    def disc(radius, z, up):
        found = g.revolve(g.Curve([(0, 0, z), (radius, 0, z)], degree=1))
        return found if g.normal(found, 0.5, 0.5)[2] * up > 0.0 else found.flipped()

    caps = [disc(1.0, -1.0, -1.0), disc(1.0, 1.0, 1.0)]
    side = g.revolve(g.Curve([(1, 0, -1), (1, 0, 1)], degree=1))
    cylinder = g.mass_properties(placed([side, *caps]), density=2.0)
    assert cylinder.volume == pytest.approx(2.0 * np.pi, rel=1e-11)
    assert cylinder.mass == pytest.approx(4.0 * np.pi, rel=1e-11)
    assert cylinder.center == pytest.approx(place, abs=1e-9)
    assert np.diag(cylinder.inertia) == pytest.approx(cylinder.mass * np.array([7 / 12, 7 / 12, 0.5]), rel=1e-9)
    # ρ = (1 − t)² + 3 t (1 − t) + t² and z = 2 t − 1: ∫π ρ² dz
    t, w = np.polynomial.legendre.leggauss(8)
    s = 0.5 * (t + 1.0)
    expected = np.pi * (w * ((1 - s) ** 2 + 3 * s * (1 - s) + s**2) ** 2).sum()
    assert g.volume(placed([g.revolve(BARREL), *caps])) == pytest.approx(expected, rel=1e-11)
    assert g.volume(placed(box_faces((1.0, 2.0, 3.0)))) == pytest.approx(6.0, rel=1e-11)


CLOSED_MESH = g.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])


@pytest.mark.parametrize("density", [-1.0, np.nan, np.inf, "2"])
def test_a_density_that_is_no_density_is_named(density):
    for body in (lambda d: g.mass_properties(box_faces((1, 2, 3)), density=d), CLOSED_MESH.mass_properties):
        with pytest.raises(cd.ModelError, match=r"the density is"):
            body(density)


def trimmed():
    plate = g.Surface([[(-1, -1, 0), (-1, 1, 0)], [(1, -1, 0), (1, 1, 0)]], degree=1)
    return g.Face(plate, [g.Curve([(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.1)], degree=1)])


WRONG_KIND = {
    "torus(2.0, 0.5) is no curve": lambda: g.arc_length(g.torus(2.0, 0.5)),
    "3 is no curve": lambda: g.arc_length(3),
    "is no surface": lambda: g.area(g.Curve(POINTS[0])),
    "circle(1.0, 1.0) is no surface": lambda: g.volume(g.circle(1.0)),
    "'x' is no curve or surface": lambda: g.curvature("x", 0.0),
    "no surfaces are given": lambda: g.volume([]),
    "S' is zero": lambda: g.curvature(g.Curve([(0, 0), (0, 0), (1, 0), (1, 1)]), 0.0),
}


@pytest.mark.parametrize("words", WRONG_KIND)
def test_measures_of_a_wrong_kind_of_shape_are_named(words):
    with pytest.raises(cd.ModelError) as caught:
        WRONG_KIND[words]()
    assert words in str(caught.value), str(caught.value)


def test_measures_name_meshes_faces_and_points_that_are_not_finite():
    for measure in (g.volume, g.mass_properties, g.area, g.arc_length):
        with pytest.raises(cd.ModelError, match="use its area and mass_properties"):
            measure(CLOSED_MESH)
    for measure in (g.volume, g.mass_properties, g.area):
        with pytest.raises(cd.ModelError, match="a face is trimmed"):
            measure(trimmed())
    assert g.normal(trimmed(), 0.5, 0.4) == pytest.approx((0, 0, 1), abs=1e-15)
    root = g.traced(lambda u: (cd.sqrt(u), 0 * u, 0 * u), (-1, 1))
    with pytest.raises(cd.ModelError, match="no finite point and derivatives at the parameters"):
        g.arc_length(root)


def test_closed_forms_are_profiles():
    tube = g.extrude(g.circle(1.5), (0.0, 0.0, 2.0))
    S = tube.evaluate(tube.sample(9))
    assert np.hypot(S[:, 0], S[:, 1]) == pytest.approx(1.5, abs=1e-14)
    assert S[:, 2].min() == 0.0 and S[:, 2].max() == 2.0
    disc = g.revolve(g.line((0.0, 2.0)))
    assert g.area(disc)[0] == pytest.approx(4.0 * np.pi, rel=1e-12)
    oval = g.extrude(g.ellipse(2.0, 1.0), (0.3, 0.0, 1.0))
    v = oval.sample(9)[:, 1]
    x, y, z = oval.evaluate(oval.sample(9)).T
    assert ((x - 0.3 * v) / 2.0) ** 2 + y**2 == pytest.approx(1.0, abs=1e-14) and z == pytest.approx(v, abs=1e-15)


WRONG_ARGUMENTS = {
    "the profile is sphere": lambda: g.revolve(g.sphere(1.0)),
    "the profile is <mesh": lambda: g.extrude(CLOSED_MESH, (0, 0, 1)),
    "the line is unbounded": lambda: g.revolve(g.line()),
    "the angle is 'a'": lambda: g.revolve(g.line(1.0), "a"),
    "curve 1 is circle(1.0, 1.0)": lambda: g.ruled(g.line((0, 1)).to_nurbs(), g.circle(1.0)),
    "curve 0 is 3": lambda: g.loft([3, 4, 5, 6]),
    "the curves of a loft are 3": lambda: g.loft(3),
    "3 is no scipy.interpolate.BSpline": lambda: g.from_scipy(3),
    "the parameters are 'x'": lambda: SHAPES["curve"].evaluate("x"),
    "the parameters are 'm'": lambda: g.sphere(1.0).evaluate("m"),
    "u is (0.0, 0.0); it must be a number": lambda: g.curvature(g.torus(2.0, 0.5), (0.0, 0.0)),
    "v is 'w'; it must be a number": lambda: g.normal(g.torus(2.0, 0.5), 0.0, "w"),
    "u is None; it must be a number": lambda: SHAPES["curve"].derivatives(None),
    "the order is 'x'": lambda: SHAPES["curve"].derivatives(0.1, 0.0, "x"),
    "the pair is 3": lambda: g.exact(g.Distance(g.torus(2.0, 0.5), g.sphere(0.1)), (3.0, 0.0, 0.0), 3),
    "3 is no Distance": lambda: g.exact(3, (3.0, 0.0, 0.0), 3),
}


@pytest.mark.parametrize("words", WRONG_ARGUMENTS)
def test_arguments_of_a_wrong_kind_are_named(words):
    with pytest.raises(cd.ModelError) as caught:
        WRONG_ARGUMENTS[words]()
    assert words in str(caught.value), str(caught.value)


def test_attributes_of_shapes_cannot_be_deleted():
    for shape, name in ((g.Curve(POINTS[0]), "points"), (CLOSED_MESH, "faces"), (trimmed(), "loops")):
        with pytest.raises(cd.ReadOnlyError, match=f"^{name} of .* cannot be deleted"):
            delattr(shape, name)
        assert getattr(shape, name) is not None
