"""Contacts in motion against closed forms, published figures and independent integrations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.math import euler

G = cd.geometry
X, Y, Z = np.eye(3)


def test_an_eccentric_cam_lifts_a_flat_follower_by_its_closed_form():
    """y = r + e sin θ over two turns, with velocity and acceleration."""
    r, e = 0.3, 0.1
    m = cd.Mechanism("cam")
    cam, follower = m.body("cam"), m.body("follower", position=(0, 0.35, 0))
    shaft = m.revolute("shaft", m.ground.frame(), cam.frame())
    m.prismatic("guide", m.ground.frame(z=Y, x=X), follower.frame(z=Y, x=X))
    m.contact("touch", follower.attach(G.line()), cam.attach(G.circle(r), cam.frame((e, 0, 0))))
    m.drive("motor", shaft, lambda t: t)
    motion = m.move(np.linspace(0.0, 4 * np.pi, 41))
    assert motion.ok, motion.text()
    t = motion.times
    assert np.abs(motion.positions("follower")[:, 1] - (r + e * np.sin(t))).max() < 1e-12
    rates = np.array([state.velocities[1, 1] for state in motion.states])
    accelerations = np.array([state.accelerations[1, 1] for state in motion.states])
    assert np.abs(rates - e * np.cos(t)).max() < 1e-10 and np.abs(accelerations + e * np.sin(t)).max() < 1e-10
    assert m.diagnose(motion.states[3]).dof == 1


@pytest.mark.slow
def test_a_roller_turns_by_its_closed_form():
    """An eccentric cam and an offset follower: (ω₂ − α̇) r₂ = −(ω₁ − α̇) r₁, with the angle α of the line of centres."""
    r, e, roll, offset = 0.3, 0.1, 0.08, 0.05
    m = cd.Mechanism("cam")
    cam = m.body("cam")
    follower, roller = (m.body(name, position=(offset, 0.45, 0)) for name in ("follower", "roller"))
    shaft = m.revolute("shaft", m.ground.frame(), cam.frame())
    m.prismatic("guide", m.ground.frame((offset, 0, 0), z=Y, x=X), follower.frame(z=Y, x=X))
    pin = m.revolute("pin", follower.frame(), roller.frame())
    m.contact("touch", cam.attach(G.circle(r), cam.frame((e, 0, 0))), roller.attach(G.circle(roll)), mode="roll")
    m.drive("motor", shaft, lambda t: 2 * cd.pi * t)
    motion = m.move(np.linspace(0.0, 1.0, 11))
    assert motion.ok, motion.text()
    turned = 2 * np.pi * motion.times
    across = offset - e * np.cos(turned)
    height = np.sqrt((r + roll) ** 2 - across**2)
    assert np.abs(motion.positions("follower")[:, 1] - e * np.sin(turned) - height).max() < 1e-12
    line = np.arctan2(height, across)
    expected = line - (turned - line) * r / roll
    assert np.ptp(motion.coordinate(pin) - expected) < 5e-11


def discs(by_contact: bool) -> cd.Mechanism:
    """Two discs on eccentric pivots that touch, or the four-bar of their centres."""
    m = cd.Mechanism("discs")
    a, b = m.body("a"), m.body("b", position=(1.0, 0, 0), orientation=("xyz", (0, 0, 2.4)))
    shaft = m.revolute("A", m.ground.frame(), a.frame())
    m.revolute("B", m.ground.frame((1.0, 0, 0)), b.frame())
    if by_contact:
        first, second = a.attach(G.circle(0.3), a.frame((0.15, 0, 0))), b.attach(G.circle(0.5), b.frame((0.4, 0, 0)))
        m.contact("touch", first, second)
    else:
        m.distance("rod", a.point((0.15, 0, 0)), b.point((0.4, 0, 0)), 0.8)
    m.drive("motor", shaft, lambda t: 2 * cd.pi * t)
    return m


def test_touching_circles_move_as_their_four_bar():
    times = np.linspace(0.0, 1.0, 31)
    found, wanted = (discs(by).move(times) for by in (True, False))
    assert found.ok and wanted.ok
    for name in "ab":
        assert np.abs(found.quaternions(name) - wanted.quaternions(name)).max() < 1e-10


def test_a_barrel_cam_moves_its_follower_by_the_law_of_its_groove():
    """Groove z = 0.2 sin 2φ on a drum of 0.5 m: the follower at φ = 0 is at z = −0.2 sin 2θ."""
    m = cd.Mechanism("barrel")
    drum, follower = m.body("drum"), m.body("follower", position=(0.5, 0, 0))
    shaft = m.revolute("shaft", m.ground.frame(), drum.frame())
    m.prismatic("guide", m.ground.frame((0.5, 0, 0)), follower.frame())
    groove = G.traced(
        lambda u: (0.5 * cd.cos(u), 0.5 * cd.sin(u), 0.2 * cd.sin(2 * u)), (0, 2 * np.pi), period=2 * np.pi
    )
    m.point_on_curve("pin", follower.point(), drum.attach(groove))
    m.drive("motor", shaft, lambda t: t)
    motion = m.move(np.linspace(0.0, 2 * np.pi, 33))
    assert motion.ok, motion.text()
    assert np.abs(motion.positions("follower")[:, 2] + 0.2 * np.sin(2 * motion.times)).max() < 1e-10


def involute(base: float):
    return G.traced(lambda u: (base * (cd.cos(u) + u * cd.sin(u)), base * (cd.sin(u) - u * cd.cos(u))), (0.1, 1.4))


def ovals(a: float, c: float, mode: str) -> cd.Mechanism:
    """Two equal ellipses with the half axis a, hinged at their foci, c from the centres [m]; one turn in a second."""
    curve = G.ellipse(a, np.sqrt(a * a - c * c))
    m = cd.Mechanism("ovals")
    first, second = m.body("first"), m.body("second", position=(2 * a, 0, 0), orientation=(Z, np.pi))
    shaft = m.revolute("A", m.ground.frame(), first.frame((c, 0, 0)))
    m.revolute("B", m.ground.frame((2 * a, 0, 0)), second.frame((-c, 0, 0)))
    m.contact("mesh", first.attach(curve), second.attach(curve), mode=mode)
    m.drive("motor", shaft, lambda t: 2 * cd.pi * t)
    return m


@pytest.mark.parametrize("mode", ["slide", "roll"])
def test_elliptical_gears_turn_many_times_through_the_poses_in_which_their_contact_cannot_drive(mode):
    """tan(φ₂/2) = (1 − e)/(1 + e)·tan(φ₁/2): at φ₁ = 0, π, … the normal passes through both hinges.

    There the gap does not change with either angle, so only rolling determines the speed of the second gear.
    """
    a, c = 0.1, 0.06
    m = ovals(a, c, mode)
    other = m["B"]
    times = np.linspace(0.05, 10.05, 101)  # among them 0.5, 1.0, …
    motion = m.move(times)
    assert motion.ok, motion.text()
    half, ratio = np.pi * times, (1 - c / a) / (1 + c / a)
    turned = np.unwrap(-2 * np.arctan2(ratio * np.sin(half), np.cos(half)))
    error = motion.coordinate(other) - turned
    assert np.ptp(error) < 1e-8  # at 0.5 s the tolerance of the gap leaves the angle free within the square root of it
    near = a * (1 - (c / a) ** 2) / (1 + c / a * np.cos(2 * half))
    speeds = np.array([[state[name].angular_velocity[2] for name in ("first", "second")] for state in motion.states])
    assert np.abs(speeds[:, 0] * near + speeds[:, 1] * (2 * a - near)).max() < (1e-9 if mode == "roll" else 1e-6)


def test_a_gear_drags_a_sledge_through_a_pose_in_which_its_contact_cannot_drive():
    """Then the poses are not determined by the driver, and velocities are integrated: the blade does not slip."""
    a, c = 0.1, 0.06
    m = ovals(a, c, "roll")
    sledge = m.body("sledge", position=(0.6, 0.3, 0))
    m.planar("ice", m.ground.frame(), sledge.frame())
    m.distance("rope", m["first"].point((-a, 0, 0)), sledge.point((-0.1, 0, 0)), 0.6)
    m.knife_edge("blade", sledge.frame(z=Y))
    motion = m.move(np.linspace(0.4, 0.6, 9))
    assert motion.ok, motion.text()
    assert motion.undriven[0].bodies == ("sledge",)
    for state in motion.states:
        near = a * (1 - (c / a) ** 2) / (1 + c / a * np.cos(2 * np.pi * state.time))
        first, second = (state[name].angular_velocity[2] for name in ("first", "second"))
        assert abs(first * near + second * (2 * a - near)) < 1e-11
        assert abs(state["sledge"].velocity @ state["sledge"].vector((0, 1, 0))) < 1e-11
    ratio = (1 - c / a) / (1 + c / a)
    half = np.pi * motion.times
    turned = np.unwrap(-2 * np.arctan2(ratio * np.sin(half), np.cos(half)))
    assert np.ptp(motion.coordinate(m["B"]) - turned) < 1e-10


def test_involute_flanks_turn_at_a_constant_ratio():
    """Flanks of gears with base circles of 1 and 1.6 m; the ratio does not depend on the distance of the axes."""
    for apart in (2.85, 2.95):
        m = cd.Mechanism("involutes")
        gears = []
        for name, base, at, turned in (("a", 1.0, (0, 0, 0), -0.9), ("b", 1.6, (apart, 0, 0), np.pi - 0.95)):
            gear = m.body(name, position=at, orientation=("xyz", (0, 0, turned)))
            flank = involute(base)
            gears.append((m.revolute(f"{name}.axle", m.ground.frame(at), gear.frame()), gear.attach(flank)))
        m.contact("mesh", gears[0][1], gears[1][1])
        start = m.assemble().state.coordinate(gears[0][0])
        m.drive("motor", gears[0][0], lambda t, start=start: start + t)
        motion = m.move(np.linspace(0.0, 0.15, 16), m.assemble().state)
        assert motion.ok, motion.text()
        ratio = np.diff(motion.coordinate(gears[1][0])) / np.diff(motion.coordinate(gears[0][0]))
        assert np.abs(ratio + 1.0 / 1.6).max() < 1e-9


def test_the_rolling_wheel_of_modelica():
    """Modelica.Mechanics.MultiBody.Examples.Elementary.RollingWheel at 4 s, recomputed at 1e-12."""
    m = cd.Mechanism("wheel", gravity=(0, 0, -9.80665))
    wheel = m.body("wheel", position=(0.2, 0.2, 0.3), mass=2.0, inertia=np.diag([0.12, 0.06, 0.12]))
    m.wheel("roll", wheel.frame(z=Y), 0.3)
    state = m.assemble().state.with_rates(np.array([[1.5, -0.3, 0.0, 1.0, 5.0, 0.0]]))
    simulation = m.simulate(4.0, state, rtol=1e-10)
    assert simulation.ok, simulation.text()
    assert simulation.positions("wheel")[-1, :2] == pytest.approx([0.16300348, -2.23761434], abs=1e-6)
    energy = simulation.energy.total
    assert np.ptp(energy) < 1e-8 * abs(energy[0])
    slips = [slip_of(state, "wheel", "roll") for state in simulation.states]
    assert max(slips) < 1e-10
    assert simulation.drift.max() < 1e-11


def slip_of(state: cd.State, body: str, contact: str) -> float:
    """Speed of a body's material point at its contact with the ground [m/s]."""
    pose = state[body]
    local = pose.matrix.T @ (state.contact(contact).point - pose.position)
    return float(np.linalg.norm(pose.velocity_of(local)))


