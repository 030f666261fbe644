"""Beach animal of 217 parts: 36 of Jansen's legs on one crankshaft.  [Jansen2007]

Eighteen throws a third of a turn apart, on each a leg of :mod:`cardan.examples.jansen_leg` to the left and its mirror
image to the right.  A leg has six bodies and nine hinges: 6·217 − 5·325 = −323 by count, and with 36·9 = 324 equations
too many, one degree of freedom.

Every foot follows from the crank angle through its own five circles.
"""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cardan as cd
from cardan.examples.jansen_leg import LENGTH, Leg
from cardan.examples.registry import Example, ExampleError, expect, placed, played, rotated
from cardan.math import euler

THROWS = 18
THIRD = 2 * pi / 3  # rad, from throw to throw
LAYER = 0.1  # m, from throw to throw
DRAWN = radians(20.0)  # crank angle of the sketch, and at t = 0
DURATION = 3.0  # s of a turn
ROUGH = 0.025  # m: pins are drawn that far from where they belong, at most
POSES = 9  # of a third of a turn
DOWN = 0.005  # m: feet within this of the lowest carry the animal,
ENOUGH = 2 * THROWS // 3  # which must always be at least these many

Z, X = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)


def crank_angle(t: Any) -> Any:
    """At a time [s]: an even turn."""
    return DRAWN + 2 * cd.pi * t / DURATION


def legs() -> list[tuple[int, Leg]]:
    """Every leg with the number of its throw."""
    return [(k, Leg(f"{name}_{k + 1}_", name == "right")) for k in range(THROWS) for name in ("left", "right")]


def build() -> cd.Mechanism:
    """Every pin drawn somewhat off, another way on every leg."""
    m = cd.Mechanism("strandbeest")
    rng = np.random.default_rng(1990)
    shaft = m.body("crankshaft", orientation=euler.from_axis_angle(Z, DRAWN))
    m.drive("wind", m.revolute("O", m.ground.frame(z=Z, x=X), shaft.frame(z=Z, x=X)), crank_angle)
    for k, leg in legs():
        pins = leg.pins(DRAWN + k * THIRD)
        sketch = {
            name: leg.seen((x + rng.uniform(-ROUGH, ROUGH), y + rng.uniform(-ROUGH, ROUGH)))
            for name, (x, y) in pins.items()
        }
        throw = (LENGTH["m"] * cos(k * THIRD), LENGTH["m"] * sin(k * THIRD))
        leg.add(m, shaft, throw, sketch=sketch, layer=k * LAYER)
    return m


def _feet(mechanism: cd.Mechanism, state: cd.State) -> NDArray[np.float64]:
    """Heights [m] of the feet, each against its circles."""
    phi = mechanism["O"].coordinate(state)
    expect("axis of the crankshaft", rotated(state["crankshaft"], Z), Z)
    heights = []
    for k, leg in legs():
        foot = leg.foot(state)
        expect(f"foot {leg.prefix}", foot, leg.pins(phi + k * THIRD, leg.sides(state))["F"])
        expect(f"layer of foot {leg.prefix}", placed(state[leg.prefix + "lower_triangle"], (0, 0, 0))[2], k * LAYER)
        heights.append(foot[1])
    return np.array(heights)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Every foot by circles."""
    heights = _feet(mechanism, result.state)
    phi = mechanism["O"].coordinate(result.state)
    return [
        f"{len(mechanism.bodies)} parts; at crank angle {degrees(phi):.4f}° all {len(heights)} feet stand where the "
        "circles put them"
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """A third of a turn, after which the next legs do the same: it stands on enough feet, and goes level."""
    lowest, fewest = [], THROWS
    for pose in played(mechanism, np.linspace(0.0, DURATION / 3, POSES), state).states:
        heights = _feet(mechanism, pose)
        lowest.append(float(heights.min()))
        fewest = min(fewest, int((heights < lowest[-1] + DOWN).sum()))
    if fewest < ENOUGH:
        raise ExampleError(f"the animal stands on {fewest} of its feet, and would fall")
    bobs = 1e3 * (max(lowest) - min(lowest))
    return [f"it walks on {fewest} feet or more, and its hips bob by {bobs:.2f} mm, in {POSES} poses"]


EXAMPLE = Example(
    "strandbeest",
    "beach animal of 217 parts, 36 walking legs",
    build,
    check,
    dof=1,
    gruebler=-323,
    motion=motion,
    duration=DURATION,
)
