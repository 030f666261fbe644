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


def spinning(rate: float, excess: float, torque: float = 0.0) -> tuple[cd.Mechanism, cd.State, float]:
    """A wheel whose rim point passes a bound of its height for a short time in every turn, and the angle there."""
    m = rotor()
    m.torque("pull", m["wheel"], (0, 0, torque))
    m.limit("far", m["axle"], lower=-1e9)
    m.limit("top", cd.coordinate(m.ground.frame(), m["wheel"].frame((1, 0, 0)), "y"), upper=1.0 - excess)
    return m, m.solve_rates(m.assemble().state, {"axle": rate}), np.arcsin(min(1.0, 1.0 - excess))


@pytest.mark.parametrize("rate", [50.0, 300.0, 1000.0])
@pytest.mark.parametrize("excess", [1e-2, 1e-5])
@pytest.mark.parametrize("turn", [None, 0.1, 0.45])
def test_a_stop_is_reached_in_the_first_turn_however_long_a_step_could_be(rate, excess, turn):
    """Velocities are constant in the axes of the wheel, so that the errors of steps do not limit these.

    turn [rad]: of a constant step.
    """
    m, start, angle = spinning(rate, excess)
    found = m.simulate(1.0, start, step=None if turn is None else turn / rate, times=np.linspace(0.0, 1.0, 11))
    assert found.ok and found.events[0][1:] == ("top", "reached")
    assert found.events[0].time * rate == pytest.approx(angle, abs=1e-8)
    assert found.coordinate(m["axle"]).max() == pytest.approx(angle, abs=1e-8)  # where it rests


@pytest.mark.parametrize("torque", [10.0, 1000.0])
def test_a_stop_is_reached_in_the_first_turn_of_a_wheel_that_starts(torque):
    m, start, angle = spinning(0.0, 1e-5, torque)
    found = m.simulate(10.0, start)
    assert found.events[0].time == pytest.approx(np.sqrt(2.0 * angle / torque), rel=1e-8)


@pytest.mark.parametrize("method", ["adams", "rk4", "dopri5"])
def test_a_constant_step_in_which_a_stop_could_be_passed_is_refused_with_one_that_works(method):
    m, start, angle = spinning(300.0, 1e-5)
    found = m.simulate(0.1, start, step=0.01, method=method)
    assert found.status == "step too large" and not found.events
    assert found.reason.startswith("a step turns a body by 3 rad at t = 0 s, so that it could pass limit 'top' and")
    step = float(found.reason.split("use a step of ")[1].split(" s")[0])
    assert m.simulate(0.1, start, step=step, method=method).events[0].time * 300 == pytest.approx(angle, abs=1e-8)


def test_a_constant_step_is_refused_where_a_wheel_becomes_too_fast():
    m, start, _ = spinning(0.0, -1e-3, TORQUE)  # it never reaches the bound
    found = m.simulate(10.0, start, step=0.02)
    assert found.status == "step too large" and found.reason.startswith("a step turns a body by 0.5")
    assert found.times[-1] == pytest.approx(2.5, abs=0.05)


def test_limits_of_the_angle_of_a_hinge_do_not_shorten_steps():
    m = rotor()
    m.limit("end", m["axle"], upper=900.0)
    found = m.simulate(1.0, m.solve_rates(m.assemble().state, {"axle": 1000.0}))
    assert found.steps < 150 and [event.time for event in found.events] == pytest.approx([0.9], abs=1e-9)


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
