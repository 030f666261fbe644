"""Bevel differential of a car: the case turns with the mean of the two wheels.  [Muller1982]

A pinion of 9 teeth drives the case by its crown wheel of 36.  On a cross pin of the case two bevel gears of 10 teeth
turn, which mesh with the side gears of both wheels, of 16 teeth each.  Side gears and bevel gears mesh on the case, so
their angles are counted there.  6·6 − 6·5 − 5 = 1 by count; the second bevel gear repeats what the first one says, and
two degrees of freedom are left: the car may drive and turn.

Seen from the case the side gears turn against each other, θ_left − θ_case = −(θ_right − θ_case): the case is the mean.
Where two pitch cones touch, both gears run at the same speed.
"""

from __future__ import annotations

from math import cos, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.registry import Example, expect, placed, played, released, rotated, velocity
from cardan.math import euler

PINION, CROWN, SIDE, BEVEL = 9, 36, 16, 10  # teeth
MODULE = 0.01  # m of pitch diameter per tooth
HIGH, WIDE = MODULE * SIDE / 2, MODULE * BEVEL / 2  # m: of the place where side and bevel gears touch, from the middle
WHEEL = 0.35  # m, from the middle to either wheel
NOSE = 0.35  # m, of the pinion's shaft
BEND = 1.5  # turns by which one wheel leads at the end of the bend
DURATION, POSES = 4.0, 32  # s

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)  # wheels turn about x, the pinion about y
DOWN = (0.0, -1.0, 0.0)


def engine(t: Any) -> Any:
    """Angle [rad] of the pinion at a time [s]: the wheels turn once a second."""
    return 2 * cd.pi * CROWN / PINION * t


def bend(t: Any) -> Any:
    """Angle [rad] by which the right wheel leads at a time [s]: straight, a bend in the middle, straight again."""
    u = cd.clip(2 * t / DURATION - 0.5, 0.0, 1.0)
    return 2 * cd.pi * BEND * (u - cd.sin(2 * cd.pi * u) / (2 * cd.pi))


def build() -> cd.Mechanism:
    """Every gear a little off its place, and turned."""
    m = cd.Mechanism("differential")

    def turned(axis: Any, angle: float) -> Any:
        return euler.from_axis_angle(axis, radians(angle))

    pinion = m.body("pinion", position=(0.0, -NOSE, 0.01), orientation=turned(Y, 10.0))
    case = m.body("case", position=(0.0, 0.01, 0.0), orientation=turned(X, 6.0))
    wheels = {
        "left": m.body("left", position=(-WHEEL, 0.0, 0.02), orientation=turned(X, -8.0)),
        "right": m.body("right", position=(WHEEL, 0.02, 0.0), orientation=turned(X, 12.0)),
    }
    bevels = [
        m.body("bevel_1", position=(0.0, HIGH + 0.01, 0.0), orientation=turned(Y, 15.0)),
        m.body("bevel_2", position=(0.0, -HIGH, 0.01), orientation=turned(Y, -10.0)),
    ]
    m.revolute("pinion_bearing", m.ground.frame((0, -NOSE, 0), z=Y, x=Z), pinion.frame(z=Y, x=Z))
    m.revolute("case_bearing", m.ground.frame(z=X, x=Z), case.frame(z=X, x=Z))
    m.gear("final_drive", m["pinion_bearing"], m["case_bearing"], ratio=PINION / CROWN)
    on_case = {}
    for name, wheel in wheels.items():
        at = (WHEEL if name == "right" else -WHEEL, 0.0, 0.0)
        m.revolute(f"{name}_bearing", m.ground.frame(at, z=X, x=Z), wheel.frame(z=X, x=Z))
        on_case[name] = cd.coordinate(case.frame(z=X, x=Z), wheel.frame(z=X, x=Z), "angle")
    for k, (bevel, axis) in enumerate(zip(bevels, (Y, DOWN), strict=True), start=1):
        at = (0.0, HIGH * axis[1], 0.0)
        pin = m.revolute(f"cross_pin_{k}", case.frame(at, z=axis, x=Z), bevel.frame(z=axis, x=Z))
        m.gear(f"left_mesh_{k}", on_case["left"], pin, ratio=SIDE / BEVEL)
        m.gear(f"right_mesh_{k}", on_case["right"], pin, ratio=-SIDE / BEVEL)
    m.drive("engine", m["pinion_bearing"], engine)
    m.drive("road", cd.coordinate(wheels["left"].frame(z=X, x=Z), wheels["right"].frame(z=X, x=Z), "angle"), bend)
    return m


