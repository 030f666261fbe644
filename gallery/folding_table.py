"""Folding table lying on its top: two legs, each with an over-centre brace and a stop at both ends of its travel.

A leg rotates about A on the underside of the top.  A brace of two links, PE = 0.25 m on the top and EQ on the leg,
supports it.  These are two four-bars of four parallel hinges: the Grübler count is 2·(18 − 20) = −4, and each leg has
one degree of freedom.

At leg angle α and elbow angle ε (0 where the brace is straight) the length of the brace is
|PQ|² = p² + q² − 2pq cos α = r² + s² + 2rs cos ε.  The stop of the folded leg is at α = 5°.  The stop of the elbow is
8° past straight, where the leg is upright.  The leg is opened furthest where the brace is straight, so a load that
pushes the leg back presses the elbow onto its stop.  Both stops are limits.
"""

from __future__ import annotations

from math import acos, atan2, cos, degrees, pi, radians, sin, sqrt
from typing import Any

import numpy as np

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler
from gallery.checks import expect, placed, run_move, try_move, without_drivers
from gallery.looks import STEEL, bar, block, rod
from gallery.masses import with_masses
from gallery.planar import Plane, Z, flat, intersect_circles, link, pin

LEG = 0.7  # m
HINGE = 0.5  # m, from the middle of the table to the hinge of each leg
ON_TOP, ON_LEG = 0.35, 0.3  # m: p = AP and q = AQ
UPPER = 0.25  # m: r = PE
LATCH = radians(8.0)  # stop of the elbow, past straight
LOWER = -UPPER * cos(LATCH) + sqrt(ON_TOP**2 + ON_LEG**2 - (UPPER * sin(LATCH)) ** 2)  # m: s = EQ, leg upright
FOLDED = radians(175.0)  # other limit of the elbow; the stop of the leg is reached first
REST = radians(5.0)  # angle of a folded leg
DRAWN = radians(12.0)  # angle of the legs in the sketch
DURATION, POSES = 4.0, 16  # s
PAST = radians(20.0)  # elbow angle of the starts and drivers that go past the stops

SIDES = {"left": 1.0, "right": -1.0}  # the right leg is the mirror image of the left


def elbow_of(alpha: float) -> float:
    """ε ≥ 0 [rad], before the brace passes its centre, for the leg at α [rad]."""
    square = ON_TOP**2 + ON_LEG**2 - 2 * ON_TOP * ON_LEG * cos(alpha)
    return acos((square - UPPER**2 - LOWER**2) / (2 * UPPER * LOWER))


def leg_of(epsilon: float) -> float:
    """α [rad] for the elbow at ε [rad]."""
    square = UPPER**2 + LOWER**2 + 2 * UPPER * LOWER * cos(epsilon)
    return acos((ON_TOP**2 + ON_LEG**2 - square) / (2 * ON_TOP * ON_LEG))


def opening(t: Any) -> Any:
    """ε [rad] of the left elbow at time t [s]: from the folded leg to the elbow's stop, in the first half."""
    u = cd.clip(2 * t / DURATION, 0.0, 1.0)
    folded = elbow_of(REST)
    return folded - (folded + LATCH) * (u - cd.sin(2 * cd.pi * u) / (2 * cd.pi))


def opening_right(t: Any) -> Any:
    """The same for the right elbow, with the opposite sign, in the second half."""
    return -opening(t - DURATION / 2)


def pins(alpha: float, epsilon: float) -> dict[str, Plane]:
    """P, E, Q and the end F of a left leg [m] relative to its hinge, by circle intersections; ε selects the side."""
    q = (ON_LEG * cos(alpha), ON_LEG * sin(alpha))
    elbow = intersect_circles((ON_TOP, 0.0), UPPER, q, LOWER, -1.0 if epsilon > 0.0 else 1.0)
    return {"P": (ON_TOP, 0.0), "E": elbow, "Q": q, "F": (LEG * cos(alpha), LEG * sin(alpha))}


def on_table(name: str, point: Plane) -> Plane:
    """Table coordinates of a point given relative to the hinge of the left leg, mirrored for the right leg."""
    return SIDES[name] * (point[0] - HINGE), point[1]


