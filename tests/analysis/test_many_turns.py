"""After hundreds of turns a mechanism is assembled and moved as accurately as after none."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cardan as cd
from cardan.examples import REGISTRY
from cardan.math import euler
from gallery import lead_screw, slider_crank
from layers import sampled

Z, X = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
FAR = 400  # turns: the rounding error of such an angle exceeds the usual tolerance


def with_added_turns(m: cd.Mechanism, joints: dict[str, float], time: float) -> cd.State:
    """The assembled state, with some turns added to its counted angles."""
    state = m.assemble().state
    angles = [state.angles[key] + 2 * math.pi * joints.get(key, 0.0) for key in m.system.counted_angles]
    return m.system.state(state.coordinates.copy(), np.array(angles), time)


def test_a_motion_of_many_turns_is_not_lost() -> None:
    m = slider_crank.build()
    start = with_added_turns(m, {"A": FAR, "B": -FAR}, FAR * slider_crank.DURATION)
    motion = m.move(np.linspace(start.time, start.time + 5 * slider_crank.DURATION, 101), start)
    assert motion.ok, motion.text()
    for state in motion.states:
        phi = slider_crank.START + 2 * math.pi * state.time / slider_crank.DURATION
        assert abs(m["A"].coordinate(state) - phi) < 1e-11
        assert abs(m["slide"].coordinate(state) - slider_crank.slider_position(phi)) < 1e-12
    assert motion.states[-1].turns["A"] == FAR + 5


@pytest.mark.slow
@sampled("shift", [0.0, 1e-13, 1e-12, 3e-12, 1e-11, 1e-9])
def test_lengths_are_met_however_many_turns_are_counted(shift: float) -> None:
    m = lead_screw.build()
    m.remove("power")
    m.drive("power", m["motor_bearing"], lambda t: -math.pi * t)
    state = m.move([0.0, FAR]).states[-1]
    assert state.turns["spindle_bearing"] == -FAR
    pose = state["carriage"]
    length = m.system.length
    moved = state.moved({"carriage": (pose.position + np.array([0.0, shift * length, 0.0]), pose.quaternion)})
    result = m.assemble(moved)
    assert result.ok, result.text()
    assert abs(result.state["carriage"].position[1]) <= 1e-12 * length


def test_a_joint_that_nothing_drives_counts_its_turns_too() -> None:
    m = cd.Mechanism("wheels")
    a, b = m.body("a"), m.body("b", position=(1, 0, 0))
    m.drive("left", m.revolute("A", m.ground.frame(z=Z, x=X), a.frame(z=Z, x=X)), lambda t: 2 * cd.pi * t)
    m.drive("right", m.revolute("B", m.ground.frame((1, 0, 0), z=Z, x=X), b.frame(z=Z, x=X)), lambda t: -2 * cd.pi * t)
    between = cd.coordinate(a.frame(z=Z, x=X), b.frame(z=Z, x=X), "angle")
    m.limit("wide", between, lower=-1e6)
    motion = m.move([0.0, 10.0])
    assert motion.ok, motion.text()
    assert abs(between.value(motion.state) + 40 * math.pi) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("name", ["planetary_gear", "differential", "lead_screw"])
def test_there_and_back_again_is_where_it_began(name: str) -> None:
    example = REGISTRY[name]
    m = example.build()
    there = m.move([0.0, 5 * example.duration])
    back = m.move([5 * example.duration, 0.0], there.states[-1])
    assert there.ok and back.ok
    first, last = there.states[0], back.states[-1]
    assert first.turns == last.turns
    assert np.abs(first.positions - last.positions).max() < 1e-11
    assert np.abs(euler.difference(first.quaternions, last.quaternions)).max() < 1e-11
