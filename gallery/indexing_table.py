"""Indexing table with a press: a cam at constant speed advances the table in steps and moves the ram.

In each turn of the cam the table advances by one of six stations within 120°, by the cycloidal law [Norton2009], and
dwells for the other 240°.  In the middle of the dwell the ram comes down.  Both follow the cam through couplers:
functions of its angle whose first two derivatives are continuous.  6·3 − 3·5 − 2 = 1 degree of freedom.

With n whole turns of the cam, the remaining angle φ, and u = (φ − 180°)/120° + ½ clipped to [0, 1], the table is at
ψ = 60° (n + u − sin(2πu)/2π), which is exactly a station during the dwell.  The ram is at
h − 0.08 m (1 − (φ/75°)²)³ where |φ| < 75°, else at h.
"""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.looks import STEEL, arc, block, rod
from gallery.masses import with_masses

STATIONS = 6
STEP = 2 * pi / STATIONS  # rad
INDEX = radians(120.0)  # range of the cam angle in which the table moves
PRESS = radians(75.0)  # the ram moves while the cam angle is within ± this
RADIUS = 0.3  # m, radius of the stations
TOP, STROKE = 0.2, 0.08  # m: upper position of the ram, and its stroke
CAM = (-0.15, -0.3, 0.0)  # m: position of its shaft, which lies along x
START = radians(20.0)  # φ at t = 0
DURATION = 3.0  # s, of three turns of the cam
TURNS, POSES = 12, 20  # of the cam, and poses to check per turn
DWELL_TOLERANCE = 1e-12  # rad, m and per second

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
STATION = (RADIUS, 0.0, 0.0)  # m: position of the ram


def cam_angle(t: Any) -> Any:
    """φ [rad] at time t [s]: one turn per second."""
    return START + 2 * cd.pi * t


def index(cam: Any) -> Any:
    """Angle [rad] of the table at an angle of the cam [rad]."""
    offset = cd.atan2(-cd.sin(cam), -cd.cos(cam))  # from the middle of the step, within half a turn
    turns = (cam - cd.pi - offset) / (2 * cd.pi)
    u = cd.clip(offset / INDEX + 0.5, 0.0, 1.0)
    return STEP * (turns + u - cd.sin(2 * cd.pi * u) / (2 * cd.pi))


def strike(cam: Any) -> Any:
    """Height [m] of the ram at an angle of the cam [rad]."""
    u = cd.clip(cd.atan2(cd.sin(cam), cd.cos(cam)) / PRESS, -1.0, 1.0)
    return TOP - STROKE * (1.0 - u**2) ** 3


def build() -> cd.Mechanism:
    """Cam and table rotated slightly too far, the ram displaced from its station."""
    m = cd.Mechanism("indexing_table")
    cam = m.body("cam", position=CAM, orientation=euler.from_axis_angle(X, radians(30.0)))
    table = m.body("table", position=(0.0, 0.0, 0.01), orientation=euler.from_axis_angle(Z, radians(8.0)))
    ram = m.body("ram", position=(RADIUS, 0.01, 0.5 * TOP))
    _draw(m)
    m.revolute("camshaft", m.ground.frame(CAM, z=X, x=Z), cam.frame(z=X, x=Z))
    m.revolute("pivot", m.ground.frame(z=Z, x=X), table.frame(z=Z, x=X))
    m.prismatic("guide", m.ground.frame(STATION, z=Z, x=X), ram.frame(z=Z, x=X))
    m.couple("indexer", m["camshaft"], m["pivot"], index)
    m.couple("press", m["camshaft"], m["guide"], strike)
    m.drive("motor", m["camshaft"], cam_angle)
    return with_masses(m)


def _draw(m: cd.Mechanism) -> None:
    """A table with stations, a barrel cam beside it, and a press over one station."""
    cam, table, ram, ground = m["cam"], m["table"], m["ram"], m.ground
    stations = [(RADIUS * cos(STEP * k), RADIUS * sin(STEP * k), 0.035) for k in range(STATIONS)]
    table.attach(cd.shapes.extrusion(arc(0.38, 0.0, 2 * pi, 97), 0.03, holes=stations), table.frame((0, 0, -0.02), x=X))
    rod(table, (0, 0, -0.12), (0, 0, 0.02), 0.05, STEEL)
    for x, y, _ in stations:  # followers that the cam moves
        rod(table, (0.82 * x, 0.82 * y, -0.09), (0.82 * x, 0.82 * y, -0.03), 0.018, STEEL)
    barrel = [(0.0, -0.11), (0.075, -0.11), (0.075, -0.03), (0.055, -0.02), (0.055, 0.02), (0.075, 0.03), (0.075, 0.11),
              (0.0, 0.11)]  # fmt: skip
    cam.attach(cd.shapes.revolution(barrel), cam.frame(z=X))
    rod(cam, (-0.2, 0, 0), (0.2, 0, 0), 0.022, STEEL)
    block(cam, (0.17, -0.01, 0.0), (0.19, 0.01, 0.1))  # a crank shows the angle
    rod(ram, (0, 0, 0.02), (0, 0, 0.26), 0.026, STEEL)
    rod(ram, (0, 0, 0), (0, 0, 0.03), 0.04)
    x = STATION[0]
    block(ground, (x - 0.05, -0.05, 0.27), (x + 0.2, 0.05, 0.37))
    block(ground, (x + 0.12, -0.05, -0.16), (x + 0.2, 0.05, 0.27))
    block(ground, (-0.4, -0.42, -0.2), (x + 0.2, 0.4, -0.16))
    for side in (-0.16, 0.14):
        block(ground, (CAM[0] + side, CAM[1] - 0.04, -0.16), (CAM[0] + side + 0.02, CAM[1] + 0.04, 0.04))


