"""Watt's linkage: the middle of its coupler runs along a line that is nearly straight.  [Watt1784]

Arms of b = 1 m on pivots at (∓b, ±c), a coupler of 2c = 0.5 m between them: in the middle of the stroke the arms are
level and the coupler upright.  The pivots are 2a = 2√(b² + c²) apart; 18 − 20 = −2 by count, one degree of freedom.

In polar coordinates about the middle, θ counted from the line through the pivots, the curve of the coupler's middle is
r² = b² − (a sin θ ± √(c² − a² cos² θ))²; without root and angle, with Y = r sin θ,
r² (a² + b² − c² − r²)² = 4 a² (b² − r²) Y².  [Lockwood1961]
As a² = b² + c², it leaves the upright x = 0 by  x = (c sin θ − b cos θ) r/a,  sin θ = (2b² − r²)/(2a √(b² − r²)),
which begins as r⁵/(8 b³ c): no power of r below the fifth.
"""

from __future__ import annotations

from math import copysign, hypot, radians, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.planar import flat, link, pin
from cardan.examples.registry import Example, ExampleError, expect, placed, played

ARM, HALF = 1.0, 0.25  # m: b and c
BASE = hypot(ARM, HALF)  # m: a
LEFT, RIGHT = (-ARM, HALF), (ARM, -HALF)  # m
SWING = radians(17.0)  # of an arm to either side
DURATION, POSES = 2.0, 36  # s of a swing to both sides
RAISED = radians(30.0)  # of that swing: where it begins
STRAYS = 1.25  # times r⁵/(8 b³ c): the series goes on with 1 + (r/b)² + …, and r < 0.3 b on the stroke that is swept


def arm_angle(t: Any) -> Any:
    """Angle [rad] of the left arm at a time [s]: to and fro, a little raised to begin with."""
    return SWING * cd.sin(2 * cd.pi * t / DURATION + RAISED)


def build() -> cd.Mechanism:
    """Somewhat above the middle of the stroke, the coupler leaning too far."""
    m = cd.Mechanism("watt")
    left = link(m, "left_arm", LEFT, (-0.02, 0.42))
    right = link(m, "right_arm", RIGHT, (0.01, -0.11))
    coupler = link(m, "coupler", (0.01, 0.4), (-0.05, -0.1), layer=0.02)
    arm = pin(m, "A", m.ground, LEFT, left)
    pin(m, "B", left, (ARM, 0.0), coupler)
    pin(m, "C", coupler, (2 * HALF, 0.0), right, (ARM, 0.0))
    pin(m, "D", m.ground, RIGHT, right)
    m.drive("swing", arm, arm_angle)
    return m


def strays(x: float, y: float) -> float:
    """How far [m] the curve is from the upright at the distance of a point from the middle, by the closed form."""
    r = hypot(x, y)
    sine = (2 * ARM**2 - r**2) / (2 * BASE * sqrt(ARM**2 - r**2))
    return copysign(r * (HALF * sine - ARM * sqrt(1.0 - sine**2)) / BASE, y)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The middle of the coupler on its curve of the sixth degree, whichever way the linkage is assembled."""
    middle = placed(result.state["coupler"], (HALF, 0.0, 0.0))
    expect("height of the coupler over the plane", middle[2], 0.0)
    x, y = flat(middle)
    square, along = x**2 + y**2, (HALF * x + ARM * y) / BASE
    sextic = square * (ARM**2 + BASE**2 - HALF**2 - square) ** 2 - 4 * BASE**2 * (ARM**2 - square) * along**2
    expect("equation of the coupler curve", sextic, 0.0)
    return [f"the middle of the coupler, at ({x:.6f}, {y:.6f}) m, is on Watt's curve of the sixth degree"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Up and down the stroke: the deviation by its closed form, and within its leading term and a little."""
    widest, heights = 0.0, []
    for pose in played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        x, y = flat(placed(pose["coupler"], (HALF, 0.0, 0.0)))
        expect("deviation from the straight line", x, strays(x, y))
        if abs(x) > STRAYS * abs(y) ** 5 / (8 * ARM**3 * HALF) + 1e-12:
            raise ExampleError(f"at y = {y} m the curve strays by {x} m")
        widest = max(widest, abs(x))
        heights.append(y)
    stroke = max(heights) - min(heights)
    return [f"on a stroke of {stroke:.3f} m it strays from a straight line by {1e3 * widest:.3f} mm, as its curve says"]


EXAMPLE = Example(
    "watt",
    "Watt's linkage, an almost straight line",
    build,
    check,
    dof=1,
    gruebler=-2,
    motion=motion,
    duration=DURATION,
)
