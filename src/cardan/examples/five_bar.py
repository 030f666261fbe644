"""Five-bar: two cranks that put one pin where it is wanted, the parallel robot of the plane.

Cranks of 0.4 m on pivots 0.5 m apart, links of 0.6 m that meet in the hand.  24 − 25 = −1 by count, two degrees of
freedom.

Forwards, with the elbows at B = A + 0.4 (cos α, sin α) and D = E + 0.4 (cos ε, sin ε), the hand is where the circles
of 0.6 m about B and D meet.  Backwards, for a hand H, each elbow is where the circles of 0.4 m about its pivot and of
0.6 m about H meet.
"""

from __future__ import annotations

from math import cos, degrees, pi, sin
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples.planar import Plane, flat, link, meeting, pin, side
from cardan.examples.registry import Example, expect, placed, played, velocity

CRANK, LINK, BASE = 0.4, 0.6, 0.5  # m
A, E = (0.0, 0.0), (BASE, 0.0)
MIDDLE, RADIUS = (0.25, 0.65), 0.12  # m: the circle that the hand is to draw
DURATION, POSES = 2.0, 24  # s, once around


def circle(t: Any) -> tuple[Any, Any]:
    """Where the hand is wanted [m] at a time [s]."""
    turn = 2 * cd.pi * t / DURATION
    return MIDDLE[0] + RADIUS * cd.cos(turn), MIDDLE[1] + RADIUS * cd.sin(turn)


def angle_a(t: Any) -> Any:
    """α [rad] at a time [s]."""
    return crank_angles(circle(t))[0]


def angle_e(t: Any) -> Any:
    """ε [rad] at a time [s]."""
    return crank_angles(circle(t))[1]


def build() -> cd.Mechanism:
    """Elbows out, the links drawn to a point they do not quite reach."""
    m = cd.Mechanism("five_bar")
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
    return m


def elbow(pivot: Plane, angle: float) -> Plane:
    """End of a crank on a pivot at an angle [rad]."""
    return pivot[0] + CRANK * cos(angle), pivot[1] + CRANK * sin(angle)


def crank_angles(hand: tuple[Any, Any]) -> tuple[Any, Any]:
    """α and ε [rad] that put the hand there, with the elbows out."""
    b, d = meeting(A, CRANK, hand, LINK, 1.0), meeting(E, CRANK, hand, LINK, -1.0)
    return cd.atan2(b[1] - A[1], b[0] - A[0]), cd.atan2(d[1] - E[1], d[0] - E[0])


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The hand where the circles about the elbows meet."""
    state = result.state
    alpha, epsilon = mechanism["A"].coordinate(state), mechanism["E"].coordinate(state)
    b, d = elbow(A, alpha), elbow(E, epsilon)
    hand = placed(state["link_d"], (LINK, 0.0, 0.0))
    expect("elbow B", placed(state["link_b"], (0, 0, 0)), (*b, 0.0))
    expect("elbow D", placed(state["link_d"], (0, 0, 0)), (*d, 0.0))
    expect("hand", hand, (*meeting(b, LINK, d, LINK, side(b, d, flat(hand))), 0.0))
    return [
        f"cranks at {degrees(alpha):.4f}° and {degrees(epsilon):.4f}° put the hand at ({hand[0]:.6f}, {hand[1]:.6f}) m,"
        " where the circles about the elbows meet"
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The hand draws a circle, by cranks driven through the inverse closed form."""
    for pose in played(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        turn = 2 * pi * pose.time / DURATION
        hand = placed(pose["link_b"], (LINK, 0.0, 0.0))
        expect("hand on the circle", hand, (MIDDLE[0] + RADIUS * cos(turn), MIDDLE[1] + RADIUS * sin(turn), 0.0))
        speed = 2 * pi * RADIUS / DURATION
        along = (-speed * sin(turn), speed * cos(turn), 0.0)
        for name in ("link_b", "link_d"):
            expect(f"velocity of the hand on {name}", velocity(pose, name, hand), along)
    return [
        f"cranks driven by the inverse closed form make the hand draw a circle of {RADIUS:g} m, in {POSES} poses, at "
        f"an even {speed:.6f} m/s"
    ]


EXAMPLE = Example(
    "five_bar", "five-bar with two cranks", build, check, dof=2, gruebler=-1, motion=motion, duration=DURATION
)
