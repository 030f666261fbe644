"""Reactions, efforts and motions of single joints and couplings against textbook formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.math import euler

X, Y, Z = np.eye(3)
G = 9.81


def is_done(found):
    assert found.ok, found.text()
    return found


def test_a_nut_turns_as_it_sinks():
    """a = g / (1 + J (2π/p)²/m); the thread carries the rest of the weight and turns the nut."""
    pitch, mass, J = 0.05, 2.0, 0.3
    m = cd.Mechanism()
    nut = m.body("nut", position=(0.3, 0, 0), center=(-0.3, 0, 0), mass=mass, inertia=np.diag([0.1, 0.2, J]))
    m.screw("thread", m.ground.frame(), nut.frame((-0.3, 0, 0)), pitch=pitch)
    found = is_done(m.simulate(1.0, rtol=1e-10))
    turns = 2 * np.pi / pitch
    a = -G / (1 + J * turns**2 / mass)
    assert found.coordinate(m["thread"].of("displacement"))[-1] == pytest.approx(a / 2, abs=1e-12)
    for on, sign in (("b", 1), ("a", -1)):
        reaction = found.reaction("thread", on=on)
        assert np.abs(sign * reaction.force - (0, 0, mass * (G + a))).max() < 1e-10
        assert np.abs(sign * reaction.torque - (0, 0, J * a * turns)).max() < 1e-10


def test_two_loads_on_a_pulley():
    """Atwood's machine with the inertia of the pulley, as two racks: the forces of both sides differ."""
    m = cd.Mechanism()
    pulley = m.body("pulley", mass=1.0, inertia=0.02 * np.eye(3))
    axle = m.revolute("axle", m.ground.frame(z=Y), pulley.frame(z=Y))
    for name, mass, radius in (("left", 3.0, -0.1), ("right", 2.0, 0.1)):
        load = m.body(name, position=(-radius, 0, -1), mass=mass, inertia=np.eye(3))
        slide = m.prismatic(f"{name} slide", m.ground.frame((-radius, 0, -1)), load.frame())
        m.rack(f"{name} rope", axle, slide, radius=radius)
    found = is_done(m.simulate(1.0, rtol=1e-10))
    a = G / (5 + 0.02 / 0.1**2)
    assert found.positions("left")[-1, 2] == pytest.approx(-1 - a / 2, abs=1e-12)
    assert np.abs(found.reaction("left rope").force - (0, 0, 3 * (G - a))).max() < 1e-10
    assert np.abs(found.reaction("right rope").force - (0, 0, 2 * (G + a))).max() < 1e-10
    assert np.abs(found.reaction("left rope", on="a").torque - (0, 0.3 * (G - a), 0)).max() < 1e-10


def test_a_cardan_joint_transmits_its_varying_speed_and_torque():
    """ω₂/ω₁ = cos β / (1 − sin²β sin²φ), and the power of the motor is that of both inertias."""
    bend, J_1, J_2 = 0.5, 0.3, 0.7
    m = cd.Mechanism(gravity=(0, 0, 0))
    out = np.array([np.sin(bend), 0, np.cos(bend)])
    first = m.body("first", mass=1.0, inertia=np.diag([1, 1, J_1]))
    second = m.body("second", orientation=(Y, bend), mass=1.0, inertia=np.diag([1, 1, J_2]))
    m.revolute("in", m.ground, first, at=(0, 0, -1), axis=Z)
    m.revolute("out", m.ground, second, at=out, axis=out)
    m.universal("cross", first, second, at=(0, 0, 0), axis=Y, x=np.cross(Y, out))
    m.drive("motor", m["in"], lambda t: 2 * t + 0.3 * t * t)
    motion = is_done(m.move(np.linspace(0, 2, 41)))
    phi, rate = 2 * motion.times + 0.3 * motion.times**2, 2 + 0.6 * motion.times
    below = 1 - (np.sin(bend) * np.sin(phi)) ** 2
    ratio = np.cos(bend) / below
    growth = np.cos(bend) * np.sin(bend) ** 2 * np.sin(2 * phi) / below**2  # dratio/dφ
    assert np.abs([state["second"].angular_velocity @ out for state in motion.states] - ratio * rate).max() < 1e-12
    torque = J_2 * (0.6 * ratio + growth * rate**2)
    assert np.abs(motion.reaction("cross").torque @ out - torque).max() < 1e-11
    assert np.abs(motion.effort("motor") - 0.6 * J_1 - torque * ratio).max() < 1e-11


