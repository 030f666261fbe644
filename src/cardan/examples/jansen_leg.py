"""Jansen's leg: one crank, and a foot that walks.  [Jansen2007]

Seven bodies with the thirteen published lengths a … m, here in centimetres.  The crank of length m turns about O; the
pivot B lies a to the left of O and l below.  Two rods lead from the crank pin P: j to the knee T of the upper triangle
BTE (sides b, e, d), k to the knee K at the end of the rod c on B.  The rod f goes from E to the ankle G, and the lower
triangle KGF (sides g, h, i) carries the foot F.  42 − 10·5 = −8 by count, one degree of freedom.

Everything follows from the crank by circles: T from P and B, K from B and P, E from T and B, G from E and K, F from K
and G.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.planar import Plane, flat, link, meeting, pin, side
from cardan.examples.registry import Example, ExampleError, expect, placed, played

CENTIMETRE = 0.01  # m
HOLY = (38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49.0, 50.0, 61.9, 7.8, 15.0)  # cm: a … m, as published
LENGTH = {name: CENTIMETRE * value for name, value in zip("abcdefghijklm", HOLY, strict=True)}  # m
O, B = (0.0, 0.0), (-LENGTH["a"], -LENGTH["l"])

# Pins of the sketch [m], with the crank at about 30°.
SKETCH = {"P": (0.13, 0.08), "T": (-0.33, 0.32), "K": (-0.24, -0.46), "E": (-0.78, 0.0), "G": (-0.59, -0.3)}
# On which side of the way from the first pin to the second the third lies; those of the triangles cannot change.
SIDES = {"PBT": -1.0, "BPK": -1.0, "TBE": -1.0, "EKG": -1.0, "KGF": 1.0}
START = radians(30.0)  # crank angle at t = 0
DURATION, POSES = 2.0, 48  # s of a turn
FLAT = 0.005  # m: how level the foot goes on the lowest part of its way, where it carries


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg of a mechanism: names begin with the prefix; a mirrored one stands to the right of its crank."""

    prefix: str = ""
    mirrored: bool = False

    def seen(self, point: Plane) -> Plane:
        """A point of the drawing where this leg has it, and the other way round."""
        return (-point[0], point[1]) if self.mirrored else point

    def pins(self, crank: float, sides: dict[str, float] = SIDES) -> dict[str, Plane]:
        """Pins [m] by circles alone, with the crank at an angle [rad]."""
        if self.mirrored:
            crank = pi - crank
        p = {"B": B, "P": (LENGTH["m"] * cos(crank), LENGTH["m"] * sin(crank))}
        for third, lengths in (("PBT", "jb"), ("BPK", "ck"), ("TBE", "ed"), ("EKG", "fg"), ("KGF", "ih")):
            radii = LENGTH[lengths[0]], LENGTH[lengths[1]]
            p[third[2]] = meeting(p[third[0]], radii[0], p[third[1]], radii[1], sides[third])
        return {name: self.seen(point) for name, point in p.items()}

    def add(self, m: cd.Mechanism, shaft: cd.Body, on_shaft: Plane, *, sketch: dict[str, Plane], layer: float) -> None:
        """Six bodies and nine pins, beside a crank that is there: drawn from pin to pin of a sketch."""
        at = {name: self.seen(point) for name, point in {**sketch, "B": B}.items()}

        def drawn(name: str, first: str, second: str) -> cd.Body:
            return link(m, self.prefix + name, at[first], at[second], layer=layer)

        def pinned(name: str, a: cd.Body, on_a: Plane, b: cd.Body, on_b: Plane = (0.0, 0.0)) -> None:
            m.revolute(
                self.prefix + name,
                a.frame((*on_a, layer if a in (shaft, m.ground) else 0.0), z=(0, 0, 1), x=(1, 0, 0)),
                b.frame((*on_b, 0.0), z=(0, 0, 1), x=(1, 0, 0)),
            )

        def along(name: str) -> Plane:
            return LENGTH[name], 0.0

        def third(first: str, second: str, base: str, handed: float) -> Plane:
            """Third pin of a triangle, in its axes: x along its base."""
            handed = -handed if self.mirrored else handed
            return meeting((0.0, 0.0), LENGTH[first], along(base), LENGTH[second], handed)

        upper_rod, lower_rod = drawn("upper_rod", "P", "T"), drawn("lower_rod", "P", "K")
        upper, rocker = drawn("upper_triangle", "B", "T"), drawn("rocker", "B", "K")
        back, lower = drawn("back_rod", "E", "G"), drawn("lower_triangle", "K", "G")
        pinned("P_1", shaft, on_shaft, upper_rod)
        pinned("P_2", shaft, on_shaft, lower_rod)
        pinned("B_1", m.ground, at["B"], upper)
        pinned("B_2", m.ground, at["B"], rocker)
        pinned("T", upper_rod, along("j"), upper, along("b"))
        pinned("K_1", lower_rod, along("k"), rocker, along("c"))
        pinned("K_2", lower_rod, along("k"), lower)
        pinned("E", upper, third("d", "e", "b", -SIDES["TBE"]), back)
        pinned("G", back, along("f"), lower, along("g"))

    def foot_on_triangle(self) -> tuple[float, float, float]:
        """The foot [m] in the axes of the lower triangle."""
        handed = -SIDES["KGF"] if self.mirrored else SIDES["KGF"]
        return *meeting((0.0, 0.0), LENGTH["i"], (LENGTH["g"], 0.0), LENGTH["h"], handed), 0.0

    def foot(self, state: cd.State) -> Plane:
        """Where the foot is [m]."""
        return flat(placed(state[self.prefix + "lower_triangle"], self.foot_on_triangle()))

    def sides(self, state: cd.State) -> dict[str, float]:
        """Which of the two meetings each pin is, in a state."""
        local = {
            "P": ("upper_rod", 0.0), "T": ("upper_rod", LENGTH["j"]), "K": ("lower_triangle", 0.0),
            "E": ("back_rod", 0.0), "G": ("back_rod", LENGTH["f"]),
        }  # fmt: skip
        p = {pin: self.seen(flat(placed(state[self.prefix + name], (x, 0, 0)))) for pin, (name, x) in local.items()}
        p["B"], p["F"] = B, self.seen(self.foot(state))
        return {key: side(p[key[0]], p[key[1]], p[key[2]]) for key in SIDES}


