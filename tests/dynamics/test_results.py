"""Results of dynamics: reactions and efforts against closed forms and other programs, energies, drift, values."""

import copy
import csv
import itertools
import json
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad

import cardan as cd
from cardan.errors import ModelError
from cardan.examples import REGISTRY
from cardan.math import euler
from layers import sampled

G = 9.81
Z, X, Y = (0, 0, 1), (1, 0, 0), (0, 1, 0)


def pendulum(length=1.0, mass=2.0, moment=0.1):
    """A body on a revolute at the origin, its centre of mass at a distance, horizontal at rest."""
    m = cd.Mechanism("pendulum", gravity=(0, -G, 0))
    bob = m.body("bob", center=(length, 0, 0), mass=mass, inertia=moment * np.eye(3))
    m.revolute("A", m.ground.frame(z=Z, x=X), bob.frame(z=Z, x=X))
    return m


def crank_slider():
    """OndselSolver's crank_slider: dimensions, masses and moments of inertia of its file."""
    m = cd.Mechanism("crank slider", gravity=(0, -G, 0))
    rise = np.arcsin(0.05 / 0.4)
    crank = m.body("crank", center=(0.5, 0.1, -0.05), mass=0.2, inertia=np.diag([0.0025, 0.0505, 0.052]) / 3)
    turn = (np.cos(rise / 2), 0, 0, np.sin(rise / 2))
    rod = m.body(
        "rod",
        position=(0.2, 0, 0),
        orientation=turn,
        center=(0.95, 0.1, -0.05),
        mass=0.3,
        inertia=np.diag([0.00125, 0.0565, 0.05725]),
    )
    mass, moments = 7.6536686473018, np.diag([0.93243354610288, 1.1040224936599, 1.1040224936599])
    at = (0.2 + 0.4 * np.cos(rise), 0.05, 0)
    slider = m.body("slider", position=at, center=(0.5, 0, 0), mass=mass, inertia=moments)
    m.revolute("A", m.ground.frame(z=Z, x=X), crank.frame(z=Z, x=X))
    m.revolute("B", crank.frame((0.2, 0, 0), z=Z), rod.frame(z=Z))
    m.revolute("C", rod.frame((0.4, 0, 0), z=Z), slider.frame(z=Z))
    m.cylindrical("D", slider.frame((1, 0, 0), z=X), m.ground.frame((0.596863, 0.05, 0), z=X))
    m.drive("motor", m["A"], lambda t: 2 * cd.pi * t)
    return m


def simulated(name, **options):
    """A mechanism of the gallery without drivers and limits, with bodies of several shapes, after a short time."""
    m = REGISTRY[name].build()
    for joint in [key for key, joint in m.joints.items() if joint.kind.name in ("drive", "limit")]:
        m.remove(joint)
    rng = np.random.default_rng(5)
    for body in m.bodies.values():
        axes = euler.matrix(euler.normalize(rng.standard_normal(4)))
        body.mass, body.center = rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3)
        body.inertia = axes @ np.diag(rng.uniform(0.2, 0.3, 3)) @ axes.T
    m.gravity = (3.0, -7.0, -5.0)
    return m, m.simulate(0.1 if len(m.bodies) < 20 else 0.01, **{"step": 1e-3, **options})


def redundant_4r():
    return simulated("planar_4r")[1]


def bricard():
    return simulated("bricard")[1]


def double_four_bar():
    """IFToMM's A02: five links of 1 m, the first point moves with 1 m/s."""
    m = cd.Mechanism("a02", gravity=(0, -G, 0))
    J, up = np.diag([0.001, 1 / 12, 1 / 12]), (np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4))
    r = [m.body(f"r{k}", position=(k, 0, 0), orientation=up, center=(0.5, 0, 0), mass=1.0, inertia=J) for k in range(3)]
    c = [m.body(f"c{k}", position=(k, 1, 0), center=(0.5, 0, 0), mass=1.0, inertia=J) for k in range(2)]
    for k in range(3):
        m.revolute(f"A{k}", m.ground.frame((k, 0, 0)), r[k].frame())
    for name, a, b, end in (("B0", 0, 0, 0), ("B1", 1, 0, 1), ("C1", 1, 1, 0), ("C2", 2, 1, 1)):
        m.revolute(name, r[a].frame((1, 0, 0)), c[b].frame((end, 0, 0)))
    v = np.zeros((5, 6))
    v[:3, 5], v[3:, 0] = -1.0, 1.0
    return m.simulate(0.5, m.state.with_rates(v), step=1e-3)