def test_a_bead_on_a_turning_rod_is_pushed_by_coriolis_force():
    """r = r₀ cosh ωt; the rod pushes with 2 m ω ṙ, and the motor works against it."""
    rate, mass = 2.0, 0.7
    m = cd.Mechanism()
    rod = m.body("rod", mass=1.0, inertia=np.eye(3))
    bead = m.body("bead", position=(0.5, 0, 0), mass=mass, inertia=1e-3 * np.eye(3))
    m.revolute("axle", m.ground.frame(), rod.frame())
    m.point_on_line("on", bead.point(), rod.frame(z=X))
    m.drive("motor", m["axle"], lambda t: rate * t)
    found = is_done(m.simulate(1.0, m.solve_rates(m.assemble().state, {"on": 0.0}), rtol=1e-10))
    phi = rate * found.times
    r, dr = 0.5 * np.cosh(phi), 0.5 * rate * np.sinh(phi)
    across = np.column_stack([-np.sin(phi), np.cos(phi), 0 * phi])
    assert np.abs(np.linalg.norm(found.positions(bead), axis=1) - r).max() < 1e-9
    push = 2 * mass * rate * dr
    assert np.abs(found.reaction("on", on="a").force - push[:, None] * across - (0, 0, mass * G)).max() < 1e-8
    assert np.abs(found.effort("motor") - push * r).max() < 1e-8


def test_a_rope_that_is_pulled_in_keeps_the_moment_of_momentum():
    """θ̇ = h/r², and the rope pulls with m h²/r³."""
    m = cd.Mechanism(gravity=(0, 0, 0))
    bob = m.body("bob", position=(1, 0, 0), mass=2.0, inertia=np.eye(3))
    m.distance("rope", m.ground.point(), bob.point(), lambda t: 1 - 0.3 * t)
    found = is_done(m.simulate(2.0, m.state.with_rates(np.array([[-0.3, 1.0, 0, 0, 0, 0]])), rtol=1e-11))
    r, place = 1 - 0.3 * found.times, found.positions(bob)
    assert np.abs(np.unwrap(np.arctan2(place[:, 1], place[:, 0])) - (1 / r - 1) / 0.3).max() < 1e-9
    assert np.abs(np.linalg.norm(found.reaction("rope").force, axis=1) - 2 / r**3).max() < 1e-7


@pytest.mark.parametrize("tilt", [0.5, np.pi / 2])
def test_a_gyroscope_at_a_fixed_angle_precesses(tilt):
    """Spin S and precession P at a constant angle need the torque (C (S + P cos θ) − A P cos θ) P sin θ."""
    A, C, P, S = 0.4, 0.25, 3.0, 10.0
    m = cd.Mechanism(gravity=(0, 0, 0))
    p = euler.from_axis_angle(X, -tilt)
    rotor = m.body("rotor", orientation=p, mass=1.0, inertia=np.diag([A, A, C]))
    if tilt == np.pi / 2:
        m.perpendicular("held", m.ground.frame(), rotor.frame())
    else:
        m.angle("held", m.ground.frame(), rotor.frame(), tilt)
    R = euler.as_matrix(p)
    found = is_done(m.simulate(2.0, m.state.with_rates(np.array([[0, 0, 0, *(P * R.T @ Z + S * Z)]])), rtol=1e-11))
    axes = np.array([state["rotor"].matrix[:, 2] for state in found.states])
    phi = P * found.times + np.pi / 2
    exact = np.column_stack([np.sin(tilt) * np.cos(phi), np.sin(tilt) * np.sin(phi), np.cos(tilt) + 0 * phi])
    assert np.abs(axes - exact).max() < 1e-7
    torque = (C * (S + P * np.cos(tilt)) - A * P * np.cos(tilt)) * P * np.sin(tilt)
    assert np.abs(np.linalg.norm(found.reaction("held").torque, axis=1) - torque).max() < 1e-7


