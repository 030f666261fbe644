"""Equilibria and small motions against closed forms, energies and simulations."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import brentq

import cardan as cd
from cardan.examples import GALLERY
from gallery.checks import without_drivers

G = 9.81
X, Y, Z = np.eye(3)


def pendulum(angle: float = 0.3, length: float = 0.7, inertia: float = 0.02) -> cd.Mechanism:
    """A rod about z with gravity along −y; its coordinate is the angle from x."""
    m = cd.Mechanism("pendulum", gravity=(0, -G, 0))
    rod = m.body("rod", mass=2.0, inertia=inertia * np.eye(3), center=(length, 0, 0), orientation=(Z, angle))
    m.revolute("A", m.ground.frame(), rod.frame())
    return m


def test_a_pendulum_hangs_down_and_swings_with_the_frequency_of_the_closed_form():
    m = pendulum()
    eq = m.equilibrium()
    assert eq.ok and eq.stable, eq.text()
    assert m["A"].coordinate(eq.state) == pytest.approx(-math.pi / 2, abs=1e-12)
    assert eq.reaction("A").force == pytest.approx([0, 2.0 * G, 0], abs=1e-10)
    lin = m.linearize(eq.state)
    assert lin.frequencies == pytest.approx([math.sqrt(2 * G * 0.7 / (0.02 + 2 * 0.49)) / (2 * math.pi)], rel=1e-10)
    assert lin.stable and abs(lin.damping[0]) < 1e-9
    assert lin.modes.shape == (1, 1, 6) and abs(lin.modes[0, 0, 5]) == pytest.approx(1.0)
    assert pickle.loads(pickle.dumps(eq)).reaction("A").force[1] == eq.reaction("A").force[1]


def test_an_upright_pendulum_is_an_unstable_equilibrium():
    m = pendulum(angle=math.pi / 2)
    eq = m.equilibrium()
    assert eq.ok and eq.stable is False and eq.iterations == 0
    lin = m.linearize(eq.state)
    rate = math.sqrt(2 * G * 0.7 / (0.02 + 2 * 0.49))
    assert not lin.stable and lin.frequencies.size == 0
    assert np.sort(lin.eigenvalues.real) == pytest.approx([-rate, rate], rel=1e-9)


def test_an_upright_pendulum_that_is_disturbed_falls():
    eq = pendulum(angle=math.pi / 2 + 1e-6).equilibrium()
    assert eq.ok and eq.stable


def test_a_double_pendulum_has_the_frequencies_of_two_equal_point_masses():
    """ω² = (2 ∓ √2) g/l."""
    m = cd.Mechanism(gravity=(0, -G, 0))
    last, at = m.ground, (0, 0, 0)
    for k in range(2):
        inertia = 1e-9 * np.eye(3)
        body = m.body(f"b{k}", position=(0, -0.5 * k, 0), mass=1.5, inertia=inertia, center=(0, -0.5, 0))
        m.revolute(f"J{k}", last.frame(at), body.frame())
        last, at = body, (0, -0.5, 0)
    lin = m.linearize(m.equilibrium().state)
    expected = np.sqrt((2 + np.array([-1, 1]) * math.sqrt(2)) * G / 0.5) / (2 * math.pi)
    assert lin.frequencies == pytest.approx(expected, rel=1e-7)


def test_damping_ratio_and_frequency_of_a_slide_on_a_spring():
    m = cd.Mechanism(gravity=(0, 0, -G))
    box = m.body("box", mass=3.0, inertia=np.eye(3))
    m.prismatic("P", m.ground.frame(z=Z), box.frame(z=Z))
    m.spring("s", m["P"], stiffness=200.0, rest=0.1, damping=6.0)
    eq = m.equilibrium()
    assert m["P"].coordinate(eq.state) == pytest.approx(0.1 - 3 * G / 200, abs=1e-12)
    assert eq.effort("s") == pytest.approx(3 * G, rel=1e-10)
    lin = m.linearize(eq.state)
    natural, ratio = math.sqrt(200 / 3), 6 / (2 * math.sqrt(200 * 3))
    assert lin.damping == pytest.approx([ratio], rel=1e-8)
    assert lin.frequencies == pytest.approx([natural * math.sqrt(1 - ratio**2) / (2 * math.pi)], rel=1e-9)


def test_the_chain_hangs_as_its_equilibrium_of_moments():
    """Two links and a rope of three, hung between two points: every joint has no moment of the weights."""
    m = cd.Mechanism(gravity=(0, -G, 0))
    count, length = 7, 0.25
    last, at = m.ground, (0.0, 0.0, 0.0)
    for k in range(count):
        inertia = np.diag([1e-3, 1e-3, 1e-3])
        body = m.body(f"l{k}", position=(length * k, -0.1, 0), mass=1.0, inertia=inertia, center=(length / 2, 0, 0))
        m.revolute(f"J{k}", last.frame(at), body.frame())
        last, at = body, (length, 0.0, 0.0)
    m.spherical("end", last.point(at), m.ground.point((1.2, 0, 0)))
    eq = m.equilibrium()
    assert eq.ok and eq.stable, eq.text()
    # slopes of a chain of equal links with the horizontal pull h: tan φ_k = (k − 3) g / h
    slopes = [np.arctan2(*(eq.state[f"l{k}"].matrix @ X)[1::-1]) for k in range(count)]

    def span(h):
        return sum(length * math.cos(math.atan((k - 3) * G / h)) for k in range(count)) - 1.2

    h = brentq(span, 1e-3, 1e3, xtol=1e-14)
    assert slopes == pytest.approx([math.atan((k - 3) * G / h) for k in range(count)], abs=1e-10)
    assert abs(eq.reaction("end").force[0]) == pytest.approx(h, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_springs_and_weights_that_balance_in_every_body(seed):
    """A chain of masses on springs hangs as k₁(x₁ − r) = (m₁ + m₂ + …) g; no joint has a force along its slide."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism(gravity=(0, 0, -G))
    masses, stiffness = rng.uniform(0.5, 3.0, 4), rng.uniform(50.0, 500.0, 4)
    above = m.ground.point()
    for k in range(4):
        body = m.body(f"b{k}", position=(0, 0, -1.0 - k), mass=masses[k], inertia=np.eye(3))
        m.prismatic(f"P{k}", m.ground.frame(), body.frame())
        m.spring(f"s{k}", above, body.point(), stiffness=stiffness[k], rest=0.8)
        above = body.point()
    eq = m.equilibrium()
    assert eq.ok and eq.stable, eq.text()
    lengths = 0.8 + np.cumsum(masses[::-1])[::-1] * G / stiffness
    assert [eq.state[f"b{k}"].position[2] for k in range(4)] == pytest.approx(-np.cumsum(lengths), abs=1e-11)
    links = np.diag(stiffness) + np.diag(np.append(stiffness[1:], 0.0))
    links -= np.diag(stiffness[1:], 1) + np.diag(stiffness[1:], -1)
    expected = np.sqrt(np.sort(np.linalg.eigvals(links / masses[:, None]).real)) / (2 * math.pi)
    assert m.linearize(eq.state).frequencies == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("inertia", [1e-9, 1e-6, 1e-3, 1.0])