def test_pendulum_reaction_is_its_closed_form():
    """m (g sin φ − l ω²) along the arm and m (g cos φ + l φ̈) across it, with φ̈ = −m g l cos φ / (I + m l²)."""
    length, mass, moment = 0.7, 2.0, 0.1
    sim = pendulum(length, mass, moment).simulate(3.0, rtol=1e-11)
    joint = pendulum()["A"]
    angle, w = sim.coordinate(joint), sim.velocities("bob")[:, 5]
    radial = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    across = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    total = moment + mass * length**2
    faster = -mass * G * length * np.cos(angle) / total
    force = (mass * (G * np.sin(angle) - length * w**2))[:, None] * radial
    force += (mass * (G * np.cos(angle) + length * faster))[:, None] * across
    found = sim.reaction(joint)
    assert found.unique and found.determined.all()
    assert np.abs(found.force - force).max() <= 1e-12 * np.abs(force).max()
    assert np.abs(found.torque).max() <= 1e-12 * np.abs(force).max()
    own = sim.reaction("A", on="bob", axes="joint")
    assert own.force[:, 0] == pytest.approx(mass * (G * np.sin(angle) - length * w**2), abs=1e-11)
    other = sim.reaction("A", on="a")
    assert np.abs(other.force + force).max() <= 1e-12 * np.abs(force).max()


ONDSEL = {  # t: force x and y [N] and torque of the motor [N m], on the ground
    0.0: (100.565302904, 16.9505333302, 2.64359299563),
    0.25: (-26.9186105275, 25.8641179032, 5.42200843508),
    0.5: (-32.9296815545, -2.45765959364, 0.922218248311),
}


@pytest.mark.parametrize("how", ["move", "simulate"])
def test_crank_slider_is_that_of_ondsel(how):
    m = crank_slider()
    times = list(ONDSEL)
    found = m.move(times) if how == "move" else m.simulate(0.5, step=1e-4, times=times)
    assert found.ok
    force, motor = found.reaction("A").force, found.effort("motor")
    for k, expected in enumerate(ONDSEL.values()):
        mine = (-force[k, 0], -force[k, 1], -motor[k])
        assert mine == pytest.approx(expected, rel=1e-8)
    assert not found.reaction("A").unique
    assert found.reaction("A").determined[[0, 1, 5]].all()


def test_power_of_a_driver_is_the_rate_of_the_energy():
    m = crank_slider()
    sim = m.simulate(0.5, step=1e-4)
    power = sim.effort("motor") * 2 * np.pi
    work = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2 * 1e-4)])
    energy = sim.energy.total
    assert np.abs(energy - energy[0] - work).max() <= 1e-6 * np.abs(work).max()
    assert sim.reaction("motor", on="crank").torque[:, 2] == pytest.approx(sim.effort("motor"), rel=1e-9)


