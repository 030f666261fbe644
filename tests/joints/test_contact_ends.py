"""Motions end where a contact ends: at an edge, at a pole, where the shapes would cross; and reactions of contacts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

import cardan as cd
from gallery import cam_roller
from gallery.checks import without_drivers

G = cd.geometry
X, Y, Z = np.eye(3)
RADIUS, FALL = 0.1, np.pi / 2 - 0.2  # of a coin [m]; its first angle over the plane [rad]
LAST = 5e-6  # [rad] its last angle: the relative curvature sin φ/R, times the size 2R, is then 1e-5
RUNS = [
    *({"rtol": 1e-10}, {"step": 1e-3}, {"step": 1e-3, "method": "rk4"}, {"step": 1e-3, "method": "dopri5"}),
    {"step": 1e-3, "method": "generalized_alpha"},
]


def coin(mode: str = "slide") -> cd.Mechanism:
    """A disc that falls from nearly upright."""
    m = cd.Mechanism("coin")
    inertia = np.diag([0.25, 0.25, 0.5]) * RADIUS**2
    b = m.body("coin", position=(0, 0, RADIUS), orientation=(X, FALL), mass=1.0, inertia=inertia)
    m.contact("on", m.ground.attach(G.plane()), b.attach(G.circle(RADIUS)), mode=mode)
    return m


def time_of_fall(first: float) -> float:
    """By the energy of a disc without friction: ½ (cos² φ + ¼) R² φ̇² = g R (sin φ₀ − sin φ)."""

    def slowness(s: float) -> float:  # φ = φ₀ − s², against the singularity at the start
        phi = first - s * s
        drop = 2 * np.cos(first - 0.5 * s * s) * np.sin(0.5 * s * s)
        return 2 * s * np.sqrt((np.cos(phi) ** 2 + 0.25) * RADIUS / (2 * 9.81 * drop))

    return quad(slowness, 0.0, np.sqrt(first - LAST), epsabs=1e-13)[0]


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_a_falling_coin_ends_flat_on_its_plane(run):
    m = coin()
    start = m.assemble().state
    simulation = m.simulate(1.0, start, **run)
    assert simulation.status == "contact" and "'on'" in simulation.reason and "curvatures" in simulation.reason
    slack = {"rk4": 1e-7, "generalized_alpha": 1e-5}.get(run.get("method", ""), 1e-8)
    assert simulation.times[-1] == pytest.approx(time_of_fall(np.arcsin(start["coin"].position[2] / RADIUS)), abs=slack)
    assert simulation.events[-1] == (simulation.times[-1], "on", "contact ended")
    for state in simulation.states:
        assert state["coin"].position[2] > 0.0 and state.contact("on").status == "regular"
    assert simulation.drift.max() < 1e-11
    assert np.isfinite(simulation.reaction("on").force).all()


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_the_time_at_an_edge_is_exact(run):
    """A ball slides off a square at 1 m/s; the state at the edge is the last one."""
    m = cd.Mechanism("sliding")
    ball = m.body("ball", position=(0.0, 0.0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("c", m.ground.attach(G.plane(1.0, 1.0)), ball.attach(G.sphere(0.1)))
    start = m.assemble().state.with_rates(np.array([[0.7, 0.1, 0, 0, 0, 0]]))
    simulation = m.simulate(1.0, start, **run)
    assert simulation.status == "contact" and "edge" in simulation.reason
    assert simulation.times[-1] == pytest.approx(0.5 / 0.7, abs=1e-12)
    assert simulation.state["ball"].position == pytest.approx([0.5, 0.5 / 7, 0.1], abs=1e-11)


def notch() -> cd.geometry.Curve:
    """A road y = 0.2 (1 − cos 2x) whose valleys are less wide than a roller of 2 m: the curvature there is 0.8."""
    return G.traced(lambda u: (-u, 0.2 * cd.cos(2.0 * u)), (-6.0, 6.0))


def roller(radius: float) -> cd.Mechanism:
    """A roller that a cart pushes along the road."""
    m = cd.Mechanism("road")
    part, cart = m.body("part", position=(0.0, 0.2 + radius, 0)), m.body("cart", position=(0.0, 3.0, 0))
    rail = m.prismatic("rail", m.ground.frame((0, 3, 0), z=X), cart.frame(z=X))
    m.prismatic("lift", cart.frame(z=Y, x=X), part.frame(z=Y, x=X))
    m.contact("on", m.ground.attach(notch()), part.attach(G.circle(radius)))
    m.drive("push", rail, lambda t: t)
    return m


def test_a_roller_that_is_too_large_for_a_valley_ends_there():
    """Where the curvature of the road is that of the roller."""
    fits = roller(1.0).move(np.linspace(0.0, 3.0, 31))
    assert fits.ok, fits.text()
    motion = roller(2.0).move(np.linspace(0.0, 3.0, 31))
    assert motion.status == "contact" and "'on'" in motion.reason and "curvatures" in motion.reason
    assert motion.state.time > motion.times[-1]
    x = -motion.state.contact("on").parameters[0][0]
    bent = 0.8 * np.cos(2 * x) / (1 + (0.4 * np.sin(2 * x)) ** 2) ** 1.5  # −y''/(1 + y'²)^1.5
    assert bent == pytest.approx(-0.5, abs=1e-4)
    for state in (*motion.states, motion.state):
        assert state.contact("on").status == "regular" and abs(state.contact("on").gap) < 1e-11


def test_a_driven_motion_ends_exactly_at_an_edge():
    m = roller(1.0)
    motion = m.move(np.linspace(0.0, 9.0, 10))
    assert motion.status == "contact" and "edge" in motion.reason
    assert motion.state.contact("on").parameters[0][0] == pytest.approx(-6.0, abs=1e-9)


def test_a_contact_at_a_pole_ends_with_its_name():
    """A ball slides over the pole of a sphere as a NURBS surface."""
    m = cd.Mechanism("pole", gravity=(0, 0, 0))
    dome = m.ground.attach(G.sphere(1.0).to_nurbs())
    ball = m.body("ball", position=(-0.6, 0.0, 0.95), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("on", dome, ball.attach(G.sphere(0.1)))
    state = m.assemble().state
    out = state["ball"].position / 1.1
    along = np.array([out[2], 0.0, -out[0]])
    simulation = m.simulate(2.0, state.with_rates(np.array([[*along, 0, 0, 0]])), rtol=1e-10)
    assert simulation.status == "contact" and "pole" in simulation.reason, simulation.text()
    assert simulation.times[-1] == pytest.approx(1.1 * np.arctan2(-out[0], out[2]), abs=1e-5)


@pytest.mark.parametrize("mode", ["kinematic", "dynamic"])
def test_a_session_does_not_push_a_coin_through_its_plane(mode):
    m = coin()
    with m.session(mode=mode) as session:
        hand = session.grasp("coin", (0.0, RADIUS, 0.0))
        for _ in range(150):
            hand.target = hand.point + np.array([0.0, 0.0, -0.002])
            session.step()
            assert session.state["coin"].matrix[2, 2] > 0.0
            contact = session.state.contact("on")
            assert contact.status == "regular" and abs(contact.gap) < 1e-9


@pytest.mark.parametrize("mode", ["kinematic", "dynamic"])
@pytest.mark.parametrize("rolls", ["slide", "roll"])
@pytest.mark.parametrize("first", [0.4, 0.402])  # a cycle ends at the edge, or passes it
def test_a_session_stops_at_an_edge_with_an_event(mode, rolls, first):
    m = cd.Mechanism("drag", gravity=(0, 0, 0))
    ball = m.body("ball", position=(first, 0.0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("c", m.ground.attach(G.plane(1.0, 1.0)), ball.attach(G.sphere(0.1)), mode=rolls)
    with m.session(mode=mode) as session:
        hand = session.grasp("ball", (0.0, 0.0, 0.0))
        for _ in range(80):
            hand.target = hand.point + np.array([0.005, 0.0, 0.0])
            session.step()
            contact = session.state.contact("c")
            assert contact.status == "regular" and abs(contact.gap) < 1e-9
        assert session.state["ball"].position[0] == pytest.approx(0.5, abs=6e-3)
        assert [(event.what, event.name) for event in session.events] == [("contact ends", "c")]


def test_constant_steps_that_are_too_long_do_not_jump_to_another_contact():
    """An ellipsoid is spun in steps of more than half a turn of its contact point: the result stays a contact."""
    m = cd.Mechanism("spun", gravity=(0, 0, -9.81))
    body = m.body("egg", position=(0, 0, 0.2), mass=1.0, inertia=np.diag([0.02, 0.018, 0.01]))
    m.contact("on", m.ground.attach(G.plane()), body.attach(G.ellipsoid(0.2, 0.15, 0.1)))
    state = m.assemble().state.with_rates(np.array([[0, 0, 0, 20.0, 3.0, 0.1]]))
    for step in (0.05, 0.1):
        simulation = m.simulate(1.0, state, step=step)
        for found in simulation.states:
            contact = found.contact("on")
            assert contact.status == "regular" and abs(contact.gap) < 1e-10


# Reactions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "share"), [(0.5, 1 / 3), (0.4, 2 / 7)], ids=["disc", "sphere"])
def test_normal_force_and_traction_on_an_incline(factor, share):
    """N = m g cos α; traction m g sin α/3 of a disc, 2/7 of a sphere; in simulation and in a driven motion."""
    tilt, r, mass = 0.3, 0.1, 2.0
    down = np.array([np.cos(tilt), 0, -np.sin(tilt)])
    normal = np.array([np.sin(tilt), 0, np.cos(tilt)])
    m = cd.Mechanism("incline")
    slope = m.ground.attach(G.plane(), m.ground.frame(z=normal, x=down))
    body = m.body("body", position=r * normal, mass=mass, inertia=factor * mass * r * r * np.eye(3))
    face = G.sphere(r) if factor == 0.4 else G.circle(r)
    m.contact("on", slope, body.attach(face, body.frame(z=Y)), mode="roll")
    simulation = m.simulate(1.0, m.assemble().state, step=1e-2)
    assert simulation.ok, simulation.text()
    whole, pull = simulation.reaction("on"), simulation.reaction("on.roll")
    push, traction = mass * 9.81 * np.cos(tilt) * normal, -share * mass * 9.81 * np.sin(tilt) * down
    assert np.abs(whole.normal - push).max() < 1e-9 and np.abs(whole.traction - traction).max() < 1e-9
    assert np.abs(whole.force - push - traction).max() < 1e-9 and np.abs(pull.force - traction).max() < 1e-9
    assert max(np.abs(whole.torque).max(), np.abs(pull.torque).max()) < 1e-9  # about the point of contact
    assert pull.normal is None and pull.traction is None
    on_ground = simulation.reaction("on", "a")
    assert np.abs(on_ground.force + whole.force).max() < 1e-9 and np.abs(on_ground.torque).max() < 1e-9
    assert np.abs(on_ground.traction + traction).max() < 1e-9
    inertia = mass * simulation.accelerations("body")[:, :3]
    assert np.abs(whole.force - inertia - mass * 9.81 * Z).max() < 1e-9  # nothing else acts on the body


def test_spin_torque_of_a_ball_that_does_not_spin():
    """A torque about the normal is carried by the contact."""
    m = cd.Mechanism("spin")
    ball = m.body("ball", position=(0, 0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("on", m.ground.attach(G.plane()), ball.attach(G.sphere(0.1)), mode="roll_without_spin")
    m.torque("twist", ball, (0.0, 0.0, 0.05))
    simulation = m.simulate(0.2, m.assemble().state, step=1e-2)
    assert np.abs(simulation.reaction("on.roll").torque - (0, 0, -0.05)).max() < 1e-12
    whole = simulation.reaction("on")
    assert np.abs(whole.force - (0, 0, 9.81)).max() < 1e-12 and np.abs(whole.torque - (0, 0, -0.05)).max() < 1e-12
    assert np.abs(whole.normal - (0, 0, 9.81)).max() < 1e-12 and np.abs(whole.traction).max() < 1e-12


@pytest.mark.parametrize("mode", ["slide", "roll"])
def test_a_reaction_prints_as_one_line_and_gives_one_instant(mode):
    m = cd.Mechanism("ball")
    ball = m.body("ball", position=(0, 0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("on", m.ground.attach(G.plane()), ball.attach(G.sphere(0.1)), mode=mode)
    many, one = m.simulate(0.1).reaction("on"), m.equilibrium().reaction("on")
    assert len(many.force) == 101 and repr(many).startswith("<Reaction: 101 times, force up to 9.81 N")
    assert one.force.shape == one.normal.shape == one.traction.shape == (3,) and "(0, 0, 9.81) N" in repr(one)
    assert all("\n" not in repr(found) and len(repr(found)) < 120 for found in (many, one))


@pytest.mark.parametrize("mode", ["slide", "roll"])
def test_a_contact_that_is_drawn_apart_is_named_with_its_distance(mode):
    """In every verb that assembles; the distance is the height of the ball above the plane."""
    m = cd.Mechanism("clear")
    ball = m.body("ball", position=(0, 0, 0.9), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("on", m.ground.attach(G.plane()), ball.attach(G.sphere(0.1)), mode=mode)
    note = "contact 'on': 'ground' and 'ball' are drawn 0.8 m apart, and were brought into contact"
    simulation, driven = m.simulate(0.01), m.copy()
    driven.drive("x", cd.coordinate(driven.ground.frame(), driven["ball"].frame(), "x"), lambda t: 0.1 * t)
    for found in (m.assemble(), simulation, m.equilibrium(), driven.move([0.0])):
        assert [line for line in found.notes if line.startswith(note)], found.text()
    assert "the start was not assembled: body 'ball' was moved by 0.8 m to assemble it" in simulation.notes
    closed = m.assemble().state
    for found in (m.assemble(closed), m.simulate(0.01, closed)):
        assert found.notes == (), found.text()
    for kind in ("kinematic", "dynamic"):
        with m.session(mode=kind) as drawn, m.session(closed, mode=kind) as touching:
            assert [line for line in drawn.notes if line.startswith(note)] and touching.notes == ()
    with m.session(closed=False) as opened:
        while opened.step() == cd.SessionStatus.MOVING:
            pass
        opened.grasp("ball")
        assert [line for line in opened.notes if line.startswith(note)]


def test_a_joint_with_the_name_of_a_rolling_row_has_its_own_reaction():
    """The torque of a hinge is about the hinge, although a contact has the first part of its name."""
    m = cd.Mechanism("names")
    ball = m.body("ball", position=(0, 0, 0.1), mass=1.0, inertia=0.004 * np.eye(3))
    m.contact("on", m.ground.attach(G.plane()), ball.attach(G.sphere(0.1)))
    bar = m.body("bar", position=(1, 0, 1), mass=2.0, inertia=0.1 * np.eye(3))
    m.revolute("on.roll", m.ground.frame((0.5, 0, 1), z=Y), bar.frame((-0.5, 0, 0), z=Y))
    simulation = m.simulate(0.02, m.assemble().state, step=1e-2)
    assert np.abs(simulation.reaction("on.roll").torque).max() < 1e-9


def test_reactions_of_a_driven_motion_with_a_contact():
    """An eccentric cam under a flat follower: the contact carries weight and inertia of the follower."""
    r, e, mass = 0.3, 0.1, 2.0
    m = cd.Mechanism("cam", gravity=(0, -9.81, 0))
    cam = m.body("cam", mass=1.0, inertia=np.eye(3))
    follower = m.body("follower", position=(0, 0.35, 0), mass=mass, inertia=np.eye(3))
    shaft = m.revolute("shaft", m.ground.frame(), cam.frame())
    m.prismatic("guide", m.ground.frame(z=Y, x=X), follower.frame(z=Y, x=X))
    m.contact("touch", cam.attach(G.circle(r), cam.frame((e, 0, 0))), follower.attach(G.line()))
    m.drive("motor", shaft, lambda t: 2.0 * t)
    motion = m.move(np.linspace(0.0, 3.0, 13))
    assert motion.ok, motion.text()
    found = motion.reaction("touch")
    wanted = mass * (9.81 - 4.0 * e * np.sin(2.0 * motion.times))
    assert np.abs(found.force - wanted[:, None] * Y).max() < 1e-9
    assert np.abs(found.torque).max() < 1e-9


def test_a_dead_point_of_a_rolling_cam_is_no_end_of_its_contact():
    """Where the follower is highest the hand pulls in vain, with steps as long as one likes; the contact stays."""
    m = without_drivers(cam_roller.build())
    with m.session(m.assemble().state) as session:
        hand = session.grasp("follower")
        hand.target = hand.point + np.array([0.0, 5.0, 0.0])
        for _ in range(400):
            status = session.step()
            if status == cd.SessionStatus.SATURATED:
                break
        assert status == cd.SessionStatus.SATURATED
        assert m["guide"].coordinate(session.state) == pytest.approx(0.48, abs=1e-6)
        assert not [event for event in session.events if event.what == "contact ends"]
        assert session.state.contact("touch").status == "regular"


@pytest.mark.parametrize("options", [{}, {"step": 1e-3}, {"rtol": 1e-10}])
def test_the_last_state_of_a_simulation_is_at_the_end_of_a_path(options):
    """At default steps one of the short steps ends just where the path does, and the next one cannot begin there."""
    m = cd.Mechanism("path", gravity=(0, 0, 0))
    b = m.body("b", position=(0.55, 0, 0), mass=1.0, inertia=np.eye(3))
    m.path("p", b.frame(), m.ground.attach(cd.geometry.Curve([[0, 0, 0], [1, 0, 0], [2, 0.1, 0], [3, 0, 0]])))
    m.drive("d", cd.coordinate(m.ground.frame(), b.frame(), "x"), lambda t: 0.55 + t)
    simulation = m.simulate(4.0, **options)
    assert simulation.status == "contact"
    assert simulation.events == ((simulation.state.time, "p", "contact ended"),)
    assert simulation.state.time == pytest.approx(2.45, abs=1e-11)
    assert simulation.state["b"].position[0] == pytest.approx(3.0, abs=1e-11)
