"""Contacts with friction that open: slip, stick, roll, tip, jam and lift off, against closed forms; hits in turn."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import cardan as cd
from cardan.errors import ModelError

G = 9.81


def balance(sim):
    """The change of all energies, relative to the largest."""
    total = sim.energy.total + sim.energy.lost_impact + sim.energy.lost_friction
    return float(np.abs(total - total[0]).max() / max(np.abs(total).max(), 1e-300))


def kinds(sim, name):
    return [str(event.kind) for event in sim.events if event.name == name]


# -- slip to roll ------------------------------------------------------------------------------------------------------


def rolling_ball(friction, velocity, spin, at=(0.0, 0.0, 0.0), radius=0.1):
    m = cd.Mechanism("ball", gravity=(0.0, 0.0, -G))
    floor = m.ground.attach(cd.geometry.plane(), m.ground.frame(at))
    inertia = 0.4 * radius**2 * np.eye(3)
    ball = m.body("ball", position=(at[0], at[1], at[2] + radius), mass=1.0, inertia=inertia)
    m.contact("on", floor, ball.attach(cd.geometry.sphere(radius)), unilateral=True, friction=friction)
    return m, m.assemble().state.with_rates(np.array([[velocity, 0.0, 0.0, 0.0, spin, 0.0]]))


@pytest.mark.parametrize("options", [{"step": 1e-2}, {"rtol": 1e-9}, {"step": 1e-2, "method": "rk4"}])
@pytest.mark.parametrize(("velocity", "spin", "at"), [(2.0, 0.0, (30.0, -20.0, 10.0)), (0.0, 20.0, (0.0, 0.0, 0.0))])
def test_a_ball_that_slips_rolls_after_the_time_of_the_closed_form(velocity, spin, at, options):
    mu, radius = 0.3, 0.1
    m, start = rolling_ball(mu, velocity, spin, at)
    sim = m.simulate(1.0, start, **options)
    (roll,) = [event for event in sim.events if event.kind == "roll"]
    slip = velocity - spin * radius
    assert abs(roll.time - 2.0 * abs(slip) / (7.0 * mu * G)) < 1e-11
    assert abs(sim.velocities("ball")[-1, 0] - (5.0 * velocity + 2.0 * spin * radius) / 7.0) < 1e-11
    assert abs(sim.energy.lost_friction[-1] - slip**2 / 7.0) < 1e-11
    assert balance(sim) < 1e-12
    history = sim.contact("on")
    assert np.allclose(history.force[0], (-np.sign(slip) * mu * G, 0.0, G), rtol=1e-10)
    assert np.allclose(history.force[-1], (0.0, 0.0, G), atol=1e-10)
    assert np.allclose(np.einsum("ij,ij->i", history.force, history.normals), G)
    assert np.allclose(history.slip[[0, -1]], (abs(slip), 0.0), atol=1e-11)
    assert history.unique.all()


def test_a_ball_on_an_incline_rolls_up_to_the_angle_at_which_its_friction_fails():
    mu, accelerations = 0.3, []
    for factor in (1.0 - 1e-6, 1.0 + 1e-6):
        angle = math.atan(3.5 * mu * factor)
        m, _ = rolling_ball(mu, 0.0, 0.0)
        m.gravity = (G * math.sin(angle), 0.0, -G * math.cos(angle))
        sim = m.simulate(0.5, rtol=1e-9)
        rolls = "roll" in kinds(sim, "on") or "stick" in kinds(sim, "on")
        assert rolls is (factor < 1.0)
        accelerations.append(2.0 * sim.positions("ball")[-1, 0] / 0.25)
        own = 5.0 / 7.0 * math.sin(angle) if rolls else math.sin(angle) - mu * math.cos(angle)
        assert abs(accelerations[-1] - G * own) < 1e-9
        assert balance(sim) < 1e-12


# -- a block on four feet ----------------------------------------------------------------------------------------------


def block(angle, friction, half=(0.1, 0.1, 0.1), units=1.0):
    """On an incline; units: of lengths, in metres."""
    m = cd.Mechanism("block", gravity=(0.0, 0.0, -G * units))
    c, s = math.cos(angle), math.sin(angle)
    x, y, z = units * np.array(half)
    up = m.ground.frame((0.0, 0.0, 0.0), z=(s, 0.0, c), x=(c, 0.0, -s))
    floor = m.ground.attach(cd.geometry.plane(), up)
    inertia = np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) / 3.0
    place, turned = (z * s, 0.0, z * c), (math.cos(0.5 * angle), 0.0, math.sin(0.5 * angle), 0.0)
    b = m.body("b", position=place, orientation=turned, mass=1.0, inertia=inertia)
    radius = 0.01 * units
    for k, (i, j) in enumerate(((-x, -y), (-x, y), (x, -y), (x, y))):
        foot = b.attach(cd.geometry.sphere(radius), b.frame((i, j, radius - z)))
        m.contact(f"foot {k}", floor, foot, unilateral=True, friction=friction)
    return m, np.array([c, 0.0, -s])


@pytest.mark.parametrize("change", [-0.01, -1e-6, 0.0])
def test_a_block_rests_up_to_the_friction_angle(change):
    angle = math.atan(0.5) + change
    m, _ = block(angle, 0.5)
    sim = m.simulate(3600.0, rtol=1e-9)
    assert sim.ok
    assert np.abs(sim.positions("b") - sim.positions("b")[0]).max() < 1e-12
    forces = sum(sim.contact(f"foot {k}").force[-1] for k in range(4))
    assert np.allclose(forces, (0.0, 0.0, G), atol=1e-9)
    assert not sim.contact("foot 0").unique.any()


@pytest.mark.parametrize("change", [1e-6, 0.01, 0.3])
@pytest.mark.parametrize("units", [1.0, 1000.0])
def test_a_block_slips_above_the_friction_angle(change, units):
    angle = math.atan(0.5) + change
    m, along = block(angle, 0.5, units=units)
    sim = m.simulate(1.0, rtol=1e-9)
    way = (sim.positions("b")[-1] - sim.positions("b")[0]) @ along / units
    assert abs(way - 0.5 * G * (math.sin(angle) - 0.5 * math.cos(angle))) < 1e-12
    assert balance(sim) < 1e-12


@pytest.mark.parametrize("friction", [0.5, (0.6, 0.5)])
def test_a_block_that_is_pushed_slips_when_the_push_exceeds_friction(friction):
    static, kinetic = friction if isinstance(friction, tuple) else (friction, friction)
    m, _ = block(0.0, friction)
    m.force("push", m["b"].point((0.0, 0.0, -0.1)), lambda t, _: (10.0 * t, 0.0, 0.0))
    sim = m.simulate(1.2, rtol=1e-10)
    times = [event.time for event in sim.events if event.kind == "slip"]
    begin = static * G / 10.0
    assert len(times) == 4
    assert np.abs(np.array(times) - begin).max() < 1e-9
    left = 1.2 - begin
    way = 10.0 * ((1.2**3 - begin**3) / 6.0 - begin**2 / 2.0 * left) - kinetic * G * left**2 / 2.0
    assert abs(sim.positions("b")[-1, 0] - way) < 1e-8


@pytest.mark.parametrize("friction", [0.3, 0.8])
@pytest.mark.parametrize("factor", [1.0 - 1e-6, 1.0 + 1e-6])
def test_a_block_slides_or_tips_as_its_friction_and_its_shape_decide(friction, factor):
    half = (0.1, 0.1, 0.2)
    angle = math.atan(min(friction, half[0] / half[2]) * factor)
    m, along = block(angle, friction, half)
    sim = m.simulate(0.2, rtol=1e-9)
    way = (sim.positions("b")[-1] - sim.positions("b")[0]) @ along
    tips = sim.velocities("b")[-1, 4] > 1e-7
    assert tips is np.bool_(factor > 1.0 and friction > 0.5)
    if factor < 1.0:
        assert abs(way) < 1e-14
    assert ("opening" in kinds(sim, "foot 0")) == bool(tips)
    assert balance(sim) < 1e-12


def test_a_block_that_falls_comes_to_rest_and_its_energies_balance():
    m, _ = block(0.0, 0.3)
    m["b"].position = (0.0, 0.0, 0.4)
    sim = m.simulate(2.0, m.assemble().state.with_rates(np.array([[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]])), rtol=1e-9)
    assert sim.ok
    assert np.abs(sim.velocities("b")[-1]).max() < 1e-12
    left = 3.0 - 0.3 * math.sqrt(2.0 * G * 0.3)
    assert abs(sim.energy.lost_friction[-1] - 0.5 * left**2) < 1e-9
    assert balance(sim) < 1e-9
    assert sim.penetration < 1e-12


def test_a_block_that_turns_while_it_slips_on_four_feet_is_not_decided_by_its_forces():
    m, _ = block(0.0, 0.3)
    for rates, ok in (([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], True), ([1.0, 0.0, 0.0, 0.0, 0.0, 1.0], False)):
        sim = m.simulate(0.1, m.assemble().state.with_rates(np.array([rates])), rtol=1e-9)
        assert sim.ok is ok
    assert sim.status is cd.SimulationStatus.CONTACTS
    assert "contacts slip in different directions, and their forces are not unique" in sim.reason


def test_a_ball_in_a_groove_slips_on_both_sides_until_it_rolls():
    mu, radius = 0.4, 0.1
    m = cd.Mechanism("groove", gravity=(0.0, 0.0, -G))
    inertia = 0.4 * radius**2 * np.eye(3)
    b = m.body("ball", position=(0.0, 0.0, radius * math.sqrt(2.0)), mass=1.0, inertia=inertia)
    face = b.attach(cd.geometry.sphere(radius))
    for side in (-1.0, 1.0):
        frame = m.ground.frame((0.0, 0.0, 0.0), z=(side, 0.0, 1.0), x=(1.0, 0.0, -side))
        m.contact(f"side {side:g}", m.ground.attach(cd.geometry.plane(), frame), face, unilateral=True, friction=mu)
    start = m.assemble().state.with_rates(np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]))
    sim = m.simulate(0.5, start, rtol=1e-9)
    times = [event.time for event in sim.events if event.kind == "roll"]
    slowing = math.sqrt(2.0) * mu * G + mu * G / (0.4 * math.sqrt(2.0))
    assert len(times) == 2
    assert np.abs(np.array(times) - 1.0 / slowing).max() < 1e-11
    assert balance(sim) < 1e-12


def test_a_ball_on_a_shaken_plate_slips_to_and_fro_and_its_friction_takes_the_work_of_the_motor():
    m = cd.Mechanism("shaker", gravity=(0.0, 0.0, -G))
    plate = m.body("plate", mass=5.0, inertia=np.eye(3))
    x = (1.0, 0.0, 0.0)
    guide = m.prismatic("guide", m.ground.frame((0.0, 0.0, 0.0), z=x), plate.frame((0.0, 0.0, 0.0), z=x))
    m.drive("motor", guide, lambda t: 0.05 * (1.0 - cd.cos(20.0 * t)))
    b = m.body("ball", position=(0.0, 0.0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    floor = plate.attach(cd.geometry.plane())
    m.contact("on", floor, b.attach(cd.geometry.sphere(0.1)), unilateral=True, friction=0.2)
    sim = m.simulate(1.0, rtol=1e-9, times=np.linspace(0.0, 1.0, 2001))
    assert kinds(sim, "on") == ["closing"]  # its slip turns round, and never ends
    force = sim.contact("on").force
    assert np.allclose(np.linalg.norm(force[1:, :2], axis=1), 0.2 * G, rtol=1e-9)
    power = sim.effort("motor") * sim.velocities("plate")[:, 0]
    work = float(np.sum(0.5 * np.diff(sim.times) * (power[1:] + power[:-1])))
    total = sim.energy.total + sim.energy.lost_friction
    assert abs(total[-1] - total[0] - work) < 1e-3 * abs(work)


def test_a_driver_that_pushes_against_a_closed_contact_is_named():
    m = cd.Mechanism("press", gravity=(0.0, 0.0, -G))
    b = m.body("ram", position=(0.0, 0.0, 0.2), mass=1.0, inertia=np.eye(3))
    z = (0.0, 0.0, 1.0)
    guide = m.prismatic("guide", m.ground.frame((0.0, 0.0, 0.0), z=z), b.frame((0.0, 0.0, 0.0), z=z))
    floor = m.ground.attach(cd.geometry.plane())
    m.contact("on", floor, b.attach(cd.geometry.sphere(0.1)), unilateral=True, friction=0.3)
    m.drive("motor", guide, lambda t: 0.2 - 0.1 * t)
    sim = m.simulate(2.0, rtol=1e-8)
    assert sim.status is cd.SimulationStatus.LIMIT
    assert "driver 'motor' pushes against closed contact 'on' at t = 1 s" in sim.reason
    assert sim.penetration < 1e-12


# -- Painlevé's rod ----------------------------------------------------------------------------------------------------


def rod(factor, spin):
    """A rod whose tip slips so that friction presses it into the floor; the coefficient over the critical one."""
    angle, half, radius, inertia = 1.1, 0.5, 0.01, 0.25 / 3.0
    c, s = math.cos(angle), math.sin(angle)
    x, z = -half * c, -(half * s + radius)  # from the centre of mass to the contact
    m = cd.Mechanism("rod", gravity=(0.0, 0.0, -G))
    turned = (math.cos(0.5 * angle), 0.0, -math.sin(0.5 * angle), 0.0)
    b = m.body("rod", position=(-x, 0.0, -z), orientation=turned, mass=1.0, inertia=np.diag([1e-4, inertia, inertia]))
    tip = b.attach(cd.geometry.sphere(radius), b.frame((-half, 0.0, 0.0)))
    mu = factor * (1.0 + x * x / inertia) / (x * z / inertia)
    m.contact("tip", m.ground.attach(cd.geometry.plane()), tip, unilateral=True, friction=mu)
    rates = [[-1.0 - spin * z, 0.0, spin * x, 0.0, spin, 0.0]]
    return m, m.assemble().state.with_rates(np.array(rates))


@pytest.mark.parametrize(("factor", "jams"), [(1.0 - 1e-6, False), (1.0 + 1e-6, True), (1.3, True)])
@pytest.mark.parametrize("spin", [0.0, 8.0])
def test_painleves_rod_has_its_regimes(factor, jams, spin):
    sim = (pair := rod(factor, spin))[0].simulate(0.01, pair[1], rtol=1e-8)
    assert sim.ok
    notes = " ".join(sim.notes)
    assert ("shock" in kinds(sim, "tip")) is (jams and spin == 0.0)
    assert ("contact 'tip' is inconsistent" in notes) is (jams and spin == 0.0)
    assert ("contact 'tip' is indeterminate" in notes) is (jams and spin != 0.0)
    if jams or spin:
        assert balance(sim) < 1e-12
        assert kinds(sim, "tip")[-1] == ("opening" if spin else "roll")


def test_hits_of_rods_with_friction_give_no_energy():
    """Newton's law would, in some of them; the notes then name what was used in its place."""
    rng, notes = np.random.default_rng(0), []
    for _ in range(12):
        angle, mu, e, inertia = rng.uniform((0.2, 0.05, 0.0, 0.01), (1.4, 2.0, 1.0, 0.1))
        m = cd.Mechanism("rod", gravity=(0.0, 0.0, 0.0))
        place = (0.5 * math.cos(angle), 0.0, 0.5 * math.sin(angle) + 0.011)
        turned = (math.cos(0.5 * angle), 0.0, -math.sin(0.5 * angle), 0.0)
        b = m.body("rod", position=place, orientation=turned, mass=1.0, inertia=inertia * np.eye(3))
        tip = b.attach(cd.geometry.sphere(0.01), b.frame((-0.5, 0.0, 0.0)))
        floor = m.ground.attach(cd.geometry.plane())
        m.contact("tip", floor, tip, unilateral=True, restitution=e, friction=mu)
        rates = [[rng.uniform(-3.0, 3.0), 0.0, -1.0, 0.0, rng.uniform(-1.0, 1.0), 0.0]]
        sim = m.simulate(0.05, m.assemble().state.with_rates(np.array(rates)), rtol=1e-9)
        assert sim.ok
        assert np.diff(sim.energy.kinetic).max() < 1e-12
        assert balance(sim) < 1e-12
        notes += sim.notes
    assert any("smaller restitutions were used" in note for note in notes)


