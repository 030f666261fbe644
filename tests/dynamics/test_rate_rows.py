"""Rate rows: constraints of velocities alone, in every verb that computes velocities."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.coordinates import formulations
from cardan.coordinates.rate_rows import RateRows
from cardan.dynamics import algebra
from cardan.math import euler

X, Y, Z = np.eye(3)
INERTIA = np.diag([0.1, 0.2, 0.3])


@cd.rate_primitive(i="point", axis="vector of i")
def along(i, axis, *, factor=1.0):
    return factor * cd.dot(axis, cd.rate(i))


@cd.rate_primitive(centre="point", turned="orientation of centre", table="point", spun="orientation of table")
def rolls(centre, turned, table, spun, *, radius):
    """The lowest point of a ball moves with the turntable below it: two rows, in the plane z = 0."""
    arm = (0.0, 0.0, -1.0)
    ball = cd.rate(centre) + cd.cross(cd.angular_velocity(turned), arm) * radius
    below = centre - table
    disc = cd.rate(table) + cd.cross(cd.angular_velocity(spun), below)
    slip = ball - disc
    return [slip.x, slip.y]


@cd.rate_primitive(unit="rad/s", a="angle", d="displacement")
def geared(a, d, *, ratio):
    return cd.rate(a) - ratio * cd.rate(d)


def sled(gravity=(0.0, 0.0, 0.0), center=(0.0, 0.0, 0.0), at=(0.0, 0.0, 0.0)) -> cd.Mechanism:
    """A body on the floor with a blade along its x axis."""
    m = cd.Mechanism("sled", gravity=gravity)
    body = m.body("sled", mass=2.0, inertia=INERTIA, center=center, position=at)
    m.planar("floor", m.ground.frame(), body.frame())
    m.knife_edge("blade", body.frame(z=Y))
    return m


def moving(m: cd.Mechanism, velocity, spin) -> cd.State:
    return m.state.with_rates(np.array([[*velocity, 0.0, 0.0, spin]]))


def tumbling() -> cd.Mechanism:
    """Rate rows of every sort, on bodies in general poses, far from the world's origin."""
    rng = np.random.default_rng(3)
    m = cd.Mechanism("tumbling")
    for name in ("a", "b"):
        orientation = rng.standard_normal(4)
        m.body(name, position=rng.standard_normal(3) + 5.0, orientation=orientation / np.linalg.norm(orientation))
    a, b = m["a"], m["b"]
    m.distance("rod", m.ground.point((5.0, 4.0, 6.0)), a.point((0.1, 0.2, 0.3)), 1.0)
    m.knife_edge("blade", a.frame((0.3, -0.2, 0.1), z=(1.0, 2.0, 3.0)))
    m.knife_edge("carried", a.frame((0.3, -0.2, 0.1), z=(1.0, 2.0, 3.0)), relative_to=b)
    m.constrain_rates("own", along, i=b.point((0.4, 0.0, 0.1)), axis=b.vector(0.0, 1.0, 1.0), factor=3.0)
    frames = a.frame((0.1, 0, 0)), b.frame((0, 0.2, 0))
    angle, shift = (cd.coordinate(*frames, of) for of in ("angle", "displacement"))
    m.constrain_rates("geared", geared, a=angle, d=shift, ratio=0.7)
    return m


def point_rate(pose, v, place):
    """Velocity of a point of a body, from those of its origin and its angular velocity in body axes."""
    turned = euler.matrix(pose[3:])
    return v[:3] + turned @ np.cross(v[3:], place), turned @ v[3:]