def law(cam: float) -> tuple[float, float, float]:
    """Angle [rad] of the table and its first two derivatives with respect to the angle of the cam [rad]."""
    turns, beyond = divmod(cam, 2 * pi)
    u = min(max((beyond - pi) / INDEX + 0.5, 0.0), 1.0)
    return (
        STEP * (turns + u - sin(2 * pi * u) / (2 * pi)),
        STEP / INDEX * (1.0 - cos(2 * pi * u)),
        STEP / INDEX**2 * 2 * pi * sin(2 * pi * u),
    )


def ram_height(cam: float) -> tuple[float, float]:
    """Height [m] of the ram and its derivative with respect to the angle of the cam [rad]."""
    u = (cam + pi) % (2 * pi) - pi
    u = min(max(u / PRESS, -1.0), 1.0)
    return TOP - STROKE * (1.0 - u**2) ** 3, STROKE / PRESS * 6 * u * (1.0 - u**2) ** 2


def _check_pose(mechanism: cd.Mechanism, state: cd.State) -> tuple[float, float, float]:
    """Angles [rad] of cam and table and height [m] of the ram; checks each against its law."""
    cam, table = mechanism["camshaft"].coordinate(state), mechanism["pivot"].coordinate(state)
    expect("angle of the table", table, law(cam)[0])
    expect("x axis of the table", rotated(state["table"], X), (cos(table), sin(table), 0.0))
    ram = placed(state["ram"], (0, 0, 0))
    expect("ram", ram, (RADIUS, 0.0, ram_height(cam)[0]))
    return cam, table, float(ram[2])


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Table and ram against the angle of the cam."""
    cam, table, ram = _check_pose(mechanism, result.state)
    return [f"with the cam at {degrees(cam):.4f}° the table is at {degrees(table):.4f}°, the ram {ram:.6f} m above it"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Two turns of the table: velocities and accelerations, dwells on the stations, strikes only in dwells."""
    omega = 2 * pi
    moved = run_move(mechanism, np.linspace(0.0, TURNS, TURNS * POSES + 1), state)
    dwells, off, struck = 0, 0.0, 0
    for pose, acceleration in zip(moved.states, moved.accelerations("table"), strict=True):
        cam, table, ram = _check_pose(mechanism, pose)
        _, slope, curve = law(cam)
        _, spin = rates(pose, "table")
        fall, _ = rates(pose, "ram")
        expect("speed of the table", spin, (0, 0, omega * slope))
        expect("acceleration of the table", acceleration, (0, 0, 0, 0, 0, omega**2 * curve))
        expect("speed of the ram", fall, (0, 0, omega * ram_height(cam)[1]))
        if abs(cam % (2 * pi) - pi) > INDEX / 2:
            station = round(table / STEP)
            off = max(off, abs(table - STEP * station), abs(spin[2]))
            expect("table in a dwell on its station", (table - STEP * station, spin[2]), (0, 0), DWELL_TOLERANCE)
            dwells += 1
            struck += ram < TOP - STROKE / 2
        else:
            expect("ram at its upper position while the table moves", (ram - TOP, fall[2]), (0, 0), DWELL_TOLERANCE)
    counted = {name: moved.states[-1].turns[name] for name in ("camshaft", "pivot")}
    if counted != {"camshaft": TURNS, "pivot": TURNS // STATIONS}:
        raise ExampleError(f"after {TURNS} turns of the cam the counted turns are {counted}")
    if not dwells or not struck:
        raise ExampleError(f"in {len(moved.states)} poses the table dwells in {dwells} and the ram strikes in {struck}")
    return [
        f"in {TURNS} turns of the cam the table makes {TURNS // STATIONS}; in {dwells} of {len(moved.states)} poses it "
        f"dwells on a station, at zero speed within {off:.0e}, and the ram moves only then"
    ]
