"""Toggle clamp, with parts from a STEP file: a four-bar whose handle and link are in line when it is closed.

In line, the arm has no velocity whatever that of the handle is: the clamp holds.  This is where the distance of the
far pins is the sum of both lengths, at the handle angle φ with cos φ = (g² + (h + l)² − a²) / (2 g (h + l)).
Grübler count 18 − 4·5 = −2 and three redundant equations, as of every planar four-bar in space.
"""

from __future__ import annotations

from math import acos, atan2, hypot, radians
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from gallery import solids
from gallery.checks import expect, placed, rates, run_move
from gallery.solids import Tree, bore, box, cut, cylinder, fuse, on, scattered

GROUND, HANDLE, LINK, ARM = 0.08, 0.03, 0.06, 0.05  # m
PIN = 4e-3  # m
TOGGLE = acos((GROUND**2 + (HANDLE + LINK) ** 2 - ARM**2) / (2 * GROUND * (HANDLE + LINK)))  # [rad] of the handle
OPEN = radians(100.0)
DURATION, POSES = 2.0, 20  # s until the clamp is closed
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def _bar(length: float, more: float = 0.0) -> Any:
    """A bar along x with bores at both ends, longer by ``more``."""
    whole = fuse(
        box((length + more, 12, 4), (0.5 * (length + more), 0, 0)), *[cylinder(6, 4, (x, 0, -2)) for x in (0, length)]
    )
    return cut(whole, *[cylinder(4, 12, (x, 0, -6)) for x in (0, length)])


def tree() -> Tree:
    """Base with two pins, handle and arm with bores, a link with two pins; all pins have their middle at z = 0."""
    g, h, l, a = (1e3 * x for x in (GROUND, HANDLE, LINK, ARM))
    base = fuse(box((g + 30, 26, 5), (0.5 * g, 0, -4.5)), *[cylinder(4, 4, (x, 0, -2)) for x in (0, g)])
    handle = fuse(_bar(h), box((9, 70, 4), (0, 39, 0)), cylinder(7, 30, (0, 60, 0), (0, 1, 0)))
    link = fuse(box((l, 10, 4), (0.5 * l, 0, 4)), *[cylinder(6, 4, (x, 0, 2)) for x in (0, l)])
    link = fuse(link, *[cylinder(4, 4, (x, 0, -2)) for x in (0, l)])
    arm = fuse(_bar(a), box((50, 10, 4), (0, 0, 0)), box((60, 10, 4), (-30, 0, 0)), cylinder(5, 16, (-52, 0, -8)))
    arm = cut(arm, cylinder(4, 12, (0, 0, -6)))
    red, steel, dark, yellow = (0.75, 0.12, 0.1), (0.78, 0.79, 0.8), (0.3, 0.32, 0.35), (0.9, 0.65, 0.1)
    return scattered({"base": (base, dark), "handle": (handle, red), "link": (link, steel), "arm": (arm, yellow)}, 3)


def handle_angle(t: Any) -> Any:
    """[rad] at time t [s]: from open to the toggle."""
    return OPEN + (TOGGLE - OPEN) * t / DURATION


def build() -> cd.Mechanism:
    """The parts as they are in the file, scattered; hinges on their cylinders."""
    found = solids.parts(__name__)
    m = cd.Mechanism("toggle_clamp", gravity=(0.0, -9.81, 0.0))
    bodies = {name: m.add(part, density=7850.0, fixed=name == "base") for name, part in found.items()}

    def hinge(name: str, a: str, x_a: float, b: str, x_b: float) -> None:
        ends = [on(bore(found[one], PIN, (x, 0, 0)), bodies[one], Z, X) for one, x in ((a, x_a), (b, x_b))]
        m.revolute(name, *ends)

    hinge("A", "base", 0.0, "handle", 0.0)
    hinge("B", "handle", HANDLE, "link", 0.0)
    hinge("C", "link", LINK, "arm", ARM)
    hinge("D", "base", GROUND, "arm", 0.0)
    m.drive("hand", m["A"], handle_angle)
    return m


def _pins(state: cd.State) -> tuple[Any, Any]:
    return placed(state["handle"], (HANDLE, 0, 0)), placed(state["arm"], (ARM, 0, 0))


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Pins by the intersection of two circles."""
    b, c = _pins(result.state)
    phi = mechanism["A"].coordinate(result.state)
    expect("pin B", b, (HANDLE * np.cos(phi), HANDLE * np.sin(phi), 0.0))
    far = hypot(GROUND - b[0], b[1])
    along = (LINK**2 - ARM**2 + far**2) / (2 * far)
    u = np.array([GROUND - b[0], -b[1]]) / far
    side = 1.0 if (c[1] - b[1]) * u[0] > (c[0] - b[0]) * u[1] else -1.0
    height = side * float(np.sqrt(LINK**2 - along**2))
    expect("pin C", c, (*(b[:2] + along * u + height * np.array([-u[1], u[0]])), 0.0))
    return [f"with the handle at {np.degrees(phi):.4f}° the pin of the arm is at ({c[0]:.9f}, {c[1]:.9f}) m"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Closing: at the toggle the pins are in line, and the arm stands still while the handle moves."""
    poses = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states
    spins = [rates(pose, "arm")[1][2] / rates(pose, "handle")[1][2] for pose in poses]
    b, c = _pins(poses[-1])
    expect("handle and link in line", atan2(c[1], c[0]), atan2(b[1], b[0]), 1e-8)
    expect("distance of the pins", hypot(c[0], c[1]), HANDLE + LINK)
    expect("speed of the arm at the toggle", spins[-1], 0.0, 1e-8)
    if not abs(spins[0]) > 0.1:
        raise ExampleError(f"the open clamp moves its arm by {spins[0]} of the handle; it must move")
    return [f"open, the arm turns {spins[0]:.3f} times as fast as the handle; at the toggle it stands still"]