def _check_case(mechanism: cd.Mechanism, state: cd.State) -> None:
    """The case in the mean of the wheels, but for half a turn: with an even number of teeth that is a mesh too."""
    left, right, case, pinion = (
        mechanism[f"{name}_bearing"].coordinate(state) for name in ("left", "right", "case", "pinion")
    )
    twice = left + right - 2 * case
    expect("both wheels against twice the case", (cos(twice), sin(twice)), (1.0, 0.0))
    lag = PINION * pinion - CROWN * case  # in teeth: a multiple of whole turns of either
    expect("pinion and crown wheel", (cos(lag), sin(lag)), (1.0, 0.0))
    for k, up in ((1, HIGH), (2, -HIGH)):
        middle = placed(state["case"], (0.0, up, 0.0))
        expect(f"bevel gear {k} on its pin", state[f"bevel_{k}"].position, middle)
        expect(f"axis of bevel gear {k}", rotated(state[f"bevel_{k}"], Y), rotated(state["case"], Y))


def _check_rolling(state: cd.State) -> None:
    """Where pitch cones touch, both gears have one velocity."""
    for k, up in ((1, HIGH), (2, -HIGH)):
        for wheel, across in (("left", -WIDE), ("right", WIDE)):
            touch = placed(state["case"], (across, up, 0.0))
            both = velocity(state, wheel, touch), velocity(state, f"bevel_{k}", touch)
            expect(f"speed where bevel gear {k} touches the {wheel} side gear", *both)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The angles of wheels, case and pinion; the bevel gears on their pin."""
    _check_case(mechanism, result.state)
    return ["the case stands in the mean of the two wheels, the bevel gears on their pin"]


def _ahead(t: Any) -> Any:
    """A wheel that turns once a second."""
    return 2 * cd.pi * t


def _back(t: Any) -> Any:
    """A wheel that turns backwards once a second."""
    return -2 * cd.pi * t


# What else it can be driven by: pinion, left wheel; and the turns a second of left wheel, right wheel and case.
DRIVES: dict[str, tuple[Any, Any, tuple[int, int, int]]] = {
    "straight ahead": (engine, _ahead, (1, 1, 1)),
    "with the left wheel held": (engine, 0.0, (0, 2, 1)),
    "with the case held": (0.0, _back, (-1, 1, 0)),
}


def _check_motion(mechanism: cd.Mechanism, state: cd.State, how: str) -> tuple[str, Any, Any, Any]:
    """A fact, and the angles [rad] of left wheel, right wheel and case, after a look at the mean and at the gears."""
    moved = played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    left, right, case = (moved.coordinate(mechanism[f"{name}_bearing"]) for name in ("left", "right", "case"))
    expect(f"mean of the wheels, {how}", (left + right) / 2, case)
    expect(f"bevel gear, {how}", moved.coordinate(mechanism["cross_pin_1"]), SIDE / BEVEL * (left - case))
    for pose in moved.states:
        _check_rolling(pose)
    error = np.abs((left + right) / 2 - case).max()
    turns = "{:g}, {:g} and {:g}".format(*(round(angle[-1] / (2 * pi), 6) + 0.0 for angle in (left, right, case)))
    return f"{how}: wheels and case turn {turns} times, the case by the mean within {error:.0e} rad", left, right, case


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Through a bend, straight ahead, with one wheel held, and with the case held."""
    times = np.linspace(0.0, DURATION, POSES + 1)
    fact, left, right, case = _check_motion(mechanism, state, "through a bend")
    u = np.clip(2 * times / DURATION - 0.5, 0.0, 1.0)
    expect("lead of the right wheel", right - left, 2 * pi * BEND * (u - np.sin(2 * pi * u) / (2 * pi)))
    expect("the case", case, 2 * pi * times)
    facts = [fact]
    for how, (pinion, wheel, speeds) in DRIVES.items():
        other = released(mechanism)
        other.drive("engine", other["pinion_bearing"], pinion)
        other.drive("road", other["left_bearing"], wheel)
        fact, *found = _check_motion(other, other.assemble().state, how)
        for name, angles, speed in zip(("left wheel", "right wheel", "case"), found, speeds, strict=True):
            expect(f"{name}, {how}", angles, 2 * pi * speed * times)
        facts.append(fact)
    return facts


EXAMPLE = Example(
    "differential",
    "bevel differential of a car",
    build,
    check,
    dof=2,
    gruebler=1,
    motion=motion,
    duration=DURATION,
)
