"""Linkages with closed forms, as references for driven motions: plain NumPy, independent of the library.

Each linkage is built in one pose of one branch; its closed form gives every other pose of that branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cardan as cd
from mechanisms import rotation, unit

X, Y, Z = np.eye(3)


def about_z(angle):
    """Quaternion of a rotation about z."""
    return np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)


def heading(v):
    return np.arctan2(v[1], v[0])


def polar(length, angle):
    return length * np.array([np.cos(angle), np.sin(angle)])


@dataclass(frozen=True)
class FourBar:
    """Crank a about the origin, coupler b, rocker c about (d, 0); ``side``: +1 if C is to the left of BD."""

    a: float
    b: float
    c: float
    d: float
    side: int = 1

    def corner(self, theta):
        """C for a crank angle; None if the linkage cannot reach it."""
        B, D = polar(self.a, theta), np.array([self.d, 0.0])
        span = np.linalg.norm(D - B)
        if not abs(self.b - self.c) <= span <= self.b + self.c:
            return None
        along = (self.b**2 - self.c**2 + span**2) / (2 * span)
        e = (D - B) / span
        return B + along * e + self.side * np.sqrt(max(self.b**2 - along**2, 0.0)) * np.array([-e[1], e[0]])

    def dead(self, theta, direction):
        """Angle by which the crank can rotate until coupler and rocker are collinear; inf if it rotates fully."""
        found = [np.inf]
        for reach in (self.b + self.c, abs(self.b - self.c)):
            cosine = (self.a**2 + self.d**2 - reach**2) / (2 * self.a * self.d)
            if abs(cosine) <= 1:
                found += [((s * np.arccos(cosine) - theta) * direction) % (2 * np.pi) for s in (1, -1)]
        return min(found)

    def build(self, theta, corner=None, into=None, tag=""):
        """The mechanism at a crank angle; its corner C is given or computed by the closed form.

        ``into``: an existing mechanism to which the four-bar is added, with ``tag`` appended to all names.
        """
        B, D = polar(self.a, theta), np.array([self.d, 0.0])
        C = self.corner(theta) if corner is None else corner
        m = cd.Mechanism("four-bar") if into is None else into
        crank = m.body(f"crank{tag}", orientation=about_z(theta))
        coupler = m.body(f"coupler{tag}", position=(*B, 0), orientation=about_z(heading(C - B)))
        rocker = m.body(f"rocker{tag}", position=(*D, 0), orientation=about_z(heading(C - D)))
        m.revolute(f"A{tag}", m.ground.frame(x=X), crank.frame(x=X))
        m.revolute(f"B{tag}", crank.frame((self.a, 0, 0), x=X), coupler.frame(x=X))
        m.revolute(f"C{tag}", coupler.frame((self.b, 0, 0), x=X), rocker.frame((self.c, 0, 0), x=X))
        m.revolute(f"D{tag}", m.ground.frame((self.d, 0, 0), x=X), rocker.frame(x=X))
        return m

    def corner_of(self, state, tag=""):
        return state[f"coupler{tag}"].point((self.b, 0, 0))[:2]


@dataclass(frozen=True)
class SliderCrank:
    """Crank r about the origin, rod l, slider along x at height ``offset``; ``side``: +1 if ahead of the crank."""

    r: float
    l: float
    offset: float = 0.0
    side: int = 1

    def place(self, theta):
        """x of the slider; None if the rod cannot reach it."""
        square = self.l**2 - (self.offset - self.r * np.sin(theta)) ** 2
        return self.r * np.cos(theta) + self.side * np.sqrt(square) if square >= 0 else None

    def build(self, theta):
        B = polar(self.r, theta)
        C = np.array([self.place(theta), self.offset])
        m = cd.Mechanism("slider-crank")
        crank = m.body("crank", orientation=about_z(theta))
        rod = m.body("rod", position=(*B, 0), orientation=about_z(heading(C - B)))
        slider = m.body("slider", position=(*C, 0))
        m.revolute("A", m.ground.frame(x=X), crank.frame(x=X))
        m.revolute("B", crank.frame((self.r, 0, 0), x=X), rod.frame(x=X))
        m.revolute("C", rod.frame((self.l, 0, 0), x=X), slider.frame(x=X))
        m.prismatic("P", m.ground.frame((0, self.offset, 0), z=X, x=Y), slider.frame(z=X, x=Y))
        return m


class RSUR:
    """Spatial four-bar: crank 1 about z, rocker 2 about a skew axis, coupler with a ball and a universal joint.

    The rocker angle satisfies  P cos φ + Q sin φ = K,  with P, Q the components of D − B perpendicular to its axis.
    """

    D = np.array([3.0, 0.0, 1.0])
    axis = unit([0.0, 1.0, 0.3])
    e1 = unit(np.array([0.2, 0.0, 1.0]) - axis * (axis @ np.array([0.2, 0.0, 1.0])))
    e2 = np.cross(axis, e1)
    rocker = 2.0

    def __init__(self, theta, side):
        """``side`` selects one of the two solutions; the length of the coupler gives φ = 0 at θ = 0.7."""
        self.length = float(np.linalg.norm(self.D + self.rocker * self.e1 - self.B(0.7)))
        self.theta, self.side = theta, side

    @staticmethod
    def B(theta):
        return np.array([np.cos(theta), np.sin(theta), 0.0])

    def corner(self, theta):
        """C for a crank angle; None if the linkage cannot reach it."""
        to = self.D - self.B(theta)
        P, Q = to @ self.e1, to @ self.e2
        K = (self.length**2 - self.rocker**2 - to @ to) / (2 * self.rocker)
        if abs(K) > np.hypot(P, Q):
            return None
        phi = np.arctan2(Q, P) + self.side * np.arccos(K / np.hypot(P, Q))
        return self.D + self.rocker * (np.cos(phi) * self.e1 + np.sin(phi) * self.e2)

    def coupler_axes(self, theta):
        """Axes of the coupler: x along it, z perpendicular to it and to the rocker's axis."""
        x = unit(self.corner(theta) - self.B(theta))
        z = unit(np.cross(self.axis, x))
        return np.column_stack([x, np.cross(z, x), z])

    def build(self):
        from mechanisms import quaternion

        C = self.corner(self.theta)
        R = self.coupler_axes(self.theta)
        x = (C - self.D) / self.rocker
        R_rocker = np.column_stack([x, np.cross(self.axis, x), self.axis])
        m = cd.Mechanism("RSUR")
        crank = m.body("crank", orientation=quaternion(rotation(Z, self.theta)))
        coupler = m.body("coupler", position=self.B(self.theta), orientation=quaternion(R))
        rocker = m.body("rocker", position=self.D, orientation=quaternion(R_rocker))
        m.revolute("A", m.ground.frame(x=X), crank.frame(x=X))
        m.spherical("B", crank.point((1, 0, 0)), coupler.point())
        m.universal("C", coupler.frame((self.length, 0, 0), z=Z), rocker.frame((self.rocker, 0, 0), z=Z))
        m.revolute("D", m.ground.frame(self.D, z=self.axis), rocker.frame(z=Z))
        return m


# All kinds of four-bars, each with a feasible crank angle.
GRASHOF = {
    "crank-rocker": (FourBar(1.0, 2.5, 2.0, 3.0), 1.2),
    "rocker-crank": (FourBar(2.0, 2.5, 1.0, 3.0), 1.1),
    "drag link": (FourBar(2.0, 2.5, 3.0, 1.0), 1.2),
    "double rocker with a turning coupler": (FourBar(2.5, 1.0, 2.0, 3.0), 0.9),
    "triple rocker with a long frame": (FourBar(1.5, 1.6, 1.4, 3.2), 0.5),
    "triple rocker with a long crank": (FourBar(3.2, 1.6, 1.4, 1.5), -0.6),
    "triple rocker with a long coupler": (FourBar(1.5, 3.2, 1.4, 1.6), 2.4),
    "triple rocker with a long rocker": (FourBar(1.5, 1.6, 3.2, 1.4), 2.5),
}
