"""Jansen's leg: a walking linkage driven by one crank.  [Jansen2007]

Seven bodies with the thirteen published lengths a … m, here in centimetres.  The crank of length m rotates about O; the
pivot B lies a to the left of O and l below.  Two rods lead from the crank pin P: j to the knee T of the upper triangle
BTE (sides b, e, d), and k to the knee K at the end of the rod c on B.  The rod f joins E to the ankle G, and the lower
triangle KGF (sides g, h, i) carries the foot F.  The Grübler count is 42 − 10·5 = −8; there is one degree of freedom.

The crank angle determines all pins by intersections of circles: T from P and B, K from B and P, E from T and B, G from
E and K, F from K and G.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, degrees, pi, radians, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from gallery import looks
from gallery.checks import expect, placed, run_move
from gallery.masses import with_masses
from gallery.planar import Plane, flat, intersect_circles, link, pin, side

CENTIMETRE = 0.01  # m
PUBLISHED = (38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49.0, 50.0, 61.9, 7.8, 15.0)  # cm: a … m, as published
LENGTH = {name: CENTIMETRE * value for name, value in zip("abcdefghijklm", PUBLISHED, strict=True)}  # m
O, B = (0.0, 0.0), (-LENGTH["a"], -LENGTH["l"])

# Pins of the sketch [m], for a crank angle of about 30°.
SKETCH = {"P": (0.13, 0.08), "T": (-0.33, 0.32), "K": (-0.24, -0.46), "E": (-0.78, 0.0), "G": (-0.59, -0.3)}
# Side of the third pin relative to the line from the first to the second; rigid triangles (TBE, KGF) cannot flip.
SIDES = {"PBT": -1.0, "BPK": -1.0, "TBE": -1.0, "EKG": -1.0, "KGF": 1.0}
START = radians(30.0)  # crank angle at t = 0
DURATION, POSES = 2.0, 48  # s of one turn
BAR, RADIUS = 0.012, 0.012  # m: thickness of the drawn bars, radius of their pins
FLAT = 0.005  # m: the foot is on the ground while it is within this height of its lowest point


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg of a mechanism: names start with the prefix; a mirrored leg is to the right of its crank."""

    prefix: str = ""
    mirrored: bool = False

    def reflect(self, point: Plane) -> Plane:
        """Map a point between the drawing and this leg: a reflection for a mirrored leg, else the identity."""
        return (-point[0], point[1]) if self.mirrored else point

    def pins(self, crank: float, sides: dict[str, float] = SIDES) -> dict[str, Plane]:
        """Pins [m] from the crank angle [rad], by intersections of circles."""
        if self.mirrored:
            crank = pi - crank
        p = {"B": B, "P": (LENGTH["m"] * cos(crank), LENGTH["m"] * sin(crank))}
        for third, lengths in (("PBT", "jb"), ("BPK", "ck"), ("TBE", "ed"), ("EKG", "fg"), ("KGF", "ih")):
            radii = LENGTH[lengths[0]], LENGTH[lengths[1]]
            p[third[2]] = intersect_circles(p[third[0]], radii[0], p[third[1]], radii[1], sides[third])
        return {name: self.reflect(point) for name, point in p.items()}

    def add(self, m: cd.Mechanism, shaft: cd.Body, on_shaft: Plane, *, sketch: dict[str, Plane], layer: float) -> None:
        """Add six bodies and nine pins to an existing crank, drawn from pin to pin of a sketch."""
        at = {name: self.reflect(point) for name, point in {**sketch, "B": B}.items()}

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

        def third(first: str, second: str, base: str, side_sign: float) -> Plane:
            """Third pin of a triangle, in its axes, with x along its base."""
            side_sign = -side_sign if self.mirrored else side_sign
            return intersect_circles((0.0, 0.0), LENGTH[first], along(base), LENGTH[second], side_sign)

        self._draw_on(m, on_shaft, shaft, layer)
        upper_rod, lower_rod = drawn("upper_rod", "P", "T"), drawn("lower_rod", "P", "K")
        upper, rocker = drawn("upper_triangle", "B", "T"), drawn("rocker", "B", "K")
        back, lower = drawn("back_rod", "E", "G"), drawn("lower_triangle", "K", "G")
        bars = {upper_rod: "j", lower_rod: "k", rocker: "c", back: "f"}
        for body, name in bars.items():
            self._draw_bar(body, along(name))
        self._draw_triangle(upper, along("b"), third("d", "e", "b", -SIDES["TBE"]), 0)
        self._draw_triangle(lower, along("g"), self.foot_on_triangle()[:2], 0)
        pinned("P_1", shaft, on_shaft, upper_rod)
        pinned("P_2", shaft, on_shaft, lower_rod)
        pinned("B_1", m.ground, at["B"], upper)
        pinned("B_2", m.ground, at["B"], rocker)
        pinned("T", upper_rod, along("j"), upper, along("b"))
        pinned("K_1", lower_rod, along("k"), rocker, along("c"))
        pinned("K_2", lower_rod, along("k"), lower)
        pinned("E", upper, third("d", "e", "b", -SIDES["TBE"]), back)
        pinned("G", back, along("f"), lower, along("g"))

    def _z(self, layer: int) -> float:
        """Height [m] of a layer of bars over the plane of the joints; legs on both sides of a crank do not overlap."""
        return BAR * 1.1 * (-1 - layer if self.mirrored else 1 + layer)

    def _draw_on(self, m: cd.Mechanism, throw: Plane, shaft: cd.Body, layer: float) -> None:
        """The pins on the crank and on the ground."""
        ends = sorted((0.5 * self._z(0), self._z(2) + (0.6 * BAR if not self.mirrored else -0.6 * BAR)))
        looks.pin(shaft, throw, layer + ends[0], layer + ends[1], RADIUS)
        looks.pin(m.ground, self.reflect(B), layer + ends[0], layer + ends[1], RADIUS)

    def _draw_bar(self, body: cd.Body, end: Plane) -> None:
        layers = {"upper_rod": 1, "lower_rod": 2, "rocker": 1, "back_rod": 1}
        z = self._z(layers[body.name.removeprefix(self.prefix)])
        looks.bar(body, (0.0, 0.0), end, 2.8 * RADIUS, BAR, z)

    def _draw_triangle(self, body: cd.Body, second: Plane, third: Plane, layer: int) -> None:
        """Three bars, and a pin at each corner; the foot of the lower triangle is a ball."""
        corners, z = ((0.0, 0.0), second, third), self._z(layer)
        sides = np.array([np.linalg.norm(np.subtract(corners[k - 1], corners[k - 2])) for k in range(3)])
        middle = sides @ np.array(corners) / sides.sum()
        d, e = np.subtract(second, (0.0, 0.0)), np.subtract(third, (0.0, 0.0))
        inradius = abs(d[0] * e[1] - d[1] * e[0]) / sides.sum()
        window = [tuple(middle + (1 - 1.5 * RADIUS / inradius) * (np.array(p) - middle)) for p in corners]
        plate = cd.shapes.plate(corners, thickness=BAR, radius=1.4 * RADIUS, holes=[window])
        body.attach(plate, body.frame((0.0, 0.0, z), x=(1, 0, 0)))
        low, high = sorted((z, self._z(2)))
        is_lower = body.name.endswith("lower_triangle")
        for point in corners[: 2 if is_lower else 3]:
            looks.pin(body, point, low - 0.6 * BAR, high + 0.6 * BAR, RADIUS)
        if is_lower:
            body.attach(cd.shapes.sphere(2.2 * RADIUS), body.frame((*third, z)), color=looks.RUBBER)

    def foot_on_triangle(self) -> tuple[float, float, float]:
        """The foot [m] in the axes of the lower triangle."""
        side_sign = -SIDES["KGF"] if self.mirrored else SIDES["KGF"]
        return *intersect_circles((0.0, 0.0), LENGTH["i"], (LENGTH["g"], 0.0), LENGTH["h"], side_sign), 0.0

    def foot(self, state: cd.State) -> Plane:
        """World position of the foot [m]."""
        return flat(placed(state[self.prefix + "lower_triangle"], self.foot_on_triangle()))

    def sides(self, state: cd.State) -> dict[str, float]:
        """Which of the two circle intersections each pin is, in a state."""
        local = {
            "P": ("upper_rod", 0.0), "T": ("upper_rod", LENGTH["j"]), "K": ("lower_triangle", 0.0),
            "E": ("back_rod", 0.0), "G": ("back_rod", LENGTH["f"]),
        }  # fmt: skip
        p = {pin: self.reflect(flat(placed(state[self.prefix + name], (x, 0, 0)))) for pin, (name, x) in local.items()}
        p["B"], p["F"] = B, self.reflect(self.foot(state))
        return {key: side(p[key[0]], p[key[1]], p[key[2]]) for key in SIDES}