def test_a_constraint_with_the_name_of_the_rows_of_friction_is_refused():
    m, _ = rolling_ball(0.3, 1.0, 0.0)
    m.body("other", mass=1.0, inertia=np.eye(3))
    y = (0.0, 1.0, 0.0)
    m.revolute("on.roll", m.ground.frame((0.0, 0.0, 5.0), z=y), m["other"].frame((0.0, 0.0, 5.0), z=y))
    with pytest.raises(ModelError, match=r"contact 'on' has friction, whose rows are named 'on\.roll'"):
        m.simulate(0.1)


# -- valve float -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0 - 1e-6, 1.0 + 1e-6, 1.3])
def test_a_valve_floats_above_the_critical_speed_from_the_time_of_the_closed_form(factor):
    mass, stiffness, e, radius, preload = 0.1, 2e4, 0.004, 0.02, 0.01
    w = factor * math.sqrt((stiffness * (preload + e) + mass * G) / (mass * e))
    m = cd.Mechanism("valve", gravity=(0.0, 0.0, -G))
    cam = m.body("cam", mass=0.5, inertia=1e-4 * np.eye(3))
    valve = m.body("valve", position=(0.0, 0.0, radius), mass=mass, inertia=1e-5 * np.eye(3))
    back = (0.0, -1.0, 0.0)
    axle = m.revolute("axle", m.ground.frame((0, 0, 0), z=back), cam.frame((0, 0, 0), z=back))
    guide = m.prismatic("guide", m.ground.frame((0, 0, radius), z=(0, 0, 1)), valve.frame((0, 0, 0), z=(0, 0, 1)))
    m.drive("motor", axle, lambda t: w * t)
    m.spring("spring", guide, stiffness=stiffness, rest=-preload)
    flat = valve.attach(cd.geometry.plane(), valve.frame((0, 0, 0), z=(0, 0, -1), x=(1, 0, 0)))
    round_ = cam.attach(cd.geometry.sphere(radius), cam.frame((e, 0.0, 0.0)))
    m.contact("lift", flat, round_, unilateral=True, restitution=0.3)
    start = m.assemble().state.with_rates(np.array([[0, 0, 0, 0, -w, 0], [0, 0, e * w, 0, 0, 0]]))
    sim = m.simulate(2.0 * math.pi / w, start, rtol=1e-10)
    times = [event.time for event in sim.events if event.kind == "opening"]
    assert bool(times) is (factor > 1.0)
    assert sim.drift.max() < 1e-14
    if times:
        sine = (stiffness * preload + mass * G) / (mass * e * w * w - stiffness * e)
        assert abs(times[0] - math.asin(sine) / w) < 1e-11


