"""Barrel cam: a pin in the groove z = h sin 2φ of a drum moves a slide.

Drum of R = 0.5 m, h = 0.2 m.  With the pin at φ = 0 of the ground, z = −h sin 2θ.  Grübler count 12 − 2·5 − 2 = 0: the
guide holds the pin at the radius of the groove, so one of the two equations of the pin is redundant.
"""

from __future__ import annotations

from math import cos, degrees, sin
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, rates, run_move
from gallery.looks import rod
from gallery.masses import with_masses

RADIUS, LIFT = 0.5, 0.2  # m
START = 0.2  # rad
DURATION, POSES = 1.0, 24  # s of one turn
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """The slide a little below the groove."""
    m = cd.Mechanism("barrel_cam")
    drum = m.body("drum", orientation=(Z, START))
    slide = m.body("slide", position=(RADIUS, 0.0, -0.12))
    groove = cd.geometry.traced(
        lambda u: (RADIUS * cd.cos(u), RADIUS * cd.sin(u), LIFT * cd.sin(2 * u)), (0.0, 2 * cd.pi), period=2 * cd.pi
    )
    drum.attach(cd.shapes.cylinder(0.99 * RADIUS, 3 * LIFT))
    path = drum.attach(groove, color="#c9a24b")
    rod(slide, (0.0, 0.0, 0.0), (0.2, 0.0, 0.0), 0.03)
    rod(slide, (0.2, 0.0, -0.25), (0.2, 0.0, 0.25), 0.04)
    shaft = m.revolute("shaft", m.ground.frame(), drum.frame())
    m.prismatic("guide", m.ground.frame((RADIUS, 0.0, 0.0), x=X), slide.frame(x=X))
    m.point_on_curve("pin", slide.point(), path)
    m.drive("motor", shaft, angle)
    return with_masses(m)


def angle(t: Any) -> Any:
    """Angle [rad] of the shaft at time t [s]."""
    return START + 2 * cd.pi * t / DURATION


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The slide against the closed form."""
    state = result.state
    theta, z = mechanism["shaft"].coordinate(state), mechanism["guide"].coordinate(state)
    expect("slide", z, -LIFT * sin(2 * theta))
    return [f"at {degrees(theta):.3f}° the slide is at z = {z:.9f} m, −h sin 2θ"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn: position and velocity of the slide."""
    omega = 2 * np.pi / DURATION
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        theta = START + omega * pose.time
        expect("slide", mechanism["guide"].coordinate(pose), -LIFT * sin(2 * theta), 1e-10)
        expect("velocity", rates(pose, "slide")[0][2], -2 * omega * LIFT * cos(2 * theta), 1e-8)
    return [f"over one turn, in {POSES} poses, the slide follows the groove to 1e-10 m"]