def test_a_sphere_on_a_turntable_orbits_at_two_sevenths():
    rate, r = 3.0, 0.1
    m = cd.Mechanism("turntable")
    table = m.body("table", mass=1.0, inertia=np.eye(3))
    m.drive("motor", m.revolute("axle", m.ground.frame(), table.frame()), lambda t: rate * t)
    ball = m.body("ball", position=(0.5, 0, r), mass=1.0, inertia=0.4 * r * r * np.eye(3))
    m.contact("on", table.attach(G.plane()), ball.attach(G.sphere(r)), mode="roll")
    start = m.assemble().state
    slip = np.cross(rate * Z, (0.5, 0, 0)) - np.array([0, 0.3, 0])
    velocities = np.array([[0, 0, 0, 0, 0, rate], [0, 0.3, 0, slip[1] / r, -slip[0] / r, 0.7]])
    orbit = 2 * rate / 7
    simulation = m.simulate(2 * np.pi / orbit, start.with_rates(velocities), rtol=1e-10)
    assert simulation.ok, simulation.text()
    path = simulation.positions("ball")
    assert np.abs(path[-1] - path[0]).max() < 1e-6
    radius = np.linalg.norm(path - (0.15, 0, r), axis=1)  # about the centre, v/ω beside the start
    assert np.abs(radius - 0.35).max() < 1e-6
    assert simulation.reaction("on").normal[0] == pytest.approx([0, 0, 9.81], abs=1e-9)
    assert np.linalg.norm(simulation.reaction("on.roll").force[0]) == pytest.approx(0.3 * orbit, abs=1e-9)


