"""Offset slider-crank in space: three parallel hinges and a slide, three equations too many.

Crank r = 0.2 m, rod l = 0.4 m, slide parallel to x at y = e = 0.05 m: 18 − 4·5 = −2 by count, one degree of freedom.
The slider stands at  x = r cos φ + √(l² − (r sin φ − e)²)  (or −√, beyond the crank).

A test model of OndselSolver has these lengths [Ondsel2023]; its results list x = 0.59686269666, 0.370809924355 and
0.19686269666 m at φ = 0, 90° and 180°.
"""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin, sqrt

import cardan as cd
from cardan.examples.registry import Example, ExampleError, expect, placed, rotated
from cardan.math import euler

CRANK, ROD, OFFSET = 0.2, 0.4, 0.05  # m
PUBLISHED = ((0.0, 0.59686269666), (pi / 2, 0.370809924355), (pi, 0.19686269666))  # rad, m; eleven digits or more

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """Crank at 30°, the rod in its layer, the slider a little off its line."""
    m = cd.Mechanism("slider_crank")
    crank = m.body("crank", orientation=euler.from_axis_angle(Z, radians(30.0)))
    rod = m.body("rod", position=(0.15, 0.1, 0.02), orientation=euler.from_axis_angle(Z, radians(-10.0)))
    slider = m.body("slider", position=(0.6, 0.06, 0.0))
    m.revolute("A", m.ground.frame((0, 0, 0), z=Z, x=X), crank.frame((0, 0, 0), z=Z, x=X))
    m.revolute("B", crank.frame((CRANK, 0, 0), z=Z), rod.frame((0, 0, 0), z=Z))
    m.revolute("C", rod.frame((ROD, 0, 0), z=Z), slider.frame((0, 0, 0), z=Z))
    m.prismatic("slide", m.ground.frame((0, OFFSET, 0), z=X, x=Z), slider.frame((0, 0, 0), z=X, x=Z))
    return m


def slider_position(phi: float, side: float = 1.0) -> float:
    """x [m] of the slider at crank angle φ [rad]; side −1 for the rod that reaches back."""
    return CRANK * cos(phi) + side * sqrt(ROD**2 - (CRANK * sin(phi) - OFFSET) ** 2)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The slider against the closed form where it was assembled, with the crank locked against published figures."""
    state = result.state
    phi, x = mechanism["A"].coordinate(state), mechanism["slide"].coordinate(state)
    side = 1.0 if x > CRANK * cos(phi) else -1.0
    expect("slider x", x, slider_position(phi, side))
    expect("pin on the slider", placed(state["slider"], (0, 0, 0)), (x, OFFSET, 0.0))
    expect("pin on the rod", placed(state["rod"], (ROD, 0, 0)), (x, OFFSET, 0.0))
    expect("the slider's axes", [*rotated(state["slider"], X), *rotated(state["slider"], Z)], [*X, *Z])
    facts = [f"at crank angle {degrees(phi):.4f}° the slider stands at x = {x:.9f} m, as the closed form says"]
    for angle, published in PUBLISHED:
        found = _lock_crank(mechanism, angle)
        expect(f"slider x at {degrees(angle):.0f}°", found, published, 1e-11)
        facts.append(f"with the crank locked at {degrees(angle):.0f}° it stands at x = {found:.11f} m, as published")
    return facts


def _lock_crank(mechanism: cd.Mechanism, angle: float) -> float:
    """Slider x [m] of a copy whose crank is fixed at an angle [rad] instead of hinged."""
    locked = mechanism.copy()
    locked.remove("A")
    at = locked.ground.frame((0, 0, 0), z=Z, x=(cos(angle), sin(angle), 0.0))
    locked.fixed("A", at, locked["crank"].frame((0, 0, 0), z=Z, x=X))
    # drawn with the slider ahead of the crank: that is the branch which was published
    pin = (CRANK * cos(angle), CRANK * sin(angle), 0.0)
    result = locked.assemble({"crank": ((0, 0, 0), euler.from_axis_angle(Z, angle)), "rod": (pin, (1, 0, 0, 0))})
    if not result.ok:
        raise ExampleError(f"slider_crank does not assemble with its crank at {degrees(angle)}°; {result.text()}")
    return float(locked["slide"].coordinate(result.state))


EXAMPLE = Example("slider_crank", "offset slider-crank, three equations too many", build, check, dof=1, gruebler=-2)