def test_a_wheelset_turns_with_the_load_on_its_outer_wheel():
    """Two wheels on an axle, one of whose rolling rows is redundant: path, transfer of load, lateral force."""
    r, half, v, w, force = 0.3, 0.5, 1.0, 2.0, 5.0
    m = cd.Mechanism("wheelset")
    axle = m.body("axle", position=(0, 0, r), mass=10.0, inertia=np.diag([1.4, 0.2, 1.5]))
    rates = [[v, 0, 0, 0, 0, w]]
    for name, y in (("right", -half), ("left", half)):
        wheel = m.body(name, position=(0, y, r), mass=2.0, inertia=np.diag([0.06, 0.12, 0.06]))
        m.revolute(f"{name} hub", axle, wheel, at=(0, y, r), axis=Y)
        m.wheel(f"{name} tyre", wheel.frame(z=Y), r)
        rates.append([v - w * y, 0, 0, 0, (v - w * y) / r, w])
    m.force("pull", axle.point(), (force, 0, 0), axes="body")
    state = m.assemble().state
    report = m.diagnose(state)
    assert (report.dof, report.velocity_dof, len(report.redundant_rates)) == (6, 3, 1)
    found = is_done(m.simulate(2.0, state.with_rates(np.array(rates)), rtol=1e-10))
    a = force / (14 + 2 * 0.12 / r**2)
    speed, phi = v + a * found.times, w * found.times
    x = speed * np.sin(phi) / w + a * (np.cos(phi) - 1) / w**2
    y = (v - speed * np.cos(phi)) / w + a * np.sin(phi) / w**2
    assert np.abs(found.positions(axle)[:, :2] - np.column_stack([x, y])).max() < 1e-7
    lateral = 14 * speed * w
    lifted = (lateral * r + 2 * 0.12 * speed / r * w) / (2 * half)  # overturning, and the gyroscopes
    for name, sign in (("right", 1), ("left", -1)):
        whole = found.reaction(f"{name} tyre")
        assert whole.determined[2] and np.abs(whole.normal[:, 2] - 7 * G - sign * lifted).max() < 1e-6
        assert np.abs(whole.normal[:, :2]).max() < 1e-9 and not whole.unique  # the tyres share the lateral force
    inward = np.column_stack([-np.sin(phi), np.cos(phi), 0 * phi])
    traction = sum(found.reaction(f"{name} tyre.roll").force for name in ("right", "left"))
    assert np.abs((traction * inward).sum(axis=1) - lateral).max() < 1e-6


def test_a_ladder_leaves_its_wall_at_two_thirds_of_its_height():
    """A smooth ladder slides from rest; the wall does not push any more where the top is at 2/3 of its first height."""
    length, angle = 2.0, 1.2
    m = cd.Mechanism()
    middle = 0.5 * length * np.array([-np.cos(angle), 0, np.sin(angle)])
    p = euler.from_axis_angle(Y, angle)  # x points down to the foot
    ladder = m.body("ladder", position=-middle * (1, 1, -1), orientation=p, mass=3.0, inertia=np.eye(3))
    m.planar("plane", m.ground.frame(z=Y), ladder.frame(z=Y))
    m.point_in_plane("floor", ladder.point((length / 2, 0, 0)), m.ground.frame())
    top = ladder.frame((-length / 2, 0, 0))
    m.limit("wall", cd.coordinate(m.ground.frame(z=X), top, "displacement"), lower=0.0)
    found = is_done(m.simulate(1.0, rtol=1e-9))
    assert [event.what for event in found.events] == ["reached", "left"]
    left = m.simulate(found.events[1].time, rtol=1e-9).state["ladder"]
    assert (left.position + left.matrix @ (-length / 2, 0, 0))[2] == pytest.approx(
        2 / 3 * length * np.sin(angle), abs=1e-7
    )


