"""Five-bar: two cranks that put one pin where it is wanted, the parallel robot of the plane.

Cranks of 0.4 m on pivots 0.5 m apart, links of 0.6 m that meet in the hand.  24 − 25 = −1 by count, two degrees of
freedom.

Forwards, with the elbows at B = A + 0.4 (cos α, sin α) and D = E + 0.4 (cos ε, sin ε), the hand is where the circles
of 0.6 m about B and D meet.  Backwards, for a hand H, each elbow is where the circles of 0.4 m about its pivot and of
0.6 m about H meet.
"""

from __future__ import annotations

from math import atan2, cos, degrees, pi, sin

import cardan as cd
from cardan.examples.planar import Plane, flat, link, meeting, pin, side
from cardan.examples.registry import Example, ExampleError, expect, placed

CRANK, LINK, BASE = 0.4, 0.6, 0.5  # m
A, E = (0.0, 0.0), (BASE, 0.0)
MIDDLE, RADIUS, POSES = (0.25, 0.65), 0.12, 24  # m: the circle that the hand is to draw


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
    return m


def elbow(pivot: Plane, angle: float) -> Plane:
    """End of a crank on a pivot at an angle [rad]."""
    return pivot[0] + CRANK * cos(angle), pivot[1] + CRANK * sin(angle)


def crank_angles(hand: Plane) -> tuple[float, float]:
    """α and ε [rad] that put the hand there, with the elbows out."""
    b, d = meeting(A, CRANK, hand, LINK, 1.0), meeting(E, CRANK, hand, LINK, -1.0)
    return atan2(b[1] - A[1], b[0] - A[0]), atan2(d[1] - E[1], d[0] - E[0])


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
    """The hand draws a circle, by cranks held at the angles of the inverse closed form."""
    copy = mechanism.copy()
    for name in ("A", "E"):
        copy.remove(name)
    for k in range(POSES):
        turn = 2 * pi * k / POSES
        target = (MIDDLE[0] + RADIUS * cos(turn), MIDDLE[1] + RADIUS * sin(turn))
        for name, pivot, crank, angle in zip("AE", (A, E), ("crank_a", "crank_e"), crank_angles(target), strict=True):
            if name in copy:
                copy.remove(name)
            at = copy.ground.frame((*pivot, 0.0), z=(0, 0, 1), x=(cos(angle), sin(angle), 0.0))
            copy.fixed(name, at, copy[crank].frame(z=(0, 0, 1), x=(1, 0, 0)))
        result = copy.assemble(state)
        if not result.ok:
            raise ExampleError(f"five_bar does not assemble with its hand at {target}; {result.text()}")
        state = result.state
        expect("hand on the circle", placed(state["link_b"], (LINK, 0.0, 0.0)), (*target, 0.0))
    return [f"cranks turned by the inverse closed form make the hand draw a circle of {RADIUS:g} m, in {POSES} poses"]


EXAMPLE = Example("five_bar", "five-bar with two cranks", build, check, dof=2, gruebler=-1, motion=motion)