LEG = Leg()


def crank_angle(t: Any) -> Any:
    """Crank angle [rad] at time t [s]: constant speed."""
    return START + 2 * cd.pi * t / DURATION


def build() -> cd.Mechanism:
    """A sketch with two-digit coordinates."""
    m = cd.Mechanism("jansen_leg", gravity=(0.0, -9.81, 0.0))
    crank = link(m, "crank", O, SKETCH["P"])
    m.drive("motor", pin(m, "O", m.ground, O, crank), crank_angle)
    LEG.add(m, crank, (LENGTH["m"], 0.0), sketch=SKETCH, layer=0.0)
    looks.bar(crank, (0.0, 0.0), (LENGTH["m"], 0.0), 3.2 * RADIUS, BAR)
    looks.pin(m.ground, O, -1.4 * BAR, 0.6 * BAR, 1.2 * RADIUS)
    for at in (O, B):
        m.ground.attach(cd.shapes.cylinder(3 * RADIUS, BAR), m.ground.frame((*at, -1.4 * BAR)))
    looks.bar(m.ground, O, B, 2.0 * RADIUS, BAR, -1.4 * BAR)
    looks.rod(m.ground, (*B, -1.4 * BAR), (*B, BAR), RADIUS, looks.STEEL)
    return with_masses(m)


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The foot against five intersections of circles."""
    state = result.state
    phi = mechanism["O"].coordinate(state)
    x, y = LEG.foot(state)
    expect("foot", (x, y), LEG.pins(phi, LEG.sides(state))["F"])
    expect("height of the foot over the plane", placed(state["lower_triangle"], (0, 0, 0))[2], 0.0)
    return [f"at crank angle {degrees(phi):.4f}° the foot is at ({x:.6f}, {y:.6f}) m, as the circle intersections give"]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """One turn of the crank: every position of the foot against the circles."""
    feet = []
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        angle = START + 2 * pi * pose.time / DURATION
        feet.append(LEG.foot(pose))
        expect(f"foot at crank angle {degrees(angle):.1f}°", feet[-1], LEG.pins(angle)["F"])
    expect("foot after one turn", feet[-1], feet[0])
    xs, ys = np.array(feet).T
    down = ys < ys.min() + FLAT
    stride, lift = float(np.ptp(xs[down])), float(np.ptp(ys))
    if down[:-1].sum() < POSES // 3:
        raise ExampleError(f"the foot is on the ground in only {down[:-1].sum()} of {POSES} poses")
    return [
        f"over one turn the foot follows the closed form, in {POSES} poses; its stride is {stride:.3f} m within "
        f"{1e3 * FLAT:g} mm of the ground, its lift {lift:.3f} m"
    ]
