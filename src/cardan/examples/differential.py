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
MODULE = 0.005  # m of pitch diameter per tooth
HIGH, WIDE = MODULE * SIDE / 2, MODULE * BEVEL / 2  # m: of the place where side and bevel gears touch, from the middle
WHEEL = 0.7  # m, from the middle to either wheel
NOSE = 0.25  # m, of the pinion's shaft
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


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Through a bend, straight ahead, with one wheel held, and with the case held."""
    times = np.linspace(0.0, DURATION, POSES + 1)
    lead = cd.coordinate(mechanism["left"].frame(z=X, x=Z), mechanism["right"].frame(z=X, x=Z), "angle")
    shared = 2 * pi * times  # what the case turns by
    facts = []
    for drive, wanted in (
        ("bend", None),
        ("straight", (shared, shared)),
        ("left wheel held", (0 * shared, 2 * shared)),
        ("case held", (-shared, shared)),
    ):
        m = mechanism
        if wanted is not None:
            m = released(mechanism)
            m.drive("engine", m["pinion_bearing"], 0.0 if drive == "case held" else engine)
            left = {"straight": _once, "left wheel held": 0.0, "case held": _backwards}[drive]
            m.drive("road", m["left_bearing"], left)
        moved = played(m, times, state if m is mechanism else m.assemble().state)
        left, right, case = (moved.coordinate(m[f"{name}_bearing"]) for name in ("left", "right", "case"))
        expect(f"mean of the wheels, {drive}", (left + right) / 2, case)
        expect(f"the case, {drive}", case, 0 * shared if drive == "case held" else shared)
        if wanted is not None:
            expect(f"the wheels, {drive}", (left, right), wanted)
        else:
            leads = right - left
            expect("lead of the right wheel", leads, [lead.value(pose) for pose in moved.states])
            expect("lead at the end of the bend", leads[-1], 2 * pi * BEND)
        bevel = moved.coordinate(m["cross_pin_1"])
        expect(f"the bevel gears, {drive}", bevel, SIDE / BEVEL * (left - case))
        for pose in moved.states:
            _check_rolling(pose)
        error = np.abs((left + right) / 2 - case).max()
        turns = ", ".join(f"{angle[-1] / (2 * pi):g}" for angle in (left, right, case))
        facts.append(f"{drive}: left, right and case turn {turns} times; the mean of the wheels is the case's ({error:.0e} rad)")
    return facts


def _once(t: Any) -> Any:
    """A wheel that turns once a second."""
    return 2 * cd.pi * t


def _backwards(t: Any) -> Any:
    return -2 * cd.pi * t


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
