"""Spatial four-bar RSUR: revolute, spherical, universal, revolute; the mechanism of [Nelson1998] and of many tests.

The crank of 1 m rotates about the vertical axis at A = (0, 0, 0), the rocker of 2 m about the skew axis
d = (0, 1, 0.3)/|·| at D = (3, 0, 1).  A coupler of 4 m joins them.  18 − 5 − 3 − 4 − 5 = 1 degree of freedom, and no
redundant equation.

With crank angle φ and rocker angle ψ the ends of the coupler are B(φ) = (cos φ, sin φ, 0) and
C(ψ) = D + 2 (cos ψ x + sin ψ d × x).  Input and output satisfy |C(ψ) − B(φ)| = 4.
"""

from __future__ import annotations

from math import cos, degrees, sin

import numpy as np

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed, rotated
from gallery.masses import with_masses

CRANK, COUPLER, ROCKER = 1.0, 4.0, 2.0  # m
D = (3.0, 0.0, 1.0)  # m
ROCKER_AXIS = (0.0, 1.0, 0.3)
ROCKER_ZERO = (1.0, 0.0, 0.0)  # zero direction of the rocker angle, perpendicular to the axis

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """Crank at 40°, rocker nearly upright, coupler inclined at 46° to the x axis; the joint points do not coincide."""
    m = cd.Mechanism("rsur")
    crank = m.body("crank", orientation=euler.from_axis_angle(Z, 0.7))
    coupler = m.body("coupler", position=(0.8, 0.6, 0.0), orientation=euler.from_axis_angle(Y, -0.8))
    rocker = m.body("rocker", position=D, orientation=euler.from_zxz((0.0, -1.3, -1.4)))
    m.revolute("A", m.ground.frame((0, 0, 0), z=Z, x=X), crank.frame((0, 0, 0), z=Z, x=X))
    m.spherical("B", crank.point((CRANK, 0, 0)), coupler.point((0, 0, 0)))
    m.universal("C", coupler.frame((COUPLER, 0, 0), z=Z), rocker.frame((ROCKER, 0, 0), z=Z))
    m.revolute("D", m.ground.frame(D, z=ROCKER_AXIS, x=ROCKER_ZERO), rocker.frame((0, 0, 0), z=Z, x=X))
    return with_masses(m)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The coupler length computed from the two joint angles, its ends, and the axes of the universal joint."""
    state = result.state
    phi, psi = mechanism["A"].coordinate(state), mechanism["D"].coordinate(state)
    d = np.array(ROCKER_AXIS) / np.linalg.norm(ROCKER_AXIS)
    x = np.array(ROCKER_ZERO)
    p_WB = CRANK * np.array([cos(phi), sin(phi), 0.0])
    p_WC = D + ROCKER * (cos(psi) * x + sin(psi) * np.cross(d, x))
    expect("length of the coupler", np.linalg.norm(p_WC - p_WB), COUPLER)
    expect("ball joint B on the coupler", placed(state["coupler"], (0, 0, 0)), p_WB)
    expect("cross C on the coupler", placed(state["coupler"], (COUPLER, 0, 0)), p_WC)
    expect("axis of the rocker", rotated(state["rocker"], Z), d)
    expect("cosine between the axes of the cross", rotated(state["coupler"], Z) @ d, 0.0)
    return [
        f"crank at {degrees(phi):.4f}°, rocker at {degrees(psi):.4f}°: the coupler's ends are {COUPLER:g} m apart",
        "the axes of the universal joint are perpendicular",
    ]
