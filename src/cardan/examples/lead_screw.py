"""Lathe carriage on a lead screw: a motor, a belt, a spindle, and a dial that tells where the carriage is.

Pulleys of 80 and 40 mm make the spindle turn twice as fast as the motor.  Its thread, right-handed, of 2 mm pitch,
moves the carriage on a slide, and a pinion of 50 mm on the rack of the carriage turns the dial.  6·4 − 5·5 − 2 = −3 by
count: slide and thread both keep the carriage on the spindle's axis, and one degree of freedom is left.

The carriage does not turn, so the spindle turned by θ in the nut moves it by −pitch θ/2π: to the left, away from the
motor.  After n turns it stands n·pitch from where it was, however many they are.
"""

from __future__ import annotations

from math import pi, radians
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.registry import Example, ExampleError, expect, placed, played, rates, released, rotated
from cardan.math import euler

PITCH = 0.002  # m per turn
MOTOR, SPINDLE, DIAL = 0.08, 0.04, 0.05  # m: radii of the pulleys and of the pinion
BELOW = 0.2  # m: the motor under the spindle
BESIDE = 0.12  # m: the slide behind the spindle
OUT = 0.1  # m: where the carriage stands with the spindle at zero
LENGTH = 0.6  # m, of the spindle
READ = 0.25  # m: where the dial stands
TURNS, POSES = 200, 20  # of the spindle, there and back again
DURATION, BEGIN = 4.0, 0.4  # s, in which it turns five times there and five times back; where it begins [rad]

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def motor_angle(t: Any) -> Any:
    """[rad] at a time [s]: to the left and back, the spindle turning five times each way."""
    return -5.0 * cd.pi * (1 - cd.cos(2 * cd.pi * t / DURATION + BEGIN)) / 2


def build() -> cd.Mechanism:
    """The carriage somewhat off its slide, the wheels turned."""
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
    """Angle [rad] of the spindle in the nut and place [m] of the carriage, by the pitch alone."""
    turned = -mechanism["thread"].coordinate(state, "angle")
    place = OUT - PITCH * turned / (2 * pi)
    carriage = state["carriage"]
    expect("carriage", placed(carriage, (0, 0, 0)), (place, 0.0, 0.0))
    expect("axes of the carriage", [*rotated(carriage, X), *rotated(carriage, Z)], [*X, *Z])
    expect("axis of the spindle", rotated(state["spindle"], X), X)
    expect("spindle on its axis", placed(state["spindle"], (0, 0, 0)), (0.0, 0.0, 0.0))
    expect("axis of the dial", rotated(state["dial"], Y), Y)
    return turned, place


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The carriage by the pitch, the dial by the carriage, the motor by the belt."""
    state = result.state
    turned, place = _check_carriage(mechanism, state)
    dial, motor, spindle = (mechanism[f"{name}_bearing"].coordinate(state) for name in ("dial", "motor", "spindle"))
    expect("dial", dial, (OUT - place) / DIAL)
    expect("belt", spindle, motor * MOTOR / SPINDLE)
    # from a start with the spindle turned the other way round, the nut may count a turn more or less
    expect("nut and spindle", np.exp(1j * turned), np.exp(1j * spindle))
    return [f"with the spindle at {spindle / (2 * pi):.6f} turns the carriage stands at {place:.9f} m, by its pitch"]


def _steadily(t: Any) -> Any:
    """Angle [rad] of the motor at a time [s]: the spindle turns once a second, to the left."""
    return -2 * cd.pi * t * SPINDLE / MOTOR


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Many turns at an even speed, and back again."""
    m = released(mechanism)
    m.drive("power", m["motor_bearing"], _steadily)
    start = m.assemble(state, time=0.0).state
    there = played(m, np.linspace(0.0, TURNS, POSES + 1), start)
    back = played(m, np.linspace(TURNS, 0.0, POSES + 1), there.states[-1])
    error = 0.0
    for pose in (*there.states, *back.states):
        turned, place = _check_carriage(m, pose)
        expect("turns of the spindle", m["spindle_bearing"].coordinate(pose), -2 * pi * pose.time)
        expect("turns of the thread", turned, -2 * pi * pose.time)
        expect("place of the carriage", place, OUT + PITCH * pose.time)
        v, spin = rates(pose, "carriage")
        expect("speed of the carriage", (*v, *spin), (PITCH, 0, 0, 0, 0, 0))
        error = max(error, abs(float(pose["carriage"].position[0]) - OUT - PITCH * pose.time))
    far = there.states[-1]
    counts = {"motor_bearing": -TURNS // 2, "spindle_bearing": -TURNS, "thread": TURNS, "dial_bearing": -1}
    counted = {name: far.turns[name] for name in counts}
    if counted != counts:
        raise ExampleError(f"after {TURNS} turns of the spindle the turns counted are {counted}, not {counts}")
    if set(back.states[-1].turns.values()) != {0}:
        raise ExampleError(f"back again, the turns counted are {back.states[-1].turns}, not 0")
    return [
        f"{TURNS} turns of the spindle, counted, take the carriage {PITCH * TURNS:g} m away and back again; "
        f"it is where turns times pitch say within {error:.0e} m"
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
