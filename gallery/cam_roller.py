"""Eccentric circular cam with a roller: y = e sin φ + √((r + s)² − e² cos² φ), as of a slider-crank.

Cam r = 0.3 m with eccentricity e = 0.1 m, roller s = 0.08 m.  The roller rolls on the cam, so its speed follows from
the velocities alone: two freedoms in position, one in velocity.  Grübler count 18 − 3·5 − 1 = 2.
"""

from __future__ import annotations

from math import cos, degrees, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, run_move
from gallery.looks import block, guide, pin, stand
from gallery.masses import with_masses
from gallery.rolling import disc, expect_rolling

RADIUS, OFFSET, ROLLER = 0.3, 0.1, 0.08  # m
START = 0.5  # rad
DURATION, POSES = 1.0, 24  # s of one turn
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """Follower and roller a little above the cam."""
    m = cd.Mechanism("cam_roller", gravity=(0.0, -9.81, 0.0))
    cam = m.body("cam", orientation=(Z, START))
    follower = m.body("follower", position=(0.02, 0.44, 0.0))
    roller = m.body("roller", position=(0.0, 0.45, 0.0))
    profile, rim = disc(cam, RADIUS, 0.06, (OFFSET, 0.0, 0.0)), disc(roller, ROLLER, 0.05)
    pin(roller, (0.0, 0.0), -0.065, 0.065, 0.02)
    for low in (-0.06, 0.035):  # a fork
        block(follower, (-0.03, -0.03, low), (0.03, 0.14, low + 0.025))
    block(follower, (-0.03, 0.1, -0.035), (0.03, 0.14, 0.035))
    block(follower, (-0.03, 0.14, -0.03), (0.03, 0.55, 0.03))
    stand(m.ground, [(0.0, 0.0)], 0.05, -0.06, 0.05, -0.5)
    guide(m.ground, (0.66, 0.8), 0.033, -0.16)
    block(m.ground, (-0.06, 0.0, -0.19), (0.06, 0.8, -0.13))
    shaft = m.revolute("shaft", m.ground.frame(), cam.frame())
    m.prismatic("guide", m.ground.frame(z=Y, x=X), follower.frame(z=Y, x=X))
    m.revolute("axle", follower.frame(), roller.frame())
    m.contact("touch", profile, rim, mode="roll")
    m.drive("motor", shaft, angle)
    return with_masses(m)


def height(phi: float) -> float:
    """y [m] of the roller's centre."""
    return OFFSET * sin(phi) + sqrt((RADIUS + ROLLER) ** 2 - (OFFSET * cos(phi)) ** 2)


def angle(t: Any) -> Any:
    """Angle [rad] of the shaft at time t [s]."""
    return START + 2 * cd.pi * t / DURATION


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The lift against the closed form."""
    state = result.state
    phi = mechanism["shaft"].coordinate(state)
    expect("lift", mechanism["guide"].coordinate(state), height(phi))
    return [f"at {degrees(phi):.3f}° the roller is at y = {height(phi):.9f} m, as the closed form gives"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn: lift, and a roller that does not slip."""
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        expect("lift", mechanism["guide"].coordinate(pose), height(START + 2 * np.pi * pose.time / DURATION), 1e-10)
        expect_rolling(pose, "touch", "cam", "roller")
    return [f"over one turn, in {POSES} poses, the lift is the closed form to 1e-10 m, and the roller does not slip"]