def test_a_sphere_rolled_without_spin_round_a_circle_turns_by_the_known_angle():
    """The total rotation is 2π(√(1 + ρ²/r²) − 1) about a tilted axis."""
    rho, r = 0.5, 0.3
    m = cd.Mechanism("holonomy", gravity=(0, 0, 0))
    ball = m.body("ball", position=(rho, 0, r), mass=1.0, inertia=np.eye(3))
    m.contact("on", m.ground.attach(G.plane()), ball.attach(G.sphere(r)), mode="roll_without_spin")
    for axis, law in ((X, lambda t: rho * cd.cos(t)), (Y, lambda t: rho * cd.sin(t))):
        along = cd.coordinate(m.ground.frame(z=axis), ball.frame(z=axis), "displacement")
        m.drive(f"along {axis.argmax()}", along, law)
    start = m.solve_rates(m.assemble().state, {})
    simulation = m.simulate(2 * np.pi, start, step=2 * np.pi / 2000)
    assert simulation.ok, simulation.text()
    turned = euler.multiply(simulation.quaternions("ball")[-1], euler.conjugate(simulation.quaternions("ball")[0]))
    angle = 2 * np.arccos(np.clip(abs(turned[0]), 0, 1))
    total = 2 * np.pi * (np.sqrt(1 + rho**2 / r**2) - 1)
    wanted = abs((total + np.pi) % (2 * np.pi) - np.pi)
    assert angle == pytest.approx(wanted, abs=1e-6)


