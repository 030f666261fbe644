"""Eccentric circular cam with a flat follower: y = r + e sin φ.

Radius r = 0.3 m, eccentricity e = 0.1 m.  Grübler count 12 − 2·5 − 1 = 1.
"""

from __future__ import annotations

from math import cos, degrees, sin
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, rates, run_move
from gallery.looks import UNSEEN, block, guide, stand
from gallery.masses import with_masses
from gallery.rolling import disc

RADIUS, OFFSET = 0.3, 0.1  # m
START = 0.5  # rad
DURATION, POSES = 1.0, 24  # s of one turn
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """The follower a little above the cam."""
    m = cd.Mechanism("cam_flat", gravity=(0.0, -9.81, 0.0))
    cam = m.body("cam", orientation=(Z, START))
    follower = m.body("follower", position=(0.02, 0.38, 0.0))
    profile = disc(cam, RADIUS, 0.06, (OFFSET, 0.0, 0.0))
    block(follower, (-0.25, 0.0, -0.04), (0.25, 0.03, 0.04))
    block(follower, (-0.03, 0.03, -0.03), (0.03, 0.5, 0.03))
    stand(m.ground, [(0.0, 0.0)], 0.05, -0.06, 0.05, -0.5)
    guide(m.ground, (0.52, 0.66), 0.033, -0.16)
    block(m.ground, (-0.06, 0.0, -0.19), (0.06, 0.66, -0.13))
    shaft = m.revolute("shaft", m.ground.frame(), cam.frame())
    m.prismatic("guide", m.ground.frame(z=Y, x=X), follower.frame(z=Y, x=X))
    m.contact("touch", follower.attach(cd.geometry.line((-0.25, 0.25)), color=UNSEEN), profile)
    m.drive("motor", shaft, angle)
    return with_masses(m)


def angle(t: Any) -> Any:
    """Angle [rad] of the shaft at time t [s]."""
    return START + 2 * cd.pi * t / DURATION


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The lift against the closed form."""
    state = result.state
    phi, lift = mechanism["shaft"].coordinate(state), mechanism["guide"].coordinate(state)
    expect("lift", lift, RADIUS + OFFSET * sin(phi))
    expect("contact", state.contact("touch").point, (OFFSET * cos(phi), lift, 0.0))
    return [f"at {degrees(phi):.3f}° the follower is at y = {lift:.9f} m, r + e sin φ"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn: lift and velocity."""
    omega = 2 * np.pi / DURATION
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        phi = START + omega * pose.time
        expect("lift", mechanism["guide"].coordinate(pose), RADIUS + OFFSET * sin(phi), 1e-10)
        expect("velocity", rates(pose, "follower")[0], (0.0, omega * OFFSET * cos(phi), 0.0))
    return [f"over one turn, in {POSES} poses, the lift is r + e sin φ to 1e-10 m"]
