"""A grasped object: two fingers of two links each hold an ellipse between round fingertips that roll on it.

In the plane: Grübler count 30 − 4·5 − 3 − 2 = 5, and rolling leaves three velocities: the object can be moved at will
in the plane by the fingers.  Half axes of the object 60 and 40 mm, fingertips of 15 mm.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, run_move
from gallery.looks import bar, block, pin
from gallery.masses import with_masses
from gallery.rolling import disc, expect_rolling, oval

LONG, HIGH, TIP = 0.06, 0.04, 0.015  # m
UPPER, LOWER, APART = 0.11, 0.1, 0.16  # m: links, and the distance of the fingers' hinges
TURN = 0.25  # rad: of the object
DURATION, POSES = 1.0, 10  # s
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """The object between the fingertips, a little too low."""
    m = cd.Mechanism("grasp", gravity=(0.0, -9.81, 0.0))
    thing = m.body("object", position=(0.0, -0.155, 0.0))
    skin = oval(thing, LONG, HIGH, 0.03)
    bar(m.ground, (-0.5 * APART, 0.0), (0.5 * APART, 0.0), 0.036, 0.016, -0.046)  # the palm
    block(m.ground, (-0.025, 0.0, -0.054), (0.025, 0.09, -0.038))
    held = m.planar("plane", m.ground.frame(x=X), thing.frame(x=X))
    for side, name in ((-1.0, "left"), (1.0, "right")):
        base = (side * 0.5 * APART, 0.0, 0.0)
        outward = -0.5 * np.pi + side * 0.35
        upper = m.body(f"{name}.upper", position=base, orientation=(Z, outward))
        knuckle = np.array(base) + UPPER * np.array([np.cos(outward), np.sin(outward), 0.0])
        inward = -0.5 * np.pi - side * 0.42
        lower = m.body(f"{name}.lower", position=knuckle, orientation=(Z, inward))
        bar(upper, (0.0, 0.0), (UPPER, 0.0), 0.024, 0.012, -0.03)
        bar(lower, (0.0, 0.0), (LOWER, 0.0), 0.022, 0.012)
        pin(lower, (0.0, 0.0), -0.03, 0.02, 0.006)
        pin(m.ground, base, -0.05, -0.02, 0.007)
        m.revolute(f"{name}.hinge", m.ground.frame(base), upper.frame())
        m.revolute(f"{name}.knuckle", upper.frame((UPPER, 0.0, 0.0)), lower.frame())
        m.contact(f"{name}.tip", skin, disc(lower, TIP, 0.02, (LOWER, 0.0, 0.0)), mode="roll")
    m.drive("turn", held, turning, of="angle")
    for axis, law in ((X, across), ((0.0, 1.0, 0.0), upwards)):
        m.drive(law.__name__, cd.coordinate(m.ground.frame(z=axis), thing.frame(z=axis), "displacement"), law)
    return with_masses(m)


def turning(t: Any) -> Any:
    """Angle [rad] of the object at time t [s]."""
    return TURN * cd.sin(cd.pi * t / DURATION)


def across(t: Any) -> Any:
    """x [m] of the object at time t [s]."""
    return 0.01 * cd.sin(cd.pi * t / DURATION)


def upwards(t: Any) -> Any:
    """y [m] of the object at time t [s]."""
    return -0.15 + 0.006 * cd.sin(cd.pi * t / DURATION)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The centre of each fingertip is at its radius along the normal of the ellipse."""
    state = result.state
    thing = state["object"]
    for name in ("left", "right"):
        point = thing.matrix.T @ (state.contact(f"{name}.tip").point - thing.position)
        expect("contact on the ellipse", (point[0] / LONG) ** 2 + (point[1] / HIGH) ** 2, 1.0)
        normal = np.array([point[0] / LONG**2, point[1] / HIGH**2, 0.0])
        lower = state[f"{name}.lower"]
        tip = lower.position + LOWER * lower.matrix[:, 0]
        center = thing.matrix.T @ (tip - thing.position)
        expect("centre of the fingertip", center, point + TIP * normal / sqrt(normal @ normal))
    return ["each fingertip touches the ellipse from outside"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The fingertips roll while the object is moved."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    for pose in moved.states:
        for name in ("left", "right"):
            expect_rolling(pose, f"{name}.tip", "object", f"{name}.lower")
    return ["the object is turned and moved in the plane, and both fingertips roll on it"]
