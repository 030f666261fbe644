"""A vehicle on a wavy road: a chassis with two wheels that roll, in the vertical plane.

Road y = h sin(k x) with h = 0.15 m and a wave of 3 m; wheels of 0.3 m, 1.6 m apart.  Grübler count
18 − 3 − 2·5 − 2 = 3; rolling leaves one velocity.  The centre of a wheel is on the normal of the road, at its radius.
A wheeled vehicle is figure 1 of [NelsonCohen1998].
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, run_move
from gallery.looks import RUBBER, STEEL, UNSEEN, block, rod
from gallery.rolling import expect_rolling

WAVE, WAVES = 0.15, 2.0 * np.pi / 3.0  # m, rad/m
WHEEL, BASE = 0.3, 1.6  # m
ROAD = (-2.0, 5.0)  # m: from x to x
SPEED = 1.5  # m/s: of the rear axle along the road
DURATION, POSES = 1.0, 12  # s
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def road() -> Any:
    """A curve in the plane, from which the normals point upwards: x decreases along it."""
    return cd.geometry.traced(lambda u: (-u, -WAVE * cd.sin(WAVES * u)), (-ROAD[1], -ROAD[0]))


def build() -> cd.Mechanism:
    """The vehicle a little above the road."""
    m = cd.Mechanism("vehicle", gravity=(0.0, -9.81, 0.0))
    chassis = m.body("chassis", position=(0.05, 0.4, 0.0), mass=20.0)
    surface = m.ground.attach(road(), color=UNSEEN)
    top = [(float(x), WAVE * float(np.sin(WAVES * x))) for x in np.linspace(*ROAD, 120)]
    outline = [(ROAD[0], -2 * WAVE), (ROAD[1], -2 * WAVE), *reversed(top)]
    m.ground.attach(cd.shapes.extrusion(outline, 1.3), m.ground.frame(x=X))
    body = [
        (-0.42, 0.05),
        (2.0, 0.05),
        (2.02, 0.3),
        (1.5, 0.38),
        (1.15, 0.68),
        (0.1, 0.68),
        (-0.3, 0.36),
        (-0.42, 0.34),
    ]
    arches = [
        [(x + 0.36 * np.cos(t), 0.36 * np.sin(t)) for t in np.linspace(0.16, np.pi - 0.16, 20)] for x in (0.0, BASE)
    ]
    side = [body[0], *reversed(arches[0]), *reversed(arches[1]), *body[1:]]
    chassis.attach(cd.shapes.extrusion(side, 0.78), chassis.frame(x=X))
    block(chassis, (-0.05, -0.06, -0.24), (BASE + 0.05, 0.08, 0.24), STEEL)
    window = [(1.38, 0.4), (1.1, 0.63), (0.14, 0.63), (-0.2, 0.4)]
    chassis.attach(cd.shapes.extrusion(window, 0.79), chassis.frame(x=X), color="#bcd3e6")
    m.planar("plane", m.ground.frame(x=X), chassis.frame(x=X))
    for name, x in (("rear", 0.0), ("front", BASE)):
        wheel = m.body(name, position=(x, 0.42, 0.0), mass=5.0)
        for z in (-0.34, 0.34):
            wheel.attach(cd.shapes.cylinder(WHEEL, 0.2), wheel.frame((0.0, 0.0, z)), color=RUBBER)
            wheel.attach(cd.shapes.cylinder(0.55 * WHEEL, 0.22), wheel.frame((0.0, 0.0, z)), color="#c9ced4")
            for y in (-0.09, 0.09):  # holes of the rim, which show how it turns
                wheel.attach(cd.shapes.cylinder(0.03, 0.23), wheel.frame((0.0, y, z)), color=RUBBER)
        rod(wheel, (0.0, 0.0, -0.34), (0.0, 0.0, 0.34), 0.04, STEEL)
        m.revolute(f"{name}.axle", chassis.frame((x, 0.0, 0.0)), wheel.frame())
        m.contact(f"{name}.road", surface, wheel.attach(cd.geometry.circle(WHEEL), color=UNSEEN), mode="roll")
    along = cd.coordinate(m.ground.frame(z=X), chassis.frame(z=X), "displacement")
    m.drive("motor", along, distance)
    return m


def distance(t: Any) -> Any:
    """x [m] of the chassis at time t [s]."""
    return SPEED * t


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Every wheel is on the normal of the road, at its radius."""
    for name in ("rear", "front"):
        _check_wheel(result.state, name)
    return ["both wheels touch the road, and their centres are on its normals"]


def _check_wheel(state: cd.State, name: str) -> None:
    x, y, _ = state.contact(f"{name}.road").point
    expect("height of the contact", y, WAVE * np.sin(WAVES * x))
    normal = np.array([-WAVE * WAVES * np.cos(WAVES * x), 1.0, 0.0])
    center = np.array([x, y, 0.0]) + WHEEL * normal / np.linalg.norm(normal)
    expect("centre of the wheel", state[name].position, center)


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The wheels roll along the road."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    for pose in moved.states:
        for name in ("rear", "front"):
            _check_wheel(pose, name)
            expect_rolling(pose, f"{name}.road", None, name)
    height = [pose["chassis"].position[1] for pose in moved.states]
    return [f"over {SPEED * DURATION:g} m the rear axle rises by {np.ptp(height):.4f} m, and no wheel slips"]
