"""Scissor lift of three stages: crossed bars of 1 m, a level platform, a roller at the top and at the bottom.

Each stage is a pair of bars pinned at their midpoints.  The first stage is supported by a hinge and by a roller in a
rail; the last supports the platform in the same way.  With n stages the Grübler count is
6(2n + 1) − 5·3n − 2·2 = 2 − 3n; the lift has one degree of freedom.

At angle α of the bars each stage is L sin α high and L cos α wide: the platform is level, n L sin α above the rail.
"""

from __future__ import annotations

from math import copysign, cos, degrees, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, placed, rotated, run_move
from gallery.looks import STEEL, block
from gallery.masses import with_masses
from gallery.planar import X, link, pin

STAGES = 3
BAR = 1.0  # m
DRAWN = radians(32.0)  # angle of the bars in the sketch
STEP = 0.57  # m: height of a stage in the sketch, too large for that angle
MIDDLE, SWING = radians(40.0), radians(35.0)  # mean and amplitude of α in the motion
DURATION, POSES = 4.0, 24  # s


def bar_angle(t: Any) -> Any:
    """α [rad] at time t [s]: an oscillation."""
    return MIDDLE + SWING * cd.sin(2 * cd.pi * t / DURATION)


def build(stages: int = STAGES) -> cd.Mechanism:
    """The stages drawn too far apart, the platform above them."""
    if stages < 1:
        raise cd.ModelError(f"the lift has {stages} stages; it must have 1 or more")
    m = cd.Mechanism("scissor_lift", gravity=(0.0, -9.81, 0.0))
    wide, high = BAR * cos(DRAWN), BAR * sin(DRAWN)
    rising, falling = [], []
    for k in range(stages):
        left, right = (0.0, k * STEP), (wide, k * STEP)
        rising.append(link(m, f"rising_{k + 1}", left, (wide, k * STEP + high)))
        falling.append(link(m, f"falling_{k + 1}", right, (0.0, k * STEP + high), layer=0.03))
    platform = link(m, "platform", (0.0, stages * STEP), (wide, stages * STEP + 0.02))
    for body, y in ((platform, 0.075), (m.ground, -0.105)):
        block(body, (-0.12, y, -0.24), (BAR + 0.1, y + 0.03, 0.3))
        block(body, (-0.06, y + 0.015, -0.05), (0.05, y + 0.015 - copysign(0.1, y), -0.025))
        for z in (-0.03, 0.1):
            block(body, (0.1, y + 0.015 - copysign(0.045, y), z), (BAR + 0.06, y + 0.015, z + 0.012), STEEL)
    rail = {"z": X, "x": (0.0, 1.0, 0.0)}
    end, middle = (BAR, 0.0), (BAR / 2, 0.0)

    m.drive("lift", pin(m, "foot", m.ground, (0.0, 0.0), rising[0]), bar_angle)
    m.point_on_line("lower_roller", falling[0].point(), m.ground.frame(**rail))
    for k in range(stages):
        pin(m, f"cross_{k + 1}", rising[k], middle, falling[k], middle)
        if k > 0:
            pin(m, f"left_{k}", falling[k - 1], end, rising[k])
            pin(m, f"right_{k}", rising[k - 1], end, falling[k])
    pin(m, "head", falling[-1], end, platform)
    m.point_on_line("upper_roller", rising[-1].point((BAR, 0.0, 0.0)), platform.frame(**rail))
    return with_masses(m)


def _check_height(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """Angle [rad] of the bars and height [m] of the platform; checks every stage."""
    alpha = mechanism["foot"].coordinate(state)
    stages = len(mechanism.bodies) // 2
    wide, high = BAR * cos(alpha), BAR * sin(alpha)
    for k in range(stages):
        rising, falling = state[f"rising_{k + 1}"], state[f"falling_{k + 1}"]
        expect(f"left foot of stage {k + 1}", placed(rising, (0, 0, 0)), (0.0, k * high, 0.0))
        expect(f"right foot of stage {k + 1}", placed(falling, (0, 0, 0)), (wide, k * high, 0.0))
        expect(f"centre of stage {k + 1}", placed(falling, (BAR / 2, 0, 0)), (wide / 2, (k + 0.5) * high, 0.0))
    platform = state["platform"]
    expect("platform", placed(platform, (0, 0, 0)), (0.0, stages * high, 0.0))
    expect("level of the platform", rotated(platform, X), X)
    expect("rollers", [mechanism[f"{which}_roller"].coordinate(state) for which in ("lower", "upper")], (wide, wide))
    return alpha, float(platform.position[1])


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Height, width and level of the platform from the angle of one bar."""
    alpha, height = _check_height(mechanism, result.state)
    stages = len(mechanism.bodies) // 2
    return [f"with the bars at {degrees(alpha):.4f}° the platform is level at {height:.9f} m = {stages} L sin α"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One oscillation between a nearly flat and a steep pose."""
    poses = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states
    heights = [_check_height(mechanism, pose)[1] for pose in poses]
    low, high = min(heights), max(heights)
    return [f"the platform moves between {low:.4f} and {high:.4f} m and stays level, in {POSES} poses"]
