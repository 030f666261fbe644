"""One Cardan joint: a cross between two yokes, and an output that runs now faster, now slower.  [SeherrThoss2006]

The shafts meet at β = 35°; the cross is a body of its own, pinned to both yokes: four hinges whose axes meet in one
point, and 18 − 4·5 = −2 by count leave one degree of freedom.

With the input's pin at angle φ from the normal of the plane of the shafts, the output stands at ψ, tan ψ = cos β tan φ.
Hence the speed ratio  dψ/dφ = cos β / (1 − sin² β sin² φ),  between cos β and 1/cos β twice a turn, and
d²ψ/dφ² = cos β sin² β sin 2φ / (1 − sin² β sin² φ)².
"""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.registry import Example, expect, placed, played, rates, rotated
from cardan.math import euler

BETA = radians(35.0)
BEARING = 0.3  # m, from the joint to either bearing
START = radians(25.0)  # φ at t = 0
DURATION, POSES = 2.0, 72  # s of a turn

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)  # along a shaft; along the output's and the input's pin
OUTPUT = (cos(BETA), sin(BETA), 0.0)  # direction of the output


def input_angle(t: Any) -> Any:
    """φ [rad] at a time [s]: an even turn."""
    return START + 2 * cd.pi * t / DURATION


def speed_ratio(phi: float) -> float:
    """dψ/dφ."""
    return cos(BETA) / (1.0 - (sin(BETA) * sin(phi)) ** 2)


def build() -> cd.Mechanism:
    """Drawn as if the joint were straight at first: the output turned too far, and too flat."""
    m = cd.Mechanism("cardan_joint")
    turned = euler.from_axis_angle(X, radians(30.0))
    flat = euler.from_axis_angle(Z, radians(20.0))
    driver = m.body("input", orientation=turned)
    cross = m.body("cross", position=(0.01, 0.02, 0.0), orientation=turned)
    driven = m.body("output", orientation=euler.multiply(flat, turned))
    before, behind = (-BEARING, 0.0, 0.0), (BEARING, 0.0, 0.0)
    m.revolute("input_bearing", m.ground.frame(before, z=X, x=Z), driver.frame(before, z=X, x=Z))
    m.revolute("input_yoke", driver.frame(z=Z, x=X), cross.frame(z=Z, x=X))
    m.revolute("output_yoke", cross.frame(z=Y, x=X), driven.frame(z=Y, x=X))
    end = (BEARING * OUTPUT[0], BEARING * OUTPUT[1], 0.0)
    m.revolute("output_bearing", m.ground.frame(end, z=OUTPUT, x=Z), driven.frame(behind, z=X, x=Z))
    m.drive("motor", m["input_bearing"], input_angle)
    return m


def _check_angles(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """φ and ψ [rad], after a look at the cross."""
    phi, psi = (mechanism[f"{which}_bearing"].coordinate(state) for which in ("input", "output"))
    cross = state["cross"]
    expect("middle of the cross", placed(cross, (0, 0, 0)), (0, 0, 0))
    expect("the input's pin", rotated(cross, Z), (0.0, -sin(phi), cos(phi)))
    expect("the output's pin", rotated(cross, Y), (-sin(BETA) * cos(psi), cos(BETA) * cos(psi), sin(psi)))
    expect("direction of the output", rotated(state["output"], X), OUTPUT)
    # tan ψ = cos β tan φ without poles; a yoke turned by π is the same yoke
    expect("cos β sin φ cos ψ − cos φ sin ψ", cos(BETA) * sin(phi) * cos(psi) - cos(phi) * sin(psi), 0.0)
    return phi, psi


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The angles of both shafts, and the pins of the cross between them."""
    phi, psi = _check_angles(mechanism, result.state)
    return [f"with the input at {degrees(phi):.4f}° the output stands at {degrees(psi):.4f}°: tan ψ = cos β tan φ"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """A turn at an even speed: speed and acceleration of the output by their closed forms."""
    omega = 2 * pi / DURATION
    moved = played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    ratios = []
    worst = 0.0
    for pose, acceleration in zip(moved.states, moved.accelerations("output"), strict=True):
        phi, _ = _check_angles(mechanism, pose)
        _, spin = rates(pose, "output")
        ratio = float(spin @ np.array(OUTPUT)) / omega
        expect("spin of the output across its axis", spin, ratio * omega * np.array(OUTPUT))
        expect("speed ratio", ratio, speed_ratio(phi))
        bend = cos(BETA) * sin(BETA) ** 2 * sin(2 * phi) / (1.0 - (sin(BETA) * sin(phi)) ** 2) ** 2
        expect("acceleration of the output", acceleration, (0, 0, 0, omega**2 * bend, 0, 0))
        ratios.append(ratio)
        worst = max(worst, abs(ratio - speed_ratio(phi)))
    psi = moved.coordinate(mechanism["output_bearing"])
    expect("turn of the output", psi[-1] - psi[0], 2 * pi)
    return [
        f"through a turn, in {POSES} poses, the output runs {min(ratios):.6f} to {max(ratios):.6f} times as fast as "
        f"the input, by cos β/(1 − sin² β sin² φ) within {worst:.0e}",
    ]


EXAMPLE = Example(
    "cardan_joint",
    "Cardan joint, its cross and its uneven speed",
    build,
    check,
    dof=1,
    gruebler=-2,
    motion=motion,
    duration=DURATION,
)