@pytest.mark.slow
def test_rows_are_those_of_the_definition():
    m = tumbling()
    rows = RateRows(m.system)
    assert rows.names == ("blade", "carried", "own", "geared")
    rng = np.random.default_rng(0)
    q = formulations.to_reference(m.system, m.state.coordinates, np.zeros(len(m.system.counted_angles)))
    poses = m.state.coordinates
    v = rng.standard_normal((2, 6))
    at_origin = v.copy()
    for k in range(2):  # of the body origins, from those of the reference points
        at_origin[k, :3] -= euler.matrix(poses[k, 3:]) @ np.cross(v[k, 3:], m.system.reference_points[k])
    (_pa, _wa), (pb, wb) = (point_rate(poses[k], at_origin[k], (0, 0, 0)) for k in range(2))
    z = euler.matrix(poses[0, 3:]) @ (np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0))
    tip = poses[0, :3] + euler.matrix(poses[0, 3:]) @ (0.3, -0.2, 0.1)
    tip_rate, _ = point_rate(poses[0], at_origin[0], (0.3, -0.2, 0.1))
    own, _ = point_rate(poses[1], at_origin[1], (0.4, 0.0, 0.1))
    axis = euler.matrix(poses[1, 3:]) @ (0.0, 1.0, 1.0)
    by_hand = [
        z @ tip_rate,
        z @ (tip_rate - pb - np.cross(wb, tip - poses[1, :3])),
        3.0 * axis @ own / np.linalg.norm([0.0, 1.0, 1.0]),
    ]
    found = rows.matrix(q) @ v.ravel()
    unit = np.isclose(found[2], by_hand[2], rtol=1e-12)
    by_hand[2] = by_hand[2] if unit else by_hand[2] * np.sqrt(2.0)  # vectors may be kept as drawn, or normalised
    np.testing.assert_allclose(found[:3], by_hand, rtol=1e-12)
    np.testing.assert_allclose(rows.product(q, v.ravel()), found, rtol=1e-12)
    # the last one by differences of its coordinates
    h = 1e-6
    ends = []
    for sign in (-1.0, 1.0):
        moved = formulations.from_reference(m.system, rows.problem.retract(q, sign * h * v.ravel()))
        state = m.system.state(moved)
        angle, shift = m["geared"].ends
        ends.append(angle.value(state) - 0.7 * shift.value(state))
    assert found[3] == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-7)


@pytest.mark.slow
def test_gamma_is_minus_the_rate_of_a_times_v():
    m = tumbling()
    rows = RateRows(m.system)
    q = formulations.to_reference(m.system, m.state.coordinates, np.zeros(len(m.system.counted_angles)))
    v = np.random.default_rng(1).standard_normal(12)
    h = 1e-3
    part = {k: rows.matrix(rows.problem.retract(q, k * h * v)) @ v for k in (-2, -1, 1, 2)}
    rate = (8.0 * (part[1] - part[-1]) - (part[2] - part[-2])) / (12.0 * h)
    np.testing.assert_allclose(rows.gamma(q, v), -rate, atol=1e-8)


def test_the_joined_system_has_the_same_coordinates_and_rows():
    m = tumbling()
    rows, joined = RateRows(m.system), m.system.rated
    assert np.array_equal(joined.origin, m.system.origin)
    q = formulations.to_reference(m.system, m.state.coordinates, np.zeros(len(m.system.counted_angles)))
    stacked = formulations.problem(joined, "manifold").jacobian(q)[1]
    position = formulations.problem(m.system, "manifold").jacobian(q)[1]
    np.testing.assert_allclose(stacked, np.vstack([position, rows.matrix(q)]), atol=1e-13)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda i, axis: cd.dot(cd.rate(i), cd.rate(i)), "not linear"),
        (lambda i, axis: cd.dot(axis, cd.rate(i)) + 1.0, "term without rates"),
        (lambda i, axis: cd.dot(axis, i), "does not depend on any rate"),
        (lambda i, axis: cd.dot(axis, cd.rate(cd.rate(i))), "no accelerations"),
        (lambda i, axis: cd.rate(3.0), "takes a traced"),
    ],
)
def test_a_row_that_is_not_linear_in_the_rates_is_refused(function, words):
    with pytest.raises(cd.ModelError, match=words):
        cd.rate_primitive(i="point", axis="vector of i")(function)


def test_rates_belong_to_rate_primitives_and_they_to_constrain_rates():
    with pytest.raises(cd.ModelError, match="rate_primitive"):
        cd.primitive(i="point", j="point")(lambda i, j: cd.dot(i - j, cd.rate(i)))
    with pytest.raises(cd.ModelError, match="unit"):
        cd.rate_primitive(unit="m", i="point")(cd.rate)
    m = sled()
    with pytest.raises(cd.ModelError, match="constrain_rates"):
        m.constrain("x", along, i=m["sled"].point(), axis=m["sled"].vector(1, 0, 0))
    with pytest.raises(cd.ModelError, match=r"m\.constrain"):
        m.constrain_rates("x", cd.primitive(i="point", j="point")(lambda i, j: cd.norm(i - j)), i=m["sled"].point())
    with pytest.raises(cd.ModelError, match="ground"):
        m.knife_edge("x", m.ground.frame())
    with pytest.raises(cd.ModelError, match="itself"):
        m.knife_edge("x", m["sled"].frame(), relative_to=m["sled"])
    with pytest.raises(cd.ModelError, match="a rate row of that name"):
        m.body("blade")