# Rattleback after Kane and Levinson: half axes, height of the centre of the ellipsoid over the centre of mass
AXES, HEIGHT = np.array([0.2, 0.03, 0.02]), 0.01
INERTIA = np.array([[2e-4, -2e-5, 0], [-2e-5, 1.6e-3, 0], [0, 0, 1.7e-3]])


def rattleback_rates(_, y):
    """Closed form of an ellipsoid of 1 kg that rolls on z = 0; y: r, p, v, ω in body axes."""
    A, v, w = euler.matrix(y[3:7] / np.linalg.norm(y[3:7])), y[7:10], y[10:13]
    n = -A[2]
    rate = -np.cross(w, n)
    a2 = AXES**2
    k = np.sqrt((a2 * n * n).sum())
    arm = a2 * n / k
    moved = a2 * rate / k - arm * (n * a2 * rate).sum() / k**2
    arm = arm + HEIGHT * Z
    J = np.hstack([np.eye(3), -A @ np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])])
    gamma = -A @ (np.cross(w, np.cross(w, arm)) + np.cross(w, moved))
    M = np.zeros((9, 9))
    M[:3, :3], M[3:6, 3:6], M[6:, :6], M[:6, 6:] = np.eye(3), INERTIA, J, J.T
    Q = np.concatenate([[0, 0, -9.81], -np.cross(w, INERTIA @ w), gamma])
    spin = 0.5 * np.array([-y[4:7] @ w, *(y[3] * w + np.cross(y[4:7], w))])
    return np.concatenate([v, spin, np.linalg.solve(M, Q)[:6]])


