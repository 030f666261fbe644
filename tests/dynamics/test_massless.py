"""Point masses and massless bodies: a singular M against closed forms, and what is refused because it is ill posed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd
from cardan.dynamics import equations as equations_of_motion
from cardan.examples import REGISTRY
from cardan.math import euler
from gallery.checks import without_drivers
from layers import sampled

X, Y, Z = np.eye(3)
G = 9.81
SMALL = [name for name in REGISTRY if name not in ("strandbeest", "hoberman_ring")]


def is_done(found):
    assert found.ok, found.text()
    return found


def pendulum(angle=0.0, **mass):
    m = cd.Mechanism()
    turn = (Y, -angle)
    bob = m.body("bob", position=(np.sin(angle), 0, -np.cos(angle)), orientation=turn, **mass)
    m.revolute("hinge", m.ground.frame(z=Y), bob.frame(Z, z=Y))
    return m


def chain(angles, length=0.5, mass=1.0):
    """Point masses at the ends of massless links."""
    m = cd.Mechanism()
    place, last = np.zeros(3), m.ground.frame(z=Y)
    for k, angle in enumerate(angles):
        place = place + length * np.array([np.sin(angle), 0, -np.cos(angle)])
        link = m.body(f"link {k}", position=place, orientation=(Y, -angle), mass=mass)
        m.revolute(f"hinge {k}", last, link.frame(length * Z, z=Y))
        last = link.frame(z=Y)
    return m


def chain_acceleration(angles, rates, length=0.5, mass=1.0):
    """θ̈ of n point masses on massless links: m l² Σ_j (n − max(i, j)) (cos(θᵢ − θⱼ) θ̈ⱼ + sin(θᵢ − θⱼ) θ̇ⱼ²) = …"""
    n = len(angles)
    i, j = np.indices((n, n))
    below = mass * length**2 * (n - np.maximum(i, j))
    apart = angles[:, None] - angles
    weights = mass * G * length * (n - np.arange(n)) * np.sin(angles)
    return np.linalg.solve(below * np.cos(apart), -(below * np.sin(apart)) @ rates**2 - weights)


def test_the_frequency_of_a_point_mass_on_a_hinge():
    """√(g/l)/2π = 0.4985 Hz; a ball that reaches from its centre to the hinge has 0.4213 Hz."""
    m = pendulum(mass=2.0)
    found = m.linearize()
    assert found.frequencies == pytest.approx([np.sqrt(G) / (2 * np.pi)], rel=1e-8)
    assert "bob: point masses, 0 kg m²" in found.text()
    ball = pendulum(mass=2.0, inertia=0.8 * np.eye(3)).linearize()
    assert ball.frequencies == pytest.approx([np.sqrt(G / 1.4) / (2 * np.pi)], rel=1e-8)
    assert not ball.notes


@pytest.mark.parametrize(
    ("method", "bar"), [("adams", 1e-9), ("dopri5", 1e-10), ("rk4", 1e-10), ("generalized_alpha", 1e-4)]
)
def test_methods_on_a_point_mass(method, bar):
    """The angle of a pendulum, and the force of its rod, m (g cos θ + l θ̇²)."""
    m = pendulum(1.0, mass=2.0)
    steps = {"rtol": 1e-11} if method == "adams" else {"step": 2e-3}
    found = is_done(m.simulate(0.2, method=method, **steps))
    exact = solve_ivp(lambda t, y: (y[1], -G * np.sin(y[0])), (0, 0.2), (1.0, 0.0), rtol=1e-12, atol=1e-13).y[:, -1]
    assert -found.coordinate("hinge")[-1] == pytest.approx(exact[0], abs=bar)
    force = found.reaction("hinge").force[-1]
    radial = 2.0 * (G * np.cos(exact[0]) + exact[1] ** 2)
    assert np.abs(force - radial * np.array([-np.sin(exact[0]), 0, np.cos(exact[0])])).max() < 100 * bar
    assert np.abs(found.reaction("hinge").torque).max() < 100 * bar


@pytest.mark.parametrize("count", [1, 5, 12, 13, 40])
def test_chains_of_point_masses(count):
    """Both linear algebras: 13 links have more than 60 equations."""
    angles, rates = np.linspace(0.3, 1.2, count), np.linspace(-1.0, 2.0, count)
    m = chain(angles)
    state = m.assemble().state
    velocities, speed = np.zeros((count, 6)), np.zeros(3)
    for k, (angle, rate) in enumerate(zip(angles, rates, strict=True)):
        speed = speed + 0.5 * rate * np.array([np.cos(angle), 0, np.sin(angle)])
        velocities[k] = (*speed, 0, -rate, 0)
    found = is_done(m.simulate(1e-3, state.with_rates(velocities, None), step=1e-3, method="rk4"))
    exact = chain_acceleration(angles, rates)
    assert np.abs(-found.states[0].accelerations[:, 4] - exact).max() < 1e-11 * np.abs(exact).max() * count


def test_a_double_pendulum_of_point_masses_over_time():
    angles = np.array([1.0, 2.0])
    found = is_done(chain(angles).simulate(0.5, rtol=1e-11))
    exact = solve_ivp(
        lambda t, y: (*y[2:], *chain_acceleration(y[:2], y[2:])), (0, 0.5), (*angles, 0, 0), rtol=1e-12, atol=1e-13
    ).y[:, -1]
    q = found.states[-1].quaternions
    assert -2 * np.arctan2(q[:, 2], q[:, 0]) == pytest.approx(exact[:2], abs=1e-9)
    assert np.ptp(found.energy.total) < 1e-9


def slider_crank(**rod):
    """Crank r = 0.3 m with J = 0.2 kg m², rod l = 0.8 m, slider of 1.5 kg along x; gravity −y acts on the crank."""
    m = cd.Mechanism(gravity=(0, -G, 0))
    angle, r, l = 0.7, 0.3, 0.8
    pin = r * np.array([np.cos(angle), np.sin(angle), 0])
    end = np.array([pin[0] + np.sqrt(l * l - pin[1] ** 2), 0, 0])
    tilt = np.arcsin(-pin[1] / l)
    crank = m.body("crank", orientation=(Z, angle), mass=2.0, center=(0.1, 0, 0), inertia=0.18 * np.eye(3))
    own = m.body("rod", position=pin, orientation=(Z, tilt), **rod)
    slider = m.body("slider", position=end, mass=1.5)
    m.revolute("main", m.ground.frame(), crank.frame())
    m.revolute("crank pin", crank.frame(r * X), own.frame())
    m.revolute("wrist pin", own.frame(l * X), slider.frame())
    m.prismatic("guide", m.ground.frame(end, z=X, x=Y), slider.frame(z=X, x=Y))
    return m


def crank_acceleration(angle, rate):
    """(J + m x'²) θ̈ + m x' x'' θ̇² = −m_c g c cos θ, with x = r cos θ + √(l² − r² sin²θ); also m ẍ."""
    r, l = 0.3, 0.8
    s, c = np.sin(angle), np.cos(angle)
    root = np.sqrt(l * l - (r * s) ** 2)
    first = -r * s - r * r * s * c / root
    second = -r * c - r * r * (c * c - s * s) / root - (r * r * s * c) ** 2 / root**3
    growth = (-2.0 * G * 0.1 * c - 1.5 * first * second * rate**2) / (0.2 + 1.5 * first**2)
    return growth, 1.5 * (first * growth + second * rate**2)


def test_a_massless_connecting_rod():
    """Redundant rows, and a rod that carries a force along itself only."""
    m = slider_crank()
    found = is_done(m.simulate(0.8, rtol=1e-11))
    exact = solve_ivp(lambda t, y: (y[1], crank_acceleration(*y)[0]), (0, 0.8), (0.7, 0.0), rtol=1e-12, atol=1e-13)
    angle, rate = exact.y[:, -1]
    assert 0.7 + found.coordinate("main")[-1] - found.coordinate("main")[0] == pytest.approx(angle, abs=1e-8)
    push = crank_acceleration(angle, rate)[1]
    force = found.reaction("wrist pin").force[-1]
    along = np.array([np.sqrt(0.64 - (0.3 * np.sin(angle)) ** 2), -0.3 * np.sin(angle), 0])
    assert force[0] == pytest.approx(push, abs=1e-7)
    assert np.abs(np.cross(force, along)).max() < 1e-7
    assert "rod: massless, 0 kg" in found.text()


def test_a_light_rod_tends_to_a_massless_one():
    """The rod of 1e-7 kg differs from none by about its mass."""
    end = [
        is_done(slider_crank(**rod).simulate(0.3, rtol=1e-11)).coordinate("main")[-1]
        for rod in ({}, {"mass": 1e-7, "inertia": 1e-9 * np.eye(3)}, {"mass": 0.0})
    ]
    assert 1e-10 < abs(end[1] - end[0]) < 1e-6
    assert end[2] == end[0]


@pytest.mark.parametrize("light", [1e-6, 1e-2])
def test_results_do_not_depend_on_pseudo_masses(light, monkeypatch):
    """Poses, velocities and reactions over a run with an impact at a limit."""

    def run():
        m = slider_crank()
        m.limit("stop", m["main"], lower=0.4)
        found = is_done(m.simulate(0.5, rtol=1e-10))
        assert found.events
        speeds = found.velocities("slider"), found.velocities("rod")
        return np.hstack([*speeds, found.reaction("crank pin").force, found.energy.total[:, None]])

    before = run()
    monkeypatch.setattr(equations_of_motion, "LIGHT", light)
    assert np.abs(run() - before).max() < 1e-7 * np.abs(before).max()


@pytest.mark.slow
def test_generalized_alpha_with_a_massless_rod():
    m = slider_crank()
    a = is_done(m.simulate(0.1, step=2e-3, method="generalized_alpha"))
    b = is_done(m.simulate(0.1, rtol=1e-9))
    assert a.coordinate("main")[-1] == pytest.approx(b.coordinate("main")[-1], abs=1e-6)
    assert np.abs(a.reaction("wrist pin").force[-1] - b.reaction("wrist pin").force[-1]).max() < 1e-4


def test_a_shaft_without_mass_between_two_universal_joints():
    """Both joints bent by β in one plane, forks in phase: output = input, and T/(J₁ + J₂) at all times."""
    bend, torque = 0.4, 3.0
    m = cd.Mechanism(gravity=(0, 0, 0))
    axis = np.array([np.sin(bend), 0, np.cos(bend)])
    first = m.body("first", mass=1.0, inertia=np.diag([1, 1, 0.3]))
    shaft = m.body("shaft", orientation=(Y, bend))
    last = m.body("last", position=axis, mass=1.0, inertia=np.diag([1, 1, 0.7]))
    m.revolute("input", m.ground.frame(), first.frame())
    m.revolute("output", m.ground.frame(axis), last.frame())
    # the coordinates of a universal joint are measured from axes that are orthogonal: one on each fork
    m.universal("left", first.frame(z=Y), shaft.frame(z=X))
    m.universal("right", shaft.frame(Z, z=X), last.frame(z=Y))
    m.torque("motor", first, (0, 0, torque), axes="body")
    found = is_done(m.simulate(1.0, rtol=1e-10))
    speed = found.velocities("last")[-1, 5]
    assert speed == pytest.approx(torque / 1.0, rel=1e-8)
    assert found.velocities("first")[-1, 5] == pytest.approx(speed, rel=1e-8)


def robot(joined):
    """Three links; the last carries a massless flange and a tool, all fixed to each other, or is one body with them."""
    m = cd.Mechanism()
    rng = np.random.default_rng(3)
    inertia = [np.diag(moments) for moments in rng.uniform(0.02, 0.03, (4, 3))]
    last, place = m.ground, np.zeros(3)
    for k, axis in enumerate((Z, Y, Y)):
        link = m.body(f"link {k}", position=place, center=(0.1, 0, 0.05), mass=1.0 + k, inertia=inertia[k])
        m.revolute(f"joint {k}", last.frame(place if last is m.ground else (0.4, 0, 0), z=axis), link.frame(z=axis))
        last, place = link, place + 0.4 * X
    tool_place, arm = place + 0.05 * X, 0.05 * X
    if joined:
        mass, own = 0.5, 3.0
        apart = np.array([0.45, 0, 0]) - (0.1, 0, 0.05)
        middle = mass / (mass + own) * apart
        steiner = mass * own / (mass + own) * (apart @ apart * np.eye(3) - np.outer(apart, apart))
        both = inertia[2] + inertia[3] + steiner
        last.mass, last.center, last.inertia = own + mass, tuple(np.array([0.1, 0, 0.05]) + middle), both
        return m
    flange = m.body("flange", position=place)
    tool = m.body("tool", position=tool_place, mass=0.5, inertia=inertia[3])
    m.fixed("weld", last.frame((0.4, 0, 0)), flange.frame())
    m.fixed("mount", flange.frame(arm), tool.frame())
    return m


def test_a_massless_flange_between_fixed_joints():
    """As one lumped body; the weld carries the weight and the inertia of the tool."""
    whole, parts = (is_done(robot(joined).simulate(0.4, rtol=1e-11)) for joined in (True, False))
    for k in range(3):
        assert np.abs(whole.coordinate(f"joint {k}") - parts.coordinate(f"joint {k}")).max() < 1e-9
        assert np.abs(whole.reaction(f"joint {k}").torque - parts.reaction(f"joint {k}").torque).max() < 1e-8
    a = parts.accelerations("tool")[:, :3] + (0, 0, G)
    assert np.abs(parts.reaction("weld").force - 0.5 * a).max() < 1e-9
    assert np.abs(parts.reaction("mount").force - 0.5 * a).max() < 1e-9
    assert "flange: massless" in parts.text()


def test_a_given_inertia_of_zero_is_that_of_a_point_mass():
    """15 of 69 published URDFs have such a link on a fixed joint."""
    m, given = pendulum(mass=2.0), pendulum(mass=2.0, inertia=np.zeros((3, 3)))
    assert given.linearize().frequencies == pytest.approx(m.linearize().frequencies, rel=1e-12)


def particle(place, mass=2.0):
    """On a string of 1 m, drawn at a place on the unit sphere."""
    m = cd.Mechanism()
    bob = m.body("bob", position=place, mass=mass)
    m.distance("string", m.ground.point(), bob.point(), length=1.0)
    return m


def test_a_particle_on_a_string():
    """No joint holds its rotation, and no torque acts on it: a note, and the translation of a pendulum."""
    m = particle((np.sin(1.0), 0, -np.cos(1.0)))
    found = is_done(m.simulate(0.6, rtol=1e-11))
    exact = solve_ivp(lambda t, y: (y[1], -G * np.sin(y[0])), (0, 0.6), (1.0, 0.0), rtol=1e-12, atol=1e-13).y[0, -1]
    assert found.positions("bob")[-1] == pytest.approx([np.sin(exact), 0, -np.cos(exact)], abs=1e-9)
    assert np.array_equal(found.quaternions("bob")[-1], (1, 0, 0, 0))
    assert "the rotation of 'bob' is not determined: no inertia (0 kg m²)" in found.text()
    hanging = particle((0, 0, -1)).linearize()
    assert hanging.frequencies == pytest.approx([np.sqrt(G) / (2 * np.pi)] * 2, rel=1e-7)
    assert "the rotation of 'bob'" in hanging.text()
    assert hanging.stable is None and particle((0, 0, -1)).equilibrium().stable is None
    assert "-0" not in hanging.text() and not np.signbit(hanging.damping).any()


@pytest.mark.parametrize("inertia", [None, (0, 0.01, 0.01)])
def test_a_rod_between_ball_joints_keeps_its_spin(inertia):
    """Massless, or thin: nothing depends on the rotation about its own axis."""
    m = cd.Mechanism()
    given = {} if inertia is None else {"mass": 0.3, "inertia": np.diag(inertia), "center": (0.5, 0, 0)}
    left = m.body("left", mass=1.0, inertia=0.1 * np.eye(3))
    right = m.body("right", position=X, mass=1.0, inertia=0.1 * np.eye(3))
    rod = m.body("rod", **given)
    m.planar("table", m.ground.frame(z=Y), left.frame(z=Y))
    m.prismatic("guide", m.ground.frame(X), right.frame())
    m.spherical("a", left.point(), rod.point())
    m.spherical("b", rod.point(X), right.point())
    m.force("pull", right.point(), (0, 0, 50.0))
    found = is_done(m.simulate(0.3, rtol=1e-9))
    assert "the rotation of 'rod' about one axis is not determined" in found.text()
    assert np.abs(found.velocities("rod")[:, 4]).max() > 0.1
    assert np.abs(found.velocities("rod")[:, 3]).max() < 1e-9


def test_idle_spins_do_not_depend_on_the_axes_of_a_body():
    """A rod between ball joints, drawn in axes that are turned, with an origin off the line of the joints."""
    ends = []
    for turn, origin in (((1, 0, 0, 0), (0, 0, 0)), ((0.5, 0.3, -0.2, 0.7), (0.2, 0.7, -0.3))):
        m = cd.Mechanism()
        p = np.array(turn) / np.linalg.norm(turn)
        left = m.body("left", mass=1.0, inertia=0.1 * np.eye(3))
        right = m.body("right", position=X - Z, mass=2.0, inertia=0.2 * np.eye(3))
        rod = m.body("rod", position=origin, orientation=p)
        m.revolute("a", m.ground.frame(z=Y), left.frame(z=Y))
        m.revolute("b", m.ground.frame(X, z=Y), right.frame(Z, z=Y))
        for name, body, place, at in (("c", left, -Z, -Z), ("d", right, 0 * Z, X - Z)):
            m.spherical(name, body.point(place), rod.point(euler.rotate(euler.conjugate(p), at - origin)))
        m.torque("turn", left, 3.0 * Y)
        found = is_done(m.simulate(0.3, rtol=1e-9))
        assert "the rotation of 'rod' about one axis is not determined" in found.text()
        ends.append(found.state.coordinates[:2])
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_a_mechanism_of_redundant_rows_with_a_massless_coupler():
    """A planar four-bar with hinges, three rows redundant: (J₁ + J₃ φ'²) θ̈ = T from rest, with φ' = φ̇/θ̇."""
    m = cd.Mechanism(gravity=(0, 0, 0))
    crank = m.body("crank", mass=1.0, inertia=0.2 * np.eye(3))
    coupler = m.body("coupler", position=(0, 1, 0), orientation=(Z, 0.2))
    rocker = m.body("rocker", position=(2, 0, 0), mass=1.0, inertia=0.7 * np.eye(3))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame(Y), coupler.frame())
    m.revolute("C", coupler.frame(2.2 * X), rocker.frame(1.5 * Y))
    m.revolute("D", m.ground.frame((2, 0, 0)), rocker.frame())
    m.torque("motor", crank, (0, 0, 2.0))
    state = m.assemble().state
    ratio = m.solve_rates(state, {"A": 1.0})["rocker"].angular_velocity[2]
    found = is_done(m.simulate(1e-3, state, step=1e-3, method="rk4"))
    assert found.accelerations("crank")[0, 5] == pytest.approx(2.0 / (0.2 + 0.7 * ratio**2), rel=1e-10)


def free_body(m):
    m.body("loose")


def massless_pendulum(m):
    m.revolute("nail", m.ground.frame(), m.body("loose").frame())


def massless_slider_on_a_spring(m):
    slide = m.prismatic("slide", m.ground.frame(), m.body("loose").frame())
    m.spring("spring", slide, stiffness=10.0)


def massless_knee(m):
    """Two massless links in a row: neither moves alone."""
    upper, lower = m.body("upper"), m.body("loose", position=-Z)
    m.spherical("hip", m.ground.point(), upper.point())
    m.spherical("knee", upper.point(-Z), lower.point())
    m.point_in_plane("floor", lower.point(-Z), m.ground.frame(-2 * Z))


def geared_wheels(m):
    """Point masses on hinges at their own centres, which only rotate together."""
    wheels = [m.body(name, position=at, mass=1.0) for name, at in (("wheel", 0 * X), ("loose", X))]
    hinges = [m.revolute(f"axle {w.name}", m.ground.frame(w.position), w.frame()) for w in wheels]
    m.gear("gear", *hinges, ratio=-1.0)


@pytest.mark.parametrize("verb", ["simulate", "linearize", "session"])
@pytest.mark.parametrize(
    "add", [free_body, massless_pendulum, massless_slider_on_a_spring, massless_knee, geared_wheels]
)
def test_motions_without_mass_are_refused_by_name(add, verb):
    m = pendulum(mass=1.0, inertia=np.eye(3))
    add(m)
    verbs = {
        "simulate": lambda: m.simulate(1.0),
        "linearize": m.linearize,
        "session": lambda: m.session(mode="dynamic"),
    }
    with pytest.raises(cd.ModelError, match=r"'loose'.*0 kg.*mass= and inertia=.*density=.*joint"):
        verbs[verb]()


def test_a_large_mechanism_with_a_motion_without_mass_is_refused():
    """More columns without mass than a dense matrix has room for: a chain of massless links between two masses."""
    m = chain(np.linspace(0.2, 0.4, 200), mass=0.0)
    tip = m.body("tip", position=(0, 0, 5), mass=1.0, inertia=np.eye(3))
    m.revolute("tip hinge", m["link 199"].frame(z=Y), tip.frame(z=Y))
    with pytest.raises(cd.ModelError, match="can move without moving any mass"):
        m.simulate(1e-3, m.assemble(tip.owner.state).state)


def test_a_torque_on_an_idle_spin_ends_the_run_by_name():
    """The run goes on until the torque acts."""
    m = particle((0, 0, -1))
    m.torque("late", m["bob"], lambda t, state: (0.0, 0.0, 1.0 if t > 0.25 else 0.0))
    found = m.simulate(1.0, step=0.01)
    assert found.status == "not finite" and "a force acts on 'bob' along a motion without mass" in found.reason
    assert 0.2 < found.times[-1] <= 0.26


def slotted_arm(torque):
    """A point mass of 2 kg in a slot along a massless arm, at 1 m from the axis, which a motor turns."""
    m = cd.Mechanism(gravity=(0, 0, 0))
    arm, bead = m.body("arm"), m.body("bead", position=X, mass=2.0)
    m.revolute("hinge", m.ground.frame(), arm.frame())
    m.prismatic("slot", arm.frame(z=X, x=Y), bead.frame(z=X, x=Y))
    m.torque("motor", arm, (0, 0, torque))
    return m


def test_a_point_mass_on_a_massless_arm():
    """m r² θ̈ + 2 m r ṙ θ̇ = T, r̈ = r θ̇²."""
    found = is_done(slotted_arm(3.0).simulate(0.5, rtol=1e-10))
    exact = solve_ivp(
        lambda t, y: (y[2], y[3], y[0] * y[3] ** 2, (1.5 / y[0] - 2 * y[2] * y[3]) / y[0]),
        (0, 0.5),
        (1.0, 0.0, 0.0, 0.0),
        rtol=1e-12,
        atol=1e-13,
    ).y[:, -1]
    assert found.coordinate("slot")[-1] == pytest.approx(exact[0], abs=1e-9)
    assert found.velocities("arm")[-1, 5] == pytest.approx(exact[3], abs=1e-9)


@pytest.mark.parametrize("steps", [{"rtol": 1e-6}, {"step": 1e-3}, {"step": 1e-3, "method": "rk4"}], ids=str)
def test_a_point_mass_that_reaches_its_axis_ends_the_run(steps):
    """Driven along r = 1 − t: there the arm has no inertia, and θ̇ = T t/(m r²) becomes infinite."""
    m = slotted_arm(1e-6)
    m.drive("winch", m["slot"], lambda t: 1.0 - t)
    found = m.simulate(2.0, **steps)
    assert not found.ok
    assert 0.97 < found.times[-1] <= 1.0, found.text()
    assert float(re.search(r"t = ([\d.]+) s", found.reason)[1]) == pytest.approx(1.0, abs=2e-3), found.text()
    assert "a force acts on 'arm', 'bead' along a motion without mass" in found.reason


STEPS = [
    {"rtol": 1e-6},
    {"step": 1e-3},
    {"step": 1e-2},
    {"step": 1e-3, "method": "rk4"},
    {"step": 1e-3, "method": "generalized_alpha"},
]


@pytest.mark.parametrize("steps", STEPS[:4], ids=str)
def test_a_motion_that_loses_its_mass_under_a_force_is_named(steps):
    """Driven along r = 0.5 − t: at t = 0.5 s the arm has no inertia.  No smaller step is advised, as none helps."""
    m = slotted_arm(0.02)
    m["bead"].position = (0.5, 0, 0)
    m.drive("winch", m["slot"], lambda t: 0.5 - t)
    found = m.simulate(1.0, **steps)
    assert "a force acts on 'arm', 'bead' along a motion without mass" in found.reason
    assert "use a smaller step" not in found.reason and found.status in ("not finite", "step too large")
    assert float(re.findall(r"t = ([\d.]+) s", found.reason)[-1]) == pytest.approx(0.5, abs=2e-3), found.text()


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_a_massless_crank_and_rod_at_their_dead_point_are_named(steps):
    """The slider falls from x₀ with 1 m/s² to r + l, where the crank would turn infinitely fast."""
    m = cd.Mechanism(gravity=X)
    crank, rod = m.body("crank"), m.body("rod", position=(0.2, 0, 0))
    slider = m.body("slider", mass=2.0, position=(0.8, 0, 0))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((0.2, 0, 0)), rod.frame())
    m.revolute("C", rod.frame((0.6, 0, 0)), slider.frame())
    m.prismatic("S", m.ground.frame(z=X), slider.frame(z=X))
    start = m.assemble(m.state_at({"A": 1.0})).state
    found = m.simulate(1.0, start, **steps)
    assert "'crank', 'rod' can move without moving any mass" in found.reason
    assert "use a smaller step" not in found.reason and found.status in ("step too small", "step too large")
    exact = np.sqrt(2.0 * (0.8 - m["S"].coordinate(start)))
    assert float(re.findall(r"t = ([\d.]+) s", found.reason)[-1]) == pytest.approx(exact, abs=1e-3), found.text()


def test_a_step_that_is_too_large_beside_an_idle_spin_is_told_as_such():
    """The spin of the massless rod of a pendulum does not end the run: a smaller step helps."""
    m = particle((1, 0, 0))
    found = m.simulate(5.0, step=0.5)
    assert found.status == "step too large" and "use a smaller step" in found.reason
    assert "mass" not in found.reason


def test_statics_needs_no_masses():
    """Two massless links carry 2 kg: a truss with angles of 30°, each link with m g/(2 sin 30°)."""
    m = cd.Mechanism()
    knot = m.body("knot", position=(0, 0, -0.5), mass=2.0)
    for side, name in ((-1, "left"), (1, "right")):
        wall = np.array([side * np.sqrt(0.75), 0, 0])
        along = np.array([0, 0, -0.5]) - wall
        link = m.body(name, position=wall, orientation=(Y, np.arctan2(-along[2], along[0])))
        m.revolute(f"{name} wall", m.ground.frame(wall, z=Y), link.frame(z=Y))
        m.spherical(f"{name} knot", link.point(X), knot.point())
    found = m.equilibrium()
    assert found.ok, found.text()
    force = found.reaction("left wall").force
    assert force == pytest.approx([-G * np.sqrt(3), 0, G], abs=1e-10)
    assert any("left, right: massless, 0 kg" in note for note in found.notes)
    assert any("knot: point masses" in note for note in found.notes)


def test_a_massless_slider_between_springs_rests_where_they_balance():
    m = cd.Mechanism()
    block = m.body("block", position=(0, 0, 0.3))
    slide = m.prismatic("slide", m.ground.frame(), block.frame())
    m.spring("low", slide, stiffness=10.0, rest=0.1)
    m.spring("high", slide, stiffness=30.0, rest=0.7)
    found = m.equilibrium()
    assert found.ok and found.stable
    assert found.coordinate("slide") == pytest.approx((1.0 + 21.0) / 40.0, abs=1e-10)


def test_small_motions_with_a_massless_link():
    """A crank with a spring, a massless rod and a slider: √(k/(J + m x'²))."""
    m = slider_crank()
    m.gravity = (0, 0, 0)
    m.spring("return", m["main"], stiffness=7.0, rest=m["main"].coordinate(m.assemble().state))
    inertia = 7.0 / -crank_growth()
    assert m.linearize().frequencies == pytest.approx([np.sqrt(7.0 / inertia) / (2 * np.pi)], rel=1e-8)


def crank_growth():
    """θ̈ of the slider-crank at rest under a torque of −7 N m."""
    r, l, angle = 0.3, 0.8, 0.7
    first = -r * np.sin(angle) - r * r * np.sin(angle) * np.cos(angle) / np.sqrt(l * l - (r * np.sin(angle)) ** 2)
    return -7.0 / (0.2 + 1.5 * first**2)


def test_inverse_dynamics_says_what_it_assumes():
    """The torque of a motor that accelerates a point mass by α is m l² α."""
    m = pendulum(mass=2.0)
    m.gravity = (0, 0, 0)
    m.drive("motor", m["hinge"], lambda t: 1.5 * t * t)
    motion = m.move(np.linspace(0, 1, 5))
    assert not motion.notes
    assert motion.effort("motor") == pytest.approx(2.0 * 3.0, rel=1e-10)
    assert any("bob: point masses, 0 kg m²" in note for note in motion.notes)


def test_a_dynamic_session_with_a_massless_rod():
    """Cycles of a session follow the simulation; a hand on the massless rod feels the force that holds the crank."""
    m = slider_crank()
    with m.session(mode="dynamic", rate=1000) as session:
        for _ in range(200):
            session.step()
        angle = session.state
        assert any("rod: massless" in note for note in session.notes)
    exact = is_done(m.simulate(0.2, rtol=1e-9))
    assert np.abs(angle.positions - exact.states[-1].positions).max() < 1e-6


@pytest.mark.parametrize("hand", ["constraint", "spring"])
def test_a_hand_on_a_particle_holds_its_centre_only(hand):
    """Held at rest, it feels the weight; a hand beside the centre would rotate what has no inertia."""
    m = particle((0, 0, -1))
    m.remove("string")
    with m.session(mode="dynamic", hand=hand) as session:
        assert any("the rotation of 'bob' is not determined" in note for note in session.notes)
        for grasp in (lambda: session.grasp("bob", (0.1, 0, 0)), lambda: session.push("bob", (0, 0, 0.1))):
            with pytest.raises(cd.ModelError, match=r"'bob' would rotate it.*0 kg m².*inertia="):
                grasp()
        held = session.grasp("bob")
        for _ in range(2000):
            session.step()
        assert held.force == pytest.approx([0, 0, -2.0 * G], abs=1e-3 * G)
        assert session.quaternions[0] == pytest.approx([1, 0, 0, 0], abs=1e-12)


def null_space_accelerations(m, state):
    """v̇ from rest, shape (bodies, 6), and whether M is definite on ker J: with M at the origins of the bodies,
    v̇ = J⁺γ + N y,  NᵀM N y = Nᵀ(Q − M J⁺γ)."""
    found = m.constraint_equations(state.with_rates(np.zeros((len(m.bodies), 6))))
    J, gamma = found.jacobian[~found.guards], found.gamma[~found.guards]
    M, Q = np.zeros((J.shape[1], J.shape[1])), np.zeros(J.shape[1])
    for k, name in enumerate(found.bodies):
        body, A, own = m[name], euler.matrix(state.quaternions[k]), slice(6 * k, 6 * k + 6)
        lever = -A @ euler.tilde(np.array(body.center))
        center = np.hstack([np.eye(3), lever])
        turning = np.hstack([np.zeros((3, 3)), np.eye(3)])
        inertia = np.zeros((3, 3)) if body.inertia is None else np.array(body.inertia)
        M[own, own] = body.mass * center.T @ center + turning.T @ inertia @ turning
        Q[own] = body.mass * center.T @ np.array(m.gravity)
    _, sigma, v = np.linalg.svd(J)
    N = v[int((sigma > 1e-9 * sigma[0]).sum()) :].T
    part = np.linalg.lstsq(J, gamma, rcond=1e-9)[0]
    reduced = N.T @ M @ N
    if N.shape[1] and np.linalg.cond(reduced) > 1e9:
        return None
    return (part + N @ np.linalg.solve(reduced, N.T @ (Q - M @ part))).reshape(-1, 6)


def with_random_masses(name, seed):
    """A mechanism of the gallery without drivers; each body is rigid, a point mass, or massless."""
    rng = np.random.default_rng([seed, len(name)])
    m = without_drivers(REGISTRY[name].build())
    m.gravity = (3.0, -7.0, -5.0)
    for body in m.bodies.values():
        kind = rng.integers(0, 3)
        body.mass = rng.uniform(0.5, 2.0) if kind else 0.0
        body.center = rng.uniform(-0.3, 0.3, 3) if kind else (0, 0, 0)
        body.inertia = np.diag(rng.uniform(0.2, 0.3, 3)) if kind == 2 else np.zeros((3, 3))
    return m


@sampled("name, seed", [(name, seed) for name in SMALL for seed in range(12)], keep=12)
def test_random_masses_agree_with_the_null_space(name, seed):
    """Accelerations where they exist; otherwise bodies are named, in an error or in a note on idle spins."""
    m = with_random_masses(name, seed)
    state = m.assemble().state
    exact = null_space_accelerations(m, state)
    try:
        found = m.simulate(1e-6, state, step=1e-6, method="rk4")
    except cd.ModelError as error:
        assert exact is None, error
        assert "0 kg" in str(error)
        return
    idle = [note for note in found.notes if "is not determined" in note]
    assert bool(idle) == (exact is None)
    if exact is not None:
        assert np.abs(found.states[0].accelerations - exact).max() <= 1e-8 * max(1.0, np.abs(exact).max()), found.text()


@pytest.mark.nojit
def test_kernels_of_a_singular_mass_matrix_stay_within_their_arrays():
    """Two point masses on massless links, for three steps."""
    angles = np.array([0.3, 0.8])
    found = is_done(chain(angles).simulate(3e-3, step=1e-3, method="rk4"))
    exact = chain_acceleration(angles, np.zeros(2))
    assert -found.states[0].accelerations[:, 4] == pytest.approx(exact, rel=1e-11)


def test_a_force_on_a_massless_rod():
    """By virtual work: (J + m x'²) θ̈ = −5 N · r cos θ/2 of a force at the middle of the rod, from rest."""
    m = slider_crank()
    m.gravity = (0, 0, 0)
    m.force("push", m["rod"].point(0.4 * X), (0, -5.0, 0))
    found = is_done(m.simulate(1e-3, step=1e-3, method="rk4"))
    inertia = -7.0 / crank_growth()
    assert found.accelerations("crank")[0, 5] == pytest.approx(-5.0 * 0.15 * np.cos(0.7) / inertia, rel=1e-11)


@pytest.mark.slow
def test_a_spring_hand_holds_a_mechanism_by_its_massless_rod():
    """At rest: force · (velocity of the point) = −(power of gravity on the crank), for a unit rate of the crank."""
    m = slider_crank()
    with m.session(mode="dynamic", hand="spring") as session:
        held = session.grasp("rod", (0.4, 0, 0))
        for _ in range(2000):
            session.step()
        state = session.state
        force = np.array(held.force)
    assert np.abs(state.velocities).max() < 1e-6
    rates = m.solve_rates(state, {"main": 1.0})
    k = rates.names.index("rod")
    speed = rates.velocities[k, :3] + euler.rotate(state.quaternions[k], np.cross(rates.velocities[k, 3:], 0.4 * X))
    angle = 2 * np.arctan2(state.quaternions[0, 3], state.quaternions[0, 0])
    assert force @ speed == pytest.approx(-2.0 * G * 0.1 * np.cos(angle), rel=1e-4)