@pytest.mark.parametrize("method", ["adams", "rk4", "dopri5"])
def test_a_knife_edge_on_an_incline_follows_the_closed_form(method):
    """Centre on the blade, pure spin, heading downhill: a cycloid across the slope."""
    slope, spin, g = 0.4, 1.7, 9.81
    down = g * np.sin(slope)
    m = sled(gravity=(down, 0.0, -g * np.cos(slope)))
    sim = m.simulate(6.0, moving(m, (0, 0, 0), spin), step=1e-3, method=method, times=np.linspace(0, 6, 61))
    assert sim.ok, sim.text()
    turn = spin * sim.times
    x = down / (2 * spin**2) * np.sin(turn) ** 2
    y = down / (2 * spin**2) * (turn - 0.5 * np.sin(2 * turn))
    np.testing.assert_allclose(sim.positions("sled")[:, :2], np.column_stack([x, y]), atol=1e-8)
    side = 2.0 * 2.0 * down * np.sin(turn)  # 2 m g sin α sin ωt, to the left of the blade
    reaction = sim.reaction("blade", axes="joint")
    np.testing.assert_allclose(reaction.force[:, 2], side, atol=1e-7)
    assert reaction.unique
    assert np.abs(sim.energy.total - sim.energy.total[0]).max() < 1e-8 * sim.energy.kinetic.max()
    assert sim.drift.max() < 1e-12
    assert sim.rate_drift.max() < 1e-12


def test_a_sleigh_with_its_centre_ahead_follows_its_equations():
    """Chaplygin's sleigh: u̇ = a ω², (I + m a²) ω̇ = −m a u ω."""
    arm, mass, moment = 0.3, 2.0, 0.3
    m = sled(center=(arm, 0.0, 0.0))
    sim = m.simulate(5.0, moving(m, (1.0, 0, 0), 0.8), rtol=1e-9)

    def rates(_, s):
        _x, _y, turn, u, w = s
        return [u * np.cos(turn), u * np.sin(turn), w, arm * w * w, -mass * arm * u * w / (moment + mass * arm**2)]

    oracle = solve_ivp(rates, (0, 5), [0, 0, 0, 1.0, 0.8], method="DOP853", rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sim.positions("sled")[-1, :2], oracle.y[:2, -1], atol=1e-7)


@pytest.mark.slow
def test_a_ball_on_a_turntable_orbits_at_two_sevenths():
    """Centre of a solid ball that rolls on a disc at Ω: a circle at the rate 2Ω/7."""
    omega, radius = 3.0, 0.1
    m = cd.Mechanism("turntable")
    table = m.body("table", mass=1.0, inertia=INERTIA)
    ball = m.body("ball", position=(0.5, 0, radius), mass=1.0, inertia=0.4 * radius**2 * np.eye(3))
    hinge = m.revolute("spindle", m.ground.frame(), table.frame())
    m.drive("motor", hinge, lambda t: omega * t)
    m.point_in_plane("height", ball.point(), m.ground.frame((0, 0, radius)))
    features = {"centre": ball.point(), "turned": ball.frame(), "table": table.point(), "spun": table.frame()}
    m.constrain_rates("roll", rolls, radius=radius, **features)
    start = m.solve_rates(m.assemble().state)
    sim = m.simulate(4.0, start, rtol=1e-9)
    assert sim.ok, sim.text()
    # r̈ = (2Ω/7) z × ṙ: a circle from the start, whose velocity is that of the least kinetic energy
    rate = 2.0 * omega / 7.0
    r0, v0 = 0.5 + 0j, complex(*start.velocities[1][:2])
    r = r0 + v0 / (1j * rate) * (np.exp(1j * rate * sim.times) - 1.0)
    np.testing.assert_allclose(sim.positions("ball")[:, 0] + 1j * sim.positions("ball")[:, 1], r, atol=1e-7)
    assert sim.rate_drift.max() < 1e-9  # J is that of the predicted pose, and the error does not add up