@pytest.mark.slow
@pytest.mark.parametrize("duration", [2.0, pytest.param(20.0, marks=pytest.mark.long)])
def test_a_rattleback_reverses_its_spin(duration):
    m = cd.Mechanism("rattleback")
    half = np.radians(0.25)
    body = m.body("stone", position=(0, 0, 0.01), orientation=(np.cos(half), np.sin(half), 0, 0), mass=1.0,
                  inertia=INERTIA)  # fmt: skip
    stone = body.attach(G.ellipsoid(*AXES), body.frame((0, 0, HEIGHT)))
    m.contact("on", m.ground.attach(G.plane()), stone, mode="roll")
    placed = m.assemble().state
    w = np.array([0, 0, -5.0])
    pose = placed["stone"]
    arm = pose.matrix.T @ (placed.contact("on").point - pose.position)
    v = -pose.matrix @ np.cross(w, arm)
    simulation = m.simulate(duration, placed.with_rates(np.array([[*v, *w]])), rtol=1e-10)
    assert simulation.ok, simulation.text()
    energy = simulation.energy.total
    assert np.ptp(energy) < 1e-6 * abs(energy[0])
    spin = np.array([state["stone"].angular_velocity[2] for state in simulation.states])
    if duration == 20.0:
        assert spin[0] < -4.9 and spin.max() > 1.0  # it reverses
    start = np.concatenate([pose.position, pose.quaternion, v, w])
    wanted = solve_ivp(rattleback_rates, (0, duration), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.abs(simulation.positions("stone")[-1] - wanted[:3]).max() < 1e-5
    same = np.sign(simulation.quaternions("stone")[-1] @ wanted[3:7])
    apart = np.abs(simulation.positions("stone")[-1] - wanted[:3]).max()
    turned = np.abs(simulation.quaternions("stone")[-1] - same * wanted[3:7]).max()
    print(
        f"{duration} s: energy {np.ptp(energy) / abs(energy[0]):.1e}, end {apart:.1e} m, {turned:.1e}; {spin.max():.3f}"
    )
    assert np.abs(simulation.quaternions("stone")[-1] - same * wanted[3:7]).max() < 1e-5


@pytest.mark.parametrize("options", [{}, {"rtol": 1e-8}, {"rtol": 1e-10}, {"step": 0.1}], ids=str)
@pytest.mark.parametrize("slope", [0.3, 1.0])
def test_a_ball_rolls_down_a_slope_in_steps_of_any_length(slope, options):
    """a = 5/7 g sin α.  Its accelerations are constant: steps grow until the ball turns too far for its contact.

    The run ended there, also at an output within a step, with "step too large".
    """
    r, mass = 0.1, 2.0
    n, down = np.array([np.sin(slope), 0, np.cos(slope)]), np.array([np.cos(slope), 0, -np.sin(slope)])
    m = cd.Mechanism("slope")
    ball = m.body("ball", position=r * n, mass=mass, inertia=0.4 * mass * r * r * np.eye(3))
    m.contact("on", m.ground.attach(G.plane(), m.ground.frame(z=n)), ball.attach(G.sphere(r)), mode="roll")
    found = m.simulate(2.0, times=np.linspace(0.0, 2.0, 101), **options)
    assert found.ok, found.text()
    fall = 5 / 7 * 9.81 * np.sin(slope) * found.times**2 / 2
    assert np.abs(found.positions(ball) - r * n - fall[:, None] * down).max() < 1e-10
    assert np.abs(found.reaction("on").normal - mass * 9.81 * np.cos(slope) * n).max() < 1e-9
    assert np.abs(found.reaction("on.roll").force + mass * 2 / 7 * 9.81 * np.sin(slope) * down).max() < 1e-9
    assert found.steps < 600


def test_a_ball_in_a_vertical_tube_rises_and_falls():
    """A ball that rolls round in a tube oscillates along it, at √(2/7) of the rate at which it goes round."""
    R, r, rate = 1.0, 0.2, 6.0
    m = cd.Mechanism("tube")
    ball = m.body("ball", position=(R - r, 0, 0), mass=1.0, inertia=0.4 * r * r * np.eye(3))
    m.contact("in", m.ground.attach(G.cylinder(R, 10.0)), ball.attach(G.sphere(r)), mode="roll", side="inside")
    speed = rate * (R - r)
    start = m.assemble().state.with_rates(np.array([[0, speed, 0, 0, 0, -speed / r]]))
    found = m.simulate(2.0, start, rtol=1e-9)
    assert found.ok, found.text()
    swing = np.sqrt(2 / 7) * rate
    z = -5 / 7 * 9.81 / swing**2 * (1 - np.cos(swing * found.times))
    assert np.abs(found.positions(ball)[:, 2] - z).max() < 1e-7
    assert np.abs(np.linalg.norm(found.reaction("in").normal, axis=1) - speed * rate).max() < 1e-6


def test_a_disc_precesses_with_its_centre_at_rest():
    """Euler's disc without loss: Ω² = 4 g / (r sin α) for a thin disc, whose plane is inclined by α."""
    r, tilt, mass = 0.1, 0.4, 0.5
    m = cd.Mechanism("disc")
    disc = m.body(
        "disc",
        position=(0, 0, r * np.sin(tilt)),
        orientation=("xyz", (tilt, 0, 0)),
        mass=mass,
        inertia=mass * r * r / 4 * np.diag([1, 1, 2]),
    )
    m.wheel("on", disc.frame(), r)
    state = m.assemble().state
    rate = np.sqrt(4 * 9.81 / (r * np.sin(tilt)))
    found = m.simulate(0.5, state.with_rates(np.array([[0, 0, 0, 0, rate * np.sin(tilt), 0]])), rtol=1e-9)
    assert found.ok, found.text()
    assert np.abs(found.positions(disc) - (0, 0, r * np.sin(tilt))).max() < 1e-8
    axes = np.array([state["disc"].matrix[:, 2] for state in found.states])
    turned = rate * found.times - np.pi / 2
    exact = np.column_stack([np.sin(tilt) * np.cos(turned), np.sin(tilt) * np.sin(turned), np.cos(tilt) + 0 * turned])
    assert np.abs(axes - exact).max() < 1e-6
    assert np.abs(found.reaction("on").force - (0, 0, mass * 9.81)).max() < 1e-6
    assert np.abs(found.reaction("on.roll").force).max() < 1e-6


def test_a_flat_follower_presses_on_its_cam_as_its_closed_form_says():
    """y = R + e sin φ: the force of the contact from mass, weight and spring, and the torque of the motor."""
    R, e, mass, stiffness, rate = 0.05, 0.02, 0.3, 500.0, 20.0
    m = cd.Mechanism("cam", gravity=(0, -9.81, 0))
    cam, follower = m.body("cam", mass=1.0, inertia=np.eye(3)), m.body("follower", position=(0, R, 0), mass=mass)
    shaft = m.revolute("shaft", m.ground.frame(), cam.frame())
    slide = m.prismatic("slide", m.ground.frame(z=Y, x=X), follower.frame(z=Y, x=X))
    m.contact("on", cam.attach(G.circle(R), cam.frame((e, 0, 0))), follower.attach(G.line(), follower.frame(x=X)))
    m.spring("spring", slide, stiffness=stiffness, rest=0.0)
    m.drive("motor", shaft, lambda t: rate * t)
    motion = m.move(np.linspace(0, 0.3, 61))
    assert motion.ok, motion.text()
    phi = rate * motion.times
    y = R + e * np.sin(phi)
    force = mass * (9.81 - e * rate**2 * np.sin(phi)) + stiffness * y
    assert np.abs(motion.coordinate(slide) - y).max() < 1e-12
    assert np.abs(motion.reaction("on").force[:, 1] - force).max() < 1e-10
    assert np.abs(motion.effort("motor") - force * e * np.cos(phi)).max() < 1e-10
