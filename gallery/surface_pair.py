"""Two links in surface contact: a ring on one hinge, a ball on another one, with skew axes.

The ring is a torus with R = 0.4 and r = 0.1 m, the ball has the radius s = 0.15 m.  Grübler count 12 − 2·5 − 1 = 1.
The centre of the ball is always at the distance r + s from the circle in the middle of the ring.  Two links in surface
contact are figure 2 of [NelsonCohen1998].
"""

from __future__ import annotations

from math import degrees, hypot
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, placed, run_move
from gallery.looks import rod
from gallery.masses import with_masses

RING, TUBE, BALL = 0.4, 0.1, 0.15  # m
ARM = 0.9  # m, of the ball
CENTER, HINGE = (0.2, 0.0, 0.0), (1.25, 0.1, 0.35)  # m: of the ring on its link; on the ground
DURATION, POSES = 1.0, 12  # s
Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """The ball a little above the ring."""
    m = cd.Mechanism("surface_pair")
    ring = m.body("ring")
    arm = m.body("arm", position=HINGE, orientation=(Y, 0.08))
    torus = ring.attach(cd.geometry.torus(RING, TUBE), ring.frame(CENTER))
    rod(ring, (0.0, 0.0, 0.0), (-RING + CENTER[0], 0.0, 0.0), 0.04)
    ball = arm.attach(cd.geometry.sphere(BALL), arm.frame((-ARM, 0.0, 0.0)))
    rod(arm, (0.0, 0.0, 0.0), (-ARM + BALL, 0.0, 0.0), 0.03)
    hinge = m.revolute("A", m.ground.frame(z=(0.0, 1.0, 0.3)), ring.frame(z=(0.0, 1.0, 0.3)))
    m.revolute("B", m.ground.frame(HINGE, z=Y), arm.frame(z=Y))
    m.contact("touch", torus, ball)
    m.drive("motor", hinge, angle)
    return with_masses(m)


def clearance(state: cd.State) -> float:
    """Distance [m] of the ball's centre from the circle in the middle of the ring."""
    pose = state["ring"]
    center = placed(state["arm"], (-ARM, 0.0, 0.0))
    x, y, z = pose.matrix.T @ (center - placed(pose, CENTER))
    return hypot(hypot(x, y) - RING, z)


def angle(t: Any) -> Any:
    """Angle [rad] of the ring at time t [s]."""
    return 0.3 * cd.sin(2 * cd.pi * t / DURATION)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The distance of the ball from the circle of the ring."""
    state = result.state
    expect("distance of the ball", clearance(state), TUBE + BALL)
    expect("gap", state.contact("touch").gap, 0.0)
    return [f"the centre of the ball is {clearance(state):.9f} m from the circle of the ring, r + s"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The same over the motion, while the ball moves along the ring."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    angles = [mechanism["B"].coordinate(pose) for pose in moved.states]
    for pose in moved.states:
        expect("distance of the ball", clearance(pose), TUBE + BALL)
    return [f"the arm turns by {degrees(np.ptp(angles)):.1f}°, and the ball stays on the ring"]
