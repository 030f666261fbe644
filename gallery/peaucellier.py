"""Peaucellier's inversor: seven bars that trace an exact straight line.  [Peaucellier1873]

Two arms OA = OB of l = 1 m on the pivot O, a rhombus ACBD of side k = 0.4 m at their ends, and a crank MC of r = 0.4 m
on the pivot M, with OM = MC.  The Grübler count is 42 − 50 = −8; the linkage has one degree of freedom.

C and D are collinear with O, and OC · OD = l² − k²: D is the inverse of C.  C moves on a circle through O, so D moves
on its inverse, the line x = (l² − k²)/2r.  At crank angle φ, D = (l² − k²)/2r · (1, tan φ/2).
"""

from __future__ import annotations

from math import hypot, radians, tan
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, placed, run_move
from gallery.masses import with_masses
from gallery.planar import flat, link, pin

ARM, SIDE, CRANK = 1.0, 0.4, 0.4  # m: l, k, r
POWER = ARM**2 - SIDE**2  # m²: OC · OD
LINE = POWER / (2 * CRANK)  # m: x of the line
SWING = radians(75.0)  # amplitude of the crank
DURATION, POSES = 3.0, 60  # s of one oscillation
RAISED = radians(12.0)  # initial phase of the oscillation
EXACT = 1e-10  # m

O, M = (0.0, 0.0), (CRANK, 0.0)


def crank_angle(t: Any) -> Any:
    """φ [rad] at time t [s]: an oscillation that starts above the axis."""
    return SWING * cd.sin(2 * cd.pi * t / DURATION + RAISED)


def build() -> cd.Mechanism:
    """A sketch with two-digit coordinates, the crank slightly raised."""
    m = cd.Mechanism("peaucellier", gravity=(0.0, -9.81, 0.0))
    a, b, c, d = (0.84, 0.54), (0.98, -0.2), (0.78, 0.11), (1.04, 0.17)
    upper, lower = link(m, "upper_arm", O, a), link(m, "lower_arm", O, b)
    crank = link(m, "crank", M, c)
    near_upper, near_lower = link(m, "near_upper", a, c), link(m, "near_lower", b, c)
    far_upper, far_lower = link(m, "far_upper", a, d), link(m, "far_lower", b, d)
    pin(m, "O_1", m.ground, O, upper)
    pin(m, "O_2", m.ground, O, lower)
    m.drive("swing", pin(m, "M", m.ground, M, crank), crank_angle)
    for corner, arm, near, far in (("A", upper, near_upper, far_upper), ("B", lower, near_lower, far_lower)):
        pin(m, f"{corner}_1", arm, (ARM, 0.0), near)
        pin(m, f"{corner}_2", arm, (ARM, 0.0), far)
    pin(m, "C_1", crank, (CRANK, 0.0), near_upper, (SIDE, 0.0))
    pin(m, "C_2", crank, (CRANK, 0.0), near_lower, (SIDE, 0.0))
    pin(m, "D", far_upper, (SIDE, 0.0), far_lower, (SIDE, 0.0))
    return with_masses(m)


def _check_line(mechanism: cd.Mechanism, state: cd.State) -> float:
    """y [m] of D; checks the inversion and the line."""
    phi = mechanism["M"].coordinate(state)
    pen = placed(state["far_lower"], (SIDE, 0.0, 0.0))
    (cx, cy), (dx, dy) = flat(placed(state["crank"], (CRANK, 0.0, 0.0))), flat(pen)
    expect("OC · OD", hypot(cx, cy) * hypot(dx, dy), POWER, EXACT)
    expect("C and D collinear with O", cx * dy - cy * dx, 0.0, EXACT)
    expect("D", pen, (LINE, LINE * tan(phi / 2), 0.0), EXACT)
    return dy


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The inversion, and D on its line, in the assembled pose."""
    y = _check_line(mechanism, result.state)
    return [f"OC · OD = {POWER:g} m², and D is on the line x = {LINE:g} m, at y = {y:.9f} m = x tan φ/2"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The line over one oscillation of the crank."""
    poses = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states
    heights = [_check_line(mechanism, pose) for pose in poses]
    low, high = min(heights), max(heights)
    return [f"from y = {low:.3f} to {high:.3f} m D stays on the line within {EXACT:g} m, in {POSES} poses"]
