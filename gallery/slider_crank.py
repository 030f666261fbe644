"""Offset slider-crank in space: three parallel hinges and a slide, with three redundant equations.

Crank r = 0.2 m, rod l = 0.4 m, slide parallel to x at y = e = 0.05 m.  Grübler count 18 − 4·5 = −2, one freedom.
The slider is at  x = r cos φ ± √(l² − (r sin φ − e)²);  the sign selects the assembly mode.

A test model of OndselSolver has these lengths [Ondsel2023]; its results list x = 0.59686269666, 0.370809924355 and
0.19686269666 m at φ = 0, 90° and 180°.
"""

from __future__ import annotations

from math import cos, degrees, radians, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.masses import with_masses

CRANK, ROD, OFFSET = 0.2, 0.4, 0.05  # m
PUBLISHED = {0: 0.59686269666, 90: 0.370809924355, 180: 0.19686269666}  # °, m; eleven digits or more
START = radians(30.0)  # φ at t = 0
DURATION, POSES = 1.0, 36  # s of one turn

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def build() -> cd.Mechanism:
    """Crank at 30°, the rod above the plane, the slider slightly off its line."""
    m = cd.Mechanism("slider_crank", gravity=(0.0, -9.81, 0.0))
    crank = m.body("crank", orientation=euler.from_axis_angle(Z, radians(30.0)))
    rod = m.body("rod", position=(0.15, 0.1, 0.02), orientation=euler.from_axis_angle(Z, radians(-10.0)))
    slider = m.body("slider", position=(0.6, 0.06, 0.0))
    hinge = m.revolute("A", m.ground.frame((0, 0, 0), z=Z, x=X), crank.frame((0, 0, 0), z=Z, x=X))
    m.revolute("B", crank.frame((CRANK, 0, 0), z=Z), rod.frame((0, 0, 0), z=Z))
    m.revolute("C", rod.frame((ROD, 0, 0), z=Z), slider.frame((0, 0, 0), z=Z))
    m.prismatic("slide", m.ground.frame((0, OFFSET, 0), z=X, x=Z), slider.frame((0, 0, 0), z=X, x=Z))
    m.drive("motor", hinge, crank_angle)
    return with_masses(m)


def crank_angle(t: Any) -> Any:
    """φ [rad] at time t [s]."""
    return START + 2 * cd.pi * t / DURATION


def slider_position(phi: float, side: float = 1.0) -> float:
    """x [m] of the slider at crank angle φ [rad]; side −1 for the other assembly mode."""
    return CRANK * cos(phi) + side * sqrt(ROD**2 - (CRANK * sin(phi) - OFFSET) ** 2)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The slider position against the closed form."""
    state = result.state
    phi, x = mechanism["A"].coordinate(state), mechanism["slide"].coordinate(state)
    side = 1.0 if x > CRANK * cos(phi) else -1.0
    expect("slider x", x, slider_position(phi, side))
    expect("pin on the slider", placed(state["slider"], (0, 0, 0)), (x, OFFSET, 0.0))
    expect("pin on the rod", placed(state["rod"], (ROD, 0, 0)), (x, OFFSET, 0.0))
    expect("the slider's axes", [*rotated(state["slider"], X), *rotated(state["slider"], Z)], [*X, *Z])
    return [f"at crank angle {degrees(phi):.4f}° the slider is at x = {x:.9f} m, as the closed form gives"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn: position and velocity of the slider against the closed form and published values."""
    omega = 2 * np.pi / DURATION
    facts = []
    for k, pose in enumerate(run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states):
        phi = START + 2 * np.pi * k / POSES
        x = mechanism["slide"].coordinate(pose)
        expect(f"slider x at {degrees(phi):.0f}°", x, slider_position(phi))
        height = CRANK * sin(phi) - OFFSET  # of the crank pin above the slide
        slope = -CRANK * sin(phi) - height * CRANK * cos(phi) / sqrt(ROD**2 - height**2)
        v, spin = rates(pose, "slider")
        expect(f"velocity of the slider at {degrees(phi):.0f}°", (*v, *spin), (omega * slope, 0, 0, 0, 0, 0))
        published = PUBLISHED.get(round(degrees(phi)) % 360)
        if published is not None:
            expect(f"slider x at {degrees(phi):.0f}°", x, published, 1e-11)
            facts.append(f"with the crank at {degrees(phi):.0f}° the slider is at x = {x:.11f} m, as published")
    return [*facts, f"over one turn, in {POSES} poses, position and velocity of the slider equal the closed form"]
