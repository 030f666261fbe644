"""Belt drive as rolling contact: a straight strand that rolls on two pulleys.

Pulleys of 0.3 and 0.15 m, 0.8 m apart.  The strand is a line that touches both circles and rolls on them, so
ω₂/ω₁ = r₁/r₂.  Grübler count 18 − 2·5 − 3 − 2 = 3: rolling concerns velocities, of which one is left free.
A belt drive as rolling contact is figure 3 of [NelsonCohen1998].
"""

from __future__ import annotations

from math import asin
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, rates, run_move
from gallery.looks import RUBBER, UNSEEN, block, stand
from gallery.masses import with_masses
from gallery.rolling import disc, expect_rolling

LARGE, SMALL, APART = 0.3, 0.15, 0.8  # m
SPEED = 0.6  # rad/s
DURATION, POSES = 1.0, 8  # s
X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
SLOPE = -asin((LARGE - SMALL) / APART)  # rad: of the strand


def build() -> cd.Mechanism:
    """The strand a little above the pulleys."""
    m = cd.Mechanism("belt_drive", gravity=(0.0, -9.81, 0.0))
    large, small = m.body("large"), m.body("small", position=(APART, 0.0, 0.0))
    strand = m.body("strand", position=(0.4, 0.27, 0.0), orientation=(Z, SLOPE + 0.05))
    rims = [disc(large, LARGE, 0.1), disc(small, SMALL, 0.1)]
    for body, radius in ((large, LARGE), (small, SMALL)):
        for z in (-0.05, 0.05):  # flanges
            body.attach(cd.shapes.cylinder(radius + 0.02, 0.012), body.frame((0.0, 0.0, z)))
    stand(m.ground, [(0.0, 0.0), (APART, 0.0)], 0.035, -0.075, 0.075, -0.45)
    block(strand, (-0.7, 0.0, -0.042), (0.7, 0.012, 0.042), RUBBER)
    line = strand.attach(cd.geometry.line((-0.7, 0.7)), strand.frame(x=X), color=UNSEEN)
    first = m.revolute("A", m.ground.frame(), large.frame())
    m.revolute("B", m.ground.frame((APART, 0.0, 0.0)), small.frame())
    m.planar("flat", m.ground.frame(), strand.frame())
    m.contact("on large", line, rims[0], mode="roll")
    m.contact("on small", line, rims[1], mode="roll")
    m.drive("motor", first, angle)
    return with_masses(m)


def angle(t: Any) -> Any:
    """Angle [rad] of the large pulley at time t [s]."""
    return SPEED * t


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The slope of the strand is that of the outer tangent of two circles."""
    state = result.state
    along = state["strand"].matrix[:, 0]
    expect("direction of the strand", along, (np.cos(SLOPE), np.sin(SLOPE), 0.0))
    points = [state.contact(name).point for name in ("on large", "on small")]
    length = np.sqrt(APART**2 - (LARGE - SMALL) ** 2)
    expect("length of the strand", np.linalg.norm(points[1] - points[0]), length)
    return [f"the strand is the outer tangent of the pulleys, {length:.9f} m long between its contacts"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The ratio of the speeds, and the speed of the strand."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    for pose in moved.states:
        expect("speed of the small pulley", rates(pose, "small")[1][2], SPEED * LARGE / SMALL)
        expect("speed of the strand", np.linalg.norm(rates(pose, "strand")[0]), SPEED * LARGE)
        expect_rolling(pose, "on large", "strand", "large")
        expect_rolling(pose, "on small", "strand", "small")
    turned = mechanism["B"].coordinate(moved.states[-1]) - mechanism["B"].coordinate(moved.states[0])
    expect("angle of the small pulley", turned, SPEED * DURATION * LARGE / SMALL, 1e-8)
    return [f"the small pulley turns {LARGE / SMALL:g} times as fast as the large one, and nothing slips"]