LEG = Leg()


def crank_angle(t: Any) -> Any:
    """At a time [s]: an even turn."""
    return START + 2 * cd.pi * t / DURATION


def build() -> cd.Mechanism:
    """Drawn to two digits, in layers."""
    m = cd.Mechanism("jansen_leg")
    crank = link(m, "crank", O, SKETCH["P"])
    m.drive("motor", pin(m, "O", m.ground, O, crank), crank_angle)
    LEG.add(m, crank, (LENGTH["m"], 0.0), sketch=SKETCH, layer=0.0)
    return m


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The foot from the crank, through five meetings of circles."""
    state = result.state
    phi = mechanism["O"].coordinate(state)
    x, y = LEG.foot(state)
    expect("foot", (x, y), LEG.pins(phi, LEG.sides(state))["F"])
    expect("height of the foot over the plane", placed(state["lower_triangle"], (0, 0, 0))[2], 0.0)
    return [f"at crank angle {degrees(phi):.4f}° the foot stands at ({x:.6f}, {y:.6f}) m, where five circles put it"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """A whole turn of the crank: every foot print by circles."""
    feet = []
    for pose in played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        angle = START + 2 * pi * pose.time / DURATION
        feet.append(LEG.foot(pose))
        expect(f"foot at crank angle {degrees(angle):.1f}°", feet[-1], LEG.pins(angle)["F"])
    expect("foot after a whole turn", feet[-1], feet[0])
    xs, ys = np.array(feet).T
    down = ys < ys.min() + FLAT
    stride, lift = float(np.ptp(xs[down])), float(np.ptp(ys))
    if down[:-1].sum() < POSES // 3:
        raise ExampleError(f"the foot is down for {down[:-1].sum()} of {POSES} poses only")
    return [
        f"through a turn of the crank the foot follows the circles, in {POSES} poses; it strides {stride:.3f} m within "
        f"{1e3 * FLAT:g} mm of the ground, and lifts by {lift:.3f} m"
    ]


EXAMPLE = Example(
    "jansen_leg",
    "Jansen's walking leg, the holy numbers",
    build,
    check,
    dof=1,
    gruebler=-8,
    motion=motion,
    duration=DURATION,
)
