"""Delta robot: three arms, six rods, and a platform that translates without rotation.  [Clavel1988]

Three arms of L = 0.4 m rotate about hinges at radius R = 0.3 m, 120° apart.  From each elbow two parallel rods of
l = 0.9 m, 2 · 0.1 m apart, lead to the platform, whose joints are r = 0.1 m from its centre.  A rod has a universal
joint at the elbow and a spherical joint at the platform.  6·10 − 3·5 − 6·4 − 6·3 = 3 degrees of freedom.

The parallelograms keep the platform level.  With its centre at (x, y, z) in the axes of an arm (x outwards, y along the
hinge) the arm's angle q below the horizontal satisfies (x + r − R − L cos q)² + y² + (z + L sin q)² = l², that is
E cos q + F sin q + G = 0,  E = −2L (x + r − R),  F = 2L z,  G = (x + r − R)² + y² + z² + L² − l²,
q = 2 arctan ((−F ± √(E² + F² − G²)) / (G − E)).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, degrees, pi, sin
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import cardan as cd
from cardan.math import euler
from gallery.checks import expect, placed, rates, rotated, run_move
from gallery.masses import with_masses

BASE, PLATFORM, ARM, ROD, APART = 0.3, 0.1, 0.4, 0.9, 0.1  # m: R, r, L, l, and half the distance between paired rods
ARMS = 3
DRAWN_ARM = 0.25  # rad below the horizontal
DRAWN_PLATFORM = (0.04, 0.03, -0.9)  # m
ROTATION = (0.04, 0.02, -0.08)  # rad: rotation vector of the platform in the sketch
RADIUS, DEPTH = 0.2, -0.85  # m: the circle that the platform follows
DURATION, POSES = 2.0, 24  # s, for one circle

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def axes_of(arm: int) -> NDArray[np.float64]:
    """Axes of an arm as columns: outwards, along the hinge, up; shape (3, 3)."""
    azimuth = 2 * pi * arm / ARMS
    outwards, along = (cos(azimuth), sin(azimuth), 0.0), (-sin(azimuth), cos(azimuth), 0.0)
    return np.column_stack([outwards, along, Z])


def _pointing(direction: ArrayLike, hinge: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orientation with x along a direction and z as close as possible to the hinge axis."""
    x = np.array(direction) / np.linalg.norm(direction)
    y = np.cross(hinge, x)
    y /= np.linalg.norm(y)
    return euler.from_matrix(np.column_stack([x, y, np.cross(x, y)]))


def build() -> cd.Mechanism:
    """Arms slightly lowered, rods drawn from their elbows to a rotated platform."""
    m = cd.Mechanism("delta_robot")
    platform = m.body("platform", position=DRAWN_PLATFORM, orientation=euler.from_rotation_vector(ROTATION))
    for k in range(ARMS):
        outwards, along, up = axes_of(k).T
        forearm = cos(DRAWN_ARM) * outwards - sin(DRAWN_ARM) * up
        arm = m.body(f"arm_{k + 1}", position=BASE * outwards, orientation=_pointing(forearm, along))
        m.revolute(f"hinge_{k + 1}", m.ground.frame(BASE * outwards, z=along, x=outwards), arm.frame(z=Z, x=X))
        for side, shift in (("a", -APART), ("b", APART)):
            elbow = BASE * outwards + ARM * forearm + shift * along
            joint = PLATFORM * outwards + shift * along
            rod = m.body(
                f"rod_{k + 1}{side}", position=elbow, orientation=_pointing(DRAWN_PLATFORM + joint - elbow, along)
            )
            m.universal(f"cross_{k + 1}{side}", arm.frame((ARM, 0.0, shift), z=Z), rod.frame(z=Y))
            m.spherical(f"ball_{k + 1}{side}", rod.point((ROD, 0.0, 0.0)), platform.point(joint))
        m.drive(f"motor_{k + 1}", m[f"hinge_{k + 1}"], ArmAngle(k))
    return with_masses(m)


def circle(t: Any) -> tuple[Any, Any, Any]:
    """Desired position [m] of the platform at time t [s]."""
    angle = 2 * cd.pi * t / DURATION
    return RADIUS * cd.cos(angle), RADIUS * cd.sin(angle), DEPTH


@dataclass(frozen=True, slots=True)
class ArmAngle:
    """The angle [rad] of an arm at time t [s] for which the platform follows the circle."""

    arm: int

    def __call__(self, t: Any) -> Any:
        return arm_angle(circle(t), self.arm)


def arm_angle(position: Any, k: int) -> Any:
    """The angle [rad] of arm k, elbow outwards, for a platform position, which may be an expression in time."""
    angle = 2 * pi * k / ARMS
    x = cos(angle) * position[0] + sin(angle) * position[1] + PLATFORM - BASE
    y, z = cos(angle) * position[1] - sin(angle) * position[0], position[2]
    e, f, g = -2 * ARM * x, 2 * ARM * z, x**2 + y**2 + z**2 + ARM**2 - ROD**2
    return 2 * cd.atan((-f - cd.sqrt(e**2 + f**2 - g**2)) / (g - e))


def _check_pose(mechanism: cd.Mechanism, state: cd.State) -> list[float]:
    """Angles [rad] of the arms; checks the platform and every rod."""
    platform = state["platform"]
    expect("axes of the platform", [*rotated(platform, X), *rotated(platform, Z)], [*X, *Z])
    found = [mechanism[f"hinge_{k + 1}"].coordinate(state) for k in range(ARMS)]
    expect("angles of the arms", found, [arm_angle(platform.position, k) for k in range(ARMS)])
    for k in range(ARMS):
        outwards, along, up = axes_of(k).T
        elbow = (BASE + ARM * cos(found[k])) * outwards - ARM * sin(found[k]) * up
        ends = PLATFORM * outwards + platform.position
        expect(f"axis of arm {k + 1}", rotated(state[f"arm_{k + 1}"], Z), along)
        for side, shift in (("a", -APART), ("b", APART)):
            rod = state[f"rod_{k + 1}{side}"]
            expect(f"elbow of rod {k + 1}{side}", placed(rod, (0, 0, 0)), elbow + shift * along)
            expect(f"end of rod {k + 1}{side}", placed(rod, (ROD, 0, 0)), ends + shift * along)
            expect(f"cosine between the axes of joint cross_{k + 1}{side}", rotated(rod, Y) @ along, 0.0)
    return found


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The platform is level, and the arms are at the angles of the inverse kinematics."""
    angles = _check_pose(mechanism, result.state)
    x, y, z = result.state["platform"].position
    return [
        f"with the platform at ({x:.6f}, {y:.6f}, {z:.6f}) m, level, the arms are at "
        + ", ".join(f"{degrees(q):.4f}°" for q in angles)
        + ", as the inverse kinematics gives"
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The three arms move the platform around a circle."""
    speed = 2 * pi * RADIUS / DURATION
    for pose in run_move(mechanism, np.linspace(0.0, DURATION, POSES + 1), state).states:
        _check_pose(mechanism, pose)
        angle = 2 * pi * pose.time / DURATION
        expected = (RADIUS * cos(angle), RADIUS * sin(angle), DEPTH)
        expect("position of the platform", pose["platform"].position, expected)
        v, spin = rates(pose, "platform")
        expect("velocity of the platform", (*v, *spin), (-speed * sin(angle), speed * cos(angle), 0, 0, 0, 0))
    return [
        f"arms driven by the inverse kinematics move the platform, level, around a circle of {RADIUS:g} m at a "
        f"constant {speed:.6f} m/s, in {POSES} poses"
    ]
