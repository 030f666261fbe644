"""Bevel differential of a car: the case rotates at the mean speed of the two wheels.  [Muller1982]

A pinion of 9 teeth drives the case through a crown wheel of 36.  Two bevel gears of 10 teeth rotate on a cross pin of
the case and mesh with the side gears of both wheels, of 16 teeth each.  The axes of these gears are fixed to the case,
so their angles are measured relative to it.  The Grübler count is 6·6 − 6·5 − 5 = 1.  The equation of the second bevel
gear is redundant, so there are two degrees of freedom: both wheels together, and one wheel against the other.

Relative to the case the side gears rotate in opposite directions, θ_left − θ_case = −(θ_right − θ_case).
At the contact point of two pitch cones, both gears have the same velocity.
"""

from __future__ import annotations

from math import cos, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed, rotated, run_move, velocity, without_drivers
from gallery.looks import RUBBER, STEEL, block, rod
from gallery.masses import with_masses

PINION, CROWN, SIDE, BEVEL = 9, 36, 16, 10  # teeth
MODULE = 0.01  # m of pitch diameter per tooth
HIGH, WIDE = MODULE * SIDE / 2, MODULE * BEVEL / 2  # m: contact point of side and bevel gears, from the centre
NARROW = {SIDE: WIDE, BEVEL: HIGH, CROWN: MODULE * PINION / 2, PINION: MODULE * CROWN / 2}  # m, to the apex, by teeth
WHEEL = 0.35  # m, from the centre to each wheel
NOSE = 0.35  # m, length of the pinion's shaft
BEND = 1.5  # turns by which the right wheel is ahead after the bend
DURATION, POSES = 4.0, 32  # s

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)  # wheels rotate about x, the pinion about y
DOWN = (0.0, -1.0, 0.0)


def engine(t: Any) -> Any:
    """Angle [rad] of the pinion at time t [s]: the wheels make one turn per second."""
    return 2 * cd.pi * CROWN / PINION * t


def bend(t: Any) -> Any:
    """Angle [rad] of the right wheel minus the left at time t [s]: straight on, a bend, straight on."""
    u = cd.clip(2 * t / DURATION - 0.5, 0.0, 1.0)
    return 2 * cd.pi * BEND * (u - cd.sin(2 * cd.pi * u) / (2 * cd.pi))


def build() -> cd.Mechanism:
    """Every gear displaced and rotated a little."""
    m = cd.Mechanism("differential")

    def rotation(axis: Any, angle: float) -> Any:
        return euler.from_axis_angle(axis, radians(angle))

    pinion = m.body("pinion", position=(0.0, -NOSE, 0.01), orientation=rotation(Y, 10.0))
    case = m.body("case", position=(0.0, 0.01, 0.0), orientation=rotation(X, 6.0))
    wheels = {
        "left": m.body("left", position=(-WHEEL, 0.0, 0.02), orientation=rotation(X, -8.0)),
        "right": m.body("right", position=(WHEEL, 0.02, 0.0), orientation=rotation(X, 12.0)),
    }
    bevels = [
        m.body("bevel_1", position=(0.0, HIGH + 0.01, 0.0), orientation=rotation(Y, 15.0)),
        m.body("bevel_2", position=(0.0, -HIGH, 0.01), orientation=rotation(Y, -10.0)),
    ]
    _draw(m)
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
    return with_masses(m)


def _bevel(body: cd.Body, teeth: int, end: Any, axis: Any, tooth: Any, depth: float, bore: float = 0.0) -> None:
    """A bevel gear whose large face is at ``end`` and which narrows along ``axis``, with a tooth towards ``tooth``.

    ``depth``: of its teeth, as a part of the distance from the large face to the common apex of the pitch cones.
    """
    apex = NARROW[teeth]
    shape = cd.shapes.gear(MODULE, teeth, depth * apex, bore=bore, taper=1.0 - depth)
    body.attach(shape, body.frame(np.array(end) + 0.5 * depth * apex * np.array(axis), z=axis, x=tooth))


def _draw(m: cd.Mechanism) -> None:
    """Bevel gears with common cones, the case as a cage, shafts and wheels; the angles are those of the zero pose."""
    for name, side in (("left", -1.0), ("right", 1.0)):
        wheel = m[name]
        inward = (-side, 0.0, 0.0)
        _bevel(wheel, SIDE, (side * (WIDE - WHEEL), 0, 0), inward, Y, 0.36)
        rod(wheel, (side * (WIDE - WHEEL), 0, 0), (0.0, 0, 0), 0.016, STEEL)
        tyre = [(0.1, -0.045), (0.17, -0.05), (0.19, -0.03), (0.19, 0.03), (0.17, 0.05), (0.1, 0.045)]
        wheel.attach(cd.shapes.revolution(tyre), wheel.frame(z=X), color=RUBBER)
        hub = [(0.0, -0.02), (0.1, -0.035), (0.1, 0.035), (0.0, 0.02)]
        wheel.attach(cd.shapes.revolution(hub), wheel.frame(z=X))
        for k in range(5):  # studs show that the wheel rotates
            a = 2 * pi * k / 5
            at = np.array([0.0, 0.06 * cos(a), 0.06 * sin(a)])
            rod(wheel, at - 0.034 * np.array(X), at + 0.034 * np.array(X), 0.01, STEEL)
    for k, up in ((1, 1.0), (2, -1.0)):
        half = pi / BEVEL
        _bevel(m[f"bevel_{k}"], BEVEL, (0, 0, 0), (0, -up, 0), (cos(half), 0.0, sin(half)), 0.36)
    case, pinion = m["case"], m["pinion"]
    _bevel(case, CROWN, (0.5 * MODULE * PINION, 0, 0), (-1.0, 0, 0), DOWN, 0.27, bore=0.125)
    rod(case, (0, -0.11, 0), (0, 0.11, 0), 0.011, STEEL)
    for up in (-1.0, 1.0):
        block(case, (-0.02, up * 0.1, -0.022), (0.036, up * 0.125, 0.022))
    half = pi / PINION
    end = NOSE - 0.5 * MODULE * CROWN
    _bevel(pinion, PINION, (0, end, 0), Y, (cos(half), 0.0, sin(half)), 0.27)
    rod(pinion, (0, -0.08, 0), (0, end, 0), 0.018, STEEL)
    for bearing, axis in (((0.28, 0.0, 0.0), X), ((-0.28, 0.0, 0.0), X), ((0.0, -NOSE + 0.06, 0.0), Y)):
        m.ground.attach(cd.shapes.tube(0.035, 0.02, 0.04), m.ground.frame(bearing, z=axis))


