"""Lathe carriage on a lead screw: a motor, a belt, a spindle, and a dial that shows the carriage position.

Pulleys of 80 and 40 mm make the spindle rotate twice as fast as the motor.  Its right-handed thread of 2 mm pitch moves
the carriage along a slide, and a pinion of 50 mm on the rack of the carriage rotates the dial.  The Grübler count is
6·4 − 5·5 − 2 = −3.  Slide and thread both constrain the carriage to the spindle's axis; there is one degree of freedom.

The carriage does not rotate, so a rotation θ of the spindle in the nut moves it by −pitch θ/2π.  After n turns it has
moved by n·pitch, for any n.
"""

from __future__ import annotations

from math import acos, pi, radians
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler
from gallery.checks import expect, placed, rates, rotated, run_move, without_drivers
from gallery.looks import BRASS, RUBBER, STEEL, arc, block, rod
from gallery.masses import with_masses

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
    _draw(m)
    m.revolute("motor_bearing", m.ground.frame((0, 0, -BELOW), z=X, x=Z), motor.frame(z=X, x=Z))
    m.revolute("spindle_bearing", m.ground.frame(z=X, x=Z), spindle.frame(z=X, x=Z))
    m.prismatic("slide", m.ground.frame((0, BESIDE, 0), z=X, x=Z), carriage.frame((0, BESIDE, 0), z=X, x=Z))
    m.screw("thread", spindle.frame(z=X, x=Z), carriage.frame(z=X, x=Z), pitch=PITCH, offset=OUT)
    m.revolute("dial_bearing", m.ground.frame((READ, BESIDE, DIAL), z=Y, x=Z), dial.frame(z=Y, x=Z))
    m.belt("belt", m["motor_bearing"], m["spindle_bearing"], radius_1=MOTOR, radius_2=SPINDLE)
    m.rack("rack", m["dial_bearing"], m["slide"], radius=-DIAL, offset=OUT)
    m.drive("power", m["motor_bearing"], motor_angle)
    return with_masses(m)


def _pulley(body: cd.Body, radius: float) -> None:
    """A pulley with two rims and a mark."""
    rows = [(0.0, -0.018), (1.08, -0.018), (1.08, -0.013), (1.0, -0.01), (1.0, 0.01), (1.08, 0.013), (1.08, 0.018),
            (0.0, 0.018)]  # fmt: skip
    body.attach(cd.shapes.revolution([(radius * r, x) for r, x in rows]), body.frame(z=X))
    rod(body, (-0.021, 0, 0.7 * radius), (0.021, 0, 0.7 * radius), 0.12 * radius, STEEL)


def _belt_outline(grow: float) -> list[tuple[float, float]]:
    """The belt in the plane (z, −y) from the motor up, around circles that are larger by ``grow`` [m]."""
    lean = acos((MOTOR - SPINDLE) / BELOW)
    upper = [(BELOW + x, y) for x, y in arc(SPINDLE + grow, -lean, lean)]
    return [*arc(MOTOR + grow, lean, 2 * pi - lean), *upper]


def _draw(m: cd.Mechanism) -> None:
    """A bed with a motor, a threaded spindle between two bearings, a carriage with a nut and a rack, a dial."""
    motor, spindle, carriage, dial, ground = m["motor"], m["spindle"], m["carriage"], m["dial"], m.ground
    _pulley(motor, MOTOR)
    rod(motor, (-0.05, 0, 0), (0.018, 0, 0), 0.012, STEEL)
    _pulley(spindle, SPINDLE)
    spindle.attach(cd.shapes.thread(0.014, PITCH, LENGTH), spindle.frame((0.05 + 0.5 * LENGTH, 0, 0), z=X), color=STEEL)
    rod(spindle, (0, 0, 0), (0.06, 0, 0), 0.011, STEEL)
    block(carriage, (-0.05, -0.045, -0.035), (0.05, -0.016, 0.045))
    block(carriage, (-0.05, 0.016, -0.035), (0.05, BESIDE + 0.035, -0.015))
    block(carriage, (-0.05, -0.045, 0.02), (0.05, 0.045, 0.05))
    carriage.attach(cd.shapes.tube(0.026, 0.014, 0.06), carriage.frame(z=X), color=BRASS)
    module = 2 * DIAL / 40
    pitch, teeth = pi * module, 44
    rows = [
        (x, y) for k in range(teeth) for x, y in ((k - 0.32, -1.25), (k - 0.15, 1), (k + 0.15, 1), (k + 0.32, -1.25))
    ]
    low = [((teeth - 0.5) * pitch, -3.2 * module), (-0.5 * pitch, -3.2 * module)]
    teeth_row = [(x * pitch, y * module) for x, y in rows]
    rack = cd.shapes.extrusion([*teeth_row[::-1], low[1], low[0]], 0.02)
    carriage.attach(rack, carriage.frame((-0.06, BESIDE, 0), z=(0, -1, 0), x=X), color=STEEL)
    dial.attach(cd.shapes.gear(module, 40, 0.016, bore=0.008), dial.frame(z=Y, x=Z))
    rod(dial, (0, -0.012, 0), (0, 0.05, 0), 0.008, STEEL)
    rod(dial, (0, 0.02, 0), (0, 0.028, 0), 0.7 * DIAL, "#f2f2ee")
    block(dial, (-0.002, 0.028, 0), (0.002, 0.031, 0.6 * DIAL), RUBBER)
    for x in (0.045, 0.05 + LENGTH):
        block(ground, (x - 0.012, -0.03, -0.08), (x + 0.012, 0.03, 0.03))
    block(ground, (0.03, -0.06, -0.1), (0.08 + LENGTH, BESIDE + 0.06, -0.08))
    block(ground, (READ - 0.012, BESIDE + 0.04, -0.08), (READ + 0.012, BESIDE + 0.056, DIAL + 0.014))
    block(ground, (0.06, BESIDE - 0.012, -0.08), (0.03 + LENGTH, BESIDE + 0.012, -0.045), STEEL)
    rod(ground, (-0.16, 0, -BELOW), (-0.045, 0, -BELOW), 0.06)
    belt = cd.shapes.extrusion(_belt_outline(0.004), 0.018, holes=[_belt_outline(0.0005)])
    ground.attach(belt, ground.frame((0, 0, -BELOW), z=X, x=Z), color=RUBBER)


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
