"""Two Cardan joints in a row: the second takes back what the first does to the speed.  [SeherrThoss2006]

An output shaft parallel to the input, 0.25 m beside it; between them a shaft of 0.5 m with a cross at either end, its
two yokes in one plane.  It stands at β = 30° to both.  The output may slide: 18 − 5 − 4 − 4 − 4 = 1 degree of freedom.

With the input's yoke at angle φ from the normal of the plane of the shafts, the yoke of the shaft between stands at ψ
from that plane, tan ψ = cos β tan φ: it runs by dψ/dφ = cos β / (1 − sin² β sin² φ), now slower, now faster than the
input.  The second joint sees the same angle from the other side, and the output turns as the input does.
"""

from __future__ import annotations

from math import asin, cos, degrees, pi, radians, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.registry import Example, expect, placed, played, rates, rotated
from cardan.math import euler

SHAFT, BESIDE = 0.5, 0.25  # m: the shaft between the joints, and the distance of the outer two
BETA = asin(BESIDE / SHAFT)  # rad
BEARING = 0.3  # m, of the input before its joint
STUB = 0.4  # m, of the output behind its joint
CONSTANT = 1e-10  # rad, and of the speed, over a turn
START = radians(15.0)  # φ at t = 0
DURATION, POSES = 2.0, 36  # s of a turn

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)  # along a shaft; along and across its yoke


def input_angle(t: Any) -> Any:
    """φ [rad] at a time [s]: an even turn."""
    return START + 2 * cd.pi * t / DURATION


def build() -> cd.Mechanism:
    """The input at 20°, the shaft between at 25° instead of 30°, the output where that shaft would end."""
    m = cd.Mechanism("double_cardan")
    drawn = radians(25.0)
    turned = euler.from_axis_angle(X, radians(20.0))
    end = (SHAFT * cos(drawn), SHAFT * sin(drawn), 0.0)
    driver = m.body("input", orientation=turned)
    between = m.body("between", orientation=euler.multiply(euler.from_axis_angle(Z, drawn), turned))
    driven = m.body("output", position=end, orientation=turned)
    m.revolute("input_bearing", m.ground.frame((-BEARING, 0, 0), z=X, x=Z), driver.frame((-BEARING, 0, 0), z=X, x=Z))
    m.universal("first", driver.frame(z=Z), between.frame(z=Y))
    m.universal("second", between.frame((SHAFT, 0, 0), z=Y), driven.frame(z=Z))
    m.cylindrical("output_bearing", m.ground.frame((0, BESIDE, 0), z=X, x=Z), driven.frame((STUB, 0, 0), z=X, x=Z))
    m.drive("motor", m["input_bearing"], input_angle)
    return m


def _check_angles(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float]:
    """Angles [rad] of input and output, after a look at the shaft between."""
    phi, chi = (mechanism[f"{which}_bearing"].coordinate(state, "angle") for which in ("input", "output"))
    between = state["between"]
    along, yoke = rotated(between, X), rotated(between, Y)
    ahead = 1.0 if along[0] > 0.0 else -1.0  # the shaft may also lead back: then cos β < 0
    cosine = ahead * cos(BETA)
    expect("direction of the shaft between", along, (cosine, sin(BETA), 0.0))
    expect("end of the shaft between", placed(between, (SHAFT, 0, 0)), placed(state["output"], (0, 0, 0)))
    cos_psi, sin_psi = -sin(BETA) * yoke[0] + cosine * yoke[1], yoke[2]
    # tan ψ = cos β tan φ without poles; a yoke turned by π is the same yoke
    expect("cos β sin φ cos ψ − cos φ sin ψ", cosine * sin(phi) * cos_psi - cos(phi) * sin_psi, 0.0)
    expect("cos² ψ + sin² ψ", cos_psi**2 + sin_psi**2, 1.0)
    expect("sine of output against input", sin(chi - phi), 0.0, CONSTANT)
    return phi, chi


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The angles of all three shafts, by the law of one joint."""
    phi, chi = _check_angles(mechanism, result.state)
    slid = mechanism["output_bearing"].coordinate(result.state, "displacement")
    expect("place of the output", abs(slid - STUB), sqrt(SHAFT**2 - BESIDE**2))
    return [
        f"the shaft between stands at {degrees(BETA):g}° to both, turned as the law of one joint says",
        f"with the input at {degrees(phi):.4f}° the output stands at {degrees(chi):.4f}°: as far, up to half a turn",
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """A whole turn: the output never leads or lags, and runs as fast as the input while the shaft between does not."""
    omega = 2 * pi / DURATION
    poses = played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states
    ahead = cos(np.subtract(*_check_angles(mechanism, poses[0])))
    worst, uneven, ratios = 0.0, 0.0, []
    for pose in poses:
        phi, chi = _check_angles(mechanism, pose)
        expect("output against input, the same all the way", cos(chi - phi), ahead, CONSTANT)
        worst = max(worst, abs(sin(chi - phi)))
        _, spin = rates(pose, "output")
        expect("speed of the output against the input", spin / omega, X, CONSTANT)
        uneven = max(uneven, abs(spin[0] / omega - 1.0))
        _, between = rates(pose, "between")
        along = rotated(pose["between"], X)
        ratios.append(float(between @ along) / omega)
        expect("spin of the shaft between across its axis", between, ratios[-1] * omega * along)
        law = cos(BETA) / (1.0 - (sin(BETA) * sin(phi)) ** 2)
        expect("speed ratio of the first joint", abs(ratios[-1]), law)
    return [
        f"through a turn, in {POSES} poses, the output leads or lags by {worst:.0e} rad at most, and its speed differs "
        f"from the input's by {uneven:.0e} of it",
        f"the shaft between runs {min(ratios):.6f} to {max(ratios):.6f} times as fast, as the law of one joint says",
    ]


EXAMPLE = Example(
    "double_cardan",
    "two Cardan joints, a constant speed",
    build,
    check,
    dof=1,
    gruebler=1,
    motion=motion,
    duration=DURATION,
)