def _sketch(alpha: float, epsilon: float) -> dict[str, tuple[Any, Any]]:
    """Poses of all links for the legs at α and the elbows at ε [rad]."""
    poses = {}
    for name in SIDES:
        at = {key: on_table(name, point) for key, point in {**pins(alpha, epsilon), "A": (0.0, 0.0)}.items()}
        for body, first, second in (("leg", "A", "F"), ("upper", "P", "E"), ("lower", "E", "Q")):
            angle = atan2(at[second][1] - at[first][1], at[second][0] - at[first][0])
            poses[f"{name}_{body}"] = ((*at[first], 0.0), euler.from_axis_angle(Z, angle))
    return poses


def build() -> cd.Mechanism:
    """Folded, with the legs drawn too high for their braces."""
    m = cd.Mechanism("folding_table", gravity=(0.0, -9.81, 0.0))
    for name, sign in SIDES.items():
        at = {key: on_table(name, point) for key, point in pins(DRAWN, elbow_of(REST)).items()}
        hinge = on_table(name, (0.0, 0.0))
        leg = link(m, f"{name}_leg", hinge, at["F"])
        for z in (-0.26, 0.26):
            bar(leg, (0.0, 0.0), (LEG, 0.0), 0.05, 0.03, z)
        rod(leg, (0.93 * LEG, 0.0, -0.26), (0.93 * LEG, 0.0, 0.26), 0.014)
        rod(leg, (ON_LEG, 0.0, -0.26), (ON_LEG, 0.0, 0.26), 0.012, STEEL)
        upper = link(m, f"{name}_upper", at["P"], at["E"], layer=0.02)
        lower = link(m, f"{name}_lower", at["E"], at["Q"], layer=0.01)
        for z in (-0.2, 0.2):
            bar(upper, (0.0, 0.0), (UPPER, 0.0), 0.034, 0.012, z)
            bar(lower, (0.0, 0.0), (LOWER, 0.0), 0.034, 0.012, 0.93 * z)
        rod(upper, (UPPER, 0.0, -0.215), (UPPER, 0.0, 0.215), 0.01, STEEL)
        for point, reach in ((hinge, 0.285), (at["P"], 0.215)):
            rod(m.ground, (*point, -reach), (*point, reach), 0.012, STEEL)
        foot = pin(m, f"{name}_hinge", m.ground, hinge, leg)
        pin(m, f"{name}_pivot", m.ground, at["P"], upper)
        elbow = pin(m, f"{name}_elbow", upper, (UPPER, 0.0), lower)
        pin(m, f"{name}_knee", lower, (LOWER, 0.0), leg, (ON_LEG, 0.0))
        if sign > 0.0:
            m.limit("left_rest", foot, lower=REST, upper=pi - REST)
            m.limit("left_latch", elbow, lower=-LATCH, upper=FOLDED)
        else:
            m.limit("right_rest", foot, lower=REST, upper=pi - REST)
            m.limit("right_latch", elbow, lower=-FOLDED, upper=LATCH)
    block(m.ground, (-0.72, -0.055, -0.38), (0.72, -0.025, 0.38), "#c8935a")
    m.drive("left_hand", m["left_elbow"], opening)
    m.drive("right_hand", m["right_elbow"], opening_right)
    return with_masses(m)


def _angles(mechanism: cd.Mechanism, state: cd.State, name: str) -> tuple[float, float]:
    """α and ε [rad] of a leg, mirrored to the left side."""
    hinge, elbow = (mechanism[f"{name}_{which}"].coordinate(state) for which in ("hinge", "elbow"))
    return (hinge, elbow) if SIDES[name] > 0.0 else (pi - hinge, -elbow)