def test_a_rope_becomes_slack_and_tight_again():
    """With v² = 3.5 g l at the bottom it is slack from the height (v² − 2 g l)/3 g on; the bob then flies freely."""
    start = np.sqrt(3.5 * G)
    m = cd.Mechanism()
    bob = m.body("bob", position=(0, 0, -1), mass=0.7, inertia=1e-3 * np.eye(3))
    m.limit("rope", cd.coordinate(m.ground.point(), bob.point(), "distance"), upper=1.0)
    state = m.state.with_rates(np.array([[start, 0, 0, 0, 0, 0]]))
    found = is_done(m.simulate(1.5, state, rtol=1e-10))
    assert found.effort("rope")[0] == pytest.approx(-0.7 * (G + start**2), rel=1e-12)
    _, slack, tight = found.events
    at = m.simulate(slack.time, state, rtol=1e-10).state["bob"]
    assert at.position[2] == pytest.approx(0.5, abs=1e-9)
    p, v = at.position, at.velocity
    flights = np.roots([G * G / 4, -v[2] * G, v @ v - p[2] * G, 2 * p @ v, 0])
    assert tight.time - slack.time == pytest.approx(max(flights[np.abs(flights.imag) < 1e-9].real), abs=1e-7)


def test_a_differential_screw():
    """A shaft with two threads moves a nut by the difference of the pitches; its motor lifts both."""
    p_1, p_2 = 8e-3, 6e-3
    m = cd.Mechanism()
    shaft = m.body("shaft", mass=1.0, inertia=0.01 * np.eye(3))
    nut = m.body("nut", position=(0, 0, 0.1), mass=5.0, inertia=np.eye(3))
    m.screw("first", m.ground.frame(), shaft.frame(), pitch=p_1)
    m.screw("second", shaft.frame((0, 0, 0.1)), nut.frame(), pitch=p_2)
    m.prismatic("guide", m.ground.frame((0, 0, 0.1)), nut.frame())
    m.drive("motor", m["first"].of("angle"), lambda t: 2 * cd.pi * t * t)
    found = is_done(m.move(np.linspace(0, 2, 5)))
    assert found.coordinate(m["guide"]) == pytest.approx((p_1 - p_2) * found.times**2, abs=1e-14)
    per, growth = np.array([p_1, p_1 - p_2]) / (2 * np.pi), 4 * np.pi
    assert found.effort("motor") == pytest.approx(0.01 * growth + (np.array([1, 5]) * (G + per * growth)) @ per)


def test_an_upright_pendulum_on_a_vibrating_pivot_does_not_fall():
    """Kapitza's pendulum; J θ̈ = m l (g + z̈) sin θ, integrated by SciPy."""
    a, rate, length, J = 0.05, 80.0, 0.5, 0.26
    m = cd.Mechanism()
    pivot = m.body("pivot", mass=0.1, inertia=np.eye(3))
    rod = m.body("rod", orientation=(Y, 0.2), mass=1.0, inertia=0.01 * np.eye(3), center=(0, 0, length))
    m.prismatic("slide", m.ground.frame(), pivot.frame())
    m.revolute("hinge", pivot.frame(z=Y), rod.frame(z=Y))
    m.drive("shaker", m["slide"], lambda t: a * cd.sin(rate * t))
    times = np.linspace(0, 1, 21)
    found = is_done(m.simulate(1.0, m.solve_rates(m.assemble().state, {"hinge": 0.0}), rtol=1e-9, times=times))

    def motion(t, y):
        return y[1], (G - a * rate**2 * np.sin(rate * t)) * length * np.sin(y[0]) / J

    exact = solve_ivp(motion, (0, 1), (0.2, 0), method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times).y[0]
    assert np.abs(found.coordinate(m["hinge"]) - exact).max() < 1e-7 and np.abs(exact).max() < 1.0
