"""Planar four-bar in space: four parallel hinges; it moves although its Grübler count is −2.

Three links and four revolutes give the Grübler count 18 − 20 = −2.  The axes are parallel, so three equations are
redundant, and the linkage has one degree of freedom.  Crank 1 m, coupler 3 m, rocker 2 m, ground hinges 3 m apart.

At crank angle φ the crank pin is B = (cos φ, sin φ), and the rocker pin C is an intersection of the circles of radius 3
about B and 2 about D:
C = B + a e ± h e⊥,  e = (D − B)/d,  d = |D − B|,  a = (3² − 2² + d²)/2d,  h = √(3² − a²).
"""

from __future__ import annotations

from math import cos, degrees, hypot, radians, sin, sqrt

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed
from gallery.masses import with_masses

CRANK, COUPLER, ROCKER, BASE = 1.0, 3.0, 2.0, 3.0  # m

AXIS = (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """Links in layers 0.1 m apart, whose ends do not coincide."""
    m = cd.Mechanism("planar_4r", gravity=(0.0, -9.81, 0.0))

    def link(name: str, position: tuple[float, float, float], angle: float) -> cd.Body:
        return m.body(name, position=position, orientation=euler.from_axis_angle(AXIS, radians(angle)))

    crank = link("crank", (0.0, 0.0, 0.0), 60.0)
    coupler = link("coupler", (0.6, 0.8, 0.1), 20.0)
    rocker = link("rocker", (3.0, 0.0, 0.2), 100.0)
    m.revolute("A", m.ground.frame((0, 0, 0), z=AXIS, x=(1, 0, 0)), crank.frame((0, 0, 0), z=AXIS, x=(1, 0, 0)))
    m.revolute("B", crank.frame((CRANK, 0, 0), z=AXIS), coupler.frame((0, 0, 0), z=AXIS))
    m.revolute("C", coupler.frame((COUPLER, 0, 0), z=AXIS), rocker.frame((ROCKER, 0, 0), z=AXIS))
    m.revolute("D", m.ground.frame((BASE, 0, 0), z=AXIS), rocker.frame((0, 0, 0), z=AXIS))
    return with_masses(m)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The rocker pin against the intersection of the two circles; all pins in one plane."""
    state = result.state
    pins = {
        "A": placed(state["crank"], (0, 0, 0)),
        "B": placed(state["coupler"], (0, 0, 0)),
        "C": placed(state["coupler"], (COUPLER, 0, 0)),
        "D": placed(state["rocker"], (0, 0, 0)),
    }
    for name, pin in pins.items():
        expect(f"height of pin {name}", pin[2], 0.0)

    phi = mechanism["A"].coordinate(state)
    bx, by = CRANK * cos(phi), CRANK * sin(phi)
    d = hypot(BASE - bx, by)
    ex, ey = (BASE - bx) / d, -by / d
    a = (COUPLER**2 - ROCKER**2 + d**2) / (2.0 * d)
    h = sqrt(COUPLER**2 - a**2)
    x, y = pins["C"][0], pins["C"][1]
    side = 1.0 if ex * (y - by) - ey * (x - bx) > 0.0 else -1.0
    expect("rocker pin C", (x, y), (bx + a * ex - side * h * ey, by + a * ey + side * h * ex))
    branch = "open" if side > 0.0 else "crossed"
    return [
        "the four pins lie in one plane",
        f"at crank angle {degrees(phi):.4f}° the rocker pin is at ({x:.6f}, {y:.6f}) m, the {branch} intersection "
        "of the two circles",
    ]
