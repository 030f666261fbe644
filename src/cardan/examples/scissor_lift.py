"""Scissor lift of three stages: crossed bars of 1 m, a level platform, rollers at one end above and below.

Each stage is a pair of bars pinned in their middles; the first stands on a hinge and on a roller in a rail, and the
platform lies on the last in the same way.  With n stages 6(2n + 1) − 5·3n − 2·2 = 2 − 3n by count, one degree of
freedom.

At angle α of the bars every stage is L sin α high and L cos α wide: the platform stands level, n L sin α over the rail.
"""

from __future__ import annotations

from math import cos, degrees, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.planar import X, link, pin
from cardan.examples.registry import Example, expect, placed, played, rotated

STAGES = 3
BAR = 1.0  # m
DRAWN = radians(32.0)  # angle of the bars in the sketch, in which each stage is too high for it
STEP = 0.57  # m
MIDDLE, SWING = radians(40.0), radians(35.0)  # of the bars while it lifts and sinks
DURATION, POSES = 4.0, 24  # s


def bar_angle(t: Any) -> Any:
    """α [rad] at a time [s]: up and down."""
    return MIDDLE + SWING * cd.sin(2 * cd.pi * t / DURATION)


def build(stages: int = STAGES) -> cd.Mechanism:
    """Each stage drawn a little too high, and the platform on top of it all."""
    if stages < 1:
        raise cd.ModelError(f"the lift has {stages} stages; it must have 1 or more")
    m = cd.Mechanism("scissor_lift")
    wide, high = BAR * cos(DRAWN), BAR * sin(DRAWN)
    rising, falling = [], []
    for k in range(stages):
        left, right = (0.0, k * STEP), (wide, k * STEP)
        rising.append(link(m, f"rising_{k + 1}", left, (wide, k * STEP + high)))
        falling.append(link(m, f"falling_{k + 1}", right, (0.0, k * STEP + high), layer=0.03))
    platform = link(m, "platform", (0.0, stages * STEP), (wide, stages * STEP + 0.02))
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
    return m


def _check_height(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """Angle [rad] of the bars and height [m] of the platform, after a look at every stage."""
    alpha = mechanism["foot"].coordinate(state)
    stages = len(mechanism.bodies) // 2
    wide, high = BAR * cos(alpha), BAR * sin(alpha)
    for k in range(stages):
        rising, falling = state[f"rising_{k + 1}"], state[f"falling_{k + 1}"]
        expect(f"left foot of stage {k + 1}", placed(rising, (0, 0, 0)), (0.0, k * high, 0.0))
        expect(f"right foot of stage {k + 1}", placed(falling, (0, 0, 0)), (wide, k * high, 0.0))
        expect(f"crossing of stage {k + 1}", placed(falling, (BAR / 2, 0, 0)), (wide / 2, (k + 0.5) * high, 0.0))
    platform = state["platform"]
    expect("platform", placed(platform, (0, 0, 0)), (0.0, stages * high, 0.0))
    expect("level of the platform", rotated(platform, X), X)
    expect("rollers", [mechanism[f"{which}_roller"].coordinate(state) for which in ("lower", "upper")], (wide, wide))
    return alpha, float(platform.position[1])


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Height, width and level from the angle of one bar."""
    alpha, height = _check_height(mechanism, result.state)
    stages = len(mechanism.bodies) // 2
    return [f"with the bars at {degrees(alpha):.4f}° the platform stands level at {height:.9f} m = {stages} L sin α"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """From nearly flat to steep and back, by the angle."""
    poses = played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states
    heights = [_check_height(mechanism, pose)[1] for pose in poses]
    low, high = min(heights), max(heights)
    return [f"it lifts the platform from {low:.4f} to {high:.4f} m, level all the way, in {POSES} poses"]


EXAMPLE = Example(
    "scissor_lift",
    "scissor lift of three stages, a level platform",
    build,
    check,
    dof=1,
    gruebler=2 - 3 * STAGES,
    motion=motion,
    duration=DURATION,
    everywhere=False,  # a stage can also lie folded back on the one below
)
