"""Whole turns in simulations: a step may be longer than half a turn, and output times may be further apart."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd

X, Y, Z = np.eye(3)
TORQUE = 10.0  # on a moment of inertia of 1 kg m²: φ = 5 t², so a step of 0.1 s is 1.6 turns long at 10 s


def rotor() -> cd.Mechanism:
    m = cd.Mechanism(gravity=(0, 0, 0))
    wheel = m.body("wheel", mass=1.0, inertia=np.eye(3))
    m.revolute("axle", m.ground.frame(), wheel.frame())
    return m


IMPLICIT = {"step": 0.1, "method": "generalized_alpha"}
LONG_STEPS = [{"rtol": 1e-6}, {"step": 0.1}, {"step": 0.05, "method": "rk4"}, IMPLICIT]


@pytest.mark.parametrize("options", LONG_STEPS, ids=str)
def test_a_motor_turns_a_wheel_by_many_turns_per_second(options):
    m = rotor()
    m.actuator("motor", m["axle"], TORQUE)
    found = m.simulate(10.0, times=[0.0, 5.0, 10.0], **options)
    assert found.ok, found.text()
    assert found.coordinate(m["axle"]) == pytest.approx([0.0, 125.0, 500.0], abs=1e-9)
    assert found.state.turns["axle"] == 80


@pytest.mark.parametrize("options", LONG_STEPS[:3], ids=str)
def test_long_steps_wind_up_a_spring(options):
    """φ̈ = M − k φ, so φ = M/k (1 − cos √k t)."""
    m = rotor()
    m.torque("pull", m["wheel"], (0, 0, TORQUE))
    m.spring("coil", m["axle"], stiffness=0.01, rest=0.0)
    found = m.simulate(10.0, times=[0.0, 5.0, 10.0], **options)
    assert found.ok, found.text()
    assert found.coordinate(m["axle"]) == pytest.approx(1000 * (1 - np.cos(0.1 * found.times)), rel=1e-6)


@pytest.mark.parametrize("options", LONG_STEPS[:3], ids=str)
def test_long_steps_end_at_a_limit_after_many_turns(options):
    m = rotor()
    m.actuator("motor", m["axle"], TORQUE)
    m.limit("end", m["axle"], upper=100.0)
    found = m.simulate(10.0, **options)
    assert found.ok and [event.limit for event in found.events] == ["end"]
    assert found.events[0].time == pytest.approx(np.sqrt(20.0), abs=1e-9)
    assert found.coordinate(m["axle"])[-1] == pytest.approx(100.0, abs=1e-9)


@pytest.mark.parametrize("options", [{"rtol": 1e-6}, {"step": 0.1}], ids=str)
def test_long_steps_of_an_angle_between_two_bodies_that_rotate(options):
    """A second wheel rotates three times as fast relative to the first one: four times as fast as seen from ground."""
    m = rotor()
    second = m.body("second", mass=1.0, inertia=0.01 * np.eye(3))
    m.revolute("hub", m.ground.frame(), second.frame())
    m.gear("train", m["axle"], cd.coordinate(m["wheel"].frame(), second.frame(), "angle"), ratio=3.0)
    m.actuator("motor", m["axle"], TORQUE)
    found = m.simulate(10.0, times=[0.0, 10.0], **options)
    assert found.ok, found.text()
    assert found.steps < 200
    assert found.coordinate(m["axle"])[-1] == pytest.approx(500.0 / 1.16, rel=1e-9)
    assert found.coordinate(m["hub"])[-1] == pytest.approx(2000.0 / 1.16, rel=1e-9)


def test_an_angle_that_nothing_counts_is_read_with_its_turns():
    m = rotor()
    start = m.solve_rates(m.assemble().state, {"axle": 5.0})
    found = m.simulate(10.0, start, times=[0.0, 5.0, 10.0], rtol=1e-9)
    assert found.coordinate(m["axle"]) == pytest.approx([0.0, 25.0, 50.0], abs=1e-8)
    assert m.simulate(1.0, start, times=[0.0]).coordinate(m["axle"]) == pytest.approx([0.0])
    m.torque("pull", m["wheel"], (0, 0, TORQUE))  # of constant acceleration the mean rate is exact
    assert m.simulate(10.0, times=[0.0, 5.0, 10.0]).coordinate(m["axle"]) == pytest.approx([0.0, 125.0, 500.0])


def test_output_times_too_far_apart_to_count_turns_are_named():
    m = rotor()
    m.torque("pull", m["wheel"], lambda t, state: (0, 0, 90 * np.exp(-5 * t)))
    with pytest.raises(cd.ModelError, match=r"axle.* between t = 0 s and 3 s; pass more times to simulate"):
        m.simulate(3.0, times=[0.0, 3.0]).coordinate(m["axle"])
    found = m.simulate(3.0).coordinate(m["axle"])[-1]
    assert found == pytest.approx(18 * (3 - 0.2), rel=1e-5)
