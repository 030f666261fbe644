"""Five-bar: a planar parallel robot in which two cranks position one pin.

Two cranks of 0.4 m rotate about pivots 0.5 m apart; two links of 0.6 m join them at the hand.  The Grübler count is
24 − 25 = −1; the linkage has two degrees of freedom.

Forward kinematics: with the elbows at B = A + 0.4 (cos α, sin α) and D = E + 0.4 (cos ε, sin ε), the hand is an
intersection of the circles of 0.6 m about B and D.  Inverse kinematics: for a hand H, each elbow is an intersection of
the circles of 0.4 m about its pivot and of 0.6 m about H.
"""

from __future__ import annotations

from math import cos, degrees, pi, sin
from typing import Any

import numpy as np

import cardan as cd
from gallery.checks import expect, placed, run_move, velocity
from gallery.masses import with_masses
from gallery.planar import Plane, flat, intersect_circles, link, pin, side

CRANK, LINK, BASE = 0.4, 0.6, 0.5  # m
A, E = (0.0, 0.0), (BASE, 0.0)
MIDDLE, RADIUS = (0.25, 0.65), 0.12  # m: the circle that the hand follows
DURATION, POSES = 2.0, 24  # s, for one circle


def circle(t: Any) -> tuple[Any, Any]:
    """Desired position [m] of the hand at time t [s]."""
    angle = 2 * cd.pi * t / DURATION
    return MIDDLE[0] + RADIUS * cd.cos(angle), MIDDLE[1] + RADIUS * cd.sin(angle)


def angle_a(t: Any) -> Any:
    """α [rad] at time t [s]."""
    return crank_angles(circle(t))[0]


def angle_e(t: Any) -> Any:
    """ε [rad] at time t [s]."""
    return crank_angles(circle(t))[1]


def build() -> cd.Mechanism:
    """Elbows outwards, the links drawn to a point that they do not quite reach."""
    m = cd.Mechanism("five_bar", gravity=(0.0, -9.81, 0.0))
    left, right, hand = (-0.2, 0.36), (0.72, 0.35), (0.3, 0.72)
    crank_a, crank_e = link(m, "crank_a", A, left), link(m, "crank_e", E, right)
    link_b, link_d = link(m, "link_b", left, hand, layer=0.02), link(m, "link_d", right, hand, layer=0.04)
    pin(m, "A", m.ground, A, crank_a)
    pin(m, "B", crank_a, (CRANK, 0.0), link_b)
    pin(m, "H", link_b, (LINK, 0.0), link_d, (LINK, 0.0))
    pin(m, "D", crank_e, (CRANK, 0.0), link_d)
    pin(m, "E", m.ground, E, crank_e)
    m.drive("motor_a", m["A"], angle_a)
    m.drive("motor_e", m["E"], angle_e)
    return with_masses(m)


def elbow(pivot: Plane, angle: float) -> Plane:
    """End of a crank on a pivot, for a crank angle [rad]."""
    return pivot[0] + CRANK * cos(angle), pivot[1] + CRANK * sin(angle)


def crank_angles(hand: tuple[Any, Any]) -> tuple[Any, Any]:
    """α and ε [rad] for a position of the hand, with the elbows outwards."""
    b, d = intersect_circles(A, CRANK, hand, LINK, 1.0), intersect_circles(E, CRANK, hand, LINK, -1.0)
    return cd.atan2(b[1] - A[1], b[0] - A[0]), cd.atan2(d[1] - E[1], d[0] - E[0])


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The hand is at the intersection of the circles about the elbows."""
    state = result.state
    alpha, epsilon = mechanism["A"].coordinate(state), mechanism["E"].coordinate(state)
    b, d = elbow(A, alpha), elbow(E, epsilon)
    hand = placed(state["link_d"], (LINK, 0.0, 0.0))
    expect("elbow B", placed(state["link_b"], (0, 0, 0)), (*b, 0.0))
    expect("elbow D", placed(state["link_d"], (0, 0, 0)), (*d, 0.0))
    expect("hand", hand, (*intersect_circles(b, LINK, d, LINK, side(b, d, flat(hand))), 0.0))
    return [
        f"with the cranks at {degrees(alpha):.4f}° and {degrees(epsilon):.4f}° the hand is at "
        f"({hand[0]:.6f}, {hand[1]:.6f}) m, as the forward kinematics gives"
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The hand follows a circle; the cranks are driven by the inverse kinematics."""
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        angle = 2 * pi * pose.time / DURATION
        hand = placed(pose["link_b"], (LINK, 0.0, 0.0))
        expect("hand on the circle", hand, (MIDDLE[0] + RADIUS * cos(angle), MIDDLE[1] + RADIUS * sin(angle), 0.0))
        speed = 2 * pi * RADIUS / DURATION
        along = (-speed * sin(angle), speed * cos(angle), 0.0)
        for name in ("link_b", "link_d"):
            expect(f"velocity of the hand on {name}", velocity(pose, name, hand), along)
    return [
        f"cranks driven by the inverse kinematics move the hand along a circle of {RADIUS:g} m, in {POSES} poses, at "
        f"a constant {speed:.6f} m/s"
    ]
