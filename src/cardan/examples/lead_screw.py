"""Lathe carriage on a lead screw: a motor, a belt, a spindle, and a dial that shows the carriage position.

Pulleys of 80 and 40 mm make the spindle rotate twice as fast as the motor.  Its right-handed thread of 2 mm pitch moves
the carriage along a slide, and a pinion of 50 mm on the rack of the carriage rotates the dial.  The Grübler count is
6·4 − 5·5 − 2 = −3.  Slide and thread both constrain the carriage to the spindle's axis; there is one degree of freedom.

The carriage does not rotate, so a rotation θ of the spindle in the nut moves it by −pitch θ/2π.  After n turns it has
moved by n·pitch, for any n.
"""

from __future__ import annotations

from math import pi, radians
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.registry import Example, ExampleError, expect, placed, rates, rotated, run_move, without_drivers
from cardan.math import euler

PITCH = 0.002  # m per turn
MOTOR, SPINDLE, DIAL = 0.08, 0.04, 0.05  # m: radii of the pulleys and of the pinion
BELOW = 0.2  # m, from the motor up to the spindle
BESIDE = 0.12  # m, from the spindle to the slide
OUT = 0.1  # m: position of the carriage at spindle angle 0
LENGTH = 0.6  # m, length of the spindle
READ = 0.25  # m: position of the dial
TURNS, POSES = 200, 20  # of the spindle, in each direction
DURATION, BEGIN = 4.0, 0.4  # s: five turns forwards and five back; initial phase [rad]

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def motor_angle(t: Any) -> Any:
    """Angle [rad] of the motor at time t [s]: the spindle makes five turns in each direction."""
    return -5.0 * cd.pi * (1 - cd.cos(2 * cd.pi * t / DURATION + BEGIN)) / 2


def build() -> cd.Mechanism:
    """The carriage displaced from its slide, the pulleys and the dial rotated."""
    m = cd.Mechanism("lead_screw")
    motor = m.body("motor", position=(0.0, 0.0, -BELOW), orientation=euler.from_axis_angle(X, radians(-20.0)))
    spindle = m.body("spindle", position=(0.0, 0.01, 0.0), orientation=euler.from_axis_angle(X, radians(-50.0)))
    carriage = m.body("carriage", position=(OUT + 0.02, 0.01, 0.02))
    dial = m.body("dial", position=(READ, BESIDE, DIAL + 0.01), orientation=euler.from_axis_angle(Y, radians(15.0)))
    m.revolute("motor_bearing", m.ground.frame((0, 0, -BELOW), z=X, x=Z), motor.frame(z=X, x=Z))
    m.revolute("spindle_bearing", m.ground.frame(z=X, x=Z), spindle.frame(z=X, x=Z))
    m.prismatic("slide", m.ground.frame((0, BESIDE, 0), z=X, x=Z), carriage.frame((0, BESIDE, 0), z=X, x=Z))
    m.screw("thread", spindle.frame(z=X, x=Z), carriage.frame(z=X, x=Z), pitch=PITCH, offset=OUT)
    m.revolute("dial_bearing", m.ground.frame((READ, BESIDE, DIAL), z=Y, x=Z), dial.frame(z=Y, x=Z))
    m.belt("belt", m["motor_bearing"], m["spindle_bearing"], radius_1=MOTOR, radius_2=SPINDLE)
    m.rack("rack", m["dial_bearing"], m["slide"], radius=-DIAL, offset=OUT)
    m.drive("power", m["motor_bearing"], motor_angle)
    return m


def _check_carriage(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """Angle [rad] of the spindle in the nut and position [m] of the carriage by the pitch; checks the poses."""
    angle = -mechanism["thread"].coordinate(state, "angle")
    position = OUT - PITCH * angle / (2 * pi)
    carriage = state["carriage"]
    expect("carriage", placed(carriage, (0, 0, 0)), (position, 0.0, 0.0))
    expect("axes of the carriage", [*rotated(carriage, X), *rotated(carriage, Z)], [*X, *Z])
    expect("axis of the spindle", rotated(state["spindle"], X), X)
    expect("spindle on its axis", placed(state["spindle"], (0, 0, 0)), (0.0, 0.0, 0.0))
    expect("axis of the dial", rotated(state["dial"], Y), Y)
    return angle, position


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The carriage against the pitch, the dial against the carriage, the spindle against the belt."""
    state = result.state
    angle, position = _check_carriage(mechanism, state)
    dial, motor, spindle = (mechanism[f"{name}_bearing"].coordinate(state) for name in ("dial", "motor", "spindle"))
    expect("dial", dial, (OUT - position) / DIAL)
    expect("belt", spindle, motor * MOTOR / SPINDLE)
    # from some starts the counted angles of nut and spindle differ by a turn
    expect("nut and spindle", np.exp(1j * angle), np.exp(1j * spindle))
    return [f"with the spindle at {spindle / (2 * pi):.6f} turns the carriage is at {position:.9f} m, by the pitch"]


def _constant_speed(t: Any) -> Any:
    """Angle [rad] of the motor at time t [s]: the spindle makes one turn per second."""
    return -2 * cd.pi * t * SPINDLE / MOTOR


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Many turns at constant speed, and back."""
    m = without_drivers(mechanism)
    m.drive("power", m["motor_bearing"], _constant_speed)
    start = m.assemble(state, time=0.0).state
    there = run_move(m, np.linspace(0.0, TURNS, POSES + 1), start)
    back = run_move(m, np.linspace(TURNS, 0.0, POSES + 1), there.states[-1])
    error = 0.0
    for pose in (*there.states, *back.states):
        angle, position = _check_carriage(m, pose)
        expect("turns of the spindle", m["spindle_bearing"].coordinate(pose), -2 * pi * pose.time)
        expect("turns of the thread", angle, -2 * pi * pose.time)
        expect("position of the carriage", position, OUT + PITCH * pose.time)
        v, spin = rates(pose, "carriage")
        expect("speed of the carriage", (*v, *spin), (PITCH, 0, 0, 0, 0, 0))
        error = max(error, abs(float(pose["carriage"].position[0]) - OUT - PITCH * pose.time))
    far = there.states[-1]
    counts = {"motor_bearing": -TURNS // 2, "spindle_bearing": -TURNS, "thread": TURNS, "dial_bearing": -1}
    counted = {name: far.turns[name] for name in counts}
    if counted != counts:
        raise ExampleError(f"after {TURNS} turns of the spindle the counted turns are {counted}, not {counts}")
    if set(back.states[-1].turns.values()) != {0}:
        raise ExampleError(f"after the return motion the counted turns are {back.states[-1].turns}, not 0")
    return [
        f"{TURNS} counted turns of the spindle move the carriage by {PITCH * TURNS:g} m, and back; "
        f"its position equals turns times pitch within {error:.0e} m"
    ]


EXAMPLE = Example(
    "lead_screw",
    "carriage on a lead screw, with a belt and a dial",
    build,
    check,
    dof=1,
    gruebler=-3,
    motion=motion,
    duration=DURATION,
)