def test_statics_does_not_depend_on_the_inertia(inertia):
    m = cd.Mechanism(gravity=(0, 0, -G))
    bob = m.body("bob", position=(1, 0, 0), mass=1.0, inertia=inertia * np.eye(3))
    m.distance("string", m.ground.point(), bob.point(), 1.0)
    eq = m.equilibrium()
    assert eq.ok and eq.stable is None and eq.iterations < 30, eq.text()
    assert eq.state["bob"].position == pytest.approx([0, 0, -1], abs=1e-11)
    lin = m.linearize(eq.state)
    assert lin.frequencies == pytest.approx([math.sqrt(G) / (2 * math.pi)] * 2, rel=1e-8)
    assert lin.stable is None and (lin.eigenvalues == 0.0).sum() == 6  # the bob turns freely


def test_rigid_motions_are_not_oscillations():
    """A turntable that carries a pendulum: its turn is no mode."""
    m = cd.Mechanism(gravity=(0, 0, -G))
    table = m.body("table", mass=3.0, inertia=0.4 * np.eye(3))
    m.revolute("spindle", m.ground.frame(), table.frame())
    arm = m.body("arm", position=(0.3, 0, 0), mass=1.0, inertia=1e-3 * np.eye(3), center=(0, 0, -0.5))
    m.revolute("pivot", table.frame((0.3, 0, 0), z=Y), arm.frame(z=Y))
    eq = m.equilibrium()
    assert eq.ok and eq.stable is None
    lin = m.linearize(eq.state)
    assert lin.frequencies == pytest.approx([math.sqrt(G * 0.5 / 0.251) / (2 * math.pi)], rel=1e-9)
    assert lin.stable is None and (lin.eigenvalues == 0.0).sum() == 2
    assert "rigid" in lin.text() and lin == pickle.loads(pickle.dumps(lin)) and eq == m.equilibrium()
    assert eq.coordinate(m["pivot"]) == pytest.approx(0.0, abs=1e-12)


