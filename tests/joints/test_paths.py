"""Paths: a frame that follows a curve, against closed forms, SciPy and differences."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.coordinates import formulations
from cardan.joints import pairs
from cardan.joints.paths import Path
from cardan.math import euler

G = cd.geometry
A, B = 0.5, 0.1  # radius and rise per radian of the helix [m]


def helix() -> G.Curve:
    return G.traced(lambda u: (A * cd.cos(u), A * cd.sin(u), B * u), (-1.0, 7.0))


def knot(t):
    """A closed curve in space that has curvature and torsion everywhere."""
    return np.stack([np.cos(t) + 0.2 * np.cos(2 * t), np.sin(t) - 0.2 * np.sin(2 * t), 0.4 * np.sin(3 * t)], axis=-1)


def closed(degree: int = 5) -> G.Curve:
    return G.Curve(knot(np.linspace(0, 2 * np.pi, 24, endpoint=False)), periodic=True, degree=degree)


def ride(curve, follow: str, at=(0.5, 0.05, 0.1), turned=(0.2, 0.3, 1.4), **options) -> cd.Mechanism:
    m = cd.Mechanism("ride", gravity=(0, 0, -9.81))
    base = m.body("base", position=(0.1, 0.2, 0.3), orientation=("xyz", (0.2, 0.3, 0.1)), mass=2.0, inertia=np.eye(3))
    car = m.body("car", orientation=("xyz", turned), position=at, mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))
    m.path("on", car.frame((0.1, 0.0, 0.05)), base.attach(curve, base.frame((0.1, 0, 0))), follow=follow, **options)
    return m


def axes_in_base(m: cd.Mechanism, state: cd.State) -> tuple[float, np.ndarray, np.ndarray]:
    """Parameter, and origin and axes of the frame in those of the curve."""
    base, car = state["base"], state["car"]
    origin = base.matrix.T @ (car.point((0.1, 0.0, 0.05)) - base.point((0.1, 0, 0)))
    return float(state.contact("on").parameters[1][0]), origin, base.matrix.T @ car.matrix


def test_a_frenet_frame_on_a_helix_has_its_closed_form():
    """T, N, B = (−a sin u, a cos u, b)/c, −(cos u, sin u, 0), (b sin u, −b cos u, a)/c with c = √(a² + b²)."""
    c = np.hypot(A, B)
    for u in (0.0, 1.5, 3.0, 5.0):
        m = ride(helix(), "frenet", (A * np.cos(u), A * np.sin(u), B * u + 0.3), (0.2, 0.1, u + 1.7))
        result = m.assemble()
        assert result.ok, result.text()
        s, origin, axes = axes_in_base(m, result.state)
        assert origin == pytest.approx([A * np.cos(s), A * np.sin(s), B * s], abs=1e-12)
        T = np.array([-A * np.sin(s), A * np.cos(s), B]) / c
        N, binormal = -np.array([np.cos(s), np.sin(s), 0]), np.array([B * np.sin(s), -B * np.cos(s), A]) / c
        assert np.abs(axes - np.column_stack([T, N, binormal])).max() < 1e-11
        assert m.diagnose(result.state).dof == 6 + 1


def turned_least(curve, s: float, up) -> np.ndarray:
    """The frame at s by SciPy: y' = −(y·T')T from the start."""
    low = curve.bounds[0][0]

    def tangent(u):
        rows = curve.derivatives(u, order=2)
        length = np.linalg.norm(rows[1])
        T = rows[1] / length
        return T, (rows[2] - T * (T @ rows[2])) / length

    T = tangent(low)[0]
    z = np.array(up) - T * (T @ up)
    z /= np.linalg.norm(z)

    def rate(u, y):
        T, bent = tangent(u)
        return -(y @ bent) * T

    y = np.cross(z, T)
    knots = [u for u in np.unique(getattr(curve, "knots", ())) if low < u < s]
    for a, b in zip([low, *knots], [*knots, s], strict=True):  # the curve is smooth between its knots
        y = solve_ivp(rate, (a, b), y, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    T = tangent(s)[0]
    return np.column_stack([T, y, np.cross(T, y)])


@pytest.mark.parametrize("which", ["helix", "spline"])
def test_a_frame_of_least_turning_agrees_with_its_integration(which):
    t = np.linspace(0, 5, 12)
    spline = G.Curve(knot(t), 1.0 + 0.2 * np.sin(t))
    curve, up = (helix(), (0, 0, 1)) if which == "helix" else (spline, (0.3, 0.2, 1.0))
    low, high = curve.bounds[0]
    for share in (0.2, 0.6, 0.95):
        u = low + share * (high - low)
        place, frame = curve.derivatives(u, order=0)[0], turned_least(curve, u, up)
        m = cd.Mechanism("ride")
        car = m.body(
            "car", position=place + 0.02, orientation=euler.retract(euler.from_matrix(frame), (0.1, -0.2, 0.1))
        )
        m.path("on", car.frame(), m.ground.attach(curve), up=up)
        result = m.assemble()
        assert result.ok, result.text()
        s = float(result.state.contact("on").parameters[1][0])
        assert np.abs(result.state["car"].matrix - turned_least(curve, s, up)).max() < 1e-10


@pytest.mark.parametrize("follow", ["frenet", "least_turning"])
@pytest.mark.parametrize("curve", [helix(), closed()], ids=["helix", "closed"])
def test_rows_and_gamma_agree_with_differences(curve, follow):
    m = ride(curve, follow, (1.0, 0.1, 0.4))
    result = m.assemble()
    assert result.ok, result.text()
    p = formulations.motion_problem(m.system, "manifold")
    near = np.array([result.state.angles[key] for key in m.system.counted_angles])
    q = formulations.to_reference(m.system, result.state.coordinates, near)
    h = 1e-6
    for at in (q, p.retract(q, 0.05 * np.random.default_rng(3).normal(size=12))):
        J = p.jacobian(at)[1]
        for k in range(12):
            e = h * np.eye(12)[k]
            difference = (p.residual(p.retract(at, e)) - p.residual(p.retract(at, -e))) / (2 * h)
            first = 0 if at is q else 2  # the axes across the curve turn with it where the origin is not on it
            assert np.abs(J[first:5, k] - difference[first:5]).max() < 1e-8
    null = np.linalg.svd(p.jacobian(q)[1][:5])[2][5:]
    v = np.random.default_rng(2).normal(size=len(null)) @ null
    h = 1e-5
    rate = (p.jacobian(p.retract(q, h * v))[1] - p.jacobian(p.retract(q, -h * v))[1])[:5] @ v / (2 * h)
    assert np.abs(formulations.gamma(m.system, "manifold", q, v)[:5] + rate).max() < 1e-6


def test_a_car_slides_down_a_helix_as_its_closed_form_says():
    """ü = −m g b/(m (a² + b²) + J), with the moment of inertia J about the axis of the helix, at its own centre."""
    m = cd.Mechanism("slide", gravity=(0, 0, -9.81))
    car = m.body(
        "car", position=(A, 0.02, 0.3), orientation=("xyz", (0, 0.1, 1.6)), mass=1.3, inertia=np.diag([1, 2, 3])
    )
    m.path("on", car.frame(), m.ground.attach(helix()), follow="frenet")
    state = m.assemble().state
    J = state["car"].matrix[2] @ np.diag([1, 2, 3]) @ state["car"].matrix[2]
    gain = -1.3 * 9.81 * B / (1.3 * (A**2 + B**2) + J)
    simulation = m.simulate(1.0, state, rtol=1e-10)
    assert simulation.ok, simulation.text()
    start, end = (one.contact("on").parameters[1][0] for one in (state, simulation.state))
    assert end - start == pytest.approx(0.5 * gain, abs=1e-9)
    assert simulation.drift.max() < 1e-12
    assert np.ptp(simulation.energy.total) < 1e-9


@pytest.mark.slow
def test_round_a_closed_curve_the_frame_turns_by_the_total_torsion():
    """After each round by −∮τ ds about the tangent; a Frenet frame comes back."""
    curve = closed()
    twist = Path("p", curve, "least_turning", (0.0, 0.0, 1.0)).table.twist
    u = np.linspace(*curve.bounds[0], 24 * 400, endpoint=False) + 0.5 / (24 * 400)
    rows = np.array([curve.derivatives(one, order=3) for one in u.tolist()])
    cross = np.cross(rows[:, 1], rows[:, 2])
    torsion = (cross * rows[:, 3]).sum(axis=1) / (cross**2).sum(axis=1)
    total = (torsion * np.linalg.norm(rows[:, 1], axis=1)).mean() * (curve.bounds[0][1] - curve.bounds[0][0])
    assert np.angle(np.exp(1j * (twist + total))) == pytest.approx(0.0, abs=1e-5)
    m = cd.Mechanism("round", gravity=(0, 0, 0))
    car = m.body("car", position=(1.2, 0.1, 0), mass=1.0, inertia=0.1 * np.eye(3))
    m.path("on", car.frame(), m.ground.attach(curve))
    state = m.assemble().state
    start = state.contact("on").parameters[1][0]
    rates = state.with_rates(np.array([[0.0, 2.0, 0.0, 0, 0, 0]]))
    assert m.diagnose(state).dof == 1
    simulation = m.simulate(12.0, rates, rtol=1e-9, times=np.linspace(0, 12, 1201))
    assert simulation.ok, simulation.text()
    s = np.array([one.contact("on").parameters[1][0] for one in simulation.states])
    period = curve.bounds[0][1] - curve.bounds[0][0]
    assert np.ptp(s) > 1.2 * period
    last = simulation.states[int(np.argmax(np.abs(s - start) > 1.1 * period))]
    rounds = np.sign(last.contact("on").parameters[1][0] - start)
    same = m.assemble(state.moved({"car": last["car"]})).state  # known by the pose alone: in the first round
    turned = same["car"].matrix.T @ last["car"].matrix
    about = np.arctan2(turned[2, 1], turned[1, 1])
    assert np.angle(np.exp(1j * (about - rounds * twist))) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_a_path_is_copied_pickled_and_saved(tmp_path):
    for follow, options in (("frenet", {}), ("least_turning", {"up": (0.1, 0.2, 1.0)})):
        t = np.linspace(0, 5, 12)
        m = ride(G.Curve(knot(t), degree=5), follow, **options)
        assert m == m.copy() == pickle.loads(pickle.dumps(m))
        m.save(tmp_path / "ride.toml")
        again = cd.load(tmp_path / "ride.toml")
        assert again.assemble().state.coordinates == pytest.approx(m.assemble().state.coordinates, abs=1e-12)
    other = ride(G.Curve(knot(t)), "least_turning")
    assert other != m


@pytest.mark.parametrize(
    ("points", "options", "words"),
    [
        (
            [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]],
            {"follow": "frenet"},
            "is straight .*use follow='least_turning'",
        ),
        ([[0, 0, 0], [1, 1, 0], [2, -1, 0], [3, 0, 0]], {"follow": "frenet"}, "straight|turn too fast"),
        ([[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 3]], {}, "up=.* is along the curve"),
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]], {"follow": "bishop"}, "follow is 'bishop'"),
    ],
)
def test_what_has_no_such_frame_is_refused_by_name(points, options, words):
    m = cd.Mechanism("bad")
    car = m.body("car")
    with pytest.raises(cd.ModelError, match=f"path 'on'.*{words}"):
        m.path("on", car.frame(), m.ground.attach(G.Curve(np.array(points, dtype=float))), **options)


def test_corners_surfaces_and_lines_without_end_are_refused_by_name():
    m = cd.Mechanism("bad")
    frame = m.body("car").frame()
    with pytest.raises(cd.ModelError, match=r"path 'on': the torsion of the curve jumps .*degree=5"):
        m.path("on", frame, m.ground.attach(closed(3)), follow="frenet")
    corner = G.Curve(np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], dtype=float), degree=1)
    for shape, words in ((corner, "corner"), (G.sphere(1.0), "must be a curve"), (G.line(), "without end")):
        with pytest.raises(cd.ModelError, match=f"path 'on'.*{words}"):
            m.path("on", frame, m.ground.attach(shape))


def test_dynamics_refuse_a_curvature_that_jumps_and_conserve_energy_without_one():
    """From a line to an arc the angular velocity of the car would jump, and with it its kinetic energy."""
    points = np.array([[-2, 0, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0], [1, 1, 0]], dtype=float)
    jumps = G.Curve(points, [1, 1, 1, 2**-0.5, 1], [0, 0, 0, 2, 2, 3.57, 3.57, 3.57], degree=2)
    for curve in (jumps, G.Curve.interpolate(jumps.evaluate(np.linspace(0.0, 3.57, 15)[:, None]))):
        m = cd.Mechanism("track", gravity=(0, 0, 0))
        car = m.body("car", position=(-1.0, 0, 0), mass=1.0, inertia=0.5 * np.eye(3))
        m.path("on", car.frame(), m.ground.attach(curve))
        start = m.assemble().state.with_rates(np.array([[1.0, 0, 0, 0, 0, 0]]))
        if curve is jumps:
            for run in (lambda m=m, at=start: m.simulate(1.6, at, step=1e-3), lambda m=m: m.session(mode="dynamic")):
                with pytest.raises(cd.ModelError, match=r"path 'on'.* jumps at the parameter 2,.*degree 3"):
                    run()
            assert m.session().step() == cd.SessionStatus.IDLE  # poses do not jump
            continue
        found = m.simulate(1.6, start, step=1e-3)
        assert found.ok
        np.testing.assert_allclose(found.energy.kinetic, found.energy.kinetic[0], rtol=1e-5)  # its rate jumps at knots


@pytest.mark.parametrize("shape", [G.circle(0.4).to_nurbs(), closed(3), helix()])
def test_smooth_curves_have_no_jump_of_curvature(shape):
    assert Path("path", pairs.closed(shape), "least_turning", (0.1, 0.2, 1.0)).jump is None


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda m, b: m.path("p", b.frame(), m.ground.frame()), "a Frame of <Body 'ground'>.*circle"),
        (lambda m, b: m.point_on_curve("p", b.point(), m.ground.point()), "a Point of <Body 'ground'>.*circle"),
        (lambda m, b: m.point_on_surface("p", b.point(), m.ground.frame()), "a Frame of <Body 'ground'>.*sphere"),
    ],
)
def test_what_is_no_face_is_named_in_short(add, words):
    m = cd.Mechanism("m")
    with pytest.raises(cd.ModelError, match=f"'p' was given {words}") as caught:
        add(m, m.body("b"))
    assert "x_given" not in str(caught.value)


def cam(curve) -> cd.Motion:
    m = cd.Mechanism("cam")
    turning, follower = m.body("cam"), m.body("follower", position=(0, 0.08, 0))
    A = m.revolute("A", m.ground.frame(), turning.frame())
    m.prismatic("S", m.ground.frame(z=(0, 1, 0)), follower.frame(z=(0, 1, 0)))
    m.contact("c", turning.attach(curve), follower.attach(G.circle(0.01)))
    m.drive("d", A, lambda t: 6 * t)
    return m.move(np.linspace(0, 1.5, 31))


def test_a_cam_through_points_turns_round_if_it_is_periodic():
    t = np.linspace(0, 2 * np.pi, 41)
    r = 0.05 + 0.008 * np.cos(t)
    points = np.stack([r * np.cos(t), r * np.sin(t)], axis=1)
    points[-1] = points[0]
    ended, turned = cam(G.Curve.interpolate(points)), cam(G.Curve.interpolate(points, periodic=True))
    assert turned.ok and ended.status == "contact"
    assert "0x" not in ended.text() and "u of <NURBS curve: degree 3, 41 control points> is" in ended.text()
    assert "where its ends meet in a corner" in ended.text() and "periodic=True" in ended.text()
    assert "larger or less curved" not in ended.text()


def test_the_end_of_an_open_curve_is_no_seam():
    m = cd.Mechanism("open")
    b = m.body("b")
    m.path("p", b.frame(), m.ground.attach(G.Curve([[0, 0, 0], [1, 0, 0], [2, 0.1, 0], [3, 0, 0]])))
    m.drive("d", cd.coordinate(m.ground.frame(), b.frame(), "x"), lambda t: 2.5 + t)
    motion = m.move(np.linspace(0, 1, 11))
    assert motion.status == "contact"
    assert "larger or less curved" in motion.text() and "periodic" not in motion.text()
