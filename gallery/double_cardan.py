"""Two Cardan joints in series: the second cancels the speed variation of the first.  [SeherrThoss2006]

The output shaft is parallel to the input, at a distance of 0.25 m.  An intermediate shaft of 0.5 m joins them, with a
universal joint at each end and its two yokes in one plane.  It is inclined at β = 30° to both.  The output can slide:
18 − 5 − 4 − 4 − 4 = 1 degree of freedom.

φ is the angle of the input's yoke from the normal of the plane of the shafts, and ψ the angle of the intermediate
shaft's yoke from that plane: tan ψ = cos β tan φ.  The speed ratio of the first joint is
dψ/dφ = cos β / (1 − sin² β sin² φ).  The second joint has the inverse ratio, so output and input angles are equal.
"""

from __future__ import annotations

from math import asin, cos, degrees, pi, radians, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.looks import block, rod, yoke
from gallery.masses import with_masses

SHAFT, OFFSET = 0.5, 0.25  # m: intermediate shaft, and distance between input and output
BETA = asin(OFFSET / SHAFT)  # rad
BEARING = 0.3  # m, from the input's bearing to its joint
STUB = 0.4  # m, from the output's joint to its bearing
CONSTANT = 1e-10  # rad, and relative to the speed
START = radians(15.0)  # φ at t = 0
DURATION, POSES = 2.0, 36  # s of one turn

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)  # along a shaft; along and perpendicular to its yoke


def input_angle(t: Any) -> Any:
    """φ [rad] at time t [s]: constant speed."""
    return START + 2 * cd.pi * t / DURATION


def build() -> cd.Mechanism:
    """The input at 20°, the intermediate shaft inclined at 25° instead of 30°, the output at its end."""
    m = cd.Mechanism("double_cardan")
    drawn = radians(25.0)
    rotation = euler.from_axis_angle(X, radians(20.0))
    end = (SHAFT * cos(drawn), SHAFT * sin(drawn), 0.0)
    driver = m.body("input", orientation=rotation)
    between = m.body("between", orientation=euler.multiply(euler.from_axis_angle(Z, drawn), rotation))
    driven = m.body("output", position=end, orientation=rotation)
    yoke(driver, (0, 0, 0), (-1, 0, 0), Z, 0.055)
    rod(driver, (-0.066, 0, 0), (-BEARING - 0.06, 0, 0), 0.016)
    yoke(between, (0, 0, 0), X, Y, 0.055)
    yoke(between, (SHAFT, 0, 0), (-1, 0, 0), Y, 0.055)
    rod(between, (0.066, 0, 0), (SHAFT - 0.066, 0, 0), 0.016)
    yoke(driven, (0, 0, 0), X, Z, 0.055)
    rod(driven, (0.066, 0, 0), (STUB + 0.16, 0, 0), 0.016)
    for at in ((-BEARING, 0.0), (SHAFT * cos(BETA) + STUB, OFFSET)):
        m.ground.attach(cd.shapes.tube(0.034, 0.018, 0.06), m.ground.frame((*at, 0.0), z=X))
        block(m.ground, (at[0] - 0.03, at[1] - 0.04, -0.12), (at[0] + 0.03, at[1] + 0.04, -0.03))
    m.revolute("input_bearing", m.ground.frame((-BEARING, 0, 0), z=X, x=Z), driver.frame((-BEARING, 0, 0), z=X, x=Z))
    m.universal("first", driver.frame(z=Z), between.frame(z=Y))
    m.universal("second", between.frame((SHAFT, 0, 0), z=Y), driven.frame(z=Z))
    m.cylindrical("output_bearing", m.ground.frame((0, OFFSET, 0), z=X, x=Z), driven.frame((STUB, 0, 0), z=X, x=Z))
    m.drive("motor", m["input_bearing"], input_angle)
    return with_masses(m)


def _check_angles(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """Angles [rad] of input and output; checks the intermediate shaft."""
    phi, chi = (mechanism[f"{which}_bearing"].coordinate(state, "angle") for which in ("input", "output"))
    between = state["between"]
    along, yoke = rotated(between, X), rotated(between, Y)
    ahead = 1.0 if along[0] > 0.0 else -1.0  # the shaft may also point backwards: then cos β < 0
    cosine = ahead * cos(BETA)
    expect("direction of the intermediate shaft", along, (cosine, sin(BETA), 0.0))
    expect("end of the intermediate shaft", placed(between, (SHAFT, 0, 0)), placed(state["output"], (0, 0, 0)))
    cos_psi, sin_psi = -sin(BETA) * yoke[0] + cosine * yoke[1], yoke[2]
    # tan ψ = cos β tan φ without poles; a yoke rotated by π is the same yoke
    expect("cos β sin φ cos ψ − cos φ sin ψ", cosine * sin(phi) * cos_psi - cos(phi) * sin_psi, 0.0)
    expect("cos² ψ + sin² ψ", cos_psi**2 + sin_psi**2, 1.0)
    expect("sine of output minus input angle", sin(chi - phi), 0.0, CONSTANT)
    return phi, chi


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The angles of all three shafts, against the equation of one joint."""
    phi, chi = _check_angles(mechanism, result.state)
    slid = mechanism["output_bearing"].coordinate(result.state, "displacement")
    expect("position of the output", abs(slid - STUB), sqrt(SHAFT**2 - OFFSET**2))
    return [
        f"the intermediate shaft is inclined at {degrees(BETA):g}° to both and satisfies tan ψ = cos β tan φ",
        f"with the input at {degrees(phi):.4f}° the output is at {degrees(chi):.4f}°: equal modulo half a turn",
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn: output angle and speed equal those of the input; the intermediate shaft's speed varies."""
    omega = 2 * pi / DURATION
    poses = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states
    ahead = cos(np.subtract(*_check_angles(mechanism, poses[0])))
    worst, uneven, ratios = 0.0, 0.0, []
    for pose in poses:
        phi, chi = _check_angles(mechanism, pose)
        expect("cosine of output minus input angle", cos(chi - phi), ahead, CONSTANT)
        worst = max(worst, abs(sin(chi - phi)))
        _, spin = rates(pose, "output")
        expect("speed of the output against the input", spin / omega, X, CONSTANT)
        uneven = max(uneven, abs(spin[0] / omega - 1.0))
        _, between = rates(pose, "between")
        along = rotated(pose["between"], X)
        ratios.append(float(between @ along) / omega)
        expect("angular velocity of the intermediate shaft", between, ratios[-1] * omega * along)
        law = cos(BETA) / (1.0 - (sin(BETA) * sin(phi)) ** 2)
        expect("speed ratio of the first joint", abs(ratios[-1]), law)
    return [
        f"over one turn, in {POSES} poses, output and input angles differ by at most {worst:.0e} rad, and their speeds "
        f"by at most {uneven:.0e} (relative)",
        f"the speed ratio of the intermediate shaft varies from {min(ratios):.6f} to {max(ratios):.6f}, as in theory",
    ]
