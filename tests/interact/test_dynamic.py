"""Dynamic sessions: the same motion as a simulation, statics at rest, and hands that add no energy."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.examples import REGISTRY
from cardan.math import euler

X, Y, Z = np.eye(3)
P0 = np.array([1 + 0.8 * np.cos(1.0), 0.8 * np.sin(1.0), 0.0])


def arm() -> cd.Mechanism:
    """Two links on ball joints with a spring: six freedoms."""
    m = cd.Mechanism("arm", gravity=(0, -9.81, 0))
    bent = (np.cos(0.5), 0, 0, np.sin(0.5))
    a = m.body("upper", mass=1.0, inertia=np.diag([0.1, 0.2, 0.15]), center=(0.5, 0, 0))
    b = m.body(
        "fore", position=(1, 0, 0), orientation=bent, mass=0.7, inertia=np.diag([0.05, 0.1, 0.12]), center=(0.4, 0.1, 0)
    )
    m.spherical("S", m.ground.point(), a.point())
    m.spherical("E", a.point((1, 0, 0)), b.point())
    m.spring("k", a.point((0.5, 0, 0)), b.point((0.5, 0.2, 0)), stiffness=30.0, rest=0.6, damping=0.5)
    return m


def path(t, cos=np.cos):
    return P0[0] - 0.15 * (1 - cos(3 * t)), P0[1] + 0.1 * (1 - cos(4 * t)), 0.12 * (1 - cos(2 * t))


def driven_arm() -> cd.Mechanism:
    m = arm()
    for k, axis in enumerate((X, Y, Z)):
        along = cd.coordinate(m.ground.frame(z=axis), m["fore"].frame((0.8, 0, 0), z=axis), "displacement")
        m.drive("xyz"[k], along, lambda t, k=k: path(t, cd.cos)[k])
    return m


def pendulum() -> cd.Mechanism:
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    bar = m.body("bar", mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]), center=(0.5, 0, 0))
    m.revolute("A", m.ground.frame(), bar.frame())
    return m


def energy(m, session):
    """Kinetic and potential energy of gravity [J], by definition."""
    state, total = session.state, 0.0
    for k, body in enumerate(m.bodies.values()):
        pose, (v, w) = state[body], np.split(state.velocities[k], 2)
        A = euler.matrix(pose.quaternion)
        c = A @ np.array(body.center)
        speed = v + np.cross(A @ w, c)
        total += 0.5 * body.mass * speed @ speed + 0.5 * w @ np.array(body.inertia) @ w
        total -= body.mass * np.array(m.gravity) @ (pose.position + c)
    return total


def test_a_held_point_moves_the_mechanism_as_drivers_do_to_second_order():
    last = 0.5
    simulated = driven_arm().simulate(last, rtol=1e-10, times=[0.0, last])
    assert simulated.ok
    errors = []
    for rate in (500, 1000):
        ses = arm().session(mode="dynamic", rate=rate)
        hand = ses.grasp("fore", (0.8, 0, 0))
        for k in range(int(last * rate)):
            hand.target = path((k + 1) / rate)
            assert ses.step() == cd.SessionStatus.MOVING
        assert ses.state.time == pytest.approx(last)
        errors.append(np.abs(ses.coordinates - simulated.state.coordinates).max())
        assert ses.residual < 1e-12
    assert errors[1] < 1e-6
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_without_hands_a_session_is_a_simulation():
    ses = arm().session(mode="dynamic", rate=1000)
    for _ in range(200):
        ses.step()
    simulated = arm().simulate(0.2, rtol=1e-11, times=[0.0, 0.2])
    np.testing.assert_allclose(ses.coordinates, simulated.state.coordinates, atol=1e-8)


@pytest.mark.parametrize("kind", ["constraint", "spring"])
def test_the_force_at_rest_is_that_of_statics(kind):
    """A bar that gravity and a torsion spring turn about z: moment equilibrium about the hinge."""
    m = pendulum()
    m.spring("coil", m["A"], stiffness=40.0, rest=0.4)
    with m.session(mode="dynamic", hand=kind) as ses:
        hand = ses.grasp("bar", (1, 0, 0))
        for _ in range(3000 if kind == "spring" else 5):
            ses.step()
        angle = m["A"].coordinate(ses.state)
        moment = -2.0 * 9.81 * 0.5 * np.cos(angle) - 40.0 * (angle - 0.4)  # of gravity and coil on the bar
        felt = np.cross(hand.point, hand.force)[2]
        assert felt == pytest.approx(moment, rel=1e-6)


def test_the_force_on_a_held_coupler_is_the_virtual_work_of_gravity():
    """One freedom: force · (velocity of the point) = power of gravity on all bodies."""
    m = REGISTRY["rsur"].build()
    m.gravity = (3.0, -5.0, -9.81)
    for body in m.bodies.values():
        body.mass, body.inertia = 1.0, np.diag([0.3, 0.4, 0.5])
    state = m.assemble().state
    moving = m.solve_rates(state, {"A": 1.0})
    with m.session(state, mode="dynamic") as ses:
        hand = ses.grasp("coupler", (2, 0, 0))
        for _ in range(5):
            ses.step()
        k = list(m.bodies).index("coupler")
        A = state["coupler"].matrix
        v = moving.velocities[k, :3] + np.cross(A @ moving.velocities[k, 3:], A @ np.array([2.0, 0, 0]))
        power = sum(b.mass * np.array(m.gravity) @ moving.velocities[i, :3] for i, b in enumerate(m.bodies.values()))
        assert hand.force @ v == pytest.approx(power, rel=1e-6)


def test_the_energy_of_a_session_is_its_definition():
    m = arm()
    with m.session(m.assemble().state, mode="dynamic") as ses:
        for _ in range(60):
            ses.step()
        state = ses.state
        stretch = np.linalg.norm(state["upper"].point((0.5, 0, 0)) - state["fore"].point((0.5, 0.2, 0))) - 0.6
        assert ses.energy == pytest.approx(energy(m, ses) + 0.5 * 30.0 * stretch**2, rel=1e-9)
        assert abs(stretch) > 1e-3
    with m.session(m.assemble().state) as ses:
        assert np.isnan(ses.energy)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constraint", "spring"])
def test_a_hand_at_rest_never_adds_energy(kind):
    m = cd.Mechanism("chain", gravity=(0, -9.81, 0))
    a = m.body("a", mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]), center=(0.5, 0, 0))
    b = m.body("b", position=(1, 0, 0), mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]), center=(0.5, 0, 0))
    m.revolute("A", m.ground.frame(), a.frame())
    m.revolute("B", a.frame((1, 0, 0)), b.frame())
    start = m.solve_rates(m.assemble().state, {"A": 1.0, "B": -3.0})
    for stiffness in (10.0, 1e4, 1e7) if kind == "spring" else (None,):
        with m.session(start, mode="dynamic", hand=kind) as ses:
            damping = 0.0 if kind == "spring" else None
            hand = ses.grasp("a", (1, 0, 0), stiffness=stiffness, damping=damping)
            energies = [energy(m, ses)]
            for _ in range(1000):
                ses.step()
                offset = hand.point - hand.target
                stored = 0.5 * stiffness * offset @ offset if kind == "spring" else 0.0
                energies.append(energy(m, ses) + stored)
            assert np.diff(energies).max() < 1e-6
            assert max(energies) <= energies[0] + 1e-6


@pytest.mark.slow
def test_a_limit_stops_a_falling_bar_and_the_hand_feels_nothing_of_it():
    m = pendulum()
    m.limit("floor", m["A"], lower=-0.5)
    with m.session(mode="dynamic") as ses:
        for _ in range(2000):
            ses.step()
            assert m["A"].coordinate(ses.state) > -0.5 - 1e-9
        assert abs(m["A"].coordinate(ses.state) + 0.5) < 1e-9
        assert ses.events[-1][1:] == ("limit reached", "floor")


def test_a_push_acts_only_where_it_touches():
    m = cd.Mechanism("slider", gravity=(0, 0, 0))
    block = m.body("block", mass=1.0, inertia=np.eye(3))
    m.prismatic("P", m.ground.frame(z=X), block.frame(z=X))
    with m.session(mode="dynamic") as ses:
        hand = ses.push(block, (-0.5, 0, 0), direction=X, stiffness=1000.0)
        hand.target = (-0.4, 0, 0)
        forces = []
        for _ in range(300):
            ses.step()
            forces.append(hand.force[0])
        assert min(forces) < -1.0 and max(forces) <= 0.0
        assert not hand.force.any()
        assert ses.coordinates[0, 0] > 0.1


def test_a_hand_against_the_joints_keeps_them_closed():
    m = arm()
    with m.session(mode="dynamic", hand="spring") as ses:
        hand = ses.grasp("fore", (0.8, 0, 0))
        hand.target = (50.0, 20.0, 0.0)
        for _ in range(500):
            ses.step()
            assert ses.residual < 1e-10
        assert np.isfinite(ses.coordinates).all()


def test_restore_of_a_dynamic_session_is_exact():
    m = arm()
    ses = m.session(mode="dynamic")
    for _ in range(20):
        ses.step()
    hand = ses.grasp("fore", (0.8, 0, 0))
    before = ses.state
    hand.target = hand.point + 0.1
    for _ in range(20):
        ses.step()
    ses.restore()
    after = ses.state
    assert np.array_equal(before.coordinates, after.coordinates)
    assert np.array_equal(before.velocities, after.velocities)
    assert before.time == after.time


def test_loads_that_python_computes_act_in_every_stage():
    def pull(t, state):
        return (0.0, 3.0 * np.sin(5 * t), 1.0)

    def made():
        m = arm()
        m.force("pull", m["fore"].point((0.8, 0, 0)), pull)
        return m

    ses = made().session(mode="dynamic", rate=1000)
    for _ in range(100):
        ses.step()
    simulated = made().simulate(0.1, rtol=1e-11, times=[0.0, 0.1])
    np.testing.assert_allclose(ses.coordinates, simulated.state.coordinates, atol=1e-8)


def test_a_driver_is_refused_by_name_in_a_dynamic_session():
    m = pendulum()
    m.drive("motor", m["A"], lambda t: 0.1 * t)
    ses = m.session(mode="dynamic")
    with pytest.raises(cd.ModelError, match="motor"):
        ses.drive("motor", 1.0)
    for _ in range(10):
        ses.step()
    assert m["A"].coordinate(ses.state) == pytest.approx(0.001, abs=1e-9)


@pytest.mark.parametrize("far", [1.0, 30.0, 1e3])
def test_a_spring_to_a_far_target_adds_no_energy(far):
    """A light bar that the spring would turn by many radians in a cycle: kinetic energy and ½ k d² never grow."""
    m = cd.Mechanism("bar", gravity=(0, 0, 0))
    bar = m.body("bar", mass=1.0, inertia=np.diag([0.1, 0.1, 0.1]))
    m.revolute("A", m.ground.frame(), bar.frame())
    with m.session(mode="dynamic", hand="spring") as ses:
        hand = ses.grasp(bar, (1, 0, 0))
        hand.target = (far, far, 0)
        before = 0.5 * hand.stiffness * np.sum((hand.point - hand.target) ** 2)
        for _ in range(100):
            assert ses.step() == cd.SessionStatus.MOVING
            stored = 0.5 * hand.stiffness * np.sum((hand.point - hand.target) ** 2)
            assert ses.energy + stored <= before * (1 + 1e-9)
            assert ses.residual < 1e-9


@pytest.mark.parametrize("kind", ["constraint", "spring"])
def test_a_body_without_joints_is_carried(kind):
    m = cd.Mechanism("free")
    body = m.body("stone", mass=2.0, inertia=np.eye(3))
    with m.session(mode="dynamic", hand=kind) as ses:
        hand = ses.grasp(body, (0.1, 0, 0), pose=True)
        hand.target = (1, 2, 3)
        for _ in range(1000):
            ses.step()
        assert ses.residual == 0.0  # there is no joint to be open
        assert hand.force == pytest.approx([0, 0, -2.0 * 9.81], abs=1e-2)


def test_a_cycle_that_fails_keeps_the_velocity_and_names_the_body():
    """Friction acts on the spin of a point mass about its own centre, which has no inertia."""
    m = cd.Mechanism()
    a = m.body("a", mass=1.0)
    m.friction("f", m.revolute("h", m.ground.frame(z=(0, 1, 0)), a.frame(z=(0, 1, 0))), viscous=1.0)
    with m.session(m.solve_rates(m.assemble().state, {"h": 1.0}), mode="dynamic") as ses:
        assert [ses.step(), ses.step()] == [cd.SessionStatus.FAILED] * 2
        assert ses.state["a"].angular_velocity.tolist() == [0.0, 1.0, 0.0]
        assert ses.events == [(1, "force along a motion without mass", "a")]
        ses.restore()
        assert ses.step() == cd.SessionStatus.FAILED and len(ses.events) == 2


def test_a_load_without_a_finite_force_is_named_by_a_session():
    m = cd.Mechanism(gravity=(0, 0, 0))
    a = m.body("a", mass=1.0, inertia=np.eye(3))
    m.spring("s", m.ground.point(), a.point(), stiffness=1.0, rest=1.0)
    with m.session(mode="dynamic") as ses:
        assert ses.step() == cd.SessionStatus.FAILED
        assert ses.events == [(1, "no finite force", "s")]
