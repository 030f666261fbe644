"""Delta robot: three arms, six rods, and a platform that moves without turning.  [Clavel1988]

Arms of L = 0.4 m on hinges at R = 0.3 m, 120° apart; from each elbow two parallel rods of l = 0.9 m, 2 · 0.1 m apart,
to the platform, whose joints lie r = 0.1 m from its middle.  A rod has a cross at the elbow and a ball at the platform.
6·10 − 3·5 − 6·4 − 6·3 = 3 degrees of freedom.

The parallelograms keep the platform level.  With its middle at (x, y, z) in the axes of an arm (x outwards, y along the
hinge) the arm's angle q below the level obeys (x + r − R − L cos q)² + y² + (z + L sin q)² = l², that is
E cos q + F sin q + G = 0,  E = −2L (x + r − R),  F = 2L z,  G = (x + r − R)² + y² + z² + L² − l²,
q = 2 arctan ((−F ± √(E² + F² − G²)) / (G − E)).
"""

from __future__ import annotations

from math import atan, cos, degrees, pi, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

import cardan as cd
from cardan.examples.registry import Example, ExampleError, expect, placed, rotated
from cardan.math import euler

BASE, PLATFORM, ARM, ROD, APART = 0.3, 0.1, 0.4, 0.9, 0.1  # m: R, r, L, l, and half the distance of a pair of rods
ARMS = 3
DRAWN_ARM = 0.25  # rad below the level
DRAWN_PLATFORM = (0.04, 0.03, -0.9)  # m
TURNED = (0.04, 0.02, -0.08)  # rotation vector [rad] of the platform in the sketch
RADIUS, DEPTH, POSES = 0.2, -0.85, 24  # m: the circle that the platform is to run on

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def axes_of(arm: int) -> NDArray[np.float64]:
    """Columns: outwards, along the hinge, up, shape (3, 3)."""
    azimuth = 2 * pi * arm / ARMS
    outwards, along = (cos(azimuth), sin(azimuth), 0.0), (-sin(azimuth), cos(azimuth), 0.0)
    return np.column_stack([outwards, along, Z])


def _pointing(direction: ArrayLike, hinge: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orientation with x in a direction and z as near to the hinge as can be."""
    x = np.array(direction) / np.linalg.norm(direction)
    y = np.cross(hinge, x)
    y /= np.linalg.norm(y)
    return euler.from_matrix(np.column_stack([x, y, np.cross(x, y)]))


def build() -> cd.Mechanism:
    """Arms a little lowered, rods drawn from their elbows to a platform that is askew."""
    m = cd.Mechanism("delta_robot")
    platform = m.body("platform", position=DRAWN_PLATFORM, orientation=euler.from_rotation_vector(TURNED))
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
    return m


def arm_angles(position: ArrayLike, k: int) -> tuple[float, float]:
    """The two angles [rad] of an arm with the platform at a position: elbow out, elbow in."""
    x, y, z = axes_of(k).T @ np.array(position)
    x += PLATFORM - BASE
    e, f, g = -2 * ARM * x, 2 * ARM * z, x**2 + y**2 + z**2 + ARM**2 - ROD**2
    root = sqrt(e**2 + f**2 - g**2)
    out, inwards = (2 * atan((-f + sign * root) / (g - e)) for sign in (-1.0, 1.0))
    return out, inwards


def _check_pose(mechanism: cd.Mechanism, state: cd.State) -> list[float]:
    """Angles [rad] of the arms, after a look at every rod."""
    platform = state["platform"]
    expect("axes of the platform", [*rotated(platform, X), *rotated(platform, Z)], [*X, *Z])
    found = [mechanism[f"hinge_{k + 1}"].coordinate(state) for k in range(ARMS)]
    expect("angles of the arms", found, [arm_angles(platform.position, k)[0] for k in range(ARMS)])
    for k in range(ARMS):
        outwards, along, up = axes_of(k).T
        elbow = (BASE + ARM * cos(found[k])) * outwards - ARM * sin(found[k]) * up
        ends = PLATFORM * outwards + platform.position
        expect(f"axis of arm {k + 1}", rotated(state[f"arm_{k + 1}"], Z), along)
        for side, shift in (("a", -APART), ("b", APART)):
            rod = state[f"rod_{k + 1}{side}"]
            expect(f"elbow of rod {k + 1}{side}", placed(rod, (0, 0, 0)), elbow + shift * along)
            expect(f"end of rod {k + 1}{side}", placed(rod, (ROD, 0, 0)), ends + shift * along)
            expect(f"cosine between the axes of cross {k + 1}{side}", rotated(rod, Y) @ along, 0.0)
    return found


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The platform level, and the arms at the angles of the inverse kinematics."""
    angles = _check_pose(mechanism, result.state)
    x, y, z = result.state["platform"].position
    return [
        f"with the platform at ({x:.6f}, {y:.6f}, {z:.6f}) m, level, the arms stand at "
        + ", ".join(f"{degrees(q):.4f}°" for q in angles)
        + ", as the inverse kinematics say"
    ]


def motion(mechanism: cd.Mechanism, state: cd.State) -> list[str]:
    """The platform, held at points of a circle."""
    copy = mechanism.copy()
    for k in range(POSES):
        target = (RADIUS * cos(2 * pi * k / POSES), RADIUS * sin(2 * pi * k / POSES), DEPTH)
        if "held" in copy:
            copy.remove("held")
        copy.spherical("held", copy.ground.point(target), copy["platform"].point())
        result = copy.assemble(state)
        if not result.ok:
            raise ExampleError(f"delta_robot does not assemble with its platform at {target}; {result.text()}")
        state = result.state
        _check_pose(mechanism, state)
        expect("position of the platform", state["platform"].position, target)
    return [f"led around a circle of {RADIUS:g} m, in {POSES} poses, the platform stays level and the arms follow"]


EXAMPLE = Example(
    "delta_robot",
    "Delta robot of 10 bodies",
    build,
    check,
    dof=3,
    gruebler=3,
    motion=motion,
    everywhere=False,  # with its parallelograms crossed the platform turns
)