# -- a four-bar that hits the ground -----------------------------------------------------------------------------------


def four_bar(friction):
    m = cd.Mechanism("four-bar", gravity=(0.0, 0.0, -G))
    z = (0.0, 1.0, 0.0)
    A, B, D = (0.0, 0.0, 1.0), (0.4, 0.0, 1.2), (1.1, 0.0, 1.0)
    inertia = np.diag([0.01, 0.02, 0.02])
    a = m.body("a", position=A, mass=1.0, inertia=inertia, center=(0.2, 0.0, 0.1))
    b = m.body("b", position=B, mass=2.0, inertia=inertia, center=(0.4, 0.0, -0.2))
    c = m.body("c", position=D, mass=1.0, inertia=inertia, center=(0.1, 0.0, 0.2))
    m.revolute("A", m.ground.frame(A, z=z), a.frame((0.0, 0.0, 0.0), z=z))
    m.revolute("B", a.frame((0.4, 0.0, 0.2), z=z), b.frame((0.0, 0.0, 0.0), z=z))
    m.revolute("C", b.frame((0.9, 0.0, 0.2), z=z), c.frame((0.2, 0.0, 0.4), z=z))
    m.revolute("D", m.ground.frame(D, z=z), c.frame((0.0, 0.0, 0.0), z=z))
    floor = m.ground.attach(cd.geometry.plane(), m.ground.frame((0.0, 0.0, 0.35)))
    tip = b.attach(cd.geometry.sphere(0.05), b.frame((0.5, 0.0, -0.5)))
    m.contact("tip", floor, tip, unilateral=True, restitution=0.6, friction=friction)
    return m


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_a_four_bar_that_hits_the_ground_comes_to_rest_with_closed_joints(friction):
    sim = four_bar(friction).simulate(3.0, rtol=1e-10)
    assert sim.ok
    assert kinds(sim, "tip").count("hit") > 10
    assert sim.drift.max() < 1e-12
    assert sim.rate_drift.max() < 1e-12
    assert balance(sim) < 1e-9
    assert np.abs(np.concatenate([sim.velocities(name)[-1] for name in "abc"])).max() < 1e-12
    assert np.isfinite(sim.contact("tip").force).all()
    assert sim.contact("tip").unique[-1] is np.bool_(friction == 0.0)
    assert sim.penetration < 1e-12


