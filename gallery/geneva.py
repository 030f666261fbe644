"""Geneva drive by contact: a round pin pushes the wall of a slot.

Crank r = 0.5 m, four slots: the axles are d = r √2 apart, and the pin enters a slot tangentially at φ = ∓45°.  In the
slot the wheel is at β = atan2(r sin φ, d − r cos φ), whatever the radius of the pin.  Grübler count 12 − 2·5 − 1 = 1.
"""

from __future__ import annotations

from math import atan2, cos, degrees, pi, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, rates, run_move
from gallery.looks import UNSEEN, arc, bar, stand
from gallery.masses import with_masses
from gallery.rolling import disc

CRANK, PIN = 0.5, 0.05  # m
APART = CRANK * sqrt(2.0)
DEPTH = 0.15  # m: the inner end of a slot
RIM = 0.52  # m
LOCK, HORN = 0.39, 0.05  # m: radius of the locking disc, width of the rim beside a slot
START, SWEEP = -0.7, 1.4  # rad: almost from entry to exit
DURATION, POSES = 1.0, 14  # s
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def wheel_outline() -> list[tuple[float, float]]:
    """Four slots, and between them arcs about the places of the crank's axle, in which the locking disc fits [m]."""
    found: list[tuple[float, float]] = []
    center = APART * np.exp(0.25j * pi)
    horn = complex(RIM, PIN + HORN)
    first = float(np.angle(horn - center))
    angles = np.linspace(first, -1.5 * pi - first, 24)
    for k in range(4):
        slot = [complex(RIM, -PIN), complex(DEPTH, -PIN), complex(DEPTH, PIN), complex(RIM, PIN)]
        quarter = np.exp(0.5j * pi * k) * np.array([*slot, *(center + abs(horn - center) * np.exp(1j * angles))])
        found += [(float(z.real), float(z.imag)) for z in quarter]
    return found


def lock_outline() -> list[tuple[float, float]]:
    """A disc that holds the wheel while the pin is outside, with a cut for the horns of the wheel [m]."""
    cut = RIM + 0.03
    x = (LOCK**2 - cut**2 + APART**2) / (2 * APART)
    y = sqrt(LOCK**2 - x**2)
    at, back = atan2(y, x), float(np.arcsin(y / cut))
    inner = [(APART + cut * cos(a), cut * sin(a)) for a in np.linspace(pi + back, pi - back, 16)[1:-1]]
    return [*arc(LOCK, at, 2 * pi - at, 60), *inner]


def build() -> cd.Mechanism:
    """The wheel a little turned."""
    m = cd.Mechanism("geneva", gravity=(0.0, -9.81, 0.0))
    crank = m.body("crank", orientation=(Z, START))
    wheel = m.body("wheel", position=(APART, 0.0, 0.0), orientation=(Z, -angle(START) + 0.05))
    bar(crank, (0.0, 0.0), (CRANK, 0.0), 0.12, 0.04, -0.08)
    tip = disc(crank, PIN, 0.12, (CRANK, 0.0, 0.0))
    crank.attach(cd.shapes.extrusion(lock_outline(), 0.06), crank.frame(x=X))
    wheel.attach(cd.shapes.extrusion(wheel_outline(), 0.06), wheel.frame(x=X))
    wheel.attach(cd.shapes.cylinder(0.09, 0.09))
    stand(m.ground, [(0.0, 0.0), (APART, 0.0)], 0.04, -0.11, 0.06, -0.7)
    # the slot along −x of the wheel; its wall above the pin, whose normal points to the pin
    wall = cd.geometry.line((DEPTH, RIM))
    side = wheel.attach(wall, wheel.frame((0.0, PIN, 0.0), z=(0.0, 0.0, -1.0), x=(-1.0, 0.0, 0.0)), color=UNSEEN)
    shaft = m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", m.ground.frame((APART, 0.0, 0.0)), wheel.frame())
    m.contact("slot", side, tip)
    m.drive("motor", shaft, crank_angle)
    return with_masses(m)


def angle(phi: float) -> float:
    """Angle [rad] of the wheel against the direction of its slot at φ = 0."""
    return atan2(CRANK * sin(phi), APART - CRANK * cos(phi))


def crank_angle(t: Any) -> Any:
    """φ [rad] at time t [s]."""
    return START + SWEEP * t / DURATION


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The angle of the wheel against the closed form."""
    state = result.state
    phi, beta = (mechanism[name].coordinate(state) for name in "AB")
    expect("angle of the wheel", beta, -angle(phi))
    return [f"at {degrees(phi):.3f}° the wheel is at {degrees(beta):.6f}°, as the closed form gives"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Angle and speed of the wheel from entry to exit."""
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        phi = START + SWEEP * pose.time / DURATION
        expect("angle of the wheel", mechanism["B"].coordinate(pose), -angle(phi))
        k = CRANK / APART
        ratio = k * (cos(phi) - k) / (1.0 - 2.0 * k * cos(phi) + k * k)
        expect("speed of the wheel", rates(pose, "wheel")[1][2], -ratio * SWEEP / DURATION, 1e-8)
    return ["from entry to exit, angle and speed of the wheel are those of the closed form"]
