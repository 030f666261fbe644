"""Watt's linkage: the midpoint of the coupler follows a nearly straight line.  [Watt1784]

Arms of b = 1 m rotate about pivots at (∓b, ±c); a coupler of 2c = 0.5 m joins them.  At mid-stroke the arms are
horizontal and the coupler is vertical.  The pivots are 2a = 2√(b² + c²) apart.  The Grübler count is 18 − 20 = −2; the
linkage has one degree of freedom.

In polar coordinates about the origin, with θ measured from the line through the pivots, the coupler's midpoint follows
r² = b² − (a sin θ ± √(c² − a² cos² θ))².  Without the root and the angle, with Y = r sin θ, this is
r² (a² + b² − c² − r²)² = 4 a² (b² − r²) Y².  [Lockwood1961]
As a² = b² + c², the deviation from the line x = 0 is  x = (c sin θ − b cos θ) r/a,  sin θ = (2b² − r²)/(2a √(b² − r²)).
Its leading term is r⁵/(8 b³ c).
"""

from __future__ import annotations

from math import copysign, hypot, radians, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from gallery.checks import expect, placed, run_move
from gallery.masses import with_masses
from gallery.planar import flat, link, pin

ARM, HALF = 1.0, 0.25  # m: b and c
BASE = hypot(ARM, HALF)  # m: a
LEFT, RIGHT = (-ARM, HALF), (ARM, -HALF)  # m
SWING = radians(17.0)  # amplitude of an arm
DURATION, POSES = 2.0, 36  # s of one oscillation
RAISED = radians(30.0)  # initial phase of the oscillation
BOUND = 1.25  # bound in units of r⁵/(8 b³ c); the series continues with 1 + (r/b)² + …, and r < 0.3 b on this stroke


def arm_angle(t: Any) -> Any:
    """Angle [rad] of the left arm at time t [s]: an oscillation that starts above the horizontal."""
    return SWING * cd.sin(2 * cd.pi * t / DURATION + RAISED)


def build() -> cd.Mechanism:
    """Above mid-stroke, with the coupler tilted too far."""
    m = cd.Mechanism("watt", gravity=(0.0, -9.81, 0.0))
    left = link(m, "left_arm", LEFT, (-0.02, 0.42))
    right = link(m, "right_arm", RIGHT, (0.01, -0.11))
    coupler = link(m, "coupler", (0.01, 0.4), (-0.05, -0.1), layer=0.02)
    arm = pin(m, "A", m.ground, LEFT, left)
    pin(m, "B", left, (ARM, 0.0), coupler)
    pin(m, "C", coupler, (2 * HALF, 0.0), right, (ARM, 0.0))
    pin(m, "D", m.ground, RIGHT, right)
    m.drive("swing", arm, arm_angle)
    return with_masses(m)


def deviation(x: float, y: float) -> float:
    """Closed-form deviation [m] from the straight line, at the distance of the point (x, y) from the origin."""
    r = hypot(x, y)
    sine = (2 * ARM**2 - r**2) / (2 * BASE * sqrt(ARM**2 - r**2))
    return copysign(r * (HALF * sine - ARM * sqrt(1.0 - sine**2)) / BASE, y)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The midpoint of the coupler lies on its sextic curve, in every assembly mode."""
    middle = placed(result.state["coupler"], (HALF, 0.0, 0.0))
    expect("height of the coupler over the plane", middle[2], 0.0)
    x, y = flat(middle)
    square, along = x**2 + y**2, (HALF * x + ARM * y) / BASE
    sextic = square * (ARM**2 + BASE**2 - HALF**2 - square) ** 2 - 4 * BASE**2 * (ARM**2 - square) * along**2
    expect("equation of the coupler curve", sextic, 0.0)
    return [f"the midpoint of the coupler, ({x:.6f}, {y:.6f}) m, lies on Watt's sextic curve"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The deviation over the stroke: equal to the closed form, and bounded by BOUND times its leading term."""
    widest, heights = 0.0, []
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        x, y = flat(placed(pose["coupler"], (HALF, 0.0, 0.0)))
        expect("deviation from the straight line", x, deviation(x, y))
        if abs(x) > BOUND * abs(y) ** 5 / (8 * ARM**3 * HALF) + 1e-12:
            raise ExampleError(f"at y = {y} m the curve deviates by {x} m")
        widest = max(widest, abs(x))
        heights.append(y)
    stroke = max(heights) - min(heights)
    return [f"over a stroke of {stroke:.3f} m the deviation from a straight line is at most {1e3 * widest:.3f} mm"]
