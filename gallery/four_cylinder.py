"""Engine with four pistons in line: a flat-plane crankshaft and the firing order 1-3-4-2.

Throws of r = 0.045 m at 0°, 180°, 180°, 0°, rods of l = 0.14 m, cylinders 0.1 m apart.  The cylinders are cylindrical
joints; the pins prevent the pistons from rotating.  The Grübler count is 6·9 − 5·(1 + 4 + 4) − 4·4 = −7; the engine has
one degree of freedom.

At crank angle φ, measured from the vertical, the height of the piston on a throw at δ above the shaft is
r cos (φ + δ) + √(l² − r² sin² (φ + δ)).  The four cosines cancel, so the sum of the heights is 4 √(l² − r² sin² φ),
which has a period of half a turn.  A four-stroke cycle takes two turns; in each half turn one piston is at top dead
centre and fires.  [Heywood1988]
"""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.math import euler
from gallery import looks
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.masses import with_masses

THROW, ROD, PITCH = 0.045, 0.14, 0.1  # m: r, l, and distance between cylinders
THROWS = (0.0, pi, pi, 0.0)  # rad
FIRING = (1, 3, 4, 2)  # half a turn apart
DRAWN = radians(35.0)  # crank angle in the sketch
START = radians(30.0)  # φ at t = 0
DURATION, POSES = 2.0, 48  # s for two turns

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)  # the shaft lies along x, the cylinders along z


def piston_height(angle: float, side: float = 1.0) -> float:
    """Height [m] of a piston above the shaft for the angle [rad] of its throw; side −1 for one below the shaft."""
    return THROW * cos(angle) + side * sqrt(ROD**2 - (THROW * sin(angle)) ** 2)


def piston_speed(angle: float) -> float:
    """Speed of a piston [m/s] per rad/s of the crank: dh/dφ."""
    return -THROW * sin(angle) * (1.0 + THROW * cos(angle) / sqrt(ROD**2 - (THROW * sin(angle)) ** 2))


def crank_angle(t: Any) -> Any:
    """φ [rad] at time t [s]."""
    return START + 4 * cd.pi * t / DURATION


def build() -> cd.Mechanism:
    """Rods vertical on their throws, pistons slightly too high."""
    m = cd.Mechanism("four_cylinder")
    shaft = m.body("crankshaft", orientation=euler.from_axis_angle(X, DRAWN))
    m.drive("starter", m.revolute("main", m.ground.frame(z=X, x=Z), shaft.frame(z=X, x=Z)), crank_angle)
    _draw_crankshaft(shaft)
    for k, throw in enumerate(THROWS):
        x = PITCH * k
        pin = (x, -THROW * sin(DRAWN + throw), THROW * cos(DRAWN + throw))
        rod = m.body(f"rod_{k + 1}", position=pin)
        piston = m.body(f"piston_{k + 1}", position=(x, 0.0, pin[2] + ROD + 0.005))
        m.revolute(f"big_end_{k + 1}", shaft.frame((x, 0.0, THROW * cos(throw)), z=X, x=Z), rod.frame(z=X, x=Z))
        m.revolute(f"small_end_{k + 1}", rod.frame((0.0, 0.0, ROD), z=X, x=Z), piston.frame(z=X, x=Z))
        m.cylindrical(f"cylinder_{k + 1}", m.ground.frame((x, 0.0, 0.0), z=Z, x=X), piston.frame(z=Z, x=X))
        _draw_cylinder(m.ground, x)
        _draw_rod(rod)
        _draw_piston(piston)
    return with_masses(m)


def _draw_crankshaft(shaft: cd.Body) -> None:
    """Journals on the axis, and for each throw a crank pin between two webs with counterweights."""
    for k, throw in enumerate(THROWS):
        x, up = PITCH * k, cos(throw)
        looks.rod(shaft, (x - 0.022, 0, THROW * up), (x + 0.022, 0, THROW * up), 0.013, looks.STEEL)
        for side in (-1.0, 1.0):
            outline = [(-0.02, 0.012), (-0.012, THROW + 0.012), (0.012, THROW + 0.012), (0.02, 0.012), (0.034, -0.012),
                       (0.024, -0.038), (-0.024, -0.038), (-0.034, -0.012)]  # fmt: skip
            web = cd.shapes.extrusion(outline, 0.011)
            shaft.attach(web, shaft.frame((x + 0.0275 * side, 0, 0), z=X, x=(0, up, 0)))
        looks.rod(shaft, (x + 0.033, 0, 0), (x + PITCH - 0.033, 0, 0), 0.016, looks.STEEL)
    looks.rod(shaft, (-0.075, 0, 0), (-0.033, 0, 0), 0.016, looks.STEEL)
    looks.rod(shaft, (-0.09, 0, 0), (-0.075, 0, 0), 0.06)  # flywheel