# -- a top that slips in a curve ---------------------------------------------------------------------------------------


def test_a_tippe_top_slips_as_an_independent_integration_of_its_equations():
    R, a, M, mu, angle, spin = 0.02, 0.003, 0.02, 0.3, 0.1, 200.0
    moments = 0.4 * M * R * R * np.array([0.9, 0.9, 1.0])
    q = np.array([math.cos(0.5 * angle), math.sin(0.5 * angle), 0.0, 0.0])

    def rates(_, y):
        turn = Rotation.from_quat(y[[4, 5, 6, 3]] / np.linalg.norm(y[3:7])).as_matrix()
        v, w = y[7:10], y[10:13]
        W, c = turn @ w, turn @ (0.0, 0.0, a)
        arm = c - (0.0, 0.0, R)
        slip = (v + np.cross(W, arm))[:2]
        pull = np.append(-mu * slip / np.linalg.norm(slip), 1.0)
        inverse = turn @ np.diag(1.0 / moments) @ turn.T
        free = -inverse @ np.cross(W, turn @ (moments * w))
        b = -G + (np.cross(free, c) + np.cross(W, np.cross(W, c)))[2]
        N = -b / (1.0 / M + np.cross(inverse @ np.cross(arm, pull), c)[2])
        dw = turn.T @ (free + inverse @ np.cross(arm, N * pull))
        dq = 0.5 * np.array([-y[4:7] @ w, *(y[3] * w + np.cross(y[4:7], w))])
        return np.concatenate([v, dq, N * pull / M - (0.0, 0.0, G), dw])

    axis = Rotation.from_quat(q[[1, 2, 3, 0]]).apply([0.0, 0.0, a])
    y0 = np.concatenate([np.array([0.0, 0.0, R]) - axis, q, np.zeros(3), [0.0, 0.0, spin]])
    y = solve_ivp(rates, (0.0, 0.04), y0, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    m = cd.Mechanism("top", gravity=(0.0, 0.0, -G))
    b = m.body(
        "top", position=(0.0, 0.0, R), orientation=tuple(q), mass=M, inertia=np.diag(moments), center=(0.0, 0.0, -a)
    )
    m.contact("on", m.ground.attach(cd.geometry.plane()), b.attach(cd.geometry.sphere(R)), unilateral=True, friction=mu)
    sim = m.simulate(0.5, m.assemble().state.with_rates(np.array([[0.0] * 5 + [spin]])), rtol=1e-11, times=[0.04, 0.5])
    turned = Rotation.from_quat(y[[4, 5, 6, 3]])
    assert np.abs(sim.positions("top")[0] - y[:3] - turned.apply([0.0, 0.0, a])).max() < 1e-11
    assert np.abs(sim.velocities("top")[0, 3:] - y[10:13]).max() < 1e-8
    assert "roll" in kinds(sim, "on")
    assert balance(sim) < 1e-10
    at = Rotation.from_quat(sim.quaternions("top")[:, [1, 2, 3, 0]])
    jellett = [
        r.apply(moments * w) @ (r.apply([0.0, 0.0, a]) - (0.0, 0.0, R))
        for r, w in zip(at, sim.velocities("top")[:, 3:], strict=True)
    ]
    assert abs(jellett[1] / jellett[0] - 1.0) < 1e-10


def test_thrown_bodies_balance_their_energies_whatever_their_feet_do():
    rng = np.random.default_rng(1)
    for _ in range(12):
        m = cd.Mechanism("thrown", gravity=(0.0, 0.0, -G))
        tilt, mu = rng.uniform((0.0, 0.0), (0.6, 1.2))
        c, s = math.cos(tilt), math.sin(tilt)
        floor = m.ground.attach(cd.geometry.plane(), m.ground.frame((0, 0, 0), z=(s, 0, c), x=(c, 0, -s)))
        q = rng.normal(size=4)
        b = m.body(
            "b",
            position=(0.0, 0.0, 0.6),
            orientation=tuple(q / np.linalg.norm(q)),
            mass=1.0,
            inertia=np.diag(rng.uniform(0.002, 0.004, 3)),
        )
        e = float(rng.choice([0.0, 0.3, 0.8]))
        for k, place in enumerate(rng.uniform(-0.1, 0.1, (int(rng.integers(1, 3)), 3))):
            foot = b.attach(cd.geometry.sphere(0.02), b.frame(tuple(place)))
            m.contact(f"foot {k}", floor, foot, unilateral=True, restitution=e, friction=mu)
        rates = np.concatenate([rng.uniform(-1.0, 1.0, 3), rng.uniform(-5.0, 5.0, 3)])
        sim = m.simulate(1.0, m.assemble().state.with_rates(rates[None]), rtol=1e-9)
        assert sim.ok
        assert balance(sim) < 1e-8
        assert sim.penetration < 1e-11


# -- hits in turn, and determinism -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lifted", "impacts"), [(1, "in_turn"), (2, "in_turn"), (1, "together")])
def test_newtons_cradle_needs_hits_in_turn(lifted, impacts):
    m = cd.Mechanism("cradle", gravity=(0.0, 0.0, -G))
    radius, faces, y = 0.05, [], (0.0, 1.0, 0.0)
    for k in range(5):
        angle = 0.3 if k < lifted else 0.0
        x, turned = 2.0 * k * radius, (math.cos(0.5 * angle), 0.0, math.sin(0.5 * angle), 0.0)
        place = (x - math.sin(angle), 0.0, -math.cos(angle))
        b = m.body(f"b{k}", position=place, orientation=turned, mass=1.0, inertia=0.001 * np.eye(3))
        m.revolute(f"r{k}", m.ground.frame((x, 0.0, 0.0), z=y), b.frame((0.0, 0.0, 1.0), z=y))
        faces.append(b.attach(cd.geometry.sphere(radius)))
        if k:
            m.contact(f"c{k}", faces[-2], faces[-1], unilateral=True, restitution=1.0)
    sim = m.simulate(0.7, rtol=1e-10, impacts=impacts)
    moves = [abs(sim.velocities(f"b{k}")[-1, 4]) > 1e-3 for k in range(5)]
    assert moves == ([k >= 5 - lifted for k in range(5)] if impacts == "in_turn" else [True] * 5)
    assert balance(sim) < 1e-10


def test_runs_are_the_same_bits_twice_in_threads_and_after_pickling():
    m, start = rolling_ball(0.3, 2.0, 0.0)
    bar = four_bar(0.4)

    def results(_=None):
        return [m.simulate(0.5, start, rtol=1e-8), bar.simulate(1.0, rtol=1e-8)]

    first = results()
    with ThreadPoolExecutor(2) as pool:
        others = [*pool.map(results, range(2)), pickle.loads(pickle.dumps(first))]
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert (a._results == b._results).all()
            assert (a.energy.lost_friction == b.energy.lost_friction).all()
            assert a.events == b.events
    stopped = m.simulate(0.5, start, step=1e-4, max_seconds=1e-9)
    assert stopped.status is cd.SimulationStatus.TIME_LIMIT
    again, whole = pickle.loads(pickle.dumps(stopped)).resume(), m.simulate(0.5, start, step=1e-4)
    assert (again._results == whole._results).all()
    assert (again.energy.lost_friction == whole.energy.lost_friction).all()
