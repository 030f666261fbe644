"""Two equal ellipses on hinges at their foci: a planar mechanism of two ground hinges and one curve contact.

Half axes a = 0.5, b = 0.4 m, foci ±c = ±0.3 m; the hinges are 2a apart.  Grübler count 12 − 2·5 − 1 = 1.  The contact
is always on the line of the hinges, at the distance r₁ = b²/(a − c cos φ₁) from the first one, where φ₁ is the angle of
the far focus: such ellipses are used as gears, since they do not slip.  The mechanism of two curves in
contact is figure 8 of [NelsonCohen1998].
"""

from __future__ import annotations

from math import cos, degrees
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, rates, run_move
from gallery.looks import stand
from gallery.masses import with_masses
from gallery.rolling import oval, slip

A, B, C = 0.5, 0.4, 0.3  # m: half axes, distance of a focus from the centre
START, SWEEP = 0.4, 2.3  # rad: from φ₁ = START on; at 0 and π the contact cannot drive
DURATION, POSES = 1.0, 16  # s
Z = (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """Both ellipses a little apart."""
    m = cd.Mechanism("curve_pair", gravity=(0.0, -9.81, 0.0))
    first = m.body("first", orientation=(Z, START))
    second = m.body("second", position=(2 * A, 0.03, 0.0), orientation=(Z, -2.2))
    faces = [oval(body, A, B, 0.08, (C, 0.0, 0.0)) for body in (first, second)]
    stand(m.ground, [(0.0, 0.0), (2 * A, 0.0)], 0.05, -0.06, 0.06, -0.95)
    hinge = m.revolute("A", m.ground.frame(), first.frame())
    m.revolute("B", m.ground.frame((2 * A, 0.0, 0.0)), second.frame())
    m.contact("touch", *faces)
    m.drive("motor", hinge, angle)
    return with_masses(m)


def radius(phi: float) -> float:
    """Distance [m] of the contact from the first hinge."""
    return B * B / (A - C * cos(phi))


def angle(t: Any) -> Any:
    """φ₁ [rad] at time t [s]."""
    return START + SWEEP * t / DURATION


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The contact is on the line of the hinges."""
    state = result.state
    phi = mechanism["A"].coordinate(state)
    contact = state.contact("touch")
    expect("gap", contact.gap, 0.0)
    expect("contact", contact.point, (radius(phi), 0.0, 0.0))
    return [f"at {degrees(phi):.3f}° the curves touch on the line of the hinges, at x = {contact.point[0]:.9f} m"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The ratio of the speeds is that of the distances of the contact, and the curves do not slip."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    for pose in moved.states:
        phi = mechanism["A"].coordinate(pose)
        near = radius(phi)
        expect("contact", pose.contact("touch").point, (near, 0.0, 0.0))
        turning: Any = [rates(pose, name)[1][2] for name in ("first", "second")]
        expect("speed of the second ellipse", turning[1], -turning[0] * near / (2 * A - near), 1e-7)
        expect("slip", slip(pose, "touch", "first", "second"), np.zeros(3), 1e-7)
    return [f"over {degrees(SWEEP):.0f}° the contact stays on the line of the hinges, and the ellipses do not slip"]
