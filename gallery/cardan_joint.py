"""Cardan joint: a cross between two yokes; the output speed varies at constant input speed.  [SeherrThoss2006]

The shafts intersect at β = 35°.  The cross is a separate body, pinned to both yokes.  The axes of the four hinges
intersect at one point.  The Grübler count is 18 − 4·5 = −2; the joint has one degree of freedom.

With the input's pin at angle φ from the normal of the plane of the shafts, the output is at ψ, tan ψ = cos β tan φ.
Hence the speed ratio  dψ/dφ = cos β / (1 − sin² β sin² φ),  which varies between cos β and 1/cos β twice per turn, and
d²ψ/dφ² = cos β sin² β sin 2φ / (1 − sin² β sin² φ)².
"""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.looks import BRASS, STEEL, block, rod, yoke
from gallery.masses import with_masses

BETA = radians(35.0)
BEARING = 0.3  # m, from the joint to each bearing
START = radians(25.0)  # φ at t = 0
DURATION, POSES = 2.0, 72  # s of one turn

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)  # along a shaft; along the output's and the input's pin
OUTPUT = (cos(BETA), sin(BETA), 0.0)  # direction of the output


def input_angle(t: Any) -> Any:
    """φ [rad] at time t [s]: constant speed."""
    return START + 2 * cd.pi * t / DURATION


def speed_ratio(phi: float) -> float:
    """Speed ratio dψ/dφ."""
    return cos(BETA) / (1.0 - (sin(BETA) * sin(phi)) ** 2)


def build() -> cd.Mechanism:
    """Input, cross and output at the same angle, the output inclined at 20° instead of 35°."""
    m = cd.Mechanism("cardan_joint")
    rotation = euler.from_axis_angle(X, radians(30.0))
    inclination = euler.from_axis_angle(Z, radians(20.0))
    driver = m.body("input", orientation=rotation)
    cross = m.body("cross", position=(0.01, 0.02, 0.0), orientation=rotation)
    driven = m.body("output", orientation=euler.multiply(inclination, rotation))
    input_end, output_end = (-BEARING, 0.0, 0.0), (BEARING, 0.0, 0.0)
    for shaft, side, axis in ((driver, -1.0, Z), (driven, 1.0, Y)):
        yoke(shaft, (0, 0, 0), (side, 0, 0), axis, 0.06)
        rod(shaft, (side * 0.072, 0, 0), (side * (BEARING + 0.06), 0, 0), 0.017)
        block(shaft, (side * (BEARING + 0.04), -0.004, -0.03), (side * (BEARING + 0.055), 0.004, 0.03), STEEL)
    for axis in (Y, Z):
        rod(cross, np.multiply(axis, -0.05), np.multiply(axis, 0.05), 0.013, BRASS)
    for end, axis in ((input_end, X), ((BEARING * OUTPUT[0], BEARING * OUTPUT[1], 0.0), OUTPUT)):
        m.ground.attach(cd.shapes.tube(0.034, 0.019, 0.05), m.ground.frame(end, z=axis))
        block(m.ground, (end[0] - 0.025, end[1] - 0.04, -0.12), (end[0] + 0.025, end[1] + 0.04, -0.03))
    m.revolute("input_bearing", m.ground.frame(input_end, z=X, x=Z), driver.frame(input_end, z=X, x=Z))
    m.revolute("input_yoke", driver.frame(z=Z, x=X), cross.frame(z=Z, x=X))
    m.revolute("output_yoke", cross.frame(z=Y, x=X), driven.frame(z=Y, x=X))
    end = (BEARING * OUTPUT[0], BEARING * OUTPUT[1], 0.0)
    m.revolute("output_bearing", m.ground.frame(end, z=OUTPUT, x=Z), driven.frame(output_end, z=X, x=Z))
    m.drive("motor", m["input_bearing"], input_angle)
    return with_masses(m)


def _check_angles(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """φ and ψ [rad]; checks the cross and the output."""
    phi, psi = (mechanism[f"{which}_bearing"].coordinate(state) for which in ("input", "output"))
    cross = state["cross"]
    expect("centre of the cross", placed(cross, (0, 0, 0)), (0, 0, 0))
    expect("the input's pin", rotated(cross, Z), (0.0, -sin(phi), cos(phi)))
    expect("the output's pin", rotated(cross, Y), (-sin(BETA) * cos(psi), cos(BETA) * cos(psi), sin(psi)))
    expect("direction of the output", rotated(state["output"], X), OUTPUT)
    # tan ψ = cos β tan φ without poles; a yoke rotated by π is the same yoke
    expect("cos β sin φ cos ψ − cos φ sin ψ", cos(BETA) * sin(phi) * cos(psi) - cos(phi) * sin(psi), 0.0)
    return phi, psi


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The angles of both shafts, and the pins of the cross."""
    phi, psi = _check_angles(mechanism, result.state)
    return [f"with the input at {degrees(phi):.4f}° the output is at {degrees(psi):.4f}°: tan ψ = cos β tan φ"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn at constant speed: speed and acceleration of the output against their closed forms."""
    omega = 2 * pi / DURATION
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    ratios = []
    worst = 0.0
    for pose, acceleration in zip(moved.states, moved.accelerations("output"), strict=True):
        phi, _ = _check_angles(mechanism, pose)
        _, spin = rates(pose, "output")
        ratio = float(spin @ np.array(OUTPUT)) / omega
        expect("angular velocity of the output", spin, ratio * omega * np.array(OUTPUT))
        expect("speed ratio", ratio, speed_ratio(phi))
        bend = cos(BETA) * sin(BETA) ** 2 * sin(2 * phi) / (1.0 - (sin(BETA) * sin(phi)) ** 2) ** 2
        expect("acceleration of the output", acceleration, (0, 0, 0, omega**2 * bend, 0, 0))
        ratios.append(ratio)
        worst = max(worst, abs(ratio - speed_ratio(phi)))
    psi = moved.coordinate(mechanism["output_bearing"])
    expect("rotation of the output", psi[-1] - psi[0], 2 * pi)
    return [
        f"over one turn, in {POSES} poses, the speed ratio varies from {min(ratios):.6f} to {max(ratios):.6f}; it "
        f"equals cos β/(1 − sin² β sin² φ) within {worst:.0e}"
    ]