def test_a_singular_pose_and_a_load_without_direction_are_named():
    m = cd.Mechanism(gravity=(0, 0, -G))
    b = m.body("b", mass=1.0, inertia=np.eye(3))
    m.prismatic("P", m.ground.frame(), b.frame())
    m.spring("k", m.ground.point(), b.point(), stiffness=10.0, rest=1.0)
    with pytest.raises(cd.ModelError, match="'k' has no finite force"):
        m.equilibrium()


def test_rounded_data_are_refused_or_accepted_by_their_tolerance():
    m = pendulum()
    m.distance("rope", m["rod"].point((0, 0, 0)), m.ground.point((0, 0, 1)), 1.0 + 1e-7)
    assert m.equilibrium().status == "not assembled"
    with pytest.raises(cd.ModelError, match="'rope'"):
        m.equilibrium(tolerance=1e-5)


def test_a_rod_rests_on_its_limit():
    m = pendulum(angle=0.3)
    m.limit("stop", m["A"], lower=-0.4, upper=2.0)
    eq = m.equilibrium()
    assert eq.ok and eq.holding == ("stop",), eq.text()
    assert m["A"].coordinate(eq.state) == pytest.approx(-0.4, abs=1e-12)
    assert eq.effort("stop") == pytest.approx(2 * G * 0.7 * math.cos(0.4), rel=1e-10)
    with pytest.raises(cd.ModelError, match="'stop'"):
        m.linearize(eq.state)


def test_a_limit_that_would_pull_is_left():
    m = pendulum(angle=-0.4)
    m.limit("stop", m["A"], lower=-2.0, upper=-0.4)
    eq = m.equilibrium()
    assert eq.ok and eq.holding == () and m["A"].coordinate(eq.state) == pytest.approx(-math.pi / 2, abs=1e-12)


def test_drivers_keep_the_values_of_the_time():
    m = pendulum()
    arm = m.body("arm", mass=1.0, inertia=0.01 * np.eye(3), center=(0.2, 0, 0), position=(0.7, 0, 0))
    m.revolute("B", m["rod"].frame((0.7, 0, 0)), arm.frame())
    m.drive("motor", m["B"], lambda t: 0.5 + 3.0 * t)
    eq = m.equilibrium()
    assert eq.ok and eq.stable
    assert m["B"].coordinate(eq.state) == pytest.approx(0.5, abs=1e-12)
    held = m.copy()
    held.remove("motor")
    held.drive("motor", held["B"], 0.5)
    assert held.equilibrium().effort("motor") == pytest.approx(eq.effort("motor"), rel=1e-9)
    assert m.linearize(eq.state).frequencies == pytest.approx(held.linearize(eq.state).frequencies, rel=1e-9)


def test_what_falls_freely_has_no_equilibrium():
    m = cd.Mechanism(gravity=(0, 0, -G))
    m.body("stone", mass=1.0, inertia=np.eye(3))
    eq = m.equilibrium(max_iterations=5)
    assert not eq.ok and eq.status == "iteration limit" and "'stone' is still accelerated by 9.81" in eq.reason
    with pytest.raises(cd.ModelError, match="not an equilibrium"):
        m.linearize()


def test_a_body_without_forces_is_indifferent():
    m = cd.Mechanism(gravity=(0, 0, 0))
    m.body("stone", mass=1.0, inertia=np.eye(3))
    eq = m.equilibrium()
    assert eq.ok and eq.stable is None and eq.iterations == 0
    lin = m.linearize(eq.state)
    assert lin.stable is None and not lin.eigenvalues.any() and lin.frequencies.size == 0


@pytest.mark.parametrize("speed", [1e-2, 1e-3, 1e-6])
def test_friction_is_viscous_at_rest_however_small_its_slip(speed):
    m = pendulum()
    m.friction("f", m["A"], viscous=0.01, coulomb=1e-3 * speed, speed=speed)
    lin = m.linearize(m.equilibrium().state)
    inertia = 0.02 + 2 * 0.49
    assert -2 * lin.eigenvalues.real.mean() == pytest.approx((0.01 + 1e-3) / inertia, rel=1e-6)