def test_a_blade_relative_to_a_body_moves_with_it():
    """On a carriage that moves uniformly, the sled moves as on the ground, seen from the carriage."""
    m = cd.Mechanism("ferry", gravity=(1.0, 0.0, 0.0))
    deck = m.body("deck", mass=1.0, inertia=INERTIA)
    body = m.body("sled", mass=2.0, inertia=INERTIA)
    rail = m.prismatic("rail", m.ground.frame(z=Y), deck.frame(z=Y))
    m.drive("engine", rail, lambda t: 0.7 * t)
    m.planar("floor", deck.frame(), body.frame())
    m.knife_edge("blade", body.frame(z=Y), relative_to=deck)
    start = m.solve_rates(m.assemble().state)
    v = start.velocities.copy()
    v[1, 5] = 1.3
    sim = m.simulate(3.0, start.with_rates(v), rtol=1e-9)
    turn = 1.3 * sim.times
    x = 1.0 / (2 * 1.3**2) * np.sin(turn) ** 2
    np.testing.assert_allclose(sim.positions("sled")[:, 0], x, atol=1e-7)
    y = 0.7 * sim.times + 1.0 / (2 * 1.3**2) * (turn - 0.5 * np.sin(2 * turn))
    np.testing.assert_allclose(sim.positions("sled")[:, 1], y, atol=1e-7)
    on_deck, on_sled = sim.reaction("blade", on="a").force, sim.reaction("blade").force
    np.testing.assert_allclose(on_deck, -on_sled, atol=1e-9)


def test_redundant_rate_rows_change_nothing_and_are_flagged():
    m = sled(gravity=(2.0, 0.0, -9.0))
    twice = m.copy()
    twice.knife_edge("second", twice["sled"].frame(z=-Y))
    one, two = (each.simulate(2.0, moving(each, (0, 0, 0), 1.0), step=1e-3) for each in (m, twice))
    np.testing.assert_allclose(one.positions("sled"), two.positions("sled"), atol=1e-10)
    assert one.reaction("blade").unique
    assert not two.reaction("blade").unique
    assert two.rate_drift.max() < 1e-12
    both = two.reaction("blade").force + two.reaction("second").force
    np.testing.assert_allclose(both, one.reaction("blade").force, atol=1e-7)
    report = twice.diagnose()
    assert (report.dof, report.velocity_dof) == (3, 2)
    assert [equation.constraint for equation in report.redundant_rates] == ["second"]


def test_a_rate_row_that_a_joint_implies_does_not_disturb_poses():
    """Its row is the derivative of a row of the joint: in the projection of poses they would contradict each other."""
    m = cd.Mechanism("pendulum")
    arm = m.body("arm", center=(0.5, 0, 0), mass=1.0, inertia=INERTIA)
    m.revolute("hinge", m.ground.frame(z=Y), arm.frame(z=Y))
    free = m.simulate(5.0, step=1e-3)
    m.knife_edge("blade", arm.frame((0.7, 0, 0), z=Y))
    held = m.simulate(5.0, step=1e-3)
    assert held.drift.max() < 1e-12
    np.testing.assert_allclose(held.positions("arm"), free.positions("arm"), atol=1e-10)
    np.testing.assert_allclose(held.quaternions("arm"), free.quaternions("arm"), atol=1e-9)


def test_freedom_is_counted_in_position_and_in_velocity():
    m = sled()
    report = m.diagnose()
    assert (report.dof, report.velocity_dof, report.rate_rows) == (3, 2, ("blade",))
    assert "in velocity:        2 of 3, because of the rate rows 'blade'" in report.text()
    m.remove("blade")
    report = m.diagnose()
    assert (report.dof, report.velocity_dof) == (3, 3)
    assert "in velocity" not in report.text()


