"""Random loops whose branches have a closed form, and branches of loops of the gallery.

A branch is a part of the poses of a mechanism that can only be left through a singular pose, in which the joints lose
rank.  It is told by the sign of a sine: of the angle between two links that cannot be in line, or, in loops that have
singular poses, by these signs and by the mode of motion.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cardan as cd
from gallery import rsur

X, Y, Z = np.eye(3)
NEAR = 0.02  # a smaller sine is too near to a singular pose: its branch is unknown
SIDE = 1e-9  # a smaller sine has no sign


@dataclass(frozen=True)
class Loop:
    """A mechanism, its branch in a state (None where it is unknown), and a drag through a singular pose, or None.

    ``through``: body, and a rotation of it about its origin [rad] that leads through the next singular pose.
    """

    mechanism: cd.Mechanism
    branch: Callable[[cd.State], Hashable]
    through: str | None = None

    def goal(self, state: cd.State, rng: np.random.Generator) -> Any:
        """In half of the drags a hand on that body is led round its hinge; where its point is to be."""
        if self.through is None or rng.random() < 0.5:
            return None
        pose = state[self.through]
        angle = rng.uniform(-np.pi, np.pi)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ pose.matrix
        return self.through, lambda local: pose.position + turn @ local


def turned(angle: float) -> tuple[float, float, float, float]:
    return (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2))


def sine(one: Any, two: Any) -> float:
    """Sine of the angle in the xy plane from one vector to another."""
    return float(np.cross(one, two)[2] / (np.linalg.norm(one) * np.linalg.norm(two)))


def sign_of(value: float) -> Hashable:
    return None if abs(value) < SIDE else value > 0.0


def linkage(a: float, b: float, c: float, d: float, side: float) -> cd.Mechanism:
    """Crank a along x, coupler b, rocker c, frame d [m]; side: of the point between coupler and rocker."""
    x = (d * d + b * b - c * c - a * a) / (2 * (d - a))
    y = side * np.sqrt(b * b - (x - a) ** 2)
    m = cd.Mechanism("four_bar")
    crank = m.body("crank")
    coupler = m.body("coupler", position=(a, 0, 0), orientation=turned(np.arctan2(y, x - a)))
    rocker = m.body("rocker", position=(d, 0, 0), orientation=turned(np.arctan2(y, x - d)))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((a, 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((b, 0, 0)), rocker.frame((c, 0, 0)))
    m.revolute("D", m.ground.frame((d, 0, 0)), rocker.frame())
    return m


def four_bar(rng: np.random.Generator) -> Loop:
    """Of Grashof's kind, so with two circuits; the margin of his condition is between 1e-3 and 1.

    At the two joints that are not on the shortest link, the links are never in line.
    """
    while True:
        lengths = rng.uniform(0.5, 3.0, 4)
        a, b, c, d = lengths
        s = np.sort(lengths)
        x = (d * d + b * b - c * c - a * a) / (2 * (d - a))
        if s[1] + s[2] - s[0] - s[3] > 10 ** rng.uniform(-3, 0) and abs(x - a) < 0.9 * b and abs(d - a) > 0.1:
            break
    m = linkage(a, b, c, d, rng.choice([-1.0, 1.0]))
    # the links, and those two that meet in a joint that is not on the shortest one
    pair = {0: (1, 2), 1: (2, 3), 2: (3, 0), 3: (0, 1)}[int(np.argmin(lengths))]

    def branch(state: cd.State) -> Hashable:
        links = [*(state[name].matrix[:, 0] for name in ("crank", "coupler", "rocker")), X]
        return sign_of(sine(links[pair[0]], links[pair[1]]))

    return Loop(m, branch, "crank")


def slider_crank(rng: np.random.Generator) -> Loop:
    """The rod is longer than the crank, so it is never perpendicular to the slide."""
    a = rng.uniform(0.3, 2.0)
    b = a * (1 + 10 ** rng.uniform(-2.5, 0.3))
    m = slide_loop(a, b, rng.uniform(-np.pi, np.pi), rng.choice([-1.0, 1.0]))
    return Loop(m, lambda state: sign_of(float(state["rod"].matrix[0, 0])), "crank")


def slide_loop(a: float, b: float, angle: float, side: float) -> cd.Mechanism:
    rod_angle = np.arcsin(-a * np.sin(angle) / b)
    rod_angle = rod_angle if side > 0 else np.pi - rod_angle
    m = cd.Mechanism("slider_crank")
    place = a * np.array([np.cos(angle), np.sin(angle), 0])
    crank = m.body("crank", orientation=turned(angle))
    rod = m.body("rod", position=place, orientation=turned(rod_angle))
    slider = m.body("slider", position=(place[0] + b * np.cos(rod_angle), 0, 0))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((a, 0, 0)), rod.frame())
    m.revolute("C", rod.frame((b, 0, 0)), slider.frame())
    m.prismatic("slide", m.ground.frame(z=X), slider.frame(z=X))
    return m


def equal_slider_crank(rng: np.random.Generator) -> Loop:
    """Rod as long as the crank: singular where both are perpendicular to the slide.

    From there either the slider moves, or it stays over the crank's bearing and the rod turns with the crank.
    """
    a = rng.uniform(0.3, 2.0)
    m = slide_loop(a, a, rng.uniform(-1.2, 1.2), 1.0)

    def branch(state: cd.State) -> Hashable:
        crank, rod = (state[name].matrix[:, 0] for name in ("crank", "rod"))
        if abs(crank[0]) < NEAR:
            return None
        return bool(crank[0] > 0), bool(rod @ crank < -1 + 0.5 * NEAR**2)

    return Loop(m, branch, "crank")


def parallelogram(rng: np.random.Generator) -> Loop:
    """Opposite links are equal: singular where all are in line; there it may become an antiparallelogram."""
    a, d = rng.uniform(0.5, 2.0), rng.uniform(0.5, 2.0)
    if abs(a - d) < 0.2:
        d += 0.5
    angle = rng.uniform(0.3, 2.8) * rng.choice([-1.0, 1.0])
    m = cd.Mechanism("parallelogram")
    tip = a * np.array([np.cos(angle), np.sin(angle), 0])
    crank = m.body("crank", orientation=turned(angle))
    coupler = m.body("coupler", position=tip)
    rocker = m.body("rocker", position=(d, 0, 0), orientation=turned(angle))
    m.revolute("A", m.ground.frame(), crank.frame())
    m.revolute("B", crank.frame((a, 0, 0)), coupler.frame())
    m.revolute("C", coupler.frame((d, 0, 0)), rocker.frame((a, 0, 0)))
    m.revolute("D", m.ground.frame((d, 0, 0)), rocker.frame())

    def branch(state: cd.State) -> Hashable:
        crank, coupler, rocker = (state[name].matrix[:, 0] for name in ("crank", "coupler", "rocker"))
        if min(abs(crank[1]), abs(rocker[1])) < NEAR:  # of the shorter links the sine is large enough elsewhere
            return None
        return bool(crank[1] > 0), bool(coupler[0] > 0 and abs(coupler[1]) < 1e-6)

    return Loop(m, branch, "crank" if a < d else "rocker")


def five_bar(rng: np.random.Generator) -> Loop:
    """Two freedoms.  The tips of the cranks are never so far apart, or so near, that the links between are in line."""
    d = rng.uniform(2.0, 3.0)
    a, e = rng.uniform(0.2, 0.6, 2)
    b = rng.uniform(0.55, 0.8) * (d + a + e)
    c = b + rng.uniform(-0.9, 0.9) * (d - a - e)
    if b + c < 1.001 * (d + a + e):
        c = 1.001 * (d + a + e) - b
    p, q = rng.uniform(-np.pi, np.pi, 2)
    left = a * np.array([np.cos(p), np.sin(p), 0])
    right = np.array([d, 0, 0]) + e * np.array([np.cos(q), np.sin(q), 0])
    reach = float(np.linalg.norm(right - left))
    x = (reach * reach + b * b - c * c) / (2 * reach)
    along = (right - left) / reach
    tip = left + x * along + rng.choice([-1.0, 1.0]) * np.sqrt(b * b - x * x) * np.cross(Z, along)
    m = cd.Mechanism("five_bar")
    crank_a = m.body("crank", orientation=turned(p))
    crank_e = m.body("other", position=(d, 0, 0), orientation=turned(q))
    link_b = m.body("link_b", position=left, orientation=turned(np.arctan2(*(tip - left)[1::-1])))
    link_c = m.body("link_c", position=right, orientation=turned(np.arctan2(*(tip - right)[1::-1])))
    m.revolute("A", m.ground.frame(), crank_a.frame())
    m.revolute("B", crank_a.frame((a, 0, 0)), link_b.frame())
    m.revolute("C", link_b.frame((b, 0, 0)), link_c.frame((c, 0, 0)))
    m.revolute("D", crank_e.frame((e, 0, 0)), link_c.frame())
    m.revolute("E", m.ground.frame((d, 0, 0)), crank_e.frame())
    return Loop(m, lambda state: sign_of(sine(state["link_b"].matrix[:, 0], state["link_c"].matrix[:, 0])), "crank")


def spatial(rng: np.random.Generator) -> Loop:
    """Crank about z, coupler with a ball and a universal joint, rocker about a random axis: [Liu2013] figure 5, varied.

    The distance of the ends of the coupler has derivative zero in the rocker's angle where the circuits would meet.
    Lengths are such that this does not happen for any angle of the crank.
    """
    while True:
        a, c = rng.uniform(0.3, 0.8), rng.uniform(1.5, 2.5)
        D = np.array([*rng.uniform(1.5, 3.0, 2), rng.uniform(-0.5, 0.5)])
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        zero = np.cross(axis, rng.normal(size=3))
        zero /= np.linalg.norm(zero)
        other = np.cross(axis, zero)
        angle = rng.uniform(-np.pi, np.pi)
        tip = D + c * (np.cos(angle) * zero + np.sin(angle) * other)
        b = float(np.linalg.norm(tip - a * X))
        crank = np.linspace(0, 2 * np.pi, 400)
        ends = a * np.column_stack([np.cos(crank), np.sin(crank), 0 * crank]) - D
        # |ends − c(cos ψ zero + sin ψ other)|² = b²
        u, v = 2 * c * ends @ zero, 2 * c * ends @ other
        w = (ends * ends).sum(axis=1) + c * c - b * b
        if (u * u + v * v - w * w).min() > 0.05:
            break
    m = cd.Mechanism("spatial")
    along = (tip - a * X) / b
    one = m.body("crank")
    two = m.body("coupler", position=a * X, orientation=frame_of(along, np.cross(along, axis)))
    three = m.body("rocker", position=D, orientation=frame_of((tip - D) / c, axis))
    m.revolute("A", m.ground.frame(), one.frame())
    m.spherical("B", one.point((a, 0, 0)), two.point())
    m.universal("C", two.frame((b, 0, 0), z=Z), three.frame((c, 0, 0), z=Z))
    m.revolute("D", m.ground.frame(D, z=axis), three.frame())
    return Loop(m, lambda state: spatial_branch(state, a, c, D, axis), "crank")


def frame_of(x: Any, z: Any) -> Any:
    """Quaternion of a frame with x axis x, and z axis nearest to z."""
    from cardan.math import euler

    z = z - (z @ x) * x
    z /= np.linalg.norm(z)
    return euler.from_matrix(np.column_stack([x, np.cross(z, x), z]))


def spatial_branch(state: cd.State, a: float, c: float, D: Any, axis: Any) -> Hashable:
    """Signs of the rocker, and of the coupler's rotation about itself, which the universal joint leaves two of."""
    x, _, z = state["coupler"].matrix.T
    signs = sign_of(rocker_slope(state, a, c, D, axis)), sign_of(float(z @ np.cross(x, axis)))
    return None if None in signs else signs


def rocker_slope(state: cd.State, a: float, c: float, D: Any, axis: Any) -> float:
    """Derivative of the half squared distance of the coupler's ends in the rocker's angle [m²/rad]."""
    ball = a * state["crank"].matrix[:, 0]
    arm = c * state["rocker"].matrix[:, 0]
    return float((D + arm - ball) @ np.cross(axis, arm))


def gallery_loop(name: str, m: cd.Mechanism) -> Loop | None:
    """The branch of a loop of the gallery, where it has a closed form."""
    if name == "slider_crank":
        return Loop(m, lambda state: sign_of(float(state["rod"].matrix[0, 0])), "crank")
    if name == "rsur":
        D, axis = np.array(rsur.D), np.array(rsur.ROCKER_AXIS, dtype=float)
        return Loop(m, lambda state: spatial_branch(state, rsur.CRANK, rsur.ROCKER, D, axis), "crank")
    return None


LOOPS: dict[str, Callable[[np.random.Generator], Loop]] = {
    "four_bar": four_bar,
    "slider_crank": slider_crank,
    "five_bar": five_bar,
    "spatial": spatial,
    "parallelogram": parallelogram,
    "equal_slider_crank": equal_slider_crank,
}