def test_friction_that_would_hold_a_part_is_named():
    m = cd.Mechanism()
    box = m.body("box", mass=1.0, inertia=np.eye(3))
    m.prismatic("slope", m.ground.frame(z=(1, 0, -0.1)), box.frame(z=(1, 0, -0.1)))
    m.friction("rough", m["slope"], coulomb=5.0)
    m.friction("oil", m["slope"], viscous=1.0)
    found = m.equilibrium()
    assert not found.ok and "friction 'rough' has no force at rest" in found.text()


@pytest.mark.parametrize("kind", ["coordinates", "rates"])
def test_forces_with_a_corner_are_refused(kind):
    m = pendulum()
    hanging = -math.pi / 2

    def corner(t, angle, rate):
        return -0.1 * max(0.0, angle - hanging if kind == "coordinates" else rate)

    m.actuator("corner", m["A"], corner)
    eq = m.equilibrium()
    assert eq.ok
    with pytest.raises(cd.ModelError, match=f"not smooth functions of the {kind}"):
        m.linearize(eq.state)


def test_a_moving_state_is_refused_by_the_name_of_a_body():
    m = pendulum(angle=-math.pi / 2)
    with pytest.raises(cd.ModelError, match="'rod' has the velocity"):
        m.linearize(m.solve_rates(m.state, {"A": 1.0}))


def test_a_knife_edge_is_not_bypassed():
    m = cd.Mechanism(gravity=(1.0, 0, -G))
    sled = m.body("sled", mass=1.0, inertia=np.eye(3))
    m.planar("ice", m.ground.frame(), sled.frame())
    m.knife_edge("blade", sled.frame(z=Y))
    with pytest.raises(cd.ModelError, match="'blade'"):
        m.equilibrium()
    m.gravity = (0, 0, -G)
    eq = m.equilibrium()
    assert eq.ok
    lin = m.linearize(eq.state)
    assert lin.A.shape == (5, 5) and not lin.eigenvalues.any()  # 3 displacements, 2 velocities
    rod = m.body("rod", mass=1.0, inertia=0.01 * np.eye(3), center=(0, 0, 1))
    m.revolute("hinge", sled.frame(z=X), rod.frame(z=X))
    eq = m.equilibrium()
    assert eq.ok and eq.stable is None and "not examined, because of 'blade'" in eq.text()
    assert m.linearize(eq.state).stable is False


def test_an_unassembled_start_is_reported():
    m = pendulum()
    m.distance("rod of ropes", m["rod"].point((0.7, 0, 0)), m.ground.point((5, 0, 0)), 1.0)
    eq = m.equilibrium()
    assert not eq.ok and eq.status == "not assembled" and eq.state is None
    with pytest.raises(cd.ModelError, match="no pose"):
        eq.reaction("A")


OSCILLATING = ("planar_4r", "slider_crank", "bricard", "watt", "five_bar", "delta_robot", "cam_flat", "barrel_cam")


@pytest.mark.parametrize("name", OSCILLATING)
def test_small_motions_of_the_gallery_are_those_of_a_simulation(name):
    """Pushed along the slowest mode, with the rate ω a, it is displaced by a after a quarter of the period."""
    m = without_drivers(GALLERY[name].build())
    eq = m.equilibrium()
    assert eq.ok and eq.stable, eq.text()
    lin = m.linearize(eq.state)
    stiffness = -lin.A[len(lin.basis) :, : len(lin.basis)]
    assert np.abs(stiffness - stiffness.T).max() <= 1e-8 * np.abs(stiffness).max()  # the loads have a potential
    mode, period, amplitude = lin.modes[0].real, 1.0 / lin.frequencies[0], 1e-4
    start = eq.state.with_rates(2 * math.pi / period * amplitude * mode)
    sim = m.simulate(period, start, rtol=1e-11, times=[period / 4, period / 2])
    assert sim.ok, sim.text()
    quarter, half = (state.coordinates[:, :3] - eq.state.coordinates[:, :3] for state in sim.states)
    assert np.abs(quarter - amplitude * mode[:, :3]).max() <= 1e-3 * amplitude * m.system.length
    assert np.abs(half).max() <= 1e-3 * amplitude * m.system.length


def test_a_lift_that_falls_into_a_singular_pose_says_so():
    eq = without_drivers(GALLERY["scissor_lift"].build()).equilibrium()
    assert not eq.ok and eq.status == "stuck" and "singular" in eq.reason and "is still accelerated" in eq.reason