@pytest.mark.slow
def test_rate_rows_join_pieces_in_velocity_alone():
    m = cd.Mechanism("two")
    for k, name in enumerate(("left", "right")):
        m.body(name, position=(2.0 * k, 0, 0))
        m.revolute(name + " hinge", m.ground.frame((2.0 * k, 0, 0)), m[name].frame())
    angles = [m[name + " hinge"].of("angle") for name in ("left", "right")]

    @cd.rate_primitive(unit="rad/s", a="angle", b="angle")
    def belt(a, b):
        return cd.rate(a) - 2.0 * cd.rate(b)

    m.constrain_rates("belt", belt, a=angles[0], b=angles[1])
    assert (m.diagnose().dof, m.diagnose().velocity_dof) == (2, 1)
    m.drive("motor", m["left hinge"], lambda t: 3.0 * t)
    motion = m.move([0.0, 0.5, 1.0])
    assert motion.ok and not motion.undriven
    np.testing.assert_allclose(motion.coordinate(m["right hinge"]), [0.0, 0.75, 1.5], atol=1e-9)


def test_assembly_does_not_know_rate_rows():
    with_blade, without = sled(at=(1.0, 2.0, 0.3)), sled(at=(1.0, 2.0, 0.3))
    without.remove("blade")
    a, b = with_blade.assemble(), without.assemble()
    assert np.array_equal(a.state.coordinates, b.state.coordinates)
    assert with_blade.diagnose(a.state).assembled


def test_velocities_that_break_a_rate_row_are_projected_and_said():
    m = sled()
    sim = m.simulate(0.1, moving(m, (1.0, 0.4, 0), 0.2), step=1e-3)
    np.testing.assert_allclose(sim.velocities("sled")[0], [1.0, 0, 0, 0, 0, 0.2], atol=1e-12)
    assert "contradict" in sim.text()


def test_solve_rates_keeps_rate_rows_and_names_them_in_a_contradiction():
    m = sled()
    floor = m["floor"]
    start = m.assemble().state
    found = m.solve_rates(start, {floor.of("x"): 2.0, floor.of("angle"): 0.5})
    np.testing.assert_allclose(found.velocities[0], [2.0, 0, 0, 0, 0, 0.5], atol=1e-12)
    with pytest.raises(cd.ModelError, match="blade"):
        m.solve_rates(start, {floor.of("y"): 1.0})


def test_a_driven_motion_integrates_rate_rows():
    """Driven forward speed and heading: the path is that of the kinematic car, not of a position solve."""
    m = sled(at=(1.0, 2.0, 0.0))
    m.drive("heading", m["floor"].of("angle"), cd.sin)
    m.constrain_rates("engine", along, i=m["sled"].point(), axis=m["sled"].vector(1, 0, 0), value=lambda t: 1.0 + t)
    times = np.linspace(0.0, 2.0, 9)
    motion = m.move(times)
    assert motion.ok, motion.text()

    def rates(t, _):
        return [(1.0 + t) * np.cos(np.sin(t)), (1.0 + t) * np.sin(np.sin(t))]

    path = solve_ivp(rates, (0, 2), [1.0, 2.0], t_eval=times, method="DOP853", rtol=1e-12, atol=1e-13).y.T
    np.testing.assert_allclose(motion.positions("sled")[:, :2], path, atol=1e-9)
    # inverse dynamics: force along the blade is m u̇, across it m u ω
    t = motion.times
    blade, engine = (motion.reaction(name, axes="world").force for name in ("blade", "engine"))
    heading = np.sin(t)
    ahead = np.column_stack([np.cos(heading), np.sin(heading)])
    aside = np.column_stack([-np.sin(heading), np.cos(heading)])
    np.testing.assert_allclose((engine[:, :2] * ahead).sum(1), 2.0, atol=1e-8)
    np.testing.assert_allclose((blade[:, :2] * aside).sum(1), 2.0 * (1 + t) * np.cos(t), atol=1e-8)
    # and the same motion by dynamics
    sim = m.simulate(2.0, rtol=1e-9, times=times)
    assert sim.ok, sim.text()
    np.testing.assert_allclose(sim.positions("sled")[:, :2], path, atol=1e-7)


def test_an_undriven_freedom_of_velocity_takes_the_least_velocities():
    m = sled()
    m.drive("x", m["floor"].of("x"), lambda t: 0.3 * t)
    motion = m.move([0.0, 1.0])
    assert motion.ok and [one.freedoms for one in motion.undriven] == [1]
    assert np.abs(motion.velocities("sled")[:, 1]).max() < 1e-12


