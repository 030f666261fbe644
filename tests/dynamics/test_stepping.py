"""Bodies that collide, in constant steps: what rests stays, what slides obeys the discrete closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from cardan.errors import ModelError

STEP = 0.01
STILL = 1e-11  # m: what may move while it rests
PROBLEM = 1e-10  # relative error of a contact problem


def world(gravity=(0.0, 0.0, -9.81)):
    m = cd.Mechanism("world")
    m.gravity = gravity
    m.ground.attach(cd.shapes.half_space())
    return m


def add_box(m, name, position):
    m.body(name, position=position).attach(cd.shapes.box(0.1, 0.1, 0.1), density=1000.0)


def test_a_stack_of_boxes_does_not_move():
    m = world()
    for k in range(3):
        add_box(m, f"box {k}", (0.0, 0.0, 0.05 + 0.1 * k))
    m.collide("all", friction=0.5)
    sim = m.simulate(0.2, step=STEP, contacts="steps")
    assert sim.status == "done"
    assert np.abs(sim.states[-1].coordinates - sim.states[0].coordinates).max() < STILL
    assert sim.penetration < STILL
    assert sim.contact_error <= PROBLEM
    again = m.simulate(0.2, step=STEP, contacts="steps")
    assert (again.states[-1].coordinates == sim.states[-1].coordinates).all()


@pytest.mark.parametrize(("mu", "tolerance"), [(0.5, STILL), (0.2, 1e-12)])
def test_a_block_on_an_incline_rests_or_slides_as_the_discrete_closed_form(mu, tolerance):
    angle, steps = math.radians(20.0), 30
    m = world((9.81 * math.sin(angle), 0.0, -9.81 * math.cos(angle)))
    add_box(m, "block", (0.0, 0.0, 0.05))
    m.collide("all", friction=mu)
    sim = m.simulate(steps * STEP, step=STEP, contacts="steps")
    acceleration = max(0.0, 9.81 * (math.sin(angle) - mu * math.cos(angle)))
    expected = acceleration * STEP**2 * steps * (steps + 1) / 2
    assert abs(sim.states[-1].coordinates[0, 0] - expected) < tolerance
    assert sim.penetration < STILL


def test_a_ball_hits_with_the_speed_of_its_fall_and_leaves_with_its_restitution():
    m = world()
    m.body("ball", position=(0.0, 0.0, 0.5)).attach(cd.shapes.sphere(0.1), density=1000.0)
    m.collide("all", restitution=0.5)
    sim = m.simulate(0.6, step=0.001, contacts="steps")
    first, second = sim.events[:2]
    fall = math.sqrt(2.0 * 9.81 * 0.4)
    assert first.kind == "hit"
    assert abs(first.speed - fall) < 3 * 9.81 * 0.001  # within steps of the time of the hit
    assert abs(second.speed - 0.5 * first.speed) < 3 * 9.81 * 0.001
    assert sim.penetration < STILL


def test_steps_refuse_what_they_do_not_serve():
    m = world()
    add_box(m, "a", (0.0, 0.0, 0.05))
    with pytest.raises(ModelError, match="no bodies collide"):
        m.simulate(0.1, step=STEP, contacts="steps")
    m.collide("all")
    with pytest.raises(ModelError, match="give step="):
        m.simulate(0.1, contacts="steps")
    with pytest.raises(ModelError, match="method of its own"):
        m.simulate(0.1, step=STEP, contacts="steps", method="generalized_alpha")
    with pytest.raises(ModelError, match="in_turn"):
        m.simulate(0.1, step=STEP, contacts="steps", impacts="in_turn")
    add_box(m, "b", (0.0, 0.0, 0.1))
    with pytest.raises(ModelError, match="overlap"):
        m.simulate(0.1, step=STEP, contacts="steps")


def test_a_driver_that_pushes_into_a_fixed_part_ends_the_run_and_names_both():
    m = cd.Mechanism("press")
    m.ground.attach(cd.shapes.box(1.0, 1.0, 0.2))
    ram = m.body("ram", position=(0.0, 0.0, 0.3), mass=1.0, inertia=0.01 * np.eye(3))
    ram.attach(cd.shapes.box(0.2, 0.2, 0.2))
    slide = m.prismatic("slide", m.ground.frame(), ram.frame())
    m.drive("push", slide, lambda t: 0.3 - 0.5 * t)
    m.collide("all", joined=True)
    found = m.simulate(0.5, step=1e-3, contacts="steps")
    assert not found.ok
    assert found.status is cd.SimulationStatus.CONTACTS
    assert "'ground' and 'ram'" in found.reason
    assert found.states[-1]["ram"].position[2] > 0.2 - 1e-9


def total(energy):
    return energy.kinetic + energy.potential + energy.lost_impact + energy.lost_friction + energy.lost_steps


def add_bricks(m, rows, columns):
    """A wall in bond, each brick 0.4 × 0.2 × 0.1 m."""
    for row in range(rows):
        for k in range(columns):
            brick = m.body(f"brick {row} {k}", position=(0.4 * k + 0.2 * (row % 2), 0.0, 0.05 + 0.1 * row))
            brick.attach(cd.shapes.box(0.4, 0.2, 0.1), density=2000.0)


def add_pyramid(m, rows):
    for row in range(rows):
        for k in range(rows - row):
            add_box(m, f"box {row} {k}", (0.11 * (k + 0.5 * row), 0.0, 0.05 + 0.1 * row))


def add_stack(m, count):
    rng = np.random.default_rng(0)
    for k in range(count):
        add_box(m, f"box {k}", (*(0.0025 * rng.normal(size=2)), 0.05 + 0.1 * k))


BUILDINGS = {
    "stack of 10": (add_stack, 10),
    "stack of 50": (add_stack, 50),
    "pyramid of 55": (add_pyramid, 10),
    "wall of 100": (add_bricks, 10, 10),
}


@pytest.mark.parametrize("name", BUILDINGS)
def test_what_is_built_stands(name):
    add, *sizes = BUILDINGS[name]
    m = world()
    add(m, *sizes)
    m.collide("all", friction=0.5)
    sim = m.simulate(10.0, step=STEP, times=[0.0, 5.0, 10.0], contacts="steps")
    assert sim.status == "done"
    for state in sim.states:
        assert np.abs(state.coordinates - sim.states[0].coordinates).max() < STILL
    assert sim.penetration < STILL
    assert sim.contact_error <= PROBLEM


@pytest.mark.parametrize(("share", "duration"), [(0.5, 10.0), (1.0 - 1e-12, 10.0), (1.0, 3600.0)])
def test_a_block_rests_up_to_the_friction_angle(share, duration):
    mu = 0.5
    angle = share * math.atan(mu)
    m = world((9.81 * math.sin(angle), 0.0, -9.81 * math.cos(angle)))
    add_box(m, "block", (0.0, 0.0, 0.05))
    m.collide("all", friction=mu)
    sim = m.simulate(duration, step=STEP, times=[0.0, duration], contacts="steps")
    assert sim.times[-1] == duration
    assert (sim.states[-1].coordinates == sim.states[0].coordinates).all()


def test_a_block_slips_just_above_the_friction_angle():
    mu, steps = 0.5, 30
    angle = math.atan(mu) + 1e-6
    m = world((9.81 * math.sin(angle), 0.0, -9.81 * math.cos(angle)))
    add_box(m, "block", (0.0, 0.0, 0.05))
    m.collide("all", friction=mu)
    sim = m.simulate(steps * STEP, step=STEP, contacts="steps")
    acceleration = 9.81 * (math.sin(angle) - mu * math.cos(angle))
    expected = acceleration * STEP**2 * steps * (steps + 1) / 2
    assert abs(sim.states[-1].coordinates[0, 0] - expected) < 1e-12


@pytest.mark.parametrize("seed", [1, 4])
def test_energies_and_losses_of_boxes_that_fall_on_each_other_are_balanced(seed):
    m = world()
    rng = np.random.default_rng(seed)
    for k in range(4):
        turned = rng.normal(size=4)
        place = {"position": (*(0.02 * rng.normal(size=2)), 0.2 + 0.2 * k), "orientation": turned}
        box = m.body(f"box {k}", **place)
        box.attach(cd.shapes.box(0.1, 0.08, 0.06), density=1000.0)
    m.collide("all", friction=0.3)
    sim = m.simulate(0.6, step=0.002, contacts="steps")
    assert sim.status == "done"
    e = sim.energy
    assert e.lost_impact[-1] + e.lost_friction[-1] > 1.0  # J
    assert np.ptp(total(e)) < 1e-9


def test_the_break_of_billiard_balls_keeps_momentum_and_energy():
    r, gap = 0.028, 1e-4
    m = cd.Mechanism("table")
    m.gravity = (0.0, 0.0, 0.0)
    pitch = 2.0 * r + gap
    for row in range(5):
        for k in range(row + 1):
            at = (pitch * row * math.sqrt(0.75), pitch * (k - 0.5 * row), 0.0)
            m.body(f"ball {row} {k}", position=at).attach(cd.shapes.sphere(r), density=1700.0)
    m.body("cue", position=(-0.2, 0.003, 0.0)).attach(cd.shapes.sphere(r), density=1700.0)
    m.collide("all", restitution=1.0)
    start = m.assemble().state
    velocities = np.zeros((16, 6))
    velocities[start.names.index("cue"), 0] = 8.0
    sim = m.simulate(0.06, start.with_rates(velocities), step=1e-4, contacts="steps")
    assert sim.status == "done"
    mass = 4.0 / 3.0 * math.pi * r**3 * 1700.0
    v = np.array([state.velocities[:, :3] for state in sim.states])
    momentum = mass * v.sum(axis=1)
    assert np.abs(momentum - momentum[0]).max() < 1e-12 * abs(momentum[0]).max()
    assert (np.abs(v[-1]).max(axis=1) > 0.01).sum() == 16  # all balls move
    assert np.ptp(total(sim.energy)) < 1e-12 * sim.energy.kinetic[0]


def test_velocities_at_the_start_that_contradict_a_joint_are_noted():
    m = world()
    add_box(m, "box", (0.0, 0.0, 1.0))
    m.prismatic("P", m.ground.frame((0, 0, 1.0)), m["box"].frame())
    m.collide("all", friction=0.5)
    for sideways, noted in ((0.0, False), (1.0, True)):
        start = m.state.with_rates(np.array([[sideways, 0, -1.0, 0, 0, 0]]))
        sim = m.simulate(0.02, start, step=STEP, contacts="steps")
        assert ("contradict" in sim.text()) is noted
