"""Friction of joints by their reactions, with stick: against closed forms and a scalar integration."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.errors import ModelError

G = 9.81
TIME = 1e-8  # s: of stick and slip, with rtol 1e-10


def rotor(swapped=False, *, at=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), distance=0.0, gravity=None, **bearing):
    """A balanced rotor of 30 kg and 0.7 kg m² in a bearing, with its centre at a distance along the axis."""
    m = cd.Mechanism("rotor", gravity=(0.0, -G, 0.0) if gravity is None else gravity)
    given = {"mass": 30.0, "inertia": np.diag([0.4, 0.4, 0.7]), "center": (0, 0, distance)}
    body = m.body("rotor", position=at, **given)
    ends = m.ground.frame(at, z=axis), body.frame(z=axis)
    m.revolute("A", *(ends[::-1] if swapped else ends), friction=cd.bearing(**{"mu": 0.3, "radius": 0.02} | bearing))
    return m


def spinning(m, rate):
    """A state of a rotor with a rate about its z axis."""
    return m.state.with_rates(np.array([[0.0, 0, 0, 0, 0, rate]]))


def kinds(sim):
    return [str(getattr(event, "kind", event)) for event in sim.events]


def imbalance(sim):
    lost = sim.energy.lost_impact + sim.energy.lost_friction
    balance = sim.energy.total + lost
    return np.abs(balance - balance[0]).max()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("steps", [{"rtol": 1e-6}, {"step": 0.01}, {"step": 0.01, "method": "rk4"}])
@pytest.mark.parametrize("at", [(0.0, 0.0, 0.0), (20.0, -30.0, 5.0)])
def test_a_balanced_rotor_stops_after_its_spin_over_the_torque_of_the_friction_circle(swapped, steps, at):
    m = rotor(swapped, at=at)
    torque = 0.3 * 0.02 * 30.0 * G / math.hypot(1.0, 0.3)
    end = 0.7 * 12.0 / torque
    sim = m.simulate(1.2 * end, spinning(m, 12.0), **steps)
    assert sim.ok and kinds(sim) == ["stick"] and sim.events[0].name == "A"
    assert abs(sim.events[0].time - end) < TIME
    sign = -1.0 if swapped else 1.0
    assert sim.coordinate("A")[-1] == pytest.approx(sign * 6.0 * end, rel=1e-10)
    assert np.allclose(sim.effort("A.friction")[sim.times < end], -sign * torque, rtol=1e-11)
    assert abs(sim.effort("A.friction")[-1]) < 1e-12 * torque
    assert sim.energy.lost_friction[-1] == pytest.approx(0.35 * 144.0, rel=1e-10)
    assert imbalance(sim) < 1e-9 * 0.35 * 144.0
    assert (sim.states[-1]["rotor"].angular_velocity == 0.0).all()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("options", "given", "torque"),
    [
        ({"collar": 0.05}, {"axis": (0.0, 1.0, 0.0)}, 0.3 * 0.05 * 30.0 * G),  # on a thrust face
        ({"length": 0.4}, {"distance": 0.1}, 0.3 * 0.02 / math.hypot(1.0, 0.3) * 30.0 * G),  # between the ends
        ({"length": 0.4}, {"distance": 0.5}, 0.3 * 0.02 / math.hypot(1.0, 0.3) * 30.0 * G * 2.5),  # overhung
    ],
)
def test_the_length_and_the_collar_of_a_bearing_carry_moments_and_thrust(swapped, options, given, torque):
    m = rotor(swapped, **given, **options)
    w = 3.0
    start = m.state.with_rates(np.array([[0, 0, 0, *(w * np.array(given.get("axis", (0.0, 0.0, 1.0))))]], dtype=float))
    inertia = 0.4 if "axis" in given else 0.7
    sim = m.simulate(1.1 * inertia * w / torque, start, rtol=1e-8)
    if distance := given.get("distance"):
        assert distance and abs(sim.states[0]["rotor"].angular_velocity[2]) == pytest.approx(w)
    assert kinds(sim) == ["stick"]
    assert abs(sim.events[0].time - inertia * w / torque) < TIME


MASS, ARM, MOMENT, MU, RADIUS = 1.7, 0.4, 0.05, 0.5, 0.018
CIRCLE = MU * RADIUS / math.hypot(1.0, MU)
INERTIA = MOMENT + MASS * ARM**2


def pendulum(start):
    m = cd.Mechanism("pendulum", gravity=(0.0, -G, 0.0))
    body = m.body("bob", mass=MASS, inertia=(MOMENT,) * 3, center=(0, -ARM, 0))
    m.revolute("A", m.ground.frame(), body.frame(), friction=cd.bearing(MU, RADIUS))
    m.drive("start", "A", start)
    state = m.assemble().state
    m.remove("start")
    return m, state


def acceleration(angle, rate, way):
    """φ̈ with I φ̈ = −m g l sin φ − s k R, where R is that of the same φ̈."""
    a = -MASS * G * ARM * math.sin(angle) / INERTIA
    for _ in range(100):
        load = MASS * math.hypot(ARM * rate**2 + G * math.cos(angle), ARM * a + G * math.sin(angle))
        before, a = a, (-MASS * G * ARM * math.sin(angle) - way * CIRCLE * load) / INERTIA
        if a == before:
            break
    return a


def swings(angle):
    """Times and angles of all reversals of a pendulum that starts at rest, until it sticks."""
    time, found = 0.0, []
    while abs(math.sin(angle)) * ARM > CIRCLE:
        way = -math.copysign(1.0, angle)

        def stops(t, y, start=time, way=way):
            return 1.0 if t < start + 0.1 else way * y[1]

        stops.terminal = True
        run = solve_ivp(
            lambda t, y, way=way: (y[1], acceleration(y[0], y[1], way)),
            (time, time + 5.0),
            (angle, 0.0),
            method="DOP853",
            rtol=1e-13,
            atol=1e-14,
            events=stops,
        )
        time, angle = float(run.t_events[0][0]), float(run.y_events[0][0][0])
        found.append((time, angle))
    return found


def test_a_pendulum_swings_as_a_scalar_integration_and_sticks():
    found = swings(1.0)
    assert len(found) >= 20
    m, state = pendulum(1.0)
    end, rest = found[-1]
    sim = m.simulate(1.1 * end, state, rtol=1e-10, times=[0.0, *(time for time, _ in found), 1.1 * end])
    assert kinds(sim) == ["slip"] * (len(found) - 1) + ["stick"]
    assert np.abs(np.array([event.time for event in sim.events]) - [time for time, _ in found]).max() < TIME
    assert np.abs(sim.coordinate("A")[1:-1] - [angle for _, angle in found]).max() < 1e-8
    assert abs(sim.coordinate("A")[-1] - rest) < 1e-7
    assert imbalance(sim) < 1e-8
    assert sim.effort("A.friction")[-1] == pytest.approx(MASS * G * ARM * math.sin(rest), rel=1e-7)
    assert sim.reaction("A", axes="joint").torque[-1, 2] == pytest.approx(MASS * G * ARM * math.sin(rest), rel=1e-7)


def test_the_friction_of_a_joint_is_that_of_the_load_of_the_same_instant():
    m, state = pendulum(1.0)
    sim = m.simulate(0.5, state, rtol=1e-8)
    load = np.hypot(*sim.reaction("A", axes="joint").force[1:, :2].T)
    assert np.allclose(sim.effort("A.friction")[1:], CIRCLE * load, rtol=1e-10)


@pytest.mark.parametrize("static", [None, 0.4])
def test_a_joint_sticks_for_an_hour_below_its_limit_and_slips_above_it(static):
    mu = static or 0.3
    limit = mu * 0.02 * 30.0 * G / math.hypot(1.0, mu)
    for part in (0.999, 1.001, -1.001):
        m = rotor(static=static)
        m.torque("load", m["rotor"], (0.0, 0.0, part * limit))
        sim = m.simulate(3600.0 if part < 1.0 and part > 0.0 else 1.0, rtol=1e-8)
        if part == 0.999:
            assert (sim.coordinate("A") == 0.0).all() and not sim.events
            assert sim.effort("A.friction") == pytest.approx(-0.999 * limit, rel=1e-12)
        else:
            kinetic = 0.3 * 0.02 * 30.0 * G / math.hypot(1.0, 0.3)
            turn = 0.5 * (abs(part) * limit - kinetic) / 0.7
            assert sim.coordinate("A")[-1] == pytest.approx(math.copysign(turn, part), rel=1e-9)


@pytest.mark.parametrize("static", [None, 0.4])
def test_a_torque_that_grows_releases_a_joint_where_it_reaches_the_limit(static):
    mu = static or 0.3
    limit = mu * 0.02 * 30.0 * G / math.hypot(1.0, mu)
    m = rotor(static=static)
    m.actuator("load", "A", lambda t, q, rate: 3.0 * cd.sin(t))
    sim = m.simulate(12.0, rtol=1e-10)
    first, second = sim.events[:2]
    assert (first.kind, second.kind) == ("slip", "stick")
    assert abs(first.time - math.asin(limit / 3.0)) < TIME
    assert (sim.coordinate("A")[sim.times < first.time] == 0.0).all()
    kinetic = 0.3 * 0.02 * 30.0 * G / math.hypot(1.0, 0.3)
    t = second.time - first.time
    rate = 3.0 * (math.cos(first.time) - math.cos(second.time)) - kinetic * t
    assert abs(rate) < 1e-8 and kinds(sim)[:6] == ["slip", "stick"] * 3


def drawer(length, lever=0.3, mu=0.4, width=None, **more):
    """2 kg on a guide along z, pushed along it by 5 N at a lever."""
    m = cd.Mechanism("drawer", gravity=(0.0, 0.0, 0.0))
    body = m.body("drawer", mass=2.0, inertia=np.eye(3))
    m.prismatic("P", m.ground.frame(), body.frame(), friction=cd.guide(mu, length=length, width=width))
    m.force("push", body.point((0, lever, 0)), (0.0, 0.0, 5.0), **more)
    return m


@pytest.mark.parametrize("part", [0.5, 1.0 - 1e-9, 1.0 + 1e-9, 2.0])
@pytest.mark.parametrize("width", [None, 0.5])
def test_a_drawer_jams_where_its_guide_is_shorter_than_twice_the_friction_times_the_lever(part, width):
    sim = drawer(part * 2.0 * 0.4 * 0.3, width=width).simulate(1.0, rtol=1e-9)
    way = sim.coordinate("P")[-1]
    assert (way == 0.0) if part < 1.0 else way > 0.0
    assert way == pytest.approx(max(0.0, 0.5 * 2.5 * (1.0 - 1.0 / part)), rel=1e-6)


@pytest.mark.parametrize("speed", [1.0, -1.0])
@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("swapped", [False, True])
def test_friction_on_the_sides_of_a_guide_adds_to_the_torque_that_it_carries(speed, axis, swapped):
    """A force P across the axis at e: both ends push against each other with P (2 e ± μ w)/L, w of both sides."""
    mu, length, width, e, force = 0.4, 0.2, 0.1, 0.15, 3.0
    m = cd.Mechanism("guide", gravity=(0.0, 0.0, 0.0))
    body = m.body("drawer", mass=2.0, inertia=np.eye(3))
    across = np.array((1.0, 0, 0)) if axis == "x" else np.array((0, 1.0, 0))
    m.prismatic("P", m.ground.frame(), body.frame(), friction=cd.guide(mu, length=length, width=width))
    m.force("push", body.point((0, 0, -e if swapped else e)), tuple(force * across))
    sim = m.simulate(0.01, m.state.with_rates(np.array([[0, 0, speed, 0, 0, 0]])), rtol=1e-9)
    way = -1.0 if swapped else 1.0
    friction = mu * force * (2.0 * e + way * math.copysign(mu * width, speed)) / length
    assert np.allclose(sim.accelerations("drawer")[:, 2], -math.copysign(friction / 2.0, speed), rtol=1e-9)


def test_a_torque_about_the_axis_of_a_guide_is_a_pair_of_forces():
    m = drawer(None, lever=0.0)
    m.torque("twist", m["drawer"], (0.0, 0.0, 0.8))
    assert m.simulate(1.0).coordinate("P")[-1] == pytest.approx(0.5 * 2.5, rel=1e-9)
    m = drawer(0.3, lever=0.0, width=0.2)
    m.torque("twist", m["drawer"], (0.0, 0.0, 0.8))
    sim = m.simulate(1.0)
    assert sim.coordinate("P")[-1] == pytest.approx(0.5 * (5.0 - 0.4 * 2.0 * 0.8 / 0.2) / 2.0, rel=1e-9)


def slider_crank(**frictions):
    m = cd.Mechanism("slider crank", gravity=(0.0, -G, 0.0))
    inertia = np.diag([0.01, 0.02, 0.02])
    for name, x, mass in (("crank", 0.0, 0.5), ("rod", 0.2, 0.8), ("slider", 0.7, 1.1)):
        m.body(name, position=(x, 0, 0), mass=mass, inertia=inertia, center=(0.1 if name != "slider" else 0.0, 0, 0))
    bearing = cd.bearing(0.1, 0.01)
    m.revolute("A", m.ground.frame(), m["crank"].frame(), friction=frictions.get("A", bearing))
    m.revolute("B", m["crank"].frame((0.2, 0, 0)), m["rod"].frame(), friction=frictions.get("B", bearing))
    m.revolute("C", m["rod"].frame((0.5, 0, 0)), m["slider"].frame(), friction=frictions.get("C", bearing))
    guide = frictions.get("P", cd.guide(0.15, length=0.1))
    m.prismatic("P", m.ground.frame(z=(1, 0, 0)), m["slider"].frame(z=(1, 0, 0)), friction=guide)
    return m


def test_a_slider_crank_with_friction_in_every_joint_comes_to_rest_and_keeps_its_energy_account():
    m = slider_crank()
    m.drive("start", "A", 2.0)
    start = m.assemble().state
    m.remove("start")
    sim = m.simulate(6.0, start, rtol=1e-9)
    assert sim.ok, sim.text()
    assert imbalance(sim) < 1e-7
    assert sim.energy.kinetic[-1] < 1e-30
    for name in "ABC":
        load = np.hypot(*sim.reaction(name, axes="joint").force[:, :2].T)
        limit = 0.1 * 0.01 / math.hypot(1.0, 0.1) * load
        assert (np.abs(sim.effort(f"{name}.friction")) <= limit * (1.0 + 1e-6)).all()
    assert sim.drift.max() < 1e-12


def test_a_dead_point_does_not_stick():
    """At the drawn pose the slider cannot move: it begins to slip a little later."""
    for steps in ({"rtol": 1e-8}, {"step": 1e-3}):
        sim = slider_crank().simulate(1.0, **steps)
        assert sim.ok, sim.text()
        assert imbalance(sim) < 1e-6 and sim.energy.lost_friction[-1] > 1e-3
    plain = slider_crank(A=None, B=None, C=None, P=None).simulate(1.0, rtol=1e-8)
    assert 0.0 < abs(plain.coordinate("A") - sim.coordinate("A")[::10][: len(plain.times)]).max() < 1.0


def test_a_driver_holds_and_moves_a_joint_with_friction():
    """The effort of the driver is the weight while it rests, and has the friction added while it moves."""
    m, _ = pendulum(1.0)
    m.drive("motor", "A", lambda t: 0.4 * cd.clip(t - 1.0, 0.0, 9.0) ** 3)
    sim = m.simulate(2.0, rtol=1e-9)
    assert sim.ok, sim.text()
    rests = sim.times < 1.0
    assert np.allclose(sim.effort("A.friction")[rests], 0.0, atol=1e-12)
    assert np.allclose(sim.effort("motor")[rests], 0.0, atol=1e-9)
    load = np.hypot(*sim.reaction("A", axes="joint").force[:, :2].T)
    late = sim.times > 1.1
    assert np.allclose(sim.effort("A.friction")[late], -CIRCLE * load[late], rtol=1e-9)
    angle, rate = sim.coordinate("A"), 2.4 * np.clip(sim.times - 1.0, 0.0, 9.0)
    needed = INERTIA * rate + MASS * G * ARM * np.sin(angle) + CIRCLE * load
    assert np.allclose(sim.effort("motor")[late], needed[late], rtol=1e-8)


def test_a_stop_is_hit_without_an_impulse_of_friction_and_then_friction_acts_again():
    m = rotor()
    m.limit("stop", "A", upper=0.5, restitution=0.6)
    torque = 0.3 * 0.02 * 30.0 * G / math.hypot(1.0, 0.3)
    sim = m.simulate(3.0, spinning(m, 3.0), rtol=1e-9)
    assert kinds(sim)[0] == "hit" and kinds(sim)[-1] == "stick"
    before = math.sqrt(9.0 - 2.0 * torque / 0.7 * 0.5)
    assert sim.events[0].speed == pytest.approx(before, rel=1e-9)
    way = 0.5 * (0.6 * before) ** 2 * 0.7 / torque
    assert sim.coordinate("A")[-1] == pytest.approx(0.5 - way, rel=1e-8)
    assert imbalance(sim) < 1e-8


def test_a_stop_that_carries_the_load_leaves_none_to_friction():
    m, state = pendulum(1.0)
    m.limit("stop", "A", lower=0.3)
    sim = m.simulate(3.0, state, rtol=1e-9)
    assert sim.coordinate("A")[-1] == pytest.approx(0.3, abs=1e-12)
    assert imbalance(sim) < 1e-8


def test_loads_that_are_not_unique_are_noted():
    m = rotor()
    m.revolute("B", m.ground.frame((0, 0, 0.5)), m["rotor"].frame((0, 0, 0.5)))
    sim = m.simulate(0.1, spinning(m, 1.0), rtol=1e-6)
    assert any("load on the friction of 'A' is not unique" in note for note in sim.notes)
    planar = slider_crank().simulate(0.01, rtol=1e-6)
    assert not [note for note in planar.notes if "not unique" in note and "'A'" in note]


def test_friction_is_copied_compared_removed_and_refused_by_files(tmp_path):
    m = rotor()
    for again in (m.copy(), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert again == m
        assert again.simulate(0.1, spinning(m, 1.0), step=0.01) == m.simulate(0.1, spinning(m, 1.0), step=0.01)
    assert m != rotor(mu=0.2)
    with pytest.raises(ModelError, match=r"joint 'A' cannot be saved: it has friction=bearing\(mu=0.3, radius=0.02\)"):
        m.save(tmp_path / "m.cardan.toml")
    sim = m.simulate(0.1, step=0.01)
    assert len(pickle.loads(pickle.dumps(sim)).states) == len(sim.states)
    with pytest.raises(ModelError, match="cannot be saved"):
        sim.save(tmp_path / "run.npz")
    m.remove("A")
    m.revolute("A", m.ground.frame(), m["rotor"].frame())
    assert m.simulate(0.1, spinning(m, 1.0), step=0.01).energy.lost_friction[-1] == 0.0


def test_a_run_that_was_stopped_goes_on_with_the_same_numbers():
    m, state = pendulum(1.0)
    whole = m.simulate(3.0, state, rtol=1e-8)
    part = m.simulate(3.0, state, rtol=1e-8, max_seconds=1e-9)
    while part.status == "time limit":
        part = part.resume(max_seconds=1e-9)
    assert part == whole and np.array_equal(part.energy.lost_friction, whole.energy.lost_friction)


def test_many_runs_keep_efforts_and_events_of_friction():
    m = rotor()
    starts = [spinning(m, rate) for rate in (1.0, 2.0)]
    runs = m.simulate_many(1.0, states=starts, outputs=["effort(A.friction)", "time(A)"], step=0.01)
    assert runs.units["effort(A.friction)"] == "N m"
    for k, start in enumerate(starts):
        sim = m.simulate(1.0, start, step=0.01)
        assert kinds(sim) == ["stick"]
        assert np.array_equal(runs["effort(A.friction)"][k], sim.effort("A.friction"))
        assert runs["time(A)"][k] == sim.events[0].time
    with pytest.raises(ModelError, match=r"A\.friction"):
        m.simulate_many(1.0, states=starts, outputs=["effort(B.friction)"])
    for output in ("effort(G.friction)", "effort(S.friction)"):
        m = worm(0.4, 0.3, 0.0, 5.0) if "G" in output else nut(0.1)
        runs = m.simulate_many(0.1, states=[m.state], outputs=[output], rtol=1e-8)
        assert runs.units[output] == "N m" and np.array_equal(runs[output][0], runs.again(0).effort(output[7:-1]))
    m = worm(0.4, 0.3, 0.0, -5.0)
    m.drive("motor", "W", lambda t: t)
    runs = m.move_many([0.0, 0.5, 1.0], starts=[m.state], outputs=["effort(G.friction)"])
    assert np.array_equal(runs["effort(G.friction)"][0], m.move([0.0, 0.5, 1.0]).effort("G.friction"))


def test_what_does_not_consider_friction_refuses_it_by_name():
    m = rotor()
    calls = [m.equilibrium, m.motion_equations, lambda: m.session(mode="dynamic")]
    for options in ({"method": "generalized_alpha"}, {"stabilization": "none"}):
        calls.append(lambda options=options: m.simulate(0.1, step=0.01, **options))
    for call in calls:
        with pytest.raises(ModelError, match=r"'A'.*has"):
            call()
    floor = m.ground.attach(cd.geometry.plane(), m.ground.frame((0.0, 0.0, -3.0)))
    ball = m.body("ball", mass=1.0, inertia=np.eye(3)).attach(cd.geometry.sphere(0.1))
    m.contact("on", floor, ball, unilateral=True)
    with pytest.raises(ModelError, match="joint 'A' has friction, and contact 'on' opens"):
        m.simulate(1.0)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: cd.bearing(-0.1, 0.02), "mu of a bearing is -0.1"),
        (lambda: cd.bearing(0.1, 0.0), "the radius of a bearing is 0"),
        (lambda: cd.bearing(0.1, math.nan), "the radius of a bearing"),
        (lambda: cd.bearing(0.3, 0.02, static=0.2), "static of a bearing is 0.2; it must not be below mu"),
        (lambda: cd.bearing("wet", 0.02), "mu of a bearing"),
        (lambda: cd.guide(0.1, width=0.2), "a guide was given a width, but no length"),
        (lambda: rotor().prismatic("P", None, None, friction=0.3), "friction is 0.3; it must be made by cd.guide"),
        (lambda: cd.Mechanism().revolute("A", None, None, friction=cd.guide(0.1)), "it must be made by cd.bearing"),
    ],
)
def test_friction_that_is_none_is_refused(make, match):
    with pytest.raises(ModelError, match=match):
        make()
    with pytest.raises(cd.ArgumentError, match="friction"):
        m = cd.Mechanism()
        m.spherical("S", m.ground.point(), m.body("b").point(), friction=cd.bearing(0.1, 0.02))


PITCH, MEAN, HEAVY, SPIN = 0.006, 0.01, 40.0, 0.02  # of a screw [m], [m], and its nut [kg], [kg m²]
LEAD = PITCH / (2.0 * math.pi)


def nut(mu, swapped=False, **more):
    """A nut that gravity presses along a vertical screw."""
    m = cd.Mechanism("nut", gravity=(0.0, 0.0, -G))
    body = m.body("nut", mass=HEAVY, inertia=(SPIN, SPIN, SPIN))
    ends = m.ground.frame(), body.frame()
    friction = cd.thread(mu, MEAN, **more)
    m.screw("S", *(ends[::-1] if swapped else ends), pitch=PITCH, friction=friction)
    return m


@pytest.mark.parametrize("part", [0.3, 1.0 - 1e-9, 1.0 + 1e-9, 2.0])
@pytest.mark.parametrize("flank", [0.0, math.radians(30.0)])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_screw_runs_back_where_its_lead_angle_exceeds_the_angle_of_friction(part, flank, swapped):
    slope = LEAD / MEAN
    normal = math.cos(math.atan(math.tan(flank) / math.hypot(1.0, slope)))  # of the flank in the normal section
    mu = part * slope * normal
    sim = nut(mu, swapped, flank=flank).simulate(1.0, rtol=1e-9)
    rough = part * slope
    resisting = MEAN * rough * (1.0 + slope**2) / (1.0 + rough * slope)
    left = LEAD - resisting
    growth = -left * HEAVY * G / (SPIN + left * HEAVY * LEAD) if part < 1.0 else 0.0
    angle = (-1.0 if swapped else 1.0) * sim.coordinate("S", "angle")[-1]
    assert angle == pytest.approx(0.5 * growth, rel=1e-6, abs=1e-30)
    assert imbalance(sim) < 1e-8


def test_a_screw_needs_the_torque_of_its_lead_angle_and_its_friction_to_lift():
    mu, slope = 0.15, LEAD / MEAN
    lift = HEAVY * G * MEAN * math.tan(math.atan(slope) + math.atan(mu)) + 0.15 * 0.03 * HEAVY * G
    lower = HEAVY * G * MEAN * math.tan(math.atan(mu) - math.atan(slope)) + 0.15 * 0.03 * HEAVY * G
    for torque, moves in ((0.999 * lift, 0), (1.001 * lift, 1), (-0.999 * lower, 0), (-1.001 * lower, -1)):
        m = nut(mu, collar=0.03)
        m.torque("hand", m["nut"], (0.0, 0.0, torque))
        angle = m.simulate(0.1, rtol=1e-8).coordinate("S", "angle")[-1]
        assert np.sign(angle) * (abs(angle) > 1e-30) == moves


def worm(efficiency, back, torque, load):
    """A worm of 0.001 kg m² with 40 teeth on a wheel of 0.3 kg m²."""
    m = cd.Mechanism("worm gear", gravity=(0.0, 0.0, 0.0))
    m.revolute("W", m.ground.frame(), m.body("worm", mass=1.0, inertia=(0.001,) * 3).frame())
    wheel = m.body("wheel", position=(0, 1, 0), mass=1.0, inertia=(0.3,) * 3)
    m.revolute("V", m.ground.frame((0, 1, 0), z=(1, 0, 0)), wheel.frame(z=(1, 0, 0)))
    m.gear("G", "W", "V", ratio=1.0 / 40.0, friction=cd.mesh(efficiency, back=back))
    m.torque("hand", m["worm"], (0.0, 0.0, torque))
    m.torque("load", wheel, (load, 0.0, 0.0))
    return m


@pytest.mark.parametrize("back", [0.3, 1e-9, -1e-9, -0.5])
def test_a_worm_gear_runs_back_where_its_efficiency_backwards_is_positive(back):
    sim = worm(0.4, back, 0.0, 5.0).simulate(1.0, rtol=1e-9)
    growth = 5.0 / (0.001 * 40.0 / back + 0.3 / 40.0) if back > 0.0 else 0.0
    assert sim.coordinate("W")[-1] == pytest.approx(0.5 * growth, rel=1e-6, abs=1e-15)


def test_a_worm_gear_lifts_with_its_efficiency():
    for torque, lifts in ((0.999 * 5.0 / 40.0 / 0.4, False), (1.001 * 5.0 / 40.0 / 0.4, True), (2.0, True)):
        sim = worm(0.4, -0.2, torque, -5.0).simulate(0.5, rtol=1e-9)
        growth = (torque - 5.0 / 40.0 / 0.4) / (0.001 + 0.3 / 40.0**2 / 0.4) if lifts else 0.0
        assert sim.coordinate("W")[-1] == pytest.approx(0.125 * growth, rel=1e-9)
        assert imbalance_of_work(sim, torque) < 1e-7


def imbalance_of_work(sim, torque):
    """Of a worm gear, with the work of both torques."""
    work = torque * sim.coordinate("W") - 5.0 * sim.coordinate("V")
    return np.abs(sim.energy.kinetic + sim.energy.lost_friction - work).max()


def test_the_effort_over_a_turn_of_a_driven_motion_is_that_of_a_driven_simulation():
    m = slider_crank()
    m.drive("motor", "A", lambda t: 0.3 + 4.0 * t + 0.5 * cd.sin(3.0 * t))
    times = np.linspace(0.0, 2.0, 41)
    motion, sim = m.move(times), m.simulate(2.0, m.move([0.0, 1e-3]).states[0], rtol=1e-11, times=times)
    assert motion.ok and sim.ok, sim.text()
    scale = np.abs(sim.effort("motor")).max()
    assert np.abs(motion.effort("motor") - sim.effort("motor")).max() < 1e-8 * scale
    for name in "ABCP":
        assert np.abs(motion.effort(f"{name}.friction") - sim.effort(f"{name}.friction")).max() < 1e-8 * scale
        difference = motion.reaction(name).force - sim.reaction(name).force
        assert np.abs(difference).max() < 1e-8 * np.abs(sim.reaction(name).force).max()
    without = slider_crank(A=None, B=None, C=None, P=None)
    without.drive("motor", "A", lambda t: 0.3 + 4.0 * t + 0.5 * cd.sin(3.0 * t))
    assert np.abs(without.move(times).effort("motor") - motion.effort("motor")).max() > 1e-2 * scale


def test_driven_motions_of_screws_and_gears_need_their_friction():
    m = nut(0.15)
    m.drive("motor", m["S"].of("angle"), lambda t: 2.0 * t)
    lift = HEAVY * G * MEAN * math.tan(math.atan(LEAD / MEAN) + math.atan(0.15))
    assert np.allclose(m.move([0.0, 0.5, 1.0]).effort("motor"), lift, rtol=1e-12)
    for way, needed in ((1.0, 5.0 / 40.0 / 0.4), (-1.0, 5.0 / 40.0 * -0.2)):
        m = worm(0.4, -0.2, 0.0, -5.0)
        m.drive("motor", "W", lambda t, way=way: way * t)
        assert np.allclose(m.move([0.0, 0.5, 1.0]).effort("motor"), needed, rtol=1e-12)
    m = rotor()
    m.drive("motor", "A", lambda t: 1.0 + 0.0 * t)
    with pytest.raises(ModelError, match=r"joint 'A' has friction and is at rest at t = 0 s"):
        m.move([0.0, 1.0]).effort("motor")


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
def test_a_driven_guide_is_at_rest_relative_to_the_extent(size):
    """Of 3 kg, at extents per second above and below 1e-9."""

    def effort(speed):
        m = cd.Mechanism("stage", gravity=(0.0, -G, 0.0))
        table, end = (m.body(name, position=at, mass=1.5) for name, at in (("table", (0, 0, 0)), ("end", (0, 0, size))))
        m.prismatic("P", m.ground.frame(z=(1, 0, 0)), table.frame(z=(1, 0, 0)), friction=cd.guide(0.2))
        m.fixed("F", table.frame((0, 0, size)), end.frame())
        m.drive("motor", "P", lambda t: size * speed * t)
        return m.move([0.0, 1.0]).effort("motor")

    assert effort(1e-7) == pytest.approx(0.2 * 3.0 * G, rel=1e-9)
    with pytest.raises(ModelError, match="joint 'P' has friction and is at rest at t = 0 s"):
        effort(1e-11)