def _check_case(mechanism: cd.Mechanism, state: cd.State) -> None:
    """The case angle is the mean of the wheels, modulo half a turn: with even tooth numbers that meshes too."""
    left, right, case, pinion = (
        mechanism[f"{name}_bearing"].coordinate(state) for name in ("left", "right", "case", "pinion")
    )
    twice = left + right - 2 * case
    expect("sum of the wheel angles minus twice the case angle", (cos(twice), sin(twice)), (1.0, 0.0))
    lag = PINION * pinion - CROWN * case  # zero modulo a whole turn: the gears may mesh at any tooth
    expect("pinion and crown wheel", (cos(lag), sin(lag)), (1.0, 0.0))
    for k, up in ((1, HIGH), (2, -HIGH)):
        middle = placed(state["case"], (0.0, up, 0.0))
        expect(f"bevel gear {k} on its pin", state[f"bevel_{k}"].position, middle)
        expect(f"axis of bevel gear {k}", rotated(state[f"bevel_{k}"], Y), rotated(state["case"], Y))


def _check_rolling(state: cd.State) -> None:
    """At the contact points of the pitch cones, both gears have the same velocity."""
    for k, up in ((1, HIGH), (2, -HIGH)):
        for wheel, across in (("left", -WIDE), ("right", WIDE)):
            touch = placed(state["case"], (across, up, 0.0))
            both = velocity(state, wheel, touch), velocity(state, f"bevel_{k}", touch)
            expect(f"speed where bevel gear {k} touches the {wheel} side gear", *both)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The angles of wheels, case and pinion, and the poses of the bevel gears on their pin."""
    _check_case(mechanism, result.state)
    return ["the case angle is the mean of the two wheel angles; the bevel gears are on their pin"]


def _forwards(t: Any) -> Any:
    """A wheel angle [rad]: one turn per second."""
    return 2 * cd.pi * t


def _backwards(t: Any) -> Any:
    """A wheel angle [rad]: one turn per second backwards."""
    return -2 * cd.pi * t


# Other drives of (pinion, left wheel), and the resulting turns per second of (left wheel, right wheel, case).
DRIVES: dict[str, tuple[Any, Any, tuple[int, int, int]]] = {
    "straight ahead": (engine, _forwards, (1, 1, 1)),
    "with the left wheel fixed": (engine, 0.0, (0, 2, 1)),
    "with the case fixed": (0.0, _backwards, (-1, 1, 0)),
}


def _check_motion(mechanism: cd.Mechanism, state: cd.State, how: str) -> tuple[str, Any, Any, Any]:
    """A fact, and the angles [rad] of left wheel, right wheel and case; checks the mean and the gears."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    left, right, case = (moved.coordinate(mechanism[f"{name}_bearing"]) for name in ("left", "right", "case"))
    expect(f"mean of the wheels, {how}", (left + right) / 2, case)
    expect(f"bevel gear, {how}", moved.coordinate(mechanism["cross_pin_1"]), SIDE / BEVEL * (left - case))
    for pose in moved.states:
        _check_rolling(pose)
    error = np.abs((left + right) / 2 - case).max()
    turns = "{:g}, {:g} and {:g}".format(*(round(angle[-1] / (2 * pi), 6) + 0.0 for angle in (left, right, case)))
    return f"{how}: wheels and case make {turns} turns; error of the mean {error:.0e} rad", left, right, case


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Through a bend, straight ahead, with one wheel fixed, and with the case fixed."""
    times = np.linspace(0.0, DURATION, POSES + 1)
    fact, left, right, case = _check_motion(mechanism, state, "through a bend")
    u = np.clip(2 * times / DURATION - 0.5, 0.0, 1.0)
    expect("angle of the right wheel minus the left", right - left, 2 * pi * BEND * (u - np.sin(2 * pi * u) / (2 * pi)))
    expect("the case", case, 2 * pi * times)
    facts = [fact]
    for how, (pinion, wheel, speeds) in DRIVES.items():
        other = without_drivers(mechanism)
        other.drive("engine", other["pinion_bearing"], pinion)
        other.drive("road", other["left_bearing"], wheel)
        fact, *found = _check_motion(other, other.assemble().state, how)
        for name, angles, speed in zip(("left wheel", "right wheel", "case"), found, speeds, strict=True):
            expect(f"{name}, {how}", angles, 2 * pi * speed * times)
        facts.append(fact)
    return facts