def test_drivers_that_break_a_rate_row_are_refused_by_name():
    m = sled()
    floor = m["floor"]
    m.drive("heading", floor.of("angle"), 0.0)
    m.drive("aside", floor.of("y"), lambda t: 0.1 * t)
    motion = m.move([0.0, 1.0])
    assert not motion.ok
    assert "'blade'" in motion.reason and "no velocities" in motion.reason
    sim = m.simulate(1.0, rtol=1e-6)
    assert not sim.ok and "blade" in sim.reason


def test_rate_rows_copy_compare_pickle_and_are_removed():
    m = tumbling()
    assert list(m.rate_rows) == ["blade", "carried", "own", "geared"]
    again = pickle.loads(pickle.dumps(m))
    assert again == m and m.copy() == m
    assert again.system == m.system
    assert pickle.loads(pickle.dumps(m.system)) == m.system
    assert RateRows(pickle.loads(pickle.dumps(m.system))).names == RateRows(m.system).names
    other = m.copy()
    other.remove("blade")
    assert other != m and other.system != m.system
    with pytest.raises(cd.ModelError, match="rate rows 'carried', 'own', 'geared'"):
        other.remove("b")
    other.remove("b", joints=True)
    assert not other.rate_rows
    assert m["blade"].bodies[0].name == "a"
    assert "blade" in list(m)


def test_a_run_is_the_same_after_pickling_and_moved_with_the_world():
    m = sled(gravity=(1.0, -0.5, -9.0), center=(0.2, 0, 0))
    first = m.simulate(1.0, moving(m, (0.5, 0, 0), 1.0), step=1e-3)
    again = pickle.loads(pickle.dumps(m))
    assert np.array_equal(again.simulate(1.0, moving(again, (0.5, 0, 0), 1.0), step=1e-3)._results, first._results)
    turned = euler.matrix(np.array([0.5, 0.5, -0.5, 0.5]))
    far = cd.Mechanism("far", gravity=turned @ (1.0, -0.5, -9.0))
    at = np.array([10.0, -20.0, 5.0])
    body = far.body(
        "sled", mass=2.0, inertia=INERTIA, center=(0.2, 0, 0), position=at, orientation=(0.5, 0.5, -0.5, 0.5)
    )
    far.planar("floor", far.ground.frame(at, z=turned @ Z), body.frame())
    far.knife_edge("blade", body.frame(z=Y))
    v = np.array([[*(turned @ (0.5, 0, 0)), 0, 0, 1.0]])
    there = far.simulate(1.0, far.state.with_rates(v), step=1e-3)
    np.testing.assert_allclose(there.positions("sled"), at + first.positions("sled") @ turned.T, atol=1e-9)


def train(count: int) -> cd.Mechanism:
    """Sleds in a row, coupled by hinges, each with a blade: a snakeboard."""
    m = cd.Mechanism("train", gravity=(0.5, 1.0, -9.0))
    for k in range(count):
        body = m.body(f"b{k}", position=(k, 0, 0), mass=1.0, inertia=INERTIA, center=(0.5, 0, 0))
        m.planar(f"floor {k}", m.ground.frame(), body.frame())
        m.knife_edge(f"blade {k}", body.frame((0.3, 0, 0), z=Y))
        if k:
            m.point_on_line(f"hitch {k}", m[f"b{k - 1}"].point((1, 0, 0)), body.frame())
    return m


def test_large_systems_with_rate_rows_agree_with_dense_algebra(monkeypatch):
    m = train(13)
    assert len(m.copy().simulate(0.01, step=1e-3)._equations.equations) > algebra.DENSE_EQUATIONS
    sparse = m.simulate(0.5, step=1e-3)
    assert sparse.ok, sparse.text()
    monkeypatch.setattr(algebra, "DENSE_EQUATIONS", 10**6)
    dense = m.copy().simulate(0.5, step=1e-3)
    np.testing.assert_allclose(sparse.positions("b12"), dense.positions("b12"), atol=1e-10)
    np.testing.assert_allclose(sparse.reaction("blade 5").force, dense.reaction("blade 5").force, atol=1e-7)
    assert sparse.rate_drift.max() < 1e-12 and sparse.drift.max() < 1e-12
    assert (m.diagnose().dof, m.diagnose().velocity_dof) == (15, 2)