@pytest.mark.parametrize("name", REGISTRY)
def test_reactions_and_loads_accelerate_each_body(name):
    """M v̇ of every body is the sum of gravity and all reactions on it, moved to its centre of mass."""
    m, sim = simulated(name)
    assert sim.ok, sim.text()
    for body in m.bodies.values():
        p = sim.quaternions(body)
        center = sim.positions(body) + euler.rotate(p, np.broadcast_to(body.center, (len(p), 3)))
        v, a = sim.velocities(body), sim.accelerations(body)
        c = np.broadcast_to(body.center, (len(p), 3))
        w, dw = v[:, 3:], a[:, 3:]
        forward = a[:, :3] + euler.rotate(p, np.cross(dw, c) + np.cross(w, np.cross(w, c)))
        spin = dw @ np.array(body.inertia).T + np.cross(w, w @ np.array(body.inertia).T)
        force = np.tile(body.mass * np.array(m.gravity), (len(p), 1))
        torque = np.zeros_like(force)
        size = body.mass * G
        for joint in m.joints.values():
            if body not in joint.bodies:
                continue
            found = sim.reaction(joint, on=body)
            end = next(place for end in joint.ends for place in ends(end) if place.body is body)
            at = getattr(end, "origin", getattr(end, "position", (0.0, 0.0, 0.0)))
            point = sim.positions(body) + euler.rotate(p, np.broadcast_to(at, (len(p), 3)))
            force += found.force
            torque += found.torque + np.cross(point - center, found.force)
            size = max(size, np.abs(found.force).max(), np.abs(found.torque).max())
        assert np.abs(body.mass * forward - force).max() <= 1e-10 * size
        assert np.abs(euler.rotate(p, spin) - torque).max() <= 1e-10 * size


def ends(end):
    return (end.a, end.b) if hasattr(end, "features") else (end,)


@sampled("name", REGISTRY, 8)
def test_action_is_reaction(name):
    """Forces and torques of a constraint on all its bodies, the ground included, cancel."""
    m, sim = simulated(name)
    for joint in m.joints.values():
        found = {body.name: sim.reaction(joint, on=body) for body in joint.bodies}
        points = {}
        for body in joint.bodies:
            end = next(place for end in joint.ends for place in ends(end) if place.body is body)
            at = getattr(end, "origin", getattr(end, "position", (0.0, 0.0, 0.0)))
            points[body.name] = np.array([state[body].point(at) for state in sim.states])
        size = max(max(np.abs(r.force).max(), np.abs(r.torque).max()) for r in found.values())
        force = sum(r.force for r in found.values())
        torque = sum(r.torque + np.cross(points[name], r.force) for name, r in found.items())
        assert np.abs(force).max() <= 1e-9 * max(size, 1e-9)
        assert np.abs(torque).max() <= 1e-9 * max(size, 1e-9)


def ring():
    """Large enough for the sparse linear algebra."""
    return simulated("hoberman_ring")[1]


