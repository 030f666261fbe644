"""A knee-like joint: a condyle in contact with a plateau, held by one ligament of constant length.

In the sagittal plane: the condyle of the femur is an ellipse of 34 × 25 mm, the plateau of the tibia a line, the
ligament a rod.  Grübler count 6 − 3 − 1 − 1 = 1.  The instantaneous centre of the femur is where the normal at the
contact meets the ligament.
"""

from __future__ import annotations

from math import degrees
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, placed, rates, run_move
from gallery.looks import BONE, UNSEEN
from gallery.masses import with_masses
from gallery.rolling import oval_outline

LONG, HIGH = 0.034, 0.025  # m: half axes of the condyle
ON_TIBIA, ON_FEMUR = (0.03, -0.004, 0.0), (-0.01, -0.005, 0.0)  # m: ends of the ligament
LIGAMENT = 0.055  # m
BEND = 1.2  # rad
DURATION, POSES = 1.0, 12  # s
X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def build() -> cd.Mechanism:
    """The femur a little above the tibia."""
    m = cd.Mechanism("knee", gravity=(0.0, -9.81, 0.0))
    femur = m.body("femur", position=(-0.008, 0.037, 0.0))
    condyle = femur.attach(cd.geometry.ellipse(LONG, HIGH), femur.frame(x=X), color=UNSEEN)
    for z in (-0.015, 0.015):  # two condyles, and the ligament between them
        femur.attach(cd.shapes.extrusion(oval_outline(LONG, HIGH), 0.018), femur.frame((0.0, 0.0, z), x=X), color=BONE)
    shaft = [(0.0, 0.005), (0.024, 0.005), (0.02, 0.03), (0.014, 0.05), (0.012, 0.1), (0.013, 0.15), (0.0, 0.15)]
    femur.attach(cd.shapes.revolution(shaft), femur.frame((-0.002, 0.0, 0.0), z=Y), color=BONE)
    plateau = m.ground.attach(cd.geometry.line((-0.05, 0.05)), m.ground.frame(x=(-1.0, 0.0, 0.0)), color=UNSEEN)
    head = cd.shapes.plate(
        [(-0.03, -0.012), (0.03, -0.012), (0.03, 0.012), (-0.03, 0.012)], thickness=0.012, radius=0.018
    )
    m.ground.attach(head, m.ground.frame((0.0, -0.006, 0.0), z=Y, x=X), color=BONE)
    tibia = [
        (0.0, -0.16),
        (0.013, -0.16),
        (0.011, -0.1),
        (0.014, -0.05),
        (0.024, -0.025),
        (0.029, -0.012),
        (0.0, -0.012),
    ]
    m.ground.attach(cd.shapes.revolution(tibia), m.ground.frame(z=Y), color=BONE)
    flat = m.planar("plane", m.ground.frame(x=X), femur.frame(x=X))
    m.contact("touch", plateau, condyle)
    m.distance("ligament", m.ground.point(ON_TIBIA), femur.point(ON_FEMUR), LIGAMENT)
    m.drive("bend", flat, angle, of="angle")
    return with_masses(m)


def angle(t: Any) -> Any:
    """Angle [rad] of the femur at time t [s]."""
    return -BEND * t / DURATION


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The height of an ellipse over its tangent, and the ligament."""
    state = result.state
    pose = state["femur"]
    across = pose.matrix[1, :2]  # the vertical, in axes of the femur
    expect("height", pose.position[1], np.hypot(LONG * across[0], HIGH * across[1]))
    expect("ligament", np.linalg.norm(placed(pose, ON_FEMUR) - ON_TIBIA), LIGAMENT)
    x = state.contact("touch").point[0]
    return [f"the condyle touches the plateau at x = {1e3 * x:.4f} mm"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The instantaneous centre is on the normal at the contact and on the ligament."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    for pose in moved.states:
        v, omega = rates(pose, "femur")
        center = pose["femur"].position + np.cross(omega, v) / (omega @ omega)
        expect("instantaneous centre above the contact", center[0], pose.contact("touch").point[0])
        along = placed(pose["femur"], ON_FEMUR) - ON_TIBIA
        expect("instantaneous centre on the ligament", np.cross(center - ON_TIBIA, along)[2], 0.0)
    x = [1e3 * pose.contact("touch").point[0] for pose in moved.states]
    return [f"bent by {degrees(BEND):.0f}°, the contact moves from x = {x[0]:.2f} to {x[-1]:.2f} mm"]