def _check_legs(mechanism: cd.Mechanism, state: cd.State) -> list[tuple[str, str]]:
    """The stops that are reached, according to the angles; checks every pin."""
    reached = []
    for name, sign in SIDES.items():
        alpha, epsilon = _angles(mechanism, state, name)
        expect(f"{name} leg angle from its brace", cos(alpha), cos(leg_of(epsilon)))
        if alpha < REST - 1e-9 or not -LATCH - 1e-9 < epsilon < FOLDED:
            raise ExampleError(f"{name} leg at {degrees(alpha)}°, its elbow at {degrees(epsilon)}°: a stop is violated")
        at = {key: on_table(name, point) for key, point in pins(alpha, epsilon).items()}
        expect(f"{name} foot", placed(state[f"{name}_leg"], (LEG, 0, 0)), (*at["F"], 0.0))
        expect(f"{name} elbow", placed(state[f"{name}_upper"], (UPPER, 0, 0)), (*at["E"], 0.0))
        expect(f"{name} knee", placed(state[f"{name}_lower"], (LOWER, 0, 0)), (*at["Q"], 0.0))
        if abs(alpha - REST) < 1e-9:
            reached.append((f"{name}_rest", "lower" if sign > 0.0 else "upper"))
        if abs(epsilon + LATCH) < 1e-9:
            reached.append((f"{name}_latch", "lower" if sign > 0.0 else "upper"))
    return reached


def _check_active(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Names of the active limits of a result; checks them against the angles."""
    if not result.ok:
        raise ExampleError(f"folding_table is not assembled; {result.text()}")
    active = [(limit.name, limit.bound) for limit in result.active]
    reached = _check_legs(mechanism, result.state)
    if sorted(active) != sorted(reached):
        raise ExampleError(f"the limits reached are {reached}, but the result lists {active}")
    return [name for name, _ in active]


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """Legs and braces against the law of cosines, and the stops that are reached."""
    active = _check_active(mechanism, result)
    legs = " and ".join(f"{degrees(_angles(mechanism, result.state, name)[0]):.4f}°" for name in SIDES)
    return [f"the legs are at {legs}, as the braces require; stops reached: {', '.join(active) or 'none'}"]


def _pressed(t: Any) -> Any:
    """ε [rad] of an elbow at time t [s]: through straight and past the stop."""
    return PAST * (1 - 2 * t)


def _lifted(t: Any) -> Any:
    """α [rad] of a leg at time t [s]: from 60° to 120°."""
    return radians(60.0) + radians(60.0) * t


def _stopped(mechanism: cd.Mechanism, joint: str, function: Any, status: cd.MotionStatus) -> tuple[float, float]:
    """α and ε [rad] of the left leg where its motion ends; checks the reason."""
    m = without_drivers(mechanism)
    m.drive("hand", m[joint], function)
    m.drive("other", m["right_elbow"], -1.0)
    moved = try_move(m, [0.0, 1.0])
    if moved.status is not status or moved.state is None:
        raise ExampleError(f"folding_table driven by {joint} does not end at a {status}; {moved.text()}")
    return _angles(m, moved.state, "left")


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """Open one leg, then the other; start past the stops; drive into a stop; drive a leg instead of its elbow."""
    moved = run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state)
    on_stops = [_check_active(mechanism, mechanism.assemble(pose)) for pose in moved.states]
    expected_stops = {0: ["left_rest", "right_rest"], POSES // 2: ["left_latch", "right_rest"]}
    expected_stops |= {POSES: ["left_latch", "right_latch"], POSES // 4: ["right_rest"], 3 * POSES // 4: ["left_latch"]}
    for k, names in expected_stops.items():
        if sorted(on_stops[k]) != names:
            raise ExampleError(f"at t = {moved.times[k]} s the limits reached are {on_stops[k]}, not {names}")
    for name in SIDES:
        foot = flat(placed(moved.states[-1][f"{name}_leg"], (LEG, 0, 0)))
        expect(f"{name} leg, upright", foot, on_table(name, (0.0, LEG)))

    free = without_drivers(mechanism)
    _check_active(free, free.assemble(_sketch(leg_of(PAST), -PAST)))

    alpha, epsilon = _stopped(mechanism, "left_elbow", _pressed, cd.MotionStatus.LIMIT)
    expect("elbow driven into its stop", (alpha, epsilon), (pi / 2, -LATCH))
    alpha, epsilon = _stopped(mechanism, "left_hinge", _lifted, cd.MotionStatus.DEAD_POINT)
    expect("leg where its brace is straight", alpha, leg_of(0.0))
    return [
        f"stops reached while the legs open: {'; '.join(', '.join(on_stops[k]) for k in sorted(expected_stops))}",
        "a start past the stops is assembled within them; an elbow driven past its stop ends there, its leg upright",
        f"driven by the leg, the motion ends at a dead point: brace straight, leg at {degrees(alpha):.4f}°",
    ]
