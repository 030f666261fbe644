"""A small engine, with parts from a STEP file: crankshaft, rod and piston in a block that is cut open.

The piston is at x = r cos φ + √(l² − r² sin² φ).  Grübler count 18 − 3·5 − 4 = −1: three hinges, and the piston in its
bore.  One freedom, two redundant equations.
"""

from __future__ import annotations

from math import cos, degrees, pi, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from gallery import solids
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.solids import Tree, bore, box, cut, cylinder, fuse, on, scattered

CRANK, ROD, PISTON = 0.018, 0.055, 0.016  # m: crank radius, rod length, radius of the piston
START = 0.4  # [rad] of the crank at t = 0
DURATION, POSES = 1.0, 36  # s of one turn
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def tree() -> Tree:
    """Block with the bore along x and the main bearing along z; all pins of the rod have their middle at z = 0."""
    r, l, p = (1e3 * x for x in (CRANK, ROD, PISTON))
    barrel = cut(cylinder(p + 5, 50, (33, 0, 0), X), cylinder(p, 60, (30, 0, 0), X), box((80, 60, 40), (60, 0, 22)))
    bearing = cut(fuse(box((40, 44, 18), (0, 0, -23)), box((60, 30, 6), (40, 0, -29))), cylinder(6, 40, (0, 0, -42)))
    post = cut(box((22, 24, 15), (50, 0, -24)), cylinder(p + 2, 60, (30, 0, 0), X))
    block = fuse(bearing, post, barrel)
    web = fuse(
        cylinder(10, 7, (r, 0, -13)),
        box((r, 18, 7), (0.5 * r, 0, -9.5)),
        cut(cylinder(22, 7, (0, 0, -13)), box((60, 60, 20), (34, 0, -9))),
    )
    crank = fuse(web, cylinder(6, 18, (0, 0, -32)), cylinder(5, 12, (r, 0, -6)), cylinder(14, 6, (0, 0, -40)))
    crank = fuse(crank, cylinder(6, 3, (0, 0, -35)))
    rod = fuse(box((l, 8, 6), (0.5 * l, 0, 0)), cylinder(9, 12, (0, 0, -6)), cylinder(7, 12, (l, 0, -6)))
    rod = cut(rod, cylinder(5, 40, (0, 0, -20)), cylinder(4, 40, (l, 0, -20)))
    piston = cut(cylinder(p, 30, (-10, 0, 0), X), box((26, 40, 12), (-1, 0, 0)))
    piston = fuse(piston, cylinder(4, 12, (0, 0, -6)))
    grey, steel, brass, light = (0.42, 0.45, 0.5), (0.7, 0.72, 0.75), (0.75, 0.6, 0.3), (0.85, 0.86, 0.88)
    return scattered(
        {"block": (block, grey), "crank": (crank, steel), "rod": (rod, brass), "piston": (piston, light)}, 5
    )


def crank_angle(t: Any) -> Any:
    """[rad] at time t [s]."""
    return START + 2 * cd.pi * t / DURATION


def build() -> cd.Mechanism:
    """The parts as they are in the file, scattered; joints on their cylinders."""
    found = solids.parts(__name__)
    m = cd.Mechanism("engine", gravity=(0.0, -9.81, 0.0))
    block, crank, rod, piston = (m.add(part, density=7850.0, fixed=name == "block") for name, part in found.items())
    bearing, journal = bore(found["block"], 6e-3, (0, 0, -0.023)), bore(found["crank"], 6e-3, (0, 0, -0.023))
    m.revolute("main", on(bearing, block, Z, X), on(journal, crank, Z, X))
    big, pin = bore(found["rod"], 5e-3, (0, 0, 0)), bore(found["crank"], 5e-3, (CRANK, 0, 0))
    m.revolute("crankpin", on(pin, crank, Z, X), on(big, rod, Z, X))
    small, wrist = bore(found["rod"], 4e-3, (ROD, 0, 0)), bore(found["piston"], 4e-3, (0, 0, 0))
    m.revolute("wrist", on(small, rod, Z, X), on(wrist, piston, Z, X))
    liner, skirt = bore(found["block"], PISTON, (0.06, 0, 0)), bore(found["piston"], PISTON, (0, 0, 0))
    m.cylindrical("bore", on(liner, block, X, Z), on(skirt, piston, X, Z))
    m.drive("motor", m["main"], crank_angle)
    return m


def position(phi: float, side: float) -> float:
    """x [m] of the wrist pin at the crank angle φ [rad]; side −1: the rod points away from the bore."""
    return CRANK * cos(phi) + side * sqrt(ROD**2 - (CRANK * sin(phi)) ** 2)


def _side(state: cd.State) -> float:
    return 1.0 if placed(state["piston"], (0, 0, 0))[0] > placed(state["crank"], (CRANK, 0, 0))[0] else -1.0


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The piston against the closed form."""
    state = result.state
    phi, x = mechanism["main"].coordinate(state), placed(state["piston"], (0, 0, 0))
    expect("piston", x, (position(phi, _side(state)), 0.0, 0.0))
    expect("axis of the piston", rotated(state["piston"], X), X)
    return [f"with the crank at {degrees(phi):.4f}° the wrist pin is at x = {x[0]:.9f} m, as the closed form gives"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn: positions and speeds of the piston, and the swept volume."""
    side, omega = _side(state), 2 * pi / DURATION
    found = []
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        phi = START + omega * pose.time
        root = sqrt(ROD**2 - (CRANK * sin(phi)) ** 2)
        slope = -CRANK * sin(phi) - side * CRANK**2 * sin(phi) * cos(phi) / root
        found.append(float(placed(pose["piston"], (0, 0, 0))[0]))
        expect("piston", found[-1], position(phi, side))
        expect("speed of the piston", rates(pose, "piston")[0], (omega * slope, 0.0, 0.0))
    stroke = max(found) - min(found)
    if not 1.95 * CRANK < stroke <= 2 * CRANK + 1e-12:
        raise ExampleError(f"the stroke is {stroke} m; it must be nearly 2·{CRANK} m")
    swept = 1e6 * pi * PISTON**2 * 2 * CRANK
    return [f"one turn: the piston follows the closed form; it sweeps {swept:.2f} cm³"]
