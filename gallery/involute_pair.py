"""Two involute flanks that roll and slide on each other: the ratio of the speeds is constant.

Base circles of 1 and 1.6 m, axles 2.9 m apart.  Grübler count 12 − 2·5 − 1 = 1.  ω₂/ω₁ = −1/1.6 at any distance of the
axles, and the common normal touches both base circles.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, rates, run_move
from gallery.looks import UNSEEN, stand
from gallery.masses import with_masses

BASES = (1.0, 1.6)  # m
APART = 2.9  # m
TURNED = (-0.02, 3.05)  # rad
TEETH = (10, 16)
PITCH = APART / sum(BASES)  # pitch circles, relative to the base circles
MODULE = 2 * PITCH * BASES[0] / TEETH[0]  # m
PLAY = 0.01  # rad: between drawn teeth
SPEED = 0.15  # rad/s: of the pinion
DURATION, POSES = 1.0, 15  # s
Z = (0.0, 0.0, 1.0)


def flank(base: float) -> Any:
    """An involute of a circle [m]."""
    return cd.geometry.traced(
        lambda u: (base * (cd.cos(u) + u * cd.sin(u)), base * (cd.sin(u) - u * cd.cos(u))), (0.1, 1.4)
    )


def gear_outline(base: float, teeth: int) -> list[tuple[float, float]]:
    """Outline [m] of a gear: the flank, its mirror image at the other side of the tooth, and the root; for every tooth.

    A tooth and a gap are equally wide at the pitch circle.
    """
    at_pitch = sqrt(PITCH**2 - 1.0)
    wide = pi / teeth + 2 * (at_pitch - np.arctan(at_pitch)) - PLAY  # rad: of a tooth at the base circle
    tip, root = PITCH * base + MODULE, PITCH * base - 1.2 * MODULE
    u = np.linspace(0.0, sqrt((tip / base) ** 2 - 1.0), 16)
    radius, angle = base * np.sqrt(1.0 + u**2), u - np.arctan(u)
    tooth = [(root, 0.0), *zip(radius, angle, strict=True), *zip(radius[::-1], wide - angle[::-1], strict=True)]
    pitch = 2 * pi / teeth
    bottom = [(root, wide + s * (pitch - wide)) for s in (0.0, 0.5)]
    return [
        (float(r * np.cos(a + k * pitch)), float(r * np.sin(a + k * pitch)))
        for k in range(teeth)
        for r, a in (*tooth, *bottom)
    ]


def build() -> cd.Mechanism:
    """Two gears; one flank of each is in contact."""
    m = cd.Mechanism("involute_pair", gravity=(0.0, -9.81, 0.0))
    faces, axles = [], []
    stand(m.ground, [(0.0, 0.0), (APART, 0.0)], 0.14, -0.16, 0.16, -2.3)
    gears = zip(("pinion", "wheel"), BASES, TEETH, (0.0, APART), TURNED, strict=True)
    for name, base, teeth, x, turned in gears:
        gear = m.body(name, position=(x, 0.02, 0.0), orientation=(Z, turned))
        gear.attach(cd.shapes.extrusion(gear_outline(base, teeth), 0.24))
        gear.attach(cd.shapes.cylinder(0.3, 0.3))
        axles.append(m.revolute(f"{name}.axle", m.ground.frame((x, 0.0, 0.0)), gear.frame()))
        faces.append(gear.attach(flank(base), color=UNSEEN))
    m.contact("mesh", *faces)
    m.drive("motor", axles[0], angle)
    return with_masses(m)


def angle(t: Any) -> Any:
    """Angle [rad] of the pinion at time t [s]."""
    return TURNED[0] + SPEED * t


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The common normal touches both base circles."""
    contact = result.state.contact("mesh")
    expect("gap", contact.gap, 0.0)
    for base, x in zip(BASES, (0.0, APART), strict=True):
        arm = np.cross(contact.point - (x, 0.0, 0.0), contact.normal)[2]
        expect("lever of the normal", abs(arm), base)
    return ["the common normal of the flanks touches both base circles"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The ratio of the angles and of the speeds."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    angles = np.array([[mechanism[f"{n}.axle"].coordinate(s) for n in ("pinion", "wheel")] for s in moved.states])
    ratio = -BASES[0] / BASES[1]
    expect("ratio", np.diff(angles[:, 1]) / np.diff(angles[:, 0]), np.full(POSES, ratio))
    for pose in moved.states:
        expect("ratio of the speeds", rates(pose, "wheel")[1][2] / rates(pose, "pinion")[1][2], ratio)
    reach = sqrt(APART**2 - sum(BASES) ** 2)
    return [f"the gears turn at {ratio:.4f} to 1e-9 along a line of action of {reach:.3f} m"]