def _draw_rod(rod: cd.Body) -> None:
    """A bar with an eye at each end."""
    rod.attach(cd.shapes.link((0, 0), (ROD, 0), width=0.016, thickness=0.010), rod.frame(z=X, x=Z))
    rod.attach(cd.shapes.tube(0.022, 0.0132, 0.018), rod.frame(z=X))
    rod.attach(cd.shapes.tube(0.015, 0.0085, 0.016), rod.frame((0, 0, ROD), z=X))


def _draw_piston(piston: cd.Body) -> None:
    """A piston with three grooves, and its pin."""
    rows = [(0.0, 0.012), (0.029, 0.012), (0.029, -0.022), (0.036, -0.022)]
    for z in (0.014, 0.020, 0.026):
        rows += [(0.036, z), (0.034, z), (0.034, z + 0.002), (0.036, z + 0.002)]
    piston.attach(cd.shapes.revolution([*rows, (0.036, 0.034), (0.0, 0.034)]))
    looks.rod(piston, (-0.03, 0, 0), (0.03, 0, 0), 0.0085, looks.STEEL)


def _draw_cylinder(ground: cd.Body, x: float) -> None:
    """A bore that is cut open, from below the lowest skirt to above the highest crown, and a bearing of the shaft."""
    ground.attach(cd.shapes.tube(0.026, 0.0162, 0.02), ground.frame((x - 0.5 * PITCH, 0, 0), z=X))
    low, high = ROD - THROW - 0.03, ROD + THROW + 0.045
    liner = cd.shapes.extrusion(looks.half_ring(0.044, 0.0365), high - low)
    ground.attach(liner, ground.frame((x, 0, 0.5 * (low + high)), x=X))


def _heights(mechanism: cd.Mechanism, state: cd.State) -> list[float]:
    """Heights [m] of the four pistons; checks each against its closed form.  A piston may be below the shaft."""
    phi = mechanism["main"].coordinate(state)
    heights = []
    for k, throw in enumerate(THROWS):
        height = mechanism[f"cylinder_{k + 1}"].coordinate(state, "displacement")
        side = 1.0 if height > THROW * cos(phi + throw) else -1.0
        expect(f"height of piston {k + 1}", height, piston_height(phi + throw, side))
        expect(f"piston {k + 1}", placed(state[f"piston_{k + 1}"], (0, 0, 0)), (PITCH * k, 0.0, height))
        expect(f"small end of rod {k + 1}", placed(state[f"rod_{k + 1}"], (0, 0, ROD)), (PITCH * k, 0.0, height))
        expect(f"pin of piston {k + 1}", rotated(state[f"piston_{k + 1}"], X), X)
        heights.append(height)
    return heights


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The heights of the pistons against the closed form."""
    heights = _heights(mechanism, result.state)
    phi = mechanism["main"].coordinate(result.state)
    at = ", ".join(f"{height:.6f}" for height in heights)
    return [f"at crank angle {degrees(phi):.4f}° the pistons are at {at} m, as the closed form gives"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Two turns: the firing order, the speeds of the pistons, and the sum of their heights."""
    omega = 4 * pi / DURATION
    fired = []
    for k, pose in enumerate(run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states):
        phi = START + 4 * pi * k / POSES
        heights = _heights(mechanism, pose)
        expect("sum of the heights", sum(heights), 4 * sqrt(ROD**2 - (THROW * sin(phi)) ** 2))
        for number, throw in enumerate(THROWS, start=1):
            v, _ = rates(pose, f"piston_{number}")
            expect(f"velocity of piston {number}", v, (0.0, 0.0, omega * piston_speed(phi + throw)))
        strokes = phi / pi
        if abs(strokes - round(strokes)) < 1e-9 and k < POSES:
            number = FIRING[round(strokes) % len(FIRING)]
            expect(f"piston {number} when it fires", heights[number - 1], THROW + ROD)
            fired.append(number)
    return [
        f"in the firing order {'-'.join(map(str, fired))}, half a turn apart, each piston is at top dead centre, "
        f"{THROW + ROD:g} m above the shaft",
        f"over two turns, in {POSES} poses, the four heights add up to 4√(l² − r² sin² φ)",
    ]
