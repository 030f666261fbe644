"""Walking machine of 217 parts: 36 of Jansen's legs on one crankshaft.  [Jansen2007]

The crankshaft has eighteen throws, a third of a turn apart.  Each drives a leg of :mod:`gallery.jansen_leg` on
the left and its mirror image on the right.  A leg has six bodies and nine hinges.  The Grübler count is
6·217 − 5·325 = −323; with 36·9 = 324 redundant equations there is one degree of freedom.

The crank angle determines every foot through five intersections of circles.
"""

from __future__ import annotations

from math import cos, degrees, pi, radians, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler
from gallery import looks
from gallery.checks import expect, placed, rotated, run_move
from gallery.jansen_leg import BAR, LENGTH, RADIUS, B, Leg
from gallery.masses import with_masses

THROWS = 18
THIRD = 2 * pi / 3  # rad, from throw to throw
LAYER = 0.1  # m, from throw to throw
DRAWN = radians(20.0)  # crank angle in the sketch and at t = 0
DURATION = 3.0  # s of one turn
ROUGH = 0.025  # m: maximal error of a pin coordinate in the sketch
POSES = 9  # in a third of a turn
DOWN = 0.005  # m: feet within this height of the lowest foot support the machine
ENOUGH = 2 * THROWS // 3  # least number of supporting feet

Z, X = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)


def crank_angle(t: Any) -> Any:
    """Crank angle [rad] at time t [s]: constant speed."""
    return DRAWN + 2 * cd.pi * t / DURATION


def legs() -> list[tuple[int, Leg]]:
    """All legs, each with the index of its throw."""
    return [(k, Leg(f"{name}_{k + 1}_", name == "right")) for k in range(THROWS) for name in ("left", "right")]


def build() -> cd.Mechanism:
    """Every pin drawn with its own random error."""
    m = cd.Mechanism("strandbeest", gravity=(0.0, -9.81, 0.0))
    rng = np.random.default_rng(1990)
    shaft = m.body("crankshaft", orientation=euler.from_axis_angle(Z, DRAWN))
    m.drive("wind", m.revolute("O", m.ground.frame(z=Z, x=X), shaft.frame(z=Z, x=X)), crank_angle)
    _draw_frame(m, shaft)
    for k, leg in legs():
        pins = leg.pins(DRAWN + k * THIRD)
        sketch = {
            name: leg.reflect((x + rng.uniform(-ROUGH, ROUGH), y + rng.uniform(-ROUGH, ROUGH)))
            for name, (x, y) in pins.items()
        }
        throw = (LENGTH["m"] * cos(k * THIRD), LENGTH["m"] * sin(k * THIRD))
        leg.add(m, shaft, throw, sketch=sketch, layer=k * LAYER)
    return with_masses(m)


def _draw_frame(m: cd.Mechanism, shaft: cd.Body) -> None:
    """The crankshaft: webs and journals; and the rails of the frame, to which the legs are hinged."""
    reach = 0.5 * LAYER
    for k in range(THROWS):
        throw = (LENGTH["m"] * cos(k * THIRD), LENGTH["m"] * sin(k * THIRD))
        for side in (-0.42, 0.42):
            looks.bar(shaft, (0.0, 0.0), throw, 3.2 * RADIUS, 0.6 * BAR, (k + side) * LAYER)
        looks.rod(shaft, (0, 0, (k + 0.42) * LAYER), (0, 0, (k + 0.58) * LAYER), RADIUS, looks.STEEL)
    looks.rod(shaft, (0, 0, -1.5 * LAYER), (0, 0, -0.42 * LAYER), RADIUS, looks.STEEL)
    last = (THROWS - 1) * LAYER
    for side in (-1.0, 1.0):
        at = (side * B[0], B[1])
        looks.rod(m.ground, (*at, -reach - 0.06), (*at, last + reach + 0.06), 0.7 * RADIUS)
    for z in (-reach - 0.05, last + reach + 0.05):
        for side in (-1.0, 1.0):
            looks.bar(m.ground, (0.0, 0.0), (side * B[0], B[1]), 4 * RADIUS, 1.5 * BAR, z)


def _feet(mechanism: cd.Mechanism, state: cd.State) -> NDArray[np.float64]:
    """Heights [m] of the feet; checks each against its circles."""
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
    """Every foot against its circles."""
    heights = _feet(mechanism, result.state)
    phi = mechanism["O"].coordinate(result.state)
    return [
        f"{len(mechanism.bodies)} parts; at crank angle {degrees(phi):.4f}° all {len(heights)} feet agree "
        "with the circle intersections"
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """A third of a turn, the period of the gait: enough feet support the machine, and its height is nearly constant."""
    lowest, fewest = [], THROWS
    for pose in run_move(mechanism, np.linspace(0.0, DURATION / 3, POSES), state).states:
        heights = _feet(mechanism, pose)
        lowest.append(float(heights.min()))
        fewest = min(fewest, int((heights < lowest[-1] + DOWN).sum()))
    if fewest < ENOUGH:
        raise ExampleError(f"only {fewest} feet support the machine; {ENOUGH} are needed")
    bobs = 1e3 * (max(lowest) - min(lowest))
    return [f"at least {fewest} feet are on the ground, and the height varies by {bobs:.2f} mm, in {POSES} poses"]
