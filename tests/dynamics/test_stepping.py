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
    m.ground.attach(cd.geometry.plane())
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