@pytest.mark.parametrize("make", [redundant_4r, double_four_bar, bricard, ring])
def test_multipliers_are_those_of_least_norm(make):
    """Against singular values: λ lies in the range of D J, and a row is unique where its null space has no entry."""
    sim = make()
    forces, e = sim._forces, sim._equations
    p = e.problem
    rows, columns = p.scales[: p.rows][e.equations], p.scales[p.rows :]
    for k in (0, len(sim.times) // 2, len(sim.times) - 1):
        _, J = p.jacobian(forces.q[k])
        u, s, _ = np.linalg.svd(J[e.equations] * rows[:, None] * columns)
        rank = int((s > 1e-9 * s[0]).sum())
        assert rank < len(rows)
        carried = u[:, :rank] @ u[:, :rank].T @ (sim._multipliers()[k] / rows)
        assert np.abs(forces.multipliers[k] / rows - carried).max() <= 1e-9 * np.abs(carried).max()
        free = forces.random[k] / rows
        unique = np.linalg.norm(u[:, rank:], axis=1) < 1e-9
        assert np.array_equal(np.abs(free) < 1e-6, unique)


def test_redundant_reactions_do_not_depend_on_masses_or_on_the_axes_of_the_world():
    """Two equal hinges of a door share its weight equally, whatever the door weighs and wherever it hangs."""
    placed, tilted = np.array([1.0, 0, 0, 0]), euler.normalize(np.array([0.3, -0.5, 0.2, 0.7]))
    heavy, light = (30.0, (0.4, 0, 1.0), np.diag([10, 12, 2])), (2.0, (0.1, 0.2, 0.3), np.diag([0.5, 0.7, 0.9]))
    for orientation, (mass, center, inertia) in itertools.product((placed, tilted), (heavy, light)):
        m = cd.Mechanism("door", gravity=euler.rotate(orientation, np.array([0, 0, -G])))
        door = m.body("door", orientation=orientation, mass=mass, center=center, inertia=inertia)
        for name, height in (("low", 0.2), ("high", 1.8)):
            at = euler.rotate(orientation, np.array([0, 0, height]))
            axis, zero = (euler.rotate(orientation, np.array(v, dtype=float)) for v in (Z, X))
            m.revolute(name, m.ground.frame(at, z=axis, x=zero), door.frame((0, 0, height), z=Z, x=X))
        sim = m.simulate(0.1, step=1e-2)
        low, high = (sim.reaction(name, axes="joint") for name in ("low", "high"))
        assert not low.unique
        assert np.abs(low.force[:, 2] - high.force[:, 2]).max() <= 1e-6
        assert low.force[:, 2] + high.force[:, 2] == pytest.approx(mass * G, rel=1e-12)
        assert low.determined.tolist() == [False] * 5 + [True]


def test_a_rod_pulls_along_itself_and_a_gear_acts_on_both_wheels():
    """The reaction on the ground is the opposite of the others."""
    m = cd.Mechanism("gears", gravity=(0, 0, 0))
    wheels = [m.body(f"w{k}", position=(k, 0, 0), mass=1.0, inertia=np.eye(3)) for k in range(2)]
    for k, wheel in enumerate(wheels):
        m.revolute(f"A{k}", m.ground.frame((k, 0, 0)), wheel.frame())
    m.gear("gear", m["A0"], m["A1"], ratio=-2.0)
    m.drive("motor", m["A0"], lambda t: 0.5 * t**2)
    mov = m.move([0.0, 0.5])
    # α₁ = 1, α₂ = −2, inertias 1: the gear turns the second wheel with −2, the first with 2·(−2); the motor gives 5
    assert mov.effort("motor") == pytest.approx([5.0, 5.0])
    assert mov.reaction("gear", on="b").torque[:, 2] == pytest.approx([-2.0, -2.0])
    assert mov.reaction("gear", on="a").torque[:, 2] == pytest.approx([-4.0, -4.0])
    assert mov.reaction("gear", on="ground").torque[:, 2] == pytest.approx([6.0, 6.0])
    hung = cd.Mechanism("hung", gravity=(0, 0, -G))
    ball = hung.body("ball", position=(0, 0, -2), mass=3.0, inertia=np.eye(3))
    hung.distance("rod", hung.ground.point(), ball.point(), 2.0)
    sim = hung.simulate(0.1, step=1e-2)
    assert sim.reaction("rod").force[0] == pytest.approx([0, 0, 3 * G])
    assert sim.reaction("rod", on="a").force[0] == pytest.approx([0, 0, -3 * G])


def test_joint_axes_are_those_of_the_frame_on_the_body_that_is_asked_for():
    """Of joints, rods, couplings and drivers, on either body; on the body of a point, the axes of the body."""
    m = cd.Mechanism("train", gravity=(3.0, -7.0, -5.0))
    names = ("wheel", "arm", "bob")
    wheel, arm, bob = (m.body(name, position=(k, 0, 0), mass=1.0, inertia=np.eye(3)) for k, name in enumerate(names))
    frames = [
        m.ground.frame(z=(1, 2, 3)), wheel.frame(z=(1, 2, 3)),
        wheel.frame((1, 0, 0), z=(0, 1, 1)), arm.frame(z=(0, 1, 1)),
    ]  # fmt: skip
    m.revolute("A", *frames[:2])
    m.revolute("B", *frames[2:])
    m.gear("gear", m["A"], m["B"], ratio=-2.0)
    m.drive("motor", m["A"], lambda t: t * t)
    m.distance("rod", arm.point((0.5, 0, 0)), bob.point(), 0.5)
    sim = m.simulate(0.5, step=1e-2)
    assert sim.ok, sim.text()

    def axes(body, frame):
        own = np.eye(3) if frame is None else np.column_stack([frame.x, frame.y, frame.z])
        return np.tile(own, (len(sim.times), 1, 1)) if body.is_ground else euler.matrix(sim.quaternions(body)) @ own

    cases = [("A", m.ground, frames[0]), ("A", wheel, frames[1]), ("B", wheel, frames[2]), ("B", arm, frames[3])]
    cases += [("motor", m.ground, frames[0]), ("motor", wheel, frames[1]), ("gear", wheel, frames[1])]
    cases += [("gear", arm, frames[3]), ("rod", arm, None), ("rod", bob, None)]
    for name, body, frame in cases:
        world, own = (sim.reaction(name, on=body, axes=word) for word in ("world", "joint"))
        for word in ("force", "torque"):
            expected = np.einsum("tji,tj->ti", axes(body, frame), getattr(world, word))
            assert getattr(own, word) == pytest.approx(expected, abs=1e-10), (name, body)
        assert max(np.abs(own.force).max(), np.abs(own.torque).max()) > 0.1


def test_a_pendulum_reaches_its_stop_at_the_time_of_its_closed_form():
    """½ (I + m l²) ω² = −m g l sin φ from the horizontal; the time is the integral of 1/ω, with φ = −s²."""
    length, mass, moment = 0.7, 2.0, 0.1
    m = pendulum(length, mass, moment)
    m.limit("stop", m["A"], lower=-0.5)
    rate = 2 * mass * G * length / (moment + mass * length**2)
    time = quad(lambda s: 2 * s / np.sqrt(rate * np.sin(s * s)) if s else 2 / np.sqrt(rate), 0.0, np.sqrt(0.5))[0]
    for options in ({"step": 1e-3}, {"rtol": 1e-10}):
        sim = m.simulate(1.0, **options)
        (event,) = sim.events
        assert (event.what, event.time) == ("reached", pytest.approx(time, abs=1e-8))
        angle, speed = sim.coordinate(m["A"]), sim.velocities("bob")[:, 5]
        falls = sim.times < time
        assert speed[falls] ** 2 == pytest.approx(-rate * np.sin(angle[falls]), abs=1e-8)
        assert np.abs(angle[~falls] + 0.5).max() <= 1e-12 and np.abs(speed[~falls]).max() <= 1e-12


@pytest.mark.slow
def test_a_hundred_thousand_steps_of_a_four_bar_take_80_megabytes():
    m = REGISTRY["rsur"].build()
    for name in [name for name, joint in m.joints.items() if joint.kind.name in ("drive", "limit")]:
        m.remove(name)
    m.simulate(0.01, step=1e-3)
    tracemalloc.start()
    try:
        sim = m.simulate(100.0, step=1e-3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sim.ok and len(sim.times) == 100_001
    assert sim._results.nbytes < peak <= 80e6


@pytest.mark.parametrize("hinges", [1, 2])
def test_a_limit_pushes_while_it_is_reached(hinges):
    """A pendulum falls on its stop and rests there: the stop carries the torque of the weight; before, nothing."""
    m = pendulum(length=0.7, mass=2.0)
    for k in range(1, hinges):  # redundant
        m.revolute(f"A{k}", m.ground.frame((0, 0, k), x=X), m["bob"].frame((0, 0, k), x=X))
    m.limit("stop", m["A"], lower=-0.5)
    sim = m.simulate(1.0, step=1e-3)
    assert sim.ok
    angle, effort = sim.coordinate(m["A"]), sim.effort("stop")
    rests = sim.times > sim.events[0].time
    assert 100 < rests.sum() < 900
    assert np.abs(effort[~rests]).max() == 0.0
    assert effort[rests] == pytest.approx(2.0 * G * 0.7 * np.cos(0.5), rel=1e-12)
    assert sim.reaction("stop").torque[rests, 2] == pytest.approx(effort[rests])
    assert sim.reaction("stop").unique
    assert sim.reaction("A").unique == (hinges == 1)
    weight = sum(sim.reaction(name).force[rests] for name in m.joints if name != "stop")
    assert weight == pytest.approx(np.tile([0, 2.0 * G, 0], (rests.sum(), 1)), abs=1e-10)
    assert np.abs(angle[rests] + 0.5).max() <= 1e-12
    assert sim.drift.max() <= 1e-12


@pytest.mark.slow
def test_loads_enter_driven_motions_and_efforts():
    """A driven pendulum with a torsion spring, a damper, an actuator and a called force: the motor gives the rest."""
    m = pendulum(length=0.7, mass=2.0, moment=0.1)
    m.spring("spring", m["A"], stiffness=5.0, rest=0.2, damping=0.3)
    m.actuator("push", m["A"], lambda t, x, w: 2.0 * t + 0.5 * x)
    m.force("pull", m["bob"].point((0.7, 0, 0)), lambda t, state: (0.0, 3.0 + t, 0.0))
    m.drive("motor", m["A"], lambda t: 0.3 + 4 * t + t**2)
    times = np.linspace(0.0, 2.0, 9)  # beyond a turn
    angle, w, faster = 0.3 + 4 * times + times**2, 4 + 2 * times, 2.0
    spring = -5.0 * (angle - 0.2) - 0.3 * w
    push = 2.0 * times + 0.5 * angle
    weight = (3.0 + times - 2.0 * G) * 0.7 * np.cos(angle)
    motor = (0.1 + 2.0 * 0.7**2) * faster - spring - push - weight
    for found in (m.move(times), m.simulate(2.0, step=1e-3, times=times)):
        assert found.effort("motor") == pytest.approx(motor, rel=1e-9)
        assert found.effort("push") == pytest.approx(push, rel=1e-9)
        assert found.effort("spring") == pytest.approx(spring, rel=1e-9)


def test_a_motion_whose_drivers_leave_a_freedom_has_no_reactions():
    m = pendulum()
    tip = m.body("tip", position=(1, 0, 0), mass=1.0, inertia=np.eye(3))
    m.revolute("B", m["bob"].frame((1, 0, 0)), tip.frame((-0.5, 0, 0)))
    m.drive("motor", m["A"], lambda t: t)
    mov = m.move([0.0, 0.5, 1.0])
    with pytest.raises(ModelError, match="neither joints nor drivers"):
        mov.reaction("A")


def test_errors_name_what_has_no_reaction_or_effort():
    sim = pendulum().simulate(0.1, step=1e-2)
    for ask, text in (
        (lambda: sim.reaction("B"), "'B'"),
        (lambda: sim.reaction("A", on="door"), "'door'"),
        (lambda: sim.reaction("A", axes="body"), "'body'"),
        (lambda: sim.effort("A"), "'A'"),
    ):
        with pytest.raises(ModelError, match=text):
            ask()


def test_masses_of_a_motion_are_those_when_it_was_computed():
    m = crank_slider()
    mov = m.move([0.0, 0.1])
    before = mov.effort("motor").copy()
    again = m.move([0.0, 0.1])
    m["slider"].mass = 100.0
    assert np.array_equal(again.effort("motor"), before)


@pytest.mark.parametrize("name", ["planar_4r", "stewart_ups", "bricard"])
def test_energy_is_kept_and_joints_stay_closed(name):
    _, sim = simulated(name, step=1e-4)
    energy = sim.energy
    moved = np.abs(energy.kinetic).max()
    assert np.abs(energy.total - energy.total[0]).max() <= 1e-9 * max(moved, 1e-9)
    assert sim.drift.max() <= 1e-12


@pytest.mark.slow
def test_coordinates_read_at_all_times_are_those_of_the_states():
    for sim, m in ((s, m) for m, s in (simulated("stewart_ups"), simulated("lead_screw"), simulated("planar_4r"))):
        for joint in m.joints.values():
            for word in joint.kind.coordinates:
                coordinate = joint.of(word)
                one_by_one = np.array([coordinate.value(state) for state in sim.states])
                assert sim.coordinate(joint, word) == pytest.approx(one_by_one, abs=1e-12)


def test_copies_and_pickles_of_a_simulation_are_equal_to_it():
    m = pendulum()
    sim, same, other = m.simulate(0.5, step=1e-2), m.simulate(0.5, step=1e-2), m.simulate(0.5, step=2e-2)
    assert sim == same
    assert sim != other
    sim.reaction("A")
    for twin in (pickle.loads(pickle.dumps(sim)), copy.deepcopy(sim), copy.copy(sim)):
        assert twin == sim
        assert twin.states[-1] == sim.states[-1]
        assert np.array_equal(twin.reaction("A").force, sim.reaction("A").force)
        assert np.array_equal(twin.energy.total, sim.energy.total)
        assert np.array_equal(twin.drift, sim.drift)


@pytest.mark.slow
def test_a_simulation_is_saved_and_drawn(tmp_path):
    m = pendulum()
    sim = m.simulate(0.5, step=1e-2)
    sim.save(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open() as file:
        titles, *rows = csv.reader(file)
    assert titles[:2] == ["t [s]", "bob x [m]"]
    read = dict(zip(titles, np.array(rows, dtype=float).T, strict=True))
    assert np.array_equal(read["bob q z"], sim.quaternions("bob")[:, 3])
    assert np.array_equal(read["bob wz [rad/s]"], sim.velocities("bob")[:, 5])
    document = json.loads(json.dumps(sim.to_dict(), allow_nan=False))
    assert document["bodies"]["bob"]["positions"] == sim.positions("bob").tolist()
    with pytest.raises(ModelError, match=r"must end in \.csv"):
        sim.save(tmp_path / "run.txt")
    pytest.importorskip("matplotlib")
    figure = sim.plot(m["A"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["angle [rad]", "energy [J]"]
    sim.save(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 5000


def test_forces_of_results_without_states_say_why_there_are_none():
    m = pendulum()
    m.distance("rope", m["bob"].point((1, 0, 0)), m.ground.point((9, 0, 0)), 1.0)
    m.drive("motor", m["A"], lambda t: t)
    for result in (m.simulate(0.1), m.move([0.0, 0.1])):
        assert not len(result.times) and not result.ok
        for read in (lambda result=result: result.reaction("A"), lambda result=result: result.effort("motor")):
            with pytest.raises(ModelError, match="has no states, and so no forces: not assembled"):
                read()


def test_notes_do_not_name_the_masses_of_fixed_bodies():
    m = cd.Mechanism()
    base, rod = m.body("base", fixed=True), m.body("rod", mass=1.0, inertia=np.eye(3))
    m.revolute("A", base, rod, at=(0, 0, 0), axis=(0, 1, 0))
    assert m.simulate(0.01).notes == ()
    base.fixed = False
    with pytest.raises(cd.ModelError, match=r"'base' has no mass \(0 kg\)"):
        m.simulate(0.01)
    base.mass = 1.0
    assert any("base" in note for note in m.simulate(0.01).notes)


def test_results_give_coordinates_by_the_name_of_a_joint():
    m = cd.Mechanism()
    arm = m.body("arm", center=(0.0, 0.0, -1.0), mass=1.0, inertia=np.eye(3))
    hinge = m.cylindrical("hinge", m.ground, arm, at=(0, 0, 0), axis=(0, 1, 0))
    m.drive("push", hinge.of("displacement"), lambda t: 0.1 * t)
    m.drive("turn", hinge.of("angle"), lambda t: 0.3 * t)
    for found in (m.move([0.0, 1.0]), m.simulate(1.0, step=0.01)):
        assert found.coordinate("hinge.angle")[-1] == pytest.approx(0.3)
        assert found.coordinate("hinge", "displacement")[-1] == pytest.approx(0.1)
        with pytest.raises(cd.ModelError, match="hinges"):
            found.coordinate("hinges")
    m.remove("push")
    m.remove("turn")
    kept = pickle.loads(pickle.dumps(m.simulate(0.01, step=0.01)))
    with pytest.raises(cd.ModelError, match=r"such as m\['A'\]"):  # it no longer knows the mechanism
        kept.coordinate("hinge.angle")


def test_an_inertia_that_no_real_body_has_is_used_and_noted():
    """Rounded and measured inertias are accepted, but a result tells which they are."""
    m = cd.Mechanism()
    for name, moments in (("disc", (0.13, 0.13, 0.27)), ("plate", (0.13, 0.13, 0.26))):
        m.body(name, mass=1.0, inertia=np.diag(moments))
    (note,) = m.simulate(0.01, step=1e-3).notes
    assert note.startswith("the largest principal moment of disc exceeds the sum of the others")
